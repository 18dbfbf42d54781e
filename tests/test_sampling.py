"""NUTS: three forms of one posterior, agreement with closed forms, diagnostics, seeds, and predictions from draws.

Monte Carlo comparisons are in Monte Carlo standard errors (MCSE), from the effective sample size of each number.
"""

import copy
import logging
import pickle
import re
import subprocess
import sys
import warnings
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from law_cases import PLAIN, moments, one_draw
from numpy.testing import assert_allclose, assert_array_equal
from numpyro.handlers import seed, substitute, trace
from numpyro.infer.util import log_density, potential_energy
from sampling_tools import asked, from_draws, from_moments
from scipy.special import logsumexp
from scipy.stats import poisson
from sklearn.datasets import load_iris, load_wine

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    HierarchicalCovariancePrior,
    HierarchicalDirichlet,
    ImportanceOptions,
    LKJPrior,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    NUTSOptions,
    PoissonNB,
    SamplingWarning,
    nuts,
)
from bayesgen.class_prior import ClassPrior
from bayesgen.families import (
    Categorical,
    Labels,
    Mixed,
    Multinomial,
)

SHORT = NUTSOptions(num_warmup=300, num_samples=400, num_chains=2, progress_bar=False)
LONG = NUTSOptions(num_warmup=500, num_samples=1000, progress_bar=False)
SINGLE = {case.name: case for case in PLAIN if not isinstance(case.prior, Mixed)}
ALIKE = ClassPrior(1.0, np.full(3, 1 / 3), 3)
POSITIVE = dist.LogNormal(0.5, 0.3)


def over(table, *quick):
    """Parameters from a table by name; all but some are slow, because each compiles a program."""
    return [pytest.param(name, id=name, marks=() if name in quick else pytest.mark.slow) for name in table]


def features(model, X, y, **options):
    """The sampled part of a fit, before any run."""
    model.set_params(inference="nuts", **options)
    return model.partial_fit(X, y, np.unique(y))._fit_value.features


def close_in_range(differences, values, tolerance=1e-12):
    """The differences are one constant, up to rounding of the values they come from."""
    assert np.isfinite(values).all()
    assert np.ptp(differences) <= tolerance * np.abs(values).max()


def prior_draw(own, base, key):
    """Values of the sites of a prior's program, drawn from it."""
    with jax.enable_x64(True):
        found = trace(seed(own.sites, jax.random.key(key))).get_trace(base)
    return {name: site["value"] for name, site in found.items()}


# ----------------------------------------------------------------------------------------------------
# the forms, number by number


@pytest.mark.parametrize("name", over(SINGLE, "Multinomial", "Gaussian"))
def test_the_statistics_form_is_the_rows_form_up_to_a_constant(name):
    """Row by row and from statistics, without and with weights, at 20 draws of the prior."""
    case = SINGLE[name]
    prior, weights = case.prior, case.rng.uniform(0.2, 3.0, size=case.n_rows)
    plain, powers = (prior.stats(case.x, Labels(case.y, w)) for w in (None, weights))
    draws = prior.variables(prior.draw(case.rng, 20))

    def both(values):
        rows = [
            log_density(nuts.rows_form, (ALIKE, prior, prior, case.x, case.y, *w), {}, values)[0]
            for w in ((), (weights,))
        ]
        whole = [log_density(nuts.statistics_form, (prior, prior, stats), {}, values)[0] for stats in (plain, powers)]
        return jnp.stack(rows), jnp.stack(whole)

    with jax.enable_x64(True):
        rows, whole = (np.asarray(v) for v in jax.jit(lambda draws: jax.lax.map(both, draws))(draws))
    for i in (0, 1):
        close_in_range(rows[:, i] - whole[:, i], rows[:, i])


