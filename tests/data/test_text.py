"""Text to counts: words against the definition in plain Python, vocabularies, counts, spilling."""

import pickle
import re
import sys
import tempfile
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.text import ENGLISH_STOP_WORDS, MOST_WORDS, TextDefinition, Vocabulary, WordCounts

from mirrorlda import _core

DEFAULT, CASED = TextDefinition(), TextDefinition(lowercase=False)


def runs(text):
    """The longest runs of characters of the categories L, M and N."""
    return "".join(c if unicodedata.category(c)[0] in "LMN" else "\n" for c in text).split("\n")


def oracle(text, lowercase=True):
    normal = unicodedata.normalize("NFC", text)
    return [word for word in runs(normal.lower() if lowercase else normal) if word]


def is_known(c):
    """Whether both this Python and the core's table have the character."""
    return unicodedata.category(c) != "Cn" and _core.is_assigned(ord(c))


KNOWN = [chr(c) for c in range(sys.maxunicode + 1) if is_known(chr(c))]
# Of the ideographs, syllables and private characters, which are many and alike, one in 97.
IS_ALIKE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\ud800-\uf8ff\U00017000-\U00018cff\U00020000-\U0010ffff]")
CHARACTERS = [c for i, c in enumerate(KNOWN) if i % 97 == 0 or not IS_ALIKE.match(c)]


@pytest.mark.parametrize(
    "context", ["{0}", "a{0}b \u0301{0}e\u0301", "\u1100{0}\u11a8 e\u0323{0}\u0301", "A\u03a3{0} \u0391{0}\u03a3{0}b \u03a3{0}"]
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_in_context(context, lowercase):
    definition = TextDefinition(lowercase=lowercase)
    wrong = [c for c in CHARACTERS if definition.words(context.format(c)) != oracle(context.format(c), lowercase)]
    assert [f"U+{ord(c):04X}" for c in wrong] == []


def test_the_categories_of_all_characters():
    text = "".join(f"{c}." for c in KNOWN if not unicodedata.combining(c))
    assert CASED.words(text) == oracle(text, lowercase=False)


LETTERS = st.one_of(
    st.sampled_from(
        " .'-aAbZ09_\u00e9\u00c9\u0130I\u0131\u00df\u03a3\u03c2\u03c3\u0391\u00ad\u2019\u200d\U0001f600\u20ac\ud800\udfff\0"
    ),
    st.sampled_from(
        "\u0300\u0301\u0307\u0308\u0323\u0327\u0344\u0345\u05b0\u0653\u0f71\u0f72\u1d165".replace("\u1d16", "\U0001d165")
    ),
    st.sampled_from("\u1100\u1112\u1161\u1175\u11a7\u11a8\u11c2\uac00\uac01\ud7a3\u0b47\u0b3e\u0b57\u09c7\u09be\u09d7"),
    st.sampled_from(CHARACTERS),
)


@given(st.text(LETTERS, max_size=40), st.booleans())
def test_words_of_any_text(text, lowercase):
    assert TextDefinition(lowercase=lowercase).words(text) == oracle(text, lowercase)


@given(st.text(LETTERS, max_size=12), st.integers(0, 20))
def test_words_do_not_depend_on_where_they_stand(text, n):
    assert DEFAULT.words("x" * n + " " + text + " " + "y" * n) == oracle("x" * n + " " + text + " " + "y" * n)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \0\n\t.!", []),
        ("Don't stop, 2nd café-bar_x", ["don", "t", "stop", "2nd", "café", "bar", "x"]),
        ("cafe\u0301 CAFE\u0301", ["café", "café"]),
        ("q\u0307\u0323", ["q\u0323\u0307"]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", ["한글"]),
        ("\u212b \u2126", ["å", "ω"]),
        ("ΟΔΟΣ ΟΔΟΣ. ΔΣΔΣ'Σ Σ", ["οδος", "οδος", "δσδσ", "ς", "\u03c3"]),
        ("İstanbul", ["i\u0307stanbul"]),
        ("STRASSE Straße", ["strasse", "straße"]),
        ("٣٤ Ⅷ ½ x²", ["٣٤", "ⅷ", "½", "x²"]),
        ("हिन्दी ไทย 日本語", ["हिन्दी", "ไทย", "日本語"]),
        ("a\U0001f600b\U0001f469\u200d\U0001f4bbc", ["a", "b", "c"]),
        ("a\ud800b\udfffé", ["a", "b", "é"]),
        ("\u0301a", ["\u0301a"]),
    ],
)
def test_words_of_a_text(text, words):
    assert oracle(text) == words
    assert DEFAULT.words(text) == words


