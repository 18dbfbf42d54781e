"""The Dirichlet of the class probabilities, against scipy and numbers worked by hand."""

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import gammaln, logit

from bayesgen.class_prior import ClassPrior
from bayesgen.em import _log_class_prior
from bayesgen.exceptions import UndefinedNumberError

ALPHA = np.array([0.5, 2.0, 3.5])
COUNT = np.array([3.0, 0.0, 4.0])
POINTS = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.05, 0.05, 0.9]])
PRIOR = ClassPrior(ALPHA, None, 3)


def test_the_evidence_is_that_of_the_dirichlet_multinomial_of_a_sequence():
    orders = gammaln(COUNT.sum() + 1) - gammaln(COUNT + 1).sum()
    expected = st.dirichlet_multinomial(ALPHA, int(COUNT.sum())).logpmf(COUNT.astype(int)) - orders
    assert PRIOR.log_evidence(COUNT) == pytest.approx(expected, rel=1e-12)


def test_the_density_is_that_of_scipy():
    expected = [st.dirichlet(ALPHA).logpdf(p) for p in POINTS]
    np.testing.assert_allclose([PRIOR.log_density(np.log(p)) for p in POINTS], expected, rtol=1e-12)


@pytest.mark.parametrize("power", [0.3, 1.0, 1.2, 2.5])
def test_a_power_of_the_density_is_proportional_to_the_tempered_one(power):
    gap = [PRIOR.tempered(power).log_density(np.log(p)) - power * PRIOR.log_density(np.log(p)) for p in POINTS]
    np.testing.assert_allclose(gap, gap[0], rtol=1e-12)


def test_marginals_are_those_of_a_dirichlet():
    marginal = PRIOR.condition(COUNT).marginal()
    whole = st.dirichlet(ALPHA + COUNT)
    np.testing.assert_allclose(marginal.mean(), whole.mean(), rtol=1e-13)
    np.testing.assert_allclose(marginal.var(), whole.var(), rtol=1e-13)


def test_moments_of_the_log_odds_are_integrals():
    mean, variance = ClassPrior(1.5, None, 2).log_moments(np.array([2.0, 4.0]))
    beta = st.beta(3.5, 5.5)
    assert mean[0] - mean[1] == pytest.approx(beta.expect(logit), rel=1e-7)
    about = beta.expect(lambda p: (logit(p) - (mean[0] - mean[1])) ** 2)
    assert variance.sum() == pytest.approx(about, rel=1e-7)


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("mle", [3 / 7, 0, 4 / 7]),
        ("map", [2.5 / 10, 1 / 10, 6.5 / 10]),
        ("mean", [3.5 / 13, 2 / 13, 7.5 / 13]),
        ("exact", [3.5 / 13, 2 / 13, 7.5 / 13]),
    ],
)
def test_routes(route, expected):
    np.testing.assert_allclose(np.exp(PRIOR.log_prob(route, COUNT)), expected, rtol=1e-13)


def test_leave_one_out_takes_the_weight_of_the_row_from_its_class():
    found = np.exp(PRIOR.log_loo(np.array([0, 2]), np.array([1.0, 2.5]), COUNT))
    np.testing.assert_allclose(found, [[2.5 / 12, 2 / 12, 7.5 / 12], [3.5 / 10.5, 2 / 10.5, 5 / 10.5]], rtol=1e-13)


def test_known_probabilities_stay_and_have_no_density():
    known = ClassPrior(1.0, np.array([0.2, 0.8]), 2)
    count = np.array([3.0, 1.0])
    assert known.condition(count) is known
    assert known.log_density(np.log([0.5, 0.5])) == 0.0
    assert known.log_evidence(count) == pytest.approx(3 * np.log(0.2) + np.log(0.8))
    for route in ("mle", "map", "mean", "exact"):
        np.testing.assert_allclose(np.exp(known.log_prob(route, count)), [0.2, 0.8])
    np.testing.assert_allclose(np.exp(known.log_loo(np.array([0]), np.ones(1), count)), [[0.2, 0.8]])
    mean, variance = known.log_moments(count)
    np.testing.assert_allclose(np.exp(mean), [0.2, 0.8])
    assert (variance == 0).all()


def test_without_pseudo_counts_there_is_no_evidence():
    with pytest.raises(UndefinedNumberError, match="class_alpha"):
        ClassPrior(0.0, None, 2).log_evidence(np.array([1.0, 2.0]))


def test_draws_are_probabilities_with_the_moments_of_the_dirichlet():
    draws = np.exp(PRIOR.draw(np.random.default_rng(0), 4000))
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-13)
    whole = st.dirichlet(ALPHA)
    error = (draws.mean(axis=0) - whole.mean()) / np.sqrt(whole.var() / len(draws))
    assert np.abs(error).max() < 4.0
    np.testing.assert_allclose(draws.var(axis=0), whole.var(), rtol=0.1)


def test_the_objective_of_em_has_the_density_also_of_an_improper_class_prior():
    log_prob = np.log([0.3, 0.7])
    expected = -np.log(0.3) - np.log(0.7)  # Dirichlet(0), up to its infinite constant
    assert _log_class_prior(ClassPrior(0.0, None, 2), "map", log_prob) == pytest.approx(expected)
    assert _log_class_prior(ClassPrior(0.0, None, 2), "mle", log_prob) == 0.0
    assert _log_class_prior(ClassPrior(1.5, None, 2), "mean", log_prob) == pytest.approx(
        st.dirichlet([2.5, 2.5]).logpdf([0.3, 0.7])
    )
