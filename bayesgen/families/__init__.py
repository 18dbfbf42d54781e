"""The families p(x | y, parameters), each with its conjugate prior, one file each.

Whoever takes a family from here may pass it to JAX: the first name that is used makes all of them pytrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesgen.families._all import (
        Bernoulli,
        Categorical,
        Family,
        Gaussian,
        Labels,
        Mixed,
        Multinomial,
        MultivariateGaussian,
        PerClassMultivariateGaussian,
        Poisson,
        SharedVarianceGaussian,
    )

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bayesgen.families import _all
    from bayesgen.families.base import register

    register()
    globals()[name] = value = getattr(_all, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
