"""Pieces of a self-contained HTML page: escaped text, tables, bars and small drawings, no script and no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["Markup", "bar", "heat", "interval", "page", "paragraph", "reliability", "section", "table", "text"]

STYLE = """
:root { color-scheme: light; --ink: #1c2733; --soft: #5b6875; --line: #d9dfe5; --accent: #1f6f8b; --wash: #f3f7f9; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink); background: #fff;
  max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .5rem; padding-top: .8rem; border-top: 1px solid var(--line); }
p, li { max-width: 46rem; }
p { margin: .5rem 0; }
.note, .lead { color: var(--soft); }
.note { font-size: .9rem; }
.verdict { background: var(--wash); border-left: 4px solid var(--accent); padding: .7rem 1.1rem; margin: 1.2rem 0; }
.verdict p { max-width: 56rem; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; vertical-align: bottom; border-bottom: 2px solid var(--soft); }
th.words, td.words { text-align: left; }
td.words { white-space: normal; overflow-wrap: break-word; min-width: 7rem; }
td.words:first-child { min-width: 10rem; }
tr.best td { background: var(--wash); font-weight: 600; }
td.bar { padding: .1rem .7rem; vertical-align: middle; }
code { font: .88em ui-monospace, "DejaVu Sans Mono", monospace; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; max-width: 46rem; }
svg { display: block; }
svg text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); }
"""


class Markup(str):
    """HTML that is finished; any other string is text and is escaped."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """A value as HTML, escaped unless it is markup."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def paragraph(*pieces: Any, kind: str = "") -> Markup:
    """A paragraph."""
    name = f' class="{kind}"' if kind else ""
    return Markup(f"<p{name}>{''.join(map(text, pieces))}</p>\n")


def section(title: str, *pieces: Any) -> Markup:
    """A heading and what is under it."""
    return Markup(f"<h2>{text(title)}</h2>\n{''.join(map(text, pieces))}")


def table(
    columns: Sequence[Any], rows: Iterable[Sequence[Any]], *, words: Sequence[int] = (0,), best: int | None = None
) -> Markup:
    """A table; columns of `words` are flush left, numbers right; the row `best` stands out."""
    kinds = [' class="words"' if j in words else "" for j in range(len(columns))]
    head = "".join(f"<th{kind}>{text(name)}</th>" for kind, name in zip(kinds, columns, strict=True))
    body = []
    for i, row in enumerate(rows):
        cells = []
        for kind, cell in zip(kinds, row, strict=True):
            if isinstance(cell, Markup) and cell.startswith("<td"):
                cells.append(cell)
            else:
                cells.append(Markup(f"<td{kind}>{text(cell)}</td>"))
        opening = '<tr class="best">' if i == best else "<tr>"
        body.append(f"{opening}{''.join(cells)}</tr>\n")
    return Markup(
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{"".join(body)}</tbody>\n'
        "</table></div>\n"
    )


def bar(share: float, *, width: int = 180, faint: bool = False) -> Markup:
    """A cell of a table with a bar that fills the share of its width."""
    length = max(1.0, width * min(max(share, 0.0), 1.0))
    colour = "#b9c3cc" if faint else "#1f6f8b"
    return Markup(
        f'<td class="bar words"><svg width="{width}" height="14" role="img" aria-label="{share:.0%}">'
        f'<rect x="0" y="2" width="{length:.1f}" height="10" rx="2" fill="{colour}"></rect></svg></td>'
    )


def interval(value: float, error: float, low: float, high: float, *, width: int = 240) -> Markup:
    """A cell with a point and a line two standard errors long to each side, on an axis from low to high."""

    def place(x: float) -> float:
        return 6 + (width - 12) * (min(max(x, low), high) - low) / (high - low)

    zero, dot, left, right = map(place, (0.0, value, value - 2 * error, value + 2 * error))
    return Markup(
        f'<td class="bar words"><svg width="{width}" height="18" role="img" '
        f'aria-label="{value:.4g}, standard error {error:.4g}">'
        f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="18" stroke="#9aa6b1" stroke-dasharray="2 2"></line>'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="9" y2="9" stroke="#1f6f8b" stroke-width="2"></line>'
        f'<circle cx="{dot:.1f}" cy="9" r="4.5" fill="#1f6f8b"></circle></svg></td>'
    )


def heat(value: str, share: float, *, right: bool) -> Markup:
    """A cell shaded by a share: blue where it is good, red where it is not."""
    shade = 0.1 + 0.5 * share if share else 0.0
    colour = "31,111,139" if right else "192,70,50"
    return Markup(f'<td style="background:rgba({colour},{shade:.3f})">{text(value)}</td>')


def reliability(confidence: Sequence[float], correct: Sequence[float], weight: Sequence[float]) -> Markup:
    """Share right against stated probability, one dot for each bin, its area the rows in it."""
    size, left, top, bottom = 300, 62, 18, 42
    most = max(weight)

    def x(p: float) -> float:
        return left + size * p

    def y(p: float) -> float:
        return top + size * (1 - p)

    parts = [
        f'<svg width="{size + left + 16}" height="{top + size + bottom}" role="img" '
        'aria-label="share right against stated probability">',
        f'<rect x="{x(0)}" y="{y(1)}" width="{size}" height="{size}" fill="none" stroke="#d9dfe5"></rect>',
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="#9aa6b1" stroke-dasharray="4 3"></line>',
    ]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<text x="{x(tick):.0f}" y="{y(0) + 16:.0f}" text-anchor="middle">{tick:.0%}</text>')
        parts.append(f'<text x="{x(0) - 6:.0f}" y="{y(tick) + 4:.0f}" text-anchor="end">{tick:.0%}</text>')
    for p, share, rows in zip(confidence, correct, weight, strict=True):
        radius = 3 + 9 * (rows / most) ** 0.5
        parts.append(
            f'<circle cx="{x(p):.1f}" cy="{y(share):.1f}" r="{radius:.1f}" fill="#1f6f8b" fill-opacity="0.65">'
            f"<title>{rows:.0f} rows: said {p:.1%}, right {share:.1%}</title></circle>"
        )
    middle = x(0.5)
    parts.append(
        f'<text x="{middle:.0f}" y="{y(0) + 34:.0f}" text-anchor="middle">probability of the predicted class</text>'
    )
    parts.append(f'<text transform="translate(14 {y(0.5):.0f}) rotate(-90)" text-anchor="middle">share right</text>')
    parts.append("</svg>\n")
    return Markup("".join(parts))


def page(title: str, *pieces: Any) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{''.join(map(text, pieces))}</body>\n</html>\n"
    )
