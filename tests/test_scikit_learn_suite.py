"""scikit-learn's own tests of naive Bayes and discriminant analysis, on the estimators of this library.

The test files are those of the installed scikit-learn. Each is run under another name, and the classes that it imports
are the adapters below: they take scikit-learn's keywords and set ours, as the page "Coming from scikit-learn" says.
`EXCEPTIONS` lists every test that does not hold here, with the reason: a listed test that holds fails, and so does one
that is no longer there.
"""

import functools
import importlib.util
import inspect
import pickle
import re
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import sklearn
import sklearn.discriminant_analysis as discriminant
import sklearn.naive_bayes as naive
from conftest import REPOSITORY
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.fixes import parse_version

import bayesgen
from bayesgen import NormalInverseGamma, NormalInverseWishart
from bayesgen.estimators._arrays import on_host
from bayesgen.estimators._keywords import ATTRIBUTES, KEYWORDS

VERSION = parse_version(sklearn.__version__)
# scikit-learn 1.9 divides the scatter of a class by its rows, earlier ones by one row less.
PER_CLASS_ROUTE = "mle" if parse_version("1.9") <= VERSION else "unbiased"

# --------------------------------------------------------------------- scikit-learn's keywords in ours

PLUG_IN = {"inference": "mean", "class_alpha": 0}  # the posterior mean, and relative frequencies of the classes


class BernoulliNB(bayesgen.BernoulliNB):
    def __init__(self, *, alpha=1.0, force_alpha=True, binarize=0.0, fit_prior=True, class_prior=None):
        super().__init__(
            alpha=alpha,
            force_alpha=force_alpha,
            binarize=binarize,
            fit_prior=fit_prior,
            class_prior=class_prior,
            **PLUG_IN,
        )


class MultinomialNB(bayesgen.MultinomialNB):
    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None):
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior, **PLUG_IN)


class CategoricalNB(bayesgen.CategoricalNB):
    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, min_categories=None):
        super().__init__(
            alpha=alpha,
            force_alpha=force_alpha,
            fit_prior=fit_prior,
            class_prior=class_prior,
            min_categories=min_categories,
            **PLUG_IN,
        )


class ComplementNB:
    def __init__(self, **keywords):
        raise NotImplementedError("ComplementNB is not a generative model")


class GaussianNB(bayesgen.GaussianNB):
    """The variance smoothed by scikit-learn's rule is the mean under an inverse gamma with a scale for each class.

    With shape 1 and scale b it is (S + 2 b) / n; so b = n e / 2 adds e.
    """

    def __init__(self, *, priors=None, var_smoothing=1e-9):
        super().__init__(priors=priors, **PLUG_IN)
        self.var_smoothing = var_smoothing

    def _add_floor(self, X, y, classes, sample_weight, before):
        rows, labels = np.asarray(on_host(X), dtype=float), np.asarray(on_host(y))
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        count = before + (labels[:, None] == classes).T @ weight
        floor = 0.5 * self.var_smoothing * rows.var(axis=0).max() * count
        scale = np.repeat(floor[:, None], rows.shape[1], axis=1)
        self.prior = NormalInverseGamma(mean_precision=0.0, shape=1.0, scale=scale)

    def fit(self, X, y, sample_weight=None):
        self._add_floor(X, y, np.unique(on_host(y)), sample_weight, 0.0)
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if hasattr(self, "classes_"):
            self._add_floor(X, y, self.classes_, sample_weight, self.class_count_)
        elif classes is not None:
            self._add_floor(X, y, np.unique(classes), sample_weight, 0.0)
        return super().partial_fit(X, y, classes, sample_weight)


