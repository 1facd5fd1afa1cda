"""Write the report of a verb: to the files that were asked for, and to stdout."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from envcheck.checks import Report
from envcheck.cli.page import home_folders, page
from envcheck.errors import UsageError
from envcheck.report import FORMATS, Options, exit_status, render
from envcheck.text.clean import clean
from envcheck.text.inert import inert
from envcheck.text.output import Target, write_whole
from envcheck.text.streams import say, tell


def deliver(report: Report, options: Namespace, targets: Sequence[Target]) -> int:
    """Write ``report`` to ``targets``, print it, and return the exit status; raise UsageError for what failed.

    The status is the report's, or the one that the readers of the printed format expect.
    """
    shown = Options(verbose=options.verbose, redact=options.redact, homes=home_folders())
    failures = [problem for target in targets if (problem := _not_written(report, target, shown))]
    form = options.format or "text"
    tell(render(report, form, page(options)), syntax=FORMATS[form].syntax)
    if "github" in (form, *(target.format for target in targets)):
        _add_to_summary(report, shown)
    if failures:
        raise UsageError("; ".join(failures))
    return exit_status(report, form)


def _add_to_summary(report: Report, shown: Options) -> None:
    """Append the Markdown page to the job's summary on GitHub; other commands of the step may have written to it."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    try:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(inert(render(report, "markdown", shown), FORMATS["markdown"].syntax))
    except (OSError, ValueError) as error:
        say(f"envcheck: cannot write the job's summary {clean(name)}: {getattr(error, 'strerror', None) or error}")


def _not_written(report: Report, target: Target, shown: Options) -> str:
    """Why ``target`` could not be written; the report is worth printing all the same."""
    try:
        write_whole(target.path, render(report, target.format, shown), FORMATS[target.format].syntax)
    except UsageError as error:
        return str(error)
    return ""
