"""Sphinx configuration: MyST notebooks, executed when built, and an API reference by autosummary and numpydoc."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import bayesgen

HERE = Path(__file__).parent

# Title, authors and licence are those of the package's metadata, the version is the package's own.
ABOUT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = ABOUT["name"]
author = copyright = ABOUT["authors"][0]["name"]
version = release = bayesgen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
]
nitpicky = True  # a reference that leads nowhere is a warning, and warnings are errors
templates_path = ["_templates"]  # a class's page: autodoc writes its members
exclude_patterns = ["_build", "conf.py", "jupyter_execute", "**.ipynb_checkpoints"]

# ---------------------------------------------------------------- pages
html_theme = "pydata_sphinx_theme"
html_title = "bayesgen"
html_theme_options = {
    "logo": {"text": "bayesgen"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
}
html_sidebars = {page.stem: [] for page in HERE.glob("*.md") if page.stem not in ("api", "index", "models")}
html_show_sphinx = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 3
myst_substitutions = {
    "version": version,
    "citation_cff": f"""```yaml
cff-version: 1.2.0
message: If you use this software, please cite it as below.
type: software
title: {project}
abstract: {ABOUT["description"]}
authors:
  - name: {author}
version: {version}
license: {ABOUT["license"]}
```""",
    "citation_bibtex": f"""```bibtex
@software{{{project},
  author  = {{{{{author}}}}},
  title   = {{{{{project}}}: {ABOUT["description"]}}},
  version = {{{version}}},
}}
```""",
}

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
