"""The families of this library, for its own use: importing them imports no JAX."""

from bayesgen.families.base import Family as Family
from bayesgen.families.base import Labels as Labels
from bayesgen.families.bernoulli import Bernoulli as Bernoulli
from bayesgen.families.categorical import Categorical as Categorical
from bayesgen.families.gaussian import Gaussian as Gaussian
from bayesgen.families.mixed import Mixed as Mixed
from bayesgen.families.multinomial import Multinomial as Multinomial
from bayesgen.families.multivariate_gaussian import MultivariateGaussian as MultivariateGaussian
from bayesgen.families.per_class_multivariate_gaussian import (
    PerClassMultivariateGaussian as PerClassMultivariateGaussian,
)
from bayesgen.families.poisson import Poisson as Poisson
from bayesgen.families.shared_variance_gaussian import SharedVarianceGaussian as SharedVarianceGaussian
