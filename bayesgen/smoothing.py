"""Rules of smoothing side by side: which prior each one is, and how well it predicts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen._math import logsumexp, safe_log
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
from bayesgen.estimators._tables import refuse_dask
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning
from bayesgen.families._all import Bernoulli, Categorical, Multinomial
from bayesgen.families.bernoulli import BernoulliParams
from bayesgen.families.categorical import CategoricalParams
from bayesgen.families.multinomial import MultinomialParams
from bayesgen.fit import Fit, LooResult
from bayesgen.learning import Evidence
from bayesgen.nuts import NUTSOptions
from bayesgen.own_priors import is_distribution
from bayesgen.smoothing_rules import Cells, Rule, all_rules, at_alpha

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_smoothing"]

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
) -> pd.DataFrame:
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
    refuse_dask(X)
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
