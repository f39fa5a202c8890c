"""The estimators' parameters as options, a file of options, and the configuration that a model was trained with."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from mirrorlda.cli.data import threads
from mirrorlda.cli.sections import Sectioned
from mirrorlda.cli.sections import option as section_option
from mirrorlda.data.files.urls import is_url

F = TypeVar("F", bound=Callable[..., Any])


class _Either(click.ParamType):
    """A word of a few, or a number."""

    def __init__(self, words: tuple[str, ...], number: click.ParamType) -> None:
        self.words, self.number = words, number
        self.name = "|".join((*words, number.name))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self.words:
            return value
        try:
            return self.number.convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{value!r} is neither {' nor '.join(map(repr, self.words))} nor a number: {error.message}", param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join((*self.words, 'NUMBER'))}]"


class _Sizes(click.ParamType):
    """A number, or two: the first and the last."""

    name = "number or pair"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            sizes = [int(part) for part in (value if isinstance(value, list | tuple) else str(value).split(","))]
        except ValueError:
            sizes = []
        if len(sizes) not in (1, 2):
            self.fail(f"{value!r} is neither a whole number nor two of them, as in 100,1000", param, ctx)
        return sizes[0] if len(sizes) == 1 else tuple(sizes)


class _Response(click.ParamType):
    """One of the responses for numbers, which are imported only once one is named."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from mirrorlda.method.responses import OF_NUMBERS

        if value not in OF_NUMBERS:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, OF_NUMBERS))}.", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from mirrorlda.method.responses import OF_NUMBERS

        return [CompletionItem(name) for name in OF_NUMBERS if name.startswith(incomplete)]


class _Seeds(click.ParamType):
    """Words that a topic should be about, as in clean=clean,tidy,spotless."""

    name = "topic=word,word"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        topic, equals, words = str(value).partition("=")
        if not equals or not topic or not words:
            self.fail(f"{value!r} does not name a topic and its words, as in 0=clean,dirty", param, ctx)
        return topic, tuple(word.strip() for word in words.split(",") if word.strip())


@dataclass(frozen=True)
class Parameter:
    """One parameter of the estimators, and its option."""

    name: str
    flag: str
    type: Any
    help: str
    options: Mapping[str, Any]


def _parameter(name: str, flag: str, type: Any, help: str, **options: Any) -> Parameter:
    return Parameter(name, flag, type, help, options)


_WHOLE, _NUMBER = click.IntRange(1), click.FLOAT
_METAVARS = {_WHOLE: "N", _NUMBER: "NUMBER"}
PARAMETERS = (
    _parameter(
        "n_topics", "--topics", _Either(("auto",), _WHOLE), "Number of topics; 20, or one a class or label where there are more."
    ),
    _parameter("n_epochs", "--epochs", _WHOLE, "Passes over the documents."),
    _parameter(
        "response",
        "--response",
        _Response(),
        "How numbers are predicted: gaussian, quantile (with outliers), ordinal (levels), poisson (counts).",
    ),
    _parameter("class_weight", "--class-weight", click.Choice(["balanced"]), "Let all classes weigh the same."),
    _parameter(
        "seed_words", "--seed-words", _Seeds(), "Words that guide a topic, by its number or class; repeatable.", multiple=True
    ),
    _parameter(
        "alpha",
        "--alpha",
        _Either(("auto",), _NUMBER),
        "Dirichlet parameter of the proportions, by default 1 + 2 / (topics + 20), or 1.02 without a target; auto: an estimate.",
    ),
    _parameter("beta", "--beta", _NUMBER, "Dirichlet parameter of the topics."),
    _parameter("gamma", "--gamma", _NUMBER, "Precision of the response."),
    _parameter("n_layers", "--layers", _Either(("auto",), _WHOLE), "Mirror-descent layers of inference."),
    _parameter("step_size", "--step-size", _Either(("l1", "kl"), _NUMBER), "Rule of the line search, or a constant step."),
    _parameter("tol", "--tol", _NUMBER, "A document's layers end when two bring at most this part of the fall so far; 0: never."),
    _parameter("batch_size", "--batch-size", _Either(("auto",), _Sizes()), "Documents a step; a pair grows from first to last."),
    _parameter(
        "learning_rate",
        "--learning-rate",
        _Either(("auto",), _NUMBER),
        "Of the topics; auto is 0.01, and less beyond 10,000 words.",
    ),
    _parameter(
        "coef_learning_rate",
        "--coef-learning-rate",
        _Either(("auto",), _NUMBER),
        "Rate of plain gradient steps for the coefficients; auto also takes Newton steps.",
    ),
    _parameter("word_learning_rate", "--word-learning-rate", _NUMBER, "Of the words' weights."),
    _parameter("learning_rate_decay", "--learning-rate-decay", click.Choice(["linear", "constant"]), "How the rates fall."),
    _parameter("average_from", "--average-from", _NUMBER, "Fraction of the steps after which averages begin."),
    _parameter(
        "word_dropout",
        "--word-dropout",
        _Either(("auto",), _NUMBER),
        "Fraction of the words that a step leaves out; auto leaves more out of long documents.",
    ),
    _parameter("count_scale", "--count-scale", click.Choice(["log", "linear"]), "Logarithms of counts, or counts."),
    _parameter("readability", "--readability", _NUMBER, "Prediction to give up for readable topics; 0 is none."),
    _parameter(
        "early_stopping", "--early-stopping", None, "Stop when the held-out score stops rising.", is_flag=True, default=None
    ),
    _parameter("validation_fraction", "--validation-fraction", _NUMBER, "Held out for early stopping where nothing else is."),
    _parameter("n_iter_no_change", "--n-iter-no-change", _WHOLE, "Epochs without a better score before it stops."),
    _parameter("random_state", "--seed", click.IntRange(0), "Of all random choices; 0 by default.", metavar="N"),
    _parameter(
        "n_jobs", "--jobs", click.INT, "Threads; all cores by default. No result depends on it.", metavar="N", callback=threads
    ),
)


