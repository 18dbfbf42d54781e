"""Simulation-based calibration: posterior draws are draws from the posterior of the program's own prior.

Parameters are drawn from the prior, rows from the parameters, and the model is fitted to the rows. Among `DRAWS`
independent posterior draws, the rank of the true value of any scalar is then uniform on 0..DRAWS. It is taken of every
parameter, of hyperparameters, of class probabilities and, because draws from the prior alone would pass the others, of
the log likelihood. Classes that happen to have no rows stay in. [Talts et al. 2018; Modrák et al. 2023]

The number of ranks below a threshold is binomial, so each of `THRESHOLDS` has an exact two-sided p-value; the smallest
of them, times their number and the number of scalars, bounds the probability of a false alarm. Every test here has
`FALSE_ALARM`, the whole file less than 0.005.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive
from scipy.stats import binom

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    HierarchicalDirichlet,
    ImportanceOptions,
    LKJPrior,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NUTSOptions,
    SamplingWarning,
)
from bayesgen.families import (
    Bernoulli,
    Categorical,
    Gaussian,
    Multinomial,
    MultivariateGaussian,
    PerClassMultivariateGaussian,
    Poisson,
    SharedVarianceGaussian,
)

FALSE_ALARM = 1e-4
DRAWS = 63
THRESHOLDS = np.arange(4, DRAWS, 4)  # sixteenths of the 64 possible ranks
CLASSES = 3
LENGTHS = np.array([0, 1, 2, 3, 5, 8])  # of documents; one is empty
# DRAWS of the draws are taken at random, few enough to be nearly independent.
NUTS = NUTSOptions(num_warmup=250, num_samples=100, num_chains=2)
LONGER_NUTS = NUTSOptions(num_warmup=300, num_samples=250, num_chains=2)


@dataclass(frozen=True)
class Case:
    """A model with a proper prior that does not depend on data."""

    name: str
    model: Callable[..., Any]
    """The estimator, given ``inference=``."""
    n_columns: int
    wrong: Callable[..., Any] | None = None
    """The same with a prior that is off by one."""
    n_rows: int = 6

    @property
    def lengths(self) -> np.ndarray:
        return np.resize(LENGTHS, self.n_rows)


def general(family: Any) -> Callable[..., Any]:
    return partial(GenerativeClassifier, family=family, class_alpha=1.5)


def mixed(alpha: float) -> Callable[..., Any]:
    def model(inference: Any, **options: Any) -> MixedNB:
        size = GaussianNB(prior=NormalInverseGamma(1.0, 0.5, 2.0, 1.5), inference=inference)
        words = MultinomialNB(alpha=alpha, inference=inference)
        return MixedNB(blocks=[("words", words, [0, 1, 2]), ("size", size, [3])], class_alpha=1.5, **options)

    return model


WISHART = {"loc": 1.0, "loc_low": 0.0, "mean_precision": 0.5, "scale": np.array([[2.0, 0.6], [0.6, 1.0]])}
NORMAL = {"loc": 1.0, "loc_low": 0.0, "mean_precision": 0.5, "scale": 1.5}
CONJUGATE = [
    Case("Bernoulli", general(Bernoulli(1.3, 0.8)), 3, general(Bernoulli(2.3, 0.8))),
    Case("Multinomial", general(Multinomial(0.8)), 3, general(Multinomial(1.8))),
    Case("Categorical", general(Categorical(0.8, n_levels=(2, 3))), 2, general(Categorical(1.8, n_levels=(2, 3)))),
    Case("Poisson", general(Poisson(2.0, 1.0)), 2, general(Poisson(3.0, 1.0))),
    Case("Gaussian", general(Gaussian(**NORMAL, shape=2.0)), 2, general(Gaussian(**NORMAL, shape=3.0))),
    Case(
        "SharedVarianceGaussian",
        general(SharedVarianceGaussian(**NORMAL, shape=2.0)),
        2,
        general(SharedVarianceGaussian(**NORMAL, shape=3.0)),
    ),
    Case(
        "MultivariateGaussian",
        general(MultivariateGaussian(**WISHART, df=3.0)),
        2,
        general(MultivariateGaussian(**WISHART, df=4.0)),
    ),
    Case(
        "PerClassMultivariateGaussian",
        general(PerClassMultivariateGaussian(**WISHART, df=3.0)),
        2,
        general(PerClassMultivariateGaussian(**WISHART, df=4.0)),
    ),
    Case("Mixed", mixed(0.8), 4, mixed(1.8)),
]
ALPHA = dist.LogNormal(0.0, 0.7)
ONE_HYPERPARAMETER = [
    Case("Multinomial", partial(MultinomialNB, alpha=ALPHA), 4),
    Case("Bernoulli", partial(BernoulliNB, alpha=ALPHA, binarize=None), 3),
    Case("Categorical", partial(CategoricalNB, alpha=ALPHA, categories=[[0, 1], [0, 1, 2]]), 2),
]
PER_CLASS = HierarchicalDirichlet(ALPHA, per_class=True, base=1.0)
SEVERAL_HYPERPARAMETERS = [
    Case("background and concentrations", partial(MultinomialNB, alpha=PER_CLASS), 3),
    Case(
        "precision of the means",
        partial(GaussianNB, prior=NormalInverseGamma(1.0, dist.LogNormal(0.0, 1.0), 2.0, 1.5)),
        2,
    ),
]
LKJ = LKJPrior(2.0, scale=dist.LogNormal(0.0, 0.5), mean=dist.Normal(0.0, 2.0))
CORRELATIONS = [
    Case(
        kind,
        partial(GaussianDiscriminantAnalysis, covariance=kind, prior=LKJ, class_alpha=10.0),
        2,
        n_rows=n_rows,
    )
    for kind, n_rows in (("shared", 30), ("per_class", 120))
]


def every(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


# ------------------------------------------------------------------------------- worlds


World = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]
"""True values by site, rows, labels."""


def learn(model: Any, x: np.ndarray, y: Any, weights: Any = None) -> Any:
    """The fit; classes are declared by rows without weight."""
    weights = np.ones(len(y)) if weights is None else weights
    declared = np.repeat(x[:1], CLASSES, axis=0)
    weights = np.concatenate([weights, np.zeros(CLASSES)])
    return model.fit(np.concatenate([x, declared]), np.concatenate([y, np.arange(CLASSES)]), weights)


def parts(features: Any) -> list[tuple[str, Any]]:
    """The fits of the blocks of a mixed model, with the prefix of their sites; else the fit itself."""
    if not hasattr(features, "parts"):
        return [("", features)]
    return [(f"{name}.", part) for name, part in zip(features.stated.names, features.parts, strict=True)]


def from_program(case: Case, n: int, seed: int) -> Iterator[World]:
    """Worlds of the NumPyro program of the estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # the program is wanted, not this fit
        model = learn(case.model(inference=NUTS), np.zeros((1, case.n_columns)), [0])
    words = any(type(p.stated) is Multinomial for _, p in parts(model._fit_value.features))
    lengths = {"lengths": case.lengths} if words else {}
    with jax.enable_x64(True):
        sites = Predictive(model.model, num_samples=n, parallel=True)(
            jax.random.key(seed), n_rows=case.n_rows, **lengths
        )
    sites = {k: np.asarray(v) for k, v in sites.items()}
    rows = [sites.pop(f"{prefix}x") for prefix, _ in parts(model._fit_value.features)]
    labels = sites.pop("y")
    for i in range(n):
        yield {k: v[i] for k, v in sites.items()}, np.column_stack([x[i] for x in rows]), labels[i]


