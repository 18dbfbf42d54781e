"""Sums over rows: one pass, chunked, float64 accumulators, memory that does not grow with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from bayesgen._math import log_rising, safe_log

try:
    from scipy.sparse._sparsetools import coo_todense
except ImportError:
    coo_todense = None

CHUNK = 1024  # rows whose residuals and their squares stay in the second-level cache
ENTRIES = 1 << 18  # stored entries of a sparse matrix taken at once
SCORE_CELLS = 1 << 17  # numbers of a block of rows that is scored at once
THREADED_CELLS = 1_000_000  # below this, starting threads costs more than it saves


def rows(x: Any, i: Any, j: int | None = None) -> np.ndarray:
    """Rows i..j (or an index array i) of a dense or sparse matrix, dense."""
    part = x[i] if j is None else x[i:j]
    return part.toarray() if sp.issparse(part) else part


def row_blocks(n: int, cells_per_row: int, cells: int = 1 << 19) -> list[slice]:
    """Slices of rows whose temporaries stay near `cells` numbers."""
    step = max(1, cells // max(1, cells_per_row))
    return [slice(i, min(n, i + step)) for i in range(0, n, step)]


def _spans(n: int, parts: int) -> list[tuple[int, int]]:
    cut = [k * n // parts for k in range(parts + 1)]
    return list(pairwise(cut))


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the process: to find them takes milliseconds."""
    return ThreadpoolController()


_LIMITING = Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS runs in the calling thread.

    The limit belongs to the process: two threads that each put back what they had found would leave it at 1. So only
    one sets it; others that come meanwhile, and the same one further in, leave it as it is.
    """
    if not _LIMITING.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITING.release()


def _map_rows(work: Callable[[int, int], Any], n: int, cells: int) -> list[Any]:
    """work(lo, hi) over all rows: in two threads with one BLAS thread each when there is much to do.

    BLAS threads on small blocks collapse when another process holds a core; Python threads do not.
    """
    if cells < THREADED_CELLS:
        return [work(0, n)]
    # NumPy's error state belongs to the context of the caller: each thread gets a copy.
    jobs = [(copy_context(), span) for span in _spans(n, 2)]
    with one_blas_thread(), ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: job[0].run(work, *job[1]), jobs))


def score_blocks(
    work: Callable[[slice], np.ndarray], n: int, n_out: int, cells_per_row: int, step: int | None = None
) -> np.ndarray:
    """work(block of rows) for all rows, stacked (n, n_out), with temporaries that stay in cache."""
    out = np.empty((n, n_out))
    step = step or max(1, SCORE_CELLS // max(1, cells_per_row))

    def fill(lo: int, hi: int) -> None:
        for i in range(lo, hi, step):
            block = slice(i, min(hi, i + step))
            out[block] = work(block)

    _map_rows(fill, n, n * cells_per_row)
    return out


def product(x: Any, table: np.ndarray) -> np.ndarray:
    """The product of x (n, d), dense or CSR, and a C-contiguous table (d, K); a large CSR matrix in two threads."""
    if not sp.issparse(x) or x.nnz * table.shape[1] < THREADED_CELLS:
        return np.asarray(x @ table)
    out = np.empty((x.shape[0], table.shape[1]))

    def fill(lo: int, hi: int) -> None:
        a, b = x.indptr[lo], x.indptr[hi]
        part = sp.csr_array((x.data[a:b], x.indices[a:b], x.indptr[lo : hi + 1] - a), shape=(hi - lo, x.shape[1]))
        out[lo:hi] = part @ table

    _map_rows(fill, x.shape[0], x.nnz * table.shape[1])
    return out


def _one_hot(codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    out = np.zeros((n_classes, len(codes)))
    out[codes, np.arange(len(codes))] = 1.0 if weights is None else weights
    return out


def _chunks(lo: int, hi: int) -> Iterable[tuple[int, int]]:
    return ((i, min(hi, i + CHUNK)) for i in range(lo, hi, CHUNK))


def _part(w: np.ndarray | None, i: int, j: int) -> np.ndarray | None:
    return None if w is None else w[i:j]


# ------------------------------------------------------------------------------------------- counts


def class_sums(x: Any, codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Weighted sum of the rows of each class, shape (K, d)."""
    if sp.issparse(x):
        return _sparse_class_sums(x, codes, weights, n_classes)
    n, d = x.shape

    def work(lo: int, hi: int) -> np.ndarray:
        total = np.zeros((n_classes, d))
        for i, j in _chunks(lo, hi):
            block = np.asarray(x[i:j], dtype=float)
            total += _one_hot(codes[i:j], _part(weights, i, j), n_classes) @ block
        return total

    return sum(_map_rows(work, n, n * d))


