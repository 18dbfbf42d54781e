r"""Moments of the rows of normal classes, whole or with missing cells.

The likelihood of a row with missing cells is the normal density of its observed block. Rows that observe the same
columns share that block, so that for each pattern of observed columns the class weights, means and scatter are
sufficient; statistics of two data sets merge over the union of their patterns. Rows with nothing observed say nothing
about the parameters and leave no trace here. [Little and Rubin 2002, section 11.2]
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from bayesgen import _kernels
from bayesgen._math import Array
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Labels, dense
from bayesgen.families.diagonal import GaussianStats
from bayesgen.families.moments import difference, overall_mean, pilot_means

__all__ = ["MultivariateGaussianStats", "PatternStats", "Stats"]

MOST_BYTES = 2.0**32  # of statistics by pattern


class MultivariateGaussianStats(NamedTuple):
    """Moments of the rows of each class."""

    weight: Array
    """(K,)"""
    mean: Array
    """(K, d); 0 for an empty class"""
    mean_low: Array
    """Rounding error of the mean, (K, d)"""
    scatter: Array
    """Scatter about the class means: (d, d) pooled, or (K, d, d)"""


class PatternStats(NamedTuple):
    """Moments of the rows of each class, by which of their cells are observed; 0 where there is nothing."""

    observed: Array
    """Which columns the rows of a pattern observe, (P, d) bool; distinct, never none of them"""
    weight: Array
    """(P, K)"""
    mean: Array
    """(P, K, d)"""
    mean_low: Array
    """Rounding error of the mean, (P, K, d)"""
    scatter: Array
    """Scatter about the means of classes within a pattern: (P, d, d) pooled, or (P, K, d, d)"""


Stats = MultivariateGaussianStats | PatternStats


def outer(v: Array) -> Array:
    """Outer products of vectors with themselves, (..., d, d)."""
    return v[..., :, None] * v[..., None, :]


def distinct(observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows (P, d) of a table (n, d) of booleans, and which of them each row is, (n,)."""
    packed = np.packbits(observed, axis=1)
    words = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)
    keys = words[:, 0] if words.shape[1] == 1 else words.view([("", np.uint64)] * words.shape[1])[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return observed[first], which.ravel()


def has_missing(x: Any) -> bool:
    """Whether any cell of a dense or sparse matrix is NaN."""
    values = x.data if hasattr(x, "indptr") else x
    if not values.size:
        return False
    if not isinstance(values, np.ndarray):  # rows on a device, which know their least
        return bool(np.isnan(np.min(values)))
    return any(_kernels.map_rows(lambda i, j: bool(np.isnan(np.min(values[i:j]))), len(values), values.size))


def with_something_observed(x: Any, r: Labels) -> tuple[np.ndarray, Labels]:
    """The rows that have weight and any observed cell."""
    x = dense(x)
    keep = ~np.isnan(x).all(axis=1)
    if r.weights is not None:
        keep &= r.weights > 0
    if keep.all():
        return x, r
    return x[keep], Labels(r.codes[keep], None if r.weights is None else r.weights[keep])


def moments_by_pattern(x: np.ndarray, r: Labels, n_classes: int, pooled: bool) -> PatternStats:
    """Statistics of rows that all have something observed."""
    observed = ~np.isnan(x)
    patterns, which = distinct(observed)
    size, d = patterns.shape
    if 8.0 * size * d * d * (1 if pooled else n_classes) > MOST_BYTES:
        raise ValueError(
            f"the rows have {size} patterns of missing cells, and statistics of {d} columns for each are too large: "
            "drop columns that are mostly missing, or use GaussianNB, whose statistics are by column"
        )
    cells, group = np.unique(which * n_classes + r.codes, return_inverse=True)
    group = group.ravel()
    filled = np.where(observed, x, 0.0)
    weights = np.bincount(group, r.weights, minlength=len(cells)).astype(float)
    pilot, total, scatter = _kernels.class_moments(filled, group, r.weights, len(cells))
    mean, low = pilot_means(pilot, total, weights[:, None])
    scatter -= outer(total) / weights[:, None, None]
    p, k = np.divmod(cells, n_classes)
    out = PatternStats(
        patterns,
        np.zeros((size, n_classes)),
        np.zeros((size, n_classes, d)),
        np.zeros((size, n_classes, d)),
        np.zeros((size, d, d) if pooled else (size, n_classes, d, d)),
    )
    out.weight[p, k], out.mean[p, k], out.mean_low[p, k] = weights, mean, low
    np.add.at(out.scatter, p if pooled else (p, k), scatter)
    return out


def by_pattern(stats: Stats) -> PatternStats:
    """The statistics as those of rows of one pattern, if they are of complete rows."""
    if isinstance(stats, PatternStats):
        return stats
    return PatternStats(np.ones((1, stats.mean.shape[-1]), dtype=bool), *(s[None] for s in stats))


def simplify(stats: PatternStats) -> Stats:
    """The statistics without patterns that have no rows; those of complete rows if there are no others."""
    kept = stats.weight.any(axis=1)
    if not kept.any():
        return MultivariateGaussianStats(*(np.zeros_like(s[0]) for s in stats[1:]))
    stats = PatternStats(*(s[kept] for s in stats))
    return MultivariateGaussianStats(*(s[0] for s in stats[1:])) if stats.observed.all() else stats


def align(a: Any, b: Any) -> tuple[PatternStats, PatternStats]:
    """Two statistics over the same patterns, the union of their own."""
    parts = by_pattern(a), by_pattern(b)
    union, which = distinct(np.concatenate([s.observed for s in parts]))

    def spread(stats: PatternStats, index: np.ndarray) -> PatternStats:
        out = [np.zeros((len(union), *s.shape[1:])) for s in stats[1:]]
        for whole, part in zip(out, stats[1:], strict=True):
            whole[index] = part
        return PatternStats(union, *out)

    cut = len(parts[0].observed)
    return spread(parts[0], which[:cut]), spread(parts[1], which[cut:])


def check_contained(whole: PatternStats, leaving: PatternStats) -> None:
    """Raise unless rows that leave were learned, pattern by pattern."""
    if (leaving.weight > whole.weight * (1 + 1e-9) + 1e-9).any():
        raise ValueError("forget: these rows were not all learned (with the same cells missing)")


def move_classes(stats: PatternStats, positions: np.ndarray, n_classes: int) -> PatternStats:
    """See `Family.reclass`; the class axis is the second, and a pooled scatter has none."""

    def move(s: np.ndarray) -> np.ndarray:
        out = np.zeros((len(s), n_classes, *s.shape[2:]))
        out[:, positions] = s
        return out

    scatter = stats.scatter if stats.scatter.ndim == 3 else move(stats.scatter)
    return PatternStats(stats.observed, move(stats.weight), move(stats.mean), move(stats.mean_low), scatter)


def of_classes(stats: PatternStats, k: np.ndarray) -> PatternStats:
    """Statistics of some classes; a pooled scatter stays whole."""
    scatter = stats.scatter if stats.scatter.ndim == 3 else stats.scatter[:, k]
    return PatternStats(stats.observed, stats.weight[:, k], stats.mean[:, k], stats.mean_low[:, k], scatter)


def sum_patterns(stats: Any) -> Any:
    """Statistics with those by pattern added up, for checks of their counts and shapes; of blocks, each."""
    if isinstance(stats, PatternStats):
        sizes = {s.shape[0] for s in stats}
        if len(sizes) > 1 or stats.observed.shape[1:] != stats.mean.shape[2:]:
            raise TypeError("the parts of statistics by pattern do not belong together")
        return MultivariateGaussianStats(*(s.sum(axis=0) for s in stats[1:]))
    if hasattr(stats, "_fields"):
        return stats
    if not isinstance(stats, tuple):
        raise TypeError("statistics are a NamedTuple, or a tuple of them")
    return tuple(sum_patterns(s) for s in stats)


def column_stats(stats: Stats) -> GaussianStats:
    """Statistics of the columns alone, over observed cells; a pooled scatter is given to the first class."""
    diagonal = np.diagonal(stats.scatter, axis1=-2, axis2=-1)
    if isinstance(stats, PatternStats):
        n = stats.weight[..., None] * stats.observed[:, None]
        mean, low = overall_mean(n, stats.mean, stats.mean_low)
        delta = np.where(n > 0, difference(stats.mean, stats.mean_low, mean, low), 0.0)
        between, diagonal, weight = (n * delta**2).sum(axis=0), diagonal.sum(axis=0), n.sum(axis=0)
    else:
        mean, low = stats.mean, stats.mean_low
        weight, between = np.broadcast_to(stats.weight[:, None], mean.shape), np.zeros(mean.shape)
    scatter = between
    scatter[: 1 if diagonal.ndim == 1 else None] += diagonal
    return GaussianStats(weight, mean, low, scatter)


def class_weight(stats: Stats) -> np.ndarray:
    """Weight of the rows of each class, (K,)."""
    return stats.weight.sum(axis=0) if isinstance(stats, PatternStats) else stats.weight


def no_closed_form(what: str) -> NoReturn:
    """Raise: a closed form is asked for that rows with missing cells do not have."""
    raise UndefinedNumberError(
        f"{what} has no closed form here: training rows have missing cells, and the covariance is a full one. "
        "inference='map' (or 'mle') and 'nuts' work with them; GaussianNB has every closed form"
    )


def refuse_missing(stats: Any, what: str) -> None:
    """Raise if a closed form is asked for of statistics of rows with missing cells."""
    if isinstance(stats, PatternStats):
        no_closed_form(what)


def recentre(stats: PatternStats, centre: np.ndarray, low: np.ndarray) -> PatternStats:
    """The statistics with class means taken from a centre (K, d)."""
    seen = (stats.weight[..., None] > 0) & stats.observed[:, None]
    mean = np.where(seen, difference(stats.mean, stats.mean_low, centre, low), 0.0)
    return stats._replace(mean=mean, mean_low=np.zeros_like(mean))


def pair_weight(stats: PatternStats, per_class: bool) -> np.ndarray:
    """Weight of the rows that observe both of two columns, (d, d), or (K, d, d)."""
    seen = stats.observed.astype(float)
    if not per_class:
        return (seen * stats.weight.sum(axis=1)[:, None]).T @ seen
    return np.stack([(seen * w[:, None]).T @ seen for w in stats.weight.T])
