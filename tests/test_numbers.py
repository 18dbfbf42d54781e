"""Every closed-form number of every estimator and route, against arithmetic with 60 digits (`oracle`).

The reference is textbook code that shares nothing with the library. Agreement is asked to 1e-10 relative: the
terms of a log density are of the size of their sum unless a test says otherwise. A log probability is a
difference of log joints, so next to zero it carries their rounding; `normalised` allows for that.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import (
    BernoulliOracle,
    CategoricalOracle,
    GaussianOracle,
    GDAOracle,
    MixedOracle,
    MultinomialOracle,
    PoissonOracle,
    Undefined,
    as_float,
    default_nig,
    default_niw,
    logsumexp,
    reference_nig,
    reference_niw,
    softmax_log,
)

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Gamma,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NormalInverseWishart,
    PoissonNB,
    UndefinedNumberError,
    ZeroProbabilityWarning,
    families,
)

RTOL = 1e-10
EPS = np.finfo(float).eps
NAN = float("nan")

# A mode on the boundary (concentration below one) is announced; the numbers are the subject here.
pytestmark = pytest.mark.filterwarnings("ignore:.*on the boundary:UserWarning")


def agree(actual, desired, slack=0.0):
    """Equal to 1e-10 relative, plus an absolute `slack` (an array of the same shape, or a number)."""
    actual, desired = np.asarray(actual, dtype=float), np.asarray(desired, dtype=float)
    assert actual.shape == desired.shape
    finite = np.isfinite(desired)
    np.testing.assert_array_equal(np.where(finite, 0.0, actual), np.where(finite, 0.0, desired))
    assert np.isfinite(actual[finite]).all()
    error = np.abs(np.where(finite, actual, 0.0) - np.where(finite, desired, 0.0))
    bound = RTOL * np.abs(np.where(finite, desired, 0.0)) + slack
    worst = np.argmax(error - bound) if error.size else 0
    assert (error <= bound).all(), (actual.flat[worst], desired.flat[worst])


def rounding(*terms):
    """Absolute rounding error of a sum: 32 units in the last place of its terms."""
    return 32 * EPS * sum(np.where(np.isfinite(t), np.abs(t), 0.0) for t in terms)


def normalised(actual, desired, joint):
    """Log probabilities agree up to the rounding of the log joints whose difference they are."""
    agree(actual, desired, rounding(joint, joint.max(axis=1, keepdims=True)))


# ------------------------------------------------------------------------------------------------ data

CODES = np.array([0, 1, 2, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2, 0])
NAMES = np.array(["ash", "beech", "cedar"])
Y = NAMES[CODES]
WEIGHTS = {
    "unweighted": None,
    "whole weights": np.array([1, 2, 1, 0, 3, 1, 2, 1, 1, 2, 1, 1, 3, 1.0]),
    "fractional weights": np.array([0.5, 1.25, 1, 2, 0.75, 1.5, 0.55, 1, 1.3, 0.9, 2.2, 1.7, 1, 0.6]),
}
_rng = np.random.default_rng(7)
BITS = (_rng.random((14, 4)) < [[0.2, 0.5, 0.7, 0.9]]).astype(float)
COUNTS = _rng.poisson([[3, 0.6, 1.5, 0.3]], size=(14, 4)).astype(float)
LEVELS = np.column_stack([_rng.integers(0, s, 14) for s in (3, 2, 4)])
LEVELS[0], LEVELS[1] = [2, 1, 3], [0, 0, 0]
REALS = _rng.normal(size=(14, 2)) * [1.5, 40] + [3, -20] + CODES[:, None] * [1, 25]
ARRAY_2 = np.array([0.5, 2.0])
ARRAY_4 = np.array([0.5, 1.0, 2.0, 3.5])
TABLE_4 = np.array([[0.5, 1.0, 2.0, 3.5], [1.5, 0.25, 1.0, 2.0], [3.0, 1.0, 0.75, 1.0]])
SCALE = np.array([[2.0, 5.0], [5.0, 900.0]])
ROUTES = ("mle", "map", "mean", "exact")
GAUSSIAN_ROUTES = ("mle", "unbiased", "map", "mean", "exact")


class Case(NamedTuple):
    """One model: how the library and the reference are told of it, and its rows."""

    name: str
    make: Any  # keywords -> estimator
    oracle: Any
    X: np.ndarray
    routes: tuple = ROUTES

    @property
    def new(self):
        """Rows to score: all training rows but two (under "mle" others could be impossible everywhere)."""
        return self.X[2:]


def bernoulli(name, a, b=None, alpha=None):
    b = a if b is None else b
    return Case(name, lambda **kw: BernoulliNB(alpha=a if alpha is None else alpha, **kw), BernoulliOracle(a, b), BITS)


def multinomial(name, alpha, coef=False):
    def make(**kw):
        return MultinomialNB(alpha=alpha, multinomial_coefficient=coef, **kw)

    return Case(name, make, MultinomialOracle(alpha, coef), COUNTS)


def categorical(name, alpha, least=None):
    levels = None if least is None else np.maximum(least, [3, 2, 4])
    return Case(
        name,
        lambda **kw: CategoricalNB(alpha=alpha, min_categories=least, **kw),
        CategoricalOracle(alpha, levels),
        LEVELS,
    )


def poisson(name, a, b):
    return Case(name, lambda **kw: PoissonNB(prior=Gamma(a, b), **kw), PoissonOracle(a, b), COUNTS)


def gaussian(name, shared, prior=None, m=None, kappa=0.01, a=1.5, b=None):
    def make(**kw):
        given = NormalInverseGamma(m, kappa, a, b) if prior is None else prior
        return GaussianNB(variance="shared" if shared else "per_class", prior=given, **kw)

    oracle = GaussianOracle(m, kappa, a, b, shared)
    if prior == "reference":
        oracle = GaussianOracle(**reference_nig(3, shared))
    return Case(name, make, oracle, REALS, GAUSSIAN_ROUTES)


def gda(name, shared, prior=None, m=None, kappa=0.01, df=None, scale=None):
    def make(**kw):
        given = NormalInverseWishart(m, kappa, df, scale) if prior is None else prior
        return GaussianDiscriminantAnalysis(covariance="shared" if shared else "per_class", prior=given, **kw)

    oracle = GDAOracle(m, kappa, df, scale, shared)
    if prior == "reference":
        oracle = GDAOracle(**reference_niw(3, 2, shared))
    return Case(name, make, oracle, REALS, GAUSSIAN_ROUTES)


MEANS = np.array([[0.0, 1.0], [2.0, -3.0], [5.0, 20.0]])
KAPPAS = np.array([[0.1, 1.0], [2.0, 0.5], [1.0, 3.0]])
SHAPES = np.array([[0.75, 1.5], [2.0, 3.0], [1.2, 0.6]])
SCALES = np.array([[1.0, 200.0], [0.5, 40.0], [3.0, 900.0]])

CASES = [
    bernoulli("Bernoulli", 1.0),
    bernoulli("Bernoulli, a pair", 0.5, 2.0, alpha=(0.5, 2.0)),
    bernoulli("Bernoulli, by column", ARRAY_4),
    bernoulli("Bernoulli, by class and column", TABLE_4),
    bernoulli("Bernoulli, a pair of arrays", TABLE_4, ARRAY_4, alpha=(TABLE_4, ARRAY_4)),
    multinomial("multinomial", 1.0),
    multinomial("multinomial, Perks", 0.25),
    multinomial("multinomial, by column, coefficient", ARRAY_4, True),
    multinomial("multinomial, by class and column", TABLE_4),
    categorical("categorical", 1.0),
    categorical("categorical, by column", ARRAY_4[:3]),
    categorical("categorical, by class and column, more levels", TABLE_4[:, :3], np.array([3, 4, 6])),
    poisson("Poisson", 1.0, 1.0),
    poisson("Poisson, stated", 0.25, 0.5),
    poisson("Poisson, by column", ARRAY_4, 0.5),
    poisson("Poisson, by class and column", TABLE_4, TABLE_4[::-1].copy()),
    gaussian("normal", False),
    gaussian("normal, shared", True),
    gaussian("normal, stated", False, m=1.0, kappa=0.5, a=2.0, b=3.0),
    gaussian("normal, shared, by column", True, m=MEANS[1], kappa=ARRAY_2, a=ARRAY_2, b=SCALES[0]),
    gaussian("normal, by class and column", False, m=MEANS, kappa=KAPPAS, a=SHAPES, b=SCALES),
    gaussian("normal, shared, means by class", True, m=MEANS, kappa=KAPPAS, a=2.5, b=SCALES[2]),
    gaussian("normal, reference", False, prior="reference"),
    gaussian("normal, shared, reference", True, prior="reference"),
    gda("GDA", True),
    gda("GDA, per class", False),
    gda("GDA, stated", True, m=MEANS[0], kappa=0.5, df=3.5, scale=SCALE),
    gda("GDA, means by class", True, m=MEANS, kappa=ARRAY_4[1:], df=6.0, scale=SCALE),
    gda(
        "GDA, per class, everything by class",
        False,
        m=MEANS,
        kappa=ARRAY_4[1:],
        df=np.array([2.5, 4.0, 9.0]),
        scale=np.stack([SCALE, 2 * SCALE, np.eye(2)]),
    ),
    gda("GDA, reference", True, prior="reference"),
    gda("GDA, per class, reference", False, prior="reference"),
]


def mixed_blocks(route=None):
    """Six blocks over all columns: (name, estimator, columns) with a route each."""
    routes = ["exact"] * 6 if route is None else [route] * 6 if isinstance(route, str) else route
    return [
        ("present", BernoulliNB(alpha=0.5, inference=routes[0]), slice(0, 4)),
        ("level", CategoricalNB(alpha=ARRAY_4[:3], inference=routes[1]), [4, 5, 6]),
        ("number", GaussianNB(inference=routes[2]), [8, 7]),
        ("rate", PoissonNB(prior=Gamma(2.0, 0.5), inference=routes[3]), [9, 10]),
        ("words", MultinomialNB(alpha=2.0, inference=routes[4]), [11, 12]),
        ("vector", GaussianDiscriminantAnalysis(inference=routes[5]), [13, 14]),
    ]


MIXED_X = np.column_stack([BITS, LEVELS, REALS, COUNTS, REALS[:, ::-1] ** 2])
MIXED_ORACLE = MixedOracle(
    [
        (BernoulliOracle(0.5, 0.5), range(4)),
        (CategoricalOracle(ARRAY_4[:3]), [4, 5, 6]),
        (GaussianOracle(), [8, 7]),
        (PoissonOracle(2.0, 0.5), [9, 10]),
        (MultinomialOracle(2.0), [11, 12]),
        (GDAOracle(), [13, 14]),
    ]
)


def make_mixed(inference="exact", **kw):
    return MixedNB(blocks=mixed_blocks(inference), inference=inference, **kw)


CASES.append(Case("mixed", make_mixed, MIXED_ORACLE, MIXED_X))


def general(name, like):
    """The general estimator with a family of this name, and the case it must agree with."""
    family = families.Poisson(0.25, 0.5) if name == "a Poisson value" else name
    return like._replace(name=f"general, {name}", make=lambda **kw: GenerativeClassifier(family=family, **kw))


BY_NAME = {case.name: case for case in CASES}
CASES += [
    general(name, BY_NAME[like])
    for name, like in {
        "bernoulli": "Bernoulli",
        "multinomial": "multinomial",
        "categorical": "categorical",
        "poisson": "Poisson",
        "gaussian": "normal",
        "gaussian_shared_variance": "normal, shared",
        "multivariate_gaussian": "GDA",
        "multivariate_gaussian_per_class": "GDA, per class",
        "a Poisson value": "Poisson, stated",
    }.items()
]
BY_NAME = {case.name: case for case in CASES}
# One model of each family, for what does not depend on how its prior is written.
FEW = [
    BY_NAME[name]
    for name in (
        "Bernoulli",
        "multinomial",
        "categorical",
        "Poisson",
        "normal, stated",
        "normal, shared",
        "GDA",
        "GDA, per class",
        "mixed",
    )
]


def each(cases=CASES):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def each_route(cases=CASES):
    pairs = [(case, route) for case in cases for route in case.routes]
    return pytest.mark.parametrize(("case", "route"), pairs, ids=[f"{c.name}-{r}" for c, r in pairs])


weighted = pytest.mark.parametrize("weights", WEIGHTS)


_LEARNED: dict[str, Any] = {}


def reference(case, weights="unweighted", K=3, **stated):
    """The reference conditioned on the rows of a case; arithmetic with 60 digits is slow, so only once."""
    key = f"{id(case.oracle)} {weights} {K} {stated}"
    if key not in _LEARNED:
        _LEARNED[key] = case.oracle.fit(case.X, CODES, K, w=WEIGHTS[weights], **stated)
    return _LEARNED[key]


# ----------------------------------------------------------------------------------- what is compared


def library_parameters(model):
    """The estimator's parameter attributes under the names of the reference."""
    if isinstance(model, BernoulliNB):
        return {"p": np.exp(model.feature_log_prob_)}
    if isinstance(model, MultinomialNB):
        return {"theta": np.exp(model.feature_log_prob_)}
    if isinstance(model, CategoricalNB):
        return {"theta": [np.exp(table) for table in model.feature_log_prob_]}
    if isinstance(model, PoissonNB):
        return {"rate": model.rate_}
    if isinstance(model, GaussianNB):
        return {"mean": model.theta_, "variance": model.var_}
    if isinstance(model, GaussianDiscriminantAnalysis):
        return {"mean": model.means_, "covariance": model.covariance_}
    if isinstance(model, MixedNB):
        return {"blocks": [library_parameters(block) for _, block, _ in model.blocks_]}
    found = model.params_._asdict()
    low = found.pop("mean_low", None)
    if low is not None:
        found["mean"] = found["mean"] + low
    # Presence and absence are two tables, levels of all columns stand in one.
    names = {"rate": "rate", "mean": "mean", "variance": "variance", "covariance": "covariance"}
    return {names[key]: value for key, value in found.items() if key in names}


