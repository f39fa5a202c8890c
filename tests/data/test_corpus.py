"""A corpus on disk: what is written comes back, and what was not written so is noticed."""

import json
import pickle
import signal
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mirrorlda import Corpus, CorpusError, CorpusWriter, TextDefinition, Vocabulary
from mirrorlda.data.corpus.manifest import VERSION, Target, canonical
from mirrorlda.data.corpus.shards import BLOCK_DOCS, word_bytes

N_WORDS = 70_000


def counts(n_docs, n_words=N_WORDS, seed=0, high=4, density=5e-4):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_docs, n_words), density=density, format="csr", rng=rng, dtype=np.float32)
    X.data = rng.integers(1, high, X.nnz).astype(np.float32)
    X.sort_indices()
    return X


def assert_same(documents, X):
    X = sp.csr_array(X)
    assert_array_equal(documents.indptr, X.indptr)
    assert_array_equal(documents.indices, X.indices)
    assert_array_equal(documents.counts, X.data)


def add_all(writer, *parts):
    for part in parts:
        writer.add(**part)


@pytest.fixture(scope="module")
def X():
    return counts(1000)


@pytest.fixture
def path(tmp_path, X):
    rng = np.random.default_rng(1)
    y = rng.random(1000)
    y[::7] = np.nan
    with CorpusWriter(tmp_path / "c", N_WORDS, target=Target("numbers", ("y",))) as writer:
        for first in range(0, 1000, 300):
            part = slice(first, first + 300)
            ids = [f"doc é {i}" for i in range(1000)[part]]
            split = [None if i % 10 == 9 else "test" if i % 10 == 0 else "train" for i in range(1000)[part]]
            writer.add(X[part], y[part], ids=ids, split=split)
    return tmp_path / "c"


def test_documents_come_back_in_any_order(path, X):
    corpus = Corpus(path)
    assert (corpus.n_docs, corpus.n_words, corpus.n_entries, corpus.shape) == (1000, N_WORDS, X.nnz, (1000, N_WORDS))
    assert_same(corpus.take(np.arange(1000)), X)
    numbers = np.random.default_rng(0).permutation(1000)[:400]
    assert_same(corpus.take(numbers), X[numbers])
    assert_same(corpus.take(np.array([5, 5, 3])), X[[5, 5, 3]])
    assert corpus.take(np.empty(0, np.int64)).n_docs == 0
    assert (corpus.matrix() != X).nnz == 0
    assert corpus.take(np.arange(3), np.float64).counts.dtype == np.float64
    corpus.verify()


def test_columns_come_back(path):
    corpus = Corpus(path)
    assert corpus.ids([0, 999, 4]) == ["doc é 0", "doc é 999", "doc é 4"]
    y, labelled = corpus.targets(np.arange(1000))
    assert_array_equal(labelled, np.arange(1000) % 7 != 0)
    assert_array_equal(y[labelled], np.random.default_rng(1).random(1000)[labelled])
    assert corpus.splits == ("test", "train")


def test_word_frequencies_are_those_of_the_documents(path, X):
    corpus = Corpus(path)
    assert_array_equal(corpus.frequencies, X.sum(axis=0))
    assert_array_equal(corpus.document_frequencies, (X > 0).sum(axis=0))


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_part_is_like_a_corpus_of_its_own(path, X, split):
    part = Corpus(path).select(split=split)
    rows = np.flatnonzero((np.arange(1000) % 10 == 0) if split == "test" else ~np.isin(np.arange(1000) % 10, (0, 9)))
    assert (part.n_docs, part.n_entries) == (len(rows), X[rows].nnz)
    numbers = np.random.default_rng(0).permutation(len(rows))
    assert_same(part.take(numbers), X[rows[numbers]])
    assert part.ids(numbers[:3]) == [f"doc é {i}" for i in rows[numbers[:3]]]
    known = part.select(labelled=True)
    rows = rows[rows % 7 != 0]
    assert_same(known.take(np.arange(known.n_docs)), X[rows])
    fewer = known.without(np.array([2, 0]))
    assert_same(fewer.take(np.arange(fewer.n_docs)), X[np.delete(rows, [0, 2])])


def test_parts_do_not_change_the_whole(path):
    corpus = Corpus(path)
    corpus.select(split="test").select(labelled=False)
    assert corpus.n_docs == 1000
    assert len({corpus.fingerprint, corpus.select(split="test").fingerprint, corpus.select(labelled=True).fingerprint}) == 3


