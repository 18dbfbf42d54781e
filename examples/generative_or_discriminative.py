# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Generative or discriminative?
#
# Discriminant analysis and logistic regression fit the same straight boundary. One learns how the columns come about
# in each class and turns the arrows round by Bayes' rule; the other learns the boundary alone. Where the columns are
# what the generative model says, its estimate of the boundary is the more efficient one (Efron 1975); where they are
# not, logistic regression does not mind, given rows enough. For naive Bayes the same trade showed as curves that
# cross: generative sooner, discriminative better in the end (Ng and Jordan 2002).
#
# Here are both halves on real data: first that the two families have one form, then what each makes of few and of
# many rows. Where curves do not cross, the table says so.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bayesgen import BernoulliNB, GaussianDiscriminantAnalysis, GaussianNB, MultinomialNB, PoissonNB

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))
digits = load_digits()
counts, labels = digits.data.astype(int), digits.target  # ink in 64 places, 0 to 16
on = (digits.data > 7).astype(float)

# %% [markdown]
# ## One form
#
# If $p(x \mid y)$ is of an exponential family, $h(x)\exp(\theta_y^\top t(x) - A(\theta_y))$ with one $h$ for all
# classes, Bayes' rule cancels $h$, and $p(y \mid x)$ is the softmax of $\theta_y^\top t(x)$ and an intercept:
# logistic regression on $t(x)$. Poisson counts, words, yes and no, and normals with a common variance or covariance
# are all of this kind, with $t(x) = x$. `to_logistic()` gives the logistic regression, and the probabilities are the
# same numbers.

# %%
forms = {
    "Poisson": (PoissonNB(inference="mean"), counts),
    "multinomial": (MultinomialNB(inference="mean"), counts),
    "Bernoulli": (BernoulliNB(inference="mean", binarize=None), on),
    "normal, shared variance": (GaussianNB(variance="shared", inference="mean"), digits.data),
    "normal, shared covariance": (GaussianDiscriminantAnalysis(inference="mean"), digits.data),
}
for name, (model, X) in forms.items():
    logistic = model.fit(X, labels).to_logistic()
    gap = np.abs(logistic.predict_proba(X) - model.predict_proba(X)).max()
    assert gap < 1e-8, (name, gap)
    print(
        f"{name:<26} {type(logistic).__name__}, coefficients {logistic.coef_.shape}: probabilities differ by {gap:.0e}"
    )

# %% [markdown]
# The converse is false: many generative models share one logistic form, and logistic regression asks for none of
# them.
#
# ## Few rows, many rows
#
# Learning curves on four tables. *Generative* is the exact route with its default prior; *logistic* is maximum
# likelihood, the rival of the theory; *penalised* is scikit-learn's default, which has a normal prior on the
# coefficients and is what people use. Columns of the logistic regressions are standardised. Each point is the mean
# over random splits, with at least one row of each class.


# %%
def penguin_sex():
    """Four measurements and the sex, of the penguins; scikit-learn's wine if they are not installed."""
    try:
        from palmerpenguins import load_penguins
    except ImportError:
        return load_wine(return_X_y=True)
    table = load_penguins().dropna()
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    return table[columns].to_numpy(), (table["sex"] == "male").to_numpy().astype(int)


problems = {
    "penguins: sex from 4 measurements": (*penguin_sex(), GaussianDiscriminantAnalysis()),
    "wine: cultivar from 13 measurements": (*load_wine(return_X_y=True), GaussianDiscriminantAnalysis()),
    "cells: malignant from 30 measurements": (*load_breast_cancer(return_X_y=True), GaussianDiscriminantAnalysis()),
    "digits: from 64 pixels on or off": (on, labels, BernoulliNB(binarize=None)),
}
REPEATS, SIZES = (2, 3) if QUICK else (20, 8)
NAMES = ["generative", "logistic", "penalised"]


def split(y, size, rng):
    """Training rows, one of each class and the rest at random, and up to 600 test rows."""
    order = rng.permutation(len(y))
    first = np.unique(y[order], return_index=True)[1]
    others = np.delete(order, first)
    train = np.concatenate([order[first], others[: size - len(first)]])
    return train, others[size - len(first) :][:600]


def scores(X, y, generative, size, rng):
    """Log loss and error rate of each model, on one random split."""
    train, test = split(y, size, rng)
    models = [
        generative,
        make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=300)),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    ]
    out = []
    for model in models:
        p = model.fit(X[train], y[train]).predict_proba(X[test])
        out += [log_loss(y[test], p, labels=np.unique(y)), np.mean(p.argmax(axis=1) != y[test])]
    return out


