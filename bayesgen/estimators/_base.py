"""The scikit-learn shell around a fit: input in, predictions and attributes out.

The estimator holds constructor parameters and one value, what it has learned. `fit`, `partial_fit`, `merge`
and `forget` build a new value and put it in place at the end, so that a failure changes nothing;
prediction only reads it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from bayesgen._values import python_value
from bayesgen.class_prior import ClassPrior
from bayesgen.estimators import _input, _labels
from bayesgen.estimators._batches import Batches
from bayesgen.estimators._explain import Explaining
from bayesgen.estimators._novelty import Novelty
from bayesgen.estimators._parts import NO_ROWS, summarise
from bayesgen.estimators._posterior import Posterior
from bayesgen.estimators._prediction import Prediction
from bayesgen.estimators._program import Program
from bayesgen.estimators._shell import Learned, Shell, new_seed
from bayesgen.estimators._storing import Storing
from bayesgen.estimators._unlabelled import (
    Unlabelled,
    encode_rows,
    learn_unlabelled,
    refuse_unlabelled,
    split_rows,
)
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Labels, Unlearned, class_count, column_name, register
from bayesgen.families.normal_statistics import sum_patterns
from bayesgen.fit import SAMPLED, Fit, read_only
from bayesgen.learning import LearnedPrior
from bayesgen.statistics import Columns, Statistics

if TYPE_CHECKING:
    from bayesgen.nuts import Diagnostics  # importing it imports JAX
from bayesgen.statistics_checks import check_statistics


class GenerativeBase(
    Prediction, Explaining, Novelty, Posterior, Program, Storing, Unlabelled, Batches, ClassifierMixin, Shell
):
    """Base of all estimators: learning, merging, forgetting, and what was learned."""

    # ------------------------------------------------------------------ learning

    def _given_class_prior(self) -> tuple[Any, str]:
        return self.class_prior, "class_prior"

    def _class_prior_value(self, n_classes: int) -> ClassPrior:
        given, name = self._given_class_prior()
        if callable(given):
            return ClassPrior(1.0, None, n_classes, given)
        if given is not None:
            fixed: Any = _labels.check_class_prior(given, n_classes, name)
        else:
            fixed = None if self.fit_prior else np.full(n_classes, 1.0 / n_classes)
        alpha = np.array(self.class_alpha, dtype=float)
        if alpha.shape not in ((), (n_classes,)):
            raise ValueError(
                f"class_alpha has shape {alpha.shape}; expected a number or one for each of the {n_classes} classes"
            )
        return ClassPrior(alpha, fixed, n_classes)

    def _make(self, classes: np.ndarray, count: np.ndarray, stats: Any, columns: Columns, rows: Any = None) -> Learned:
        """The learned value from statistics; `rows` (x, codes, weights) are there after `fit` alone."""
        stated = self._stated(columns, len(classes))
        read_only((classes, count, stats))
        blocks = None if columns.blocks is None else [b[2].names for b in columns.blocks]
        class_prior = self._class_prior_value(len(classes))
        if rows is not None:
            rows = (class_prior, *rows)
        features = self._features(stated, stats, columns, self.random_state, rows)
        route = "exact" if self._route in SAMPLED else self._route  # class probabilities keep their closed form
        sampled = self._sampled_classes(class_prior, count)
        fit = Fit(class_prior, count, route, features, classes, columns.names, blocks, sampled)
        return Learned(columns, self._powered(fit, rows))

    def _powered(self, fit: Fit, rows: Any) -> Fit:
        """The fit with its likelihood power, as given or learned from the rows."""
        if self.likelihood_power != "loo":
            return fit if self.likelihood_power == 1.0 else replace(fit, power=float(self.likelihood_power))
        if rows is None:
            raise ValueError(NO_ROWS)
        fit.check_predictive()
        _, x, codes, weights = rows
        return fit.with_best_power(x, Labels(codes, weights))

    def _sampled_classes(self, class_prior: ClassPrior, count: np.ndarray) -> Any:
        """Draws of class probabilities whose prior is a function; None if they have a closed form."""
        if class_prior.function is None:
            return None
        if self._route not in SAMPLED:
            raise ValueError(
                f"a class_prior that is a function has no closed form, and inference={self.inference!r} needs one: use "
                "inference='nuts' (or 'importance')"
            )
        from bayesgen.sampled import SampledClasses

        check_class_function(class_prior)
        options = self._sampler()
        return SampledClasses(class_prior, count, getattr(options, "fallback", options), new_seed(self.random_state))

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, before: Learned | None) -> Learned:
        """See `Shell._learn`."""
        self._check_params()
        known = None if before is None else before.columns
        new, rows, without = summarise(self, X, y, sample_weight, classes, known)
        if before is not None:
            new = self._join(_statistics(before), new)
        # Without `classes` this is `fit`: there will be no other batch.
        kept = rows if classes is None else None
        learned = self._make(new.classes, new.class_count, new.features, new.columns, kept)
        return learned if without is None else learn_unlabelled(self, learned, (rows[0], Labels(*rows[1:])), without)

    def _summarise(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, known: Columns | None, part: bool = False
    ) -> tuple[Statistics, Any, Any]:
        """See `Shell._summarise`."""
        X, holder = self._read(X, known)
        y, known_label = _labels.split_labels(y, self.unlabelled is not None, part or classes is not None)
        _labels.check_rows(X, known_label)
        weights = _labels.check_weights(sample_weight, known_label, may_vanish=part)
        columns = self._columns(X, holder, known, weights)
        x = self._encode(X, columns, purpose="fit")
        classes = _labels.distinct_labels(y) if classes is None else classes
        codes = encode_rows(y, known_label, classes)
        stated = self._stated(columns, len(classes))
        x, codes, weights = _input.drop_weightless(x, codes, weights)
        x, codes, weights, without = split_rows(x, codes, weights)
        labels = Labels(codes, weights)
        stats = self._stats(stated, x, labels, columns)
        count = class_count(labels, len(classes))
        return Statistics(classes, count, stats, columns), (x, codes, weights), without

    def _commit(self, learned: Learned) -> Self:
        self._learned = learned
        self.n_features_in_ = learned.columns.n_features
        if learned.columns.names is not None:
            self.feature_names_in_ = learned.columns.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a training set, forgetting any earlier one.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Training rows. Those of a dask array or data frame, a memory map or a sharded `jax.Array` are summed up part
            by part, where they are. Arrays of other libraries (JAX, PyTorch, ...) are read as NumPy arrays.
        y : array (n_samples,)
            Class labels; with dask rows also a dask array or series of the same blocks. With ``unlabelled="em"``, -1
            (among whole numbers), NaN or None where it is not known.
        sample_weight : array (n_samples,), optional
            Non-negative weights: powers of the likelihood. Whole weights equal repeated rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For input that the model cannot take; the message names the column or the class.
        UndefinedNumberError
            If the route's parameters do not exist (such as a singular maximum-likelihood covariance).
        """
        learned = self._learn(X, y, sample_weight, None, None)
        learned.fit.check_predictive()
        return self._commit(learned)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch; the result does not depend on how the rows were cut into batches.

        Parameters
        ----------
        X, y : see `fit`
        classes : array (n_classes,), optional
            All class labels; needed at the first call, when batches may lack some of them.
        sample_weight : see `fit`

        Returns
        -------
        self
        """
        if isinstance(self.likelihood_power, str) and self.likelihood_power == "loo":
            raise ValueError(NO_ROWS)
        refuse_unlabelled(self, "partial_fit")
        before = getattr(self, "_learned", None)
        if before is None and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: the list of all class labels")
        if classes is not None:
            given = np.unique(_labels.plain_labels(classes, "classes"))
            if not given.size:
                raise ValueError("classes is empty: list the class labels")
            if before is not None and not np.array_equal(given, before.fit.classes):
                raise ValueError(
                    f"`classes={given.tolist()}` is not the same as on last call to partial_fit, was: "
                    f"{before.fit.classes.tolist()}"
                )
        known = given if before is None else before.fit.classes
        learned = self._learn(X, y, sample_weight, known, before)
        return self._commit(learned)

    def merge(self, other: GenerativeBase | Statistics) -> Self:
        """Add what another estimator (or its ``statistics_``) has learned from other rows.

        Parameters
        ----------
        other : estimator of the same type, or Statistics
            Left as it is. Its classes and levels may differ; the union is used.

        Returns
        -------
        self
            Equal to one fit on the rows of both.
        """
        refuse_unlabelled(self, "merge")
        refuse_unlabelled(other, "merge")
        mine = self.statistics_
        theirs = other if isinstance(other, Statistics) else getattr(other, "statistics_", None)
        if not isinstance(theirs, Statistics):
            found = f"{type(other).__name__}{' that is not fitted' if isinstance(other, GenerativeBase) else ''}"
            raise ValueError(f"merge takes a fitted estimator or its statistics_; got a {found}")
        if isinstance(other, GenerativeBase) and type(other) is not type(self):
            raise ValueError(f"cannot merge {type(other).__name__} into {type(self).__name__}: different models")
        self._check_statistics(theirs)
        joined = self._join(mine, theirs)
        return self._commit(self._make(joined.classes, joined.class_count, joined.features, joined.columns))

    def _join(self, a: Statistics, b: Statistics) -> Statistics:
        """See `Shell._join`."""
        columns = a.columns if a.columns is b.columns else self._join_columns(a.columns, b.columns)
        classes = a.classes if a.classes is b.classes else _labels.join_classes(a.classes, b.classes)
        stated = self._stated(columns, len(classes))
        moved = []
        for part in (a, b):
            stats = self._adapt(part.features, part.columns, columns)
            count = part.class_count
            if len(part.classes) < len(classes):
                positions = _labels.encode_labels(part.classes, classes)
                count = np.zeros(len(classes))
                count[positions] = part.class_count
                stats = stated.reclass(stats, positions, len(classes))
            moved.append((stats, count))
        (first, n_a), (second, n_b) = moved
        return Statistics(classes, n_a + n_b, stated.merge(first, second), columns)

    def _check_statistics(self, s: Statistics, definite: bool = True) -> None:
        """Raise unless the statistics are of this model, and can be those of rows; see `check_statistics`."""
        check_statistics(s, getattr(self, "missing", None) == "error", definite)
        k = len(s.classes)
        try:
            expected = self._stated(s.columns, k).stats_shapes()
            whole = sum_patterns(s.features)
            same = expected is None or _shaped(whole, expected)
        except (TypeError, AttributeError, IndexError):
            same = False
        same = same and all((np.isfinite(n) & (n >= 0)).all() for n, _ in _counts(whole, whole))
        if not same:
            kind = "of blocks" if type(s.features) is tuple else type(s.features).__name__
            raise ValueError(
                f"these statistics ({kind}) are of another model than this {type(self).__name__}, or hold counts that "
                "are negative or NaN: from_statistics and merge take those of an estimator of the same type and options"
            )

    def _join_columns(self, a: Columns, b: Columns) -> Columns:
        if a.n_features != b.n_features:
            names = "" if a.names is None else f" ({', '.join(map(repr, map(str, a.names)))})"
            raise ValueError(
                f"cannot merge: the other model has {b.n_features} columns, this one {a.n_features}{names}; both must "
                "have learned the same columns"
            )
        if a.names is not None and b.names is not None and list(a.names) != list(b.names):
            raise ValueError(f"cannot merge: the columns are {list(b.names)} and {list(a.names)}")
        return a if a.names is not None else replace(a, names=b.names)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learned, as if they had never been seen.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
            Rows, labels and weights as they were learned.

        Returns
        -------
        self
            Exact for whole counts; Gaussian moments lose digits when little is left.
        """
        refuse_unlabelled(self, "forget")
        learned = self._state()
        fit, columns = learned.fit, learned.columns
        X, _ = self._read(X, columns)
        y = _labels.check_labels(y)
        _labels.check_rows(X, y)
        weights = _labels.check_weights(sample_weight, y)
        x = self._encode(X, columns, purpose="forget")
        x, codes, weights = _input.drop_weightless(x, _labels.encode_labels(y, fit.classes), weights)
        labels = Labels(codes, weights)
        stated = fit.features.stated
        leaving = self._stats(stated, x, labels, columns)
        count = class_count(labels, len(fit.classes))
        _refuse_more(fit.count, count, fit.classes)
        rest = _without(learned, leaving)
        return self._commit(self._make(fit.classes, np.maximum(fit.count - count, 0.0), rest, columns))

    # ------------------------------------------------------------------ what was learned

    @property
    def class_count_(self) -> np.ndarray:
        """Weight of the rows of each class, (n_classes,)."""
        return self._fit_value.count

    @property
    def class_log_prior_(self) -> np.ndarray:
        """The route's log class probabilities, (n_classes,)."""
        return self._fit_value.log_class

    @property
    def prior_(self) -> Any:
        """The prior with every hyperparameter resolved."""
        register()
        return self._fit_value.features.prior

    def _concentration(self, field: str, site: str | None = None) -> Any:
        """A concentration of the prior, or the posterior mean of a random one."""
        features = self._fit_value.features
        if features.learned is not None:
            value = features.learned.value
            return value.item() if value.size == 1 else value
        if getattr(features, "own", None) is None:
            return getattr(features.prior, field)
        values = features.draws.sites
        site = site or field
        if site not in values:
            return getattr(features.base, field)
        mean = values[site].mean(axis=(0, 1))
        return mean.item() if mean.ndim == 0 else mean

    @property
    def learned_(self) -> LearnedPrior:
        """`bayesgen.learning.LearnedPrior` of a prior learned by evidence: value, standard error, evidence curve."""
        learned: LearnedPrior | None = self._fit_value.features.learned
        if learned is None:
            raise UndefinedNumberError("nothing was learned by evidence: that is alpha='evidence' or prior='evidence'")
        return learned

    @property
    def posterior_(self) -> Any:
        """The conjugate posterior: a family value of `bayesgen.families`, of the prior's type."""
        register()
        return self._fit_value.features.posterior

    def _sampled(self) -> Any:
        """The sampled part of the fit, for what only such a part has."""
        features = self._fit_value.features
        if not hasattr(features, "draws"):
            raise UndefinedNumberError(
                f"inference={self.inference!r} makes no draws at fit, as 'nuts' and 'importance' do; a mixed model has "
                "those of its blocks_"
            )
        return features

    @property
    def diagnostics_(self) -> Diagnostics | None:
        """`bayesgen.nuts.Diagnostics` of the NUTS run (divergences, R-hat, effective sizes); None after importance."""
        found: Diagnostics | None = self._sampled().diagnostics
        return found

    @property
    def importance_khat_(self) -> float | None:
        """Pareto k-hat of the importance weights: reliable below 0.7; None where NUTS was used."""
        return self._sampled().khat

    @property
    def importance_ess_(self) -> float | None:
        """Effective number of independent draws behind the importance weights; None where NUTS was used."""
        return self._sampled().importance_ess

    @property
    def statistics_(self) -> Statistics:
        """Sufficient statistics; see `from_statistics` and `merge`."""
        return _statistics(self._state())

    def from_statistics(self, statistics: Statistics) -> Self:
        """Learn from sufficient statistics instead of rows.

        Parameters
        ----------
        statistics : Statistics
            Such as ``statistics_`` of another estimator.

        Returns
        -------
        self
            Equal to the estimator fitted on the rows.
        """
        self._check_params()
        refuse_unlabelled(self, "from_statistics")
        if not isinstance(statistics, Statistics):
            raise ValueError(
                "statistics must be a bayesgen Statistics value, such as statistics_ of a fitted estimator; got a "
                f"{type(statistics).__name__}"
            )
        s = statistics
        self._check_statistics(s)
        classes, count, features = copy.deepcopy((s.classes, s.class_count, s.features))
        return self._commit(self._make(classes, count, features, s.columns))

    @property
    def log_evidence_parts_(self) -> dict[str, float]:
        """Logs of p(y) and of p(X | y), exact, as ``{"y": ..., "x_given_y": ...}``, in nats."""
        return self._fit_value.log_evidence_parts()

    @property
    def log_evidence_(self) -> float:
        """The exact log evidence, ln p(X, y), of the labelled rows under the prior, in nats.

        With data-scaled default priors of the Gaussian models the data are used twice; state the prior to
        compare models by it.
        """
        return sum(self.log_evidence_parts_.values())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self, "missing", "error") == "marginalize"
        return tags


