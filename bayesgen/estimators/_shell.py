"""What every part of an estimator relies on: its parameters, its state, and the hooks of each model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from bayesgen._random import generator
from bayesgen.estimators import _input
from bayesgen.estimators._keywords import attribute_hint, explaining, keyword_hint
from bayesgen.estimators._options import LARGEST_ALPHA, check_choice, check_unlabelled
from bayesgen.families.base import Family, Labels, dense
from bayesgen.families.normal_statistics import PatternStats
from bayesgen.fit import ROUTES, SAMPLED, FeatureFit, Fit
from bayesgen.own_priors import split
from bayesgen.statistics import Columns, Statistics

__all__ = ["Learned", "Shell"]

ROUTE_OF = {"NUTSOptions": "nuts", "ImportanceOptions": "importance"}


def new_seed(random_state: Any) -> int:
    """A seed for a sampler; the same for the same whole number."""
    return int(generator(random_state).integers(0, 2**63))


def dense_rows(rows: Any) -> Any:
    """The rows as a program can take them: no sparse matrix, and no row with nothing observed, which says nothing."""
    if rows is None:
        return None
    prior, x, codes, weights = rows
    x = dense(x)
    seen = ~np.isnan(x).all(axis=1) if x.dtype.kind == "f" else np.ones(len(x), dtype=bool)
    return prior, x[seen], codes[seen], None if weights is None else weights[seen]


def _of_cells(features: Any) -> Any:
    """The feature part of a fit; where rows have missing cells under a full covariance, that for these."""
    if not isinstance(features.stats, PatternStats):
        return features
    from bayesgen.incomplete import incomplete

    return incomplete(features)


@dataclass(frozen=True, eq=False)
class Learned:
    """What an estimator has learned: the columns it saw, and the fit."""

    columns: Columns
    fit: Fit


class Shell(BaseEstimator):
    """Parameters, state and hooks.

    Subclasses say how X becomes data of a family (`_read`, `_encode`), which family it is (`_stated`), and
    which attributes the parameters have.
    """

    _routes: ClassVar[tuple[str, ...]] = tuple(r for r in ROUTES if r != "unbiased")

    inference: Any
    class_alpha: Any
    class_prior: Any
    likelihood_power: Any
    unlabelled: str | None
    unlabelled_weight: float
    n_init: int
    fit_prior: bool
    random_state: Any

    # ------------------------------------------------------------------ names

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in cls.__dict__:
            cls.__init__ = explaining(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; see scikit-learn's `set_params`.

        Parameters
        ----------
        **params : values
            By name.

        Returns
        -------
        self
        """
        self._check_names(params)
        return super().set_params(**params)

    def _check_names(self, params: dict[str, Any]) -> None:
        known = self.get_params() if params else {}
        for name in params:
            if name.partition("__")[0] not in known:
                hint = keyword_hint(name, self.get_params(deep=False))
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}: {hint}")

    if not TYPE_CHECKING:  # a checker of types shall know which attributes there are

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property without a value: its own error
                return object.__getattribute__(self, name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{attribute_hint(name)}", name=name, obj=self
            )

    # ------------------------------------------------------------------ hooks for subclasses

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        """Checked X, and the stand-in holding `n_features_in_` and names; columns are None at fit."""
        return _input.check_numeric(self, X, columns)

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        """The columns of a training set with row weights, extending those already known."""
        if known is not None:
            return known
        return Columns(holder.n_features_in_, getattr(holder, "feature_names_in_", None))

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> Any:
        """Checked X in the family's form; the purpose is "fit", "forget" or "predict"."""
        raise NotImplementedError

    def _stated(self, columns: Columns, n_classes: int) -> Family:
        """The family with the prior as stated and its shapes."""
        raise NotImplementedError

    def _adapt(self, stats: Any, old: Columns, new: Columns) -> Any:
        """Statistics over old columns as statistics over new ones."""
        return stats

    def _stats(self, stated: Any, x: Any, labels: Labels, columns: Columns) -> Any:
        """Statistics of encoded rows."""
        return stated.stats(x, labels)

    def _own_prior(self) -> Any:
        """A prior without a closed form, or None; distributions in the fields of `_stated` count as well."""
        return None

    def _features(self, stated: Any, stats: Any, columns: Columns, random_state: Any, rows: Any = None) -> Any:
        """The feature part of a fit; `rows` (class prior, x, codes, weights) is for NUTS over rows."""
        base, own = split(stated)
        own = self._own_prior() or own
        if own is not None:
            own.check(base)
        if self._route not in SAMPLED:
            if own is not None:
                raise ValueError(
                    f"the prior has no closed form ({own.described}), and inference={self.inference!r} needs one: use "
                    "inference='nuts' (or 'importance')"
                )
            return _of_cells(FeatureFit(base, stats, self._route))
        from bayesgen.sampled import SampledFeatures

        options = self._sampler()
        by_rows = getattr(options, "likelihood", None) == "rows"
        proposal = getattr(options, "proposal", None)
        if proposal is not None:
            proposal = self._with_prior(proposal)._stated(columns, base.n_classes)
        rows = dense_rows(rows) if by_rows else None
        seed = new_seed(random_state)
        return _of_cells(SampledFeatures(base, stats, self._route, own, options, seed, rows, proposal))

    def _with_prior(self, prior: Any) -> Any:
        """An unfitted copy under another prior."""
        name = "alpha" if hasattr(self, "alpha") else "prior"
        return clone(self).set_params(**{name: prior})

    @property
    def _route(self) -> str:
        """The route by name."""
        return self.inference if isinstance(self.inference, str) else ROUTE_OF.get(type(self.inference).__name__, "")

    def _sampler(self) -> Any:
        """Options of a sampled route."""
        if not isinstance(self.inference, str):
            return self.inference
        from bayesgen.importance import ImportanceOptions
        from bayesgen.nuts import NUTSOptions

        return NUTSOptions() if self.inference == "nuts" else ImportanceOptions()

    def _check_params(self) -> None:
        if isinstance(self.inference, str) or not self._route:
            check_choice("inference", self.inference, (*self._routes, *SAMPLED))
        power = self.likelihood_power
        number = isinstance(power, (int, float, np.integer, np.floating)) and not isinstance(power, bool)
        if not (0 <= power < np.inf if number else isinstance(power, str) and power == "loo"):
            raise ValueError(f"likelihood_power must be a non-negative number or 'loo'; got {power!r}")
        check_unlabelled(self.unlabelled, self.unlabelled_weight, self.n_init)
        if not isinstance(self.fit_prior, (bool, np.bool_)):
            raise ValueError(f"fit_prior must be True or False; got {self.fit_prior!r}")
        alpha = np.asarray(self.class_alpha)
        if alpha.dtype.kind not in "iuf" or not ((alpha >= 0) & (alpha <= LARGEST_ALPHA)).all():
            raise ValueError(
                f"class_alpha must be a non-negative number or array, at most {LARGEST_ALPHA:g}; "
                f"got {self.class_alpha!r}"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def _state(self) -> Learned:
        learned = self.__dict__.get("_learned")
        if learned is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments "
                "before using this estimator."
            )
        return learned

    @property
    def _fit_value(self) -> Fit:
        return self._state().fit

    @property
    def classes_(self) -> np.ndarray:
        """Class labels, sorted, (n_classes,)."""
        return self._fit_value.classes

    def _lengths(self, lengths: Any, n_rows: int, fit: Fit) -> Any:
        """Lengths of documents to draw; None for models without."""
        if lengths is not None:
            raise ValueError("lengths is for documents: this model has rows without a length")
        return None

    def _decode(self, x: Any, columns: Columns) -> Any:
        """Rows of the family in the form of X."""
        return x

    def _logistic_encoder(self) -> Any:
        """What X must pass through before the linear score, or None; raises where the route is not linear."""
        raise NotImplementedError

    def _commit(self, learned: Learned) -> Self:
        """Put a learned value in place."""
        raise NotImplementedError

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, before: Learned | None) -> Learned:
        """What is learned from a training set on top of what was learned before."""
        raise NotImplementedError

    def _summarise(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, known: Columns | None, part: bool = False
    ) -> tuple[Statistics, Any, Any]:
        """Statistics of the labelled rows; these rows encoded (x, codes, weights); and those without a label, or None.

        The classes are those given, or those of y; a part of a training set may have no weight at all.
        """
        raise NotImplementedError

    def _make(self, classes: np.ndarray, count: np.ndarray, stats: Any, columns: Columns, rows: Any = None) -> Learned:
        """The learned value from statistics; `rows` (x, codes, weights) are there after `fit` alone."""
        raise NotImplementedError

    def _join(self, a: Statistics, b: Statistics) -> Statistics:
        """Statistics of two sets of rows together, over the union of their classes and levels."""
        raise NotImplementedError
