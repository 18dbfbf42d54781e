"""A table from a file: which rows are used, what each column is, and the numbers that the models see."""

from __future__ import annotations

import difflib
import importlib.util
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.estimators._column_kinds import MOST_LEVELS, column_kind
from bayesgen.estimators._tables import column_values, is_missing, not_numeric

__all__ = ["Column", "ReportError", "Table", "counted", "read_file", "read_table"]

SEED = 0
MOST_ROWS = 20_000  # of a larger file a random choice is used
MOST_COLUMNS = 500
MOST_WORDS = 20_000
MOST_CLASSES = 100
MOST_CORRELATED = 200  # columns of a full covariance
MOST_INCOMPLETE = 0.05  # share of rows with missing numbers that are set aside so that every model uses the same rows

PARQUET = (".parquet", ".pq")
TABS = (".tsv", ".tab")


class ReportError(ValueError):
    """What is wrong with the file or the options, in words for whoever typed the command."""


# ------------------------------------------------------------------------------------ the file


def read_file(path: Path) -> Any:
    """A CSV, TSV or Parquet file as a pandas data frame."""
    if not path.exists():
        near = difflib.get_close_matches(path.name, [p.name for p in _siblings(path)], n=1)
        raise ReportError(f"{path}: no such file" + (f"; did you mean {near[0]}?" if near else ""))
    if path.is_dir():
        raise ReportError(f"{path} is a folder; give the name of a CSV, TSV or Parquet file")
    kind = path.suffix.lower()
    if kind not in (".csv", ".txt", *TABS, *PARQUET):
        raise ReportError(f"{path}: the name must end in .csv, .tsv or .parquet, to say what it is")
    if importlib.util.find_spec("pandas") is None:
        raise ReportError("reading tables needs the package pandas: python -m pip install pandas")
    if kind in PARQUET and importlib.util.find_spec("pyarrow") is None:
        raise ReportError("reading Parquet needs the package pyarrow: python -m pip install pyarrow")
    if path.stat().st_size == 0:
        raise ReportError(f"{path} is empty")
    frame = _parquet(path) if kind in PARQUET else _text_table(path, tabs=kind in TABS)
    if len(frame) == 0:
        raise ReportError(f"{path} has column names but no rows")
    frame = frame.reset_index(drop=frame.index.names == [None])  # Parquet may hold a column as the index of a frame
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _siblings(path: Path) -> list[Path]:
    folder = path.parent
    return [p for p in folder.iterdir() if p.is_file()] if folder.is_dir() else []


def _parquet(path: Path) -> Any:
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ReportError(f"{path} cannot be read as Parquet: {_first_line(error)}") from error


