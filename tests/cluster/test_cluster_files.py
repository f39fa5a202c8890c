"""Files on a cluster: prepared and predicted by several processes, equal to the bit to what one machine writes."""

import csv
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from mirrorlda.readers import BadFileError, BadRowError

from mirrorlda import Corpus, TextDefinition, TopicClassifier, TopicModel, Vocabulary, predict_files, prepare
from mirrorlda.cli import main
from mirrorlda.data.corpus.manifest import read_description

pytestmark = pytest.mark.xdist_group("ray")

GOOD, BAD = ["clean", "quiet", "friendly", "sunny"], ["dirty", "noisy", "rude", "dark"]
SIZES = [70, 0, 31, 99]


@pytest.fixture(scope="module")
def cluster(machines):
    from mirrorlda.distributed import Cluster

    with Cluster(machines.address) as cluster:
        import ray.cloudpickle

        # Workers cannot import the tests.
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        yield cluster


def rows_of(number, n_rows):
    """Rows of a file; each has classes and splits that the files before do not."""
    rng = np.random.default_rng(number)
    rows = []
    for row in range(n_rows):
        good = int(rng.integers(0, 7))
        words = [*rng.choice(GOOD, good), *rng.choice(BAD, 6 - good), "room", f"Hôtel{rng.integers(50)}"]
        rows.append(
            {
                "id": f"{number}-{row}",
                "review": " ".join(rng.permutation(words)) + ('\n, "and"' if row % 9 == 0 else ""),
                "stars": None if row % 11 == 5 else 1 + good / 2,
                "cleanliness": None if row % 11 == 5 else good,
                "verdict": None if row % 13 == 2 else ["bad", "fair", "good", "best"][(good + number) % 4],
                "tags": None if row % 7 == 6 else [f"t{tag}" for tag in rng.permutation(2 + number)[: rng.integers(3)]],
                "part": [None, "train", "test", "later"][int(rng.integers(min(4, 2 + number)))],
            }
        )
    return rows


@pytest.fixture(scope="module", params=["csv", "jsonl", "parquet"])
def files(request, tmp_path_factory):
    """Files of one format, one of them without rows, named in the order of their numbers."""
    folder = tmp_path_factory.mktemp(request.param)
    for number, n_rows in enumerate(SIZES):
        path, rows = folder / f"{number}.{request.param}", rows_of(number, n_rows)
        if request.param == "parquet":
            lists = pa.list_(pa.string())
            kinds = {"stars": pa.float64(), "cleanliness": pa.int64(), "tags": lists}
            schema = pa.schema({name: kinds.get(name, pa.string()) for name in rows_of(0, 1)[0]})
            pq.write_table(pa.Table.from_pylist(rows, schema), path)
            continue
        with open(path, "w", encoding="utf-8", newline="") as file:
            if request.param == "jsonl":
                file.writelines(json.dumps(row) + "\n" for row in rows)
            else:
                writer = csv.DictWriter(file, rows_of(0, 1)[0])
                writer.writeheader()
                writer.writerows({**row, "tags": None if row["tags"] is None else ";".join(row["tags"]) or ";"} for row in rows)
    return str(folder / f"*.{request.param}")


@pytest.fixture
def model(files, tmp_path):
    corpus = prepare(files, tmp_path / "learned", text="review", target="verdict")
    return TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(corpus)


def table(path):
    return pq.read_table(path)


@pytest.mark.parametrize("columns", ["all", ("id", "stars")])
@pytest.mark.slow
def test_predictions_for_files_are_those_of_one_machine(cluster, files, model, tmp_path, columns):
    given = {"text": "review", "columns": columns, "topics": True}
    n_docs = predict_files(model, files, tmp_path / "one.parquet", **given)
    assert predict_files(model, files, tmp_path / "many.parquet", cluster=cluster, **given) == n_docs == sum(SIZES)
    assert sorted(os.listdir(tmp_path / "many.parquet")) == [f"part-0000{number}.parquet" for number in range(len(SIZES))]
    one, many = table(tmp_path / "one.parquet"), table(tmp_path / "many.parquet")
    assert many.schema.equals(one.schema)
    assert many.equals(one)


def test_predictions_for_a_corpus_are_those_of_one_machine(cluster, many_documents, tmp_path):
    corpus = Corpus(many_documents["one"])
    model = TopicModel(n_topics=2, n_epochs=1, random_state=0).fit(corpus.select(split="test"))
    for documents in (corpus, corpus.select(split="train")):
        predict_files(model, documents, tmp_path / "one.parquet")
        assert predict_files(model, documents, tmp_path / "many.parquet", cluster=cluster) == documents.n_docs
        assert table(tmp_path / "many.parquet").equals(table(tmp_path / "one.parquet"))
    assert len(os.listdir(tmp_path / "many.parquet")) == 2


