"""Checks of a fit that was read from a file."""

from __future__ import annotations

import dataclasses
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from bayesgen.class_prior import ClassPrior
from bayesgen.estimators._labels import check_class_prior
from bayesgen.estimators._shell import Learned
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import Family
from bayesgen.fit import ROUTES, SAMPLED, FeatureFit, Fit, MixedFit
from bayesgen.incomplete import IncompleteFit
from bayesgen.learning import Evidence
from bayesgen.mixture import _ClassDraws
from bayesgen.sampled import SampledClasses, SampledFeatures
from bayesgen.statistics_checks import check_columns

__all__ = ["check_learned"]


def check_learned(learned: Any) -> None:
    """Raise `ValueError` unless a restored value is what an estimator can have learned."""
    _need(isinstance(learned, Learned), "what was learned is not there")
    fit, columns = learned.fit, learned.columns
    check_columns(columns, "columns")
    _need(isinstance(fit, Fit), "the fit is not there")
    k = len(fit.classes)
    _need(isinstance(fit.route, str) and fit.route in ROUTES, f"the unknown route {fit.route!r:.100}")
    power = fit.power
    _need(isinstance(power, (int, float)) and 0 <= power < np.inf, f"the likelihood power {power!r:.100}")
    _need(fit.names is None or np.shape(fit.names) == (columns.n_features,), "names that are not of the columns")
    sampled = fit.sampled_classes
    _need(
        sampled is None or isinstance(sampled, (SampledClasses, _ClassDraws)),
        "draws of class probabilities are not there",
    )
    _check_class_prior(fit.class_prior, k)
    mixed = isinstance(fit.features, MixedFit)
    parts = fit.features.parts if mixed else (fit.features,)
    blocks = [own for _, _, own in columns.blocks or ()] if mixed else [columns]
    _need(isinstance(parts, tuple) and len(parts) == len(blocks), "the blocks do not belong to the columns")
    _need(not mixed or len(fit.block_names) == len(blocks), "the names do not belong to the columns")
    for part, own in zip(parts, blocks, strict=True):
        _need(isinstance(part, (FeatureFit, SampledFeatures)), "a fit of the columns is not there")
        _need(isinstance(part.route, str) and part.route in ROUTES + SAMPLED, f"the unknown route {part.route!r:.100}")
        stated = part.stated
        _need(isinstance(stated, Family), "a prior is not there")
        _need((stated.n_classes, stated.n_features) == (k, own.n_features), "a prior of other classes or columns")
        _need(_finite(stated), "a hyperparameter that is NaN or infinite")
    if all(_quick(part) for part in parts):
        with warnings.catch_warnings(), suppress(UndefinedNumberError):  # it may not have learned enough yet
            warnings.simplefilter("ignore")
            fit.check_predictive()


def _need(fulfilled: bool, message: str) -> None:
    if not fulfilled:
        raise ValueError(message)


def _check_class_prior(prior: Any, k: int) -> None:
    _need(isinstance(prior, ClassPrior) and prior.n_classes == k, "the prior of the classes is not theirs")
    if prior.fixed is not None:
        check_class_prior(prior.fixed, k)
    alpha = np.asarray(prior.alpha, dtype=float)
    _need(alpha.shape in ((), (k,)) and bool((np.isfinite(alpha) & (alpha >= 0)).all()), "class_alpha is not a number")


def _finite(value: Any) -> bool:
    """Whether all floats in a family are finite."""
    if isinstance(value, Family):
        return all(_finite(getattr(value, f.name)) for f in dataclasses.fields(value))  # type: ignore[arg-type]
    if isinstance(value, (tuple, list)):
        return all(_finite(v) for v in value)
    numbers = isinstance(value, (float, np.ndarray, np.floating)) and np.asarray(value).dtype.kind == "f"
    return not numbers or bool(np.isfinite(value).all())


def _quick(part: Any) -> bool:
    """Whether a trial needs neither draws nor the maximum of an evidence."""
    if type(part) not in (FeatureFit, IncompleteFit):
        return False
    asks = any(isinstance(getattr(part.stated, f.name), Evidence) for f in dataclasses.fields(part.stated))
    return not asks or "_learned" in vars(part)
