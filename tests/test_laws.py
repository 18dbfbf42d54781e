"""Laws that every family obeys, written once and run over the table of `law_cases`.

A law is about a frozen model: hyperparameters, levels, classes and columns do not depend on the part of the
data that is looked at. Numbers are compared to 1e-10, which leaves five digits to the roundings of a few
hundred float64 operations; a test that allows more says why. Monte Carlo errors may reach five standard
errors: with fixed seeds and some thousand comparisons that never happens by chance.
"""

import pickle
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import scipy.sparse as sp
from law_cases import (
    CASES,
    CLASSES,
    MULTIVARIATE,
    NORMAL,
    PLAIN,
    covered,
    declared,
    log_base,
    marginal,
    moments,
    one_draw,
    permuted,
    perturbed,
    punch,
    same,
    sites,
    size,
    stack,
    take,
)
from numpy.testing import assert_allclose, assert_array_equal
from numpyro.diagnostics import effective_sample_size
from numpyro.distributions import biject_to
from numpyro.handlers import seed, substitute, trace
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density, potential_energy
from scipy import stats as distributions
from scipy.integrate import cumulative_trapezoid

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    MultinomialNB,
    PoissonNB,
)
from bayesgen.class_prior import ClassPrior
from bayesgen.families import (
    Bernoulli,
    Categorical,
    Gaussian,
    Labels,
    Mixed,
    Multinomial,
    MultivariateGaussian,
    PerClassMultivariateGaussian,
    Poisson,
    SharedVarianceGaussian,
)
from bayesgen.joint import program

close = partial(assert_allclose, rtol=1e-10, atol=1e-10)

# Every program here runs once, so compiling is what costs: leave out what makes programs fast.
compile_quickly = partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)


def over(cases, quick=None):
    """The law for each of these cases; if some are named as quick, the others are slow tests."""
    marks = [() if quick is None or case.name in quick else pytest.mark.slow for case in cases]
    table = [pytest.param(case, marks=m, id=case.name) for case, m in zip(cases, marks, strict=True)]
    return pytest.mark.parametrize("case", table)


# Where a law needs a compiler, a mixed model is left to the slow tests: its blocks are here by themselves.
QUICK = {case.name for case in PLAIN} - {"Mixed"}

every_case = over(CASES)
every_family = over(PLAIN)
naive = over([case for case in CASES if not isinstance(case.prior, (Multinomial, Mixed, *MULTIVARIATE))])
normal = over([case for case in CASES if isinstance(case.prior, (*NORMAL, *MULTIVARIATE))])
single = over([case for case in CASES if not isinstance(case.prior, Mixed)])


def test_every_exported_family_is_in_the_table():
    assert covered() == declared()


def halves(case):
    """Statistics of two parts of the rows, of unequal size."""
    first, second = np.arange(case.n_rows) < 5, np.arange(case.n_rows) >= 5
    return [case.prior.stats(take(case.x, part), Labels(case.y[part])) for part in (first, second)]


def weights(case):
    """Row weights that are not whole numbers."""
    return case.rng.uniform(0.2, 2.5, size=case.n_rows)


def soft(case):
    """Class weights (n, K) of every row; a class without rows stays without."""
    r = case.rng.dirichlet(np.ones(CLASSES), size=case.n_rows)
    if case.empty:
        r[:, 1] = 0.0
    return r


# ----------------------------------------------------------------------------------------------------
# statistics: a commutative monoid with weights


@every_case
def test_statistics_of_two_batches_merge_to_those_of_all_rows(case):
    same(case.prior.merge(*halves(case)), case.stats)


@every_case
def test_removing_a_batch_undoes_merging_it(case):
    a, b = halves(case)
    removed = case.prior.remove(case.prior.merge(a, b), b)
    # a scatter is found as the difference of larger ones
    same(removed, a, rtol=1e-9, atol=1e-9)


@over([case for case in CASES if isinstance(case.prior, Bernoulli | Multinomial | Categorical)])
def test_removing_whole_counts_is_exact(case):
    a, b = halves(case)
    removed = case.prior.remove(case.prior.merge(a, b), b)
    assert_array_equal(removed[0], a[0])


@every_case
def test_removing_everything_leaves_the_statistics_of_no_rows(case):
    nothing = case.prior.stats(take(case.x, slice(0)), Labels(case.y[:0]))
    same(case.prior.remove(case.stats, case.stats), nothing, atol=1e-12)
    same(case.prior.merge(case.stats, nothing), case.stats, rtol=1e-15, atol=0)
    same(case.prior.merge(nothing, case.stats), case.stats, rtol=1e-15, atol=0)
    same(case.prior.condition(nothing).log_predictive(case.new), case.prior.log_predictive(case.new))
    assert case.prior.log_evidence(nothing) == 0


@every_case
def test_the_order_of_rows_and_of_batches_is_immaterial(case):
    order = case.rng.permutation(case.n_rows)
    same(case.prior.stats(take(case.x, order), Labels(case.y[order])), case.stats)
    a, b = halves(case)
    same(case.prior.merge(b, a), case.prior.merge(a, b))
    parts = [case.prior.stats(take(case.x, [i]), Labels(case.y[[i]])) for i in order]
    total = parts[0]
    for part in parts[1:]:
        total = case.prior.merge(part, total)
    same(total, case.stats)


@every_case
def test_conditioning_twice_is_conditioning_once_on_the_sum(case):
    a, b = halves(case)
    same(case.prior.condition(a).condition(b), case.posterior)
    same(case.prior.condition(b).condition(a), case.posterior)


@every_case
def test_whole_weights_are_repeated_rows(case):
    w = case.rng.integers(0, 4, size=case.n_rows)
    repeat = np.repeat(np.arange(case.n_rows), w)
    x, y = take(case.x, repeat), case.y[repeat]
    weighted, repeated = case.prior.stats(case.x, Labels(case.y, w.astype(float))), case.prior.stats(x, Labels(y))
    same(weighted, repeated)
    close(case.prior.log_evidence(weighted), case.prior.log_evidence(repeated))
    # the copies of a row leave together
    loo = case.prior.log_loo(case.x, Labels(case.y, w.astype(float)), weighted)
    for i in range(case.n_rows):
        rest = case.prior.stats(take(x, repeat != i), Labels(y[repeat != i]))
        close(loo[i], case.prior.condition(rest).log_predictive(take(case.x, [i]))[0], rtol=1e-9)


