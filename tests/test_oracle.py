"""The reference implementation is itself checked: printed values, scipy, scikit-learn, and identities."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import oracle
import pytest
import scipy.integrate
import scipy.stats as st
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
    dirichlet_concentration,
    dirichlet_evidence,
    dirichlet_evidence_slope,
    dirichlet_evidence_vector,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

# Both sides of a comparison with scipy or scikit-learn are float64.
TIGHT = {"rtol": 1e-10, "atol": 1e-10}
Y5 = [0, 0, 0, 1, 1]
EYE = [[1, 0], [0, 1]]
NUMBERS = [[0.5], [-0.3], [1.1], [2], [3.4]]
POINTS = [[0.5, 1], [-0.3, 0.2], [1.1, 0.4], [2, -1], [3.4, 0.3]]
NAN = float("nan")


def digits(text):
    """Rows written as "210 100": one digit per cell."""
    return [[int(c) for c in row] for row in text.split()]


# Model, rows, x*; then ln p(X | y); P by mle, map, mean, exact; J_1; elpd joint, conditional: as printed.
TABLE = [
    (
        (BernoulliOracle(1, 1), digits("10 11 01 00 01"), [1, 0]),
        "-7.86018506 0.000000 0.000000 0.294118 0.294118 -2.89037176 -12.59443229 -4.30298343",
    ),
    (
        (MultinomialOracle(0.5), digits("210 100 021 013 102"), [1, 1, 2]),
        "-16.77687419 0.649351 0.708455 0.663923 0.583475 -5.60852999 -21.09927056 -3.12121578",
    ),
    (
        (CategoricalOracle(1, [3]), digits("0 1 1 2 2"), [2]),
        "-5.19295685 1.000000 1.000000 0.742268 0.742268 -1.32175584 -8.86941379 -2.38774290",
    ),
    (
        (PoissonOracle(2, 1), digits("2 0 1 5 4"), [3]),
        "-9.39243333 0.647203 0.729266 0.643046 0.622023 -2.47832429 -12.75613456 -1.77430976",
    ),
    (
        (GaussianOracle(0, 1, 2, 1), NUMBERS, [1.5]),
        "-9.60610391 0.414725 0.795062 0.571124 0.594327 -2.07893414 -12.34396600 -1.90954659",
    ),
    (
        (GaussianOracle(0, 1, 2, 1, shared=True), NUMBERS, [1.5]),
        "-10.13547829 0.312245 0.656518 0.569690 0.571471 -1.93711737 -12.80863302 -2.36104345",
    ),
    (
        (GDAOracle(0, 1, 4, EYE), POINTS, [1.5, 0]),
        "-17.18668309 0.554487 0.795481 0.618284 0.636400 -2.48212203 -19.64479816 -1.72232112",
    ),
    (
        (GDAOracle(0, 1, 4, EYE, shared=False), POINTS, [1.5, 0]),
        "-16.87218256 error 0.972672 0.620597 0.701715 -2.72866056 -20.01774101 -1.55871981",
    ),
]
NAMES = [
    "bernoulli",
    "multinomial",
    "categorical",
    "poisson",
    "gaussian",
    "gaussian shared",
    "gda",
    "gda per class",
]
MODELS = [pytest.param(*case, id=name) for (case, _), name in zip(TABLE, NAMES, strict=True)]


@pytest.mark.parametrize(("case", "printed"), TABLE, ids=NAMES)
def test_check_table(case, printed):
    model, X, x = case
    fit = model.fit(X, Y5, 2, class_alpha=[2, 2])
    log_y, log_x = fit.evidence_parts()
    elpd = fit.elpd()
    found = [f"{float(log_x):.8f}"]
    for route in ("mle", "map", "mean", "exact"):
        try:
            found.append(f"{float(fit.proba([x], route)[0][1]):.6f}")
        except Undefined:
            found.append("error")
    found += [f"{float(v):.8f}" for v in (fit.log_joint([x])[0][1], elpd.joint, elpd.conditional)]
    assert f"{float(log_y):.8f}" == "-3.84303013"
    assert found == printed.split()


@pytest.mark.parametrize(("model", "X", "x"), MODELS)
def test_evidence_is_the_chain_of_predictives_in_any_order(model, X, x):
    fit = model.fit(X, Y5, 3, class_alpha=[2, 0.5, 1])  # class 2 has no rows
    for order in (None, [3, 0, 4, 2, 1]):
        assert abs(fit.evidence() - fit.evidence_sequential(order)) < 1e-50


@pytest.mark.parametrize(("model", "X", "x"), MODELS)
def test_integer_weights_are_replicated_rows_and_zero_weights_nothing(model, X, x):
    w = [2, 1, 0, 3, 1]
    repeated = [i for i, times in enumerate(w) for _ in range(times)]
    weighted = model.fit(X, Y5, 2, w=w)
    copied = model.fit([X[i] for i in repeated], [Y5[i] for i in repeated], 2)
    np.testing.assert_allclose(as_float(weighted.evidence()), as_float(copied.evidence()), rtol=1e-15)
    for route in ("map", "mean", "exact"):
        np.testing.assert_allclose(
            as_float(weighted.log_joint([x], route)), as_float(copied.log_joint([x], route)), rtol=1e-15
        )


@pytest.mark.parametrize(("model", "X", "x"), MODELS)
def test_loo_entries_of_the_true_class_are_ratios_of_evidences(model, X, x):
    fit = model.fit(X, Y5, 2)
    rows = fit.elpd().joint_rows
    for i in range(5):
        rest = [t for t in range(5) if t != i]
        without = model.fit([X[t] for t in rest], [Y5[t] for t in rest], 2)
        assert abs(rows[i] - (fit.evidence() - without.evidence())) < 1e-50


@pytest.mark.parametrize(("model", "X", "x"), MODELS)
def test_class_prior_can_be_fixed_or_mixed_in(model, X, x):
    fit = model.fit(X, Y5, 2, class_prior=[0.25, 0.75])
    assert as_float(fit.evidence_parts()[0]) == pytest.approx(3 * math.log(0.25) + 2 * math.log(0.75), rel=1e-15)
    free = model.fit(X, Y5, 2, class_alpha=0)
    np.testing.assert_allclose(as_float(free.class_probabilities("mean")), [0.6, 0.4], rtol=1e-15)
    with pytest.raises(Undefined):
        free.evidence_parts()
    likelihood = as_float(fit.log_likelihood([x], "mean"))
    joint = as_float(free.log_joint([x], "mean", class_route="mle"))
    np.testing.assert_allclose(joint, likelihood + np.log([0.6, 0.4]), rtol=1e-14)


# ------------------------------------------------------------------------------ modes maximise the density


def nudged(params, path, step):
    """Copy `params` with the numbers at `path`, a list of (key, index tuple), moved by `step`, exactly."""
    out = oracle.read_params(params)
    for key, index in path:
        cells = out[key]
        for i in index[:-1]:
            cells = cells[i]
        cells[index[-1]] += step
    return out


PROPER_MODES = [
    (BernoulliOracle(2, 3), digits("10 11 01 00 01"), [[("p", (0, 1))], [("p", (2, 0))]]),
    (PoissonOracle(2, 1), digits("2 0 1 5 4"), [[("rate", (1, 0))], [("rate", (2, 0))]]),
    (
        GaussianOracle(0, 1, 2, 1),
        NUMBERS,
        [[("mean", (0, 0))], [("variance", (1, 0))], [("variance", (2, 0))]],
    ),
    (GaussianOracle(0, 1, 2, 1, shared=True), NUMBERS, [[("mean", (2, 0))], [("variance", (0,))]]),
    (
        GDAOracle(0, 1, 4, EYE),
        POINTS,
        [
            [("mean", (0, 1))],
            [("covariance", (0, 0))],
            [("covariance", (0, 1)), ("covariance", (1, 0))],
        ],
    ),
    (
        GDAOracle(0, 1, 4, EYE, shared=False),
        POINTS,
        [[("mean", (1, 1))], [("covariance", (0, 1, 1))], [("covariance", (2, 0, 0))]],
    ),
]


@pytest.mark.parametrize(("model", "X", "paths"), PROPER_MODES)
def test_map_is_the_maximum_of_the_joint_density(model, X, paths):
    fit = model.fit(X, Y5, 3, class_alpha=2)  # an empty class counts among the K means of a shared variance
    phi, params = fit.class_probabilities("map"), fit.parameters("map")
    top = fit.log_density(phi, params)
    for path in paths:
        step = oracle.number(1e-20)
        up, down = (fit.log_density(phi, nudged(params, path, h)) for h in (step, -step))
        assert max(up, down) < top
        assert abs(up - down) / step < 1e-30  # the slope; its rounding is about 1e-39


@pytest.mark.parametrize(("model", "X", "paths"), PROPER_MODES[2:])
def test_mle_is_the_maximum_of_the_likelihood(model, X, paths):
    X, y = [*X, *[[v + 0.7 * j for j, v in enumerate(row)] for row in X]], [*Y5, *Y5[::-1]]
    fit = model.fit(X, y, 2)
    phi, params = fit.class_probabilities("mle"), fit.parameters("mle")
    top = fit.log_density(phi, params, prior=False)
    for path in paths:
        if any(index[0] == 2 for _, index in path):
            continue
        assert all(fit.log_density(phi, nudged(params, path, step), prior=False) < top for step in (1e-4, -1e-4))


def test_multinomial_and_categorical_modes_are_maxima():
    for model, X in [
        (MultinomialOracle(1.5), digits("210 100 021 013 102")),
        (CategoricalOracle(2, [3]), digits("0 1 1 2 2")),
    ]:
        fit = model.fit(X, Y5, 2, class_alpha=2)
        phi, params = fit.class_probabilities("map"), as_float(fit.parameters("map"))["theta"]
        top = fit.log_density(phi, {"theta": params})
        for step in (1e-3, -1e-3):
            moved = np.array(params, copy=True)
            moved[..., 0, 0] += step
            moved[..., 0, 1] -= step
            assert fit.log_density(phi, {"theta": moved}) < top


@pytest.mark.parametrize(("model", "X", "x"), [p for p, name in zip(MODELS, NAMES, strict=True) if "multi" not in name])
def test_prior_times_likelihood_over_evidence_is_the_posterior(model, X, x):
    """At any point p(x | D) p(theta | D, x) = p(x | theta) p(theta | D)."""
    fit, more = model.fit(X, Y5, 2), model.fit([*X, x], [*Y5, 1], 2)
    phi, params = fit.class_probabilities("mean"), fit.parameters("mean")
    posterior = fit.log_density(phi, params) - fit.evidence()
    updated = more.log_density(phi, params) - more.evidence()
    likelihood = oracle.safe_log(phi[1]) + fit.log_likelihood([x], "mean")[0][1]
    assert abs(updated + fit.log_joint([x])[0][1] - likelihood - posterior) < 1e-50


# --------------------------------------------------------------------------------------------------- scipy


def test_bernoulli_against_beta_binomial():
    X = digits("10 11 01 00 01")
    fit = BernoulliOracle([0.7, 2], [1.3, 0.4]).fit(X, Y5, 2)
    total = 0.0
    for k, j in itertools.product(range(2), range(2)):
        column = [row[j] for row, label in zip(X, Y5, strict=True) if label == k]
        n, ones = len(column), sum(column)
        a, b = [0.7, 2][j], [1.3, 0.4][j]
        total += st.betabinom(n, a, b).logpmf(ones) - math.log(math.comb(n, ones))
    np.testing.assert_allclose(as_float(fit.evidence_parts()[1]), total, **TIGHT)


def test_multinomial_against_dirichlet_multinomial():
    X = digits("210 100 021 013 102")
    alpha = np.array([[0.5, 1, 2], [0.3, 0.2, 4]])
    fit = MultinomialOracle(alpha, coef=True).fit(X, Y5, 2)
    N = np.array([np.sum(X[:3], axis=0), np.sum(X[3:], axis=0)])
    x = np.array([1, 1, 2])
    for k in range(2):
        expected = st.dirichlet_multinomial(alpha[k] + N[k], 4).logpmf(x)
        np.testing.assert_allclose(as_float(fit.log_likelihood([x])[0][k]), expected, **TIGHT)
    plain = MultinomialOracle(alpha).fit(X, Y5, 2, class_alpha=2)
    shift = as_float(fit.evidence_parts()[1] - plain.evidence_parts()[1])
    coefficients = [math.factorial(sum(r)) / math.prod(math.factorial(c) for c in r) for r in X]
    np.testing.assert_allclose(shift, np.sum(np.log(coefficients)), **TIGHT)
    # The plug-in of the count vector is scipy's multinomial.
    theta = as_float(fit.parameters("mean"))["theta"]
    expected = [st.multinomial(4, t).logpmf(x) for t in theta]
    np.testing.assert_allclose(as_float(fit.log_likelihood([x], "mean")[0]), expected, **TIGHT)


def test_poisson_against_negative_binomial():
    fit = PoissonOracle(2.5, 0.7).fit(digits("2 0 1 5 4"), Y5, 2)
    for x in (0, 3, 11):
        for k, (S, n) in enumerate([(3, 3), (9, 2)]):
            a, b = 2.5 + S, 0.7 + n
            expected = st.nbinom(a, b / (b + 1)).logpmf(x)
            np.testing.assert_allclose(as_float(fit.log_likelihood([[x]])[0][k]), expected, **TIGHT)
    rates = as_float(fit.parameters("mean"))["rate"][:, 0]
    np.testing.assert_allclose(as_float(fit.log_likelihood([[3]], "mean")[0]), st.poisson(rates).logpmf(3), **TIGHT)


@pytest.mark.parametrize("shared", [False, True])
def test_gaussian_against_student_t(shared):
    m, kappa, a, b = 0.3, 2.0, 1.5, 0.8
    fit = GaussianOracle(m, kappa, a, b, shared=shared).fit(NUMBERS, Y5, 2)
    x = np.array(NUMBERS)[:, 0]
    parts = [x[:3], x[3:]]
    Q = [
        0.5 * np.sum((p - p.mean()) ** 2) + kappa * len(p) / (2 * (kappa + len(p))) * (p.mean() - m) ** 2 for p in parts
    ]
    for k, p in enumerate(parts):
        kp, mp = kappa + len(p), (kappa * m + p.sum()) / (kappa + len(p))
        ap, bp = (a + 2.5, b + sum(Q)) if shared else (a + len(p) / 2, b + Q[k])
        scale = np.sqrt(bp * (kp + 1) / (ap * kp))
        found = as_float(fit.log_likelihood([[1.5]])[0][k])
        np.testing.assert_allclose(found, st.t(2 * ap, mp, scale).logpdf(1.5), **TIGHT)
    if not shared:
        # Marginally a class's rows are one multivariate t with a compound-symmetric scale.
        expected = 0
        for p in parts:
            scale = b / a * (np.eye(len(p)) + np.ones((len(p), len(p))) / kappa)
            expected += st.multivariate_t(np.full(len(p), m), scale, 2 * a).logpdf(p)
        np.testing.assert_allclose(as_float(fit.evidence_parts()[1]), expected, **TIGHT)


@pytest.mark.parametrize("shared", [False, True])
def test_gda_against_multivariate_t_with_and_without_missing_cells(shared):
    Psi0 = np.array([[2.0, 0.3], [0.3, 1.5]])
    m0, kappa0, nu0 = np.array([0.4, -0.1]), 0.7, 3.5
    fit = GDAOracle(m0, kappa0, nu0, Psi0, shared=shared).fit(POINTS, Y5, 2)
    X, y = np.array(POINTS), np.array(Y5)
    x = np.array([1.5, 0.2])
    terms = []
    for k in range(2):
        p = X[y == k]
        e, mean = p - p.mean(0), p.mean(0) - m0
        terms.append(e.T @ e + kappa0 * len(p) / (kappa0 + len(p)) * np.outer(mean, mean))
    for k in range(2):
        n = np.sum(y == k)
        kk = kappa0 + n
        mk = (kappa0 * m0 + X[y == k].sum(0)) / kk
        nu, Psi = (nu0 + 5, Psi0 + sum(terms)) if shared else (nu0 + n, Psi0 + terms[k])
        df = nu - 1
        scale = (kk + 1) / (kk * df) * Psi
        found = as_float(fit.log_likelihood([x, [1.5, NAN], [NAN, 0.2], [NAN, NAN]]))[:, k]
        expected = [
            st.multivariate_t(mk, scale, df).logpdf(x),
            st.t(df, mk[0], np.sqrt(scale[0, 0])).logpdf(1.5),
            st.t(df, mk[1], np.sqrt(scale[1, 1])).logpdf(0.2),
            0.0,
        ]
        np.testing.assert_allclose(found, expected, **TIGHT)


def test_prior_densities_against_scipy():
    fit = GDAOracle(0, 1, 4, EYE).fit(POINTS, Y5, 2, class_alpha=[2, 3])
    sigma, mu = np.array([[1.2, 0.3], [0.3, 0.9]]), np.array([[0.1, 0.2], [1.0, -1.0]])
    empty = {"X": [], "y": []}
    found = as_float(fit.log_density([0.3, 0.7], {"mean": mu, "covariance": sigma}, **empty))
    expected = st.beta(2, 3).logpdf(0.3) + st.invwishart(4, np.eye(2)).logpdf(sigma)
    expected += sum(st.multivariate_normal(np.zeros(2), sigma).logpdf(m) for m in mu)
    np.testing.assert_allclose(found, expected, **TIGHT)
    fit = GaussianOracle(0.5, 2, 1.5, 0.7).fit(NUMBERS, Y5, 2)
    found = as_float(fit.log_density([0.3, 0.7], {"mean": [[0.1], [2]], "variance": [[1.4], [0.6]]}, **empty))
    expected = sum(
        st.invgamma(1.5, scale=0.7).logpdf(v) + st.norm(0.5, np.sqrt(v / 2)).logpdf(m)
        for m, v in [(0.1, 1.4), (2, 0.6)]
    )
    np.testing.assert_allclose(found, expected, **TIGHT)
    fit = PoissonOracle(2.5, 0.7).fit(digits("2 0 1 5 4"), Y5, 2)
    found = as_float(fit.log_density([0.3, 0.7], {"rate": [[1.4], [0.6]]}, **empty))
    np.testing.assert_allclose(found, st.gamma(2.5, scale=1 / 0.7).logpdf([1.4, 0.6]).sum(), **TIGHT)


# -------------------------------------------------------------------------------------------- scikit-learn


@pytest.fixture
def rng():
    return np.random.default_rng(20240611)


def test_multinomial_and_bernoulli_against_sklearn(rng):
    X, y = rng.poisson(1.0, (40, 6)), rng.integers(0, 3, 40)
    theirs = MultinomialNB(alpha=0.7).fit(X, y).predict_log_proba(X)
    ours = MultinomialOracle(0.7).fit(X, y, 3).log_proba(X, "mean", class_route="mle")
    np.testing.assert_allclose(as_float(ours), theirs, **TIGHT)
    theirs = BernoulliNB(alpha=0.7).fit(X, y).predict_log_proba(X)
    ours = BernoulliOracle(0.7, 0.7).fit(X > 0, y, 3).log_proba(X > 0, "mean", class_route="mle")
    np.testing.assert_allclose(as_float(ours), theirs, **TIGHT)


def test_categorical_against_sklearn(rng):
    X, y = rng.integers(0, 4, (40, 3)), rng.integers(0, 3, 40)
    w = rng.integers(1, 4, 40)
    theirs = CategoricalNB(alpha=0.7, min_categories=5).fit(X, y, sample_weight=w).predict_log_proba(X)
    fit = CategoricalOracle(0.7, [5, 5, 5]).fit(X, y, 3, w=w)
    np.testing.assert_allclose(as_float(fit.log_proba(X, "mean", class_route="mle")), theirs, **TIGHT)


def test_gaussians_against_sklearn(rng):
    y = np.repeat([0, 1, 2], [14, 10, 16])
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + y[:, None]
    cases = [
        (GaussianOracle(), GaussianNB(var_smoothing=0)),
        (GDAOracle(), LinearDiscriminantAnalysis(solver="lsqr")),
        (GDAOracle(shared=False), QuadraticDiscriminantAnalysis()),
    ]
    for model, estimator in cases:
        theirs = estimator.fit(X, y).predict_log_proba(X)
        fit = model.fit(X, y, 3)
        np.testing.assert_allclose(as_float(fit.log_proba(X, "mle")), theirs, rtol=1e-8, atol=1e-8)
    lda = cases[1][1]
    form = as_float(GDAOracle().fit(X, y, 3).logistic("mle"))
    np.testing.assert_allclose(form.weights, lda.coef_, rtol=1e-9)
    np.testing.assert_allclose(form.bias, lda.intercept_, rtol=1e-9)


# ------------------------------------------------------------------------------------------- logistic form

LINEAR = [
    (BernoulliOracle(1, 2), digits("10 11 01 00 01"), digits("10 01 11"), None),
    (MultinomialOracle(0.5), digits("210 100 021 013 102"), digits("112 003 000"), None),
    (CategoricalOracle(1, [3, 2]), digits("00 11 10 21 20"), digits("01 20 11"), [3, 2]),
    (PoissonOracle(2, 1), digits("20 01 13 52 41"), digits("12 00 31"), None),
    (GaussianOracle(), POINTS, POINTS[:3], None),
    (GaussianOracle(shared=True), POINTS, POINTS[:3], None),
    (GDAOracle(), POINTS, POINTS[:3], None),
    (GDAOracle(shared=False), POINTS, POINTS[:3], None),
]


@pytest.mark.parametrize("route", ["map", "mean"])
@pytest.mark.parametrize(("model", "X", "new", "levels"), LINEAR)
def test_logistic_form_gives_the_class_probabilities(model, X, new, levels, route):
    fit = model.fit(X, Y5, 2, class_alpha=2)
    if isinstance(model, (BernoulliOracle, MultinomialOracle, CategoricalOracle)) and route == "map":
        model = model._with(alpha=2) if not isinstance(model, BernoulliOracle) else BernoulliOracle(2, 2)
        fit = model.fit(X, Y5, 2, class_alpha=2)
    form = as_float(fit.logistic(route))
    features = np.array(new, dtype=float)
    if levels is not None:
        features = np.array([np.concatenate([np.eye(s)[c] for s, c in zip(levels, row, strict=True)]) for row in new])
    score = form.bias + features @ form.weights.T
    if form.quadratic is not None:
        score += np.einsum("ni,kij,nj->nk", features, form.quadratic, features)
    score -= scipy.special.logsumexp(score, axis=1, keepdims=True)
    np.testing.assert_allclose(score, as_float(fit.log_proba(new, route)), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------------------- log odds moments


def test_log_odds_moments_against_numerical_integration():
    fit = BernoulliOracle(1, 2).fit(digits("1 1 0 0 1"), Y5, 2, class_alpha=[2, 1])
    mean, variance = as_float(fit.log_odds_moments([[1]]))
    # log phi odds: Beta(3, 5); log p: Beta(1 + 1, 2 + 1) against Beta(1 + 2, 2 + 1).
    parts = [
        (st.beta(3, 5), lambda p: math.log(p / (1 - p))),
        (st.beta(2, 3), math.log),
        (st.beta(3, 3), lambda p: -math.log(p)),
    ]
    expected = [[d.expect(f), d.expect(lambda p, f=f: f(p) ** 2)] for d, f in parts]
    np.testing.assert_allclose(mean, [sum(e[0] for e in expected)], rtol=1e-7)
    np.testing.assert_allclose(variance, [sum(e[1] - e[0] ** 2 for e in expected)], rtol=1e-7)


def test_bernoulli_multinomial_and_categorical_moments_agree_on_two_cells():
    X = [[1], [1], [0], [0], [1]]
    pairs = [[r[0], 1 - r[0]] for r in X]
    codes = [[1 - r[0]] for r in X]
    fits = [
        (BernoulliOracle(0.5, 2).fit(X, Y5, 2), [[1], [0]]),
        (MultinomialOracle([0.5, 2]).fit(pairs, Y5, 2), [[1, 0], [0, 1]]),
        (CategoricalOracle(alpha_levels=[[0.5, 2]], n_levels=[2]).fit(codes, Y5, 2), [[0], [1]]),
    ]
    results = [np.array(as_float(fit.log_odds_moments(new))) for fit, new in fits]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-14)
    np.testing.assert_allclose(results[2], results[0], rtol=1e-14)
    assert len({round(as_float(fit.evidence_parts()[1]), 12) for fit, _ in fits}) == 1


def test_multinomial_log_odds_variance_against_draws(rng):
    fit = MultinomialOracle(1).fit(digits("210 100 021 013 102"), Y5, 2)
    theta = [rng.dirichlet(a, 200_000) for a in ([4, 4, 2], [2, 2, 6])]
    phi = rng.dirichlet([4, 3], 200_000)
    x = np.array([1, 1, 2])
    odds = np.log(phi[:, 1] / phi[:, 0]) + (np.log(theta[1]) - np.log(theta[0])) @ x
    mean, variance = as_float(fit.log_odds_moments([x]))
    assert abs(odds.mean() - mean[0]) < 5 * odds.std() / 200_000**0.5
    np.testing.assert_allclose(odds.var(), variance[0], rtol=0.02)  # several standard errors of a variance


# ------------------------------------------------------------------------------------------ missing values


def test_bernoulli_evidence_with_holes_is_the_sum_over_completions():
    X = [[1, NAN], [1, 1], [NAN, 1], [0, 0], [0, NAN]]
    model = BernoulliOracle(0.7, 1.2)
    holes = [(i, j) for i, row in enumerate(X) for j, v in enumerate(row) if v != v]
    total = 0
    for values in itertools.product([0, 1], repeat=len(holes)):
        full = [list(row) for row in X]
        for (i, j), v in zip(holes, values, strict=True):
            full[i][j] = v
        total += math.exp(model.fit(full, Y5, 2).evidence())
    assert as_float(model.fit(X, Y5, 2).evidence()) == pytest.approx(math.log(total), rel=1e-13)


@pytest.mark.parametrize("shared", [False, True])
def test_gaussian_evidence_with_holes_is_the_integral_over_completions(shared):
    model = GaussianOracle(0, 1, 2, 1, shared=shared)
    with_hole = model.fit([[0.5], [-0.3], [NAN], [2]], [0, 0, 1, 1], 2)

    def density(v):
        return math.exp(model.fit([[0.5], [-0.3], [v], [2]], [0, 0, 1, 1], 2).evidence())

    total, _ = scipy.integrate.quad(density, -np.inf, np.inf, epsabs=0, epsrel=1e-9)
    assert as_float(with_hole.evidence()) == pytest.approx(math.log(total), rel=1e-8)
    assert abs(with_hole.evidence() - with_hole.evidence_sequential()) < 1e-50


@pytest.mark.parametrize("route", ["mle", "map", "mean", "exact"])
def test_missing_cells_at_prediction_are_integrated_out(route):
    X, y = [*POINTS, [2.5, 2]], [*Y5, 1]
    fit = GDAOracle(0, 1, 4, EYE).fit(X, y, 2)

    def density(v):
        return math.exp(fit.log_joint([[1.5, v]], route)[0][1])

    total, _ = scipy.integrate.quad(density, -np.inf, np.inf, epsabs=0, epsrel=1e-9)
    assert as_float(fit.log_joint([[1.5, NAN]], route)[0][1]) == pytest.approx(math.log(total), rel=1e-8)
    phi = as_float(fit.class_probabilities(route))
    np.testing.assert_allclose(as_float(fit.log_joint([[NAN, NAN]], route)[0]), np.log(phi), rtol=1e-14)


def test_missing_counts_and_missing_cells_at_gda_fit_are_errors():
    with pytest.raises(ValueError, match="missing"):
        MultinomialOracle(1).fit([[1, NAN]], [0], 1)
    with pytest.raises(ValueError, match="missing"):
        GDAOracle().fit([[1, NAN], [1, 2]], [0, 0], 1)


# ----------------------------------------------------------------------------- limits and reference priors


@pytest.mark.parametrize("shared", [False, True])
def test_reference_prior_of_the_gaussian_gives_the_textbook_t(shared):
    x, y = np.array([0.5, -0.3, 1.1, 2, 3.4, 2.2]), np.array([0, 0, 0, 1, 1, 1])
    fit = GaussianOracle(**oracle.reference_nig(2, shared)).fit(x[:, None], y, 2)
    S = [((x[y == k] - x[y == k].mean()) ** 2).sum() for k in range(2)]
    for k in range(2):
        df, s2 = (4, sum(S) / 4) if shared else (2, S[k] / 2)
        expected = st.t(df, x[y == k].mean(), np.sqrt(s2 * (1 + 1 / 3))).logpdf(1.0)
        np.testing.assert_allclose(as_float(fit.log_likelihood([[1.0]])[0][k]), expected, **TIGHT)
    with pytest.raises(Undefined):
        fit.evidence_parts()


@pytest.mark.parametrize("shared", [False, True])
def test_reference_prior_of_gda_gives_geissers_t(shared):
    X, y = np.array([*POINTS, [2.5, 2], [0.1, 0.1], [3, 3]]), np.array([0, 0, 0, 1, 1, 1, 0, 1])
    fit = GDAOracle(**oracle.reference_niw(2, 2, shared)).fit(X, y, 2)
    S = [(X[y == k] - X[y == k].mean(0)).T @ (X[y == k] - X[y == k].mean(0)) for k in range(2)]
    for k in range(2):
        df = 8 - 2 - 2 + 1 if shared else 4 - 2
        scale = 5 / (4 * df) * (sum(S) if shared else S[k])
        expected = st.multivariate_t(X[y == k].mean(0), scale, df).logpdf([1, 1])
        np.testing.assert_allclose(as_float(fit.log_likelihood([[1, 1]])[0][k]), expected, **TIGHT)


@pytest.mark.parametrize("shared", [False, True])
def test_map_is_mle_and_mean_is_unbiased_in_the_stated_limits(shared):
    X, y = [*POINTS, [2.5, 2]], [*Y5, 1]
    K, d, zero = 2, 2, [[0, 0], [0, 0]]
    flat = GDAOracle(0, 0, -(d + K + 1) if shared else -(d + 2), zero, shared=shared).fit(X, y, K)
    for name in ("mean", "covariance"):
        np.testing.assert_allclose(
            as_float(flat.parameters("map"))[name], as_float(flat.parameters("mle"))[name], rtol=1e-14
        )
    a = -1 - Fraction(K, 2) if shared else Fraction(-3, 2)
    flat = GaussianOracle(0, 0, a, 0, shared=shared).fit(X, y, K)
    for name in ("mean", "variance"):
        np.testing.assert_allclose(
            as_float(flat.parameters("map"))[name], as_float(flat.parameters("mle"))[name], rtol=1e-14
        )
    if shared:
        pooled = GDAOracle(0, 0, d + 1 - K, zero).fit(X, y, K)
        np.testing.assert_allclose(
            as_float(pooled.parameters("mean"))["covariance"],
            as_float(pooled.parameters("unbiased"))["covariance"],
            rtol=1e-14,
        )


@pytest.mark.parametrize("shared", [False, True])
def test_gaussian_is_gda_in_one_dimension(shared):
    nig = GaussianOracle(0.2, 0.7, 1.5, 0.8, shared=shared).fit(NUMBERS, Y5, 2)
    niw = GDAOracle(0.2, 0.7, 3, [[1.6]], shared=shared).fit(NUMBERS, Y5, 2)
    np.testing.assert_allclose(as_float(nig.evidence()), as_float(niw.evidence()), rtol=1e-15)
    np.testing.assert_allclose(as_float(nig.loo()), as_float(niw.loo()), rtol=1e-15)
    for route in ("mle", "unbiased", "map", "mean", "exact"):
        np.testing.assert_allclose(
            as_float(nig.log_joint([[1.5]], route)), as_float(niw.log_joint([[1.5]], route)), rtol=1e-15
        )


# ------------------------------------------------------------------------------------------- leave-one-out


@pytest.mark.parametrize("shared", [False, True])
def test_gda_loo_is_the_rank_one_downdate(shared):
    w = [1, 0.5, 2, 1.5, 1]
    fit = GDAOracle([0.1, 0.2], 0.6, 3.5, [[2, 0.5], [0.5, 1]], shared=shared).fit(
        POINTS, Y5, 2, w=w, class_alpha=[2, 1]
    )
    table, s, d = as_float(fit.loo()), fit.state, 2
    n, a, M = as_float(fit.n), np.array([2.0, 1.0]), 6.0
    kappa, m = as_float(s["kappa"]), as_float(s["m"])
    for i, (x, k) in enumerate(zip(POINTS, Y5, strict=True)):
        e = [np.array(x) - m[t] for t in range(2)]
        for target in range(2):
            b = 0 if shared else target
            nu, kt = as_float(s["nu"][b]), kappa[target]
            Psi = as_float(s["Psi"][b])
            inv = np.linalg.inv(Psi)
            q, log_det = e[target] @ inv @ e[target], np.linalg.slogdet(Psi)[1]
            if shared or target == k:
                r, qk = e[target] @ inv @ e[k], e[k] @ inv @ e[k]
                c = w[i] * kappa[k] / (kappa[k] - w[i])
                shrink = 1 - c * qk
                nu, log_det = nu - w[i], log_det + np.log(shrink)
                q = (kt / (kt - w[i])) ** 2 * qk / shrink if target == k else q + c * r**2 / shrink
                kt = kt - w[i] if target == k else kt
            eta = nu - d + 1
            expected = scipy.special.gammaln((eta + d) / 2) - scipy.special.gammaln(eta / 2) - d / 2 * np.log(np.pi)
            expected -= 0.5 * log_det + d / 2 * np.log1p(1 / kt) + (eta + d) / 2 * np.log1p(kt / (kt + 1) * q)
            expected += np.log((a[target] + n[target] - w[i] * (target == k)) / (3 + M - w[i]))
            np.testing.assert_allclose(table[i, target], expected, **TIGHT)


def test_loo_rows_that_do_not_exist_are_nan():
    # Under the reference prior two rows of a class cannot spare one: t_{n - d} has no freedom left.
    fit = GDAOracle(**oracle.reference_niw(2, 1, False)).fit([[0.0], [1.0], [3.0], [0.0], [2.0]], Y5, 2)
    table = as_float(fit.loo())
    assert np.isfinite(table[:3]).all()
    assert np.isnan(table[3:]).all()
    # An only row under class_alpha = 0: its class has probability 0 without it, which is a number.
    fit = PoissonOracle().fit([[1], [2], [3]], [0, 0, 1], 2, class_alpha=0)
    assert as_float(fit.loo())[2, 1] == -np.inf
    assert np.isfinite(as_float(fit.loo())[2, 0])


# ----------------------------------------------------------------------------- undefined numbers, defaults


def test_undefined_parameters_are_nan_and_using_them_is_an_error():
    fit = BernoulliOracle(1, 1).fit([[1, 0], [0, 1]], [0, 0], 2)
    assert np.isnan(as_float(fit.parameters("mle"))["p"][1]).all()
    assert np.isnan(as_float(fit.parameters("map"))["p"][1]).all()
    # An empty class has probability 0 under mle, so its parameters are not consulted.
    assert as_float(fit.log_joint([[1, 0]], "mle"))[0, 1] == -np.inf
    with pytest.raises(Undefined):
        fit.log_joint([[1, 0]], "mle", class_route="mean")
    # Missing cells do not need the parameter.
    assert np.isfinite(as_float(fit.log_joint([[NAN, NAN]], "mle", class_route="mean"))).all()
    # A row that no class can generate has no class probabilities.
    sure = BernoulliOracle(1, 1).fit([[1], [1]], [0, 1], 2)
    assert np.isnan(as_float(sure.log_proba([[0]], "mle"))).all()
    assert np.isnan(as_float(GaussianOracle(0, 1, 0.4, 1).fit([[1]], [0], 1).parameters("mean"))["variance"]).all()
    assert np.isnan(as_float(GaussianOracle(0, 1, 2, 1).fit([[1], [1]], [0, 0], 1).parameters("mle"))["variance"]).all()


def test_mode_rule():
    for alpha, expected in [
        ([3, 2, 1], [2 / 3, 1 / 3, 0]),
        ([3, 0.5, 2], [2 / 3, 0, 1 / 3]),
        ([1, 1], [NAN, NAN]),
    ]:
        np.testing.assert_allclose(
            as_float(oracle.dirichlet_mode([oracle.number(a) for a in alpha])), expected, rtol=1e-15
        )


def test_unknown_categorical_level():
    X, y = digits("0 1 1 2 2"), Y5
    fit = CategoricalOracle(alpha_levels=[[1, 2, 3]], n_levels=[3]).fit(X, y, 2, class_alpha=0)
    declared = CategoricalOracle(alpha_levels=[[1, 2, 3, 2]], n_levels=[4]).fit(X, y, 2, class_alpha=0)
    for route in ("mean", "exact"):
        np.testing.assert_allclose(
            as_float(fit.log_joint([[3]], route)), as_float(declared.log_joint([[3]], route)), rtol=1e-15
        )
    np.testing.assert_allclose(
        as_float(fit.log_odds_moments([[3]])), as_float(declared.log_odds_moments([[3]])), rtol=1e-14
    )
    assert (as_float(fit.log_joint([[3]], "mle")) == -np.inf).all()
    ignoring = CategoricalOracle(1, [3], handle_unknown="ignore").fit(X, y, 2)
    assert as_float(ignoring.log_joint([[3]])).tolist() == as_float(ignoring.log_joint([[NAN]])).tolist()
    with pytest.raises(ValueError, match="unknown level"):
        CategoricalOracle(1, [3], handle_unknown="error").fit(X, y, 2).log_joint([[3]])


def test_default_priors_are_scaled_by_the_data():
    X = [[1.0, 5, 2, 7], [3.0, 5, 2, 7], [2.0, 6, 2, NAN], [6.0, 6, 2, 9]]
    y, w = [0, 0, 1, 1], [1, 1, 1, 1]
    prior = as_float(oracle.default_nig(X, y, 2, w))
    # Column 1 is constant within classes, column 2 everywhere, column 3 has a hole.
    np.testing.assert_allclose(prior["m"], [3, 5.5, 2, 23 / 3], rtol=1e-15)
    v = [(2 + 8) / 4, 0.25, 1, (2 * (2 / 3) ** 2 + (4 / 3) ** 2) / 3]
    np.testing.assert_allclose(prior["b"], 0.5 * np.array(v), rtol=1e-15)
    complete = [row[:3] for row in X]
    niw = as_float(oracle.default_niw(complete, y, 2))
    assert (niw["nu0"], niw["kappa0"]) == (5, 0.01)
    np.testing.assert_allclose(niw["Psi0"], np.diag(v[:3]), rtol=1e-15)
    # A zero-weight row changes nothing.
    padded = as_float(oracle.default_nig([*X, [99, 99, 99, 99]], [*y, 1], 2, [*w, 0]))
    np.testing.assert_array_equal(padded["b"], prior["b"])
    # One dimension: the normal-inverse-gamma default is the normal-inverse-Wishart one.
    nig, niw = GaussianOracle(shared=True).fit(NUMBERS, Y5, 2), GDAOracle().fit(NUMBERS, Y5, 2)
    np.testing.assert_allclose(as_float(nig.evidence()), as_float(niw.evidence()), rtol=1e-15)


def test_defaults_are_equivariant_and_held_fixed_in_loo():
    base = GDAOracle().fit(POINTS, Y5, 2)
    moved = GDAOracle().fit([[2 * a + 64, b / 4] for a, b in POINTS], Y5, 2)
    shift = math.log(2) - math.log(4)
    np.testing.assert_allclose(as_float(base.loo()) - shift, as_float(moved.loo()), rtol=1e-14)
    np.testing.assert_allclose(as_float(base.evidence()) - 5 * shift, as_float(moved.evidence()), rtol=1e-14)


# ------------------------------------------------------------------------------------------- large numbers


@pytest.mark.parametrize("model", [GaussianOracle(), GaussianOracle(shared=True), GDAOracle(), GDAOracle(shared=False)])
def test_a_large_offset_loses_no_digit(model):
    offset = 2.0**40  # about 1e12; the rows below are multiples of 1/8, exact after the shift
    X = np.round(np.array([*POINTS, [2.5, 2]]) * 8) / 8
    y = [*Y5, 1]
    near, far = model.fit(X, y, 2), model.fit(X + offset, y, 2)
    np.testing.assert_allclose(as_float(far.evidence()), as_float(near.evidence()), rtol=1e-15)
    np.testing.assert_allclose(as_float(far.loo()), as_float(near.loo()), rtol=1e-15)
    for route in ("mle", "map", "mean", "exact"):
        np.testing.assert_allclose(
            as_float(far.log_joint(X + offset, route)), as_float(near.log_joint(X, route)), rtol=1e-15
        )


def test_large_counts_against_exact_integers():
    # At alpha = 1 the predictive of three tokens is a ratio of integers.
    n = 2**50 + 3
    fit = MultinomialOracle(1).fit([[n, 5]], [0], 1)
    exact = Fraction((n + 1) * (n + 2) * 6, (n + 7) * (n + 8) * (n + 9))
    expected = mpmath.mp.clone()
    expected.dps = 40
    value = expected.log(expected.mpf(exact.numerator) / exact.denominator)
    assert abs(fit.log_likelihood([[2, 1]])[0][0] - value) < 1e-35
    assert as_float(oracle.log_rising(oracle.number(10**15), oracle.number(3))) == pytest.approx(
        103.61632918473, rel=1e-12
    )


# ----------------------------------------------------------------------------------------- mixed, soft, EM


def test_mixed_blocks_add():
    X = [[0.5, 1, 2], [-0.3, 0, 0], [NAN, 1, 1], [2, 0, 5], [3.4, 1, 4]]
    parts = [(GaussianOracle(), [0]), (BernoulliOracle(), [1]), (PoissonOracle(), [2])]
    mixed = MixedOracle(parts).fit(X, Y5, 2)
    fits = [model.fit([[row[j] for j in columns] for row in X], Y5, 2) for model, columns in parts]
    assert abs(mixed.evidence_parts()[1] - sum(f.evidence_parts()[1] for f in fits)) < 1e-50
    assert abs(mixed.evidence() - mixed.evidence_sequential()) < 1e-50
    for route in ("map", "mean", "exact"):
        likelihood = sum(
            as_float(f.log_likelihood([[X[0][c[0]]]], route)) for f, (_, c) in zip(fits, parts, strict=True)
        )
        np.testing.assert_allclose(as_float(mixed.log_likelihood(X[:1], route)), likelihood, rtol=1e-14)
    own = mixed.log_likelihood(X[:1], ["mle", "map", "exact"])
    expected = sum(
        as_float(f.log_likelihood([[X[0][c[0]]]], r))
        for f, (_, c), r in zip(fits, parts, ["mle", "map", "exact"], strict=True)
    )
    np.testing.assert_allclose(as_float(own), expected, rtol=1e-14)


def test_soft_labels_are_weighted_rows_and_em_climbs():
    """One EM step by `soften` never lowers the observed-data density of section 11."""
    model = GDAOracle(0, 1, 4, EYE)
    labels = [0, 0, -1, 1, -1]
    fit = model.fit(POINTS, [0, 0, 0, 1, 1], 2, w=[1, 1, 0, 1, 0], class_alpha=2)
    previous = None
    for _ in range(40):
        phi, params = fit.class_probabilities("map"), fit.parameters("map")
        value = fit.log_density(phi, params, X=POINTS, y=labels)
        assert previous is None or value >= previous - 1e-40
        previous = value
        R = as_float(fit.proba(POINTS, "map"))
        R = [np.eye(2)[y] if y >= 0 else r for y, r in zip(labels, R, strict=True)]
        rows, codes, weights = oracle.soften(POINTS, R)
        fit = model.fit(rows, codes, 2, w=weights, class_alpha=2)
    for path in ([("mean", (0, 1))], [("covariance", (1, 1))]):
        for step in (1e-3, -1e-3):
            assert fit.log_density(phi, nudged(params, path, step), X=POINTS, y=labels) < previous


# ----------------------------------------------------------------------------------------- empirical Bayes


def test_concentration_from_the_evidence():
    groups = [(28, 27), (0, 7)]
    alpha, value = dirichlet_concentration(groups)
    assert as_float(alpha) == pytest.approx(0.552906, abs=5e-7)
    assert as_float(value) == pytest.approx(-41.908848, abs=5e-7)
    assert as_float(dirichlet_evidence(math.inf, groups)) == pytest.approx(-42.975125, abs=5e-7)
    assert dirichlet_evidence_slope(60, groups) < 0 < dirichlet_evidence_slope(66, groups)
    assert as_float(dirichlet_concentration([(5, 5), (4, 4)])[0]) == math.inf
    assert as_float(dirichlet_concentration([(5, 0), (0, 4)])) == (0.0, pytest.approx(-2 * math.log(2)))
    with pytest.raises(Undefined):
        dirichlet_concentration([(1, 0), (0, 1)])
    # Large alpha: the slope approaches -T / (2 alpha^2).
    T = as_float(oracle.dispersion_t(groups))
    assert as_float(dirichlet_evidence_slope(1e7, groups)) * 2e14 == pytest.approx(-T, rel=1e-4)


def test_evidence_slope_is_the_derivative_and_groups_come_from_the_fit():
    fit = MultinomialOracle(0.7).fit(digits("210 100 021 013 102"), Y5, 2)
    groups = fit.groups()
    assert as_float(groups).tolist() == [[3, 3, 1], [1, 1, 5]]
    assert abs(dirichlet_evidence(0.7, groups) - fit.evidence_parts()[1]) < 1e-50
    assert abs(dirichlet_evidence_vector([0.7] * 3, groups) - fit.evidence_parts()[1]) < 1e-50
    numerical = oracle.ctx.diff(lambda a: dirichlet_evidence(a, groups), 0.7)
    assert abs(numerical - dirichlet_evidence_slope(0.7, groups)) < 1e-20
    bernoulli = BernoulliOracle(0.7, 0.7).fit(digits("10 11 01 00 01"), Y5, 2)
    assert abs(dirichlet_evidence(0.7, bernoulli.groups()) - bernoulli.evidence_parts()[1]) < 1e-50
    categorical = CategoricalOracle(0.7, [3, 2]).fit(digits("00 11 10 21 20"), Y5, 2)
    assert abs(dirichlet_evidence(0.7, categorical.groups()) - categorical.evidence_parts()[1]) < 1e-50


def test_poisson_evidence_slopes():
    X = digits("20 01 13 52 41")

    def evidence(a, b):
        return PoissonOracle(a, b).fit(X, Y5, 2).evidence_parts()[1]

    fit = PoissonOracle(2, 1).fit(X, Y5, 2)
    slopes = fit.model.evidence_slopes(fit)
    assert abs(oracle.ctx.diff(lambda a: evidence(a, 1), 2) - slopes[0]) < 1e-20
    assert abs(oracle.ctx.diff(lambda b: evidence(2, b), 1) - slopes[1]) < 1e-20
