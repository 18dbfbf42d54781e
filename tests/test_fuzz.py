"""Random models on random tables: the right answer, or an error of this library that says what is wrong.

A case is made by a seed: an estimator with random options (some of which cannot be meant), a table in a random
container with columns of random kinds, labels and row weights, and a list of things to do. Whatever happens,

- an error is one that this library or scikit-learn's validation has raised, not one from inside NumPy, SciPy or JAX;
- a call that fails leaves the model as it was, and so does every prediction;
- probabilities sum to one; NaN comes with a `ZeroProbabilityWarning`, and no other number is NaN;
- ways to the same model (batches, merging, forgetting, files, sparse and dense, one row at a time) give the same.
"""

from __future__ import annotations

import pickle
import sys
import traceback
import types
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning, NotFittedError

import bayesgen
from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    PoissonNB,
    UndefinedNumberError,
    ZeroProbabilityWarning,
    load,
)

OURS = tuple(str(Path(module.__file__).parent) for module in (bayesgen, sklearn))
ERRORS = (ValueError, TypeError, NotFittedError, UndefinedNumberError)

# ------------------------------------------------------------------------------------------------ columns

NUMBERS = {
    "measurements": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "far from zero": lambda rng, n: 1e8 + rng.normal(size=n),
    "very far from zero": lambda rng, n: 1e14 + np.round(rng.normal(size=n), 1),
    "tiny": lambda rng, n: rng.normal(size=n) * 10.0 ** -rng.integers(3, 200),
    "huge": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(3, 149),
    "all magnitudes": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-140, 140, n),
    "denormal": lambda rng, n: rng.choice([0.0, 5e-324, 1e-310], n),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, 1.0, -3.7, 1e9, 0.1])),
    "zeros": lambda rng, n: np.zeros(n),
    "negative zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
    "one is different": lambda rng, n: np.where(np.arange(n) == rng.integers(max(n, 1)), 1.0, 0.0),
    "presences": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "counts": lambda rng, n: rng.poisson(2, n).astype(float),
    "large counts": lambda rng, n: rng.integers(0, 2**32, n).astype(float),
    "fractional counts": lambda rng, n: rng.exponential(size=n),
    "codes": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "signed codes": lambda rng, n: rng.integers(-1, 3, n).astype(float),
    "beyond": lambda rng, n: np.where(rng.random(n) < 0.1, 1e200, rng.normal(size=n)),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n)),
}
OTHERS = {
    "texts": lambda rng, n: rng.choice(["west", "north", "", "straße", "x" * 300], n).astype(object),
    "texts of numbers": lambda rng, n: rng.choice(["1", "2.5", "0"], n).astype(object),
    "texts and numbers": lambda rng, n: np.array([["a", 1, 2.5, True][i] for i in rng.integers(0, 4, n)], dtype=object),
    "booleans": lambda rng, n: rng.random(n) < 0.5,
    "missing objects": lambda rng, n: np.array([[None, 1.0, 2, True][i] for i in rng.integers(0, 4, n)], dtype=object),
    "dates": lambda rng, n: np.datetime64("2020-01-01") + rng.integers(0, 9, n),
    "complex": lambda rng, n: np.array([complex(i, 1) for i in range(n)], dtype=object),
    "lists": lambda rng, n: np.array([*([i] for i in range(n)), None], dtype=object)[:-1],
    "bytes": lambda rng, n: np.array([[b"a", b"b"][i] for i in rng.integers(0, 2, n)], dtype=object),
    "nothing": lambda rng, n: np.full(n, None, dtype=object),
}
SUITS = {  # kinds that the models are for, so that most cases get beyond the first check
    "GaussianNB": ["measurements", "rounded", "far from zero", "tiny", "huge", "constant", "codes"],
    "GaussianDiscriminantAnalysis": ["measurements", "rounded", "far from zero", "tiny", "huge", "constant", "codes"],
    "BernoulliNB": ["presences", "zeros", "one is different", "measurements"],
    "MultinomialNB": ["counts", "large counts", "fractional counts", "zeros", "presences"],
    "PoissonNB": ["counts", "large counts", "fractional counts", "zeros", "presences"],
    "CategoricalNB": ["codes", "texts", "booleans", "missing objects", "presences", "nothing", "measurements"],
    "MixedNB": ["codes", "texts", "booleans", "missing objects", "presences", "measurements", "rounded", "counts"],
    "GenerativeClassifier": ["counts", "presences", "codes"],
}


