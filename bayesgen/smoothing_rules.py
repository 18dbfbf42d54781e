r"""Rules of smoothing side by side: the prior that each one is, and how well it predicts.

A rule turns counts :math:`n_j` (of one class, or of one column of it) with sum N over V cells into probabilities. Most
are a number of a Dirichlet posterior: with :math:`\theta \sim \mathrm{Dirichlet}(\alpha_1, \dots, \alpha_V)` and
:math:`A = \sum_j \alpha_j`,

.. math::

    \text{mean: } \frac{n_j + \alpha_j}{N + A}, \qquad
    \text{mode: } \frac{(n_j + \alpha_j - 1)_+}{\sum_l (n_l + \alpha_l - 1)_+},

so the mean under Dirichlet(1) and the mode under Dirichlet(2) are both Laplace's rule, and the mode under Dirichlet(1)
is maximum likelihood. As *plug-in* probabilities the two are the same. As priors they are not: their evidence,
leave-one-out and *predictive*, which integrates :math:`\theta` out, differ.

References: Laplace 1774; Lidstone 1920; Jeffreys 1946; Perks 1947; Krichevsky and Trofimov 1981; Cestnik 1990; Ney,
Essen and Kneser 1994; MacKay and Peto 1995; Chen and Goodman 1999; Minka 2000; Zhai and Lafferty 2004.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.model_selection import GridSearchCV

from bayesgen._math import safe_divide
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families._all import Bernoulli
from bayesgen.fit import FeatureFit, Fit
from bayesgen.learning import Evidence
from bayesgen.nuts import NUTSOptions

__all__ = ["Cells", "Rule", "all_rules", "at_alpha"]

GRID = np.geomspace(1e-3, 1e2, 20)
SCAN = np.log(np.geomspace(1e-4, 1e3, 15))
LIDSTONE = 0.1
HYPERPRIOR = (0.0, 2.0)  # of ln alpha: 95 % of it lies between 0.02 and 50


# ------------------------------------------------------------------------------- counts, and formulas


class Cells(NamedTuple):
    """Counts of each class, and which cells are one distribution.

    Attributes
    ----------
    counts : ndarray (K, S)
        Weighted.
    group : ndarray (S,)
        The distribution that each cell belongs to, 0, 1, ...: one for all words, or one for each column.
    """

    counts: np.ndarray
    group: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums (..., S) over the cells of each distribution, at each of its cells."""
        if not self.group.any():
            return np.broadcast_to(values.sum(axis=-1, keepdims=True), values.shape)
        rows = values.reshape(-1, values.shape[-1])
        sums = np.stack([np.bincount(self.group, weights=row) for row in rows])
        return sums[:, self.group].reshape(values.shape)

    @property
    def size(self) -> np.ndarray:
        """V, the cells of each distribution, (S,)."""
        return self.sums(np.ones(len(self.group)))

    @property
    def background(self) -> np.ndarray:
        """Probabilities p of the cells in all classes together, (N + 1/2) / (sum of N + V/2), (S,)."""
        pooled_count = self.counts.sum(axis=0) + 0.5
        return pooled_count / self.sums(pooled_count)


Formula = Callable[[Cells, Any], np.ndarray]


def relative_frequency(cells: Cells, alpha: Any = None) -> np.ndarray:
    """Counts over their sum, n / N; NaN where N = 0."""
    return safe_divide(cells.counts, cells.sums(cells.counts))


def posterior_mean(cells: Cells, alpha: Any) -> np.ndarray:
    """(n + alpha) / (N + A)."""
    after = cells.counts + alpha
    return after / cells.sums(after)


def posterior_mode(cells: Cells, alpha: Any) -> np.ndarray:
    """(n + alpha - 1) / (N + A - V), what is negative taken as 0."""
    after = np.maximum(cells.counts + alpha - 1.0, 0.0)
    return safe_divide(after, cells.sums(after))


def discount(cells: Cells) -> float:
    """n1 / (n1 + 2 n2), with n1 and n2 the numbers of cells with a count of 1 and of 2; 1/2 if there are none."""
    once, twice = (int((cells.counts == c).sum()) for c in (1, 2))
    return once / (once + 2 * twice) if once + twice else 0.5


