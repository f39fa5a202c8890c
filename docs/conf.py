"""The site that `make docs` builds from this folder."""

import sys
from pathlib import Path

import mirrorlda

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "mirrorlda"
author = "The mirrorlda developers"
release = version = mirrorlda.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc", "mathml", "names", "command_line"]
# What the experiments wrote is included by the page about them.
exclude_patterns = ["extensions", "static", "results"]
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"mirrorlda {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"

# Anchors as GitHub makes them, so that a link works there too.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

default_role = "name"
# Docstrings say the types of parameters; the signatures are read for names and defaults.
autodoc_typehints = "none"
# What only some users install.
autodoc_mock_imports = ["fsspec", "ray"]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False

# Every name in a signature, and every link of a docstring, must lead somewhere.
nitpicky = True