def free_numbers(prior, params, chart, u):
    """Parameters as free numbers, and the log density of what the chart adds to them, up to a constant.

    A Dirichlet row of V cells comes with a total of its own, Gamma(A, 1), which makes V free numbers of it.
    """
    values, added = prior.variables(params), 0.0
    if isinstance(prior, (Multinomial, Categorical)):
        edges = getattr(prior, "offsets", (0, prior.n_features))
        concentration = np.reshape(chart.total, (prior.n_classes, -1)).T
        log_cell, out = chart.loc + chart.spread * u["log_cell"], []
        for total, (a, b), prob in zip(concentration, pairwise(edges), values.values(), strict=True):
            log_total = jax.scipy.special.logsumexp(log_cell[:, a:b], axis=-1)
            added = added + ((total - 1) * log_total - jnp.exp(log_total)).sum()
            out += [prob[:, :-1], jnp.exp(log_total)]
    elif "covariance" in values:
        rows, columns = np.tril_indices(prior.n_features)
        out = [values["mean"], values["covariance"][..., rows, columns]]
    else:
        out = list(values.values())
    return jnp.concatenate([jnp.ravel(v) for v in out]), added


@pytest.mark.parametrize("name", over(SINGLE, "Multinomial", "Gaussian", "PerClass"))
def test_a_chart_is_a_change_of_variables(name):
    """Density in chart coordinates = density of the parameters x Jacobian determinant, taken by differentiation."""
    case = SINGLE[name]
    prior, rng = case.prior, case.rng
    chart = case.posterior.chart()
    points = {name: rng.normal(size=(6, *shape)) for name, shape in chart.shapes.items()}

    def both(u):
        params, _ = chart.params(u)
        _, added = free_numbers(prior, params, chart, u)
        jacobian = jax.jacfwd(lambda u: free_numbers(prior, chart.params(u)[0], chart, u)[0])(u)
        values = {f"chart_{name}": v for name, v in u.items()}
        here, _ = log_density(nuts.chart_form, (prior, prior, chart, case.stats), {}, values)
        stated, _ = log_density(nuts.statistics_form, (prior, prior, case.stats), {}, prior.variables(params))
        return here, stated + added, jacobian

    with jax.enable_x64(True):
        here, there, jacobian = jax.tree_util.tree_map(np.asarray, jax.jit(lambda u: jax.lax.map(both, u))(points))
    size = sum(v[0].size for v in points.values())
    matrix = np.concatenate([np.reshape(v, (6, size, -1)) for v in jacobian.values()], axis=-1)
    there = there + np.linalg.slogdet(matrix)[1]
    close_in_range(here - there, here, 1e-11)  # rounding of a determinant of 20 rows


TABLE = np.random.default_rng(3)
LABELS = np.resize([0, 1, 2], 30)
REAL = TABLE.normal(size=(30, 2)) + LABELS[:, None]
COUNTS = TABLE.poisson(1.0 + LABELS[:, None] * [0.2, 1.0, 0.5, 2.0], size=(30, 4)).astype(float)
BY_CLASS = HierarchicalDirichlet(POSITIVE, per_class=True)
HYPER = {
    "Bernoulli": (lambda **k: BernoulliNB(alpha=POSITIVE, **k), COUNTS),
    "Bernoulli, per class": (
        lambda **k: BernoulliNB(alpha=BY_CLASS, **k),
        COUNTS,
    ),
    "multinomial": (lambda **k: MultinomialNB(alpha=POSITIVE, **k), COUNTS),
    "multinomial, coefficient": (
        lambda **k: MultinomialNB(alpha=BY_CLASS, multinomial_coefficient=True, **k),
        COUNTS,
    ),
    "multinomial, background": (
        lambda **k: MultinomialNB(alpha=HierarchicalDirichlet(POSITIVE, per_class=True, base=0.5), **k),
        COUNTS,
    ),
    "categorical": (lambda **k: CategoricalNB(alpha=POSITIVE, **k), COUNTS),
    "categorical, per class": (
        lambda **k: CategoricalNB(alpha=BY_CLASS, **k),
        COUNTS,
    ),
    "Poisson": (lambda **k: PoissonNB(prior=Gamma(POSITIVE, dist.LogNormal(0.0, 0.5)), **k), COUNTS),
    "Gaussian": (lambda **k: GaussianNB(prior=NormalInverseGamma(mean_precision=POSITIVE), **k), REAL),
    "Gaussian, shared": (
        lambda **k: GaussianNB(variance="shared", prior=NormalInverseGamma(scale=POSITIVE), **k),
        REAL,
    ),
    "discriminant": (
        lambda **k: GaussianDiscriminantAnalysis(prior=NormalInverseWishart(mean_precision=POSITIVE), **k),
        REAL,
    ),
    "discriminant, per class": (
        lambda **k: GaussianDiscriminantAnalysis(
            covariance="per_class", prior=NormalInverseWishart(mean_precision=POSITIVE), **k
        ),
        REAL,
    ),
    "hierarchical covariance": (
        lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", prior=HierarchicalCovariancePrior(), **k),
        REAL,
    ),
}
LKJ = {
    covariance: (lambda covariance=covariance, **k: GaussianDiscriminantAnalysis(covariance=covariance, **k), REAL)
    for covariance in ("shared", "per_class")
}


