"""Explanations of an estimator's predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen._random import generator
from bayesgen.estimators._options import check_count
from bayesgen.estimators._shell import Shell
from bayesgen.explain import Explanation, Part
from bayesgen.fit import MixedFit

__all__ = ["Explaining"]


class Explaining(Shell):
    """Which columns made a prediction."""

    def explain(self, X: Any, class_prior: Any = None, *, n_draws: int = 400, random_state: Any = None) -> Explanation:
        r"""Which columns of each row speak for which class, and how sure that is.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        class_prior : array (n_classes,), optional
            Class probabilities to use in place of the learned ones.
        n_draws : int
            Posterior draws for the standard deviations of models without a closed form of them (a full covariance,
            sampled routes); their relative Monte Carlo error is :math:`1/\sqrt{2\,n_{draws}}`, 4 % at 400.
        random_state : int, Generator, RandomState or None
            For these draws; None: the estimator's own.

        Returns
        -------
        Explanation
            ``contributions`` (n_samples, n_features, n_classes) and ``prior`` (n_classes,), whose sum is
            ``predict_joint_log_proba`` up to a constant of the row (times the likelihood power, if there is one);
            ``sd`` of the contributions; ``table(row)``, ``log_odds(row)``.

        Examples
        --------
        >>> from bayesgen import MultinomialNB
        >>> model = MultinomialNB().fit([[3, 1], [1, 3]], ["ham", "spam"])
        >>> explanation = model.explain([[2, 0]])
        >>> explanation.contributions.round(2).tolist()
        [[[-0.74, -1.95], [0.0, 0.0]]]
        >>> round(explanation.log_odds(0, "ham").total, 2)
        1.2
        """
        n_draws = check_count("n_draws", n_draws)
        learned = self._state()
        fit = learned.fit
        log_class = self._log_class(class_prior)
        log_class = fit.log_class if log_class is None else log_class
        x = self._rows(X)
        fit.check_predictive(log_class)
        if isinstance(fit.features, MixedFit):
            blocks = learned.columns.blocks or ()
            found = zip(fit.features.parts, x, blocks, strict=True)
            parts = tuple(Part(part, rows, index) for part, rows, (_, index, _) in found)
            n_rows = x[0].shape[0]
        else:
            parts = (Part(fit.features, x, np.arange(learned.columns.n_features)),)
            n_rows = x.shape[0]
        seed = generator(self._seed(random_state)).integers(0, 2**32, size=4, dtype=np.uint32)

        return Explanation(fit, learned.columns, parts, log_class, np.arange(n_rows), n_draws, seed)
