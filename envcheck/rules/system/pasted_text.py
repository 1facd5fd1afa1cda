"""Whether a pasted text was read completely: what was not read was not found healthy."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix, Missing
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.snapshot import ProbeRun, Snapshot

_PASTED = "pasted text"
"""Name of the runs that report which part of a text was skipped."""
_ADVICE = "Paste only the part around the error, with the lines that state the versions"


def _skipped(snapshot: Snapshot) -> list[ProbeRun]:
    return [run for run in snapshot.runs if run.name == _PASTED]


@rule(
    layer="framework", scope="env", always=True, arises=lambda snapshot, _facts: bool(_skipped(snapshot)), required=True
)
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
    runs = _skipped(snapshot)
    return Outcome(
        status="unknown",
        title="The text was not read completely",
        message=f"Part of the text was not read: {' and '.join(run.detail for run in runs)}. {_ADVICE}.",
        evidence=tuple(Evidence(what="read", value=run.detail, source=run.name) for run in runs),
        fixes=(Fix(text=_ADVICE),),
        missing=(Missing(fact="rest of the text"),),
    )