@pytest.mark.parametrize("name", over(HYPER, "Bernoulli, per class", "multinomial", "Gaussian"))
def test_the_marginal_form_is_the_statistics_form_with_the_parameters_integrated_out(name):
    """p(h) p(X | h) = p(h) p(theta | h) p(X | theta) / p(theta | h, X), at any theta."""
    make, X = HYPER[name]
    fit = features(make(), X, LABELS)
    own, base, stats = fit.own_prior, fit.base, fit.stats
    compressed = base.compress(stats, fit._latent[1])
    hyper, params = [], []
    for key in range(20):
        values = {name: np.asarray(v) for name, v in prior_draw(own, base, key).items()}
        hyper.append({name: values[name] for name in fit._latent[0]})
        params.append(base.variables(one_draw(own.given(base, values).condition(stats).draw(key, 1), 0)))
    hyper, params = (jax.tree_util.tree_map(lambda *v: np.stack(v), *part) for part in (hyper, params))

    def both(point):
        hyper, values = point
        joint, _ = log_density(nuts.statistics_form, (fit.prior, base, stats), {}, hyper | values)
        marginal, _ = log_density(nuts.marginal_form, (own, base, compressed), {}, hyper)
        given = substitute(seed(own.sites, 0), data=hyper)(base)
        return joint, given.condition(stats).log_density(base.from_variables(values)) + marginal

    with jax.enable_x64(True):
        joint, product = (np.asarray(v) for v in jax.jit(lambda at: jax.lax.map(both, at))((hyper, params)))
    close_in_range(joint - product, joint, 1e-11)  # posterior densities round like their own normalisers


SOLVERS = re.compile(r"(?i)lapack\w*|potrf|trsm|cholesky|triangular_solve|custom_call")
PROGRAMS = (
    {f"{name}, marginal": value for name, value in HYPER.items()}
    | {f"{name}, statistics": value for name, value in HYPER.items()}
    | {f"LKJ, {name}": value for name, value in LKJ.items()}
    | {
        "Bernoulli, chart": (BernoulliNB, COUNTS),
        "multinomial, chart": (MultinomialNB, COUNTS),
        "categorical, chart": (CategoricalNB, COUNTS),
        "Poisson, chart": (PoissonNB, COUNTS),
        "Gaussian, chart": (GaussianNB, REAL),
        "Gaussian, shared, chart": (lambda **k: GaussianNB(variance="shared", **k), REAL),
        "discriminant, chart": (GaussianDiscriminantAnalysis, REAL),
        "discriminant, per class, chart": (lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k), REAL),
    }
)


