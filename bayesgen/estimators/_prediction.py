"""Predictions of an estimator: probabilities, intervals, leave-one-out, simulation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, ndtri

from bayesgen._kernels import SCORE_CELLS, map_rows, row_blocks
from bayesgen._math import logsumexp, safe_log
from bayesgen._random import generator
from bayesgen._values import python_value
from bayesgen.estimators import _labels
from bayesgen.estimators._arrays import on_host
from bayesgen.estimators._options import check_choice, check_count
from bayesgen.estimators._parts import by_parts
from bayesgen.estimators._shell import Shell
from bayesgen.estimators._tables import is_dask
from bayesgen.exceptions import UndefinedNumberError, ZeroProbabilityWarning
from bayesgen.families.base import Labels, class_count
from bayesgen.families.normal_statistics import sum_patterns
from bayesgen.fit import LooResult, arrays_of

__all__ = ["Prediction"]

INTERVAL_CELLS = 1 << 24  # numbers held at once for quantiles over draws
EXPONENTIALS = 8  # an exponential takes as long as so many sums


class Prediction(Shell):
    """What an estimator predicts from what it has learned; only reads it."""

    def _rows(self, X: Any) -> Any:
        columns = self._state().columns
        X, _ = self._read(X, columns)
        return self._encode(X, columns)

    def _log_class(self, class_prior: Any) -> np.ndarray | None:
        if class_prior is None:
            return None
        return safe_log(_labels.check_class_prior(class_prior, len(self.classes_)))

    @by_parts
    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """Log of p(x, y) for each row and class, (n_samples, n_classes), by the estimator's route.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray (n_samples, n_classes)
            In nats; normalised over the classes it is `predict_proba`.
        """
        fit = self._fit_value
        return fit.log_joint(self._rows(X))

    @by_parts
    def predict_log_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """Log of p(y | x), (n_samples, n_classes); see `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Rows.
        class_prior : array (n_classes,), optional
            Class probabilities to use in place of the learned ones.

        Returns
        -------
        ndarray (n_samples, n_classes)
            In nats.
        """
        fit = self._fit_value
        return normalise(fit.relative_scores(self._rows(X), self._log_class(class_prior)))

    @by_parts
    def predict_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """p(y | x) of each row and class.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        class_prior : array (n_classes,), optional
            Class probabilities to use in place of the learned ones (prior shift without refitting).

        Returns
        -------
        ndarray (n_samples, n_classes)
            With ``inference="exact"``, p(x, y) has its parameters integrated out. A row that no class can
            generate has NaN, with a `ZeroProbabilityWarning`.
        """
        fit = self._fit_value
        return probabilities(fit.relative_scores(self._rows(X), self._log_class(class_prior)))

    @by_parts
    def predict(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """The most probable class of each row, (n_samples,); ties go to the first class.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Rows.
        class_prior : array (n_classes,), optional
            Class probabilities to use in place of the learned ones.

        Returns
        -------
        ndarray (n_samples,)
            Class labels.
        """
        fit = self._fit_value
        log_class = self._log_class(class_prior)
        joint = fit.relative_scores(self._rows(X), log_class)
        codes = joint.argmax(axis=1)
        impossible = warn_impossible(joint.max(axis=1))
        codes[impossible] = (fit.log_class if log_class is None else log_class).argmax()
        return fit.classes[codes]

    @by_parts
    def score_samples(self, X: Any) -> np.ndarray:
        """Log of p(x) for each row, (n_samples,): low values are rows unlike the training set.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray (n_samples,)
            In nats; densities depend on the units of the columns.
        """
        return logsumexp(self.predict_joint_log_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows, by weight, whose class is predicted.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
            Rows.
        y : array (n_samples,)
            True labels.
        sample_weight : array (n_samples,), optional
            Row weights; None: one each.

        Returns
        -------
        float
            Accuracy, between 0 and 1.
        """
        if is_dask(X):
            from bayesgen.estimators._dask import score_blocks

            return score_blocks(self, X, y, sample_weight)
        from sklearn.metrics import accuracy_score

        predicted, y = self.predict(on_host(X)), on_host(y, "y")
        _labels.check_rows(predicted, y)
        return float(accuracy_score(y, predicted, sample_weight=on_host(sample_weight, "sample_weight")))

    def sample_proba(self, X: Any, n_draws: int = 1000, random_state: Any = None) -> np.ndarray:
        """p(y | x, parameters) for draws of the parameters from their posterior.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        n_draws : int
        random_state : int, Generator, RandomState or None
            None: the estimator's own.

        Returns
        -------
        ndarray (n_draws, n_samples, n_classes)
            Its mean over draws is not ``predict_proba``, which averages the joint p(x, y) first.
        """
        n_draws = check_count("n_draws", n_draws)
        fit = self._fit_value
        pieces = fit.draw_log_scores(self._rows(X), n_draws, self._seed(random_state))
        return np.concatenate([np.exp(normalise(p)) for p in pieces])

    def log_odds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        r"""Posterior mean and standard deviation of the log odds of each class against the first, in closed form.

        For a word with probabilities :math:`\theta_k \sim \mathrm{Dir}(\alpha_k)`, :math:`\ln\theta_{kj}` has mean
        :math:`\psi(\alpha_{kj}) - \psi(A_k)`, and covariances
        :math:`\psi_1(\alpha_{kj})[j{=}l] - \psi_1(A_k)`; they are summed with the counts, and the class probabilities
        add the same terms of their own Dirichlet.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)

        Returns
        -------
        mean, sd : ndarray (n_samples, n_classes)
            Of :math:`\ln p(y{=}k \mid x, \theta) - \ln p(y{=}0 \mid x, \theta)` under the posterior; zero in the
            first column.

        Raises
        ------
        ValueError
            For models other than Bernoulli, multinomial and categorical.
        UndefinedNumberError
            Where there is no conjugate posterior.

        Examples
        --------
        >>> from bayesgen import BernoulliNB
        >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 1]], [0, 0, 1, 1])
        >>> mean, sd = model.log_odds([[1, 0]])
        >>> mean.round(2).tolist(), sd.round(2).tolist()
        ([[0.0, -2.5]], [[0.0, 2.0]])
        """
        mean, variance = self._fit_value.log_joint_moments(self._rows(X))
        sd = np.sqrt(variance + variance[:, :1])
        sd[:, 0] = 0.0
        warn_impossible(mean.max(axis=1))
        with np.errstate(invalid="ignore"):  # impossible in both classes: 0/0
            return mean - mean[:, :1], sd

    def _normal_interval(self, X: Any, prob: float, n_draws: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The interval with each log joint taken as normal with its exact mean and variance."""
        mean, variance = self._fit_value.log_joint_moments(self._rows(X))
        if mean.shape[1] == 2:
            reach = ndtri((1 + prob) / 2) * np.sqrt(variance.sum(axis=1))
            odds = mean[:, 1] - mean[:, 0]
            lower, upper = expit(odds - reach), expit(odds + reach)
            return np.column_stack([1.0 - upper, lower]), np.column_stack([1.0 - lower, upper])
        noise = generator(self._seed(random_state)).standard_normal((n_draws, 1, mean.shape[1]))
        lower, upper = np.empty(mean.shape), np.empty(mean.shape)
        for block in row_blocks(len(mean), n_draws * mean.shape[1], INTERVAL_CELLS):
            draws = np.exp(normalise(mean[block] + noise * np.sqrt(variance[block])))
            lower[block], upper[block] = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        return lower, upper

    def predict_proba_interval(
        self, X: Any, prob: float = 0.94, n_draws: int = 1000, random_state: Any = None, method: str = "draws"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Equal-tailed interval of p(y | x, parameters) under the posterior of the parameters.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n_samples, n_features)
        prob : float
            Posterior probability of the interval.
        n_draws : int
            Independent posterior draws. The ends are sample quantiles: at 1000 draws and 94 %, each has a
            Monte Carlo standard error of about 0.0054 in its tail probability (0.03).
        random_state : int, Generator, RandomState or None
        method : {"draws", "normal"}, default="draws"
            "normal" takes each log joint as normal with its exact posterior mean and variance (see `log_odds`;
            Bernoulli, multinomial and categorical models): quick, at a cost that does not depend on draws of
            parameters, and without Monte Carlo error for two classes. It is close where every word
            of the row has some counts in every class: the logarithm of a probability never seen is skewed.

        Returns
        -------
        lower, upper : ndarray (n_samples, n_classes)
        """
        if not isinstance(prob, (float, int, np.floating)) or not 0 < prob < 1:
            raise ValueError(f"prob must be a number between 0 and 1; got {prob!r}")
        n_draws = check_count("n_draws", n_draws)
        check_choice("method", method, ("draws", "normal"))
        if method == "normal":
            return self._normal_interval(X, prob, n_draws, random_state)
        fit = self._fit_value
        x = self._rows(X)
        n = x[0].shape[0] if isinstance(x, tuple) else x.shape[0]
        # The same draws for every block of rows.
        seed = generator(self._seed(random_state)).integers(0, 2**32, size=4, dtype=np.uint32)
        shape = (n, len(fit.classes))
        lower, upper = np.empty(shape), np.empty(shape)
        for block in row_blocks(n, n_draws * shape[1], INTERVAL_CELLS):
            part = tuple(p[block] for p in x) if isinstance(x, tuple) else x[block]
            draws = fit.draw_log_scores(part, n_draws, np.random.default_rng(seed))
            prob_draws = np.concatenate([np.exp(normalise(p)) for p in draws])
            lower[block], upper[block] = np.quantile(prob_draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        return lower, upper

    def loo(self, X: Any, y: Any, sample_weight: Any = None) -> LooResult:
        """Exact leave-one-out under the full conjugate posterior, at the cost of one prediction.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
            The rows that were learned.

        Returns
        -------
        LooResult
            ``elpd_joint``, ``elpd_conditional`` and their parts. The prior is held at its values from the full
            fit.

        Warns
        -----
        UserWarning
            If they are fewer or more than were learned, or others (such as those that a pipeline would have scaled
            first): some of the learned rows are predicted as well, but rows that were never learned give nonsense.

        Raises
        ------
        UndefinedNumberError
            If some of the learned rows are given, and one of them holds nearly all of a variance: without it all the
            other rows must be summed up anew.
        """
        x, labels = self._learned_rows(X, y, sample_weight, "loo")
        fit = self._fit_value
        given = class_count(labels, len(fit.classes))
        complete = np.allclose(given, fit.count, rtol=1e-9)
        out = fit.loo(x, labels, None if complete else _rows_not_given)
        if not complete:
            warnings.warn(
                f"loo is of rows that were learned, and predicts each from all the others: rows of weight "
                f"{given.tolist()} by class were given, {fit.count.tolist()} were learned. For new rows take "
                "predict_log_proba, or compare(..., test=(X, y))",
                UserWarning,
                stacklevel=2,
            )
        elif not self._were_learned(x, labels):
            warnings.warn(
                "loo is of rows that were learned, and the statistics of these rows are not those that were learned: "
                "the numbers mean nothing. After a fit in a pipeline pass what its last step gets, "
                "pipeline[:-1].transform(X)",
                UserWarning,
                stacklevel=2,
            )
        gone = int(np.isnan(out.joint).sum())
        if gone:
            warnings.warn(
                f"{gone} of {len(labels.codes)} rows have no leave-one-out density (the posterior without them is "
                "improper, or no class can generate them): NaN",
                ZeroProbabilityWarning,
                stacklevel=2,
            )
        return out

    @property
    def likelihood_power_(self) -> float:
        """The exponent of p(x | y) in predictions of the class."""
        return self._fit_value.power

    def tune_likelihood_power(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        r"""Set the power of p(x | y) that predicts each label best from all other rows.

        With :math:`p_\eta(y{=}k \mid x) \propto p(y{=}k)\,p(x \mid y{=}k)^\eta`, it maximises the sum over rows of the
        exact leave-one-out log probability of the label. Columns that say the same thing twice make naive Bayes too
        sure; a power below one takes that back.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
            Rows that were learned.

        Returns
        -------
        self
            Statistics, evidence, ``loo`` and ln p(x) are what they were.

        References
        ----------
        Gruenwald 2012, *The safe Bayesian* (powers of the likelihood).
        """
        learned = self._state()
        x, labels = self._learned_rows(X, y, sample_weight, "tune_likelihood_power")
        return self._commit(replace(learned, fit=learned.fit.with_best_power(x, labels)))

    def _learned_rows(self, X: Any, y: Any, sample_weight: Any, what: str) -> tuple[Any, Labels]:
        """Encoded rows, and their labels, which must be among those learned."""
        fit = self._fit_value
        x = self._rows(X)
        y = _labels.check_labels(y)
        _labels.check_rows(X, y)
        w = _labels.check_weights(sample_weight, y)
        labels = Labels(_labels.encode_labels(y, fit.classes), w)
        given = class_count(labels, len(fit.classes))
        more = given > fit.count * (1 + 1e-9)
        if more.any():
            k = int(more.argmax())
            raise ValueError(
                f"{what} is for rows that were learned: {given[k]:g} rows of class {python_value(fit.classes[k])!r} "
                f"were given, {fit.count[k]:g} were learned. Fit these rows first"
            )
        return x, labels

    def _were_learned(self, x: Any, labels: Labels) -> bool:
        """Whether encoded rows have the statistics that were learned, up to digits that `forget` may have lost."""
        learned = self._state()
        found = self._stats(learned.fit.features.stated, x, labels, learned.columns)
        return _alike(list(arrays_of(sum_patterns(learned.fit.features.stats))), list(arrays_of(sum_patterns(found))))

    def _seed(self, random_state: Any) -> Any:
        return self.random_state if random_state is None else random_state

    def sample(self, n_samples: int = 1, random_state: Any = None, lengths: Any = None) -> tuple[Any, np.ndarray]:
        """Independent rows from the route's p(x, y); with ``"exact"``, the posterior predictive.

        Parameters
        ----------
        n_samples : int
        random_state : int, Generator, RandomState or None
        lengths : int or array (n_samples,), optional
            Lengths of documents (multinomial model); default: the mean length seen.

        Returns
        -------
        X : array (n_samples, n_features)
        y : array (n_samples,)
        """
        n_samples = check_count("n_samples", n_samples)
        learned = self._state()
        fit = learned.fit
        lengths = self._lengths(lengths, n_samples, fit)
        x, codes = fit.sample(n_samples, self._seed(random_state), lengths)
        return self._decode(x, learned.columns), fit.classes[codes]


def _alike(whole: list[np.ndarray], part: list[np.ndarray]) -> bool:
    """Whether numbers agree to three digits, with some slack for rounding errors, which statistics hold as well."""
    noise = 1e-9 * max(np.max(np.abs(a), initial=0.0) for a in whole)
    return len(whole) == len(part) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-3 * np.max(np.abs(a), initial=0.0) + noise)
        for a, b in zip(whole, part, strict=True)
    )


def _rows_not_given() -> Any:
    raise UndefinedNumberError(
        "a row holds nearly all of a variance, and leave-one-out of it needs the sums of all other rows, some of which "
        "were not given: pass all the rows that were learned"
    )


def normalise(joint: np.ndarray) -> np.ndarray:
    """Log of p(y | x) in place of the log joint, over the last axis; NaN for rows that no class can generate."""
    out, best = _by_rows(joint, log=True)
    warn_impossible(best)
    return out


def probabilities(joint: np.ndarray) -> np.ndarray:
    """p(y | x), exp of `normalise`, with one exponential for each number."""
    out, best = _by_rows(joint, log=False)
    warn_impossible(best)
    return out


def _by_rows(joint: np.ndarray, log: bool) -> tuple[np.ndarray, np.ndarray]:
    """Normalised (log) probabilities and the largest log joint of each row, a block of rows at a time.

    Blocks are turned, since NumPy is slow to reduce a short last axis.
    """
    flat = joint.reshape(-1, joint.shape[-1])
    best = np.empty(len(flat))

    def work(lo: int, hi: int) -> None:
        for block in row_blocks(hi - lo, flat.shape[1], SCORE_CELLS):
            part = slice(lo + block.start, lo + block.stop)
            turned = flat[part].T.copy()
            np.max(turned, axis=0, out=best[part])
            # The maximum goes first: a log joint of -1e12 would leave no digits of a log of the sum.
            with np.errstate(invalid="ignore"):
                turned -= best[part]
                if log:
                    turned -= np.log(np.exp(turned).sum(axis=0))
                else:
                    np.exp(turned, out=turned)
                    turned /= turned.sum(axis=0)
            flat[part] = turned.T

    map_rows(work, len(flat), EXPONENTIALS * flat.size)
    return flat.reshape(joint.shape), best.reshape(joint.shape[:-1])


def warn_impossible(best: np.ndarray) -> np.ndarray:
    """Rows whose log joint is -inf in the best class, with a warning that names the first."""
    impossible = np.asarray(np.isneginf(best))
    if impossible.any():
        at = int(np.argwhere(impossible)[0][-1])
        warnings.warn(
            f"{int(impossible.sum())} of {impossible.size} rows (the first is row {at}) have probability zero in every "
            "class: their class probabilities are 0/0, given as NaN. Smoothing repairs this: inference='mean' or "
            "'exact' with alpha > 0",
            ZeroProbabilityWarning,
            stacklevel=3,
        )
    return impossible
