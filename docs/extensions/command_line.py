"""The directive `help`: what a verb of the command line prints with --help.

    ```{help} train
    ```

Without a verb it is what `mirrorlda --help` prints.
"""

from click.testing import CliRunner
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

COLUMNS = 88


class Help(SphinxDirective):
    """Runs the command line that is installed, so that the page cannot differ from it."""

    optional_arguments = 1

    def run(self):
        from mirrorlda.cli import main

        arguments = [*self.arguments, "--help"]
        result = CliRunner().invoke(main, arguments, prog_name="mirrorlda", terminal_width=COLUMNS, max_content_width=COLUMNS)
        if result.exit_code != 0:
            raise self.error(f"mirrorlda {' '.join(arguments)} ended with {result.exit_code}: {result.output}")
        text = f"$ mirrorlda {' '.join(arguments)}\n{result.output}"
        return [nodes.literal_block(text, text, language="console")]


def setup(app):
    """What Sphinx calls."""
    app.add_directive("help", Help)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
