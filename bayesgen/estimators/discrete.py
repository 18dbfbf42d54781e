"""Naive Bayes for words, levels and counts: Bernoulli, multinomial, categorical and Poisson columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesgen.estimators import _input
from bayesgen.estimators._base import GenerativeBase
from bayesgen.families import Bernoulli, Categorical, Multinomial, Poisson
from bayesgen.families.base import refuse_columns
from bayesgen.fit import Fit
from bayesgen.priors import Gamma
from bayesgen.statistics import Columns

__all__ = ["BernoulliNB", "CategoricalNB", "MultinomialNB", "PoissonNB"]

DROP_NAN = "Use missing='marginalize' to leave missing cells out, or drop the rows"


def concentration(alpha: Any) -> Any:
    """A checked concentration: a number or an array of non-negative numbers."""
    if type(alpha).__module__.startswith("numpyro"):
        raise ValueError(
            "alpha is a distribution: a hierarchical concentration has no closed form and needs inference='nuts'"
        )
    if isinstance(alpha, str):
        raise ValueError(f"alpha must be a non-negative number or array; got {alpha!r}")
    out = np.asarray(alpha)
    if out.dtype.kind not in "iuf" or not np.isfinite(out).all() or (out < 0).any():
        raise ValueError(f"alpha must be a non-negative number or array; got {alpha!r}")
    return out.astype(float)


def check_missing(missing: str) -> None:
    """The two policies for missing cells."""
    if missing not in ("marginalize", "error"):
        raise ValueError(f"missing must be 'marginalize' or 'error'; got {missing!r}")


def check_input(kind: str) -> None:
    """The two forms of documents."""
    if kind not in ("counts", "tokens"):
        raise ValueError(f"input must be 'counts' or 'tokens'; got {kind!r}")


# ------------------------------------------------------------------------------------------- tokens


def read_tokens(documents: Any, vocabulary_size: int | None) -> tuple[Any, int]:
    """Counts (CSR) of token-id sequences of varying length.

    Tokens outside 0..V-1 and missing ones (None, NaN) are dropped.
    """
    if isinstance(documents, (str, bytes)) or not hasattr(documents, "__len__"):
        raise ValueError("with input='tokens', X is a list of sequences of token ids, one sequence a document")
    sequences = []
    for i, document in enumerate(documents):
        tokens = np.asarray(
            [t for t in (document.tolist() if hasattr(document, "tolist") else document) if not _no_token(t)]
        )
        if tokens.size and (tokens.dtype.kind not in "iuf" or (tokens != np.floor(tokens)).any()):
            raise ValueError(f"document {i} of X holds {tokens[:3].tolist()}; token ids are whole numbers")
        sequences.append(tokens.astype(np.int64))
    if not sequences:
        raise ValueError("Found array with 0 sample(s): X holds no documents while a minimum of 1 is required")
    largest = max((int(t.max()) for t in sequences if t.size), default=-1)
    size = largest + 1 if vocabulary_size is None else int(vocabulary_size)
    if size < 1:
        raise ValueError("X holds no tokens, so the vocabulary is unknown: pass vocabulary_size")
    kept = [t[(t >= 0) & (t < size)] for t in sequences]
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in kept])])
    index = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    counts = sp.csr_array((np.ones(len(index)), index, indptr), shape=(len(kept), size))
    counts.sum_duplicates()
    return counts, size


def _no_token(t: Any) -> bool:
    return t is None or (isinstance(t, float) and t != t)


class _Words(GenerativeBase):
    """What the two event models for text share: counts or token ids, and the word attributes."""

    alpha: Any
    input: str
    vocabulary_size: int | None

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        check_input(self.input)
        if self.input == "counts":
            return super()._read(X, columns)
        size = self.vocabulary_size if columns is None else columns.n_features
        counts, size = read_tokens(X, size)
        holder = _input.stand_in(self, columns)
        holder.n_features_in_ = size
        return counts, holder

    @property
    def alpha_(self) -> Any:
        """The concentration in use: a number, or an array that broadcasts to (n_classes, n_features)."""
        return self._fit_value.features.prior.alpha

    def _decode(self, x: np.ndarray, columns: Columns) -> Any:
        if self.input == "counts":
            return x
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
    alpha : float, array (n_features,) or (n_classes, n_features), or tuple (a, b), default=1.0
        Beta concentrations (pseudo-counts): a = b = alpha, or a for presence and b for absence.
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
    inference : {"exact", "mean", "map", "mle"}, default="exact"
        What is put into Bayes' rule; see the user guide on routes.
    class_alpha : float or array (n_classes,), default=1.0
        Dirichlet concentration of the class probabilities; 0 gives relative frequencies.
    class_prior : array (n_classes,), optional
        Known class probabilities.
    fit_prior : bool, default=True
        False: all classes equally probable.
    random_state : int, Generator, RandomState or None
        For draws.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, feature_count_, feature_log_prob_, alpha_, prior_, posterior_,
    statistics_, log_evidence_, log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["ham", "ham", "spam", "spam"])
    >>> model.predict_proba([[1, 0]]).round(3).tolist()
    [[0.9, 0.1]]

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
        self.random_state = random_state

    def _encode(self, X: Any, columns: Columns, fitting: bool = False) -> Any:
        check_missing(self.missing)
        x = _input.canonical(X)
        _input.check_finite(x, columns.names, self.missing == "marginalize", DROP_NAN)
        if self.binarize is None:
            Bernoulli().check(x, columns.names)
            return x
        if not sp.issparse(x):
            return np.where(np.isnan(x), np.nan, (x > self.binarize).astype(float))
        if self.binarize < 0:
            raise ValueError(
                f"binarize={self.binarize!r} would make every implicit zero of a sparse matrix a presence; use a "
                "threshold of at least 0, or a dense array"
            )
        if np.all(x.data == 1) and self.binarize < 1:
            return x
        data = np.where(np.isnan(x.data), np.nan, (x.data > self.binarize).astype(float))
        return sp.csr_array((data, x.indices, x.indptr), shape=x.shape)

    def _stated(self, columns: Columns, n_classes: int) -> Bernoulli:
        if isinstance(self.alpha, tuple):
            if len(self.alpha) != 2:
                raise ValueError(f"alpha as a tuple is the pair (a, b) of the Beta prior; got {self.alpha!r}")
            a, b = (concentration(v) for v in self.alpha)
        else:
            a = b = concentration(self.alpha)
        return Bernoulli(a, b, n_classes, columns.n_features)

    @property
    def alpha_(self) -> Any:
        """The concentration in use; a pair (a, b) if the two differ."""
        prior = self._fit_value.features.prior
        return (prior.a, prior.b) if isinstance(self.alpha, tuple) else prior.a

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
    alpha : float, array (n_features,) or (n_classes, n_features), default=1.0
        Dirichlet concentration (pseudo-count) of each word.
    force_alpha : bool, default=True
        Accepted for scikit-learn's sake; alpha is always used as given.
    multinomial_coefficient : bool, default=False
        Whether p(x) is the probability of the count vector (True) or of the token sequence. It shifts ln p(x),
        evidence and joint leave-one-out; class probabilities do not change.
    input : {"counts", "tokens"}, default="counts"
        With "tokens", X is a list of sequences of token ids; ids outside the vocabulary are dropped.
    vocabulary_size : int, optional
        Number of words for token input; default: the largest id at fit, plus one.
    inference, class_alpha, class_prior, fit_prior, random_state : see `BernoulliNB`

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
        self.random_state = random_state

    def _encode(self, X: Any, columns: Columns, fitting: bool = False) -> Any:
        _input.check_finite(X, columns.names, True, "")
        Multinomial().check(X, columns.names)
        return X

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
        if lengths is None:
            seen = max(fit.count.sum(), 1e-300)
            lengths = int(np.rint(fit.features.stats.word_count.sum() / seen))
        out = np.asarray(lengths)
        if out.dtype.kind not in "iu" or (out < 0).any() or out.shape not in ((), (n_rows,)):
            raise ValueError(
                f"lengths must be a whole number or one for each of the {n_rows} rows; got {lengths!r}"
            )
        return np.broadcast_to(out, (n_rows,))

    def _logistic_encoder(self) -> Any:
        self._refuse_exact_logistic("the Polya urn makes repeated words weaker evidence")
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class PoissonNB(GenerativeBase):
    r"""Naive Bayes on independent counts, :math:`\lambda_{kj} \sim \mathrm{Gamma}(a, b)`.

    Parameters
    ----------
    prior : Gamma or numpyro.distributions.Gamma, optional
        Prior of the rates; default ``Gamma(shape=1.0, rate=1.0)``.
    missing : {"marginalize", "error"}, default="marginalize"
        NaN cells are integrated out, or refused.
    inference, class_alpha, class_prior, fit_prior, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, rate_, prior_, posterior_, statistics_, log_evidence_,
    log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import PoissonNB
    >>> PoissonNB(inference="mle").fit([[0], [2], [4], [6]], [0, 0, 1, 1]).rate_.tolist()
    [[1.0], [5.0]]

    References
    ----------
    Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.
    """

    def __init__(
        self,
        *,
        prior: Any = None,
        missing: str = "marginalize",
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        random_state: Any = None,
    ) -> None:
        self.prior = prior
        self.missing = missing
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.random_state = random_state

    def _encode(self, X: Any, columns: Columns, fitting: bool = False) -> Any:
        check_missing(self.missing)
        x = _input.canonical(X)
        _input.check_finite(x, columns.names, self.missing == "marginalize", DROP_NAN)
        Poisson().check(x, columns.names)
        return x

    def _stated(self, columns: Columns, n_classes: int) -> Poisson:
        prior = Gamma() if self.prior is None else self.prior
        if type(prior).__module__.startswith("numpyro"):
            if type(prior).__name__ != "Gamma":
                raise ValueError(
                    f"prior is a {type(prior).__name__} distribution, which is not conjugate to Poisson counts: it "
                    "needs inference='nuts'; a Gamma has a closed form"
                )
            prior = Gamma(np.asarray(prior.concentration, float), np.asarray(prior.rate, float))
        if not isinstance(prior, Gamma):
            raise ValueError(f"prior must be a Gamma; got {prior!r}")
        return Poisson(prior.shape, prior.rate, n_classes, columns.n_features)

    @property
    def prior_(self) -> Gamma:
        """The Gamma prior in use."""
        prior = self._fit_value.features.prior
        return Gamma(prior.shape, prior.rate)

    @property
    def rate_(self) -> np.ndarray:
        """The route's rates, (n_classes, n_features), in counts per row."""
        return self._fit_value.features.params.rate

    def _logistic_encoder(self) -> Any:
        self._refuse_exact_logistic("the predictive of a Poisson with a Gamma rate is negative binomial")
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class CategoricalNB(GenerativeBase):
    r"""Naive Bayes on categories, :math:`\theta_{kj} \sim \mathrm{Dirichlet}(\alpha)` over the levels of each column.

    Columns may be whole-number codes, strings, booleans, or categorical columns of pandas and polars.

    Parameters
    ----------
    alpha : float, array (n_features,) or (n_classes, n_features), default=1.0
        Dirichlet concentration (pseudo-count) of each level.
    force_alpha : bool, default=True
        Accepted for scikit-learn's sake; alpha is always used as given.
    categories : "auto" or list of arrays, default="auto"
        Levels of each column. "auto": codes 0..max for whole numbers, the declared levels of categorical columns,
        the distinct values of others.
    min_categories : int or array (n_features,), optional
        Least number of levels of columns of codes.
    handle_unknown : {"predictive", "ignore", "error"}, default="predictive"
        A level not known at prediction: the predictive mass of one more level without rows; or left out like a
        missing cell; or an error.
    missing : {"marginalize", "error"}, default="marginalize"
        None and NaN cells are integrated out, or refused.
    inference, class_alpha, class_prior, fit_prior, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, category_count_, feature_log_prob_, n_categories_, categories_,
    alpha_, prior_, posterior_, statistics_, log_evidence_, log_evidence_parts_, n_features_in_,
    feature_names_in_, coef_, intercept_

    Examples
    --------
    >>> from bayesgen import CategoricalNB
    >>> model = CategoricalNB().fit([["sunny"], ["rainy"], ["rainy"]], ["play", "stay", "stay"])
    >>> model.predict([["rainy"]]).tolist()
    ['stay']

    References
    ----------
    Murphy 2012, sections 3.4-3.5.
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        categories: Any = "auto",
        min_categories: Any = None,
        handle_unknown: str = "predictive",
        missing: str = "marginalize",
        inference: str = "exact",
        class_alpha: Any = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.categories = categories
        self.min_categories = min_categories
        self.handle_unknown = handle_unknown
        self.missing = missing
        self.inference = inference
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.random_state = random_state

    def _read(self, X: Any, columns: Columns | None) -> tuple[Any, Any]:
        return _input.check_table(self, X, columns)

    def _columns(self, X: Any, holder: Any, known: Columns | None, weights: Any = None) -> Columns:
        from bayesgen.estimators import _levels

        d = holder.n_features_in_
        names = getattr(holder, "feature_names_in_", None)
        declared = self._declared(d)
        least = self._least(d)
        if declared is not None:
            levels = declared
        else:
            before = (None,) * d if known is None else known.levels
            levels = tuple(_levels.find(X, j, before[j], least[j], names, weights) for j in range(d))
        return Columns(d, names, levels)

    def _declared(self, d: int) -> tuple[np.ndarray, ...] | None:
        from bayesgen.estimators import _levels

        if isinstance(self.categories, str):
            if self.categories != "auto":
                raise ValueError(f"categories must be 'auto' or a list of levels per column; got {self.categories!r}")
            return None
        if len(self.categories) != d:
            raise ValueError(f"categories holds {len(self.categories)} lists of levels; X has {d} columns")
        return tuple(_levels.declare(c, j) for j, c in enumerate(self.categories))

    def _least(self, d: int) -> np.ndarray:
        if self.min_categories is None:
            return np.zeros(d, dtype=np.int64)
        least = np.asarray(self.min_categories)
        if least.dtype.kind not in "iu":
            raise ValueError(
                f"'min_categories' should have integral type. Got {least.dtype} instead."
            )
        if least.shape not in ((), (d,)):
            raise ValueError(f"'min_categories' should have shape ({d},) when an array-like; got {least.shape}")
        return np.broadcast_to(least, (d,))

    def _encode(self, X: Any, columns: Columns, fitting: bool = False) -> np.ndarray:
        from bayesgen.estimators import _levels

        check_missing(self.missing)
        if self.handle_unknown not in ("predictive", "ignore", "error"):
            raise ValueError(
                f"handle_unknown must be 'predictive', 'ignore' or 'error'; got {self.handle_unknown!r}"
            )
        unknown = self.handle_unknown
        if fitting:  # a level that nothing declares belongs to a row of weight zero
            unknown = "ignore" if isinstance(self.categories, str) else "error"
        return _levels.encode(X, columns, self.missing == "marginalize", unknown)

    def _stated(self, columns: Columns, n_classes: int) -> Categorical:
        if isinstance(self.alpha, tuple):
            raise ValueError("alpha as a tuple (a, b) is for BernoulliNB; pass a list or array for one per column")
        n_levels = tuple(len(v) for v in columns.levels or ())
        return Categorical(concentration(self.alpha), None, n_levels, n_classes, columns.n_features)

    def _adapt(self, stats: Any, old: Columns, new: Columns) -> Any:
        from bayesgen.estimators import _levels

        return _levels.adapt(stats, old, new)

    def _join_columns(self, a: Columns, b: Columns) -> Columns:
        from bayesgen.estimators import _levels

        joined = super()._join_columns(a, b)
        pairs = zip(a.levels or (), b.levels or (), strict=True)
        return replace(joined, levels=tuple(_levels.union(p, q, j, joined.names) for j, (p, q) in enumerate(pairs)))

    def _decode(self, x: np.ndarray, columns: Columns) -> np.ndarray:
        values = [levels[x[:, j]] for j, levels in enumerate(columns.levels or ())]
        if all(v.dtype.kind in "iu" for v in values):
            return np.column_stack(values)
        return np.column_stack([v.astype(object) for v in values])

    @property
    def alpha_(self) -> Any:
        """The concentration in use: a number, or an array that broadcasts to (n_classes, n_features)."""
        return self._fit_value.features.prior.alpha

    @property
    def categories_(self) -> list[np.ndarray]:
        """Levels of each column, in the order of the probabilities."""
        return list(self._state().columns.levels or ())

    @property
    def n_categories_(self) -> np.ndarray:
        """Number of levels of each column, (n_features,)."""
        return np.array([len(v) for v in self.categories_], dtype=np.int64)

    @property
    def category_count_(self) -> list[np.ndarray]:
        """Weighted level counts of each column, (n_classes, n_categories) each."""
        fit = self._fit_value
        return fit.features.stated._columns(fit.features.stats.level_count)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """The route's log level probabilities of each column, (n_classes, n_categories) each."""
        fit = self._fit_value
        return fit.features.stated._columns(fit.features.params.log_prob)

    def _logistic_encoder(self) -> Any:
        from sklearn.preprocessing import OneHotEncoder

        levels = self.categories_
        most = max(len(v) for v in levels)
        shown = np.column_stack([np.resize(v, most).astype(object) for v in levels])
        if all(v.dtype.kind in "iuf" for v in levels):
            shown = shown.astype(float)
        return OneHotEncoder(categories=[v.astype(shown.dtype) for v in levels]).fit(shown)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
