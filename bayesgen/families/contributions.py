r"""What each column of a row adds to :math:`\ln p(x \mid y{=}k)`, for every family.

The share of a column is its Shapley value in the game whose value is the log density of a subset of the cells, the
others integrated out:

.. math::

    c_{jk} = \operatorname{mean}_{\pi}\; \ln p(x_j \mid x_{<_\pi j}, y{=}k),

the sequential log density of the cell given those before it, averaged over all orders :math:`\pi` of the columns. The
shares add up to :math:`\ln p(x \mid y{=}k)` in every order, a missing cell has none, and a change of unit or origin of
a column moves the shares of all classes alike. Where columns are independent given the class this is their own log
density. The words of a document are dependent in the Polya urn: averaged over the orders of its *tokens*, a word has

.. math:: \ln(\alpha_{kj})_{x_j} - \tfrac{x_j}{L}\ln(A_k)_L .

Normal classes with a full covariance average over all orders of up to six columns, and over 256 fixed random ones
(128, and their reverses) of more: the sum stays exact, the split has a Monte Carlo error.

References: Shapley 1953, *A value for n-person games*; Good 1985, *Weight of evidence: a brief survey*; Strumbelj and
Kononenko 2014, *Explaining prediction models and individual predictions with feature contributions*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from itertools import permutations
from typing import Any

import numpy as np
from scipy.special import polygamma

from bayesgen._linalg import inverse_factor
from bayesgen._math import log_negative_binomial, log_poisson, log_rising, logsumexp, safe_divide
from bayesgen.families.base import Family
from bayesgen.families.bernoulli import Bernoulli
from bayesgen.families.categorical import Categorical
from bayesgen.families.diagonal import Diagonal
from bayesgen.families.diagonal_scores import LOG_2PI
from bayesgen.families.gaussian import Gaussian
from bayesgen.families.multinomial import Multinomial
from bayesgen.families.multivariate import Multivariate
from bayesgen.families.normal_scores import t_formula
from bayesgen.families.poisson import Poisson
from bayesgen.families.shared_variance_gaussian import SharedVarianceGaussian

__all__ = ["contributions", "draw_contributions", "over_draws", "variances"]

ALL_ORDERS = 720  # six columns
SOME_ORDERS = 256  # of more columns
FEW_ORDERS = 24  # where the orders are gone through for every draw


@singledispatch
def contributions(family: Family, params: Any, x: np.ndarray) -> np.ndarray:
    """What each column adds to ln p(x | y = k), (n, d, K); a missing cell adds 0.

    Parameters
    ----------
    family : Family
    params : NamedTuple or None
        Parameters to plug in; None: integrated out under the family as a distribution of them.
    x : array (n, d)
        Rows in the family's form, dense.
    """
    # For families of the user's own: cells that are NaN are integrated out, so that any subset has a value.
    out = np.zeros((*x.shape, family.n_classes))
    orders = column_orders(x.shape[1], FEW_ORDERS, FEW_ORDERS)
    for order in orders:
        hidden, before = np.full(x.shape, np.nan), np.zeros((len(x), family.n_classes))
        for j in order:
            hidden[:, j] = x[:, j]
            value = family.log_predictive(hidden) if params is None else family.log_prob(params, hidden)
            out[:, j] += np.asarray(value) - before
            before = np.asarray(value)
    if np.isnan(out).any():
        raise ValueError(
            f"{type(family).__name__} does not integrate missing cells (NaN) out, which says what each column adds to "
            "ln p(x | y): let its log_prob and log_predictive do so, or register a function with "
            "bayesgen.families.contributions.contributions.register"
        )
    return np.where(np.isnan(x)[..., None], 0.0, out / len(orders))


@singledispatch
def variances(family: Family, x: np.ndarray, contrasts: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """Variances of the contributions under this distribution of the parameters, (n, d, m).

    Parameters
    ----------
    family : Family
        Such as a posterior.
    x : array (n, d)
    contrasts : array (m, K)
        Coefficients of the classes: the identity gives a variance for each class.
    rng, n : Generator, int
        For families without a closed form: n draws of the parameters.
    """
    return variances_of_draws(draw_contributions(family, family.draw(rng, n), x), contrasts)


@singledispatch
def draw_contributions(family: Family, params: Any, x: np.ndarray) -> np.ndarray:
    """Contributions for parameters with a leading axis of S draws, (S, n, d, K)."""
    return np.stack([contributions(family, type(params)(*(p[s] for p in params)), x) for s in range(len(params[0]))])


def variances_of_draws(draws: np.ndarray, contrasts: np.ndarray) -> np.ndarray:
    """Variances over the S draws of contributions (S, n, d, K), for each contrast: (n, d, m)."""
    return (draws @ contrasts.T).var(axis=0)


def over_draws(draws: np.ndarray) -> np.ndarray:
    r"""Contributions to the log of the mean over draws of :math:`\exp\sum_j c_j`, (n, d, K) from (S, n, d, K).

    Shapley values once more: partial sums of the columns in an order, their log-mean-exp over the draws, and the
    differences of that, averaged over orders (24 where there are more).
    """
    n_draws, n, d, n_classes = draws.shape
    out = np.zeros((n, d, n_classes))
    orders = column_orders(d, FEW_ORDERS, FEW_ORDERS)
    for order in orders:
        value = logsumexp(np.cumsum(draws[:, :, order], axis=2), axis=0) - np.log(n_draws)
        out[:, order] += np.diff(value, axis=1, prepend=0.0)
    return out / len(orders)


def column_orders(d: int, most: int = ALL_ORDERS, some: int = SOME_ORDERS) -> np.ndarray:
    """All orders of d columns if they are at most `most`; else `some`, random but always the same, with reverses."""
    if math.factorial(min(d, 12)) <= most:
        return np.array(list(permutations(range(d))), dtype=np.int64).reshape(-1, d)
    rng = np.random.default_rng(0)
    half = np.array([rng.permutation(d) for _ in range(some // 2)])
    return np.concatenate([half, half[:, ::-1]])


def _cells(values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Values (n, K, d) as (n, d, K), 0 where a cell is not seen (n, d)."""
    return np.moveaxis(np.where(seen[:, None, :], values, 0.0), 1, 2)