def hyperparameters(command: F) -> F:
    """An option for every parameter of the estimators."""
    option = section_option("The model and how it learns")
    for parameter in reversed(PARAMETERS):
        attributes = (
            {"metavar": _METAVARS[parameter.type], **parameter.options} if parameter.type in _METAVARS else parameter.options
        )
        command = option(parameter.flag, parameter.name, type=parameter.type, help=parameter.help, **attributes)(command)
    return command


def estimator(task: str, given: Mapping[str, Any]) -> Any:
    """The estimator of a task, with the parameters that were given."""
    import inspect

    from mirrorlda.estimators import TopicClassifier, TopicModel, TopicRegressor

    kinds = {"regression": TopicRegressor, "topics": TopicModel}
    kind = kinds.get(task, TopicClassifier)
    known = inspect.signature(kind).parameters
    wanted = {parameter.name: given[parameter.name] for parameter in PARAMETERS if given.get(parameter.name) not in (None, ())}
    for parameter in PARAMETERS:
        if parameter.name in wanted and parameter.name not in known:
            raise click.UsageError(f"{parameter.flag} does not apply to {task}")
    if task == "topics":
        # Without targets there is nothing that these could follow.
        wanted = {name: value for name, value in wanted.items() if name not in ("n_topics", "learning_rate") or value != "auto"}
    if "response" in wanted and task != "regression":
        raise click.UsageError(f"--response is for numbers, and the task is {task}")
    if "seed_words" in wanted:
        by_class = task in ("classification", "multilabel")
        seeds: dict[Any, list[str]] = {}
        for topic, words in wanted["seed_words"]:
            seeds.setdefault(_topic(topic, by_class), []).extend(words)
        wanted["seed_words"] = seeds
    return kind(**{"random_state": 0, "n_jobs": -1, **wanted})


def _topic(topic: str, by_class: bool) -> Any:
    if by_class:
        return topic
    try:
        return int(topic)
    except ValueError:
        raise click.UsageError(
            f"--seed-words names the topic {topic!r}: without classes, topics are named by their numbers"
        ) from None


class Configured(Sectioned):
    """A command whose options may stand in a file; those on the command line come first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        file = given.get("config")
        if given.get("resume") and given.get("output"):
            file = unfinished(given["output"]) / "config.toml"
            if not file.is_file():
                raise click.UsageError(f"{given['output']} holds no training that was interrupted: leave out --resume", ctx)
        if file:
            ctx.default_map = {**(ctx.default_map or {}), **self._read(Path(file), ctx)}
        return super().parse_args(ctx, args)

    def _read(self, file: Path, ctx: click.Context) -> dict[str, Any]:
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise click.UsageError(f"{file} cannot be read: {error.strerror}", ctx) from None
        except ValueError as error:
            raise click.UsageError(f"{file} is no TOML: {error}", ctx) from None
        names = _names(self)
        for key in found:
            if key.replace("_", "-") not in names:
                near = get_close_matches(key.replace("_", "-"), names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(names))}"
                raise click.UsageError(f"{file}: no option {key!r}; {hint}", ctx)
        return {names[key.replace("_", "-")]: _lists(self, names[key.replace("_", "-")], value) for key, value in found.items()}


def unfinished(output: str) -> Path:
    """Where a training that goes on keeps its things."""
    return Path(output) / ".training"


def effective(ctx: click.Context) -> dict[str, Any]:
    """The configuration of a call: every option that has a value, by the name of its flag."""
    left_out = {"config", "resume", "output", "as_json", "quiet", "force", "ray"}
    names = {name: flag for flag, name in _names(ctx.command).items()}
    configuration = {
        names[name]: list(value) if isinstance(value, tuple) else value
        for name, value in ctx.params.items()
        if name in names and name not in left_out and value not in (None, ())
    }
    if "seed-words" in configuration:
        configuration["seed-words"] = [f"{topic}={','.join(words)}" for topic, words in configuration["seed-words"]]
    # Files are found again from any directory.
    for name in ("files", "test"):
        if name in configuration:
            configuration[name] = [file if file == "-" or is_url(file) else os.path.abspath(file) for file in configuration[name]]
    return configuration


def as_toml(configuration: Mapping[str, Any]) -> str:
    """A file of options; JSON's values are TOML's."""
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in configuration.items())


def _names(command: click.Command) -> dict[str, str]:
    """From flags without their dashes, and names of arguments, to names of parameters."""
    names = {}
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            names[str(parameter.name)] = str(parameter.name)
        else:
            names[max(parameter.opts, key=len).lstrip("-")] = str(parameter.name)
    return names


def _lists(command: click.Command, name: str, value: Any) -> Any:
    """One value where several may stand."""
    parameter = next(p for p in command.params if p.name == name)
    several = parameter.nargs == -1 or getattr(parameter, "multiple", False)
    return [value] if several and not isinstance(value, list) else value
