"""Pictures that compare: amounts of smoothing, learned hyperparameters, columns, and models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from bayesgen.plots._smoothing import smoothing_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesgen.relevance import FeatureRelevance

__all__ = ["coefficient_path", "comparison", "evidence_curve", "relevance", "smoothing_path"]

NORMAL_95 = 1.959963984540054  # standard errors to each side of a 95 % interval


def smoothing_path(
    estimator: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    alphas: Sequence[float] | np.ndarray | None = None,
    test: tuple[Any, Any] | None = None,
) -> Axes:
    r"""Log loss against the concentration, with the amounts of smoothing that have a name and the learned one.

    Parameters
    ----------
    estimator : `MultinomialNB`, `BernoulliNB` or `CategoricalNB`
        Its `alpha` is varied in copies, all else kept.
    X, y : see `MultinomialNB.fit`
        Rows to learn from. The exact leave-one-out log loss of their labels is drawn,
        :math:`-\frac1n\sum_i \ln p(y_i \mid x_i, D_{\setminus i})`.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    alphas : sequence of float, optional
        Concentrations, positive and increasing; default: four a decade, from 0.001 (or below 1/V, if that is less) to
        1000.
    test : pair (X, y), optional
        Rows held out: their log loss under the estimator's route is drawn as well.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen import MultinomialNB
    >>> from bayesgen.plots import smoothing_path
    >>> X, y = [[9, 1, 0], [7, 0, 2], [0, 6, 3], [1, 5, 2]], [0, 0, 1, 1]
    >>> ax = smoothing_path(MultinomialNB(), X, y, ax=Figure().subplots())
    """
    grid, models = _models(estimator, X, y, alphas)
    loss = {"leave-one-out": [-np.mean(model.loo(X, y).conditional) for model in models]}
    if test is not None:
        loss["held-out rows"] = [_log_loss(model, *test) for model in models]
    marks = {"Jeffreys": 0.5, "Laplace": 1.0}
    cells = _cells(models[0])
    if cells is not None and cells > 2:
        marks["Perks"] = 1.0 / cells
    inside = {name: where for name, where in marks.items() if grid[0] <= where <= grid[-1]}
    ax = smoothing_curve(grid, loss, ax, marks=inside, ylabel="log loss of the label (nats)")
    _mark_learned(ax, _evidence(estimator, X, y), grid)
    ax.legend(frameon=False, loc="best", bbox_to_anchor=(0.0, 0.0, 1.0, 0.93))  # below the names of the rules
    return ax


def coefficient_path(
    estimator: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    alphas: Sequence[float] | np.ndarray | None = None,
    features: int | Sequence[int] = 8,
    feature_names: Sequence[Any] | None = None,
) -> Axes:
    r"""Weights of some words (levels) in the log odds against the concentration.

    With two classes a weight is :math:`\ln\theta_{1j} - \ln\theta_{0j}` of the posterior means. With more it is that of
    the class the word speaks for most, less the mean over classes. Smoothing draws all of them to 0, the rare ones
    first.

    Parameters
    ----------
    estimator, X, y, ax, alphas : see `smoothing_path`
    features : int or sequence of int, default=8
        Columns to draw, or how many: those that speak most for each class in turn, at the concentration nearest to 1.
    feature_names : sequence, optional
        Names of the columns; default: those of the data frame, or the numbers of the columns.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen import MultinomialNB
    >>> from bayesgen.plots import coefficient_path
    >>> X, y = [[9, 1, 0], [7, 0, 2], [0, 6, 3], [1, 5, 2]], [0, 0, 1, 1]
    >>> names = ["ball", "vote", "the"]
    >>> ax = coefficient_path(MultinomialNB(), X, y, Figure().subplots(), features=2, feature_names=names)
    """
    grid, models = _models(clone(estimator).set_params(inference="mean"), X, y, alphas)
    path = np.stack([model.coef_ for model in models])
    if path.shape[1] > 1:
        path = path - path.mean(axis=1, keepdims=True)
    centre = path[np.argmin(np.abs(np.log(grid)))]
    two = path.shape[1] == 1
    speaks = (centre[0] > 0).astype(int) if two else centre.argmax(axis=0)
    weights = path[:, 0] if two else np.take_along_axis(path, speaks[None, None], axis=1)[:, 0]
    names = _names(models[0], weights.shape[1], feature_names)
    if isinstance(features, (int, np.integer)):
        chosen = _strongest(np.abs(centre).max(axis=0), speaks, int(features))
    else:
        chosen = np.asarray(features)
    ax = _axes(ax)
    for j in chosen[np.argsort(-weights[0, chosen], kind="stable")]:
        of_class = "" if two else f" ({models[0].classes_[speaks[j]]})"
        ax.plot(grid, weights[:, j], linewidth=1.5, label=f"{names[j]}{of_class}")
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.set_xscale("log")
    _mark_learned(ax, _evidence(estimator, X, y), grid)
    ax.set_xlabel("alpha, the pseudo-count of every word or level")
    classes = models[0].classes_
    ax.set_ylabel(
        f"weight in the log odds of {classes[1]} against {classes[0]}" if two else "weight less its mean over classes"
    )
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def evidence_curve(estimator: Any, ax: Axes | None = None, *, drop: float = 12.0) -> Axes:
    """Log evidence around a learned hyperparameter, with the interval that its curvature gives.

    One concentration: the log evidence, its parabola at the top (in the logarithm), and the 95 % interval. One for each
    class: a curve each, less its top. Two hyperparameters: contours, where half a squared distance of 1, 2, 3 standard
    errors is lost.

    Parameters
    ----------
    estimator : fitted with ``alpha="evidence"``, `Evidence`, or ``prior="evidence"``
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    drop : float, default=12.0
        How far below its top the evidence is shown, in nats.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen import MultinomialNB
    >>> from bayesgen.plots import evidence_curve
    >>> model = MultinomialNB(alpha="evidence").fit([[9, 1, 0], [7, 0, 2], [0, 6, 3]], [0, 0, 1])
    >>> ax = evidence_curve(model, Figure().subplots())
    """
    learned = estimator.learned_
    ax = _axes(ax)
    if learned.names[0].startswith("alpha"):
        _evidence_lines(ax, learned, estimator.classes_, drop)
    else:
        _evidence_contours(ax, learned)
    return ax


def relevance(found: FeatureRelevance, ax: Axes | None = None, *, n: int = 20) -> Axes:
    """The n columns that depend most on the class, by log Bayes factor.

    Parameters
    ----------
    found : FeatureRelevance
        From `bayesgen.feature_relevance`.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    n : int, default=20
        How many columns.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen import MultinomialNB, feature_relevance
    >>> from bayesgen.plots import relevance
    >>> found = feature_relevance(MultinomialNB(), [[9, 1, 5], [8, 0, 6], [1, 8, 5], [0, 9, 6]], [0, 0, 1, 1])
    >>> ax = relevance(found, Figure().subplots())
    """
    ax = _axes(ax)
    known = np.flatnonzero(~np.isnan(found.log_bayes_factor))
    order = known[np.argsort(-found.log_bayes_factor[known], kind="stable")][:n]
    factor, probable = found.log_bayes_factor[order], found.probability[order] > 0.5
    place = np.arange(len(order))
    for mask, colour, label in ((probable, "C0", "probably depends on the class"), (~probable, "0.7", "probably not")):
        if mask.any():
            ax.barh(place[mask], factor[mask], color=colour, height=0.7, label=label)
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    ax.set_yticks(place, [str(name) for name in found.names[order]])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlabel("log Bayes factor for depending on the class (nats)")
    ax.legend(frameon=False, loc="lower right")
    return ax


def comparison(table: Any, ax: Axes | None = None) -> Axes:
    """Leave-one-out of models against that of the best, with standard errors of the difference over the same rows.

    Parameters
    ----------
    table : pandas.DataFrame
        From `bayesgen.compare`: columns ``elpd_conditional``, ``elpd_difference`` and ``se_difference``, a row for each
        model. Models without leave-one-out are left out.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen import MultinomialNB, compare
    >>> from bayesgen.plots import comparison
    >>> X, y = [[9, 1, 0], [7, 0, 2], [0, 6, 3], [1, 5, 2]], [0, 0, 1, 1]
    >>> models = {"Laplace": MultinomialNB(), "learned": MultinomialNB(alpha="evidence")}
    >>> ax = comparison(compare(models, X, y), Figure().subplots())
    """
    seen = table[table["elpd_conditional"].notna()].sort_values("elpd_conditional", ascending=False, kind="stable")
    if not len(seen):
        raise ValueError("no model of the table has a leave-one-out elpd: compare estimators of this library")
    ax = _axes(ax)
    place = np.arange(len(seen))
    difference, error = seen["elpd_difference"].to_numpy(float), seen["se_difference"].to_numpy(float)
    error = np.where(np.isnan(error), 0.0, error)
    ax.axvline(0.0, color="0.6", linewidth=0.8, linestyle=":")
    for width, times in ((1.2, 2.0), (3.5, 1.0)):
        ax.hlines(place, difference - times * error, difference + times * error, color="C0", linewidth=width)
    ax.plot(difference, place, "o", color="white", markeredgecolor="C0", markersize=6)
    labels = [f"{name}\n{elpd:.1f}" for name, elpd in zip(seen.index, seen["elpd_conditional"], strict=True)]
    ax.set_yticks(place, labels)
    ax.set_ylim(len(seen) - 0.5, -0.5)
    ax.set_xlabel("elpd less that of the best (nats; bars: 1 and 2 standard errors)")
    return ax


# ------------------------------------------------------------------------------- parts


def _axes(ax: Axes | None) -> Axes:
    # pyplot may start a window system; a caller who passes Axes does not need it.
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.gca()


def _models(estimator: Any, X: Any, y: Any, alphas: Any) -> tuple[np.ndarray, list[Any]]:
    """The concentrations, and copies of the estimator fitted with each."""
    if "alpha" not in estimator.get_params(deep=False):
        raise ValueError(
            f"a smoothing path is of models with a concentration alpha; {type(estimator).__name__} has none: use "
            "MultinomialNB, BernoulliNB or CategoricalNB"
        )
    if alphas is None:
        cells = _cells(clone(estimator).set_params(alpha=1.0).fit(X, y)) or 2
        low = min(-3.0, np.floor(-np.log10(cells) - 0.3))
        grid = 10.0 ** np.arange(low, 3.125, 0.25)
    else:
        grid = np.asarray(alphas, dtype=float)
        if not grid.size or grid[0] <= 0 or (np.diff(grid) <= 0).any():
            raise ValueError("alphas must be positive and increasing; the limit 0 is maximum likelihood")
    return grid, [clone(estimator).set_params(alpha=float(alpha)).fit(X, y) for alpha in grid]


def _strongest(size: np.ndarray, speaks: np.ndarray, n: int) -> np.ndarray:
    """The n columns that speak most for each class in turn."""
    order = np.argsort(-size, kind="stable")
    turn = np.empty(len(size), dtype=int)
    for k in np.unique(speaks):
        own = order[speaks[order] == k]
        turn[own] = np.arange(len(own))
    return np.lexsort((-size, turn))[:n]


def _log_loss(model: Any, X: Any, y: Any) -> float:
    """Mean of -ln p(y | x); the rows' labels must be known to the model."""
    codes = np.searchsorted(model.classes_, y)
    return float(-model.predict_log_proba(X)[np.arange(len(codes)), codes].mean())


