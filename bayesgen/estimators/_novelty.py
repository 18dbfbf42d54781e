"""How unusual rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen.estimators._options import check_count
from bayesgen.estimators._shell import Shell

__all__ = ["Novelty"]


class Novelty(Shell):
    """P-values of rows under the fitted model."""

    def score_p_value(
        self, X: Any, *, within_class: bool = False, n_samples: int = 1000, random_state: Any = None
    ) -> np.ndarray:
        r"""Probability, under the model, of a row at most as probable as the given one.

        A small value says that the row is unlike what the model knows: no class explains it, whatever
        ``predict_proba`` says. For rows of the model itself it is uniform on (0, 1] (of discrete rows: not smaller than
        uniform), so that a threshold is a rate of false alarms.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Rows are compared with simulated rows that lack the same cells, documents (as count vectors, whatever
            ``multinomial_coefficient`` says) with documents of the same length.
        within_class : bool, default=False
            Under p(x | y = k) of each class instead of p(x): all small where the row is of none of the classes.
        n_samples : int
            Rows simulated for each pattern of missing cells, and each length. A p-value is (1 + number of them at
            most as probable) / (n_samples + 1): never 0, with Monte Carlo standard error
            :math:`\sqrt{p(1-p)/n_{samples}}`.
        random_state : int, Generator, RandomState or None
            None: the estimator's own.

        Returns
        -------
        ndarray (n_samples,), or (n_samples, n_classes)

        Notes
        -----
        Of `GaussianDiscriminantAnalysis` within a class the p-value is in closed form: the tail of a
        :math:`\chi^2` distribution of the squared Mahalanobis distance, or under the default route of an F.

        Examples
        --------
        >>> from bayesgen import GaussianDiscriminantAnalysis
        >>> X = [[0, 0], [2, 1], [1, 2], [5, 4], [6, 6], [7, 5]]
        >>> model = GaussianDiscriminantAnalysis(random_state=0).fit(X, [0, 0, 0, 1, 1, 1])
        >>> model.score_p_value([[1, 1], [6, 5], [20, -20]], within_class=True).round(3).tolist()
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
        """
        from bayesgen.novelty import p_values

        n_samples = check_count("n_samples", n_samples)
        if not isinstance(within_class, (bool, np.bool_)):
            raise ValueError(f"within_class must be True or False; got {within_class!r}")
        fit = self._fit_value
        return p_values(fit, self._rows(X), n_samples, self._seed(random_state), bool(within_class))