def test_thousands_of_marks_on_one_letter():
    text = "a" + "\u0301\u0323\u0327" * 2000
    assert CASED.words(text) == oracle(text, lowercase=False)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 15, 16, 17, 255, 256, 257, 1000, 5_000_000])
def test_long_words(n):
    for letter in "aé":
        assert DEFAULT.words(" " + letter.upper() * n + ".") == [letter * n]


def test_stop_words_go_before_bigrams_form():
    definition = TextDefinition(bigrams=True, stop_words=("The", "Don't"))
    assert definition.words("The cat, the dog don't see the cat") == ["cat", "dog", "cat dog", "see", "dog see", "cat", "see cat"]
    assert TextDefinition(lowercase=False, stop_words=("The",)).words("The cat, the dog") == ["cat", "the", "dog"]


def test_english_stop_words_are_words():
    assert [DEFAULT.words(word) for word in ENGLISH_STOP_WORDS] == [[word] for word in ENGLISH_STOP_WORDS]
    assert len(set(ENGLISH_STOP_WORDS)) == len(ENGLISH_STOP_WORDS)


@pytest.mark.parametrize("stop_words", ["the", [1], (None,), b"the"])
def test_stop_words_are_checked(stop_words):
    with pytest.raises(ValueError, match="stop_words must be words"):
        TextDefinition(stop_words=stop_words)


@pytest.fixture(scope="module")
def texts():
    """Documents of Zipf-distributed words, some not ASCII, some empty."""
    rng = np.random.default_rng(0)
    words = np.array([f"{'Éa'[i % 2]}w{i:x}{'ß' * (i % 7 == 0)}" for i in range(3000)])
    documents = [" ".join(words[np.minimum(rng.zipf(1.3, size), 3000) - 1]) for size in rng.integers(0, 60, 500)]
    return [*documents, "", "!!!", "lone \ud800 surrogate"]


def expected_vocabulary(texts, max_words=None, min_docs=1, max_docs_fraction=1.0):
    totals, docs = Counter(), Counter()
    for text in texts:
        words = oracle(text)
        totals.update(words)
        docs.update(set(words))
    chosen = [word for word in totals if min_docs <= docs[word] <= max_docs_fraction * len(texts)]
    return sorted(chosen, key=lambda word: (-totals[word], word))[:max_words]


def n_files_on_disk(texts, memory):
    """How many files of counted words wait on disk once these texts have been counted."""
    counts = _core.WordCounts(_core.TextDefinition(True, False, []), memory, tempfile.gettempdir(), False)
    counts.add(texts, 0, 2)
    return counts.n_runs


@pytest.mark.parametrize(("memory", "waits"), [(2**30, False), (20_000, True), (0, True)])
def test_words_wait_on_disk_where_memory_does_not_hold_them(texts, memory, waits):
    assert (n_files_on_disk(texts, memory) > 0) == waits


CHOICES = [{}, {"max_words": 1}, {"max_words": 50}, {"max_words": 10**20}, {"min_docs": 3}, {"max_docs_fraction": 0.1}]
CHOICES += [{"max_words": 200, "min_docs": 2, "max_docs_fraction": 0.5}]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("memory", [2**30, 20_000, 0])
def test_vocabulary(texts, choice, memory, tmp_path):
    expected = expected_vocabulary(texts, **choice)
    for n_threads in (1, 3):
        counts = WordCounts(n_threads=n_threads, memory=memory, directory=str(tmp_path))
        counts.add(texts[:200])
        counts.add(iter(texts[200:]))
        assert counts.n_docs == len(texts)
        assert counts.vocabulary(**choice).words == expected


def test_texts_may_be_added_after_a_vocabulary_was_chosen(texts):
    for memory in (2**30, 20_000):
        counts = WordCounts(memory=memory, n_threads=2)
        counts.add(texts[:300])
        counts.vocabulary(max_words=10)
        counts.add(texts[300:])
        assert counts.vocabulary().words == expected_vocabulary(texts)
        assert counts.vocabulary(max_words=7).words == expected_vocabulary(texts, 7)