def absolute_discounting(cells: Cells, alpha: Any = None) -> np.ndarray:
    """(max(n - d, 0) + p D) / N with d the `discount`, D what it takes from N in all, p the background."""
    d, total = discount(cells), cells.sums(cells.counts)
    taken = cells.sums(np.minimum(cells.counts, d))
    kept = np.maximum(cells.counts - d, 0.0)
    return np.where(total > 0, safe_divide(kept + cells.background * taken, total, empty=0.0), cells.background)


def hierarchical_mean(cells: Cells, alpha: Any) -> np.ndarray:
    """The posterior mean over alpha as well, given as the pair (values, posterior weights)."""
    values, weights = alpha
    return sum(w * posterior_mean(cells, a) for a, w in zip(values, weights, strict=True))


# ------------------------------------------------------------------------------- ways to find alpha


def by_leave_one_out(estimator: Any, X: Any, y: np.ndarray) -> float:
    """The alpha with the largest exact conditional leave-one-out, between 1e-4 and 1e3.

    A scan over ln alpha finds the hill (there may be several), Brent's method its top.
    """
    model = estimator.fit(X, y)
    x, labels = model._learned_rows(X, y, None, "loo")

    def lost(log_alpha: float) -> float:
        return -at_alpha(model._fit_value, float(np.exp(log_alpha))).loo(x, labels).elpd_conditional

    height = np.array([lost(t) for t in SCAN])
    i = int(np.argmin(height))
    bounds = SCAN[max(i - 1, 0)], SCAN[min(i + 1, len(SCAN) - 1)]
    found = minimize_scalar(lost, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x if found.fun <= height[i] else SCAN[i]))


def by_grid_search(estimator: Any, X: Any, y: np.ndarray) -> float:
    """The best of `GRID` by the log loss of five-fold cross-validation, with scikit-learn's search."""
    folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    if folds < 2:
        raise UndefinedNumberError("a class has one row alone: there is no stratified cross-validation")
    plug_in = estimator.set_params(inference="mean")
    search = GridSearchCV(plug_in, {"alpha": GRID.tolist()}, scoring="neg_log_loss", cv=folds, refit=False)
    return float(search.fit(X, y).best_params_["alpha"])


def at_alpha(fit: Fit, alpha: Any) -> Fit:
    """The exact fit of the same rows under another concentration."""
    stated = fit.features.stated
    name = {"a": alpha, "b": alpha} if isinstance(stated, Bernoulli) else {"alpha": alpha}
    return replace(fit, features=FeatureFit(stated.replace(**name), fit.features.stats, "exact"))


# ------------------------------------------------------------------------------- the rules


@dataclass(frozen=True)
class Rule:
    """A rule of smoothing.

    Parameters
    ----------
    name, prior, formula, used_by : str
        For the table.
    plug_in : callable
        ``plug_in(cells, alpha)`` gives probabilities (K, S): the formula in code.
    alpha : object
        The concentration as an estimator takes it; or a function of `Cells`, giving one for each cell; None for a rule
        without prior.
    search : callable or None
        ``search(estimator, X, y)`` finds alpha from an unfitted estimator and the training rows.
    uses_data : bool
        Whether a function for alpha takes the counts into account, not only the number of cells.
    sampler : NUTSOptions or None
        How to integrate over a random alpha; None: quadrature.
    models : tuple of str
        The models it is for.
    """

    name: str
    prior: str
    formula: str
    used_by: str
    plug_in: Formula = posterior_mean
    alpha: Any = None
    search: Callable[[Any, Any, np.ndarray], float] | None = None
    uses_data: bool = False
    sampler: Any = None
    models: tuple[str, ...] = ("multinomial", "bernoulli", "categorical")

    @property
    def has_prior(self) -> bool:
        """Whether there is a prior to integrate over."""
        return self.alpha is not None or self.search is not None


