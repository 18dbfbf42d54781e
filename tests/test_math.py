"""The special functions that scipy and JAX do not give accurately, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from bayesgen import _kernels
from bayesgen._math import (
    log_factorial,
    log_multigamma_ratio,
    log_negative_binomial,
    log_poisson,
    log_rising,
    logsumexp,
    safe_log,
    sum_log1p,
    two_sum,
)


@pytest.mark.parametrize("z", [1e-8, 0.3, 1.0, 7.5, 19.9, 20.0, 333.3, 1e6, 1e15])
def test_log_rising_factorials_keep_their_digits(z):
    n = np.array([0.0, 0.25, 1.0, 3.0, 17.0, 1e4, 3e9])
    with mpmath.workdps(50):
        expected = [float(mpmath.loggamma(mpmath.mpf(z) + k) - mpmath.loggamma(z)) for k in n.tolist()]
    np.testing.assert_allclose(log_rising(z, n), expected, rtol=1e-13, atol=1e-14)


def test_the_log_rising_factorial_at_zero_is_its_limit():
    np.testing.assert_array_equal(log_rising(0.0, np.array([0.0, 1.0, 2.5])), [0.0, -np.inf, -np.inf])


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 17, 64])
def test_grouped_logarithms_keep_the_digits_of_small_terms(d):
    rng = np.random.default_rng(d)
    u = 10.0 ** rng.uniform(-20, 29, (50, d))
    u[:10] = 10.0 ** rng.uniform(-20, -8, (10, d))
    u[10, 0] = 0.0
    np.testing.assert_allclose(sum_log1p(u), np.log1p(u).sum(axis=1), rtol=1e-14)


# Shares of a count that the rate is away from it: on both sides of where the series for small ones takes over, 0.1.
AWAY = [-0.5, -0.11, -0.1, -0.099, -1e-3, -1e-6, 0.0, 1e-9, 1e-4, 0.02, 0.099, 0.1, 0.11, 0.9, 30.0]


@pytest.mark.parametrize("x", [0.0, 1.0, 7.0, 19.0, 20.0, 21.0, 300.0, 1e5, 3e9, 1e12])
def test_poisson_probabilities_keep_their_digits(x):
    """Also where a large count is near its rate, and x ln(rate), rate and ln x! are each far larger than the result."""
    rate = np.maximum(x, 0.5) * (1.0 + np.array(AWAY))
    with mpmath.workdps(60):
        expected = [
            float(x * mpmath.log(r) - mpmath.mpf(r) - mpmath.loggamma(mpmath.mpf(x) + 1)) for r in rate.tolist()
        ]
    # The rate is rounded before: of the deviance its share (rate - x) / x has a relative error of eps at most.
    slack = 4e-16 * np.abs(rate - x)
    found = log_poisson(np.full(rate.shape, x), rate)
    assert (np.abs(found - expected) <= 2e-13 * np.abs(expected) + 1e-14 + slack).all()


@pytest.mark.parametrize("x", [0.0, 1.0, 19.0, 20.0, 300.0, 1e6, 3e9])
@pytest.mark.parametrize("a", [1e-6, 0.3, 1.0, 2.5, 19.9, 20.0, 400.0, 1e6, 1e10])
def test_negative_binomial_probabilities_keep_their_digits(x, a):
    b = np.concatenate([a / max(x, 1.0) * (1.0 + np.array(AWAY)), [1e-3, 1.0, 1e3]])
    with mpmath.workdps(60):
        expected = [
            float(
                mpmath.loggamma(mpmath.mpf(a) + x)
                - mpmath.loggamma(mpmath.mpf(a))
                - mpmath.loggamma(mpmath.mpf(x) + 1)
                - a * mpmath.log1p(1 / mpmath.mpf(rate))
                - x * mpmath.log1p(rate)
            )
            for rate in b.tolist()
        ]
    # Of what is rounded: x b - a, and for few or rare counts the two terms a ln(1 + 1/b) and x ln(1 + b).
    tails = a * np.log1p(1.0 / b) + x * np.log1p(b)
    slack = 8e-16 * np.abs(x * b - a) / (1.0 + b) if min(x, a) >= 20.0 else 8e-16 * tails
    found = log_negative_binomial(np.full(b.shape, x), np.full(b.shape, a), b)
    assert (np.abs(found - expected) <= 2e-13 * np.abs(expected) + 1e-14 + slack).all()


@pytest.mark.parametrize("size", [1, 256, 257, 1000])
@pytest.mark.parametrize("step", [1.0, 0.5, 5.0])
def test_factorials_of_a_table_and_of_the_gamma_function_agree(size, step):
    x = step * np.arange(size)
    with mpmath.workdps(30):
        expected = [float(mpmath.loggamma(mpmath.mpf(v) + 1)) for v in x.tolist()]
    np.testing.assert_allclose(log_factorial(x), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_ratios_of_multivariate_gamma_functions(d):
    df, n = np.array([[d], [d + 2.5], [1e6]]), np.array([0.0, 1.0, 7.0])
    with mpmath.workdps(50):
        expected = [
            [
                float(sum(mpmath.loggamma((v + m - j) / 2) - mpmath.loggamma((v - j) / 2) for j in range(d)))
                for m in map(mpmath.mpf, n.tolist())
            ]
            for v in map(mpmath.mpf, df.ravel().tolist())
        ]
    np.testing.assert_allclose(log_multigamma_ratio(df, n, d), expected, rtol=1e-13, atol=1e-13)


def test_the_logarithm_of_what_is_no_probability():
    np.testing.assert_array_equal(
        safe_log(np.array([0.0, 1.0, -1.0, np.nan, np.inf])), [-np.inf, 0.0, np.nan, np.nan, np.inf]
    )


def test_sums_of_exponentials():
    a = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [1e4, 1e4], [-1e4, -1e4 + 1.0], [2.0, -2.0]])
    expected = [-np.inf, 0.0, 1e4 + np.log(2.0), -1e4 + np.log1p(np.e), 2.0 + np.log1p(np.exp(-4.0))]
    np.testing.assert_allclose(logsumexp(a), expected, rtol=1e-15)
    assert logsumexp(a, axis=0, keepdims=True).shape == (1, 2)


def test_a_sum_and_its_rounding_error_are_exact():
    high, low = two_sum(np.array([1e16, 0.1]), np.array([1.0, 1e-20]))
    with mpmath.workdps(60):
        for h, r, a, b in zip(high.tolist(), low.tolist(), [1e16, 0.1], [1.0, 1e-20], strict=True):
            assert mpmath.mpf(h) + mpmath.mpf(r) == mpmath.mpf(a) + mpmath.mpf(b)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("scatter", [_kernels._scatter_by_bincount, _kernels._scatter_by_scipy])
def test_both_ways_of_scattering_counts_agree(monkeypatch, scatter, index):
    if scatter is _kernels._scatter_by_scipy and _kernels.coo_todense is None:
        pytest.skip("this scipy has not the loop")
    monkeypatch.setattr(_kernels, "scatter_add", scatter)
    monkeypatch.setattr(_kernels, "ENTRIES", 100)
    rng = np.random.default_rng(0)
    x = sp.random(300, 40, 0.1, format="csr", random_state=0)
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    codes, weights = rng.integers(0, 3, 300), rng.random(300)
    expected = np.stack([(weights[:, None] * x.toarray())[codes == k].sum(axis=0) for k in range(3)])
    np.testing.assert_allclose(_kernels.class_sums(x, codes, weights, 3), expected, rtol=1e-13)


def test_large_arrays_scored_in_threads_equal_small_ones(monkeypatch):
    x = np.random.default_rng(0).normal(size=(500, 3))

    def work(block, buffers):
        return np.multiply(x[block], 2.0, out=buffers("doubled", *x[block].shape))

    alone = _kernels.score_blocks(work, 500, 3, 3)
    monkeypatch.setattr(_kernels, "THREADED_CELLS", 1)
    monkeypatch.setattr(_kernels, "SCORE_CELLS", 64)
    np.testing.assert_array_equal(_kernels.score_blocks(work, 500, 3, 3), alone)
    np.testing.assert_array_equal(alone, 2.0 * x)
