"""Missing cells: integrated out at prediction, and learned from at fit, also under a full covariance.

The densities of observed blocks are those of scipy; maxima are compared with a numerical maximisation of them.
"""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.stats as st
from numpy.testing import assert_allclose, assert_array_equal

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    MixedNB,
    NormalInverseWishart,
    NUTSOptions,
    UndefinedNumberError,
)
from bayesgen.families import Labels, MultivariateGaussian, PerClassMultivariateGaussian
from bayesgen.families.normal_statistics import PatternStats

COVARIANCES = ("shared", "per_class")
EM = ("map", "mle")


def discriminant(**keywords):
    return GaussianDiscriminantAnalysis(missing="marginalize", **keywords)


def table(rng, n=60, d=3, classes=2, share=0.2):
    """Correlated normal classes with cells missing at random, and weights 0 to 3."""
    y = rng.integers(0, classes, n)
    mix = rng.normal(size=(d, d)) + np.eye(d)
    X = rng.normal(size=(n, d)) @ mix + 2 * rng.normal(size=(classes, d))[y]
    X[rng.random((n, d)) < share] = np.nan
    return X, y, rng.integers(0, 4, n).astype(float)


def covariances(model):
    """One covariance for each class."""
    c = model.covariance_
    return np.broadcast_to(c, (len(model.classes_), *c.shape[-2:]))


def observed_log_density(X, means, matrices):
    """ln N(x_O | mean_O, matrix_OO) of each row and class."""
    out = np.zeros((len(X), len(means)))
    for pattern in np.unique(~np.isnan(X), axis=0):
        rows, seen = np.flatnonzero((np.isnan(X) != pattern).all(axis=1)), np.flatnonzero(pattern)
        for k, (mean, matrix) in enumerate(zip(means, matrices, strict=True)):
            if seen.size:
                block = matrix[np.ix_(seen, seen)]
                out[rows, k] = st.multivariate_normal.logpdf(X[np.ix_(rows, seen)], mean[seen], block)
    return out


def log_prior(prior, means, matrices, per_class):
    """Log density of the normal-inverse-Wishart prior, by scipy."""
    kinds = matrices if per_class else matrices[:1]
    total = sum(st.invwishart(prior.df, prior.scale).logpdf(m) for m in kinds)
    for mean, matrix in zip(means, matrices, strict=True):
        total += st.multivariate_normal(prior.mean + prior.mean_low, matrix / prior.mean_precision).logpdf(mean)
    return total


# ----------------------------------------------------------------------------------------------------
# at prediction


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("inference", ["exact", "mean", "map", "mle", "unbiased"])
def test_a_missing_cell_leaves_the_ratio_of_marginal_densities(rng, covariance, inference):
    X, y, w = table(rng, 40, 4, 3, share=0.0)
    model = discriminant(covariance=covariance, inference=inference).fit(X, y, w)
    new = np.repeat(table(rng, 30, 4)[0], 3, axis=0)
    new[:40, 1] = np.nan  # one pattern that is common beside many that are rare
    new[-1] = np.nan
    if inference == "exact":
        p = model.posterior_
        df, scale = (np.broadcast_to(v, s) for v, s in zip(p.inverse_wishart(), [(3,), (3, 4, 4)], strict=True))
        expected = np.zeros((len(new), 3))
        for i, row in enumerate(new):
            seen = np.flatnonzero(~np.isnan(row))
            for k in range(3 if seen.size else 0):
                kappa, eta = p.mean_precision[k], df[k] - 3.0
                block = (scale[k] * (kappa + 1) / (kappa * eta))[np.ix_(seen, seen)]
                expected[i, k] = st.multivariate_t(p.loc[k, seen], block, eta).logpdf(row[seen])
    else:
        expected = observed_log_density(new, model.means_, covariances(model))
    assert_allclose(model.predict_joint_log_proba(new), expected + model.class_log_prior_, rtol=1e-10, atol=1e-10)
    assert_allclose(model.predict_proba(new)[-1], np.exp(model.class_log_prior_), rtol=1e-14)
    alone = np.concatenate([model.predict_joint_log_proba(row[None]) for row in new])
    assert_allclose(model.predict_joint_log_proba(new), alone, rtol=1e-12)


