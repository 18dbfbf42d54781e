"""Data that come in parts: slices of a memory map, shards of a JAX array, blocks of a dask collection.

Each part is summed up by itself, to `Statistics` that are small, and these are joined: the rows are never together.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import _safe_indexing

from bayesgen._device import device_rows, is_jax, on_device
from bayesgen._kernels import one_blas_thread, row_blocks
from bayesgen.estimators import _labels
from bayesgen.estimators._arrays import in_kind, on_host
from bayesgen.estimators._shell import Shell
from bayesgen.estimators._tables import is_dask
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families._all import (
    Gaussian,
    Multinomial,
    MultivariateGaussian,
    PerClassMultivariateGaussian,
    SharedVarianceGaussian,
)
from bayesgen.families.base import Labels, class_count
from bayesgen.statistics import Columns, Statistics

SUMMED = (Gaussian, SharedVarianceGaussian, MultivariateGaussian, PerClassMultivariateGaussian, Multinomial)
NO_ROWS = (
    "likelihood_power='loo' is learned from all rows together, which are not kept: with partial_fit, fit_batches, "
    "merge, forget, from_statistics or dask use likelihood_power=1.0, then tune_likelihood_power(X, y)"
)
SLICE_CELLS = 1 << 20  # numbers of a slice: 8 MiB as float64
DEFAULT_PRIOR = {"alpha": 1.0, "prior": None}

M = TypeVar("M", bound=Callable[..., Any])


def row_parts(X: Any) -> list[tuple[slice, Any]] | None:
    """The rows of X in parts, with their places, in order; None where X is to be taken as a whole."""
    if type(X) is np.ndarray:
        return None
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size > SLICE_CELLS:
        return [(rows, X[rows]) for rows in row_blocks(len(X), X.shape[1], SLICE_CELLS)]
    if not is_jax(X) or X.ndim != 2:
        return None
    if not X.is_fully_addressable:
        raise ValueError(
            "X is a jax.Array of which this process holds only some shards: fit each process on its own rows, then "
            "merge their statistics_"
        )
    shards = [s for s in X.addressable_shards if s.replica_id == 0]
    if (len(shards) == 1 and not on_device(X)) or any(s.data.shape[1] < X.shape[1] for s in shards):
        return None
    shards.sort(key=lambda s: s.index[0].start or 0)
    return [(s.index[0], s.data) for s in shards]


def rows_on_device(X: Any, stated: Any, columns: Columns) -> Any:
    """The rows in a form that is summed up where it lies; None if they must come here, to be read or refused."""
    if not isinstance(stated, SUMMED) or getattr(stated, "coefficient", False) or columns.names is not None:
        return None
    rows = device_rows(X) if X.shape[1:] == (columns.n_features,) else None
    if rows is None or (isinstance(stated, Multinomial) and rows.smallest < 0):
        return None
    return rows


def summarise_part(
    estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any, known: Columns | None
) -> Statistics:
    """Statistics of a part of the rows; those of a device are summed up there, if they are plain numbers."""
    if on_device(X):
        y = _labels.check_labels(y, part=True)
        weights = _labels.check_weights(sample_weight, y, may_vanish=True)
        present = np.unique(y) if classes is None else classes
        columns = known or Columns(X.shape[1])
        stated = estimator._stated(columns, len(present))
        rows = rows_on_device(X, stated, columns)
        if rows is not None:
            _labels.check_rows(rows, y)
            labels = Labels(_labels.encode_labels(y, present), weights)
            stats = estimator._stats(stated, rows, labels, columns)
            return Statistics(present, class_count(labels, len(present)), stats, columns)
    return estimator._summarise(X, y, sample_weight, classes, known, part=True)[0]


def without_prior(estimator: Any) -> Any:
    """An unfitted copy under the default prior.

    Statistics do not depend on the prior, and a prior with a value for each class does not fit a part of the rows
    that lacks some.
    """
    out = copy.copy(estimator)
    out.__dict__.pop("_learned", None)
    for name, value in DEFAULT_PRIOR.items():
        if hasattr(out, name):
            setattr(out, name, value)
    if isinstance(getattr(out, "blocks", None), (list, tuple)):
        out.blocks = [(name, without_prior(block), columns) for name, block, columns in out.blocks]
    return out


@contextmanager
def saying(where: str) -> Iterator[None]:
    """Say which part of the rows an error is about."""
    try:
        yield
    except Exception as error:
        if type(error) in (ValueError, TypeError, UndefinedNumberError):
            raise type(error)(f"{where}: {error}") from error
        error.add_note(where)
        raise


def joined(estimator: Any, parts: Iterable[Statistics | None]) -> Statistics | None:
    """Statistics of several parts together; None is a part without rows."""
    present = (part for part in parts if part is not None)
    first = next(present, None)
    return None if first is None else functools.reduce(estimator._join, present, first)


def checked_weight(total: Statistics | None) -> Statistics:
    """The statistics; `ValueError` if there is nothing in them."""
    if total is None:
        raise ValueError("there are no rows (0 samples) in any of the parts: there is nothing to learn from")
    if not total.class_count.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to learn from")
    return total


def _by_rows(estimator: Any) -> bool:
    """Whether learning needs the rows themselves, or all of them to say what the columns are."""
    blocks = getattr(estimator, "blocks", None)
    return (
        isinstance(estimator.likelihood_power, str)
        or getattr(estimator, "unlabelled", None) is not None
        or getattr(estimator.inference, "likelihood", None) == "rows"
        or blocks is not None
        or type(estimator)._columns is not Shell._columns
    )


def refuse_parts(estimator: Any, what: str) -> None:
    """Raise for what is learned from all rows together."""
    if isinstance(estimator.likelihood_power, str):
        raise ValueError(NO_ROWS)
    if getattr(estimator, "unlabelled", None) is not None:
        raise ValueError(
            f"unlabelled={estimator.unlabelled!r} needs all rows together: with {what} use unlabelled=None"
        )


def summarise(
    estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any, known: Columns | None
) -> tuple[Statistics, Any, Any]:
    """`Shell._summarise` of rows that may come in parts; then the encoded rows are None."""
    if is_dask(X) or is_dask(y) or is_dask(sample_weight):
        from bayesgen.estimators._dask import summarise_blocks

        refuse_parts(estimator, "dask")
        return checked_weight(summarise_blocks(estimator, X, y, sample_weight, classes, known)), None, None
    parts = None if type(X) is np.ndarray or _by_rows(estimator) else row_parts(X)
    if parts is None:
        return estimator._summarise(X, y, sample_weight, classes, known)
    y, sample_weight = (np.asarray(v) if is_jax(v) else v for v in (y, sample_weight))  # or a program for each slice
    _labels.check_rows(X, y)
    plain = without_prior(estimator)

    def one(part: tuple[slice, Any]) -> Statistics:
        rows, x = part
        weights = sample_weight if np.ndim(sample_weight) == 0 else _safe_indexing(sample_weight, rows)
        end = len(X) if rows.stop is None else rows.stop
        with saying(f"rows {rows.start or 0} to {end} of X"):
            return summarise_part(plain, x, _safe_indexing(y, rows), weights, classes, known)

    with one_blas_thread():
        if not on_device(parts[0][1]):
            return checked_weight(joined(plain, map(one, parts))), None, None
        with ThreadPoolExecutor(len(parts)) as pool:  # the devices work side by side
            return checked_weight(joined(plain, pool.map(one, parts))), None, None


def by_parts(method: M) -> M:
    """A method of rows that takes X in parts as well: dask collections lazily, others one part after another.

    The result is of the kind of X if the user asked for that; see `in_kind`.
    """

    @functools.wraps(method)
    def predict(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if type(X) is np.ndarray:
            return method(self, X, *args, **kwargs)
        if is_dask(X):
            from bayesgen.estimators._dask import predict_blocks

            return predict_blocks(self, method.__name__, X, *args, **kwargs)
        parts = row_parts(X)
        if parts is None:
            return in_kind(method(self, on_host(X), *args, **kwargs), X, labels=method.__name__ == "predict")
        return np.concatenate([method(self, part, *args, **kwargs) for _, part in parts])

    return predict  # type: ignore[return-value]
