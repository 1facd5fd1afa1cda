"""What the process of a session sends: the events of the command line, reports on the way, and why it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, cast, get_args

import msgspec

from envcheck.checks import Report
from envcheck.events import Event
from envcheck.text.encode import encode as as_json


@dataclass(frozen=True)
class InterimReport:
    """A report of the probes that have ended so far."""

    report: Report


@dataclass(frozen=True)
class Failed:
    """There will be no report."""

    problem: str


Message: TypeAlias = Event | InterimReport | Failed

_TYPES = {kind.__name__: kind for kind in (*get_args(Event), InterimReport, Failed)}


def encode(message: Message) -> tuple[str, bytes]:
    """Name of the type, and JSON, which is read ten times as fast as a pickle of the same records."""
    return type(message).__name__, as_json(message).encode()


def decode(packet: tuple[str, bytes]) -> Message:
    """The inverse of ``encode``."""
    name, data = packet
    return cast("Message", msgspec.json.decode(data, type=_TYPES[name]))