@every_case
def test_labels_are_class_weights_of_zero_and_one(case):
    w = weights(case)
    one_hot = np.eye(CLASSES)[case.y]
    same(case.prior.stats(case.x, one_hot), case.stats)
    same(case.prior.stats(case.x, one_hot * w[:, None]), case.prior.stats(case.x, Labels(case.y, w)))
    same(case.prior.stats(case.x, case.y), case.stats)


@every_case
def test_a_soft_label_is_a_weighted_row_in_each_class(case):
    r = soft(case)
    codes = np.repeat(np.arange(CLASSES), case.n_rows)
    stacked = case.prior.stats(stack(*[case.x] * CLASSES), Labels(codes, r.T.ravel()))
    same(case.prior.stats(case.x, r), stacked)


@every_case
def test_a_row_of_weight_zero_changes_nothing(case):
    x = stack(case.x, case.new, take(case.x, [0]))
    w = np.concatenate([weights(case), np.zeros(4)])
    y = np.concatenate([case.y, [0, 1, 2, 1]])
    with_zeros, without = case.prior.stats(x, Labels(y, w)), case.prior.stats(case.x, Labels(case.y, w[:-4]))
    same(with_zeros, without)
    same(case.prior.stats(x, np.eye(CLASSES)[y] * w[:, None]), without)
    close(case.prior.log_evidence(with_zeros), case.prior.log_evidence(without))
    loo = case.prior.log_loo(x, Labels(y, w), with_zeros)
    close(loo[:-4], case.prior.log_loo(case.x, Labels(case.y, w[:-4]), without), rtol=1e-9)
    close(loo[-4:], case.prior.condition(without).log_predictive(take(x, slice(-4, None))))


@normal
def test_a_row_of_weight_zero_may_lie_anywhere(case):
    far = np.full((1, case.prior.n_features), -1e9)
    x, y = np.concatenate([far, case.x]), np.concatenate([[1], case.y])
    w = np.concatenate([[0.0], np.ones(case.n_rows)])
    same(case.prior.stats(x, Labels(y, w)), case.stats)


@over([case for case in CASES if isinstance(case.prior, Bernoulli | Multinomial | Poisson)])
def test_a_sparse_matrix_is_the_dense_one(case):
    sparse, w = sp.csr_array(case.x), weights(case)
    for r in (Labels(case.y), Labels(case.y, w), soft(case)):
        same(case.prior.stats(sparse, r), case.prior.stats(case.x, r))
    close(case.prior.log_prob(case.truth, sparse), case.prior.log_prob(case.truth, case.x))
    close(case.posterior.log_predictive(sparse), case.posterior.log_predictive(case.x))
    labels = Labels(case.y, np.full(case.n_rows, 0.5))
    stats = case.prior.stats(case.x, labels)
    close(case.prior.log_loo(sparse, labels, stats), case.prior.log_loo(case.x, labels, stats))


@every_case
def test_classes_may_be_permuted(case):
    order = np.array([2, 0, 1])  # class k of the permuted model is class order[k]
    y = np.argsort(order)[case.y]
    prior = permuted(case.prior, order)
    stats = prior.stats(case.x, Labels(y))
    same(stats, permuted(case.stats, order))
    posterior = prior.condition(stats)
    close(prior.log_evidence(stats), case.prior.log_evidence(case.stats))
    close(posterior.log_predictive(case.new), case.posterior.log_predictive(case.new)[:, order])
    close(prior.log_loo(case.x, Labels(y), stats), case.prior.log_loo(case.x, Labels(case.y), case.stats)[:, order])
    same(posterior.mean(), permuted(case.posterior.mean(), order))
    close(prior.log_prob(permuted(case.truth, order), case.x), case.prior.log_prob(case.truth, case.x)[:, order])


@every_case
def test_declaring_more_classes_moves_the_statistics(case):
    if isinstance(case.prior, Mixed):
        return  # estimators move the statistics block by block
    positions = np.array([0, 3, 1])
    wider = case.prior.reclass(case.stats, positions, 5)
    direct = case.prior.replace(n_classes=5).stats(case.x, Labels(positions[case.y]))
    same(wider, direct, rtol=1e-15, atol=0)


# ----------------------------------------------------------------------------------------------------
# conjugacy


@every_case
def test_the_predictive_is_a_ratio_of_evidences(case):
    before = case.prior.log_evidence(case.stats)
    predictive = case.posterior.log_predictive(case.new)
    assert predictive.shape == (CLASSES, CLASSES)
    for i in range(CLASSES):
        for k in range(CLASSES):
            one = case.prior.stats(take(case.new, [i]), Labels(np.array([k])))
            close(predictive[i, k], case.prior.log_evidence(case.prior.merge(case.stats, one)) - before, rtol=1e-9)
            close(predictive[i, k], case.posterior.log_evidence(one))


@every_case
def test_the_evidence_is_a_chain_of_predictives_in_any_order(case):
    for order in (np.arange(case.n_rows), case.rng.permutation(case.n_rows)):
        state, total = case.prior, 0.0
        for i in order:
            row = take(case.x, [i])
            total += state.log_predictive(row)[0, case.y[i]]
            state = state.condition(case.prior.stats(row, Labels(case.y[[i]])))
        close(total, case.prior.log_evidence(case.stats))
        same(state, case.posterior)


@every_case
@pytest.mark.parametrize("kind", ["unit", "weighted", "soft"])
def test_prior_times_likelihood_over_evidence_is_the_posterior_at_any_point(case, kind):
    r = {"unit": Labels(case.y), "weighted": Labels(case.y, weights(case)), "soft": soft(case)}[kind]
    w = {"unit": None, "weighted": weights(case), "soft": soft(case).sum(axis=1)}[kind]
    stats = case.prior.stats(case.x, r)
    posterior = case.prior.condition(stats)
    for step in (0.0, 0.1, 0.5):
        params = perturbed(case.prior, case.truth, case.rng, step)
        log_joint = (
            case.prior.log_density(params) + case.prior.log_likelihood(params, stats) + log_base(case.prior, case.x, w)
        )
        # terms of a thousand cancel
        close(log_joint - case.prior.log_evidence(stats), posterior.log_density(params), rtol=1e-9, atol=1e-9)


