"""What every test file shares: fixed seeds, no screen, and the optional folder of data sets."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import pandas as pd

# By the variable, not by matplotlib.use: this imports nothing, and the processes that tests start inherit it.
os.environ["MPLBACKEND"] = "Agg"

# The same examples in every run, and no deadline of their own: the first call compiles. The time limit of the
# test (pyproject.toml) holds for all examples together.
settings.register_profile("bayesgen", derandomize=True, deadline=None, max_examples=50, print_blob=True)
settings.load_profile("bayesgen")

REPOSITORY = Path(__file__).resolve().parent.parent
SLOW_TIMEOUT = 900.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests a longer limit, unless they state one."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))


@pytest.fixture(autouse=True)
def _seeds() -> Iterator[None]:
    """Fix the two global generators, which third-party code may use; our own code takes a seed or `rng`.

    They are put back afterwards, so that no test depends on which one ran before it.
    """
    state, legacy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    yield
    random.setstate(state)
    np.random.set_state(legacy_state)  # noqa: NPY002


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that starts at the same place in every test."""
    return np.random.default_rng(20250229)


def read_table(path: Path) -> pd.DataFrame:
    """Read a ``.csv``, ``.tsv``, ``.csv.gz`` or ``.tsv.gz`` file; empty fields of a CSV are missing.

    A TSV holds texts: nothing is quoted, and the word "null" or "NA" is a word.
    """
    pd = pytest.importorskip("pandas")
    if ".tsv" in path.suffixes:
        import csv

        return pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    return pd.read_csv(path)


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The optional folder ``shared`` beside the repository; a test that asks for it is skipped without it."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the optional folder `shared` beside the repository")
    return folder


@pytest.fixture(scope="session")
def data(shared_folder: Path) -> Callable[[str], pd.DataFrame]:
    """A loader: ``data("penguins")`` is the table in ``shared/data/penguins.csv.gz`` (or ``.tsv.gz``).

    Each file is read once; the caller gets a copy.
    """
    tables: dict[str, pd.DataFrame] = {}

    def load(name: str) -> pd.DataFrame:
        if name not in tables:
            path = next((shared_folder / "data").glob(f"{name}.?sv.gz"), None)
            if path is None:
                pytest.skip(f"needs the optional data set `{name}`")
            tables[name] = read_table(path)
        return tables[name].copy()

    return load
