"""Importance sampling and quadrature: against NUTS, against independent programs, and against integrals by SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpyro.infer import MCMC, NUTS
from sampling_tools import asked, from_draws
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from scipy.stats import lognorm
from sklearn.datasets import load_iris

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    HierarchicalCovariancePrior,
    HierarchicalDirichlet,
    ImportanceOptions,
    LKJPrior,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    NUTSOptions,
    PoissonNB,
    SamplingWarning,
    UndefinedNumberError,
    nuts,
)

IRIS, SPECIES = load_iris(return_X_y=True)
OPTIONS = NUTSOptions(num_warmup=500, num_samples=1000, progress_bar=False)
STATED = LKJPrior(2.0, scale=dist.HalfNormal(2.0), mean=dist.Normal(3.0, 5.0))


def draws_of(model):
    return model._fit_value.features.draws.sites


def shared(prior=STATED, **options):
    return GaussianDiscriminantAnalysis(**{"prior": prior, "inference": "importance", "random_state": 0} | options)


def per_class(prior=STATED, **options):
    return shared(prior, covariance="per_class", **options)


# ----------------------------------------------------------------------------------------------------
# one random concentration, by quadrature


def log_polya(alpha, groups):
    """Log evidence (n,) of counts under symmetric Dirichlets, one for each row of each group: urns, token by token."""

    def tokens(counts):
        """How many urns have seen 0, 1, 2, ... tokens when they give another."""
        counts = np.ravel(counts).astype(int)
        return (counts[:, None] > np.arange(counts.max())).sum(axis=0)

    total = np.zeros(len(alpha))
    for group in groups:
        for sign, width, times in ((1, 1, tokens(group)), (-1, group.shape[-1], tokens(group.sum(axis=-1)))):
            total += sign * (np.log(width * alpha[:, None] + np.arange(len(times))) @ times)
    return total


def integrals(groups, prior, reach):
    """Log of the integral of prior x evidence over alpha, and the posterior's mean and sd of ln alpha, by SciPy.

    Of a smooth function that vanishes at both ends, the trapezoidal rule is exact to rounding.
    """
    t = np.linspace(-reach, reach, 8001)
    log_density = prior.logpdf(np.exp(t)) + t + log_polya(np.exp(t), groups)
    density = np.exp(log_density - log_density.max())
    mass = trapezoid(density, t)
    mean = trapezoid(t * density, t) / mass
    sd = np.sqrt(trapezoid((t - mean) ** 2 * density, t) / mass)
    return log_density.max() + np.log(mass), mean, sd


WORDS = np.random.default_rng(4).poisson(np.random.default_rng(5).gamma(0.5, 2.0, size=30), size=(12, 30)).astype(float)
GROUP = np.resize([0, 1, 2], 12)
BY_CLASS = np.stack([WORDS[k == GROUP].sum(axis=0) for k in range(3)])
PRESENT = np.stack([(WORDS[k == GROUP] > 0).sum(axis=0) for k in range(3)])
LEVELS = np.minimum(WORDS[:, :4], 2.0)
LEVEL_COUNTS = [
    np.stack([[(LEVELS[k == GROUP, j] == v).sum() for v in np.unique(LEVELS[:, j])] for k in range(3)])
    for j in range(4)
]
MODES = np.array([[28.0, 27.0], [0.0, 7.0]])
TABLES = {
    "multinomial": (MultinomialNB, WORDS, GROUP, [BY_CLASS]),
    "Bernoulli": (BernoulliNB, WORDS, GROUP, [np.stack([PRESENT, 4 - PRESENT], axis=-1).reshape(-1, 2)]),
    "categorical": (CategoricalNB, LEVELS, GROUP, LEVEL_COUNTS),
    "two modes": (
        MultinomialNB,
        np.array([[28.0, 27.0], [0.0, 7.0]]),
        np.array([0, 1]),
        [np.array([[28, 27], [0, 7]])],
    ),
}


@pytest.mark.parametrize("spread", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("name", TABLES)
def test_quadrature_over_a_concentration_is_the_integral(name, spread):
    r"""ln p(X | y) and the posterior of ln alpha, also where it has a second mode or a long shoulder."""
    make, X, y, groups = TABLES[name]
    model = make(alpha=dist.LogNormal(0.5, spread), inference="importance", random_state=0).fit(X, y)
    log_mass, mean, sd = integrals(groups, lognorm(spread, scale=np.exp(0.5)), 12.0 * spread)
    assert_allclose(model.log_evidence_parts_["x_given_y"], log_mass, rtol=0, atol=1e-6)
    grid = model._fit_value.features.quadrature
    t = np.log(grid.value)
    assert_allclose(grid.weight.sum(), 1.0, rtol=1e-12)
    assert_allclose(grid.weight @ t, mean, rtol=0, atol=1e-6 * max(1.0, sd))
    assert_allclose(np.sqrt(grid.weight @ (t - mean) ** 2), sd, rtol=1e-6)
    # Stratified draws: closer to the posterior than independent ones.
    found = np.log(draws_of(model)["alpha"].ravel())
    assert abs(found.mean() - mean) < 4 * sd / np.sqrt(len(found))
    assert abs(found.std() - sd) < 0.1 * sd


def test_a_narrow_hyperprior_is_a_fixed_concentration():
    """The limit of a point mass: its evidence, and its predictions."""
    narrow = MultinomialNB(alpha=dist.LogNormal(np.log(0.7), 1e-4), inference="importance").fit(WORDS, GROUP)
    fixed = MultinomialNB(alpha=0.7).fit(WORDS, GROUP)
    assert_allclose(narrow.log_evidence_, fixed.log_evidence_, rtol=0, atol=1e-5)
    assert_allclose(narrow.predict_proba(WORDS), fixed.predict_proba(WORDS), atol=1e-4)


def test_predictions_average_the_closed_form_over_the_concentration():
    """For one concentration a few of its values, evenly spread over the posterior, stand for all of them."""
    model = MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance", random_state=0).fit(WORDS, GROUP)
    grid = model._fit_value.features.quadrature
    alpha, weight = grid.value[::20], grid.weight[::20] / grid.weight[::20].sum()
    each = [MultinomialNB(alpha=float(a)).fit(WORDS, GROUP).predict_joint_log_proba(WORDS) for a in alpha]
    joint = logsumexp(each, axis=0, b=weight[:, None, None])
    assert_allclose(model.predict_joint_log_proba(WORDS), joint, atol=0.005)
    alone = np.concatenate([model.predict_log_proba(row[None]) for row in WORDS])
    assert_allclose(alone, model.predict_log_proba(WORDS), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, dist.LogNormal(0.0, 1.0)], ids=["draws of words", "draws of a concentration"])
def test_predictions_are_finite_for_documents_of_a_large_vocabulary(alpha):
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.1, 20.0, size=(2, 50_000))[[0, 0, 1, 1]]).astype(float)
    model = MultinomialNB(alpha=alpha, inference=ImportanceOptions(100), random_state=0).fit(X, [0, 0, 1, 1])
    new = rng.poisson(2.0, size=(3, 50_000)).astype(float)
    new[2] = 0.0
    new[2, :3] = 1e5
    joint = model.predict_joint_log_proba(new)
    assert np.isfinite(joint).all()
    proba = model.predict_proba(new)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(model.predict_log_proba(new)).all()


# ----------------------------------------------------------------------------------------------------
# weights


def test_a_conjugate_prior_needs_no_weights(monkeypatch):
    """Independent draws of the posterior itself: all weights equal, nothing run."""
    monkeypatch.setattr(nuts, "run", None)
    model = GaussianNB(inference=ImportanceOptions(2000), random_state=0).fit(IRIS, SPECIES)
    assert model.importance_khat_ == -np.inf
    assert model.importance_ess_ == 2000
    assert model.diagnostics_ is None
    exact = GaussianNB().fit(IRIS, SPECIES)
    assert_allclose(model.predict_proba(IRIS), exact.predict_proba(IRIS), atol=0.02)


def test_importance_is_reproducible_and_its_quality_reported(monkeypatch):
    monkeypatch.setattr(nuts, "run", None)
    model, again, other = (shared(random_state=seed).fit(IRIS, SPECIES) for seed in (0, 0, 1))
    assert_array_equal(draws_of(model)["mean"], draws_of(again)["mean"])
    assert not np.array_equal(draws_of(model)["mean"], draws_of(other)["mean"])
    assert model.importance_khat_ < 0.7
    assert 400 < model.importance_ess_ < 4000
    assert model.diagnostics_ is None
    assert draws_of(model)["mean"].shape == (1, 4000, 3, 4)


def test_the_proposal_is_the_stated_one(monkeypatch):
    """Another conjugate prior proposes: other weights, the same posterior."""
    monkeypatch.setattr(nuts, "run", None)
    proposal = NormalInverseWishart(mean=3.0, mean_precision=0.02, df=6.0, scale=np.eye(4))
    default = shared().fit(IRIS, SPECIES)
    stated = shared(inference=ImportanceOptions(8000, proposal=proposal)).fit(IRIS, SPECIES)
    assert stated.importance_khat_ < 0.7
    assert stated.importance_ess_ / 8000 != pytest.approx(default.importance_ess_ / 4000, rel=1e-3)
    for site in ("mean", "covariance"):
        a, b = draws_of(default)[site][0], draws_of(stated)[site][0]
        error = np.hypot(
            a.std(axis=0) / np.sqrt(default.importance_ess_), b.std(axis=0) / np.sqrt(stated.importance_ess_)
        )
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4 * error).all()


def test_weights_that_cannot_be_trusted_lead_to_nuts(monkeypatch):
    """A prior far from what the data say, against a conjugate posterior that cannot know: k-hat above 0.7."""
    far = LKJPrior(1.0, scale=dist.LogNormal(3.0, 0.05), mean=dist.Normal(100.0, 0.5))
    model = shared(far).partial_fit(IRIS[::10], SPECIES[::10], [0, 1, 2])
    with pytest.warns(SamplingWarning, match=r"k-hat of .* above 0\.7.*NUTS is used instead"):
        run = asked(monkeypatch, model._fit_value.features)
    assert run.form is nuts.chart_form
    assert run.options == NUTSOptions()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:NUTS. :bayesgen.SamplingWarning")  # a short run
def test_the_fallback_is_the_run_that_nuts_would_make():
    far = LKJPrior(1.0, scale=dist.LogNormal(3.0, 0.05), mean=dist.Normal(100.0, 0.5))
    X, y = IRIS[::10, :2], SPECIES[::10]
    options = NUTSOptions(num_warmup=300, num_samples=300, num_chains=2, progress_bar=False)
    with pytest.warns(SamplingWarning, match="NUTS is used instead"):
        model = shared(far, inference=ImportanceOptions(fallback=options)).fit(X, y)
    assert model.importance_khat_ is model.importance_ess_ is None
    direct = shared(far, inference=options).fit(X, y)
    assert_array_equal(draws_of(model)["mean"], draws_of(direct)["mean"])
    assert model.diagnostics_.n_chains == 2


# ----------------------------------------------------------------------------------------------------
# standard deviations and correlations


def row_level(x, y, kinds):
    """The model of `STATED`, row by row, in NumPyro alone."""
    d = x.shape[1]
    scale = numpyro.sample("scale", dist.HalfNormal(2.0).expand((*kinds, d)).to_event(1))
    corr = numpyro.sample("corr", dist.LKJCholesky(d, 2.0).expand(kinds))
    mean = numpyro.sample("mean", dist.Normal(3.0, 5.0).expand((3, d)).to_event(2))
    root = scale[..., None] * corr
    numpyro.deterministic("covariance", root @ jnp.swapaxes(root, -1, -2))
    with numpyro.plate("row", len(x)):
        numpyro.sample("x", dist.MultivariateNormal(mean[y], scale_tril=root[y] if kinds else root), obs=x)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "kinds"), [(shared, ()), (per_class, (3,))], ids=["shared", "per class"])
def test_lkj_priors_agree_with_a_program_written_by_hand(make, kinds):
    """Iris, 4 chains of 1000: no divergences, bulk ESS above 1000, and the posterior of an independent program."""
    az = pytest.importorskip("arviz")
    model = make(inference=NUTSOptions(progress_bar=False)).fit(IRIS, SPECIES)
    assert model.diagnostics_.divergences == 0
    assert model.diagnostics_.r_hat < 1.01
    for name, draws in draws_of(model).items():
        flat = draws.reshape(4, 1000, -1)
        assert min(float(az.ess(flat[..., j], method="bulk")) for j in range(flat.shape[-1])) > 1000, name
    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(row_level),
            num_warmup=500,
            num_samples=500,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(1), IRIS, SPECIES, kinds)
        by_hand = mcmc.get_samples(group_by_chain=True)
    for site in ("mean", "covariance"):
        assert np.abs(from_draws(draws_of(model)[site], by_hand[site])).max() < 4
    if kinds:  # fifty rows a class are too few for a proposal that does not know the prior: k-hat is above 0.7
        return
    weighted = make().fit(IRIS, SPECIES)
    assert weighted.importance_khat_ < 0.7
    for site in ("mean", "covariance"):
        apart = from_draws(draws_of(model)[site], draws_of(weighted)[site], weighted.importance_ess_)
        assert np.abs(apart).max() < 4


@pytest.mark.slow
def test_a_strong_common_covariance_is_the_shared_model_and_a_weak_one_is_per_class():
    """tau to infinity: linear discriminant analysis; tau small: quadratic."""

    def odds(model):
        log_proba = model.fit(IRIS, SPECIES).predict_log_proba(IRIS)
        return log_proba - log_proba.mean(axis=1, keepdims=True)

    linear = odds(shared(LKJPrior()))
    quadratic = odds(per_class(None, inference="exact"))
    strong, weak = (
        odds(per_class(HierarchicalCovariancePrior(strength=dist.LogNormal(np.log(tau), 0.1)))) for tau in (1e5, 1.0)
    )

    def rms(a, b):
        return float(np.sqrt(((a - b) ** 2).mean()))

    assert rms(strong, linear) < 0.1 * rms(linear, quadratic)
    assert rms(weak, quadratic) < 0.3 * rms(linear, quadratic)


# ----------------------------------------------------------------------------------------------------
# against NUTS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "X", "y"),
    [
        (lambda **k: MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), **k), WORDS, GROUP),
        (lambda **k: MultinomialNB(alpha=HierarchicalDirichlet(per_class=True), **k), WORDS, GROUP),
        (lambda **k: per_class(HierarchicalCovariancePrior(), **k), IRIS, SPECIES),
        (
            lambda **k: GaussianNB(
                prior=NormalInverseGamma(mean_precision=dist.LogNormal(0.0, 1.0), scale=dist.LogNormal(0.0, 1.0)), **k
            ),
            IRIS,
            SPECIES,
        ),
    ],
    ids=["one concentration", "one for each class", "hierarchical covariance", "Gaussian"],
)
def test_importance_over_hyperparameters_agrees_with_nuts(make, X, y):
    """Means and standard deviations of every hyperparameter within 4 MCSE; resampled draws count as their ESS."""
    walk = make(inference=OPTIONS, random_state=1).fit(X, y)
    direct = make(inference=ImportanceOptions(8000), random_state=1).fit(X, y)
    assert walk.diagnostics_.divergences == 0
    assert direct.importance_khat_ < 0.7
    assert direct.importance_ess_ > 500
    latent = walk._fit_value.features._latent[0]
    for name in latent:
        if name == "corr_cholesky":
            name = "common_covariance"
        apart = from_draws(draws_of(walk)[name], draws_of(direct)[name], direct.importance_ess_)
        assert np.abs(apart).max() < 4, name
    assert np.abs(walk.predict_proba(X) - direct.predict_proba(X)).max() < 0.02


@pytest.mark.slow
def test_a_prior_written_as_a_function_agrees_with_nuts():
    """Log-normal rates of Poisson counts: importance from the gamma posterior, and NUTS on the same function."""

    def prior(family):
        shape = (family.n_classes, family.n_features)
        return {"rate": numpyro.sample("rate", dist.LogNormal(0.0, 1.0).expand(shape).to_event(2))}

    X = WORDS[:, :5]
    walk = PoissonNB(prior=prior, inference=OPTIONS, random_state=1).fit(X, GROUP)
    direct = PoissonNB(prior=prior, inference="importance", random_state=1).fit(X, GROUP)
    assert walk.diagnostics_.divergences == 0
    assert direct.importance_khat_ < 0.7
    assert np.abs(from_draws(draws_of(walk)["rate"], draws_of(direct)["rate"], direct.importance_ess_)).max() < 4
    with pytest.raises(UndefinedNumberError, match="evidence"):
        _ = direct.log_evidence_
