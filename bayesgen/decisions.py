r"""Decisions under costs, and the option not to decide.

Given the probabilities of the classes, the best decision is the one whose expected cost is least,

.. math:: a(x) = \arg\min_a \sum_k p(y{=}k \mid x)\, C_{ka},

where :math:`C_{ka}` is what decision a costs when the class is k. With cost 1 for every wrong class it is the most
probable class. To reject, at a cost c whatever the class, is one more decision: with 0-1 costs it is best where the
largest probability is below 1 - c.

References: Chow 1970, *On optimum recognition error and reject tradeoff*; Berger 1985, *Statistical decision theory and
Bayesian analysis*, section 4.4; Bishop 2006, section 1.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from bayesgen._kernels import row_blocks
from bayesgen._values import check_count, python_values

__all__ = ["decide", "expected_cost", "probability_best"]

DRAW_CELLS = 1 << 24  # probabilities of draws held at once


def aligned(cost: Any, classes: Any) -> Any:
    """The costs in a data frame in the order of the classes; None: of its sorted labels. Others as they are."""
    if not hasattr(cost, "index") or not hasattr(cost, "columns"):
        return cost
    rows, columns = (python_values(labels) for labels in (cost.index, cost.columns))
    if rows == list(range(len(rows))) and columns == list(range(len(columns))):  # or the frame has no labels
        return cost.to_numpy()
    labels = python_values(np.unique(rows) if classes is None else classes)
    extra = [label for label in columns if label not in labels]
    own = len(rows) == len(labels) and all(k in rows and k in columns for k in labels)
    if not own or len(columns) != len(labels) + len(extra) or len(extra) > 1:
        raise ValueError(
            f"cost is a data frame, whose rows and columns must be the classes {labels} (and one more column, for "
            f"rejecting); the rows are {rows}, the columns {columns}. Or give an array, in the order of classes_"
        )
    return cost.to_numpy()[np.ix_([rows.index(k) for k in labels], [columns.index(k) for k in [*labels, *extra]])]


def cost_matrix(n_classes: int, cost: Any = None, reject_cost: Any = None, classes: Any = None) -> np.ndarray:
    """The checked costs (K, A): a row for each class, a column for each decision; the K-th, if there, rejects."""
    cost = aligned(cost, classes)
    try:
        out = 1.0 - np.eye(n_classes) if cost is None else np.asarray(cost)
    except ValueError:  # rows of different lengths
        out = np.array(None)
    shapes = (n_classes, n_classes), (n_classes, n_classes + 1)
    numbers = out.dtype.kind in "biuf"
    if out.shape not in shapes or not numbers or not np.isfinite(out).all():
        raise ValueError(
            f"cost must be a matrix of finite numbers of shape {shapes[0]}, a row for each true class and a column for "
            f"each decision, both in the order of classes_, or {shapes[1]} with what rejecting costs in the last "
            f"column; got {f'shape {out.shape}' if numbers and out.shape not in shapes else repr(cost)}"
        )
    out = out.astype(float)
    if reject_cost is None:
        return out
    if out.shape[1] > n_classes:
        raise ValueError("cost has a column for rejecting already; do not pass reject_cost as well")
    column = np.asarray(reject_cost)
    if column.shape not in ((), (n_classes,)) or column.dtype.kind not in "biuf" or not np.isfinite(column).all():
        raise ValueError(
            f"reject_cost must be a number, or one for each of the {n_classes} classes; got {reject_cost!r}"
        )
    return np.column_stack([out, np.broadcast_to(column, n_classes)])


def expected_cost(proba: Any, cost: Any = None, *, reject_cost: Any = None) -> np.ndarray:
    """Expected cost of each decision for each row.

    Parameters
    ----------
    proba : array (n, K)
        Class probabilities, such as ``estimator.predict_proba(X)``.
    cost : array (K, K) or (K, K + 1), optional
        What each decision (column) costs for each true class (row), in the order of ``classes_``; a last column is
        what rejecting costs. In a data frame whose rows and columns are the class labels these may come in any order
        (here the classes are taken to be sorted, as ``classes_`` is). Default: 1 for every wrong class.
    reject_cost : float or array (K,), optional
        Adds the option to reject, at this cost.

    Returns
    -------
    ndarray (n, K) or (n, K + 1)

    Examples
    --------
    >>> from bayesgen import expected_cost
    >>> expected_cost([[0.9, 0.1]], [[0, 1], [20, 0]], reject_cost=0.5).round(2).tolist()
    [[2.0, 0.9, 0.5]]
    """
    try:
        proba = np.asarray(proba, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"proba must be an array of numbers (rows, classes); got {proba!r:.100}") from None
    if proba.ndim != 2:
        raise ValueError(f"proba must be an array (rows, classes); got shape {proba.shape}")
    return proba @ cost_matrix(proba.shape[1], cost, reject_cost)


def _best(proba: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Positions of the least expected costs; the first where several are least."""
    n_classes = len(costs)
    undefined = np.isnan(proba).any(axis=-1)
    if undefined.any() and costs.shape[1] == n_classes:
        raise ValueError(
            f"row {int(np.argwhere(undefined)[0][-1])} has probability zero in every class, so that no decision is "
            "best; allow rejecting (reject_cost=), or smooth (inference='exact' with alpha > 0)"
        )
    return np.where(undefined, costs.shape[1] - 1, (np.where(undefined[..., None], 0.0, proba) @ costs).argmin(axis=-1))


