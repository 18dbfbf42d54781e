"""The seam to ArviZ: what differs between its 0.23 and its 1.x line is here and nowhere else.

Groups are made as xarray data sets, which both lines hold: 0.23 in an ``InferenceData``, 1.x in a ``DataTree``.
Diagnostics (effective sizes, R-hat, Monte Carlo errors) are ArviZ's own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.exceptions import UndefinedNumberError

__all__ = ["Summary", "container", "elpd_data", "load", "psis", "statistics"]

OLDEST = (0, 23)
NEWEST = 1  # major version
TINY = 1e-13  # spread of draws, relative to their size, that is rounding: a constant


def load() -> Any:
    """The module ``arviz``; `ImportError` that names the version if it is of neither line."""
    with warnings.catch_warnings():
        # 0.23 announces 1.x at most once a day, at import: no concern of ours, and no error for those who make one.
        warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing a major refactor", FutureWarning)
        try:
            import arviz
        except ImportError as error:
            raise ImportError(f"this needs ArviZ 0.23 or 1.x, which cannot be imported: {error}") from error
    version = tuple(int(part) for part in re.findall(r"\d+", arviz.__version__)[:2])
    if not OLDEST <= version < (NEWEST + 1,):
        raise ImportError(f"this needs ArviZ 0.23 or 1.x; the one installed is {arviz.__version__}")
    return arviz


def is_old(arviz: Any) -> bool:
    """Whether this is the 0.x line."""
    return str(arviz.__version__).startswith("0.")


def psis(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights of independent draws, (n,), normalised, and k-hat."""
    arviz = load()
    if is_old(arviz):
        smoothed, khat = arviz.psislw(log_weights)
    else:
        from arviz_stats.base import array_stats  # type: ignore[import-not-found, unused-ignore]

        # The 1.x line takes log likelihoods, and weights by one over them.
        smoothed, khat = array_stats.psislw(-log_weights, r_eff=1.0)
    return np.asarray(smoothed), float(khat)


def container(groups: Mapping[str, Any]) -> Any:
    """Groups of xarray data sets as an ``InferenceData`` (0.23) or a ``DataTree`` (1.x)."""
    arviz = load()
    if is_old(arviz):
        return arviz.InferenceData(**groups)
    import xarray

    return xarray.DataTree.from_dict(dict(groups))


def dataset(variables: Mapping[str, tuple[tuple[str, ...], Any]], coords: Mapping[str, Any], attrs: Any = None) -> Any:
    """Variables with the names of their axes, and the coordinates of the axes that occur."""
    import xarray

    used = {dim for dims, _ in variables.values() for dim in dims}
    sizes = {dim: n for dims, v in variables.values() for dim, n in zip(dims, np.shape(v), strict=True)}
    counted = {dim: np.arange(sizes[dim]) for dim in used}
    named = {dim: np.asarray(values) for dim, values in coords.items() if dim in used}
    return xarray.Dataset(dict(variables), {**counted, **named}, attrs)


def elpd_data(pointwise: np.ndarray, se: float) -> Any:
    """Leave-one-out densities of rows, (n,), as the type of ``az.loo``, for ``az.compare``.

    They are exact: no draws (0 samples), every Pareto k is 0, and the effective number of parameters, which ``az.loo``
    has from its draws, is NaN.
    """
    import xarray

    arviz = load()
    n = len(pointwise)
    undefined = int(np.isnan(pointwise).sum())
    if undefined:
        raise UndefinedNumberError(f"{undefined} of {n} rows have no leave-one-out density, so there is no sum of them")
    rows = {"row": np.arange(n)}
    each = xarray.DataArray(pointwise, rows, ("row",), "loo_i")
    khat = xarray.DataArray(np.zeros(n), rows, ("row",), "pareto_shape")
    elpd = float(pointwise.sum())
    shared: dict[str, Any] = {"n_samples": 0, "n_data_points": n, "warning": False}
    if is_old(arviz):
        from arviz.stats.stats_utils import ELPDData

        values: dict[str, Any] = {"elpd_loo": elpd, "se": se, "p_loo": np.nan, **shared}
        values |= {"loo_i": each, "pareto_k": khat, "scale": "log", "good_k": 0.7}
        return ELPDData(data=list(values.values()), index=list(values))
    values = {"elpd": elpd, "se": se, "p": np.nan, **shared, "scale": "log", "good_k": 0.7}
    values |= {"elpd_i": each, "pareto_k": khat}
    kind = getattr(arviz, "ELPDDataLOO", None)
    return arviz.ELPDData(kind="loo", **values) if kind is None else kind(**values)


def statistics(draws: np.ndarray) -> dict[str, np.ndarray]:
    """Convergence of numbers from their draws, (chains, draws, m): Monte Carlo error, effective sizes and R-hat.

    A constant has no Monte Carlo error, and its effective sizes and R-hat are undefined: NaN. Each is (m,).
    """
    arviz = load()
    m = draws.shape[2]
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1), ddof=1)
    moving = np.flatnonzero(sd > TINY * np.abs(mean))
    out = {name: np.full(m, np.nan) for name in ("mcse_mean", "ess_bulk", "ess_tail", "r_hat")}
    out["mcse_mean"][sd <= TINY * np.abs(mean)] = 0.0
    if not moving.size or draws.shape[1] < 4:
        return out
    # ArviZ takes draws that differ by less than 1e-15 for constants; in units of their spread none do.
    scaled = (draws[..., moving] - mean[moving]) / sd[moving]
    data = dataset({"v": (("chain", "draw", "number"), scaled)}, {})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # a chain that does not move
        found = {
            "mcse_mean": arviz.mcse(data, method="mean"),
            "ess_bulk": arviz.ess(data, method="bulk"),
            "ess_tail": arviz.ess(data, method="tail"),
            "r_hat": arviz.rhat(data, method="rank"),
        }
    for name, values in found.items():
        out[name][moving] = np.asarray(values["v"])
    out["mcse_mean"][moving] *= sd[moving]
    return out


def summarise(draws: np.ndarray, prob: float) -> dict[str, np.ndarray]:
    """Columns of a `Summary` from draws (chains, draws, m)."""
    tail = (1.0 - prob) / 2.0
    flat = draws.reshape(-1, draws.shape[2])
    ends = np.quantile(flat, [tail, 1.0 - tail], axis=0)
    names = [f"eti_{100.0 * p:.6g}%" for p in (tail, 1.0 - tail)]
    sd = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.nan)
    mean = flat.mean(axis=0)
    constant = np.ptp(flat, axis=0) == 0
    mean, sd = np.where(constant, flat[0], mean), np.where(constant, 0.0, sd)
    return {"mean": mean, "sd": sd, names[0]: ends[0], names[1]: ends[1], **statistics(draws)}


class Summary(pd.DataFrame):
    """A data frame that shows four significant digits, and says what it left out.

    Attributes
    ----------
    notes : tuple of str
        What is printed under the table.
    """

    _metadata = ["notes"]
    notes: Sequence[str] = ()

    @property
    def _constructor(self) -> Any:
        return Summary

    def __repr__(self) -> str:
        table = self.to_string(float_format=_digits, max_rows=pd.get_option("display.max_rows"))
        return "\n".join([table, *self.notes])

    def _repr_html_(self) -> str:
        import html

        table = self.to_html(float_format=_digits, max_rows=pd.get_option("display.max_rows"))
        return table + "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)


def _digits(value: float) -> str:
    return f"{value:.4g}"
