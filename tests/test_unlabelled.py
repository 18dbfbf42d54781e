"""Rows without a label: EM against brute force, soft labels, label shift, and NUTS with labels summed out."""

from __future__ import annotations

import itertools
import pickle
import warnings
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpyro.diagnostics import effective_sample_size
from numpyro.infer.util import log_density
from scipy.optimize import minimize
from scipy.special import expit, gammaln, log_expit, logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    LKJPrior,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    NUTSOptions,
    PoissonNB,
    UndefinedNumberError,
    UnlabelledRowsWarning,
    em,
)
from bayesgen.label_shift import estimate_rates

MODELS: dict[str, Any] = {
    "bernoulli": BernoulliNB(alpha=(1.5, 2.0), binarize=1.5),
    "multinomial": MultinomialNB(alpha=1.3, multinomial_coefficient=True),
    "categorical": CategoricalNB(alpha=1.2),
    "poisson": PoissonNB(prior=Gamma(2.0, 0.5)),
    "gaussian": GaussianNB(prior=NormalInverseGamma(1.0, 0.2, 3.0, 4.0)),
    "shared variance": GaussianNB(variance="shared"),
    "quadratic": GaussianDiscriminantAnalysis(covariance="per_class"),
    "linear": GaussianDiscriminantAnalysis(prior=NormalInverseWishart(1.0, 0.3, 9.0, 4.0 * np.eye(3))),
    "general": GenerativeClassifier(),
    "mixed": MixedNB(),
}
ROUTES = ("mle", "map", "mean")


