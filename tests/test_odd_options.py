"""Options, priors and statistics outside their meaning: refused by name; and what a model keeps for itself."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from odd_cases import FRAME, GAUSSIAN, LABELS, NUMERIC, ROWS, TABLES, close, models, refused

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    PoissonNB,
    Statistics,
    ZeroProbabilityWarning,
)

EVERY = NUMERIC | TABLES
DISCRIMINANTS = {name: make for name, make in GAUSSIAN.items() if "discriminant" in name}

# ----------------------------------------------------------------------------------------------------
# options

# what is wrong: the estimator, its options, and what the message names
WRONG = {
    "class_alpha has a weight too many": (GaussianNB, {"class_alpha": [1, 2, 3]}, "class_alpha"),
    "class_alpha is a matrix": (BernoulliNB, {"class_alpha": [[1, 2]]}, "class_alpha"),
    "class_alpha is text": (MixedNB, {"class_alpha": "a"}, "class_alpha"),
    "class_alpha is None": (PoissonNB, {"class_alpha": None}, "class_alpha"),
    "class_alpha is negative": (CategoricalNB, {"class_alpha": -1}, "class_alpha"),
    "class_alpha is NaN": (CategoricalNB, {"class_alpha": np.nan}, "class_alpha"),
    "class_alpha is enormous": (GaussianNB, {"class_alpha": 1e101}, "class_alpha"),
    "class_alpha overflows in a sum": (GaussianNB, {"class_alpha": [1.7e308, 1.7e308]}, "class_alpha"),
    "class_prior is text": (GaussianNB, {"class_prior": "ab"}, "class_prior"),
    "class_prior holds None": (BernoulliNB, {"class_prior": [None, 1]}, "class_prior"),
    "class_prior holds texts": (MultinomialNB, {"class_prior": ["a", "b"]}, "class_prior"),
    "class_prior is a dictionary": (MixedNB, {"class_prior": {0: 0.5, 1: 0.5}}, "class_prior"),
    "priors is text": (GaussianNB, {"priors": "ab"}, "priors"),
    "fit_prior is text": (MultinomialNB, {"fit_prior": "no"}, "fit_prior"),
    "fit_prior is None": (MixedNB, {"fit_prior": None}, "fit_prior"),
    "inference is an array": (GaussianNB, {"inference": np.array(["exact", "mle"])}, "inference"),
    "inference is a list": (MixedNB, {"inference": ["exact"]}, "inference"),
    "missing is an array": (GaussianNB, {"missing": np.array(["error", "marginalize"])}, "missing"),
    "variance is an array": (GaussianNB, {"variance": np.array(["shared", "per_class"])}, "variance"),
    "variance is a list": (GaussianNB, {"variance": ["shared"]}, "variance"),
    "covariance is an array": (GaussianDiscriminantAnalysis, {"covariance": np.array(["shared", "x"])}, "covariance"),
    "covariance is a dictionary": (GaussianDiscriminantAnalysis, {"covariance": {}}, "covariance"),
    "alpha is enormous": (MultinomialNB, {"alpha": 1e101}, "alpha"),
    "alpha is enormous in a column": (CategoricalNB, {"alpha": [1, 1e300]}, "alpha"),
    "alpha is enormous in a pair": (BernoulliNB, {"alpha": (1.0, 1.7e308)}, "alpha"),
    "binarize is text": (BernoulliNB, {"binarize": "x"}, "binarize"),
    "binarize is NaN": (BernoulliNB, {"binarize": np.nan}, "binarize"),
    "binarize is a list": (BernoulliNB, {"binarize": [0.5, 1.5]}, "binarize"),
    "min_categories is text": (CategoricalNB, {"min_categories": "x"}, "min_categories"),
    "min_categories is negative": (CategoricalNB, {"min_categories": -1}, "min_categories"),
    "min_categories is enormous": (CategoricalNB, {"min_categories": 10**12}, "min_categories"),
    "min_categories has a column too many": (CategoricalNB, {"min_categories": [2, 2, 2]}, "min_categories"),
    "categories is a number": (CategoricalNB, {"categories": 3}, "categories"),
    "categories is None": (CategoricalNB, {"categories": None}, "categories"),
    "categories lacks a column": (CategoricalNB, {"categories": [[0, 1, 2, 3]]}, "categories"),
    "categories repeats a level": (CategoricalNB, {"categories": [[0, 1, 2, 3], [0, 0, 1, 2]]}, "categories"),
    "categories holds numbers": (CategoricalNB, {"categories": [4, 3]}, "categories"),
    "blocks is a number": (MixedNB, {"blocks": 3}, "blocks"),
    "blocks is None": (MixedNB, {"blocks": None}, "blocks"),
    "blocks is empty": (MixedNB, {"blocks": []}, "blocks"),
    "blocks holds numbers": (MixedNB, {"blocks": [1, 2]}, "block"),
    "a block without columns": (MixedNB, {"blocks": [("g", GaussianNB())]}, "block"),
    "a block without an estimator": (MixedNB, {"blocks": [("g", 3, [0, 1])]}, "block"),
    "a block with a class for an estimator": (MixedNB, {"blocks": [("g", GaussianNB, [0, 1])]}, "block"),
    "a mixed model in a block": (MixedNB, {"blocks": [("m", MixedNB(), [0, 1])]}, "MixedNB"),
    "a mask that is too short": (MixedNB, {"blocks": [("g", GaussianNB(), [True])]}, "block|column"),
    "columns that are fractions": (MixedNB, {"blocks": [("g", GaussianNB(), [0.5])]}, "block|column"),
    "columns that are floats": (MixedNB, {"blocks": [("g", GaussianNB(), [0.0, 1.0])]}, "block|column"),
    "columns that are None": (MixedNB, {"blocks": [("g", GaussianNB(), None)]}, "block|column"),
    "columns that hold None": (MixedNB, {"blocks": [("g", GaussianNB(), [None])]}, "block|column"),
    "family is a number": (GenerativeClassifier, {"family": 3}, "family"),
}


@pytest.mark.parametrize(("make", "options", "name"), WRONG.values(), ids=WRONG.keys())
def test_an_option_outside_its_meaning_is_named(make, options, name):
    with refused(model := make(**options), name):
        model.fit(ROWS, LABELS)
    model = make().fit(ROWS, LABELS)
    with refused(model.set_params(**options), name):
        model.fit(ROWS, LABELS)


@models({"Bernoulli": BernoulliNB, "multinomial": MultinomialNB})
@pytest.mark.parametrize("size", [0, -1, 2.5, "a", True, np.nan, [3]], ids=repr)
def test_the_size_of_a_vocabulary_is_a_positive_whole_number(make, size):
    with refused(model := make(input="tokens", vocabulary_size=size), "vocabulary_size"):
        model.fit([[0, 1], [1]], [0, 1])


@models({"own": MultinomialNB, "general": lambda: GenerativeClassifier(family="multinomial")})
@pytest.mark.parametrize("lengths", [-1, 1.5, "a", [1, 2], [[1], [2], [3]], [1, 2, -3]], ids=repr)
def test_lengths_of_documents_are_whole_numbers_one_for_each(make, lengths):
    model = make().fit(ROWS, LABELS)
    with refused(model, "lengths"):
        model.sample(3, lengths=lengths)
    with refused(model, "lengths"):
        model.model(n_rows=3, lengths=lengths)


@models(EVERY)
@pytest.mark.parametrize("n", [0, -1, 2.5, "a", [1, 2], np.nan], ids=repr)
def test_a_number_of_rows_or_draws_is_a_positive_whole_number(make, n):
    model = make().fit(ROWS, LABELS)
    with refused(model, "n_samples"):
        model.sample(n)
    with refused(model, "n_draws"):
        model.sample_proba(ROWS, n)
    with refused(model, "n_draws"):
        model.predict_proba_interval(ROWS, n_draws=n)
    with refused(model, "n_rows"):
        model.model(n_rows=n)


@pytest.mark.parametrize("prob", [0, 1, -0.5, np.nan, "a", None, [0.5, 0.9]], ids=repr)
def test_the_probability_of_an_interval_lies_between_zero_and_one(prob):
    with refused(model := GaussianNB().fit(ROWS, LABELS), "prob"):
        model.predict_proba_interval(ROWS, prob)


@models(EVERY)
@pytest.mark.parametrize("weight", [1e101, 1e-101, 1.7e308, 5e-324])
def test_a_weight_beyond_all_measure_is_refused(make, weight):
    weights = [0, 1, 1, 1, 1, weight]
    for model in (make(), make().fit(ROWS, LABELS)):
        with refused(model, "sample_weight"):
            model.fit(ROWS, LABELS, sample_weight=weights)
        with refused(model, "sample_weight"):
            model.partial_fit(ROWS, LABELS, classes=[0, 1], sample_weight=weights)


@models(EVERY)
@pytest.mark.parametrize("weight", [1e12, 1e-12])
def test_a_large_or_small_weight_is_a_weight(make, weight):
    model = make().fit(ROWS, LABELS, sample_weight=[0, 1, 1, 1, 1, weight])
    close(model.predict_proba(ROWS).sum(axis=1), 1)


# ----------------------------------------------------------------------------------------------------
# priors

WRONG_PRIOR = {
    "a shape that is None": (PoissonNB, lambda: Gamma(None), "shape"),
    "a rate that is None": (PoissonNB, lambda: Gamma(1.0, None), "rate"),
    "a shape that is NaN": (PoissonNB, lambda: Gamma(np.nan), "shape"),
    "a strength that is None": (GaussianNB, lambda: NormalInverseGamma(mean_precision=None), "mean_precision"),
    "another shape that is None": (GaussianNB, lambda: NormalInverseGamma(shape=None), "shape"),
    "a low part that is NaN": (GaussianNB, lambda: NormalInverseGamma(mean=0, mean_low=np.nan), "mean_low|prior"),
    "a mean whose square overflows": (GaussianNB, lambda: NormalInverseGamma(mean=1e300), "mean|prior"),
    "a vector whose square overflows": (
        GaussianDiscriminantAnalysis,
        lambda: NormalInverseWishart(mean=[0.0, 1e300]),
        "mean|prior",
    ),
    "another strength that is None": (
        GaussianDiscriminantAnalysis,
        lambda: NormalInverseWishart(mean_precision=None),
        "mean_precision",
    ),
    "a value of another kind": (GaussianNB, lambda: NormalInverseWishart(), "prior"),
}


@pytest.mark.parametrize(("make", "prior", "name"), WRONG_PRIOR.values(), ids=WRONG_PRIOR.keys())
def test_a_prior_outside_its_meaning_is_named(make, prior, name):
    with pytest.raises(ValueError, match=name):
        make(prior=prior()).fit(ROWS, LABELS)


MISSHAPEN = {
    "df for three classes": ({"df": [5.0, 6.0, 7.0]}, r"prior\.df"),
    "df as a matrix": ({"df": np.full((2, 2), 5.0)}, r"prior\.df"),
    "mean_precision for three classes": ({"mean_precision": [1.0, 2.0, 3.0]}, r"prior\.mean_precision"),
    "mean_precision as a matrix": ({"mean_precision": np.ones((2, 2))}, r"prior\.mean_precision"),
    "mean of three columns": ({"mean": [1.0, 2.0, 3.0]}, r"prior\.mean"),
    "mean of three classes": ({"mean": np.ones((3, 2))}, r"prior\.mean"),
    "scale of three columns": ({"scale": np.eye(3)}, r"prior\.scale"),
    "scale of three classes": ({"scale": np.array([np.eye(2)] * 3)}, r"prior\.scale"),
}


@models(DISCRIMINANTS)
@pytest.mark.parametrize(("options", "name"), MISSHAPEN.values(), ids=MISSHAPEN.keys())
def test_the_shapes_of_a_wishart_prior_are_those_of_the_classes_and_columns(make, options, name):
    with refused(model := make(prior=NormalInverseWishart(**options)), name):
        model.fit(ROWS, LABELS)


def test_a_shared_covariance_has_one_number_of_degrees_of_freedom():
    prior = NormalInverseWishart(df=[5.0, 6.0])
    with refused(model := GaussianDiscriminantAnalysis(prior=prior), r"prior\.df", "shared"):
        model.fit(ROWS, LABELS)
    per_class = GaussianDiscriminantAnalysis(covariance="per_class", prior=prior).fit(ROWS, LABELS)
    assert_array_equal(per_class.posterior_.df, [8, 9])


# ----------------------------------------------------------------------------------------------------
# forgetting, merging, statistics

rng = np.random.default_rng(7)
STREAM = np.round(rng.normal(size=(40, 3)) * [1, 10, 1000] + [0, 50, 300], 3)
STREAM_LABELS = np.arange(40) % 2


@models(GAUSSIAN)
def test_a_sliding_window_equals_a_fit_of_the_window(make):
    model = make().partial_fit(STREAM[:12], STREAM_LABELS[:12], classes=[0, 1])
    for i in range(12, 40):
        model.partial_fit(STREAM[i : i + 1], STREAM_LABELS[i : i + 1])
        model.forget(STREAM[i - 12 : i - 11], STREAM_LABELS[i - 12 : i - 11])
    expected = make().fit(STREAM[28:], STREAM_LABELS[28:])
    close(model.predict_joint_log_proba(STREAM), expected.predict_joint_log_proba(STREAM), rtol=1e-6)


@models(GAUSSIAN)
@pytest.mark.parametrize("value", [0.1, -0.009399164188116073, 123.456])
@pytest.mark.parametrize("stray", [7.3, 0.00022962148727192922, -512.2])
def test_a_column_that_is_constant_once_rows_are_forgotten_is_constant(make, value, stray):
    rows, labels = STREAM[:14].copy(), STREAM_LABELS[:14]
    rows[:, 0] = value
    rows[10:, 0] = stray + np.arange(4)
    model = make().fit(rows, labels)
    for i in (13, 10, 12, 11):
        model.forget(rows[i : i + 1], labels[i : i + 1])
    expected = make().fit(rows[:10], labels[:10])
    scatter = model.statistics_.features.scatter
    assert not scatter[..., 0].any()
    new = rows[:10] + np.array([1e-3, 0, 0])
    close(model.predict_joint_log_proba(new), expected.predict_joint_log_proba(new), rtol=1e-6)


@models(GAUSSIAN)
def test_one_row_is_left_with_the_scatter_of_one_row(make):
    model = make().fit(STREAM[:3], [0, 0, 1]).forget(STREAM[1:2], [0])
    expected = make().fit(STREAM[[0, 2]], [0, 1])
    close(model.predict_joint_log_proba(STREAM), expected.predict_joint_log_proba(STREAM), rtol=1e-6)


@models(EVERY)
def test_rows_that_were_never_learned_cannot_be_forgotten(make):
    rows = np.hstack([ROWS, np.zeros((6, 1))])
    model = make().fit(rows, LABELS)
    strange = rows[:1] + (100 if make in GAUSSIAN.values() or make is NUMERIC["general"] else [0, 0, 1])
    with refused(model, "forget|not.*learned|level"):
        model.forget(strange, LABELS[:1])
    with refused(model, "forget|not.*learned"):
        model.forget(np.vstack([rows] * 2), np.tile(LABELS, 2))


@pytest.mark.parametrize("handle_unknown", ["predictive", "ignore", "error"])
@pytest.mark.parametrize("block", [False, True], ids=["alone", "in a block"])
def test_a_level_that_was_never_learned_cannot_be_forgotten(handle_unknown, block):
    model = CategoricalNB(handle_unknown=handle_unknown)
    if block:
        model = MixedNB(blocks=[("b", model, ["wind"])])
    model.fit(pd.DataFrame({"wind": ["west", "north", "west"]}), [0, 0, 1])
    with refused(model, "wind", "east"):
        model.forget(pd.DataFrame({"wind": ["east"]}), [0])


def fitted_statistics(make=GaussianNB):
    return make().fit(ROWS, LABELS).statistics_


def with_features(make=GaussianNB, **changes):
    statistics = fitted_statistics(make)
    return replace(statistics, features=statistics.features._replace(**changes))


FOREIGN = {
    "nothing": (GaussianNB, lambda: None),
    "a discriminant": (GaussianNB, lambda: fitted_statistics(GaussianDiscriminantAnalysis)),
    "a per-class discriminant": (
        GaussianDiscriminantAnalysis,
        lambda: fitted_statistics(DISCRIMINANTS["per-class discriminant"]),
    ),
    "another model of words": (MultinomialNB, lambda: fitted_statistics(BernoulliNB)),
    "counts": (BernoulliNB, lambda: fitted_statistics(PoissonNB)),
    "blocks for categories": (CategoricalNB, lambda: fitted_statistics(MixedNB)),
    "categories for blocks": (MixedNB, lambda: fitted_statistics(CategoricalNB)),
    "numbers for categories": (CategoricalNB, lambda: fitted_statistics(GaussianNB)),
    "a negative class count": (GaussianNB, lambda: replace(fitted_statistics(), class_count=np.array([3.0, -3.0]))),
    "a class count of NaN": (GaussianNB, lambda: replace(fitted_statistics(), class_count=np.array([np.nan, 3.0]))),
    "a class count too many": (GaussianNB, lambda: replace(fitted_statistics(), class_count=np.ones(3))),
    "classes out of order": (GaussianNB, lambda: replace(fitted_statistics(), classes=np.array([1, 0]))),
    "a class twice": (GaussianNB, lambda: replace(fitted_statistics(), classes=np.array([1, 1]))),
    "a class too many": (GaussianNB, lambda: replace(fitted_statistics(), classes=np.array([0, 1, 5]))),
    "means of one column": (GaussianNB, lambda: with_features(mean=np.zeros((2, 1)))),
    "weights of three classes": (GaussianNB, lambda: with_features(weight=np.ones((3, 2)))),
    "a negative weight": (GaussianNB, lambda: with_features(weight=np.array([[3.0, 3.0], [3.0, -3.0]]))),
    "a negative word count": (MultinomialNB, lambda: with_features(MultinomialNB, word_count=-np.ones((2, 2)))),
    "a word count of NaN": (MultinomialNB, lambda: with_features(MultinomialNB, word_count=np.full((2, 2), np.nan))),
    "word counts of three columns": (MultinomialNB, lambda: with_features(MultinomialNB, word_count=np.ones((2, 3)))),
}


@pytest.mark.parametrize(("make", "statistics"), FOREIGN.values(), ids=FOREIGN.keys())
def test_statistics_that_this_model_cannot_have_are_refused(make, statistics):
    statistics = statistics()
    for model in (make(), make().fit(ROWS, LABELS)):
        with refused(model, "statistics|count|class|merge"):
            model.from_statistics(statistics)
    with refused(model, "statistics|count|class|merge"):
        model.merge(statistics)


@models(EVERY)
def test_statistics_give_the_model_they_came_from(make):
    model = make().fit(FRAME, LABELS)
    again = make().from_statistics(copy.deepcopy(model.statistics_))
    assert isinstance(again.statistics_, Statistics)
    close(again.predict_joint_log_proba(FRAME), model.predict_joint_log_proba(FRAME))


MIXED_ROWS = pd.DataFrame(
    {
        "wind": ["west", "north", "west", "east", "north", "west", "south", "east"],
        "rain": [0.1, 2.5, 3.25, 0.0, 7.75, 1.5, 0.5, 2.25],
        "open": [True, False, True, True, False, False, True, False],
    }
)
BLOCKS = [
    ("wind", CategoricalNB(), ["wind"]),
    ("rain", GaussianNB(variance="shared"), ["rain"]),
    ("open", BernoulliNB(), ["open"]),
]


@pytest.mark.parametrize("blocks", ["auto", BLOCKS], ids=["automatic", "stated"])
@pytest.mark.parametrize("labels", [[0, 1, 0, 1, 0, 1, 0, 1], list("abbabccb")], ids=["same classes", "other classes"])
def test_mixed_models_of_two_halves_merge_to_the_whole(blocks, labels):
    first, second = MIXED_ROWS[:4], MIXED_ROWS[4:]
    merged = MixedNB(blocks=blocks).fit(first, labels[:4]).merge(MixedNB(blocks=blocks).fit(second, labels[4:]))
    whole = MixedNB(blocks=blocks).fit(MIXED_ROWS, labels)
    assert_array_equal(merged.classes_, whole.classes_)
    close(merged.predict_joint_log_proba(MIXED_ROWS), whole.predict_joint_log_proba(MIXED_ROWS))


@models({"list": list, "array": np.array})
def test_a_mask_chooses_the_columns_of_a_block(make):
    masks = [(name, block, make([name == c for c in MIXED_ROWS.columns])) for name, block, _ in BLOCKS]
    by_mask, by_name = (MixedNB(blocks=b).fit(MIXED_ROWS, [0, 1] * 4) for b in (masks, BLOCKS))
    close(by_mask.predict_joint_log_proba(MIXED_ROWS), by_name.predict_joint_log_proba(MIXED_ROWS))


# ----------------------------------------------------------------------------------------------------
# what no number answers


@models(DISCRIMINANTS)
def test_a_row_without_which_the_rest_is_singular_has_no_leave_one_out_density(make):
    rows = [[-117.4, -37.0, 80.4], [3374.9, -5.8, -144.6], [-584.4, 109.0, -14.7], [-371.8, 90.8, 12.0]]
    model = make(prior="reference").fit(rows, [0] * 4)
    with pytest.warns(ZeroProbabilityWarning, match="4 of 4"):
        assert np.isnan(model.loo(rows, [0] * 4).joint).all()


@models(DISCRIMINANTS)
def test_only_the_row_that_the_others_need_has_no_leave_one_out_density(make):
    rows = [[0, 0], [1, 1], [2, 2], [3, 3], [1, 5]]
    model = make(prior="reference").fit(rows, [0] * 5)
    with pytest.warns(ZeroProbabilityWarning, match="1 of 5"):
        assert_array_equal(np.isnan(model.loo(rows, [0] * 5).joint), [False] * 4 + [True])


def test_the_log_odds_of_a_row_impossible_in_both_classes_are_nan_with_a_warning():
    model = GaussianNB(inference="mle").fit([[0], [1e-6], [5], [5 + 1e-6]], [0, 0, 1, 1])
    with pytest.warns(ZeroProbabilityWarning):
        odds = model.decision_function([[0], [1e150], [5]])
    assert_array_equal(np.isnan(odds), [False, True, False])


# ----------------------------------------------------------------------------------------------------
# what belongs to the model

GIVEN = {
    "class_prior": (GaussianNB, lambda a: {"class_prior": a}),
    "priors": (GaussianNB, lambda a: {"priors": a}),
    "alpha": (MultinomialNB, lambda a: {"alpha": a}),
    "class_alpha": (CategoricalNB, lambda a: {"class_alpha": a}),
    "a prior mean": (GaussianNB, lambda a: {"prior": NormalInverseGamma(mean=a)}),
    "a prior shape": (PoissonNB, lambda a: {"prior": Gamma(a, 1.0)}),
    "a prior mean vector": (GaussianDiscriminantAnalysis, lambda a: {"prior": NormalInverseWishart(mean=a)}),
}


@pytest.mark.parametrize(("make", "options"), GIVEN.values(), ids=GIVEN.keys())
def test_an_array_changed_after_the_fit_does_not_reach_the_model(make, options):
    given = np.array([0.5, 0.5])
    model = make(**options(given)).fit(ROWS, LABELS)
    before = model.predict_joint_log_proba(ROWS)
    given[:] = [0.9, 0.1]
    for later in (model, pickle.loads(pickle.dumps(model))):
        assert_array_equal(later.predict_joint_log_proba(ROWS), before)


def arrays(value):
    """The arrays that an attribute hands out, however nested."""
    if isinstance(value, np.ndarray):
        return [value] if value.dtype.kind in "fiu" and value.size else []
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in arrays(v)]
    if isinstance(value, Statistics) or type(value).__module__.startswith(("bayesgen.families", "bayesgen.priors")):
        return [a for name, v in vars(value).items() if not name.startswith("_") for a in arrays(v)]
    return []


@models(EVERY)
@pytest.mark.parametrize("inference", ["exact", "mean"])
def test_writing_into_what_the_model_hands_out_does_not_change_it(make, inference):
    model, untouched = make(inference=inference).fit(ROWS, LABELS), make(inference=inference).fit(ROWS, LABELS)
    expected = untouched.predict_joint_log_proba(ROWS)
    for name in [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]:
        for array in arrays(getattr(model, name, None)):
            if array.flags.writeable:
                array[...] = 99
            else:
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 99
    assert_array_equal(model.predict_joint_log_proba(ROWS), expected)
    for name in ("class_count_", "class_log_prior_"):
        assert not getattr(model, name).flags.writeable
