"""What is exported of a fit, under which names, axes and coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bayesgen._math import safe_log
from bayesgen.estimators._export_draws import hyper_sites, mean_log
from bayesgen.estimators._shell import Learned
from bayesgen.families._all import Bernoulli, Multinomial, Poisson
from bayesgen.families.base import Family, dense
from bayesgen.statistics import Columns

__all__ = ["TOP", "Block", "Names", "Rows", "check_size", "named_blocks"]

MOST_BYTES = 2.0**30  # of one group
MOST_ROWS = 200  # of a summary, unless rows are chosen
TOP = 5  # words of each class in a summary
MATRICES = ("corr_cholesky", "common_covariance")  # hyperparameters that are square whatever the number of classes


class Rows(NamedTuple):
    """Rows in the family's form, one entry for each block, and class codes."""

    x: tuple[Any, ...]
    codes: np.ndarray | None
    n: int


@dataclass(frozen=True, eq=False)
class Block:
    """One family of a fit, and which of its columns are exported.

    Parameters
    ----------
    prefix : str
        Empty, or the name of the block of a mixed model with a dot.
    part : FeatureFit or SampledFeatures
    columns : Columns
    keep : array of int
        Positions of the exported columns.
    """

    prefix: str
    part: Any
    columns: Columns
    keep: np.ndarray

    @property
    def family(self) -> Any:
        """A family value with the shapes of the parameters."""
        return self.part.base if hasattr(self.part, "base") else self.part.posterior

    @property
    def chosen(self) -> bool:
        """Whether some columns are left out."""
        return len(self.keep) < self.columns.n_features

    def feature_names(self) -> np.ndarray:
        """Names, or positions, of the exported columns."""
        return self.labels()[self.keep]

    def label(self, j: int) -> str:
        """Name, or position, of a column."""
        return str(j if self.columns.names is None else self.columns.names[j])

    def labels(self) -> np.ndarray:
        """Names, or positions, of all columns."""
        return np.arange(self.columns.n_features) if self.columns.names is None else np.asarray(self.columns.names)

    def renamed(self, name: str) -> tuple[str, int | None]:
        """The exported name of a variable or axis of the family, and its column if it belongs to one alone."""
        for stem in ("feature_prob_", "category_"):
            j = name.removeprefix(stem)
            if self.columns.levels is not None and j != name and j.isdigit():
                return f"{stem}{self.label(int(j))}", int(j)
        return name, None

    def dims(self, family_dims: Any) -> tuple[str, ...]:
        """Exported names of axes: those of columns belong to the block."""
        return tuple(d if d == "class" else self.prefix + self.renamed(d)[0] for d in family_dims)

    def variables(self, family: Family) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Exported name, and the family's axes, of each variable that has an exported column."""
        out = {}
        for site, dims in family.dims().items():
            name, column = self.renamed(site)
            if len(self.keep) and (column is None or column in self.keep):
                out[site] = (self.prefix + name, dims)
        return out

    def select(self, value: Any, dims: Sequence[str], at: np.ndarray) -> Any:
        """The exported columns of a variable with leading axes of draws."""
        for axis, dim in enumerate(dims, start=np.ndim(value) - len(dims)):
            if dim in ("feature", "feature_bis") and (len(at) < np.shape(value)[axis]):
                value = np.take(value, at, axis=axis)
        return value

    def n_rows(self, wants: Callable[[str], bool]) -> int:
        """How many numbers a draw of the exported variables has."""
        family, out = self.family, 0
        with np.errstate(all="ignore"):
            template = family.variables(family.mean())
        for site, (name, dims) in self.variables(family).items():
            out += wants(name) * self.select(np.broadcast_to(0.0, np.shape(template[site])), dims, self.keep).size
        for site in hyper_sites(self.part):
            shape = self.part.draws.sites[site].shape[2:]
            at = self.select(np.broadcast_to(0.0, shape), self.hyper_dims(site, shape), self.keep)
            out += wants(self.prefix + site) * at.size
        return out

    def words(self) -> bool:
        """Whether the columns are alike and positive, such as words: they can be ranked by log odds."""
        return isinstance(self.family, (Bernoulli, Multinomial, Poisson))

    def mean_log(self) -> np.ndarray:
        """Posterior mean of the log of each probability or rate (for presence, of its log odds), (K, d)."""
        part = self.part
        if not hasattr(part, "draws"):
            return mean_log(part.posterior)
        if part._marginal:
            return np.mean([mean_log(part._given(int(s))) for s in part._representative], axis=0)
        params = part._params
        log = params[0] - params[1] if isinstance(self.family, Bernoulli) else params[0]
        return (safe_log(log) if isinstance(self.family, Poisson) else log).mean(axis=0)

    def hyper_dims(self, site: str, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Axes of a hyperparameter: as it broadcasts against (class, feature), or a matrix (feature, feature_bis)."""
        k, d = self.family.n_classes, self.family.n_features
        if site == "alpha" and getattr(self.part.own_prior, "per_class", False):
            return ("class",)
        matrix = len(shape) >= 2 and shape[-2:] == (d, d) and (k != d or site in MATRICES)
        names: tuple[str, ...] = ("class", "feature", "feature_bis") if matrix else ("class", "feature")
        sizes = (k, d, d)[: len(names)]
        if shape == (k,) and k != d:
            names, sizes = ("class",), (k,)
        out = [f"{site}_dim_{axis}" for axis in range(len(shape))]
        for i in range(1, min(len(shape), len(names)) + 1):
            if shape[-i] == sizes[-i]:
                out[-i] = names[-i]
        return tuple(out)


def named_blocks(learned: Learned, features: Any) -> list[Block]:
    """The blocks of a fit with the exported columns."""
    columns, fit = learned.columns, learned.fit
    keep = chosen_columns(columns, features)
    if columns.blocks is None:
        return [Block("", fit.features, columns, keep)]
    out = []
    for (name, index, own), part in zip(columns.blocks, fit.features.parts, strict=True):
        at = np.array([i for j in keep for i in np.flatnonzero(index == j)], dtype=np.int64)
        out.append(Block(f"{name}.", part, own, at))
    return out


def chosen_columns(columns: Columns, features: Any) -> np.ndarray:
    """Positions of columns given by name or position; all if None."""
    if features is None:
        return np.arange(columns.n_features)
    chosen: list[Any] = [features] if isinstance(features, (str, int, np.integer)) else list(features)
    if not chosen:
        raise ValueError("features is empty: name at least one column")
    names = {} if columns.names is None else {str(name): j for j, name in enumerate(columns.names)}
    out = []
    for f in chosen:
        at = names.get(f, -1) if isinstance(f, str) else f
        if (
            isinstance(at, (bool, np.bool_))
            or not isinstance(at, (int, np.integer))
            or not 0 <= at < columns.n_features
        ):
            raise ValueError(
                f"features are names or positions of the {columns.n_features} columns; there is no {f!r}"
                + ("" if names else " (the columns have no names)")
            )
        out.append(int(at))
    return np.array(list(dict.fromkeys(out)), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Names:
    """What is exported, under which names and coordinates."""

    classes: np.ndarray
    blocks: list[Block]
    wanted: tuple[str, ...] | None
    shape: tuple[int, int]

    def wants(self, name: str) -> bool:
        """Whether a variable is exported."""
        return self.wanted is None or name in self.wanted

    def all(self) -> list[str]:
        """Every variable that could be exported."""
        out = ["class_prob"]
        for b in self.blocks:
            out += [name for name, _ in b.variables(b.family).values()]
            out += [b.prefix + site for site in hyper_sites(b.part)]
        return out

    def check_wanted(self) -> None:
        """Raise for a variable that there is not."""
        known = self.all()
        for name in self.wanted or ():
            if name not in known:
                raise ValueError(f"var_names holds {name!r}; the variables are {', '.join(known[:12])}")

    def n_rows(self, blocks: Sequence[Block] | None = None) -> int:
        """How many numbers a draw has."""
        out = len(self.classes) * self.wants("class_prob")
        return out + sum(b.n_rows(self.wants) for b in (self.blocks if blocks is None else blocks))

    def readable(self, free: bool, top: int | None) -> tuple[Names, dict[str, np.ndarray]]:
        """The names of a table, and for words which are shown of each class; columns are left out if one is free to.

        The latter by prefix of the block: positions among the exported columns, (K, top).
        """
        words = [b for b in self.blocks if b.words() and len(b.keep)]
        if top is not None and not words:
            raise ValueError("top= chooses words by class; this model has none: choose columns with features=")
        crowded = free and self.n_rows() > MOST_ROWS
        room = (MOST_ROWS - self.n_rows([])) // len(self.blocks)
        blocks, shown = [], {}
        for b in self.blocks:
            if b in words and (top is not None or crowded):
                count = TOP if top is None else top
                odds = against_others(b.mean_log()[:, b.keep])
                best = np.argsort(-odds, axis=1, kind="stable")[:, :count]
                kept = np.unique(best)
                b = replace(b, keep=b.keep[kept])
                shown[b.prefix] = np.searchsorted(kept, best)
            elif crowded:
                while b.n_rows(self.wants) > room and len(b.keep) > 1:
                    b = replace(b, keep=b.keep[: len(b.keep) * 9 // 10])
            blocks.append(b)
        return replace(self, blocks=blocks), shown

    def coords(self) -> dict[str, Any]:
        """Coordinates of all axes."""
        out: dict[str, Any] = {"class": self.classes}
        for b in self.blocks:
            names = b.feature_names()
            out |= {f"{b.prefix}feature": names, f"{b.prefix}feature_bis": names}
            for j, levels in enumerate(b.columns.levels or ()):
                out[f"{b.prefix}category_{b.label(j)}"] = levels
        return out

    def grid(self, flat: np.ndarray) -> np.ndarray:
        """Draws along one axis, as chains and draws."""
        return flat.reshape(*self.shape, *flat.shape[1:])

    def sample_stats(self) -> dict[str, Any]:
        """What NUTS says of each draw; a mixed model has that of each block, and whether any diverged."""
        out: dict[str, Any] = {}
        for b in self.blocks:
            draws = getattr(b.part, "draws", None)
            if draws is None or not draws.stats or draws.shape != self.shape:
                continue
            out |= {f"{b.prefix}{k}": (("chain", "draw"), v) for k, v in draws.stats.items()}
            if b.prefix:
                before = out.get("diverging", ((), False))[1]
                out["diverging"] = ("chain", "draw"), np.logical_or(before, draws.stats["diverging"])
        return out

    def observed(self, rows: Rows, insist: bool) -> dict[str, Any]:
        """Labels as class codes, and the exported columns; without the latter where they are too many."""
        out: dict[str, Any] = {} if rows.codes is None else {"y": (("row",), rows.codes)}
        size = 8.0 * rows.n * sum(len(b.keep) for b in self.blocks)
        if size > MOST_BYTES and not insist:
            return out
        check_size("observed_data", size)
        for b, x in zip(self.blocks, rows.x, strict=True):
            if len(b.keep):
                shown = x[:, b.keep] if b.chosen else x
                out[f"{b.prefix}x"] = ("row", f"{b.prefix}feature"), dense(shown)
        return out


def check_size(group: str, size: float) -> None:
    """Raise `ValueError` if a group would be too large."""
    if size > MOST_BYTES:
        raise ValueError(
            f"the group {group!r} would take {size / 2**30:.1f} GiB, more than {MOST_BYTES / 2**30:.0f}: choose "
            "columns with features=, variables with var_names=, fewer rows, or fewer draws (n_draws=, n_chains=)"
        )


def against_others(logs: np.ndarray) -> np.ndarray:
    """Each class's logs (K, d) against the average of the other classes."""
    k = len(logs)
    return logs if k == 1 else (k * logs - logs.sum(axis=0)) / (k - 1)
