"""What an estimator learns from rows without a label, from soft labels, and of classes whose rates have changed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from bayesgen import em
from bayesgen._random import generator
from bayesgen.estimators import _labels
from bayesgen.estimators._arrays import on_host
from bayesgen.estimators._shell import Learned, Shell
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Labels
from bayesgen.families.multivariate import Multivariate
from bayesgen.families.normal_statistics import PatternStats, has_missing
from bayesgen.fit import SAMPLED, MixedFit
from bayesgen.label_shift import ClassPriorEstimate, estimate_rates

__all__ = ["UNKNOWN", "Unlabelled", "learn_unlabelled", "refuse_unlabelled", "split_rows"]

UNKNOWN = -1  # code of a row without a label


def take(x: Any, keep: np.ndarray) -> Any:
    """Some rows of data in the family's form."""
    return tuple(part[keep] for part in x) if isinstance(x, tuple) else x[keep]


def encode_rows(y: np.ndarray, known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Codes (n,) of rows some of which have a label, from the labels of these."""
    if known.all():
        return _labels.encode_labels(y, classes)
    codes = np.full(len(known), UNKNOWN)
    codes[known] = _labels.encode_labels(y, classes)
    return codes


def split_rows(x: Any, codes: np.ndarray, weights: np.ndarray | None) -> tuple[Any, Any, Any, Any]:
    """Rows with a label, their codes and weights, and the pair (x, weights) of the rows without; None if all have."""
    without = codes == UNKNOWN
    if not without.any():
        return x, codes, weights, None
    has, others = np.flatnonzero(~without), np.flatnonzero(without)
    w = np.ones(len(codes)) if weights is None else weights
    return take(x, has), codes[has], None if weights is None else weights[has], (take(x, others), w[others])


def refuse_unlabelled(estimator: Any, method: str) -> None:
    """Raise where statistics are combined by an estimator that learns from unlabelled rows."""
    if getattr(estimator, "unlabelled", None) is not None:
        raise ValueError(
            f"{method} adds up statistics of rows, and unlabelled='em' needs all rows together: call fit on all of "
            f"them, or use unlabelled=None with labelled rows"
        )


def _check_routes(estimator: Any, fit: Any) -> str:
    """Raise unless every part of the model can learn from unlabelled rows; give the kind, "em" or "nuts"."""
    route = estimator._route
    if route == "nuts" and not isinstance(fit.features, MixedFit):
        return "nuts"
    names = {f"inference={route!r}": route}
    if isinstance(fit.features, MixedFit):
        blocks = zip(fit.features.stated.names, fit.features.parts, strict=True)
        names |= {f"inference={part.route!r} of block {name!r}": part.route for name, part in blocks}
    for what, name in names.items():
        if name in em.ROUTES:
            continue
        sampled = "" if isinstance(fit.features, MixedFit) else ", or inference='nuts' for draws of the posterior"
        raise ValueError(
            f"{what} cannot learn from unlabelled rows, which make the posterior a mixture without a closed form: use "
            f"inference='mean' (EM with smoothing), 'map' or 'mle'{sampled}; for example "
            f"{type(estimator).__name__}(inference='mean', unlabelled='em')"
        )
    return "em"


def _check_complete(features: Any, x: Any) -> None:
    """Raise for missing cells under a full covariance, whose EM is another one."""
    parts = zip(features.parts, x, strict=True) if isinstance(features, MixedFit) else [(features, x)]
    for part, block in parts:
        if isinstance(part.stated, Multivariate) and (isinstance(part.stats, PatternStats) or has_missing(block)):
            raise ValueError(
                "rows without a label and missing cells together are not for a full covariance: drop the rows with "
                "missing cells, or use GaussianNB, which integrates them out"
            )


def learn_unlabelled(estimator: Any, labelled: Learned, known: tuple[Any, Labels], unknown: Any) -> Learned:
    """What is learned from unlabelled rows (x, weights) on top of the labelled ones (x, labels)."""
    x, weights = unknown
    weights = weights * float(estimator.unlabelled_weight)
    if not weights.any():
        return labelled
    _check_complete(labelled.fit.features, x)
    kind = _check_routes(estimator, labelled.fit)
    if estimator.likelihood_power == "loo":
        raise ValueError(
            "likelihood_power='loo' needs exact leave-one-out, which a fit with unlabelled rows does not have: give a "
            "number, or fit the labelled rows alone"
        )
    if kind == "nuts":
        from bayesgen.mixture import sampled_mixture

        return replace(labelled, fit=sampled_mixture(labelled.fit, x, weights))
    rng = generator(estimator.random_state)
    fit = em.maximise(labelled.fit, *known, x, weights, int(estimator.n_init), rng)
    if not fit.converged:
        assert fit.trace is not None
        warnings.warn(
            f"EM did not converge in {em.MOST_STEPS} steps; the last gained {np.diff(fit.trace)[-1]:.3g} nats. Classes "
            "that overlap so much are slow to tell apart: label more rows, or state a stronger prior",
            ConvergenceWarning,
            stacklevel=4,
        )
    return replace(labelled, fit=fit)


class Unlabelled(Shell):
    """Learning without labels, or with soft ones."""

    def _em(self, what: str) -> Any:
        fit = self._fit_value
        if getattr(fit, "trace", None) is None:
            raise UndefinedNumberError(f"{what} is of EM: fit with unlabelled='em' and rows without a label")
        return fit

    @property
    def log_posterior_trace_(self) -> np.ndarray:
        """Log posterior density (with "mle" the log likelihood) after each of the ``n_iter_`` steps of EM, in nats.

        With "mean" it is that of the prior whose mode the posterior mean is (Dirichlet: alpha + 1). Up to a constant
        where the prior is improper.
        """
        return self._em("log_posterior_trace_").trace

    @property
    def n_iter_(self) -> int:
        """Steps of EM, of the start that was kept."""
        return len(self._em("n_iter_").trace)

    def fit_soft(self, X: Any, R: Any, classes: Any) -> Self:
        """Learn from rows that belong to several classes, each with a weight.

        It equals `fit` on each row repeated once for each class, with these weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        R : array (n_samples, n_classes)
            Non-negative weights, such as class probabilities. Rows need not sum to one.
        classes : array (n_classes,)
            Label of each column of R.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For negative or infinite weights, or shapes that do not agree.

        Examples
        --------
        >>> from bayesgen import BernoulliNB
        >>> model = BernoulliNB().fit_soft([[1], [0]], [[0.9, 0.1], [0.2, 0.8]], classes=["ham", "spam"])
        >>> model.class_count_.round(1).tolist()
        [1.1, 0.9]
        """
        self._check_params()
        given = _labels.plain_labels(classes, "classes")
        order = np.argsort(given, kind="stable")
        names = given[order]
        if not len(names) or (names[1:] == names[:-1]).any():
            raise ValueError(f"classes must be distinct labels, one for each column of R; got {given.tolist()}")
        try:
            R = check_array(on_host(R, "R"), dtype=np.float64, input_name="R")
        except (TypeError, ValueError) as error:
            raise ValueError(f"R must be an array of numbers, (n_samples, n_classes): {error}") from error
        if R.shape[1] != len(names):
            raise ValueError(f"R has {R.shape[1]} columns; classes names {len(names)}")
        if (R < 0).any():
            raise ValueError(f"R holds the negative weight {R.min():g}; weights of classes are not negative")
        if not R.any():
            raise ValueError("R is zero everywhere: there is nothing to learn from")
        X, holder = self._read(X, None)
        _labels.check_rows(X, R, "R", "rows of weights")
        weights = _labels.check_weights(R.sum(axis=1), R)
        assert weights is not None
        columns = self._columns(X, holder, None, weights)
        x = self._encode(X, columns, purpose="fit")
        keep = np.flatnonzero(weights)
        x, r = take(x, keep), np.ascontiguousarray(R[keep][:, order])
        stats = self._stats(self._stated(columns, len(names)), x, r, columns)  # type: ignore[arg-type]
        row, code = np.nonzero(r)
        needs_rows = self._route in SAMPLED or self.likelihood_power == "loo"
        rows = (take(x, row), code, r[row, code]) if needs_rows else None
        learned = self._make(names, r.sum(axis=0), stats, columns, rows)
        learned.fit.check_predictive()
        return self._commit(learned)

    def estimate_class_prior(self, X: Any, sample_weight: Any = None, prob: float = 0.94) -> ClassPriorEstimate:
        r"""Class rates among new, unlabelled rows, where p(x | y) is as learned but p(y) is not (label shift).

        With :math:`f_k(x)` the route's p(x | y = k), it maximises :math:`\sum_i w_i\ln\sum_k\pi_k f_k(x_i)`, by EM.
        The problem is concave, and the class rates at training have no say.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            New rows.
        sample_weight : array (n_samples,), optional
        prob : float
            Confidence of the interval of each rate.

        Returns
        -------
        ClassPriorEstimate
            ``class_prior`` with ``lower`` and ``upper``; pass it on as ``predict_proba(X, class_prior=...)``.

        Notes
        -----
        The interval is of the profile likelihood: it has the sampling error of the new rows, and takes p(x | y) as
        known. Where that is itself learned from few rows, or wrong (columns that repeat each other make naive Bayes too
        sure), the interval is too short.

        References
        ----------
        Saerens, Latinne and Decaestecker 2002, *Adjusting the outputs of a classifier to new a priori probabilities*.

        Examples
        --------
        >>> from bayesgen import BernoulliNB
        >>> model = BernoulliNB().fit([[0], [0], [0], [1], [1], [1], [1], [0]], [0, 0, 0, 0, 1, 1, 1, 1])
        >>> rates = model.estimate_class_prior([[1]] * 60 + [[0]] * 40)
        >>> rates.class_prior.round(2).tolist(), rates.lower.round(2).tolist(), rates.upper.round(2).tolist()
        ([0.2, 0.8], [0.0, 0.52], [0.48, 1.0])
        """
        fit = self._fit_value
        x = self._rows(X)
        fit.check_predictive(np.zeros(len(fit.classes)))  # of every class, also one of probability 0
        log_density = fit.powered(fit.log_features(x))
        weights = _labels.check_weights(sample_weight, log_density)
        return estimate_rates(log_density, weights, prob, fit.classes)
