"""Checks at the border: labels, weights, class probabilities, numeric matrices, tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from bayesgen._kernels import rows
from bayesgen.families.base import column_name
from bayesgen.statistics import Columns


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


# ------------------------------------------------------------------------------------------- labels


def plain_labels(y: Any) -> np.ndarray:
    """Labels as a 1-D array of one NumPy type; booleans stay booleans, whatever frame they come from."""
    dtype = getattr(y, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype):  # nullable, categorical, polars
        y = np.asarray(y, dtype=object)
    y = column_or_1d(y, warn=True)
    if y.dtype != object:
        return y
    if is_missing(y).any():
        raise ValueError(
            "y contains NaN or None: every row needs a label (drop the rows, or give them a class of their own)"
        )
    kinds = {bool if isinstance(v, np.bool_) else type(v) for v in y.tolist()}
    if len(kinds) > 1 and not kinds <= {int, float}:
        names = ", ".join(sorted(k.__name__ for k in kinds))
        raise ValueError(f"y mixes labels of different types ({names}); make them all of one type")
    return np.array(y.tolist())


def check_labels(y: Any) -> np.ndarray:
    """Labels of a training set; raises for a continuous target, NaN, or mixed types."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    y = plain_labels(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a label")
    check_classification_targets(y)
    return y