def test_a_part_goes_to_another_process_as_its_name(path, X):
    part = Corpus(path).select(split="train").without(np.arange(20))
    part.take(np.arange(part.n_docs))
    message = pickle.dumps(part)
    assert len(message) < 1000
    again = pickle.loads(message)
    assert again.fingerprint == part.fingerprint
    assert_array_equal(again.take(np.arange(50)).counts, part.take(np.arange(50)).counts)
    with CorpusWriter(path, 3) as writer:
        writer.add(np.ones((5, 3)))
    with pytest.raises(CorpusError, match="holds another corpus than the one that was meant"):
        pickle.loads(message)


def test_what_a_corpus_has_not_is_an_error(path):
    corpus = Corpus(path)
    with pytest.raises(ValueError, match=r"no split 'dev'; its splits are \['test', 'train'\]"):
        corpus.select(split="dev")
    with pytest.raises(IndexError, match="0 to 999, got 3 to 1000"):
        corpus.take(np.array([1000, 3]))


def test_blocks_and_shards_that_are_just_full(tmp_path, monkeypatch):
    """Shards of two blocks, and every number of documents about their ends."""
    for module in ("shards", "selection", "manifest"):
        monkeypatch.setattr(f"mirrorlda.data.corpus.{module}.SHARD_DOCS", 2 * BLOCK_DOCS)
    monkeypatch.setattr("mirrorlda.data.corpus.selection.SHARD_BLOCKS", 2)
    X = counts(4 * BLOCK_DOCS + 1, 50, density=0.1)
    for n_docs in (0, 1, 255, 256, 257, 511, 512, 513, 767, 768, 1024, 1025):
        for step in (100, 256, 2000):
            path = tmp_path / f"{n_docs}-{step}"
            with CorpusWriter(path, 50, target=Target("classes", ("c",))) as writer:
                for first in range(0, n_docs, step):
                    part = np.arange(first, min(first + step, n_docs))
                    writer.add(X[part], [f"class {i % 3}" for i in part])
            corpus = Corpus(path)
            assert corpus.n_docs == n_docs
            assert len(list(path.glob("*/*.shard"))) == -(-n_docs // 512)
            assert_same(corpus.take(np.arange(n_docs)), X[:n_docs])
            if n_docs:
                assert_array_equal(corpus.targets(np.arange(n_docs))[0], [f"class {i % 3}" for i in range(n_docs)])
            corpus.verify()


@pytest.mark.parametrize("n_words", [100, 2**16, 2**16 + 1, 2**24, 2**24 + 1])
def test_words_take_as_few_bytes_as_hold_them(tmp_path, n_words):
    rng = np.random.default_rng(0)
    indices = rng.integers(0, n_words, (200, 60))
    indices[0, -1], indices[1, 0] = n_words - 1, 0
    X = sp.csr_array((np.ones(12_000, np.float32), indices.ravel(), np.arange(0, 12_001, 60)), shape=(200, n_words))
    X.sum_duplicates()
    with CorpusWriter(tmp_path / "c", n_words) as writer:
        writer.add(X)
    assert_same(Corpus(tmp_path / "c").take(np.arange(200)), X)
    shard = next((tmp_path / "c").glob("*/*.shard"))
    assert shard.stat().st_size <= X.nnz * (word_bytes(n_words) + 1) + 200 * 4 + 100


@pytest.mark.parametrize("high", [3, 300, 70_000, 5_000_000])
def test_whole_counts_take_at_most_six_bytes_with_their_word(tmp_path, high):
    X = counts(3000, 200_000, high=high, density=6e-4)
    X.data[:3] = 254, 255, 256
    if high > 300:
        X.data[10:13] = 65_534, 65_535, 65_536
    with CorpusWriter(tmp_path / "c", 200_000) as writer:
        writer.add(X)
    assert_same(Corpus(tmp_path / "c").take(np.arange(3000)), X)
    shard = next((tmp_path / "c").glob("*/*.shard"))
    if high <= 70_000:
        assert shard.stat().st_size <= 6 * X.nnz


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_weights_come_back_to_the_bit(tmp_path, dtype):
    X = counts(300, 500, density=0.05).astype(dtype)
    X.data = np.random.default_rng(0).random(X.nnz).astype(dtype)
    with CorpusWriter(tmp_path / "c", 500) as writer:
        writer.add(X)
    assert_array_equal(Corpus(tmp_path / "c").take(np.arange(300), dtype).counts, X.data)


@given(
    documents=st.lists(
        st.dictionaries(st.integers(0, 30), st.integers(0, 100_000) | st.floats(0, 999999995904.0, width=32), max_size=8),
        max_size=30,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_counts_come_back(tmp_path_factory, documents):
    X = np.zeros((len(documents), 31), np.float32)
    for row, document in enumerate(documents):
        for word, count in document.items():
            X[row, word] = count
    path = tmp_path_factory.mktemp("any") / "c"
    with CorpusWriter(path, 31) as writer:
        writer.add(X)
    corpus = Corpus(path)
    assert_array_equal(corpus.matrix().toarray(), X)
    corpus.verify()


# Targets


def test_classes_of_any_one_type(tmp_path):
    for values in (["b", None, "a"], [3, None, 1], [True, False, None], [0.5, np.nan, 2.0]):
        with CorpusWriter(tmp_path / "c", 2, target=Target("classes", ("c",))) as writer:
            writer.add(np.ones((3, 2)), values)
        corpus = Corpus(tmp_path / "c")
        y, labelled = corpus.targets(np.arange(3))
        assert labelled.tolist() == [not (v is None or v != v) for v in values]
        assert y[labelled].tolist() == [v for v in values if not (v is None or v != v)]
        assert corpus.target.values == tuple(v for v in values if not (v is None or v != v))


def test_labels_come_back_as_a_matrix(tmp_path):
    with CorpusWriter(tmp_path / "c", 2, target=Target("labels", ("tags",))) as writer:
        writer.add(np.ones((5, 2)), [["x", "b"], [], None, ["a", "a"], ["b"]])
    corpus = Corpus(tmp_path / "c")
    y, labelled = corpus.targets(np.array([4, 0, 2, 1, 3]))
    assert corpus.labels == ["a", "b", "x"]
    assert labelled.tolist() == [True, True, False, True, True]
    assert y.tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_several_numbers_a_document(tmp_path):
    with CorpusWriter(tmp_path / "c", 2, target=Target("numbers", ("u", "v"))) as writer:
        writer.add(np.ones((2, 2)), [[1, 2], [None, None]])
        writer.add(np.ones((1, 2)), np.array([[3.5, -1]]))
    y, labelled = Corpus(tmp_path / "c").targets(np.arange(3))
    assert labelled.tolist() == [True, False, True]
    assert y[labelled].tolist() == [[1, 2], [3.5, -1]]


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("numbers", [1, np.inf], r"y\[1\] is infinite"),
        ("numbers", ["a", 1], "targets must be numbers: could not convert"),
        ("numbers", [[1, 2], [3, 4]], r"2 numbers a document, but the target has the names \('t',\)"),
        ("numbers", [1], "2 documents, but 1 values of y"),
        ("classes", ["a", 1], "one type; 'a' is str, 1 int"),
        ("classes", [["a"], "b"], r"a string, a number or a boolean, got \['a'\]"),
    ],
)
def test_targets_that_are_none(tmp_path, kind, y, message):
    with pytest.raises(ValueError, match=message), CorpusWriter(tmp_path / "c", 2, target=Target(kind, ("t",))) as writer:
        writer.add(np.ones((2, 2)), y)
    assert not (tmp_path / "c").exists()


def test_a_document_has_all_its_numbers_or_none(tmp_path):
    with (
        pytest.raises(ValueError, match=r"y\[1\] has some targets but not all"),
        CorpusWriter(tmp_path / "c", 2, target=Target("numbers", ("u", "v"))) as writer,
    ):
        writer.add(np.ones((2, 2)), [[1, 2], [None, 3]])


# Words


def test_the_vocabulary_comes_back_with_its_definition(tmp_path):
    definition = TextDefinition(lowercase=False, bigrams=True, stop_words=("the",))
    vocabulary = Vocabulary(["naïve", "a b", "日本"], definition)
    with CorpusWriter(tmp_path / "c", 3, vocabulary=vocabulary) as writer:
        writer.add(np.eye(3))
    assert Corpus(tmp_path / "c").vocabulary == vocabulary
    assert Corpus(tmp_path / "c").vocabulary.words == ["naïve", "a b", "日本"]


def test_a_corpus_of_numbered_words_has_no_vocabulary(path):
    assert Corpus(path).vocabulary is None


def test_the_writer_says_what_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match="2 words where n_words is 3"):
        CorpusWriter(tmp_path / "c", 3, vocabulary=Vocabulary(["a", "b"]))
    with pytest.raises(ValueError, match="X has 4 words where the corpus has 3"), CorpusWriter(tmp_path / "c", 3) as writer:
        writer.add(np.ones((1, 4)))
    with (
        pytest.raises(ValueError, match="ids must be given for all documents or for none"),
        CorpusWriter(tmp_path / "c", 3) as writer,
    ):
        add_all(writer, {"X": np.ones((1, 3)), "ids": ["a"]}, {"X": np.ones((1, 3))})
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file; a corpus is a directory"):
        CorpusWriter(tmp_path / "file", 3)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("")
    with pytest.raises(FileExistsError, match="not a corpus"):
        CorpusWriter(tmp_path / "folder", 3)


