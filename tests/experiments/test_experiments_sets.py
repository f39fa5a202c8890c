"""The paper's own data sets: readers of their formats, and their conversion, on small files in just these formats."""

import doctest
import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))

from mirrorlda.readers import BadFileError, BadRowError, read  # noqa: E402
from mirrorlda.readers.rows import Tally  # noqa: E402

from convert import kind_of, main, sample  # noqa: E402
from original_sets import amazon, amazon_reviews, blitzer, blitzer_counts, blitzer_reviews  # noqa: E402

MOVIE = b"""product/productId: B003AI2VGA
review/userId: A141HP4LYPWMSR
review/profileName: Brian E. Erland "Rainbow Sphinx"
review/helpfulness: 7/7
review/score: 3.0
review/time: 1182729600
review/summary: "There Is So Much Darkness Now ~ Come For The Miracle"
review/text: Synopsis: On the daily trek from Juarez, Mexico to El Paso.<br /><br />Tom &amp; Ann &lt;3 it
"""

BOOK = b"""<review>
<unique_id>
55645
</unique_id>
<unique_id>
0312355645:horrible_book,_horrible.:mark_gospri
</unique_id>
<asin>
0312355645
</asin>
<product_name>
Sphere: Books: Michael Crichton
</product_name>
<product_type>
books
</product_type>
<helpful>
0 of 1
</helpful>
<rating>
1.0
</rating>
<title>
Horrible book, horrible.
</title>
<date>
September 20, 2006
</date>
<reviewer>
Mark "gospri"
</reviewer>
<reviewer_location>
</reviewer_location>
<review_text>
This book was horrible.  R&D took < 2 days.

I paid &quot;full&quot; price\x1a
</review_text>
</review>
"""


def saved(path, *contents):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(contents))
    return path


def movie(**changes):
    """The bytes of MOVIE with other values of fields; None leaves a field out."""
    lines = []
    for line in MOVIE.splitlines(keepends=True):
        name = line.split(b":")[0].decode().split("/")[1]
        value = changes.get(name, line)
        if isinstance(value, str):
            value = line.partition(b":")[0] + b": " + value.encode() + b"\n"
        if value is not None:
            lines.append(value)
    return b"".join(lines)


def book(rating="1.0", text="Dull", title="Long"):
    fields = {"rating": rating, "title": title, "review_text": text}
    parts = [f"<{name}>\n{value}\n</{name}>\n" for name, value in fields.items() if value is not None]
    return f"<review>\n{''.join(parts)}</review>\n".encode()


def without_broken(reader, path, n_broken, **options):
    """All reviews, and the reasons for which others were left out."""
    tally = Tally(skip=True)
    reviews = list(reader(path, tally, **options))
    assert tally.skipped.count == n_broken
    assert tally.n_rows == len(reviews)
    return reviews, tally.skipped.reasons


def test_amazon_review(tmp_path):
    [review] = amazon_reviews(saved(tmp_path / "movies.txt", MOVIE))
    assert review == {
        "text": '"There Is So Much Darkness Now ~ Come For The Miracle"\n'
        "Synopsis: On the daily trek from Juarez, Mexico to El Paso.  Tom & Ann <3 it",
        "rating": 3.0,
        "product": "B003AI2VGA",
        "user": "A141HP4LYPWMSR",
    }


