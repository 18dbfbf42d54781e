r"""Independent blocks of columns, each with a family of its own.

Given the class the blocks are independent, so log probabilities, evidence, log densities and scores add over
blocks: :math:`\ln p(x \mid y) = \sum_b \ln p_b(x_b \mid y)`. Data are a tuple with one entry for each block;
statistics, parameters and hyperparameters are tuples in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen._math import Array
from bayesgen._random import generator
from bayesgen.families.base import Elsewhere, Family, family, parts_of, static

__all__ = ["Mixed"]


@family
class Mixed(Family):
    """Blocks of columns that are independent given the class; see the module docstring.

    Parameters
    ----------
    blocks : tuple of Family
        One family for each block.
    names : tuple of str
        Block names; the NumPyro sites of a block are called ``name.site``.
    n_classes, n_features : int
        Set by `init`; n_features counts the columns of all blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Bernoulli, Labels, Mixed, Poisson
    >>> x, r = (np.array([[1], [0]]), np.array([[2.0], [5.0]])), Labels(np.array([0, 1]))
    >>> prior = Mixed((Bernoulli(), Poisson()), ("seen", "count")).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.log_predictive(x).shape
    (2, 2)
    """

    blocks: tuple[Any, ...] = ()
    names: tuple[str, ...] = static(default=())
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def _each(self, method: str, *args: Any) -> tuple[Any, ...]:
        """``method`` of every block on its part of each argument."""
        return tuple(getattr(block, method)(*parts) for block, *parts in zip(self.blocks, *args, strict=True))

    def init(self, x: Any, n_classes: int) -> Mixed:
        """See `Family.init`."""
        blocks = tuple(b.init(part, n_classes) for b, part in zip(self.blocks, x, strict=True))
        names = self.names or tuple(f"block{i}" for i in range(len(blocks)))
        return Mixed(blocks, names, n_classes, sum(b.n_features for b in blocks))

    def resolve(self, stats: Any) -> Mixed:
        """See `Family.resolve`."""
        return self.replace(blocks=self._each("resolve", stats))

    # ---- program

    def prior(self) -> tuple[Any, ...]:
        """The sites of every block, prefixed with its name."""
        from numpyro.handlers import scope

        params = []
        for name, block in zip(self.names, self.blocks, strict=True):
            with scope(prefix=name, divider="."):
                params.append(block.prior())
        return tuple(params)

    def observe(self, params: Any, y: Any, x: Any = None, lengths: Any = None) -> tuple[Any, ...]:
        """See `Family.observe`: sites ``name.x``."""
        from numpyro.handlers import scope

        out = []
        for i, (name, block) in enumerate(zip(self.names, self.blocks, strict=True)):
            with scope(prefix=name, divider=".", hide_types=["plate"]):
                out.append(block.observe(params[i], y, None if x is None else x[i], lengths))
        return tuple(out)

    # ---- statistics and likelihood

    def stats(self, x: Any, r: Any) -> tuple[Any, ...]:
        """See `Family.stats`."""
        return tuple(block.stats(part, r) for block, part in zip(self.blocks, x, strict=True))

    def merge(self, a: Any, b: Any) -> tuple[Any, ...]:
        """See `Family.merge`."""
        return self._each("merge", a, b)

    def remove(self, a: Any, b: Any) -> tuple[Any, ...]:
        """See `Family.remove`."""
        return self._each("remove", a, b)

    def reclass(self, stats: Any, positions: np.ndarray, n_classes: int) -> tuple[Any, ...]:
        """See `Family.reclass`."""
        return tuple(b.reclass(s, positions, n_classes) for b, s in zip(self.blocks, stats, strict=True))

    def stats_shapes(self) -> tuple[Any, ...]:
        """See `Family.stats_shapes`."""
        return tuple(b.stats_shapes() for b in self.blocks)

    def log_prob(self, params: Any, x: Any) -> Array:
        """See `Family.log_prob`."""
        return sum(self._each("log_prob", params, x))

    def draw_log_prob(self, params: Any, x: Any) -> np.ndarray:
        """See `Family.draw_log_prob`."""
        return sum(self._each("draw_log_prob", params, x))

    def log_prob_moments(self, x: Any) -> tuple[Array, Array]:
        """See `Family.log_prob_moments`."""
        means, variances = zip(*self._each("log_prob_moments", x), strict=True)
        return sum(means), sum(variances)

    def mle(self, stats: Any) -> tuple[Any, ...]:
        """See `Family.mle`."""
        return self._each("mle", stats)

    def log_likelihood(self, params: Any, stats: Any) -> Array:
        """See `Family.log_likelihood`."""
        return sum(self._each("log_likelihood", params, stats))

    # ---- conjugate answers

    def condition(self, stats: Any) -> Mixed:
        """See `Family.condition`."""
        return self.replace(blocks=self._each("condition", stats))

    def log_density(self, params: Any) -> Array:
        """See `Family.log_density`."""
        return sum(self._each("log_density", params))

    def mean(self) -> tuple[Any, ...]:
        """See `Family.mean`."""
        return self._each("mean")

    def mode(self) -> tuple[Any, ...]:
        """See `Family.mode`."""
        return self._each("mode")

    def log_predictive(self, x: Any) -> Array:
        """See `Family.log_predictive`."""
        return sum(self._each("log_predictive", x))

    def log_evidence(self, stats: Any) -> Array:
        """See `Family.log_evidence`."""
        return sum(self._each("log_evidence", stats))

    def log_loo(self, x: Any, y: Any, stats: Any, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `Family.log_loo`."""
        parts = zip(self.blocks, x, stats, parts_of(elsewhere, len(self.blocks)), strict=True)
        return sum(block.log_loo(part, y, s, rest) for block, part, s, rest in parts)

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> tuple[Any, ...]:
        """See `Family.sample`."""
        rng = generator(key)
        params = (None,) * len(self.blocks) if params is None else params
        return tuple(b.sample(p, y, rng, lengths) for b, p in zip(self.blocks, params, strict=True))

    def draw(self, key: Any, n: int) -> tuple[Any, ...]:
        """See `Family.draw`."""
        rng = generator(key)
        return tuple(block.draw(rng, n) for block in self.blocks)
