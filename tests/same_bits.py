"""What every estimator gives on fixed data, from memory and disk, as digests of its bits: `python tests/same_bits.py`.

`golden/same_bits.json` was recorded before the packages were laid out as they are. A change that is not meant to change results
must not change a line of it; one that is records it anew with --record, and the difference shows what it changed.
"""

import hashlib
import io
import json
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn
import threadpoolctl
from mirrorlda.datasets import make_topics
from mirrorlda.explain import explain
from mirrorlda.responses import Response
from mirrorlda.topics import describe, effects
from sklearn.pipeline import make_pipeline

import mirrorlda
from mirrorlda import Corpus, TextVectorizer, TopicClassifier, TopicModel, TopicRegressor, _core
from mirrorlda.evaluation import evaluate
from mirrorlda.report import report

RECORDED = Path(__file__).parent / "golden" / "same_bits.json"
FAST = {"n_topics": 4, "n_epochs": 3, "random_state": 0}


class Absolute(Response):
    """A response of the user's own."""

    def loss(self, scores, y):
        error = scores - y
        bounded = np.clip(error, -1, 1)
        return (bounded * (error - bounded / 2)).sum(axis=1), bounded

    def predict(self, scores):
        return scores

    def score(self, scores, losses, y, weights):
        return -float(np.average(losses, weights=weights))


class Margin(Response):
    """One for classes: the first score against the others."""

    def loss(self, scores, y):
        target = np.eye(scores.shape[1])[y].astype(scores.dtype)
        return 0.5 * ((scores - target) ** 2).sum(axis=1), scores - target

    def predict(self, scores):
        return np.argmax(scores, axis=1)

    def score(self, scores, losses, y, weights):
        return float(np.average(self.predict(scores) == y, weights=weights))

    def checked(self, y):
        return y

    def n_outputs(self, y):
        return 3


