"""Speed of full Bayes: effective draws per second by route, against a row-level NumPyro program.

Run as ``python tests/benchmarks/nuts.py [--rows 1000 100000 1000000] [--draws 1000]``. Times are of a second run: the
first one compiles, and its seconds are given apart. ESS is the smallest bulk ESS of any mean or covariance (or of the
concentration).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse as sp
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

from bayesgen import GaussianDiscriminantAnalysis, ImportanceOptions, LKJPrior, MultinomialNB, NUTSOptions

K, D = 3, 8
WORDS, TOPICS = 200, 4


def timed(f: Any) -> tuple[Any, float]:
    """What f returns, and its seconds."""
    begin = time.perf_counter()
    out = f()
    return out, time.perf_counter() - begin


def smallest_ess(sites: dict[str, np.ndarray], names: tuple[str, ...]) -> float:
    """The smallest effective sample size of the numbers of some sites (chains, draws, ...)."""
    values = (np.reshape(sites[n], (*sites[n].shape[:2], -1)) for n in names)
    return float(min(effective_sample_size(np.asarray(v)).min() for v in values))


def row(program: str, n: int, first: float, seconds: float, ess: float, note: str = "") -> None:
    """One line of the table."""
    print(f"{program:<42} {n:>9} {first:>8.2f} {seconds:>8.2f} {ess:>8.0f} {ess / seconds:>10.0f}  {note}", flush=True)


def clouds(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Three correlated normal classes in eight columns."""
    rng = np.random.default_rng(0)
    mix, centres = rng.normal(size=(D, D)) / 2 + np.eye(D), 2.0 * rng.normal(size=(K, D))
    y = rng.integers(0, K, n)
    return rng.normal(size=(n, D)) @ mix.T + centres[y], y


def documents(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents of 50 words on four topics."""
    rng = np.random.default_rng(0)
    theta, y = rng.dirichlet(np.full(WORDS, 0.5), size=TOPICS), rng.integers(0, TOPICS, n)
    return np.stack([rng.multinomial(50, theta[k]) for k in y]).astype(float), y


def many_words(n: int) -> tuple[Any, np.ndarray]:
    """Documents of about 150 words out of 20,000, on twenty topics."""
    rng = np.random.default_rng(0)
    y, lengths = rng.integers(0, 20, n), rng.poisson(150, n)
    words = (20_000 ** rng.random(lengths.sum())).astype(int) - 1
    words = (words + 37 * np.repeat(y, lengths) * (rng.random(len(words)) < 0.2)) % 20_000
    at = np.repeat(np.arange(n), lengths), words
    return sp.coo_array((np.ones(len(words)), at), shape=(n, 20_000)).tocsr(), y


def fit(make: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float, float]:
    """The model after its run, seconds of a first fit and of the run of a second, statistics aside."""
    _, first = timed(lambda: make(0).fit(X, y))
    model = make(1).partial_fit(X, y, np.unique(y))
    _, seconds = timed(lambda: model._fit_value.features.draws)
    return model._fit_value.features, first, seconds


def hand_written(program: Any, args: tuple[Any, ...], draws: int) -> tuple[dict[str, np.ndarray], float, float]:
    """Draws of a NumPyro program, seconds of the first and of a second run."""
    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(program),
            num_warmup=draws,
            num_samples=draws,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
            jit_model_args=True,
        )

        def run(seed: int) -> None:
            mcmc.run(jax.random.key(seed), *args)
            jax.block_until_ready(mcmc.get_samples())

        first, seconds = timed(lambda: run(0))[1], timed(lambda: run(1))[1]
        return {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}, first, seconds


def lkj_rows(x: Any, y: Any) -> None:
    """Shared covariance, HalfNormal(5) scales, LKJ(1), Normal(0, 10) means, row by row."""
    scale = numpyro.sample("scale", dist.HalfNormal(5.0).expand((D,)).to_event(1))
    root = scale[:, None] * numpyro.sample("corr", dist.LKJCholesky(D, 1.0))
    mean = numpyro.sample("mean", dist.Normal(0.0, 10.0).expand((K, D)).to_event(2))
    numpyro.deterministic("covariance", root @ root.T)
    with numpyro.plate("row", x.shape[0]):
        numpyro.sample("x", dist.MultivariateNormal(mean[y], scale_tril=root), obs=x)


def alpha_rows(x: Any, y: Any) -> None:
    """Word probabilities with one random concentration, row by row."""
    alpha = numpyro.sample("alpha", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("class", TOPICS):
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.full(WORDS, 1.0) * alpha))
    with numpyro.plate("row", x.shape[0]):
        numpyro.sample("x", dist.Multinomial(total_count=50, probs=theta[y]), obs=x)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--by-hand", type=int, nargs="*", default=[1_000], help="rows for the row-level programs")
    parser.add_argument("--draws", type=int, default=1000, help="draws of each chain, and steps of warmup")
    options = parser.parse_args()
    walk = NUTSOptions(num_warmup=options.draws, num_samples=options.draws, progress_bar=False)
    prior = LKJPrior(1.0, scale=dist.HalfNormal(5.0), mean=dist.Normal(0.0, 10.0))
    both = ("mean", "covariance")

    def gda(inference: Any, prior: Any = prior) -> Any:
        return lambda seed: GaussianDiscriminantAnalysis(prior=prior, inference=inference, random_state=seed)

    print(f"{'program':<42} {'rows':>9} {'first s':>8} {'s':>8} {'ESS':>8} {'ESS/s':>10}")
    for n in options.rows:
        X, y = clouds(n)
        found, first, seconds = fit(gda(walk), X, y)
        steps = found.diagnostics.n_steps / (4 * options.draws)
        row("LKJ, NUTS, statistics", n, first, seconds, smallest_ess(found.draws.sites, both), f"{steps:.1f} steps")
        found, first, seconds = fit(gda(ImportanceOptions()), X, y)
        row("LKJ, importance", n, first, seconds, found.importance_ess or 0.0, f"k-hat {found.khat}")
        found, first, seconds = fit(gda(ImportanceOptions(), None), X, y)
        row("conjugate, independent draws", n, first, seconds, found.importance_ess)
    for n in options.by_hand:
        sites, first, seconds = hand_written(lkj_rows, clouds(n), options.draws)
        row("LKJ, NumPyro by rows", n, first, seconds, smallest_ess(sites, both))
    X, y = documents(1000)

    def words(inference: Any) -> Any:
        return lambda seed: MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference=inference, random_state=seed)

    found, first, seconds = fit(words(walk), X, y)
    row("concentration, NUTS, marginal", 1000, first, seconds, smallest_ess(found.draws.sites, ("alpha",)))
    found, first, seconds = fit(words(ImportanceOptions()), X, y)
    row("concentration, quadrature", 1000, first, seconds, found.importance_ess)
    X, y = many_words(2000)
    for name, inference in (("NUTS, marginal", walk), ("quadrature", ImportanceOptions())):
        found, first, seconds = fit(words(inference), X, y)
        ess = found.importance_ess or smallest_ess(found.draws.sites, ("alpha",))
        row(f"concentration, 20,000 words x 20, {name}", 2000, first, seconds, ess)
    if options.by_hand:
        X, y = documents(1000)
        sites, first, seconds = hand_written(alpha_rows, (X, y), options.draws)
        row("concentration, NumPyro by rows", 1000, first, seconds, smallest_ess(sites, ("alpha",)))


if __name__ == "__main__":
    main()