@pytest.mark.parametrize(
    "name",
    over(
        PROGRAMS, "multinomial, marginal", "hierarchical covariance, marginal", "LKJ, per_class", "multinomial, chart"
    ),
)
def test_no_sampler_calls_lapack(name, monkeypatch):
    """Several batched LAPACK calls in one compiled program can deadlock in jaxlib on CPU."""
    make, X = PROGRAMS[name]
    prior = {"prior": LKJPrior(2.0)} if name.startswith("LKJ") else {}
    fit = features(make(**prior), X, LABELS)
    if name.endswith("statistics"):
        form, args = nuts.statistics_form, (fit.prior, fit.base, fit.stats)
    else:
        run = asked(monkeypatch, fit)
        form, args = run.form, run.args
        assert form is (nuts.marginal_form if name.endswith("marginal") else nuts.chart_form)

    def start(key):
        found = trace(seed(form, key)).get_trace(*args)
        latent = {n: s for n, s in found.items() if s["type"] == "sample" and not s["is_observed"]}
        return {n: dist.biject_to(s["fn"].support).inv(s["value"]) for n, s in latent.items()}

    with jax.enable_x64(True):
        leaves, tree = jax.tree_util.tree_flatten(jax.eval_shape(start, jax.random.key(0)))

        def energy(leaves):  # without the names of the sites, one of which is corr_cholesky
            return potential_energy(form, args, {}, jax.tree_util.tree_unflatten(tree, leaves))

        text = jax.jit(jax.value_and_grad(energy)).lower(leaves).as_text()
    assert "func.func" in text
    assert SOLVERS.findall(text) == []


# ----------------------------------------------------------------------------------------------------
# the cost of a step


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianDiscriminantAnalysis(),
        lambda: GaussianDiscriminantAnalysis(prior=LKJPrior(1.0)),
        lambda: GaussianDiscriminantAnalysis(covariance="per_class", prior=HierarchicalCovariancePrior()),
        lambda: GaussianNB(prior=NormalInverseGamma(mean_precision=POSITIVE)),
    ],
    ids=["statistics", "statistics, LKJ", "marginal, covariances", "marginal, means"],
)
def test_the_sampled_program_does_not_grow_with_the_rows(make, monkeypatch):
    """The same program on arrays of the same shapes, so the same compiled step, at 1e3, 1e5 and 1e6 rows."""
    rng, shapes = np.random.default_rng(0), set()
    for n in (10**3, 10**5, 10**6):
        y = np.resize([0, 1, 2], n)
        run = asked(monkeypatch, features(make(), rng.normal(size=(n, 2)) + y[:, None], y))
        shapes.add((run.form, nuts.structure(run.args)))
    assert len(shapes) == 1


def test_the_marginal_form_of_counts_holds_no_more_than_their_distinct_values(monkeypatch):
    """For one concentration: distinct cells of the table of classes x words, in arrays of a power of two."""
    rng = np.random.default_rng(0)
    for n in (10**3, 10**5):
        y = np.resize([0, 1, 2, 3], n)
        X = rng.poisson(1.0, size=(n, 20))
        fit = features(MultinomialNB(alpha=POSITIVE), X, y)
        sizes = [leaf.size for leaf in jax.tree_util.tree_leaves(asked(monkeypatch, fit).args[2])]
        distinct = len(np.unique(fit.stats.word_count))
        assert 16 <= max(sizes) < max(17, 2 * distinct)


# ----------------------------------------------------------------------------------------------------
# one small run, in every respect

EVENTS = np.array([[0, 4], [1, 6], [2, 3], [0, 5], [3, 1], [5, 2], [4, 0], [6, 1], [4, 2]], dtype=float)
KIND = np.array(["low", "low", "low", "low", "high", "high", "high", "high", "high"])


def events_model(**options):
    return PoissonNB(**{"prior": Gamma(2.0, 0.5), "inference": SHORT, "random_state": 7} | options)


@pytest.fixture(scope="module")
def events():
    return events_model().fit(EVENTS, KIND)


def sites_of(model):
    return model._fit_value.features.draws.sites


