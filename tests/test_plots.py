"""Pictures show the model that is fitted."""

from __future__ import annotations

import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.sparse as sp
from numpyro.diagnostics import split_gelman_rubin
from scipy import stats
from scipy.special import digamma

import bayesgen
from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NUTSOptions,
    PoissonNB,
)
from bayesgen.families import Labels
from bayesgen.nuts import Draws

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

from bayesgen import plots  # noqa: E402
from bayesgen.plots._pit import column_law, spread_mass  # noqa: E402
from bayesgen.plots._predictive_check import documents  # noqa: E402


@pytest.fixture
def ax():
    return Figure().subplots()


def clouds(n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds in columns of very different unit."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(n_classes), 40)
    X = rng.normal(size=(len(y), 2)) + np.column_stack([1.5 * y, -1.0 * y])
    return X * [1.0, 1000.0] + [0.0, 4000.0], y


def line(ax):
    return next(curve for curve in ax.get_lines() if curve.get_label() == "p = 0.5")


def test_the_straight_line_is_where_both_classes_are_equally_probable(ax) -> None:
    X, y = clouds()
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    assert plots.decision_boundary(gda, X, y, ax) is ax
    ends = line(ax).get_xydata()
    assert len(ends) == 2
    on_the_line = ends[0] + np.linspace(0.0, 1.0, 7)[:, None] * (ends[1] - ends[0])
    np.testing.assert_allclose(gda.predict_proba(on_the_line), 0.5, atol=1e-9)


@pytest.mark.parametrize("swap", [False, True])
def test_a_line_along_an_axis_can_be_drawn(ax, swap: bool) -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [4.0, 0.0], [4.0, 1.0], [5.0, 0.0], [5.0, 1.0]])
    y = np.repeat([0, 1], 4)
    X = X[:, ::-1] if swap else X
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    plots.decision_boundary(gda, X, y, ax)
    np.testing.assert_allclose(line(ax).get_xydata()[:, int(swap)], 2.5, rtol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianDiscriminantAnalysis(),
        GaussianDiscriminantAnalysis(covariance="per_class", inference="map"),
        GaussianNB(inference="mean"),
    ],
    ids=["exact", "per_class", "naive"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_routes_and_more_classes_have_curved_boundaries(ax, estimator, n_classes: int) -> None:
    X, y = clouds(n_classes)
    estimator = estimator.fit(X, y)
    plots.decision_boundary(estimator, X, y, ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[:n_classes] == [str(k) for k in range(n_classes)]
    assert labels[n_classes] == ("p = 0.5" if n_classes == 2 else "most probable class changes")


def test_contours_enclose_the_stated_share_of_a_class(ax) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(4000, 2)), np.zeros(4000, dtype=int)
    y[2000:] = 1
    X[y == 1] += [9.0, 0.0]
    gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
    plots.decision_boundary(gda, X, y, ax, mass=[0.5, 0.9])
    contours = [c for c in ax.collections if hasattr(c, "levels")]
    assert [len(c.levels) for c in contours] == [2, 2]
    # Half of a plane normal density lies above half of its peak, 0.9 above a tenth of it.
    peak = 1.0 / (2.0 * np.pi * np.sqrt(np.linalg.det(gda.covariance_)))
    np.testing.assert_allclose(contours[0].levels / peak, [0.1, 0.5], atol=0.01)


def test_axes_are_named_after_the_columns_of_a_frame(ax) -> None:
    pd = pytest.importorskip("pandas")
    X, y = clouds()
    frame = pd.DataFrame(X, columns=["length", "mass"])
    plots.decision_boundary(GaussianDiscriminantAnalysis().fit(frame, y), frame, y, ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "mass")


def test_three_columns_cannot_be_drawn(ax) -> None:
    X, y = clouds()
    X = np.column_stack([X, X[:, 0] ** 2])
    with pytest.raises(ValueError, match=r"two columns, X has shape \(80, 3\)"):
        plots.decision_boundary(GaussianDiscriminantAnalysis().fit(X, y), X, y, ax)


def test_the_smoothing_curve_marks_what_has_a_name(ax) -> None:
    alpha, loss = [0.1, 1.0, 10.0], {"mean": [0.9, 0.6, 0.7], "exact": [0.8, 0.6, 0.65]}
    assert plots.smoothing_curve(alpha, loss, ax, mle=float("inf")) is ax
    texts = [text.get_text().strip() for text in ax.texts]
    assert texts == ["Jeffreys", "Laplace", "MLE (alpha = 0): infinite"]
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mean", "exact", "least loss"]


def test_the_smoothing_curve_takes_other_marks(ax) -> None:
    plots.smoothing_curve([0.1, 1.0], {"mean": [0.9, 0.6]}, ax, marks={"Perks": 0.2}, mle=1.25)
    assert [text.get_text().strip() for text in ax.texts] == ["Perks", "MLE (alpha = 0): 1.250"]


@pytest.mark.parametrize("alpha", [[], [0.0, 1.0], [1.0, 0.5]])
def test_alpha_must_be_positive_and_increasing(ax, alpha: list[float]) -> None:
    with pytest.raises(ValueError, match="positive and increasing"):
        plots.smoothing_curve(alpha, {"mean": alpha}, ax)


def test_plots_come_with_the_package() -> None:
    assert bayesgen.plots is plots


# ------------------------------------------------------------------------------- posterior densities


def words(n: int = 60) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Documents of two classes that differ in their first word."""
    rng = np.random.default_rng(7)
    y = np.repeat(["ham", "spam"], n // 2)
    X = rng.poisson([[1.0, 3.0, 2.0, 0.3]], size=(n, 4)).astype(float)
    X[y == "spam", 0] += rng.poisson(3.0, size=n // 2)
    return X, y, ["free", "meeting", "the", "rare"]


def legend(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def curves(ax) -> list[np.ndarray]:
    return [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) > 1]


def dots(ax) -> np.ndarray:
    return np.concatenate([line.get_xydata() for line in ax.get_lines() if line.get_marker() == "o"])


def fitted_words(**keywords):
    X, y, names = words()
    return MultinomialNB(random_state=0, **keywords).fit(X, y), names


def test_a_posterior_density_is_that_of_the_closed_form(ax) -> None:
    model, names = fitted_words()
    coords = {"class": "spam", "feature": "free"}
    assert plots.posterior(model, "feature_prob", ax, coords=coords, feature_names=names, prob=0.9) is ax
    alpha = model.posterior_.concentration()[1]
    beta = stats.beta(alpha[0], alpha.sum() - alpha[0])
    (curve,) = curves(ax)
    np.testing.assert_allclose(np.trapezoid(curve[:, 1], curve[:, 0]), 1.0, atol=0.01)
    # 4000 draws: the error of a kernel estimate is a few per cent of the peak.
    np.testing.assert_allclose(curve[:, 1], beta.pdf(curve[:, 0]), atol=0.06 * beta.pdf(beta.mean()))
    np.testing.assert_allclose(dots(ax)[0, 0], beta.mean(), atol=4 * beta.std() / np.sqrt(4000))
    fill = ax.collections[0].get_paths()[0].vertices[:, 0]
    # The tail probability of a sample quantile has a standard error of sqrt(0.05 * 0.95 / 4000).
    np.testing.assert_allclose(beta.cdf([fill.min(), fill.max()]), [0.05, 0.95], atol=4 * 0.0035)
    assert ax.get_xlabel() == "feature_prob [spam, free]"


def test_densities_carry_the_names_of_classes_and_columns(ax) -> None:
    pd = pytest.importorskip("pandas")
    X, y = clouds()
    model = GaussianNB(random_state=0).fit(pd.DataFrame(X, columns=["length", "mass"]), np.array(["a", "b"])[y])
    plots.posterior(model, "variance", ax, coords={"feature": "mass"})
    assert ax.get_xlabel() == "variance [mass]"
    assert [text.split(":")[0] for text in legend(ax)] == ["a", "b"]


def test_levels_of_a_categorical_column_are_named(ax) -> None:
    model = CategoricalNB(random_state=0).fit([["red", "s"], ["blue", "m"], ["red", "m"]], [0, 1, 1])
    plots.posterior(model, "feature_prob_0", ax, coords={"class": 1, "category": ["red", "blue"]})
    assert ax.get_xlabel() == "feature_prob of 0 [1]"
    assert [text.split(":")[0] for text in legend(ax)] == ["red", "blue"]


def test_a_covariance_shows_each_entry_once(ax) -> None:
    X, y = clouds()
    plots.posterior(GaussianDiscriminantAnalysis(random_state=0).fit(X, y), "covariance", ax)
    assert [text.split(":")[0] for text in legend(ax)] == ["0, 0", "0, 1", "1, 1"]


def test_class_probabilities_have_a_posterior_of_their_own(ax) -> None:
    model, _ = fitted_words()
    plots.posterior(model, "class_prob", ax)
    sd = stats.beta(31, 31).std()
    np.testing.assert_allclose(dots(ax)[:, 0], 0.5, atol=4 * sd / np.sqrt(4000))


def test_a_flat_prior_density_stays_flat_to_its_ends(ax) -> None:
    model = BernoulliNB(random_state=0).fit([[1], [0], [1], [1]], [0, 0, 1, 1])
    plots.prior_posterior(model, "feature_prob", ax, coords={"class": 0}, n_draws=20000)
    prior = next(line.get_xydata() for line in ax.get_lines() if line.get_color() == "0.35" and len(line.get_xdata()))
    # About 16000 p draws tell the density at a small p: 5 per cent at 0.02, and the ends are not special.
    inside = (prior[:, 0] > 0.02) & (prior[:, 0] < 0.98)
    assert prior[0, 0] < 0.01
    np.testing.assert_allclose(prior[inside, 1], 1.0, atol=0.2)
    assert legend(ax)[-1] == "prior"


@pytest.mark.slow
def test_a_prior_density_is_that_of_its_program_where_parameters_are_conjugate_given_hyperparameters(ax) -> None:
    X, y, _ = words()
    model = MultinomialNB(alpha=dist.LogNormal(0.0, 1.0), inference="importance", random_state=0).fit(X, y)
    plots.prior_posterior(model, "feature_prob", ax, coords={"feature": 0, "class": "ham"})
    prior = next(line.get_xydata() for line in ax.get_lines() if line.get_color() == "0.35" and len(line.get_xdata()))
    # theta_0 | alpha ~ Beta(alpha, 3 alpha): averaged over quantiles of alpha.
    alpha = np.exp(stats.norm.ppf((np.arange(2000) + 0.5) / 2000))[:, None]
    inside = (prior[:, 0] > 0.05) & (prior[:, 0] < 0.6)
    expected = stats.beta.pdf(prior[inside, 0], alpha, 3 * alpha).mean(axis=0)
    np.testing.assert_allclose(prior[inside, 1], expected, rtol=0.2)
    other = Figure().subplots()
    plots.prior_posterior(model, "alpha", other)
    drawn = model._fit_value.features.draws.sites["alpha"]
    np.testing.assert_allclose(dots(other)[0, 0], drawn.mean())


@pytest.mark.parametrize(
    ("var_name", "coords", "message"),
    [
        ("theta", None, r"var_name='theta'.*\['class_prob', 'feature_prob'\]"),
        ("feature_prob", {"word": 1}, r"coords names 'word'.*\['class', 'feature'\]"),
        ("feature_prob", {"feature": "free"}, r"coords\['feature'\] names 'free'; there are 0, 1, 2, 3"),
        ("feature_prob", {"class": []}, r"coords\['class'\] is empty"),
    ],
)
def test_numbers_that_are_not_there_are_named(ax, var_name, coords, message) -> None:
    model, _ = fitted_words()
    with pytest.raises(ValueError, match=message):
        plots.posterior(model, var_name, ax, coords=coords)


def test_too_many_numbers_ask_for_a_choice(ax) -> None:
    model = MultinomialNB().fit(np.ones((2, 7)), [0, 1])
    with pytest.raises(ValueError, match=r"14 numbers here.*choose some with coords"):
        plots.posterior(model, "feature_prob", ax)


def test_what_has_no_posterior_has_no_picture_of_it(ax) -> None:
    model, _ = fitted_words(inference="mle")
    with pytest.raises(bayesgen.UndefinedNumberError, match="no posterior"):
        plots.posterior(model, "feature_prob", ax)
    known, _ = fitted_words(class_prior=[0.5, 0.5])
    with pytest.raises(ValueError, match="known here, not learned"):
        plots.posterior(known, "class_prob", ax)
    improper, _ = fitted_words(alpha=0.0)
    with pytest.raises(bayesgen.UndefinedNumberError, match="improper"):
        plots.prior_posterior(improper, "feature_prob", ax, coords={"feature": 0})


def test_a_mixed_model_points_to_its_blocks(ax) -> None:
    X, y = clouds()
    mixed = MixedNB(blocks=[("a", GaussianNB(), [0]), ("b", GaussianNB(), [1])]).fit(X, y)
    for draw in (plots.forest, plots.trace, plots.rank):
        with pytest.raises(ValueError, match=r"blocks \['a', 'b'\].*blocks_\[i\]\[1\]"):
            draw(mixed, ax=ax)
    with pytest.raises(ValueError, match=r"blocks_\[i\]\[1\]"):
        plots.posterior(mixed, "mean", ax)
    plots.posterior(mixed.blocks_[1][1], "mean", ax)
    assert ax.get_xlabel() == "mean [0]"


# ------------------------------------------------------------------------------- forest


def forest_rows(ax) -> dict[str, np.ndarray]:
    """By name: lower end, centre, upper end."""
    bars, points = ax.collections
    names = [text.get_text() for text in ax.get_yticklabels()]
    ends = np.array([path.vertices[:, 0] for path in bars.get_paths()])
    centre = points.get_offsets()[:, 0]
    return {n: np.array([a, c, b]) for n, (a, b), c in zip(names, ends, centre, strict=True)}


def test_a_forest_shows_the_most_telling_words_with_the_closed_form_mean(ax) -> None:
    model, names = fitted_words()
    assert plots.forest(model, ax, n_words=2, feature_names=names) is ax
    rows = forest_rows(ax)
    a = model.posterior_.concentration()
    assert "free" in rows
    for name, row in rows.items():
        j = names.index(name)
        total = a.sum(axis=1)
        mean = digamma(a[1, j]) - digamma(total[1]) - digamma(a[0, j]) + digamma(total[0])
        np.testing.assert_allclose(row[1], mean, rtol=1e-10)
        one, two = (stats.beta(a[k, j], total[k] - a[k, j]) for k in (1, 0))
        rng = np.random.default_rng(1)
        draws = np.log(one.rvs(40000, random_state=rng)) - np.log(two.rvs(40000, random_state=rng))
        tails = [(draws < row[0]).mean(), (draws > row[2]).mean()]
        np.testing.assert_allclose(tails, 0.03, atol=4 * np.sqrt(0.03 * 0.97 / 2000))
    assert ax.get_xlabel() == "log odds of spam against ham, for each count"


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "categorical", "shared"])
def test_a_forest_shows_the_weights_of_the_logistic_form(ax, name: str) -> None:
    X, y, _ = words(400)
    X[:, 3] = np.arange(400) % 2
    model = {
        "bernoulli": BernoulliNB(random_state=0, inference="mean"),
        "poisson": PoissonNB(random_state=0, inference="mean"),
        "categorical": CategoricalNB(random_state=0, inference="mean"),
        "shared": GaussianNB(variance="shared", random_state=0, inference="mean"),
    }[name].fit(X.astype(int), y)
    plots.forest(model, ax, n_words=3)
    logistic = model.to_logistic()
    weights = getattr(logistic, "coef_", None)
    weights = logistic[-1].coef_[0] if weights is None else weights[0]
    if name == "shared":
        weights = weights * np.sqrt(model.var_[0])
    labels = [f"column {j}" for j in range(4)]
    if name == "categorical":
        labels = [f"{j} = {v}" for j, known in enumerate(model.categories_) for v in known]
    for label, (low, centre, high) in forest_rows(ax).items():
        at = weights[labels.index(label)]
        assert low < centre < high
        # The mean of a log is not the log of the mean; at hundreds of counts they are close against the interval.
        assert abs(centre - at) < 0.35 * (high - low)


def test_a_forest_against_the_rest_takes_the_geometric_mean(ax) -> None:
    X = np.array([[9.0, 1.0, 3.0], [1.0, 9.0, 3.0], [2.0, 2.0, 9.0]])
    model = MultinomialNB(random_state=0).fit(X, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"label= says which.*\['a', 'b', 'c'\]"):
        plots.forest(model, ax)
    plots.forest(model, ax, label="a")
    e = digamma(model.posterior_.concentration()) - digamma(model.posterior_.concentration().sum(axis=1))[:, None]
    expected = e[0] - 0.5 * (e[1] + e[2])
    shown = forest_rows(ax)
    np.testing.assert_allclose([shown[f"column {j}"][1] for j in range(3)], expected, rtol=1e-12)
    assert ax.get_xlabel().startswith("log odds of a against the rest")


def test_a_forest_of_draws_agrees_with_the_closed_form(ax) -> None:
    X, y, names = words()
    exact, drawn = (MultinomialNB(inference=route, random_state=0).fit(X, y) for route in ("exact", "importance"))
    plots.forest(exact, ax, feature_names=names)
    other = Figure().subplots()
    plots.forest(drawn, other, feature_names=names)
    for name, row in forest_rows(other).items():
        expected = forest_rows(ax)[name]
        # Ends are quantiles of 1000 draws and more: a few per cent of the width.
        np.testing.assert_allclose(row, expected, atol=0.12 * (expected[2] - expected[0]))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"label": "eggs"}, r"label='eggs' is not a class; the classes are \['ham', 'spam'\]"),
        ({"against": "eggs"}, "against='eggs' is not a class"),
        ({"label": "ham", "against": "ham"}, "must be two classes"),
        ({"n_words": 0}, "n_words must be a whole number"),
        ({"prob": 1.0}, "prob must be a number between 0 and 1"),
        ({"feature_names": ["a"]}, "feature_names has 1 names; the model has 4 columns"),
    ],
)
def test_a_forest_names_the_argument_that_is_wrong(ax, keywords, message) -> None:
    model, _ = fitted_words()
    with pytest.raises(ValueError, match=message):
        plots.forest(model, ax, **keywords)


def test_a_quadratic_model_has_no_weights_to_show(ax) -> None:
    X, y = clouds()
    with pytest.raises(ValueError, match="quadratic"):
        plots.forest(GaussianNB().fit(X, y), ax)


# ------------------------------------------------------------------------------- predictive check


def stairs(ax) -> tuple[list, list]:
    """The observed steps and the bands."""
    steps = [p for p in ax.patches if isinstance(p, matplotlib.patches.StepPatch)]
    return [p for p in steps if not p.get_fill()], [p for p in steps if p.get_fill()]


def test_the_check_draws_the_observed_shares_and_a_band_of_replicates(ax) -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 300)
    X = rng.poisson(np.where(y == 0, 2.0, 4.0)[:, None], size=(600, 1)).astype(float)
    model = PoissonNB(random_state=0).fit(X, y)
    assert plots.predictive_check(model, X, y, ax, column=0, prob=0.98) is ax
    observed, bands = stairs(ax)
    for k in (0, 1):
        shares, edges, _ = observed[k].get_data()
        np.testing.assert_allclose(shares, np.histogram(X[y == k], edges)[0] / 300)
        upper, edges, lower = bands[k].get_data()
        expected = stats.poisson.pmf(edges[:-1] + 0.5, X[y == k].mean())
        assert (lower <= expected + 1e-12).all()
        assert (expected <= upper + 0.005).all()
        assert np.mean((lower <= shares) & (shares <= upper)) > 0.85  # the model is right
    assert legend(ax) == ["0", "1", "observed", "replicated, 98 %"]


def test_the_check_finds_counts_that_are_more_spread_than_poisson(ax) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.negative_binomial(1.0, 0.2, size=(400, 1)).astype(float), np.zeros(400, dtype=int)
    plots.predictive_check(PoissonNB(random_state=0).fit(X, y), X, y, ax, statistic="zeros")
    (observed,), (band,) = stairs(ax)
    shares, (upper, _, _) = observed.get_data()[0], band.get_data()
    assert shares[-1] > upper[-1] + 0.05  # many more rows that are all zeros


def test_documents_are_replicated_with_their_lengths(ax) -> None:
    X, y, names = words()
    model = MultinomialNB(random_state=0).fit(X, y)

    def length(x):
        return x.sum(axis=1)

    plots.predictive_check(model, sp.csr_array(X), y, ax, statistic=length, n_replicates=10)
    observed, bands = stairs(ax)
    for one, band in zip(observed, bands, strict=True):
        upper, _, lower = band.get_data()
        np.testing.assert_allclose(upper, lower)
        np.testing.assert_allclose(upper, one.get_data()[0])
    assert ax.get_xlabel() == "length"
    other = Figure().subplots()
    plots.predictive_check(model, X, y, other, column="free", feature_names=names, label="spam", n_replicates=10)
    assert (other.get_xlabel(), legend(other)[0]) == ("free", "spam")


def test_replicated_word_counts_have_the_probabilities_of_their_class() -> None:
    theta = np.array([[0.2, 0.5, 0.3], [0.7, 0.0, 0.3]])
    codes, lengths = np.repeat([0, 1], 500), np.full(1000, 8)
    counts = documents(theta, codes, lengths, np.random.default_rng(0)).toarray()
    np.testing.assert_array_equal(counts.sum(axis=1), 8)
    for k in (0, 1):
        mean = counts[codes == k].mean(axis=0) / 8
        np.testing.assert_allclose(mean, theta[k], atol=4 * 0.5 / np.sqrt(4000))
    assert not counts[codes == 1, 1].any()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"statistic": "total"}, "lengths are given in the multinomial model"),
        ({"statistic": "median"}, "statistic must be one of 'total', 'zeros', 'largest' or a function"),
        ({"statistic": "zeros", "column": 0}, "not both"),
        ({"column": "mass"}, "column='mass' is not a column; there are 0, 1, 2, 3"),
        ({"label": "eggs"}, "label='eggs' is not a class"),
        ({"statistic": lambda x: x}, "one number for each row"),
    ],
)
def test_the_check_names_the_argument_that_is_wrong(ax, keywords, message) -> None:
    X, y, _ = words()
    with pytest.raises(ValueError, match=message):
        plots.predictive_check(MultinomialNB().fit(X, y), X, y, ax, **keywords)


def test_missing_cells_stay_missing_in_replicates(ax) -> None:
    X, y = clouds()
    X[::3, 0] = np.nan
    plots.predictive_check(GaussianNB(random_state=0).fit(X, y), X, y, ax, n_replicates=10)
    observed, _ = stairs(ax)
    np.testing.assert_allclose([one.get_data()[0].sum() for one in observed], 1.0)


# ------------------------------------------------------------------------------- calibration and PIT


def test_the_calibration_curve_is_the_isotonic_regression(ax) -> None:
    p = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    y = np.array([0, 1, 0, 1, 0, 1])
    assert plots.calibration(p, None, y, ax, random_state=0) is ax
    curve = next(line for line in ax.get_lines() if line.get_label().startswith("MCB"))
    np.testing.assert_allclose(curve.get_xdata(), p)
    np.testing.assert_allclose(curve.get_ydata(), [0.0, 0.5, 0.5, 0.5, 0.5, 1.0])
    parts = {name: float(v) for name, v in (line.rsplit(" ", 1) for line in curve.get_label().split("\n"))}
    np.testing.assert_allclose(parts["Brier score"], np.mean((p - y) ** 2), atol=6e-4)
    np.testing.assert_allclose(parts["MCB"] - parts["DSC"] + parts["UNC"], parts["Brier score"], atol=2e-3)
    assert ax.get_xlabel() == "probability of class 1"


def test_calibrated_probabilities_lie_in_the_band_and_sharpened_ones_do_not(ax) -> None:
    rng = np.random.default_rng(4)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)

    def outside(forecast) -> float:
        ax = Figure().subplots()
        plots.calibration(forecast, None, y, ax, random_state=0, n_resamples=200)
        curve = next(line.get_xydata() for line in ax.get_lines() if line.get_label().startswith("MCB"))
        band = ax.collections[0].get_paths()[0]
        inside = band.contains_points(curve, radius=1e-3) | band.contains_points(curve, radius=-1e-3)
        return 1.0 - inside.mean()

    assert outside(p) < 0.35  # pointwise 90 %: neighbours are alike, so the share varies
    assert outside(p**3 / (p**3 + (1 - p) ** 3)) > 0.6


def test_calibration_can_be_left_one_out(ax) -> None:
    X, y = clouds()
    model = GaussianNB(random_state=0).fit(X, y)
    plots.calibration(model, X, y, ax, loo=True, n_resamples=20)
    loo = model.loo(X, y)
    proba = np.where(y == 1, np.exp(loo.conditional), 1.0 - np.exp(loo.conditional))
    curve = next(line for line in ax.get_lines() if line.get_label().startswith("MCB"))
    np.testing.assert_allclose(curve.get_xdata(), np.sort(proba), atol=1e-12)
    assert ax.get_xlabel() == "leave-one-out probability of class 1"


@pytest.mark.parametrize(
    ("source", "keywords", "message"),
    [
        ([0.5, 0.5], {}, r"shape \(2,\) for 3 labels"),
        ([0.5, 2.0, 0.1], {}, "between 0 and 1"),
        ([0.5, 0.2, 0.1], {"loo": True}, "loo=True needs a fitted estimator"),
        (np.full((3, 3), 1 / 3), {}, "3 columns for the 2 classes"),
        (np.full((3, 2), 0.5), {"label": "c"}, "label='c' is not a class"),
    ],
)
def test_calibration_names_the_argument_that_is_wrong(ax, source, keywords, message) -> None:
    with pytest.raises(ValueError, match=message):
        plots.calibration(source, None, ["a", "b", "a"], ax, **keywords)


@pytest.mark.parametrize("name", ["normal", "shared", "full", "poisson", "multinomial", "bernoulli"])
def test_the_pit_is_the_predictive_distribution_function_of_the_model_without_the_row(name: str) -> None:
    X, y, _ = words(20)
    X = (X > 1).astype(float) if name == "bernoulli" else X
    model = {
        "normal": GaussianNB(),
        "shared": GaussianNB(variance="shared"),
        "full": GaussianDiscriminantAnalysis(),
        "poisson": PoissonNB(),
        "multinomial": MultinomialNB(),
        "bernoulli": BernoulliNB(binarize=None),
    }[name].fit(X, y)
    i, j = 3, 1
    codes = (y == "spam").astype(int)
    lower, upper = column_law(model.posterior_, X, codes, j).interval()
    prior = model._fit_value.features.prior
    rest = np.arange(len(y)) != i
    without = prior.condition(prior.stats(X[rest], Labels(codes[rest])))
    if name == "multinomial":  # one word against all others
        alpha, length = without.concentration()[codes[i]], X[i].sum()
        law = stats.betabinom(length, alpha[j], alpha.sum() - alpha[j])
        expected = law.cdf(X[i, j] - 1), law.cdf(X[i, j])
    elif name in ("poisson", "bernoulli"):
        rows = np.full((int(X[i, j]) + 1, X.shape[1]), np.nan)
        rows[:, j] = np.arange(len(rows))
        mass = np.exp(without.log_predictive(rows)[:, codes[i]])
        expected = mass[:-1].sum(), mass.sum()
    else:
        rows = np.full((200001, X.shape[1]), np.nan)
        rows[:, j] = X[i, j] - np.linspace(0.0, 400.0, len(rows)) ** 1.0
        mass = np.exp(without.log_predictive(rows)[:, codes[i]])
        expected = (np.trapezoid(mass[::-1], rows[::-1, j]),) * 2
    np.testing.assert_allclose([lower[i], upper[i]], expected, atol=1e-6)


def test_the_pit_is_uniform_where_the_model_is_right_and_not_where_it_is_too_narrow(ax) -> None:
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], 200)
    right = rng.poisson(3.0 + y)[:, None]
    wide = rng.negative_binomial(1.0, 0.25, size=400)[:, None]

    def outside(X, column) -> int:
        ax = Figure().subplots()
        plots.pit(PoissonNB(random_state=0).fit(X, y), X, y, ax, column=column)
        (band,) = (p for p in ax.patches if isinstance(p, matplotlib.patches.StepPatch))
        upper, _, lower = band.get_data()
        heights = np.array([p.get_height() for p in ax.patches if isinstance(p, matplotlib.patches.Rectangle)])
        np.testing.assert_allclose(heights.sum(), 10.0)
        return int(((heights < lower) | (heights > upper)).sum())

    assert outside(right, 0) <= 2
    assert outside(right, None) <= 2
    assert outside(wide, 0) >= 6


def test_mass_is_spread_over_the_bins_that_an_interval_covers() -> None:
    share = spread_mass(np.array([0.0, 0.5, 0.9]), np.array([1.0, 1.0, 0.9]), 4)
    np.testing.assert_allclose(share, np.array([0.25, 0.25, 0.25 + 0.5, 0.25 + 0.5 + 1.0]) / 3)


def test_a_pit_of_levels_is_refused(ax) -> None:
    model = CategoricalNB().fit([[0], [1], [1]], [0, 1, 1])
    with pytest.raises(ValueError, match="column=None looks at the class label"):
        plots.pit(model, [[0], [1], [1]], [0, 1, 1], ax, column=0)
    with pytest.raises(ValueError, match="n_bins must be"):
        plots.pit(model, [[0], [1], [1]], [0, 1, 1], ax, n_bins=1)


# ------------------------------------------------------------------------------- chains


def fit_by_nuts(n: int) -> GaussianNB:
    X, y = clouds()
    options = NUTSOptions(num_warmup=200, num_samples=n, num_chains=2)
    return GaussianNB(inference=options, random_state=0).fit(X, np.array(["a", "b"])[y])


@pytest.fixture
def chains(monkeypatch):
    """A model whose two chains are made up: one number has not mixed, and one draw diverged."""
    rng = np.random.default_rng(11)
    sites = {"mean": rng.normal(size=(2, 100, 2, 2)), "variance": rng.gamma(5.0, size=(2, 100, 2, 2))}
    sites["variance"][1, :, 1, 0] += 3.0
    sites["chart_mean"] = np.concatenate([sites["mean"][:1], sites["mean"][1:] + 9.0])  # worse, but internal
    diverging = np.zeros((2, 100), dtype=bool)
    diverging[1, 42] = True
    made_up = Draws(sites, {"diverging": diverging, "n_steps": np.ones((2, 100))}, 0.0)
    monkeypatch.setattr("bayesgen.nuts.run", lambda *args: made_up)
    with pytest.warns(bayesgen.SamplingWarning, match="diverged"):
        return fit_by_nuts(100)


def test_a_trace_shows_the_draws_of_each_chain(ax, chains) -> None:
    assert plots.trace(chains, "mean", ax, coords={"class": "b", "feature": 1}) is ax
    draws = chains._fit_value.features.draws.sites["mean"]
    shown = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_array_equal(shown["chain 0"], draws[0, :, 1, 1])
    np.testing.assert_array_equal(shown["chain 1"], draws[1, :, 1, 1])
    assert ax.get_ylabel() == "mean [b, 1]"


def test_a_trace_without_a_choice_shows_the_number_that_mixed_worst(ax, chains) -> None:
    plots.trace(chains, ax=ax)
    sites = chains._fit_value.features.draws.sites
    worst = split_gelman_rubin(sites["variance"][..., 1, 0])
    assert ax.get_legend().get_title().get_text().startswith(f"R-hat {worst:.3f}")
    assert ax.get_ylabel() == "variance [b, 0]"
    (marks,) = (line for line in ax.get_lines() if line.get_label() == "divergent")
    assert marks.get_xdata().tolist() == [42]


def test_ranks_of_each_chain_are_counted(ax, chains) -> None:
    assert plots.rank(chains, "mean", ax, coords={"class": "a", "feature": 0}, n_bins=10) is ax
    draws = chains._fit_value.features.draws.sites["mean"][..., 0, 0]
    ranks = stats.rankdata(draws).reshape(draws.shape)
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(2, 10)
    for chain in (0, 1):
        counts = np.histogram(ranks[chain], np.linspace(0.5, 200.5, 11))[0]
        np.testing.assert_allclose(heights[chain], 0.6 * counts / 10)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["chain 0", "chain 1"]


def test_posterior_pictures_of_a_sampled_route_show_its_draws(ax, chains) -> None:
    plots.posterior(chains, "mean", ax, coords={"class": "b", "feature": 0})
    draws = chains._fit_value.features.draws.sites["mean"][..., 1, 0]
    np.testing.assert_allclose(dots(ax)[0, 0], draws.mean())


def test_chains_are_asked_of_nuts_alone(ax, chains) -> None:
    model, _ = fitted_words()
    with pytest.raises(bayesgen.UndefinedNumberError, match="are for inference='nuts'"):
        plots.trace(model, ax=ax)
    with pytest.raises(ValueError, match="pass var_name too"):
        plots.rank(chains, ax=ax, coords={"class": "a"})
    with pytest.raises(ValueError, match=r"var_name='chart_mean'.*\['mean', 'variance'\]"):
        plots.trace(chains, "chart_mean", ax)


@pytest.mark.slow
def test_chains_that_were_run_can_be_looked_at(ax) -> None:
    model = fit_by_nuts(500)
    plots.rank(model, "mean", ax, coords={"class": "a", "feature": 1})
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(2, 20)
    np.testing.assert_allclose(heights.mean(axis=1), 0.6)
    other = Figure().subplots()
    plots.trace(model, "variance", other)
    assert len(other.get_lines()[0].get_ydata()) == 500
    third = Figure().subplots()
    plots.forest(GaussianNB(variance="shared", inference=model.inference, random_state=0).fit(*clouds()), third)
    assert len(forest_rows(third)) == 2
