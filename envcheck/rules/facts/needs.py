"""Look up the facts that rules need, and explain why one is missing."""

from __future__ import annotations

from typing import Any, Literal

from envcheck.model.checks import Missing
from envcheck.model.names import fact_name, not_checked
from envcheck.model.snapshot import Environment, Gpu, Snapshot
from envcheck.rules.api import FrameworkSubject, Outcome, Subject

_OWN_SECTION = {"gpu": "gpus", "environment": "environments", "framework": "environments"}

_WORST_FIRST = ("crashed", "timed-out", "failed", "ok", "skipped", "absent")


def lookup(path: str, subject: Subject, snapshot: Snapshot) -> Any:
    """The value at ``path``; None when anything on the way is unknown.

    A path starts at a section of the Snapshot, or with ``gpu``, ``environment`` or ``framework`` at the subject.
    ``SECTION.complete`` is None unless the list is complete.
    """
    root, *steps = path.split(".")
    value: Any
    if isinstance(subject, FrameworkSubject) and root in ("framework", "environment"):
        value = getattr(subject, root)
    elif (root == "gpu" and isinstance(subject, Gpu)) or (root == "environment" and isinstance(subject, Environment)):
        value = subject
    else:
        value = getattr(snapshot, root)
    for step in steps:
        if value is None:
            return None
        value = getattr(value, step)
    if isinstance(value, bool) and steps and steps[-1] == "complete":
        return value or None
    return value


def refused(path: str, subject: Subject) -> bool:
    """Whether the GPU reports that it does not support the fact: checked, and absent."""
    if not isinstance(subject, Gpu):
        return False
    inner = path.removeprefix("gpu.")
    return any(inner == name or inner.startswith(f"{name}.") for name in subject.not_supported)


def unanswered(path: str, title: str, snapshot: Snapshot) -> Outcome:
    """The outcome of a rule that lacks the fact at ``path``."""
    status, missing, reason = why_missing(path, snapshot)
    return Outcome(status=status, title=title, message=reason, missing=(missing,))


def why_missing(path: str, snapshot: Snapshot) -> tuple[Literal["unknown", "skipped"], Missing, str]:
    """Whether a missing fact is unknown (a probe failed to read it) or skipped (no probe was to read it), and why."""
    root, _, rest = path.partition(".")
    section = ".".join(part for part in (_OWN_SECTION.get(root, root), rest) if part)
    runs = [run for run in snapshot.runs if any(_overlap(fill, section) for fill in run.fills)]
    if not runs:
        return "skipped", Missing(fact=path), not_checked(path)
    run = min(runs, key=lambda run: _WORST_FIRST.index(run.status))
    missing = Missing(fact=path, probe=run.name)
    if run.status in ("skipped", "absent"):
        return "skipped", missing, run.detail or f"probe {run.name}: {run.status}"
    detail = f" ({run.detail})" if run.detail else ""
    return "unknown", missing, f"Probe {run.name} did not report {fact_name(path)}{detail}"


def _overlap(one: str, other: str) -> bool:
    """Whether two paths of the Snapshot are equal, or one lies within the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
