"""What could not be read of an environment or the machine: what it holds is not known, and it is not absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.checks import Check, Evidence, Fix, shortened
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import and_more
from envcheck.snapshot import Environment, Snapshot, Unreadable

_SHOWN = 5
_DENIED = "Permission denied"
_ABSENCE = frozenset(
    {
        "cpu-only-build",
        "cuda-library-missing",
        "cudnn-missing",
        "damaged-distribution",
        "environment-broken",
        "extension-binary-missing",
        "file-stops-framework",
        "imported-elsewhere",
        "jax-plugin-mismatch",
        "jit-compiler-missing",
        "library-lacks-symbols",
        "library-not-found",
        "nccl-missing",
        "requirement-broken",
        "tensorrt-missing",
    }
)
"""Rules that conclude from what is not there, or not whole."""


@rule(layer="framework", per="environment", required=True)
def environment_unreadable(environment: Environment, _facts: Facts) -> Outcome | None:
    """Part of the Python environment cannot be read.

    What it checks
        That every file and folder of the environment that was looked at could be read: its folders of
        packages, their records, the interpreter's folder and pyvenv.cfg. No permission, a link that
        leads nowhere or in a circle, and an I/O error count; so does a folder of packages that is not
        where Python looks for it.

    Why it matters
        What cannot be read is not absent: another user's process, or this one after a change of the
        permissions, may load it. Nothing is concluded from it here, and there is no verdict.

    How to fix
        Run envcheck as the user who runs the programs, or give this user permission to read. Where a
        folder is gone or a link leads nowhere, restore it, or create the environment again.

    Sources
        File permissions, path_resolution(7):
            https://man7.org/linux/man-pages/man7/path_resolution.7.html
        Virtual environments, PEP 405: https://peps.python.org/pep-0405/
    """
    if not environment.unreadable:
        return None
    return _told(
        "Part of the Python environment cannot be read",
        environment.unreadable,
        "Restore what is gone or leads nowhere, or create the environment again",
    )


def _of_the_machine(snapshot: Snapshot) -> tuple[Unreadable, ...]:
    """Each path once, without what the environments tell."""
    listing = snapshot.environments.items if snapshot.environments else ()
    told = {part.path for environment in listing for part in environment.unreadable or ()}
    return tuple({part.path: part for part in snapshot.unreadable if part.path not in told}.values())


@rule(layer="kernel", always=True, required=True)
def machine_unreadable(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """Part of the machine cannot be read.

    What it checks
        That every file and folder that was looked at for the driver, the kernel module, the GPUs on the
        bus, toolkits and libraries could be read. What the kernel shows to root alone does not count,
        nor do the home folders of root and of the user.

    Why it matters
        What cannot be read is not absent: a driver, toolkit or setting that is hidden from this user
        may be in force for another. Nothing is concluded from it here, and there is no verdict.

    How to fix
        Run envcheck as the user who runs the programs, or give this user permission to read.

    Sources
        File permissions, path_resolution(7):
            https://man7.org/linux/man-pages/man7/path_resolution.7.html
    """
    hidden = _of_the_machine(snapshot)
    if not hidden:
        return None
    return _told(
        "Part of the machine cannot be read",
        hidden,
        "Restore what cannot be read; the system log tells about errors of a disk",
    )


def _told(title: str, hidden: Sequence[Unreadable], otherwise: str) -> Outcome:
    first = hidden[0]
    denied = any(part.problem == _DENIED for part in hidden)
    by_user = "Run envcheck as the user who runs the programs, or let this user read these paths"
    return Outcome(
        status="unknown",
        title=title,
        message=f"{first.path}: {first.problem}{and_more(hidden)}.",
        evidence=tuple(Evidence(what=part.path, value=part.problem, source=part.source) for part in hidden[:_SHOWN]),
        decided_by="declared",
        fixes=(Fix(text=by_user if denied else otherwise),),
    )


def without_false_absence(checks: Iterable[Check], snapshot: Snapshot) -> tuple[Check, ...]:
    """``checks``, where nothing is concluded to be absent or damaged in an environment that could not be read."""
    listing = snapshot.environments.items if snapshot.environments else ()
    hidden = {environment.key: environment.unreadable[0] for environment in listing if environment.unreadable}
    return tuple(_open(check, hidden) for check in checks) if hidden else tuple(checks)


def _open(check: Check, hidden: dict[str, Unreadable]) -> Check:
    part = hidden.get(check.subject.environment or "")
    if part is None or check.rule not in _ABSENCE or check.status not in ("fail", "warn", "pass"):
        return check
    return msgspec.structs.replace(
        check,
        status="unknown",
        title=shortened(f"Not known: {check.title}"),
        message=f"{part.path} cannot be read: {part.problem}.",
        fixes=(),
        action="none",
    )
