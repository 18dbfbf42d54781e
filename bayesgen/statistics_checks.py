"""Checks of sufficient statistics that came from elsewhere, whatever the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen.families.diagonal import GaussianStats
from bayesgen.families.normal_statistics import MultivariateGaussianStats, sum_patterns
from bayesgen.statistics import Columns, Statistics

__all__ = ["check_columns", "check_statistics"]

ROUNDING = 1e-9  # of sums, relative
INDEFINITE = 1e-6  # an eigenvalue of a scatter in units of its diagonal


def check_statistics(s: Statistics, complete: bool = False, definite: bool = True) -> None:
    """Raise `ValueError` unless classes, counts, columns and moments can be those of rows.

    Parameters
    ----------
    s : Statistics
    complete : bool
        Whether every row of a class counts in its mean and covariance, none of them being without any cell.
    definite : bool
        Whether to check that scatter matrices have no negative eigenvalue, as rounding may give them after `forget`.
    """
    if not isinstance(s.classes, np.ndarray) or s.classes.ndim != 1:
        raise ValueError(f"statistics.classes must be an array of labels, (n_classes,); got {s.classes!r:.100}")
    k = len(s.classes)
    try:
        count = np.asarray(s.class_count, dtype=float)
        distinct = k > 0 and np.array_equal(np.unique(s.classes), s.classes)
    except (TypeError, ValueError):
        distinct = False
    if not distinct or count.shape != (k,):
        raise ValueError("statistics.classes must be sorted, distinct labels, with one class_count for each")
    if not (np.isfinite(count) & (count >= 0)).all():
        raise ValueError(f"statistics.class_count must be non-negative numbers; got {count.tolist()}")
    check_columns(s.columns)
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            whole = sum_patterns(s.features)
    except (TypeError, AttributeError, IndexError, ValueError):
        raise ValueError(
            f"statistics.features must be the statistics of a family, or a tuple of them for the blocks of a mixed "
            f"model, with parts that belong together; got {type(s.features).__name__}"
        ) from None
    _check_moments(whole, count, complete, definite)


def check_columns(columns: Any, name: str = "statistics.columns") -> None:
    """Raise `ValueError` unless it is a `Columns` value with parts that belong together."""
    if not isinstance(columns, Columns):
        raise ValueError(f"{name} must be a Columns value; got {type(columns).__name__}")
    d, names, levels, blocks = columns.n_features, columns.names, columns.levels, columns.blocks
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 0:
        raise ValueError(f"{name}.n_features must be a whole number; got {d!r:.100}")
    if names is not None and np.shape(names) != (d,):
        raise ValueError(f"{name}.names must be None or the names of {d} columns; got {names!r:.100}")
    if levels is not None and (len(levels) != d or any(v.ndim != 1 for v in levels)):
        raise ValueError(f"{name}.levels must be None or an array of levels for each of {d} columns")
    if blocks is None:
        return
    if not isinstance(blocks, tuple) or not all(isinstance(b, tuple) and len(b) == 3 for b in blocks):
        raise ValueError(f"{name}.blocks must be None or a tuple of (name, positions, Columns); got {blocks!r:.100}")
    for i, (label, index, own) in enumerate(blocks):
        check_columns(own, f"{name}.blocks[{i}]")
        at = np.asarray(index)
        inside = at.shape == (own.n_features,) and at.dtype.kind in "iu" and bool(((at >= 0) & (at < d)).all())
        if not isinstance(label, str) or not inside:
            raise ValueError(f"{name}.blocks[{i}] must have a name, and the positions of its columns among {d}")


def _check_moments(stats: Any, count: np.ndarray, complete: bool, definite: bool) -> None:
    if not hasattr(stats, "_fields"):
        for block in stats:
            _check_moments(block, count, complete, definite)
        return
    if not isinstance(stats, (GaussianStats, MultivariateGaussianStats)):
        return
    try:
        whole = [np.asarray(part, dtype=float) for part in stats]
    except (TypeError, ValueError):
        raise ValueError("the weights, means and scatters of statistics.features must be arrays of numbers") from None
    weight, mean, low, scatter = whole
    full = isinstance(stats, MultivariateGaussianStats)
    matrix = scatter.ndim in (2, 3) and scatter.shape[-2:] == mean.shape[-1:] * 2
    shaped = matrix and weight.shape == mean.shape[:1] if full else weight.shape == scatter.shape == mean.shape
    if not shaped or mean.ndim != 2 or len(mean) != len(count) or low.shape != mean.shape:
        raise ValueError(
            f"statistics.features must have a mean for each of {len(count)} classes and each column, and weights and "
            f"scatters to go with them; the shapes are {[v.shape for v in whole]}"
        )
    for name, part in zip(stats._fields, whole, strict=True):
        if not np.isfinite(part).all():
            raise ValueError(f"statistics.features.{name} holds NaN or infinity{_where(name, ~np.isfinite(part))}")
    n = count if weight.ndim == 1 else count[:, None]
    room = ROUNDING * max(1.0, float(count.max()))
    if (weight > n + room).any() or (complete and full and (weight < n - room).any()):
        raise ValueError(
            f"statistics.features.weight must be class_count{'' if complete and full else ' or less'}, the weight of "
            f"the rows of each class, {count.tolist()}; got {weight.tolist()!r:.200}"
        )
    squares = np.diagonal(scatter, axis1=-2, axis2=-1) if full else scatter
    negative = squares < -ROUNDING * np.abs(squares).reshape(-1, squares.shape[-1]).max(axis=0, initial=0.0)
    if negative.any():
        raise ValueError(f"statistics.features.scatter (or a variance) is negative{_where('scatter', negative)}")
    if full:
        _check_matrices(scatter, squares, definite)


def _check_matrices(scatter: np.ndarray, squares: np.ndarray, definite: bool) -> None:
    size = np.sqrt(np.maximum(squares, 0.0))
    largest = size.max(axis=-1, keepdims=True, initial=0.0)
    size = np.where(size > 0, size, np.where(largest > 0, largest, 1.0))
    with np.errstate(over="ignore"):
        scaled = scatter / size[..., :, None] / size[..., None, :]
    turned = np.swapaxes(scaled, -1, -2)
    if not (np.abs(scaled - turned) <= ROUNDING * np.maximum(1.0, np.abs(scaled))).all():
        raise ValueError("statistics.features.scatter must be symmetric: the covariance of two columns has no order")
    if definite and scaled.size and not (np.linalg.eigvalsh(scaled) >= -INDEFINITE * scaled.shape[-1]).all():
        raise ValueError(
            "statistics.features.scatter has a negative eigenvalue, which no scatter of rows has: covariances are too "
            "large for the variances"
        )


def _where(name: str, bad: np.ndarray) -> str:
    at = np.argwhere(bad)[0].tolist()
    return f" at position {at}" if at else ""
