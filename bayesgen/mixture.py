r"""NUTS with rows without a label, whose labels are summed out.

Labelled rows enter by their statistics; each unlabelled row adds
:math:`w_u\ln\sum_k\phi_k\,p(x_u \mid \theta_k)`, so a step costs one scoring of the unlabelled rows. Class
probabilities and parameters then depend on each other a posteriori, and predictions average
:math:`\phi_k\,p(x \mid \theta_k)` over joint draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen import importance, nuts
from bayesgen._math import logsumexp
from bayesgen._random import generator
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Family, dense
from bayesgen.fit import DRAW_CELLS, FeatureFit, Fit, _n_rows, add_class, read_only
from bayesgen.nuts import Draws, NUTSOptions
from bayesgen.own_priors import record
from bayesgen.sampled import SampledFeatures

__all__ = ["MixtureFit", "SampledMixture", "mixture_site", "sampled_mixture"]


def mixture_site(class_prob: Any, family: Any, params: Any, x: Any, weights: Any = 1.0) -> None:
    """Site ``x_unlabelled``: rows with their labels summed out, as a factor."""
    import jax.numpy as jnp
    import numpyro
    from jax.scipy.special import logsumexp

    joint = jnp.log(class_prob) + family.log_prob(params, x)
    numpyro.factor("x_unlabelled", weights * logsumexp(joint, axis=-1))


def _likelihood(class_prob: Any, base: Family, params: Any, known: tuple[Any, Any], unknown: tuple[Any, Any]) -> None:
    """Sites of the labelled rows, by count and statistics, and of the unlabelled ones."""
    import jax.numpy as jnp
    import numpyro

    count, stats = known
    labels = jnp.where(count > 0, count * jnp.log(jnp.where(count > 0, class_prob, 1.0)), 0.0).sum()
    numpyro.factor("labelled", labels + base.log_likelihood(params, stats))
    mixture_site(class_prob, base, params, *unknown)


def mixture_form(class_prior: Any, prior: Any, base: Family, known: Any, unknown: Any) -> None:
    """The program with its prior sites."""
    from numpyro.handlers import trace

    class_prob = class_prior.sample()
    with trace() as tr:
        params = prior.prior()
    record(base, params, tr)
    _likelihood(class_prob, base, params, known, unknown)


def mixture_chart_form(class_prior: Any, density: Any, base: Family, chart: Any, known: Any, unknown: Any) -> None:
    """The program in the coordinates of a chart; see `nuts.chart_form`."""
    class_prob = class_prior.sample()
    params = nuts.chart_sites(density, base, chart)
    _likelihood(class_prob, base, params, known, unknown)


@dataclass(frozen=True, eq=False)
class SampledMixture(SampledFeatures):
    """See `bayesgen.sampled.SampledFeatures`; the draws hold the class probabilities too.

    Parameters
    ----------
    class_prior : ClassPrior
    count : array (K,)
        Weight of the labelled rows of each class.
    unknown : tuple (x, weights)
        The unlabelled rows, dense, in the family's form.
    """

    class_prior: Any = None
    count: Any = None
    unknown: Any = None

    def _closed(self, what: str) -> FeatureFit:
        raise UndefinedNumberError(
            f"there is no closed form of {what} with unlabelled rows: the labels that are not known make it a mixture. "
            "The draws are in to_arviz()"
        )

    @property
    def conjugate(self) -> None:
        """There is no closed form."""
        return None

    @property
    def form(self) -> str:
        """See `SampledFeatures.form`: labelled rows are statistics."""
        if self.options.likelihood == "marginal":  # type: ignore[union-attr]
            raise ValueError(
                "likelihood='marginal' integrates parameters out, which unlabelled rows do not allow: use 'auto'"
            )
        return "statistics"

    @property
    def _one_number(self) -> bool:
        return False

    @property
    def _marginal(self) -> bool:
        return False

    def _nuts(self, options: NUTSOptions) -> Draws:
        self._check_proper()
        assert self.form
        self._check_size(options)
        own, base = self.own_prior, self.base
        known = self.count, self.stats
        chart = self._centre().chart()
        if chart is not None and (own is None or importance.has_density(own, base)):
            density = base if own is None else own
            args = (self.class_prior, density, base, chart, known, self.unknown)
            out = nuts.run(mixture_chart_form, args, options, self.seed)
        else:
            out = nuts.run(mixture_form, (self.class_prior, self.prior, base, known, self.unknown), options, self.seed)
        nuts.warn_doubtful(nuts.diagnose(out))
        return out

    def _centre(self) -> Any:
        """A conjugate posterior near the draws, for coordinates: unlabelled rows as the labelled ones place them."""
        x, weights = self.unknown
        log_class = self.class_prior.log_prob("exact", self.count) if self.class_prior.function is None else 0.0
        joint = log_class + self.base.condition(self.stats).log_predictive(x)
        r = weights[:, None] * np.exp(joint - logsumexp(joint, keepdims=True))
        return self.base.condition(self.base.merge(self.stats, self.base.stats(x, r)))

    @cached_property
    def log_class_draws(self) -> np.ndarray:
        """Draws of ln phi, (S, K), in the order of the parameters'."""
        with np.errstate(divide="ignore"):
            return read_only(np.log(self._values["class_prob"]))

    def log_joint(self, x: Any) -> np.ndarray:
        """Log of the mean over draws of phi_k p(x | theta_k), (n, K)."""
        out, count = None, 0
        for part in self._log_prob_parts(x):
            joint = add_class(self.log_class_draws[count : count + len(part), None, :], part)
            total, count = np.logaddexp.reduce(joint, axis=0), count + len(part)
            out = total if out is None else np.logaddexp(out, total)
        return out - np.log(count)


