"""What each column of a row says about its class, and how sure that is; see ``estimator.explain``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from bayesgen._kernels import row_blocks
from bayesgen._values import check_count, python_values
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning
from bayesgen.families.base import Problem, dense
from bayesgen.families.contributions import (
    contributions,
    draw_contributions,
    over_draws,
    variances,
    variances_of_draws,
)
from bayesgen.fit import SAMPLED, Fit
from bayesgen.statistics import Columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explanation", "LogOdds"]

MOST_CELLS = 1 << 27  # numbers of a dense array (rows, columns, classes): 1 GiB
BLOCK_CELLS = 1 << 21  # numbers worked on at once


@dataclass(frozen=True, eq=False)
class LogOdds:
    """The log odds of a class for one row, taken apart.

    Attributes
    ----------
    label, against : class labels
        Class and its opponent; `against` is None where that is the average of all other classes.
    prior : float
        What the class probabilities say, in nats.
    contributions : ndarray (d,)
        What each column adds to it; `total` is their sum with `prior`.
    sd : ndarray (d,) or None
        Posterior standard deviation of each contribution; None where the route has no posterior.

    Examples
    --------
    >>> from bayesgen import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], [0, 0, 1])
    >>> odds = model.explain([[1, 0]]).log_odds(0)
    >>> odds.label, round(odds.total, 3) == round(odds.prior + odds.contributions.sum(), 3)
    (0, True)
    """

    label: Any
    against: Any
    prior: float
    contributions: np.ndarray
    sd: np.ndarray | None

    @property
    def total(self) -> float:
        """Log odds of the class; NaN for a row that has probability zero in both."""
        with np.errstate(invalid="ignore"):
            return float(self.prior + self.contributions.sum())

    @property
    def title(self) -> str:
        """What the numbers are, for tables and pictures."""
        return f"log odds of {self.label} against {'the rest' if self.against is None else self.against}"


@dataclass(frozen=True, eq=False)
class Part:
    """One family of a fit: its feature part, its rows, and the columns of X they are."""

    features: Any
    x: Any
    index: np.ndarray

    def contributions(self, rows: Any) -> np.ndarray:
        """What each column adds to the route's ln p(x | y = k), (n, d, K)."""
        x = np.asarray(dense(self.x[rows]))
        f = self.features
        if f.route in SAMPLED:
            return over_draws(self._draws(x))
        return contributions(f.posterior, None, x) if f.route == "exact" else contributions(f.stated, f.params, x)

    def _draws(self, x: np.ndarray) -> np.ndarray:
        """Contributions for each of the draws that the route averages over, (S, n, d, K)."""
        f = self.features
        if not f._marginal:
            return draw_contributions(f.base, f._params, x)
        return np.stack([contributions(f._given(int(s)), None, x) for s in f._representative])

    def variances(self, rows: Any, contrasts: np.ndarray, rng: np.random.Generator, n_draws: int) -> np.ndarray:
        """Posterior variances of contrasts of the contributions, (n, d, m)."""
        x = np.asarray(dense(self.x[rows]))
        f = self.features
        if f.route not in SAMPLED:
            return variances(f.posterior, x, contrasts, rng, n_draws)
        return variances_of_draws(draw_contributions(f.base, f.posterior_params(rng, n_draws), x), contrasts)

    def problem(self, everyone: np.ndarray) -> Problem | None:
        """Why there are no standard deviations; None if there are."""
        f = self.features
        problem: Problem | None = f.draws_problem(everyone)
        if problem is not None or f.route in SAMPLED:
            return problem
        return f.posterior.improper(everyone, strict=True)


