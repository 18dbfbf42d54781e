"""What X, y and weights may be: arrays of other libraries, storage and types of numbers, labels, names of columns."""

import pickle
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_array_equal
from odd_cases import FRAME, LABELS, NUMERIC, ROWS, TABLES, cases, close, models, refused
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB as TheirGaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesgen import BernoulliNB, GaussianDiscriminantAnalysis, GaussianNB, MixedNB, MultinomialNB

EVERY = NUMERIC | TABLES
WEIGHTS = np.array([1.0, 0.5, 2.0, 1.0, 1.5, 0.25])  # exact in single precision
BY_ROW = ["predict_joint_log_proba", "predict_log_proba", "predict_proba", "score_samples"]


class Remote:
    """An array as CuPy has them: on a device, and NumPy cannot read it unless it is fetched by `get`."""

    device = "accelerator"

    def __init__(self, values):
        self._values = np.array(values)
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim

    def __len__(self):
        return len(self._values)

    def __getitem__(self, key):
        return Remote(self._values[key])

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __dlpack__(self, **keywords):
        raise BufferError("not in main memory")

    def get(self):
        return self._values.copy()

    def __array_namespace__(self, api_version=None):
        return RemoteNamespace


class RemoteNamespace:
    """The functions of `Remote` arrays that are needed."""

    __name__ = "remote"

    @staticmethod
    def asarray(values, device=None):
        assert device == Remote.device
        return Remote(values)


class Exchanged:
    """An array that offers its memory by DLPack alone."""

    def __init__(self, values):
        self._values = np.array(values)
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim

    def __len__(self):
        return len(self._values)

    def __dlpack__(self, **keywords):
        return self._values.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def as_jax(values):
    with jax.enable_x64(True):
        return jnp.asarray(values)


def as_torch(values):
    return pytest.importorskip("torch").tensor(values)


def as_strict(values):
    return pytest.importorskip("array_api_strict").asarray(values)


def elsewhere(values):
    xp = pytest.importorskip("array_api_strict")
    return xp.asarray(values, device=xp.Device("device1"))


IN_MEMORY = {"JAX": as_jax, "PyTorch": as_torch, "array API": as_strict, "DLPack": Exchanged}
ON_DEVICES = {"CuPy": Remote, "array API": elsewhere}


