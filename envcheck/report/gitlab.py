"""GitLab's code quality report, which merge requests show: an entry for each finding.

A report without an entry looks like a clean one, so a run without a verdict is an entry too. A finding about the
machine has no file: its path is ``envcheck``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.model.checks import Report
from envcheck.report import Format, Options
from envcheck.report.page.plain import NO_FILE, explained, fingerprint, is_red, why_open
from envcheck.text.clean import clean
from envcheck.text.encode import encode

FORMAT = Format(shows="code quality for GitLab's merge requests", suffix="gitlab.json", syntax="json", shared=True)

_MOST, _LONGEST, _PATH = 5000, 1000, 1000  # Entries, and characters of a description and a path


def render(report: Report, _options: Options) -> str:
    """``report`` as a list of entries; those about a target begin with its name."""
    entries = []
    for target, judged in report.by_target():
        about, identity = (f"{target}: ", f"{target} ") if target else ("", "")
        if judged.verdict == "unknown":
            text = f"{about}No verdict: {judged.headline}"
            entries.append(_record(text, "no-verdict", f"{identity}no-verdict", "major", NO_FILE, 1))
        for check in judged.checks:
            if check.status not in ("fail", "warn", "unknown", "note") or check.ignored:
                continue
            parts = (check.title, *explained(check)[:2])
            text = why_open(check) if check.status == "unknown" else ". ".join(part.rstrip(".") for part in parts)
            path, line = (check.location.file, check.location.line) if check.location else (NO_FILE, 1)
            # GitLab knows info, minor, major, critical and blocker; the root cause of a failure is a blocker.
            severity = "minor" if check.status == "warn" else "info"
            if is_red(check, judged) or check.status == "fail":
                severity = "blocker" if check.id == judged.primary_check else "critical"
            entries.append(_record(f"{about}{text}", check.rule, f"{identity}{check.id}", severity, path, line or 1))
    return msgspec.json.format(encode(entries[:_MOST]), indent=2) + "\n"


def _record(text: str, rule: str, identity: str, severity: str, path: str, line: int) -> dict[str, Any]:
    return {
        "description": clean(text[:_LONGEST]),
        "check_name": clean(rule[:_LONGEST]),
        "fingerprint": fingerprint(identity),
        "severity": severity,
        "location": {"path": clean(path[:_PATH]).removeprefix("./") or NO_FILE, "lines": {"begin": max(1, line)}},
    }
