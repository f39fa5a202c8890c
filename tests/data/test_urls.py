"""Corpora behind a URL: copied file by file when they are asked for, then mapped like any other."""

import gzip
import os
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mirrorlda.readers import BadRowError
from numpy.testing import assert_array_equal

from mirrorlda import Corpus, CorpusError, CorpusWriter, Target, TextDefinition, TopicClassifier, Vocabulary, prepare

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A corpus of two shards."""
    monkeypatch.setenv("MIRRORLDA_CACHE", str(tmp_path / "cache"))
    for module in ("shards", "selection", "manifest"):
        monkeypatch.setattr(f"mirrorlda.data.corpus.{module}.SHARD_DOCS", 256)
    monkeypatch.setattr("mirrorlda.data.corpus.selection.SHARD_BLOCKS", 1)
    rng = np.random.default_rng(0)
    words = Vocabulary([f"w{i}" for i in range(20)], TextDefinition())
    with CorpusWriter(tmp_path / "c", 20, vocabulary=words, target=Target("classes", ("y",))) as writer:
        X = rng.integers(0, 3, (400, 20))
        writer.add(X, ["ab"[i] for i in (X[:, 0] > 1).astype(int)], ids=[f"d{i}" for i in range(400)])
    return tmp_path / "c"


def cached(path):
    return sorted(found.name for found in (path.parent / "cache").rglob("*") if found.is_file())


@pytest.mark.parametrize("protocol", ["file", "memory"])
def test_a_corpus_behind_a_url_is_the_corpus(path, protocol):
    url = path.as_uri()
    if protocol == "memory":
        url = "memory://bucket/c/"
        fsspec.filesystem("memory").put(str(path), "/bucket/c", recursive=True)
    local, corpus = Corpus(path), Corpus(url)
    assert cached(path) == []
    assert corpus.fingerprint == local.fingerprint
    assert repr(corpus) == repr(local)
    assert corpus.ids(np.array([3])) == ["d3"]
    assert cached(path) == ["00000.shard"]
    assert corpus.vocabulary == local.vocabulary
    assert_array_equal(corpus.matrix().toarray(), local.matrix().toarray())
    assert cached(path) == ["00000.shard", "00001.shard", "words"]
    corpus.verify()
    models = [TopicClassifier(n_topics=2, n_epochs=1, random_state=0).fit(documents) for documents in (corpus, local)]
    assert_array_equal(models[0].components_, models[1].components_)


def test_another_process_opens_it_itself_and_finds_the_files_that_are_there(path):
    corpus = Corpus(path.as_uri()).select(labelled=True)
    expected = corpus.matrix(np.arange(5)).toarray()
    [shard] = (path.parent / "cache").rglob("00000.shard")
    before = shard.stat().st_mtime_ns
    again = pickle.loads(pickle.dumps(corpus))
    assert again.path == path.as_uri()
    assert_array_equal(again.matrix(np.arange(5)).toarray(), expected)
    assert shard.stat().st_mtime_ns == before


def test_what_is_not_there_or_not_whole_says_so(path):
    with pytest.raises(CorpusError, match=r"nothing is not a corpus: it has no file corpus\.json"):
        Corpus((path.parent / "nothing").as_uri())
    corpus = Corpus(path.as_uri())
    [generation] = [name for name in os.listdir(path) if name != "corpus.json"]
    shard = path / generation / "00001.shard"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    with pytest.raises(OSError, match=f"00001.shard has {len(whole) - 1} bytes where {len(whole)} were written"):
        corpus.matrix()
    assert "00001.shard" not in cached(path)
    shard.unlink()
    with pytest.raises(CorpusError, match=r"00001\.shard is missing"):
        corpus.matrix()
    shard.write_bytes(whole)
    (path.parent / "cache" / generation / "00001.shard").write_bytes(b"cut short")
    assert_array_equal(corpus.matrix().toarray(), Corpus(path).matrix().toarray())
    shutil.rmtree(path)
    with pytest.raises(CorpusError, match="not a corpus"):
        pickle.loads(pickle.dumps(corpus))


def test_files_behind_urls_are_prepared(tmp_path):
    """CSV, compressed CSV and Parquet: files are opened again for the second pass, and may seek."""
    bucket = fsspec.filesystem("memory")
    rows = b"text,y\nclean room,1\nnoisy room,2\n"
    bucket.pipe({"/in/a.csv": rows, "/in/b.csv.gz": gzip.compress(rows), "/in/bad.csv": rows + b"room,much\n"})
    pq.write_table(pa.table({"text": ["clean room", "noisy room"], "y": [1, 2]}), tmp_path / "c.parquet")
    bucket.put(str(tmp_path / "c.parquet"), "/in/c.parquet")
    given = {"text": "text", "target": "y"}
    corpora = [prepare(f"memory://in/{name}", tmp_path / name[0], **given) for name in ("a.csv", "b.csv.gz", "c.*")]
    for name, corpus in zip("abc", corpora, strict=True):
        assert corpus.targets(np.arange(2))[0].tolist() == [1, 2], name
        assert corpus.vocabulary.words == ["room", "clean", "noisy"]
    assert prepare("memory://in/[ab].csv*", tmp_path / "two", **given).n_docs == 4
    with pytest.raises(BadRowError, match=r"memory://(/)?in/bad\.csv:4"):
        prepare("memory://in/bad.csv", tmp_path / "bad", target_kind="numbers", **given)
    with pytest.raises(FileNotFoundError, match="no file matches the pattern: 'memory://in/z"):
        prepare("memory://in/z*", tmp_path / "none", **given)
