"""JUnit's XML, as Jenkins, GitLab and GitHub's actions read it: a suite for each layer, a test case for each check; of
plans, one test case for each plan and target.

A failure is ``failure``; so is a warning where warnings made the exit status 1. What could not be judged is ``error``
when it leaves the whole without a verdict, and else ``skipped``: it never counts as passed, and a run whose exit status
is 0 shows no red. Warnings and notes that decide nothing are passed cases whose text is in ``system-out``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from envcheck.errors import ExitCode
from envcheck.model.checks import LAYERS, Check, Report
from envcheck.report import Format, Options
from envcheck.report.page.plain import explained, is_red, why_open
from envcheck.text.clean import one_line

FORMAT = Format(shows="XML for continuous integration: a test case for each check", suffix="xml", syntax="markup")

_LONGEST = 4000


def render(report: Report, _options: Options) -> str:
    """``report`` as XML 1.0 in UTF-8; a target's name stands before that of the layer."""
    suites: list[str] = []
    counts = dict.fromkeys(("tests", "failures", "errors"), 0)
    of_plans = any(environment.planned is not None for environment in report.environments)
    for target, judged in report.by_target():
        prefix = f"envcheck.{target}" if target else "envcheck"
        found = _counts(judged.checks, judged)
        if not of_plans:
            for layer in LAYERS:
                checks = [check for check in judged.checks if check.layer == layer]
                suites += [_suite(f"{prefix}.{layer}", checks, judged)] if checks else []
        if of_plans or (judged.exit_code == ExitCode.UNKNOWN and not found["failures"] + found["errors"]):
            # That no check which matters ran must not look like a run in which all passed.
            outcome, cases = _single_case(judged)
            one = {"tests": 1, "failures": int(outcome == "failure"), "errors": int(outcome == "error")}
            suites += [
                _open("testsuite", {"name": prefix, **one, "skipped": 0}),
                _open("testcase", {"classname": prefix, "name": "plan" if of_plans else "verdict", "time": "0"}),
                *cases,
                "</testcase>",
                "</testsuite>",
            ]
            found = one if of_plans else {name: found[name] + number for name, number in one.items()}
        counts = {name: count + found[name] for name, count in counts.items()}  # Jenkins counts skipped ones by suite
    head = _open("testsuites", {"name": "envcheck", **counts, "time": f"{report.duration_s:.3f}"})
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]) + "\n"


def _single_case(report: Report) -> tuple[str, list[str]]:
    """The outcome of a report, and the elements that say so in its one test case."""
    outcome = {1: "failure", 3: "error"}.get(report.exit_code, "")
    shown = [check for check in report.checks if check.status in ("fail", "warn") and not check.ignored]
    body = "\n".join(_text(line) for check in shown for line in (f"{check.status}: {check.title}", *explained(check)))
    if not outcome:
        return outcome, [f"<system-out>{body}</system-out>"] if body else []
    why = f"no verdict: {report.headline}" if outcome == "error" else report.headline
    return outcome, [f"{_open(outcome, {'message': why, 'type': report.verdict})}{body}</{outcome}>"]


def _suite(name: str, checks: Sequence[Check], report: Report) -> str:
    attributes: dict[str, str | int] = {
        "name": name,
        **_counts(checks, report),
        "time": "0",
        "timestamp": report.created[:19],
    }
    if report.host:
        attributes["hostname"] = report.host
    properties = {"verdict": report.verdict, "headline": report.headline, "matrix": report.tool.matrix}
    lines = [
        _open("testsuite", attributes),
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
    failures, errors, skipped = (found.count(outcome) for outcome in ("failure", "error", "skipped"))
    return {"tests": len(found), "failures": failures, "errors": errors, "skipped": skipped}


def _outcome(check: Check, report: Report) -> str:
    if check.ignored or check.status == "skipped":
        return "skipped"
    if check.status == "unknown":
        return "error" if report.exit_code == ExitCode.UNKNOWN else "skipped"
    return "failure" if is_red(check, report) else ""


def _open(tag: str, attributes: dict[str, str | int]) -> str:
    listed_attributes = "".join(f' {name}="{_text(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{listed_attributes}>"


def _text(text: str) -> str:
    """``text`` on one line, without a character that XML 1.0 forbids, and escaped."""
    return escape(one_line(text, _LONGEST), quote=True)