@pytest.mark.parametrize("model", [discriminant(), discriminant(covariance="per_class"), GaussianNB()], ids=repr)
def test_missing_cells_come_in_every_form(rng, model):
    X, y, _ = table(rng, 40, 3, 2, share=0.0)
    model.fit(X, y)
    new = np.array([[0.0, np.nan, 1.0], [np.nan, 2.0, 0.0], [np.nan, np.nan, np.nan], [0.0, 0.0, 0.5]])
    expected = model.predict_proba(new)
    assert_array_equal(model.predict_proba(sp.csr_array(new)), expected)  # zeros are zeros
    assert_array_equal(model.predict_proba(np.where(np.isnan(new), None, new)), expected)
    frame = pd.DataFrame(new).astype("Float64")
    assert frame.isna().sum().sum() == 5
    assert_array_equal(model.predict_proba(frame), expected)
    assert_allclose(expected[2], np.exp(model.class_log_prior_), rtol=1e-14)


def test_more_columns_than_bits_in_a_word(rng):
    X, y, _ = table(rng, 300, 70, 2, share=0.0)
    model = discriminant().fit(X, y)
    new = X[:50].copy()
    new[rng.random(new.shape) < 0.3] = np.nan
    p = model.posterior_
    seen = np.flatnonzero(~np.isnan(new[7]))
    eta = p.df - 69.0
    expected = [
        st.multivariate_t(m[seen], (p.scale * (c + 1) / (c * eta))[np.ix_(seen, seen)], eta).logpdf(new[7, seen])
        for m, c in zip(p.loc, p.mean_precision, strict=True)
    ]
    assert_allclose(model.predict_joint_log_proba(new)[7] - model.class_log_prior_, expected, rtol=1e-10)


# ----------------------------------------------------------------------------------------------------
# at fit: EM


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("inference", EM)
def test_em_finds_the_maximum_of_the_observed_data(rng, covariance, inference):
    X, y, w = table(rng, 50, 3, 2)
    model = discriminant(covariance=covariance, inference=inference).fit(X, y, w)
    per_class = covariance == "per_class"
    i, j = np.tril_indices(3)
    prior = model.prior_

    def unpack(v):
        roots = np.zeros((2 if per_class else 1, 3, 3))
        roots[:, i, j] = v[6:].reshape(len(roots), -1)
        return v[:6].reshape(2, 3), np.broadcast_to(roots @ np.swapaxes(roots, 1, 2), (2, 3, 3))

    def objective(v):
        means, matrices = unpack(v)
        value = w @ observed_log_density(X, means, matrices)[np.arange(len(y)), y]
        return value + (log_prior(prior, means, matrices, per_class) if inference == "map" else 0.0)

    def pack(means, matrices):
        roots = np.linalg.cholesky(matrices if per_class else matrices[:1])
        return np.concatenate([means.ravel(), roots[:, i, j].ravel()])

    found = pack(model.means_, covariances(model))
    start = pack(np.zeros((2, 3)) + np.nanmean(X, axis=0), np.stack([np.diag(np.nanvar(X, axis=0))] * 2))
    brute = scipy.optimize.minimize(lambda v: -objective(v), start, method="BFGS", options={"gtol": 1e-5})
    assert objective(found) >= -brute.fun - 1e-9
    assert_allclose(found, brute.x, atol=2e-4)
    h = 1e-4
    slopes = [(objective(found + h * e) - objective(found - h * e)) / (2 * h) for e in np.eye(len(found))]
    assert_allclose(slopes, 0.0, atol=1e-4)
    trace = model.log_posterior_trace_
    assert_allclose(trace[-1], objective(found), rtol=1e-12)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("inference", EM)
def test_em_is_at_a_fixed_point_of_the_textbook_step(rng, covariance, inference):
    X, y, w = table(rng, 80, 4, 3, share=0.3)
    X[:40] = table(rng, 40, 4, 3, 0.0)[0]
    model = discriminant(covariance=covariance, inference=inference).fit(X, y, w)
    means, matrices = model.means_, covariances(model)
    filled, extra = X.copy(), np.zeros((3, 4, 4))
    for r in range(len(X)):
        m, o = np.flatnonzero(np.isnan(X[r])), np.flatnonzero(~np.isnan(X[r]))
        if not o.size:
            w[r] = 0.0
        mu, sigma = means[y[r]], matrices[y[r]]
        b = np.linalg.solve(sigma[np.ix_(o, o)], sigma[np.ix_(o, m)]).T
        filled[r, m] = mu[m] + b @ (X[r, o] - mu[o])
        extra[np.ix_([y[r]], m, m)] += w[r] * (sigma[np.ix_(m, m)] - b @ sigma[np.ix_(o, m)])
    kind = MultivariateGaussian if covariance == "shared" else PerClassMultivariateGaussian
    family = kind(n_classes=3, n_features=4)
    stats = family.stats(filled, Labels(y, w))
    stats = stats._replace(scatter=stats.scatter + (extra.sum(axis=0) if covariance == "shared" else extra))
    p = model.prior_
    given = family.replace(loc=p.mean, mean_precision=p.mean_precision, df=p.df, scale=p.scale, loc_low=p.mean_low)
    after = family.mle(stats) if inference == "mle" else given.condition(stats).mode()
    assert_allclose(after.mean, means, rtol=1e-10, atol=1e-10)
    assert_allclose(after.covariance, model.covariance_, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.7])
