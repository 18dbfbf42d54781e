"""The special functions that scipy and JAX do not give accurately, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from bayesgen import _kernels
from bayesgen._math import log_rising, sum_log1p, two_sum


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

    def work(block):
        return x[block] * 2.0

    alone = _kernels.score_blocks(work, 500, 3, 3)
    monkeypatch.setattr(_kernels, "THREADED_CELLS", 1)
    monkeypatch.setattr(_kernels, "SCORE_CELLS", 64)
    np.testing.assert_array_equal(_kernels.score_blocks(work, 500, 3, 3), alone)
    np.testing.assert_array_equal(alone, 2.0 * x)
