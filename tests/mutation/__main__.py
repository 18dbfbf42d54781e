"""Mutants of the closed forms: does a test fail when a formula is wrong?

    python tests/mutation --each 4 --seed 0

draws a few places of each module below, changes one at a time in a copy of the checkout (a sign, a constant, a lost
term, swapped arguments, `<` for `<=`), runs the module's quick tests there until the first fails, and prints the
mutants that none of them noticed. Such a survivor asks for a test, unless the change makes no difference.

General tools for this have no random choice of places and run all tests for each; here that would take days.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 400  # for the tests of one mutant; an endless loop is a difference too
# Functions that write messages and programs, or say which numbers exist: not formulas.
LEFT_OUT = {"__repr__", "observe", "prior", "undefined", "improper", "sample", "dims", "logistic", "table", "report"}


def laws(*families: str) -> list[str]:
    """The laws of families: of their plainest case, of one with arrays for hyperparameters, and of an empty class."""
    cases = (f"[{family}] or ({family} and (cell or cells or level or per) and not column)" for family in families)
    return ["tests/test_laws.py", "-k", " or ".join(cases)]


COUNTS = ["tests/test_worked_example.py"]
FORMULAS = ["tests/test_closed_forms.py"]
PEERS = ["tests/test_peers.py", "-k", "gaussian or discriminant"]
MODULES: dict[str, list[list[str]]] = {
    "_linalg.py": [laws("Multivariate"), ["tests/test_missing.py"]],
    "_math.py": [["tests/test_math.py"]],
    "class_prior.py": [["tests/test_class_prior.py"], COUNTS],
    "em.py": [["tests/test_unlabelled.py"]],
    "explain.py": [["tests/test_explain.py"]],
    "families/bernoulli.py": [FORMULAS, laws("Bernoulli"), COUNTS],
    "families/categorical.py": [FORMULAS, laws("Categorical"), COUNTS],
    "families/contributions.py": [["tests/test_explain.py"]],
    "families/diagonal.py": [FORMULAS, laws("Gaussian", "SharedVariance")],
    "families/diagonal_scores.py": [laws("Gaussian", "SharedVariance"), ["tests/test_compiled.py"]],
    "families/dirichlet.py": [laws("Multinomial", "Bernoulli", "Categorical"), COUNTS],
    "families/gaussian.py": [FORMULAS, laws("Gaussian"), PEERS],
    "families/moments.py": [FORMULAS, laws("Gaussian", "Multivariate"), ["tests/test_streaming.py"]],
    "families/multinomial.py": [FORMULAS, laws("Multinomial"), COUNTS],
    "families/multivariate.py": [laws("Multivariate", "PerClass"), ["tests/test_missing.py"]],
    "families/multivariate_gaussian.py": [FORMULAS, laws("Multivariate"), PEERS],
    "families/normal_scores.py": [laws("Multivariate", "PerClass"), ["tests/test_missing.py"]],
    "families/normal_statistics.py": [laws("Multivariate", "PerClass"), ["tests/test_missing.py"]],
    "families/per_class_multivariate_gaussian.py": [FORMULAS, laws("PerClass"), PEERS],
    "families/poisson.py": [FORMULAS, laws("Poisson")],
    "families/shared_variance_gaussian.py": [FORMULAS, laws("SharedVariance"), PEERS],
    "importance.py": [["tests/test_importance.py"]],
    "label_shift.py": [["tests/test_unlabelled.py", "-k", "class_rates or label_shift or interval_of_three"]],
    "learning.py": [["tests/test_learning.py"]],
    "leave_one_out.py": [FORMULAS, ["tests/test_likelihood_power.py"], COUNTS],
    "missing.py": [["tests/test_missing.py"]],
    "smoothing.py": [["tests/test_smoothing_rules.py"]],
    "smoothing_rules.py": [["tests/test_smoothing_rules.py"]],
}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
SWAPPED = {"log_rising", "safe_divide", "np.subtract", "xp.subtract", "scipy_special.xlogy"}
NO_FORMULA = {"annotation", "returns", "decorator_list", "slice"}
ORDER = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What a node may be replaced by, with the kind of the change."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            yield "operator", ast.BinOp(left, OPERATORS[type(op)](), right)
            yield "lost term", left
            for side, other in (("left", right), ("right", left)):
                constant = getattr(node, side)
                if isinstance(constant, ast.Constant) and isinstance(constant.value, int | float):
                    wrong = ast.Constant(constant.value + 1)
                    yield "constant", ast.BinOp(*((wrong, op, other) if side == "left" else (other, op, wrong)))
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "sign", operand
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in ORDER:
            yield "bound", ast.Compare(left, [ORDER[type(op)]()], [right])
        case ast.Call(func=func, args=[first, second, *rest]) if ast.unparse(func) in SWAPPED:
            yield "swapped", ast.Call(func, [second, first, *rest], node.keywords)


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """Nodes of formulas with their changes: no text, no types, no indices."""
    queue: list[ast.AST] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name not in LEFT_OUT]
    seen: set[int] = set()
    while queue:
        node = queue.pop()
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert) or id(node) in seen:
            continue
        seen.add(id(node))
        for kind, new in changes(node):
            yield node, kind, new
        for name, value in ast.iter_fields(node):
            if name not in NO_FORMULA and not isinstance(value, ast.arguments):
                queue += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.AST)]


def mutated(source: str, node: ast.AST, new: ast.expr) -> str:
    """The source with the text of a node replaced."""
    lines = source.encode().splitlines(keepends=True)
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    text = source.encode()
    return (text[:begin] + f"({ast.unparse(new)})".encode() + text[end:]).decode()


def passes(copy: Path, arguments: list[str]) -> bool:
    """Whether tests pass in a copy; in a child of this process, which has imported what takes long."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        sink = os.open(copy / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        sys.dont_write_bytecode = True
        import pytest

        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *arguments])))
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code > 2:  # neither passed nor failed
                raise RuntimeError((copy / "log").read_text(errors="replace"))
            return code == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main() -> None:
    """Draw mutants, try each, and print a line for it."""
    parser = argparse.ArgumentParser(prog="python tests/mutation", description="Mutants that no quick test notices.")
    parser.add_argument("--each", type=int, default=3, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="0/1", help="i/n: every n-th module from the i-th on")
    parser.add_argument("modules", nargs="*", default=list(MODULES), help="as families/poisson.py; default: all")
    options = parser.parse_args()
    first, step = map(int, options.part.split("/"))

    for name in ("numpyro", "pandas", "scipy.stats", "sklearn.ensemble"):
        importlib.import_module(name)  # the children share it

    copy = Path(tempfile.mkdtemp()) / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "docs"))
    shutil.copytree(ROOT / "docs", copy / "docs", ignore=shutil.ignore_patterns("_build"))
    killed, survivors = 0, []
    for module in options.modules[first::step]:
        path = copy / "bayesgen" / module
        source = path.read_text(encoding="utf-8")
        found = list(places(ast.parse(source)))
        rng = random.Random(f"{options.seed} {module}")
        for node, kind, new in rng.sample(found, min(options.each, len(found))):
            begin = time.monotonic()
            path.write_text(mutated(source, node, new), encoding="utf-8")
            alive = all(passes(copy, arguments) for arguments in MODULES[module])
            by = re.findall(r"^(?:FAILED|ERROR) (\S+)", (copy / "log").read_text(errors="replace"), flags=re.M)
            what = f"{module}:{node.lineno} {kind}: {ast.unparse(node)!r} -> {ast.unparse(new)!r}"
            how = "SURVIVED" if alive else f"killed by {by[0] if by else 'time or a crash'}"
            print(f"{time.monotonic() - begin:4.0f} s  {what}: {how}", flush=True)
            killed += not alive
            survivors += [what] if alive else []
        path.write_text(source, encoding="utf-8")
    shutil.rmtree(copy.parent)
    print(f"{killed} killed, {len(survivors)} survived", *survivors, sep="\n")


if __name__ == "__main__":
    main()