def test_amazon_layouts(tmp_path):
    reviews = [movie(text=str(number)) for number in range(3)]
    expected = list(amazon_reviews(saved(tmp_path / "movies.txt", b"\n".join(reviews))))
    assert [review["text"].split("\n")[1] for review in expected] == ["0", "1", "2"]
    layouts = {
        "blank lines": b"\n\n \n" + b"\n\n".join(reviews) + b"\n\n\n",
        "no blank lines": b"".join(reviews),
        "crlf": b"\n".join(reviews).replace(b"\n", b"\r\n"),
        "no last line end": b"\n".join(reviews)[:-1],
        "gzip": gzip.compress(b"\n".join(reviews)),
        "byte order mark": b"\xef\xbb\xbf" + b"\n".join(reviews),
    }
    for name, content in layouts.items():
        assert list(amazon_reviews(saved(tmp_path / name, content))) == expected, name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"caf\xe9 \x93noir\x94 \x81", "café “noir” �"),  # Latin-1, Windows' quotes, a byte that neither has
        ("café noir".encode(), "café noir"),
        (b'see <a href="/x?a=1&amp;b=2">this</a> &eacute;&#39;', "see  this  é'"),
        (b"one\x00two", "one\x00two"),
        (b"5 < 6 and 7 > 2", "5 < 6 and 7 > 2"),
    ],
)
def test_amazon_text(tmp_path, text, expected):
    content = movie(text=b"review/text: " + text + b"\n", summary="")
    [review] = amazon_reviews(saved(tmp_path / "movies.txt", content))
    assert review["text"] == expected


def test_amazon_line_that_goes_on(tmp_path):
    """As in some of the real file's names; the text of the second has an empty line in it."""
    first = movie(profileName=b"review/profileName: Some\n: one\n")
    second = movie(text=b"review/text: one\n\ntwo: three\n")
    reviews = list(amazon_reviews(saved(tmp_path / "movies.txt", first, b"\n", second, b"\n", MOVIE)))
    assert len(reviews) == 3
    assert reviews[0] == reviews[2]
    assert reviews[1]["text"].split() == [*reviews[0]["text"].split("\n")[0].split(), "one", "two:", "three"]


def test_amazon_missing_fields(tmp_path):
    """What has no text or no score is broken; empty texts, and reviews without a product, are reviews."""
    contents = [
        movie(text=None),
        movie(score=None),
        movie(score="five"),
        movie(score="nan"),
        movie(score="0.0"),
        movie(text="", summary=""),
        movie(productId=None, userId=None),
        MOVIE,
    ]
    path = saved(tmp_path / "movies.txt", b"\n".join(contents))
    reviews, reasons = without_broken(amazon_reviews, path, 5)
    assert [(review["text"] == "", review["product"], review["user"]) for review in reviews] == [
        (True, "B003AI2VGA", "A141HP4LYPWMSR"),
        (False, None, None),
        (False, "B003AI2VGA", "A141HP4LYPWMSR"),
    ]
    assert reasons == [
        f"{path}:1: found a review without review/text, expected one with it",
        f"{path}:9: found a review without review/score, expected one with it",
        f"{path}:17: found 'five' as the rating, expected a number from 1 to 5",
        f"{path}:26: found 'nan' as the rating, expected a number from 1 to 5",
        f"{path}:35: found '0.0' as the rating, expected a number from 1 to 5",
    ]


def test_amazon_field_twice(tmp_path):
    twice = movie(score=b"review/score: 1.0\nreview/score: 5.0\n")
    path = saved(tmp_path / "movies.txt", MOVIE, b"\n", twice, b"\n", MOVIE)
    reviews, reasons = without_broken(amazon_reviews, path, 1)
    assert len(reviews) == 2
    assert reasons == [f"{path}:10: found review/score twice, expected each field once"]


def test_broken_records_warn_or_raise(tmp_path):
    path = saved(tmp_path / "movies.txt", b"What is this?\n", MOVIE, b"\n", movie(score="none"))
    with pytest.warns(
        UserWarning, match=r"2 broken records left out(.|\n)*movies.txt:1: found 'What is this\?'(.|\n)*:11: found 'none'"
    ):
        assert len(list(amazon_reviews(path))) == 1
    with pytest.raises(BadRowError, match=r"movies.txt:1: found 'What is this"):
        list(amazon_reviews(path, Tally(skip=False)))