def test_what_cannot_be_predicted_says_why_and_leaves_nothing(cluster, tmp_path):
    lines = ["review,verdict", *["Clean quiet room.,good", "Noisy dirty room!,bad"] * 20]
    for name, more in (("a", ""), ("b", "too,many,fields\n"), ("c", "too,many,fields\n")):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n" + more)
    model = TopicClassifier(n_topics=2, n_epochs=1, random_state=0).fit(
        prepare(tmp_path / "a.csv", tmp_path / "corpus", text="review", target="verdict")
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    before = sorted(os.listdir(tmp_path))
    given = {"text": "review", "cluster": cluster}
    with pytest.raises(BadRowError, match=r"b\.csv:42"):
        predict_files(model, str(tmp_path / "?.csv"), tmp_path / "out.parquet", **given)
    with pytest.raises(FileExistsError, match="other files"):
        predict_files(model, tmp_path / "a.csv", tmp_path / "mine", **given)
    with pytest.raises(ValueError, match="folder of Parquet files"):
        predict_files(model, tmp_path / "a.csv", tmp_path / "out.csv", **given)
    with pytest.raises(ValueError, match="folder of Parquet files"):
        predict_files(model, tmp_path / "a.csv", tmp_path / "out", output_format="jsonl", **given)
    assert sorted(os.listdir(tmp_path)) == before
    with pytest.warns(UserWarning, match="2 bad rows skipped, 120 read"):
        predict_files(model, str(tmp_path / "?.csv"), tmp_path / "out.parquet", bad_rows="skip", **given)


def test_columns_have_one_type_in_all_parts(cluster, tmp_path):
    """The values of one file do not tell the types of all."""
    rows = [[{"n": None, "tags": []}], [{"n": 1.5, "tags": ["a"]}], [{"n": 2, "tags": None}]]
    for number, part in enumerate(rows):
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps({"text": "clean room", **row}) + "\n" for row in part))
    model = TopicModel(n_topics=2, n_epochs=1, random_state=0).fit(
        prepare(str(tmp_path / "?.jsonl"), tmp_path / "corpus", text="text")
    )
    given = {"text": "text", "columns": ["n", "tags"]}
    predict_files(model, str(tmp_path / "?.jsonl"), tmp_path / "one.parquet", **given)
    predict_files(model, str(tmp_path / "?.jsonl"), tmp_path / "many.parquet", cluster=cluster, **given)
    one, parts = table(tmp_path / "one.parquet"), sorted((tmp_path / "many.parquet").iterdir())
    assert all(pq.read_schema(part).equals(one.schema) for part in parts)
    assert table(tmp_path / "many.parquet").equals(one)
    (tmp_path / "3.jsonl").write_text(json.dumps({"text": "clean room", "n": "many", "tags": None}) + "\n")
    with pytest.raises(ValueError, match=r"'n' holds string in part-00003\.parquet, expected double"):
        predict_files(model, str(tmp_path / "?.jsonl"), tmp_path / "many.parquet", cluster=cluster, **given)
    assert table(tmp_path / "many.parquet").equals(one)


def same(one, many):
    """That two corpora are the same, to the bit, and that there is nothing else beside them."""
    one, many = Corpus(one), Corpus(many)
    assert many.fingerprint == one.fingerprint
    many.verify()
    names = [sorted(found.name for found in corpus.path.rglob("*.*") if found.is_file()) for corpus in (one, many)]
    assert names[0] == names[1]
    assert many.vocabulary == one.vocabulary
    return many


@pytest.mark.parametrize(
    "columns",
    [
        {"target": "verdict", "id": "id", "split": "part"},
        {"target": "stars", "test_fraction": 0.3, "seed": 5, "max_words": 9},
        {"target": ["stars", "cleanliness"], "min_docs": 3, "max_docs_fraction": 0.5},
        {"target": "tags", "target_kind": "labels", "split": "part"},
        {"definition": TextDefinition(bigrams=True)},
    ],
    ids=["classes", "numbers", "several numbers", "labels", "no target"],
)
def test_a_corpus_is_that_of_one_machine(cluster, files, tmp_path, columns):
    if columns.get("target") == "tags" and files.endswith("csv"):
        columns = columns | {"label_separator": ";"}
    prepare(files, tmp_path / "one", text="review", **columns)
    assert prepare(files, tmp_path / "many", text="review", cluster=cluster, **columns).n_docs == sum(SIZES)
    same(tmp_path / "one", tmp_path / "many")