def rows(n: int = 40, seed: int = 0, n_labelled: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts of three classes in three columns, the labels, and the labels with -1 for those not known."""
    rng = np.random.default_rng(seed)
    y = np.resize([0, 1, 2], n)
    X = rng.poisson(np.array([[1.0, 3.0, 2.0], [4.0, 1.0, 2.0], [2.0, 2.0, 6.0]])[y]).astype(float)
    X[:3], X[3:6] = [2.0, 1.0, 3.0], [1.0, 2.0, 0.0]  # every column takes two values in every class
    return X, y, np.where(np.arange(n) < n_labelled, y, -1)


def model(name: str, **params: Any) -> Any:
    from sklearn.base import clone

    return clone(MODELS[name]).set_params(unlabelled="em", **params)


def data(name: str, X: np.ndarray) -> np.ndarray:
    if name == "categorical":
        return np.minimum(X, 3).astype(int)
    return np.column_stack([X[:, :2] + 0.25 * X[:, 2:], X[:, 2] > 2]) if name == "mixed" else X


# ------------------------------------------------------------------------------------------ what EM maximises


@pytest.mark.parametrize("name", ["bernoulli", "multinomial", "categorical", "poisson", "gaussian", "linear"])
def test_the_trace_ends_at_the_log_density_of_the_program(name: str) -> None:
    # NumPyro sums its own sites: prior, labelled rows, and unlabelled rows with the label summed out.
    X, _, u = rows()
    X = data(name, X)
    m = model(name, inference="map", unlabelled_weight=0.7).fit(X, u)
    fit = m._fit_value
    values = {"class_prob": np.exp(fit.log_class), **fit.features.prior.variables(fit.features.params)}
    with jax.enable_x64(True):
        total, _ = log_density(m.model, (X, u), {}, values)
    assert_allclose(m.log_posterior_trace_[-1], total, rtol=1e-11)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), n_labelled=st.integers(18, 40), weight=st.floats(0.01, 30.0))
def test_the_objective_never_falls(name: str, route: str, seed: int, n_labelled: int, weight: float) -> None:
    X, _, u = rows(seed=seed, n_labelled=n_labelled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlabelledRowsWarning)
        m = model(name, inference=route, unlabelled_weight=weight).fit(data(name, X), u)
    if n_labelled == 40:
        assert not hasattr(m, "log_posterior_trace_")
        return
    trace = m.log_posterior_trace_
    assert isinstance(trace, np.ndarray)
    assert trace.shape == (m.n_iter_,)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()


def brute(objective: Any, start: np.ndarray) -> np.ndarray:
    found = minimize(lambda t: -objective(t), start, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    return found.x


def mixture(log_class: np.ndarray, log_joint: np.ndarray, u: np.ndarray, weight: float) -> float:
    """The two likelihood terms of J, from ln p(x | y) alone."""
    known = u >= 0
    joint = log_class + log_joint
    return joint[known, u[known]].sum() + weight * logsumexp(joint[~known], axis=1).sum()


def test_em_is_the_brute_maximum_of_bernoulli() -> None:
    X, _, u = rows()
    X, keep = (X[:, :2] > 1.5).astype(float), u != 2
    X, u = X[keep], u[keep]
    for route, extra in (("mle", 0.0), ("map", 0.8), ("mean", 1.8)):
        # A logit-flat parametrisation: the density is with respect to p, so the mode is the maximum at any coordinates.
        def objective(t: np.ndarray, extra: float = extra) -> float:
            phi, p = np.array([log_expit(-t[0]), log_expit(t[0])]), t[1:].reshape(2, 2)
            like = X @ log_expit(p).T + (1 - X) @ log_expit(-p).T
            prior = extra * (phi.sum() + (log_expit(p) + log_expit(-p)).sum())
            return prior + mixture(phi, like, u, 0.5)

        m = BernoulliNB(alpha=1.8, class_alpha=1.8, inference=route, unlabelled="em", unlabelled_weight=0.5).fit(X, u)
        start = np.concatenate([[0.0], (m.feature_log_prob_ * 0.9).ravel()])
        best = brute(objective, start)
        assert_allclose(expit(best[1:].reshape(2, 2)), np.exp(m.feature_log_prob_), atol=2e-5)
        assert_allclose(expit(best[0]), np.exp(m.class_log_prior_[1]), atol=2e-5)
        moved = best.copy()
        moved[0], moved[1:] = m.class_log_prior_[1] - m.class_log_prior_[0], logit(m.feature_log_prob_).ravel()
        assert objective(moved) >= objective(best) - 1e-9


def logit(log_p: np.ndarray) -> np.ndarray:
    return log_p - np.log1p(-np.exp(log_p))


def test_em_is_the_brute_maximum_of_multinomial_and_poisson() -> None:
    X, _, u = rows()
    X, keep = X[:, :3], u != 2
    X, u = X[keep], u[keep]

    def log_softmax(t: np.ndarray) -> np.ndarray:
        t = np.concatenate([np.zeros((*t.shape[:-1], 1)), t], axis=-1)
        return t - logsumexp(t, axis=-1, keepdims=True)

    for route, extra in (("mle", 0.0), ("map", 0.6), ("mean", 1.6)):

        def words(t: np.ndarray, extra: float = extra) -> float:
            phi, theta = log_softmax(t[:1]), log_softmax(t[1:].reshape(2, 2))
            return extra * (phi.sum() + theta.sum()) + mixture(phi, X @ theta.T, u, 1.0)

        m = MultinomialNB(alpha=1.6, class_alpha=1.6, inference=route, unlabelled="em").fit(X, u)
        found = m.feature_log_prob_[:, 1:] - m.feature_log_prob_[:, :1]
        here = np.concatenate([[np.diff(m.class_log_prior_)[0]], found.ravel()])
        best = brute(words, 0.8 * here)
        assert_allclose(here, best, atol=1e-4)
        assert words(here) >= words(best) - 1e-9

        def counts(t: np.ndarray, route: str = route, extra: float = extra) -> float:
            phi, rate = log_softmax(t[:1]), t[1:].reshape(2, 3)
            power = {"mle": 0.0, "map": 1.5 - 1.0, "mean": 1.5}[route]  # Gamma(1.5, 0.7), shifted for the mean
            prior = extra * phi.sum() + power * rate.sum() - (route != "mle") * 0.7 * np.exp(rate).sum()
            return prior + mixture(phi, X @ rate.T - np.exp(rate).sum(axis=1), u, 1.0)

        p = PoissonNB(prior=Gamma(1.5, 0.7), class_alpha=1.6, inference=route, unlabelled="em").fit(X, u)
        here = np.concatenate([[np.diff(p.class_log_prior_)[0]], np.log(p.rate_).ravel()])
        best = brute(counts, 0.9 * here)
        assert_allclose(here, best, atol=1e-4)
        assert counts(here) >= counts(best) - 1e-9


@pytest.mark.parametrize("shared", [False, True])
def test_em_is_the_brute_maximum_of_gaussian(shared: bool) -> None:
    X, _, u = rows()
    X, keep = X[:, :1] + 0.3 * X[:, 1:2], u != 2
    X, u = X[keep], u[keep]
    a, b, kappa, loc = 2.5, 3.0, 0.4, 1.0
    # IG(a, b) times N(loc, v / kappa) for each mean; the mean of it is the mode with shape a - 5/2, shared a - 2 - K/2.
    for route, shape in (("map", a), ("mean", a - (3.0 if shared else 2.5))):

        def objective(t: np.ndarray, shape: float = shape, route: str = route) -> float:
            phi, mean, log_v = np.array([log_expit(-t[0]), log_expit(t[0])]), t[1:3], t[3:]
            v = np.exp(log_v) * np.ones(2)
            like = norm.logpdf(X, mean, np.sqrt(v))
            prior = (-(shape + 1) * log_v - b / np.exp(log_v)).sum() + norm.logpdf(mean, loc, np.sqrt(v / kappa)).sum()
            return (route == "mean") * phi.sum() + prior + mixture(phi, like, u, 1.0)

        prior = NormalInverseGamma(loc, kappa, a, b)
        variance = "shared" if shared else "per_class"
        m = GaussianNB(variance=variance, prior=prior, inference=route, unlabelled="em").fit(X, u)
        log_v = np.log(m.var_[: 1 if shared else 2, 0])
        here = np.concatenate([[np.diff(m.class_log_prior_)[0]], m.theta_[:, 0], log_v])
        best = brute(objective, here + 0.1)
        assert_allclose(here, best, atol=1e-4)
        assert objective(here) >= objective(best) - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_a_small_step_from_em_lowers_the_objective_of_discriminant_analysis(shared: bool) -> None:
    # The program's own density, at the result and around it: no direction is up.
    X, _, u = rows()
    X = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    covariance = "shared" if shared else "per_class"
    prior = NormalInverseWishart(1.0, 0.3, 9.0, 4.0 * np.eye(3))
    m = GaussianDiscriminantAnalysis(covariance=covariance, prior=prior, inference="map", unlabelled="em").fit(X, u)
    values = {"class_prob": np.exp(m.class_log_prior_), "mean": m.means_, "covariance": m.covariance_}

    def total(values: dict[str, Any]) -> float:
        with jax.enable_x64(True):
            return float(log_density(m.model, (X, u), {}, values)[0])

    here, rng = total(values), np.random.default_rng(1)
    for _ in range(6):
        for size in (1e-2, -1e-2):
            noise = rng.normal(size=m.covariance_.shape)
            step = {
                "mean": m.means_ + size * rng.normal(size=m.means_.shape),
                "covariance": m.covariance_ + size * (noise + np.swapaxes(noise, -1, -2)),
            }
            assert total({**values, **step}) < here


# ------------------------------------------------------------------------------------------ the mean route


PAIRS = [
    (MultinomialNB(alpha=0.4, class_alpha=0.5), {"alpha": 1.4, "class_alpha": 1.5}),
    (BernoulliNB(alpha=(0.4, 0.7), binarize=1.5), {"alpha": (1.4, 1.7), "class_alpha": 2.0}),
    (CategoricalNB(alpha=0.3), {"alpha": 1.3, "class_alpha": 2.0}),
    (PoissonNB(prior=Gamma(0.4, 0.7)), {"prior": Gamma(1.4, 0.7), "class_alpha": 2.0}),
    (
        GaussianNB(prior=NormalInverseGamma(1.0, 0.2, 5.0, 4.0)),
        {"prior": NormalInverseGamma(1.0, 0.2, 2.5, 4.0), "class_alpha": 2.0},
    ),
    (
        GaussianNB(variance="shared", prior=NormalInverseGamma(1.0, 0.2, 5.0, 4.0)),
        {"prior": NormalInverseGamma(1.0, 0.2, 1.5, 4.0), "class_alpha": 2.0},
    ),
    (
        GaussianDiscriminantAnalysis(prior=NormalInverseWishart(1.0, 0.3, 20.0, 4.0 * np.eye(3))),
        {"prior": NormalInverseWishart(1.0, 0.3, 20.0 - 11.0, 4.0 * np.eye(3)), "class_alpha": 2.0},
    ),
    (
        GaussianDiscriminantAnalysis(
            covariance="per_class", prior=NormalInverseWishart(1.0, 0.3, 20.0, 4.0 * np.eye(3))
        ),
        {"prior": NormalInverseWishart(1.0, 0.3, 20.0 - 9.0, 4.0 * np.eye(3)), "class_alpha": 2.0},
    ),
]


@pytest.mark.parametrize(("stated", "shifted"), PAIRS)
def test_the_mean_route_is_the_mode_under_the_shifted_prior(stated: Any, shifted: dict[str, Any]) -> None:
    X, _, u = rows()
    X = X.astype(int) if isinstance(stated, CategoricalNB) else X
    mean = stated.set_params(inference="mean", unlabelled="em").fit(X, u)
    mode = type(stated)(**{**stated.get_params(deep=False), **shifted, "inference": "map"}).fit(X, u)
    assert_allclose(mean.predict_proba(X), mode.predict_proba(X), rtol=1e-10)
    assert_allclose(mean.log_posterior_trace_, mode.log_posterior_trace_, rtol=1e-11)


def test_a_shifted_prior_may_be_improper() -> None:
    # IG shape 1.5 becomes -1: the trace is then up to a constant, and goes up all the same.
    X, _, u = rows()
    m = GaussianNB(inference="mean", unlabelled="em").fit(X, u)
    p = m.prior_
    far = GaussianNB(inference="map", unlabelled="em", prior="reference", class_alpha=2.0)
    assert (np.diff(m.log_posterior_trace_) > 0).all()
    # The same J by hand, differences only.
    first, last = (trace_value(X, u, steps) for steps in (2, m.n_iter_))
    assert_allclose(last - first, m.log_posterior_trace_[-1] - m.log_posterior_trace_[1], rtol=1e-9)
    assert p.shape == 1.5
    assert (np.diff(far.fit(X, u).log_posterior_trace_) > 0).all()


def trace_value(X: np.ndarray, u: np.ndarray, steps: int) -> float:
    """J of the mean route of GaussianNB after some steps, without normalisers of the prior."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        patch.setattr(em, "MOST_STEPS", steps)
        g = GaussianNB(inference="mean", unlabelled="em").fit(X, u)
    p = g.prior_
    mean, v, phi = g.theta_, g.var_, g.class_log_prior_
    like = norm.logpdf(X[:, None, :], mean, np.sqrt(v)).sum(axis=-1)
    shape = p.shape - 2.5
    prior = (-(shape + 1) * np.log(v) - p.scale / v).sum()
    prior += norm.logpdf(mean, p.mean, np.sqrt(v / p.mean_precision)).sum() + phi.sum()
    return prior + mixture(phi, like, u, 1.0)


# ------------------------------------------------------------------------------------------ rows, weights, labels


@pytest.mark.parametrize("route", [*ROUTES, "exact"])
@pytest.mark.parametrize("name", MODELS)
def test_without_unlabelled_rows_it_is_the_plain_fit(name: str, route: str) -> None:
    X, y, u = rows()
    X = data(name, X)
    plain = model(name, inference=route).set_params(unlabelled=None)
    if name == "mixed":
        plain.set_params(blocks=model(name, inference=route).fit(X, y).blocks_)
    expected = plain.fit(X, y).predict_proba(X)
    assert_array_equal(model(name, inference=route).fit(X, y).predict_proba(X), expected)
    assert_array_equal(model(name, inference=route, unlabelled_weight=0.0).fit(X[:16], u[:16]).class_count_, [6, 5, 5])


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", MODELS)
def test_weights_of_unlabelled_rows_are_repetitions(name: str, route: str) -> None:
    X, _, u = rows()
    X = data(name, X)
    w = np.where(u < 0, 2.0, 1.0)
    index = np.repeat(np.arange(len(u)), w.astype(int))
    weighted = model(name, inference=route).fit(X, u, sample_weight=w)
    for other in (
        model(name, inference=route).fit(X[index], u[index]),
        model(name, inference=route, unlabelled_weight=2.0).fit(X, u),
    ):
        assert_allclose(other.predict_log_proba(X), weighted.predict_log_proba(X), rtol=1e-7, atol=1e-9)
        assert_allclose(other.log_posterior_trace_[-1], weighted.log_posterior_trace_[-1], rtol=1e-11)
    zero = np.where(np.arange(len(u)) % 7 == 6, 0.0, 1.0)
    left = model(name, inference=route).fit(X, u, sample_weight=zero)
    gone = model(name, inference=route).fit(X[zero > 0], u[zero > 0])
    assert_allclose(left.predict_log_proba(X), gone.predict_log_proba(X), rtol=1e-9)


def test_labels_that_are_not_known_come_in_many_kinds() -> None:
    pd = pytest.importorskip("pandas")
    X, _, u = rows()
    expected = MultinomialNB(inference="mean", unlabelled="em").fit(X, u)
    names = np.array(["a", "b", "c", None], dtype=object)[u]
    missing = [v if v >= 0 else np.nan for v in u]
    kinds = {
        "list of texts": ([*names], "abc"),
        "texts with NaN": ([np.nan if v is None else v for v in names], "abc"),
        "objects": (names, "abc"),
        "floats": (np.array(missing), (0.0, 1.0, 2.0)),
        "whole numbers and None": ([None if v < 0 else int(v) for v in u], (0, 1, 2)),
        "nullable": (pd.Series(u).replace(-1, pd.NA).astype("Int64"), (0, 1, 2)),
        "series of -1": (pd.Series(u), (0, 1, 2)),
        "categorical": (pd.Series(names).astype("category"), "abc"),
        "strings": (pd.Series(names).astype("string"), "abc"),
    }
    for y, classes in kinds.values():
        m = MultinomialNB(inference="mean", unlabelled="em").fit(X, y)
        assert m.classes_.tolist() == list(classes)
        assert_array_equal(m.predict_proba(X), expected.predict_proba(X))
    # By default nothing has changed: -1 is a label, and a missing one is an error.
    assert MultinomialNB().fit(X, u).classes_.tolist() == [-1, 0, 1, 2]
    assert GaussianNB(unlabelled="em").fit(X, np.where(u > 0, 1.0, -1.0)).classes_.tolist() == [-1.0, 1.0]
    with pytest.raises(ValueError, match="every row needs a label"):
        MultinomialNB().fit(X, names)


def test_sparse_and_dense_rows_agree() -> None:
    X, _, u = rows()
    for estimator in (MultinomialNB(), BernoulliNB(), PoissonNB()):
        estimator.set_params(inference="mean", unlabelled="em")
        dense = estimator.fit(X, u).predict_log_proba(X)
        assert_allclose(estimator.fit(sp.csr_matrix(X), u).predict_log_proba(X), dense, rtol=1e-9)


def test_missing_cells_and_unlabelled_rows_together() -> None:
    X, _, u = rows()
    X[::5, 0] = np.nan
    X[7] = np.nan  # a row that says nothing
    for estimator in (GaussianNB(), PoissonNB(), BernoulliNB()):
        m = estimator.set_params(inference="mean", unlabelled="em").fit(X, u)
        assert (np.diff(m.log_posterior_trace_) > -1e-9).all()
        assert_allclose(m.predict_proba(X[7:8])[0], np.exp(m.class_log_prior_), rtol=1e-12)


def test_a_class_without_labelled_rows_is_declared_by_a_row_of_no_weight() -> None:
    rng = np.random.default_rng(0)
    y = np.resize([0, 1, 2], 300)
    X = rng.normal(size=(300, 2)) + 6.0 * np.column_stack([y == 1, y == 2])
    u = np.where((np.arange(300) < 60) & (y < 2), y, -1)
    u[2] = 2
    w = np.ones(300)
    w[2] = 0.0
    m = GaussianNB(inference="mean", unlabelled="em", n_init=3, random_state=0).fit(X, u, sample_weight=w)
    assert m.classes_.tolist() == [0, 1, 2]
    assert m.score(X, y) > 0.99
    shared = GaussianNB(inference="mle", variance="shared", unlabelled="em", n_init=3, random_state=0)
    assert shared.fit(X, u, sample_weight=w).score(X, y) > 0.99


def test_a_word_that_no_labelled_text_has_is_no_obstacle_to_maximum_likelihood() -> None:
    X = np.array([[3, 1, 0, 0], [1, 3, 0, 0], [0, 0, 2, 1], [4, 0, 3, 0], [0, 5, 0, 3]])
    m = MultinomialNB(inference="mle", unlabelled="em").fit(X, [0, 1, -1, -1, -1])
    assert np.isfinite(m.log_posterior_trace_).all()
    assert m.predict(X[3:]).tolist() == [0, 1]
    assert np.isfinite(m.predict_proba(X)).all()


def test_more_starts_never_do_worse_and_the_first_is_from_the_labels() -> None:
    X, _, u = rows(n=60, n_labelled=9)
    for name in ("gaussian", "multinomial"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnlabelledRowsWarning)
            one, two, again = (
                model(name, inference="map", n_init=n, random_state=s).fit(X, u) for n, s in ((1, 0), (6, 1), (6, 1))
            )
        assert two.log_posterior_trace_[-1] >= one.log_posterior_trace_[-1]
        assert_array_equal(two.predict_proba(X), again.predict_proba(X))
        assert_array_equal(
            one.predict_proba(X), model(name, inference="map", random_state=5).fit(X, u).predict_proba(X)
        )


def test_hyperparameters_are_those_of_the_labelled_rows() -> None:
    X, _, u = rows()
    known = u >= 0
    for stated in (GaussianNB(), GaussianDiscriminantAnalysis(), MultinomialNB(alpha="evidence")):
        alone = stated.set_params(inference="mean").fit(X[known], u[known])
        prior = pickle.dumps(alone.prior_)
        assert pickle.dumps(stated.set_params(unlabelled="em").fit(X, u).prior_) == prior
    assert stated.learned_.value.shape == (1,)


# ------------------------------------------------------------------------------------------ errors, warnings


def test_routes_without_a_closed_form_say_what_to_write() -> None:
    X, _, u = rows()
    for estimator in (MultinomialNB(), GaussianNB(inference="unbiased"), GaussianNB(inference="importance")):
        with pytest.raises(ValueError, match=r"inference='mean' .* or inference='nuts'"):
            estimator.set_params(unlabelled="em").fit(X, u)
        assert not hasattr(estimator, "classes_")
    block = [("words", MultinomialNB(), [0, 1, 2])]
    with pytest.raises(ValueError, match="'exact' of block 'words'"):
        MixedNB(blocks=block, inference="mean", unlabelled="em").fit(X, u)
    with pytest.raises(ValueError, match="option of MixedNB itself"):
        MixedNB(blocks=[("words", MultinomialNB(unlabelled="em"), [0, 1])]).fit(X, u)


def test_an_unbounded_density_is_an_error_that_names_the_cell() -> None:
    X, _, u = rows()
    unseen = np.column_stack([X, np.where(u < 0, 1.0, 0.0)])
    for estimator in (MultinomialNB(alpha=0.5), PoissonNB(prior=Gamma(0.5, 1.0)), BernoulliNB(alpha=(0.5, 2.0))):
        with pytest.raises(ValueError, match=r"column 3 in class 0 .*below 1"):
            estimator.set_params(inference="map", unlabelled="em").fit(unseen, u)
        estimator.set_params(inference="mean").fit(unseen, u)
    with pytest.raises(ValueError, match="column 0 in class 0 has a concentration"):
        CategoricalNB(alpha=0.5, inference="map", unlabelled="em").fit(unseen.astype(int), u)
    w = np.where(u == 0, 0.1, 1.0)
    with pytest.raises(ValueError, match="probability of class 0"):
        MultinomialNB(alpha=2.0, class_alpha=0.2, inference="map", unlabelled="em").fit(X, u, sample_weight=w)
    with pytest.raises(ValueError, match="no spread in column 3 of class 0"):
        GaussianNB(inference="mle", unlabelled="em").fit(unseen, u)
    with pytest.raises(ValueError, match=r"no spread in column 3 \(variance shared"):
        GaussianDiscriminantAnalysis(inference="mle", unlabelled="em").fit(unseen, u)
    for estimator in (GaussianNB(variance="shared", inference="map"), GaussianDiscriminantAnalysis(inference="map")):
        estimator.set_params(unlabelled="em").fit(unseen, u)  # the prior keeps the variance from zero


def test_what_needs_all_rows_says_so() -> None:
    X, _, u = rows()
    m = model("multinomial", inference="mean").fit(X, u)
    plain = MultinomialNB().fit(X, u)
    for call in (
        lambda: m.partial_fit(X, u),
        lambda: m.merge(plain),
        lambda: plain.merge(m),
        lambda: m.forget(X, u),
        lambda: model("multinomial").from_statistics(plain.statistics_),
    ):
        with pytest.raises(ValueError, match="call fit"):
            call()
    with pytest.raises(ValueError, match="exact leave-one-out"):
        model("multinomial", inference="mean", likelihood_power="loo").fit(X, u)
    assert model("multinomial", inference="mean", likelihood_power=0.5).fit(X, u).likelihood_power_ == 0.5


def test_numbers_that_em_does_not_define_raise() -> None:
    X, _, u = rows()
    for name in ("multinomial", "gaussian", "mixed"):
        m = model(name, inference="mean").fit(data(name, X), u)
        for call in (
            lambda m=m: m.log_evidence_,
            lambda m=m, name=name: m.loo(data(name, X)[:2], u[:2]),
            lambda m=m, name=name: m.predict_proba_interval(data(name, X)),
            lambda m=m, name=name: m.sample_proba(data(name, X)),
            lambda m=m: m.to_arviz(),
            lambda m=m: m.posterior_,
        ):
            with pytest.raises(UndefinedNumberError, match="unlabelled rows"):
                call()
    with pytest.raises(UndefinedNumberError, match="unlabelled='em'"):
        _ = MultinomialNB().fit(X, u).log_posterior_trace_


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"unlabelled": "yes"}, "unlabelled must be None or 'em'"),
        ({"unlabelled_weight": -1.0}, "unlabelled_weight must be a non-negative number"),
        ({"unlabelled_weight": True}, "unlabelled_weight"),
        ({"n_init": 0}, "n_init must be a whole number"),
    ],
)
def test_bad_options_are_named(params: dict[str, Any], match: str) -> None:
    X, y, _ = rows()
    with pytest.raises(ValueError, match=match):
        MultinomialNB(**params).fit(X, y)


