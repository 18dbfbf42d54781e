"""Levels of categorical columns: found, declared, united, and turned into codes.

A column of whole numbers has levels 0..max (its values are codes); other columns have their distinct values,
sorted, or the levels that a categorical column declares.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from bayesgen.estimators._options import DROP_NAN
from bayesgen.estimators._tables import column_values, is_missing, plain
from bayesgen.families.base import column_name
from bayesgen.families.categorical import CategoricalStats
from bayesgen.statistics import Columns

MOST_CODES = 1_000_000  # more levels than this are identifiers or measurements, not codes


def is_codes(levels: np.ndarray) -> bool:
    """Whether the levels are the codes 0..s-1."""
    return levels.dtype.kind in "iu" and np.array_equal(levels, np.arange(len(levels)))


def kind_of(values: np.ndarray) -> str:
    """The kind of values: numbers, text, bytes, dates, durations, or the name of another type."""
    if values.dtype.kind == "O":
        first = next((v for v in values.tolist() if v is not None), None)
        if not isinstance(first, (str, bytes, bool, int, float)):
            return type(first).__name__
        values = np.asarray([first])
    return {"U": "text", "S": "bytes", "M": "dates", "m": "durations"}.get(values.dtype.kind, "numbers")


def _no_level(values: np.ndarray, name: str) -> ValueError:
    """What to raise where some values are lists, dicts or alike."""
    odd = next((v for v in values.tolist() if getattr(type(v), "__hash__", None) is None), values[0])
    return ValueError(
        f"{name} holds {reprlib.repr(odd)}: levels are single values, such as texts or numbers. Split it into plain "
        "columns, or drop it"
    )


def _sorted_distinct(values: np.ndarray, name: str) -> np.ndarray:
    try:
        return np.unique(values)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in values.tolist()})
        if len(kinds) == 1:
            raise _no_level(values, name) from None
        raise ValueError(
            f"{name} mixes values of different types ({', '.join(kinds)}); make them all of one type, or pass "
            "categories="
        ) from None


def find(
    x: Any, j: int, before: np.ndarray | None, least: int, names: Any, weights: np.ndarray | None = None
) -> np.ndarray:
    """Levels of column j: those known before and those of a new batch.

    Rows of weight zero declare codes and names; of real numbers only those with weight are levels.
    """
    name = column_name(j, names)
    values, declared = column_values(x, j, booleans=True)
    seen = ~is_missing(values)
    counted = values[seen if weights is None else seen & (weights > 0)]
    values = plain(values[seen])
    if declared is not None:
        return declared if before is None else union(before, declared, j, names)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"Input X contains infinity: {name}. Infinities are not data; drop the rows")
    if values.dtype.kind in "iuf" and (before is None or is_codes(before)):
        whole = bool(np.all(values == np.floor(values)))
        if not whole and before is not None and len(before):
            fraction = values[values != np.floor(values)][0]
            raise ValueError(
                f"{name} holds {fraction:g} but its levels are whole-number codes; declare other levels with "
                "categories="
            )
        if whole:
            _refuse_negative(values, name)
            if values.size and float(values.max()) >= MOST_CODES:
                raise ValueError(
                    f"{name} holds {values.max():g}: whole numbers are codes 0, 1, ..., and that would be more than "
                    f"{MOST_CODES} levels. Declare the levels with categories=, or use GaussianNB for measurements"
                )
            top = int(values.max()) + 1 if values.size else 0
            return np.arange(max(top, int(least), 0 if before is None else len(before)))
    fresh = _sorted_distinct(counted if values.dtype.kind == "f" else values, name)
    return fresh if before is None or not len(before) else union(before, fresh, j, names)


def _refuse_negative(values: np.ndarray, name: str) -> None:
    if values.size and values.min() < 0:
        raise ValueError(
            f"Negative values in data: {name} holds {values.min():g}; whole-number codes are 0, 1, ... Declare other "
            "levels with categories="
        )


def declare(levels: Any, j: int) -> np.ndarray:
    """Levels given by the user, in the user's order."""
    out = np.asarray(levels)
    if out.dtype.kind in "US" and not all(isinstance(v, (str, bytes)) for v in levels):
        out = np.array(list(levels), dtype=object)
    if out.ndim != 1 or not out.size or len(set(out.tolist())) != len(out):
        raise ValueError(f"categories[{j}] must be a list of distinct levels; got {levels!r}")
    return out


