"""Densities of rows (and of their statistics) under normal and multivariate t classes; NaN cells are integrated out.

Rows that observe the same columns share one block of the covariance, so that they are scored together: a few common
patterns by a matrix product each, many rare ones by stacks of small products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm

from bayesgen import _kernels
from bayesgen._linalg import inverse_factor
from bayesgen._math import Array, log_rising, namespace
from bayesgen.families.base import dense
from bayesgen.families.diagonal_scores import LOG_2PI, NEAR
from bayesgen.families.normal_statistics import PatternStats, distinct, has_missing

__all__ = ["Formula", "linear_score", "log_likelihood_by_pattern", "observed_factor", "score", "t_formula", "whiten"]

Forms = Callable[[Array, _kernels.Buffers], Array]  # rows (n, d) to quadratic forms (n, K)
Formula = Callable[[Array, Array, Any], Array]  # quadratic form, ln det and number of columns to a log density

LOG_PI = float(np.log(np.pi))
FAR = 256.0  # standard deviations between class means that a linear score may span
CENTRAL = 64.0  # nats that the first class mean may add to a linear score
COMMON = 32  # rows of a pattern from which it is worth a product of its own
STACK_CELLS = 1 << 20  # numbers in a stack of small matrices


def observed_factor(matrix: Array, observed: Array) -> tuple[Array, Array]:
    """Inverse factors W, zero outside the observed block, with W matrix W' = I on it, and ln of its determinant.

    The matrix is (..., d, d), the pattern (..., d) bool; leading axes broadcast.
    """
    xp = namespace(matrix)
    block = observed[..., :, None] & observed[..., None, :]
    inverse, logdet = inverse_factor(xp.where(block, matrix, np.eye(matrix.shape[-1])))
    return xp.where(block, inverse, 0.0), logdet


def _forms(loc: Array, low: Array, inverse: Array, xp: Any) -> tuple[Forms, int]:
    """Quadratic forms |W (x - m_k)|^2 of rows x, as a function that gives (n, K); W is (d, d) or (K, d, d).

    Also how many numbers it holds for each row.

    Where the means are within `NEAR` standard deviations of each other, rows are centred once, and the means are taken
    off after a matrix product: one for all classes if W is shared, else one with the factors side by side.
    """
    d = loc.shape[1]
    factors = [inverse] * len(loc) if inverse.ndim == 2 else inverse
    if xp is not np:

        def traced(x: Array, _: _kernels.Buffers) -> Array:
            z = [((x - m) - rest) @ factor.T for m, rest, factor in zip(loc, low, factors, strict=True)]
            return xp.stack([(v * v).sum(axis=1) for v in z], axis=1)

        return traced, d
    turned = np.swapaxes(inverse, -1, -2)
    offset = (((loc - loc[0]) + (low - low[0]))[:, None] @ turned)[:, 0]
    if (offset * offset).sum(axis=1).max(initial=0.0) <= NEAR**2:
        rest = low[0] @ turned  # the low-order part of the centre
        if inverse.ndim == 2:
            return _near_shared(loc[0], rest, offset, inverse), d
        return _near(loc[0], offset + rest, turned), d * len(loc)
    centres = [
        (m, rest @ factor.T, np.asfortranarray(factor)) for m, rest, factor in zip(loc, low, factors, strict=True)
    ]

    def forms(x: np.ndarray, buffers: _kernels.Buffers) -> np.ndarray:
        out = buffers("forms", len(x), len(loc))
        for k, centre in enumerate(centres):
            z = whiten(x, *centre, buffers)
            np.einsum("ij,ij->i", z, z, out=out[:, k])
        return out

    return forms, d


def whiten(
    x: np.ndarray, centre: np.ndarray, rest: np.ndarray, lower: np.ndarray, buffers: _kernels.Buffers
) -> np.ndarray:
    """Rows W(x - c) - rest, (n, d), in a buffer; W is lower triangular, in column order."""
    z = np.subtract(x, centre, out=buffers("rows", *x.shape))
    z = dtrmm(1.0, lower, z.T, lower=1, overwrite_b=1).T  # half the work of a product of full matrices
    z -= rest
    return z


def _near_shared(centre: np.ndarray, rest: np.ndarray, offset: np.ndarray, inverse: np.ndarray) -> Forms:
    """|z|^2 - 2 z'm_k + |m_k|^2, with z the whitened row; the factor W is lower triangular."""
    square, cross, lower = (offset * offset).sum(axis=1), -2.0 * offset.T, np.asfortranarray(inverse)

    def forms(x: np.ndarray, buffers: _kernels.Buffers) -> np.ndarray:
        z = whiten(x, centre, rest, lower, buffers)
        out = np.matmul(z, cross, out=buffers("forms", len(x), len(offset)))
        out += np.einsum("ij,ij->i", z, z)[:, None]
        out += square
        return np.maximum(out, 0.0, out=out)

    return forms


