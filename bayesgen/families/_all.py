"""The families of this library, for its own use: importing them imports no JAX."""

from bayesgen.families.base import Family, Labels
from bayesgen.families.bernoulli import Bernoulli
from bayesgen.families.categorical import Categorical
from bayesgen.families.gaussian import Gaussian
from bayesgen.families.mixed import Mixed
from bayesgen.families.multinomial import Multinomial
from bayesgen.families.multivariate_gaussian import MultivariateGaussian
from bayesgen.families.per_class_multivariate_gaussian import PerClassMultivariateGaussian
from bayesgen.families.poisson import Poisson
from bayesgen.families.shared_variance_gaussian import SharedVarianceGaussian

__all__ = [
    "Bernoulli",
    "Categorical",
    "Family",
    "Gaussian",
    "Labels",
    "Mixed",
    "Multinomial",
    "MultivariateGaussian",
    "PerClassMultivariateGaussian",
    "Poisson",
    "SharedVarianceGaussian",
]