@pytest.mark.parametrize("inference", EM)
def test_em_never_goes_down(rng, covariance, share, inference):
    X, y, w = table(rng, 400, 5, 3, share)
    X[:60] = table(rng, 60, 5, 3, 0.0)[0]  # complete rows, so that the likelihood has a maximum
    trace = discriminant(covariance=covariance, inference=inference).fit(X, y, w).log_posterior_trace_
    assert isinstance(trace, np.ndarray)
    assert len(trace) > 2
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])
    assert trace[-1] > trace[0]


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("inference", EM)
def test_the_order_weights_and_batches_of_rows_do_not_matter(rng, covariance, inference):
    X, y, w = table(rng, 80, 3, 3)
    new = table(rng, 20, 3)[0]
    whole = discriminant(covariance=covariance, inference=inference).fit(X, y, w)
    expected = whole.predict_joint_log_proba(new)

    def same(model):
        assert_allclose(model.predict_joint_log_proba(new), expected, rtol=1e-9)

    repeated = np.repeat(np.arange(80), w.astype(int))
    same(discriminant(covariance=covariance, inference=inference).fit(X[repeated], y[repeated]))
    some = rng.permutation(80)
    same(discriminant(covariance=covariance, inference=inference).fit(X[some], y[some], w[some]))
    parts = np.array_split(some, 4)
    streamed = discriminant(covariance=covariance, inference=inference)
    for part in parts:
        streamed.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=w[part])
    same(streamed)
    a, b = (
        discriminant(covariance=covariance, inference=inference).partial_fit(X[p], y[p], [0, 1, 2], w[p])
        for p in (some[:30], some[30:])
    )
    same(a.merge(b))
    more = table(rng, 30, 3, 3)
    grown = discriminant(covariance=covariance, inference=inference).fit(
        np.concatenate([X, more[0]]), np.concatenate([y, more[1]]), np.concatenate([w, more[2]])
    )
    same(grown.forget(*more))
    shipped = discriminant(covariance=covariance, inference=inference).from_statistics(whole.statistics_)
    assert_array_equal(shipped.predict_joint_log_proba(new), expected)
    again = pickle.loads(pickle.dumps(whole))
    assert_array_equal(again.predict_joint_log_proba(new), expected)
    assert_array_equal(again.log_posterior_trace_, whole.log_posterior_trace_)


def test_rows_of_weight_zero_and_rows_with_nothing_observed_say_nothing_about_the_columns(rng):
    X, y, _ = table(rng, 60, 3, 2)
    model = discriminant(inference="map").fit(X, y)
    more = np.concatenate([X, np.full((5, 3), np.nan), 100 * np.ones((4, 3))])
    labels, weights = np.concatenate([y, np.ones(9, dtype=int)]), np.r_[np.ones(65), np.zeros(4)]
    other = discriminant(inference="map").fit(more, labels, weights)
    assert_array_equal(other.means_, model.means_)
    assert_array_equal(other.covariance_, model.covariance_)
    assert_array_equal(other.class_count_ - model.class_count_, [0.0, 5.0])


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_columns_far_from_zero_and_in_other_units_keep_their_digits(rng, covariance):
    X, y, _ = table(rng, 80, 3, 2)
    X = np.round(X * 2**12) / 2**12  # so that a shift by 2**26 is exact
    shift, unit = 2.0**26, np.array([1.0, 2.0**10, 2.0**-20])
    one = discriminant(covariance=covariance, inference="map").fit(X, y)
    two = discriminant(covariance=covariance, inference="map").fit((X + shift) * unit, y)
    assert_allclose(two.covariance_ / np.outer(unit, unit), one.covariance_, rtol=1e-9)
    assert_allclose(two.predict_log_proba((X + shift) * unit), one.predict_log_proba(X), rtol=1e-8, atol=1e-9)