@single
def test_a_power_of_the_prior_is_its_density_to_that_power_up_to_a_constant(case):
    draws = case.prior.draw(case.rng, 5)
    params = [one_draw(draws, s) for s in range(5)]
    power = case.prior.tempered(1.03)
    gap = [float(power.log_density(p)) - 1.03 * float(case.prior.log_density(p)) for p in params]
    assert_allclose(gap, gap[0], rtol=1e-9, atol=1e-9)


@single
def test_scaled_statistics_are_those_of_scaled_weights(case):
    weights = np.full(case.n_rows, 1.7)
    same(case.prior.scale_stats(case.stats, 1.7), case.prior.stats(case.x, Labels(case.y, weights)))


@single
def test_marginals_have_the_mean_and_the_variance_of_the_posterior(case):
    expected = moments(case.posterior)
    if "covariance" in expected:
        diagonals = [np.diagonal(v, axis1=-2, axis2=-1) for v in expected.pop("covariance")]
        expected["variance"] = tuple(diagonals)
    found = case.posterior.marginals()
    assert set(found) == set(expected)
    for name, (dims, one) in found.items():
        mean, variance = expected[name]
        assert len(dims) == np.ndim(one.mean())
        assert_allclose(one.mean(), mean, rtol=1e-10)
        assert_allclose(one.var(), np.broadcast_to(variance, np.shape(mean)), rtol=1e-9)


@every_case
def test_the_likelihood_of_statistics_is_that_of_the_rows_up_to_a_constant(case):
    w = weights(case)
    stats = case.prior.stats(case.x, Labels(case.y, w))
    for step in (0.0, 0.1, 0.5):
        params = perturbed(case.prior, case.truth, case.rng, step)
        rows = case.prior.log_prob(params, case.x)[np.arange(case.n_rows), case.y]
        constant = w @ rows - case.prior.log_likelihood(params, stats)
        close(constant, log_base(case.prior, case.x, w), atol=1e-9)


@every_case
def test_the_likelihood_of_soft_labels_weighs_every_class(case):
    r = soft(case)
    expected = (r * case.prior.log_prob(case.truth, case.x)).sum() - log_base(case.prior, case.x, r.sum(axis=1))
    close(case.prior.log_likelihood(case.truth, case.prior.stats(case.x, r)), expected)


@over(
    [
        case
        for case in CASES
        if not (case.empty or case.missing or isinstance(case.prior, Mixed | PerClassMultivariateGaussian))
    ]
)
def test_no_parameters_are_likelier_than_the_maximum_likelihood_ones(case):
    best = case.prior.mle(case.stats)
    highest = case.prior.log_likelihood(best, case.stats)
    for step in (1e-3, 1e-2, 0.1, 0.5):
        with np.errstate(invalid="ignore"):  # -inf stays -inf
            other = perturbed(case.prior, best, case.rng, step)
        assert case.prior.log_likelihood(other, case.stats) < highest


# ----------------------------------------------------------------------------------------------------
# leave-one-out


def brute_loo(prior, x, y, w):
    """Every row predicted by the model conditioned afresh on the others."""
    out = []
    for i in range(size(x)):
        rest = np.arange(size(x)) != i
        posterior = prior.condition(prior.stats(take(x, rest), Labels(y[rest], w[rest])))
        out.append(posterior.log_predictive(take(x, [i]))[0])
    return np.stack(out)


@every_case
@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_leave_one_out_is_a_refit_without_the_row(case, weighted):
    w = weights(case) if weighted else np.ones(case.n_rows)
    stats = case.prior.stats(case.x, Labels(case.y, w))
    loo = case.prior.log_loo(case.x, Labels(case.y, w if weighted else None), stats)
    assert loo.shape == (case.n_rows, CLASSES)
    close(loo, brute_loo(case.prior, case.x, case.y, w), rtol=1e-9)


@every_case
def test_leaving_out_the_only_row_of_a_class_predicts_it_from_the_prior(case):
    y = np.where(np.arange(case.n_rows) == 3, 2, 0)
    stats = case.prior.stats(case.x, Labels(y))
    loo = case.prior.log_loo(case.x, Labels(y), stats)
    close(loo, brute_loo(case.prior, case.x, y, np.ones(case.n_rows)), rtol=1e-9)
    if not isinstance(case.prior, (SharedVarianceGaussian, MultivariateGaussian, Mixed)):
        close(loo[3, 2], case.prior.log_predictive(take(case.x, [3]))[0, 2])


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("size_", [1e4, 1e7], ids=["far", "farther"])
@over([case for case in PLAIN if isinstance(case.prior, (*NORMAL, *MULTIVARIATE))])
def test_leave_one_out_of_an_outlier_keeps_its_digits(case, size_, weighted):
    """The scale without the outlier is what is left of a number that is larger by many powers of ten."""
    prior = case.prior.replace(scale=np.asarray(case.prior.scale) * 1e-6)
    x = case.x.copy()
    x[2, 0] += size_
    x[5, -1] += size_
    w = weights(case) if weighted else np.ones(case.n_rows)
    loo = prior.log_loo(x, Labels(case.y, w), prior.stats(x, Labels(case.y, w)))
    close(loo, brute_loo(prior, x, case.y, w), rtol=1e-8)


