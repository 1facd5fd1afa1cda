"""One line of JSON of less than 8,000 bytes, for a log, a termination message or a drain reason.

The snapshot and the checks that passed are left out. What does not fit is cut, and ``cut`` counts it: long texts end in
``…``, a command is whole or null, and every rule is shown once before any is repeated for a further subject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from envcheck.model.checks import Check, Report, ways
from envcheck.report import Format, Options
from envcheck.text.encode import encode
from envcheck.text.inert import inert

FORMAT = Format(shows="one line of JSON under 8 kB, without the snapshot", suffix="summary.json", syntax="json")

MOST_BYTES = 8000
_NAME, _TEXT, _MESSAGE, _COMMAND = 120, 160, 400, 800  # Bytes of JSON for a name, a title, a message and a command
_MOST_LISTED = 10
_SHOWN = ("fail", "warn", "unknown")


def render(report: Report, _options: Options) -> str:
    # The primary check, causes before consequences, each rule before any for a further subject.
    bad = [check for check in report.checks if check.status in _SHOWN and not check.ignored]
    bad.sort(key=lambda check: (check.id != report.primary_check, bool(check.explained_by), _SHOWN.index(check.status)))
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for place, check in enumerate(bad):
        turns.append((seen[check.rule, check.status], place))
        seen[check.rule, check.status] += 1
    chosen = [bad[place] for _, place in sorted(turns)]
    shown: list[dict[str, Any]] = []
    line = _line(report, shown, len(chosen))
    for check in chosen:
        longer = _line(report, [*shown, _check(check)], len(chosen))
        if len(longer.encode()) >= MOST_BYTES:
            break
        shown, line = [*shown, _check(check)], longer
    return line


def _line(report: Report, shown: Sequence[dict[str, Any]], total: int) -> str:
    assumed = {_cut(name, _NAME): _cut(value, _NAME) for name, value in list(report.assumed.items())[:_MOST_LISTED]}
    ask = [_cut(fact, _NAME) for fact in report.ask[:_MOST_LISTED]]
    targets = [
        {
            "name": _cut(target.name, _NAME),
            "verdict": target.verdict,
            "primary": None if target.primary is None else _cut(target.primary, _NAME),
        }
        for target in report.targets[:_MOST_LISTED]
    ]
    tool = {"name": report.tool.name, "version": report.tool.version, "matrix": report.tool.matrix}
    content = {
        "schema_version": _cut(report.schema_version, _NAME),
        "tool": {name: _cut(value, _NAME) for name, value in tool.items()},
        "created": _cut(report.created, _NAME),
        "duration_s": report.duration_s,
        "host": None if report.host is None else _cut(report.host, _NAME),
        "headline": _cut(report.headline, _TEXT),
        "exit_code": report.exit_code,
        "verdict": report.verdict,
        "primary": None if report.primary is None else _cut(report.primary, _NAME),
        "primary_check": None if report.primary_check is None else _cut(report.primary_check, _TEXT),
        "summary": report.summary,
        "assumed": assumed,
        "ask": ask,
        "targets": targets,
        "checks": shown,
        "cut": {
            "checks": total - len(shown),
            "assumed": len(report.assumed) - len(assumed),
            "ask": len(report.ask) - len(ask),
            "targets": len(report.targets) - len(targets),
        },
    }
    return inert(encode(content), "json") + "\n"


def _check(check: Check) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    for fix in ways(check.fixes)[0] if check.fixes else ():
        # Half a command can do harm: it is shown whole or not at all.
        whole = len(inert(encode(fix.command), "json").encode()) <= _COMMAND
        command = fix.command if whole and fix.command else None
        steps.append({"text": _cut(fix.text, _TEXT), "command": command, "who": fix.who})
    if len(steps) > 1:
        steps[0]["then"] = steps[1:]
    return {
        "id": _cut(check.id, _TEXT),
        "rule": _cut(check.rule, _NAME),
        "status": check.status,
        "title": _cut(check.title, _TEXT),
        "message": _cut(check.message, _MESSAGE),
        "explained_by": None if check.explained_by is None else _cut(check.explained_by, _TEXT),
        "fix": steps[0] if steps else None,
    }


def _cut(text: str, most: int) -> str:
    """``text`` within ``most`` bytes of JSON, quotes not counted."""
    kept = text[:most]
    while (size := len(inert(encode(kept), "json").encode()) - 2) > most or (kept != text and size + 3 > most):
        kept = kept[: -max(1, (size - most) // 6)]
    return kept if kept == text else kept + "…"
