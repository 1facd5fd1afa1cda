"""What a check says in plain lines, for formats that are read by machines: JUnit, annotations, SARIF."""

from __future__ import annotations

import hashlib

from envcheck.checks import Check, Fix, Report, ways
from envcheck.report.page.fixes import steps
from envcheck.report.page.head import evidence_text
from envcheck.snapshot.names import fact_name
from envcheck.text.command import shell_line

NO_FILE = "envcheck"
"""The path of a finding that no file of the reader's is to blame for, in formats that demand a path."""


def is_red(check: Check, report: Report) -> bool:
    """Whether the check is a reason for exit status 1: a failure, or a warning under ``--fail-on warn``."""
    if check.ignored:
        return False
    return check.status == "fail" or (check.status == "warn" and report.verdict == "warn" and report.exit_code == 1)


def why_open(check: Check) -> str:
    """Why the check has no answer."""
    lacks = ", ".join(fact_name(missing.fact) for missing in check.missing)
    return f"not judged: {check.message or check.title}" + (f" (lacks {lacks})" if lacks else "")


def fingerprint(identity: str) -> str:
    """The same for a check's id on every run, so that a service can follow the finding from run to run."""
    return hashlib.sha256(identity.encode(errors="backslashreplace")).hexdigest()


def explained(check: Check) -> list[str]:
    """Message, evidence, cause, fixes and sources, a line each; foreign text, neither cleaned nor escaped."""
    lines = [
        check.message,
        *(f"seen: {evidence_text(found)}" for found in check.evidence),
        *(f"caused by: {cause}" for cause in filter(None, [check.explained_by])),
        *(_fix(step, fix) for way in ways(check.fixes) for step, fix in steps(way)),
        *(f"docs: {source.title} {source.address}" for source in check.sources),
    ]
    return [line for line in lines if line]


def _fix(step: str, fix: Fix) -> str:
    who = "" if fix.who == "user" else f" ({fix.who})"
    return f"fix{who}: {step}{fix.text}" + (f": {shell_line(fix.command)}" if fix.command else "")