def test_the_mean_without_smoothing_is_maximum_likelihood() -> None:
    X, _, u = rows()
    X = np.column_stack([X, np.where(u < 0, 2.0, 0.0)])
    nothing = {"class_alpha": 0.0, "inference": "mean", "unlabelled": "em"}
    for mean, mle in (
        (MultinomialNB(alpha=0.0, **nothing), MultinomialNB(inference="mle", unlabelled="em")),
        (BernoulliNB(alpha=0.0, **nothing), BernoulliNB(inference="mle", unlabelled="em")),
    ):
        # The two stop at one value of J, which is flat at the top.
        assert_allclose(mean.fit(X, u).predict_proba(X), mle.fit(X, u).predict_proba(X), atol=2e-5)
        gains = np.diff(mean.log_posterior_trace_), np.diff(mle.log_posterior_trace_)
        assert_allclose(gains[0][:8], gains[1][:8], atol=1e-6)


def test_known_class_probabilities_stay() -> None:
    X, _, u = rows()
    m = PoissonNB(class_prior=[0.5, 0.3, 0.2], inference="map", unlabelled="em").fit(X, u)
    assert_allclose(np.exp(m.class_log_prior_), [0.5, 0.3, 0.2])
    like = X @ np.log(m.rate_).T - m.rate_.sum(axis=1)
    by_hand = mixture(m.class_log_prior_, like, u, 1.0) - m.rate_.sum()  # Gamma(1, 1) is exponential
    log_factorials = gammaln(X + 1).sum()
    assert_allclose(m.log_posterior_trace_[-1], by_hand - log_factorials, rtol=1e-11)
    with pytest.raises(ValueError, match="class 2 has labelled rows"):
        PoissonNB(class_prior=[0.5, 0.5, 0.0], inference="map", unlabelled="em").fit(X, u)


