"""P-values of rows are uniform for rows of the model itself, and small for rows that it does not know."""

from __future__ import annotations

import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_iris

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    ImportanceOptions,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    PoissonNB,
)

X, Y = load_iris(return_X_y=True)
FEW = ImportanceOptions(num_samples=50)
RANDOM = NormalInverseGamma(mean_precision=dist.LogNormal(0.0, 1.0))


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        GaussianNB(variance="shared", inference="mean", class_prior=[0.1, 0.2, 0.7]),
        pytest.param(
            GaussianNB(
                prior=NormalInverseGamma(mean_precision=dist.LogNormal(0.0, 1.0)), inference=FEW, random_state=0
            ),
            marks=pytest.mark.slow,
        ),
        GaussianDiscriminantAnalysis(),
        GaussianDiscriminantAnalysis(covariance="per_class", inference="mle"),
    ],
    ids=lambda model: f"{type(model).__name__}, {str(model.inference)[:20]}",
)
def test_rows_of_the_model_have_uniform_p_values(model) -> None:
    model.fit(X, Y)
    rows, _ = model.sample(600, random_state=1)
    p = model.score_p_value(rows, n_samples=2000, random_state=2)
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    assert p.min() > 0


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (PoissonNB(), "counts"),
        (BernoulliNB(inference="mean"), "counts"),
        (CategoricalNB(), "counts"),
        (MultinomialNB(), "counts"),
        (MultinomialNB(inference="mle"), "counts"),
        (MixedNB(), "mixed"),
    ],
    ids=str,
)
def test_discrete_rows_have_p_values_that_are_not_too_small(model, kind) -> None:
    rng = np.random.default_rng(0)
    rows = rng.poisson(2.0 + 3.0 * np.eye(3, 6)[Y]).astype(float)
    if kind == "mixed":
        rows = np.column_stack([rows[:, :2], X[:, :2], rows[:, 2:3] > 2])
    model.fit(rows, Y)
    lengths = {"lengths": 12} if isinstance(model, MultinomialNB) else {}
    new, _ = model.sample(600, random_state=1, **lengths)
    p = model.score_p_value(new, n_samples=1000, random_state=2)
    for level in (0.01, 0.05, 0.2, 0.5):
        assert (p <= level).mean() <= level + 4 * np.sqrt(level * (1 - level) * (1 / 600 + 1 / 1000)) + 1e-3
    if kind == "mixed":  # with real numbers in it there are no ties
        assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_rows_far_from_every_class_are_novel() -> None:
    model = GaussianDiscriminantAnalysis(random_state=0).fit(X, Y)
    far = X[:3] + np.array([10.0, -5.0, 10.0, 10.0])
    assert (model.predict_proba(far).max(axis=1) > 0.99).all()  # and yet
    assert (model.score_p_value(far) == 1 / 1001).all()
    assert (model.score_p_value(far, within_class=True) < 1e-6).all()
    assert np.median(model.score_p_value(X)) > 0.3


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
@pytest.mark.parametrize("inference", ["exact", "mean"])
def test_the_closed_tail_is_that_of_simulation(covariance, inference) -> None:
    model = GaussianDiscriminantAnalysis(covariance=covariance, inference=inference, missing="marginalize").fit(X, Y)
    rows = X[::15].copy()
    rows[1, 2] = rows[2, 0] = rows[2, 1] = np.nan
    rows[3] = np.nan
    closed = model.score_p_value(rows, within_class=True)
    assert closed.shape == (10, 3)
    assert (closed[3] == 1).all()
    for k in range(3):
        only = GaussianDiscriminantAnalysis(
            covariance=covariance, inference=inference, missing="marginalize", class_prior=np.eye(3)[k]
        ).fit(X, Y)
        simulated = only.score_p_value(rows, n_samples=4000, random_state=k)
        assert_allclose(simulated, closed[:, k], atol=4 * np.sqrt(0.25 / 4000))


def test_the_tail_of_one_normal_column_is_that_of_a_t_test() -> None:
    column = X[:50, :1]
    model = GaussianDiscriminantAnalysis(prior="reference").fit(column, np.zeros(50, dtype=int))
    new = np.array([[4.6], [5.1], [6.4]])
    t = (new[:, 0] - column.mean()) / (column.std(ddof=1) * np.sqrt(1 + 1 / 50))
    assert_allclose(model.score_p_value(new, within_class=True)[:, 0], 2 * stats.t.sf(np.abs(t), 49), rtol=1e-9)


def test_within_class_p_values_of_other_models_are_simulated() -> None:
    model = GaussianNB(inference="mle").fit(X[:, :1], Y)
    p = model.score_p_value([[5.0], [6.6]], within_class=True, n_samples=4000, random_state=0)
    z = np.abs(np.array([[5.0], [6.6]]) - model.theta_.T) / np.sqrt(model.var_.T)
    assert_allclose(p, 2 * stats.norm.sf(z), atol=4 * np.sqrt(0.25 / 4000))


def test_missing_cells_and_lengths_are_compared_with_their_like() -> None:
    model = GaussianNB(random_state=0).fit(X, Y)
    rows = X[:40].copy()
    rows[:, 1] = np.nan
    narrow = GaussianNB(random_state=0).fit(X[:, [0, 2, 3]], Y)
    a = model.score_p_value(rows, n_samples=4000)
    b = narrow.score_p_value(X[:40, [0, 2, 3]], n_samples=4000)
    assert_allclose(a, b, atol=6 * np.sqrt(0.25 / 4000))
    assert model.score_p_value(np.full((1, 4), np.nan)).tolist() == [1.0]
    rng = np.random.default_rng(0)
    counts = rng.multinomial(30, np.full(8, 1 / 8), size=60)
    words = MultinomialNB(random_state=0).fit(counts, np.arange(60) % 2)
    common, odd = np.full(8, 4), np.eye(8, dtype=int)[0] * 32
    p = words.score_p_value(sp.csr_array(np.stack([common, odd, np.zeros(8, dtype=int)])))
    assert p[1] < 0.005  # one word throughout: the urn makes it the likeliest of sequences, and an odd document
    assert p[0] > 0.5
    assert p[2] == 1.0  # no document is less probable than an empty one among empty ones


def test_the_same_seed_gives_the_same_p_values() -> None:
    model = GaussianNB(random_state=3).fit(X, Y)
    assert_array_equal(model.score_p_value(X[:5]), model.score_p_value(X[:5]))
    assert_array_equal(model.score_p_value(X[:5], random_state=1), model.score_p_value(X[:5], random_state=1))


def test_what_cannot_be_simulated_is_named() -> None:
    model = MultinomialNB().fit([[1, 2], [2, 1]], [0, 1])
    with pytest.raises(ValueError, match="a length that is not whole"):
        model.score_p_value([[0.5, 0.2]])
    with pytest.raises(ValueError, match="n_samples must be a whole number"):
        model.score_p_value([[1, 1]], n_samples=0)
    with pytest.raises(ValueError, match="within_class must be True or False"):
        model.score_p_value([[1, 1]], within_class="yes")
