"""Promises of every model: about batches, row order, the caller's memory, refitting, and probabilities."""

import copy
import dataclasses
import warnings

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    ZeroProbabilityWarning,
)


def mentions(*patterns):
    """A pattern for messages that contain all of these, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{pattern}))" for pattern in patterns)


def reals(rng, y, d):
    return rng.normal(size=(len(y), d)) + np.outer(y, np.linspace(1, 2, d))


def presences(rng, y, d):
    return (rng.random((len(y), d)) < 0.2 + 0.6 * ((y[:, None] + np.arange(d)) % 2)).astype(float)


def counts(rng, y, d):
    return rng.poisson(1 + 3.0 * ((y[:, None] + np.arange(d)) % 3)).astype(float)


def codes(rng, y, d):
    return np.minimum(rng.poisson(0.5 + (y[:, None] + np.arange(d)) % 2), 3).astype(float)


def half_and_half(rng, y, d):
    left = d - d // 2
    return np.hstack([reals(rng, y, left), counts(rng, y, d // 2)])


def mixed(inference="exact", d=4, **keywords):
    left = d - d // 2
    blocks = [
        ("reals", GaussianNB(inference=inference), list(range(left))),
        ("counts", PoissonNB(inference=inference), list(range(left, d))),
    ]
    return MixedNB(blocks=blocks, inference=inference, **keywords)


MODELS = {
    "shared discriminant": (lambda **k: GaussianDiscriminantAnalysis(covariance="shared", **k), reals),
    "per-class discriminant": (lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k), reals),
    "Gaussian": (GaussianNB, reals),
    "Gaussian, shared variance": (lambda **k: GaussianNB(variance="shared", **k), reals),
    "Bernoulli": (BernoulliNB, presences),
    "multinomial": (MultinomialNB, counts),
    "categorical": (CategoricalNB, codes),
    "Poisson": (PoissonNB, counts),
    "mixed": (mixed, half_and_half),
}
every_model = pytest.mark.parametrize(("make", "draw"), MODELS.values(), ids=MODELS.keys())
takes_sparse = pytest.mark.parametrize("make", [BernoulliNB, MultinomialNB, PoissonNB])


def data(draw, n=60, d=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return draw(rng, y, d), y


def same(a, b):
    """Whether two values are equal bit for bit, whatever they are made of."""
    if isinstance(a, np.ndarray) and a.dtype != object:
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple, np.ndarray)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return isinstance(b, float) and (a == b or (a != a and b != b))
    if dataclasses.is_dataclass(a):
        names = [field.name for field in dataclasses.fields(a)]
        return type(a) is type(b) and all(same(getattr(a, name), getattr(b, name)) for name in names)
    if hasattr(a, "get_params"):
        return type(a) is type(b) and same(vars(a), vars(b))
    return type(a) is type(b) and (a is b or callable(a) or a == b)


# ----------------------------------------------------------------------------------------------------
# rows


@every_model
def test_a_row_has_the_same_probabilities_in_a_batch_of_any_size(make, draw):
    model = make().fit(*data(draw))
    new, _ = data(draw, n=4097, seed=1)
    whole = model.predict_proba(new)
    assert whole.shape == (4097, 3)
    for n in (1, 2, 7, 8, 9, 1023, 1024, 1025):
        assert_allclose(model.predict_proba(new[:n]), whole[:n], rtol=1e-12, atol=0)
    joint = model.predict_joint_log_proba(new)
    alone = np.vstack([model.predict_joint_log_proba(new[i : i + 1]) for i in (0, 8, 1024, 4096)])
    assert_allclose(alone, joint[[0, 8, 1024, 4096]], rtol=1e-12)


@takes_sparse
def test_a_sparse_row_has_the_same_probabilities_in_a_batch_of_any_size(make):
    x, y = data(counts)
    model = make().fit(sp.csr_matrix(x), y)
    new, _ = data(counts, n=1025, seed=1)
    whole = model.predict_proba(new)
    for n in (1, 2, 7, 8, 9, 1023, 1024, 1025):
        assert_allclose(model.predict_proba(sp.csr_matrix(new[:n])), whole[:n], rtol=1e-12, atol=0)


@every_model
def test_no_rows_give_no_probabilities_or_a_clear_error(make, draw):
    x, y = data(draw)
    model = make().fit(x, y)
    try:
        posterior = model.predict_proba(x[:0])
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = "0 samples"
        assert posterior.shape == (0, 3)
    assert "0 sample" in refusal


@every_model
def test_a_single_row_must_be_reshaped_and_the_error_says_how(make, draw):
    x, y = data(draw)
    model = make().fit(x, y)
    with pytest.raises(ValueError, match=mentions("reshape")):
        model.predict_proba(x[0])


@every_model
def test_the_order_of_the_training_rows_does_not_matter(make, draw):
    x, y = data(draw, n=200)
    rng = np.random.default_rng(2)
    weight = rng.random(200)
    new, _ = data(draw, n=1000, seed=1)
    model = make().fit(x, y, sample_weight=weight)
    posterior, labels = model.predict_proba(new), model.predict(new)
    two = np.sort(posterior, axis=1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 1e-10
    for _ in range(5):
        order = rng.permutation(200)
        other = make().fit(x[order], y[order], sample_weight=weight[order])
        assert_array_equal(other.classes_, model.classes_)
        assert_allclose(other.predict_proba(new), posterior, rtol=0, atol=1e-11)
        assert_array_equal(other.predict(new)[clear], labels[clear])


@every_model
@pytest.mark.parametrize("n_classes", [2, 3, 50])
@pytest.mark.parametrize("inference", ["mean", "exact"])
def test_every_row_of_probabilities_is_finite_and_sums_to_one(make, draw, n_classes, inference):
    x, y = data(draw, n=10 * n_classes, d=4, n_classes=n_classes)
    model = make(inference=inference).fit(x, y)
    rng = np.random.default_rng(3)
    new, _ = data(draw, n=10_000, n_classes=n_classes, seed=1)
    if draw in (reals, half_and_half):  # up to a million standard deviations away; counts must stay counts
        columns = slice(None) if draw is reals else slice(0, 2)
        new[:, columns] *= 10 ** rng.uniform(-3, 6, size=(10_000, 1))
    elif draw is counts:
        new *= np.floor(10 ** rng.uniform(0, 5, size=(10_000, 1)))
    elif draw is codes:  # some levels that training never showed
        new += rng.integers(0, 2, size=new.shape) * 7
    posterior, logs = model.predict_proba(new), model.predict_log_proba(new)
    assert posterior.shape == (10_000, n_classes)
    assert posterior.dtype == np.float64
    assert np.isfinite(posterior).all()
    assert posterior.min() >= 0
    assert posterior.max() <= 1
    assert_allclose(posterior.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert_allclose(np.exp(logs), posterior, rtol=0, atol=1e-12)


# ----------------------------------------------------------------------------------------------------
# fitting again, and predicting without learning


@every_model
def test_a_second_fit_leaves_no_trace_of_the_first(make, draw):
    first = pd.DataFrame(data(draw, n=60, d=4, n_classes=3)[0], columns=list("abcd"))
    y = np.array(["u", "v", "w"])[np.arange(60) % 3]
    d = 4 if make is mixed else 2  # the blocks of a mixed model say which columns there are
    x2, y2 = data(draw, n=30, d=d, n_classes=2, seed=5)
    again, fresh = make().fit(first, y), make().fit(x2, y2)
    again.predict_proba(first)
    again.fit(x2, y2)
    assert not hasattr(again, "feature_names_in_")
    assert vars(again).keys() == vars(fresh).keys()
    for name, value in vars(fresh).items():
        assert same(getattr(again, name), value), name
    assert_array_equal(again.predict_proba(x2), fresh.predict_proba(x2))


@every_model
def test_predicting_teaches_the_model_nothing(make, draw):
    x, y = data(draw)
    model = make().fit(x, y)
    before = copy.deepcopy(vars(model))
    posterior = model.predict_proba(x[:7])
    for other in (x[7:20], x[:1], x[::-1]):
        model.predict(other), model.predict_log_proba(other), model.score_samples(other)
        assert_array_equal(model.predict_proba(x[:7]), posterior)
    assert vars(model).keys() == before.keys()
    for name, value in before.items():
        assert same(getattr(model, name), value), name


def test_a_vocabulary_does_not_grow_at_prediction():
    model = MultinomialNB(inference="mean", alpha=1, class_alpha=0).fit([[1, 1, 0, 0], [0, 0, 1, 1]], [0, 1])
    new = [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 3, 0]]
    expected = [[2 / 3, 1 / 3], [1 / 2, 1 / 2], [1 / 9, 8 / 9]]
    for _ in range(3):
        assert_allclose(model.predict_proba(new), expected, rtol=1e-10)
        model.predict_proba([[5, 5, 5, 5]])


# ----------------------------------------------------------------------------------------------------
# the caller's memory


def use_everything(make, x, y, weight, new):
    model = make().fit(x, y, sample_weight=weight)
    make().partial_fit(x, y, classes=np.unique(y), sample_weight=weight)
    model.predict(new), model.predict_proba(new), model.predict_log_proba(new), model.score_samples(new)
    return model


@every_model
def test_no_array_of_the_caller_is_changed_or_kept(make, draw):
    x, y = data(draw)
    weight, new = np.linspace(0.5, 2, len(y)), x[:9].copy()
    given = [x, y, weight, new]
    copies = [a.copy() for a in given]
    model = use_everything(make, *given)
    for a, b in zip(given, copies, strict=True):
        assert_array_equal(a, b)
    posterior = model.predict_proba(new)
    x[:], y[:], weight[:] = 1, 0, 1
    assert_array_equal(model.predict_proba(new), posterior)


@takes_sparse
def test_an_unsorted_sparse_matrix_with_repeated_entries_is_not_tidied_in_place(make):
    def repeated():
        indices = np.array([2, 0, 0, 1, 1, 2, 0, 0])
        return sp.csr_matrix((np.arange(1.0, 9.0), indices, np.array([0, 3, 5, 8, 8])), shape=(4, 3))

    x, fresh = repeated(), repeated()
    use_everything(make, x, np.array([0, 0, 1, 1]), np.ones(4), x)
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(x, name), getattr(fresh, name))


@every_model
def test_read_only_memory_maps_are_read_and_nothing_else(make, draw, tmp_path):
    x, y = data(draw)
    expected = make().fit(x, y, sample_weight=np.ones(len(y))).predict_proba(x[:5])
    mapped = {}
    for name, value in {"x": x, "y": y, "weight": np.ones(len(y)), "new": x[:5]}.items():
        np.save(tmp_path / f"{name}.npy", value)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model = use_everything(make, mapped["x"], mapped["y"], mapped["weight"], mapped["new"])
    assert_array_equal(model.predict_proba(mapped["new"]), expected)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@every_model
@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x[:, ::-1].copy()[:, ::-1],
        np.ndarray.tolist,
    ],
    ids=["column-major", "strided", "reversed view", "nested lists"],
)
def test_the_layout_in_memory_does_not_matter(make, draw, layout):
    x, y = data(draw)
    expected = make().fit(x, y).predict_log_proba(x)
    assert_allclose(make().fit(layout(x), y).predict_log_proba(layout(x)), expected, rtol=1e-12, atol=1e-13)


def test_a_discriminant_fitted_from_a_read_only_file(tmp_path):
    np.save(tmp_path / "x.npy", [[0.0, 1.0], [2.0, 1.5], [5.0, 4.0], [7.0, 3.0], [9.0, 8.0]])
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = GaussianDiscriminantAnalysis(inference="mle", covariance="shared").fit(x, [0, 0, 1, 1, 1])
    assert_allclose(model.covariance_, [[2.0, 1.7], [1.7, 2.825]], rtol=1e-10)
    posterior = [[0.37104235035005745, 0.6289576496499426]]
    assert_allclose(model.predict_proba([[4.0, 3.0]]), posterior, rtol=1e-10)


# ----------------------------------------------------------------------------------------------------
# strict settings of the caller


@pytest.mark.parametrize("inference", ["mle", "mean", "exact"])
@every_model
def test_results_without_nan_do_not_pass_through_nan(make, draw, inference):
    x, y = data(draw)
    with jax.debug_nans(True), np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(inference=inference).fit(x, y)
        posterior = model.predict_proba(x)
        model.predict(x), model.predict_log_proba(x), model.score_samples(x), model.score(x, y)
    assert np.isfinite(posterior).all()


def test_exact_zeros_pass_the_callers_nan_detector():
    with jax.debug_nans(True), np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MultinomialNB(inference="mle").fit([[2, 0], [1, 0], [0, 3]], [0, 0, 1])
        posterior = model.predict_proba([[1, 0], [0, 1]])
        other = BernoulliNB(inference="mle").fit([[1, 0], [1, 0], [0, 1]], [0, 0, 1]).predict_proba([[1, 0], [0, 1]])
        rates = PoissonNB(inference="mle").fit([[2, 0], [1, 0], [0, 3]], [0, 0, 1]).predict_proba([[1, 0], [0, 1]])
        levels = CategoricalNB(inference="mle").fit([[1, 0], [1, 0], [0, 1]], [0, 0, 1]).predict_proba([[1, 0], [0, 1]])
    for probabilities in (posterior, other, rates, levels):
        assert_array_equal(probabilities, [[1, 0], [0, 1]])


IMPOSSIBLE = {
    "Bernoulli": (BernoulliNB, [[1, 0], [1, 0], [0, 0]], [0, 1]),
    "multinomial": (MultinomialNB, [[1, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 0, 2]),
    "categorical": (CategoricalNB, [[1, 0], [1, 0], [0, 1]], [1, 1]),
    "Poisson": (PoissonNB, [[2, 0], [1, 0], [3, 0]], [1, 1]),
}


@pytest.mark.parametrize(("make", "rows", "row"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_row_impossible_in_every_class_is_nan_with_a_warning(make, rows, row):
    model = make(inference="mle").fit(rows, ["often", "often", "rare"])
    with pytest.warns(ZeroProbabilityWarning):
        posterior = model.predict_proba([rows[0], row])
    assert np.isfinite(posterior[0]).all()
    assert np.isnan(posterior[1]).all()
    with pytest.warns(ZeroProbabilityWarning):
        assert list(model.predict([row])) == ["often"]
