"""The seam to ArviZ: what differs between its 0.23 and its 1.x line is here and nowhere else."""

from __future__ import annotations

import numpy as np

__all__ = ["psis"]


def psis(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights of independent draws, (n,), normalised, and k-hat."""
    import arviz

    if hasattr(arviz, "InferenceData"):
        smoothed, khat = arviz.psislw(log_weights)
    else:
        from arviz_stats.base import array_stats  # type: ignore[import-not-found, unused-ignore]

        smoothed, khat = array_stats.psislw(log_weights, r_eff=1.0)
    return np.asarray(smoothed), float(khat)
