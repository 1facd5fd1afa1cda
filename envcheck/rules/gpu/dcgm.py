"""What NVIDIA's DCGM reports: its health watches on this machine, and its diagnostic."""

from __future__ import annotations

from envcheck.model.checks import Missing
from envcheck.model.snapshot import Snapshot
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import plural
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages

_NO_DEVICE = "this machine"  # no GPU or switch: of IMEX, which only jobs on several nodes need


@rule(layer="gpu", decided_by="driver-answered", arises=lambda snapshot, _facts: snapshot.dcgm is not None)
def dcgm_unhealthy(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """DCGM reports an unhealthy GPU."""
    dcgm = snapshot.dcgm
    if dcgm is None or dcgm.incidents is None:
        said, missing = f"DCGM says: {dcgm.why_not if dcgm else ''}", (Missing(fact="dcgm.incidents"),)
        return Outcome(status="skipped", title="DCGM's findings", message=said, missing=missing)
    logged = kernel_messages("gpu-error-logged", facts)
    others = (each for each in dcgm.incidents if each not in logged)
    found = sorted(others, key=lambda each: (each.subject == _NO_DEVICE, each.status))
    if not found:
        tests = f"; its diagnostic passed: {', '.join(dcgm.tests)}" if dcgm.tests and not dcgm.incidents else ""
        return passed(f"DCGM found nothing{' else' if logged else ''}{tests}")
    status = "warn" if found[0].subject == _NO_DEVICE else found[0].status
    subjects = list(dict.fromkeys(each.subject for each in found))
    several = plural(len(subjects), "device") if len(subjects) > 2 else " and ".join(subjects)
    return Outcome(
        status=status,
        title=f"DCGM reports {'a failure' if status == 'fail' else 'a warning'} of {several}",
        message=f"{found[0].subject}{f', {found[0].watch}' if found[0].watch else ''}: {found[0].text}",
        evidence=tuple(map(kernel_evidence, found[:8])),
    )
