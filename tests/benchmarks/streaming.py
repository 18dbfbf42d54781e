"""Learning from a stream: time against one fit in memory, peak memory, and the cost of a small batch.

Run as ``python tests/benchmarks/streaming.py [--rows 1000000] [--columns 64] [--group 65536] [--repeats 5]``. Each
figure is of a process of its own, the ways of learning in turns; given are medians, and the ratio of the least. Memory
is the peak of the resident set over what the process held before (the pages of the file of a memory map are counted,
which the system takes back when it needs them). "reading" is the Parquet file decoded by pyarrow and thrown away: no
stream can be faster.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from timeit import repeat
from typing import Any

import numpy as np

from bayesgen import GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB
from bayesgen.estimators._batches import open_batches

MODELS = {"GaussianNB": GaussianNB, "GDA": GaussianDiscriminantAnalysis}


def write(folder: Path, rows: int, columns: int, group: int) -> None:
    """The same rows as a Parquet file and as .npy files, written a group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (rows, columns))
    y = rng.integers(0, 4, rows)
    names = [f"x{j}" for j in range(columns)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int64())])
    # Random numbers do not compress: nothing is to be gained by trying.
    with pq.ParquetWriter(folder / "rows.parquet", schema, compression="none", use_dictionary=False) as writer:
        for i in range(0, rows, group):
            part = y[i : i + group]
            X[i : i + group] = rng.standard_normal((len(part), columns)) + part[:, None]
            arrays = [pa.array(X[i : i + group, j]) for j in range(columns)]
            writer.write_table(pa.table([*arrays, pa.array(part)], schema=schema))
    np.save(folder / "y.npy", y)


def status(field: str) -> float:
    """A field of the memory of this process, MiB: VmHWM (peak), VmRSS, RssAnon (what no file backs)."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) / 1024


def child(folder: Path, model: str, how: str) -> dict[str, float]:
    """Seconds and peak memory of one way of learning, in this process."""
    make = MODELS[model]
    rng = np.random.default_rng(1)
    small, labels = rng.standard_normal((200, 4)), np.arange(200) % 4
    make().fit(small, labels).predict(small)
    if how in ("parquet", "reading"):
        import pandas as pd

        frame = pd.DataFrame(small, columns=list("abcd")).assign(y=labels)
        frame.to_parquet(folder / f"small-{model}.parquet")
        make().fit_batches(folder / f"small-{model}.parquet", target="y")
    y = np.load(folder / "y.npy")
    X = None if how in ("parquet", "reading") else np.load(folder / "X.npy", mmap_mode="r" if how == "memmap" else None)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = status("VmRSS")
    begin, cpu = time.perf_counter(), time.process_time()
    if how == "reading":
        for _ in open_batches(folder / "rows.parquet", "y", None, None)[0]:
            pass
        return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "MiB": 0.0, "evidence": 0.0}
    fitted = make().fit_batches(folder / "rows.parquet", target="y") if X is None else make().fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "MiB": status("VmHWM") - before, "evidence": fitted.log_evidence_}


def run(folder: Path, model: str, how: str) -> dict[str, float]:
    """`child` in a process of its own."""
    command = [sys.executable, __file__, "--child", str(folder), model, how]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def small_batches() -> None:
    """Microseconds of `partial_fit` on one row and on a hundred."""
    from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB

    rng = np.random.default_rng(0)
    models: dict[str, Any] = {**MODELS, "MultinomialNB": MultinomialNB, "sklearn GaussianNB": SklearnGaussianNB}
    for name, make in models.items():
        cost = []
        for n in (1, 100):
            X, y = rng.integers(0, 5, (n, 10)).astype(float), rng.integers(0, 2, n)
            model = make().partial_fit(X, y, classes=[0, 1])
            learn = lambda model=model, X=X, y=y: model.partial_fit(X, y)  # noqa: E731
            cost.append(1e6 * min(repeat(learn, number=200, repeat=7)) / 200)
        print(f"partial_fit, {name:18s} 1 row {cost[0]:6.0f} us, 100 rows {cost[1]:6.0f} us")


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--group", type=int, default=65_536)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, args.rows, args.columns, args.group)
        size = args.rows * args.columns / 2**17
        print(f"{args.rows} x {args.columns}, {size:.0f} MiB; Parquet in row groups of {args.group}")
        for model in MODELS:
            ways = ("memory", "reading", "parquet", "memmap")
            runs = [{how: run(folder, model, how) for how in ways} for _ in range(args.repeats)]
            for how in ways:
                ratios = [r[how]["seconds"] / r["memory"]["seconds"] for r in runs]
                least = [min(r[w][key] for r in runs) for key in ("seconds", "cpu") for w in (how, "memory")]
                error = max(abs(r[how]["evidence"] / r["memory"]["evidence"] - 1) for r in runs)
                print(
                    f"{model}: {how:8s} {median(r[how]['seconds'] for r in runs):.2f} s, {median(ratios):.2f}x (least "
                    f"{least[0] / least[1]:.2f}x, processor time {least[2] / least[3]:.2f}x); "
                    f"peak +{median(r[how]['MiB'] for r in runs):.0f} MiB"
                    + ("" if how == "reading" else f"; evidence within {error:.0e}")
                )
    small_batches()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(Path(sys.argv[2]), *sys.argv[3:])))
    else:
        main()