def agree_parameters(found, expected):
    for name, value in found.items():
        if name == "blocks":
            for part, wanted in zip(value, expected[name], strict=True):
                agree_parameters(part, wanted)
            continue
        desired = as_float(expected[name])
        if isinstance(value, list):
            assert len(value) == len(desired)
            for table, wanted in zip(value, desired, strict=True):
                agree(table, wanted)
        else:  # a shared variance is shown in every class
            agree(value, np.broadcast_to(desired, np.shape(value)))


def exact_joint(fit, new, route):
    """The reference's log joint in 60 digits, computed once; None where it is undefined."""
    kept = fit.__dict__.setdefault("joints", {})
    key = route, np.asarray(new, dtype=float).tobytes()
    if key not in kept:
        try:
            kept[key] = fit.log_joint(new, route)
        except Undefined:
            kept[key] = None
    return kept[key]


def is_undefined(fit, new, route):
    return exact_joint(fit, new, route) is None


def agree_predictions(model, fit, new, route):
    """All four predictions of a route."""
    exact = exact_joint(fit, new, route)
    joint = as_float(exact)
    agree(model.predict_joint_log_proba(new), joint)
    agree(model.score_samples(new), as_float([logsumexp(row) for row in exact]), rounding(joint.max(axis=1)))
    log_proba = as_float([softmax_log(row) for row in exact])
    normalised(model.predict_log_proba(new), log_proba, joint)
    np.testing.assert_allclose(model.predict_proba(new), np.exp(log_proba), rtol=RTOL, atol=1e-14)


def exact_loo(fit):
    """The reference's leave-one-out by refits, computed once."""
    if "loo_table" not in fit.__dict__:
        fit.loo_table = fit.loo()
    return fit.loo_table


def agree_loo(result, fit, codes):
    exact = exact_loo(fit)
    table = as_float(exact)
    own = np.arange(len(codes)), codes
    conditional = as_float([softmax_log(row) for row in exact])[own]
    agree(result.log_joint, table)
    agree(result.joint, table[own])
    slack = np.where(np.isnan(table[own]), 0.0, rounding(table[own], table.max(axis=1)))
    agree(result.conditional, conditional, slack)
    agree(result.elpd_joint, table[own].sum())
    agree(result.elpd_conditional, conditional.sum(), slack.sum())


# ------------------------------------------------------------------------------ every number, every route