class Discriminant(bayesgen.GaussianDiscriminantAnalysis):
    """Maximum likelihood, or the mean under an inverse Wishart that shrinks as `shrinkage` and `reg_param` do.

    With df = d + 1 + r n and scale = r n T, r = l / (1 - l), the posterior mean is (1 - l) S / n + l T. scikit-learn's
    target T is the mean variance times the identity (`shrinkage`), or the identity (`reg_param`). For "auto" the
    strength is learned, by evidence instead of Ledoit and Wolf's formula.
    """

    def fit(self, X, y, sample_weight=None):
        intensity = getattr(self, "reg_param", 0.0) or self.shrinkage
        if intensity is None or intensity == 0:
            self.prior, self.inference = None, PER_CLASS_ROUTE if self.covariance == "per_class" else "mle"
        elif intensity == "auto":
            self.prior, self.inference = "evidence", "mean"
        else:
            self.prior, self.inference = self._shrinking(X, y, intensity), "mean"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the evidence rises to an end of the prior")  # shrunk all the way
            return super().fit(X, y, sample_weight)

    def _shrinking(self, X, y, intensity):
        rows = np.asarray(X, dtype=float)
        d = rows.shape[1]
        parts = [rows[y == k] for k in np.unique(y)]
        count, trace = np.array([len(p) for p in parts]), np.array([p.var(axis=0).sum() for p in parts])
        if self.covariance == "shared":
            count, trace = count.sum(), count @ trace / count.sum()
        target = np.ones_like(trace) if getattr(self, "reg_param", 0.0) else trace / d
        worth = intensity / (1.0 - intensity) * count
        scale = (worth * target)[..., None, None] * np.eye(d)
        return NormalInverseWishart(mean_precision=0.0, df=d + 1 + worth, scale=scale)


class LinearDiscriminantAnalysis(Discriminant):
    def __init__(self, solver="svd", shrinkage=None, priors=None, n_components=None, store_covariance=False, tol=1e-4):
        super().__init__(priors=priors, n_components=n_components, class_alpha=0)
        self.solver, self.shrinkage, self.store_covariance, self.tol = solver, shrinkage, store_covariance, tol


class QuadraticDiscriminantAnalysis(Discriminant):
    def __init__(self, *, solver="svd", shrinkage=None, priors=None, reg_param=0.0, store_covariance=False, tol=1e-4):
        super().__init__(covariance="per_class", priors=priors, class_alpha=0)
        self.solver, self.shrinkage, self.reg_param = solver, shrinkage, reg_param
        self.store_covariance, self.tol = store_covariance, tol


ADAPTERS = {
    "naive_bayes": (BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB),
    "discriminant_analysis": (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis),
}

# --------------------------------------------------------------------- what differs, on purpose

# What scikit-learn's tests expect an error to say, and what it says here.
MESSAGES = {
    "Negative values in data passed to": r"Negative values in data: column \d+ holds -\d",
    re.escape("Negative values in data passed to CategoricalNB (input X)"): "Negative values in data: column 1 ho",
    "Priors must be non-negative": r"priors must be non-negative; got \[-1.0, 2.0\]",
    "The sum of the priors should be 1": r"priors must sum to 1; the sum of \[2.0, 1.0\] is 3",
    "The target label.* in y do not exist in the initial classes": "y contains the label 2, which is not among the cl",
    "The number of samples must be more": r"the shared covariance is singular.*\(2 rows, 2 columns\)",
    "n_components cannot be larger than ": r"n_components=\d is more than min\(n_classes - 1, n_features\)",
    "y has only 1 sample in class": r"the covariance of class 'b' is singular.*\(1 rows, 2 columns\)",
}


class Difference(NamedTuple):
    """Why a test does not hold here."""

    reason: str
    error: str
    """What it fails with: a pattern of "Type: message"."""
    only: dict[str, tuple[Any, ...]] = {}
    """The parameters of the test that it is about."""
    before: str = "100"
    """The version of scikit-learn since which the test holds."""


ALWAYS_AS_GIVEN = "force_alpha has no effect: alpha is always used as given, and 0 is not replaced by 1e-10"
NO_ESTIMATOR = "the covariance is learned by a prior, not by another estimator (covariance_estimator)"
NO_SOLVER = "there are no solvers to choose from, so none that lacks a method"
PRIVATE = "a private method of scikit-learn's class"
STORED = "the covariance is always there (store_covariance)"
ESTIMATOR_KEYWORD = "TypeError: .*covariance_estimator"

