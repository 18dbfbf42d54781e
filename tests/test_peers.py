"""The same numbers as scikit-learn where the models are the same, and the same manners in its tools.

Both sides are float64; the tolerances are those of two roundings, not of two models.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import naive_bayes
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.utils.fixes import parse_version

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    UndefinedNumberError,
    families,
)


def agree(actual, desired, rtol=1e-12, atol=0.0):
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol)


def laplace(kind, **keywords):
    """scikit-learn's discrete naive Bayes: posterior means of the features, relative frequencies of the classes."""
    return kind(inference="mean", class_alpha=0, **keywords)


# --------------------------------------------------------------------- discrete naive Bayes, 1e-12


def texts(data, name):
    """Words of a text corpus as counts (CSR) and labels: every other text to learn, the rest to predict."""
    table = data(name)
    counts = CountVectorizer().fit_transform(table["text"])
    return counts, table["label"].to_numpy()


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y


CORPORA = ["load_digits", "sms_spam", "newsgroups4"]


@pytest.fixture(params=CORPORA, scope="module")
def counts(request):
    """A training part and a test part of counts, dense or CSR."""
    if request.param == "load_digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = texts(request.getfixturevalue("data"), request.param)
    return X[::2], y[::2], X[1::2]


def same_probabilities(ours, theirs, X):
    # A log probability is a difference of log joints and no more exact than these, so next to zero they set an
    # absolute tolerance: a few units in their last place.
    joint = theirs.predict_joint_log_proba(X)
    size = np.abs(joint).max(axis=1, keepdims=True)
    found, expected = ours.predict_log_proba(X), theirs.predict_log_proba(X)
    assert (np.abs(found - expected) <= 1e-12 * np.abs(expected) + 2e-14 * size).all()
    agree(ours.predict_joint_log_proba(X), joint)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("alpha", [1.0, 0.01])
@pytest.mark.parametrize("fit_prior", [True, False])
def test_multinomial_with_laplace_smoothing(counts, alpha, fit_prior):
    X, y, new = counts
    theirs = naive_bayes.MultinomialNB(alpha=alpha, fit_prior=fit_prior).fit(X, y)
    ours = laplace(MultinomialNB, alpha=alpha, fit_prior=fit_prior).fit(X, y)
    agree(ours.feature_log_prob_, theirs.feature_log_prob_)
    agree(ours.feature_count_, theirs.feature_count_)
    agree(ours.class_log_prior_, theirs.class_log_prior_)
    same_probabilities(ours, theirs, new)


# Theirs is log(1 - p), which loses digits as p nears one: no tiny alpha here.
@pytest.mark.parametrize("alpha", [1.0, 0.2])
def test_bernoulli_with_laplace_smoothing(counts, alpha):
    X, y, new = counts
    theirs = naive_bayes.BernoulliNB(alpha=alpha).fit(X, y)
    ours = laplace(BernoulliNB, alpha=alpha).fit(X, y)
    agree(ours.feature_log_prob_, theirs.feature_log_prob_, atol=1e-14)  # theirs is a difference of two logarithms
    same_probabilities(ours, theirs, new)
    # The default route has the same features: only the class probabilities are smoothed too.
    exact = BernoulliNB(alpha=alpha, class_prior=np.exp(theirs.class_log_prior_)).fit(X, y)
    same_probabilities(exact, theirs, new)


def test_sample_weights_of_count_models(digits):
    X, y = digits
    w = np.random.default_rng(0).gamma(1.0, size=len(y))
    for ours, theirs in (
        (laplace(MultinomialNB), naive_bayes.MultinomialNB()),
        (laplace(BernoulliNB, binarize=3.0), naive_bayes.BernoulliNB(binarize=3.0)),
    ):
        same_probabilities(ours.fit(X, y, w), theirs.fit(X, y, w), X)


def test_fractional_counts(data):
    X, y = texts(data, "sms_spam")
    X = TfidfTransformer().fit_transform(X)
    same_probabilities(laplace(MultinomialNB).fit(X, y), naive_bayes.MultinomialNB().fit(X, y), X)