def test_a_class_without_rows_and_a_column_nobody_has_are_left_to_the_prior(rng):
    X, y, _ = table(rng, 40, 3, 2)
    X[:, 2] = np.nan
    model = discriminant(inference="map").partial_fit(X, y, classes=[0, 1, 2])
    assert_allclose(model.means_[2], model.xbar_, atol=1e-12)
    assert_allclose(model.means_[:, 2], 0.0, atol=1e-12)  # the default prior of a column without data
    assert_allclose(model.covariance_[2, :2], 0.0, atol=1e-10)
    assert np.isfinite(model.predict_proba(X)).all()


# ----------------------------------------------------------------------------------------------------
# defaults, and what stays in closed form


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("inference", ["exact", "mean", "map", "mle", "unbiased"])
def test_without_missing_cells_nothing_changes(rng, covariance, inference):
    X, y, w = table(rng, 50, 3, 2, share=0.0)
    asked, plain = (
        GaussianDiscriminantAnalysis(missing=m, covariance=covariance, inference=inference).fit(X, y, w)
        for m in ("marginalize", "error")
    )
    assert_array_equal(asked.predict_joint_log_proba(X), plain.predict_joint_log_proba(X))
    assert_array_equal(asked.covariance_, plain.covariance_)
    assert not hasattr(asked, "log_posterior_trace_")


def test_default_priors_use_the_observed_cells_of_each_column(rng):
    X, y, w = table(rng, 60, 3, 2)
    prior = discriminant(inference="map").fit(X, y, w).prior_
    variance = []
    for j in range(3):
        seen = ~np.isnan(X[:, j])
        means = [np.average(X[seen & (y == k), j], weights=w[seen & (y == k)]) for k in (0, 1)]
        variance.append(np.average((X[seen, j] - np.take(means, y[seen])) ** 2, weights=w[seen]))
    assert_allclose(np.diag(prior.scale), variance, rtol=1e-12)
    assert_allclose(prior.mean, [np.average(c[~np.isnan(c)], weights=w[~np.isnan(c)]) for c in X.T], rtol=1e-12)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_rows_with_nothing_observed_leave_every_closed_form(rng, covariance):
    X, y, _ = table(rng, 40, 3, 2, share=0.0)
    X[[3, 17]] = np.nan
    kept = ~np.isnan(X).any(axis=1)
    model = discriminant(covariance=covariance).fit(X, y)
    part = discriminant(covariance=covariance).fit(X[kept], y[kept])
    assert_array_equal(model.covariance_, part.covariance_)
    assert_allclose(model.class_count_, np.bincount(y), rtol=0)
    assert_allclose(model.log_evidence_parts_["x_given_y"], part.log_evidence_parts_["x_given_y"], rtol=1e-14)
    loo = model.loo(X, y)
    n = np.bincount(y) - np.eye(2)[y[3]]
    assert_allclose(loo.log_joint[3], np.log((n + 1) / (n.sum() + 2)), rtol=1e-12)
    assert_allclose(loo.joint[kept] - part.loo(X[kept], y[kept]).joint, 0.0, atol=0.1)  # only the class counts differ
    assert (np.abs(loo.joint[kept] - part.loo(X[kept], y[kept]).joint) > 0).all()


# ----------------------------------------------------------------------------------------------------
# errors


def says(*words):
    return "(?is)" + "".join(f"(?=.*{re.escape(word)})" for word in words)


@pytest.mark.parametrize("inference", ["exact", "mean", "unbiased", "importance"])
def test_routes_without_an_answer_name_those_that_have_one(rng, inference):
    X, y, _ = table(rng)
    with pytest.raises(UndefinedNumberError, match=says("missing cells", repr(inference), "'map'", "'nuts'")):
        discriminant(inference=inference).fit(X, y)
    with pytest.raises(ValueError, match=says("NaN", "column 0", "missing='marginalize'", "'map'", "'nuts'")):
        GaussianDiscriminantAnalysis(inference=inference).fit([[np.nan], [1.0], [3.0], [2.0]], [0, 0, 1, 1])


def test_numbers_without_a_closed_form_say_so(rng):
    X, y, _ = table(rng)
    model = discriminant(inference="map").fit(X, y)
    for name in ("log_evidence_", "posterior_"):
        with pytest.raises(UndefinedNumberError, match="no closed form"):
            getattr(model, name)
    with pytest.raises(UndefinedNumberError, match=says("leave-one-out", "no closed form")):
        model.loo(X, y)
    with pytest.raises(UndefinedNumberError, match=says("leave-one-out")):
        discriminant(inference="map", likelihood_power="loo").fit(X, y)
    with pytest.raises(UndefinedNumberError, match=says("evidence")):
        discriminant(inference="map", prior="evidence").fit(X, y)
    with pytest.raises(UndefinedNumberError, match=says("draws", "'nuts'")):
        model.sample_proba(X)


