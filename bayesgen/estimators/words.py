"""Naive Bayes for text: words present or absent, and word counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesgen.estimators import _input
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._options import DROP_NAN, check_choice, check_count, check_missing, concentration, own_prior
from bayesgen.estimators._tokens import MOST_TOKENS, document_lengths, read_tokens
from bayesgen.families._all import Bernoulli, Multinomial
from bayesgen.fit import Fit
from bayesgen.learning import Evidence
from bayesgen.statistics import Columns

__all__ = ["BernoulliNB", "MultinomialNB"]


def check_input(kind: str) -> None:
    """The two forms of documents."""
    check_choice("input", kind, ("counts", "tokens"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _above(values: np.ndarray, threshold: float) -> np.ndarray:
    """1 above the threshold, else 0; NaN stays NaN."""
    out = (values > threshold).astype(float)
    if np.isnan(values.sum()):
        out[np.isnan(values)] = np.nan
    return out


class _Words(GenerativeBase):
    """What the two event models for text share: counts or token ids, and the word attributes."""

    alpha: Any
    input: str
    vocabulary_size: int | None

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        check_input(self.input)
        if self.input == "counts":
            return super()._read(X, columns)
        size = columns.n_features if columns is not None else self.vocabulary_size
        if size is not None:
            check_count("vocabulary_size", size)
        counts, size = read_tokens(X, size)
        holder = _input.stand_in(self, columns)
        holder.n_features_in_ = size
        return counts, holder

    def _own_prior(self) -> Any:
        return own_prior(self.alpha)

    @property
    def alpha_(self) -> Any:
        """The concentration in use: a number, or an array that broadcasts to (n_classes, n_features).

        Where it is random, its posterior mean.
        """
        return self._concentration("alpha")

    def _decode(self, x: np.ndarray, columns: Columns) -> Any:
        if self.input == "counts":
            return x
        if x.sum() > MOST_TOKENS:
            raise ValueError(f"lengths make {x.sum():.3g} tokens, more than {MOST_TOKENS:g}: use input='counts'")
        return [np.repeat(np.arange(len(row)), row.astype(np.int64)) for row in x]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.input == "counts"
        tags.classifier_tags.poor_score = True  # on the dense real numbers of scikit-learn's checks
        return tags


class BernoulliNB(_Words):
    r"""Naive Bayes on presence and absence, :math:`p_{kj} \sim \mathrm{Beta}(a, b)`.

    Every column is a word that is present or absent; an absent word counts, by :math:`1 - p_{kj}`. With
    ``inference="mean"`` and ``alpha=1`` the probabilities are Laplace's
    :math:`(n_{kj1} + 1)/(n_k + 2)`; for one new row the exact predictive is the same number.

    Parameters
    ----------
    alpha : float, array (n_features,) or (n_classes, n_features), tuple (a, b), or prior, default=1.0
        Beta concentrations (pseudo-counts): a = b = alpha, or a for presence and b for absence. A NumPyro distribution,
        a `HierarchicalDirichlet` or a function makes it random; this needs "importance" or "nuts".
    force_alpha : bool, default=True
        Accepted for scikit-learn's sake; alpha is always used as given.
    binarize : float or None, default=0.0
        Values above it are a presence. None: values must be 0 or 1.
    input : {"counts", "tokens"}, default="counts"
        With "tokens", X is a list of sequences of token ids.
    vocabulary_size : int, optional
        Number of words for token input; default: the largest id at fit, plus one.
    missing : {"marginalize", "error"}, default="marginalize"
        NaN cells are integrated out, or refused.
    inference : {"exact", "mean", "map", "mle", "nuts", "importance"}, `NUTSOptions` or `ImportanceOptions`
        What is put into Bayes' rule (default "exact"); see the user guide on routes.
    class_alpha : float or array (n_classes,), default=1.0
        Dirichlet concentration of the class probabilities; 0 gives relative frequencies.
    class_prior : array (n_classes,) or callable, optional
        Known class probabilities; or a prior of your own, a function of the number of classes that declares NumPyro
        sites and returns the probabilities (with "nuts").
    fit_prior : bool, default=True
        False: all classes equally probable.
    likelihood_power : float or "loo", default=1.0
        Exponent of p(x | y) in predictions of the class (not in ln p(x), evidence or draws of rows). "loo": the one
        that predicts each training label best from the other rows, which takes back what columns that repeat each
        other make naive Bayes too sure of.
    unlabelled : {None, "em"}, default=None
        "em": `fit` uses rows whose label is not known (-1 among whole numbers, NaN or None): "mle", "map" and "mean" by
        EM, "nuts" with their labels summed out; see `log_posterior_trace_`. None: -1 is a label like any other, and a
        missing label an error.
    unlabelled_weight : float, default=1.0
        What the weights of unlabelled rows are multiplied by.
    n_init : int, default=1
        Starts of EM: from the labelled rows, then from random labels; the best is kept.
    random_state : int, Generator, RandomState or None
        For draws, and the random starts of EM.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, feature_count_, feature_log_prob_, alpha_, prior_, posterior_,
    statistics_, log_evidence_, log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["ham", "ham", "spam", "spam"])
    >>> model.predict_proba([[1, 0]]).round(3).tolist()
    [[0.857, 0.143]]

    References
    ----------
    McCallum and Nigam 1998, *A comparison of event models for naive Bayes text classification*; Murphy 2012,
    section 3.5.
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        input: str = "counts",
        vocabulary_size: int | None = None,
        missing: str = "marginalize",
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        likelihood_power: Any = 1.0,
        unlabelled: str | None = None,
        unlabelled_weight: float = 1.0,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.input = input
        self.vocabulary_size = vocabulary_size
        self.missing = missing
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.likelihood_power = likelihood_power
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.n_init = n_init
        self.random_state = random_state

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> Any:
        check_missing(self.missing)
        if self.binarize is not None and not _is_number(self.binarize):
            raise ValueError(f"binarize must be a number or None; got {self.binarize!r}")
        x = _input.canonical(X)
        _input.check_finite(x, columns.names, self.missing == "marginalize", DROP_NAN)
        if self.binarize is None:
            Bernoulli().check(x, columns.names)
            return x
        if not sp.issparse(x):
            return _above(x, self.binarize)
        if self.binarize < 0:
            raise ValueError(
                f"binarize={self.binarize!r} would make every implicit zero of a sparse matrix a presence; use a "
                "threshold of at least 0, or a dense array"
            )
        if np.all(x.data == 1) and self.binarize < 1:
            return x
        present = x.data > self.binarize
        # Of counts all stored entries are ones, which take no memory; a NaN is not above.
        data = np.broadcast_to(1.0, present.shape) if present.all() else _above(x.data, self.binarize)
        return sp.csr_array((data, x.indices, x.indptr), shape=x.shape)

    def _stated(self, columns: Columns, n_classes: int) -> Bernoulli:
        if isinstance(self.alpha, tuple):
            if len(self.alpha) != 2:
                raise ValueError(f"alpha as a tuple is the pair (a, b) of the Beta prior; got {self.alpha!r}")
            a, b = (concentration(v) for v in self.alpha)
            if isinstance(a, Evidence) or isinstance(b, Evidence):
                raise ValueError(f"alpha='evidence' learns a and b together, not in a pair; got {self.alpha!r}")
        else:
            a = b = concentration(self.alpha)
        return Bernoulli(a, b, n_classes, columns.n_features)

    @property
    def alpha_(self) -> Any:
        """The concentration in use; a pair (a, b) if the two differ."""
        if isinstance(self.alpha, tuple):
            return self._concentration("a"), self._concentration("b")
        return self._concentration("a", "alpha")

    @property
    def feature_count_(self) -> np.ndarray:
        """Weight of the rows with the column present, (n_classes, n_features)."""
        return self._fit_value.features.stats.present

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """The route's ln p of presence, (n_classes, n_features)."""
        return self._fit_value.features.params.log_present

    def _logistic_encoder(self) -> Any:
        from sklearn.preprocessing import Binarizer

        if self.binarize is None:
            return None
        d = self._state().columns.n_features
        return Binarizer(threshold=self.binarize).fit(np.zeros((1, d)))


