"""JUnit's XML, as Jenkins, GitLab and GitHub's actions read it: a suite for each layer, a test case for each check.

A failure is ``failure``; so is a warning where warnings made the exit status 1. What could not be judged is ``error``
when it leaves the whole without a verdict, and else ``skipped``: it never counts as passed, and a run whose exit status
is 0 shows no red. Warnings and notes that decide nothing are passed cases whose text is in ``system-out``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from envcheck.model.checks import LAYERS, Check, Report
from envcheck.report import Format, Options
from envcheck.report.page.plain import explained, is_red, why_open
from envcheck.text.clean import clean

FORMAT = Format(shows="XML for continuous integration: a test case for each check", suffix="xml", syntax="markup")

_LONGEST = 4000
_OUTCOMES = ("failure", "error", "skipped")


def render(report: Report, _options: Options) -> str:
    """``report`` as XML 1.0 in UTF-8; a target's name stands before that of the layer."""
    suites: list[str] = []
    counts = dict.fromkeys(("tests", "failures", "errors"), 0)
    for target, judged in report.by_target():
        prefix = f"envcheck.{target}" if target else "envcheck"
        for layer in LAYERS:
            checks = [check for check in judged.checks if check.layer == layer]
            suites += [_suite(f"{prefix}.{layer}", checks, judged)] if checks else []
        found = _counts(judged.checks, judged)
        if judged.verdict == "unknown" and not found["failures"] + found["errors"]:
            # No check that matters ran: that must not look like a run in which all passed.
            told = _open("error", {"message": f"no verdict: {judged.headline}", "type": "unknown"})
            suites += [
                _open("testsuite", {"name": prefix, "tests": 1, "failures": 0, "errors": 1, "skipped": 0}),
                _open("testcase", {"classname": prefix, "name": "verdict", "time": "0"}),
                f"{told}</error>",
                "</testcase>",
                "</testsuite>",
            ]
            found = found | {"tests": found["tests"] + 1, "errors": 1}
        counts = {name: count + found[name] for name, count in counts.items()}  # Jenkins counts skipped ones by suite
    head = _open("testsuites", {"name": "envcheck", **counts, "time": f"{report.duration_s:.3f}"})
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]) + "\n"


def _suite(name: str, checks: Sequence[Check], report: Report) -> str:
    told: dict[str, str | int] = {
        "name": name,
        **_counts(checks, report),
        "time": "0",
        "timestamp": report.created[:19],
    }
    if report.host:
        told["hostname"] = report.host
    properties = {"verdict": report.verdict, "headline": report.headline, "matrix": report.tool.matrix}
    lines = [
        _open("testsuite", told),
        "<properties>",
        *(f"{_open('property', {'name': key, 'value': value})[:-1]}/>" for key, value in properties.items()),
        "</properties>",
    ]
    for check in checks:
        lines.append(_open("testcase", {"classname": name, "name": check.id, "time": "0"}))
        body = "\n".join(map(_text, explained(check)))
        if outcome := _outcome(check, report):
            why = why_open(check) if check.status in ("unknown", "skipped") else check.title
            why = f"ignored by policy: {check.ignored.reason}" if check.ignored else why
            lines.append(f"{_open(outcome, {'message': why, 'type': check.status})}{body}</{outcome}>")
        elif check.status in ("warn", "note"):
            lines.append(f"<system-out>{_text(f'{check.status}: {check.title}')}\n{body}</system-out>")
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>"])


def _counts(checks: Iterable[Check], report: Report) -> dict[str, int]:
    found = [_outcome(check, report) for check in checks]
    failures, errors, skipped = (found.count(outcome) for outcome in _OUTCOMES)
    return {"tests": len(found), "failures": failures, "errors": errors, "skipped": skipped}


def _outcome(check: Check, report: Report) -> str:
    if check.ignored or check.status == "skipped":
        return "skipped"
    if check.status == "unknown":
        return "error" if report.verdict == "unknown" else "skipped"
    return "failure" if is_red(check, report) else ""


def _open(tag: str, attributes: dict[str, str | int]) -> str:
    told = "".join(f' {name}="{_text(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{told}>"


def _text(text: str) -> str:
    """``text`` on one line, without a character that XML 1.0 forbids, and escaped."""
    shown = clean(text[:_LONGEST]) + ("…" if len(text) > _LONGEST else "")
    return escape(shown, quote=True)