@weighted
@each_route()
def test_predictions_and_parameters_of_a_route(case, route, weights):
    fit = reference(case, weights)
    model = case.make(inference=route)
    if is_undefined(fit, case.new, route):
        with pytest.raises(UndefinedNumberError):
            model.fit(case.X, Y, WEIGHTS[weights])
        return
    model.fit(case.X, Y, WEIGHTS[weights])
    agree_predictions(model, fit, case.new, route)
    agree(np.exp(model.class_log_prior_), as_float(fit.class_probabilities(route)))
    agree(model.class_count_, as_float(fit.n))
    agree_parameters(library_parameters(model), fit.parameters(route))


@weighted
@each()
def test_evidence_in_its_two_parts(case, weights):
    fit = reference(case, weights)
    model = case.make().fit(case.X, Y, WEIGHTS[weights])
    try:
        log_y, log_x = as_float(fit.evidence_parts())
    except Undefined:
        with pytest.raises(UndefinedNumberError):
            model.log_evidence_  # noqa: B018
        assert not hasattr(model, "log_evidence_parts_")
        return
    agree(model.log_evidence_parts_["y"], log_y)
    agree(model.log_evidence_parts_["x_given_y"], log_x)
    agree(model.log_evidence_, log_y + log_x)


@weighted
@each()
def test_leave_one_out_equals_refits(case, weights):
    fit = reference(case, weights)
    model = case.make().fit(case.X, Y, WEIGHTS[weights])
    if np.isnan(as_float(exact_loo(fit))).any():
        with pytest.warns(ZeroProbabilityWarning, match="no leave-one-out density"):
            result = model.loo(case.X, Y, WEIGHTS[weights])
    else:
        result = model.loo(case.X, Y, WEIGHTS[weights])
    agree_loo(result, fit, CODES)


@pytest.mark.parametrize("route", ["mle", "map", "mean"])
@each(FEW)
def test_leave_one_out_and_evidence_are_of_the_exact_route_whatever_the_route(case, route):
    model = case.make(inference=route).fit(case.X, Y)
    agree_loo(model.loo(case.X, Y), reference(case), CODES)
    agree(model.log_evidence_, as_float(reference(case).evidence()))


def test_leave_one_out_of_some_of_the_learned_rows():
    case = BY_NAME["GDA, per class"]
    model = case.make().fit(case.X, Y)
    with pytest.warns(UserWarning, match=r"rows that were learned.*For new rows"):
        some = model.loo(case.X[3:9], Y[3:9])
    agree(some.log_joint, as_float(exact_loo(reference(case)))[3:9])


@each(FEW)
def test_leave_one_out_of_rows_that_were_not_learned_warns(case):
    model = case.make().fit(case.X, Y)
    others = case.X[::-1] if sp.issparse(case.X) else np.roll(case.X, 1, axis=0)  # with the labels of other rows
    with pytest.warns(UserWarning, match="not those that were learned"):
        model.loo(others, Y)


@pytest.mark.filterwarnings("ignore:loo is of rows that were learned")
def test_leave_one_out_of_an_outlier_needs_all_the_other_rows():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    X[0, 0] = 1e7
    model = GaussianNB(prior=NormalInverseGamma(mean=0.0, mean_precision=1.0, shape=2.0, scale=1.0)).fit(X, y)
    whole = model.loo(X, y)
    agree(model.loo(X[1:20], y[1:20]).joint, whole.joint[1:20])
    with pytest.raises(UndefinedNumberError, match="pass all the rows that were learned"):
        model.loo(X[:20], y[:20])


# ------------------------------------------------------------------------------------ default priors


@weighted
def test_data_scaled_default_priors(weights):
    w = WEIGHTS[weights]
    nig = as_float(default_nig(REALS, CODES, 3, w))
    for variance in ("per_class", "shared"):
        prior = GaussianNB(variance=variance).fit(REALS, Y, w).prior_
        agree(prior.mean + prior.mean_low, nig["m"])
        agree(prior.scale, nig["b"])
        assert (prior.mean_precision, prior.shape) == (0.01, 1.5)
    niw = as_float(default_niw(REALS, CODES, 3, w))
    for covariance in ("shared", "per_class"):
        prior = GaussianDiscriminantAnalysis(covariance=covariance).fit(REALS, Y, w).prior_
        agree(prior.mean + prior.mean_low, niw["m0"])
        agree(prior.scale, niw["Psi0"])
        assert (prior.mean_precision, prior.df) == (0.01, 4.0)
    assert PoissonNB().fit(COUNTS, Y, w).prior_ == Gamma(1.0, 1.0)


def test_default_scale_of_columns_without_spread():
    # constant in each class, constant altogether
    X = np.column_stack([CODES * 2.0, np.full(14, 5.0), REALS[:, 0]])
    nig, niw = as_float(default_nig(X, CODES, 3)), as_float(default_niw(X, CODES, 3))
    assert nig["b"][1] == 0.5
    agree(GaussianNB().fit(X, Y).prior_.scale, nig["b"])
    agree(GaussianDiscriminantAnalysis().fit(X, Y).prior_.scale, niw["Psi0"])


def test_a_partly_stated_prior_keeps_what_is_stated():
    prior = NormalInverseWishart(mean=[1.0, 2.0], df=7.0)
    case = Case(
        "", lambda **kw: GaussianDiscriminantAnalysis(prior=prior, **kw), GDAOracle([1.0, 2.0], 0.01, 7.0), REALS
    )
    fit = case.oracle.fit(REALS, CODES, 3)
    model = case.make().fit(REALS, Y)
    agree_predictions(model, fit, case.new, "exact")
    agree(model.prior_.scale, as_float(default_niw(REALS, CODES, 3, df=7.0))["Psi0"])
    nig = NormalInverseGamma(mean=2.0, shape=3.0)
    other = GaussianOracle(2.0, 0.01, 3.0).fit(REALS, CODES, 3)
    agree(GaussianNB(prior=nig).fit(REALS, Y).predict_joint_log_proba(REALS), as_float(other.log_joint(REALS)))


@pytest.mark.parametrize("name", ["normal", "normal, shared", "GDA", "GDA, per class", "Poisson"])
def test_the_resolved_prior_can_be_handed_back(name):
    case = BY_NAME[name]
    model = case.make().fit(case.X, Y)
    again = model.__class__(**{**model.get_params(), "prior": model.prior_}).fit(case.X, Y)
    np.testing.assert_array_equal(again.predict_joint_log_proba(case.X), model.predict_joint_log_proba(case.X))
    assert again.log_evidence_ == model.log_evidence_


# ------------------------------------------------------------------------------------ class probabilities

CLASS_OPTIONS = {
    "relative frequencies": ({"class_alpha": 0}, {"class_alpha": 0}),
    "an array of concentrations": ({"class_alpha": [2.0, 0.5, 3.0]}, {"class_alpha": [2.0, 0.5, 3.0]}),
    "known": ({"class_prior": [0.2, 0.5, 0.3]}, {"class_prior": [0.2, 0.5, 0.3]}),
    "known, one of them zero": ({"class_prior": [0.25, 0.75, 0.0]}, {"class_prior": [0.25, 0.75, 0.0]}),
    "all the same": ({"fit_prior": False}, {"class_prior": [1 / 3, 1 / 3, 1 / 3]}),
}


@pytest.mark.filterwarnings("ignore:.*rows have probability zero:UserWarning")
@pytest.mark.parametrize("option", CLASS_OPTIONS)
@each_route(FEW)
def test_class_probabilities(case, route, option):
    keywords, stated = CLASS_OPTIONS[option]
    fit = reference(case, **stated)
    model = case.make(inference=route, **keywords).fit(case.X, Y)
    agree(np.exp(model.class_log_prior_), as_float(fit.class_probabilities(route)))
    agree(model.predict_joint_log_proba(case.new), as_float(exact_joint(fit, case.new, route)))
    if option == "relative frequencies":
        with pytest.raises(UndefinedNumberError, match="class_alpha"):
            model.log_evidence_  # noqa: B018
    else:
        agree(model.log_evidence_parts_["y"], as_float(fit.evidence_parts()[0]))