def test_counts_in_batches(digits):
    X, y = digits
    ours, theirs = laplace(MultinomialNB), naive_bayes.MultinomialNB()
    for i in range(0, len(y), 500):
        ours.partial_fit(X[i : i + 500], y[i : i + 500], classes=np.arange(10))
        theirs.partial_fit(X[i : i + 500], y[i : i + 500], classes=np.arange(10))
    same_probabilities(ours, theirs, X)


def table_of_levels(data, name):
    """A table of strings without missing cells, and its labels."""
    if name == "load_digits":
        X, y = load_digits(return_X_y=True)
        return pd.DataFrame(X // 2).astype(int).astype(str), y
    table = data(name).dropna()
    label = {"housevotes84": "Class", "mushroom": "class", "weather": "play"}[name]
    return table.drop(columns=label).astype(str), table[label].to_numpy()


@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("name", ["load_digits", "housevotes84", "mushroom", "weather"])
def test_categorical_with_laplace_smoothing(request, name, alpha):
    data = None if name == "load_digits" else request.getfixturevalue("data")
    table, y = table_of_levels(data, name)
    encoder = OrdinalEncoder(dtype=np.int64).fit(table)
    codes, levels = encoder.transform(table), [len(c) for c in encoder.categories_]
    theirs = naive_bayes.CategoricalNB(alpha=alpha, min_categories=levels).fit(codes, y)
    ours = laplace(CategoricalNB, alpha=alpha).fit(codes, y)
    for mine, other in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        agree(mine, other, atol=1e-14)  # theirs is a difference of two logarithms
    same_probabilities(ours, theirs, codes)
    # Strings as they are, no encoder: the same levels, in the same order.
    words = laplace(CategoricalNB, alpha=alpha).fit(table, y)
    np.testing.assert_array_equal(words.predict_joint_log_proba(table), ours.predict_joint_log_proba(codes))
    same_probabilities(
        CategoricalNB(alpha=alpha, class_prior=np.exp(theirs.class_log_prior_)).fit(codes, y), theirs, codes
    )


# --------------------------------------------------------------------- Gaussian models, 1e-9


def numbers(request, name):
    if name == "penguins":
        table = request.getfixturevalue("data")("penguins").dropna()
        columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
        return table[columns].to_numpy(), table["species"].to_numpy()
    load = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}[name]
    return load(return_X_y=True)


TABLES = pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "penguins"])


def maximum_likelihood(covariance, **keywords):
    return GaussianDiscriminantAnalysis(covariance=covariance, inference="mle", **keywords)


# scikit-learn 1.9 divides the scatter of a class by its rows, earlier ones by one row less.
PER_CLASS_ROUTE = "mle" if parse_version("1.9") <= parse_version(sklearn.__version__) else "unbiased"


def same_posterior(ours, theirs, X, rtol=1e-9):
    """Probabilities to 1e-9; log probabilities to 1e-9 of the log odds they come from."""
    found, expected = ours.predict_log_proba(X), theirs.predict_log_proba(X)
    usual = expected > -600  # scikit-learn's own logarithm of a probability below 1e-300 is cut off
    size = np.maximum(np.abs(np.where(usual, expected, 0.0)).max(axis=1, keepdims=True), 1.0)
    assert (np.abs(found - expected) <= rtol * size)[usual].all()
    agree(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=rtol)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@TABLES