def _cells(model: Any) -> int | None:
    """How many cells share one Dirichlet; None if that differs between columns."""
    kind = type(model).__name__
    if kind == "CategoricalNB":
        sizes = np.unique(model.n_categories_)
        return int(sizes[0]) if len(sizes) == 1 else None
    return model.n_features_in_ if kind == "MultinomialNB" else 2


def _evidence(estimator: Any, X: Any, y: Any) -> Any:
    """What the evidence of a common concentration teaches."""
    return clone(estimator).set_params(alpha="evidence", inference="mle").fit(X, y).learned_


def _mark_learned(ax: Axes, learned: Any, grid: np.ndarray) -> None:
    """A line at the learned concentration, and a band for its interval; a note at the edge if it lies beyond."""
    (value,), (error,) = learned.value, learned.standard_error
    colour = "black"
    if grid[0] <= value <= grid[-1]:
        ax.axvline(value, color=colour, linewidth=1.4, label=f"learned by evidence: {value:.3g}")
        if np.isfinite(error):
            low, high = value * np.exp([-NORMAL_95 * error, NORMAL_95 * error])
            ax.axvspan(max(low, grid[0]), min(high, grid[-1]), color=colour, alpha=0.12, linewidth=0)
    else:
        edge = grid[0] if value < grid[0] else grid[-1]
        ax.plot([edge], [0.03], marker="<" if value < grid[0] else ">", color=colour, linestyle="none", clip_on=False,
                transform=ax.get_xaxis_transform(), label=f"learned by evidence: {value:.3g}")  # fmt: skip
    ax.set_xlim(grid[0], grid[-1])


