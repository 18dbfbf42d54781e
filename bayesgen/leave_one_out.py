"""What is made of exact leave-one-out: its sums, and the power of the likelihood that it favours."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from bayesgen._math import logsumexp

__all__ = ["LooResult", "best_power"]

MOST_POWER = 1e4


@dataclass(frozen=True, eq=False)
class LooResult:
    r"""Exact leave-one-out of the conjugate model: each row predicted from all the others.

    Attributes
    ----------
    log_joint : ndarray (n, K)
        ln p(x_i, y = k | all rows but i). NaN where the downdated posterior does not exist.
    joint : ndarray (n,)
        ln p(x_i, y_i | rest).
    conditional : ndarray (n,)
        ln p(y_i | x_i, rest).
    elpd_joint, elpd_conditional : float
        Their sums, in nats.
    se_joint, se_conditional : float
        Standard errors of the sums, :math:`\sqrt{n}` times the standard deviation over rows.

    Examples
    --------
    >>> from bayesgen import BernoulliNB
    >>> X, y = [[1, 0], [1, 1], [0, 1]], [0, 0, 1]
    >>> loo = BernoulliNB().fit(X, y).loo(X, y)
    >>> loo.joint.shape, loo.log_joint.shape
    ((3,), (3, 2))
    """

    log_joint: np.ndarray
    joint: np.ndarray
    conditional: np.ndarray

    @property
    def elpd_joint(self) -> float:
        """Sum of `joint`."""
        return float(self.joint.sum())

    @property
    def elpd_conditional(self) -> float:
        """Sum of `conditional`."""
        return float(self.conditional.sum())

    @property
    def se_joint(self) -> float:
        """Standard error of `elpd_joint`."""
        return float(np.sqrt(len(self.joint)) * self.joint.std(ddof=1)) if len(self.joint) > 1 else np.nan

    @property
    def se_conditional(self) -> float:
        """Standard error of `elpd_conditional`."""
        n = len(self.conditional)
        return float(np.sqrt(n) * self.conditional.std(ddof=1)) if n > 1 else np.nan

    def to_arviz(self, kind: str = "joint") -> Any:
        """The result as ArviZ holds one, for ``az.compare({"name": result.to_arviz(), ...})``.

        Parameters
        ----------
        kind : {"joint", "conditional"}
            Which of the two densities; compare like with like.

        Returns
        -------
        arviz.ELPDData
            With the densities of rows. They are exact: Pareto k is 0, and the effective number of parameters is NaN.
        """
        from bayesgen import arviz_io

        if kind not in ("joint", "conditional"):
            raise ValueError(f"kind must be 'joint' or 'conditional'; got {kind!r}")
        return arviz_io.elpd_data(getattr(self, kind), getattr(self, f"se_{kind}"))

    def __repr__(self) -> str:
        return (
            f"LooResult(n={len(self.joint)}, elpd_joint={self.elpd_joint:.2f} (se {self.se_joint:.2f}), "
            f"elpd_conditional={self.elpd_conditional:.2f} (se {self.se_conditional:.2f}))"
        )


def best_power(log_class: np.ndarray, features: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    r"""The power of the likelihood that predicts the labels best, by leave-one-out.

    It maximises the weighted sum of
    :math:`\ln\mathrm{softmax}_k[\ln p(y{=}k) + \eta\ln p(x \mid y{=}k)]_{y_i}` over :math:`\eta \ge 0`, a concave
    problem.

    Rows that are impossible in their own class, or have no leave-one-out density, have no say; where no row has one,
    or all classes are alike, the power is 1.
    """
    own = np.arange(len(codes)), codes
    use = np.isfinite(features[own]) & np.isfinite(log_class[own]) & (weights > 0)
    log_class, weights, gap = log_class[use], weights[use], features[use] - features[own][use, None]
    possible = (gap > -np.inf) & (log_class > -np.inf)
    gap = np.where(possible, gap, 0.0)

    def slope(power: float) -> float:
        scores = np.where(possible, log_class + power * gap, -np.inf)
        prob = np.exp(scores - logsumexp(scores, keepdims=True))
        return -float(weights @ (prob * gap).sum(axis=1))

    if not gap.any():
        return 1.0
    if slope(0.0) <= 0:
        return 0.0
    high = 1.0
    while high < MOST_POWER and slope(high) > 0:
        high *= 2.0
    if (gap <= 0).all() or high >= MOST_POWER:
        warnings.warn(
            "no likelihood power is best: leave-one-out predicts every label right, the more surely the larger the "
            "power; it stays at 1",
            UserWarning,
            stacklevel=2,
        )
        return 1.0
    return float(brentq(slope, 0.0, high, xtol=1e-12, rtol=1e-12))
