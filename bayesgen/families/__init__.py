"""The families p(x | y, parameters), each with its conjugate prior, one file each."""

from bayesgen.families.base import Family, Labels
from bayesgen.families.bernoulli import Bernoulli
from bayesgen.families.categorical import Categorical
from bayesgen.families.gaussian import Gaussian, SharedVarianceGaussian
from bayesgen.families.mixed import Mixed
from bayesgen.families.multinomial import Multinomial
from bayesgen.families.multivariate_gaussian import MultivariateGaussian, PerClassMultivariateGaussian
from bayesgen.families.poisson import Poisson

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
