"""Algebra of weighted means and scatters that the Gaussian families share.

A mean is a pair (high, low): the float nearest to it and its rounding error, an unevaluated sum. Differences
of such means keep their digits when the data sit far from zero. Merging and removing follow Chan, Golub and
LeVeque (1983).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen import _kernels
from bayesgen._math import Array, namespace, safe_divide, two_sum
from bayesgen.families.base import Labels, Names, Unlearned, Weights, column_name


def pilot_means(pilot: Array, total: Array, weight: Array) -> tuple[Array, Array]:
    """Means (high, low) from residual sums about a pilot; empty cells give 0."""
    mean, low = two_sum(pilot, safe_divide(total, weight, empty=0.0))
    return np.where(weight == 0, 0.0, mean), np.where(weight == 0, 0.0, low)


def difference(a: Array, a_low: Array, b: Array, b_low: Array) -> Array:
    """The difference a - b of two means kept as value and rounding error."""
    return (a - b) + (a_low - b_low)


def merge_means(
    n_a: Array, a: Array, a_low: Array, n_b: Array, b: Array, b_low: Array
) -> tuple[Array, Array, Array, Array]:
    """Merged mean (high, low), the difference of the means, and n_a n_b / n (Chan, Golub and LeVeque 1983).

    The larger part is the anchor, and an empty part is the identity.
    """
    n = n_a + n_b
    delta = np.where((n_a > 0) & (n_b > 0), difference(b, b_low, a, a_low), 0.0)
    from_a = n_a >= n_b
    step = safe_divide(np.where(from_a, n_b, -n_a), n, empty=0.0) * delta
    mean, low = two_sum(np.where(from_a, a, b), np.where(from_a, a_low, b_low) + step)
    return mean, low, delta, safe_divide(n_a * n_b, n, empty=0.0)


def remove_means(
    n: Array, mean: Array, low: Array, n_b: Array, b: Array, b_low: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Weight and mean (high, low) left when a part leaves, the difference of means, and n_a n_b / n."""
    n_a = np.maximum(n - n_b, 0.0)
    step = safe_divide(n_b, n_a, empty=0.0) * difference(mean, low, b, b_low)
    a, a_low = two_sum(mean, low + step)
    a, a_low = np.where(n_a > 0, a, 0.0), np.where(n_a > 0, a_low, 0.0)
    delta = np.where(n_a > 0, difference(b, b_low, a, a_low), 0.0)
    return n_a, a, a_low, delta, safe_divide(n_a * n_b, n, empty=0.0)


NOISE = 100 * np.finfo(float).eps


def remaining_scatter(whole: np.ndarray, leaving: np.ndarray) -> np.ndarray:
    """What is left of sums of squares; round-off is set to 0, and rows that were not part of them are refused."""
    left = whole - leaving
    bad = (left < -1e-8 * whole) | ((whole == 0) & (leaving > 0))
    if bad.any():
        raise Unlearned(int(np.argwhere(bad)[0][-1]))
    return np.where(left <= NOISE * whole, 0.0, left)


def align_constant(n: Array, mean: Array, low: Array, left: np.ndarray, whole: np.ndarray) -> tuple[Array, Array]:
    """Class means (K, d) with those that differ by round-off made equal, in columns that are constant now.

    `left` and `whole` are the sums of squares (d,) after and before rows left; without this a column that has
    become constant would keep a variance of round-off between its classes.
    """
    n = np.broadcast_to(n, mean.shape)
    high, rest = overall_mean(n, mean, low)
    noise = 100 * np.finfo(float).eps * (np.sqrt(whole) + np.abs(high))
    far = (n > 0) & (np.abs(difference(mean, low, high, rest)) > noise)
    same = (n > 0) & (left == 0) & ~far.any(axis=0)
    return np.where(same, high, mean), np.where(same, rest, low)


def update_mean(loc: Array, low: Array, kappa: Array, n: Array, mean: Array, mean_low: Array) -> Any:
    """Posterior mean (high, low) m + n/(kappa + n) (mean - m), and mean - m.

    It is written from the end that is nearer, so that no digits are lost.
    """
    xp = namespace(loc, low, kappa, mean)
    delta = xp.where(n > 0, difference(mean, mean_low, loc, low), 0.0)
    total = kappa + n
    near = n >= kappa
    step = safe_divide(xp.where(near, -kappa, n), total, empty=0.0) * delta
    high, rest = two_sum(xp.where(near & (n > 0), mean, loc), xp.where(near & (n > 0), mean_low, low) + step)
    return high, rest, delta


def overall_mean(n: Array, mean: Array, low: Array) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean of class means over the class axis, (high, low); n is (K, d) or (K, 1)."""
    n = np.broadcast_to(n, np.shape(mean))
    top = n.argmax(axis=0)[None]
    anchor, anchor_low = np.take_along_axis(mean, top, 0)[0], np.take_along_axis(low, top, 0)[0]
    delta = np.where(n > 0, difference(mean, low, anchor, anchor_low), 0.0)
    step = safe_divide((n * delta).sum(axis=0), n.sum(axis=0), empty=0.0)
    return two_sum(anchor, anchor_low + step)


def default_variance(n: Array, mean: Array, low: Array, scatter: Array, overall: Any) -> np.ndarray:
    """Pooled within-class variance of each column; the overall one if that is 0; 1 if that is 0 too.

    `overall` is the `overall_mean` of the classes.
    """
    total = np.broadcast_to(n, np.shape(mean)).sum(axis=0)
    within = safe_divide(scatter, total, empty=0.0)
    if (within > 0).all():
        return within
    between = (n * np.where(n > 0, difference(mean, low, *overall), 0.0) ** 2).sum(axis=0)
    whole = safe_divide(scatter + between, total, empty=0.0)
    return np.where(within > 0, within, np.where(whole > 0, whole, 1.0))


def check_scale(x: Any, scatter: np.ndarray, names: Names) -> None:
    """Refuse columns whose squares do not fit a float64, naming the column."""
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~np.isfinite(scatter) | (scatter > 1e300))
    for j in bad:
        raise ValueError(
            f"{column_name(int(j), names)} has values so large that their squares overflow float64; "
            "change its unit (rescale the column)"
        )
    for j in np.flatnonzero(scatter < 1e-290) if x.shape[0] > 1 else ():
        values = _kernels.rows(x, slice(None))[:, j]
        values = values[~np.isnan(values)]
        if values.size and 0 < values.max() - values.min() < 1e-140:
            raise ValueError(
                f"{column_name(int(j), names)} has differences so small that their squares underflow "
                "float64; change its unit (rescale the column)"
            )


def weighted_parts(x: Any, r: Weights) -> list[tuple[Any, int | None, Labels]]:
    """Class weights r as rows of single classes: one part for labels, one for each class if soft."""
    if isinstance(r, Labels):
        return [(x, None, r)]
    return [(x, k, Labels(np.full(len(r), k), r[:, k])) for k in range(r.shape[1])]
