"""Generative classifiers as a Bayesian tool: naive Bayes and Gaussian discriminant analysis.

Names are imported when first used, so that ``import bayesgen`` is quick and changes nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesgen import families, plots
    from bayesgen.comparison import compare
    from bayesgen.decisions import decide, expected_cost, probability_best
    from bayesgen.estimators import (
        BernoulliNB,
        CategoricalNB,
        GaussianDiscriminantAnalysis,
        GaussianNB,
        GenerativeClassifier,
        MixedNB,
        MultinomialNB,
        PoissonNB,
        auto_blocks,
    )
    from bayesgen.exceptions import (
        SamplingWarning,
        UndefinedNumberError,
        UnlabelledRowsWarning,
        ZeroProbabilityWarning,
    )
    from bayesgen.importance import ImportanceOptions
    from bayesgen.learning import Evidence
    from bayesgen.nuts import NUTSOptions
    from bayesgen.own_priors import HierarchicalCovariancePrior, HierarchicalDirichlet, LKJPrior
    from bayesgen.priors import Gamma, NormalInverseGamma, NormalInverseWishart
    from bayesgen.relevance import EvidenceSelector, FeatureRelevance, feature_relevance
    from bayesgen.sensitivity import prior_sensitivity
    from bayesgen.smoothing import compare_smoothing
    from bayesgen.statistics import Statistics
    from bayesgen.storage import load

__version__ = "0.1.0"

_HOME = {
    "BernoulliNB": "estimators",
    "CategoricalNB": "estimators",
    "Evidence": "learning",
    "EvidenceSelector": "relevance",
    "FeatureRelevance": "relevance",
    "Gamma": "priors",
    "GaussianDiscriminantAnalysis": "estimators",
    "GaussianNB": "estimators",
    "GenerativeClassifier": "estimators",
    "HierarchicalCovariancePrior": "own_priors",
    "HierarchicalDirichlet": "own_priors",
    "ImportanceOptions": "importance",
    "LKJPrior": "own_priors",
    "MixedNB": "estimators",
    "MultinomialNB": "estimators",
    "NUTSOptions": "nuts",
    "NormalInverseGamma": "priors",
    "NormalInverseWishart": "priors",
    "PoissonNB": "estimators",
    "SamplingWarning": "exceptions",
    "Statistics": "statistics",
    "UndefinedNumberError": "exceptions",
    "UnlabelledRowsWarning": "exceptions",
    "ZeroProbabilityWarning": "exceptions",
    "auto_blocks": "estimators",
    "compare": "comparison",
    "compare_smoothing": "smoothing",
    "decide": "decisions",
    "expected_cost": "decisions",
    "feature_relevance": "relevance",
    "load": "storage",
    "prior_sensitivity": "sensitivity",
    "probability_best": "decisions",
}

_ELSEWHERE = {  # names of scikit-learn, and what to use here
    "LinearDiscriminantAnalysis": "GaussianDiscriminantAnalysis()",
    "QuadraticDiscriminantAnalysis": "GaussianDiscriminantAnalysis(covariance='per_class')",
    "ComplementNB": "MultinomialNB(), which is another model: ComplementNB is not a generative one",
}

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "Evidence",
    "EvidenceSelector",
    "FeatureRelevance",
    "Gamma",
    "GaussianDiscriminantAnalysis",
    "GaussianNB",
    "GenerativeClassifier",
    "HierarchicalCovariancePrior",
    "HierarchicalDirichlet",
    "ImportanceOptions",
    "LKJPrior",
    "MixedNB",
    "MultinomialNB",
    "NUTSOptions",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "PoissonNB",
    "SamplingWarning",
    "Statistics",
    "UndefinedNumberError",
    "UnlabelledRowsWarning",
    "ZeroProbabilityWarning",
    "auto_blocks",
    "compare",
    "compare_smoothing",
    "decide",
    "expected_cost",
    "families",
    "feature_relevance",
    "load",
    "plots",
    "prior_sensitivity",
    "probability_best",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"bayesgen.{_HOME[name]}"), name)
    elif name in ("families", "plots"):
        value = importlib.import_module(f"bayesgen.{name}")
    else:
        hint = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module 'bayesgen' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