def test_linear_discriminant_analysis(request, name):
    X, y = numbers(request, name)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    ours = maximum_likelihood("shared").fit(X, y)
    agree(ours.means_, theirs.means_, 1e-12)
    # The columns of the breast cancer data span eleven orders of magnitude.
    agree(ours.covariance_, theirs.covariance_, 1e-9, 1e-12 * np.abs(theirs.covariance_).min())
    agree(ours.xbar_, theirs.xbar_ if hasattr(theirs, "xbar_") else X.mean(axis=0), 1e-12)
    agree(ours.priors_, theirs.priors_, 1e-12)
    # scikit-learn's own weights come from a least-squares solver; where the covariance is ill-conditioned they
    # carry its digits, so the comparison is at the precision that its conditioning leaves.
    scale = np.sqrt(np.diag(ours.covariance_))
    condition = np.linalg.cond(ours.covariance_ / np.outer(scale, scale))
    same_posterior(ours, theirs, X, max(1e-9, 1e-13 * condition))


@TABLES
def test_quadratic_discriminant_analysis(request, name):
    X, y = numbers(request, name)
    if name == "breast_cancer":
        X = X[:, [0, 1, 4, 5, 8, 9]] * [1, 1, 100, 100, 100, 100]  # all 30 are collinear in scikit-learn's eyes
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    ours = maximum_likelihood("per_class").set_params(inference=PER_CLASS_ROUTE).fit(X, y)
    agree(ours.means_, theirs.means_, 1e-12)
    agree(ours.covariance_, np.stack(theirs.covariance_), 1e-9, 1e-12 * np.abs(theirs.covariance_).min())
    same_posterior(ours, theirs, X)
    score = ours.decision_function(X)
    codes = score.argmax(axis=1) if len(ours.classes_) > 2 else (score > 0).astype(int)
    np.testing.assert_array_equal(ours.classes_[codes], ours.predict(X))


@TABLES
def test_gaussian_naive_bayes(request, name):
    X, y = numbers(request, name)
    theirs = naive_bayes.GaussianNB(var_smoothing=0).fit(X, y)
    ours = GaussianNB(inference="mle").fit(X, y)
    agree(ours.theta_, theirs.theta_, 1e-12)
    agree(ours.var_, theirs.var_, 1e-9)
    agree(ours.class_prior_, theirs.class_prior_, 1e-12)
    agree(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), 1e-9)
    same_posterior(ours, theirs, X)


def test_given_class_probabilities_of_gaussian_models():
    X, y = load_iris(return_X_y=True)
    prior = [0.2, 0.3, 0.5]
    same_posterior(
        maximum_likelihood("per_class", priors=prior).set_params(inference=PER_CLASS_ROUTE).fit(X, y),
        QuadraticDiscriminantAnalysis(priors=prior).fit(X, y),
        X,
    )
    same_posterior(
        GaussianNB(inference="mle", priors=prior).fit(X, y),
        naive_bayes.GaussianNB(var_smoothing=0, priors=prior).fit(X, y),
        X,
    )


def test_weights_of_gaussian_naive_bayes():
    X, y = load_wine(return_X_y=True)
    w = np.random.default_rng(0).gamma(2.0, size=len(y))
    theirs = naive_bayes.GaussianNB(var_smoothing=0).fit(X, y, w)
    ours = GaussianNB(inference="mle").fit(X, y, w)
    agree(ours.var_, theirs.var_, 1e-9)
    same_posterior(ours, theirs, X)


# --------------------------------------------------------------------- the logistic form

