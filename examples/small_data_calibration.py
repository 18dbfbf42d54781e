# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A handful of rows, and honest probabilities
#
# A classifier that has seen five rows of each class can still be right most of the time. What it cannot be is
# sure. Yet plug-in probabilities are: they take one estimate of the parameters for the truth. This example
# measures what that costs, on real data, and what integrating the parameters out gives back; and where it does
# not help.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import load_digits, load_iris, load_wine
from threadpoolctl import threadpool_limits

from bayesgen import (
    GaussianDiscriminantAnalysis,
    GaussianNB,
    LKJPrior,
    NUTSOptions,
    UndefinedNumberError,
    ZeroProbabilityWarning,
)

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))


def data_sets():
    """Rows and labels by name; penguins only with the package `palmerpenguins`."""
    found = {name: load(return_X_y=True) for name, load in (("iris", load_iris), ("wine", load_wine))}
    try:
        from palmerpenguins import load_penguins
    except ImportError:
        return found | {"digits": load_digits(return_X_y=True)}
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    table = load_penguins().dropna(subset=columns)
    penguins = table[columns].to_numpy(dtype=float), table["species"].to_numpy(dtype=str)
    return {"penguins": penguins, **found, "digits": load_digits(return_X_y=True)}


DATA = data_sets()
for name, (X, y) in DATA.items():
    print(f"{name:<10}{X.shape[0]:5} rows, {X.shape[1]:3} columns, {len(np.unique(y)):3} classes")


