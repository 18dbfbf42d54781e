r"""Priors without a closed form: hyperparameters that are random, scales with correlations, functions of your own.

A prior of this kind declares NumPyro sites for one family, and returns either

- the family with its hyperparameters filled in. Its parameters are then conjugate given the hyperparameters, and can
  be integrated out (the marginal form); or
- the parameters, as a dict of the family's `variables` (such as ``{"rate": ...}``).

It may also give the log density of the parameters themselves, without which neither whitened coordinates nor
importance sampling are possible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from bayesgen._math import Array, namespace
from bayesgen.families.base import Family, family, static
from bayesgen.families.covariance_chart import factor_of
from bayesgen.families.multivariate import Multivariate
from bayesgen.families.per_class_multivariate_gaussian import PerClassMultivariateGaussian

__all__ = [
    "FunctionPrior",
    "HierarchicalCovariancePrior",
    "HierarchicalDirichlet",
    "Hyperpriors",
    "LKJPrior",
    "OwnPrior",
    "WithOwnPrior",
    "is_distribution",
    "split",
]

P = TypeVar("P", bound="OwnPrior")

SITES = {"loc": "prior_mean", "rate": "prior_rate"}  # hyperparameters whose names are those of parameters


def is_distribution(value: Any) -> bool:
    """Whether a value is a NumPyro distribution, without importing NumPyro."""
    return any(c.__module__.startswith("numpyro.distributions") for c in type(value).__mro__)


def require_distribution(value: Any, name: str, owner: str) -> None:
    """Raise if a field that holds a distribution holds a plain value instead (None is the default)."""
    if isinstance(value, (bool, int, float, str, list, tuple, np.ndarray)):
        raise ValueError(f"{name} of {owner} must be a NumPyro distribution or None; got {value!r}")


def require_positive(distribution: Any, name: str) -> None:
    """Raise if a distribution of positive numbers allows a negative one."""
    if bool(np.any(distribution.support(-np.ones(distribution.event_shape)))):
        raise ValueError(
            f"{name} is a {type(distribution).__name__}, which allows negative numbers; it needs one on positive "
            "numbers, such as LogNormal, Gamma or HalfNormal"
        )


def require_shape(distribution: Any, allowed: tuple[tuple[int, ...], ...], name: str) -> None:
    """Raise unless the numbers of a distribution broadcast as one of some shapes."""
    shape = (*distribution.batch_shape, *distribution.event_shape)
    if shape not in allowed:
        raise ValueError(f"{name} has the shape {shape}; expected one of {', '.join(map(str, allowed))}")


class OwnPrior:
    """Base of priors without a closed form; see the module docstring."""

    @property
    def described(self) -> str:
        """What the user gave, for messages."""
        return type(self).__name__

    def resolve(self: P, base: Family, stats: Any) -> P:
        """The prior with what was None filled in from sufficient statistics.

        Parameters
        ----------
        base : Family
            The family with its shapes; its own prior is not used.
        stats : NamedTuple
            Sufficient statistics, class axis first.

        Returns
        -------
        OwnPrior
            Of the same type.
        """
        return self

    def check(self, base: Family) -> None:
        """Raise `ValueError` unless this is a prior for the family.

        Parameters
        ----------
        base : Family
            The family with its shapes; its own prior is not used.
        """

    def sites(self, base: Family) -> Any:
        """Declare NumPyro sites; return the family with hyperparameters, or a dict of its variables.

        Parameters
        ----------
        base : Family
            The family with its shapes; its own prior is not used.

        Returns
        -------
        Family or dict of str to array
            What the sites say: hyperparameters, or the parameters themselves.
        """
        raise NotImplementedError

    def log_density(self, base: Family, params: Any) -> Array | None:
        """Log density of parameters, (); None where it is not known without integrals.

        Parameters
        ----------
        base : Family
            The family with its shapes; its own prior is not used.
        params : NamedTuple
            Parameters of the family.
        """
        return None

    def given(self, base: Family, values: dict[str, Any]) -> Family:
        """The family at given values of the latent sites.

        Parameters
        ----------
        base : Family
            The family with its shapes; its own prior is not used.
        values : dict of str to array
            By the name of the site.

        Returns
        -------
        Family
            Conjugate, at these hyperparameters.
        """
        import jax
        from numpyro.handlers import seed, substitute

        return jax.tree_util.tree_map(np.asarray, substitute(seed(self.sites, 0), data=values)(base))


def record(base: Family, params: Any, known: Any = ()) -> None:
    """Deterministic sites for the variables that are not sites already."""
    import numpyro

    for name, value in base.variables(params).items():
        if name not in known:
            numpyro.deterministic(name, value)


@family
class WithOwnPrior(Family):
    """A family under a prior without a closed form, for the NumPyro program."""

    base: Any = None
    own: Any = None
    n_classes: int = static(default=0)
    n_features: int = static(default=0)

    def prior(self) -> Any:
        """The sites of the prior, and deterministic ones for the family's variables."""
        from numpyro.handlers import trace

        with trace() as tr:
            out = self.own.sites(self.base)
            params = out.prior() if isinstance(out, Family) else self.base.from_variables(out)
        record(self.base, params, tr)
        return params

    def observe(self, params: Any, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """See `Family.observe`."""
        return self.base.observe(params, y, x, lengths)


# ------------------------------------------------------------------------------- hyperpriors


@family
class Hyperpriors(OwnPrior):
    """Hyperparameters of a family that are random, each with a NumPyro distribution.

    Parameters
    ----------
    distributions : dict of str to Distribution
        By site name.
    fields : tuple of (site, fields of the family that take its value)
    """

    @property
    def described(self) -> str:
        """See `OwnPrior.described`."""
        return "a distribution of " + " and ".join(sorted(self.distributions))

    distributions: Any = None
    fields: tuple[tuple[str, tuple[str, ...]], ...] = static(default=())

    def check(self, base: Family) -> None:
        """See `OwnPrior.check`: all but locations are positive."""
        for site, distribution in self.distributions.items():
            if site != SITES["loc"] and len(distribution.event_shape) < 2:
                require_positive(distribution, site)

    def sites(self, base: Family) -> Family:
        """See `OwnPrior.sites`."""
        import numpyro

        return self.given(base, {site: numpyro.sample(site, d) for site, d in sorted(self.distributions.items())})

    def given(self, base: Family, values: dict[str, Any]) -> Family:
        """See `OwnPrior.given`."""
        changes = {name: values[site] for site, names in self.fields for name in names}
        return base.replace(**changes)


def split(stated: Any) -> tuple[Any, Hyperpriors | None]:
    """A family with distributions for hyperparameters, as the family without them and their hyperpriors."""
    found: dict[str, Any] = {}
    groups: dict[str, tuple[str, ...]] = {}
    changes: dict[str, Any] = {}
    for f in dataclasses.fields(stated):
        value = getattr(stated, f.name)
        if not is_distribution(value):
            continue
        same = next((site for site, d in found.items() if d is value), None)
        site = same or SITES.get(f.name, f.name)
        found[site] = value
        groups[site] = (*groups.get(site, ()), f.name)
        changes[f.name] = f.default
    if not found:
        return stated, None
    if groups.get("a") == ("a", "b"):  # one concentration for presence and absence
        found["alpha"], groups["alpha"] = found.pop("a"), groups.pop("a")
    return stated.replace(**changes), Hyperpriors(found, tuple(groups.items()))


@family
class HierarchicalDirichlet(OwnPrior):
    r"""Word, level or presence probabilities that share a random concentration, and perhaps a background.

    .. math:: \theta_k \sim \mathrm{Dirichlet}(\alpha_k), \qquad \alpha_{kj} = c_k\, V\, \beta_j,

    with c from `concentration`, one for all classes or one for each, and :math:`\beta_j = 1/V`, or a learned background
    :math:`\beta \sim \mathrm{Dirichlet}(b, ..., b)`. The average pseudo-count of a word is c, and its share of the
    background is what all classes borrow.

    Parameters
    ----------
    concentration : numpyro Distribution, default LogNormal(0, 1)
        Prior of c, positive.
    base : float, optional
        Concentration b of the background; None: every word alike. For word counts only.
    per_class : bool, default=False
        A concentration for each class.

    Examples
    --------
    >>> from bayesgen import HierarchicalDirichlet, MultinomialNB
    >>> model = MultinomialNB(alpha=HierarchicalDirichlet(), inference="importance", random_state=0)
    >>> model.fit([[5, 1, 0], [4, 0, 1], [0, 3, 3]], [0, 0, 1]).predict([[2, 0, 0]]).tolist()
    [0]

    References
    ----------
    Minka 2000, *Estimating a Dirichlet distribution*; Teh et al. 2006, *Hierarchical Dirichlet processes*.
    """

    concentration: Any = None
    base: Any = None
    per_class: bool = static(default=False)

    def __post_init__(self) -> None:
        require_distribution(self.concentration, "concentration", "HierarchicalDirichlet")
        if isinstance(self.base, (int, float, str)) and (isinstance(self.base, str) or not self.base > 0):
            raise ValueError(f"base of HierarchicalDirichlet must be a positive number or None; got {self.base!r}")

    def check(self, base: Family) -> None:
        """See `OwnPrior.check`."""
        if not (hasattr(base, "alpha") or hasattr(base, "a")):
            raise ValueError("HierarchicalDirichlet is for BernoulliNB, MultinomialNB and CategoricalNB")
        require_positive(self._distribution(), "concentration")
        require_shape(self._distribution(), ((), (base.n_classes,)) if self.per_class else ((),), "concentration")
        if self.base is not None and type(base).__name__ != "Multinomial":
            raise ValueError(f"a learned background (base={self.base!r}) is for MultinomialNB; use base=None")

    def _distribution(self) -> Any:
        import numpyro.distributions as dist

        return dist.LogNormal(0.0, 1.0) if self.concentration is None else self.concentration

    def sites(self, base: Family) -> Family:
        """Sites ``alpha``, () or (K,), and ``log_background`` (V,), which makes ``background`` of mean 1."""
        import jax
        import jax.numpy as jnp
        import numpyro

        from bayesgen.distributions import LogDirichlet

        values = {}
        shape = (base.n_classes,) if self.per_class else ()
        values["alpha"] = numpyro.sample("alpha", self._distribution().expand(shape))
        if self.base is not None:
            log_background = numpyro.sample("log_background", LogDirichlet(jnp.full(base.n_features, self.base)))
            share = jax.nn.softmax(log_background)
            values["background"] = numpyro.deterministic("background", base.n_features * share)
        return self.given(base, values)

    def given(self, base: Family, values: dict[str, Any]) -> Family:
        """See `OwnPrior.given`."""
        alpha = values["alpha"]
        xp = namespace(alpha)
        alpha = xp.asarray(alpha)
        if self.per_class:
            alpha = alpha[:, None]
        if self.base is not None:
            alpha = alpha * values["background"]
        if hasattr(base, "a"):
            return base.replace(a=alpha, b=alpha)
        return base.replace(alpha=alpha)


# ------------------------------------------------------------------------------- functions


@family
class FunctionPrior(OwnPrior):
    """A function of the user's that declares NumPyro sites; see the user guide on priors of your own.

    Parameters
    ----------
    function : callable
        Takes the family (with ``n_classes`` and ``n_features``), returns what `OwnPrior.sites` does.
    """

    @property
    def described(self) -> str:
        """See `OwnPrior.described`."""
        return "a function"

    function: Callable[[Family], Any] = static(default=None)

    def sites(self, base: Family) -> Any:
        """See `OwnPrior.sites`."""
        out = self.function(base)
        if isinstance(out, type(base)) or (isinstance(out, dict) and set(out) == set(base.dims())):
            return out
        raise ValueError(
            f"a prior function must return the family with hyperparameters (family.replace(...)) or a dict of the "
            f"parameters {sorted(base.dims())}; this one returned "
            f"{sorted(out) if isinstance(out, dict) else type(out).__name__}"
        )

    def log_density(self, base: Family, params: Any) -> Array | None:
        """See `OwnPrior.log_density`: known where the sites are the family's own variables."""
        from numpyro.handlers import block, seed, substitute, trace

        values = base.variables(params)
        with block():  # these sites are looked at, not declared
            tr = trace(substitute(seed(self.function, 0), data=values)).get_trace(base)
        latent = {k: s for k, s in tr.items() if s["type"] == "sample" and not s["is_observed"]}
        if set(latent) != set(values) or any(s["type"] == "sample" and s["is_observed"] for s in tr.values()):
            return None
        return sum(s["fn"].log_prob(s["value"]).sum() for s in latent.values())


# ------------------------------------------------------------------------------- covariances


@family
class LKJPrior(OwnPrior):
    r"""Standard deviations and a correlation matrix with independent priors, for Gaussian discriminant analysis.

    .. math:: \Sigma = \mathrm{diag}(s)\, R\, \mathrm{diag}(s), \qquad R \sim \mathrm{LKJ}(\eta),

    with a covariance for all classes or one for each, as the estimator says.

    Parameters
    ----------
    concentration : float, default=1.0
        eta; 1 is uniform over correlation matrices, more favours weak correlations.
    scale : numpyro Distribution on positive numbers, optional
        Prior of the standard deviations s, in the units of the columns: one for all columns, or of shape
        (n_features,). None: HalfNormal with twice the pooled within-class standard deviation of the column.
    mean : numpyro Distribution, optional
        Prior of the class means: one for all, of shape (n_features,), or with (n_features,) as its event. None:
        Normal about the overall mean with ten times the within-class standard deviation.

    Notes
    -----
    The defaults of `scale` and `mean` use the data once more, like those of `NormalInverseWishart`.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from bayesgen import GaussianDiscriminantAnalysis, LKJPrior
    >>> prior = LKJPrior(2.0, scale=dist.HalfNormal(5.0), mean=dist.Normal(0.0, 10.0))
    >>> model = GaussianDiscriminantAnalysis(prior=prior, inference="nuts")

    References
    ----------
    Lewandowski, Kurowicka and Joe 2009, *Generating random correlation matrices based on vines and extended onion
    method*; Barnard, McCulloch and Meng 2000, *Modeling covariance matrices in terms of standard deviations and
    correlations*.
    """

    concentration: Any = 1.0
    scale: Any = None
    mean: Any = None

    def __post_init__(self) -> None:
        require_distribution(self.scale, "scale", "LKJPrior")
        require_distribution(self.mean, "mean", "LKJPrior")
        if isinstance(self.concentration, (int, float, np.number, str)) and (
            isinstance(self.concentration, str) or not self.concentration > 0
        ):
            raise ValueError(f"concentration of LKJPrior must be a positive number; got {self.concentration!r}")

    def check(self, base: Family) -> None:
        """See `OwnPrior.check`."""
        if not isinstance(base, Multivariate):
            raise ValueError("LKJPrior is for GaussianDiscriminantAnalysis: it is a prior of covariance matrices")
        k, d = base.n_classes, base.n_features
        check_scale(self.scale, (*self._kinds(base), d))
        if self.mean is not None:
            require_shape(self.mean, ((), (d,), (k, 1), (k, d)), "mean")

    def resolve(self, base: Any, stats: Any) -> LKJPrior:
        """See `OwnPrior.resolve`."""
        import numpyro.distributions as dist

        if self.scale is not None and self.mean is not None:
            return self
        loc, sd = data_scales(base, stats)
        scale = dist.HalfNormal(2.0 * sd) if self.scale is None else self.scale
        mean = dist.Normal(loc, 10.0 * sd) if self.mean is None else self.mean
        return LKJPrior(self.concentration, scale, mean)

    def _kinds(self, base: Family) -> tuple[int, ...]:
        return (base.n_classes,) if isinstance(base, PerClassMultivariateGaussian) else ()

    def sites(self, base: Any) -> dict[str, Any]:
        """Sites ``scale`` (d,), ``corr_cholesky`` (d, d) and ``mean`` (K, d); the first two may be per class."""
        import jax.numpy as jnp
        import numpyro

        kinds, d = self._kinds(base), base.n_features
        root = sample_root(self.concentration, self.scale, kinds, d)
        event = len(self.mean.event_shape)
        shape = (base.n_classes, d)[: 2 - event]
        mean = numpyro.sample("mean", self.mean.expand(shape).to_event(2 - event))
        return {"mean": mean, "covariance": root @ jnp.swapaxes(root, -1, -2)}

    def log_density(self, base: Any, params: Any) -> Array:
        r"""See `OwnPrior.log_density`: :math:`d\Sigma = 2^d \prod_j s_j^d\, ds\, dR`."""
        import jax.numpy as jnp
        import numpyro.distributions as dist

        _, logdet = factor_of(params)
        d = base.n_features
        log_sd = 0.5 * jnp.log(jnp.diagonal(params.covariance, axis1=-2, axis2=-1))
        log_corr = logdet - 2.0 * log_sd.sum(-1)
        out = self.scale.log_prob(jnp.exp(log_sd)).sum() + self.mean.log_prob(params.mean + params.mean_low).sum()
        if d > 1:
            lkj = dist.LKJCholesky(d, self.concentration).log_prob(jnp.eye(d))
            out = out + ((self.concentration - 1.0) * log_corr + lkj).sum()
        return out - (d * (log_sd.sum(-1) + jnp.log(2.0))).sum()


@family
class HierarchicalCovariancePrior(OwnPrior):
    r"""A covariance for each class, shrunk towards a common one by a strength that is learned.

    .. math::

        \Sigma_k \sim \mathrm{IW}(d + 1 + \tau,\ \tau\,\Sigma_0), \qquad
        \mu_k \mid \Sigma_k \sim \mathcal N(m_0, \Sigma_k/\kappa_0),

    so that :math:`\mathrm E[\Sigma_k] = \Sigma_0`. As :math:`\tau \to \infty` it is linear discriminant analysis, with
    a small tau quadratic; in between it is what regularised discriminant analysis tunes by hand. The common
    covariance has standard deviations with prior `scale` and correlations from :math:`\mathrm{LKJ}(\eta)`.

    Parameters
    ----------
    strength : numpyro Distribution on positive numbers, optional
        Prior of tau, in rows. None: LogNormal(log n_features + 2, 1.5), which is broad.
    concentration, scale : see `LKJPrior`
        Of the common covariance.
    mean_precision : float, default=0.01
        kappa_0: how many rows the prior mean is worth.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantAnalysis, HierarchicalCovariancePrior
    >>> prior = HierarchicalCovariancePrior(concentration=2.0)
    >>> model = GaussianDiscriminantAnalysis(covariance="per_class", prior=prior, inference="nuts")

    References
    ----------
    Friedman 1989, *Regularized discriminant analysis*; Gelman et al. 2013, *Bayesian Data Analysis*, section 3.6.
    """

    strength: Any = None
    concentration: Any = 1.0
    scale: Any = None
    mean_precision: Any = 0.01

    def __post_init__(self) -> None:
        require_distribution(self.strength, "strength", "HierarchicalCovariancePrior")
        require_distribution(self.scale, "scale", "HierarchicalCovariancePrior")

    def check(self, base: Family) -> None:
        """See `OwnPrior.check`."""
        if self.strength is not None:
            require_positive(self.strength, "strength")
            require_shape(self.strength, ((),), "strength")
        check_scale(self.scale, (base.n_features,))
        if not isinstance(base, PerClassMultivariateGaussian):
            raise ValueError(
                "HierarchicalCovariancePrior is for GaussianDiscriminantAnalysis(covariance='per_class'): with a "
                "shared covariance there is nothing to shrink"
            )

    def resolve(self, base: Any, stats: Any) -> HierarchicalCovariancePrior:
        """See `OwnPrior.resolve`."""
        import numpyro.distributions as dist

        _, sd = data_scales(base, stats)
        strength = dist.LogNormal(np.log(base.n_features) + 2.0, 1.5) if self.strength is None else self.strength
        scale = dist.HalfNormal(2.0 * sd) if self.scale is None else self.scale
        return HierarchicalCovariancePrior(strength, self.concentration, scale, self.mean_precision)

    def sites(self, base: Any) -> Family:
        """Sites ``strength`` (), ``scale`` (d,) and ``corr_cholesky`` (d, d) of the common covariance."""
        import jax.numpy as jnp
        import numpyro

        strength = numpyro.sample("strength", self.strength)
        root = sample_root(self.concentration, self.scale, (), base.n_features)
        common = numpyro.deterministic("common_covariance", root @ jnp.swapaxes(root, -1, -2))
        df = base.n_features + 1.0 + strength
        return base.replace(df=df, scale=strength * common, mean_precision=self.mean_precision)

    def given(self, base: Any, values: dict[str, Any]) -> Family:
        """See `OwnPrior.given`."""
        strength, common = values["strength"], values["common_covariance"]
        df = base.n_features + 1.0 + strength
        return base.replace(df=df, scale=strength * common, mean_precision=self.mean_precision)


def check_scale(scale: Any, shape: tuple[int, ...]) -> None:
    """Raise unless the prior of standard deviations is positive and fits the columns."""
    if scale is not None:
        require_positive(scale, "scale")
        require_shape(scale, ((), shape[-1:], shape), "scale")


def data_scales(base: Any, stats: Any) -> tuple[np.ndarray, np.ndarray]:
    """Overall mean and pooled within-class standard deviation of each column."""
    default = base.replace(loc=None, scale=None, df=None).resolve(stats)
    return default.loc + default.loc_low, np.sqrt(np.diagonal(default.scale) / (default.df - base.n_features - 1.0))


def sample_root(concentration: Any, scale: Any, kinds: tuple[int, ...], d: int) -> Any:
    """Sites ``scale`` and ``corr_cholesky``: lower roots of covariances, of shape (*kinds, d, d)."""
    import numpyro
    import numpyro.distributions as dist

    sd = numpyro.sample("scale", scale.expand((*kinds, d)).to_event(1))
    if d == 1:
        return sd[..., None]
    corr = numpyro.sample("corr_cholesky", dist.LKJCholesky(d, concentration).expand(kinds))
    return sd[..., None] * corr
