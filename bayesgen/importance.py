r"""Independent draws from a conjugate posterior, weighted to a prior without a closed form.

The likelihood cancels: with parameters drawn from the posterior under a conjugate prior p_0, the weight is
:math:`p(\theta)/p_0(\theta)`. The largest weights are smoothed by a generalised Pareto fit, whose shape, k-hat, says
whether the draws can be trusted (below 0.7). Where hyperparameters are random and the parameters conjugate given
them, the hyperparameters are integrated by quadrature (one of them) or drawn from a multivariate t at their
mode, then with the moments of the weighted draws (a few), and the parameters drawn exactly given each.

References: Vehtari, Simpson, Gelman, Yao and Gabry 2024, *Pareto smoothed importance sampling*; Tierney and Kadane
1986, *Accurate approximations for posterior moments and marginal densities*.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from bayesgen._random import generator
from bayesgen.families.base import Family, register
from bayesgen.nuts import Draws, NUTSOptions, as_arrays, structure
from bayesgen.own_priors import OwnPrior

__all__ = ["ImportanceOptions", "Quadrature", "Weighted", "hyperparameters", "latent_sites", "parameters", "quadrature"]

register()

MOST_KHAT = 0.7
GOOD_KHAT, ROUNDS = 0.4, 4  # when a proposal need not be improved any more, and how often at most
MOST_LATENT = 20  # dimensions of hyperparameters for a proposal at the mode
NATS = 35.0  # of log density below the mode, beyond which a quadrature does not look


@dataclass(frozen=True)
class ImportanceOptions:
    """Settings of ``inference="importance"``: pass a value of this type as ``inference``.

    Parameters
    ----------
    num_samples : int, default=4000
        Independent draws.
    proposal : conjugate prior, optional
        The prior whose posterior proposes, such as a `NormalInverseWishart`; None: the data-scaled default.
    fallback : NUTSOptions
        Used where k-hat is above 0.7.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantAnalysis, ImportanceOptions, LKJPrior
    >>> route = ImportanceOptions(num_samples=8000)
    >>> model = GaussianDiscriminantAnalysis(prior=LKJPrior(2.0), inference=route, random_state=0)
    """

    num_samples: int = 4000
    proposal: Any = None
    fallback: NUTSOptions = field(default_factory=NUTSOptions)

    def __post_init__(self) -> None:
        n = self.num_samples
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"num_samples must be a whole number, at least 1; got {n!r}")
        if not isinstance(self.fallback, NUTSOptions):
            raise ValueError(f"fallback must be a NUTSOptions value; got {self.fallback!r}")


@dataclass(frozen=True, eq=False)
class Weighted:
    """Draws after weighting and resampling.

    Attributes
    ----------
    values : pytree of arrays (n, ...)
        Equally weighted.
    khat : float
        Pareto k-hat of the weights; -inf where all weights are equal.
    ess : float
        Effective number of independent draws, 1 / sum of squared weights.
    seconds : float
    """

    values: Any
    khat: float
    ess: float
    seconds: float


def resample(log_weights: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
    """Indices of equally weighted draws, k-hat, and the effective sample size."""
    n = len(log_weights)
    if not np.isfinite(log_weights).any():
        return np.arange(n), np.inf, 0.0
    if np.ptp(log_weights) < 1e-12:
        return np.arange(n), -np.inf, float(n)
    from bayesgen.arviz_io import psis

    smoothed, khat = psis(log_weights)
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    # Systematic resampling: each draw appears floor or ceil of n w times.
    edges = np.cumsum(weights)
    edges[-1] = 1.0
    index = np.searchsorted(edges, (np.arange(n) + rng.random()) / n)
    return rng.permutation(index), khat, float(1.0 / np.sum(weights**2))


@jax.jit
def _log_weights(own: Any, base: Any, params: Any) -> Any:
    def one(p: Any) -> Any:
        return own.log_density(base, p) - base.log_density(p)

    return jax.vmap(one)(params)


def has_density(own: OwnPrior, base: Family) -> bool:
    """Whether the prior knows the density of the parameters themselves."""
    params = jax.tree_util.tree_map(np.asarray, base.draw(0, 1))
    one = type(params)(*(p[0] for p in params))
    found = []
    with jax.enable_x64(True):
        jax.eval_shape(lambda p: found.append(own.log_density(base, p) is not None), one)
    return found[0]


def parameters(own: OwnPrior, base: Any, stats: Any, n: int, seed: int) -> Weighted:
    """Draws of the parameters under the prior `own`, n of them, from the posterior of the conjugate prior `base`."""
    begin = time.perf_counter()
    rng = generator(seed)
    draws = base.condition(stats).draw(rng, n)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        log_weights = np.asarray(_log_weights(own, base, base.factored(draws)))
    log_weights = np.where(np.isnan(log_weights), -np.inf, log_weights)
    index, khat, ess = resample(log_weights, rng)
    return Weighted(type(draws)(*(p[index] for p in draws)), khat, ess, time.perf_counter() - begin)


# ------------------------------------------------------------------------------- hyperparameters


def latent_sites(own: OwnPrior, base: Family) -> tuple[dict[str, Any], Family | None]:
    """Sample sites of the prior's program, and the shapes of the family it gives; None if it gives parameters.

    The program is traced, nothing is computed.
    """
    from numpyro.handlers import seed, trace

    found: dict[str, Any] = {}

    def record() -> Any:
        with trace() as tr:
            out = seed(own.sites, jax.random.key(0))(base)
        found.update({k: s for k, s in tr.items() if s["type"] == "sample" and not s["is_observed"]})
        return out if isinstance(out, Family) else None

    with jax.enable_x64(True):
        return found, jax.eval_shape(record)


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Posterior of one scalar hyperparameter on a grid.

    Attributes
    ----------
    site : str
    coordinate : ndarray (n,)
        Unconstrained coordinate.
    value : ndarray (n,)
        The hyperparameter.
    weight : ndarray (n,)
        Posterior mass of each grid point.
    log_evidence : float
        Log of the integral of prior times evidence: ln p(X | y), hyperparameter integrated out.
    """

    site: str
    coordinate: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    log_evidence: float

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Stratified draws of the hyperparameter, in random order: (n,)."""
        edges = np.concatenate([[0.0], np.cumsum(0.5 * (self.weight[1:] + self.weight[:-1]))])
        at = (np.arange(n) + rng.random(n)) / n * edges[-1]
        return rng.permutation(np.interp(at, edges, self.value))


def quadrature(own: OwnPrior, base: Family, stats: Any, site: dict[str, Any]) -> Quadrature:
    """The posterior of the only, scalar, hyperparameter; scans for several modes before it refines."""
    import jax.numpy as jnp
    from numpyro.distributions import biject_to, constraints
    from scipy.interpolate import CubicSpline

    fn, name = site["fn"], site["name"]
    transform = biject_to(fn.support)
    compressed = base.compress(stats, own.given(base, {name: np.asarray(1.0)}))

    def values(u: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(transform(jnp.asarray(u, dtype=float)))

    def log_density(u: Any) -> np.ndarray:
        u = np.atleast_1d(np.asarray(u, dtype=float))
        with jax.enable_x64(True), np.errstate(all="ignore"):
            at = jnp.asarray(u)
            value = transform(at)
            log_prior = np.asarray(fn.log_prob(value) + transform.log_abs_det_jacobian(at, value))
            evidence = [
                float(own.given(base, {name: np.asarray(v)}).log_evidence(compressed)) for v in np.asarray(value)
            ]
        out = log_prior + np.array(evidence)
        return np.where(np.isfinite(out), out, -np.inf)

    if fn.support is constraints.real:
        centre, reach = float(fn.mean), 20.0 * float(np.sqrt(fn.variance))
    else:
        centre, reach = 0.0, 40.0
    coarse = centre + np.linspace(-reach, reach, 161)
    height = log_density(coarse)
    peaks = [
        i
        for i in range(1, len(coarse) - 1)
        if height[i] > -np.inf and height[i] >= height[i - 1] and height[i] >= height[i + 1]
    ]
    if not peaks:
        raise ValueError(
            f"the posterior of {name} has no maximum within {coarse[0]:.3g} .. {coarse[-1]:.3g} of its unconstrained "
            "coordinate; use inference='nuts', or a prior on the scale of the data"
        )
    tops = [_climb(log_density, coarse[i - 1], coarse[i + 1]) for i in sorted(peaks, key=lambda i: -height[i])[:5]]
    top = max(h for _, h in tops)
    spans = sorted(_span(log_density, u, top) for u, h in tops if h > top - NATS)
    grid, total = [], []
    for lo, hi in _union(spans):
        nodes = np.linspace(lo, hi, 401)
        fine = np.linspace(lo, hi, 4001)
        density = np.exp(CubicSpline(nodes, np.maximum(log_density(nodes) - top, -2 * NATS))(fine))
        density[[0, -1]] *= 0.5
        grid.append(fine)
        total.append(density * (fine[1] - fine[0]))
    coordinate, mass = np.concatenate(grid), np.concatenate(total)
    return Quadrature(name, coordinate, values(coordinate), mass / mass.sum(), top + float(np.log(mass.sum())))


def _climb(log_density: Any, low: float, high: float) -> tuple[float, float]:
    """The maximum between two points, to a millionth of their distance, and its height."""
    for _ in range(6):
        u = np.linspace(low, high, 21)
        height = log_density(u)
        best = int(np.argmax(height))
        low, high = u[max(best - 1, 0)], u[min(best + 1, 20)]
    return float(u[best]), float(height[best])


def _span(log_density: Any, peak: float, top: float) -> tuple[float, float]:
    """Where the log density has fallen `NATS` below the top on either side of a peak."""
    steps = 1e-6 * max(1.0, abs(peak)) * 1.5 ** np.arange(46.0)
    ends = []
    for sign in (-1.0, 1.0):
        low = np.flatnonzero(log_density(peak + sign * steps) <= top - NATS)
        ends.append(peak + sign * steps[low[0] if low.size else -1])
    return ends[0], ends[1]


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    out = [spans[0]]
    for lo, hi in spans[1:]:
        if lo <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], hi))
        else:
            out.append((lo, hi))
    return out


@lru_cache(maxsize=16)
def _compiled(form: Any, shapes: Any) -> dict[str, Any]:
    """Functions of a program's flat unconstrained vector, compiled once for all programs of a structure."""
    from jax.flatten_util import ravel_pytree
    from numpyro.infer.util import initialize_model

    def parts(args: Any) -> Any:
        start, potential, post, _ = initialize_model(
            jax.random.key(0), form, model_args=args, dynamic_args=True, validate_grad=False
        )
        flat, unravel = ravel_pytree(start.z)
        return flat, lambda u: potential(*args)(unravel(u)), lambda u: post(*args)(unravel(u))

    def energy(u: Any, args: Any) -> Any:
        return parts(args)[1](u)

    return {
        "start": jax.jit(lambda args: parts(args)[0]),
        "slope": jax.jit(jax.value_and_grad(energy)),
        "hessian": jax.jit(jax.hessian(energy)),
        "many": jax.jit(jax.vmap(energy, in_axes=(0, None))),
        "sites": jax.jit(jax.vmap(lambda u, args: parts(args)[2](u), in_axes=(0, None))),
    }


