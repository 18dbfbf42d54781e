"""What came out, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen.report.markup import Markup, paragraph
from bayesgen.report.results import Results

__all__ = ["listed", "number", "verdict"]


def verdict(results: Results) -> Markup:
    """What came out, in a few sentences."""
    table, c = results.table, results.comparison
    best = c.iloc[0]
    classes, counts = np.unique(table.y, return_counts=True)
    shares = counts / counts.sum()
    entropy = float(-shares @ np.log(shares))
    first = (
        f"The model “{results.best}” predicts best. It names the right class of {best.accuracy:.1%} of the "
        f"rows it had not seen (always saying {classes[counts.argmax()]}, the most frequent class, would be "
        f"right in {shares.max():.1%}). Its log loss, which also asks how sure it was, is {number(best.log_loss)} "
        f"(giving every row the class shares: {number(entropy)}; 0 is perfect)."
    )
    pieces = [paragraph(Markup("<strong>Prediction.</strong> "), first)]
    if best.log_loss >= entropy:
        pieces.append(
            paragraph("No model is better than the class shares alone: these columns do not tell the classes apart.")
        )
    if len(c) > 1:
        pieces.append(paragraph(Markup("<strong>Is it really better?</strong> "), _lead(results)))
    pieces.append(paragraph(Markup("<strong>Evidence.</strong> "), _evidence(results)))
    pieces.append(paragraph(Markup("<strong>Columns.</strong> "), _most_relevant(results)))
    left_out = [column.name for column in table.columns if not column.kind]
    if left_out or table.notes:
        what = f"Left out: {listed(left_out)}. " if left_out else ""
        pieces.append(paragraph(Markup("<strong>Left out, and limits.</strong> "), what, " ".join(table.notes)))
    return Markup(f'<div class="verdict">{"".join(pieces)}</div>\n')


def _lead(results: Results) -> str:
    """Whether the difference to the other models exceeds its standard error."""
    rest = results.comparison.iloc[1:]
    second = rest.iloc[0]
    gap, error = second.log_loss_difference, second.se_log_loss_difference
    numbers = (
        f"The next, “{second.name}”, has a log loss larger by {number(gap)}, with a standard error of {number(error)}"
    )
    if gap > 2 * error:
        return f"{numbers}: more than twice the standard error, so the lead is unlikely to be chance."
    close = [str(n) for n in rest.index if not rest.log_loss_difference[n] > 2 * rest.se_log_loss_difference[n]]
    if gap > error:
        verdict = "more than one standard error, but less than two: a lead, though not a safe one"
    else:
        verdict = "less than its standard error, so on these rows the two cannot be told apart"
    if len(close) == 1:
        return f"{numbers}: {verdict}."
    return f"{numbers}: {verdict}. Within two standard errors of the best: {quoted(close)}. Take the simplest of them."


def _evidence(results: Results) -> str:
    """What the evidence says of the models that describe the same data."""
    comparison, best = results.comparison, results.best
    said, comparable = [], False
    for _, group in comparison.groupby("measure", sort=False):
        ranked = group.log_evidence.sort_values(ascending=False)
        top = [str(n) for n in ranked.index if ranked.iloc[0] - ranked[n] < 1e-6]
        rest = ranked.iloc[len(top) :]
        if not len(rest):  # one model, or one with and without a learned power
            continue
        factor = ranked.iloc[0] - rest.iloc[0]
        sentence = (
            f"The data are {_times(factor)} as probable under {quoted(top)} as under the next, “{rest.index[0]}”: "
            f"{_strength(factor)}."
        )
        if best in rest.index:
            sentence += (
                f" That another model than “{best}” leads is no contradiction: the evidence asks how well a model "
                "describes the columns and the classes together, prediction only asks for the class."
            )
        comparable |= best in group.index
        said.append(sentence)
    if not said:
        return "No two models can be compared by evidence: each describes the data in another way."
    if not comparable:
        said.append(f"“{best}” describes other data than these models, so its evidence cannot be compared with theirs.")
    return " ".join(said)


def _times(log_factor: float) -> str:
    power = log_factor / np.log(10)
    superscript = f"{power:.0f}".translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{superscript} times" if power > 4 else f"{np.exp(log_factor):,.1f} times"


def _strength(log_factor: float) -> str:
    """Words for a Bayes factor; Kass and Raftery 1995."""
    for limit, word in ((1.0, "barely worth a mention"), (3.0, "positive evidence"), (5.0, "strong evidence")):
        if log_factor < limit:
            return word
    return "very strong evidence"


def _most_relevant(results: Results) -> str:
    r = results.relevance
    relevant = r[r.log_bayes_factor > 0]
    words = results.table.words
    what = "columns and words" if words and results.table.used else "words" if words else "columns"
    if not len(relevant):
        return f"None of the {len(r):,} {what} shows that it differs between the classes."
    top = listed([str(name) for name in relevant.column[:5]])
    return (
        f"{len(relevant):,} of {len(r):,} {what} more probably differ between the classes than not; first of all {top}."
    )


def listed(names: list[str], most: int = 12) -> str:
    """Names with commas and "and"."""
    shown = names if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def quoted(names: Any) -> str:
    """Names of models in a sentence."""
    return listed([f"“{name}”" for name in names])


def number(value: float) -> str:
    """Four decimals, or three digits if small."""
    value += 0.0  # no minus before a zero
    return f"{value:,.4f}" if abs(value) >= 0.001 or value == 0 else f"{value:.2g}"
