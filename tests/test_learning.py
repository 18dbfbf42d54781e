"""Hyperparameters that maximise the evidence, against the reference of `oracle.py` and against their definition."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from oracle import (
    INF,
    BernoulliOracle,
    CategoricalOracle,
    GaussianOracle,
    GDAOracle,
    MultinomialOracle,
    PoissonOracle,
    ctx,
    dirichlet_concentration,
    dirichlet_evidence,
    dirichlet_evidence_slope,
    dirichlet_evidence_vector,
)
from scipy.optimize import brentq, minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Evidence,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    NUTSOptions,
    PoissonNB,
    UndefinedNumberError,
)
from bayesgen.families import Bernoulli, Multinomial
from bayesgen.learning import maximise_concentration

K = 3
Y = np.repeat([0, 1, 2], [9, 5, 7])
RNG = np.random.default_rng(12)
WEIGHTS = {"none": None, "fractional": RNG.uniform(0.05, 0.9, len(Y)), "whole": RNG.integers(0, 4, len(Y))}
THETA = RNG.dirichlet(np.full(5, 0.6), K)
WORDS = np.stack([RNG.multinomial(RNG.integers(0, 9), THETA[k]) for k in Y])
BITS = (RNG.random((len(Y), 4)) < RNG.beta(0.8, 0.8, (K, 4))[Y]).astype(int)
LEVELS = np.column_stack([BITS[:, 0], np.minimum(WORDS[:, 1], 2), np.minimum(WORDS[:, 0], 4)])
COUNTS = RNG.poisson(RNG.gamma(1.5, 2.0, (K, 3))[Y])
SIZES = np.column_stack(
    [RNG.normal(4.0 * Y, 1.0 + 2.0 * Y), RNG.normal(100.0 - Y, 30.0), 0.01 * RNG.normal(Y == 1, 3 - Y)]
)
SIZES[:, 1] += 10.0 * SIZES[:, 0]  # columns of different units, correlated, with variances that depend on the class
MODELS = {
    "Bernoulli": (BernoulliNB, BITS, BernoulliOracle()),
    "multinomial": (MultinomialNB, WORDS, MultinomialOracle()),
    "categorical": (CategoricalNB, LEVELS, CategoricalOracle(n_levels=[2, 3, 5])),
}
dirichlet = pytest.mark.parametrize("kind", MODELS)
weighted = pytest.mark.parametrize("w", WEIGHTS)


def learned(groups, ask=None):
    """What is learned from groups of counts, listed one by one; they may differ in length."""
    by_size = {}
    for group in groups:
        by_size.setdefault(len(group), []).append(group)
    return maximise_concentration([np.array(g, dtype=float) for g in by_size.values()], ask or Evidence())[2]


def groups_of(oracle, X, w, k=None):
    """Groups of the reference: each is one draw of theta; of one class if k is given."""
    w = None if w is None else np.asarray(w, dtype=float)
    if k is None:
        return oracle.fit(X, Y, K, w).groups()
    mine = k == Y
    return oracle.fit(X[mine], np.zeros(mine.sum()), 1, None if w is None else w[mine]).groups()


# ------------------------------------------------------------------------------- concentrations


def is_the_maximiser(value, groups):
    """Whether the exact slope changes sign within 1e-7 of the value, and no value far away has more evidence."""
    below, above = (dirichlet_evidence_slope(value * (1 + e), groups) for e in (-1e-7, 1e-7))
    top = dirichlet_evidence(value, groups)
    far = [dirichlet_evidence(value * 10.0**e, groups) for e in (-6, -3, -2, -1, 1, 2, 3, 6)]
    return below > 0 > above and top > max(far)


@weighted
@dirichlet
def test_the_learned_concentration_is_the_maximiser_of_the_reference(kind, w):
    make, X, oracle = MODELS[kind]
    model = make(alpha="evidence").fit(X, Y, WEIGHTS[w])
    groups = groups_of(oracle, X, WEIGHTS[w])
    assert is_the_maximiser(model.alpha_, groups)
    height = float(dirichlet_evidence(model.alpha_, groups))
    assert_allclose(model.learned_.log_evidence, height, rtol=1e-12)
    assert_allclose(model.log_evidence_parts_["x_given_y"], height, rtol=1e-12)
    assert model.learned_.names == ("alpha",)


@dirichlet
def test_each_class_learns_from_its_own_counts(kind):
    make, X, oracle = MODELS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class may want infinity
        model = make(alpha=Evidence(per_class=True)).fit(X, Y, WEIGHTS["fractional"])
    groups = [groups_of(oracle, X, WEIGHTS["fractional"], k) for k in range(K)]
    for value, own in zip(model.alpha_, groups, strict=True):
        assert is_the_maximiser(value, own) if np.isfinite(value) else dirichlet_concentration(own, 12)[0] == INF
    total = sum(float(dirichlet_evidence(a, own)) for a, own in zip(model.alpha_, groups, strict=True))
    assert_allclose(model.learned_.log_evidence, total, rtol=1e-12)
    assert model.learned_.names == ("alpha[0]", "alpha[1]", "alpha[2]")
    assert np.isfinite(model.alpha_).any()


@pytest.mark.parametrize("seed", [0, 3])
def test_the_reference_scans_to_the_same_value(seed):
    rng = np.random.default_rng(seed)
    size = 2 + seed
    groups = [rng.multinomial(40, rng.dirichlet(np.full(size, 0.3))).tolist() for _ in range(3)]
    alpha, height = dirichlet_concentration(groups, points=20)
    found = learned(groups)
    assert_allclose(found.value[0], float(alpha), rtol=1e-10)
    assert_allclose(found.log_evidence, float(height), rtol=1e-13)


@dirichlet
def test_a_background_spreads_the_concentration_by_how_common_a_word_is(kind):
    make, X, oracle = MODELS[kind]
    heavy = 4.0 * WEIGHTS["fractional"]  # enough counts to tell the classes from the background
    groups = groups_of(oracle, X, heavy)
    n_columns = {"Bernoulli": 4, "multinomial": 1, "categorical": 3}[kind]
    column = (lambda i: i % 4) if kind == "Bernoulli" else (lambda i: i // K if kind == "categorical" else 0)
    totals = [None] * n_columns
    for i, group in enumerate(groups):
        before = totals[column(i)]
        totals[column(i)] = group if before is None else [a + b for a, b in zip(before, group, strict=True)]
    weights = [[len(t) * (n + 0.5) / (sum(t) + 0.5 * len(t)) for n in t] for t in totals]

    def height(log_c):
        c = ctx.exp(log_c)
        return sum(dirichlet_evidence_vector([c * v for v in weights[column(i)]], [g]) for i, g in enumerate(groups))

    model = make(alpha=Evidence(base="background")).fit(X, Y, heavy)
    found = float(np.log(model.alpha_))
    assert_allclose(newton(lambda t: height(t[0]), [found])[0][0], found, atol=1e-9)
    assert all(height(found) >= height(found + step) for step in (-4.0, -2.0, -1.0, 1.0, 2.0, 4.0))
    assert_allclose(model.learned_.log_evidence, float(height(found)), rtol=1e-12)
    mean_weight = np.concatenate([np.full(len(v), np.mean([float(x) for x in v])) for v in weights])
    assert_allclose(mean_weight, 1.0)  # the mean concentration of a column is the learned value


def newton(height, at, step=1e-12):
    """A Newton step by central differences in 60 digits from `at`: (where it leads, the Hessian)."""
    at = [ctx.mpf(v) for v in at]
    h = ctx.mpf(step)
    size = range(len(at))

    def moved(*steps):
        return height([v + sum(s for i, s in steps if i == j) for j, v in enumerate(at)])

    slope = ctx.matrix([(moved((i, h)) - moved((i, -h))) / (2 * h) for i in size])
    hessian = ctx.matrix(len(at), len(at))
    for i in size:
        for j in size:
            corners = moved((i, h), (j, h)) - moved((i, h), (j, -h)) - moved((i, -h), (j, h))
            hessian[i, j] = (corners + moved((i, -h), (j, -h))) / (4 * h * h)
    change = ctx.lu_solve(hessian, slope)
    at = [v - change[i] for i, v in enumerate(at)]
    table = np.array([[float(hessian[i, j]) for j in size] for i in size])
    return [float(v) for v in at], table


def test_the_higher_of_two_maxima_is_found():
    found = learned([(28, 27), (0, 7)])
    assert_allclose(found.value, 0.552906, atol=1e-6)
    assert_allclose(found.log_evidence, -41.908848, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_concentration_is_recovered_from_many_groups_whatever_its_size(seed):
    rng = np.random.default_rng(seed)
    truth = 10.0 ** rng.uniform(-2, 1.5)
    groups = np.stack([rng.multinomial(80, rng.dirichlet(np.full(6, truth))) for _ in range(400)])
    found = maximise_concentration([groups.astype(float)], Evidence())[2]
    # A quadratic log likelihood of ln c, to which 400 groups are near; five standard errors.
    assert abs(np.log(found.value[0] / truth)) < 5 * found.standard_error[0]
    assert found.standard_error[0] < 0.15


@dirichlet
def test_no_value_near_or_far_has_more_evidence_and_the_curve_is_the_evidence(kind):
    make, X, oracle = MODELS[kind]
    model = make(alpha="evidence").fit(X, Y)
    grid = model.alpha_ * np.exp(np.concatenate([np.linspace(-12, 12, 25), [-1e-3, 1e-3]]))
    height = model.learned_.curve(grid)
    assert height.max() <= model.learned_.log_evidence
    some = [0.2, 1.0, 30.0]
    evidence = [make(alpha=a).fit(X, Y).log_evidence_parts_["x_given_y"] for a in some]
    assert_allclose(model.learned_.curve(some), evidence, rtol=1e-12)
    assert_allclose(evidence, [float(dirichlet_evidence(a, groups_of(oracle, X, None))) for a in some], rtol=1e-12)


@dirichlet
def test_the_standard_error_is_the_curvature_of_the_evidence(kind):
    make, X, _ = MODELS[kind]
    found = make(alpha="evidence").fit(X, Y).learned_
    h = 0.01
    below, top, above = found.curve(found.value * np.exp([-h, 0.0, h]))
    # Central differences of second order: h**2 / 12 of the fourth derivative, and rounding 1e-13 / h**2.
    assert_allclose(1 / found.standard_error[0] ** 2, -(below - 2 * top + above) / h**2, rtol=1e-3)


def test_the_multinomial_coefficient_moves_the_evidence_and_not_the_value():
    plain, with_it = (MultinomialNB(alpha="evidence", multinomial_coefficient=c).fit(WORDS, Y) for c in (False, True))
    assert plain.alpha_ == with_it.alpha_
    assert_allclose(with_it.learned_.log_evidence, with_it.log_evidence_parts_["x_given_y"], rtol=1e-12)
    assert with_it.learned_.log_evidence > plain.learned_.log_evidence + 1.0


# ------------------------------------------------------------------------------- ends


@pytest.mark.parametrize("scale", [1, 50, 10**6])
def test_rows_that_are_all_alike_want_infinite_smoothing(scale):
    X = np.full((6, 4), scale)
    with pytest.warns(UserWarning, match="alpha rises to infinity"):
        model = MultinomialNB(alpha="evidence").fit(X, [0, 0, 0, 1, 1, 1])
    assert model.alpha_ == np.inf
    assert_allclose(np.exp(model.feature_log_prob_), 0.25, rtol=1e-12)
    assert_allclose(model.predict_proba([[9, 0, 1, 3]]), 0.5, rtol=1e-12)
    assert np.isnan(model.learned_.standard_error).all()
    assert_allclose(model.learned_.log_evidence, -24 * scale * np.log(4), rtol=1e-12)
    assert_allclose(model.log_evidence_parts_["x_given_y"], model.learned_.log_evidence, rtol=1e-12)


@pytest.mark.parametrize(
    "groups", [[(2, 1, 1), (1, 2, 1)], [(51, 49), (50, 50), (50, 50)], [(0.3, 0.2, 2.0), (0.1, 0.8, 0.5)]]
)
def test_counts_that_vary_less_than_by_chance_want_it_too(groups):
    assert dirichlet_concentration(groups, points=40)[0] == INF
    with pytest.warns(UserWarning, match="infinity"):
        assert learned(groups).value == np.inf


def test_classes_that_use_one_word_each_want_no_smoothing():
    with pytest.warns(UserWarning, match="alpha rises towards 0"):
        model = MultinomialNB(alpha="evidence").fit([[3, 0, 0], [2, 0, 0], [0, 4, 0]], [0, 0, 1])
    assert model.alpha_ == 0.0
    assert_array_equal(np.exp(model.feature_log_prob_), [[1, 0, 0], [0, 1, 0]])  # the maximum-likelihood limit
    assert_allclose(model.learned_.log_evidence, -2 * np.log(3), rtol=1e-14)
    assert_allclose(model.learned_.curve(1e-9), -2 * np.log(3), rtol=1e-7)
    assert_array_equal(model.predict_proba([[2, 0, 0]]), [[1, 0]])


def test_fractions_of_a_count_do_not_hide_a_maximum_inside_or_at_infinity():
    """With whole counts one word a class means 0; a fraction of a count, alone in its class, wants smoothing."""
    for groups, inside in (([(0.5, 0), (0.5, 0), (0, 9.2)], True), ([(0.5, 0), (0.5, 0), (0, 1.2)], False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = learned(groups)
        grid = [float(dirichlet_evidence(a, groups)) for a in 10.0 ** np.arange(-7.0, 13.0)]
        assert found.log_evidence >= max(grid)
        assert (0 < found.value < np.inf) == inside
        assert_allclose(found.log_evidence, float(dirichlet_evidence(found.value[0], groups)), rtol=1e-12)


@pytest.mark.parametrize("make", [MultinomialNB, BernoulliNB, CategoricalNB])
def test_one_count_a_class_says_nothing_about_alpha(make):
    with pytest.raises(UndefinedNumberError, match="alpha cannot be learned: no class holds more than one count"):
        make(alpha="evidence").fit([[1, 0], [0, 1]] if make is MultinomialNB else [[1], [0]], [0, 1])


def test_a_class_that_says_nothing_is_named():
    with pytest.raises(UndefinedNumberError, match=r"alpha\[1\] cannot be learned"):
        MultinomialNB(alpha=Evidence(per_class=True)).fit([[3, 1, 0], [0, 0, 1]], [0, 1])


def test_a_batch_that_says_nothing_waits_for_the_next():
    model = MultinomialNB(alpha="evidence").partial_fit([[1, 0, 0]], [0], classes=[0, 1])
    assert not hasattr(model, "alpha_")
    with pytest.raises(UndefinedNumberError, match="cannot be learned"):
        model.predict([[1, 0, 0]])
    model.partial_fit([[2, 2, 0], [0, 1, 5]], [0, 1])
    assert_allclose(
        model.alpha_, MultinomialNB(alpha="evidence").fit([[3, 2, 0], [0, 1, 5]], [0, 1]).alpha_, rtol=1e-12
    )


# ------------------------------------------------------------------------------- priors of two hyperparameters


def overall(X, w):
    """Overall mean, and pooled within-class variance, of each column."""
    w = np.ones(len(Y)) if w is None else w
    centred = X - np.stack([np.average(X[k == Y], axis=0, weights=w[k == Y]) for k in range(K)])[Y]
    return np.average(X, axis=0, weights=w), np.average(centred**2, axis=0, weights=w)


def gaussian_height(X, w, shared):
    mean, v = overall(X, w)

    def height(t):
        kappa, excess = ctx.exp(t[0]), ctx.exp(t[1])
        b = [excess * ctx.mpf(u) for u in v]
        return (
            GaussianOracle(m=list(mean), kappa=kappa, a=1 + excess, b=b, shared=shared)
            .fit(X, Y, K, w)
            .evidence_parts()[1]
        )

    return height


def gda_height(X, w, shared):
    mean, v = overall(X, w)
    d = len(v)

    def height(t):
        kappa, excess = ctx.exp(t[0]), ctx.exp(t[1])
        psi = [[excess * ctx.mpf(v[i]) if i == j else 0 for j in range(d)] for i in range(d)]
        oracle = GDAOracle(m0=list(mean), kappa0=kappa, nu0=d + 1 + excess, Psi0=psi, shared=shared)
        return oracle.fit(X, Y, K, w).evidence_parts()[1]

    return height


def poisson_height(X, w, _):
    def height(t):
        a, mean = ctx.exp(t[0]), ctx.exp(t[1])
        return PoissonOracle(a, a / mean).fit(X, Y, K, w).evidence_parts()[1]

    return height


PAIRS = {
    "Gaussian": (GaussianNB(prior="evidence"), SIZES, gaussian_height, False),
    "GDA": (GaussianDiscriminantAnalysis(prior="evidence"), SIZES[:, :2], gda_height, True),
    "GDA, per class": (
        GaussianDiscriminantAnalysis(prior="evidence", covariance="per_class"),
        SIZES[:, :2],
        gda_height,
        False,
    ),
    "Poisson": (PoissonNB(prior="evidence"), COUNTS, poisson_height, None),
}


@pytest.mark.parametrize("w", ["none", "fractional"])
@pytest.mark.parametrize("kind", PAIRS)
def test_two_hyperparameters_are_the_maximiser_of_the_reference(kind, w):
    model, X, make, shared = PAIRS[kind]
    found = fitted(kind).learned_ if w == "none" else clone(model).fit(X, Y, WEIGHTS[w]).learned_
    height = make(X, WEIGHTS[w], shared)
    at = np.log(found.value)
    top, hessian = newton(height, at)
    assert_allclose(at, top, atol=1e-6)  # of the logarithm: 1e-6 of the value
    assert np.linalg.eigvalsh(hessian).max() < 0
    assert_allclose(found.standard_error, np.sqrt(np.diag(np.linalg.inv(-hessian))), rtol=1e-5)
    assert_allclose(found.log_evidence, float(height(at)), rtol=1e-10)
    # No other hill: the simplex from far starts does not end higher.
    for start in ([-3.0, 4.0], [4.0, 1.0]):
        other = minimize(lambda t: -found.curve(np.exp(t))[0], start, method="Nelder-Mead", options={"maxiter": 40})
        assert -other.fun <= found.log_evidence + 1e-9
    assert_allclose(found.curve([[0.7, 3.0]])[0], float(height(np.log([0.7, 3.0]))), rtol=1e-10)


def test_poisson_slopes_vanish_at_the_learned_prior():
    model = PoissonNB(prior="evidence").fit(COUNTS, Y)
    a, mean = model.learned_.value
    oracle = PoissonOracle(a, a / mean)
    slope_a, slope_b = oracle.evidence_slopes(oracle.fit(COUNTS, Y, K))
    assert_allclose([float(a * slope_a), float(slope_b * a / mean)], 0.0, atol=1e-7)
    assert_allclose([model.prior_.shape, model.prior_.rate], [a, a / mean], rtol=1e-14)


@pytest.mark.parametrize("kind", ["Gaussian", "GDA", "GDA, per class"])
def test_the_strength_of_a_gaussian_prior_does_not_depend_on_units(kind):
    model, X, _, _ = PAIRS[kind]
    unit, shift = np.array([1e3, 1e-4, 40.0])[: X.shape[1]], np.array([-7.0, 1e3, 2.0])[: X.shape[1]]
    plain, changed = fitted(kind), clone(model).fit(X * unit + shift, Y)
    assert_allclose(changed.learned_.value, plain.learned_.value, rtol=1e-7)
    assert_allclose(changed.predict_proba(X * unit + shift), plain.predict_proba(X), rtol=1e-6)
    n_cells = len(Y) * np.log(unit).sum()
    assert_allclose(changed.learned_.log_evidence, plain.learned_.log_evidence - n_cells, rtol=1e-10)


def test_the_learned_covariance_shrinks_towards_the_diagonal_by_the_learned_intensity():
    model = GaussianDiscriminantAnalysis(prior="evidence", inference="mean").fit(SIZES, Y)
    excess = model.learned_.value[1]
    _, v = overall(SIZES, None)
    # With m0 the overall mean and a weak kappa, Psi - Psi0 is the pooled scatter and what the class means add.
    posterior = model.posterior_
    scatter = np.asarray(posterior.scale) - excess * np.diag(v)
    share = excess / (excess + len(Y))
    assert_allclose(model.covariance_, share * np.diag(v) + (1 - share) * scatter / len(Y), rtol=1e-9)


def test_one_variance_for_all_classes_is_learned_as_the_pooled_one():
    """The prior's mean is the pooled variance: the surer it is, the better it fits; what is left is kappa."""
    with pytest.warns(UserWarning, match="shape - 1 -> inf"):
        model = GaussianNB(prior="evidence", variance="shared").fit(SIZES, Y)
    mean, v = overall(SIZES, None)
    n = np.bincount(Y)[:, None]
    gap = np.stack([SIZES[k == Y].mean(axis=0) for k in range(K)]) - mean

    def slope(kappa):  # of the evidence with known variances, in kappa
        return (0.5 * n / (kappa * (kappa + n)) - 0.5 * n**2 / (kappa + n) ** 2 * gap**2 / v).sum()

    kappa, shape = model.learned_.value
    assert shape == np.inf
    assert_allclose(kappa, brentq(slope, 1e-6, 1e6, xtol=1e-14, rtol=1e-12), rtol=1e-6)
    assert np.isfinite(model.learned_.standard_error[0])
    assert np.isnan(model.learned_.standard_error[1])
    assert_allclose(model.var_[0], v, rtol=1e-8)


