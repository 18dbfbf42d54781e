"""Priors without a closed form and settings of the samplers that cannot be meant: errors that say what is wrong."""

from __future__ import annotations

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

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
    NUTSOptions,
    PoissonNB,
    UndefinedNumberError,
)

X = np.random.default_rng(0).poisson(3, (30, 4)).astype(float)
Y = np.repeat([0, 1, 2], 10)
SHORT = NUTSOptions(20, 20, 1)


def names_of_another_family(family):
    return {"mean": numpyro.sample("mean", dist.Normal(0.0, 1.0))}


ERRORS = {
    "a route in capitals": (lambda: GaussianNB(inference="NUTS"), "inference must be one of .*'nuts'.*got 'NUTS'"),
    "a number for a route": (lambda: GaussianNB(inference=5), "inference must be one of .*got 5"),
    "correlations of independent columns": (
        lambda: GaussianNB(prior=LKJPrior(), inference=SHORT),
        "LKJPrior is for GaussianDiscriminantAnalysis",
    ),
    "correlations of words": (
        lambda: MultinomialNB(alpha=LKJPrior(), inference=SHORT),
        "LKJPrior is for GaussianDiscriminantAnalysis",
    ),
    "shrinking one covariance": (
        lambda: GaussianDiscriminantAnalysis(prior=HierarchicalCovariancePrior(), inference=SHORT),
        "covariance='per_class'",
    ),
    "a Dirichlet for measurements": (
        lambda: GaussianDiscriminantAnalysis(prior=HierarchicalDirichlet(), inference=SHORT),
        "HierarchicalDirichlet is for BernoulliNB",
    ),
    "negative standard deviations": (
        lambda: GaussianDiscriminantAnalysis(prior=LKJPrior(scale=dist.Normal(0.0, 1.0)), inference=SHORT),
        "scale is a Normal, which allows negative numbers",
    ),
    "scales of other columns": (
        lambda: GaussianDiscriminantAnalysis(prior=LKJPrior(scale=dist.HalfNormal(np.ones(7))), inference=SHORT),
        r"scale has the shape \(7,\)",
    ),
    "a negative concentration": (
        lambda: MultinomialNB(alpha=dist.Normal(0.0, 1.0), inference="importance"),
        "alpha is a Normal, which allows negative numbers",
    ),
    "concentrations of other columns": (
        lambda: MultinomialNB(alpha=dist.LogNormal(np.zeros(3), 1.0), inference=SHORT),
        r"alpha has shape \(3,\)",
    ),
    "a background of levels": (
        lambda: CategoricalNB(alpha=HierarchicalDirichlet(base=1.0), inference=SHORT),
        "learned background .* is for MultinomialNB",
    ),
    "a function that returns a number": (
        lambda: PoissonNB(prior=lambda family: 3, inference=SHORT),
        "returned int",
    ),
    "a function that returns another family's parameters": (
        lambda: PoissonNB(prior=names_of_another_family, inference=SHORT),
        r"parameters \['rate'\]; this one returned \['mean'\]",
    ),
    "a distribution of nobody knows what": (
        lambda: GaussianDiscriminantAnalysis(prior=dist.Normal(0.0, 1.0), inference=SHORT),
        "put distributions into the fields of NormalInverseWishart",
    ),
    "a random prior and a closed form": (
        lambda: MultinomialNB(alpha=dist.LogNormal(0.0, 1.0)),
        "no closed form .*inference='exact'.*use inference='nuts'",
    ),
    "class probabilities that sum to 3": (
        lambda: GaussianNB(class_prior=np.ones, inference=SHORT),
        "class_prior must return 3 probabilities that sum to 1",
    ),
    "random class probabilities and a closed form": (
        lambda: GaussianNB(class_prior=np.ones),
        "class_prior that is a function has no closed form",
    ),
    "an improper prior": (
        lambda: GaussianDiscriminantAnalysis(prior="reference", inference="nuts"),
        "this prior is improper",
    ),
    "a proposal that is no prior": (
        lambda: GaussianDiscriminantAnalysis(prior=LKJPrior(), inference=ImportanceOptions(proposal=3)),
        "prior must be a NormalInverseWishart",
    ),
    "nothing to integrate out": (
        lambda: MultinomialNB(inference=NUTSOptions(likelihood="marginal")),
        "inference='exact' integrates them out",
    ),
    "more draws than memory": (
        lambda: MultinomialNB(inference=NUTSOptions(num_samples=10**8)),
        "GiB: this prior is conjugate, and inference='exact'",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_cannot_be_meant_is_an_error_and_changes_nothing(case):
    make, message = ERRORS[case]
    model = make()
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NUTSOptions(num_chains=0), "num_chains must be a whole number"),
        (lambda: NUTSOptions(target_accept_prob=1.0), "target_accept_prob must be between 0 and 1"),
        (lambda: NUTSOptions(likelihood="row"), "likelihood must be one of"),
        (lambda: NUTSOptions(chain_method="threads"), "chain_method must be one of"),
        (lambda: ImportanceOptions(num_samples=0), "num_samples must be a whole number"),
        (lambda: ImportanceOptions(fallback="nuts"), "fallback must be a NUTSOptions"),
        (lambda: LKJPrior(scale=2.0), "scale of LKJPrior must be a NumPyro distribution"),
        (lambda: LKJPrior(concentration=-1), "concentration of LKJPrior must be a positive number"),
        (lambda: HierarchicalDirichlet(concentration=2.0), "concentration of HierarchicalDirichlet must be a NumPyro"),
        (lambda: HierarchicalDirichlet(base=-1.0), "base of HierarchicalDirichlet must be a positive number"),
        (lambda: NormalInverseGamma(shape=dist.Gamma(3.0, 1.0)), "scale=None .*Give a scale"),
    ],
)
def test_settings_are_checked_when_they_are_stated(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rows_are_needed_for_the_form_of_the_rows():
    model = GaussianNB(inference=NUTSOptions(20, 20, 1, likelihood="rows"))
    model.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="likelihood='rows' needs the rows themselves"):
        model.predict(X)


def test_numbers_of_a_conjugate_posterior_are_refused_where_there_is_none():
    model = MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance", random_state=0).fit(X, Y)
    for ask in (lambda: model.posterior_, lambda: model.loo(X, Y), lambda: model.log_odds(X), lambda: model.coef_):
        with pytest.raises(UndefinedNumberError):
            ask()
    with pytest.raises(UndefinedNumberError, match="makes no draws at fit"):
        _ = MultinomialNB().fit(X, Y).diagnostics_


def test_one_of_two_concentrations_may_be_random():
    model = BernoulliNB(alpha=(dist.LogNormal(0.0, 1.0), 2.0), inference="importance", random_state=0).fit(X > 3, Y)
    a, b = model.alpha_
    assert a > 0
    assert b == 2.0
