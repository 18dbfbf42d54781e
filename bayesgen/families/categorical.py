r"""Categorical columns: column j holds one of :math:`s_j` levels.

.. math::

    x_j \mid y{=}k \sim \mathrm{Categorical}(\theta_{kj}), \qquad \theta_{kj} \sim \mathrm{Dirichlet}(\alpha_{kj}).

Data are level codes: -1 is missing, and a code of :math:`s_j` or more is a level unknown to the model.
Statistics are level counts by class, the columns side by side: (K, S) with :math:`S = \sum_j s_j`. The
posterior mean :math:`(\alpha_{kjv} + n_{kjv})/(A_{kj} + n_{kj})` is Laplace smoothing at alpha = 1 and
also the exact predictive. An unknown level is predicted as if it had been declared at fit without rows,
:math:`\alpha_{new}/(A_{kj} + \alpha_{new} + n_{kj})` with the mean concentration of the column; the known
levels keep their numbers. [Murphy 2012, sections 3.4-3.5]
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, polygamma

from bayesgen._math import Array, namespace, safe_divide, safe_log
from bayesgen._random import generator, log_gamma_draws
from bayesgen.families import dirichlet
from bayesgen.families.base import (
    Elsewhere,
    Family,
    Names,
    Problem,
    as_weights,
    class_sums,
    contract,
    family,
    first_cell,
    own_class,
    refuse_columns,
    small_cell,
    static,
)
from bayesgen.learning import Evidence, maximise_concentration

NO_ROWS = (
    "class {cls} has no observed value of {columns}, so its level probabilities are 0/0 (or have no unique mode); "
    "use inference='mean' or 'exact' with alpha > 0"
)

__all__ = ["Categorical", "CategoricalParams", "CategoricalStats"]


class CategoricalStats(NamedTuple):
    """Weighted level counts of each class, columns side by side."""

    level_count: Array
    """(K, S)"""


class CategoricalParams(NamedTuple):
    """Log level probabilities of each class, columns side by side."""

    log_prob: Array
    """ln theta, (K, S)"""
    log_unknown: Array
    """Log probability of a level that the model does not know, (K, d); -inf without smoothing."""


class LevelsChart(NamedTuple):
    """Standardised logs of unnormalised cells, column by column; see `multinomial.LogGammaChart`."""

    loc: Array
    spread: Array
    column: Array
    """Indicator of the column of each cell, (S, d)"""
    total: Array
    """A, (K, d)"""
    log_unknown: Array

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Family.chart`."""
        return {"log_cell": self.loc.shape}

    def params(self, u: dict[str, Array]) -> tuple[CategoricalParams, Array]:
        """See `Family.chart`."""
        xp = namespace(u["log_cell"])
        log_cell = self.loc + self.spread * u["log_cell"]
        top = xp.where(self.column.T > 0, log_cell[:, None, :], -xp.inf).max(-1)
        log_total = top + xp.log(xp.exp(log_cell - top @ self.column.T) @ self.column)
        density = (self.total - self.column.sum(0)) * log_total - xp.exp(log_total)
        return (
            CategoricalParams(log_cell - log_total @ self.column.T, self.log_unknown),
            log_cell.sum() + density.sum(),
        )