def test_what_the_likelihood_cannot_tell_is_an_error_that_names_it(rng):
    X, y, _ = table(rng, 80, 3, 2, share=0.0)
    apart = X.copy()
    apart[:40, 0], apart[40:, 2] = np.nan, np.nan
    with pytest.raises(UndefinedNumberError, match="column 0, column 2 are never observed together"):
        discriminant(inference="mle").fit(apart, y)
    frame = pd.DataFrame(apart, columns=["age", "dose", "mass"])
    assert np.isfinite(discriminant(inference="map").fit(frame, y).covariance_).all()
    apart[40:60, 2] = X[40:60, 2]
    assert np.isfinite(discriminant(inference="mle").fit(apart, y).covariance_).all()
    apart[y == 1, 1] = np.nan
    with pytest.raises(UndefinedNumberError, match="class 1 has no observed value in column 1"):
        discriminant(inference="mle").fit(apart, y)


def test_a_likelihood_without_a_maximum_is_an_error(rng):
    X, y, _ = table(rng, 80, 2, 2, share=0.0)
    few = X.copy()
    few[::2, 0], few[1::2, 1] = np.nan, np.nan
    few[:2] = X[:2]  # two rows with both columns determine a line
    y[:2] = 0
    with pytest.raises(UndefinedNumberError, match=says("no maximum", "column 0, column 1", "(2 of them)", "'map'")):
        discriminant(inference="mle").fit(few, y)
    copied = np.column_stack([X, X[:, 0]])
    copied[rng.random(copied.shape) < 0.1] = np.nan
    with pytest.raises(UndefinedNumberError, match=r"singular|no maximum"):
        discriminant(inference="mle").fit(copied, y)
    constant = X.copy()
    constant[:, 1], constant[3, 0] = 7.0, np.nan
    with pytest.raises(UndefinedNumberError, match="column 1"):
        discriminant(inference="mle").fit(constant, y)


def test_rows_that_were_not_learned_cannot_be_forgotten(rng):
    X, y, _ = table(rng)
    model = discriminant(inference="map").fit(X, y)
    before = model.means_.copy()
    other = X[:1].copy()
    other[0] = [np.nan, np.nan, 1.0] if not np.isnan(X[:, :2]).all(axis=1).any() else [1.0, np.nan, np.nan]
    with pytest.raises(ValueError, match="not all learned"):
        model.forget(np.repeat(other, 40, axis=0), np.repeat(y[:1], 40))
    assert_array_equal(model.means_, before)
    wrong = model.statistics_.features._replace(observed=np.ones((1, 3), dtype=bool))
    bad = type(model.statistics_)(model.classes_, model.class_count_, wrong, model.statistics_.columns)
    with pytest.raises(ValueError, match="with parts that belong together; got PatternStats"):
        discriminant(inference="map").from_statistics(bad)


# ----------------------------------------------------------------------------------------------------
# other doors


