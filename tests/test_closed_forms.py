"""Closed forms in coordinates and corners that the laws reach slowly, against formulas written out."""

import numpy as np
import pytest
from scipy.special import betaln

from bayesgen.families import (
    Bernoulli,
    Categorical,
    Gaussian,
    Labels,
    Multinomial,
    MultivariateGaussian,
    PerClassMultivariateGaussian,
    Poisson,
    SharedVarianceGaussian,
)
from bayesgen.fit import LooResult
from bayesgen.smoothing_rules import Cells, discount

RNG = np.random.default_rng(0)
CELLS = RNG.uniform(0.4, 3.0, (2, 5))
LEVELS = Categorical(CELLS, n_classes=2, n_features=2, n_levels=(2, 3))
WORDS = Multinomial(CELLS, n_classes=2, n_features=5)
RATES = Poisson(CELLS, 1.7, n_classes=2, n_features=5)
FLAGS = Bernoulli(CELLS, CELLS[::-1] + 0.5, n_classes=2, n_features=5)
NORMALS = Gaussian(0.3, 0.0, 2.0, CELLS, 1.0 + CELLS, n_classes=2, n_features=5)


def log_gamma_density(chart, u):
    """Of the logs of gamma variables with the concentrations for shapes, up to a constant."""
    log_cell = chart.loc + chart.spread * u["log_cell"]
    return (CELLS * log_cell - np.exp(log_cell)).sum()


def logit_density(chart, u):
    """Of log odds t of a beta variable: a t - (a + b) ln(1 + e^t), up to a constant."""
    a, b = FLAGS.concentrations()
    t = chart.loc + chart.spread * u["log_odds"]
    return (a * t - (a + b) * np.log1p(np.exp(t))).sum()


def log_rate_density(chart, u):
    """Of the log of a gamma variable: a t - b e^t, up to a constant."""
    t = chart.loc + chart.spread * u["log_rate"]
    return (CELLS * t - 1.7 * np.exp(t)).sum()


def normal_density(chart, u):
    """Of the log t of an inverse-gamma variable, -a t - b e^-t, and of standardised means."""
    t = chart.log_variance + chart.spread * u["log_variance"]
    return (-CELLS * t - (1.0 + CELLS) * np.exp(-t)).sum() - 0.5 * (u["mean"] ** 2).sum()


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (WORDS, log_gamma_density),
        (LEVELS, log_gamma_density),
        (FLAGS, logit_density),
        (RATES, log_rate_density),
        (NORMALS, normal_density),
    ],
    ids=lambda v: type(v).__name__ if hasattr(v, "chart") else "",
)
def test_the_prior_in_the_coordinates_of_its_chart(prior, expected):
    chart, gaps = prior.chart(), []
    for _ in range(6):
        u = {name: RNG.normal(size=shape) for name, shape in chart.shapes.items()}
        params, log_jacobian = chart.params(u)
        gaps.append(prior.log_density(params) + log_jacobian - expected(chart, u))
    np.testing.assert_allclose(gaps, gaps[0], rtol=0, atol=1e-11)


def test_an_empty_class_costs_the_unbiased_shared_covariance_no_degree_of_freedom():
    x = RNG.normal(size=(9, 2))
    codes = np.array([0, 0, 0, 0, 2, 2, 2, 2, 2])
    scatter = sum((codes == k).sum() * np.cov(x[codes == k].T, ddof=0) for k in (0, 2))
    family = MultivariateGaussian().init(x, 3)
    params = family.mle(family.stats(x, Labels(codes)), unbiased=True)
    np.testing.assert_allclose(params.covariance, scatter / (9 - 2), rtol=1e-12)
    family = SharedVarianceGaussian().init(x, 3)
    params = family.mle(family.stats(x, Labels(codes)), unbiased=True)
    np.testing.assert_allclose(params.variance[0], np.diagonal(scatter) / (9 - 2), rtol=1e-12)


