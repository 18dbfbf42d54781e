"""Rows on an accelerator: the statistics and predictions of NumPy, how long they take, and what leaves the device.

Run as ``python tests/benchmarks/gpu.py [--rows 1000000] [--columns 64] [--classes 10] [--repeats 3]``: a minute where
there is a GPU, and one line where there is none (``--allow-cpu`` runs it on the processor, to test the script itself).
Each model learns the same rows twice, from NumPy in memory and from a `jax.Array` on the device. The script fails if
statistics differ by more than rounding, or if anything else than statistics came back.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from bayesgen import GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB, _device

MODELS: dict[str, Callable[[], Any]] = {
    "GDA, shared": GaussianDiscriminantAnalysis,
    "GDA, per class": lambda: GaussianDiscriminantAnalysis(covariance="per_class"),
    "GaussianNB": GaussianNB,
    "MultinomialNB": MultinomialNB,
}
SAME = 1e-12  # relative to the largest number of a table
TRIED = 100_000  # rows that are predicted


class Traffic:
    """Counts what comes back from devices: sums, pilots, and rows."""

    def __init__(self) -> None:
        self.bytes = self.rows = 0
        rows = _device.DeviceRows
        total, pilots, getitem = rows._sum, rows._pilots, rows.__getitem__

        def counted_sum(held: Any, *args: Any, **kwargs: Any) -> Any:
            out = total(held, *args, **kwargs)
            self.bytes += sum(v.nbytes for v in out)
            return out

        def counted_pilots(held: Any, *args: Any) -> Any:
            out = pilots(held, *args)
            self.bytes += out.nbytes
            return out

        def counted_rows(held: Any, key: Any) -> Any:
            self.rows += len(held)
            return getitem(held, key)

        rows._sum, rows._pilots, rows.__getitem__ = counted_sum, counted_pilots, counted_rows  # type: ignore[method-assign]


def least(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest of several runs, and the result."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        out = work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds), out


def apart(a: Any, b: Any) -> float:
    """Largest difference of two statistics, relative to the largest number of the table it is in.

    The low part of a mean is compared with the mean.
    """
    scale = {name: np.abs(v).max(initial=0.0) for name, v in a._asdict().items()}
    scale["mean_low"] = scale.get("mean", 0.0)
    pairs = zip(a._fields, a, b, strict=True)
    return max(float(np.abs(p - q).max(initial=0.0)) / (scale[name] or 1.0) for name, p, q in pairs)


def compare(name: str, x: np.ndarray, y: np.ndarray, device: Any, repeats: int, traffic: Traffic) -> bool:
    """One model on the host and on the device; whether the two agree."""
    make = MODELS[name]
    begin = time.perf_counter()
    with jax.enable_x64(True):
        there = jax.block_until_ready(jax.device_put(x, device))
    sent = time.perf_counter() - begin
    host, one = least(lambda: make().fit(x, y), repeats)
    traffic.bytes = traffic.rows = 0
    first, two = least(lambda: make().fit(there, y), 1)
    came, rows = traffic.bytes, traffic.rows
    on_device, two = least(lambda: make().fit(there, y), repeats)
    difference = apart(one.statistics_.features, two.statistics_.features)
    evidence = abs(two.log_evidence_ / one.log_evidence_ - 1)
    with jax.enable_x64(True):
        few = jax.device_put(x[:TRIED], device)
    predict_host, p = least(lambda: one.predict_proba(x[:TRIED]), repeats)
    predict_device, q = least(lambda: two.predict_proba(few), repeats)
    proba = float(np.abs(p - q).max())
    times = f"{1e3 * predict_host:.1f} ms, {1e3 * predict_device:.1f} ms from the device"
    print(
        f"{name:14s} {x.dtype}: fit {1e3 * host:7.1f} ms in NumPy, {1e3 * on_device:7.1f} ms on the device "
        f"({host / on_device:.1f}x; first {1e3 * first:.0f} ms; to send the rows took {1e3 * sent:.0f} ms); "
        f"{came / 1024:.0f} KiB of {x.nbytes / 2**20:.0f} MiB came back; statistics within {difference:.0e}, evidence "
        f"{evidence:.0e}; predict_proba of {len(p)} rows {times}, within {proba:.0e}",
        flush=True,
    )
    return difference < SAME and evidence < SAME and proba < 1e-9 and 0 < came < x.nbytes and rows == 0


def main() -> None:
    """Print a line for each model; exit with an error if one does not agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--allow-cpu", action="store_true", help="run on the processor, to test this script")
    args = parser.parse_args()
    devices = [d for d in jax.devices() if d.platform not in _device.HOSTS]
    if not devices and not args.allow_cpu:
        print(f"skipped: JAX sees no accelerator here, only {jax.devices()} (--allow-cpu tests the script itself)")
        return
    if not devices:
        _device.HOSTS, devices = (), jax.devices()
    print(f"JAX {jax.__version__} on {devices[0].device_kind}; {args.rows} rows, {args.columns} columns")
    rng = np.random.default_rng(0)
    y = rng.integers(0, args.classes, args.rows)
    numbers = rng.standard_normal((args.rows, args.columns)) + 1e4 + y[:, None]
    counts = rng.poisson(1.0 + y[:, None] % 3, size=numbers.shape).astype(float)
    traffic, good = Traffic(), True
    for name in MODELS:
        x = counts if name == "MultinomialNB" else numbers
        for kind in (np.float64, np.float32):
            good &= compare(name, x.astype(kind), y, devices[0], args.repeats, traffic)
    if not good:
        sys.exit("the device and NumPy do not agree, or rows came back")


if __name__ == "__main__":
    main()
