"""Draws for ArviZ: names, values that agree with closed forms, and what ArviZ then makes of them, in both its lines."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    HierarchicalDirichlet,
    MixedNB,
    MultinomialNB,
    NUTSOptions,
    PoissonNB,
    UndefinedNumberError,
    arviz_io,
)
from bayesgen.priors import Gamma, NormalInverseGamma

COLUMNS = ["mean", "sd", "eti_3%", "eti_97%", "mcse_mean", "ess_bulk", "ess_tail", "r_hat"]
EVERY_GROUP = (
    "posterior",
    "sample_stats",
    "prior",
    "prior_predictive",
    "posterior_predictive",
    "log_likelihood",
    "log_prior",
    "observed_data",
)
SHORT = NUTSOptions(num_warmup=300, num_samples=500, num_chains=2, progress_bar=False)


@pytest.fixture
def flowers(rng):
    """Two columns of a data frame, and labels that are words."""
    y = np.repeat(["setosa", "virginica"], [25, 15])
    x = rng.normal(size=(40, 2)) + 1.5 * (y == "virginica")[:, None]
    return pd.DataFrame(x, columns=["petal", "sepal"]), y


@pytest.fixture
def words(rng):
    """Counts of four words in 30 documents of two classes."""
    y = np.repeat([0, 1], 15)
    rates = np.array([[3.0, 1.0, 1.0, 0.3], [1.0, 1.0, 3.0, 0.3]])
    return rng.poisson(rates[y]), y


@pytest.fixture
def steady(rng):
    """Rows none of which is far out, so that the importance weights of leave-one-out are well behaved."""
    y = np.repeat([0, 1], 40)
    return rng.uniform(-1.7, 1.7, size=(80, 2)) + y[:, None], y


def group_names(data):
    return set(data.groups() if callable(data.groups) else data.children)


def axes(data, group):
    return {name: v.dims for name, v in data[group].data_vars.items()}


def within(draws, expected, errors=5.0):
    """Whether the mean of independent draws (chain, draw, ...) is the expected one, by its standard error.

    At five standard errors one in 1.7 million fails by chance.
    """
    flat = np.asarray(draws).reshape(-1, *np.shape(draws)[2:])
    return (np.abs(flat.mean(axis=0) - expected) < errors * flat.std(axis=0, ddof=1) / np.sqrt(len(flat))).all()


# ------------------------------------------------------------------------------- names


def test_the_container_is_that_of_the_installed_arviz(flowers):
    data = GaussianNB().fit(*flowers).to_arviz(n_draws=10)
    expected = "InferenceData" if arviz_io.is_old(arviz_io.load()) else "DataTree"
    assert type(data).__name__ == expected
    assert group_names(data) == {"posterior"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (GaussianNB(), {"mean": ("class", "feature"), "variance": ("class", "feature")}),
        (GaussianNB(variance="shared"), {"mean": ("class", "feature"), "variance": ("feature",)}),
        (
            GaussianDiscriminantAnalysis(),
            {"mean": ("class", "feature"), "covariance": ("feature", "feature_bis")},
        ),
        (
            GaussianDiscriminantAnalysis(covariance="per_class"),
            {"mean": ("class", "feature"), "covariance": ("class", "feature", "feature_bis")},
        ),
        (BernoulliNB(), {"feature_prob": ("class", "feature")}),
    ],
)
def test_variables_have_the_names_of_sites_and_real_labels_as_coordinates(flowers, model, expected):
    posterior = model.fit(*flowers).to_arviz(n_draws=6, n_chains=3)["posterior"]
    found = {name: v.dims for name, v in posterior.data_vars.items()}
    assert found == {k: ("chain", "draw", *v) for k, v in {"class_prob": ("class",), **expected}.items()}
    assert posterior.sizes["chain"] == 3
    assert posterior.sizes["draw"] == 6
    assert posterior["class"].values.tolist() == ["setosa", "virginica"]
    assert posterior["feature"].values.tolist() == ["petal", "sepal"]


@pytest.mark.parametrize("model", [MultinomialNB(), PoissonNB()])
def test_columns_without_names_have_their_positions(words, model):
    posterior = model.fit(*words).to_arviz(n_draws=5)["posterior"]
    assert posterior["feature"].values.tolist() == [0, 1, 2, 3]
    assert posterior["class"].values.tolist() == [0, 1]


def test_each_categorical_column_has_its_own_variable_and_levels():
    table = pd.DataFrame({"colour": ["red", "blue", "red", "green"], "size": ["s", "s", "l", "l"]})
    posterior = CategoricalNB().fit(table, [0, 0, 1, 1]).to_arviz(n_draws=5)["posterior"]
    assert posterior["feature_prob_colour"].dims == ("chain", "draw", "class", "category_colour")
    assert posterior["category_colour"].values.tolist() == ["blue", "green", "red"]
    assert np.asarray(posterior["feature_prob_size"].sum("category_size")) == pytest.approx(1.0)
    one = CategoricalNB().fit(table, [0, 0, 1, 1]).to_arviz(n_draws=5, features=["size"])["posterior"]
    assert set(one.data_vars) == {"class_prob", "feature_prob_size"}
    numbered = CategoricalNB().fit([[0, 1], [1, 2]], [0, 1]).to_arviz(n_draws=5)["posterior"]
    assert numbered["category_1"].values.tolist() == [0, 1, 2]


def test_variables_and_columns_of_a_mixed_model_are_prefixed(flowers):
    x, y = flowers
    x = x.assign(seen=x["petal"] > 0)
    model = MixedNB(blocks=[("size", GaussianNB(), ["petal", "sepal"]), ("habit", BernoulliNB(), ["seen"])]).fit(x, y)
    data = model.to_arviz(x, y, groups=EVERY_GROUP, n_draws=5, n_chains=2)
    assert axes(data, "posterior") == axes(data, "prior")
    assert axes(data, "posterior")["size.mean"] == ("chain", "draw", "class", "size.feature")
    assert set(data["posterior"].data_vars) == {"class_prob", "size.mean", "size.variance", "habit.feature_prob"}
    assert axes(data, "observed_data") == {
        "y": ("row",),
        "size.x": ("row", "size.feature"),
        "habit.x": ("row", "habit.feature"),
    }
    chosen = model.to_arviz(n_draws=5, features=["sepal"])["posterior"]
    assert set(chosen.data_vars) == {"class_prob", "size.mean", "size.variance"}
    assert chosen["size.feature"].values.tolist() == ["sepal"]


def test_groups_are_those_asked_for(flowers):
    x, y = flowers
    model = GaussianNB().fit(x, y)
    assert group_names(model.to_arviz(x, y, n_draws=5)) == {"posterior", "log_likelihood", "observed_data"}
    data = model.to_arviz(x, y, groups=EVERY_GROUP, n_draws=5, n_chains=2)
    assert group_names(data) == set(EVERY_GROUP) - {"sample_stats"}
    assert axes(data, "log_likelihood") == {"joint": ("chain", "draw", "row")}
    for group in ("prior_predictive", "posterior_predictive"):
        assert axes(data, group) == {"y": ("chain", "draw", "row"), "x": ("chain", "draw", "row", "feature")}
    assert np.asarray(data["observed_data"]["x"]).tolist() == x.to_numpy().tolist()
    assert np.asarray(data["posterior"]["class"])[data["observed_data"]["y"]].tolist() == y.tolist()


def test_what_is_not_there_is_named(flowers):
    model = GaussianNB().fit(*flowers)
    with pytest.raises(ValueError, match=r"groups are any of .*'prior_predictive'.*; got 'priors'"):
        model.to_arviz(groups="priors")
    with pytest.raises(ValueError, match="'log_likelihood' is about rows: pass X and y"):
        model.to_arviz(groups="log_likelihood")
    with pytest.raises(ValueError, match=r"var_names holds 'rate'; the variables are class_prob, mean, variance"):
        model.to_arviz(var_names="rate")
    with pytest.raises(ValueError, match="there is no 'stem'"):
        model.to_arviz(features="stem")
    with pytest.raises(ValueError, match="there is no 2"):
        model.summary(features=[0, 2])


def test_plug_in_routes_have_no_posterior_and_improper_priors_no_draws(flowers):
    with pytest.raises(UndefinedNumberError, match="'mle' has no posterior"):
        GaussianNB(inference="mle").fit(*flowers).to_arviz()
    with pytest.raises(UndefinedNumberError, match="'unbiased' has no posterior"):
        GaussianNB(inference="unbiased").fit(*flowers).summary()
    reference = GaussianDiscriminantAnalysis(prior="reference").fit(*flowers)
    assert group_names(reference.to_arviz(n_draws=5)) == {"posterior"}
    with pytest.raises(UndefinedNumberError, match="the prior is no distribution"):
        reference.to_arviz(groups="prior")
    with pytest.raises(UndefinedNumberError, match="class_alpha=0 is improper"):
        GaussianNB(class_alpha=0.0).fit(*flowers).to_arviz(*flowers, groups="log_prior")


# ------------------------------------------------------------------------------- values


@pytest.mark.parametrize("inference", ["exact", "mean", "map"])
def test_draws_have_the_moments_of_the_closed_form(flowers, inference):
    x, y = flowers
    model = GaussianDiscriminantAnalysis(inference=inference, random_state=1).fit(x, y)
    posterior = model.to_arviz()["posterior"]
    exact = model.posterior_.mean()
    assert within(posterior["mean"], exact.mean)
    assert within(posterior["covariance"], exact.covariance)
    assert within(posterior["class_prob"], np.array([26.0, 16.0]) / 42.0)


def test_some_words_have_the_marginal_posterior_they_have_among_all(words):
    x, y = words
    model = MultinomialNB(alpha=0.5, random_state=0).fit(x, y)
    some = np.asarray(model.to_arviz(features=[2, 0])["posterior"]["feature_prob"])
    alpha = 0.5 + np.array([x[y == k].sum(axis=0) for k in (0, 1)])
    total = alpha.sum(axis=1, keepdims=True)
    share = (alpha / total)[:, [2, 0]]
    assert within(some, share)
    assert within((some - share) ** 2, share * (1 - share) / (total + 1))
    assert within(some.prod(axis=-1), (alpha[:, 2] * alpha[:, 0] / (total[:, 0] * (total[:, 0] + 1))))
    for other in (BernoulliNB(random_state=0), PoissonNB(random_state=0)):
        other.fit(x, y)
        chosen = other.to_arviz(features=[2, 0])["posterior"]
        name = next(iter(other.posterior_.dims()))
        assert within(chosen[name], other.posterior_.variables(other.posterior_.mean())[name][:, [2, 0]])


def test_the_likelihood_is_of_label_and_row_at_each_draw(flowers):
    x, y = flowers
    model = GaussianNB(random_state=0).fit(x, y)
    data = model.to_arviz(x, y, n_draws=20, n_chains=2)
    posterior = data["posterior"]
    mean, sd = (np.asarray(v)[:, :, None] for v in (posterior["mean"], np.sqrt(posterior["variance"])))
    log_x = scipy.stats.norm.logpdf(x.to_numpy()[:, None, :], mean, sd).sum(axis=-1)
    joint = log_x + np.log(np.asarray(posterior["class_prob"]))[:, :, None, :]
    codes = (y == "virginica").astype(int)
    own = np.take_along_axis(joint, codes[None, None, :, None], axis=-1)[..., 0]
    assert np.asarray(data["log_likelihood"]["joint"]) == pytest.approx(own, rel=1e-11)
    conditional = model.to_arviz(x, y, n_draws=20, n_chains=2, kind="conditional")["log_likelihood"]
    assert list(conditional.data_vars) == ["conditional"]
    expected = own - scipy.special.logsumexp(joint, axis=-1)
    assert np.asarray(conditional["conditional"]) == pytest.approx(expected, rel=1e-9)


def test_pieces_of_bounded_memory_change_nothing(words, monkeypatch):
    x, y = words
    model = MultinomialNB(random_state=3).fit(x, y)
    whole = model.to_arviz(x, y, groups=EVERY_GROUP, n_draws=30, n_chains=2)
    monkeypatch.setattr("bayesgen.estimators._export_groups.DRAW_CELLS", 200)
    pieces = model.to_arviz(x, y, groups=["log_likelihood"], n_draws=30, n_chains=2)
    # Independent draws are made row after row of a table, so the size of a piece does not matter either.
    for group in ("posterior", "log_likelihood"):
        for name in whole[group].data_vars:
            assert np.asarray(pieces[group][name]) == pytest.approx(np.asarray(whole[group][name]), rel=1e-13)


def test_draws_depend_on_the_seed_and_not_on_the_groups(flowers):
    x, y = flowers
    model = GaussianNB(random_state=5).fit(x, y)
    one, other = model.to_arviz(n_draws=5), model.to_arviz(x, y, n_draws=5, groups=EVERY_GROUP)
    assert np.array_equal(one["posterior"]["mean"], other["posterior"]["mean"])
    assert not np.array_equal(one["posterior"]["mean"], model.to_arviz(n_draws=5, random_state=6)["posterior"]["mean"])


def test_the_log_prior_is_that_of_the_stated_prior(words):
    x, y = words
    model = PoissonNB(prior=Gamma(shape=2.0, rate=0.5), class_alpha=3.0, random_state=0).fit(x, y)
    data = model.to_arviz(groups="log_prior", n_draws=10, n_chains=2)
    rate, prob = (np.asarray(data["posterior"][v]) for v in ("rate", "class_prob"))
    expected = scipy.stats.gamma.logpdf(rate, 2.0, scale=2.0).sum(axis=(-1, -2))
    assert np.asarray(data["log_prior"]["features"]) == pytest.approx(expected, rel=1e-11)
    dirichlet = scipy.stats.dirichlet.logpdf(np.moveaxis(prob, -1, 0).reshape(2, -1), [3.0, 3.0])
    assert np.asarray(data["log_prior"]["class_prob"]).ravel() == pytest.approx(dirichlet, rel=1e-11)


def test_prior_and_predictive_draws_have_the_moments_of_the_program(words):
    x, y = words
    model = PoissonNB(prior=Gamma(shape=2.0, rate=0.5), random_state=0).fit(x, y)
    data = model.to_arviz(x, y, groups=EVERY_GROUP, n_draws=500)
    assert within(data["prior"]["rate"], 4.0)
    assert within(data["prior_predictive"]["x"][..., 0, 0], 4.0)
    label = np.asarray(data["posterior_predictive"]["y"][..., 0])
    assert within(label, 0.5)
    rate = model.posterior_.mean().rate
    first = np.asarray(data["posterior_predictive"]["x"][..., 0, :])
    assert within(np.where(label[..., None] == 1, first - rate[1], 0.0), 0.0)


def test_documents_are_drawn_with_the_lengths_observed(words):
    x, y = words
    data = MultinomialNB().fit(x, y).to_arviz(x, y, groups=["posterior_predictive", "prior_predictive"], n_draws=3)
    for group in ("posterior_predictive", "prior_predictive"):
        assert (np.asarray(data[group]["x"]).sum(axis=-1) == x.sum(axis=1)).all()


def test_random_hyperparameters_stay_with_the_parameters_drawn_given_them(words):
    x, y = words
    x = x[::10]
    y = y[::10]
    prior = dist.LogNormal(0.0, 1.0)
    model = MultinomialNB(alpha=prior, inference="importance", random_state=0).fit(x, y)
    data = model.to_arviz(x, y, groups=["prior", "log_prior"], n_draws=300)
    alpha, theta = (np.asarray(data["posterior"][v]) for v in ("alpha", "feature_prob"))
    assert data["posterior"]["alpha"].dims == ("chain", "draw")
    concentration = alpha[..., None, None] + np.array([x[y == k].sum(axis=0) for k in (0, 1)])
    total = concentration.sum(axis=-1, keepdims=True)
    share = concentration / total
    assert within(((theta - share) ** 2 / (share * (1 - share) / (total + 1))), 1.0)
    # Draws out of step with their alpha fail the same check.
    late = np.roll(theta, 1, axis=1)
    assert not within(((late - share) ** 2 / (share * (1 - share) / (total + 1))), 1.0)
    log_alpha = scipy.stats.lognorm.logpdf(alpha, 1.0)
    some = [(0, 0), (3, 299)]
    for at in some:
        given = [scipy.stats.dirichlet.logpdf(t / t.sum(), np.full(4, alpha[at])) for t in theta[at]]
        assert float(data["log_prior"]["features"][at]) == pytest.approx(log_alpha[at] + sum(given), rel=1e-9)
    assert within(np.log(np.asarray(data["prior"]["alpha"])), 0.0)
    assert within(data["prior"]["feature_prob"], 0.25)


def test_too_many_numbers_are_refused_and_some_columns_are_not():
    x = sp.random(40, 50_000, density=0.001, random_state=0, format="csr")
    model = MultinomialNB(random_state=0).fit(x, np.arange(40) % 4)
    with pytest.raises(
        ValueError, match=r"'posterior' would take 6\.0 GiB, more than 1: choose columns with features="
    ):
        model.to_arviz()
    posterior = model.to_arviz(features=[7, 49_999], n_draws=5)["posterior"]
    assert posterior["feature"].values.tolist() == [7, 49_999]
    with pytest.raises(ValueError, match="'log_likelihood' would take"):
        GaussianNB().fit(x[:, :2].toarray(), np.arange(40) % 4).to_arviz(
            np.zeros((200_000, 2)), np.zeros(200_000), groups="log_likelihood"
        )


# ------------------------------------------------------------------------------- summary


def test_a_summary_has_the_same_columns_under_either_arviz(flowers):
    table = GaussianNB(random_state=0).fit(*flowers).summary()
    assert list(table.columns) == COLUMNS
    assert isinstance(table, pd.DataFrame)
    assert "mean[virginica, petal]" in table.index
    assert (table["r_hat"] < 1.01).all()
    assert (table["ess_bulk"] > 3000).all()
    ends = GaussianNB().fit(*flowers).summary(prob=0.5, var_names="mean").columns[2:4]
    assert list(ends) == ["eti_25%", "eti_75%"]


def test_a_summary_agrees_with_the_closed_form_and_with_arviz_itself(flowers):
    model = GaussianNB(class_alpha=1.0, random_state=0).fit(*flowers)
    table = model.summary()
    row = table.loc["class_prob[setosa]"]
    beta = scipy.stats.beta(26, 16)
    assert abs(row["mean"] - beta.mean()) < 5 * row["mcse_mean"]
    assert row["sd"] == pytest.approx(beta.std(), rel=0.06)  # 4000 draws: sd of it is 1.1 %
    # A quantile near the ends has a standard error of 0.0027 in its tail probability of 0.03.
    assert beta.cdf(row["eti_3%"]) == pytest.approx(0.03, abs=0.0135)
    az = arviz_io.load()
    posterior = model.to_arviz()["posterior"]
    posterior = posterior if arviz_io.is_old(az) else posterior.to_dataset()
    assert row["ess_bulk"] == pytest.approx(float(az.ess(posterior, method="bulk")["class_prob"][0]), rel=1e-6)
    assert row["ess_tail"] == pytest.approx(float(az.ess(posterior, method="tail")["class_prob"][0]), rel=1e-6)
    assert row["r_hat"] == pytest.approx(float(az.rhat(posterior)["class_prob"][0]), rel=1e-9)
    assert row["mcse_mean"] == pytest.approx(float(az.mcse(posterior)["class_prob"][0]), rel=1e-6)


def test_small_probabilities_keep_their_digits_and_a_constant_raises_no_alarm(rng):
    """Fifty thousand words whose posterior means are near 2e-5, and class probabilities known to be one half."""
    x = sp.random(60, 50_000, density=0.002, random_state=1, format="csr")
    x.data = rng.integers(1, 4, x.nnz).astype(float)
    model = MultinomialNB(class_prior=[0.5, 0.5], random_state=0).fit(x, np.arange(60) % 2)
    table = model.summary(features=[0, 1, 2])
    means = table["mean"].filter(like="feature_prob")
    exact = np.exp(model.feature_log_prob_)[:, :3].ravel()
    assert (np.abs(means - exact) < 5 * table["mcse_mean"].filter(like="feature_prob")).all()
    for value in means:
        assert f"{value:.4g}" in repr(table)
        assert f"{value:.4g}" in table._repr_html_()
    constant = table.loc["class_prob[0]"]
    assert constant["mean"] == constant["eti_3%"] == constant["eti_97%"] == 0.5
    assert constant["sd"] == constant["mcse_mean"] == 0.0
    assert np.isnan(constant[["ess_bulk", "ess_tail", "r_hat"]]).all()
    assert "constant over the draws; effective sizes and R-hat are undefined (NaN)" in repr(table)


def test_words_are_shown_by_their_log_odds_and_the_rest_is_counted(rng):
    x = rng.poisson(0.5, (80, 600))
    y = np.repeat(["ham", "spam"], 40)
    x[:40, 17] += 4
    x[40:, 599] += 4
    for model in (MultinomialNB(random_state=0), PoissonNB(random_state=0), BernoulliNB(random_state=0)):
        table = model.fit(x, y).summary()
        shown = table.index[2:]
        name = "rate" if isinstance(model, PoissonNB) else "feature_prob"
        assert len(shown) == 10
        assert shown[0] == f"{name}[ham, 17]"
        assert shown[5] == f"{name}[spam, 599]"
        assert "1190 of 1202 numbers left out (words: the top 5 of each class by log odds)" in repr(table)
    assert len(MultinomialNB().fit(x, y).summary(top=2)) == 2 + 4
    with pytest.raises(ValueError, match="top= chooses words by class; this model has none"):
        GaussianNB().fit(x, y).summary(top=3)
    table = GaussianNB().fit(x, y).summary()
    assert len(table) <= 200
    assert "of 2402 numbers left out: choose with features=, var_names=" in repr(table)


def test_scalars_and_short_chains_have_a_row(words):
    model = MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance", random_state=0).fit(*words)
    table = model.summary(n_draws=3)
    assert table.loc["alpha", "mean"] > 0
    assert np.isnan(table["r_hat"]).all()


# ------------------------------------------------------------------------------- leave-one-out


def loo(az, data):
    """The estimate of ``az.loo``; its warning of untrustworthy weights is an error here."""
    return float(az.loo(data)["elpd_loo" if arviz_io.is_old(az) else "elpd"])


@pytest.mark.parametrize("model", [GaussianNB(), GaussianDiscriminantAnalysis()])
def test_pareto_smoothed_leave_one_out_of_the_draws_is_the_exact_one(steady, model):
    x, y = steady
    model.fit(x, y)
    az = arviz_io.load()
    found = np.array([loo(az, model.to_arviz(x, y, n_draws=300, random_state=seed)) for seed in range(6)])
    # Six independent estimates: with 5 degrees of freedom, 6 standard errors is one false alarm in 540.
    assert abs(found.mean() - model.loo(x, y).elpd_joint) < 6 * found.std(ddof=1) / np.sqrt(6)


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # of ArviZ 0.23 under pandas 3.1
@pytest.mark.parametrize("kind", ["joint", "conditional"])
def test_exact_leave_one_out_can_be_compared_by_arviz(flowers, kind):
    x, y = flowers
    models = {"diagonal": GaussianNB(), "full": GaussianDiscriminantAnalysis(), "constant": BernoulliNB()}
    results = {name: model.fit(x, y).loo(x, y) for name, model in models.items()}
    del results["constant" if kind == "joint" else "full"]
    az = arviz_io.load()
    data = {name: r.to_arviz(kind) for name, r in results.items()}
    table = az.compare(data)
    exact = {name: getattr(r, f"elpd_{kind}") for name, r in results.items()}
    assert list(table.index) == sorted(exact, key=exact.get, reverse=True)
    for name, value in exact.items():
        old = arviz_io.is_old(az)
        assert data[name]["elpd_loo" if old else "elpd"] == pytest.approx(value)
        assert data[name]["se"] == pytest.approx(getattr(results[name], f"se_{kind}"))
        assert np.asarray(data[name]["loo_i" if old else "elpd_i"]) == pytest.approx(getattr(results[name], kind))
        assert f"{len(y)} observations" in repr(data[name])
    with pytest.raises(ValueError, match="'joint' or 'conditional'"):
        results["diagonal"].to_arviz("marginal")


# ------------------------------------------------------------------------------- the seam


@pytest.mark.parametrize("version", ["0.12.1", "2.0.0"])
def test_an_arviz_of_another_line_is_refused_by_its_version(monkeypatch, flowers, version):
    model = GaussianNB().fit(*flowers)
    monkeypatch.setattr(arviz_io.load(), "__version__", version)
    with pytest.raises(ImportError, match=f"ArviZ 0.23 or 1.x; the one installed is {version}"):
        model.to_arviz()


def test_a_missing_arviz_is_named(monkeypatch, flowers):
    model = GaussianNB().fit(*flowers)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"needs ArviZ 0\.23 or 1\.x"):
        model.summary()


def test_the_daily_announcement_of_arviz_is_no_error_for_those_who_make_errors_of_warnings(tmp_path):
    code = "from bayesgen.arviz_io import load; load()"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-W", "error::FutureWarning", "-c", code], check=True, env=env, timeout=100)


# ------------------------------------------------------------------------------- NUTS


@pytest.mark.slow
def test_a_run_keeps_its_chains_draws_and_statistics(steady):
    x, y = steady
    prior = NormalInverseGamma(mean=0.0, mean_precision=0.1, shape=2.0, scale=1.0)
    options = NUTSOptions(num_warmup=500, num_samples=1000, num_chains=2, likelihood="rows", progress_bar=False)
    model = GaussianNB(prior=prior, inference=options, random_state=0).fit(x, y)
    data = model.to_arviz(x, y)
    sites = model._fit_value.features.draws.sites
    for name in ("class_prob", "mean", "variance"):
        assert np.asarray(data["posterior"][name]) == pytest.approx(sites[name], rel=1e-14)
    assert set(data["posterior"].data_vars) == {"class_prob", "mean", "variance"}
    expected = {"diverging", "n_steps", "acceptance_rate", "step_size", "energy", "lp"}
    assert set(data["sample_stats"].data_vars) == expected
    az = arviz_io.load()
    exact = GaussianNB(prior=prior).fit(x, y)
    independent = [loo(az, exact.to_arviz(x, y, n_draws=500, random_state=seed)) for seed in range(6)]
    # As many draws as these, which are correlated little: five standard deviations of the independent ones, and half.
    assert abs(loo(az, data) - exact.loo(x, y).elpd_joint) < 7.5 * np.std(independent, ddof=1)


@pytest.mark.slow
def test_internal_coordinates_of_the_sampler_are_no_variables(flowers):
    model = GaussianDiscriminantAnalysis(inference=SHORT, random_state=0).fit(*flowers)
    assert any(name.startswith("chart_") for name in model._fit_value.features.draws.sites)
    data = model.to_arviz()
    assert set(data["posterior"].data_vars) == {"class_prob", "mean", "covariance"}
    assert data["posterior"].sizes["draw"] == 500
    table = model.summary()
    exact = model.posterior_.mean().mean.ravel()
    found = table.filter(like="mean[", axis=0)
    assert (np.abs(found["mean"] - exact) < 5 * found["mcse_mean"]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:NUTS. R-hat:bayesgen.SamplingWarning")  # a short run
def test_a_learned_background_has_words_as_its_axis(words):
    x, y = words
    frame = pd.DataFrame(x, columns=["offer", "the", "meeting", "rare"])
    prior = HierarchicalDirichlet(dist.LogNormal(0.0, 1.0), per_class=True, base=1.0)
    model = MultinomialNB(alpha=prior, inference=SHORT, random_state=0).fit(frame, y)
    data = model.to_arviz(groups=["sample_stats", "prior", "log_prior"])
    for group in ("posterior", "prior"):
        assert axes(data, group) == {
            "class_prob": ("chain", "draw", "class"),
            "alpha": ("chain", "draw", "class"),
            "background": ("chain", "draw", "feature"),
            "feature_prob": ("chain", "draw", "class", "feature"),
        }
    sites = model._fit_value.features.draws.sites
    assert np.array_equal(data["posterior"]["alpha"], sites["alpha"])
    assert np.isfinite(np.asarray(data["log_prior"]["features"])).all()
    assert len(model.summary(top=1)) == 2 + 2 + 2 + 2  # class_prob, alpha, background and probabilities of two words


def test_smoothed_weights_follow_the_weights_that_are_smoothed():
    # One of the ArviZ lines takes log weights, the other log likelihoods, whose sign is the opposite.
    log_weights = np.random.default_rng(3).normal(size=500)
    smoothed, khat = arviz_io.psis(log_weights)
    assert np.argmax(smoothed) == np.argmax(log_weights)
    np.testing.assert_allclose(np.exp(smoothed).sum(), 1.0, rtol=1e-8)
    body = log_weights < np.quantile(log_weights, 0.7)  # only the tail is smoothed
    np.testing.assert_allclose(np.ptp((smoothed - log_weights)[body]), 0.0, atol=1e-10)
    assert khat < 0.7
