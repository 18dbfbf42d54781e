"""Random generators from whatever users pass for randomness."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen._math import imported_jax


def generator(key: Any = None) -> np.random.Generator:
    """A NumPy generator from None, an int, a Generator, a RandomState, or a JAX key.

    Independent conjugate draws are made by NumPy: it makes them in milliseconds, where compiling
    `jax.random.gamma` alone takes seconds.
    """
    if isinstance(key, np.random.Generator):
        return key
    if isinstance(key, np.random.RandomState):
        return np.random.default_rng(key.randint(0, 2**32, size=4, dtype=np.uint32))
    jax = imported_jax()
    if jax is not None and isinstance(key, jax.Array):
        data = jax.random.key_data(key) if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        return np.random.default_rng(np.asarray(data).ravel())
    try:
        return np.random.default_rng(key)
    except (TypeError, ValueError):
        raise ValueError(f"random_state must be None, a whole number, or a generator; got {key!r}") from None


def log_gamma_draws(rng: np.random.Generator, shape: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """Logarithms of Gamma(shape, 1) draws; exact for small shapes, whose draws underflow.

    For shape < 1: G(a) = G(a + 1) U^(1/a), taken in logs (Marsaglia and Tsang 2000, section 6).
    A shape of zero gives -inf, the limit.
    """
    shape = np.broadcast_to(shape, size)
    small = shape < 1
    out = np.log(rng.standard_gamma(np.where(small, shape + 1.0, shape), size=size))
    if small.any():
        a = shape[small]
        u = np.log(rng.random(a.shape))
        out[small] += np.where(a > 0, u / np.where(a > 0, a, 1.0), -np.inf)
    return out