def test_a_small_run_agrees_with_the_closed_form(events):
    d = events.diagnostics_
    assert (d.divergences, d.n_chains, d.n_draws) == (0, 2, 400)
    assert d.r_hat < 1.01
    mean, variance = moments(events.posterior_)["rate"]
    assert np.abs(from_moments(sites_of(events)["rate"], mean, variance)).max() < 4
    exact = events_model(inference="exact").fit(EVENTS, KIND)
    # Each log joint is a log of a mean of 800 draws, correlated in part.
    assert_allclose(events.predict_proba(EVENTS), exact.predict_proba(EVENTS), atol=0.02)
    assert events.log_evidence_ == exact.log_evidence_


def test_chains_have_streams_of_their_own(events):
    first, second = sites_of(events)["rate"]
    assert not np.isclose(first, second).all(axis=(1, 2)).any()


def test_the_same_seed_gives_the_same_draws_and_no_second_compilation(events, caplog):
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        again = events_model().fit(EVENTS, KIND)
        more = events_model().fit(np.tile(EVENTS, (10, 1)), np.tile(KIND, 10))
    assert_array_equal(sites_of(again)["rate"], sites_of(events)["rate"])
    assert more.diagnostics_.r_hat < 1.02
    assert [r.message for r in caplog.records if "Finished XLA compilation" in r.message] == []


def test_other_seeds_give_other_draws(events):
    states = [8, None, None, np.random.default_rng(0), np.random.RandomState(0)]
    found = [sites_of(events)] + [sites_of(events_model(random_state=state).fit(EVENTS, KIND)) for state in states]
    for state in states[3:]:  # a generator goes on where it stopped
        found.append(sites_of(events_model(random_state=state).fit(EVENTS, KIND)))
    first = [draws["rate"][0, 0, 0, 0] for draws in found]
    assert len(set(first)) == len(found)
    again = events_model(random_state=np.random.default_rng(0)).fit(EVENTS, KIND)
    assert_array_equal(sites_of(again)["rate"], found[4]["rate"])


def test_copies_keep_the_draws(events, monkeypatch):
    monkeypatch.setattr(nuts, "run", None)
    for twin in (copy.deepcopy(events), pickle.loads(pickle.dumps(events))):
        assert_array_equal(sites_of(twin)["rate"], sites_of(events)["rate"])
        assert_array_equal(twin.predict_proba(EVENTS), events.predict_proba(EVENTS))
        assert twin.diagnostics_ == events.diagnostics_


def test_statistics_in_pieces_give_the_run_of_the_whole_when_it_is_needed(events, monkeypatch):
    runs, run = [], nuts.run
    monkeypatch.setattr(nuts, "run", lambda *args: runs.append(args[0]) or run(*args))
    order = [0, 4, 1, 5, 2, 6, 3, 7, 8]
    pieces = events_model()
    for part in (order[:3], order[3:5], order[5:]):
        pieces.partial_fit(EVENTS[part], KIND[part], classes=["low", "high"])
    merged = events_model().partial_fit(EVENTS[:5], KIND[:5], classes=["low", "high"])
    merged.merge(events_model().partial_fit(EVENTS[5:], KIND[5:], classes=["low", "high"]))
    handed = events_model().from_statistics(events.statistics_)
    extra = events_model().partial_fit(np.vstack([EVENTS, EVENTS[:2]]), [*KIND, *KIND[:2]], classes=["low", "high"])
    extra.forget(EVENTS[:2], KIND[:2])
    assert runs == []
    for i, model in enumerate((pieces, merged, handed, extra)):
        assert_array_equal(model.predict_proba(EVENTS), events.predict_proba(EVENTS))
        model.predict(EVENTS)
        assert len(runs) == i + 1


def log_joint_of_events(rate, X):
    """ln p(x, y = k), averaged over draws of the rates (S, K, d), class probabilities integrated out."""
    counts = np.array([5, 4])  # of "high" and "low", with one pseudo-count each
    each = poisson.logpmf(X[:, None, None], rate).sum(axis=-1)  # (n, S, K)
    return logsumexp(each, axis=1) - np.log(len(rate)) + np.log((counts + 1) / (counts.sum() + 2))


