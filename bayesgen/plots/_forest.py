"""The columns that tell a class from the others, with posterior intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import digamma, ndtri, polygamma

from bayesgen._random import generator, log_gamma_draws
from bayesgen.families._all import Bernoulli, Categorical, Multinomial, Poisson
from bayesgen.fit import DRAW_CELLS
from bayesgen.plots._shared import base_of, check_prob, class_code, current_axes, feature_labels, one_family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["forest"]

FIRST_LOOK = 200  # draws by which the columns of a sampled route are ranked


def forest(
    estimator: Any,
    ax: Axes | None = None,
    *,
    n_words: int = 20,
    label: Any = None,
    against: Any = None,
    prob: float = 0.94,
    n_draws: int = 2000,
    feature_names: Sequence[Any] | None = None,
    random_state: Any = None,
) -> Axes:
    r"""The most telling words (columns, levels) of a class, each with its posterior interval.

    The number shown is the weight of the column in the log odds of class a,

    .. math:: w_{aj} - w_{bj}, \qquad\text{or}\qquad w_{aj} - \tfrac{1}{K-1}\sum_{k \ne a} w_{kj}

    against the rest, with :math:`w_{kj}` that of `to_logistic`: the log probability of a word or level, the log odds
    of a presence, the log rate of a count, and for normal columns :math:`\Sigma^{-1}\mu_k` times the within-class
    standard deviation. To the right speaks for a.

    Parameters
    ----------
    estimator : fitted classifier of this library
        With log odds linear in (encoded) x, and a posterior.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    n_words : int, default=20
        How many to show: those whose weights are surely far from zero. They are ranked by the end nearest zero of
        the interval mean ± z standard deviations, so that a word seen once does not lead the list.
    label : class label, optional
        Class a. Needed with more than two classes; the second of two.
    against : class label, optional
        Class b; None: the rest, by the geometric mean of its probabilities.
    prob : float, default=0.94
        Probability of the equal-tailed intervals.
    n_draws : int, default=2000
        Draws for the intervals.
    feature_names : sequence, optional
        Column names of a model fitted on an array, such as ``CountVectorizer.get_feature_names_out()``.
    random_state : int, Generator, RandomState or None
        None: the estimator's own.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Of Bernoulli, multinomial, categorical and Poisson models with a conjugate posterior, means and ranks are in closed
    form (digamma, trigamma), and intervals come from independent draws of the shown cells alone.

    Examples
    --------
    >>> from bayesgen import MultinomialNB, plots
    >>> model = MultinomialNB(random_state=0).fit([[9, 1, 3], [1, 9, 3]], ["spam", "ham"])
    >>> ax = plots.forest(model, n_words=2, feature_names=["free", "meeting", "the"])
    >>> sorted(text.get_text() for text in ax.get_yticklabels())
    ['free', 'meeting']
    """
    check_prob(prob)
    if isinstance(n_words, bool) or not isinstance(n_words, (int, np.integer)) or n_words < 1:
        raise ValueError(f"n_words must be a whole number, at least 1; got {n_words!r}")
    features = one_family(estimator, "forest")
    contrast, first, second, title = _contrast(estimator, label, against)
    estimator._fit_value.check_posterior()
    names = _weight_names(estimator, feature_labels(estimator, feature_names))
    seed = int(generator(estimator.random_state if random_state is None else random_state).integers(0, 2**63))
    cells = None if hasattr(features, "draws") else closed_cells(features.posterior)
    if cells is None:
        mean, sd = _moments(_weight_draws(features, contrast, seed, min(n_draws, FIRST_LOOK)))
    else:
        mean, sd = contrast @ cells.mean(), np.sqrt(contrast**2 @ cells.variance())
    certain = np.abs(mean) - ndtri((1 + prob) / 2) * sd
    shown = np.argsort(-certain, kind="stable")[:n_words]
    if cells is None:
        draws = np.concatenate([part[:, shown] for part in _weight_draws(features, contrast, seed, n_draws)])
        centre = draws.mean(axis=0)
    else:
        draws = np.einsum("k,skj->sj", contrast, cells.draw(np.random.default_rng(seed), n_draws, shown))
        centre = mean[shown]
    ends = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
    order = np.argsort(centre, kind="stable")
    ax = current_axes() if ax is None else ax
    _draw_forest(ax, centre[order], ends[:, order], [names[j] for j in shown[order]], first, second)
    ax.set_xlabel(title)
    return ax


def _contrast(estimator: Any, label: Any, against: Any) -> tuple[np.ndarray, str, str, str]:
    """Weights (K,) of the classes in the log odds, the two colours, and the name of the axis."""
    classes = estimator.classes_.tolist()
    if len(classes) < 2:
        raise ValueError("forest compares classes, and the model has one")
    if label is None:
        if len(classes) > 2:
            raise ValueError(f"label= says which class to tell from the others; the classes are {classes}")
        label = classes[1] if against != classes[1] or against is None else classes[0]
    a = class_code(estimator, "label", label)
    contrast = np.zeros(len(classes))
    if against is None and len(classes) == 2:
        against = classes[1 - a]
    if against is None:
        contrast[:] = -1.0 / (len(classes) - 1)
        second, other = "0.45", "the rest"
    else:
        b = class_code(estimator, "against", against)
        if a == b:
            raise ValueError(f"label and against are both {label!r}: they must be two classes")
        contrast[b] = -1.0
        second, other = f"C{b % 10}", str(against)
    contrast[a] = 1.0
    unit = _unit(base_of(estimator._fit_value.features))
    return contrast, f"C{a % 10}", second, f"log odds of {label} against {other}, {unit}"


def _unit(base: Any) -> str:
    if isinstance(base, Bernoulli):
        return "present against absent"
    if isinstance(base, Categorical):
        return "for the level"
    if isinstance(base, (Multinomial, Poisson)):
        return "for each count"
    return "for each standard deviation" if _has_scale(base) else "for each unit"


def _has_scale(base: Any) -> bool:
    return not {"variance", "covariance"}.isdisjoint(base.dims())


def _weight_names(estimator: Any, names: list[Any]) -> list[str]:
    base = base_of(estimator._fit_value.features)
    if not isinstance(base, Categorical):
        return [f"column {n}" if isinstance(n, int) else str(n) for n in names]
    levels = estimator._state().columns.levels or [range(s) for s in base.n_levels]
    return [f"{name} = {level}" for name, known in zip(names, levels, strict=True) for level in known]


# ------------------------------------------------------------------------------- closed forms


class Cells(NamedTuple):
    r"""Weights as functions of independent gamma variables :math:`g \sim \mathrm{Gamma}(a, 1)`.

    A Dirichlet cell is ln g - ln(g + r) with the rest r ~ Gamma(b, 1); log odds of presence are ln g - ln r; a log
    rate is ln g - ln b.
    """

    a: np.ndarray
    b: np.ndarray
    kind: str

    def mean(self) -> np.ndarray:
        """Posterior means, (K, p)."""
        if self.kind == "rate":
            return digamma(self.a) - np.log(self.b)
        return digamma(self.a) - digamma(self.b if self.kind == "odds" else self.a + self.b)

    def variance(self) -> np.ndarray:
        """Posterior variances, (K, p)."""
        one = polygamma(1, self.a)
        if self.kind == "rate":
            return one
        return one + polygamma(1, self.b) if self.kind == "odds" else one - polygamma(1, self.a + self.b)

    def draw(self, rng: np.random.Generator, n: int, columns: np.ndarray) -> np.ndarray:
        """Draws of some columns, each right by itself, (n, K, m)."""
        a, b = self.a[:, columns], self.b[:, columns]
        g = log_gamma_draws(rng, a, (n, *a.shape))
        if self.kind == "rate":
            return g - np.log(b)
        r = log_gamma_draws(rng, b, (n, *b.shape))
        return g - (r if self.kind == "odds" else np.logaddexp(g, r))


def closed_cells(posterior: Any) -> Cells | None:
    """The weights of a conjugate posterior of counts or levels; None for others."""
    if isinstance(posterior, Bernoulli):
        return Cells(*posterior.concentrations(), "odds")
    if isinstance(posterior, Poisson):
        return Cells(*posterior.hyper(), "rate")
    if isinstance(posterior, Multinomial):
        alpha = posterior.concentration()
        return Cells(alpha, alpha.sum(axis=1, keepdims=True) - alpha, "share")
    if isinstance(posterior, Categorical):
        alpha = posterior.concentration()
        return Cells(alpha, posterior.by_column(alpha)[:, posterior.column_of] - alpha, "share")
    return None


# ------------------------------------------------------------------------------- draws


def _weight_draws(features: Any, contrast: np.ndarray, seed: int, n: int) -> Iterator[np.ndarray]:
    """Draws of the contrast of the weights of all columns, in pieces (s, p); the same for the same seed."""
    base, rng = base_of(features), np.random.default_rng(seed)
    step = max(1, DRAW_CELLS // max(1, base.n_classes * base.n_features))
    scale = _column_scale(base, features.params)
    for i in range(0, n, step):
        params = features.posterior_params(rng, min(step, n - i))
        each = (type(params)(*(p[s] for p in params)) for s in range(len(params[0])))
        yield scale * np.stack([contrast @ base.logistic(one)[0] for one in each])


def _column_scale(base: Any, params: Any) -> Any:
    """Pooled within-class standard deviations of normal columns; 1 for others."""
    if not _has_scale(base):
        return 1.0
    values = base.variables(params)
    variance = np.diagonal(values["covariance"], axis1=-2, axis2=-1) if "covariance" in values else values["variance"]
    return np.sqrt(np.atleast_2d(variance).mean(axis=0))


def _moments(pieces: Iterator[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over pieces of draws."""
    parts = [(len(part), part.sum(axis=0), (part**2).sum(axis=0)) for part in pieces]
    count = sum(part[0] for part in parts)
    mean, square = (np.sum([part[i] for part in parts], axis=0) / count for i in (1, 2))
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _draw_forest(ax: Axes, centre: np.ndarray, ends: np.ndarray, names: list[str], first: str, second: str) -> None:
    height = np.arange(len(centre))
    colours = [first if c > 0 else second for c in centre]
    ax.axvline(0.0, color="0.6", linewidth=1.0, zorder=0)
    ax.hlines(height, ends[0], ends[1], colors=colours, linewidth=2.0)
    ax.scatter(centre, height, color=colours, s=26, zorder=3)
    ax.set_yticks(height, names)
    ax.set_ylim(-0.8, len(centre) - 0.2)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
