"""Checks at the border: labels, row weights, class probabilities."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from bayesgen.estimators._arrays import on_host
from bayesgen.estimators._tables import is_missing

UNKNOWN_LABEL = -1  # as in sklearn.semi_supervised
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100  # beyond these, products of weights and data leave float64
SPAN = 1 << 16  # whole labels that lie this near together are counted, which is quicker than to sort them
MANY = 20  # labels from which on scikit-learn asks whether they are classes


def _column(y: Any, name: str = "y") -> np.ndarray:
    """Labels as a 1-D array, in which missing ones are still told from the others."""
    y = on_host(y, name)
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError(f"{name} has masked entries: every row needs a label (drop the rows)")
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU":
        return y
    dtype = getattr(y, "dtype", None)
    try:
        if dtype is not None and not isinstance(dtype, np.dtype):  # nullable, categorical, polars
            y = np.asarray(y, dtype=object)
        elif isinstance(y, (list, tuple)) and np.asarray(y).dtype.kind in "US":
            y = np.array(list(y), dtype=object)  # NumPy would write numbers and NaN as text beside text
        return column_or_1d(y, warn=True)
    except ValueError as error:
        shape = getattr(y, "shape", None)
        got = reprlib.repr(y) if shape is None else f"shape {shape}"
        advice = "; for weights of classes use fit_soft(X, R, classes)" if shape is not None and len(shape) == 2 else ""
        raise ValueError(f"{name} should be a 1d array of labels; got {got}{advice}") from error


def plain_labels(y: Any, name: str = "y") -> np.ndarray:
    """Labels as a 1-D array of one NumPy type; booleans stay booleans, whatever frame they come from."""
    y = _column(y, name)
    if is_missing(y).any():
        raise ValueError(
            f"Input {name} contains NaN, NaT or None (the first in row {int(is_missing(y).argmax())}): every row needs "
            "a label. Drop the rows, or give them a class of their own"
        )
    if y.dtype.kind != "O":
        return y
    kinds = {bool if isinstance(v, np.bool_) else type(v) for v in y.tolist()}
    if len(kinds) > 1 and not kinds <= {int, float}:
        names = ", ".join(sorted(k.__name__ for k in kinds))
        raise ValueError(f"{name} mixes labels of different types ({names}); make them all of one type")
    return np.array(y.tolist())


def check_labels(y: Any, part: bool = False) -> np.ndarray:
    """Labels of a training set, or of a part of one; raises for a continuous target, NaN, or mixed types.

    In a part, labels that are as many as rows are no sign of a target that is no class.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    y = plain_labels(y)
    if y.dtype.kind == "f":
        if np.isinf(y).any():
            raise ValueError("Input y contains infinity: every row needs a label")
        if np.abs(y.astype(float)).max(initial=0.0) > 2.0**53:
            raise ValueError("y holds numbers too large to be whole labels; use integers or strings")
    # Of these types all are classes; scikit-learn warns of classes nearly as many as rows.
    if y.dtype.kind in "biuU" and (part or 0 < len(y) <= MANY or len(distinct_labels(y)) <= len(y) // 2):
        return y
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"y must hold class labels: whole numbers, texts or booleans; got {reprlib.repr(y[:3].tolist())}. {error}"
        ) from error
    return y


def _offset(*labels: np.ndarray) -> int | None:
    """The least of whole labels that lie near together; None for others."""
    if not all(y.size and y.dtype.kind in "iu" for y in labels):
        return None
    low, high = min(int(y.min()) for y in labels), max(int(y.max()) for y in labels)
    near = high - low < SPAN and abs(low) < 2**62
    return low if near else None


def _less(y: np.ndarray, low: int) -> np.ndarray:
    y = y.astype(np.intp, copy=False)
    return y - low if low else y


def distinct_labels(y: np.ndarray) -> np.ndarray:
    """The classes in a column of labels, sorted: `numpy.unique`."""
    low = _offset(y)
    if low is None:
        return np.unique(y)
    return (np.flatnonzero(np.bincount(_less(y, low))) + low).astype(y.dtype)