def test_truncated_gzip(tmp_path):
    rng = np.random.default_rng(0)
    reviews = [movie(text=" ".join(map(str, rng.integers(1 << 30, size=200)))) for _ in range(100)]
    path = saved(tmp_path / "movies.txt.gz", gzip.compress(b"\n".join(reviews))[:-20_000])
    reviews = amazon_reviews(path)
    with pytest.raises(BadFileError, match=r"movies.txt.gz: compressed data cut short or damaged after \d+ rows"):
        list(reviews)


def test_blitzer_review(tmp_path):
    [review] = blitzer_reviews(saved(tmp_path / "books" / "all.review", BOOK))
    assert review == {
        "text": 'Horrible book, horrible.\nThis book was horrible.  R&D took < 2 days.\n\nI paid "full" price\x1a',
        "rating": 1.0,
        "sentiment": "neg",
        "domain": "books",
        "id": "0312355645:horrible_book,_horrible.:mark_gospri",
        "product": "0312355645",
    }


def test_blitzer_layouts(tmp_path):
    [expected] = blitzer_reviews(saved(tmp_path / "books" / "all.review", BOOK))
    one_line = BOOK.replace(b"\n", b" ")
    assert list(blitzer_reviews(saved(tmp_path / "books" / "crlf", BOOK.replace(b"\n", b"\r\n")))) == [
        expected | {"text": expected["text"].replace("\n\n", "\r\n\r\n")}
    ]
    [review] = blitzer_reviews(saved(tmp_path / "books" / "line", one_line))
    assert review == expected | {"text": expected["text"].replace("\n\n", "  ")}
    between = saved(tmp_path / "books" / "blank.gz", gzip.compress(b"\n\n" + BOOK + b"\n\n" + BOOK[:-1]))
    assert list(blitzer_reviews(between)) == [expected, expected]


def test_blitzer_latin1(tmp_path):
    content = book(text="TEXT").replace(b"TEXT", b"tr\xe8s bon")
    [review] = blitzer_reviews(saved(tmp_path / "books" / "all.review", content))
    assert review["text"] == "Long\ntrès bon"


@pytest.mark.parametrize(
    ("name", "rating", "expected"),
    [
        ("all", "5.0", "pos"),
        ("all", "3.5", "pos"),
        ("unlabeled", "2.0", "neg"),
        ("all", "3.0", None),
        ("positive", "3.0", "pos"),
        ("positive", None, "pos"),
        ("negative", None, "neg"),
    ],
)
def test_blitzer_sentiment(tmp_path, name, rating, expected):
    [review] = blitzer_reviews(saved(tmp_path / "dvd" / f"{name}.review", book(rating)))
    assert (review["sentiment"], review["rating"]) == (expected, rating and float(rating))


def test_blitzer_broken_records(tmp_path):
    contents = [
        book(text="first"),
        b"stray\nlines\n",
        book().replace(b"</review>\n", b""),
        book(rating=None),
        book(text=None),
        book().replace(b"<title>", b"<rating>\n5.0\n</rating>\n<title>"),
        book(text="last"),
        b"<review>\n<rating>\n",
    ]
    path = saved(tmp_path / "dvd" / "all.review", *contents)
    tally = Tally(skip=True)
    reviews = list(blitzer_reviews(path, tally))
    assert [review["text"] for review in reviews] == ["Long\nfirst", "Long\nlast"]
    assert tally.skipped.count == 6
    assert tally.skipped.reasons == [
        f"{path}:12: found 'stray' outside a review, expected <review>",
        f"{path}:14: found <review> again on line 24, expected </review> before it",
        f"{path}:24: found a review without rating, expected one with it",
        f"{path}:32: found a review without review_text, expected one with it",
        f"{path}:40: found <rating> twice, expected each field once",
    ]


