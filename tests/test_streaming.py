"""Batches, Parquet, memory maps, shards of JAX arrays: one fit on all rows, whatever the parts."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    NormalInverseWishart,
    NUTSOptions,
    PoissonNB,
)
from bayesgen.estimators import _parts

N = 240
CUTS = {
    "halves": [0, 120, 240],
    "rows of the first, the rest": [*range(8), 240],
    "with empty batches": [0, 0, 3, 3, 100, 240, 240],
}
Cut = Callable[[Any, Any], Iterator[tuple[Any, Any]]]


def table(rng: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """X in the form of each model, and labels of which the last comes late."""
    y = np.array(["a", "b"])[rng.integers(0, 2, N)]
    y = np.where((np.arange(N) > 130) & (rng.random(N) < 0.3), "c", y)
    shift = (y[:, None] == "c") * 2.0 + (y[:, None] == "b")
    numbers = rng.normal(size=(N, 3)) + shift
    counts = rng.poisson(1.0 + shift, size=(N, 3))
    missing = np.where(rng.random((N, 3)) < 0.1, np.nan, numbers)
    texts = np.array(["p", "q", "r", "s"])[np.minimum(counts, 3)].astype(object)
    frame = pd.DataFrame(numbers, columns=["u", "v", "w"]).assign(kind=texts[:, 0], flag=counts[:, 1] > 1)
    return {
        "numbers": numbers,
        "far": numbers + 1e8,
        "missing": missing,
        "counts": counts,
        "sparse": sp.csr_array(counts.astype(float)),
        "texts": texts,
        "frame": frame,
    }, y


MODELS: list[tuple[Any, str]] = [
    (GaussianNB(), "missing"),
    (GaussianNB(variance="shared"), "far"),
    (GaussianNB(inference="mle"), "numbers"),
    (GaussianDiscriminantAnalysis(), "far"),
    (GaussianDiscriminantAnalysis(covariance="per_class"), "numbers"),
    (BernoulliNB(), "sparse"),
    (MultinomialNB(inference="mean"), "sparse"),
    (CategoricalNB(), "texts"),
    (CategoricalNB(), "counts"),
    (PoissonNB(), "counts"),
    (MixedNB(), "frame"),
    (GenerativeClassifier(family="gaussian"), "numbers"),
]


def part(x: Any, i: int, j: int) -> Any:
    return x.iloc[i:j] if hasattr(x, "iloc") else x[i:j]


def batches(cut: list[int], *arrays: Any) -> Iterator[tuple[Any, ...]]:
    for i, j in pairwise(cut):
        yield tuple(part(x, i, j) for x in arrays)


def assert_same(a: Any, b: Any, X: Any) -> None:
    """Two estimators that learned the same."""
    assert_array_equal(a.classes_, b.classes_)
    assert_allclose(a.class_count_, b.class_count_, rtol=1e-14)
    if a.inference != "mle":
        assert_allclose(a.log_evidence_, b.log_evidence_, rtol=1e-12)
    assert_allclose(a.predict_joint_log_proba(X), b.predict_joint_log_proba(X), rtol=1e-10)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize(("model", "form"), MODELS, ids=lambda v: v if isinstance(v, str) else repr(v)[:40])
def test_batches_are_one_fit(model: Any, form: str, cut: list[int], rng: np.random.Generator) -> None:
    forms, y = table(rng)
    whole = type(model)(**model.get_params(deep=False)).fit(forms[form], y)
    stream = type(model)(**model.get_params(deep=False)).fit_batches(batches(cut, forms[form], y))
    assert_same(whole, stream, forms[form])


def test_moments_of_one_row_at_a_time_against_exact_sums(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(300, 2)) + 1e8, np.zeros(300, dtype=int)
    model = GaussianNB(inference="mle").fit_batches((X[i : i + 1], y[i : i + 1]) for i in range(300))
    with mpmath.workdps(50):
        for j in range(2):
            values = [mpmath.mpf(v) for v in X[:, j].tolist()]
            mean = mpmath.fsum(values) / 300
            variance = mpmath.fsum((v - mean) ** 2 for v in values) / 300
            assert abs(model.theta_[0, j] / mean - 1) < 1e-15
            assert abs(model.var_[0, j] / variance - 1) < 1e-12


def test_weights_of_batches_and_a_batch_of_no_weight(rng: np.random.Generator) -> None:
    forms, y = table(rng)
    w = rng.integers(0, 3, N).astype(float)
    w[100:140] = 0.0
    for model, form in ((GaussianDiscriminantAnalysis, "numbers"), (CategoricalNB, "texts"), (MixedNB, "frame")):
        X = forms[form]
        stream = model().fit_batches(batches([0, 50, 100, 140, N], X, y, w))
        assert_same(model().fit(X, y, w), stream, X)
    with pytest.raises(ValueError, match="zero for every row"):
        GaussianNB().fit_batches(batches([0, 5, 9], forms["numbers"], y, 0 * w))


def test_levels_and_classes_grow(rng: np.random.Generator) -> None:
    model = CategoricalNB().fit_batches([([["p"]], [0]), ([["z"]], [2]), ([["a"]], [1]), ([["z"]], [0])])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.categories_[0].tolist() == ["a", "p", "z"]
    assert model.category_count_[0].tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1]]


def test_a_prior_for_each_class_does_not_need_all_of_them_in_a_batch(rng: np.random.Generator) -> None:
    forms, y = table(rng)
    prior = NormalInverseWishart(mean=rng.normal(size=(3, 3)), mean_precision=0.5, df=7.0, scale=np.eye(3))
    model = GaussianDiscriminantAnalysis(prior=prior, class_prior=[0.2, 0.3, 0.5])
    stream = GaussianDiscriminantAnalysis(prior=prior, class_prior=[0.2, 0.3, 0.5])
    X = forms["numbers"]
    assert_same(model.fit(X, y), stream.fit_batches(batches([0, 60, 200, N], X, y)), X)
    blocks = [("n", model, [0, 1, 2])]
    mixed = MixedNB(blocks=blocks).fit_batches(batches([0, 60, 200, N], X, y))
    assert_same(MixedNB(blocks=blocks).fit(X, y), mixed, X)
    with pytest.raises(ValueError, match=r"prior\.mean has shape"):  # at the first batch, not after the last
        stream.fit_batches(batches([0, 60, 200, N], X, y), classes=["a", "b"])


def test_classes_given() -> None:
    model = GaussianNB().fit_batches([([[1.0], [2.0]], [0, 0])], classes=[1, 0])
    assert model.classes_.tolist() == [0, 1]
    assert model.class_count_.tolist() == [2, 0]
    with pytest.raises(ValueError, match="batch 1: y contains the label 5, which is not among"):
        model.fit_batches([([[1.0]], [0]), ([[2.0]], [5])], classes=[0, 1])
    with pytest.raises(ValueError, match="classes is empty"):
        model.fit_batches([([[1.0]], [0])], classes=[])


def test_a_failure_says_where_and_changes_nothing() -> None:
    good = ([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    model = GaussianNB().fit(*good)
    before = model._learned
    bad: list[tuple[Any, str]] = [
        (([[1.0]], [0]), "batch 1: X has 1 features, but GaussianNB is expecting 2"),
        (([[1.0, np.inf]], [0]), "batch 1: Input X contains infinity: column 1"),
        (([[1.0, 2.0]], ["x"]), "batch 1: .*labels of different types"),
        (([[1.0, 2.0]], [0.5]), "batch 1: y must hold class labels.*Unknown label type: continuous"),
        (([[1.0, 2.0]], [0, 1]), "batch 1: X has 1 rows and y 2 labels"),
        (([[1.0, 2.0]], [0], [-1.0]), "batch 1: sample_weight must be finite and not negative; the weight of row 0"),
        ([[1.0, 2.0]], r"batch 1: batches must be an iterable of \(X, y\)"),
    ]
    for batch, message in bad:
        with pytest.raises(ValueError, match=message):
            model.fit_batches([good, batch])
        assert model._learned is before

    def broken() -> Iterator[Any]:
        yield good
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone") as caught:
        model.fit_batches(broken())
    assert caught.value.__notes__ == ["while batch 1 was read"]
    assert model._learned is before


def test_an_interrupt_changes_nothing_and_ends_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    good = ([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    model = GaussianNB().fit(*good)
    before = model._learned
    ended = []

    def interrupted(error: BaseException) -> Iterator[Any]:
        try:
            yield good
            yield good
            raise error
        finally:
            ended.append(type(error))

    for error in (KeyboardInterrupt(), OSError("the disk is gone")):
        with pytest.raises(type(error)):
            model.fit_batches(interrupted(error), progress_bar=True)
        assert model._learned is before
        assert "2batch" in capsys.readouterr().err
    assert ended == [KeyboardInterrupt, OSError]


def test_what_is_no_stream() -> None:
    X = np.ones((4, 2))
    for source in (X, pd.DataFrame(X), 3, {"X": X}):
        with pytest.raises(ValueError, match="batches must be an iterable"):
            GaussianNB().fit_batches(source)
    for source in ([], [(X[:0], [])]):
        with pytest.raises(ValueError, match="no rows"):
            GaussianNB().fit_batches(source)
    with pytest.raises(ValueError, match="target is missing"):
        GaussianNB().fit_batches("rows.parquet")
    with pytest.raises(ValueError, match="pass target= as well"):
        GaussianNB().fit_batches([(X, [0, 1, 0, 1])], columns=["a"])
    with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet"):
        GaussianNB().fit_batches("nowhere.parquet", target="y")
    with pytest.raises(ValueError, match="expected a table; got a tuple"):
        GaussianNB().fit_batches([(X, [0, 1, 0, 1])], target="y")


def test_what_needs_all_rows(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"likelihood_power='loo'.*fit_batches.*tune_likelihood_power"):
        GaussianNB(likelihood_power="loo").fit_batches([(X, y)])
    rows = GaussianNB(inference=NUTSOptions(20, 20, 1, likelihood="rows"))
    with pytest.raises(ValueError, match="likelihood='rows' needs the rows themselves"):
        rows.fit_batches([(X, y)]).predict(X)
    with pytest.raises(ValueError, match=r"singular|variance"):  # as fit: nothing could be predicted
        GaussianNB(inference="mle").fit_batches([([[1.0], [2.0]], [0, 1])])


# ------------------------------------------------------------------------------------------- tables


def frame_of(rng: np.random.Generator) -> pd.DataFrame:
    forms, y = table(rng)
    return forms["frame"].assign(label=y, weight=rng.integers(0, 3, N).astype(float))


def sources(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same rows in every form that has a name for its columns."""
    file = folder / "rows.parquet"
    frame.to_parquet(file, row_group_size=70)
    parts = folder / "parts"
    parts.mkdir()
    for i, (j, k) in enumerate(zip([0, 90, 200], [90, 200, N], strict=True)):
        frame.iloc[j:k].to_parquet(parts / f"{i}.parquet", row_group_size=50)
    arrow = pa.Table.from_pandas(frame)
    pa.ipc.new_file(folder / "rows.arrow", arrow.schema).close()
    with pa.ipc.new_file(folder / "rows.arrow", arrow.schema) as writer:
        writer.write_table(arrow, max_chunksize=64)
    return {
        "path": str(file),
        "folder": parts,
        "ParquetFile": pq.ParquetFile(file),
        "Dataset": ds.dataset(parts),
        "filtered Dataset": ds.dataset(parts).filter(ds.field("weight") >= 0),
        "Dataset of Arrow files": ds.dataset(folder / "rows.arrow", format="ipc"),
        "Table": arrow,
        "RecordBatchReader": arrow.to_reader(max_chunksize=50),
        "record batches": arrow.to_batches(max_chunksize=33),
        "chunks": [frame.iloc[:100], frame.iloc[100:]],
        "polars": [pl.from_pandas(frame.iloc[:100]), pl.from_pandas(frame.iloc[100:])],
    }


