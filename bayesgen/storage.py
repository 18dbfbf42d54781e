"""Fitted estimators in files: numbers and names, no code.

A file is a zip archive of a JSON manifest and arrays in NumPy's format. Unlike a pickle it can be opened without
trusting who wrote it: classes come from a fixed list, and sizes are checked before memory is taken.
"""

from __future__ import annotations

import io
import json
import math
import os
import secrets
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen._codec import PLAIN, Decoder, Encoder

__all__ = ["load", "save"]

FORMAT, VERSION = "bayesgen estimator", 1
MANIFEST = "manifest.json"
MOST_BYTES = 1 << 34  # of a file, unpacked
MOST_MANIFEST = 1 << 28
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
DAMAGE = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    EOFError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    OSError,
    MemoryError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class _Refused(Exception):
    """A file that is refused for a reason that is not damage."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file; see `GenerativeBase.save`."""
    arrays: list[np.ndarray] = []

    def store(value: np.ndarray) -> dict[str, Any]:
        arrays.append(value)
        return {"is": "array", "n": len(arrays) - 1}

    from bayesgen import __version__

    encoded = Encoder(store, f"this {type(estimator).__name__}")(estimator)
    manifest = {
        "format": FORMAT,
        "format_version": VERSION,
        "bayesgen": __version__,
        "arrays": len(arrays),
        "value": encoded,
    }
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the path of a file to write; got {path!r:.100}")
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                _add(archive, MANIFEST, json.dumps(manifest, allow_nan=False).encode())
                for i, value in enumerate(arrays):
                    buffer = io.BytesIO()
                    np.lib.format.write_array(buffer, np.asanyarray(value), allow_pickle=False)
                    _add(archive, f"arrays/{i}.npy", buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same model is the same file
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content, compresslevel=1)


def load(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> Any:
    """Read an estimator that ``estimator.save(path)`` wrote.

    Nothing in the file is executed, and no class is looked up outside this library: a file of unknown origin can
    mislead about a model, but not run code.

    Parameters
    ----------
    path : str or path
    max_bytes : int, default=2**34
        Refuse files that hold more when unpacked.

    Returns
    -------
    estimator
        With the same parameters, and predictions equal bit for bit under the same versions of NumPy and SciPy; it can
        go on learning (``partial_fit``, ``merge``, ``forget``).

    Raises
    ------
    ValueError
        If the file is not one of this library, is damaged, holds too much, or was written by a newer version.

    Examples
    --------
    >>> import tempfile, bayesgen
    >>> model = bayesgen.PoissonNB().fit([[0], [1], [5], [4]], ["few", "few", "many", "many"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.bayesgen")
    ...     again = bayesgen.load(f"{folder}/model.bayesgen")
    >>> again.predict([[6]]).tolist()
    ['many']
    """
    from bayesgen._values import check_count

    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the path of a file that save() wrote; got {path!r:.100}")
    max_bytes = check_count("max_bytes", max_bytes, 0)
    with open(path, "rb") as file:  # a file that is not there is an error of its own
        return _load(file, path, max_bytes)


def _load(file: Any, path: Any, max_bytes: int) -> Any:
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(archive, max_bytes)
    except _Refused as error:
        raise ValueError(f"cannot load {str(path)!r}: {error}") from None
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"cannot load {str(path)!r}: it is not a file that save() wrote, or not all of it ({error})"
        ) from error
    except DAMAGE as error:
        raise ValueError(f"cannot load {str(path)!r}: its content is damaged ({error})") from error


def _read(archive: zipfile.ZipFile, max_bytes: int) -> Any:
    from bayesgen._values import check_count
    from bayesgen.estimators._base import GenerativeBase

    entries = {info.filename: info for info in archive.infolist()}
    if MANIFEST not in entries:
        raise _Refused("it is a zip archive, but not one that save() wrote: it has no manifest.json")
    total = sum(info.file_size for info in archive.infolist())
    if total > max_bytes or entries[MANIFEST].file_size > min(MOST_MANIFEST, max_bytes):
        raise _Refused(f"it holds {total:,} bytes unpacked, more than max_bytes={max_bytes:,}")
    manifest = json.loads(archive.read(MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _Refused("it is a zip archive, but not one that save() wrote")
    version = check_count("format_version", manifest["format_version"])
    if version > VERSION:
        raise _Refused(
            f"it has version {version} of the format, written by bayesgen {manifest.get('bayesgen')}; this one reads "
            f"versions up to {VERSION}: upgrade bayesgen"
        )
    found = [info.filename for info in archive.infolist()]
    expected = [MANIFEST, *(f"arrays/{i}.npy" for i in range(len(found) - 1))]
    if manifest["arrays"] != len(found) - 1 or sorted(found) != sorted(expected):
        raise ValueError("entries are missing or do not belong to it")

    def fetch(value: Any) -> np.ndarray:
        return read_npy(archive.read(entries[f"arrays/{int(value['n'])}.npy"]))

    out = Decoder(fetch)(manifest["value"])
    if not isinstance(out, GenerativeBase):
        raise ValueError("it holds no estimator")
    return out


def read_npy(content: bytes) -> np.ndarray:
    """An array from NumPy's format; its size is checked before memory is taken, and objects are refused."""
    file = io.BytesIO(content)
    shape, columns_first, dtype = HEADERS[np.lib.format.read_magic(file)](file)
    start, size = file.tell(), math.prod(shape) * dtype.itemsize
    if dtype.kind not in PLAIN or dtype.names is not None or not dtype.itemsize:
        raise ValueError(f"an array of {dtype}")
    if len(content) - start != size:
        raise ValueError(f"an array of shape {shape} with {len(content) - start} bytes in place of {size}")
    out = np.empty(shape, dtype, order="F" if columns_first else "C")
    if size:
        flat = np.frombuffer(content, dtype, offset=start)
        out[...] = flat.reshape(shape, order="F" if columns_first else "C")
    return out
