"""Posterior densities of parameters, alone or against the prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen._random import generator
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.importance import latent_sites
from bayesgen.plots._shared import (
    Chosen,
    check_name,
    check_prob,
    choose,
    current_axes,
    family_draws,
    one_family,
    posterior_draws,
    variable_shapes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["posterior", "prior_posterior"]

MOST_CURVES = 12
LINES = ("-", "--", ":", "-.")
RESOLUTION = 400


def posterior(
    estimator: Any,
    var_name: str,
    ax: Axes | None = None,
    *,
    coords: Mapping[str, Any] | None = None,
    prob: float = 0.94,
    n_draws: int = 4000,
    feature_names: Sequence[Any] | None = None,
    random_state: Any = None,
) -> Axes:
    """Posterior density of each of some parameters, with its mean (dot) and interval (shaded).

    Densities are kernel estimates from draws; of variances and rates in their logarithm, of probabilities in their
    log odds.

    Parameters
    ----------
    estimator : fitted classifier of this library
        Of any route that has a posterior. A sampled route shows the draws it has made.
    var_name : str
        Such as ``"class_prob"``, ``"feature_prob"``, ``"mean"``, ``"variance"``, ``"covariance"``, ``"rate"``, or a
        hyperparameter of a sampled route (``"alpha"``).
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    coords : dict, optional
        Labels to keep along the axes ``class``, ``feature``, ``feature_bis``, ``category``; columns without names
        are 0, 1, ... At most 12 numbers must be left.
    prob : float, default=0.94
        Probability of the equal-tailed interval.
    n_draws : int, default=4000
        Independent draws, for routes that have not made any.
    feature_names : sequence, optional
        Column names (words) of a model fitted on an array.
    random_state : int, Generator, RandomState or None
        None: the estimator's own.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import MultinomialNB, plots
    >>> model = MultinomialNB(random_state=0).fit([[5, 1], [4, 2], [1, 3]], ["a", "a", "b"])
    >>> ax = plots.posterior(model, "feature_prob", coords={"feature": 0})
    >>> ax.get_xlabel()
    'feature_prob [0]'

    References
    ----------
    Silverman 1986, *Density estimation*, sections 2.10 and 3.4.
    """
    check_prob(prob)
    chosen, draws = _chosen_draws(estimator, var_name, coords, n_draws, feature_names, random_state)
    ax = current_axes() if ax is None else ax
    low, high = _range(draws)
    bounds = _bounds(var_name, draws)
    grid = _grid(low, high, bounds)
    for label, style, values in zip(chosen.labels, _styles(chosen), draws.T, strict=True):
        _draw_density(ax, grid, values, bounds, label, style, prob)
    return _finish(ax, chosen, draws.shape[1])


def prior_posterior(
    estimator: Any,
    var_name: str,
    ax: Axes | None = None,
    *,
    coords: Mapping[str, Any] | None = None,
    prob: float = 0.94,
    n_draws: int = 4000,
    feature_names: Sequence[Any] | None = None,
    random_state: Any = None,
) -> Axes:
    """What the data have taught: the prior density (dashed) of some parameters against the posterior (filled).

    The prior is that of the fit, with its hyperparameters resolved. The horizontal axis shows the posterior, and as
    much of the prior as leaves it room.

    Parameters
    ----------
    estimator, var_name, ax, coords, prob, n_draws, feature_names, random_state
        As in `posterior`. The prior must be proper.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import PoissonNB, plots
    >>> model = PoissonNB(random_state=0).fit([[5], [4], [1], [0]], ["a", "a", "b", "b"])
    >>> ax = plots.prior_posterior(model, "rate")
    >>> [text.get_text() for text in ax.get_legend().get_texts()][-1]
    'prior'
    """
    check_prob(prob)
    chosen, draws = _chosen_draws(estimator, var_name, coords, n_draws, feature_names, random_state)
    before = _prior_draws(estimator, var_name, chosen.index, n_draws, random_state)
    ax = current_axes() if ax is None else ax
    low, high = _range(draws)
    room = 4.0 * (high - low)
    prior_low, prior_high = np.quantile(before, [0.02, 0.98])
    low, high = min(low, max(prior_low, low - room)), max(high, min(prior_high, high + room))
    bounds = _bounds(var_name, np.concatenate([draws, before]))
    grid = _grid(low, high, bounds)
    styles = _styles(chosen)
    for label, style, values in zip(chosen.labels, styles, draws.T, strict=True):
        _draw_density(ax, grid, values, bounds, label, style, prob)
    for style, values in zip(styles, before.T, strict=True):
        colour = style["color"] if len(styles) > 1 else "0.35"
        ax.plot(grid, density(grid, values, bounds), color=colour, linestyle=(0, (4, 2)), linewidth=1.3)
    ax.plot([], [], color="0.35", linestyle=(0, (4, 2)), linewidth=1.3, label="prior")
    return _finish(ax, chosen, draws.shape[1] + 1)


# ------------------------------------------------------------------------------- draws


def _chosen_draws(
    estimator: Any, name: str, coords: Any, n_draws: int, feature_names: Any, random_state: Any
) -> tuple[Chosen, np.ndarray]:
    one_family(estimator, "posterior")
    fit = estimator._fit_value
    fit.check_posterior()
    shapes = variable_shapes(estimator)
    check_name(name, shapes)
    chosen = choose(estimator, name, shapes[name], coords, feature_names)
    if len(chosen.index) > MOST_CURVES:
        raise ValueError(
            f"{name!r} has {len(chosen.index)} numbers here, more than the {MOST_CURVES} that one picture holds: "
            "choose some with coords, such as coords={'feature': ...}"
        )
    rng = generator(estimator.random_state if random_state is None else random_state)
    draws = posterior_draws(estimator, name, chosen.index, n_draws, rng)
    if not (np.ptp(draws, axis=0) > 0).all():
        raise ValueError(f"{name!r} is known here, not learned: it has no density")
    return chosen, draws


def _prior_draws(estimator: Any, name: str, index: np.ndarray, n_draws: int, random_state: Any) -> np.ndarray:
    """Draws (n_draws, m) of some numbers of a variable from the prior."""
    fit = estimator._fit_value
    features, class_prior = fit.features, fit.class_prior
    rng = generator(estimator.random_state if random_state is None else random_state)
    if name == "class_prob":
        if class_prior.function is not None:
            return _program_draws(class_prior.sample, rng, n_draws, name, index)
        if not (class_prior.concentration() > 0).all():
            raise UndefinedNumberError("the prior of the class probabilities is improper: class_alpha is 0")
        return np.exp(class_prior.draw(rng, n_draws))[:, index]
    if getattr(features, "own", None) is not None:
        return _own_prior_draws(features, rng, n_draws, name, index)
    everyone = np.ones(len(fit.classes), dtype=bool)
    problem = features.prior.improper(everyone, strict=True)
    if problem is not None:
        names = getattr(estimator, "feature_names_in_", None)
        raise UndefinedNumberError(f"an improper prior has no density to draw: {fit.explain(problem, names)}")
    return family_draws(features.prior, features.prior.draw, name, index, n_draws, rng)


def _own_prior_draws(features: Any, rng: np.random.Generator, n: int, name: str, index: np.ndarray) -> np.ndarray:
    own, base = features.own_prior, features.base
    hyper, given = latent_sites(own, base)
    if given is None or name not in base.dims():
        return _program_draws(features.prior.prior, rng, n, name, index)
    # Parameters that are conjugate given hyperparameters are drawn in milliseconds, without compiling.
    values = _program(lambda: own.sites(base), rng, n, list(hyper))
    out = np.empty((n, len(index)))
    for s in range(n):
        one = own.given(base, {site: v[s] for site, v in values.items()})
        out[s] = family_draws(one, one.draw, name, index, 1, rng)[0]
    return out


def _program_draws(program: Any, rng: np.random.Generator, n: int, name: str, index: np.ndarray) -> np.ndarray:
    return _program(program, rng, n, [name])[name].reshape(n, -1)[:, index]


def _program(program: Any, rng: np.random.Generator, n: int, sites: list[str]) -> dict[str, np.ndarray]:
    """Draws (n, ...) of sites of a NumPyro program."""
    import jax
    from numpyro.infer import Predictive

    with jax.enable_x64(True):
        key = jax.random.key(int(rng.integers(0, 2**63)))
        out = Predictive(program, num_samples=n, return_sites=sites, parallel=True)(key)
    return {name: np.asarray(v) for name, v in out.items()}


# ------------------------------------------------------------------------------- densities


def density(grid: np.ndarray, values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Gaussian kernel estimate of the density of draws on a grid inside the bounds, made where there are none.

    Positive numbers are smoothed in their logarithm and probabilities in their log odds, so that nothing leaks out
    and a peak at an end keeps its shape.
    """
    (u, slope), (points, _) = (_unbounded(v, bounds) for v in (grid, values))
    spread = min(points.std(), np.subtract(*np.quantile(points, [0.75, 0.25])) / 1.34) or points.std()
    width = 0.9 * spread * len(points) ** -0.2
    z = (u[:, None] - points) / width
    return np.exp(-0.5 * z * z).sum(axis=1) * slope / (np.sqrt(2.0 * np.pi) * width * len(points))


