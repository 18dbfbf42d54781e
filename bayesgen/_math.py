"""Array namespaces and the few special functions that scipy and JAX do not give accurately.

The closed forms of this library are written once, against an array namespace: NumPy for NumPy input
(float64, nothing to compile, the same in every thread), `jax.numpy` for JAX arrays and tracers, so that
the same functions can be jitted, differentiated, and used inside a NumPyro program.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import scipy.special as scipy_special

Array = Any  # a NumPy or JAX array; shapes are given in the docstrings
NUMPY = frozenset({np.ndarray, np.float64, float, int})


def imported_jax() -> Any:
    """JAX if it has been imported, else None, when no value is one of its arrays.

    While another thread is still importing it, it is in `sys.modules` without its contents.
    """
    jax = sys.modules.get("jax")
    return jax if all(hasattr(jax, name) for name in ("Array", "tree_util", "numpy", "random", "core")) else None


def namespace(*values: Any) -> ModuleType:
    """`jax.numpy` if any leaf of the values is a JAX array or tracer, else `numpy`.

    JAX takes as long to import as the rest together: until somebody has, no value is one of its arrays.
    """
    if "jax" not in sys.modules or all(type(v) in NUMPY for v in values):  # to ask JAX itself takes longer
        return np
    jax = imported_jax()
    if jax is None:
        return np
    leaves = jax.tree_util.tree_leaves(values) if any(isinstance(v, tuple) for v in values) else values
    return jax.numpy if any(isinstance(leaf, jax.Array) for leaf in leaves) else np


def special(xp: ModuleType) -> ModuleType:
    """The special functions (`gammaln`, `digamma`, `xlogy`, ...) that belong to an array namespace."""
    if xp is np:
        return scipy_special
    import jax.scipy.special

    return jax.scipy.special


def safe_log(x: Array) -> Array:
    """Log of x, with ln 0 = -inf, without passing through a division or an invalid value."""
    xp = namespace(x)
    positive = x > 0
    if xp is np:
        x = np.asarray(x, dtype=float)
        out = np.full(x.shape, -np.inf)
        np.log(x, out=out, where=positive)
        if not positive.all():
            out[~(x >= 0)] = np.nan
        return out
    return xp.where(positive, xp.log(xp.where(positive, x, 1.0)), xp.where(x == 0, -xp.inf, xp.nan))


def safe_divide(a: Array, b: Array, empty: float = np.nan) -> Array:
    """The quotient a / b, and `empty` where b is zero."""
    xp = namespace(a, b)
    zero = b == 0
    return xp.where(zero, empty, a / xp.where(zero, 1.0, b))


def _stirling_tail(z: Array) -> Array:
    """rho(z) = ln Gamma(z) - [(z - 1/2) ln z - z + ln(2 pi) / 2], to 1e-17 for z >= 20."""
    w = 1.0 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / z


def log_rising(z: Array, n: Array) -> Array:
    r"""Log rising factorial, :math:`\ln (z)_n = \ln\Gamma(z+n) - \ln\Gamma(z)`, for real z, n >= 0.

    The difference of two `gammaln` loses all digits for large z (at z = 1e15, n = 3 it gives 104 for
    103.6); from z = 20 on Stirling's series is subtracted term by term instead. At z = 0 it is the
    limit: 0 for n = 0, else -inf.
    """
    xp = namespace(z, n)
    gammaln = special(xp).gammaln
    z, n = xp.asarray(z, dtype=float), xp.asarray(n, dtype=float)
    large = z >= 20.0
    zl = xp.where(large, z, 20.0)
    stirling = (zl + n - 0.5) * xp.log1p(n / zl) + n * xp.log(zl) - n + _stirling_tail(zl + n) - _stirling_tail(zl)
    positive = z > 0
    zs = xp.where(large | ~positive, 1.0, z)
    small = gammaln(zs + n) - gammaln(zs)
    return xp.where(large, stirling, xp.where(positive, small, xp.where(n > 0, -xp.inf, 0.0)))


def _log1p_gap(u: np.ndarray) -> np.ndarray:
    """Values of u - log1p(u) without cancellation near zero: the series of 2 atanh(v), v = u / (2 + u)."""
    v = np.where(np.abs(u) < 0.1, u, 0.0) / (2.0 + np.where(np.abs(u) < 0.1, u, 0.0))
    w = v * v
    tail = 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w / 13))))
    return np.where(np.abs(u) < 0.1, u * v - 2.0 * v * w * tail, u - np.log1p(u))


def log_poisson(x: np.ndarray, rate: np.ndarray) -> np.ndarray:
    r"""Log probability of a Poisson count, for x in the billions too.

    There :math:`x\ln\lambda`, :math:`\lambda` and :math:`\ln x!` are 1e11 and nearly cancel: Stirling's series
    leaves the deviance :math:`x\ln(x/\lambda) + \lambda - x` and small terms (Loader 2000, *Fast and accurate
    computation of binomial probabilities*).
    """
    with np.errstate(all="ignore"):
        large = np.where(x >= 20.0, x, 20.0)
        saddle = -large * _log1p_gap((rate - large) / large) - 0.5 * np.log(2 * np.pi * large) - _stirling_tail(large)
        small = scipy_special.xlogy(x, rate) - rate - scipy_special.gammaln(x + 1.0)
        return np.where(x >= 20.0, saddle, small)


def log_negative_binomial(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""Poisson probability of x with the rate integrated over Gamma(a, rate b), without cancellation at large x.

    :math:`\ln(a)_x - \ln x! - a\ln(1+1/b) - x\ln(1+b)`; where a and x are large, as two deviances from their
    shares of a + x.
    """
    with np.errstate(all="ignore"):
        tails = a * np.log1p(1.0 / b) + x * np.log1p(b)
        direct = log_rising(a, x) - scipy_special.gammaln(x + 1.0) - tails
        # ln Gamma(a + x) - ln x! with only a small: one rising factorial of the large number
        ratio = np.where(a >= 1.0, log_rising(x + 1.0, np.abs(a - 1.0)), -log_rising(x + a, np.abs(1.0 - a)))
        skewed = ratio - scipy_special.gammaln(a) - tails
        large, shape = np.where(x >= 20.0, x, 20.0), np.where(a >= 20.0, a, 20.0)
        apart = b * large - shape
        share = _log1p_gap(apart / ((1.0 + b) * shape)) * shape + _log1p_gap(-apart / ((1.0 + b) * large)) * large
        both = -share - 0.5 * np.log(2 * np.pi * large * (1.0 + large / shape))
        both += _stirling_tail(large + shape) - _stirling_tail(shape) - _stirling_tail(large)
        return np.where(x < 20.0, direct, np.where(a < 20.0, np.where(a > 0, skewed, direct), both))


