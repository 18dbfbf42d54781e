"""What the command line says and writes: progress, text, tables, figures."""

from __future__ import annotations

import csv
import re
import textwrap
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

__all__ = ["Progress", "Report", "blank_figure"]

WIDTH = 100


class Progress:
    """Says on the error stream which step is running; on a terminal by a bar in one line that is renewed.

    Parameters
    ----------
    stream : text stream
        Where to write.
    n_steps : int
        How many steps there will be.
    """

    def __init__(self, stream: TextIO, n_steps: int) -> None:
        self.n_steps = n_steps
        self.done = 0
        self._stream = stream
        self._live = stream.isatty()
        self._started = time.perf_counter()

    def step(self, what: str) -> None:
        """Begin the next step."""
        self.done += 1
        seconds = time.perf_counter() - self._started
        if self._live:
            bar = "#" * (24 * (self.done - 1) // self.n_steps)
            line = f"[{bar:-<24}] {self.done:>2}/{self.n_steps} {seconds:5.1f} s  {what}"
            self._stream.write(f"\r{line[: WIDTH - 1]:<{WIDTH - 1}}")
        else:
            self._stream.write(f"[{self.done:>2}/{self.n_steps}] {seconds:5.1f} s  {what}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Empty the line, so that something else can be printed there."""
        if self._live:
            self._stream.write(f"\r{'':<{WIDTH - 1}}\r")
            self._stream.flush()


class Report:
    """Text goes to the screen and to ``summary.txt``; tables also to CSV files, figures to PNG files.

    Parameters
    ----------
    folder : Path
        Where the files go.
    progress : Progress
        Its line on the screen is cleared before anything is printed.
    """

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.folder = folder
        self.progress = progress
        self.files: list[str] = []
        self._text: list[str] = []

    def say(self, line: str = "") -> None:
        """Print one line as it is."""
        self.progress.clear()
        print(line, flush=True)
        self._text.append(line)

    def heading(self, text: str, underline: str = "-") -> None:
        """Print a line that opens a section."""
        for line in (text, underline * len(text), ""):
            self.say(line)

    def paragraph(self, text: str, *, indent: int = 3, hanging: int = 0, gap: bool = True) -> None:
        """Print text broken into lines, and an empty line after it."""
        first, later = " " * indent, " " * (indent + hanging)
        for line in textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=later):
            self.say(line)
        if gap:
            self.say()

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[int] = (0,)) -> None:
        """Print a table: columns of `words` flush left, numbers right; a repeated first cell left empty."""
        widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
        above = ""
        for number, row in enumerate([columns, *rows]):
            shown = ["" if row[0] == above else row[0], *row[1:]]
            above = row[0]
            cells = (f"{cell:{'<' if j in words else '>'}{widths[j]}}" for j, cell in enumerate(shown))
            self.say(("   " + "  ".join(cells)).rstrip())
            if number == 0:
                self.say("   " + "  ".join("-" * width for width in widths))
        self.say()

    def csv(self, name: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
        """Write a CSV file."""
        with (self.folder / name).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([re.sub(r"\W+", "_", column) for column in columns])
            writer.writerows(rows)
        self.files.append(name)

    def figure(self, name: str, figure: Any) -> None:
        """Write a picture."""
        figure.savefig(self.folder / name, dpi=150)
        self.files.append(name)

    def close(self) -> None:
        """Write what was said so far to ``summary.txt``."""
        (self.folder / "summary.txt").write_text("\n".join(self._text) + "\n", encoding="utf-8")
        self.files.append("summary.txt")


def blank_figure(n_panels: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, side by side."""
    # A bare Figure draws to files without pyplot, and so without a window system.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0 * n_panels, 5.0), layout="constrained")
    return figure, figure.subplots(1, n_panels, squeeze=False)[0]
