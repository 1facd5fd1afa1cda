"""Unreadable parts of an environment or the machine: their contents are unknown, not absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.checks import Check, Evidence, Fix, shortened
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import and_more
from envcheck.snapshot import Environment, Snapshot, Unreadable, items_in

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
"""Rules that conclude from absent or incomplete files."""


@rule(layer="framework", per="environment", ground="environment")
def environment_unreadable(environment: Environment, _facts: Facts) -> Outcome | None:
    """Part of the Python environment cannot be read.

    What it checks
        Checks that all files and folders of the environment can be read: the package folders, their
        records, the interpreter's folder and pyvenv.cfg. Missing permissions, broken or circular
        links and I/O errors count; so does a package folder that is not where Python looks for it.

    Why it matters
        Unreadable does not mean absent: another user's process may load it. envcheck draws no
        conclusion from it and gives no verdict.

    How to fix
        Run envcheck as the user who runs the programs, or give this user permission to read. If a
        folder is missing or a link is broken, restore it or create the environment again.

    Sources
        File permissions, path_resolution(7):
            https://man7.org/linux/man-pages/man7/path_resolution.7.html
        Virtual environments, PEP 405: https://peps.python.org/pep-0405/
    """
    if not environment.unreadable:
        return None
    return _unreadable_outcome(
        "Part of the Python environment cannot be read",
        environment.unreadable,
        "Restore the missing folder or the broken link, or create the environment again",
    )


def _of_the_machine(snapshot: Snapshot) -> tuple[Unreadable, ...]:
    """Each unreadable path once, without those that environments report."""
    listing = items_in(snapshot.environments)
    told = {part.path for environment in listing for part in environment.unreadable or ()}
    return tuple({part.path: part for part in snapshot.unreadable if part.path not in told}.values())


@rule(layer="kernel", always=True, ground="machine")
def machine_unreadable(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """Part of the machine cannot be read.

    What it checks
        Checks that all files and folders of the driver, the kernel module, the GPUs on the bus,
        toolkits and libraries can be read. Files that only root may read by design do not count, nor
        do the home folders of root and of the user.

    Why it matters
        Unreadable does not mean absent: another user may use the hidden driver, toolkit or setting.
        envcheck draws no conclusion from it and gives no verdict.

    How to fix
        Run envcheck as the user who runs the programs, or give this user permission to read.

    Sources
        File permissions, path_resolution(7):
            https://man7.org/linux/man-pages/man7/path_resolution.7.html
    """
    hidden = _of_the_machine(snapshot)
    if not hidden:
        return None
    return _unreadable_outcome(
        "Part of the machine cannot be read",
        hidden,
        "Restore what cannot be read; the system log shows disk errors",
    )


def _unreadable_outcome(title: str, hidden: Sequence[Unreadable], otherwise: str) -> Outcome:
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
    """``checks`` without conclusions about absence or damage in an environment that could not be read."""
    listing = items_in(snapshot.environments)
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