@pytest.mark.parametrize("option", CLASS_OPTIONS)
@each([BY_NAME["Bernoulli"], BY_NAME["GDA"]])
def test_leave_one_out_downdates_the_class_probabilities_too(case, option):
    keywords, stated = CLASS_OPTIONS[option]
    fit = reference(case, **stated)
    result = case.make(**keywords).fit(case.X, Y).loo(case.X, Y)
    table = as_float(exact_loo(fit))
    agree(result.log_joint, table)
    agree(result.conditional, as_float(fit.elpd()).conditional_rows, 1e-12)


def test_weighted_leave_one_out_may_empty_a_class_without_class_smoothing():
    # the only row of "cedar" leaves: with class_alpha=0 its class has probability zero for that row
    X, codes = COUNTS[:6], np.array([0, 1, 0, 1, 0, 2])
    fit = MultinomialOracle().fit(X, codes, 3, class_alpha=0)
    result = MultinomialNB(class_alpha=0).fit(X, NAMES[codes]).loo(X, NAMES[codes])
    agree(result.log_joint, as_float(exact_loo(fit)))
    assert result.joint[5] == -np.inf
    assert result.elpd_joint == -np.inf


@each_route(FEW)
def test_class_probabilities_can_be_replaced_at_prediction(case, route):
    model = case.make(inference=route).fit(case.X, Y)
    shifted = reference(case, class_prior=[0.1, 0.6, 0.3])
    joint = as_float(shifted.log_joint(case.new, route))
    normalised(model.predict_log_proba(case.new, [0.1, 0.6, 0.3]), as_float(shifted.log_proba(case.new, route)), joint)
    assert model.predict(case.new, [0.1, 0.6, 0.3]).tolist() == NAMES[joint.argmax(axis=1)].tolist()


@pytest.mark.parametrize("class_alpha", [1.0, 2.0])
@each_route(FEW)
def test_a_declared_class_without_rows(case, route, class_alpha):
    names = np.array(["ash", "beech", "cedar", "dogwood"])  # no row of the last
    codes = CODES
    fit = reference(case, K=4, class_alpha=class_alpha)
    model = case.make(inference=route, class_alpha=class_alpha)
    if case.name == "mixed":
        model.set_params(level__alpha=ARRAY_4[:3])
    model.partial_fit(case.X, names[codes], classes=names)
    if is_undefined(fit, case.new, route):
        with pytest.raises(UndefinedNumberError, match="dogwood"):
            model.predict(case.new)
        return
    agree_predictions(model, fit, case.new, route)
    agree(model.log_evidence_, as_float(fit.evidence()))
    if route == "exact":
        agree_loo(model.loo(case.X, names[codes]), fit, codes)
    agree_parameters(library_parameters(model), fit.parameters(route))


# ------------------------------------------------------------------------------------ mixed columns


def test_blocks_with_routes_of_their_own():
    routes = ["mle", "mean", "unbiased", "exact", "map", "mle"]
    fit = reference(BY_NAME["mixed"])
    model = MixedNB(blocks=mixed_blocks(routes), inference="map").fit(MIXED_X, Y)
    agree(model.predict_joint_log_proba(MIXED_X[2:]), as_float(fit.log_joint(MIXED_X[2:], routes, class_route="map")))


def test_automatic_blocks_are_the_models_they_name():
    X = np.column_stack([BITS, LEVELS, REALS])
    two_valued = np.flatnonzero([np.isin(X[:, j], (0, 1)).all() for j in range(9)]).tolist()
    others = [j for j in (4, 5, 6) if j not in two_valued]
    oracle = MixedOracle([(BernoulliOracle(), two_valued), (CategoricalOracle(), others), (GaussianOracle(), [7, 8])])
    fit = oracle.fit(X, CODES, 3)
    model = MixedNB().fit(X, Y)
    assert [name for name, _, _ in model.blocks_] == ["bernoulli", "categorical", "gaussian"]
    agree_predictions(model, fit, X, "exact")
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(X, Y), fit, CODES)


# ------------------------------------------------------------------------------------ missing cells


def with_holes(X, seed, share=0.25):
    """X with missing cells: at random, one row wholly missing, one column missing in one class."""
    X = X.astype(float)
    rng = np.random.default_rng(seed)
    X[rng.random(X.shape) < share] = np.nan
    X[4] = np.nan
    X[CODES == 2, 1] = np.nan
    return X


HOLES = [
    BY_NAME[name]
    for name in (
        "Bernoulli",
        "Bernoulli, a pair of arrays",
        "categorical",
        "categorical, by class and column, more levels",
        "Poisson",
        "Poisson, by class and column",
        "normal",
        "normal, stated",
        "normal, shared",
        "normal, by class and column",
        "general, bernoulli",
        "general, categorical",
        "general, poisson",
        "general, gaussian",
        "general, gaussian_shared_variance",
    )
]


@weighted
@each_route(HOLES)
def test_missing_cells_are_left_out_at_fit_and_at_prediction(case, route, weights):
    w, X = WEIGHTS[weights], with_holes(case.X, 3)
    fit = case.oracle.fit(X, CODES, 3, w=w)
    model = case.make(inference=route)
    new = with_holes(case.X, 5)[[0, 2, 4, 6, 8, 10]]
    new[0], new[1] = case.X[0], np.nan  # a complete row and an empty one
    if np.isnan(as_float(fit.log_likelihood(case.X, route))).any():
        # A column of a class was never seen: no maximum-likelihood estimate. Rows that miss that column
        # could be scored, but the model as a whole cannot.
        with pytest.raises(UndefinedNumberError, match="cedar"):
            model.fit(X, Y, w)
        return
    model.fit(X, Y, w)
    joint = as_float(fit.log_joint(new, route))
    if np.isneginf(joint).all(axis=1).any():
        pytest.skip("the maximum-likelihood model gives this row probability zero in every class")
    agree_predictions(model, fit, new, route)
    agree_parameters(library_parameters(model), fit.parameters(route))
    np.testing.assert_allclose(model.predict_log_proba(new)[1], model.class_log_prior_, rtol=1e-14)


@weighted
@each(HOLES)
def test_evidence_and_leave_one_out_with_missing_cells(case, weights):
    w, X = WEIGHTS[weights], with_holes(case.X, 11)
    fit = case.oracle.fit(X, CODES, 3, w=w)
    model = case.make().fit(X, Y, w)
    agree(model.log_evidence_parts_["x_given_y"], as_float(fit.evidence_parts()[1]))
    agree_loo(model.loo(X, Y, w), fit, CODES)
    if "normal" in case.name:
        prior = as_float(default_nig(X, CODES, 3, w))
        if case.name in ("normal", "normal, shared"):
            agree(model.prior_.mean + model.prior_.mean_low, prior["m"])
            agree(model.prior_.scale, prior["b"])


@each_route([BY_NAME["Bernoulli"], BY_NAME["Poisson"], BY_NAME["normal"]])
def test_missing_cells_of_a_maximum_likelihood_model_that_exists(case, route):
    X = case.X.astype(float)
    X[[0, 1, 5, 6], [0, 1, 1, 0]] = np.nan
    fit = case.oracle.fit(X, CODES, 3)
    model = case.make(inference=route).fit(X, Y)
    agree_predictions(model, fit, X, route)
    agree_parameters(library_parameters(model), fit.parameters(route))


@pytest.mark.parametrize("kind", [BernoulliNB, PoissonNB])
def test_missing_cells_of_a_sparse_matrix(kind):
    X = with_holes(BITS, 3)
    dense, sparse = kind().fit(X, Y), kind().fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(
        sparse.predict_joint_log_proba(sp.csr_array(X)), dense.predict_joint_log_proba(X), rtol=1e-13
    )
    np.testing.assert_allclose(sparse.log_evidence_, dense.log_evidence_, rtol=1e-13)
    np.testing.assert_allclose(sparse.loo(sp.csr_array(X), Y).log_joint, dense.loo(X, Y).log_joint, rtol=1e-13)


@each_route(
    [BY_NAME[n] for n in ("GDA", "GDA, per class", "GDA, means by class", "GDA, per class, everything by class")]
)
def test_missing_cells_of_a_vector_are_integrated_out_at_prediction(case, route):
    fit = reference(case)
    model = case.make(inference=route, missing="marginalize").fit(case.X, Y)
    new = np.array([[1.0, NAN], [NAN, 12.0], [NAN, NAN], [3.0, -5.0], [0.0, NAN]])
    agree_predictions(model, fit, new, route)
    agree(np.exp(model.predict_log_proba(new)[2]), as_float(fit.class_probabilities(route)))


