"""Independent normal columns whose variance is the same in every class; see `bayesgen.families.gaussian`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen._math import Array, log_rising, namespace, safe_divide, special
from bayesgen._random import generator
from bayesgen.families import dirichlet
from bayesgen.families.base import Elsewhere, Labels, Problem, family, no_spread, own_class, static
from bayesgen.families.diagonal import LOST_DIGITS, Diagonal, GaussianParams, GaussianStats, condition_column

__all__ = ["SharedVarianceGaussian"]


@family
class SharedVarianceGaussian(Diagonal):
    """Normal columns whose variance is the same in every class; see the module docstring.

    Parameters
    ----------
    loc, loc_low, mean_precision : see `Gaussian`
    shape, scale : float or array, (d,)
        a and b of the inverse-gamma of each column.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import SharedVarianceGaussian, Labels
    >>> x, r = np.array([[1.0], [3.0], [0.0]]), Labels(np.array([0, 0, 1]))
    >>> prior = SharedVarianceGaussian(loc=0.0, mean_precision=1.0, shape=2.0, scale=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.shape.round(4).ravel().tolist()
    [3.5]
    """

    loc: Any = None
    loc_low: Any = 0.0
    mean_precision: Any = 0.01
    shape: Any = 1.5
    scale: Any = None
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def inverse_gamma(self) -> tuple[Array, Array]:
        """Shape and scale as (d,) arrays.

        Returns
        -------
        shape, scale : arrays (d,)
            Of the inverse-gamma distribution.
        """
        size = (self.n_features,)
        return dirichlet.broadcast(self.shape, size, "shape of the prior"), dirichlet.broadcast(
            self.scale, size, "scale of the prior"
        )

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        return {"mean": ("class", "feature"), "variance": ("feature",)}

    def prior(self) -> GaussianParams:
        """Sites ``variance`` (d,) and ``mean`` (K, d)."""
        import numpyro
        import numpyro.distributions as dist

        with numpyro.plate("feature", self.n_features, dim=-1):
            variance = numpyro.sample("variance", dist.InverseGamma(*self.inverse_gamma()))
        return self._sample_means(variance)

    def mle(self, stats: GaussianStats, unbiased: bool = False) -> GaussianParams:
        """Class means, and pooled variances S/M, or S/(M - K_+)."""
        n = stats.weight.sum(axis=0)
        if unbiased:
            n = np.maximum(n - (stats.weight > 0).sum(axis=0), 0.0)
        variance = safe_divide(stats.scatter.sum(axis=0), n)
        return self._mle(stats, np.broadcast_to(variance, self.cells))

    def condition(self, stats: GaussianStats) -> SharedVarianceGaussian:
        """See the module docstring."""
        self = self.resolve(stats)
        loc, low, kappa, q = self._update(stats)
        a, b = self.inverse_gamma()
        return self.replace(
            loc=loc,
            loc_low=low,
            mean_precision=kappa,
            shape=a + 0.5 * stats.weight.sum(axis=0),
            scale=b + q.sum(axis=0),
        )

    def log_density(self, params: GaussianParams) -> Array:
        """See `Family.log_density`; the variance counts once."""
        a, b = self.inverse_gamma()
        xp = namespace(a, b, params.variance)
        gammaln = special(xp).gammaln
        v = params.variance[0]
        inverse_gamma = a * xp.log(b) - gammaln(a) - (a + 1) * xp.log(v) - b / v
        return inverse_gamma.sum() + self._prior_mean_density(params)

    def _params(self, denominator: Array) -> GaussianParams:
        _, b = self.inverse_gamma()
        loc, low, _ = self.hyper()
        xp = namespace(b, denominator)
        variance = xp.where(denominator > 0, b / xp.where(denominator > 0, denominator, 1.0), xp.nan)
        return GaussianParams(loc, low, xp.broadcast_to(variance, self.cells))

    def mean(self) -> GaussianParams:
        """See `Family.mean`: b / (a - 1), NaN where a <= 1."""
        return self._params(self.inverse_gamma()[0] - 1.0)

    def shifted(self, times: float = 1.0) -> SharedVarianceGaussian:
        """See `Family.shifted`: shape a - 2 - K/2."""
        return self.replace(shape=self.shape - (2.0 + 0.5 * self.n_classes) * times)

    def unbounded(self, stats: GaussianStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        scale = 0.0 if flat else self.inverse_gamma()[1]
        return no_spread((stats.scatter.sum(axis=0) + scale <= 0)[None], shared=True)

    def mode(self) -> GaussianParams:
        """See `Family.mode`: b / (a + 1 + K/2), the joint mode with K means."""
        return self._params(self.inverse_gamma()[0] + 1.0 + 0.5 * self.n_classes)

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: Student t for each column."""
        a, b = self.inverse_gamma()
        xp = namespace(a, b)
        return self._t_log_prob(x, xp.broadcast_to(a, self.cells), xp.broadcast_to(b, self.cells))

    def logistic(self, params: GaussianParams) -> tuple[Array, Array]:
        """See `Family.logistic`: mean / variance, and -mean^2 / (2 variance)."""
        weights = params.mean / params.variance
        return weights, -0.5 * (weights * params.mean).sum(-1)

    def log_evidence(self, stats: GaussianStats) -> Array:
        """See `Family.log_evidence`."""
        return self.log_evidence_columns(stats).sum()

    def log_evidence_columns(self, stats: GaussianStats) -> Array:
        """See `Family.log_evidence_columns`."""
        a, b = self.inverse_gamma()
        _, _, kappa = self.hyper()
        *_, q = self._update(stats)
        xp = namespace(a, b, kappa, q)
        n, q = stats.weight.sum(axis=0), q.sum(axis=0)
        columns = log_rising(a, 0.5 * n) - a * xp.log1p(q / b) - 0.5 * n * xp.log(2 * np.pi * (b + q))
        return columns - 0.5 * xp.log1p(stats.weight / kappa).sum(0)

    def log_loo(self, x: Any, y: Any, stats: GaussianStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: the shared variance changes for every class."""
        self = self.resolve(stats)
        post = self.condition(stats)
        loc, low, kappa = post.hyper()
        a, b = post.inverse_gamma()
        out = np.empty((x.shape[0], self.n_classes))
        for rows, value, seen, own, w in self._loo_cells(x, y, stats):
            e = (value - loc[own]) - low[own]
            left = kappa[own] - w
            share = 1.0 - w * safe_divide(kappa[own], left) * e**2 / (2 * b)
            scale = b * share
            for i, j in np.argwhere(seen & (left > 0) & (share < LOST_DIGITS)):
                scale[i, j] = self._scale_without(x, y, rows.start + i, j, elsewhere)
            shape = a - 0.5 * w
            exists = (left > 0) & (shape > 0) & (scale > 0)
            shape, scale = np.where(exists, shape, 1.0), np.where(exists, scale, 1.0)
            for k in range(self.n_classes):
                mine = (own == k)[:, None]
                precision = np.where(mine, np.where(exists, left, 1.0), kappa[k])
                residual = np.where(mine, e * safe_divide(kappa[k], left), (value - loc[k]) - low[k])
                spread = 2 * scale * (1 + 1 / precision)
                cell = (
                    log_rising(shape, 0.5)
                    - 0.5 * np.log(np.pi * spread)
                    - (shape + 0.5) * np.log1p(residual**2 / spread)
                )
                out[rows, k] = np.where(seen, np.where(exists, cell, np.nan), 0.0).sum(axis=1)
        return out

    def _scale_without(self, x: Any, y: Any, i: int, j: int, elsewhere: Elsewhere) -> float:
        """B' of column j, recomputed from the other rows."""
        codes, w = own_class(y)
        others = np.flatnonzero(np.arange(len(codes)) != i)
        return float(condition_column(self, x, Labels(codes, w), others, j, elsewhere).scale[0])

    def draw(self, key: Any, n: int) -> GaussianParams:
        """See `Family.draw`: one variance for each column and draw."""
        rng = generator(key)
        a, b = self.inverse_gamma()
        variance = b / rng.standard_gamma(a, size=(n, self.n_features))
        return self._draw(rng, np.repeat(variance[:, None, :], self.n_classes, axis=1))
