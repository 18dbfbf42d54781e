"""Small tables of counts, presences and levels on which discrete naive Bayes models are known to go wrong.

Every number was worked out by hand from the definitions (a fraction is written as one). Class
probabilities are relative frequencies here, hence ``class_alpha=0``.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bayesgen import BernoulliNB, CategoricalNB, MultinomialNB, PoissonNB, UndefinedNumberError


def mentions(*patterns):
    """A pattern for messages that contain all of these, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{pattern}))" for pattern in patterns)


def laplace(model, **keywords):
    """The plug-in model with posterior-mean (Laplace) parameters and unsmoothed class probabilities."""
    return model(inference="mean", class_alpha=0, **keywords)


def close(actual, desired, rtol=1e-10):
    assert_allclose(actual, desired, rtol=rtol, atol=1e-12)


def level_probabilities(model):
    return [np.exp(table) for table in model.feature_log_prob_]


# ----------------------------------------------------------------------------------------------------
# what smoothing means


def test_multinomial_smoothing_adds_alpha_times_the_number_of_columns():
    rows = np.zeros((2, 1000))
    rows[0, 0], rows[0, 1], rows[1, 2] = 3, 1, 6
    model = laplace(MultinomialNB, alpha=1).fit(rows, [0, 1])
    theta = np.exp(model.feature_log_prob_)
    close(theta[0, [0, 1, 2]], [4 / 1004, 2 / 1004, 1 / 1004])
    close(theta[1, [2, 999]], [7 / 1006, 1 / 1006])
    new = np.zeros((2, 1000))
    new[0, 2] = new[1, 999] = 1
    posterior = [[0.12521782424695047, 0.8747821757530495], [0.5004975124378109, 0.49950248756218907]]
    close(model.predict_proba(new), posterior)


def test_bernoulli_smoothing_adds_two_alpha_whatever_the_number_of_classes():
    model = laplace(BernoulliNB, alpha=1).fit([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0]], [0, 0, 1, 1, 2, 2])
    close(np.exp(model.feature_log_prob_), [[3 / 4, 1 / 2], [1 / 4, 1 / 2], [3 / 4, 1 / 2]])
    close(model.predict_proba([[1, 1]]), [[3 / 7, 1 / 7, 3 / 7]])
    # presence and absence are the two cells of one Beta: the probabilities of all four rows sum to one
    corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    per_class = np.exp(model.predict_joint_log_proba(corners)).sum(axis=0)
    close(per_class, [1 / 3, 1 / 3, 1 / 3])


def test_declared_levels_without_rows_count_in_the_denominator():
    model = laplace(CategoricalNB, alpha=1, categories=[["h", "l", "m", "xl"]])
    model.fit(np.array([["l"], ["m"], ["l"], ["l"]], dtype=object), [0, 0, 1, 1])
    (table,) = level_probabilities(model)
    close(table, [[1 / 6, 2 / 6, 2 / 6, 1 / 6], [1 / 6, 3 / 6, 1 / 6, 1 / 6]])
    new = np.array([["h"], ["m"]], dtype=object)
    close(model.predict_proba(new), [[1 / 2, 1 / 2], [2 / 3, 1 / 3]])


def test_map_below_concentration_one_puts_a_zero_count_on_the_boundary_and_says_so():
    model = MultinomialNB(inference="map", alpha=0.5, class_alpha=2.0)
    with pytest.warns(UserWarning, match=mentions("boundary")):
        model.fit([[3, 1, 0], [2, 0, 0], [0, 2, 6]], [0, 0, 1])
    close(np.exp(model.feature_log_prob_), [[0.9, 0.1, 0.0], [0.0, 3 / 14, 11 / 14]], rtol=1e-9)


