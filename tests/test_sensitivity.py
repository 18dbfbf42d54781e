"""Power-scaling sensitivity in closed form: against quadrature, against ArviZ on draws, and its meaning."""

from __future__ import annotations

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.integrate import quad
from sklearn.datasets import load_iris

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    PoissonNB,
    UndefinedNumberError,
    prior_sensitivity,
)
from bayesgen.arviz_io import is_old, load

COUNTS = np.array([[4, 1, 0], [3, 0, 2], [5, 1, 1], [0, 6, 3], [1, 5, 4], [2, 7, 2]])
LABELS = np.array([0, 0, 0, 1, 1, 1])


def by_quadrature(base, other):
    """Cumulative Jensen-Shannon distance, written out and integrated adaptively."""
    low, high = base.ppf(0.5 / 4000), base.ppf(1 - 0.5 / 4000)

    def gap(x):
        f, g = base.cdf(x), other.cdf(x)
        return f * np.log2(2 * f / (f + g)) + g * np.log2(2 * g / (f + g))

    def both(x):
        return base.cdf(x) + other.cdf(x)

    middle = [base.ppf(p) for p in (0.1, 0.5, 0.9)]
    options = {"points": middle, "limit": 200, "epsabs": 0, "epsrel": 1e-9}
    return np.sqrt(quad(gap, low, high, **options)[0] / quad(both, low, high, **options)[0])


def test_the_sensitivity_of_a_rate_is_the_slope_of_the_distance_of_its_gammas():
    table = prior_sensitivity(PoissonNB().fit([[40], [44], [52], [9], [7], [8]], LABELS), var_names=["rate"])
    step = 2 * np.log2(1.01)
    for row, total in zip(table.itertuples(), (136.0, 24.0), strict=True):
        base = stats.gamma(1 + total, scale=1 / 4)  # prior Gamma(1, 1), three rows
        prior = sum(by_quadrature(base, stats.gamma(1 + total, scale=1 / (s + 3))) for s in (1.01, 1 / 1.01))
        data = sum(by_quadrature(base, stats.gamma(1 + s * total, scale=1 / (1 + 3 * s))) for s in (1.01, 1 / 1.01))
        assert row.mean == pytest.approx(base.mean())
        assert row.sd == pytest.approx(base.std())
        assert row.prior == pytest.approx(prior / step, rel=2e-3)
        assert row.likelihood == pytest.approx(data / step, rel=2e-3)


def test_a_flat_prior_says_nothing_and_a_strong_one_is_found_out():
    flat = prior_sensitivity(BernoulliNB().fit(COUNTS > 1, LABELS))
    assert (flat["prior"] < 1e-6).all()
    assert (flat["diagnosis"] == "").all()
    strong = prior_sensitivity(BernoulliNB(alpha=(200.0, 200.0)).fit(COUNTS > 1, LABELS), var_names="feature_prob")
    assert (strong["prior"] > 0.05).all()
    assert (strong["likelihood"] < 0.05).all()
    assert set(strong["diagnosis"]) == {"informative prior"}
    # A prior far from the data, as sure as they are.
    against = GaussianNB(prior=NormalInverseGamma(100.0, 6.0, 3.0, 3.0)).fit(COUNTS[:, :1].astype(float), LABELS)
    assert set(prior_sensitivity(against, var_names="mean")["diagnosis"]) == {"prior and data compete"}


@pytest.mark.slow
@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_arviz_finds_the_same_from_draws(covariance):
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    model = GaussianDiscriminantAnalysis(covariance=covariance, random_state=0).fit(X, y)
    exact = prior_sensitivity(model, var_names=["mean"])
    draws = model.to_arviz(X, y, groups=["log_likelihood", "log_prior"], n_draws=6000)
    arviz = load()
    for part in ("prior", "likelihood"):
        found = arviz.psens(draws, component=part) if is_old(arviz) else arviz.psense(draws, group=part)
        np.testing.assert_allclose(found["mean"].values.ravel(), exact[part], atol=0.012)


def test_rows_carry_real_names_and_can_be_chosen():
    import pandas as pd

    frame = pd.DataFrame({"size": [1.0, 1.2, 3.0, 3.3], "colour": ["red", "red", "blue", "red"]})
    blocks = [("numbers", GaussianNB(), ["size"]), ("kinds", CategoricalNB(), ["colour"])]
    table = prior_sensitivity(MixedNB(blocks=blocks).fit(frame, ["a", "a", "b", "b"]))
    assert list(table.index[:4]) == ["class_prob[a]", "class_prob[b]", "numbers.mean[a, size]", "numbers.mean[b, size]"]
    assert "kinds.feature_prob_colour[a, red]" in table.index
    words = MultinomialNB().fit(pd.DataFrame(COUNTS, columns=list("uvw")), LABELS)
    chosen = prior_sensitivity(words, features=["w"], var_names=["feature_prob"])
    assert list(chosen.index) == ["feature_prob[0, w]", "feature_prob[1, w]"]
    assert list(chosen.columns) == ["mean", "sd", "prior", "likelihood", "diagnosis"]


def test_the_probability_of_an_only_class_is_no_parameter():
    table = prior_sensitivity(PoissonNB().fit([[1], [2]], [0, 0]))
    assert list(table.index) == ["rate[0, 0]"]


def test_what_has_no_power_in_closed_form_is_refused():
    hierarchical = MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance").fit(COUNTS, LABELS)
    with pytest.raises(ValueError, match=r"az\.psens"):
        prior_sensitivity(hierarchical)
    with pytest.raises(UndefinedNumberError, match="improper"):
        prior_sensitivity(GaussianNB(prior="reference").fit(COUNTS, LABELS))
    with pytest.raises(UndefinedNumberError, match="class_alpha=0"):
        prior_sensitivity(PoissonNB(class_alpha=0).fit(COUNTS, LABELS))
    with pytest.raises(UndefinedNumberError, match="'mle' has no posterior"):
        prior_sensitivity(PoissonNB(inference="mle").fit(COUNTS[:, :2], LABELS))
    half = PoissonNB(inference="mean", unlabelled="em").fit(COUNTS, np.where(np.arange(6) % 3, LABELS, -1))
    with pytest.raises(UndefinedNumberError, match="unlabelled rows"):
        prior_sensitivity(half)
    with pytest.raises(ValueError, match=r"var_names holds 'rates'; the variables are class_prob, rate"):
        prior_sensitivity(PoissonNB().fit(COUNTS, LABELS), var_names=["rates"])
    with pytest.raises(ValueError, match="more than 5000 numbers"):
        prior_sensitivity(PoissonNB().fit(np.ones((2, 3000)), [0, 1]))
