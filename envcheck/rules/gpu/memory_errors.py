"""GPU memory errors: uncorrected ones, and the rows and pages that are retired for them."""

from __future__ import annotations

from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import gpu_title, is_listed, plural
from envcheck.rules.facts.needs import unanswered
from envcheck.rules.fixes import driver
from envcheck.snapshot import Ecc, Gpu, Record, RowRemap


@rule(
    layer="gpu",
    scope="node",
    per="gpu",
    needs=("gpu.ecc.volatile_uncorrected",),
    arises=lambda gpu, facts: is_listed(gpu, facts) and (gpu.ecc is None or gpu.ecc.enabled is not False),
    remedy=lambda _facts: (driver.reset(None),),
    explains=("gpu-error-logged", "gpu-needs-reset", "row-remap-pending"),
)
def uncorrected_ecc(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """A GPU had uncorrected memory errors."""
    ecc = gpu.ecc or Ecc()
    evidence = [evidence_of("uncorrected since the driver was loaded", ecc, "volatile_uncorrected")]
    if ecc.aggregate_uncorrected is not None:
        evidence.append(evidence_of("uncorrected in total", ecc, "aggregate_uncorrected"))
    if ecc.volatile_uncorrected:
        return Outcome(
            status="fail",
            title=f"{gpu_title(gpu)}: {plural(ecc.volatile_uncorrected, 'uncorrected memory error')}",
            message="ECC could not correct these errors, counted since the driver was loaded.",
            evidence=tuple(evidence),
            decided_by="driver-answered",
            action="reset",
            fixes=(driver.reset(gpu),),
        )
    if ecc.aggregate_uncorrected:
        errors = plural(ecc.aggregate_uncorrected, "uncorrected memory error")
        return Outcome(
            status="note",
            title=f"{gpu_title(gpu)} had {errors} in its lifetime",
            message="None since the driver was loaded.",
            evidence=tuple(evidence),
            decided_by="driver-answered",
        )
    return passed("No uncorrected memory errors", *evidence, decided_by="driver-answered")


@rule(
    layer="gpu",
    scope="node",
    per="gpu",
    arises=is_listed,
    remedy=lambda _facts: (driver.reset(None),),
    explains=("gpu-needs-reset",),
)
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
        return passed("No memory repair is pending", *evidence, decided_by="driver-answered")
    return Outcome(
        status="warn",
        title=f"{gpu_title(gpu)}: {' and '.join(waiting)} pending until a reset",
        message="The next reset of the GPU replaces the faulty memory.",
        evidence=evidence,
        decided_by="driver-answered",
        action="reset",
        fixes=(driver.reset(gpu),),
    )


@rule(
    layer="gpu",
    scope="node",
    per="gpu",
    needs=("gpu.row_remap.failed",),
    arises=is_listed,
    remedy=lambda _facts: (driver.replace(None),),
    explains=("gpu-needs-reset", "row-remap-pending", "uncorrected-ecc"),
)
def row_remap_failed(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """A GPU could not repair its memory."""
    remap = gpu.row_remap or RowRemap()
    evidence = evidence_of("row remapping failed", remap, "failed")
    if not remap.failed:
        return passed("No row remapping has failed", evidence, decided_by="driver-answered")
    return Outcome(
        status="fail",
        title=f"{gpu_title(gpu)}: row remapping has failed",
        message="No spare memory row is left for a faulty one.",
        evidence=(evidence,),
        decided_by="driver-answered",
        action="replace",
        fixes=(driver.replace(gpu),),
    )
