"""What a policy sets aside, in words: it is told wherever a verdict is, since the verdict does not count it."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.model.checks import Check, Status

_WORDS: dict[Status, str] = {"fail": "failure", "warn": "warning", "unknown": "open question"}


def ignored(checks: Iterable[Check]) -> str:
    """``1 failure ignored: gpu-lost``, ``2 failures, 1 warning ignored: gpu-lost, +1``; empty for none."""
    aside = [check for status in _WORDS for check in checks if check.ignored and check.status == status]
    if not aside:
        return ""
    counts = [(sum(check.status == status for check in aside), word) for status, word in _WORDS.items()]
    counted = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    first, *others = dict.fromkeys(check.rule for check in aside)
    return f"{counted} ignored: {first}" + (f", +{len(others)}" if others else "")
