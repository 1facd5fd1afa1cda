"""Who reads this format, and what for."""

from __future__ import annotations

from envcheck.model.checks import Report
from envcheck.report import Format, Options
from envcheck.text.clean import clean

# A format shows and never decides. ``shared=True`` is for formats that people pass on: names of users and machines
# become pseudonyms. ``targets=False`` refuses reports about several targets; without it the page must name each of
# them. Where readers expect exit statuses of their own, add ``exit_status(report)``, as nagios.py does. Name the
# format in docs/check.md. --format, -o, the help, the man page and the application find it by itself.
FORMAT = Format(shows="verdict and checks", suffix="example_thing.txt", syntax="text", targets=False)


def render(report: Report, options: Options) -> str:
    """``report`` as lines of plain text; a quiet one has the verdict alone.

    Whatever may hold foreign text (ids, titles, messages, evidence) goes through ``clean``.
    """
    lines = [f"verdict: {report.verdict}"]
    if not options.quiet:
        lines += [f"{check.status}: {clean(check.id)}" for check in report.checks]
    return "\n".join(lines) + "\n"
