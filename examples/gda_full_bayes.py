# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Discriminant analysis, with nothing plugged in
#
# Gaussian discriminant analysis says: a class, then a point from that class's normal distribution. This example
# starts from what the covariance of a normal distribution looks like, and ends with what a few rows leave open:
# a band of decision boundaries instead of one. On the way it puts a prior on what one can picture, standard
# deviations and a correlation, for which there is no closed form.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figures.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
from scipy import stats
from sklearn.metrics import log_loss

from bayesgen import (
    GaussianDiscriminantAnalysis,
    HierarchicalCovariancePrior,
    LKJPrior,
    NUTSOptions,
)

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))
FOLDER = os.environ.get("BAYESGEN_FIGURES")

# %% [markdown]
# ## From one dimension to many
#
# In one dimension a point is unlikely when it is many standard deviations away from the mean, and the density
# falls with the square of that number. In more dimensions the number is a length measured by the covariance, and
# the width in front becomes a volume:
#
# $$\frac1{\sqrt{2\pi}\,\sigma}\exp\Big(-\tfrac12\Big(\frac{x-\mu}\sigma\Big)^2\Big)
# \quad\longrightarrow\quad
# \frac1{(2\pi)^{d/2}\,|\Sigma|^{1/2}}\exp\Big(-\tfrac12(x-\mu)^\top\Sigma^{-1}(x-\mu)\Big).$$


# %%
def normal_density(x, mean, cov):
    """The formula on the right, at points (..., d)."""
    away = x - mean
    squared = np.einsum("...i,ij,...j->...", away, np.linalg.inv(cov), away)
    return np.exp(-0.5 * squared) / np.sqrt(np.linalg.det(2 * np.pi * np.asarray(cov)))


line = np.linspace(-3, 3, 7)[:, None]
assert np.allclose(normal_density(line, 0.5, [[4.0]]), stats.norm(0.5, 2.0).pdf(line[:, 0]))

axis = np.linspace(-4, 4, 161)
plane = np.stack(np.meshgrid(axis, axis), axis=-1)
covariances = {
    "Σ = I": np.eye(2),
    "Σ = 0.6 I": 0.6 * np.eye(2),
    "Σ = 2 I": 2.0 * np.eye(2),
    "correlation 0.5": np.array([[1.0, 0.5], [0.5, 1.0]]),
    "correlation 0.8": np.array([[1.0, 0.8], [0.8, 1.0]]),
}
print(f"{'':<18}{'height':>8}{'area of 90 %':>14}{'axes of the ellipse':>22}")
for name, cov in covariances.items():
    # The smallest region that holds 90 %: squared length below the 0.9 quantile of a chi-square with 2 degrees.
    reach = stats.chi2(2).ppf(0.9)
    axes = np.sqrt(reach * np.linalg.eigvalsh(cov))
    print(f"{name:<18}{normal_density(np.zeros(2), 0, cov):8.3f}{np.pi * axes.prod():14.2f}{axes.round(2)!s:>22}")

# %% [markdown]
# A multiple of the identity keeps the circles and trades height for width. A correlation keeps the standard
# deviations of both columns, and puts the points near a line: less area, a higher peak.

# %%
pictures = plt.figure(figsize=(14, 6), layout="constrained")
top = max(normal_density(np.zeros(2), 0, cov) for cov in covariances.values())
for number, (name, cov) in enumerate(covariances.items()):
    density = normal_density(plane, 0, cov)
    surface = pictures.add_subplot(2, 5, 1 + number, projection="3d")
    surface.plot_surface(*plane.transpose(2, 0, 1), density, cmap="viridis", vmin=0, vmax=top, linewidth=0, rcount=60)
    surface.set(zlim=(0, top), xticks=[-2, 0, 2], yticks=[-2, 0, 2], zticks=[0, 0.1, 0.2], title=name)
    contour = pictures.add_subplot(2, 5, 6 + number)
    contour.contourf(axis, axis, density, levels=np.linspace(0, top, 13), cmap="viridis")
    levels = density.max() * (1 - np.array([0.99, 0.9, 0.5]))  # the density on the edge of these shares
    contour.contour(axis, axis, density, levels=levels, colors="white", linewidths=1)
    contour.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$" if number == 0 else None)
pictures.suptitle("Bivariate normal densities; white lines enclose 50, 90 and 99 %")
if FOLDER:
    pictures.savefig(Path(FOLDER) / "gda_full_bayes_densities.png", dpi=110)


# %% [markdown]
# ## A few penguins
#
# Two species, two measurements of the bill. Ten birds of each to learn from.


