"""Compiled scores: the numbers of the NumPy formulas, compiled once whatever the number of rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from bayesgen import GaussianNB, _compiled


@pytest.fixture
def compiled(monkeypatch):
    """Take compiled code for few rows as well."""
    monkeypatch.setattr(_compiled, "LEAST_CELLS", 0)


def table(rng, n, d):
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, d)) * np.geomspace(0.1, 100, d) + 5.0 * y[:, None] + 1e6, y


@pytest.mark.parametrize("variance", ["per_class", "shared"])
@pytest.mark.parametrize("d", [1, 15, 16, 40])
def test_compiled_scores_are_those_of_numpy(rng, monkeypatch, variance, d):
    X, y = table(rng, 5000, d)
    X[3] = np.nan
    X[np.arange(4090, 4110), rng.integers(0, d, 20)] = np.nan
    X[7] = 1e140  # products of few squares leave float64
    X[8] = 1e40  # products of many do
    model = GaussianNB(variance=variance).fit(X[100:4000], y[100:4000])
    plain = model.predict_joint_log_proba(X)
    monkeypatch.setattr(_compiled, "LEAST_CELLS", 0)
    found = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(found, plain, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(found[3], model.class_log_prior_)
    np.testing.assert_allclose(model.predict_joint_log_proba(X[4999:]), found[4999:], rtol=1e-13)


def test_compiled_scores_are_student_densities(rng, compiled):
    X, y = table(rng, 30, 2)
    model = GaussianNB(inference="exact").fit(X, y)
    p = model.posterior_
    a, b = p.inverse_gamma()
    loc, low, kappa = p.hyper()
    density = stats.t(2 * a, loc + low, np.sqrt(b * (kappa + 1) / (a * kappa)))
    expected = density.logpdf(X[:, None, :]).sum(axis=2) + model.class_log_prior_
    np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-9)  # of the subtraction in scipy


def test_small_squares_keep_their_digits(compiled):
    """Degrees of freedom of a million: the logarithm of 1 + u / n, times n, must be u."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 2
    weights = np.full(300, 1e7)
    model = GaussianNB().fit(X, y, weights)
    normal = GaussianNB(inference="mle").fit(X, y, weights)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), normal.predict_joint_log_proba(X), rtol=1e-6)


def test_sparse_rows_are_the_dense_ones(rng, compiled):
    X, y = table(rng, 40, 5)
    X[rng.random(X.shape) < 0.5] = 0.0
    model = GaussianNB().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(sp.csr_array(X)), model.predict_proba(X), rtol=1e-12)


def test_fifty_numbers_of_rows_compile_once(rng, compiled):
    X, y = table(rng, 5000, 7)
    model = GaussianNB().fit(X, y)
    model.predict_proba(X[:1])
    before = _compiled._student_kernel()._cache_size()
    for n in np.unique(np.geomspace(2, 5000, 50).astype(int)):
        model.predict_proba(X[:n])
    assert _compiled._student_kernel()._cache_size() == before