def decide(
    estimator: Any,
    X: Any,
    cost: Any = None,
    *,
    reject_cost: Any = None,
    reject_label: Any = None,
    class_prior: Any = None,
) -> np.ndarray:
    """The decision of least expected cost for each row.

    Parameters
    ----------
    estimator : fitted classifier
        Of this library, or any with ``predict_proba`` and ``classes_``.
    X : array, sparse matrix or data frame, (n_samples, n_features)
    cost, reject_cost : see `expected_cost`
    reject_label : optional
        What stands for a rejected row; default: ``"reject"`` beside texts, -1 beside numbers. A row that no class can
        generate is rejected.
    class_prior : array (n_classes,), optional
        Class probabilities to use in place of the learned ones, where costs apply to another population.

    Returns
    -------
    ndarray (n_samples,)
        Class labels, and the label for rejected rows.

    Notes
    -----
    The probabilities of the default route have the parameters integrated out, so that what is minimal is the cost
    expected under everything that is not known, the parameters included.

    Examples
    --------
    >>> from bayesgen import BernoulliNB, decide
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["ham", "ham", "spam", "spam"]
    >>> model = BernoulliNB().fit(X, y)
    >>> decide(model, [[1, 0], [0, 1], [1, 1]], reject_cost=0.2).tolist()
    ['ham', 'spam', 'reject']
    >>> lost_mail = [[0, 20], [1, 0]]  # of class ham: 20 if it is filed as spam
    >>> decide(model, [[1, 0], [0, 1], [1, 1]], lost_mail).tolist()
    ['ham', 'ham', 'ham']
    """
    classes = _classes(estimator)
    costs = cost_matrix(len(classes), cost, reject_cost, classes)
    labels = classes
    if costs.shape[1] > len(classes):
        labels = _with_reject(classes, reject_label)
    elif reject_label is not None:
        raise ValueError("reject_label is given, but nothing says what rejecting costs: pass reject_cost=")
    return labels[_best(_proba(estimator, X, class_prior), costs)]


def _classes(estimator: Any) -> np.ndarray:
    """Class labels of a fitted classifier."""
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise ValueError(f"estimator must be a fitted classifier with predict_proba; got {estimator!r:.100}")
    if not hasattr(estimator, "classes_"):
        raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet: call fit")
    return np.asarray(estimator.classes_)


def _with_reject(classes: np.ndarray, label: Any) -> np.ndarray:
    """Labels of all decisions."""
    if label is None:
        label = "reject" if classes.dtype.kind in "US" else -1
    own = python_values(classes)
    if np.ndim(label) != 0:
        raise ValueError(f"reject_label must be one label; got {label!r:.100}")
    if label in own:
        raise ValueError(f"reject_label={label!r} is one of the classes {own}; choose another")
    if isinstance(label, str) == (classes.dtype.kind == "U") and classes.dtype.kind not in "bmM":
        return np.array([*own, label])
    out = np.empty(len(classes) + 1, dtype=object)
    out[:] = [*own, label]
    return out


def _proba(estimator: Any, X: Any, class_prior: Any) -> np.ndarray:
    return np.asarray(estimator.predict_proba(X) if class_prior is None else estimator.predict_proba(X, class_prior))


def probability_best(
    estimator: Any,
    X: Any,
    cost: Any = None,
    *,
    reject_cost: Any = None,
    n_draws: int = 1000,
    random_state: Any = None,
) -> np.ndarray:
    r"""Posterior probability that each decision would be the best one, if the parameters were known.

    Where it is near one, more training rows would not change the decision.

    Parameters
    ----------
    estimator : fitted classifier of this library, with a posterior
    X : array, sparse matrix or data frame, (n_samples, n_features)
    cost, reject_cost : see `expected_cost`
    n_draws : int
        Posterior draws; a probability p has Monte Carlo standard error :math:`\sqrt{p(1-p)/n_{draws}}`.
    random_state : int, Generator, RandomState or None
        None: the estimator's own.

    Returns
    -------
    ndarray (n_samples, K) or (n_samples, K + 1)
        A column for each decision; rows sum to 1.

    Examples
    --------
    >>> from bayesgen import PoissonNB, probability_best
    >>> model = PoissonNB(random_state=0).fit([[0], [1], [5], [4]], [0, 0, 1, 1])
    >>> probability_best(model, [[0], [3]]).round(1).tolist()
    [[1.0, 0.0], [0.1, 0.9]]
    """
    from bayesgen.estimators._shell import Shell

    n_draws = check_count("n_draws", n_draws)
    if not isinstance(estimator, Shell):
        raise ValueError(
            f"estimator must be a fitted classifier of this library, which has posterior draws; got {estimator!r:.100}"
        )
    classes = estimator.classes_
    n_classes = len(classes)
    costs = cost_matrix(n_classes, cost, reject_cost, classes)
    fit, x = estimator._fit_value, estimator._rows(X)
    n = x[0].shape[0] if isinstance(x, tuple) else x.shape[0]
    from bayesgen._random import generator
    from bayesgen.estimators._prediction import normalise

    seed = generator(estimator._seed(random_state)).integers(0, 2**32, size=4, dtype=np.uint32)
    out = np.zeros((n, costs.shape[1]))
    for block in row_blocks(n, n_draws * n_classes, DRAW_CELLS):
        part = tuple(p[block] for p in x) if isinstance(x, tuple) else x[block]
        for scores in fit.draw_log_scores(part, n_draws, np.random.default_rng(seed)):
            best = _best(np.exp(normalise(scores)), costs)
            for a in range(costs.shape[1]):
                out[block, a] += (best == a).sum(axis=0)
    return out / n_draws
