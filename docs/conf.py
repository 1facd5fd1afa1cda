"""What Sphinx is told about the site; ``scripts/documentation.py`` writes its pages and builds it."""

project = "envcheck"
html_title = "envcheck"
copyright = "The envcheck developers"  # noqa: A001 - Sphinx's own name
extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_typehints = "description"
smartquotes = False  # two dashes begin an option
myst_heading_anchors = 3
html_theme = "furo"
html_static_path = ["style.css"]
html_extra_path = ["llms.txt"]
html_css_files = ["style.css"]
html_show_sourcelink = False
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]
"""Links of the pages to files of the repository, which the site does not hold."""
