"""A line for Nagios, Icinga and Naemon, with performance data, under the exit status of their plugins.

The exit status is 0 OK (no finding), 1 WARNING (the verdict is a warning), 2 CRITICAL (a failure) and 3 UNKNOWN (no
verdict, or interrupted). Wrong usage keeps envcheck's own 2, so that a broken command line is never green.
"""

from __future__ import annotations

from envcheck.errors import ExitCode
from envcheck.model.checks import STATUSES, Report
from envcheck.report import Format, Options
from envcheck.report.page.findings import Outline
from envcheck.text.clean import one_line

FORMAT = Format(
    shows="one line with performance data for Nagios, under its exit statuses",
    suffix="nagios.txt",
    syntax="text",
    targets=False,
)

_STATES = {"pass": (0, "OK"), "warn": (1, "WARNING"), "fail": (2, "CRITICAL"), "unknown": (3, "UNKNOWN")}
_TEXT, _RULES = 300, 5


def render(report: Report, _options: Options) -> str:
    """``report`` in one line of less than 1,000 characters."""
    _, word = _STATES[_state(report)]
    rules = list(dict.fromkeys(finding.rule for finding in Outline(report).findings))
    also = [f"+{len(rules) - _RULES} more"] if len(rules) > _RULES else []
    headline = f"{report.headline} [{', '.join([*rules[:_RULES], *also])}]" if rules else report.headline
    text = one_line(headline, _TEXT).replace("|", "/")  # a bar would begin the performance data
    # 'label'=value[unit];warn;crit;min: the number of checks by status, and the time that it took.
    counts = dict.fromkeys(STATUSES, 0)
    for check in report.checks:
        counts[check.status] += not check.ignored
    limits = {"warn": "0", "fail": ";0"}
    data = [f"{status}={count};{limits.get(status, '')}".rstrip(";") for status, count in counts.items()]
    return f"ENVCHECK {word} - {text} | {' '.join(data)} time={report.duration_s:.3f}s\n"


def exit_status(report: Report) -> int:
    return _STATES[_state(report)][0]


def _state(report: Report) -> str:
    return "unknown" if report.exit_code == ExitCode.INTERRUPTED else report.verdict
