"""Time and memory against scikit-learn, in one process, as ratios: above 1 is faster than the peer.

    python tests/benchmarks/peers.py                    # full size: about ten minutes and 6 GB
    python tests/benchmarks/peers.py --scale 0.1 --only dense,text --json out.json

Each pair is warmed up once, then timed in turns; the ratio is that of the medians, and the peer has its better time of
one and of two BLAS threads. Memory is the growth of the resident set during the warm-up, in MiB. Bayesian answers that
a peer does not have are timed against its nearest plug-in answer, and say so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB as SkBernoulliNB
from sklearn.naive_bayes import GaussianNB as SkGaussianNB
from sklearn.naive_bayes import MultinomialNB as SkMultinomialNB
from threadpoolctl import threadpool_limits

from bayesgen import BernoulliNB, GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB, __version__

Work = Callable[[], Any]
RESULTS: list[dict[str, Any]] = []
PACKAGES = ("numpy", "scipy", "scikit-learn", "jax", "arviz", "river")


def peak(work: Work) -> float:
    """Growth of the resident set while it runs, in MiB, sampled every 2 ms."""
    process, on = psutil.Process(), True
    start = top = process.memory_info().rss

    def watch() -> None:
        nonlocal top
        while on:
            top = max(top, process.memory_info().rss)
            time.sleep(0.002)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    work()
    on = False
    watcher.join()
    return (top - start) / 2**20


def seconds(work: Work) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(workload: str, peers: dict[str, Work], ours: Work, repeats: int) -> None:
    """Time the peers and ours in turns, and print a line for each peer."""
    memory = {name: peak(work) for name, work in peers.items()}
    own_memory = peak(ours)
    times: dict[str, list[float]] = {name: [] for name in peers}
    one_thread: dict[str, list[float]] = {name: [] for name in peers}
    own = []
    for _ in range(repeats):
        for name, work in peers.items():
            times[name].append(seconds(work))
            with threadpool_limits(1, user_api="blas"):
                one_thread[name].append(seconds(work))
        own.append(seconds(ours))
    mine = statistics.median(own)
    for name in peers:
        best = min(statistics.median(times[name]), statistics.median(one_thread[name]))
        row = {"workload": workload, "peer": name, "peer_ms": 1e3 * best, "ours_ms": 1e3 * mine, "ratio": best / mine}
        row |= {"peer_mib": memory[name], "ours_mib": own_memory}
        RESULTS.append(row)
        print(
            f"{workload:<52} {name:<26} {1e3 * best:9.1f} ms {1e3 * mine:9.1f} ms   x {best / mine:6.2f}"
            f"   {memory[name]:6.0f} / {own_memory:.0f} MiB",
            flush=True,
        )


def clouds(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated normal classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    mix = np.eye(d) + rng.normal(size=(d, d)) / 16
    return rng.normal(size=(n, d)) @ mix + rng.normal(size=(k, d))[y], y


def dense(scale: float, repeats: int) -> None:
    """A million rows, 64 columns, 10 classes; the same in single precision; 100,000 rows of 256 columns."""
    n, d, k = int(1_000_000 * scale), 64, 10
    X, y = clouds(n, d, k)
    own = GaussianDiscriminantAnalysis()
    wide = clouds(int(100_000 * scale), 256, 3)
    for rows, labels, kind in ((X, y, ""), (X.astype(np.float32), y, ", float32"), (*wide, "")):
        shape = f"{rows.shape[0]} x {rows.shape[1]}, {labels.max() + 1} classes{kind}"
        lda = {
            f"LDA {s}": lambda s=s, rows=rows, labels=labels: LinearDiscriminantAnalysis(solver=s).fit(rows, labels)
            for s in ("svd", "lsqr")
        }
        compare(f"fit shared covariance, {shape}", lda, lambda rows=rows, labels=labels: own.fit(rows, labels), repeats)
    del wide
    shape = f"{n} x {d}, {k} classes"
    qda = {f"QDA {s}": lambda s=s: QuadraticDiscriminantAnalysis(solver=s).fit(X, y) for s in ("svd", "eigen")}
    per_class = GaussianDiscriminantAnalysis(covariance="per_class")
    compare(f"fit covariance per class, {shape}", qda, lambda: per_class.fit(X, y), repeats)
    compare(
        f"fit diagonal, {shape}",
        {"GaussianNB": lambda: SkGaussianNB().fit(X, y)},
        lambda: GaussianNB().fit(X, y),
        repeats,
    )
    new = X[:200_000]
    for name, peer, make in (
        ("LDA", LinearDiscriminantAnalysis(solver="lsqr"), GaussianDiscriminantAnalysis),
        ("QDA", QuadraticDiscriminantAnalysis(), partial(GaussianDiscriminantAnalysis, covariance="per_class")),
        ("GaussianNB", SkGaussianNB(), GaussianNB),
    ):
        peer.fit(new, y[: len(new)])
        for route in ("mean", "exact"):
            model = make(inference=route).fit(new, y[: len(new)])
            title = f"predict_proba, {len(new)} rows, {route}"
            compare(title, {name: lambda p=peer: p.predict_proba(new)}, lambda m=model: m.predict_proba(new), repeats)


def documents(n: int, n_words: int, n_classes: int) -> tuple[Any, np.ndarray]:
    """Counts of words with Zipf's frequencies, about 90 different ones in a document."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    lengths = rng.poisson(150, n)
    words = np.minimum((n_words ** rng.random(lengths.sum()) - 1).astype(np.int64), n_words - 1)
    words = (words + 37 * np.repeat(y, lengths) * (rng.random(len(words)) < 0.2)) % n_words
    X = sp.coo_array((np.ones(len(words)), (np.repeat(np.arange(n), lengths), words)), shape=(n, n_words)).tocsr()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def gammaln_scores(X: Any, alpha: np.ndarray, log_class: np.ndarray) -> np.ndarray:
    """Dirichlet-multinomial log probabilities, (n, K), by differences of log gamma functions."""
    length = np.asarray(X.sum(axis=1)).ravel()
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    out = np.empty((X.shape[0], len(alpha)))
    for k, a in enumerate(alpha):
        each = a[X.indices]
        out[:, k] = np.bincount(rows, weights=gammaln(each + X.data) - gammaln(each), minlength=X.shape[0])
        out[:, k] += gammaln(a.sum()) - gammaln(a.sum() + length) + log_class[k]
    return out - logsumexp(out, axis=1, keepdims=True)


