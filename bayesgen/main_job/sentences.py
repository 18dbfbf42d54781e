"""The four sentences of a textbook introduction to naive Bayes, worked in full, in fractions."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from bayesgen._report import Report
from bayesgen.main_job.scores import SEED

__all__ = ["worked_example"]

SENTENCES = (
    ("my name is Devin.", "civil"),
    ("you are stupid.", "rude"),
    ("my boyfriend is SB.", "rude"),
    ("you looks very smart,I like you very much.", "civil"),
)
NEW_SENTENCE = "I like you."
# It holds a word that only civil sentences used, and one that only rude ones did.
IMPOSSIBLE_SENTENCE = "my name is stupid."


def worked_example(report: Report) -> None:
    """Classify "I like you." from four labelled sentences, by every route, in fractions."""
    report.progress.step("the worked example")
    from bayesgen import BernoulliNB, MultinomialNB

    # Words of two letters or more, as CountVectorizer reads them: so "I" is none.
    vocabulary = list(dict.fromkeys(word for text, _ in SENTENCES for word in _words(text)))
    counts = np.array([_count(text, vocabulary) for text, _ in SENTENCES])
    labels = np.array([label for _, label in SENTENCES])
    new = np.array([_count(NEW_SENTENCE, vocabulary)])

    report.heading("1. Four sentences, worked in full")
    for text, label in SENTENCES:
        report.say(f"   {label:<6} {text}")
    report.say(f"   new    {NEW_SENTENCE}")
    report.say()
    report.paragraph(
        f'{len(vocabulary)} different words of two letters or more ("I" is none, so the new sentence counts '
        'as "like you"). How often each occurs in a class, and its probability in that class:'
    )
    mle = MultinomialNB(inference="mle").fit(counts, labels)
    laplace = MultinomialNB(inference="mean").fit(counts, labels)
    _word_table(report, vocabulary, mle, laplace)

    exact, bernoulli = MultinomialNB(), BernoulliNB()
    models = {
        ("multinomial", "MLE"): mle,
        ("multinomial", "Laplace (mean)"): laplace,
        ("multinomial", "MAP, alpha = 2"): MultinomialNB(alpha=2.0, inference="map"),
        ("multinomial", "Jeffreys (mean)"): MultinomialNB(alpha=0.5, inference="mean"),
        ("multinomial", "exact"): exact,
        ("capped at 1", "Laplace (mean)"): MultinomialNB(inference="mean"),
        ("Bernoulli", "MLE"): BernoulliNB(inference="mle"),
        ("Bernoulli", "Laplace = exact"): bernoulli,
    }
    for (model, _), estimator in models.items():
        estimator.fit(np.minimum(counts, 1.0) if model == "capped at 1" else counts, labels)
    report.paragraph(
        f'Scores of "{NEW_SENTENCE}": p(y) p(x | y), its logarithm to base 2, and P(rude | x). Laplace and '
        "exact have alpha = 1, Jeffreys 1/2; capped at 1: multinomial, no word counted twice in a sentence."
    )
    _score_table(report, models, new)

    impossible = np.array([_count(IMPOSSIBLE_SENTENCE, vocabulary)])
    report.paragraph(
        'The trouble: no rude sentence had "like", so the MLE gives it probability 0 there and is certain, '
        f'from one unseen word, that the new sentence is civil. "{IMPOSSIBLE_SENTENCE}" is worse: "name" has '
        'probability 0 when rude, "stupid" when civil; both scores are 0, '
        "and Bayes' rule would divide 0 by 0. The library warns:"
    )
    report.paragraph(_warning_of(lambda: mle.predict_proba(impossible)), indent=6)
    report.paragraph(
        "The repair: with one pseudo-count for every word (Laplace) no probability is 0, and the same "
        f"sentence is rude with probability {laplace.predict_proba(impossible)[0, 1]:.4f}. Laplace smoothing "
        "is the posterior mean under the flat prior Dirichlet(1), or the mode under Dirichlet(2). The mode "
        "under Dirichlet(1) is the MLE again."
    )
    known = [word for word in _words(NEW_SENTENCE) if word in vocabulary]
    urn = "; ".join(
        f"{label} {' x '.join(_urn_factors(exact, known, vocabulary, k))}" for k, label in enumerate(exact.classes_)
    )
    low, high = (bound[0, 1] for bound in exact.predict_proba_interval(new, prob=0.94, random_state=SEED))
    report.paragraph(
        "The whole posterior: the exact route integrates the word probabilities out, and each word then "
        f"counts as seen for the next ({' then '.join(known)}: {urn}). Four sentences leave much open: over "
        f"the posterior, the middle 94 % of P(rude | x, parameters) reaches from {low:.2f} to {high:.2f}."
    )
    report.paragraph(
        "Two event models, two answers: the Bernoulli model also counts the words that are absent. Civil "
        "sentences had more different words, so their absence speaks against civil, and it calls the "
        "sentence rude. The multinomial model looks only at the words that are there, and calls it civil."
    )
    with_coefficient = MultinomialNB(multinomial_coefficient=True).fit(counts, labels)
    report.paragraph(
        "Evidence, the probability of the four labelled sentences with all parameters integrated out: "
        f"labels alone {_fraction(np.exp(exact.log_evidence_parts_['y']))}; ln p(labels, word sequences) "
        f"{exact.log_evidence_:.4f}, ln p(labels, word counts) {with_coefficient.log_evidence_:.4f}, ln "
        f"p(labels, words present or not) {bernoulli.log_evidence_:.4f}. (Three descriptions of the data: "
        "evidences of different descriptions cannot be compared.)"
    )


def _word_table(report: Report, vocabulary: list[str], mle: Any, laplace: Any) -> None:
    rows = []
    for j, word in enumerate(vocabulary):
        probabilities = [_fraction(p) for route in (mle, laplace) for p in np.exp(route.feature_log_prob_[:, j])]
        rows.append([word, *(f"{n:.0f}" for n in mle.feature_count_[:, j]), *probabilities])
    rows.append(["all words", *(f"{n:.0f}" for n in mle.feature_count_.sum(axis=1)), "1", "1", "1", "1"])
    columns = ["word", "count civil", "count rude", "MLE civil", "MLE rude", "Laplace civil", "Laplace rude"]
    report.table(columns, rows)
    report.csv("worked_example_words.csv", columns, rows)


def _score_table(report: Report, models: dict[tuple[str, str], Any], new: np.ndarray) -> None:
    rows = []
    for name, estimator in models.items():
        joint = estimator.predict_joint_log_proba(new)[0]
        rude = estimator.predict_proba(new)[0, 1]
        scores = [*(_fraction(np.exp(j)) for j in joint), *(f"{j / np.log(2):.4f}" for j in joint)]
        rows.append([*name, *scores, _fraction(rude), f"{rude:.4f}", str(estimator.predict(new)[0])])
    report.table(["model", "route", "civil", "rude", "log2", "log2", "P(rude)", "", "so"], rows, words=(0, 1, 8))
    scores = ["joint_civil", "joint_rude", "log2_civil", "log2_rude", "p_rude_fraction", "p_rude"]
    report.csv("worked_example_scores.csv", ["model", "route", *scores, "predicted"], rows)


def _words(text: str) -> list[str]:
    return re.findall(r"\w\w+", text)


def _count(text: str, vocabulary: list[str]) -> list[float]:
    words = _words(text)
    return [float(words.count(word)) for word in vocabulary]


def _fraction(value: float) -> str:
    """The fraction with a denominator of at most ten million that the number is, else the number."""
    fraction = Fraction(float(value)).limit_denominator(10**7)
    # Any number comes about as near as 1 / denominator**2 to a fraction by chance; rounding leaves far less.
    chance = float(abs(fraction - Fraction(float(value)))) * fraction.denominator**2
    return str(fraction) if chance < 1e-3 else f"{value:.6g}"


def _urn_factors(estimator: Any, words: list[str], vocabulary: list[str], k: int) -> list[str]:
    """p(word | class k, the words before it) for each word of a sentence, under the exact route."""
    prefixes = np.array([_count(" ".join(words[:n]), vocabulary) for n in range(len(words) + 1)])
    return [_fraction(p) for p in np.exp(np.diff(estimator.predict_joint_log_proba(prefixes)[:, k]))]


def _warning_of(call: Callable[[], Any]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return "; ".join(f"{warning.category.__name__}: {warning.message}" for warning in caught)