def test_tables_of_every_kind(rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayesgen.estimators._batches.PIECE_CELLS", 200)  # several slices of a row group
    frame = frame_of(rng)
    X = frame.drop(columns=["label", "weight"])
    whole = MixedNB().fit(X, frame["label"], frame["weight"])
    numbers = GaussianNB().fit(frame[["w", "u"]], frame["label"])
    for name, source in sources(frame, tmp_path).items():
        if name != "RecordBatchReader":  # it can be read once
            stream = GaussianNB().fit_batches(source, target="label", columns=["w", "u"])
            assert stream.feature_names_in_.tolist() == ["w", "u"], name
            assert_same(numbers, stream, frame[["w", "u"]])
        stream = MixedNB().fit_batches(source, target="label", sample_weight="weight")
        assert stream.feature_names_in_.tolist() == ["u", "v", "w", "kind", "flag"], name
        assert_same(whole, stream, X)


def test_pieces_of_a_row_group_are_one_fit_and_their_errors_are_those_of_the_batch(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayesgen.estimators._batches.PIECE_CELLS", 40)  # ten rows
    frame = frame_of(rng)[["u", "v", "w", "label"]]
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    stream = GaussianDiscriminantAnalysis().fit_batches(tmp_path / "rows.parquet", target="label")
    whole = GaussianDiscriminantAnalysis().fit(frame[["u", "v", "w"]], frame["label"])
    assert_same(whole, stream, frame[["u", "v", "w"]])
    with np.errstate(all="raise"):  # of the caller, in the threads too
        GaussianNB().fit_batches(tmp_path / "rows.parquet", target="label")
    frame.loc[155, "v"] = np.inf
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    before = stream._learned
    with pytest.raises(ValueError, match="batch 1: Input X contains infinity: column 'v'"):
        stream.fit_batches(tmp_path / "rows.parquet", target="label")
    assert stream._learned is before


def test_only_the_columns_used_are_read(rng: np.random.Generator, tmp_path: Path) -> None:
    frame = frame_of(rng)
    frame.to_parquet(tmp_path / "rows.parquet")
    seen = []

    class Watched:
        def __init__(self, file: pq.ParquetFile) -> None:
            self.schema_arrow, self.num_row_groups, self.file = file.schema_arrow, file.num_row_groups, file

        def read_row_group(self, i: int, columns: list[str]) -> pa.Table:
            seen.append(columns)
            return self.file.read_row_group(i, columns=columns)

    Watched.__module__ = "pyarrow.parquet"
    GaussianNB().fit_batches(Watched(pq.ParquetFile(tmp_path / "rows.parquet")), target="label", columns=["u"])
    assert seen == [["u", "label"]]


def test_an_index_of_pandas_is_no_column(rng: np.random.Generator, tmp_path: Path) -> None:
    frame = frame_of(rng)[["u", "v", "label"]].set_index(pd.Index(rng.normal(size=N), name="time"))
    frame.to_parquet(tmp_path / "rows.parquet")
    stream = GaussianNB().fit_batches(tmp_path / "rows.parquet", target="label")
    assert_same(GaussianNB().fit(frame[["u", "v"]], frame["label"]), stream, frame[["u", "v"]])


def test_missing_numbers_of_arrow_are_missing() -> None:
    columns = {"u": [1.0, None, 3.0, 5.0], "v": [1, None, 2, 3], "y": ["a", "a", "b", "b"]}
    stream = GaussianNB().fit_batches([pa.table(columns)], target="y")
    whole = GaussianNB().fit([[1.0, 1.0], [np.nan, np.nan], [3.0, 2.0], [5.0, 3.0]], columns["y"])
    assert_allclose(stream.statistics_.features.weight, whole.statistics_.features.weight)
    one = GaussianNB().fit_batches([pa.table(columns)], target="y", columns=["u"])
    assert_allclose(one.statistics_.features.weight[:, 0], [1, 2])


def test_errors_of_tables_name_the_column(rng: np.random.Generator, tmp_path: Path) -> None:
    frame = frame_of(rng)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    path = tmp_path / "rows.parquet"
    for options, message in (
        ({"target": "nothing"}, "target names the column 'nothing'; the table has"),
        ({"target": "label", "sample_weight": "z"}, "sample_weight names the column 'z'"),
        ({"target": "label", "columns": ["u", "z"]}, "columns names the column 'z'"),
        ({"target": "label", "columns": ["u", "label"]}, r"columns names \['label'\], which are the target"),
        ({"target": "label"}, "batch 0: column 'kind' of X holds text"),
    ):
        with pytest.raises(ValueError, match=message):
            GaussianNB().fit_batches(path, **options)


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    days = [([[1.0], [2.0]], [0, 1]), ([[3.0], [2.0]], [1, 0])]
    GaussianNB().fit_batches(days)
    assert capsys.readouterr().err == ""  # nobody watches
    GaussianNB().fit_batches(days, progress_bar=True)
    assert "2/2" in capsys.readouterr().err


def test_memory_does_not_grow_with_the_rows(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(4000, 64)), np.arange(4000) % 3  # 2 MiB
    GaussianNB().fit_batches([(X, y)])
    tracemalloc.start()
    try:
        GaussianNB().fit_batches((X + i, y) for i in range(40))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20  # all of them are 78 MiB


def test_penguins_in_chunks(data: Callable[[str], pd.DataFrame]) -> None:
    penguins = data("penguins")
    y = penguins.pop("species")
    whole = MixedNB().fit(penguins, y)
    stream = MixedNB().fit_batches(batches([0, 100, 101, 250, len(y)], penguins, y))
    assert_same(whole, stream, penguins)


# -------------------------------------------------------------------------- memory maps and shards


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parts, "SLICE_CELLS", 60)


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize(("model", "form"), [(m, f) for m, f in MODELS if f in ("numbers", "far", "missing", "counts")])
def test_memory_map_is_one_fit(model: Any, form: str, rng: np.random.Generator, tmp_path: Path) -> None:
    forms, y = table(rng)
    np.save(tmp_path / "X.npy", forms[form])
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    w = rng.random(N)
    assert_same(model.fit(forms[form], y, w), type(model)(**model.get_params(deep=False)).fit(X, list(y), w), X)
    assert_array_equal(model.predict_proba(X), model.predict_proba(forms[form]))


@pytest.mark.usefixtures("small_slices")
def test_memory_map_in_partial_fit_and_errors(rng: np.random.Generator, tmp_path: Path) -> None:
    forms, y = table(rng)
    X = np.memmap(tmp_path / "X", np.float64, "w+", shape=(N, 3))
    X[:] = forms["numbers"]
    model = GaussianNB().partial_fit(X[:100], y[:100], classes=["a", "b", "c"]).partial_fit(X[100:], y[100:])
    assert_same(GaussianNB().fit(forms["numbers"], y), model, X)
    assert model.fit(X, y, 2.0).class_count_.sum() == 2 * N  # one weight for all
    assert GaussianNB(likelihood_power="loo").fit(X, y).likelihood_power_ > 0  # all rows together, as it must be
    X[205, 1] = np.inf
    before = model._learned
    with pytest.raises(ValueError, match="rows 200 to 220 of X: Input X contains infinity: column 1, row 5"):
        model.fit(X, y)
    assert model._learned is before
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])


