"""Whether the GPU and the driver that ``--assume`` states fit together, asked as ``envcheck matrix check`` does."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.checks import ASSUMED, ASSUMPTION, Check, Evidence, Status, Subject
from envcheck.compat.tables import Tables
from envcheck.components import Component

_ASKED = ("gpu", "driver", "os", "machine", "kernel-module")


def held_together(tables: Tables, assumed: Sequence[Component]) -> tuple[Check, ...]:
    """One check where both are stated; none where they do not fit, which a rule says better."""
    asked = [component for component in assumed if component.name in _ASKED]
    if not {"gpu", "driver"} <= {component.name for component in asked}:
        return ()
    from envcheck.compat.question.asking import ask  # noqa: PLC0415 - few assume anything

    answer = ask(tables, asked)
    if answer.verdict == "incompatible":
        return ()
    known = answer.verdict == "compatible"
    status: Status = "pass" if known else "unknown"
    reasons = [reason for reason in answer.reasons if reason.verdict == answer.verdict]
    key = ", ".join(map(str, asked))
    evidence = [Evidence(what=part.name, value=part.exact or "", source=ASSUMED) for part in asked]
    return (
        Check(
            id=f"{ASSUMPTION}@{key}",
            rule=ASSUMPTION,
            scope="node",
            layer="driver",
            subject=Subject(key=key),
            status=status,
            title="The assumed driver supports the assumed GPU" if known else "Whether driver and GPU fit is not known",
            message="; ".join(reason.message for reason in reasons),
            evidence=(*evidence, Evidence(what="matrix", value=answer.verdict, source="matrix")),
            sources=tuple(dict.fromkeys(source for reason in reasons for source in reason.sources)),
        ),
    )
