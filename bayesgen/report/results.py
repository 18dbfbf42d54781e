"""The numbers of a report: models compared, columns ranked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bayesgen import MixedNB, MultinomialNB, feature_relevance
from bayesgen._report import Progress
from bayesgen.comparison import compare, held_out, make_splits
from bayesgen.report.models import Candidate, blocks
from bayesgen.report.table import SEED, ReportError, Table

__all__ = ["Results", "analyse", "columns_frame"]

FOLDS = 5


@dataclass(frozen=True)
class Results:
    """All numbers of a report.

    Attributes
    ----------
    table : Table
    candidates : dict of Candidate
    comparison : pandas DataFrame
        See `bayesgen.compare`; sorted by log loss, with the differences in log loss to the first.
    relevance : pandas DataFrame
        Column (or word), kind, log Bayes factor and probability, the most relevant first; its index is the column of X.
    held_out : HeldOut
        Predictions of the first model for rows it had not seen.
    folds : int
    left_out : dict of str
        Models that cannot be fitted to these rows, and why.
    warnings : list of str
        What the library warned of.
    """

    table: Table
    candidates: dict[str, Candidate]
    comparison: Any
    relevance: Any
    held_out: Any
    folds: int
    left_out: dict[str, str]
    warnings: list[str]

    @property
    def best(self) -> str:
        """Name of the model with the least log loss."""
        return str(self.comparison.index[0])


def analyse(table: Table, candidates: dict[str, Candidate], progress: Progress) -> Results:
    """Compare the models of a table, and rank its columns."""
    estimators = {name: c.estimator for name, c in candidates.items()}
    folds = int(min(FOLDS, np.unique(table.y, return_counts=True)[1].max()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A class with fewer rows than folds is in the training part of each all the same: it has two rows or more.
        warnings.filterwarnings("ignore", "The least populated class in y has only")
        splits = make_splits(table.X, table.y, StratifiedKFold(folds, shuffle=True, random_state=SEED), None)
        held, left_out = {}, {}
        for name, estimator in estimators.items():
            progress.step(f"cross-validation: {name}")
            try:
                held[name] = held_out(name, estimator, splits or [], None)
            except ValueError as error:  # very few rows, of which some models cannot learn
                left_out[name] = str(error.__cause__ or error)
        if not held:
            raise ReportError(f"none of the models can be fitted: {'; '.join(left_out.values())}")
        progress.step("evidence and leave-one-out")
        comparison = compare({name: estimators[name] for name in held}, table.X, table.y)
        progress.step("relevance of the columns")
        relevance = rank_columns(table)
    comparison = _with_held_out(comparison, held)
    said = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    return Results(table, candidates, comparison, relevance, held[comparison.index[0]], folds, left_out, said)


def _with_held_out(comparison: Any, held: dict[str, Any]) -> Any:
    """The comparison with held-out scores and differences in log loss, sorted by log loss."""
    import pandas as pd

    scores = pd.DataFrame.from_dict({name: h.scores() for name, h in held.items()}, orient="index")
    best = scores["log_loss"].idxmin()
    for name, h in held.items():
        gap = _losses(h) - _losses(held[best])
        scores.loc[name, "log_loss_difference"] = gap.mean()
        scores.loc[name, "se_log_loss_difference"] = gap.std(ddof=1) / np.sqrt(len(gap))
    seconds = comparison["seconds"]
    out = comparison.drop(columns="seconds").join(scores).assign(seconds=seconds)
    out.attrs = {}
    return out.sort_values("log_loss", kind="stable")


def _losses(held: Any) -> np.ndarray:
    return -held.log_proba[np.arange(len(held.codes)), held.codes]


def rank_columns(table: Table) -> Any:
    """Columns and words by their exact log Bayes factor, under naive Bayes with the default priors."""
    import pandas as pd

    words = MultinomialNB() if table.words else None
    found = feature_relevance(MixedNB(blocks=blocks(table, words=words)), table.X, table.y)
    columns = {
        "column": table.names,
        "kind": table.kinds,
        "log_bayes_factor": found.log_bayes_factor,
        "probability": found.probability,
    }
    return pd.DataFrame(columns).sort_values("log_bayes_factor", ascending=False, kind="stable")


def columns_frame(table: Table) -> Any:
    """What was decided about the columns, as a pandas data frame."""
    import pandas as pd

    rows = [(c.name, c.kind or "left out", c.reason, c.missing, c.distinct) for c in table.columns]
    return pd.DataFrame(rows, columns=["column", "kind", "reason", "missing", "distinct"])
