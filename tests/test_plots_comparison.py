"""Pictures that compare show the numbers they are about."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    Evidence,
    FeatureRelevance,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MultinomialNB,
    UndefinedNumberError,
    feature_relevance,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

from bayesgen import plots  # noqa: E402

RNG = np.random.default_rng(2)
Y = np.repeat(["auto", "med", "sale"], [14, 10, 12])
RATE = RNG.gamma(0.7, 3.0, (3, 12))
X = RNG.poisson(np.repeat(RATE, [14, 10, 12], axis=0))
TWO = np.where(Y == "med", "med", "other")
GRID = [0.01, 0.1, 1.0, 10.0]


@pytest.fixture
def ax():
    return Figure().subplots()


def texts(ax):
    return [text.get_text().strip() for text in ax.texts]


def key(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def curve(ax, label):
    return next(line for line in ax.get_lines() if line.get_label() == label)


def test_the_smoothing_path_is_the_leave_one_out_and_held_out_loss(ax):
    model = MultinomialNB(inference="mean")
    assert plots.smoothing_path(model, X, Y, ax, alphas=GRID, test=(X[:7], Y[:7])) is ax
    fitted = [MultinomialNB(inference="mean", alpha=a).fit(X, Y) for a in GRID]
    loo = [-m.loo(X, Y).elpd_conditional / len(Y) for m in fitted]
    assert_allclose(curve(ax, "leave-one-out").get_xydata(), np.column_stack([GRID, loo]), rtol=1e-12)
    held = [-np.log(m.predict_proba(X[:7])[:, 0]).mean() for m in fitted]
    assert_allclose(curve(ax, "held-out rows").get_ydata(), held, rtol=1e-9)
    assert sorted(texts(ax)) == ["Jeffreys", "Laplace", "Perks"]
    learned = MultinomialNB(alpha="evidence").fit(X, Y).alpha_
    line = next(line for line in ax.get_lines() if line.get_label().startswith("learned"))
    assert_allclose(line.get_xdata(), learned, rtol=1e-12)
    assert f"learned by evidence: {learned:.3g}" in key(ax)
    assert not hasattr(model, "classes_")


def test_rules_are_marked_where_the_model_has_them(ax):
    plots.smoothing_path(BernoulliNB(), X, Y, ax, alphas=GRID)
    assert sorted(texts(ax)) == ["Jeffreys", "Laplace"]  # 1/V is Jeffreys' 1/2
    other = Figure().subplots()
    plots.smoothing_path(CategoricalNB(), np.minimum(X[:, :2], [1, 4]), Y, other, alphas=[0.6, 2.0])
    assert texts(other) == ["Laplace"]  # Perks differs from column to column, Jeffreys is outside


def test_a_path_reaches_as_far_as_the_least_of_the_rules(ax):
    wide = sp.csr_array(np.pad(X, ((0, 0), (0, 20000))))
    plots.coefficient_path(MultinomialNB(), wide, Y, ax, features=[0])
    low, high = ax.get_xlim()
    assert low < 1 / 20012
    assert_allclose(high, 1000.0)


def test_a_learned_value_outside_is_noted_at_the_edge(ax):
    with pytest.warns(UserWarning, match="infinity"):
        plots.smoothing_path(MultinomialNB(), np.full((6, 3), 4), [0, 0, 0, 1, 1, 1], ax, alphas=GRID)
    assert "learned by evidence: inf" in key(ax)
    assert curve(ax, "learned by evidence: inf").get_xdata() == [10.0]


@pytest.mark.parametrize("alphas", [[], [0.0, 1.0], [1.0, 0.5], [1.0, 1.0]])
def test_alphas_are_positive_and_increasing(ax, alphas):
    with pytest.raises(ValueError, match="positive and increasing"):
        plots.smoothing_path(MultinomialNB(), X, Y, ax, alphas=alphas)


def test_models_without_a_concentration_have_no_smoothing_path(ax):
    with pytest.raises(ValueError, match="concentration alpha; GaussianNB has none"):
        plots.smoothing_path(GaussianNB(), X, Y, ax)


def test_coefficients_of_two_classes_are_their_log_ratio(ax):
    names = [f"word{j}" for j in range(12)]
    plots.coefficient_path(MultinomialNB(), X, TWO, ax, alphas=GRID, features=[3, 5], feature_names=names)
    for j in (3, 5):
        theta = [MultinomialNB(inference="mean", alpha=a).fit(X, TWO).feature_log_prob_ for a in GRID]
        assert_allclose(curve(ax, f"word{j}").get_ydata(), [t[1, j] - t[0, j] for t in theta], rtol=1e-9)
    assert ax.get_ylabel() == "weight in the log odds of other against med"


def test_coefficients_of_more_classes_are_of_the_class_a_word_speaks_for(ax):
    plots.coefficient_path(MultinomialNB(), X, Y, ax, alphas=GRID, features=6)
    theta = MultinomialNB(inference="mean", alpha=1.0).fit(X, Y).feature_log_prob_
    centred = theta - theta.mean(axis=0)
    shown = [label for label in key(ax) if label.startswith("column")]
    assert len(shown) == 6
    assert {label.split("(")[1] for label in shown} == {"auto)", "med)", "sale)"}
    for label in shown:
        j = int(label.split()[1])
        assert label == f"column {j} ({np.unique(Y)[centred[:, j].argmax()]})"
        assert_allclose(curve(ax, label).get_ydata()[2], centred[:, j].max(), rtol=1e-9)


def test_coefficients_of_levels_are_named_by_column_and_level(ax):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"colour": np.array(["red", "blue"])[X[:, 0] % 2], "size": np.minimum(X[:, 1], 2)})
    plots.coefficient_path(CategoricalNB(), frame, TWO, ax, alphas=GRID, features=5)
    assert set(key(ax)) > {"colour=red", "colour=blue", "size=0", "size=2"}
    with pytest.raises(ValueError, match="feature_names has 2 names; there are 5 weights"):
        plots.coefficient_path(CategoricalNB(), frame, TWO, ax, alphas=GRID, feature_names=["a", "b"])


def test_the_evidence_curve_has_its_top_at_the_learned_value_and_its_curvature_there(ax):
    model = MultinomialNB(alpha="evidence").fit(X, Y)
    assert plots.evidence_curve(model, ax) is ax
    found = model.learned_
    line = curve(ax, f"log evidence, top at {model.alpha_:.3g}")
    assert_allclose(line.get_ydata(), found.curve(line.get_xdata()), rtol=1e-12)
    assert_allclose(line.get_ydata().max(), found.log_evidence, rtol=1e-12)
    parabola = curve(ax, "its curvature at the top")
    x = np.log(parabola.get_xdata() / model.alpha_)
    near = np.abs(x) < 0.3 * found.standard_error[0]
    assert_allclose(parabola.get_ydata()[near], line.get_ydata()[near], atol=0.005)  # the third derivative, 0.3**3 / 6
    low, high = model.alpha_ * np.exp(1.959963985 * found.standard_error[0] * np.array([-1, 1]))
    assert f"95 %: {low:.3g} to {high:.3g}" in key(ax)


def test_each_class_has_a_curve_of_its_own(ax):
    model = MultinomialNB(alpha=Evidence(per_class=True)).fit(X, Y)
    plots.evidence_curve(model, ax)
    assert key(ax) == [f"class {c}, top at {a:.3g}" for c, a in zip(model.classes_, model.alpha_, strict=True)]
    for label in key(ax):
        assert_allclose(curve(ax, label).get_ydata().max(), 0.0, atol=1e-9)


def test_an_evidence_that_rises_to_an_end_is_drawn_without_interval(ax):
    with pytest.warns(UserWarning, match="infinity"):
        model = MultinomialNB(alpha="evidence").fit(np.full((6, 3), 4), [0, 0, 0, 1, 1, 1])
    plots.evidence_curve(model, ax)
    assert key(ax) == ["log evidence, top at inf"]
    assert (np.diff(curve(ax, "log evidence, top at inf").get_ydata()) > 0).all()


@pytest.mark.parametrize("kind", ["inside", "end"])
def test_two_hyperparameters_have_contours_about_the_learned_pair(ax, kind):
    noise = np.random.default_rng(4).normal(size=(len(Y), 2)) @ [[1.0, 0.9], [0.0, 0.3]]
    sizes = noise + 3.0 * (Y == "med")[:, None] * [1.0, -1.0]
    if kind == "inside":
        model = GaussianDiscriminantAnalysis(prior="evidence").fit(sizes, Y)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the pooled variance is learned as certain
            model = GaussianNB(prior="evidence", variance="shared").fit(sizes, Y)
    plots.evidence_curve(model, ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == model.learned_.names
    point = next(line for line in ax.get_lines() if line.get_label().startswith("learned"))
    assert_allclose(point.get_xdata(), model.learned_.value[0], rtol=1e-9)
    assert [c for c in ax.collections if hasattr(c, "levels")]
    assert ("95 % by curvature" in key(ax)) == (kind == "inside")


def test_nothing_learned_has_no_evidence_curve(ax):
    with pytest.raises(UndefinedNumberError, match="nothing was learned"):
        plots.evidence_curve(MultinomialNB().fit(X, Y), ax)


def test_the_ranking_is_the_largest_factors_first(ax):
    found = feature_relevance(MultinomialNB(), X, Y)
    assert plots.relevance(found, ax, n=5) is ax
    table = found.to_frame()
    widths = [bar.get_width() for bar in sorted(ax.patches, key=lambda bar: bar.get_y())]
    assert_allclose(widths, table.log_bayes_factor[:5], rtol=1e-12)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [str(name) for name in table.index[:5]]


def test_the_ranking_tells_probable_from_improbable_and_leaves_out_what_is_unknown(ax):
    factor = np.array([3.0, np.nan, -2.0])
    plots.relevance(FeatureRelevance(factor, 1 / (1 + np.exp(-factor)), np.array(["a", "b", "c"])), ax)
    assert key(ax) == ["probably depends on the class", "probably not"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "c"]


def test_the_forest_has_models_in_order_with_their_standard_errors(ax):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {
            "elpd_conditional": [-30.0, np.nan, -20.0, -26.0],
            "elpd_difference": [-10.0, np.nan, 0.0, -6.0],
            "se_difference": [4.0, np.nan, 0.0, 1.5],
        },
        index=["worst", "forest", "best", "middle"],
    )
    assert plots.comparison(table, ax) is ax
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["best\n-20.0", "middle\n-26.0", "worst\n-30.0"]
    points = next(line for line in ax.get_lines() if line.get_marker() == "o")
    assert_allclose(points.get_xdata(), [0.0, -6.0, -10.0])
    thin, thick = ([s[:, 0].tolist() for s in c.get_segments()] for c in ax.collections)
    assert thick == [[0, 0], [-7.5, -4.5], [-14, -6]]
    assert thin == [[0, 0], [-9, -3], [-18, -2]]
    with pytest.raises(ValueError, match="no model of the table"):
        plots.comparison(table.iloc[[1]], ax)


def test_the_table_of_compare_can_be_drawn(ax):
    from bayesgen import compare

    table = compare({"Laplace": MultinomialNB(), "much": MultinomialNB(alpha=50.0)}, X, Y)
    plots.comparison(table, ax)
    assert {tick.get_text().split("\n")[0] for tick in ax.get_yticklabels()} == {"Laplace", "much"}


def test_the_current_axes_are_used_if_none_are_given():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    assert plots.relevance(feature_relevance(MultinomialNB(), X, Y)) is ax
    plt.close(figure)
