"""The NumPyro program of an estimator at the points where such programs are known to go wrong.

Zeros, large counts, missing cells, shapes, labels and covariances that do not exist. The program follows
the precision of its caller, so that everything here runs under ``jax.enable_x64(True)``.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpyro.handlers import seed, substitute, trace
from numpyro.infer.util import log_density
from scipy import stats

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    PoissonNB,
)


def mentions(*patterns):
    """A pattern for messages that contain all of these, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{pattern}))" for pattern in patterns)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def sites(model, x, y, **values):
    """The sites of the program run on rows and labels, with its parameters given."""
    values = {name: jnp.asarray(value) for name, value in values.items()}
    return trace(substitute(seed(model.model, 0), values)).get_trace(x, y)


def log_probability(site):
    return np.asarray(site["fn"].log_prob(site["value"]))


WORDS, LABELS = np.array([[2, 0, 1], [1, 0, 0], [0, 3, 1]]), np.array([0, 0, 1])
CLASS_PROB, THETA = [0.6, 0.4], [[0.5, 0.25, 0.25], [0.2, 0.6, 0.2]]


@pytest.mark.parametrize(
    ("coefficient", "expected"),
    [
        (True, [-2.184802057337662, -1.203972804325936, -2.6719111544863368]),
        (False, [-3.283414346005772, -1.203972804325936, -4.058205515606227]),
    ],
)
def test_labels_and_words_together_make_one_number_per_row(coefficient, expected):
    model = MultinomialNB(multinomial_coefficient=coefficient).fit(WORDS, LABELS)
    found = sites(model, WORDS, LABELS, class_prob=CLASS_PROB, feature_prob=THETA)
    per_row = log_probability(found["y"]) + log_probability(found["x"])
    assert per_row.shape == (3,)
    assert_allclose(per_row, expected, rtol=1e-10)


def test_the_log_density_of_a_program_is_the_prior_plus_every_row():
    model = MultinomialNB(multinomial_coefficient=True).fit(WORDS, LABELS)
    values = {"class_prob": jnp.array(CLASS_PROB), "feature_prob": jnp.array(THETA)}
    total, _ = log_density(model.model, (WORDS, LABELS), {}, values)
    flat_priors = np.log(1) + 2 * np.log(2)  # Dirichlet(1) over two classes; twice Dirichlet(1) over three words
    rows = -2.184802057337662 - 1.203972804325936 - 2.6719111544863368
    assert_allclose(total, flat_priors + rows, rtol=1e-12)


def test_rows_of_different_totals_and_an_empty_row_give_one_number_each():
    counts, labels = np.array([[1, 1, 1], [2, 2, 1], [0, 0, 0], [0, 6, 4]]), [0, 1, 0, 1]
    model = MultinomialNB(multinomial_coefficient=True).fit(counts, labels)
    found = sites(model, counts, labels, class_prob=[0.5, 0.5], feature_prob=[[0.4, 0.35, 0.25]] * 2)
    per_row = log_probability(found["x"])
    assert per_row.shape == (4,)
    expected = [-1.5606477482646683, -1.9173226922034008, 0.0, -6.49700266075416]
    assert_allclose(per_row, expected, rtol=1e-9)
    assert per_row[2] == 0
    assert_allclose(per_row.sum(), -9.97497310122223, rtol=1e-9)


def test_ten_million_tokens_cancel_to_a_small_log_probability():
    counts = np.array([[4000000, 3500000, 2500000], [1, 1, 1]])
    model = MultinomialNB(multinomial_coefficient=True).fit(counts, [0, 1])
    found = sites(model, counts, [0, 1], class_prob=[0.5, 0.5], feature_prob=[[0.4, 0.35, 0.25]] * 2)
    assert_allclose(log_probability(found["x"])[0], -16.27976917826416, rtol=1e-8)