SHARDS = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from bayesgen import CategoricalNB, GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB
import bayesgen.estimators._parts as parts

assert len(jax.devices()) == 4
rng = np.random.default_rng(0)
X, y = rng.normal(size=(80, 3)).astype(np.float32) + 3, rng.integers(0, 3, 80)
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
for spec in (P(("a", "b")), P("a"), P(), P("a", None)):
    sharded = jax.device_put(X, NamedSharding(mesh, spec))
    labels = jax.device_put(y, NamedSharding(mesh, P(*spec[:1])))
    found = parts.row_parts(sharded)
    assert (found is None) == (spec == P()), spec
    if found is not None:
        assert len(found) == (4 if spec == P(("a", "b")) else 2)
        np.testing.assert_array_equal(np.concatenate([np.asarray(p) for _, p in found]), X)
    for make in (GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB):
        whole = make().fit(np.abs(X), y)
        model = make().fit(jax.numpy.abs(sharded), labels)
        np.testing.assert_allclose(model.log_evidence_, whole.log_evidence_, rtol=1e-12)
        proba = model.predict_proba(jax.numpy.abs(sharded))
        np.testing.assert_allclose(proba, whole.predict_proba(np.abs(X)), rtol=1e-10)
    across = jax.device_put(X[:, :2], NamedSharding(mesh, P(None, "b")))  # columns apart: taken as a whole
    np.testing.assert_allclose(GaussianNB().fit(across, y).theta_, GaussianNB().fit(X[:, :2], y).theta_, rtol=1e-12)