def pick(rng, options):
    """One of some options, of whatever types."""
    return options[rng.integers(len(options))]


def column(rng, kind, n):
    values = (NUMBERS | OTHERS)[kind](rng, n)
    if kind in NUMBERS and rng.random() < 0.08:
        values = np.where(rng.random(n) < 0.2, np.nan, values)
    return values


def table(rng, kinds, n):
    """The columns side by side: as floats where all are numbers, else as objects."""
    columns = [column(rng, kind, n) for kind in kinds]
    if not columns:
        return np.empty((n, 0))
    if all(kind in NUMBERS for kind in kinds):
        return np.column_stack(columns)
    out = np.empty((n, len(columns)), dtype=object)
    for j, values in enumerate(columns):
        out[:, j] = values
    return out


def as_frame(x, names):
    return pd.DataFrame({i: x[:, i] for i in range(x.shape[1])}).infer_objects().set_axis(names, axis=1)


def as_polars(x, names):
    columns = [pl.Series(str(i), x[:, i].tolist(), strict=False) for i in range(x.shape[1])]
    return pl.DataFrame(columns).rename({str(i): str(name) for i, name in enumerate(names)})


CONTAINERS = {
    "array": lambda x, names: x,
    "columns first": lambda x, names: np.asfortranarray(x),
    "every second row": lambda x, names: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x, names: x[::-1].copy()[::-1],
    "single precision": lambda x, names: x.astype(np.float32),
    "half precision": lambda x, names: x.astype(np.float16),
    "integers": lambda x, names: x.astype(np.int64),
    "bytes": lambda x, names: x.astype(np.uint8),
    "objects": lambda x, names: x.astype(object),
    "list": lambda x, names: x.tolist(),
    "frame": as_frame,
    "polars": as_polars,
    "csr": lambda x, names: sp.csr_array(x),
    "csc": lambda x, names: sp.csc_matrix(x),
    "coo, entries twice": lambda x, names: sp.coo_array(sp.vstack([sp.csr_array(x)])),
    "masked": lambda x, names: np.ma.masked_invalid(x) if x.dtype.kind == "f" else x,
}
ODD = {
    "one row flat": lambda x: x[0] if len(x) else x.ravel(),
    "three axes": lambda x: np.asarray(x, dtype=object)[None],
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[:, :0],
    "one row": lambda x: x[:1],
    "text": lambda x: "rows",
    "none": lambda x: None,
    "a number": lambda x: 3.0,
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "texts": lambda x: ["some", "texts"],
    "a dict": lambda x: {"a": [1, 2]},
    "one column more": lambda x: np.hstack([x, x[:, :1]]),
}


class Drawn(dict):
    """What a case is made of, as it was drawn, to be printed when it fails."""


def rows(rng, model, n, drawn, kinds=None, names=None):
    """A table that the model may be able to take, its kinds of columns and their names."""
    if kinds is None:
        d = int(pick(rng, [1, 1, 2, 2, 3, 4]))
        suits = SUITS[model] if rng.random() < 0.85 else [*NUMBERS, *OTHERS]
        kinds = [str(pick(rng, suits)) for _ in range(d)]
        names = ["age", "dose", "site", "dose" if rng.random() < 0.1 else "rate"][:d]
        if rng.random() < 0.1:
            names = [0, 1, "site", 2.5][:d]
    x = table(rng, kinds, n)
    if rng.random() < 0.04:
        odd = str(pick(rng, list(ODD)))
        drawn.setdefault("odd", []).append(odd)
        return ODD[odd](x), kinds, names
    container = drawn.get("container") or str(pick(rng, list(CONTAINERS)))
    drawn["container"] = container
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CONTAINERS[container](x, names), kinds, names
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return x, kinds, names  # this container cannot hold such columns