@every_case
def test_leave_one_out_of_some_rows_is_that_of_all(case):
    """Given what the other rows add up to, which is looked at only where a downdate would lose its digits."""
    prior, x = case.prior, case.x
    if isinstance(prior, (*NORMAL, *MULTIVARIATE)) and isinstance(x, np.ndarray):
        prior = prior.replace(scale=np.asarray(prior.scale) * 1e-6)
        x = x.copy()
        x[2, 0] += 1e7
    w = weights(case)
    whole = prior.log_loo(x, Labels(case.y, w), prior.stats(x, Labels(case.y, w)))
    stats = prior.stats(x, Labels(case.y, w))
    for some in (np.arange(7), np.arange(2, case.n_rows, 3), np.array([2])):
        rest = np.setdiff1d(np.arange(case.n_rows), some)
        others = prior.stats(take(x, rest), Labels(case.y[rest], w[rest]))
        part = prior.log_loo(take(x, some), Labels(case.y[some], w[some]), stats, lambda others=others: others)
        close(part, whole[some], rtol=1e-8)


@over([case for case in PLAIN if isinstance(case.prior, (*NORMAL, *MULTIVARIATE))])
def test_leave_one_out_of_the_default_prior_keeps_that_prior(case):
    stated = type(case.prior)(n_classes=CLASSES, n_features=case.prior.n_features)
    prior = stated.resolve(case.stats)
    same(prior.resolve(halves(case)[0]), prior)
    same(stated.condition(case.stats), prior.condition(case.stats))
    labels = Labels(case.y)
    expected = brute_loo(prior, case.x, case.y, np.ones(case.n_rows))
    close(prior.log_loo(case.x, labels, case.stats), expected, rtol=1e-9)
    close(stated.log_loo(case.x, labels, case.stats), expected, rtol=1e-9)


# ----------------------------------------------------------------------------------------------------
# the program


@over([case for case in CASES if not case.far], quick=QUICK)
def test_the_program_and_the_closed_forms_have_the_same_densities(case):
    """Sites of the prior, sites of the posterior as a prior, and one number for each row."""
    values = sites(case.prior, case.truth)

    def scores(program, values):
        """Log densities of the sample sites of a program whose parameters are given."""
        found = trace(substitute(seed(program, 0), values)).get_trace()
        drawn = {name: site for name, site in found.items() if site["type"] == "sample"}
        assert set(drawn) == set(values) or all(site["is_observed"] for site in drawn.values())
        return [site["fn"].log_prob(site["value"]) for site in drawn.values()]

    def all_scores(values, params, x):
        def rows():
            with numpyro.plate("row", case.n_rows):
                case.prior.observe(params, case.y, x)

        return [scores(belief.prior, values) for belief in (case.prior, case.posterior)], scores(rows, {})

    with jax.enable_x64(True):
        densities, per_row = jax.tree.map(np.asarray, compile_quickly(all_scores)(values, case.truth, case.x))
    for belief, density in zip((case.prior, case.posterior), densities, strict=True):
        close(belief.log_density(case.truth), sum(each.sum() for each in density))
    assert all(score.shape == (case.n_rows,) for score in per_row)
    close(sum(per_row), case.prior.log_prob(case.truth, case.x)[np.arange(case.n_rows), case.y])


@over(PLAIN, quick=QUICK)
def test_rows_drawn_by_the_program_are_rows_of_the_family(case):
    n = 400
    y = np.resize(np.arange(CLASSES), n)
    lengths = np.full(n, 6)

    def rows():
        with numpyro.plate("row", n):
            return case.prior.observe(case.truth, y, None, lengths)

    with jax.enable_x64(True):
        theirs = jax.tree.map(np.asarray, compile_quickly(seed(rows, 1))())
    ours = case.prior.sample(case.truth, y, 2, lengths)
    if not isinstance(theirs, tuple):
        theirs, ours = (theirs,), (ours,)
    for block, a, b in zip(getattr(case.prior, "blocks", [case.prior]), theirs, ours, strict=True):
        block.check(a)
        assert a.shape == b.shape
        for k in range(CLASSES):
            p, q = a[y == k].astype(float), b[y == k].astype(float)
            spread = np.sqrt((p.var(axis=0) + q.var(axis=0)) / len(p))
            assert (np.abs(p.mean(axis=0) - q.mean(axis=0)) <= 5 * spread).all()


def tangent(family, name, value, gradient):
    """The gradient of a log density along the support of a site, free of units: zero at a mode inside."""
    if isinstance(family, Mixed) and "." in name:
        block, name = name.split(".")
        family = family.blocks[family.names.index(block)]
    if name == "mean":
        return gradient * np.abs(value)
    if name == "covariance":
        sd = np.sqrt(np.diagonal(value, axis1=-2, axis2=-1))
        return gradient * sd[..., :, None] * sd[..., None, :]
    if name == "feature_prob" and isinstance(family, Bernoulli):
        return gradient * value * (1 - value)
    if name in ("rate", "variance"):
        return gradient * value
    return value * (gradient - (value * gradient).sum(axis=-1, keepdims=True))  # cells that sum to one


@over(PLAIN, quick=QUICK)
def test_the_mode_is_the_maximum_of_the_program_in_the_stated_parameters(case):
    class_prior = ClassPrior(1.5, None, CLASSES)
    count = np.bincount(case.y, minlength=CLASSES).astype(float)
    mode = case.posterior.mode()
    with jax.enable_x64(True):
        x = jax.tree.map(jnp.asarray, case.x)
        values = sites(case.prior, mode) | {"class_prob": np.exp(class_prior.log_prob("map", count))}
        values = {name: jnp.asarray(value) for name, value in values.items()}

        def log_joint(values):
            return log_density(program, (class_prior, case.prior, x, case.y, case.n_rows), {}, values)[0]

        value, gradient = compile_quickly(jax.value_and_grad(log_joint))(values)
    for name, at in values.items():
        slope = tangent(case.prior, name, np.asarray(at), np.asarray(gradient[name]))
        # each coordinate sums some tens of terms of order ten
        assert_allclose(slope, 0.0, atol=1e-9, err_msg=name)

    def density(params):
        return case.prior.log_density(params) + case.prior.log_likelihood(params, case.stats)

    highest = density(mode)
    classes = class_prior.log_density(class_prior.log_prob("map", count)) + count @ class_prior.log_prob("map", count)
    close(highest + classes + log_base(case.prior, case.x), float(value))
    for step in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(5):
            assert density(perturbed(case.prior, mode, case.rng, step)) < highest


