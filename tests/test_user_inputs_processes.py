"""Other processes and threads: what importing changes, what pickles hold, what is compiled or made dense."""

import json
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from numpy.testing import assert_allclose, assert_array_equal
from numpyro.infer.util import log_density
from sklearn.model_selection import cross_val_score

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
)


def models(**keywords):
    return {
        "shared discriminant": GaussianDiscriminantAnalysis(covariance="shared", **keywords),
        "per-class discriminant": GaussianDiscriminantAnalysis(covariance="per_class", **keywords),
        "Gaussian": GaussianNB(**keywords),
        "Gaussian, shared variance": GaussianNB(variance="shared", **keywords),
        "Bernoulli": BernoulliNB(**keywords),
        "multinomial": MultinomialNB(**keywords),
        "categorical": CategoricalNB(**keywords),
        "Poisson": PoissonNB(**keywords),
        "mixed": MixedNB(**keywords),
    }


def count_table(n, d=5, n_classes=3, seed=0):
    y = np.arange(n) % n_classes
    rate = 1 + 2.0 * ((y[:, None] + np.arange(d)) % 3)
    return np.minimum(np.random.default_rng(seed).poisson(rate), 6).astype(float), y


def run(script, *arguments):
    """Run a script in a fresh interpreter and return what it prints as its last line, read as JSON."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# four ages near 1e8: in single precision, whose spacing is 8 there, nothing of them is left
FAR, FAR_LABELS, FAR_NEW = (
    np.array([[1.0], [3.0], [10.0], [14.0]]) + 1e8,
    [0, 0, 1, 1],
    np.array([[5.0]]) + 1e8,
)
FAR_POSTERIOR = [[0.9103688703434598, 0.0896311296565402]]


# ----------------------------------------------------------------------------------------------------
# importing and fitting leave the process as it was

UNTOUCHED = """
    import importlib, json, logging, os, pkgutil, sys, warnings
    import jax, jax.numpy as jnp, numpy as np, numpyro, pandas, scipy.linalg, scipy.sparse, scipy.stats
    import sklearn.discriminant_analysis, sklearn.linear_model, sklearn.model_selection, sklearn.pipeline

    def record():
        state = {
            "configuration": {name: repr(value) for name, value in sorted(jax.config.values.items())},
            "environment": dict(os.environ),
            "random": repr(np.random.get_state()[1].tolist()),
            "errors": np.geterr(),
            "print options": repr(np.get_printoptions()),
            "warnings": [repr(entry) for entry in warnings.filters],
            "logging": (logging.root.level, repr(logging.root.handlers)),
            "hooks": (repr(sys.excepthook), sys.getrecursionlimit(), repr(np.seterrcall(None))),
            "single precision": str(jnp.ones(2).dtype),
        }
        for name in ("matplotlib", "arviz"):
            if name in sys.modules:
                state[name] = {key: repr(value) for key, value in sys.modules[name].rcParams.items()}
        return state

    def changes(before, after):
        return [name for name in before if before[name] != after[name]]

    start = record()
    import bayesgen
    heavy = [name for name in ("arviz", "matplotlib", "dask") if name in sys.modules]
    [getattr(bayesgen, name) for name in ("MultinomialNB", "GaussianDiscriminantAnalysis", "MixedNB")]
    heavy += [name for name in ("arviz", "matplotlib", "dask") if name in sys.modules]
    by_import = changes(start, record())

    import matplotlib
    matplotlib.use("Agg")
    import arviz
    start = record()
    for module in pkgutil.walk_packages(bayesgen.__path__, "bayesgen."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    rows, labels = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0], [1.0, 4.0]]), np.array([0, 0, 1, 1])
    for name in ("BernoulliNB", "CategoricalNB", "GaussianDiscriminantAnalysis", "GaussianNB", "MixedNB",
                 "MultinomialNB", "PoissonNB"):
        for inference in ("map", "mean", "exact"):
            model = getattr(bayesgen, name)(inference=inference, class_alpha=2.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(rows, labels)
                model.predict(rows), model.predict_proba(rows)
        model.log_evidence_, model.sample(3, random_state=0), model.loo(rows, labels)
        model.predict_proba_interval(rows)
    far = np.array([[1.0], [3.0], [10.0], [14.0]]) + 1e8
    posterior = bayesgen.GaussianNB(inference="mle").fit(far, labels).predict_proba([[1e8 + 5.0]])
    by_use = changes(start, record())
    answer = {"heavy": heavy, "by_import": by_import, "by_use": by_use, "posterior": posterior.tolist()}
    print(json.dumps(answer))
"""


WITHOUT_JAX = """
    import json, sys
    import numpy as np
    import bayesgen
    rows, labels = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0], [1.0, 4.0]]), np.array([0, 0, 1, 1])
    for name in ("BernoulliNB", "CategoricalNB", "GaussianDiscriminantAnalysis", "GaussianNB", "MixedNB",
                 "MultinomialNB", "PoissonNB"):
        model = getattr(bayesgen, name)().fit(rows, labels)
        model.predict_proba(rows), model.log_evidence_, model.sample(3), model.loo(rows, labels), model.statistics_
    heavy = [name for name in ("jax", "numpyro", "arviz", "matplotlib") if name in sys.modules]
    posterior = model.posterior_  # handed out: a pytree
    from bayesgen.families import Gaussian, Poisson
    import jax
    leaves = [len(jax.tree.leaves(value)) for value in (posterior, Poisson(), Gaussian())]
    print(json.dumps({"heavy": heavy, "leaves": leaves}))
