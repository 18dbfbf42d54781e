"""The few NumPyro distributions that the generative programs need and NumPyro does not have."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln, logsumexp, multigammaln, xlog1py, xlogy
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import multinomial, validate_sample

from bayesgen._linalg import cholesky, inverse_factor, inverse_lower
from bayesgen._math import Array

__all__ = [
    "Beta",
    "Dirichlet",
    "InverseWishart",
    "Levels",
    "LogDirichlet",
    "NormalVector",
    "ObservedCells",
    "Presence",
    "WordCounts",
]


class Dirichlet(dist.Dirichlet):
    """NumPyro's Dirichlet, with its limit (not NaN) where a probability is exactly zero."""

    def log_prob(self, value: Array) -> Array:
        """The log density; 0 ln 0 = 0."""
        a = self.concentration
        return xlogy(a - 1.0, value).sum(-1) + gammaln(a.sum(-1)) - gammaln(a).sum(-1)


class LogDirichlet(Distribution):
    r"""Logarithms of Dirichlet probabilities up to their common scale, free of constraints.

    :math:`u = \ln\theta + T` with :math:`\theta \sim \mathrm{Dir}(a)` and the total
    :math:`T = \ln\sum_j e^{u_j} \sim \mathcal N(0, 1/V)` independent of it, so that
    :math:`p(u) = \frac{1}{B(a)}\prod_j \theta_j^{a_j}\; \mathcal N(T)`: coordinates without the ridge of unnormalised
    gamma variables and without the order of sticks.

    Parameters
    ----------
    concentration : array (V,)
        a.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.real_vector
    pytree_data_fields = ("concentration",)

    def __init__(self, concentration: Array) -> None:
        self.concentration = jnp.asarray(concentration)
        super().__init__((), self.concentration.shape, validate_args=False)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Logs of gamma variables, with their total replaced."""
        gamma_key, total_key = jax.random.split(key)
        log_gamma = jax.random.loggamma(gamma_key, self.concentration, sample_shape + self.event_shape)
        total = jax.random.normal(total_key, (*sample_shape, 1)) / jnp.sqrt(self.event_shape[0])
        return log_gamma - logsumexp(log_gamma, axis=-1, keepdims=True) + total

    def log_prob(self, value: Array) -> Array:
        """See the class docstring."""
        a, size = self.concentration, self.event_shape[0]
        total = logsumexp(value, axis=-1)
        log_norm = gammaln(a.sum(-1)) - gammaln(a).sum(-1)
        spread = 0.5 * jnp.log(size / (2 * jnp.pi)) - 0.5 * size * total**2
        return log_norm + (a * (value - total[..., None])).sum(-1) + spread


class Beta(dist.Beta):
    """NumPyro's Beta, with its limit (not NaN) where a probability is exactly zero or one."""

    def log_prob(self, value: Array) -> Array:
        """The log density; 0 ln 0 = 0."""
        a, b = self.concentration1, self.concentration0
        power = xlogy(a - 1.0, value) + xlog1py(b - 1.0, -value)
        return power + gammaln(a + b) - gammaln(a) - gammaln(b)


