r"""Poisson counts with Gamma rates.

.. math::

    x_j \mid y{=}k \sim \mathrm{Poisson}(\lambda_{kj}), \qquad \lambda_{kj} \sim \mathrm{Gamma}(a, \text{rate } b).

Statistics are the sum of the counts and the weight of the observed cells of each class and column. The
posterior is :math:`\mathrm{Gamma}(a + S_{kj}, b + n_{kj})`, the exact predictive the negative binomial

.. math::

    \ln p(x) = \ln (a')_x - \ln x! - a' \ln(1 + 1/b') - x \ln(1 + b').

Non-negative reals are accepted, with x! read as Gamma(x + 1). [Gelman et al. 2013, BDA3 section 2.6]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesgen import _kernels
from bayesgen._math import (
    Array,
    log_factorial,
    log_negative_binomial,
    log_poisson,
    log_rising,
    namespace,
    safe_divide,
    safe_log,
    special,
)
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
    class_sums,
    contract,
    dense,
    family,
    first_cell,
    own_class,
    refuse_columns,
    row_sums,
    small_cell,
    split_missing,
    static,
)
from bayesgen.learning import REACH, Evidence, maximise_evidence

NO_ROWS = "class {cls} has no observed value of {columns}: its mean count is 0/0"

LARGE = 1e4  # columns with such counts are summed cell by cell, in a form without cancellation

__all__ = ["Poisson", "PoissonParams", "PoissonStats"]


def _large_columns(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Columns with counts so large that x ln(rate), rate and ln x! lose digits against each other; the others."""
    none = np.zeros(0, dtype=np.int64)
    if not sp.issparse(x) and namespace(x) is not np:
        return none, none
    values = x.data if sp.issparse(x) else np.asarray(x)
    if not np.fmax.reduce(values, axis=None, initial=0.0) > LARGE:
        return none, none
    large = np.unique(x.indices[values > LARGE]) if sp.issparse(x) else np.flatnonzero((values > LARGE).any(axis=0))
    return large, np.setdiff1d(np.arange(x.shape[1]), large)


def _cell_sums(x: Any, cell: Callable[..., np.ndarray], *params: np.ndarray) -> np.ndarray:
    """Sums over the observed columns of cell(x, parameters of class k), shape (n, K)."""
    out = np.empty((x.shape[0], len(params[0])))
    for block in _kernels.row_blocks(x.shape[0], x.shape[1]):
        value = np.asarray(dense(x[block]), dtype=float)
        seen = ~np.isnan(value)
        for k, own in enumerate(zip(*params, strict=True)):
            out[block, k] = np.where(seen, cell(np.where(seen, value, 0.0), *own), 0.0).sum(axis=1)
    return out


class PoissonStats(NamedTuple):
    """Weighted sums of each class and column."""

    total: Array
    """Sum of the counts, (K, d)"""
    observed: Array
    """Weight of the observed cells, (K, d)"""
    log_base: Array
    """Weighted sum of ln x! over all observed cells, ()"""


class PoissonParams(NamedTuple):
    """Rates of each class and column."""

    rate: Array
    """(K, d), in counts per row"""


