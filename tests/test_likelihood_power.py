"""The exponent of p(x | y) at prediction: its definition, and its choice by leave-one-out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from oracle import BernoulliOracle, MultinomialOracle, as_float
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    NUTSOptions,
    PoissonNB,
    ZeroProbabilityWarning,
)

K = 3
RNG = np.random.default_rng(8)
Y = RNG.permutation(np.repeat([0, 1, 2], [12, 8, 10]))
WEIGHTS = RNG.uniform(0.2, 2.5, len(Y))
# Every column is there twice, which is what makes naive Bayes too sure.
BITS = np.repeat(RNG.random((len(Y), 3)) < np.array([0.3, 0.5, 0.6])[Y][:, None], 2, axis=1).astype(int)
WORDS = np.repeat(RNG.poisson(np.array([[1.0, 2.0, 1.5], [1.5, 1.0, 2.0], [1.2, 1.6, 1.2]])[Y]), 2, axis=1)
LEVELS = np.repeat(np.minimum(RNG.poisson(0.5 + 0.4 * Y[:, None], (len(Y), 2)), 3), 2, axis=1)
SIZES = np.repeat(RNG.normal(0.7 * Y[:, None], 1.0, (len(Y), 2)), 2, axis=1) + 0.01 * RNG.normal(size=(len(Y), 4))
TABLE = np.column_stack([WORDS, SIZES])
BLOCKS = [("words", MultinomialNB(inference="mean"), range(6)), ("sizes", GaussianNB(), [6, 7, 8, 9])]
MODELS = {
    "Bernoulli": (BernoulliNB(alpha=1.3), BITS),
    "multinomial": (MultinomialNB(alpha=1.3), WORDS),
    "categorical": (CategoricalNB(alpha=1.3), LEVELS),
    "Poisson": (PoissonNB(), WORDS),
    "Gaussian": (GaussianNB(), SIZES),
    "Gaussian, shared": (GaussianNB(variance="shared"), SIZES),
    "GDA": (GaussianDiscriminantAnalysis(), SIZES),
    "GDA, per class": (GaussianDiscriminantAnalysis(covariance="per_class"), SIZES),
    "general": (GenerativeClassifier(family="poisson"), WORDS),
    "mixed": (MixedNB(blocks=BLOCKS), TABLE),
}
ROUTES = ("mle", "map", "mean", "exact")
every_model = pytest.mark.parametrize("kind", MODELS)


def fitted(kind, w=None, y=Y, **changes):
    model, X = MODELS[kind]
    return clone(model).set_params(**changes).fit(X, y, w), X


def log_density(model, X):
    """Log of p(x | y = k) by the model's route, from its joint."""
    return model.predict_joint_log_proba(X) - model.class_log_prior_


def powered(power, density):
    """Log of the density to the power; 0 ln 0 = 0."""
    return power * density if power else np.zeros_like(density)


# ------------------------------------------------------------------------------- what it means


@every_model
@pytest.mark.parametrize("route", ROUTES)
def test_class_probabilities_are_the_softmax_of_prior_and_powered_density(kind, route):
    plain, X = fitted(kind, inference=route)
    for power in (0.0, 0.3, 1, 2.5):
        model, _ = fitted(kind, inference=route, likelihood_power=power)
        scores = model.class_log_prior_ + powered(power, log_density(plain, X))
        assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), rtol=1e-11, atol=1e-13)
        assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
        assert model.likelihood_power_ == power
        shifted = np.log([0.2, 0.7, 0.1]) + powered(power, log_density(plain, X))
        assert_allclose(model.predict_proba(X, [0.2, 0.7, 0.1]), softmax(shifted, axis=1), rtol=1e-11)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("power", [0.0, 0.4, 3.0])
def test_the_reference_raises_to_the_same_power(power, route):
    for kind, oracle in (("Bernoulli", BernoulliOracle(1.3, 1.3)), ("multinomial", MultinomialOracle(1.3))):
        model, X = fitted(kind, inference=route, likelihood_power=power)
        wanted = as_float(oracle.fit(X, Y, K).proba(X[:6], route, power=power))
        assert_allclose(model.predict_proba(X[:6]), wanted, rtol=1e-11)


