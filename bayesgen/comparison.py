r"""Models side by side: evidence, exact leave-one-out, and held-out predictions.

Three questions, three kinds of numbers. *How probable were these data under the model?* The log evidence
:math:`\ln p(X, y)`; differences are log Bayes factors, and only between densities of the same data with respect to the
same base measure. *How well does each row follow from the others?* Exact leave-one-out,
:math:`\mathrm{elpd} = \sum_i \ln p(y_i \mid x_i, D_{\setminus i})`, comparable between all models of y, with a standard
error of the difference over the same rows. *How good are the predictions of rows held out?* For n rows with
probabilities :math:`p_{ik}`, and :math:`\hat y_i` the most probable class:

- accuracy, the share of :math:`\hat y_i = y_i`;
- log loss, :math:`-\frac1n\sum_i \ln p_{iy_i}`: infinite as soon as one label had probability 0, or none;
- Brier score, :math:`\frac1n\sum_i\sum_k (p_{ik} - [y_i = k])^2`, between 0 and 2;
- calibration error, :math:`\sum_b \frac{n_b}{n}\,\lvert\text{accuracy}_b - \text{mean confidence}_b\rvert`, with
  confidence :math:`\max_k p_{ik}`, over 15 bins of equal numbers of rows, in the order of their confidence (rows of
  equal confidence share a bin).

References: Kass and Raftery 1995, *Bayes factors*; Vehtari, Gelman and Gabry 2017, *Practical Bayesian model evaluation
using leave-one-out*; Gneiting and Raftery 2007, *Strictly proper scoring rules*; Naeini, Cooper and Hauskrecht 2015,
*Obtaining well calibrated probabilities using Bayesian binning*.
"""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from bayesgen.estimators import BernoulliNB, _labels
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._tables import is_dask
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning
from bayesgen.families import _all as families
from bayesgen.fit import Fit, LooResult, MixedFit
from bayesgen.own_priors import Hyperpriors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HeldOut", "calibration_error", "compare"]

N_BINS = 15
GAUSSIAN = (
    families.Gaussian,
    families.SharedVarianceGaussian,
    families.MultivariateGaussian,
    families.PerClassMultivariateGaussian,
)


def compare(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    test: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
) -> pd.DataFrame:
    r"""Fit models to the same rows and put their numbers side by side, the best first.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators of this library, and scikit-learn classifiers with ``predict_proba`` (which have neither evidence nor
        leave-one-out). They are cloned, never changed.
    X : array, sparse matrix or data frame, (n_samples, n_features)
        Or a dask array or data frame: every number is then a sum over its blocks, which stay where they are, and the
        table is the same.
    y : array (n_samples,)
        Class labels.
    cv : int or cross-validation splitter, optional
        Held-out predictions by cross-validation, those of all parts pooled. An int is scikit-learn's stratified folds.
        For dask collections an int.
    test : pair (X, y), optional
        Rows held out, in place of `cv`.
    sample_weight : array (n_samples,), optional
        Weights of the training rows. Rows of weight zero are neither learned nor scored; every other row counts once in
        leave-one-out and in held-out scores.

    Returns
    -------
    pandas.DataFrame
        A row for each name, sorted by `elpd_conditional` if every model has it, otherwise by `log_loss` if there are
        held-out rows. Columns, logarithms in nats:

        - `log_evidence`: ln p(X, y); `log_bayes_factor`: its difference to the best model on the same `measure`, NaN
          where no other model is on it.
        - `measure`: what the evidence and `elpd_joint` are densities of. Other numbers do not depend on it.
        - `prior_uses_data`: whether the prior was scaled to, or learned from, the rows. Evidence and leave-one-out
          then use them twice.
        - `elpd_joint`, `se_joint`, `elpd_conditional`, `se_conditional`: exact leave-one-out of (x, y), and of y given
          x, with standard errors, of the model with all parameters integrated out, whatever the route (and without
          its likelihood power).
        - `elpd_difference`, `se_difference`: elpd_conditional less that of the best model, and the standard error
          :math:`\sqrt n\,\mathrm{sd}_i` of the differences row by row.
        - with `cv` or `test`: `accuracy`, `log_loss`, `brier` and `calibration_error` as the module defines them, and
          `impossible_rows`, held-out rows that no class can generate (left out of `brier` and `calibration_error`).
        - `seconds`: of the fit to all rows.

        Evidence and leave-one-out are of the whole posterior (route "exact") whatever ``inference`` says; held-out
        scores are of the estimator as it is. `log_loss` is a mean over rows (less is better), ``elpd`` a sum (more is
        better).

        ``attrs["loo"]`` holds the `LooResult` of each name that has one, for ``az.compare`` (none for dask, whose rows
        are not gathered); ``attrs["notes"]`` says of each name why numbers are missing. Empty ``attrs`` before writing
        the table to a file that would store them.

    Raises
    ------
    ValueError
        For input that no comparison can be made of, or that one of the models cannot take; the message names it.

    Examples
    --------
    >>> from bayesgen import MultinomialNB, compare
    >>> X = [[9, 1, 0], [7, 0, 2], [8, 1, 1], [0, 6, 3], [1, 5, 4], [2, 7, 2]]
    >>> table = compare({"flat": MultinomialNB(), "sparse": MultinomialNB(alpha=0.1)}, X, [0, 0, 0, 1, 1, 1])
    >>> table["log_bayes_factor"].round(2).to_dict()
    {'sparse': -4.34, 'flat': 0.0}
    """
    pd = import_pandas("compare")
    check_estimators(estimators)
    find = compare_blocks if any(map(is_dask, (X, y, sample_weight))) else compare_rows
    found = find(estimators, X, y, cv, test, sample_weight)
    table = pd.DataFrame.from_records(found.records, index=pd.Index(list(estimators), name="model"))
    table = add_differences(table, found.difference)
    table.attrs.update(loo=found.loos, notes={name: note for name, note in found.notes.items() if note})
    return in_order(table)


