"""Blocks of a mixed model: made from a table, chosen by selectors, correlated, of text; on real mixed tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    auto_blocks,
)

pd = pytest.importorskip("pandas")
LABELS = np.array(["low", "high"] * 4)


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "colour": ["red", "blue", None, "red", "blue", "green", "red", "blue"],
            "member": [True, False, True, True, False, False, True, False],
            "visits": [0, 4, 1, 3, 0, 5, 2, 6],
            "grade": [-1, 2, 0, 1, -1, 2, 0, 1],
            "height": [1.5, 1.75, np.nan, 1.83, 1.61, 1.9, 1.55, 1.8],
            "weight": [50.5, 70.1, 55.2, 80.9, 60.3, 85.8, 52.4, 77.7],
        }
    )


def test_the_blocks_of_auto_can_be_read_and_passed_on(table):
    blocks = auto_blocks(table)
    assert [(name, type(estimator), columns) for name, estimator, columns in blocks] == [
        ("bernoulli", BernoulliNB, ["member"]),
        ("categorical", CategoricalNB, ["colour", "visits", "grade"]),
        ("gaussian", GaussianNB, ["height", "weight"]),
    ]
    stated, auto = MixedNB(blocks=blocks).fit(table, LABELS), MixedNB().fit(table, LABELS)
    np.testing.assert_allclose(stated.predict_log_proba(table), auto.predict_log_proba(table), rtol=1e-13)
    assert stated.log_evidence_ == pytest.approx(auto.log_evidence_, rel=1e-13)
    assert auto_blocks(table.to_numpy())[1][2] == [0, 2, 3]


def test_a_kind_that_is_named_overrides_the_automatic_one(table):
    kinds = {"visits": "poisson", "height": "multivariate_gaussian", "weight": "multivariate_gaussian", "grade": "drop"}
    blocks = auto_blocks(table, kinds)
    assert [(name, columns) for name, _, columns in blocks] == [
        ("bernoulli", ["member"]),
        ("categorical", ["colour"]),
        ("multivariate_gaussian", ["height", "weight"]),
        ("poisson", ["visits"]),
    ]
    with pytest.raises(ValueError, match="'visitors', which X does not have"):
        auto_blocks(table, {"visitors": "poisson"})
    with pytest.raises(ValueError, match=r"kinds\['visits'\] must be one of .*multinomial, drop; got 'normal'"):
        auto_blocks(table, {"visits": "normal"})
    assert auto_blocks(table, {2: "poisson"})[-1][2] == ["visits"]
    with pytest.raises(ValueError, match="kinds must be a dict"):
        auto_blocks(table, "poisson")
    with pytest.raises(ValueError, match="goes by position"):
        MixedNB(blocks=[("all", GaussianNB(), slice("height", "weight"))]).fit(table, LABELS)
    with pytest.raises(ValueError, match="1 dimensions"):
        auto_blocks(np.zeros(3))


def test_a_block_of_correlated_normals_is_a_discriminant_analysis_times_the_rest():
    X, y = load_iris(return_X_y=True)
    kinds = {j: "multivariate_gaussian" for j in (0, 1, 2)}
    model = MixedNB(blocks=auto_blocks(X, kinds)).fit(X, y)
    three = GaussianDiscriminantAnalysis().fit(X[:, :3], y)
    one = GaussianNB().fit(X[:, 3:], y)
    joint = three.predict_joint_log_proba(X[:, :3]) + one.predict_joint_log_proba(X[:, 3:]) - one.class_log_prior_
    np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, rtol=1e-12)


def test_columns_may_be_chosen_by_a_selector(table):
    table = table.drop(columns="member")
    numbers = make_column_selector(dtype_include=float)
    blocks = [("numbers", GaussianNB(), numbers), ("kinds", CategoricalNB(), ["colour"])]
    model = MixedNB(blocks=blocks).fit(table, LABELS)
    assert [(name, columns.tolist()) for name, _, columns in model.blocks_] == [("numbers", [3, 4]), ("kinds", [0])]
    with pytest.raises(ValueError, match="a slice or a selector; got 7"):
        MixedNB(blocks=[("numbers", GaussianNB(), lambda X: 7.0)]).fit(table, LABELS)


def test_text_and_numbers_are_one_model_after_a_column_transformer():
    frame = pd.DataFrame(
        {
            "review": ["good good fun", "fun and good", "bad dull", "dull dull bad", "good", "bad and sad"],
            "stars": [4.5, 4.0, 1.5, 1.0, 5.0, 2.0],
            "words": [3, 3, 2, 3, 1, 3],
        }
    )
    y = np.array([1, 1, 0, 0, 1, 0])
    columns = ColumnTransformer(
        [("text", CountVectorizer(), "review"), ("numbers", "passthrough", ["stars", "words"])], sparse_threshold=1.0
    )
    blocks = [
        ("text", MultinomialNB(), slice(None, -2)),
        ("stars", GaussianNB(), [-2]),
        ("words", PoissonNB(), [-1]),
    ]
    model = make_pipeline(columns, MixedNB(blocks=blocks)).fit(frame, y)
    counts = CountVectorizer().fit_transform(frame["review"])
    joint = MultinomialNB().fit(counts, y).predict_joint_log_proba(counts)
    for part, name in ((GaussianNB(), "stars"), (PoissonNB(), "words")):
        part.fit(frame[[name]], y)
        joint += part.predict_joint_log_proba(frame[[name]]) - part.class_log_prior_
    expected = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_log_proba(frame), expected, rtol=1e-10)


def test_a_column_of_identifiers_is_warned_of():
    frame = pd.DataFrame({"id": [f"customer {i}" for i in range(60)], "size": np.arange(60.0) / 7})
    with pytest.warns(UserWarning, match=r"'id' has 60 different values in 60 rows.*CountVectorizer"):
        MixedNB().fit(frame, np.arange(60) % 2)
    MixedNB(blocks=auto_blocks(frame, {"id": "drop"})).fit(frame, np.arange(60) % 2)  # a warning would be an error


def split(frame, target, seed):
    """Training and test rows, with their labels."""
    return train_test_split(frame.drop(columns=target), frame[target], test_size=0.3, random_state=seed)


def test_a_real_table_of_mixed_columns_runs_as_it_comes(data):
    """Credit scoring: 13 columns of numbers and texts, 455 missing cells.

    The columns repeat each other, so that the plain product is surer than it may be; the power takes that back.
    """
    frame = data("credit_data")
    assert frame.isna().sum().sum() == 455
    base = stats.entropy(frame["Status"].value_counts(normalize=True))
    for seed in range(2):
        train, test, y, y_test = split(frame, "Status", seed)
        plain, power = (MixedNB(likelihood_power=p).fit(train, y).predict_proba(test) for p in (1.0, "loo"))
        assert log_loss(y_test, power) < base - 0.02
        assert log_loss(y_test, power) < log_loss(y_test, plain) - 0.05


def test_discretised_columns_are_categories():
    """Each column in bins is a category of naive Bayes; the binned model tells the species too."""
    X, y = load_iris(return_X_y=True)
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="uniform")
    binned = make_pipeline(bins, CategoricalNB()).fit(X, y)
    codes = bins.fit_transform(X).astype(int)
    inside = (codes[y == 0] == codes[0]).sum(axis=0)
    by_hand = np.log(50 + 1) - np.log(150 + 3) + np.log((inside + 1) / (50 + 5)).sum()
    assert binned[-1].predict_joint_log_proba(codes[:1])[0, 0] == pytest.approx(by_hand)
    assert binned.score(X, y) > 0.9
