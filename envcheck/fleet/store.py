"""A store of what fleets told: which GPUs became slower and since when, how long a finding lasts, which come and go.

It is a file of DuckDB, to which each fleet report adds what is new of each node:

    looked    (node, seen, verdict, told)
    said      (node, seen, status, what, subject, told)             findings, and differences from the majority
    measured  (node, seen, subject, part, title, value, unit, share)

``part`` is the GPU's UUID, so that a replaced GPU begins anew; ``share`` is the speed as a share of the fleet's median
at that time, which neither the season nor a load that all nodes have changes.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import starmap
from statistics import NormalDist, median
from typing import Any, Literal

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet import record
from envcheck.fleet.examine import made_at
from envcheck.fleet.pages.text import MOST_LINES, NodeRow, decline_text, fact_text, section, value_text
from envcheck.fleet.tables import Tables, need_engine
from envcheck.knowledge.performance.spread import DEVIATION, speed_ratio
from envcheck.model.checks import Status
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen
from envcheck.text.clean import brief, clean
from envcheck.text.wrap import did_you_mean

SCHEMA_VERSION = "1.0"  # Of the history of a node
DEFAULT_DAYS = 90
_VERSION = 1
_LEAST = 0.03  # Share by which a GPU must have become slower
_BY_CHANCE = 0.001  # Series that a normal distribution may put below the limit on both of the last two days
_DAYS = 7  # Days with figures from which on a series is judged, the last two among them
_ABOVE = 0.6745
"""Standard deviations from the median to the upper quartile, which is what a GPU usually reached: it holds while up to
three quarters of the days are slow."""


@contextmanager
def opened(file: str, *, read_only: bool = False) -> Iterator[Tables]:
    """The store in ``file``; raise UsageError where it is none, or another program has it open."""
    need_engine()
    from duckdb import Error  # noqa: PLC0415  an extra

    try:
        with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as folder:
            tables = Tables(folder, file, read_only=read_only)
            try:
                names = {name for (name,) in tables.ask("tables")}
                if not read_only and not names:
                    tables.ask("made")
                elif "envcheck_store" not in names or tables.ask("version") != [(_VERSION,)]:
                    raise UsageError(f"--store {file}: it is another database, or a store of another version")
                tables.ask("views")
                yield tables
            finally:
                tables.close()
    except Error as error:
        raise UsageError(brief(f"--store {file} cannot be used: {str(error).splitlines()[0]}")) from None


def remember(found: record.FleetComparison, created: str, file: str, days: int) -> record.FleetComparison:
    """``found``, added to the store in ``file``, with what that knows of its nodes; it forgets after ``days`` days."""
    until = msgspec.convert(created, datetime)
    stamps = {node.name: _stamp(node.created, until) for node in found.nodes}
    with opened(file) as tables:
        tables.fill("new_looked", _looked(found, stamps, until))
        tables.fill("new_said", _rows_of_findings(found, stamps))
        tables.fill("new_measured", _measured(found, stamps))
        tables.ask("added")
        tables.ask("limit", days)
        tables.ask("forget")
        gpus = {clean(node.name): len(node.gpus) for node in found.nodes}
        declines = tuple(each for each in fallen(tables, gpus) if each.node in gpus)
        lasting = tables.ask("lasting")
        spells = tuple(record.Spell(*each) for each in lasting if each[0] in gpus)
        return msgspec.structs.replace(found, declines=declines, spells=spells)


def fallen(tables: Tables, gpus: dict[str, int]) -> Iterator[record.Decline]:
    """The nodes that became slower, the slowest first; ``gpus`` is how many each has."""
    tables.ask("series")
    count = tables.ask("count")[0][0]
    # Both of two days are below by chance.
    distance = _ABOVE + NormalDist().inv_cdf(1 - (_BY_CHANCE / max(count, 1)) ** 0.5)
    for node, subjects, titles, ratio, since in tables.ask("fallen", _DAYS, _LEAST, distance * DEVIATION):
        yield record.Decline(node, tuple(sorted(subjects)), tuple(sorted(titles)), ratio, since, gpus.get(node, 0))


def _stamp(created: str, until: datetime) -> str:
    """When a report was made, in UTC; that of the fleet's where it does not say, or says a time to come."""
    made = made_at(created, until + timedelta(hours=1))
    return f"{(until if made.year == 1 else made).astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}"


def _looked(found: record.FleetComparison, stamps: dict[str, str], until: datetime) -> Iterator[tuple[Any, ...]]:
    for node in found.nodes:
        verdict = "unanswered" if node.problem else node.verdict
        yield clean(node.name), stamps[node.name], verdict, clean(node.problem or node.headline)
    for each in (group for group in found.vanished if group.status != "unknown"):
        yield from ((clean(name), _stamp("", until), "vanished", "nothing came of it") for name in each.nodes)


