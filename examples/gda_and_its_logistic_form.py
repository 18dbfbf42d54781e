# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Gaussian discriminant analysis and its logistic form
#
# Two species of penguin, two measurements of the bill. Discriminant analysis says how the measurements come
# about: a species, then a normal draw around that species' mean with a covariance that both share,
#
# $$y \sim \mathrm{Bernoulli}(\phi), \qquad x \mid y{=}k \sim \mathcal N(\mu_k, \Sigma).$$
#
# Logistic regression says only how the species depends on the measurements. This example shows that the first
# contains the second, what each does with few rows, and what is left open when the parameters are not known.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from bayesgen import GaussianDiscriminantAnalysis, plots

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))


def two_species():
    """Two columns and two species, of the penguins or of scikit-learn's iris."""
    try:
        from palmerpenguins import load_penguins
    except ImportError:
        from sklearn.datasets import load_iris

        iris = load_iris(as_frame=True)
        X, y = iris.data.iloc[:, :2], iris.target_names[iris.target]
        pair = ["versicolor", "virginica"]
    else:
        table = load_penguins().dropna(subset=["bill_length_mm", "bill_depth_mm"]).reset_index(drop=True)
        X, y = table[["bill_length_mm", "bill_depth_mm"]], table["species"].to_numpy(dtype=str)
        pair = ["Adelie", "Chinstrap"]
    rows = np.isin(y, pair)
    return X[rows], y[rows]


X, y = two_species()
print(f"{len(y)} rows of {', '.join(X.columns)}")

# %% [markdown]
# ## The lecture's estimates
#
# Maximum likelihood: shares, means, and the covariance of the residuals, divided by the number of rows m.

# %%
gda = GaussianDiscriminantAnalysis(inference="mle").fit(X, y)
residual = X.to_numpy() - gda.means_[(y == gda.classes_[1]).astype(int)]
assert np.allclose(gda.covariance_, residual.T @ residual / len(y), rtol=1e-9)
for name, share, mean in zip(gda.classes_, gda.priors_, gda.means_, strict=True):
    print(f"{name:<10} phi = {share:.3f}   mu = {np.round(mean, 2)}")
print("Sigma =", np.round(gda.covariance_, 3).tolist())

# %% [markdown]
# ## The same model as a logistic regression
#
# Divide the two densities: the squares cancel, since both classes share Σ, and the log odds are linear in x,
# $\theta = \Sigma^{-1}(\mu_1 - \mu_0)$. `to_logistic()` returns exactly this model as scikit-learn's class.

# %%
logistic = gda.to_logistic()
theta = np.linalg.solve(gda.covariance_, gda.means_[1] - gda.means_[0])
assert np.allclose(logistic.coef_[0], theta, rtol=1e-9)
gap = np.abs(logistic.predict_proba(X) - gda.predict_proba(X)).max()
print(f"theta = {np.round(theta, 4)}, intercept {logistic.intercept_[0]:.4f}")
print(f"probabilities differ by {gap:.1e}")

# %% [markdown]
# ## Two ways to estimate one line
#
# Logistic regression chooses θ to fit the labels, and assumes nothing about x. Discriminant analysis derives
# it from how x is distributed; where that is near the truth it needs fewer rows (Efron 1975). And a few rows
# can often be separated by a line without an error: then maximum likelihood makes logistic regression's θ as
# long as it can, and each mistake on other rows is a confident one; it needs a penalty. Discriminant analysis
# does not. Learn from a few rows, judge by the others, many times:

# %%
rng = np.random.default_rng(0)
repeats = 3 if QUICK else 40
learners = {
    "logistic, no penalty": lambda: LogisticRegression(C=np.inf, max_iter=1000),
    "logistic, C = 1": lambda: LogisticRegression(max_iter=1000),
    "GDA, MLE": lambda: GaussianDiscriminantAnalysis(inference="mle"),
    "GDA, exact": lambda: GaussianDiscriminantAnalysis(),
}
sizes = [10, 20, 40, 80]
loss = {name: np.zeros((len(sizes), repeats)) for name in learners}
values = X.to_numpy()
# Hundreds of fits to matrices of two columns: more than one BLAS thread would only stand in the way.
with threadpool_limits(1):
    for s, size in enumerate(sizes):
        for r in range(repeats):
            order = rng.permutation(len(y))
            # Half of the rows of each species: a sample without one of them teaches nothing about it.
            train = np.concatenate([order[y[order] == label][: size // 2] for label in gda.classes_])
            test = np.setdiff1d(order, train)
            for name, make in learners.items():
                p = make().fit(values[train], y[train]).predict_proba(values[test])
                loss[name][s, r] = log_loss(y[test], p, labels=gda.classes_)
print(f"median log loss on the other rows, {repeats} repeats\n{'rows':<22}" + "".join(f"{n:>8}" for n in sizes))
for name, table in loss.items():
    print(f"{name:<22}" + "".join(f"{m:8.3f}" for m in np.median(table, axis=1)))

# %% [markdown]
# ## What stays open
#
# The exact route does not plug in one estimate: it averages the densities over the posterior of φ, μ and Σ,
# which gives Student t densities, and the log odds are no longer linear: `to_logistic()` says so. Near the
# line the average hardly differs, but the interval tells how firm a probability is.

# %%
train = np.concatenate([np.flatnonzero(y == label)[:8] for label in gda.classes_])
few = GaussianDiscriminantAnalysis(random_state=0).fit(X.iloc[train], y[train])
try:
    few.to_logistic()
except ValueError as error:
    print("to_logistic:", error)
middle = X.iloc[[0]].copy()
middle[:] = gda.means_.mean(axis=0)
p, (low, high) = few.predict_proba(middle), few.predict_proba_interval(middle)
print(
    f"16 rows, a bill halfway between the species: p({few.classes_[1]}) = {p[0, 1]:.2f}, "
    f"94 % interval {low[0, 1]:.2f} to {high[0, 1]:.2f}"
)

# %% [markdown]
# Left: all rows, the contours of both densities and the straight line p = 0.5. Right: sixteen rows and the
# exact route.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
plots.decision_boundary(gda, X, y, left)
left.set_title(f"MLE from {len(y)} rows")
plots.decision_boundary(few, X.iloc[train], y[train], right, padding=1.3)
right.set_title("exact, from 16 rows")
right.set(xlim=left.get_xlim(), ylim=left.get_ylim())

# %%
folder = os.environ.get("BAYESGEN_FIGURES")
if folder:
    figure.savefig(Path(folder) / "gda_and_its_logistic_form.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
