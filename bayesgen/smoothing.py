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

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.model_selection import GridSearchCV

from bayesgen._math import logsumexp, safe_divide, safe_log
from bayesgen.comparison import (
    HeldOut,
    Split,
    all_classes,
    import_pandas,
    make_splits,
    on_all_classes,
    pooled,
    prior_uses_data,
    rows_first,
)
from bayesgen.estimators import BernoulliNB, CategoricalNB, MultinomialNB, _labels
from bayesgen.estimators._prediction import normalise
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning
from bayesgen.families._all import Bernoulli, Categorical, Multinomial
from bayesgen.families.bernoulli import BernoulliParams
from bayesgen.families.categorical import CategoricalParams
from bayesgen.families.multinomial import MultinomialParams
from bayesgen.fit import FeatureFit, Fit, LooResult
from bayesgen.learning import Evidence
from bayesgen.nuts import NUTSOptions
from bayesgen.own_priors import is_distribution

__all__ = ["Cells", "Rule", "all_rules", "compare_smoothing"]

GRID = np.geomspace(1e-3, 1e2, 20)
SCAN = np.log(np.geomspace(1e-4, 1e3, 15))
LIDSTONE = 0.1
HYPERPRIOR = (0.0, 2.0)  # of ln alpha: 95 % of it lies between 0.02 and 50
NUMBERS = (
    "alpha",
    "prior_uses_data",
    "log_evidence",
    "elpd_conditional",
    "se",
    "log_loss_plug_in",
    "log_loss_predictive",
    "accuracy_plug_in",
    "accuracy_predictive",
    "impossible_rows",
    "seconds",
)


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


# ------------------------------------------------------------------------------- the three models

MODELS: dict[str, Any] = {"multinomial": MultinomialNB, "bernoulli": BernoulliNB, "categorical": CategoricalNB}


def cells_of(features: Any) -> Cells:
    """The counts of a fit."""
    stated, stats = features.stated, features.stats
    if isinstance(stated, Multinomial):
        return Cells(stats.word_count, np.zeros(stated.n_features, dtype=int))
    if isinstance(stated, Categorical):
        return Cells(stats.level_count, stated.column_of)
    return Cells(np.hstack([stats.present, stats.absent]), np.tile(np.arange(stated.n_features), 2))


def params_of(stated: Any, prob: np.ndarray) -> Any:
    """Parameters of the family that are these probabilities of cells, (K, S)."""
    log_prob = safe_log(prob)
    if isinstance(stated, Multinomial):
        return MultinomialParams(log_prob)
    if isinstance(stated, Categorical):
        return CategoricalParams(log_prob, np.full((len(prob), stated.n_features), -np.inf))
    return BernoulliParams(log_prob[:, : stated.n_features], log_prob[:, stated.n_features :])


def prob_of(params: Any) -> np.ndarray:
    """Probabilities of the cells, (K, S), from parameters of the family: the inverse of `params_of`."""
    if isinstance(params, BernoulliParams):
        return np.exp(np.hstack(params))
    return np.exp(params.log_prob)


def alpha_of(prior: Any) -> np.ndarray:
    """Concentrations of the cells under a resolved prior, (K, S)."""
    return np.hstack(prior.concentrations()) if isinstance(prior, Bernoulli) else prior.concentration()


def as_parameter(stated: Any, alpha: np.ndarray) -> Any:
    """Concentrations of the cells, (S,), as the estimator's ``alpha=``."""
    d = stated.n_features
    return (alpha[:d], alpha[d:]) if isinstance(stated, Bernoulli) else alpha


# ------------------------------------------------------------------------------- one rule on one training set


class Smoothed(NamedTuple):
    """What a rule gives on a training set.

    Attributes
    ----------
    fits : list of Fit
        The exact fit under its prior; of a random concentration, one for each of its values.
    weights : ndarray (len(fits),)
        Posterior weights of the fits.
    prob : ndarray (K, S)
        Plug-in probabilities of the cells.
    alpha : float or array
        The concentration in use; its posterior mean if it is random.
    model : estimator
        Fitted with the rule's prior (any prior, for a rule without).
    seconds : float
    """

    fits: list[Fit]
    weights: np.ndarray
    prob: np.ndarray
    alpha: Any
    model: Any
    seconds: float