def test_equal_rates_want_a_prior_without_spread():
    with pytest.warns(UserWarning, match="shape -> inf"):
        model = PoissonNB(prior="evidence").fit(np.full((8, 2), 3), np.repeat([0, 1], 4))
    assert_allclose(model.rate_, 3.0, rtol=1e-6)
    assert_allclose(model.predict_proba([[9, 0]]), 0.5, atol=1e-6)


# ------------------------------------------------------------------------------- what it does not depend on

ALL = {
    **{name: (make(alpha="evidence"), X) for name, (make, X, _) in MODELS.items()},
    "background": (MultinomialNB(alpha=Evidence(base="background")), WORDS),
    **{name: (model, X) for name, (model, X, _, _) in PAIRS.items()},
}


@cache
def fitted(kind):
    """The model fitted to all rows; not to be changed."""
    model, X = ALL[kind]
    return clone(model).fit(X, Y)


everything = pytest.mark.parametrize("kind", ALL)
# Newton ends where rounding of the evidence (1e-13) does: at 1e-13 by exact slopes, at 1e-9 by differences.
CLOSE = {"rtol": 1e-8}


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "GDA, per class"])
def test_batches_merging_and_forgetting_learn_the_same(kind):
    model, X = ALL[kind]
    whole = fitted(kind).learned_
    first = np.arange(len(Y)) % 2 == 0
    batches = clone(model).partial_fit(X[first], Y[first], classes=range(K)).partial_fit(X[~first], Y[~first])
    one, two = (
        clone(model).partial_fit(X[first], Y[first], range(K)),
        clone(model).partial_fit(X[~first], Y[~first], range(K)),
    )
    more = clone(model).fit(np.vstack([X, X[:4]]), np.concatenate([Y, Y[:4]])).forget(X[:4], Y[:4])
    for part in (batches, one.merge(two), more):
        assert_allclose(part.learned_.value, whole.value, **CLOSE)
        assert_allclose(part.learned_.log_evidence, whole.log_evidence, rtol=1e-11)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "GDA"])
