"""Sphinx configuration: MyST notebooks, numpydoc, and an API reference that cannot miss a public name."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
from pathlib import Path

import bayesgen

HERE = Path(__file__).parent

project = "bayesgen"
author = "The bayesgen developers"
copyright = author
version = release = bayesgen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
]
templates_path = ["_templates"]  # a class's page: autodoc writes its members
exclude_patterns = ["_build", "conf.py", "jupyter_execute", "**.ipynb_checkpoints"]

# ---------------------------------------------------------------- pages
html_theme = "pydata_sphinx_theme"
html_title = "bayesgen"
html_theme_options = {"logo": {"text": "bayesgen"}, "show_toc_level": 2, "navigation_with_keys": False}
html_sidebars = {page.stem: [] for page in HERE.glob("*.md") if not page.stem.startswith(("api", "index"))}
html_show_sphinx = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# ---------------------------------------------------------------- notebooks
os.environ["CI"] = "true"  # the kernels inherit it: no progress bars in pages
# The examples are scripts in the percent format; they become pages here, executed, so that a page cannot show
# a result which the code does not give. An example that fails fails the build.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / ".jupyter_cache")
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

# ---------------------------------------------------------------- API reference
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters sections say it, with shapes
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autodoc writes them; this would write them twice


def collect_examples() -> None:
    """Copy ``examples/*.py`` to where Sphinx reads, which is its own folder only, and list them."""
    target = HERE / "examples"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    scripts = sorted((HERE.parent / "examples").glob("*.py"))
    for script in scripts:
        shutil.copy(script, target)
    rows = "\n".join(script.stem for script in scripts)
    page = "# Examples\n\nScripts from the folder `examples`, executed when these pages were built.\n"
    if scripts:
        page += f"\n```{{toctree}}\n:maxdepth: 1\n\n{rows}\n```\n"
    (target / "index.md").write_text(page, encoding="utf-8")


def listed_names(page: Path) -> set[str]:
    """Full names in the autosummary tables of a page."""
    module, names = "", set()
    for line in page.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r" {3}(\w+)", line):
            names.add(f"{module}.{match[1]}")
    return names


def public_modules(name: str = "bayesgen") -> dict[str, list[str]]:
    """``bayesgen`` and the modules among its public names, each with its public names that are no modules."""
    module = importlib.import_module(name)
    modules: dict[str, list[str]] = {name: []}
    for item in sorted(item for item in module.__all__ if not item.startswith("_")):
        if inspect.ismodule(getattr(module, item)):
            modules |= public_modules(f"{name}.{item}")
        else:
            modules[name].append(item)
    return modules


def collect_unlisted_names() -> None:
    """Write ``api_more.md``: the public names that ``api.md`` does not list, so that each has its page."""
    listed = listed_names(HERE / "api.md")
    sections = []
    for module, public in public_modules().items():
        names = [name for name in public if f"{module}.{name}" not in listed]
        if names:
            rows = "\n".join(f"   {name}" for name in names)
            table = f".. currentmodule:: {module}\n.. autosummary::\n   :toctree: api\n\n{rows}"
            sections.append(f"## `{module}`\n\n```{{eval-rst}}\n{table}\n```\n")
    page = HERE / "api_more.md"
    page.unlink(missing_ok=True)
    if sections:
        page.write_text("# More of the API\n\n" + "\n".join(sections), encoding="utf-8")


def skip_foreign_members(app, what, name, obj, skip, options):
    """Leave out what a class inherits from other libraries: their documentation has it."""
    function = getattr(obj, "fget", None) or getattr(obj, "func", None) or getattr(obj, "__func__", obj)
    module = getattr(function, "__module__", None)
    if callable(function) and not str(module).startswith("bayesgen"):
        return True
    return None


def setup(app):
    app.connect("autodoc-skip-member", skip_foreign_members)


collect_examples()
collect_unlisted_names()
