r"""Full covariances learned from rows with missing cells.

The likelihood of such rows, :math:`\prod_i \mathcal N(x_{iO_i} \mid \mu_{O_i}, \Sigma_{O_iO_i})^{w_i}` over their
observed blocks O, has no conjugate prior. The mode of the posterior (or of the likelihood) is found by EM on the
statistics of each pattern of observed cells: given parameters, the missing block M of a row has mean
:math:`\mu_M + B(x_O - \mu_O)`, :math:`B = \Sigma_{MO}\Sigma_{OO}^{-1}`, and covariance
:math:`\Sigma_{MM} - B\Sigma_{OM}`, which is added to the scatter of the completed rows; then the closed forms for
complete rows apply. Labels are known, and cells are taken as missing at random. Steps are accelerated by Anderson's
method on means and log-Cholesky factors, and taken only where the posterior does not fall. With much missing there may
be several modes; this is the one above the means and variances of the columns. The whole posterior is left to NUTS,
with the same exact likelihood.

References: Dempster, Laird and Rubin 1977, *Maximum likelihood from incomplete data via the EM algorithm*; Little and
Rubin 2002, *Statistical Analysis with Missing Data*, chapter 11; Walker and Ni 2011, *Anderson acceleration for
fixed-point iterations*; Henderson and Varadhan 2019, *Damped Anderson acceleration with restarts and monotonicity
control for accelerating EM and EM-like algorithms*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesgen import _kernels
from bayesgen._math import two_sum
from bayesgen.families.base import Problem
from bayesgen.families.covariance_chart import factor_of
from bayesgen.families.moments import default_variance, difference, overall_mean
from bayesgen.families.multivariate_gaussian import MultivariateGaussianParams, MultivariateGaussianStats
from bayesgen.families.normal_scores import STACK_CELLS, observed_factor, pattern_log_likelihood
from bayesgen.families.normal_statistics import PatternStats, class_weight, column_stats, of_classes, outer, recentre
from bayesgen.identified import unbounded, unidentified

__all__ = ["Mode", "expected_stats", "maximise"]

MOST_STEPS = 5000
STEP = 1e-12  # of standardised parameters: EM has arrived
SMALL_STEP = 1e-7  # above it, EM that stops has not arrived
PATIENCE = 30  # small steps that bring nothing nearer: rounding
MEMORY = 8  # steps that the acceleration looks back
SLACK = 1e-12  # of the objective: rounding
SINGULAR = 1e-7  # of a standard deviation, of a column given those before it: the likelihood has no maximum


class Mode(NamedTuple):
    """Where EM arrived."""

    params: MultivariateGaussianParams
    trace: np.ndarray
    """Log posterior (log likelihood for "mle") of the observed cells before each accepted step, and at the end"""
    problem: Problem | None = None
    """Why there is no such point; None if there is"""


def expected_stats(stats: PatternStats, params: Any) -> tuple[MultivariateGaussianStats, float]:
    """Statistics of the completed rows, expected given parameters, and the log likelihood of the observed cells.

    Means are plain float64 here: statistics and parameters are taken from a common centre.
    """
    mean, covariance = params.mean, params.covariance
    k, d = mean.shape
    per_class = covariance.ndim == 3
    first, second, log_likelihood = np.zeros((k, d)), np.zeros(covariance.shape), 0.0
    for block in _kernels.row_blocks(len(stats.observed), covariance.size, STACK_CELLS >> 3):
        part = PatternStats(*(s[block] for s in stats))
        seen = part.observed[:, None] if per_class else part.observed
        inverse, logdet = observed_factor(covariance, seen)
        delta = np.where((part.weight[..., None] > 0) & part.observed[:, None], part.mean - mean, 0.0)
        log_likelihood += float(pattern_log_likelihood((inverse, logdet), part, delta))
        half = inverse @ covariance
        missing = ~seen
        regress = np.swapaxes(half, -1, -2) @ inverse
        complete = np.where(missing[..., :, None], regress, np.eye(d) * seen[..., None, :])
        left = np.where(
            missing[..., :, None] & missing[..., None, :], covariance - np.swapaxes(half, -1, -2) @ half, 0.0
        )
        turned = np.swapaxes(complete, -1, -2)
        shift = (delta[..., None, :] @ (turned if per_class else turned[:, None]))[..., 0, :]
        weighted = part.weight[..., None] * shift
        first += weighted.sum(axis=0)
        weight = part.weight if per_class else part.weight.sum(axis=1)
        second += (complete @ part.scatter @ turned + weight[..., None, None] * left).sum(axis=0)
        if per_class:
            second += np.einsum("pki,pkj->kij", weighted, shift)
        else:
            second += weighted.reshape(-1, d).T @ shift.reshape(-1, d)
    n = class_weight(stats)
    share = np.where(n > 0, 1.0 / np.where(n > 0, n, 1.0), 0.0)
    about = outer(first) * share[:, None, None]
    scatter = second - (about if per_class else about.sum(axis=0))
    centre = np.where(n[:, None] > 0, mean + first * share[:, None], 0.0)
    scatter = 0.5 * (scatter + np.swapaxes(scatter, -1, -2))
    return MultivariateGaussianStats(n, centre, np.zeros((k, d)), scatter), log_likelihood


# ------------------------------------------------------------------------------- coordinates


@dataclass(frozen=True)
class Coordinates:
    """Means, and log-Cholesky factors of covariances, in standard deviations of the columns: one real vector."""

    scale: np.ndarray
    """(d,)"""
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    """Of means and covariances"""

    def vector(self, params: MultivariateGaussianParams) -> np.ndarray:
        """Coordinates of parameters; `LinAlgError` where a covariance is singular."""
        root = np.linalg.cholesky(params.covariance / np.outer(self.scale, self.scale))
        i, j = np.tril_indices(len(self.scale))
        below = root[..., i, j]
        below[..., i == j] = np.log(below[..., i == j])
        return np.concatenate([(params.mean / self.scale).ravel(), below.ravel()])

    def depths(self, vector: np.ndarray) -> np.ndarray:
        """Logs of the standard deviations of each column given those before it, (1 or K, d)."""
        i, j = np.tril_indices(len(self.scale))
        return vector[int(np.prod(self.shapes[0])) :].reshape(-1, len(i))[:, i == j]

    def params(self, vector: np.ndarray) -> MultivariateGaussianParams:
        """The parameters at coordinates."""
        mean_shape, shape = self.shapes
        size = int(np.prod(mean_shape))
        mean = vector[:size].reshape(mean_shape) * self.scale
        i, j = np.tril_indices(len(self.scale))
        below = vector[size:].reshape(*shape[:-2], len(i)).copy()
        below[..., i == j] = np.exp(below[..., i == j])
        root = np.zeros(shape)
        root[..., i, j] = below
        root *= self.scale[:, None]
        return MultivariateGaussianParams(mean, np.zeros(mean_shape), root @ np.swapaxes(root, -1, -2))


def climb(
    step: Callable[[np.ndarray], tuple[np.ndarray, float]], start: np.ndarray, singular: Callable[[np.ndarray], bool]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Follow an EM step to its fixed point: the point, the trace of the objective, and the size of the last step.

    ``step(point)`` gives the next point and the objective at this one. Anderson's extrapolation proposes points; one
    where the objective is lower than before is given up for the EM step it was to improve.
    """
    point, safe, best, size = start, start, -np.inf, np.inf
    points: list[np.ndarray] = []
    images: list[np.ndarray] = []
    trace: list[float] = []
    smallest, waited = np.inf, 0
    for _ in range(MOST_STEPS):
        try:
            image, value = step(point)
        except np.linalg.LinAlgError:
            if point is safe:
                size = np.inf
                break
            value = -np.inf
        if not (value >= best - SLACK * abs(best) or point is safe):
            point, points, images = safe, [], []
            continue
        trace.append(value)
        best = max(best, value)
        size = float(np.abs(image - point).max(initial=0.0))
        waited = 0 if size < 0.9 * smallest else waited + 1
        smallest = min(smallest, size)
        safe = image
        if size <= STEP or (size < SMALL_STEP and waited > PATIENCE) or singular(image):
            break
        points, images = [*points[-MEMORY:], point], [*images[-MEMORY:], image]
        point = extrapolate(np.array(points), np.array(images))
    return safe, np.array(trace), size


