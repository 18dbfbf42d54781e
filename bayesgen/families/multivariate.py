"""What normal classes with a full covariance have in common; see `bayesgen.families.multivariate_gaussian`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesgen import _kernels
from bayesgen._linalg import dependent_columns, inverse_factor, inverse_lower
from bayesgen._math import Array, namespace, safe_divide, special, two_sum
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
    dense,
    no_spread,
    own_class,
)
from bayesgen.families.covariance_chart import CovarianceChart, FactoredParams, factor_of
from bayesgen.families.diagonal import Diagonal, GaussianStats
from bayesgen.families.diagonal_scores import LOG_2PI
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
from bayesgen.families.normal_scores import (
    Formula,
    log_likelihood_by_pattern,
    normal_formula,
    score,
    t_formula,
)
from bayesgen.families.normal_statistics import (
    MultivariateGaussianStats,
    PatternStats,
    Stats,
    align,
    check_contained,
    class_weight,
    column_stats,
    has_missing,
    moments_by_pattern,
    move_classes,
    outer,
    refuse_missing,
    simplify,
    with_something_observed,
)
from bayesgen.learning import REACH, Evidence, maximise_evidence

__all__ = ["Multivariate", "MultivariateGaussianParams"]


class MultivariateGaussianParams(NamedTuple):
    """Class means and covariance."""

    mean: Array
    """(K, d)"""
    mean_low: Array
    """Rounding error of the mean, (K, d)"""
    covariance: Array
    """(d, d), or (K, d, d)"""


def _means(stats: Stats) -> tuple[Array, Array]:
    return stats.mean, stats.mean_low


class Multivariate(Family):
    """What the two covariance structures share; see the module docstring."""

    loc: Any
    loc_low: Any
    mean_precision: Any
    df: Any
    scale: Any

    def init(self, x: Any, n_classes: int) -> Any:
        """See `Family.init`."""
        return self.replace(n_classes=n_classes, n_features=x.shape[1])

    # ---- hyperparameters

    def hyper(self) -> tuple[Array, Array, Array]:
        """Location (high, low), (K, d), and mean precision, (K,).

        Returns
        -------
        loc, loc_low : arrays (K, d)
            The mean is their sum.
        mean_precision : array (K,)
            In rows.
        """
        size = (self.n_classes, self.n_features)
        loc = dirichlet.broadcast(self.loc, size, "mean of the prior")
        low = dirichlet.broadcast(self.loc_low, size, "mean_low of the prior")
        xp = namespace(self.mean_precision)
        return loc, low, xp.broadcast_to(xp.asarray(self.mean_precision, dtype=float), (self.n_classes,))

    def _pooled(self, scatter: Array) -> Array:
        return scatter

    def resolve(self, stats: MultivariateGaussianStats) -> Any:
        """See `Family.resolve`: location the overall mean, df d + 2, E[covariance] the pooled variances."""
        if not any(part is None for part in (self.loc, self.df, self.scale)):
            return self
        changes: dict[str, Any] = {}
        d = self.n_features
        columns = column_stats(stats)
        overall = overall_mean(*columns[:3])
        if self.loc is None:
            changes["loc"], changes["loc_low"] = overall
        if self.df is None:
            changes["df"] = d + 2.0
        if self.scale is None:
            df = np.asarray(changes.get("df", self.df), dtype=float)
            v = default_variance(*columns[:3], columns.scatter.sum(axis=0), overall)
            changes["scale"] = (df[..., None, None] - d - 1.0) * np.diag(v)
        return self.replace(**changes)

    def learn(self, stats: MultivariateGaussianStats) -> Any:
        """See `Family.learn`: mean precision and degrees of freedom, with the scale that keeps E[covariance]."""
        if not isinstance(self.df, Evidence):
            return None
        d = self.n_features
        default = self.replace(mean_precision=1.0, df=d + 2.0, scale=None).resolve(stats)

        def make(t: Any) -> Any:
            kappa, excess = namespace(t).exp(t)
            return default.replace(mean_precision=kappa, df=d + 1.0 + excess, scale=excess * default.scale)

        learned = maximise_evidence(make, stats, ("mean_precision", "df - n_features - 1"))
        kappa, excess = np.clip(learned.value, np.exp(-REACH), np.exp(REACH))
        return default.replace(mean_precision=kappa, df=d + 1.0 + excess, scale=excess * default.scale), learned

    def _update(self, stats: MultivariateGaussianStats) -> tuple[Array, Array, Array, Array]:
        """Posterior location (high, low), mean precision, and the scale each class adds, (K, d, d) less S."""
        loc, low, kappa = self.hyper()
        n = stats.weight[:, None]
        high, rest, delta = update_mean(loc, low, kappa[:, None], n, stats.mean, stats.mean_low)
        total = kappa + stats.weight
        share = safe_divide(kappa * stats.weight, total, empty=0.0)
        return high, rest, total, share[:, None, None] * outer(delta)

    # ---- program

    def _sample_covariance(self) -> Any:
        """Site ``covariance``, (d, d) or (K, d, d), and its inverse factor."""
        raise NotImplementedError

    def prior(self) -> MultivariateGaussianParams:
        """Sites ``covariance`` and ``mean`` (K, d)."""
        import jax.numpy as jnp
        import numpyro

        from bayesgen.distributions import NormalVector

        covariance = self._sample_covariance()
        loc, low, kappa = self.hyper()
        with numpyro.plate("class", self.n_classes, dim=-1):
            spread = NormalVector(jnp.asarray(loc + low), covariance / kappa[:, None, None])
            mean = numpyro.sample("mean", spread)
        return MultivariateGaussianParams(mean, jnp.zeros(()), covariance)

    def observe(self, params: MultivariateGaussianParams, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`; NaN cells are integrated out, unless x is traced."""
        import jax
        import numpyro

        from bayesgen.distributions import NormalVector, ObservedCells

        rows = NormalVector(params.mean + params.mean_low, params.covariance).at_classes(y)
        if x is not None and not isinstance(x, jax.core.Tracer) and has_missing(np.asarray(x)):
            rows = ObservedCells(rows, ~np.isnan(np.asarray(x)))
        return numpyro.sample("x", rows, obs=x)

    # ---- statistics and likelihood

    _moments: Callable[..., tuple[np.ndarray, ...]]

    def stats(self, x: Any, r: Any, names: Names = None) -> Stats:
        """See `Family.stats`; `PatternStats` of rows with missing cells."""
        out: Any = None
        for part, k, labels in weighted_parts(x, as_weights(r)):
            new = self._label_stats(part, labels, names)
            if k is not None:  # soft weights: only class k has weight in this part
                mine = (np.arange(self.n_classes) == k)[:, None]
                mean, low = np.where(mine, new.mean, 0.0), np.where(mine, new.mean_low, 0.0)
                new = new._replace(mean=mean, mean_low=low)
            out = new if out is None else self.merge(out, new)
        return out

    def _label_stats(self, x: Any, r: Labels, names: Names) -> Stats:
        if has_missing(x):
            x, r = with_something_observed(x, r)
            if np.isnan(x).any():
                with np.errstate(over="ignore", invalid="ignore"):
                    by_pattern = moments_by_pattern(x, r, self.n_classes, len(self._scatter_shape()) == 2)
                check_scale(x, column_stats(by_pattern).scatter.sum(axis=0), names)
                return by_pattern
        weight = class_count(r, self.n_classes)
        with np.errstate(over="ignore", invalid="ignore"):
            pilot, total, scatter = type(self)._moments(x, r.codes, r.weights, self.n_classes)
            mean, low = pilot_means(pilot, total, weight[:, None])
            scatter = self._centre(scatter, outer(total) * safe_divide(1.0, weight, empty=0.0)[:, None, None])
        check_scale(x, np.diagonal(self._pooled(scatter)), names)
        return MultivariateGaussianStats(weight, mean, low, scatter)

    def _centre(self, scatter: Array, shift: Array) -> Array:
        raise NotImplementedError

    def merge(self, a: Stats, b: Stats) -> Stats:
        """See `Family.merge`: Chan's rule, within each pattern of observed cells."""
        if isinstance(a, PatternStats) or isinstance(b, PatternStats):
            a, b = align(a, b)
        mean, low, delta, share = merge_means(a.weight[..., None], *_means(a), b.weight[..., None], *_means(b))
        between = self._pool_classes(share[..., None] * outer(delta))
        out = a._replace(weight=a.weight + b.weight, mean=mean, mean_low=low, scatter=a.scatter + b.scatter + between)
        return simplify(out) if isinstance(out, PatternStats) else out

    def remove(self, a: Stats, b: Stats) -> Stats:
        """See `Family.remove`; digits are lost when little is left."""
        if isinstance(a, PatternStats) or isinstance(b, PatternStats):
            a, b = align(a, b)
            check_contained(a, b)
        n, mean, low, delta, share = remove_means(a.weight[..., None], *_means(a), b.weight[..., None], *_means(b))
        leaving = b.scatter + self._pool_classes(share[..., None] * outer(delta))
        diagonal = remaining_scatter(*(np.diagonal(m, axis1=-2, axis2=-1) for m in (a.scatter, leaving)))
        kept = (diagonal > 0)[..., :, None] & (diagonal > 0)[..., None, :]
        scatter = np.where(kept & self._occupied(n[..., 0]), a.scatter - leaving, 0.0)
        scatter = 0.5 * (scatter + np.swapaxes(scatter, -1, -2))
        out = a._replace(weight=n[..., 0], mean=mean, mean_low=low, scatter=scatter)
        if isinstance(out, PatternStats):
            return simplify(out)
        before, after = (np.diagonal(self._pooled(m)) for m in (a.scatter, scatter))
        mean, low = align_constant(n, mean, low, after, before)
        return out._replace(mean=mean, mean_low=low)

    def reclass(self, stats: Stats, positions: np.ndarray, n_classes: int) -> Any:
        """See `Family.reclass`."""
        if isinstance(stats, PatternStats):
            return move_classes(stats, positions, n_classes)
        return super().reclass(stats, positions, n_classes)

    def _pool_classes(self, matrices: Array) -> Array:
        return matrices

    def _occupied(self, weight: Array) -> Array:
        """Where a scatter has rows, to broadcast with it."""
        raise NotImplementedError

    def log_prob(self, params: MultivariateGaussianParams, x: Any) -> Array:
        """See `Family.log_prob`."""
        xp = namespace(x, *params)
        low = xp.broadcast_to(params.mean_low, params.mean.shape)
        factor = factor_of(params) if hasattr(params, "inverse") else None
        return score(x, params.mean, low, params.covariance, normal_formula, xp, factor)

    def _mle_means(self, stats: MultivariateGaussianStats) -> Array:
        return np.where(stats.weight[:, None] == 0, np.nan, stats.mean)

    def log_likelihood(self, params: MultivariateGaussianParams, stats: Stats) -> Array:
        """See `Family.log_likelihood`; of the observed cells, terms without parameters too."""
        if isinstance(stats, PatternStats):
            return log_likelihood_by_pattern(params.mean, params.mean_low, params.covariance, stats)
        xp = namespace(*params)
        inverse, logdet = factor_of(params)
        delta = difference(stats.mean, stats.mean_low, params.mean, params.mean_low)
        delta = xp.where(stats.weight[:, None] > 0, delta, 0.0)
        about = stats.scatter + self._pool_classes(stats.weight[:, None, None] * outer(delta))
        weight = stats.weight if inverse.ndim == 3 else stats.weight.sum()
        trace = (inverse @ about * inverse).sum((-1, -2))
        return -0.5 * (weight * (self.n_features * LOG_2PI + logdet) + trace).sum()

    def _log_mean_density(self, params: MultivariateGaussianParams, inverse: Array, logdet: Array) -> Array:
        loc, low, kappa = self.hyper()
        xp = namespace(params.mean, kappa)
        z = difference(params.mean, params.mean_low, loc, low)[:, None, :] @ xp.swapaxes(inverse, -1, -2)
        d = self.n_features
        each = d * (xp.log(kappa) - LOG_2PI) - logdet - kappa * (z * z).sum((-1, -2))
        return 0.5 * each.sum()

    def _log_inverse_wishart(self, df: Array, scale: Array, inverse: Array, logdet: Array) -> Array:
        """Log density of inverse-Wishart(df, scale) where the inverse factor and ln|.| are given."""
        xp = namespace(df, scale, inverse)
        multigammaln = special(xp).multigammaln
        d = self.n_features
        _, log_scale = inverse_factor(scale)
        trace = (inverse @ scale * inverse).sum((-1, -2))
        log_norm = 0.5 * df * log_scale - 0.5 * df * d * xp.log(2.0) - multigammaln(df / 2, d)
        return (log_norm - 0.5 * (df + d + 1) * logdet - 0.5 * trace).sum()

    @cached_property
    def _factor(self) -> tuple[Array, Array]:
        """Inverse factor and log determinant of the scale matrix."""
        return inverse_factor(self.inverse_wishart()[1])

    def has_factor(self) -> bool:
        """See `Family.has_factor`."""
        try:
            return bool(np.isfinite(self._factor[1]).all())
        except np.linalg.LinAlgError:
            return False

    def inverse_wishart(self) -> tuple[Array, Array]:
        """Degrees of freedom and scale matrix: () and (d, d), or (K,) and (K, d, d)."""
        raise NotImplementedError

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: multivariate t."""
        loc, low, kappa = self.hyper()
        df, scale = self.inverse_wishart()
        xp = namespace(x, loc, low, kappa, df, scale)
        formula = self._t_formula if xp is np else t_formula(df - self.n_features + 1.0, kappa)
        return score(x, loc, low, scale, formula, xp, self._factor if namespace(scale) is np else None)

    @cached_property
    def _t_formula(self) -> Formula:
        """See `log_predictive`; it keeps its constants."""
        return t_formula(self.inverse_wishart()[0] - self.n_features + 1.0, self.hyper()[2])

    def _inverse_wishart_draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Square roots B with B'B ~ inverse-Wishart, (n, ..., d, d), by Bartlett's decomposition."""
        df, scale = self.inverse_wishart()
        d = self.n_features
        shape = (n, *np.shape(df))
        bartlett = np.zeros((*shape, d, d))
        below = np.tril_indices(d, -1)
        bartlett[..., below[0], below[1]] = rng.standard_normal((*shape, len(below[0])))
        diagonal = np.arange(d)
        bartlett[..., diagonal, diagonal] = np.sqrt(
            2.0 * rng.standard_gamma((np.asarray(df)[..., None] - diagonal) / 2, size=(*shape, d))
        )
        upper = np.swapaxes(np.linalg.cholesky(scale), -1, -2)
        return np.linalg.solve(bartlett, np.broadcast_to(upper, bartlett.shape))

    def draw(self, key: Any, n: int) -> MultivariateGaussianParams:
        """See `Family.draw`: a covariance, then the means given it."""
        rng = generator(key)
        loc, low, kappa = self.hyper()
        root = self._inverse_wishart_draws(rng, n)
        noise = rng.standard_normal((n, self.n_classes, 1, self.n_features)) / np.sqrt(kappa)[:, None, None]
        step = (noise @ (root[:, None] if root.ndim == 3 else root))[:, :, 0]
        mean, rest = two_sum(loc, low + step)
        return MultivariateGaussianParams(mean, rest, np.swapaxes(root, -1, -2) @ root)

    def _columns_model(self) -> tuple[type[Diagonal], Array, Array]:
        """Family of the columns alone, and shape and scale of their variances: IW(nu, Psi) has IG marginals."""
        raise NotImplementedError

    def pool_classes(self, stats: MultivariateGaussianStats) -> GaussianStats:
        """See `Family.pool_classes`: of the columns alone."""
        kind, _, _ = self._columns_model()
        return kind().pool_classes(column_stats(stats))

    def log_evidence_columns(self, stats: Any) -> Array:
        """See `Family.log_evidence_columns`: of the marginal of each column."""
        columns = stats if isinstance(stats, GaussianStats) else column_stats(stats)
        return self._columns().log_evidence_columns(columns)

    def _columns(self) -> Diagonal:
        """The family of the columns alone, each by its marginal."""
        kind, shape, scale = self._columns_model()
        loc, low, kappa = self.hyper()
        family: Any = kind
        return family(loc, low, kappa[:, None], shape, scale, self.n_classes, self.n_features)

    # ---- sampling

    def variables(self, params: Any) -> dict[str, Array]:
        """See `Family.variables`: ``mean`` and ``covariance``."""
        return {"mean": params.mean + params.mean_low, "covariance": params.covariance}

    def from_variables(self, values: dict[str, Array]) -> MultivariateGaussianParams:
        """See `Family.from_variables`."""
        mean = values["mean"]
        return MultivariateGaussianParams(mean, namespace(mean).zeros_like(mean), values["covariance"])

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        kinds = ("class",) if len(self._scatter_shape()) == 3 else ()
        return {"mean": ("class", "feature"), "covariance": (*kinds, "feature", "feature_bis")}

    def factored(self, params: MultivariateGaussianParams) -> FactoredParams:
        """See `Family.factored`."""
        inverse, logdet = inverse_factor(params.covariance)
        return FactoredParams(*params, inverse, logdet)

    def weak(self) -> Any:
        """See `Family.weak`: neither scale nor mean pulls, also where the scatter is nearly singular."""
        scale, precision = (1e-6 * np.asarray(v, dtype=float) for v in (self.scale, self.mean_precision))
        return self.replace(scale=scale, mean_precision=precision)

    def chart(self) -> CovarianceChart:
        """See `Family.chart`."""
        df, scale = self.inverse_wishart()
        whiten, _ = inverse_factor(scale / df[..., None, None])
        df = np.asarray(df, dtype=float)
        return CovarianceChart(*self.hyper(), whiten, inverse_lower(whiten), 1.0 / np.sqrt(2.0 * df), 1.0 / np.sqrt(df))

    def stats_shapes(self) -> Any:
        """See `Family.stats_shapes`."""
        k, d = self.n_classes, self.n_features
        return MultivariateGaussianStats((k,), (k, d), (k, d), self._scatter_shape())

    def _scatter_shape(self) -> tuple[int, ...]:
        return self.n_classes, self.n_features, self.n_features

    def undefined(self, params: Any, stats: Any, needed: np.ndarray) -> Problem | None:
        """See `Family.undefined`."""
        empty = np.flatnonzero(np.isnan(params.mean).any(axis=1) & needed)
        if empty.size:
            return Problem("class {cls} has no rows: its mean is 0/0", int(empty[0]))
        matrices = params.covariance if params.covariance.ndim == 3 else params.covariance[None]
        for k, matrix in enumerate(matrices):
            if len(matrices) > 1 and not needed[k]:
                continue
            finite = np.isfinite(matrix).all()
            columns = dependent_columns(matrix) if finite else list(range(self.n_features))
            if columns:
                return self._singular(k if params.covariance.ndim == 3 else None, columns, stats)
        return None

    def _singular(self, k: int | None, columns: list[int], stats: Any) -> Problem:
        weight = class_weight(stats)
        n = weight.sum() if k is None else weight[k]
        whose = "the shared covariance" if k is None else "the covariance of class {cls}"
        return Problem(
            f"{whose} is singular: {{columns}} are constant or linearly dependent within the classes "
            f"({n:g} rows, {self.n_features} columns). Use a prior (inference='mean' or 'exact'), or drop columns",
            k,
            columns,
        )

    def scale_stats(self, stats: Stats, factor: float) -> Stats:
        """See `Family.scale_stats`."""
        return stats._replace(weight=factor * stats.weight, scatter=factor * stats.scatter)

    def tempered(self, power: float) -> Any:
        """See `Family.tempered`; each covariance has exponent -(nu + d + 1)/2, and -1/2 for each mean it scales."""
        df, scale = self.inverse_wishart()
        excess = self.n_features + 1.0 + self.n_classes / max(df.size, 1)
        precision = power * self.hyper()[2]
        return self.replace(mean_precision=precision, df=power * (df + excess) - excess, scale=power * scale)

    def marginals(self) -> dict[str, Any]:
        """See `Family.marginals`."""
        return self._columns().marginals()

    def unbounded(self, stats: MultivariateGaussianStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        scatter = stats.scatter if flat else stats.scatter + self.inverse_wishart()[1]
        shared = scatter.ndim == 2
        matrices = scatter[None] if shared else scatter
        bad = np.zeros(matrices.shape[:2], dtype=bool)
        for k, matrix in enumerate(matrices):
            bad[k, dependent_columns(matrix)] = True
        return no_spread(bad, shared)

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """See `Family.improper`."""
        _, _, kappa = self.hyper()
        df, scale = self.inverse_wishart()
        d = self.n_features
        if not (np.isfinite(scale).all() and np.isfinite(df).all() and np.isfinite(kappa).all()):
            return Problem("the prior has values too large for float64")
        bad = np.flatnonzero(~(kappa > 0) & needed)
        if bad.size:
            return Problem("the mean of class {cls} has an improper distribution: mean precision 0", int(bad[0]))
        shared = scale.ndim == 2
        for k, (nu, matrix) in enumerate(zip(np.atleast_1d(df), scale[None] if shared else scale, strict=True)):
            if not shared and not needed[k]:
                continue
            whose = "the shared covariance" if shared else "the covariance of class {cls}"
            if not nu > d - 1:
                text = f"{whose} has an improper distribution: df {nu:g} must be above n_features - 1 = {d - 1}"
                return Problem(text, None if shared else k)
            columns = dependent_columns(matrix)
            if columns:
                text = f"{whose} has an improper distribution: its scale is singular in {{columns}}"
                return Problem(text, None if shared else k, columns)
        return None

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> np.ndarray:
        """See `Family.sample`."""
        rng = generator(key)
        noise = rng.standard_normal((len(y), self.n_features))
        if params is not None:
            root, loc, low = np.linalg.cholesky(params.covariance), params.mean, params.mean_low
            spread = np.ones(len(y))
        else:
            loc, low, kappa = self.hyper()
            df, scale = self.inverse_wishart()
            eta = np.broadcast_to(df - self.n_features + 1.0, (self.n_classes,))[y]
            root = np.linalg.cholesky(scale)
            spread = np.sqrt((1.0 + 1.0 / kappa[y]) / rng.chisquare(eta))
        root = root if root.ndim == 2 else root[y]
        return loc[y] + (low[y] + spread[:, None] * (root @ noise[..., None])[..., 0])

    # ---- leave-one-out

    def _recompute(self, x: Any, codes: np.ndarray, w: np.ndarray, i: int, elsewhere: Elsewhere) -> np.ndarray:
        """Row i predicted from statistics of the other rows: where a downdate has lost its digits."""
        others = np.flatnonzero(np.arange(len(codes)) != i)
        rest = self.stats(_kernels.rows(x, others), Labels(codes[others], w[others]))
        post = self.condition(rest if elsewhere is None else self.merge(rest, elsewhere()))
        if post.improper(np.ones(self.n_classes, dtype=bool)) is not None:
            return np.full(self.n_classes, np.nan)
        return post.log_predictive(_kernels.rows(x, np.array([i])))[0]

    def log_loo(self, x: Any, y: Any, stats: MultivariateGaussianStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: a rank-one downdate of the scale matrix (determinant lemma)."""
        refuse_missing(stats, "leave-one-out")
        prior = self.resolve(stats)
        codes, w = own_class(y)
        if has_missing(x):
            return self._loo_of_observed(x, codes, w, stats, elsewhere)
        post = prior.condition(stats)
        lost: list[int] = []

        def work(block: slice, buffers: _kernels.Buffers) -> np.ndarray:
            rows = np.asarray(_kernels.rows(x, block), dtype=float)
            with np.errstate(all="ignore"):
                out, gone = post._downdate(rows, codes[block], w[block], buffers)
            lost.extend(block.start + np.flatnonzero(gone))
            return out

        with _kernels.blas_beside(len(codes)):
            out = _kernels.score_blocks(work, len(codes), self.n_classes, self.n_features)
        for i in lost:
            out[i] = prior._recompute(x, codes, w, i, elsewhere)
        return out

    def _loo_of_observed(
        self, x: Any, codes: np.ndarray, w: np.ndarray, stats: Any, elsewhere: Elsewhere
    ) -> np.ndarray:
        """Rows with nothing observed have density 1 in every class, whatever was learned."""
        rows, labels = with_something_observed(x, Labels(codes, w))
        if np.isnan(rows).any():
            raise ValueError("these rows were not all learned: some have missing cells, and no such row was learned")
        out = np.zeros((x.shape[0], self.n_classes))
        out[~np.isnan(dense(x)).all(axis=1)] = self.log_loo(rows, labels, stats, elsewhere)
        return out

    def _own_parts(self, k: np.ndarray, w: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, ...]:
        """Kappa - w, its ratio, c, s and the downdated own form of each row; q is |W(x - m_k)|^2, (n,)."""
        _, _, kappa = self.hyper()
        left = kappa[k] - w
        ratio = safe_divide(kappa[k], left)
        c = w * ratio
        s = 1.0 - c * q
        safe = np.where(s > 0, s, 1.0)
        return left, c, s, ratio**2 * q / safe, safe