def test_names_and_order_of_classes_do_not_matter(kind):
    model, X = ALL[kind]
    mix = np.random.default_rng(0).permutation(len(Y))
    renamed = np.array(["c", "a", "b"])[Y]
    plain, other = fitted(kind), clone(model).fit(X[mix], renamed[mix])
    assert_allclose(other.learned_.value, plain.learned_.value, **CLOSE)
    assert_allclose(other.predict_proba(X)[:, [2, 0, 1]], plain.predict_proba(X), rtol=1e-6)


def test_permuted_classes_permute_their_concentrations():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        plain = MultinomialNB(alpha=Evidence(per_class=True)).fit(WORDS, Y)
        other = MultinomialNB(alpha=Evidence(per_class=True)).fit(WORDS, np.array(["c", "a", "b"])[Y])
    assert_allclose(other.alpha_[[2, 0, 1]], plain.alpha_, rtol=1e-12)


@everything
def test_leave_one_out_holds_what_the_full_fit_learned(kind):
    model, X = fitted(kind), ALL[kind][1]
    frozen = with_prior_of(model)
    for i in (0, 9, 20):
        rest = np.arange(len(Y)) != i
        joint = frozen.fit(X[rest], Y[rest]).predict_joint_log_proba(X[[i]])[0]
        assert_allclose(model.loo(X, Y).log_joint[i], joint, rtol=1e-9)