def test_the_shifted_normal_prior_has_five_halves_less_shape():
    """The mean of the variance, b / (a - 1), is the joint mode b / (a + 3/2) under a - 5/2."""
    np.testing.assert_allclose(NORMALS.shifted().mode().variance, NORMALS.replace(shape=CELLS).mean().variance)
    np.testing.assert_allclose(NORMALS.shifted(2.0).shape, CELLS - 5.0)


def test_the_evidence_of_a_word_against_all_others_is_a_ratio_of_beta_functions():
    count = np.array([[3.0, 0.0, 1.0, 7.0, 2.0], [0.0, 4.0, 2.0, 0.0, 1.0]])
    rest, others = count.sum(axis=1, keepdims=True) - count, CELLS.sum(axis=1, keepdims=True) - CELLS
    expected = (betaln(CELLS + count, others + rest) - betaln(CELLS, others)).sum(axis=0)
    stats = WORDS.stats(count, Labels(np.array([0, 1])))
    np.testing.assert_allclose(WORDS.log_evidence_columns(stats), expected, rtol=1e-11)


@pytest.mark.parametrize(
    "family", [PerClassMultivariateGaussian(), MultivariateGaussian(), Gaussian()], ids=lambda v: type(v).__name__
)
def test_a_class_that_loses_its_rows_keeps_no_scatter(family):
    x = RNG.normal(size=(40, 3)) * [1.0, 1e3, 1e-3] + 5.0
    codes = np.repeat([0, 1], 20)
    family = family.init(x, 2)
    both = family.stats(x, Labels(codes))
    rest = family.remove(both, family.stats(x[20:], Labels(codes[20:])))
    alone = family.stats(x[:20], Labels(codes[:20]))
    assert rest.weight[1].max() == 0.0
    if rest.scatter.ndim > 2 or isinstance(family, Gaussian):
        assert (rest.scatter[1] == 0.0).all()
    np.testing.assert_allclose(rest.scatter, alone.scatter, rtol=1e-9, atol=1e-9 * alone.scatter.max())


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_the_default_location_is_the_mean_of_all_rows_and_the_default_scale_their_variance_within(offset):
    x = RNG.normal(size=(12, 2)) + offset
    codes = np.array([0] * 3 + [1] * 9)
    x[codes == 1] += 5.0
    family = Gaussian(shape=3.0).init(x, 2)
    found = family.resolve(family.stats(x, Labels(codes)))
    np.testing.assert_allclose(found.loc - offset + found.loc_low, (x - offset).mean(axis=0), rtol=1e-12)
    within = sum(((x[codes == k] - x[codes == k].mean(axis=0)) ** 2).sum(axis=0) for k in (0, 1)) / 12
    np.testing.assert_allclose(found.scale, 2.0 * within, rtol=1e-6 if offset else 1e-12)  # x itself has 7 digits there


def test_the_standard_error_of_a_sum_is_that_of_independent_rows():
    joint, conditional = np.array([-1.0, -2.0, -6.0]), np.array([-0.5, -0.25, -0.75])
    loo = LooResult(np.zeros((3, 2)), joint, conditional)
    assert (loo.elpd_joint, loo.elpd_conditional) == (-9.0, -1.5)
    np.testing.assert_allclose(loo.se_joint, np.sqrt(3 * 7.0))  # squares about the mean: 4 + 1 + 9, over 2
    np.testing.assert_allclose(loo.se_conditional, np.sqrt(3 * 0.0625))
    one = LooResult(np.zeros((1, 2)), joint[:1], conditional[:1])
    assert np.isnan([one.se_joint, one.se_conditional]).all()


@pytest.mark.parametrize(
    ("counts", "expected"), [([1, 2, 5], 1 / 3), ([1, 1, 2, 0], 2 / 4), ([2, 2, 7], 0.0), ([1, 4], 1.0), ([0, 4], 0.5)]
)
def test_the_discount_of_absolute_discounting(counts, expected):
    cells = Cells(np.array([counts], dtype=float), np.zeros(len(counts), dtype=int))
    assert discount(cells) == pytest.approx(expected)
