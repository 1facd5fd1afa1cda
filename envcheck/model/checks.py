"""What envcheck concludes: checks, their evidence and fixes, and the report around them. Frozen, no I/O.

These structs are the report's JSON contract: field names here are keys there, unknown is ``null``, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import msgspec

from envcheck.model.runs import Stage
from envcheck.model.snapshot import Environment, Gpu, Measurement, ProbeRun, Snapshot, items_in
from envcheck.sources import Confidence as Confidence  # noqa: PLC0414 - part of the contract too
from envcheck.sources import Source as Source  # noqa: PLC0414

SCHEMA_VERSION = "1.0"  # Readers accept any minor of their major

ASSUMED = "assumed"  # The source of what ``--assume`` stated
ASSUMPTION = "assumption-not-known"  # Names the check whether what was stated fits together
FORBIDDEN = "forbidden-problem"  # Names the checks of problems that a configuration forbids
EXPIRED = "ignore-expired"  # Names the checks of the days until which a configuration ignores findings
BELOW_MINIMUM = "below-minimum-share"  # Names the checks of the shares of a ceiling that a configuration asks for
PLAN = "plan-does-not-fit"  # Names the checks on what a plan would install (``--plan``)

Status = Literal["pass", "note", "warn", "fail", "unknown", "skipped"]
Verdict = Literal["pass", "warn", "fail", "unknown"]
Scope = Literal["node", "container", "env"]
Layer = Literal["gpu", "kernel", "driver", "fabric", "container", "toolkit", "library", "framework", "request"]
DecidedBy = Literal["declared", "inferred", "driver-answered", "framework-ran", "measured"]

STATUSES: tuple[Status, ...] = ("fail", "warn", "unknown", "note", "pass", "skipped")  # The most pressing first

LAYERS: tuple[Layer, ...] = get_args(Layer)  # From the lowest to the highest

LONGEST_TITLE = 120
LONGEST_HEADLINE = 80


def shortened(text: str, most: int = LONGEST_TITLE) -> str:
    """``text`` in at most so many characters. Rules write titles whole; pages cut them again to the room they have."""
    return text if len(text) <= most else text[: most - 1] + "…"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a report."""


class Evidence(Part, frozen=True):
    """A fact that decided a check."""

    what: str  # The fact, in words
    value: str  # Its value, as text with its unit
    source: str = ""  # Where it was read: ``nvml``, ``file /proc/modules``, ``wheel metadata`` …


class Changes(Part, frozen=True, kw_only=True):
    """What a fix does to the packages of the judged environment."""

    removes: tuple[str, ...] = ()  # Normalised names; they are removed before anything is installed
    installs: tuple[str, ...] = ()  # Requirement lines (PEP 508)
    alone: bool = False  # Whether only these are installed, and nothing that they require
    again: bool = False  # Whether they are installed even where the same version is installed already
    newest: bool = False  # Whether the newest releases replace what is installed and admitted
    index: str = ""  # Address of the package index that serves them in place of the usual one
    torch_backend: str = ""
    """The same in uv's word: ``cu128``, for ``--torch-backend`` or ``UV_TORCH_BACKEND``; empty: no index of PyTorch."""
    image: str = ""  # The image that the judged plan is to start from
    edits: bool = False  # Whether these are to be written in the lines of the judged plan, which fits with them


class Fix(Part, frozen=True):
    """One step that fixes the problem, or a part of it. Printed, never run."""

    text: str  # What to do, in words
    command: tuple[str, ...] = ()  # One command as an argv list; empty where no command can do it
    who: Literal["user", "root", "cluster-admin"] = "user"  # Who can do it
    risk: str = ""  # What it may break or cost, in words; empty when nothing
    continues: bool = False  # Whether it is the next step after the fix before it; else it is a way of its own
    changes: Changes | None = None
    """None where it changes no packages of the judged environment, or it is not known which."""


def ways(fixes: Sequence[Fix]) -> tuple[tuple[Fix, ...], ...]:
    """The alternatives, each with its steps in order."""
    found: list[list[Fix]] = []
    for fix in fixes:
        if fix.continues and found:
            found[-1].append(fix)
        else:
            found.append([fix])
    return tuple(map(tuple, found))


_WHO = ("user", "root", "cluster-admin")


def ways_in_order(fixes: Sequence[Fix]) -> list[tuple[Fix, ...]]:
    """The alternatives, what the user can do alone before what needs others."""
    return sorted(ways(fixes), key=lambda way: max(_WHO.index(fix.who) for fix in way))