def _rows_of_findings(found: record.FleetComparison, stamps: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    for problem in found.problems:
        for name in problem.nodes:
            yield clean(name), stamps[name], problem.status, problem.rule, "", clean(problem.title)
    for each in found.differences:
        what, difference = clean(fact_text(each)), clean(f"{value_text(each.value)}, not {value_text(each.common)}")
        for place in each.places:
            for subject in place.subjects or ("",):
                yield clean(place.node), stamps[place.node], "warn", what, clean(subject), difference


def _measured(found: record.FleetComparison, stamps: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    known = [(clean(each.quantity.title), each.quantity.unit, each.median) for each in found.spreads]
    judged = [each.limit is not None for each in found.spreads]
    for node in found.nodes:
        uuids = {gpu.name: gpu.uuid or gpu.name for gpu in node.gpus}
        for number, subject, value in node.figures:
            title, unit, median = known[number]
            share = speed_ratio(value, median, unit) if judged[number] and median > 0 else 0.0
            part = clean(" to ".join(uuids.get(name, name) for name in subject.split(" to ")))
            yield clean(node.name), stamps[node.name], clean(subject), part, title, value, unit, share


class Verdicts(msgspec.Struct, frozen=True):
    """Looks at a node in a row that ended alike."""

    first: str  # Day of the first
    last: str  # Day of the last
    verdict: Literal["pass", "warn", "fail", "unknown", "unanswered", "vanished"]  # How they ended
    told: str  # The headline of the last
    looks: int  # How many they are


class Said(msgspec.Struct, frozen=True):
    """A finding, or a difference from the majority, in looks in a row."""

    what: str  # The rule or the fact
    subject: str  # ``GPU 3``; empty for the node
    first: str  # Day of the first: since when, if it lasts
    last: str  # Day of the last
    lasts: bool  # Whether the last look at the node found it
    status: Status  # ``fail`` or ``warn``
    told: str  # In words, as the last of these looks said it


class Week(msgspec.Struct, frozen=True):
    """The speed of a GPU or link in a week."""

    title: str  # What was measured
    subject: str  # ``GPU 3``, ``GPU 0 to GPU 3``; empty for the processor
    week: str  # Its Monday
    share: float  # As a share of the fleet's median of the time; of its own, where there was none


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What a store knows about a node."""

    schema_version: str = SCHEMA_VERSION  # Version of this contract: readers accept any minor of their major
    node: str  # Its name
    verdicts: tuple[Verdicts, ...]  # From the first look to the last
    said: tuple[Said, ...]  # What lasts first, then the latest
    weeks: tuple[Week, ...]  # By quantity, GPU or link, and week
    declines: tuple[record.Decline, ...]  # What became slower than it was


def history(file: str, node: str) -> History:
    """What the store in ``file`` knows of ``node``; raise UsageError where that is nothing."""
    with opened(file, read_only=True) as tables:
        known = [name for (name,) in tables.ask("nodes")]
        if node not in known:
            raise UsageError(f"--store {file}: nothing is known of {node!r}{did_you_mean(node, known)}")
        kinds = {"verdicts": Verdicts, "said": Said, "weeks": Week}
        rows: dict[str, Any] = {name: tuple(starmap(kind, tables.ask(name, node))) for name, kind in kinds.items()}
        declines = (each for each in fallen(tables, dict(tables.ask("gpus"))) if each.node == node)
        return History(node=node, declines=tuple(declines), **rows)


_VERDICTS, _SAID, _WEEKS = 12, 20, 8
_APART = 0.02  # Share of the node's median by which a GPU has to be off in a week to be told on its own


def render(found: History, options: Options) -> str:
    """``found`` on one page: its verdicts, what it said since when, and its speed by week."""
    pen = Pen(options)
    return pen.show(_lines(found, pen))


def _lines(found: History, pen: Pen) -> Iterator[Line]:
    looks = record.counted(sum(each.looks for each in found.verdicts), "look", "looks")
    yield from pen.hang("", f"{found.node}: {looks} since {found.verdicts[0].first}", "title", MOST_LINES)
    rows = [NodeRow("warn", decline_text(each)) for each in found.declines]
    yield from section(pen, "Became slower", rows, len(rows))
    rows = [
        NodeRow(
            "note",
            f"{_days(each.first, each.last)}: {each.told} ({record.counted(each.looks, 'look', 'looks')})",
            sign=each.verdict[:4],
        )
        for each in reversed(found.verdicts)
    ]
    yield from section(pen, "Verdicts, the latest first", rows, _VERDICTS, "the store")
    rows = [
        NodeRow(each.status, f"{about}: {each.told} ({since})", sign="" if each.lasts else "was")
        for each in found.said
        for about in [" ".join(filter(None, (each.subject, each.what)))]
        for since in [f"since {each.first}" if each.lasts else _days(each.first, each.last)]
    ]
    yield from section(pen, "What it said", rows, _SAID, "the store")
    weeks = sorted({each.week for each in found.weeks})[-_WEEKS:]
    speeds: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for each in found.weeks:
        speeds[each.title][each.subject][each.week] = each.share
    rows = [
        NodeRow("note", f"{title}, {who}: {', '.join(cells)}", sign="")
        for title, by_subject in speeds.items()
        for who, by_week in _median_and_outliers(by_subject, weeks)
        for cells in [[f"{by_week[week]:.0%}" if week in by_week else "-" for week in weeks]]
    ]
    title = f"Speed as a share of the fleet's median, in the weeks from {', '.join(week[5:] for week in weeks)}"
    yield from section(pen, title, rows, len(rows))


def _days(first: str, until: str) -> str:
    return first if first == until else f"{first} to {until}"


def _median_and_outliers(
    by_subject: Mapping[str, Mapping[str, float]], weeks: list[str]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The median of all in each week, and who is apart from it in one."""
    every = by_subject.values()
    middle = {week: median(found) for week in weeks if (found := [each[week] for each in every if week in each])}
    if len(every) > 1:
        yield f"median of {len(every)}", middle
    for subject, each in by_subject.items():
        if len(every) == 1 or any(abs(share - middle.get(week, share)) > _APART for week, share in each.items()):
            yield subject or "processor", each
