"""Every example runs, with small settings, and draws its figure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bayesgen

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
# These compile NUTS.
SAMPLED = {"gda_full_bayes", "hierarchical_words", "small_data_calibration", "smoothing_is_a_prior"}


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_runs_and_draws_its_figure(example: Path, tmp_path: Path) -> None:
    settings = {"BAYESGEN_QUICK": "1", "BAYESGEN_FIGURES": str(tmp_path), "MPLBACKEND": "Agg"}
    # The package that is under test, also where it is not installed.
    environment = {**os.environ, **settings, "PYTHONPATH": str(Path(bayesgen.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600 if example.stem in SAMPLED else 100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / f"{example.stem}.png").read_bytes().startswith(b"\x89PNG")