COUNTS, LABELS = load_digits(return_X_y=True)
COUNTS = COUNTS[:400, 2:30].clip(max=6)
COUNTS = COUNTS[:, COUNTS.any(axis=0)]
LABELS = LABELS[:400]
IRIS, SPECIES = load_iris(return_X_y=True)
LINEAR = {
    "GDA, mean": (GaussianDiscriminantAnalysis(inference="mean"), IRIS, SPECIES),
    "GDA, mle": (GaussianDiscriminantAnalysis(inference="mle"), IRIS, SPECIES),
    "GDA, unbiased": (GaussianDiscriminantAnalysis(inference="unbiased"), IRIS, SPECIES),
    "GDA, map": (GaussianDiscriminantAnalysis(inference="map", class_alpha=2.0), IRIS, SPECIES),
    "GDA, prior shift": (GaussianDiscriminantAnalysis(inference="mle", class_prior=[0.2, 0.2, 0.6]), IRIS, SPECIES),
    "normal": (GaussianNB(inference="mean", variance="shared"), IRIS, SPECIES),
    "normal, mle": (GaussianNB(inference="mle", variance="shared"), IRIS, SPECIES),
    "Bernoulli": (BernoulliNB(inference="mean", binarize=3.0), COUNTS, LABELS),
    "Bernoulli, exact": (BernoulliNB(binarize=2.0, alpha=(0.5, 2.0)), COUNTS, LABELS),
    "Bernoulli, no threshold": (BernoulliNB(binarize=None), (COUNTS > 3).astype(float), LABELS),
    "multinomial": (MultinomialNB(inference="mean", alpha=0.5), COUNTS, LABELS),
    "multinomial, map": (MultinomialNB(inference="map", alpha=1.5), COUNTS, LABELS),
    "Poisson": (PoissonNB(inference="mean"), COUNTS, LABELS),
    "categorical": (CategoricalNB(inference="mean", min_categories=7), COUNTS.astype(int), LABELS),
    "categorical, exact": (CategoricalNB(min_categories=7), COUNTS.astype(int), LABELS),
    "general": (GenerativeClassifier(family="multivariate_gaussian", inference="mle"), IRIS, SPECIES),
    "general, Poisson": (GenerativeClassifier(family="poisson", inference="mean"), COUNTS, LABELS),
}


@pytest.mark.parametrize("two_classes", [False, True])
@pytest.mark.parametrize("name", LINEAR)
def test_the_logistic_form_gives_the_same_probabilities(name, two_classes):
    model, X, y = LINEAR[name]
    if two_classes:
        if name == "GDA, prior shift":
            model = clone(model).set_params(class_prior=[0.3, 0.7])
        X, y = X[y < 2], np.array(["no", "yes"])[y[y < 2]]
    model = clone(model).fit(X, y)
    form = model.to_logistic()
    agree(form.predict_proba(X), model.predict_proba(X), rtol=1e-10, atol=1e-15)
    np.testing.assert_array_equal(form.predict(X), model.predict(X))
    last = form if isinstance(form, LogisticRegression) else form[-1]
    assert isinstance(last, LogisticRegression)
    rows = 1 if two_classes else len(model.classes_)
    assert last.coef_.shape[0] == last.intercept_.shape[0] == rows
    np.testing.assert_array_equal(last.coef_, model.coef_)
    np.testing.assert_array_equal(last.intercept_, model.intercept_)
    assert form.classes_.tolist() == model.classes_.tolist()


def test_the_logistic_form_of_strings_encodes_them():
    X = pd.DataFrame({"sky": ["sun", "rain", "sun", "fog"], "wind": ["yes", "no", "no", "no"]})
    model = CategoricalNB(inference="mean").fit(X, [0, 1, 0, 1])
    agree(model.to_logistic().predict_proba(X.to_numpy()), model.predict_proba(X), rtol=1e-10)


NOT_LINEAR = [
    (GaussianDiscriminantAnalysis(), IRIS, "Student t"),
    (GaussianDiscriminantAnalysis(covariance="per_class", inference="mean"), IRIS, "quadratic"),
    (GaussianNB(inference="mle"), IRIS, "quadratic"),
    (GaussianNB(variance="shared"), IRIS, "Student t"),
    (MultinomialNB(), IRIS, "urn"),
    (PoissonNB(), IRIS, "negative binomial"),
    (MixedNB(inference="mean"), IRIS, "block"),
]


@pytest.mark.parametrize(
    ("model", "X", "reason"), NOT_LINEAR, ids=lambda v: "" if isinstance(v, np.ndarray) else str(v)
)
def test_a_model_without_linear_log_odds_says_why(model, X, reason):
    model = clone(model).fit(X, SPECIES)
    with pytest.raises(ValueError, match=reason):
        model.to_logistic()
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "intercept_")


