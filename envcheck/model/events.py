"""What a running check tells whoever watches: a part of the contract, the same for CLI, TUI and Python callers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from envcheck.model.checks import Report
from envcheck.model.snapshot import ProbeRun, Snapshot


class ProbesPlanned(msgspec.Struct, frozen=True):
    """The probes that are about to run, as (name, title); told once more when it is known what will be tried."""

    probes: tuple[tuple[str, str], ...]


class ProbeStarted(msgspec.Struct, frozen=True):
    """A probe was started."""

    name: str
    title: str
    framework: str | None = None  # The framework that it tries, for one that tries frameworks
    gpu: str | None = None  # UUID of the GPU that it measures, for one that runs for each GPU


class Progress(msgspec.Struct, frozen=True):
    """A probe says how far it is."""

    name: str
    text: str
    framework: str | None = None
    gpu: str | None = None


class ProbeFinished(msgspec.Struct, frozen=True):
    """A probe ended, well or not; ``facts`` is what it contributed."""

    run: ProbeRun
    facts: Snapshot


class Interrupted(msgspec.Struct, frozen=True):
    """The user wished to stop while something was measured; what was measured until then is judged."""


class Judged(msgspec.Struct, frozen=True):
    """The report is complete."""

    report: Report


Event: TypeAlias = ProbesPlanned | ProbeStarted | Progress | ProbeFinished | Interrupted | Judged
OnEvent: TypeAlias = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Watch nothing."""
