"""Naive Bayes for categories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesgen.estimators import _input, _levels
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._options import check_choice, check_missing, concentration, own_prior
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families._all import Categorical
from bayesgen.families.base import column_name
from bayesgen.statistics import Columns

__all__ = ["CategoricalNB"]


class CategoricalNB(GenerativeBase):
    r"""Naive Bayes on categories, :math:`\theta_{kj} \sim \mathrm{Dirichlet}(\alpha)` over the levels of each column.

    Columns may be whole-number codes, strings, booleans, or categorical columns of pandas and polars.

    Parameters
    ----------
    alpha : float, array (n_features,) or (n_classes, n_features), or prior, default=1.0
        Dirichlet concentration (pseudo-count) of each level; random as in `BernoulliNB`.
    force_alpha : bool, default=True
        Accepted for scikit-learn's sake; alpha is always used as given.
    categories : "auto" or list of arrays, default="auto"
        Levels of each column. "auto": codes 0..max for whole numbers, the declared levels of categorical columns,
        the distinct values of others.
    min_categories : int or array (n_features,), optional
        Least number of levels of columns of codes.
    handle_unknown : {"predictive", "ignore", "error"}, default="predictive"
        A level not known at prediction: the predictive mass of one more level without rows; or left out like a
        missing cell; or an error.
    missing : {"marginalize", "error"}, default="marginalize"
        None and NaN cells are integrated out, or refused.
    inference, class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, category_count_, feature_log_prob_, n_categories_, categories_,
    alpha_, prior_, posterior_, statistics_, log_evidence_, log_evidence_parts_, n_features_in_,
    feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import CategoricalNB
    >>> model = CategoricalNB().fit([["sunny"], ["rainy"], ["rainy"]], ["play", "stay", "stay"])
    >>> model.predict([["rainy"]]).tolist()
    ['stay']

    References
    ----------
    Murphy 2012, sections 3.4-3.5.
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        categories: Any = "auto",
        min_categories: Any = None,
        handle_unknown: str = "predictive",
        missing: str = "marginalize",
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        likelihood_power: Any = 1.0,
        unlabelled: str | None = None,
        unlabelled_weight: float = 1.0,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.categories = categories
        self.min_categories = min_categories
        self.handle_unknown = handle_unknown
        self.missing = missing
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.likelihood_power = likelihood_power
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.n_init = n_init
        self.random_state = random_state

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        return _input.check_table(self, X, columns)

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        d = holder.n_features_in_
        names = getattr(holder, "feature_names_in_", None)
        declared = self._declared(d)
        least = self._least(d)
        if declared is not None:
            levels = declared
        else:
            before: Any = (None,) * d if known is None else known.levels
            levels = tuple(_levels.find(X, j, before[j], least[j], names, weights) for j in range(d))
        return Columns(d, names, levels)

    def _declared(self, d: int) -> tuple[np.ndarray, ...] | None:
        if isinstance(self.categories, str):
            if self.categories != "auto":
                raise ValueError(f"categories must be 'auto' or a list of levels per column; got {self.categories!r}")
            return None
        if not isinstance(self.categories, (list, tuple, np.ndarray)):
            raise ValueError(f"categories must be 'auto' or a list of levels per column; got {self.categories!r}")
        if len(self.categories) != d:
            raise ValueError(f"categories holds {len(self.categories)} lists of levels; X has {d} columns")
        return tuple(_levels.declare(c, j) for j, c in enumerate(self.categories))

    def _least(self, d: int) -> np.ndarray:
        if self.min_categories is None:
            return np.zeros(d, dtype=np.int64)
        least = np.asarray(self.min_categories)
        if least.dtype.kind not in "iu":
            raise ValueError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.shape not in ((), (d,)):
            raise ValueError(f"'min_categories' should have shape ({d},) when an array-like; got {least.shape}")
        if (least < 0).any() or (least > _levels.MOST_CODES).any():
            raise ValueError(
                f"'min_categories' must be between 0 and {_levels.MOST_CODES}; got {self.min_categories!r}"
            )
        return np.broadcast_to(least, (d,))

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> np.ndarray:
        check_missing(self.missing)
        check_choice("handle_unknown", self.handle_unknown, ("predictive", "ignore", "error"))
        unknown, advice = self.handle_unknown, "handle_unknown='predictive' or 'ignore' takes rows with it"
        if purpose == "fit" and isinstance(self.categories, str):
            unknown = "ignore"  # a level that nothing declares belongs to a row of weight zero
        elif purpose == "fit":
            unknown, advice = "error", "Add it to categories="
        elif purpose == "forget":
            unknown, advice = "error", "Only rows that were learned can be forgotten"
        return _levels.encode(X, columns, self.missing == "marginalize", unknown, advice)

    def _stated(self, columns: Columns, n_classes: int) -> Categorical:
        if isinstance(self.alpha, tuple):
            raise ValueError("alpha as a tuple (a, b) is for BernoulliNB; pass a list or array for one per column")
        n_levels = tuple(len(v) for v in columns.levels or ())
        return Categorical(concentration(self.alpha), None, n_levels, n_classes, columns.n_features)

    def _adapt(self, stats: Any, old: Columns, new: Columns) -> Any:
        return _levels.adapt(stats, old, new)

    def _join_columns(self, a: Columns, b: Columns) -> Columns:
        joined = super()._join_columns(a, b)
        pairs = zip(a.levels or (), b.levels or (), strict=True)
        return replace(joined, levels=tuple(_levels.union(p, q, j, joined.names) for j, (p, q) in enumerate(pairs)))

    def _decode(self, x: np.ndarray, columns: Columns) -> np.ndarray:
        levels = columns.levels or ()
        if all(v.dtype.kind in "iu" and len(v) for v in levels):
            return np.column_stack([v[x[:, j]] for j, v in enumerate(levels)])
        out = np.full(x.shape, None, dtype=object)
        for j, v in enumerate(levels):
            if len(v):
                out[:, j] = v[x[:, j]].astype(object)
        return out

    def _own_prior(self) -> Any:
        return own_prior(self.alpha)

    @property
    def alpha_(self) -> Any:
        """The concentration in use: a number, or an array that broadcasts to (n_classes, n_features).

        Where it is random, its posterior mean.
        """
        return self._concentration("alpha")

    @property
    def categories_(self) -> list[np.ndarray]:
        """Levels of each column, in the order of the probabilities."""
        return list(self._state().columns.levels or ())

    @property
    def n_categories_(self) -> np.ndarray:
        """Number of levels of each column, (n_features,)."""
        return np.array([len(v) for v in self.categories_], dtype=np.int64)

    @property
    def category_count_(self) -> list[np.ndarray]:
        """Weighted level counts of each column, (n_classes, n_categories) each."""
        fit = self._fit_value
        return fit.features.stated._columns(fit.features.stats.level_count)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """The route's log level probabilities of each column, (n_classes, n_categories) each."""
        fit = self._fit_value
        return fit.features.stated._columns(fit.features.params.log_prob)

    def _logistic_encoder(self) -> Any:
        from sklearn.preprocessing import OneHotEncoder

        levels = self.categories_
        empty = next((j for j, v in enumerate(levels) if not len(v)), None)
        if empty is not None:
            name = column_name(empty, self._state().columns.names)
            raise UndefinedNumberError(
                f"{name} has no levels, as no row has a value in it, so there is nothing to encode: drop the column, "
                "or declare its levels with categories="
            )
        most = max(len(v) for v in levels)
        shown = np.column_stack([np.resize(v, most).astype(object) for v in levels])
        if all(v.dtype.kind in "iuf" for v in levels):
            shown = shown.astype(float)
        return OneHotEncoder(categories=[v.astype(shown.dtype) for v in levels]).fit(shown)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
