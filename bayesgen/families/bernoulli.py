r"""Bernoulli event model: each column present or absent.

.. math::

    x_j \mid y{=}k \sim \mathrm{Bernoulli}(p_{kj}), \qquad p_{kj} \sim \mathrm{Beta}(a_{kj}, b_{kj}).

Statistics are the weights of ones and zeros, (K, V) each. The posterior is
:math:`\mathrm{Beta}(a + n_{kj1}, b + n_{kj0})`; its mean :math:`(a+n_{kj1})/(a+b+n_{kj1}+n_{kj0})` is
Laplace smoothing at a = b = 1, and it is also the exact predictive, as each p enters a row once. An
absent word contributes :math:`\ln(1-p_{kj})`. [McCallum and Nigam 1998; Murphy 2012, section 3.5]
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, polygamma

from bayesgen._math import Array, log_rising, namespace, safe_divide, safe_log
from bayesgen._random import generator, log_gamma_draws
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
from bayesgen.learning import Evidence, maximise_concentration

NO_ROWS = "class {cls} has no observed value of {columns}: its relative frequency is 0/0"

__all__ = ["Bernoulli", "BernoulliParams", "BernoulliStats"]


class BernoulliStats(NamedTuple):
    """Weights of the observed ones and zeros of each class and column."""

    present: Array
    """(K, V)"""
    absent: Array
    """(K, V)"""


class BernoulliParams(NamedTuple):
    """Log probabilities of presence and absence; both, so that p near 1 keeps its digits."""

    log_present: Array
    """ln p, (K, V)"""
    log_absent: Array
    """ln(1 - p), (K, V)"""


class LogitChart(NamedTuple):
    """Standardised log odds of presence."""

    loc: Array
    spread: Array

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Family.chart`."""
        return {"log_odds": self.loc.shape}

    def params(self, u: dict[str, Array]) -> tuple[BernoulliParams, Array]:
        """See `Family.chart`: dp = p (1 - p) d(log odds)."""
        xp = namespace(u["log_odds"])
        log_odds = self.loc + self.spread * u["log_odds"]
        present, absent = -xp.logaddexp(0.0, -log_odds), -xp.logaddexp(0.0, log_odds)
        return BernoulliParams(present, absent), (present + absent).sum()