def _names(model: Any, size: int, given: Sequence[Any] | None) -> list[str]:
    """Names of the weights: of columns, or of the levels of columns."""
    if given is not None:
        if len(given) != size:
            raise ValueError(f"feature_names has {len(given)} names; there are {size} weights")
        return [str(name) for name in given]
    columns = getattr(model, "feature_names_in_", None)
    if columns is not None and len(columns) == size:
        return [str(name) for name in columns]
    if hasattr(model, "categories_"):
        own = range(model.n_features_in_) if columns is None else columns
        return [f"{c}={level}" for c, levels in zip(own, model.categories_, strict=True) for level in levels]
    return [f"column {j}" for j in range(size)]


def _evidence_lines(ax: Axes, learned: Any, classes: np.ndarray, drop: float) -> None:
    from matplotlib.ticker import ScalarFormatter

    single = len(learned.names) == 1
    held = np.clip(learned.value, 1e-12, 1e12)  # what stays fixed while one concentration moves
    top = learned.log_evidence if single else 0.0
    for i, (value, error) in enumerate(zip(learned.value, learned.standard_error, strict=True)):
        colour = f"C{i}"
        reach = 6.0 * error if np.isfinite(error) else 8.0
        centre = np.log(held[i]) if np.isfinite(error) else 0.0
        grid = np.exp(centre + np.linspace(-reach, reach, 241))
        table = np.tile(held, (len(grid), 1))
        table[:, i] = grid
        height = learned.curve(table) - learned.log_evidence + top
        name = "log evidence" if single else f"class {classes[i]}"
        ax.plot(grid, height, color=colour, linewidth=1.8, label=f"{name}, top at {value:.3g}")
        if not np.isfinite(error):
            continue
        parabola = top - 0.5 * (np.log(grid / value) / error) ** 2
        ax.plot(
            grid,
            parabola,
            color=colour,
            linewidth=1.0,
            linestyle=":",
            label="its curvature at the top" if single else None,
        )
        ends = value * np.exp([-NORMAL_95 * error, NORMAL_95 * error])
        ax.plot(value, top, "o", color=colour)
        if single:
            ax.axvspan(*ends, color=colour, alpha=0.12, linewidth=0, label=f"95 %: {ends[0]:.3g} to {ends[1]:.3g}")
        else:
            ax.hlines(top + 0.02 * drop * (i + 1), *ends, color=colour, linewidth=3.0)
    ax.set_xscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, top - drop), min(high, top + 0.08 * drop))
    ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    ax.set_xlabel("alpha, the pseudo-count of every word or level")
    ax.set_ylabel("log evidence ln p(X | y) (nats)" if single else "log evidence less its top (nats)")
    ax.legend(frameon=False, loc="best")


