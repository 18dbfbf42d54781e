"""Discriminant axes are those of linear discriminant analysis, in units of the route's covariance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

from bayesgen import GaussianDiscriminantAnalysis, GaussianNB, NUTSOptions, UndefinedNumberError

DATA = [load_iris(return_X_y=True), load_wine(return_X_y=True)]


def aligned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The columns of a with the signs of those of b."""
    return a * np.sign((a * b).sum(axis=0))


@pytest.mark.parametrize("Xy", DATA, ids=["iris", "wine"])
@pytest.mark.parametrize("solver", ["svd", "eigen"])
@pytest.mark.parametrize("inference", ["mle", "unbiased"])
def test_axes_are_those_of_lda(Xy, solver, inference) -> None:
    X, y = Xy
    ours = GaussianDiscriminantAnalysis(inference=inference).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    a, b = (m.transform(X) for m in (ours, theirs))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)  # theirs depends on the solver and the release
    assert_allclose(aligned(a, b), b * scale, rtol=1e-6, atol=1e-7)
    assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-6)
    if solver == "svd":
        assert_allclose(scale[0], scale[1], rtol=1e-9)


@pytest.mark.parametrize("inference", ["mle", "unbiased", "map", "mean", "exact"])
def test_the_within_class_covariance_is_the_identity_along_the_axes(inference) -> None:
    X, y = DATA[0]
    X = X * [1.0, 1000.0, 0.01, 1.0] + [1e7, 0.0, 0.0, 0.0]
    model = GaussianDiscriminantAnalysis(inference=inference, class_alpha=2.0).fit(X, y)
    axes = model.scalings_
    assert axes.shape == (4, 2)
    assert_allclose(axes.T @ model.covariance_ @ axes, np.eye(2), rtol=1e-8, atol=1e-8)
    centred = model.means_ - model.priors_ @ model.means_
    between = axes.T @ (centred.T * model.priors_) @ centred @ axes
    assert_allclose(between, np.diag(np.diagonal(between)), atol=1e-6)
    assert_allclose(np.diagonal(between) / between.trace(), model.explained_variance_ratio_, rtol=1e-6)
    z = model.transform(model.means_)
    assert_allclose(model.priors_ @ z, 0.0, atol=1e-7)


def test_log_odds_depend_on_the_axes_alone() -> None:
    X, y = DATA[1]
    model = GaussianDiscriminantAnalysis(inference="mean").fit(X, y)
    z, centres = model.transform(X), model.transform(model.means_)
    score = model.class_log_prior_ - 0.5 * ((z[:, None] - centres) ** 2).sum(axis=2)
    expected = model.predict_log_proba(X)
    assert_allclose(score - score[:, :1], expected - expected[:, :1], rtol=1e-8, atol=1e-8)


def test_fewer_axes_names_and_data_frames() -> None:
    pd = pytest.importorskip("pandas")
    X, y = DATA[0]
    model = GaussianDiscriminantAnalysis(n_components=1).fit(X, y)
    assert model.transform(X).shape == (150, 1)
    assert_allclose(model.transform(X), clone(model).set_params(n_components=None).fit_transform(X, y)[:, :1])
    assert model.get_feature_names_out().tolist() == ["gaussiandiscriminantanalysis0"]
    assert model.explained_variance_ratio_.shape == (1,)
    assert 0.9 < model.explained_variance_ratio_[0] < 1
    frame = model.set_output(transform="pandas").transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["gaussiandiscriminantanalysis0"]
    piped = make_pipeline(GaussianDiscriminantAnalysis(n_components=2), GaussianNB()).fit(X, y)
    assert piped.score(X, y) > 0.95


def test_axes_that_do_not_exist_are_refused_by_name() -> None:
    X, y = DATA[0]
    with pytest.raises(ValueError, match=r"n_components=3 is more than min\(n_classes - 1, n_features\) = 2"):
        GaussianDiscriminantAnalysis(n_components=3).fit(X, y)
    with pytest.raises(ValueError, match="n_components must be a whole number, at least 1; got 0"):
        GaussianDiscriminantAnalysis(n_components=0).fit(X, y)
    quadratic = GaussianDiscriminantAnalysis(covariance="per_class").fit(X, y)
    assert not hasattr(quadratic, "transform")
    assert not hasattr(quadratic, "fit_transform")
    assert not hasattr(quadratic, "scalings_")
    with pytest.raises(AttributeError, match="has no attribute 'transform'") as error:
        quadratic.transform(X)
    assert "use covariance='shared'" in str(error.value.__cause__)
    holed = X.copy()
    holed[1, 2] = np.nan
    model = GaussianDiscriminantAnalysis(missing="marginalize").fit(X, y)
    with pytest.raises(ValueError, match="a row with missing cells has no place on the discriminant axes"):
        model.transform(holed)
    with pytest.raises(UndefinedNumberError, match="one class only"):
        GaussianDiscriminantAnalysis().fit(X, np.zeros(150, dtype=int)).transform(X)


def test_a_class_of_probability_zero_has_no_say() -> None:
    X, y = DATA[0]
    model = GaussianDiscriminantAnalysis(class_prior=[0.5, 0.5, 0.0], inference="mle").fit(X, y)
    assert_allclose(model.explained_variance_ratio_, [1.0, 0.0], atol=1e-12)


def test_classes_with_one_mean_are_not_apart() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    model = GaussianDiscriminantAnalysis().fit(X, [0, 0, 1, 1])
    assert_allclose(model.explained_variance_ratio_, [0.0], atol=1e-12)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.slow
def test_draws_have_the_axes_of_their_mean() -> None:
    X, y = DATA[0]
    options = NUTSOptions(num_warmup=300, num_samples=500, num_chains=2, progress_bar=False)
    nuts = GaussianDiscriminantAnalysis(inference=options, random_state=0).fit(X, y)
    mean = GaussianDiscriminantAnalysis(inference="mean").fit(X, y)
    a, b = nuts.transform(X), mean.transform(X)
    assert_allclose(aligned(a, b)[:, 0], b[:, 0], atol=0.15)
