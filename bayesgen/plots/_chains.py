"""Pictures of Markov chains, which show whether they have mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from bayesgen.exceptions import UndefinedNumberError
from bayesgen.plots._shared import check_name, choose, current_axes, one_family, sites_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["rank", "trace"]


def trace(
    estimator: Any,
    var_name: str | None = None,
    ax: Axes | None = None,
    *,
    coords: Mapping[str, Any] | None = None,
    feature_names: Sequence[Any] | None = None,
) -> Axes:
    """The draws of one number in the order they were made, one line for each chain.

    Lines that lie on one another, without trend, are what it should look like. Divergent draws have a mark below.
    The key has R-hat and the effective sample size.

    Parameters
    ----------
    estimator : fitted classifier of this library
        With ``inference="nuts"``.
    var_name : str, optional
        A parameter or hyperparameter that was sampled; None: any.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    coords : dict, optional
        Labels to keep along the axes, as in `posterior`. If several numbers are left, the one with the largest R-hat is
        shown, the worst.
    feature_names : sequence, optional
        Column names of a model fitted on an array.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import GaussianNB, plots
    >>> model = GaussianNB(inference="nuts").fit([[1.0], [1.4], [5.2], [6.0]], [0, 0, 1, 1])  # doctest: +SKIP
    >>> ax = plots.trace(model, "mean", coords={"class": 1})  # doctest: +SKIP
    """
    number = _one_number(estimator, var_name, coords, feature_names)
    ax = current_axes() if ax is None else ax
    for chain, values in enumerate(number.draws):
        ax.plot(values, linewidth=0.7, color=f"C{chain % 10}", alpha=0.85, label=f"chain {chain}")
    diverging = np.flatnonzero(number.diverging.any(axis=0))
    if diverging.size:
        ax.plot(
            diverging,
            np.full(len(diverging), 0.02),
            "|",
            color="black",
            markersize=8,
            transform=ax.get_xaxis_transform(),
            label="divergent",
        )
    ax.set_xlim(0, number.draws.shape[1] - 1)
    ax.set_xlabel("draw")
    ax.set_ylabel(number.title)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, title=number.quality, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def rank(
    estimator: Any,
    var_name: str | None = None,
    ax: Axes | None = None,
    *,
    coords: Mapping[str, Any] | None = None,
    n_bins: int = 20,
    feature_names: Sequence[Any] | None = None,
) -> Axes:
    """Ranks of the draws of one number among those of all chains, a histogram for each chain.

    The bars are flat, near their dashed line, if the chains draw from one distribution.

    Parameters
    ----------
    estimator, var_name, ax, coords
        As in `trace`.
    n_bins : int, default=20
        Bars of each histogram.
    feature_names
        As in `trace`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import GaussianNB, plots
    >>> model = GaussianNB(inference="nuts").fit([[1.0], [1.4], [5.2], [6.0]], [0, 0, 1, 1])  # doctest: +SKIP
    >>> ax = plots.rank(model, "mean", coords={"class": 1})  # doctest: +SKIP

    References
    ----------
    Vehtari et al. 2021, *Rank-normalization, folding, and localization: an improved R-hat*.
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 2:
        raise ValueError(f"n_bins must be a whole number, at least 2; got {n_bins!r}")
    number = _one_number(estimator, var_name, coords, feature_names)
    ax = current_axes() if ax is None else ax
    chains, n = number.draws.shape
    ranks = rankdata(number.draws).reshape(chains, n)
    edges = np.linspace(0.5, chains * n + 0.5, n_bins + 1)
    for chain in range(chains):
        # The expected height of a bar is 0.6 of the room between the baselines of two chains.
        height = 0.6 * np.histogram(ranks[chain], edges)[0] / (n / n_bins)
        ax.bar(edges[:-1], height, np.diff(edges), bottom=chain, align="edge", color=f"C{chain % 10}", alpha=0.75)
        ax.axhline(chain + 0.6, color="0.25", linewidth=0.9, linestyle="--")
        ax.axhline(chain, color="0.25", linewidth=0.6)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_yticks(np.arange(chains), [f"chain {c}" for c in range(chains)], va="bottom")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"rank of {number.title} among all draws")
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


class _Number:
    """The chains of one number: draws (chains, n), divergences, its name, and how well it mixed."""

    def __init__(self, draws: np.ndarray, diverging: np.ndarray, title: str) -> None:
        from numpyro.diagnostics import effective_sample_size

        self.draws, self.diverging, self.title = draws, diverging, title
        self.quality = f"R-hat {r_hat(draws):.3f}\nESS {float(effective_sample_size(draws)):.0f}"


def r_hat(draws: np.ndarray) -> float:
    """Split R-hat of chains (chains, n); -inf for a number that does not move."""
    from numpyro.diagnostics import split_gelman_rubin

    return float(split_gelman_rubin(draws)) if np.ptp(draws) > 0 else -np.inf


def _one_number(estimator: Any, var_name: str | None, coords: Any, feature_names: Any) -> _Number:
    one_family(estimator, "trace and rank")
    fit = estimator._fit_value
    sites = sites_of(estimator)
    found: list[Any] = [getattr(fit.features, "draws", None), getattr(fit.sampled_classes, "draws", None)]
    runs = [run for run in found if run is not None and run.stats]
    sites = {name: v for name, v in sites.items() if any(name in run.sites for run in runs)}
    if not sites:
        raise UndefinedNumberError(
            f"inference={estimator.inference!r} has independent draws, or none, and no chains to look at: trace and "
            "rank are for inference='nuts'"
        )
    if var_name is not None:
        check_name(var_name, sites)
        sites = {var_name: sites[var_name]}
    elif coords is not None:
        raise ValueError("coords chooses among the numbers of one variable: pass var_name too")
    worst: tuple[float, Any] = (-np.inf, None)
    for name, values in sites.items():
        chosen = choose(estimator, name, values.shape[2:], coords, feature_names)
        flat = values.reshape(*values.shape[:2], -1)
        for index, label in zip(chosen.index, chosen.labels, strict=True):
            draws = flat[..., index]
            here = r_hat(draws)
            if worst[1] is None or here > worst[0]:
                run = next(run for run in runs if name in run.sites)
                worst = here, (draws, run.stats["diverging"], _title(chosen.title, label))
    return _Number(*worst[1])


def _title(title: str, label: str) -> str:
    """The name of a number, with all its coordinates in one bracket."""
    if not label:
        return title
    return f"{title[:-1]}, {label}]" if title.endswith("]") else f"{title} [{label}]"
