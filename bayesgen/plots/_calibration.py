"""Reliability: whether events of probability p are as frequent as that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen._random import generator
from bayesgen.plots._shared import check_prob, current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration"]


def calibration(
    source: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    label: Any = None,
    loo: bool = False,
    prob: float = 0.9,
    n_resamples: int = 500,
    random_state: Any = None,
) -> Axes:
    r"""How often a class occurs (line) among rows that were given a probability of it (horizontal axis).

    The line is the isotonic regression of the event on its probability, by pool adjacent violators: no bins to
    choose. If the probabilities are right, it lies in the band: equal-tailed at each point, from labels drawn with
    those probabilities. Below stands where the probabilities lie. The key has the Brier score and its parts, score =
    MCB - DSC + UNC: miscalibration (0 is best), discrimination (more is better), and the uncertainty of the class.

    Parameters
    ----------
    source : fitted classifier, or array of probabilities (n,) or (n, K)
        Any classifier with ``predict_proba``. Of an array (n,), the probability of `label`; of (n, K), classes in
        sorted order.
    X : array or data frame, (n, d)
        Rows held out, or with ``loo=True`` those that were learned; None with an array of probabilities.
    y : array (n,)
        Their labels.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    label : class label, optional
        The class whose probability is looked at, against the rest. Needed with more than two classes; the second of
        two.
    loo : bool, default=False
        Predict each row from all the others: the exact leave-one-out of the estimator's conjugate posterior, in
        place of data held out.
    prob : float, default=0.9
        Probability of the band.
    n_resamples : int, default=500
        Drawn sets of labels behind the band.
    random_state : int, Generator, RandomState or None
        None: the estimator's own.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen import GaussianNB, plots
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> X = rng.normal(size=(60, 1)) + y[:, None]
    >>> ax = plots.calibration(GaussianNB().fit(X, y), X, y, loo=True, random_state=0)
    >>> ax.get_xlabel()
    'leave-one-out probability of class 1'

    References
    ----------
    Dimitriadis, Gneiting and Jordan 2021, *Stable reliability diagrams for probabilistic classifiers*.
    """
    check_prob(prob)
    p, event, label = _forecasts(source, X, y, label, loo)
    seed = getattr(source, "random_state", None) if random_state is None else random_state
    rng = generator(seed)
    ax = current_axes() if ax is None else ax
    order = np.argsort(p, kind="stable")
    p, event = p[order], event[order]
    fitted = isotonic(p, event)
    drawn = np.stack([isotonic(p, rng.random(len(p)) < p) for _ in range(n_resamples)])
    lower, upper = np.quantile(drawn, [(1 - prob) / 2, (1 + prob) / 2], axis=0)

    ax.fill_between(p, lower, upper, color="C0", alpha=0.18, linewidth=0, label=f"{100 * prob:g} % if calibrated")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1.0)
    ax.plot(p, fitted, color="C0", linewidth=1.8, label=_score_parts(p, fitted, event))
    counts, edges = np.histogram(p, np.linspace(0.0, 1.0, 41))
    ax.stairs(0.1 * counts / counts.max(), edges, fill=True, color="0.75", zorder=0)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.0)
    ax.set_aspect("equal")
    ax.set_xlabel(f"{'leave-one-out ' if loo else ''}probability of class {label}")
    ax.set_ylabel(f"frequency of class {label}")
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    return ax


def isotonic(p: np.ndarray, event: np.ndarray) -> np.ndarray:
    """The non-decreasing frequencies nearest to the events, by pool adjacent violators; p is sorted."""
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(y_min=0.0, y_max=1.0).fit_transform(p, event.astype(float))


def _score_parts(p: np.ndarray, fitted: np.ndarray, event: np.ndarray) -> str:
    """Brier score = miscalibration - discrimination + uncertainty."""
    score = np.mean((p - event) ** 2)
    recalibrated = np.mean((fitted - event) ** 2)
    unknown = np.mean((event.mean() - event) ** 2)
    return (
        f"MCB {score - recalibrated:.3f}\nDSC {unknown - recalibrated:.3f}\nUNC {unknown:.3f}\nBrier score {score:.3f}"
    )


def _forecasts(source: Any, X: Any, y: Any, label: Any, loo: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """Probabilities of a class, whether it happened, and its label."""
    y = np.asarray(y)
    if hasattr(source, "predict_proba"):
        if X is None:
            raise ValueError("X is None: pass the rows, or probabilities in place of the estimator")
        classes = source.classes_.tolist()
        table = loo_proba(source, X, y) if loo else source.predict_proba(X)
    else:
        if loo:
            raise ValueError("loo=True needs a fitted estimator of this library, not probabilities")
        if X is not None:
            raise ValueError("X must be None when the probabilities are given")
        table = np.asarray(source, dtype=float)
        classes = np.unique(y).tolist()
    if table.ndim == 2 and table.shape[1] != len(classes):
        raise ValueError(f"the probabilities have {table.shape[1]} columns for the {len(classes)} classes {classes}")
    if table.ndim not in (1, 2) or len(table) != len(y):
        raise ValueError(f"the probabilities have shape {table.shape} for {len(y)} labels")
    if label is None:
        if len(classes) != 2:
            raise ValueError(f"label= says which class to look at; the classes are {classes}")
        label = classes[1]
    if table.ndim == 2:
        if label not in classes:
            raise ValueError(f"label={label!r} is not a class; the classes are {classes}")
        table = table[:, classes.index(label)]
    event = y == label
    known = ~np.isnan(table)
    if not known.any() or not ((table[known] >= 0) & (table[known] <= 1)).all():
        raise ValueError("probabilities must lie between 0 and 1, and not all be NaN")
    return table[known], event[known], label


def loo_proba(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Exact leave-one-out p(y = k | x_i, all rows but i), (n, K)."""
    joint = estimator.loo(X, y).log_joint
    with np.errstate(invalid="ignore"):
        out = np.exp(joint - joint.max(axis=1, keepdims=True))
        return out / out.sum(axis=1, keepdims=True)
