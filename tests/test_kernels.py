"""Threads, and columns of labels."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from bayesgen import GaussianDiscriminantAnalysis, _kernels, _linalg
from bayesgen.estimators import _labels


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_contexts_of_one_blas_thread_that_overlap_restore_what_was():
    before = blas_threads()
    first, second = _kernels.one_blas_thread(), _kernels.one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__()
    assert set(blas_threads()) == {1}
    second.__exit__()
    assert blas_threads() == before


def test_workers_that_ask_for_workers_do_not_wait_for_each_other():
    def outer(lo: int, hi: int) -> int:
        return sum(_kernels.map_rows(lambda a, b: b - a, hi - lo, _kernels.THREADED_CELLS))

    assert sum(_kernels.map_rows(outer, 10, _kernels.THREADED_CELLS)) == 10


def test_an_error_in_a_worker_is_raised_here_and_the_workers_go_on():
    def fail(lo: int, hi: int) -> None:
        raise ValueError(f"rows {lo} to {hi}")

    with pytest.raises(ValueError, match="rows 0 to 5"):
        _kernels.map_rows(fail, 10, _kernels.THREADED_CELLS)
    assert _kernels.map_rows(lambda lo, hi: hi, 10, _kernels.THREADED_CELLS) == [5, 10]


def many_rows():
    rng = np.random.default_rng(0)
    y = np.arange(60_000) % 3
    return rng.normal(size=(len(y), 20)) + y[:, None], y


def test_many_threads_fit_and_predict_at_once():
    X, y = many_rows()
    model = GaussianDiscriminantAnalysis().fit(X, y)
    expected, before = model.predict_proba(X), blas_threads()
    largest = []

    def work() -> None:
        for _ in range(3):
            largest.append(np.abs(model.predict_proba(X) - expected).max())
            again = GaussianDiscriminantAnalysis().fit(X, y)
            largest.append(np.abs(again.covariance_ - model.covariance_).max())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(largest) == 36
    assert max(largest) < 1e-13
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*")  # what Python 3.12 and JAX say of threads
def test_a_forked_child_predicts():
    X, y = many_rows()
    model = GaussianDiscriminantAnalysis().fit(X, y)
    expected = model.predict(X)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(0 if (model.predict(X) == expected).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


LABELS = {
    "codes": np.array([2, 0, 2, 5]),
    "signs": np.array([-1, 1, 1, -1]),
    "int8": np.array([-128, 127, 0, -128], dtype=np.int8),
    "uint8": np.array([255, 0, 3, 255], dtype=np.uint8),
    "uint64": np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=np.uint64),
    "far apart": np.array([0, 2**62, -(2**62), 0]),
    "least": np.array([-(2**63), -(2**63) + 1]),
    "bool": np.array([True, False, True]),
    "text": np.array(["b", "a", "b"]),
    "floats": np.array([1.0, -2.0, 1.0]),
}


@pytest.mark.parametrize("name", LABELS)
def test_classes_and_codes_of_labels(name):
    y = LABELS[name]
    classes, codes = np.unique(y, return_inverse=True)
    found = _labels.distinct_labels(y)
    assert found.dtype == y.dtype
    np.testing.assert_array_equal(found, classes)
    np.testing.assert_array_equal(_labels.encode_labels(y, found), codes)
    with pytest.raises(ValueError, match="not among the classes"):
        _labels.encode_labels(y, found[1:])


def test_many_classes_still_draw_the_warning_of_scikit_learn():
    with pytest.warns(UserWarning, match="greater than 50%"):
        _labels.check_labels(np.arange(30))


@pytest.mark.parametrize("d", [4, 40, 80])
def test_columns_that_depend_on_each_other_are_found_at_every_width(d):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(3 * d, d))
    assert _linalg.dependent_columns(x.T @ x) == []
    x[:, 1] = x[:, 2] - 2 * x[:, 0]
    assert _linalg.dependent_columns(x.T @ x) == [0, 1, 2]
    x[:, 3] = 0.0
    assert _linalg.dependent_columns(x.T @ x) == [3]
    nearly = np.eye(d)
    nearly[0, 1] = nearly[1, 0] = 1.0 - 1e-12  # a least eigenvalue of 1e-12: singular to no one
    assert _linalg.dependent_columns(nearly) == []
