"""``envcheck diff``: what changed between saved reports."""

from __future__ import annotations

from argparse import Namespace

from envcheck.cli.asking import saved_report
from envcheck.cli.page import home_folders, page
from envcheck.diff import diff
from envcheck.errors import UsageError
from envcheck.exitcode import ExitCode
from envcheck.redact import redact
from envcheck.report import json
from envcheck.report.answers.diff import render_diff
from envcheck.text.streams import tell


def run(options: Namespace) -> int:
    """Print the differences; the exit status says whether there are any."""
    if options.files.count("-") > 1:
        raise UsageError("only one report can be read from stdin")
    reports = [(name, saved_report(name)) for name in options.files]
    if options.redact:
        reports = [(name, redact(report, home_folders())) for name, report in reports]
    found = diff(reports)
    if options.format == "json":
        tell(json.render(found), "json")
    else:
        tell(render_diff(found, page(options)))
    return ExitCode.OK if found.result == "same" else ExitCode.FOUND
