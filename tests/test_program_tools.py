"""NumPyro's own tools on the program of every estimator."""

import jax
import numpy as np
import numpyro
import pytest
from numpyro.infer import Predictive

from bayesgen import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminantAnalysis,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
)

ROWS = np.array([[0, 1, 2], [1, 1, 0], [2, 0, 1], [0, 0, 3], [1, 3, 1], [2, 1, 0]], dtype=float)
LABELS = np.array(["a", "a", "a", "b", "b", "b"])
SITES = [
    (BernoulliNB(), {"feature_prob": (2, 3), "x": (4, 3)}),
    (MultinomialNB(), {"feature_prob": (2, 3), "x": (4, 3)}),
    (CategoricalNB(), {"feature_prob_0": (2, 3), "feature_prob_1": (2, 4), "feature_prob_2": (2, 4), "x": (4, 3)}),
    (PoissonNB(), {"rate": (2, 3), "x": (4, 3)}),
    (GaussianNB(), {"mean": (2, 3), "variance": (2, 3), "x": (4, 3)}),
    (GaussianNB(variance="shared"), {"mean": (2, 3), "variance": (3,), "x": (4, 3)}),
    (GaussianDiscriminantAnalysis(), {"mean": (2, 3), "covariance": (3, 3), "x": (4, 3)}),
    (GaussianDiscriminantAnalysis(covariance="per_class"), {"mean": (2, 3), "covariance": (2, 3, 3), "x": (4, 3)}),
    (
        MixedNB(blocks=[("words", MultinomialNB(), [0, 1]), ("size", GaussianNB(), [2])]),
        {
            "words.feature_prob": (2, 2),
            "words.x": (4, 2),
            "size.mean": (2, 1),
            "size.variance": (2, 1),
            "size.x": (4, 1),
        },
    ),
]
NAMES = [f"{type(m).__name__}{i}" for i, (m, _) in enumerate(SITES)]


QUICK = ("MultinomialNB", "GaussianDiscriminantAnalysis6")  # drawing compiles every distribution: seconds each


@pytest.mark.parametrize(
    ("model", "sites"),
    [
        pytest.param(*case, id=name, marks=() if name.startswith(QUICK) else pytest.mark.slow)
        for case, name in zip(SITES, NAMES, strict=True)
    ],
)
def test_prior_and_rows_are_drawn_together(model, sites):
    draws = Predictive(model.fit(ROWS, LABELS).model, num_samples=3)(jax.random.key(0), n_rows=4)
    assert {name: value.shape for name, value in draws.items()} == {
        name: (3, *shape) for name, shape in ({"class_prob": (2,), "y": (4,)} | sites).items()
    }
    assert set(np.unique(draws["y"])) <= {0, 1}


@pytest.mark.parametrize(("model", "sites"), SITES, ids=NAMES)
def test_the_program_can_be_drawn_as_a_graph(model, sites):
    pytest.importorskip("graphviz")
    graph = numpyro.render_model(model.fit(ROWS, LABELS).model, model_args=(ROWS, LABELS))
    for name in (*sites, "class_prob", "y"):
        assert name in graph.source


def test_parameters_from_elsewhere_give_rows_of_their_classes():
    model = GaussianNB().fit(ROWS, LABELS)
    given = {
        "class_prob": np.array([[0.0, 1.0]]),
        "mean": np.full((1, 2, 3), [[0.0], [50.0]]),
        "variance": np.ones((1, 2, 3)),
    }
    draws = Predictive(model.model, posterior_samples=given)(jax.random.key(1), n_rows=20)
    assert (draws["y"] == 1).all()
    assert (np.abs(draws["x"] - 50.0) < 8.0).all()