def test_a_zero_probability_has_no_logistic_form():
    model = MultinomialNB(inference="mle").fit([[1, 0], [1, 1]], [0, 1])
    with pytest.raises(UndefinedNumberError, match="zero"):
        model.to_logistic()


# --------------------------------------------------------------------- scikit-learn's tools

MODELS = {
    "Bernoulli": (BernoulliNB(binarize=3.0), COUNTS, LABELS),
    "categorical": (CategoricalNB(min_categories=7), COUNTS.astype(int), LABELS),
    "GDA": (GaussianDiscriminantAnalysis(), IRIS, SPECIES),
    "GDA, per class": (GaussianDiscriminantAnalysis(covariance="per_class"), IRIS, SPECIES),
    "general": (GenerativeClassifier(family="poisson"), COUNTS, LABELS),
    "mixed": (MixedNB(), np.column_stack([IRIS, IRIS > 3]), SPECIES),
    "multinomial": (MultinomialNB(), COUNTS, LABELS),
    "normal": (GaussianNB(), IRIS, SPECIES),
    "Poisson": (PoissonNB(prior=Gamma(2.0, 1.0)), COUNTS, LABELS),
}


def every_model(*skip):
    kept = {name: case for name, case in MODELS.items() if name not in skip}
    return pytest.mark.parametrize(("model", "X", "y"), kept.values(), ids=kept)


@every_model()
def test_clone_and_pickle(model, X, y):
    before = {k: repr(v) for k, v in model.get_params().items()}
    fitted = clone(model).fit(X, y)
    assert {k: repr(v) for k, v in fitted.get_params().items()} == before
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_joint_log_proba(X), fitted.predict_joint_log_proba(X))
    assert copy.log_evidence_ == fitted.log_evidence_
    empty = clone(fitted)
    assert not hasattr(empty, "classes_")


@every_model()
def test_cross_validation_in_one_process(model, X, y):
    scores = cross_val_score(model, X, y, cv=3, scoring="neg_log_loss")
    assert np.isfinite(scores).all()
    proba = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    agree(proba.sum(axis=1), np.ones(len(y)))


