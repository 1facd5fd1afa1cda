"""What ``systemctl status`` says of the Fabric Manager: a unit's name, and its state some lines below."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Fabric, Snapshot

NAME = "systemd service"
RANK = Rank.OUTPUT

_UNIT = re.compile(r"nvidia-fabricmanager(?:\.service)?\b", re.IGNORECASE)
_STATE = re.compile(r"\bActive: (?P<state>active \(running\)|inactive|failed)\b", re.IGNORECASE)
_NEAR = 5
"""Lines from the name of a unit on among which its state stands."""


def read(paste: Paste) -> Snapshot:
    runs = _runs(paste)
    return Snapshot(fabric=Fabric(source=SOURCE, manager_running=runs)) if runs is not None else Snapshot()


def _runs(paste: Paste) -> bool | None:
    """Whether the unit runs, by the last state that is told of it."""
    states = [
        found["state"].lower().startswith("active")
        for place, line in enumerate(paste.lines)
        if "abricmanager" in line and _UNIT.search(line)
        for near in paste.lines[place : place + _NEAR]
        if (found := _STATE.search(near))
    ]
    return states[-1] if states else None