def log_factorial(x: np.ndarray) -> np.ndarray:
    """Log of x! = Gamma(x + 1); small whole numbers come from a table."""
    x = np.asarray(x, dtype=float)
    if x.size > 256 and x.max() < 4096 and np.all(x == np.floor(x)):
        return scipy_special.gammaln(np.arange(x.max() + 1) + 1.0)[x.astype(np.int64)]
    return scipy_special.gammaln(x + 1.0)


def log_multigamma_ratio(df: Array, n: Array, d: int) -> Array:
    r""":math:`\ln\Gamma_d((\nu+n)/2) - \ln\Gamma_d(\nu/2)` for degrees of freedom nu and n more."""
    xp = namespace(df, n)
    j = xp.arange(d, dtype=float)
    return log_rising((xp.asarray(df)[..., None] - j) / 2, xp.asarray(n)[..., None] / 2 + 0.0 * j).sum(-1)


def logsumexp(a: np.ndarray, axis: int = -1, keepdims: bool = False) -> np.ndarray:
    """log(sum(exp(a))), -inf where every term is -inf, without a floating-point warning.

    It is what `scipy.special.logsumexp` gives, which takes twice the time, and several times for one row.
    """
    top = np.max(a, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        out = np.log(np.exp(a - shift).sum(axis=axis, keepdims=True)) + shift
    return out if keepdims else np.squeeze(out, axis=axis)


def sum_log1p(u: np.ndarray) -> np.ndarray:
    """Sum of log1p over the columns of u (n, d), for 0 <= u < 1e30, with an eighth of the logarithms.

    Eight factors 1 + u are multiplied less one, p <- p + u (1 + p), which keeps the digits of small u.
    """
    product = u[:, ::8].copy()
    for j in range(1, min(8, u.shape[1])):
        part = u[:, j::8]
        head = product[:, : part.shape[1]]
        head += part * (1.0 + head)
    return np.log1p(product).sum(axis=1)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum of two floats and its rounding error: high + low == a + b exactly (Knuth)."""
    high = a + b
    t = high - a
    return high, (a - (high - t)) + (b - t)
