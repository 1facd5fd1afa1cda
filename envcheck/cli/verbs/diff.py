"""``envcheck diff``: what changed between saved reports."""

from __future__ import annotations

from argparse import Namespace

from envcheck.cli.asking import files_of, saved_report
from envcheck.cli.page import home_folders, page
from envcheck.diff import diff
from envcheck.errors import UsageError
from envcheck.exitcode import ExitCode
from envcheck.redact import redact
from envcheck.report import json
from envcheck.report.answers.diff import render_diff
from envcheck.text.streams import tell

_MOST_RUNS = 50


def run(options: Namespace) -> int:
    """Print the differences; the exit status says whether there are any."""
    named = options.base or ()
    if [*options.files, *named].count("-") > 1:
        raise UsageError("only one report can be read from stdin")
    runs = [file for name in named for file in files_of(name)]
    if len(runs) > _MOST_RUNS:
        raise UsageError(f"--base names {len(runs)} reports; at most {_MOST_RUNS} are compared with")
    reports, base = ([(name, saved_report(name)) for name in names] for names in (options.files, runs))
    if options.redact:
        reports, base = ([(name, redact(report, home_folders())) for name, report in side] for side in (reports, base))
    found = diff(reports, base)
    if options.format == "json":
        tell(json.render(found), "json")
    else:
        tell(render_diff(found, page(options)))
    return ExitCode.OK if found.result == "same" else ExitCode.FOUND
