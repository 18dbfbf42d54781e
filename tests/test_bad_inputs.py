"""The page of errors: every statement on it fails with the message shown below it, and changes nothing.

``python tests/test_bad_inputs.py`` writes the messages of this version into the page.
"""

from __future__ import annotations

import ast
import pickle
import re
import textwrap
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.M | re.S)


KINDS = {"ValueError", "TypeError", "NotFittedError", "UndefinedNumberError", "FileNotFoundError"}
INSIDE = re.compile(
    r"broadcast|operand|dtype=object|ndarray|jaxlib|LinAlg|Traceback|not subscriptable|has no attribute"
)


class Example(NamedTuple):
    """Statements of which the last one fails, and what the page says about it."""

    setup: str
    code: str
    shown: str


def blocks() -> list[str]:
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


SETUP, *SECTIONS = blocks()


def examples(block: str) -> list[Example]:
    """The statements of a block, each up to the comment with its error."""
    out: list[Example] = []
    code: list[str] = []
    shown: list[str] = []
    for line in [*block.splitlines(), ""]:
        if line.startswith("# "):
            shown.append(line.removeprefix("# "))
            continue
        if shown:
            statements = "\n".join(code)
            last = ast.parse(statements).body[-1].lineno - 1
            out.append(Example("\n".join(code[:last]), "\n".join(code[last:]), " ".join(shown)))
            code, shown = [], []
        code.append(line)
    return out


def outcomes(section: list[Example]) -> list[str]:
    """The errors of the examples of a section, one after the other."""
    scope: dict[str, Any] = {}
    exec(SETUP, scope)
    try:
        return [outcome(example, scope) for example in section]
    finally:
        scope["folder"].cleanup()


def outcome(example: Example, scope: dict[str, Any]) -> str:
    """The error of an example as the page shows it; raises if there is none, or a model has changed."""
    exec(example.setup, scope)
    model = scope.get("model")
    before = pickle.dumps(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(example.code, scope)
    except Exception as error:
        assert pickle.dumps(model) == before, "a call that failed has changed the model"
        name = type(error).__name__
        return f"{name}: {' '.join(str(error).split())}".replace(str(scope["files"]), "FOLDER")
    raise AssertionError(f"no error: {example.code}")


@pytest.mark.parametrize("section", range(len(SECTIONS)))
def test_a_message_is_the_one_on_the_page(section: int) -> None:
    found = examples(SECTIONS[section])
    assert len(found) > 5
    for example, shown in zip(found, outcomes(found), strict=True):
        assert shown == example.shown, f"{example.code}\nraises   {shown}\nthe page {example.shown}"


@pytest.mark.parametrize("section", range(len(SECTIONS)))
def test_a_message_speaks_of_what_was_given_and_not_of_the_inside(section: int) -> None:
    for example in examples(SECTIONS[section]):
        kind, _, message = example.shown.partition(": ")
        assert kind in KINDS, example.shown
        assert len(message) > 20, example.shown
        assert not INSIDE.search(message), example.shown


def write() -> None:
    """Write the messages into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for block in SECTIONS:
        lines, found = [], examples(block)
        for example, shown in zip(found, outcomes(found), strict=True):
            lines += [line for line in (example.setup, example.code) if line]
            lines += textwrap.wrap(shown, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
        text = text.replace(block, "\n".join(lines) + "\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
