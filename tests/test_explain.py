"""An explanation adds up to the prediction, in every model and route, and its intervals are those of the posterior."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy import stats

import bayesgen
from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    GenerativeClassifier,
    HierarchicalDirichlet,
    ImportanceOptions,
    LKJPrior,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    NUTSOptions,
    PoissonNB,
    UndefinedNumberError,
    ZeroProbabilityWarning,
)
from bayesgen.estimators import MixedNB as Mixed
from bayesgen.families import Family
from bayesgen.families.contributions import contributions

QUICK = NUTSOptions(num_warmup=30, num_samples=20, num_chains=1, progress_bar=False)
FEW = ImportanceOptions(num_samples=50)
RANDOM = NormalInverseGamma(mean_precision=dist.LogNormal(0.0, 1.0))


def counts(n: int = 24, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    return rng.poisson(rng.gamma(2.0, 1.0, (3, d))[y]).astype(float), np.array(["a", "b", "c"])[y]


def numbers(n: int = 24, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    y = np.arange(n) % 3
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + y[:, None] + 5.0, y


def holes(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[::3, 1] = np.nan
    X[1] = np.nan
    return X


COUNTS = [
    MultinomialNB(),
    MultinomialNB(inference="mean", likelihood_power=0.3),
    MultinomialNB(multinomial_coefficient=True, alpha="evidence"),
    MultinomialNB(inference="map", alpha=2.0),
    pytest.param(MultinomialNB(inference=QUICK, random_state=0), marks=pytest.mark.slow),
    pytest.param(MultinomialNB(alpha=HierarchicalDirichlet(), inference=FEW, random_state=0), marks=pytest.mark.slow),
    BernoulliNB(),
    BernoulliNB(inference="map", alpha=(2.0, 3.0)),
    BernoulliNB(alpha=dist.LogNormal(0.0, 1.0), inference=FEW, random_state=0),
    PoissonNB(),
    PoissonNB(inference="mean"),
    PoissonNB(inference=FEW, random_state=0),
    CategoricalNB(),
    CategoricalNB(inference="map", alpha=2.0, class_alpha=2.0),
    CategoricalNB(inference=FEW, random_state=0),
    GenerativeClassifier(family="multinomial"),
]
NUMBERS = [
    GaussianNB(),
    GaussianNB(inference="unbiased"),
    GaussianNB(variance="shared"),
    GaussianNB(variance="shared", inference="map"),
    pytest.param(GaussianNB(prior=RANDOM, inference=FEW, random_state=0), marks=pytest.mark.slow),
    GaussianDiscriminantAnalysis(),
    GaussianDiscriminantAnalysis(inference="mle"),
    GaussianDiscriminantAnalysis(inference="mean", likelihood_power=2.0),
    GaussianDiscriminantAnalysis(covariance="per_class"),
    GaussianDiscriminantAnalysis(covariance="per_class", inference="map"),
    GaussianDiscriminantAnalysis(inference=FEW, random_state=0),
    pytest.param(
        GaussianDiscriminantAnalysis(prior=LKJPrior(2.0), inference=QUICK, random_state=0), marks=pytest.mark.slow
    ),
    GaussianDiscriminantAnalysis(class_prior=[0.5, 0.5, 0.0]),
]


def name(model) -> str:
    route = model.inference if isinstance(model.inference, str) else type(model.inference).__name__
    return f"{type(model).__name__}-{route}"


def adds_up(model, X) -> None:
    """Contributions and prior are the scores, up to what all classes share."""
    found = model.explain(X)
    assert found.contributions.shape == found.shape == (len(found), model.n_features_in_, len(model.classes_))
    total = found.prior + found.contributions.sum(axis=1)
    expected = model.predict_log_proba(X)
    assert_allclose(total - total[:, :1], expected - expected[:, :1], rtol=1e-10, atol=1e-10)
    if model.likelihood_power == 1.0:
        joint = model.predict_joint_log_proba(X)
        assert_allclose(total - total[:, :1], joint - joint[:, :1], rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::bayesgen.SamplingWarning", "ignore:.*mode.*:UserWarning")
@pytest.mark.parametrize("model", COUNTS, ids=name)
def test_contributions_of_counts_add_up_to_the_log_joint(model) -> None:
    X, y = counts()
    model = model.fit(X, y)
    adds_up(model, X)
    if not isinstance(model, CategoricalNB):
        sparse = model.explain(sp.csr_array(X))
        assert_allclose(sparse.contributions, model.explain(X).contributions, rtol=1e-13, atol=1e-13)


@pytest.mark.filterwarnings("ignore::bayesgen.SamplingWarning")
@pytest.mark.parametrize("model", NUMBERS, ids=name)
def test_contributions_of_measurements_add_up_to_the_log_joint(model) -> None:
    X, y = numbers()
    model = model.set_params(missing="marginalize").fit(X, y)
    adds_up(model, X + 1.0)
    adds_up(model, holes(X))
    found = model.explain(holes(X))
    assert (found.contributions[np.isnan(holes(X))] == 0).all()
    if model.inference != "mle" and model.inference != "unbiased":
        assert (found.sd[np.isnan(holes(X))] == 0).all()
        assert (found.sd[~np.isnan(holes(X))] > 0).all()


def test_unknown_levels_and_missing_cells_have_their_share() -> None:
    X = np.array([["p", "u"], ["q", "u"], ["q", "v"], ["p", None]], dtype=object)
    model = CategoricalNB().fit(X, [0, 0, 1, 1])
    new = np.array([["p", "new"], [None, "v"]], dtype=object)
    adds_up(model, new)
    found = model.explain(new)
    assert (found.contributions[1, 0] == 0).all()
    assert found.sd[0, 1].tolist() == [0.0, 0.0]  # an unknown level has a fixed probability
    assert found.value(0, 0) == "p"
    assert found.value(0, 1) == "(unknown level)"
    assert found.value(1, 0) is None


def test_a_mixed_model_has_the_columns_of_all_blocks() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = np.column_stack([rng.normal(y), rng.poisson(2.0 + y), rng.integers(0, 2, 30), rng.normal(size=30), y == 1])
    blocks = [
        ("sizes", GaussianNB(inference="mean"), [0]),
        ("words", MultinomialNB(), [1, 2]),
        ("flag", BernoulliNB(), [4]),
    ]
    model = MixedNB(blocks=blocks).fit(X.astype(float), y)
    adds_up(model, X.astype(float))
    found = model.explain(X.astype(float))
    assert (found.contributions[:, 3] == 0).all()  # in no block
    own = dict((n, e) for n, e, _ in model.blocks_)["words"].explain(X[:, [1, 2]].astype(float))
    assert_allclose(found.contributions[:, [1, 2]], own.contributions)
    assert isinstance(model, Mixed)


# ------------------------------------------------------------------------------- what a share is


def test_a_column_of_a_full_covariance_has_the_shapley_value_of_its_log_density() -> None:
    X, y = numbers()
    model = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    row, k = X[3], 1
    mean, covariance = model.means_[k], model.covariance_

    def value(columns: list[int]) -> float:
        if not columns:
            return 0.0
        block = np.ix_(columns, columns)
        return stats.multivariate_normal(mean[columns], covariance[block]).logpdf(row[columns])

    shares = np.zeros(4)
    for order in permutations(range(4)):
        for i, j in enumerate(order):
            shares[j] += (value(list(order[: i + 1])) - value(list(order[:i]))) / 24
    assert_allclose(model.explain(row[None]).contributions[0, :, k], shares, rtol=1e-9, atol=1e-10)


def test_the_exact_route_has_the_shapley_value_of_the_student_t() -> None:
    X, y = numbers()
    model = GaussianDiscriminantAnalysis(covariance="per_class").fit(X, y)
    post, row, k = model.posterior_, X[3], 2
    df, scale = (v[k] for v in post.inverse_wishart())
    loc, _, kappa = (v[k] for v in post.hyper())
    eta = df - 4 + 1

    def value(columns: list[int]) -> float:
        if not columns:
            return 0.0
        block = scale[np.ix_(columns, columns)] * (kappa + 1) / (kappa * eta)
        return stats.multivariate_t(loc[columns], block, eta).logpdf(row[columns])

    shares = np.zeros(4)
    for order in permutations(range(4)):
        for i, j in enumerate(order):
            shares[j] += (value(list(order[: i + 1])) - value(list(order[:i]))) / 24
    assert_allclose(model.explain(row[None]).contributions[0, :, k], shares, rtol=1e-9, atol=1e-9)


def test_a_word_has_its_share_of_the_urn_over_all_orders_of_the_tokens() -> None:
    X = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    model = MultinomialNB().fit(X, [0, 1])
    alpha = model.posterior_.concentration()
    document = [0, 0, 1, 2]
    shares = np.zeros((3, 2))
    for order in permutations(document):
        seen = np.zeros(3)
        for j in order:
            shares[j] += np.log((alpha[:, j] + seen[j]) / (alpha.sum(axis=1) + seen.sum())) / 24
            seen[j] += 1
    assert_allclose(model.explain([[2, 1, 1]]).contributions[0], shares, rtol=1e-12)


def test_differences_of_classes_do_not_see_units_and_origins() -> None:
    X, y = numbers()
    for model in (GaussianDiscriminantAnalysis(), GaussianDiscriminantAnalysis(covariance="per_class"), GaussianNB()):
        a = model.fit(X, y).explain(X).contributions
        moved = X * [1.0, 1000.0, 0.01, 3.0] + [0.0, 7.0, 1.0, -5.0]
        b = model.fit(moved, y).explain(moved).contributions
        assert_allclose(a - a[..., :1], b - b[..., :1], rtol=1e-8, atol=1e-8)


def test_many_columns_add_up_and_are_the_same_in_every_call() -> None:
    X, y = numbers(n=60, d=9)
    model = GaussianDiscriminantAnalysis().fit(X, y)
    adds_up(model, X[:10])
    assert_allclose(model.explain(X[:3]).contributions, model.explain(X[:3]).contributions, rtol=0, atol=0)


# ------------------------------------------------------------------------------- how sure


@pytest.mark.parametrize(
    "model",
    [
        MultinomialNB(inference="mean"),
        BernoulliNB(inference="mean"),
        PoissonNB(inference="mean"),
        CategoricalNB(inference="mean"),
        GaussianNB(inference="mean"),
        GaussianNB(inference="mean", variance="shared"),
    ],
    ids=name,
)
def test_closed_standard_deviations_are_those_of_draws(model) -> None:
    X, y = numbers() if isinstance(model, GaussianNB) else counts()
    model = model.fit(X, y)
    n = 3000
    rows = X[:2]
    x = model._rows(rows)
    params = model.posterior_.draw(np.random.default_rng(0), n)
    d, labels = X.shape[1], model.classes_.tolist()
    each = np.empty((n, 2, d, 3))  # of one column at a time, through the density of the model itself
    for j in range(d):
        if isinstance(model, MultinomialNB):
            each[:, :, j] = params.log_prob[:, None, :, j] * x[:, j][None, :, None]
            continue
        alone = np.full_like(x, -1 if isinstance(model, CategoricalNB) else np.nan)
        alone[:, j] = x[:, j]
        each[:, :, j] = model.posterior_.draw_log_prob(params, alone)
    found = model.explain(rows)
    assert_allclose(found.sd, each.std(axis=0), rtol=0.1, atol=1e-9)
    odds = found.log_odds(1, labels[2], labels[0])
    assert_allclose(odds.sd, (each[..., 2] - each[..., 0])[:, 1].std(axis=0), rtol=0.1, atol=1e-9)
    rest = found.log_odds(1, labels[1])
    assert_allclose(rest.sd, (each[..., 1] - each[..., [0, 2]].mean(-1))[:, 1].std(axis=0), rtol=0.1, atol=1e-9)


def test_standard_deviations_of_a_full_covariance_are_those_of_its_columns_where_there_is_one() -> None:
    X, y = numbers(d=1)
    wide = GaussianDiscriminantAnalysis(random_state=0).fit(X, y)
    prior = wide.prior_
    same = NormalInverseGamma(prior.mean, prior.mean_precision, prior.df / 2, prior.scale[0, 0] / 2)
    narrow = GaussianNB(variance="shared", prior=same).fit(X, y)
    a, b = (m.explain(X[:4], n_draws=4000) for m in (wide, narrow))
    assert_allclose(a.contributions, b.contributions, rtol=1e-9)
    assert_allclose(a.sd, b.sd, rtol=0.08)
    assert_allclose(a.log_odds(0, 1, 0).sd, b.log_odds(0, 1, 0).sd, rtol=0.08)


def test_routes_without_a_posterior_have_no_standard_deviation() -> None:
    X, y = numbers()
    found = GaussianNB(inference="mle").fit(X, y).explain(X)
    with pytest.raises(UndefinedNumberError, match="no posterior"):
        found.sd  # noqa: B018
    assert found.log_odds(0).sd is None
    pytest.importorskip("pandas")
    assert found.table(0).columns.tolist() == ["value", "log_odds"]


# ------------------------------------------------------------------------------- reading it


def test_the_table_says_which_words_made_this_spam() -> None:
    pd = pytest.importorskip("pandas")
    words = ["free", "meeting", "the", "rare"]
    X = pd.DataFrame([[9, 1, 3, 0], [8, 0, 4, 0], [1, 9, 3, 0], [0, 7, 5, 0]], columns=words)
    model = MultinomialNB().fit(X, ["spam", "spam", "ham", "ham"])
    new = pd.DataFrame([[2, 1, 1, 0]], columns=words)
    found = model.explain(new)
    table = found.table(0, "spam")
    assert table.index.tolist() == ["free", "meeting", "the"]  # no word that is not there
    assert table["value"].tolist() == [2, 1, 1]
    assert (table["log_odds"].abs().diff().dropna() <= 0).all()
    log_proba = model.predict_log_proba(new)[0]
    total = table["log_odds"].sum() + table.attrs["prior"]
    assert_allclose(total, log_proba[1] - log_proba[0], rtol=1e-10)
    assert_allclose(table.attrs["total"], total, rtol=1e-12)
    assert ((table["lower"] < table["log_odds"]) & (table["log_odds"] < table["upper"])).all()
    assert_allclose(found.table(0, "ham")["log_odds"], -table["log_odds"])
    assert len(found.table(0, n=2)) == 2
    assert "free" in found._repr_html_()
    assert "log odds of spam" in found._repr_html_()
    assert found.log_odds(0).label == "spam"
    named = MultinomialNB().fit(X.to_numpy(), [1, 1, 0, 0]).explain(new.to_numpy())
    assert named.table(0, 1, feature_names=words).index.tolist() == table.index.tolist()


def test_a_large_vocabulary_is_explained_one_document_at_a_time() -> None:
    rng = np.random.default_rng(0)
    n, d = 4000, 50_000
    X = sp.random_array((n, d), density=2e-4, rng=rng, format="csr", data_sampler=lambda size: np.ones(size))
    y = np.arange(n) % 2
    for model in (MultinomialNB(), BernoulliNB(inference="mean")):
        found = model.fit(X, y).explain(X)
        with pytest.raises(ValueError, match=r"GiB: explain fewer rows at a time, at most 1342"):
            found.contributions  # noqa: B018
        odds = found.log_odds(7, 1)
        expected = model.predict_log_proba(X[[7]])[0]
        assert_allclose(odds.total, expected[1] - expected[0], rtol=1e-8)
        assert found[[7, 8]].contributions.shape == (2, d, 2)
        assert_allclose(found[7:9].contributions[0].sum(0) + found.prior, model.predict_joint_log_proba(X[[7]])[0])


def test_another_class_prior_changes_the_prior_alone() -> None:
    X, y = counts()
    model = MultinomialNB().fit(X, y)
    found = model.explain(X, class_prior=[0.2, 0.3, 0.5])
    assert_allclose(np.exp(found.prior), [0.2, 0.3, 0.5])
    assert_allclose(found.contributions, model.explain(X).contributions)


def test_questions_that_cannot_be_meant_are_answered_by_name() -> None:
    X, y = counts()
    found = MultinomialNB().fit(X, y).explain(X)
    with pytest.raises(ValueError, match="label='z' is not a class; the classes are"):
        found.log_odds(0, "z")
    with pytest.raises(ValueError, match="the same class, 'a'"):
        found.log_odds(0, "a", "a")
    with pytest.raises(ValueError, match="row must be a whole number below 24"):
        found.log_odds(24)
    with pytest.raises(ValueError, match="prob must be"):
        found.table(0, prob=94)
    with pytest.raises(ValueError, match="feature_names has 1 names; the model has 5 columns"):
        found.table(0, feature_names=["x"])
    with pytest.raises(ValueError, match="one class only"):
        MultinomialNB().fit(X, np.zeros(24, dtype=int)).explain(X).log_odds(0)
    assert found.log_odds(0, against="a").label != "a"
    for n in (2.5, -1, "a", True):
        with pytest.raises(ValueError, match="n must be a whole number, at least 0"):
            found.table(0, n=n)
    for names in (3, "abcde", [["x"] * 5]):
        with pytest.raises(ValueError, match="feature_names must be a sequence of names, or a dict"):
            found.table(0, feature_names=names)
    with pytest.raises(ValueError, match="label must be one class label"):
        found.table(0, label=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="against must be one class label"):
        found.log_odds(0, against=["a"])


def test_dates_are_classes_as_others_are() -> None:
    X, y = counts()
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[ns]")
    found = MultinomialNB().fit(X, days[np.unique(y, return_inverse=True)[1]]).explain(X)
    assert found.log_odds(0, found.classes[0]).label == days[0]
    assert found.table(0, label=found.classes[1], against=found.classes[0]).attrs["against"] == days[0]


def test_rows_that_are_impossible_in_every_class_have_no_odds() -> None:
    found = BernoulliNB(inference="mle").fit([[1, 0], [0, 1]], [0, 1]).explain([[1, 1], [1, 0]])
    with pytest.warns(ZeroProbabilityWarning, match="row 0 has probability zero in every class"):
        odds = found.log_odds(0)
    assert np.isnan(odds.total)
    with pytest.warns(ZeroProbabilityWarning):
        found.table(0)
    assert found.log_odds(1).total == np.inf


def test_a_family_of_your_own_is_explained_by_leaving_cells_out() -> None:
    anything = contributions.dispatch(Family)
    X, y = numbers()
    for model in (GaussianNB(), GaussianDiscriminantAnalysis(covariance="per_class"), PoissonNB()):
        post = model.fit(X.round() + 20.0, y).posterior_
        rows = holes(X.round() + 20.0)
        assert_allclose(anything(post, None, rows), contributions(post, None, rows), rtol=1e-9, atol=1e-9)
        params = post.mean()
        assert_allclose(anything(post, params, rows), contributions(post, params, rows), rtol=1e-9, atol=1e-9)
    words = MultinomialNB().fit(*counts()).posterior_
    with pytest.raises(ValueError, match=r"Multinomial does not integrate missing cells.*contributions\.register"):
        anything(words, None, counts()[0])


@pytest.mark.parametrize("inference", ["exact", "mean"])
def test_messages_are_explained_as_the_model_sees_them(data, inference) -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    table = data("sms_spam").iloc[:2000]
    vectorizer = CountVectorizer(min_df=3)
    X = vectorizer.fit_transform(table["text"])
    words = vectorizer.get_feature_names_out()
    model = MultinomialNB(inference=inference).fit(X, table["label"])
    found = model.explain(X)
    spam = np.flatnonzero(table["label"] == "spam")[:5]
    for i in spam:
        odds = found.log_odds(int(i), "spam")
        expected = model.predict_log_proba(X[[i]])[0]
        assert_allclose(odds.total, expected[1] - expected[0], rtol=1e-10)
        present = set(X[[i]].indices.tolist())
        assert set(np.flatnonzero(odds.contributions).tolist()) <= present
        top = found.table(int(i), "spam", feature_names=words)
        assert set(top.index) <= {words[j] for j in present}


@pytest.mark.parametrize("inference", ["mle", "exact"])
def test_a_class_of_probability_zero_has_no_say(inference) -> None:
    X, y = numbers()
    y = y % 2
    for model in (GaussianDiscriminantAnalysis(covariance="per_class"), GaussianNB(prior="reference"), GaussianNB()):
        model.set_params(inference=inference, class_prior=[0.5, 0.5, 0.0]).partial_fit(X, y, classes=[0, 1, 2])
        adds_up(model, X)
        odds = model.explain(X).log_odds(0)
        assert (odds.label, odds.against) in ((0, 1), (1, 0))
        assert np.isfinite(odds.total)


def test_impossible_rows_have_infinite_contributions() -> None:
    model = MultinomialNB(inference="mle").fit([[1, 1, 0], [0, 1, 1]], [0, 1])
    found = model.explain([[1, 1, 0]])
    assert found.contributions[0, 0].tolist() == [np.log(0.5), -np.inf]
    assert found.log_odds(0).total == np.inf


def test_the_picture_adds_up() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    X, y = counts()
    found = MultinomialNB().fit(X, y).explain(X)
    ax = Figure().subplots()
    assert bayesgen.plots.explanation(found, ax, row=2, n=3, feature_names=list("abcde")) is ax
    bars = [bar.get_width() for bar in ax.patches]
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert_allclose(sum(bars), found.log_odds(2).total)
    assert labels[-1] == "class probabilities"
    assert len(labels) == len(bars)
    assert labels[0].split(" = ")[0] in "abcde"
    assert f"{found.log_odds(2).total:+.2f}" in ax.get_title()


@pytest.mark.parametrize("model", [GaussianNB(inference="mle"), GaussianNB(inference="map", unlabelled="em")])
def test_without_a_posterior_a_table_has_no_intervals(model):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + y[:, None]
    labels = y if model.unlabelled is None else np.where(np.arange(40) % 3, y, -1)
    explanation = model.fit(X, labels).explain(X[:2])
    assert list(explanation.table().columns) == ["value", "log_odds"]
    with pytest.raises(UndefinedNumberError, match="posterior"):
        _ = explanation.sd
