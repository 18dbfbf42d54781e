"""Sufficient statistics as a value that can be merged, shipped and learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

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

    Notes
    -----
    They travel as JSON (`to_json`, every model), as a long table (`to_table`), or as Parquet (`to_parquet`), and can
    be made by the groups of a database, without the rows ever leaving it (`from_table`).

    Examples
    --------
    >>> from bayesgen import MultinomialNB
    >>> statistics = MultinomialNB().fit([[2, 1], [0, 3]], ["a", "b"]).statistics_
    >>> statistics.features.word_count.tolist()
    [[2.0, 1.0], [0.0, 3.0]]
    """

    classes: np.ndarray
    class_count: np.ndarray
    features: Any
    columns: Columns

    def to_json(self) -> str:
        """As text; every number keeps all its digits.

        Returns
        -------
        str
            JSON with a format version.
        """
        from bayesgen import statistics_tables

        return statistics_tables.to_json(self)

    @staticmethod
    def from_json(text: str | bytes) -> Statistics:
        """From the text that `to_json` makes; nothing in it is executed.

        Parameters
        ----------
        text : str or bytes
            JSON.

        Returns
        -------
        Statistics
            For ``from_statistics`` of an unfitted estimator, or ``merge`` of a fitted one.

        Raises
        ------
        ValueError
            If it is anything else, of a newer format, or holds what no rows have (such as a negative variance).

        Examples
        --------
        >>> from bayesgen import PoissonNB, Statistics
        >>> model = PoissonNB().fit([[0], [1], [5], [4]], [0, 0, 1, 1])
        >>> text = model.statistics_.to_json()
        >>> PoissonNB().from_statistics(Statistics.from_json(text)).predict([[6]]).tolist()
        [1]
        """
        from bayesgen import statistics_tables

        return statistics_tables.from_json(text)

    def to_table(self) -> pd.DataFrame:
        """As a long table, one number a row.

        Returns
        -------
        pandas.DataFrame
            Columns ``class``, ``feature`` (names, or positions), ``level`` of categorical models, ``feature_bis`` of
            covariances, ``statistic`` and ``value``; see `from_table` for the statistics of each model.

        Raises
        ------
        ValueError
            For mixed models, whose blocks have statistics of different kinds.
        """
        from bayesgen import statistics_tables

        return statistics_tables.to_table(self)

    @staticmethod
    def from_table(table: Any, features: Any = None, levels: Any = None, pool: bool = False) -> Statistics:
        r"""From a long table, such as a database makes by ``GROUP BY``.

        Parameters
        ----------
        table : data frame, Arrow table or mapping of str to sequence
            Columns ``class``, ``feature``, ``statistic`` and ``value``, and ``level`` or ``feature_bis`` where the
            model needs them. Every class has a row with the statistic ``class_count``, the number of its rows (feature
            empty). Beside it are:

            - for `MultinomialNB`: ``word_count``, the sum of the counts of a word;
            - `BernoulliNB`: ``present``, the number of rows with the word; ``absent`` where cells are missing, else the
              rest of the class;
            - `CategoricalNB`: ``level_count`` by class, feature and level;
            - `PoissonNB`: ``total``, the sum of a count; ``observed``, the number of its cells, where some are missing;
              ``log_base`` (class and feature empty), the sum of ln x!, without which the evidence is NaN;
            - `GaussianNB`: ``mean``; ``weight``, the number of cells, where some are missing; and ``scatter``, the sum
              of squares about the mean, or a variance: ``var_pop`` (divisor n) or ``var_samp`` (n - 1);
            - `GaussianDiscriminantAnalysis`: ``mean``, and by ``feature`` and ``feature_bis`` ``scatter``,
              ``covar_pop`` or ``covar_samp``, one triangle or both. With ``covariance="shared"`` they are of all
              classes together (class empty), or pooled here (``pool=True``).

            Counts that are not there are 0. Means and variances (or scatters) must be there wherever a class has
            weight.
        features : sequence, optional
            All columns in their order. Default: positions 0..max, or names in alphabetical order.
        levels : dict of feature to sequence, optional
            Levels of categorical columns. Default: those found, in order; whole numbers are codes 0..max.
        pool : bool, default=False
            Add the scatters of the classes, as a shared covariance needs them.

        Returns
        -------
        Statistics
            For ``from_statistics`` of an unfitted estimator, or ``merge`` of a fitted one.

        Raises
        ------
        ValueError
            If something is missing, twice there, or does not belong together; the message names it.

        Examples
        --------
        >>> from bayesgen import MultinomialNB, Statistics
        >>> table = {
        ...     "class": ["ham", "spam", "ham", "spam", "spam"],
        ...     "feature": [None, None, "meeting", "free", "meeting"],
        ...     "statistic": ["class_count"] * 2 + ["word_count"] * 3,
        ...     "value": [3, 2, 7, 9, 1],
        ... }
        >>> model = MultinomialNB().from_statistics(Statistics.from_table(table))
        >>> model.feature_names_in_.tolist(), model.feature_count_.tolist()
        (['free', 'meeting'], [[0.0, 7.0], [9.0, 1.0]])
        """
        from bayesgen import statistics_tables

        return statistics_tables.from_table(table, features, levels, pool)

    def to_parquet(self, path: Any) -> None:
        """Write the long table of `to_table` to a Parquet file (needs pyarrow), readable by any engine.

        Exact types of labels and levels, and the order of columns, are in the metadata of the file.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        from bayesgen import statistics_tables

        statistics_tables.to_parquet(self, path)

    @staticmethod
    def from_parquet(path: Any, features: Any = None, levels: Any = None, pool: bool = False) -> Statistics:
        """Read what `to_parquet` wrote, or a long table that another engine did; see `from_table`.

        Parameters
        ----------
        path : str or path-like
            File to read.
        features, levels, pool : see `from_table`

        Returns
        -------
        Statistics
            For ``from_statistics`` of an unfitted estimator, or ``merge`` of a fitted one.

        Raises
        ------
        ValueError
            If the file is not one of Parquet, is damaged, or holds another table.
        """
        from bayesgen import statistics_tables

        return statistics_tables.from_parquet(path, features, levels, pool)