@dataclass(frozen=True, eq=False)
class _ClassDraws:
    """Class probabilities of a mixture, in the form of `bayesgen.sampled.SampledClasses`."""

    mixture: SampledMixture

    @property
    def draws(self) -> Draws:
        """The run."""
        return self.mixture.draws

    @property
    def log_prob(self) -> np.ndarray:
        """Draws of ln phi, (S, K)."""
        return self.mixture.log_class_draws


@dataclass(frozen=True, eq=False)
class MixtureFit(Fit):
    """A fit whose class probabilities and parameters are drawn together."""

    def log_joint(self, x: Any, log_class: np.ndarray | None = None) -> np.ndarray:
        """See `Fit.log_joint`; with other class probabilities, theirs times the mean of p(x | theta_k)."""
        if log_class is not None:
            return super().log_joint(x, log_class)
        self.check_predictive()
        return self.features.log_joint(x)

    def log_scores(self, x: Any, log_class: np.ndarray | None = None) -> np.ndarray:
        """See `Fit.log_scores`."""
        if log_class is not None:
            return super().log_scores(x, log_class)
        joint = self.log_joint(x)
        with np.errstate(invalid="ignore"):
            return add_class(self.log_class, self.powered(joint - self.log_class))

    def relative_scores(self, x: Any, log_class: np.ndarray | None = None) -> np.ndarray:
        """See `Fit.relative_scores`."""
        return self.log_scores(x, log_class)

    def draw_log_scores(self, x: Any, n: int, seed: Any) -> Iterator[np.ndarray]:
        """See `Fit.draw_log_scores`."""
        self.check_posterior()
        rng = generator(seed)
        step = max(1, min(n, DRAW_CELLS // max(1, len(self.classes) * (self.features.stated.n_features + _n_rows(x)))))
        for i in range(0, n, step):
            params, log_class = self._draw(rng, min(step, n - i))
            with np.errstate(all="ignore"):
                features = self.features.base.draw_log_prob(params, x)
            yield add_class(log_class[:, None, :], self.powered(features))

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Any, np.ndarray]:
        """Joint draws of the parameters and of ln phi."""
        log_class, params = self.features.log_class_draws, self.features._params
        pick = rng.integers(0, len(log_class), n)
        return type(params)(*(p[pick] for p in params)), log_class[pick]

    def sample(self, n: int, seed: Any, lengths: Any) -> tuple[Any, np.ndarray]:
        """See `Fit.sample`: each row from a joint draw of its own."""
        self.check_predictive()
        rng = generator(seed)
        params, log_class = self._draw(rng, n)
        edges = np.cumsum(np.exp(log_class), axis=1)
        codes = (rng.random((n, 1)) * edges[:, -1:] > edges).sum(axis=1)
        lengths = np.broadcast_to(np.asarray(0 if lengths is None else lengths), (n,))
        base = self.features.base
        rows = [
            base.sample(type(params)(*(p[i] for p in params)), codes[i : i + 1], rng, lengths[i : i + 1])
            for i in range(n)
        ]
        return np.concatenate(rows), codes


def sampled_mixture(labelled: Fit, x: Any, weights: np.ndarray) -> MixtureFit:
    """The posterior of labelled rows and of unlabelled ones (x, weights), by NUTS.

    Parameters
    ----------
    labelled : Fit
        Of the labelled rows, by ``"nuts"``.
    x, weights : data in the family's form, array (n,)
        The unlabelled rows.

    Returns
    -------
    MixtureFit
        The run is made when it is first needed.
    """
    features = labelled.features
    given = {f.name: getattr(features, f.name) for f in dataclasses.fields(SampledFeatures)}
    unknown = np.asarray(dense(x)), weights
    mixture = SampledMixture(**given, class_prior=labelled.class_prior, count=labelled.count, unknown=unknown)
    given = {f.name: getattr(labelled, f.name) for f in dataclasses.fields(Fit)}
    return MixtureFit(**given | {"features": mixture, "sampled_classes": _ClassDraws(mixture)})