EXCEPTIONS = {
    "test_alpha": Difference(ALWAYS_AS_GIVEN, "DID NOT WARN"),
    "test_alpha_vector": Difference("an array of alpha may hold zeros (worded so)", "alpha must be a non-negative"),
    "test_check_alpha": Difference(PRIVATE, "AttributeError: .*_check_alpha"),
    "test_cnb": Difference("ComplementNB is not a generative model", "NotImplementedError: ComplementNB"),
    "test_discretenb_provide_prior": Difference(
        "a fit that fails changes nothing: the classes stay those of the fit before, and may be passed again",
        "DID NOT RAISE .*ValueError",
    ),
    "test_gnb_array_api_compliance": Difference(
        "what is learned is NumPy, float64, whatever X is; predictions are of the kind of X",
        "AssertionError|UserWarning: You are comparing a array_api_strict dtype",
        {"array_namespace": ("array_api_strict", "cupy", "dpnp", "torch")},
    ),
    "test_gnb_check_update_with_no_data": Difference(PRIVATE, "AttributeError: .*_update_mean_variance"),
    "test_lda_dtype_match": Difference(
        "numbers are float64, whatever the type of X", "AssertionError: ", {"data_type": (np.float32,)}
    ),
    "test_lda_ledoitwolf": Difference(NO_ESTIMATOR, ESTIMATOR_KEYWORD),
    "test_lda_predict": Difference(NO_SOLVER, "DID NOT RAISE .*NotImplementedError"),
    "test_lda_priors": Difference(
        "class probabilities must sum to one: an error, where LinearDiscriminantAnalysis divides by the sum",
        "ValueError: priors must sum to 1; the sum of .* is 1.1|DID NOT WARN",
    ),
    "test_lda_shrinkage": Difference(NO_ESTIMATOR, ESTIMATOR_KEYWORD),
    "test_lda_store_covariance": Difference(STORED, "AssertionError: "),
    "test_lda_transform": Difference(NO_SOLVER, "DID NOT RAISE .*NotImplementedError"),
    "test_lda_orthogonality": Difference(
        "before 1.9 the rows were whitened by the unbiased covariance", "AssertionError: ", before="1.9"
    ),
    "test_predict_joint_proba": Difference(
        "before 1.9 a log probability of zero had to have the same rounding error",
        "AssertionError: ",
        {"Estimator": (BernoulliNB, MultinomialNB)},
        before="1.9",
    ),
    "test_qda_coefs": Difference("the axes of each class are not kept (rotations_)", "AttributeError: .*rotations_"),
    "test_qda_covariance_estimator": Difference(NO_SOLVER, "DID NOT RAISE .*NotImplementedError"),
    "test_qda_ledoitwolf": Difference(NO_ESTIMATOR, ESTIMATOR_KEYWORD),
    "test_qda_regularization": Difference(
        "a singular covariance is an UndefinedNumberError (a ValueError), and a prior repairs it with few rows too",
        "UndefinedNumberError: the covariance of class 1 is singular: column 1|DID NOT WARN",
    ),
    "test_qda_store_covariance": Difference(STORED, "AssertionError: "),
}


def difference(name, parameters):
    """The exception that a test with these parameters is, or None."""
    if any(value is ComplementNB for value in parameters.values()):
        return EXCEPTIONS["test_cnb"]
    listed = EXCEPTIONS.get(name)
    if listed is None or parse_version(listed.before) <= VERSION:
        return None
    return listed if all(parameters[k] in values for k, values in listed.only.items()) else None


# --------------------------------------------------------------------- scikit-learn's tests as tests of this file