def test_missing_cells_of_longer_vectors_by_pattern():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 5)) @ rng.normal(size=(5, 5))
    codes = np.repeat([0, 1, 2], 10)
    new = X[::3].copy()
    new[rng.random(new.shape) < 0.4] = np.nan
    for shared in (True, False):
        covariance = "shared" if shared else "per_class"
        fit = GDAOracle(shared=shared).fit(X, codes, 3)
        for route in GAUSSIAN_ROUTES:
            model = GaussianDiscriminantAnalysis(covariance=covariance, inference=route, missing="marginalize")
            agree_predictions(model.fit(X, codes), fit, new, route)


def test_missing_cells_in_a_mixed_model():
    X = MIXED_X.astype(float)
    X[[0, 3, 5, 7, 9, 11], [0, 2, 5, 7, 8, 9]] = np.nan
    columns = range(10)
    oracle = MixedOracle([(m, list(cols)) for m, cols in MIXED_ORACLE.blocks[:3]] + [(PoissonOracle(2.0, 0.5), [9])])
    blocks = [*mixed_blocks()[:3], ("rate", PoissonNB(prior=Gamma(2.0, 0.5)), [9])]
    X = X[:, columns]
    fit = oracle.fit(X, CODES, 3)
    model = MixedNB(blocks=blocks).fit(X, Y)
    agree_predictions(model, fit, X, "exact")
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(X, Y), fit, CODES)


# ------------------------------------------------------------------------------------ unknown levels


@weighted
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("policy", ["predictive", "ignore"])
@pytest.mark.parametrize("alpha", [0.5, 2.0, TABLE_4[:, :3]], ids=["half", "two", "array"])
def test_unknown_levels(alpha, policy, route, weights):
    w = WEIGHTS[weights]
    fit = CategoricalOracle(alpha, handle_unknown=policy).fit(LEVELS, CODES, 3, w=w)
    model = CategoricalNB(alpha=alpha, handle_unknown=policy, inference=route).fit(LEVELS, Y, w)
    new = np.vstack([LEVELS[2:6], LEVELS[2:6]])
    new[4:, 1] = [2, 3, 2, 9]
    new[6, 0] = 5
    if route == "mle" and policy == "predictive":  # probability zero in every class
        with pytest.warns(ZeroProbabilityWarning):
            found = model.predict_log_proba(new)
        assert np.isnan(found[4:]).all()
        agree(model.predict_joint_log_proba(new), as_float(fit.log_joint(new, route)))
        agree(found[:4], as_float(fit.log_proba(new[:4], route)), 1e-14)
        return
    if route == "map" and policy == "predictive":
        # A mode smooths only above concentration one; below, an unknown level has probability zero.
        joint, concentration = as_float(fit.log_joint(new, route)), np.broadcast_to(alpha, (3, 3))
        for i, j in [(4, 1), (5, 1), (6, 1), (7, 1), (6, 0)]:
            joint[i, concentration[:, j] <= 1] = -np.inf
        agree(model.predict_joint_log_proba(new), joint)
        return
    agree_predictions(model, fit, new, route)


def test_unknown_levels_as_an_error_name_level_and_column():
    model = CategoricalNB(handle_unknown="error").fit(LEVELS, Y)
    new = LEVELS[:2].copy()
    new[1, 2] = 7
    with pytest.raises(ValueError, match=r"column 2.*7"):
        model.predict(new)


def test_unknown_strings_among_declared_ones():
    words = np.array(["low", "mid", "high"], dtype=object)
    X = np.array([[words[v]] for v in LEVELS[:, 0]], dtype=object)
    fit = CategoricalOracle(0.5, [3]).fit(LEVELS[:, :1], CODES, 3)
    model = CategoricalNB(alpha=0.5, categories=[list(words)]).fit(X, Y)
    new = np.array([["mid"], ["never"], ["low"]], dtype=object)
    agree(model.predict_joint_log_proba(new), as_float(fit.log_joint([[1], [3], [0]])))


# ------------------------------------------------------------------------------------ the printed table

NUMBERS = np.array([[0.5], [-0.3], [1.1], [2], [3.4]])
POINTS = np.array([[0.5, 1], [-0.3, 0.2], [1.1, 0.4], [2, -1], [3.4, 0.3]])
NIG = NormalInverseGamma(0.0, 1.0, 2.0, 1.0)
NIW = NormalInverseWishart(0.0, 1.0, 4.0, np.eye(2))


def digits(text):
    return np.array([[int(c) for c in row] for row in text.split()])


