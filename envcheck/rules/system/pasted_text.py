"""Whether a pasted text was read whole: what was not read was not found to be in order."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix, Missing
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.snapshot import ProbeRun, Snapshot

_PASTED = "pasted text"
"""Name of the runs that tell what of a text was left out."""
_ADVICE = "Explain the part around the error by itself, with the lines that tell the versions"


def _left_out(snapshot: Snapshot) -> list[ProbeRun]:
    return [run for run in snapshot.runs if run.name == _PASTED]


def _is_any_left_out(snapshot: Snapshot, _facts: Facts) -> bool:
    return bool(_left_out(snapshot))


@rule(layer="framework", scope="env", always=True, arises=_is_any_left_out, required=True)
def text_not_read_whole(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The pasted text was not read completely.

    What it checks
        Checks whether the pasted text is short enough to be read completely. Of a longer text, the
        beginning and the end are read: logs begin with the versions and end with the error.

    Why it matters
        An error in the middle of a long log is not seen. No finding does not mean that nothing is
        wrong.

    How to fix
        Paste only the part around the error, with the lines that state the versions.

    Sources
        The most recent call stands last: https://docs.python.org/3/library/traceback.html
    """
    runs = _left_out(snapshot)
    told = " and ".join(run.detail for run in runs)
    return Outcome(
        status="unknown",
        title="The text was not read whole",
        message=f"Not all of the text was read: {told}. {_ADVICE}.",
        evidence=tuple(Evidence(what="read", value=run.detail, source=run.name) for run in runs),
        fixes=(Fix(text=_ADVICE),),
        missing=(Missing(fact="rest of the text"),),
    )