def event_models(X: Any, y: np.ndarray, n_classes: int, repeats: int) -> None:
    """Fit and prediction of the two event models."""
    shape = f"{X.shape[0]} documents, {n_classes} classes"
    for name, peer, model in (
        ("MultinomialNB", SkMultinomialNB(), MultinomialNB(inference="mean")),
        ("BernoulliNB", SkBernoulliNB(), BernoulliNB()),
    ):
        compare(f"fit {name}, {shape}", {name: lambda p=peer: p.fit(X, y)}, lambda m=model: m.fit(X, y), repeats)
        compare(
            f"predict_log_proba {name}, {shape}",
            {name: lambda p=peer: p.predict_log_proba(X)},
            lambda m=model: m.predict_log_proba(X),
            repeats,
        )


def text(scale: float, repeats: int) -> None:
    """200,000 documents, 50,000 words, 20 classes and 2."""
    n = int(200_000 * scale)
    event_models(*documents(n, 50_000, 2), 2, repeats)
    X, y = documents(n, 50_000, 20)
    event_models(X, y, 20, repeats)
    exact, plug_in, some = MultinomialNB().fit(X, y), SkMultinomialNB().fit(X, y), X[:20_000]
    alpha, log_class = exact.posterior_.alpha, exact.class_log_prior_
    np.testing.assert_allclose(exact.predict_log_proba(some), gammaln_scores(some, alpha, log_class), atol=1e-4)
    compare(
        f"predict_log_proba exact (Polya), {some.shape[0]} documents",
        {
            "gammaln": lambda: gammaln_scores(some, alpha, log_class),
            "MultinomialNB plug-in": lambda: plug_in.predict_log_proba(some),
        },
        lambda: exact.predict_log_proba(some),
        repeats,
    )
    few, labels = X[: max(2000, n // 20)], y[: max(2000, n // 20)]
    grid = GridSearchCV(SkMultinomialNB(), {"alpha": np.geomspace(1e-3, 10, 20)}, scoring="neg_log_loss", cv=5)
    compare(
        f"smoothing learned, {few.shape[0]} documents",
        {"grid of 20, 5 folds": lambda: grid.fit(few, labels)},
        lambda: MultinomialNB(alpha="evidence").fit(few, labels),
        1,
    )


def small(scale: float, repeats: int) -> None:
    """150 rows, 4 columns, 3 classes: overhead, and a new process."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    peer, own = LinearDiscriminantAnalysis(solver="lsqr"), GaussianDiscriminantAnalysis()
    compare("fit, 150 x 4", {"LDA lsqr": lambda: peer.fit(X, y)}, lambda: own.fit(X, y), 50 * repeats)
    peer.fit(X, y), own.fit(X, y)
    compare(
        "predict_proba, 150 x 4", {"LDA": lambda: peer.predict_proba(X)}, lambda: own.predict_proba(X), 50 * repeats
    )
    program = (
        "from sklearn.datasets._base import load_iris\nX, y = load_iris(return_X_y=True)\nfrom {module} import {name}\n"
        "{name}().fit(X, y).predict_proba(X)"
    )

    def process(module: str, name: str) -> Work:
        code = program.format(module=module, name=name)
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    peers = {
        "LDA": process("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
        "GaussianNB": process("sklearn.naive_bayes", "GaussianNB"),
    }
    compare("new process, import, fit and predict", peers, process("bayesgen", "GaussianDiscriminantAnalysis"), repeats)
    batch, labels = X[:100], y[:100]
    mine, theirs = GaussianNB().fit(X, y), SkGaussianNB().fit(X, y)
    for n in (1, 100):
        peers = {"GaussianNB": lambda n=n: theirs.partial_fit(batch[:n], labels[:n])}
        if find_spec("river"):
            peers["river GaussianNB"] = river_batch(batch[:n], labels[:n])
        compare(f"partial_fit, {n} rows", peers, lambda n=n: mine.partial_fit(batch[:n], labels[:n]), 50 * repeats)


def river_batch(X: np.ndarray, y: np.ndarray) -> Work:
    """River learns one row after another, each a dict."""
    from river.naive_bayes import GaussianNB as RiverGaussianNB

    model, rows = RiverGaussianNB(), [(dict(enumerate(x)), label) for x, label in zip(X, y, strict=True)]

    def learn() -> None:
        for row, label in rows:
            model.learn_one(row, label)

    return learn


def leave_one_out(scale: float, repeats: int) -> None:
    """Exact leave-one-out of 100,000 rows against one prediction of them; of 5,000 against PSIS with 1,000 draws."""
    import arviz as az

    X, y = clouds(int(100_000 * scale), 32, 3)
    model = GaussianDiscriminantAnalysis().fit(X, y)
    title = f"exact leave-one-out, {X.shape[0]} x 32"
    own = {"own predict_log_proba": lambda: model.predict_log_proba(X)}
    compare(title, own, lambda: model.loo(X, y), repeats)
    few, labels = X[:5000], y[:5000]
    model.fit(few, labels)
    draws = model.to_arviz(few, labels, n_draws=250)  # their log likelihoods are computed beforehand
    psis = {"ArviZ loo, 1000 draws": lambda: az.loo(draws, var_name="joint")}
    compare("exact leave-one-out, 5000 x 32", psis, lambda: model.loo(few, labels), min(repeats, 3))


WORKLOADS = {"small": small, "dense": dense, "text": text, "loo": leave_one_out}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(WORKLOADS), help="comma-separated: " + ", ".join(WORKLOADS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", help="a file for the numbers")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of peers
    found = [name for name in PACKAGES if find_spec("sklearn" if name == "scikit-learn" else name)]
    packages = {"bayesgen": __version__, **{name: version(name) for name in found}}
    machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "processor": platform.machine(), **packages}
    print(machine)
    print(f"{'workload':<52} {'peer':<26} {'peer':>12} {'ours':>12}   {'ratio':>8}   memory")
    for name in args.only.split(","):
        WORKLOADS[name](args.scale, args.repeats)
    if args.json:
        with open(args.json, "w") as stream:
            json.dump({"machine": machine, "scale": args.scale, "results": RESULTS}, stream, indent=1)


if __name__ == "__main__":
    main()
