"""All experiments of the paper, one after another.

python experiments/paper.py DATA_DIR [--quick] [--minutes 60] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import figure3
import figure4
import figure5
import table1
import table2

EXPERIMENTS = [figure3, table1, table2, figure4, figure5]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path, metavar="DATA_DIR", help="where tripadvisor_79k.jsonl.gz and imdb.jsonl.gz are")
    parser.add_argument("--quick", action="store_true", help="ten minutes on two cores; without it, days")
    parser.add_argument("--minutes", type=float, help="begin no run of an experiment after so long; go on by the same command")
    parser.add_argument("--out", type=Path, help="folder of the results")
    chosen = parser.parse_args()
    given = {"--minutes": chosen.minutes, "--out": chosen.out}
    arguments = [str(chosen.data), *(["--quick"] if chosen.quick else [])]
    arguments += [text for option, value in given.items() if value is not None for text in (option, str(value))]
    status = 0
    for experiment in EXPERIMENTS:
        print(f"\n## {(experiment.__doc__ or '').splitlines()[0]}\n", flush=True)
        status |= experiment.main(arguments)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
