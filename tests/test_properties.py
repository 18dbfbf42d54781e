"""Laws of every estimator on every closed-form route, for tables, labels, weights and storages that nobody chose.

Where a route has no parameters (a maximum-likelihood variance of zero), both sides of a law must say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    UndefinedNumberError,
)

ROUTES = ("exact", "mean", "map", "mle")


def mixed(inference="exact", **keywords):
    blocks = [("first", GaussianNB(inference=inference), [0]), ("last", PoissonNB(inference=inference), [-1])]
    return MixedNB(blocks=blocks, inference=inference, **keywords)


MODELS = {
    "Gaussian": GaussianNB,
    "Gaussian, shared variance": lambda **k: GaussianNB(variance="shared", **k),
    "discriminant": GaussianDiscriminantAnalysis,
    "per-class discriminant": lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k),
    "Bernoulli": BernoulliNB,
    "multinomial": MultinomialNB,
    "multinomial, coefficient": lambda **k: MultinomialNB(multinomial_coefficient=True, **k),
    "Poisson": PoissonNB,
    "categorical": CategoricalNB,
    "mixed": mixed,
    "general": lambda **k: GenerativeClassifier(family="poisson", **k),
}
SPARSE = ("Bernoulli", "multinomial", "multinomial, coefficient", "Poisson", "general")


@dataclass(frozen=True)
class Case:
    """A model, and a training set of whole numbers for it."""

    name: str
    route: str
    class_alpha: float
    x: np.ndarray
    y: np.ndarray

    def model(self, **keywords: Any) -> Any:
        return MODELS[self.name](inference=self.route, class_alpha=self.class_alpha, **keywords)

    def __repr__(self) -> str:
        return f"Case({self.name!r}, {self.route!r}, {self.class_alpha}, {self.x.tolist()}, {self.y.tolist()})"


@st.composite
def cases(draw, models=tuple(MODELS)):
    """Cases; at least two columns, so that blocks differ, and two classes with a row each."""
    n, d = draw(st.integers(4, 14)), draw(st.integers(2, 4))
    x = draw(arrays(np.int64, (n, d), elements=st.integers(0, 6)))
    y = draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    y[:2] = [0, 1]
    return Case(
        draw(st.sampled_from(models)), draw(st.sampled_from(ROUTES)), draw(st.sampled_from([1.0, 0.0, 0.5])), x, y
    )


def weights(n):
    return arrays(np.int64, n, elements=st.integers(0, 3))


def learned(learn, x):
    """The log joint of rows and the evidence after learning; "undefined" where the route has no parameters."""
    try:
        model = learn()
        joint = model.predict_joint_log_proba(x)
    except UndefinedNumberError:
        return "undefined", None
    return joint, model.log_evidence_ if model.class_alpha else None


def agree(actual, expected, rtol=1e-9):
    for a, b in zip(actual, expected, strict=True):
        if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
            assert type(a) is type(b), f"{a} is not {b}"
            continue
        assert_allclose(a, b, rtol=rtol, atol=rtol)


def law(models=tuple(MODELS), examples=60):
    """A test of drawn cases."""

    def decorate(test):
        return settings(max_examples=examples)(given(case=cases(models), data=st.data())(test))

    return decorate


# ----------------------------------------------------------------------------------------------------
# how the same numbers are stored


def every_other(x):
    wide = np.full((2 * x.shape[0], 3 * x.shape[1]), 99, dtype=x.dtype)
    wide[::2, 1::3] = x
    return wide[::2, 1::3]


def read_only(x):
    out = x.copy()
    out.flags.writeable = False
    return out


LAYOUTS = {
    "rows first": np.ascontiguousarray,
    "columns first": np.asfortranarray,
    "strided": every_other,
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda x: x.T.copy().T,
    "read-only": read_only,
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), dtype=x.dtype, offset=1).reshape(x.shape),
    "a matrix by hand": lambda x: x.tolist(),
    "tuples": lambda x: tuple(map(tuple, x.tolist())),
    "a data frame": lambda x: pd.DataFrame(x),
    "a data frame of another library": lambda x: pl.DataFrame(x, schema=[f"c{j}" for j in range(x.shape[1])]),
}
DTYPES = [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, object]


@law()
def test_numbers_of_every_type_and_layout_are_the_same_numbers(case, data):
    dtype, layout = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(sorted(LAYOUTS)))
    assume(not (layout == "unaligned" and dtype is object))
    stored = LAYOUTS[layout](case.x.astype(dtype))
    expected = learned(lambda: case.model().fit(case.x, case.y), case.x)
    agree(learned(lambda: case.model().fit(stored, case.y), stored), expected, rtol=1e-11)


@law()
def test_truth_values_are_zeros_and_ones(case, data):
    flags = case.x > 2
    numbers = flags.astype(float)
    if case.name == "categorical":  # levels that no row has are declared by codes, not by truth values
        assume(flags.any(axis=0).all())
        assume(not flags.all(axis=0).any())
    expected = learned(lambda: case.model().fit(numbers, case.y), numbers)
    agree(learned(lambda: case.model().fit(flags, case.y), flags), expected, rtol=1e-11)


def entries(x, draw):
    """A CSR matrix with explicit zeros, cells in several parts, and entries out of order."""
    i, j = np.indices(x.shape).reshape(2, -1)
    value = x.ravel().astype(float)
    part = np.floor(value * draw(st.sampled_from([0.0, 0.5, 1.0])))
    order = np.array(draw(st.permutations(range(2 * value.size))), dtype=int)
    i, j = np.concatenate([i, i])[order], np.concatenate([j, j])[order]
    value = np.concatenate([part, value - part])[order]
    rows = np.argsort(i, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=len(x)))])
    return sp.csr_array((value[rows], j[rows], indptr), shape=x.shape)


FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@law(SPARSE)
def test_sparse_matrices_in_any_disorder_are_the_dense_ones(case, data):
    stored = entries(case.x, data.draw)
    if data.draw(st.booleans()):
        stored = stored.asformat(data.draw(st.sampled_from(FORMATS)))
    if data.draw(st.booleans()):
        stored = sp.csr_matrix(stored)
    copy = stored.copy()
    expected = learned(lambda: case.model().fit(case.x, case.y), case.x)
    agree(learned(lambda: case.model().fit(stored, case.y), stored), expected, rtol=1e-11)
    if hasattr(stored, "data") and stored.format in ("csr", "csc"):
        assert_array_equal(stored.data, copy.data)
        assert_array_equal(stored.indices, copy.indices)


# ----------------------------------------------------------------------------------------------------
# rows and their weights


@law()
def test_a_weight_is_a_number_of_repetitions(case, data):
    w = data.draw(weights(len(case.y)))
    w[:2] = np.maximum(w[:2], 1)
    kept = w > 0
    assume(set(case.y[kept]) == set(case.y))
    x = np.repeat(case.x, w, axis=0)
    if case.name == "categorical":  # rows without weight declare levels
        assume((x.max(axis=0) == case.x.max(axis=0)).all())
    expected = learned(lambda: case.model().fit(x, np.repeat(case.y, w)), case.x)
    agree(learned(lambda: case.model().fit(case.x, case.y, sample_weight=w), case.x), expected)


@law()
def test_the_order_of_rows_is_immaterial(case, data):
    order = np.array(data.draw(st.permutations(range(len(case.y)))))
    w = data.draw(weights(len(case.y))) + 1
    expected = learned(lambda: case.model().fit(case.x, case.y, sample_weight=w), case.x)
    shuffled = learned(lambda: case.model().fit(case.x[order], case.y[order], sample_weight=w[order]), case.x)
    agree(shuffled, expected)


@law()
def test_a_row_alone_is_the_row_among_others(case, data):
    i = data.draw(st.integers(0, len(case.y) - 1))
    joint, _ = learned(lambda: case.model().fit(case.x, case.y), case.x)
    alone, _ = learned(lambda: case.model().fit(case.x, case.y), case.x[i : i + 1])
    if not isinstance(joint, str):
        assert_allclose(alone[0], joint[i], rtol=1e-12)


# ----------------------------------------------------------------------------------------------------
# batches


def cuts(data, n):
    """Slices of n rows, some of them empty."""
    at = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    return [slice(a, b) for a, b in zip([0, *at], [*at, n], strict=True)]


def with_all_levels(case):
    """A case whose first row has the highest code of every column: levels do not depend on the cut."""
    x = case.x.copy()
    x[0] = x.max(axis=0)
    return Case(case.name, case.route, case.class_alpha, x, case.y)


@law()
def test_batches_give_the_model_of_all_rows_however_they_are_cut(case, data):
    case, parts = with_all_levels(case), [part for part in cuts(data, len(case.y)) if part.stop > part.start]
    classes = np.unique(case.y)

    def stream():
        model = case.model()
        for part in parts:
            model.partial_fit(case.x[part], case.y[part], classes=classes)
        return model

    expected = learned(lambda: case.model().fit(case.x, case.y), case.x)
    agree(learned(stream, case.x), expected)
    batches = [(case.x[part], case.y[part]) for part in cuts(data, len(case.y))]
    agree(learned(lambda: case.model().fit_batches(batches), case.x), expected)


@law()
def test_models_merge_in_any_order_and_any_grouping(case, data):
    case, classes = with_all_levels(case), np.unique(case.y)
    parts = [part for part in cuts(data, len(case.y)) if part.stop > part.start]
    order = data.draw(st.permutations(range(len(parts))))
    from_the_right = data.draw(st.booleans())

    def merged():
        models = [case.model().partial_fit(case.x[parts[i]], case.y[parts[i]], classes=classes) for i in order]
        while len(models) > 1:
            last = models.pop() if from_the_right else models.pop(1)
            models[-1 if from_the_right else 0].merge(last)
        return models[0]

    agree(learned(merged, case.x), learned(lambda: case.model().fit(case.x, case.y), case.x))


@law()
def test_rows_that_are_forgotten_were_never_there(case, data):
    case = with_all_levels(case)
    n = data.draw(st.integers(1, len(case.y)))
    w = data.draw(weights(len(case.y))) + 1
    classes = np.unique(case.y)

    def before():
        return case.model().partial_fit(case.x[:n], case.y[:n], classes=classes, sample_weight=w[:n])

    def after():
        model = before().partial_fit(case.x[n:], case.y[n:], sample_weight=w[n:]) if n < len(case.y) else before()
        return model.forget(case.x[n:], case.y[n:], sample_weight=w[n:]) if n < len(case.y) else model

    agree(learned(after, case.x), learned(before, case.x), rtol=1e-6)


# ----------------------------------------------------------------------------------------------------
# names and units

NAMES = {
    "texts": np.array(["b", "ä", ""]),
    "longer texts": np.array(["x" * 40, "a", "x"]),
    "objects": np.array(["z", "y", "x"], dtype=object),
    "negative": np.array([-1, -7, 3]),
    "floats": np.array([2.0, -1.0, 0.0]),
    "large": np.array([2**40, 2**40 - 1, 2**62]),
    "bytes of memory": np.array([255, 0, 128], dtype=np.uint8),
}


@law()
def test_classes_may_have_any_names(case, data):
    names = NAMES[data.draw(st.sampled_from(sorted(NAMES)))][np.array(data.draw(st.permutations(range(3))))]
    expected = learned(lambda: case.model().fit(case.x, case.y), case.x)
    labels = names[case.y]
    found = learned(lambda: case.model().fit(case.x, labels), case.x)
    if isinstance(found[0], str):
        assert isinstance(expected[0], str)
        return
    model = case.model().fit(case.x, labels)
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    assert set(model.predict(case.x).tolist()) <= set(labels.tolist())
    place = np.searchsorted(model.classes_, names[np.unique(case.y)])
    agree((found[0][:, place], found[1]), expected)


@law(("Bernoulli", "Gaussian", "multinomial"))
def test_two_classes_may_be_true_and_false(case, data):
    labels = case.y == 0
    expected = learned(lambda: case.model().fit(case.x, labels.astype(int)), case.x)
    agree(learned(lambda: case.model().fit(case.x, labels), case.x), expected)
    agree(learned(lambda: case.model().fit(case.x, labels.tolist()), case.x), expected)
    agree(learned(lambda: case.model().fit(case.x, pd.array(labels, dtype="boolean")), case.x), expected)


@law(tuple(name for name in MODELS if name != "mixed"))
def test_the_order_of_columns_is_immaterial(case, data):
    order = np.array(data.draw(st.permutations(range(case.x.shape[1]))))
    expected = learned(lambda: case.model().fit(case.x, case.y), case.x)
    moved = case.x[:, order]
    agree(learned(lambda: case.model().fit(moved, case.y), moved), expected)


@law(("Gaussian", "Gaussian, shared variance", "discriminant", "per-class discriminant"))
def test_the_unit_and_the_origin_of_a_column_are_immaterial(case, data):
    spread = [np.unique(column[case.y == k]).size > 1 for column in case.x.T for k in range(3)]
    assume(np.any(np.reshape(spread, (-1, 3)), axis=1).all())  # the unit of a constant is anybody's guess
    unit = 10.0 ** data.draw(arrays(np.int64, case.x.shape[1], elements=st.integers(-12, 12)))
    unit *= data.draw(arrays(np.int64, case.x.shape[1], elements=st.sampled_from([-1, 1, 3])))
    origin = unit * data.draw(arrays(np.int64, case.x.shape[1], elements=st.integers(-1000, 1000)))
    expected, _ = learned(lambda: case.model().fit(case.x, case.y), case.x)
    moved = case.x * unit + origin
    found, _ = learned(lambda: case.model().fit(moved, case.y), moved)
    if isinstance(expected, str) or isinstance(found, str):
        assert type(expected) is type(found)
        return
    agree((found + np.log(np.abs(unit)).sum(),), (expected,), rtol=1e-7)
