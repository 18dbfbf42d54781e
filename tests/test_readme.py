"""The README's code runs, and prints what it says."""

import ast
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"


def code_blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_the_examples_give_the_numbers_they_show():
    source = "\n".join(code_blocks("python"))
    scope, shown = {}, 0
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        code = ast.get_source_segment(source, statement)
        comment = [
            line[2:] for line in itertools.takewhile(lambda s: s.startswith("# "), lines[statement.end_lineno :])
        ]
        if not isinstance(statement, ast.Expr):
            exec(code, scope)
            continue
        value = eval(code, scope)
        if hasattr(value, "to_string"):
            assert [line.rstrip() for line in value.to_string().splitlines()] == comment
        else:
            np.testing.assert_allclose(value, eval(comment[0], {"array": np.array}), rtol=1e-6)
        shown += 1
    assert shown == 5
    assert np.all(scope["lower"] <= scope["upper"])


@pytest.mark.parametrize("ending", ["python -m bayesgen", "python -m pytest"])
def test_one_command_does_all_the_set_up(ending):
    commands = [line for block in code_blocks("bash") for line in block.splitlines() if line.endswith(f"&& {ending}")]
    assert len(commands) == 1
    assert commands[0].startswith("python -m pip install ")
