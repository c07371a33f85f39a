"""Sphinx configuration."""

from finalist import __version__

project = "finalist"
author = "The finalist developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "finalist"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_google_docstring = False
nitpicky = False

# A batch of a strategy and a batch of a study are both called Batch.
suppress_warnings = ["ref.python"]