def test_blocks_of_correlated_columns_learn_from_rows_with_missing_cells(rng):
    X, y, _ = table(rng, 60, 4, 2)
    blocks = [("a", discriminant(inference="map"), [0, 1]), ("b", GaussianNB(), [2, 3])]
    mixed = MixedNB(blocks=blocks, inference="map").fit(X, y)
    a = discriminant(inference="map").fit(X[:, :2], y)
    b = GaussianNB(inference="exact").fit(X[:, 2:], y)
    expected = a.predict_joint_log_proba(X[:, :2]) + b.predict_joint_log_proba(X[:, 2:]) - b.class_log_prior_
    assert_allclose(mixed.predict_joint_log_proba(X), expected, rtol=1e-12)
    general = GenerativeClassifier(family="multivariate_gaussian", inference="map").fit(X, y)
    assert_allclose(
        general.predict_proba(X), discriminant(inference="map").fit(X, y).predict_proba(X), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_the_program_and_the_statistics_have_the_density_of_the_observed_cells(rng, covariance):
    import jax
    from numpyro.infer.util import log_density

    X, y, _ = table(rng, 40, 3, 2)
    X[0] = np.nan
    model = discriminant(covariance=covariance, inference="map").fit(X, y)
    family = model._fit_value.features.prior
    per_class = covariance == "per_class"
    rows, stats, joint = [], [], []
    for _ in range(3):
        means = rng.normal(size=(2, 3))
        matrices = st.invwishart(6, np.eye(3)).rvs(2, random_state=rng)
        matrices = matrices if per_class else np.stack([matrices[0]] * 2)
        covariance_ = matrices if per_class else matrices[0]
        rows.append(observed_log_density(X, means, matrices)[np.arange(40), y].sum())
        stats.append(
            family.log_likelihood(
                family.from_variables({"mean": means, "covariance": covariance_}), model.statistics_.features
            )
        )
        values = {"class_prob": np.array([0.3, 0.7]), "mean": means, "covariance": covariance_}
        with jax.enable_x64(True):
            joint.append(float(log_density(model.model, (X, y), {}, values)[0]))
        joint[-1] -= log_prior(model.prior_, means, matrices, per_class)
        joint[-1] -= np.log([0.3, 0.7])[y].sum()  # Dirichlet(1, 1): density 1
    assert_allclose(stats, rows, rtol=1e-12)
    assert_allclose(joint, rows, rtol=1e-10)
    assert isinstance(model.statistics_.features, PatternStats)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_nuts_agrees_with_a_program_whose_cells_are_latent(rng, covariance):
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    X, y, _ = table(rng, 30, 2, 2, share=0.25)
    prior = NormalInverseWishart(mean=0.0, mean_precision=0.1, df=6.0, scale=2.0 * np.eye(2))
    options = NUTSOptions(num_warmup=500, num_samples=1000, num_chains=4, progress_bar=False)
    model = discriminant(covariance=covariance, prior=prior, inference=options, random_state=0).fit(X, y)
    draws = model.to_arviz()["posterior"]
    missing = np.isnan(X)
    kinds = 2 if covariance == "per_class" else 1

    def latent():
        # inverse-Wishart through the Wishart of the precision
        precision_root = numpyro.sample(
            "root", dist.WishartCholesky(6.0, scale_tril=jnp.eye(2) / np.sqrt(2.0)).expand([kinds])
        )
        matrix = numpyro.deterministic("matrix", jnp.linalg.inv(precision_root @ jnp.swapaxes(precision_root, -1, -2)))
        matrix = jnp.broadcast_to(matrix, (2, 2, 2))
        mean = numpyro.sample("mean", dist.MultivariateNormal(jnp.zeros(2), matrix / 0.1).to_event(1))
        cells = numpyro.sample("cells", dist.Normal(0, 1).expand([int(missing.sum())]).to_event(1).mask(False))
        full = jnp.asarray(np.nan_to_num(X)).at[np.nonzero(missing)].set(cells)
        numpyro.factor("rows", dist.MultivariateNormal(mean[y], matrix[y]).log_prob(full).sum())

    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(latent), num_warmup=500, num_samples=2000, num_chains=2, chain_method="sequential", progress_bar=False
        )
        mcmc.run(jax.random.key(1))
        other = {k: np.asarray(v) for k, v in mcmc.get_samples().items()}
    mean = draws["mean"].to_numpy().reshape(-1, 2, 2)
    matrix = draws["covariance"].to_numpy().reshape(-1, kinds, 2, 2)
    for mine, theirs in ((mean, other["mean"]), (matrix, other["matrix"])):
        spread = theirs.std(axis=0)
        assert (np.abs(mine.mean(axis=0) - theirs.mean(axis=0)) < 0.12 * spread).all()
        assert_allclose(mine.std(axis=0), spread, rtol=0.2)
    assert model.diagnostics_.divergences == 0


