"""Cholesky factors of small matrices: LAPACK for NumPy, plain products for JAX.

The JAX versions are loops over columns made of elementwise and matrix products. A compiled program with
several *batched* LAPACK calls can deadlock in jaxlib 0.10 on CPU, so no program of this library
contains one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from bayesgen._math import Array, namespace

WIDE = 32  # columns from which on a Cholesky factor is quicker than eigenvalues


def cholesky(a: Array) -> Array:
    """Lower Cholesky factor of (..., d, d) matrices. NumPy input: `LinAlgError` if not positive definite."""
    if namespace(a) is np:
        return np.linalg.cholesky(a)
    import jax
    import jax.numpy as jnp

    d = a.shape[-1]

    def column(j: Any, lower: Array) -> Array:
        row = lower[..., j, :]
        s = a[..., :, j] - jnp.einsum("...ik,...k->...i", lower, row)
        pivot = jnp.sqrt(s[..., j])
        col = jnp.where(jnp.arange(d) >= j, s / pivot[..., None], 0.0)
        return lower.at[..., :, j].set(col)

    return jax.lax.fori_loop(0, d, column, jnp.zeros_like(a))


def inverse_lower(lower: Array) -> Array:
    """Inverse of lower-triangular (..., d, d) matrices."""
    d = lower.shape[-1]
    if namespace(lower) is np:
        # The LAPACK routine itself: `solve_triangular` wakes BLAS threads, milliseconds for a 2 x 2 matrix.
        flat = lower.reshape(-1, d, d)
        return np.stack([scipy.linalg.lapack.dtrtri(m, lower=1)[0] for m in flat]).reshape(lower.shape)
    import jax
    import jax.numpy as jnp

    def row(i: Any, inverse: Array) -> Array:
        r = (i == jnp.arange(d)) - jnp.einsum("...k,...kj->...j", lower[..., i, :], inverse)
        return inverse.at[..., i, :].set(r / lower[..., i, i][..., None])

    return jax.lax.fori_loop(0, d, row, jnp.zeros_like(lower))


def inverse_factor(a: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factor W with W a W' = I, and ln |a|, for (..., d, d) matrices.

    The matrix is scaled to unit diagonal first, so that columns in different units do not matter.
    """
    xp = namespace(a)
    sd = xp.sqrt(xp.diagonal(a, axis1=-2, axis2=-1))
    lower = cholesky(a / (sd[..., :, None] * sd[..., None, :]))
    logdet = 2 * (xp.log(xp.diagonal(lower, axis1=-2, axis2=-1)) + xp.log(sd)).sum(-1)
    return inverse_lower(lower) / sd[..., None, :], logdet


def log_det_growth(a: Array, b: Array) -> tuple[Array, Array]:
    """Give ln |a|, and ln |a + b| - ln |a| for b positive semi-definite.

    Where b is small beside a, the growth is a sum of log1p of relative eigenvalues: an evidence multiplies it by
    degrees of freedom that may be large, and a difference of two logarithms would have lost its digits.
    """
    inverse, log_det = inverse_factor(a)
    growth = inverse_factor(a + b)[1] - log_det
    if namespace(a, b) is not np:
        return log_det, growth
    relative = inverse @ b @ np.swapaxes(inverse, -1, -2)
    small = np.trace(relative, axis1=-2, axis2=-1) < 1.0
    if small.any():
        growth = np.where(small, np.log1p(np.maximum(np.linalg.eigvalsh(relative), -0.5)).sum(-1), growth)
    return log_det, growth


def _least_eigenvalue_above(a: np.ndarray, bound: float) -> bool:
    """Whether this is sure from a Cholesky factor: 1 / trace(inverse) is below every eigenvalue."""
    try:
        inverse = inverse_lower(np.linalg.cholesky(a))
    except np.linalg.LinAlgError:
        return False
    return bool(1.0 / np.square(inverse).sum() > bound)


def dependent_columns(a: np.ndarray) -> list[int]:
    """Columns that make a covariance matrix singular: [] if it is positive definite.

    Zero variances give those columns. Otherwise the matrix is scaled to correlations; if its smallest
    eigenvalue is below 20 d eps, the columns that take part in that eigenvector.
    """
    variance = np.diagonal(a)
    flat = np.flatnonzero(~(variance > 0))
    if flat.size:
        return flat.tolist()
    sd = np.sqrt(variance)
    scaled, least = a / np.outer(sd, sd), 20 * len(a) * np.finfo(float).eps
    if len(a) > WIDE and _least_eigenvalue_above(scaled, least):
        return []
    values, vectors = np.linalg.eigh(scaled)
    if values[0] > least:
        return []
    share = np.abs(vectors[:, 0])
    return np.flatnonzero(share > 1e-4 * share.max()).tolist()