def extrapolate(points: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Anderson's next point: the combination of images whose residuals, to first order, cancel."""
    if len(points) == 1:
        return images[-1]
    residuals = images - points
    weights, *_ = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=1e-10)
    return images[-1] - weights @ np.diff(images, axis=0)


# ------------------------------------------------------------------------------- the mode


def log_prior(prior: Any, params: MultivariateGaussianParams) -> float:
    """Log prior density of parameters; up to a constant where the prior is improper."""
    factored = prior.factored(params)
    if prior.improper(np.ones(prior.n_classes, dtype=bool), strict=True) is None:
        return float(prior.log_density(factored))
    inverse, logdet = factor_of(factored)
    df, scale = prior.inverse_wishart()
    loc, low, kappa = prior.hyper()
    z = difference(params.mean, params.mean_low, loc, low)[:, None, :] @ np.swapaxes(inverse, -1, -2)
    spread = ((df + prior.n_features + 1.0) * logdet + (inverse @ scale * inverse).sum((-1, -2))).sum()
    return -0.5 * float(spread + (logdet + kappa * (z * z).sum((-1, -2))).sum())


def maximise(prior: Any, stats: PatternStats, route: str) -> Mode:
    """Parameters that maximise the likelihood of the observed cells ("mle"), times the prior density ("map")."""
    if route == "mle":
        return _of_classes_with_rows(prior, stats)
    per_class = stats.scatter.ndim == 4
    if prior.improper(np.ones(prior.n_classes, dtype=bool), strict=True) is not None:
        problem = unidentified(stats, per_class)
        if problem is not None:
            return Mode(_undefined(prior, per_class), np.zeros(0), problem)
    return _maximise(prior, stats, lambda p, s: p.condition(s).mode(), True)