# ln p(X | y); P(y = 1 | x*) by mle, map, mean, exact; ln p(x*, y = 1 | D); elpd joint, conditional.
PRINTED = {
    "Bernoulli": (
        (BernoulliNB, {}, digits("10 11 01 00 01"), [1, 0]),
        "-7.86018506 0.000000 0.000000 0.294118 0.294118 -2.89037176 -12.59443229 -4.30298343",
    ),
    "multinomial": (
        (MultinomialNB, {"alpha": 0.5}, digits("210 100 021 013 102"), [1, 1, 2]),
        "-16.77687419 0.649351 0.708455 0.663923 0.583475 -5.60852999 -21.09927056 -3.12121578",
    ),
    "categorical": (
        (CategoricalNB, {}, digits("0 1 1 2 2"), [2]),
        "-5.19295685 1.000000 1.000000 0.742268 0.742268 -1.32175584 -8.86941379 -2.38774290",
    ),
    "Poisson": (
        (PoissonNB, {"prior": Gamma(2.0, 1.0)}, digits("2 0 1 5 4"), [3]),
        "-9.39243333 0.647203 0.729266 0.643046 0.622023 -2.47832429 -12.75613456 -1.77430976",
    ),
    "normal": (
        (GaussianNB, {"prior": NIG}, NUMBERS, [1.5]),
        "-9.60610391 0.414725 0.795062 0.571124 0.594327 -2.07893414 -12.34396600 -1.90954659",
    ),
    "normal, shared": (
        (GaussianNB, {"prior": NIG, "variance": "shared"}, NUMBERS, [1.5]),
        "-10.13547829 0.312245 0.656518 0.569690 0.571471 -1.93711737 -12.80863302 -2.36104345",
    ),
    "GDA": (
        (GaussianDiscriminantAnalysis, {"prior": NIW}, POINTS, [1.5, 0]),
        "-17.18668309 0.554487 0.795481 0.618284 0.636400 -2.48212203 -19.64479816 -1.72232112",
    ),
    "GDA, per class": (
        (GaussianDiscriminantAnalysis, {"prior": NIW, "covariance": "per_class"}, POINTS, [1.5, 0]),
        "-16.87218256 error 0.972672 0.620597 0.701715 -2.72866056 -20.01774101 -1.55871981",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_check_values(name):
    (kind, keywords, X, x), printed = PRINTED[name]
    y, keywords = [0, 0, 0, 1, 1], {**keywords, "class_alpha": [2.0, 2.0]}
    model = kind(**keywords).fit(X, y)
    found = [f"{model.log_evidence_parts_['x_given_y']:.8f}"]
    for route in ROUTES:
        try:
            found.append(f"{kind(inference=route, **keywords).fit(X, y).predict_proba([x])[0, 1]:.6f}")
        except UndefinedNumberError:
            found.append("error")
    elpd = model.loo(X, y)
    joint = model.predict_joint_log_proba([x])[0, 1]
    found += [f"{v:.8f}" for v in (joint, elpd.elpd_joint, elpd.elpd_conditional)]
    assert f"{model.log_evidence_parts_['y']:.8f}" == "-3.84303013"
    assert found == printed.split()


# ------------------------------------------------------------------------------------ one row at a time

STATED = [c for c in CASES if not c.name.startswith(("general", "mixed"))]
STATED = [
    c
    for c in STATED
    if "reference" not in c.name and c.name not in ("normal", "normal, shared", "GDA", "GDA, per class")
]


@each(STATED)
def test_evidence_is_the_chain_of_predictives_by_partial_fit(case):
    # Categorical levels must be known from the first row on; a stated prior does not move as rows arrive.
    order = np.random.default_rng(1).permutation(14)
    levels = {"categories": [np.arange(s) for s in (3, 2, 4)]} if case.name.startswith("categorical") else {}
    if case.name.endswith("more levels"):
        levels = {"categories": [np.arange(s) for s in (3, 4, 6)]}
    model = case.make().set_params(**levels)
    total = 0.0
    for i in order:
        row, label = case.X[[i]], Y[[i]]
        if total != 0.0:
            total += model.predict_joint_log_proba(row)[0, CODES[i]]
        model.partial_fit(row, label, classes=NAMES)
        total = model.log_evidence_ if total == 0.0 else total
        agree(model.log_evidence_, total)
    agree(total, as_float(reference(case).evidence()))


# ---------------------------------------------------------------------------------------- far from zero


def far_data(kind):
    """14 rows of three columns; exact arithmetic sees the given float64 values, whatever they were meant to be."""
    X = np.random.default_rng(23).normal(size=(14, 3)) + CODES[:, None]
    if kind == "far":
        return 1e8 + X
    if kind == "far classes":
        return X + 1e8 * CODES[:, None] * [1.0, 0.0, 0.0]
    if kind == "classes far in every column":
        return X + 1e8 * CODES[:, None]
    if kind == "far, one column in another unit":
        return (1e8 + X) * [1.0, 1e9, 1.0]
    return (1e12 + X) * [1.0, 1.0, -1e-9]


FAR = ("far", "far classes", "far, one column in another unit", "very far")
GAUSSIAN_MODELS = {
    "normal": (lambda **kw: GaussianNB(**kw), GaussianOracle()),
    "normal, shared": (lambda **kw: GaussianNB(variance="shared", **kw), GaussianOracle(shared=True)),
    "GDA": (lambda **kw: GaussianDiscriminantAnalysis(**kw), GDAOracle()),
    "GDA, per class": (
        lambda **kw: GaussianDiscriminantAnalysis(covariance="per_class", **kw),
        GDAOracle(shared=False),
    ),
}


@functools.cache
def far_reference(name, kind, weights):
    return GAUSSIAN_MODELS[name][1].fit(far_data(kind), CODES, 3, w=WEIGHTS[weights])


@pytest.mark.parametrize(
    ("kind", "weights"), [*((kind, "fractional weights") for kind in FAR), ("far classes", "unweighted")]
)
@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_gaussian_data_far_from_zero(name, kind, weights):
    make, _ = GAUSSIAN_MODELS[name]
    X, w = far_data(kind), WEIGHTS[weights]
    fit = far_reference(name, kind, weights)
    for route in GAUSSIAN_ROUTES:
        model = make(inference=route)
        if is_undefined(fit, X[:1], route):
            with pytest.raises(UndefinedNumberError):
                model.fit(X, Y, w)
            continue
        model.fit(X, Y, w)
        agree_predictions(model, fit, X, route)
        agree_parameters(library_parameters(model), fit.parameters(route))
    model = make().fit(X, Y, w)
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(X, Y, w), fit, CODES)


@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_classes_far_apart_in_every_column(name):
    # A prior mean between the classes adds 1e14 along one oblique direction to the scale matrix of the
    # discriminant's posterior. In float64 that matrix has lost the other directions, whatever is done with it
    # afterwards (it may count as singular, an error): there, only what does not pass through it is asked for.
    make, _ = GAUSSIAN_MODELS[name]
    X = far_data("classes far in every column")
    fit = far_reference(name, "classes far in every column", "unweighted")
    for route in GAUSSIAN_ROUTES if name.startswith("normal") else ("mle", "unbiased"):
        if is_undefined(fit, X[:1], route):
            continue
        model = make(inference=route).fit(X, Y)
        agree_predictions(model, fit, X, route)
        agree_parameters(library_parameters(model), fit.parameters(route))


@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_gaussian_data_far_from_zero_in_batches(name):
    make, _ = GAUSSIAN_MODELS[name]
    X = far_data("far classes")
    fit = far_reference(name, "far classes", "unweighted")
    parts = [make().partial_fit(X[i::3], Y[i::3], classes=NAMES) for i in range(3)]
    model = parts[0].merge(parts[1]).merge(parts[2])
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_predictions(model, fit, X, "exact")


# ---------------------------------------------------------------------------------------- large counts

LARGE = COUNTS * (2.0**33 + 3) + 5


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("coefficient", [False, True])
def test_word_counts_past_2_to_the_31(route, coefficient):
    X = LARGE.astype(np.int64)
    fit = MultinomialOracle(0.5, coefficient).fit(X, CODES, 3)
    model = MultinomialNB(alpha=0.5, multinomial_coefficient=coefficient, inference=route).fit(X, Y)
    assert (
        model.feature_count_.astype(np.int64).tolist()
        == np.array([X[k == CODES].sum(axis=0) for k in range(3)]).tolist()
    )
    # With the coefficient, terms of 1e12 nearly cancel.
    joint, size = as_float(fit.log_joint(X, route)), np.abs(X * np.log(X)).sum(axis=1, keepdims=True)
    agree(model.predict_joint_log_proba(X), joint, 32 * EPS * size)
    if route == "exact":
        agree(model.log_evidence_, as_float(fit.evidence()), 32 * EPS * size.sum())
        agree(model.loo(X, Y).log_joint, as_float(exact_loo(fit)), 32 * EPS * size)


@pytest.mark.parametrize("route", ROUTES)
def test_poisson_counts_past_2_to_the_31(route):
    X = LARGE.astype(np.int64)
    fit = PoissonOracle(2.0, 0.5).fit(X, CODES, 3)
    model = PoissonNB(prior=Gamma(2.0, 0.5), inference=route).fit(X, Y)
    agree(model.rate_, as_float(fit.parameters(route)["rate"]))
    agree(model.predict_joint_log_proba(X), as_float(fit.log_joint(X, route)))
    if route == "exact":
        agree(model.log_evidence_, as_float(fit.evidence()))
        agree(model.loo(X, Y).log_joint, as_float(exact_loo(fit)))


@pytest.mark.parametrize("size", [1e4, 1e6, 2.0**33, 1e15])
@pytest.mark.parametrize("route", ROUTES)
def test_large_poisson_counts_near_their_rate(route, size):
    # x ln(rate), the rate and ln x! are far larger than the log probability: some -12 a cell.
    noise = np.random.default_rng(17).normal(size=(14, 2)) * np.sqrt(size)
    X = np.round(np.column_stack([size + noise[:, 0], COUNTS[:, 0], size * (1 + 1e-6 * CODES) + noise[:, 1]]))
    prior = np.array([1.0, 2.0, 30.0]), np.array([1 / size, 0.5, 30 / size])
    fit = PoissonOracle(*prior).fit(X, CODES, 3)
    model = PoissonNB(prior=Gamma(*prior), inference=route).fit(X, Y)
    # The rate is rounded to float64: a relative EPS of it moves the log probability by the residual.
    slack = 8 * EPS * (np.abs(noise).sum(axis=1, keepdims=True) * 4 + np.sqrt(size))
    agree(model.predict_joint_log_proba(X), as_float(exact_joint(fit, X, route)), slack)
    np.testing.assert_allclose(
        model.predict_joint_log_proba(sp.csr_array(X)), model.predict_joint_log_proba(X), rtol=1e-12
    )
    holes = X.copy()
    holes[[0, 1, 2], [0, 1, 2]] = np.nan
    agree(model.predict_joint_log_proba(holes), as_float(exact_joint(fit, holes, route)), slack)
    if route == "exact":
        agree(model.loo(X, Y).log_joint, as_float(exact_loo(fit)), slack)
        agree(model.log_evidence_, as_float(fit.evidence()), 8 * EPS * (X * np.log(X + 1)).sum())


@pytest.mark.parametrize(
    "name", ["Bernoulli", "multinomial", "categorical", "Poisson", "normal, stated", "GDA, stated"]
)
def test_weights_past_2_to_the_31(name):
    case = BY_NAME[name]
    w = np.where(np.arange(14) % 2 == 0, 2.0**33 + 1, 2.0**31 + 3)
    fit = case.oracle.fit(case.X, CODES, 3, w=w)
    for route in case.routes:
        agree(
            case.make(inference=route).fit(case.X, Y, w).predict_joint_log_proba(case.new),
            as_float(fit.log_joint(case.new, route)),
        )
    agree(case.make().fit(case.X, Y, w).log_evidence_, as_float(fit.evidence()))


# ---------------------------------------------------------------------------------------- odd shapes


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_more_columns_than_rows(covariance):
    rng = np.random.default_rng(5)
    X, codes = rng.normal(size=(7, 9)) * np.geomspace(1e-3, 1e3, 9), np.array([0, 1, 0, 1, 0, 1, 1])
    fit = GDAOracle(shared=covariance == "shared").fit(X, codes, 2)
    for route in ("map", "mean", "exact"):
        model = GaussianDiscriminantAnalysis(covariance=covariance, inference=route).fit(X, codes)
        agree_predictions(model, fit, X, route)
        agree_parameters(library_parameters(model), fit.parameters(route))
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(X, codes), fit, codes)
    for route in ("mle", "unbiased"):
        with pytest.raises(UndefinedNumberError):
            GaussianDiscriminantAnalysis(covariance=covariance, inference=route).fit(X, codes)