class Presence(Distribution):
    """Independent 0/1 columns by the logs of both probabilities; NaN is not observed.

    Parameters
    ----------
    log_present, log_absent : array (..., V)
        ln p and ln(1 - p); -inf is allowed, and exact.
    """

    arg_constraints = {"log_present": constraints.real_vector, "log_absent": constraints.real_vector}
    support = constraints.independent(constraints.boolean, 1)
    pytree_data_fields = ("log_present", "log_absent")

    def __init__(self, log_present: Array, log_absent: Array) -> None:
        self.log_present, self.log_absent = log_present, log_absent
        super().__init__(jnp.shape(log_present)[:-1], jnp.shape(log_present)[-1:], validate_args=False)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Zeros and ones, as floats."""
        p = jnp.exp(self.log_present)
        return jax.random.bernoulli(key, p, sample_shape + p.shape).astype(p.dtype)

    def log_prob(self, value: Array) -> Array:
        """Sum over the observed columns."""
        cell = jnp.where(value > 0, self.log_present, self.log_absent)
        return jnp.where(jnp.isnan(value), 0.0, cell).sum(-1)


class WordCounts(Distribution):
    r"""Counts of the words of a document of given length.

    .. math:: \ln p(x) = \sum_j x_j \ln\theta_j \quad (+ \ln L! - \sum_j \ln x_j! \text{ with the coefficient})

    Without the coefficient it is the probability of the token sequence. Non-negative reals are powers. The
    length of a document is given, not modelled: an observed document brings its own.

    Parameters
    ----------
    log_prob : array (..., V)
        Log word probabilities.
    lengths : array of int (...), optional
        Document lengths, for sampling.
    coefficient : bool
        Whether to include the multinomial coefficient.
    """

    arg_constraints = {"log_probs": constraints.real_vector}
    support = constraints.independent(constraints.nonnegative, 1)
    pytree_data_fields = ("log_probs", "lengths")
    pytree_aux_fields = ("coefficient", "longest")

    def __init__(self, log_prob: Array, lengths: Any = None, *, coefficient: bool = False) -> None:
        self.log_probs = log_prob
        self.coefficient = coefficient
        self.lengths = None if lengths is None else jnp.asarray(lengths)
        self.longest = None if lengths is None else int(np.max(lengths, initial=0))
        super().__init__(jnp.shape(log_prob)[:-1], jnp.shape(log_prob)[-1:], validate_args=False)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Multinomial counts of the given lengths, as floats."""
        if self.lengths is None:
            raise ValueError("drawing documents needs their lengths: pass lengths= to the model")
        counts = multinomial(
            key,
            jnp.exp(self.log_probs),
            self.lengths,
            shape=sample_shape + self.batch_shape,
            total_count_max=self.longest,
        )
        return counts.astype(self.log_probs.dtype)

    def log_prob(self, value: Array) -> Array:
        """See the class docstring."""
        zero = value == 0
        out = jnp.where(zero, 0.0, value * jnp.where(zero, 0.0, self.log_probs)).sum(-1)
        if self.coefficient:
            out = out + gammaln(value.sum(-1) + 1.0) - gammaln(value + 1.0).sum(-1)
        return out


class Levels(Distribution):
    """One level code for each of several independent categorical columns; -1 is not observed.

    Parameters
    ----------
    log_prob : array (..., S)
        Log level probabilities of the columns, side by side.
    n_levels : tuple of int
        Number of levels of each column; they sum to S.
    """

    arg_constraints = {"log_probs": constraints.real_vector}
    support = constraints.independent(constraints.integer_greater_than(-2), 1)
    pytree_data_fields = ("log_probs",)
    pytree_aux_fields = ("n_levels",)

    def __init__(self, log_prob: Array, n_levels: tuple[int, ...]) -> None:
        self.log_probs = log_prob
        self.n_levels = n_levels
        super().__init__(jnp.shape(log_prob)[:-1], (len(n_levels),), validate_args=False)

    @property
    def _starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.n_levels)])

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """One code for each column."""
        starts = self._starts
        keys = jax.random.split(key, len(self.n_levels))
        shape = sample_shape + self.batch_shape
        columns = [
            jax.random.categorical(k, self.log_probs[..., a:b], shape=shape)
            for k, a, b in zip(keys, starts[:-1], starts[1:], strict=True)
        ]
        return jnp.stack(columns, axis=-1)

    def log_prob(self, value: Array) -> Array:
        """Sum of the log probabilities of the observed levels; -inf for a code beyond the levels."""
        n_levels = np.asarray(self.n_levels)
        at = jnp.clip(value, 0, n_levels - 1) + self._starts[:-1]
        shape = jnp.broadcast_shapes(at.shape[:-1], self.log_probs.shape[:-1])
        table = jnp.broadcast_to(self.log_probs, (*shape, self.log_probs.shape[-1]))
        cell = jnp.take_along_axis(table, jnp.broadcast_to(at, (*shape, at.shape[-1])), axis=-1)
        cell = jnp.where(value < n_levels, cell, -jnp.inf)
        return jnp.where(value >= 0, cell, 0.0).sum(-1)


