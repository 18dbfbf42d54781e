"""The models that suit a table, each with what it says in plain words.

All of them describe the same columns of the same rows, so that their evidences can be compared wherever they describe
them in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen import BernoulliNB, CategoricalNB, GaussianDiscriminantAnalysis, GaussianNB, MixedNB, MultinomialNB
from bayesgen.report.table import MOST_CORRELATED, Table

__all__ = ["Candidate", "blocks", "models"]


@dataclass(frozen=True)
class Candidate:
    """A model to compare: the estimator, and what it is in plain words."""

    estimator: Any
    meaning: str


def models(table: Table) -> dict[str, Candidate]:
    """The models that make sense for the columns of a table, by name."""
    return _table_models(table) if not table.words else _text_models(table)


def blocks(table: Table, numbers: Any = None, alpha: Any = 1.0, words: Any = None) -> list[Any]:
    """Blocks of `MixedNB`, one for each kind of column."""
    kinds = table.kinds
    levels = [np.arange(float(len(c.levels))) for c in table.used if c.kind == "categorical"]
    makers = {
        "word": words,
        "bernoulli": BernoulliNB(alpha=alpha, binarize=None),
        "categorical": CategoricalNB(alpha=alpha, categories=levels),
        "gaussian": GaussianNB() if numbers is None else numbers,
    }
    return [
        (kind, estimator, np.flatnonzero(kinds == kind))
        for kind, estimator in makers.items()
        if estimator is not None and (kinds == kind).any()
    ]


def _table_models(table: Table) -> dict[str, Candidate]:
    kinds = table.kinds
    n_numbers = int((kinds == "gaussian").sum())
    independent = "Within a class the columns are independent of each other"
    learned_power = Candidate(
        MixedNB(blocks=blocks(table), likelihood_power="loo"),
        "As naive Bayes, but when it predicts, the weight of the columns against the class shares (the power of the "
        "likelihood) is learned. It mends double counting where columns repeat each other.",
    )
    if not n_numbers:
        smoothing = "Every category is given {} extra observations in each class, so that none is impossible."
        return {
            "naive Bayes": Candidate(
                MixedNB(blocks=blocks(table)), f"{independent}. {smoothing.format('one')} (Laplace's rule.)"
            ),
            "naive Bayes (half a count)": Candidate(
                MixedNB(blocks=blocks(table, alpha=0.5)), "The same with less smoothing (Jeffreys' rule, 1/2)."
            ),
            "naive Bayes (learned smoothing)": Candidate(
                MixedNB(blocks=blocks(table, alpha="evidence")),
                "The same with the number of extra observations that makes the data most probable.",
            ),
            "naive Bayes (learned power)": learned_power,
        }
    gda = GaussianDiscriminantAnalysis
    found = {
        "naive Bayes": Candidate(
            MixedNB(blocks=blocks(table)),
            f"{independent}; each number has a normal distribution with its own mean and spread in each class.",
        ),
        "naive Bayes (shared spread)": Candidate(
            MixedNB(blocks=blocks(table, GaussianNB(variance="shared"))),
            "The same, but a number has one spread, shared by all classes: only its mean differs.",
        ),
        "naive Bayes (learned prior)": Candidate(
            MixedNB(blocks=blocks(table, GaussianNB(prior="evidence"), alpha="evidence")),
            "As naive Bayes; how much the classes are expected to differ, before seeing them, is learned from the "
            "data.",
        ),
        "naive Bayes (learned power)": learned_power,
    }
    numbers = [c.values for c in table.used if c.kind == "gaussian"]
    complete = not any(np.isnan(v).any() for v in numbers if v is not None)
    if complete and 2 <= n_numbers <= MOST_CORRELATED:
        found["discriminant analysis (shared covariance)"] = Candidate(
            MixedNB(blocks=blocks(table, gda())),
            "Numbers may be correlated; spreads and correlations are the same in all classes (linear discriminant "
            "analysis). Other columns as in naive Bayes.",
        )
        found["discriminant analysis (own covariance)"] = Candidate(
            MixedNB(blocks=blocks(table, gda(covariance="per_class"))),
            "Numbers may be correlated; each class has spreads and correlations of its own (quadratic discriminant "
            "analysis). Other columns as in naive Bayes.",
        )
        found["discriminant analysis (learned prior)"] = Candidate(
            MixedNB(blocks=blocks(table, gda(prior="evidence"), alpha="evidence")),
            "As with a shared covariance; the strength of the prior is learned from the data.",
        )
    return found


def _text_models(table: Table) -> dict[str, Candidate]:
    mixed = bool(table.used)

    def words(estimator: Any, power: Any = 1.0) -> Any:
        if not mixed:
            return estimator.set_params(likelihood_power=power)
        block = [("word", estimator, np.flatnonzero(table.kinds == "word"))]
        return MixedNB(blocks=block, likelihood_power=power)

    found = {
        "words (Laplace)": Candidate(
            words(MultinomialNB()),
            "Each class draws its words from frequencies of its own, one by one; every word is given one extra "
            "occurrence in each class (Laplace smoothing), so that none is impossible.",
        ),
        "words (Jeffreys)": Candidate(words(MultinomialNB(alpha=0.5)), "The same with half an extra occurrence."),
        "words (learned smoothing)": Candidate(
            words(MultinomialNB(alpha="evidence")),
            "The same with the number of extra occurrences that makes the texts most probable.",
        ),
        "words (learned smoothing and power)": Candidate(
            words(MultinomialNB(alpha="evidence"), "loo"),
            "The same, but when it predicts, the words count with a power that is learned. Words of a text repeat each "
            "other, and counting each in full makes the probabilities too sure.",
        ),
        "words present or not": Candidate(
            words(BernoulliNB()),
            "A text is a list of yes or no, one for each word: absent words speak too, and repeats do not.",
        ),
    }
    if mixed:
        found["other columns alone"] = Candidate(
            MixedNB(blocks=blocks(table)), "Naive Bayes on the other columns; the text is not used."
        )
        both = blocks(table, words=MultinomialNB(alpha="evidence"))
        found["words and other columns"] = Candidate(
            MixedNB(blocks=both), "Learned smoothing for the words, and naive Bayes for the other columns."
        )
        found["words and other columns (learned power)"] = Candidate(
            MixedNB(blocks=both, likelihood_power="loo"), "The same with a learned power."
        )
    return found