# %%
def measurements():
    """Four columns and three species, of the penguins or of scikit-learn's iris; two columns and a pair to show."""
    try:
        from palmerpenguins import load_penguins
    except ImportError:
        from sklearn.datasets import load_iris

        iris = load_iris(as_frame=True)
        return iris.data, iris.target_names[iris.target], list(iris.data.columns[:2]), ["versicolor", "virginica"]
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    table = load_penguins().dropna(subset=columns).reset_index(drop=True)
    return table[columns], table["species"].to_numpy(dtype=str), columns[:2], ["Adelie", "Chinstrap"]


def few_of_each(y, size, rng):
    """Positions of `size` rows of every class."""
    return np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in np.unique(y)])


table, species, shown, pair = measurements()
rng = np.random.default_rng(3)
X, y = table.loc[np.isin(species, pair), shown], species[np.isin(species, pair)]
train = few_of_each(y, 10, rng)
few, few_y = X.iloc[train], y[train]
print(few.assign(species=few_y).groupby("species").agg(["mean", "std"]).round(2).to_string())

# %% [markdown]
# ## A prior one can picture
#
# The conjugate prior of a covariance, the inverse-Wishart, has one number for how sure it is of everything: sure
# of the variances means sure of the correlations. `LKJPrior` says the two apart. Here: standard deviations of a
# few millimetres, correlations spread broadly with 0 the most likely, means anywhere a bill could be.

# %%
prior = LKJPrior(concentration=2.0, scale=dist.HalfNormal(5.0), mean=dist.Normal(30.0, 20.0))
sampler = NUTSOptions(num_warmup=300 if QUICK else 1000, num_samples=500 if QUICK else 1000, num_chains=4)
nuts = GaussianDiscriminantAnalysis(prior=prior, inference=sampler, random_state=0).fit(few, few_y)
print(nuts.diagnostics_)

# %% [markdown]
# No divergences, an R-hat of 1, a large effective sample size: the chains agree with each other. That is what to
# look at first; the library warns when it is otherwise, and names the number that is worst.
#
# There is a second way that needs no chain. Draw from the conjugate posterior, which is easy, and weight each
# draw by the ratio of the two priors (the likelihood is the same, so it cancels). Whether a few draws carry all
# the weight is what k-hat says: below 0.7 the result can be trusted, above it the library falls back to NUTS.

# %%
weighted = GaussianDiscriminantAnalysis(prior=prior, inference="importance", random_state=0).fit(few, few_y)
print(f"k-hat {weighted.importance_khat_:.2f}, worth {weighted.importance_ess_:.0f} independent draws")
for name, model in (("NUTS", nuts), ("importance", weighted)):
    variance = np.diag(model.covariance_)
    print(
        f"{name:<11} standard deviations {np.sqrt(variance).round(2)}, "
        f"correlation {model.covariance_[0, 1] / np.sqrt(variance.prod()):.3f} (of the posterior mean of Σ)"
    )
gap = np.abs(nuts.predict_proba(X) - weighted.predict_proba(X)).max()
print(f"largest difference of a predicted probability: {gap:.3f}")

# %% [markdown]
# ## The band of boundaries
#
# If Σ, the means and the shares φ were known, the log odds would be linear,
#
# $$\theta=\Sigma^{-1}(\mu_1-\mu_0),\qquad
# \theta_0=\ln\frac{\phi_1}{\phi_0}-\tfrac12\,\theta^\top(\mu_1+\mu_0),$$
#
# and the boundary a line. Every draw of the posterior is one set of parameters: one line.

# %%
posterior = nuts.to_arviz()["posterior"]
mean = posterior["mean"].values.reshape(-1, 2, 2)
cov = posterior["covariance"].values.reshape(-1, 2, 2)
phi = posterior["class_prob"].values.reshape(-1, 2)
theta = np.linalg.solve(cov, (mean[:, 1] - mean[:, 0])[..., None])[..., 0]
theta_0 = np.log(phi[:, 1] / phi[:, 0]) - 0.5 * (theta * mean.sum(axis=1)).sum(axis=1)
for name, values in (("slope in the first column", theta[:, 0]), ("slope in the second", theta[:, 1])):
    low, middle, high = np.quantile(values, [0.03, 0.5, 0.97])
    print(f"{name:<26} median {middle:6.2f}, 94 % interval {low:6.2f} to {high:6.2f}")

