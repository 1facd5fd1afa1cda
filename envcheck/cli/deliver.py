"""Write the report of a verb: to the files that were asked for, and to stdout."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from envcheck.checks import Report
from envcheck.cli.page import homes, page
from envcheck.errors import UsageError
from envcheck.report import FORMATS, Options, render
from envcheck.text.output import Target, write_whole
from envcheck.text.streams import tell


def deliver(report: Report, options: Namespace, targets: Sequence[Target]) -> int:
    """Write ``report`` to ``targets``, print it, and return its exit status; raise UsageError for what failed."""
    shown = Options(verbose=options.verbose, redact=options.redact, homes=homes())
    failures = [problem for target in targets if (problem := _not_written(report, target, shown))]
    form = options.format or "text"
    tell(render(report, form, page(options)), syntax=FORMATS[form].syntax)
    if failures:
        raise UsageError("; ".join(failures))
    return report.exit_code


def _not_written(report: Report, target: Target, shown: Options) -> str:
    """Why ``target`` could not be written; the report is worth printing all the same."""
    try:
        write_whole(target.path, render(report, target.format, shown), FORMATS[target.format].syntax)
    except UsageError as error:
        return str(error)
    return ""
