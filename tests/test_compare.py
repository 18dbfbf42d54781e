"""The table of models says what independent computation says, and compares only what can be compared."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Evidence,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    PoissonNB,
    compare,
)
from bayesgen.comparison import HeldOut, calibration_error
from bayesgen.families import Multinomial, MultivariateGaussian

NIG = NormalInverseGamma(mean=0.0, mean_precision=1.0, shape=2.0, scale=1.0)
NIW = NormalInverseWishart(mean=np.zeros(3), mean_precision=1.0, df=6.0, scale=np.eye(3))


@pytest.fixture
def measurements(rng):
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 40)]
    return rng.normal(size=(40, 3)) + (y == "a")[:, None] * [1.0, 0.5, 0.0], y


@pytest.fixture
def words(rng):
    y = rng.integers(0, 2, 30)
    return rng.poisson(np.where(y[:, None] == 0, [3.0, 1.0, 0.5, 0.1], [1.0, 2.0, 0.5, 0.3])), y


def refits(estimator, X, y, weights=None):
    """ln p(x_i, y = k | all other rows) by fitting without each row; every class stays in the others."""
    n = len(y)
    weights = np.ones(n) if weights is None else weights
    out = []
    for i in range(n):
        rest = np.arange(n) != i
        model = estimator.fit(X[rest], y[rest], sample_weight=weights[rest])
        out.append(model.predict_joint_log_proba(X[i : i + 1])[0])
    return np.array(out)


# --------------------------------------------------------------------- evidence, leave-one-out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["multinomial", "bernoulli", "gaussian"])
def test_leave_one_out_is_that_of_brute_refits_and_its_error_is_paired(rng, words, measurements, name, weighted):
    X, y = measurements if name == "gaussian" else words
    pair = {
        "multinomial": (MultinomialNB(alpha=0.5), MultinomialNB(alpha=3.0)),
        "bernoulli": (BernoulliNB(alpha=0.5), BernoulliNB(alpha=(2.0, 1.0))),
        "gaussian": (GaussianNB(prior=NIG), GaussianDiscriminantAnalysis(prior=NIW)),
    }[name]
    weights = rng.uniform(0.5, 2.0, len(y)) if weighted else None
    table = compare({"one": pair[0], "two": pair[1]}, X, y, sample_weight=weights)
    codes = np.searchsorted(np.unique(y), y)
    conditional = {}
    for key, estimator in zip(("one", "two"), pair, strict=True):
        joint = refits(estimator, X, y, weights)
        own = joint[np.arange(len(y)), codes]
        conditional[key] = own - np.log(np.exp(joint).sum(axis=1))
        assert table.loc[key, "elpd_joint"] == pytest.approx(own.sum(), rel=1e-10)
        assert table.loc[key, "elpd_conditional"] == pytest.approx(conditional[key].sum(), rel=1e-9)
        spread = np.sqrt(len(y) * np.sum((conditional[key] - conditional[key].mean()) ** 2) / (len(y) - 1))
        assert table.loc[key, "se_conditional"] == pytest.approx(spread, rel=1e-9)
        np.testing.assert_allclose(table.attrs["loo"][key].conditional, conditional[key], rtol=1e-8, atol=1e-10)
    best, other = sorted(conditional, key=lambda k: -conditional[k].sum())
    assert list(table.index) == [best, other]
    difference = conditional[other] - conditional[best]
    assert table.loc[best, ["elpd_difference", "se_difference"]].tolist() == [0.0, 0.0]
    assert table.loc[other, "elpd_difference"] == pytest.approx(difference.sum(), rel=1e-7)
    paired = np.sqrt(len(y) * np.sum((difference - difference.mean()) ** 2) / (len(y) - 1))
    assert table.loc[other, "se_difference"] == pytest.approx(paired, rel=1e-7)
    # Not the error of two independent sums: the rows are the same.
    assert paired < np.hypot(*table["se_conditional"])


def test_a_log_bayes_factor_is_the_difference_of_two_chains_of_one_step_predictives(words):
    X, y = words
    models = {"a": MultinomialNB(alpha=0.5), "b": MultinomialNB(alpha=[1.0, 2.0, 0.5, 0.1])}
    table = compare(models, X, y)
    chain = {}
    for name, estimator in models.items():
        log_p = [-np.log(2)]  # the first label, under a flat prior
        start = MultinomialNB(alpha=estimator.alpha).fit(X[:1], y[:1])
        log_p.append(start.log_evidence_parts_["x_given_y"])
        model = MultinomialNB(alpha=estimator.alpha).partial_fit(X[:1], y[:1], classes=[0, 1])
        for i in range(1, len(y)):
            log_p.append(model.predict_joint_log_proba(X[i : i + 1])[0, y[i]])
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        chain[name] = sum(log_p)
        assert table.loc[name, "log_evidence"] == pytest.approx(chain[name], rel=1e-12)
    best = max(chain.values())
    for name in models:
        assert table.loc[name, "log_bayes_factor"] == pytest.approx(chain[name] - best, abs=1e-9)


def test_weights_of_two_are_rows_twice_in_the_evidence_and_weight_zero_is_no_row(words):
    X, y = words
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    model = {"m": MultinomialNB()}
    twice = compare(model, np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int)))
    once = compare(model, X, y, sample_weight=weights)
    assert once.loc["m", "log_evidence"] == pytest.approx(twice.loc["m", "log_evidence"], rel=1e-12)
    zero = np.where(np.arange(len(y)) < 20, 1.0, 0.0)
    some, none = compare(model, X, y, sample_weight=zero), compare(model, X[:20], y[:20])
    kept = ["log_evidence", "elpd_joint", "se_joint", "elpd_conditional", "se_conditional"]
    np.testing.assert_allclose(some.loc["m", kept].astype(float), none.loc["m", kept].astype(float), rtol=1e-12)
    assert len(some.attrs["loo"]["m"].joint) == 20


# --------------------------------------------------------------------- the measure


def test_gaussian_models_are_on_one_measure_and_counts_on_several(words, measurements):
    X, y = measurements
    family = MultivariateGaussian(mean_precision=1.0, df=6.0, scale=np.eye(3), loc=np.zeros(3))
    table = compare(
        {
            "naive": GaussianNB(prior=NIG),
            "shared": GaussianNB(variance="shared", prior=NIG),
            "full": GaussianDiscriminantAnalysis(prior=NIW),
            "full again": GenerativeClassifier(family=family),
            "blocks": MixedNB(blocks=[("p", GaussianNB(prior=NIG), [0, 2]), ("q", GaussianNB(prior=NIG), [1])]),
            "not all columns": MixedNB(blocks=[("p", GaussianNB(prior=NIG), [0, 2])]),
        },
        X,
        y,
    )
    same = table.drop(index="not all columns")
    assert set(same["measure"]) == {"real numbers"}
    assert same["log_bayes_factor"].notna().all()
    assert same["log_bayes_factor"].max() == 0.0
    gap = same.loc["naive", "log_evidence"] - same.loc["full", "log_evidence"]
    factors = same["log_bayes_factor"]
    assert factors["naive"] - factors["full"] == pytest.approx(gap, rel=1e-12)
    assert same.loc["blocks", "log_evidence"] == pytest.approx(same.loc["naive", "log_evidence"], rel=1e-12)
    assert table.loc["not all columns", "measure"] == "real numbers of columns 0, 2"
    assert np.isnan(table.loc["not all columns", "log_bayes_factor"])

    X, y = words
    table = compare(
        {
            "tokens": MultinomialNB(),
            "tokens too": GenerativeClassifier(family=Multinomial(0.5)),
            "counts": MultinomialNB(multinomial_coefficient=True),
            "presence": BernoulliNB(),
            "twice": BernoulliNB(binarize=1.0),
            "poisson": PoissonNB(prior=Gamma(2.0, 1.0)),
            "categories": CategoricalNB(),
        },
        X,
        y,
    )
    assert table.loc["tokens", "measure"] == table.loc["tokens too", "measure"]
    assert table["measure"].nunique() == 6
    alone = table.drop(index=["tokens", "tokens too"])
    assert alone["log_bayes_factor"].isna().all()
    assert table.loc[["tokens", "tokens too"], "log_bayes_factor"].max() == 0.0
    # The coefficient is a constant of the data: ln p(y | x) does not know it.
    assert table.loc["counts", "elpd_conditional"] == pytest.approx(table.loc["tokens", "elpd_conditional"], rel=1e-12)
    assert table.loc["counts", "elpd_joint"] > table.loc["tokens", "elpd_joint"] + 1


def test_mixed_models_are_on_one_measure_if_their_columns_are_of_the_same_kinds(rng):
    X = np.column_stack([rng.normal(size=(20, 2)), rng.integers(0, 3, (20, 2)), rng.poisson(2.0, (20, 2))])
    y = np.arange(20) % 2

    def mixed(*blocks):
        return MixedNB(blocks=[(f"b{i}", e, c) for i, (e, c) in enumerate(blocks)])

    table = compare(
        {
            "one": mixed((GaussianNB(), [0, 1]), (CategoricalNB(), [2, 3]), (PoissonNB(), [4, 5])),
            "other order": mixed((PoissonNB(), [5, 4]), (CategoricalNB(), [2, 3]), (GaussianNB(), [0, 1])),
            "other types": mixed((GaussianNB(), [0, 1, 2]), (CategoricalNB(), [3]), (PoissonNB(), [4, 5])),
            "one document": mixed((GaussianNB(), [0, 1]), (CategoricalNB(), [2, 3]), (MultinomialNB(), [4, 5])),
            "two documents": mixed(
                (GaussianNB(), [0, 1]), (CategoricalNB(), [2, 3]), (MultinomialNB(), [4]), (MultinomialNB(), [5])
            ),
        },
        X,
        y,
    )
    what = table["measure"]
    assert what["one"] == "categories of columns 2-3; counts of columns 4-5; real numbers of columns 0-1"
    assert what["one"] == what["other order"]
    assert what.nunique() == 4


def test_the_table_says_which_priors_have_seen_the_data(words, measurements):
    X, y = measurements
    X = X * [1.0, 5.0, 0.2] * np.where(y == "a", 4.0, 1.0)[:, None]  # variances that differ: a finite shape is learned
    table = compare(
        {
            "stated": GaussianNB(prior=NIG),
            "scaled": GaussianNB(),
            "half stated": GaussianNB(prior=NormalInverseGamma(mean=0.0)),
            "learned": GaussianNB(prior="evidence"),
            "block": MixedNB(blocks=[("p", GaussianNB(prior=NIG), [0]), ("q", GaussianNB(), [1, 2])]),
            "stated blocks": MixedNB(blocks=[("p", GaussianNB(prior=NIG), [0, 1, 2])]),
        },
        X,
        y,
    )
    expected = {"stated": False, "scaled": True, "half stated": True, "learned": True, "block": True}
    assert table["prior_uses_data"].to_dict() == {**expected, "stated blocks": False}
    X, y = words
    table = compare(
        {
            "flat": MultinomialNB(),
            "learned": MultinomialNB(alpha=Evidence(base="background")),
            "random": MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance"),
        },
        X,
        y,
    )
    assert table["prior_uses_data"].to_dict() == {"flat": False, "learned": True, "random": False}
    # A random concentration has an evidence by quadrature, and no closed leave-one-out.
    assert np.isfinite(table.loc["random", "log_evidence"])
    assert np.isnan(table.loc["random", "elpd_conditional"])
    assert "leave-one-out" in table.attrs["notes"]["random"]
    assert "random" not in table.attrs["loo"]


# --------------------------------------------------------------------- numbers that do not exist


def test_what_does_not_exist_is_nan_with_a_reason(measurements):
    X, y = measurements
    table = compare(
        {
            "reference": GaussianDiscriminantAnalysis(prior="reference"),
            "mle": GaussianDiscriminantAnalysis(prior=NIW, inference="mle"),
            "exact": GaussianDiscriminantAnalysis(prior=NIW),
            "logistic": LogisticRegression(),
        },
        X,
        y,
        cv=3,
    )
    assert np.isnan(table.loc["reference", "log_evidence"])
    assert "improper" in table.attrs["notes"]["reference"]
    assert np.isfinite(table.loc["reference", "elpd_conditional"])  # its posterior is proper
    numbers = ["log_evidence", "elpd_joint", "elpd_conditional", "elpd_difference"]
    assert table.loc["logistic", numbers].isna().all()
    assert "LogisticRegression" in table.attrs["notes"]["logistic"]
    # Evidence and leave-one-out are of the model, whatever the route; held-out predictions are of the route.
    assert table.loc["mle", numbers].tolist() == table.loc["exact", numbers].tolist()
    assert table.loc["mle", "log_loss"] != table.loc["exact", "log_loss"]
    assert "mle" not in table.attrs["notes"]
    assert table["log_loss"].is_monotonic_increasing
    assert table.attrs["sorted_by"] == "log_loss"


def test_rows_without_a_leave_one_out_density_are_counted():
    X, y = [[3, 0], [2, 1], [0, 4]], [0, 0, 1]
    table = compare({"haldane": MultinomialNB(alpha=0.0), "flat": MultinomialNB()}, X, y)
    assert np.isnan(table.loc["haldane", "elpd_conditional"])
    assert "1 of 3 rows" in table.attrs["notes"]["haldane"]
    assert np.isfinite(table.loc["flat", "elpd_conditional"])


# --------------------------------------------------------------------- held-out scores


def test_held_out_scores_are_those_of_scikit_learn(measurements):
    X, y = measurements
    models = {
        "naive": GaussianNB(),
        "full": GaussianDiscriminantAnalysis(inference="mle"),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    splitter = StratifiedKFold(4, shuffle=True, random_state=0)
    table = compare(models, X, y, cv=splitter)
    for name, estimator in models.items():
        proba, predicted = np.zeros((40, 3)), np.empty(40, dtype=y.dtype)
        for train, out in splitter.split(X, y):
            estimator.fit(X[train], y[train])
            proba[out], predicted[out] = estimator.predict_proba(X[out]), estimator.predict(X[out])
        assert table.loc[name, "accuracy"] == pytest.approx(accuracy_score(y, predicted), rel=1e-12)
        assert table.loc[name, "log_loss"] == pytest.approx(log_loss(y, proba), rel=1e-10)
        square = np.mean(
            [
                sum((row[k] - (c == label)) ** 2 for k, c in enumerate("abc"))
                for row, label in zip(proba, y, strict=True)
            ]
        )
        assert table.loc[name, "brier"] == pytest.approx(square, rel=1e-10)
        assert table.loc[name, "impossible_rows"] == 0


def test_calibration_error_by_hand():
    # Six rows in three bins: |1/2 - .55| + |1 - .75| + |1/2 - .95|, a third each.
    confidence = np.array([0.9, 0.5, 0.6, 1.0, 0.7, 0.8])
    proba = np.column_stack([confidence, 1 - confidence])
    codes = np.array([1, 0, 1, 0, 0, 0])
    expected = (abs(1 / 2 - 0.55) + abs(1 - 0.75) + abs(1 / 2 - 0.95)) / 3
    assert calibration_error(proba, codes, n_bins=3) == pytest.approx(expected, abs=1e-12)
    order = np.array([3, 1, 5, 0, 4, 2])
    assert calibration_error(proba[order], codes[order], n_bins=3) == pytest.approx(expected, abs=1e-12)
    # Rows that are equally sure share a bin, in whatever order they come.
    same = np.full((8, 2), 0.5)
    same[:, 0], same[:, 1] = 0.75, 0.25
    codes = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    assert calibration_error(same, codes) == pytest.approx(0.0, abs=1e-12)
    assert calibration_error(same[::-1], codes[::-1]) == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(calibration_error(np.full((2, 2), np.nan), np.array([0, 1])))


def test_a_calibrated_model_has_a_small_calibration_error_and_a_sharpened_one_a_large_one(rng):
    p = rng.uniform(0.5, 1.0, 20_000)
    codes = (rng.random(20_000) > p).astype(int)
    honest = calibration_error(np.column_stack([p, 1 - p]), codes)
    sharp = p**4 / (p**4 + (1 - p) ** 4)
    # A bin of 1333 rows has a standard error of at most 0.0137; the mean of 15 absolute values is below that.
    assert honest < 0.0137
    assert calibration_error(np.column_stack([sharp, 1 - sharp]), codes) > 0.1


def test_rows_that_no_class_can_generate_are_counted_and_the_log_loss_is_infinite(words):
    X, y = np.array([[3, 0, 0, 1], [2, 1, 0, 0], [0, 3, 0, 0], [1, 4, 0, 0]]), np.array([0, 0, 1, 1])
    new, labels = np.array([[1, 0, 1, 0], [2, 0, 0, 0], [0, 1, 0, 0]]), np.array([0, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = compare({"mle": MultinomialNB(inference="mle"), "exact": MultinomialNB()}, X, y, test=(new, labels))
    assert table.loc["mle", "impossible_rows"] == 1
    assert table.loc["mle", "log_loss"] == np.inf
    assert table.loc["exact", "impossible_rows"] == 0
    proba = MultinomialNB(inference="mle").fit(X, y).predict_proba(new[1:])
    assert table.loc["mle", "brier"] == pytest.approx(np.mean([2 * proba[0, 1] ** 2, 2 * proba[1, 0] ** 2]), rel=1e-12)


def test_a_label_never_seen_has_probability_zero(measurements):
    X, y = measurements
    labels = np.array(["a", "new"])
    table = compare({"m": GaussianNB(), "k": KNeighborsClassifier()}, X, y, test=(X[:2], labels))
    assert (table["log_loss"] == np.inf).all()
    first = GaussianNB().fit(X, y)
    proba = first.predict_proba(X[:2])
    target = np.array([[1, 0, 0], [0, 0, 0]])
    expected = (((proba - target) ** 2).sum() + 1.0) / 2
    assert table.loc["m", "brier"] == pytest.approx(expected, rel=1e-12)


def test_a_splitter_may_hold_rows_out_more_than_once(measurements):
    X, y = measurements
    table = compare({"m": GaussianNB()}, X, y, cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0))
    assert 0 < table.loc["m", "accuracy"] <= 1
    weights = np.ones(40)
    weights[:5] = 0.0
    ours = compare({"m": GaussianNB()}, X, y, cv=KFold(2), sample_weight=weights)
    assert ours.loc["m", "log_loss"] == pytest.approx(by_hand(X, y, weights), rel=1e-12)


def by_hand(X, y, weights):
    """Log loss of two folds, of the rows with weight."""
    lost = []
    for train, out in KFold(2).split(X):
        model = GaussianNB().fit(X[train], y[train], sample_weight=weights[train])
        out = out[weights[out] > 0]
        lost += (
            -model.predict_log_proba(X[out])[np.arange(len(out)), np.searchsorted(model.classes_, y[out])]
        ).tolist()
    return np.mean(lost)


def test_each_column_goes_with_its_definition_of_best(words):
    X, y = words
    models = {f"{a}": MultinomialNB(alpha=a) for a in (50.0, 0.1, 1.0, 5.0)}
    table = compare(models, X, y)
    assert table["elpd_conditional"].is_monotonic_decreasing
    assert table.attrs["sorted_by"] == "elpd_conditional"
    assert (table["elpd_difference"] <= 0).all()
    tied = compare({"mean": MultinomialNB(inference="mean"), "exact": MultinomialNB()}, X, y, cv=3)
    assert tied["elpd_conditional"].nunique() == 1
    assert tied["log_loss"].is_monotonic_increasing


# --------------------------------------------------------------------- a well-behaved function


def test_nothing_that_was_given_is_changed(words):
    X, y = words
    models = {"a": MultinomialNB(), "b": LogisticRegression()}
    fitted = MultinomialNB(alpha=3.0).fit(X, y)
    models["c"] = fitted
    before, counts = copy.deepcopy(X), fitted.feature_count_.copy()
    compare(models, X[:20], y[:20], cv=2)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(fitted.feature_count_, counts)
    assert not hasattr(models["b"], "classes_")
    assert not models["a"].__sklearn_is_fitted__()


def test_sparse_matrices_and_data_frames_give_the_same_table(words):
    X, y = words
    columns = lambda t: t.drop(columns="seconds")  # noqa: E731
    models = {"m": MultinomialNB(), "b": BernoulliNB()}
    dense = columns(compare(models, X, y, cv=3))
    frame = pd.DataFrame(X, columns=list("abcd"))
    for other in (sp.csr_array(X), sp.coo_array(X), sp.csc_matrix(X), frame):
        pd.testing.assert_frame_equal(columns(compare(models, other, y, cv=3)), dense, rtol=1e-10)
    tested = compare(models, sp.coo_array(X), y, test=(sp.coo_array(X[:9]), y[:9]))
    assert np.isfinite(tested["log_loss"]).all()


def test_the_table_can_be_sorted_shown_joined_and_kept(words):
    X, y = words
    table = compare({"m": MultinomialNB(), "b": BernoulliNB()}, X, y)
    assert "<table" in table._repr_html_()
    both = pd.concat([table, table.sort_values("log_evidence")])
    assert len(both) == 4
    again = pickle.loads(pickle.dumps(table))
    assert again.attrs["loo"]["m"].elpd_joint == table.loc["m", "elpd_joint"]
    assert table.index.name == "model"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(estimators=[MultinomialNB()]), "must be a dict"),
        (dict(estimators={}), "must be a dict"),
        (dict(estimators={"m": MultinomialNB}), r"is the class MultinomialNB; give an instance, MultinomialNB\(\)"),
        (dict(estimators={"m": StandardScaler()}), "'m'.*not a classifier"),
        (dict(estimators={"m": GaussianNB(variance="both")}), "'m'.*variance"),
        (dict(cv=2, test=([[1, 2]], [0])), "cv or test, not both"),
        (dict(test=[[1, 2, 3, 4]]), r"pair \(X, y\)"),
        (dict(test=([[1, 2, 3, 4]], ["no"])), "different types"),
        (dict(estimators={"svm": LinearSVC()}, cv=2), "'svm'.*predict_proba"),
        (
            dict(estimators={"k": KNeighborsClassifier()}, sample_weight=np.ones(30)),
            "'k'.*KNeighborsClassifier.fit takes no sample_weight",
        ),
        (dict(y=np.linspace(0, 1, 30)), "continuous"),
    ],
)
def test_errors_name_the_argument_and_the_model(words, change, message):
    X, y = words
    given = {"estimators": {"m": MultinomialNB()}, "X": X, "y": y, **change}
    estimators, X, y = (given.pop(k) for k in ("estimators", "X", "y"))
    with pytest.raises(ValueError, match=message):
        compare(estimators, X, y, **given)


def test_a_model_without_log_probabilities_takes_part(words):
    X, y = words
    negative = make_pipeline(FunctionTransformer(), KNeighborsClassifier(3))
    table = compare({"k": negative, "prior": DummyClassifier(strategy="prior")}, X, y, cv=3)
    assert set(table.index) == {"k", "prior"}
    assert table.loc["prior", "calibration_error"] < 0.2


def test_held_out_rows_score_one_by_one():
    log_proba = np.log([[0.5, 0.5], [0.2, 0.8]])
    held = HeldOut(log_proba, np.array([0, 1]), np.array([True, True]))
    assert held.log_loss == pytest.approx(-(np.log(0.5) + np.log(0.8)) / 2, rel=1e-14)
    assert held.brier == pytest.approx((0.5 + 0.08) / 2, rel=1e-14)