def test_cross_validation_in_two_processes():
    model, X, y = MODELS["multinomial"]
    with warnings.catch_warnings():
        # joblib's workers may be stopped before they have cleaned up; not ours.
        warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
        two = cross_val_score(model, X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(two, cross_val_score(model, X, y, cv=2, n_jobs=1))


@every_model("mixed", "Bernoulli", "categorical")
def test_pipeline_and_calibration(model, X, y):
    scaler = StandardScaler(with_mean=False)
    pipeline = make_pipeline(scaler, model).fit(X, y)
    alone = clone(model).fit(scaler.fit_transform(X), y)
    np.testing.assert_array_equal(pipeline.predict_proba(X), alone.predict_proba(scaler.transform(X)))
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    agree(calibrated.predict_proba(X).sum(axis=1), np.ones(len(y)))
    assert log_loss(y, calibrated.predict_proba(X)) < np.log(len(np.unique(y)))


def test_grid_search_over_a_concentration_and_a_route():
    grid = {"alpha": [0.1, 1.0, (0.5, 2.0)], "inference": ["mean", "exact"]}
    search = GridSearchCV(BernoulliNB(binarize=3.0), grid, cv=3, scoring="neg_log_loss").fit(COUNTS, LABELS)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(search.predict(COUNTS), search.best_estimator_.predict(COUNTS))


def test_grid_search_in_the_block_of_a_mixed_model():
    blocks = [("flags", BernoulliNB(binarize=None), [4, 5, 6, 7]), ("sizes", GaussianNB(), [0, 1, 2, 3])]
    X = np.column_stack([IRIS, IRIS > 3])
    grid = {"flags__alpha": [0.5, 5.0], "sizes__variance": ["per_class", "shared"]}
    search = GridSearchCV(MixedNB(blocks=blocks), grid, cv=3).fit(X, SPECIES)
    assert set(search.best_params_) == set(grid)
    assert blocks[0][1].alpha == 1.0  # the given blocks stay as they were


@pytest.mark.parametrize("blocks", [None, 3, "automatic", [], [1], [("sizes", GaussianNB())]], ids=str)
def test_blocks_that_are_none_are_an_error_at_fit_and_not_before(blocks):
    model = MixedNB().set_params(blocks=blocks)
    clone(model).get_params()
    with pytest.raises(ValueError, match="block"):
        model.fit(IRIS, SPECIES)


def test_text_pipeline():
    texts = [
        "free money now",
        "meeting at noon",
        "free free offer",
        "lunch at noon?",
        "money offer",
        "see you at lunch",
    ]
    labels = ["spam", "ham", "spam", "ham", "spam", "ham"]
    for model in (MultinomialNB(), BernoulliNB(), PoissonNB()):
        pipeline = make_pipeline(CountVectorizer(), model).fit(texts, labels)
        assert pipeline.predict(["free offer", "lunch at noon", ""]).tolist()[:2] == ["spam", "ham"]


def test_voting_and_stacking():
    parts = [("gda", GaussianDiscriminantAnalysis()), ("nb", GaussianNB()), ("general", GenerativeClassifier())]
    vote = VotingClassifier(parts, voting="soft").fit(IRIS, SPECIES)
    mean = np.mean([clone(m).fit(IRIS, SPECIES).predict_proba(IRIS) for _, m in parts], axis=0)
    agree(vote.predict_proba(IRIS), mean, atol=1e-15)
    stack = StackingClassifier(parts, LogisticRegression(max_iter=1000), cv=3).fit(IRIS, SPECIES)
    assert stack.score(IRIS, SPECIES) > 0.9


@every_model()
def test_metadata_routing(model, X, y):
    w = np.random.default_rng(0).gamma(2.0, size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline("passthrough", routed).fit(X, y, sample_weight=w)
        expected = clone(model).fit(X, y, sample_weight=w)
        np.testing.assert_array_equal(pipeline.predict_proba(X), expected.predict_proba(X))
        search = GridSearchCV(routed, {"class_alpha": [0.5, 1.0]}, cv=3).fit(X, y, sample_weight=w)
        best = clone(model).set_params(**search.best_params_).fit(X, y, w)
        np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
        shift = np.full(len(np.unique(y)), 1 / len(np.unique(y)))
        asked = clone(model).set_predict_proba_request(class_prior=True).set_fit_request(sample_weight=False).fit(X, y)
        agree(asked.predict_proba(X, class_prior=shift).sum(axis=1), np.ones(len(y)))


# --------------------------------------------------------------------- forms of one matrix

SPARSE = [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


@pytest.mark.parametrize("form", SPARSE, ids=lambda f: f.__name__)
@every_model("mixed")
def test_sparse_matrices_give_the_numbers_of_arrays(model, X, y, form):
    if isinstance(model, CategoricalNB):
        X, y = X[:60], y[:60]
    dense, sparse = clone(model).fit(X, y), clone(model).fit(form(X), y)
    # Sums in another order: a few units in the last place.
    agree(sparse.predict_joint_log_proba(form(X)), dense.predict_joint_log_proba(X), 1e-12)
    agree(sparse.predict_joint_log_proba(X), dense.predict_joint_log_proba(form(X)), 1e-12)
    agree(sparse.log_evidence_, dense.log_evidence_, 1e-12)
    agree(sparse.loo(form(X), y).log_joint, dense.loo(X, y).log_joint, 1e-11)


def test_unsorted_and_duplicate_entries_of_a_sparse_matrix():
    rows, columns, values = [0, 0, 0, 1, 2, 2], [2, 0, 2, 1, 1, 0], [1.0, 2.0, 3.0, 1.0, 4.0, 1.0]
    messy = sp.csr_array((np.array(values), np.array(columns), np.array([0, 3, 4, 6])), shape=(3, 3))
    entries = messy.data.copy()
    plain = sp.coo_array((values, (rows, columns))).toarray()
    for kind in (BernoulliNB, MultinomialNB, PoissonNB):
        agree(
            kind().fit(messy, [0, 1, 1]).predict_joint_log_proba(messy),
            kind().fit(plain, [0, 1, 1]).predict_joint_log_proba(plain),
        )
    np.testing.assert_array_equal(messy.data, entries)  # the caller's matrix stays as it was


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, np.int64, bool])
def test_number_types_of_counts(dtype):
    X = (COUNTS > 3).astype(dtype) if dtype is bool else COUNTS.astype(dtype)
    wide = X.astype(np.float64)
    for kind in (BernoulliNB, MultinomialNB, PoissonNB, GaussianDiscriminantAnalysis, CategoricalNB):
        narrow = kind().fit(X, LABELS).predict_joint_log_proba(X)
        agree(narrow, kind().fit(wide, LABELS).predict_joint_log_proba(wide))


def columns_of(X):
    return [f"column_{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize("frame", ["pandas", "polars"])
@every_model()
def test_data_frames_give_the_numbers_of_arrays(model, X, y, frame):
    names = columns_of(X)
    table = pd.DataFrame(X, columns=names) if frame == "pandas" else pl.DataFrame(X, schema=names)
    labels = pd.Series(y) if frame == "pandas" else pl.Series(y)
    plain, framed = clone(model).fit(X, y), clone(model).fit(table, labels)
    np.testing.assert_array_equal(framed.predict_joint_log_proba(table), plain.predict_joint_log_proba(X))
    assert framed.log_evidence_ == plain.log_evidence_
    np.testing.assert_array_equal(framed.loo(table, labels).log_joint, plain.loo(X, y).log_joint)
    assert framed.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        framed.predict(table[names[::-1]])


def test_categorical_columns_of_both_kinds_of_frame():
    words = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["c", "x"]], dtype=object)
    y = [0, 1, 0, 1]
    plain = CategoricalNB(categories=[["a", "b", "c"], ["x", "y"]]).fit(words, y)
    pandas = pd.DataFrame(words, columns=["p", "q"]).astype("category")
    strings = pl.DataFrame({"p": words[:, 0].tolist(), "q": words[:, 1].tolist()})
    polars = strings.cast({"p": pl.Enum(["a", "b", "c"]), "q": pl.Enum(["x", "y"])})
    for table in (pandas, polars, strings, strings.cast(pl.Categorical)):
        model = CategoricalNB().fit(table, y)
        np.testing.assert_array_equal(model.predict_joint_log_proba(table), plain.predict_joint_log_proba(words))