def test_no_file_stays(texts, tmp_path):
    counts = WordCounts(memory=0, directory=str(tmp_path))
    counts.add(texts)
    counts.vocabulary()
    del counts
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_counts_of_parts_merge_to_those_of_all(memory):
    """Texts in three parts, counted apart and sent to other processes, choose the words that all of them choose."""
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in rng.zipf(1.3, 30) if n < 500) + " é" for _ in range(90)]
    whole, merged = WordCounts(), WordCounts(memory=memory)
    whole.add(texts)
    for part in (texts[:10], texts[10:10], texts[10:]):
        counts = WordCounts(memory=memory)
        counts.add(part)
        merged.merge(pickle.loads(pickle.dumps(counts)))
    assert merged.n_docs == 90
    for choice in ({}, {"max_words": 7}, {"min_docs": 3, "max_docs_fraction": 0.5}):
        assert merged.vocabulary(**choice) == whole.vocabulary(**choice)
    merged.add(["again again"])
    assert "again" in merged.vocabulary()


def test_a_directory_that_is_not_there(texts, tmp_path):
    counts = WordCounts(memory=0, directory=str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="nowhere"):
        counts.add(texts)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_counts(texts, n_threads):
    vocabulary = WordCounts()
    vocabulary.add(texts)
    vocabulary = vocabulary.vocabulary(max_words=300)
    X = vocabulary.count(iter(texts), n_threads=n_threads)
    X.check_format(full_check=True)
    assert X.dtype == np.float32
    assert X.shape == (len(texts), 300)
    for text, row in zip(texts, X.toarray(), strict=True):
        words = Counter(word for word in oracle(text) if word in vocabulary)
        assert {vocabulary.word(column): row[column] for column in np.flatnonzero(row)} == words
    indices_ascend = np.diff(X.indices) > 0
    indices_ascend[X.indptr[1:-1][(X.indptr[1:-1] > 0) & (X.indptr[1:-1] < X.nnz)] - 1] = True
    assert indices_ascend.all()


@pytest.mark.parametrize("bigrams", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_pass_equals_two(texts, bigrams, n_threads):
    definition = TextDefinition(bigrams=bigrams, stop_words=("aw1", "éw0"))
    counts = WordCounts(definition, n_threads=n_threads, keep_documents=True)
    for _ in range(2):
        counts.add(texts)
        vocabulary = counts.vocabulary(max_words=100)
        X = counts.counts(vocabulary)
        both = [*texts] * (counts.n_docs // len(texts))
        expected = vocabulary.count(both)
        assert X.shape == expected.shape
        assert all(
            np.array_equal(a, b)
            for a, b in zip((X.indptr, X.indices, X.data), (expected.indptr, expected.indices, expected.data), strict=True)
        )


def test_counts_need_kept_documents():
    counts = WordCounts()
    counts.add(["a"])
    with pytest.raises(RuntimeError, match="not kept"):
        counts.counts(counts.vocabulary())


def test_nothing_to_count():
    assert Vocabulary(["a"]).count([]).shape == (0, 1)
    assert Vocabulary([]).count(["a b", ""]).shape == (2, 0)
    counts = WordCounts()
    counts.add(["", "?"])
    with pytest.raises(ValueError, match="no word is left for the vocabulary: 2 texts have 0 distinct words"):
        counts.vocabulary()
    with pytest.raises(ValueError, match="0 texts"):
        WordCounts().vocabulary()


@pytest.mark.parametrize("text", [None, float("nan"), b"bytes", 3, ["a"]])
def test_what_is_not_text(text):
    texts = ["fine"] * 20_000 + [text]
    with pytest.raises(TypeError, match=r"text 20000 must be a string, got .* of type"):
        Vocabulary(["a"]).count(texts)
    with pytest.raises(TypeError, match=r"text 20000 must be a string, got .* of type"):
        WordCounts().add(texts)


def test_one_string_is_no_list_of_texts():
    with pytest.raises(ValueError, match="got one string"):
        Vocabulary(["a"]).count("a b")
    with pytest.raises(ValueError, match="got the string"):
        Vocabulary("ab")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"max_words": 0}, "max_words must be at least 1"),
        ({"min_docs": 0}, "min_docs must be at least 1"),
        ({"max_docs_fraction": 0}, "max_docs_fraction must be above 0"),
        ({"max_docs_fraction": float("nan")}, "max_docs_fraction must be above 0"),
        ({"max_docs_fraction": 1.5}, "max_docs_fraction must be above 0"),
        ({"min_docs": 10**30}, "no word is left"),
    ],
)
def test_choices_are_checked(choice, message):
    counts = WordCounts()
    counts.add(["a b", "a"])
    with pytest.raises(ValueError, match=message):
        counts.vocabulary(**choice)


