"""Densities of rows under independent normal and Student t columns; missing cells are integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen import _compiled, _kernels
from bayesgen._math import sum_log1p

__all__ = ["LOG_2PI", "NEAR", "near_log_prob", "t_log_prob"]

LOG_2PI = float(np.log(2 * np.pi))
NEAR = 16.0  # class means within this many standard deviations share matrix products


def near_log_prob(
    x: Any, centre: np.ndarray, low: np.ndarray, shift: np.ndarray, variance: np.ndarray, norm: np.ndarray
) -> np.ndarray:
    """Normal log densities of all classes by products with x - c and its square, c near every mean.

    (x - m)^2 = (x - c)^2 - 2 (x - c)(m - c) + (m - c)^2; a missing cell adds nothing.
    """
    square, cross = (-0.5 / variance).T, (shift / variance).T
    constant = norm - 0.5 * shift**2 / variance

    total = constant.sum(axis=1)

    def work(block: slice, buffers: _kernels.Buffers) -> np.ndarray:
        rows = _kernels.rows(x, block)
        residual = np.subtract(rows, centre, out=buffers("residual", *rows.shape))
        residual -= low
        missing = np.isnan(residual) if np.isnan(residual.sum()) else None
        if missing is not None:
            residual[missing] = 0.0
        out = np.matmul(residual, cross, out=buffers("scores", len(rows), len(shift)))
        np.multiply(residual, residual, out=residual)
        out += np.matmul(residual, square, out=buffers("squares", *out.shape))
        out += total if missing is None else (~missing).astype(float) @ constant.T
        return out

    return _kernels.score_blocks(work, x.shape[0], len(shift), x.shape[1])


def t_log_prob(
    x: Any, loc: np.ndarray, low: np.ndarray, spread: np.ndarray, power: np.ndarray, norm: np.ndarray
) -> np.ndarray:
    """Sum over columns of norm - power log1p((x - m)^2 / spread), with one power (K,) for each class.

    Missing cells, and squares whose products could overflow, are summed one by one.
    """

    def by_column(block: Any, _: Any = None) -> np.ndarray:
        rows = np.asarray(_kernels.rows(x, block), dtype=float)
        out = np.empty((len(rows), len(loc)))
        observed = ~np.isnan(rows)
        complete = bool(observed.all())
        for k in range(len(loc)):
            square = np.square((rows - loc[k]) - low[k])
            square /= spread[k]
            if complete and square.max(initial=0.0) < 1e30:
                out[:, k] = norm[k].sum() - power[k] * sum_log1p(square)
            else:
                cell = np.where(observed, norm[k] - power[k] * np.log1p(square), 0.0)
                out[:, k] = cell.sum(axis=1)
        return out

    if x.shape[0] * loc.size < _compiled.LEAST_CELLS:
        return _kernels.score_blocks(by_column, x.shape[0], len(loc), x.shape[1])
    out = -power * _compiled.student_sums(x, loc, low, spread)
    for block in _kernels.row_blocks(x.shape[0], x.shape[1]):
        missing = np.isnan(_kernels.rows(x, block))
        out[block] += ~missing @ norm.T if missing.any() else norm.sum(axis=1)
    far = np.flatnonzero(~np.isfinite(out).all(axis=1))
    if far.size:
        out[far] = by_column(far)
    return out