def _evidence_contours(ax: Axes, learned: Any) -> None:
    finite = np.isfinite(learned.standard_error)
    axes = []
    for value, error in zip(learned.value, learned.standard_error, strict=True):
        if np.isfinite(error):
            axes.append(value * np.exp(np.linspace(-4.0 * error, 4.0 * error, 25)))
        else:  # the top is at an end: what leads there
            axes.append(np.logspace(0, 6, 25) if value > 1.0 else np.logspace(-6, 0, 25))
    top = np.clip(learned.value, [a[0] for a in axes], [a[-1] for a in axes])
    table = np.stack(np.meshgrid(*axes), axis=-1)
    height = learned.curve(table.reshape(-1, 2)).reshape(table.shape[:2]) - learned.log_evidence
    drops = -0.5 * np.array([3.0, 2.0, 1.0]) ** 2
    lines = ax.contour(*axes, height, drops, colors=["0.75", "0.5", "C0"], linewidths=1.5)
    ax.clabel(lines, fmt=dict(zip(drops, ["-4.5 nats", "-2 nats", "-0.5 nats"], strict=True)), fontsize=8)
    label = ", ".join(f"{n} {v:.3g}" for n, v in zip(learned.names, learned.value, strict=True))
    ax.plot(*top, "o", color="C3", label=f"learned: {label}", clip_on=False)
    if finite.all():
        ends = learned.value * np.exp(np.outer([-NORMAL_95, NORMAL_95], learned.standard_error))
        ax.hlines(learned.value[1], *ends[:, 0], color="C3", linewidth=1.2, label="95 % by curvature")
        ax.vlines(learned.value[0], *ends[:, 1], color="C3", linewidth=1.2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(learned.names[0])
    ax.set_ylabel(learned.names[1])
    ax.legend(frameon=False, loc="upper right")
