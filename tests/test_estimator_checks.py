"""scikit-learn's own checks of an estimator, on every estimator and in many configurations."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    PoissonNB,
)

ESTIMATORS = [
    BernoulliNB(),
    CategoricalNB(),
    GaussianDiscriminantAnalysis(),
    GaussianNB(),
    GenerativeClassifier(),
    MixedNB(),
    MultinomialNB(),
    PoissonNB(),
]
# Not here, because the numbers do not exist on the checks' data, which the library says by an error or a warning:
# the maximum-likelihood and reference routes of Gaussian models (classes with one row), the maximum-likelihood
# route of categorical ones (levels of probability zero in every class), and the Bernoulli family without a
# threshold (rows that are not 0 or 1). Nor discriminant analysis with missing="marginalize": it takes NaN at
# prediction but not at fit, and scikit-learn's tag knows one answer for both.
CONFIGURATIONS = [
    BernoulliNB(inference="map", alpha=(2.0, 3.0), class_alpha=2.0),
    BernoulliNB(inference="mean", binarize=0.5, missing="error"),
    BernoulliNB(inference="mle"),
    CategoricalNB(inference="map", alpha=2.0),
    CategoricalNB(inference="mean", handle_unknown="ignore"),
    GaussianDiscriminantAnalysis(covariance="per_class"),
    GaussianDiscriminantAnalysis(covariance="per_class", inference="mean", class_alpha=0),
    GaussianDiscriminantAnalysis(inference="map"),
    GaussianDiscriminantAnalysis(inference="mean"),
    GaussianNB(inference="map", missing="error"),
    GaussianNB(inference="mean"),
    GaussianNB(variance="shared"),
    GaussianNB(variance="shared", inference="mean", fit_prior=False),
    GenerativeClassifier(family="categorical"),
    GenerativeClassifier(family="gaussian_shared_variance", inference="mean"),
    GenerativeClassifier(family="multinomial"),
    GenerativeClassifier(family="multivariate_gaussian", missing="error"),
    GenerativeClassifier(family="multivariate_gaussian_per_class", missing="error", inference="map"),
    GenerativeClassifier(family="poisson"),
    MixedNB(class_alpha=2.0, inference="map"),
    MixedNB(inference="mean"),
    MixedNB(inference="mle"),
    MultinomialNB(inference="map", alpha=2.0),
    MultinomialNB(inference="mean", class_alpha=0),
    MultinomialNB(inference="mle"),
    MultinomialNB(multinomial_coefficient=True),
    PoissonNB(inference="map"),
    PoissonNB(inference="mean"),
    PoissonNB(inference="mle"),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimators_keep_the_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(CONFIGURATIONS)
def test_every_configuration_keeps_the_contract(estimator, check):
    check(estimator)
