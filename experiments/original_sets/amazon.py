"""Amazon's movie reviews, as SNAP publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mirrorlda.readers.rows import LONGEST_ROW, BadFileError, Tally
from mirrorlda.readers.streams import Lines

from original_sets.records import BrokenRecordError, Review, identifier, joined, needed, rating_of, read, shown, twice

Pairs = list[tuple[bytes, bytes]]

_PRODUCT, _USER, _SCORE = b"product/productId", b"review/userId", b"review/score"
_SUMMARY, _TEXT = b"review/summary", b"review/text"
# Other sets of SNAP in this format have a title and a price.
_FIELDS = {_PRODUCT, b"product/title", b"product/price", _USER, b"review/profileName", b"review/helpfulness", _SCORE}
_FIELDS |= {b"review/time", _SUMMARY, _TEXT}


def amazon_reviews(path: str | Path, tally: Tally | None = None) -> Iterator[Review]:
    r"""Reviews of a file like SNAP's movies.txt.gz: lines `review/score: 5.0` and others, an empty line between reviews.

    A line that begins with no field's name goes on with the field before it.

    Yields
    ------
    dict
        `text` (the summary and the text, without tags), `rating`, and `product` and `user`, None where a review has none.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "movies.txt"
    >>> _ = path.write_text("product/productId: B1\nreview/score: 4.0\nreview/summary: Good\nreview/text: Seen<br />twice\n")
    >>> list(amazon_reviews(path))
    [{'text': 'Good\nSeen twice', 'rating': 4.0, 'product': 'B1', 'user': None}]
    """
    return read([Path(path)], _records, lambda file: _review, tally)


def _records(lines: Lines, tally: Tally) -> Iterator[tuple[int, Pairs]]:
    """A record begins with the product, or, where that is missing, with a field that it has already and an empty line before."""
    pairs: Pairs = []
    start, after_blank = 1, False
    while line := lines.read():
        if line.isspace():
            after_blank = True
            continue
        name, _, value = line.partition(b":")
        if name in _FIELDS:
            if pairs and (name == _PRODUCT or (after_blank and name in dict(pairs))):
                yield start, pairs
                pairs = []
            if not pairs:
                start = lines.number
            pairs.append((name, value))
        elif pairs:
            name, before = pairs[-1]
            pairs[-1] = name, before + line
            if len(before) > LONGEST_ROW:
                raise BadFileError(lines.name, f"found a review of more than {LONGEST_ROW} bytes at line {start}")
        else:
            tally.bad(lines.name, lines.number, None, f"found {shown(line)}, expected a field such as review/score")
        after_blank = False
    if pairs:
        yield start, pairs


def _review(pairs: Pairs) -> Review:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise BrokenRecordError(f"found {twice(names)} twice, expected each field once")
    return {
        "text": joined(fields.get(_SUMMARY), needed(fields, _TEXT)),
        "rating": rating_of(needed(fields, _SCORE)),
        "product": identifier(fields.get(_PRODUCT)),
        "user": identifier(fields.get(_USER)),
    }
