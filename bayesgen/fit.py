"""Routes: what is put into Bayes' rule, from sufficient statistics.

A fit is a value: the prior as stated, the statistics, and the route. Everything else is computed from
these when asked for, and cached. Routes: ``"mle"``, ``"unbiased"``, ``"map"``, ``"mean"`` plug parameters in;
``"exact"`` integrates them out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen._kernels import blas_beside, map_rows
from bayesgen._math import logsumexp
from bayesgen._random import generator
from bayesgen._values import python_value
from bayesgen.class_prior import ClassPrior
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Elsewhere, Family, Names, Problem, column_name, parts_of
from bayesgen.learning import LearnedPrior
from bayesgen.leave_one_out import LooResult, best_power

__all__ = ["ROUTES", "SAMPLED", "FeatureFit", "Fit", "LooResult", "MixedFit"]

ROUTES = ("mle", "unbiased", "map", "mean", "exact")  # in closed form
SAMPLED = ("nuts", "importance")
NO_POSTERIOR = "inference={route!r} has no posterior to draw from; use 'map', 'mean' or 'exact'"
DRAW_CELLS = 1 << 22  # numbers held at once while posterior draws are scored


def read_only(value: Any) -> Any:
    """The same value, its arrays locked: what was learned is handed out, and is not to be changed."""
    for array in arrays_of(value):
        array.flags.writeable = False
    return value


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """The arrays of nested tuples and families."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, Family):
        for field in dataclasses.fields(value):  # type: ignore[arg-type]
            yield from arrays_of(getattr(value, field.name))


class _Value:
    """A frozen value whose cached properties are recomputed, not stored, when it is copied or pickled."""

    def relative_log_prob(self, x: Any) -> np.ndarray:
        """`log_prob` up to a term of each row that all classes share, (n, K)."""
        out: np.ndarray = self.log_prob(x)  # type: ignore[attr-defined]
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FeatureFit(_Value):
    """p(x | y) learned by one family.

    Parameters
    ----------
    stated : Family
        The prior as stated, with its shapes; hyperparameters may be None.
    stats : NamedTuple
        Sufficient statistics.
    route : str
        One of `ROUTES`.
    """

    stated: Family
    stats: Any
    route: str

    @cached_property
    def prior(self) -> Family:
        """The prior with every hyperparameter learned or resolved."""
        stated = self.stated if self._learned is None else self._learned[0]
        return read_only(stated.resolve(self.stats))

    @cached_property
    def _learned(self) -> tuple[Family, LearnedPrior] | None:
        return self.stated.learn(self.stats)

    @property
    def learned(self) -> LearnedPrior | None:
        """What maximising the evidence gave; None where nothing was to be learned."""
        return None if self._learned is None else self._learned[1]

    @cached_property
    def posterior(self) -> Family:
        """The conjugate posterior."""
        with np.errstate(all="ignore"):
            return read_only(self.prior.condition(self.stats))

    @cached_property
    def params(self) -> Any:
        """The route's parameters; under ``"exact"`` the posterior mean."""
        with np.errstate(all="ignore"):
            if self.route == "mle":
                params = self.stated.mle(self.stats)
            elif self.route == "unbiased":
                params = self.stated.mle(self.stats, unbiased=True)  # type: ignore[call-arg]
            else:
                params = self.posterior.mode() if self.route == "map" else self.posterior.mean()
        # Column order makes the transposed tables of matrix products contiguous.
        return read_only(type(params)(*(np.asfortranarray(p) if np.ndim(p) == 2 else p for p in params)))

    def problem(self, needed: np.ndarray) -> Problem | None:
        """Why rows cannot be scored, for the needed classes (K,); None if they can."""
        if self.route == "exact":
            problem = self.posterior.improper(needed)
        else:
            problem = self.stated.undefined(self.params, self.stats, needed)
        if problem is None or self.route in ("mle", "unbiased") or self.prior.improper(needed, strict=True) is not None:
            return problem
        if self.route != "exact" and not all(np.isfinite(leaf).all() for leaf in self.params):
            return problem
        # A proper prior has a proper posterior, however near to singular rounding makes it look.
        return None if self.posterior.has_factor() else problem

    def log_prob(self, x: Any) -> np.ndarray:
        """The route's ln p(x | y = k), shape (n, K)."""
        with np.errstate(all="ignore"):
            if self.route == "exact":
                return self.posterior.log_predictive(x)
            return self.stated.log_prob(self.params, x)

    def relative_log_prob(self, x: Any) -> np.ndarray:
        """See `Family.relative_log_prob`."""
        if self.route == "exact":
            return self.log_prob(x)
        with np.errstate(all="ignore"):
            return self.stated.relative_log_prob(self.params, x)

    def draws_problem(self, everyone: np.ndarray) -> Problem | None:
        """Why there are no posterior draws; None if there are."""
        if self.route in ("mle", "unbiased"):
            return Problem(NO_POSTERIOR.format(route=self.route))
        return self.posterior.improper(everyone)

    def check_evidence(self, everyone: np.ndarray) -> Problem | None:
        """Why there is no evidence; None if there is."""
        return self.prior.improper(everyone, strict=True)

    def log_evidence(self) -> float:
        """Log of p(X | y)."""
        with np.errstate(all="ignore"):
            return float(self.prior.log_evidence(self.stats))

    def log_loo(self, x: Any, labels: Any, elsewhere: Elsewhere = None) -> np.ndarray:
        """Exact leave-one-out ln p(x_i | y = k, rest), shape (n, K); see `Family.log_loo`."""
        with np.errstate(all="ignore"):
            return self.prior.log_loo(x, labels, self.stats, *([] if elsewhere is None else [elsewhere]))

    def posterior_params(self, rng: np.random.Generator, n: int) -> Any:
        """Independent draws of the parameters from the posterior, n of them along a leading axis."""
        return self.posterior.draw(rng, n)

    def draw_log_prob(self, rng: np.random.Generator, n: int, x: Any) -> np.ndarray:
        """Log of p(x | y = k, parameters) for n posterior draws, shape (n, rows, K)."""
        with np.errstate(all="ignore"):
            return self.posterior.draw_log_prob(self.posterior_params(rng, n), x)

    def sample(self, y: np.ndarray, rng: np.random.Generator, lengths: Any) -> Any:
        """Rows given classes, from the route's p(x | y)."""
        if self.route == "exact":
            return self.posterior.sample(None, y, rng, lengths)
        return self.stated.sample(self.params, y, rng, lengths)