def test_map_at_concentration_two_is_laplace_smoothing_and_at_one_the_mle():
    rows, labels = [[3, 1, 0], [2, 0, 0], [0, 2, 6]], [0, 0, 1]
    mode = MultinomialNB(inference="map", alpha=2.0, class_alpha=1.0).fit(rows, labels)
    close(mode.feature_log_prob_, laplace(MultinomialNB, alpha=1).fit(rows, labels).feature_log_prob_)
    flat = MultinomialNB(inference="map", alpha=1.0, class_alpha=1.0).fit(rows, labels)
    close(np.exp(flat.feature_log_prob_), [[5 / 6, 1 / 6, 0], [0, 2 / 8, 6 / 8]])


def test_the_full_predictive_is_not_the_plug_in():
    rows, labels, new = [[3, 1], [1, 3]], [0, 1], [[2, 0]]
    plug_in = laplace(MultinomialNB, alpha=1).fit(rows, labels)
    close(plug_in.predict_proba(new), [[0.8, 0.2]])
    full = MultinomialNB(alpha=1, class_alpha=0).fit(rows, labels)  # a Polya urn: (4/6)(5/7) against (2/6)(3/7)
    close(full.predict_proba(new), [[10 / 13, 3 / 13]])


def test_fractional_counts_are_neither_rounded_nor_truncated():
    model = laplace(MultinomialNB, alpha=1).fit([[0.5, 0.0, 0.25], [0.25, 0.5, 0.0], [0.0, 0.75, 0.75]], [0, 0, 1])
    theta = [[1.75 / 4.5, 1.5 / 4.5, 1.25 / 4.5], [1 / 4.5, 1.75 / 4.5, 1.75 / 4.5]]
    close(np.exp(model.feature_log_prob_), theta)
    close(model.predict_proba([[0.5, 0.25, 0.25]]), [[0.7006299332359973, 0.29937006676400263]])


# ----------------------------------------------------------------------------------------------------
# exact zeros of maximum likelihood