# Survival


def test_an_error_while_writing_leaves_what_was_there(path, X):
    with pytest.raises(ValueError, match="Negative"), CorpusWriter(path, 3) as writer:
        add_all(writer, {"X": np.ones((500, 3))}, {"X": -np.ones((1, 3))})
    assert len(list(path.iterdir())) == 2
    assert_same(Corpus(path).take(np.arange(1000)), X)


def test_a_new_corpus_takes_the_place_of_the_old(path, X):
    old = Corpus(path)
    old.take(np.arange(10))
    with CorpusWriter(path, 3) as writer:
        writer.add(np.ones((500, 3)))
    assert len(list(path.iterdir())) == 2
    assert Corpus(path).shape == (500, 3)
    if sys.platform != "win32":
        assert_same(old.take(np.arange(1000)), X)


WRITES = """
    import sys
    import numpy as np
    from mirrorlda import CorpusWriter
    print("ready", flush=True)
    for number in range(10**6):
        with CorpusWriter(sys.argv[1], 20) as writer:
            writer.add(np.full((700, 20), number % 200 + 1))
            writer.add(np.full((300, 20), number % 200 + 1))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_killed_writer_leaves_a_whole_corpus_or_none(tmp_path):
    rng = np.random.default_rng(0)
    for kill in range(5):
        path = tmp_path / f"{kill // 2}"
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITES), path], stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            process.wait(rng.uniform(0, 0.2))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        if (path / "corpus.json").exists():
            corpus = Corpus(path)
            corpus.verify()
            assert corpus.n_docs == 1000
            assert len(np.unique(corpus.take(np.arange(1000)).counts)) == 1
        else:
            with pytest.raises(CorpusError, match="is not a corpus"):
                Corpus(path)
    with CorpusWriter(path, 20) as writer:
        writer.add(np.ones((10, 20)))
    assert Corpus(path).n_docs == 10
    assert len(list(path.iterdir())) == 2, "what the killed writers left is gone"


def read_all(path):
    corpus = Corpus(path)
    corpus.verify()
    corpus.vocabulary  # noqa: B018
    numbers = np.arange(corpus.n_docs)
    documents = corpus.take(numbers)
    assert np.isfinite(documents.counts).all()
    if corpus.target is not None:
        corpus.targets(numbers)
    corpus.ids(numbers)
    for split in corpus.splits:
        corpus.select(split=split).take(np.arange(3))


@pytest.fixture
def small(tmp_path):
    X = counts(300, 40, density=0.1)
    X.data[5] = 300
    with CorpusWriter(
        tmp_path / "s", 40, vocabulary=Vocabulary([f"word{i}" for i in range(40)]), target=Target("labels", ("l",))
    ) as writer:
        writer.add(X, [["a"] if i % 2 else ["b", "c"] for i in range(300)], ids=list(map(str, range(300))), split=["t"] * 300)
    return tmp_path / "s"


def test_every_altered_byte_is_noticed(small):
    """Of every file; the few that do not matter are padding."""
    rng = np.random.default_rng(0)
    unnoticed, messages = 0, []
    files = [file for file in small.rglob("*") if file.is_file()]
    for file in files:
        content = bytearray(file.read_bytes())
        for place in rng.choice(len(content), min(len(content), 150), replace=False):
            before = content[place]
            content[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(content)
            try:
                read_all(small)
            except CorpusError as error:
                messages.append(str(error))
            else:
                unnoticed += 1
            content[place] = before
        file.write_bytes(content)
    read_all(small)
    assert unnoticed <= 5
    assert [message for message in messages if str(small) not in message] == []


def test_every_truncated_file_is_noticed_when_the_corpus_is_opened(small):
    for file in [file for file in small.rglob("*") if file.is_file()]:
        content = file.read_bytes()
        for length in (0, 1, len(content) // 2, len(content) - 1):
            file.write_bytes(content[:length])
            with pytest.raises(CorpusError, match=file.name):
                Corpus(small)
        file.unlink()
        with pytest.raises(CorpusError, match=r"is missing|has no file"):
            Corpus(small)
        file.write_bytes(content)


def forged(path, change):
    """The description with a change, and the checksum to match."""
    content = json.loads((path / "corpus.json").read_bytes())
    change(content["corpus"])
    content["checksum"] = zlib.crc32(canonical(content["corpus"]).encode())
    (path / "corpus.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(generation="../../etc"),
        lambda about: about.update(n_docs=10**15),
        lambda about: about.update(n_words=-1),
        lambda about: about.update(n_words=39),
        lambda about: about.update(n_words=2**40),
        lambda about: about.update(splits="train"),
        lambda about: about.update(shards=None),
        lambda about: about.update(target={"kind": "labels", "names": ["l"], "values": ["a"]}),
        lambda about: about.update(target={"kind": "numbers", "names": ["l"], "values": []}),
        lambda about: about["shards"][0].update(n_docs=299),
        lambda about: about["shards"][0]["columns"].update(sizes=[0, 1200, 0]),
        lambda about: about["shards"][0]["columns"].update(blocks=[2**61, 24, 0]),
        lambda about: about["shards"][0]["columns"].pop("ids"),
        lambda about: about["shards"][0].update(columns=[]),
        lambda about: about["words"]["columns"].pop("offsets"),
        lambda about: about["words"]["columns"].update(offsets=[0, 8, 0]),
        lambda about: about.update(text={"lowercase": "yes"}),
        lambda about: about.update(text={"surprise": True}),
    ],
)
def test_a_forged_description_is_refused(small, change):
    forged(small, change)
    with pytest.raises(CorpusError):
        read_all(small)


def test_what_is_no_corpus_says_so(tmp_path, small):
    with pytest.raises(CorpusError, match="there is no such directory"):
        Corpus(tmp_path / "nothing")
    with pytest.raises(CorpusError, match=r"it has no file corpus\.json"):
        Corpus(tmp_path)
    for text, message in (
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "does not describe a corpus"),
        ('{"format": "mirrorlda corpus", "version": 2}', "has the version 2; this release of mirrorlda reads version 1"),
    ):
        (small / "corpus.json").write_text(text)
        with pytest.raises(CorpusError, match=message):
            Corpus(small)


@pytest.mark.parametrize("what", ["word out of range", "word twice", "negative count", "sizes"])
def test_blocks_that_are_forged_with_their_checksums_are_refused(tmp_path, what):
    """A block's bytes: two words of 2 bytes each, two counts of 1, then the place (4) and value (8) of the one that is large."""
    with CorpusWriter(tmp_path / "f", 40) as writer:
        writer.add(sp.csr_array(([1, 70_000], [3, 7], [0, 2]), shape=(1, 40)))
    file = next((tmp_path / "f").glob("*/*.shard"))
    content = bytearray(file.read_bytes())
    about = json.loads((tmp_path / "f" / "corpus.json").read_bytes())["corpus"]["shards"][0]["columns"]
    table, sizes = about["blocks"][0], about["sizes"][0]
    assert content[:6] == bytes([3, 0, 7, 0, 1, 255])
    place, value = {"word out of range": (2, 40), "word twice": (2, 3), "negative count": (17, 0xC0), "sizes": (sizes, 1)}[what]
    content[place] = value
    content[table + 20 : table + 24] = zlib.crc32(content[:18]).to_bytes(4, "little")
    file.write_bytes(content)

    def change(about):
        columns = about["shards"][0]["columns"]
        for name, (begin, length, _) in list(columns.items()):
            columns[name] = [begin, length, zlib.crc32(content[begin : begin + length])]

    forged(tmp_path / "f", change)
    with pytest.raises(CorpusError, match=r"block 0 \(bytes 0 to 18\) does not hold documents"):
        Corpus(tmp_path / "f").take(np.arange(1))


