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
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from statistics import NormalDist
from typing import Any

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet import record
from envcheck.fleet.examine import made_at
from envcheck.fleet.pages.text import fact_text, value_text
from envcheck.fleet.tables import Tables, need_engine
from envcheck.knowledge.performance.spread import DEVIATION, speed_ratio
from envcheck.text.clean import brief, clean
from envcheck.text.wrap import did_you_mean

DEFAULT_DAYS = 90
_VERSION = 1
_LEAST = 0.03
"""Share by which a GPU must have become slower."""
_BY_CHANCE = 0.001
"""Series that a normal distribution may put below the limit on both of the last two days."""
_DAYS = 7
"""Days with figures from which on a series is judged, the last two among them."""
_ABOVE = 0.6745
"""Standard deviations from the median to the upper quartile, which is what a GPU usually reached: it holds while up to
three quarters of the days are slow."""

_MADE = """
create table envcheck_store as select 1 as version;
create table looked (node text, seen timestamp, verdict text, told text);
create table said (node text, seen timestamp, status text, what text, subject text, told text);
create table measured
    (node text, seen timestamp, subject text, part text, title text, value double, unit text, share double);
"""
_VIEWS = """
create temp view spells as
with looks as (
    select node, seen, row_number() over (partition by node order by seen) as place, max(seen) over () as newest,
        seen = max(seen) over (partition by node) as last
    from looked where verdict not in ('unanswered', 'vanished')
), islands as (
    select node, what, subject, seen, told, status, newest, last,
        place - dense_rank() over (partition by node, what, subject order by seen) as island
    from said join looks using (node, seen)
)
select node, what, subject, min(seen) as first, max(seen) as until, bool_or(last) as lasts,
    arg_max(status, seen) as status, arg_max(told, seen) as told, max(newest) as newest
from islands group by node, what, subject, island;
create temp view daily as
select node, part, title, seen::date as day, arg_max(subject, seen) as subject, median(share) as share
from measured where share > 0 group by all;
"""
"""``spells``: each unbroken row of looks at a node that said the same."""
_ADDED = """
create temp table fresh as select distinct on (node, seen) * from new_looked anti join looked using (node, seen);
insert into said select new_said.* from new_said semi join fresh using (node, seen);
insert into measured select new_measured.* replace (nullif(share, 0) as share)
from new_measured semi join fresh using (node, seen);
insert into looked from fresh;
"""
_FORGOTTEN = (
    "delete from said where seen < (select max(seen) from looked) - to_days(?)",
    "delete from measured where seen < (select max(seen) from looked) - to_days(?)",
    "delete from looked where seen < (select max(seen) from looked) - to_days(?)",
)
_SERIES = """
create temp table series as
select *, quantile_cont(share, 0.75) over own as usual, median(share) over own as middle, count(*) over own as days,
    row_number() over (partition by node, part, title order by day desc) as back,
    max(day) over (partition by node) as newest
from daily window own as (partition by node, part, title)
"""
_FALLEN = """
with noise as (
    select title, median(abs(share - middle) / middle * sqrt(days / greatest(days - 1, 1))) as mad
    from series group by title
), now as (
    select node, part, title, any_value(usual) as usual, max(share) as now
    from series join noise using (title) where back <= 2 and days >= ?
    group by node, part, title
    having max(day) = any_value(newest) and max(share) < any_value(usual * (1 - greatest(?, ? * mad)))
), turned as (
    select node, part, title, any_value(now.now / now.usual) as ratio,
        coalesce(max(day) filter (share > (now.now + now.usual) / 2), date '0001-01-01') as well
    from now join series using (node, part, title) group by all
), dated as (
    select node, any_value(subject) as subject, title, any_value(ratio) as ratio, min(day) as since
    from turned join series using (node, part, title) where day > well group by node, part, title
)
select node, list(distinct subject), list(distinct title), median(ratio), quantile_disc(since, 0.5)::text
from dated group by node order by median(ratio), node
"""
"""Node, subjects, quantities, speed as a share of what it was, and since which day: of what was slow on both of the
last two days."""
_LASTING = """
select node, what, subject, max(first)::date::text, count(*) filter (until >= newest - interval 14 day)
from spells group by node, what, subject having bool_or(lasts) order by all
"""
"""Node, what it says now of what, since when, and how many times it began within two weeks."""


@contextmanager
def opened(file: str, *, read_only: bool = False) -> Iterator[Tables]:
    """The store in ``file``; raise UsageError where it is none, or another program has it open."""
    need_engine()
    from duckdb import Error  # noqa: PLC0415  an extra

    try:
        with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as folder:
            tables = Tables(folder, file, read_only=read_only)
            try:
                names = {name for (name,) in tables.ask("select table_name from information_schema.tables")}
                if not read_only and not names:
                    tables.ask(_MADE)
                elif "envcheck_store" not in names or tables.ask("from envcheck_store") != [(_VERSION,)]:
                    raise UsageError(f"--store {file}: it is another database, or a store of another version")
                tables.ask(_VIEWS)
                yield tables
            finally:
                tables.close()
    except Error as error:
        raise UsageError(brief(f"--store {file} cannot be used: {str(error).splitlines()[0]}")) from None


