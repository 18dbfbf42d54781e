"""The page: sections, tables and drawings."""

from __future__ import annotations

import numpy as np

from bayesgen import __version__
from bayesgen.estimators._column_kinds import MOST_LEVELS
from bayesgen.report import markup
from bayesgen.report.markup import Markup
from bayesgen.report.results import Results
from bayesgen.report.table import Column, Table, counted
from bayesgen.report.words import number, verdict

__all__ = ["page"]

MOST_SHOWN = 25  # rows of the relevance table, classes of the confusion table
MOST_DESCRIBED = 6  # classes in each of which a column is described

KIND_WORDS = {
    "gaussian": "number",
    "categorical": "categories",
    "bernoulli": "yes/no",
    "word": "word",
    "text": "text (word counts)",
    "target": "target",
    "": "left out",
}


def page(results: Results, *, file: str, target: str, n_rows: int) -> str:
    """The report as one HTML page."""
    table = results.table
    n = len(table.y)
    used = len(table.used)
    source = " and ".join(
        part
        for part in (
            f"the words of {_text_name(table)}" if table.words else "",
            counted(used, "other column" if table.words else "column") if used else "",
        )
        if part
    )
    title = f"Predicting {target} from {source}"
    pieces = [
        Markup(f"<h1>{markup.text(title)}</h1>\n"),
        markup.paragraph(
            f"{file}: {counted(n_rows, 'row')}, of which {n:,} are used; {len(np.unique(table.y))} classes. All models "
            "learn how the columns look in each class, and turn that around by Bayes' rule.",
            kind="lead",
        ),
        verdict(results),
        markup.section("Which model predicts best", *_models_section(results)),
        markup.section("What the evidence says", *_evidence_section(results)),
        markup.section(f"Where “{results.best}” is right and wrong", *_confusion_section(results)),
        markup.section("Which columns tell the classes apart", *_relevance_section(results)),
        markup.section("The classes", _classes_section(table)),
        markup.section("The columns of the file", *_columns_section(table)),
        markup.section("What the numbers mean", _meanings(results)),
    ]
    if results.warnings:
        items = "".join(f"<li>{markup.text(w)}</li>" for w in results.warnings)
        pieces.append(markup.section("Notes of the library", Markup(f"<ul>{items}</ul>\n")))
    pieces.append(
        markup.paragraph(
            "The numbers are also in comparison.csv, relevance.csv and columns.csv, beside this page. Written by "
            f"bayesgen {__version__}.",
            kind="note",
        )
    )
    return markup.page(title, *pieces)


def _text_name(table: Table) -> str:
    return next(c.name for c in table.columns if c.kind == "text")


def _models_section(results: Results) -> list[Markup]:
    c = results.comparison
    gap, error = c.log_loss_difference.to_numpy(), c.se_log_loss_difference.to_numpy()
    # Models far behind would squeeze the others together: the axis ends where most of them are.
    high = float(np.clip(np.nanmax(gap + 2 * error), 1e-6, 8 * max(np.nanmedian(gap), 2 * np.nanmax(error))))
    low = -0.15 * high
    rows = [
        [
            name,
            number(row.log_loss),
            f"{number(row.log_loss_difference)} ± {number(row.se_log_loss_difference)}" if i else "the best",
            markup.interval(row.log_loss_difference, row.se_log_loss_difference, low, high),
            f"{row.accuracy:.1%}",
            f"{row.brier:.4f}",
            f"{row.calibration_error:.1%}",
            f"{row.seconds:.2f} s",
        ]
        for i, (name, row) in enumerate(c.iterrows())
    ]
    heads = [
        "model",
        "log loss",
        "behind the best by",
        f"from 0 (dashed) to {number(high)}",
        "right",
        "Brier",
        "calibration",
        "fit",
    ]
    meanings = "".join(
        f"<dt>{markup.text(name)}</dt><dd>{markup.text(candidate.meaning)}</dd>"
        for name, candidate in results.candidates.items()
        if name not in results.left_out
    )
    return [
        markup.paragraph(
            f"Each model was tried on rows it had not seen: rows were cut into {results.folds} parts, and each "
            "part predicted from the others. Smaller log loss is better. The drawing shows how far behind the best a "
            "model is, with two standard errors to each side: where the line crosses the dashed zero, the data "
            "do not tell the two apart."
        ),
        markup.table(heads, rows, words=(0, 3), best=0),
        Markup(f"<dl>{meanings}</dl>\n"),
        *(
            markup.paragraph(f"Left out: {name}, which cannot be fitted to these rows ({reason}).", kind="note")
            for name, reason in results.left_out.items()
        ),
    ]


