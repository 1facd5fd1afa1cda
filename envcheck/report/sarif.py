"""SARIF 2.1.0, as code scanning of GitHub and Azure DevOps and the viewers of editors read it.

Findings are results; what could not be judged is a notification of the run, since a result would look like a fault.
A run without a verdict is marked as not successful. A finding about the machine has no file: its place is the path
``envcheck``, because code scanning refuses results without a place, and its subject is the logical location.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from envcheck.model.checks import Check, Report
from envcheck.redact.secrets import masked
from envcheck.report import Format, Options
from envcheck.report.document import is_page
from envcheck.report.page.plain import NO_FILE, explained, fingerprint, is_red, why_open
from envcheck.rules.catalog import all_rules
from envcheck.text.clean import clean
from envcheck.text.encode import encode

FORMAT = Format(shows="SARIF 2.1.0 for code scanning", suffix="sarif", syntax="json", edits=True, shared=True)

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST, _LONGEST, _PATH = 5000, 4000, 1000  # Results that code scanning takes, and characters of a message and a path
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def render(report: Report, options: Options) -> str:
    """``report`` as a log of one run, or of one for each target: its name is the category of code scanning."""
    runs = []
    for target, judged in report.by_target():
        # GitHub refuses two runs of one category, which is what stands before the last slash.
        category = {"automationDetails": {"id": f"envcheck/{_text(target).replace('/', '-')}/"}} if target else {}
        runs.append(_run(judged, options.edits) | category)
    return msgspec.json.format(encode({"$schema": SCHEMA, "version": "2.1.0", "runs": runs}), indent=2) + "\n"


def _run(report: Report, edits: str) -> dict[str, Any]:
    files = {check.location.file.lstrip("/"): check.location.file for check in report.checks if check.location}
    fix = _fix(edits, files)
    titles = {rule.name: rule.title for rule in all_rules()}
    results = [check for check in report.checks if check.status in ("fail", "warn", "note")][:_MOST]
    rules: dict[str, dict[str, Any]] = {}
    for check in results:
        pages = [source.address for source in check.sources if is_page(source.address) and source.address.isascii()]
        help_page = {"helpUri": pages[0]} if pages else {}
        rules.setdefault(
            check.rule,
            {
                "id": _text(check.rule),
                "shortDescription": {"text": _text(check.rule.replace("-", " ")) or "envcheck"},
                "fullDescription": {"text": _text(f"{titles.get(check.rule, check.title)}.") or "envcheck"},
                "help": {"text": _text(f"envcheck rule {check.rule}")},
                **help_page,
            },
        )
    notices = [("error", f"no verdict: {report.headline}")] if report.verdict == "unknown" else []
    left_open = (check for check in report.checks if check.status == "unknown" and not check.ignored)
    notices += [("warning", f"{check.id}: {why_open(check)}") for check in left_open]
    invocation = {
        "executionSuccessful": report.verdict != "unknown",
        "exitCode": report.exit_code,
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": _text(text)}} for level, text in notices[:_MOST]
        ],
    }
    places = {name: place for place, name in enumerate(rules)}
    return {
        "tool": {"driver": {"name": "envcheck", "version": _text(report.tool.version), "rules": list(rules.values())}},
        "invocations": [invocation],
        "results": [
            _result(check, places[check.rule], report)
            | ({"fixes": [fix]} if fix and check.status == "fail" and check.location else {})
            for check in results
        ],
        "columnKind": "unicodeCodePoints",
        "properties": _properties(verdict=report.verdict, headline=report.headline, matrix=report.tool.matrix),
    }


def _result(check: Check, place: int, report: Report) -> dict[str, Any]:
    """What was found. Red is ``error``, as the exit status has it."""
    red = check.status == "fail" or is_red(check, report)
    level = "note" if check.status == "note" else "error" if red else "warning"
    aside = {}
    if check.ignored:
        aside = {"suppressions": [{"kind": "external", "justification": _text(check.ignored.reason)}]}
    backends = [fix.changes.torch_backend for fix in check.fixes if fix.changes and fix.changes.torch_backend]
    backend = {"torchBackend": backends[0]} if backends else {}
    message = "\n".join(filter(None, map(_text, (check.title, *explained(check)))))
    file, line = (check.location.file, check.location.line) if check.location else ("", None)
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(file or NO_FILE)},
            "region": {"startLine": line if line and line > 0 else 1},
        },
        "logicalLocations": [{"fullyQualifiedName": _text(check.subject.key) or "machine", "kind": "resource"}],
    }
    return {
        "ruleId": _text(check.rule),
        "ruleIndex": place,
        "level": level,
        "message": {"text": message[:_LONGEST] or "envcheck"},
        "locations": [location],
        "partialFingerprints": {"envcheckCheck/v1": fingerprint(check.id)},
        **aside,
        "properties": _properties(scope=check.scope, layer=check.layer, decidedBy=check.decided_by, **backend),
    }


def _uri(file: str) -> str:
    """A relative reference, or an absolute path with the scheme ``file``."""
    name = file[:_PATH].encode(errors="backslashreplace")
    quoted = "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in name)
    return f"file:///{quoted.lstrip('/')}" if quoted.startswith("/") else quoted.removeprefix("./")


def _fix(diff: str, places: Mapping[str, str]) -> dict[str, Any]:
    """A unified diff as one fix; empty unless ``places`` has all its files, as a path without its first slash.

    A line with a secret, or a file whose name was replaced, is none that could be changed by it.
    """
    changes: dict[str, list[dict[str, Any]]] = {}
    file, line = "", 0
    for text in diff.splitlines(keepends=True):
        if text.startswith(("--- a/", "+++ b/")):
            file = text[6:].rstrip("\n")
        elif hunk := re.match(r"@@ -([0-9]+)", text):
            line = int(hunk[1])
            changes.setdefault(file, [])
        elif text.startswith(" "):
            line += 1
        else:
            last = changes[file][-1] if changes[file] else None
            if last is None or last["deletedRegion"]["endLine"] != line:
                region = {"startLine": line, "startColumn": 1, "endLine": line, "endColumn": 1}
                last = {"deletedRegion": region, "insertedContent": {"text": ""}}
                changes[file].append(last)
            if text.startswith("-"):
                line += 1
                last["deletedRegion"]["endLine"] = line
            else:
                last["insertedContent"]["text"] += text[1:]
    if not changes or not changes.keys() <= places.keys() or masked(diff) != diff:
        return {}
    edits = [{"artifactLocation": {"uri": _uri(places[name])}, "replacements": each} for name, each in changes.items()]
    return {"description": {"text": "Pin the nearest releases with which the plan fits"}, "artifactChanges": edits}


def _properties(**texts: str) -> dict[str, str]:
    return {name: _text(text) for name, text in texts.items()}


def _text(text: str) -> str:
    return clean(text[:_LONGEST])
