"""Columns of arrays and data frames: their values, what is missing, and what cannot be a number."""

from __future__ import annotations

import datetime
import os
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesgen._kernels import rows

COMPLEX = "complex numbers"
NUMBERS = (bool, int, float, np.number, np.bool_)


def is_frame(x: Any) -> bool:
    """Whether x is a data frame (pandas, polars, or alike)."""
    return hasattr(x, "columns") and hasattr(x, "shape")


def holds_texts(x: Any) -> bool:
    """Whether x is a sequence of texts instead of a table."""
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and isinstance(x[0], str)
    return getattr(x, "ndim", 2) == 1 and len(x) > 0 and isinstance(np.asarray(x, dtype=object)[0], str)


def column_names(x: Any) -> list[Any] | None:
    """Column names of a data frame."""
    return list(x.columns) if is_frame(x) else None


def is_dask(x: Any) -> bool:
    """Whether x is a dask array, data frame or series; dask is not imported."""
    return type(x).__module__.partition(".")[0] == "dask"


def refuse_dask(x: Any) -> None:
    """Raise for a dask collection, where rows must be in memory."""
    if is_dask(x):
        raise ValueError(
            f"X is a dask {type(x).__name__}, and this method takes rows in memory: pass X.compute(), or map it over "
            "the blocks. fit, partial_fit, score and the predictions take dask collections"
        )


def refuse_no_table(x: Any) -> None:
    """Raise for what cannot be rows and columns: a path, a dictionary, nothing."""
    if sp.issparse(x):  # of which one kind is a dictionary
        return
    if x is None or isinstance(x, (str, bytes, os.PathLike, Mapping, set, bool, int, float)):
        hint = "; read the file first, as with pandas.read_csv" if isinstance(x, (str, os.PathLike)) else ""
        hint = "; make it a data frame, as with pandas.DataFrame(X)" if isinstance(x, Mapping) else hint
        raise ValueError(
            "X must be a table: an array, sparse matrix, data frame or list of rows, (n_samples, n_features); got "
            f"{reprlib.repr(x)}{hint}"
        )


def refuse_duplicate_names(x: Any) -> None:
    """Raise if a data frame has two columns of one name: a match by name would be ambiguous."""
    names = column_names(x)
    if names is None or len(set(names)) == len(names):
        return
    double = next(n for i, n in enumerate(names) if n in names[:i])
    raise ValueError(f"duplicate column names: {double!r} is the name of several columns; names must be unique")


