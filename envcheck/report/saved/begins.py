"""How a report begins, by which a file is known to be envcheck's own."""

from __future__ import annotations

import re

REPORT = re.compile(
    rb"""
      \{\s*"schema_version":\s*"[^"]*",\s*"tool":\s*\{\s*"name":\s*"envcheck"
    | \{\s*"\$schema":[^{]*"runs":\s*\[\s*\{\s*"tool":\s*\{\s*"driver":\s*\{\s*"name":\s*"envcheck"
    | \[\s*(?:\{\s*"description":\s*"(?:[^"\\]|\\.)*",\s*"check_name":|\]\s*\Z)
    | <\?xml[^>]*>\s*<testsuites\ name="envcheck"
    | <!DOCTYPE\ html>\s*<html[^>]*>\s*<head>(?:<meta[^>]*>\s*)*<title>envcheck:
    | \#\#\#\ \S+\ (?:PASS|WARN|FAIL|UNKNOWN):[ ]
    | Judged\ for\ [0-9]+\ targets?\n
    | (?:PASS|WARN|FAIL|UNKNOWN|\?)\ \ +\S
    | ENVCHECK\ [A-Z]+\ -[ ]
    | envcheck:[ ]
    | \#\ HELP\ envcheck_info[ ]
    | ::(?:notice|warning|error)\ [^\n]*title=envcheck%3A
    """,
    re.VERBOSE,
)
"""Of any format but ``node-problem-detector``: one line of any words, by which nothing can be told."""
