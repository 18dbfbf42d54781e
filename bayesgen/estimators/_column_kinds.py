"""What kind of data a column holds, and the blocks of a mixed model that follow from it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesgen.estimators import _levels
from bayesgen.estimators._tables import (
    column_names,
    column_values,
    is_missing,
    not_numeric,
    refuse_duplicate_names,
)
from bayesgen.estimators.categorical import CategoricalNB
from bayesgen.estimators.gaussian import GaussianDiscriminantAnalysis, GaussianNB
from bayesgen.estimators.poisson import PoissonNB
from bayesgen.estimators.words import BernoulliNB, MultinomialNB
from bayesgen.families.base import column_name

__all__ = ["AUTOMATIC", "ESTIMATORS", "MOST_LEVELS", "auto_blocks", "automatic_kind", "column_kind", "own_levels"]

MOST_LEVELS = 20  # whole-number columns with more distinct values are measurements
AUTOMATIC = ("bernoulli", "categorical", "gaussian")
ESTIMATORS = {
    "bernoulli": lambda: BernoulliNB(binarize=None),
    "categorical": CategoricalNB,
    "gaussian": GaussianNB,
    "multivariate_gaussian": lambda: GaussianDiscriminantAnalysis(missing="marginalize"),
    "poisson": PoissonNB,
    "multinomial": MultinomialNB,
}


def column_kind(X: Any, j: int) -> str:
    """The automatic type of a column: one of `AUTOMATIC`."""
    values, declared = column_values(X, j)
    if declared is not None:
        return "categorical"
    if values.dtype.kind in "mM" or not_numeric(values) == "dates or durations":
        raise ValueError(
            f"{column_name(j, column_names(X))} holds dates or durations, which have no automatic type: turn them into "
            "numbers or categories, or drop the column"
        )
    if values.dtype.kind == "b":
        return "bernoulli"
    if values.dtype.kind not in "iuf":
        return "categorical"
    values = values[~is_missing(values)]
    if np.isinf(values).any():
        raise ValueError(f"Input X contains infinity: {column_name(j, column_names(X))}. Infinities are not data")
    distinct = np.unique(values)
    if np.isin(distinct, (0, 1)).all():
        return "bernoulli"
    whole = bool(np.all(distinct == np.floor(distinct)))
    return "categorical" if whole and len(distinct) <= MOST_LEVELS else "gaussian"


def warn_identifier(X: Any, j: int) -> None:
    """Warn of a column of texts most of which occur once."""
    values, declared = column_values(X, j)
    if declared is not None or values.dtype.kind in "biuf":
        return
    present = values[~is_missing(values)].tolist()
    distinct = len(set(map(str, present)))
    if distinct > max(MOST_LEVELS, len(present) // 2):
        warnings.warn(
            f"{column_name(j, column_names(X))} has {distinct} different values in {len(present)} rows: as a category "
            "it says next to nothing about new rows. Drop it; or, if it is text, count its words (CountVectorizer) for "
            "a MultinomialNB block",
            UserWarning,
            stacklevel=2,
        )


def automatic_kind(X: Any, j: int) -> str:
    """`column_kind`, with a warning where it cannot be meant."""
    kind = column_kind(X, j)
    if kind == "categorical":
        warn_identifier(X, j)
    return kind


def own_levels(X: Any, j: int) -> np.ndarray | None:
    """The distinct values of a column of numbers that cannot be codes 0, 1, ...; None for any other column."""
    values, declared = column_values(X, j)
    values = values[~is_missing(values)]
    if declared is not None or values.dtype.kind not in "iuf" or not values.size:
        return None
    return None if 0 <= values.min() <= values.max() < MOST_LEVELS else np.unique(values)


def labels_at(labels: list[Any], place: Any) -> Any:
    """The label of a column by its position; the position itself if there is none."""
    inside = isinstance(place, (int, np.integer)) and -len(labels) <= place < len(labels)
    return labels[place] if inside else place


def auto_blocks(X: Any, kinds: Mapping[Any, str] | None = None) -> list[tuple[str, Any, list[Any]]]:
    """The blocks that ``MixedNB(blocks="auto")`` would make of X, to read, change and pass on.

    Parameters
    ----------
    X : array or data frame, (n_samples, n_features)
        Training rows.
    kinds : dict, optional
        What some columns, by name or position, are instead: "bernoulli", "categorical", "gaussian" (independent
        normals), "multivariate_gaussian" (correlated with the others of this kind), "poisson", "multinomial" (word
        counts), or "drop".

    Returns
    -------
    list of (str, estimator, list)
        Kind, estimator with its default prior, and columns: names, or positions where there are none.

    Raises
    ------
    ValueError
        For a column or a kind that there is not, and for columns that have no automatic kind.

    Examples
    --------
    >>> from bayesgen import MixedNB, auto_blocks
    >>> X = [["red", 3, 1.25, 0.7], ["blue", 0, 2.5, 1.9], ["red", 4, 1.5, 0.9]]
    >>> blocks = auto_blocks(X, {1: "poisson", 2: "multivariate_gaussian", 3: "multivariate_gaussian"})
    >>> [(name, columns) for name, _, columns in blocks]
    [('categorical', [0]), ('multivariate_gaussian', [2, 3]), ('poisson', [1])]
    >>> MixedNB(blocks=blocks).fit(X, ["a", "b", "a"]).predict([["blue", 1, 2.2, 2.0]]).tolist()
    ['b']
    """
    if isinstance(X, (list, tuple)):
        X = np.array(X, dtype=object)
    if np.ndim(X) != 2:
        raise ValueError(f"X must be a table of rows and columns; got {np.ndim(X)} dimensions")
    names = column_names(X)
    labels = list(range(X.shape[1])) if names is None else names
    if not isinstance(kinds, (Mapping, type(None))):
        raise ValueError(f"kinds must be a dict of columns, as in {{'visits': 'poisson'}}; got {kinds!r}")
    refuse_duplicate_names(X)
    given = {}
    for column, kind in (kinds or {}).items():
        place = column if column in labels or isinstance(column, str) else labels_at(labels, column)
        if place not in labels:
            raise ValueError(f"kinds names the column {column!r}, which X does not have; it has {labels[:20]}")
        given[place] = kind
    for column, kind in given.items():
        if kind not in (*ESTIMATORS, "drop"):
            raise ValueError(f"kinds[{column!r}] must be one of {', '.join([*ESTIMATORS, 'drop'])}; got {kind!r}")
    found: dict[str, list[int]] = {}
    for j, column in enumerate(labels):
        found.setdefault(given.get(column) or automatic_kind(X, j), []).append(j)
    out = []
    for kind, make in ESTIMATORS.items():
        index = found.get(kind, [])
        if not index:
            continue
        estimator = make()
        levels = [own_levels(X, j) for j in index] if kind == "categorical" else []
        if any(v is not None for v in levels):
            pairs = zip(index, levels, strict=True)
            seen = [_levels.find(X, j, None, 0, names) if own is None else own for j, own in pairs]
            estimator.set_params(categories=seen)
        out.append((kind, estimator, [labels[j] for j in index]))
    return out