def learn(rule: Rule, make: Callable[[Any], Any], X: Any, y: np.ndarray) -> Smoothed:
    """Find the rule's prior from the training rows, and condition it on them."""
    started = time.perf_counter()
    alpha = rule.alpha
    if rule.search is not None:
        alpha = rule.search(make(1.0), X, y)
    elif callable(alpha) and not is_distribution(alpha):
        features = make(1.0).fit(X, y)._fit_value.features
        alpha = as_parameter(features.stated, alpha(cells_of(features)))
    model = make(alpha if rule.has_prior else 1.0)
    model = (model if rule.sampler is None else model.set_params(inference=rule.sampler)).fit(X, y)
    fit = model._fit_value
    fits, weights, cells = [fit], np.ones(1), cells_of(fit.features)
    if rule.sampler is not None:
        shown, prob = model.alpha_, prob_of(fit.features.params)
    elif is_distribution(alpha):
        values, weights = nodes(fit.features.quadrature)
        fits = [at_alpha(fit, a) for a in values]
        shown, prob = float(values @ weights), rule.plug_in(cells, (values, weights))
    elif rule.has_prior:
        shown, prob = model.alpha_, rule.plug_in(cells, alpha_of(fit.features.prior))
    else:
        shown, prob = np.nan, rule.plug_in(cells, None)
    return Smoothed(fits, weights, prob, shown, model, time.perf_counter() - started)


