"""Questions about a GPU, its name and counts in words; and the facts that rules need, or why one is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sized
from typing import Any, Literal

from envcheck.model.checks import LONGEST_TITLE, DecidedBy, Missing
from envcheck.model.names import fact_name, not_checked
from envcheck.model.snapshot import PASTED, Gpu, Record, Snapshot
from envcheck.rules.api import Doubt, Facts, Outcome, Subject

_DRIVER_SOURCES = ("nvml", "cuda")
_DECLARING_SOURCES = ("wheel metadata", PASTED, "assumed", "file", "elf", "conda")


OF_GROUP = {"memory": "memory_limit", "tasks": "task_limit"}  # Limits of the control group, and their facts


def is_listed(gpu: Gpu, facts: Facts) -> bool:
    """Whether the driver lists the GPU, or was not asked. It reports nothing about a GPU that it does not list."""
    asked = facts.driver.nvml is not None
    return not gpu.lacks_handle and (not asked or gpu.index is not None or gpu.cuda_ordinal is not None)


def doubt_inside_wsl(title: str, message: str) -> Doubt:
    """A note instead of a failure inside WSL, where the line also has other causes and proves nothing."""
    note = Outcome(status="note", title=title, message=message)
    return lambda facts: note if facts.driver_os == "wsl" else None


def count_by_model(gpus: Iterable[Gpu]) -> str:
    """The number of GPUs of each model: ``8 x NVIDIA H200, 1 x NVIDIA T4``."""
    return ", ".join(f"{count} x {name}" for name, count in Counter(gpu.name or "NVIDIA GPU" for gpu in gpus).items())


def plural(count: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else several}"


def and_more(names: Sized, shown: int = 1) -> str:
    """The number of names after the first ``shown``, in words: `` and 3 more``."""
    return f" and {len(names) - shown} more" if len(names) > shown else ""


def title_of_first(title: str, found: Sized) -> str:
    """The title for the first of several findings, with the number of the others."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return title[: LONGEST_TITLE - len(more)] + more


def basis_of(record: Record, field: str) -> DecidedBy:
    """How a fact was established: the driver answered it, a file or a person declared it, or it was inferred."""
    source = record.source_of(field)
    if source.startswith(_DRIVER_SOURCES):
        return "driver-answered"
    return "declared" if source.startswith(_DECLARING_SOURCES) else "inferred"


_OWN_SECTION = {"gpu": "gpus", "environment": "environments", "framework": "environments"}

_WORST_FIRST = ("crashed", "timed-out", "failed", "ok", "skipped", "absent")


def lookup(path: str, subject: Subject, snapshot: Snapshot) -> Any:
    """The value at ``path``; None when anything on the way is unknown.

    A path starts at a section of the Snapshot, or with ``gpu``, ``environment`` or ``framework`` at the subject.
    ``SECTION.complete`` is None unless the list is complete.
    """
    root, *steps = path.split(".")
    value: Any
    if root == "environment":
        value = snapshot.judged_environment
    elif root in ("gpu", "framework"):
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
    return Outcome(status=status, title=title, message=reason, missing=(missing,), decided_by="inferred")


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
