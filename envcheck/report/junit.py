"""JUnit's XML, as Jenkins, GitLab and GitHub's actions read it: a suite for each layer, a test case for each check.

A failure is ``failure``; so is a warning where warnings made the exit status 1. What could not be judged is ``error``
when it leaves the whole without a verdict, and else ``skipped``: it never counts as passed, and a run whose exit status
is 0 shows no red. Warnings and notes that decide nothing are passed cases whose text is in ``system-out``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from envcheck.checks import LAYERS, Check, Fix, Report, ways
from envcheck.report import Format, Options
from envcheck.report.page.fixes import steps
from envcheck.report.page.head import evidence_text
from envcheck.snapshot.names import fact_name
from envcheck.text.clean import clean
from envcheck.text.command import shell_line

FORMAT = Format(shows="XML for continuous integration: a test case for each check", suffix="xml", syntax="markup")

_LONGEST = 4000
_OUTCOMES = ("failure", "error", "skipped")


def render(report: Report, _options: Options) -> str:
    """``report`` as XML 1.0 in UTF-8."""
    suites = [
        _suite(layer, [check for check in report.checks if check.layer == layer], report)
        for layer in LAYERS
        if any(check.layer == layer for check in report.checks)
    ]
    counts = _counts(report.checks, report)
    if report.verdict == "unknown" and not counts["failures"] + counts["errors"]:
        # No check that matters ran: that must not look like a run in which all passed.
        suites.append(_no_verdict(report))
        counts = counts | {"tests": counts["tests"] + 1, "errors": 1}
    head = _open("testsuites", {"name": "envcheck", **counts, "time": f"{report.duration_s:.3f}"})
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]) + "\n"


def _suite(layer: str, checks: Sequence[Check], report: Report) -> str:
    told: dict[str, str | int] = {
        "name": f"envcheck.{layer}",
        **_counts(checks, report),
        "time": "0",
        "timestamp": report.created[:19],
    }
    if report.host:
        told["hostname"] = report.host
    properties = {"verdict": report.verdict, "headline": report.headline, "matrix": report.tool.matrix}
    return "\n".join(
        [
            _open("testsuite", told),
            "<properties>",
            *(f"{_open('property', {'name': name, 'value': value})[:-1]}/>" for name, value in properties.items()),
            "</properties>",
            *(_case(check, report) for check in checks),
            "</testsuite>",
        ]
    )


def _no_verdict(report: Report) -> str:
    return "\n".join(
        [
            _open("testsuite", {"name": "envcheck", "tests": 1, "failures": 0, "errors": 1, "skipped": 0}),
            _open("testcase", {"classname": "envcheck", "name": "verdict", "time": "0"}),
            f"{_open('error', {'message': f'no verdict: {report.headline}', 'type': 'unknown'})}</error>",
            "</testcase>",
            "</testsuite>",
        ]
    )


def _counts(checks: Iterable[Check], report: Report) -> dict[str, int]:
    found = [_outcome(check, report) for check in checks]
    failures, errors, skipped = (found.count(outcome) for outcome in _OUTCOMES)
    return {"tests": len(found), "failures": failures, "errors": errors, "skipped": skipped}


def _outcome(check: Check, report: Report) -> str:
    if check.ignored or check.status == "skipped":
        return "skipped"
    if check.status == "unknown":
        return "error" if report.verdict == "unknown" else "skipped"
    refused = check.status == "fail" or (check.status == "warn" and report.verdict == "warn" and report.exit_code == 1)
    return "failure" if refused else ""


def _case(check: Check, report: Report) -> str:
    outcome = _outcome(check, report)
    lines = [_open("testcase", {"classname": f"envcheck.{check.layer}", "name": check.id, "time": "0"})]
    if outcome:
        lines.append(f"{_open(outcome, {'message': _why(check), 'type': check.status})}{_body(check)}</{outcome}>")
    elif check.status in ("warn", "note"):
        lines.append(f"<system-out>{_text(f'{check.status}: {check.title}')}\n{_body(check)}</system-out>")
    return "\n".join([*lines, "</testcase>"])


def _why(check: Check) -> str:
    if check.ignored:
        return f"ignored by policy: {check.ignored.reason}"
    if check.status in ("unknown", "skipped"):
        lacks = ", ".join(fact_name(missing.fact) for missing in check.missing)
        return f"not judged: {check.message or check.title}" + (f" (lacks {lacks})" if lacks else "")
    return check.title


def _body(check: Check) -> str:
    """Message, evidence, fixes and sources, a line each."""
    lines = [
        check.message,
        *(f"seen: {evidence_text(found)}" for found in check.evidence),
        *(f"caused by: {cause}" for cause in filter(None, [check.explained_by])),
        *(_fix(step, fix) for way in ways(check.fixes) for step, fix in steps(way)),
        *(f"docs: {source.title} {source.address}" for source in check.sources),
    ]
    return "\n".join(_text(line) for line in lines if line)


def _fix(step: str, fix: Fix) -> str:
    who = "" if fix.who == "user" else f" ({fix.who})"
    return f"fix{who}: {step}{fix.text}" + (f": {shell_line(fix.command)}" if fix.command else "")


def _open(tag: str, attributes: dict[str, str | int]) -> str:
    told = "".join(f' {name}="{_text(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{told}>"


def _text(text: str) -> str:
    """``text`` on one line, without a character that XML 1.0 forbids, and escaped."""
    shown = clean(text[:_LONGEST]) + ("…" if len(text) > _LONGEST else "")
    return escape(shown, quote=True)