def test_no_label_at_all_is_an_error() -> None:
    X, _, _ = rows()
    for y in (np.full(40, -1), np.full(40, np.nan), [None] * 40):
        with pytest.raises(ValueError, match="y has no label"):
            MultinomialNB(inference="mean", unlabelled="em").fit(X, y)


def test_steps_that_do_not_suffice_are_a_convergence_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, u = rows()
    monkeypatch.setattr(em, "MOST_STEPS", 3)
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 steps") as caught:
        m = model("gaussian", inference="mean").fit(X, u)
    assert m.n_iter_ == 3
    assert caught[0].filename == __file__


def test_clusters_that_are_not_the_classes_are_a_warning() -> None:
    # Two clusters along five columns; the label is about another.
    rng = np.random.default_rng(0)
    n = 600
    cluster = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6)) + 2.0 * cluster[:, None] * np.array([1, 1, 1, 1, 1, 0])
    y = (rng.normal(size=n) * 0.5 + X[:, 5] > 0).astype(int)
    u = np.where(np.arange(n) < 60, y, -1)
    with pytest.warns(UnlabelledRowsWarning, match="pull the fit away") as caught:
        m = GaussianNB(inference="mean", unlabelled="em").fit(X, u)
    assert caught[0].filename == __file__
    alone = GaussianNB(inference="mean").fit(X[:60], y[:60])
    assert m.score(X, y) < 0.6 < 0.75 < alone.score(X, y)
    # A low weight of theirs is the cure the message names; and clusters that are the classes give no warning.
    GaussianNB(inference="mean", unlabelled="em", unlabelled_weight=0.02).fit(X, u)
    GaussianNB(inference="mean", unlabelled="em").fit(X, np.where(np.arange(n) < 60, cluster, -1))