def labels(rng, n, drawn):
    usual = {
        "two": lambda: np.arange(n) % 2,
        "three": lambda: rng.integers(0, 3, n),
        "texts": lambda: rng.choice(["ham", "spam"], n),
        "objects": lambda: rng.choice(["ham", "spam", "é"], n).astype(object),
        "booleans": lambda: rng.random(n) < 0.5,
        "signed": lambda: rng.choice([-1, 1], n),
        "some unknown": lambda: rng.choice([-1, 0, 1], n),
        "floats": lambda: rng.choice([1.0, 2.0], n),
        "series": lambda: pd.Series(rng.choice(["ham", "spam"], n)),
        "categorical": lambda: pd.Series(rng.choice(["ham", "spam"], n), dtype="category"),
        "list": lambda: rng.choice(["ham", "spam"], n).tolist(),
        "one class": lambda: np.zeros(n, dtype=int),
        "column": lambda: (np.arange(n) % 2)[:, None],
        "large": lambda: rng.choice([2**40, 2**40 + 1], n),
    }
    odd = {
        "fractions": lambda: rng.normal(size=n),
        "missing": lambda: np.where(rng.random(n) < 0.5, np.nan, 1.0),
        "mixed": lambda: [["a", 1, None][i] for i in rng.integers(0, 3, n)],
        "short": lambda: np.arange(max(n - 1, 0)) % 2,
        "none": lambda: None,
        "matrix": lambda: np.eye(max(n, 1))[:, :2],
        "complex": lambda: 1j * np.arange(n),
        "dates": lambda: np.datetime64("2020-01-01") + rng.integers(0, 2, n),
        "distinct": lambda: np.arange(n),
        "objects of objects": lambda: np.array([{}] * n + [None], dtype=object)[:-1],
        "a number": lambda: 1,
    }
    kinds = usual if rng.random() < 0.93 else odd
    drawn["labels"] = kind = str(pick(rng, list(kinds)))
    return kinds[kind]()


def row_weights(rng, n, drawn):
    usual = {
        "none": lambda: None,
        "none again": lambda: None,
        "ones": lambda: np.ones(n),
        "random": lambda: rng.random(n),
        "whole": lambda: rng.integers(0, 3, n),
        "single": lambda: rng.random(n).astype(np.float32),
        "list": lambda: rng.integers(0, 3, n).tolist(),
        "large": lambda: 10.0 ** rng.uniform(-6, 6, n),
    }
    odd = {
        "negative": lambda: rng.normal(size=n),
        "zeros": lambda: np.zeros(n),
        "missing": lambda: np.full(n, np.nan),
        "short": lambda: np.ones(max(n - 1, 0)),
        "texts": lambda: ["a"] * n,
        "matrix": lambda: np.ones((n, 2)),
        "enormous": lambda: np.full(n, 1e300),
        "a number": lambda: 2.0,
        "objects": lambda: [None] * n,
    }
    kinds = usual if rng.random() < 0.95 else odd
    drawn["weights"] = kind = str(pick(rng, list(kinds)))
    return kinds[kind]()


# ------------------------------------------------------------------------------------------------- models


def concentration(rng, d):
    return pick(
        rng, [1.0, 1.0, 0.5, 2, 1e-9, 1e9, 0, "evidence", rng.random(d) + 0.1, rng.random((2, d)), -1, "x", [1, 2]]
    )