def _statistics(learned: Learned) -> Statistics:
    fit = learned.fit
    return Statistics(fit.classes, fit.count, fit.features.stats, learned.columns)


def _without(learned: Learned, leaving: Any) -> Any:
    """Statistics of the features without those of rows that were learned."""
    fit, columns = learned.fit, learned.columns
    blocks: Any = columns.blocks or ((None, range(columns.n_features), columns),)
    rest = []
    parts = fit.features.parts if columns.blocks else (fit.features,)
    for (_, index, own), part, gone in zip(blocks, parts, leaving if columns.blocks else (leaving,), strict=True):
        names = [column_name(int(j), columns.names) for j in index]
        for whole, less in _counts(sum_patterns(part.stats), sum_patterns(gone)):
            _refuse_more(whole, less, fit.classes, names if own.levels is None else None)
        try:
            rest.append(part.stated.remove(part.stats, gone))
        except Unlearned as error:
            raise ValueError(
                f"forget: these rows were not all learned, they vary more in {names[error.column]} than all that were"
            ) from None
    return tuple(rest) if columns.blocks else rest[0]


def _refuse_more(whole: np.ndarray, leaving: np.ndarray, classes: np.ndarray, names: Any = None) -> None:
    """Raise if more of a count, with the class axis first, would leave than there is."""
    more = leaving > whole * (1 + 1e-9) + 1e-9
    if not more.any():
        return
    at = tuple(np.argwhere(more)[0])
    where = f"class {python_value(classes[at[0]])!r}"
    if names is not None and more.ndim == 2:
        where = f"{names[at[1]]} of {where}"
    raise ValueError(
        f"forget: these rows were not all learned, or not with these labels and weights: a count of {leaving[at]:g} "
        f"would leave {where}, which has {whole[at]:g}"
    )


