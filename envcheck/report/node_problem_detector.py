"""What a custom plugin of Kubernetes' node-problem-detector prints: one message, under its exit statuses.

The exit status is 0 (OK), 1 (a problem: whatever makes envcheck's own exit status 1) and 2 (unknown: no verdict, or
interrupted; wrong usage has the same number).
"""

from __future__ import annotations

from envcheck.errors import ExitCode
from envcheck.model.checks import Report
from envcheck.report import Format, Options
from envcheck.text.clean import clean

FORMAT = Format(
    shows="a message of 80 bytes for node-problem-detector, under its exit statuses",
    suffix="npd.txt",
    syntax="text",
    targets=False,
)

MOST_BYTES = 80  # What the detector keeps of a message unless it is configured otherwise (``max_output_length``)


def render(report: Report, _options: Options) -> str:
    """``report`` as one message: the rule that found the root cause, then its headline."""
    rule = f"{report.primary}: " if report.primary else ""
    text = clean(rule + report.headline[: 2 * MOST_BYTES])
    if len(text.encode()) > MOST_BYTES:
        text = text.encode()[: MOST_BYTES - 3].decode(errors="ignore") + "…"
    return text + "\n"


def exit_status(report: Report) -> int:
    return {int(ExitCode.OK): 0, int(ExitCode.FOUND): 1}.get(report.exit_code, 2)