def column_values(x: Any, j: int, booleans: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
    """Column j of an array or data frame, and its declared levels if it is a categorical column; see `plain`."""
    if hasattr(x, "iloc"):
        column = x.iloc[:, j]
        categories = getattr(getattr(column, "cat", None), "categories", None)
        if categories is None:
            return plain(column.to_numpy(), booleans), None
        return plain(column.to_numpy(dtype=object)), np.asarray(categories)
    if hasattr(x, "get_column"):  # polars
        column = x.get_column(x.columns[j])
        kind = type(column.dtype).__name__
        if kind in ("Struct", "List", "Array"):
            raise ValueError(f"column {x.columns[j]!r} holds values of type {kind}; split it into plain columns")
        if kind not in ("Categorical", "Enum"):
            return plain(np.asarray(column.to_numpy()), booleans), None
        declared = column.dtype.categories if kind == "Enum" else column.drop_nulls().unique().cast(str).sort()
        return plain(np.asarray(column.cast(str).to_list(), dtype=object)), np.asarray(declared.to_list(), dtype=str)
    return plain(rows(x, slice(None))[:, j], booleans), None


def as_array(x: Any) -> np.ndarray:
    """A nested list as an array; `ValueError` unless its rows are of one length."""
    try:
        return np.asarray(x)
    except ValueError:
        sizes = [len(row) if hasattr(row, "__len__") else None for row in x]
    odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    what = (
        "a cell holds a list"
        if odd is None
        else f"row 0 has {_cells(sizes[0])}, and row {odd} has {_cells(sizes[odd])}"
    )
    raise ValueError(
        f"X must be a table with a value for each row and column (NaN or None where it is missing): {what}"
    )


def _cells(size: int | None) -> str:
    return "no cells but is a single value" if size is None else f"{size} cells"


def plain(column: np.ndarray, booleans: bool = False) -> np.ndarray:
    """An object column whose values are all numbers, or all booleans, as that type; missing is NaN.

    With `booleans`, those among which some are missing stay objects instead of becoming numbers.
    """
    if column.dtype.kind != "O":
        return column
    missing = is_missing(column)
    present = column[~missing].tolist()
    if not present or not all(isinstance(v, NUMBERS) for v in present):
        return column
    if any(isinstance(v, int) and abs(v) >= 2**1023 for v in present):
        return column
    if not missing.any():
        return np.array(present)
    if booleans and all(isinstance(v, (bool, np.bool_)) for v in present):
        return column
    out = np.full(len(column), np.nan)
    out[~missing] = np.array(present, dtype=float)
    return out


def is_missing(column: np.ndarray) -> np.ndarray:
    """None, NaN, NaT and pandas' NA, as a boolean array."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(column.shape, dtype=bool)
    return np.array([_missing(v) for v in column.tolist()], dtype=bool)


def _missing(v: Any) -> bool:
    return v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, float) and v != v)


def not_numeric(column: np.ndarray) -> str | None:
    """What a column holds if it cannot be read as numbers: "text (str)", "dates", ...; else None."""
    if column.dtype.kind in "US":
        return "text (str)" if column.dtype.kind == "U" else "text (bytes)"
    if column.dtype.kind in "mM":
        return "dates or durations"
    if column.dtype.kind == "c":
        return COMPLEX
    if column.dtype.kind != "O":
        return None
    for v in column.tolist():
        if isinstance(v, int) and abs(v) >= 2**1023:
            return "a number too large for float64"
        if isinstance(v, (str, bytes)):
            return f"text ({type(v).__name__})"
        if isinstance(v, (datetime.date, datetime.timedelta)) or type(v).__name__ in ("Period", "Interval"):
            return "dates or durations"
        if not _missing(v) and not isinstance(v, NUMBERS):
            try:
                float(v)  # Decimal, Fraction
            except OverflowError:
                return "a number too large for float64"
            except (TypeError, ValueError):
                return f"values of type {type(v).__name__}"
            if type(v).__module__ not in ("decimal", "fractions", "builtins"):
                return f"values of type {type(v).__name__}"
    return None


def numeric_frame(x: Any) -> tuple[Any, int | None, str]:
    """X with object columns as numbers, and the first column that cannot be (None), with what it holds."""
    if is_frame(x):
        return _numeric_columns(x)
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(float), np.nan)
    if isinstance(x, (list, tuple)):
        array = as_array(x)
        if array.dtype.kind in "US":
            array = np.array(x, dtype=object)
        x = array if array.dtype.kind in "OUSmMc" else x
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "OUSmMc" or x.ndim != 2 or not x.shape[1]:
        return x, None, ""
    for j in range(x.shape[1]):
        what = not_numeric(x[:, j])
        if what:
            return x, j, what
    return np.column_stack([_as_float(x[:, j]) for j in range(x.shape[1])]), None, ""


def _numeric_columns(x: Any) -> tuple[Any, int | None, str]:
    """Check the columns of a frame; only those that are not plain numbers are looked at."""
    dtypes = list(x.dtypes)
    for j, dtype in enumerate(dtypes):
        if getattr(dtype, "kind", None) in ("b", "i", "u", "f"):
            continue
        if hasattr(dtype, "is_numeric") and (dtype.is_numeric() or str(dtype) == "Boolean"):
            continue
        if hasattr(dtype, "is_temporal") and dtype.is_temporal():
            return x, j, "dates or durations"
        values = column_values(x, j)[0]
        what = not_numeric(values)
        if what:
            return x, j, what
        if hasattr(x, "isetitem") and values.dtype.kind in "Of" and str(dtype) == "object":
            x = x.copy(deep=False)
            x.isetitem(j, _as_float(values))
    return x, None, ""


def _as_float(column: np.ndarray) -> np.ndarray:
    out = np.full(len(column), np.nan)
    present = ~is_missing(column)
    out[present] = [float(v) for v in column[present].tolist()]
    return out
