"""The documentation names, links and documents what there is."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

import bayesgen

DOCS = Path(__file__).parent.parent / "docs"
ROLE = re.compile(r"\{(?:class|meth|attr|func|exc)\}`~?([\w.]+)`")


def listed() -> list[str]:
    """Full names in the tables of the API reference."""
    module, names = "", []
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r" {3}(\w+)", line):
            names.append(f"{module}.{match[1]}")
    return names


def public(name: str = "bayesgen") -> list[str]:
    """Full names of what ``__all__`` offers, in `bayesgen` and in the modules among its names."""
    module = importlib.import_module(name)
    names = []
    for item in module.__all__:
        full = f"{name}.{item}"
        names += public(full) if inspect.ismodule(getattr(module, item)) else [full]
    return names


def first_definitions(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class that come from this library, each where it is first defined.

    The definition furthest from the class has all sections of the docstring; one that overrides it says what differs.
    """
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("bayesgen"):
            for name, member in vars(base).items():
                if not name.startswith("_"):
                    found.setdefault(name, (base, member))
    return found


def functions() -> dict[str, tuple[str, Any]]:
    """Where each documented function, class and method is defined, and which name of the reference leads to it."""
    out = {}
    for name in listed():
        thing = resolve_name(name)
        out.setdefault(f"{thing.__module__}.{thing.__qualname__}", (name, thing))
        if inspect.isclass(thing):
            for method, (base, member) in first_definitions(thing).items():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function):
                    at = f"{base.__module__}.{base.__qualname__}.{method}"
                    out.setdefault(at, (f"{name}.{method}", function))
    return out


def test_the_reference_lists_every_public_name() -> None:
    missing = sorted(set(public()) - set(listed()))
    assert not missing, f"docs/api.md does not list {', '.join(missing)}"


def test_the_reference_lists_nothing_twice_and_nothing_that_is_not_there() -> None:
    names = listed()
    assert len(names) == len(set(names))
    for name in names:
        resolve_name(name)


def test_everything_public_has_a_docstring() -> None:
    bare = []
    for name in listed():
        thing = resolve_name(name)
        if not thing.__doc__:
            bare.append(name)
        if inspect.isclass(thing):
            for member, (_, value) in first_definitions(thing).items():
                documentable = callable(value) or hasattr(value, "__func__") or isinstance(value, property)
                if documentable and not (getattr(value, "__func__", value).__doc__):
                    bare.append(f"{name}.{member}")
    assert not bare, f"without a docstring: {', '.join(bare)}"


def test_docstrings_have_the_sections_they_need() -> None:
    """By numpydoc's own validation: parameters, all of them and in order; what is returned; an example."""
    pytest.importorskip("numpydoc")
    from numpydoc.validate import validate

    problems = []
    for at, (name, thing) in functions().items():
        codes = {"GL08", "PR01", "PR02", "PR03", "RT01"}
        if "." not in thing.__qualname__ and not (inspect.isclass(thing) and issubclass(thing, Warning)):
            codes.add("EX01")
        if "\n    Attributes\n" in thing.__doc__ and "\n    Parameters\n" not in thing.__doc__:
            codes.remove("PR01")  # a result: users get it and do not make it
        problems += [f"{name}: {text} ({code})" for code, text in validate(at)["errors"] if code in codes]
    assert not problems, "\n".join(sorted(problems))


@pytest.mark.parametrize("page", sorted(p.name for p in (DOCS / "lectures").glob("*.md")))
def test_each_formula_of_a_lecture_says_what_computes_it(page: str) -> None:
    """Between a displayed formula and the next one, or the next heading, stands a link to the API."""
    text = (DOCS / "lectures" / page).read_text(encoding="utf-8")
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.M | re.S)
    parts = re.split(r"^\$\$.*?\$\$[.:]?\s*?$", text, flags=re.M | re.S)
    assert 2 * (len(parts) - 1) == text.count("$$")
    for before, after in pairwise(parts):
        section = re.split(r"^#+ ", after, flags=re.M)[0]
        assert ROLE.search(section), f"nothing is linked after the formula that follows {before.strip()[-80:]!r}"


def test_links_to_the_reference_lead_to_something_that_it_documents() -> None:
    roots = listed()
    for page in DOCS.rglob("*.md"):
        if "_build" in page.parts or page.is_relative_to(DOCS / "api"):
            continue
        for name in ROLE.findall(page.read_text(encoding="utf-8")):
            assert any(name == root or name.startswith(f"{root}.") for root in roots), f"{name} in {page.name}"
            resolve_name(name)


IMPORT_EACH_FIRST = """
import importlib, sys
for name in sys.argv[1:]:
    for known in [module for module in sys.modules if module.partition(".")[0] == "bayesgen"]:
        del sys.modules[known]
    importlib.import_module(name)
"""


def test_each_public_module_can_be_imported_first() -> None:
    """With none of the others there no circle of imports is hidden."""
    modules = sorted({name.rpartition(".")[0] for name in listed()})
    subprocess.run([sys.executable, "-c", IMPORT_EACH_FIRST, *modules], check=True, timeout=100)


def test_the_version_is_written_in_one_place() -> None:
    places = [DOCS / "citing.md", DOCS / "conf.py", DOCS.parent / "pyproject.toml"]
    assert not [place.name for place in places if f'"{bayesgen.__version__}"' in place.read_text(encoding="utf-8")]
