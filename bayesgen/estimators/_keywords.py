"""Names that an estimator does not have: scikit-learn's, those of another estimator, misspelt ones.

The error says what to use instead. `__init__` keeps its plain signature, from which scikit-learn reads the parameters.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["ATTRIBUTES", "KEYWORDS", "attribute_hint", "explaining", "keyword_hint"]

SHRINKS = (
    "a prior shrinks covariances, with covariance='shared' or 'per_class': GaussianDiscriminantAnalysis("
    "prior=NormalInverseWishart(df=..., scale=...)), or prior='evidence', which learns how much"
)

KEYWORDS = {
    "alpha": "pseudo-counts are of words and levels; other models take prior=, and MixedNB blocks with their own",
    "covariance_estimator": SHRINKS,
    "laplace": "pseudo-counts are alpha=, on BernoulliNB, MultinomialNB and CategoricalNB",
    "norm": "it belongs to ComplementNB, which is not a generative model",
    "prior": "the prior of the probabilities of words and levels is alpha=; a block of MixedNB has its own",
    "priors": "class probabilities are class_prior=, on every estimator",
    "reg_param": SHRINKS,
    "shrinkage": SHRINKS,
    "solver": "there is nothing to choose; leave it out",
    "store_covariance": "covariance_ is always there; leave it out",
    "tol": "no singular value is dropped by a threshold (a singular covariance is an error); leave it out",
    "var_smoothing": (
        "the prior does its work, in the unit of each column: GaussianNB(prior=NormalInverseGamma(shape=..., "
        "scale=...)); the default, prior=None, keeps variances from zero already. A grid search lists such priors; "
        "likelihood_power='loo' helps where columns repeat each other"
    ),
}
"""What replaces a keyword; said by estimators that do not have it."""

ATTRIBUTES = {
    "category_count_": "counts of words are feature_count_",
    "class_prior_": "class probabilities are numpy.exp(class_log_prior_)",
    "covariance_": "variances are var_",
    "epsilon_": "nothing is added to the variances; prior_ holds the prior in use",
    "feature_all_": "the counts of all classes are feature_count_.sum(axis=0)",
    "feature_count_": "counts of levels are category_count_; other models have statistics_",
    "feature_log_prob_": "rates are rate_, means theta_ or means_",
    "means_": "means are theta_",
    "n_features_": "the number of columns is n_features_in_",
    "priors_": "class probabilities are numpy.exp(class_log_prior_)",
    "rotations_": "numpy.linalg.eigh(covariance_) gives the axes and variances of each class",
    "sigma_": "variances are var_",
    "theta_": "means are means_",
    "var_": "variances are the diagonal of covariance_",
}
"""What holds scikit-learn's fitted attribute; said by estimators that do not have it."""


def keyword_hint(name: str, known: Iterable[str]) -> str:
    """What to use in place of a keyword that is not among the known ones."""
    from bayesgen import estimators

    if name in KEYWORDS:
        return KEYWORDS[name]
    owners = [
        kind
        for kind in estimators.__all__
        if isinstance(getattr(estimators, kind), type) and name in getattr(estimators, kind)._get_param_names()
    ]
    if owners:
        return f"it is a keyword of {', '.join(owners)}"
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the keywords are {', '.join(known)}"


def attribute_hint(name: str) -> str:
    """What holds a number that has another name in scikit-learn, after a colon; empty for other names."""
    return f": {ATTRIBUTES[name]}" if name in ATTRIBUTES else ""


def explaining(init: Callable[..., None]) -> Callable[..., None]:
    """An ``__init__`` of the same signature, whose error for an unknown keyword says what to use instead."""
    parameters = inspect.signature(init).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return init

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        for name in keywords:
            if name not in parameters:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}: "
                    f"{keyword_hint(name, list(parameters)[1:])}"
                )
        init(self, *args, **keywords)

    return __init__
