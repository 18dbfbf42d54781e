"""What the pictures share: axes, names, and the choice of numbers by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen._random import log_gamma_draws
from bayesgen.families._all import Bernoulli, Multinomial
from bayesgen.fit import DRAW_CELLS, MixedFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Chosen", "check_prob", "choose", "current_axes", "feature_labels", "one_family", "posterior_draws"]


def current_axes() -> Axes:
    """The Axes that pyplot would draw on."""
    # pyplot may start a window system; a caller who passes Axes does not need it.
    import matplotlib.pyplot as plt

    return plt.gca()


def check_prob(prob: Any) -> None:
    """Raise unless the probability of an interval is one."""
    if not isinstance(prob, (float, int, np.floating)) or not 0 < prob < 1:
        raise ValueError(f"prob must be a number between 0 and 1; got {prob!r}")


def one_family(estimator: Any, picture: str) -> Any:
    """The feature part of a fitted estimator, which must be of one family."""
    features = estimator._fit_value.features
    if isinstance(features, MixedFit):
        names = [name for name, _, _ in estimator.blocks_]
        raise ValueError(
            f"{picture} draws a model of one family; this one has the blocks {names}: pass the estimator of a block, "
            "blocks_[i][1]"
        )
    return features


def base_of(features: Any) -> Any:
    """The family of a feature part, with its shapes."""
    return features.base if hasattr(features, "base") else features.stated


def feature_labels(estimator: Any, feature_names: Sequence[Any] | None) -> list[Any]:
    """Names of the columns: those given, those of the data frame, or positions."""
    size = estimator._fit_value.features.stated.n_features
    if feature_names is not None:
        names = list(feature_names)
        if len(names) != size:
            raise ValueError(f"feature_names has {len(names)} names; the model has {size} columns")
        return names
    known = getattr(estimator, "feature_names_in_", None)
    return list(range(size)) if known is None else list(known)


def class_code(estimator: Any, argument: str, label: Any) -> int:
    """Position of a class label."""
    labels = estimator.classes_.tolist()
    if label not in labels:
        raise ValueError(f"{argument}={label!r} is not a class; the classes are {labels}")
    return labels.index(label)


# ------------------------------------------------------------------------------- numbers by label


@dataclass(frozen=True)
class Chosen:
    """Some of the numbers of a variable.

    Attributes
    ----------
    index : array (m,)
        Positions among the numbers of the variable, flattened.
    title : str
        The variable, with the coordinates that all of them share.
    labels : list of str
        The other coordinates of each.
    codes : list of int or None
        The class of each.
    """

    index: np.ndarray
    title: str
    labels: list[str]
    codes: list[int | None]


def axes_of(estimator: Any, name: str, shape: tuple[int, ...], feature_names: Any) -> list[tuple[str, list[Any]]]:
    """Name and labels of each axis of a variable, after those of draws."""
    fit = estimator._fit_value
    classes, columns = fit.classes.tolist(), feature_labels(estimator, feature_names)
    dims = ("class",) if name == "class_prob" else base_of(fit.features).dims().get(name)
    if dims is None:  # a hyperparameter: its axes are told by their sizes
        sizes = {len(classes): "class", len(columns): "feature"}
        sizes.update({len(classes): "class"} if name != "background" else {len(columns): "feature"})
        dims = tuple(sizes.get(n, f"{name}_dim_{i}") for i, n in enumerate(shape))
        dims = tuple("feature_bis" if d == "feature" and "feature" in dims[:i] else d for i, d in enumerate(dims))
    out = []
    for dim, size in zip(dims, shape, strict=True):
        labels: list[Any] = list(range(size))
        if dim == "class":
            labels = classes
        elif dim in ("feature", "feature_bis"):
            labels = columns
        elif dim.startswith("category_"):
            levels = estimator._state().columns.levels
            labels = labels if levels is None else np.asarray(levels[int(dim.removeprefix("category_"))]).tolist()
            dim = "category"
        out.append((dim, labels))
    return out


def choose(
    estimator: Any, name: str, shape: tuple[int, ...], coords: Mapping[str, Any] | None, feature_names: Any
) -> Chosen:
    """The numbers of a variable that `coords` keeps."""
    axes = axes_of(estimator, name, shape, feature_names)
    wanted = dict(coords or {})
    unknown = sorted(set(wanted) - {dim for dim, _ in axes})
    if unknown:
        raise ValueError(f"coords names {unknown[0]!r}; the axes of {name!r} are {[dim for dim, _ in axes]}")
    kept = [_positions(dim, labels, wanted[dim]) if dim in wanted else range(len(labels)) for dim, labels in axes]
    cells = list(np.ndindex(*map(len, kept)))
    places = [tuple(k[i] for k, i in zip(kept, cell, strict=True)) for cell in cells]
    names = [dim for dim, _ in axes]
    if "feature_bis" in names:  # a symmetric matrix, each entry once
        a, b = names.index("feature"), names.index("feature_bis")
        given = set(places)
        places = [p for p in places if p[a] <= p[b] or (*p[:a], p[b], p[a]) not in given]
    fixed = [len({p[i] for p in places}) == 1 for i in range(len(axes))]

    def say(place: tuple[int, ...], which: bool) -> str:
        parts = [str(labels[i]) for (_, labels), i, f in zip(axes, place, fixed, strict=True) if f is which]
        return ", ".join(parts)

    title = variable_label(estimator, name, feature_names)
    if any(fixed) and places:
        title += f" [{say(places[0], True)}]"
    codes = [p[names.index("class")] if "class" in names else None for p in places]
    index = np.array([np.ravel_multi_index(p, shape) if p else 0 for p in places], dtype=np.int64)
    return Chosen(index, title, [say(p, False) for p in places], codes)


def variable_label(estimator: Any, name: str, feature_names: Any) -> str:
    """The variable's name; for levels of a categorical column with the column's name."""
    stem, _, j = name.rpartition("_")
    if stem == "feature_prob" and j.isdigit():
        return f"feature_prob of {feature_labels(estimator, feature_names)[int(j)]}"
    return name


def _positions(dim: str, labels: list[Any], wanted: Any) -> list[int]:
    out = []
    for label in [wanted] if isinstance(wanted, str) or not np.iterable(wanted) else wanted:
        if label not in labels:
            shown = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
            raise ValueError(f"coords[{dim!r}] names {label!r}; there are {shown}")
        out.append(labels.index(label))
    if not out:
        raise ValueError(f"coords[{dim!r}] is empty")
    return out


# ------------------------------------------------------------------------------- draws by name


def sites_of(estimator: Any) -> dict[str, np.ndarray]:
    """Draws of a sampled route, (chains, draws, ...), by site; without the sampler's own coordinates."""
    fit = estimator._fit_value
    sites = dict(fit.features.draws.sites) if hasattr(fit.features, "draws") else {}
    if fit.sampled_classes is not None:
        sites.update(fit.sampled_classes.draws.sites)
    return {name: v for name, v in sites.items() if not name.startswith("chart_")}


