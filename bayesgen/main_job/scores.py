"""Rows held out, and how one route does on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesgen._report import Report

__all__ = ["EXTRA", "SEED", "Scores", "Split", "calibration_error", "hold_out", "log_loss", "route_table", "score"]

EXTRA = "pip install 'bayesgen[examples]'"
SEED = 0


class Split(NamedTuple):
    """Training rows, and the rows held out."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def hold_out(X: Any, y: np.ndarray, *, train_size: float) -> Split:
    """A fixed random split that keeps the shares of the classes."""
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, train_size=train_size, stratify=y, random_state=SEED)
    return Split(X, y, X_test, y_test)


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


def route_table(report: Report, file: str, scores: list[Scores]) -> None:
    """A table with a row for each route, as text and as CSV, and a sentence for each model."""
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
