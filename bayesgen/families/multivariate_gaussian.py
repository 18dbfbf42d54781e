r"""Multivariate normal classes: Gaussian discriminant analysis, with a shared or a per-class covariance.

.. math::

    x \mid y{=}k \sim \mathcal N(\mu_k, \Sigma), \qquad
    \mu_k \mid \Sigma \sim \mathcal N(m_0, \Sigma/\kappa_0), \quad \Sigma \sim \mathrm{IW}(\nu_0, \Psi_0),

with the inverse-Wishart density proportional to :math:`|\Sigma|^{-(\nu+d+1)/2} e^{-\mathrm{tr}(\Psi\Sigma^{-1})/2}`.
Statistics are class weights, class means, and the scatter about them (pooled, or one for each class). The
posterior has :math:`\kappa_k = \kappa_0 + n_k`, :math:`m_k = m_0 + \tfrac{n_k}{\kappa_k}(\bar x_k - m_0)`,
:math:`\nu = \nu_0 + M` and

.. math::

    \Psi = \Psi_0 + \sum_k \Big[S_k + \tfrac{\kappa_0 n_k}{\kappa_k}(\bar x_k - m_0)(\bar x_k - m_0)^\top\Big];

the exact predictive is multivariate t with :math:`\eta = \nu - d + 1` degrees of freedom, location
:math:`m_k` and scale matrix :math:`\frac{\kappa_k + 1}{\kappa_k\eta}\Psi`. Missing cells of a row are integrated
out by taking blocks of :math:`\Psi` (or :math:`\Sigma`), with the same :math:`\eta`. Means are kept as value
and rounding error, see `bayesgen.families.gaussian`. [Geisser 1964; Murphy 2012, sections 4.2, 4.6.3; BDA3
section 3.6; Bishop 2006, section 4.2.2]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen import _kernels
from bayesgen._linalg import inverse_factor, log_det_growth
from bayesgen._math import Array, log_multigamma_ratio, namespace, safe_divide
from bayesgen.families.base import (
    family,
    static,
)
from bayesgen.families.covariance_chart import factor_of
from bayesgen.families.diagonal import LOST_DIGITS, Diagonal
from bayesgen.families.diagonal_scores import NEAR
from bayesgen.families.multivariate import Multivariate, MultivariateGaussianParams
from bayesgen.families.normal_scores import (
    LOG_PI,
    linear_score,
    t_formula,
    whiten,
)
from bayesgen.families.normal_statistics import (
    MultivariateGaussianStats,
    PatternStats,
    Stats,
    has_missing,
    refuse_missing,
)
from bayesgen.families.shared_variance_gaussian import SharedVarianceGaussian

__all__ = ["Multivariate", "MultivariateGaussian", "MultivariateGaussianParams", "MultivariateGaussianStats"]


@family
class MultivariateGaussian(Multivariate):
    """Normal classes with one shared covariance; see the module docstring.

    Parameters
    ----------
    loc, loc_low : float or array, (d,) or (K, d)
        Prior mean m_0 of the class means, in the units of the columns, and its low-order part. None: the
        overall mean of the data.
    mean_precision : float or array (K,)
        kappa_0: how many rows the prior mean is worth.
    df : float
        nu_0. None: d + 2.
    scale : array (d, d)
        Psi_0. None: (df - d - 1) times the diagonal of pooled variances, so that E[Sigma] is that diagonal.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import MultivariateGaussian, Labels
    >>> x, r = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, 1.0]]), Labels(np.array([0, 0, 1]))
    >>> prior = MultivariateGaussian(loc=0.0, mean_precision=1.0, df=4.0, scale=np.eye(2)).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.df.item(), posterior.scale.round(4).tolist()
    (7.0, [[5.6667, 1.6667], [1.6667, 2.1667]])
    """

    loc: Any = None
    loc_low: Any = 0.0
    mean_precision: Any = 0.01
    df: Any = None
    scale: Any = None
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    _moments = staticmethod(_kernels.pooled_moments)

    def _centre(self, scatter: Array, shift: Array) -> Array:
        return scatter - shift.sum(axis=0)

    def _pool_classes(self, matrices: Array) -> Array:
        return matrices.sum(axis=-3)

    def _scatter_shape(self) -> tuple[int, ...]:
        return self.n_features, self.n_features

    def _occupied(self, weight: Array) -> Array:
        return (weight > 0).any(axis=-1)[..., None, None]

    def reclass(self, stats: Stats, positions: np.ndarray, n_classes: int) -> Any:
        """See `Family.reclass`; the pooled scatter has no class axis."""
        if isinstance(stats, PatternStats):
            return super().reclass(stats, positions, n_classes)
        moved = super().reclass(stats._replace(scatter=np.zeros(())), positions, n_classes)
        return moved._replace(scatter=stats.scatter)

    def inverse_wishart(self) -> tuple[Array, Array]:
        """See `Multivariate.inverse_wishart`."""
        xp = namespace(self.df, self.scale)
        return xp.asarray(self.df, dtype=float), xp.asarray(self.scale, dtype=float)

    def _columns_model(self) -> tuple[type[Diagonal], Array, Array]:
        df, scale = self.inverse_wishart()
        return SharedVarianceGaussian, 0.5 * (df - self.n_features + 1.0), 0.5 * np.diagonal(scale)

    def _sample_covariance(self) -> Any:
        import numpyro

        from bayesgen.distributions import InverseWishart

        return numpyro.sample("covariance", InverseWishart(*self.inverse_wishart()))

    def mle(self, stats: MultivariateGaussianStats, unbiased: bool = False) -> MultivariateGaussianParams:
        """Class means, and the pooled scatter over M, or over M - K_+."""
        refuse_missing(stats, "the maximum-likelihood estimate")
        n = stats.weight.sum()
        if unbiased:
            n = np.maximum(n - (stats.weight > 0).sum(), 0.0)
        return MultivariateGaussianParams(self._mle_means(stats), stats.mean_low, safe_divide(stats.scatter, n))

    def condition(self, stats: MultivariateGaussianStats) -> MultivariateGaussian:
        """See the module docstring."""
        refuse_missing(stats, "the posterior")
        self = self.resolve(stats)
        loc, low, kappa, shift = self._update(stats)
        df, scale = self.inverse_wishart()
        return self.replace(
            loc=loc,
            loc_low=low,
            mean_precision=kappa,
            df=df + stats.weight.sum(),
            scale=scale + stats.scatter + shift.sum(axis=0),
        )

    def log_density(self, params: MultivariateGaussianParams) -> Array:
        """See `Family.log_density`."""
        inverse, logdet = factor_of(params)
        prior = self._log_inverse_wishart(*self.inverse_wishart(), inverse, logdet)
        return prior + self._log_mean_density(params, inverse, logdet)

    def _params(self, denominator: Array) -> MultivariateGaussianParams:
        loc, low, _ = self.hyper()
        xp = namespace(denominator, self.scale)
        scale = self.inverse_wishart()[1]
        proper = denominator > 0
        covariance = xp.where(proper, scale / xp.where(proper, denominator, 1.0), xp.nan)
        return MultivariateGaussianParams(loc, low, covariance)

    def mean(self) -> MultivariateGaussianParams:
        """See `Family.mean`: Psi / (nu - d - 1), NaN unless nu > d + 1."""
        return self._params(self.inverse_wishart()[0] - self.n_features - 1.0)

    def shifted(self, times: float = 1.0) -> MultivariateGaussian:
        """See `Family.shifted`: df nu - 2d - 2 - K."""
        return self.replace(df=self.df - (2.0 * self.n_features + 2.0 + self.n_classes) * times)

    def mode(self) -> MultivariateGaussianParams:
        """See `Family.mode`: Psi / (nu + d + 1 + K), the joint mode with K means."""
        return self._params(self.inverse_wishart()[0] + self.n_features + 1.0 + self.n_classes)

    def relative_log_prob(self, params: MultivariateGaussianParams, x: Any) -> np.ndarray:
        """See `Family.relative_log_prob`: linear in x, without the square that all classes share."""
        if namespace(x, *params) is np:
            low = np.broadcast_to(params.mean_low, params.mean.shape)
            linear = linear_score(x, params.mean, low, inverse_factor(params.covariance)[0])
            if linear is not None and not has_missing(linear):  # where x has missing cells
                return linear
        return self.log_prob(params, x)

    def logistic(self, params: MultivariateGaussianParams) -> tuple[Array, Array]:
        r"""See `Family.logistic`: :math:`\Sigma^{-1}\mu_k` and :math:`-\mu_k^\top\Sigma^{-1}\mu_k/2`."""
        inverse, _ = inverse_factor(params.covariance)
        whitened = params.mean @ inverse.T
        return whitened @ inverse, -0.5 * (whitened * whitened).sum(-1)

    def log_evidence(self, stats: MultivariateGaussianStats) -> Array:
        """See `Family.log_evidence`."""
        refuse_missing(stats, "the evidence")
        df, scale = self.inverse_wishart()
        _, _, kappa = self.hyper()
        xp = namespace(df, scale, kappa)
        d, n = self.n_features, stats.weight.sum()
        log_prior, growth = log_det_growth(scale, stats.scatter + self._update(stats)[3].sum(axis=0))
        return (
            -0.5 * n * d * LOG_PI
            - 0.5 * d * xp.log1p(stats.weight / kappa).sum()
            - 0.5 * df * growth
            - 0.5 * n * (log_prior + growth)
            + log_multigamma_ratio(df, n, d)
        )

    def _downdate(
        self, x: np.ndarray, k: np.ndarray, w: np.ndarray, buffers: _kernels.Buffers
    ) -> tuple[np.ndarray, np.ndarray]:
        """Leave-one-out of rows x of classes k and weights w, and which of them lost their digits."""
        _, _, kappa = self.hyper()
        _, logdet = self._factor
        d = self.n_features
        q, form, cross = self._own_and_others(x, k, buffers)
        left, c, s, own_form, safe = self._own_parts(k, w, q)
        df = self.inverse_wishart()[0] - w - d + 1.0
        exists = (left > 0) & (s > 0) & (df > 0)
        df = np.where(exists, df, 1.0)
        mine = k[:, None] == np.arange(self.n_classes)
        form = np.where(mine, own_form[:, None], form + (c / safe)[:, None] * cross**2)
        precision = np.where(mine & exists[:, None], left[:, None], kappa)
        out = t_formula(df[:, None], precision)(form, (logdet + np.log(safe))[:, None], d)
        out[~exists] = np.nan
        return out, (left > 0) & (s < LOST_DIGITS)

    def _own_and_others(self, x: np.ndarray, k: np.ndarray, buffers: _kernels.Buffers) -> tuple[np.ndarray, ...]:
        """|z_k|^2 (n,) of the own class, |z_j|^2 and z_k'z_j (n, K) of all; z_j is the row whitened about m_j.

        Of near classes z_j = z_k + (a_k - a_j), with a_j the whitened means: one product with these, none of rows for
        each class.
        """
        loc, low, _ = self.hyper()
        inverse, _ = self._factor
        means = ((loc - loc[0]) + (low - low[0])) @ inverse.T
        if not np.square(means).sum(axis=1).max() <= NEAR**2:
            own = ((x - loc[k]) - low[k]) @ inverse.T
            others = [((x - loc[j]) - low[j]) @ inverse.T for j in range(self.n_classes)]
            form = np.stack([(z * z).sum(axis=1) for z in others], axis=1)
            return (own * own).sum(axis=1), form, np.stack([(z * own).sum(axis=1) for z in others], axis=1)
        own = whiten(x, loc[0], low[0] @ inverse.T, np.asfortranarray(inverse), buffers)
        own -= means[k]
        q = np.einsum("ij,ij->i", own, own)
        along = own @ means.T
        step = along[np.arange(len(k)), k][:, None] - along
        apart = np.square(means[:, None] - means).sum(axis=-1)
        return q, np.maximum(q[:, None] + 2.0 * step + apart[k], 0.0), q[:, None] + step
