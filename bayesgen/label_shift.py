r"""Class rates among rows without labels, where p(x | y) is known: label shift.

The log likelihood :math:`\ell(\pi) = \sum_i w_i \ln\sum_k \pi_k f_k(x_i)` is concave in the rates. EM, with steps
:math:`\pi_k \leftarrow \sum_i w_i r_{ik} / \sum_i w_i`, climbs it. The interval of a rate is where the profile
likelihood :math:`\max_{\pi: \pi_k = t}\ell(\pi)` is within :math:`\tfrac12\chi^2_1` of the top. [Saerens, Latinne and
Decaestecker 2002; Pawitan 2001, *In All Likelihood*, section 3.4]
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

from bayesgen._values import python_values
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning

__all__ = ["ClassPriorEstimate", "estimate_rates"]

TOLERANCE = 1e-12
MOST_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class ClassPriorEstimate:
    """Estimated class rates; stands for the array of them where one is expected.

    Attributes
    ----------
    class_prior : ndarray (K,)
        Maximum-likelihood rates.
    lower, upper : ndarray (K,)
        Ends of the interval of each.
    prob : float
        Confidence of each interval.
    classes : ndarray (K,)
        Class labels.
    trace : ndarray (n_steps,)
        Log likelihood after each step of EM, in nats, up to a constant.

    Examples
    --------
    >>> from bayesgen import BernoulliNB
    >>> model = BernoulliNB().fit([[1], [1], [0], [0]], [0, 0, 1, 1])
    >>> rates = model.estimate_class_prior([[1], [1], [1], [0]])
    >>> rates.classes.tolist(), rates.class_prior.argmax().item()
    ([0, 1], 0)
    """

    class_prior: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    prob: float
    classes: np.ndarray
    trace: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """`class_prior`."""
        return np.array(self.class_prior, dtype=dtype)

    def __repr__(self) -> str:
        parts = zip(python_values(self.classes), self.class_prior, self.lower, self.upper, strict=True)
        rates = ", ".join(f"{k!r}: {p:.3f} ({low:.3f} to {high:.3f})" for k, p, low, high in parts)
        return f"ClassPriorEstimate({rates})"


def estimate_rates(
    log_density: np.ndarray, weights: np.ndarray | None, prob: float, classes: np.ndarray
) -> ClassPriorEstimate:
    """Class rates from ln p(x | y = k) of unlabelled rows, (n, K), and their weights."""
    if not isinstance(prob, (float, int, np.floating)) or not 0 < prob < 1:
        raise ValueError(f"prob must be a number between 0 and 1; got {prob!r}")
    w = np.ones(len(log_density)) if weights is None else weights
    possible = np.asarray((log_density > -np.inf).any(axis=1))
    if not (w[possible] > 0).any():
        raise UndefinedNumberError("no class can generate any of these rows: their class rates are undefined")
    if not possible.all():
        warnings.warn(
            f"{int((~possible).sum())} of {len(possible)} rows have probability zero in every class and say nothing "
            "about class rates",
            ZeroProbabilityWarning,
            stacklevel=3,
        )
    log_density, w = log_density[possible], w[possible]
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    rates, trace = _climb(density, w)
    cut = trace[-1] - 0.5 * chi2.ppf(prob, 1)
    ends = [_interval(density, w, rates, k, cut) for k in range(len(classes))]
    lower, upper = np.array(ends).T
    return ClassPriorEstimate(rates, lower, upper, float(prob), classes, trace)


def _climb(density: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """EM from equal rates."""
    rates = np.full(density.shape[1], 1.0 / density.shape[1])
    trace: list[float] = []
    while True:
        mixture = density @ rates
        trace.append(float(w @ np.log(mixture)))
        step = len(trace) > 1 and trace[-1] - trace[-2] <= TOLERANCE * max(1.0, abs(trace[-1]))
        if step or len(trace) == MOST_STEPS:
            return rates, np.array(trace)
        rates = rates * ((w / mixture) @ density)
        rates /= rates.sum()


def _profile(density: np.ndarray, w: np.ndarray, rates: np.ndarray, k: int, t: float) -> float:
    """The largest log likelihood with rate k at t."""
    others = np.delete(np.arange(len(rates)), k)
    own, rest = t * density[:, k], (1.0 - t) * density[:, others]

    def value(share: np.ndarray) -> tuple[float, np.ndarray]:
        mixture = np.maximum(own + rest @ share, 1e-300)
        return -float(w @ np.log(mixture)), -((w / mixture) @ rest)

    start = rates[others] + 1e-6
    start /= start.sum()
    if len(others) == 1:
        return -value(start)[0]
    found = minimize(
        value,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(others),
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-10, "maxiter": 500},
    )
    return -float(found.fun)


def _interval(density: np.ndarray, w: np.ndarray, rates: np.ndarray, k: int, cut: float) -> tuple[float, float]:
    """Where the profile likelihood of rate k is above the cut."""
    if len(rates) == 1:
        return 1.0, 1.0

    def excess(t: float) -> float:
        return _profile(density, w, rates, k, t) - cut

    ends = []
    for end in (0.0, 1.0):
        inside = excess(end) >= 0
        ends.append(end if inside else float(brentq(excess, *sorted((end, float(rates[k]))), xtol=1e-7)))
    return ends[0], ends[1]
