"""Independent normal columns: what the families with a variance for each class, and with a shared one, have in common.

The formulas are those of `bayesgen.families.gaussian`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from bayesgen import _kernels
from bayesgen._math import Array, log_rising, namespace, safe_divide, two_sum
from bayesgen._random import generator
from bayesgen.families import dirichlet
from bayesgen.families.base import (
    Elsewhere,
    Family,
    Labels,
    Names,
    Problem,
    as_weights,
    class_count,
    first_cell,
    own_class,
)
from bayesgen.families.diagonal_scores import LOG_2PI, NEAR, near_log_prob, t_log_prob
from bayesgen.families.moments import (
    align_constant,
    check_scale,
    default_variance,
    difference,
    merge_means,
    overall_mean,
    pilot_means,
    remaining_scatter,
    remove_means,
    update_mean,
    weighted_parts,
)
from bayesgen.learning import REACH, Evidence, maximise_evidence

__all__ = ["Diagonal", "GaussianParams", "GaussianStats", "one_column"]

LOST_DIGITS = 1e-6  # a downdated scale below this share of the whole is recomputed from the rows


class GaussianStats(NamedTuple):
    """Moments of the observed cells of each class and column."""

    weight: Array
    """(K, d)"""
    mean: Array
    """(K, d); 0 in an empty cell"""
    mean_low: Array
    """Rounding error of the mean, (K, d): the mean is mean + mean_low"""
    scatter: Array
    """Weighted sum of squares about the mean, (K, d)"""


class GaussianParams(NamedTuple):
    """Means and variances of each class and column."""

    mean: Array
    """(K, d)"""
    mean_low: Array
    """Rounding error of the mean, (K, d)"""
    variance: Array
    """(K, d); equal rows with a shared variance"""


class NormalChart(NamedTuple):
    r"""Standardised :math:`\ln\sigma^2`, and :math:`\sqrt{\kappa/\sigma^2}\,(\mu - m)`."""

    loc: Array
    low: Array
    kappa: Array
    """(K, d)"""
    log_variance: Array
    spread: Array
    """(K, d), or (d,) with a shared variance"""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Family.chart`."""
        return {"log_variance": self.spread.shape, "mean": self.loc.shape}

    def params(self, u: dict[str, Array]) -> tuple[GaussianParams, Array]:
        """See `Family.chart`."""
        xp = namespace(u["mean"])
        log_variance = self.log_variance + self.spread * u["log_variance"]
        cells = xp.broadcast_to(log_variance, self.loc.shape)
        step = xp.exp(0.5 * cells) / xp.sqrt(self.kappa) * u["mean"]
        mean, low = two_sum(self.loc, self.low + step)
        return GaussianParams(mean, low, xp.exp(cells)), log_variance.sum() + 0.5 * cells.sum()