class Subject(Part, frozen=True, kw_only=True):
    """What a check is about."""

    kind: Literal["machine", "gpu", "environment", "framework"] = "machine"  # What kind of thing it is
    key: str = "machine"  # Its identity within the report: a PCI bus id, a folder, a name
    index: int | None = None  # NVML's index of a GPU
    uuid: str | None = None  # UUID of a GPU
    pci_bus_id: str | None = None  # PCI bus id of a GPU, as in ``0000:1b:00.0``
    path: str | None = None  # Folder of an environment or framework
    environment: str | None = None  # Key of the environment that a framework lies in


class Missing(Part, frozen=True, kw_only=True):
    """A fact that a check needs and does not have."""

    fact: str  # Its path in the snapshot
    probe: str | None = None  # The probe that should have supplied it


class Location(Part, frozen=True, kw_only=True):
    """A place in a file that the user gave."""

    file: str  # Path of the file, as the user gave it
    line: int | None = None  # Number of the line, from 1; null for the whole file


class Ignored(Part, frozen=True, kw_only=True):
    """Why a policy sets a finding aside."""

    reason: str  # Why, as the policy says
    until: str | None = None  # The last day on which it is ignored, as in ``2026-11-20``; null for no end


class Figure(Part, frozen=True, kw_only=True):
    """A measured figure and what it was held against, for a check that judges one."""

    name: str  # The quantity with its precision, shape and variant: ``gemm-bf16-8192x8192x8192``
    value: float  # Median of the samples, in ``unit``
    unit: str  # ``B/s``, ``FLOP/s``, ``OP/s`` or ``s``
    gpu: int | None = None  # NVML's index of the GPU; null where it is not known
    ceiling: float | None = None
    """The most that the chip or the link can do, in ``unit``; null where the figure was not judged by one."""
    share: float | None = None  # ``value`` divided by ``ceiling``
    expected_low: float | None = None  # The least share of the ceiling that healthy GPUs reach
    expected_high: float | None = None  # The greatest share of the ceiling that healthy GPUs reach
    baseline: float | None = None
    """The earlier figure that it was compared with, or the median of several, in ``unit``; null for none."""
    siblings: float | None = None
    """Median of the same figure of the machine's other GPUs of that model; null where it was compared with none."""
    tolerated: float | None = None
    """Share of the speed of ``baseline`` or ``siblings`` that may be lost by chance; null without those."""
    spread: float | None = None
    """The greatest sample less the least, as a share of their median; null for fewer than two samples."""


class OfGpu(Part, frozen=True, kw_only=True):
    """A GPU's figure among those of the other GPUs of its model."""

    gpu: int | None  # NVML's index of the GPU; null where it is not known
    uuid: str | None  # UUID of the GPU
    value: float  # Median of the samples; of copies between GPUs, that of its fastest pair
    slower: float | None = None
    """Share by which it is slower than the median of the others, negative if it is faster; null: not compared."""
    tolerated: float | None = None  # Share by which a healthy GPU may be slower; null: not compared
    straggles: bool = False  # Whether it is slower than that
    why_not: str | None = None  # Why it is not compared with the others


class AcrossGpus(Part, frozen=True, kw_only=True):
    """A quantity that several GPUs of one model were measured by."""

    name: str  # The quantity as ``Figure.name`` has it, without the peer of a copy between GPUs
    title: str  # The same as people read it
    unit: str  # ``B/s``, ``FLOP/s``, ``OP/s`` or ``s``
    model: str  # Name of the GPUs' model
    low: float  # The least figure of those compared, in ``unit``
    median: float  # Their median, in ``unit``
    high: float  # The greatest, in ``unit``
    difference: float  # Share of its speed by which the slowest is behind the fastest
    gpus: tuple[OfGpu, ...]  # The GPUs that have this figure, in the order of the list of GPUs


