"""What people hand to a classifier: labels of every kind, narrow dtypes, frames, sparse formats, weights."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
)


# every model that takes a table of small non-negative integers
def mentions(*patterns):
    """A pattern for messages that contain all of these, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{pattern}))" for pattern in patterns)


MODELS = {
    "shared discriminant": lambda **k: GaussianDiscriminantAnalysis(covariance="shared", **k),
    "per-class discriminant": lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k),
    "Gaussian": GaussianNB,
    "Gaussian, shared variance": lambda **k: GaussianNB(variance="shared", **k),
    "Bernoulli": BernoulliNB,
    "multinomial": MultinomialNB,
    "categorical": CategoricalNB,
    "Poisson": PoissonNB,
    "mixed": MixedNB,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def laplace(model, **keywords):
    return model(inference="mean", class_alpha=0, **keywords)


def close(actual, desired, rtol=1e-10):
    assert_allclose(actual, desired, rtol=rtol, atol=1e-12)


# ----------------------------------------------------------------------------------------------------
# labels


def test_text_labels_are_sorted_and_predicted_in_full_length():
    model = laplace(MultinomialNB, alpha=1).fit([[3, 0], [2, 1], [0, 4], [1, 5]], ["spam", "spam", "ham", "ham"])
    assert_array_equal(model.classes_, ["ham", "spam"])
    close(np.exp(model.feature_log_prob_), [[1 / 6, 5 / 6], [3 / 4, 1 / 4]])
    posterior = [[0.0005416292886037812, 0.9994583707113962], [0.9975758905858764, 0.0024241094141236796]]
    close(model.predict_proba([[5, 0], [0, 5]]), posterior)
    assert list(model.predict([[5, 0], [0, 5]])) == ["spam", "ham"]


@pytest.mark.parametrize("container", [np.array, lambda y: pd.Series(y, dtype="boolean"), pd.Series, list])
def test_boolean_labels_stay_boolean(container):
    labels = container([True, True, False, False, False])
    model = laplace(BernoulliNB, alpha=1).fit([[1, 0], [1, 1], [0, 1], [0, 0], [0, 1]], labels)
    new = [[1, 1], [0, 0]]
    assert model.classes_.dtype == bool
    assert list(model.classes_) == [False, True]
    posterior = [[0.32432432432432434, 0.6756756756756757], [0.7933884297520661, 0.2066115702479339]]
    close(model.predict_proba(new), posterior)
    assert model.predict(new).dtype == bool
    assert list(model.predict(new)) == [True, False]


def test_boolean_columns_are_counted_not_merely_detected():
    rows = np.array([[1, 0], [1, 1], [0, 1], [1, 1], [1, 0]], dtype=bool)
    model = laplace(BernoulliNB, alpha=1).fit(rows, np.array([True, True, False, True, False]))
    close(np.exp(model.class_log_prior_), [0.4, 0.6])
    close(np.exp(model.feature_log_prob_), [[0.5, 0.5], [0.8, 0.6]])
    close(model.predict_proba(np.array([[True, False]])), [[0.3424657534246575, 0.6575342465753424]])


@every_model
def test_float_labels_are_classes_when_whole_and_refused_otherwise(make):
    rows = [[1, 2], [2, 1], [0, 3], [4, 1]]
    with pytest.raises(ValueError, match=mentions("continuous|regression")):
        make().fit(rows, [0.5, 0.5, 1.5, 1.5])
    model = make().fit(rows, [1.0, 1.0, 2.0, 2.0])
    assert_array_equal(model.classes_, [1.0, 2.0])
    assert set(model.predict(rows)) <= {1.0, 2.0}


@every_model
def test_labels_of_mixed_types_are_refused_rather_than_merged(make):
    with pytest.raises(ValueError, match=mentions("mixed|type")):
        make().fit([[1, 2], [2, 1], [0, 3]], np.array([1, "1", "a"], dtype=object))


@every_model
def test_labels_that_differ_beyond_32_bits_are_different(make):
    labels = np.array([2**32, 2**32, 0], dtype=np.int64)
    model = make().fit([[3, 0], [1, 2], [0, 4]], labels)
    assert model.classes_.tolist() == [0, 2**32]
    assert set(model.predict([[1, 0], [0, 4]]).tolist()) <= {0, 2**32}
    close(model.class_count_, [1, 2])