@pytest.fixture(scope="module")
def many_documents(cluster, tmp_path_factory):
    """More than a shard holds, in files that do not end where shards do."""
    folder = tmp_path_factory.mktemp("many")
    for number, n_rows in enumerate((40_000, 30_000, 1)):
        rng = np.random.default_rng(number)
        words, tags = rng.integers(0, 500, (n_rows, 3)), rng.integers(0, 3 + number, (n_rows, 2))
        with open(folder / f"{number}.csv", "w") as file:
            file.write("text,tags,id\n")
            file.writelines(
                f"w{a} w{b} w{c},t{s};t{t},{i}\n" for i, ((a, b, c), (s, t)) in enumerate(zip(words, tags, strict=True))
            )
    given = {"text": "text", "target": "tags", "label_separator": ";", "id": "id", "test_fraction": 0.02}
    prepare(str(folder / "*.csv"), folder / "one", **given)
    prepare(str(folder / "*.csv"), folder / "many", cluster=cluster, **given)
    return {"one": folder / "one", "many": folder / "many"}


def test_shards_are_cut_as_one_machine_cuts_them(many_documents):
    assert len(read_description(same(**many_documents).path)["shards"]) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [("0.svm", "1 1:2 7:0.1\n0 3:1\n"), ("docword.0.txt", "2\n7\n2\n1 3 2\n2 7 1\n"), ("0/good/a.txt", "clean room")],
    ids=["svmlight", "uci", "folder"],
)
def test_other_formats(cluster, tmp_path, monkeypatch, name, content):
    """By relative names, which mean nothing to a process in another directory."""
    for number, text in enumerate((content, content.replace("7:0.1", "9:0.7").replace("clean", "sunny"))):
        path = tmp_path / name.replace("0", str(number))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    files = sorted({path.parts[0] for path in (found.relative_to(tmp_path) for found in tmp_path.rglob("*.*"))})
    given = {"svm": {"target": "label"}}.get(name[-3:], {"target": "folder", "id": "path"} if "/" in name else {})
    prepare(files, "one", **given)
    prepare(files, "many", cluster=cluster, **given)
    same("one", "many")


def test_the_kind_of_a_target_follows_from_all_files(cluster, tmp_path):
    for name, value in (("a", "1"), ("b", "0"), ("c", "")):
        (tmp_path / f"{name}.csv").write_text(f"text,y\nclean room,{value}\n")
    given = {"text": "text", "target": "y", "target_kind": "auto", "cluster": cluster}
    assert prepare(str(tmp_path / "?.csv"), tmp_path / "two", **given).target.values == ("1", "0")
    (tmp_path / "d.csv").write_text("text,y\nclean room,0.5\n")
    assert prepare(str(tmp_path / "?.csv"), tmp_path / "three", **given).target.kind == "numbers"
    (tmp_path / "e.csv").write_text("text,y\nclean room,good\n")
    with pytest.raises(ValueError, match=r"3 numbers and 1 other values, the first 'good' in .*e\.csv:2"):
        prepare(str(tmp_path / "?.csv"), tmp_path / "none", **given)


def test_what_cannot_be_prepared_says_why_and_leaves_nothing(cluster, tmp_path):
    for name, value in (("a", "1"), ("b", "much"), ("c", "more")):
        (tmp_path / f"{name}.jsonl").write_text(
            '{"text": "clean", "y": 1, "part": "x"}\n' + f'{{"text": "room", "y": "{value}"}}\n'
        )
    names = str(tmp_path / "?.jsonl")
    given = {"text": "text", "target": "y", "cluster": cluster}
    with pytest.raises(BadRowError, match=r"a\.jsonl:2:23.*number"):
        prepare(names, tmp_path / "corpus", target_kind="numbers", **given)
    with pytest.raises(BadFileError, match="classes must be of one type"):
        prepare(names, tmp_path / "corpus", target_kind="classes", **given)
    with pytest.raises(BadFileError, match=r"c\.jsonl: no column 'z'"):
        prepare(names, tmp_path / "corpus", **(given | {"target": "z"}))
    with pytest.raises(ValueError, match="no word is left"):
        prepare(names, tmp_path / "corpus", target_kind="classes", min_docs=9, **given)
    with pytest.raises(ValueError, match="got a stream"), open(tmp_path / "a.jsonl", "rb") as stream:
        prepare(stream, tmp_path / "corpus", format="jsonl", **given)
    (tmp_path / "text.jsonl").write_text('{"text": "clean", "y": "1"}\n')
    (tmp_path / "whole.jsonl").write_text('{"text": "clean", "y": 2}\n')
    with pytest.raises(BadFileError, match=r"whole\.jsonl: classes must be of one type; '1' is str, 2 int"):
        prepare([tmp_path / "text.jsonl", tmp_path / "whole.jsonl"], tmp_path / "corpus", target_kind="classes", **given)
    assert not (tmp_path / "corpus").exists()
    with pytest.warns(UserWarning, match="3 bad rows skipped, 3 read"):
        prepare(names, tmp_path / "corpus", target_kind="numbers", bad_rows="skip", **given)