def union(a: np.ndarray, b: np.ndarray, j: int, names: Any) -> np.ndarray:
    """Levels of a column from two batches."""
    if np.array_equal(a, b):
        return a
    if not len(a) or not len(b):
        return b if not len(a) else a
    if is_codes(a) and is_codes(b):
        return a if len(a) >= len(b) else b
    name = column_name(j, names)
    if kind_of(a) != kind_of(b):
        raise ValueError(
            f"{name} has the levels {a[:3].tolist()} in one batch and {b[:3].tolist()} in another: different types"
        )
    if a.dtype.kind in "mM":
        return np.unique(np.concatenate([a, b]))
    new = [v for v in b.tolist() if v not in set(a.tolist())]
    in_order = np.array_equal(a, _sorted_distinct(a, name)) and np.array_equal(b, _sorted_distinct(b, name))
    joined = np.concatenate([a, np.array(new, dtype=b.dtype)]) if new else a
    return _sorted_distinct(joined, name) if in_order else joined


def encode(
    x: Any, columns: Columns, allow_missing: bool, unknown: str, advice: str = "Convert it, or drop the rows"
) -> np.ndarray:
    """Level codes (n, d): -1 is missing, s_j is a level that the column does not know, for which errors have advice."""
    levels = columns.levels or ()
    out = np.empty((x.shape[0], len(levels)), dtype=np.int64)
    for j, known in enumerate(levels):
        name = column_name(j, columns.names)
        values, _ = column_values(x, j, booleans=True)
        missing = is_missing(values)
        if values.dtype.kind == "f" and np.isinf(values).any():
            raise ValueError(f"Input X contains infinity: {name}. Infinities are not data; drop the rows")
        if missing.any() and not allow_missing:
            raise ValueError(f"Input X contains NaN: {name} has a missing value and missing='error'. {DROP_NAN}")
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[~missing] = _codes(plain(values[~missing]), known, name)
        strange = codes == len(known)
        if strange.any() and unknown == "error":
            raise ValueError(
                f"{name} holds the level {values[strange].tolist()[0]!r}, which is not among its levels "
                f"{known[:20].tolist()}. {advice}"
            )
        if unknown == "ignore":
            codes[strange] = -1
        out[:, j] = codes
    return out


def _codes(values: np.ndarray, levels: np.ndarray, name: str) -> np.ndarray:
    """Position of each value among the levels; len(levels) where it is none of them."""
    s = len(levels)
    if not s or not len(values):
        return np.full(len(values), s, dtype=np.int64)
    if kind_of(values) != kind_of(levels):
        raise ValueError(
            f"{name} holds {kind_of(values)} (such as {values.tolist()[0]!r}), but its levels are {kind_of(levels)} "
            f"(such as {levels.tolist()[0]!r}); convert the column"
        )
    if values.dtype.kind in "iufb" and is_codes(levels):
        if values.dtype.kind == "f":
            fraction = values[values != np.floor(values)]
            if fraction.size:
                raise ValueError(
                    f"{name} holds {fraction[0]:g} but its levels are whole-number codes; declare other levels with "
                    "categories="
                )
        _refuse_negative(values, name)
        return np.minimum(values, np.int64(s)).astype(np.int64)  # small integers cannot hold s
    if values.dtype.kind == levels.dtype.kind != "O" or {values.dtype.kind, levels.dtype.kind} <= set("iufb"):
        order = np.argsort(levels, kind="stable")
        at = np.minimum(np.searchsorted(levels[order], values), s - 1)
        return np.where(levels[order][at] == values, order[at], s)
    try:
        place = {v: i for i, v in enumerate(levels.tolist())}
        return np.array([place.get(v, s) for v in values.tolist()], dtype=np.int64)
    except TypeError:
        raise _no_level(values, name) from None


def adapt(stats: CategoricalStats, old: Columns, new: Columns) -> CategoricalStats:
    """Counts over old levels as counts over new ones, which contain them."""
    a, b = old.levels or (), new.levels or ()
    if all(len(p) == len(q) and np.array_equal(p, q) for p, q in zip(a, b, strict=True)):
        return stats
    starts = np.concatenate([[0], np.cumsum([len(q) for q in b])]).astype(int)
    index = [start + _codes(p, q, "") for p, q, start in zip(a, b, starts[:-1], strict=True)]
    out = np.zeros((len(stats.level_count), starts[-1]))
    out[:, np.concatenate(index).astype(int)] = stats.level_count
    return CategoricalStats(out)
