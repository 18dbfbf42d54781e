r"""Hyperparameters that maximise the exact evidence (empirical Bayes).

For Dirichlet families the evidence of a concentration c is a sum over groups of counts, each one draw of
:math:`\theta`,

.. math::

    \ell(c) = \sum_g \Big[\sum_j \ln (c\,w_j)_{n_{gj}} - \ln (c\,W)_{N_g}\Big], \qquad W = \sum_j w_j,

with weights w = 1, or a background. It is maximised by Newton's method in ln c with exact derivatives, on the
distinct values of the counts: a million cells of text hold some thousand. :math:`\ell` can have several maxima,
so a scan comes first; and the maximum can lie at an end. It rises from 0 if some group has two non-zero cells; for
large c it is :math:`\ell(\infty) + T/(2c)` with

.. math:: T = \sum_g \Big[\sum_j n_{gj}(n_{gj} - 1)/w_j - N_g(N_g - 1)/W\Big].

Priors of two hyperparameters (Gaussian, Poisson) are maximised on a grid, then by the simplex and Newton's method.

References: Minka 2000, *Estimating a Dirichlet distribution*; Levin and Reeds 1977; MacKay and Peto 1995, *A
hierarchical Dirichlet language model*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from bayesgen._math import log_rising
from bayesgen.exceptions import UndefinedNumberError

__all__ = ["Evidence", "LearnedPrior", "maximise_concentration", "maximise_evidence"]

INFINITE = 1e100  # a concentration that leaves counts nothing to say in float64
SCAN = np.log(10.0) * np.linspace(-8, 16, 49)  # ln c; beyond lies an end


@dataclass(frozen=True)
class Evidence:
    """Ask for a hyperparameter that maximises the evidence; ``alpha="evidence"`` is short for ``Evidence()``.

    Parameters
    ----------
    per_class : bool, default=False
        A concentration for each class.
    base : {None, "background"}
        "background": pseudo-counts in proportion to the frequency of the word (level, presence) in all classes
        together, smoothed by half a count: :math:`w_j = V (N_j + 1/2)/(N + V/2)`.

    Examples
    --------
    >>> from bayesgen import Evidence, MultinomialNB
    >>> model = MultinomialNB(alpha=Evidence()).fit([[9, 1, 0], [7, 0, 2], [0, 6, 3]], [0, 0, 1])
    >>> round(model.alpha_, 3)
    0.596
    """

    per_class: bool = False
    base: str | None = None

    def __post_init__(self) -> None:
        if self.base not in (None, "background"):
            raise ValueError(f"base must be None or 'background'; got {self.base!r}")


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """What was learned, how sure, and the curve it is the top of.

    Attributes
    ----------
    value : ndarray
        The maximiser; 0 or inf where the evidence rises to an end.
    standard_error : ndarray
        Of the logarithm of each value, from the curvature of the log evidence; NaN at an end.
    log_evidence : float
        ln p(X | y) at the maximum.
    names : tuple of str
        What the values are.
    curve : callable
        Log evidence at other values, arrays like `value` along a leading axis.

    Examples
    --------
    >>> from bayesgen import MultinomialNB
    >>> model = MultinomialNB(alpha="evidence").fit([[9, 1, 0], [8, 2, 1], [0, 1, 9]], [0, 0, 1])
    >>> model.learned_.names, bool(0 < model.learned_.value[0] < 1)
    (('alpha',), True)
    """

    value: np.ndarray
    standard_error: np.ndarray
    log_evidence: float
    names: tuple[str, ...]
    curve: Callable[[Any], np.ndarray] = field(repr=False)


# ------------------------------------------------------------------------------- concentrations


class Counts(NamedTuple):
    """Distinct cells (weight, count) and group totals (weight, count), each with how often it occurs."""

    weight: np.ndarray
    cell: np.ndarray
    times: np.ndarray
    total_weight: np.ndarray
    total: np.ndarray
    total_times: np.ndarray

    def value(self, log_c: np.ndarray) -> np.ndarray:
        """Log evidence at each ln c, (n,)."""
        c = np.exp(np.asarray(log_c, dtype=float))[:, None]
        return log_rising(c * self.weight, self.cell) @ self.times - (
            log_rising(c * self.total_weight, self.total) @ self.total_times
        )

    def slopes(self, log_c: float) -> tuple[float, float]:
        """First and second derivative of the log evidence in ln c."""
        first = second = 0.0
        parts = ((self.weight, self.cell, self.times), (self.total_weight, self.total, -self.total_times))
        for weight, count, times in parts:
            z = np.exp(log_c) * weight
            rise, bend = digamma_rise(z, count), trigamma_rise(z, count)
            first += float((z * rise) @ times)
            second += float((z * rise + z * z * bend) @ times)
        return first, second

    @property
    def start(self) -> float:
        """Log evidence as c goes to 0, where no group has two non-zero cells: the share of each one's weight."""
        groups = self.total_times[self.total > 0] @ np.log(self.total_weight[self.total > 0])
        return float(self.times @ np.log(self.weight) - groups)

    @property
    def limit(self) -> float:
        """Log evidence as c goes to infinity."""
        cells = (self.cell * np.log(self.weight)) @ self.times
        return float(cells - (self.total * np.log(self.total_weight)) @ self.total_times)

    @property
    def tail(self) -> float:
        """T of the module docstring: the evidence falls towards its limit if it is positive. 0 if it is rounding."""
        cells = (self.cell * (self.cell - 1.0) / self.weight) @ self.times
        groups = (self.total * (self.total - 1.0) / self.total_weight) @ self.total_times
        return float(cells - groups) if abs(cells - groups) > 1e-14 * (abs(cells) + abs(groups)) else 0.0


