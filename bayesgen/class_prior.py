r"""Class probabilities: y ~ Categorical(phi), phi ~ Dirichlet(a), or known phi.

The posterior is :math:`\mathrm{Dir}(a + n)`; the predictive is its mean :math:`(a_k+n_k)/(A+M)`; the evidence of the
label sequence is :math:`\sum_k\ln(a_k)_{n_k} - \ln(A)_M`. With two classes these are the numbers of a Bernoulli label
with a Beta prior. a = 0 is a limit: the mean is then the relative frequency, and there is no evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, polygamma

from bayesgen._math import Array, namespace, safe_divide, safe_log
from bayesgen._random import generator, log_gamma_draws
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families import dirichlet
from bayesgen.families.base import family, static

__all__ = ["ClassPrior"]

NO_CLOSED_FORM = "the class probabilities have a prior of their own: there is no closed form of their {}"


@family
class ClassPrior:
    """Dirichlet class probabilities, or fixed ones; see the module docstring.

    Parameters
    ----------
    alpha : float or array (K,)
        Concentration a. A posterior holds a (K,) array.
    fixed : array (K,) or None
        Known class probabilities; alpha is then not used.
    n_classes : int
        K.
    function : callable or None
        A prior of the user's own: takes K, declares NumPyro sites, returns class probabilities (K,).
    """

    alpha: Any = 1.0
    fixed: Any = None
    n_classes: int = static(default=0)
    function: Any = static(default=None)

    def concentration(self) -> Array:
        """A as a (K,) array."""
        return dirichlet.broadcast(self.alpha, (self.n_classes,), "class_alpha")

    def sample(self) -> Any:
        """NumPyro site ``class_prob`` (K,): sampled, or deterministic if known."""
        import jax.numpy as jnp
        import numpyro

        from bayesgen.distributions import Dirichlet

        if self.function is not None:
            return numpyro.deterministic("class_prob", self.function(self.n_classes))
        if self.fixed is not None:
            return numpyro.deterministic("class_prob", jnp.asarray(self.fixed))
        return numpyro.sample("class_prob", Dirichlet(self.concentration()))

    def condition(self, count: Array) -> ClassPrior:
        """Dirichlet(a + n); known probabilities stay."""
        if self.fixed is not None:
            return self
        return ClassPrior(self.concentration() + count, None, self.n_classes)

    def log_prob(self, route: str, count: Array) -> Array:
        """Log of the class probabilities that a route plugs in (or, exact, the predictive), shape (K,)."""
        if self.fixed is not None:
            return safe_log(np.asarray(self.fixed, dtype=float))
        if route in ("mle", "unbiased"):
            return dirichlet.log_normalised(count)
        posterior = self.condition(count).concentration()
        if route != "map":
            return dirichlet.log_normalised(posterior)
        counts, boundary = dirichlet.mode_counts(posterior)
        if boundary:
            dirichlet.warn_boundary("class_prob")
        return dirichlet.log_normalised(counts)

    def log_evidence(self, count: Array) -> Array:
        """Log of p(y), the label sequence, ()."""
        if self.function is not None:
            raise UndefinedNumberError(NO_CLOSED_FORM.format("evidence"))
        if self.fixed is not None:
            return dirichlet.dot_log(count, safe_log(np.asarray(self.fixed, dtype=float)))
        alpha = self.concentration()
        if namespace(alpha) is np and not (alpha > 0).all():
            raise UndefinedNumberError(
                "there is no evidence of the labels: class_alpha=0 is an improper prior; "
                "give class_alpha > 0 or a fixed class_prior"
            )
        return dirichlet.log_evidence(alpha, count)

    def log_density(self, log_prob: Array) -> Array:
        """Log density of class probabilities exp(log_prob); 0 if they are known."""
        if self.fixed is not None:
            return 0.0
        return dirichlet.log_density(self.concentration(), log_prob)

    def log_loo(self, codes: np.ndarray, weights: np.ndarray, count: np.ndarray) -> np.ndarray:
        """Log of p(y = k | all labels but i), shape (n, K)."""
        if self.function is not None:
            raise UndefinedNumberError(NO_CLOSED_FORM.format("leave-one-out"))
        if self.fixed is not None:
            return np.broadcast_to(self.log_prob("exact", count), (len(codes), self.n_classes))
        left = np.broadcast_to(count, (len(codes), self.n_classes)).astype(float)
        own = np.arange(len(codes)), codes
        left[own] = np.maximum(left[own] - weights, 0.0)
        left += self.concentration()  # after the counts: a small concentration keeps its digits
        return safe_log(safe_divide(left, left.sum(axis=1, keepdims=True)))

    def log_moments(self, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of ln phi_k under the posterior, (K,) each, up to what all classes share.

        The shared part, the log of the sum of independent gamma variables, has no say in log odds.
        """
        if self.fixed is not None:
            return safe_log(np.asarray(self.fixed, dtype=float)), np.zeros(self.n_classes)
        alpha = self.condition(count).concentration()
        return digamma(alpha), polygamma(1, alpha)

    def tempered(self, power: float) -> ClassPrior:
        """The distribution with density proportional to this one's, to a power."""
        return ClassPrior(power * (self.concentration() - 1.0) + 1.0, None, self.n_classes)

    def marginal(self) -> Any:
        """Marginal distributions of the probabilities, a frozen `scipy.stats.beta` of shape (K,)."""
        from scipy.stats import beta

        alpha = self.concentration()
        return beta(alpha, alpha.sum() - alpha)

    def draw(self, key: Any, n: int) -> np.ndarray:
        """N draws of ln phi, shape (n, K)."""
        if self.fixed is not None:
            return np.broadcast_to(safe_log(np.asarray(self.fixed, dtype=float)), (n, self.n_classes))
        log_gamma = log_gamma_draws(generator(key), self.concentration(), (n, self.n_classes))
        return log_gamma - np.logaddexp.reduce(log_gamma, axis=-1, keepdims=True)