def remember(found: record.FleetComparison, created: str, file: str, days: int) -> record.FleetComparison:
    """``found`` with what the store in ``file`` knows of its nodes, once it was added; what is older than ``days`` days
    is forgotten.
    """
    until = msgspec.convert(created, datetime)
    stamps = {node.name: _stamp(node.created, until) for node in found.nodes}
    with opened(file) as tables:
        tables.fill("new_looked", _looked(found, stamps, until))
        tables.fill("new_said", _said(found, stamps))
        tables.fill("new_measured", _measured(found, stamps))
        tables.ask(_ADDED)
        for statement in _FORGOTTEN:
            tables.ask(statement, days)
        gpus = {clean(node.name): len(node.gpus) for node in found.nodes}
        declines = tuple(each for each in fallen(tables, gpus) if each.node in gpus)
        lasting = tables.ask(_LASTING)
        spells = tuple(record.Spell(*each) for each in lasting if each[0] in gpus)
        return msgspec.structs.replace(found, declines=declines, spells=spells)


def fallen(tables: Tables, gpus: dict[str, int]) -> Iterator[record.Decline]:
    """The nodes that became slower, the slowest first; ``gpus`` is how many each has."""
    tables.ask(_SERIES)
    count = tables.ask("select count(distinct (node, part, title)) from series")[0][0]
    # Both of two days are below by chance.
    distance = _ABOVE + NormalDist().inv_cdf(1 - (_BY_CHANCE / max(count, 1)) ** 0.5)
    for node, subjects, titles, ratio, since in tables.ask(_FALLEN, _DAYS, _LEAST, distance * DEVIATION):
        yield record.Decline(node, tuple(sorted(subjects)), tuple(sorted(titles)), ratio, since, gpus.get(node, 0))


def _stamp(created: str, until: datetime) -> str:
    """When a report was made, in UTC; that of the fleet's where it does not say, or says a time to come."""
    made = made_at(created, until + timedelta(hours=1))
    return f"{(until if made.year == 1 else made).astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}"


def _looked(found: record.FleetComparison, stamps: dict[str, str], until: datetime) -> Iterator[tuple[Any, ...]]:
    for node in found.nodes:
        verdict = "unanswered" if node.problem else node.verdict
        yield clean(node.name), stamps[node.name], verdict, clean(node.problem or node.headline)
    for each in found.vanished:
        yield from ((clean(name), _stamp("", until), "vanished", "nothing came of it") for name in each.nodes)


def _said(found: record.FleetComparison, stamps: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    for problem in found.problems:
        for name in problem.nodes:
            yield clean(name), stamps[name], problem.status, problem.rule, "", clean(problem.title)
    for each in found.differences:
        what, told = clean(fact_text(each)), clean(f"{value_text(each.value)}, not {value_text(each.common)}")
        for place in each.places:
            for subject in place.subjects or ("",):
                yield clean(place.node), stamps[place.node], "warn", what, clean(subject), told


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


_VERDICTS = """
select min(seen)::date::text, max(seen)::date::text, verdict, arg_max(told, seen), count(*)
from (select *, row_number() over (order by seen) - row_number() over (partition by verdict order by seen) as island
    from looked where node = ?)
group by verdict, island order by min(seen)
"""
_SAID = """
select what, subject, first::date::text, until::date::text, lasts, status, told from spells
where node = ? order by lasts desc, first desc, what, subject
"""
_WEEKS = """
with own as (
    select *, median(value) over (partition by part, title) as middle from measured where node = ? and value > 0
)
select title, subject, date_trunc('week', seen)::date::text as week,
    median(coalesce(share, if(unit = 's', middle / value, value / middle))) as share
from own group by all order by title, subject, week
"""
_GPUS = "select node, count(distinct subject) from measured where subject not like '% to %' group by node"


class History(msgspec.Struct, frozen=True):
    """What a store knows of a node; each field is the rows of a query."""

    node: str
    verdicts: list[tuple[Any, ...]]
    """First and last day, verdict, what was told last and the number of looks: of looks in a row that ended alike."""
    said: list[tuple[Any, ...]]
    """What, subject, first and last day, whether it lasts, status, what was told: of looks in a row that said it."""
    weeks: list[tuple[Any, ...]]
    """Quantity, GPU or link, Monday, and the speed as a share of the fleet's median, or of its own where there is
    none."""
    declines: list[record.Decline]


def history(file: str, node: str) -> History:
    """What the store in ``file`` knows of ``node``; raise UsageError where that is nothing."""
    with opened(file, read_only=True) as tables:
        known = [name for (name,) in tables.ask("select distinct node from looked")]
        if node not in known:
            raise UsageError(f"--store {file}: nothing is known of {node!r}{did_you_mean(node, known)}")
        declines = [each for each in fallen(tables, dict(tables.ask(_GPUS))) if each.node == node]
        verdicts, said, weeks = (tables.ask(query, node) for query in (_VERDICTS, _SAID, _WEEKS))
        return History(node, verdicts, said, weeks, declines)
