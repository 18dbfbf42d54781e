"""Several threads at once, and work that is broken off: everyone gets the numbers of one thread, or an error."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from odd_cases import models
from threadpoolctl import ThreadpoolController, threadpool_info

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    load,
)
from bayesgen._kernels import one_blas_thread

rng = np.random.default_rng(5)
LABELS = np.arange(200) % 3
COUNTS = rng.poisson(rng.gamma(1.0, 3.0, (3, 4))[LABELS] * rng.gamma(0.5, 2.0, (200, 1))).astype(float)
MODELS = {
    "Gaussian": GaussianNB,
    "Gaussian, learned prior": lambda: GaussianNB(prior="evidence"),
    "discriminant": GaussianDiscriminantAnalysis,
    "per-class discriminant": lambda: GaussianDiscriminantAnalysis(covariance="per_class", inference="mean"),
    "Bernoulli": BernoulliNB,
    "multinomial": MultinomialNB,
    "multinomial, learned alpha": lambda: MultinomialNB(alpha="evidence"),
    "Poisson": PoissonNB,
    "categorical": CategoricalNB,
    "mixed": lambda: MixedNB(blocks=[("a", GaussianNB(), [0, 1]), ("b", PoissonNB(), [2, 3])]),
}


@pytest.fixture(autouse=True)
def _threads_take_turns_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def at_once(n, work):
    """The results of n threads that start at the same moment."""
    start = threading.Barrier(n)

    def one(i):
        start.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return [job.result() for job in [pool.submit(one, i) for i in range(n)]]


def answers(model):
    """What a fitted model says of the rows, in every way that caches something."""
    return [
        model.predict_proba(COUNTS),
        model.predict_joint_log_proba(COUNTS[:7]),
        model.predict(COUNTS),
        np.asarray(model.log_evidence_),
        model.loo(COUNTS, LABELS).log_joint,
        model.explain(COUNTS[:2], n_draws=10, random_state=0).contributions,
        model.sample_proba(COUNTS[:5], 20, random_state=0),
        np.asarray(model.sample(5, random_state=0)[0]),
    ]


def same(a, b):
    for first, second in zip(a, b, strict=True):
        assert_array_equal(first, second)


@models(MODELS)
def test_one_model_answers_eight_threads_alike(make):
    expected = answers(make().fit(COUNTS, LABELS))
    for _ in range(2):  # each time a model that has computed nothing yet
        model = make().fit(COUNTS, LABELS)
        for got in at_once(8, lambda i, model=model: answers(model)):
            same(got, expected)


@models(MODELS)
def test_a_model_can_be_pickled_saved_and_copied_while_it_predicts(make, tmp_path):
    model = make().fit(COUNTS, LABELS)
    expected = answers(make().fit(COUNTS, LABELS))

    def work(i):
        if i == 0:
            return answers(model)
        if i == 1:
            model.save(tmp_path / "model.bayesgen")
            return answers(load(tmp_path / "model.bayesgen"))
        return answers(pickle.loads(pickle.dumps(model)))

    for got in at_once(4, work):
        same(got, expected)


def test_models_learn_in_threads_while_another_predicts():
    expected = {name: answers(make().fit(COUNTS, LABELS)) for name, make in MODELS.items()}
    shared = MultinomialNB().fit(COUNTS, LABELS)
    names = list(MODELS)

    def work(i):
        if i == len(names):
            return [answers(shared) for _ in range(5)][-1]
        return answers(MODELS[names[i]]().partial_fit(COUNTS[:90], LABELS[:90], classes=[0, 1, 2]).fit(COUNTS, LABELS))

    *fitted, predicted = at_once(len(names) + 1, work)
    for name, got in zip(names, fitted, strict=True):
        same(got, expected[name])
    same(predicted, expected["multinomial"])


@models(MODELS)
def test_a_prediction_sees_a_model_before_or_after_a_batch_and_never_between(make):
    model = make().partial_fit(COUNTS[:100], LABELS[:100], classes=[0, 1, 2])
    stages = [model.predict_joint_log_proba(COUNTS[:9])]
    reference = pickle.loads(pickle.dumps(model))
    for i in range(100, 200, 20):
        reference.partial_fit(COUNTS[i : i + 20], LABELS[i : i + 20])
        stages.append(reference.predict_joint_log_proba(COUNTS[:9]))
    done = threading.Event()

    def work(i):
        if i == 0:
            for start in range(100, 200, 20):
                model.partial_fit(COUNTS[start : start + 20], LABELS[start : start + 20])
            done.set()
            return []
        seen = []
        while not done.is_set():
            seen.append(model.predict_joint_log_proba(COUNTS[:9]))
        return seen

    for seen in at_once(3, work)[1:]:
        assert all(any(np.array_equal(joint, stage) for stage in stages) for joint in seen)
    assert_array_equal(model.predict_joint_log_proba(COUNTS[:9]), stages[-1])


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_number_of_blas_threads_is_what_it_was_after_threads_that_overlap():
    controller = ThreadpoolController()
    entered, left = threading.Event(), threading.Event()

    def first(_):
        with one_blas_thread():
            entered.set()
            left.wait(1.0)

    def second(_):
        entered.wait()
        with one_blas_thread():
            with one_blas_thread():
                left.set()
            time.sleep(0.1)

    with controller.limit(limits=2, user_api="blas"):
        before = blas_threads()
        at_once(2, lambda i: (first, second)[i](None))
        assert blas_threads() == before
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


# ----------------------------------------------------------------------------------------------------
# broken off


class Stopped(Exception):
    """Something that goes wrong in the caller's own code."""