def _sparse_class_sums(x: Any, codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Scatter-add of the stored entries into (K, d), a few hundred thousand at a time."""
    n, d = x.shape
    total = np.zeros((n_classes, d))
    codes = codes.astype(x.indices.dtype, copy=False)
    i = 0
    while i < n:
        j = max(i + 1, int(np.searchsorted(x.indptr, x.indptr[i] + ENTRIES, side="right")) - 1)
        j = min(j, n)
        a, b = x.indptr[i], x.indptr[j]
        per_row = np.diff(x.indptr[i : j + 1])
        data = x.data[a:b].astype(float, copy=False)
        if weights is not None:
            data = data * np.repeat(weights[i:j], per_row)
        scatter_add(total, np.repeat(codes[i:j], per_row), x.indices[a:b], data)
        i = j
    return total


def _scatter_by_bincount(total: np.ndarray, row: np.ndarray, col: np.ndarray, data: np.ndarray) -> None:
    """total[row, col] += data, repeated places included."""
    index = row.astype(np.int64) * total.shape[1] + col
    total += np.bincount(index, weights=data, minlength=total.size).reshape(total.shape)


def _scatter_by_scipy(total: np.ndarray, row: np.ndarray, col: np.ndarray, data: np.ndarray) -> None:
    """The same by the loop behind scipy's `coo_array.toarray`: two to three times faster, no temporary."""
    n_rows, n_cols = total.shape
    coo_todense(n_rows, n_cols, len(data), row, col, data, total.ravel(), 0)


# The loop is not public in scipy; without it the result is the same, slower.
scatter_add = _scatter_by_bincount if coo_todense is None else _scatter_by_scipy


# ------------------------------------------------------------------------------- moments of classes


def _pilots(x: Any, codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    """A row near each class mean, shape (K, d): the weighted mean of the first rows of the class.

    Residuals about it keep every digit when the data sit far from zero or the classes far apart. Rows of
    weight zero are not looked at.
    """
    d = x.shape[1]
    out = np.zeros((n_classes, d))
    first = np.full(n_classes, -1)
    counted = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
    first[codes[counted[::-1]]] = counted[::-1]
    for k in np.flatnonzero(first >= 0):
        index = first[k] + np.flatnonzero(codes[first[k] : first[k] + 256] == k)
        w = None
        if weights is not None:
            index = index[weights[index] > 0]
            w = weights[index]
        block = rows(x, index).astype(float)
        out[k] = block[0]
        if len(block) > 1:
            with np.errstate(over="ignore", invalid="ignore"):
                out[k] += np.average(block - block[0], axis=0, weights=w)
    return out


def _residuals(x: Any, i: int, j: int, codes: np.ndarray, pilot: np.ndarray, buffer: np.ndarray) -> np.ndarray:
    """Rows i..j less the pilots of their classes, in a buffer that is used again: fresh memory costs more than sums."""
    out = buffer[: j - i]
    np.take(pilot, codes[i:j], axis=0, out=out, mode="clip")
    return np.subtract(rows(x, i, j), out, out=out)


def pooled_moments(
    x: Any, codes: np.ndarray, weights: np.ndarray | None, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pilots (K, d), residual sums (K, d) and residual scatter (d, d) summed over the classes."""
    n, d = x.shape
    pilot = _pilots(x, codes, weights, n_classes)

    def work(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        total, scatter, buffer = np.zeros((n_classes, d)), np.zeros((d, d)), np.empty((CHUNK, d))
        for i, j in _chunks(lo, hi):
            w = _part(weights, i, j)
            residual = _residuals(x, i, j, codes, pilot, buffer)
            total += _one_hot(codes[i:j], w, n_classes) @ residual
            scatter += residual.T @ (residual if w is None else w[:, None] * residual)
        return total, scatter

    parts = _map_rows(work, n, n * d)
    return pilot, sum(p[0] for p in parts), sum(p[1] for p in parts)


def class_moments(
    x: Any, codes: np.ndarray, weights: np.ndarray | None, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pilots (K, d), residual sums (K, d) and residual scatter (K, d, d) of each class."""
    n, d = x.shape
    pilot = _pilots(x, codes, weights, n_classes)
    small = codes.astype(np.uint16) if n_classes <= 1 << 16 else codes  # which NumPy sorts by counting
    order = np.argsort(small, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_classes))])
    ones = np.ones(CHUNK)

    def work(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        total, scatter, buffer = np.zeros((n_classes, d)), np.zeros((n_classes, d, d)), np.empty((CHUNK, d))
        for k in range(n_classes):
            for i, j in _chunks(max(lo, bounds[k]), min(hi, bounds[k + 1])):
                index = order[i:j]
                residual = buffer[: len(index)]
                if isinstance(x, np.ndarray) and x.dtype == float:
                    np.take(x, index, axis=0, out=residual, mode="clip")
                else:
                    residual[:] = rows(x, index)
                residual -= pilot[k]
                weighted = residual if weights is None else weights[index][:, None] * residual
                total[k] += ones[: len(index)] @ weighted
                scatter[k] += residual.T @ weighted
        return total, scatter

    parts = _map_rows(work, n, n * d)
    return pilot, sum(p[0] for p in parts), sum(p[1] for p in parts)


def diagonal_moments(
    x: Any, codes: np.ndarray, weights: np.ndarray | None, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pilots (K, d), residual sums (K, d) and sums of squared residuals (K, d) of each class."""
    n, d = x.shape
    pilot = _pilots(x, codes, weights, n_classes)

    def work(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        total, square, buffer = np.zeros((n_classes, d)), np.zeros((n_classes, d)), np.empty((CHUNK, d))
        for i, j in _chunks(lo, hi):
            residual = _residuals(x, i, j, codes, pilot, buffer)
            hot = _one_hot(codes[i:j], _part(weights, i, j), n_classes)
            total += hot @ residual
            square += hot @ np.multiply(residual, residual, out=residual)
        return total, square

    parts = _map_rows(work, n, n * d)
    return pilot, sum(p[0] for p in parts), sum(p[1] for p in parts)


def observed_moments(
    x: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`diagonal_moments` over the observed (not NaN) cells, with their weight (K, d) first."""
    _, d = x.shape
    seen = np.zeros((n_classes, d))
    pilot, total, square = np.zeros_like(seen), np.zeros_like(seen), np.zeros_like(seen)
    for k in range(n_classes):
        index = np.flatnonzero(codes == k)
        if not index.size:
            continue
        block = rows(x, index).astype(float)
        w = np.ones(len(index)) if weights is None else weights[index]
        observed = ~np.isnan(block) & (w > 0)[:, None]
        first = np.where(observed.any(axis=0), block[observed.argmax(axis=0), np.arange(d)], 0.0)
        seen[k] = w @ observed
        step = w @ np.where(observed, block - first, 0.0)
        pilot[k] = first + np.where(seen[k] > 0, step / np.where(seen[k] > 0, seen[k], 1.0), 0.0)
        residual = np.where(observed, block - pilot[k], 0.0)
        total[k], square[k] = w @ residual, w @ (residual * residual)
    return seen, pilot, total, square


# ------------------------------------------------------------------------------- rising factorials

LAYERS = 4  # counts above this are rare in text and take the general formula


def rising_tables(a: np.ndarray) -> list[np.ndarray]:
    """log(a + m) for m = 0..3, each (d, K) and C-contiguous, for `rising_sums`."""
    return [np.ascontiguousarray(safe_log(a + m).T) for m in range(LAYERS)]


def rising_sums(x: Any, a: np.ndarray, tables: list[np.ndarray]) -> np.ndarray:
    r""":math:`\sum_j \ln (a_{kj})_{x_{ij}}`, shape (n, K), for x (n, d) dense or sparse and a (K, d).

    Whole counts are summed as :math:`\sum_m [x > m] \ln(a + m)`, one sparse product a layer: most
    counts are 1, so most of the work is one product, and no digits are lost in differences of gammaln.
    """
    x = sp.csr_array(x)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    whole = bool(np.all(x.data == np.floor(x.data)))
    out = np.zeros((x.shape[0], a.shape[0]))
    for m in range(LAYERS if whole else 0):
        x = _entries_above(x, m)
        if not x.nnz:
            return out
        ones = sp.csr_array((np.ones(x.nnz), x.indices, x.indptr), shape=x.shape)
        out += ones @ tables[m]
    rest = _entries_above(x, LAYERS if whole else 0)
    offset = LAYERS if whole else 0
    step = max(1, (1 << 19) // len(a))
    row = np.repeat(np.arange(x.shape[0]), np.diff(rest.indptr))
    for i in range(0, rest.nnz, step):
        part = slice(i, i + step)
        term = log_rising(a[:, rest.indices[part]] + offset, rest.data[part] - offset)
        for k in range(len(a)):
            out[:, k] += np.bincount(row[part], weights=term[k], minlength=len(out))
    return out


def _entries_above(x: Any, m: int) -> Any:
    keep = x.data > m
    if keep.all():
        return x
    indptr = np.concatenate([[0], np.cumsum(keep)])[x.indptr]
    return sp.csr_array((x.data[keep], x.indices[keep], indptr), shape=x.shape)