# ----------------------------------------------------------------------------------------------------
# draws


def deviations(found, expected, error):
    """Distances in standard errors."""
    return np.abs(found - expected) / error


@every_case
def test_draws_have_the_mean_and_the_variance_of_the_posterior(case):
    n = 6000
    draws = sites(case.posterior, case.posterior.draw(1, n))
    means = sites(case.posterior, case.posterior.mean())
    for name, (mean, variance) in moments(case.posterior).items():
        at, value = means[name], draws[name]
        assert value.shape == (n, *np.shape(mean))
        close(at, mean)
        assert (deviations(value.mean(axis=0), mean, np.sqrt(variance / n)) < 5).all(), name
        square = (value - mean) ** 2
        assert (deviations(square.mean(axis=0), variance, square.std(axis=0) / np.sqrt(n)) < 5).all(), name


@over([case for case in CASES if isinstance(case.prior, MULTIVARIATE)])
def test_means_are_drawn_with_the_covariance_of_their_own_draw(case):
    n = 4000
    params = case.posterior.draw(1, n)
    loc, low, kappa = case.posterior.hyper()
    step = ((params.mean - loc) + (params.mean_low - low)) * np.sqrt(kappa)[:, None]
    covariance = params.covariance if params.covariance.ndim == 4 else params.covariance[:, None]
    form = (step * np.linalg.solve(covariance, step[..., None])[..., 0]).sum(-1)
    d = case.prior.n_features
    assert (deviations(form.mean(axis=0), d, np.sqrt(2 * d / n)) < 5).all()


@every_case
def test_the_predictive_is_the_mean_of_the_likelihood_over_draws(case):
    n = 500
    draws = case.posterior.draw(2, n)
    scores = case.posterior.draw_log_prob(draws, case.new)
    assert scores.shape == (n, CLASSES, CLASSES)
    for s in (0, 1):
        close(scores[s], case.posterior.log_prob(one_draw(draws, s), case.new))
    # Rows of a class under that class: elsewhere, or without rows, a few draws in a thousand make the mean.
    seen = np.unique(case.y)
    ratio = np.exp(scores - case.posterior.log_predictive(case.new))[:, seen, seen]
    error = ratio.std(axis=0) / np.sqrt(n) + 1e-12  # an empty document has probability one in every draw
    assert (deviations(ratio.mean(axis=0), 1.0, error) < 5).all()


def columns_of(x):
    """All columns of x as one array of floats."""
    return np.concatenate(x, axis=1).astype(float) if isinstance(x, tuple) else x.astype(float)


