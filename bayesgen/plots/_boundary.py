"""Class densities of a model with two columns, and its decision boundary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plots._shared import current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["decision_boundary"]


def decision_boundary(
    estimator: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    mass: Sequence[float] = (0.5, 0.9),
    resolution: int = 200,
    padding: float = 0.25,
) -> Axes:
    r"""Class densities of a model with two columns, and where its decision changes.

    For each class the contours enclose the given shares of :math:`p(x \mid y)`, the smallest regions that do.
    The black line is where the most probable class changes; with two classes, where
    :math:`p(y=1 \mid x) = 1/2`. It is straight when the log odds are linear in x, and then taken from the
    estimator's ``to_logistic()``, otherwise from a grid.

    Parameters
    ----------
    estimator : fitted classifier of this library
        A density over two numeric columns: `GaussianDiscriminantAnalysis`, `GaussianNB`, or a
        `GenerativeClassifier` of a normal family. Any route will do; the densities shown are that route's.
    X : array-like or data frame of shape (n, 2)
        Rows drawn as points; they also set the limits of the axes.
    y : array-like of shape (n,)
        Their labels.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    mass : sequence of float, default=(0.5, 0.9)
        Shares of each class's probability that its contours enclose.
    resolution : int, default=200
        Grid points along each axis.
    padding : float, default=0.25
        Margin around the points, as a share of their range.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen import GaussianDiscriminantAnalysis, plots
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 2)) + 2.0 * y[:, None]
    >>> ax = plots.decision_boundary(GaussianDiscriminantAnalysis(inference="mle").fit(X, y), X, y)
    """
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"decision_boundary draws models of two columns, X has shape {points.shape}: fit the estimator "
            "on two columns of your choice and pass those."
        )
    ax = current_axes() if ax is None else ax
    horizontal, vertical = (_axis(points[:, j], padding, resolution) for j in range(2))
    grid = np.stack(np.meshgrid(horizontal, vertical), axis=-1)
    flat = _in_the_form_of(X, grid.reshape(-1, 2))
    joint = estimator.predict_joint_log_proba(flat)
    density = np.exp(joint - estimator.class_log_prior_)
    cell = (horizontal[1] - horizontal[0]) * (vertical[1] - vertical[0])

    y = np.asarray(y)
    for k, label in enumerate(estimator.classes_):
        colour = f"C{k}"
        mine = points[y == label]
        ax.scatter(mine[:, 0], mine[:, 1], s=14, color=colour, alpha=0.55, linewidths=0, label=str(label))
        levels = _levels_enclosing(density[:, k] * cell, mass) / cell
        if levels.size:
            ax.contour(
                horizontal,
                vertical,
                density[:, k].reshape(grid.shape[:2]),
                levels,
                colors=colour,
                linewidths=1.2,
            )

    line = _straight_line(estimator, horizontal, vertical)
    if line is not None:
        ax.plot(*line, color="black", linewidth=1.6, label="p = 0.5")
    else:
        _curved_boundary(ax, horizontal, vertical, joint, grid.shape[:2])
    ax.set_xlim(horizontal[0], horizontal[-1])
    ax.set_ylim(vertical[0], vertical[-1])
    names = getattr(estimator, "feature_names_in_", ("column 0", "column 1"))
    ax.set_xlabel(str(names[0]))
    ax.set_ylabel(str(names[1]))
    ax.legend(frameon=False)
    return ax


def _axis(values: np.ndarray, padding: float, resolution: int) -> np.ndarray:
    """Evenly spaced values over the range of a column and a margin."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = padding * ((high - low) or 1.0)
    return np.linspace(low - margin, high + margin, resolution)


def _in_the_form_of(X: Any, grid: np.ndarray) -> Any:
    """The grid, as a data frame when X is one: the estimator knows its columns by name."""
    if hasattr(X, "columns"):
        return type(X)({name: grid[:, j] for j, name in enumerate(X.columns)})
    return grid


def _levels_enclosing(mass_of_cell: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Cell masses above which the cells hold each share, increasing; without shares beyond the grid."""
    ordered = np.sort(mass_of_cell)[::-1]
    held = np.cumsum(ordered)
    return np.unique([ordered[np.searchsorted(held, share)] for share in shares if share < held[-1]])


def _straight_line(
    estimator: Any, horizontal: np.ndarray, vertical: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """End points of the line p = 0.5; None unless there are two classes and the log odds are linear."""
    if len(estimator.classes_) != 2:
        return None
    try:
        logistic = estimator.to_logistic()
    except (AttributeError, ValueError):
        return None
    (w0, w1), intercept = logistic.coef_[0], float(logistic.intercept_[0])
    ends_0, ends_1 = horizontal[[0, -1]], vertical[[0, -1]]
    # Solve for the coordinate that moves the score most within the picture, so that no line is too steep.
    if abs(w1) * np.ptp(ends_1) >= abs(w0) * np.ptp(ends_0):
        return (ends_0, -(intercept + w0 * ends_0) / w1) if w1 else None
    return -(intercept + w1 * ends_1) / w0, ends_1


def _curved_boundary(
    ax: Axes, horizontal: np.ndarray, vertical: np.ndarray, joint: np.ndarray, shape: tuple[int, ...]
) -> None:
    """Contours on the grid where the most probable class changes."""
    n_classes = joint.shape[1]
    if n_classes == 1:
        return
    # With two classes the second margin is minus the first: one contour is enough.
    for k in range(1 if n_classes == 2 else n_classes):
        margin = joint[:, k] - np.max(np.delete(joint, k, axis=1), axis=1)
        if margin.min() < 0 < margin.max():
            ax.contour(horizontal, vertical, margin.reshape(shape), [0.0], colors="black", linewidths=1.6)
    ax.plot(
        [],
        [],
        color="black",
        linewidth=1.6,
        label="p = 0.5" if n_classes == 2 else "most probable class changes",
    )
