"""Checks at the border: numeric matrices and tables of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import __version__ as sklearn_version
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import validate_data

from bayesgen._kernels import map_rows
from bayesgen.estimators._arrays import on_host
from bayesgen.estimators._tables import (
    COMPLEX,
    as_array,
    column_names,
    holds_texts,
    is_frame,
    numeric_frame,
    refuse_dask,
    refuse_duplicate_names,
    refuse_no_table,
)
from bayesgen.families.base import column_name
from bayesgen.statistics import Columns

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
ADVICE = {  # by what a column holds
    "text": "Convert numbers with astype(float), use CategoricalNB or MixedNB for categories, or CountVectorizer for "
    "documents",
    "dates": "Turn dates into numbers, such as days since the first",
    "a number too large": "Change the unit of the column (rescale it)",
}
LARGEST_COUNT = 1e200  # sums of larger values would leave float64


class _Named:
    """A polars frame with the protocol by which scikit-learn before 1.9 reads column names; polars 2 does without."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    def __len__(self) -> int:
        return len(self._frame)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self._frame, dtype=dtype)

    def __dataframe__(self) -> _Named:
        return self

    def column_names(self) -> list[str]:
        return list(self._frame.columns)


def named(x: Any) -> Any:
    """X, so that scikit-learn finds the names of its columns."""
    unread = hasattr(x, "get_column") and not hasattr(x, "__dataframe__")
    return _Named(x) if unread and parse_version(sklearn_version) < parse_version("1.9") else x


def stand_in(estimator: Any, columns: Columns | None) -> Any:
    """A copy that knows the columns (None: not yet), so that a check leaves the estimator as it was."""
    out = object.__new__(type(estimator))
    out.__dict__.update(estimator.__dict__)
    for name in ("n_features_in_", "feature_names_in_"):
        out.__dict__.pop(name, None)
    if columns is not None:
        out.n_features_in_ = columns.n_features
        if columns.names is not None:
            out.feature_names_in_ = columns.names
    return out


def check_numeric(estimator: Any, x: Any, columns: Columns | None) -> tuple[Any, Any]:
    """A float matrix (dense, or CSR) and the stand-in that holds its `n_features_in_` and names.

    Columns are not checked for NaN or infinity here.
    """
    x = on_host(x)
    if _is_plain(x, columns):  # what scikit-learn's checks would give back, which take longer than a row does
        holder = stand_in(estimator, columns)
        holder.n_features_in_ = x.shape[1]
        return x, holder
    values = _known_frame(x, columns)
    if values is not None:
        return values, stand_in(estimator, columns)
    refuse_dask(x)
    refuse_no_table(x)
    refuse_duplicate_names(x)
    if is_frame(x):
        refuse_empty(x)
    elif holds_texts(x):
        raise ValueError(
            "X is a list of texts (str), expected a matrix with a row for each sample. Count the words first, with "
            "sklearn's CountVectorizer, or pass token ids with input='tokens' to MultinomialNB or BernoulliNB"
        )
    x, at, what = numeric_frame(x)
    if at is not None:
        name = column_name(at, column_names(x))
        if what.startswith("values"):
            raise TypeError(f"{name} of X holds {what}: the argument must be a string or a real number")
        if what == COMPLEX:
            raise ValueError(f"Complex data not supported: {name} of X; pass real and imaginary parts as two columns")
        advice = next(text for start, text in ADVICE.items() if what.startswith(start))
        raise ValueError(f"{name} of X holds {what}; this model needs numeric values. {advice}")
    holder, reset = stand_in(estimator, columns), columns is None
    x = validate_data(
        holder,
        named(x),
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
    )
    return x, holder


def _is_plain(x: Any, columns: Columns | None) -> bool:
    """Whether x is a matrix of floats that needs no conversion, of as many columns as are known, without names."""
    return (
        type(x) is np.ndarray
        and x.ndim == 2
        and x.size > 0
        and x.dtype in FLOATS
        and (columns is None or (columns.names is None and columns.n_features == x.shape[1]))
    )


