"""The generative classifier of any family."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesgen.estimators import _input, _levels
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._options import DROP_NAN, check_missing, own_prior
from bayesgen.estimators._tokens import document_lengths
from bayesgen.families import _all as families
from bayesgen.families._all import Family, Mixed
from bayesgen.fit import ROUTES, Fit
from bayesgen.statistics import Columns

__all__ = ["GenerativeClassifier"]

FAMILIES = {
    "bernoulli": families.Bernoulli,
    "multinomial": families.Multinomial,
    "categorical": families.Categorical,
    "poisson": families.Poisson,
    "gaussian": families.Gaussian,
    "gaussian_shared_variance": families.SharedVarianceGaussian,
    "multivariate_gaussian": families.MultivariateGaussian,
    "multivariate_gaussian_per_class": families.PerClassMultivariateGaussian,
}
GAUSSIAN = (
    families.Gaussian,
    families.SharedVarianceGaussian,
    families.MultivariateGaussian,
    families.PerClassMultivariateGaussian,
)
COMPLETE = (families.Multinomial,)


class GenerativeClassifier(GenerativeBase):
    """The generative classifier of any family, also one of your own.

    Parameters
    ----------
    family : str or Family, default="gaussian"
        A name ("bernoulli", "multinomial", "categorical", "poisson", "gaussian", "gaussian_shared_variance",
        "multivariate_gaussian", "multivariate_gaussian_per_class"), or a value of `bayesgen.families` (or of a class
        with the same protocol), which carries its prior.
    prior : callable, optional
        A prior of your own, a function that declares NumPyro sites (needs ``inference="nuts"``). None: the conjugate
        prior that the family holds, whose hyperparameters may be NumPyro distributions.
    missing : {"marginalize", "error"}, default="marginalize"
        NaN cells are integrated out where the family can, or refused.
    inference : {"exact", "mean", "map", "mle", "unbiased", "nuts", "importance"} or their options, default="exact"
        "unbiased" is for Gaussian families.
    class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, prior_, posterior_, params_, statistics_, log_evidence_,
    log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import GenerativeClassifier
    >>> from bayesgen.families import Poisson
    >>> model = GenerativeClassifier(family=Poisson(2.0, 1.0)).fit([[0], [1], [5], [4]], [0, 0, 1, 1])
    >>> model.predict([[0], [6]]).tolist()
    [0, 1]
    """

    _routes = ROUTES

    def __init__(
        self,
        *,
        family: Any = "gaussian",
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
        self.family = family
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

    def _family(self) -> Any:
        if isinstance(self.family, str):
            if self.family not in FAMILIES:
                raise ValueError(f"family must be one of {sorted(FAMILIES)} or a family value; got {self.family!r}")
            return FAMILIES[self.family]()
        if not isinstance(self.family, Family):
            raise ValueError(f"family must be a name or a value of bayesgen.families; got {self.family!r}")
        if isinstance(self.family, Mixed):
            raise ValueError("for a mixed family use MixedNB(blocks=[(name, estimator, columns), ...])")
        return self.family

    def _check_params(self) -> None:
        super()._check_params()
        if self.inference == "unbiased" and not isinstance(self._family(), GAUSSIAN):
            raise ValueError("inference='unbiased' is for the Gaussian families")

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        columns = super()._columns(X, holder, known, weights)
        base = self._family()
        if not isinstance(base, families.Categorical):
            return columns
        if base.n_levels:
            levels = tuple(np.arange(s) for s in base.n_levels)
        else:
            before: Any = (None,) * columns.n_features if known is None else known.levels
            levels = tuple(_levels.find(X, j, before[j], 0, columns.names, weights) for j in range(columns.n_features))
        return Columns(columns.n_features, columns.names, levels)

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> Any:
        check_missing(self.missing)
        base = self._family()
        x = _input.canonical(X)
        complete = isinstance(base, COMPLETE)
        _input.check_finite(
            x, columns.names, self.missing == "marginalize" and not complete, DROP_NAN, isinstance(base, GAUSSIAN)
        )
        if isinstance(base, families.Categorical):
            return _levels.encode(x, columns, True, {"fit": "ignore", "forget": "error"}.get(purpose, "predictive"))
        base.check(x, columns.names)
        return x

    def _stated(self, columns: Columns, n_classes: int) -> Family:
        base = self._family()
        shapes: dict[str, Any] = {"n_classes": n_classes, "n_features": columns.n_features}
        if columns.levels is not None:
            shapes["n_levels"] = tuple(len(v) for v in columns.levels)
        return copy.deepcopy(base).replace(**shapes)  # not the caller's arrays

    def _with_prior(self, prior: Any) -> Any:
        return clone(self).set_params(family=prior, prior=None)

    def _own_prior(self) -> Any:
        own = own_prior(self.prior)
        if self.prior is not None and own is None:
            raise ValueError(
                f"prior must be a function that declares NumPyro sites, or None (a conjugate prior is part of the "
                f"family); got {self.prior!r}"
            )
        return own

    def _adapt(self, stats: Any, old: Columns, new: Columns) -> Any:
        return stats if new.levels is None else _levels.adapt(stats, old, new)

    @property
    def params_(self) -> Any:
        """The route's parameters: the family's NamedTuple; under "exact" the posterior mean."""
        return self._fit_value.features.params

    def _lengths(self, lengths: Any, n_rows: int, fit: Fit) -> Any:
        if not isinstance(fit.features.stated, families.Multinomial):
            return super()._lengths(lengths, n_rows, fit)
        return document_lengths(lengths, n_rows, fit.features.stats.word_count, fit.count.sum())

    def _logistic_encoder(self) -> Any:
        exact = isinstance(self._family(), (families.Bernoulli, families.Categorical))
        if not exact:
            self._refuse_exact_logistic("the family's predictive is not log-linear")
        if isinstance(self._family(), families.Categorical):
            raise ValueError("use CategoricalNB for the logistic form of categories: it brings the one-hot encoder")
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = FAMILIES.get(self.family) if isinstance(self.family, str) else type(self.family)
        tags.input_tags.positive_only = base in (families.Multinomial, families.Poisson)
        tags.classifier_tags.poor_score = base in (families.Multinomial, families.Bernoulli)  # as for text models
        if base in COMPLETE:
            tags.input_tags.allow_nan = False
        return tags