def encode_labels(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Codes of labels among sorted classes; `ValueError` naming labels that are not among them."""
    if y.dtype.kind != classes.dtype.kind and not {y.dtype.kind, classes.dtype.kind} <= set("biuf"):
        raise ValueError(f"y holds labels of type {y.dtype}; the classes are {classes.tolist()}")
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    strange = classes[codes] != y
    if strange.any():
        raise ValueError(
            f"y contains the label {y[strange][0].item()!r}, which is not among the classes {classes.tolist()}"
        )
    return codes


def check_weights(sample_weight: Any, x: Any) -> np.ndarray | None:
    """Row weights (n,), non-negative with a positive sum; None stays None."""
    if sample_weight is None:
        return None
    w = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    if not w.sum() > 0:
        raise ValueError("sample_weight is zero for every row: there is nothing to learn from")
    return w


def check_class_prior(prior: Any, n_classes: int, name: str = "class_prior") -> np.ndarray:
    """Given class probabilities: (K,), non-negative, summing to 1 within 1e-8."""
    out = np.asarray(prior, dtype=float)
    if out.shape != (n_classes,):
        raise ValueError(
            f"{name} has shape {out.shape}; expected one prior probability for each of the {n_classes} classes, "
            "in the order of classes_: Number of priors must match number of classes"
        )
    if not (out >= 0).all():
        raise ValueError(f"{name} must be non-negative; got {out.tolist()}")
    if not abs(out.sum() - 1.0) <= 1e-8:
        raise ValueError(
            f"{name} must sum to 1; the sum of {out.tolist()} is {out.sum():.10g}. "
            "Divide by the sum if these are weights"
        )
    return out


# ------------------------------------------------------------------------------------------- numbers


def _text_column(x: Any) -> int | None:
    """Index of the first column that holds text; numbers written as text are not parsed."""
    if sp.issparse(x) or isinstance(x, np.ndarray):
        dtype = x.dtype
        if dtype.kind in "US":
            return 0
        if dtype.kind != "O" or x.ndim != 2:
            return None
        columns = [x[:, j] for j in range(x.shape[1])]
    elif hasattr(x, "iloc") and hasattr(x, "columns"):
        columns = [np.asarray(x.iloc[:, j]) for j in range(x.shape[1]) if x.dtypes.iloc[j].kind not in "biuf"]
        places = [j for j in range(x.shape[1]) if x.dtypes.iloc[j].kind not in "biuf"]
        hits = [j for j, c in zip(places, columns, strict=True) if _has_text(c)]
        return hits[0] if hits else None
    elif hasattr(x, "to_numpy") and hasattr(x, "columns"):
        columns = [x[name].to_numpy() for name in x.columns]
    elif isinstance(x, (list, tuple)):
        return _text_column(np.asarray(x)) if _rectangular(x) else None
    else:
        return None
    hits = [j for j, c in enumerate(columns) if _has_text(c)]
    return hits[0] if hits else None


def _rectangular(x: Any) -> bool:
    try:
        np.asarray(x)
    except ValueError:
        return False
    return True


def _has_text(column: np.ndarray) -> bool:
    return column.dtype.kind in "US" or (column.dtype == object and any(isinstance(v, str) for v in column.tolist()))


def refuse_duplicate_names(x: Any) -> None:
    """Raise if a data frame has two columns of one name: a match by name would be ambiguous."""
    names = getattr(x, "columns", None)
    if names is None or not hasattr(x, "shape"):
        return
    names = list(names)
    double = [n for i, n in enumerate(names) if n in names[:i]] if len(set(names)) < len(names) else []
    if double:
        raise ValueError(f"duplicate column names: {double[0]!r} is the name of several columns; names must be unique")


def check_numeric(estimator: Any, x: Any, columns: Columns | None) -> tuple[Any, Any]:
    """A float matrix (dense, or CSR) and the stand-in that holds its `n_features_in_` and names.

    Columns are not checked for NaN or infinity here.
    """
    refuse_duplicate_names(x)
    at = _text_column(x)
    if at is not None:
        names = list(x.columns) if hasattr(x, "columns") else None
        raise ValueError(
            f"{column_name(at, names)} of X holds text (str); this model needs numeric values. Convert numbers with "
            "astype(float), or use CategoricalNB or MixedNB for categories"
        )
    holder, reset = stand_in(estimator, columns), columns is None
    x = validate_data(
        holder,
        x,
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
    )
    return x, holder


def check_finite(x: Any, names: Any, allow_nan: bool, advice: str) -> None:
    """Raise for infinities, and for NaN unless allowed, naming the column."""
    values = x.data if sp.issparse(x) else x
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    infinite, missing = np.isinf(values), np.isnan(values)
    if infinite.any():
        raise ValueError(
            f"Input X contains infinity: {_where(x, infinite, names)}. Infinities are not data; "
            "clip them or drop the rows"
        )
    if missing.any() and not allow_nan:
        raise ValueError(f"Input X contains NaN: {_where(x, missing, names)}. {advice}")


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


# ------------------------------------------------------------------------------------------- tables


def column_values(x: Any, j: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Column j of an array or data frame, and its declared levels if it is a categorical column."""
    if hasattr(x, "iloc"):
        column = x.iloc[:, j]
        categories = getattr(getattr(column, "cat", None), "categories", None)
        return _plain(column.to_numpy(dtype=object) if categories is not None else column.to_numpy()), (
            None if categories is None else np.asarray(categories)
        )
    if hasattr(x, "get_column"):  # polars
        column = x.get_column(x.columns[j])
        declared = None
        if type(column.dtype).__name__ in ("Categorical", "Enum"):
            declared = np.asarray(column.cat.get_categories().to_list())
            column = column.cast(str)
        return _plain(np.asarray(column.to_numpy())), declared
    return _plain(rows(x, slice(None))[:, j]), None


def _plain(column: np.ndarray) -> np.ndarray:
    """An object column whose values are all numbers, or all booleans, as that type; missing is NaN."""
    if column.dtype != object:
        return column
    missing = is_missing(column)
    present = column[~missing].tolist()
    if not present or not all(isinstance(v, (bool, int, float, np.number, np.bool_)) for v in present):
        return column
    if not missing.any():
        return np.array(present)
    out = np.full(len(column), np.nan)
    out[~missing] = np.array(present, dtype=float)
    return out


def is_missing(column: np.ndarray) -> np.ndarray:
    """None, NaN, NaT and pandas' NA, as a boolean array."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype != object:
        return np.zeros(column.shape, dtype=bool)
    return np.array([_missing(v) for v in column.tolist()], dtype=bool)


def _missing(v: Any) -> bool:
    return v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, float) and v != v)


def check_table(estimator: Any, x: Any, columns: Columns | None) -> tuple[Any, Any]:
    """A two-dimensional table (array or data frame) whose columns keep their own types."""
    refuse_duplicate_names(x)
    if not (hasattr(x, "columns") and hasattr(x, "shape")):
        if sp.issparse(x):
            x = x.toarray()
        elif isinstance(x, (list, tuple)):
            x = _table(x)
    holder, reset = stand_in(estimator, columns), columns is None
    if hasattr(x, "columns"):
        validate_data(holder, x, reset=reset, skip_check_array=True)
        if x.shape[0] == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={x.shape}) while a minimum of 1 is required")
        return x, holder
    array = validate_data(holder, x, reset=reset, dtype=None, ensure_all_finite=False)
    return array, holder


def _table(x: Any) -> np.ndarray:
    """A nested list as an array, without turning numbers into text beside text."""
    array = np.asarray(x)
    return np.array(x, dtype=object) if array.dtype.kind in "US" else array