def test_the_probabilities_of_labels_beyond_32_bits():
    labels = np.array([2**32, 2**32, 0], dtype=np.int64)
    model = laplace(MultinomialNB, alpha=1).fit([[3, 0], [1, 2], [0, 4]], labels)
    close(np.exp(model.class_log_prior_), [1 / 3, 2 / 3])
    close(model.predict_proba([[1, 0]]), [[2 / 17, 15 / 17]])
    assert model.predict([[1, 0]]).tolist() == [2**32]


def test_a_level_of_a_categorical_label_column_that_no_row_uses_is_not_a_class():
    labels = pd.Series(pd.Categorical(["b", "b", "a"], categories=["z", "b", "a"]))
    rows = [[2, 0], [1, 1], [0, 3]]
    model = laplace(MultinomialNB, alpha=1).fit(rows, labels)
    assert list(model.classes_) == ["a", "b"]
    close(np.exp(model.class_log_prior_), [1 / 3, 2 / 3])
    close(model.predict_proba([[1, 0]]), [[3 / 23, 20 / 23]])
    smoothed = MultinomialNB(class_alpha=1).fit(rows, labels)
    close(np.exp(smoothed.class_log_prior_), [2 / 5, 3 / 5])


# ----------------------------------------------------------------------------------------------------
# dtypes


def test_uint8_counts_do_not_wrap_at_255():
    rows = np.array([[200, 1], [100, 1], [1, 9]], dtype=np.uint8)
    model = laplace(MultinomialNB, alpha=1).fit(rows, [0, 0, 1])
    close(np.exp(model.feature_log_prob_), [[301 / 304, 3 / 304], [2 / 12, 10 / 12]])
    new = np.array([[255, 255]], dtype=np.uint8)
    close(model.predict_log_proba(new), [[-676.1410677796694, 0.0]])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_counts_beyond_31_bits_do_not_wrap(storage):
    rows = np.array([[3, 1], [2, 2], [1, 3]], dtype=np.int64) * 10**9
    model = MultinomialNB(inference="mle").fit(storage(rows), [0, 0, 1])
    close(np.exp(model.feature_log_prob_), [[5 / 8, 3 / 8], [1 / 4, 3 / 4]])
    close(model.predict_proba([[1, 0]]), [[5 / 6, 1 / 6]])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_float32_counts_are_exact_beyond_24_bits(storage):
    rows = np.array([[16777216, 2], [1, 0], [1, 0], [1, 0], [4, 4]], dtype=np.float32)
    model = MultinomialNB(inference="mle").fit(storage(rows), [0, 0, 0, 0, 1])
    theta = np.exp(model.feature_log_prob_)
    close(theta, [[16777219 / 16777221, 2 / 16777221], [0.5, 0.5]], rtol=1e-12)
    close(theta[0, 0] / theta[0, 1], 8388609.5, rtol=1e-12)
    assert_array_equal(model.feature_count_[0], [16777219, 2])


def test_numbers_written_as_text_are_refused_by_a_numeric_model():
    for model in (GaussianNB(), GaussianDiscriminantAnalysis(), PoissonNB(), MultinomialNB(), BernoulliNB()):
        with pytest.raises(ValueError, match=mentions("str|text|numeric")):
            model.fit(np.array([["1.0"], ["2.0"], ["30.0"], ["41.0"]]), [0, 0, 1, 1])


# ----------------------------------------------------------------------------------------------------
# names of columns

NAMED = pd.DataFrame([[4, 1, 0], [3, 0, 1], [0, 1, 5], [1, 0, 4]], columns=["w1", "w2", "w3"])


@every_model
def test_a_missing_or_an_additional_column_is_named(make):
    model = make().fit(NAMED, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="w2"):
        model.predict_proba(NAMED[["w1", "w3"]])
    with pytest.raises(ValueError, match="extra"):
        model.predict_proba(NAMED.assign(extra=1))


@every_model
def test_columns_in_another_order_are_never_matched_by_position(make):
    model = make().fit(NAMED, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=mentions("order|feature name|column")):
        model.predict_proba(NAMED[["w3", "w2", "w1"]])


@every_model
def test_two_columns_of_the_same_name_are_refused(make):
    rows = pd.DataFrame([[1, 2, 0], [0, 1, 3], [2, 2, 1]], columns=["height", "weight", "height"])
    with pytest.raises(ValueError, match=mentions("height", "duplicate|unique")):
        make().fit(rows, [0, 1, 0])


