"""Algebra of the Dirichlet distribution that several families and the class probabilities share.

One row of cells per independent Dirichlet: arrays are (..., V) with the cells on the last axis.
[Murphy 2012, sections 3.3-3.4; Bishop 2006, sections 2.1-2.2]
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from bayesgen._math import Array, log_rising, namespace, safe_divide, safe_log, special

IMPROPER = "the distribution of {columns} in class {cls} is improper: its concentration is 0; give alpha > 0"


def mode_counts(alpha: Array) -> tuple[Array, bool]:
    r"""Unnormalised mode :math:`(\alpha_j - 1)_+`, and whether it lies on the boundary.

    With every :math:`\alpha_j \ge 1` it is proportional to the mode. A cell below 1 makes the density
    unbounded on the face :math:`\theta_j = 0`; the formula is then the limit of the maximiser over
    :math:`\theta \ge \epsilon` as :math:`\epsilon \to 0`.
    """
    xp = namespace(alpha)
    boundary = xp is np and bool((alpha < 1).any())
    return xp.maximum(alpha - 1.0, 0.0), boundary


def warn_boundary(what: str) -> None:
    """Say that a mode is on the boundary of the simplex."""
    warnings.warn(
        f"the posterior mode of {what} is on the boundary: some concentration + count is below 1, so the "
        "density is unbounded there and those probabilities are set to 0. inference='mean' has no such edge.",
        UserWarning,
        stacklevel=2,
    )


def log_normalised(counts: Array) -> Array:
    """Log of counts divided by their sum over the last axis; NaN where the sum is zero."""
    return safe_log(safe_divide(counts, counts.sum(-1, keepdims=True)))


def log_density(alpha: Array, log_prob: Array) -> Array:
    """Log density of Dirichlet(alpha) at exp(log_prob), over the last axis."""
    xp = namespace(alpha, log_prob)
    gammaln = special(xp).gammaln
    power = xp.where(alpha == 1, 0.0, (alpha - 1) * xp.where(alpha == 1, 0.0, log_prob))
    return gammaln(alpha.sum(-1)) - gammaln(alpha).sum(-1) + power.sum(-1)


def log_evidence(alpha: Array, count: Array) -> Array:
    r"""Log of the Polya urn, :math:`\sum_j\ln(\alpha_j)_{n_j} - \ln(A)_N`, over the last axis."""
    return log_rising(alpha, count).sum(-1) - log_rising(alpha.sum(-1), count.sum(-1))


def dot_log(count: Array, log_prob: Array) -> Array:
    """Sum of count * log_prob with 0 * (-inf) = 0."""
    xp = namespace(count, log_prob)
    zero = count == 0
    return xp.where(zero, 0.0, count * xp.where(zero, 0.0, log_prob)).sum()


def broadcast(alpha: Any, shape: tuple[int, ...], what: str) -> Array:
    """A concentration given as a number, per column, or per (class, column), as an array of `shape`."""
    xp = namespace(alpha)
    alpha = xp.asarray(alpha, dtype=float)
    try:
        return xp.broadcast_to(alpha, shape)
    except ValueError:
        raise ValueError(
            f"{what} has shape {alpha.shape}; expected a number, an array of shape {shape[-1:]} (one for each "
            f"column) or {shape} (one for each class and column)"
        ) from None


def log_gamma_moments(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of ln g for g ~ Gamma(alpha, 1), the unnormalised Dirichlet cells."""
    return digamma(alpha), np.sqrt(polygamma(1, alpha))


class UniqueCounts(NamedTuple):
    """Counts as their distinct values, for the evidence of a concentration that all cells of a class share.

    Most cells of a table of words hold one of a few small counts: a million cells are some thousand values.
    """

    count: Array
    """Distinct non-zero counts, padded with zeros, (U,)"""
    count_class: Array
    count_times: Array
    """How many cells hold it, (U,)"""
    total: Array
    """Distinct (number of cells, sum) of the groups, (T,)"""
    cells: Array
    total_class: Array
    total_times: Array
    constant: Array
    """What the evidence adds that no concentration changes, ()"""

    def log_evidence(self, alpha: Array) -> Array:
        """Sum of the Polya urns of all groups; alpha is (), or anything of K entries."""
        xp = namespace(alpha, self.count)
        alpha = xp.ravel(xp.asarray(alpha, dtype=float))
        index, total_index = (self.count_class, self.total_class) if alpha.shape[0] > 1 else (0, 0)
        urns = self.count_times * log_rising(alpha[index], self.count)
        norms = self.total_times * log_rising(self.cells * alpha[total_index], self.total)
        return urns.sum() - norms.sum() + self.constant


def unique_counts(groups: list[np.ndarray], per_class: bool, constant: Any = 0.0) -> UniqueCounts:
    """Compress groups of counts, arrays (K, V_g) that each hold one Dirichlet for every class."""
    counts, totals = [], []
    for count in groups:
        k = np.arange(len(count)) * per_class
        nonzero = count > 0
        counts.append(np.stack([np.broadcast_to(k[:, None], count.shape)[nonzero], count[nonzero]]))
        totals.append(np.stack([k, np.full(len(count), count.shape[1]), count.sum(axis=1)]))
    (kind, count), times = np.unique(np.concatenate(counts, axis=1), axis=1, return_counts=True)
    (total_kind, cells, total), total_times = np.unique(np.concatenate(totals, axis=1), axis=1, return_counts=True)
    # A power of two, so that a compiled program serves other data.
    pad = (1 << max(4, int(np.ceil(np.log2(max(1, len(count))))))) - len(count)
    padded = (np.pad(v.astype(float), (0, pad)) for v in (count, times))
    count, times = padded
    return UniqueCounts(
        count,
        np.pad(kind.astype(np.int64), (0, pad)),
        times,
        total,
        cells,
        total_kind.astype(np.int64),
        total_times.astype(float),
        np.asarray(constant, dtype=float),
    )


def shared_by_cells(alpha: Any, n_classes: int) -> str | None:
    """Whether a concentration is one number ("all"), one for each class ("class"), or neither (None)."""
    shape = tuple(getattr(alpha, "shape", np.shape(alpha)))
    if int(np.prod(shape, dtype=int)) == 1:
        return "all"
    return "class" if shape == (n_classes, 1) else None
