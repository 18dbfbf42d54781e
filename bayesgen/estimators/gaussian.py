"""Gaussian naive Bayes and Gaussian discriminant analysis."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np

from bayesgen.estimators import _input
from bayesgen.estimators._axes import DiscriminantAxes, check_components
from bayesgen.estimators._base import GenerativeBase
from bayesgen.estimators._options import DROP_NAN, check_choice, check_missing, own_prior
from bayesgen.estimators._parts import by_parts
from bayesgen.estimators._prediction import warn_impossible
from bayesgen.families._all import (
    Gaussian,
    MultivariateGaussian,
    PerClassMultivariateGaussian,
    SharedVarianceGaussian,
)
from bayesgen.families.base import Labels
from bayesgen.families.moments import overall_mean
from bayesgen.families.normal_statistics import column_stats
from bayesgen.fit import ROUTES
from bayesgen.learning import Evidence
from bayesgen.own_priors import WithOwnPrior, is_distribution
from bayesgen.priors import NormalInverseGamma, NormalInverseWishart
from bayesgen.statistics import Columns

__all__ = ["GaussianDiscriminantAnalysis", "GaussianNB"]


@functools.cache
def default_prior(kind: type) -> Any:
    """The default value of a kind of prior, made and checked once."""
    return kind()


class _GaussianBase(GenerativeBase):
    """What the two Gaussian estimators share."""

    _routes: ClassVar[tuple[str, ...]] = ROUTES
    prior: Any
    priors: Any
    missing: str

    def _given_class_prior(self) -> tuple[Any, str]:
        if self.priors is None:
            return self.class_prior, "class_prior"
        if self.class_prior is not None:
            raise ValueError("priors is another name of class_prior; pass one of them")
        return self.priors, "priors"

    def _check_prior(self, kind: type) -> Any:
        """The prior as a value of `kind`, "reference" or "evidence"."""
        if self.prior is None:
            return default_prior(kind)
        if isinstance(self.prior, kind) or (isinstance(self.prior, str) and self.prior in ("reference", "evidence")):
            return self.prior
        if own_prior(self.prior) is not None:
            return kind()
        if is_distribution(self.prior):
            raise ValueError(
                f"prior is a {type(self.prior).__name__} distribution, of which it is not known what it is a prior of: "
                f"put distributions into the fields of {kind.__name__}, or pass a function that declares NumPyro sites"
            )
        raise ValueError(
            f"prior must be a {kind.__name__}, 'evidence', 'reference', a function that declares NumPyro sites, or "
            f"None; got {self.prior!r}"
        )

    def _own_prior(self) -> Any:
        return own_prior(self.prior)

    def _stats(self, stated: Any, x: Any, labels: Labels, columns: Columns) -> Any:
        return stated.stats(x, labels, columns.names)

    @by_parts
    def decision_function(self, X: Any) -> np.ndarray:
        """Two classes: the log odds of the second, (n_samples,); more: ln p(x, y), (n_samples, n_classes).

        Parameters
        ----------
        X : array or data frame, (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray (n_samples,) or (n_samples, n_classes)
            In nats.
        """
        joint = self._fit_value.log_scores(self._rows(X))
        if joint.shape[1] != 2:
            return joint
        warn_impossible(joint.max(axis=-1))
        with np.errstate(invalid="ignore"):
            return joint[:, 1] - joint[:, 0]

    def _logistic_encoder(self) -> Any:
        self._refuse_exact_logistic("the predictive is a Student t")
        return None


class GaussianNB(_GaussianBase):
    r"""Naive Bayes on measurements: independent normal columns.

    Parameters
    ----------
    variance : {"per_class", "shared"}, default="per_class"
        A variance for each class and column, or one for each column.
    prior : NormalInverseGamma, "reference", callable or None, default=None
        None: ``NormalInverseGamma()``, scaled by the data, equivariant under a change of unit; its evidence uses
        the data twice, so state a prior to compare by evidence. "reference": the improper prior proportional to
        1 / variance. NumPyro distributions for its fields make them random, a function declares NumPyro sites of your
        own; both need "nuts" or "importance".
    priors : array (n_classes,), optional
        scikit-learn's name of `class_prior`.
    missing : {"marginalize", "error"}, default="marginalize"
        NaN cells are integrated out, or refused.
    inference : {"exact", "mean", "map", "mle", "unbiased", "nuts", "importance"} or their options, default="exact"
        "unbiased" is "mle" with variances S / (n - 1) (shared: pooled S / (M - K)).
    class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, class_prior_, theta_, var_, prior_, posterior_, statistics_,
    log_evidence_, log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_

    Notes
    -----
    There is no ``var_smoothing``: a floor tied to the largest variance of all columns changes with the unit of a
    column. A column that is constant in a class has no maximum-likelihood density (an error that names both);
    the default prior gives it one.

    Examples
    --------
    >>> from bayesgen import GaussianNB
    >>> model = GaussianNB().fit([[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1])
    >>> model.predict([[1.4], [5.2]]).tolist()
    [0, 1]

    References
    ----------
    BDA3 sections 3.2-3.3; Murphy 2012, section 4.6.
    """

    def __init__(
        self,
        *,
        variance: str = "per_class",
        prior: Any = None,
        priors: Any = None,
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
        self.variance = variance
        self.prior = prior
        self.priors = priors
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
        _input.check_finite(X, columns.names, self.missing == "marginalize", DROP_NAN, squares=True)
        return X

    def _stated(self, columns: Columns, n_classes: int) -> Gaussian | SharedVarianceGaussian:
        check_choice("variance", self.variance, ("per_class", "shared"))
        kind = Gaussian if self.variance == "per_class" else SharedVarianceGaussian
        prior = self._check_prior(NormalInverseGamma)
        if isinstance(prior, str) and prior == "evidence":
            return kind(None, 0.0, Evidence(), Evidence(), None, n_classes, columns.n_features)
        if isinstance(prior, str):
            shape = -0.5 if self.variance == "per_class" else -0.5 * n_classes
            return kind(None, 0.0, 0.0, shape, 0.0, n_classes, columns.n_features)
        return kind(
            prior.mean,
            prior.mean_low,
            prior.mean_precision,
            prior.shape,
            prior.scale,
            n_classes,
            columns.n_features,
        )

    @property
    def prior_(self) -> Any:
        """The prior with every hyperparameter resolved."""
        p = self._fit_value.features.prior
        if isinstance(p, WithOwnPrior):
            return p.own
        return NormalInverseGamma(p.loc, p.mean_precision, p.shape, p.scale, p.loc_low)

    @property
    def class_prior_(self) -> np.ndarray:
        """The route's class probabilities, (n_classes,)."""
        return np.exp(self._fit_value.log_class)

    @property
    def theta_(self) -> np.ndarray:
        """The route's means, (n_classes, n_features), in the units of the columns."""
        return self._fit_value.features.params.mean

    @property
    def var_(self) -> np.ndarray:
        """The route's variances, (n_classes, n_features)."""
        return np.array(self._fit_value.features.params.variance)


class GaussianDiscriminantAnalysis(DiscriminantAxes, _GaussianBase):
    r"""Classes that are multivariate normal, with a shared or a per-class covariance.

    With ``inference="mle"`` it is the textbook model: means :math:`\bar x_k` and the shared covariance
    :math:`\frac1m\sum_i (x_i - \mu_{y_i})(x_i - \mu_{y_i})^\top` (linear discriminant analysis), or
    :math:`S_k/n_k` (quadratic). The default route integrates means and covariance out; the predictive of a class
    is a multivariate t.

    Parameters
    ----------
    covariance : {"shared", "per_class"}, default="shared"
    prior : NormalInverseWishart, LKJPrior, HierarchicalCovariancePrior, "reference", callable or None, default=None
        None: ``NormalInverseWishart()``, scaled by the data, equivariant under a change of unit; its evidence uses
        the data twice, so state a prior to compare by evidence. "reference": the improper prior of Geisser (1964).
        Priors without a closed form (LKJ, hierarchical, NumPyro distributions for fields, a function that declares
        NumPyro sites) need "nuts" or "importance".
    priors : array (n_classes,), optional
        scikit-learn's name of `class_prior`.
    n_components : int, optional
        How many discriminant axes `transform` gives; default: all, min(n_classes - 1, n_features).
    missing : {"error", "marginalize"}, default="error"
        With "marginalize", NaN cells are integrated out: at prediction by every route, at fit by "map" and "mle"
        (by EM, the cells taken as missing at random) and "nuts". The other routes have no closed form then, nor has
        the evidence or leave-one-out; rows with nothing observed count for the class probabilities alone.
    inference : {"exact", "mean", "map", "mle", "unbiased", "nuts", "importance"} or their options, default="exact"
        "unbiased" is "mle" with the scatter divided by m - K (per class: n_k - 1).
    class_alpha, class_prior, fit_prior, likelihood_power : see `BernoulliNB`
    unlabelled, unlabelled_weight, n_init, random_state : see `BernoulliNB`

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, priors_, means_, covariance_, xbar_, prior_, posterior_,
    statistics_, log_evidence_, log_evidence_parts_, n_features_in_, feature_names_in_, coef_, intercept_, scalings_,
    explained_variance_ratio_, log_posterior_trace_

    Notes
    -----
    In place of ``shrinkage`` and ``reg_param`` there is the prior: its scale shrinks the covariance towards a
    diagonal, and its strength can be compared by evidence. There are no solvers to choose from.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantAnalysis
    >>> X = [[0, 0], [2, 1], [1, 2], [5, 4], [6, 6], [7, 5]]
    >>> model = GaussianDiscriminantAnalysis(inference="mle").fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.coef_.round(6).tolist(), model.intercept_.round(6).tolist()
    ([[6.0, 3.0]], [-30.0])

    References
    ----------
    Geisser 1964, *Posterior odds for multivariate normal classifications*; Little and Rubin 2002, *Statistical Analysis
    with Missing Data*, chapter 11; Murphy 2012, sections 4.2 and 4.6.3.
    """

    def __init__(
        self,
        *,
        covariance: str = "shared",
        prior: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        missing: str = "error",
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
        self.covariance = covariance
        self.prior = prior
        self.priors = priors
        self.n_components = n_components
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
        advice = "Use missing='marginalize' to integrate missing cells out"
        if purpose == "fit":
            advice += (
                ", with inference='map', 'mle' or 'nuts': a full covariance with missing cells in training rows has no "
                "other closed form. Or drop the rows, or use GaussianNB"
            )
        _input.check_finite(X, columns.names, self.missing == "marginalize", advice, squares=True)
        return X

    def _stated(self, columns: Columns, n_classes: int) -> MultivariateGaussian | PerClassMultivariateGaussian:
        check_choice("covariance", self.covariance, ("shared", "per_class"))
        check_components(self.n_components, n_classes, columns.n_features)
        kind = MultivariateGaussian if self.covariance == "shared" else PerClassMultivariateGaussian
        prior = self._check_prior(NormalInverseWishart)
        d = columns.n_features
        if isinstance(prior, str) and prior == "evidence":
            return kind(None, 0.0, Evidence(), Evidence(), None, n_classes, d)
        if isinstance(prior, str):
            df = -float(n_classes) if self.covariance == "shared" else -1.0
            return kind(None, 0.0, 0.0, df, np.zeros((d, d)), n_classes, d)
        scale = prior.scale
        per_class = self.covariance == "per_class"
        shapes = {
            "mean": [(), (d,), (n_classes, d)],
            "mean_low": [(), (d,), (n_classes, d)],
            "mean_precision": [(), (n_classes,)],
            "df": [(), (n_classes,)] if per_class else [()],
            "scale": [(d, d), (n_classes, d, d)] if per_class else [(d, d)],
        }
        for name, allowed in shapes.items():
            value = getattr(prior, name)
            if value is not None and not is_distribution(value) and np.shape(value) not in allowed:
                raise ValueError(
                    f"prior.{name} has shape {np.shape(value)}; "
                    f"with covariance={self.covariance!r} expected one of {allowed}"
                )
        nu = None if is_distribution(prior.df) else prior.df
        if scale is None and nu is not None and not np.all(np.asarray(nu) > d + 1):
            raise ValueError(
                f"prior.scale=None sets E[covariance], which needs df > n_features + 1 = {d + 1}; got df={prior.df!r}"
            )
        return kind(prior.mean, prior.mean_low, prior.mean_precision, prior.df, scale, n_classes, d)

    @property
    def prior_(self) -> Any:
        """The prior with every hyperparameter resolved."""
        p = self._fit_value.features.prior
        if isinstance(p, WithOwnPrior):
            return p.own
        return NormalInverseWishart(p.loc, p.mean_precision, p.df, p.scale, p.loc_low)

    @property
    def priors_(self) -> np.ndarray:
        """The route's class probabilities, (n_classes,)."""
        return np.exp(self._fit_value.log_class)

    @property
    def means_(self) -> np.ndarray:
        """The route's class means, (n_classes, n_features), in the units of the columns."""
        return self._fit_value.features.params.mean

    @property
    def covariance_(self) -> np.ndarray:
        """The route's covariance: (n_features, n_features), or one for each class with "per_class"."""
        return self._fit_value.features.params.covariance

    @property
    def xbar_(self) -> np.ndarray:
        """Overall mean of the training rows, (n_features,)."""
        return overall_mean(*column_stats(self._fit_value.features.stats)[:3])[0]

    @property
    def log_posterior_trace_(self) -> np.ndarray:
        """Log posterior density (``"mle"``: log likelihood) of the observed cells at each step of EM, in nats.

        There where training rows have missing cells; without the class labels, whose probabilities have a closed form.
        With unlabelled rows see `BernoulliNB`.
        """
        trace = getattr(self._fit_value.features, "trace", None)
        return super().log_posterior_trace_ if trace is None else trace
