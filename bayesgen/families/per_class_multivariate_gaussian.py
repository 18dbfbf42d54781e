"""Normal classes, each with its own covariance; see `bayesgen.families.multivariate_gaussian`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen import _kernels
from bayesgen._linalg import log_det_growth
from bayesgen._math import Array, log_multigamma_ratio, namespace, safe_divide
from bayesgen.families.base import family, static
from bayesgen.families.covariance_chart import factor_of
from bayesgen.families.diagonal import LOST_DIGITS, Diagonal
from bayesgen.families.gaussian import Gaussian
from bayesgen.families.multivariate import Multivariate, MultivariateGaussianParams
from bayesgen.families.normal_scores import LOG_PI, t_formula
from bayesgen.families.normal_statistics import MultivariateGaussianStats, refuse_missing

__all__ = ["PerClassMultivariateGaussian"]


@family
class PerClassMultivariateGaussian(Multivariate):
    """Normal classes, each with its own covariance; see the module docstring.

    Parameters
    ----------
    loc, loc_low, mean_precision : see `MultivariateGaussian`
    df : float or array (K,)
        nu_0. None: d + 2.
    scale : array (d, d) or (K, d, d)
        Psi_0. None: as in `MultivariateGaussian`, the same for every class.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import PerClassMultivariateGaussian, Labels
    >>> x, r = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, 1.0]]), Labels(np.array([0, 0, 1]))
    >>> prior = PerClassMultivariateGaussian(loc=0.0, mean_precision=1.0, df=4.0, scale=np.eye(2)).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.df.tolist()
    [6.0, 5.0]
    """

    loc: Any = None
    loc_low: Any = 0.0
    mean_precision: Any = 0.01
    df: Any = None
    scale: Any = None
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    _moments = staticmethod(_kernels.class_moments)

    def _centre(self, scatter: Array, shift: Array) -> Array:
        return scatter - shift

    def _pooled(self, scatter: Array) -> Array:
        return scatter.sum(axis=0)

    def _occupied(self, weight: Array) -> Array:
        return (weight > 0)[..., None, None]

    def logistic(self, params: MultivariateGaussianParams) -> tuple[Array, Array]:
        """See `Family.logistic`: quadratic."""
        raise ValueError(
            "with a covariance for each class the log odds are quadratic in x, not linear; covariance='shared' makes "
            "them linear"
        )

    def inverse_wishart(self) -> tuple[Array, Array]:
        """See `Multivariate.inverse_wishart`."""
        xp = namespace(self.df, self.scale)
        d = self.n_features
        df = xp.broadcast_to(xp.asarray(self.df, dtype=float), (self.n_classes,))
        return df, xp.broadcast_to(xp.asarray(self.scale, dtype=float), (self.n_classes, d, d))

    def _columns_model(self) -> tuple[type[Diagonal], Array, Array]:
        df, scale = self.inverse_wishart()
        diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
        return Gaussian, 0.5 * (df - self.n_features + 1.0)[:, None], 0.5 * diagonal

    def _sample_covariance(self) -> Any:
        import numpyro

        from bayesgen.distributions import InverseWishart

        with numpyro.plate("class", self.n_classes, dim=-1):
            return numpyro.sample("covariance", InverseWishart(*self.inverse_wishart()))

    def mle(self, stats: MultivariateGaussianStats, unbiased: bool = False) -> MultivariateGaussianParams:
        """Class means, and class scatters over n_k, or over n_k - 1."""
        refuse_missing(stats, "the maximum-likelihood estimate")
        n = np.maximum(stats.weight - 1.0, 0.0) if unbiased else stats.weight
        covariance = safe_divide(stats.scatter, n[:, None, None])
        return MultivariateGaussianParams(self._mle_means(stats), stats.mean_low, covariance)

    def condition(self, stats: MultivariateGaussianStats) -> PerClassMultivariateGaussian:
        """See the module docstring."""
        refuse_missing(stats, "the posterior")
        self = self.resolve(stats)
        loc, low, kappa, shift = self._update(stats)
        df, scale = self.inverse_wishart()
        return self.replace(
            loc=loc,
            loc_low=low,
            mean_precision=kappa,
            df=df + stats.weight,
            scale=scale + stats.scatter + shift,
        )

    def log_density(self, params: MultivariateGaussianParams) -> Array:
        """See `Family.log_density`."""
        inverse, logdet = factor_of(params)
        prior = self._log_inverse_wishart(*self.inverse_wishart(), inverse, logdet)
        return prior + self._log_mean_density(params, inverse, logdet)

    def _params(self, denominator: Array) -> MultivariateGaussianParams:
        loc, low, _ = self.hyper()
        xp = namespace(denominator, self.scale)
        proper = (denominator > 0)[:, None, None]
        safe = xp.where(proper, denominator[:, None, None], 1.0)
        return MultivariateGaussianParams(loc, low, xp.where(proper, self.inverse_wishart()[1] / safe, xp.nan))

    def mean(self) -> MultivariateGaussianParams:
        """See `Family.mean`: Psi_k / (nu_k - d - 1), NaN unless nu_k > d + 1."""
        return self._params(self.inverse_wishart()[0] - self.n_features - 1.0)

    def shifted(self, times: float = 1.0) -> PerClassMultivariateGaussian:
        """See `Family.shifted`: df nu - 2d - 3."""
        return self.replace(df=self.df - (2.0 * self.n_features + 3.0) * times)

    def mode(self) -> MultivariateGaussianParams:
        """See `Family.mode`: Psi_k / (nu_k + d + 2), the joint mode with its mean."""
        return self._params(self.inverse_wishart()[0] + self.n_features + 2.0)

    def log_evidence(self, stats: MultivariateGaussianStats) -> Array:
        """See `Family.log_evidence`."""
        refuse_missing(stats, "the evidence")
        df, scale = self.inverse_wishart()
        _, _, kappa = self.hyper()
        xp = namespace(df, scale, kappa)
        d, n = self.n_features, stats.weight
        log_prior, growth = log_det_growth(scale, stats.scatter + self._update(stats)[3])
        return (
            -0.5 * n * d * LOG_PI
            - 0.5 * d * xp.log1p(n / kappa)
            - 0.5 * df * growth
            - 0.5 * n * (log_prior + growth)
            + log_multigamma_ratio(df, n, d)
        ).sum()

    def _downdate(self, x: np.ndarray, k: np.ndarray, w: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
        """See `MultivariateGaussian._downdate`: only the own class changes."""
        loc, low, _ = self.hyper()
        inverse, logdet = self._factor
        d = self.n_features
        out = self.log_predictive(x)
        residual = (x - loc[k]) - low[k]
        own = np.empty_like(residual)
        for c in np.unique(k):
            own[k == c] = residual[k == c] @ inverse[c].T
        left, _, s, form, safe = self._own_parts(k, w, np.einsum("ij,ij->i", own, own))
        df = self.inverse_wishart()[0][k] - w - d + 1.0
        exists = (left > 0) & (s > 0) & (df > 0)
        formula = t_formula(np.where(exists, df, 1.0), np.where(exists, left, 1.0))
        own_log = formula(form, logdet[k] + np.log(safe), d)
        out[np.arange(len(x)), k] = np.where(exists, own_log, np.nan)
        return out, (left > 0) & (s < LOST_DIGITS)
