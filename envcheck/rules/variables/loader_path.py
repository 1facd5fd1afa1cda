"""The loader's search path in LD_LIBRARY_PATH."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Snapshot
from envcheck.rules.api import Facts, Outcome, rule

_NAME = "LD_LIBRARY_PATH"
_ABSOLUTE = ("/", "$ORIGIN", "${ORIGIN}")


def _relative(_subject: Snapshot, facts: Facts) -> tuple[str, ...]:
    entries = (facts.variable(_NAME) or "/").replace(";", ":").split(":")
    return tuple(entry for entry in entries if not entry.startswith(_ABSOLUTE))


@rule(layer="library", arises=lambda subject, facts: bool(_relative(subject, facts)))
def loader_path_relative(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """LD_LIBRARY_PATH has an empty or relative entry."""
    entries = _relative(snapshot, facts)
    source = snapshot.variables.source if snapshot.variables else ""
    return Outcome(
        status="note",
        title="LD_LIBRARY_PATH has an empty or relative entry",
        message="Programs search the folder they are started in for libraries. envcheck queried the driver without it.",
        evidence=tuple(Evidence(what="entry", value=entry or "(empty)", source=source) for entry in entries[:3]),
        decided_by="declared",
        fixes=(Fix(text="Use only absolute paths in LD_LIBRARY_PATH; an empty entry means the current folder"),),
    )