@family
class Bernoulli(Family):
    """Bernoulli columns with Beta(a, b) probabilities; see the module docstring.

    Parameters
    ----------
    a, b : float or array, (V,) or (K, V)
        Concentrations (pseudo-counts) of ones and zeros. A posterior holds (K, V) arrays.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Bernoulli, Labels
    >>> x, r = np.array([[1, 0], [1, 1], [0, 1]]), Labels(np.array([0, 0, 1]))
    >>> prior = Bernoulli(a=1.0, b=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.a.tolist(), posterior.b.tolist()
    ([[3.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]])
    """

    a: Any = 1.0
    b: Any = 1.0
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    @property
    def shape(self) -> tuple[int, int]:
        """(K, V)."""
        return self.n_classes, self.n_features

    def concentrations(self) -> tuple[Array, Array]:
        """A and b as (K, V) arrays.

        Returns
        -------
        a, b : arrays (K, V)
            Pseudo-counts of ones and of zeros.
        """
        return dirichlet.broadcast(self.a, self.shape, "alpha"), dirichlet.broadcast(self.b, self.shape, "alpha")

    def check(self, x: Any, names: Names = None) -> None:
        """See `Family.check`: values must be 0 or 1 (NaN: not known)."""
        refuse_columns(
            x,
            lambda v: (v != 0) & (v != 1) & ~np.isnan(v),
            "{column} holds {value:g}; a Bernoulli model without a threshold needs binary values, 0/1. "
            "Pass binarize=0.0 to count every positive value as a presence",
            names,
        )

    # ---- program

    def prior(self) -> BernoulliParams:
        """Site ``feature_prob`` (K, V)."""
        import jax.numpy as jnp
        import numpyro

        from bayesgen.distributions import Beta

        a, b = self.concentrations()
        with (
            numpyro.plate("class", self.n_classes, dim=-2),
            numpyro.plate("feature", self.n_features, dim=-1),
        ):
            p = numpyro.sample("feature_prob", Beta(a, b))
        return BernoulliParams(jnp.log(p), jnp.log1p(-p))

    def observe(self, params: BernoulliParams, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`."""
        import numpyro

        from bayesgen.distributions import Presence

        return numpyro.sample("x", Presence(params.log_present[y], params.log_absent[y]), obs=x)

    # ---- statistics and likelihood

    def stats(self, x: Any, r: Any) -> BernoulliStats:
        """See `Family.stats`."""
        r = as_weights(r)
        x, missing = split_missing(x)
        present = class_sums(x, r, self.n_classes)
        if not sp.issparse(x):
            absent = class_sums(1.0 - x if missing is None else 1.0 - x - missing, r, self.n_classes)
            return BernoulliStats(present, absent)
        observed = class_count(r, self.n_classes)[:, None]
        if missing is not None:
            observed = observed - class_sums(missing, r, self.n_classes)
        return BernoulliStats(present, self._absent(x, missing, r, observed, present))

    def _absent(self, x: Any, missing: Any, r: Any, observed: Array, present: Array) -> Array:
        """Weight of the zeros of a sparse matrix; exactly 0 where every row of a class holds a one."""
        absent = np.maximum(observed - present, 0.0)
        if isinstance(r, Labels) and (r.weights is None or np.all(r.weights == np.floor(r.weights))):
            return absent
        support = Labels(r.codes) if isinstance(r, Labels) else (r > 0).astype(float)
        rows = class_count(support, self.n_classes)[:, None] - class_sums(x, support, self.n_classes)
        if missing is not None:
            rows = rows - class_sums(missing, support, self.n_classes)
        return np.where(rows > 0, absent, 0.0)

    def log_prob(self, params: BernoulliParams, x: Any) -> Array:
        """See `Family.log_prob`."""
        filled, missing = split_missing(x)
        if not sp.issparse(filled):
            zeros = 1.0 - filled if missing is None else 1.0 - filled - missing
            return contract(filled, params.log_present) + contract(zeros, params.log_absent)
        return self._sparse_log_prob(params, filled, missing)

    def _sparse_log_prob(self, params: BernoulliParams, x: Any, missing: Any) -> Array:
        """Every column absent, corrected at the stored entries; log(0) is counted apart."""
        certain = np.isneginf(params.log_absent)
        if missing is None and not certain.any():
            return row_sums(params.log_absent) + contract(x, params.log_present - params.log_absent)
        log_absent = np.where(certain, 0.0, params.log_absent)
        out = row_sums(log_absent) + contract(x, params.log_present) - contract(x, log_absent)
        impossible = certain.sum(-1) - contract(x, certain.astype(float))
        if missing is not None:
            out -= contract(missing, log_absent)
            impossible -= contract(missing, certain.astype(float))
        return np.where(impossible > 0, -np.inf, out)

    def mle(self, stats: BernoulliStats) -> BernoulliParams:
        """Relative frequencies; NaN in a cell without observations."""
        total = stats.present + stats.absent
        return BernoulliParams(safe_log(safe_divide(stats.present, total)), safe_log(safe_divide(stats.absent, total)))

    def log_likelihood(self, params: BernoulliParams, stats: BernoulliStats) -> Array:
        """See `Family.log_likelihood`."""
        return dirichlet.dot_log(stats.present, params.log_present) + dirichlet.dot_log(stats.absent, params.log_absent)

    # ---- conjugate answers

    def condition(self, stats: BernoulliStats) -> Bernoulli:
        """Beta(a + ones, b + zeros)."""
        a, b = self.concentrations()
        return self.replace(a=a + stats.present, b=b + stats.absent)

    def learn(self, stats: Any) -> Any:
        """See `Family.learn`."""
        if not isinstance(self.a, Evidence):
            return None
        cells = list(np.moveaxis(np.stack([stats.present, stats.absent], axis=-1), 1, 0))
        value, weights, learned = maximise_concentration(cells, self.a)
        table = np.stack(weights)
        return self.replace(a=value[:, None] * table[:, 0], b=value[:, None] * table[:, 1]), learned

    def log_density(self, params: BernoulliParams) -> Array:
        """See `Family.log_density`."""
        xp = namespace(self.a, self.b, *params)
        return dirichlet.log_density(
            xp.stack(self.concentrations(), -1), xp.stack([params.log_present, params.log_absent], -1)
        ).sum()

    def mean(self) -> BernoulliParams:
        """See `Family.mean`."""
        a, b = self.concentrations()
        return BernoulliParams(safe_log(safe_divide(a, a + b)), safe_log(safe_divide(b, a + b)))

    def shifted(self, times: float = 1.0) -> Bernoulli:
        """See `Family.shifted`: Beta(a + 1, b + 1)."""
        return self.replace(a=self.a + times, b=self.b + times)

    def unbounded(self, stats: BernoulliStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        return None if flat else small_cell(np.minimum(*self.condition(stats).concentrations()))

    def mode(self) -> BernoulliParams:
        """The mode rule of `dirichlet.mode_counts`, two cells a column."""
        xp = namespace(self.a, self.b)
        counts, boundary = dirichlet.mode_counts(xp.stack(self.concentrations(), -1))
        if boundary:
            dirichlet.warn_boundary("feature_prob")
        log_prob = dirichlet.log_normalised(counts)
        return BernoulliParams(log_prob[..., 0], log_prob[..., 1])

    @cached_property
    def _mean(self) -> BernoulliParams:
        return BernoulliParams(*map(np.asfortranarray, self.mean()))

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: the same as `log_prob` at the mean."""
        return self.log_prob(self._mean if namespace(self.a, self.b) is np else self.mean(), x)

    def log_evidence(self, stats: BernoulliStats) -> Array:
        """A Polya urn for each class and column."""
        if isinstance(stats, dirichlet.UniqueCounts):
            return stats.log_evidence(self.a)
        return self.log_evidence_columns(stats).sum()

    def log_evidence_columns(self, stats: BernoulliStats) -> Array:
        """See `Family.log_evidence_columns`."""
        a, b = self.concentrations()
        ones, zeros = stats.present, stats.absent
        return (log_rising(a, ones) + log_rising(b, zeros) - log_rising(a + b, ones + zeros)).sum(0)

    def log_loo(self, x: Any, y: Any, stats: BernoulliStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: a row leaves the counts of its own class only."""
        codes, w = own_class(y)
        posterior = self.condition(stats)
        out = posterior.log_predictive(x)
        filled, missing = split_missing(x)
        for k in range(self.n_classes):
            for weight in np.unique(w[codes == k]):
                index = np.flatnonzero((codes == k) & (w == weight))
                out[index, k] = self._own_loo(stats, filled, missing, index, k, weight)
        return out

    def _own_loo(self, stats: BernoulliStats, x: Any, missing: Any, index: np.ndarray, k: int, w: float) -> np.ndarray:
        """Rows of class k and weight w predicted without themselves: each factor uses its own cell less w."""
        a, b = (c[k] for c in self.concentrations())
        ones, zeros = stats.present[k], stats.absent[k]
        # Counts go down before the prior is added: a small concentration keeps its digits.
        total = a + b + np.maximum(ones + zeros - w, 0.0)
        empty = total <= 0  # an improper prior, and nobody else observed the column
        log_total = safe_log(np.where(empty, 1.0, total))
        cells = (a + np.maximum(ones - w, 0.0), b + np.maximum(zeros - w, 0.0))
        params = BernoulliParams(*((safe_log(c) - log_total)[None] for c in cells))
        rows = x[index]
        if missing is not None:
            rows = np.where(dense(missing[index]) > 0, np.nan, dense(rows))
        out = self.log_prob(params, rows)[:, 0]
        if empty.any():
            out[~np.isnan(dense(rows)[:, empty]).all(axis=1)] = np.nan
        return out

    def logistic(self, params: BernoulliParams) -> tuple[Array, Array]:
        """See `Family.logistic`: log odds of presence, and every column absent."""
        return params.log_present - params.log_absent, row_sums(params.log_absent)

    def log_prob_moments(self, x: Any) -> tuple[Array, Array]:
        """See `Family.log_prob_moments`: digamma and trigamma differences, summed over the columns."""
        a, b = self.concentrations()
        total, total_1 = digamma(a + b), polygamma(1, a + b)
        mean = BernoulliParams(digamma(a) - total, digamma(b) - total)
        variance = BernoulliParams(polygamma(1, a) - total_1, polygamma(1, b) - total_1)
        return self.log_prob(mean, x), self.log_prob(variance, x)

    # ---- sampling

    def variables(self, params: BernoulliParams) -> dict[str, Array]:
        """See `Family.variables`: ``feature_prob``."""
        return {"feature_prob": namespace(*params).exp(params.log_present)}

    def from_variables(self, values: dict[str, Array]) -> BernoulliParams:
        """See `Family.from_variables`."""
        p = values["feature_prob"]
        return BernoulliParams(safe_log(p), safe_log(1.0 - p))

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        return {"feature_prob": ("class", "feature")}

    def compress(self, stats: Any, given: Any) -> Any:
        """See `Family.compress`; a and b must be the same number."""
        shared = dirichlet.shared_by_cells(given.a, self.n_classes)
        if shared is None or given.a is not given.b:
            return stats
        cells = np.stack([stats.present, stats.absent], axis=-1)
        return dirichlet.unique_counts(list(np.moveaxis(cells, 1, 0)), shared == "class")

    def chart(self) -> LogitChart:
        """See `Family.chart`: the log odds have mean psi(a) - psi(b), variance psi_1(a) + psi_1(b)."""
        a, b = self.concentrations()
        spread = np.sqrt(polygamma(1, a) + polygamma(1, b))
        return LogitChart(digamma(a) - digamma(b), spread)

    def tempered(self, power: float) -> Bernoulli:
        """See `Family.tempered`."""
        a, b = self.concentrations()
        return self.replace(a=power * (a - 1.0) + 1.0, b=power * (b - 1.0) + 1.0)

    def marginals(self) -> dict[str, Any]:
        """See `Family.marginals`."""
        from scipy.stats import beta

        return {"feature_prob": (("class", "feature"), beta(*self.concentrations()))}

    def stats_shapes(self) -> Any:
        """See `Family.stats_shapes`."""
        return BernoulliStats(self.shape, self.shape)

    def undefined(self, params: BernoulliParams, stats: Any, needed: np.ndarray) -> Problem | None:
        """See `Family.undefined`."""
        cell = first_cell(np.isnan(params.log_present), needed)
        return None if cell is None else Problem(NO_ROWS, cell[0], [cell[1]])

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """See `Family.improper`."""
        a, b = self.concentrations()
        cell = first_cell((np.minimum(a, b) if strict else a + b) <= 0, needed)
        return None if cell is None else Problem(dirichlet.IMPROPER, cell[0], [cell[1]])

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> np.ndarray:
        """See `Family.sample`."""
        p = np.exp((params or self.mean()).log_present)
        return (generator(key).random((len(y), self.n_features)) < p[y]).astype(float)

    def draw(self, key: Any, n: int) -> BernoulliParams:
        """See `Family.draw`."""
        rng = generator(key)
        a, b = self.concentrations()
        one, zero = (log_gamma_draws(rng, c, (n, *self.shape)) for c in (a, b))
        total = np.logaddexp(one, zero)
        return BernoulliParams(one - total, zero - total)