@dataclass(frozen=True, eq=False)
class Explanation:
    r"""The log joint of each row and class, taken apart by columns.

    .. math:: \ln p(y{=}k) + \sum_j c_{ijk} = \ln p(x_i, y{=}k) \quad\text{up to a constant of the row,}

    so that differences between classes are exact. A column's share is its sequential log density given the columns
    before it, averaged over all orders of the columns (its Shapley value): the log density of the column itself where
    columns are independent given the class. Numbers are computed when asked for, and of the rows asked for.

    Attributes
    ----------
    contributions : ndarray (n, d, K)
        In nats; 0 for a missing cell. With a likelihood power, times the power.
    sd : ndarray (n, d, K)
        Posterior standard deviation of the same for given parameters.
    prior : ndarray (K,)
        Log class probabilities.
    classes : ndarray (K,)

    Notes
    -----
    ``contributions`` and ``sd`` of many documents and a large vocabulary do not fit: they refuse more than 1 GiB. One
    row at a time, `table` and `log_odds` need memory for the columns alone.

    A sampled route averages p(x | y, parameters) over draws, which is not additive: the share of a column is that of
    the log-mean-exp over the draws, again averaged over orders.

    The standard deviations are closed forms of the conjugate posterior, and from `n_draws` draws for a full covariance
    and for sampled routes. Intervals in tables and pictures are normal ones about the contribution.

    Examples
    --------
    >>> from bayesgen import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], [0, 0, 1])
    >>> model.explain([[1, 0]]).contributions.shape
    (1, 2, 2)

    References
    ----------
    Shapley 1953, *A value for n-person games*; Good 1985, *Weight of evidence: a brief survey*.
    """

    fit: Fit
    columns: Columns
    parts: tuple[Part, ...]
    prior: np.ndarray
    rows: np.ndarray
    n_draws: int
    seed: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """Class labels, (K,)."""
        return self.fit.classes

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, columns and classes."""
        return len(self.rows), self.columns.n_features, len(self.classes)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Explanation:
        """Of some rows: positions, a slice or a mask."""
        picked = self.rows[rows]
        return replace(self, rows=np.atleast_1d(picked))

    @property
    def feature_names(self) -> np.ndarray:
        """Column names, or positions, (d,)."""
        return np.arange(self.columns.n_features) if self.columns.names is None else np.asarray(self.columns.names)

    # ---- arrays

    @cached_property
    def contributions(self) -> np.ndarray:
        """What each column adds to the log joint of each class, (n, d, K)."""
        return self._all(self._contributions)

    @cached_property
    def sd(self) -> np.ndarray:
        """Posterior standard deviations of the contributions, (n, d, K)."""
        self._check_posterior()
        return self._all(lambda rows: np.sqrt(self._variances(rows, np.eye(len(self.classes)))))

    def _all(self, work: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        n, d, n_classes = self.shape
        if n * d * n_classes > MOST_CELLS:
            raise ValueError(
                f"an array of {n} rows, {d} columns and {n_classes} classes would need {n * d * n_classes / 2**27:.1f} "
                f"GiB: explain fewer rows at a time, at most {MOST_CELLS // (d * n_classes)} (explanation[rows] takes "
                "some), or one of them with table(row) or log_odds(row)"
            )
        out = np.zeros(self.shape)
        for block in row_blocks(n, d * n_classes, BLOCK_CELLS):
            out[block] = work(self.rows[block])
        return out

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        out = np.zeros((len(rows), *self.shape[1:]))
        for part in self.parts:
            with np.errstate(all="ignore"):
                out[:, part.index] = part.contributions(rows)
        out[..., np.isneginf(self.prior)] = 0.0  # a class of probability zero is not asked
        return self.fit.powered(out)

    def _variances(self, rows: np.ndarray, contrasts: np.ndarray) -> np.ndarray:
        out = np.zeros((len(rows), self.columns.n_features, len(contrasts)))
        rng = np.random.default_rng(self.seed)
        for part in self.parts:
            with np.errstate(all="ignore"):
                out[:, part.index] = np.maximum(part.variances(rows, contrasts, rng, self.n_draws), 0.0)
        return self.fit.power**2 * out

    def _problem(self) -> tuple[Problem, Any] | None:
        everyone = np.ones(len(self.classes), dtype=bool)
        for part, (_, names) in zip(self.parts, self.fit._parts(), strict=True):
            problem = part.problem(everyone)
            if problem is not None:
                return problem, names
        return None

    def _check_posterior(self) -> None:
        found = self._problem()
        if found is not None:
            raise UndefinedNumberError(self.fit.explain(*found))

    # ---- one row

    def log_odds(self, row: int = 0, label: Any = None, against: Any = None) -> LogOdds:
        """The log odds of a class for one row, by columns.

        Parameters
        ----------
        row : int
        label : class label, optional
            Default: the class predicted for the row.
        against : class label, optional
            Default: the other of two classes; of more, the average of the log joints of all others that are possible.

        Returns
        -------
        LogOdds
            NaN in `total`, with a `ZeroProbabilityWarning`, for a row that no class can generate.
        """
        one = self._row(row)
        each = self._contributions(one)[0]
        own, rest = self._codes(each, label, against)
        with np.errstate(invalid="ignore"):
            impossible = np.isneginf(self.prior + each.sum(axis=0)).all()
        if impossible:
            warnings.warn(
                f"row {row} has probability zero in every class: its log odds are 0/0, given as NaN. Smoothing repairs "
                "this: inference='mean' or 'exact' with alpha > 0",
                ZeroProbabilityWarning,
                stacklevel=2,
            )
        contrast = np.zeros(len(self.classes))
        contrast[own] = 1.0
        contrast[rest] -= 1.0 / len(rest)
        with np.errstate(invalid="ignore"):
            values = each[:, own] - each[:, rest].mean(axis=1)
            prior = float(self.prior[own] - self.prior[rest].mean())
        sd = None if self._problem() is not None else np.sqrt(self._variances(one, contrast[None])[0, :, 0])
        labels = python_values(self.classes)
        return LogOdds(labels[own], labels[rest[0]] if len(rest) == 1 else None, prior, values, sd)

    def _row(self, row: Any) -> np.ndarray:
        n = len(self)
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not -n <= row < n:
            raise ValueError(f"row must be a whole number below {n}, the number of rows explained; got {row!r}")
        return np.atleast_1d(self.rows[row])

    def _codes(self, each: np.ndarray, label: Any, against: Any) -> tuple[int, np.ndarray]:
        """Position of the class, and those of its opponents."""
        labels = python_values(self.classes)
        if len(labels) < 2:
            raise ValueError("there is one class only: there are no odds")
        for name, value in (("label", label), ("against", against)):
            if np.ndim(value) != 0:
                raise ValueError(f"{name} must be one class label; got {value!r:.100}")
            if value is not None and value not in labels:
                raise ValueError(f"{name}={value!r} is not a class; the classes are {labels}")
        if label is None:
            score = np.nan_to_num(self.prior + each.sum(axis=0), nan=-np.inf)
            if against is not None:
                score[labels.index(against)] = -np.inf
                others = [k for k in range(len(labels)) if labels[k] != against]
                own = others[int(score[others].argmax())]
            else:
                own = int(score.argmax())
        else:
            own = labels.index(label)
        if against is None:
            rest = np.flatnonzero(np.arange(len(labels)) != own)
            possible = rest[self.prior[rest] > -np.inf]
            return own, possible if possible.size else rest
        if labels.index(against) == own:
            raise ValueError(f"label and against are the same class, {against!r}")
        return own, np.array([labels.index(against)])

    def table(
        self,
        row: int = 0,
        label: Any = None,
        against: Any = None,
        *,
        n: int | None = None,
        prob: float = 0.94,
        feature_names: Any = None,
    ) -> pd.DataFrame:
        """The columns that speak for and against a class in one row, the strongest first.

        Parameters
        ----------
        row, label, against : see `log_odds`
        n : int, optional
            How many columns; default: all that say anything.
        prob : float
            Posterior probability of the intervals.
        feature_names : sequence or dict, optional
            Column names of a model fitted on an array, such as ``CountVectorizer.get_feature_names_out()``, or
            positions by name, as in its ``vocabulary_``.

        Returns
        -------
        pandas.DataFrame
            By column: ``value``, ``log_odds``, and if the route has a posterior ``sd``, ``lower`` and ``upper``.
            ``attrs`` has ``label``, ``against``, ``prior`` and ``total``.
        """
        from bayesgen.comparison import import_pandas

        if not isinstance(prob, (float, np.floating)) or not 0 < prob < 1:
            raise ValueError(f"prob must be a number between 0 and 1; got {prob!r}")
        n = None if n is None else check_count("n", n, 0)
        pd = import_pandas("table")
        found = self.log_odds(row, label, against)
        at = strongest(found.contributions, n)
        names = self.names(feature_names)
        data: dict[str, Any] = {"value": [self.value(row, j) for j in at], "log_odds": found.contributions[at]}
        if found.sd is not None:
            reach = ndtri((1 + prob) / 2) * found.sd[at]
            data |= {"sd": found.sd[at], "lower": data["log_odds"] - reach, "upper": data["log_odds"] + reach}
        out = pd.DataFrame(data, index=pd.Index([names[j] for j in at], name="feature"))
        out.columns.name = found.title  # which class a positive number speaks for
        out.attrs = {"label": found.label, "against": found.against, "prior": found.prior, "total": found.total}
        return out

    def value(self, row: int, j: int) -> Any:
        """A cell as the reader knows it: a number, or the level that a code stands for (None: missing).

        Parameters
        ----------
        row : int
            Row of X, from 0; negative from the end.
        j : int
            Position of the column.

        Returns
        -------
        number, level or None
            The value of the cell.
        """
        at = self._row(row)
        blocks = [self.columns] if self.columns.blocks is None else [block for _, _, block in self.columns.blocks]
        for part, block in zip(self.parts, blocks, strict=True):
            if j not in part.index:
                continue
            place = int(np.flatnonzero(part.index == j)[0])
            value = dense(part.x[at])[0, place].item()
            if block.levels is None:
                return value
            levels = block.levels[place].tolist()
            return None if value < 0 else levels[value] if value < len(levels) else "(unknown level)"
        return None

    def names(self, feature_names: Any = None) -> list[Any]:
        """Names of the columns: those given, those of the data frame, or positions.

        Parameters
        ----------
        feature_names : sequence or dict, optional
            Names, or positions by name.

        Returns
        -------
        list
            One name for each column.
        """
        if feature_names is None:
            return self.feature_names.tolist()
        if isinstance(feature_names, Mapping):  # a vocabulary: positions by name
            names = sorted(feature_names, key=feature_names.__getitem__)
        elif isinstance(feature_names, Set):
            raise ValueError("feature_names is a set, which has no order; give a list, in the order of the columns")
        elif isinstance(feature_names, (str, bytes)) or np.ndim(feature_names) != 1:
            raise ValueError(f"feature_names must be a sequence of names, or a dict; got {feature_names!r:.100}")
        else:
            names = list(feature_names)
        if len(names) != self.columns.n_features:
            raise ValueError(f"feature_names has {len(names)} names; the model has {self.columns.n_features} columns")
        return names

    def __repr__(self) -> str:
        n, d, n_classes = self.shape
        return f"Explanation({n} rows, {d} columns, {n_classes} classes): see table(row), log_odds(row), contributions"

    def _repr_html_(self) -> str | None:
        if not len(self) or len(self.classes) < 2:
            return None
        try:
            table = self.table(0, n=10)
        except ImportError:
            return None
        found = self.log_odds(0)
        head = f"row 0 of {len(self)}: {found.title} {found.total:.2f}, of which class probabilities {found.prior:.2f}"
        from html import escape

        return f"<p>{escape(head)}</p>{table.to_html(float_format='{:.3g}'.format)}"


def strongest(values: np.ndarray, n: int | None = None) -> np.ndarray:
    """Positions of the values that are not 0, by size; the n largest of them. NaN comes last."""
    size = np.where(np.isnan(values), -1.0, np.abs(values))
    order = np.argsort(-size, kind="stable")
    order = order[size[order] != 0]
    return order if n is None else order[:n]
