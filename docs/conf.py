"""What Sphinx is told about the site; ``scripts/documentation.py`` writes its pages and builds it."""

project = "envcheck"
copyright = "The envcheck developers"  # noqa: A001 - Sphinx's own name
extensions = ["myst_parser"]
smartquotes = False  # two dashes begin an option
html_theme = "alabaster"
html_theme_options = {
    "description": "What is on a GPU machine, and whether it fits together",
    "page_width": "1160px",
    "sidebar_width": "270px",
}
html_show_sourcelink = False
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]
"""Links of the pages to files of the repository, which the site does not hold."""
