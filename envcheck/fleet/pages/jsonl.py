"""All records of a fleet, one JSON object a line: ``--since`` and the application read it again."""

from __future__ import annotations

from envcheck.fleet.record import Fleet
from envcheck.fleet.saved import write
from envcheck.report import Options


def render(fleet: Fleet, _options: Options) -> str:
    """``fleet`` as JSON lines."""
    return "".join(write(fleet))
