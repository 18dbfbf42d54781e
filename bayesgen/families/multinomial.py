r"""Multinomial event model: a document is a sequence of words from a vocabulary.

.. math::

    p(x \mid y{=}k) = \prod_j \theta_{kj}^{x_j}, \qquad \theta_k \sim \mathrm{Dirichlet}(\alpha_k),

with x the counts of the V words; lengths are given. This is the probability of the token sequence;
``coefficient=True`` adds :math:`\ln L! - \sum_j\ln x_j!`, the probability of the count vector. The
coefficient never changes p(y | x). Statistics are word counts by class. The exact predictive is a Polya
urn over the tokens,

.. math::

    \ln p(x \mid y{=}k, D) = \sum_j \ln(\alpha'_{kj})_{x_j} - \ln(A'_k)_L,

not the plug-in :math:`\bar\theta^x`: repeated words reinforce each other. Fractional counts (tf-idf) are
powers of the probabilities. [Murphy 2012, sections 3.4, 3.5.5; McCallum and Nigam 1998; Minka 2000]
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, polygamma

from bayesgen import _kernels
from bayesgen._math import Array, log_factorial, log_rising, namespace, safe_log, special
from bayesgen._random import generator, log_gamma_draws
from bayesgen.families import dirichlet
from bayesgen.families.base import (
    Elsewhere,
    Family,
    Labels,
    Names,
    Problem,
    as_weights,
    class_sums,
    contract,
    family,
    own_class,
    refuse_columns,
    small_cell,
    static,
)
from bayesgen.learning import Evidence, maximise_concentration

NO_WORDS = (
    "class {cls} has no words, so its word probabilities are 0/0 (or its mode is not unique); use "
    "inference='mean' or 'exact' with alpha > 0"
)

LONG_DOCUMENT = 1000  # words; a longer one, if also longer than the vocabulary, is drawn by its word probabilities

__all__ = ["Multinomial", "MultinomialParams", "MultinomialStats"]


class MultinomialStats(NamedTuple):
    """Weighted word counts of each class."""

    word_count: Array
    """(K, V)"""
    log_coefficient: Array
    """Weighted sum of the log multinomial coefficients of the documents, (); 0 without them."""


class MultinomialParams(NamedTuple):
    """Log word probabilities of each class."""

    log_prob: Array
    """ln theta, (K, V)"""


class LogGammaChart(NamedTuple):
    r"""Standardised logs of unnormalised cells :math:`g_j`, with :math:`\theta = g / T` and :math:`T = \sum_j g_j`.

    A Dirichlet cell is a gamma variable over the total, and the total is independent of it: giving T its
    :math:`\mathrm{Gamma}(A, 1)` density leaves the density of theta alone, and every coordinate free.
    """

    loc: Array
    spread: Array
    total: Array
    """A, (K,)"""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Family.chart`."""
        return {"log_cell": self.loc.shape}

    def params(self, u: dict[str, Array]) -> tuple[MultinomialParams, Array]:
        r"""See `Family.chart`: :math:`dg = T^{V-1}\, d\theta\, dT`."""
        log_cell = self.loc + self.spread * u["log_cell"]
        log_total = special(namespace(log_cell)).logsumexp(log_cell, axis=-1)
        density = (self.total - log_cell.shape[-1]) * log_total - namespace(log_total).exp(log_total)
        return MultinomialParams(log_cell - log_total[..., None]), log_cell.sum() + density.sum()


def _log_coefficient(x: Any) -> Array:
    """Log of the multinomial coefficient of each row, ln L! - sum_j ln x_j!."""
    if namespace(x) is not np:
        gammaln = special(namespace(x)).gammaln
        return gammaln(x.sum(-1) + 1) - gammaln(x + 1).sum(-1)
    length = np.asarray(x.sum(axis=1)).ravel()
    if sp.issparse(x):
        x = x.copy()
        x.sum_duplicates()
        terms = type(x)((log_factorial(x.data), x.indices, x.indptr), shape=x.shape)
        return log_factorial(length) - np.asarray(terms.sum(axis=1)).ravel()
    return log_factorial(length) - log_factorial(x).sum(axis=1)


