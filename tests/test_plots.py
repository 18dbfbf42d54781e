"""Pictures show the model that is fitted."""

from __future__ import annotations

import numpy as np
import pytest

import bayesgen
from bayesgen import GaussianDiscriminantAnalysis, GaussianNB

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

from bayesgen import plots  # noqa: E402


@pytest.fixture
def ax():
    return Figure().subplots()


def clouds(n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds in columns of very different unit."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(n_classes), 40)
    X = rng.normal(size=(len(y), 2)) + np.column_stack([1.5 * y, -1.0 * y])
    return X * [1.0, 1000.0] + [0.0, 4000.0], y


def line(ax):
    return next(curve for curve in ax.get_lines() if curve.get_label() == "p = 0.5")


def test_the_straight_line_is_where_both_classes_are_equally_probable(ax) -> None:
    X, y = clouds()
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    assert plots.decision_boundary(gda, X, y, ax) is ax
    ends = line(ax).get_xydata()
    assert len(ends) == 2
    on_the_line = ends[0] + np.linspace(0.0, 1.0, 7)[:, None] * (ends[1] - ends[0])
    np.testing.assert_allclose(gda.predict_proba(on_the_line), 0.5, atol=1e-9)


@pytest.mark.parametrize("swap", [False, True])
def test_a_line_along_an_axis_can_be_drawn(ax, swap: bool) -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [4.0, 0.0], [4.0, 1.0], [5.0, 0.0], [5.0, 1.0]])
    y = np.repeat([0, 1], 4)
    X = X[:, ::-1] if swap else X
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    plots.decision_boundary(gda, X, y, ax)
    np.testing.assert_allclose(line(ax).get_xydata()[:, int(swap)], 2.5, rtol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianDiscriminantAnalysis(),
        GaussianDiscriminantAnalysis(covariance="per_class", inference="map"),
        GaussianNB(inference="mean"),
    ],
    ids=["exact", "per_class", "naive"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_routes_and_more_classes_have_curved_boundaries(ax, estimator, n_classes: int) -> None:
    X, y = clouds(n_classes)
    estimator = estimator.fit(X, y)
    plots.decision_boundary(estimator, X, y, ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[:n_classes] == [str(k) for k in range(n_classes)]
    assert labels[n_classes] == ("p = 0.5" if n_classes == 2 else "most probable class changes")


def test_contours_enclose_the_stated_share_of_a_class(ax) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(4000, 2)), np.zeros(4000, dtype=int)
    y[2000:] = 1
    X[y == 1] += [9.0, 0.0]
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    plots.decision_boundary(gda, X, y, ax, mass=[0.5, 0.9])
    contours = [c for c in ax.collections if hasattr(c, "levels")]
    assert [len(c.levels) for c in contours] == [2, 2]
    # Half of a plane normal density lies above half of its peak, 0.9 above a tenth of it.
    peak = 1.0 / (2.0 * np.pi * np.sqrt(np.linalg.det(gda.covariance_)))
    np.testing.assert_allclose(contours[0].levels / peak, [0.1, 0.5], atol=0.01)


def test_axes_are_named_after_the_columns_of_a_frame(ax) -> None:
    pd = pytest.importorskip("pandas")
    X, y = clouds()
    frame = pd.DataFrame(X, columns=["length", "mass"])
    plots.decision_boundary(GaussianDiscriminantAnalysis().fit(frame, y), frame, y, ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "mass")


def test_three_columns_cannot_be_drawn(ax) -> None:
    X, y = clouds()
    X = np.column_stack([X, X[:, 0] ** 2])
    with pytest.raises(ValueError, match=r"two columns, X has shape \(80, 3\)"):
        plots.decision_boundary(GaussianDiscriminantAnalysis().fit(X, y), X, y, ax)


def test_the_smoothing_curve_marks_what_has_a_name(ax) -> None:
    alpha, loss = [0.1, 1.0, 10.0], {"mean": [0.9, 0.6, 0.7], "exact": [0.8, 0.6, 0.65]}
    assert plots.smoothing_curve(alpha, loss, ax, mle=float("inf")) is ax
    texts = [text.get_text().strip() for text in ax.texts]
    assert texts == ["Jeffreys", "Laplace", "MLE (alpha = 0): infinite"]
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mean", "exact", "least loss"]


def test_the_smoothing_curve_takes_other_marks(ax) -> None:
    plots.smoothing_curve([0.1, 1.0], {"mean": [0.9, 0.6]}, ax, marks={"Perks": 0.2}, mle=1.25)
    assert [text.get_text().strip() for text in ax.texts] == ["Perks", "MLE (alpha = 0): 1.250"]


@pytest.mark.parametrize("alpha", [[], [0.0, 1.0], [1.0, 0.5]])
def test_alpha_must_be_positive_and_increasing(ax, alpha: list[float]) -> None:
    with pytest.raises(ValueError, match="positive and increasing"):
        plots.smoothing_curve(alpha, {"mean": alpha}, ax)


def test_plots_come_with_the_package() -> None:
    assert bayesgen.plots is plots
