"""Algebra of the Dirichlet distribution that several families and the class probabilities share.

One row of cells per independent Dirichlet: arrays are (..., V) with the cells on the last axis.
[Murphy 2012, sections 3.3-3.4; Bishop 2006, sections 2.1-2.2]
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

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