class Worded:
    """`pytest` for scikit-learn's modules: an error must say what `MESSAGES` has for scikit-learn's words."""

    def __getattr__(self, name):
        return getattr(pytest, name)

    def raises(self, kind, match=None):
        return pytest.raises(kind, match=MESSAGES.get(match, match))


def load(file):
    """scikit-learn's test file as a module of ours, on the adapters; None if it is not installed."""
    spec = importlib.util.find_spec(f"sklearn.tests.test_{file}")
    if spec is None:
        return None
    own = importlib.util.spec_from_file_location(f"scikit_learn_{file}", spec.origin)
    module = importlib.util.module_from_spec(own)
    adapters = {adapter.__name__: adapter for adapter in ADAPTERS[file]}
    with mock.patch.multiple(f"sklearn.{file}", **adapters):
        own.loader.exec_module(module)
    module.pytest = Worded()
    return module


def with_lists(mark):
    """A mark whose parameters are a list: newer versions of pytest warn of generators."""
    if mark.name != "parametrize" or isinstance(mark.args[1], Collection):
        return mark
    names, values, *rest = mark.args
    return pytest.mark.parametrize(names, list(values), *rest, **mark.kwargs).mark


def as_ours(name, test):
    """The test, which must fail as listed if it is listed, and else hold."""

    @functools.wraps(test)
    def run(**parameters):
        listed = difference(name, parameters)
        try:
            test(**parameters)
        except (Exception, pytest.fail.Exception) as error:
            if listed is None or not re.search(listed.error, f"{type(error).__name__}: {error}"):
                raise
            pytest.xfail(listed.reason)
        if listed is not None:
            pytest.fail(f"{name} holds now, and is listed: {listed.reason}")

    run.pytestmark = [with_lists(mark) for mark in getattr(test, "pytestmark", [])]
    return run


def functions(module):
    """scikit-learn's test functions by name."""
    return {name: value for name, value in vars(module).items() if name.startswith("test_")}


MODULES = {file: module for file in ADAPTERS if (module := load(file)) is not None}
TESTS = {name: as_ours(name, test) for module in MODULES.values() for name, test in functions(module).items()}
globals().update(TESTS)

needs_suite = pytest.mark.skipif(len(MODULES) < len(ADAPTERS), reason="this scikit-learn comes without its tests")


@pytest.fixture
def global_random_seed():
    """As scikit-learn's conftest has it."""
    return 42


@pytest.fixture
def global_dtype():
    """As scikit-learn's conftest has it, where float32 is asked for by a variable of the environment."""
    return np.float64


@needs_suite
def test_no_name_stands_for_two_tests():
    assert len(TESTS) == sum(len(functions(module)) for module in MODULES.values()) > 50


@needs_suite
@pytest.mark.skipif(parse_version("1.9") > VERSION, reason="the list is about scikit-learn 1.9")
def test_what_is_listed_is_there():
    assert set(EXCEPTIONS) <= set(TESTS)
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in MODULES.values())
    assert [words for words in MESSAGES if re.sub(r"\\(.)", r"\1", words) not in source] == []


# --------------------------------------------------------------------- the adapters give scikit-learn's numbers

X, Y = load_iris(return_X_y=True)
COUNTS = np.round(10 * X).astype(int)
PAIRS = {
    "Bernoulli": (BernoulliNB, {"alpha": 0.5, "binarize": 3.0, "fit_prior": False}, COUNTS),
    "multinomial": (MultinomialNB, {"alpha": [0.5, 1.0, 2.0, 3.0], "class_prior": [0.2, 0.3, 0.5]}, COUNTS),
    "categorical": (CategoricalNB, {"alpha": 2.0, "min_categories": 90}, COUNTS),
    "normal": (GaussianNB, {"var_smoothing": 0.1}, X),
    "normal, given probabilities": (GaussianNB, {"var_smoothing": 1e-9, "priors": [0.2, 0.3, 0.5]}, X),
    "LDA": (LinearDiscriminantAnalysis, {"solver": "eigen"}, X),
    "LDA, shrunk": (LinearDiscriminantAnalysis, {"solver": "lsqr", "shrinkage": 0.3}, X),
    "QDA": (QuadraticDiscriminantAnalysis, {}, X),
    "QDA, regularised": (QuadraticDiscriminantAnalysis, {"reg_param": 0.2}, X),
    "QDA, shrunk": (QuadraticDiscriminantAnalysis, {"solver": "eigen", "shrinkage": 0.4}, X),
}


