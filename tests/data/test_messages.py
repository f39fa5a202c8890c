"""Messages that name parameters: what they say in Python, what others can make of them."""

import ast
import pickle
from pathlib import Path

import pytest

import mirrorlda
from mirrorlda import readers
from mirrorlda.data.messages import Message, message_of


def shouted(name, value):
    return f"{name}={value}".upper()


def test_a_message_is_a_string_in_the_words_of_python():
    message = Message("{}: give <format=>, <bad_rows='skip'> or <n_words>; {:g} and {!r}", "a.csv", 0.5, "b")
    assert message == "a.csv: give format=, bad_rows='skip' or n_words; 0.5 and 'b'"
    assert str(ValueError(message)) == message


def test_its_parameters_can_have_other_words():
    message = Message("{}: give <format=>, <bad_rows='skip'> or <n_words>", "a.csv")
    assert message.naming(shouted) == "a.csv: give FORMAT=, BAD_ROWS='SKIP' or N_WORDS=NONE"


def test_a_value_is_no_parameter_unless_it_is_a_message():
    inner = Message("give <format=>, not {}", "<format=>")
    message = Message("{}: {}", "<format> {}", inner)
    assert message == "<format> {}: give format=, not <format=>"
    assert message.naming(shouted) == "<format> {}: give FORMAT=, not <format=>"


def test_the_value_of_a_parameter_may_be_a_value():
    message = Message("<label_separator={!r}> is given", "<x>")
    assert message == "label_separator='<x>' is given"
    assert message.naming(lambda name, value: f"--{name} {value}") == "--label_separator '<x>' is given"


def test_a_message_reaches_another_process():
    for error in (ValueError(Message("give <format=>, {}", 1)), readers.BadRowError("a.csv", 1, None, Message("give <x>"))):
        copy = pickle.loads(pickle.dumps(error))
        assert message_of(copy) == message_of(error)
        assert message_of(copy).naming(shouted) == message_of(error).naming(shouted) != str(error)


def test_other_errors_say_what_they_say():
    assert message_of(ValueError("plain")) == "plain"
    assert message_of(KeyError("x")) == "'x'"
    assert message_of(ValueError()) == ""


def test_a_reason_keeps_its_parameters_in_errors_and_warnings(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": "b", "new": 1}\n')
    reading = readers.read(tmp_path / "a.jsonl", columns="all", batch_rows=1)
    with pytest.raises(readers.BadRowError) as caught:
        list(reading)
    assert str(caught.value).endswith("name the columns wanted")
    assert message_of(caught.value).naming(shouted).endswith("name the COLUMNS=NONE wanted")
    reading = readers.read(tmp_path / "a.jsonl", columns="all", batch_rows=1, bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad rows skipped, 1 read; the first:\n .*name the columns wanted$") as warned:
        list(reading)
    assert message_of(warned[0].message).naming(shouted).endswith("name the COLUMNS=NONE wanted")


def test_templates_are_constants():
    """What a user's file holds cannot be taken for a parameter: it is never part of a template."""
    package = Path(mirrorlda.__file__).parent
    calls = [
        node
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Message"
    ]
    assert len(calls) > 20
    assert all(isinstance(call.args[0], ast.Constant) for call in calls)
