"""The decision is the one whose expected cost is least, and rejecting is one of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB as PeerNB

from bayesgen import (
    GaussianNB,
    MultinomialNB,
    UndefinedNumberError,
    ZeroProbabilityWarning,
    decide,
    expected_cost,
    probability_best,
)

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def model():
    return GaussianNB(random_state=0).fit(X, NAMES[Y])


def test_with_equal_costs_it_is_the_prediction(model) -> None:
    assert_array_equal(decide(model, X), model.predict(X))
    assert_allclose(expected_cost(model.predict_proba(X)), 1.0 - model.predict_proba(X), atol=1e-15)


def test_chows_rule(model) -> None:
    found = decide(model, X, reject_cost=0.1)
    sure = model.predict_proba(X).max(axis=1) >= 0.9
    assert 0 < (~sure).sum() < 50
    assert_array_equal(found, np.where(sure, model.predict(X), "reject"))


def test_costs_are_weighed_by_brute_force(model) -> None:
    cost = np.array([[0.0, 2.0, 3.0, 0.4], [1.0, -0.5, 9.0, 0.3], [4.0, 0.5, 0.0, 0.2]])
    proba = model.predict_proba(X)
    labels = [*NAMES, "?"]
    for i in range(0, 150, 7):
        costs = [sum(proba[i, k] * cost[k, a] for k in range(3)) for a in range(4)]
        assert_allclose(expected_cost(proba, cost)[i], costs, rtol=1e-12)
        assert decide(model, X[[i]], cost, reject_label="?")[0] == labels[int(np.argmin(costs))]


def test_no_other_rule_costs_less_in_the_long_run() -> None:
    rng = np.random.default_rng(0)
    model = GaussianNB(inference="mean").fit(X[50:], Y[50:])
    new, y = model.sample(4000, random_state=rng)
    cost = np.array([[0.0, 1.0], [8.0, 0.0]])

    def paid(labels) -> float:
        return cost[y - 1, labels - 1].mean()

    ours = paid(decide(model, new, cost))
    for other in (model.predict(new), np.full(len(y), 1), np.full(len(y), 2)):
        assert ours < paid(other)


def test_a_class_prior_of_another_population_counts(model) -> None:
    shifted = [0.98, 0.01, 0.01]
    assert_array_equal(decide(model, X, class_prior=shifted), model.predict(X, class_prior=shifted))


def test_any_classifier_with_probabilities_will_do() -> None:
    peer = PeerNB().fit(X, Y)
    found = decide(peer, X, reject_cost=0.05)
    assert found.dtype.kind == "i"
    assert set(found.tolist()) == {-1, 0, 1, 2}


@pytest.mark.filterwarnings("ignore::bayesgen.ZeroProbabilityWarning")
def test_impossible_rows_are_rejected_or_an_error() -> None:
    model = MultinomialNB(inference="mle").fit([[1, 0, 0], [0, 1, 0]], [True, False])
    rows = [[1, 0, 0], [0, 0, 1]]
    assert decide(model, rows, reject_cost=0.3).tolist() == [True, -1]
    with pytest.raises(ValueError, match=r"row 1 has probability zero in every class.*reject_cost="):
        decide(model, rows)
    with pytest.warns(ZeroProbabilityWarning):
        decide(model, rows, reject_cost=0.3)


def test_the_probability_that_a_decision_is_best_is_that_of_draws(model) -> None:
    cost = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 6.0, 0.0]])
    found = probability_best(model, X, cost, reject_cost=0.2, n_draws=400)
    assert found.shape == (150, 4)
    assert_allclose(found.sum(axis=1), 1.0)
    draws = model.sample_proba(X, 400, random_state=7)
    best = (draws @ np.column_stack([cost, np.full(3, 0.2)])).argmin(axis=2)
    expected = np.stack([(best == a).mean(axis=0) for a in range(4)], axis=1)
    assert_allclose(found, expected, atol=5 * np.sqrt(0.25 / 400) * np.sqrt(2))
    assert_array_equal(found, probability_best(model, X, cost, reject_cost=0.2, n_draws=400))  # the model's own seed
    with pytest.raises(UndefinedNumberError, match="no posterior"):
        probability_best(GaussianNB(inference="mle").fit(X, Y), X)


def test_costs_that_cannot_be_meant_are_named(model) -> None:
    with pytest.raises(ValueError, match=r"shape \(3, 3\), a row for each true class.*or \(3, 4\).*got shape \(2, 2\)"):
        decide(model, X, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="matrix of finite numbers"):
        decide(model, X, np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="has a column for rejecting already"):
        decide(model, X, np.ones((3, 4)), reject_cost=1.0)
    with pytest.raises(ValueError, match="reject_cost must be a number, or one for each of the 3 classes"):
        decide(model, X, reject_cost=[1.0, 2.0])
    with pytest.raises(ValueError, match="reject_label='setosa' is one of the classes"):
        decide(model, X, reject_cost=0.1, reject_label="setosa")
    with pytest.raises(ValueError, match="nothing says what rejecting costs"):
        decide(model, X, reject_label="?")
    with pytest.raises(ValueError, match=r"proba must be an array \(rows, classes\)"):
        expected_cost([0.5, 0.5])
    with pytest.raises(ValueError, match=r"cost must be a matrix of finite numbers.*got \[\[0, 1\], \[1\]\]"):
        decide(model, X, [[0, 1], [1]])
    with pytest.raises(ValueError, match="proba must be an array of numbers"):
        expected_cost([[0.5, 0.5], [1.0]])
    with pytest.raises(ValueError, match="reject_label must be one label"):
        decide(model, X, reject_cost=0.1, reject_label=["a"])


def test_what_is_no_classifier_is_named() -> None:
    peer = PeerNB().fit(X, Y)
    with pytest.raises(ValueError, match="estimator must be a fitted classifier with predict_proba; got 'a'"):
        decide("a", X)
    with pytest.raises(NotFittedError, match="this GaussianNB is not fitted"):
        decide(PeerNB(), X)
    with pytest.raises(ValueError, match="estimator must be a fitted classifier of this library"):
        probability_best(peer, X)


def test_costs_in_a_frame_are_those_of_their_labels(model) -> None:
    pd = pytest.importorskip("pandas")
    costs = np.array([[0.0, 1.0, 5.0, 0.4], [2.0, 0.0, 3.0, 0.5], [9.0, 4.0, 0.0, 0.6]])
    names = model.classes_
    for width in (3, 4):
        frame = pd.DataFrame(costs[:, :width], index=names, columns=[*names, "ask"][:width])
        expected = decide(model, X, costs[:, :width])
        proba = model.predict_proba(X)
        for other in (frame, frame.iloc[[2, 0, 1], ::-1], pd.DataFrame(costs[:, :width])):
            assert_array_equal(decide(model, X, other), expected)
            assert_array_equal(expected_cost(proba, other), proba @ costs[:, :width])
        assert_array_equal(
            probability_best(model, X[:9], frame.iloc[[2, 0, 1], ::-1], n_draws=50),
            probability_best(model, X[:9], costs[:, :width], n_draws=50),
        )
    for bad in (
        frame.rename(index={"setosa": "rose"}),
        frame.rename(columns={"setosa": "rose"}),
        frame.iloc[[0, 0, 1]],
        pd.DataFrame(costs, index=names),
    ):
        with pytest.raises(ValueError, match=r"rows and columns must be the classes \['setosa', 'versi"):
            decide(model, X, bad)
    numbers = GaussianNB().fit(X, Y + 1)
    frame = pd.DataFrame(costs[:, :3], index=[1, 2, 3], columns=[1, 2, 3])
    assert_array_equal(decide(numbers, X, frame.iloc[::-1]), decide(numbers, X, costs[:, :3]))


def test_dates_are_decided_on_as_dates() -> None:
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[ns]")
    model = GaussianNB().fit(X, days[Y])
    assert_array_equal(decide(model, X), model.predict(X))
    found = decide(model, X, reject_cost=0.1)
    kept = found != -1
    assert 0 < kept.sum() < len(X)
    assert_array_equal(found[kept].astype(days.dtype), model.predict(X)[kept])
    with pytest.raises(ValueError, match="is one of the classes"):
        decide(model, X, reject_cost=0.1, reject_label=days[0])
    estimate = model.estimate_class_prior(X)
    assert "2021-01-01" in repr(estimate)