def with_prior_of(model):
    """An unfitted model whose prior is the one learned, stated as numbers."""
    if hasattr(model, "prior"):
        return clone(model).set_params(prior=model.prior_)
    return GenerativeClassifier(family=model.prior_, inference=model.inference)


def test_sparse_rows_learn_the_same():
    assert MultinomialNB(alpha="evidence").fit(sp.csr_array(WORDS), Y).alpha_ == pytest.approx(
        MultinomialNB(alpha="evidence").fit(WORDS, Y).alpha_, rel=1e-13
    )


def test_whole_weights_are_repeated_rows():
    w = WEIGHTS["whole"]
    weighted_fit = BernoulliNB(alpha="evidence").fit(BITS, Y, w)
    assert_allclose(
        BernoulliNB(alpha="evidence").fit(np.repeat(BITS, w, axis=0), np.repeat(Y, w)).alpha_, weighted_fit.alpha_
    )


# ------------------------------------------------------------------------------- where it is used


@pytest.mark.parametrize("kind", ["Bernoulli", "multinomial", "categorical", "Gaussian"])
@pytest.mark.parametrize("route", ["mean", "map", "mle", "exact"])
def test_every_route_takes_a_learned_prior(kind, route):
    model, X = ALL[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # modes on the boundary
        model = clone(model).set_params(inference=route).fit(X, Y)
        known = with_prior_of(model).fit(X, Y)
        assert_allclose(model.predict_joint_log_proba(X), known.predict_joint_log_proba(X), rtol=1e-12)


@everything
def test_pickles_and_copies_keep_what_was_learned(kind):
    model, X = fitted(kind), ALL[kind][1]
    back = pickle.loads(pickle.dumps(model))
    assert_array_equal(back.learned_.value, model.learned_.value)
    assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_a_search_may_choose_between_learned_and_fixed_smoothing():
    grid = {"alpha": ["evidence", Evidence(base="background"), 1.0, 1000.0]}
    search = GridSearchCV(MultinomialNB(), grid, scoring="neg_log_loss", cv=3).fit(WORDS, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["alpha"] != 1000.0


def test_blocks_of_a_mixed_model_learn_each_their_own():
    X = np.column_stack([WORDS, SIZES])
    blocks = [("words", MultinomialNB(alpha="evidence"), range(5)), ("sizes", GaussianNB(prior="evidence"), [5, 6, 7])]
    model = MixedNB(blocks=blocks).fit(X, Y)
    words, sizes = (block for _, block, _ in model.blocks_)
    assert_allclose(words.alpha_, MultinomialNB(alpha="evidence").fit(WORDS, Y).alpha_, rtol=1e-13)
    assert_allclose(sizes.learned_.value, GaussianNB(prior="evidence").fit(SIZES, Y).learned_.value, rtol=1e-13)
    total = words.learned_.log_evidence + sizes.learned_.log_evidence
    assert_allclose(model.log_evidence_parts_["x_given_y"], total, rtol=1e-12)
    with pytest.raises(UndefinedNumberError, match="nothing was learned"):
        model.learned_  # noqa: B018


def test_families_ask_for_evidence_too():
    general = GenerativeClassifier(family=Multinomial(Evidence())).fit(WORDS, Y)
    named = MultinomialNB(alpha="evidence").fit(WORDS, Y)
    assert_array_equal(general.learned_.value, named.learned_.value)
    assert_allclose(general.predict_proba(WORDS), named.predict_proba(WORDS), rtol=1e-14)
    bits = GenerativeClassifier(family=Bernoulli(Evidence(), Evidence())).fit(BITS, Y)
    assert_allclose(bits.learned_.value, BernoulliNB(alpha="evidence").fit(BITS, Y).alpha_, rtol=1e-14)


def test_nothing_learned_is_an_error_that_says_how():
    with pytest.raises(UndefinedNumberError, match="alpha='evidence'"):
        MultinomialNB().fit(WORDS, Y).learned_  # noqa: B018
    assert not hasattr(GaussianNB().fit(SIZES, Y), "learned_")


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (MultinomialNB(alpha="evidenz"), WORDS, "or 'evidence'; got 'evidenz'"),
        (BernoulliNB(alpha="evidenz"), BITS, "or 'evidence'; got 'evidenz'"),
        (CategoricalNB(alpha="evidenz"), LEVELS, "or 'evidence'; got 'evidenz'"),
        (GaussianNB(prior="evidenz"), SIZES, "'evidence', 'reference'.*got 'evidenz'"),
        (GaussianDiscriminantAnalysis(prior="evidenz"), SIZES, "'evidence', 'reference'.*got 'evidenz'"),
        (PoissonNB(prior="evidenz"), COUNTS, "'evidence'.*got 'evidenz'"),
        (BernoulliNB(alpha=("evidence", 1.0)), BITS, "a and b together"),
        (BernoulliNB(alpha=(1.0, "evidence")), BITS, "a and b together"),
    ],
    ids=str,
)
def test_what_is_not_a_prior_is_refused(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_a_base_has_one_name():
    with pytest.raises(ValueError, match="base must be None or 'background'; got 'foreground'"):
        Evidence(base="foreground")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["multinomial", "Bernoulli", "Gaussian"])
def test_draws_under_a_learned_prior_predict_as_the_closed_form(kind):
    model, X = ALL[kind]
    options = NUTSOptions(num_warmup=300, num_samples=1500, num_chains=2, progress_bar=False)
    sampled = clone(model).set_params(inference=options, random_state=0).fit(X, Y)
    exact = clone(model).fit(X, Y)
    assert_array_equal(sampled.learned_.value, exact.learned_.value)
    # 3000 draws: Monte Carlo standard errors of probabilities up to 0.01 where rows pull on the posterior.
    assert_allclose(sampled.predict_proba(X), exact.predict_proba(X), atol=0.05)
