"""Rows and labels that no model means to learn from: refused by name, with the model left as it was; or understood."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from odd_cases import FRAME, GAUSSIAN, LABELS, NUMERIC, ROWS, TABLES, cases, close, models, refused, with_cell

from bayesgen import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB

# ----------------------------------------------------------------------------------------------------
# dates

DAYS = pd.date_range("2020-01-01", periods=6)
DATES = [datetime.date(2020, 1, day) for day in range(1, 7)]
DATED = {
    "days": (ROWS.astype("datetime64[D]"), "column 0"),
    "durations": (ROWS.astype("timedelta64[s]"), "column 0"),
    "pandas dates": (FRAME.assign(weight=DAYS), "weight"),
    "pandas dates in a time zone": (FRAME.assign(weight=DAYS.tz_localize("UTC")), "weight"),
    "pandas periods": (FRAME.assign(weight=pd.period_range("2020", periods=6, freq="D")), "weight"),
    "pandas durations": (FRAME.assign(weight=pd.to_timedelta(np.arange(6), "D")), "weight"),
    "polars dates": (pl.from_pandas(FRAME).with_columns(weight=pl.Series(DATES)), "weight"),
    "polars times": (pl.from_pandas(FRAME).with_columns(weight=pl.Series(DATES).cast(pl.Datetime)), "weight"),
    "polars durations": (pl.from_pandas(FRAME).with_columns(weight=pl.col("weight").cast(pl.Duration)), "weight"),
}


@models(NUMERIC)
@pytest.mark.parametrize(("rows", "column"), DATED.values(), ids=DATED.keys())
def test_dates_are_not_numbers(make, rows, column):
    with refused(model := make(), column, "date"):
        model.fit(rows, LABELS)
    model = make().fit(ROWS if isinstance(rows, np.ndarray) else FRAME, LABELS)
    for learn_or_predict in (model.predict_proba, lambda x: model.partial_fit(x, LABELS)):
        with refused(model, column, "date"):
            learn_or_predict(rows)


# ----------------------------------------------------------------------------------------------------
# labels

MISSING_LABEL = {
    "a list of texts and NaN": ["a", np.nan, "b", "a", "b", "a"],
    "a list of texts and None": ["a", None, "b", "a", "b", "a"],
    "texts and NaN": pd.Series(["a", np.nan, "b", "a", "b", "a"]),
    "days": np.array(["2020", "NaT", "2021", "2020", "2021", "2020"], "datetime64[D]"),
    "pandas dates": pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"] * 2)),
    "masked numbers": np.ma.masked_array(LABELS, mask=[1, 0, 0, 0, 0, 0]),
    "masked texts": np.ma.masked_array(["a", "b", "a", "b", "a", "b"], mask=[1, 0, 0, 0, 0, 0]),
}


@models({"Gaussian": GaussianNB, "mixed": MixedNB})
@cases("labels", MISSING_LABEL)
def test_a_row_without_a_label_is_refused(make, labels):
    with refused(model := make(), r"\by\b", "label", "missing|NaN|NaT|None|masked"):
        model.fit(ROWS, labels)
    with refused(model := make().fit(ROWS, LABELS), "label", "missing|NaN|NaT|None|masked"):
        model.loo(ROWS, labels)


@pytest.mark.parametrize("labels", [[0, "a"] * 3, [True, "a"] * 3, [1.5, "a"] * 3, (0, "a") * 3], ids=repr)
def test_a_list_of_labels_of_several_types_is_refused(labels):
    with refused(model := GaussianNB(), r"\by\b", "types"):
        model.fit(ROWS, labels)


@pytest.mark.parametrize("classes", [[0, "a"], [True, "a"]], ids=repr)
def test_classes_of_several_types_are_refused(classes):
    with refused(model := GaussianNB(), "classes|labels", "types"):
        model.partial_fit(ROWS, LABELS, classes=classes)


@pytest.mark.parametrize("classes", [["a", None], ["a", np.nan], [0, np.nan], [0, None]], ids=repr)
def test_missing_classes_are_refused(classes):
    with refused(model := GaussianNB(), "classes|label", "missing|NaN|None"):
        model.partial_fit(ROWS, LABELS, classes=classes)


@pytest.mark.parametrize("classes", [[], (), np.array([])], ids=["list", "tuple", "array"])
def test_an_empty_list_of_classes_is_refused(classes):
    with refused(model := GaussianNB(), "classes"):
        model.partial_fit(ROWS, LABELS, classes=classes)


@models(NUMERIC | TABLES)
def test_as_many_labels_as_rows_are_needed(make):
    model = make().fit(ROWS, LABELS)
    for call in (model.fit, model.partial_fit, model.forget, model.loo, model.model):
        with refused(model, "6", "3"):
            call(ROWS, LABELS[:3])


# ----------------------------------------------------------------------------------------------------
# missing cells

NOTHING = {"None": [None] * 6, "NaN": [np.nan] * 6, "NA": pd.array([pd.NA] * 6, dtype="string")}
SKY = ["clear", "cloudy"] * 3


@models(TABLES)
@cases("nothing", {k: v for k, v in NOTHING.items() if k != "NaN"})
@pytest.mark.parametrize("inference", ["mean", "exact"])
def test_a_column_that_nobody_filled_in_says_nothing_later(make, nothing, inference):
    if make is MixedNB:
        make = lambda inference: MixedNB(blocks=[("b", CategoricalNB(inference=inference), slice(None))])  # noqa: E731
    without = make(inference=inference).fit(pd.DataFrame({"sky": SKY}), LABELS)
    expected = without.predict_joint_log_proba(pd.DataFrame({"sky": SKY}))
    for columns in (["sky", "wind"], ["wind", "sky"]):
        table = pd.DataFrame({"sky": SKY, "wind": nothing})[columns]
        model = make(inference=inference).fit(table, LABELS)
        for later in (["north"] * 6, nothing):
            close(model.predict_joint_log_proba(table.assign(wind=later)), expected)
        rows, _ = model.sample(5, random_state=0)
        assert pd.isna(np.asarray(rows)[:, columns.index("wind")].astype(object)).all()


@cases("nothing", NOTHING)
@models({"pandas": pd.DataFrame, "polars": pl.DataFrame})
def test_automatic_types_take_a_column_that_nobody_filled_in(make, nothing):
    table = make({"sky": SKY, "wind": list(nothing) if make is pd.DataFrame else [None] * 6})
    model = MixedNB().fit(table, LABELS)
    close(model.predict_proba(table), MixedNB().fit(table[["sky"]], LABELS).predict_proba(table[["sky"]]))
    model.sample(3, random_state=0)


@pytest.mark.parametrize("values", [["north", "west", "north"], [2, 0, 1], [0.5, 2.0, 0.5]], ids=repr)
def test_a_column_may_be_filled_in_from_the_second_batch_on(values):
    empty = [[None, "x"], [None, "y"], [None, "x"]]
    filled = [[value, "x"] for value in values]
    batches = CategoricalNB().partial_fit(empty, LABELS[:3], classes=[0, 1]).partial_fit(filled, LABELS[3:])
    whole = CategoricalNB().fit(empty + filled, LABELS)
    close(batches.predict_joint_log_proba(filled), whole.predict_joint_log_proba(filled))


@models({k: v for k, v in (NUMERIC | TABLES).items() if k != "multinomial" and "discriminant" not in k})
@pytest.mark.parametrize("dtype", [float, int])
def test_a_masked_cell_is_a_missing_cell(make, dtype):
    masked = np.ma.masked_array(ROWS.astype(dtype), mask=ROWS == 2)
    missing = np.where(ROWS == 2, np.nan, ROWS)
    model, expected = make().fit(masked, LABELS), make().fit(missing, LABELS)
    close(model.predict_joint_log_proba(masked), expected.predict_joint_log_proba(missing))
    close(expected.predict_joint_log_proba(masked), expected.predict_joint_log_proba(missing))


@models({k: v for k, v in NUMERIC.items() if k == "multinomial" or "discriminant" in k})
def test_a_masked_cell_is_refused_where_a_missing_cell_is(make):
    with refused(model := make(), "NaN|missing|masked", "column 0"):
        model.fit(np.ma.masked_array(ROWS, mask=ROWS == 3), LABELS)


@models({k: v for k, v in NUMERIC.items() if k != "multinomial" and "discriminant" not in k})
@pytest.mark.parametrize("nothing", [None, pd.NA, np.nan], ids=repr)
@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_missing_objects_among_numbers_are_missing_cells(make, nothing, frame):
    cells = ROWS.astype(object)
    cells[0, 1] = nothing
    missing = with_cell(np.nan, column=1)
    rows = pd.DataFrame(cells, columns=FRAME.columns) if frame else cells
    expected = make().fit(missing, LABELS).predict_joint_log_proba(missing)
    close(make().fit(rows, LABELS).predict_joint_log_proba(rows), expected)


# A cell that is no kind of number is a `TypeError`, as in scikit-learn.
STRANGE = {
    "a list": ([1, 2], TypeError),
    "a dictionary": ({}, TypeError),
    "a complex number": (1j, TypeError),
    "an object": (datetime.UTC, TypeError),
    "a date": (datetime.date(2020, 1, 1), ValueError),
    "an enormous integer": (10**400, ValueError),
}


@models(NUMERIC)
@pytest.mark.parametrize(("strange", "error"), STRANGE.values(), ids=STRANGE.keys())
def test_an_object_that_is_no_number_is_named_by_its_column(make, strange, error):
    cells = ROWS.astype(object)
    cells[0, 1] = strange
    with refused(model := make(), "column 1", error=error):
        model.fit(cells, LABELS)
    with refused(model := make().fit(FRAME, LABELS), "weight", error=error):
        model.predict(pd.DataFrame(cells, columns=FRAME.columns))


# ----------------------------------------------------------------------------------------------------
# numbers out of range


@models(NUMERIC | TABLES)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinity_is_refused_in_every_model(make, value):
    with refused(model := make(), "infinity", "column 1"):
        model.fit(with_cell(value, column=1), LABELS)
    with refused(model := make().fit(FRAME, LABELS), "infinity", "weight"):
        model.predict_proba(pd.DataFrame(with_cell(value, column=1), columns=FRAME.columns))


@models({"categorical": CategoricalNB, "Bernoulli": BernoulliNB, "Gaussian": GaussianNB, "Poisson": PoissonNB})
def test_an_infinity_is_refused_in_every_block(make):
    with refused(model := MixedNB(blocks=[("a", make(), [0]), ("b", make(), [1])]), "infinity", "column 1"):
        model.fit(with_cell(np.inf, column=1), LABELS)


@models(GAUSSIAN)
@pytest.mark.parametrize("value", [1e160, -1e300, 1.7e308])
def test_a_measurement_whose_square_overflows_is_refused(make, value):
    with refused(model := make(), "column 1"):
        model.fit(with_cell(value, column=1), LABELS)
    with refused(model := make().fit(FRAME, LABELS), "weight"):
        model.predict_proba(pd.DataFrame(with_cell(value, column=1), columns=FRAME.columns))


@models(GAUSSIAN)
@pytest.mark.parametrize("unit", [1e100, 1e-100])
def test_measurements_in_remote_units_are_ordinary(make, unit):
    close(make().fit(ROWS * unit, LABELS).predict_proba(ROWS * unit), make().fit(ROWS, LABELS).predict_proba(ROWS))


@models(NUMERIC | TABLES)
def test_half_precision_numbers_and_labels_are_ordinary(make):
    half = make().fit(ROWS.astype(np.float16), LABELS.astype(np.float16))
    expected = make().fit(ROWS, LABELS).predict_joint_log_proba(ROWS)
    close(half.predict_joint_log_proba(ROWS.astype(np.float16)), expected)


@models({"multinomial": MultinomialNB, "Poisson": PoissonNB})
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [1e201, 1.7e308])
def test_an_astronomical_count_is_refused(make, storage, value):
    with refused(model := make(), "column 1"):
        model.fit(storage(with_cell(value, column=1)), LABELS)
    with refused(model := make().fit(ROWS, LABELS), "column 1"):
        model.predict_proba(storage(with_cell(value, column=1)))


@models({"multinomial": MultinomialNB, "Poisson": PoissonNB})
def test_entries_of_one_cell_are_added_before_their_sign_is_judged(make):
    def entries(first, second):
        data, index = np.array([first, second, 1.0]), np.array([0, 0, 1])
        return sp.csr_matrix((data, index, np.array([0, 2, 3, 3, 3, 3, 3])), shape=(6, 2))

    rows = entries(2.0, -1.0)
    model = make().fit(rows, LABELS)
    close(model.predict_joint_log_proba(rows), make().fit(rows.toarray(), LABELS).predict_joint_log_proba(rows))
    assert rows.nnz == 3
    with refused(model, "column 0", "negative"):
        model.partial_fit(entries(1.0, -2.0), LABELS)
