"""Names in docstrings: `Corpus` in single quotes is a link where the name is public, otherwise code."""

from pkgutil import resolve_name

from docutils import nodes
from sphinx.util.docutils import SphinxRole

# Where a docstring may leave out the module.
PARTS = ("text", "topics", "metrics", "readers", "responses", "tables", "explain", "evaluation", "baselines", "report")
MODULES = ("mirrorlda", *(f"mirrorlda.{part}" for part in PARTS))


def target_of(name):
    """The full name of a function, class or method of the package; None where there is none of this name."""
    for full in [name] if name.startswith("mirrorlda.") else [f"{module}.{name}" for module in MODULES]:
        try:
            if callable(resolve_name(full)):
                return full
        except (ImportError, AttributeError, ValueError):
            continue
    return None


class Name(SphinxRole):
    """A link to a public name, or code. A link that leads nowhere is an error of the build."""

    def run(self):
        target = target_of(self.text)
        if target is None:
            return [nodes.literal(self.rawtext, self.text)], []
        link = self.env.domains.python_domain.role("obj")
        return link("py:obj", self.rawtext, f"{self.text} <{target}>", self.lineno, self.inliner, self.options, self.content)


def is_skipped(app, what, name, obj, skip, options):
    """Leaves out what a class has from elsewhere: scikit-learn documents its own methods."""
    for attribute in ("fget", "func", "__objclass__"):
        obj = getattr(obj, attribute, obj)
    return skip or not (getattr(obj, "__module__", None) or "mirrorlda").startswith("mirrorlda")


def setup(app):
    """What Sphinx calls."""
    app.add_role("name", Name())
    app.connect("autodoc-skip-member", is_skipped)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
