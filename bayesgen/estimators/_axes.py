"""Discriminant axes: where classes with a shared covariance lie apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if

from bayesgen._linalg import inverse_factor
from bayesgen.estimators._arrays import in_kind
from bayesgen.estimators._options import check_count
from bayesgen.estimators._shell import Shell
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import dense

__all__ = ["DiscriminantAxes", "check_components"]

NO_COMMON_AXES = (
    "discriminant axes are those of one covariance for all classes, and covariance='per_class' has one for each: use "
    "covariance='shared'"
)


class Axes(NamedTuple):
    """Discriminant axes of normal classes with one covariance."""

    centre: np.ndarray
    """Mean of the class means, weighted by the class probabilities, (d,)"""
    centre_low: np.ndarray
    """Its rounding error, (d,)"""
    scalings: np.ndarray
    """Columns are axes, (d, q): S' covariance S = I"""
    variance: np.ndarray
    """Between-class variance along each axis in units of the within-class variance, (q,)"""


def discriminant_axes(mean: np.ndarray, low: np.ndarray, covariance: np.ndarray, prob: np.ndarray) -> Axes:
    """Axes along which class means (K, d) are apart, the furthest first; min(K - 1, d) of them.

    They are the singular vectors of the whitened class means about their average, weighted by the class probabilities.
    The sign of an axis is that of its largest entry in units of the within-class standard deviations.
    """
    size = min(len(mean) - 1, mean.shape[1])
    shift = (mean - mean[0]) + (low - low[0])
    step = prob @ shift
    whiten, _ = inverse_factor(covariance)
    _, apart, right = np.linalg.svd(np.sqrt(prob)[:, None] * (shift - step) @ whiten.T, full_matrices=False)
    scalings = whiten.T @ right[:size].T
    standard = np.sqrt(np.diagonal(covariance))[:, None] * scalings
    largest = np.take_along_axis(standard, np.abs(standard).argmax(axis=0)[None], axis=0)
    return Axes(mean[0], low[0] + step, scalings * np.where(largest < 0, -1.0, 1.0), apart[:size] ** 2)


def check_components(n_components: Any, n_classes: int, n_features: int) -> None:
    """Raise unless the number of axes asked for is None or one that there can be."""
    if n_components is None:
        return
    check_count("n_components", n_components)
    most = min(n_classes - 1, n_features)
    if n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than min(n_classes - 1, n_features) = {most}: {n_classes} class "
            f"means in {n_features} columns have no more axes"
        )


def shared(estimator: Any) -> bool:
    """Whether there are common axes; raises `AttributeError` if not, so that ``hasattr`` says so."""
    if estimator.covariance == "per_class":
        raise AttributeError(NO_COMMON_AXES)
    return True


class DiscriminantAxes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Shell):
    """The coordinates of rows along the discriminant axes."""

    n_components: int | None
    covariance: str

    @property
    def _axes(self) -> Axes:
        shared(self)
        fit = self._fit_value
        if len(fit.classes) < 2:
            raise UndefinedNumberError("there is one class only: there are no axes along which classes lie apart")
        fit.check_predictive()
        params = fit.features.params
        if not np.isfinite(params.covariance).all():
            raise UndefinedNumberError(
                f"the covariance of inference={self.inference!r} does not exist (too few rows for this prior), nor do "
                "its axes: use a proper prior, or inference='mle'"
            )
        low = np.broadcast_to(params.mean_low, params.mean.shape)
        prob = np.exp(fit.log_class)
        mean = np.where(prob[:, None] > 0, params.mean, params.mean[prob.argmax()])  # an impossible class has no say
        axes = discriminant_axes(mean, low, params.covariance, prob)
        return axes._replace(scalings=axes.scalings[:, : self.n_components])

    def transform(self, X: Any) -> np.ndarray:
        r"""Coordinates of the rows along the discriminant axes, in within-class standard deviations.

        .. math:: z = S^\top (x - \bar m), \qquad S^\top \hat\Sigma S = I, \qquad
            S^\top \Big[\sum_k \hat\phi_k (\hat m_k - \bar m)(\hat m_k - \bar m)^\top\Big] S \text{ diagonal},

        with the means, covariance and class probabilities of the route (``means_``, ``covariance_``, ``priors_``), and
        :math:`\bar m = \sum_k \hat\phi_k \hat m_k`. Distances between rows along all axes are what the log odds
        depend on.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Complete rows.

        Returns
        -------
        ndarray (n_samples, n_components)
            Or a data frame, after ``set_output``.

        References
        ----------
        Fisher 1936, *The use of multiple measurements in taxonomic problems*; Rao 1948; Hastie, Tibshirani and Friedman
        2009, section 4.3.3.
        """
        axes = self._axes
        columns = self._state().columns
        rows = np.asarray(dense(self._read(X, columns)[0]), dtype=float)
        if np.isnan(rows).any():
            raise ValueError(
                "Input X contains NaN: a row with missing cells has no place on the discriminant axes; impute the "
                "cells, or drop the rows (predict_proba integrates them out)"
            )
        x = self._encode(rows, columns)
        return in_kind(((x - axes.centre) - axes.centre_low) @ axes.scalings, X)

    @property
    def scalings_(self) -> np.ndarray:
        """Discriminant axes, one a column, (n_features, n_components): see `transform`."""
        return self._axes.scalings

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Share of each axis in the between-class variance, in units of the within-class one, (n_components,).

        Of all axes together it is 1; 0 where class means do not differ.
        """
        variance = self._axes.variance
        total = variance.sum()
        ratio = variance / total if total > 0 else np.zeros_like(variance)
        return ratio[: self.n_components]

    @property
    def _n_features_out(self) -> int:
        return self._axes.scalings.shape[1]


# After the class is made: scikit-learn's `set_output` wraps what a class body holds, and would hide the condition.
DiscriminantAxes.fit_transform = available_if(shared)(DiscriminantAxes.fit_transform)
DiscriminantAxes.transform = available_if(shared)(DiscriminantAxes.transform)  # type: ignore[method-assign]