def test_blitzer_folder_has_each_review_once(tmp_path):
    """As in sorted_data: selections of all.review, and counts, stand beside it; one domain has the parts only."""
    saved(tmp_path / "summary.txt", b"books all 2\n")
    saved(tmp_path / "books" / "all.review", book(text="one"), book(text="two", rating="5.0"))
    saved(tmp_path / "books" / "positive.review", book(text="two", rating="5.0"))
    saved(tmp_path / "books" / "negative.review", book(text="one"))
    saved(tmp_path / "books" / "processed.review", b"one:1 #label#:negative\ntwo:1 #label#:positive\n")
    saved(tmp_path / "books" / "processed.review.balanced", b"one:1 #label#:negative\n")
    saved(tmp_path / "camera_&_photo" / "negative.review", book(text="three"))
    saved(tmp_path / "camera_&_photo" / "unlabeled.review.gz", gzip.compress(book(text="four")))
    found = [(review["domain"], review["text"].split()[1], review["sentiment"]) for review in blitzer_reviews(tmp_path)]
    assert found == [
        ("books", "one", "neg"),
        ("books", "two", "pos"),
        ("camera_&_photo", "three", "neg"),
        ("camera_&_photo", "four", "neg"),
    ]
    assert kind_of(tmp_path) == "blitzer"
    assert [review["counts"] for review in blitzer_counts(tmp_path / "books")] == [{"one": 1}, {"two": 1}]


def test_folder_without_reviews(tmp_path):
    with pytest.raises(BadFileError, match=r"found none of the files all.review, positive.review"):
        list(blitzer_reviews(tmp_path))


COUNTS = b"must:2 i_must:1 not:1 <num>:3 3:30:1 must:1 caf\xe9:1 #label#:"


def test_blitzer_counts(tmp_path):
    path = saved(tmp_path / "books" / "all_balanced.review", COUNTS, b"negative\r\n\n", COUNTS, b"4.0\n\n")
    singles = {"must": 3, "not": 1, "<num>": 3, "3:30": 1, "café": 1}
    common = {"counts": singles, "domain": "books"}
    assert list(blitzer_counts(tmp_path)) == [
        common | {"sentiment": "neg", "rating": None},
        common | {"sentiment": "pos", "rating": 4.0},
    ]
    assert next(blitzer_counts(path, single_words=False))["counts"] == singles | {"i_must": 1}


def test_blitzer_counts_broken_lines(tmp_path):
    lines = [b"a:1 b:2", b"a:1 b #label#:positive", b"a:x #label#:positive", b"a:1 #label#:good", b"#label#:1.0"]
    path = saved(tmp_path / "negative.review", b"\n".join(lines))
    reviews, reasons = without_broken(blitzer_counts, path, 4)
    assert [(review["counts"], review["rating"]) for review in reviews] == [({}, 1.0)]
    assert reasons == [
        f"{path}:1: found 'b:2' at the end of the line, expected #label#: and a label",
        f"{path}:2: found 'b', expected a word, a colon and how often it occurs",
        f"{path}:3: found 'a:x', expected a word, a colon and how often it occurs",
        f"{path}:4: found 'good' as the rating, expected a number from 1 to 5",
    ]


def test_sample_is_uniform():
    """Each of the ten pairs out of five is drawn 2,000 times of 20,000, give or take four deviations."""
    rng = np.random.default_rng(0)
    drawn = Counter(tuple(sample(range(5), 2, rng)) for _ in range(20_000))
    assert set(drawn) == {(a, b) for a in range(5) for b in range(a + 1, 5)}
    assert all(abs(count - 2_000) < 4 * np.sqrt(20_000 * 0.1 * 0.9) for count in drawn.values())


def test_sample_of_few_is_all():
    rng = np.random.default_rng(0)
    assert sample("abc", 3, rng) == sample("abc", 5, rng) == ["a", "b", "c"]
    means = [np.mean(sample(range(100_000), 100, rng)) for _ in range(5)]
    assert abs(np.mean(means) - 50_000) < 4 * 100_000 / np.sqrt(12 * 500)