def digamma_rise(z: np.ndarray, n: np.ndarray) -> np.ndarray:
    """psi(z + n) - psi(z), by the asymptotic series where the difference would cancel."""
    large = z >= 20.0
    zl = np.where(large, z, 20.0)
    series = np.log1p(n / zl) - 0.5 * (1 / (zl + n) - 1 / zl) - (_digamma_tail(zl + n) - _digamma_tail(zl))
    small = np.where(large, 20.0, z)
    return np.where(large, series, digamma(small + n) - digamma(small))


def _digamma_tail(z: np.ndarray) -> np.ndarray:
    w = 1.0 / (z * z)
    return w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w / 240)))


def trigamma_rise(z: np.ndarray, n: np.ndarray) -> np.ndarray:
    """psi_1(z + n) - psi_1(z), likewise."""
    large = z >= 20.0
    zl = np.where(large, z, 20.0)
    y = zl + n

    def tail(v: np.ndarray) -> np.ndarray:
        w = 1.0 / (v * v)
        return w * (0.5 + (1 / 6 - w * (1 / 30 - w / 42)) / v)

    series = -n / (zl * y) + tail(y) - tail(zl)
    small = np.where(large, 20.0, z)
    return np.where(large, series, polygamma(1, small + n) - polygamma(1, small))


def compress(groups: list[tuple[np.ndarray, np.ndarray]]) -> Counts:
    """Distinct cells of groups of counts (G, V) with weights (V,)."""
    cells, totals = [], []
    for count, weight in groups:
        nonzero = count > 0
        cells.append((np.broadcast_to(weight, count.shape)[nonzero], count[nonzero]))
        totals.append((np.full(len(count), weight.sum()), count.sum(axis=1)))
    return Counts(*distinct(cells), *distinct(totals))