@dataclass(frozen=True, eq=False)
class MixedFit(_Value):
    """p(x | y) learned by independent blocks, each with a route of its own; data are tuples.

    Parameters
    ----------
    stated : Mixed
        The blocks' priors as stated.
    parts : tuple of FeatureFit or SampledFeatures
        The fit of each block.
    """

    stated: Any
    parts: tuple[Any, ...]

    @property
    def stats(self) -> tuple[Any, ...]:
        """Statistics of each block."""
        return tuple(p.stats for p in self.parts)

    @property
    def prior(self) -> Any:
        """See `FeatureFit.prior`."""
        return self.stated.replace(blocks=tuple(p.prior for p in self.parts))

    @property
    def posterior(self) -> Any:
        """See `FeatureFit.posterior`."""
        return self.stated.replace(blocks=tuple(p.posterior for p in self.parts))

    @property
    def params(self) -> tuple[Any, ...]:
        """See `FeatureFit.params`."""
        return tuple(p.params for p in self.parts)

    @property
    def learned(self) -> None:
        """Each block has its own."""
        return None

    def log_prob(self, x: Any) -> np.ndarray:
        """See `FeatureFit.log_prob`."""
        return sum(p.log_prob(part) for p, part in zip(self.parts, x, strict=True))

    def relative_log_prob(self, x: Any) -> np.ndarray:
        """See `Family.relative_log_prob`."""
        return sum(p.relative_log_prob(part) for p, part in zip(self.parts, x, strict=True))

    def log_evidence(self) -> float:
        """See `FeatureFit.log_evidence`."""
        return sum(p.log_evidence() for p in self.parts)

    def log_loo(self, x: Any, labels: Any, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `FeatureFit.log_loo`."""
        parts = zip(self.parts, x, parts_of(elsewhere, len(self.parts)), strict=True)
        return sum(p.log_loo(part, labels, rest) for p, part, rest in parts)

    def posterior_params(self, rng: np.random.Generator, n: int) -> tuple[Any, ...]:
        """See `FeatureFit.posterior_params`."""
        return tuple(p.posterior_params(rng, n) for p in self.parts)

    def draw_log_prob(self, rng: np.random.Generator, n: int, x: Any) -> np.ndarray:
        """See `FeatureFit.draw_log_prob`."""
        pairs = zip(self.parts, x, strict=True)
        return sum(p.draw_log_prob(rng, n, part) for p, part in pairs)

    def sample(self, y: np.ndarray, rng: np.random.Generator, lengths: Any) -> tuple[Any, ...]:
        """See `FeatureFit.sample`."""
        return tuple(p.sample(y, rng, lengths) for p in self.parts)


@dataclass(frozen=True, eq=False)
class Fit(_Value):
    """p(y) p(x | y) learned from data.

    Parameters
    ----------
    class_prior : ClassPrior
        Prior of the class probabilities.
    count : array (K,)
        Weight of the rows of each class.
    route : str
        Route of the class probabilities.
    features : FeatureFit or MixedFit
        The class-conditional part.
    classes : array (K,)
        Class labels.
    names : array or None
        Column names, for messages.
    block_names : list or None
        Column names of each block of a mixed model.
    sampled_classes : SampledClasses or None
        Draws of class probabilities whose prior has no closed form.
    power : float
        Exponent of p(x | y) in the prediction of the class; see `best_power`.
    """

    class_prior: ClassPrior
    count: np.ndarray
    route: str
    features: Any
    classes: np.ndarray
    names: Any = None
    block_names: Any = None
    sampled_classes: Any = None
    power: float = 1.0

    # ---- undefined numbers

    def explain(self, problem: Problem, names: Names) -> str:
        """The message of a problem, with real class and column names."""
        columns = ", ".join(column_name(j, names) for j in problem.columns[:5])
        more = len(problem.columns) - 5
        columns += f" and {more} more columns" if more > 0 else ""
        label = None if problem.cls is None else repr(python_value(self.classes[problem.cls]))
        return problem.text.format(cls=label, columns=columns)

    def _parts(self) -> list[tuple[Any, Any]]:
        """The feature fits with their column names."""
        if isinstance(self.features, MixedFit):
            return list(zip(self.features.parts, self.block_names, strict=True))
        return [(self.features, self.names)]

    def _raise(self, problem: Problem | None, names: Any, prefix: str = "") -> None:
        if problem is not None:
            raise UndefinedNumberError(prefix + self.explain(problem, names))

    def check_predictive(self, log_class: np.ndarray | None = None) -> None:
        """Raise `UndefinedNumberError` unless rows can be scored, under other class probabilities if given."""
        if log_class is None:
            self._can_score  # noqa: B018
        else:
            self._check_scored(log_class > -np.inf)

    @cached_property
    def _can_score(self) -> bool:
        with blas_beside(self.count.sum()):
            self._check_scored(self.log_class > -np.inf)
        return True

    def _check_scored(self, needed: np.ndarray) -> None:
        for part, names in self._parts():
            self._raise(part.problem(needed), names)

    def check_posterior(self) -> None:
        """Raise unless there are posterior draws: a posterior, and a proper one."""
        everyone = np.ones(len(self.classes), dtype=bool)
        for part, names in self._parts():
            self._raise(part.draws_problem(everyone), names)
        if self.route in ("mle", "unbiased") and self.class_prior.fixed is None:
            raise UndefinedNumberError(NO_POSTERIOR.format(route=self.route))

    # ---- the joint

    @cached_property
    def log_class(self) -> np.ndarray:
        """The route's ln p(y = k), shape (K,)."""
        if self.sampled_classes is not None:
            draws = self.sampled_classes.log_prob
            return read_only(np.logaddexp.reduce(draws, axis=0) - np.log(len(draws)))
        out = self.class_prior.log_prob(self.route, self.count)
        if np.isnan(out).any():
            raise UndefinedNumberError(
                "the class probabilities are undefined (0/0, or no unique mode): no class has weight; "
                "give class_alpha > 0"
            )
        return read_only(out)

    def log_features(self, x: Any) -> np.ndarray:
        """The route's ln p(x | y = k), shape (n, K)."""
        return self.features.log_prob(x)

    def log_joint(self, x: Any, log_class: np.ndarray | None = None) -> np.ndarray:
        """The route's ln p(x, y = k), shape (n, K); a class of probability zero is -inf whatever x."""
        self.check_predictive(log_class)
        return add_class(self.log_class if log_class is None else log_class, self.features.log_prob(x))

    def log_scores(self, x: Any, log_class: np.ndarray | None = None) -> np.ndarray:
        """What the class probabilities are the softmax of: ln p(y = k) + power * ln p(x | y = k), (n, K)."""
        self.check_predictive(log_class)
        return add_class(self.log_class if log_class is None else log_class, self.powered(self.features.log_prob(x)))

    def relative_scores(self, x: Any, log_class: np.ndarray | None = None) -> np.ndarray:
        """`log_scores` up to a term of each row that all classes share, (n, K)."""
        self.check_predictive(log_class)
        with blas_beside(_n_rows(x)):
            features = self.powered(self.features.relative_log_prob(x))
        return add_class(self.log_class if log_class is None else log_class, features)

    def powered(self, features: np.ndarray) -> np.ndarray:
        """Log densities of the features times the power; with power 0 they have no say, even where they are -inf."""
        if self.power == 0.0:
            return np.zeros_like(features)
        return features if self.power == 1.0 else self.power * features

    def log_evidence_parts(self) -> dict[str, float]:
        """Logs of p(y) and of p(X | y)."""
        everyone = np.ones(len(self.classes), dtype=bool)
        for part, names in self._parts():
            self._raise(part.check_evidence(everyone), names, "there is no evidence under an improper prior: ")
        return {
            "y": float(self.class_prior.log_evidence(self.count)),
            "x_given_y": self.features.log_evidence(),
        }

    def loo(self, x: Any, labels: Any, elsewhere: Elsewhere = None) -> LooResult:
        """Exact leave-one-out of the rows x, which must be among those learned.

        If they are not all of them, `elsewhere` gives the statistics of the others; see `Family.log_loo`.
        """
        log_joint = add_class(*self.loo_parts(x, labels, elsewhere))
        joint = log_joint[np.arange(len(labels.codes)), labels.codes]
        with np.errstate(invalid="ignore"):
            return LooResult(log_joint, joint, joint - logsumexp(log_joint))

    def loo_parts(self, x: Any, labels: Any, elsewhere: Elsewhere = None) -> tuple[np.ndarray, np.ndarray]:
        """Leave-one-out ln p(y = k) and ln p(x_i | y = k), (n, K) each; NaN where one does not exist."""
        weights = np.ones(len(labels.codes)) if labels.weights is None else labels.weights
        log_class = self.class_prior.log_loo(labels.codes, weights, self.count)
        features = self.features.log_loo(x, labels, elsewhere)
        features[np.isnan(features).any(axis=1)] = np.nan
        return log_class, features

    def with_best_power(self, x: Any, labels: Any) -> Fit:
        """The fit with the power that predicts each label best from the other rows."""
        weights = np.ones(len(labels.codes)) if labels.weights is None else labels.weights
        return dataclasses.replace(self, power=best_power(*self.loo_parts(x, labels), labels.codes, weights))

    # ---- log odds

    def log_joint_moments(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of the score of each class given parameters, (n, K) each, up to what all share.

        The classes are independent of each other.
        """
        self.check_posterior()
        if self.sampled_classes is not None or any(part.route in SAMPLED for part, _ in self._parts()):
            raise UndefinedNumberError("the posterior of a sampled route has no closed-form log odds: use sample_proba")
        everyone = np.ones(len(self.classes), dtype=bool)
        for part, names in self._parts():
            self._raise(part.posterior.improper(everyone, strict=True), names)
        mean, variance = self.class_prior.log_moments(self.count)
        with np.errstate(all="ignore"):
            x_mean, x_variance = self.features.posterior.log_prob_moments(x)
        return mean + self.power * x_mean, variance + self.power**2 * x_variance

    # ---- draws

    def draw_log_class(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Posterior draws of ln phi, (n, K)."""
        if self.sampled_classes is None:
            return self.class_prior.condition(self.count).draw(rng, n)
        draws = self.sampled_classes.log_prob
        return draws if n == len(draws) else draws[rng.integers(0, len(draws), n)]

    def draw_log_scores(self, x: Any, n: int, seed: Any) -> Iterator[np.ndarray]:
        """Scores of the classes for n posterior draws of the parameters, in pieces (s, rows, K) of bounded memory."""
        self.check_posterior()
        rng = generator(seed)
        n_classes = len(self.classes)
        cells = n_classes * (self.features.stated.n_features + _n_rows(x))
        step = max(1, min(n, DRAW_CELLS // max(1, cells)))
        for i in range(0, n, step):
            size = min(step, n - i)
            log_class = self.draw_log_class(rng, size)[:, None, :]
            yield add_class(log_class, self.powered(self.features.draw_log_prob(rng, size, x)))

    def sample(self, n: int, seed: Any, lengths: Any) -> tuple[Any, np.ndarray]:
        """Independent rows (x, class codes), n of them, from the route's p(x, y)."""
        self.check_predictive()
        rng = generator(seed)
        prob = np.exp(self.log_class)
        codes = rng.choice(len(prob), size=n, p=prob / prob.sum())
        return self.features.sample(codes, rng, lengths), codes


def add_class(log_class: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Log of p(y) p(x | y); a class of probability zero is -inf, and its features are not consulted."""
    never = np.isneginf(log_class)
    if not never.any():
        if log_class.ndim > 1 or features.ndim > 2:
            return log_class + features
        out = np.empty(features.shape)
        map_rows(lambda i, j: np.add(log_class, features[i:j], out=out[i:j]), len(features), features.size)
        return out
    return np.where(never, -np.inf, log_class + np.where(never, 0.0, features))


def _n_rows(x: Any) -> int:
    return x[0].shape[0] if isinstance(x, tuple) else x.shape[0]
