"""The tables of docs/results are those of the runs that lie beside them."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

import quality  # noqa: E402
from comparison import MEASURES, Curve, curve_of  # noqa: E402
from figure4 import GENERATIVE  # noqa: E402
from results import read_runs  # noqa: E402
from rows import Row  # noqa: E402
from systems import SYSTEMS  # noqa: E402
from table1 import ALPHAS  # noqa: E402

RESULTS = ROOT / "docs" / "results"
# Its rows have a table each, of several measures, and another command writes them.
THEMES = RESULTS / "themes.csv"
COMPARED = [curve_of(name, alpha) for name in SYSTEMS for alpha in (None, *ALPHAS)]
CURVES = {curve.label: curve for curve in [*COMPARED, *GENERATIVE]}
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def score_tables(path):
    """Row, measure and lines of each table of scores by number of topics."""
    names = {label: name for name, label in MEASURES.items()}
    for found in TABLE.findall(path.read_text(encoding="utf-8")):
        header, _, *lines = map(cells, found.splitlines())
        row, _, label = header[0].partition(": ")
        if label in names and header[1].endswith(" topics"):
            yield row, names[label], header[1:], lines


def expected(curve, runs, row, column):
    n_topics = int(column.split()[0]) if curve.has_topics else None
    return str(curve.score(runs, row, n_topics))


@pytest.mark.parametrize(
    "path", sorted(set(RESULTS.rglob("*.csv")) - {THEMES}), ids=lambda path: path.relative_to(RESULTS).as_posix()
)
def test_tables_are_those_of_the_runs(path):
    runs = read_runs(path)
    assert not [run.error for run in runs if run.error]
    n_checked = 0
    for name, measure, header, lines in score_tables(path.with_suffix(".md")):
        row = Row(name, Path(), None, measure)
        columns = [column for column in header if column.endswith(" topics")]
        for label, *found in lines:
            curve = CURVES.get(label, Curve(label, label))
            shown = columns if curve.has_topics else columns[:1]
            assert found[: len(shown)] == [expected(curve, runs, row, column) for column in shown], (name, label)
            n_checked += sum(cell != "" for cell in found[: len(shown)])
    # Figure 5 has times, and scores on documents that were drawn.
    assert n_checked > 10 or path.stem == "figure5"


def test_tables_of_themes_are_those_of_the_runs():
    runs = read_runs(THEMES)
    assert not [run.error for run in runs if run.error]
    page = THEMES.with_suffix(".md").read_text(encoding="utf-8")
    names = list(dict.fromkeys(run.row for run in runs))
    written = [found for found in TABLE.findall(page) if cells(found.splitlines()[0])[0] in names]
    assert len(written) == len(names) > 3
    for found in written:
        name = cells(found.splitlines()[0])[0]
        own = [run for run in runs if run.row == name]
        score = next(measure for measure in ("r2", "roc_auc", "npmi") if measure in {run.measure for run in own})
        row = Row(name, Path(), None if score == "npmi" else "target", score)
        assert found.rstrip() == quality.table_of_themes(row, own)


def test_numbers_of_the_page_name_their_command():
    """Each file of results ends with the command, the machine, the versions and the days."""
    for path in RESULTS.rglob("*.md"):
        last = path.read_text(encoding="utf-8").rstrip().splitlines()[-1]
        script = "quality" if path.stem == THEMES.stem else path.stem
        command = rf"`python experiments/{script}\.py DATA_DIR.*`"
        assert re.match(rf"{command}; .+; Python .+, mirrorlda .+; \d\d \w+ \d{{4}}", last), path