curves = {}
with threadpool_limits(1), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # separable classes: the maximum of the likelihood is at infinity
    for title, (X, y, generative) in problems.items():
        rng, n_classes = np.random.default_rng(0), len(np.unique(y))
        sizes = np.unique(np.geomspace(max(8, 2 * n_classes), 0.7 * len(y), SIZES).astype(int))
        found = [[scores(X, y, generative, size, rng) for _ in range(REPEATS)] for size in sizes]
        columns = pd.MultiIndex.from_product([NAMES, ["log loss", "error"]])
        curves[title] = pd.DataFrame(np.mean(found, axis=1), index=pd.Index(sizes, name="rows"), columns=columns)
        print(title, "\n", curves[title].round(3), "\n")

# %% [markdown]
# ## Where the curves cross
#
# The numbers of rows at which the rival is better.


# %%
def better_at(curve, rival, score):
    """The sizes at which the rival is better than the generative model, as ranges."""
    better = np.concatenate([[False], curve[rival, score] < curve["generative", score], [False]])
    starts, stops = (np.flatnonzero(np.diff(better.astype(int)) == step) for step in (1, -1))
    runs = [(curve.index[a], curve.index[b - 1]) for a, b in zip(starts, stops, strict=True)]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs) or "nowhere"


for title, curve in curves.items():
    print(f"{title}, {curve.index[0]} to {curve.index[-1]} rows")
    for rival in NAMES[1:]:
        print(
            f"    {rival} is better in log loss: {better_at(curve, rival, 'log loss')}; "
            f"in error: {better_at(curve, rival, 'error')}"
        )

# %% [markdown]
# Only one of the four tables is the textbook's. Measurements of penguins are near normal within a sex, and four
# columns need few rows: GDA is far ahead of maximum likelihood at once, and nobody is ahead by much in the end.
#
# The wines cross *the other way*. With 13 columns and a dozen rows the covariance is mostly prior, and a boundary
# learned alone is better; from fifty rows on the covariance is known, and GDA is the best of the three. The
# measurements of cells are skewed and nearly copies of each other: the penalised boundary is better from the first
# row to the last, so there is no crossing, while maximum likelihood falls apart in log loss (the classes can be
# separated). Pixels that repeat each other make naive Bayes too sure: in log loss the penalised regression is better
# throughout; in error it is the slogan's picture, but for the smallest samples.
#
# So "generative sooner, discriminative later" holds if the density fits and its parameters are few for the rows. It
# is no law.

# %%
figure, axes = plt.subplots(2, len(curves), figsize=(15, 6.5), sharex="col", layout="constrained")
for column, (title, curve) in zip(axes.T, curves.items(), strict=True):
    for ax, score in zip(column, ("log loss", "error"), strict=True):
        for name, style in zip(NAMES, ("o-", "s--", "^:"), strict=True):
            ax.plot(curve.index, curve[name, score], style, label=name, markersize=4)
        ax.set(xscale="log", yscale="log")
        ax.grid(alpha=0.3)
    column[0].set_title(title, fontsize=10)
    column[1].set_xlabel("training rows")
axes[0, 0].set_ylabel("log loss (nats)")
axes[1, 0].set_ylabel("error rate")
axes[0, 0].legend(frameon=False)

# %% [markdown]
# ## What the generative side can still do
#
# The default prior is weak: 30 columns and 8 rows leave the covariance to it. A prior that learns its strength from
# the evidence shrinks the covariance as far as the data ask, and the likelihood power takes back what repeated pixels
# add.

# %%
X, y = load_wine(return_X_y=True)
few = [split(y, 40, np.random.default_rng(seed)) for seed in range(2 if QUICK else 10)]
repaired = {
    "GDA": (X, y, GaussianDiscriminantAnalysis(), few),
    "GDA, prior by evidence": (X, y, GaussianDiscriminantAnalysis(prior="evidence"), few),
}
many = [split(labels, 700, np.random.default_rng(seed)) for seed in range(2 if QUICK else 5)]
repaired |= {
    "Bernoulli": (on, labels, BernoulliNB(binarize=None), many),
    "Bernoulli, power by leave-one-out": (on, labels, BernoulliNB(binarize=None, likelihood_power="loo"), many),
}
for name, (rows, classes, model, splits) in repaired.items():
    losses = [
        log_loss(classes[test], model.fit(rows[train], classes[train]).predict_proba(rows[test]))
        for train, test in splits
    ]
    print(f"{name:<34} {len(splits[0][0]):>4} rows: log loss {np.mean(losses):.3f}")

# %% [markdown]
# References: Efron 1975, *The efficiency of logistic regression compared to normal discriminant analysis*; Ng and
# Jordan 2002, *On discriminative vs. generative classifiers*; Murphy 2012, section 8.6.

# %%
folder = os.environ.get("BAYESGEN_FIGURES")
if folder:
    figure.savefig(Path(folder) / "generative_or_discriminative.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