@every_case
@pytest.mark.parametrize("route", ["plug-in", "predictive"])
def test_rows_sampled_given_their_classes_are_calibrated(case, route):
    """With classes drawn evenly, p(y | x) is right on average, and along any function of x."""
    n = 3000
    rng = np.random.default_rng(7)
    y = rng.integers(CLASSES, size=n)
    params = case.truth if route == "plug-in" else None
    x = case.posterior.sample(params, y, rng, np.full(n, 5))
    log_prob = case.posterior.log_predictive(x) if params is None else case.posterior.log_prob(params, x)
    probability = np.exp(log_prob - np.logaddexp.reduce(log_prob, axis=1, keepdims=True))
    columns = columns_of(x)
    spread = columns.std(axis=0)
    columns = ((columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).clip(-4, 4)
    directions = np.concatenate([np.ones((n, 1)), columns, np.abs(columns)], axis=1)
    for k in range(CLASSES):
        surprise = (y == k) - probability[:, k]
        each = directions * surprise[:, None]
        variance = directions**2 * (probability[:, k] * (1 - probability[:, k]))[:, None]
        # a class that is certain is never wrong
        error = np.sqrt(variance.sum(axis=0)) + 1e-9 * n
        assert (np.abs(each.sum(axis=0)) < 5 * error).all()


@over([case for case in CASES if isinstance(case.prior, Bernoulli | Categorical | Multinomial | Poisson)])
def test_sampled_counts_have_the_frequencies_of_the_predictive(case):
    """All rows of two columns (two tokens, for words) are listed, so that the probabilities sum to one."""
    posterior, n = case.posterior, 2000
    if isinstance(posterior, Multinomial):
        d = posterior.n_features
        pairs = np.stack(np.triu_indices(d), axis=1)
        rows = np.eye(d)[pairs[:, 0]] + np.eye(d)[pairs[:, 1]]
        posterior = posterior.replace(coefficient=True)
    else:
        posterior = marginal(posterior, np.array([0, 1]))
        limit = {Bernoulli: (2, 2), Categorical: (2, 5), Poisson: (200, 200)}[type(posterior)]
        rows = np.stack(np.meshgrid(*map(np.arange, limit), indexing="ij"), axis=-1).reshape(-1, 2)
        rows = rows if isinstance(posterior, Categorical) else rows.astype(float)
    for k in range(CLASSES):
        expected = np.exp(posterior.log_predictive(rows)[:, k])
        assert_allclose(expected.sum(), 1.0, rtol=1e-5)  # far tails of the Poisson predictive are cut
        sampled = posterior.sample(None, np.full(n, k), 11 + k, 2)
        often = expected > 0.01  # else five standard errors are no rare event
        found = (sampled[:, None, :] == rows[None, often]).all(axis=-1).mean(axis=0)
        expected = expected[often]
        assert (deviations(found, expected, np.sqrt(expected * (1 - expected) / n)) < 5).all()


@over([case for case in CASES if isinstance(case.prior, (*NORMAL, *MULTIVARIATE))])
def test_sampled_columns_have_the_distribution_of_the_predictive(case):
    """Each column alone, the others not observed, against the integral of its density."""
    posterior, n = case.posterior, 2000
    loc, low, _ = posterior.hyper()
    for k in range(CLASSES):
        x = posterior.sample(None, np.full(n, k), 5 + k)
        for j in range(posterior.n_features):
            centre = loc[k, j] + low[k, j]
            spread = np.subtract(*np.quantile(x[:, j], [0.75, 0.25]))
            grid = centre + spread * np.sinh(np.linspace(-8, 8, 4001))
            alone = np.full((len(grid), posterior.n_features), np.nan)
            alone[:, j] = grid
            density = np.exp(posterior.log_predictive(alone)[:, k])
            area = cumulative_trapezoid(density, grid, initial=0.0)
            assert_allclose(area[-1], 1.0, atol=1e-4)
            p = distributions.kstest(x[:, j], lambda v, grid=grid, area=area: np.interp(v, grid, area)).pvalue
            assert p > 1e-6


@every_family
def test_draws_repeat_with_their_key(case):
    same(case.posterior.draw(3, 5), case.posterior.draw(3, 5), rtol=0, atol=0)
    same(case.posterior.draw(jax.random.key(3), 5), case.posterior.draw(jax.random.key(3), 5), rtol=0, atol=0)


# ----------------------------------------------------------------------------------------------------
# missing cells


@over([case for case in CASES if not isinstance(case.prior, (Mixed, Multinomial))])
def test_a_missing_cell_is_integrated_out(case):
    d = case.prior.n_features
    nothing = -1 if isinstance(case.prior, Categorical) else np.nan
    for keep in ([0], [d - 1], list(range(1, d)), list(range(d))):
        keep = np.array(keep, dtype=int)
        if not keep.size:
            continue
        x = case.new.copy()
        x[:, np.setdiff1d(np.arange(d), keep)] = nothing
        close(case.posterior.log_predictive(x), marginal(case.posterior, keep).log_predictive(case.new[:, keep]))
        close(case.prior.log_prob(case.truth, x), log_prob_of_columns(case, keep))
    empty = np.full_like(case.new, nothing)
    assert_array_equal(case.posterior.log_predictive(empty), 0)
    assert_array_equal(case.prior.log_prob(case.truth, empty), 0)


def log_prob_of_columns(case, keep):
    """The plug-in score of some columns, by scipy."""
    x, values, out = case.new, sites(case.prior, case.truth), np.empty((CLASSES, CLASSES))

    def residual(i, k):
        return (x[i] - case.truth.mean[k]) - case.truth.mean_low[k]

    for i in range(CLASSES):
        for k in range(CLASSES):
            if isinstance(case.prior, MULTIVARIATE):
                covariance = values["covariance"] if values["covariance"].ndim == 2 else values["covariance"][k]
                law = distributions.multivariate_normal(
                    np.zeros(len(keep)), covariance[np.ix_(keep, keep)], allow_singular=False
                )
                out[i, k] = law.logpdf(residual(i, k)[keep])
                continue
            terms = []
            for j in keep:
                if isinstance(case.prior, Bernoulli):
                    terms.append(distributions.bernoulli(values["feature_prob"][k, j]).logpmf(x[i, j]))
                elif isinstance(case.prior, Categorical):
                    terms.append(np.log(values[f"feature_prob_{j}"][k, x[i, j]]))
                elif isinstance(case.prior, Poisson):
                    terms.append(distributions.poisson(values["rate"][k, j]).logpmf(x[i, j]))
                else:
                    sd = np.sqrt(np.broadcast_to(values["variance"], case.prior.cells)[k, j])
                    terms.append(distributions.norm(0, sd).logpdf(residual(i, k)[j]))
            out[i, k] = sum(terms)
    return out


@naive
def test_the_evidence_with_a_hole_sums_over_its_completions(case):
    prior = case.prior
    if isinstance(prior, Bernoulli):
        values, step = np.array([0.0, 1.0]), 1.0
    elif isinstance(prior, Categorical):
        values, step = np.arange(prior.n_levels[1]), 1.0
    elif isinstance(prior, Poisson):
        values, step = np.arange(1000.0), 1.0
    else:
        t = np.linspace(-9, 9, 6001)
        values, step = case.x[2, 1] + np.sinh(t) - 1.0, np.cosh(t) * (t[1] - t[0])
        values = np.where(np.isnan(values), np.sinh(t), values)
    x = case.x.copy()
    x[2, 1] = -1 if isinstance(prior, Categorical) else np.nan
    whole = prior.log_evidence(prior.stats(x, Labels(case.y)))
    # given everything else the completions have the predictive distribution of one cell
    rest = prior.condition(prior.stats(x, Labels(case.y)))
    rows = np.repeat(np.full_like(x[[2]], -1 if isinstance(prior, Categorical) else np.nan), len(values), axis=0)
    rows[:, 1] = values
    cells = rest.log_predictive(rows)[:, case.y[2]]
    completed = x.copy()
    for at in (0, len(values) // 2):
        completed[2, 1] = values[at]
        close(prior.log_evidence(prior.stats(completed, Labels(case.y))), whole + cells[at], rtol=1e-9)
    # tails of the Student t and of the negative binomial are cut
    assert_allclose((np.exp(cells) * step).sum(), 1.0, atol=1e-5)


@over([case for case in PLAIN if isinstance(case.prior, (Gaussian, SharedVarianceGaussian))])
def test_leave_one_out_of_an_outlier_beside_a_hole_keeps_its_digits(case):
    prior = case.prior.replace(scale=1e-6)
    x = punch(prior, case.x, case.rng)
    x[2, 0], x[2, 1] = x[2, 0] + 1e6, np.nan
    w = weights(case)
    loo = prior.log_loo(x, Labels(case.y, w), prior.stats(x, Labels(case.y, w)))
    close(loo, brute_loo(prior, x, case.y, w), rtol=1e-8)


# ----------------------------------------------------------------------------------------------------
# mixed columns


@over([case for case in CASES if isinstance(case.prior, Mixed)])
def test_a_mixed_model_is_the_sum_of_its_blocks(case):
    labels = Labels(case.y)
    blocks = list(zip(case.prior.blocks, case.x, case.new, case.truth, strict=True))
    stats = [block.stats(x, labels) for block, x, _, _ in blocks]
    pairs = list(zip(blocks, stats, strict=True))
    close(case.prior.log_evidence(case.stats), sum(b.log_evidence(s) for (b, *_), s in pairs))
    close(
        case.posterior.log_predictive(case.new), sum(b.condition(s).log_predictive(new) for (b, _, new, _), s in pairs)
    )
    close(case.prior.log_prob(case.truth, case.x), sum(b.log_prob(params, x) for b, x, _, params in blocks))
    close(case.prior.log_density(case.truth), sum(b.log_density(params) for b, _, _, params in blocks))
    close(case.prior.log_loo(case.x, labels, case.stats), sum(b.log_loo(x, labels, s) for (b, x, *_), s in pairs))
    same(case.posterior.mean(), tuple(b.condition(s).mean() for (b, *_), s in pairs))


# ----------------------------------------------------------------------------------------------------
# values: pytrees, pickles, JAX


def fingerprint(posterior, x):
    """Results that must be the same for a copy."""
    return [posterior.log_predictive(x), *jax.tree.leaves(posterior.mean()), *jax.tree.leaves(posterior.draw(1, 2))]


@every_case
def test_a_family_survives_its_pytree_and_its_pickle(case):
    before = fingerprint(case.posterior, case.new)
    leaves, structure = jax.tree.flatten(case.posterior)
    for copy in (
        jax.tree.unflatten(structure, leaves),
        jax.tree.map(lambda leaf: leaf, case.posterior),
        pickle.loads(pickle.dumps(case.posterior)),
    ):
        assert type(copy) is type(case.posterior)
        assert jax.tree.structure(copy) == structure
        for a, b in zip(before, fingerprint(copy, case.new), strict=True):
            assert_array_equal(a, b)


@every_case
def test_closed_forms_hand_out_float64_arrays_of_numpy(case):
    for values in (case.stats, case.posterior, case.posterior.mean(), case.posterior.draw(0, 2)):
        for leaf in jax.tree.leaves(values):
            assert isinstance(leaf, np.ndarray | np.floating | float)
            assert np.asarray(leaf).dtype == np.float64
    for values in (
        case.posterior.log_predictive(case.new),
        case.prior.log_evidence(case.stats),
        case.prior.log_density(case.truth),
    ):
        assert not isinstance(values, jax.Array)
        assert np.asarray(values).dtype == np.float64


def everything(prior, params, x, stats):
    """The closed forms of a family."""
    return (
        prior.log_predictive(x),
        prior.log_evidence(stats),
        prior.log_prob(params, x),
        prior.log_density(params),
        prior.log_likelihood(params, stats),
        prior.condition(stats).log_predictive(x),
    )


def one_number(*arguments):
    """A scalar in which every entry of every closed form has a weight of its own, and the closed forms."""
    parts = everything(*arguments)
    return sum((p * np.cos(np.arange(np.size(p))).reshape(np.shape(p))).sum() for p in parts), parts


def as_floats(tree):
    return jax.tree.map(lambda a: np.asarray(a, dtype=float), tree)


def some_direction(leaf, rng):
    """A step of relative size one; along symmetric matrices if the leaf is one."""
    step = rng.normal(size=np.shape(leaf)) * (np.abs(leaf) + 0.1)
    if np.ndim(leaf) >= 2 and np.shape(leaf)[-1] == np.shape(leaf)[-2]:
        return 0.2 * (step + np.swapaxes(step, -1, -2))
    return step


@over(PLAIN, quick={"Poisson"})
def test_closed_forms_can_be_compiled_and_differentiated(case):
    """The compiled values are those of NumPy, and the slopes those of finite differences of NumPy's values."""
    prior, params = as_floats(case.prior), as_floats(case.truth)
    x, moving = case.new, (prior, params)
    if isinstance(case.prior, (Multinomial, Poisson)):
        x = x + 0.5  # counts may be fractions; at zero there is no slope on both sides
    if not isinstance(case.prior, Bernoulli | Categorical | Mixed):
        moving = (prior, params, x)

    def value(moving):
        return one_number(*moving[:2], moving[2] if len(moving) == 3 else x, case.stats)

    with jax.enable_x64(True):
        slope, compiled = compile_quickly(jax.grad(value, has_aux=True))(moving)
        for found, expected in zip(compiled, everything(prior, params, x, case.stats), strict=True):
            assert isinstance(found, jax.Array)
            close(np.asarray(found), expected)
        slope = jax.tree.map(np.asarray, slope)
    step = jax.tree.map(partial(some_direction, rng=case.rng), moving)
    expected = sum((g * s).sum() for g, s in zip(jax.tree.leaves(slope), jax.tree.leaves(step), strict=True))

    def at(h):
        return value(jax.tree.map(lambda a, s: a + h * s, moving, step))[0]

    def secant(h):
        return (at(h) - at(-h)) / (2 * h)

    # Richardson's step removes h^2 third derivatives; what is left is rounding, 1e-16 of a thousand over h
    assert_allclose((4 * secant(2e-5) - secant(4e-5)) / 3, expected, rtol=1e-6, atol=1e-6)


@over([case for case in CASES if not case.far], quick=QUICK)
def test_any_one_hyperparameter_may_be_traced_alone(case):
    """As when a program samples one hyperparameter and the others are numbers."""
    leaves, structure = jax.tree.flatten((case.prior, case.truth))
    with jax.enable_x64(True):
        for i, leaf in enumerate(leaves):

            def value(traced, i=i):
                prior, params = jax.tree.unflatten(structure, [*leaves[:i], traced, *leaves[i + 1 :]])
                return one_number(prior, params, case.new, case.stats)[0]

            assert jax.eval_shape(value, jnp.asarray(leaf, dtype=float)).shape == ()


@over(
    [case for case in PLAIN if isinstance(case.prior, (Bernoulli, Categorical, Poisson, *NORMAL))],
    quick={"Gaussian"},
)
def test_missing_cells_leave_values_and_slopes_finite_in_jax(case):
    prior, params = as_floats(case.prior), as_floats(case.truth)
    x = punch(prior, stack(case.new, case.new), case.rng)
    expected = prior.log_predictive(x), prior.log_prob(params, x)

    def both(prior, params):
        out = prior.log_predictive(x), prior.log_prob(params, x)
        return out[0].sum() + out[1].sum(), out

    with jax.enable_x64(True):
        x = jnp.asarray(x)
        gradient, found = compile_quickly(jax.grad(both, argnums=(0, 1), has_aux=True))(prior, params)
    for a, b in zip(found, expected, strict=True):
        close(np.asarray(a), b)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


ROWS = np.array([[0.5, 1.0], [-0.3, 0.2], [1.1, 0.4], [2.0, -1.0], [3.4, 0.3], [0.1, 0.9]])
COUNTS = np.array([[2, 0], [1, 1], [0, 3], [1, 0], [2, 2], [0, 1]])
PROGRAMS = {
    "discriminant, shared": (GaussianDiscriminantAnalysis(), ROWS),
    "discriminant, per class": (GaussianDiscriminantAnalysis(covariance="per_class"), ROWS),
    "Gaussian": (GaussianNB(), ROWS),
    "Gaussian, shared": (GaussianNB(variance="shared"), ROWS),
    "Bernoulli": (BernoulliNB(), COUNTS),
    "multinomial": (MultinomialNB(multinomial_coefficient=True), COUNTS),
    "categorical": (CategoricalNB(), COUNTS),
    "Poisson": (PoissonNB(), COUNTS),
    "generative": (GenerativeClassifier(family="gaussian"), ROWS),
    "mixed": (
        MixedNB(
            blocks=[
                ("places", GaussianDiscriminantAnalysis(covariance="per_class"), [0, 1]),
                ("sizes", GaussianDiscriminantAnalysis(), [2, 3]),
                ("kinds", CategoricalNB(), [4, 5]),
            ]
        ),
        np.hstack([ROWS, ROWS[::-1], COUNTS]),
    ),
}
SOLVERS = re.compile(r"(?i)lapack\w*|potrf|trsm|cholesky|triangular_solve|custom_call")


@pytest.mark.parametrize(("model", "rows"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_no_compiled_program_calls_lapack(model, rows):
    """Several batched LAPACK calls in one compiled program can deadlock in jaxlib on CPU."""
    y = np.array([0, 1, 0, 1, 1, 0])
    model.fit(rows, y)
    supports = {}

    def points(key):
        """Values of the latent sites, in the stated parameters and unconstrained."""
        found = trace(seed(model.model, key)).get_trace(rows, y)
        latent = {n: s for n, s in found.items() if s["type"] == "sample" and not s["is_observed"]}
        supports.update({name: site["fn"].support for name, site in latent.items()})
        values = {name: site["value"] for name, site in latent.items()}
        return values, {name: biject_to(supports[name]).inv(value) for name, value in values.items()}

    def stated(values):
        return log_density(model.model, (rows, y), {}, values)[0]

    def unconstrained(free):  # what NUTS compiles
        return potential_energy(model.model, (rows, y), {}, free)

    with jax.enable_x64(True):
        shapes = jax.eval_shape(points, jax.random.key(0))
        assert "class_prob" in supports
        assert len(supports) > 1
        for function, at in zip((stated, jax.value_and_grad(unconstrained)), shapes, strict=True):
            text = jax.jit(function).lower(at).as_text()
            assert "func.func" in text
            assert SOLVERS.findall(text) == []
        control = jax.jit(jnp.linalg.cholesky).lower(jnp.eye(2)).as_text()
        assert SOLVERS.findall(control)


# ----------------------------------------------------------------------------------------------------
# class probabilities


@pytest.mark.parametrize("prior", [ClassPrior(1.0, None, 3), ClassPrior(np.array([0.5, 2.0, 1.0]), None, 3)])
def test_class_probabilities_obey_the_same_laws(prior, rng):
    y, w = np.array([0, 0, 2, 0, 2, 2, 2]), rng.uniform(0.2, 2.0, size=7)
    count = np.bincount(y, minlength=3).astype(float)
    state, total = prior, 0.0
    for k in y:
        total += state.log_prob("exact", np.zeros(3))[k]
        state = state.condition(np.eye(3)[k])
    close(total, prior.log_evidence(count))
    close(state.concentration(), prior.condition(count).concentration())
    for log_prob in np.log(rng.dirichlet(np.ones(3), size=3)):
        joint = prior.log_density(log_prob) + count @ log_prob - prior.log_evidence(count)
        close(joint, prior.condition(count).log_density(log_prob))
    weighted = np.bincount(y, w, minlength=3)
    brute = [prior.log_prob("exact", np.bincount(np.delete(y, i), np.delete(w, i), minlength=3)) for i in range(7)]
    close(prior.log_loo(y, w, weighted), brute)
    draws, alpha = np.exp(prior.condition(count).draw(0, 4000)), prior.condition(count).concentration()
    law = distributions.dirichlet(alpha)
    assert (deviations(draws.mean(axis=0), law.mean(), np.sqrt(law.var() / 4000)) < 5).all()


# ----------------------------------------------------------------------------------------------------
# NUTS


@pytest.mark.slow
@every_family
def test_draws_agree_with_nuts_on_the_program_of_the_rows(case):
    """Means and second moments of every site, each within five Monte Carlo errors of its textbook value."""
    class_prior = ClassPrior(1.5, None, CLASSES)
    with jax.enable_x64(True):
        kernel = NUTS(program, target_accept_prob=0.9)
        mcmc = MCMC(kernel, num_warmup=500, num_samples=1500, num_chains=1, progress_bar=False)
        x = jax.tree.map(jnp.asarray, case.x)
        mcmc.run(jax.random.key(0), class_prior, case.prior, x, jnp.asarray(case.y), case.n_rows)
        samples = {name: np.asarray(value) for name, value in mcmc.get_samples().items()}
    alpha = class_prior.concentration() + np.bincount(case.y, minlength=CLASSES)
    law = distributions.dirichlet(alpha)
    expected = moments(case.posterior) | {"class_prob": (law.mean(), law.var())}
    assert set(samples) == set(expected)
    for name, (mean, variance) in expected.items():
        for value, at in ((samples[name], mean), ((samples[name] - mean) ** 2, variance)):
            ess = effective_sample_size(value[None]).clip(1)
            assert (ess > 100).all(), name
            assert (deviations(value.mean(axis=0), at, value.std(axis=0) / np.sqrt(ess)) < 5).all(), name
