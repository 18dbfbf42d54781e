"""Small tables, tables of models, and what a refusal is, for the tests of odd inputs."""

import pickle
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

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


def mentions(*patterns):
    """A pattern for messages that contain all of these, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{pattern}))" for pattern in patterns)


@contextmanager
def refused(model, *patterns, error=ValueError):
    """An error whose message mentions all of these, and a model that is afterwards what it was before."""
    before = pickle.dumps(model)
    with pytest.raises(error, match=mentions(*patterns)):
        yield
    assert pickle.dumps(model) == before, "a call that failed has changed the model"


def close(actual, desired, rtol=1e-10):
    assert_allclose(actual, desired, rtol=rtol, atol=1e-12)


ROWS = np.array([[1, 0], [0, 2], [3, 1], [0, 1], [1, 1], [2, 0]], dtype=float)
LABELS = np.array([0, 1, 0, 1, 1, 0])
FRAME = pd.DataFrame(ROWS, columns=["height", "weight"])

GAUSSIAN = {
    "Gaussian": GaussianNB,
    "Gaussian, shared variance": lambda **k: GaussianNB(variance="shared", **k),
    "shared discriminant": GaussianDiscriminantAnalysis,
    "per-class discriminant": lambda **k: GaussianDiscriminantAnalysis(covariance="per_class", **k),
}
NUMERIC = {
    **GAUSSIAN,
    "Bernoulli": BernoulliNB,
    "multinomial": MultinomialNB,
    "Poisson": PoissonNB,
    "general": lambda **k: GenerativeClassifier(family="gaussian", **k),
}
TABLES = {"categorical": CategoricalNB, "mixed": MixedNB}


def models(table):
    return pytest.mark.parametrize("make", table.values(), ids=table.keys())


def cases(name, table):
    return pytest.mark.parametrize(name, table.values(), ids=table.keys())


def with_cell(value, row=0, column=0):
    """The rows as floats, one of them with another value."""
    out = ROWS.copy()
    out[row, column] = value
    return out