def _urn_tokens(rng: np.random.Generator, alpha: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Tokens of documents drawn from a Polya urn, one document after the other.

    Token t is a new draw from alpha with probability A / (A + t), else a copy of one of the t before it (Blackwell and
    MacQueen 1973).
    """
    shape = len(lengths), int(lengths.max(initial=0))
    edges = np.cumsum(alpha)
    tokens = np.searchsorted(edges[:-1] / edges[-1], rng.random(shape), side="right")
    before = np.arange(shape[1])
    copied = rng.random(shape) * (edges[-1] + before) >= edges[-1]
    source = (rng.random(shape) * before).astype(np.int64)
    for t in np.flatnonzero(copied.any(axis=0)):
        rows = np.flatnonzero(copied[:, t])
        tokens[rows, t] = tokens[rows, source[rows, t]]
    return tokens[before < lengths[:, None]]


@family
class Multinomial(Family):
    """Word counts with Dirichlet(alpha) word probabilities; see the module docstring.

    Parameters
    ----------
    alpha : float or array, (V,) or (K, V)
        Concentrations (pseudo-counts). A posterior holds a (K, V) array.
    coefficient : bool
        Whether p(x) includes the multinomial coefficient.
    n_classes, n_features : int
        Set by `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Multinomial, Labels
    >>> x, r = np.array([[2, 1], [0, 3]]), Labels(np.array([0, 1]))
    >>> prior = Multinomial(alpha=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.alpha.tolist()
    [[3.0, 2.0], [1.0, 4.0]]
    """

    alpha: Any = 1.0
    coefficient: bool = static(default=False)
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def concentration(self) -> Array:
        """Alpha as a (K, V) array.

        Returns
        -------
        array (K, V)
            Pseudo-counts.
        """
        return dirichlet.broadcast(self.alpha, (self.n_classes, self.n_features), "alpha")

    def check(self, x: Any, names: Names = None) -> None:
        """See `Family.check`: counts are not missing and not negative."""
        values = x.data if sp.issparse(x) else np.asarray(x)
        if values.min(initial=0.0) >= 0:  # False for NaN too
            return
        refuse_columns(
            x,
            np.isnan,
            "{column} holds NaN; the multinomial event model has no missing counts: a token that was not seen "
            "is a count of 0, and a document with unknown tokens is the document without them",
            names,
        )
        refuse_columns(
            x,
            lambda v: v < 0,
            "Negative values in data: {column} holds {value:g}, and counts are not negative; "
            "for measurements use GaussianNB",
            names,
        )

    # ---- program

    def prior(self) -> MultinomialParams:
        """Site ``feature_prob`` (K, V)."""
        import jax.numpy as jnp
        import numpyro

        from bayesgen.distributions import Dirichlet

        with numpyro.plate("class", self.n_classes, dim=-1):
            theta = numpyro.sample("feature_prob", Dirichlet(self.concentration()))
        return MultinomialParams(jnp.log(theta))

    def observe(self, params: MultinomialParams, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`; `lengths` (n,) are the document lengths to draw."""
        import numpyro

        from bayesgen.distributions import WordCounts

        words = WordCounts(params.log_prob[y], lengths=lengths, coefficient=self.coefficient)
        return numpyro.sample("x", words, obs=x)

    # ---- statistics and likelihood

    def stats(self, x: Any, r: Any) -> MultinomialStats:
        """See `Family.stats`."""
        r = as_weights(r)
        log_coefficient = 0.0
        if self.coefficient:
            w = r.weights if isinstance(r, Labels) else r.sum(axis=1)
            each = _log_coefficient(x)
            log_coefficient = float(each.sum() if w is None else w @ each)
        return MultinomialStats(class_sums(x, r, self.n_classes), np.asarray(log_coefficient))

    def remove(self, a: MultinomialStats, b: MultinomialStats) -> MultinomialStats:
        """See `Family.remove`."""
        return MultinomialStats(np.maximum(a.word_count - b.word_count, 0.0), a.log_coefficient - b.log_coefficient)

    def _coefficient(self, x: Any) -> Any:
        return _log_coefficient(x)[:, None] if self.coefficient else 0.0

    def log_prob(self, params: MultinomialParams, x: Any) -> Array:
        """See `Family.log_prob`."""
        out = contract(x, params.log_prob)
        return out + self._coefficient(x) if self.coefficient else out

    def mle(self, stats: MultinomialStats) -> MultinomialParams:
        """Relative frequencies of the words; NaN for a class without words."""
        return MultinomialParams(dirichlet.log_normalised(stats.word_count))

    def log_likelihood(self, params: MultinomialParams, stats: MultinomialStats) -> Array:
        """See `Family.log_likelihood`."""
        return dirichlet.dot_log(stats.word_count, params.log_prob)

    # ---- conjugate answers

    def condition(self, stats: MultinomialStats) -> Multinomial:
        """Dirichlet(alpha + counts)."""
        return self.replace(alpha=self.concentration() + stats.word_count)

    def learn(self, stats: Any) -> Any:
        """See `Family.learn`."""
        if not isinstance(self.alpha, Evidence):
            return None
        value, weights, learned = maximise_concentration([stats.word_count], self.alpha, float(stats.log_coefficient))
        return self.replace(alpha=value[:, None] * weights[0]), learned

    def log_density(self, params: MultinomialParams) -> Array:
        """See `Family.log_density`."""
        return dirichlet.log_density(self.concentration(), params.log_prob).sum()

    def mean(self) -> MultinomialParams:
        """See `Family.mean`."""
        return MultinomialParams(dirichlet.log_normalised(self.concentration()))

    def shifted(self, times: float = 1.0) -> Multinomial:
        """See `Family.shifted`: Dirichlet(alpha + 1)."""
        return self.replace(alpha=self.alpha + times)

    def unbounded(self, stats: MultinomialStats, flat: bool = False) -> Problem | None:
        """See `Family.unbounded`."""
        return None if flat else small_cell(self.condition(stats).alpha)

    def mode(self) -> MultinomialParams:
        """The mode rule of `dirichlet.mode_counts`."""
        counts, boundary = dirichlet.mode_counts(self.concentration())
        if boundary:
            dirichlet.warn_boundary("feature_prob")
        return MultinomialParams(dirichlet.log_normalised(counts))

    @cached_property
    def _rising_tables(self) -> list[np.ndarray]:
        return _kernels.rising_tables(self.concentration())

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`: the Polya urn."""
        alpha = self.concentration()
        if namespace(x, self.alpha) is not np:
            urn = log_rising(alpha, x[:, None, :]).sum(-1) - log_rising(alpha.sum(-1), x.sum(-1)[:, None])
            return urn + self._coefficient(x)
        length = np.asarray(x.sum(axis=1)).reshape(-1, 1)
        out = _kernels.rising_sums(x, alpha, self._rising_tables) - log_rising(alpha.sum(-1), length)
        return out + self._coefficient(x)

    def log_evidence(self, stats: MultinomialStats) -> Array:
        """A Polya urn for each class, over all its tokens."""
        if isinstance(stats, dirichlet.UniqueCounts):
            return stats.log_evidence(self.alpha)
        return dirichlet.log_evidence(self.concentration(), stats.word_count).sum() + stats.log_coefficient

    def log_evidence_columns(self, stats: MultinomialStats) -> Array:
        """See `Family.log_evidence_columns`: the word against all others together, a beta-binomial."""
        alpha, count = self.concentration(), stats.word_count
        total, length = alpha.sum(-1, keepdims=True), count.sum(-1, keepdims=True)
        word = log_rising(alpha, count) + log_rising(total - alpha, length - count)
        return (word - log_rising(total, length)).sum(0)

    def log_loo(self, x: Any, y: Any, stats: MultinomialStats, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`: a document leaves the counts of its own class only."""
        codes, w = own_class(y)
        posterior = self.condition(stats)
        alpha, count = self.concentration(), stats.word_count
        out = posterior.log_predictive(x)
        x = sp.csr_array(x)
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        # (alpha' - w c)_c for each stored count c: a row leaves with all its weight. Counts go down before the
        # prior is added, so that a small concentration keeps its digits.
        at = codes[row], x.indices
        base = alpha[at] + np.maximum(count[at] - w[row] * x.data, 0.0)
        rising, more = safe_log(base), np.flatnonzero(x.data != 1)  # most words of a document occur once: (z)_1 = z
        rising[more] = log_rising(base[more], x.data[more])
        own = np.bincount(row, weights=rising, minlength=x.shape[0])
        length = np.asarray(x.sum(axis=1)).ravel()
        total = alpha.sum(-1)[codes] + np.maximum(count.sum(-1)[codes] - w * length, 0.0)
        own = np.where((total > 0) | (length == 0), own - log_rising(total, length), np.nan)
        out[np.arange(len(codes)), codes] = own + (_log_coefficient(x) if self.coefficient else 0.0)
        return out

    def logistic(self, params: MultinomialParams) -> tuple[Array, Array]:
        """See `Family.logistic`: log word probabilities, on counts."""
        return params.log_prob, np.zeros(self.n_classes)

    def log_prob_moments(self, x: Any) -> tuple[Array, Array]:
        r"""See `Family.log_prob_moments`; without the coefficient, which all classes share.

        :math:`\sum_j x_j\psi(\alpha_{kj}) - L\psi(A_k)` and
        :math:`\sum_j x_j^2\psi_1(\alpha_{kj}) - L^2\psi_1(A_k)`: the words of one class are dependent.
        """
        alpha = self.concentration()
        total = alpha.sum(-1)
        length = np.asarray(x.sum(axis=1)).reshape(-1, 1)
        square = x.multiply(x).tocsr() if sp.issparse(x) else x * x
        mean = contract(x, digamma(alpha)) - length * digamma(total)
        variance = contract(square, polygamma(1, alpha)) - length**2 * polygamma(1, total)
        return mean, np.maximum(variance, 0.0)  # of one word it is 0, up to rounding

    # ---- sampling

    def variables(self, params: MultinomialParams) -> dict[str, Array]:
        """See `Family.variables`: ``feature_prob``."""
        return {"feature_prob": namespace(*params).exp(params.log_prob)}

    def from_variables(self, values: dict[str, Array]) -> MultinomialParams:
        """See `Family.from_variables`."""
        return MultinomialParams(safe_log(values["feature_prob"]))

    def dims(self) -> dict[str, tuple[str, ...]]:
        """See `Family.dims`."""
        return {"feature_prob": ("class", "feature")}

    def compress(self, stats: Any, given: Any) -> Any:
        """See `Family.compress`."""
        shared = dirichlet.shared_by_cells(given.alpha, self.n_classes)
        if shared is None:
            return stats
        return dirichlet.unique_counts([stats.word_count], shared == "class", stats.log_coefficient)

    def chart(self) -> LogGammaChart:
        """See `Family.chart`."""
        alpha = self.concentration()
        return LogGammaChart(*dirichlet.log_gamma_moments(alpha), alpha.sum(-1))

    def tempered(self, power: float) -> Multinomial:
        """See `Family.tempered`."""
        return self.replace(alpha=power * (self.concentration() - 1.0) + 1.0)

    def marginals(self) -> dict[str, Any]:
        """See `Family.marginals`."""
        from scipy.stats import beta

        alpha = self.concentration()
        return {"feature_prob": (("class", "feature"), beta(alpha, alpha.sum(axis=1, keepdims=True) - alpha))}

    def stats_shapes(self) -> Any:
        """See `Family.stats_shapes`."""
        return MultinomialStats((self.n_classes, self.n_features), ())

    def undefined(self, params: MultinomialParams, stats: Any, needed: np.ndarray) -> Problem | None:
        """See `Family.undefined`."""
        bad = np.flatnonzero(np.isnan(params.log_prob).any(axis=1) & needed)
        return Problem(NO_WORDS, int(bad[0])) if bad.size else None

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """See `Family.improper`."""
        alpha = self.concentration()
        bad = np.flatnonzero(((alpha <= 0).any(axis=1) if strict else alpha.sum(axis=1) <= 0) & needed)
        text = "the distribution of the words in class {cls} is improper: concentrations are 0; give alpha > 0"
        return Problem(text, int(bad[0])) if bad.size else None

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> np.ndarray:
        """See `Family.sample`; `lengths` is a number or one for each row."""
        rng = generator(key)
        lengths = np.broadcast_to(np.asarray(lengths, dtype=np.int64), (len(y),))
        out = np.zeros((len(y), self.n_features))
        long = lengths > max(self.n_features, LONG_DOCUMENT)
        for k in np.unique(y):
            rows = np.flatnonzero((y == k) & long)
            if rows.size:
                if params is not None:
                    log_prob = params.log_prob[k]
                else:
                    log_prob = log_gamma_draws(rng, self.concentration()[k], (len(rows), self.n_features))
                prob = np.exp(log_prob - log_prob.max(axis=-1, keepdims=True))
                out[rows] = rng.multinomial(lengths[rows], prob / prob.sum(axis=-1, keepdims=True))
            # Token by token: a draw of all probabilities visits every word of the vocabulary for each document.
            rows = np.flatnonzero((y == k) & ~long)
            if params is not None:
                edges = np.cumsum(np.exp(params.log_prob[k]))
                words = np.searchsorted(edges[:-1] / edges[-1], rng.random(int(lengths[rows].sum())), side="right")
            else:
                words = _urn_tokens(rng, self.concentration()[k], lengths[rows])
            np.add.at(out, (np.repeat(rows, lengths[rows]), words), 1.0)
        return out

    def draw(self, key: Any, n: int) -> MultinomialParams:
        """See `Family.draw`."""
        alpha = self.concentration()
        log_gamma = log_gamma_draws(generator(key), alpha, (n, *alpha.shape))
        top = log_gamma.max(axis=-1, keepdims=True)
        total = np.log(np.exp(log_gamma - top).sum(axis=-1, keepdims=True)) + top
        return MultinomialParams(log_gamma - total)

    def draw_log_prob(self, params: MultinomialParams, x: Any) -> np.ndarray:
        """See `Family.draw_log_prob`: all draws in one product."""
        n_draws, n_classes, n_words = params.log_prob.shape
        flat = contract(x, params.log_prob.reshape(-1, n_words)).reshape(x.shape[0], n_draws, n_classes)
        return np.moveaxis(flat, 1, 0) + self._coefficient(x)
