"""Rows that lie on a device: summed up there, so that only statistics leave it.

Kernels are compiled once for each number of columns and classes (and device), since rows come to them in chunks of one
size, the last one padded with rows of weight zero. Only the program that picks the rows of a chunk knows how many there
are in all; it is small, and compiled for each. Sums are float64, whatever the rows are.

Labels are put into the order of classes on the host: what is sent are four bytes a row for its place, four for its
class, and eight for its weight, if there are weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from bayesgen._math import imported_jax

__all__ = ["DeviceRows", "device_rows", "is_jax", "on_device"]

CHUNK = 1 << 14  # rows
HOSTS = ("cpu",)  # whose memory NumPy reads in place, by kernels that are faster there


def is_jax(x: Any) -> bool:
    """Whether x is an array of JAX, with values; JAX is not imported."""
    jax = imported_jax()
    return jax is not None and isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)


def on_device(x: Any) -> bool:
    """Whether x is an array of JAX in other memory than that of the host."""
    return is_jax(x) and all(d.platform not in HOSTS for d in x.devices())


def device_rows(x: Any) -> DeviceRows | None:
    """Rows (n, d) of an array on one device, if they are floats and all are plain numbers; else None.

    What is missing, infinite, or too large to be squared is looked at on the host, which can say where it is.
    """
    if x.dtype not in (np.float32, np.float64) or not x.size:
        return None
    found = DeviceRows(x)
    return found if np.isfinite(found.squares) else None


@cache
def _kernels() -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    def weights_of(codes: Any, weights: Any, n_classes: int) -> Any:
        return (codes < n_classes).astype(float) if weights is None else weights

    def hot(codes: Any, w: Any, n_classes: int) -> Any:
        return jnp.where(jnp.arange(n_classes)[:, None] == codes, w, 0.0)

    def residuals(x: Any, codes: Any, w: Any, pilot: Any) -> Any:
        """Zero in padding and in rows without weight, which may hold anything."""
        centre = pilot[jnp.minimum(codes, len(pilot) - 1)]
        return jnp.where((w > 0)[:, None], x.astype(float) - centre, 0.0)

    @jax.jit
    def pick(x: Any, places: Any) -> Any:
        return x[places]

    @jax.jit
    def facts(found: Any, x: Any) -> Any:
        x = x.astype(float)
        return jnp.minimum(found[0], x.min()), found[1] + (x * x).sum()

    @jax.jit
    def class_sums(found: Any, x: Any, codes: Any, weights: Any) -> Any:
        w = weights_of(codes, weights, len(found[0]))
        return (found[0] + hot(codes, w, len(found[0])) @ jnp.where((w > 0)[:, None], x.astype(float), 0.0),)

    @jax.jit
    def diagonal_moments(found: Any, x: Any, codes: Any, weights: Any, pilot: Any) -> Any:
        w = weights_of(codes, weights, len(pilot))
        residual, table = residuals(x, codes, w, pilot), hot(codes, w, len(pilot))
        return found[0] + table @ residual, found[1] + table @ (residual * residual)

    @jax.jit
    def pooled_moments(found: Any, x: Any, codes: Any, weights: Any, pilot: Any) -> Any:
        w = weights_of(codes, weights, len(pilot))
        residual = residuals(x, codes, w, pilot)
        return found[0] + hot(codes, w, len(pilot)) @ residual, found[1] + residual.T @ (w[:, None] * residual)

    @jax.jit
    def class_moments(found: Any, x: Any, codes: Any, weights: Any, pilot: Any) -> Any:
        """Of a chunk whose rows are all of one class."""
        w = weights_of(codes, weights, len(pilot))
        residual = residuals(x, codes, w, pilot)
        return found[0].at[codes[0]].add(w @ residual), found[1].at[codes[0]].add(residual.T @ (w[:, None] * residual))

    return {k: v for k, v in locals().items() if isinstance(v, type(pick))}


class DeviceRows:
    """Rows (n, d) of plain numbers on one device, in place of the array where sums of rows are made.

    Parameters
    ----------
    x : jax.Array (n, d)
        On one device.
    """

    ndim = 2

    def __init__(self, x: Any) -> None:
        self.x, (self.device,) = x, x.devices()
        self.shape, self.size, self.dtype = x.shape, x.size, np.dtype(float)
        start = np.array(np.inf), np.array(0.0)
        self.smallest, self.squares = map(float, self._sum("facts", start, self._in_order(), columns=()))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Rows on the host, all of which come there for it."""
        return np.asarray(self.x)[rows]

    def min(self, *_: Any, **__: Any) -> float:
        """The smallest number."""
        return self.smallest

    def _in_order(self) -> Iterator[np.ndarray]:
        n = len(self)
        return (np.arange(i, min(n, i + CHUNK)) for i in range(0, n, CHUNK))

    def _pick(self, places: np.ndarray) -> Any:
        """The rows of a chunk; padding is the last of them once more."""
        padded = np.empty(CHUNK, dtype=np.int32)
        padded[: len(places)] = places
        padded[len(places) :] = places[-1]
        return _kernels()["pick"](self.x, padded)

    def _sum(
        self, kernel: str, start: tuple[np.ndarray, ...], chunks: Iterator[np.ndarray], columns: Any, *rest: Any
    ) -> tuple[np.ndarray, ...]:
        """Add up a kernel over chunks of places of rows; `columns` are the (n,) arrays it takes, with their padding."""
        import jax

        with jax.enable_x64(True):
            found, rest = jax.device_put((start, rest), self.device)
            for places in chunks:
                parts = []
                for values, padding in columns:
                    part = None
                    if values is not None:
                        part = np.full(CHUNK, padding, dtype=values.dtype)
                        part[: len(places)] = values[places]
                    parts.append(part)
                found = _kernels()[kernel](found, self._pick(places), *parts, *rest)
            return tuple(np.asarray(v) for v in found)

    def _pilots(self, codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
        """The first row with weight of each class, (K, d)."""
        import jax

        out = np.zeros((n_classes, self.shape[1]))
        counted = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
        present, first = np.unique(codes[counted], return_index=True)
        with jax.enable_x64(True):
            for i in range(0, len(present), CHUNK):
                some = slice(i, i + CHUNK)
                rows = self._pick(counted[first[some]])
                out[present[some]] = np.asarray(rows[:n_classes])[: len(present[some])]
        return out

    def _labels(self, codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> Any:
        return (codes.astype(np.int32), n_classes), (None if weights is None else weights.astype(float), 0.0)

    # ---------------------------------------------------------- the sums of `bayesgen._kernels`, by their names

    def class_sums(self, codes: np.ndarray, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
        """See `_kernels.class_sums`."""
        start = (np.zeros((n_classes, self.shape[1])),)
        labels = self._labels(codes, weights, n_classes)
        return self._sum("class_sums", start, self._in_order(), labels)[0]

    def _moments(
        self,
        kernel: str,
        shape: tuple[int, ...],
        chunks: Iterator[np.ndarray],
        codes: Any,
        weights: Any,
        n_classes: int,
    ) -> tuple[np.ndarray, ...]:
        pilot = self._pilots(codes, weights, n_classes)
        start = np.zeros((n_classes, self.shape[1])), np.zeros(shape)
        labels = self._labels(codes, weights, n_classes)
        return pilot, *self._sum(kernel, start, chunks, labels, pilot)

    def diagonal_moments(self, codes: Any, weights: Any, n_classes: int) -> tuple[np.ndarray, ...]:
        """See `_kernels.diagonal_moments`."""
        shape = n_classes, self.shape[1]
        return self._moments("diagonal_moments", shape, self._in_order(), codes, weights, n_classes)

    def pooled_moments(self, codes: Any, weights: Any, n_classes: int) -> tuple[np.ndarray, ...]:
        """See `_kernels.pooled_moments`."""
        d = self.shape[1]
        return self._moments("pooled_moments", (d, d), self._in_order(), codes, weights, n_classes)

    def class_moments(self, codes: Any, weights: Any, n_classes: int) -> tuple[np.ndarray, ...]:
        """See `_kernels.class_moments`."""
        d = self.shape[1]
        order = np.argsort(codes, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_classes))])
        chunks = (
            order[i : min(i + CHUNK, bounds[k + 1])]
            for k in range(n_classes)
            for i in range(bounds[k], bounds[k + 1], CHUNK)
        )
        return self._moments("class_moments", (n_classes, d, d), chunks, codes, weights, n_classes)
