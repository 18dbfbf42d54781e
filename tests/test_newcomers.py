"""What somebody new to the library, coming from scikit-learn, runs into first."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bayesgen
from bayesgen import BernoulliNB, GaussianNB, MixedNB, MultinomialNB, NormalInverseGamma


@pytest.mark.parametrize(
    "texts", [["good film", "bad film"], np.array(["good film", "bad film"]), pd.Series(["a b", "c"])]
)
@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB])
def test_texts_are_to_be_counted_first(kind, texts):
    with pytest.raises(ValueError, match="CountVectorizer"):
        kind().fit(texts, [0, 1])


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("LinearDiscriminantAnalysis", r"GaussianDiscriminantAnalysis\(\)"),
        ("QuadraticDiscriminantAnalysis", "covariance='per_class'"),
        ("ComplementNB", "MultinomialNB"),
    ],
)
def test_names_of_scikit_learn_say_what_to_use(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(bayesgen, name)


def test_the_program_outside_a_handler_says_how_to_run_it():
    model = GaussianNB().fit([[1.0], [2.0], [4.0]], [0, 0, 1])
    with pytest.raises(RuntimeError, match=r"handlers\.seed.*Predictive"):
        model.model()


def test_dates_have_no_automatic_type():
    frame = pd.DataFrame({"size": [1.5, 2.5, 3.5], "when": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])})
    with pytest.raises(ValueError, match="'when' holds dates"):
        MixedNB().fit(frame, [0, 1, 1])


def test_class_probabilities_by_name_are_refused_with_their_order():
    with pytest.raises(ValueError, match=r"class_prior.*order of classes_"):
        MultinomialNB(class_prior={"a": 0.5, "b": 0.5}).fit([[1, 0], [0, 1]], ["a", "b"])


def test_a_prior_shows_what_was_stated():
    assert repr(NormalInverseGamma(2.0)) == "NormalInverseGamma(mean=2.0, mean_precision=0.01, shape=1.5, scale=None)"


def test_a_sparse_matrix_can_be_a_mixed_model():
    rng = np.random.default_rng(0)
    words, sizes, y = rng.poisson(0.5, (40, 6)), rng.normal(size=(40, 1)), rng.integers(0, 2, 40)
    table = np.hstack([words, sizes])
    blocks = [("words", MultinomialNB(), slice(0, 6)), ("size", GaussianNB(), [6])]
    for model in (MixedNB(blocks=blocks), MixedNB()):
        dense = model.fit(table, y).predict_log_proba(table)
        for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
            np.testing.assert_allclose(model.fit(kind(table), y).predict_log_proba(kind(table)), dense, rtol=1e-12)
