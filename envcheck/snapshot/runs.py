"""What was measured, which errors were met, how each probe ended, and where sources disagreed."""

from __future__ import annotations

from typing import Literal

import msgspec

from envcheck.snapshot.base import Record


class Measurement(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A measured quantity."""

    name: str
    gpu: str | None = None
    value: float | None = None
    unit: str = ""
    samples: tuple[float, ...] = ()
    method: str = ""
    context: dict[str, str] = {}


class ObservedError(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An error line found in pasted text."""

    text: str
    line: int | None = None


class ProbeRun(Record, frozen=True, kw_only=True):
    """How a probe ended; one for every probe that was meant to run."""

    name: str
    title: str = ""
    status: Literal["ok", "absent", "failed", "crashed", "timed-out", "skipped"]
    """``absent``: there is nothing here for it to look at; ``skipped``: it was not started, ``detail`` says why."""
    seconds: float = 0.0
    detail: str = ""
    """One sentence: ``crashed: SIGSEGV while importing torch``."""
    noise: str = ""
    """The tail of what it printed."""
    fills: tuple[str, ...] = ()
    """Paths of the Snapshot that it was to fill."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it was read."""

    value: str
    source: str


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A fact for which two sources gave different values; the first is the one that was kept."""

    path: str
    readings: tuple[Reading, ...]