class Dying(Vocabulary):
    """Words; the process that counts them for the third time is killed, if none has been before."""

    n_counts = 0

    def __reduce__(self):
        return Dying.of, (*self.arrays(), self.definition, self.marker)

    @classmethod
    def of(cls, letters, offsets, definition, marker):
        words = cls.from_arrays(letters, offsets, definition)
        words.marker = marker
        return words

    def count(self, texts, n_threads=1):
        self.n_counts += 1
        if self.n_counts == 3 and not os.path.exists(self.marker):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().count(texts, n_threads)


@pytest.mark.slow
def test_a_killed_process_does_not_show(cluster, tmp_path):
    for number in range(3):
        with open(tmp_path / f"{number}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows_of(number, 60))
    files = str(tmp_path / "*.jsonl")
    given = {"text": "review", "target": "verdict", "batch_rows": 10}
    one = prepare(files, tmp_path / "one", **given)
    words = Dying.of(*one.vocabulary.arrays(), one.vocabulary.definition, str(tmp_path / "prepared"))
    prepare(files, tmp_path / "many", cluster=cluster, vocabulary=words, **given)
    assert (tmp_path / "prepared").exists()
    same(tmp_path / "one", tmp_path / "many")

    model = TopicClassifier(n_topics=2, n_epochs=1, random_state=0).fit(one)
    predict_files(model, files, tmp_path / "one.parquet", text="review", batch_rows=10)
    words.marker = str(tmp_path / "predicted")
    model.vocabulary_ = words
    predict_files(model, files, tmp_path / "many.parquet", text="review", batch_rows=10, cluster=cluster)
    assert (tmp_path / "predicted").exists()
    assert table(tmp_path / "many.parquet").equals(table(tmp_path / "one.parquet"))
    assert not list(tmp_path.glob(".mirrorlda*"))


def test_a_corpus_behind_a_url_is_predicted(cluster, many_documents, tmp_path, monkeypatch):
    monkeypatch.setenv("MIRRORLDA_CACHE", str(tmp_path / "cache"))
    corpus = Corpus(many_documents["one"].as_uri())
    model = TopicModel(n_topics=2, n_epochs=1, random_state=0).fit(Corpus(many_documents["one"]).select(split="test"))
    documents = corpus.select(split="test")
    predict_files(model, Corpus(many_documents["one"]).select(split="test"), tmp_path / "one.parquet")
    predict_files(model, documents, tmp_path / "many.parquet", cluster=cluster)
    assert table(tmp_path / "many.parquet").equals(table(tmp_path / "one.parquet"))


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_command_works_on_a_cluster(cluster, tmp_path, monkeypatch):
    for number in range(2):
        with open(tmp_path / f"{number}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows_of(number, 60))
    monkeypatch.chdir(tmp_path)
    given = ("0.jsonl", "1.jsonl", "--text", "review", "--target", "verdict", "--quiet")
    for name, more in (("one", ()), ("many", ("--ray", cluster.address))):
        assert run("prepare", *given, "-o", name, *more).exit_code == 0
    same("one", "many")
    assert run("train", "one", "--topics", 2, "--epochs", 1, "--no-baselines", "-o", "model", "--quiet").exit_code == 0
    for name, more in (("one.parquet", ()), ("many.parquet", ("--ray", cluster.address))):
        assert run("predict", "model", "0.jsonl", "1.jsonl", "--text", "review", "-o", name, *more).exit_code == 0
    assert table("many.parquet").equals(table("one.parquet"))
    assert "a folder of Parquet files" in run("predict", "model", "0.jsonl", "--ray", "auto").output


def test_a_cluster_that_is_not_there_is_an_error_of_one_line(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    (tmp_path / "a.csv").write_text("text\nclean room\n")
    result = run("prepare", tmp_path / "a.csv", "--text", "text", "-o", tmp_path / "c", "--ray", "127.0.0.1:1")
    assert result.exit_code == 1
    assert "error: no Ray cluster at '127.0.0.1:1'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists()
