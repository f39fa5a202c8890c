"""TextVectorizer: equal to CountVectorizer given the same definition, and a scikit-learn transformer like others."""

import re
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.text import ENGLISH_STOP_WORDS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from mirrorlda import TopicClassifier
from mirrorlda.estimators.vectorizer import TextVectorizer

TEXTS = [
    "The ROOM was clean; the café's room was\u00a0noisy.",
    "Noisy, noisy cafe\u0301! 2nd floor",
    "",
    "Великий ГОРОД, великий отель",
    "ΟΔΟΣ 東京 ホテル the room",
]


def tokens(text):
    """Runs of letters, marks and numbers, of text that is in NFC and in lower case already."""
    marked = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return re.findall("[^ ]+", marked)


def count_vectorizer(**options):
    return CountVectorizer(
        preprocessor=lambda text: unicodedata.normalize("NFC", text).lower(), tokenizer=tokens, token_pattern=None, **options
    )


def by_word(X, words):
    """The columns in the order of their words."""
    order = np.argsort(np.array(words, dtype=object))
    return list(np.array(words, dtype=object)[order]), X.toarray()[:, order]


OPTIONS = [
    ({}, {}),
    ({"bigrams": False}, {}),
    ({"min_phrase_docs": 1}, {"ngram_range": (1, 2)}),
    ({"min_docs": 2}, {"min_df": 2}),
    ({"max_docs_fraction": 0.4}, {"max_df": 0.4}),
    ({"stop_words": "english"}, {"stop_words": list(ENGLISH_STOP_WORDS)}),
    ({"stop_words": ["the", "was"], "min_phrase_docs": 1}, {"stop_words": ["the", "was"], "ngram_range": (1, 2)}),
]


@pytest.mark.parametrize(("ours", "theirs"), OPTIONS)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_counts_are_those_of_count_vectorizer(ours, theirs, n_jobs):
    vectorizer, reference = TextVectorizer(n_jobs=n_jobs, **ours), count_vectorizer(**theirs)
    words, X = by_word(vectorizer.fit_transform(TEXTS), vectorizer.get_feature_names_out())
    expected_words, expected = by_word(reference.fit_transform(TEXTS), reference.get_feature_names_out())
    assert words == expected_words
    assert np.array_equal(X, expected)


@given(st.lists(st.text(st.sampled_from("aAé\u0301É .'2Σ中\u200d\U0001f600"), max_size=12), min_size=1, max_size=5))
def test_counts_are_those_of_count_vectorizer_for_any_texts(texts):
    reference = count_vectorizer().fit([*texts, "a"])
    vectorizer = TextVectorizer(bigrams=False).fit([*texts, "a"])
    words, X = by_word(vectorizer.transform(texts), vectorizer.get_feature_names_out())
    expected_words, expected = by_word(reference.transform(texts), reference.get_feature_names_out())
    assert words == expected_words
    assert np.array_equal(X, expected)


def test_columns_are_in_the_order_of_frequency_then_of_words():
    vectorizer = TextVectorizer(max_words=6).fit(TEXTS)
    words = list(vectorizer.get_feature_names_out())
    totals = vectorizer.transform(TEXTS).sum(axis=0)
    assert words == ["noisy", "room", "the", "café", "was", "великий"]
    assert all((-a, u) < (-b, v) for (a, u), (b, v) in pairwise(zip(totals, words, strict=True)))


@pytest.mark.parametrize("options", [{}, {"max_words": 4}, {"bigrams": True, "lowercase": False}])
def test_fit_transform_equals_fit_and_transform(options):
    X = TextVectorizer(n_jobs=2, **options).fit_transform(iter(TEXTS))
    vectorizer = TextVectorizer(**options).fit(iter(TEXTS))
    expected = vectorizer.transform(iter(TEXTS))
    assert X.dtype == expected.dtype == np.float32
    assert np.array_equal(X.toarray(), expected.toarray())


# The others are for numbers as input.
@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
    ],
)
def test_estimator_checks(check):
    getattr(estimator_checks, check)("TextVectorizer", TextVectorizer())


def test_a_clone_has_the_parameters_and_nothing_learned():
    vectorizer = TextVectorizer(7, min_docs=2, stop_words=["a"], n_jobs=2).fit(TEXTS)
    copy = clone(vectorizer)
    assert copy.get_params() == vectorizer.get_params()
    assert not hasattr(copy, "vocabulary_")


def test_pipelines_of_ours_and_of_the_users_own():
    texts, y = TEXTS * 8, ["hotel", "hotel", "none", "city", "city"] * 8
    for vectorizer in (TextVectorizer(), CountVectorizer()):
        model = make_pipeline(vectorizer, TopicClassifier(3, n_epochs=3, random_state=0)).fit(texts, y)
        assert model.predict_proba(TEXTS).shape == (5, 3)
        assert len(model[:-1].get_feature_names_out()) == model[-1].n_features_in_


def test_before_fit():
    with pytest.raises(NotFittedError):
        TextVectorizer().transform(TEXTS)
    with pytest.raises(NotFittedError):
        TextVectorizer().get_feature_names_out()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_words": 0}, "max_words must be at least 1"),
        ({"max_words": 2.5}, "max_words must be an integer"),
        ({"min_docs": True}, "min_docs must be an integer"),
        ({"max_docs_fraction": "all"}, "max_docs_fraction must be a number"),
        ({"stop_words": "german"}, 'None, "english" or a list'),
        ({"min_docs": 9}, "no word is left"),
    ],
)
def test_parameters_are_checked(options, message):
    vectorizer = TextVectorizer(**options)
    with pytest.raises(ValueError, match=message):
        vectorizer.fit(TEXTS)
    assert not hasattr(vectorizer, "vocabulary_")


def test_stop_words_of_a_set_are_in_one_order():
    words = ["of", "the", "a", "is", "on"]
    found = TextVectorizer(stop_words=frozenset(words)).fit(["the room"]).vocabulary_.definition
    assert found.stop_words == tuple(sorted(words))
