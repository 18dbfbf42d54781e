"""Learning from a stream: time against one fit in memory, peak memory, and the cost of a small batch.

Run as ``python tests/benchmarks/streaming.py [--rows 1000000] [--columns 64] [--group 65536]``. Each figure is of a
process of its own; memory is the peak of the resident set over what the process held before (the pages of the file of
a memory map are counted, which the system takes back when it needs them).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from timeit import repeat
from typing import Any

import numpy as np

from bayesgen import GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB

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
    if how == "parquet":
        import pandas as pd

        frame = pd.DataFrame(small, columns=list("abcd")).assign(y=labels)
        frame.to_parquet(folder / f"small-{model}.parquet")
        make().fit_batches(folder / f"small-{model}.parquet", target="y")
    y = np.load(folder / "y.npy")
    X = None if how == "parquet" else np.load(folder / "X.npy", mmap_mode="r" if how == "memmap" else None)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = status("VmRSS")
    begin = time.perf_counter()
    fitted = make().fit_batches(folder / "rows.parquet", target="y") if X is None else make().fit(X, y)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "MiB": status("VmHWM") - before, "evidence": fitted.log_evidence_}


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
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, args.rows, args.columns, args.group)
        size = args.rows * args.columns / 2**17
        print(f"{args.rows} x {args.columns}, {size:.0f} MiB; Parquet in row groups of {args.group}")
        for model in MODELS:
            base = run(folder, model, "memory")
            print(f"{model}: in memory {base['seconds']:.2f} s")
            for how in ("parquet", "memmap"):
                out = run(folder, model, how)
                error = abs(out["evidence"] / base["evidence"] - 1)
                print(
                    f"{model}: {how:8s} {out['seconds']:.2f} s, {out['seconds'] / base['seconds']:.2f}x; "
                    f"peak +{out['MiB']:.0f} MiB; evidence within {error:.0e}"
                )
    small_batches()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(Path(sys.argv[2]), *sys.argv[3:])))
    else:
        main()
