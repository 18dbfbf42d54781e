"""What is saved comes back the same, goes on learning, and a file that is not one of ours is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

import bayesgen
from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Evidence,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    HierarchicalDirichlet,
    ImportanceOptions,
    LKJPrior,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    NUTSOptions,
    PoissonNB,
    families,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::bayesgen.SamplingWarning",
    "ignore:.*mode.*:UserWarning",
    "ignore:.*no likelihood power.*:UserWarning",
    "ignore:the evidence rises:UserWarning",
)

QUICK = NUTSOptions(num_warmup=30, num_samples=20, num_chains=1, progress_bar=False)
FEW = ImportanceOptions(num_samples=40, fallback=QUICK)


def counts() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.arange(30) % 3
    X = rng.poisson(rng.gamma(2.0, 1.0, (3, 5))[y]).astype(float)
    X[:3, 4] = 7.0  # the largest code is in every batch
    return X, np.array(["a", "b", "c c"])[y]


def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    y = np.arange(30) % 3
    return rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4)) + y[:, None] + 1e6, y - 5


COUNTS = [
    MultinomialNB(),
    MultinomialNB(alpha=Evidence(per_class=True), class_prior=[0.2, 0.3, 0.5]),
    MultinomialNB(alpha=[0.1, 0.2, 0.3, 0.4, 5.0], inference="map", class_alpha=2.0),
    MultinomialNB(likelihood_power="loo", multinomial_coefficient=True),
    MultinomialNB(inference=QUICK, random_state=0),
    MultinomialNB(alpha=HierarchicalDirichlet(dist.HalfCauchy(2.0), base=1.0), inference=FEW, random_state=0),
    MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance", random_state=np.random.RandomState(3)),
    BernoulliNB(alpha=(1, 2)),
    BernoulliNB(alpha=dist.Gamma(2.0, 1.0), inference=QUICK, random_state=np.random.default_rng(4)),
    CategoricalNB(min_categories=9),
    CategoricalNB(alpha="evidence"),
    CategoricalNB(inference=FEW, random_state=0),
    PoissonNB(prior=Gamma([1.0, 2, 3, 4, 5], 2.0)),
    PoissonNB(prior=Gamma(2.0, dist.Weibull(1.0, 2.0)), inference=QUICK, random_state=1),
    GenerativeClassifier(family="multinomial", inference="mean"),
    GenerativeClassifier(family=families.Poisson(2.0, 1.0)),
]
NUMBERS = [
    GaussianNB(),
    GaussianNB(variance="shared", inference="unbiased", priors=[0.2, 0.2, 0.6]),
    GaussianNB(prior="evidence"),
    GaussianNB(prior=NormalInverseGamma(mean_precision=dist.LogNormal(0.0, 1.0)), inference=FEW, random_state=0),
    GaussianDiscriminantAnalysis(),
    GaussianDiscriminantAnalysis(prior=NormalInverseWishart(1.0, 0.5, 8.0, np.eye(4))),
    GaussianDiscriminantAnalysis(covariance="per_class", inference="mean", prior="evidence"),
    GaussianDiscriminantAnalysis(
        prior=LKJPrior(2.0, dist.HalfNormal(3.0).expand([4])), inference=QUICK, random_state=0
    ),
    GaussianDiscriminantAnalysis(inference=FEW, random_state=0, class_prior=[0.0, 0.5, 0.5]),
    MixedNB(),
    MixedNB(blocks=[("x", GaussianNB(), [0, 1]), ("y", GaussianDiscriminantAnalysis(inference="map"), slice(2, 4))]),
]


GROWING = [*COUNTS[:4], *COUNTS[9:11], *COUNTS[-2:], *NUMBERS[:3], *NUMBERS[4:7], NUMBERS[-1]]


def cases(models):
    """The models, those whose NUTS program takes seconds to compile marked as slow."""
    slow = [m for m in models if "NUTSOptions" in repr(m)]
    return [pytest.param(m, id=name(m), marks=[pytest.mark.slow] if m in slow else []) for m in models]


def name(model) -> str:
    return repr(model)[:60]


def data(model):
    return counts() if any(model is m for m in COUNTS) else numbers()


def again(model, folder):
    path = folder / "model.bayesgen"
    model.save(path)
    assert [p.name for p in folder.iterdir()] == ["model.bayesgen"]  # nothing is left beside it
    return bayesgen.load(path)


def same_params(a, b) -> None:
    """Parameters, as scikit-learn prints them in full: estimators, priors and arrays inside included."""
    a, b = a.get_params(), b.get_params()
    assert a.keys() == b.keys()
    for key, value in a.items():
        if isinstance(value, np.ndarray):
            assert_array_equal(value, b[key])
        elif not isinstance(value, (np.random.Generator, np.random.RandomState)) and "object at" not in repr(value):
            assert repr(value) == repr(b[key])


@pytest.mark.parametrize("model", cases([*COUNTS, *NUMBERS]))
def test_predictions_come_back_bit_for_bit(model, tmp_path) -> None:
    X, y = data(model)
    model.fit(X, y)
    twin = again(model, tmp_path)
    assert type(twin) is type(model)
    same_params(twin, model)
    assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    assert_array_equal(twin.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.classes_.dtype == model.classes_.dtype
    assert twin.n_features_in_ == model.n_features_in_
    assert twin.likelihood_power_ == model.likelihood_power_
    if isinstance(model.random_state, int) or model.random_state is None:
        for a, b in zip(twin.sample(4, random_state=1), model.sample(4, random_state=1), strict=True):
            assert_array_equal(a, b)
    assert not twin.class_count_.flags.writeable


@pytest.mark.parametrize("model", GROWING, ids=name)
def test_what_was_loaded_goes_on_learning(model, tmp_path) -> None:
    X, y = data(model)
    model = clone(model).set_params(**({"likelihood_power": 1.0} if "likelihood_power" in model.get_params() else {}))
    model.fit(X, y)
    twin = again(model, tmp_path)
    for step in ("partial_fit", "forget"):
        getattr(twin, step)(X[:9], y[:9])
        getattr(model, step)(X[:9], y[:9])
        assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    twin.merge(clone(model).fit(X[:12], y[:12]))
    model.merge(clone(model).fit(X[:12], y[:12]))
    assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("model", [*COUNTS, *NUMBERS], ids=name)
def test_an_unfitted_estimator_comes_back_unfitted(model, tmp_path) -> None:
    twin = again(clone(model), tmp_path)
    same_params(twin, model)
    assert not hasattr(twin, "classes_")


def test_draws_are_kept_and_not_made_again(tmp_path, monkeypatch) -> None:
    X, y = counts()

    def class_prob(n_classes):
        return numpyro.sample("class_prob_raw", dist.Dirichlet(np.ones(n_classes)))

    model = MultinomialNB(inference=QUICK, random_state=0).fit(X, y)
    before = model.diagnostics_
    twin = again(model, tmp_path)
    monkeypatch.setattr("bayesgen.nuts.run", lambda *a: pytest.fail("the run was made again"))
    assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    assert repr(twin.diagnostics_) == repr(before)
    assert_array_equal(*(m.to_arviz()["posterior"]["feature_prob"].values for m in (model, twin)))
    with pytest.raises(ValueError, match=r"class_prior is 'class_prob', a function; a file holds numbers and names"):
        clone(model).set_params(class_prior=class_prob).save(tmp_path / "x")


@pytest.mark.slow
def test_training_rows_are_not_in_the_file(tmp_path) -> None:
    X, y = counts()
    options = NUTSOptions(num_warmup=20, num_samples=10, num_chains=1, likelihood="rows", progress_bar=False)
    model = MultinomialNB(inference=options, random_state=0).fit(X, y)
    twin = again(model, tmp_path)
    assert model._fit_value.features.rows is not None
    assert twin._fit_value.features.rows is None
    assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


def test_learned_priors_keep_their_curve(tmp_path, monkeypatch) -> None:
    X, y = counts()
    model = MultinomialNB(alpha="evidence").fit(X, y)
    twin = again(model, tmp_path)
    at = np.array([[0.5], [1.0]])
    assert_array_equal(twin.learned_.curve(at), model.learned_.curve(at))
    assert (twin.learned_.names, twin.learned_.log_evidence) == (model.learned_.names, model.learned_.log_evidence)
    twin = again(model, tmp_path)
    monkeypatch.setattr("bayesgen.families.multinomial.maximise_concentration", lambda *a: pytest.fail("learned again"))
    assert twin.alpha_ == model.alpha_


def test_what_has_not_learned_enough_yet_is_saved_as_it_is(tmp_path) -> None:
    X, y = counts()
    model = MultinomialNB(alpha="evidence").partial_fit([[1, 0, 0, 0, 0]], ["a"], classes=["a", "b", "c c"])
    twin = again(model, tmp_path).partial_fit(X, y)
    assert_array_equal(twin.predict_proba(X), model.partial_fit(X, y).predict_proba(X))


def test_one_distribution_in_two_places_stays_one(tmp_path) -> None:
    both = dist.LogNormal(0.0, 1.0)
    for prior, same in ((Gamma(both, both), True), (Gamma(both, dist.LogNormal(0.0, 1.0)), False)):
        twin = again(PoissonNB(prior=prior, inference="nuts"), tmp_path)
        assert (twin.prior.shape is twin.prior.rate) is same


@pytest.mark.parametrize(
    "distribution",
    [
        dist.LogNormal(0.5, np.float32(2.0)),
        dist.HalfNormal(3.0).expand([2, 3]),
        dist.Normal(np.arange(3.0), 1.0).to_event(1),
        dist.TruncatedNormal(1.0, 2.0, low=0.0),
        dist.Uniform(1.0, 2.0),
        dist.InverseGamma(2.0, 3.0),
    ],
    ids=lambda d: type(d).__name__,
)
def test_simple_distributions_come_back(distribution, tmp_path) -> None:
    twin = again(MultinomialNB(alpha=distribution), tmp_path).alpha
    assert (twin.batch_shape, twin.event_shape) == (distribution.batch_shape, distribution.event_shape)
    at = np.full((*twin.batch_shape, *twin.event_shape), 1.3)
    assert_array_equal(twin.log_prob(at), distribution.log_prob(at))


def test_names_levels_and_labels_come_back(tmp_path) -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(
        {
            "colour": pd.Categorical(["red", "blue", "red", None], categories=["red", "blue", "green"]),
            "day": np.array(["2020-01-01", "2020-01-02", "2020-01-01", "2020-01-03"], dtype="datetime64[D]"),
            "mixed": np.array([True, False, True, True], dtype=object),
        }
    )
    y = pd.Series(["yes", "no", "no", "yes"], dtype=object)
    model = CategoricalNB().fit(X, y)
    twin = again(model, tmp_path)
    assert twin.feature_names_in_.tolist() == ["colour", "day", "mixed"]
    for a, b in zip(twin.categories_, model.categories_, strict=True):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)
    assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    mixed = MixedNB().fit(X.drop(columns="day").assign(size=[1.5, 2.5, 0.5, 9.0], flag=[0, 1, 1, 0]), y)
    new = X.drop(columns="day").assign(size=2.0, flag=1)
    assert_array_equal(again(mixed, tmp_path).predict_proba(new), mixed.predict_proba(new))
    levels = CategoricalNB(categories=[["x", "y"], [True, False]])
    assert again(levels, tmp_path).categories == [["x", "y"], [True, False]]


def test_sparse_models_and_labels_of_every_type(tmp_path) -> None:
    X = sp.csr_array(counts()[0])
    for y in ([True, False] * 15, [2.0, 3.0] * 15, [1, 10**12] * 15, ["é", "ü"] * 15):
        model = MultinomialNB().fit(X, y)
        twin = again(model, tmp_path)
        assert twin.classes_.tolist() == model.classes_.tolist()
        assert twin.classes_.dtype == model.classes_.dtype
        assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


# ------------------------------------------------------------------------------- what is refused


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.bayesgen"
    MultinomialNB(alpha=np.arange(1.0, 6.0)).fit(*counts()).save(path)
    return path


def rewrite(path, change, extra=()) -> None:
    """The file with its entries changed by a function of (name, content); None drops one."""
    with zipfile.ZipFile(path) as archive:
        entries = [(n, change(n, archive.read(n))) for n in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in [*entries, *extra]:
            if content is not None:
                archive.writestr(entry, content)


def with_manifest(change):
    def of(entry, content):
        if entry != "manifest.json":
            return content
        manifest = json.loads(content)
        change(manifest)
        return json.dumps(manifest)

    return of


def npy(value, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, value, **options)
    return buffer.getvalue()


def test_files_of_others_are_refused(tmp_path) -> None:
    path = tmp_path / "x"
    for content in (b"", b"hello", pickle.dumps(MultinomialNB()), npy(np.ones(3))):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="it is not a file that save"):
            bayesgen.load(path)
    np.savez(path.with_suffix(".npz"), a=np.ones(3))
    with pytest.raises(ValueError, match=r"not one that save\(\) wrote: it has no manifest"):
        bayesgen.load(path.with_suffix(".npz"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": "other"}))
    with pytest.raises(ValueError, match=r"not one that save\(\) wrote"):
        bayesgen.load(path)
    with pytest.raises(FileNotFoundError):
        bayesgen.load(tmp_path / "nothing")


def test_every_truncation_and_every_flipped_byte_is_found_or_harmless(file) -> None:
    whole = file.read_bytes()
    X = counts()[0]
    expected = bayesgen.load(file).predict_proba(X)
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(whole), 40):
        file.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="cannot load"):
            bayesgen.load(file)
    for at in rng.integers(0, len(whole), 150):
        broken = bytearray(whole)
        broken[at] ^= 0x55
        file.write_bytes(broken)
        try:
            found = bayesgen.load(file)
        except ValueError as error:
            assert "cannot load" in str(error)  # noqa: PT017
        else:  # a byte that says nothing, such as a date
            assert_array_equal(found.predict_proba(X), expected)


def test_newer_formats_are_named(file) -> None:
    rewrite(file, with_manifest(lambda m: m.update(format_version=2, bayesgen="9.0")))
    with pytest.raises(ValueError, match=r"version 2 of the format, written by bayesgen 9.0; .* upgrade"):
        bayesgen.load(file)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["value"].update({"class": "Path"}),
        lambda m: m["value"].update({"class": "os.system"}),
        lambda m: m["value"].update({"is": "__class__"}),
        lambda m: m.update(value={"is": "own"}),
        lambda m: m.update(value=[1, 2]),
        lambda m: m.update(value={"is": "Columns", "n_features": 2}),
        lambda m: m["value"]["params"].update(evil=1),
        lambda m: m["value"]["learned"].update(evil=1),
        lambda m: m["value"].update(learned={"is": "tuple", "items": []}),
        lambda m: m["value"]["learned"]["fit"].update(count=[1, 2]),
        lambda m: m["value"]["learned"]["fit"].update(features="x"),
        lambda m: m["value"]["params"]["alpha"].update(n=99),
        lambda m: m["value"]["params"].update(alpha={"is": "distribution", "name": "Delta", "arguments": {}}),
        lambda m: m["value"]["params"].update(random_state={"is": "random", "legacy": False, "state": {}}),
        lambda m: m.update(arrays=10**12),
        *(lambda m, v=v: m.update(format_version=v) for v in (0, -1, True, 1.0, "1", None, [1])),
        *(
            lambda m, v=v: m["value"]["learned"]["fit"].update(v)
            for v in (
                {"power": "x"},
                {"power": -1.0},
                {"power": None},
                {"power": {"is": "float", "text": "nan"}},
                {"route": "other"},
                {"route": ["exact"]},
                {"class_prior": 1.0},
                {"classes": None},
                {"sampled_classes": 3},
                {"names": 3},
            )
        ),
        *(
            lambda m, v=v: m["value"]["learned"]["fit"]["class_prior"].update(v)
            for v in (
                {"n_classes": 7},
                {"n_classes": "x"},
                {"fixed": [0.5, 0.6]},
                {"fixed": "x"},
                {"fixed": [0.5]},
                {"alpha": -1.0},
                {"alpha": [1.0] * 9},
                {"alpha": {"is": "float", "text": "inf"}},
            )
        ),
        *(
            lambda m, v=v: m["value"]["learned"]["fit"]["features"].update(v)
            for v in (
                {"route": "other"},
                {"stated": 3},
                {"stated": None},
                {"stats": None},
                {"stats": "text"},
            )
        ),
        *(
            lambda m, v=v: m["value"]["learned"]["fit"]["features"]["stated"].update(v)
            for v in (
                {"n_classes": 7},
                {"n_features": 1},
                {"alpha": {"is": "float", "text": "nan"}},
                {"alpha": "x"},
                {"alpha": [1.0, 2.0]},
            )
        ),
        *(
            lambda m, v=v: m["value"]["learned"].update(columns=v)
            for v in (None, {"is": "Columns", "n_features": "x"}, {"is": "Columns", "n_features": 5, "blocks": -1})
        ),
        lambda m: m.pop("value"),
        lambda m: m.pop("format_version"),
    ],
)
def test_manifests_that_say_something_else_are_refused(file, change) -> None:
    rewrite(file, with_manifest(change))
    with pytest.raises(ValueError, match="cannot load"):
        bayesgen.load(file)


def test_arguments_of_load_are_named(file) -> None:
    for path in (None, 3, b"x"):
        with pytest.raises(ValueError, match="path must be the path of a file"):
            bayesgen.load(path)
    for size in ("a", -1, 1.5, None, True):
        with pytest.raises(ValueError, match="max_bytes must be a whole number, at least 0"):
            bayesgen.load(file, max_bytes=size)


def test_every_flipped_bit_of_the_directory_is_an_error_of_ours(file) -> None:
    whole = file.read_bytes()
    start = whole.index(b"PK\x01\x02")
    rng = np.random.default_rng(1)
    for at, bit in zip(rng.integers(start, len(whole), 300), rng.integers(0, 8, 300), strict=True):
        broken = bytearray(whole)
        broken[at] ^= 1 << bit
        file.write_bytes(broken)
        try:
            bayesgen.load(file)
        except ValueError as error:
            assert "cannot load" in str(error)  # noqa: PT017


def test_nested_json_does_not_break_the_reader(file) -> None:
    deep = (
        '{"format": "bayesgen estimator", "format_version": 1, "arrays": 0, "value": ' + "[" * 100_000 + "]" * 100_000
    )
    rewrite(file, lambda n, c: deep + "}" if n == "manifest.json" else None)
    with pytest.raises(ValueError, match="damaged"):
        bayesgen.load(file)


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_arrays_of_objects_and_wrong_sizes_are_refused(file, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = file.read_bytes()
    header = npy(np.ones(3))
    for content in (
        npy(np.array([Evil()], dtype=object), allow_pickle=True),
        header.replace(b"(3,)", b"(9,)"),
        header[:-4],
        header[:20],
        header.replace(b"(3,)", b"(-3,)"),
        npy(np.zeros(2, dtype=[("a", "f8")])),
        header.replace(b"'<f8'", b"'<U0'").replace(b"(3,)", b"(10**12,)"),
    ):
        file.write_bytes(whole)
        rewrite(file, lambda n, c, content=content: content if n == "arrays/0.npy" else c)
        with pytest.raises(ValueError, match="cannot load"):
            bayesgen.load(file)
    assert not (tmp_path / "evil").exists()


def test_entries_that_do_not_belong_are_refused(file) -> None:
    rewrite(file, lambda n, c: c, [("../../evil.py", "print(1)")])
    with pytest.raises(ValueError, match="entries are missing or do not belong"):
        bayesgen.load(file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(file) -> None:
    rewrite(file, lambda n, c: c, [("arrays/0.npy", npy(np.ones(3)))])
    with pytest.raises(ValueError, match="entries are missing or do not belong"):
        bayesgen.load(file)


def test_a_bomb_is_not_unpacked(file) -> None:
    rewrite(file, lambda n, c: c, [("arrays/9.npy", b"\0" * 50_000_000)])
    assert file.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"holds 50,\d\d\d,\d\d\d bytes unpacked, more than max_bytes=1,000,000"):
        bayesgen.load(file, max_bytes=1_000_000)


def test_a_failed_save_leaves_the_old_file(file, monkeypatch) -> None:
    before = file.read_bytes()
    model = MultinomialNB().fit(*counts())
    monkeypatch.setattr("bayesgen.storage._add", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(file)
    assert file.read_bytes() == before
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_the_same_model_is_the_same_file(file, tmp_path) -> None:
    bayesgen.load(file).save(tmp_path / "twin")
    assert (tmp_path / "twin").read_bytes() == file.read_bytes()


def test_what_cannot_be_stored_is_named(tmp_path) -> None:
    def my_prior(base):
        return {"rate": None}

    class MyNB(MultinomialNB):
        pass

    for model, message in (
        (PoissonNB(prior=my_prior), "this PoissonNB: prior is 'my_prior', a function"),
        (MultinomialNB(alpha=dist.Delta(1.0)), "alpha is a Delta distribution; those that can be stored are Beta, "),
        (MyNB(), "this MyNB: value is 'MyNB'"),
        (MixedNB(blocks=[("a", PoissonNB(prior=my_prior), [0])]), r"blocks\[0\]\[1\].prior is 'my_prior', a function"),
    ):
        with pytest.raises(ValueError, match=message):
            model.save(tmp_path / "x")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        MultinomialNB().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "model",
    [
        MultinomialNB(inference="mean", unlabelled="em"),
        GaussianNB(inference="map", unlabelled="em"),
        pytest.param(
            PoissonNB(inference=NUTSOptions(60, 50, 2, progress_bar=False), unlabelled="em", random_state=0),
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::bayesgen.SamplingWarning")
def test_a_fit_with_unlabelled_rows_is_kept(tmp_path, monkeypatch, model):
    X = np.random.default_rng(0).poisson(3.0, (40, 2)).astype(float)
    y = np.where(np.arange(40) % 2, -1, np.arange(40) // 20)
    model.fit(X, y).save(tmp_path / "model")
    monkeypatch.setattr("bayesgen.nuts.run", None)  # draws are not made again
    again = bayesgen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if model.inference in ("map", "mean"):
        np.testing.assert_array_equal(again.log_posterior_trace_, model.log_posterior_trace_)


@pytest.mark.parametrize(
    "inference", ["map", pytest.param(NUTSOptions(60, 50, 2, progress_bar=False), marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::bayesgen.SamplingWarning")
def test_a_fit_to_rows_with_missing_cells_is_kept(tmp_path, inference):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    X[::7, 1] = np.nan
    model = GaussianDiscriminantAnalysis(inference=inference, missing="marginalize", random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = bayesgen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    same = bayesgen.Statistics.from_json(model.statistics_.to_json())
    restored = GaussianDiscriminantAnalysis(inference="map", missing="marginalize").from_statistics(same)
    np.testing.assert_array_equal(restored.means_, model.set_params(inference="map").fit(X, y).means_)
    with pytest.raises(ValueError, match=r"by pattern.*to_json"):
        model.statistics_.to_table()