"""


def test_closed_forms_do_not_import_jax_until_a_family_is_handed_out():
    found = run(WITHOUT_JAX)
    assert found["heavy"] == []
    assert found["leaves"] == [2, 2, 3]


def test_importing_and_fitting_change_nothing_outside_the_library():
    found = run(UNTOUCHED)
    assert found["heavy"] == []
    assert found["by_import"] == []
    assert found["by_use"] == []
    assert_allclose(found["posterior"], FAR_POSTERIOR, rtol=1e-10)


# ----------------------------------------------------------------------------------------------------
# pickles

LOAD = """
    import json, pickle, sys
    import numpy as np
    with open(sys.argv[1], "rb") as file:
        tasks = pickle.load(file)
    answers = [[name, model.predict_proba(new).tobytes().hex()] for name, model, new in tasks]
    import jax
    print(json.dumps({"answers": answers, "double": bool(jax.config.jax_enable_x64)}))
"""


def test_a_pickle_predicts_the_same_bits_in_a_fresh_process(tmp_path):
    tasks = [("far", GaussianNB(inference="mle").fit(FAR, FAR_LABELS), FAR_NEW)]
    with jax.enable_x64(True):
        tasks.append(("far, double", GaussianNB(inference="mle").fit(FAR, FAR_LABELS), FAR_NEW))
    for _, model, new in tasks:
        assert_allclose(model.predict_proba(new), FAR_POSTERIOR, rtol=1e-9)
    x, y = count_table(60)
    for inference in ("mean", "exact"):
        tasks += [(name, model.fit(x, y), x[:5]) for name, model in models(inference=inference).items()]
    (tmp_path / "models.pickle").write_bytes(pickle.dumps(tasks))
    found = run(LOAD, tmp_path / "models.pickle")
    assert not found["double"]
    expected = [[name, model.predict_proba(new).tobytes().hex()] for name, model, new in tasks]
    assert found["answers"] == expected


@pytest.mark.parametrize("name", models())
def test_a_pickle_holds_the_estimate_and_not_the_rows(name):
    few, many = (pickle.dumps(models()[name].fit(*count_table(n, d=50))) for n in (1_000, 50_000))
    assert abs(len(many) - len(few)) < 0.01 * len(few)
    assert len(many) < 500_000


# ----------------------------------------------------------------------------------------------------
# compilation and memory

BATCHES = """
    import json, pickle, resource, sys
    import jax, numpy as np
    with open(sys.argv[1], "rb") as file:
        fitted, new = pickle.load(file)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: compiled.append(event) if "backend_compile" in event else None)
    jax.jit(lambda x: x + 1)(1.0)
    assert compiled, "the listener counts"
    answer = {}
    for name, model in fitted.items():
        whole = model.predict_log_proba(new)
        compiled.clear()
        start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        worst = 0.0
        for n in range(1, 201):
            worst = max(worst, abs(model.predict_log_proba(new[:n]) - whole[:n]).max())
        unit = 1 if sys.platform == "darwin" else 1024
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) * unit
        answer[name] = [len(compiled), float(worst / abs(whole).max()), grown]
    print(json.dumps(answer))
