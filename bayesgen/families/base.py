"""What every family shares: the protocol, class weights, and sums of rows by class.

A family is p(x | y, parameters) together with its conjugate prior: a frozen dataclass, registered as a
JAX pytree, whose fields are hyperparameters. Conditioning it on sufficient statistics returns the same
type: a posterior is a prior that has seen data. Statistics and parameters are NamedTuples with the
class axis first.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np
import scipy.sparse as sp

from bayesgen import _kernels
from bayesgen._math import Array, namespace

Names = Sequence[Any] | np.ndarray | None  # column names, for messages
F = TypeVar("F", bound="Family")
C = TypeVar("C")


class Unlearned(ValueError):
    """Rows that are to be forgotten vary more in a column than all rows that were learned."""

    def __init__(self, column: int) -> None:
        super().__init__(f"these rows were not all learned: more scatter of column {column} would leave than there is")
        self.column = column


class Problem(NamedTuple):
    """Why a number is undefined: a message with {cls} and {columns}, the class and the columns."""

    text: str
    cls: int | None = None
    columns: Sequence[int] = ()


UNBOUNDED_CELLS = (
    "with unlabelled rows the posterior density is unbounded: {columns} in class {cls} has a concentration + count of "
    "labelled rows below 1. Use a concentration of at least 1, or inference='mean'"
)
UNBOUNDED_VARIANCES = (
    "with unlabelled rows the density is unbounded: the labelled rows have no spread in {columns} {whose}, and no "
    "prior keeps the variance from zero. Use a proper prior with inference='map' or 'mean', or label more rows"
)


def small_cell(concentration: Any) -> Problem | None:
    """The first cell (class, column) whose concentration, with the labelled counts, is below 1."""
    cell = first_cell(np.asarray(concentration) < 1.0, np.ones(len(concentration), dtype=bool))
    return None if cell is None else Problem(UNBOUNDED_CELLS, cell[0], cell[1:])


def no_spread(bad: Any, shared: bool) -> Problem | None:
    """The first class and column of a (K, d) mask (one row if all classes share a variance)."""
    cell = first_cell(bad, np.ones(len(bad), dtype=bool))
    if cell is None:
        return None
    text = UNBOUNDED_VARIANCES.replace("{whose}", "(variance shared by the classes)" if shared else "of class {cls}")
    return Problem(text, None if shared else cell[0], cell[1:])


def first_cell(bad: Any, needed: np.ndarray) -> tuple[int, int] | None:
    """First (class, column) with a true entry among the needed classes."""
    hits = np.argwhere(np.asarray(bad) & needed[:, None])
    return (int(hits[0, 0]), int(hits[0, 1])) if len(hits) else None


class Labels(NamedTuple):
    """Class codes with row weights: the fast form of class weights ``r`` of shape (n, K).

    Parameters
    ----------
    codes : int array (n,)
        Codes 0..K-1.
    weights : array (n,), optional
        Row weights; None: one each.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Labels
    >>> Labels(np.array([0, 1, 1])).weights is None
    True
    """

    codes: np.ndarray
    """Codes 0..K-1, shape (n,)."""
    weights: np.ndarray | None = None
    """Row weights, shape (n,); None means one each."""


Weights = Labels | np.ndarray
Elsewhere = Callable[[], Any] | None


def as_weights(r: Any) -> Weights:
    """Class weights in one of the two accepted forms: `Labels`, or an array (n, K)."""
    if isinstance(r, Labels):
        return r
    if isinstance(r, tuple):
        return Labels(*r)
    r = np.asarray(r)
    return Labels(r) if r.ndim == 1 else r.astype(float, copy=False)


def class_count(r: Weights, n_classes: int) -> np.ndarray:
    """Weight of the rows of each class, shape (K,)."""
    if isinstance(r, Labels):
        return np.bincount(r.codes, r.weights, minlength=n_classes).astype(float)
    return r.sum(axis=0)


def class_sums(x: Any, r: Weights, n_classes: int) -> np.ndarray:
    """Weighted sums of the rows of each class, shape (K, d), of a dense or CSR matrix."""
    if isinstance(r, Labels):
        return _kernels.class_sums(x, r.codes, r.weights, n_classes)
    return np.asarray((x.T @ r).T)


def row_sums(table: Array) -> Array:
    """Sums over the last axis, pairwise in whatever order a NumPy array lies: many columns keep their digits."""
    return (np.ascontiguousarray(table) if namespace(table) is np else table).sum(-1)


def contract(x: Any, table: Array) -> Array:
    """Product x @ table.T for non-negative x (n, d), dense or sparse, and a table (K, d) that may hold -inf.

    0 * (-inf) counts as 0, and a positive entry against -inf gives -inf.
    """
    xp = namespace(x, table)
    zero = xp.isneginf(table)
    if xp is np and not zero.any():
        return _kernels.product(x, np.ascontiguousarray(table.T))
    finite = xp.where(zero, 0.0, table)
    impossible = zero.astype(finite.dtype)
    if xp is not np:
        return xp.where(x @ impossible.T > 0, -xp.inf, x @ finite.T)
    out = _kernels.product(x, np.ascontiguousarray(finite.T))
    out[_kernels.product(x, np.ascontiguousarray(impossible.T)) > 0] = -np.inf
    return out


def dense(x: Any) -> Array:
    """The matrix as a dense array."""
    return x.toarray() if sp.issparse(x) else x


def column_name(j: int, names: Names) -> str:
    """How a column is called in a message."""
    return f"column {j}" if names is None else f"column {str(names[j])!r}"


def refuse_columns(x: Any, bad: Any, message: str, names: Names = None) -> None:
    """Raise `ValueError` if ``bad(values)`` holds anywhere; {column} and {value} are filled in."""
    values = x.data if sp.issparse(x) else np.asarray(x)
    with np.errstate(invalid="ignore"):
        mask = bad(values)
    if not mask.any():
        return
    if sp.issparse(x):
        at = int(np.flatnonzero(mask)[0])
        j, value = int(x.indices[at]), values[at]
    else:
        i, j = np.argwhere(mask)[0]
        value = values[i, j]
    raise ValueError(message.format(column=column_name(int(j), names), value=value))


def split_missing(x: Any) -> tuple[Any, Any]:
    """Data with NaN replaced by 0, and the indicator of its NaN cells (None if there are none)."""
    if sp.issparse(x):
        nan = np.isnan(x.data)
        if not nan.any():
            return x, None
        make = type(x)
        filled = make((np.where(nan, 0.0, x.data), x.indices, x.indptr), shape=x.shape)
        return filled, make((nan.astype(float), x.indices, x.indptr), shape=x.shape)
    xp = namespace(x)
    nan = xp.isnan(x)
    if xp is np and not nan.any():
        return x, None
    return xp.where(nan, 0.0, x), nan.astype(float)


def static(*, default: Any) -> Any:
    """A dataclass field that belongs to the structure (shapes, levels), not to the hyperparameters."""
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static,))
def family(cls: type[C]) -> type[C]:
    """Register a frozen dataclass as a pytree; fields marked ``static()`` are its structure."""
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    _UNREGISTERED.append(cls)
    if "jax" in sys.modules:
        register()
    return cls


_UNREGISTERED: list[type] = []
_REGISTERING = threading.Lock()


def register() -> None:
    """Make the families pytrees of JAX, which is imported: where one is handed out, or goes into compiled code.

    Importing JAX takes half a second, which fitting and predicting with closed forms do not need.
    """
    import jax

    with _REGISTERING:
        while _UNREGISTERED:
            cls = _UNREGISTERED.pop()
            fields = dataclasses.fields(cls)
            jax.tree_util.register_dataclass(
                cls,
                data_fields=[f.name for f in fields if not f.metadata.get("static")],
                meta_fields=[f.name for f in fields if f.metadata.get("static")],
            )


class Family:
    """Base of all families; see the module docstring for the protocol.

    Parameters in formulas: n rows, d columns, K classes; ``x`` is data in the family's form, ``r`` class
    weights (`Labels`, or an array (n, K)), ``params`` the family's NamedTuple of parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families import Family, Labels, Poisson
    >>> isinstance(Poisson(), Family)
    True
    >>> x, r = np.array([[1.0], [3.0]]), Labels(np.array([0, 1]))
    >>> prior = Poisson(shape=1.0, rate=1.0).init(x, n_classes=2)
    >>> posterior = prior.condition(prior.stats(x, r))
    >>> posterior.mean().rate.ravel().tolist()
    [1.0, 2.0]
    """

    n_classes: int
    n_features: int

    def replace(self: F, **changes: Any) -> F:
        """A copy with some fields changed.

        Parameters
        ----------
        **changes : field values
            New values by the name of the field.

        Returns
        -------
        Family
            Of the same type.
        """
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def __getstate__(self) -> dict[str, Any]:
        # Cached scoring factors are recomputed, not stored.
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def init(self: F, x: Any, n_classes: int) -> F:
        """The family with its shapes taken from data; raises if x is outside the support.

        Parameters
        ----------
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        n_classes : int
            Number K of classes.

        Returns
        -------
        Family
            With `n_classes` and `n_features` set.
        """
        self.check(x)
        return self.replace(n_classes=n_classes, n_features=x.shape[1])

    def check(self, x: Any, names: Names = None) -> None:
        """Raise `ValueError`, naming the column, if x is outside the support.

        Parameters
        ----------
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        names : sequence of str, optional
            Column names for the message.
        """

    def learn(self: F, stats: Any) -> tuple[F, Any] | None:
        """The family with hyperparameters that maximise the evidence, where it asks for them, and what was learned.

        None where nothing is to be learned.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        """
        return None

    def resolve(self: F, stats: Any) -> F:
        """The family with hyperparameters that were None filled in from sufficient statistics.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.

        Returns
        -------
        Family
            Of the same type, without None.
        """
        return self

    def merge(self, a: Any, b: Any) -> Any:
        """Statistics of two data sets together.

        Parameters
        ----------
        a, b : NamedTuple
            Statistics of two sets of rows.

        Returns
        -------
        NamedTuple
            Of the same type.
        """
        return type(a)(*(p + q for p, q in zip(a, b, strict=True)))

    def remove(self, a: Any, b: Any) -> Any:
        """Statistics of a without the rows of b; counts are clamped at zero.

        Parameters
        ----------
        a : NamedTuple
            Statistics of all rows.
        b : NamedTuple
            Statistics of some of them.

        Returns
        -------
        NamedTuple
            Of the same type.
        """
        return type(a)(*(np.maximum(p - q, 0.0) for p, q in zip(a, b, strict=True)))

    def reclass(self, stats: Any, positions: np.ndarray, n_classes: int) -> Any:
        """The statistics with class k moved to ``positions[k]`` among `n_classes` classes.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        positions : int array (K,)
            New place of each class.
        n_classes : int
            Number K of classes.

        Returns
        -------
        NamedTuple
            Of the same type; zero for classes that are new.
        """
        return type(stats)(*(_move_classes(s, positions, n_classes) for s in stats))

    def relative_log_prob(self, params: Any, x: Any) -> np.ndarray:
        """`log_prob` up to a term of each row that all classes share: what class probabilities need, (n, K).

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.

        Returns
        -------
        ndarray (n, K)
            In nats; differences between classes are those of `log_prob`.
        """
        return self.log_prob(params, x)

    def draw_log_prob(self, params: Any, x: Any) -> np.ndarray:
        """`log_prob` for parameters with a leading axis of S draws: shape (S, n, K).

        Parameters
        ----------
        params : NamedTuple
            Parameters with an axis of S draws first, then that of classes.
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.

        Returns
        -------
        ndarray (S, n, K)
            In nats.
        """
        n_draws = len(params[0])
        return np.stack([self.log_prob(type(params)(*(p[s] for p in params)), x) for s in range(n_draws)])

    def logistic(self, params: Any) -> tuple[Array, Array]:
        """Weights (K, p) and intercepts (K,) of ln p(x | y = k, parameters), linear in (encoded) x.

        `ValueError` where it is not linear.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        """
        raise ValueError(f"the log odds of {type(self).__name__} are not linear in x")

    def pool_classes(self, stats: Any) -> Any:
        """The statistics of all classes together, as those of one class.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.

        Returns
        -------
        NamedTuple
            Of the same type, with a class axis of length one.
        """
        return type(stats)(*(s if np.ndim(s) == 0 else s.sum(axis=0, keepdims=True) for s in stats))

    def log_evidence_columns(self, stats: Any) -> Array:
        """Log of p(x_j | y) of each column alone, (d,), up to terms that no prior changes; or `ValueError`.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        """
        raise ValueError(f"{type(self).__name__} has no evidence of single columns")

    def tempered(self: F, power: float) -> F:
        """The distribution of the parameters with density proportional to this one's, to a power.

        Parameters
        ----------
        power : float
            The exponent, positive.
        """
        raise ValueError(f"{type(self).__name__} has no closed form of a power of its prior")

    def scale_stats(self, stats: Any, factor: float) -> Any:
        """The statistics of rows whose weights are all multiplied by a factor.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        factor : float
            What the weights are multiplied by.

        Returns
        -------
        NamedTuple
            Of the same type.
        """
        return type(stats)(*(factor * s for s in stats))

    def marginals(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Marginal distributions of the parameters, as frozen `scipy.stats` distributions, by name with their axes.

        Names and axes are those of `dims`; of a covariance, ``variance`` is its diagonal.
        """
        raise ValueError(f"{type(self).__name__} has no marginal distributions in closed form")

    def log_prob_moments(self, x: Any) -> tuple[Array, Array]:
        """Mean and variance of ln p(x | y = k, parameters) under this distribution of the parameters, (n, K) each.

        `ValueError` where there is no closed form.

        Parameters
        ----------
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        """
        raise ValueError(
            f"the log odds of {type(self).__name__} have no closed-form moments: use draws, those of sample_proba(X)"
        )

    def stats_shapes(self) -> Any:
        """Type and shapes of the statistics, as a NamedTuple of shapes; None: not checked."""
        return None

    def shifted(self: F, times: float = 1.0) -> F:
        """The prior under which the posterior mode is what the posterior mean is under this one, whatever the data.

        `times` scales the change of the hyperparameters, in which the log density is linear up to its constant.

        Parameters
        ----------
        times : float, default=1.0
            Scale of the change.
        """
        raise ValueError(
            f"{type(self).__name__} does not say under which prior its posterior mean would be a mode: "
            "use inference='map'"
        )

    def unbounded(self, stats: Any, flat: bool = False) -> Problem | None:
        """Why prior times likelihood of the labelled statistics cannot keep a mixture density bounded; None if it can.

        With `flat` the likelihood is alone.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        flat : bool, default=False
            Whether the likelihood is alone, without the prior.
        """
        return None

    def undefined(self, params: Any, stats: Any, needed: np.ndarray) -> Problem | None:
        """Why plug-in parameters cannot score a row, for the needed classes (K,); None if they can.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        needed : bool array (K,)
            Classes that will be asked for.
        """
        return None

    def improper(self, needed: np.ndarray, strict: bool = False) -> Problem | None:
        """Why this prior or posterior has no predictive (strict: is no proper distribution); None if it has.

        Parameters
        ----------
        needed : bool array (K,)
            Classes that will be asked for.
        strict : bool, default=False
            Whether draws are wanted, for which the distribution must be proper.
        """
        return None

    def has_factor(self) -> bool:
        """Whether the matrices of the distribution can be factored in floating point.

        Returns
        -------
        bool
            False where a Cholesky factorisation fails.
        """
        return True

    # ---- sampling

    def variables(self, params: Any) -> dict[str, Array]:
        """The parameters on their natural scales, by the names of the program's sites; leading axes are kept.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.

        Returns
        -------
        dict of str to array
            By the name of the site.
        """
        return dict(params._asdict())

    def from_variables(self, values: dict[str, Array]) -> Any:
        """The parameters from values of `variables`.

        Parameters
        ----------
        values : dict of str to array
            As `variables` makes them.

        Returns
        -------
        NamedTuple
            Parameters of the family.
        """
        return type(self.mean())(**values)

    def dims(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes of each of the `variables`, after those of draws.

        Returns
        -------
        dict of str to tuple of str
            Such as ``{"mean": ("class", "feature")}``.
        """
        return dict.fromkeys(self.variables(self.mean()), ("class", "feature"))

    def weak(self) -> Any:
        """A conjugate prior with less to say than this one: what importance sampling proposes from when this pulls.

        Returns
        -------
        Family
            Of the same type.
        """
        return self

    def factored(self, params: Any) -> Any:
        """The parameters (with a leading axis of draws) with what a density of them would have to factor.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.

        Returns
        -------
        NamedTuple
            The same parameters, with more fields filled in.
        """
        return params

    def compress(self, stats: Any, given: Family) -> Any:
        """What `log_evidence` of a family like `given` needs of the statistics: they, or something smaller.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        given : Family
            A family at some value of its hyperparameters.

        Returns
        -------
        NamedTuple
            For `log_evidence` alone.
        """
        return stats

    def chart(self) -> Any:
        """Coordinates in which this posterior is nearly standard normal, for NUTS; None: there are none.

        A chart is a pytree of arrays with ``shapes``, the shape of each block of coordinates by name, and
        ``params(u)``, the parameters at coordinates u and the log determinant of their Jacobian, up to a
        constant.
        """
        return None

    # The rest of the protocol. Each family documents what differs.

    def stats(self, x: Any, r: Any) -> Any:
        """Sufficient statistics of rows with class weights r.

        Parameters
        ----------
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        r : Labels or array (n, K)
            Class weights of the rows.
        """
        raise NotImplementedError

    def mle(self, stats: Any) -> Any:
        """Maximum-likelihood parameters; NaN where they do not exist.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        """
        raise NotImplementedError

    def prior(self) -> Any:
        """NumPyro sites for the parameters; returns them."""
        raise NotImplementedError

    def observe(self, params: Any, y: Any, x: Any = None, lengths: Any = None) -> Any:
        """NumPyro site ``x`` given classes y, inside a plate over rows; draws x if it is None.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        y : int array (n,)
            Class codes.
        x : array (n, d), optional
            Rows; None: drawn.
        lengths : int array (n,), optional
            Lengths of documents to draw.
        """
        raise NotImplementedError

    def log_prob(self, params: Any, x: Any) -> Array:
        """Log of p(x | y = k, parameters), shape (n, K); missing cells are integrated out.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        """
        raise NotImplementedError

    def log_likelihood(self, params: Any, stats: Any) -> Array:
        """Sum of w ln p(x | y, parameters) from the statistics, without terms free of parameters.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        """
        raise NotImplementedError

    def log_density(self, params: Any) -> Array:
        """Log density of parameters under this prior (or posterior), in the stated parameters.

        Parameters
        ----------
        params : NamedTuple
            Parameters of the family, class axis first.
        """
        raise NotImplementedError

    def condition(self: F, stats: Any) -> F:
        """The posterior after seeing statistics: the same type.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        """
        raise NotImplementedError

    def mean(self) -> Any:
        """Mean of the parameters."""
        raise NotImplementedError

    def mode(self) -> Any:
        """Joint mode of the parameters (with respect to Lebesgue measure in the stated parameters)."""
        raise NotImplementedError

    def log_predictive(self, x: Any) -> Array:
        """Log of E[p(x | y = k, parameters)], shape (n, K): parameters integrated out.

        Parameters
        ----------
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        """
        raise NotImplementedError

    def log_evidence(self, stats: Any) -> Array:
        """Log of p(X | y): the marginal likelihood of the statistics under this prior.

        Parameters
        ----------
        stats : NamedTuple
            Sufficient statistics, class axis first, as `stats` makes them.
        """
        raise NotImplementedError

    def log_loo(self, x: Any, y: Any, stats: Any, elsewhere: Elsewhere = None) -> np.ndarray:
        """Log of p(x_i | y = k, all rows but i), shape (n, K), by downdating; NaN where it does not exist.

        The rows x are all of those in the statistics, or some; `elsewhere` is a function that gives the statistics of
        the others. It is called only where a downdate has lost its digits, so that the rest must be summed up anew.

        Parameters
        ----------
        x : array (n, d)
            Rows in the family's form; NaN (codes: -1) is a missing cell.
        y : Labels
            Class and weight of each row.
        stats : NamedTuple
            Sufficient statistics of all rows, class axis first, as `stats` makes them.
        elsewhere : callable, optional
            Gives the statistics of rows that are not among x.
        """
        raise NotImplementedError

    def draw(self, key: Any, n: int) -> Any:
        """Independent draws of the parameters, n of them along a leading axis.

        Parameters
        ----------
        key : JAX key or NumPy Generator
            Source of randomness.
        n : int
            Number of draws.
        """
        raise NotImplementedError

    def sample(self, params: Any, y: np.ndarray, key: Any, lengths: Any = None) -> Any:
        """Rows x given classes y (n,): from the parameters, or from the predictive if they are None.

        Parameters
        ----------
        params : NamedTuple or None
            Parameters; None: integrated out.
        y : int array (n,)
            Class codes.
        key : JAX key or NumPy Generator
            Source of randomness.
        lengths : int array (n,), optional
            Lengths of documents.
        """
        raise NotImplementedError


def _move_classes(s: Any, positions: np.ndarray, n_classes: int) -> Any:
    if np.ndim(s) == 0:
        return s
    out = np.zeros((n_classes, *np.shape(s)[1:]))
    out[positions] = s
    return out


def parts_of(elsewhere: Elsewhere, n: int) -> list[Elsewhere]:
    """The statistics of each of n blocks of columns, of rows elsewhere; see `Family.log_loo`."""
    if elsewhere is None:
        return [None] * n
    return [lambda i=i: elsewhere()[i] for i in range(n)]  # type: ignore[misc]


def own_class(r: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n,) and weights (n,) of rows for leave-one-out."""
    r = as_weights(r)
    if not isinstance(r, Labels):
        raise ValueError("leave-one-out needs one class per row: pass class codes, not soft class weights")
    return r.codes, np.ones(len(r.codes)) if r.weights is None else r.weights