@pytest.fixture
def convert(monkeypatch, capsys):
    """The command in this process: exit code and what it says."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["convert.py", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            message = end.code if isinstance(end.code, str) else ""
            return (1 if message else end.code), message + capsys.readouterr().err
        return 0, capsys.readouterr().err

    return run


def documents(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_convert_amazon(convert, tmp_path):
    path = saved(
        tmp_path / "movies.txt", *(movie(text=f"café {number}", score=f"{1 + number % 5}") + b"\n" for number in range(50))
    )
    saved(path, path.read_bytes(), movie(score="none"))
    for out in tmp_path / "all.jsonl.gz", tmp_path / "all.jsonl":
        code, said = convert(path, out)
        assert code == 0, said
        assert said.splitlines() == [
            f"{out}: 50 documents of 50 reviews (amazon), 1 broken ones left out",
            f"  {path}:451: found 'none' as the rating, expected a number from 1 to 5",
        ]
        assert documents(out) == list(amazon_reviews(path, Tally(skip=True)))
        [rows] = read(out, text="text", columns={"rating": "number"})
        assert rows.columns["rating"][:6] == [1, 2, 3, 4, 5, 1]


def test_convert_samples(convert, tmp_path):
    path = saved(tmp_path / "movies.txt", b"\n".join(movie(text=str(number)) for number in range(200)))
    samples = []
    for name, seed in ("a", "1"), ("b", "1"), ("c", "2"):
        out = tmp_path / f"{name}.jsonl.gz"
        assert convert(path, out, "--sample", "20", "--seed", seed)[0] == 0
        samples.append([int(document["text"].split("\n")[1]) for document in documents(out)])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert samples[0] == sorted(set(samples[0])) != samples[2]
    assert len(samples[0]) == len(samples[2]) == 20


def test_convert_counts(tmp_path):
    """As a user calls it."""
    saved(tmp_path / "acl" / "dvd" / "positive.review", COUNTS, b"positive\n")
    out = tmp_path / "acl.jsonl"
    command = [sys.executable, EXPERIMENTS / "convert.py", tmp_path / "acl", out]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr
    text = "must must must not <num> <num> <num> 3:30 café"
    assert documents(out) == [{"text": text, "rating": None, "sentiment": "pos", "domain": "dvd"}]


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        ("movies.txt", b"\n".join([MOVIE] * 3), ["--sample", "4"], "found 3 reviews, expected at least the 4 of --sample"),
        ("movies.txt.gz", gzip.compress(MOVIE)[:-40], [], "compressed data cut short or damaged"),
        ("movies.txt", b"\n".join([movie(score="none")] * 150 + [MOVIE] * 300), [], "found 150 broken of 450 reviews"),
        ("movies.txt", movie(text=None), [], "found 1 broken of 1 reviews"),
        ("reviews.csv", b"text,stars\nGood,5\n", [], "found b'text,stars\\n', expected product/productId:, <review> or a line"),
        ("empty.txt", b"\n\n", [], "found nothing, expected"),
        ("unprocessed.tar.gz", b"", [], "found an archive, expected what is in it"),
    ],
)
def test_convert_writes_all_or_nothing(convert, tmp_path, name, content, options, expected):
    path, out = saved(tmp_path / name, content), saved(tmp_path / "out.jsonl.gz", b"before")
    code, said = convert(path, out, *options)
    assert code == 1
    assert said.startswith(f"error: {path}: ")
    assert expected in said
    assert out.read_bytes() == b"before"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "out.jsonl.gz"])


@pytest.mark.parametrize("arguments", [["out.csv"], ["out.jsonl", "--sample", "0"], ["out.jsonl", "--seed", "-1"]])
def test_convert_refuses_options(convert, tmp_path, arguments):
    code, said = convert(saved(tmp_path / "movies.txt", MOVIE), *arguments)
    assert code == 2
    assert "expected" in said


@pytest.mark.parametrize("module", [amazon, blitzer])
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
