"""What NVIDIA's DCGM reports: its health watches on this machine, and its diagnostic."""

from __future__ import annotations

from envcheck.model.checks import Missing
from envcheck.model.snapshot import Snapshot
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import plural
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages

_SHOWN = 8


@rule(layer="gpu", arises=lambda snapshot, _facts: snapshot.dcgm is not None)
def dcgm_unhealthy(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """DCGM reports an unhealthy GPU."""
    dcgm = snapshot.dcgm
    if dcgm is None or dcgm.incidents is None:
        why, missing = dcgm.why_not if dcgm else "", (Missing(fact="dcgm.incidents"),)
        return Outcome(status="skipped", title="DCGM's findings", message=f"DCGM says: {why}", missing=missing)
    logged = kernel_messages("gpu-error-logged", snapshot)
    found = sorted((each for each in dcgm.incidents if each not in logged), key=lambda each: each.status)
    if not found:
        tests = f"; its diagnostic passed: {', '.join(dcgm.tests)}" if dcgm.tests and not dcgm.incidents else ""
        text = f"DCGM found nothing else{tests}" if logged else f"DCGM found nothing{tests}"
        return passed(text, decided_by="driver-answered")
    subjects = list(dict.fromkeys(each.subject for each in found))
    several = plural(len(subjects), "device") if len(subjects) > 2 else " and ".join(subjects)
    return Outcome(
        status=found[0].status,
        title=f"DCGM reports {'a failure' if found[0].status == 'fail' else 'a warning'} of {several}",
        message=f"{found[0].subject}{f', {found[0].watch}' if found[0].watch else ''}: {found[0].text}",
        evidence=tuple(map(kernel_evidence, found[:_SHOWN])),
        decided_by="driver-answered",
    )