def _unbounded(values: np.ndarray, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates without bounds, and their derivative."""
    if bounds == (0.0, 1.0):
        p = np.clip(values, 1e-300, 1.0 - 1e-16)
        return np.log(p) - np.log1p(-p), 1.0 / (p * (1.0 - p))
    if bounds[0] == 0.0:
        p = np.maximum(values, 1e-300)
        return np.log(p), 1.0 / p
    return values, np.ones(len(values))


def _bounds(name: str, draws: np.ndarray) -> tuple[float, float]:
    """Where a parameter ends, by its name; a number of the user's own is positive if every draw is."""
    if name.startswith(("feature_prob", "class_prob")):
        return 0.0, 1.0
    return (-np.inf if name == "mean" or (draws <= 0).any() else 0.0), np.inf


def _range(draws: np.ndarray) -> tuple[float, float]:
    """Where the bulk of the draws lies, with a margin."""
    low, high = np.quantile(draws, 0.002, axis=0).min(), np.quantile(draws, 0.998, axis=0).max()
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _grid(low: float, high: float, bounds: tuple[float, float]) -> np.ndarray:
    step = (high - low) / RESOLUTION
    return np.linspace(max(low, bounds[0] + step), min(high, bounds[1] - step), RESOLUTION)


def _styles(chosen: Chosen) -> list[dict[str, Any]]:
    """One colour for each class, and line styles for what else differs; without classes, colours."""
    count: dict[int | None, int] = {}
    out = []
    for number, code in enumerate(chosen.codes):
        seen = count.get(code, 0)
        count[code] = seen + 1
        colour = f"C{(number if code is None else code) % 10}"
        out.append({"color": colour, "linestyle": "-" if code is None else LINES[seen % len(LINES)]})
    return out


def _draw_density(
    ax: Axes, grid: np.ndarray, values: np.ndarray, bounds: Any, label: str, style: dict[str, Any], prob: float
) -> None:
    curve = density(grid, values, bounds)
    lower, upper = np.quantile(values, [(1 - prob) / 2, (1 + prob) / 2])
    mean = values.mean()
    # Where intervals of several curves meet, light fills stay readable.
    edges = np.concatenate([[lower], grid[(grid > lower) & (grid < upper)], [upper]])
    ax.fill_between(edges, np.interp(edges, grid, curve), alpha=0.2, color=style["color"], linewidth=0)
    text = f"{_short(mean)} [{_short(lower)}, {_short(upper)}]"
    ax.plot(grid, curve, linewidth=1.8, label=f"{label}: {text}" if label else text, **style)
    ax.plot([mean], [np.interp(mean, grid, curve)], "o", color=style["color"], markersize=5)


def _short(value: float) -> str:
    return f"{value:.3g}"


def _finish(ax: Axes, chosen: Chosen, n_curves: int) -> Axes:
    ax.set_xlabel(chosen.title)
    ax.set_ylabel("density")
    # Room for the key above the curves, a line each.
    top = max(float(np.max(line.get_ydata(), initial=0.0)) for line in ax.get_lines())
    ax.set_ylim(0.0, (1.0 + 0.08 * (n_curves + 1)) * top)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    return ax
