"""scikit-learn estimators: input checks and attributes around the closed forms."""

from bayesgen.estimators._column_kinds import auto_blocks
from bayesgen.estimators.categorical import CategoricalNB
from bayesgen.estimators.gaussian import GaussianDiscriminantAnalysis, GaussianNB
from bayesgen.estimators.general import GenerativeClassifier
from bayesgen.estimators.mixed import MixedNB
from bayesgen.estimators.poisson import PoissonNB
from bayesgen.estimators.words import BernoulliNB, MultinomialNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "GaussianDiscriminantAnalysis",
    "GaussianNB",
    "GenerativeClassifier",
    "MixedNB",
    "MultinomialNB",
    "PoissonNB",
    "auto_blocks",
]
