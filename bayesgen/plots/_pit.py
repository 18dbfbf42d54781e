"""Probability integral transforms of leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from bayesgen._random import generator
from bayesgen.estimators import _labels
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families._all import Bernoulli, Multinomial, Poisson
from bayesgen.families.base import dense
from bayesgen.families.diagonal import Diagonal
from bayesgen.families.multivariate import Multivariate
from bayesgen.plots._calibration import loo_proba
from bayesgen.plots._predictive_check import _column
from bayesgen.plots._shared import check_prob, current_axes, feature_labels, one_family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pit"]

DRAWN_VALUES = 1_000_000  # behind the band of values that are not continuous
MOST_CELLS = 50_000_000  # of a table of distribution functions


def pit(
    estimator: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    column: Any = None,
    n_bins: int = 10,
    prob: float = 0.94,
    feature_names: Sequence[Any] | None = None,
    random_state: Any = None,
) -> Axes:
    r"""Where each value falls in its leave-one-out predictive distribution: uniform if the model is right.

    The histogram is of :math:`F(v_i \mid \text{all rows but } i)`. For a column, F is the predictive distribution
    of its value given the class of the row (and, for word counts, the length of the document): a hump in the
    middle says that predictions are too wide, a U too narrow, a slope biased. Without a column, v is the
    class label, in the order of ``classes_``, and F is p(y | x). Values that are not continuous have an interval
    :math:`[F(v-1), F(v)]`, over which their unit of mass is spread evenly (Czado, Gneiting and Held 2009): no random
    numbers are needed.

    Parameters
    ----------
    estimator : fitted classifier of this library
        With a conjugate prior, whose leave-one-out is exact.
    X, y : as in ``fit``
        The rows that were learned (without weights), or some of them.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    column : name or position, optional
        A normal, Poisson, Bernoulli or multinomial column; None: the class label.
    n_bins : int, default=10
    prob : float, default=0.94
        Probability of the band that each bar has if the predictions are right, taken as independent. For values that
        are not continuous it is narrower, and comes from values drawn from the predictions.
    feature_names : sequence, optional
        Column names of a model fitted on an array.
    random_state : int, Generator, RandomState or None
        None: the estimator's own.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen import PoissonNB, plots
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.poisson(2.0 + y)[:, None]
    >>> ax = plots.pit(PoissonNB().fit(X, y), X, y, column=0)
    >>> ax.get_xlabel()
    'leave-one-out PIT of column 0'

    References
    ----------
    Czado, Gneiting and Held 2009, *Predictive model assessment for count data*; Gneiting, Balabdaoui and Raftery 2007,
    *Probabilistic forecasts, calibration and sharpness*.
    """
    check_prob(prob)
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 2:
        raise ValueError(f"n_bins must be a whole number, at least 2; got {n_bins!r}")
    codes = _labels.encode_labels(_labels.check_labels(y), estimator.classes_)
    if column is None:
        name, proba = "the class", loo_proba(estimator, X, y)
        law: StudentT | Table = Table(codes, np.cumsum(proba, axis=1))
    else:
        features = one_family(estimator, "pit of a column")
        j = _column(estimator, column, feature_names)
        known = feature_labels(estimator, feature_names)[j]
        name = f"column {known}" if isinstance(known, int) else str(known)
        law = column_law(features.posterior, estimator._rows(X), codes, j)
    lower, upper = law.interval()
    exists = np.isfinite(upper)
    n = int(exists.sum())
    if not n:
        raise UndefinedNumberError(f"no row has a leave-one-out prediction of {name}")
    share, tails = spread_mass(lower[exists], upper[exists], n_bins), [(1 - prob) / 2, (1 + prob) / 2]
    if isinstance(law, StudentT):
        band = np.repeat(stats.binom.ppf(tails, n, 1.0 / n_bins)[:, None] / n, n_bins, axis=1)
    else:
        rng = generator(estimator.random_state if random_state is None else random_state)
        times = int(np.clip(DRAWN_VALUES // n, 40, 400))
        band = np.quantile([spread_mass(*law.drawn(rng, exists), n_bins) for _ in range(times)], tails, axis=0)
    ax = current_axes() if ax is None else ax
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    ax.bar(edges[:-1], share * n_bins, np.diff(edges), align="edge", color="C0", alpha=0.65, edgecolor="white")
    ax.stairs(
        band[1] * n_bins,
        edges,
        baseline=band[0] * n_bins,
        fill=True,
        color="0.3",
        alpha=0.25,
        linewidth=0,
        label=f"{100 * prob:g} % if the predictions are right",
    )
    ax.axhline(1.0, color="0.3", linewidth=1.0)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.25 * n_bins * max(share.max(), band[1].max()))
    ax.set_xlabel(f"leave-one-out PIT of {name}")
    ax.set_ylabel("density")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper right", fontsize=9)
    return ax


def spread_mass(lower: np.ndarray, upper: np.ndarray, n_bins: int) -> np.ndarray:
    """Mean share of each interval [lower, upper] in the bins of [0, 1], (n_bins,); a point is in one bin."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    width = upper - lower
    point = width <= 0
    inner = np.clip((edges - lower[~point, None]) / width[~point, None], 0.0, 1.0)
    spread = np.diff(inner, axis=1).sum(axis=0)
    return (spread + np.histogram(np.clip(lower[point], 0.0, 1.0), edges)[0]) / len(lower)