def test_opening_reads_no_documents(path, monkeypatch):
    """So that it takes no longer for a large corpus."""
    read = []
    monkeypatch.setattr("mirrorlda.data.corpus.shards.Shard.column", lambda shard, name: read.append(name))
    Corpus(path)
    assert read == []


# What must not cost a corpus that is there


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"n_words": 0}, ValueError),
        ({"n_words": 2**31}, ValueError),
        ({"n_words": 2.5}, TypeError),
    ],
)
def test_a_writer_that_cannot_begin_leaves_the_corpus(path, settings, error):
    with pytest.raises(error):
        CorpusWriter(path, **settings)
    assert Corpus(path).n_docs == 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("classes", "stars"), "names of a target must be a tuple of strings, got 'stars'"),
        (("classes", (1,)), "names of a target must be a tuple of strings"),
        (("numbers", ()), "names of a target must be a tuple of strings"),
        (("classes", ("a", "b")), "classes are in one column"),
        (("float", ("a",)), "the kind of a target must be one of"),
    ],
)
def test_targets_are_described_soundly(arguments, message):
    with pytest.raises(ValueError, match=message):
        Target(*arguments)


def test_files_of_others_are_not_taken_for_a_corpus(tmp_path):
    (tmp_path / "corpus.json").write_text('{"mine": true}')
    with pytest.raises(FileExistsError, match=r"other files in it \(corpus\.json\), not a corpus"):
        CorpusWriter(tmp_path, 3)