def _evidence_section(results: Results) -> list[Markup]:
    c = results.comparison.sort_values(["measure", "log_evidence"], ascending=[True, False], kind="stable")
    several = c.measure.nunique() > 1
    rows = [
        [
            name,
            f"{row.log_evidence:,.2f}",
            "the best"
            if row.log_bayes_factor == 0
            else ""
            if np.isnan(row.log_bayes_factor)
            else f"{row.log_bayes_factor:,.2f}",
            f"{row.elpd_joint:,.1f} ± {row.se_joint:,.1f}",
            f"{row.elpd_conditional:,.2f} ± {row.se_conditional:,.2f}",
            "yes" if row.prior_uses_data else "no",
            *([_what_is_described(results.table, name)] if several else []),
        ]
        for name, row in c.iterrows()
    ]
    heads = [
        "model",
        "log evidence",
        "log Bayes factor",
        "leave-one-out, all",
        "leave-one-out, class",
        "prior from data",
    ]
    text = (
        "The log evidence is the logarithm of the probability of the whole table under a model, with everything "
        "unknown averaged out; it rewards what fits and charges for what is not needed. The log Bayes factor is the "
        "difference to the best: -3 means that the data are e³ = 20 times less probable. A learned power changes "
        "predictions only, not the evidence or leave-one-out. Where the prior was scaled to the data or learned from "
        "them, they are used twice, and small differences mean little."
    )
    if several:
        text += " Models that describe different things cannot be compared by evidence, so there are several groups."
    return [markup.paragraph(text), markup.table(heads + (["describes"] if several else []), rows, words=(0, 6))]


def _what_is_described(table: Table, name: str) -> str:
    if name == "other columns alone":
        return "other columns"
    if name == "words present or not":
        return "which words occur"
    return "words and columns" if name.startswith("words and") else "the words"


def _confusion_section(results: Results) -> list[Markup]:
    held = results.held_out
    classes = np.unique(results.table.y)
    shown = min(len(classes), MOST_SHOWN)
    order = np.sort(np.argsort(-np.bincount(held.codes, minlength=len(classes)), kind="stable")[:shown])
    predicted = held.log_proba.argmax(axis=1)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (held.codes, predicted), 1)
    rows = []
    for k in order:
        total = max(1, counts[k].sum())
        cells = [markup.heat(f"{counts[k, j]:,}", counts[k, j] / total, right=j == k) for j in order]
        rows.append([str(classes[k]), *cells, f"{counts[k, k] / total:.1%}"])
    proba = np.exp(held.log_proba)
    pieces = [
        markup.paragraph(
            "Rows: the true class; columns: the predicted one. All predictions are of rows that the model had not seen."
            + (f" The {shown} most frequent of {len(classes)} classes are shown." if shown < len(classes) else "")
        ),
        markup.table(["true \\ predicted", *(str(classes[k]) for k in order), "right"], rows),
        markup.paragraph(
            "Can its probabilities be taken at their word? Of the rows where it said 80 %, 80 % should be right. Each"
            " dot is a group of rows, from the least to the most certain; on the dashed line saying and being right "
            "agree, below it the model is too sure."
        ),
        markup.reliability(*_bins(proba, held.codes)),
    ]
    return pieces