def check_class_function(class_prior: ClassPrior) -> None:
    """Raise unless a class_prior function gives probabilities (K,), at one draw of its sites."""
    import jax
    from numpyro.handlers import seed

    with jax.enable_x64(True):
        prob = np.asarray(seed(class_prior.function, 0)(class_prior.n_classes), dtype=float)
    k = class_prior.n_classes
    if prob.shape != (k,) or not (prob >= 0).all() or abs(prob.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"class_prior must return {k} probabilities that sum to 1, of shape ({k},); it returned {prob.tolist()}"
        )


def _counts(stats: Any, leaving: Any) -> Any:
    """Pairs of count arrays in two statistics."""
    if not hasattr(stats, "_fields"):
        for s, part in zip(stats, leaving, strict=True):
            yield from _counts(s, part)
        return
    for name in stats._fields:
        if name not in ("mean", "mean_low", "scatter", "log_coefficient", "log_base"):
            yield getattr(stats, name), getattr(leaving, name)


def _is_shape(value: Any) -> bool:
    return type(value) is tuple and all(isinstance(size, int) for size in value)


def _shaped(stats: Any, expected: Any) -> bool:
    """Whether statistics have the types and shapes of `Family.stats_shapes`."""
    if _is_shape(expected):
        return bool(np.shape(stats) == expected)
    alike = type(stats) is type(expected) and len(stats) == len(expected)
    return alike and all(_shaped(s, e) for s, e in zip(stats, expected, strict=True))