def _text_table(path: Path, *, tabs: bool) -> Any:
    import pandas as pd

    try:
        # The separator is the one that the header line has most of: spreadsheets write semicolons in much of Europe.
        with path.open(encoding="utf-8-sig") as stream:
            header = stream.readline()
        separator = "\t" if tabs else max(",;\t", key=header.count)
        return pd.read_csv(path, sep=separator, encoding="utf-8-sig", low_memory=False)
    except UnicodeDecodeError as error:
        raise ReportError(f"{path} is not text in UTF-8 ({error.reason}); save it in that encoding") from error
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise ReportError(f"{path} cannot be read as a table: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# ------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Column:
    """What was decided about a column: its kind, or why it is left out; with its values as numbers."""

    name: str
    kind: str
    reason: str = ""
    missing: int = 0
    distinct: int = 0
    values: np.ndarray | None = None
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """What the models see.

    Attributes
    ----------
    X : ndarray or sparse matrix (n, d)
        Word counts, if there are any, then the columns as numbers: categories as codes, missing cells as NaN.
    y : ndarray (n,)
        Labels.
    columns : list of Column
        All columns of the file, and what was decided about them.
    words : list of str
        Words of the first columns of X.
    notes : list of str
        What was left out or limited, in sentences.
    """

    X: Any
    y: np.ndarray
    columns: list[Column]
    words: list[str]
    notes: list[str]

    @property
    def used(self) -> list[Column]:
        """Columns that are columns of X."""
        return [c for c in self.columns if c.values is not None]

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return self.words + [c.name for c in self.used]

    @property
    def kinds(self) -> np.ndarray:
        """Kinds of the columns of X."""
        return np.array(["word"] * len(self.words) + [c.kind for c in self.used])


def read_table(frame: Any, target: str, text: str | None = None) -> Table:
    """Type the columns of a data frame and turn them into numbers.

    Parameters
    ----------
    frame : pandas DataFrame
    target : str
        Column of labels.
    text : str, optional
        Column of texts, of which words are counted.

    Returns
    -------
    Table
    """
    names = list(frame.columns)
    double = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if double is not None:
        raise ReportError(f"two columns are named {double!r}; names must be unique")
    for option, name in (("--target", target), ("--text", text)):
        if name is not None and name not in names:
            raise ReportError(f"{option} {name!r} is not a column of the file. {_near(name, names)}")
    if text == target:
        raise ReportError(f"--text and --target are both {text!r}")

    notes: list[str] = []
    frame, y, missing_labels = _labels(frame, target, notes)
    columns = []
    for j, name in enumerate(names):
        if name == target:
            columns.append(Column(name, "target", missing=missing_labels, distinct=len(np.unique(y))))
        elif name == text:
            columns.append(_text_column(frame, j))
        else:
            columns.append(type_column(frame, j))
    columns = _limit(columns, notes)
    words: list[str] = []
    counts = None
    if text is None:
        columns, y = _complete_rows(columns, y, notes)
    else:  # no model of texts needs complete rows
        counts, words = _count_words(frame[text], notes)
    used = [c.values for c in columns if c.values is not None]
    if not used and counts is None:
        reasons = "; ".join(f"{c.name}: {c.reason}" for c in columns if not c.kind)
        raise ReportError(f"no column is left to predict {target!r} from" + (f" ({reasons})" if reasons else ""))
    X: Any = np.column_stack(used) if used else None
    if counts is not None:
        import scipy.sparse as sp

        X = counts if X is None else sp.hstack([counts, sp.csr_matrix(X)]).tocsr()
    return Table(X, y, columns, words, notes)


def _near(name: str, names: list[str]) -> str:
    by_lower = {n.lower(): n for n in reversed(names)}
    lower = name.lower()
    close = [lower] if lower in by_lower else difflib.get_close_matches(lower, list(by_lower))
    near = [by_lower[n] for n in close]
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return f"The columns are: {shown}"


def _labels(frame: Any, target: str, notes: list[str]) -> tuple[Any, np.ndarray, int]:
    """The rows to use, their labels, and how many rows have no label."""
    rows = np.flatnonzero(frame[target].notna().to_numpy())
    missing = len(frame) - len(rows)
    if not len(rows):
        raise ReportError(f"the target {target!r} has no values")
    values, kind = _values(frame.iloc[rows], frame.columns.get_loc(target))
    y = _class_values(values, kind, target)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise ReportError(f"the target {target!r} has one class only, {classes[0]!s}; there is nothing to tell apart")
    several = counts > 1
    if several.sum() < 2 or len(classes) - several.sum() > MOST_CLASSES:
        raise ReportError(
            f"the target {target!r} has {len(classes)} different values in {len(y)} rows; fewer than two classes "
            "have two rows or more to learn from, or very many have only one: is it an identifier?"
        )
    if several.sum() > MOST_CLASSES:
        raise ReportError(f"the target {target!r} has {len(classes)} classes; this report takes {MOST_CLASSES} at most")
    if missing:
        notes.append(f"{counted(missing, 'row')} without a value in {target} left out: nothing can be learned there.")
    if len(rows) > MOST_ROWS:
        notes.append(
            f"The file has {len(rows):,} labelled rows; a random choice of {MOST_ROWS:,} is used for everything here."
        )
        chosen = np.sort(np.random.default_rng(SEED).permutation(len(rows))[:MOST_ROWS])
        rows, y = rows[chosen], y[chosen]
        classes, counts = np.unique(y, return_counts=True)
        if (counts > 1).sum() < 2:
            raise ReportError(f"nearly all rows are of one class of {target!r}, {classes[counts.argmax()]!s}")
    if (counts == 1).any():
        rare = ", ".join(str(c) for c in classes[counts == 1])
        notes.append(f"Classes with a single row left out, as they cannot be learned and tested: {rare}.")
        keep = np.isin(y, classes[counts > 1])
        rows, y = rows[keep], y[keep]
    return frame.iloc[rows], y if y.dtype.kind == "i" else y.astype(str), missing


def _class_values(values: np.ndarray, kind: str, target: str) -> np.ndarray:
    """Labels as whole numbers or texts."""
    if kind == "dates":
        raise ReportError(f"the target {target!r} holds dates; a target is a column of classes")
    if kind == "other":
        raise ReportError(f"the target {target!r} holds values that are no classes, such as {_shown(values[0])}")
    if kind == "strings":
        return np.array([str(v) for v in values], dtype=object)
    distinct = np.unique(values)
    if len(distinct) > MOST_LEVELS or not np.all(np.isfinite(distinct) & (distinct == np.floor(distinct))):
        raise ReportError(
            f"the target {target!r} looks continuous ({len(distinct)} different numbers): these models predict "
            "classes. Cut it into classes first, such as low and high"
        )
    return values.astype(np.int64)


def _values(frame: Any, j: int) -> tuple[np.ndarray, str]:
    """Values of column j and what they are: "numbers", "dates", "strings", or "other"."""
    values, levels = column_values(frame, j)
    present = values[~is_missing(values)]
    what = not_numeric(values)
    if levels is not None:
        return values, "strings"
    if what == "dates or durations" or _iso_dates(present):
        return values, "dates"
    if values.dtype.kind == "b":
        return values, "strings"
    if what is None:
        try:
            return np.asarray(values, dtype=float), "numbers"
        except (TypeError, ValueError):
            return values, "other"
    return values, "strings" if all(isinstance(v, (str, bool, int, float)) for v in present.tolist()) else "other"


def _iso_dates(values: np.ndarray) -> bool:
    """Whether texts are dates such as 2026-11-30, with or without a time."""
    if values.dtype.kind not in "OU" or not len(values):
        return False
    pattern = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")
    return all(isinstance(v, str) and pattern.match(v) for v in values.tolist())


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def type_column(frame: Any, j: int) -> Column:
    """Decide what column j is, by the rules of `MixedNB`, and turn it into numbers."""
    name = str(frame.columns[j])
    values, what = _values(frame, j)
    missing = is_missing(values)
    present = values[~missing]
    column = Column(name, "", "", int(missing.sum()))
    reason = _unusable(present, what)
    if reason:
        return replace(column, reason=reason)
    shown_as = present
    if what != "numbers":  # objects: at a fixed width long texts would fill the memory
        shown_as = np.array([str(v) for v in present], dtype=object)
    levels, codes = np.unique(shown_as, return_inverse=True)
    column = replace(column, distinct=len(levels))
    kind = column_kind(frame, j)
    reason = _uninformative(values, frame.index.to_numpy(), len(present), len(levels), what, kind, name)
    if reason:
        return replace(column, reason=reason)
    out = np.full(len(values), np.nan)
    if kind != "categorical":
        out[~missing] = present.astype(float)
        return replace(column, kind=kind, values=out)
    out[~missing] = codes
    shown = tuple(f"{v:g}" if what == "numbers" else str(v) for v in levels.tolist())
    return replace(column, kind=kind, values=out, levels=shown)


def _unusable(present: np.ndarray, what: str) -> str:
    """Why values cannot be used, or an empty string."""
    if not len(present):
        return "all values are missing"
    if what == "dates":
        return "dates: turn them into numbers (days since ...) or categories (month, ...)"
    if what == "other":
        return f"values that are neither numbers nor text, such as {_shown(present[0])}"
    if what == "numbers" and np.isinf(present.astype(float)).any():
        return "it holds infinity, which is no measurement"
    return ""


def _uninformative(
    values: np.ndarray, index: np.ndarray, n_present: int, n_levels: int, what: str, kind: str, name: str
) -> str:
    """Why a column that could be used tells nothing about other rows, or an empty string."""
    if n_levels == 1:
        return "one value only, which tells nothing"
    if what == "strings" and n_levels == n_present:
        return "an identifier: every value is different"
    if what == "strings" and kind == "categorical" and n_levels > max(MOST_LEVELS, n_present // 2):
        return f"most values are different: an identifier, or text (then use --text {name})"
    if what == "numbers" and n_levels == len(values) and np.ptp(values - index) == 0:
        return "it numbers the rows"
    return ""


def _text_column(frame: Any, j: int) -> Column:
    name = str(frame.columns[j])
    values, what = _values(frame, j)
    present = values[~is_missing(values)]
    if what != "strings" or not any(isinstance(v, str) for v in present.tolist()):
        raise ReportError(f"--text {name!r} holds no text" + (f" but {what}" if len(present) else ": it is empty"))
    return Column(name, "text", "", len(values) - len(present), len(set(present.tolist())))


def _limit(columns: list[Column], notes: list[str]) -> list[Column]:
    """Leave out columns beyond what is reasonable."""
    used = [c for c in columns if c.values is not None]
    if len(used) <= MOST_COLUMNS:
        return columns
    notes.append(f"{len(used)} columns could be used; the first {MOST_COLUMNS} are.")
    beyond = {c.name for c in used[MOST_COLUMNS:]}
    reason = f"beyond the first {MOST_COLUMNS} columns"
    return [replace(c, kind="", reason=reason, values=None) if c.name in beyond else c for c in columns]


def _complete_rows(columns: list[Column], y: np.ndarray, notes: list[str]) -> tuple[list[Column], np.ndarray]:
    """Leave out the rows with missing numbers, if they are few, so that all models use the same rows."""
    numbers = [c.values for c in columns if c.kind == "gaussian" and c.values is not None]
    if not 2 <= len(numbers) <= MOST_CORRELATED:
        return columns, y
    complete: np.ndarray = ~np.isnan(np.column_stack(numbers)).any(axis=1)
    if complete.all():
        return columns, y
    classes, codes = np.unique(y, return_inverse=True)
    share = 1 - complete.mean()
    if share > MOST_INCOMPLETE or np.bincount(codes[complete], minlength=len(classes)).min() < 2:
        notes.append(
            f"{share:.1%} of the rows have missing numbers, too many to leave them out (or too many of one class). So "
            "the models with correlations, which need complete rows, are left out. Naive Bayes uses the cells that are "
            "there."
        )
        return columns, y
    notes.append(
        f"{counted(int((~complete).sum()), 'row')} with missing numbers left out, so that all models, also those that "
        "need complete rows, are compared on the same rows."
    )
    kept = [c if c.values is None else replace(c, values=c.values[complete]) for c in columns]
    return kept, y[complete]


def _count_words(texts: Any, notes: list[str]) -> tuple[Any, list[str]]:
    """Counts of the words that occur in two texts or more."""
    from sklearn.feature_extraction.text import CountVectorizer

    several = len(texts) >= 50  # in a handful of texts most words occur once
    vectorizer = CountVectorizer(min_df=2 if several else 1, max_features=MOST_WORDS, dtype=np.float64)
    try:
        counts = vectorizer.fit_transform(texts.fillna("").astype(str))
    except ValueError as error:
        raise ReportError(f"--text {texts.name!r}: no words were found ({_first_line(error)})") from error
    words = [str(word) for word in vectorizer.get_feature_names_out()]
    notes.append(
        f"Words of {texts.name}: {len(words):,} different, of two letters or more, in lower case"
        + (", each in two texts or more" if several else "")
        + (f" (the {MOST_WORDS:,} most frequent)" if len(words) == MOST_WORDS else "")
        + ". The list of words is taken from all rows, without looking at the classes."
    )
    return counts, words


def counted(n: int, what: str) -> str:
    """A number with what it counts."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
