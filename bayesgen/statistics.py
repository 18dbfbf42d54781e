"""Sufficient statistics as a value that can be merged, shipped and learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Columns", "Statistics"]


@dataclass(frozen=True, eq=False)
class Columns:
    """What the columns of X are.

    Attributes
    ----------
    n_features : int
        Number of columns of X.
    names : ndarray of str, or None
        Column names of a data frame.
    levels : tuple of ndarray, or None
        Levels of each categorical column.
    blocks : tuple, or None
        For mixed models (name, indices of the columns, their `Columns`) of each block.
    """

    n_features: int
    names: np.ndarray | None = None
    levels: tuple[np.ndarray, ...] | None = None
    blocks: tuple[tuple[str, np.ndarray, Columns], ...] | None = None

    def __post_init__(self) -> None:
        if self.levels is not None:  # copies of our own, which are handed out and not to be changed
            levels = tuple(np.array(v) for v in self.levels)
            for v in levels:
                v.flags.writeable = False
            object.__setattr__(self, "levels", levels)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Everything an estimator keeps of its data; see ``estimator.statistics_`` and ``from_statistics``.

    Attributes
    ----------
    classes : ndarray (K,)
        Class labels, sorted.
    class_count : ndarray (K,)
        Weight of the rows of each class.
    features : NamedTuple, or tuple of them for mixed models
        Statistics of the family, class axis first; see `bayesgen.families`.
    columns : Columns
        Names, levels and blocks of the columns.
    """

    classes: np.ndarray
    class_count: np.ndarray
    features: Any
    columns: Columns
