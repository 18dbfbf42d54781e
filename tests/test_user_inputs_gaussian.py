"""Small tables of real numbers on which Gaussian models are known to go wrong.

Offsets, scales, constant and collinear columns, few rows. The numbers were worked out in exact fractions.
"""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayesgen import (
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    NormalInverseGamma,
    NormalInverseWishart,
    UndefinedNumberError,
    ZeroProbabilityWarning,
)


def mentions(*patterns):
    """A pattern for messages that contain all of these, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{pattern}))" for pattern in patterns)


def close(actual, desired, rtol=1e-10):
    assert_allclose(actual, desired, rtol=rtol, atol=1e-12)


def shared(**keywords):
    return GaussianDiscriminantAnalysis(inference="mle", covariance="shared", **keywords)


# ----------------------------------------------------------------------------------------------------
# what the shared covariance is


def test_the_shared_covariance_divides_by_the_number_of_rows():
    model = shared().fit([[0.0], [2.0], [5.0], [7.0], [9.0]], [0, 0, 1, 1, 1])
    close(model.covariance_, [[2.0]])  # a scatter of 10 over 5 rows; the unbiased estimate would be 10 / 3
    close(model.predict_proba([[4.0]]), [[0.4, 0.6]])
    close(model.decision_function([[4.0]]), [np.log(1.5)])


def test_the_unbiased_covariance_divides_by_rows_minus_classes():
    model = GaussianDiscriminantAnalysis(inference="unbiased", covariance="shared")
    model.fit([[0.0], [2.0], [5.0], [7.0], [9.0]], [0, 0, 1, 1, 1])
    close(model.covariance_, [[10 / 3]])


def test_coefficients_of_the_logistic_form_agree_with_the_probabilities():
    model = shared().fit([[0, 0], [2, 1], [1, 2], [5, 4], [6, 6], [7, 5]], [0, 0, 0, 1, 1, 1])
    new = [[0, 0], [1, 0], [0, 1], [4, 3]]
    close(model.covariance_, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    close(model.decision_function(new), [-30.0, -24.0, -27.0, 3.0])
    logistic = model.to_logistic()
    close(logistic.coef_, [[6.0, 3.0]])
    close(logistic.intercept_, [-30.0])
    close(logistic.predict_proba(new), model.predict_proba(new))


FIVE = np.array([[0.0, 1.0], [2.0, 1.5], [5.0, 4.0], [7.0, 3.0], [9.0, 8.0]])


@pytest.mark.parametrize("name", ["class_prior", "priors"])
def test_given_class_probabilities_do_not_reweight_the_shared_covariance(name):
    model = shared(**{name: [0.5, 0.5]}).fit(FIVE, [0, 0, 1, 1, 1])
    close(model.covariance_, [[2.0, 1.7], [1.7, 2.825]])
    close(model.predict_proba([[4.0, 3.0]]), [[0.46946738462340487, 0.5305326153765951]])


def test_class_probabilities_given_at_prediction_are_those_given_at_fit():
    at_fit = shared(class_prior=[0.5, 0.5]).fit(FIVE, [0, 0, 1, 1, 1])
    later = shared().fit(FIVE, [0, 0, 1, 1, 1])
    new = [[4.0, 3.0]]
    close(later.predict_proba(new), [[0.37104235035005745, 0.6289576496499426]])
    close(later.predict_proba(new, class_prior=[0.5, 0.5]), at_fit.predict_proba(new))


def test_a_class_of_one_row_is_fine_when_the_covariance_is_shared():
    rows, labels = [[0.0, 1.0], [2.0, 1.0], [1.0, 4.0], [6.0, 3.0]], ["many", "many", "many", "lone"]
    model = shared().fit(rows, labels)
    close(np.exp(model.class_log_prior_), [0.25, 0.75])
    close(model.means_, [[6.0, 3.0], [1.0, 2.0]])
    close(model.covariance_, [[0.5, 0.0], [0.0, 1.5]])
    close(model.predict_proba([[3.0, 2.0]]), [[0.0016067309257561157, 0.9983932690742439]])


def test_a_class_of_one_row_has_a_covariance_under_a_normal_inverse_wishart_prior():
    prior = NormalInverseWishart(mean=[2, 2], mean_precision=1, df=5, scale=[[2, 0], [0, 2]])
    model = GaussianDiscriminantAnalysis(inference="mean", covariance="per_class", prior=prior, class_alpha=0)
    model.fit([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0], [6.0, 3.0]], ["many", "many", "many", "lone"])
    assert_array_equal(model.classes_, ["lone", "many"])
    close(model.means_[0], [4.0, 2.5])
    close(model.covariance_[0], [[10 / 3, 2 / 3], [2 / 3, 5 / 6]])  # (2I + (4, 1)(4, 1)'/2) / (6 - 2 - 1)


# ----------------------------------------------------------------------------------------------------
# offsets, scales, precision


def test_an_offset_of_a_trillion_does_not_destroy_the_covariance():
    small = np.array([[0, 1], [1, 3], [2, 2], [6, 5], [8, 9], [7, 7]], dtype=float)
    offset = 1e12
    model = shared().fit(small + offset, [0, 0, 0, 1, 1, 1])
    close(model.covariance_, [[2 / 3, 5 / 6], [5 / 6, 5 / 3]], rtol=1e-9)
    close(model.means_ - offset, [[1.0, 2.0], [7.0, 7.0]], rtol=1e-9)
    posterior = [[0.11920292202211756, 0.8807970779778824]]
    close(model.predict_proba([[offset + 4, offset + 4]]), posterior, rtol=1e-9)


def test_nearly_collinear_columns_are_solved_in_double_precision_without_a_ridge():
    tiny = 2.0**-16
    first = np.array([0.0, 2, 1, 5, 6, 7])
    rows = np.column_stack([first, first + tiny * np.array([0.0, 1, -1, 0, 2, -1])])
    model = shared().fit(rows, [0, 0, 0, 1, 1, 1])
    new = [[3.0, 3 + tiny]]
    close(model.predict_proba(new), [[0.9706877692486436, 0.02931223075135632]], rtol=1e-4)
    close(model.decision_function(new), [-3.5], rtol=1e-4)


def test_each_column_keeps_its_own_variance_however_wide_its_neighbour():
    model = GaussianNB(inference="mle").fit([[1.0, 1e9], [2.0, -1e9], [5.0, 1e9], [6.0, -1e9]], [0, 0, 1, 1])
    close(model.var_, [[0.25, 1e18], [0.25, 1e18]])
    posterior = model.predict_proba([[1.4, 0.0], [3.4, 5e8]])
    # the small one in relative terms too: an absolute error of 1e-12 would swallow it
    assert_allclose(posterior[0], [0.9999999999999974, 2.556850927669977e-15], rtol=1e-10)
    close(posterior[1], [0.8320183851339247, 0.16798161486607532])


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_squares_beyond_double_precision_are_handled_or_refused_by_name(unit):
    model = GaussianNB(inference="mle")
    try:
        model.fit(np.array([[1.0], [2.0], [5.0], [6.0]]) * unit, [0, 0, 1, 1])
        posterior = model.predict_proba([[3.4 * unit]])
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = None
        close(posterior, [[0.8320183851339247, 0.16798161486607532]], rtol=1e-8)
    assert refusal is None or re.search("scale|overflow|underflow", refusal.lower())


def test_float32_input_is_summed_in_double_precision():
    rows = np.array([[20000000.0], [20000002.0], [20000004.0], [5.0], [9.0]], dtype=np.float32)
    model = GaussianNB(inference="mle").fit(rows, [0, 0, 0, 1, 1])
    close(model.theta_, [[20000002.0], [7.0]])
    close(model.var_, [[8 / 3], [4.0]])


def test_half_precision_input_does_not_overflow():
    rows = np.array([[1000.0], [1010.0], [10.0], [12.0]], dtype=np.float16)
    model = GaussianNB(inference="mle").fit(rows, [0, 0, 1, 1])
    close(model.var_, [[25.0], [1.0]])
    assert_array_equal(model.predict_proba(np.array([[1004.0]], dtype=np.float16)), [[1.0, 0.0]])


def test_log_probabilities_reach_far_below_the_smallest_positive_number():
    model = GaussianNB(inference="mle").fit([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    close(model.predict_log_proba([[-60.0]]), [[0.0, -660.0]])
    close(model.predict_proba([[-60.0]]), [[1.0, 0.0]])
    far = model.predict_log_proba([[-6000.0]])  # (6001^2 - 6011^2) / 2, whose exponential is 0 in float64
    close(far, [[0.0, -60060.0]])


@pytest.mark.parametrize(
    "chunks",
    [
        [[0, 1, 2, 3, 4, 5]],
        [[0, 1, 3], [2, 4, 5]],
        [[2, 4, 5], [0, 1, 3]],
        [[0, 1, 2], [3, 4, 5]],
        [[5], [0], [4], [1], [3], [2]],
    ],
)
def test_moments_do_not_depend_on_order_and_size_of_the_chunks(chunks):
    rows, labels = np.array([[0.0], [1.0], [2.0], [30.0], [31.0], [35.0]]), np.array([0, 0, 0, 1, 1, 1])
    model = GaussianNB(inference="mle")
    for chunk in chunks:  # a class with one row, or none, must wait for its next chunk without an error
        model.partial_fit(rows[chunk], labels[chunk], classes=[0, 1])
    close(model.theta_, [[1.0], [32.0]], rtol=1e-12)
    close(model.var_, [[2 / 3], [14 / 3]], rtol=1e-12)
    assert_allclose(model.predict_proba([[14.0]]), [[2.8310410567207393e-40, 1.0]], rtol=1e-10)


def test_a_class_with_one_row_so_far_is_an_error_at_prediction_only():
    model = GaussianNB(inference="mle").partial_fit([[0.0], [1.0], [30.0]], [0, 0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match=mentions("variance")):
        model.predict([[14.0]])
    model.partial_fit([[34.0]], [1])
    assert_array_equal(model.predict([[14.0]]), [1])


# ----------------------------------------------------------------------------------------------------
# maximum likelihood estimates that do not exist


def test_a_column_constant_within_one_class_is_an_error_that_names_both():
    rows = pd.DataFrame([[1.0, 5.0], [2.0, 5.0], [4.0, 7.0], [6.0, 9.0]], columns=["length", "width"])
    with pytest.raises(UndefinedNumberError, match=mentions("width", "arm")):
        GaussianNB(inference="mle").fit(rows, ["arm", "arm", "leg", "leg"])


def test_identical_rows_in_each_class_leave_no_variance():
    with pytest.raises(UndefinedNumberError, match=mentions("variance")):
        GaussianNB(inference="mle").fit([[1.5, 2.0]] * 3 + [[4.0, 2.5]] * 2, [0, 0, 0, 1, 1])


def test_a_prior_repairs_a_constant_column():
    rows, labels = [[1.0, 5.0], [2.0, 5.0], [4.0, 7.0], [6.0, 9.0]], ["arm", "arm", "leg", "leg"]
    for inference in ("map", "mean", "exact"):
        posterior = GaussianNB(inference=inference).fit(rows, labels).predict_proba([[2.0, 5.0], [2.0, 5.5]])
        assert np.isfinite(posterior).all()
        close(posterior.sum(axis=1), 1.0, rtol=1e-12)


def test_a_column_constant_in_all_rows_makes_the_shared_covariance_singular():
    rows = pd.DataFrame(
        [[1.0, 3.0, 0.0], [2.0, 5.0, 0.0], [4.0, 4.0, 0.0], [5.0, 8.0, 0.0], [7.0, 7.0, 0.0]],
        columns=["alpha1", "beta2", "flat3"],
    )
    with pytest.raises(UndefinedNumberError, match="flat3"):
        shared().fit(rows, [0, 0, 1, 1, 1])


def test_a_column_that_doubles_another_makes_the_shared_covariance_singular():
    rows = pd.DataFrame([[0, 0], [1, 2], [3, 6], [4, 8], [6, 12], [5, 10]], columns=["mm", "half_mm"])
    with pytest.raises(UndefinedNumberError, match=mentions("mm", "singular|collinear|rank|dependent")):
        shared().fit(rows, [0, 0, 0, 1, 1, 1])


WIDE = [
    [0, 5, 3, 1, 6, 4, 2, 0, 5, 3, 1, 6, 4],
    [3, 2, 3, 6, 4, 4, 6, 3, 2, 3, 6, 4, 4],
    [5, 5, 2, 3, 1, 3, 2, 5, 5, 2, 3, 1, 3],
    [6, 0, 0, 6, 4, 1, 4, 6, 0, 0, 6, 4, 1],
    [6, 1, 4, 1, 6, 5, 5, 6, 1, 4, 1, 6, 5],
    [5, 1, 0, 2, 0, 1, 5, 5, 1, 0, 2, 0, 1],
]


def test_more_columns_than_rows_is_an_error_that_names_both_and_the_cure():
    with pytest.raises(UndefinedNumberError, match=mentions("13", "6|rows|samples|observations", "prior")):
        shared().fit(WIDE, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("inference", ["map", "mean", "exact"])
def test_more_columns_than_rows_is_ordinary_under_the_default_prior(inference):
    model = GaussianDiscriminantAnalysis(inference=inference).fit(WIDE, [0, 0, 0, 1, 1, 1])
    posterior = model.predict_proba(np.ones((1, 13)))
    assert np.isfinite(posterior).all()
    close(posterior.sum(axis=1), 1.0, rtol=1e-12)


def test_a_singular_class_covariance_is_an_error_that_names_the_class():
    rows = [[0.0, 1.0], [1.0, 3.0], [2.0, 0.0], [5.0, 5.0], [6.0, 6.0], [8.0, 8.0]]
    model = GaussianDiscriminantAnalysis(inference="mle", covariance="per_class")
    with pytest.raises(UndefinedNumberError, match="thin"):
        model.fit(rows, ["fat"] * 3 + ["thin"] * 3)


@pytest.mark.parametrize("scale", [[[1, 2], [2, 1]], [[1, 1], [1, 1]]], ids=["indefinite", "singular"])
@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_a_prior_scale_that_is_not_positive_definite_is_an_error(scale, covariance):
    def fit():
        prior = NormalInverseWishart(mean=[0, 0], mean_precision=1.0, df=4, scale=scale)
        return GaussianDiscriminantAnalysis(covariance=covariance, prior=prior).fit(FIVE, [0, 0, 1, 1, 1])

    with pytest.raises(ValueError, match=mentions("positive[ -]definite|singular")):
        fit()


# ----------------------------------------------------------------------------------------------------
# missing cells, mixed columns, rows that no class can generate

AGES = pd.DataFrame([[1.0, 2.0], [np.nan, 3.0], [4.0, 1.0], [5.0, 2.0]], columns=["age", "dose"])


def test_a_class_with_one_observed_value_has_no_variance_and_the_error_says_so():
    with pytest.raises(UndefinedNumberError, match=mentions("age", "NaN", "0")):
        GaussianNB(inference="mle").fit(AGES, [0, 0, 1, 1])


def test_missing_cells_may_be_an_error_that_names_the_column():
    with pytest.raises(ValueError, match=mentions("age", "NaN")):
        GaussianNB(inference="mle", missing="error").fit(AGES, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=mentions("age", "NaN")):
        GaussianDiscriminantAnalysis().fit(AGES, [0, 0, 1, 1])


def test_missing_cells_are_left_out_of_their_column_only():
    prior = NormalInverseGamma(mean=0.0, mean_precision=1.0, shape=2.0, scale=1.0)
    model = GaussianNB(inference="mean", prior=prior, class_alpha=0).fit(AGES, [0, 0, 1, 1])
    close(np.exp(model.class_log_prior_), [0.5, 0.5])
    # class 0: ages 1; doses 2 and 3.  kappa' = 1 + n, b' = 1 + S / 2 + n xbar^2 / (2 kappa'), a' = 2 + n / 2
    close(model.theta_[0], [1 / 2, 5 / 3])
    close(model.var_[0], [1.25 / 1.5, (1 + 0.25 + 2 * 6.25 / 6) / 2])


def test_infinities_are_errors_at_fit_and_at_prediction():
    model = GaussianNB().fit([[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1])
    for bad in (np.inf, -np.inf):
        with pytest.raises(ValueError, match=mentions("infinit")):
            model.predict_proba([[bad]])
        with pytest.raises(ValueError, match=mentions("infinit")):
            GaussianNB().fit([[0.0], [1.0], [3.0], [bad]], [0, 0, 1, 1])


DOSES = pd.DataFrame({"dose": [1.0, 3.0, 6.0, 10.0], "site": ["p", "p", "q", "q"]})
ELSEWHERE = pd.DataFrame({"dose": [4.0], "site": ["r"]})


def dose_and_site(handle_unknown):
    site = CategoricalNB(inference="mean", alpha=1, handle_unknown=handle_unknown)
    blocks = [("dose", GaussianNB(inference="mle"), ["dose"]), ("site", site, ["site"])]
    return MixedNB(blocks=blocks, inference="mean", class_alpha=0).fit(DOSES, [0, 0, 1, 1])


@pytest.mark.parametrize("handle_unknown", ["ignore", "predictive"])
def test_an_unseen_level_leaves_the_numeric_column_to_decide(handle_unknown):
    # the two classes have equally many rows, so that the unseen level has the same mass in both
    close(dose_and_site(handle_unknown).predict_proba(ELSEWHERE), [[2 / 3, 1 / 3]])


def test_an_unseen_level_in_a_mixed_table_may_be_an_error_that_names_it():
    with pytest.raises(ValueError, match=mentions("site", "'r'")):
        dose_and_site("error").predict_proba(ELSEWHERE)


def test_a_row_that_no_class_can_generate_is_nan_with_a_warning_that_names_it():
    rows = pd.DataFrame({"a": ["u", "u", "v", "v"], "b": ["s", "t", "t", "t"]})
    model = CategoricalNB(inference="mle", handle_unknown="predictive").fit(rows, [0, 0, 1, 1])
    new = pd.DataFrame({"a": ["u", "v", "w"], "b": ["s", "t", "t"]})
    with pytest.warns(ZeroProbabilityWarning, match=mentions("row", r"\b2\b")):
        posterior = model.predict_proba(new)
    close(posterior[:2], [[1.0, 0.0], [0.0, 1.0]])
    assert np.isnan(posterior[2]).all()