def options(rng, model, d):
    """Constructor arguments of a model: most of them can be meant."""
    out = {}
    routes = ["exact", "exact", "mean", "map", "mle", "unbiased"]
    out["inference"] = pick(rng, routes if "Gaussian" in model else routes[:-1])
    for name, values in {
        "class_alpha": [0, 0.5, [1.0, 2.0], -1],
        "class_prior": [[0.5, 0.5], [1.0, 0.0], [0.3, 0.3, 0.4], [0.7, 0.7], "even"],
        "fit_prior": [False, "no"],
        "likelihood_power": ["loo", 0.0, 0.5, -1, "x"],
        "random_state": [0, np.random.RandomState(1), np.random.default_rng(2)],
        "missing": ["marginalize", "error", "drop"],
    }.items():
        if rng.random() < 0.12 and not (name == "missing" and model in ("MultinomialNB", "MixedNB")):
            out[name] = pick(rng, values)
    if model in ("BernoulliNB", "MultinomialNB", "CategoricalNB") and rng.random() < 0.6:
        out["alpha"] = concentration(rng, d)
    if model == "BernoulliNB":
        out |= {"binarize": pick(rng, [0.0, 0.0, 1.5, None, -1, "x"])} if rng.random() < 0.3 else {}
        out |= {"alpha": pick(rng, [(0.5, 2.0), (1.0, 0.0), (1.0, 2.0, 3.0)])} if rng.random() < 0.1 else {}
    if model == "MultinomialNB" and rng.random() < 0.3:
        out["multinomial_coefficient"] = True
    if model == "CategoricalNB" and rng.random() < 0.3:
        out["handle_unknown"] = pick(rng, ["predictive", "ignore", "error", "x"])
        out |= {"min_categories": pick(rng, [2, 6, -1])} if rng.random() < 0.3 else {}
    if model == "GaussianNB":
        out["variance"] = pick(rng, ["per_class", "per_class", "shared"])
        priors = ["reference", "evidence", NormalInverseGamma(0.0, 0.5, 2.0, 1.0), NormalInverseGamma(shape=4.0), "x"]
        out |= (
            {"prior": pick(rng, [*priors, NormalInverseGamma(mean=rng.normal(size=d))])} if rng.random() < 0.4 else {}
        )
    if model == "GaussianDiscriminantAnalysis":
        out["covariance"] = pick(rng, ["per_class", "shared", "shared"])
        wishart = NormalInverseWishart(0.0, 0.5, d + 3.0, np.eye(d))
        out |= {"prior": pick(rng, ["reference", "evidence", wishart, "x"])} if rng.random() < 0.4 else {}
    if model == "PoissonNB" and rng.random() < 0.4:
        out["prior"] = pick(rng, ["evidence", Gamma(0.5, 2.0), Gamma(0.0, 0.0), Gamma(rng.random(d), 1.0), "x"])
    if model == "GenerativeClassifier":
        out = {name: value for name, value in out.items() if name != "missing"}
        out["family"] = pick(rng, ["gaussian", "bernoulli", "multinomial", "poisson", "multivariate_gaussian", "x"])
    if rng.random() < 0.08:
        out |= {"unlabelled": pick(rng, ["em", "em", "x"]), "inference": pick(rng, ["mean", "map", "mle", "exact"])}
    if model == "MixedNB":
        out["inference"] = pick(rng, ["exact", "mean", "mle"])
        if rng.random() < 0.5:
            kind = pick(rng, [GaussianNB, CategoricalNB, PoissonNB, GaussianDiscriminantAnalysis, BernoulliNB])
            out["blocks"] = [("first", kind(), [0]), ("rest", CategoricalNB(), list(range(1, d)))][: 1 + (d > 1)]
    return out


def make(model, given):
    return getattr(bayesgen, model)(**given)


# -------------------------------------------------------------------------------------------------- judge