@pytest.mark.parametrize(("alpha", "expected"), [(1.0, np.log(2)), (2.0, -np.inf), (0.5, np.inf)])
def test_the_prior_density_at_an_exact_zero_is_its_limit_and_not_nan(alpha, expected):
    model = MultinomialNB(alpha=alpha).fit(WORDS, LABELS)
    theta = [[0.0, 0.5, 0.5], [0.25, 0.5, 0.25]]
    found = sites(model, WORDS, LABELS, class_prob=[0.5, 0.5], feature_prob=theta)
    density = log_probability(found["feature_prob"])
    assert density.shape == (2,)
    assert_allclose(density[0], expected, rtol=1e-12)
    assert_allclose(density[1], stats.dirichlet([alpha] * 3).logpdf(theta[1]), rtol=1e-10)


def test_probabilities_of_exactly_zero_and_one_score_without_nan_in_the_program():
    rows, labels = np.array([[1, 0], [1, 1], [0, 1]]), [0, 0, 1]
    model = BernoulliNB().fit(rows, labels)
    found = sites(model, rows, labels, class_prob=[0.5, 0.5], feature_prob=[[1.0, 0.5], [0.0, 1.0]])
    assert_allclose(log_probability(found["x"]), [np.log(0.5), np.log(0.5), 0.0], atol=1e-12)


def test_a_missing_cell_leaves_the_log_density_and_its_gradient_finite():
    rows, labels = np.array([[1.0], [np.nan], [3.0]]), [0, 0, 0]
    # at variance 1 this prior is Normal(0, 10) for the mean
    model = GaussianNB(prior=NormalInverseGamma(mean=0.0, mean_precision=0.01, shape=1.5, scale=0.5)).fit(rows, labels)

    def density(mu):
        values = {"class_prob": jnp.ones(1), "mean": mu[None, None], "variance": jnp.ones((1, 1))}
        return log_density(model.model, (rows, labels), {}, values)[0] - stats.invgamma(1.5, scale=0.5).logpdf(1.0)

    value, gradient = jax.jit(jax.value_and_grad(density))(jnp.asarray(0.5))
    assert_allclose(value, -8.310650692608064, rtol=1e-6)
    assert_allclose(gradient, 2.995, rtol=1e-6)


PROGRAMS = {
    "Gaussian": GaussianNB(),
    "discriminant": GaussianDiscriminantAnalysis(),
    "Bernoulli": BernoulliNB(),
    "multinomial": MultinomialNB(),
    "categorical": CategoricalNB(),
    "Poisson": PoissonNB(),
}
every_program = pytest.mark.parametrize("model", PROGRAMS.values(), ids=PROGRAMS.keys())


@every_program
@pytest.mark.parametrize("label", [7, -1, 2])
def test_a_label_that_is_no_class_of_the_program_is_an_error(model, label):
    model.fit(WORDS, LABELS)
    with pytest.raises(ValueError, match=mentions("class|label")):
        trace(seed(model.model, 0)).get_trace(WORDS, [0, 0, label])
    with pytest.raises(ValueError, match=mentions("class|label")):
        log_density(seed(model.model, 0), (WORDS, [0, 0, label]), {}, {})


def test_a_text_label_that_is_no_class_of_the_program_is_an_error():
    model = MultinomialNB().fit(WORDS, ["ham", "ham", "spam"])
    with pytest.raises(ValueError, match=mentions("class|label")):
        trace(seed(model.model, 0)).get_trace(WORDS, ["ham", "ham", "eggs"])


@pytest.mark.parametrize(
    "covariance", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]], ids=["indefinite", "singular"]
)
def test_a_covariance_that_is_not_positive_definite_is_an_error_in_the_program(covariance):
    rows, labels = np.array([[0.0, 0.0], [2.0, 1.0], [1.0, 4.0], [6.0, 3.0]]), [0, 0, 1, 1]
    prior = NormalInverseWishart(mean=[0.0, 0.0], mean_precision=1.0, df=4.0, scale=np.eye(2))
    model = GaussianDiscriminantAnalysis(prior=prior).fit(rows, labels)
    values = {
        "class_prob": jnp.array([0.5, 0.5]),
        "mean": jnp.zeros((2, 2)),
        "covariance": jnp.array(covariance),
    }
    with pytest.raises(ValueError, match=mentions("positive[ -]definite|singular")):
        log_density(model.model, (rows, labels), {}, values)
