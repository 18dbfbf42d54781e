r"""Which columns depend on the class: exact Bayes factors, column by column.

For column j the evidence of the model (parameters of its own in each class) is compared with that of the same prior
and likelihood with one set of parameters for all classes,

.. math:: \ln \mathrm{BF}_j = \ln p(x_{\cdot j} \mid y, \text{by class}) - \ln p(x_{\cdot j} \mid \text{one for all}),

both closed forms of the sufficient statistics. With prior probability :math:`\pi` of dependence, the posterior
inclusion probability is :math:`1/(1 + \frac{1-\pi}{\pi}\mathrm{BF}_j^{-1})`. A word of a
multinomial model is taken against all others together, which the Dirichlet allows exactly; a column of a multivariate
normal by its marginal.

References: Kass and Raftery 1995, *Bayes factors*; Barbieri and Berger 2004, *Optimal predictive model selection*.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import jax
import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import register
from bayesgen.fit import MixedFit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EvidenceSelector", "FeatureRelevance", "feature_relevance"]


@dataclass(frozen=True, eq=False)
class FeatureRelevance:
    """How strongly each column depends on the class.

    Attributes
    ----------
    log_bayes_factor : ndarray (n_features,)
        In nats; positive where classes differ.
    probability : ndarray (n_features,)
        Posterior probability that the column depends on the class.
    names : ndarray (n_features,)
        Column names, or indices.

    Examples
    --------
    >>> from bayesgen import BernoulliNB, feature_relevance
    >>> X = [[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0]]
    >>> found = feature_relevance(BernoulliNB(), X, [0, 0, 0, 1, 1, 1])
    >>> found.log_bayes_factor.argmax().item()
    0
    """

    log_bayes_factor: np.ndarray
    probability: np.ndarray
    names: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame, the most relevant column first.

        Returns
        -------
        pandas.DataFrame
            Columns ``log_bayes_factor`` and ``probability``, by feature.
        """
        import pandas as pd

        order = np.argsort(-self.log_bayes_factor, kind="stable")
        table = {"log_bayes_factor": self.log_bayes_factor[order], "probability": self.probability[order]}
        return pd.DataFrame(table, index=pd.Index(self.names[order], name="feature"))

    def __repr__(self) -> str:
        best = np.argsort(-self.log_bayes_factor, kind="stable")[:5]
        shown = ", ".join(f"{self.names[j]} {self.log_bayes_factor[j]:.1f}" for j in best)
        relevant = int((self.probability > 0.5).sum())
        return f"FeatureRelevance({len(self.names)} columns, {relevant} probably relevant; log Bayes factors {shown})"


def feature_relevance(
    estimator: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None, prior_probability: float = 0.5
) -> FeatureRelevance:
    """Exact log Bayes factor of each column for depending on the class.

    Parameters
    ----------
    estimator : estimator of this library
        Its prior is used, which must be the same for all classes. Fitted, if X is None.
    X, y, sample_weight : see `MultinomialNB.fit`, optional
        Rows to learn from, in a copy of the estimator.
    prior_probability : float, default=0.5
        Prior probability that a column depends on the class.

    Returns
    -------
    FeatureRelevance

    Raises
    ------
    ValueError
        If the prior differs between classes, or has no closed form.
    UndefinedNumberError
        If the prior is improper: there is no evidence.

    Examples
    --------
    >>> from bayesgen import MultinomialNB, feature_relevance
    >>> found = feature_relevance(MultinomialNB(), [[9, 1, 5], [8, 0, 6], [1, 8, 5], [0, 9, 6]], [0, 0, 1, 1])
    >>> found.log_bayes_factor.round(1).tolist()
    [10.0, 10.0, -1.0]
    """
    if not isinstance(prior_probability, (float, np.floating)) or not 0 < prior_probability < 1:
        raise ValueError(f"prior_probability must be between 0 and 1; got {prior_probability!r}")
    if X is not None:
        estimator = clone(estimator).set_params(inference="exact").fit(X, y, sample_weight)
    learned = estimator._state()
    fit = learned.fit
    names = np.arange(learned.columns.n_features) if learned.columns.names is None else learned.columns.names
    if isinstance(fit.features, MixedFit):
        factors = np.full(len(names), np.nan)
        for part, (_, index, _) in zip(fit.features.parts, learned.columns.blocks, strict=True):
            factors[index] = log_bayes_factors(part)
    else:
        factors = log_bayes_factors(fit.features)
    probability = expit(factors + logit(prior_probability))
    return FeatureRelevance(factors, probability, np.asarray(names))