def test_a_family_without_a_shift_names_map() -> None:
    from bayesgen.families import Family

    with pytest.raises(ValueError, match="inference='map'"):
        Family().shifted()


# ------------------------------------------------------------------------------------------ soft labels


@pytest.mark.parametrize("route", ["mle", "map", "mean", "exact"])
@pytest.mark.parametrize("name", MODELS)
def test_soft_labels_are_rows_repeated_with_weights(name: str, route: str) -> None:
    X, y, _ = rows()
    X = data(name, X)
    R = np.random.default_rng(2).dirichlet(np.ones(3), len(y)) * np.linspace(0.0, 2.0, len(y))[:, None]
    R[3] = [0.0, 2.0, 0.0]
    labels = np.array(["c", "a", "b"])  # in the order of the columns, not sorted
    make = model(name, inference=route)
    soft = make.fit_soft(X, R, labels)
    repeated = model(name, inference=route).fit(
        np.repeat(X, 3, axis=0), np.tile(labels, len(y)), sample_weight=R.ravel()
    )
    assert soft.classes_.tolist() == ["a", "b", "c"]
    assert_allclose(soft.class_count_, repeated.class_count_, rtol=1e-12)
    assert_allclose(soft.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X), rtol=1e-12)
    if route == "exact":
        assert_allclose(soft.log_evidence_, repeated.log_evidence_, rtol=1e-12)