def test_predictions_average_the_joint_over_draws_and_then_normalise(events):
    rate = sites_of(events)["rate"].reshape(-1, 2, 2)
    joint = log_joint_of_events(rate, EVENTS)
    assert_allclose(events.predict_joint_log_proba(EVENTS), joint, rtol=1e-12)
    assert_allclose(events.predict_log_proba(EVENTS), joint - logsumexp(joint, axis=1, keepdims=True), atol=1e-12)
    assert_allclose(events.score_samples(EVENTS), logsumexp(joint, axis=1), rtol=1e-12)
    assert_array_equal(events.predict(EVENTS), events.classes_[joint.argmax(axis=1)])
    each = poisson.logpmf(EVENTS[:, None, None], rate).sum(axis=-1) + events.class_log_prior_
    averaged = np.exp(each - logsumexp(each, axis=-1, keepdims=True)).mean(axis=1)
    assert np.abs(averaged - events.predict_proba(EVENTS)).max() > 1e-3  # another quantity


def test_a_row_is_scored_alike_alone_and_among_others(events, monkeypatch):
    whole = events.predict_log_proba(EVENTS)
    alone = np.concatenate([events.predict_log_proba(row[None]) for row in EVENTS])
    assert_allclose(alone, whole, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr("bayesgen.sampled.DRAW_CELLS", 50)  # pieces of a few draws
    assert_allclose(events.predict_log_proba(EVENTS), whole, rtol=1e-12, atol=1e-12)


def test_other_class_probabilities_need_no_other_run(events, monkeypatch):
    monkeypatch.setattr(nuts, "run", None)
    joint = events.predict_joint_log_proba(EVENTS) - events.class_log_prior_ + np.log([0.9, 0.1])
    shifted = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    assert_allclose(events.predict_proba(EVENTS, class_prior=[0.9, 0.1]), shifted, rtol=1e-12)


def test_draws_of_class_probabilities_and_of_rows_come_from_the_posterior(events):
    exact = events_model(inference="exact").fit(EVENTS, KIND)
    ours, theirs = (m.sample_proba(EVENTS, 4000, random_state=1) for m in (events, exact))
    assert ours.shape == (4000, len(EVENTS), 2)
    assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=0.03)
    low, high = events.predict_proba_interval(EVENTS, random_state=1)
    # The ends in their own terms: a share of 3 % of the exact draws beyond each, give or take the error of 800 draws.
    assert (np.abs((theirs < low).mean(axis=0) - 0.03) < 0.03).all()
    assert (np.abs((theirs > high).mean(axis=0) - 0.03) < 0.03).all()
    X, y = events.sample(4000, random_state=2)
    for k, label in enumerate(events.classes_):
        rows = X[y == label]
        predictive = exact.posterior_
        mean = (predictive.shape / predictive.rate)[k]
        spread = mean * (1 + 1 / predictive.rate[k])  # negative binomial
        assert (np.abs(rows.mean(axis=0) - mean) < 4 * np.sqrt(spread / len(rows)) + 4 * np.sqrt(mean / 800)).all()


# ----------------------------------------------------------------------------------------------------
# diagnostics


def noise(n_chains=4, n_draws=500, **stats):
    rng = np.random.default_rng(5)
    shape = (n_chains, n_draws)
    sites = {"mean": rng.normal(size=(*shape, 2, 3)), "variance": rng.exponential(size=(*shape, 3))}
    return nuts.Draws(sites, {"diverging": np.zeros(shape, dtype=bool), "n_steps": np.full(shape, 7)} | stats, 1.0)


def message_of(draws):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nuts.warn_doubtful(nuts.diagnose(draws))
    assert all(w.category is SamplingWarning for w in caught)
    return "; ".join(str(w.message) for w in caught)


def test_good_draws_bring_no_warning():
    assert message_of(noise()) == ""