@family
class Categorical(Family):
    """Categorical columns with Dirichlet(alpha) level probabilities; see the module docstring.

    Parameters
    ----------
    alpha : float or array, (d,) or (K, d); (K, S) after conditioning
        Concentration of each level.
    alpha_unknown : array (K, d) or None
        Concentration that an unknown level has; set by conditioning.
    n_levels : tuple of int
        Number of levels of each column; from the largest code if `init` finds it empty.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Categorical, Labels
    >>> x, r = np.array([[0], [2], [1]]), Labels(np.array([0, 0, 1]))
    >>> prior = Categorical(alpha=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.alpha.tolist()
    [[2.0, 1.0, 2.0], [1.0, 2.0, 1.0]]
    """

    alpha: Any = 1.0
    alpha_unknown: Any = None
    n_levels: tuple[int, ...] = static(default=())
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def init(self, x: Any, n_classes: int) -> Categorical:
        """See `Family.init`."""
        self.check(x)
        levels = self.n_levels or tuple(int(v) + 1 for v in x.max(axis=0, initial=0))
        return self.replace(n_classes=n_classes, n_features=x.shape[1], n_levels=levels)

    def check(self, x: Any, names: Names = None) -> None:
        """See `Family.check`: codes are whole, -1 (missing) or more."""
        refuse_columns(x, lambda v: v < -1, "{column} holds the code {value}; codes are 0, 1, ...", names)

    @property
    def offsets(self) -> np.ndarray:
        """Where each column starts among the S cells, and S at the end: (d + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    @property
    def column_of(self) -> np.ndarray:
        """Column of each of the S cells."""
        return np.repeat(np.arange(self.n_features), self.n_levels)

    def by_column(self, cells: Array) -> Array:
        """Sums of (..., S) cells over the levels of each column: (..., d).

        Parameters
        ----------
        cells : array (..., S)
            Numbers of the levels of all columns, side by side.

        Returns
        -------
        array (..., d)
            Their sums.
        """
        if namespace(cells) is np:
            out = np.zeros((*cells.shape[:-1], self.n_features))
            some = np.flatnonzero(self.n_levels)  # a column without levels has nothing to sum
            if some.size:
                out[..., some] = np.add.reduceat(cells, self.offsets[:-1][some], axis=-1)
            return out
        return cells @ (self.column_of[:, None] == np.arange(self.n_features)).astype(cells.dtype)

    def concentration(self) -> Array:
        """Alpha as a (K, S) array.

        Returns
        -------
        array (K, S)
            Pseudo-counts of the levels of all columns, side by side.
        """
        xp = namespace(self.alpha)
        alpha = xp.asarray(self.alpha, dtype=float)
        size = int(self.offsets[-1])
        if alpha.ndim and alpha.shape[-1] == self.n_features and alpha.shape[-1] != size:
            alpha = xp.broadcast_to(alpha, (*alpha.shape[:-1], self.n_features))[..., self.column_of]
        return dirichlet.broadcast(alpha, (self.n_classes, size), "alpha")

    def _unknown(self) -> Array:
        """Concentration of an unknown level, (K, d): the mean over the known levels before data."""
        if self.alpha_unknown is not None:
            return self.alpha_unknown
        return safe_divide(self.by_column(self.concentration()), np.asarray(self.n_levels, dtype=float), empty=1.0)

    # ---- program

    def prior(self) -> CategoricalParams:
        """Sites ``feature_prob_{j}`` (K, s_j)."""
        import jax.numpy as jnp
        import numpyro

        from bayesgen.distributions import Dirichlet

        alpha, offsets = self.concentration(), self.offsets
        parts = []
        for j in np.flatnonzero(self.n_levels):
            with numpyro.plate("class", self.n_classes, dim=-1):
                cells = Dirichlet(alpha[:, offsets[j] : offsets[j + 1]])
                parts.append(numpyro.sample(f"feature_prob_{j}", cells))
        none = jnp.full((self.n_classes, self.n_features), -jnp.inf)
        return CategoricalParams(jnp.log(jnp.concatenate(parts, axis=-1)), none)

    def observe(self, params: CategoricalParams, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`."""
        import numpyro

        from bayesgen.distributions import Levels

        return numpyro.sample("x", Levels(params.log_prob[y], self.n_levels), obs=x)

    # ---- statistics and likelihood

    def _cells(self, x: np.ndarray) -> tuple[Any, Any]:
        """Indicators of the known levels (n, S) and of unknown ones (n, d; None if there are none)."""
        n = len(x)
        n_levels = np.asarray(self.n_levels)
        unknown = x >= n_levels
        known = (x >= 0) & ~unknown
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        index = (x + self.offsets[:-1])[known]
        shape = (n, int(self.offsets[-1]))
        cells = sp.csr_array((np.ones(len(index)), index, indptr), shape=shape)
        return cells, (unknown.astype(float) if unknown.any() else None)

    def stats(self, x: Any, r: Any) -> CategoricalStats:
        """See `Family.stats`."""
        return CategoricalStats(class_sums(self._cells(x)[0], as_weights(r), self.n_classes))

    def log_prob(self, params: CategoricalParams, x: Any) -> Array:
        """See `Family.log_prob`."""
        xp = namespace(x, params.log_prob)
        if xp is np:
            cells, unknown = self._cells(x)
            out = contract(cells, params.log_prob)
            return out if unknown is None else out + contract(unknown, params.log_unknown)
        n_levels = np.asarray(self.n_levels)
        at = xp.clip(x, 0, n_levels - 1) + self.offsets[:-1]
        factor = xp.where(x < n_levels, params.log_prob[:, at], params.log_unknown[:, None, :])
        return xp.where(x >= 0, factor, 0.0).sum(-1).T

    def mle(self, stats: CategoricalStats) -> CategoricalParams:
        """Relative frequencies; NaN for a column that a class never observed."""
        total = self.by_column(stats.level_count)
        prob = safe_divide(stats.level_count, total[..., self.column_of])
        return CategoricalParams(safe_log(prob), safe_log(0.0 * total))

    def log_likelihood(self, params: CategoricalParams, stats: CategoricalStats) -> Array:
        """See `Family.log_likelihood`."""
        return dirichlet.dot_log(stats.level_count, params.log_prob)

    # ---- conjugate answers

    def condition(self, stats: CategoricalStats) -> Categorical:
        """Dirichlet(alpha + counts)."""
        return self.replace(alpha=self.concentration() + stats.level_count, alpha_unknown=self._unknown())

    def _columns(self, cells: Array) -> list[Array]:
        return [cells[..., a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def learn(self, stats: Any) -> Any:
        """See `Family.learn`."""
        if not isinstance(self.alpha, Evidence):
            return None
        value, weights, learned = maximise_concentration(self._columns(stats.level_count), self.alpha)
        return self.replace(alpha=value[:, None] * np.concatenate(weights)), learned

    def log_density(self, params: CategoricalParams) -> Array:
        """See `Family.log_density`."""
        pairs = zip(self._columns(self.concentration()), self._columns(params.log_prob), strict=True)
        return sum(dirichlet.log_density(alpha, log_prob).sum() for alpha, log_prob in pairs)

    def _log_unknown(self) -> Array:
        new = self._unknown()
        return safe_log(safe_divide(new, self.by_column(self.concentration()) + new, empty=0.0))

    def mean(self) -> CategoricalParams:
        """See `Family.mean`."""
        alpha = self.concentration()
        prob = safe_divide(alpha, self.by_column(alpha)[..., self.column_of])
        return CategoricalParams(safe_log(prob), self._log_unknown())

    def shifted(self, times: float = 1.0) -> Categorical:
        """See `Family.shifted`: Dirichlet(alpha + 1)."""
        return self.replace(alpha=self.alpha + times)

    def unbounded(self, stats: CategoricalStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        problem = None if flat else small_cell(self.condition(stats).alpha)
        return problem and problem._replace(columns=[int(self.column_of[s]) for s in problem.columns])

    def mode(self) -> CategoricalParams:
        """The mode rule of `dirichlet.mode_counts` for each column.

        An unknown level keeps its predictive mass where the mode smooths (concentration above one);
        otherwise it gets nothing, as an unseen known level does.
        """
        xp = namespace(self.alpha)
        alpha = self.concentration()
        counts, boundary = dirichlet.mode_counts(alpha)
        if boundary:
            dirichlet.warn_boundary("feature_prob")
        total = self.by_column(counts)
        return CategoricalParams(
            safe_log(safe_divide(counts, total[..., self.column_of])),
            xp.where(self._unknown() > 1, self._log_unknown(), -xp.inf),
        )

    @cached_property
    def _mean(self) -> CategoricalParams:
        return CategoricalParams(*map(np.asfortranarray, self.mean()))

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: the same as `log_prob` at the mean."""
        return self.log_prob(self._mean if namespace(self.alpha) is np else self.mean(), x)

    def log_evidence(self, stats: CategoricalStats) -> Array:
        """A Polya urn for each class and column."""
        if isinstance(stats, dirichlet.UniqueCounts):
            return stats.log_evidence(self.alpha)
        return self.log_evidence_columns(stats).sum()

    def log_evidence_columns(self, stats: CategoricalStats) -> Array:
        """See `Family.log_evidence_columns`."""
        alpha = self.concentration()
        pairs = zip(self._columns(alpha), self._columns(stats.level_count), strict=True)
        return namespace(alpha).stack([dirichlet.log_evidence(a, count).sum() for a, count in pairs])

    def log_loo(self, x: Any, y: Any, stats: CategoricalStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: a row leaves the counts of its own class only."""
        codes, w = own_class(y)
        posterior = self.condition(stats)
        out = posterior.log_predictive(x)
        alpha, count = self.concentration(), stats.level_count
        total, seen_count = self.by_column(alpha), self.by_column(count)
        own = np.zeros(len(codes))
        for j in range(self.n_features):
            seen = (x[:, j] >= 0) & (x[:, j] < self.n_levels[j])
            k, left = codes[seen], w[seen]
            # Counts go down before the prior is added: a small concentration keeps its digits.
            at = k, self.offsets[j] + x[seen, j]
            cell = alpha[at] + np.maximum(count[at] - left, 0.0)
            rest = total[k, j] + np.maximum(seen_count[k, j] - left, 0.0)
            own[seen] += np.where(rest > 0, safe_log(cell) - safe_log(np.where(rest > 0, rest, 1.0)), np.nan)
        out[np.arange(len(codes)), codes] = own
        return out

    def logistic(self, params: CategoricalParams) -> tuple[Array, Array]:
        """See `Family.logistic`: log level probabilities, on one-hot columns."""
        return params.log_prob, np.zeros(self.n_classes)

    def log_prob_moments(self, x: Any) -> tuple[Array, Array]:
        """See `Family.log_prob_moments`; an unknown level has a fixed probability."""
        alpha = self.concentration()
        total = self.by_column(alpha)
        unknown = self._log_unknown()
        mean = digamma(alpha) - digamma(total)[:, self.column_of]
        variance = polygamma(1, alpha) - polygamma(1, total)[:, self.column_of]
        return (
            self.log_prob(CategoricalParams(mean, unknown), x),
            self.log_prob(CategoricalParams(variance, np.zeros_like(unknown)), x),
        )

    # ---- sampling

    def variables(self, params: CategoricalParams) -> dict[str, Array]:
        """See `Family.variables`: ``feature_prob_{j}`` for each column."""
        prob = namespace(*params).exp(params.log_prob)
        return {f"feature_prob_{j}": p for j, p in enumerate(self._columns(prob)) if p.shape[-1]}

    def from_variables(self, values: dict[str, Array]) -> CategoricalParams:
        """See `Family.from_variables`; an unknown level has its mean probability."""
        parts = [values[f"feature_prob_{j}"] for j in np.flatnonzero(self.n_levels)]
        xp = namespace(*parts)
        unknown = self._log_unknown()
        log_prob = safe_log(xp.concatenate(parts, axis=-1))
        return CategoricalParams(log_prob, xp.broadcast_to(unknown, (*log_prob.shape[:-2], *unknown.shape)))

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        return {f"feature_prob_{j}": ("class", f"category_{j}") for j in np.flatnonzero(self.n_levels)}

    def compress(self, stats: Any, given: Any) -> Any:
        """See `Family.compress`."""
        shared = dirichlet.shared_by_cells(given.alpha, self.n_classes)
        if shared is None:
            return stats
        return dirichlet.unique_counts(self._columns(stats.level_count), shared == "class")

    def chart(self) -> LevelsChart | None:
        """See `Family.chart`."""
        if not all(self.n_levels):
            return None
        alpha = self.concentration()
        column = (self.column_of[:, None] == np.arange(self.n_features)).astype(float)
        return LevelsChart(*dirichlet.log_gamma_moments(alpha), column, self.by_column(alpha), self._log_unknown())

    def tempered(self, power: float) -> Categorical:
        """See `Family.tempered`."""
        return self.replace(alpha=power * (self.concentration() - 1.0) + 1.0)

    def marginals(self) -> dict[str, Any]:
        """See `Family.marginals`."""
        from scipy.stats import beta

        columns = self._columns(self.concentration())
        dims = self.dims()
        names = {f"feature_prob_{j}": a for j, a in enumerate(columns) if a.shape[1]}
        return {name: (dims[name], beta(a, a.sum(axis=1, keepdims=True) - a)) for name, a in names.items()}

    def stats_shapes(self) -> Any:
        """See `Family.stats_shapes`."""
        return CategoricalStats((self.n_classes, int(self.offsets[-1])))

    def undefined(self, params: CategoricalParams, stats: Any, needed: np.ndarray) -> Problem | None:
        """See `Family.undefined`."""
        cell = first_cell(self.by_column(np.isnan(params.log_prob).astype(float)) > 0, needed)
        return None if cell is None else Problem(NO_ROWS, cell[0], [cell[1]])

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """See `Family.improper`."""
        alpha = self.concentration()
        bad = self.by_column((alpha <= 0).astype(float)) > 0 if strict else self.by_column(alpha) <= 0
        bad = bad & (np.asarray(self.n_levels) > 0)
        cell = first_cell(bad, needed)
        return None if cell is None else Problem(dirichlet.IMPROPER, cell[0], [cell[1]])

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> np.ndarray:
        """See `Family.sample`."""
        rng = generator(key)
        columns = self._columns(np.exp((params or self.mean()).log_prob))
        out = np.empty((len(y), self.n_features), dtype=np.int64)
        for j, prob in enumerate(columns):
            if not prob.shape[1]:
                out[:, j] = -1  # a column without levels is never observed
                continue
            edges = np.cumsum(prob, axis=1)[:, :-1]
            out[:, j] = (rng.random(len(y))[:, None] > edges[y]).sum(axis=1)
        return out

    def draw(self, key: Any, n: int) -> CategoricalParams:
        """See `Family.draw`; an unknown level keeps its mean probability."""
        alpha = self.concentration()
        log_gamma = log_gamma_draws(generator(key), alpha, (n, *alpha.shape))
        parts = self._columns(log_gamma)
        log_prob = np.concatenate([p - np.logaddexp.reduce(p, axis=-1, keepdims=True) for p in parts], axis=-1)
        log_unknown = self._log_unknown()
        return CategoricalParams(log_prob, np.broadcast_to(log_unknown, (n, *log_unknown.shape)))