def deliberate(error):
    """Whether an exception comes from a `raise` in this library, or from a check of scikit-learn."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    library, checks = (frame.filename.startswith(folder) for folder in OURS)
    return checks or (library and str(frame.line).startswith("raise"))


def check_refusal(error, models, before):
    assert deliberate(error), f"an error from inside: {error!r}"
    assert len(str(error)) > 15, f"not a sentence: {error!r}"
    assert [state(model) for model in models] == before, f"half changed by a call that failed: {error!r}"


def state(model):
    return pickle.dumps(model)


class Refused(Exception):
    """An acceptable error has ended a call."""


@contextmanager
def judged(*models):
    """A call: it may be refused with an error of ours; models are afterwards what they were if it is, and no NumPy
    warning escapes. The list of warnings is handed out."""
    before = [state(model) for model in models]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield caught
        except ERRORS as error:
            check_refusal(error, models, before)
            raise Refused from error
    strange = [w for w in caught if not issubclass(w.category, (UserWarning, DataConversionWarning, FutureWarning))]
    assert not strange, f"a warning from inside: {strange[0].category.__name__}: {strange[0].message}"


def zero_probability(caught):
    return any(issubclass(w.category, ZeroProbabilityWarning) for w in caught)


def close(actual, desired, rtol=1e-7, atol=1e-7):
    assert_allclose(np.asarray(actual, float), np.asarray(desired, float), rtol=rtol, atol=atol)


def check_predictions(model, x, n):
    """All predictions of rows: what they must be whatever the model."""
    k = len(model.classes_)
    with judged() as caught:
        before = state(model)
        proba = model.predict_proba(x)
    assert proba.shape == (n, k)
    gone = np.isnan(proba).any(axis=1)
    assert not gone.any() or zero_probability(caught), "NaN without a warning"
    assert np.isnan(proba[gone]).all()
    close(proba[~gone].sum(axis=1), 1.0, atol=1e-12)
    assert ((proba[~gone] >= 0) & (proba[~gone] <= 1)).all()
    with judged():
        label, log, joint = model.predict(x), model.predict_log_proba(x), model.predict_joint_log_proba(x)
    assert np.isin(label, model.classes_).all()
    best = proba[~gone].max(axis=1)
    own = proba[~gone][np.arange(len(best)), np.searchsorted(model.classes_, label[~gone])]
    close(own, best)
    assert not np.isnan(joint).any()
    with np.errstate(all="ignore"):
        close(np.exp(log), proba)
        if model.likelihood_power_ == 1.0:
            shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
            near = ~gone & (np.abs(np.where(np.isneginf(joint), 0.0, joint)).max(axis=1) < 1e6)  # with digits to spare
            close((shifted / shifted.sum(axis=1, keepdims=True))[near], proba[near], rtol=1e-5, atol=1e-5)
    assert state(model) == before, "predicting has changed the model"
    return proba, joint


def one_by_one(model, x, joint, kinds):
    """Each row alone as among the others; sparse as dense."""
    # Terms of counts of billions are 1e11 nats and cancel to what the joint is.
    rtol = 1e-11 if tame(kinds) else 1e-5
    if isinstance(x, (np.ndarray, pd.DataFrame, pl.DataFrame)) and len(x):
        i = len(x) // 2
        with judged():
            close(model.predict_joint_log_proba(x[i : i + 1]), joint[i : i + 1], rtol=rtol, atol=rtol)
    elif sp.issparse(x):
        with judged():
            close(model.predict_joint_log_proba(x.toarray()), joint, rtol=max(rtol, 1e-9), atol=max(rtol, 1e-9))


def check_rest(model, rng, x, y, w, kinds):
    """What else can be asked of a model."""
    n, k = len(y), len(model.classes_)
    asked = {
        "loo": lambda: model.loo(x, y, w),
        "evidence": lambda: model.log_evidence_,
        "explain": lambda: model.explain(x, n_draws=20, random_state=0),
        "sample": lambda: model.sample(4, random_state=0),
        "draws": lambda: model.sample_proba(x, 5, random_state=0),
        "interval": lambda: model.predict_proba_interval(x, n_draws=20, random_state=0),
        "log odds": lambda: model.log_odds(x),
        "p-value": lambda: model.score_p_value(x, n_samples=20, random_state=0),
        "rates": lambda: model.estimate_class_prior(x),
        "scores": lambda: model.score_samples(x),
        "decision": lambda: model.decision_function(x) if hasattr(model, "decision_function") else None,
        "logistic": lambda: model.to_logistic(),
        "posterior": lambda: model.posterior_.mean(),
        "given rates": lambda: model.predict_proba(x, class_prior=np.full(k, 1 / k)),
        "axes": lambda: model.transform(x) if hasattr(model, "transform") else None,
        "score": lambda: model.score(x, y, w),
    }
    for name in [str(pick(rng, list(asked))) for _ in range(4)]:
        try:
            with judged(model) as caught:
                before = state(model)
                out = asked[name]()
        except Refused:
            continue
        assert state(model) == before, f"{name} has changed the model"
        if name == "loo":
            assert out.log_joint.shape == (n, k)
            assert not np.isnan(out.log_joint).any() or zero_probability(caught), "NaN without a warning"
        elif name == "evidence":
            assert np.isfinite(out) or out == -np.inf, f"evidence {out}"
        elif name == "explain" and model.likelihood_power_ == 1.0 and tame(kinds):
            with np.errstate(invalid="ignore"):
                total = out.contributions.sum(axis=1) + out.prior
                joint = model.predict_joint_log_proba(x)
                fine = np.isfinite(joint).all(axis=1) & (np.abs(out.contributions).max(axis=(1, 2), initial=0) < 1e6)
                gap = (total - joint)[fine]
            close(gap, np.broadcast_to(gap[:, :1], gap.shape), rtol=1e-5, atol=1e-5)
        elif name == "sample":
            assert len(out[0]) == len(out[1]) == 4
            assert np.isin(out[1], model.classes_).all()
        elif name == "draws":
            assert out.shape == (5, n, k)
            assert not np.isnan(out).any() or zero_probability(caught)
        elif name == "interval":
            assert (np.isnan(out[0]) | (out[0] <= out[1])).all()
        elif name == "p-value":
            assert ((out > 0) & (out <= 1)).all(), f"p-values {out}"
        elif name == "rates":
            close(out.class_prior.sum(), 1.0)
        elif name == "log odds":
            assert (out[1] >= 0).all(), f"sd {out[1]}"
        elif name == "scores":
            assert not np.isnan(out).any()
        elif name == "given rates":
            assert not np.isnan(out).any() or zero_probability(caught)


def take(x, index):
    if isinstance(x, list):
        return [x[i] for i in index]
    if hasattr(x, "iloc"):
        return x.iloc[index]
    return x[index]


def tame(kinds):
    """Columns whose moments keep their digits whatever the order of sums."""
    return not set(kinds) & {"all magnitudes", "denormal", "large counts", "very far from zero", "far from zero"}


def levels(model):
    """Columns and levels of the blocks of a model, for comparison."""
    parts = [(None, model, None)] if not hasattr(model, "blocks_") else model.blocks_
    return [(name, np.array(i).tolist(), [v.tolist() for v in getattr(m, "categories_", [])]) for name, m, i in parts]


def other_ways(model, given, name, x, y, w, kinds, joint, folder):
    """The same model by batches, merging, forgetting and a file."""
    n = len(y)
    path = folder / "model.bayesgen"
    with judged(model):
        model.save(path)
    assert_array_equal(load(path).predict_joint_log_proba(x), joint)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_joint_log_proba(x), joint)
    if (
        model.likelihood_power == "loo"
        or model.unlabelled is not None
        or n < 2
        or isinstance(x, sp.coo_array)
        or (w is not None and np.ndim(w) == 0)
    ):
        return
    rtol = 1e-6 if tame(kinds) and (w is None or np.max(w) < 1e6) else 1.0
    first, second = np.arange(n // 2), np.arange(n // 2, n)
    parts = [(take(x, i), np.asarray(y)[i], None if w is None else np.asarray(w)[i]) for i in (first, second)]
    try:
        with judged():
            batches = make(name, given).fit_batches([(a, b, c) for a, b, c in parts], classes=model.classes_)
            stream = make(name, given)
            for a, b, c in parts:
                if c is None or np.any(c):
                    stream.partial_fit(a, b, classes=model.classes_, sample_weight=c)
            for other in (batches, stream):
                if levels(other) == levels(model):  # which later batches, or rows without weight, may have declared
                    close(other.predict_joint_log_proba(x), joint, rtol=rtol, atol=rtol)
    except Refused:
        return
    fresh = stream.class_count_.copy()
    try:
        with judged(stream):
            stream.forget(*parts[0])
            stream.partial_fit(*parts[0][:2], sample_weight=parts[0][2])
    except Refused:
        return
    close(stream.class_count_, fresh, rtol=1e-6, atol=1e-6 * fresh.max())


def run_case(seed, folder):
    rng = np.random.default_rng(seed)
    drawn = Drawn(seed=seed)
    name = str(pick(rng, list(SUITS)))
    n = int(pick(rng, [1, 2, 3, 6, 12, 12, 20]))
    x, kinds, names = rows(rng, name, n, drawn)
    given = options(rng, name, len(kinds))
    y, w = labels(rng, n, drawn), row_weights(rng, n, drawn)
    drawn |= {"model": name, "options": given, "kinds": kinds, "names": names, "n": n}
    try:
        try:
            with judged():
                model = make(name, given)
            with judged(model):
                model.fit(x, y, w)
        except Refused:
            return "refused"
        try:
            _, joint = check_predictions(model, x, len(y))
            one_by_one(model, x, joint, kinds)
            other_ways(model, given, name, x, y, w, kinds, joint, folder)
        except Refused as error:
            return f"fitted, not predicting its own rows: {error.__cause__}"
        check_rest(model, rng, x, y, w, kinds)
        for _ in range(2):  # other rows of the same columns, or not
            new, _, _ = rows(rng, name, int(pick(rng, [1, 2, 5])), drawn, kinds, names)
            try:
                with judged(model) as caught:
                    proba = model.predict_proba(new)
                    assert not np.isnan(proba).any() or zero_probability(caught)
                check_predictions(model, new, len(proba))
            except Refused:
                continue
            check_rest(model, rng, new, model.predict(new), None, kinds)
            try:
                with judged(model):
                    pick(rng, [model.partial_fit, model.forget, model.loo])(new, model.predict(new))
            except Refused:
                continue
        return "answered"
    except Exception as error:
        error.add_note(f"case {dict(drawn)}")
        raise


@pytest.mark.filterwarnings("ignore")  # those of calls that are judged are looked at there
@pytest.mark.parametrize("block", range(8))
def test_every_answer_is_right_or_a_clear_error(block, tmp_path):
    for seed in range(30 * block, 30 * block + 30):
        run_case(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(8))
def test_every_answer_is_right_or_a_clear_error_in_thousands_of_cases(block, tmp_path):
    for seed in range(10_000 + 250 * block, 10_000 + 250 * block + 250):
        run_case(seed, tmp_path)


# ----------------------------------------------------------------------------------------------------
# what such cases have found


@pytest.mark.parametrize("inference", ["exact", "mean"])
def test_documents_longer_than_the_vocabulary_have_the_moments_of_the_urn(inference):
    words = np.array([[3.0, 1.0, 0.0], [2.0, 2.0, 1.0], [0.0, 1.0, 5.0]])
    model = MultinomialNB(inference=inference).fit(words, [0, 0, 0])
    alpha, length, n = words.sum(axis=0) + 1, 5000, 20_000
    x, _ = model.sample(n, random_state=0, lengths=length)
    p, total = alpha / alpha.sum(), alpha.sum()
    variance = length * p * (1 - p) * ((length + total) / (1 + total) if inference == "exact" else 1.0)
    assert_array_equal(x.sum(axis=1), length)
    assert_allclose(x.mean(axis=0), length * p, atol=4 * np.sqrt(variance / n).max())
    assert_allclose(x.var(axis=0), variance, rtol=0.06)  # five standard errors


def test_documents_of_a_trillion_words_can_be_drawn():
    model = MultinomialNB().fit([[2**40, 1.0], [5.0, 2**40]], [0, 1])
    x, _ = model.sample(3, random_state=0, lengths=[10**12, 0, 7])
    assert_array_equal(x.sum(axis=1), [10**12, 0, 7])
    assert model.score_p_value([[2.0**40, 3.0]], n_samples=50, random_state=0).shape == (1,)


def test_discriminant_axes_take_sparse_rows():
    x = np.array([[0.0, 0], [2, 1], [1, 2], [5, 4], [6, 6], [7, 5]])
    model = GaussianDiscriminantAnalysis().fit(x, [0, 0, 0, 1, 1, 1])
    assert_array_equal(model.transform(sp.csr_array(x)), model.transform(x))


@pytest.mark.parametrize("columns", [["site"], ["site", "town"]])
def test_a_column_in_which_nothing_was_seen_adds_nothing(columns):
    x = pd.DataFrame({"site": [None, None, None], "town": ["Ulm", "Bonn", "Ulm"]})[columns]
    model = CategoricalNB().fit(x, [0, 1, 0])
    new = pd.DataFrame({"site": ["here"], "town": ["Ulm"]})[columns]
    assert_array_equal(model.explain(x).contributions[:, 0], 0)
    assert_array_equal(model.explain(new).contributions[:, 0], 0)
    with pytest.raises(UndefinedNumberError, match="'site' has no levels"):
        model.to_logistic()


def test_smoothing_has_nothing_to_learn_from_where_nothing_was_seen():
    with pytest.raises(UndefinedNumberError, match="alpha='evidence' has nothing to learn from"):
        CategoricalNB(alpha="evidence").fit(pd.DataFrame({"site": [None, None]}), [0, 1])


def test_the_log_odds_of_a_model_of_one_word_are_certain():
    mean, sd = MultinomialNB().fit([[3e9, 0.0], [1e9, 0.0]], [0, 1]).log_odds([[7e9, 0.0], [1e9, 0.0]])
    assert np.isfinite(mean).all()
    assert np.isfinite(sd).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64])
def test_codes_of_few_bits_may_have_more_levels_than_they_can_count(dtype):
    codes = np.arange(300)[:, None]
    model = CategoricalNB().fit(codes, np.arange(300) % 2)
    few = np.array([[0], [100], [127]], dtype=dtype)
    assert_array_equal(model.predict_joint_log_proba(few), model.predict_joint_log_proba(few.astype(int)))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_booleans_with_missing_ones_are_booleans(make):
    model = CategoricalNB().fit(make({"open": [True, None, True]}), [0, 1, 0])
    assert model.categories_[0].tolist() == [True]
    parts = CategoricalNB().fit_batches(
        [(make({"open": [True, True]}), [0, 0]), (make({"open": [None, False]}), [1, 1])]
    )
    whole = CategoricalNB().fit(make({"open": [True, True, None, False]}), [0, 0, 1, 1])
    new = make({"open": [True, False, None]})
    assert_allclose(parts.predict_joint_log_proba(new), whole.predict_joint_log_proba(new), rtol=1e-12)


def test_jax_that_another_thread_is_still_importing_is_not_there_yet(monkeypatch):
    expected = GaussianNB().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).sample(2, random_state=0)
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    model = GaussianNB().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    for value, reference in zip(model.sample(2, random_state=0), expected, strict=True):
        assert_array_equal(value, reference)


@pytest.mark.parametrize("inference", ["exact", "mean"])
def test_counts_beyond_64_bits_can_be_drawn(inference):
    model = PoissonNB(inference=inference).fit(np.full((50, 1), 1e30), [0] * 50)
    x, _ = model.sample(2000, random_state=0)
    rate = 50e30 / 51  # Gamma(50e30 + 1, 51)
    assert_allclose(x.mean(), rate, rtol=1e-14)
    assert_allclose(x.std(), np.sqrt(rate * (1 + 1 / 51 if inference == "exact" else 1)), rtol=0.08)


def test_no_axes_where_the_posterior_has_no_mean_covariance():
    model = GaussianDiscriminantAnalysis(prior="reference").fit([[1.0], [2.0], [4.0]], [0, 1, 1])
    with pytest.raises(UndefinedNumberError, match="covariance of inference='exact' does not exist"):
        model.transform([[1.0]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [13862, 14393, 201387, 702717, 703359])
def test_a_case_that_failed_once_is_answered(seed, tmp_path):
    run_case(seed, tmp_path)
