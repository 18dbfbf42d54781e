"""A feature part of a fit whose posterior is draws: NUTS, or importance sampling.

It has the interface of `bayesgen.fit.FeatureFit`. Class probabilities are independent of the parameters a posteriori,
so they stay a closed form (unless their own prior is none): what is averaged over draws is p(x | y, parameters).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen import importance, nuts
from bayesgen._random import generator
from bayesgen.class_prior import ClassPrior
from bayesgen.exceptions import SamplingWarning, UndefinedNumberError
from bayesgen.families.base import Elsewhere, Family, Problem
from bayesgen.fit import DRAW_CELLS, FeatureFit, _Value, read_only
from bayesgen.importance import ImportanceOptions
from bayesgen.nuts import Diagnostics, Draws, NUTSOptions
from bayesgen.own_priors import OwnPrior, WithOwnPrior

__all__ = ["SampledClasses", "SampledFeatures"]

ONE_LATENT, FEW_LATENT = 64, 256  # hyperparameter draws that predictions average over
MOST_DRAWN = 2.0**31  # bytes of draws that a run may keep


@dataclass(frozen=True, eq=False)
class _Sampled(_Value):
    """What draws of class probabilities and of parameters share: the run is made once, when first needed."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)  # the draws too: they took a run to make


@dataclass(frozen=True, eq=False)
class SampledClasses(_Sampled):
    """Draws of class probabilities that have a prior of their own.

    Parameters
    ----------
    class_prior : ClassPrior
    count : array (K,)
        Weight of the rows of each class.
    options : NUTSOptions
    seed : int
    """

    class_prior: ClassPrior
    count: np.ndarray
    options: NUTSOptions
    seed: int

    @cached_property
    def draws(self) -> Draws:
        """The NUTS run."""
        out = nuts.run(nuts.class_form, (self.class_prior, self.count), self.options, self.seed)
        nuts.warn_doubtful(nuts.diagnose(out))
        return out

    @cached_property
    def log_prob(self) -> np.ndarray:
        """Draws of ln phi, (S, K)."""
        with np.errstate(divide="ignore"):
            return read_only(np.log(_flat(self.draws.sites["class_prob"])))


