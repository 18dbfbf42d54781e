r"""How much the posterior owes to the prior, and how much to the data: power-scaling in closed form.

The prior, or the likelihood, is raised to a power :math:`s` near 1, and the posterior

.. math:: p_s(\theta \mid D) \propto p(\theta)^s\, p(D \mid \theta) \quad\text{or}\quad p(\theta)\, p(D \mid \theta)^s

is compared with the one at s = 1. A power of a conjugate prior is conjugate (:math:`\mathrm{Dir}(\alpha)` gives
:math:`\mathrm{Dir}(s(\alpha - 1) + 1)`), and a power of the likelihood is rows of weight s, so both are closed forms,
and no draws are weighted. For each parameter, with distribution functions F at 1 and G at s, the distance is the
cumulative Jensen-Shannon distance

.. math::

    \sqrt{\frac{\int F \log_2\frac{2F}{F+G} + G \log_2\frac{2G}{F+G}\,\mathrm dx}{\int F + G\,\mathrm dx}}

over the range that `DRAWS` draws would span, and the sensitivity is its slope in :math:`\log_2 s`, from both sides.
ArviZ computes the same from draws (``az.psens``, in its 1.x line ``az.psense``).

A sensitivity of the prior above `THRESHOLD` says that the prior is informative; if that of the likelihood is above it
too, the two pull apart or share the say; if it is below, the data say little. A flat prior has sensitivity 0.

Reference: Kallioinen, Paananen, Bürkner and Vehtari 2024, *Detecting and diagnosing prior and likelihood sensitivity
with power-scaling*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit, rel_entr

from bayesgen.comparison import import_pandas
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._export_names import Names, named_blocks
from bayesgen.estimators._posterior import label, wanted_names
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.fit import Fit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["prior_sensitivity"]

DELTA = 0.01  # powers 1 + DELTA and 1 / (1 + DELTA)
DRAWS = 4000  # the range of parameters is what so many draws span
THRESHOLD = 0.05
NODES = 200  # of the integrals
MOST = 5000  # numbers in a table


def prior_sensitivity(
    estimator: Any, *, var_names: Sequence[str] | None = None, features: Sequence[Any] | None = None
) -> pd.DataFrame:
    """Power-scaling sensitivity of each parameter's posterior to the prior and to the likelihood, in closed form.

    Parameters
    ----------
    estimator : fitted estimator of this library
        With a conjugate prior and a posterior. The blocks of a mixed model are scaled together.
    var_names, features : see `MultinomialNB.to_arviz`, optional
        Only these variables, and columns: wide models need a choice.

    Returns
    -------
    pandas.DataFrame
        A row for each number, with posterior ``mean`` and ``sd``, ``prior`` and ``likelihood``, the two
        sensitivities, and ``diagnosis``: empty where the prior's is below 0.05, "informative prior" where the
        likelihood's is below it, and "prior and data compete" where neither is. Of a covariance it has the variances.

    Raises
    ------
    ValueError
        If there are more than 5000 numbers, or the prior is not conjugate: ``to_arviz`` with the groups
        ``log_likelihood`` and ``log_prior`` gives ArviZ what its own function needs.
    UndefinedNumberError
        If there is no posterior (maximum likelihood, or EM with unlabelled rows), or the prior is improper, or so weak
        that a power of it is.

    Examples
    --------
    >>> from bayesgen import PoissonNB, prior_sensitivity
    >>> model = PoissonNB(class_prior=[0.5, 0.5]).fit([[40], [44], [52], [9], [7], [8]], [0, 0, 0, 1, 1, 1])
    >>> prior_sensitivity(model)["diagnosis"].to_dict()
    {'rate[0, 0]': 'prior and data compete', 'rate[1, 0]': 'prior and data compete'}

    References
    ----------
    Kallioinen, Paananen, Bürkner and Vehtari 2024, *Detecting and diagnosing prior and likelihood sensitivity with
    power-scaling*.
    """
    pd = import_pandas("prior_sensitivity")
    if not isinstance(estimator, GenerativeBase):
        raise ValueError(
            f"estimator must be a fitted estimator of this library, such as GaussianNB(); got {estimator!r}"
        )
    learned = estimator._state()
    fit = learned.fit
    fit.check_posterior()
    wanted = wanted_names(var_names)
    names = Names(fit.classes, named_blocks(learned, features), wanted, (1, 1))
    if fit.sampled_classes is not None or any(getattr(b.part, "own", None) is not None for b in names.blocks):
        raise ValueError(
            "this prior has no power in closed form: use ArviZ on draws, az.psens (1.x: az.psense) of "
            "model.to_arviz(X, y, groups=['log_likelihood', 'log_prior'])"
        )
    found, known = _marginals(fit, names)
    unknown = [name for name in wanted or () if name not in known]
    if unknown:
        raise ValueError(f"var_names holds {unknown[0]!r}; the variables are {', '.join(known)}")
    if sum(len(labels) for labels, _ in found) > MOST:
        raise ValueError(f"more than {MOST} numbers: choose columns with features=, variables with var_names=")
    index = [each for labels, _ in found for each in labels]
    columns = [_sensitivity(five) for _, five in found]
    table = pd.DataFrame(
        np.concatenate(columns, axis=1).T if columns else np.empty((0, 4)),
        index=pd.Index(index, dtype=object),
        columns=["mean", "sd", "prior", "likelihood"],
    )
    strong, weak = table["prior"] > THRESHOLD, table["likelihood"] <= THRESHOLD
    table["diagnosis"] = np.select([strong & weak, strong], ["informative prior", "prior and data compete"], "")
    return table


Five = tuple[Any, Any, Any, Any, Any]
"""A marginal: as it is, and under powers up and down of the prior, then of the likelihood."""


def _five(prior: Any, stats: Any, scale: Any) -> Five:
    """The posterior as it is, and under the four powers."""
    powers = (1.0 + DELTA, 1.0 / (1.0 + DELTA))
    return (
        prior.condition(stats),
        *(prior.tempered(s).condition(stats) for s in powers),
        *(prior.condition(scale(stats, s)) for s in powers),
    )


def _marginals(fit: Fit, names: Names) -> tuple[list[tuple[list[str], Five]], list[str]]:
    """Labels and five marginals of each variable, the chosen numbers in one axis; and all names of variables."""
    out, known = [], ["class_prob"]
    if fit.class_prior.fixed is None and names.wants("class_prob") and len(fit.classes) > 1:
        if not (np.asarray(fit.class_prior.alpha) > 0).all():
            raise UndefinedNumberError("class_alpha=0 is an improper prior; give class_alpha > 0")
        posteriors = _five(fit.class_prior, fit.count, lambda count, s: s * count)
        out.append(([label("class_prob", [c]) for c in fit.classes], tuple(p.marginal() for p in posteriors)))
    coords, everyone = names.coords(), np.ones(len(fit.classes), dtype=bool)
    for block in names.blocks:
        prior = getattr(block.part, "base", None) or block.part.prior
        own_names = block.columns.names
        fit._raise(prior.improper(everyone, strict=True), own_names)
        posteriors = _five(prior, block.part.stats, prior.scale_stats)
        for p in posteriors:
            fit._raise(p.improper(everyone, strict=True), own_names, "a power of the prior: ")
        variables = [p.marginals() for p in posteriors]
        for site, (axes, _) in variables[0].items():
            name, column = block.renamed(site)
            known.append(block.prefix + name)
            if not names.wants(known[-1]) or not len(block.keep) or (column is not None and column not in block.keep):
                continue
            dims = block.dims(axes)
            first = variables[0][site][1]
            shape = np.broadcast_shapes(*(np.shape(v) for v in (*first.args, *first.kwds.values())))
            cells = [block.keep if d.endswith("feature") else np.arange(m) for d, m in zip(dims, shape, strict=True)]
            grid = np.stack(np.meshgrid(*cells, indexing="ij"), axis=-1).reshape(-1, len(cells))
            shown = [coords[d] if not d.endswith("feature") else block.labels() for d in dims]
            labels = [label(known[-1], [s[i] for s, i in zip(shown, cell, strict=True)]) for cell in grid]
            out.append((labels, tuple(_at(v[site][1], shape, tuple(grid.T)) for v in variables)))
    return out, known


def _at(marginal: Any, shape: tuple[int, ...], cells: tuple[np.ndarray, ...]) -> Any:
    """A frozen distribution of some cells alone."""

    def pick(value: Any) -> np.ndarray:
        return np.broadcast_to(value, shape)[cells]

    return marginal.dist(*map(pick, marginal.args), **{k: pick(v) for k, v in marginal.kwds.items()})


def _sensitivity(five: Five) -> np.ndarray:
    """Mean, standard deviation, and sensitivities to prior and likelihood, (4, m)."""
    base, *others = five
    end = logit(0.5 / DRAWS)
    x = base.ppf(expit(np.linspace(end, -end, NODES))[:, None])
    f = base.cdf(x)
    up, down, more, fewer = (_distance(x, f, other.cdf(x)) for other in others)
    step = 2.0 * np.log2(1.0 + DELTA)
    return np.array([base.mean(), base.std(), (up + down) / step, (more + fewer) / step])


def _distance(x: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Cumulative Jensen-Shannon distance of two distribution functions at points along the first axis, (m,)."""
    both = 0.5 * (f + g)
    gap = (rel_entr(f, both) + rel_entr(g, both)) / np.log(2.0)
    return np.sqrt(np.maximum(np.trapezoid(gap, x, axis=0), 0.0) / np.trapezoid(f + g, x, axis=0))
