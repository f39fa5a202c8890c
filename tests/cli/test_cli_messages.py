"""Errors and warnings on the command line: they name its options, and leave what users call their own alone."""

import ast
import json
import re
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

import mirrorlda
from mirrorlda import TopicRegressor, prepare
from mirrorlda.cli import main
from mirrorlda.cli.messages import message_for
from mirrorlda.data.messages import Message
from mirrorlda.saving import save_load

VERBS = [main.get_command(None, name) for name in main.list_commands(None)]


def failure(*arguments, **options):
    """What a command says before it gives up."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert result.exit_code == 1, (result.exit_code, result.output, result.exception)
    return result.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of each kind; commands run beside them."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("text,stars,other\nclean room,4,a\nnoisy,NA,b\nbad,3,c\nrude staff,2,d\n")
    Path("semicolons.csv").write_text("text;stars\nclean room;4\n")
    Path("a.txt").write_text("text,stars\nclean room,4\n")
    Path("a.jsonl").write_text('{"text": "clean room", "stars": 4}\n{"text": "bad", "stars": 2}\n')
    Path("a.svmlight").write_text("1 1:2 3:1\n0 2:1\n")
    (tmp_path / "texts" / "good").mkdir(parents=True)
    (tmp_path / "texts" / "good" / "a.txt").write_text("clean room")
    return tmp_path


PREPARE = ["prepare", "-q", "-o", "c"]
A = [*PREPARE, "a.csv", "--text", "text"]
TRAIN = ["train", "a.csv", "--text", "text", "--target", "stars", "-q", "-o", "m"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (TRAIN, "say --task regression (with --bad-rows skip to leave the others out) or --task classification"),
        (
            [*A, "--target", "stars"],
            "say --target-kind numbers (with --bad-rows skip to leave the others out) or --target-kind classes",
        ),
        ([*PREPARE, "semicolons.csv", "--text", "text"], "is the delimiter ';'? (--delimiter)"),
        ([*A, "--delimiter", "ab"], "--delimiter must be one character, got 'ab'"),
        ([*PREPARE, "a.txt", "--text", "text"], "give --format, one of ['csv', "),
        ([*PREPARE, "a.csv", "--target", "stars", "--target-kind", "classes"], "name the column of the text: --text NAME"),
        ([*PREPARE, "a.csv"], "neither --text nor columns are given"),
        ([*A, "--target", "text"], "is asked for as --text and among columns"),
        ([*PREPARE, "a.svmlight", "--one-based", "--text", "review"], "so that --text must be None, got 'review'"),
        ([*PREPARE, "texts", "--text", "review"], "--text is 'review', expected None or 'text'"),
        ([*A, "--target", "stars", "--target-kind", "labels"], "in the format 'csv': give --label-separator"),
        ([*TRAIN, "--task", "multilabel"], "in the format 'csv': give --label-separator"),
        ([*TRAIN, "--label-separator", "\0"], "--label-separator must be text of one line"),
        (
            [*PREPARE, "a.jsonl", "--text", "text", "--target", "stars", "--label-separator", ";"],
            "--label-separator is for CSV and TSV",
        ),
        (
            [*A, "--target", "stars", "--target-kind", "numbers", "--target", "other", "--label-separator", ";"],
            "--label-separator ';' is given, but no column is asked for as 'labels'",
        ),
        (
            [*A, "--target", "stars", "--target", "other", "--target-kind", "classes"],
            "can only be numbers, got --target-kind 'classes'",
        ),
        ([*A, "--target-kind", "numbers"], "--target-kind must be one of ['numbers', 'classes', 'labels', 'auto']"),
        ([*A, "--min-docs", "9"], "in at least 9 texts (--min-docs) and at most 1 of all (--max-docs-fraction)"),
        ([*A, "--max-docs-fraction", "0"], "--max-docs-fraction must be above 0 and at most 1, got 0.0"),
        (
            [*PREPARE, "a.svmlight", "--one-based", "--max-words", "5"],
            "--max-words, --min-docs, --max-docs-fraction, --min-phrase-docs and "
            "--bigrams/--no-bigrams/--stop-words/--keep-case choose words of text",
        ),
        ([*A, "--target", "stars", "--id", "stars"], "--target, --id and --split must be different columns"),
        ([*A, "--split", "other", "--test-fraction", "0.5"], "--split 'other' and --test-fraction 0.5 both say"),
        ([*A, "--test-fraction", "1"], "--test-fraction must be at least 0 and less than 1"),
        ([*A, "--seed", "-1"], "--seed must be a whole number"),
    ],
)
def test_errors_name_options(folder, arguments, said):
    assert said in failure(*arguments)


@pytest.fixture
def model(folder):
    corpus = prepare("a.jsonl", folder / "corpus", text="text", target="stars")
    save_load.save(TopicRegressor(n_topics=2, n_epochs=1, random_state=0).fit(corpus), folder / "m.mirrorlda")
    return folder / "m.mirrorlda"


def test_errors_of_predictions_name_options(folder, model):
    Path("kept.jsonl").write_text('{"text": "clean", "prediction": 1}\n')
    predicting = ["predict", model, "--text", "text", "-q", "-o", "out.jsonl"]
    assert "are those of the predictions: leave them out of --columns" in failure(*predicting, "kept.jsonl")
    Path("keys.jsonl").write_text('{"text": "clean"}\n' * 8192 + '{"text": "clean", "new": 1}\n')
    assert "expected those of the first batch of rows, 'text': name the --columns wanted" in failure(*predicting, "keys.jsonl")
    Path("other.csv").write_text("text,other\nclean,1\n")
    assert "expected those of the files before" in (said := failure(*predicting, "a.csv", "other.csv"))
    assert said.endswith("name the --columns wanted\n")


def test_warnings_name_options(folder, model):
    Path("keys.jsonl").write_text('{"text": "clean"}\n' * 8192 + '{"text": "clean", "new": 1}\n')
    arguments = ["predict", str(model), "keys.jsonl", "--text", "text", "--bad-rows", "skip", "-q", "-o", "out.jsonl"]
    with warnings.catch_warnings(action="default"):
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: 1 bad rows skipped, 8192 read; the first:\n")
    assert result.stderr.endswith("name the --columns wanted\n")


def test_what_a_user_calls_like_a_parameter_keeps_its_name(folder):
    names = ["max_words", "<format>", "text=...", "target_kind='numbers'"]
    Path("own.jsonl").write_text(json.dumps(dict.fromkeys(names, "clean")) + "\n")
    said = failure(*PREPARE, "own.jsonl", "--text", "min_docs")
    assert f"no column 'min_docs'; there are {', '.join(map(repr, names))}" in said
    Path("label_separator.csv").write_text("max_words,delimiter=\nclean,1\nbad,2\nrude,{}\n")
    said = failure(*PREPARE, "label_separator.csv", "--text", "max_words", "--target", "delimiter=")
    assert said.startswith(
        "error: the column 'delimiter=' has 2 numbers and 1 other values, the first '{}' in label_separator.csv:4:"
    )
    assert "--target-kind numbers" in said


def test_a_parameter_that_a_verb_does_not_have_keeps_its_name():
    error = ValueError(Message("give <format=> or <n_epochs>"))
    assert message_for(None, error) == "give format= or n_epochs"
    report = main.get_command(None, "report")
    assert message_for(report, error) == "give --format or n_epochs"


def test_every_parameter_that_a_message_names_has_an_option():
    names = {
        name
        for file in Path(mirrorlda.__file__).parent.joinpath("data").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Message"
        for name in re.findall(r"<(\w+)", node.args[0].value)
    }
    assert {"format", "target_kind", "definition", "columns"} < names
    for name in names:
        assert any(message_for(verb, ValueError(Message(f"<{name}>"))).startswith("--") for verb in VERBS), name