def _known_frame(x: Any, columns: Columns | None) -> np.ndarray | None:
    """The matrix of a pandas data frame of floats that has the columns known; None for others."""
    if columns is None or columns.names is None or not hasattr(x, "iloc") or not hasattr(x, "columns"):
        return None
    if x.shape[0] == 0 or not np.array_equal(np.asarray(x.columns, dtype=object), columns.names):
        return None
    values = x.to_numpy()
    return values if values.dtype in FLOATS else None


def check_finite(x: Any, names: Any, allow_nan: bool, advice: str, squares: bool = False) -> None:
    """Raise for infinities, for NaN unless allowed, and for values too large to be summed, naming the column.

    With `squares` their squares must fit as well.
    """
    values = x.data if sp.issparse(x) else x
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        # One pass: a sum of squares is finite only if every value is, and none is beyond the root of the range.
        if np.isfinite(sum(map_rows(lambda lo, hi: np.dot(flat[lo:hi], flat[lo:hi]), len(flat), len(flat)))):
            return
        infinite, missing = np.isinf(values), np.isnan(values)
        large = np.abs(values.astype(float)) > (1e150 if squares else LARGEST_COUNT)
    if infinite.any():
        raise ValueError(
            f"Input X contains infinity: {_where(x, infinite, names)}. Infinities are not data; "
            "clip them or drop the rows"
        )
    if missing.any() and not allow_nan:
        raise ValueError(f"Input X contains NaN: {_where(x, missing, names)}. {advice}")
    if large.any():
        raise ValueError(
            f"{_where(x, large, names)} holds {values[large][0]:g}: its {'square' if squares else 'sums'} would "
            "overflow float64; change the unit of the column (rescale it)"
        )


def _where(x: Any, mask: np.ndarray, names: Any) -> str:
    if sp.issparse(x):
        j = int(x.indices[np.flatnonzero(mask)[0]])
        return column_name(j, names)
    i, j = np.argwhere(mask)[0]
    return f"{column_name(int(j), names)}, row {i}"


def canonical(x: Any) -> Any:
    """CSR with sorted, unique entries: a copy if the given matrix has not; it is never changed."""
    if sp.issparse(x) and not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def drop_weightless(x: Any, codes: np.ndarray, w: np.ndarray | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows of weight zero declare labels and levels; statistics do not see them."""
    if w is None or (w > 0).all():
        return x, codes, w
    keep = np.flatnonzero(w > 0)
    part = tuple(p[keep] for p in x) if isinstance(x, tuple) else x[keep]
    return part, codes[keep], w[keep]


def check_table(estimator: Any, x: Any, columns: Columns | None) -> tuple[Any, Any]:
    """A two-dimensional table (array or data frame) whose columns keep their own types."""
    x = on_host(x)
    refuse_dask(x)
    refuse_no_table(x)
    refuse_duplicate_names(x)
    if not is_frame(x):
        if sp.issparse(x):
            x = x.toarray()
        elif isinstance(x, np.ma.MaskedArray):
            x = _unmasked(x)
        elif isinstance(x, (list, tuple)):
            x = _table(x)
    holder, reset = stand_in(estimator, columns), columns is None
    if not is_frame(x):
        return validate_data(holder, x, reset=reset, dtype=None, ensure_all_finite=False), holder
    validate_data(holder, named(x), reset=reset, skip_check_array=True)
    refuse_empty(x)
    return x, holder


def refuse_empty(x: Any) -> None:
    """Raise for a data frame without rows or without columns."""
    for size, what in zip(x.shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise ValueError(f"Found array with 0 {what} (shape={tuple(x.shape)}) while a minimum of 1 is required")


def _unmasked(x: Any) -> np.ndarray:
    """A masked array with its masked cells missing."""
    if x.dtype.kind in "biuf":
        return np.ma.filled(x.astype(float), np.nan)
    out = x.data.astype(object)
    out[np.ma.getmaskarray(x)] = None
    return out


def _table(x: Any) -> np.ndarray:
    """A nested list as an array, without turning numbers into text beside text."""
    array = as_array(x)
    return np.array(x, dtype=object) if array.dtype.kind in "US" else array
