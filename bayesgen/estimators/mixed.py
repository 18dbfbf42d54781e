"""Naive Bayes over blocks of columns of different kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.metaestimators import _BaseComposition

from bayesgen._random import generator
from bayesgen.estimators import _input, _levels
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._column_kinds import AUTOMATIC, ESTIMATORS, automatic_kind, own_levels
from bayesgen.estimators._shell import Learned
from bayesgen.estimators._tables import is_frame
from bayesgen.estimators.categorical import CategoricalNB
from bayesgen.estimators.words import MultinomialNB
from bayesgen.families._all import Labels, Mixed
from bayesgen.families.base import column_name
from bayesgen.fit import SAMPLED, Fit, MixedFit
from bayesgen.statistics import Columns

__all__ = ["MixedNB"]

OF_BLOCK = "the columns of a block are names, indices, a mask, a slice or a selector"
MOST_CELLS = 1e8  # of a sparse matrix that is made dense so that its columns can be typed


def select(X: Any, index: np.ndarray) -> Any:
    """Columns of an array or data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[:, index]
    if hasattr(X, "get_column"):
        return X.select([X.columns[j] for j in index])
    return X[:, index]


def read_block(template: Any, X: Any, index: np.ndarray, columns: Columns | None) -> tuple[Any, Any]:
    """The columns of a block as its estimator reads them; an array without names was warned of as a whole."""
    if columns is not None and not is_frame(X):
        columns = replace(columns, names=None)
    return template._read(select(X, index), columns)


def _those(names: Any) -> str:
    return ": it has no names" if names is None else f"; it has {', '.join(repr(str(name)) for name in names[:20])}"


@contextmanager
def in_block(name: str, index: np.ndarray, names: Any) -> Iterator[None]:
    """Say which columns of X an error of a block is about, where they have no names of their own."""
    try:
        yield
    except ValueError as error:
        if names is not None:
            raise
        places = ", ".join(f"column {j}" for j in index[:10]) + (", ..." if len(index) > 10 else "")
        raise type(error)(f"block {name!r} ({places} of X): {error}") from error


