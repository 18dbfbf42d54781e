"""Checks of constructor options that several estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen._values import check_count as check_count
from bayesgen.learning import Evidence
from bayesgen.own_priors import FunctionPrior, OwnPrior, is_distribution

DROP_NAN = "Use missing='marginalize' to leave missing cells out, or drop the rows"


LARGEST_ALPHA = 1e100  # larger concentrations leave no room for counts in float64


def concentration(alpha: Any) -> Any:
    """A checked concentration: a number or an array of non-negative numbers."""
    if is_distribution(alpha):
        return alpha
    if callable(alpha) or isinstance(alpha, OwnPrior):
        return 1.0  # what the prior's program fills in
    if isinstance(alpha, Evidence) or (isinstance(alpha, str) and alpha == "evidence"):
        return alpha if isinstance(alpha, Evidence) else Evidence()
    if isinstance(alpha, str):
        raise ValueError(f"alpha must be a non-negative number or array, or 'evidence'; got {alpha!r}")
    out = np.asarray(alpha)
    if out.dtype.kind not in "iuf" or not out.size or not ((out >= 0) & (out <= LARGEST_ALPHA)).all():
        raise ValueError(f"alpha must be a non-negative number or array, at most {LARGEST_ALPHA:g}; got {alpha!r}")
    return out.astype(float)


def own_prior(value: Any) -> Any:
    """A prior without a closed form, if the value is one: one of ours, or a function that declares NumPyro sites."""
    if isinstance(value, OwnPrior):
        return value
    is_function = callable(value) and not isinstance(value, type) and not is_distribution(value)
    return FunctionPrior(value) if is_function else None


def check_missing(missing: str) -> None:
    """The two policies for missing cells."""
    check_choice("missing", missing, ("marginalize", "error"))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless a constructor argument is one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_unlabelled(unlabelled: Any, weight: Any, n_init: Any) -> None:
    """The options of learning from rows without a label."""
    if unlabelled is not None and not (isinstance(unlabelled, str) and unlabelled == "em"):
        raise ValueError(f"unlabelled must be None or 'em' (also with inference='nuts'); got {unlabelled!r}")
    number = isinstance(weight, (int, float, np.integer, np.floating)) and not isinstance(weight, bool)
    if not (number and 0 <= weight < np.inf):
        raise ValueError(f"unlabelled_weight must be a non-negative number; got {weight!r}")
    check_count("n_init", n_init)
