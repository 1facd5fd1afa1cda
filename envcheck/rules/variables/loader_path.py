"""The loader's search path as the environment variable sets it."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.snapshot import Snapshot

_NAME = "LD_LIBRARY_PATH"
_ABSOLUTE = ("/", "$ORIGIN", "${ORIGIN}")


def _relative(_subject: Snapshot, facts: Facts) -> tuple[str, ...]:
    entries = (facts.variable(_NAME) or "/").replace(";", ":").split(":")
    return tuple(entry for entry in entries if not entry.startswith(_ABSOLUTE))


def _has_relative(subject: Snapshot, facts: Facts) -> bool:
    return bool(_relative(subject, facts))


@rule(layer="library", scope="env", arises=_has_relative)
def loader_path_relative(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """LD_LIBRARY_PATH has an empty or relative entry.

    What it checks
        That every entry of LD_LIBRARY_PATH is an absolute path. An empty entry (a colon at either end,
        two in a row) stands for the current folder.

    Why it matters
        Every program then loads libraries from the folder in which it is started: another release of a
        CUDA library that lies there is taken instead of the installed one, and in a folder that others
        write to, their code runs. envcheck leaves these entries out when it asks the driver, so its
        answer can differ from what a program gets in such a folder.

    How to fix
        Write absolute paths only. Where the variable is extended, keep the colon only if there is
        something behind it: `LD_LIBRARY_PATH=/folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}`.

    Sources
        The dynamic loader, ld.so(8): https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    entries = _relative(snapshot, facts)
    source = snapshot.variables.source if snapshot.variables else ""
    return Outcome(
        status="note",
        title="LD_LIBRARY_PATH has an empty or relative entry",
        message="Programs look for libraries in the folder they are started in. envcheck asked the driver without it.",
        evidence=tuple(Evidence(what="entry", value=entry or "(empty)", source=source) for entry in entries[:3]),
        decided_by="declared",
        fixes=(Fix(text="Set LD_LIBRARY_PATH to absolute paths only; an empty entry is the current folder"),),
    )
