"""Learning from and predicting dask collections: a task for each block, statistics joined in a tree.

The tasks are functions of their block alone, so that one lost with its worker is computed again and nothing else
changes. What travels between workers is `Statistics`, never rows.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed

from bayesgen._kernels import one_blas_thread
from bayesgen.estimators._parts import joined, saying, without_prior
from bayesgen.estimators._shell import Shell
from bayesgen.estimators._tables import is_dask
from bayesgen.statistics import Columns, Statistics

FAN_IN = 8  # statistics joined by one task


def summarise_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any, known: Columns | None
) -> Statistics | None:
    """Statistics of a dask collection; None if it has no rows."""
    blocks = _blocks(X, y, sample_weight)
    plain = delayed(without_prior(estimator), traverse=False)
    summarise = delayed(summarise_block)
    # Several BLAS threads in each of several workers would stand in each other's way.
    with one_blas_thread():
        if type(estimator)._columns is not Shell._columns:  # the first block that has rows says what the columns are
            for i, block in enumerate(blocks):
                (first,) = compute(summarise(plain, i, *block, classes, delayed(known, traverse=False)))
                if first is not None:
                    known = first.columns
                    break
        columns = delayed(known, traverse=False)
        parts = [summarise(plain, i, *block, classes, columns) for i, block in enumerate(blocks)]
        (total,) = compute(join_tree(plain, parts))
    return total


def join_tree(estimator: Any, parts: list[Any]) -> Any:
    """Delayed statistics of several parts together, a few joined by each task."""
    join = delayed(joined)
    while len(parts) > 1:
        parts = [join(estimator, parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def summarise_block(
    estimator: Any, i: int, X: Any, y: Any, sample_weight: Any, classes: Any, known: Columns | None
) -> Statistics | None:
    """Statistics of one block; None if it has no rows."""
    with saying(f"block {i}"):
        if X.shape[0] == 0 and len(y) == 0:
            return None
        return estimator._summarise(X, y, sample_weight, classes, known, part=True)[0]


# ------------------------------------------------------------------------------------------- blocks


def _one_column_block(X: Any) -> Any:
    """A dask array of rows, whose blocks have all columns."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a dask array of {X.ndim} dimension(s) instead")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _blocks(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    """Delayed (X, y, weights) of each block of rows."""
    if not is_dask(X):
        what = "y" if is_dask(y) else "sample_weight"
        raise ValueError(
            f"{what} is a dask collection, but X is a {type(X).__name__}: pass X as a dask collection too, or "
            f"{what}.compute()"
        )
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    sizes = None
    if isinstance(X, da.Array):
        X = _one_column_block(X)
        sizes = X.chunks[0]
        rows = X.to_delayed().ravel().tolist()
    else:
        rows = X.to_delayed()
    labels = _column_blocks(y, "y", len(rows), sizes)
    weights = [sample_weight] * len(rows)
    if np.ndim(sample_weight):
        weights = _column_blocks(sample_weight, "sample_weight", len(rows), sizes)
    return list(zip(rows, labels, weights, strict=True))


def _column_blocks(v: Any, name: str, n_blocks: int, sizes: tuple[float, ...] | None) -> list[Any]:
    """Delayed parts of labels or weights, cut as the blocks of X, whose sizes may be unknown."""
    known = sizes is not None and not np.isnan(sizes).any()
    if not is_dask(v):
        if not known:
            raise ValueError(
                f"the lengths of the blocks of X are not known, so that {name} cannot be cut to match: pass {name} as "
                "a dask collection with the same partitions"
            )
        v = da.from_array(np.asarray(v), chunks=-1)
    if isinstance(v, da.Array):
        if known and not np.isnan(v.shape[0]):
            if v.shape[0] != sum(sizes or ()):
                raise ValueError(f"{name} has {v.shape[0]} entries; X has {sum(sizes or ())} rows")
            v = v.rechunk((sizes, *((-1,) * (v.ndim - 1))))
        parts = v.to_delayed().ravel().tolist()
    else:
        parts = v.to_delayed()
    if len(parts) != n_blocks:
        raise ValueError(
            f"{name} has {len(parts)} partitions; X has {n_blocks}: take both from one collection, or repartition one"
        )
    return parts


# -------------------------------------------------------------------------------------- predictions


def predict_blocks(estimator: Any, method: str, X: Any, *args: Any, **kwargs: Any) -> Any:
    """A prediction of each block, lazily: a dask array whose blocks are those of X."""
    learned = estimator._state()
    n_classes, n_features = len(learned.fit.classes), learned.columns.n_features
    flat = method in ("predict", "score_samples") or (method == "decision_function" and n_classes == 2)
    dtype = learned.fit.classes.dtype if method == "predict" else np.dtype(float)
    if isinstance(X, da.Array):
        X = _one_column_block(X)
    if X.shape[1] != n_features:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {n_features} features as input"
        )
    empty = np.empty((0,) if flat else (0, n_classes), dtype)
    # A copy: what is learned later does not change what was asked for now.
    work = functools.partial(_predict_block, copy.copy(estimator), method, args, kwargs, empty)
    if isinstance(X, da.Array):
        if flat:
            return da.map_blocks(work, X, dtype=dtype, drop_axis=1, meta=empty)
        return da.map_blocks(work, X, dtype=dtype, chunks=(X.chunks[0], (n_classes,)), meta=empty)
    task = delayed(work)
    shape = (np.nan, *empty.shape[1:])
    parts = [da.from_delayed(task(part), shape, dtype, meta=empty) for part in X.to_delayed()]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _predict_block(
    estimator: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], empty: np.ndarray, X: Any
) -> np.ndarray:
    return empty if X.shape[0] == 0 else getattr(estimator, method)(X, *args, **kwargs)


def score_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Accuracy: what is right and what there is, summed over the blocks."""
    estimator._state()  # an error here rather than in every block
    count = delayed(_count_right)
    fitted = delayed(estimator, traverse=False)
    (counts,) = compute([count(fitted, i, *block) for i, block in enumerate(_blocks(X, y, sample_weight))])
    right, total = np.sum(counts, axis=0)
    if total == 0:
        raise ValueError("score needs rows with weight: there are none in any block")
    return float(right / total)


def _count_right(estimator: Any, i: int, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
    with saying(f"block {i}"):
        if X.shape[0] == 0 and len(y) == 0:
            return 0.0, 0.0
        weights = 1.0 if sample_weight is None else sample_weight
        total = float(np.sum(np.broadcast_to(weights, len(y))))
        return (estimator.score(X, y, sample_weight) * total if total else 0.0), total