@pytest.mark.slow
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_nuts_with_cells_of_an_empty_column_agrees_with_the_closed_form_of_the_others(rng, covariance):
    """A column that nobody has is a draw from its prior given the others, whose marginal has a closed form."""
    X, y, _ = table(rng, 60, 2, 2, share=0.0)
    wide = np.column_stack([X, np.full(60, np.nan)])
    prior = NormalInverseWishart(mean=0.0, mean_precision=0.5, df=7.0, scale=np.eye(3))
    marginal = NormalInverseWishart(mean=0.0, mean_precision=0.5, df=6.0, scale=np.eye(2))
    options = NUTSOptions(num_warmup=500, num_samples=1500, num_chains=4, progress_bar=False)
    model = discriminant(covariance=covariance, prior=prior, inference=options, random_state=0).fit(wide, y)
    exact = discriminant(covariance=covariance, prior=marginal).fit(X, y)
    assert_allclose(model.means_[:, :2], exact.means_, atol=0.03)
    assert_allclose(model.covariance_[..., :2, :2], exact.covariance_, rtol=0.06, atol=0.03)
    assert_allclose(model.predict_proba(wide), exact.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_the_program_of_patterns_calls_no_lapack(rng, covariance):
    """Several batched LAPACK calls in one compiled program can deadlock in jaxlib on CPU."""
    import jax

    X, y, _ = table(rng, 40, 3, 2)
    model = discriminant(covariance=covariance, inference="map").fit(X, y)
    family, stats = model._fit_value.features.prior, model.statistics_.features
    matrix = np.broadcast_to(np.eye(3), model.covariance_.shape).copy()
    with jax.enable_x64(True):

        def value(mean, matrix):
            return family.log_likelihood(family.from_variables({"mean": mean, "covariance": matrix}), stats)

        program = jax.jit(jax.value_and_grad(value, argnums=(0, 1)))
        text = program.lower(model.means_, matrix).as_text()
        found, slopes = program(model.means_, np.array(model.covariance_))
    assert not re.search(r"(?i)lapack|potrf|trsm|cholesky|triangular_solve|custom_call", text)
    assert_allclose(found, value(model.means_, np.array(model.covariance_)), rtol=1e-12)
    assert all(np.isfinite(s).all() for s in slopes)


# ----------------------------------------------------------------------------------------------------
# real tables, as they come


def log_loss(model, X, y):
    p = model.predict_log_proba(X)
    return -p[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_pima_women_with_missing_values_predict_better_than_without_them(data, covariance):
    train, test = data("pima_tr2"), data("pima_te")
    X, y = train.drop(columns="type"), train["type"]
    assert X.isna().to_numpy().sum() == 114
    new, truth = test.drop(columns="type"), test["type"].to_numpy()
    learned = discriminant(covariance=covariance, inference="map").fit(X, y)
    complete = X.notna().all(axis=1)
    dropped = discriminant(covariance=covariance, inference="map").fit(X[complete], y[complete])
    assert log_loss(learned, new, truth) < log_loss(dropped, new, truth) - 0.01
    assert_array_equal(learned.class_count_, [194, 106])


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_penguins_need_no_preparation(data, covariance):
    table = data("penguins")
    X, y = table[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]], table["species"]
    model = discriminant(covariance=covariance).fit(X, y)  # the two rows with missing cells have no cell at all
    assert model.score(X, y) > 0.98
    assert_array_equal(model.class_count_, [152, 68, 124])
    assert np.isfinite(model.log_evidence_)
    empty = X.isna().all(axis=1).to_numpy()
    assert empty.sum() == 2
    prior = np.exp(model.class_log_prior_)
    assert_allclose(model.predict_proba(X)[empty], np.broadcast_to(prior, (2, 3)), rtol=1e-12)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_penguins_with_a_third_of_the_cells_gone(data, rng, covariance):
    table = data("penguins").dropna()
    X, y = table.iloc[:, 2:6].to_numpy(float, copy=True), table["species"].to_numpy()
    X[rng.random(X.shape) < 0.3] = np.nan
    losses = []
    for half in range(4):
        test = np.arange(len(y)) % 4 == half
        a, b = X[~test], y[~test]
        complete = ~np.isnan(a).any(axis=1)
        filled = np.where(np.isnan(a), np.nanmean(a, axis=0), a)
        models = [
            discriminant(covariance=covariance, inference="map").fit(*p)
            for p in ((a, b), (a[complete], b[complete]), (filled, b))
        ]
        losses.append([log_loss(m, X[test], y[test]) for m in models])
    learned, dropped, imputed = np.mean(losses, axis=0)
    assert learned < dropped
    assert learned < imputed


def test_votes_and_tumours_with_missing_answers_and_unseen_levels(data):
    votes = data("housevotes84")
    X, y = votes.drop(columns="Class"), votes["Class"].to_numpy()
    assert X.isna().to_numpy().sum() == 392
    whole = X.isna().all(axis=1).to_numpy()
    assert whole.sum() == 1
    binary = (X == "y").astype(float).where(X.notna())
    levels, yes = CategoricalNB().fit(X, y), BernoulliNB(binarize=None).fit(binary, y)
    assert_allclose(levels.predict_proba(X), yes.predict_proba(binary), rtol=1e-9)
    assert_allclose(yes.predict_proba(binary)[whole], np.exp(yes.class_log_prior_)[None], rtol=1e-12)
    tumours = data("breast_cancer_wisconsin")
    X, y = tumours.drop(columns="Class"), tumours["Class"].to_numpy()
    assert X.isna().to_numpy().sum() == 16
    few = np.arange(len(X)) < 40  # so few that some scores were never seen
    model = CategoricalNB().fit(X[few], y[few])
    unseen = [set(X[c][~few].dropna()) - set(X[c][few].dropna()) for c in X]
    assert any(unseen)
    assert log_loss(model, X[~few], y[~few]) < 0.5
    assert model.score(X[~few], y[~few]) > 0.95


def test_the_rows_form_leaves_out_rows_with_nothing_observed_and_refuses_partial_ones(rng, monkeypatch):
    from bayesgen import nuts

    seen = {}

    def stop(form, args, options, seed):
        seen["args"] = args
        raise InterruptedError("before sampling")

    monkeypatch.setattr(nuts, "run", stop)
    X, y, _ = table(rng, 30, 3, 2, share=0.0)
    X[[2, 9]] = np.nan
    with pytest.raises(InterruptedError):
        discriminant(inference=NUTSOptions(likelihood="rows")).fit(X, y)
    assert_array_equal(seen["args"][3], np.delete(X, [2, 9], axis=0))
    assert_array_equal(seen["args"][4], np.delete(y, [2, 9]))
    X[0, 1] = np.nan
    for form in ("rows", "marginal"):
        with pytest.raises(ValueError, match=says(f"likelihood={form!r}", "complete rows", "'statistics'")):
            discriminant(inference=NUTSOptions(likelihood=form)).fit(X, y)
    with pytest.raises(InterruptedError):
        discriminant(inference="nuts").fit(X, y)


def test_em_that_is_stopped_early_warns(rng, monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    from bayesgen import missing

    monkeypatch.setattr(missing, "MOST_STEPS", 3)
    X, y, _ = table(rng, 60, 3, 2, share=0.5)
    with pytest.warns(ConvergenceWarning, match=says("EM", "3 steps", "stronger prior")):
        model = discriminant(inference="map").fit(X, y)
    assert len(model.log_posterior_trace_) <= 4


# ----------------------------------------------------------------------------------------------------
# statistics by pattern


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_models_of_other_classes_merge_and_forgotten_holes_leave_closed_forms(rng, covariance):
    X, y, _ = table(rng, 90, 3, 3, share=0.0)
    holes = X.copy()
    holes[y != 1] = np.where(rng.random((int((y != 1).sum()), 3)) < 0.3, np.nan, holes[y != 1])
    whole = discriminant(covariance=covariance, inference="map").fit(holes, y)
    parts = [discriminant(covariance=covariance, inference="map").fit(holes[some], y[some]) for some in (y < 2, y == 2)]
    merged = parts[0].merge(parts[1])
    assert_allclose(merged.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)
    partial = np.isnan(holes).any(axis=1)
    rest = whole.forget(holes[partial], y[partial])
    closed = discriminant(covariance=covariance).from_statistics(rest.statistics_)
    again = discriminant(covariance=covariance).fit(holes[~partial], y[~partial])
    assert_allclose(closed.predict_log_proba(X), again.predict_log_proba(X), rtol=1e-8, atol=1e-9)
    assert closed.log_evidence_ == pytest.approx(again.log_evidence_, rel=1e-9)


@pytest.mark.parametrize("kind", [MultivariateGaussian, PerClassMultivariateGaussian])
def test_soft_weights_of_rows_with_holes_are_labels_when_they_are_whole(rng, kind):
    X, y, w = table(rng, 40, 3, 2)
    family = kind(n_classes=2, n_features=3)
    hard = family.stats(X, Labels(y, w))
    soft = family.stats(X, np.eye(2)[y] * w[:, None])
    assert_array_equal(hard.observed, soft.observed)
    for a, b in zip(hard[1:], soft[1:], strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_the_evidence_of_a_column_alone_is_over_its_observed_cells(rng):
    X, y, _ = table(rng, 50, 3, 2)
    family = MultivariateGaussian(n_classes=2, n_features=3)
    stats = family.stats(X, Labels(y))
    found, expected = [], []
    for kappa, df in ((0.5, 6.0), (3.0, 9.0)):
        given = family.replace(loc=0.0, mean_precision=kappa, df=df, scale=2.0 * np.eye(3))
        found.append(given.log_evidence_columns(stats))
        alone = MultivariateGaussian(0.0, 0.0, kappa, df - 2.0, 2.0 * np.eye(1), 2, 1)
        seen = ~np.isnan(X)
        columns = [(X[seen[:, j], j : j + 1], Labels(y[seen[:, j]])) for j in range(3)]
        expected.append([alone.log_evidence(alone.stats(*c)) for c in columns])
    assert_allclose(found[1] - found[0], np.subtract(*expected[::-1]), rtol=1e-9)