def test_soft_labels_with_a_learned_power() -> None:
    X, _, _ = rows()
    R = np.random.default_rng(2).dirichlet(np.ones(2), len(X))
    soft = MultinomialNB(likelihood_power="loo").fit_soft(X, R, [0, 1])
    repeated = MultinomialNB(likelihood_power="loo").fit(np.repeat(X, 2, axis=0), np.tile([0, 1], len(X)), R.ravel())
    assert_allclose(soft.likelihood_power_, repeated.likelihood_power_, rtol=1e-9)


@pytest.mark.parametrize(
    ("R", "classes", "match"),
    [
        ([[1.0, -0.1]] * 40, [0, 1], "negative weight -0.1"),
        ([[1.0, np.nan]] * 40, [0, 1], "NaN"),
        ([[1.0, 1.0, 1.0]] * 40, [0, 1], "R has 3 columns; classes names 2"),
        ([[1.0, 1.0]] * 39, [0, 1], "inconsistent numbers of samples"),
        ([[1.0, 1.0]] * 40, [1, 1], "distinct"),
        ([[0.0, 0.0]] * 40, [0, 1], "R is zero everywhere"),
    ],
)
def test_bad_soft_labels_are_named(R: Any, classes: Any, match: str) -> None:
    X, _, _ = rows()
    with pytest.raises(ValueError, match=match):
        MultinomialNB().fit_soft(X, R, classes)


# ------------------------------------------------------------------------------------------ label shift


def test_class_rates_of_two_classes_are_the_maximum_and_its_likelihood_interval() -> None:
    X, y, _ = rows(n=90)
    m = MultinomialNB().fit(X[y < 2], y[y < 2])
    new = X[y == 1][:20]
    w = np.linspace(0.5, 1.5, len(new))
    rates = m.estimate_class_prior(new, sample_weight=w, prob=0.9)
    f = np.exp(m.predict_joint_log_proba(new) - m.class_log_prior_)
    grid = np.linspace(0.0, 1.0, 100_001)
    with np.errstate(divide="ignore"):
        curve = w @ np.log(np.outer(f[:, 0], 1 - grid) + np.outer(f[:, 1], grid))
    inside = grid[curve >= curve.max() - 2.705543454095404 / 2]
    assert_allclose(rates.class_prior[1], grid[curve.argmax()], atol=1e-4)
    assert_allclose([rates.lower[1], rates.upper[1]], [inside[0], inside[-1]], atol=2e-5)
    assert_allclose(rates.lower[0], 1 - rates.upper[1], atol=1e-6)
    assert (np.diff(rates.trace) >= -1e-12).all()
    assert_array_equal(m.predict_proba(X, class_prior=rates), m.predict_proba(X, class_prior=rates.class_prior))


def test_class_rates_do_not_depend_on_those_at_training() -> None:
    X, y, _ = rows(n=90)
    a, b = (
        GaussianNB(class_prior=p).fit(X, y).estimate_class_prior(X[y > 0]) for p in ([0.8, 0.1, 0.1], [0.2, 0.3, 0.5])
    )
    assert_allclose(a.class_prior, b.class_prior, rtol=1e-9)
    assert_allclose(a.lower, b.lower, atol=1e-5)
    assert ((a.lower <= a.class_prior) & (a.class_prior <= a.upper)).all()
    assert "0:" in repr(a)


def test_the_profile_interval_of_three_classes_is_that_of_a_grid() -> None:
    rng = np.random.default_rng(3)
    log_density = norm.logpdf(rng.normal(1.5 * rng.choice(3, 60, p=[0.5, 0.3, 0.2]))[:, None], 1.5 * np.arange(3))
    rates = estimate_rates(log_density, None, 0.94, np.arange(3))
    t = np.linspace(0.0, 1.0, 301)
    a, b = np.meshgrid(t, t, indexing="ij")
    pi = np.stack([a, b, 1 - a - b], axis=-1)[a + b <= 1.0]
    curve = np.log(np.maximum(pi, 1e-12) @ np.exp(log_density).T).sum(axis=1)
    near = pi[curve >= curve.max() - 3.5374 / 2]
    assert_allclose(rates.class_prior, pi[curve.argmax()], atol=0.01)
    assert_allclose(rates.lower, near.min(axis=0), atol=0.01)
    assert_allclose(rates.upper, near.max(axis=0), atol=0.01)


