"""Which columns made one prediction, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from bayesgen.explain import Explanation, strongest
from bayesgen.plots._shared import check_prob, current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["explanation"]


def explanation(
    explanation: Explanation,
    ax: Axes | None = None,
    *,
    row: int = 0,
    label: Any = None,
    against: Any = None,
    n: int = 12,
    prob: float = 0.94,
    feature_names: Sequence[Any] | None = None,
) -> Axes:
    """The columns of one row that speak most for or against a class, with posterior intervals.

    A bar is what the column adds to the log odds of the class, in nats; the strongest is on top. One bar is the class
    probabilities, and one is all columns not shown, so that the bars add up to the log odds in the title.

    Parameters
    ----------
    explanation : Explanation
        What ``estimator.explain(X)`` returns.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    row : int, default=0
        Which row.
    label, against : class labels, optional
        See `Explanation.log_odds`; default: the predicted class against the rest.
    n : int, default=12
        How many columns to show.
    prob : float, default=0.94
        Posterior probability of the intervals (normal ones); routes without a posterior have none.
    feature_names : sequence, optional
        Column names of a model fitted on an array, such as ``CountVectorizer.get_feature_names_out()``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import MultinomialNB, plots
    >>> model = MultinomialNB().fit([[9, 1, 3], [1, 9, 3]], ["spam", "ham"])
    >>> ax = plots.explanation(model.explain([[2, 0, 1]]), feature_names=["free", "meeting", "the"])
    """
    check_prob(prob)
    found = explanation.log_odds(row, label, against)
    names = explanation.names(feature_names)
    every = strongest(found.contributions)
    at, rest = every[:n], every[n:]
    ax = current_axes() if ax is None else ax
    place = -np.arange(len(at), dtype=float)
    values = found.contributions[at]
    reach = None if found.sd is None else ndtri((1 + prob) / 2) * found.sd[at]
    ax.barh(place, values, xerr=reach, color=["C0" if v > 0 else "C1" for v in values], ecolor="0.25", capsize=2.0)
    ticks = [said(names[j], explanation.value(row, int(j))) for j in at]
    extra = [(f"{len(rest)} other columns", found.contributions[rest].sum())] if len(rest) else []
    for text, value in [*extra, ("class probabilities", found.prior)]:
        ax.barh(-float(len(ticks)), value, color="0.7")
        ticks.append(text)
    ax.set_yticks(-np.arange(len(ticks), dtype=float), ticks)
    ax.axvline(0.0, color="0.25", linewidth=0.8)
    ax.set_xlabel(f"what it adds to the {found.title} (nats)")
    ax.set_title(f"log odds of {found.label}: {found.total:+.2f}")
    return ax


def said(name: Any, value: Any) -> str:
    """A column with its value in the row."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{name} = {text}"