def batches(error, after):
    for i in range(after):
        yield COUNTS[10 * i : 10 * i + 10], LABELS[10 * i : 10 * i + 10]
    raise error


@models(MODELS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, Stopped], ids=lambda error: error.__name__)
@pytest.mark.parametrize("fitted", [False, True], ids=["unfitted", "fitted"])
def test_batches_that_end_in_an_error_leave_the_model_as_it_was(make, error, fitted):
    model = make()
    if fitted:
        model.fit(COUNTS[:50], LABELS[:50])
    before = pickle.dumps(model)
    with pytest.raises(error):
        model.fit_batches(batches(error, 3))
    assert pickle.dumps(model) == before


class Breaks:
    """A trace function that raises KeyboardInterrupt at the n-th line of the library, as Ctrl-C could."""

    def __init__(self, at):
        self.at, self.lines = at, 0

    def __call__(self, frame, event, arg):
        if "bayesgen" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self


def traced(tracer, call):
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)


def check_interrupts(make, method, n_places):
    half = COUNTS[100:], LABELS[100:]
    arguments = (make().fit(*half),) if method == "merge" else half

    def fresh():
        return make().fit(COUNTS, LABELS)

    counter, whole = Breaks(at=0), fresh()
    before = whole.predict_joint_log_proba(COUNTS)
    traced(counter, lambda: getattr(whole, method)(*arguments))
    after = whole.predict_joint_log_proba(COUNTS)
    for at in np.unique(np.linspace(1, counter.lines, n_places).astype(int)):
        model = fresh()
        with pytest.raises(KeyboardInterrupt):
            traced(Breaks(at), lambda model=model: getattr(model, method)(*arguments))
        got = model.predict_joint_log_proba(COUNTS)
        if np.array_equal(got, before):
            getattr(model, method)(*arguments)  # nothing is left half open, such as a context or a lock
        assert_array_equal(model.predict_joint_log_proba(COUNTS), after)


METHODS = ["fit", "partial_fit", "merge", "forget"]


@models({k: v for k, v in MODELS.items() if k in ("discriminant", "multinomial", "mixed")})
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_leaves_the_model_before_or_after(make, method):
    check_interrupts(make, method, 5)


@pytest.mark.slow
@models(MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_at_any_line_leaves_the_model_before_or_after(make, method):
    check_interrupts(make, method, 40)


# ----------------------------------------------------------------------------------------------------
# processes

FORKED = """
import multiprocessing, sys
import numpy as np
from bayesgen import GaussianDiscriminantAnalysis, MultinomialNB

x = np.random.default_rng(0).poisson(3.0, (300_000, 4)).astype(float)
y = np.arange(len(x)) % 3
models = [GaussianDiscriminantAnalysis().fit(x, y), MultinomialNB().fit(x, y)]  # large: in two threads

def answers(_=None):
    learned = [type(model)().partial_fit(x, y, classes=[0, 1, 2]) for model in models]
    return [model.predict_proba(x[:50_000]).tobytes() for model in [*models, *learned]]

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(answers, range(2)) == [answers()] * 2
    assert "jax" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_fits_and_predicts_as_its_parent():
    subprocess.run([sys.executable, "-W", "error", "-c", FORKED], check=True, timeout=60)