def test_a_writer_is_used_within_its_block(tmp_path):
    writer = CorpusWriter(tmp_path / "c", np.int64(3))
    with pytest.raises(ValueError, match="within its `with` block"):
        writer.add(np.ones((1, 3)))
    with writer:
        writer.add(np.ones((1, 3)))
    with pytest.raises(ValueError, match="within its `with` block"):
        writer.add(np.ones((1, 3)))
    assert Corpus(tmp_path / "c").n_docs == 1


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("classes", ["a\0", "a"], "the character NUL"),
        ("classes", [2**63, 1], "at most 64 bits"),
        ("labels", ["ab", ["a"]], "must be a list, got the string 'ab'"),
    ],
)
def test_classes_that_would_not_come_back_are_refused(tmp_path, kind, y, message):
    with pytest.raises(ValueError, match=message), CorpusWriter(tmp_path / "c", 2, target=Target(kind, ("t",))) as writer:
        writer.add(np.ones((2, 2)), y)


def test_documents_are_asked_for_by_numbers(path):
    corpus = Corpus(path)
    assert corpus.without([]).n_docs == 1000
    with pytest.raises(ValueError, match="by their numbers, got bool"):
        corpus.take(np.ones(1000, bool))


@pytest.mark.skipif(sys.platform == "win32", reason="open files stay")
def test_an_open_corpus_stays_when_another_takes_its_place(path, X, monkeypatch):
    monkeypatch.chdir(path.parent)
    corpus = Corpus(path.name)
    with CorpusWriter(path, 3) as writer:
        writer.add(np.ones((5, 3)))
    monkeypatch.chdir("/")
    assert_same(corpus.take(np.arange(1000)), X)
    assert corpus.document_frequencies.sum() == X.nnz


