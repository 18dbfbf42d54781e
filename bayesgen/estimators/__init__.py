"""scikit-learn estimators: input checks and attributes around the closed forms."""

from bayesgen.estimators.discrete import BernoulliNB, CategoricalNB, MultinomialNB, PoissonNB
from bayesgen.estimators.gaussian import GaussianDiscriminantAnalysis, GaussianNB
from bayesgen.estimators.mixed import GenerativeClassifier, MixedNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "GaussianDiscriminantAnalysis",
    "GaussianNB",
    "GenerativeClassifier",
    "MixedNB",
    "MultinomialNB",
    "PoissonNB",
]
