r"""Independent normal columns, with a variance of their own in each class or one variance for all.

.. math::

    x_j \mid y{=}k \sim \mathcal N(\mu_{kj}, \sigma^2_{kj}), \qquad
    \mu_{kj} \mid \sigma^2 \sim \mathcal N(m, \sigma^2/\kappa), \quad \sigma^2 \sim \mathrm{IG}(a, b),

where IG has density proportional to :math:`\sigma^{-2(a+1)} e^{-b/\sigma^2}`. Statistics are weight, mean
and centred sum of squares of each class and column. With n, :math:`\bar x`, S of a cell:
:math:`\kappa' = \kappa + n`, :math:`m' = m + \tfrac{n}{\kappa'}(\bar x - m)`,
:math:`Q = \tfrac12 S + \tfrac{\kappa n}{2\kappa'}(\bar x - m)^2`; then :math:`a' = a + n/2`, :math:`b' = b + Q`
(shared variance: n and Q summed over classes). The exact predictive is Student t with 2a' degrees of
freedom, location m' and squared scale :math:`b'(\kappa'+1)/(a'\kappa')`.

Means are kept as an unevaluated sum of two floats (the value and its rounding error), so that data far from
zero keep their digits. [BDA3 sections 3.2-3.3; Murphy 2012, section 4.6; Murphy 2007]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen._math import Array, log_rising, namespace, safe_divide, special
from bayesgen._random import generator
from bayesgen.families import dirichlet
from bayesgen.families.base import (
    Elsewhere,
    Labels,
    Problem,
    family,
    no_spread,
    own_class,
    static,
)
from bayesgen.families.diagonal import LOST_DIGITS, Diagonal, GaussianParams, GaussianStats, condition_column

__all__ = ["Gaussian"]


@family
class Gaussian(Diagonal):
    """Normal columns with a variance for each class and column; see the module docstring.

    Parameters
    ----------
    loc, loc_low : float or array, (d,) or (K, d)
        Prior mean m of the means, in the unit of the column, and its low-order part. None: the overall
        mean of the data.
    mean_precision : float or array
        kappa: how many rows the prior mean is worth.
    shape, scale : float or array
        a and b of the inverse-gamma; b in squared units. A scale of None: (a - 1) times the pooled
        variance of the column.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Gaussian, Labels
    >>> x, r = np.array([[1.0], [3.0], [0.0]]), Labels(np.array([0, 0, 1]))
    >>> prior = Gaussian(loc=0.0, mean_precision=1.0, shape=2.0, scale=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.mean().mean.round(4).ravel().tolist()
    [1.3333, 0.0]
    """

    loc: Any = None
    loc_low: Any = 0.0
    mean_precision: Any = 0.01
    shape: Any = 1.5
    scale: Any = None
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def logistic(self, params: GaussianParams) -> tuple[Array, Array]:
        """See `Family.logistic`: quadratic."""
        raise ValueError(
            "with a variance for each class the log odds are quadratic in x, not linear; variance='shared' makes them "
            "linear"
        )

    def inverse_gamma(self) -> tuple[Array, Array]:
        """Shape and scale as (K, d) arrays.

        Returns
        -------
        shape, scale : arrays (K, d)
            Of the inverse-gamma distribution.
        """
        return (
            dirichlet.broadcast(self.shape, self.cells, "shape of the prior"),
            dirichlet.broadcast(self.scale, self.cells, "scale of the prior"),
        )

    def prior(self) -> GaussianParams:
        """Sites ``variance`` (K, d) and ``mean`` (K, d)."""
        import numpyro
        import numpyro.distributions as dist

        with (
            numpyro.plate("class", self.n_classes, dim=-2),
            numpyro.plate("feature", self.n_features, dim=-1),
        ):
            variance = numpyro.sample("variance", dist.InverseGamma(*self.inverse_gamma()))
        return self._sample_means(variance)

    def mle(self, stats: GaussianStats, unbiased: bool = False) -> GaussianParams:
        """Class means and variances S/n, or S/(n - 1)."""
        n = np.maximum(stats.weight - 1.0, 0.0) if unbiased else stats.weight
        return self._mle(stats, safe_divide(stats.scatter, n))

    def condition(self, stats: GaussianStats) -> Gaussian:
        """See the module docstring."""
        self = self.resolve(stats)
        loc, low, kappa, q = self._update(stats)
        a, b = self.inverse_gamma()
        return self.replace(loc=loc, loc_low=low, mean_precision=kappa, shape=a + 0.5 * stats.weight, scale=b + q)

    def log_density(self, params: GaussianParams) -> Array:
        """See `Family.log_density`."""
        a, b = self.inverse_gamma()
        xp = namespace(a, b, params.variance)
        gammaln = special(xp).gammaln
        v = params.variance
        inverse_gamma = a * xp.log(b) - gammaln(a) - (a + 1) * xp.log(v) - b / v
        return inverse_gamma.sum() + self._prior_mean_density(params)

    def mean(self) -> GaussianParams:
        """See `Family.mean`: b / (a - 1), NaN where a <= 1."""
        a, b = self.inverse_gamma()
        loc, low, _ = self.hyper()
        xp = namespace(a, b)
        return GaussianParams(loc, low, xp.where(a > 1, b / xp.where(a > 1, a - 1, 1.0), xp.nan))

    def shifted(self, times: float = 1.0) -> Gaussian:
        """See `Family.shifted`: shape a - 5/2."""
        return self.replace(shape=self.shape - 2.5 * times)

    def unbounded(self, stats: GaussianStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        scale = 0.0 if flat else self.inverse_gamma()[1]
        return no_spread(stats.scatter + scale <= 0, shared=False)

    def mode(self) -> GaussianParams:
        """See `Family.mode`: b / (a + 3/2), the joint mode of mean and variance."""
        a, b = self.inverse_gamma()
        loc, low, _ = self.hyper()
        xp = namespace(a, b)
        return GaussianParams(loc, low, xp.where(a > -1.5, b / xp.where(a > -1.5, a + 1.5, 1.0), xp.nan))

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: Student t for each column."""
        return self._t_log_prob(x, *self.inverse_gamma())

    def log_evidence(self, stats: GaussianStats) -> Array:
        """See `Family.log_evidence`."""
        return self.log_evidence_columns(stats).sum()

    def log_evidence_columns(self, stats: GaussianStats) -> Array:
        """See `Family.log_evidence_columns`."""
        a, b = self.inverse_gamma()
        _, _, kappa = self.hyper()
        *_, q = self._update(stats)
        xp = namespace(a, b, kappa, q)
        n = stats.weight
        cells = log_rising(a, 0.5 * n) - a * xp.log1p(q / b) - 0.5 * n * xp.log(2 * np.pi * (b + q))
        return (cells - 0.5 * xp.log1p(n / kappa)).sum(0)

    def log_loo(self, x: Any, y: Any, stats: GaussianStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: only the row's own class changes."""
        self = self.resolve(stats)
        post = self.condition(stats)
        out = post.log_predictive(x)
        loc, low, kappa = post.hyper()
        a, b = post.inverse_gamma()
        for rows, value, seen, k, w in self._loo_cells(x, y, stats):
            e = (value - loc[k]) - low[k]
            left = kappa[k] - w
            c = w * safe_divide(kappa[k], left)
            share = 1.0 - c * e**2 / (2 * b[k])
            scale = b[k] * share
            for i, j in np.argwhere(seen & (left > 0) & (share < LOST_DIGITS)):
                scale[i, j] = self._scale_without(x, y, rows.start + i, j, elsewhere)
            shape = a[k] - 0.5 * w
            exists = (left > 0) & (shape > 0) & (scale > 0)
            spread = 2 * np.where(exists, scale * (1 + safe_divide(1.0, left)), 1.0)
            shape = np.where(exists, shape, 1.0)
            residual = e * safe_divide(kappa[k], left)
            cell = (
                log_rising(shape, 0.5) - 0.5 * np.log(np.pi * spread) - (shape + 0.5) * np.log1p(residual**2 / spread)
            )
            own = np.where(seen, np.where(exists, cell, np.nan), 0.0).sum(axis=1)
            out[np.arange(x.shape[0])[rows], k] = own
        return out

    def _scale_without(self, x: Any, y: Any, i: int, j: int, elsewhere: Elsewhere) -> float:
        """B' of row i's class in column j, recomputed from the other rows."""
        codes, w = own_class(y)
        others = np.flatnonzero((codes == codes[i]) & (np.arange(len(codes)) != i))
        return float(condition_column(self, x, Labels(codes, w), others, j, elsewhere).scale[codes[i], 0])

    def draw(self, key: Any, n: int) -> GaussianParams:
        """See `Family.draw`."""
        rng = generator(key)
        a, b = self.inverse_gamma()
        return self._draw(rng, b / rng.standard_gamma(a, size=(n, *self.cells)))
