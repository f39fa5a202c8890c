"""The multi-domain sentiment set of Blitzer, Dredze and Pereira: reviews, and counts of their words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mirrorlda.readers.rows import BadFileError, Tally
from mirrorlda.readers.streams import Lines

from original_sets.records import BrokenRecordError, Review, decoded, identifier, joined, needed, rating_of, read, shown, twice

SENTIMENTS = {"positive": "pos", "negative": "neg"}
# A domain's reviews are in one of these files, or else in the parts; the others of its folder are selections of the same reviews.
WHOLE, PARTS = ("all",), ("positive", "negative", "unlabeled")
WHOLE_COUNTS = ("processed", "all", "all_balanced")

_FIELD = re.compile(rb"<(unique_id|asin|rating|title|review_text)>(.*?)</\1>", re.DOTALL)
_LABEL = "#label#"


def blitzer_reviews(path: str | Path, tally: Tally | None = None) -> Iterator[Review]:
    r"""Reviews of unprocessed.tar.gz, unpacked, of Blitzer, Dredze and Pereira: a file, or all domains below a folder.

    Of a domain's folder `all.review` is read; where there is none, `positive.review`, `negative.review` and `unlabeled.review`.

    Yields
    ------
    dict
        `text` (the title and the text), `rating`, `sentiment`, `domain` (the folder's name), `id` and `product`. The sentiment is
        "pos" or "neg" by the name of the file, elsewhere by the rating: above or below 3, and None at 3.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "books"
    >>> path.mkdir()
    >>> review = "<review>\n<rating>\n2.0\n</rating>\n<review_text>\nDull & long\n</review_text>\n</review>\n"
    >>> _ = (path / "all.review").write_text(review)
    >>> [review] = blitzer_reviews(path.parent)
    >>> review["text"], review["rating"], review["sentiment"], review["domain"]
    ('Dull & long', 2.0, 'neg', 'books')
    """

    def maker(file: Path) -> Callable[[bytes], Review]:
        domain, sentiment = _domain(file), SENTIMENTS.get(_stem(file))
        return lambda record: _review(record, domain, sentiment)

    return read(review_files(path, WHOLE), _records, maker, tally)


def blitzer_counts(path: str | Path, tally: Tally | None = None, *, single_words: bool = True) -> Iterator[Review]:
    r"""Counts of processed_acl.tar.gz or processed_stars.tar.gz, unpacked: a file, or all domains below a folder.

    Of a domain's folder `processed.review`, `all.review` or `all_balanced.review` is read; where there is none of them, what
    `blitzer_reviews` reads.

    Parameters
    ----------
    single_words : bool
        Leave out pairs of words, which have an underscore between them.

    Yields
    ------
    dict
        `counts` (dict from str to int), `rating` (None if the label is a sentiment), `sentiment` and `domain`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "negative.review"
    >>> _ = path.write_text("so:2 dull:1 so_dull:1 #label#:negative\n")
    >>> [review] = blitzer_counts(path)
    >>> review["counts"], review["sentiment"]
    ({'so': 2, 'dull': 1}, 'neg')
    """

    def maker(file: Path) -> Callable[[bytes], Review]:
        domain = _domain(file)
        return lambda line: _counts(line, domain, single_words)

    return read(review_files(path, WHOLE_COUNTS), _lines, maker, tally)


def review_files(path: str | Path, whole: Sequence[str]) -> list[Path]:
    """The file itself, or those of a folder and all below it with each review once: the first of `whole`, or else `PARTS`."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    folders: dict[Path, dict[str, Path]] = {}
    for file in sorted([*path.rglob("*.review"), *path.rglob("*.review.gz")]):
        folders.setdefault(file.parent, {}).setdefault(_stem(file), file)
    files: list[Path] = []
    for found in folders.values():
        one = next((name for name in whole if name in found), None)
        files += [found[name] for name in ([one] if one else PARTS) if name in found]
    if not files:
        names = ", ".join(f"{name}.review" for name in (*whole, *PARTS))
        raise BadFileError(str(path), f"found none of the files {names} in the folder or below it, expected them a domain")
    return files


def _stem(file: Path) -> str:
    return file.name.split(".")[0]


def _domain(file: Path) -> str:
    return file.absolute().parent.name


def _records(lines: Lines, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """What is between <review> and </review>, each of which has a line of its own, or begins or ends the record's line."""
    record: list[bytes] | None = None
    start, is_outside = 0, False
    while line := lines.read():
        text = line.strip()
        if text.startswith(b"<review>"):
            if record is not None:
                tally.bad(lines.name, start, None, f"found <review> again on line {lines.number}, expected </review> before it")
            start, record, is_outside = lines.number, [], False
        if record is not None:
            record.append(line)
            if text.endswith(b"</review>"):
                yield start, b"".join(record)
                record = None
        elif text and not is_outside:
            is_outside = True
            tally.bad(lines.name, lines.number, None, f"found {shown(line)} outside a review, expected <review>")
    if record is not None:
        tally.bad(lines.name, start, None, "found the end of the file, expected </review> before it")


def _review(record: bytes, domain: str, sentiment: str | None) -> Review:
    pairs = _FIELD.findall(record)
    fields = dict(pairs)
    # Reviews may have two of them; the one that is a number alone says nothing.
    identifiers = [text for name, value in pairs if name == b"unique_id" and not (text := value.strip()).isdigit()]
    names = [name for name, _ in pairs if name != b"unique_id"]
    if len(set(names)) < len(names):
        raise BrokenRecordError(f"found <{twice(names)}> twice, expected each field once")
    has_rating = b"rating" in fields or sentiment is None
    rating = rating_of(needed(fields, b"rating")) if has_rating else None
    return {
        "text": joined(fields.get(b"title"), needed(fields, b"review_text")),
        "rating": rating,
        "sentiment": sentiment or _sentiment(rating),
        "domain": domain,
        "id": identifier(identifiers[0]) if identifiers else None,
        "product": identifier(fields.get(b"asin")),
    }


def _lines(lines: Lines, tally: Tally) -> Iterator[tuple[int, bytes]]:
    while line := lines.read():
        if not line.isspace():
            yield lines.number, line


def _counts(line: bytes, domain: str, single_words: bool) -> Review:
    *features, label = decoded(line).split()
    name, _, value = label.rpartition(":")
    if name != _LABEL:
        raise BrokenRecordError(f"found {shown(label)} at the end of the line, expected {_LABEL}: and a label")
    rating = None if value in SENTIMENTS else rating_of(value)
    counts: dict[str, int] = {}
    for feature in features:
        word, _, count = feature.rpartition(":")
        if not (word and count.isdecimal()):
            raise BrokenRecordError(f"found {shown(feature)}, expected a word, a colon and how often it occurs")
        if not (single_words and "_" in word):
            counts[word] = counts.get(word, 0) + int(count)
    return {"counts": counts, "rating": rating, "sentiment": SENTIMENTS.get(value) or _sentiment(rating), "domain": domain}


def _sentiment(rating: float | None) -> str | None:
    if rating is None or rating == 3:
        return None
    return "pos" if rating > 3 else "neg"