def log_bayes_factors(part: Any) -> np.ndarray:
    """Log Bayes factors of the columns of one family."""
    if getattr(part, "own", None) is not None:
        raise ValueError(
            f"Bayes factors of columns need a prior with a closed form; {type(part.own).__name__} has none: pass an "
            "estimator with a conjugate prior"
        )
    prior, stats = part.prior, part.stats
    if part.check_evidence(np.ones(prior.n_classes, dtype=bool)) is not None:
        raise UndefinedNumberError("there are no Bayes factors under an improper prior: state a proper one")
    register()
    one = jax.tree.map(lambda v: once(v, prior.n_classes), prior).replace(n_classes=1)
    try:
        same = one.log_evidence_columns(prior.pool_classes(stats))
    except ValueError as error:
        raise ValueError(f"Bayes factors of columns need a prior that is the same in every class: {error}") from None
    return np.asarray(prior.log_evidence_columns(stats) - same)


def once(value: Any, n_classes: int) -> Any:
    """A hyperparameter written out for each class, once, if it is the same for all."""
    table = np.ndim(value) > 1 and len(value) == n_classes
    return value[:1] if table and (value == value[:1]).all() else value


class EvidenceSelector(SelectorMixin, BaseEstimator):
    """Select columns by the evidence that they depend on the class; a step of a scikit-learn ``Pipeline``.

    Parameters
    ----------
    estimator : estimator of this library
        Whose prior and likelihood the Bayes factors use.
    k : int, optional
        Keep the k columns with the largest Bayes factors. None: those with a probability above `threshold`.
    threshold : float, default=0.5
        Least posterior probability of depending on the class (the median probability model).
    prior_probability : float, default=0.5
        See `feature_relevance`.

    Attributes
    ----------
    relevance_ : FeatureRelevance
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from bayesgen import EvidenceSelector, MultinomialNB
    >>> pipeline = make_pipeline(EvidenceSelector(MultinomialNB(), k=2), MultinomialNB())
    >>> pipeline.fit([[9, 1, 5], [8, 0, 6], [1, 8, 5], [0, 9, 6]], [0, 0, 1, 1]).predict([[7, 0, 5]]).tolist()
    [0]
    """

    def __init__(
        self, estimator: Any, *, k: int | None = None, threshold: float = 0.5, prior_probability: float = 0.5
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.threshold = threshold
        self.prior_probability = prior_probability

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compute the Bayes factors.

        Parameters
        ----------
        X, y, sample_weight : see `MultinomialNB.fit`

        Returns
        -------
        self
        """
        if self.k is not None and (isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1):
            raise ValueError(f"k must be a whole number, at least 1, or None; got {self.k!r}")
        if not isinstance(self.threshold, (int, float, np.number)) or not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must be a number between 0 and 1; got {self.threshold!r}")
        fitted = clone(self.estimator).set_params(inference="exact").fit(X, y, sample_weight)
        self.relevance_ = feature_relevance(fitted, prior_probability=self.prior_probability)
        self.n_features_in_ = fitted.n_features_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self.k is not None and self.k > self.n_features_in_:
            warnings.warn(
                f"k={self.k} is more than the {self.n_features_in_} columns of X: all are kept",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        factors = self.relevance_.log_bayes_factor
        if self.k is None:
            return self.relevance_.probability > self.threshold
        mask = np.zeros(len(factors), dtype=bool)
        mask[np.argsort(-factors, kind="stable")[: self.k]] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
