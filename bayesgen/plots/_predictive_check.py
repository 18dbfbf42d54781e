"""Posterior predictive check: whether the model would have produced rows like these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from bayesgen._random import generator
from bayesgen.estimators import _labels
from bayesgen.families._all import Categorical, Multinomial
from bayesgen.families.base import dense
from bayesgen.fit import DRAW_CELLS
from bayesgen.plots._shared import base_of, check_prob, class_code, current_axes, feature_labels, one_family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["predictive_check"]

STATISTICS: dict[str, tuple[str, Callable[[Any], np.ndarray]]] = {
    "total": ("sum of the row", lambda x: np.nansum(x, axis=1)),
    "zeros": ("share of zeros in the row", lambda x: _zeros(x)),
    "largest": ("largest value of the row", lambda x: _largest(x)),
}
MOST_BARS = 30


def predictive_check(
    estimator: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    statistic: str | Callable[[np.ndarray], np.ndarray] | None = None,
    column: Any = None,
    label: Any = None,
    n_replicates: int = 100,
    prob: float = 0.94,
    feature_names: Sequence[Any] | None = None,
    random_state: Any = None,
) -> Axes:
    r"""A statistic of the observed rows of each class (line) among data replicated from the posterior (band).

    Each replicate draws parameters from the posterior, and then as many rows of each class as there are,
    :math:`x^{rep}_i \sim p(x \mid y_i, \theta)`, documents with the lengths observed. The band holds the share of rows
    in each bin in the given part of the replicates; a line outside it is something the model does not know about the
    data.

    Parameters
    ----------
    estimator : fitted classifier of this library
        Of any route that has a posterior.
    X, y : as in ``fit``
        The rows to compare with: those learned, or others.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    statistic : {"total", "zeros", "largest"} or callable, optional
        Of a row: its sum, its share of zeros, its largest value; or a function of a dense array (n, d) that gives
        (n,). Default: one column for normal and categorical models, "zeros" for word counts, else "total".
    column : name or position, optional
        Look at the values of this column in place of a statistic; for normal and categorical models the first column
        by default.
    label : class label or list of labels, optional
        The classes to show; all by default.
    n_replicates : int, default=100
        Replicated data sets.
    prob : float, default=0.94
        Part of the replicates that the band holds, in each bin.
    feature_names : sequence, optional
        Column names of a model fitted on an array.
    random_state : int, Generator, RandomState or None
        None: the estimator's own.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bayesgen import PoissonNB, plots
    >>> X, y = [[5, 0], [4, 1], [1, 3], [0, 2]], ["a", "a", "b", "b"]
    >>> ax = plots.predictive_check(PoissonNB(random_state=0).fit(X, y), X, y, n_replicates=20)
    >>> ax.get_xlabel()
    'sum of the row'

    References
    ----------
    BDA3, section 6.3; Gabry et al. 2019, *Visualization in Bayesian workflow*.
    """
    check_prob(prob)
    features = one_family(estimator, "predictive_check")
    fit = estimator._fit_value
    fit.check_posterior()
    base = base_of(features)
    name, measure = _measure(estimator, base, statistic, column, feature_names)
    x = estimator._rows(X)
    codes = _labels.encode_labels(_labels.check_labels(y), fit.classes)
    if len(codes) != x.shape[0]:
        raise ValueError(f"X has {x.shape[0]} rows and y {len(codes)} labels")
    lengths = _observed_lengths(base, x)
    observed = _in_blocks(measure, lambda rows: _floats(base, x[rows]), len(codes), base.n_features)
    rng = generator(estimator.random_state if random_state is None else random_state)
    params = features.posterior_params(rng, n_replicates)
    replicated = np.empty((n_replicates, len(codes)))
    for s in range(n_replicates):
        one = type(params)(*(p[s] for p in params))

        def rows_like(rows: slice, one: Any = one) -> Any:
            if lengths is not None:
                return documents(np.exp(one.log_prob), codes[rows], lengths[rows], rng)
            new = base.sample(one, codes[rows], rng)
            return np.where(np.isnan(_floats(base, x[rows])), np.nan, new)  # missing in the replicate too

        replicated[s] = _in_blocks(measure, rows_like, len(codes), base.n_features)
    shown = _shown(estimator, label)
    ax = current_axes() if ax is None else ax
    kept = np.isin(codes, shown)
    edges = _edges(observed[kept], replicated[:, kept])
    for k in shown:
        mine = codes == k
        if mine.any():
            _draw_class(ax, edges, observed[mine], replicated[:, mine], str(fit.classes[k]), f"C{k % 10}", prob)
    ax.plot([], [], color="0.3", linewidth=1.8, label="observed")
    ax.fill_between([], [], color="0.6", alpha=0.35, label=f"replicated, {100 * prob:g} %")
    if np.all(np.diff(edges) >= 1) and np.all(edges % 1 == 0.5):  # bins around whole numbers
        ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if isinstance(base, Categorical) and not callable(statistic):
        levels = estimator._state().columns.levels
        j = _column(estimator, 0 if column is None else column, feature_names)
        if levels is not None:
            ax.set_xticks(np.arange(len(levels[j])), [str(v) for v in levels[j]])
    ax.set_xlabel(name)
    ax.set_ylabel("share of the rows of the class")
    ax.set_ylim(bottom=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _measure(
    estimator: Any, base: Any, statistic: Any, column: Any, feature_names: Any
) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """Name of what is compared, and the function of rows that gives it."""
    if statistic is not None and column is not None:
        raise ValueError("pass statistic= or column=, not both")
    values = isinstance(base, Categorical) or not {"variance", "covariance"}.isdisjoint(base.dims())
    if statistic is None and (column is not None or values):
        j = _column(estimator, 0 if column is None else column, feature_names)
        name = feature_labels(estimator, feature_names)[j]
        said = f"column {name}" if isinstance(name, int) else str(name)
        return said, lambda x: np.asarray(dense(x[:, [j]])).ravel()
    if statistic is None:
        statistic = "zeros" if isinstance(base, Multinomial) else "total"
    if callable(statistic):
        return getattr(statistic, "__name__", "statistic"), lambda x: statistic(np.asarray(dense(x)))
    if statistic not in STATISTICS:
        raise ValueError(
            f"statistic must be one of {', '.join(map(repr, STATISTICS))} or a function; got {statistic!r}"
        )
    if isinstance(base, Categorical):
        raise ValueError("statistic= is for numbers, and a categorical model has levels: pass column= or a function")
    if statistic == "total" and isinstance(base, Multinomial):
        raise ValueError("statistic='total' has nothing to check: lengths are given in the multinomial model")
    return STATISTICS[statistic]


def _column(estimator: Any, column: Any, feature_names: Any) -> int:
    names = feature_labels(estimator, feature_names)
    if column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"column={column!r} is not a column; there are {shown}")


def _shown(estimator: Any, label: Any) -> list[int]:
    if label is None:
        return list(range(len(estimator.classes_)))
    labels = label if isinstance(label, (list, tuple, np.ndarray)) else [label]
    return [class_code(estimator, "label", one) for one in labels]


def _floats(base: Any, x: Any) -> Any:
    """Rows with NaN for what is missing (a level code of -1); dense, but for documents."""
    if isinstance(base, Multinomial):
        return sp.csr_array(x)
    x = np.asarray(dense(x), dtype=float)
    return np.where(x < 0, np.nan, x) if isinstance(base, Categorical) else x


def _zeros(x: Any) -> np.ndarray:
    if sp.issparse(x):
        return 1.0 - np.asarray((x != 0).sum(axis=1)).ravel() / x.shape[1]
    return (x == 0).sum(axis=1) / np.maximum((~np.isnan(x)).sum(axis=1), 1)


def _largest(x: Any) -> np.ndarray:
    if sp.issparse(x):
        return x.max(axis=1).toarray().ravel()
    return np.nanmax(np.where(np.isnan(x), -np.inf, x), axis=1)


def documents(theta: np.ndarray, codes: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> sp.csr_array:
    """Word counts of documents of given lengths, token by token: many words cost nothing that is not drawn."""
    row = np.repeat(np.arange(len(codes)), lengths)
    word = np.empty(len(row), dtype=np.int64)
    for k in np.unique(codes):
        mine = codes[row] == k
        upto = np.cumsum(theta[k])
        word[mine] = np.searchsorted(upto, rng.random(int(mine.sum())) * upto[-1], side="right")
    return sp.csr_array((np.ones(len(row)), (row, word)), shape=(len(codes), theta.shape[1]))


def _observed_lengths(base: Any, x: Any) -> np.ndarray | None:
    if not isinstance(base, Multinomial):
        return None
    values = x.data if sp.issparse(x) else x
    if (values != np.floor(values)).any():
        raise ValueError("predictive_check replicates whole counts, and X holds fractions")
    return np.asarray(x.sum(axis=1)).ravel().astype(np.int64)


def _in_blocks(measure: Callable[[Any], Any], rows: Callable[[slice], Any], n: int, d: int) -> np.ndarray:
    """A statistic of n rows of d columns, some rows after others so that they may be dense."""
    step = max(1, DRAW_CELLS // max(1, d))
    out = [np.asarray(measure(rows(slice(i, min(i + step, n)))), dtype=float) for i in range(0, n, step)]
    for part, i in zip(out, range(0, n, step), strict=True):
        if part.shape != (min(step, n - i),):
            raise ValueError(f"statistic= must give one number for each row; it gave shape {part.shape}")
    return np.concatenate(out) if out else np.zeros(0)


def _edges(observed: np.ndarray, replicated: np.ndarray) -> np.ndarray:
    """Edges of the bins: around whole numbers if there are few, else even over the bulk of both."""
    both = np.concatenate([observed, replicated.ravel()])
    both = both[np.isfinite(both)]
    if not both.size:
        raise ValueError("there is nothing to compare: no row of these classes has a value")
    low, high = float(both.min()), float(both.max())
    if np.all(both == np.floor(both)):
        width = max(1, int(np.ceil((high - low + 1) / MOST_BARS)))
        return np.arange(low - 0.5, high + 0.5 + width, width)
    seen = observed[np.isfinite(observed)]
    low, high = np.quantile(both, [0.001, 0.999])
    low, high = np.min(seen, initial=low), np.max(seen, initial=high)
    return np.linspace(low, high, 1 + int(np.clip(3.0 * len(seen) ** (1 / 3), 8, MOST_BARS)))


def _draw_class(
    ax: Axes, edges: np.ndarray, observed: np.ndarray, replicated: np.ndarray, label: str, colour: str, prob: float
) -> None:
    shares = np.stack([_shares(edges, row) for row in replicated])
    lower, upper = np.quantile(shares, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
    ax.stairs(upper, edges, baseline=lower, fill=True, color=colour, alpha=0.3, linewidth=0)
    ax.stairs(_shares(edges, observed), edges, color=colour, linewidth=1.8, label=label)


def _shares(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    values = values[np.isfinite(values)]
    return np.histogram(values, edges)[0] / max(1, len(values))