def _near(centre: np.ndarray, offset: np.ndarray, turned: np.ndarray) -> Forms:
    """The product of rows with the factors of all classes side by side."""
    n_classes, d = offset.shape
    wide = np.ascontiguousarray(np.moveaxis(turned, 0, 1)).reshape(d, n_classes * d)

    def forms(x: np.ndarray, buffers: _kernels.Buffers) -> np.ndarray:
        z = np.subtract(x, centre, out=buffers("rows", *x.shape))
        z = np.matmul(z, wide, out=buffers("wide", len(x), n_classes * d))
        z -= offset.ravel()
        z = z.reshape(-1, n_classes, d)
        return np.einsum("ikj,ikj->ik", z, z)

    return forms


def score(x: Any, loc: Array, low: Array, matrix: Array, formula: Formula, xp: Any, factor: Any = None) -> Array:
    """formula(q, ln|matrix|, number of observed columns), shape (n, K); NaN cells are integrated out."""
    inverse, logdet = inverse_factor(matrix) if factor is None else factor
    n_classes, d = loc.shape
    if xp is np and has_missing(x):
        return _score_by_pattern(np.asarray(dense(x), dtype=float), loc, low, matrix, formula, (inverse, logdet))
    forms, cells = _forms(loc, low, inverse, xp)
    if xp is not np:
        return formula(forms(x, _kernels.Buffers()), logdet, d)

    def work(block: slice, buffers: _kernels.Buffers) -> np.ndarray:
        return formula(forms(np.asarray(_kernels.rows(x, block), dtype=float), buffers), logdet, d)

    cost = d if inverse.ndim == 2 else d * n_classes
    return _kernels.score_blocks(work, x.shape[0], n_classes, cost, max(1, _kernels.SCORE_CELLS // max(1, cells)))


def linear_score(x: Any, loc: np.ndarray, low: np.ndarray, inverse: np.ndarray) -> np.ndarray | None:
    """Log densities of normal classes with one covariance, up to the square of the row, (n, K).

    None where class means are so far apart that squares of their distances would swamp what is between near ones.
    """
    centre = loc[0]
    offset = ((loc - centre) + (low - low[0])) @ inverse.T
    square = (offset * offset).sum(axis=1)
    if not square.max(initial=0.0) <= FAR**2:
        return None
    weights = offset @ inverse
    constant = -0.5 * square - weights @ low[0]
    # Products of rows that are not centred lose no more digits than those of the scores themselves.
    central = bool((np.abs(weights) @ np.abs(centre)).max(initial=0.0) <= CENTRAL)
    if central:
        constant = constant - weights @ centre

    def work(block: slice, buffers: _kernels.Buffers) -> np.ndarray:
        rows = np.asarray(_kernels.rows(x, block), dtype=float)
        if not central:
            rows = np.subtract(rows, centre, out=buffers("rows", *rows.shape))
        out = np.matmul(rows, weights.T, out=buffers("scores", len(rows), len(loc)))
        out += constant
        return out

    return _kernels.score_blocks(work, x.shape[0], len(loc), len(centre))


def _score_by_pattern(x: np.ndarray, loc: Array, low: Array, matrix: Array, formula: Formula, whole: Any) -> Array:
    """See `score`; `whole` is the factor of the whole matrix."""
    patterns, which = distinct(~np.isnan(x))
    order = np.argsort(which, kind="stable")
    sizes = np.bincount(which, minlength=len(patterns))
    begins = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros((len(x), len(loc)))  # a row with nothing observed has density 1
    something = patterns.any(axis=1)
    for p in np.flatnonzero(something & (sizes >= COMMON)):
        seen = np.flatnonzero(patterns[p])
        index = order[begins[p] : begins[p + 1]]
        inverse, logdet = whole if patterns[p].all() else inverse_factor(matrix[..., seen[:, None], seen])
        (forms, _), buffers = _forms(loc[:, seen], low[:, seen], inverse, np), _kernels.Buffers()
        for block in _kernels.row_blocks(len(index), len(seen) * (1 if inverse.ndim == 2 else len(loc))):
            out[index[block]] = formula(forms(x[index[block]][:, seen], buffers), logdet, len(seen))
    rare = np.flatnonzero(something & (sizes < COMMON))
    stack = max(1, STACK_CELLS // (COMMON * matrix.size))
    for i in range(0, len(rare), stack):
        part = rare[i : i + stack]
        index = np.concatenate([order[begins[p] : begins[p + 1]] for p in part])
        out[index] = _stacked(x[index], patterns[part], sizes[part], loc, low, matrix, formula)
    return out


def _stacked(
    x: np.ndarray, patterns: np.ndarray, sizes: np.ndarray, loc: Array, low: Array, matrix: Array, formula: Formula
) -> np.ndarray:
    """Scores of rows of several patterns, `sizes` of each, one after the other."""
    kinds = matrix.ndim - 2  # 1 where each class has a matrix of its own
    inverse, logdet = observed_factor(matrix, patterns[:, None] if kinds else patterns)
    which = np.repeat(np.arange(len(patterns)), sizes)
    residual = np.where(patterns[which][:, None], (x[:, None] - loc) - low, 0.0)
    if kinds:
        z = (inverse[which] @ residual[..., None])[..., 0]
    else:
        z = residual @ np.swapaxes(inverse[which], -1, -2)
        logdet = logdet[:, None]
    return formula((z * z).sum(axis=-1), logdet[which], patterns.sum(axis=1)[which][:, None])


def t_formula(df: Array, kappa: Array) -> Formula:
    """Log density of the predictive t; df (eta) is () or (K,), kappa (K,)."""
    shrink = kappa / (kappa + 1.0)

    def constant(size: Any, xp: Any) -> Array:
        return log_rising(df / 2, size / 2) - 0.5 * size * (LOG_PI + xp.log1p(1.0 / kappa))

    known = cache(lambda size: constant(size, np))

    def formula(q: Array, logdet: Array, size: Any) -> Array:
        xp = namespace(df, kappa, q)
        power = -0.5 * (df + size)
        if xp is not np or np.ndim(size):
            return constant(size, xp) - 0.5 * logdet + power * xp.log1p(shrink * q)
        out = np.asarray(shrink * q)
        np.log1p(out, out=out)
        out *= power
        out += known(size) - 0.5 * logdet
        return out

    return formula


def normal_formula(q: Array, logdet: Array, size: Any) -> Array:
    """Log density of a normal vector."""
    return -0.5 * (size * LOG_2PI + logdet + q)


def pattern_log_likelihood(factor: tuple[Array, Array], stats: PatternStats, delta: Array) -> Array:
    """Log density of the observed cells, (); delta (P, K, d) are the class means less those of the parameters."""
    inverse, logdet = factor
    xp = namespace(inverse, delta)
    per_class = inverse.ndim == 4
    z = (inverse if per_class else inverse[:, None]) @ delta[..., None]
    trace = (inverse @ stats.scatter * inverse).sum((-1, -2))
    weight, size = stats.weight, stats.observed.sum(axis=1)
    each, size = (weight, size[:, None]) if per_class else (weight.sum(axis=1), size)
    about = each * (size * LOG_2PI + logdet) + trace
    return -0.5 * (about.sum() + (weight * xp.square(z).sum((-1, -2))).sum())


def log_likelihood_by_pattern(mean: Array, low: Array, covariance: Array, stats: PatternStats) -> Array:
    """See `Family.log_likelihood`: of the observed cells."""
    xp = namespace(mean, covariance)
    seen = stats.observed[:, None]
    delta = (stats.mean - mean) + (stats.mean_low - low)
    delta = xp.where(seen & (stats.weight[..., None] > 0), delta, 0.0)
    factor = observed_factor(covariance, seen if covariance.ndim == 3 else stats.observed)
    return pattern_log_likelihood(factor, stats, delta)
