r"""Comparison of models on dask collections: every number is a sum over blocks, and no rows are together.

A block becomes sums where it lies, and these are joined in a tree. Two numbers are no plain sums:

- *Standard errors.* A block gives the sum of its values and the sum of squares about its mean, which are joined by the
  rule of Chan, Golub and LeVeque (1983); so do the differences of each pair of models, row by row, before it is known
  which model is the best.
- *Calibration error.* Its bins end at order statistics of the confidence over all rows. They are found eight bits at a
  time, from how many values of each block are below: the confidences stay where they are.

Stratified folds are told from counts of labels, and a model of all folds but one is made of their joined statistics.
Leave-one-out of a row that holds nearly all of a variance needs a sum over all the other rows: it is asked for only
where such a row is, and made of the statistics of the other blocks.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from dask.base import compute, persist
from dask.delayed import delayed
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from bayesgen._kernels import one_blas_thread
from bayesgen.comparison import N_BINS, HeldOut, Split, pooled, predictions
from bayesgen.estimators import _labels
from bayesgen.estimators._dask import FAN_IN, _blocks, join_tree, summarise_block
from bayesgen.estimators._parts import checked_weight, joined, saying, without_prior
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Labels
from bayesgen.statistics import Statistics

__all__ = [
    "Folds",
    "Moments",
    "RowSums",
    "cross_validate",
    "held_out_blocks",
    "loo_blocks",
    "order_statistics",
    "stratified_folds",
]

BITS = 8  # of an order statistic that one pass over the blocks finds


class Moments(NamedTuple):
    """Sums over rows, from which a total and its standard error follow.

    Parameters
    ----------
    n : int
        Number of rows.
    total : ndarray
        Sum of the values.
    square : ndarray
        Sum of squares about the mean.
    """

    n: int
    total: np.ndarray
    square: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Moments:
        """Of values (n, ...) over the first axis; infinite values leave no squares."""
        n, total = len(values), values.sum(axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            return cls(n, total, np.square(values - total / max(n, 1)).sum(axis=0))

    def join(self, other: Moments) -> Moments:
        """Of the rows of both."""
        if not self.n or not other.n:
            return self if self.n else other
        with np.errstate(invalid="ignore", over="ignore"):
            delta = other.total / other.n - self.total / self.n
            between = self.n * other.n / (self.n + other.n) * delta**2
        return Moments(self.n + other.n, self.total + other.total, self.square + other.square + between)

    @property
    def error(self) -> np.ndarray:
        r"""Standard errors of the totals, :math:`\sqrt n` times the standard deviation; NaN where there is none."""
        if self.n < 2:
            return np.full(np.shape(self.total), np.nan)
        return np.where(np.isfinite(self.total), np.sqrt(self.n / (self.n - 1) * self.square), np.nan)


def tree(parts: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Delayed parts joined a few at a time."""
    work = delayed(join)
    while len(parts) > 1:
        parts = [work(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


# ------------------------------------------------------------------------------------------ leave-one-out


class RowSums(NamedTuple):
    """What leave-one-out of rows leaves to add up, for m models.

    Parameters
    ----------
    joint, conditional : Moments
        Of ln p(x, y | rest) and ln p(y | x, rest), (m,) each.
    differences : Moments
        Of the conditional densities of a model less that of another, (m, m).
    gone : ndarray (m,)
        How many rows have no density given the others.
    undefined : tuple of str
        Why a model has no leave-one-out; empty where it has.
    pending : tuple of (int, int)
        Blocks and models that wait for statistics of the other blocks; such a block is not in the sums.
    """

    joint: Moments
    conditional: Moments
    differences: Moments
    gone: np.ndarray
    undefined: tuple[str, ...]
    pending: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, joint: np.ndarray, conditional: np.ndarray, undefined: tuple[str, ...]) -> RowSums:
        """Of densities (n, m)."""
        m = conditional.shape[1]
        with np.errstate(invalid="ignore"):
            each = [Moments.of(conditional - conditional[:, [j]]) for j in range(m)]
        differences = Moments(len(joint), *(np.column_stack(v) for v in list(zip(*each, strict=True))[1:]))
        gone = np.isnan(joint).sum(axis=0)
        return cls(Moments.of(joint), Moments.of(conditional), differences, gone, undefined)

    def join(self, other: RowSums) -> RowSums:
        """Of the rows of both."""
        return RowSums(
            self.joint.join(other.joint),
            self.conditional.join(other.conditional),
            self.differences.join(other.differences),
            self.gone + other.gone,
            tuple(a or b for a, b in zip(self.undefined, other.undefined, strict=True)),
            self.pending + other.pending,
        )


class _OtherRowsNeeded(Exception):
    """Raised where leave-one-out cannot go on without the statistics of other blocks."""


def _ask() -> Any:
    raise _OtherRowsNeeded


def _join_sums(parts: list[RowSums]) -> RowSums:
    first, *others = parts
    for part in others:
        first = first.join(part)
    return first


def _loo_block(
    models: Mapping[str, Any], i: int, X: Any, y: Any, sample_weight: Any, others: Mapping[int, Statistics | None]
) -> RowSums:
    """Sums over one block; `others` are the statistics of the other blocks, for the models that need them."""
    m = len(models)
    none = RowSums.of(np.empty((0, m)), np.empty((0, m)), ("",) * m)
    if X.shape[0] == 0 and len(y) == 0:
        return none
    with saying(f"block {i}"):
        y = _labels.check_labels(y, part=True)
        weights = _labels.check_weights(sample_weight, y, may_vanish=True)
        if weights is not None and not weights.all():
            keep = np.flatnonzero(weights)
            X, y, weights = _safe_indexing(X, keep), y[keep], weights[keep]
            if not keep.size:
                return none
        joint, conditional = np.full((len(y), m), np.nan), np.full((len(y), m), np.nan)
        undefined, pending = [""] * m, []
        for j, model in enumerate(models.values()):
            ask: Any = _ask
            if j in others:
                rest = others[j]
                ask = None if rest is None else lambda rest=rest: rest.features
            try:
                fit = model._fit_value
                loo = fit.loo(model._rows(X), Labels(_labels.encode_labels(y, fit.classes), weights), ask)
            except UndefinedNumberError as error:
                undefined[j] = str(error)
            except _OtherRowsNeeded:
                pending.append((i, j))
            else:
                joint[:, j], conditional[:, j] = loo.joint, loo.conditional
    if pending:
        return none._replace(pending=tuple(pending))
    return RowSums.of(joint, conditional, tuple(undefined))


def loo_blocks(models: Mapping[str, Any], X: Any, y: Any, sample_weight: Any) -> RowSums:
    """Exact leave-one-out of fitted models, all in one pass over the blocks they have learned."""
    blocks = _blocks(X, y, sample_weight)
    fitted, work = delayed(dict(models), traverse=False), delayed(_loo_block)
    with one_blas_thread():
        (sums,) = compute(tree([work(fitted, i, *block, {}) for i, block in enumerate(blocks)], _join_sums))
        if sums.pending:
            waiting: dict[int, dict[int, Any]] = {}
            for i, j in sums.pending:
                model = list(models.values())[j]
                waiting.setdefault(i, {})[j] = _others(model, blocks, i)
            parts = [work(fitted, i, *blocks[i], others) for i, others in waiting.items()]
            (rest,) = compute(tree(parts, _join_sums))
            sums = sums._replace(pending=()).join(rest)
    return sums


def _others(model: Any, blocks: list[Any], i: int) -> Any:
    """Delayed statistics of all blocks but one, over the classes and columns of a fitted model."""
    learned = model._state()
    plain, columns = delayed(without_prior(model), traverse=False), delayed(learned.columns, traverse=False)
    parts = [
        delayed(summarise_block)(plain, j, *block, learned.fit.classes, columns)
        for j, block in enumerate(blocks)
        if j != i
    ]
    return join_tree(plain, parts) if parts else None


# ------------------------------------------------------------------------------------------- held-out rows


class _Scores(NamedTuple):
    """Sums over held-out rows; the last two, which are as long as the rows, stay in their block."""

    n: int
    right: float
    log_loss: float
    brier: float
    answered: int
    confidence: np.ndarray
    """Sorted, as whole numbers in the same order."""
    excess: np.ndarray
    """1 where the most probable class is the true one, less the confidence, in this order."""


_NO_SCORES = _Scores(0, 0.0, 0.0, 0.0, 0, np.empty(0, dtype=np.uint64), np.empty(0))


def _score_block(name: str, model: Any, i: int, X: Any, y: Any, sample_weight: Any) -> _Scores:
    with saying(f"block {i} of test"):
        if X.shape[0] == 0 and len(y) == 0:
            return _NO_SCORES
        y = _labels.check_labels(y, part=True)
        classes = _labels.join_classes(model.classes_, np.unique(y))
        return _scores(predictions(name, model, Split(None, y, None, X, y), classes))


def _scores(rows: HeldOut) -> _Scores:
    keep = ~rows.impossible
    proba, answered = np.exp(rows.log_proba[keep]), int(keep.sum())
    confidence = proba.max(axis=1) if answered else np.empty(0)
    order = np.argsort(confidence)
    excess = (proba.argmax(axis=1) == rows.codes[keep]) - confidence if answered else confidence
    brier = answered * rows.brier if answered else 0.0
    # Floats that are not negative are in the order of their bits.
    bits = np.ascontiguousarray(confidence[order]).view(np.uint64)
    n = len(rows.codes)
    return _Scores(n, float(rows.right.sum()), n * rows.log_loss, brier, answered, bits, excess[order])


def _add_scores(parts: list[Any]) -> np.ndarray:
    return np.sum([p[:5] if isinstance(p, _Scores) else p for p in parts], axis=0)


def _add(parts: list[np.ndarray]) -> np.ndarray:
    return np.sum(parts, axis=0)


def _below(part: _Scores, steps: np.ndarray) -> np.ndarray:
    return np.searchsorted(part.confidence, steps.ravel()).reshape(steps.shape)


def _binned(part: _Scores, ends: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(ends, part.confidence), weights=part.excess, minlength=len(ends) + 1)


def order_statistics(count_below: Callable[[np.ndarray], np.ndarray], ranks: np.ndarray) -> np.ndarray:
    """Whole numbers of given ranks (0 is the least) among many, from counts of those below others alone.

    Parameters
    ----------
    count_below : callable
        How many of the numbers are below each of an array of uint64, in its shape.
    ranks : ndarray of int

    Returns
    -------
    ndarray of uint64
    """
    low = np.zeros(len(ranks), dtype=np.uint64)
    for shift in range(64 - BITS, -1, -BITS):
        steps = low[:, None] + (np.arange(1 << BITS, dtype=np.uint64) << np.uint64(shift))
        digit = (count_below(steps) <= ranks[:, None]).sum(axis=1) - 1
        low = steps[np.arange(len(ranks)), digit]
    return low


def held_out_blocks(name: str, model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The scores of `HeldOut.scores` of a fitted model, for a dask collection of rows held out."""
    fitted, work = delayed(model, traverse=False), delayed(_score_block)
    return _together([work(name, fitted, i, *block) for i, block in enumerate(_blocks(X, y, None))])


def _together(tasks: list[Any]) -> dict[str, Any]:
    """The scores of all rows from delayed scores of their blocks, which stay where they are made."""
    parts = persist(*tasks)
    n, right, log_loss, brier, answered = compute(tree([*parts, delayed(np.zeros(5))], _add_scores))[0]
    if not n:
        raise ValueError("test has no rows (0 samples) in any of its blocks, or none with weight")

    def over_blocks(each: Callable[[_Scores, np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
        return compute(tree([delayed(each)(part, values) for part in parts], _add))[0]

    calibration = np.nan
    if answered:
        # A bin starts at the first rank r with r N_BINS // n at least its number: above the value before.
        starts = -(-np.arange(1, N_BINS) * int(answered) // N_BINS)
        ends = order_statistics(lambda steps: over_blocks(_below, steps), starts - 1)
        calibration = float(np.abs(over_blocks(_binned, ends)).sum() / answered)
    return {
        "accuracy": float(right / n),
        "log_loss": float(log_loss / n),
        "brier": float(brier / answered) if answered else np.nan,
        "calibration_error": calibration,
        "impossible_rows": int(n - answered),
    }


# ---------------------------------------------------------------------------------------- cross-validation


class Folds(NamedTuple):
    """scikit-learn's stratified folds, without shuffling, from counts of labels alone.

    A row is told by its class and by how many rows of this class come before it.

    Parameters
    ----------
    classes : ndarray (K,)
        Labels, sorted.
    ends : ndarray (K, n_splits)
        Each class begins with the rows of the first fold, up to these, and so on.
    before : ndarray (n_blocks, K)
        Rows of each class in the blocks before.
    """

    classes: np.ndarray
    ends: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, n_splits: int, labels: list[np.ndarray], counts: list[np.ndarray]) -> Folds:
        """From the labels of each block, in the order in which they first come, and their counts."""
        n_splits = StratifiedKFold(n_splits).get_n_splits()  # raises for what is no number of folds
        met = list(dict.fromkeys(label for part in labels for label in part.tolist()))
        classes = np.array(met)
        order = np.argsort(classes)
        table = np.zeros((len(labels), len(met)), dtype=np.int64)
        for row, part, count in zip(table, labels, counts, strict=True):
            np.add.at(row, [met.index(label) for label in part.tolist()], count)
        total = table.sum(axis=0)
        if n_splits > total.max(initial=0):
            raise ValueError(f"cv={n_splits} is more than the number of rows of each class, {total[order].tolist()}")
        if n_splits > total.min():
            warnings.warn(
                f"the least populated class has only {total.min()} rows, which is less than cv={n_splits}",
                UserWarning,
                stacklevel=2,
            )
        # The labels in the order of the classes, as these first come, are dealt out to the folds in turns.
        end = np.cumsum(total)[:, None]
        fold = np.arange(n_splits)
        dealt = (end - fold + n_splits - 1) // n_splits - (end - total[:, None] - fold + n_splits - 1) // n_splits
        before = np.cumsum(table, axis=0) - table
        return cls(classes[order], np.cumsum(dealt, axis=1)[order], before[:, order])

    def of_rows(self, i: int, y: np.ndarray) -> np.ndarray:
        """The fold of each row of a block, (n,)."""
        codes = _labels.encode_labels(y, self.classes)
        order = np.argsort(codes, kind="stable")
        count = np.bincount(codes, minlength=len(self.classes))
        rank = np.empty(len(y), dtype=np.int64)
        rank[order] = np.arange(len(y)) - np.repeat(np.cumsum(count) - count, count)
        return (rank + self.before[i, codes] >= self.ends[codes].T).sum(axis=0)


def stratified_folds(n_splits: int, X: Any, y: Any) -> Folds:
    """The folds of a dask collection."""
    parts = compute([delayed(_count_labels)(i, labels) for i, (_, labels, _) in enumerate(_blocks(X, y, None))])[0]
    return Folds.of(n_splits, *map(list, zip(*parts, strict=True)))


def _count_labels(i: int, y: Any) -> tuple[np.ndarray, np.ndarray]:
    with saying(f"block {i}"):
        if not len(y):
            return np.empty(0), np.empty(0, dtype=np.int64)
        labels, first, count = np.unique(_labels.check_labels(y, part=True), return_index=True, return_counts=True)
        order = np.argsort(first)
        return labels[order], count[order]


def cross_validate(name: str, model: Any, folds: Folds, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """The scores of `HeldOut.scores` of cross-validation: statistics of the folds, joined without one after another."""
    blocks, columns = _blocks(X, y, sample_weight), delayed(model._state().columns, traverse=False)
    plain, dealt = delayed(without_prior(model), traverse=False), delayed(folds, traverse=False)
    with one_blas_thread():
        parts = [delayed(_summarise_folds)(plain, dealt, i, *block, columns) for i, block in enumerate(blocks)]
        (found,) = compute(tree(parts, functools.partial(_join_folds, without_prior(model))))
        models = []
        for f in range(len(found)):
            rest = checked_weight(joined(model, found[:f] + found[f + 1 :]))
            try:
                models.append(clone(model).from_statistics(rest))
            except ValueError as error:
                raise ValueError(f"estimators[{name!r}] cannot be fitted: {error}") from error
        fitted = delayed(models, traverse=False)
        return _together([delayed(_score_folds)(name, fitted, dealt, i, *block) for i, block in enumerate(blocks)])


def _rows_of_folds(folds: Folds, i: int, X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    y = _labels.check_labels(y, part=True)
    weights = _labels.check_weights(sample_weight, y, may_vanish=True)
    fold, out = folds.of_rows(i, y), []
    for f in range(folds.ends.shape[1]):
        at = np.flatnonzero(fold == f)
        out.append((_safe_indexing(X, at), y[at], None if weights is None else weights[at]))
    return out


def _summarise_folds(
    estimator: Any, folds: Folds, i: int, X: Any, y: Any, sample_weight: Any, columns: Any
) -> list[Statistics | None]:
    if not len(y):
        return [None] * folds.ends.shape[1]
    parts = _rows_of_folds(folds, i, X, y, sample_weight)
    return [summarise_block(estimator, i, *part, None, columns) for part in parts]


def _join_folds(estimator: Any, parts: list[list[Statistics | None]]) -> list[Statistics | None]:
    return [joined(estimator, same) for same in zip(*parts, strict=True)]


def _score_folds(name: str, models: list[Any], folds: Folds, i: int, X: Any, y: Any, sample_weight: Any) -> _Scores:
    if not len(y):
        return _NO_SCORES
    out = []
    for model, (part, labels, weights) in zip(models, _rows_of_folds(folds, i, X, y, sample_weight), strict=True):
        at = np.arange(len(labels)) if weights is None else np.flatnonzero(weights)
        if at.size:
            split = Split(None, labels, None, _safe_indexing(part, at), labels[at])
            out.append(predictions(name, model, split, folds.classes))
    return _scores(pooled(out)) if out else _NO_SCORES
