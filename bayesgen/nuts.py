"""NUTS on the generative programs, in three forms of one posterior.

- rows: the textbook program, y and x observed row by row;
- statistics: the same log density from sufficient statistics, up to a constant;
- marginal: parameters that are conjugate given hyperparameters are integrated out; NUTS walks over the
  hyperparameters alone.

The cost of a step of the last two does not depend on the number of rows. Where the density of the parameters
is known, the statistics form runs in coordinates that whiten the conjugate posterior (`Family.chart`): there the
target is close to a standard normal, and a trajectory takes a few steps.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from bayesgen._progress import shows_progress
from bayesgen.exceptions import SamplingWarning
from bayesgen.families.base import Family, register
from bayesgen.own_priors import record

__all__ = ["Diagnostics", "Draws", "NUTSOptions", "run"]

register()

FORMS = ("auto", "rows", "statistics", "marginal")
FIELDS = ("diverging", "num_steps", "accept_prob", "potential_energy", "energy", "adapt_state.step_size")
LEAST_ESS = 100  # effective draws for each chain
MOST_R_HAT = 1.01


@dataclass(frozen=True)
class NUTSOptions:
    """Settings of ``inference="nuts"``: pass a value of this type as ``inference``.

    Parameters
    ----------
    num_warmup, num_samples : int, default=1000
        Steps of each chain before, and draws after, adaptation.
    num_chains : int, default=4
    target_accept_prob : float, default=0.9
        Raise it towards 1 when there are divergences.
    chain_method : {"vectorized", "sequential", "parallel"}, default="vectorized"
        Vectorised chains share each step: on one device the fastest.
    likelihood : {"auto", "rows", "statistics", "marginal"}, default="auto"
        The form of the posterior; "auto" is the marginal form where hyperparameters are random, else the
        statistics form.
    progress_bar : bool, optional
        None: shown in a terminal or a notebook.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantAnalysis, LKJPrior, NUTSOptions
    >>> options = NUTSOptions(num_samples=2000, target_accept_prob=0.95)
    >>> model = GaussianDiscriminantAnalysis(prior=LKJPrior(2.0), inference=options, random_state=0)

    References
    ----------
    Hoffman and Gelman 2014, *The No-U-Turn sampler*.
    """

    num_warmup: int = 1000
    num_samples: int = 1000
    num_chains: int = 4
    target_accept_prob: float = 0.9
    chain_method: str = "vectorized"
    likelihood: str = "auto"
    progress_bar: bool | None = None

    def __post_init__(self) -> None:
        for name in ("num_warmup", "num_samples", "num_chains"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} must be a whole number, at least 1; got {value!r}")
            object.__setattr__(self, name, int(value))
        if not isinstance(self.target_accept_prob, (float, np.floating)) or not 0 < self.target_accept_prob < 1:
            raise ValueError(f"target_accept_prob must be between 0 and 1; got {self.target_accept_prob!r}")
        for name, choices in (("chain_method", ("vectorized", "sequential", "parallel")), ("likelihood", FORMS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(self, name)!r}")
        if self.progress_bar not in (None, True, False):
            raise ValueError(f"progress_bar must be True, False or None; got {self.progress_bar!r}")


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of a posterior.

    Attributes
    ----------
    sites : dict of str to ndarray (n_chains, n_draws, ...)
        Values by site.
    stats : dict of str to ndarray (n_chains, n_draws)
        Of the sampler: ``diverging``, ``n_steps``, ``acceptance_rate``, ``step_size``, ``energy``, ``lp``. Empty for
        independent draws.
    seconds : float
        Time of the run, with compilation.
    """

    sites: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    seconds: float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chains and of draws of each."""
        chains, draws = next(iter(self.sites.values())).shape[:2]
        return chains, draws


@dataclass(frozen=True)
class Diagnostics:
    """What there is to know about a NUTS run.

    Attributes
    ----------
    divergences : int
        Draws at which the simulated trajectory left the target.
    r_hat, ess : float
        The largest split R-hat and the smallest effective sample size over all sampled numbers; NaN where
        undefined.
    worst_r_hat, worst_ess : str
        Which number that is.
    n_chains, n_draws, n_steps : int
        Chains, draws of each, and gradient evaluations in all (after warmup).
    seconds : float
        Time of the run, with compilation.

    Examples
    --------
    >>> from bayesgen import BernoulliNB, NUTSOptions
    >>> options = NUTSOptions(num_warmup=200, num_samples=200, num_chains=2)
    >>> model = BernoulliNB(inference=options).fit([[1], [1], [0], [0]], [0, 0, 1, 1])  # doctest: +SKIP
    >>> model.diagnostics_.n_chains, model.diagnostics_.n_draws  # doctest: +SKIP
    (2, 200)
    """

    divergences: int
    r_hat: float
    worst_r_hat: str
    ess: float
    worst_ess: str
    n_chains: int
    n_draws: int
    n_steps: int
    seconds: float

    def __repr__(self) -> str:
        return (
            f"Diagnostics({self.n_chains} chains x {self.n_draws} draws, {self.divergences} divergences, "
            f"largest R-hat {self.r_hat:.3f} ({self.worst_r_hat}), smallest ESS {self.ess:.0f} ({self.worst_ess}), "
            f"{self.seconds:.1f} s)"
        )


# ------------------------------------------------------------------------------- forms


def statistics_form(prior: Any, base: Family, stats: Any) -> None:
    """Prior sites as the program declares them, and the likelihood of the statistics."""
    import numpyro
    from numpyro.handlers import trace

    with trace() as tr:
        params = prior.prior()
    record(base, params, tr)
    numpyro.factor("likelihood", base.log_likelihood(params, stats))


def chart_sites(density: Any, base: Family, chart: Any) -> Any:
    """Parameters by sites in the coordinates of a chart; `density` has their log density."""
    import numpyro
    import numpyro.distributions as dist

    u = {
        name: numpyro.sample(f"chart_{name}", dist.Normal().expand(shape).to_event().mask(False))
        for name, shape in chart.shapes.items()
    }
    params, log_jacobian = chart.params(u)
    log_prior = density.log_density(params) if isinstance(density, Family) else density.log_density(base, params)
    numpyro.factor("log_prior", log_prior + log_jacobian)
    record(base, params)
    return params


def chart_form(density: Any, base: Family, chart: Any, stats: Any) -> None:
    """The statistics form in the coordinates of a chart."""
    import numpyro

    numpyro.factor("likelihood", base.log_likelihood(chart_sites(density, base, chart), stats))


def marginal_form(own: Any, base: Family, stats: Any) -> None:
    """Hyperparameters, and the evidence of the statistics given them."""
    import numpyro

    numpyro.factor("evidence", own.sites(base).log_evidence(stats))


def rows_form(class_prior: Any, prior: Any, base: Family, x: Any, y: Any, weights: Any = None) -> None:
    """The textbook program; weights are powers of the rows' densities."""
    from numpyro.handlers import trace

    from bayesgen.joint import sites

    with trace() as tr:
        *_, params = sites(class_prior, prior, x, y, len(y), weights=weights)
    record(base, params, tr)


