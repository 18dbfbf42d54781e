"""Entries of arrays as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["python_value", "python_values"]


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
