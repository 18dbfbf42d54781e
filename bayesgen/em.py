r"""Rows without a label, by expectation-maximisation.

With labelled rows L and unlabelled rows U, what is maximised is

.. math::

    J(\phi, \theta) = \ln p(\phi) + \ln p(\theta) + \sum_{i \in L} w_i \ln[\phi_{y_i} p(x_i \mid \theta_{y_i})]
        + \sum_{u \in U} w_u \ln \sum_k \phi_k p(x_u \mid \theta_k),

without the prior terms under ``"mle"``. E: the class probabilities :math:`r_{uk}` of each unlabelled row. M: the
route's closed form, with class weights :math:`w_u r_{uk}` beside the labels. J never decreases. A posterior-mean M-step
is not monotone in J, but it is the M-step of ``"map"`` under another prior (Dirichlet: alpha + 1; see
`Family.shifted`): ``"mean"`` maximises J of that one, the classic EM with Laplace smoothing.

Hyperparameters that are learned or scaled by data are those of the labelled rows. [Dempster, Laird and Rubin 1977;
Nigam, McCallum, Thrun and Mitchell 2000]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen._math import logsumexp
from bayesgen.class_prior import ClassPrior
from bayesgen.exceptions import UndefinedNumberError, UnlabelledRowsWarning
from bayesgen.families import dirichlet
from bayesgen.families.base import UNBOUNDED_CELLS, Elsewhere, Family, Labels, Problem, class_count
from bayesgen.fit import FeatureFit, Fit, MixedFit
from bayesgen.learning import LearnedPrior

__all__ = ["MOST_STEPS", "ROUTES", "EMFit", "PlugIn", "maximise"]

ROUTES = ("mle", "map", "mean")
TOLERANCE, ENOUGH = 1e-12, 1e-9  # gains of a step, relative to J: where EM stops, and what it may stop at in the end
MOST_STEPS = 2000
NO_POSTERIOR = (
    "a fit with unlabelled rows has parameters but no posterior in closed form (nor evidence or leave-one-out): the "
    "labels that are not known make it a mixture. inference='nuts' draws from it"
)
# Rise of the log loss of the labels, in nats and in standard errors, beyond which the fit is said to be pulled away.
FAR, FAR_ERRORS = 0.1, 2.0


@dataclass(frozen=True, eq=False)
class PlugIn(FeatureFit):
    """See `bayesgen.fit.FeatureFit`: parameters from expected statistics, which are no data to condition on.

    Parameters
    ----------
    learned_prior : LearnedPrior or None
        What maximising the evidence of the labelled rows gave.
    """

    learned_prior: LearnedPrior | None = None

    @cached_property
    def _complete(self) -> FeatureFit:
        """The fit as if the expected statistics were data."""
        return FeatureFit(self.stated, self.stats, self.route)

    @property
    def learned(self) -> LearnedPrior | None:
        """See `FeatureFit.learned`."""
        return self.learned_prior

    @property
    def params(self) -> Any:
        """See `FeatureFit.params`."""
        return self._complete.params

    @property
    def posterior(self) -> Any:
        """There is none: `UndefinedNumberError`."""
        raise UndefinedNumberError(NO_POSTERIOR)

    def problem(self, needed: np.ndarray) -> Problem | None:
        """See `FeatureFit.problem`."""
        return self._complete.problem(needed)

    def draws_problem(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.draws_problem`."""
        return Problem(NO_POSTERIOR)

    def check_evidence(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.check_evidence`."""
        raise UndefinedNumberError(NO_POSTERIOR)

    def log_loo(self, x: Any, labels: Any, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `FeatureFit.log_loo`."""
        raise UndefinedNumberError(NO_POSTERIOR)


@dataclass(frozen=True, eq=False)
class EMFit(Fit):
    """A fit with unlabelled rows.

    Parameters
    ----------
    trace : array (n_steps,)
        J after each step.
    converged : bool
        Whether the last step gained next to nothing.
    """

    trace: np.ndarray | None = None
    converged: bool = False


def _parts(features: Any) -> tuple[Any, ...]:
    return features.parts if isinstance(features, MixedFit) else (features,)


def _with_stats(features: Any, stats: Any) -> Any:
    """The feature part with other statistics and the hyperparameters it has."""
    if isinstance(features, MixedFit):
        parts = (_with_stats(p, s) for p, s in zip(features.parts, stats, strict=True))
        return replace(features, parts=tuple(parts))
    return PlugIn(features.prior, stats, features.route, features.learned)


# ------------------------------------------------------------------------------- the prior's part of J


def _log_class_prior(prior: ClassPrior, route: str, log_prob: np.ndarray) -> float:
    """Ln p(phi), of the shifted prior for "mean"; up to a constant where that is improper."""
    if route == "mle" or prior.fixed is not None:
        return 0.0
    alpha = np.asarray(prior.concentration()) + (route == "mean")
    if (alpha > 0).all():
        return float(dirichlet.log_density(alpha, log_prob))
    return float(dirichlet.dot_log(alpha - 1.0, log_prob))


def _log_prior(part: FeatureFit) -> Callable[[Any], float]:
    """Ln p(theta) as a function of the parameters, of the shifted prior for "mean".

    Up to a constant where it is improper. The log density is linear in the hyperparameters but for its constant: an
    improper prior is the posterior of the labelled rows over their likelihood, and one that is improper by the shift
    is as far from the stated one as that is from the prior shifted the other way.
    """
    prior, stats = part.prior, part.stats
    everyone = np.ones(prior.n_classes, dtype=bool)

    def proper(family: Family) -> bool:
        return family.improper(everyone, strict=True) is None

    if part.route == "mle":
        return lambda params: 0.0
    target = prior.shifted() if part.route == "mean" else prior
    if proper(target):
        return lambda params: float(target.log_density(params))
    stated_proper = proper(prior)
    anchor = prior if stated_proper else prior.condition(stats)
    if not proper(anchor):
        raise UndefinedNumberError(
            "with unlabelled rows the prior must be proper, or become so by the labelled rows: state a prior, or use "
            "inference='mle'"
        )
    mirror = anchor.shifted(-1.0) if part.route == "mean" else None

    def density(params: Any) -> float:
        out = anchor.log_density(params)
        if mirror is not None:
            out = 2.0 * out - mirror.log_density(params)
        return float(out if stated_proper else out - prior.log_likelihood(params, stats))

    return density


def _check_bounded(fit: Fit) -> None:
    """Raise unless J of the labelled statistics and the prior is bounded."""
    prior = fit.class_prior
    if fit.route == "map" and prior.fixed is None:
        bad = np.flatnonzero(prior.concentration() + fit.count < 1.0)
        if bad.size:
            text = UNBOUNDED_CELLS.replace("{columns} in class {cls}", "the probability of class {cls}")
            fit._raise(Problem(text, int(bad[0])), None)
    if prior.fixed is not None:
        bad = np.flatnonzero((np.asarray(prior.fixed) == 0) & (fit.count > 0))
        if bad.size:
            text = "class {cls} has labelled rows, and class_prior says that its probability is 0: leave these rows out"
            fit._raise(Problem(text, int(bad[0])), None)
    for part, names in fit._parts():
        target = part.prior.shifted() if part.route == "mean" else part.prior
        fit._raise(target.unbounded(part.stats, flat=part.route == "mle"), names)


# ------------------------------------------------------------------------------- the algorithm


class _Mixture:
    """Steps of EM from the fit of the labelled rows."""

    def __init__(self, labelled: Fit, x_labelled: Any, labels: Labels, x: Any, weights: np.ndarray) -> None:
        self.labelled, self.x, self.weights = labelled, x, weights
        self.x_labelled, self.labels = x_labelled, labels
        self.family = labelled.features.prior
        self.priors = [_log_prior(part) for part in _parts(labelled.features)]
        self.constant: float | None = None  # of the labelled rows' likelihood, what its statistics leave out

    def step(self, r: np.ndarray) -> EMFit:
        """M: the route's parameters with class weights r (n, K) of the unlabelled rows."""
        soft = self.weights[:, None] * r
        old = self.labelled
        stats = self.family.merge(old.features.stats, self.family.stats(self.x, soft))
        given = {f.name: getattr(old, f.name) for f in fields(Fit)}
        given |= {"features": _with_stats(old.features, stats), "count": old.count + soft.sum(axis=0)}
        return EMFit(**given)

    def _labelled_constant(self, fit: Fit) -> float:
        codes, w = self.labels
        if not len(codes):
            return 0.0
        own = fit.features.log_prob(self.x_labelled)[np.arange(len(codes)), codes]
        known = self.family.log_likelihood(fit.features.params, self.labelled.features.stats)
        return float((own if w is None else w * own).sum() - known)

    def objective(self, fit: Fit, log_mixture: np.ndarray) -> float:
        """J at the parameters of a fit, given ln p(x) of the unlabelled rows."""
        params = fit.features.params
        if self.constant is None:
            self.constant = self._labelled_constant(fit)
        prior = _log_class_prior(fit.class_prior, fit.route, fit.log_class)
        each = params if isinstance(fit.features, MixedFit) else (params,)
        with np.errstate(all="ignore"):
            prior += sum(density(p) for density, p in zip(self.priors, each, strict=True))
            known = float(self.family.log_likelihood(params, self.labelled.features.stats)) + self.constant
        known += float(dirichlet.dot_log(self.labelled.count, fit.log_class))
        return prior + known + float(self.weights @ log_mixture)

    def run(self, r: np.ndarray) -> EMFit:
        """Alternate from the class weights r until J stands still."""
        trace: list[float] = []
        while True:
            fit = self.step(r)
            joint = fit.log_joint(self.x)
            log_mixture = logsumexp(joint, keepdims=True)
            trace.append(self.objective(fit, log_mixture[:, 0]))
            gain = trace[-1] - trace[-2] if len(trace) > 1 else np.inf
            if gain <= TOLERANCE * abs(trace[-1]) or len(trace) == MOST_STEPS:
                return replace(fit, trace=np.array(trace), converged=gain <= ENOUGH * abs(trace[-1]))
            r = np.exp(joint - log_mixture)

    def from_labelled(self, rng: np.random.Generator) -> np.ndarray | None:
        """Class weights under the labelled rows' fit; None where it cannot predict (a class without rows).

        Rows that it calls impossible in every class get the class probabilities. Classes that it cannot tell apart, or
        gives probability 0, would stay so for ever: half of every weight is then random.
        """
        try:
            joint = self.labelled.log_joint(self.x)
        except UndefinedNumberError:
            if self.labelled.count.all():
                raise
            return None
        impossible = np.isneginf(joint).all(axis=1)
        joint[impossible] = self.labelled.log_class
        r = np.exp(joint - logsumexp(joint, keepdims=True))
        absent = np.isneginf(self.labelled.log_class)
        told = joint[~impossible][:, ~absent]
        with np.errstate(invalid="ignore"):
            shape = np.nan_to_num(told - told[:1], nan=0.0)
        shape /= np.abs(shape).max(initial=1.0)
        tied = len(told) > 0 and np.unique(shape.round(10), axis=1).shape[1] < shape.shape[1]
        fixed = self.labelled.class_prior.fixed
        possible = np.ones(len(absent)) if fixed is None else (np.asarray(fixed) > 0).astype(float)
        if tied or (absent & (possible > 0)).any():
            noise = rng.dirichlet(np.ones(len(absent)), size=len(r)) * possible
            r = 0.5 * (r + noise / noise.sum(axis=1, keepdims=True))
        return r


def maximise(
    labelled: Fit, x_labelled: Any, labels: Labels, x: Any, weights: np.ndarray, n_init: int, rng: np.random.Generator
) -> EMFit:
    """The maximum of J from several starts.

    Parameters
    ----------
    labelled : Fit
        Of the labelled rows, by the routes of `ROUTES`.
    x_labelled, labels : data in the family's form, Labels
        The labelled rows.
    x, weights : data in the family's form, array (n,)
        The unlabelled rows and their weights, positive.
    n_init : int
        Starts: the first from the labelled rows' fit, the others from random class weights.
    rng : numpy Generator

    Returns
    -------
    EMFit
        The best of them.
    """
    _check_bounded(labelled)
    mixture = _Mixture(labelled, x_labelled, labels, x, weights)
    n_classes = len(labelled.classes)
    best: EMFit | None = None
    for start in range(n_init):
        r = mixture.from_labelled(rng) if start == 0 else None
        if r is None:
            r = rng.dirichlet(np.ones(n_classes), size=len(weights))
        found = mixture.run(r)
        if best is None or found.trace[-1] > best.trace[-1]:  # type: ignore[index]
            best = found
    assert best is not None
    unseen = labelled.classes[labelled.count == 0]
    if len(unseen) > 1:
        warnings.warn(
            f"the classes {unseen.tolist()[:10]} have no labelled row: they are clusters that EM found, and which is "
            "which is arbitrary. Label a row of each",
            UnlabelledRowsWarning,
            stacklevel=5,
        )
    warn_if_pulled(labelled, best, x_labelled, labels, float(weights.sum()))
    return best


def warn_if_pulled(labelled: Fit, fit: Fit, x: Any, labels: Labels, weight: float) -> None:
    """Warn where unlabelled rows outweigh the labelled and make the labels improbable.

    The conditional log probability of each label under EM, which has seen it, is compared with exact leave-one-out from
    the labelled rows alone, which has not: a comparison that favours EM.
    """
    own = np.ones(len(labels.codes)) if labels.weights is None else labels.weights
    if weight <= class_count(labels, len(labelled.classes)).sum():
        return
    try:
        alone = labelled.loo(x, labels).conditional
    except (UndefinedNumberError, NotImplementedError):
        return
    joint = fit.log_joint(x)
    at = np.arange(len(own)), labels.codes
    with np.errstate(invalid="ignore"):
        together = joint[at] - logsumexp(joint)
        loss = alone - together
    use = np.isfinite(loss)
    own, loss = own[use], loss[use]
    if len(loss) < 2:
        return
    mean = np.average(loss, weights=own)
    error = np.sqrt(np.average((loss - mean) ** 2, weights=own) / (len(loss) - 1))
    if mean > max(FAR, FAR_ERRORS * error):
        warnings.warn(
            f"the unlabelled rows (weight {weight:g}) outweigh the labelled ones ({own.sum():g}) and pull the fit away "
            f"from them: the log loss of the labels rises from {-np.average(alone[use], weights=own):.3g} "
            f"(leave-one-out from the labelled rows alone) to {-np.average(together[use], weights=own):.3g} nats. The "
            "clusters of x are not the classes, or the columns are not independent. Lower unlabelled_weight, or leave "
            "the unlabelled rows out",
            UnlabelledRowsWarning,
            stacklevel=6,
        )