def test_mixed_columns_of_both_kinds_of_frame():
    table = pd.DataFrame(
        {
            "flag": [True, False, True, True, False, False],
            "word": ["a", "b", "a", "c", "b", "b"],
            "size": [1.5, 2.5, 1.25, 0.5, 3.5, 2.25],
        }
    )
    y = [0, 1, 0, 0, 1, 1]
    for frame in (table, pl.from_pandas(table)):
        model = MixedNB().fit(frame, y)
        assert [(name, columns.tolist()) for name, _, columns in model.blocks_] == [
            ("bernoulli", [0]),
            ("categorical", [1]),
            ("gaussian", [2]),
        ]
        by_hand = sum(
            np.log(block.predict_proba(frame[[table.columns[columns[0]]]])) for (_, block, columns) in model.blocks_
        )
        joint = by_hand - 2 * model.class_log_prior_  # each block brings the class probabilities with it
        agree(model.predict_log_proba(frame), joint - np.logaddexp.reduce(joint, axis=1, keepdims=True), 1e-12, 1e-14)


def test_family_values_are_cloned_with_the_estimator():
    model = GenerativeClassifier(family=families.Poisson(2.0, 1.0))
    assert clone(model).fit(COUNTS, LABELS).log_evidence_ == model.fit(COUNTS, LABELS).log_evidence_