class Check(Part, frozen=True, kw_only=True):
    """The outcome of one rule for one subject."""

    id: str  # ``rule@subject``: unique in a report, and the same on every run
    rule: str  # Name of the rule, which is the name of the problem
    scope: Scope  # What it takes to answer it: facts of the machine, of the container, or of the environment
    layer: Layer  # The layer of the stack that it is about
    subject: Subject  # What was judged
    frameworks: tuple[str, ...] = ()
    """Names of the frameworks that it concerns, where that is less than all of its environment."""
    status: Status  # ``skipped``: the question does not arise or was not asked. ``unknown``: it could not be answered.
    title: str  # The problem in a few words (or, when passed, what holds)
    message: str = ""  # The explanation in sentences; empty where the title says all
    evidence: tuple[Evidence, ...] = ()  # The facts that decided it
    figure: Figure | None = None  # The measured figure that it judges; null for a check that judges none
    decided_by: DecidedBy = "inferred"  # What the answer rests on, from a declaration to a measurement
    confidence: Confidence = "high"  # How far the facts and rows that decided it can be trusted
    missing: tuple[Missing, ...] = ()  # The facts that would answer it
    explained_by: str | None = None  # Id of the check that is the cause of this one
    location: Location | None = None  # The place in a file of the user's that it is about; null where there is none
    ignored: Ignored | None = None  # Why a policy sets it aside; null where none does
    judged: Status | None = None
    """The rule's own status, where the configuration gave it another, or where the rule is new in this minor release:
    its failures are warnings until the next."""
    fixes: tuple[Fix, ...] = ()  # Steps that fix it: see ``continues`` for which belong together
    action: Literal["none", "reset", "reboot", "drain", "replace"] = "none"
    """What must be done to the machine or GPU, in a word."""
    sources: tuple[Source, ...] = ()  # Where it is documented, and the data that decided it

    @property
    def only_assumed(self) -> bool:
        """Whether it rests on nothing but what ``--assume`` stated."""
        return bool(self.evidence) and all(part.source == ASSUMED for part in self.evidence)


_SET_ASIDE: dict[Status, str] = {"fail": "failure", "warn": "warning", "unknown": "open question"}


def ignored(checks: Iterable[Check]) -> str:
    """What a policy sets aside, shown wherever a verdict is: ``1 failure ignored: gpu-lost``, ``2 failures,
    1 warning ignored: gpu-lost, +1``; empty for none.
    """
    aside = [check for status in _SET_ASIDE for check in checks if check.ignored and check.status == status]
    if not aside:
        return ""
    counts = [(sum(check.status == status for check in aside), word) for status, word in _SET_ASIDE.items()]
    counted = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    first, *others = dict.fromkeys(check.rule for check in aside)
    return f"{counted} ignored: {first}" + (f", +{len(others)}" if others else "")


class Tool(Part, frozen=True, kw_only=True):
    """The program that made a report."""

    name: str = "envcheck"  # Name of the program
    version: str  # Version of the program
    matrix: str  # The newest day on which a row of the matrix was read


class Summary(Part, frozen=True, kw_only=True):
    """Number of checks by status."""

    passed: int = msgspec.field(default=0, name="pass")  # What holds
    note: int = 0  # Worth knowing, and no fault
    warn: int = 0  # Warnings
    fail: int = 0  # Failures
    unknown: int = 0  # Questions that could not be answered
    skipped: int = 0  # Questions that do not arise or were not asked

    @classmethod
    def of(cls, checks: tuple[Check, ...]) -> Summary:
        return cls(**Counter("passed" if check.status == "pass" else check.status for check in checks))


class Ground(Part, frozen=True, kw_only=True):
    """Something that the verdict stands on."""

    what: str  # What it is: ``GPUs``, ``driver``, ``torch in /srv/venv``, ``torch==2.5.1``, ``CUDA toolkits on disk`` …
    status: Literal["judged", "absent", "not-read", "not-judged"]
    """``absent``: it was looked for everywhere, and is not there. ``not-read``, ``not-judged``: it leaves no verdict
    but a failure."""
    source: str = ""  # What read it, or was to: a source or the name of a probe; else the rule that judges it
    detail: str = ""  # Why it was not read or not judged; empty where it was

    @property
    def holds(self) -> bool:
        """Whether a pass may stand on it."""
        return self.status in ("judged", "absent")


def pressing(grounds: Sequence[Ground]) -> list[Ground]:
    """Those that do not hold: what the user stated first, then what was not read, then what follows from that."""
    missing = (ground for ground in grounds if not ground.holds)
    return sorted(missing, key=lambda ground: (ground.source not in (ASSUMPTION, PLAN), ground.status != "not-read"))


def _stands(exit_code: int, verdict: Verdict, grounds: Sequence[Ground], unknown_allowed: bool) -> None:  # noqa: FBT001
    """Raise ValueError for a verdict without a failure that stands on less than whole grounds."""
    passes = verdict in ("pass", "warn") or (exit_code == 0 and not unknown_allowed)
    judged = any(ground.status == "judged" for ground in grounds)
    if passes and not (judged and all(ground.holds for ground in grounds)):
        raise ValueError("the verdict stands on what was not read or not judged")


