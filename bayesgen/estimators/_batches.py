"""Learning from batches: any iterable of them, Parquet files, Arrow data sets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import numpy as np

from bayesgen._kernels import map_pieces, one_blas_thread, row_blocks
from bayesgen._progress import shows_progress
from bayesgen.estimators import _labels
from bayesgen.estimators._parts import checked_weight, joined, refuse_parts, saying, without_prior
from bayesgen.estimators._shell import Shell
from bayesgen.statistics import Statistics

__all__ = ["Batches"]

PIECE_CELLS = 1 << 19  # numbers of a piece of a table: 4 MiB, whose sums start no threads of their own
Load = Callable[[], tuple[Any, Any, Any]]

EXPECTED = (
    "batches must be an iterable of (X, y) or (X, y, sample_weight); or, with target= for the name of the column of "
    "labels, of tables (data frames, Arrow record batches), a path of Parquet files, a pyarrow ParquetFile or Dataset"
)


class Batches(Shell):
    """Learning from batches."""

    def fit_batches(
        self,
        batches: Any,
        classes: Any = None,
        *,
        target: str | None = None,
        sample_weight: str | None = None,
        columns: Sequence[str] | None = None,
        progress_bar: bool | None = None,
    ) -> Self:
        """Learn from a training set that comes in batches, forgetting any earlier one.

        One batch is in memory at a time. The result is that of one `fit` on all rows, to rounding, however the rows are
        cut: default priors are scaled by all of them. What kind of column it is (`CategoricalNB`, `MixedNB`) is
        decided by the first batch; levels that come later are added.

        Parameters
        ----------
        batches : iterable, path, or pyarrow ParquetFile, Dataset, Table or RecordBatchReader
            Of (X, y) or (X, y, sample_weight), as `fit` takes them. With `target`: of tables (pandas or polars data
            frames, Arrow tables or record batches), or the path of a Parquet file or of a folder of them, or what
            pyarrow has opened. Parquet is read by row groups, which are what is in memory at a time. Batches without
            rows are passed over.
        classes : array (n_classes,), optional
            All class labels, where others are an error or some may never come. By default those that come.
        target : str, optional
            Name of the column of labels, of tables.
        sample_weight : str, optional
            Name of the column of row weights, of tables.
        columns : list of str, optional
            Names of the columns of X, of tables; by default all others. No others are read from files.
        progress_bar : bool, optional
            None: shown in a terminal or a notebook.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`; the message says which batch (the first is 0). The estimator is then as it was before.

        Examples
        --------
        >>> from bayesgen import GaussianNB
        >>> days = [([[1.0], [5.0]], ["low", "high"]), ([[2.0], [1.5]], ["low", "low"]), ([[6.0]], ["high"])]
        >>> model = GaussianNB().fit_batches(days)
        >>> model.class_count_.tolist(), model.predict([[1.2]]).tolist()
        ([2.0, 3.0], ['low'])

        References
        ----------
        Chan, Golub and LeVeque 1983, *Algorithms for computing the sample variance* (joining of moments).
        """
        self._check_params()
        refuse_parts(self, "fit_batches")
        if classes is not None:
            classes = np.unique(_labels.plain_labels(classes, "classes"))
            if not classes.size:
                raise ValueError("classes is empty: list the class labels")
        source, total = open_batches(batches, target, sample_weight, columns)
        plain, found = without_prior(self), None

        def summarise(load: Load) -> Statistics | None:
            X, y, weights = load()
            if n_rows(X) == 0 and n_rows(y) == 0:
                return None
            known = None if found is None else found.columns
            return plain._summarise(X, y, weights, classes, known, part=True)[0]

        with closing(numbered(source, total, progress_bar)) as counted:
            for i, batch in counted:
                with saying(f"batch {i}"), one_blas_thread():
                    pieces = triples(batch, target, sample_weight, columns)
                    while pieces and found is None:  # the first piece with rows says what the columns are
                        found = summarise(pieces.pop(0))
                        if found is not None and classes is not None:
                            self._stated(found.columns, len(classes))  # a prior that does not fit is refused at once
                    for new in map_pieces(summarise, pieces):
                        found = joined(plain, [found, new])
                del batch, pieces  # or they would still be there while the next is read
        s = checked_weight(found)
        learned = self._make(s.classes, s.class_count, s.features, s.columns)
        learned.fit.check_predictive()
        return self._commit(learned)


def n_rows(x: Any) -> int:
    """Number of rows of a table or of labels."""
    return int(x.shape[0]) if hasattr(x, "shape") and len(x.shape) else len(x)


def numbered(source: Iterable[Any], total: int | None, progress_bar: bool | None) -> Generator[tuple[int, Any]]:
    """Batches with their numbers, under a progress bar; an error of the source says which one it could not give."""
    from tqdm.auto import tqdm

    iterator, i = iter(source), 0
    with tqdm(total=total, unit="batch", disable=not shows_progress(progress_bar)) as bar:
        while True:
            try:
                batch = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"while batch {i} was read")
                raise
            yield i, batch
            del batch
            bar.update()
            i += 1


def triples(batch: Any, target: str | None, sample_weight: str | None, columns: Sequence[str] | None) -> list[Load]:
    """A batch as functions that give (X, y, sample_weight): an Arrow table as several, which convert some rows each.

    What is converted at once is small, and is summed up while it is in cache.
    """
    if target is None:
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise ValueError(f"{EXPECTED}. Got a {type(batch).__name__}, and target=None")
        whole = (*batch, None) if len(batch) == 2 else tuple(batch)
        return [lambda: whole]
    special = [target] if sample_weight is None else [target, sample_weight]
    if hasattr(batch, "to_pandas") and hasattr(batch, "schema") and hasattr(batch, "num_rows"):  # Arrow
        names = _selection(column_names(batch.schema), target, sample_weight, columns)
        table, header = batch.select(names), pandas().Index(names[: -len(special)])
        blocks = row_blocks(table.num_rows, table.num_columns, PIECE_CELLS)
        return [functools.partial(_convert, table, rows, header) for rows in blocks]
    if not hasattr(batch, "columns") or not hasattr(batch, "drop"):
        raise ValueError(f"{EXPECTED}. With target={target!r} expected a table; got a {type(batch).__name__}")
    names = _selection(list(batch.columns), target, sample_weight, columns)
    X = batch[[name for name in names if name not in special]]
    return [lambda: (X, batch[target], None if sample_weight is None else batch[sample_weight])]


def _convert(table: Any, rows: slice, header: Any) -> tuple[Any, Any, Any]:
    """Rows of an Arrow table, whose last columns are the labels and maybe the weights."""
    piece = table.slice(rows.start, rows.stop - rows.start)
    labels, *weights = (_column(piece.column(j)) for j in range(len(header), piece.num_columns))
    return _matrix(piece.select(range(len(header))), header), labels, weights[0] if weights else None


def _column(column: Any) -> Any:
    """An Arrow column; of whole numbers as an array, which is read sooner than a series."""
    if column.null_count == 0 and str(column.type).startswith(("int", "uint")):
        return np.asarray(column)
    return column.to_pandas()


def _matrix(table: Any, header: Any) -> Any:
    """An Arrow table in pandas; of floats alone, with contiguous rows, as sums over rows want them."""
    if not table.num_rows or any(str(kind) != "double" for kind in table.schema.types):
        return table.to_pandas(ignore_metadata=True)
    values = np.stack([np.asarray(column) for column in table.columns], axis=1)
    return pandas().DataFrame(values, columns=header, copy=False)


def pandas() -> Any:
    """The package pandas, through which tables of Arrow are read."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables of Arrow are read through pandas: pip install 'bayesgen[parquet]'") from error
    return pd


def column_names(schema: Any) -> list[str]:
    """Names of the columns of an Arrow table; an index that pandas has stored among them is none."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return [name for name in schema.names if name not in index]


def _selection(names: list[Any], target: str, sample_weight: str | None, columns: Sequence[str] | None) -> list[Any]:
    """Names of the columns that are used: X, then the target and the weights."""
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate column names among {names}")
    special = [target] if sample_weight is None else [target, sample_weight]
    wanted = [n for n in names if n not in special] if columns is None else list(columns)
    for what, name in (("target", target), ("sample_weight", sample_weight), *(("columns", c) for c in wanted)):
        if name is not None and name not in names:
            raise ValueError(f"{what} names the column {name!r}; the table has {names}")
    if set(special) & set(wanted):
        raise ValueError(f"columns names {sorted(set(special) & set(wanted))}, which are the target or the weights")
    return [*wanted, *special]


def open_batches(
    batches: Any, target: str | None, sample_weight: str | None, columns: Sequence[str] | None
) -> tuple[Iterable[Any], int | None]:
    """An iterable of batches, and their number where it is known."""
    kind = type(batches).__module__.partition(".")[0]
    is_path = isinstance(batches, (str, Path))
    if (is_path or kind == "pyarrow") and target is None:
        raise ValueError("target is missing: the name of the column of labels in the table")
    if target is None and (sample_weight is not None or columns is not None):
        raise ValueError("sample_weight and columns are names of columns of tables: pass target= as well")
    if is_path:
        batches, kind = _open_parquet(Path(batches)), "pyarrow"
    if kind == "pyarrow" and target is not None:
        return _arrow_batches(batches, lambda names: _selection(names, target, sample_weight, columns))
    if isinstance(batches, (np.ndarray, dict)) or hasattr(batches, "columns") or not hasattr(batches, "__iter__"):
        raise ValueError(f"{EXPECTED}. Got a {type(batches).__name__}")
    return batches, len(batches) if hasattr(batches, "__len__") else None


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow.dataset as ds
    except ImportError as error:
        raise ImportError("reading Parquet needs pyarrow: pip install 'bayesgen[parquet]'") from error
    if not path.exists():
        raise FileNotFoundError(f"batches names the path {str(path)!r}, which does not exist")
    return ds.dataset(path, format="parquet")


def _arrow_batches(source: Any, select: Any) -> tuple[Iterable[Any], int | None]:
    """Tables of an Arrow source, each as small as it is stored: row groups of Parquet, record batches of others.

    Record batches cut out of a row group would keep its columns in memory.
    """
    if hasattr(source, "read_row_group"):  # ParquetFile
        names, n = select(column_names(source.schema_arrow)), source.num_row_groups
        return released(source.read_row_group(i, columns=names) for i in range(n)), n
    if hasattr(source, "get_fragments"):  # Dataset
        names = select(column_names(source.schema))
        try:
            fragments = list(source.get_fragments())
        except ValueError:  # a filter, which only a scan applies
            return source.to_batches(columns=names, batch_readahead=0, fragment_readahead=0), None
        if not all(hasattr(f, "split_by_row_group") for f in fragments):
            return source.to_batches(columns=names, batch_readahead=0, fragment_readahead=0), None
        import pyarrow.dataset as ds

        groups = [group for f in fragments for group in f.split_by_row_group()]
        # Without the file's bytes in memory beside the columns made of them.
        options = ds.ParquetFragmentScanOptions(pre_buffer=False)
        read = {"schema": source.schema, "columns": names, "fragment_scan_options": options}
        return released(group.to_table(**read) for group in groups), len(groups)
    if hasattr(source, "to_batches"):  # Table
        return source.to_batches(), None
    if not hasattr(source, "__iter__"):
        raise ValueError(f"{EXPECTED}. Got a pyarrow {type(source).__name__}")
    return source, None


def released(tables: Iterable[Any]) -> Iterator[Any]:
    """The tables; after each, Arrow gives back the memory that it would keep for the next."""
    import pyarrow as pa

    for table in tables:
        yield table
        del table
        pa.default_memory_pool().release_unused()
