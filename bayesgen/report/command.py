"""The command ``bayesgen compare FILE --target COLUMN``: its arguments, and what it does.

1. The file is read and each column is typed, or left out with a reason (`bayesgen.report.table`).
2. The models that suit such columns are compared: by evidence, by exact leave-one-out, by cross-validation.
3. One page, ``report.html``, says in words what came out; the numbers are in CSV files beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bayesgen._report import Progress

__all__ = ["add_arguments", "run"]

FILES = ("report.html", "comparison.csv", "relevance.csv", "columns.csv")
MOST_LISTED = 20  # columns left out that are named on the screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``bayesgen compare``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="table to read: .csv, .tsv or .parquet")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column with the classes to predict")
    parser.add_argument("--text", metavar="COLUMN", help="column of texts, whose words are counted")
    parser.add_argument(
        "--out",
        type=Path,
        default=argparse.SUPPRESS,  # that of the command without arguments, and may also stand before `compare`
        metavar="DIR",
        help=f"folder for {', '.join(FILES)} (default: ./bayesgen-report)",
    )


def run(file: Path, target: str, text: str | None, out: Path) -> None:
    """Read a table, compare models of it, write the report, and say where it is.

    Parameters
    ----------
    file : Path
        CSV, TSV or Parquet.
    target, text : str
        Names of columns.
    out : Path
        Folder; of files that are in it only those named in `FILES` are overwritten.

    Raises
    ------
    ReportError
        If there is something that whoever called can mend.
    """
    # Here, so that the help and the main job need not wait for JAX and scikit-learn.
    from bayesgen.report.models import models
    from bayesgen.report.page import page
    from bayesgen.report.results import analyse, columns_frame
    from bayesgen.report.table import ReportError, read_file, read_table
    from bayesgen.report.words import number

    started = time.perf_counter()
    if out.exists() and not out.is_dir():
        raise ReportError(f"--out {out} is a file; give the name of a folder")
    frame = read_file(file)
    table = read_table(frame, target, text)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"--out {out} cannot be made: {error.strerror}") from error
    candidates = models(table)
    progress = Progress(sys.stderr, 3 + len(candidates))
    results = analyse(table, candidates, progress)
    progress.step("writing the report")
    html = page(results, file=file.name, target=target, n_rows=len(frame))
    try:
        (out / "report.html").write_text(html, encoding="utf-8")
        results.comparison.to_csv(out / "comparison.csv", index_label="model")
        results.relevance.to_csv(out / "relevance.csv", index=False)
        columns_frame(table).to_csv(out / "columns.csv", index=False)
    except OSError as error:
        raise ReportError(f"cannot write to {out}: {error}") from error
    progress.clear()
    row = results.comparison.iloc[0]
    print(f"{results.best}: right in {row.accuracy:.1%} of held-out rows, log loss {number(row.log_loss)}.")
    left_out = [column for column in table.columns if not column.kind]
    for column in left_out[:MOST_LISTED]:
        print(f"   left out: {column.name} ({column.reason})")
    if len(left_out) > MOST_LISTED:
        print(f"   left out: {len(left_out) - MOST_LISTED} more columns, listed in columns.csv")
    for note in table.notes:
        print(f"   {note}")
    print(f"Done in {time.perf_counter() - started:.0f} s. In {out}:")
    for name in FILES:
        print(f"   {name}")
