"""Statistics travel as text, tables and Parquet, and a database can make them."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    Statistics,
)

pd = pytest.importorskip("pandas")

X, Y = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[Y]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(X + 1e7, columns=COLUMNS)
COUNTS = pd.DataFrame(np.random.default_rng(0).poisson(1.0 + X), columns=list("dcab"))
LEVELS = pd.DataFrame(
    {
        "size": pd.Categorical(np.array(["S", "M", "L"])[Y], categories=["S", "M", "L", "XL"]),
        "code": (X[:, 0] > 6).astype(int),
        "day": np.array(["2020-01-05", "2020-01-03"], dtype="datetime64[D]")[(X[:, 1] > 3).astype(int)],
    }
)

MODELS = [
    (MultinomialNB(multinomial_coefficient=True), COUNTS),
    (MultinomialNB(), COUNTS.to_numpy()),
    (BernoulliNB(binarize=1.0), COUNTS),
    (PoissonNB(), COUNTS.mask(COUNTS == 3)),
    (CategoricalNB(), LEVELS),
    (CategoricalNB(), COUNTS.to_numpy()),
    (GaussianNB(), FRAME.mask(FRAME == 1e7 + 5.0)),
    (GaussianNB(variance="shared"), X),
    (GaussianDiscriminantAnalysis(), FRAME),
    (GaussianDiscriminantAnalysis(covariance="per_class"), X),
]


def name(value) -> str:
    return repr(value)[:50].replace("\n", " ")


def same(a: Statistics, b: Statistics) -> None:
    """Bit for bit."""
    assert a.classes.dtype == b.classes.dtype
    assert_array_equal(a.classes, b.classes)
    assert_array_equal(a.class_count, b.class_count)
    assert jax.tree.structure(a.features) == jax.tree.structure(b.features)
    for p, q in zip(jax.tree.leaves(a.features), jax.tree.leaves(b.features), strict=True):
        assert np.shape(p) == np.shape(q)
        assert_array_equal(p, q)
    assert (a.columns.names is None) == (b.columns.names is None)
    if a.columns.names is not None:
        assert list(a.columns.names) == list(b.columns.names)
    for p, q in zip(a.columns.levels or (), b.columns.levels or (), strict=True):
        assert p.dtype == q.dtype
        assert_array_equal(p, q)


@pytest.mark.parametrize(("model", "rows"), MODELS, ids=name)
@pytest.mark.parametrize("y", [SPECIES, Y - 1, Y.astype(float), Y > 0], ids=["text", "int", "float", "bool"])
def test_statistics_come_back_bit_for_bit(model, rows, y, tmp_path) -> None:
    statistics = model.fit(rows, y).statistics_
    same(Statistics.from_json(statistics.to_json()), statistics)
    pytest.importorskip("pyarrow")
    path = tmp_path / "statistics.parquet"
    statistics.to_parquet(path)
    back = Statistics.from_parquet(path)
    same(back, statistics)
    again = type(model)(**model.get_params()).from_statistics(back)
    assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.parametrize(("model", "rows"), MODELS, ids=name)
def test_a_long_table_holds_everything(model, rows) -> None:
    statistics = model.fit(rows, SPECIES).statistics_
    table = statistics.to_table()
    assert {"class", "feature", "statistic", "value"} <= set(table.columns)
    features = None if statistics.columns.names is None else list(statistics.columns.names)
    levels = None
    if statistics.columns.levels is not None and features is not None:
        levels = dict(zip(features, statistics.columns.levels, strict=True))
    shuffled = table.sample(frac=1.0, random_state=0)
    same(Statistics.from_table(shuffled, features, levels), statistics)


def test_every_digit_survives_text() -> None:
    rng = np.random.default_rng(1)
    odd = rng.normal(size=(150, 4)) * 10.0 ** rng.integers(-100, 100, (150, 4))
    statistics = GaussianNB().fit(odd, Y).statistics_
    same(Statistics.from_json(statistics.to_json()), statistics)
    mixed = MixedNB().fit(LEVELS[["size", "code"]].assign(length=X[:, 2]), Y).statistics_
    back = Statistics.from_json(mixed.to_json())
    assert [(n, i.tolist()) for n, i, _ in back.columns.blocks] == [(n, i.tolist()) for n, i, _ in mixed.columns.blocks]
    for p, q in zip(jax.tree.leaves(back.features), jax.tree.leaves(mixed.features), strict=True):
        assert_array_equal(p, q)
    with pytest.raises(ValueError, match=r"mixed model are of several kinds.*to_json\(\)"):
        mixed.to_table()


# ------------------------------------------------------------------------------- what a database gives


@pytest.fixture
def database():
    db = sqlite3.connect(":memory:")
    long = COUNTS.assign(species=SPECIES).reset_index(names="doc").melt(["doc", "species"], var_name="word")
    long[long["value"] > 0].to_sql("words", db, index=False)
    pd.DataFrame({"doc": range(150), "species": SPECIES}).to_sql("docs", db, index=False)
    flowers = pd.DataFrame(X, columns=COLUMNS).assign(species=SPECIES, size=LEVELS["size"].astype(str))
    flowers.to_sql("flowers", db, index=False)
    yield db
    db.close()


WORDS = """
SELECT species AS class, NULL AS feature, 'class_count' AS statistic, COUNT(*) AS value FROM docs GROUP BY species
UNION ALL
SELECT species, word, '{statistic}', {value} FROM words GROUP BY species, word
"""


@pytest.mark.parametrize(
    ("model", "statistic", "value"),
    [
        (MultinomialNB(), "word_count", "SUM(value)"),
        (BernoulliNB(), "present", "COUNT(*)"),
        (PoissonNB(), "total", "SUM(value)"),
    ],
    ids=["multinomial", "bernoulli", "poisson"],
)
def test_sql_groups_are_a_fit_on_counts(database, model, statistic, value) -> None:
    table = pd.read_sql(WORDS.format(statistic=statistic, value=value), database)
    model.from_statistics(Statistics.from_table(table, features=COUNTS.columns))
    rows = type(model)().fit(COUNTS, SPECIES)
    assert_array_equal(model.predict_proba(COUNTS), rows.predict_proba(COUNTS))
    if isinstance(model, PoissonNB):
        assert np.isnan(model.log_evidence_)  # ln x! is not in the table
    else:
        assert model.log_evidence_ == rows.log_evidence_
    cursor = database.execute(WORDS.format(statistic=statistic, value=value))  # without pandas
    names = [d[0] for d in cursor.description]
    plain = dict(zip(names, zip(*cursor.fetchall(), strict=True), strict=True))
    again = type(model)().from_statistics(Statistics.from_table(plain))
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert_allclose(again.predict_proba(COUNTS[list("abcd")]), rows.predict_proba(COUNTS), rtol=1e-12)


def test_sql_groups_are_a_fit_on_levels(database) -> None:
    table = pd.read_sql(
        """
        SELECT species AS class, NULL AS feature, NULL AS level, 'class_count' AS statistic, COUNT(*) AS value
        FROM flowers GROUP BY species
        UNION ALL
        SELECT species, 'size', size, 'level_count', COUNT(*) FROM flowers GROUP BY species, size
        """,
        database,
    )
    found = Statistics.from_table(table, levels={"size": ["S", "M", "L", "XL"]})
    model, rows = CategoricalNB().from_statistics(found), CategoricalNB().fit(LEVELS[["size"]], SPECIES)
    assert_array_equal(model.predict_proba(LEVELS[["size"]]), rows.predict_proba(LEVELS[["size"]]))
    assert Statistics.from_table(table).columns.levels[0].tolist() == ["L", "M", "S"]


def test_sql_groups_are_a_fit_on_measurements(database) -> None:
    moments = " UNION ALL ".join(
        f"""
        SELECT species, '{c}', 'mean', AVG("{c}") FROM flowers GROUP BY species UNION ALL
        SELECT species, '{c}', 'scatter', SUM(("{c}" - m) * ("{c}" - m)) FROM flowers
        JOIN (SELECT species AS s, AVG("{c}") AS m FROM flowers GROUP BY species) ON s = species GROUP BY species
        """
        for c in COLUMNS
    )
    head = "SELECT species AS class, NULL AS feature, 'class_count' AS statistic, COUNT(*) AS value FROM flowers "
    table = pd.read_sql(f"{head} GROUP BY species UNION ALL {moments}", database)
    model = GaussianNB().from_statistics(Statistics.from_table(table, features=COLUMNS))
    frame = pd.DataFrame(X, columns=COLUMNS)
    rows = GaussianNB().fit(frame, SPECIES)
    assert_allclose(model.predict_proba(frame), rows.predict_proba(frame), rtol=1e-10)
    assert_allclose(model.log_evidence_, rows.log_evidence_, rtol=1e-12)


def long(groups, statistic: str):
    """A data frame by class as rows of a long table."""
    out = groups.rename_axis("class").reset_index().melt("class", var_name="feature")
    return out.assign(statistic=statistic)


@pytest.mark.parametrize(("how", "statistic"), [(1, "var_samp"), (0, "var_pop")])
def test_pandas_groups_are_a_fit_on_measurements(how, statistic) -> None:
    frame = pd.DataFrame(X, columns=COLUMNS)
    frame.iloc[::7, 1] = np.nan
    groups = frame.groupby(SPECIES)
    count = groups.size().rename_axis("class").rename("value").reset_index().assign(statistic="class_count")
    parts = [count, long(groups.count(), "weight"), long(groups.mean(), "mean"), long(groups.var(ddof=how), statistic)]
    found = Statistics.from_table(pd.concat(parts), features=COLUMNS)
    model, rows = GaussianNB().from_statistics(found), GaussianNB().fit(frame, SPECIES)
    assert_allclose(model.predict_proba(frame), rows.predict_proba(frame), rtol=1e-9)


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_pandas_groups_are_a_fit_with_a_covariance(covariance) -> None:
    frame = pd.DataFrame(X, columns=COLUMNS)
    groups = frame.groupby(SPECIES)
    second = groups.cov().rename_axis(["class", "feature"]).reset_index()
    second = second.melt(["class", "feature"], var_name="feature_bis").assign(statistic="covar_samp")
    second = second[second["feature"] <= second["feature_bis"]]  # one triangle
    count = groups.size().rename_axis("class").rename("value").reset_index().assign(statistic="class_count")
    table = pd.concat([count, long(groups.mean(), "mean"), second])
    found = Statistics.from_table(table, features=COLUMNS, pool=covariance == "shared")
    model = GaussianDiscriminantAnalysis(covariance=covariance).from_statistics(found)
    rows = GaussianDiscriminantAnalysis(covariance=covariance).fit(frame, SPECIES)
    assert_allclose(model.predict_proba(frame), rows.predict_proba(frame), rtol=1e-8, atol=1e-12)
    if covariance == "shared":
        with pytest.raises(ValueError, match="of another model"):
            GaussianDiscriminantAnalysis().from_statistics(Statistics.from_table(table, features=COLUMNS))


def test_a_parquet_table_of_another_engine_is_read(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    statistics = MultinomialNB().fit(COUNTS, SPECIES).statistics_
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pandas(statistics.to_table(), preserve_index=False), path)
    same(Statistics.from_parquet(path, features=list("dcab")), statistics)
    path.write_bytes(b"no")
    with pytest.raises(ValueError, match="is not a Parquet file"):
        Statistics.from_parquet(path)


# ------------------------------------------------------------------------------- what is refused


def table(**changes):
    out = {
        "class": ["a", "b", "a", "b"],
        "feature": [None, None, "x", "x"],
        "statistic": ["class_count"] * 2 + ["word_count"] * 2,
        "value": [1, 2, 3, 4],
    }
    return out | changes


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"statistic": ["word_count"] * 4}, {}, "no rows with the statistic class_count"),
        ({"statistic": ["class_count"] * 4}, {}, "class_count and one of word_count, present"),
        ({"statistic": ["class_count"] * 2 + ["word_count", "mean"]}, {}, "and one of"),
        ({"statistic": ["class_count"] * 2 + ["word_count", "absent"]}, {}, "'absent' does not go with 'word_count'"),
        ({"class": ["a", "b", "a", "a"]}, {}, "'word_count' twice for a, x"),
        ({"class": ["a", "b", "a", "c"]}, {}, "row 3 of table.*'c' where one of the classes"),
        ({"class": ["a", None, "a", "b"]}, {}, "class_count has no class"),
        ({"value": [1, 2, 3, None]}, {}, r"missing in row 3 \(word_count\)"),
        ({"value": [1, 2, 3, "many"]}, {}, "value of table must hold numbers"),
        ({}, {"features": ["y"]}, "has the feature 'x', which is not among"),
        ({"statistic": ["class_count"] * 2 + ["present"] * 2}, {}, "it counts rows, not occurrences"),
        ({"statistic": ["class_count"] * 2 + ["level_count"] * 2}, {}, "has no column level"),
        ({"statistic": ["class_count"] * 2 + ["mean"] * 2}, {}, "one of the statistics scatter, var_pop, var_samp"),
    ],
)
def test_tables_that_cannot_be_meant_are_named(changes, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Statistics.from_table(table(**changes), **options)


def test_other_texts_are_refused() -> None:
    text = PoissonNB().fit(COUNTS, Y).statistics_.to_json()
    newer = json.loads(text) | {"format_version": 2}
    other = json.loads(text)
    other["value"] = {"is": "Evidence"}
    for bad in ("", "{}", "[1]", text[:-5], json.dumps(newer), json.dumps(other), "[" * 100_000):
        with pytest.raises(ValueError, match=r"expected the text that Statistics.to_json\(\) makes"):
            Statistics.from_json(bad)
    with pytest.raises(ValueError, match="must have the columns class, feature, statistic and value; it has"):
        Statistics.from_table({"class": []})


def moments(**changes):
    out = {
        "class": list("ab") * 3,
        "feature": [None, None, 0, 0, 0, 0],
        "statistic": ["class_count"] * 2 + ["mean"] * 2 + ["var_pop"] * 2,
        "value": [10, 10, 5.0, 9.0, 1.0, 1.0],
    }
    return out | changes


@pytest.mark.parametrize(("row", "what"), [(2, "'mean' for class 'a'"), (5, "'var_pop' for class 'b'")])
def test_means_and_variances_that_are_absent_are_named(row, what) -> None:
    lacking = {key: values[:row] + values[row + 1 :] for key, values in moments().items()}
    with pytest.raises(ValueError, match=f"no row with the statistic {what}, feature 0, which has weight"):
        Statistics.from_table(lacking)
    lacking["value"][0 if "'a'" in what else 1] = 0  # an empty class has none
    assert Statistics.from_table(lacking).features.mean.shape == (2, 1)


def test_covariances_that_are_absent_are_named() -> None:
    table = GaussianDiscriminantAnalysis(covariance="per_class").fit(X, SPECIES).statistics_.to_table()
    gone = (table["class"] == "setosa") & (table["feature"] == 1) & (table["feature_bis"] == 2)
    other = (table["class"] == "setosa") & (table["feature"] == 2) & (table["feature_bis"] == 1)
    Statistics.from_table(table[~gone])
    with pytest.raises(ValueError, match="'scatter' for class 'setosa', feature 1, feature_bis 2"):
        Statistics.from_table(table[~gone & ~other])
    gone = (table["statistic"] == "mean") & (table["class"] == "setosa") & (table["feature"] == 3)
    with pytest.raises(ValueError, match="'mean' for class 'setosa', feature 3"):
        Statistics.from_table(table[~gone])


NORMAL = GaussianNB().fit(X, Y)
FULL = GaussianDiscriminantAnalysis().fit(X, Y)


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (NORMAL, {"scatter": lambda v: -v}, "scatter .or a variance. is negative"),
        (NORMAL, {"scatter": lambda v: v * np.inf}, "scatter holds NaN or infinity"),
        (NORMAL, {"mean": lambda v: v * np.nan}, "mean holds NaN or infinity"),
        (NORMAL, {"weight": lambda v: v + 1}, "weight must be class_count or less"),
        (FULL, {"scatter": lambda v: -v}, "scatter .or a variance. is negative"),
        (FULL, {"scatter": lambda v: v * np.nan}, "scatter holds NaN or infinity"),
        (FULL, {"scatter": np.tril}, "scatter must be symmetric"),
        (FULL, {"scatter": lambda v: 2 * v - np.diag(np.diag(v))}, "has a negative eigenvalue"),
        (FULL, {"weight": lambda v: v + 1}, "weight must be class_count"),
        (FULL, {"weight": lambda v: v - 1}, "weight must be class_count"),
        (FULL, {"mean": lambda v: v[:2]}, "a mean for each of 3 classes"),
        (NORMAL, {"scatter": lambda v: v[0]}, "a mean for each of 3 classes"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else name(value),
)
def test_moments_that_no_rows_have_are_refused(model, changes, message) -> None:
    good = model.statistics_
    moved = {key: change(getattr(good.features, key)) for key, change in changes.items()}
    bad = Statistics(good.classes, good.class_count, good.features._replace(**moved), good.columns)
    with pytest.raises(ValueError, match=message):
        type(model)().from_statistics(bad)
    if message != "weight must be class_count" or moved["weight"][0] > 50:  # fewer: rows may be without any cell
        with pytest.raises(ValueError, match=message):
            Statistics.from_json(bad.to_json())
    with pytest.raises(ValueError, match=r"variance\) is negative"):
        Statistics.from_table(moments(value=[10, 10, 5.0, 9.0, 1.0, -1.0]))


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("features",), "text", "features must be the statistics of a family"),
        (("classes",), None, "classes must be an array"),
        (("classes",), [0, 1], "classes must be an array"),
        (("class_count",), [1.0], "one class_count for each"),
        (("columns", "blocks"), -1, "blocks must be None or a tuple"),
        (("columns", "blocks"), "x", "blocks must be None or a tuple"),
        (("columns", "n_features"), "x", "n_features must be a whole number"),
        (("columns", "names"), ["x"], "names must be None or the names of 4"),
        (("columns",), 3, "columns must be a Columns value"),
        (("features", "mean", "data"), [None] * 12, "mean holds NaN"),
    ],
)
def test_texts_that_hold_no_statistics_are_refused(where, value, message) -> None:
    content = json.loads(NORMAL.statistics_.to_json())
    place = content["value"]
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(ValueError, match=message):
        Statistics.from_json(json.dumps(content))
    for version in ("1", True, 0, None, 1.5):
        with pytest.raises(ValueError, match="format_version must be a whole number"):
            Statistics.from_json(json.dumps(content | {"format_version": version}))


@pytest.mark.parametrize("unit", ["ns", "D", "s", "M"])
def test_dates_stay_dates(unit, tmp_path) -> None:
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype=f"datetime64[{unit}]")
    statistics = GaussianNB().fit(X, days[Y]).statistics_
    same(Statistics.from_json(statistics.to_json()), statistics)
    back = Statistics.from_table(statistics.to_table())
    assert_array_equal(back.classes.astype(days.dtype), days)
    assert unit != "ns" or back.classes.dtype == days.dtype
    pytest.importorskip("pyarrow")
    statistics.to_parquet(tmp_path / "x")
    same(Statistics.from_parquet(tmp_path / "x"), statistics)


@pytest.mark.parametrize("given", [None, [1, 2], "text", 3])
def test_what_is_no_table_is_named(given) -> None:
    with pytest.raises(ValueError, match="table must be a data frame"):
        Statistics.from_table(given)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"value": [1, 2, 3]}, {}, "must have one length.*'value': 3"),
        ({"class": ["a", "b"]}, {}, "must have one length.*'class': 2"),
        ({"value": 3}, {}, "a column of table must be a sequence; got 3"),
        ({"class": "abab"}, {}, "a column of table must be a sequence; got 'abab'"),
        ({"value": [1, 2, 3, 10**400]}, {}, "value of table must hold numbers"),
        ({"feature": [None, None, 0, 10**12]}, {}, "feature 1000000000000, .* too many columns: .* features="),
        ({}, {"features": ["x", "x"]}, "features has 'x' twice"),
        ({}, {"features": "x"}, "features must be a sequence"),
        ({}, {"features": 1}, "features must be a sequence"),
        (
            {"statistic": ["class_count"] * 2 + ["level_count"] * 2, "level": [None, None, 0, 10**12]},
            {},
            "level 1000000000000, .* too many: .* levels=",
        ),
    ],
)
def test_tables_of_another_form_are_named(changes, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Statistics.from_table(table(**changes), **options)


def test_large_positions_may_be_named() -> None:
    given = table(feature=[None, None, 5, 10**12])
    assert Statistics.from_table(given, features=[5, 10**12]).columns.n_features == 2


def test_damaged_parquet_files_are_named(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "x"
    with pytest.raises(ValueError, match="path must be the path of a Parquet file; got None"):
        Statistics.from_parquet(None)
    with pytest.raises(FileNotFoundError):
        Statistics.from_parquet(path)
    NORMAL.statistics_.to_parquet(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at, bit in zip(rng.integers(0, len(whole), 400), rng.integers(0, 8, 400), strict=True):
        broken = bytearray(whole)
        broken[at] ^= 1 << bit
        path.write_bytes(broken)
        with contextlib.suppress(ValueError):
            Statistics.from_parquet(path)
