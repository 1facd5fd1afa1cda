"""What envcheck concludes: checks, their evidence and fixes, and the report around them. Frozen, no I/O.

These structs are the report's JSON contract: field names here are keys there, unknown is ``null``, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from envcheck.snapshot import Measurement, ProbeRun, Snapshot
from envcheck.sources import Confidence as Confidence  # noqa: PLC0414 - part of the contract too
from envcheck.sources import Source as Source  # noqa: PLC0414

SCHEMA_VERSION = "1.0"
"""Readers accept any minor of their major."""

ASSUMED = "assumed"
"""The source of what ``--assume`` stated."""
ASSUMPTION = "assumption-not-known"
"""Names the check whether what was stated fits together, which is no rule's."""
PLAN = "plan-does-not-fit"
"""Names the checks on what a plan would install (``--plan``), which are no rule's."""

Status = Literal["pass", "note", "warn", "fail", "unknown", "skipped"]
Verdict = Literal["pass", "warn", "fail", "unknown"]
Scope = Literal["node", "container", "env"]
Layer = Literal["gpu", "kernel", "driver", "fabric", "container", "toolkit", "library", "framework", "request"]
DecidedBy = Literal["declared", "inferred", "driver-answered", "framework-ran", "measured"]

STATUSES: tuple[Status, ...] = ("fail", "warn", "unknown", "note", "pass", "skipped")
"""From the most to the least pressing."""

LAYERS: tuple[Layer, ...] = (
    "gpu",
    "kernel",
    "driver",
    "fabric",
    "container",
    "toolkit",
    "library",
    "framework",
    "request",
)
"""From the lowest to the highest."""


LONGEST_TITLE = 120
LONGEST_HEADLINE = 80


def shortened(text: str, most: int = LONGEST_TITLE) -> str:
    """``text`` in at most so many characters. Rules write titles whole; pages cut them again to the room they have."""
    return text if len(text) <= most else text[: most - 1] + "…"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a report."""


class Evidence(Part, frozen=True, kw_only=True):
    """A fact that decided a check."""

    what: str
    value: str
    source: str = ""


class Changes(Part, frozen=True, kw_only=True):
    """What a fix does to the packages of the judged environment."""

    removes: tuple[str, ...] = ()
    """Normalised names; they are removed before anything is installed."""
    installs: tuple[str, ...] = ()
    """Requirement lines (PEP 508)."""
    alone: bool = False
    """Whether only these are installed, and nothing that they require."""
    again: bool = False
    """Whether they are installed even where the same version is installed already."""
    newest: bool = False
    """Whether the newest releases replace what is installed and admitted."""


class Fix(Part, frozen=True, kw_only=True):
    """One step that fixes the problem, or a part of it. Printed, never run."""

    text: str
    command: tuple[str, ...] = ()
    """One command as an argv list; empty where no command can do it."""
    who: Literal["user", "root", "cluster-admin"] = "user"
    risk: str = ""
    """What it may break or cost, in words; empty when nothing."""
    continues: bool = False
    """Whether it is the next step after the fix before it; else it is a way of its own."""
    changes: Changes | None = None
    """None where it changes no packages of the judged environment, or nobody can tell which."""


def ways(fixes: Sequence[Fix]) -> tuple[tuple[Fix, ...], ...]:
    """The alternatives, each with its steps in order."""
    found: list[list[Fix]] = []
    for fix in fixes:
        if fix.continues and found:
            found[-1].append(fix)
        else:
            found.append([fix])
    return tuple(map(tuple, found))


class Subject(Part, frozen=True, kw_only=True):
    """What a check is about."""

    kind: Literal["machine", "gpu", "environment", "framework"] = "machine"
    key: str = "machine"
    index: int | None = None
    """NVML's index of a GPU."""
    uuid: str | None = None
    pci_bus_id: str | None = None
    path: str | None = None
    environment: str | None = None
    """Key of the environment that a framework lies in."""


class Missing(Part, frozen=True, kw_only=True):
    """A fact that a check needs and nobody supplied."""

    fact: str
    probe: str | None = None
    """The probe that should have supplied it."""


class Location(Part, frozen=True, kw_only=True):
    """A place in a file that the user gave."""

    file: str
    line: int | None = None


class Ignored(Part, frozen=True, kw_only=True):
    """Why a policy sets a finding aside."""

    reason: str
    until: str | None = None


class Check(Part, frozen=True, kw_only=True):
    """The outcome of one rule for one subject."""

    id: str
    """``rule@subject``: unique in a report, and the same on every run."""
    rule: str
    scope: Scope
    layer: Layer
    subject: Subject
    frameworks: tuple[str, ...] = ()
    """Names of the frameworks that it concerns, where that is less than all of its environment."""
    status: Status
    title: str
    """The problem in a few words (or, when passed, what holds)."""
    message: str = ""
    evidence: tuple[Evidence, ...] = ()
    decided_by: DecidedBy = "inferred"
    confidence: Confidence = "high"
    missing: tuple[Missing, ...] = ()
    explained_by: str | None = None
    """Id of the check that is the cause of this one."""
    location: Location | None = None
    ignored: Ignored | None = None
    fixes: tuple[Fix, ...] = ()
    action: Literal["none", "reset", "reboot", "drain", "replace"] = "none"
    sources: tuple[Source, ...] = ()

    @property
    def only_assumed(self) -> bool:
        """Whether it rests on nothing but what ``--assume`` stated."""
        return bool(self.evidence) and all(part.source == ASSUMED for part in self.evidence)


class Tool(Part, frozen=True, kw_only=True):
    """The program that made a report."""

    name: str = "envcheck"
    version: str
    matrix: str
    """The newest day on which a row of the matrix was read."""


class Summary(Part, frozen=True, kw_only=True):
    """Number of checks by status."""

    passed: int = msgspec.field(default=0, name="pass")
    note: int = 0
    warn: int = 0
    fail: int = 0
    unknown: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, checks: tuple[Check, ...]) -> Summary:
        counts = dict.fromkeys(STATUSES, 0)
        for check in checks:
            counts[check.status] += 1
        return cls(
            passed=counts["pass"],
            note=counts["note"],
            warn=counts["warn"],
            fail=counts["fail"],
            unknown=counts["unknown"],
            skipped=counts["skipped"],
        )


class Report(Part, frozen=True, kw_only=True):
    """Everything that one run of envcheck found and concluded."""

    schema_version: str = SCHEMA_VERSION
    tool: Tool
    created: str
    """UTC, RFC 3339."""
    duration_s: float
    host: str | None
    headline: str
    """At most 80 characters."""
    exit_code: int
    verdict: Verdict
    primary: str | None = None
    """Name of the rule that found the root cause."""
    primary_check: str | None = None
    summary: Summary
    assumed: dict[str, str] = {}
    overlays: tuple[str, ...] = ()
    """Folders of rows that are laid over the matrix; the last outranks."""
    overlays_unread: tuple[str, ...] = ()
    """Configuration folders whose rows were left out, and why: they cannot be read."""
    ask: tuple[str, ...] = ()
    """What to find out next."""
    checks: tuple[Check, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    snapshot: Snapshot | None = None
    probes: tuple[ProbeRun, ...] = ()

    def check(self, identity: str | None) -> Check | None:
        """The check with this id."""
        return next((check for check in self.checks if check.id == identity), None)
