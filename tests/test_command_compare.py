"""The command `bayesgen compare`: its files, its numbers, its page, and what it says of input it cannot use."""

from __future__ import annotations

import importlib.util
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold

from bayesgen import GaussianDiscriminantAnalysis, MixedNB, MultinomialNB, compare, feature_relevance
from bayesgen.main_job import main
from bayesgen.report import table as tables
from bayesgen.report.table import ReportError, read_file, read_table

FILES = {"report.html", "comparison.csv", "relevance.csv", "columns.csv"}
HAS_PENGUINS = importlib.util.find_spec("palmerpenguins") is not None


class Page(HTMLParser):
    """Reads a page, checks that its tags match, and keeps its text."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


class Report(NamedTuple):
    folder: Path
    page: Page
    source: str

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / name, index_col=0)


def report(folder: Path, *arguments: str) -> Report:
    assert main(["compare", *arguments, "--out", str(folder)]) == 0
    source = (folder / "report.html").read_text(encoding="utf-8")
    return Report(folder, Page(source), source)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The error of a command that ends with status 2."""
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *arguments])
    assert stopped.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def animals(n: int = 90) -> pd.DataFrame:
    """Two correlated numbers, categories, yes/no and several columns that are of no use."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    size = rng.normal(size=n) + y
    return pd.DataFrame(
        {
            "kind": np.array(["cat", "dog", "eel"])[y],
            "size": size,
            "weight": size + 0.5 * rng.normal(size=n) - y,
            "colour": np.where(rng.random(n) < 0.3 + 0.2 * y, "red", "grey"),
            "tame": rng.random(n) < 0.2 + 0.3 * y,
            "legs": rng.integers(2, 5, n),
            "name": [f"animal {i}" for i in range(n)],
            "empty": np.full(n, np.nan),
            "same": "x",
            "seen": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "row": np.arange(n) + 1,
        }
    )


@pytest.fixture(scope="module")
def animal_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("animals")
    animals().to_csv(folder / "animals.csv", index=False)
    return report(folder / "out", str(folder / "animals.csv"), "--target", "kind")


def test_the_folder_holds_the_page_and_three_tables(animal_report: Report) -> None:
    assert {path.name for path in animal_report.folder.iterdir()} == FILES


def test_columns_are_typed_or_left_out_with_a_reason(animal_report: Report) -> None:
    columns = animal_report.table("columns.csv")
    used = {"size": "gaussian", "weight": "gaussian", "colour": "categorical", "tame": "bernoulli"}
    assert columns.kind.to_dict() == {
        "kind": "target",
        **used,
        "legs": "categorical",
        **dict.fromkeys(("name", "empty", "same", "seen", "row"), "left out"),
    }
    for name, reason in {
        "name": "every value is different",
        "empty": "all values are missing",
        "same": "one value",
        "seen": "dates",
        "row": "numbers the rows",
    }.items():
        assert reason in columns.reason[name]
        assert name in animal_report.page.text
        assert columns.reason[name] in animal_report.page.text


def test_the_numbers_are_those_of_compare(animal_report: Report) -> None:
    data = animals()
    X, y = data[["size", "weight", "colour", "tame", "legs"]], data["kind"]
    X = X.assign(tame=X.tame.astype(float), colour=(X.colour == "red").astype(float))
    gda = GaussianDiscriminantAnalysis(covariance="per_class")
    rest = [b for b in MixedNB().fit(data[X.columns], y).blocks_ if b[0] != "gaussian"]
    # Levels of legs are 2, 3 and 4: names of levels, not codes from 0.
    frame = data[X.columns].assign(legs=data.legs.astype(str).astype("category"), colour=data.colour.astype("category"))
    blocks = [(name, estimator, columns.tolist()) for name, estimator, columns in rest] + [("gaussian", gda, [0, 1])]
    models = {"naive Bayes": MixedNB(), "discriminant analysis (own covariance)": MixedNB(blocks=blocks)}
    expected = compare(models, frame, y, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    found = animal_report.table("comparison.csv")
    numbers = ["log_evidence", "elpd_joint", "se_joint", "elpd_conditional", "accuracy", "log_loss", "brier"]
    for name in models:
        np.testing.assert_allclose(found.loc[name, numbers].astype(float), expected.loc[name, numbers].astype(float))


def test_the_first_model_has_the_least_log_loss_and_the_differences_are_to_it(animal_report: Report) -> None:
    found = animal_report.table("comparison.csv")
    assert found.log_loss.is_monotonic_increasing
    np.testing.assert_allclose(found.log_loss_difference, found.log_loss - found.log_loss.iloc[0], atol=1e-12)
    assert (found.se_log_loss_difference.iloc[1:] > 0).all()
    assert f"“{found.index[0]}” predicts best" in animal_report.page.text


def test_relevance_is_the_exact_bayes_factor_of_each_column(animal_report: Report) -> None:
    data = animals()
    expected = feature_relevance(MixedNB(), data[["size", "weight", "colour", "tame"]], data["kind"])
    found = animal_report.table("relevance.csv")
    np.testing.assert_allclose(found.log_bayes_factor[list(expected.names)], expected.log_bayes_factor)
    np.testing.assert_allclose(found.probability[list(expected.names)], expected.probability)
    assert found.log_bayes_factor.is_monotonic_decreasing


def test_the_page_stands_alone(animal_report: Report) -> None:
    assert "http" not in animal_report.source
    assert {"script", "link", "img", "iframe"}.isdisjoint(animal_report.page.tags)
    assert "url(" not in animal_report.source


def test_the_page_says_what_its_numbers_mean(animal_report: Report) -> None:
    text = animal_report.page.text
    for word in (
        "log loss",
        "log evidence",
        "Brier",
        "calibration",
        "leave-one-out",
        "standard error",
        "log Bayes factor",
    ):
        assert word in text
    counts = animals().kind.value_counts()
    for name, n in counts.items():
        assert f"{name} {n} {n / 90:.1%}" in text


@pytest.mark.skipif(not HAS_PENGUINS, reason="the package palmerpenguins is not installed")
def test_penguins(tmp_path: Path) -> None:
    import palmerpenguins

    penguins = palmerpenguins.load_penguins()
    penguins.to_csv(tmp_path / "penguins.csv", index=False)
    out = report(tmp_path / "out", str(tmp_path / "penguins.csv"), "--target", "species")
    comparison = out.table("comparison.csv")
    assert comparison.index[0].startswith("discriminant analysis")
    complete = penguins.dropna(subset=["bill_length_mm"])
    assert comparison.log_evidence["naive Bayes"] == pytest.approx(
        MixedNB().fit(complete.drop(columns="species"), complete["species"]).log_evidence_, rel=1e-12
    )
    assert "2 rows with missing numbers left out" in out.page.text
    assert set(out.table("relevance.csv").index[-2:]) == {"sex", "year"}


# ---------------------------------------------------------------------------------------- text


def reviews(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    good = rng.random(n) < 0.4
    words = {True: ["lovely", "warm", "moving"], False: ["dull", "slow", "weak"]}
    texts = [" ".join([*rng.choice(["film", "plot", "&amp", "actor"], 4), *rng.choice(words[g], 2)]) for g in good]
    return pd.DataFrame(
        {"review": texts, "stars": 1 + 2 * good + rng.integers(0, 2, n), "verdict": np.where(good, "good", "bad")}
    )


def test_words_alone_are_compared_as_the_library_does(tmp_path: Path) -> None:
    data = reviews().drop(columns="stars")
    data.to_csv(tmp_path / "reviews.tsv", sep="\t", index=False)
    out = report(tmp_path / "out", str(tmp_path / "reviews.tsv"), "--target", "verdict", "--text", "review")
    X = CountVectorizer(min_df=2).fit_transform(data.review)
    models = {"words (Laplace)": MultinomialNB(), "words (Jeffreys)": MultinomialNB(alpha=0.5)}
    expected = compare(models, X, data.verdict, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    found = out.table("comparison.csv")
    numbers = ["log_evidence", "elpd_conditional", "log_loss", "calibration_error"]
    np.testing.assert_allclose(found.loc[list(models), numbers], expected.loc[list(models), numbers])
    assert set(out.table("relevance.csv").index[:6]) == {"lovely", "warm", "moving", "dull", "slow", "weak"}


def test_words_and_other_columns_are_joined(tmp_path: Path) -> None:
    reviews().to_csv(tmp_path / "reviews.csv", index=False)
    out = report(tmp_path / "out", str(tmp_path / "reviews.csv"), "--target", "verdict", "--text", "review")
    found = out.table("comparison.csv")
    assert {"other columns alone", "words and other columns", "words (learned smoothing)"} <= set(found.index)
    joint = found.log_evidence
    # Given the class the blocks are independent, so that evidences of x given y add; that of y is counted once.
    labels = MultinomialNB().fit(np.ones((120, 1)), reviews().verdict).log_evidence_
    parts = joint["words (learned smoothing)"] + joint["other columns alone"] - labels
    assert joint["words and other columns"] == pytest.approx(parts, rel=1e-10)


def test_text_from_the_data_is_escaped(tmp_path: Path) -> None:
    data = animals().rename(columns={"colour": "<b>colour</b>", "name": "<i>&name", "kind": "ki<nd>"})
    data["ki<nd>"] = data["ki<nd>"].replace("cat", "<script>alert(1)</script>")
    data["<b>colour</b>"] = data["<b>colour</b>"].replace("red", "<img src=x onerror=alert(1)>")
    file = tmp_path / "a&b<.csv"
    data[["ki<nd>", "<b>colour</b>", "<i>&name", "legs"]].to_csv(file, index=False)
    out = report(tmp_path / "out", str(file), "--target", "ki<nd>")
    assert {"script", "img", "i", "b"}.isdisjoint(out.page.tags)
    for shown in ("<script>alert(1)</script>", "<b>colour</b>", "<i>&name", "ki<nd>", "<img src=x", "a&b<.csv"):
        assert shown in out.page.text


# --------------------------------------------------------------------------------------- files


def test_parquet_semicolons_and_a_byte_order_mark_read_alike(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    data = animals()[["kind", "size", "weight", "colour", "tame"]]
    data.to_parquet(tmp_path / "a.parquet")
    data.set_index("kind").to_parquet(tmp_path / "index.parquet")
    data.to_csv(tmp_path / "a.csv", index=False, sep=";", encoding="utf-8-sig")
    data.to_csv(tmp_path / "a.TSV", index=False, sep="\t")
    tables = [read_table(read_file(tmp_path / f), "kind") for f in ("a.parquet", "index.parquet", "a.csv", "a.TSV")]
    for table in tables[1:]:
        np.testing.assert_allclose(table.X, tables[0].X, rtol=1e-12)
        assert table.y.tolist() == tables[0].y.tolist()
        assert table.kinds.tolist() == tables[0].kinds.tolist()


def test_parquet_types_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    n = 40
    data = pd.DataFrame(
        {
            "y": pd.Categorical(["a", "b"] * (n // 2)),
            "whole": pd.array([1, 2, None, 30] * (n // 4), dtype="Int64"),
            "flag": pd.array([True, None, False, True] * (n // 4), dtype="boolean"),
            "level": pd.Categorical(["p", "q", None, "q"] * (n // 4)),
            "when": pd.date_range("2024-01-01", periods=n),
            "list": [[1, 2]] * n,
        }
    )
    data.to_parquet(tmp_path / "a.parquet")
    table = read_table(read_file(tmp_path / "a.parquet"), "y")
    assert {c.name: c.kind for c in table.columns} == {
        "y": "target",
        "whole": "categorical",
        "flag": "bernoulli",
        "level": "categorical",
        "when": "",
        "list": "",
    }
    assert [c.missing for c in table.used] == [10, 10, 10]
    assert np.isnan(table.X).sum() == 30


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, name in (("pyarrow", "a.parquet"), ("pandas", "a.csv")):
        (tmp_path / name).write_text("y,x\na,1\n")
        with monkeypatch.context() as context:
            context.setitem(sys.modules, package, None)
            with pytest.raises(ReportError, match=f"pip install {package}"):
                read_file(tmp_path / name)


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    animals()[["kind", "legs", "tame"]].to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "report.html").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    out = report(tmp_path, str(tmp_path / "a.csv"), "--target", "kind")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert "Predicting kind" in out.source
    assert {path.name for path in tmp_path.iterdir()} == FILES | {"a.csv", "notes.txt"}


# ------------------------------------------------------------------------------------ the rows


def test_rows_without_a_label_are_left_out_and_counted() -> None:
    data = animals()
    data.loc[:6, "kind"] = None
    table = read_table(data, "kind")
    assert table.X.shape[0] == 83
    assert any("7 rows without a value in kind" in note for note in table.notes)


def test_a_class_of_one_row_is_left_out_and_named() -> None:
    data = animals()
    data.loc[3, "kind"] = "fox"
    table = read_table(data, "kind")
    assert len(table.y) == 89
    assert any("fox" in note for note in table.notes)


def test_many_incomplete_rows_are_kept_and_leave_out_the_models_with_correlations() -> None:
    from bayesgen.report.models import models

    data = animals()
    assert any(name.startswith("discriminant") for name in models(read_table(data, "kind")))
    data.loc[:20, "size"] = np.nan
    table = read_table(data, "kind")
    assert len(table.y) == 90
    assert not any(name.startswith("discriminant") for name in models(table))
    assert any("23.3% of the rows have missing numbers" in note for note in table.notes)


def test_of_a_large_file_a_fixed_random_choice_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 50)
    monkeypatch.setattr(tables, "MOST_COLUMNS", 2)
    first, second = (read_table(animals(), "kind") for _ in range(2))
    assert first.X.shape == (50, 2)
    np.testing.assert_array_equal(first.X, second.X)
    assert any("random choice of 50" in note for note in first.notes)
    assert any("the first 2" in note for note in first.notes)


def test_whole_number_labels_are_shown_whole() -> None:
    data = animals()
    data["code"] = np.where(data.kind == "cat", 10.0, 2.0)
    data.loc[0, "code"] = np.nan
    assert np.unique(read_table(data, "code").y).tolist() == [2, 10]


def test_two_rows_a_class_are_enough(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,x,z\na,1.5,p\na,2.5,q\nb,7.5,q\nb,9.0,q\n")
    out = report(tmp_path / "out", str(tmp_path / "a.csv"), "--target", "y")
    assert "2 parts" in out.page.text
    assert "Left out: naive Bayes (learned prior), which cannot be fitted to these rows" in out.page.text
    assert "naive Bayes" in out.table("comparison.csv").index


# -------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "y,x\n", "no rows"),
        ("a.csv", "\n\n\n", "cannot be read as a table"),
        ("a.csv", 'y,x\n1,"2\n', "cannot be read as a table"),
        ("a.csv", "y,x\n1,2\n1,2,3,4\n", "cannot be read as a table"),
        ("a.csv", b"y,x\n\xff\xfe,2\n", "UTF-8"),
        ("a.parquet", "y,x\n1,2\n", "cannot be read as Parquet"),
        ("a.xlsx", "PK", "must end in .csv, .tsv or .parquet"),
    ],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: Any, message: str
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refused(capsys, str(tmp_path / name), "--target", "y", "--out", str(tmp_path / "out"))
    assert message in error
    assert name in error
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "penguins.csv").write_text("y,x\na,1\n")
    error = refused(capsys, str(tmp_path / "penguin.csv"), "--target", "y")
    assert "no such file; did you mean penguins.csv?" in error
    assert "is a folder" in refused(capsys, str(tmp_path), "--target", "y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "kint"], "'kint' is not a column of the file. Did you mean 'kind'"),
        (["--target", "SIZE"], "Did you mean 'size'?"),
        (["--target", "zzzzzz"], "The columns are: 'kind', 'size'"),
        (["--target", "kind", "--text", "nam"], "--text 'nam' is not a column of the file. Did you mean 'name'"),
        (["--target", "kind", "--text", "kind"], "are both 'kind'"),
        (["--target", "kind", "--text", "size"], "holds no text but numbers"),
        (["--target", "same"], "one class only, x"),
        (["--target", "empty"], "has no values"),
        (["--target", "size"], "looks continuous"),
        (["--target", "row"], "looks continuous (90 different numbers)"),
        (["--target", "seen"], "holds dates"),
        (["--target", "name"], "is it an identifier?"),
    ],
)
def test_options_that_do_not_fit_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    animals().to_csv(tmp_path / "a.csv", index=False)
    assert message in refused(capsys, str(tmp_path / "a.csv"), *arguments, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_no_usable_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    animals()[["kind", "name", "empty"]].to_csv(tmp_path / "a.csv", index=False)
    error = refused(capsys, str(tmp_path / "a.csv"), "--target", "kind")
    assert "no column is left to predict 'kind' from (name: an identifier" in error
    assert "empty: all values are missing" in error


def test_texts_without_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame({"y": ["a", "b"] * 5, "t": ["! !", "?"] * 5}).to_csv(tmp_path / "a.csv", index=False)
    assert "no words were found" in refused(capsys, str(tmp_path / "a.csv"), "--target", "y", "--text", "t")


def test_an_output_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    animals().to_csv(tmp_path / "a.csv", index=False)
    file = str(tmp_path / "a.csv")
    assert "is a file; give the name of a folder" in refused(capsys, file, "--target", "kind", "--out", file)
    assert "cannot be made" in refused(capsys, file, "--target", "kind", "--out", str(Path(file) / "deeper"))


def test_the_folder_may_be_named_before_the_command(tmp_path: Path) -> None:
    animals()[["kind", "tame"]].to_csv(tmp_path / "a.csv", index=False)
    assert main(["--out", str(tmp_path / "out"), "compare", str(tmp_path / "a.csv"), "--target", "kind"]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_the_target_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the following arguments are required: --target" in refused(capsys, "a.csv")