def test_mle_word_absent_from_a_class_excludes_it_and_a_zero_count_costs_nothing():
    model = MultinomialNB(inference="mle").fit([[3, 0, 1], [1, 0, 3], [0, 2, 2]], [0, 0, 1])
    close(np.exp(model.class_log_prior_), [2 / 3, 1 / 3])
    close(np.exp(model.feature_log_prob_), [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    posterior = model.predict_proba([[1, 0, 1], [0, 1, 1], [0, 0, 2]])
    assert_array_equal(posterior[:2], [[1.0, 0.0], [0.0, 1.0]])
    close(posterior[2], [2 / 3, 1 / 3])


def test_mle_presence_probabilities_of_exactly_zero_and_one_give_no_nan():
    model = BernoulliNB(inference="mle").fit([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]], [0, 0, 1, 1])
    close(np.exp(model.feature_log_prob_), [[1.0, 0.5, 0.5], [0.0, 1.0, 0.5]])
    assert_array_equal(model.predict_proba([[1, 1, 1], [0, 1, 0], [1, 0, 0]]), [[1, 0], [0, 1], [1, 0]])


def test_mle_rate_of_zero_makes_a_positive_count_impossible():
    model = PoissonNB(inference="mle").fit([[0, 2], [0, 4], [3, 1], [5, 3]], [0, 0, 1, 1])
    close(model.rate_, [[0.0, 3.0], [4.0, 2.0]])
    posterior = model.predict_proba([[0, 3], [1, 3]])
    close(posterior[0], [0.9854627258939077, 0.01453727410609231])
    assert_array_equal(posterior[1], [0.0, 1.0])


def test_columns_of_zeros_leave_the_mle_alone_and_change_laplace_smoothing():
    rows, labels, new = np.array([[2, 1], [1, 3], [4, 0]]), [0, 0, 1], np.array([[1, 1]])
    wide, wide_new = np.hstack([rows, np.zeros((3, 3))]), np.hstack([new, np.zeros((1, 3))])
    for x, x_new in [(rows, new), (wide, wide_new)]:
        assert_array_equal(MultinomialNB(inference="mle").fit(x, labels).predict_proba(x_new), [[1.0, 0.0]])
    smoothed = laplace(MultinomialNB, alpha=1).fit(wide, labels)
    twelfth, ninth = 1 / 12, 1 / 9
    theta = [[4 * twelfth, 5 * twelfth] + 3 * [twelfth], [5 * ninth] + 4 * [ninth]]
    close(np.exp(smoothed.feature_log_prob_), theta)
    close(smoothed.predict_proba(wide_new), [[9 / 11, 2 / 11]])
    narrow = laplace(MultinomialNB, alpha=1).fit(rows, labels)
    close(narrow.predict_proba(new), [[0.7804878048780488, 0.21951219512195122]])


# ----------------------------------------------------------------------------------------------------
# documents and columns that say nothing


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_a_new_document_without_words_has_the_class_probabilities(storage):
    rows, labels = np.array([[2, 1, 0], [1, 0, 0], [0, 1, 4]]), ["ham", "ham", "spam"]
    model = laplace(MultinomialNB, alpha=1).fit(storage(rows), labels)
    posterior = model.predict_proba(storage(np.array([[0, 0, 0], [1, 0, 0]])))
    close(posterior, [[2 / 3, 1 / 3], [0.9014084507042254, 0.09859154929577464]])
    close(model.predict_proba(storage(np.zeros((1, 3)))), [[2 / 3, 1 / 3]])


def test_a_class_of_empty_documents_has_no_mle():
    with pytest.raises(UndefinedNumberError, match="void") as caught:
        MultinomialNB(inference="mle").fit([[0, 0], [0, 0], [3, 1]], ["void", "void", "words"])
    assert isinstance(caught.value, ValueError)


def test_a_class_of_empty_documents_is_uniform_under_smoothing():
    model = laplace(MultinomialNB, alpha=1).fit([[0, 0], [0, 0], [3, 1]], ["void", "void", "words"])
    close(np.exp(model.feature_log_prob_), [[1 / 2, 1 / 2], [2 / 3, 1 / 3]])
    close(model.predict_proba([[1, 0]]), [[0.6, 0.4]])


def test_a_count_column_with_one_value_cancels():
    model = PoissonNB(inference="mle").fit([[2, 1], [2, 3], [2, 2], [2, 0], [2, 4]], [0, 0, 0, 1, 1])
    close(model.rate_, [[2, 2], [2, 2]])
    close(model.predict_proba([[2, 5], [9, 5]]), [[0.6, 0.4], [0.6, 0.4]])


def test_a_column_with_one_level_cancels():
    rows = np.array([["x", "k"], ["y", "k"], ["y", "k"], ["x", "k"]], dtype=object)
    model = laplace(CategoricalNB, alpha=1).fit(rows, [0, 0, 0, 1])
    first, second = level_probabilities(model)
    close(first, [[2 / 5, 3 / 5], [2 / 3, 1 / 3]])
    close(second, [[1.0], [1.0]])
    close(model.predict_proba(rows[:1]), [[0.6428571428571429, 0.35714285714285715]])


# ----------------------------------------------------------------------------------------------------
# words and levels that training never showed


def test_an_unseen_word_of_the_vocabulary_favours_the_class_with_fewer_words():
    model = laplace(MultinomialNB, alpha=1).fit([[4, 1, 0], [3, 2, 0], [1, 1, 0]], ["u", "u", "v"])
    close(np.exp(model.feature_log_prob_), [[8 / 13, 4 / 13, 1 / 13], [2 / 5, 2 / 5, 1 / 5]])
    posterior = [
        [10 / 23, 13 / 23],
        [0.04193083090134514, 0.9580691690986548],
        [0.5420054200542005, 0.45799457994579945],
    ]
    close(model.predict_proba([[0, 0, 1], [0, 0, 4], [1, 0, 1]]), posterior)


COLOURS = pd.DataFrame(
    [["red", "S"], ["red", "M"], ["blue", "M"], ["blue", "L"], ["blue", "M"]], columns=["colour", "size"]
)
SIDES = ["in", "in", "in", "out", "out"]
GREEN = pd.DataFrame([["green", "M"], ["red", "S"]], columns=["colour", "size"])


def test_an_unknown_level_has_the_predictive_mass_of_a_declared_level_without_rows():
    model = laplace(CategoricalNB, alpha=1).fit(COLOURS, SIDES)
    inside, outside = 3 / 5 * 1 / (2 + 1 + 3) * 3 / 6, 2 / 5 * 1 / (2 + 1 + 2) * 2 / 5
    posterior = model.predict_proba(GREEN)
    close(posterior[0], [inside / (inside + outside), outside / (inside + outside)])
    close(posterior[1], [6 / 7, 1 / 7])


def test_an_ignored_unknown_level_leaves_the_other_columns_to_decide():
    model = laplace(CategoricalNB, alpha=1, handle_unknown="ignore").fit(COLOURS, SIDES)
    close(model.predict_proba(GREEN), [[0.6521739130434783, 0.34782608695652173], [6 / 7, 1 / 7]])


def test_an_unknown_level_may_be_an_error_that_names_column_and_level():
    model = laplace(CategoricalNB, alpha=1, handle_unknown="error").fit(COLOURS, SIDES)
    with pytest.raises(ValueError, match=mentions("colour", "green")):
        model.predict_proba(GREEN)


def test_a_missing_level_is_left_out_of_the_counts_of_its_column():
    rows = pd.DataFrame(
        np.array([["a", "s"], ["b", "s"], [None, "t"], ["b", "t"]], dtype=object), columns=["grade", "house"]
    )
    model = laplace(CategoricalNB, alpha=1).fit(rows, [0, 0, 1, 1])
    assert len(model.categories_[0]) == 2  # in particular there is no level "None"
    close(model.predict_proba(rows[:1]), [[9 / 11, 2 / 11]])  # (1/2)(2/4)(3/4) against (1/2)(1/3)(1/4)
    plain = laplace(CategoricalNB, alpha=1).fit(rows.to_numpy(), [0, 0, 1, 1])
    close(plain.predict_proba(rows.to_numpy()[:1]), [[9 / 11, 2 / 11]])


def test_a_missing_level_may_be_an_error_that_names_the_column():
    rows = pd.DataFrame({"grade": np.array(["a", "b", None, "b"], dtype=object), "house": ["s", "s", "t", "t"]})
    with pytest.raises(ValueError, match=mentions("grade", "missing|None|NaN")):
        laplace(CategoricalNB, missing="error").fit(rows, [0, 0, 1, 1])


# ----------------------------------------------------------------------------------------------------
# classes without rows, a single class, ties


def test_a_declared_class_without_rows_has_probability_zero_until_its_rows_arrive():
    new = [[1, 0, 1], [0, 0, 2]]
    model = laplace(MultinomialNB, alpha=1)
    first = np.array([[2, 0, 1], [1, 1, 0], [0, 3, 1]]), [0, 0, 1]
    second = np.array([[0, 0, 4], [1, 0, 2]]), [2, 2]
    model.partial_fit(*first, classes=[0, 1, 2])
    close(np.exp(model.class_log_prior_), [2 / 3, 1 / 3, 0.0])
    posterior = model.predict_proba(new)
    close(posterior, [[49 / 57, 8 / 57, 0.0], [49 / 81, 32 / 81, 0.0]])
    assert_array_equal(posterior[:, 2], 0.0)
    assert_array_equal(model.predict_log_proba(new)[:, 2], -np.inf)

    model.partial_fit(*second)
    posterior = [
        [0.4379692527708259, 0.07150518412584912, 0.490525563103325],
        [0.1053400980307851, 0.06879353340785967, 0.8258663685613552],
    ]
    close(model.predict_proba(new), posterior)
    at_once = laplace(MultinomialNB, alpha=1).fit(np.vstack([first[0], second[0]]), first[1] + second[1])
    close(model.predict_proba(new), at_once.predict_proba(new), rtol=1e-13)


@pytest.mark.parametrize("inference", ["mean", "exact"])
def test_a_declared_class_without_rows_has_its_prior_share(inference):
    model = BernoulliNB(inference=inference, alpha=1, class_alpha=1)
    model.partial_fit([[1, 0], [0, 1], [1, 1]], ["x", "x", "y"], classes=["x", "y", "z"])
    close(np.exp(model.class_log_prior_), [1 / 2, 1 / 3, 1 / 6])
    close(np.exp(model.feature_log_prob_), [[1 / 2, 1 / 2], [2 / 3, 2 / 3], [1 / 2, 1 / 2]])
    close(model.predict_proba([[1, 0]]), [[0.5192307692307693, 0.3076923076923077, 0.17307692307692307]])


def test_a_single_class_has_probability_one():
    model = laplace(MultinomialNB, alpha=1).fit([[2, 0], [1, 1], [0, 3]], [7, 7, 7])
    new = [[0, 5], [0, 0]]
    assert_array_equal(model.classes_, [7])
    assert_array_equal(model.predict_proba(new), [[1.0], [1.0]])
    assert_array_equal(model.predict_log_proba(new), [[0.0], [0.0]])
    assert_array_equal(model.predict(new), [7, 7])


def test_a_tie_goes_to_the_first_class_in_sorted_order():
    model = laplace(MultinomialNB, alpha=1).fit([[2, 1], [1, 2]], ["beta", "alpha"])
    new = [[1, 1], [0, 0]]
    assert_array_equal(model.classes_, ["alpha", "beta"])
    close(model.predict_proba(new), [[0.5, 0.5], [0.5, 0.5]], rtol=1e-12)
    assert_array_equal(model.predict(new), ["alpha", "alpha"])
    assert_array_equal(model.predict(new), model.classes_[model.predict_proba(new).argmax(axis=1)])


# ----------------------------------------------------------------------------------------------------
# batches and chunks


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_row_scored_in_any_batch_is_the_same_row(storage, size):
    rows = np.array([[4, 0, 1], [2, 1, 0], [0, 5, 1], [1, 3, 0]])
    new = storage(np.array([[1, 1, 0], [3, 0, 0], [0, 0, 2], [0, 0, 0], [7, 7, 7]]))
    model = laplace(MultinomialNB, alpha=1).fit(storage(rows), [0, 0, 1, 1])
    posterior = np.vstack([model.predict_proba(new[i : i + size]) for i in range(0, 5, size)])
    first_class = [0.5206866197183099, 0.9860668211599031, 0.5827586206896552, 0.5, 0.8518183962130573]
    close(posterior, np.column_stack([first_class, 1 - np.array(first_class)]), rtol=1e-12)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_level_that_arrives_late_counts_for_every_class(order):
    chunks = [([["a"], ["b"], ["a"]], [0, 1, 0]), ([["c"], ["a"], ["c"]], [1, 0, 0])]
    model = laplace(CategoricalNB, alpha=1)
    for i in order:
        x, y = chunks[i]
        model.partial_fit(np.array(x, dtype=object), y, classes=[0, 1])
    assert list(model.categories_[0]) == ["a", "b", "c"]
    (table,) = level_probabilities(model)
    close(table, [[4 / 7, 1 / 7, 2 / 7], [1 / 5, 2 / 5, 2 / 5]])
    posterior = [[0.5882352941176471, 0.4117647058823529], [0.4166666666666667, 0.5833333333333334]]
    close(model.predict_proba(np.array([["c"], ["b"]], dtype=object)), posterior)


# ----------------------------------------------------------------------------------------------------
# joint and normalised log probabilities


def test_log_probabilities_are_normalised_and_the_joint_is_another_function():
    model = laplace(BernoulliNB, alpha=1).fit([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], ["n", "n", "y", "y"])
    new = [[1, 1, 1], [0, 0, 0]]
    close(model.predict_log_proba(new), np.log([[0.6, 0.4], [1 / 3, 2 / 3]]))
    joint = [[-2.367123614131617, -2.772588722239781], [-3.4657359027997265, -2.772588722239781]]
    close(model.predict_joint_log_proba(new), joint)
    close(model.score_samples(new), np.logaddexp(*np.transpose(joint)))


def test_fifty_thousand_columns_underflow_neither_the_joint_nor_the_ratio():
    d, half = 50_000, 25_000
    rows = np.zeros((6, d))
    rows[[0, 1, 3], :half] = 1
    rows[[0, 3, 4], half:] = 1
    model = laplace(BernoulliNB, alpha=1).fit(rows, [0, 0, 0, 1, 1, 1])
    p = np.exp(model.feature_log_prob_)
    close(p[:, [0, half - 1, half, d - 1]], [[0.6, 0.6, 0.4, 0.4], [0.4, 0.4, 0.6, 0.6]])
    new = np.ones((3, d))
    new[1, 0] = 0
    new[2] = 1 - new[1]
    close(model.predict_proba(new), [[0.5, 0.5], [4 / 13, 9 / 13], [9 / 13, 4 / 13]], rtol=1e-8)
    joint = np.log(0.5) + half * (np.log(0.6) + np.log(0.4))
    assert joint == pytest.approx(-35678.6020381842, rel=1e-13)
    close(model.predict_joint_log_proba(new[:1]), [[joint, joint]])


def test_a_document_of_two_million_words_is_decided_by_the_words_that_do_not_cancel():
    model = laplace(MultinomialNB, alpha=1).fit([[1, 0, 0], [0, 1, 0]], [0, 1])
    close(np.exp(model.feature_log_prob_), [[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 2, 1 / 4]])
    posterior = model.predict_proba([[1000001, 1000000, 0], [1000000, 1000003, 0]])
    close(posterior, [[2 / 3, 1 / 3], [1 / 9, 8 / 9]], rtol=1e-8)


# ----------------------------------------------------------------------------------------------------
# values outside the support


def test_a_negative_count_is_an_error_that_names_its_column():
    rows = pd.DataFrame([[2, -1], [1, 4]], columns=["w1", "w2"])
    good = rows.abs()
    for model in (MultinomialNB, PoissonNB):
        with pytest.raises(ValueError, match=mentions("negative", "w2")):
            model().fit(rows, [0, 1])
        with pytest.raises(ValueError, match=mentions("negative", "w2")):
            model().fit(good, [0, 1]).predict_proba(rows)


def test_a_count_above_one_needs_a_threshold_in_a_bernoulli_model():
    rows = pd.DataFrame([[2, 0], [1, 1], [0, 1]], columns=["k1", "k2"])
    with pytest.raises(ValueError, match=mentions("k1", "2|binary|0/1")):
        laplace(BernoulliNB, alpha=1, binarize=None).fit(rows, [0, 0, 1])
    model = laplace(BernoulliNB, alpha=1, binarize=0).fit(rows, [0, 0, 1])
    close(np.exp(model.feature_log_prob_), [[3 / 4, 1 / 2], [1 / 3, 2 / 3]])
    new = pd.DataFrame([[1, 0]], columns=["k1", "k2"])
    close(model.predict_proba(new), [[0.8709677419354839, 0.12903225806451613]])


def test_nan_stored_in_a_sparse_matrix_of_counts_is_an_error_at_fit_and_at_prediction():
    model = laplace(MultinomialNB, alpha=1).fit(sp.csr_matrix([[2, 0, 1], [0, 3, 1]]), [0, 1])
    bad = sp.csr_matrix((np.array([np.nan, 2.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    with pytest.raises(ValueError, match=mentions("NaN")):
        model.predict_proba(bad)
    with pytest.raises(ValueError, match=mentions("NaN")):
        MultinomialNB().fit(sp.vstack([bad, bad]).tocsr(), [0, 1])
