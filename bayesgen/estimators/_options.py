"""Checks of constructor options that several estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np

DROP_NAN = "Use missing='marginalize' to leave missing cells out, or drop the rows"


def concentration(alpha: Any) -> Any:
    """A checked concentration: a number or an array of non-negative numbers."""
    if type(alpha).__module__.startswith("numpyro"):
        raise ValueError(
            "alpha is a distribution: a hierarchical concentration has no closed form and needs inference='nuts'"
        )
    if isinstance(alpha, str):
        raise ValueError(f"alpha must be a non-negative number or array; got {alpha!r}")
    out = np.asarray(alpha)
    if out.dtype.kind not in "iuf" or not np.isfinite(out).all() or (out < 0).any():
        raise ValueError(f"alpha must be a non-negative number or array; got {alpha!r}")
    return out.astype(float)


def check_missing(missing: str) -> None:
    """The two policies for missing cells."""
    if missing not in ("marginalize", "error"):
        raise ValueError(f"missing must be 'marginalize' or 'error'; got {missing!r}")
