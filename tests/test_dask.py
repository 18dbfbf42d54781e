"""Dask arrays and data frames: statistics of blocks, joined; predictions block by block."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, StratifiedKFold

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    NUTSOptions,
    PoissonNB,
    compare,
    compare_smoothing,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N = 200


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """X and y; the class 2 is in the last block only."""
    y = np.where(np.arange(N) < 170, rng.integers(0, 2, N), 2)
    return rng.normal(size=(N, 4)) + y[:, None] + 100.0, y


@pytest.fixture
def frame(rows: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> pd.DataFrame:
    X, y = rows
    kinds = np.array(["p", "q", "r"])[np.minimum(rng.integers(0, 3, N), 1 + (y == 2))]
    return pd.DataFrame(X, columns=list("abcd")).assign(kind=kinds, y=np.array(["u", "v", "w"])[y], weight=1.5)


def assert_same(whole: Any, model: Any, X: Any) -> None:
    assert_array_equal(whole.classes_, model.classes_)
    assert_allclose(whole.log_evidence_, model.log_evidence_, rtol=1e-12)
    assert_allclose(whole.predict_joint_log_proba(X), model.predict_joint_log_proba(X), rtol=1e-10)


@pytest.mark.parametrize("make", [GaussianNB, GaussianDiscriminantAnalysis, PoissonNB, CategoricalNB, MixedNB])
def test_arrays(make: Any, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    X = np.floor(X) if make in (PoissonNB, CategoricalNB) else X
    w = np.arange(N) % 3
    whole = make().fit(X, y, w)
    blocks = da.from_array(X, chunks=(30, 3))  # columns are cut as well
    assert_same(whole, make().fit(blocks, da.from_array(y, chunks=70), da.from_array(w, chunks=30)), X)
    assert_same(whole, make().fit(blocks, y, w), X)  # labels in memory are cut to match
    assert_same(make().fit(X, y), make().fit(blocks, y, 1.0), X)


def test_predictions_are_lazy_and_of_known_shape(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    model = GaussianNB().fit(X, np.array(["u", "v", "w"])[y])
    blocks = da.from_array(X, chunks=(64, 4))
    for method in ("predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function"):
        lazy = getattr(model, method)(blocks)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == (N, 3)
        assert lazy.chunks == ((64, 64, 64, 8), (3,))
        assert lazy.dtype == float
        assert_array_equal(lazy.compute(), getattr(model, method)(X))
    assert_array_equal(model.score_samples(blocks).compute(), model.score_samples(X))
    lazy = model.predict(blocks)
    assert (lazy.shape, lazy.dtype) == ((N,), np.dtype("<U1"))
    prior = [0.8, 0.1, 0.1]
    assert_array_equal(model.predict(blocks, class_prior=prior).compute(), model.predict(X, prior))
    proba, before = model.predict_proba(blocks), model.predict_proba(X)
    two = model.fit(X[:170], y[:170])  # what was asked for does not change
    assert_array_equal(proba.compute(), before)
    assert two.decision_function(blocks).shape == (N,)
    assert_array_equal(two.decision_function(blocks).compute(), two.decision_function(X))
    assert two.score(blocks, da.from_array(y, chunks=64)) == pytest.approx(two.score(X, y))
    assert two.score(blocks, y, np.arange(N)) == pytest.approx(two.score(X, y, np.arange(N)))


def test_frames_with_empty_partitions(frame: pd.DataFrame) -> None:
    frames = dd.from_pandas(frame, npartitions=5)
    frames = dd.concat([frames[frames.a > 1e9], frames[frames.a > 0]], interleave_partitions=True)
    frames = frames[frames.a > 0]
    X, names = frame.drop(columns=["y", "weight"]), ["a", "b", "c", "d", "kind"]
    for make, columns in ((GaussianNB, names[:4]), (MixedNB, names), (CategoricalNB, ["kind"])):
        whole = make().fit(X[columns], frame["y"], frame["weight"])
        model = make().fit(frames[columns], frames["y"], frames["weight"])
        assert model.feature_names_in_.tolist() == columns
        assert_same(whole, model, X[columns])
        lazy = model.predict_proba(frames[columns])
        assert np.isnan(lazy.shape[0])
        assert lazy.shape[1:] == (3,)
        assert_array_equal(lazy.compute(), model.predict_proba(X[columns]))
        assert_array_equal(model.predict(frames[columns]).compute(), whole.predict(X[columns]))
        assert model.score(frames[columns], frames["y"]) == pytest.approx(whole.score(X[columns], frame["y"]))
    assert model.categories_[0].tolist() == ["p", "q", "r"]


def test_sparse_blocks(rng: np.random.Generator) -> None:
    counts, y = rng.poisson(0.5, size=(N, 30)), rng.integers(0, 2, N)
    X = sp.csr_array(counts)
    blocks = da.from_array(counts, chunks=(60, 30)).map_blocks(sp.csr_array)
    for make in (MultinomialNB, BernoulliNB, PoissonNB):
        model = make().fit(blocks, da.from_array(y, chunks=60))
        assert_same(make().fit(X, y), model, X)
        assert_allclose(model.predict_proba(blocks).compute(), model.predict_proba(X), rtol=1e-12)


def test_a_prior_for_each_class(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    prior = NormalInverseWishart(mean=np.full((3, 4), 100.0), mean_precision=1.0, df=9.0, scale=np.eye(4))
    make = lambda: GaussianDiscriminantAnalysis(prior=prior, class_prior=[0.5, 0.2, 0.3])  # noqa: E731
    assert_same(make().fit(X, y), make().fit(da.from_array(X, chunks=(40, 4)), y), X)


def test_partial_fit_of_blocks(frame: pd.DataFrame) -> None:
    X, y = frame[["a", "kind"]], frame["y"]
    model = MixedNB().partial_fit(dd.from_pandas(X[:90], npartitions=3), dd.from_pandas(y[:90], 3), ["u", "v", "w"])
    model.partial_fit(X[90:120], y[90:120])
    model.partial_fit(dd.from_pandas(X[120:], npartitions=2), dd.from_pandas(y[120:], npartitions=2))
    assert_same(MixedNB().fit(X, y), model, X)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        MixedNB().partial_fit(dd.from_pandas(X, npartitions=3), dd.from_pandas(y, npartitions=3))


def test_errors_name_the_block_and_change_nothing(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    model = GaussianNB().fit(X, y)
    before = model._learned
    broken = X.copy()
    broken[150, 2] = np.inf
    blocks, labels = da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=40)
    frames = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    cases: list[tuple[Any, Any, str]] = [
        (da.from_array(broken, chunks=(40, 4)), labels, "block 3: Input X contains infinity: column 2"),
        (blocks, labels[:-1], "y has 199 entries; X has 200 rows"),
        (blocks, None, "requires y"),
        (X, labels, "y is a dask collection, but X is a ndarray"),
        (blocks[:, 0], labels, "Expected 2D array"),
        (frames, y, "lengths of the blocks of X are not known"),
        (frames, labels, "y has 5 partitions; X has 4"),
        (blocks, labels + 0.5, r"block \d: y must hold class labels"),
        (blocks[:0], labels[:0], "no rows"),
    ]
    for X_, y_, message in cases:
        with pytest.raises(ValueError, match=message):
            model.fit(X_, y_)
        assert model._learned is before
    with pytest.raises(ValueError, match="X has 3 features, but GaussianNB is expecting 4"):
        model.predict(blocks[:, :3])
    with pytest.raises(ValueError, match="zero for every row"):
        model.fit(blocks, labels, da.zeros(N, chunks=40))


def test_what_needs_all_rows(rows: tuple[np.ndarray, np.ndarray]) -> None:
    blocks, y = da.from_array(rows[0], chunks=(40, 4)), rows[1]
    with pytest.raises(ValueError, match=r"dask.*tune_likelihood_power"):
        GaussianNB(likelihood_power="loo").fit(blocks, y)
    with pytest.raises(ValueError, match="likelihood='rows' needs the rows themselves"):
        GaussianNB(inference=NUTSOptions(20, 20, 1, likelihood="rows")).fit(blocks, y).predict(blocks).compute()
    with pytest.raises(ValueError, match="not fitted"):
        GaussianNB().predict(blocks)
    model = GaussianNB().fit(blocks, y)
    for method in (model.sample_proba, lambda x: model.loo(x, y), lambda x: model.forget(x, y), model.log_odds):
        with pytest.raises(ValueError, match="X is a dask Array, and this method takes rows in memory"):
            method(blocks)


def test_rows_are_never_together(rows: tuple[np.ndarray, np.ndarray]) -> None:
    """No task sees more than one block; what leaves a block is its statistics."""
    from dask.callbacks import Callback

    class Results(Callback):
        seen: list[Any] = []

        def _posttask(self, key: Any, result: Any, *rest: Any) -> None:
            self.seen.append(result)

    X, y = rows
    with Results(), dask.config.set(scheduler="sync"):
        GaussianNB().fit(da.from_array(X, chunks=(20, 4)), da.from_array(y, chunks=20))
    arrays = [r for r in Results.seen if isinstance(r, np.ndarray) and r.ndim == 2]
    assert Results.seen
    assert all(len(a) <= 20 or a is X for a in arrays)


# -------------------------------------------------------------------------------------------- comparison

SCORES = ("accuracy", "log_loss", "brier", "calibration_error", "impossible_rows")


def assert_same_tables(whole: pd.DataFrame, blocks: pd.DataFrame) -> None:
    """The numbers of a comparison, which may differ by rounding."""
    assert blocks.index.tolist() == whole.index.tolist()
    assert blocks.columns.tolist() == whole.columns.tolist()
    assert blocks["measure"].tolist() == whole["measure"].tolist()
    assert blocks["prior_uses_data"].tolist() == whole["prior_uses_data"].tolist()
    assert blocks.attrs["notes"] == whole.attrs["notes"]
    numbers = [c for c in whole if c not in ("measure", "prior_uses_data", "seconds")]
    assert_allclose(blocks[numbers].astype(float), whole[numbers].astype(float), rtol=1e-10, atol=1e-10)


# Priors that do not grow with the data: an outlier holds all but a millionth of a variance.
NIG = NormalInverseGamma(mean=100.0, mean_precision=0.01, shape=2.0, scale=1.0)
NIW = NormalInverseWishart(mean=np.full(4, 100.0), mean_precision=0.01, df=8.0, scale=np.eye(4))
GAUSSIANS = {
    "nb": GaussianNB(prior=NIG),
    "nb, shared": GaussianNB(variance="shared", prior=NIG),
    "gda": GaussianDiscriminantAnalysis(prior=NIW),
    "qda": GaussianDiscriminantAnalysis(covariance="per_class", prior=NIW),
    "default": GaussianNB(inference="mean"),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("far", [0.0, 1e7], ids=["near", "outliers"])
def test_compare_is_that_of_all_rows(rows: tuple[np.ndarray, np.ndarray], far: float, weighted: bool) -> None:
    """A row so far out that it holds all of a variance is left out of the sums of its block and all others."""
    X, y = rows
    X[50, 1] += far
    X[195, 3] += 10 * far  # the one block with its class
    w = (np.arange(N) % 3).astype(float) if weighted else None
    test = X[::3] + 0.3, y[::3]
    whole = compare(GAUSSIANS, X, y, test=test, sample_weight=w)
    blocks, labels = da.from_array(X, chunks=(30, 3)), da.from_array(y, chunks=30)
    cut = tuple(da.from_array(v, chunks=(9, *v.shape[1:])) for v in test)
    table = compare(GAUSSIANS, blocks, labels, test=cut, sample_weight=w)
    assert_same_tables(whole, table)
    assert table.attrs["loo"] == {}
    assert_same_tables(whole, compare(GAUSSIANS, blocks, y, test=test, sample_weight=w))  # held-out rows in memory
    one = compare(GAUSSIANS, da.from_array(X, chunks=-1), labels, sample_weight=w)
    assert_same_tables(whole.drop(columns=list(SCORES)), one)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_cross_validation_of_blocks_is_that_of_all_rows(rows: tuple[np.ndarray, np.ndarray], weighted: bool) -> None:
    """The same stratified folds, though no block knows the labels of the others."""
    X, y = rows
    labels = np.array(["w", "u", "v"])[y]
    labels[::13] = "a"  # comes first in no order but that of the alphabet
    labels[[30, 199]] = "z"  # fewer than folds
    w = (np.arange(N) % 3).astype(float) if weighted else None
    with pytest.warns(UserWarning, match="least populated class"):
        whole = compare(GAUSSIANS, X, labels, cv=5, sample_weight=w)
    blocks = da.from_array(X, chunks=((1, 59, 80, 60), (4,)))
    with pytest.warns(UserWarning, match="least populated class"):
        table = compare(GAUSSIANS, blocks, labels, cv=5, sample_weight=w)
    assert_same_tables(whole, table)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(2, 5), st.data())
def test_folds_are_those_of_scikit_learn(labels: list[str], n_splits: int, drawn: st.DataObject) -> None:
    from bayesgen.comparison_blocks import Folds, _count_labels

    y = np.array(labels)
    cuts = sorted(drawn.draw(st.lists(st.integers(0, len(y)), max_size=3)))
    parts = [part for part in np.split(y, cuts) if len(part)]
    counted = [_count_labels(i, part) for i, part in enumerate(parts)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            splits = list(StratifiedKFold(n_splits).split(y, y))
        except ValueError:
            with pytest.raises(ValueError, match="more than the number of rows of each class"):
                Folds.of(n_splits, *map(list, zip(*counted, strict=True)))
            return
        folds = Folds.of(n_splits, *map(list, zip(*counted, strict=True)))
    found = np.concatenate([folds.of_rows(i, part) for i, part in enumerate(parts)])
    for fold, (_, test) in enumerate(splits):
        assert_array_equal(np.flatnonzero(found == fold), test)


def test_compare_of_sparse_blocks_and_frames(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    counts, y = rng.poisson(0.5, size=(N, 30)), rng.integers(0, 2, N)
    counts[:, 0] = np.where(rng.random(N) < 0.02, 1, 0)  # words that a maximum-likelihood model has not seen in a class
    words = {
        "multinomial": MultinomialNB(),
        "sparse": MultinomialNB(alpha=0.1, multinomial_coefficient=True),
        "evidence": MultinomialNB(alpha="evidence"),
        "mle": MultinomialNB(inference="mle"),
        "bernoulli": BernoulliNB(),
        "poisson": PoissonNB(),
    }
    blocks = da.from_array(counts, chunks=(60, 30)).map_blocks(sp.csr_array)
    whole = compare(words, sp.csr_array(counts), y, test=(sp.csr_array(counts[:50] + 1), y[:50]))
    assert_same_tables(whole, compare(words, blocks, y, test=(sp.csr_array(counts[:50] + 1), y[:50])))
    two = {name: words[name] for name in ("sparse", "mle")}
    assert_same_tables(compare(two, sp.csr_array(counts), y, cv=3), compare(two, blocks, y, cv=3))

    frames = dd.from_pandas(frame, npartitions=5)
    frames = dd.concat([frames[frames.a > 1e9], frames[frames.a > 0]], interleave_partitions=True)
    frames = frames[frames.a > 0]
    names = ["a", "b", "c", "d", "kind"]
    blocks = [("numbers", GaussianDiscriminantAnalysis(), names[:4]), ("kind", CategoricalNB(), ["kind"])]
    models = {"independent": MixedNB(), "correlated": MixedNB(blocks=blocks)}
    X = frame[names]
    whole = compare(models, X, frame["y"], test=(X, frame["y"]), sample_weight=frame["weight"])
    table = compare(
        models, frames[names], frames["y"], test=(frames[names], frames["y"]), sample_weight=frames["weight"]
    )
    assert_same_tables(whole, table)
    del models["correlated"]
    assert_same_tables(compare(models, X, frame["y"], cv=2), compare(models, frames[names], frames["y"], cv=2))


def test_compare_says_what_there_is_not(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    labels = np.where(np.arange(N) == 199, 3, y)  # a class of one row, in one block
    models = {"flat": GaussianNB(prior="reference", variance="shared"), "known": GaussianNB()}
    blocks = da.from_array(X, chunks=(40, 4))
    whole = compare(models, X, labels)
    assert "1 of 200 rows have no density given the others" in whole.attrs["notes"]["flat"]
    assert_same_tables(whole, compare(models, blocks, labels))
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (blocks, y, {"cv": KFold(5)}, r"cv must be a number of folds.*got KFold.*test=\(X, y\)"),
        (blocks, y, {"cv": 1}, "n_splits=2 or more"),
        (blocks, y, {"cv": 300}, "cv=300 is more than the number of rows of each class"),
        (blocks, y, {"cv": 3, "test": (blocks, y)}, "give cv or test, not both"),
        (X, y, {"test": (blocks, y)}, "test is a dask collection, but X is in memory"),
        (blocks, y, {"test": blocks}, r"test must be the pair \(X, y\)"),
        (blocks, y, {"test": (blocks[:0], y[:0])}, "test has no rows"),
        (blocks, y, {"test": (blocks[:, :3], y)}, "X has 3 features"),
        (blocks, y, {"test": (blocks, np.array(list("ab") * 100))}, "labels of different types"),
        (X, da.from_array(y, chunks=40), {}, "y is a dask collection, but X is a ndarray"),
    ]
    for X_, y_, options, message in cases:
        with pytest.raises(ValueError, match=message):
            compare({"one": GaussianNB()}, X_, y_, **options)
    with pytest.raises(ValueError, match=r"estimators\['other'\]: DummyClassifier does not learn from a dask"):
        compare({"other": DummyClassifier()}, blocks, y)
    broken = X.copy()
    broken[150, 2] = np.inf
    with pytest.raises(ValueError, match=r"estimators\['one'\] cannot be fitted: block 3: Input X contains infinity"):
        compare({"one": GaussianNB()}, da.from_array(broken, chunks=(40, 4)), y)
    with pytest.raises(ValueError, match="X is a dask Array"):
        compare_smoothing(abs(blocks), y)


def test_order_statistics_are_those_of_sorting(rng: np.random.Generator) -> None:
    from bayesgen.comparison_blocks import order_statistics

    values = np.round(rng.random(1000), 2)  # many are equal
    parts = [np.sort(part).view(np.uint64) for part in np.array_split(values, 7)]
    ranks = np.array([0, 1, 499, 500, 998, 999])
    found = order_statistics(lambda at: sum(np.searchsorted(part, at) for part in parts), ranks)
    assert_array_equal(found.view(float), np.sort(values)[ranks])


def test_no_task_gives_back_more_than_sums() -> None:
    """Rows are made where they are used; no other task gives back more than a few kB."""
    import pickle

    from dask.callbacks import Callback

    n, d = 20_000, 8

    def load(i: int) -> np.ndarray:
        return np.random.default_rng(i).normal(size=(n, d)) + np.arange(n)[:, None] % 2

    class Sizes(Callback):
        largest, scores = 0, 0

        def _posttask(self, key: Any, result: Any, *rest: Any) -> None:
            if isinstance(result, np.ndarray) and result.shape in ((n, d), (n,)):
                return  # a block, or its labels, which the next task takes
            size = len(pickle.dumps(result))
            if type(result).__name__ == "_Scores":  # stays where it is
                type(self).scores += 1
            else:
                type(self).largest = max(self.largest, size)

    blocks = da.concatenate([da.from_delayed(dask.delayed(load)(i), (n, d), float) for i in range(4)])
    y = da.concatenate([da.from_delayed(dask.delayed(lambda: np.arange(n) % 2)(), (n,), int) for _ in range(4)])
    with Sizes(), dask.config.set(scheduler="sync"):
        compare({"nb": GaussianNB(), "gda": GaussianDiscriminantAnalysis()}, blocks, y, test=(blocks, y))
    assert Sizes.scores >= 8  # one for each model and block, seen again by tasks that use it
    assert 0 < Sizes.largest < 40_000  # 14 x 256 counts; a block is 1.2 MB


def test_dask_is_imported_for_dask_input_only() -> None:
    code = (
        "import sys, numpy as np, bayesgen\n"
        "m = bayesgen.GaussianNB().fit(np.eye(4), [0, 0, 1, 1]); m.predict(np.eye(4))\n"
        "m.fit_batches([(np.eye(4), [0, 0, 1, 1])])\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('dask', 'distributed')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_killed_in_the_middle_costs_a_retry(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path, data: Callable[[str], pd.DataFrame]
) -> None:
    distributed = pytest.importorskip("distributed")
    X, y = rows
    flag = str(tmp_path / "killed")

    def load(i: int) -> np.ndarray:
        import os
        import time

        if i == 3 and not os.path.exists(flag):
            time.sleep(1.0)  # the other blocks are done or under way
            with open(flag, "w"):
                pass
            os._exit(1)  # the process is gone, as if killed
        return X[20 * i : 20 * i + 20]

    blocks = da.concatenate([da.from_delayed(dask.delayed(load)(i), (20, 4), float) for i in range(10)])
    penguins = data("penguins")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        model = GaussianDiscriminantAnalysis().fit(blocks, da.from_array(y, chunks=20))
        assert Path(flag).exists()
        assert_same(GaussianDiscriminantAnalysis().fit(X, y), model, X)
        assert_array_equal(model.predict(blocks).compute(), model.predict(X))
        frames = dd.from_pandas(penguins, npartitions=3)
        table = MixedNB(blocks="auto").fit(frames.drop(columns="species"), frames["species"])
        features = penguins.drop(columns="species")
        assert_same(MixedNB().fit(features, penguins["species"]), table, features)
        assert table.score(frames.drop(columns="species"), frames["species"]) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_killed_in_the_middle_of_a_comparison(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    X, y = rows
    X[70, 1] += 1e8  # a row whose leave-one-out needs the other blocks
    calls = str(tmp_path / "calls")

    def load(i: int) -> np.ndarray:
        import os
        import time

        if i == 3:
            with open(calls, "ab") as file:
                file.write(b".")
            if os.path.getsize(calls) == 6:  # five models are fitted: this is leave-one-out
                time.sleep(1.0)  # the other blocks are done or under way
                os._exit(1)  # the process is gone, as if killed
        return X[20 * i : 20 * i + 20]

    blocks = da.concatenate([da.from_delayed(dask.delayed(load)(i), (20, 4), float) for i in range(10)])
    labels, test = da.from_array(y, chunks=20), (X[::3] + 0.3, y[::3])
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        cut = tuple(da.from_array(v, chunks=(9, *v.shape[1:])) for v in test)
        table = compare(GAUSSIANS, blocks, labels, test=cut)
        folds = compare(GAUSSIANS, blocks, labels, cv=3)
    assert Path(calls).stat().st_size >= 7  # the sixth was lost
    assert_same_tables(compare(GAUSSIANS, X, y, test=test), table)
    assert_same_tables(compare(GAUSSIANS, X, y, cv=3), folds)
