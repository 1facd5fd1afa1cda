"""Workflow commands of GitHub Actions: an annotation for each finding, at the file and line that it is about.

A reason for exit status 1 is an ``error``, another finding a ``warning``, and what decides nothing a ``notice``. GitHub
shows the first ten of each kind of a step, so the root cause comes first. The verbs also append the Markdown page to
the file that ``GITHUB_STEP_SUMMARY`` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from envcheck.model.checks import Location, Report
from envcheck.report import Format, Options
from envcheck.report.page.findings import Outline
from envcheck.report.page.plain import explained, is_red, why_open
from envcheck.report.page.subject import listed
from envcheck.text.clean import one_line

FORMAT = Format(
    shows="annotations for GitHub Actions, and the job's summary", suffix="github.txt", syntax="workflow", shared=True
)

Kind: TypeAlias = Literal["error", "warning", "notice"]

_TITLE, _LINE, _LINES, _FILE = 200, 1000, 30, 1000
"""Most characters of a title and a line, lines of a message, and characters of a path."""
_FINDINGS, _NAMED = 50, 20


def render(report: Report, _options: Options) -> str:
    """``report`` as workflow commands, a line each; never none. Titles about a target begin with its name."""
    targets = ((f"{target}: " if target else "", Outline(judged)) for target, judged in report.by_target())
    return "".join(command for about, outline in targets for command in _commands(about, outline))


def _commands(about: str, outline: Outline) -> Iterator[str]:
    """The verdict, the findings, and what was not judged or a policy set aside: neither is silent."""
    report = outline.report
    if report.verdict == "unknown":
        yield _command(
            "error", f"{about}no verdict", [report.headline, *(f"to find out: {fact}" for fact in report.ask)]
        )
    elif report.verdict == "pass":
        yield _command("notice", f"{about}pass", [report.headline])
    for finding in outline.findings[:_FINDINGS]:
        kind: Kind = "error" if is_red(finding.lead, report) else "warning"
        follows = list(dict.fromkeys(found.rule for found in outline.consequences(finding)))
        named = [f"consequences: {listed(follows, _NAMED)}"] if follows else []
        # A check for each place in a file, or the first where none is about a file.
        placed = [check for check in finding.checks if check.location]
        for check in placed[:_FINDINGS] or finding.checks[:1]:
            lines = [*explained(check), *named]
            title = check.title if check.location else finding.title
            yield _command(kind, f"{about}{title} [{check.rule}]", lines, check.location)
    left = len(outline.findings) - _FINDINGS
    if left > 0:
        yield _command("warning", f"{about}{left} more findings", ["the job's summary lists them"])
    if outline.unknowns:
        lines = [f"{found.rule}: {why_open(found.lead)}" for found in outline.unknowns]
        yield _command("notice", f"{about}{len(lines)} not judged", lines)
    counting = (check for check in report.checks if check.status in ("fail", "warn", "unknown"))
    aside = [f"{check.id}: {check.ignored.reason}" for check in counting if check.ignored]
    if aside:
        yield _command("notice", f"{about}{len(aside)} ignored by policy", aside)


def _command(kind: Kind, title: str, lines: Iterable[str], place: Location | None = None) -> str:
    cut = [one_line(line, _LINE) for line in lines]
    more = [f"{len(cut) - _LINES} more lines"] if len(cut) > _LINES else []
    where = "" if place is None or not place.file else f"file={_property(one_line(place.file, _FILE))},"
    if where and place and place.line and place.line > 0:
        where += f"line={place.line},"
    message = "%0A".join(map(_data, [*cut[:_LINES], *more])) or _data(one_line(title, _TITLE))
    return f"::{kind} {where}title=envcheck%3A {_property(one_line(title, _TITLE))}::{message}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