@pytest.fixture
def dispatch(monkeypatch):
    """scikit-learn's setting `array_api_dispatch`, which a variable of the environment must allow."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def fetched(values):
    """The numbers of an array, wherever it is."""
    if isinstance(values, np.ndarray):
        return values
    return values.get() if isinstance(values, Remote) else np.from_dlpack(values)


# --------------------------------------------------------------------- arrays of other libraries


@cases("convert", IN_MEMORY)
@models(EVERY)
def test_arrays_of_other_libraries_are_those_of_numpy(make, convert):
    plain = make().fit(ROWS, LABELS, WEIGHTS)
    other = make().fit(convert(ROWS), convert(LABELS), sample_weight=convert(WEIGHTS))
    for name in [*BY_ROW, "predict"]:
        found = getattr(other, name)(convert(ROWS))
        assert type(found) is np.ndarray
        assert_array_equal(found, getattr(plain, name)(ROWS))
    assert other.classes_.dtype == LABELS.dtype
    given = np.array([0.25, 0.75])
    assert_array_equal(other.predict_proba(convert(ROWS), convert(given)), plain.predict_proba(ROWS, given))
    assert other.score(convert(ROWS), convert(LABELS), convert(WEIGHTS)) == plain.score(ROWS, LABELS, WEIGHTS)
    assert other.loo(convert(ROWS), convert(LABELS), convert(WEIGHTS)).elpd_joint == (
        plain.loo(ROWS, LABELS, WEIGHTS).elpd_joint
    )


@cases("convert", IN_MEMORY)
def test_batches_and_soft_labels_may_be_arrays_of_other_libraries(convert):
    parts = GaussianNB().partial_fit(convert(ROWS[:3]), convert(LABELS[:3]), classes=convert(np.array([0, 1])))
    parts.partial_fit(convert(ROWS[3:]), convert(LABELS[3:]))
    close(parts.theta_, GaussianNB().fit(ROWS, LABELS).theta_)
    soft = np.column_stack([LABELS == 0, LABELS == 1]) * 0.5
    found = GaussianNB().fit_soft(convert(ROWS), convert(soft), convert(np.array([0, 1])))
    assert_array_equal(found.theta_, GaussianNB().fit_soft(ROWS, soft, [0, 1]).theta_)


@cases("convert", ON_DEVICES)
@models(EVERY)
def test_an_array_on_a_device_is_not_fetched_unasked(make, convert):
    with refused(model := make(), "X is of type", "NumPy", error=TypeError):
        model.fit(convert(ROWS), LABELS)
    with refused(model := make(), "y is of type", "NumPy", error=TypeError):
        model.fit(ROWS, convert(LABELS))
    with refused(model := make(), "sample_weight is of type", "NumPy", error=TypeError):
        model.fit(ROWS, LABELS, convert(WEIGHTS))
    with refused(model := make().fit(ROWS, LABELS), "X is of type", "NumPy", error=TypeError):
        model.predict(convert(ROWS))


def test_the_error_says_how_to_fetch_an_array():
    with pytest.raises(TypeError, match=r"Implicit conversion .* Pass a NumPy array, such as X\.get\(\)"):
        GaussianNB().fit(Remote(ROWS), LABELS)


def test_a_tensor_with_a_gradient_is_to_be_detached():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"requires grad.*X\.detach\(\)"):
        GaussianNB().fit(torch.tensor(ROWS, requires_grad=True), LABELS)


@pytest.mark.usefixtures("dispatch")
@cases("convert", IN_MEMORY | ON_DEVICES)
@models(EVERY)
def test_with_array_api_dispatch_results_are_of_the_kind_of_x(make, convert):
    if convert is Exchanged:
        pytest.skip("DLPack is no namespace to answer in")
    with sklearn.config_context(array_api_dispatch=False):
        plain = make().fit(ROWS, LABELS, WEIGHTS)
    x = convert(ROWS)
    model = make().fit(x, convert(LABELS), sample_weight=convert(WEIGHTS))
    methods = [*BY_ROW, "predict", *(["decision_function"] if hasattr(model, "decision_function") else [])]
    with jax.enable_x64(True):
        for name in methods:
            found = getattr(model, name)(x)
            assert type(found) is type(x)
            assert found.device == x.device
            assert_array_equal(fetched(found), getattr(plain, name)(ROWS))
    assert model.score(x, convert(LABELS)) == plain.score(ROWS, LABELS) == model.score(x, LABELS)
    assert type(model.class_count_) is np.ndarray  # what was learned stays in NumPy
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(ROWS), plain.predict(ROWS))


@pytest.mark.usefixtures("dispatch")
@cases("convert", {"JAX": as_jax, "PyTorch": as_torch, "CuPy": Remote})
def test_with_array_api_dispatch_texts_stay_in_numpy_and_single_precision_single(convert):
    labels = np.where(LABELS == 0, "ham", "spam")
    x = convert(ROWS.astype(np.float32))
    model = GaussianDiscriminantAnalysis().fit(x, labels)
    assert set(model.predict(x)) == {"ham", "spam"}
    for found in (model.predict_proba(x), model.decision_function(x), model.transform(x)):
        assert type(found) is type(x)
        assert found.dtype == x.dtype


@pytest.mark.usefixtures("dispatch")
def test_a_pipeline_of_tensors():
    x, y = as_torch(np.tile(ROWS, (4, 1))), as_torch(np.tile(LABELS, 4))
    pipeline = make_pipeline(StandardScaler(), GaussianNB()).fit(x, y)
    assert type(pipeline.predict_proba(x)) is type(x)
    assert accuracy_score(y, pipeline.predict(x)) == pipeline.score(x, y) > 0.5
    assert np.isfinite(cross_val_score(GaussianNB(), x, y, cv=3)).all()


# --------------------------------------------------------------------- storage and types of numbers

STORAGE = {
    "column by column": np.asfortranarray,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "objects": lambda x: x.astype(object),
    "nested lists": lambda x: x.tolist(),
}
NUMBERS = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


@cases("store", STORAGE)
@models(EVERY)
def test_how_numbers_are_stored_does_not_matter(make, store):
    found = make().fit(store(ROWS), store(LABELS[:, None])[:, 0] if store is STORAGE["other byte order"] else LABELS)
    close(found.predict_joint_log_proba(store(ROWS)), make().fit(ROWS, LABELS).predict_joint_log_proba(ROWS))


@pytest.mark.parametrize("mode", ["r", "c"])
@models(EVERY)
def test_a_memory_map_is_read_and_not_written(make, mode, tmp_path):
    np.asarray(ROWS).tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", ROWS.dtype, mode, shape=ROWS.shape)
    found = make().fit(mapped, LABELS).predict_joint_log_proba(mapped)
    assert_array_equal(found, make().fit(ROWS, LABELS).predict_joint_log_proba(ROWS))
    assert_array_equal(mapped, ROWS)


@pytest.mark.parametrize("dtype", NUMBERS)
@models(EVERY)
def test_every_type_of_number_is_read(make, dtype):
    found = make().fit(ROWS.astype(dtype), LABELS.astype(dtype))
    assert found.classes_.dtype == np.dtype(dtype)
    close(found.predict_joint_log_proba(ROWS.astype(dtype)), make().fit(ROWS, LABELS).predict_joint_log_proba(ROWS))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix], ids=lambda k: k.__name__)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@models(EVERY)
def test_sparse_matrices_of_both_kinds_and_index_types(make, kind, index):
    rows = kind(ROWS)
    if rows.format != "coo":
        rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    close(
        make().fit(rows, LABELS).predict_joint_log_proba(rows), make().fit(ROWS, LABELS).predict_joint_log_proba(ROWS)
    )


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix], ids=lambda k: k.__name__)
def test_blocks_of_a_sparse_matrix(kind):
    model = MixedNB(blocks=[("words", MultinomialNB(), [0]), ("flags", BernoulliNB(), [1])])
    expected = clone(model).fit(ROWS, LABELS).predict_joint_log_proba(ROWS)
    close(clone(model).fit(kind(ROWS), LABELS).predict_joint_log_proba(kind(ROWS)), expected)


NULLABLE = {
    "Int64": lambda: FRAME.astype("Int64"),
    "Float64": lambda: FRAME.astype("Float64"),
    "UInt8": lambda: FRAME.astype("UInt8"),
    "of Arrow": lambda: FRAME.astype("int64[pyarrow]"),
    "polars": lambda: pl.from_pandas(FRAME),
}


@cases("frame", NULLABLE)
@models(EVERY)
def test_nullable_columns_without_missing_cells_are_plain_numbers(make, frame):
    if make is not TABLES["mixed"]:  # which types its columns by their dtype
        expected = make().fit(ROWS, LABELS).predict_joint_log_proba(ROWS)
        close(make().fit(frame(), LABELS).predict_joint_log_proba(frame()), expected)
    else:
        assert make().fit(frame(), LABELS).predict_proba(frame()).shape == (6, 2)


@models(EVERY)
def test_a_missing_cell_of_a_nullable_column_is_nan(make):
    model = make()
    holes, plain = FRAME.astype("Int64"), ROWS.copy()
    holes.iloc[1, 0], plain[1, 0] = pd.NA, np.nan
    if not model.__sklearn_tags__().input_tags.allow_nan:
        with refused(model, "NaN|missing"):
            model.fit(holes, LABELS)
    else:
        close(
            model.fit(holes, LABELS).predict_joint_log_proba(holes),
            make().fit(pd.DataFrame(plain, columns=FRAME.columns), LABELS).predict_joint_log_proba(holes),
        )


# --------------------------------------------------------------------- labels

WORDS = np.array(["no", "yes"])[LABELS]
LABEL_KINDS = {
    "texts": (WORDS, ["no", "yes"]),
    "objects": (WORDS.astype(object), ["no", "yes"]),
    "a list": (WORDS.tolist(), ["no", "yes"]),
    "a series": (pd.Series(WORDS), ["no", "yes"]),
    "pandas texts": (pd.Series(WORDS, dtype="string"), ["no", "yes"]),
    "categories": (pd.Series(pd.Categorical(WORDS, categories=["yes", "no", "never"])), ["no", "yes"]),
    "polars texts": (pl.Series(WORDS.tolist()), ["no", "yes"]),
    "polars categories": (pl.Series(WORDS.tolist(), dtype=pl.Categorical), ["no", "yes"]),
    "whole numbers": (LABELS * 3 + 4, [4, 7]),
    "nullable numbers": (pd.Series(LABELS, dtype="Int64"), [0, 1]),
    "booleans": (LABELS == 1, [False, True]),
    "nullable booleans": (pd.Series(LABELS == 1, dtype="boolean"), [False, True]),
    "negative": (np.where(LABELS == 1, 1, -1), [-1, 1]),
    "a frame of one column": (pd.DataFrame({"label": LABELS}), [0, 1]),
}


@cases("labels", LABEL_KINDS)
@models(EVERY)
def test_labels_are_sorted_and_come_back_as_they_are(make, labels):
    given, classes = labels
    expected = make().fit(ROWS, LABELS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A column-vector y was passed")  # as scikit-learn says it
        model = make().fit(ROWS, given)
    assert model.classes_.tolist() == classes
    assert_array_equal(model.predict(ROWS), np.array(classes)[expected.predict(ROWS)])
    assert_array_equal(model.predict_proba(ROWS), expected.predict_proba(ROWS))


# --------------------------------------------------------------------- names of columns

OTHERS = {
    "missing": FRAME[["height"]],
    "reordered": FRAME[["weight", "height"]],
    "additional": FRAME.assign(depth=1.0),
    "renamed": FRAME.rename(columns={"height": "length"}),
}


@cases("other", OTHERS)
@models(EVERY)
def test_columns_of_other_names_are_refused_in_the_words_of_scikit_learn(make, other):
    with pytest.raises(ValueError, match="feature") as expected:
        TheirGaussianNB().fit(FRAME, LABELS).predict(other)
    model = make().fit(FRAME, LABELS)
    words = str(expected.value).replace("GaussianNB", type(model).__name__)
    for method in (*BY_ROW, "predict"):
        with refused(model, re.escape(words)):
            getattr(model, method)(other)
    with refused(model, re.escape(words)):
        model.partial_fit(other, LABELS)


@models(EVERY)
def test_a_polars_frame_in_another_order_is_refused(make):
    frame = pl.from_pandas(FRAME)
    model = make().fit(frame, LABELS)
    assert model.feature_names_in_.tolist() == ["height", "weight"]
    with refused(model, "feature names should match", "order"):
        model.predict(frame.select("weight", "height"))


@models(EVERY)
def test_an_array_after_named_columns_is_taken_by_position_with_a_warning(make):
    model = make().fit(FRAME, LABELS)
    with pytest.warns(UserWarning, match=f"X does not have valid feature names, but {type(model).__name__} was fitted"):
        found = model.predict_proba(ROWS)
    close(found, model.predict_proba(FRAME))


@models(EVERY)
def test_names_that_are_not_texts_are_no_names(make):
    numbered = pd.DataFrame(ROWS)
    model = make().fit(numbered, LABELS)
    assert not hasattr(model, "feature_names_in_")
    close(model.predict_proba(numbered[[0, 1]]), model.predict_proba(ROWS))


@models(EVERY)
def test_names_of_several_types_are_refused(make):
    with refused(model := make(), "feature names", "str", error=TypeError):
        model.fit(pd.DataFrame(ROWS, columns=["height", 1]), LABELS)


@pytest.mark.parametrize("kind", ["default", "pandas", "polars"])
def test_discriminant_axes_come_in_the_frame_that_was_asked_for(kind):
    model = GaussianDiscriminantAnalysis().fit(FRAME, LABELS)
    plain = model.transform(FRAME)
    found = make_pipeline(clone(model)).set_output(transform=kind).fit(FRAME, LABELS).transform(FRAME)
    assert type(found) is {"default": np.ndarray, "pandas": pd.DataFrame, "polars": pl.DataFrame}[kind]
    assert_array_equal(np.asarray(found), plain)
    if kind != "default":
        assert list(found.columns) == list(model.get_feature_names_out()) == ["gaussiandiscriminantanalysis0"]


@models({name: make for name, make in EVERY.items() if "discriminant" not in name})
def test_models_without_axes_have_no_output_to_set(make):
    assert not hasattr(make(), "set_output")
    assert not hasattr(make(), "transform")


# --------------------------------------------------------------------- metadata


@models(EVERY)
def test_weights_travel_by_request_only(make):
    w = np.arange(1.0, 7.0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = make_pipeline("passthrough", make().set_fit_request(sample_weight=True)).fit(
            ROWS, LABELS, sample_weight=w
        )
        assert_array_equal(asked.predict_proba(ROWS), make().fit(ROWS, LABELS, w).predict_proba(ROWS))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline("passthrough", make()).fit(ROWS, LABELS, sample_weight=w)
        routed = make().set_fit_request(sample_weight="w").set_score_request(sample_weight="w")
        routed.set_partial_fit_request(sample_weight=True, classes=True)
        wanted = routed.get_metadata_routing()
        assert wanted.fit.requests["sample_weight"] == wanted.score.requests["sample_weight"] == "w"
        assert wanted.partial_fit.requests["classes"] is True
        named = make_pipeline("passthrough", routed).fit(ROWS, LABELS, w=w)
        assert_array_equal(named.predict_proba(ROWS), asked.predict_proba(ROWS))