class Found(NamedTuple):
    """What there is to say of the models: records in their order, notes, leave-one-out of rows.

    `difference` gives the sum of the conditional densities of one model less that of another, and its standard error.
    """

    records: list[dict[str, Any]]
    notes: dict[str, str]
    loos: dict[str, LooResult]
    difference: Callable[[str, str], tuple[float, float]]


def compare_rows(estimators: Mapping[str, Any], X: Any, y: Any, cv: Any, test: Any, sample_weight: Any) -> Found:
    """See `compare`: of rows in memory."""
    y = _labels.check_labels(y)
    _labels.check_rows(X, y)
    weights = _labels.check_weights(sample_weight, y)
    X = rows_first(X)
    splits = make_splits(X, y, cv, test, weights)
    records, loos, notes = [], {}, {}
    for name, estimator in estimators.items():
        model, record, said = assess(name, estimator, X, y, weights)
        if isinstance(model, GenerativeBase):
            try:
                loos[name], missing = leave_one_out(model, X, y, weights)
                said += [missing] if missing else []
                record.update(loo_record(loos[name]))
            except UndefinedNumberError as error:
                said.append(f"leave-one-out: {error}")
        if splits is not None:
            record.update(held_out(name, estimator, splits, weights).scores())
        records.append(record)
        notes[name] = "; ".join(said)

    def difference(name: str, best: str) -> tuple[float, float]:
        with np.errstate(invalid="ignore"):
            each = loos[name].conditional - loos[best].conditional
            error = np.sqrt(len(each)) * each.std(ddof=1) if len(each) > 1 else np.nan
        return each.sum(), error

    return Found(records, notes, loos, difference)