def all_rules(nuts: Any = False) -> tuple[Rule, ...]:
    """The rules of the table; see `compare_smoothing` for `nuts`."""
    import numpyro.distributions as dist

    mean = "(n + a) / (N + a V)"
    hierarchical = Rule(
        "hierarchical",
        "Dirichlet(a), ln a ~ Normal(0, 2); a integrated out by quadrature",
        "E[(n + a) / (N + a V)]",
        "full Bayes; alpha=LogNormal(0, 2)",
        hierarchical_mean,
        alpha=dist.LogNormal(*HYPERPRIOR),
    )
    by_nuts = replace(
        hierarchical,
        name="hierarchical (NUTS)",
        prior="Dirichlet(a), ln a ~ Normal(0, 2); a and the probabilities drawn",
        sampler=NUTSOptions() if nuts is True else nuts or None,
    )
    return (
        Rule(
            "maximum likelihood",
            "none: the limit of Dirichlet(a), a -> 0",
            "n / N",
            "textbooks, as what smoothing mends; also the mode under Dirichlet(1)",
            relative_frequency,
        ),
        Rule(
            "Laplace (mean)",
            "Dirichlet(1), its mean",
            "(n + 1) / (N + V)",
            "scikit-learn's default; NLTK's LaplaceProbDist; the rule of succession (Laplace 1774)",
            alpha=1.0,
        ),
        Rule(
            "Laplace (mode)",
            "Dirichlet(2), its mode",
            "(n + 2 - 1) / (N + 2 V - V)",
            "who reads Laplace's rule as maximum a posteriori",
            posterior_mode,
            alpha=2.0,
        ),
        Rule(
            "Lidstone",
            f"Dirichlet({LIDSTONE:g}), its mean",
            f"(n + {LIDSTONE:g}) / (N + {LIDSTONE:g} V)",
            "scikit-learn with alpha < 1; NLTK's LidstoneProbDist (Lidstone 1920)",
            alpha=LIDSTONE,
        ),
        Rule(
            "Jeffreys (Krichevsky-Trofimov)",
            "Dirichlet(1/2), its mean",
            "(n + 1/2) / (N + V/2)",
            "reference analysis (Jeffreys 1946); data compression (Krichevsky and Trofimov 1981)",
            alpha=0.5,
        ),
        Rule(
            "Perks",
            "Dirichlet(1/V), its mean",
            "(n + 1/V) / (N + 1)",
            "one pseudo-count in all (Perks 1947; Berger, Bernardo and Sun 2015); BDeu scores of Bayesian networks",
            alpha=lambda cells: 1.0 / cells.size,
        ),
        Rule(
            "m-estimate",
            "Dirichlet(m p), its mean; p the background, m = V",
            "(n + m p) / (N + m)",
            "rule learning (Cestnik 1990); Dirichlet smoothing of search engines (Zhai and Lafferty 2004; Lucene)",
            alpha=lambda cells: cells.size * cells.background,
            uses_data=True,
        ),
        Rule(
            "absolute discounting",
            "no Dirichlet prior (the Pitman-Yor process is near)",
            "(max(n - d, 0) + p sum min(n, d)) / N; d = n1 / (n1 + 2 n2), p the background",
            "n-gram models: Ney, Essen and Kneser 1994; the step before Kneser-Ney",
            absolute_discounting,
            models=("multinomial",),
        ),
        Rule(
            "evidence",
            "Dirichlet(a); a maximises the evidence",
            mean,
            "empirical Bayes (Minka 2000); alpha='evidence'",
            alpha=Evidence(),
        ),
        Rule(
            "evidence, per class",
            "Dirichlet(a_k); each a_k maximises the evidence of its class",
            "(n + a_k) / (N + a_k V)",
            "alpha=Evidence(per_class=True)",
            alpha=Evidence(per_class=True),
        ),
        Rule(
            "evidence, background",
            "Dirichlet(a V p); a maximises the evidence, p the background",
            "(n + a V p) / (N + a V)",
            "language models (MacKay and Peto 1995); alpha=Evidence(base='background')",
            alpha=Evidence(base="background"),
        ),
        Rule(
            "leave-one-out",
            "Dirichlet(a); a maximises exact leave-one-out of y given x",
            mean,
            "who tunes for the prediction of y, without folds",
            search=by_leave_one_out,
            uses_data=True,
        ),
        hierarchical,
        *((by_nuts,) if nuts else ()),
        Rule(
            "grid search",
            "Dirichlet(a); a the best of 20 by five-fold cross-validation",
            mean,
            "scikit-learn's GridSearchCV",
            search=by_grid_search,
            uses_data=True,
        ),
    )