def from_families(case: Case, n: int, seed: int) -> Iterator[World]:
    """Worlds of `Family.draw` and `Family.sample`, for conjugate priors: the same, and nothing to compile."""
    rng = np.random.default_rng(seed)
    fit = learn(case.model(inference="exact"), np.zeros((1, case.n_columns)), [0])._fit_value
    for _ in range(n):
        class_prob = np.exp(fit.class_prior.draw(rng, 1)[0])
        y = rng.choice(CLASSES, size=case.n_rows, p=class_prob)
        values, rows = {"class_prob": class_prob}, []
        for prefix, part in parts(fit.features):
            params = part.prior.draw(rng, 1)
            params = type(params)(*(p[0] for p in params))
            values |= {prefix + k: v for k, v in part.prior.variables(params).items()}
            rows.append(part.prior.sample(params, y, rng, case.lengths))
        yield values, np.column_stack(rows), y


# ------------------------------------------------------------------------------- ranks


def posterior(fit: Any, rng: np.random.Generator, truth: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The truth and then `DRAWS` draws, by site: (1 + DRAWS, ...)."""
    drawn = {"class_prob": np.exp(fit.draw_log_class(rng, DRAWS))}
    for prefix, part in parts(fit.features):
        drawn |= {prefix + k: v for k, v in part.stated.variables(part.posterior_params(rng, DRAWS)).items()}
        if hasattr(part, "draws"):  # hyperparameters
            latent = {k: v.reshape(-1, *v.shape[2:]) for k, v in part.draws.sites.items() if k in truth}
            drawn |= {k: rng.permutation(v)[:DRAWS] for k, v in latent.items() if k not in drawn}
    return {k: np.concatenate([truth[k][None], v]) for k, v in drawn.items()}


@jax.jit
def log_likelihoods(family: Any, params: Any, stats: Any) -> Any:
    return jax.vmap(lambda p: family.log_likelihood(p, stats))(params)


def log_likelihood(fit: Any, values: dict[str, np.ndarray]) -> np.ndarray:
    """Log of p(X, y | parameters) up to a constant, for each of the values: (1 + DRAWS,)."""
    total = np.log(values["class_prob"]) @ fit.count
    for prefix, part in parts(fit.features):
        family = getattr(part, "base", part.prior)
        own = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
        with jax.enable_x64(True):
            total = total + np.asarray(log_likelihoods(family, family.from_variables(own), part.stats))
    return total


def scalars(values: dict[str, np.ndarray]) -> np.ndarray:
    """Every number of the sites, and the log determinants of covariances: (1 + DRAWS, n)."""
    columns = []
    for name, value in values.items():
        if name == "covariance":
            columns.append(np.linalg.slogdet(value)[1].reshape(len(value), -1))
            value = value[..., *np.tril_indices(value.shape[-1])]
        columns.append(value.reshape(len(value), -1))
    return np.concatenate(columns, axis=1)


def rank(fit: Any, values: dict[str, np.ndarray]) -> np.ndarray:
    """Rank of the first of the values among the others, for each scalar: (n,)."""
    table = np.column_stack([scalars(values), log_likelihood(fit, values)])
    return (table[1:] < table[0]).sum(axis=0)


def ranks(
    model: Callable[..., Any], worlds: Iterator[World], inference: Any, see: Callable[[Any], None] = lambda fit: None
) -> np.ndarray:
    """Rank of each true scalar among the posterior draws, one row for each world; `see` is shown every fit."""
    rng, out = np.random.default_rng(1), []
    for seed, (truth, x, y) in enumerate(worlds):
        with warnings.catch_warnings():
            # The runs are short, and short runs say so.
            warnings.simplefilter("ignore", SamplingWarning)
            fit = learn(model(inference=inference, random_state=seed), x, y)._fit_value
            values = posterior(fit, rng, truth)
        see(fit)
        out.append(rank(fit, values))
    return np.array(out)


def p_value(ranks: np.ndarray) -> float:
    """Bound on the probability that ranks of a calibrated model look less uniform than these; see the module."""
    n, n_scalars = ranks.shape
    below = (ranks[:, :, None] < THRESHOLDS).sum(axis=0)
    share = THRESHOLDS / (DRAWS + 1)
    tail = np.minimum(binom.cdf(below, n, share), binom.sf(below - 1, n, share))
    return min(1.0, float(2.0 * tail.min() * n_scalars * len(THRESHOLDS)))


# ------------------------------------------------------------------------------- tests


@every(CONJUGATE)
def test_draws_in_closed_form_are_calibrated(case):
    assert p_value(ranks(case.model, from_families(case, 400, 0), "exact")) > FALSE_ALARM


@pytest.mark.slow
@every(CONJUGATE)
def test_a_prior_that_is_off_by_one_is_found_out(case):
    assert p_value(ranks(case.wrong, from_families(case, 400, 0), "exact")) < FALSE_ALARM


def test_draws_that_ignore_the_rows_are_found_out():
    """Draws from the prior pass for every parameter; the log likelihood tells."""
    case = next(case for case in CONJUGATE if case.name == "Poisson")

    prior = learn(case.model(inference="exact"), np.zeros((1, 2)), [0], [1e-12])._fit_value  # next to nothing
    rng, found = np.random.default_rng(1), []
    for truth, x, y in from_families(case, 400, 0):
        found.append(rank(learn(case.model(inference="exact"), x, y)._fit_value, posterior(prior, rng, truth)))
    found = np.array(found)
    assert p_value(found[:, :-1]) > FALSE_ALARM
    assert p_value(found) < FALSE_ALARM


# ---- quadrature, importance


@pytest.mark.slow
@pytest.mark.calibration
@every(ONE_HYPERPARAMETER)
def test_quadrature_over_a_random_concentration_is_calibrated(case):
    found = ranks(case.model, from_program(case, 300, 0), "importance")
    assert p_value(found) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.calibration
@every(CORRELATIONS)
def test_weighted_draws_are_calibrated(case):
    """Worlds whose weights fail are part of the route, with the NUTS that it falls back to; they must be few."""
    khats: list[float | None] = []
    route = ImportanceOptions(fallback=LONGER_NUTS)
    found = ranks(case.model, from_program(case, 300, 0), route, lambda fit: khats.append(fit.features.khat))
    assert p_value(found) > FALSE_ALARM
    assert khats.count(None) <= 45


# ---- NUTS


@pytest.mark.slow
@pytest.mark.calibration
@every(CONJUGATE)
def test_nuts_on_the_statistics_is_calibrated(case):
    assert p_value(ranks(case.model, from_program(case, 150, 0), NUTS)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.calibration
@every(CONJUGATE[1:2])
def test_nuts_under_a_prior_that_is_off_by_one_is_found_out(case):
    assert p_value(ranks(case.wrong, from_families(case, 150, 0), NUTS)) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.calibration
@every(ONE_HYPERPARAMETER[:1] + SEVERAL_HYPERPARAMETERS)
def test_nuts_on_hyperparameters_is_calibrated(case):
    forms: list[str] = []
    found = ranks(case.model, from_program(case, 150, 0), LONGER_NUTS, lambda fit: forms.append(fit.features.form))
    assert p_value(found) > FALSE_ALARM
    assert set(forms) == {"marginal"}


@pytest.mark.slow
@pytest.mark.calibration
@every(CORRELATIONS)
def test_nuts_under_a_prior_of_correlations_is_calibrated(case):
    assert p_value(ranks(case.model, from_program(case, 150, 0), LONGER_NUTS)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.calibration
@every(CONJUGATE[3:4])
def test_nuts_on_the_rows_is_calibrated(case):
    rows = NUTSOptions(num_warmup=250, num_samples=100, num_chains=2, likelihood="rows")
    assert p_value(ranks(case.model, from_families(case, 150, 0), rows)) > FALSE_ALARM
