"""One table of priors for `test_laws.py`: every family, with hyperparameters of every shape, and its own data.

The rest of the file is what the laws need to speak about all families at once: rows that may be a tuple of
blocks, the values of the program's sites, moments of the parameters, and marginals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from numpy.testing import assert_allclose
from scipy.special import gammaln

from bayesgen import families
from bayesgen.families import (
    Bernoulli,
    Categorical,
    Gaussian,
    Labels,
    Mixed,
    Multinomial,
    MultivariateGaussian,
    PerClassMultivariateGaussian,
    Poisson,
    SharedVarianceGaussian,
)

CLASSES = 3  # no column count below is 3, so that a leading axis of 3 is a class axis
NORMAL = (Gaussian, SharedVarianceGaussian)
MULTIVARIATE = (MultivariateGaussian, PerClassMultivariateGaussian)


@dataclass(frozen=True, eq=False)
class Case:
    """A prior with its shapes, and data drawn from it.

    All hyperparameters are given: laws compare models whose prior does not depend on the data they see.
    """

    name: str
    prior: Any
    empty: bool = False
    """Whether class 1 is declared but has no rows."""
    missing: bool = False
    """Whether some cells are NaN (-1 among level codes)."""
    far: bool = False
    """Whether the data lie so far from zero that single floats lose digits of the means."""
    n_rows: int = 14

    @property
    def rng(self) -> np.random.Generator:
        """A generator that starts at the same place whenever it is asked for."""
        return np.random.default_rng(sum(map(ord, self.name)))

    @cached_property
    def y(self) -> np.ndarray:
        classes = [0, 2] if self.empty else [0, 1, 2]
        return np.resize(classes, self.n_rows)[self.rng.permutation(self.n_rows)]

    @cached_property
    def truth(self) -> Any:
        """Parameters drawn from the prior."""
        return one_draw(self.prior.draw(self.rng, 1), 0)

    @cached_property
    def x(self) -> Any:
        x = self.prior.sample(self.truth, self.y, self.rng, lengths(self.rng, self.n_rows))
        return punch(self.prior, x, self.rng) if self.missing else x

    @cached_property
    def new(self) -> Any:
        """Rows to predict: one of each class, and complete."""
        return self.prior.sample(self.truth, np.arange(CLASSES), self.rng, lengths(self.rng, CLASSES))

    @cached_property
    def stats(self) -> Any:
        return self.prior.stats(self.x, Labels(self.y))

    @cached_property
    def posterior(self) -> Any:
        return self.prior.condition(self.stats)


def lengths(rng: np.random.Generator, n: int) -> np.ndarray:
    """Document lengths; one document is empty."""
    out = rng.integers(1, 9, size=n)
    out[n // 2] = 0
    return out


def punch(family: Any, x: Any, rng: np.random.Generator) -> Any:
    """x with a quarter of the cells missing, in the families whose statistics allow it."""
    if isinstance(family, Mixed):
        return tuple(punch(block, part, rng) for block, part in zip(family.blocks, x, strict=True))
    if isinstance(family, (Multinomial, *MULTIVARIATE)):
        return x
    hole = rng.random(x.shape) < 0.25
    return np.where(hole, -1 if isinstance(family, Categorical) else np.nan, x)


# ------------------------------------------------------------------------------------------ the table


def _spread(low: float, high: float, *shape: int) -> np.ndarray:
    """Distinct values of the given shape, in no order."""
    return np.random.default_rng(3).permutation(np.linspace(low, high, int(np.prod(shape)))).reshape(shape)


def _covariance(d: int, *batch: int) -> np.ndarray:
    """Positive-definite matrices whose columns have different units and are correlated."""
    root = np.random.default_rng(4).normal(size=(*batch, d, d)) + 2 * np.eye(d)
    units = 10.0 ** np.linspace(-1, 1, d) if d > 1 else np.ones(1)
    return root @ np.swapaxes(root, -1, -2) * units * units[:, None]


K = CLASSES
_shape4 = {"n_classes": K, "n_features": 4}
_shape2 = {"n_classes": K, "n_features": 2}
_levels = {"n_classes": K, "n_features": 2, "n_levels": (2, 5)}
_normal = {"mean_precision": 0.3, "shape": 6.0, "scale": 4.0}
_per_column = {
    "loc": _spread(-2, 2, 4),
    "mean_precision": _spread(0.1, 2, 4),
    "shape": _spread(5, 7, 4),
    "scale": _spread(0.5, 9, 4),
}
_per_cell = {
    "loc": _spread(-2, 2, K, 4),
    "mean_precision": _spread(0.1, 2, K, 4),
    "shape": _spread(5, 7, K, 4),
    "scale": _spread(0.5, 9, K, 4),
}
_wishart = {"mean_precision": 0.3, "df": 14.0, "scale": _covariance(2)}

CASES = [
    Case("Bernoulli", Bernoulli(1.3, 1.8, **_shape4)),
    Case("Bernoulli, flat, a class without rows", Bernoulli(**_shape4), empty=True),
    Case("Bernoulli, per column", Bernoulli(_spread(0.4, 3, 4), _spread(0.3, 2, 4), **_shape4)),
    Case("Bernoulli, per cell", Bernoulli(_spread(0.4, 3, K, 4), 0.7, **_shape4), missing=True),
    Case("Multinomial", Multinomial(1.4, False, **_shape4)),
    Case("Multinomial, coefficient", Multinomial(0.6, True, **_shape4)),
    Case("Multinomial, per column, a class without rows", Multinomial(_spread(0.3, 3, 4), **_shape4), empty=True),
    Case("Multinomial, per cell, coefficient", Multinomial(_spread(0.3, 3, K, 4), True, **_shape4)),
    Case("Categorical", Categorical(1.4, **_levels)),
    Case("Categorical, per column, a class without rows", Categorical(_spread(0.4, 2, 2), **_levels), empty=True),
    Case("Categorical, per class and column", Categorical(_spread(0.4, 2, K, 2), **_levels), missing=True),
    Case("Categorical, per level", Categorical(_spread(0.4, 2, K, 7), **_levels)),
    Case("Poisson", Poisson(2.5, 0.5, **_shape4)),
    Case("Poisson, per column, a class without rows", Poisson(_spread(0.5, 3, 4), 0.4, **_shape4), empty=True),
    Case("Poisson, per cell", Poisson(_spread(0.5, 3, K, 4), _spread(0.2, 2, K, 4), **_shape4), missing=True),
    Case("Gaussian", Gaussian(1.5, 0.0, **_normal, **_shape4)),
    Case("Gaussian, per column, a class without rows", Gaussian(**_per_column, **_shape4), empty=True),
    Case("Gaussian, per cell", Gaussian(**_per_cell, **_shape4), missing=True),
    Case("Gaussian, far from zero", Gaussian(1e8, 0.0, **_normal, **_shape4), far=True),
    Case("SharedVariance", SharedVarianceGaussian(1.5, 0.0, **_normal, **_shape4)),
    Case(
        "SharedVariance, per column, a class without rows",
        SharedVarianceGaussian(**_per_column, **_shape4),
        empty=True,
    ),
    Case(
        "SharedVariance, means per cell",
        SharedVarianceGaussian(**{**_per_column, **{k: _per_cell[k] for k in ("loc", "mean_precision")}}, **_shape4),
        missing=True,
    ),
    Case("SharedVariance, far from zero", SharedVarianceGaussian(1e8, 0.0, **_normal, **_shape4), far=True),
    Case("Multivariate", MultivariateGaussian(1.5, 0.0, **_wishart, **_shape2)),
    Case(
        "Multivariate, per class, four columns",
        MultivariateGaussian(_spread(-2, 2, K, 4), 0.0, _spread(0.1, 2, K), 16.0, _covariance(4), **_shape4),
    ),
    Case(
        "Multivariate, a class without rows",
        MultivariateGaussian(_spread(-2, 2, 2), 0.0, **_wishart, **_shape2),
        empty=True,
    ),
    Case(
        "Multivariate, one column",
        MultivariateGaussian(0.5, 0.0, 0.3, 14.0, _covariance(1), n_classes=K, n_features=1),
    ),
    Case("Multivariate, far from zero", MultivariateGaussian(1e8, 0.0, **_wishart, **_shape2), far=True),
    Case("PerClass", PerClassMultivariateGaussian(1.5, 0.0, **_wishart, **_shape2)),
    Case(
        "PerClass, per class, four columns",
        PerClassMultivariateGaussian(
            _spread(-2, 2, K, 4), 0.0, _spread(0.1, 2, K), _spread(15, 18, K), _covariance(4, K), **_shape4
        ),
    ),
    Case(
        "PerClass, a class without rows",
        PerClassMultivariateGaussian(_spread(-2, 2, 2), 0.0, **_wishart, **_shape2),
        empty=True,
    ),
    Case("PerClass, far from zero", PerClassMultivariateGaussian(1e8, 0.0, **_wishart, **_shape2), far=True),
    Case(
        "Mixed",
        Mixed(
            (
                Bernoulli(1.3, 1.8, **_shape4),
                Categorical(_spread(1.2, 2, K, 2), **_levels),
                Gaussian(**_per_cell, **_shape4),
                PerClassMultivariateGaussian(1.5, 0.0, **_wishart, **_shape2),
            ),
            ("flags", "kinds", "sizes", "places"),
            K,
            12,
        ),
    ),
    Case(
        "Mixed, a class without rows",
        Mixed(
            (
                Multinomial(1.4, True, **_shape4),
                Poisson(2.5, 0.5, **_shape4),
                SharedVarianceGaussian(**_per_column, **_shape4),
                MultivariateGaussian(1.5, 0.0, **_wishart, **_shape2),
            ),
            ("words", "events", "sizes", "places"),
            K,
            14,
        ),
        empty=True,
        missing=True,
    ),
]

# One case for each family, where a law needs a compiler: proper posteriors with modes inside the support.
PLAIN = [case for case in CASES if "," not in case.name]


def covered() -> set[str]:
    """Families of the table, by name."""
    return {type(case.prior).__name__ for case in CASES}


def declared() -> set[str]:
    """Families that the package exports."""
    return set(families.__all__) - {"Family", "Labels"}


# --------------------------------------------------------------------------------- rows, weights, trees


def size(x: Any) -> int:
    return size(x[0]) if isinstance(x, tuple) else x.shape[0]


def take(x: Any, index: Any) -> Any:
    """Some rows of x; x may be a tuple of blocks."""
    return tuple(part[index] for part in x) if isinstance(x, tuple) else x[index]


def stack(*parts: Any) -> Any:
    """Rows of several x one after the other."""
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(blocks) for blocks in zip(*parts, strict=True))
    return np.concatenate(parts)


def one_draw(params: Any, s: int) -> Any:
    return jax.tree.map(lambda p: p[s], params)


def permuted(tree: Any, order: np.ndarray) -> Any:
    """Class k of the result is class ``order[k]``: every leaf with a class axis is reordered."""
    return jax.tree.map(lambda a: a[order] if np.ndim(a) and np.shape(a)[0] == CLASSES else a, tree)


def same(actual: Any, expected: Any, rtol: float = 1e-10, atol: float = 1e-11) -> None:
    """Two values (families, statistics, parameters, arrays) agree leaf by leaf.

    A mean and its rounding error are two leaves; only their sum says something, so they are compared as one.
    """
    assert type(actual) is type(expected)
    if isinstance(actual, Mixed):
        actual, expected = actual.blocks, expected.blocks
    if isinstance(actual, tuple) and not hasattr(actual, "_fields"):
        for a, b in zip(actual, expected, strict=True):
            same(a, b, rtol, atol)
        return
    for a, b in zip(leaves(actual), leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        assert_allclose(a, b, rtol=rtol, atol=atol)


def leaves(value: Any) -> list[Any]:
    """Leaves of a value; high and low parts of means are added."""
    for high, low in (("mean", "mean_low"), ("loc", "loc_low")):
        if hasattr(value, low) and getattr(value, low) is not None:
            sum_, zero = np.asarray(getattr(value, high)) + getattr(value, low), np.zeros(())
            change = {high: sum_, low: zero}
            value = value._replace(**change) if hasattr(value, "_replace") else value.replace(**change)
    return jax.tree.leaves(value)


def log_base(family: Any, x: Any, w: Any = None) -> float:
    """Terms of ln p(x | parameters) free of parameters: ln L! - sum ln x!, and -sum ln x! of Poisson counts."""
    if isinstance(family, Mixed):
        return sum(log_base(block, part, w) for block, part in zip(family.blocks, x, strict=True))
    each = np.zeros(len(x))
    if isinstance(family, Poisson):
        each = -np.nansum(gammaln(x + 1), axis=1)
    if isinstance(family, Multinomial) and family.coefficient:
        each = gammaln(x.sum(axis=1) + 1) - gammaln(x + 1).sum(axis=1)
    return float(each.sum() if w is None else w @ each)


def perturbed(family: Any, params: Any, rng: np.random.Generator, step: float) -> Any:
    """Parameters near the given ones, inside the support."""
    if isinstance(family, Mixed):
        pairs = zip(family.blocks, params, strict=True)
        return tuple(perturbed(block, part, rng, step) for block, part in pairs)

    def noise(a: Any) -> np.ndarray:
        return step * rng.normal(size=np.shape(a))

    if isinstance(family, Bernoulli):
        one, zero = params.log_present + noise(params.log_present), params.log_absent
        total = np.logaddexp(one, zero)
        return params._replace(log_present=one - total, log_absent=zero - total)
    if isinstance(family, Multinomial | Categorical):
        moved = params.log_prob + noise(params.log_prob)
        edges = getattr(family, "offsets", [0, moved.shape[-1]])
        for a, b in pairwise(edges):
            moved[..., a:b] -= np.logaddexp.reduce(moved[..., a:b], axis=-1, keepdims=True)
        return params._replace(log_prob=moved)
    if isinstance(family, Poisson):
        return params._replace(rate=params.rate * np.exp(noise(params.rate)))
    if isinstance(family, NORMAL):
        factor = np.exp(noise(params.variance))
        if isinstance(family, SharedVarianceGaussian):
            factor = np.broadcast_to(factor[0], factor.shape)
        low = params.mean_low + noise(params.mean) * np.sqrt(params.variance)
        return params._replace(mean_low=low, variance=params.variance * factor)
    d = family.n_features
    a = np.eye(d) + noise(params.covariance)
    sd = np.sqrt(np.diagonal(params.covariance, axis1=-2, axis2=-1))
    a = sd[..., :, None] * a / sd[..., None, :]  # free of the units of the columns
    covariance = a @ params.covariance @ np.swapaxes(a, -1, -2)
    low = params.mean_low + noise(params.mean) * sd
    return params._replace(mean_low=low, covariance=0.5 * (covariance + np.swapaxes(covariance, -1, -2)))


# ---------------------------------------------------------------------------- the program's own numbers


def sites(family: Any, params: Any) -> dict[str, Any]:
    """Values of the program's sites at parameters, which may have a leading axis of draws."""
    if isinstance(family, Mixed):
        out = {}
        for name, block, part in zip(family.names, family.blocks, params, strict=True):
            out |= {f"{name}.{site}": value for site, value in sites(block, part).items()}
        return out
    if isinstance(family, Bernoulli):
        return {"feature_prob": np.exp(params.log_present)}
    if isinstance(family, Multinomial):
        return {"feature_prob": np.exp(params.log_prob)}
    if isinstance(family, Categorical):
        edges = family.offsets
        columns = [params.log_prob[..., a:b] for a, b in pairwise(edges)]
        return {f"feature_prob_{j}": np.exp(column) for j, column in enumerate(columns)}
    if isinstance(family, Poisson):
        return {"rate": params.rate}
    mean = params.mean + params.mean_low
    if isinstance(family, Gaussian):
        return {"variance": params.variance, "mean": mean}
    if isinstance(family, SharedVarianceGaussian):
        return {"variance": params.variance[..., 0, :], "mean": mean}
    return {"covariance": params.covariance, "mean": mean}