def hyperparameters(form: Any, args: tuple[Any, ...], n: int, seed: int) -> tuple[Weighted, int]:
    """Draws of the latent sites of a program with few, n of them, and their number.

    The first proposal is a multivariate t at the mode, the next ones have the moments of the draws before.
    """
    import jax.numpy as jnp
    from scipy.optimize import minimize

    begin = time.perf_counter()
    rng = generator(seed)
    with jax.enable_x64(True):
        args = as_arrays(args)
        program = _compiled(form, structure(args))
        flat = np.asarray(program["start"](args))
        size = len(flat)
        if size > MOST_LATENT:
            return Weighted(None, np.inf, 0.0, time.perf_counter() - begin), size

        def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            e, g = program["slope"](jnp.asarray(u), args)
            return (float(e), np.asarray(g)) if np.isfinite(e) else (1e300, np.zeros(size))

        # The largest posterior density among the modes reached from a few starts.
        starts = [flat, *(rng.standard_normal((4, size)) * 1.5)]
        best = min((minimize(objective, s, jac=True, method="BFGS") for s in starts), key=lambda r: r.fun)
        hessian = np.asarray(program["hessian"](jnp.asarray(best.x), args))
        values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
        centre, root = best.x, vectors / np.sqrt(np.maximum(values, 1e-8 * max(1.0, values.max())))
        df = 5.0
        for _ in range(ROUNDS):
            z = rng.standard_normal((n, size)) * np.sqrt(df / rng.chisquare(df, size=n))[:, None]
            u = centre + z @ root.T
            log_target = -np.asarray(program["many"](jnp.asarray(u), args))
            log_proposal = -0.5 * (df + size) * np.log1p((z * z).sum(axis=1) / df)
            index, khat, ess = resample(np.where(np.isnan(log_target), -np.inf, log_target) - log_proposal, rng)
            if khat < GOOD_KHAT or ess < 10 * size:
                break
            # The shape at the mode is not that of the whole: take the moments of the weighted draws.
            centre, root = u[index].mean(axis=0), np.linalg.cholesky(np.cov(u[index].T).reshape(size, size))
        sites = {k: np.asarray(v) for k, v in program["sites"](jnp.asarray(u[index]), args).items()}
    return Weighted(sites, khat, ess, time.perf_counter() - begin), size


def independent(values: dict[str, np.ndarray], seconds: float) -> Draws:
    """Independent draws as one chain."""
    return Draws({k: v[None] for k, v in values.items()}, {}, seconds)
