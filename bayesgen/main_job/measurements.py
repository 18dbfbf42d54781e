"""Gaussian discriminant analysis on measurements: penguins, or iris."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesgen._report import Report, blank_figure
from bayesgen.main_job.scores import EXTRA, hold_out, route_table, score

__all__ = ["gaussian_models"]


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
    split = hold_out(data.X, data.y, train_size=60 / len(data.y))
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
    route_table(report, f"routes_{name}.csv", scores)
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