# ------------------------------------------------------------------------------- predictive distributions


class StudentT:
    """A residual and its Student t distribution in each row: continuous, so that its interval is a point."""

    def __init__(self, residual: np.ndarray, df: np.ndarray, spread: np.ndarray) -> None:
        self.at = stats.t.cdf(residual / np.sqrt(spread), df)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Table.interval`."""
        return self.at, self.at


class Table:
    """A value 0, 1, ... of each row and its distribution function at 0, 1, ..., (n, T); above T it is 1."""

    def __init__(self, value: np.ndarray, upto: np.ndarray) -> None:
        self.value, self.upto = value, np.concatenate([np.zeros((len(upto), 1)), upto, np.ones((len(upto), 1))], axis=1)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Probability of less than the value, and of the value or less."""
        return self._between(np.arange(len(self.value)), self.value.astype(np.int64))

    def drawn(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The interval of a value drawn from the distribution of some rows."""
        at = np.flatnonzero(rows)
        below = self.upto[at, 1:-1] < rng.random(len(at))[:, None]
        return self._between(at, below.sum(axis=1))

    def _between(self, rows: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.upto[rows, value], self.upto[rows, value + 1]


def column_law(posterior: Any, x: Any, codes: np.ndarray, j: int) -> StudentT | Table:
    """Values of column j, and their distribution given the class and all rows but their own; NaN where there is none.

    A row of weight 1 leaves the posterior of its own class. What predicts it is then Student's t, negative binomial,
    beta-binomial or Bernoulli.
    """
    value = np.asarray(dense(x[:, [j]]), dtype=float).ravel()
    k = codes
    if isinstance(posterior, (Diagonal, Multivariate)):
        with np.errstate(all="ignore"):
            kappa, loc, low, shape, scale = (v[k] for v in _normal_cells(posterior, j))
            left = kappa - 1.0
            residual = ((value - loc) - low) * kappa / left
            # The row added half of left / kappa times its squared residual to the scale; now it takes it back.
            scale = scale - 0.5 * residual**2 * left / kappa
            shape = shape - 0.5
            spread = np.where((left > 0) & (shape > 0) & (scale > 0), scale * (1.0 + 1.0 / left) / shape, np.nan)
            return StudentT(residual, 2.0 * shape, spread)
    if not isinstance(posterior, (Poisson, Multinomial, Bernoulli)):
        raise ValueError(
            f"the values of a {type(posterior).__name__} column have no order, or no distribution function that is "
            "known here; column=None looks at the class label"
        )
    seen = np.isfinite(value)
    if np.any(value[seen] != np.floor(value[seen])):
        raise ValueError("counts with fractions have no distribution function; column=None looks at the class label")
    value = np.where(seen, value, 0.0)
    top = 1 if isinstance(posterior, Bernoulli) else 2 * int(value.max(initial=0.0)) + 20
    if top * len(value) > MOST_CELLS:
        raise ValueError("the counts are too large for a table of their distribution; pass fewer rows")
    count = np.arange(top + 1.0)
    with np.errstate(all="ignore"):
        if isinstance(posterior, Poisson):
            a, b = (v[:, j][k, None] for v in posterior.hyper())
            upto = stats.nbinom.cdf(count, a - value[:, None], (b - 1.0) / b)
        elif isinstance(posterior, Multinomial):
            alpha = posterior.concentration()
            length = np.asarray(x.sum(axis=1)).reshape(-1, 1)
            a = alpha[:, j][k, None] - value[:, None]
            upto = np.cumsum(stats.betabinom.pmf(count, length, a, alpha.sum(axis=1)[k, None] - length - a), axis=1)
        else:
            a, b = (v[:, j][k] for v in posterior.concentrations())
            one = (a - value) / (a + b - 1.0)
            upto = np.stack([1.0 - one, np.ones(len(one))], axis=1)
    upto[~seen] = np.nan
    return Table(value, upto)


def _normal_cells(posterior: Any, j: int) -> tuple[np.ndarray, ...]:
    """The normal-inverse-gamma of column j in each class: mean precision, mean (high, low), shape and scale, (K,)."""
    loc, low, kappa = posterior.hyper()
    n_classes = posterior.n_classes
    if isinstance(posterior, Diagonal):
        cells = (np.broadcast_to(v, posterior.cells)[:, j] for v in posterior.inverse_gamma())
        return kappa[:, j], loc[:, j], low[:, j], *cells
    # A diagonal entry of an inverse-Wishart is inverse-gamma.
    df, scale = posterior.inverse_wishart()
    shape = np.broadcast_to(0.5 * (np.asarray(df) - posterior.n_features + 1.0), (n_classes,))
    entry = np.broadcast_to(0.5 * scale[..., j, j], (n_classes,))
    return kappa, loc[:, j], low[:, j], shape, entry
