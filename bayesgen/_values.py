"""Entries of arrays as Python values, and whole numbers that are checked."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_count", "python_value", "python_values"]


def python_values(values: Any) -> list[Any]:
    """The entries of an array as Python values; dates and durations that Python has no type for stay NumPy's.

    `tolist` would turn those, such as datetime64[ns], into bare numbers.
    """
    values = np.asarray(values)
    out: list[Any] = values.tolist()
    return list(values) if values.dtype.kind in "mM" and any(isinstance(v, int) for v in out) else out


def python_value(value: Any) -> Any:
    """The same of one NumPy scalar; other values as they are."""
    return python_values(np.asarray(value)[None])[0] if isinstance(value, np.generic) else value


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number that is at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}")
    return int(value)