@pytest.mark.parametrize(("adapter", "keywords", "rows"), PAIRS.values(), ids=PAIRS)
def test_the_keywords_of_both_give_the_same_numbers(adapter, keywords, rows):
    original = getattr(naive if hasattr(naive, adapter.__name__) else discriminant, adapter.__name__)
    per_class = adapter is QuadraticDiscriminantAnalysis
    if per_class and keywords and parse_version("1.9") > VERSION:
        pytest.skip("before 1.9 it shrank the unbiased covariance, if at all")
    theirs, ours = original(**keywords).fit(rows, Y), adapter(**keywords).fit(rows, Y)
    np.testing.assert_allclose(ours.predict_log_proba(rows), theirs.predict_log_proba(rows), rtol=1e-9, atol=1e-11)
    if hasattr(theirs, "covariance_"):
        np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-11)


def test_a_floor_under_the_variances_of_batches():
    # The same rows twice: scikit-learn takes the floor of a batch off variances that stand on that of the one before.
    theirs, ours = naive.GaussianNB(var_smoothing=0.05), GaussianNB(var_smoothing=0.05)
    for _ in range(2):
        theirs.partial_fit(X, Y, classes=[0, 1, 2])
        ours.partial_fit(X, Y, classes=[0, 1, 2])
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-12)
    np.testing.assert_allclose(ours.theta_, theirs.theta_, rtol=1e-12)


# --------------------------------------------------------------------- names of scikit-learn's that are not ours

COUNTERPARTS = {
    naive.BernoulliNB: bayesgen.BernoulliNB,
    naive.CategoricalNB: bayesgen.CategoricalNB,
    naive.ComplementNB: bayesgen.MultinomialNB,
    naive.GaussianNB: bayesgen.GaussianNB,
    naive.MultinomialNB: bayesgen.MultinomialNB,
    discriminant.LinearDiscriminantAnalysis: bayesgen.GaussianDiscriminantAnalysis,
    discriminant.QuadraticDiscriminantAnalysis: bayesgen.GaussianDiscriminantAnalysis,
}
OWN = [getattr(bayesgen.estimators, name) for name in bayesgen.estimators.__all__ if name != "auto_blocks"]
each_original = pytest.mark.parametrize("original", COUNTERPARTS, ids=lambda kind: kind.__name__)
each_own = pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)


