"""What users write has the types that the documentation says: run by pytest, and checked by mypy (see pyproject.toml).

`assert_type` does nothing at run time; mypy refuses the file where the type of an expression is another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np

import bayesgen
from bayesgen import (
    Evidence,
    FeatureRelevance,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    ImportanceOptions,
    MultinomialNB,
    NUTSOptions,
    Statistics,
    decide,
    expected_cost,
    feature_relevance,
    probability_best,
)
from bayesgen.explain import Explanation, LogOdds
from bayesgen.families import Gaussian, Labels, Poisson
from bayesgen.fit import LooResult
from bayesgen.learning import LearnedPrior

X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0], [5.0, 1.0], [6.0, 0.0], [8.0, 2.0]])
Y = np.array(["a", "a", "a", "b", "b", "b"])


def test_fitting_gives_the_estimator_itself() -> None:
    model = assert_type(GaussianNB().fit(X, Y), GaussianNB)
    assert_type(model.partial_fit(X, Y), GaussianNB)
    assert_type(model.forget(X, Y), GaussianNB)
    assert_type(model.merge(GaussianNB().fit(X, Y)), GaussianNB)
    assert_type(GaussianDiscriminantAnalysis(covariance="per_class").fit(X, Y), GaussianDiscriminantAnalysis)
    assert_type(MultinomialNB().fit_soft(X, np.eye(2)[[0, 0, 0, 1, 1, 1]], ["a", "b"]), MultinomialNB)


def test_predictions_are_arrays() -> None:
    model = GaussianNB().fit(X, Y)
    assert assert_type(model.predict(X), np.ndarray).shape == (6,)
    assert assert_type(model.predict_proba(X), np.ndarray).shape == (6, 2)
    assert assert_type(model.predict_log_proba(X), np.ndarray).shape == (6, 2)
    assert assert_type(model.predict_joint_log_proba(X), np.ndarray).shape == (6, 2)
    assert assert_type(model.sample_proba(X, n_draws=3), np.ndarray).shape == (3, 6, 2)
    assert assert_type(model.score_samples(X), np.ndarray).shape == (6,)
    assert assert_type(model.score(X, Y), float) <= 1.0
    low, high = assert_type(model.predict_proba_interval(X), tuple[np.ndarray, np.ndarray])
    assert (low <= high).all()


def test_results_have_types_of_their_own() -> None:
    model = GaussianNB().fit(X, Y)
    assert_type(model.log_evidence_, float)
    assert_type(model.statistics_, Statistics)
    loo = assert_type(model.loo(X, Y), LooResult)
    assert_type(loo.log_joint, np.ndarray)
    assert_type(loo.elpd_conditional, float)
    assert_type(loo.se_joint, float)
    explanation = assert_type(model.explain(X), Explanation)
    assert_type(explanation.contributions, np.ndarray)
    odds = assert_type(explanation.log_odds(0), LogOdds)
    assert isinstance(assert_type(odds.total, float), float)
    relevance = assert_type(feature_relevance(model, X, Y), FeatureRelevance)
    assert_type(relevance.log_bayes_factor, np.ndarray)


def test_decisions_are_arrays() -> None:
    model = GaussianNB().fit(X, Y)
    cost = [[0.0, 1.0], [5.0, 0.0]]
    assert assert_type(decide(model, X, cost), np.ndarray).shape == (6,)
    assert assert_type(expected_cost(model.predict_proba(X), cost), np.ndarray).shape == (6, 2)
    assert assert_type(probability_best(model, X, cost), np.ndarray).shape == (6, 2)


def test_what_was_learned_has_a_type() -> None:
    counts = np.array([[3, 0, 1], [2, 2, 0], [0, 1, 4], [1, 0, 5]])
    model = MultinomialNB(alpha=Evidence()).fit(counts, [0, 0, 1, 1])
    learned = assert_type(model.learned_, LearnedPrior)
    assert assert_type(learned.value, np.ndarray).size == 1


def test_options_are_values() -> None:
    assert assert_type(NUTSOptions(), NUTSOptions) == NUTSOptions()
    assert assert_type(ImportanceOptions(), ImportanceOptions) == ImportanceOptions()


def test_families_are_values_that_keep_their_type() -> None:
    family = assert_type(Poisson().init(X, 2), Poisson)
    stats = family.stats(X, Labels(np.array([0, 0, 0, 1, 1, 1])))
    assert_type(family.resolve(stats).condition(stats), Poisson)
    assert_type(Gaussian(loc=0.0, scale=1.0).replace(shape=3.0), Gaussian)


def test_the_version_is_text() -> None:
    assert assert_type(bayesgen.__version__, str)


def test_files_are_named_by_text_or_path(tmp_path: Path) -> None:
    model = GaussianNB().fit(X, Y)
    model.save(tmp_path / "model.bayesgen")
    model.save(str(tmp_path / "again.bayesgen"))
    np.testing.assert_array_equal(bayesgen.load(tmp_path / "model.bayesgen").predict(X), model.predict(X))