class Diagonal(Family):
    """What the two families of independent normals share; see the module docstring."""

    loc: Any
    loc_low: Any
    mean_precision: Any
    shape: Any
    scale: Any

    def init(self, x: Any, n_classes: int) -> Any:
        """See `Family.init`."""
        return self.replace(n_classes=n_classes, n_features=x.shape[1])

    def inverse_gamma(self) -> tuple[Array, Array]:
        """Shape and scale of the variances."""
        raise NotImplementedError

    @property
    def cells(self) -> tuple[int, int]:
        """(K, d)."""
        return self.n_classes, self.n_features

    # ---- program

    def observe(self, params: GaussianParams, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`."""
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        normal = dist.Normal((params.mean + params.mean_low)[y], jnp.sqrt(params.variance)[y])
        if x is None:
            return numpyro.sample("x", normal.to_event(1))
        missing = jnp.isnan(x)
        return numpyro.sample("x", normal.mask(~missing).to_event(1), obs=jnp.where(missing, 0.0, x))

    # ---- statistics and likelihood

    def stats(self, x: Any, r: Any, names: Names = None) -> GaussianStats:
        """See `Family.stats`."""
        out = None
        for part, k, labels in weighted_parts(x, as_weights(r)):
            new = self._label_stats(part, labels, names)
            if k is not None:  # soft weights: only class k has weight in this part
                new = GaussianStats(*(np.where(np.arange(self.n_classes)[:, None] == k, s, 0.0) for s in new))
            out = new if out is None else GaussianStats(*(p + q for p, q in zip(out, new, strict=True)))
        return out  # type: ignore[return-value]

    def _label_stats(self, x: Any, r: Labels, names: Names) -> GaussianStats:
        with np.errstate(over="ignore", invalid="ignore"):
            pilot, total, square = _kernels.diagonal_moments(x, r.codes, r.weights, self.n_classes)
            weight = np.repeat(class_count(r, self.n_classes)[:, None], x.shape[1], axis=1)
            if not np.isfinite(total).all():
                weight, pilot, total, square = _kernels.observed_moments(x, r.codes, r.weights, self.n_classes)
            mean, low = pilot_means(pilot, total, weight)
            scatter = np.maximum(square - safe_divide(total, weight, empty=0.0) * total, 0.0)
        check_scale(x, scatter.sum(axis=0), names)
        return GaussianStats(weight, mean, low, scatter)

    def merge(self, a: GaussianStats, b: GaussianStats) -> GaussianStats:
        """See `Family.merge`: Chan's rule, cell by cell."""
        mean, low, delta, share = merge_means(*a[:3], *b[:3])
        return GaussianStats(a.weight + b.weight, mean, low, a.scatter + b.scatter + share * delta**2)

    def remove(self, a: GaussianStats, b: GaussianStats) -> GaussianStats:
        """See `Family.remove`; digits are lost when little is left."""
        n, mean, low, delta, share = remove_means(*a[:3], *b[:3])
        scatter = np.where(n > 0, remaining_scatter(a.scatter, b.scatter + share * delta**2), 0.0)
        mean, low = align_constant(n, mean, low, scatter.sum(axis=0), a.scatter.sum(axis=0))
        return GaussianStats(n, mean, low, scatter)

    def log_prob(self, params: GaussianParams, x: Any) -> Array:
        """See `Family.log_prob`."""
        xp = namespace(x, *params)
        norm = -0.5 * (LOG_2PI + xp.log(params.variance))
        if xp is np:
            centre, low = params.mean[0], params.mean_low[0]
            shift = difference(params.mean, params.mean_low, centre, low)
            if (shift**2 <= NEAR**2 * params.variance).all():
                return near_log_prob(x, centre, low, shift, params.variance, norm)

        def term(residual: Array, k: int) -> Array:
            return norm[k] - 0.5 * residual**2 / params.variance[k]

        return self._sum_cells(x, params.mean, xp.broadcast_to(params.mean_low, params.mean.shape), term, xp)

    def _sum_cells(self, x: Any, mean: Array, low: Array, term: Any, xp: Any) -> Array:
        """Sum over observed columns of term(x - mean_k, k), shape (n, K)."""
        n, d = x.shape
        blocks = _kernels.row_blocks(n, d) if xp is np else [slice(None)]
        out = []
        for block in blocks:
            rows = _kernels.rows(x, block) if xp is np else x
            missing = xp.isnan(rows)
            rows = xp.where(missing, 0.0, rows)
            columns = [
                xp.where(missing, 0.0, term((rows - mean[k]) - low[k], k)).sum(axis=1) for k in range(self.n_classes)
            ]
            out.append(xp.stack(columns, axis=1))
        return xp.concatenate(out) if out else xp.zeros((0, self.n_classes))

    def _mle(self, stats: GaussianStats, variance: Array) -> GaussianParams:
        empty = stats.weight == 0
        mean = np.where(empty, np.nan, stats.mean)
        return GaussianParams(mean, stats.mean_low, variance)

    def log_likelihood(self, params: GaussianParams, stats: GaussianStats) -> Array:
        """See `Family.log_likelihood`."""
        xp = namespace(*params)
        delta = difference(stats.mean, stats.mean_low, params.mean, params.mean_low)
        square = stats.scatter + stats.weight * xp.where(stats.weight > 0, delta, 0.0) ** 2
        v = params.variance
        return -0.5 * (stats.weight * (LOG_2PI + xp.log(v)) + square / v).sum()

    # ---- hyperparameters

    def hyper(self) -> tuple[Array, Array, Array]:
        """Location (high, low) and mean precision as (K, d) arrays.

        Returns
        -------
        loc, loc_low, mean_precision : arrays (K, d)
            The mean is the sum of the first two.
        """
        loc = dirichlet.broadcast(self.loc, self.cells, "mean of the prior")
        low = dirichlet.broadcast(self.loc_low, self.cells, "mean_low of the prior")
        return loc, low, dirichlet.broadcast(self.mean_precision, self.cells, "mean_precision of the prior")

    def resolve(self, stats: GaussianStats) -> Any:
        """See `Family.resolve`: location the overall mean, scale (shape - 1) times the pooled variance."""
        if self.loc is not None and self.scale is not None:
            return self
        changes = {}
        overall = overall_mean(*stats[:3])
        if self.loc is None:
            changes["loc"], changes["loc_low"] = overall
        if self.scale is None:
            v = default_variance(*stats[:3], stats.scatter.sum(axis=0), overall)
            changes["scale"] = (np.asarray(self.shape, dtype=float) - 1.0) * v
        return self.replace(**changes)

    def learn(self, stats: GaussianStats) -> Any:
        """See `Family.learn`: mean precision and shape, with the scale that keeps the data's E[variance]."""
        if not isinstance(self.shape, Evidence):
            return None
        default = self.replace(mean_precision=1.0, shape=2.0, scale=None).resolve(stats)

        def make(t: Any) -> Any:
            kappa, excess = namespace(t).exp(t)
            return default.replace(mean_precision=kappa, shape=1.0 + excess, scale=excess * default.scale)

        learned = maximise_evidence(make, stats, ("mean_precision", "shape - 1"))
        kappa, excess = np.clip(learned.value, np.exp(-REACH), np.exp(REACH))
        return default.replace(mean_precision=kappa, shape=1.0 + excess, scale=excess * default.scale), learned

    def _update(self, stats: GaussianStats) -> tuple[Array, Array, Array, Array]:
        """Posterior location (high, low), mean precision and Q."""
        loc, low, kappa = self.hyper()
        high, rest, delta = update_mean(loc, low, kappa, *stats[:3])
        total = kappa + stats.weight
        q = 0.5 * stats.scatter + 0.5 * safe_divide(kappa * stats.weight, total, empty=0.0) * delta**2
        return high, rest, total, q

    def _t_log_prob(self, x: Any, shape: Array, scale: Array) -> Array:
        """Student t with 2a degrees of freedom and squared scale b (kappa + 1) / (a kappa), (K, d) each."""
        loc, low, kappa = self.hyper()
        xp = namespace(x, loc, low, kappa, shape, scale)
        spread = 2.0 * scale * (1.0 + 1.0 / kappa)
        norm = log_rising(shape, 0.5) - 0.5 * xp.log(np.pi * spread)
        if xp is np and (shape == shape[:, :1]).all():
            return t_log_prob(x, loc, low, spread, shape[:, 0] + 0.5, norm)

        def term(residual: Array, k: int) -> Array:
            return norm[k] - (shape[k] + 0.5) * xp.log1p(residual**2 / spread[k])

        return self._sum_cells(x, loc, low, term, xp)

    def _prior_mean_density(self, params: GaussianParams) -> Array:
        loc, low, kappa = self.hyper()
        xp = namespace(params.mean, params.variance, kappa)
        delta = difference(params.mean, params.mean_low, loc, low)
        return 0.5 * (xp.log(kappa / params.variance) - LOG_2PI - kappa * delta**2 / params.variance).sum()

    def _sample_means(self, variance: Any) -> GaussianParams:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        loc, low, kappa = self.hyper()
        with (
            numpyro.plate("class", self.n_classes, dim=-2),
            numpyro.plate("feature", self.n_features, dim=-1),
        ):
            mean = numpyro.sample("mean", dist.Normal(loc + low, jnp.sqrt(variance / kappa)))
        return GaussianParams(mean, jnp.zeros(()), jnp.broadcast_to(variance, self.cells))

    def _draw(self, rng: np.random.Generator, variance: np.ndarray) -> GaussianParams:
        loc, low, kappa = self.hyper()
        noise = rng.standard_normal((len(variance), *self.cells)) * np.sqrt(variance / kappa)
        mean, rest = two_sum(loc, low + noise)
        return GaussianParams(mean, rest, np.broadcast_to(variance, mean.shape))

    def pool_classes(self, stats: GaussianStats) -> GaussianStats:
        """See `Family.pool_classes`: Chan's rule."""
        parts = [GaussianStats(*(s[k : k + 1] for s in stats)) for k in range(len(stats.weight))]
        return functools.reduce(self.merge, parts)

    # ---- sampling

    def variables(self, params: GaussianParams) -> dict[str, Array]:
        """See `Family.variables`: ``mean`` and ``variance``."""
        variance = params.variance[..., 0, :] if len(self.dims()["variance"]) == 1 else params.variance
        return {"mean": params.mean + params.mean_low, "variance": variance}

    def from_variables(self, values: dict[str, Array]) -> GaussianParams:
        """See `Family.from_variables`."""
        mean, variance = values["mean"], values["variance"]
        xp = namespace(mean, variance)
        if len(self.dims()["variance"]) == 1:
            variance = variance[..., None, :]
        return GaussianParams(mean, xp.zeros_like(mean), xp.broadcast_to(variance, mean.shape))

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        return {"mean": ("class", "feature"), "variance": ("class", "feature")}

    def weak(self) -> Any:
        """See `Family.weak`: neither scale nor mean pulls, also where the scatter is nearly singular."""
        scale, precision = (1e-6 * np.asarray(v, dtype=float) for v in (self.scale, self.mean_precision))
        return self.replace(scale=scale, mean_precision=precision)

    def chart(self) -> NormalChart:
        """See `Family.chart`."""
        a, b = self.inverse_gamma()
        loc, spread = dirichlet.log_gamma_moments(a)
        return NormalChart(*self.hyper(), np.log(b) - loc, spread)

    def stats_shapes(self) -> Any:
        """See `Family.stats_shapes`."""
        return GaussianStats(*[self.cells] * 4)

    def undefined(self, params: GaussianParams, stats: GaussianStats, needed: np.ndarray) -> Problem | None:
        """See `Family.undefined`."""
        cell = first_cell(np.isnan(params.mean), needed)
        if cell is not None:
            return Problem("class {cls} has no observed value of {columns}: its mean is 0/0", cell[0], [cell[1]])
        cell = first_cell(~(params.variance > 0), needed)
        if cell is None:
            return None
        n = stats.weight[cell]
        missing = stats.weight[cell[0]].max() - n
        holes = f" ({missing:g} NaN left out)" if missing > 0 else ""
        return Problem(
            f"the variance of {{columns}} in class {{cls}} is zero or undefined, from a weight of {n:g} observed "
            f"values{holes}: it has no density. Use a prior (inference='mean' or 'exact'), or drop the column",
            cell[0],
            [cell[1]],
        )

    def scale_stats(self, stats: GaussianStats, factor: float) -> GaussianStats:
        """See `Family.scale_stats`."""
        return stats._replace(weight=factor * stats.weight, scatter=factor * stats.scatter)

    def tempered(self, power: float) -> Any:
        """See `Family.tempered`; each variance has exponent -(a + 1), and -1/2 more for each mean that it scales."""
        a, b = self.inverse_gamma()
        excess = 1.0 + 0.5 * self.n_classes * self.n_features / a.size
        precision = power * self.hyper()[2]
        return self.replace(mean_precision=precision, shape=power * (a + excess) - excess, scale=power * b)

    def marginals(self) -> dict[str, Any]:
        """See `Family.marginals`."""
        from scipy.stats import invgamma, t

        a, b = self.inverse_gamma()
        loc, low, kappa = self.hyper()
        dims = self.dims()
        return {
            "mean": (dims["mean"], t(2.0 * a, loc + low, np.sqrt(b / (a * kappa)))),
            "variance": (dims["variance"], invgamma(a, scale=b)),
        }

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """See `Family.improper`."""
        a, b = (np.broadcast_to(v, self.cells) for v in self.inverse_gamma())
        _, _, kappa = self.hyper()
        finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(kappa)
        cell = first_cell(~finite, needed)
        if cell is not None:
            return Problem("the prior of {columns} in class {cls} has values too large for float64", cell[0], [cell[1]])
        cell = first_cell(~((a > 0) & (b > 0) & (kappa > 0)), needed)
        if cell is None:
            return None
        k, j = cell
        return Problem(
            f"the normal-inverse-gamma of {{columns}} in class {{cls}} is improper: mean precision {kappa[k, j]:g}, "
            f"shape {a[k, j]:g}, scale {b[k, j]:g} must all be positive (too few distinct rows for this prior)",
            k,
            [j],
        )

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> np.ndarray:
        """See `Family.sample`."""
        rng = generator(key)
        noise = rng.standard_normal((len(y), self.n_features))
        if params is not None:
            return params.mean[y] + (params.mean_low[y] + noise * np.sqrt(params.variance[y]))
        a, b = (np.broadcast_to(v, self.cells) for v in self.inverse_gamma())
        loc, low, kappa = self.hyper()
        variance = b[y] / rng.standard_gamma(a[y])
        return loc[y] + (low[y] + noise * np.sqrt(variance * (1.0 + 1.0 / kappa[y])))

    # ---- leave-one-out

    def _loo_cells(self, x: Any, y: Any, stats: GaussianStats) -> Any:
        """Blocks of rows with what the downdates need: slice, values, seen, codes, weights."""
        codes, w = own_class(y)
        for rows in _kernels.row_blocks(x.shape[0], x.shape[1] * 4):
            block = _kernels.rows(x, rows).astype(float)
            seen = ~np.isnan(block)
            yield rows, np.where(seen, block, 0.0), seen, codes[rows], w[rows, None]


def one_column(prior: Diagonal, j: int) -> dict[str, Any]:
    """The hyperparameters of one column."""
    names = ("loc", "loc_low", "mean_precision", "shape", "scale")
    values = {name: np.asarray(getattr(prior, name), dtype=float) for name in names}
    return {name: v[..., [j]] if v.ndim else v for name, v in values.items()}


def condition_column(prior: Any, x: Any, y: Labels, rows: np.ndarray, j: int, elsewhere: Elsewhere) -> Any:
    """The posterior of one column given some of the rows x, and those elsewhere."""
    one = prior.replace(n_features=1, **one_column(prior, j))
    weights = None if y.weights is None else y.weights[rows]
    stats = one.stats(_kernels.rows(x, rows)[:, [j]], Labels(y.codes[rows], weights))
    if elsewhere is not None:
        stats = one.merge(stats, GaussianStats(*(s[:, [j]] for s in elsewhere())))
    return one.condition(stats)