codes = jax.device_put(y[:, None] % 2, NamedSharding(mesh, P("a")))
assert CategoricalNB().fit(codes, y).n_categories_.tolist() == [2]
print("as one")
"""


DEVICES = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from bayesgen import (
    BernoulliNB, GaussianDiscriminantAnalysis, GaussianNB, GenerativeClassifier, MultinomialNB, PoissonNB,
)
from bayesgen import _device

_device.HOSTS = ()  # the processors count as devices
_device.CHUNK = 64
fetched = []
getitem = _device.DeviceRows.__getitem__
_device.DeviceRows.__getitem__ = lambda self, key: fetched.append(key) or getitem(self, key)
rng = np.random.default_rng(0)
n, K = 1000, 4
y = np.where(np.arange(n) < 500, rng.integers(0, 2, n), rng.integers(0, K, n))  # the first shards lack classes
weights = rng.integers(0, 3, n).astype(float)
numbers = rng.normal(size=(n, 5)) + 1e8 * y[:, None]
counts = rng.poisson(1.0, size=(n, 5)).astype(float)
mesh = Mesh(np.array(jax.devices()), ("row",))
models = [
    (GaussianNB(), numbers), (GaussianNB(variance="shared"), numbers), (GaussianDiscriminantAnalysis(), numbers),
    (GaussianDiscriminantAnalysis(covariance="per_class"), numbers), (MultinomialNB(), counts),
    (GenerativeClassifier(family="gaussian"), numbers),
    (BernoulliNB(), counts), (PoissonNB(), counts), (MultinomialNB(multinomial_coefficient=True), counts),  # come here
]
def same(a, b):
    np.testing.assert_allclose(a.log_evidence_, b.log_evidence_, rtol=1e-13)
    for p, q in zip(a.statistics_.features, b.statistics_.features):
        np.testing.assert_allclose(p, q, rtol=1e-13, atol=1e-13 * np.abs(p).max() + 1e-8)  # the low part of a mean

def put(x, place):
    with jax.enable_x64(True):
        return jax.device_put(x, place)

shards, one = NamedSharding(mesh, P("row")), jax.devices()[2]
for model, x in models:
    for place in (shards, one):
        for kind in (np.float64, np.float32):
            for w in (None, weights):
                whole = type(model)(**model.get_params(deep=False)).fit(x.astype(kind), y, w)
                same(whole, model.fit(put(x.astype(kind), place), put(y, place), w))
    labels = y.copy()
    labels[7] = 9  # one row of a class, in one shard
    same(type(model)(**model.get_params(deep=False)).fit(x, labels), model.fit(put(x, shards), labels))
assert fetched == []

holes, constant, infinite = numbers.copy(), numbers.copy(), numbers.copy()
holes[600, 2], constant[:, 1], infinite[301, 3] = np.nan, 3.0, np.inf
for x in (holes, constant):
    same(GaussianNB().fit(x, y), GaussianNB().fit(put(x, shards), y))
for x, options, expected in (
    (infinite, {}, "rows 250 to 500 of X: Input X contains infinity: column 3, row 51"),
    (-counts, {}, "rows 0 to 250 of X: Negative values in data"),
    (numbers, {"sample_weight": -weights}, "sample_weight must be finite and not negative"),
    (numbers, {"sample_weight": 0 * weights}, "zero for every row"),
):
    model = MultinomialNB() if x is not numbers and x is not infinite else GaussianNB()
    try:
        model.fit(put(x, shards), y, **options)
    except ValueError as error:
        assert expected in str(error), error
    else:
        raise AssertionError(expected)

_device._kernels.cache_clear()
for rows in range(101, 151):
    x = put(numbers[-rows:], one)
    labels = np.arange(rows) % 3
    for model in (GaussianNB(), GaussianDiscriminantAnalysis(), GaussianDiscriminantAnalysis(covariance="per_class")):
        model.fit(x, labels)
    MultinomialNB().fit(put(counts[-rows:], one), labels)
compiled = {name: kernel._cache_size() for name, kernel in _device._kernels().items()}
assert compiled.pop("pick") == 50, compiled
assert set(compiled.values()) == {1}, compiled
print("where they lie")
"""


@pytest.mark.slow
def test_rows_are_summed_up_on_their_devices() -> None:
    """Statistics are those of NumPy, and but one small program is compiled for each number of rows."""
    import os

    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", DEVICES], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "where they lie"


@pytest.mark.slow
def test_the_benchmark_of_accelerators_tests_itself() -> None:
    import os

    script = str(Path(__file__).parent / "benchmarks" / "gpu.py")
    small = ["--allow-cpu", "--rows", "20000", "--columns", "8", "--classes", "3", "--repeats", "1"]
    for options, expected in (([], "skipped: JAX sees no accelerator here"), (small, "statistics within")):
        done = subprocess.run(
            [sys.executable, script, *options],
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
    assert done.stdout.count("came back") == 8  # four models, two kinds of numbers


def test_shards_of_a_jax_array() -> None:
    """In a process of its own: the number of devices is fixed when JAX starts."""
    import os

    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SHARDS], env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "as one"
