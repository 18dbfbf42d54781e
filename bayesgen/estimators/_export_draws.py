"""Draws of a posterior or a prior for export: in order, in pieces, of all columns or of some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma

from bayesgen._math import safe_log
from bayesgen.class_prior import ClassPrior
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families._all import Bernoulli, Multinomial, Poisson
from bayesgen.fit import Fit

if TYPE_CHECKING:
    from bayesgen.estimators._export_names import Block

__all__ = ["PosteriorDraws", "PriorDraws", "Source", "check_prior", "cut", "hyper_sites", "mean_log", "run_shape"]


def run_shape(fit: Fit, n_chains: int, n_draws: int) -> tuple[int, int]:
    """Chains and draws: those of a NUTS run; else independent draws in chains."""
    runs = [part.draws for part, _ in fit._parts() if hasattr(part, "draws")]
    runs += [] if fit.sampled_classes is None else [fit.sampled_classes.draws]
    chained = [run.shape for run in runs if run.stats]
    if chained:
        return max(chained, key=lambda s: s[0] * s[1])
    return n_chains, n_draws


def hyper_sites(part: Any) -> list[str]:
    """Sites of the draws of a sampled part that are no parameters of the family, nor coordinates for the sampler."""
    if not hasattr(part, "draws"):
        return []
    known = {*part.base.dims(), "class_prob"}
    return [
        site for site in part.draws.sites if site not in known and not site.startswith(("chart_", "log_background"))
    ]


@dataclass(frozen=True, eq=False)
class Source:
    """Draws of the parameters of one block, made in order and in pieces.

    Parameters
    ----------
    block : Block
    family : Family
        What the parameters belong to.
    at : array of int
        Positions of the exported columns in this family.
    hyper : dict of str to array (n, ...)
        Hyperparameters.
    make : callable
        From positions lo and hi to draws lo..hi of the parameters, with a leading axis.
    log_prior : callable, optional
        Of posterior draws: from lo, hi and these draws to the log prior density of each.
    """

    block: Block
    family: Any
    at: np.ndarray
    hyper: dict[str, np.ndarray]
    make: Callable[[int, int], Any]
    log_prior: Callable[[int, int, Any], np.ndarray] | None = None


def narrowed(family: Any, keep: np.ndarray) -> tuple[Any, np.ndarray]:
    r"""The family of some columns alone, and their positions in it.

    Columns of `Bernoulli` and `Poisson` are independent. Of a Dirichlet, the other words are summed into one:
    :math:`(\theta_1, ..., \theta_m, 1-\sum_j\theta_j) \sim \mathrm{Dir}(\alpha_1, ..., \alpha_m, \sum_{j>m}\alpha_j)`.
    """
    m = len(keep)
    if not m or m >= family.n_features:
        return family, keep
    if isinstance(family, Multinomial):
        alpha = family.concentration()
        rest = alpha.sum(axis=1) - alpha[:, keep].sum(axis=1)
        return family.replace(alpha=np.column_stack([alpha[:, keep], rest]), n_features=m + 1), np.arange(m)
    if isinstance(family, Bernoulli):
        a, b = family.concentrations()
        return family.replace(a=a[:, keep], b=b[:, keep], n_features=m), np.arange(m)
    if isinstance(family, Poisson):
        shape, rate = family.hyper()
        return family.replace(shape=shape[:, keep], rate=rate[:, keep], n_features=m), np.arange(m)
    return family, keep


def mean_log(family: Any) -> np.ndarray:
    r"""Mean of the log of each word's probability, (K, d), :math:`\psi(\alpha_{kj}) - \psi(A_k)`.

    Likewise of the log of a rate, and of the log odds of presence.
    """
    if isinstance(family, Multinomial):
        alpha = family.concentration()
        return digamma(alpha) - digamma(alpha.sum(axis=1, keepdims=True))
    a, b = family.concentrations() if isinstance(family, Bernoulli) else family.hyper()
    return digamma(a) - (digamma(b) if isinstance(family, Bernoulli) else np.log(b))


def cut(params: Any, at: Any) -> Any:
    """Some of the draws of parameters."""
    return type(params)(*(p[at] for p in params))


def stack(each: list[Any]) -> Any:
    """Draws after one another."""
    return type(each[0])(*(np.concatenate(parts) for parts in zip(*each, strict=True)))


class PosteriorDraws:
    """Draws of the posterior: ln class probabilities (n, K), and a `Source` for each block."""

    def __init__(self, fit: Fit, blocks: list[Block], rng: np.random.Generator, n: int, narrow: bool) -> None:
        self.n, self.rng, self.class_prior = n, rng, fit.class_prior
        self.fit = fit
        self.sources = [self._source(b, narrow) for b in blocks]
        drawn = getattr(blocks[0].part, "_values", {}) if len(blocks) == 1 else {}
        if len(drawn.get("class_prob", ())) == n:  # the rows form draws them as well
            self.log_class = safe_log(drawn["class_prob"])
        else:
            self.log_class = np.asarray(fit.draw_log_class(rng, n))

    def _source(self, b: Block, narrow: bool) -> Source:
        part, rng, n = b.part, self.rng, self.n
        if not hasattr(part, "draws"):
            family, at = narrowed(part.posterior, b.keep) if narrow else (part.posterior, b.keep)
            return Source(
                b, family, at, {}, lambda lo, hi: family.draw(rng, hi - lo), lambda lo, hi, p: each(part.prior, p)
            )
        values = part._values
        size = len(next(iter(values.values())))
        pick = np.arange(size) if n == size else rng.permutation(size)[:n] if n < size else rng.integers(0, size, n)
        hyper = {site: values[site][pick] for site in hyper_sites(part)}
        log_prior = partial(own_log_prior, part, {k: v[pick] for k, v in values.items()})
        if not part._marginal:
            return Source(b, part.base, b.keep, hyper, lambda lo, hi: cut(part._params, pick[lo:hi]), log_prior)
        family, at = narrowed(part._given(0), b.keep) if narrow else (part._given(0), b.keep)

        def make(lo: int, hi: int) -> Any:
            given = (part._given(int(s)) for s in pick[lo:hi])
            return stack([(narrowed(g, b.keep)[0] if narrow else g).draw(rng, 1) for g in given])

        return Source(b, family, at, hyper, make, log_prior)


def check_prior(fit: Fit) -> None:
    """Raise `UndefinedNumberError` unless the prior is a proper distribution."""
    everyone = np.ones(len(fit.classes), dtype=bool)
    for part, names in fit._parts():
        if getattr(part, "own", None) is None:
            fit._raise(part.prior.improper(everyone, strict=True), names, "the prior is no distribution: ")
    known = fit.class_prior.function is not None or fit.class_prior.fixed is not None
    if not known and not (np.asarray(fit.class_prior.concentration()) > 0).all():
        raise UndefinedNumberError("the prior is no distribution: class_alpha=0 is improper; give class_alpha > 0")


class PriorDraws:
    """Draws of the prior, like `PosteriorDraws`."""

    def __init__(self, fit: Fit, blocks: list[Block], rng: np.random.Generator, n: int, narrow: bool) -> None:
        self.n, self.rng, self.fit, self.class_prior = n, rng, fit, fit.class_prior
        self.log_class = draw_prior_classes(fit.class_prior, rng, n)
        self.sources = [self._source(b, narrow) for b in blocks]

    def _source(self, b: Block, narrow: bool) -> Source:
        part, rng = b.part, self.rng
        own = getattr(part, "own_prior", None)
        if own is None:
            family, at = narrowed(part.prior, b.keep) if narrow else (part.prior, b.keep)
            return Source(b, family, at, {}, lambda lo, hi: family.draw(rng, hi - lo))
        base = part.base
        values = run_program(partial(prior_sites, own, base), rng, self.n)
        known = {*base.dims()}
        hyper = {site: values[site] for site in hyper_sites(part) if site in values}
        if known <= set(values):
            params = part._reference.from_variables({k: values[k] for k in known})
            return Source(b, base, b.keep, hyper, lambda lo, hi: cut(params, slice(lo, hi)))

        def given(s: int) -> Any:
            out = own.given(base, {k: v[s] for k, v in values.items()})
            return narrowed(out, b.keep) if narrow else (out, b.keep)

        family, at = given(0)
        return Source(b, family, at, hyper, lambda lo, hi: stack([given(s)[0].draw(rng, 1) for s in range(lo, hi)]))


def prior_sites(own: Any, base: Any) -> None:
    """The sites of a prior, with the family's variables where it gives them."""
    from numpyro.handlers import trace

    from bayesgen.own_priors import record

    with trace() as tr:
        out = own.sites(base)
    if isinstance(out, dict):
        record(base, base.from_variables(out), tr)


