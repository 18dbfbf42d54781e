"""The generative program of an estimator, and its logistic form."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesgen.estimators import _labels
from bayesgen.estimators._options import check_count
from bayesgen.estimators._shell import Shell
from bayesgen.estimators._unlabelled import encode_rows, take
from bayesgen.exceptions import UndefinedNumberError
from bayesgen.families.base import dense
from bayesgen.fit import SAMPLED
from bayesgen.statistics import Columns

__all__ = ["Program"]


class Program(Shell):
    """The model as a NumPyro program, and as a logistic regression."""

    def _program_data(self, X: Any, columns: Columns) -> Any:
        """X as arrays for the NumPyro program."""
        import jax.numpy as jnp

        x = self._encode(self._read(X, columns)[0], columns)
        return tuple(jnp.asarray(dense(p)) for p in x) if isinstance(x, tuple) else jnp.asarray(dense(x))

    def model(self, X: Any = None, y: Any = None, n_rows: int | None = None, lengths: Any = None) -> tuple[Any, Any]:
        """The generative program of this estimator, for NumPyro's handlers and inference.

        Sites: ``class_prob``, the parameters, and in the plate ``row`` the labels ``y`` and the rows ``x``.

        Parameters
        ----------
        X : array or data frame, or None to draw rows
        y : labels as in `fit`, or None to draw them
            With ``unlabelled="em"``, rows without a label enter with it summed out, as the factor ``x_unlabelled``.
        n_rows : int, optional
            Number of rows to draw when neither X nor y says it (default 1).
        lengths : int or array (n_rows,), optional
            Lengths of the documents to draw; default: the mean length seen.

        Returns
        -------
        x, y : the data in the family's form, and class codes.

        Notes
        -----
        It runs at the caller's precision: ``with jax.enable_x64(True)`` gives the library's own. Hyperparameters
        are those of the fit; an estimator that is not fitted takes them from X and y.
        """
        import jax

        if "_learned" in self.__dict__:
            learned = self._state()
        elif X is not None and y is not None:
            learned = self._learn(X, y, None, None, None)
        else:
            learned = self._state()
        fit = learned.fit
        x = X
        if X is not None and not isinstance(X, jax.core.Tracer):
            x = self._program_data(X, learned.columns)
        known = None
        if y is not None and not isinstance(y, jax.core.Tracer):
            y, known = _labels.split_labels(y, self.unlabelled is not None)
            y = encode_rows(y, known, fit.classes)
        sizes = {p.shape[0] for p in (x if isinstance(x, tuple) else (x,)) if p is not None}
        sizes |= set() if y is None else {y.shape[0]}
        sizes |= set() if n_rows is None else {check_count("n_rows", n_rows)}
        if len(sizes) > 1:
            raise ValueError(f"X, y and n_rows disagree about the number of rows: {sorted(sizes)}")
        n_rows = sizes.pop() if sizes else 1
        if x is None:
            lengths = self._lengths(lengths, n_rows, fit)
        from bayesgen.joint import program

        unlabelled = None
        if known is not None and not known.all():
            if x is None:
                raise ValueError("model: rows without a label have nothing to tell without X")
            has = np.flatnonzero(known)
            unlabelled = take(x, np.flatnonzero(~known)), float(self.unlabelled_weight)
            x, y, n_rows = take(x, has), y[has], len(has)
        try:
            if unlabelled is not None:
                return program(fit.class_prior, fit.features.prior, x, y, n_rows, lengths, unlabelled)
            return program(fit.class_prior, fit.features.prior, x, y, n_rows, lengths)
        except AssertionError as error:
            if error.args:
                raise
            raise RuntimeError(
                "the program draws random numbers: run it under numpyro.handlers.seed, or through Predictive, MCMC or "
                "log_density"
            ) from error

    def _linear(self) -> tuple[np.ndarray, np.ndarray, Any]:
        """Weights and intercepts in scikit-learn's shapes (two classes: one difference), and the encoder."""
        fit = self._fit_value
        fit.check_predictive()
        if len(fit.classes) < 2:
            raise ValueError("the logistic form needs at least two classes; the model has one")
        encoder = self._logistic_encoder()
        weights, intercepts = fit.features.stated.logistic(fit.features.params)
        weights, intercepts = fit.power * weights, fit.log_class + fit.power * intercepts
        if not (np.isfinite(weights).all() and np.isfinite(intercepts).all()):
            raise UndefinedNumberError(
                "a probability is zero, so a weight of the logistic form would be infinite; smooth first "
                "(inference='mean' with alpha > 0)"
            )
        if len(fit.classes) == 2:
            return weights[1:] - weights[:1], intercepts[1:] - intercepts[:1], encoder
        return np.ascontiguousarray(weights), intercepts, encoder

    def _linear_attribute(self, part: int) -> np.ndarray:
        self._state()
        try:
            return self._linear()[part]
        except ValueError as error:
            raise UndefinedNumberError(str(error)) from None

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the logistic form; see `to_logistic`. Not there where the log odds are not linear."""
        return self._linear_attribute(0)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of the logistic form; see `coef_`."""
        return self._linear_attribute(1)

    def to_logistic(self) -> Any:
        r"""The model's logistic form: p(y | x) as softmax of linear scores of x.

        Returns
        -------
        sklearn.linear_model.LogisticRegression
            Fitted: its ``predict_proba`` equals this estimator's. Where X must be encoded first (levels, a
            threshold), a fitted ``Pipeline(encoder, LogisticRegression)``. Two classes: the difference of the
            scores; more: the scores :math:`b_k + w_k^\top x` themselves, uncentred.

        Raises
        ------
        ValueError
            If the route's log odds are not linear in x.
        UndefinedNumberError
            If a probability is zero, so that a weight would be infinite.

        References
        ----------
        Bishop 2006, section 4.2; Efron 1975.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        coef, intercept, encoder = self._linear()
        out = LogisticRegression()
        out.classes_, out.coef_, out.intercept_ = self.classes_, coef, intercept
        out.n_features_in_ = coef.shape[1]
        out.n_iter_ = np.zeros(1, dtype=np.int32)
        if encoder is not None:
            return make_pipeline(encoder, out)
        if hasattr(self, "feature_names_in_"):
            out.feature_names_in_ = self.feature_names_in_
        return out

    def _refuse_exact_logistic(self, why: str) -> None:
        if self._route in ("exact", *SAMPLED):
            raise ValueError(
                f"the log odds of inference={self._route!r} are not linear in x: {why}. Use 'mean', 'map' or 'mle'"
            )