@pytest.fixture(scope="module")
def page():
    """Names in the first column of the tables of the page, by the heading above the table."""
    text = (REPOSITORY / "docs" / "from_sklearn.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]}
    return {
        title: {
            name for cell in re.findall(r"^\|([^|]*)\|", part, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
        }
        for title, part in sections.items()
    }


@each_original
def test_a_keyword_of_scikit_learn_is_taken_or_the_error_says_what_to_use(original, page):
    ours = COUNTERPARTS[original]
    for name, parameter in inspect.signature(original).parameters.items():
        assert name in page["Keywords"], name
        if name in inspect.signature(ours).parameters:
            assert ours(**{name: parameter.default}).get_params()[name] is parameter.default
            continue
        said = re.escape(KEYWORDS[name])
        with pytest.raises(TypeError, match=f"^{ours.__name__}.__init__.. got an unexpected keyword.*{name}.*: {said}"):
            ours(**{name: parameter.default})
        with pytest.raises(ValueError, match=f"^Invalid parameter '{name}' for estimator {ours.__name__}.*: {said}"):
            ours().set_params(**{name: parameter.default})


def shapes(value):
    """Shapes along the first axis of an array or list; a number is itself."""
    return [np.shape(part) for part in value] if np.iterable(value) else value


@each_original
def test_an_attribute_of_scikit_learn_is_there_or_the_error_says_where(original, page):
    keywords = {"store_covariance": True} if "store_covariance" in inspect.signature(original).parameters else {}
    theirs = original(**keywords).fit(COUNTS, Y)
    per_class = {"covariance": "per_class"} if original is discriminant.QuadraticDiscriminantAnalysis else {}
    ours = COUNTERPARTS[original](inference="mean", **per_class).fit(COUNTS, Y)
    for name in (name for name in vars(theirs) if re.fullmatch(r"[a-z]\w*[a-z]_", name)):
        assert name in page["Methods and attributes"], name
        if hasattr(ours, name):
            assert shapes(getattr(ours, name)) == shapes(getattr(theirs, name))
            continue
        if per_class and name == "scalings_":
            with pytest.raises(AttributeError, match="axes are those of one covariance for all classes"):
                _ = ours.scalings_
            continue
        with pytest.raises(AttributeError, match=f"object has no attribute '{name}': ") as error:
            getattr(ours, name)
        assert str(error.value).endswith(ATTRIBUTES[name])
        assert error.value.name == name
        assert error.value.obj is ours


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (bayesgen.GaussianNB, "infrence", "did you mean 'inference'?"),
        (bayesgen.MultinomialNB, "class_priors", "did you mean 'class_prior'?"),
        (bayesgen.MultinomialNB, "binarize", "it is a keyword of BernoulliNB"),
        (bayesgen.GaussianNB, "n_components", "it is a keyword of GaussianDiscriminantAnalysis"),
        (bayesgen.GaussianNB, "alpha", KEYWORDS["alpha"]),
        (bayesgen.MixedNB, "priors", KEYWORDS["priors"]),
        (bayesgen.PoissonNB, "xyz", "the keywords are prior, missing, inference, "),
    ],
)
def test_an_unknown_keyword_is_explained(kind, name, said):
    with pytest.raises(TypeError, match=f"'{name}': {re.escape(said)}"):
        kind(**{name: 1})
    with pytest.raises(ValueError, match=f"'{name}' for estimator {kind.__name__}"):
        kind().set_params(**{name: 1})


def test_an_unknown_parameter_of_a_block_is_explained_and_changes_nothing():
    model = bayesgen.MixedNB(blocks=[("sizes", bayesgen.GaussianNB(), [0])])
    before = repr(model.get_params())
    for name in ("sizes__var_smoothing", "widths__prior"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            model.set_params(**{name: 1})
    assert repr(model.get_params()) == before


@each_own
def test_the_signature_is_what_scikit_learn_reads(kind):
    parameters = inspect.signature(kind).parameters
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert sorted(parameters) == sorted(kind().get_params(deep=False)) == kind._get_param_names()
    assert repr(clone(kind(class_alpha=2.0))) == repr(pickle.loads(pickle.dumps(kind(class_alpha=2.0))))


@each_own
def test_an_attribute_without_a_value_keeps_its_own_error(kind):
    with pytest.raises(sklearn.exceptions.NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        _ = kind().class_count_
    with pytest.raises(bayesgen.UndefinedNumberError, match="makes no draws at fit"):
        _ = kind().fit(COUNTS, Y).diagnostics_
    with pytest.raises(AttributeError, match=f"^'{kind.__name__}' object has no attribute 'nothing'$"):
        _ = kind().nothing


def test_a_subclass_may_have_keywords_of_its_own():
    class Tempered(bayesgen.GaussianNB):
        def __init__(self, *, power=0.5):
            super().__init__(likelihood_power=power)
            self.power = power

    assert clone(Tempered(power=0.25)).get_params() == {"power": 0.25}
    with pytest.raises(TypeError, match=r"Tempered\.__init__\(\) got .* 'var_smoothing': the prior does"):
        Tempered(var_smoothing=1.0)