class InverseWishart(Distribution):
    r"""Inverse-Wishart on covariance matrices, :math:`\mathrm{IW}(\nu, \Psi)` with mean :math:`\Psi/(\nu-d-1)`.

    The density is that of `numpyro.distributions.InverseWishart`, with respect to Lebesgue measure on the
    matrix; it is computed without batched LAPACK calls, which can deadlock in a compiled CPU program.

    Parameters
    ----------
    df : array (...)
        Degrees of freedom, above d - 1.
    scale_matrix : array (..., d, d)
        Positive-definite scale.
    """

    arg_constraints = {"df": constraints.positive, "scale_matrix": constraints.positive_definite}
    support = constraints.positive_definite
    pytree_data_fields = ("df", "scale_matrix")

    def __init__(self, df: Array, scale_matrix: Array) -> None:
        self.df = jnp.asarray(df)
        self.scale_matrix = jnp.asarray(scale_matrix)
        super().__init__(self.df.shape, self.scale_matrix.shape[-2:], validate_args=False)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Bartlett's decomposition of the Wishart, inverted."""
        d = self.event_shape[0]
        shape = sample_shape + self.batch_shape
        gamma_key, normal_key = jax.random.split(key)
        half = jnp.broadcast_to((self.df[..., None] - jnp.arange(d)) / 2, (*shape, d))
        diagonal = jnp.sqrt(2.0 * jax.random.gamma(gamma_key, half))
        below = jnp.tril(jax.random.normal(normal_key, (*shape, d, d)), -1)
        bartlett = below + diagonal[..., None] * jnp.eye(d)
        root = inverse_lower(bartlett) @ jnp.swapaxes(cholesky(self.scale_matrix), -1, -2)
        return jnp.swapaxes(root, -1, -2) @ root

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        """See the class docstring."""
        d = self.event_shape[0]
        inverse, logdet = inverse_factor(jnp.asarray(value))
        _, log_scale = inverse_factor(self.scale_matrix)
        trace = (inverse @ self.scale_matrix * inverse).sum((-1, -2))
        norm = 0.5 * self.df * (log_scale - d * jnp.log(2.0)) - multigammaln(self.df / 2, d)
        return norm - 0.5 * ((self.df + d + 1) * logdet + trace)


class NormalVector(Distribution):
    """Multivariate normal by its inverse Cholesky factor, computed without batched LAPACK calls.

    Parameters
    ----------
    loc : array (..., d)
        Mean.
    covariance : array (..., d, d)
        Positive-definite covariance; `ValueError` for a concrete matrix that is not.
    """

    arg_constraints = {"loc": constraints.real_vector}
    support = constraints.real_vector
    pytree_data_fields: tuple[str, ...] = ("loc", "root", "inverse", "logdet")

    def __init__(self, loc: Array, covariance: Array) -> None:
        self.loc = jnp.asarray(loc)
        covariance = jnp.asarray(covariance)
        self.root = cholesky(covariance)
        self.inverse = inverse_lower(self.root)
        self.logdet = 2.0 * jnp.log(jnp.diagonal(self.root, axis1=-2, axis2=-1)).sum(-1)
        if not isinstance(self.logdet, jax.core.Tracer) and not bool(jnp.isfinite(self.logdet).all()):
            raise ValueError(
                "the covariance of a normal class is not positive definite (it is singular or has a negative "
                "eigenvalue); give a positive-definite matrix, or a prior if it comes from data"
            )
        self._shape()

    def _shape(self) -> None:
        batch = jnp.broadcast_shapes(self.loc.shape[:-1], self.root.shape[:-2])
        Distribution.__init__(self, batch, self.loc.shape[-1:], validate_args=False)

    def at_classes(self, y: Array) -> NormalVector:
        """The distribution of rows of classes y: one factor for each class, gathered."""
        out = object.__new__(NormalVector)
        out.loc = self.loc[y]
        for name in ("root", "inverse", "logdet"):
            value = getattr(self, name)
            setattr(out, name, value if self.root.ndim == 2 else value[y])
        out._shape()
        return out

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Loc + L z."""
        noise = jax.random.normal(key, sample_shape + self.batch_shape + self.event_shape, self.loc.dtype)
        return self.loc + (self.root @ noise[..., None])[..., 0]

    def log_prob(self, value: Array) -> Array:
        """The normal log density."""
        z = (self.inverse @ (value - self.loc)[..., None])[..., 0]
        return -0.5 * (self.event_shape[0] * jnp.log(2 * jnp.pi) + self.logdet + (z * z).sum(-1))


class ObservedCells(NormalVector):
    """Normal rows of which some cells are missing (NaN): the density is that of the others.

    Parameters
    ----------
    rows : NormalVector
        The distribution of whole rows.
    observed : array (..., d) bool
        Which cells are there.
    """

    pytree_data_fields = (*NormalVector.pytree_data_fields, "observed")

    def __init__(self, rows: NormalVector, observed: Array) -> None:
        self.observed = jnp.asarray(observed)
        block = self.observed[..., :, None] & self.observed[..., None, :]
        covariance = rows.root @ jnp.swapaxes(rows.root, -1, -2)
        super().__init__(rows.loc, jnp.where(block, covariance, jnp.eye(covariance.shape[-1])))

    def log_prob(self, value: Array) -> Array:
        """The normal log density of the observed cells."""
        z = (self.inverse @ jnp.where(self.observed, value - self.loc, 0.0)[..., None])[..., 0]
        return -0.5 * (self.observed.sum(-1) * jnp.log(2 * jnp.pi) + self.logdet + (z * z).sum(-1))
