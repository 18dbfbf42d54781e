"""Whether rows with missing cells determine the means and covariances of normal classes, without a prior."""

from __future__ import annotations

import numpy as np

from bayesgen import _kernels
from bayesgen._linalg import dependent_columns
from bayesgen.families.base import Problem
from bayesgen.families.moments import difference, overall_mean
from bayesgen.families.normal_scores import STACK_CELLS
from bayesgen.families.normal_statistics import PatternStats, of_classes, pair_weight

__all__ = ["unbounded", "unidentified"]

SUSPECTS = 20  # patterns whose rows are looked at for a subspace that holds them


def unidentified(stats: PatternStats, per_class: bool) -> Problem | None:
    """Why the likelihood alone cannot have one maximum; None if nothing is seen that says so."""
    seen = np.einsum("pk,pj->kj", stats.weight, stats.observed)
    cells = np.argwhere(seen == 0)
    if len(cells):
        k, j = map(int, cells[0])
        return Problem(
            "class {cls} has no observed value in {columns}: its mean there is not identified. Use a prior "
            "(inference='map' or 'nuts'), or drop the column",
            k,
            [j],
        )
    pairs = np.argwhere(pair_weight(stats, per_class) == 0)
    if not len(pairs):
        return None
    where = "in class {cls} " if per_class else ""
    return Problem(
        f"{where}{{columns}} are never observed together in one row: their covariance is not identified. Use a proper "
        "prior (inference='map' or 'nuts'), or drop a column",
        int(pairs[0][0]) if per_class else None,
        [int(j) for j in pairs[0][-2:]],
    )


def unbounded(stats: PatternStats) -> Problem | None:
    """Rows that are so few for the columns they observe together that a singular covariance fits them without bound.

    If the rows that observe a set S of columns (and perhaps more) lie, within classes, on a hyperplane of S that
    is parallel to no axis, a covariance that is singular along its normal gives their density no bound, and the other
    rows do not see that normal. The patterns with the fewest rows for their columns are looked at.
    """
    seen = stats.observed.astype(float)
    size = seen.sum(axis=1)
    per_class = stats.scatter.ndim == 4
    spare = np.empty((len(seen), stats.weight.shape[1] if per_class else 1))
    for block in _kernels.row_blocks(len(seen), len(seen), STACK_CELLS):
        rows = (seen[block] @ seen.T == size[block, None]).astype(float) @ stats.weight
        free = np.where(rows > 0, rows - 1.0, np.inf if per_class else 0.0)
        spare[block] = (free if per_class else free.sum(axis=1, keepdims=True)) - size[block, None]
    for flat in np.argsort(spare, axis=None)[:SUSPECTS]:
        p, k = np.unravel_index(flat, spare.shape)
        if spare[p, k] >= 0:
            return None
        columns = np.flatnonzero(stats.observed[p])
        with_them = stats.observed[:, columns].all(axis=1)
        part = PatternStats(*(s[with_them] for s in stats))
        if per_class:
            part = of_classes(part, np.array([k]))
        if len(dependent_columns(_scatter(part)[np.ix_(columns, columns)])) == len(columns):
            whose = "class {cls}" if per_class else "all classes"
            return Problem(
                f"the likelihood has no maximum: the rows of {whose} that observe {{columns}} together "
                f"({part.weight.sum():g} of them) are too few for a covariance. Use a prior (inference='map' or "
                "'nuts'), or drop columns",
                int(k) if per_class else None,
                columns.tolist(),
            )
    return None


def _scatter(stats: PatternStats) -> np.ndarray:
    """Scatter of rows about the means of their classes, (d, d), where all of them observe a column."""
    n = stats.weight[..., None]
    mean, low = overall_mean(n, stats.mean, stats.mean_low)
    delta = np.where(n > 0, difference(stats.mean, stats.mean_low, mean, low), 0.0)
    within = stats.scatter.sum(axis=tuple(range(stats.scatter.ndim - 2)))
    return within + np.einsum("pki,pkj->ij", n * delta, delta)