@pytest.mark.parametrize("route", ["map", "mean", "exact"])
@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_constant_and_collinear_columns(name, route):
    make, oracle = GAUSSIAN_MODELS[name]
    a, b = REALS.T
    # a; twice a; constant; a constant of each class; b; a linear combination up to rounding
    X = np.column_stack([a, 2 * a, np.full(14, 7.0), CODES * 1.5, b, 3 * a - b / 7])
    fit = oracle.fit(X, CODES, 3)
    model = make(inference=route).fit(X, Y)
    agree_predictions(model, fit, X, route)
    agree_parameters(library_parameters(model), fit.parameters(route))
    if route == "exact":
        agree(model.log_evidence_, as_float(fit.evidence()))
        agree_loo(model.loo(X, Y), fit, CODES)


@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_one_column_and_one_row_a_class(name):
    make, oracle = GAUSSIAN_MODELS[name]
    X, codes = np.array([[1.0], [4.0], [-2.0]]), np.array([0, 1, 2])
    fit = oracle.fit(X, codes, 3)
    model = make().fit(X, codes)
    agree_predictions(model, fit, [[0.5], [100.0]], "exact")
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(X, codes), fit, codes)


# --------------------------------------------------------------------- a downdate that loses its digits


@pytest.mark.parametrize("weights", ["unweighted", "whole weights"])
@pytest.mark.parametrize("size", [1e4, 1e7, 1e11])
@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_leave_one_out_of_a_row_that_carries_nearly_all_the_scatter(name, size, weights):
    # One minus the leverage of that row is about 1 / size^2. It lies along one column, so that the rest of the
    # scatter keeps its digits in float64.
    X = np.random.default_rng(31).normal(size=(14, 2))
    X[5, 0] = size
    w = WEIGHTS[weights]
    _, oracle = GAUSSIAN_MODELS[name]
    variance = {"normal": {}, "normal, shared": {"variance": "shared"}}
    if name in variance:
        model = GaussianNB(prior=NormalInverseGamma(0.0, 1.0, 2.0, 1.0), **variance[name])
        oracle = GaussianOracle(0.0, 1.0, 2.0, 1.0, shared=name != "normal")
    else:
        covariance = "shared" if name == "GDA" else "per_class"
        model = GaussianDiscriminantAnalysis(prior=NIW, covariance=covariance)
        oracle = GDAOracle(0.0, 1.0, 4.0, np.eye(2), shared=name == "GDA")
    fit = oracle.fit(X, CODES, 3, w=w)
    agree_loo(model.fit(X, Y, w).loo(X, Y, w), fit, CODES)


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_leave_one_out_of_an_oblique_outlier(covariance):
    # The scatter with the outlier in it has lost the digits of the others in float64, so only the row that
    # leaves with it is asked for.
    X = np.random.default_rng(31).normal(size=(14, 2))
    X[5] = [3e6, -1e6]
    model = GaussianDiscriminantAnalysis(prior=NIW, covariance=covariance).fit(X, Y)
    fit = GDAOracle(0.0, 1.0, 4.0, np.eye(2), shared=covariance == "shared").fit(X, CODES, 3)
    agree(model.loo(X, Y).log_joint[5], as_float(exact_loo(fit))[5])


# --------------------------------------------------------------------- extreme concentrations, fractions


@pytest.mark.parametrize(
    ("route", "alpha"),
    # A mode is a concentration plus a count minus one: at 1e-8 half the digits of float64 are gone by then.
    [("mean", 1e-8), ("exact", 1e-8), ("map", 1e-4), ("map", 1e8), ("mean", 1e8), ("exact", 1e8)],
)
@pytest.mark.parametrize("family", ["Bernoulli", "multinomial", "categorical", "Poisson"])
def test_tiny_and_huge_concentrations(family, route, alpha):
    case = {
        "Bernoulli": lambda: bernoulli("", alpha),
        "multinomial": lambda: multinomial("", alpha, True),
        "categorical": lambda: categorical("", alpha),
        "Poisson": lambda: poisson("", alpha, alpha),
    }[family]()
    fit = case.oracle.fit(case.X, CODES, 3)
    model = case.make(inference=route).fit(case.X, Y)
    agree_predictions(model, fit, case.new, route)
    agree_parameters(library_parameters(model), fit.parameters(route))
    if route == "exact":
        # At 1e8 the terms of ln p(X | y) are some 20 times their sum.
        agree(model.log_evidence_, as_float(fit.evidence()))
        agree_loo(model.loo(case.X, Y), fit, CODES)


@pytest.mark.parametrize("class_alpha", [1e-8, 1e8])
def test_tiny_and_huge_class_concentrations(class_alpha):
    fit = BernoulliOracle().fit(BITS, CODES, 3, class_alpha=class_alpha)
    for route in ("mle", "mean", "exact"):
        model = BernoulliNB(inference=route, class_alpha=class_alpha).fit(BITS, Y)
        agree(np.exp(model.class_log_prior_), as_float(fit.class_probabilities(route)))
    agree(model.log_evidence_parts_["y"], as_float(fit.evidence_parts()[0]))
    agree_loo(model.loo(BITS, Y), fit, CODES)


@pytest.mark.parametrize("strength", [1e-8, 1e8])
@pytest.mark.parametrize("name", GAUSSIAN_MODELS)
def test_tiny_and_huge_gaussian_priors(name, strength):
    if name.startswith("normal"):
        prior = NormalInverseGamma(1.0, strength, 1.5 + strength, strength)
        oracle = GaussianOracle(1.0, strength, 1.5 + strength, strength, shared="shared" in name)
        model = GaussianNB(prior=prior, variance="shared" if "shared" in name else "per_class")
    else:
        scale = strength * SCALE
        prior = NormalInverseWishart(1.0, strength, 4.0 + strength, scale)
        oracle = GDAOracle(1.0, strength, 4.0 + strength, scale, shared=name == "GDA")
        model = GaussianDiscriminantAnalysis(prior=prior, covariance="shared" if name == "GDA" else "per_class")
    fit = oracle.fit(REALS, CODES, 3)
    for route in ("map", "mean", "exact"):
        agree_predictions(model.set_params(inference=route).fit(REALS, Y), fit, REALS, route)
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(REALS, Y), fit, CODES)


@weighted
@each_route([BY_NAME["multinomial, Perks"], BY_NAME["multinomial"], BY_NAME["Poisson"]])
def test_fractional_counts(case, route, weights):
    X = np.where(COUNTS > 0, COUNTS * 0.37 + 0.05 * np.arange(4), 0.0)
    w = WEIGHTS[weights]
    fit = case.oracle.fit(X, CODES, 3, w=w)
    model = case.make(inference=route).fit(X, Y, w)
    agree_predictions(model, fit, X[2:], route)
    agree(model.log_evidence_, as_float(fit.evidence()))
    agree_loo(model.loo(X, Y, w), fit, CODES)


# ---------------------------------------------------------------------------------- moments of log odds

DIRICHLET = [case for case in CASES if case.name.startswith(("Bernoulli", "multinomial", "categorical"))]


@weighted
@each(DIRICHLET)
def test_posterior_mean_and_deviation_of_the_log_odds(case, weights):
    fit = reference(case, weights)
    mean, sd = case.make().fit(case.X, Y, WEIGHTS[weights]).log_odds(case.new)
    np.testing.assert_array_equal([mean[:, 0], sd[:, 0]], 0.0)
    for k in (1, 2):
        means, variances = fit.log_odds_moments(case.new, k=k, other=0)
        agree(mean[:, k], as_float(means), 1e-12)
        agree(sd[:, k], np.sqrt(as_float(variances)))