@every_model
def test_power_one_is_bayes_rule_to_the_last_bit(kind):
    (plain, X), (one, _) = fitted(kind), fitted(kind, likelihood_power=1)
    joint = plain.predict_joint_log_proba(X)
    joint = joint - joint.max(axis=1, keepdims=True)
    assert_array_equal(one.predict_proba(X), plain.predict_proba(X))
    assert_allclose(plain.predict_log_proba(X), log_softmax(joint, axis=1), rtol=1e-14, atol=1e-15)


@every_model
def test_the_power_changes_predictions_of_the_class_alone(kind):
    plain, X = fitted(kind, random_state=0)
    model, _ = fitted(kind, random_state=0, likelihood_power=0.4)
    assert_array_equal(model.predict_joint_log_proba(X), plain.predict_joint_log_proba(X))
    assert_array_equal(model.score_samples(X), plain.score_samples(X))
    assert_array_equal(model.sample(5)[0], plain.sample(5)[0])
    assert model.log_evidence_ == plain.log_evidence_
    assert_array_equal(model.loo(X, Y).log_joint, plain.loo(X, Y).log_joint)
    assert np.abs(model.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


@every_model
def test_draws_and_intervals_are_of_the_powered_probability(kind):
    plain, X = fitted(kind, random_state=0)
    model, _ = fitted(kind, random_state=0, likelihood_power=0.4)
    class_only, _ = fitted(kind, random_state=0, likelihood_power=0.0)
    X, n = X[:4], 200
    # The same seed gives the same parameters: log p + log phi (power - 1) is the powered score.
    log_phi = np.log(class_only.sample_proba(X, n))
    scores = log_phi + 0.4 * (np.log(plain.sample_proba(X, n)) - log_phi)
    found = model.sample_proba(X, n)
    assert_allclose(found, softmax(scores, axis=2), rtol=1e-7, atol=1e-12)
    interval = model.predict_proba_interval(X, 0.8, n_draws=400)
    wide = plain.predict_proba_interval(X, 0.8, n_draws=400)
    assert (interval[0] < interval[1]).all()
    assert np.abs(np.subtract(interval, wide)).max() > 0.01


def test_moments_of_log_odds_scale_with_the_power():
    for kind in ("Bernoulli", "multinomial", "categorical"):
        (zero, X), (one, _), (part, _) = (fitted(kind, likelihood_power=p) for p in (0.0, 1.0, 0.4))
        (m0, s0), (m1, s1), (m, s) = (model.log_odds(X) for model in (zero, one, part))
        assert_allclose(m, m0 + 0.4 * (m1 - m0), rtol=1e-10, atol=1e-12)
        assert_allclose(s**2, s0**2 + 0.16 * (s1**2 - s0**2), rtol=1e-10)
        lower, upper = part.predict_proba_interval(X, method="normal")
        assert ((lower <= upper) & (lower >= 0)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["Bernoulli", "multinomial", "categorical", "Poisson", "Gaussian, shared", "GDA"])
def test_the_logistic_form_has_the_power_in_its_weights(kind, n_classes):
    y = np.minimum(Y, n_classes - 1)
    model, X = fitted(kind, y=y, inference="mean", likelihood_power=0.4)
    logistic = model.to_logistic()
    assert_allclose(logistic.predict_proba(X), model.predict_proba(X), rtol=1e-8)
    plain, _ = fitted(kind, y=y, inference="mean")
    assert_allclose(model.coef_, 0.4 * plain.coef_, rtol=1e-12)


@pytest.mark.parametrize("kind", ["Gaussian", "GDA"])
def test_the_decision_function_is_of_the_powered_scores(kind):
    two = np.minimum(Y, 1)
    model, X = fitted(kind, y=two, likelihood_power=0.4)
    log_proba = model.predict_log_proba(X)
    assert_allclose(model.decision_function(X), log_proba[:, 1] - log_proba[:, 0], rtol=1e-10, atol=1e-12)
    three, _ = fitted(kind, likelihood_power=0.4)
    assert_allclose(log_softmax(three.decision_function(X), axis=1), three.predict_log_proba(X), rtol=1e-10)


def test_a_row_impossible_in_a_class_stays_so_unless_the_power_is_zero():
    X, y = [[3, 0], [2, 0], [1, 2]], [0, 0, 1]
    half = MultinomialNB(inference="mle", likelihood_power=0.5).fit(X, y)
    assert_array_equal(half.predict_proba([[1, 1]]), [[0.0, 1.0]])
    none = MultinomialNB(inference="mle", likelihood_power=0.0).fit(X, y)
    assert_allclose(none.predict_proba([[1, 1], [2, 0]]), [[2 / 3, 1 / 3]] * 2, rtol=1e-14)  # 0 ln 0 = 0
    blank = MultinomialNB(inference="mle", likelihood_power=0.5).fit([[3, 0, 0], [1, 2, 0]], [0, 1])
    with pytest.warns(ZeroProbabilityWarning):
        proba = blank.predict_proba([[0, 0, 1]])
    assert np.isnan(proba).all()


def test_a_class_of_probability_zero_is_never_chosen_whatever_the_power():
    for power in (0.0, 0.5, 2.0):
        model, X = fitted("multinomial", class_prior=[0.0, 0.5, 0.5], likelihood_power=power)
        assert_array_equal(model.predict_proba(X)[:, 0], 0.0)


# ------------------------------------------------------------------------------- chosen by leave-one-out


def brute(model, X, y, w=None):
    """Leave-one-out log class probabilities and log densities by refits of the model frozen at its full fit, (n, K)."""
    n = len(y)
    w = np.ones(n) if w is None else w
    family = model._fit_value.features.prior
    classes, densities = [], []
    for i in range(n):
        rest = np.arange(n) != i
        left = np.array([w[rest][y[rest] == k].sum() + 1.0 for k in range(K)])
        classes.append(np.log(left / left.sum()))
        densities.append(family.condition(family.stats(X[rest], _labels(y[rest], w[rest]))).log_predictive(X[[i]])[0])
    return np.array(classes), np.array(densities)


def _labels(codes, weights):
    from bayesgen.families import Labels

    return Labels(codes, weights)


def objective(power, log_class, features, codes, w):
    scores = log_class + power * features
    own = scores[np.arange(len(codes)), codes]
    return float(w @ (own - logsumexp(scores, axis=1)))


@pytest.mark.parametrize("w", [None, WEIGHTS], ids=["unweighted", "weights"])
@pytest.mark.parametrize(
    "kind", ["Bernoulli", "multinomial", "Poisson", "Gaussian", "Gaussian, shared", "GDA", "GDA, per class"]
)
def test_the_best_power_maximises_brute_leave_one_out(kind, w):
    model, X = fitted(kind, w, likelihood_power="loo")
    X = X.astype(float)
    log_class, features = brute(model, X, Y, w)
    ones = np.ones(len(Y)) if w is None else w
    found = minimize_scalar(
        lambda p: -objective(p, log_class, features, Y, ones),
        bounds=(0.0, 20.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    # A maximum is flat: a search of its height alone places it to the square root of rounding.
    assert_allclose(model.likelihood_power_, found.x, rtol=1e-6, atol=1e-6)
    assert -found.fun <= objective(model.likelihood_power_, log_class, features, Y, ones) + 1e-11
    h = 1e-4
    slope = np.diff([objective(model.likelihood_power_ + s, log_class, features, Y, ones) for s in (-h, h)]) / (2 * h)
    assert abs(slope[0]) < 1e-5
    heights = [objective(p, log_class, features, Y, ones) for p in np.linspace(0, 3, 31)]
    assert np.diff(heights, 2).max() < 1e-10  # concave


def test_doubled_columns_halve_the_best_power():
    """Naive Bayes counts twice what two equal columns say once."""
    once = GaussianNB(likelihood_power="loo").fit(SIZES[:, ::2], Y)
    twice = GaussianNB(likelihood_power="loo").fit(np.repeat(SIZES[:, ::2], 2, axis=1), Y)
    assert_allclose(twice.likelihood_power_, once.likelihood_power_ / 2, rtol=1e-7)


@every_model
def test_tuning_afterwards_equals_fitting_with_loo(kind):
    loo, X = fitted(kind, WEIGHTS, likelihood_power="loo")
    plain, _ = fitted(kind, WEIGHTS)
    before = plain.log_evidence_
    assert plain.tune_likelihood_power(X, Y, WEIGHTS) is plain
    assert_allclose(plain.likelihood_power_, loo.likelihood_power_, rtol=1e-11)
    assert plain.log_evidence_ == before
    assert_allclose(plain.predict_proba(X), loo.predict_proba(X), rtol=1e-9)
    first = np.arange(len(Y)) < 11
    streamed = clone(MODELS[kind][0]).partial_fit(X[first], Y[first], range(K), WEIGHTS[first])
    streamed.partial_fit(X[~first], Y[~first], sample_weight=WEIGHTS[~first]).tune_likelihood_power(X, Y, WEIGHTS)
    assert_allclose(streamed.likelihood_power_, loo.likelihood_power_, rtol=1e-7)


def test_blocks_share_one_power():
    model, X = fitted("mixed", likelihood_power="loo")
    parts = [MultinomialNB().fit(WORDS, Y).loo(WORDS, Y), GaussianNB().fit(SIZES, Y).loo(SIZES, Y)]
    left = np.array([[(k == Y).sum() - (k == own) + 1.0 for k in range(K)] for own in Y])
    log_class = np.log(left / left.sum(axis=1, keepdims=True))
    features = sum(part.log_joint - log_class for part in parts)
    ones = np.ones(len(Y))
    assert_allclose(model.loo(X, Y).log_joint, log_class + features, rtol=1e-10)
    top = objective(model.likelihood_power_, log_class, features, Y, ones)
    assert top >= max(objective(p, log_class, features, Y, ones) for p in np.linspace(0, 2, 41)) - 1e-12
    assert 0 < model.likelihood_power_ < 1


def test_zero_weights_and_names_of_classes_do_not_matter():
    model, X = fitted("multinomial", likelihood_power="loo")
    more = np.vstack([X, X[:5]]), np.concatenate([Y, (Y[:5] + 1) % K])
    w = np.concatenate([np.ones(len(Y)), np.zeros(5)])
    other = MultinomialNB(alpha=1.3, likelihood_power="loo").fit(*more, w)
    assert_allclose(other.likelihood_power_, model.likelihood_power_, rtol=1e-11)
    renamed = MultinomialNB(alpha=1.3, likelihood_power="loo").fit(sp.csr_array(X), np.array(["c", "a", "b"])[Y])
    assert_allclose(renamed.likelihood_power_, model.likelihood_power_, rtol=1e-11)


def test_labels_that_features_mislead_about_want_power_zero():
    X = np.array([[3, 0], [0, 3]] * 6)
    y = np.array([0, 0, 1, 1] * 3)  # each class holds both kinds alike: leaving a row out speaks for the other class
    model = MultinomialNB(likelihood_power="loo").fit(X, y)
    assert model.likelihood_power_ == 0.0
    assert_allclose(model.predict_proba(X), 0.5, rtol=1e-14)


def test_separable_classes_have_no_best_power():
    X, y = [[9, 1, 0], [30, 0, 0], [0, 40, 0], [1, 30, 2]], [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="no likelihood power is best"):
        model = MultinomialNB(likelihood_power="loo").fit(X, y)
    assert model.likelihood_power_ == 1.0
    with pytest.warns(UserWarning, match="no likelihood power is best"):
        assert MultinomialNB().fit(X, y).tune_likelihood_power(X, y).likelihood_power_ == 1.0


def test_nothing_to_choose_by_keeps_the_power_at_one():
    assert MultinomialNB(likelihood_power="loo").fit([[1, 2], [2, 1]], [0, 0]).likelihood_power_ == 1.0
    assert MultinomialNB(likelihood_power="loo").fit(np.zeros((4, 2)), [0, 0, 1, 1]).likelihood_power_ == 1.0


@pytest.mark.parametrize("power", [-0.1, np.nan, np.inf, "one", None, True, [1.0], np.array([0.5, 1.0]), 1j], ids=str)
def test_other_powers_are_refused(power):
    with pytest.raises(ValueError, match="likelihood_power must be a non-negative number or 'loo'"):
        MultinomialNB(likelihood_power=power).fit(WORDS, Y)


@every_model
def test_streams_cannot_leave_rows_out(kind):
    model, X = MODELS[kind]
    message = r"tune_likelihood_power\(X, y\)"
    asked = clone(model).set_params(likelihood_power="loo")
    with pytest.raises(ValueError, match=message):
        asked.partial_fit(X, Y, classes=range(K))
    learned = clone(asked).fit(X, Y)
    power, proba = learned.likelihood_power_, learned.predict_proba(X)
    for change in (
        lambda: learned.merge(clone(model).fit(X, Y)),
        lambda: learned.forget(X[:2], Y[:2]),
        lambda: learned.partial_fit(X, Y),
        lambda: clone(asked).from_statistics(learned.statistics_),
    ):
        with pytest.raises(ValueError, match=message):
            change()
    assert learned.likelihood_power_ == power  # a failure changes nothing
    assert_array_equal(learned.predict_proba(X), proba)


def test_tuning_takes_rows_that_were_learned():
    with pytest.raises(ValueError, match="tune_likelihood_power is for rows that were learned"):
        fitted("multinomial")[0].tune_likelihood_power(np.vstack([WORDS, WORDS]), np.tile(Y, 2))


@every_model
def test_copies_keep_the_power(kind):
    model, X = fitted(kind, likelihood_power="loo")
    back = pickle.loads(pickle.dumps(model))
    assert back.likelihood_power_ == model.likelihood_power_
    assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert clone(model).likelihood_power == "loo"


def test_a_search_may_choose_the_power():
    search = GridSearchCV(MultinomialNB(), {"likelihood_power": [0.2, 1.0, "loo"]}, scoring="neg_log_loss", cv=3)
    search.fit(WORDS, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# ------------------------------------------------------------------------------- on real text


@pytest.mark.parametrize(("name", "text", "label"), [("sms_spam", "text", "label"), ("newsgroups4", "text", "label")])
def test_the_best_power_mends_calibration_of_held_out_texts(data, name, text, label):
    table = data(name)
    rows = np.random.default_rng(0).permutation(len(table))
    half = len(rows) // 2
    train, test = table.iloc[rows[:half]], table.iloc[rows[half:]]
    words = CountVectorizer(min_df=2).fit(train[text])
    X, Xt = words.transform(train[text]), words.transform(test[text])
    for route in ("exact", "mean"):
        plain = MultinomialNB(inference=route).fit(X, train[label])
        power = MultinomialNB(inference=route, likelihood_power="loo").fit(X, train[label])
        before, after = (log_loss(test[label], m.predict_proba(Xt), labels=m.classes_) for m in (plain, power))
        assert power.likelihood_power_ < 1
        assert after < before


@pytest.mark.slow
def test_draws_are_powered_as_well():
    options = NUTSOptions(num_warmup=200, num_samples=500, num_chains=2, progress_bar=False)
    sampled = MultinomialNB(alpha=1.3, inference=options, likelihood_power="loo", random_state=0).fit(WORDS, Y)
    exact, _ = fitted("multinomial", likelihood_power="loo")
    assert_allclose(sampled.likelihood_power_, exact.likelihood_power_, rtol=1e-11)
    assert_allclose(sampled.predict_proba(WORDS), exact.predict_proba(WORDS), atol=0.03)
