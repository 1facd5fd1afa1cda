"""Errors of a GPU that the driver logged by a number (Xid) without a rule of their own, and those of its memory."""

from __future__ import annotations

from envcheck.knowledge.error_lines import event, event_in, status_of
from envcheck.knowledge.tables.messages import XidRow
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Ecc, Gpu, Record, RowRemap, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, passed, rule, warning
from envcheck.rules.facts.machine import is_listed, plural, unanswered
from envcheck.rules.fixes import driver
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages, line_evidence

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


@rule(layer="gpu", decided_by="driver-answered", remedy=(driver.READ_KERNEL_LOG,))
def gpu_error_logged(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver logged an error of a GPU."""
    events: list[tuple[XidRow, Evidence]] = []
    for error in snapshot.observed_errors:
        row = event_in(error.text)
        if row is not None and row.problem == _NAME and row.action != "see-text":
            events.append((row, line_evidence(error)))
    for message in kernel_messages(_NAME, facts):
        row = event(message.xid) if message.xid is not None else None
        events += [(row, kernel_evidence(message))] if row else []
    if not events:
        return None
    worst = min(events, key=lambda found: _WORST_FIRST.index(status_of(found[0])))[0]
    text = _ACTIONS.get(worst.action)
    return Outcome(
        status=status_of(worst),
        title=TITLE,
        message=f"Xid {worst.number} ({worst.name}): {_KINDS[worst.kind]}",
        evidence=tuple(dict.fromkeys(evidence for _, evidence in events))[:8],
        action=worst.action if worst.action in ("reset", "reboot") else "none",
        fixes=(*((Fix(text),) if text else ()), driver.READ_KERNEL_LOG),
    )


@rule(
    layer="gpu",
    decided_by="driver-answered",
    needs=("gpu.ecc.volatile_uncorrected",),
    arises=lambda gpu, facts: is_listed(gpu, facts) and (gpu.ecc is None or gpu.ecc.enabled is not False),
    remedy=(driver.reset(None),),
)
def uncorrected_ecc(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """A GPU had uncorrected memory errors."""
    ecc = gpu.ecc or Ecc()
    evidence = (
        evidence_of("uncorrected since the driver was loaded", ecc, "volatile_uncorrected"),
        if_known("uncorrected in total", ecc, "aggregate_uncorrected"),
    )
    now = ecc.volatile_uncorrected
    if not now and not ecc.aggregate_uncorrected:
        return passed("No uncorrected memory errors", *evidence)
    errors = plural(now or ecc.aggregate_uncorrected or 0, "uncorrected memory error")
    return Outcome(
        status="fail" if now else "note",
        title=f"{gpu.title}: {errors}" if now else f"{gpu.title} had {errors} in its lifetime",
        message="ECC could not correct these errors, counted since the driver was loaded."
        if now
        else "None since the driver was loaded.",
        evidence=evidence,
        action="reset" if now else "none",
        fixes=(driver.reset(gpu),) if now else (),
    )


@rule(layer="gpu", decided_by="driver-answered", arises=is_listed, remedy=(driver.reset(None),))
def row_remap_pending(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU memory repair is waiting for a reset."""
    remap, ecc = gpu.row_remap or RowRemap(), gpu.ecc or Ecc()
    flags: tuple[tuple[Record, str, str], ...] = (
        (remap, "pending", "row remapping"),
        (ecc, "retirement_pending", "page retirement"),
    )
    known = [(record, field, name) for record, field, name in flags if getattr(record, field) is not None]
    if not known:
        refused = {"row_remap", "row_remap.pending"} & set(gpu.not_supported)
        return None if refused else unanswered("gpu.row_remap.pending", "Pending memory repairs", facts.snapshot)
    evidence = tuple(evidence_of(f"{name} pending", record, field) for record, field, name in known)
    waiting = [name for record, field, name in known if getattr(record, field)]
    if not waiting:
        return passed("No memory repair is pending", *evidence)
    return warning(
        title=f"{gpu.title}: {' and '.join(waiting)} pending until a reset",
        message="The next reset of the GPU replaces the faulty memory.",
        evidence=evidence,
        action="reset",
        fixes=(driver.reset(gpu),),
    )


@rule(
    layer="gpu",
    decided_by="driver-answered",
    needs=("gpu.row_remap.failed",),
    arises=is_listed,
    remedy=(driver.replace(None),),
)
def row_remap_failed(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """A GPU could not repair its memory."""
    remap = gpu.row_remap or RowRemap()
    evidence = evidence_of("row remapping failed", remap, "failed")
    if not remap.failed:
        return passed("No row remapping has failed", evidence)
    return failure(
        title=f"{gpu.title}: row remapping has failed",
        message="No spare memory row is left for a faulty one.",
        evidence=(evidence,),
        action="replace",
        fixes=(driver.replace(gpu),),
    )