def test_the_worst_number_is_named_and_advice_given():
    draws = noise()
    draws.sites["mean"][0, :, 1, 2] += 1.0  # one chain elsewhere
    d = nuts.diagnose(draws)
    assert d.worst_r_hat == d.worst_ess == "mean[1, 2]"
    assert d.r_hat > 1.05
    found = message_of(draws)
    assert "R-hat of mean[1, 2]" in found
    assert "num_warmup" in found
    sticky = noise()
    sticky.sites["variance"][:, :, 1] = np.cumsum(np.random.default_rng(0).normal(size=(4, 500)), axis=1)
    assert "variance[1] has an effective sample size of only" in message_of(sticky)


def test_divergences_are_counted_and_bring_advice():
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[2, :3] = True
    found = message_of(noise(diverging=diverging))
    assert "3 of 2000 draws diverged" in found
    assert "target_accept_prob" in found
    assert "num_warmup" not in found


@pytest.mark.slow
def test_a_run_that_is_too_short_says_so():
    short = NUTSOptions(num_warmup=5, num_samples=20, num_chains=2, target_accept_prob=0.3, progress_bar=False)
    X, y = load_iris(return_X_y=True)
    with pytest.warns(SamplingWarning, match=r"(?s)NUTS: .*(R-hat of|effective sample size).*num_warmup"):
        GaussianNB(inference=short, random_state=0).fit(X, y)


# ----------------------------------------------------------------------------------------------------
# conjugate priors on real data


@pytest.fixture(scope="module")
def tables(data):
    """Rows and labels of the data sets by name."""
    penguins = data("penguins").dropna()
    pima = data("pima_tr")
    measured = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    return {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "pima": (pima.drop(columns="type").to_numpy(float), pima["type"].to_numpy()),
        "penguins": (penguins[[*measured, "island", "sex"]], penguins["species"].to_numpy()),
    }


def penguin_model(**options):
    blocks = [
        ("sizes", GaussianDiscriminantAnalysis(**options), [0, 1, 2, 3]),
        ("kinds", CategoricalNB(**options), [4, 5]),
    ]
    return MixedNB(blocks=blocks, random_state=options["random_state"])


CONJUGATE = {
    "iris, discriminant": ("iris", GaussianDiscriminantAnalysis),
    "iris, discriminant per class": (
        "iris",
        lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k),
    ),
    "iris, naive Bayes": ("iris", GaussianNB),
    "wine, discriminant": ("wine", GaussianDiscriminantAnalysis),
    "wine, naive Bayes": ("wine", GaussianNB),
    "pima, discriminant per class": (
        "pima",
        lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k),
    ),
    "pima, naive Bayes, shared": ("pima", lambda **k: GaussianNB(variance="shared", **k)),
    "penguins, mixed": ("penguins", penguin_model),
}


def parts_of(model):
    fit = model._fit_value.features
    return getattr(fit, "parts", (fit,))


def assert_agrees(part, most=4.0):
    """Draws of a fit against the moments of its conjugate posterior."""
    found = part.diagnostics
    assert found.divergences == 0
    assert found.r_hat < 1.01
    deviations = [
        from_moments(part.draws.sites[name], mean, variance)
        for name, (mean, variance) in moments(part.posterior).items()
    ]
    deviations = np.concatenate(deviations)
    assert np.isfinite(deviations).all()
    assert np.abs(deviations).max() < most
    return deviations


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), CONJUGATE.values(), ids=CONJUGATE.keys())
def test_nuts_agrees_with_the_closed_form(name, make, tables):
    """Every mean and standard deviation within 4 MCSE; predictions near those with the parameters integrated out."""
    X, y = tables[name]
    model = make(inference=LONG, random_state=1).fit(X, y)
    for part in parts_of(model):
        assert_agrees(part)
    exact = make(inference="exact", random_state=1).fit(X, y).predict_proba(X)
    # As near as the mean over as many independent draws, but for chance: a density far from every draw is rough.
    independent = make(inference="importance", random_state=1).fit(X, y).predict_proba(X)
    error, yardstick = (np.abs(p - exact).max() for p in (model.predict_proba(X), independent))
    assert error < 3 * yardstick + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("make", [MultinomialNB, BernoulliNB])