def _of_classes_with_rows(family: Any, stats: PatternStats) -> Mode:
    """Maximum likelihood; classes without rows have no parameters."""
    per_class = stats.scatter.ndim == 4
    known = np.flatnonzero(class_weight(stats) > 0)
    part = of_classes(stats, known)
    problem = unidentified(part, per_class) or unbounded(part)
    if problem is not None:
        problem = problem._replace(cls=None if problem.cls is None else int(known[problem.cls]))
        return Mode(_undefined(family, per_class), np.zeros(0), problem)
    found = _maximise(family.replace(n_classes=len(known)), part, lambda f, s: f.mle(s), False)
    out = _undefined(family, per_class)
    out.mean[known], out.mean_low[known] = found.params.mean, found.params.mean_low
    out.covariance[known if per_class else ...] = found.params.covariance
    return found._replace(params=out)


def _undefined(family: Any, per_class: bool) -> MultivariateGaussianParams:
    k, d = family.n_classes, family.n_features
    mean = np.full((k, d), np.nan)
    return MultivariateGaussianParams(mean, np.zeros((k, d)), np.full((k, d, d) if per_class else (d, d), np.nan))


def _maximise(family: Any, stats: PatternStats, m_step: Callable[[Any, Any], Any], with_prior: bool) -> Mode:
    """EM from the means and variances of the observed cells, in deviations from those means."""
    columns = column_stats(stats)
    overall, overall_low = overall_mean(*columns[:3])
    seen = columns.weight > 0
    centre, low = np.where(seen, columns.mean, overall), np.where(seen, columns.mean_low, overall_low)
    stats = recentre(stats, centre, low)
    everyone = np.ones(family.n_classes, dtype=bool)
    proper = with_prior and family.improper(everyone, strict=True) is None
    if with_prior:
        loc, loc_low, _ = family.hyper()
        family = family.replace(loc=difference(loc, loc_low, centre, low), loc_low=0.0)
    scale = np.sqrt(default_variance(*columns[:3], columns.scatter.sum(axis=0), (overall, overall_low)))
    k, d = centre.shape
    coordinates = Coordinates(scale, ((k, d), (k, d, d) if stats.scatter.ndim == 4 else (d, d)))
    start = np.zeros(k * d + (stats.scatter[0].size // d**2) * (d * (d + 1) // 2))

    def step(point: np.ndarray) -> tuple[np.ndarray, float]:
        params = coordinates.params(point)
        expected, value = expected_stats(stats, params)
        if with_prior:
            value += log_prior(family, params)
        return coordinates.vector(m_step(family, expected)), value

    def singular(point: np.ndarray) -> bool:
        return not proper and coordinates.depths(point).min() < np.log(SINGULAR)

    with np.errstate(all="ignore"):
        point, trace, size = climb(step, start, singular)
        params = coordinates.params(point)
        problem = None
        if not np.isfinite(size):  # the next covariance has no factor
            problem = _no_factor(family, stats, params, m_step) or _singular(point, coordinates)
        elif singular(point):
            problem = _singular(point, coordinates)
        else:
            trace = np.append(trace, step(point)[1])
    mean, rest = two_sum(centre, low + params.mean)
    params = MultivariateGaussianParams(mean, rest, params.covariance)
    if problem is None and size > SMALL_STEP:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"EM over the missing cells stopped after {MOST_STEPS} steps; standardised parameters still moved by "
            f"{size:.1g}: too many cells are missing for what the prior adds. State a stronger prior, or drop columns",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Mode(params, trace, problem)


def _no_factor(family: Any, stats: PatternStats, params: Any, m_step: Callable[[Any, Any], Any]) -> Problem | None:
    """What is singular after a step from parameters."""
    try:
        found = m_step(family, expected_stats(stats, params)[0])
    except np.linalg.LinAlgError:
        return None
    return family.undefined(found, stats, np.ones(family.n_classes, dtype=bool))


def _singular(point: np.ndarray, coordinates: Coordinates) -> Problem:
    """The column that the others determine, in the class where they do."""
    shape = coordinates.shapes[1]
    depths = coordinates.depths(point)
    cls, column = map(int, np.unravel_index(depths.argmin(), depths.shape))
    whose = "the covariance of class {cls}" if len(shape) == 3 else "the shared covariance"
    return Problem(
        f"{whose} has no maximum-likelihood estimate: {{columns}} becomes a linear function of the others in the rows "
        "where it is observed with them (there are too few). Use a prior (inference='map' or 'nuts'), or drop it",
        cls if len(shape) == 3 else None,
        [column],
    )