"""


def test_two_hundred_batch_sizes_do_not_mean_two_hundred_compilations(tmp_path):
    x, y = count_table(300, d=50)
    fitted = {name: model.fit(x, y) for name, model in models().items()}
    (tmp_path / "models.pickle").write_bytes(pickle.dumps((fitted, x[:200])))
    for name, (compilations, error, grown) in run(BATCHES, tmp_path / "models.pickle").items():
        assert compilations <= 20, name
        assert error <= 1e-12, name
        assert grown < 100e6, name


SPARSE = """
    import json, resource, sys
    import numpy as np, scipy.sparse as sp
    from bayesgen import BernoulliNB, MultinomialNB
    n, d, per_row, n_classes = 20_000, 50_000, 50, 20
    rng = np.random.default_rng(0)
    indices = rng.integers(0, d, size=n * per_row).astype(np.int32)
    data = rng.integers(1, 4, size=n * per_row).astype(float)
    x = sp.csr_matrix((data, indices, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    x.sum_duplicates()
    y = np.arange(n) % n_classes
    for make in (MultinomialNB, BernoulliNB):
        make().fit(x[:100, :100], y[:100]).predict_proba(x[:100, :100])
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    models = [make(inference=inference).fit(x, y)
              for make in (MultinomialNB, BernoulliNB) for inference in ("mean", "exact")]
    posteriors = [model.predict_proba(x) for model in models]
    unit = 1 if sys.platform == "darwin" else 1024
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) * unit

    some = np.arange(0, n, 997)
    dense = x[some].toarray()
    theta = np.exp(models[0].feature_log_prob_)
    by_hand = [models[0].class_log_prior_ + dense @ np.log(theta).T]
    p, present = np.exp(models[2].feature_log_prob_), (dense > 0) * 1.0
    by_hand += [models[2].class_log_prior_ + present @ np.log(p).T + (1 - present) @ np.log1p(-p).T]
    joints = [models[i].predict_joint_log_proba(x[some]) for i in (0, 2)]
    errors = [abs(ours / theirs - 1).max() for ours, theirs in zip(joints, by_hand)]
    errors += [abs(p[some] - model.predict_proba(dense)).max() for model, p in zip(models, posteriors)]
    print(json.dumps({"grown": grown, "errors": [float(e) for e in errors]}))
"""


def test_a_million_stored_counts_are_never_made_dense():
    found = run(SPARSE)
    assert found["grown"] < 1e9  # the dense matrix would need 8e9 bytes
    assert max(found["errors"]) < 1e-10


# ----------------------------------------------------------------------------------------------------
# threads and worker processes


def test_models_fitted_in_several_threads_do_not_disturb_each_other():
    words, labels = np.array([[3, 0, 1], [0, 2, 0], [1, 0, 4], [0, 5, 1]]), [0, 0, 1, 1]

    def fit_both():
        far = GaussianNB(inference="mle").fit(FAR, FAR_LABELS)
        count = MultinomialNB().fit(words, labels)
        return (
            far.var_,
            far.predict_proba(FAR_NEW),
            count.predict_log_proba(words),
            count.score_samples(words),
        )

    alone = fit_both()
    assert_allclose(alone[0], [[1.0], [4.0]], rtol=1e-9)
    assert_allclose(alone[1], FAR_POSTERIOR, rtol=1e-9)

    # NumPyro keeps one stack of handlers for the whole process, so only one thread may run programs;
    # fitting must not use that stack, or its sites would appear here
    model = MultinomialNB().fit(words, labels)
    values = {"class_prob": jnp.array([0.5, 0.5]), "feature_prob": jnp.full((2, 3), 1 / 3)}
    expected, sites = log_density(model.model, (words, labels), {}, values)

    with ThreadPoolExecutor(8) as pool:
        pending = [pool.submit(lambda: [fit_both() for _ in range(20)]) for _ in range(8)]
        evaluations = 0
        while evaluations < 5 or not all(job.done() for job in pending):
            density, found = log_density(model.model, (words, labels), {}, values)
            assert density == expected
            assert found.keys() == sites.keys()
            evaluations += 1
        for job in pending:
            for answer in job.result():
                for value, reference in zip(answer, alone, strict=True):
                    assert_array_equal(value, reference)


def test_cross_validation_in_worker_processes_gives_the_same_scores():
    x, y = count_table(60)
    tasks = {name: (model, x, y) for name, model in models().items()}
    far = np.random.default_rng(1).normal(size=(60, 2)) + np.column_stack([y, -y]) + 1e8
    tasks["far"] = (GaussianNB(), far, y)
    try:
        for name, (model, rows, labels) in tasks.items():
            model.fit(rows, labels)  # so that this process has its threads running before workers start
            one, two = (
                cross_val_score(model, rows, labels, cv=2, n_jobs=n_jobs, scoring="neg_log_loss", error_score="raise")
                for n_jobs in (1, 2)
            )
            assert_allclose(two, one, rtol=1e-12, err_msg=name)
    finally:
        get_reusable_executor().shutdown(wait=True)
