"""Naive Bayes for independent counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen.estimators import _input
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._options import DROP_NAN, check_missing, own_prior
from bayesgen.families._all import Poisson
from bayesgen.learning import Evidence
from bayesgen.own_priors import WithOwnPrior, is_distribution
from bayesgen.priors import Gamma
from bayesgen.statistics import Columns

__all__ = ["PoissonNB"]


class PoissonNB(GenerativeBase):
    r"""Naive Bayes on independent counts, :math:`\lambda_{kj} \sim \mathrm{Gamma}(a, b)`.

    Parameters
    ----------
    prior : Gamma, numpyro.distributions.Gamma or callable, optional
        Prior of the rates; default ``Gamma(shape=1.0, rate=1.0)``. NumPyro distributions for its fields make them
        random, a function declares NumPyro sites of your own; both need "nuts" or "importance".
    missing : {"marginalize", "error"}, default="marginalize"
        NaN cells are integrated out, or refused.
    inference, class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, rate_, prior_, posterior_, statistics_, log_evidence_,
    log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import PoissonNB
    >>> PoissonNB(inference="mle").fit([[0], [2], [4], [6]], [0, 0, 1, 1]).rate_.tolist()
    [[1.0], [5.0]]

    References
    ----------
    Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.
    """

    def __init__(
        self,
        *,
        prior: Any = None,
        missing: str = "marginalize",
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        likelihood_power: Any = 1.0,
        unlabelled: str | None = None,
        unlabelled_weight: float = 1.0,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.prior = prior
        self.missing = missing
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.likelihood_power = likelihood_power
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.n_init = n_init
        self.random_state = random_state

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> Any:
        check_missing(self.missing)
        x = _input.canonical(X)
        _input.check_finite(x, columns.names, self.missing == "marginalize", DROP_NAN)
        Poisson().check(x, columns.names)
        return x

    def _stated(self, columns: Columns, n_classes: int) -> Poisson:
        prior: Any = Gamma() if self.prior is None else self.prior
        if own_prior(prior) is not None:
            prior = Gamma()
        if is_distribution(prior):
            if type(prior).__name__ != "Gamma":
                raise ValueError(
                    f"prior is a {type(prior).__name__} distribution, which is not conjugate to Poisson counts: pass a "
                    "function that declares it as the site 'rate', with inference='nuts'; a Gamma has a closed form"
                )
            prior = Gamma(np.asarray(prior.concentration, float), np.asarray(prior.rate, float))
        if isinstance(prior, str) and prior == "evidence":
            return Poisson(Evidence(), Evidence(), n_classes, columns.n_features)
        if not isinstance(prior, Gamma):
            raise ValueError(
                f"prior must be a Gamma, 'evidence', a function that declares NumPyro sites; got {prior!r}"
            )
        return Poisson(prior.shape, prior.rate, n_classes, columns.n_features)

    def _own_prior(self) -> Any:
        return own_prior(self.prior)

    @property
    def prior_(self) -> Any:
        """The prior in use."""
        prior = self._fit_value.features.prior
        if isinstance(prior, WithOwnPrior):
            return prior.own
        return Gamma(prior.shape, prior.rate)

    @property
    def rate_(self) -> np.ndarray:
        """The route's rates, (n_classes, n_features), in counts per row."""
        return self._fit_value.features.params.rate

    def _logistic_encoder(self) -> Any:
        self._refuse_exact_logistic("the predictive of a Poisson with a Gamma rate is negative binomial")
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