def compare_blocks(estimators: Mapping[str, Any], X: Any, y: Any, cv: Any, test: Any, sample_weight: Any) -> Found:
    """See `compare`: of dask collections, block by block."""
    from bayesgen import comparison_blocks as blocks

    if cv is not None and test is not None:
        raise ValueError("give cv or test, not both: rows are held out in one way")
    if cv is not None and (isinstance(cv, bool) or not isinstance(cv, numbers.Integral)):
        raise ValueError(
            "cv must be a number of folds where X is a dask collection: a splitter chooses from all rows together; got "
            f"{type(cv).__name__}. Or hold rows out by test=(X, y), such as some of the blocks"
        )
    split = None if test is None else check_test(test)
    for name, estimator in estimators.items():
        if not isinstance(estimator, GenerativeBase):
            raise ValueError(
                f"estimators[{name!r}]: {type(estimator).__name__} does not learn from a dask collection; leave it "
                "out, or compare on rows in memory (X.compute())"
            )
    models, records, notes, folds = {}, [], {}, None
    for name, estimator in estimators.items():
        models[name], record, notes[name] = assess(name, estimator, X, y, sample_weight)
        if cv is not None:
            folds = folds or blocks.stratified_folds(int(cv), X, y)
            record.update(blocks.cross_validate(name, models[name], folds, X, y, sample_weight))
        elif split is not None and is_dask(split[0]):
            record.update(blocks.held_out_blocks(name, models[name], *split))
        elif split is not None:  # rows in memory
            classes = _labels.join_classes(models[name].classes_, np.unique(split[1]))
            rows = Split(None, split[1], None, *split)
            record.update(predictions(name, models[name], rows, classes).scores())
        records.append(record)
    sums = blocks.loo_blocks(models, X, y, sample_weight)
    for i, (name, record) in enumerate(zip(models, records, strict=True)):
        if sums.undefined[i]:
            notes[name].append(f"leave-one-out: {sums.undefined[i]}")
        elif sums.gone[i]:
            notes[name].append(rows_gone(int(sums.gone[i]), sums.joint.n))
        for kind, moments in (("joint", sums.joint), ("conditional", sums.conditional)):
            record.update({f"elpd_{kind}": float(moments.total[i]), f"se_{kind}": float(moments.error[i])})
    places = {name: i for i, name in enumerate(models) if not sums.undefined[i]}

    def difference(name: str, best: str) -> tuple[float, float]:
        at = places[name], places[best]
        return sums.differences.total[at], sums.differences.error[at]

    return Found(records, {name: "; ".join(said) for name, said in notes.items()}, {}, difference)


def check_test(test: Any) -> tuple[Any, Any]:
    """Rows held out beside a dask collection: a dask collection too, or rows in memory."""
    X, y = held_out_pair(test)
    if is_dask(X) or is_dask(y):
        return X, y
    y = _labels.check_labels(y)
    _labels.check_rows(X, y)
    return rows_first(X), y


# ------------------------------------------------------------------------------- input


def import_pandas(what: str) -> Any:
    """The package pandas, which is not needed elsewhere."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{what} returns a pandas data frame: pip install pandas") from error
    return pd


def check_estimators(estimators: Any) -> None:
    """Raise unless it is a dict of classifiers."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise ValueError(f"estimators must be a dict, as in {{'name': GaussianNB()}}; got {estimators!r}")
    for name, estimator in estimators.items():
        if isinstance(estimator, type):
            raise ValueError(
                f"estimators[{name!r}] is the class {estimator.__name__}; give an instance, {estimator.__name__}()"
            )
        if not hasattr(estimator, "__sklearn_tags__") or not is_classifier(estimator):
            raise ValueError(f"estimators[{name!r}] is not a classifier; got {estimator!r}")


def rows_first(X: Any) -> Any:
    """X in a form whose rows can be taken."""
    return X.tocsr() if sp.issparse(X) else X


def held_out_pair(test: Any) -> tuple[Any, Any]:
    """Rows held out and their labels."""
    if not isinstance(test, (tuple, list)) or len(test) != 2:
        raise ValueError(f"test must be the pair (X, y) of rows held out; got {type(test).__name__}")
    return tuple(test)


class Split(NamedTuple):
    """Training rows with their places in the whole (None: all), and rows held out."""

    X: Any
    y: np.ndarray
    rows: np.ndarray | None
    X_test: Any
    y_test: np.ndarray