def class_form(class_prior: Any, count: Any) -> None:
    """Class probabilities with a prior of their own, and the labels counted."""
    import jax.numpy as jnp
    import numpyro

    prob = class_prior.sample()
    numpyro.factor("labels", jnp.where(count > 0, count * jnp.log(jnp.where(count > 0, prob, 1.0)), 0.0).sum())


# ------------------------------------------------------------------------------- running


def structure(value: Any) -> tuple[Any, ...]:
    """What a compiled program depends on: the tree, and the shape and type of each leaf."""
    leaves, tree = jax.tree_util.tree_flatten(value)
    return tree, tuple((np.shape(leaf), np.asarray(leaf).dtype.str) for leaf in leaves)


def _mcmc(form: Any, options: NUTSOptions, num_chains: int, chain_method: str, progress_bar: bool) -> Any:
    """NumPyro's sampler of a program."""
    from numpyro.infer import MCMC, NUTS

    return MCMC(
        NUTS(form, target_accept_prob=float(options.target_accept_prob)),
        num_warmup=options.num_warmup,
        num_samples=options.num_samples,
        num_chains=num_chains,
        chain_method=chain_method,
        progress_bar=progress_bar,
    )


def _drawn(mcmc: Any, key: Any, args: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run; the sites and the fields of the sampler, each (chains, draws, ...)."""
    mcmc.run(key, *args, extra_fields=FIELDS)
    return mcmc.get_samples(group_by_chain=True), mcmc.get_extra_fields(group_by_chain=True)


@lru_cache(maxsize=16)
def _sampler(form: Any, shapes: Any, options: NUTSOptions) -> Any:
    """One compiled function for programs of one structure: a second run with other numbers compiles nothing.

    NumPyro's own reuse of a sampler (``jit_model_args``) compiles the start and the loop of every run again.
    """
    vectorized = options.chain_method == "vectorized"
    return jax.jit(
        lambda key, args: _drawn(
            _mcmc(form, options, options.num_chains if vectorized else 1, "vectorized", False), key, args
        )
    )


def run(form: Any, args: tuple[Any, ...], options: NUTSOptions, seed: int) -> Draws:
    """Draws of the program ``form(*args)``."""
    begin = time.perf_counter()
    with jax.enable_x64(True):
        args = as_arrays(args)
        key, progress_bar = jax.random.key(seed), shows_progress(options.progress_bar)
        if progress_bar or options.chain_method == "parallel":
            found = _drawn(_mcmc(form, options, options.num_chains, options.chain_method, progress_bar), key, args)
        else:
            sampler = _sampler(form, structure(args), options)
            if options.chain_method == "vectorized":
                found = sampler(key, args)
            else:
                chains = [sampler(k, args) for k in jax.random.split(key, options.num_chains)]
                found = jax.tree_util.tree_map(lambda *c: np.concatenate(c), *chains)
        sites, extra = jax.tree_util.tree_map(np.asarray, found)
    if not np.isfinite(extra["potential_energy"]).all():
        raise RuntimeError(
            "NUTS found no starting point where the log density and its gradient are finite: check the prior's program"
        )
    stats = {
        "diverging": extra["diverging"],
        "n_steps": extra["num_steps"],
        "acceptance_rate": extra["accept_prob"],
        "step_size": extra["adapt_state.step_size"],
        "energy": extra["energy"],
        "lp": -extra["potential_energy"],
    }
    return Draws(sites, stats, time.perf_counter() - begin)


def as_arrays(args: Any) -> Any:
    """Arguments of a program as JAX arrays; real numbers in double precision, whatever they were made with."""
    import jax.numpy as jnp

    def convert(value: Any) -> Any:
        kind = np.asarray(value).dtype
        return jnp.asarray(value, dtype=float if kind.kind == "f" else kind)

    return jax.tree_util.tree_map(convert, args)


def diagnose(draws: Draws) -> Diagnostics:
    """Convergence of the draws, over every number of the model (coordinates of charts are not of the model)."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    worst = {"r_hat": (-np.inf, ""), "ess": (np.inf, "")}
    chains, n = draws.shape
    for name, value in draws.sites.items():
        if n < 4 or name.startswith("chart_"):
            continue
        flat = value.reshape(chains, n, -1)
        moving = np.flatnonzero(np.ptp(flat, axis=(0, 1)) > 0)
        if not moving.size:
            continue
        with np.errstate(all="ignore"):
            r_hat, ess = split_gelman_rubin(flat[..., moving]), effective_sample_size(flat[..., moving])
        for key, numbers, sign in (("r_hat", r_hat, 1), ("ess", ess, -1)):
            at = int(np.nanargmax(sign * numbers)) if np.isfinite(numbers).any() else 0
            if sign * numbers[at] > sign * worst[key][0]:
                index = np.unravel_index(moving[at], value.shape[2:])
                label = f"{name}[{', '.join(map(str, index))}]" if index else name
                worst[key] = (float(numbers[at]), label)
    (r_hat, worst_r_hat), (ess, worst_ess) = worst["r_hat"], worst["ess"]
    return Diagnostics(
        int(draws.stats["diverging"].sum()),
        r_hat if worst_r_hat else np.nan,
        worst_r_hat,
        ess if worst_ess else np.nan,
        worst_ess,
        chains,
        n,
        int(draws.stats["n_steps"].sum()),
        draws.seconds,
    )


def warn_doubtful(d: Diagnostics) -> None:
    """Say what is wrong with a run, which number is worst, and what to try."""
    problems = []
    if d.divergences:
        problems.append(
            f"{d.divergences} of {d.n_chains * d.n_draws} draws diverged: raise target_accept_prob, or state a prior "
            "with lighter tails"
        )
    few = []
    if d.r_hat > MOST_R_HAT:
        few.append(f"R-hat of {d.worst_r_hat} is {d.r_hat:.3f}, above {MOST_R_HAT}: the chains do not agree")
    if d.ess < LEAST_ESS * d.n_chains:
        few.append(f"{d.worst_ess} has an effective sample size of only {d.ess:.0f}")
    if few:
        problems.append("; ".join(few) + "; raise num_warmup and num_samples")
    if problems:
        warnings.warn("NUTS: " + "; ".join(problems), SamplingWarning, stacklevel=2)
