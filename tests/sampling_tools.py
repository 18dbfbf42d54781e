"""What the tests of draws share: comparison with a closed form, or with other draws, in Monte Carlo standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpyro.diagnostics import effective_sample_size

from bayesgen import nuts


class Asked(Exception):
    """Raised in place of a NUTS run; holds what would have been run."""

    def __init__(self, form: Any, args: tuple[Any, ...], options: Any, seed: int) -> None:
        super().__init__()
        self.form, self.args, self.options, self.seed = form, args, options, seed


def asked(monkeypatch: Any, features: Any) -> Asked:
    """The program, its arguments, and the seed that a sampled fit would run."""

    def refuse(*args: Any) -> None:
        raise Asked(*args)

    with monkeypatch.context() as patch:
        patch.setattr(nuts, "run", refuse)
        try:
            _ = features.draws
        except Asked as found:
            return found
    raise AssertionError("nothing was run")


def _flat(draws: Any) -> np.ndarray:
    draws = np.asarray(draws, dtype=float)
    return draws.reshape(*draws.shape[:2], -1)


def _mean_and_error(draws: np.ndarray, ess: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean over chains and draws of (chains, draws, numbers), and its Monte Carlo standard error."""
    ess = effective_sample_size(draws) if ess is None else ess
    return draws.mean(axis=(0, 1)), draws.std(axis=(0, 1)) / np.sqrt(ess)


def from_moments(draws: Any, mean: Any, variance: Any) -> np.ndarray:
    """Deviations of means and standard deviations from the exact ones, in Monte Carlo standard errors.

    The standard deviation is compared by the mean of (x - exact mean)^2, whose standard error needs no delta method.
    """
    draws, mean, variance = _flat(draws), np.ravel(mean), np.ravel(variance)
    centred = draws - mean
    first, first_error = _mean_and_error(centred)
    second, second_error = _mean_and_error(centred**2)
    return np.concatenate([first / first_error, (second - variance) / second_error])


def from_draws(a: Any, b: Any, ess: float | None = None) -> np.ndarray:
    """Differences of means and of standard deviations of two sets of draws, in Monte Carlo standard errors.

    `ess` is the effective number of draws b where they do not show it themselves: after importance resampling they
    repeat each other.
    """
    a, b = _flat(a), _flat(b)
    centre = b.mean(axis=(0, 1))
    out = []
    for power in (1, 2):
        m, m_error = _mean_and_error((a - centre) ** power)
        n, n_error = _mean_and_error((b - centre) ** power, ess)
        out.append((m - n) / np.hypot(m_error, n_error))
    return np.concatenate(out)