# ----------------------------------------------------------------------------------------------------
# sparse storage

DENSE = np.array([[3, 0, 1], [0, 2, 0], [1, 0, 4], [0, 5, 1]])


def split_entries(dense):
    """A COO matrix in which every count is stored as two entries."""
    coo = sp.coo_matrix(dense)
    halves = np.concatenate([coo.data - coo.data // 2, coo.data // 2])
    return sp.coo_matrix((halves, (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=dense.shape)


def split_csr(dense):
    """A CSR matrix whose rows hold every count twice, in decreasing column order."""
    data, indices, indptr = [], [], [0]
    for row in dense:
        columns = np.flatnonzero(row)[::-1]
        indices += [*columns, *columns]
        data += [*(row[columns] - row[columns] // 2), *(row[columns] // 2)]
        indptr.append(len(indices))
    return sp.csr_matrix((np.array(data), np.array(indices), np.array(indptr)), shape=dense.shape)


def unsorted(dense):
    csr = sp.csr_matrix(dense)
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        csr.indices[start:stop] = csr.indices[start:stop][::-1].copy()
        csr.data[start:stop] = csr.data[start:stop][::-1].copy()
    csr.has_sorted_indices = False
    return csr


def wide_indices(dense):
    csr = sp.csr_matrix(dense)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def explicit_zeros(dense):
    coo = np.indices(dense.shape).reshape(2, -1)
    return sp.csr_matrix((dense.ravel(), (coo[0], coo[1])), shape=dense.shape)


STORAGES = {
    "CSR matrix": sp.csr_matrix,
    "CSC matrix": sp.csc_matrix,
    "COO matrix": sp.coo_matrix,
    "COO with split counts": split_entries,
    "CSR with split counts": split_csr,
    "CSR with unsorted indices": unsorted,
    "CSR with 64-bit indices": wide_indices,
    "CSR with stored zeros": explicit_zeros,
    "CSR array": sp.csr_array,
    "CSC array": sp.csc_array,
    "COO array": sp.coo_array,
}


def parts(matrix):
    names = ("data", "row", "col") if matrix.format == "coo" else ("data", "indices", "indptr")
    return [np.array(getattr(matrix, name)) for name in names]


@pytest.mark.parametrize("storage", STORAGES.values(), ids=STORAGES.keys())
@pytest.mark.parametrize("make", [MultinomialNB, BernoulliNB, PoissonNB])
@pytest.mark.parametrize("inference", ["mean", "exact"])
def test_every_sparse_format_gives_the_dense_numbers_and_is_left_as_it_was(make, storage, inference):
    labels = ["p", "p", "q", "q"]
    dense = make(inference=inference, class_alpha=0).fit(DENSE, labels)
    matrix, new = storage(DENSE), storage(DENSE[:2])
    before = parts(matrix) + parts(new)
    model = make(inference=inference, class_alpha=0).fit(matrix, labels)
    close(model.predict_joint_log_proba(new), dense.predict_joint_log_proba(DENSE[:2]), rtol=1e-13)
    for was, now in zip(before, parts(matrix) + parts(new), strict=True):
        assert was.dtype == now.dtype
        assert_array_equal(was, now)


@pytest.mark.parametrize("storage", STORAGES.values(), ids=STORAGES.keys())
def test_word_probabilities_from_every_sparse_format(storage):
    model = laplace(MultinomialNB, alpha=1).fit(storage(DENSE), ["p", "p", "q", "q"])
    close(np.exp(model.feature_log_prob_), [[4 / 9, 3 / 9, 2 / 9], [2 / 14, 6 / 14, 6 / 14]])
    close(model.predict_proba(storage(np.array([[1, 1, 1]]))), [[0.5564794159399716, 0.44352058406002837]])


def test_a_stored_zero_is_not_a_presence():
    data, indices = np.array([0, 1, 1, 1, 1, 1, 1, 0, 1]), np.array([0, 1, 1, 2, 0, 2, 0, 2, 1])
    rows = sp.csr_matrix((data, indices, np.array([0, 2, 4, 6, 9])), shape=(4, 3))
    assert_array_equal(rows.toarray(), [[0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    model = laplace(BernoulliNB, alpha=1).fit(rows, [0, 0, 1, 1])
    close(np.exp(model.feature_log_prob_), [[1 / 4, 3 / 4, 1 / 2], [3 / 4, 1 / 2, 1 / 2]])
    close(model.predict_proba([[0, 1, 1]]), [[9 / 11, 2 / 11]])


def test_a_negative_threshold_does_not_leave_implicit_zeros_as_absences():
    rows, model = sp.csr_matrix([[0, 1], [1, 0]]), laplace(BernoulliNB, alpha=1, binarize=-0.5)
    try:
        model.fit(rows, [0, 1])
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = None
        close(np.exp(model.feature_log_prob_), np.full((2, 2), 2 / 3))
    assert refusal is None or re.search("binarize|threshold", refusal.lower())


# ----------------------------------------------------------------------------------------------------
# weights


@every_model
def test_a_negative_weight_is_refused(make):
    with pytest.raises(ValueError, match=mentions("sample_weight", "negative|positive")):
        make().fit([[2, 1], [0, 3], [1, 1]], [0, 1, 0], sample_weight=[1, -1, 1])


def test_a_weight_is_a_number_of_repetitions():
    repeated = laplace(MultinomialNB, alpha=1).fit([[2, 1]] * 3 + [[0, 3]] + [[1, 1]] * 2, [0, 0, 0, 1, 1, 1])
    weighted = laplace(MultinomialNB, alpha=1).fit([[2, 1], [0, 3], [1, 1]], [0, 1, 1], sample_weight=[3, 1, 2])
    for model in (repeated, weighted):
        close(np.exp(model.class_log_prior_), [0.5, 0.5])
        close(np.exp(model.feature_log_prob_), [[7 / 11, 4 / 11], [3 / 9, 6 / 9]])
        close(model.predict_proba([[1, 2]]), [[0.36224245328222326, 0.6377575467177767]])


def test_a_weight_of_zero_leaves_the_row_out():
    rows, labels = np.array([[2, 1], [0, 3], [5, 5], [1, 1]]), np.array([0, 1, 1, 0])
    zero = laplace(MultinomialNB, alpha=1).fit(rows, labels, sample_weight=[1, 1, 0, 1])
    keep = [0, 1, 3]
    without = laplace(MultinomialNB, alpha=1).fit(rows[keep], labels[keep])
    for model in (zero, without):
        close(np.exp(model.class_log_prior_), [2 / 3, 1 / 3])
        close(np.exp(model.feature_log_prob_), [[4 / 7, 3 / 7], [1 / 5, 4 / 5]])
        close(model.predict_proba([[1, 2]]), [[0.6212037548315847, 0.37879624516841526]])


def test_fractional_weights_of_integer_counts_are_not_truncated():
    rows = np.array([[2, 0], [1, 3], [0, 4]], dtype=np.int64)
    model = laplace(MultinomialNB, alpha=1).fit(rows, [0, 0, 1], sample_weight=[0.5, 1.25, 2.5])
    close(np.exp(model.class_log_prior_), [1.75 / 4.25, 2.5 / 4.25])
    close(np.exp(model.feature_log_prob_), [[3.25 / 8, 4.75 / 8], [1 / 12, 11 / 12]])
    close(model.predict_proba([[1, 1]]), [[0.6885093579930092, 0.31149064200699084]])


# ----------------------------------------------------------------------------------------------------
# given class probabilities


@every_model
@pytest.mark.parametrize("given", [[0.1] * 10, [0.08, 0.14, 0.03, 0.16, 0.11, 0.16, 0.07, 0.14, 0.11, 0.0]])
def test_class_probabilities_that_sum_to_one_up_to_rounding_are_accepted(make, given):
    rows = np.random.default_rng(1).integers(0, 4, size=(20, 3))
    model = make(class_prior=given).fit(rows, np.repeat(np.arange(10), 2))
    with np.errstate(all="ignore"):
        assert_allclose(np.exp(model.class_log_prior_), given, rtol=1e-15, atol=0)
    posterior = model.predict_proba(rows)
    if given[-1] == 0:
        assert_array_equal(posterior[:, -1], 0.0)
    assert np.isfinite(posterior).all()


@every_model
def test_class_probabilities_that_do_not_sum_to_one_are_refused(make):
    rows, labels = [[2, 0], [1, 1], [0, 3]], [0, 0, 1]
    for wrong in ([2, 6], [0.5, 0.4]):
        with pytest.raises(ValueError, match=mentions("prior", "sum")):
            make(class_prior=wrong).fit(rows, labels)
        with pytest.raises(ValueError, match=mentions("prior", "sum")):
            make().fit(rows, labels).predict_proba(rows, class_prior=wrong)
    with pytest.raises(ValueError, match=mentions("prior", "negative")):
        make(class_prior=[-0.5, 1.5]).fit(rows, labels)


def test_a_class_of_given_probability_zero_is_excluded():
    model = laplace(BernoulliNB, alpha=1, class_prior=[0.0, 0.25, 0.75])
    model.fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["a", "a", "b", "c"])
    posterior = model.predict_proba([[1, 0], [0, 1]])
    close(posterior, [[0.0, 0.25, 0.75]] * 2)
    assert_array_equal(posterior[:, 0], 0.0)
    assert list(model.predict([[1, 0], [0, 1]])) == ["c", "c"]


def test_given_class_probabilities_belong_to_the_sorted_classes():
    rows, labels = [[3, 0], [2, 1], [0, 4]], ["yes", "yes", "no"]
    given = laplace(MultinomialNB, alpha=1, class_prior=[0.9, 0.1]).fit(rows, labels)
    assert list(given.classes_) == ["no", "yes"]
    close(given.predict_proba([[1, 1]]), [[0.8695652173913043, 0.13043478260869565]])
    estimated = laplace(MultinomialNB, alpha=1).fit(rows, labels)
    close(np.exp(estimated.class_log_prior_), [1 / 3, 2 / 3])
    close(estimated.predict_proba([[1, 1]]), [[10 / 37, 27 / 37]])
    close(estimated.predict_proba([[1, 1]], class_prior=[0.9, 0.1]), given.predict_proba([[1, 1]]))


# ----------------------------------------------------------------------------------------------------
# parameters that are set later


def test_a_changed_concentration_reaches_the_next_fit():
    rows, labels = np.array([[3, 0], [1, 2], [0, 4]]), np.array([0, 0, 1])
    before, after = [[5 / 8, 3 / 8], [1 / 6, 5 / 6]], [[4.5 / 7, 2.5 / 7], [0.5 / 5, 4.5 / 5]]
    model = laplace(MultinomialNB, alpha=1.0).fit(rows, labels)
    close(np.exp(model.feature_log_prob_), before)
    close(np.exp(model.set_params(alpha=0.5).fit(rows, labels).feature_log_prob_), after)

    pipeline = make_pipeline(FunctionTransformer(), laplace(MultinomialNB, alpha=1.0)).fit(rows, labels)
    close(np.exp(pipeline[-1].feature_log_prob_), before)
    pipeline.set_params(multinomialnb__alpha=0.5).fit(rows, labels)
    close(np.exp(pipeline[-1].feature_log_prob_), after)

    search = GridSearchCV(pipeline, {"multinomialnb__alpha": [0.5]}, cv=[([0, 1, 2], [0, 1, 2])])
    close(np.exp(search.fit(rows, labels).best_estimator_[-1].feature_log_prob_), after)


def test_a_changed_prior_object_reaches_the_next_fit():
    rows, labels = [[3], [1], [4]], [0, 0, 1]
    model = laplace(PoissonNB, prior=Gamma(shape=1.0, rate=1.0)).fit(rows, labels)
    close(model.rate_, [[5 / 3], [5 / 2]])
    model.set_params(prior=Gamma(shape=2.0, rate=0.5)).fit(rows, labels)
    close(model.rate_, [[6 / 2.5], [6 / 1.5]])


def test_a_prior_inside_a_block_of_a_mixed_model_is_a_nested_parameter():
    blocks = [("words", laplace(MultinomialNB, alpha=1.0), [0, 1])]
    model = MixedNB(blocks=blocks)
    assert model.get_params(deep=True)["words__alpha"] == 1.0
    model.set_params(words__alpha=0.5).fit([[3, 0], [1, 2], [0, 4]], [0, 0, 1])
    (_, words, _), *_ = model.blocks_
    close(np.exp(words.feature_log_prob_), [[4.5 / 7, 2.5 / 7], [0.5 / 5, 4.5 / 5]])