def test_vocabulary_is_a_mapping_of_words_to_columns():
    words = ["b", "a", "", "a\0", "longer than eight", "longer than eigth", "é" * 9]
    vocabulary = Vocabulary(words)
    assert vocabulary.words == words
    assert list(vocabulary) == words
    assert [vocabulary[word] for word in words] == list(range(len(words)))
    assert [vocabulary.word(column) for column in range(len(words))] == words
    assert "c" not in vocabulary
    assert 3 not in vocabulary
    assert "\ud800" not in vocabulary
    with pytest.raises(KeyError, match="c"):
        vocabulary["c"]
    with pytest.raises(IndexError):
        vocabulary.word(len(words))
    assert vocabulary == Vocabulary(words)
    assert vocabulary != Vocabulary(words[::-1])
    assert vocabulary != Vocabulary(words, CASED)


def test_vocabulary_survives_as_arrays_and_as_a_copy():
    vocabulary = Vocabulary(["b", "a", "", "longer than eight", "é" * 9], TextDefinition(bigrams=True))
    letters, offsets = vocabulary.arrays()
    assert (letters.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert Vocabulary.from_arrays(letters, offsets, vocabulary.definition) == vocabulary
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary


def bytes_of(text):
    return np.frombuffer(text, np.uint8)


@pytest.mark.parametrize(
    ("letters", "offsets"),
    [
        (b"ab", []),
        (b"ab", [0, 1]),
        (b"ab", [0, 3]),
        (b"ab", [1, 2]),
        (b"ab", [0, 2, 1, 2]),
        (b"ab", [0, -1, 2]),
        (b"aa", [0, 1, 2]),
        (b"\xff\xfe", [0, 1, 2]),
        ("é".encode(), [0, 1, 2]),
        ("\ud800".encode("utf-8", "surrogatepass"), [0, 3]),
        (b"ab", [0, 2**62, 2]),
    ],
)
def test_arrays_are_checked(letters, offsets):
    with pytest.raises(ValueError, match=r"offsets must|there twice|utf-8"):
        Vocabulary.from_arrays(bytes_of(letters), np.array(offsets, np.int64))


def test_words_of_a_vocabulary_are_checked():
    with pytest.raises(ValueError, match="word 2 is there twice: é"):
        Vocabulary(["é", "a", "é"])
    with pytest.raises(TypeError, match="word 1 must be a string"):
        Vocabulary(["a", 1])
    with pytest.raises(ValueError, match="surrogate"):
        Vocabulary(["\ud800"])


def test_more_runs_than_are_kept_open():
    counts = WordCounts(memory=0, n_threads=2)
    texts = [f"w{i % 7} v{i}" for i in range(3000)]
    counts.add(texts)
    assert counts.vocabulary().words == expected_vocabulary(texts)
    assert 0 < n_files_on_disk(texts, memory=0) < 64


def test_two_callers_at_once(texts):
    counts = WordCounts(n_threads=2)
    vocabulary = Vocabulary(expected_vocabulary(texts, 100))
    with ThreadPoolExecutor(4) as pool:
        matrices = list(pool.map(lambda _: (counts.add(texts), vocabulary.count(texts, 2))[1], range(8)))
    assert counts.n_docs == 8 * len(texts)
    assert counts.vocabulary().words == expected_vocabulary(texts)
    assert all((matrix != matrices[0]).nnz == 0 for matrix in matrices)


def test_limits_are_those_of_the_engine():
    assert np.iinfo(np.int32).max == MOST_WORDS


def test_a_table_of_texts_is_refused():
    with pytest.raises(ValueError, match="got a table of 2 dimensions: choose its column"):
        Vocabulary(["a"]).count(np.array([["a", "b"]]))


# Phrases


@pytest.mark.parametrize("memory", [2**29, 1], ids=["in memory", "spilled"])
def test_phrases_need_documents_of_their_own(memory):
    """Twelve texts have "front desk", five "bad smell", and all words are in five texts at least."""
    counts = WordCounts(TextDefinition(bigrams=True), memory=memory)
    counts.add(["front desk"] * 12 + ["bad smell"] * 5)
    assert counts.vocabulary(min_phrase_docs=10).words == ["desk", "front", "front desk", "bad", "smell"]
    assert counts.vocabulary(min_phrase_docs=6, min_docs=13 - 1).words == ["desk", "front", "front desk"]
    assert "bad smell" in counts.vocabulary(min_phrase_docs=5)
    assert "bad smell" not in counts.vocabulary(min_phrase_docs=6)
    assert "front desk" not in counts.vocabulary(min_phrase_docs=13)
    with pytest.raises(ValueError, match="min_phrase_docs must be at least 1, got 0"):
        counts.vocabulary(min_phrase_docs=0)
