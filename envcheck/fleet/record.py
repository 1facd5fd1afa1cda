"""The records of reports about many nodes: what both reports say first, and those of ``envcheck fleet --format jsonl``.

A record is a line, distinct by ``record``. A fleet report is written, and read again; what is read is untrusted.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from envcheck import __version__
from envcheck.errors import ExitCode, UsageError
from envcheck.fleet.facts import Quantity
from envcheck.knowledge.load import matrix_date
from envcheck.model.checks import Status, Tool, Verdict
from envcheck.text.clean import clean
from envcheck.text.encode import encode
from envcheck.text.wrap import clip


class Overall(msgspec.Struct, frozen=True, kw_only=True):
    """The whole in a few fields."""

    schema_version: str  # Version of this contract: readers accept any minor of their major
    tool: Tool  # The program that made the report
    created: str  # UTC, RFC 3339
    duration_s: float  # How long it took, in seconds
    engine: str  # What reached the nodes: ``reports``, ``hosts``, ``slurm``, ``kubernetes``, ``ray``
    headline: str  # The result in a line
    verdict: Verdict
    """The whole in a word; ``unknown``: nodes lack a verdict or are too few to compare, and nothing is worse."""
    exit_code: int
    """0 nothing at or above ``--fail-on``, 1 something, 3 no verdict or a node without one, 130 interrupted."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """How a report about many nodes came about."""

    tool: Tool
    engine: str
    created: str
    duration_s: float
    fail_on: Literal["fail", "warn"] = "fail"
    interrupted: bool = False

    def exit_code(self, verdict: Verdict, *, lacking: bool) -> ExitCode:
        """The exit code; ``lacking``: a node is without a verdict."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if verdict == "fail" or (verdict == "warn" and self.fail_on == "warn"):
            return ExitCode.FOUND
        return ExitCode.UNKNOWN if verdict == "unknown" or lacking else ExitCode.OK

    def overall_fields(self) -> dict[str, Any]:
        """What a report says of it, as fields of ``Overall``."""
        return {name: getattr(self, name) for name in ("tool", "created", "duration_s", "engine")}


def circumstances(engine: str, began: float, fail_on: Literal["fail", "warn"], *, interrupted: bool) -> Circumstances:
    """How a report came about that ``began`` by ``time.monotonic()``, and is finished now."""
    return Circumstances(
        tool=Tool(version=__version__, matrix=matrix_date()),
        engine=engine,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=round(time.monotonic() - began, 3),
        fail_on=fail_on,
        interrupted=interrupted,
    )


def counted(count: int, one: str, many: str) -> str:
    """A part of a headline: ``1 node fails``, ``3 nodes fail``; empty for none."""
    return f"{count:,} {one if count == 1 else many}" if count else ""


SCHEMA_VERSION = "1.0"  # Readers accept any minor of their major


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag=str.lower):
    """A record on a line of its own."""


class Head(Line, Overall, frozen=True, kw_only=True, tag="fleet"):
    """The whole in a line; it comes first."""

    schema_version: str = SCHEMA_VERSION
    nodes: int  # Number of nodes, those without an answer among them
    gpus: int  # Number of GPUs that the reports name
    verdicts: dict[str, int]
    """Number of nodes by the verdict of their own reports; ``unanswered``: those without a report."""
    superseded: int = 0  # Reports that were left out because a newer one names the same node
    since: str | None = None  # When the earlier fleet report was made, in UTC; null where it was compared with none


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and what in it."""

    node: str  # Name of the node
    subjects: tuple[str, ...] = ()  # ``GPU 3`` …; empty for the node


class Group(Line, frozen=True, kw_only=True):
    """Nodes that agree in every compared fact; the largest group is number 1."""

    number: int  # Its number
    nodes: tuple[str, ...]  # Their names
    gpus: str  # ``8 x NVIDIA H200``
    driver: str | None  # Release of the driver
    kernel: str | None  # Release of the kernel
    differs_in: tuple[str, ...] = ()  # The aspects in which it differs from the largest group with the same GPU models


class Vanished(Line, frozen=True, kw_only=True):
    """Nodes of which nothing came, neither a report nor a reason why there is none."""

    status: Status
    """``fail``: they were expected; ``warn``: only the earlier fleet report has them; ``unknown``: either, and a report
    that could not be read may be theirs."""
    nodes: tuple[str, ...]  # Their names


class Problem(Line, frozen=True, kw_only=True):
    """A failed rule or a warning of the nodes' own reports."""

    status: Status  # ``fail`` or ``warn``
    rule: str  # Name of the rule
    title: str  # The problem in a few words, as each of these nodes says it
    nodes: tuple[str, ...]  # The nodes that report it