class Target(Part, frozen=True, kw_only=True):
    """The judgement for one of several machines that were assumed. Its fields are those of the Report."""

    name: str  # Name of the target
    assumed: dict[str, str]  # What was assumed of it, by component
    headline: str  # Its verdict in a line of at most 80 characters
    exit_code: int  # The exit status that a report on this target alone would have
    verdict: Verdict  # The verdict for this target
    unknown_allowed: bool = False  # Whether no verdict was allowed to end with exit status 0
    primary: str | None = None  # Name of the rule that found the root cause; null where there is no finding
    primary_check: str | None = None  # Id of that check; null where there is no finding
    fix: tuple[Fix, ...] = ()  # The steps of the first way to fix the root cause
    summary: Summary  # Number of its checks by status
    grounds: tuple[Ground, ...] = ()  # What the verdict for this target stands on
    ask: tuple[str, ...] = ()  # What to find out next
    checks: tuple[Check, ...] = ()  # The outcome of each rule for each subject on this target

    def __post_init__(self) -> None:
        _stands(self.exit_code, self.verdict, self.grounds, self.unknown_allowed)


class Report(Part, frozen=True, kw_only=True):
    """Everything that one run of envcheck found and concluded."""

    schema_version: str = SCHEMA_VERSION  # Version of this contract: readers accept any minor of their major
    tool: Tool  # The program that made the report
    created: str  # UTC, RFC 3339
    duration_s: float  # How long the run took, in seconds
    host: str | None  # Name of the machine; null where it is not known
    headline: str  # At most 80 characters
    exit_code: int  # 0 no finding at or above ``--fail-on``, 1 a finding, 3 no verdict, 130 interrupted
    verdict: Verdict  # The whole in a word; ``unknown``: what matters could not be checked
    unknown_allowed: bool = False  # Whether no verdict was allowed to end with exit status 0 (``--allow-unknown``)
    primary: str | None = None  # Name of the rule that found the root cause
    primary_check: str | None = None  # Id of the check that found the root cause; null where there is no finding
    fix: tuple[Fix, ...] = ()
    """The steps of the first way to fix the root cause, what the user can do alone before what needs others."""
    summary: Summary  # Number of checks by status
    assumed: dict[str, str] = {}  # What ``--assume`` stated, by component
    configuration: str | None = None  # The file that set options, requirements or ignores of this run
    overlays: tuple[str, ...] = ()  # Folders of rows that are laid over the matrix; the last outranks
    overlays_unread: tuple[str, ...] = ()
    """Configuration folders whose rows were left out, and why: they cannot be read."""
    grounds: tuple[Ground, ...] = ()
    """What the verdict stands on. Without a failure there is a verdict only where each was read and judged, or is
    absent; no other report can be built."""
    ask: tuple[str, ...] = ()  # What to find out next
    targets: tuple[Target, ...] = ()
    """With ``--target``: the judgement for each, in the order in which they were asked for. The rest of the report,
    and its exit code, is that of the worst."""
    checks: tuple[Check, ...] = ()  # The outcome of each rule for each subject, the most pressing first
    measurements: tuple[Measurement, ...] = ()  # The measured figures
    across_gpus: tuple[AcrossGpus, ...] = ()
    """How far GPUs of one model lie apart in each figure that two or more of them have."""
    snapshot: Snapshot | None = None  # The facts by which the checks were judged; null where they were left out
    probes: tuple[ProbeRun, ...] = ()  # How each probe ended
    timing: tuple[Stage, ...] = ()  # How long the stages of the run took; what ``probes`` says lies within ``gather``

    def __post_init__(self) -> None:
        _stands(self.exit_code, self.verdict, self.grounds, self.unknown_allowed)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return items_in(self.snapshot.gpus) if self.snapshot else ()

    @property
    def environments(self) -> tuple[Environment, ...]:
        return items_in(self.snapshot.environments) if self.snapshot else ()

    def for_target(self, target: Target) -> Report:
        """The report for that target alone. The snapshot stays that of the worst target."""
        same = {name: getattr(target, name) for name in target.__struct_fields__ if name != "name"}
        return msgspec.structs.replace(self, **same, targets=())

    def by_target(self) -> tuple[tuple[str, Report], ...]:
        """The name of each target and the report for it alone; this report without a name where there are none."""
        return tuple((target.name, self.for_target(target)) for target in self.targets) or (("", self),)

    @property
    def worst(self) -> Target | None:
        """The target that the rest of the report is about: one with a finding, else without a verdict, else any."""
        verdicts, findings_first = ("fail", "warn", "unknown", "pass"), {1: 0, 3: 1, 0: 2}
        return min(
            self.targets,
            key=lambda target: (findings_first.get(target.exit_code, 0), verdicts.index(target.verdict)),
            default=None,
        )

    def check(self, identity: str | None) -> Check | None:
        return next((check for check in self.checks if check.id == identity), None)
