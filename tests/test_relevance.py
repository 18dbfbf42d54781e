"""Bayes factors of columns, and the selector that uses them."""

import pickle

import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import betaln, expit
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Evidence,
    EvidenceSelector,
    FeatureRelevance,
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
    feature_relevance,
)

K = 3
RNG = np.random.default_rng(21)
Y = RNG.permutation(np.repeat([0, 1, 2], [12, 8, 10]))
WEIGHTS = RNG.uniform(0.2, 2.5, len(Y))
# In each table the first column depends on the class, the last does not.
SIZES = np.column_stack([RNG.normal(2.0 * Y, 1.0), RNG.normal(50 + 10.0 * (Y == 1), 20.0), RNG.normal(size=len(Y))])
COUNTS = RNG.poisson(np.column_stack([1 + 4.0 * Y, 2 + 1.0 * (Y == 2), np.full(len(Y), 3.0)]))
BITS = (RNG.random((len(Y), 3)) < np.column_stack([0.1 + 0.4 * Y, 0.4 + 0.1 * Y, np.full(len(Y), 0.5)])).astype(int)
LEVELS = np.column_stack([np.minimum(COUNTS[:, 0] // 2, 4), BITS[:, 1], np.minimum(COUNTS[:, 2], 2)])
MODELS = {
    "Bernoulli": (BernoulliNB(alpha=(0.7, 1.6)), BITS),
    "categorical": (CategoricalNB(alpha=0.6), LEVELS),
    "Poisson": (PoissonNB(prior=Gamma(1.5, 0.4)), COUNTS),
    "Gaussian": (GaussianNB(prior=NormalInverseGamma([1.0, 50.0, 0.0], 0.1, 2.0, [1.0, 300.0, 2.0])), SIZES),
    "Gaussian, shared": (
        GaussianNB(variance="shared", prior=NormalInverseGamma([1.0, 50.0, 0.0], 0.1, 2.0, [1.0, 300.0, 2.0])),
        SIZES,
    ),
}
GDA_SCALE = np.array([[2.0, 5.0, 0.1], [5.0, 400.0, -3.0], [0.1, -3.0, 1.5]])
GDA = {
    kind: GaussianDiscriminantAnalysis(
        covariance=kind, prior=NormalInverseWishart([1.0, 50.0, 0.0], 0.2, 6.0, GDA_SCALE)
    )
    for kind in ("shared", "per_class")
}
ALL = {**MODELS, "multinomial": (MultinomialNB(alpha=0.6), COUNTS), **{k: (m, SIZES) for k, m in GDA.items()}}
weighted = pytest.mark.parametrize("w", [None, WEIGHTS], ids=["unweighted", "weights"])
every_model = pytest.mark.parametrize("kind", ALL)


def one_column(kind, j):
    """The model of column j alone, with that column's part of the prior."""
    model, X = MODELS[kind]
    if kind.startswith("Gaussian"):
        p = model.prior
        prior = NormalInverseGamma(p.mean[j], p.mean_precision, p.shape, p.scale[j])
        return clone(model).set_params(prior=prior)
    if kind == "categorical":
        return clone(model).set_params(categories=[np.arange(X[:, j].max() + 1)])
    return clone(model)


def log_evidence(model, X, y, w):
    return model.fit(X, y, w).log_evidence_parts_["x_given_y"]


# ------------------------------------------------------------------------------- Bayes factors


@weighted
@pytest.mark.parametrize("kind", MODELS)
def test_a_factor_compares_two_models_of_the_column_alone(kind, w):
    model, X = MODELS[kind]
    found = feature_relevance(model, X, Y, sample_weight=w)
    for j in range(3):
        by_class, one = (log_evidence(one_column(kind, j), X[:, [j]], y, w) for y in (Y, np.zeros(len(Y), dtype=int)))
        assert_allclose(found.log_bayes_factor[j], by_class - one, rtol=1e-9, atol=1e-10)
    assert_allclose(found.probability, expit(found.log_bayes_factor), rtol=1e-12)
    assert found.log_bayes_factor[0] > 1
    assert found.log_bayes_factor[0] > found.log_bayes_factor[2]
    assert_array_equal(found.names, [0, 1, 2])


@weighted
@pytest.mark.parametrize("alpha", [0.6, [0.3, 2.0, 1.1]])
def test_a_word_is_compared_against_all_others_together(alpha, w):
    found = feature_relevance(MultinomialNB(alpha=alpha), COUNTS, Y, sample_weight=w).log_bayes_factor
    a = np.broadcast_to(alpha, 3)
    w = np.ones(len(Y)) if w is None else w
    for j in range(3):
        rest = np.column_stack([COUNTS[:, j], np.delete(COUNTS, j, axis=1).sum(axis=1)])
        prior = a[j], a.sum() - a[j]

        def urn(rows, prior=prior, rest=rest):
            word, others = w[rows] @ rest[rows]
            return betaln(prior[0] + word, prior[1] + others) - betaln(*prior)

        assert_allclose(found[j], sum(urn(k == Y) for k in range(K)) - urn(Y >= 0), rtol=1e-9)
        if np.ptp(a) == 0:
            continue
        # The same by a model of two words, whose prior is the aggregated Dirichlet.
        two = MultinomialNB(alpha=list(prior))
        pair = log_evidence(two, rest, Y, w) - log_evidence(clone(two), rest, np.zeros(len(Y), dtype=int), w)
        assert_allclose(found[j], pair, rtol=1e-9)


@weighted
@pytest.mark.parametrize("kind", GDA)
def test_a_column_of_a_multivariate_normal_is_compared_by_its_marginal(kind, w):
    found = feature_relevance(GDA[kind], SIZES, Y, sample_weight=w).log_bayes_factor
    p = GDA[kind].prior
    for j in range(3):
        # A diagonal entry of IW(nu, Psi) in d columns is IG((nu - d + 1) / 2, Psi_jj / 2).
        one = NormalInverseWishart(p.mean[j], p.mean_precision, p.df - 2.0, [[GDA_SCALE[j, j]]])
        model = GaussianDiscriminantAnalysis(covariance=kind, prior=one)
        column = SIZES[:, [j]]
        wanted = log_evidence(clone(model), column, Y, w) - log_evidence(model, column, np.zeros(len(Y), dtype=int), w)
        assert_allclose(found[j], wanted, rtol=1e-9)


def test_a_factor_of_known_variance_is_a_ratio_of_normal_densities():
    """A very sure prior of the variance leaves normal marginals, written out with scipy."""
    shape = 1e9
    model = GaussianNB(prior=NormalInverseGamma(0.0, 0.5, shape, shape * 2.0))
    x = SIZES[:, [0]]

    def marginal(rows):
        n = rows.sum()
        return multivariate_normal(np.zeros(n), 2.0 * np.eye(n) + 2.0 / 0.5).logpdf(x[rows, 0])

    wanted = sum(marginal(k == Y) for k in range(K)) - marginal(Y >= 0)
    assert_allclose(feature_relevance(model, x, Y).log_bayes_factor, [wanted], rtol=1e-6)  # of order n**2 / shape


@every_model
def test_names_and_order_of_classes_and_a_fitted_estimator_do_not_matter(kind):
    model, X = ALL[kind]
    found = feature_relevance(model, X, Y)
    mix = np.random.default_rng(1).permutation(len(Y))
    renamed = feature_relevance(model, X[mix], np.array(["c", "a", "b"])[Y][mix])
    assert_allclose(renamed.log_bayes_factor, found.log_bayes_factor, rtol=1e-9, atol=1e-11)
    fitted = clone(model).set_params(inference="mean").fit(X, Y)
    assert_array_equal(feature_relevance(fitted).log_bayes_factor, found.log_bayes_factor)
    assert not hasattr(model, "classes_")  # a copy was fitted


@every_model
def test_batches_and_repeated_rows_give_the_same_factors(kind):
    model, X = ALL[kind]
    first = np.arange(len(Y)) < 13
    batches = clone(model).partial_fit(X[first], Y[first], range(K)).partial_fit(X[~first], Y[~first])
    if kind == "categorical":
        batches = clone(model).set_params(categories=[np.arange(5), [0, 1], [0, 1, 2]])
        batches.partial_fit(X[first], Y[first], range(K)).partial_fit(X[~first], Y[~first])
    assert_allclose(
        feature_relevance(batches).log_bayes_factor,
        feature_relevance(model, X, Y).log_bayes_factor,
        rtol=1e-8,
        atol=1e-10,
    )
    w = np.arange(len(Y)) % 3
    twice = feature_relevance(model, np.repeat(X, w, axis=0), np.repeat(Y, w)).log_bayes_factor
    assert_allclose(feature_relevance(model, X, Y, sample_weight=w).log_bayes_factor, twice, rtol=1e-8, atol=1e-10)


def test_a_class_without_rows_changes_nothing():
    model = MultinomialNB().partial_fit(COUNTS, Y, classes=range(K + 2))
    assert_allclose(
        feature_relevance(model).log_bayes_factor,
        feature_relevance(MultinomialNB(), COUNTS, Y).log_bayes_factor,
        rtol=1e-10,
    )


def test_one_class_leaves_nothing_to_depend_on():
    for model, X in ALL.values():
        assert_allclose(feature_relevance(model, X, np.zeros(len(Y))).log_bayes_factor, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_missing_cells_are_left_out(kind):
    model, X = MODELS[kind]
    X = X.astype(float)
    hole = np.random.default_rng(3).random(X.shape) < 0.3
    X[hole] = np.nan
    if kind == "categorical":
        model = clone(model).set_params(categories=[np.arange(5.0), [0.0, 1.0], [0.0, 1.0, 2.0]])
    if kind == "Bernoulli":
        model = clone(model).set_params(binarize=None)
    found = feature_relevance(model, X, Y).log_bayes_factor
    for j in range(3):
        own = one_column(kind, j) if kind.startswith("Gaussian") else clone(model)
        if kind == "categorical":
            own.set_params(categories=[model.categories[j]])
        seen = ~hole[:, j]
        assert_allclose(
            found[j], feature_relevance(own, X[seen][:, [j]], Y[seen]).log_bayes_factor[0], rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("kind", ["Bernoulli", "Poisson", "multinomial"])
def test_sparse_rows_give_the_same_factors(kind):
    model, X = ALL[kind]
    dense, sparse = (feature_relevance(model, x, Y).log_bayes_factor for x in (X, sp.csr_array(X)))
    assert_allclose(sparse, dense, rtol=1e-12)


def test_blocks_of_a_mixed_model_have_the_factors_of_their_own_models():
    X = np.column_stack([SIZES, COUNTS])[:, [3, 0, 4, 1, 5, 2]]
    blocks = [("sizes", ALL["Gaussian"][0], [1, 3, 5]), ("words", MultinomialNB(), [0, 2, 4])]
    found = feature_relevance(MixedNB(blocks=blocks), X, Y).log_bayes_factor
    assert_allclose(found[[1, 3, 5]], feature_relevance(ALL["Gaussian"][0], SIZES, Y).log_bayes_factor, rtol=1e-12)
    assert_allclose(found[[0, 2, 4]], feature_relevance(MultinomialNB(), COUNTS, Y).log_bayes_factor, rtol=1e-12)
    part = MixedNB(blocks=[("words", MultinomialNB(), [0, 2, 4])])
    assert_array_equal(np.isnan(feature_relevance(part, X, Y).log_bayes_factor), [0, 1, 0, 1, 0, 1])  # in no block


def test_data_scaled_and_learned_priors_are_held_for_both_models():
    for model, X in (
        (GaussianNB(), SIZES),
        (GaussianDiscriminantAnalysis(), SIZES),
        (MultinomialNB(alpha="evidence"), COUNTS),
        (BernoulliNB(alpha=Evidence(base="background")), BITS),
        (CategoricalNB(alpha="evidence"), LEVELS),
        (PoissonNB(prior="evidence"), COUNTS),
    ):
        fitted = clone(model).fit(X, Y)
        stated = (
            clone(model).set_params(prior=fitted.prior_)
            if hasattr(model, "prior")
            else GenerativeClassifier(family=fitted.prior_)
        )
        found = feature_relevance(fitted).log_bayes_factor
        assert_allclose(found, feature_relevance(stated, X, Y).log_bayes_factor, rtol=1e-10)
        assert found[0] > 1


def test_prior_odds_enter_the_probability():
    found = feature_relevance(MultinomialNB(), COUNTS, Y, prior_probability=0.1)
    odds = np.exp(found.log_bayes_factor) / 9
    assert_allclose(found.probability, odds / (1 + odds), rtol=1e-12)
    for bad in (0.0, 1.0, -0.5, "half", None, np.nan):
        with pytest.raises(ValueError, match="prior_probability must be between 0 and 1"):
            feature_relevance(MultinomialNB(), COUNTS, Y, prior_probability=bad)


def test_the_table_is_sorted_and_knows_the_names_of_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SIZES, columns=["length", "mass", "noise"])
    found = feature_relevance(GaussianNB(), frame, Y)
    assert isinstance(found, FeatureRelevance)
    table = found.to_frame()
    assert table.index.name == "feature"
    assert table.index[0] == "length"
    assert table.log_bayes_factor.is_monotonic_decreasing
    assert_allclose(table.probability, expit(table.log_bayes_factor), rtol=1e-12)
    assert "3 columns" in repr(found)
    assert "length" in repr(found)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (BernoulliNB(alpha=[[1.0, 2.0, 1.0], [1.0, 1.0, 1.0], [3.0, 1.0, 1.0]]), BITS),
        (MultinomialNB(alpha=np.arange(1.0, 10.0).reshape(3, 3)), COUNTS),
        (MultinomialNB(alpha=Evidence(per_class=True)), COUNTS),
        (PoissonNB(prior=Gamma(np.arange(1.0, 10.0).reshape(3, 3), 1.0)), COUNTS),
        (GaussianNB(prior=NormalInverseGamma(np.arange(9.0).reshape(3, 3), 0.1, 2.0, 1.0)), SIZES),
        (GaussianDiscriminantAnalysis(prior=NormalInverseWishart(None, [0.1, 0.2, 0.3])), SIZES),
        (
            GaussianDiscriminantAnalysis(
                covariance="per_class",
                prior=NormalInverseWishart(None, 0.1, 6.0, np.stack([GDA_SCALE] * 2 + [2 * GDA_SCALE])),
            ),
            SIZES,
        ),
    ],
    ids=str,
)
def test_a_prior_of_its_own_in_each_class_is_refused(model, X):
    with pytest.raises(ValueError, match="the same in every class"):
        feature_relevance(model, X, Y)


def test_a_prior_written_out_for_each_class_may_be_the_same():
    found = feature_relevance(MultinomialNB(alpha=np.full((3, 3), 0.6)), COUNTS, Y).log_bayes_factor
    assert_allclose(found, feature_relevance(MultinomialNB(alpha=0.6), COUNTS, Y).log_bayes_factor, rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (MultinomialNB(alpha=0.0), COUNTS),
        (GaussianNB(prior="reference"), SIZES),
        (GaussianDiscriminantAnalysis(prior="reference"), SIZES),
        (PoissonNB(prior=Gamma(0.0, 0.0)), COUNTS + 1),
    ],
    ids=str,
)
def test_an_improper_prior_has_no_factors(model, X):
    with pytest.raises(UndefinedNumberError, match="improper"):
        feature_relevance(model, X, Y)


def test_a_hyperprior_has_no_factors():
    with pytest.raises(ValueError, match="no closed form"):
        feature_relevance(MultinomialNB(alpha=dist.LogNormal(0.0, 1.0)), COUNTS, Y)


@pytest.mark.slow
def test_a_fitted_hyperprior_has_no_factors():
    model = MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance", random_state=0).fit(COUNTS, Y)
    with pytest.raises(ValueError, match="need a prior with a closed form"):
        feature_relevance(model)


def test_an_estimator_without_rows_must_be_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        feature_relevance(MultinomialNB())


# ------------------------------------------------------------------------------- the selector


def words(n=120, noise=20, seed=0):
    """Five words that depend on the class among many that do not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    rate = np.full((n, 5 + noise), 0.5)
    rate[:, :5] += 2.0 * y[:, None]
    return rng.poisson(rate), y


def test_the_median_probability_model_keeps_what_depends_on_the_class():
    X, y = words()
    selector = EvidenceSelector(PoissonNB()).fit(X, y)
    assert set(range(5)) <= set(selector.get_support(indices=True))
    assert selector.get_support().sum() <= 7
    assert_array_equal(selector.get_support(), selector.relevance_.log_bayes_factor > 0)
    assert_array_equal(selector.transform(X), X[:, selector.get_support()])
    strict = EvidenceSelector(PoissonNB(), threshold=0.999, prior_probability=0.1).fit(X, y)
    factors = selector.relevance_.log_bayes_factor
    assert_array_equal(strict.get_support(), factors > np.log(0.999 / 0.001) + np.log(9))


def test_the_best_k_are_kept_and_ties_go_to_the_first():
    X, y = words()
    for k in (1, 3, 5):
        chosen = EvidenceSelector(PoissonNB(), k=k).fit(X, y)
        best = np.argsort(-chosen.relevance_.log_bayes_factor)[:k]
        assert_array_equal(chosen.get_support(indices=True), np.sort(best))
    same = np.repeat(X[:, :1], 4, axis=1)
    assert_array_equal(EvidenceSelector(PoissonNB(), k=2).fit(same, y).get_support(), [True, True, False, False])


def test_it_is_a_step_of_a_pipeline_and_its_k_can_be_searched():
    X, y = words()
    pipeline = make_pipeline(EvidenceSelector(PoissonNB()), PoissonNB())
    search = GridSearchCV(pipeline, {"evidenceselector__k": [1, 5, 25]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert search.best_params_["evidenceselector__k"] == 5
    nested = (
        clone(pipeline).set_params(evidenceselector__estimator__prior=Gamma(2.0, 1.0), evidenceselector__k=3).fit(X, y)
    )
    assert nested[-1].n_features_in_ == 3
    assert nested.predict(sp.csr_array(X)).shape == y.shape


def test_names_of_columns_pass_through():
    pd = pytest.importorskip("pandas")
    X, y = words()
    frame = pd.DataFrame(X, columns=[f"word{j}" for j in range(X.shape[1])])
    selector = EvidenceSelector(PoissonNB(), k=5).fit(frame, y)
    assert selector.get_feature_names_out().tolist() == [f"word{j}" for j in range(5)]
    kept = selector.set_output(transform="pandas").transform(frame)
    assert kept.columns.tolist() == [f"word{j}" for j in range(5)]
    assert_array_equal(kept.to_numpy(), X[:, :5])
    assert selector.relevance_.names[0] == "word0"


def test_weights_and_sparse_rows_and_copies():
    X, y = words()
    w = np.arange(len(y)) % 3
    plain = EvidenceSelector(MultinomialNB(), k=5).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    sparse = EvidenceSelector(MultinomialNB(), k=5).fit(sp.csr_array(X), y, w)
    assert_allclose(sparse.relevance_.log_bayes_factor, plain.relevance_.log_bayes_factor, rtol=1e-9)
    assert sp.issparse(sparse.transform(sp.csr_array(X)))
    back = pickle.loads(pickle.dumps(sparse))
    assert_array_equal(back.get_support(), sparse.get_support())


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "all"])
def test_k_is_a_whole_number(k):
    with pytest.raises(ValueError, match="k must be a whole number, at least 1, or None"):
        EvidenceSelector(PoissonNB(), k=k).fit(COUNTS, Y)


def test_more_columns_than_there_are_are_all_kept():
    with pytest.warns(UserWarning, match="k=4 is more than the 3 columns of X"):
        selector = EvidenceSelector(PoissonNB(), k=4).fit(COUNTS, Y)
    assert selector.get_support().all()


def test_missing_cells_and_strings_are_for_the_estimator_to_take():
    X = SIZES.copy()
    X[::4, 1] = np.nan
    assert_array_equal(EvidenceSelector(GaussianNB(), k=2).fit_transform(X, Y), X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        EvidenceSelector(MultinomialNB(), k=2).fit(np.where(np.isnan(X), X, COUNTS), Y)
    kinds = np.column_stack([np.array(["p", "q", "r"])[Y], np.array(["s", "t"])[BITS[:, 2]]])
    pipeline = make_pipeline(EvidenceSelector(CategoricalNB(), k=1), CategoricalNB()).fit(kinds, Y)
    assert_array_equal(pipeline.predict(kinds), Y)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, "high", None, np.nan])
def test_the_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match="threshold must be a number between 0 and 1"):
        EvidenceSelector(PoissonNB(), threshold=threshold).fit(COUNTS, Y)


# One of the checks has columns that depend on no class, of which none is kept.
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks([EvidenceSelector(GaussianNB()), EvidenceSelector(MultinomialNB(), k=1)])
def test_the_selector_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