class LogRateChart(NamedTuple):
    """Standardised log rates."""

    loc: Array
    spread: Array

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Family.chart`."""
        return {"log_rate": self.loc.shape}

    def params(self, u: dict[str, Array]) -> tuple[PoissonParams, Array]:
        """See `Family.chart`: d rate = rate d(log rate)."""
        log_rate = self.loc + self.spread * u["log_rate"]
        return PoissonParams(namespace(log_rate).exp(log_rate)), log_rate.sum()


def _counts(rng: np.random.Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson draws; of rates beyond 2^53, where floats are whole and counts outgrow 64 bits, by the normal limit.

    There the two distributions differ by a part in 10^8 (Berry 1941, Esseen 1942).
    """
    large = rate > 2.0**53
    out = rng.poisson(np.where(large, 0.0, rate)).astype(float)
    if large.any():
        out[large] = rate[large] + np.sqrt(rate[large]) * rng.standard_normal(int(large.sum()))
    return out


@family
class Poisson(Family):
    """Poisson columns with Gamma(shape, rate) rates; see the module docstring.

    Parameters
    ----------
    shape, rate : float or array, (d,) or (K, d)
        Gamma shape and rate of the prior. A posterior holds (K, d) arrays.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Poisson, Labels
    >>> x, r = np.array([[1.0], [3.0]]), Labels(np.array([0, 1]))
    >>> prior = Poisson(shape=1.0, rate=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.shape.ravel().tolist(), posterior.rate.ravel().tolist()
    ([2.0, 4.0], [2.0, 2.0])
    """

    shape: Any = 1.0
    rate: Any = 1.0
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def hyper(self) -> tuple[Array, Array]:
        """Shape and rate as (K, d) arrays.

        Returns
        -------
        shape, rate : arrays (K, d)
            Of the gamma distribution.
        """
        size = (self.n_classes, self.n_features)
        return dirichlet.broadcast(self.shape, size, "shape of the prior"), dirichlet.broadcast(
            self.rate, size, "rate of the prior"
        )

    def check(self, x: Any, names: Names = None) -> None:
        """See `Family.check`: counts are not negative (NaN: not known)."""
        refuse_columns(
            x,
            lambda v: v < 0,
            "Negative values in data: {column} holds {value:g}, and Poisson counts are not negative; "
            "for measurements use GaussianNB",
            names,
        )

    # ---- program

    def prior(self) -> PoissonParams:
        """Site ``rate`` (K, d)."""
        import numpyro
        import numpyro.distributions as dist

        with (
            numpyro.plate("class", self.n_classes, dim=-2),
            numpyro.plate("feature", self.n_features, dim=-1),
        ):
            return PoissonParams(numpyro.sample("rate", dist.Gamma(*self.hyper())))

    def observe(self, params: PoissonParams, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`."""
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        counts = dist.Poisson(params.rate[y])
        if x is None:
            return numpyro.sample("x", counts.to_event(1))
        missing = jnp.isnan(x)
        return numpyro.sample("x", counts.mask(~missing).to_event(1), obs=jnp.where(missing, 0.0, x))

    # ---- statistics and likelihood

    def stats(self, x: Any, r: Any) -> PoissonStats:
        """See `Family.stats`."""
        r = as_weights(r)
        x, missing = split_missing(x)
        observed = np.repeat(class_count(r, self.n_classes)[:, None], x.shape[1], axis=1)
        if missing is not None:
            observed -= class_sums(missing, r, self.n_classes)
        w = r.weights if isinstance(r, Labels) else r.sum(axis=1)
        base = self._log_base(x)
        log_base = np.asarray(base.sum() if w is None else w @ base)
        return PoissonStats(class_sums(x, r, self.n_classes), observed, log_base)

    def remove(self, a: PoissonStats, b: PoissonStats) -> PoissonStats:
        """See `Family.remove`."""
        total, observed = (np.maximum(p - q, 0.0) for p, q in zip(a[:2], b[:2], strict=True))
        return PoissonStats(total, observed, a.log_base - b.log_base)

    @staticmethod
    def _log_base(x: Any) -> Array:
        """Sum of ln x! of each row."""
        if namespace(x) is not np:
            return special(namespace(x)).gammaln(x + 1.0).sum(-1)
        if sp.issparse(x):
            terms = sp.csr_array((log_factorial(x.data), x.indices, x.indptr), shape=x.shape)
            return np.asarray(terms.sum(axis=1)).ravel()
        return log_factorial(x).sum(axis=1)

    def log_prob(self, params: PoissonParams, x: Any) -> Array:
        """See `Family.log_prob`."""
        large, others = _large_columns(x)
        if large.size:
            rest = self.log_prob(PoissonParams(params.rate[:, others]), x[:, others])
            return rest + _cell_sums(x[:, large], log_poisson, params.rate[:, large])
        x, missing = split_missing(x)
        out = contract(x, safe_log(params.rate)) - row_sums(params.rate) - self._log_base(x)[:, None]
        return out if missing is None else out + missing @ params.rate.T

    def mle(self, stats: PoissonStats) -> PoissonParams:
        """Mean counts; NaN in a cell without observations."""
        return PoissonParams(safe_divide(stats.total, stats.observed))

    def log_likelihood(self, params: PoissonParams, stats: PoissonStats) -> Array:
        """See `Family.log_likelihood`."""
        return dirichlet.dot_log(stats.total, safe_log(params.rate)) - (stats.observed * params.rate).sum()

    # ---- conjugate answers

    def condition(self, stats: PoissonStats) -> Poisson:
        """Gamma(shape + total, rate + observed)."""
        shape, rate = self.hyper()
        return self.replace(shape=shape + stats.total, rate=rate + stats.observed)

    def learn(self, stats: Any) -> Any:
        """See `Family.learn`: the shape and rate of one Gamma for all cells."""
        if not isinstance(self.shape, Evidence):
            return None

        def make(t: Any) -> Poisson:
            shape, mean = namespace(t).exp(t)
            return self.replace(shape=shape, rate=shape / mean)

        learned = maximise_evidence(make, stats, ("shape", "mean"))
        shape, mean = np.clip(learned.value, np.exp(-REACH), np.exp(REACH))
        return self.replace(shape=shape, rate=shape / mean), learned

    def log_density(self, params: PoissonParams) -> Array:
        """See `Family.log_density`."""
        a, b = self.hyper()
        gammaln = special(namespace(a, params.rate)).gammaln
        norm = (a * safe_log(b) - gammaln(a)).sum()
        return norm + dirichlet.dot_log(a - 1.0, safe_log(params.rate)) - (b * params.rate).sum()

    def mean(self) -> PoissonParams:
        """See `Family.mean`."""
        return PoissonParams(safe_divide(*self.hyper()))

    def shifted(self, times: float = 1.0) -> Poisson:
        """See `Family.shifted`: Gamma(shape + 1, rate)."""
        return self.replace(shape=self.shape + times)

    def unbounded(self, stats: PoissonStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        return None if flat else small_cell(self.condition(stats).hyper()[0])

    def mode(self) -> PoissonParams:
        """(shape - 1)+ / rate; on the boundary, with a warning, where shape < 1."""
        a, b = self.hyper()
        counts, boundary = dirichlet.mode_counts(a)
        if boundary:
            dirichlet.warn_boundary("rate")
        return PoissonParams(safe_divide(counts, b))

    @cached_property
    def _rising_tables(self) -> list[np.ndarray]:
        return _kernels.rising_tables(self.hyper()[0])

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: a negative binomial for each column."""
        a, b = self.hyper()
        xp = namespace(x, a, b)
        large, others = _large_columns(x)
        if large.size:
            rest = self.replace(shape=a[:, others], rate=b[:, others], n_features=len(others)).log_predictive(
                x[:, others]
            )
            return rest + _cell_sums(x[:, large], log_negative_binomial, a[:, large], b[:, large])
        x, missing = split_missing(x)
        if xp is np:
            rising = _kernels.rising_sums(x, a, self._rising_tables)
        else:
            rising = log_rising(a, x[:, None, :]).sum(-1)
        none = a * xp.log1p(1.0 / b)
        out = rising - contract(x, xp.log1p(b)) - row_sums(none) - self._log_base(x)[:, None]
        return out if missing is None else out + missing @ none.T

    def log_evidence(self, stats: PoissonStats) -> Array:
        """See `Family.log_evidence`."""
        return self.log_evidence_columns(stats).sum() - stats.log_base

    def log_evidence_columns(self, stats: PoissonStats) -> Array:
        """See `Family.log_evidence_columns`; without ln x!."""
        a, b = self.hyper()
        xp = namespace(a, b)
        s, n = stats.total, stats.observed
        return (log_rising(a, s) - a * xp.log1p(n / b) - s * xp.log(b + n)).sum(0)

    def log_loo(self, x: Any, y: Any, stats: PoissonStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: a row leaves the sums of its own class only."""
        codes, w = own_class(y)
        posterior = self.condition(stats)
        out = posterior.log_predictive(x)
        a, b = self.hyper()
        for rows in _kernels.row_blocks(x.shape[0], x.shape[1]):
            block = dense(x[rows]).astype(float)
            k, left = codes[rows], w[rows, None]
            seen = ~np.isnan(block)
            value = np.where(seen, block, 0.0)
            # Sums go down before the prior is added: a small shape or rate keeps its digits.
            shape = a[k] + np.maximum(stats.total[k] - left * value, 0.0)
            rate = b[k] + np.maximum(stats.observed[k] - left, 0.0)
            exists = (rate > 0) & ((shape > 0) | (value == 0))
            rate = np.where(exists, rate, 1.0)
            cell = log_negative_binomial(value, shape, rate)
            own = np.where(seen, np.where(exists, cell, np.nan), 0.0).sum(axis=1)
            out[np.arange(x.shape[0])[rows], k] = own
        return out

    def logistic(self, params: PoissonParams) -> tuple[Array, Array]:
        """See `Family.logistic`: log rates."""
        return safe_log(params.rate), -row_sums(params.rate)

    # ---- sampling

    def variables(self, params: PoissonParams) -> dict[str, Array]:
        """See `Family.variables`: ``rate``."""
        return {"rate": params.rate}

    def from_variables(self, values: dict[str, Array]) -> PoissonParams:
        """See `Family.from_variables`."""
        return PoissonParams(values["rate"])

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        return {"rate": ("class", "feature")}

    def weak(self) -> Poisson:
        """See `Family.weak`: worth a millionth of a row."""
        return self.replace(rate=1e-6 * np.asarray(self.rate, dtype=float))

    def chart(self) -> LogRateChart:
        """See `Family.chart`."""
        a, b = self.hyper()
        loc, spread = dirichlet.log_gamma_moments(a)
        return LogRateChart(loc - np.log(b), spread)

    def stats_shapes(self) -> Any:
        """See `Family.stats_shapes`."""
        return PoissonStats((self.n_classes, self.n_features), (self.n_classes, self.n_features), ())

    def undefined(self, params: PoissonParams, stats: Any, needed: np.ndarray) -> Problem | None:
        """See `Family.undefined`."""
        cell = first_cell(np.isnan(params.rate), needed)
        return None if cell is None else Problem(NO_ROWS, cell[0], [cell[1]])

    def tempered(self, power: float) -> Poisson:
        """See `Family.tempered`."""
        shape, rate = self.hyper()
        return self.replace(shape=power * (shape - 1.0) + 1.0, rate=power * rate)

    def marginals(self) -> dict[str, Any]:
        """See `Family.marginals`."""
        from scipy.stats import gamma

        shape, rate = self.hyper()
        return {"rate": (("class", "feature"), gamma(shape, scale=1.0 / rate))}

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """See `Family.improper`."""
        a, b = self.hyper()
        cell = first_cell((np.minimum(a, b) if strict else b) <= 0, needed)
        text = "the Gamma distribution of the rate of {columns} in class {cls} is improper; give shape, rate > 0"
        return None if cell is None else Problem(text, cell[0], [cell[1]])

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> np.ndarray:
        """See `Family.sample`."""
        rng = generator(key)
        if params is not None:
            return _counts(rng, params.rate[y])
        a, b = self.hyper()
        return _counts(rng, rng.standard_gamma(a[y]) / b[y])

    def draw(self, key: Any, n: int) -> PoissonParams:
        """See `Family.draw`."""
        a, b = self.hyper()
        return PoissonParams(generator(key).standard_gamma(a, size=(n, *a.shape)) / b)
