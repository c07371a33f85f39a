"""Sphinx configuration."""

import sys
from pathlib import Path

from finalist import __version__

sys.path.insert(0, str(Path(__file__).parent))
import generate

generate.write()

project = "finalist"
author = "The finalist developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "finalist"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["code.css"]
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_google_docstring = False
nitpicky = False

# A batch of a strategy and a batch of a study are both called Batch.
# There is no lexer for CSV.
suppress_warnings = ["ref.python", "misc.highlighting_failure"]