@pytest.mark.parametrize("golden", sorted((Path(__file__).parents[1] / "golden").glob("corpus*/expected.json")), ids=str)
def test_golden_corpora_open_and_hold_what_they_did(golden):
    expected = json.loads(golden.read_text())
    corpus = Corpus(golden.parent / "corpus")
    corpus.verify()
    assert corpus.matrix().toarray().tolist() == expected["X"]
    assert corpus.ids(np.arange(300)) == expected["ids"]
    assert (
        corpus.select(split="test").ids([0, 1])
        == [i for i, s in zip(expected["ids"], expected["split"], strict=True) if s == "test"][:2]
    )
    y, labelled = corpus.targets(np.arange(300))
    found = [
        [name for name, there in zip(corpus.labels, row, strict=True) if there] if known else None
        for row, known in zip(y, labelled, strict=True)
    ]
    assert found == expected["labels"]
    assert corpus.vocabulary.words == ["na\u00efve", "room", "clean room", "2nd"]
    assert corpus.vocabulary.definition == TextDefinition(bigrams=True, stop_words=("the",))


def test_there_is_a_golden_corpus_of_every_version():
    assert {path.name for path in (Path(__file__).parents[1] / "golden").glob("corpus*")} == {
        f"corpus{n + 1}" for n in range(VERSION)
    }
