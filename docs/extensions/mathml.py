"""Formulas as MathML, made by Docutils when the site is built: browsers show it without a script and without a network.

Where a system has no font for mathematics, browsers set MathML badly; the site has one, which the package ziamath brings along.
"""

from importlib.resources import as_file, files
from pathlib import Path
from shutil import copy

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

FONT = files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"


def show(writer, node, *, block):
    """Appends the formula of a node, and goes on behind it."""
    formula = tex2mathml(node.astext(), as_block=block)
    writer.body.append(f'<div class="formula">{formula}</div>\n' if block else formula)
    raise nodes.SkipNode


def show_inline(writer, node):
    show(writer, node, block=False)


def show_block(writer, node):
    show(writer, node, block=True)


def copy_font(app, error):
    """To where site.css expects it."""
    if error is None and app.builder.format == "html":
        with as_file(FONT) as font:
            copy(font, Path(app.outdir) / "_static")


def setup(app):
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (show_inline, None), (show_block, None))
    app.connect("build-finished", copy_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
