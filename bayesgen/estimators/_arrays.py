"""Arrays of other libraries (JAX, PyTorch, CuPy, ...): read as NumPy arrays, and results given back in kind.

Work is done in NumPy, in main memory. An array that is elsewhere moves there only if the user said so, by
scikit-learn's setting ``array_api_dispatch``; with it, predictions move back to where X is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils._array_api import device, get_namespace

__all__ = ["in_kind", "on_host"]

FETCHING = {"get": ".get()", "cpu": ".detach().cpu().double().numpy()"}  # CuPy, PyTorch


def on_host(x: Any, name: str = "X") -> Any:
    """An array of another library as a NumPy array; anything else as it is.

    Raises
    ------
    TypeError
        If NumPy cannot read it where it is, such as an array in the memory of a GPU.
    """
    if not _is_foreign(x):
        return x
    try:
        return _moved(x) if get_config()["array_api_dispatch"] else _read(x)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        way = next((f", such as {name}{call}" for method, call in FETCHING.items() if hasattr(x, method)), "")
        raise TypeError(
            f"{name} is of type {type(x).__module__}.{type(x).__qualname__}, and NumPy cannot read it: {error} "
            f"Pass a NumPy array{way}"
        ) from error


def _is_foreign(x: Any) -> bool:
    """Whether x is an array of another library than NumPy."""
    numpy = isinstance(x, (np.ndarray, np.generic))
    return not numpy and (hasattr(x, "__dlpack__") or hasattr(x, "__array_namespace__"))


def _read(x: Any) -> np.ndarray:
    values = np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)
    short = values.dtype.kind == "V" and values.dtype.names is None  # bfloat16 and the like
    return values.astype(np.float32) if short else values


def _moved(x: Any) -> np.ndarray:
    """The array in main memory, from wherever it is."""
    if hasattr(x, "get"):  # CuPy
        return x.get()
    if hasattr(x, "cpu"):  # PyTorch
        return _read(x.detach().cpu())
    try:
        return _read(x)
    except (TypeError, RuntimeError):
        return np.from_dlpack(x)


def in_kind(values: np.ndarray, x: Any, labels: bool = False) -> Any:
    """Results for the rows of x in the kind of x; NumPy unless ``array_api_dispatch`` is set.

    Labels keep their type (texts stay in NumPy), other numbers get the floating type of x.
    """
    if not get_config()["array_api_dispatch"] or not _is_foreign(x) or values.dtype.kind not in "biuf":
        return values
    xp, _ = get_namespace(x)
    if not labels and str(x.dtype).endswith("float32"):
        values = values.astype(np.float32)
    return xp.asarray(values, device=device(x))
