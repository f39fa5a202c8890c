"""The paper's own data sets to JSON lines, which the experiments and `mirrorlda` read.

    python experiments/convert.py movies.txt.gz amazon_79k.jsonl.gz --sample 79000
    python experiments/convert.py sorted_data multisent.jsonl.gz
    python experiments/convert.py processed_acl multisent_acl.jsonl.gz

Each line has a text and its labels. The file is there in full or not at all.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from mirrorlda.readers.rows import BadFileError, Tally
from mirrorlda.readers.streams import Lines, Source
from tqdm import tqdm

from mirrorlda.data.files.atomic import replaced
from original_sets import amazon_reviews, blitzer_counts, blitzer_reviews
from original_sets.blitzer import WHOLE, WHOLE_COUNTS, review_files

READERS = {"amazon": amazon_reviews, "blitzer": blitzer_reviews, "blitzer-processed": blitzer_counts}
# More broken records than so many, and than this share: the file is not what it was taken for.
FEW_BROKEN, SHARE_BROKEN = 100, 0.01
# Level 6 makes files a tenth smaller, and takes four times as long.
COMPRESSION = 2


def kind_of(path: Path) -> str:
    """Told from the first line of text of a file, or of the first file of a folder."""
    if not path.exists():
        raise BadFileError(str(path), "no such file or folder")
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        raise BadFileError(str(path), "found an archive, expected what is in it: unpack it first")
    file = review_files(path, [*WHOLE, *WHOLE_COUNTS])[0]
    with Lines(Source(file), Tally(skip=False)) as lines:
        while (line := lines.read()) and line.isspace():
            pass
    if line.startswith((b"product/", b"review/")):
        return "amazon"
    if line.lstrip().startswith(b"<"):
        return "blitzer"
    if b"#label#:" in line:
        return "blitzer-processed"
    first = f"{line[:60]!r}" if line else "nothing"
    raise BadFileError(str(file), f"found {first}, expected product/productId:, <review> or a line with #label#: (or --kind)")


def sample(records: Iterable[Any], size: int, rng: np.random.Generator) -> list[Any]:
    """So many of the records, each set of them as likely as any other, in their order; all, if there are no more.

    One pass, by Li's algorithm L: the numbers of records to pass over are drawn, not one for each record.
    """
    records = iter(records)
    kept = list(enumerate(islice(records, size)))
    weight = (1 - rng.random()) ** (1 / size)
    upcoming = size - 1 + rng.geometric(weight)
    for number, record in enumerate(records, size):
        if number == upcoming:
            kept[rng.integers(size)] = number, record
            weight *= (1 - rng.random()) ** (1 / size)
            upcoming += rng.geometric(weight)
    return [record for _, record in sorted(kept, key=lambda pair: pair[0])]


def lines_of(reviews: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """JSON with a text; words that have been counted are repeated, since their order is lost."""
    for review in reviews:
        counts = review.pop("counts", None)
        if counts is not None:
            review = {"text": " ".join(word for word, count in counts.items() for _ in range(count)), **review}
        yield json.dumps(review).encode() + b"\n"


def convert(path: Path, out: Path, kind: str, size: int | None, seed: int, tally: Tally) -> int:
    """Write the file, and return how many documents it has."""
    read = tqdm(READERS[kind](path, tally), unit=" reviews", unit_scale=True, dynamic_ncols=True, disable=None)
    with replaced(out) as file, compressed(file, out) as stream:
        reviews: Iterable[dict[str, Any]] = read if size is None else sample(read, size, np.random.default_rng(seed))
        n_docs = 0
        for line in lines_of(reviews):
            stream.write(line)
            n_docs += 1
        check(path, tally, n_docs, size)
    return n_docs


def compressed(file: BinaryIO, out: Path) -> AbstractContextManager[IO[bytes]]:
    """Without the time in it: the same documents are the same bytes."""
    if out.suffix != ".gz":
        return nullcontext(file)
    return io.BufferedWriter(gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0), 1 << 20)


def check(path: Path, tally: Tally, n_docs: int, size: int | None) -> None:
    broken, n_records = tally.skipped.count, tally.n_rows + tally.skipped.count
    if broken > max(FEW_BROKEN, SHARE_BROKEN * n_records) or n_docs == 0:
        first = "".join(f"\n  {reason}" for reason in tally.skipped.reasons)
        raise BadFileError(str(path), f"found {broken} broken of {n_records} reviews, expected next to none; the first:{first}")
    if size is not None and n_docs < size:
        raise BadFileError(str(path), f"found {n_docs} reviews, expected at least the {size} of --sample")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The paper's own data sets to JSON lines.")
    parser.add_argument(
        "path", type=Path, metavar="FILE_OR_FOLDER", help="movies.txt.gz; sorted_data, processed_acl or processed_stars"
    )
    parser.add_argument("out", type=Path, metavar="OUT", help=".jsonl or .jsonl.gz")
    parser.add_argument("--kind", choices=READERS, help="by default told from the first line")
    parser.add_argument("--sample", type=int, metavar="N", help="so many reviews, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    chosen = parser.parse_args()
    if not chosen.out.name.endswith((".jsonl", ".jsonl.gz")):
        parser.error(f"OUT is {chosen.out.name}, expected a name that ends in .jsonl or .jsonl.gz")
    if chosen.sample is not None and chosen.sample < 1:
        parser.error(f"--sample is {chosen.sample}, expected 1 or more")
    if chosen.seed < 0:
        parser.error(f"--seed is {chosen.seed}, expected 0 or more")
    return chosen


def main() -> None:
    chosen = options()
    tally = Tally(skip=True)
    try:
        kind = chosen.kind or kind_of(chosen.path)
        n_docs = convert(chosen.path, chosen.out, kind, chosen.sample, chosen.seed, tally)
    except (BadFileError, OSError) as error:
        sys.exit(f"error: {error}")
    broken = tally.skipped.count
    print(f"{chosen.out}: {n_docs} documents of {tally.n_rows} reviews ({kind}), {broken} broken ones left out", file=sys.stderr)
    for reason in tally.skipped.reasons:
        print(f"  {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