def _independent(variance: np.ndarray, contrasts: np.ndarray) -> np.ndarray:
    """Variances of contrasts of classes that are independent, from (n, d, K)."""
    return variance @ (contrasts**2).T


# ---- presence and absence


def _presence(x: np.ndarray, present: np.ndarray, absent: np.ndarray) -> np.ndarray:
    return _cells(np.where(x[:, None, :] > 0, present, absent), ~np.isnan(x))


@contributions.register
def _(family: Bernoulli, params: Any, x: np.ndarray) -> np.ndarray:
    return _presence(x, *(family.mean() if params is None else params))


@variances.register
def _(family: Bernoulli, x: np.ndarray, contrasts: np.ndarray, rng: Any, n: int) -> np.ndarray:
    a, b = family.concentrations()
    total = polygamma(1, a + b)
    return _independent(_presence(x, polygamma(1, a) - total, polygamma(1, b) - total), contrasts)


# ---- levels


def _levels(family: Categorical, x: np.ndarray, known: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    n_levels = np.asarray(family.n_levels)
    known = known if known.shape[1] else unknown  # no column has a level: all that is not missing is unknown
    at = np.clip(x, 0, np.maximum(n_levels - 1, 0)) + np.minimum(family.offsets[:-1], known.shape[1] - 1)
    values = np.where(x < n_levels, np.take(known, at, axis=1, mode="clip"), unknown[:, None, :])  # (K, n, d)
    return _cells(np.moveaxis(values, 0, 1), x >= 0)


@contributions.register
def _(family: Categorical, params: Any, x: np.ndarray) -> np.ndarray:
    return _levels(family, x, *(family.mean() if params is None else params))


@variances.register
def _(family: Categorical, x: np.ndarray, contrasts: np.ndarray, rng: Any, n: int) -> np.ndarray:
    alpha = family.concentration()
    total = family.by_column(alpha)
    variance = polygamma(1, alpha) - polygamma(1, total)[:, family.column_of]
    return _independent(_levels(family, x, variance, np.zeros_like(total)), contrasts)


# ---- counts


def _of_present(x: np.ndarray, n_classes: int, each: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Numbers each(count (n, 1, m), words (m,)) of the words that occur in any of the rows; 0 elsewhere, (n, d, K)."""
    out = np.zeros((*x.shape, n_classes))
    words = np.flatnonzero(x.any(axis=0))
    count = x[:, words]
    out[:, words] = _cells(each(count[:, None, :], words), count > 0)
    return out


@contributions.register
def _(family: Multinomial, params: Any, x: np.ndarray) -> np.ndarray:
    if params is not None:
        return _of_present(x, family.n_classes, lambda c, j: c * np.where(c > 0, params.log_prob[:, j], 0.0))
    alpha = family.concentration()
    length = x.sum(axis=1)[:, None]
    per_token = safe_divide(log_rising(alpha.sum(-1), length), length, empty=0.0)[:, :, None]
    return _of_present(x, family.n_classes, lambda c, j: log_rising(alpha[:, j], c) - c * per_token)


@variances.register
def _(family: Multinomial, x: np.ndarray, contrasts: np.ndarray, rng: Any, n: int) -> np.ndarray:
    alpha = family.concentration()
    total = polygamma(1, alpha.sum(-1, keepdims=True))
    each = _of_present(x, family.n_classes, lambda c, j: c**2 * (polygamma(1, alpha[:, j]) - total))
    return _independent(each, contrasts)


@contributions.register
def _(family: Poisson, params: Any, x: np.ndarray) -> np.ndarray:
    seen = ~np.isnan(x)
    count = np.where(seen, x, 0.0)[:, None, :]
    if params is not None:
        return _cells(log_poisson(count, params.rate), seen)
    return _cells(log_negative_binomial(count, *family.hyper()), seen)


@variances.register
def _(family: Poisson, x: np.ndarray, contrasts: np.ndarray, rng: Any, n: int) -> np.ndarray:
    # Of x ln(rate) - rate, with Cov(ln rate, rate) = 1 / b under Gamma(a, b).
    a, b = family.hyper()
    seen = ~np.isnan(x)
    count = np.where(seen, x, 0.0)[:, None, :]
    return _independent(_cells(count**2 * polygamma(1, a) + a / b**2 - 2 * count / b, seen), contrasts)


# ---- independent normal columns


@contributions.register
def _(family: Diagonal, params: Any, x: np.ndarray) -> np.ndarray:
    seen = ~np.isnan(x)
    rows = np.where(seen, x, 0.0)[:, None, :]
    if params is not None:
        square = ((rows - params.mean) - params.mean_low) ** 2 / params.variance
        return _cells(-0.5 * (LOG_2PI + np.log(params.variance) + square), seen)
    loc, low, kappa = family.hyper()
    shape, scale = family.inverse_gamma()
    spread = 2.0 * scale * (1.0 + 1.0 / kappa)
    norm = log_rising(shape, 0.5) - 0.5 * np.log(np.pi * spread)
    return _cells(norm - (shape + 0.5) * np.log1p(((rows - loc) - low) ** 2 / spread), seen)


def _normal_variances(family: Any, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    r"""Variance of a contrast of log densities whose classes share one variance, (n, d).

    With precision :math:`\tau \sim \mathrm{Gamma}(a, b)`, :math:`\mu_k = m_k + z_k/\sqrt{\kappa_k\tau}` and
    :math:`\delta_k = x - m_k`, the log density is
    :math:`\tfrac12\ln\tau - \tfrac12(\sqrt\tau\,\delta_k - z_k/\sqrt{\kappa_k})^2` up to a constant: the law of total
    variance over z given :math:`\tau`.
    """
    loc, low, kappa = family.hyper()
    a, b = family.inverse_gamma()
    square = ((x[:, None, :] - loc) - low) ** 2  # (n, K, d)
    total, distance = c.sum(), np.tensordot(square, c, (1, 0))
    common = 0.25 * total**2 * polygamma(1, a) + 0.25 * distance**2 * a / b**2 - 0.5 * total * distance / b
    own = np.tensordot(square / kappa, c**2, (1, 0)) * a / b + 0.5 * (c**2) @ (1.0 / kappa**2)
    return common + own


@variances.register
def _(family: SharedVarianceGaussian, x: np.ndarray, contrasts: np.ndarray, rng: Any, n: int) -> np.ndarray:
    seen = ~np.isnan(x)
    rows = np.where(seen, x, 0.0)
    return _cells(np.stack([_normal_variances(family, rows, c) for c in contrasts], axis=1), seen)


@variances.register
def _(family: Gaussian, x: np.ndarray, contrasts: np.ndarray, rng: Any, n: int) -> np.ndarray:
    loc, low, kappa = family.hyper()
    a, b = family.inverse_gamma()
    seen = ~np.isnan(x)
    square = ((np.where(seen, x, 0.0)[:, None, :] - loc) - low) ** 2
    each = 0.25 * polygamma(1, a) + 0.25 * square**2 * a / b**2 - 0.5 * square / b
    each = each + square * a / (b * kappa) + 0.5 / kappa**2
    return _independent(_cells(each, seen), contrasts)


# ---- normal columns with a full covariance


def _normal_formula(q: np.ndarray, logdet: np.ndarray, size: np.ndarray) -> np.ndarray:
    return -0.5 * (size * LOG_2PI + logdet + q)


def _chain(
    x: np.ndarray,
    loc: np.ndarray,
    low: np.ndarray,
    matrix: np.ndarray,
    formula: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    most: tuple[int, int],
) -> np.ndarray:
    """Shapley values of formula(q, ln |matrix|, size) of the leading columns, (S, n, d, K).

    Means are (S, K, d), matrices (S, d, d) or (S, K, d, d): the factor of a permuted matrix holds those of all leading
    blocks.
    """
    matrix = matrix[:, None] if matrix.ndim == 3 else matrix
    out = np.zeros((len(loc), *x.shape, loc.shape[1]))
    missing = np.isnan(x)
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for p, pattern in enumerate(patterns):
        rows, seen = np.flatnonzero(which.ravel() == p), np.flatnonzero(~pattern)
        if not seen.size:
            continue
        sizes = np.arange(len(seen) + 1.0)
        values = x[rows][:, seen]
        centred = (values[:, None, :] - loc[:, None, :, seen]) - low[:, None, :, seen]  # (S, m, K, d)
        found = np.zeros(centred.shape)
        orders = column_orders(len(seen), *most)
        for order in orders:
            at = seen[order]
            inverse, _ = inverse_factor(matrix[..., at[:, None], at])  # (S, 1 or K, d, d)
            logs = -2.0 * np.log(np.diagonal(inverse, axis1=-2, axis2=-1))
            logdet = np.pad(np.cumsum(logs, axis=-1), [(0, 0)] * 2 + [(1, 0)])[:, None]
            z = (inverse[:, None] @ centred[..., order, None])[..., 0]
            q = np.pad(np.cumsum(z * z, axis=-1), [(0, 0)] * 3 + [(1, 0)])
            found[..., order] += np.diff(formula(q, logdet, sizes), axis=-1)
        out[:, rows[:, None], seen] = np.moveaxis(found / len(orders), 2, 3)
    return out


@contributions.register
def _(family: Multivariate, params: Any, x: np.ndarray) -> np.ndarray:
    most = ALL_ORDERS, SOME_ORDERS
    if params is not None:
        low = np.broadcast_to(params.mean_low, params.mean.shape)
        return _chain(x, params.mean[None], low[None], params.covariance[None], _normal_formula, most)[0]
    loc, low, kappa = family.hyper()
    df, scale = family.inverse_wishart()
    formula = t_formula(np.asarray(df - family.n_features + 1.0)[..., None], kappa[:, None])
    return _chain(x, loc[None], low[None], scale[None], formula, most)[0]


@draw_contributions.register
def _(family: Multivariate, params: Any, x: np.ndarray) -> np.ndarray:
    low = np.broadcast_to(params.mean_low, params.mean.shape)
    return _chain(x, params.mean, low, params.covariance, _normal_formula, (FEW_ORDERS, FEW_ORDERS))