class Difference(Line, frozen=True):
    """A fact in which nodes differ from the majority, more than half of those whose value is known."""

    aspect: str  # ``driver``, ``firmware``, ``packages`` …
    what: str  # The fact
    value: str | None  # Its value on these nodes; null: it is absent there
    common: str | None  # The value that more than half share; null: most do not have it
    among: str  # The GPU models of the nodes that were compared; empty for all nodes
    share: int  # Nodes or GPUs that have the common value
    known: int  # Nodes or GPUs of which the value is known
    places: tuple[Place, ...]  # The nodes that differ


class Split(Line, frozen=True):
    """A fact without a majority: no value is that of more than half."""

    aspect: str  # As in ``Difference``
    what: str  # The fact
    among: str  # The GPU models of the nodes that were compared; empty for all nodes
    values: tuple[str | None, ...]  # The values, the most frequent first; null: absent
    counts: tuple[int, ...]  # Nodes or GPUs that have each


class Slow(Line, frozen=True, kw_only=True):
    """A figure that is much worse than what the same GPU model reaches elsewhere in the fleet."""

    status: Status  # ``warn``, or ``fail`` below 85 % of the median
    node: str  # Name of the node
    subject: str  # ``GPU 3``, ``GPU 0 to GPU 3``; empty for the processor
    serial: str | None = None  # Serial number of the board, where it was asked for and is known
    quantity: Quantity  # What was measured
    value: float  # In the unit of the quantity
    median: float  # Median of the fleet
    ratio: float  # Speed as a share of the median's: below 1 is slower
    score: float | None
    """Distance from the median in robust standard deviations (1.4826 times the median absolute deviation); null
    where that is 0."""


class Spread(Line, frozen=True):
    """How the figures of a quantity are distributed over the fleet."""

    quantity: Quantity  # What was measured
    count: int  # Number of figures
    median: float  # In the unit of the quantity
    mad: float  # Median absolute deviation, in the same unit
    low: float  # The lowest figure
    high: float  # The highest figure
    limit: float | None  # The figure from which on one counts as slow; null where there are too few to tell
    bins: tuple[int, ...] = ()  # Figures in equal steps from ``low`` to ``high``


class Drift(Line, frozen=True):
    """A fact that changed since the earlier fleet report."""

    aspect: str  # As in ``Difference``
    what: str  # The fact
    before: str | None  # The earlier value; null: it was absent
    after: str | None  # The value now; null: it is absent
    places: tuple[Place, ...]  # Where it changed


class Slowed(Line, frozen=True):
    """A figure that became worse by more than 5 % since the earlier fleet report."""

    node: str  # Name of the node
    subject: str  # As in ``Slow``
    quantity: Quantity  # What was measured
    before: float  # The earlier figure
    after: float  # The figure now
    ratio: float  # Speed now as a share of the earlier


class Decline(Line, frozen=True):
    """A node that the store knows as faster: a GPU or link was slower on both of its last two days with figures."""

    node: str  # Name of the node
    subjects: tuple[str, ...]  # As in ``Slow``: the GPUs and links that became slower
    titles: tuple[str, ...]  # What was measured
    ratio: float  # Speed now as a share of the earlier, both compared with the fleet's median of their time
    since: str  # The first day of it
    gpus: int  # GPUs of the node


class Spell(Line, frozen=True):
    """A finding, or a difference from the majority, in the looks that the store knows."""

    node: str  # Name of the node
    what: str  # The rule or the fact
    subject: str  # ``GPU 3``; empty for the node
    since: str  # The day of the first of the looks in a row that found it
    times: int  # How many times it began within two weeks


class CameOrWent(Line, frozen=True, kw_only=True, tag="came_or_went"):
    """Nodes that only one of the two fleet reports has."""

    came: tuple[str, ...]  # Nodes without an earlier report
    went: tuple[str, ...]  # Nodes with an earlier report alone


class NodeGpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU of a node."""

    name: str  # ``GPU 3``
    model: str | None  # Product name
    uuid: str | None = None  # Its UUID
    serial: str | None = None  # Serial number of the board, where it was asked for and is known


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node as its own report has it."""

    name: str  # Name of the node, as the engine calls it, else as its report does
    host: str | None = None  # Name of the machine in its report
    path: str = ""  # The file with its report; empty where it was not kept
    problem: str = ""  # Why there is no report; empty where there is one
    created: str = ""  # When its report was made, in UTC
    verdict: Verdict  # The verdict of its report
    headline: str = ""  # The headline of its report
    primary: str | None = None  # Name of the rule that found the root cause
    models: str = ""  # Its GPU models; ``none``: it has no GPU; empty: not known
    gpus: tuple[NodeGpu, ...] = ()  # Its GPUs