def test_label_shift_says_what_it_cannot_do() -> None:
    X, y, _ = rows()
    m = MultinomialNB(inference="mle").fit([[1, 0, 0], [0, 1, 0]], [0, 1])
    with pytest.raises(UndefinedNumberError, match="class rates are undefined"):
        m.estimate_class_prior([[0, 0, 1]])
    with pytest.warns(UserWarning, match="1 of 3 rows have probability zero"):
        assert_allclose(m.estimate_class_prior([[0, 0, 1], [2, 0, 0], [0, 2, 0]]).class_prior, 0.5)
    with pytest.raises(ValueError, match="prob must be"):
        MultinomialNB().fit(X, y).estimate_class_prior(X, prob=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("true", [(0.9, 0.1), (0.6, 0.3, 0.1), (0.7, 0.1, 0.1, 0.1)])
def test_the_interval_of_a_rate_covers_it_as_often_as_it_says(true: tuple[float, ...]) -> None:
    rng, classes, runs = np.random.default_rng(7), np.arange(len(true)), 500
    hits = np.zeros(len(true))
    for _ in range(runs):
        x = rng.normal(1.7 * rng.choice(classes, 300, p=true))
        found = estimate_rates(norm.logpdf(x[:, None], 1.7 * classes), None, 0.94, classes)
        hits += (found.lower <= true) & (true <= found.upper)
    # Four binomial standard errors of 0.94 at 500 runs are 0.042.
    assert (np.abs(hits / runs - 0.94) < 0.042).all(), hits / runs


# ------------------------------------------------------------------------------------------ NUTS


def enumerated(make: Any, X: np.ndarray, u: np.ndarray, new: np.ndarray, parameters: Any) -> tuple[Any, Any, Any]:
    """Posterior means of class_prob and parameters, and p(y | new), by all labelings with their exact evidence."""
    log_weight, joint, class_prob, values = [], [], [], []
    for labels in itertools.product([0, 1], repeat=int((u < 0).sum())):
        y = u.copy()
        y[u < 0] = labels
        # Two rows of no weight declare both classes, whatever the labeling.
        m = make().fit(np.vstack([X, X[:2]]), [*y, 0, 1], sample_weight=[1.0] * len(X) + [0.0] * 2)
        log_weight.append(m.log_evidence_)
        joint.append(np.exp(m.predict_joint_log_proba(new)))
        class_prob.append(np.exp(m.class_log_prior_))
        values.append(parameters(m))
    w = np.exp(np.array(log_weight) - logsumexp(log_weight))
    total = np.tensordot(w, joint, 1)
    return w @ np.array(class_prob), np.tensordot(w, values, 1), total / total.sum(axis=1, keepdims=True)


CASES: dict[str, tuple[Any, Any, str]] = {
    "poisson": (lambda: PoissonNB(prior=Gamma(2.0, 1.0)), lambda m: m.rate_, "rate"),
    "multinomial": (lambda: MultinomialNB(alpha=2.0), lambda m: np.exp(m.feature_log_prob_), "feature_prob"),
    "bernoulli": (lambda: BernoulliNB(alpha=2.0, binarize=4), lambda m: np.exp(m.feature_log_prob_), "feature_prob"),
    "gaussian": (
        lambda: GaussianNB(prior=NormalInverseGamma(3.0, 0.5, 4.0, 6.0)),
        lambda m: m.theta_,
        "mean",
    ),
    "linear": (
        lambda: GaussianDiscriminantAnalysis(prior=NormalInverseWishart(3.0, 0.5, 6.0, 8.0 * np.eye(2))),
        lambda m: m.means_,
        "mean",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nuts_with_labels_summed_out_is_the_sum_over_all_labelings(name: str) -> None:
    make, parameters, site = CASES[name]
    rng = np.random.default_rng(1)
    X = rng.poisson(3, (10, 2)).astype(float)
    X[5:] += rng.poisson(3, (5, 2))
    u = np.array([0, 0, -1, -1, -1, 1, 1, -1, -1, -1])
    class_prob, values, proba = enumerated(make, X, u, X[:3], parameters)
    options = NUTSOptions(num_samples=3000, num_warmup=1000, num_chains=4)
    m = make().set_params(inference=options, unlabelled="em", random_state=0).fit(X, u)
    sites = m._fit_value.features.draws.sites
    for draws, expected in ((sites["class_prob"], class_prob), (sites[site], values)):
        error = draws.std(axis=(0, 1)) / np.sqrt(effective_sample_size(draws))
        assert (np.abs(draws.mean(axis=(0, 1)) - expected) < 4 * error).all()
    assert_allclose(np.exp(m.class_log_prior_), sites["class_prob"].mean(axis=(0, 1)), rtol=1e-12)
    assert_allclose(m.predict_proba(X[:3]), proba, atol=0.01)
    for call in (lambda: m.log_evidence_, lambda: m.posterior_, lambda: m.loo(X[:1], [0])):
        with pytest.raises(UndefinedNumberError, match="mixture"):
            call()


@pytest.mark.slow
def test_nuts_predictions_average_over_joint_draws() -> None:
    X, _, u = rows(n_labelled=12)
    u, X = np.where(u == 2, 0, u), X[:, :2]
    options = NUTSOptions(num_samples=200, num_warmup=300, num_chains=2)
    m = GaussianNB(inference=options, unlabelled="em", random_state=0, likelihood_power=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.fit(X, u)
    sites = {k: v.reshape(-1, *v.shape[2:]) for k, v in m._fit_value.features.draws.sites.items()}
    each = norm.logpdf(X[:, None, :], sites["mean"][:, None], np.sqrt(sites["variance"])[:, None]).sum(axis=-1)
    joint = logsumexp(np.log(sites["class_prob"])[:, None] + each, axis=0) - np.log(len(each))
    assert_allclose(m.predict_joint_log_proba(X), joint, rtol=1e-10)
    other = logsumexp(each, axis=0) - np.log(len(each)) + np.log([0.3, 0.7])
    expected = np.exp(other - logsumexp(other, axis=1, keepdims=True))
    assert_allclose(m.predict_proba(X, class_prior=[0.3, 0.7]), expected, rtol=1e-8)
    lower, upper = m.predict_proba_interval(X)
    assert ((lower <= m.predict_proba(X) + 0.05) & (m.predict_proba(X) <= upper + 0.05)).all()
    drawn, labels = m.sample(2000, random_state=0)
    assert drawn.shape == (2000, 2)
    assert_allclose((labels == 1).mean(), np.exp(m.class_log_prior_[1]), atol=0.05)
    again = pickle.loads(pickle.dumps(m))
    assert_array_equal(again.predict_proba(X), m.predict_proba(X))
    assert m.to_arviz()["posterior"]["class_prob"].shape == (2, 200, 2)
    with pytest.raises(ValueError, match="marginal"):
        m.set_params(inference=NUTSOptions(likelihood="marginal")).fit(X, u)


@pytest.mark.slow
def test_a_prior_of_ones_own_with_unlabelled_rows() -> None:
    X, _, u = rows()
    options = NUTSOptions(num_samples=300, num_warmup=400, num_chains=2)

    def rates(family: Any) -> Any:
        import numpyro
        import numpyro.distributions as dist

        scale = numpyro.sample("spread", dist.HalfNormal(1.0))
        shape = (family.n_classes, family.n_features)
        return {"rate": numpyro.sample("rate", dist.LogNormal(1.0, scale).expand(shape).to_event(2))}

    for estimator in (PoissonNB(prior=rates), GaussianDiscriminantAnalysis(prior=LKJPrior(2.0))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = estimator.set_params(inference=options, unlabelled="em", random_state=0).fit(X, u)
        assert m.predict_proba(X).shape == (40, 3)
        assert m.diagnostics_.r_hat < 1.1


# ------------------------------------------------------------------------------------------ published effect


def test_unlabelled_news_helps(data: Any) -> None:
    """Nigam et al. 2000: with few labelled texts, unlabelled ones raise accuracy by a wide margin."""
    from sklearn.feature_extraction.text import CountVectorizer

    table = data("newsgroups4")
    train, test = (table[table["split"] == part] for part in ("train", "test"))
    vectorizer = CountVectorizer(min_df=2, stop_words="english")
    X, X_test = vectorizer.fit_transform(train["text"]), vectorizer.transform(test["text"])
    y, y_test = train["label"].to_numpy(), test["label"].to_numpy()
    rng = np.random.default_rng(0)
    gains = {}
    for each in (5, 20):
        keep = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:each] for k in np.unique(y)])
        u = np.full(len(y), None, dtype=object)
        u[keep] = y[keep]
        alone = MultinomialNB(inference="mean").fit(X[keep], y[keep]).score(X_test, y_test)
        together = MultinomialNB(inference="mean", unlabelled="em").fit(X, u).score(X_test, y_test)
        gains[each] = (alone, together)
        print(f"{4 * each} labelled of {len(y)} texts: accuracy {alone:.3f} alone, {together:.3f} with the others")
    assert gains[5][1] - gains[5][0] > 0.2
    assert gains[20][1] - gains[20][0] > 0.05


def test_digits_by_parity_are_not_two_clusters() -> None:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    y %= 2
    u = np.where(np.arange(len(y)) < 200, y, -1)
    with pytest.warns(UnlabelledRowsWarning):
        together = MultinomialNB(inference="mean", unlabelled="em").fit(X[:1200], u[:1200])
    alone = MultinomialNB(inference="mean").fit(X[:200], y[:200])
    assert together.score(X[1200:], y[1200:]) < alone.score(X[1200:], y[1200:])


# ------------------------------------------------------------------------------------------ the picture


def test_the_picture_shows_the_trace() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    from bayesgen import plots

    X, _, u = rows()
    m = model("gaussian", inference="mean").fit(X, u)
    ax = figure.Figure().subplots()
    assert plots.objective(m, ax, label="five per class") is ax
    assert_array_equal(ax.get_lines()[0].get_ydata(), m.log_posterior_trace_)
    assert ax.get_ylabel() == "log posterior density (nats)"
    with pytest.raises(UndefinedNumberError):
        plots.objective(GaussianNB().fit(X, u), ax)


def test_missing_cells_and_missing_labels_together_are_refused_under_a_full_covariance():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    X[3, 0] = np.nan
    for labels in (np.where(np.arange(20) < 5, -1, y), np.where(np.arange(20) > 5, -1, y)):
        model = GaussianDiscriminantAnalysis(inference="map", missing="marginalize", unlabelled="em")
        with pytest.raises(ValueError, match="use GaussianNB"):
            model.fit(X, labels)


TIED = np.array([[1, 1, 0], [1, 1, 0], [9, 0, 0], [0, 9, 0], [9, 0, 1], [0, 9, 1]])
ONE_SIDED = np.array([[5, 0, 1], [0, 5, 1], [4, 1, 0], [1, 4, 2], [6, 1, 1], [0, 7, 1]])


@pytest.mark.parametrize(
    ("X", "inference", "weights"),
    [(TIED, "mean", None), (ONE_SIDED, "mle", [1, 0, 1, 1, 1, 1])],
    ids=["tied", "absent"],
)
def test_one_start_leaves_a_point_where_classes_are_alike(X, inference, weights):
    """Labelled rows that are alike, and a class without any: EM from there alone would stand still."""
    y = [0, 1, -1, -1, -1, -1]
    one, many = (
        MultinomialNB(inference=inference, unlabelled="em", random_state=0, n_init=n).fit(X, y, weights) for n in (1, 6)
    )
    assert one.log_posterior_trace_[-1] == pytest.approx(many.log_posterior_trace_[-1], rel=1e-9)
    assert (one.class_count_ > 1.5).all()


def test_classes_that_nobody_labelled_are_said_to_be_arbitrary():
    X, y = ONE_SIDED, np.array([0, 0, 1, 2, -1, -1])
    model = MultinomialNB(inference="mean", unlabelled="em", random_state=0)
    with pytest.warns(UnlabelledRowsWarning, match=r"\[1, 2\] have no labelled row"):
        model.fit(X, y, sample_weight=[1, 1, 0, 0, 1, 1])


def test_rates_of_a_class_without_rows_are_undefined():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = GaussianNB(inference="mle").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(UndefinedNumberError, match="class 2"):
        model.estimate_class_prior(X)