def run_program(program: Callable[[], Any], rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Draws of the sites of a NumPyro program."""
    import jax
    from numpyro.infer import Predictive

    with jax.enable_x64(True):
        key = jax.random.key(int(rng.integers(0, 2**63)))
        return {k: np.asarray(v) for k, v in Predictive(program, num_samples=n)(key).items()}


def draw_prior_classes(class_prior: ClassPrior, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draws of ln phi from its prior, (n, K)."""
    if class_prior.function is not None:
        return safe_log(run_program(class_prior.sample, rng, n)["class_prob"])
    return class_prior.draw(rng, n)


def each(prior: Any, params: Any) -> np.ndarray:
    """Log prior density of each draw of the parameters."""
    with np.errstate(all="ignore"):
        return np.array([float(prior.log_density(cut(params, s))) for s in range(len(params[0]))])


def site_log_density(program: Callable[..., Any], args: tuple[Any, ...], values: dict[str, np.ndarray]) -> np.ndarray:
    """Log density of the sampled sites of a program at each of n values of them, (n,)."""
    import jax
    from numpyro.infer.util import log_density

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(lambda v: log_density(program, args, {}, v)[0]))(values))


def own_log_prior(part: Any, values: dict[str, np.ndarray], lo: int, hi: int, params: Any) -> np.ndarray:
    """Log prior density of draws lo..hi of a sampled part: of hyperparameters, and of parameters given them."""
    own, base = part.own_prior, part.base
    if own is None:
        return each(base, params)
    latent, given = part._latent
    if not set(latent) <= set(values):  # drawn in other coordinates: the density of the parameters themselves
        import jax

        with jax.enable_x64(True):
            return np.asarray(jax.jit(jax.vmap(lambda p: own.log_density(base, p)))(base.factored(params)))
    some = {k: v[lo:hi] for k, v in values.items()}
    out = site_log_density(own.sites, (base,), {k: some[k] for k in latent})
    if given is None:
        return out
    priors = [own.given(base, {k: v[s] for k, v in some.items()}) for s in range(hi - lo)]
    return out + np.array([float(p.log_density(cut(params, s))) for s, p in enumerate(priors)])