def make_splits(X: Any, y: np.ndarray, cv: Any, test: Any, weights: np.ndarray | None = None) -> list[Split] | None:
    """Where each model is trained and tried; None if nothing is held out. Rows of weight zero are not tried."""
    if test is not None:
        if cv is not None:
            raise ValueError("give cv or test, not both: rows are held out in one way")
        X_test, y_test = held_out_pair(test)
        if is_dask(X_test) or is_dask(y_test):
            raise ValueError("test is a dask collection, but X is in memory: pass X as a dask collection too")
        X_test, y_test = rows_first(X_test), _labels.check_labels(y_test)
        _labels.check_rows(X_test, y_test)
        _labels.join_classes(np.unique(y), np.unique(y_test))  # raises for labels of different types
        return [Split(X, y, None, X_test, y_test)]
    if cv is None:
        return None
    out = []
    for train, rest in check_cv(cv, y, classifier=True).split(X, y):
        kept = rest if weights is None else rest[weights[rest] > 0]
        out.append(Split(_safe_indexing(X, train), y[train], train, _safe_indexing(X, kept), y[kept]))
    return out


# ------------------------------------------------------------------------------- one model


def fitted(name: str, estimator: Any, X: Any, y: Any, weights: Any) -> Any:
    """A fitted clone; errors name the model."""
    model = clone(estimator)
    if weights is not None and not has_fit_parameter(model, "sample_weight"):
        raise ValueError(f"estimators[{name!r}]: {type(model).__name__}.fit takes no sample_weight")
    try:
        return model.fit(X, y) if weights is None else model.fit(X, y, sample_weight=weights)
    except (ValueError, TypeError) as error:
        raise ValueError(f"estimators[{name!r}] cannot be fitted: {error}") from error


