"""The family of ``docs/add_a_family.md``, taken out of the page: its code runs, and it obeys the laws of a family."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from numpyro.handlers import seed, trace
from numpyro.infer.util import log_density
from scipy import integrate, optimize, stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from bayesgen import GaussianNB, GenerativeClassifier, MixedNB, UndefinedNumberError
from bayesgen.class_prior import ClassPrior
from bayesgen.families import Labels
from bayesgen.joint import program

PAGE = Path(__file__).parents[1] / "docs" / "add_a_family.md"
NAME = "add_a_family_page"
CLOSE = {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture(scope="module")
def page() -> Iterator[ModuleType]:
    """The names that the page's code cells define."""
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    text = PAGE.read_text(encoding="utf-8")
    for cell in re.finditer(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", text, re.M | re.S):
        above = "\n" * text.count("\n", 0, cell.start(1))  # so that errors name the line of the page
        exec(compile(above + cell[1], str(PAGE), "exec"), vars(module))
    yield module
    del sys.modules[NAME]


@pytest.fixture
def prior(page: ModuleType) -> Any:
    """A prior of three classes and two columns, different in each cell."""
    shape = np.array([[2.0, 1.5], [0.7, 3.0], [1.0, 2.5]])
    rate = np.array([[1.0, 0.4], [2.0, 1.3], [0.8, 3.0]])
    return page.Exponential(shape, rate, n_classes=3, n_features=2)


@pytest.fixture
def rows(prior: Any) -> tuple[np.ndarray, np.ndarray]:
    """Twelve rows from the family's own program, and their classes; class 2 has one row."""
    y = np.array([0, 1, 0, 1, 1, 0, 2, 0, 1, 0, 1, 0])
    with jax.enable_x64(True), seed(rng_seed=3):
        params = prior.prior()
        return np.asarray(prior.observe(params, y)), y


def with_a_hole(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[4, 1] = np.nan
    return out


def test_the_page_runs_and_its_model_separates_the_queues(page: ModuleType) -> None:
    assert page.model.score(page.X, page.y) > 0.6
    assert np.isfinite(page.model.loo(page.X, page.y).joint).all()


def test_merging_equals_the_whole_and_removing_undoes_it(prior: Any, rows: Any) -> None:
    x, y = rows
    x = with_a_hole(x)
    a, b = prior.stats(x[:5], Labels(y[:5])), prior.stats(x[5:], Labels(y[5:]))
    whole = prior.stats(x, Labels(y))
    for got, want in zip(prior.merge(a, b), whole, strict=True):
        np.testing.assert_allclose(got, want, **CLOSE)
    for got, want in zip(prior.remove(whole, b), a, strict=True):
        np.testing.assert_allclose(got, want, **CLOSE)


def test_conditioning_twice_is_conditioning_once(prior: Any, rows: Any) -> None:
    x, y = rows
    a, b = prior.stats(x[:5], Labels(y[:5])), prior.stats(x[5:], Labels(y[5:]))
    once, twice = prior.condition(prior.merge(a, b)), prior.condition(a).condition(b)
    assert type(once) is type(prior)
    np.testing.assert_allclose(once.shape, twice.shape, **CLOSE)
    np.testing.assert_allclose(once.rate, twice.rate, **CLOSE)


def test_the_predictive_is_a_ratio_of_evidences(prior: Any, rows: Any) -> None:
    x, y = rows
    x = with_a_hole(x)
    known = prior.stats(x, Labels(y))
    new = np.array([[0.3, 2.0], [np.nan, 0.1]])
    got = prior.condition(known).log_predictive(new)
    for i in range(2):
        for k in range(3):
            more = prior.merge(known, prior.stats(new[[i]], Labels(np.array([k]))))
            want = prior.log_evidence(more) - prior.log_evidence(known)
            np.testing.assert_allclose(got[i, k], want, rtol=1e-10)


def test_the_predictive_is_scipys_lomax(prior: Any) -> None:
    new = np.array([[0.3, 2.0], [0.0, 7.5]])
    want = stats.lomax.logpdf(new[:, None, :], prior.shape, scale=prior.rate).sum(axis=-1)
    np.testing.assert_allclose(prior.log_predictive(new), want, **CLOSE)


def test_prior_times_likelihood_over_evidence_is_the_posterior(prior: Any, rows: Any) -> None:
    x, y = rows
    known = prior.stats(x, Labels(y))
    posterior = prior.condition(known)
    for point in (posterior.mean(), prior.mean()):
        left = prior.log_density(point) + prior.log_likelihood(point, known) - prior.log_evidence(known)
        np.testing.assert_allclose(left, posterior.log_density(point), rtol=1e-10)


def test_the_program_has_the_density_of_the_closed_forms(prior: Any, rows: Any) -> None:
    x, y = rows
    x = with_a_hole(x)
    params = prior.condition(prior.stats(x, Labels(y))).mean()
    phi = np.array([0.5, 0.3, 0.2])
    with jax.enable_x64(True):
        point = {"class_prob": phi, "rate": params.rate}
        total, _ = log_density(program, (ClassPrior(1.0, None, 3), prior, x, y, len(y)), {}, point)
        with seed(rng_seed=0):
            sites = trace(lambda: program(ClassPrior(1.0, None, 3), prior, x, y, len(y))).get_trace()
    mine = prior.log_prob(params, x)[np.arange(len(y)), y].sum()
    want = np.log(2.0) + prior.log_density(params) + np.log(phi)[y].sum() + mine  # Dir(1, 1, 1) has density 2
    np.testing.assert_allclose(float(total), want, rtol=1e-12)
    assert {"class_prob", "rate", "y", "x"} <= set(sites)
    by_statistics = prior.log_likelihood(params, prior.stats(x, Labels(y)))
    np.testing.assert_allclose(by_statistics, mine, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refits(prior: Any, rows: Any, weighted: bool) -> None:
    x, y = rows
    x = with_a_hole(x)
    w = np.linspace(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    got = prior.log_loo(x, Labels(y, w), prior.stats(x, Labels(y, w)))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        refit = prior.condition(prior.stats(x[rest], Labels(y[rest], w[rest])))
        np.testing.assert_allclose(got[i], refit.log_predictive(x[[i]])[0], rtol=1e-10)


def test_whole_weights_are_repeated_rows_and_soft_weights_of_0_and_1_are_labels(prior: Any, rows: Any) -> None:
    x, y = rows
    x = with_a_hole(x)
    times = 1 + np.arange(len(y)) % 3
    weighted = prior.stats(x, Labels(y, times.astype(float)))
    repeated = prior.stats(np.repeat(x, times, axis=0), Labels(np.repeat(y, times)))
    soft = prior.stats(x, np.eye(3)[y] * times[:, None])
    for a, b, c in zip(weighted, repeated, soft, strict=True):
        np.testing.assert_allclose(a, b, **CLOSE)
        np.testing.assert_allclose(a, c, **CLOSE)


def test_classes_permuted_are_results_permuted(page: ModuleType, rows: Any) -> None:
    x, y = rows
    prior = page.Exponential(2.0, 0.5, n_classes=3, n_features=2)
    order = np.array([2, 0, 1])
    moved = prior.condition(prior.stats(x, Labels(order[y])))
    plain = prior.condition(prior.stats(x, Labels(y)))
    np.testing.assert_allclose(moved.log_predictive(x)[:, order], plain.log_predictive(x), **CLOSE)


def test_a_missing_cell_is_integrated_out(prior: Any) -> None:
    for k in range(3):
        total, _ = integrate.quad(lambda t, k=k: np.exp(prior.log_predictive(np.array([[0.7, t]]))[0, k]), 0, np.inf)
        np.testing.assert_allclose(np.log(total), prior.log_predictive(np.array([[0.7, np.nan]]))[0, k], atol=1e-7)


def test_the_mode_is_the_maximum_of_the_density(prior: Any, rows: Any) -> None:
    x, y = rows
    posterior = prior.condition(prior.stats(x, Labels(y)))
    mode = posterior.mode()

    def loss(log_rate: np.ndarray) -> float:
        return -float(posterior.log_density(type(mode)(np.exp(log_rate).reshape(3, 2))))

    # The coordinates are for the search alone: the density is that of the rate itself.
    found = optimize.minimize(loss, np.log(posterior.mean().rate).ravel(), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(np.exp(found.x).reshape(3, 2), mode.rate, rtol=1e-5)


def test_draws_and_simulated_rows_have_the_means_of_the_posterior(prior: Any, rows: Any, rng: Any) -> None:
    x, y = rows
    posterior = prior.condition(prior.stats(x, Labels(y)))
    draws = posterior.draw(rng, 20_000).rate
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - posterior.mean().rate) < 5 * error).all()
    # Medians: the mean of a Lomax need not exist. 1/2 +- five standard errors of a share.
    times = posterior.sample(None, np.repeat(np.arange(3), 10_000), rng).reshape(3, 10_000, 2)
    middle = stats.lomax.median(posterior.shape, scale=posterior.rate)
    assert np.abs((times < middle[:, None]).mean(axis=1) - 0.5).max() < 5 * 0.5 / np.sqrt(10_000)


def test_closed_forms_run_in_a_compiled_and_differentiated_program(prior: Any, rows: Any) -> None:
    x, y = rows
    known = prior.stats(x, Labels(y))
    with jax.enable_x64(True):
        evidence = jax.jit(lambda p: p.log_evidence(known))
        np.testing.assert_allclose(float(evidence(prior)), prior.log_evidence(known), rtol=1e-12)
        slope = jax.grad(evidence)(prior).shape
        a, step = np.asarray(prior.shape), 1e-5
        up, down = prior.replace(shape=a + step), prior.replace(shape=a - step)
        want = (up.log_evidence(known) - down.log_evidence(known)) / (2 * step)
        np.testing.assert_allclose(float(slope.sum()), want, rtol=1e-6)
        predictive = jax.jit(lambda p, x: p.log_predictive(x))(prior, jax.numpy.asarray(x))
        np.testing.assert_allclose(predictive, prior.log_predictive(x), rtol=1e-12)


def test_the_estimator_has_every_route_and_the_logistic_form(page: ModuleType) -> None:
    X, y = page.X, page.y
    complete = np.nan_to_num(X, nan=1.0)
    base = GenerativeClassifier(family=page.Exponential(2.0, 4.0))
    for route in ("mle", "map", "mean"):
        model = clone(base).set_params(inference=route).fit(X, y)
        logistic = model.to_logistic().predict_proba(complete)
        np.testing.assert_allclose(logistic, model.predict_proba(complete), rtol=1e-10)
    with pytest.raises(ValueError, match="not linear"):
        base.fit(X, y).to_logistic()
    assert cross_val_score(base, X, y, cv=3).mean() > 0.6


def test_the_estimator_streams_merges_and_forgets(page: ModuleType) -> None:
    X, y = page.X, page.y
    whole = clone(page.model).fit(X, y)
    a, b = clone(page.model).fit(X[::2], y[::2]), clone(page.model).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(a.merge(b).predict_proba(X), whole.predict_proba(X), rtol=1e-10)
    back = whole.forget(X[1::2], y[1::2])
    np.testing.assert_allclose(back.log_evidence_, clone(whole).fit(X[::2], y[::2]).log_evidence_, rtol=1e-10)


def test_errors_name_the_column_and_the_class(page: ModuleType) -> None:
    model = GenerativeClassifier(family=page.Exponential(), inference="mle")
    with pytest.raises(ValueError, match="column 1 holds -2"):
        model.fit([[1.0, 2.0], [3.0, -2.0]], [0, 1])
    with pytest.raises(UndefinedNumberError, match=r"class 1 .* column 0"):
        model.fit([[1.0, 2.0], [np.nan, 2.0]], [0, 1])


def test_it_is_a_block_of_a_mixed_model(page: ModuleType, rng: np.random.Generator) -> None:
    X = np.column_stack([np.nan_to_num(page.X, nan=1.0), rng.normal(size=len(page.y))])
    wait, size = GenerativeClassifier(family=page.Exponential()), GaussianNB()
    mixed = MixedNB(blocks=[("wait", wait, [0, 1, 2]), ("size", size, [3])]).fit(X, page.y)
    parts = [clone(wait).fit(X[:, :3], page.y), clone(size).fit(X[:, 3:], page.y)]
    want = sum(p.log_evidence_parts_["x_given_y"] for p in parts)
    np.testing.assert_allclose(mixed.log_evidence_parts_["x_given_y"], want, rtol=1e-12)
