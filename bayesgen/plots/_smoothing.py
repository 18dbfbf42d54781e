"""Held-out loss against the amount of smoothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.plots._shared import current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["smoothing_curve"]


def smoothing_curve(
    alpha: Sequence[float] | np.ndarray,
    loss: Mapping[str, Sequence[float] | np.ndarray],
    ax: Axes | None = None,
    *,
    marks: Mapping[str, float] | None = None,
    mle: float | None = None,
    ylabel: str = "log loss on held-out rows (nats)",
) -> Axes:
    """Held-out loss against the concentration alpha of the prior, with the named amounts of smoothing marked.

    Parameters
    ----------
    alpha : sequence of float or array
        Concentrations, all positive and increasing; the axis is logarithmic.
    loss : mapping of str to sequence of float or array
        One curve per entry (for instance per route): its name, and its loss at each `alpha`.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    marks : mapping of str to float, optional
        Concentrations that have a name; ``{"Jeffreys": 0.5, "Laplace": 1.0}`` by default.
    mle : float, optional
        Loss of the maximum likelihood estimate, the limit of `alpha` to 0; it is noted at the left edge.
    ylabel : str
        Label of the vertical axis.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import plots
    >>> ax = plots.smoothing_curve([0.1, 1.0, 10.0], {"mean": [0.9, 0.6, 0.7]}, mle=float("inf"))
    """
    alphas = np.asarray(alpha, dtype=float)
    if alphas.size == 0 or alphas[0] <= 0 or np.any(np.diff(alphas) <= 0):
        raise ValueError(
            "alpha must be positive and increasing; the limit 0 is the maximum likelihood estimate, pass mle=."
        )
    ax = current_axes() if ax is None else ax
    marks = {"Jeffreys": 0.5, "Laplace": 1.0} if marks is None else marks
    for number, (name, values) in enumerate(loss.items()):
        # Curves of two routes often lie on one another: dashes let the lower one be seen.
        style = "-" if number == 0 else (0, (5, 2 + number))
        (curve,) = ax.plot(alphas, values, linewidth=1.8, linestyle=style, label=name)
        best = int(np.nanargmin(values))
        # Larger below, smaller above: the least loss of every curve is seen where they meet.
        size = 9 - 3 * min(number, 2)
        note = "least loss" if number == len(loss) - 1 else None
        ax.plot(alphas[best], values[best], "o", color=curve.get_color(), markersize=size, label=note)
    ax.set_xscale("log")
    top = ax.get_xaxis_transform()
    for number, (name, where) in enumerate(marks.items()):
        ax.axvline(where, color="0.45", linewidth=1.0, linestyle=":")
        # Names take turns on the two sides of their lines, so that neighbours leave each other room.
        side = "right" if number % 2 == 0 else "left"
        ax.text(where, 0.97, f" {name} ", transform=top, ha=side, va="top", color="0.25", fontsize=9)
    if mle is not None:
        value = f"{mle:.3f}" if np.isfinite(mle) else "infinite"
        ax.annotate(
            f"MLE (alpha = 0): {value}",
            xy=(0.0, 0.06),
            xytext=(0.07, 0.06),
            xycoords="axes fraction",
            va="center",
            fontsize=9,
            color="0.25",
            arrowprops={"arrowstyle": "->", "color": "0.45"},
        )
    ax.set_xlabel("alpha, the pseudo-count of every word or level")
    ax.set_ylabel(ylabel)
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1.0, 0.92))
    return ax