def assess(name: str, estimator: Any, X: Any, y: Any, weights: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """One fitted model, what its statistics say of it (leave-one-out still missing), and notes on what there is not."""
    started = time.perf_counter()
    model = fitted(name, estimator, X, y, weights)
    seconds = time.perf_counter() - started
    evidence, what, uses_data, notes = np.nan, "", False, []
    if isinstance(model, GenerativeBase):
        what, uses_data = measure(model), prior_uses_data(model._fit_value)
        try:
            evidence = float(model.log_evidence_)
        except UndefinedNumberError as error:
            notes.append(f"log_evidence: {error}")
    else:
        notes.append(f"{type(model).__name__} is no model of (x, y): it has neither evidence nor exact leave-one-out")
    record = {
        "log_evidence": evidence,
        "log_bayes_factor": np.nan,
        "measure": what,
        "prior_uses_data": uses_data,
        **loo_record(None),
        "elpd_difference": np.nan,
        "se_difference": np.nan,
        "seconds": seconds,
    }
    return model, record, notes


def loo_record(loo: LooResult | None) -> dict[str, float]:
    """The sums of leave-one-out as columns."""
    names = ("elpd_joint", "se_joint", "elpd_conditional", "se_conditional")
    with np.errstate(invalid="ignore"):  # rows of probability zero leave no standard error
        return {key: np.nan if loo is None else getattr(loo, key) for key in names}


def leave_one_out(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[LooResult, str]:
    """Exact leave-one-out of the rows with weight, and a note on rows that have none."""
    if weights is not None and not weights.all():
        keep = np.flatnonzero(weights)
        X, y, weights = _safe_indexing(X, keep), y[keep], weights[keep]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroProbabilityWarning)
        loo = model.loo(X, y, weights)
    gone = int(np.isnan(loo.joint).sum())
    return loo, rows_gone(gone, len(y)) if gone else ""


def rows_gone(gone: int, n: int) -> str:
    """The note on rows without a density given the others."""
    return (
        f"leave-one-out: {gone} of {n} rows have no density given the others (an improper posterior, or "
        "probability zero in every class)"
    )


def prior_uses_data(fit: Fit) -> bool:
    """Whether a hyperparameter was scaled to the data, or learned by evidence."""
    return any(_uses_data(part) for part, _ in fit._parts())


def _uses_data(part: Any) -> bool:
    own = getattr(part, "own", None)
    scaled = own is not None and own.resolve(part.stated, part.stats) is not own
    if own is None or isinstance(own, Hyperpriors):  # other priors replace the family's
        scaled = scaled or part.learned is not None or part.stated.resolve(part.stats) is not part.stated
    return scaled


# ------------------------------------------------------------------------------- the measure


def measure(model: GenerativeBase) -> str:
    """What p(x | y) is a density of, and with respect to what: equal texts may be compared by evidence.

    Cautious: two models on one measure can have different texts (a Bernoulli column is also one of two categories).
    """
    features, columns = model._fit_value.features, model._state().columns
    if not isinstance(features, MixedFit):
        return _kind(features.stated, model)
    parts: dict[str, list[int]] = {}
    templates = [template for template, _, _ in model._each(columns)]
    for part, template, (_, index, _) in zip(features.parts, templates, columns.blocks or (), strict=True):
        kind = _kind(part.stated, template)
        if isinstance(part.stated, families.Multinomial):  # two documents are not one
            kind += f" of columns {_ranges(index)}"
        parts.setdefault(kind, []).extend(index.tolist())
    whole = len(parts) == 1 and len(set(next(iter(parts.values())))) == columns.n_features
    if whole:
        return next(iter(parts)).partition(" of columns")[0]
    named = (k if " of columns" in k else f"{k} of columns {_ranges(v)}" for k, v in parts.items())
    return "; ".join(sorted(named))


def _kind(stated: Any, template: Any) -> str:
    """The measure of one family."""
    if isinstance(stated, families.Bernoulli):
        threshold = template.binarize if isinstance(template, BernoulliNB) else None
        return "0 or 1" if threshold is None else f"presence above {threshold:g}"
    if isinstance(stated, families.Multinomial):
        return "word counts given length" if stated.coefficient else "word sequence given length"
    if isinstance(stated, families.Categorical):
        return "categories"
    if isinstance(stated, families.Poisson):
        return "counts"
    if isinstance(stated, GAUSSIAN):
        return "real numbers"
    return f"data of {type(stated).__module__}.{type(stated).__qualname__}"


def _ranges(index: Iterable[int]) -> str:
    """Whole numbers as "0-3, 7"."""
    values = np.unique(np.asarray(list(index)))
    runs = np.split(values, np.flatnonzero(np.diff(values) > 1) + 1)
    return ", ".join(f"{r[0]}" if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


# ------------------------------------------------------------------------------- held-out rows


class HeldOut(NamedTuple):
    """Predictions of rows that were not learned.

    Parameters
    ----------
    log_proba : ndarray (n, K)
        Log probabilities of all classes there are; NaN for rows that no class can generate.
    codes : ndarray (n,)
        The true classes.
    right : ndarray (n,) of bool
        Whether the predicted label is the true one.
    """

    log_proba: np.ndarray
    codes: np.ndarray
    right: np.ndarray

    @property
    def impossible(self) -> np.ndarray:
        """Rows without probabilities, (n,)."""
        return np.isnan(self.log_proba).any(axis=1)

    @property
    def log_loss(self) -> float:
        """Mean of -ln p(true label | x); infinite if one has probability 0, or none."""
        own = self.log_proba[np.arange(len(self.codes)), self.codes]
        return float(-np.mean(np.where(np.isnan(own), -np.inf, own)))

    @property
    def brier(self) -> float:
        """Mean over rows with probabilities of the sum over classes of the squared error; NaN if there are none."""
        keep = np.flatnonzero(~self.impossible)
        error = np.exp(self.log_proba[keep])
        error[np.arange(len(keep)), self.codes[keep]] -= 1.0
        return float((error**2).sum(axis=1).mean()) if len(keep) else np.nan

    def scores(self) -> dict[str, Any]:
        """The columns of a comparison."""
        return {
            "accuracy": float(self.right.mean()),
            "log_loss": self.log_loss,
            "brier": self.brier,
            "calibration_error": calibration_error(np.exp(self.log_proba), self.codes),
            "impossible_rows": int(self.impossible.sum()),
        }


def calibration_error(proba: np.ndarray, codes: np.ndarray, n_bins: int = N_BINS) -> float:
    """Expected calibration error of the most probable class, in bins of equal numbers of rows.

    Parameters
    ----------
    proba : ndarray (n, K)
        Probabilities of the classes; rows of NaN are left out.
    codes : ndarray (n,)
        The true classes.
    n_bins : int
        Bins, from the least to the most confident row. Rows of equal confidence share the bin of their first, so that
        the order of the rows does not matter.

    Returns
    -------
    float
        Mean over rows of |accuracy - mean confidence| of their bin; NaN if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.comparison import calibration_error
    >>> round(calibration_error(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]), n_bins=1), 3)
    0.35
    """
    answered = ~np.isnan(proba).any(axis=1)
    proba, codes = proba[answered], codes[answered]
    n = len(codes)
    if not n:
        return np.nan
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == codes
    first = np.searchsorted(np.sort(confidence), confidence)  # rank of the first row as confident
    # |accuracy - confidence| of a bin times its share of the rows is |sum of differences| / n.
    return float(np.abs(np.bincount(first * n_bins // n, weights=right - confidence)).sum() / n)


def held_out(name: str, estimator: Any, splits: list[Split], weights: np.ndarray | None) -> HeldOut:
    """Pooled predictions of one model for the rows held out of each split."""
    classes = all_classes(splits)
    out = []
    for split in splits:
        w = None if weights is None else weights if split.rows is None else weights[split.rows]
        out.append(predictions(name, fitted(name, estimator, split.X, split.y, w), split, classes))
    return pooled(out)


def all_classes(splits: list[Split]) -> np.ndarray:
    """Every label of training and held-out rows, sorted."""
    return np.unique(np.concatenate([np.unique(part) for s in splits for part in (s.y, s.y_test)]))


def pooled(parts: list[HeldOut]) -> HeldOut:
    """Predictions of several splits as one."""
    return HeldOut(*(np.concatenate(v) for v in zip(*parts, strict=True)))


def predictions(name: str, model: Any, split: Split, classes: np.ndarray) -> HeldOut:
    """Predictions of a fitted model for the rows held out of one split."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"estimators[{name!r}]: {type(model).__name__} has no predict_proba, which held-out scores need; wrap it "
            "in CalibratedClassifierCV"
        )
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("ignore", ZeroProbabilityWarning)
        if hasattr(model, "predict_log_proba"):
            log_proba = model.predict_log_proba(split.X_test)
        else:
            log_proba = np.log(model.predict_proba(split.X_test))
        right = model.predict(split.X_test) == split.y_test
    return HeldOut(on_all_classes(log_proba, model.classes_, classes), np.searchsorted(classes, split.y_test), right)


def on_all_classes(log_proba: np.ndarray, known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log probabilities of all classes: a label that was never seen has probability 0."""
    out = np.full((len(log_proba), len(classes)), -np.inf)
    out[:, np.searchsorted(classes, known)] = log_proba
    out[np.isnan(log_proba).any(axis=1)] = np.nan
    return out


# ------------------------------------------------------------------------------- the table


def add_differences(table: pd.DataFrame, difference: Callable[[str, str], tuple[float, float]]) -> pd.DataFrame:
    """Log Bayes factors within each measure, and differences of leave-one-out to the best; see `Found`."""
    for _, group in table.groupby("measure"):
        known = group["log_evidence"].dropna()
        if len(known) > 1:
            table.loc[known.index, "log_bayes_factor"] = known - known.max()
    elpd = table["elpd_conditional"]
    if not elpd.notna().any():
        return table
    best = elpd.idxmax()
    for name in elpd.index[elpd.notna()]:
        table.loc[name, ["elpd_difference", "se_difference"]] = difference(name, best)
    return table


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sorted best first; see `compare`. The order of the last columns is that of the docstring."""
    by: list[str] = []
    if table["elpd_conditional"].notna().all():
        by.append("elpd_conditional")
    if "log_loss" in table:
        by.append("log_loss")
    by = by or ["elpd_conditional"]
    attrs = table.attrs
    table = table[[c for c in table if c != "seconds"] + ["seconds"]]
    out = table.sort_values(by, ascending=[c == "log_loss" for c in by], kind="stable")
    out.attrs = {**attrs, "sorted_by": by[0]}
    return out
