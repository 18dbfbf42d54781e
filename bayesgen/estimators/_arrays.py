"""Arrays of other libraries (JAX, PyTorch, CuPy, ...): read as NumPy arrays, and results given back in kind.

Work is done in NumPy, in main memory. An array that is elsewhere moves there only if the user said so, by
scikit-learn's setting ``array_api_dispatch``; with it, predictions move back to where X is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config

__all__ = ["in_kind", "on_host"]


def on_host(x: Any, name: str = "X") -> Any:
    """An array of another library as a NumPy array; anything else as it is.

    Raises
    ------
    TypeError
        If NumPy cannot read it where it is, such as an array in the memory of a GPU.
    """
    if isinstance(x, (np.ndarray, np.generic)) or not (hasattr(x, "__dlpack__") or hasattr(x, "__array_namespace__")):
        return x
    try:
        return _moved(x) if get_config()["array_api_dispatch"] else _read(x)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        ways = [f"{name}.{way}()" for way in ("get", "detach", "cpu", "todense", "to_dense") if hasattr(x, way)]
        raise TypeError(
            f"{name} is of type {type(x).__module__}.{type(x).__qualname__}, and NumPy cannot read it: {error} "
            f"Pass a NumPy array{', such as ' + ' or '.join(ways) if ways else ''}"
        ) from error


def _read(x: Any) -> np.ndarray:
    return np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)


def _moved(x: Any) -> np.ndarray:
    """The array in main memory, from wherever it is."""
    if hasattr(x, "get"):  # CuPy
        return x.get()
    if hasattr(x, "cpu"):  # PyTorch
        return _read(x.detach().cpu())
    return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)


def in_kind(values: np.ndarray, x: Any, labels: bool = False) -> Any:
    """Results for the rows of x in the kind of x; NumPy unless ``array_api_dispatch`` is set.

    Labels keep their type (texts stay in NumPy), other numbers get the floating type of x.
    """
    if isinstance(x, np.ndarray) or not get_config()["array_api_dispatch"] or values.dtype.kind not in "biuf":
        return values
    from sklearn.utils._array_api import device, get_namespace

    if not (hasattr(x, "__dlpack__") or hasattr(x, "__array_namespace__")):
        return values
    xp, _ = get_namespace(x)
    if not labels and str(x.dtype).endswith("float32"):
        values = values.astype(np.float32)
    return xp.asarray(values, device=device(x))