def _bins(proba: np.ndarray, codes: np.ndarray, n_bins: int = 10) -> tuple[list[float], list[float], list[int]]:
    """Mean stated probability, share right and rows of bins of equal numbers of rows."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == codes
    parts = [p for p in np.array_split(np.argsort(confidence, kind="stable"), n_bins) if len(p)]
    return (
        [float(confidence[p].mean()) for p in parts],
        [float(right[p].mean()) for p in parts],
        [len(p) for p in parts],
    )


def _relevance_section(results: Results) -> list[Markup]:
    table, r = results.table, results.relevance
    top = r.head(MOST_SHOWN)
    rates = _word_rates(table)
    high = max(float(np.abs(top.log_bayes_factor).max()), 1e-9)
    rows = [
        [
            row.column,
            KIND_WORDS[row.kind],
            f"{row.log_bayes_factor:,.1f}",
            markup.bar(abs(row.log_bayes_factor) / high, faint=row.log_bayes_factor < 0),
            f"{row.probability:.1%}",
            _by_class(table, int(j), rates),
        ]
        for j, row in top.iterrows()
    ]
    heads = ["column", "kind", "log Bayes factor", "", "probability", "in the classes"]
    more = f" The first {len(top)} of {len(r):,} are shown; all are in relevance.csv." if len(top) < len(r) else ""
    return [
        markup.paragraph(
            "For each column by itself: how much more probable its values are if they may differ between the classes, "
            "than if they are alike in all. Above 0 they differ, below 0 (grey) they do not seem to; the probability "
            "starts from an even chance. Columns that repeat each other all count as relevant here. In the classes: "
            "the mean of a number, the most frequent category and its share, the share of yes, or how often a word "
            "occurs in 1000 words (‰)." + more
        ),
        markup.table(heads, rows, words=(0, 1, 3, 5)),
    ]


def _word_rates(table: Table) -> np.ndarray:
    """Occurrences of each word in 1000 words of each class, (n_classes, n_words)."""
    n_words = len(table.words)
    if not n_words:
        return np.zeros((0, 0))
    counts = np.array([table.X[table.y == k].sum(axis=0).A1[:n_words] for k in np.unique(table.y)])
    return 1000 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def _by_class(table: Table, j: int, rates: np.ndarray) -> str:
    """Column j of X in each class: its mean, its most frequent level, or its share."""
    classes = np.unique(table.y)
    if len(classes) > MOST_DESCRIBED:
        return ""
    if j < len(table.words):
        return "; ".join(f"{name}: {rate:.2f}" for name, rate in zip(classes, rates[:, j], strict=True)) + " ‰"
    column = table.used[j - len(table.words)]
    return "; ".join(f"{name}: {_typical(column, table.y == name)}" for name in classes)


def _typical(column: Column, rows: np.ndarray) -> str:
    """A column in some rows, in a word or two."""
    values = np.zeros(0) if column.values is None else column.values[rows]
    values = values[~np.isnan(values)]
    if not len(values):
        return "none"
    if column.kind == "gaussian":
        mean = values.mean()
        return f"{mean:,.0f}" if 1000 <= abs(mean) < 1e9 else f"{mean:.4g}"
    if column.kind == "bernoulli":
        return f"{values.mean():.0%} yes"
    counts = np.bincount(values.astype(int), minlength=len(column.levels))
    return f"{column.levels[counts.argmax()]} ({counts.max() / len(values):.0%})"


def _classes_section(table: Table) -> Markup:
    classes, counts = np.unique(table.y, return_counts=True)
    rows = [
        [str(c), f"{n:,}", f"{n / counts.sum():.1%}", markup.bar(n / counts.max())]
        for c, n in zip(classes, counts, strict=True)
    ]
    return markup.table(["class", "rows", "share", ""], rows, words=(0, 3))


def _columns_section(table: Table) -> list[Markup]:
    rows = [
        [c.name, KIND_WORDS[c.kind], f"{c.distinct:,}" if c.distinct else "", f"{c.missing:,}", c.reason]
        for c in table.columns
    ]
    return [
        markup.paragraph(
            "Yes/no: only 0 and 1, or true and false. Categories: texts, and whole numbers with at most "
            f"{MOST_LEVELS} values. All other numbers are taken as normally distributed within a class. Missing cells "
            "count for nothing: the model averages over what they may have been. Values and missing cells are counted "
            "in the rows that have a class."
        ),
        markup.table(["column", "taken as", "different values", "missing", "why left out"], rows, words=(0, 1, 4)),
    ]


def _meanings(results: Results) -> Markup:
    items = {
        "right": "The share of rows whose most probable class is the true one (accuracy).",
        "log loss": "The mean of -ln(probability given to the true class). It punishes being sure and wrong; 0 is "
        "perfect, and ln 2 = 0.69 is a coin with two classes.",
        "Brier": "The mean squared distance of the probabilities from what happened, summed over the classes; 0 is "
        "perfect, 2 the worst.",
        "calibration": "How far stated probabilities are from shares that are right, on average over 15 groups of rows "
        "from the least to the most certain. Small is good, but a model that says little can be calibrated too.",
        "±": "One standard error: how much the number would vary with other rows of the same kind. The parts of "
        "cross-validation share rows, so it is somewhat too small.",
        "leave-one-out, class": "The sum of ln p(class of a row given its columns and all other rows), computed "
        "exactly, without refitting. Divided by the number of rows it is minus a log loss.",
        "leave-one-out, all": "The same for the class and the columns of a row together. Like the evidence it is "
        "comparable only between models that describe the same things.",
        "fit": "Seconds to learn from all rows, the first time with what has to be compiled.",
    }
    return Markup(
        "<dl>" + "".join(f"<dt>{markup.text(k)}</dt><dd>{markup.text(v)}</dd>" for k, v in items.items()) + "</dl>\n"
    )
