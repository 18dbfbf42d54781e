"""What EM climbs, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plots._shared import current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["objective"]

UNDER = {"mle": "log likelihood (nats)"}


def objective(estimator: Any, ax: Axes | None = None, **style: Any) -> Axes:
    """The log posterior density after each step of EM (``log_posterior_trace_``), which never falls.

    Parameters
    ----------
    estimator : fitted estimator
        Fitted with ``unlabelled="em"`` on rows some of which have no label.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    **style
        Of the curve, for Matplotlib's ``plot``; such as ``label``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import GaussianNB, plots
    >>> X, y = [[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]], [0, 0, -1, 1, 1, -1]
    >>> model = GaussianNB(inference="mean", unlabelled="em").fit(X, y)
    >>> ax = plots.objective(model)
    """
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    trace = estimator.log_posterior_trace_
    ax = current_axes() if ax is None else ax
    style = {"marker": "o", "markersize": 3.5, "linewidth": 1.5, **style}
    ax.plot(np.arange(1, len(trace) + 1), trace, **style)
    ax.set_xlabel("step of EM")
    ax.set_ylabel(UNDER.get(estimator.inference, "log posterior density (nats)"))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain = ScalarFormatter(useOffset=False)
    plain.set_scientific(False)
    ax.yaxis.set_major_formatter(plain)
    if "label" in style:
        ax.legend(frameon=False, loc="lower right")
    return ax