def distinct(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct pairs (weight, count), and how often each occurs."""
    weight, count = (np.concatenate(v) for v in zip(*parts, strict=True))
    if len(weight) and np.ptp(weight) == 0:
        values, times = np.unique(count, return_counts=True)
        return np.full(len(values), weight[0]), values, times.astype(float)
    pairs, times = np.unique(weight + 1j * count, return_counts=True)
    return pairs.real, pairs.imag, times.astype(float)


def background(groups: list[np.ndarray]) -> list[np.ndarray]:
    """Weights of the cells of each group: background frequencies, smoothed, times the number of cells."""
    out = []
    for count in groups:
        total = count.sum(axis=0) + 0.5
        out.append(total.size * total / total.sum())
    return out


def maximise_one(counts: Counts, has_pairs: bool, what: str) -> tuple[float, float, float]:
    """The best ln c in [-inf, inf], the standard error of ln c, and the log evidence there."""
    if counts.total.max(initial=0.0) <= 1:
        raise UndefinedNumberError(
            f"{what} cannot be learned: no class holds more than one count, so the evidence says nothing about it; "
            "give a number"
        )
    height = counts.value(SCAN)
    tops = [i for i in range(1, len(SCAN) - 1) if height[i] >= height[i - 1] and height[i] >= height[i + 1]]
    found = [newton(counts, SCAN[i], SCAN[i - 1], SCAN[i + 1]) for i in tops]
    # Towards an end the evidence is flat: rounding makes tops there, which must not win.
    rounding = 1e-12 * float(counts.total @ counts.total_times)
    ends = [] if has_pairs else [(counts.start, -np.inf)]
    if counts.tail <= 0 or not found:
        ends.append((counts.limit, np.inf))
    inside = [(float(counts.value(np.array([t]))[0]) - rounding * bool(ends), t) for t in found]
    _, best = max(inside + ends)
    if not np.isfinite(best):
        return best, np.nan, counts.limit if best > 0 else counts.start
    curvature = counts.slopes(best)[1]
    error = float(1.0 / np.sqrt(-curvature)) if curvature < 0 else np.nan
    return best, error, float(counts.value(np.array([best]))[0])


def newton(counts: Counts, start: float, low: float, high: float) -> float:
    """Newton's method for a zero of the slope, kept inside a bracket by bisection."""
    at = start
    for _ in range(100):
        slope, curvature = counts.slopes(at)
        low, high = (at, high) if slope > 0 else (low, at)
        step = at - slope / curvature if curvature < 0 else np.nan
        after = step if low < step < high else 0.5 * (low + high)
        if abs(after - at) <= 1e-13 * max(1.0, abs(at)):
            return float(after)
        at = after
    return float(at)


def maximise_concentration(
    groups: list[np.ndarray], ask: Evidence, constant: float = 0.0, what: str = "alpha"
) -> tuple[np.ndarray, list[np.ndarray], LearnedPrior]:
    """The concentration of each class, (K,) or (1,), the weights of the cells of each group, and what was learned.

    Parameters
    ----------
    groups : list of arrays (K, V_g)
        Counts; each row is one draw of a Dirichlet.
    ask : Evidence
    constant : float
        What the log evidence has besides.
    """
    if not any(g.shape[1] for g in groups):
        raise UndefinedNumberError(f"{what}='evidence' has nothing to learn from: no row has a value in any column")
    weights = background(groups) if ask.base else [np.ones(g.shape[1]) for g in groups]
    rows = [slice(k, k + 1) for k in range(len(groups[0]))] if ask.per_class else [slice(None)]
    parts, found = [], []
    names = tuple(f"{what}[{k}]" for k in range(len(rows))) if ask.per_class else (what,)
    for k, name in zip(rows, names, strict=True):
        mine = [(g[k], w) for g, w in zip(groups, weights, strict=True) if g.shape[1]]
        counts = compress(mine)
        pairs = any(((g > 0).sum(axis=1) > 1).any() for g, _ in mine)
        parts.append(counts)
        found.append(maximise_one(counts, pairs, name))
    log_c, error, height = (np.array(v) for v in zip(*found, strict=True))
    value = np.exp(log_c)
    if np.isinf(value).any():
        warnings.warn(
            f"the evidence of {what} rises to infinity: the counts vary less than independent draws would, and the "
            "limit, probabilities equal to the prior's, is used",
            UserWarning,
            stacklevel=2,
        )
    if (value == 0).any():
        warnings.warn(
            f"the evidence of {what} rises towards 0: no class has two different words (levels), and the limit, "
            "maximum likelihood with its zero probabilities, is used",
            UserWarning,
            stacklevel=2,
        )

    def curve(values: Any) -> np.ndarray:
        table = np.asarray(values, dtype=float).reshape(-1, len(parts))
        return constant + np.sum([p.value(np.log(table[:, i])) for i, p in enumerate(parts)], axis=0)

    learned = LearnedPrior(value, error, float(height.sum()) + constant, names, curve)
    return np.minimum(value, INFINITE), weights, learned


# ------------------------------------------------------------------------------- two hyperparameters

REACH = 25.0  # of a log hyperparameter, beyond which it counts as 0 or infinite


def maximise_evidence(make: Callable[[Any], Any], stats: Any, names: tuple[str, ...]) -> LearnedPrior:
    """Maximise ``make(t).log_evidence(stats)`` over real t, the logs of the named hyperparameters.

    `make` takes a vector and gives a family. A grid finds the hill, the simplex method its top, and Newton steps by
    fourth-order differences the last digits: an evaluation from statistics takes less than compiling its derivative.
    """
    from scipy.optimize import minimize

    def height(t: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            value = float(make(np.asarray(t, dtype=float)).log_evidence(stats))
        return value if np.isfinite(value) else -np.inf

    size = len(names)
    steps = np.linspace(-REACH, REACH, 16)
    grid = np.stack(np.meshgrid(*[steps] * size), axis=-1).reshape(-1, size)
    start = grid[np.argmax([height(t) for t in grid])]
    found = minimize(
        lambda t: -height(t),
        start,
        method="Nelder-Mead",
        bounds=[(-REACH, REACH)] * size,
        options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 2000, "maxfev": 4000},
    )
    best, inside = found.x, np.abs(found.x) < REACH - 0.1
    best = np.where(inside, best, np.sign(best) * REACH)
    error = np.full(size, np.nan)
    free = np.flatnonzero(inside)  # Newton's method among these, the others held at their ends
    for _ in range(2 * bool(free.size)):
        slope, curvature = differences(height, best, free)
        if not np.linalg.eigvalsh(-curvature).min() > 0:
            break
        step = np.linalg.solve(-curvature, slope)
        if np.abs(step).max() < 0.1:
            best[free] += step
        error[free] = np.sqrt(np.diagonal(np.linalg.inv(-curvature)))
    value = np.where(inside, np.exp(best), np.where(best > 0, np.inf, 0.0))
    if not inside.all():
        ends = ", ".join(f"{n} -> {v:g}" for n, v in zip(names, value, strict=True) if not 0 < v < np.inf)
        warnings.warn(
            f"the evidence rises to an end of the prior, {ends}: the limit is used", UserWarning, stacklevel=2
        )

    def curve(values: Any) -> np.ndarray:
        return np.array([height(t) for t in np.log(np.asarray(values, dtype=float).reshape(-1, size))])

    return LearnedPrior(value, error, height(best), names, curve)


def differences(f: Callable[[np.ndarray], float], at: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian in the free coordinates by central differences of fourth order, with a step of 0.01."""
    h = 1e-2
    eye = h * np.eye(len(at))[free]
    weights = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))

    def slope(t: np.ndarray) -> np.ndarray:
        return np.array([sum(w * f(t + m * e) for m, w in weights) / h for e in eye])

    hessian = np.stack([sum(w * slope(at + m * e) for m, w in weights) / h for e in eye])
    return slope(at), 0.5 * (hessian + hessian.T)
