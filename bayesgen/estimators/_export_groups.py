"""ArviZ groups made of draws, in one pass over them in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bayesgen._math import logsumexp
from bayesgen.estimators._export_draws import cut, site_log_density
from bayesgen.estimators._export_names import Names, Rows, check_size
from bayesgen.families._all import Multinomial
from bayesgen.fit import DRAW_CELLS, add_class

__all__ = ["export"]


def export(
    draws: Any, names: Names, rows: Rows | None, asked: set[str], stem: str, kind: str
) -> dict[str, dict[str, Any]]:
    """The groups that are made of draws, in one pass: ``posterior`` and its relatives, or ``prior`` and its own."""
    n, k = draws.n, len(names.classes)
    out: dict[str, dict[str, Any]] = {}
    fill: list[Callable[[int, int, list[Any]], None]] = []
    if stem in asked:
        out[stem], put = variables_group(draws, names, stem)
        fill.append(put)
    if rows is not None and f"{stem}_predictive" in asked:
        out[f"{stem}_predictive"], put = predictive_group(draws, names, rows, f"{stem}_predictive")
        fill.append(put)
    if rows is not None and stem == "posterior" and "log_likelihood" in asked:
        out["log_likelihood"], put = likelihood_group(draws, names, rows, kind)
        fill.append(put)
    if stem == "posterior" and "log_prior" in asked:
        out["log_prior"], put = log_prior_group(draws, names)
        fill.append(put)
    cells = sum(k * s.family.n_features for s in draws.sources)
    for lo, hi in ranges(n, DRAW_CELLS // max(1, cells)):
        with np.errstate(all="ignore"):
            params = [s.make(lo, hi) for s in draws.sources]
        for put in fill:
            put(lo, hi, params)
    for group in out.values():
        for name, (dims, value) in group.items():
            group[name] = ("chain", "draw", *dims), names.grid(value)
    return out


def ranges(n: int, step: int) -> Iterator[tuple[int, int]]:
    """Pieces lo..hi of n, of at most `step`, at least one."""
    step = max(1, step)
    return ((lo, min(lo + step, n)) for lo in range(0, n, step))


Group = tuple[dict[str, tuple[tuple[str, ...], np.ndarray]], Callable[[int, int, list[Any]], None]]


def variables_group(draws: Any, names: Names, stem: str) -> Group:
    """Class probabilities, hyperparameters and parameters."""
    n = draws.n
    out: dict[str, Any] = {}
    if names.wants("class_prob"):
        out["class_prob"] = ("class",), np.exp(draws.log_class)
    places = []
    size = 0.0
    for i, s in enumerate(draws.sources):
        b = s.block
        for site, value in s.hyper.items():
            dims = b.hyper_dims(site, value.shape[1:])
            if names.wants(b.prefix + site) and len(b.keep):
                out[b.prefix + site] = b.dims(dims), b.select(value, dims, b.keep)
        with np.errstate(all="ignore"):
            template = s.family.variables(s.family.mean())
        for site, (name, dims) in b.variables(s.family).items():
            if names.wants(name):
                shape = b.select(np.broadcast_to(0.0, np.shape(template[site])), dims, s.at).shape
                size += 8.0 * n * np.prod(shape)
                places.append((i, site, name, dims, shape))
    check_size(stem, size)
    for i, _, name, dims, shape in places:
        out[name] = draws.sources[i].block.dims(dims), np.empty((n, *shape))

    def put(lo: int, hi: int, params: list[Any]) -> None:
        found = [s.family.variables(p) for s, p in zip(draws.sources, params, strict=True)]
        for i, site, name, dims, _ in places:
            s = draws.sources[i]
            out[name][1][lo:hi] = s.block.select(found[i][site], dims, s.at)

    return out, put


def likelihood_group(draws: Any, names: Names, rows: Rows, kind: str) -> Group:
    """Log density of each row at each draw."""
    check_size("log_likelihood", 8.0 * draws.n * rows.n)
    out = np.empty((draws.n, rows.n))
    own = np.asarray(rows.codes)
    d = sum(s.family.n_features for s in draws.sources)
    step = DRAW_CELLS // (len(names.classes) * (rows.n + d) + 1)

    def put(lo: int, hi: int, params: list[Any]) -> None:
        for a, b in ranges(hi - lo, step):
            with np.errstate(all="ignore"):
                x = sum(
                    s.family.draw_log_prob(cut(p, slice(a, b)), x)
                    for s, p, x in zip(draws.sources, params, rows.x, strict=True)
                )
            joint = add_class(draws.log_class[lo + a : lo + b, None, :], x)
            out[lo + a : lo + b] = np.take_along_axis(joint, own[None, :, None], axis=2)[..., 0]
            if kind == "conditional":
                out[lo + a : lo + b] -= logsumexp(joint)

    return {kind: (("row",), out)}, put


def log_prior_group(draws: Any, names: Names) -> Group:
    """Log prior density of the class probabilities (unless known) and of the features, for each draw."""
    out: dict[str, Any] = {}
    prior = draws.class_prior
    if prior.function is not None:
        run = draws.fit.sampled_classes
        latent = {k: v.reshape(-1, *v.shape[2:]) for k, v in run.draws.sites.items() if k != "class_prob"}
        out["class_prob"] = (), site_log_density(prior.sample, (), latent)
    elif prior.fixed is None:
        out["class_prob"] = (), np.asarray(prior.log_density(draws.log_class))
    for s in draws.sources:
        out[f"{s.block.prefix}features"] = (), np.empty(draws.n)

    def put(lo: int, hi: int, params: list[Any]) -> None:
        for s, p in zip(draws.sources, params, strict=True):
            out[f"{s.block.prefix}features"][1][lo:hi] = s.log_prior(lo, hi, p)

    return out, put


def predictive_group(draws: Any, names: Names, rows: Rows, group: str) -> Group:
    """New rows, labels and columns, as many as there are, at each draw."""
    n, m = draws.n, rows.n
    check_size(group, 8.0 * n * m * (1 + sum(len(s.block.keep) for s in draws.sources)))
    rng = draws.rng.spawn(1)[0]  # its own stream: the draws of parameters do not depend on what else is asked
    y = np.empty((n, m), dtype=np.int64)
    out: dict[str, Any] = {"y": (("row",), y)}
    for s in draws.sources:
        if len(s.block.keep):
            out[f"{s.block.prefix}x"] = ("row", f"{s.block.prefix}feature"), np.empty((n, m, len(s.block.keep)))
    lengths = [
        np.rint(np.asarray(x.sum(axis=1)).ravel()) if isinstance(s.family, Multinomial) else None
        for s, x in zip(draws.sources, rows.x, strict=True)
    ]

    def put(lo: int, hi: int, params: list[Any]) -> None:
        for i in range(lo, hi):
            edges = np.cumsum(np.exp(draws.log_class[i]))
            y[i] = np.searchsorted(edges[:-1] / edges[-1], rng.random(m), side="right")
            for s, p, length in zip(draws.sources, params, lengths, strict=True):
                x = s.family.sample(cut(p, i - lo), y[i], rng, length)
                if len(s.block.keep):
                    out[f"{s.block.prefix}x"][1][i] = x[:, s.block.keep]

    return out, put