class MixedNB(GenerativeBase, _BaseComposition):
    r"""Naive Bayes over blocks of columns, each with an estimator and prior of its own.

    Given the class the blocks are independent: :math:`\ln p(x \mid y) = \sum_b \ln p_b(x_b \mid y)`; there is one
    set of class probabilities.

    Parameters
    ----------
    blocks : "auto" or list of (name, estimator, columns), default="auto"
        Columns are names, indices, a mask, a slice, or a function of X that gives one of these, such as scikit-learn's
        ``make_column_selector``. "auto" types every column: booleans and 0/1 are Bernoulli; strings, categoricals and
        whole numbers with at most 20 values are categorical; other numbers are normal. See ``blocks_`` for what it
        decided, and `auto_blocks` for how to decide otherwise.
    inference : {"exact", "mean", "map", "mle", "nuts", "importance"} or their options, default="exact"
        Route of the class probabilities. Each block has its own; those that "auto" makes are "exact" (with
        `unlabelled`: the route of the class probabilities). Columns in no block are not used.
    class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    blocks_ : list of (name, fitted estimator, column indices)
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_,
    log_evidence_parts_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from bayesgen import MixedNB
    >>> X = [[1.5, "p"], [3.1, "p"], [6.2, "q"], [9.9, "q"]]
    >>> model = MixedNB().fit(X, [0, 0, 1, 1])
    >>> [(name, columns.tolist()) for name, _, columns in model.blocks_]
    [('categorical', [1]), ('gaussian', [0])]
    """

    def __init__(
        self,
        *,
        blocks: Any = "auto",
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        likelihood_power: Any = 1.0,
        unlabelled: str | None = None,
        unlabelled_weight: float = 1.0,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.blocks = blocks
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.likelihood_power = likelihood_power
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.n_init = n_init
        self.random_state = random_state

    missing = "marginalize"  # each block decides

    # ---- blocks

    @property
    def _pairs(self) -> Any:
        """(name, estimator) of the blocks, for scikit-learn's nested parameters."""
        blocks = self.blocks if isinstance(self.blocks, (list, tuple)) else []  # anything else: an error at fit
        return [block[:2] for block in blocks if isinstance(block, (list, tuple)) and len(block) == 3]

    @_pairs.setter
    def _pairs(self, pairs: Any) -> None:
        self.blocks = [(n, e, c) for (n, e), (_, _, c) in zip(pairs, self.blocks, strict=True)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, those of block b as ``b__parameter``; see scikit-learn's `get_params`.

        Parameters
        ----------
        deep : bool, default=True
            Whether parameters of the blocks' estimators are included.

        Returns
        -------
        dict of str to any
            Values by name.
        """
        return self._get_params("_pairs", deep=deep)

    def set_params(self, **params: Any) -> MixedNB:
        """Set parameters, those of block b as ``b__parameter``; see scikit-learn's `set_params`.

        Parameters
        ----------
        **params : values
            By name.

        Returns
        -------
        self
            The estimator.
        """
        if "blocks" in params:
            self.blocks = params.pop("blocks")
        self._check_names(params)
        self._set_params("_pairs", **params)
        return self

    def _templates(self, names: Sequence[str]) -> list[Any]:
        """The unfitted estimator of each of the named blocks."""
        if isinstance(self.blocks, str):
            # With unlabelled rows a block cannot be exact: it takes the route of the class probabilities.
            route = "exact" if self.unlabelled is None else self.inference
            return [ESTIMATORS[name]().set_params(inference=route) for name in names]
        return [estimator for _, estimator, _ in self.blocks]

    def _block_indices(self, X: Any, holder: Any) -> list[tuple[str, np.ndarray]]:
        d = holder.n_features_in_
        if isinstance(self.blocks, str):
            if self.blocks != "auto":
                raise ValueError(f"blocks must be 'auto' or a list of (name, estimator, columns); got {self.blocks!r}")
            kinds = np.array([automatic_kind(X, j) for j in range(d)])
            present = [kind for kind in AUTOMATIC if (kinds == kind).any()]
            return [(kind, np.flatnonzero(kinds == kind)) for kind in present]
        names = getattr(holder, "feature_names_in_", None)
        out, used = [], np.zeros(d, dtype=int)
        for entry in self.blocks:
            if not isinstance(entry, (list, tuple)) or len(entry) != 3 or not isinstance(entry[1], GenerativeBase):
                raise ValueError(
                    f"each block is (name, estimator, columns) with a bayesgen estimator, such as GaussianNB(); "
                    f"got {entry!r}"
                )
            if isinstance(entry[1], MixedNB):
                raise ValueError(f"block {entry[0]!r} is itself a MixedNB: list its blocks here instead")
            index = self._indices(entry[2](X) if callable(entry[2]) else entry[2], d, names)
            used[index] += 1
            out.append((str(entry[0]), index))
        if len({name for name, _ in out}) < len(out):
            raise ValueError(f"block names must be distinct; got {[name for name, _ in out]}")
        if (used > 1).any():
            raise ValueError(f"{column_name(int(np.flatnonzero(used > 1)[0]), names)} is in more than one block")
        if not out:
            raise ValueError("blocks is empty: name at least one (name, estimator, columns)")
        return out

    def _indices(self, columns: Any, d: int, names: Any) -> np.ndarray:
        if isinstance(columns, slice):
            if any(isinstance(end, str) for end in (columns.start, columns.stop)):
                raise ValueError(f"a slice of columns goes by position; list the names instead; got {columns!r}")
            columns = range(d)[columns]
        if isinstance(columns, (str, int, np.integer)):
            columns = [columns]
        if not hasattr(columns, "__len__"):
            raise ValueError(f"{OF_BLOCK}; got {columns!r}")
        columns = list(columns)
        if columns and all(isinstance(c, (bool, np.bool_)) for c in columns):
            if len(columns) != d:
                raise ValueError(f"a mask of columns has {len(columns)} entries; X has {d} columns")
            columns = np.flatnonzero(columns).tolist()
        out: list[int] = []
        for c in columns:
            if isinstance(c, str):
                hits = [] if names is None else np.flatnonzero(np.asarray(names) == c).tolist()
                if not hits:
                    raise ValueError(f"blocks names the column {c!r}, which X does not have{_those(names)}")
                out.append(hits[0])
            elif isinstance(c, (bool, np.bool_)) or not isinstance(c, (int, np.integer)):
                raise ValueError(f"{OF_BLOCK}; got {c!r}")
            elif not -d <= c < d:
                raise ValueError(f"blocks names column {c}; X has the columns 0 to {d - 1}")
            else:
                out.append(int(c) % d)
        if not out:
            raise ValueError("a block needs at least one column")
        return np.array(out, dtype=np.int64)

    # ---- hooks

    def _check_params(self) -> None:
        super()._check_params()
        if not isinstance(self.blocks, (str, list, tuple)):
            raise ValueError(f"blocks must be 'auto' or a list of (name, estimator, columns); got {self.blocks!r}")
        for _, estimator in self._pairs:
            if isinstance(estimator, GenerativeBase):
                estimator._check_params()
                if estimator.unlabelled is not None:
                    raise ValueError("unlabelled= is an option of MixedNB itself, for all blocks together")

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        if sp.issparse(X) and not isinstance(self.blocks, str):
            return _input.check_numeric(self, X, columns)
        if sp.issparse(X) and np.prod(X.shape, dtype=float) > MOST_CELLS:
            raise ValueError(
                f"typing the columns of a sparse matrix of shape {X.shape} would make it dense: list the blocks, such "
                "as blocks=[('words', MultinomialNB(), slice(None))]"
            )
        return _input.check_table(self, X, columns)

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        names = getattr(holder, "feature_names_in_", None)
        if known is None:
            indices = self._block_indices(X, holder)
            before: list[Columns | None] = [None] * len(indices)
        else:
            indices = [(name, index) for name, index, _ in known.blocks or ()]
            before = [b[2] for b in known.blocks or ()]
        templates = self._templates([name for name, _ in indices])
        blocks = []
        for (name, index), template, old in zip(indices, templates, before, strict=True):
            template = self._prepare(template, X, index, name, old)
            with in_block(name, index, names):
                raw, block_holder = read_block(template, X, index, old)
                block = template._columns(raw, block_holder, old, weights)
            block = Columns(block.n_features, None if names is None else names[index], block.levels)
            blocks.append((name, index, block))
        for _, index, _ in blocks:
            index.flags.writeable = False
        return Columns(holder.n_features_in_, names, None, tuple(blocks))

    def _prepare(self, template: Any, X: Any, index: np.ndarray, name: str, old: Columns | None) -> Any:
        """For automatic categorical blocks: whole numbers that cannot be few codes are levels as they are."""
        if not isinstance(self.blocks, str) or name != "categorical" or old is not None:
            return template
        found = [own_levels(X, int(j)) for j in index]
        if all(f is None for f in found):
            return template
        columns = [np.zeros(0) if f is None else f for f in found]
        return _GivenLevels(columns)

    def _each(self, columns: Columns) -> list[tuple[Any, np.ndarray, Columns]]:
        blocks = columns.blocks or ()
        pairs = zip(self._templates([name for name, _, _ in blocks]), blocks, strict=True)
        return [(template, index, block) for template, (_, index, block) in pairs]

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> tuple[Any, ...]:
        out = []
        for (template, index, block), (name, _, _) in zip(self._each(columns), columns.blocks or (), strict=True):
            with in_block(name, index, columns.names):
                out.append(template._encode(read_block(template, X, index, block)[0], block, purpose))
        return tuple(out)

    def _stated(self, columns: Columns, n_classes: int) -> Mixed:
        blocks = tuple(template._stated(block, n_classes) for template, _, block in self._each(columns))
        names = tuple(name for name, _, _ in columns.blocks or ())
        return Mixed(blocks, names, n_classes, sum(b.n_features for b in blocks))

    def _adapt(self, stats: Any, old: Columns, new: Columns) -> Any:
        parts = zip(self._each(new), stats, old.blocks or (), strict=True)
        return tuple(t._adapt(s, before[2], block) for (t, _, block), s, before in parts)

    def _stats(self, stated: Any, x: Any, labels: Labels, columns: Columns) -> Any:
        parts = zip(self._each(columns), stated.blocks, x, strict=True)
        return tuple(t._stats(s, part, labels, block) for (t, _, block), s, part in parts)

    def _features(self, stated: Any, stats: Any, columns: Columns, random_state: Any, rows: Any = None) -> MixedFit:
        shared = None  # one generator for the blocks that have no random state of their own
        parts = []
        for i, (template, _, block) in enumerate(self._each(columns)):
            state = template.random_state
            if state is None and template._route in SAMPLED:
                state = shared = generator(random_state) if shared is None else shared
            block_rows = None if rows is None else (rows[0], rows[1][i], *rows[2:])
            parts.append(template._features(stated.blocks[i], stats[i], block, state, block_rows))
        return MixedFit(stated.replace(blocks=tuple(p.stated for p in parts)), tuple(parts))

    def _join_columns(self, a: Columns, b: Columns) -> Columns:
        joined = super()._join_columns(a, b)
        mine, theirs = a.blocks or (), b.blocks or ()
        same = [(n, i.tolist()) for n, i, _ in mine] == [(n, i.tolist()) for n, i, _ in theirs]
        if not same:
            raise ValueError("cannot merge: the two models have different blocks; state blocks= for both")
        blocks = tuple(
            (n, i, t._join_columns(p, q))
            for (n, i, p), (_, _, q), (t, _, _) in zip(mine, theirs, self._each(a), strict=True)
        )
        return Columns(joined.n_features, joined.names, None, blocks)

    # ---- results

    @property
    def blocks_(self) -> list[tuple[str, Any, np.ndarray]]:
        """(name, fitted estimator, column indices) of each block."""
        learned = self._state()
        fit = learned.fit
        out = []
        parts = zip(fit.features.stated.names, self._each(learned.columns), fit.features.parts, strict=True)
        for name, (template, index, columns), part in parts:
            block = clone(template)
            value = Fit(fit.class_prior, fit.count, fit.route, part, fit.classes, columns.names)
            out.append((name, block._commit(Learned(columns, value)), index))
        return out

    def _lengths(self, lengths: Any, n_rows: int, fit: Fit) -> Any:
        documents = [block for _, block, _ in self.blocks_ if isinstance(block, MultinomialNB)]
        if not documents:
            return super()._lengths(lengths, n_rows, fit)
        return documents[0]._lengths(lengths, n_rows, documents[0]._fit_value)

    def _decode(self, x: tuple[Any, ...], columns: Columns) -> np.ndarray:
        parts = [t._decode(part, block) for (t, _, block), part in zip(self._each(columns), x, strict=True)]
        kind = float if all(p.dtype.kind in "iufb" for p in parts) else object
        out = np.empty((len(parts[0]), columns.n_features), dtype=kind)
        for part, (_, index, _) in zip(parts, columns.blocks or (), strict=True):
            out[:, index] = part
        return out

    def _logistic_encoder(self) -> Any:
        raise ValueError(
            "a mixed model has one logistic form for each block: call to_logistic() on the estimators of blocks_"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class _GivenLevels(CategoricalNB):
    """Categorical columns some of which have given levels."""

    def __init__(self, levels: list[np.ndarray]) -> None:
        super().__init__()
        self._levels = levels

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        names = getattr(holder, "feature_names_in_", None)
        levels = tuple(v if len(v) else _levels.find(X, j, None, 0, names, weights) for j, v in enumerate(self._levels))
        return Columns(holder.n_features_in_, names, levels)
