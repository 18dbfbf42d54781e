"""Scores of many rows in compiled code, where NumPy would write and read a table for each step of a formula.

The functions are compiled once for each number of classes and columns: rows come in chunks of one size, the last one
padded.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bayesgen import _kernels

CHUNK = 4096  # rows
FACTORS = 16  # that are multiplied before a logarithm is taken
LEAST_CELLS = 1 << 25  # rows x columns x classes: below this, compiling takes longer than it saves


@cache
def _student_kernel() -> Any:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def kernel(x: Any, loc: Any, low: Any, precision: Any) -> Any:
        """Sums over columns of log1p(precision (x - loc)^2), (rows, K)."""
        residual = (x[:, None, :] - loc) - low
        u = jnp.where(jnp.isnan(residual), 0.0, residual * residual * precision)
        u = u.reshape(*u.shape[:2], FACTORS, -1)
        # Products of 1 + u less one, which keep the digits of small u; XLA makes one loop of it all.
        product = jax.lax.reduce(u, np.float64(0.0), lambda a, b: a + b * (1.0 + a), (2,))
        return jnp.log1p(product).sum(-1)

    return kernel


def student_sums(x: Any, loc: np.ndarray, low: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Sums over observed columns of log1p((x - loc)^2 / spread), (n, K), for x (n, d), dense or sparse.

    inf where a product leaves float64, for rows very far out.
    """
    import jax

    d = x.shape[1]
    width = -(-d // FACTORS) * FACTORS
    pad = ((0, 0), (0, width - d))
    kernel = _student_kernel()
    with jax.enable_x64(True):
        args = [jax.device_put(np.pad(a, pad)) for a in (loc, low, 1.0 / spread)]

    def work(block: slice, _: _kernels.Buffers) -> np.ndarray:
        rows = np.zeros((CHUNK, width))
        n = block.stop - block.start
        rows[:n, :d] = _kernels.rows(x, block)
        with jax.enable_x64(True):  # of this thread
            return np.asarray(kernel(rows, *args))[:n]

    return _kernels.score_blocks(work, x.shape[0], len(loc), d, CHUNK)