def nodes(grid: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values of a random concentration and their posterior weights, for sums in place of integrals.

    Every hundredth point of the quadrature's grid: at steps of half the width of a smooth peak the trapezoidal rule has
    all its digits.
    """
    weight = grid.weight[::100] / grid.weight[::100].sum()
    keep = weight > 1e-12
    return grid.value[::100][keep], weight[keep]


def leave_one_out(smoothed: Smoothed, X: Any, y: np.ndarray) -> LooResult:
    r"""Exact leave-one-out, also under a random concentration.

    Without row i, the weight of a value of alpha is divided by :math:`p(x_i, y_i \mid D_{\setminus i}, \alpha)`.
    """
    x, labels = smoothed.model._learned_rows(X, y, None, "loo")
    each = np.stack([fit.loo(x, labels).log_joint for fit in smoothed.fits])
    own = np.arange(len(y)), labels.codes
    with np.errstate(invalid="ignore"):
        rest = np.log(smoothed.weights)[:, None] - each[:, *own]
        log_joint = logsumexp(each + (rest - logsumexp(rest, axis=0))[:, :, None], axis=0)
        return LooResult(log_joint, log_joint[own], log_joint[own] - logsumexp(log_joint))


def predict(rule: Rule, smoothed: Smoothed, split: Split, classes: np.ndarray) -> tuple[HeldOut, HeldOut | None]:
    """Held-out predictions: parameters plugged in, and integrated out."""
    model, stated = smoothed.model, smoothed.fits[0].features.stated
    x, log_class = model._rows(split.X_test), smoothed.fits[0].log_class
    with np.errstate(all="ignore"):
        plug_in = stated.log_prob(params_of(stated, smoothed.prob), x)
    plug_in = held_out(log_class + plug_in, model, split, classes)
    if not rule.has_prior:
        return plug_in, None
    each = np.stack([fit.features.log_prob(x) for fit in smoothed.fits])
    predictive = logsumexp(each + np.log(smoothed.weights)[:, None, None], axis=0)
    return plug_in, held_out(log_class + predictive, model, split, classes)


def held_out(joint: np.ndarray, model: Any, split: Split, classes: np.ndarray) -> HeldOut:
    """Predictions from ln p(x, y), (n, K)."""
    if np.isnan(joint).any():
        raise UndefinedNumberError("a class, or a column of a class, has no counts: its probabilities are 0/0")
    guess = joint.argmax(axis=1)
    guess[np.isneginf(joint).all(axis=1)] = model.class_log_prior_.argmax()
    right = model.classes_[guess] == split.y_test
    log_proba = on_all_classes(normalise(joint), model.classes_, classes)
    return HeldOut(log_proba, np.searchsorted(classes, split.y_test), right)


# ------------------------------------------------------------------------------- the table


def compare_smoothing(
    X: Any,
    y: Any,
    model: str = "multinomial",
    *,
    cv: Any = 5,
    test: tuple[Any, Any] | None = None,
    rules: Sequence[str] | None = None,
    nuts: Any = False,
    random_state: Any = None,
) -> Any:
    r"""Every rule of smoothing on the same data: which prior it is, what the data say of it, and how it predicts.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n_samples, n_features)
        Word counts; presence and absence; or categories.
    y : array (n_samples,)
        Class labels.
    model : {"multinomial", "bernoulli", "categorical"}
        Which naive Bayes; `MultinomialNB`, `BernoulliNB` (present is above 0) or `CategoricalNB`.
    cv : int or cross-validation splitter, default=5
        Held-out predictions by cross-validation, those of all parts pooled. Rules that learn something learn it anew in
        each part.
    test : pair (X, y), optional
        Rows held out, in place of cross-validation.
    rules : sequence of str, optional
        Names of some rules, where all take too long; "grid search" takes the most time, by far.
    nuts : bool or NUTSOptions, default=False
        Also the hierarchical model by NUTS, for those who would check the quadrature: a run for each training set.
    random_state : int, Generator, RandomState or None
        Of the draws of NUTS; no other number depends on it.

    Returns
    -------
    pandas.DataFrame
        A row for each rule. Columns, logarithms in nats; n is a count of one class, N their sum over the V cells of one
        distribution (all words, both answers, or the levels of a column):

        - `prior`, `formula`, `used_by`: what it is.
        - `alpha`: the concentration in use, the mean over the cells if it differs between them, and the posterior mean
          if it is random; NaN if each class has its own. ``attrs["alpha"]`` has all of it.
        - `prior_uses_data`: whether the prior was learned from the rows.
        - `log_evidence`: ln p(X, y) at this prior. The rule "evidence" has the largest of all Dirichlet(a).
        - `elpd_conditional`, `se`: exact leave-one-out of y given x, with its standard error, the prior held fixed (of
          the hierarchical model: with alpha integrated out anew for each row).
        - `log_loss_plug_in`, `log_loss_predictive`, `accuracy_plug_in`, `accuracy_predictive`: of held-out rows, with
          the formula's probabilities plugged in, and with them integrated out under the prior. Both are the same in the
          Bernoulli and categorical models for one Dirichlet prior and its mean.
        - `impossible_rows`: held-out rows to which the plug-in gives probability 0 in every class. The log loss is
          infinite as soon as one label had probability 0, or none.
        - `seconds`: to find alpha and learn all rows.

        Class probabilities are (n_k + 1) / (n + K) in every row of the table, so that the smoothing of x alone differs.
        ``attrs["loo"]`` holds the `LooResult` of each rule with a prior, ``attrs["notes"]`` why numbers are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen import compare_smoothing
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> X = rng.poisson(np.where(y[:, None] == 0, [3, 1, 1, 0.1], [1, 3, 1, 0.1]))
    >>> table = compare_smoothing(X, y, cv=3, rules=["Laplace (mean)", "evidence"])
    >>> table["alpha"].round(2).to_dict()
    {'Laplace (mean)': 1.0, 'evidence': 0.95}
    """
    pd = import_pandas("compare_smoothing")
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(map(repr, MODELS))}; got {model!r}")
    y = _labels.check_labels(y)
    _labels.check_rows(X, y)
    X = rows_first(X)
    splits = make_splits(X, y, None if test is not None else cv, test)
    if splits is None:
        raise ValueError("hold rows out: cv=5, a splitter, or test=(X, y)")
    if not isinstance(nuts, (bool, NUTSOptions)):
        raise ValueError(f"nuts must be True, False or NUTSOptions(...); got {nuts!r}")
    make = maker(model, X, y, test, random_state)
    classes = all_classes(splits)
    records, loos, notes, alphas = [], {}, {}, {}
    chosen = choose(rules, model, nuts)
    for rule in chosen:
        record, loo, alpha, note = one_row(rule, make, X, y, splits, classes)
        records.append(record)
        alphas[rule.name] = alpha
        if loo is not None:
            loos[rule.name] = loo
        if note:
            notes[rule.name] = note
    table = pd.DataFrame.from_records(records, index=pd.Index([rule.name for rule in chosen], name="rule"))
    table.attrs.update(loo=loos, notes=notes, alpha=alphas)
    return table


def choose(names: Sequence[str] | None, model: str, nuts: Any) -> list[Rule]:
    """The named rules that there are for a model, in the order of the table."""
    known = [rule for rule in all_rules(nuts) if model in rule.models]
    if names is None:
        return known
    strange = [name for name in names if name not in {rule.name for rule in known}]
    if isinstance(names, str) or not len(names) or strange:
        raise ValueError(f"rules must be some of {[rule.name for rule in known]}; got {names!r}")
    return [rule for rule in known if rule.name in names]


def maker(model: str, X: Any, y: np.ndarray, test: Any, random_state: Any) -> Callable[[Any], Any]:
    """Makes the unfitted estimator of the model from its alpha; categories are those of all rows."""
    options: dict[str, Any] = {"random_state": random_state}
    if model == "categorical":
        whole = CategoricalNB().fit(X, y)
        columns = whole._state().columns
        if test is not None:
            columns = whole._join_columns(columns, CategoricalNB().fit(*test)._state().columns)
        options["categories"] = list(columns.levels or ())

    def make(alpha: Any) -> Any:
        route = "importance" if is_distribution(alpha) else "exact"
        return MODELS[model](alpha=alpha, inference=route, **options)

    return make


def one_row(
    rule: Rule, make: Callable[[Any], Any], X: Any, y: np.ndarray, splits: list[Split], classes: np.ndarray
) -> tuple[dict[str, Any], LooResult | None, Any, str]:
    """The numbers of one rule; those that do not exist are NaN, with a note."""
    record: dict[str, Any] = {"prior": rule.prior, "formula": rule.formula, "used_by": rule.used_by}
    record |= dict.fromkeys(NUMBERS, np.nan)
    loo, alpha, notes = None, np.nan, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            whole = learn(rule, make, X, y)
            alpha, record["seconds"] = whole.alpha, whole.seconds
            record["alpha"] = one_number(alpha, rule)
            record["prior_uses_data"] = rule.uses_data or prior_uses_data(whole.model._fit_value)
            pairs = [
                predict(rule, whole if s.rows is None else learn(rule, make, s.X, s.y), s, classes) for s in splits
            ]
            for kind, parts in zip(("plug_in", "predictive"), zip(*pairs, strict=True), strict=True):
                if parts[0] is not None:
                    together = pooled(list(parts))
                    record[f"log_loss_{kind}"] = together.log_loss
                    record[f"accuracy_{kind}"] = float(together.right.mean())
                    if kind == "plug_in":
                        record["impossible_rows"] = int(together.impossible.sum())
            if rule.has_prior:
                record["log_evidence"] = float(whole.model.log_evidence_)
                loo = leave_one_out(whole, X, y)
                record["elpd_conditional"], record["se"] = loo.elpd_conditional, loo.se_conditional
            else:
                notes.append("no prior: neither evidence nor leave-one-out nor predictive")
        except UndefinedNumberError as error:
            notes.append(str(error))
    notes += dict.fromkeys(str(w.message) for w in caught if not issubclass(w.category, ZeroProbabilityWarning))
    return record, loo, alpha, "; ".join(notes)


def one_number(alpha: Any, rule: Rule) -> float:
    """A concentration as one number: the mean over cells, NaN if each class has its own."""
    if isinstance(rule.alpha, Evidence) and rule.alpha.per_class:
        return np.nan
    parts = alpha if isinstance(alpha, tuple) else (alpha,)
    return float(np.mean(np.concatenate([np.ravel(p) for p in parts])))