@dataclass(frozen=True, eq=False)
class SampledFeatures(_Sampled):
    """p(x | y) learned by draws; see `bayesgen.fit.FeatureFit`.

    Parameters
    ----------
    stated : Family
        The family with its shapes; its hyperparameters are the conjugate prior, or what the own prior starts from.
    stats : NamedTuple
        Sufficient statistics.
    route : {"nuts", "importance"}
    own : OwnPrior or None
        A prior without a closed form, as stated.
    options : NUTSOptions or ImportanceOptions
    seed : int
    rows : tuple (ClassPrior, x, codes, weights) or None
        What the rows form needs.
    proposal : Family or None
        Conjugate prior whose posterior proposes in importance sampling; None: `stated`.
    """

    stated: Family
    stats: Any
    route: str
    own: OwnPrior | None
    options: NUTSOptions | ImportanceOptions
    seed: int
    rows: Any = None
    proposal: Family | None = None

    # ---- the prior

    @cached_property
    def base(self) -> Family:
        """The family with its fixed hyperparameters resolved."""
        return self._conjugate.prior

    @cached_property
    def _conjugate(self) -> FeatureFit:
        """The closed-form fit of the stated prior; it learns what the prior asks of the evidence."""
        return FeatureFit(self.stated, self.stats, "exact")

    @property
    def learned(self) -> Any:
        """See `FeatureFit.learned`."""
        return self._conjugate.learned

    @cached_property
    def own_prior(self) -> OwnPrior | None:
        """The own prior, resolved."""
        return None if self.own is None else self.own.resolve(self.stated, self.stats)

    @property
    def prior(self) -> Any:
        """The prior as a family value, or as the program's prior."""
        if self.own_prior is None:
            return self.base
        return WithOwnPrior(self.base, self.own_prior, self.base.n_classes, self.base.n_features)

    @property
    def conjugate(self) -> FeatureFit | None:
        """The closed form of the same posterior, if there is one."""
        return self._conjugate if self.own is None else None

    def _closed(self, what: str) -> FeatureFit:
        out = self.conjugate
        if out is None:
            raise UndefinedNumberError(
                f"there is no closed form of {what} under this prior: {type(self.own).__name__} is not conjugate. The "
                "draws are in to_arviz()"
            )
        return out

    @property
    def posterior(self) -> Any:
        """The conjugate posterior; `UndefinedNumberError` if the prior is not conjugate."""
        return self._closed("the posterior").posterior

    @cached_property
    def _latent(self) -> tuple[dict[str, Any], Any]:
        if self.own_prior is None:
            return {}, None
        return importance.latent_sites(self.own_prior, self.base)

    @property
    def _one_number(self) -> bool:
        """Whether a single random number, integrated by quadrature, makes the parameters conjugate."""
        sites, given = self._latent
        return given is not None and [np.shape(s["value"]) for s in sites.values()] == [()]

    @property
    def form(self) -> str:
        """The form of the posterior that is sampled."""
        given = self._latent[1]
        asked = self.options.likelihood if isinstance(self.options, NUTSOptions) else "auto"
        if asked == "auto":
            return "statistics" if given is None else "marginal"
        if asked == "marginal" and given is None:
            raise ValueError(
                "likelihood='marginal' integrates parameters out given random hyperparameters, and none are: "
                "inference='exact' integrates them out in closed form"
                if self.own is None
                else "likelihood='marginal' needs parameters that are conjugate given hyperparameters; this prior has "
                "none: use 'statistics'"
            )
        return asked

    # ---- the run

    @cached_property
    def _run(self) -> tuple[Draws, float | None, float | None]:
        """Draws of the sites, with the k-hat and effective size of importance weights."""
        if isinstance(self.options, ImportanceOptions):
            found = self._importance(self.options)
            if found is not None:
                return found
            return self._nuts(self.options.fallback), None, None
        return self._nuts(self.options), None, None

    @property
    def draws(self) -> Draws:
        """Draws of the sites of the program."""
        return self._run[0]

    def _check_proper(self) -> None:
        problem = self.base.improper(np.ones(self.base.n_classes, dtype=bool), strict=True)
        if self.own is None and problem is not None:
            raise UndefinedNumberError(
                f"inference={self.route!r} draws from the prior's program, and this prior is improper: state a proper "
                "one, or use inference='exact'"
            )

    def _nuts(self, options: NUTSOptions) -> Draws:
        self._check_proper()
        form, own, base = self.form, self.own_prior, self.base
        if form != "marginal":
            self._check_size(options)
        if form == "rows":
            out = nuts.run(nuts.rows_form, self._rows_args(), options, self.seed)
        elif form == "marginal":
            stats = base.compress(self.stats, self._latent[1])
            out = nuts.run(nuts.marginal_form, (own, base, stats), options, self.seed)
        else:
            chart = self._reference.chart()
            known = own is None or importance.has_density(own, base)
            if chart is not None and known:
                out = nuts.run(
                    nuts.chart_form, (base if own is None else own, base, chart, self.stats), options, self.seed
                )
            else:
                out = nuts.run(nuts.statistics_form, (self.prior, base, self.stats), options, self.seed)
        nuts.warn_doubtful(nuts.diagnose(out))
        return out

    def _rows_args(self) -> tuple[Any, ...]:
        if self.rows is None:
            raise ValueError(
                "likelihood='rows' needs the rows themselves, which are not kept: it works with fit, not after "
                "partial_fit, merge, forget or from_statistics. Use 'statistics', which is the same posterior"
            )
        class_prior, x, y, weights = self.rows
        return (class_prior, self.prior, self.base, x, y) + (() if weights is None else (weights,))

    def _check_size(self, options: NUTSOptions) -> None:
        size = sum(np.prod(np.shape(v)) for v in self.base.variables(self.base.mean()).values())
        drawn = 8.0 * size * options.num_chains * options.num_samples
        if drawn <= MOST_DRAWN:
            return
        advice = (
            "this prior is conjugate, and inference='exact' is the same posterior in closed form"
            if self.own is None
            else "use fewer chains or draws"
        )
        raise ValueError(
            f"NUTSOptions asks for {options.num_chains} x {options.num_samples} draws of {size:.3g} numbers, "
            f"{drawn / 2**30:.0f} GiB: {advice}"
        )

    def _importance(self, options: ImportanceOptions) -> tuple[Draws, float, float] | None:
        """Weighted independent draws; None where they are not to be trusted."""
        self._check_proper()
        own, base = self.own_prior, self.base
        if own is None:
            drawn = self._closed("the posterior").posterior.draw(self.seed, options.num_samples)
            return importance.independent(base.variables(drawn), 0.0), -np.inf, float(options.num_samples)
        given = self._latent[1]
        if self._one_number:
            rng = generator(self.seed)
            grid = self.quadrature
            values = {grid.site: grid.draw(rng, options.num_samples)}
            return importance.independent(values, 0.0), -np.inf, float(options.num_samples)
        if given is not None:
            stats = base.compress(self.stats, given)
            args = (own, base, stats)
            found, size = importance.hyperparameters(nuts.marginal_form, args, options.num_samples, self.seed)
            if found.values is None:
                self._warn_fallback(f"there are {size} random hyperparameters, too many for importance sampling")
                return None
            values = found.values
        elif importance.has_density(own, base):
            proposals = [base, base.weak()] if self.proposal is None else [self.proposal.resolve(self.stats)]
            for proposal in proposals:
                found = importance.parameters(own, proposal, self.stats, options.num_samples, self.seed)
                if found.khat <= importance.MOST_KHAT:
                    break
            values = base.variables(found.values) if found.khat <= importance.MOST_KHAT else {}
        else:
            raise ValueError(
                "inference='importance' needs the density of the parameters themselves: the sites of the prior must be "
                f"{sorted(base.dims())}, or hyperparameters given which the family is conjugate. Use inference='nuts'"
            )
        if not found.khat <= importance.MOST_KHAT:
            self._warn_fallback(f"the weights have a Pareto k-hat of {found.khat:.2f}, above {importance.MOST_KHAT}")
            return None
        return importance.independent(values, found.seconds), found.khat, found.ess

    def _warn_fallback(self, why: str) -> None:
        warnings.warn(f"importance sampling is not to be trusted here: {why}. NUTS is used instead", SamplingWarning, 2)

    @cached_property
    def quadrature(self) -> importance.Quadrature:
        """The posterior of the only hyperparameter on a grid."""
        assert self.own_prior is not None
        return importance.quadrature(self.own_prior, self.base, self.stats, next(iter(self._latent[0].values())))

    @property
    def diagnostics(self) -> Diagnostics | None:
        """Convergence of the NUTS run; None for independent draws."""
        return nuts.diagnose(self.draws) if self.draws.stats else None

    @property
    def khat(self) -> float | None:
        """Pareto k-hat of importance weights; None after NUTS."""
        return self._run[1]

    @property
    def importance_ess(self) -> float | None:
        """Effective number of independent draws; None after NUTS."""
        return self._run[2]

    # ---- draws as parameters

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        """Values by site, chains end to end: (S, ...)."""
        return read_only({name: _flat(v) for name, v in self.draws.sites.items()})

    @property
    def _marginal(self) -> bool:
        return not set(self.base.dims()) <= set(self.draws.sites)

    @cached_property
    def _params(self) -> Any:
        """Parameters with a leading axis of draws."""
        return read_only(self._reference.from_variables({k: self._values[k] for k in self.base.dims()}))

    @property
    def _reference(self) -> Any:
        return self.base.condition(self.stats)

    def _given(self, s: int) -> Any:
        """The conjugate posterior at hyperparameter draw s."""
        assert self.own_prior is not None
        given = self.own_prior.given(self.base, {k: v[s] for k, v in self._values.items()})
        return given.condition(self.stats)

    @cached_property
    def _representative(self) -> np.ndarray:
        """Hyperparameter draws that predictions average over: evenly spaced in the draws, or in the order of one."""
        n = len(next(iter(self._values.values())))
        varying = [v for k, v in self._values.items() if k in self._latent[0]]
        if len(varying) == 1 and varying[0].ndim == 1:
            at = ((np.arange(ONE_LATENT) + 0.5) / ONE_LATENT * n).astype(int)
            return np.argsort(varying[0], kind="stable")[np.unique(at)]
        return np.unique(((np.arange(FEW_LATENT) + 0.5) / FEW_LATENT * n).astype(int))

    def posterior_params(self, rng: np.random.Generator, n: int) -> Any:
        """Draws of the parameters from the posterior, n of them along a leading axis; in order if there are just n."""
        size = len(next(iter(self._values.values())))
        pick = np.arange(size) if n == size else rng.permutation(size)[:n] if n < size else rng.integers(0, size, n)
        if not self._marginal:
            return type(self._params)(*(p[pick] for p in self._params))
        each = [self._given(int(s)).draw(rng, 1) for s in pick]
        return type(each[0])(*(np.concatenate(parts) for parts in zip(*each, strict=True)))

    @cached_property
    def params(self) -> Any:
        """The posterior mean of the parameters on their natural scales."""
        if self._marginal:
            means = [self.base.variables(self._given(int(s)).mean()) for s in self._representative]
            mean = {k: np.mean([m[k] for m in means], axis=0) for k in means[0]}
        else:
            mean = {k: self._values[k].mean(axis=0) for k in self.base.dims()}
        return read_only(self._reference.from_variables(mean))

    # ---- the interface of FeatureFit

    def problem(self, needed: np.ndarray) -> Problem | None:
        """See `FeatureFit.problem`; makes the run if it has not been made."""
        bad = [k for k, v in self.draws.sites.items() if not np.isfinite(v).all()]
        return Problem(f"draws of {bad[0]} are not finite: the sampler failed; see diagnostics_") if bad else None

    def draws_problem(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.draws_problem`."""
        return self.problem(everyone)

    def log_prob(self, x: Any) -> np.ndarray:
        """Log of the mean over draws of p(x | y = k, parameters), (n, K)."""
        out, count = None, 0
        for part in self._log_prob_parts(x):
            total, m = np.logaddexp.reduce(part, axis=0), len(part)
            out, count = (total if out is None else np.logaddexp(out, total)), count + m
        return out - np.log(count)

    def _log_prob_parts(self, x: Any) -> Any:
        """Log densities (s, n, K) of some draws after others, in pieces of bounded memory."""
        with np.errstate(all="ignore"):
            if self._marginal:
                for s in self._representative:
                    yield self._given(int(s)).log_predictive(x)[None]
                return
            n_rows = x.shape[0]
            size = len(self._params[0])
            step = max(1, DRAW_CELLS // max(1, self.base.n_classes * (n_rows + self.base.n_features)))
            for i in range(0, size, step):
                part = type(self._params)(*(p[i : i + step] for p in self._params))
                yield self.base.draw_log_prob(part, x)

    def draw_log_prob(self, rng: np.random.Generator, n: int, x: Any) -> np.ndarray:
        """See `FeatureFit.draw_log_prob`."""
        with np.errstate(all="ignore"):
            return self.base.draw_log_prob(self.posterior_params(rng, n), x)

    def sample(self, y: np.ndarray, rng: np.random.Generator, lengths: Any) -> Any:
        """Rows given classes: each row from a draw of its own."""
        params = self.posterior_params(rng, len(y))
        lengths = np.broadcast_to(np.asarray(0 if lengths is None else lengths), (len(y),))
        rows = [
            self.base.sample(type(params)(*(p[i] for p in params)), y[i : i + 1], rng, lengths[i : i + 1])
            for i in range(len(y))
        ]
        return np.concatenate(rows) if rows else np.zeros((0, self.base.n_features))

    def check_evidence(self, everyone: np.ndarray) -> Problem | None:
        """See `FeatureFit.check_evidence`."""
        return None if self.own is not None else self._closed("the evidence").check_evidence(everyone)

    def log_evidence(self) -> float:
        """Log of p(X | y): in closed form, or by quadrature over one hyperparameter."""
        if self._one_number:
            return self.quadrature.log_evidence
        return self._closed("the evidence").log_evidence()

    def log_loo(self, x: Any, labels: Any, elsewhere: Elsewhere = None) -> np.ndarray:
        """See `FeatureFit.log_loo`: of the closed form of the same posterior."""
        return self._closed("leave-one-out").log_loo(x, labels, elsewhere)


def _flat(v: np.ndarray) -> np.ndarray:
    return v.reshape(-1, *v.shape[2:])