def moments(family: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Mean and variance of every site under the family's prior (or posterior), from textbook formulas.

    [Gelman et al. 2013, Bayesian Data Analysis, appendix A; von Rosen 1988 for the inverse-Wishart.]
    """
    if isinstance(family, Mixed):
        out = {}
        for name, block in zip(family.names, family.blocks, strict=True):
            out |= {f"{name}.{site}": value for site, value in moments(block).items()}
        return out

    def dirichlet(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = alpha.sum(axis=-1, keepdims=True)
        return alpha / total, alpha * (total - alpha) / (total**2 * (total + 1))

    if isinstance(family, Bernoulli):
        both = dirichlet(np.stack(family.concentrations(), axis=-1))
        return {"feature_prob": (both[0][..., 0], both[1][..., 0])}
    if isinstance(family, Multinomial):
        return {"feature_prob": dirichlet(family.concentration())}
    if isinstance(family, Categorical):
        alpha, edges = family.concentration(), family.offsets
        columns = [alpha[:, a:b] for a, b in pairwise(edges)]
        return {f"feature_prob_{j}": dirichlet(column) for j, column in enumerate(columns)}
    if isinstance(family, Poisson):
        a, b = family.hyper()
        return {"rate": (a / b, a / b**2)}
    loc, low, kappa = family.hyper()
    if isinstance(family, NORMAL):
        a, b = family.inverse_gamma()
        variance = b / (a - 1)
        spread = np.broadcast_to(variance, family.cells) / kappa
        return {"variance": (variance, variance**2 / (a - 2)), "mean": (loc + low, spread)}
    nu, psi = family.inverse_wishart()
    d = family.n_features
    nu = nu[..., None, None]
    diagonal = np.diagonal(psi, axis1=-2, axis2=-1)
    products = diagonal[..., :, None] * diagonal[..., None, :]
    covariance = psi / (nu - d - 1)
    spread = ((nu - d + 1) * psi**2 + (nu - d - 1) * products) / ((nu - d) * (nu - d - 1) ** 2 * (nu - d - 3))
    own = np.diagonal(covariance, axis1=-2, axis2=-1) / kappa[:, None]
    return {"covariance": (covariance, spread), "mean": (loc + low, own)}


def marginal(family: Any, keep: np.ndarray) -> Any:
    """The family of some columns alone, all hyperparameters given per class and column.

    Blocks of an inverse-Wishart matrix are inverse-Wishart with as many degrees of freedom less as columns left.
    """
    d = len(keep)
    if isinstance(family, Bernoulli):
        a, b = family.concentrations()
        return family.replace(a=a[:, keep], b=b[:, keep], n_features=d)
    if isinstance(family, Categorical):
        cells = np.isin(family.column_of, keep)
        levels = tuple(family.n_levels[j] for j in keep)
        return Categorical(family.concentration()[:, cells], None, levels, family.n_classes, d)
    if isinstance(family, Poisson):
        a, b = family.hyper()
        return family.replace(shape=a[:, keep], rate=b[:, keep], n_features=d)
    loc, low, kappa = family.hyper()
    if isinstance(family, NORMAL):
        a, b = family.inverse_gamma()
        changes = {"mean_precision": kappa[:, keep], "shape": a[..., keep], "scale": b[..., keep]}
    else:
        df, scale = family.inverse_wishart()
        changes = {"df": df - (family.n_features - d), "scale": scale[..., keep[:, None], keep]}
    return family.replace(loc=loc[:, keep], loc_low=low[:, keep], n_features=d, **changes)