class MultinomialNB(_Words):
    r"""Naive Bayes on word counts, :math:`\theta_k \sim \mathrm{Dirichlet}(\alpha)`.

    A document is a sequence of words; X holds its counts, or the token ids themselves. With
    ``inference="mean"`` and ``alpha=1`` the word probabilities are Laplace's
    :math:`(N_{kj} + 1)/(N_k + V)`, as in scikit-learn; the default route integrates them out (a Polya urn), which
    knows that a repeated word is weaker evidence than two different ones.

    Parameters
    ----------
    alpha : float, array (n_features,) or (n_classes, n_features), or prior, default=1.0
        Dirichlet concentration (pseudo-count) of each word. A NumPyro distribution, a `HierarchicalDirichlet` or a
        function makes it random; this needs "importance" or "nuts".
    force_alpha : bool, default=True
        Accepted for scikit-learn's sake; alpha is always used as given.
    multinomial_coefficient : bool, default=False
        Whether p(x) is the probability of the count vector (True) or of the token sequence. It shifts ln p(x),
        evidence and joint leave-one-out; class probabilities do not change.
    input : {"counts", "tokens"}, default="counts"
        With "tokens", X is a list of sequences of token ids; ids outside the vocabulary are dropped.
    vocabulary_size : int, optional
        Number of words for token input; default: the largest id at fit, plus one.
    inference, class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, feature_count_, feature_log_prob_, alpha_, prior_, posterior_,
    statistics_, log_evidence_, log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Notes
    -----
    Fractional counts (tf-idf) are accepted as powers of the probabilities. NaN is an error.

    Examples
    --------
    >>> from bayesgen import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 1], [1, 3]], ["ham", "spam"])
    >>> model.predict_proba([[2, 0]]).round(3).tolist()  # the plug-in mean says 0.8
    [[0.769, 0.231]]

    References
    ----------
    Murphy 2012, sections 3.4 and 3.5.5; Minka 2000, *Estimating a Dirichlet distribution*.
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        multinomial_coefficient: bool = False,
        input: str = "counts",
        vocabulary_size: int | None = None,
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        likelihood_power: Any = 1.0,
        unlabelled: str | None = None,
        unlabelled_weight: float = 1.0,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.multinomial_coefficient = multinomial_coefficient
        self.input = input
        self.vocabulary_size = vocabulary_size
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.likelihood_power = likelihood_power
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.n_init = n_init
        self.random_state = random_state

    def _encode(self, X: Any, columns: Columns, purpose: str = "predict") -> Any:
        x = _input.canonical(X) if sp.issparse(X) and X.data.min(initial=0) < 0 else X  # entries may sum to a count
        _input.check_finite(x, columns.names, True, "")
        Multinomial().check(x, columns.names)
        return x

    def _stated(self, columns: Columns, n_classes: int) -> Multinomial:
        if isinstance(self.alpha, tuple):
            raise ValueError("alpha as a tuple (a, b) is for BernoulliNB; pass a list or array for one per word")
        alpha = concentration(self.alpha)
        return Multinomial(alpha, bool(self.multinomial_coefficient), n_classes, columns.n_features)

    @property
    def feature_count_(self) -> np.ndarray:
        """Weighted word counts, (n_classes, n_features)."""
        return self._fit_value.features.stats.word_count

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """The route's log word probabilities, (n_classes, n_features)."""
        return self._fit_value.features.params.log_prob

    def _lengths(self, lengths: Any, n_rows: int, fit: Fit) -> np.ndarray:
        return document_lengths(lengths, n_rows, fit.features.stats.word_count, fit.count.sum())

    def _logistic_encoder(self) -> Any:
        self._refuse_exact_logistic("the Polya urn makes repeated words weaker evidence")
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
