"""Errors of a GPU that the driver logged by a number (Xid) and that have no separate rule."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Evidence, Fix
from envcheck.compat.error_lines import event, event_in, status_of
from envcheck.compat.tables import XidRow
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.fixes import driver
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages, line_evidence
from envcheck.snapshot import Snapshot

_NAME = "gpu-error-logged"
TITLE = "The driver logged an error of a GPU"
_WORST_FIRST = ("fail", "warn", "note")
_KINDS = {
    "program": "Most often a program's own fault: an invalid address, a trap, or data that it corrupted.",
    "consequence": "A clean-up after an earlier error: the event before it tells the cause.",
    "memory": "The GPU's memory had an error.",
    "link": "A link between GPUs, switches or the CPU had an error.",
    "bus": "The GPU does not answer on the PCI Express bus as it should.",
    "firmware": "The GPU's firmware does not answer.",
    "microcontroller": "A controller inside the GPU stopped, or refused what the driver asked.",
    "hang": "The GPU stopped working on what it was given, and the driver's time for it ran out.",
    "power": "The power supply of the board is not as it should be.",
    "recovery": "The driver changed what it recommends to do about the GPU.",
    "other": "The driver reports an error of the GPU.",
    "unused": "NVIDIA's catalogue has no meaning for this number.",
}
_ACTIONS = {
    "restart-program": "Start the program again; if it fails again, run it under compute-sanitizer",
    "reset": "Drain the GPU and reset it",
    "reboot": "Restart the machine",
    "check-links": "Check the links with nvidia-smi nvlink --status, then reset the GPUs that they join",
    "check-hardware": "Check the board's power cables and seating",
    "update": "Update the driver and its firmware",
    "see-earlier": "Look for the event before this one in the kernel log",
    "support": "If it happens again, report it with the output of nvidia-bug-report.sh",
}


def _any_logged(snapshot: Snapshot, _facts: Facts) -> bool:
    return next(_events(snapshot), None) is not None


def _events(snapshot: Snapshot) -> Iterator[tuple[XidRow, Evidence]]:
    for error in snapshot.observed_errors:
        row = event_in(error.text)
        if row is not None and row.problem == _NAME and row.action != "see-text":
            yield row, line_evidence(error)
    for message in kernel_messages(_NAME, snapshot):
        row = event(message.xid) if message.xid is not None else None
        if row is not None:
            yield row, kernel_evidence(message)


@rule(layer="gpu", scope="node", arises=_any_logged, remedy=lambda _facts: (driver.read_kernel_log(),))
def gpu_error_logged(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The driver logged an error of a GPU."""
    events = list(_events(snapshot))
    if not events:
        return None
    worst = min(events, key=lambda found: _WORST_FIRST.index(status_of(found[0])))[0]
    text = _ACTIONS.get(worst.action)
    return Outcome(
        status=status_of(worst),
        title=TITLE,
        message=f"Xid {worst.number} ({worst.name}): {_KINDS[worst.kind]}",
        evidence=tuple(dict.fromkeys(evidence for _, evidence in events))[:8],
        decided_by="driver-answered",
        action=worst.action if worst.action in ("reset", "reboot") else "none",
        fixes=(*((Fix(text=text),) if text else ()), driver.read_kernel_log()),
    )