def split(y, size, seed):
    """Positions of `size` random rows of every class, and of all other rows."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in np.unique(y)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def log_p_true(model, X, y):
    """ln p(true label | x) of each row; 500 nats at most for a label held to be impossible."""
    log_p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.maximum(np.nan_to_num(log_p, nan=-500.0), -500.0)


# %% [markdown]
# ## Why
#
# One column, two classes, four rows of each. The plug-in draws a normal density with the estimated variance, and
# far from the rows one density is a million times the other: certainty. But the variances are known only roughly.
# Averaged over what they could be, the density is Student's t, with tails that fall slowly: far away from
# anything seen, the answer is "I do not know".

# %%
X, y = DATA["iris"]
two = y > 0
train, _ = split(y[two], 4, 1)
x4, y4 = X[two][train][:, [1]], y[two][train]
column = np.linspace(1.0, 5.0, 401)[:, None]
why = {route: GaussianNB(inference=route).fit(x4, y4) for route in ("mle", "mean", "exact")}
for route, model in why.items():
    p = model.predict_proba(column)[:, 1]
    print(f"{route:<6} p(virginica) over this range of sepal widths: {p.min():.3f} to {p.max():.3f}")

# %% [markdown]
# ## How much
#
# Learn from a few rows of each class, predict all others, many times: the median log loss. The first two
# models have an unknown variance or covariance for each class. A dash: in some repetition the estimate does not
# exist (a constant column, a singular covariance).

# %%
routes = ("mle", "map", "mean", "exact")
models = {
    "independent columns": lambda route: GaussianNB(inference=route),
    "full covariances": lambda route: GaussianDiscriminantAnalysis(covariance="per_class", inference=route),
    "shared covariance": lambda route: GaussianDiscriminantAnalysis(inference=route),
}
sizes = (4, 10) if QUICK else (3, 5, 10, 20, 40)
repeats = 2 if QUICK else 12


def median_loss(make, X, y, size):
    """Median over the repeats of the mean log loss, for each route; NaN where a fit does not exist."""
    out = {route: [] for route in routes}
    for seed in range(repeats):
        train, test = split(y, size, seed)
        for route in routes:
            try:
                model = make(route).fit(X[train], y[train])
            except UndefinedNumberError:
                out[route].append(np.nan)
            else:
                out[route].append(-np.mean(log_p_true(model, X[test], y[test])))
    return {route: float(np.median(values)) for route, values in out.items()}


losses = {}
with threadpool_limits(1), warnings.catch_warnings():
    warnings.simplefilter("ignore", ZeroProbabilityWarning)
    for title, make in models.items():
        print(f"\n{title:<22}rows" + "".join(f"{route:>9}" for route in routes) + "   mean / exact")
        for name in ("penguins", "iris", "wine"):
            for size in sizes if name in DATA else ():
                found = losses[title, name, size] = median_loss(make, *DATA[name], size)
                cells = "".join(f"{'-':>9}" if np.isnan(v) else f"{v:9.3f}" for v in found.values())
                print(f"{name:<22}{size:4}{cells}{found['mean'] / found['exact']:15.2f}")

# %% [markdown]
# The last column is how many times larger the loss of the plugged-in posterior mean is: same prior, same
# posterior, the difference is the averaging alone. It is largest where there are few rows for many unknowns, and
# goes to one as the rows come in: the two agree when there is enough to learn from. For a variance or a
# covariance of each class, at the smallest sizes:

# %%
few = [found for (title, _, size), found in losses.items() if size <= 5 and title != "shared covariance"]
ratio = np.array([found["mean"] / found["exact"] for found in few])
print(f"at most 5 rows of each class: mean / exact from {ratio.min():.1f} to {ratio.max():.1f}", end="")
print(f", median {np.median(ratio):.1f}")

# %% [markdown]
# ## Where it does not
#
# *Where little is uncertain.* When classes lie far apart and rows suffice, the plug-in's bold probabilities are
# right, and the caution of a prior with heavy tails costs a little. The lines with a ratio below one:

# %%
for (title, name, size), found in losses.items():
    if found["mean"] < found["exact"]:
        print(f"{title}, {name}, {size} rows: mean {found['mean']:.4f}, exact {found['exact']:.4f}")

# %% [markdown]
# *Where the model is wrong.* Sixty-four pixels of a digit are not independent, and no average over the parameters
# of a model that says so can mend it. The exact route is far better than the plug-in, and still worse than
# answering 1/10 each time. A model with covariances is what helps.

# %%
X, y = DATA["digits"]
size = 10
with threadpool_limits(1), warnings.catch_warnings():
    warnings.simplefilter("ignore", ZeroProbabilityWarning)
    for title, make in models.items():
        found = median_loss(make, X, y, size)
        print(f"digits, {title:<22} mean {found['mean']:7.3f}   exact {found['exact']:6.3f}")
print(f"digits, always 1/10{'':<29}{np.log(10):6.3f}")

# %% [markdown]
# ## The same with a prior of one's own
#
# Nothing of this is about closed forms. With an `LKJPrior`, standard deviations and correlations apart, the
# posterior is draws from NUTS. Take the mean of the draws and plug it in, or average the densities over the draws:
# one posterior, two uses.

# %%
name = "penguins" if "penguins" in DATA else "iris"
X, y = DATA[name]
sampler = NUTSOptions(num_warmup=300 if QUICK else 500, num_samples=500, num_chains=4)
table = {"conjugate, mean plugged in": [], "conjugate, exact": [], "LKJ, mean plugged in": [], "LKJ, averaged": []}
for seed in range(1 if QUICK else 5):
    train, test = split(y, 5, seed)
    lkj = GaussianDiscriminantAnalysis(
        covariance="per_class", prior=LKJPrior(2.0), inference=sampler, random_state=0
    ).fit(X[train], y[train])
    code = np.searchsorted(lkj.classes_, y[test])
    joint = lkj.class_log_prior_ + np.column_stack(
        [
            stats.multivariate_normal(mean, cov).logpdf(X[test])
            for mean, cov in zip(lkj.means_, lkj.covariance_, strict=True)
        ]
    )
    plugged = joint[np.arange(len(code)), code] - np.logaddexp.reduce(joint, axis=1)
    table["LKJ, mean plugged in"].append(-plugged.mean())
    table["LKJ, averaged"].append(-np.mean(log_p_true(lkj, X[test], y[test])))
    for route, row in (("mean", "conjugate, mean plugged in"), ("exact", "conjugate, exact")):
        model = GaussianDiscriminantAnalysis(covariance="per_class", inference=route).fit(X[train], y[train])
        table[row].append(-np.mean(log_p_true(model, X[test], y[test])))
print(lkj.diagnostics_)
print(f"{name}, 5 rows of each class, log loss of each repetition and their mean")
for row, values in table.items():
    print(f"{row:<28}" + "".join(f"{v:8.3f}" for v in values) + f"   {np.mean(values):8.3f}")

# %% [markdown]
# How bold a plug-in is depends on the point of the posterior that it takes. Under this prior the covariances have a
# posterior with a long tail to large values, so that their mean is large, and cautious by itself: here averaging
# adds little to it. Under the conjugate prior the mean is far too bold. Averaged, the two priors hardly differ.
#
# ## Is a stated 90 % right nine times of ten?
#
# Collect the predictions of many small training sets, sort them by how sure they are, and count. Honest
# probabilities lie on the diagonal; below it are those that claim too much. Three uses of one posterior: its mode
# plugged in, its mean plugged in, and all of it.

# %%
X, y = DATA["iris"]
size, seeds = 5, range(4 if QUICK else 60)
claims = {route: [] for route in ("map", "mean", "exact")}
with threadpool_limits(1), warnings.catch_warnings():
    warnings.simplefilter("ignore", ZeroProbabilityWarning)
    for route, pairs in claims.items():
        for seed in seeds:
            train, test = split(y, size, seed)
            p = GaussianNB(inference=route).fit(X[train], y[train]).predict_proba(X[test])
            pairs.append((p.max(axis=1), p.argmax(axis=1) == y[test]))
edges = np.array([0.33, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0])
calibration = {}
for route, pairs in claims.items():
    sure, right = (np.concatenate(part) for part in zip(*pairs, strict=True))
    box = np.clip(np.searchsorted(edges, sure, side="left") - 1, 0, len(edges) - 2)
    count = np.bincount(box, minlength=len(edges) - 1)
    kept = count >= 20
    stated, share = (np.bincount(box, v, len(edges) - 1)[kept] / count[kept] for v in (sure, right))
    calibration[route] = stated, share, count[kept]
    top = sure > 0.99
    print(
        f"iris, {size} rows of each class, {route:<6} right {right.mean():.3f}, claims on average {sure.mean():.3f}; "
        f"surer than 99 % in {top.mean():.0%} of rows, and wrong in {1 - right[top].mean():.1%} of those"
    )

# %% [markdown]
# The three are right equally often; they differ in what they claim. Even the exact route claims too much, for
# another reason than few rows: it holds the columns of a flower to be independent, and counts the same evidence
# more than once.
#
# Below. Left: the example of four rows. Middle: the loss falls with the rows, and the routes meet. Right: claims and
# facts, with bars of two standard errors.

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
for number, (route, model) in enumerate(why.items()):
    left.plot(column, model.predict_proba(column)[:, 1], color=f"C{number}", label=route)
for label, height in ((1, 0.0), (2, 1.0)):
    left.plot(x4[y4 == label], np.full(np.sum(y4 == label), height), "k|", markersize=14)
left.set(xlabel="sepal width (cm)", ylabel="p(virginica)", title="Four rows of each class (ticks): what is claimed")
left.legend(frameon=False)

for number, route in enumerate(routes):
    curve = [losses["full covariances", "wine", size][route] for size in sizes]
    middle.plot(sizes, curve, "o-", color=f"C{(0, 3, 1, 2)[number]}", label=route)
middle.set(xscale="log", yscale="log", xlabel="rows of each class", ylabel="log loss on the other rows (nats)")
middle.set_xticks(sizes, [str(size) for size in sizes])
middle.minorticks_off()
middle.set_title("Wine, a covariance for each class")
middle.legend(frameon=False)

right.plot([0.4, 1], [0.4, 1], color="0.6", linewidth=1)
for number, (route, (stated, share, count)) in enumerate(calibration.items()):
    error = 2 * np.sqrt(share * (1 - share) / count)
    right.errorbar(stated, share, error, fmt="o-", color=f"C{(3, 1, 2)[number]}", capsize=2, label=route)
right.set(xlabel="stated probability of the predicted class", ylabel="how often it is right")
right.set_title("Iris, independent columns: claims and facts")
right.legend(frameon=False)

# %%
folder = os.environ.get("BAYESGEN_FIGURES")
if folder:
    figure.savefig(Path(folder) / "small_data_calibration.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
