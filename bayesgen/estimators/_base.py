"""The scikit-learn shell around a fit: input in, predictions and attributes out.

The estimator holds constructor parameters and one value, what it has learned. `fit`, `partial_fit`, `merge`
and `forget` build a new value and put it in place at the end, so that a failure changes nothing;
prediction only reads it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length

from bayesgen._kernels import row_blocks
from bayesgen._math import logsumexp, safe_log
from bayesgen.class_prior import ClassPrior
from bayesgen.estimators import _input
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning
from bayesgen.families.base import Family, Labels, class_count
from bayesgen.fit import ROUTES, FeatureFit, Fit, LooResult
from bayesgen.statistics import Columns, Statistics

INTERVAL_CELLS = 1 << 24  # numbers held at once for quantiles over draws


@dataclass(frozen=True, eq=False)
class Learned:
    """What an estimator has learned: the columns it saw, and the fit."""

    columns: Columns
    fit: Fit


class GenerativeBase(ClassifierMixin, BaseEstimator):
    """Base of all estimators; see `bayesgen.estimators`.

    Subclasses say how X becomes data of a family (`_read`, `_encode`), which family it is (`_stated`), and
    which attributes the parameters have.
    """

    _routes: ClassVar[tuple[str, ...]] = tuple(r for r in ROUTES if r != "unbiased")

    inference: str
    class_alpha: Any
    class_prior: Any
    fit_prior: bool
    random_state: Any

    # ------------------------------------------------------------------ hooks for subclasses

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        """Checked X, and the stand-in holding `n_features_in_` and names; columns are None at fit."""
        return _input.check_numeric(self, X, columns)

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        """The columns of a training set with row weights, extending those already known."""
        if known is not None:
            return known
        return Columns(holder.n_features_in_, getattr(holder, "feature_names_in_", None))

    def _encode(self, X: Any, columns: Columns, fitting: bool = False) -> Any:
        """Checked X in the family's form."""
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

    def _features(self, stated: Any, stats: Any) -> Any:
        """The feature part of a fit."""
        return FeatureFit(stated, stats, self.inference)

    def _check_params(self) -> None:
        if self.inference not in self._routes:
            hint = ""
            if self.inference == "unbiased":
                hint = "; 'unbiased' is for the Gaussian estimators"
            raise ValueError(f"inference must be one of {list(self._routes)}; got {self.inference!r}{hint}")
        alpha = np.asarray(self.class_alpha)
        if alpha.dtype.kind not in "iuf" or not np.all(np.isfinite(alpha)) or not np.all(alpha >= 0):
            raise ValueError(f"class_alpha must be non-negative; got {self.class_alpha!r}")

    # ------------------------------------------------------------------ learning

    def _given_class_prior(self) -> tuple[Any, str]:
        return self.class_prior, "class_prior"

    def _class_prior_value(self, n_classes: int) -> ClassPrior:
        given, name = self._given_class_prior()
        if given is not None:
            fixed = _input.check_class_prior(given, n_classes, name)
        else:
            fixed = None if self.fit_prior else np.full(n_classes, 1.0 / n_classes)
        return ClassPrior(self.class_alpha, fixed, n_classes)

    def _make(self, classes: np.ndarray, count: np.ndarray, stats: Any, columns: Columns) -> Learned:
        """The learned value from statistics."""
        stated = self._stated(columns, len(classes))
        blocks = None if columns.blocks is None else [b[2].names for b in columns.blocks]
        class_prior = self._class_prior_value(len(classes))
        features = self._features(stated, stats)
        return Learned(
            columns, Fit(class_prior, count, self.inference, features, classes, columns.names, blocks)
        )

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, before: Learned | None) -> tuple[Learned, Any]:
        """What is learned from a training set on top of what was learned before, and the stand-in."""
        self._check_params()
        known = None if before is None else before.columns
        X, holder = self._read(X, known)
        y = _input.check_labels(y)
        check_consistent_length(X, y)
        weights = _input.check_weights(sample_weight, y)
        columns = self._columns(X, holder, known, weights)
        x = self._encode(X, columns, fitting=True)
        classes = np.unique(y) if classes is None else classes
        codes = _input.encode_labels(y, classes)
        stated = self._stated(columns, len(classes))
        x, codes, weights = _input.drop_weightless(x, codes, weights)
        labels = Labels(codes, weights)
        stats = self._stats(stated, x, labels, columns)
        count = class_count(labels, len(classes))
        if before is not None:
            old = self._adapt(before.fit.features.stats, before.columns, columns)
            stats = stated.merge(old, stats)
            count = before.fit.count + count
        return self._make(classes, count, stats, columns), holder

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
            Training rows.
        y : array (n_samples,)
            Class labels.
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
        learned, _ = self._learn(X, y, sample_weight, None, None)
        learned.fit.check_predictive()
        return self._commit(learned)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch; the result does not depend on how the rows were cut into batches.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array (n_classes,), optional
            All class labels; needed at the first call, when batches may lack some of them.

        Returns
        -------
        self
        """
        before = getattr(self, "_learned", None)
        if before is None and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: the list of all class labels")
        if classes is not None:
            given = np.unique(_input.plain_labels(classes))
            if before is not None and not np.array_equal(given, before.fit.classes):
                raise ValueError(
                    f"`classes={given.tolist()}` is not the same as on last call to partial_fit, was: "
                    f"{before.fit.classes.tolist()}"
                )
        known = given if before is None else before.fit.classes
        learned, _ = self._learn(X, y, sample_weight, known, before)
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
        mine = self.statistics_
        theirs = other if isinstance(other, Statistics) else getattr(other, "statistics_", None)
        if not isinstance(theirs, Statistics):
            raise ValueError(f"merge takes a fitted estimator or its statistics_; got {type(other).__name__}")
        if isinstance(other, GenerativeBase) and type(other) is not type(self):
            raise ValueError(f"cannot merge {type(other).__name__} into {type(self).__name__}: different models")
        columns = self._join_columns(mine.columns, theirs.columns)
        classes = np.unique(np.concatenate([mine.classes, theirs.classes]))
        stated = self._stated(columns, len(classes))
        moved = []
        for part in (mine, theirs):
            stats = self._adapt(part.features, part.columns, columns)
            positions = _input.encode_labels(part.classes, classes)
            count = np.zeros(len(classes))
            count[positions] = part.class_count
            moved.append((stated.reclass(stats, positions, len(classes)), count))
        (a, n_a), (b, n_b) = moved
        self._check_same_model(a, b)
        return self._commit(self._make(classes, n_a + n_b, stated.merge(a, b), columns))

    def _check_same_model(self, a: Any, b: Any) -> None:
        if type(a) is not type(b) or [np.shape(p) for p in a] != [np.shape(p) for p in b]:
            raise ValueError("cannot merge: the statistics are of different models")

    def _join_columns(self, a: Columns, b: Columns) -> Columns:
        if a.n_features != b.n_features:
            raise ValueError(f"cannot merge: {b.n_features} columns into {a.n_features}")
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
        learned = self._state()
        fit, columns = learned.fit, learned.columns
        X, _ = self._read(X, columns)
        y = _input.check_labels(y)
        check_consistent_length(X, y)
        weights = _input.check_weights(sample_weight, y)
        x = self._encode(X, columns, fitting=True)
        x, codes, weights = _input.drop_weightless(x, _input.encode_labels(y, fit.classes), weights)
        labels = Labels(codes, weights)
        stated = fit.features.stated
        leaving = self._stats(stated, x, labels, columns)
        count = class_count(labels, len(fit.classes))
        self._check_contained(fit.count, count, fit.features.stats, leaving)
        rest = stated.remove(fit.features.stats, leaving)
        return self._commit(self._make(fit.classes, np.maximum(fit.count - count, 0.0), rest, columns))

    def _check_contained(self, n: np.ndarray, n_leaving: np.ndarray, stats: Any, leaving: Any) -> None:
        for whole, part in ((n, n_leaving), *_counts(stats, leaving)):
            if (part > whole * (1 + 1e-9) + 1e-9).any():
                raise ValueError("forget: these rows were not all learned (a count would become negative)")

    # ------------------------------------------------------------------ what was learned

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
        return self._fit_value.features.prior

    @property
    def posterior_(self) -> Any:
        """The conjugate posterior: a family value of `bayesgen.families`, of the prior's type."""
        return self._fit_value.features.posterior

    @property
    def statistics_(self) -> Statistics:
        """Sufficient statistics; see `from_statistics` and `merge`."""
        learned = self._state()
        fit = learned.fit
        return Statistics(fit.classes, fit.count, fit.features.stats, learned.columns)

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
        if not isinstance(statistics, Statistics):
            raise ValueError(f"statistics must be a bayesgen Statistics value; got {type(statistics).__name__}")
        s = statistics
        return self._commit(self._make(s.classes, s.class_count, s.features, s.columns))

    @property
    def log_evidence_parts_(self) -> dict[str, float]:
        """ln p(y) and ln p(X | y), exact, as ``{"y": ..., "x_given_y": ...}``, in nats."""
        return self._fit_value.log_evidence_parts()

    @property
    def log_evidence_(self) -> float:
        """ln p(X, y): exact log evidence of the labelled rows under the prior, in nats.

        With data-scaled default priors of the Gaussian models the data are used twice; state the prior to
        compare models by it.
        """
        return sum(self.log_evidence_parts_.values())

    # ------------------------------------------------------------------ prediction

    def _rows(self, X: Any) -> Any:
        columns = self._state().columns
        X, _ = self._read(X, columns)
        return self._encode(X, columns)

    def _log_class(self, class_prior: Any) -> np.ndarray | None:
        if class_prior is None:
            return None
        return safe_log(_input.check_class_prior(class_prior, len(self.classes_)))

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """ln p(x, y) of each row and class, (n_samples, n_classes), by the estimator's route."""
        fit = self._fit_value
        return fit.log_joint(self._rows(X))

    def predict_log_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """ln p(y | x), (n_samples, n_classes); see `predict_proba`."""
        fit = self._fit_value
        return normalise(fit.log_joint(self._rows(X), self._log_class(class_prior)))

    def predict_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """p(y | x) of each row and class.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        class_prior : array (n_classes,), optional
            Class probabilities to use in place of the learned ones (prior shift without refitting).

        Returns
        -------
        ndarray (n_samples, n_classes)
            With ``inference="exact"``, p(x, y) has its parameters integrated out. A row that no class can
            generate has NaN, with a `ZeroProbabilityWarning`.
        """
        return np.exp(self.predict_log_proba(X, class_prior))

    def predict(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """The most probable class of each row, (n_samples,); ties go to the first class."""
        fit = self._fit_value
        log_class = self._log_class(class_prior)
        joint = fit.log_joint(self._rows(X), log_class)
        codes = joint.argmax(axis=1)
        impossible = warn_impossible(joint)
        codes[impossible] = (fit.log_class if log_class is None else log_class).argmax()
        return fit.classes[codes]

    def score_samples(self, X: Any) -> np.ndarray:
        """ln p(x) of each row, (n_samples,): low values are rows unlike the training set."""
        return logsumexp(self.predict_joint_log_proba(X))

    def sample_proba(self, X: Any, n_draws: int = 1000, random_state: Any = None) -> np.ndarray:
        """p(y | x, parameters) for draws of the parameters from their posterior.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        n_draws : int
        random_state : int, Generator, RandomState or None
            None: the estimator's own.

        Returns
        -------
        ndarray (n_draws, n_samples, n_classes)
            Its mean over draws is not ``predict_proba``, which averages the joint p(x, y) first.
        """
        fit = self._fit_value
        pieces = fit.draw_log_joint(self._rows(X), n_draws, self._seed(random_state))
        return np.concatenate([np.exp(normalise(p)) for p in pieces])

    def predict_proba_interval(
        self, X: Any, prob: float = 0.94, n_draws: int = 1000, random_state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Equal-tailed interval of p(y | x, parameters) under the posterior of the parameters.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        prob : float
            Posterior probability of the interval.
        n_draws : int
            Independent posterior draws. The ends are sample quantiles: at 1000 draws and 94 %, each has a
            Monte Carlo standard error of about 0.0054 in its tail probability (0.03).
        random_state : int, Generator, RandomState or None

        Returns
        -------
        lower, upper : ndarray (n_samples, n_classes)
        """
        if not 0 < prob < 1:
            raise ValueError(f"prob must be between 0 and 1; got {prob!r}")
        fit = self._fit_value
        x = self._rows(X)
        n = x[0].shape[0] if isinstance(x, tuple) else x.shape[0]
        seed = _input_seed(self._seed(random_state))
        shape = (n, len(fit.classes))
        lower, upper = np.empty(shape), np.empty(shape)
        for block in row_blocks(n, n_draws * shape[1], INTERVAL_CELLS):
            part = tuple(p[block] for p in x) if isinstance(x, tuple) else x[block]
            draws = fit.draw_log_joint(part, n_draws, np.random.default_rng(seed))
            prob_draws = np.concatenate([np.exp(normalise(p)) for p in draws])
            lower[block], upper[block] = np.quantile(prob_draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        return lower, upper

    def loo(self, X: Any, y: Any, sample_weight: Any = None) -> LooResult:
        """Exact leave-one-out under the full conjugate posterior, at the cost of one prediction.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
            Rows that were learned (all of them, or some).

        Returns
        -------
        LooResult
            ``elpd_joint``, ``elpd_conditional`` and their parts. The prior is held at its values from the full
            fit.
        """
        learned = self._state()
        fit = learned.fit
        x = self._rows(X)
        y = _input.check_labels(y)
        check_consistent_length(X, y)
        w = _input.check_weights(sample_weight, y)
        labels = Labels(_input.encode_labels(y, fit.classes), w)
        if (class_count(labels, len(fit.classes)) > fit.count * (1 + 1e-9)).any():
            raise ValueError("loo is for rows that were learned: there are more rows in a class than at fit")
        out = fit.loo(x, labels)
        gone = int(np.isnan(out.joint).sum())
        if gone:
            warnings.warn(
                f"{gone} of {len(y)} rows have no leave-one-out density (the posterior without them is improper, or "
                "no class can generate them): NaN",
                ZeroProbabilityWarning,
                stacklevel=2,
            )
        return out

    def _seed(self, random_state: Any) -> Any:
        return self.random_state if random_state is None else random_state

    # ------------------------------------------------------------------ the program

    def _program_data(self, X: Any, columns: Columns) -> Any:
        """X as arrays for the NumPyro program."""
        import jax.numpy as jnp

        from bayesgen.families.base import dense

        x = self._encode(self._read(X, columns)[0], columns)
        return tuple(jnp.asarray(dense(p)) for p in x) if isinstance(x, tuple) else jnp.asarray(dense(x))

    def model(self, X: Any = None, y: Any = None, n_rows: int | None = None, lengths: Any = None) -> Any:
        """The generative program of this estimator, for NumPyro's handlers and inference.

        Sites: ``class_prob``, the parameters, and in the plate ``row`` the labels ``y`` and the rows ``x``.

        Parameters
        ----------
        X : array or data frame, or None to draw rows
        y : labels as in `fit`, or None to draw them
        n_rows : int, optional
            Number of rows to draw when neither X nor y says it (default 1).
        lengths : int or array (n_rows,), optional
            Lengths of the documents to draw; default: the mean length seen.

        Returns
        -------
        x, y : the data in the family's form, and class codes.

        Notes
        -----
        It runs at the caller's precision: ``with jax.enable_x64(True)`` gives the library's own. Hyperparameters
        are those of the fit; an estimator that is not fitted takes them from X and y.
        """
        import jax

        if "_learned" in self.__dict__:
            learned = self._state()
        elif X is not None and y is not None:
            learned, _ = self._learn(X, y, None, None, None)
        else:
            learned = self._state()
        fit = learned.fit
        x = X
        if X is not None and not isinstance(X, jax.core.Tracer):
            x = self._program_data(X, learned.columns)
        if y is not None and not isinstance(y, jax.core.Tracer):
            y = _input.encode_labels(_input.plain_labels(y), fit.classes)
        if n_rows is None:
            shown = y if x is None else (x[0] if isinstance(x, tuple) else x)
            n_rows = 1 if shown is None else shown.shape[0]
        if x is None:
            lengths = self._lengths(lengths, n_rows, fit)
        from bayesgen.joint import program

        return program(fit.class_prior, fit.features.prior, x, y, n_rows, lengths)

    def _lengths(self, lengths: Any, n_rows: int, fit: Fit) -> Any:
        """Lengths of documents to draw; None for models without."""
        return None

    # ------------------------------------------------------------------ simulation, logistic form

    def sample(self, n_samples: int = 1, random_state: Any = None, lengths: Any = None) -> tuple[Any, np.ndarray]:
        """Independent rows from the route's p(x, y); with ``"exact"``, the posterior predictive.

        Parameters
        ----------
        n_samples : int
        random_state : int, Generator, RandomState or None
        lengths : int or array (n_samples,), optional
            Lengths of documents (multinomial model); default: the mean length seen.

        Returns
        -------
        X : array (n_samples, n_features)
        y : array (n_samples,)
        """
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1; got {n_samples!r}")
        learned = self._state()
        fit = learned.fit
        lengths = self._lengths(lengths, n_samples, fit)
        x, codes = fit.sample(n_samples, self._seed(random_state), lengths)
        return self._decode(x, learned.columns), fit.classes[codes]

    def _decode(self, x: Any, columns: Columns) -> Any:
        """Rows of the family in the form of X."""
        return x

    def _logistic_encoder(self) -> Any:
        """What X must pass through before the linear score, or None; raises where the route is not linear."""
        raise NotImplementedError

    def _linear(self) -> tuple[np.ndarray, np.ndarray, Any]:
        """Weights and intercepts in scikit-learn's shapes (two classes: one difference), and the encoder."""
        fit = self._fit_value
        fit.check_predictive()
        if len(fit.classes) < 2:
            raise ValueError("the logistic form needs at least two classes; the model has one")
        weights, intercepts = fit.features.stated.logistic(fit.features.params)
        encoder = self._logistic_encoder()
        intercepts = fit.log_class + intercepts
        if not (np.isfinite(weights).all() and np.isfinite(intercepts).all()):
            raise UndefinedNumberError(
                "a probability is zero, so a weight of the logistic form would be infinite; smooth first "
                "(inference='mean' with alpha > 0)"
            )
        if len(fit.classes) == 2:
            return weights[1:] - weights[:1], intercepts[1:] - intercepts[:1], encoder
        return np.ascontiguousarray(weights), intercepts, encoder

    def _linear_attribute(self, part: int) -> np.ndarray:
        self._state()
        try:
            return self._linear()[part]
        except ValueError as error:
            raise UndefinedNumberError(str(error)) from None

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the logistic form; see `to_logistic`. Not there where the log odds are not linear."""
        return self._linear_attribute(0)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of the logistic form; see `coef_`."""
        return self._linear_attribute(1)

    def to_logistic(self) -> Any:
        r"""The model's logistic form: p(y | x) as softmax of linear scores of x.

        Returns
        -------
        sklearn.linear_model.LogisticRegression
            Fitted: its ``predict_proba`` equals this estimator's. Where X must be encoded first (levels, a
            threshold), a fitted ``Pipeline(encoder, LogisticRegression)``. Two classes: the difference of the
            scores; more: the scores :math:`b_k + w_k^\top x` themselves, uncentred.

        Raises
        ------
        ValueError
            If the route's log odds are not linear in x.
        UndefinedNumberError
            If a probability is zero, so that a weight would be infinite.

        References
        ----------
        Bishop 2006, section 4.2; Efron 1975.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        coef, intercept, encoder = self._linear()
        out = LogisticRegression()
        out.classes_, out.coef_, out.intercept_ = self.classes_, coef, intercept
        out.n_features_in_ = coef.shape[1]
        out.n_iter_ = np.zeros(1, dtype=np.int32)
        if encoder is not None:
            return make_pipeline(encoder, out)
        if hasattr(self, "feature_names_in_"):
            out.feature_names_in_ = self.feature_names_in_
        return out

    def _refuse_exact_logistic(self, why: str) -> None:
        if self.inference == "exact":
            raise ValueError(
                f"the log odds of inference='exact' are not linear in x: {why}. Use 'mean', 'map' or 'mle'"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self, "missing", "error") == "marginalize"
        return tags


def _counts(stats: Any, leaving: Any) -> Any:
    """Pairs of count arrays in two statistics."""
    if not hasattr(stats, "_fields"):
        for s, part in zip(stats, leaving, strict=True):
            yield from _counts(s, part)
        return
    for name in stats._fields:
        if name not in ("mean", "mean_low", "scatter", "log_coefficient", "log_base"):
            yield getattr(stats, name), getattr(leaving, name)


def _input_seed(random_state: Any) -> Any:
    """A seed that gives the same draws each time it is used."""
    from bayesgen._random import generator

    return generator(random_state).integers(0, 2**32, size=4, dtype=np.uint32)


def normalise(joint: np.ndarray) -> np.ndarray:
    """ln p(y | x) from the log joint over the last axis; NaN for rows that no class can generate."""
    impossible = warn_impossible(joint)
    if impossible.any():
        joint = np.where(impossible[..., None], np.nan, joint)
    # The maximum goes first: a log joint of -1e12 would leave no digits of a log of the sum.
    with np.errstate(invalid="ignore"):
        joint = joint - joint.max(axis=-1, keepdims=True)
        return joint - logsumexp(joint, keepdims=True)


def warn_impossible(joint: np.ndarray) -> np.ndarray:
    """Rows whose joint is -inf in every class, with a warning that names the first."""
    impossible = np.isneginf(joint).all(axis=-1)
    if impossible.any():
        at = int(np.argwhere(impossible)[0][-1])
        warnings.warn(
            f"{int(impossible.sum())} of {impossible.size} rows (the first is row {at}) have probability zero in every "
            "class: their class probabilities are 0/0, given as NaN. Smoothing repairs this: inference='mean' or "
            "'exact' with alpha > 0",
            ZeroProbabilityWarning,
            stacklevel=3,
        )
    return impossible


__all__ = ["GenerativeBase", "Learned", "normalise"]