def variable_shapes(estimator: Any) -> dict[str, tuple[int, ...]]:
    """Shapes of all the variables that have draws, by name."""
    fit = estimator._fit_value
    base = base_of(fit.features)
    one = base.variables(fit.features.params)
    shapes = {name: np.shape(v) for name, v in one.items()}
    shapes["class_prob"] = (len(fit.classes),)
    return shapes | {name: v.shape[2:] for name, v in sites_of(estimator).items()}


def check_name(name: str, known: Any) -> None:
    """Raise unless a variable is known."""
    if name not in known:
        raise ValueError(f"var_name={name!r} is not a variable of this model; there are {sorted(known)}")


def posterior_draws(estimator: Any, name: str, index: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draws (S, m) of some numbers of a variable: all there are where they are stored, else n_draws new ones."""
    fit = estimator._fit_value
    sites = sites_of(estimator)
    if name in sites:
        return sites[name].reshape(-1, int(np.prod(sites[name].shape[2:], dtype=int)))[:, index]
    if name == "class_prob":
        return np.exp(fit.draw_log_class(rng, n_draws))[:, index]
    features = fit.features
    if not hasattr(features, "draws"):
        return family_draws(features.posterior, features.posterior.draw, name, index, n_draws, rng)
    return family_draws(features.base, features.posterior_params, name, index, n_draws, rng)


def family_draws(
    family: Any, draw: Any, name: str, index: np.ndarray, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Some numbers of a family's variable, (n_draws, m), each right by itself; draw(rng, n) gives all parameters."""
    if draw == family.draw and isinstance(family, (Bernoulli, Multinomial)):
        # Beta distributions: some of many words, without drawing them all.
        if isinstance(family, Bernoulli):
            a, b = (v.ravel()[index] for v in family.concentrations())
        else:
            alpha = family.concentration()
            a, total = alpha.ravel()[index], alpha.sum(axis=1)[index // family.n_features]
            b = np.maximum(total - a, 0.0)
        one, rest = (log_gamma_draws(rng, v, (n_draws, len(index))) for v in (a, b))
        return np.exp(one - np.logaddexp(one, rest))
    size = sum(int(np.prod(np.shape(v), dtype=int)) for v in family.variables(family.mean()).values())
    step = max(1, DRAW_CELLS // max(1, size))
    sizes = [min(step, n_draws - i) for i in range(0, n_draws, step)]
    return np.concatenate([family.variables(draw(rng, n))[name].reshape(n, -1)[:, index] for n in sizes])
