r"""How unusual a row is under a fitted model, as a p-value.

The p-value of a row x is the probability, under the route's p(x), of a row at most as probable as x:

.. math:: P\big(\ln p(\tilde x) \le \ln p(x)\big), \qquad \tilde x \sim p(x).

Rows of the model itself have uniform p-values (of discrete rows: not smaller than uniform), so a threshold is a rate of
false alarms. Rows with missing cells are compared with rows that lack the same cells, and documents with documents of
the same length. A document is its count vector here, multinomial coefficient included: as a sequence of tokens the same
word throughout can be the most probable of all.

References: Box 1980, *Sampling and Bayes' inference in scientific modelling and robustness*; Bates, Candes, Lei, Romano
and Sesia 2023, *Testing for outliers with conformal p-values*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import chdtrc, fdtrc

from bayesgen._math import logsumexp, safe_log
from bayesgen._random import generator
from bayesgen.families.base import dense
from bayesgen.families.categorical import Categorical
from bayesgen.families.multinomial import Multinomial, _log_coefficient
from bayesgen.families.multivariate import Multivariate
from bayesgen.families.normal_scores import score
from bayesgen.fit import FeatureFit, Fit

__all__ = ["p_values"]

CELLS = 1 << 23  # numbers of simulated rows held at once
WIDE = 1000  # words of a vocabulary from which documents are scored as sparse rows
TIES = 1e-9  # log densities this near are equal: the order of a sum changes them


def p_values(fit: Fit, x: Any, n_samples: int, seed: Any, within_class: bool) -> np.ndarray:
    """P-values (n,), or (n, K) under each class; see `bayesgen.estimators._novelty`."""
    if within_class and isinstance(fit.features, FeatureFit) and isinstance(fit.features.stated, Multivariate):
        fit.check_predictive(np.zeros(len(fit.classes)))
        return ellipsoid_p_values(fit.features, x)
    rng = generator(seed)
    if not within_class:
        return _simulated(fit, x, fit.log_class, n_samples, rng)
    fit.check_predictive(np.zeros(len(fit.classes)))
    only = safe_log(np.eye(len(fit.classes)))
    return np.stack([_simulated(fit, x, log_class, n_samples, rng) for log_class in only], axis=1)


def _simulated(fit: Fit, x: Any, log_class: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    parts = x if isinstance(x, tuple) else (x,)
    families = fit.features.stated.blocks if isinstance(x, tuple) else (fit.features.stated,)
    keys, holes = _groups(families, parts)
    score = _log_density(fit, families, x, log_class)
    out = np.empty(len(score))
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    lengths = _lengths(families, parts)
    for g, row in enumerate(first):
        mine = np.flatnonzero(which.ravel() == g)
        length = None if lengths is None else int(lengths[row])
        hole = [None if h is None else h[row] for h in holes]
        simulated = np.sort(_scores(fit, families, log_class, n_samples, rng, length, hole))
        reach = score[mine] + TIES * np.maximum(1.0, np.abs(np.nan_to_num(score[mine])))
        out[mine] = (1.0 + np.searchsorted(simulated, reach, side="right")) / (n_samples + 1.0)
    return out


def _log_density(fit: Fit, families: Any, x: Any, log_class: np.ndarray) -> np.ndarray:
    """Log of p(x) of each row, documents as count vectors, (n,)."""
    out = logsumexp(fit.log_joint(x, log_class))
    for family, part in zip(families, x if isinstance(x, tuple) else (x,), strict=True):
        if isinstance(family, Multinomial) and not family.coefficient:
            out = out + _log_coefficient(part)
    return out


def _groups(families: Any, parts: Any) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """What rows must share to be compared, (n, ...): missing cells and lengths; and the missing cells of each block."""
    keys: list[np.ndarray] = []
    holes: list[np.ndarray | None] = []
    for family, x in zip(families, parts, strict=True):
        if isinstance(family, Multinomial):
            keys.append(np.asarray(x.sum(axis=1)).reshape(-1, 1))
            holes.append(None)
            continue
        if sp.issparse(x):
            missing = None if not np.isnan(x.data).any() else np.isnan(x.toarray())
        else:
            missing = x < 0 if isinstance(family, Categorical) else np.isnan(x)
        holes.append(missing)
        keys.append(np.zeros((x.shape[0], 1)) if missing is None else missing.astype(float))
    return np.concatenate(keys, axis=1), holes


def _lengths(families: Any, parts: Any) -> np.ndarray | None:
    """Lengths of documents, (n,); None for models without."""
    found = [
        np.asarray(x.sum(axis=1)).ravel() for f, x in zip(families, parts, strict=True) if isinstance(f, Multinomial)
    ]
    if not found:
        return None
    if len(found) > 1 and any((v != found[0]).any() for v in found):
        raise ValueError("p-values simulate documents, and the blocks of words have documents of different lengths")
    if (found[0] != np.floor(found[0])).any():
        raise ValueError(
            "p-values simulate documents of the same length, and a row of X has a length that is not whole: weighted "
            "counts such as tf-idf have no such documents"
        )
    return found[0]


def _scores(
    fit: Fit, families: Any, log_class: np.ndarray, n: int, rng: np.random.Generator, length: int | None, holes: Any
) -> np.ndarray:
    """Log densities ln p(x) of simulated rows, (n,)."""
    prob = np.exp(log_class)
    step = max(1, CELLS // max(1, fit.features.stated.n_features))
    wide = fit.features.stated.n_features > WIDE
    out = []
    for i in range(0, n, step):
        codes = rng.choice(len(prob), size=min(step, n - i), p=prob / prob.sum())
        drawn = fit.features.sample(codes, rng, length)
        parts = list(drawn) if isinstance(drawn, tuple) else [drawn]
        for b, (family, hole) in enumerate(zip(families, holes, strict=True)):
            if hole is not None and hole.any():
                parts[b] = np.where(hole, -1 if isinstance(family, Categorical) else np.nan, dense(parts[b]))
        parts = [
            sp.csr_array(p) if wide and isinstance(f, Multinomial) else p for f, p in zip(families, parts, strict=True)
        ]
        rows = tuple(parts) if isinstance(drawn, tuple) else parts[0]
        out.append(_log_density(fit, families, rows, log_class))
    return np.concatenate(out)


def ellipsoid_p_values(features: FeatureFit, x: Any) -> np.ndarray:
    r"""Probabilities outside the ellipsoid through x, under each class, (n, K), in closed form.

    With plug-in parameters the squared Mahalanobis distance is :math:`\chi^2_d`; under the predictive t with
    :math:`\eta` degrees of freedom, :math:`\frac{\eta}{d}\frac{\kappa_k}{\kappa_k+1} (x - m_k)^\top \Psi^{-1}
    (x - m_k) \sim F_{d,\eta}`. Missing cells leave d, and the block of what is observed.
    """
    if features.route != "exact":
        params = features.params
        low = np.broadcast_to(params.mean_low, params.mean.shape)
        where = params.mean, low, params.covariance

        def tail(q: np.ndarray, logdet: np.ndarray, size: int) -> np.ndarray:
            return chdtrc(size, q)
    else:
        posterior: Any = features.posterior
        loc, low, kappa = posterior.hyper()
        df, scale = posterior.inverse_wishart()
        eta = df - posterior.n_features + 1.0
        where = loc, low, scale

        def tail(q: np.ndarray, logdet: np.ndarray, size: int) -> np.ndarray:
            return fdtrc(size, eta, eta / size * kappa / (kappa + 1.0) * q)

    out = score(x, *where, tail, np)
    out[np.isnan(np.asarray(x)).all(axis=1)] = 1.0
    return out
