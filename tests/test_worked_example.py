"""Numbers worked by hand: four sentences, a textbook page on text classification, and the weather table.

Four labelled sentences (rude or civil) and a new one, "I like you.", through every closed-form route. Each
number is a fraction, counted with pencil and paper; the library must give it to the last digits. The class
probabilities are those of two sentences in each class, 1/2 under every route.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from bayesgen import BernoulliNB, CategoricalNB, MultinomialNB, ZeroProbabilityWarning

RTOL = 1e-12
CIVIL, RUDE = 0, 1
LABELS = np.array([CIVIL, RUDE, RUDE, CIVIL])
SENTENCES = (
    "my name is Devin",
    "you are stupid",
    "my boyfriend is SB",
    "you looks very smart I like you very much",
)
NEW = "I like you"


class Answer(NamedTuple):
    """What a model says of the new sentence: p(x, y) of both classes, its base-2 logarithm, P(rude | x)."""

    joint: tuple[str, str]
    score: tuple[float, float]
    p_rude: str
    predicted: int


class Vocabulary(NamedTuple):
    """A choice of words, and every number that follows from it; pairs are (civil, rude)."""

    text: str
    count: tuple[list[int], list[int]]
    sentences_with: tuple[list[int], list[int]]
    mle: tuple[str, str]
    laplace: tuple[str, str]
    jeffreys: tuple[str, str]
    bernoulli_mle: tuple[str, str]
    bernoulli_laplace: tuple[str, str]
    capped_total: tuple[int, int]
    urn: tuple[str, str]
    answers: dict[str, Answer]
    evidence_of_tokens: tuple[str, str]
    coefficients: int
    log_evidence_sequences: float
    log_evidence_counts: float
    evidence_of_presences: str
    log_evidence_presences: float

    @property
    def words(self) -> list[str]:
        return self.text.split()

    def counts(self, *texts: str) -> np.ndarray:
        return np.array([[text.split().count(word) for word in self.words] for text in texts], dtype=float)

    def tokens(self, *texts: str) -> list[list[int]]:
        """Ids of the words; one id too large for words that are not in the vocabulary."""
        id_of = {word: j for j, word in enumerate(self.words)}
        return [[id_of.get(word, len(self.words)) for word in text.split()] for text in texts]


WITHOUT_I = Vocabulary(
    text="my name is Devin you are stupid boyfriend SB looks very smart like much",
    count=([1, 1, 1, 1, 2, 0, 0, 0, 0, 1, 2, 1, 1, 1], [1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]),
    sentences_with=([1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1], [1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]),
    mle=(
        "1/12 1/12 1/12 1/12 1/6 0 0 0 0 1/12 1/6 1/12 1/12 1/12",
        "1/7 0 1/7 0 1/7 1/7 1/7 1/7 1/7 0 0 0 0 0",
    ),
    laplace=(
        "1/13 1/13 1/13 1/13 3/26 1/26 1/26 1/26 1/26 1/13 3/26 1/13 1/13 1/13",
        "2/21 1/21 2/21 1/21 2/21 2/21 2/21 2/21 2/21 1/21 1/21 1/21 1/21 1/21",
    ),
    jeffreys=(
        "3/38 3/38 3/38 3/38 5/38 1/38 1/38 1/38 1/38 3/38 5/38 3/38 3/38 3/38",
        "3/28 1/28 3/28 1/28 3/28 3/28 3/28 3/28 3/28 1/28 1/28 1/28 1/28 1/28",
    ),
    bernoulli_mle=(
        "1/2 1/2 1/2 1/2 1/2 0 0 0 0 1/2 1/2 1/2 1/2 1/2",
        "1/2 0 1/2 0 1/2 1/2 1/2 1/2 1/2 0 0 0 0 0",
    ),
    bernoulli_laplace=(
        "1/2 1/2 1/2 1/2 1/2 1/4 1/4 1/4 1/4 1/2 1/2 1/2 1/2 1/2",
        "1/2 1/4 1/2 1/4 1/2 1/2 1/2 1/2 1/2 1/4 1/4 1/4 1/4 1/4",
    ),
    capped_total=(10, 7),
    urn=("1/13 1/9", "1/21 1/11"),
    answers={
        "mle": Answer(("1/144", "0"), (-7.169925001442312, -math.inf), "0", CIVIL),
        "laplace": Answer(("3/676", "1/441"), (-7.815916935561028, -8.784634845557521), "676/1999", CIVIL),
        "jeffreys": Answer(("15/2888", "3/1568"), (-7.588964431278653, -9.029747343394051), "361/1341", CIVIL),
        "exact": Answer(("1/234", "1/462"), (-7.870364719583405, -8.851749041416058), "39/116", CIVIL),
        "capped": Answer(("1/288", "1/441"), (-8.169925001442312, -8.784634845557521), "32/81", CIVIL),
        "bernoulli_mle": Answer(("1/2048", "0"), (-11.0, -math.inf), "0", CIVIL),
        "bernoulli_laplace": Answer(
            ("81/524288", "729/4194304"), (-12.660149997115376, -12.490224995673064), "9/17", RUDE
        ),
    },
    evidence_of_tokens=("1/622738005120000", "1/390700800"),
    coefficients=34836480,
    log_evidence_sequences=-57.249796998029424,
    log_evidence_counts=-39.88362132648012,
    evidence_of_presences="1/2998506940656648192",
    log_evidence_presences=-45.945843533888294,
)

WITH_I = Vocabulary(
    text="my name is Devin you are stupid boyfriend SB looks very smart I like much",
    count=([1, 1, 1, 1, 2, 0, 0, 0, 0, 1, 2, 1, 1, 1, 1], [1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]),
    sentences_with=(
        [1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        [1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
    ),
    mle=(
        "1/13 1/13 1/13 1/13 2/13 0 0 0 0 1/13 2/13 1/13 1/13 1/13 1/13",
        "1/7 0 1/7 0 1/7 1/7 1/7 1/7 1/7 0 0 0 0 0 0",
    ),
    laplace=(
        "1/14 1/14 1/14 1/14 3/28 1/28 1/28 1/28 1/28 1/14 3/28 1/14 1/14 1/14 1/14",
        "1/11 1/22 1/11 1/22 1/11 1/11 1/11 1/11 1/11 1/22 1/22 1/22 1/22 1/22 1/22",
    ),
    jeffreys=(
        "3/41 3/41 3/41 3/41 5/41 1/41 1/41 1/41 1/41 3/41 5/41 3/41 3/41 3/41 3/41",
        "3/29 1/29 3/29 1/29 3/29 3/29 3/29 3/29 3/29 1/29 1/29 1/29 1/29 1/29 1/29",
    ),
    bernoulli_mle=(
        "1/2 1/2 1/2 1/2 1/2 0 0 0 0 1/2 1/2 1/2 1/2 1/2 1/2",
        "1/2 0 1/2 0 1/2 1/2 1/2 1/2 1/2 0 0 0 0 0 0",
    ),
    bernoulli_laplace=(
        "1/2 1/2 1/2 1/2 1/2 1/4 1/4 1/4 1/4 1/2 1/2 1/2 1/2 1/2 1/2",
        "1/2 1/4 1/2 1/4 1/2 1/2 1/2 1/2 1/2 1/4 1/4 1/4 1/4 1/4 1/4",
    ),
    capped_total=(11, 7),
    urn=("1/14 2/29 1/10", "1/22 1/23 1/12"),
    answers={
        "mle": Answer(("1/2197", "0"), (-11.101319154423276, -math.inf), "0", CIVIL),
        "laplace": Answer(("3/10976", "1/10648"), (-11.837102265451657, -13.378294855911891), "1372/5365", CIVIL),
        "jeffreys": Answer(("45/137842", "3/48778"), (-11.580802917524576, -13.98898048466156), "68921/434756", CIVIL),
        "exact": Answer(("1/4060", "1/12144"), (-11.987264012072538, -13.567956075415466), "1015/4051", CIVIL),
        "capped": Answer(("1/4394", "1/10648"), (-12.101319154423276, -13.378294855911891), "2197/7521", CIVIL),
        "bernoulli_mle": Answer(("1/4096", "0"), (-12.0, -math.inf), "0", CIVIL),
        "bernoulli_laplace": Answer(
            ("81/1048576", "729/16777216"), (-13.660149997115376, -14.490224995673064), "9/25", CIVIL
        ),
    },
    evidence_of_tokens=("1/31225862828160000", "1/586051200"),
    coefficients=313528320,
    log_evidence_sequences=-61.57013818054814,
    log_evidence_counts=-42.00673793166261,
    evidence_of_presences="1/53973124931819667456",
    log_evidence_presences=-48.83621529178446,
)

MODELS = {
    "mle": lambda: MultinomialNB(inference="mle"),
    "laplace": lambda: MultinomialNB(inference="mean"),
    "jeffreys": lambda: MultinomialNB(alpha=0.5, inference="mean"),
    "exact": lambda: MultinomialNB(),
    "capped": lambda: MultinomialNB(inference="mean"),
    "bernoulli_mle": lambda: BernoulliNB(inference="mle"),
    "bernoulli_laplace": lambda: BernoulliNB(),
}
# Other ways to the same numbers. The mode under a flat prior is the MLE; under Dirichlet(2) it is Laplace's.
SAME = {
    "map_dirichlet_1": ("mle", lambda: MultinomialNB(inference="map")),
    "map_dirichlet_2": ("laplace", lambda: MultinomialNB(alpha=2.0, inference="map")),
    "bernoulli_map_beta_1": ("bernoulli_mle", lambda: BernoulliNB(inference="map")),
    "bernoulli_map_beta_2": ("bernoulli_laplace", lambda: BernoulliNB(alpha=2.0, inference="map")),
    "bernoulli_mean": ("bernoulli_laplace", lambda: BernoulliNB(inference="mean")),
    "bernoulli_pair": ("bernoulli_laplace", lambda: BernoulliNB(alpha=(1.0, 1.0))),
    "with_coefficient": ("exact", lambda: MultinomialNB(multinomial_coefficient=True)),
}


@pytest.fixture(params=[WITHOUT_I, WITH_I], ids=["without_I", "with_I"])
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return request.param


def values(fractions: str | tuple[str, ...]) -> np.ndarray:
    """Fractions in a string as floats; a tuple of strings gives one row each."""
    if isinstance(fractions, tuple):
        return np.array([values(row) for row in fractions])
    return np.array([float(Fraction(text)) for text in fractions.split()])


def fitted(name: str, vocabulary: Vocabulary) -> Any:
    counts = vocabulary.counts(*SENTENCES)
    return MODELS[name]().fit(np.minimum(counts, 1.0) if name == "capped" else counts, LABELS)


def check_answer(estimator: Any, new: Any, answer: Answer) -> None:
    joint = estimator.predict_joint_log_proba(new)
    np.testing.assert_allclose(np.exp(joint), values((" ".join(answer.joint),)), rtol=RTOL)
    np.testing.assert_allclose(joint[0] / np.log(2.0), answer.score, rtol=RTOL)
    p = float(Fraction(answer.p_rude))
    np.testing.assert_allclose(estimator.predict_proba(new), [[1.0 - p, p]], rtol=RTOL)
    assert estimator.predict(new).tolist() == [answer.predicted]


def test_words_are_counted_by_class(vocabulary: Vocabulary) -> None:
    estimator = fitted("laplace", vocabulary)
    np.testing.assert_array_equal(estimator.feature_count_, vocabulary.count)
    np.testing.assert_array_equal(fitted("bernoulli_laplace", vocabulary).feature_count_, vocabulary.sentences_with)
    np.testing.assert_array_equal(fitted("capped", vocabulary).feature_count_.sum(axis=1), vocabulary.capped_total)
    np.testing.assert_array_equal(estimator.class_count_, [2.0, 2.0])


@pytest.mark.parametrize("name", ["mle", "laplace", "jeffreys", "bernoulli_mle", "bernoulli_laplace"])
def test_word_probabilities_are_the_fractions(name: str, vocabulary: Vocabulary) -> None:
    probability = np.exp(fitted(name, vocabulary).feature_log_prob_)
    np.testing.assert_allclose(probability, values(getattr(vocabulary, name)), rtol=RTOL)
    if not name.startswith("bernoulli"):
        np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=RTOL)


def test_the_exact_route_shows_the_posterior_mean(vocabulary: Vocabulary) -> None:
    probability = np.exp(fitted("exact", vocabulary).feature_log_prob_)
    np.testing.assert_allclose(probability, values(vocabulary.laplace), rtol=RTOL)


@pytest.mark.parametrize("name", MODELS)
def test_both_classes_are_equally_probable_beforehand(name: str, vocabulary: Vocabulary) -> None:
    np.testing.assert_allclose(fitted(name, vocabulary).class_log_prior_, np.log([0.5, 0.5]), rtol=RTOL)


@pytest.mark.parametrize("name", MODELS)
def test_the_new_sentence_gets_its_scores(name: str, vocabulary: Vocabulary) -> None:
    check_answer(fitted(name, vocabulary), vocabulary.counts(NEW), vocabulary.answers[name])


@pytest.mark.parametrize("name", SAME)
def test_other_ways_lead_to_the_same_scores(name: str, vocabulary: Vocabulary) -> None:
    same_as, make = SAME[name]
    estimator, new = make().fit(vocabulary.counts(*SENTENCES), LABELS), vocabulary.counts(NEW)
    if name == "with_coefficient":
        # The three (or two) words of the sentence are different: L! orders, the same factor in both classes.
        answer = vocabulary.answers[same_as]
        orders = math.factorial(len(answer.joint) if vocabulary is WITHOUT_I else 3)
        joint = np.exp(estimator.predict_joint_log_proba(new)[0]) / orders
        np.testing.assert_allclose(joint, values(" ".join(answer.joint)), rtol=RTOL)
        np.testing.assert_allclose(estimator.predict_proba(new)[0, RUDE], float(Fraction(answer.p_rude)), rtol=RTOL)
    else:
        check_answer(estimator, new, vocabulary.answers[same_as])


@pytest.mark.parametrize("name", ["mle", "laplace", "jeffreys", "exact"])
def test_token_ids_give_the_numbers_of_the_counts(name: str, vocabulary: Vocabulary) -> None:
    estimator = MODELS[name]().set_params(input="tokens", vocabulary_size=len(vocabulary.words))
    # Without "I" in the vocabulary its id is out of range, in a training sentence and the new one: dropped.
    estimator.fit(vocabulary.tokens(*SENTENCES), LABELS)
    np.testing.assert_array_equal(estimator.feature_count_, vocabulary.count)
    check_answer(estimator, vocabulary.tokens(NEW), vocabulary.answers[name])


@pytest.mark.parametrize("name", ["bernoulli_mle", "bernoulli_laplace"])
def test_token_ids_give_the_numbers_of_the_presences(name: str, vocabulary: Vocabulary) -> None:
    estimator = MODELS[name]().set_params(input="tokens", vocabulary_size=len(vocabulary.words))
    estimator.fit(vocabulary.tokens(*SENTENCES), LABELS)
    check_answer(estimator, vocabulary.tokens(NEW), vocabulary.answers[name])


def test_the_predictive_counts_each_word_for_the_next(vocabulary: Vocabulary) -> None:
    """p(first word) p(second | first) ...: the Polya urn, whatever the order of the words."""
    estimator = fitted("exact", vocabulary)
    known = [word for word in NEW.split() if word in vocabulary.words]
    prefixes = vocabulary.counts(*(" ".join(known[:n]) for n in range(len(known) + 1)))
    factors = np.exp(np.diff(estimator.predict_joint_log_proba(prefixes), axis=0)).T
    np.testing.assert_allclose(factors, values(vocabulary.urn), rtol=RTOL)


def test_the_predictive_of_a_word_is_its_probability_after_learning_the_one_before() -> None:
    estimator = fitted("exact", WITHOUT_I)
    estimator.partial_fit(WITHOUT_I.counts("like", "like"), [CIVIL, RUDE])
    given_class = estimator.predict_joint_log_proba(WITHOUT_I.counts("you")) - estimator.class_log_prior_
    np.testing.assert_allclose(np.exp(given_class[0]), values("1/9 1/11"), rtol=RTOL)


def test_evidence_of_the_four_sentences(vocabulary: Vocabulary) -> None:
    sequences = fitted("exact", vocabulary)
    of_labels, of_tokens = Fraction(1, 30), math.prod(Fraction(p) for p in vocabulary.evidence_of_tokens)
    np.testing.assert_allclose(sequences.log_evidence_parts_["y"], math.log(of_labels), rtol=RTOL)
    np.testing.assert_allclose(sequences.log_evidence_parts_["x_given_y"], math.log(of_tokens), rtol=RTOL)
    np.testing.assert_allclose(sequences.log_evidence_, vocabulary.log_evidence_sequences, rtol=RTOL)

    counts = MultinomialNB(multinomial_coefficient=True).fit(vocabulary.counts(*SENTENCES), LABELS)
    np.testing.assert_allclose(counts.log_evidence_, vocabulary.log_evidence_counts, rtol=RTOL)
    orders = counts.log_evidence_ - sequences.log_evidence_
    np.testing.assert_allclose(orders, math.log(vocabulary.coefficients), rtol=RTOL)

    presences = fitted("bernoulli_laplace", vocabulary)
    of_presences = math.log(Fraction(vocabulary.evidence_of_presences))
    np.testing.assert_allclose(presences.log_evidence_parts_["x_given_y"], of_presences, rtol=RTOL)
    np.testing.assert_allclose(presences.log_evidence_, vocabulary.log_evidence_presences, rtol=RTOL)


def test_evidence_of_token_ids_is_that_of_the_sequences(vocabulary: Vocabulary) -> None:
    estimator = MultinomialNB(input="tokens", vocabulary_size=len(vocabulary.words))
    estimator.fit(vocabulary.tokens(*SENTENCES), LABELS)
    np.testing.assert_allclose(estimator.log_evidence_, vocabulary.log_evidence_sequences, rtol=RTOL)


def test_a_word_without_any_count_leaves_the_mle_without_an_answer() -> None:
    """ "I" kept as a column that no sentence counts: both scores are 0 under MLE; smoothing repairs it."""
    counts, new = np.array(WITHOUT_I.counts(*SENTENCES)), WITHOUT_I.counts(NEW)
    counts, new = np.hstack([counts, np.zeros((4, 1))]), np.hstack([new, np.ones((1, 1))])
    mle = MultinomialNB(inference="mle").fit(counts, LABELS)
    assert np.all(np.isneginf(mle.predict_joint_log_proba(new)))
    with pytest.warns(ZeroProbabilityWarning):
        assert np.all(np.isnan(mle.predict_proba(new)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroProbabilityWarning)
        assert mle.predict(new).tolist() == [CIVIL]

    laplace = MultinomialNB(inference="mean").fit(counts, LABELS)
    # "I", "like", "you": 0, 1, 2 of 12 civil words, and 0, 0, 1 of 7 rude ones; one more each, of 15 words.
    joint = [Fraction(1 * 2 * 3, 2 * 27**3), Fraction(1 * 1 * 2, 2 * 22**3)]
    np.testing.assert_allclose(laplace.predict_proba(new)[0, RUDE], float(joint[1] / sum(joint)), rtol=RTOL)


def test_words_of_both_classes_alone_leave_the_mle_without_an_answer() -> None:
    """ "name" was only civil, "stupid" only rude."""
    new = WITHOUT_I.counts("my name is stupid", NEW)
    with pytest.warns(ZeroProbabilityWarning):
        proba = fitted("mle", WITHOUT_I).predict_proba(new)
    np.testing.assert_array_equal(np.isnan(proba), [[True, True], [False, False]])
    np.testing.assert_array_equal(proba[1], [1.0, 0.0])


def test_the_event_models_disagree_on_the_new_sentence() -> None:
    new = WITHOUT_I.counts(NEW)
    assert fitted("laplace", WITHOUT_I).predict(new).tolist() == [CIVIL]
    assert fitted("bernoulli_laplace", WITHOUT_I).predict(new).tolist() == [RUDE]


@pytest.mark.parametrize(
    ("word", "label", "beta", "mean", "sd", "central_90"),
    [
        ("like", CIVIL, (2, 24), "1/13", 0.05128205128205128, (0.014403197979173658, 0.176120710604518)),
        ("like", RUDE, (1, 20), "1/21", 0.0454029804402663, (0.0025613787765302806, 0.13910834066826516)),
        ("you", CIVIL, (3, 23), "3/26", 0.06148501952965025, (0.03351959498950469, 0.2310399339581441)),
        ("you", RUDE, (2, 19), "2/21", 0.06258368958788295, (0.018065203085418632, 0.2161061642068473)),
    ],
)
def test_a_word_probability_has_a_beta_posterior(
    word: str, label: int, beta: tuple[int, int], mean: str, sd: float, central_90: tuple[float, float]
) -> None:
    concentration = fitted("exact", WITHOUT_I).posterior_.concentration()[label]
    own = concentration[WITHOUT_I.words.index(word)]
    assert (own, concentration.sum() - own) == beta
    marginal = stats.beta(own, concentration.sum() - own)
    np.testing.assert_allclose([marginal.mean(), marginal.std()], [float(Fraction(mean)), sd], rtol=1e-10)
    np.testing.assert_allclose(marginal.interval(0.9), central_90, rtol=1e-8)


def test_log_odds_have_their_posterior_mean_and_spread() -> None:
    estimator = fitted("exact", WITHOUT_I)
    alpha = estimator.posterior_.concentration()
    words = [WITHOUT_I.words.index(word) for word in ("like", "you")]
    total = alpha.sum(axis=1)
    mean_log = special.digamma(alpha[:, words]).sum(axis=1) - 2 * special.digamma(total)
    np.testing.assert_allclose(mean_log[RUDE] - mean_log[CIVIL], -1.0635629587803503, rtol=1e-10)
    # Two different words: their covariances within a class add 4 trigamma(A); each class share is Beta(3, 3).
    variance = special.polygamma(1, alpha[:, words]).sum() - 4 * special.polygamma(1, total).sum()
    variance += 2 * special.polygamma(1, 3)
    np.testing.assert_allclose(math.sqrt(variance), 1.941050863918729, rtol=1e-10)


def test_draws_of_the_probability_agree_with_the_posterior() -> None:
    n_draws = 20_000
    estimator = MultinomialNB(random_state=0).fit(WITHOUT_I.counts(*SENTENCES), LABELS)
    rude = estimator.sample_proba(WITHOUT_I.counts(NEW), n_draws)[:, 0, RUDE]
    log_odds = special.logit(rude)
    # Four standard errors; the last two references were found by simulation too, to a few units of 1e-3.
    assert abs(log_odds.mean() + 1.0635629587803503) < 4 * 1.941 / math.sqrt(n_draws)
    assert abs(log_odds.std() - 1.941050863918729) < 4 * 1.941 / math.sqrt(n_draws)
    assert abs(np.mean(rude > 0.5) - 0.294) < 4 * 0.456 / math.sqrt(n_draws) + 2e-3
    # The mean over parameters of p(rude | x, parameters) is not the predictive probability 39/116.
    assert abs(rude.mean() - 0.3441) < 4 * rude.std() / math.sqrt(n_draws) + 1e-3


# --- Manning, Raghavan and Schuetze, Introduction to Information Retrieval, examples 13.1 and 13.2 ----------

CHINA, JAPAN = "china", "japan"
BOOK_WORDS = ["Chinese", "Beijing", "Shanghai", "Macao", "Tokyo", "Japan"]
BOOK_TEXTS = ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", "Chinese Macao", "Tokyo Japan Chinese"]
BOOK_LABELS = [CHINA, CHINA, CHINA, JAPAN]


@pytest.mark.parametrize(
    ("estimator", "joint", "p_china"),
    [
        (MultinomialNB(inference="mean", class_alpha=0.0), "81/268912 8/59049", 0.6897586117634673),
        (BernoulliNB(inference="mean", class_alpha=0.0), "81/15625 16/729", None),
        (BernoulliNB(class_alpha=0.0), "81/15625 16/729", None),
        (MultinomialNB(class_alpha=0.0), "1/4080 1/6435", 0.6119828815977175),
    ],
    ids=["multinomial", "bernoulli_mean", "bernoulli_exact", "multinomial_exact"],
)
def test_information_retrieval_book(estimator: Any, joint: str, p_china: float | None) -> None:
    """Class probabilities there are relative frequencies, 3/4 and 1/4: ``class_alpha=0``."""
    counts = np.array([[text.split().count(word) for word in BOOK_WORDS] for text in BOOK_TEXTS], dtype=float)
    new = np.array([[3.0, 0.0, 0.0, 0.0, 1.0, 1.0]])  # Chinese Chinese Chinese Tokyo Japan
    estimator.fit(counts, BOOK_LABELS)
    assert estimator.classes_.tolist() == [CHINA, JAPAN]
    np.testing.assert_allclose(np.exp(estimator.predict_joint_log_proba(new)[0]), values(joint), rtol=RTOL)
    china, japan = (Fraction(text) for text in joint.split())
    np.testing.assert_allclose(estimator.predict_proba(new)[0, 0], float(china / (china + japan)), rtol=RTOL)
    if p_china is not None:
        np.testing.assert_allclose(estimator.predict_proba(new)[0, 0], p_china, rtol=RTOL)
    assert estimator.predict(new)[0] == (CHINA if china > japan else JAPAN)


# --- Playing outside, given the weather ---------------------------------------------------------------------

WEATHER = np.array(
    [
        row.split()
        for row in (
            "sunny hot high no",
            "sunny hot high yes",
            "overcast hot high no",
            "rainy mild high no",
            "rainy cool normal no",
            "rainy cool normal yes",
            "overcast cool normal yes",
            "sunny mild high no",
            "sunny cool normal no",
            "rainy mild normal no",
            "sunny mild normal yes",
            "overcast mild high yes",
            "overcast hot normal no",
            "rainy mild high yes",
        )
    ]
)
PLAY = np.array(["no"] * 2 + ["yes"] * 3 + ["no", "yes", "no"] + ["yes"] * 5 + ["no"])
NEW_DAY = np.array([["sunny", "cool", "high", "yes"]])


@pytest.mark.parametrize(
    ("estimator", "no", "yes", "p_yes"),
    [
        (CategoricalNB(inference="mle"), "18/875", "1/189", 0.20458265139116202),
        (CategoricalNB(inference="map"), "18/875", "1/189", 0.20458265139116202),
        (CategoricalNB(inference="mean"), "15/784", "5/726", 0.2646860229574612),
        (CategoricalNB(), "15/784", "5/726", 0.2646860229574612),
    ],
    ids=["mle", "map", "mean", "exact"],
)
def test_weather_table(estimator: Any, no: str, yes: str, p_yes: float) -> None:
    """Fourteen days of outlook, temperature, humidity and wind, smoothed by one day, classes included."""
    estimator.fit(WEATHER, PLAY)
    np.testing.assert_allclose(np.exp(estimator.predict_joint_log_proba(NEW_DAY)[0]), values(f"{no} {yes}"), rtol=RTOL)
    np.testing.assert_allclose(estimator.predict_proba(NEW_DAY)[0, 1], p_yes, rtol=RTOL)
    assert estimator.predict(NEW_DAY).tolist() == ["no"]
