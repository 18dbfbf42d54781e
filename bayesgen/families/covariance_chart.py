"""Covariances by the factor of their precision, and coordinates of them that NUTS walks in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesgen._linalg import inverse_factor
from bayesgen._math import Array, namespace, two_sum

__all__ = ["CovarianceChart", "FactoredParams", "factor_of"]


class FactoredParams(NamedTuple):
    """Parameters with the inverse factor of the covariance: what a density needs, without factoring again."""

    mean: Array
    mean_low: Array
    covariance: Array
    inverse: Array
    """W with W covariance W' = I, lower"""
    logdet: Array


def factor_of(params: Any) -> tuple[Array, Array]:
    """Inverse factor and log determinant of the covariance."""
    return (params.inverse, params.logdet) if hasattr(params, "inverse") else inverse_factor(params.covariance)


class CovarianceChart(NamedTuple):
    r"""The factor of the precision relative to the posterior's, and the means standardised by it.

    With :math:`A\hat\Sigma A^\top = I` at the centre :math:`\hat\Sigma = \Psi/\nu` and C lower triangular,
    :math:`\Sigma^{-1} = (CA)^\top CA` and :math:`\mu_k = m_k + (CA)^{-1} z_k/\sqrt{\kappa_k}`. Under the conjugate
    posterior z is standard normal and :math:`C^\top C \sim \mathrm{Wishart}(\nu, I/\nu)`; coordinates are the logs
    of the diagonal of C and its other entries, over their standard deviations.
    """

    loc: Array
    low: Array
    kappa: Array
    whiten: Array
    """A, (d, d) or (K, d, d)"""
    colour: Array
    """Inverse of A"""
    log_spread: Array
    spread: Array
    """Standard deviations of ln C_ii and C_ij, () or (K,)"""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Family.chart`."""
        d = self.loc.shape[-1]
        kinds = self.whiten.shape[:-2]
        return {"mean": self.loc.shape, "diagonal": (*kinds, d), "below": (*kinds, d * (d - 1) // 2)}

    def params(self, u: dict[str, Array]) -> tuple[FactoredParams, Array]:
        r"""See `Family.chart`.

        :math:`d\Sigma = |\Sigma|^{d+1} dP` for the precision P, and :math:`d(C^\top C) = 2^d \prod_j C_{jj}^{j} dC`
        with j = 1..d.
        """
        xp = namespace(u["mean"])
        d = self.loc.shape[-1]
        log_diagonal = self.log_spread[..., None] * u["diagonal"]
        rows, columns = np.tril_indices(d, -1)
        place = np.zeros((len(rows), d, d))
        place[np.arange(len(rows)), rows, columns] = 1.0
        strict = xp.tensordot(self.spread[..., None] * u["below"], place, axes=1)
        inverse = _near_identity_inverse(log_diagonal, strict)
        factor = (strict + xp.exp(log_diagonal)[..., None] * np.eye(d)) @ self.whiten
        root = self.colour @ inverse
        step = (u["mean"] / xp.sqrt(self.kappa)[:, None])[:, None, :] @ xp.swapaxes(root, -1, -2)
        mean, low = two_sum(self.loc, self.low + step[:, 0])
        log_factor = log_diagonal.sum(-1)
        logdet = -2.0 * (log_factor + xp.log(xp.diagonal(self.whiten, axis1=-2, axis2=-1)).sum(-1))
        powers = np.arange(d) + 2.0 - 2.0 * (d + 1)
        jacobian = (powers * log_diagonal).sum() - xp.broadcast_to(log_factor, self.loc.shape[:1]).sum()
        covariance = root @ xp.swapaxes(root, -1, -2)
        return FactoredParams(mean, low, covariance, factor, logdet), jacobian


def _near_identity_inverse(log_diagonal: Array, strict: Array) -> Array:
    r"""Inverse of D + N, N strictly lower: :math:`(I - M)^{-1} D^{-1}` with :math:`M = -D^{-1}N` nilpotent.

    :math:`(I - M)^{-1} = (I + M)(I + M^2)(I + M^4)\cdots`, a few products in place of a loop over rows.
    """
    xp = namespace(strict)
    d = strict.shape[-1]
    scale = xp.exp(-log_diagonal)
    power = -scale[..., :, None] * strict
    out = np.eye(d) + power
    reach = 2
    while reach < d:
        power = power @ power
        out = out + out @ power
        reach *= 2
    return out * scale[..., None, :]
