"""Levels of categories and words of documents in unusual forms: united, or refused by the name of the column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from odd_cases import LABELS, TABLES, cases, close, models, refused

from bayesgen import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB

# ----------------------------------------------------------------------------------------------------
# levels


def test_the_levels_of_a_polars_enum_are_those_it_declares():
    wind = pl.Series("wind", ["west", "north", None, "west"], dtype=pl.Enum(["east", "west", "north"]))
    model = CategoricalNB().fit(pl.DataFrame([wind]), [0, 1, 0, 1])
    assert model.categories_[0].tolist() == ["east", "west", "north"]
    assert_array_equal(model.category_count_[0], [[0, 1, 0], [0, 1, 1]])


@models(TABLES)
def test_the_levels_of_a_polars_categorical_are_those_it_holds(make):
    pl.Series(["elsewhere", "unseen"], dtype=pl.Categorical)  # one cache of strings for all columns
    wind = pl.DataFrame({"wind": pl.Series(["west", "north", None, "west"], dtype=pl.Categorical)})
    model = make().fit(wind, [0, 1, 0, 1])
    levels = model.categories_ if make is CategoricalNB else model.blocks_[0][1].categories_
    assert sorted(levels[0].tolist()) == ["north", "west"]
    text = wind.with_columns(pl.col("wind").cast(pl.String))
    close(model.predict_proba(wind), make().fit(text, [0, 1, 0, 1]).predict_proba(text))


@pytest.mark.parametrize("code", [1_000_001, 10**15])
def test_codes_that_are_no_codes_are_refused(code):
    rows = pd.DataFrame({"height": [0, 1], "area": [code, 1]})
    with refused(model := CategoricalNB(), "area", "categories="):
        model.fit(rows, [0, 1])
    model = CategoricalNB().fit(rows.assign(area=[2, 1]), [0, 1])
    with refused(model, "area", "categories="):
        model.partial_fit(rows, [0, 1])


AUTOMATIC = {
    "small codes": ([0, 3, 5, 3, 0, 5], [0, 1, 2, 3, 4, 5]),
    "the largest code": ([19, 2, 2, 19, 2, 2], list(range(20))),
    "years": ([1999, 2024, 1999, 2001, 2024, 1999], [1999, 2001, 2024]),
    "one beyond": ([20, 2, 2, 20, 2, 2], [2, 20]),
    "signs": ([-1, 1, 0, 1, -1, 0], [-1, 0, 1]),
    "postcodes": ([94_110_001, 10**15, 7, 7, 7, 7], [7, 94_110_001, 10**15]),
}


@pytest.mark.parametrize(("values", "levels"), AUTOMATIC.values(), ids=AUTOMATIC.keys())
@pytest.mark.parametrize("dtype", [int, float])
def test_few_whole_numbers_are_codes_when_small_and_names_otherwise(values, levels, dtype):
    column = np.array(values, dtype=dtype)[:, None]
    model = MixedNB().fit(column, LABELS)
    ((name, block, _),) = model.blocks_
    assert name == "categorical"
    assert_array_equal(block.categories_[0], levels)
    close(model.predict_proba(np.vstack([column, [[3]]])).sum(axis=1), 1)


UNITING = {
    "longer texts": (["a", "b"], ["ccc", "a"]),
    "texts as objects": (["a", "b"], np.array(["ccc", "a"], dtype=object)),
    "dates in other units": (
        np.array(["2020", "2021"], "datetime64[D]"),
        np.array(["2022", "2021"], "datetime64[s]"),
    ),
    "fractions after whole numbers": ([0.5, 2.0], [3, 2]),
    "codes as floats": ([0, 2], [3.0, 1.0]),
}
DISAGREEING = {
    "texts and codes": (["a", "b"], [0, 1]),
    "codes and texts": ([0, 1], ["a", "b"]),
    "codes and texts of codes": ([0, 1], ["0", "1"]),
    "bytes and texts": ([b"a", b"b"], ["a", "b"]),
    "dates and texts": (np.array(["2020", "2021"], "datetime64[D]"), ["2020-01-01", "a"]),
    "dates and codes": (np.array(["2020", "2021"], "datetime64[D]"), [0, 1]),
}


def column(values):
    return np.asarray(values)[:, None]


@pytest.mark.parametrize(("first", "second"), UNITING.values(), ids=UNITING.keys())
def test_levels_of_two_batches_are_united_across_dtypes(first, second):
    first, second = column(first), column(second)
    batches = CategoricalNB().fit(first, [0, 1]).partial_fit(second, [1, 0])
    merged = CategoricalNB().fit(first, [0, 1]).merge(CategoricalNB().fit(second, [1, 0]))
    if first.dtype.kind == "f" and second.dtype.kind == "i":
        merged = batches  # alone, the whole numbers of the second batch are codes, which declare 0..max
    if first.dtype.kind == "M":
        both = np.concatenate([first, second])
    else:
        both = np.array(first.tolist() + second.tolist(), dtype=object)
    whole = CategoricalNB().fit(both, [0, 1, 1, 0])
    for model in (batches, merged):
        for rows in (first, second):
            close(model.predict_joint_log_proba(rows), whole.predict_joint_log_proba(rows))


@pytest.mark.parametrize(("first", "second"), DISAGREEING.values(), ids=DISAGREEING.keys())
def test_levels_of_other_types_are_refused_by_name(first, second):
    first, second = pd.DataFrame({"wind": first}), pd.DataFrame({"wind": second})
    model = CategoricalNB().fit(first, [0, 1])
    with refused(model, "wind"):
        model.partial_fit(second, [0, 1])
    with refused(model, "wind"):
        model.merge(CategoricalNB().fit(second, [0, 1]))


@models(TABLES)
@pytest.mark.parametrize("handle_unknown", ["predictive", "ignore", "error"])
def test_numbers_where_the_levels_are_texts_are_refused_and_the_reverse(make, handle_unknown):
    numbers, texts = pd.DataFrame({"wind": [0, 1, 2]}), pd.DataFrame({"wind": ["0", "1", "2"]})
    if make is MixedNB:
        make = lambda handle_unknown: MixedNB(  # noqa: E731
            blocks=[("b", CategoricalNB(handle_unknown=handle_unknown), ["wind"])]
        )
    for known, other in ((numbers, texts), (texts, numbers)):
        with refused(model := make(handle_unknown=handle_unknown).fit(known, [0, 1, 0]), "wind"):
            model.predict_proba(other)


# ----------------------------------------------------------------------------------------------------
# tables and documents


@models(TABLES | {"Gaussian": GaussianNB})
def test_a_frame_without_columns_is_refused(make):
    with refused(model := make(), "column|feature"):
        model.fit(pd.DataFrame(index=range(6)), LABELS)


DOCUMENTS = {
    "one text": "abcd",
    "texts": ["abc", "de", "f", "g"],
    "bytes": [b"ab", b"c", b"d", b"e"],
    "words": [["a"], ["b"], ["a"], ["b"]],
    "numbers": [1, 2, 3, 4],
    "nested lists": [[[0, 1]], [[1, 1]], [[0, 0]], [[2, 1]]],
    "fractions": [[0.5], [1], [0], [2]],
    "infinities": [[np.inf], [1], [0], [2]],
    "complex numbers": [[1j], [1], [0], [2]],
    "booleans": [[True], [False], [True], [False]],
}


@models({"Bernoulli": BernoulliNB, "multinomial": MultinomialNB})
@cases("documents", DOCUMENTS)
def test_documents_are_sequences_of_whole_numbers(make, documents):
    with refused(model := make(input="tokens"), "document|token"):
        model.fit(documents, [0, 1, 0, 1])
    with refused(model := make(input="tokens").fit([[0, 1], [1]], [0, 1]), "document|token"):
        model.predict(documents)


@models({"Bernoulli": BernoulliNB, "multinomial": MultinomialNB})
@pytest.mark.parametrize("token", [100_000_001, 10**12, 1e300])
def test_an_enormous_token_needs_a_stated_vocabulary(make, token):
    with refused(model := make(input="tokens"), "vocabulary_size"):
        model.fit([[0, token], [1]], [0, 1])
    stated = make(input="tokens", vocabulary_size=2).fit([[0, token], [1]], [0, 1])
    assert_array_equal(stated.feature_count_, [[1, 0], [0, 1]])
    close(stated.predict_proba([[token, 1]]), stated.predict_proba([[1]]))