def split_labels(y: Any, allow_unknown: bool, part: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The known labels, and which rows have one, (n,): whole numbers -1, NaN and None say that it is not known."""
    if not allow_unknown or y is None:
        y = check_labels(y, part)
        return y, np.ones(len(y), dtype=bool)
    column = _column(y)
    known = ~is_missing(column)
    labels = check_labels(column[known]) if known.any() else np.zeros(0)
    if labels.dtype.kind in "iu":
        found = labels != UNKNOWN_LABEL
        known[known], labels = found, labels[found]
    if not labels.size:
        raise ValueError("y has no label: unlabelled='em' needs labelled rows to say what the classes are")
    return labels, known


def check_rows(x: Any, y: Any, what: str = "y", things: str = "labels") -> None:
    """Raise unless there is one label for each row."""
    n, m = _num_samples(x), _num_samples(y)
    if n != m:
        raise ValueError(
            f"X has {n} rows and {what} {m} {things} (inconsistent numbers of samples); give one for each row"
        )


def encode_labels(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Codes of labels among sorted classes; `ValueError` naming labels that are not among them."""
    if y.dtype.kind != classes.dtype.kind and not {y.dtype.kind, classes.dtype.kind} <= set("biuf"):
        raise ValueError(f"y holds labels of type {y.dtype}; the classes are {classes.tolist()}")
    low = _offset(y, classes)
    if low is None:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        strange = classes[codes] != y
    else:
        table = np.full(int(max(y.max(), classes.max())) - low + 1, -1)
        table[_less(classes, low)] = np.arange(len(classes))
        codes = table[_less(y, low)]
        strange = codes < 0
    if strange.any():
        raise ValueError(
            f"y contains the label {y[strange][0].item()!r}, which is not among the classes {classes.tolist()}; state "
            "all classes at first (classes= of partial_fit), or merge models of their own"
        )
    return codes


def join_classes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sorted union of two lists of classes."""
    if a.dtype.kind != b.dtype.kind and not {a.dtype.kind, b.dtype.kind} <= set("biuf"):
        raise ValueError(f"cannot merge: the classes are {a.tolist()} and {b.tolist()}, labels of different types")
    return np.unique(np.concatenate([a, b]))


def check_weights(sample_weight: Any, x: Any, may_vanish: bool = False) -> np.ndarray | None:
    """Row weights (n,), non-negative with a positive sum (unless they may all be 0); None stays None."""
    if sample_weight is None:
        return None
    sample_weight = on_host(sample_weight, "sample_weight")
    n = _num_samples(x)
    w: np.ndarray | None
    try:
        given = np.asarray(sample_weight)
        w = given.astype(np.float64, copy=False) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        w = None
    if w is not None and w.ndim == 0:
        w = np.full(n, w)
    if w is None or w.shape != (n,):
        got = reprlib.repr(sample_weight) if w is None else f"shape {w.shape}"
        raise ValueError(f"sample_weight must be an array of numbers, one for each of the {n} rows; got {got}")
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise ValueError(
            f"sample_weight must be finite and not negative; the weight of row {int(bad.argmax())} is {w[bad][0]:g}. "
            "Drop the row, or give it weight 0"
        )
    if not w.any():
        if may_vanish:
            return w
        raise ValueError("sample_weight is zero for every row: there is nothing to learn from")
    positive = w[w > 0]
    if positive.min() < LEAST_WEIGHT or positive.max() > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight must be 0 or between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}; it goes from "
            f"{positive.min():g} to {positive.max():g}. Divide by a common factor"
        )
    return w


def check_class_prior(prior: Any, n_classes: int, name: str = "class_prior") -> np.ndarray:
    """Given class probabilities: (K,), non-negative, summing to 1 within 1e-8; a copy."""
    prior = on_host(prior, name)
    try:
        out = np.array(prior, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of {n_classes} probabilities in the order of classes_ (sorted labels); "
            f"got {prior!r}"
        ) from None
    if out.shape != (n_classes,):
        raise ValueError(
            f"{name} has shape {out.shape}; expected {n_classes} probabilities, one for each class in the order of "
            "classes_ (sorted labels): Number of priors must match number of classes"
        )
    if not (out >= 0).all():
        raise ValueError(f"{name} must be non-negative; got {out.tolist()}")
    if not abs(out.sum() - 1.0) <= 1e-8:
        raise ValueError(
            f"{name} must sum to 1; the sum of {out.tolist()} is {out.sum():.10g}. "
            "Divide by the sum if these are weights"
        )
    return out