def documents():
    """Counts, and a target of each kind."""
    data = make_topics(n_docs=240, n_words=60, n_topics=4, n_outputs=2, random_state=0)
    X, y = data.X.astype(np.float32), data.y
    order = np.argsort(np.argsort(y[:, 0]))
    return {
        "X": X,
        "numbers": y,
        "number": y[:, 0] * 3 + 40,
        "levels": 1.0 + order * 5 // len(order),
        "counts": np.maximum(0, np.round(y[:, 1] + 3)),
        "names": np.array(["good", "bad", "so so"])[order * 3 // len(order)],
        "labels": np.stack([y[:, 0] > 0, y[:, 1] > 0, order % 3 == 0], axis=1).astype(int),
        "weights": np.where(np.arange(len(order)) % 7 == 0, 0.0, 1 + np.arange(len(order)) % 3),
    }


def texts(X):
    """A text for each row of counts."""
    return [" ".join(f"word{word:02d}" for word in np.repeat(np.arange(X.shape[1]), row)) for row in X.toarray().astype(int)]


def corpora(directory, data):
    """The same documents on disk, with a target of each kind."""
    written = texts(data["X"])
    kinds = {
        "number": {"y": data["number"].tolist()},
        "numbers": {"y": data["numbers"][:, 0].tolist(), "z": data["numbers"][:, 1].tolist()},
        "levels": {"y": data["levels"].tolist()},
        "counts": {"y": data["counts"].tolist()},
        "names": {"y": data["names"].tolist()},
        "missing": {"y": [None if i % 4 == 1 else name for i, name in enumerate(data["names"].tolist())]},
        "labels": {"y": [[name for name, on in zip("abc", row, strict=True) if on] for row in data["labels"].tolist()]},
    }
    for kind, columns in kinds.items():
        rows = directory / f"{kind}.jsonl"
        lines = [
            json.dumps({"text": text, **{name: values[i] for name, values in columns.items()}}) for i, text in enumerate(written)
        ]
        rows.write_text("\n".join(lines) + "\n")
        mirrorlda.prepare(rows, directory / kind, text="text", target=list(columns), min_docs=2)
    mirrorlda.prepare(directory / "names.jsonl", directory / "topics", text="text", min_docs=2)
    return {kind: Corpus(directory / kind) for kind in (*kinds, "topics")}


def cases(directory):
    """Names, and functions that give a fitted model, the documents to try it on, and their targets."""
    data = documents()
    X, disk = data["X"], corpora(directory, data)
    missing = np.where(np.arange(240) % 4 == 1, np.nan, data["number"])
    unlabelled = np.where(np.arange(240) % 4 == 1, None, data["names"].astype(object))
    numbered = np.searchsorted(["bad", "good", "so so"], data["names"])

    def fitted(model, *given, tried=X, y=None, **options):
        return lambda: (model.fit(*given, **options), tried, y)

    def stored(model, kind, **options):
        return lambda: (model.fit(disk[kind], **options), disk[kind], None)

    def streamed(model, y, **first):
        def run():
            model.partial_fit(X[:100], y[:100], **first)
            return model.partial_fit(X[100:], y[100:]), X, y

        return run

    def twice(model, y):
        return lambda: (model.fit(X, y).fit(X, y), X, y)

    seeds = {"good": ["word03", "word05"], "bad": ["word07"]}
    yield "topics", fitted(TopicModel(**FAST), X)
    yield "topics float64 alpha", fitted(TopicModel(**FAST, alpha="auto"), X.astype(np.float64), tried=X.astype(np.float64))
    yield "topics stream", lambda: (TopicModel(**FAST).partial_fit(X[:90]).partial_fit(X[90:]), X, None)
    yield "topics disk", stored(TopicModel(**FAST), "topics")
    yield "topics stopped", fitted(TopicModel(**FAST, early_stopping=True), X, sample_weight=data["weights"])
    yield "number", fitted(TopicRegressor(random_state=0), X, data["number"], y=data["number"])
    yield "number weighted", fitted(TopicRegressor(**FAST), X, data["number"], y=data["number"], sample_weight=data["weights"])
    yield "number missing", fitted(TopicRegressor(**FAST, alpha="auto"), X, missing, y=data["number"])
    yield "number stopped", fitted(TopicRegressor(**FAST, early_stopping=True), X, data["number"], y=data["number"])
    yield "number stream", streamed(TopicRegressor(**FAST), data["number"])
    yield "number warm", twice(TopicRegressor(**FAST, warm_start=True), data["number"])
    yield (
        "number validated",
        fitted(TopicRegressor(**FAST), X[:200], data["number"][:200], validation=(X[200:], data["number"][200:])),
    )
    yield "number disk", stored(TopicRegressor(**FAST), "number", validation=disk["number"])
    yield "numbers", fitted(TopicRegressor(**FAST), X, data["numbers"], y=data["numbers"])
    yield "numbers disk", stored(TopicRegressor(**FAST), "numbers")
    yield "levels", fitted(TopicRegressor(**FAST, response="ordinal"), X, data["levels"], y=data["levels"])
    yield "levels stream", streamed(TopicRegressor(**FAST, response="ordinal"), data["levels"])
    yield "levels disk", stored(TopicRegressor(**FAST, response="ordinal"), "levels", validation=disk["levels"])
    yield "counts", fitted(TopicRegressor(**FAST, response="poisson"), X, data["counts"], y=data["counts"])
    yield "counts disk", stored(TopicRegressor(**FAST, response="poisson"), "counts")
    yield "own number", fitted(TopicRegressor(**FAST, response=Absolute()), X, data["numbers"], y=data["numbers"])
    yield "own number disk", stored(TopicRegressor(**FAST, response=Absolute()), "number")
    yield "names", fitted(TopicClassifier(random_state=0), X, data["names"], y=data["names"])
    yield "two names", fitted(TopicClassifier(**FAST, gamma=2.0), X, data["levels"] > 3, y=data["levels"] > 3)
    balanced = TopicClassifier(**FAST, class_weight="balanced")
    yield "names balanced", fitted(balanced, X, data["names"], y=data["names"], sample_weight=data["weights"])
    yield "names float64", fitted(TopicClassifier(**FAST), X.astype(np.float64), data["names"], tried=X.astype(np.float64))
    yield "names missing", fitted(TopicClassifier(**FAST), X, unlabelled, y=data["names"])
    yield "names stopped", fitted(TopicClassifier(**FAST, early_stopping=True, alpha="auto"), X, data["names"], y=data["names"])
    yield "names stream", streamed(TopicClassifier(**FAST), data["names"], classes=["bad", "good", "so so", "worse"])
    yield "names warm", twice(TopicClassifier(**FAST, warm_start=True), data["names"])
    yield "names disk", stored(TopicClassifier(**FAST, seed_words=seeds), "names", validation=disk["names"])
    yield "names disk balanced", stored(TopicClassifier(**FAST, class_weight="balanced"), "names")
    yield "names disk missing", stored(TopicClassifier(**FAST, class_weight={"bad": 2, "good": 1, "so so": 1}), "missing")
    yield "labels", fitted(TopicClassifier(**FAST), X, data["labels"], y=data["labels"])
    yield "labels balanced", fitted(TopicClassifier(**FAST, class_weight="balanced"), X, data["labels"], y=data["labels"])
    yield "labels stream", streamed(TopicClassifier(**FAST), data["labels"])
    yield "labels disk", stored(TopicClassifier(**FAST), "labels", validation=disk["labels"])
    yield "labels disk balanced", stored(TopicClassifier(**FAST, class_weight="balanced"), "labels")
    yield "own names", fitted(TopicClassifier(**FAST, response=Margin()), X, numbered, y=numbered)
    # As before there were themes, but for effects and what shows them.
    alone = {**FAST, "readability": 0}
    yield "number one matrix", fitted(TopicRegressor(**alone), X, data["number"], y=data["number"])
    yield "names one matrix disk", stored(TopicClassifier(**alone, seed_words=seeds), "names", validation=disk["names"])
    yield "labels one matrix", fitted(TopicClassifier(**alone), X, data["labels"], y=data["labels"])
    pipeline = make_pipeline(TextVectorizer(), TopicClassifier(**FAST))
    yield "pipeline", fitted(pipeline, texts(X), data["names"], tried=texts(X), y=data["names"])


def given(model, X, y):
    """All that users see of a model, by name: arrays, numbers, strings and bytes."""
    last = model[-1] if hasattr(model, "steps") else model
    own = isinstance(getattr(last, "response", None), Absolute | Margin)
    names = [*(name for name in vars(last) if name.endswith("_")), "classes_", "levels_"]
    seen = {name: value for name in names if isinstance(value := getattr(last, name, None), np.ndarray)}
    seen |= {f"history {name}": np.array(values) for name, values in last.history_.items()}
    methods = ("transform", "predict", "predict_proba", "predict_log_proba", "decision_function")
    seen |= {method: np.asarray(getattr(model, method)(X)) for method in methods if hasattr(model, method)}
    seen["effects"] = np.array(effects(last)[1])
    seen["describe"] = describe(last)
    if not own:
        seen["html"] = last._repr_html_()
    with tempfile.TemporaryDirectory() as directory:
        mirrorlda.save(model, Path(directory) / "model")
        seen["file"] = (Path(directory) / "model").read_bytes()
    if y is not None or isinstance(X, Corpus) or isinstance(last, TopicModel):
        scored = (X,) if y is None else (X, y)
        seen["score"] = np.array(model.score(*scored))
        if not own:
            measured = evaluate(model, *scored, n_bootstrap=20)
            seen["evaluation"] = json.dumps(measured.as_json(), sort_keys=True)
    if not own and not isinstance(last, TopicModel):
        one = X[7] if isinstance(X, list) else X.matrix(np.array([7])) if isinstance(X, Corpus) else X[7:8]
        told = explain(model, one)
        seen["explanation"] = json.dumps(told.as_json(), sort_keys=True) + str(told)
    if not own:
        page = io.BytesIO()
        report(model, page)
        data = re.search(rb"<script[^>]*application/json[^>]*>(.*?)</script>", page.getvalue(), re.DOTALL)
        seen["page"] = data.group(1) if data else page.getvalue()
    return seen


def digest(value):
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            value = np.array([repr(item) for item in value.ravel().tolist()])
        value = f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    return hashlib.sha256(value.encode() if isinstance(value, str) else value).hexdigest()[:12]


def figure(value):
    """What stays nearly the same on another machine: mean and mean size of numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not value.size:
        return None
    return [float(f"{number:.6g}") for number in (np.mean(value, dtype=np.float64), np.mean(np.abs(value), dtype=np.float64))]


def machine():
    """All that bits depend on beside the code: instruction sets, libraries, the compiler."""
    config = np.show_config(mode="dicts")
    blas = sorted({f"{info['internal_api']} {info.get('architecture')}" for info in threadpoolctl.threadpool_info()})
    compiler = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()

    return {
        "core": _core.instruction_set(),
        "numpy": [np.__version__, *config["SIMD Extensions"].get("found", [])],
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "blas": [name for name in blas if name.startswith(("openblas", "mkl"))],
        "libc": " ".join(platform.libc_ver()),
        "compiler": compiler,
    }


def results(only=""):
    found = {}
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, run in cases(Path(directory)):
            if only in name:
                seen = given(*run())
                found[name] = {key: [digest(value), figure(value)] for key, value in sorted(seen.items())}
    return found


def differences(found, recorded, *, exact):
    """Lines that say what is not as it was; figures may differ a little where bits may."""
    for name, seen in recorded.items():
        for key, (bits, numbers) in seen.items():
            if key not in found.get(name, {}):
                yield f"{name}: {key} is no longer there"
                continue
            now, figures = found[name][key]
            if exact and now != bits:
                yield f"{name}: {key} is {now} {figures}, was {bits} {numbers}"
            elif numbers and not np.allclose(figures, numbers, rtol=0.02, atol=0.02):
                yield f"{name}: {key} is {figures}, was {numbers}"


def main(arguments):
    if arguments[:1] == ["--record"]:
        lines = [f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in results().items()]
        RECORDED.write_text(f'{{"machine": {json.dumps(machine())}, "results": {{\n' + ",\n".join(lines) + "\n}}\n")
        return 0
    recorded = json.loads(RECORDED.read_text())
    only = " ".join(arguments)
    wanted = {name: seen for name, seen in recorded["results"].items() if only in name}
    exact = recorded["machine"] == machine()
    found = list(differences(results(only), wanted, exact=exact))
    print("\n".join(found) or f"{len(wanted)} models: {'the same bits' if exact else 'another machine, figures as recorded'}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