def test_log_odds_of_sparse_documents_and_of_known_class_probabilities():
    model = MultinomialNB(class_prior=[0.2, 0.3, 0.5]).fit(COUNTS, Y)
    for found, wanted in zip(model.log_odds(sp.csr_array(COUNTS)), model.log_odds(COUNTS), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    learned = MultinomialOracle(1.0).fit(COUNTS, CODES, 3, class_prior=[0.2, 0.3, 0.5])
    means, variances = learned.log_odds_moments(COUNTS, k=2, other=0)
    agree(model.log_odds(COUNTS)[0][:, 2], as_float(means), 1e-12)
    agree(model.log_odds(COUNTS)[1][:, 2], np.sqrt(as_float(variances)))


def test_the_quick_interval_is_the_normal_one_of_the_log_odds_and_close_to_the_sampled_one():
    two = CODES < 2
    model = BernoulliNB(alpha=10.0, random_state=0).fit(np.repeat(BITS[two], 20, axis=0), np.repeat(Y[two], 20))
    mean, sd = model.log_odds(BITS)
    lower, upper = model.predict_proba_interval(BITS, 0.9, method="normal")
    z = 1.6448536269514722
    np.testing.assert_allclose(lower[:, 1], 1 / (1 + np.exp(z * sd[:, 1] - mean[:, 1])), rtol=1e-12)
    np.testing.assert_allclose(upper[:, 0], 1 - lower[:, 1], rtol=1e-12)
    sampled = model.predict_proba_interval(BITS, 0.9, n_draws=20000)
    # Every cell is worth 10 counts at least, whose logs are nearly normal; quantiles of 20,000 draws add 0.003.
    np.testing.assert_allclose([lower, upper], sampled, atol=0.01)


def test_the_quick_interval_of_three_classes_is_close_to_the_sampled_one():
    model = CategoricalNB(alpha=10.0, random_state=0).fit(np.repeat(LEVELS, 30, axis=0), np.repeat(Y, 30))
    quick = model.predict_proba_interval(LEVELS, n_draws=20000, method="normal")
    np.testing.assert_allclose(quick, model.predict_proba_interval(LEVELS, n_draws=20000), atol=0.015)


def test_log_odds_need_a_conjugate_posterior_of_a_dirichlet_family():
    with pytest.raises(UndefinedNumberError, match="no posterior"):
        MultinomialNB(inference="mle").fit(COUNTS, Y).log_odds(COUNTS)
    with pytest.raises(UndefinedNumberError, match="improper"):
        MultinomialNB(alpha=[0.0, 1, 1, 1]).fit(COUNTS * [0, 1, 1, 1], Y).log_odds(COUNTS)
    with pytest.raises(ValueError, match="no closed-form moments"):
        PoissonNB().fit(COUNTS, Y).log_odds(COUNTS)


# ---------------------------------------------------------------------------------------- 50,000 columns

WIDE = 50_000


@functools.cache
def wide_counts():
    """40 documents of about 300 words, a few of them long, over 50,000 columns; three classes."""
    rng = np.random.default_rng(2)
    rate = rng.gamma(0.3, size=WIDE)
    rate /= rate.sum()
    length = np.where(np.arange(40) % 10 == 0, 5000, 300)
    return np.stack([rng.multinomial(n, rate) for n in length]), np.arange(40) % 3


def log_rising_by_steps(z, n):
    """ln z (z + 1) ... (z + n - 1) for whole n: sums of logarithms, no gamma function."""
    z, n = np.broadcast_arrays(np.asarray(z, dtype=float), n)
    out = np.zeros(z.shape)
    for i in range(int(n.max(initial=0))):
        at = n > i
        out[at] += np.log(z[at] + i)
    return out


def log_rising_total(z, n):
    return np.log(z + np.arange(n)).sum()


FORMATS = {
    "dense": np.asarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_matrix,
    "float32 CSR": lambda x: sp.csr_array(x.astype(np.float32)),
}


@pytest.mark.parametrize("form", FORMATS)
def test_fifty_thousand_words(form):
    counts, y = wide_counts()
    X = FORMATS[form](counts)
    alpha = 0.1
    N = np.stack([counts[y == k].sum(axis=0) for k in range(3)])
    length = counts.sum(axis=1)
    log_class = np.log((np.bincount(y) + 1) / 43)

    def urn(row, after):  # the row's words drawn one after another from an urn
        return log_rising_by_steps(after, row).sum() - log_rising_total(after.sum(), row.sum())

    rows = [0, 1, 2, 3, 17]
    exact = MultinomialNB(alpha=alpha).fit(X, y)
    joint = [[log_class[k] + urn(counts[i], alpha + N[k]) for k in range(3)] for i in rows]
    agree(exact.predict_joint_log_proba(X)[rows], joint)
    evidence = sum(
        log_rising_by_steps(alpha, N[k]).sum() - log_rising_total(alpha * WIDE, N[k].sum()) for k in range(3)
    )
    agree(exact.log_evidence_parts_["x_given_y"], evidence)
    loo = exact.loo(X, y)
    for i in rows:
        own = urn(counts[i], alpha + N[y[i]] - counts[i])
        agree(loo.joint[i], own + np.log((np.bincount(y)[y[i]]) / 42))
        other = (y[i] + 1) % 3
        agree(loo.log_joint[i, other], urn(counts[i], alpha + N[other]) + np.log((np.bincount(y)[other] + 1) / 42))
    mean = MultinomialNB(alpha=alpha, inference="mean").fit(X, y)
    theta = (N + alpha) / (N.sum(axis=1, keepdims=True) + alpha * WIDE)
    agree(np.exp(mean.feature_log_prob_), theta)
    agree(mean.predict_joint_log_proba(X), counts @ np.log(theta).T + log_class)
    assert length.max() == 5000


@pytest.mark.parametrize("form", FORMATS)
def test_fifty_thousand_presences(form):
    counts, y = wide_counts()
    X = FORMATS[form](counts)
    present = (counts > 0).astype(float)
    a, b = 0.5, 2.0
    ones = np.stack([present[y == k].sum(axis=0) for k in range(3)])
    n = np.bincount(y)[:, None]
    log_class = np.log((n[:, 0] + 1) / 43)
    p = (ones + a) / (n + a + b)
    expected = present @ np.log(p).T + (1 - present) @ np.log1p(-p).T + log_class
    for route in ("mean", "exact"):
        model = BernoulliNB(alpha=(a, b), inference=route).fit(X, y)
        agree(model.predict_joint_log_proba(X), expected)
        agree(np.exp(model.feature_log_prob_), p)
    zeros = (n - ones).astype(int)
    evidence = log_rising_by_steps(a, ones.astype(int)).sum() + log_rising_by_steps(b, zeros).sum()
    evidence -= sum(WIDE * log_rising_total(a + b, n[k, 0]) for k in range(3))
    agree(model.log_evidence_parts_["x_given_y"], evidence)
    loo = model.loo(X, y)
    for i in range(0, 40, 7):
        q = (ones[y[i]] - present[i] + a) / (n[y[i]] - 1 + a + b)
        own = np.log(np.where(present[i] > 0, q, 1 - q)).sum()
        agree(loo.joint[i], own + np.log(n[y[i], 0] / 42))


def test_a_block_of_fifty_thousand_columns_against_exact_arithmetic():
    # Columns of Bernoulli and Poisson models are independent: a model on a few of 50,000 columns gives the
    # evidence those columns add.
    counts, y = wide_counts()
    part = counts.sum(axis=0).argsort()[-6:]
    rest = np.setdiff1d(np.arange(WIDE), part)
    for kind, oracle in ((BernoulliNB, BernoulliOracle()), (PoissonNB, PoissonOracle())):
        rows = np.minimum(counts, 1) if kind is BernoulliNB else counts
        added = as_float(oracle.fit(rows[:, part], y, 3).evidence_parts()[1])
        whole = kind().fit(sp.csr_array(rows), y).log_evidence_parts_["x_given_y"]
        without = kind().fit(sp.csr_array(rows[:, rest]), y).log_evidence_parts_["x_given_y"]
        agree(whole - without, added, rounding(np.float64(whole)))
