"""Conjugate priors of the Gaussian and Poisson estimators, as values that users write down."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from bayesgen.own_priors import is_distribution

__all__ = ["Gamma", "NormalInverseGamma", "NormalInverseWishart"]


LARGEST = 1e150  # squares of larger values leave float64


class _Prior:
    """Equality and checks that work on array fields."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return all((p is None) == (q is None) and (p is None or np.array_equal(p, q)) for p, q in pairs)

    __hash__ = None  # type: ignore[assignment]

    def _require(self, name: str, good: Any, expected: str, optional: bool = False) -> None:
        """Check a field; arrays are kept as read-only copies."""
        value = getattr(self, name)
        if type(value) is float and abs(value) <= LARGEST and good(value):
            return
        if (value is None and optional) or is_distribution(value):
            return
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError):
            array = np.array(np.nan)
        if not array.size or not np.all(np.abs(array) <= LARGEST) or not np.all(good(array)):
            raise ValueError(f"{name} of {type(self).__name__} must be {expected}, below {LARGEST:g}; got {value!r}")
        if array.ndim:
            array.flags.writeable = False
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class Gamma(_Prior):
    """Gamma prior of Poisson rates.

    Density proportional to ``rate_parameter**(shape - 1) * exp(-rate * rate_parameter)``; mean shape / rate.

    Parameters
    ----------
    shape : float or array, (n_features,) or (n_classes, n_features)
        Shape a: one plus the counts the prior is worth.
    rate : float or array
        Rate b: the rows the prior is worth.

    Examples
    --------
    >>> from bayesgen import Gamma, PoissonNB
    >>> PoissonNB(prior=Gamma(2.0, 1.0)).fit([[0], [3]], [0, 1]).rate_.ravel().tolist()
    [1.0, 2.5]
    """

    shape: Any = 1.0
    rate: Any = 1.0

    def __post_init__(self) -> None:
        self._require("shape", lambda v: v >= 0, "non-negative")
        self._require("rate", lambda v: v >= 0, "non-negative")


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(_Prior):
    r"""Normal-inverse-gamma prior of a mean and variance.

    :math:`\sigma^2 \sim \mathrm{IG}(a, b)`, :math:`\mu \mid \sigma^2 \sim \mathcal N(m, \sigma^2/\kappa)`.

    Parameters
    ----------
    mean : float, array (n_features,) or (n_classes, n_features), or None
        m, in the unit of the column. None: the overall mean of the data.
    mean_precision : float or array
        kappa: how many rows the prior mean is worth.
    shape : float or array
        a of the inverse-gamma.
    scale : float, array or None
        b of the inverse-gamma, in squared units. None: (a - 1) times the pooled within-class variance.
    mean_low : float or array
        Low-order part of the mean, which is ``mean + mean_low``; it keeps digits of data far from zero.

    Examples
    --------
    >>> from bayesgen import GaussianNB, NormalInverseGamma
    >>> prior = NormalInverseGamma(mean=0.0, mean_precision=1.0, shape=2.0, scale=1.0)
    >>> model = GaussianNB(prior=prior).fit([[1.0], [2.0], [5.0]], [0, 0, 1])
    >>> model.theta_.ravel().tolist()
    [1.0, 2.5]

    References
    ----------
    Murphy 2007, *Conjugate Bayesian analysis of the Gaussian distribution*; BDA3 section 3.3.
    """

    mean: Any = None
    mean_precision: Any = 0.01
    shape: Any = 1.5
    scale: Any = None
    mean_low: Any = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        self._require("mean", np.isfinite, "a number or an array of numbers", optional=True)
        self._require("mean_low", np.isfinite, "a number or an array of numbers")
        self._require("mean_precision", lambda v: v >= 0, "non-negative")
        self._require("shape", np.isfinite, "a number or an array of numbers")
        self._require("scale", lambda v: v >= 0, "non-negative", optional=True)
        if self.scale is None and (is_distribution(self.shape) or not np.all(np.asarray(self.shape) > 1)):
            raise ValueError(
                "scale=None of NormalInverseGamma sets the prior mean of the variance, which needs shape > 1; got "
                f"shape={self.shape!r}. Give a scale"
            )


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(_Prior):
    r"""Normal-inverse-Wishart prior of a mean vector and covariance.

    :math:`\Sigma \sim \mathrm{IW}(\nu, \Psi)`, :math:`\mu \mid \Sigma \sim \mathcal N(m, \Sigma/\kappa)`.

    Parameters
    ----------
    mean : float, array (n_features,) or (n_classes, n_features), or None
        m, in the units of the columns. None: the overall mean of the data.
    mean_precision : float or array (n_classes,)
        kappa: how many rows the prior mean is worth.
    df : float, array (n_classes,) or None
        Degrees of freedom nu. None: n_features + 2.
    scale : array (n_features, n_features), (n_classes, n_features, n_features) or None
        Psi, symmetric positive definite; E[Sigma] = Psi / (nu - d - 1). None: the value that makes E[Sigma]
        the diagonal matrix of pooled within-class variances.
    mean_low : float or array
        Low-order part of the mean, which is ``mean + mean_low``; it keeps digits of data far from zero.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantAnalysis, NormalInverseWishart
    >>> prior = NormalInverseWishart(mean=0.0, mean_precision=1.0, df=4.0, scale=[[1.0, 0.0], [0.0, 1.0]])
    >>> model = GaussianDiscriminantAnalysis(prior=prior).fit([[1.0, 0.0], [2.0, 3.0], [5.0, 1.0]], [0, 0, 1])
    >>> model.means_.tolist()
    [[1.0, 1.0], [2.5, 0.5]]

    References
    ----------
    Murphy 2012, *MLPP*, section 4.6.3; BDA3 section 3.6.
    """

    mean: Any = None
    mean_precision: Any = 0.01
    df: Any = None
    scale: Any = None
    mean_low: Any = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        self._require("mean", np.isfinite, "a number or an array of numbers", optional=True)
        self._require("mean_low", np.isfinite, "a number or an array of numbers")
        self._require("mean_precision", lambda v: v >= 0, "non-negative")
        self._require("df", np.isfinite, "a number or an array of numbers", optional=True)
        self._require("scale", np.isfinite, "a matrix of numbers", optional=True)
        if self.scale is None and is_distribution(self.df):
            raise ValueError("scale=None is resolved from the data and a number df; with a random df give a scale")
        if self.scale is None or is_distribution(self.scale):
            return
        scale = np.asarray(self.scale, dtype=float)
        if scale.ndim < 2 or scale.shape[-1] != scale.shape[-2]:
            raise ValueError(
                "scale of NormalInverseWishart must be a square matrix, (n_features, n_features), or one for each "
                f"class; got shape {scale.shape}"
            )
        other = np.swapaxes(scale, -1, -2)
        skew = ~np.isclose(scale, other, rtol=1e-10, atol=0)
        if skew.any():
            at = tuple(np.argwhere(skew)[0].tolist())
            raise ValueError(
                f"scale of NormalInverseWishart must be symmetric; at {at} it is {scale[at]:g}, and across the "
                f"diagonal {other[at]:g}. Average it with its transpose if this is rounding"
            )
        if scale.any() and np.linalg.eigvalsh(scale).min() <= 0:
            raise ValueError(
                "scale of NormalInverseWishart must be positive definite; its smallest eigenvalue is "
                f"{np.linalg.eigvalsh(scale).min():.3g}"
            )