def test_nuts_agrees_with_the_closed_form_on_words(make, data):
    """The 2,000 most frequent words of messages: 4,000 probabilities, 8,000 comparisons.

    Of so many, some lie beyond 4 standard errors by chance: 0.5 are expected for normal ones, a few for means of
    squares, which are skewed. At most 1 in 1,000 may; the rest of the bound is normal.
    """
    table = data("sms_spam")
    X, y = words_of(table["text"], 2000), table["label"].to_numpy()
    model = make(alpha=1.0, inference=LONG, random_state=1).fit(X, y)
    deviations = assert_agrees(model._fit_value.features, most=6.0)
    assert (np.abs(deviations) > 4).mean() < 1e-3
    assert 0.9 < np.sqrt((deviations**2).mean()) < 1.1


def words_of(texts, n_words):
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(max_features=n_words).fit_transform(texts)


# ----------------------------------------------------------------------------------------------------
# the forms, by their draws


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "X"),
    [
        (lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k), REAL),
        (lambda **k: MultinomialNB(alpha=0.7, **k), COUNTS),
    ],
    ids=["discriminant, per class", "multinomial"],
)
def test_rows_with_weights_give_the_closed_form(make, X):
    """The textbook program, each row with a power, against the conjugate posterior of the weighted statistics."""
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=len(X))
    options = NUTSOptions(num_warmup=500, num_samples=1000, likelihood="rows", progress_bar=False)
    model = make(inference=options, random_state=3).fit(X, LABELS, weights)
    assert model._fit_value.features.form == "rows"
    assert_agrees(model._fit_value.features)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multinomial", "Gaussian"])
def test_marginal_statistics_and_rows_forms_give_the_same_draws(name):
    """Means and standard deviations of hyperparameters and of parameters drawn given them, within 4 MCSE."""
    make, X = HYPER[name]
    found = {}
    for form in ("marginal", "statistics", "rows"):
        options = NUTSOptions(500, 1000, 4, 0.95, likelihood=form, progress_bar=False)
        part = make(inference=options, random_state=3).fit(X, LABELS)._fit_value.features
        assert part.form == form
        assert part.diagnostics.divergences == 0
        values = {name: part.draws.sites[name] for name in part._latent[0]}
        params = part.base.variables(part.posterior_params(np.random.default_rng(0), 4000))
        found[form] = values | {name: np.reshape(v, (4, 1000, *v.shape[1:])) for name, v in params.items()}
    for other in ("statistics", "rows"):
        for site, draws in found["marginal"].items():
            assert np.abs(from_draws(found[other][site], draws)).max() < 4, site


# ----------------------------------------------------------------------------------------------------
# seeds across processes

ELSEWHERE = """
import sys
import numpy as np
from bayesgen import Gamma, ImportanceOptions, NUTSOptions, PoissonNB
inference = {{"nuts": {options!r}, "importance": ImportanceOptions(200), "exact": "exact"}}[sys.argv[1]]
model = PoissonNB(prior=Gamma(2.0, 0.5), inference=inference, random_state=7)
model.fit(np.array({X}), np.array({y}))
print(*(float(v).hex() for v in model.sample_proba([[1, 3]], 3).ravel()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("route", ["nuts", "importance", "exact"])
def test_the_same_seed_gives_the_same_draws_in_another_process(route):
    code = ELSEWHERE.format(options=SHORT, X=EVENTS.tolist(), y=KIND.tolist())
    out = [
        subprocess.run([sys.executable, "-c", code, route], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert out[0] == out[1] != ""
    inference = {"nuts": SHORT, "importance": ImportanceOptions(200), "exact": "exact"}[route]
    here = events_model(inference=inference).fit(EVENTS, KIND).sample_proba([[1, 3]], 3)
    assert out[0].split() == [float(v).hex() for v in here.ravel()]