# %% [markdown]
# Below, left: thirty of these lines, and in grey where the boundary lies with 94 % probability. Where points are,
# the lines agree; away from them they fan out. Right: what was learned of the correlation, which the prior left
# open.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained", width_ratios=(1.4, 1))
low, high = X.min().to_numpy() - 2, X.max().to_numpy() + 2
horizontal = np.linspace(low[0], high[0], 200)
vertical = np.linspace(low[1], high[1], 200)
# Solved for the first column, which tells the species apart, so that no line is too steep.
boundary = -(theta_0[:, None] + theta[:, 1:] * vertical) / theta[:, :1]
left.fill_betweenx(vertical, *np.quantile(boundary, [0.03, 0.97], axis=0), color="0.85", label="94 % of the boundaries")
for number, line in enumerate(boundary[:: len(boundary) // 30][:30]):
    left.plot(
        line, vertical, color="black", alpha=0.25, linewidth=0.7, label="posterior draws" if number == 0 else None
    )
others = np.setdiff1d(np.arange(len(y)), train)
points = np.stack(np.meshgrid(horizontal, vertical), axis=-1).reshape(-1, 2)
p = nuts.predict_proba(type(X)(points, columns=X.columns))[:, 1].reshape(200, 200)
left.contour(horizontal, vertical, p, [0.5], colors="black", linewidths=2)
left.plot([], [], color="black", linewidth=2, label="p = 0.5, all averaged")
for k, label in enumerate(nuts.classes_):
    mine = X.iloc[others][y[others] == label]
    left.scatter(*mine.to_numpy().T, s=9, color=f"C{k}", alpha=0.3, linewidths=0)
    mine = few[few_y == label]
    left.scatter(*mine.to_numpy().T, s=36, color=f"C{k}", edgecolors="black", linewidths=0.6, label=label)
left.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=shown[0], ylabel=shown[1])
left.set_title(f"Learned from {len(few)} birds (large points)")
left.legend(frameon=False, fontsize=9, loc="lower right")

correlation = cov[:, 0, 1] / np.sqrt(cov[:, 0, 0] * cov[:, 1, 1])
r = np.linspace(-1, 1, 400)
# In two dimensions LKJ(eta) is a Beta(eta, eta) on (r + 1) / 2.
right.plot(r, 0.5 * stats.beta(2.0, 2.0).pdf((r + 1) / 2), color="0.4", label="prior, LKJ(2)")
right.hist(correlation, bins=40, density=True, color="C2", alpha=0.5, label="posterior")
right.axvline(
    np.mean([np.corrcoef(X[y == k].T)[0, 1] for k in pair]), color="black", linestyle=":", label="in all birds"
)
right.set(xlim=(-1, 1), xlabel="correlation within a species", ylabel="density")
right.set_title("The correlation, learned")
right.legend(frameon=False)

# %% [markdown]
# ## Between one covariance and many
#
# Do the species share a covariance (linear discriminant analysis), or has each its own (quadratic)? With few rows
# the first is stable and perhaps wrong, the second right and perhaps wild. A hierarchical prior does not choose:
# each class has a covariance that is drawn around a common one, and how closely is learned,
#
# $$\Sigma_k\sim\mathrm{IW}(d+1+\tau,\ \tau\Sigma_0).$$
#
# τ counts rows: a class with as many rows as τ goes half of the way from the common covariance to its own. Now
# with all four columns and three species.

# %%
sizes = (8,) if QUICK else (6, 12, 25)
repeats = 1 if QUICK else 4
hierarchical = NUTSOptions(num_warmup=1000, num_samples=1500, num_chains=4)
models = {
    "shared (LDA)": GaussianDiscriminantAnalysis(),
    "per class (QDA)": GaussianDiscriminantAnalysis(covariance="per_class"),
    "hierarchical": GaussianDiscriminantAnalysis(
        covariance="per_class", prior=HierarchicalCovariancePrior(), inference=hierarchical, random_state=0
    ),
}
print(f"{'rows of each class':<20}" + "".join(f"{name:>17}" for name in models) + f"{'strength (rows)':>18}")
for size in sizes:
    found = {name: [] for name in models}
    strengths = []
    for repeat in range(repeats):
        train = few_of_each(species, size, np.random.default_rng(repeat))
        test = np.setdiff1d(np.arange(len(species)), train)
        for name, model in models.items():
            p = model.fit(table.iloc[train], species[train]).predict_proba(table.iloc[test])
            found[name].append(log_loss(species[test], p))
        strengths.append(float(np.median(models["hierarchical"].to_arviz()["posterior"]["strength"])))
    losses = "".join(f"{np.mean(values):17.4f}" for values in found.values())
    print(f"{size:<20}{losses}{np.median(strengths):18.1f}")

# %% [markdown]
# The numbers are log losses on all other rows, averaged over the repetitions; less is better. With few rows of
# penguins, whose species do not differ much in shape, one covariance for all is hard to beat. The hierarchical
# model was not told so: it learned its strength from the rows, and takes a place between the two.

# %%
if FOLDER:
    figure.savefig(Path(FOLDER) / "gda_full_bayes.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
