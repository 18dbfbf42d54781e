"""The feature part of a fit whose training rows have missing cells, under a full covariance; see `bayesgen.missing`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen._math import two_sum
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Family, Problem
from bayesgen.families.normal_statistics import no_closed_form, recentre
from bayesgen.fit import FeatureFit, read_only
from bayesgen.missing import Mode, expected_stats, maximise
from bayesgen.sampled import SampledFeatures

__all__ = ["IncompleteDraws", "IncompleteFit", "incomplete"]


def incomplete(features: FeatureFit | SampledFeatures) -> Any:
    """The feature part of a fit whose statistics are of rows with missing cells; raises for routes without one."""
    route = features.route
    if route not in ("map", "mle", "nuts"):
        advice = "'map' (or 'mle'), found by EM, or 'nuts', the whole posterior by draws"
        why = "has no closed form" if route != "unbiased" else "is not defined"
        if route == "importance":
            why = "has nothing to propose from"
        raise UndefinedNumberError(
            f"training rows have missing cells, and inference={route!r} {why} with them under a full covariance: use "
            f"inference={advice}. GaussianNB has every route"
        )
    kind = IncompleteDraws if isinstance(features, SampledFeatures) else IncompleteFit
    return kind(**{f.name: getattr(features, f.name) for f in dataclasses.fields(features)})


@dataclass(frozen=True, eq=False)
class IncompleteFit(FeatureFit):
    """Parameters by EM; see `bayesgen.fit.FeatureFit`."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)  # what EM found, too

    @cached_property
    def _mode(self) -> Mode:
        return read_only(maximise(self.prior if self.route == "map" else self.stated, self.stats, self.route))

    @property
    def trace(self) -> np.ndarray:
        """See `Mode`."""
        return self._mode.trace

    @property
    def posterior(self) -> Any:
        """There is none in closed form."""
        no_closed_form("the posterior")

    @property
    def params(self) -> Any:
        """See `FeatureFit.params`."""
        return self._mode.params

    def problem(self, needed: np.ndarray) -> Problem | None:
        """See `FeatureFit.problem`."""
        if self._mode.problem is not None:
            return self._mode.problem
        proper = self.route == "map" and self.prior.improper(needed, strict=True) is None
        return None if proper else self.stated.undefined(self.params, self.stats, needed)

    def draws_problem(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.draws_problem`."""
        if self.route == "mle":
            return super().draws_problem(everyone)
        return Problem(
            "with missing cells in training rows there are no draws from the posterior in closed form: use "
            "inference='nuts'"
        )

    def check_evidence(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.check_evidence`: there is none."""
        no_closed_form("the evidence")


@dataclass(frozen=True, eq=False)
class IncompleteDraws(SampledFeatures):
    """Draws given the observed cells; see `bayesgen.sampled.SampledFeatures`."""

    @property
    def conjugate(self) -> FeatureFit | None:
        """There is no closed form of this posterior."""
        return None

    def _closed(self, what: str) -> FeatureFit:
        no_closed_form(what)

    @property
    def form(self) -> str:
        """The statistics form: the only one."""
        asked = self.options.likelihood  # type: ignore[union-attr]
        if asked not in ("auto", "statistics"):
            raise ValueError(
                f"likelihood={asked!r} is for complete rows; with missing cells use 'statistics' (or 'auto'), which "
                "integrates them out exactly"
            )
        return "statistics"

    @cached_property
    def _reference(self) -> Family:
        """The conjugate posterior given rows completed at the mode."""
        mode = maximise(self.base, self.stats, "map").params
        centre, low = mode.mean, mode.mean_low
        expected, _ = expected_stats(recentre(self.stats, centre, low), mode._replace(mean=np.zeros_like(centre)))
        mean, rest = two_sum(centre, low + expected.mean)
        return self.base.condition(expected._replace(mean=mean, mean_low=rest))

    def check_evidence(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.check_evidence`: there is none."""
        no_closed_form("the evidence")

    def log_evidence(self) -> float:
        """See `FeatureFit.log_evidence`: there is none."""
        no_closed_form("the evidence")