class Node(Line, NodeReport, frozen=True, kw_only=True):
    """A node, and what a later comparison needs of it."""

    group: int | None = None  # Number of its group; null without a report
    differences: int = 0  # Number of facts in which it differs from the majority
    slow: int = 0  # Number of its slow figures
    aspects: tuple[tuple[str, str, str, bool], ...] = ()
    """Aspect, subject, the ``digest`` of a record ``facts``, and whether a fact that is not there is absent."""
    figures: tuple[tuple[int, str, float], ...] = ()
    """Number of the quantity (from 0, in the order of the records ``spread``), subject, value."""


class FactsRecord(Line, frozen=True, kw_only=True, tag="facts"):
    """An aspect that one or more nodes have."""

    digest: str  # Names it
    facts: dict[str, str]  # The facts by name


# After the head, in the order of the fields of ``FleetComparison``.
Record = (
    Head | Vanished | Problem | Difference | Split | Slow | Spread | Drift | Slowed | Decline | Spell | CameOrWent
    | Group | Node | FactsRecord
)  # fmt: skip


class FleetComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing the nodes of a fleet finds, in the order of the lines."""

    vanished: tuple[Vanished, ...] = ()
    problems: tuple[Problem, ...] = ()
    differences: tuple[Difference, ...] = ()
    splits: tuple[Split, ...] = ()
    slow: tuple[Slow, ...] = ()
    spreads: tuple[Spread, ...] = ()
    drifts: tuple[Drift, ...] = ()
    slowed: tuple[Slowed, ...] = ()
    declines: tuple[Decline, ...] = ()
    spells: tuple[Spell, ...] = ()
    came_or_went: CameOrWent | None = None
    groups: tuple[Group, ...] = ()
    nodes: Sequence[Node] = ()
    facts: tuple[FactsRecord, ...] = ()


class Fleet(FleetComparison, frozen=True, kw_only=True):
    """A compared fleet."""

    head: Head

    def records(self) -> Iterator[Record]:
        """All records in the order of the lines."""
        yield self.head
        for name in FleetComparison.__struct_fields__:
            found = getattr(self, name)
            yield from found if isinstance(found, Sequence) else filter(None, (found,))

    @classmethod
    def of(cls, head: Head, records: Iterable[Record]) -> Fleet:
        """The fleet of these records, in any order."""
        found: dict[type, list[Any]] = defaultdict(list)
        for record in records:
            found[type(record)].append(record)
        kinds = zip(FleetComparison.__struct_fields__, get_args(Record)[1:], strict=True)
        fields: dict[str, Any] = {name: tuple(found[kind]) for name, kind in kinds}
        return cls(head=head, **{**fields, "came_or_went": next(iter(fields["came_or_went"]), None)})


MOST_BYTES = 512 << 20  # A fleet of 10,000 nodes with 100 figures each takes some 60 MB
_MOST_LINES = 2_000_000


def write(fleet: Fleet) -> Iterator[str]:
    """The lines of ``fleet``, each with its end."""
    for record in fleet.records():
        yield encode(record) + "\n"


def is_fleet(content: bytes) -> bool:
    """Whether ``content`` begins as a fleet report does."""
    return content[:400].lstrip().startswith(b'{"record":"fleet"')


def read(content: bytes) -> Fleet:
    """The fleet report in ``content``; raise UsageError where it is none."""
    if len(content) > MOST_BYTES or content.count(b"\n") > _MOST_LINES:
        raise UsageError(f"the fleet report has more than {MOST_BYTES >> 20} MiB or {_MOST_LINES:,} lines")
    if not is_fleet(content):
        raise UsageError("this is not a fleet report; save one with: envcheck fleet … -o jsonl:fleet.jsonl")
    try:
        found = msgspec.json.Decoder(Record).decode_lines(content)
    except msgspec.ValidationError as error:
        raise UsageError(f"this is not a fleet report of this version: {clip(clean(str(error)), 160)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError("the fleet report is cut off or damaged: a line is not JSON") from None
    heads = [record for record in found if isinstance(record, Head)]
    if len(heads) != 1 or heads[0].schema_version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise UsageError(f"the fleet report has another schema than {SCHEMA_VERSION}")
    return Fleet.of(heads[0], found)


def placed(fleet: Fleet, file: str) -> Fleet:
    """``fleet``, read from ``file``: the reports of its nodes may have moved together with it."""
    folder = Path(file).expanduser().parent
    nodes = []
    for node in fleet.nodes:
        # As it was given, from here; else from the folder of the file.
        is_here = not node.path or os.path.isabs(node.path) or os.path.exists(node.path)  # noqa: PTH110, PTH117  10,000
        nodes.append(node if is_here else msgspec.structs.replace(node, path=str(folder / node.path)))
    return msgspec.structs.replace(fleet, nodes=tuple(nodes))
