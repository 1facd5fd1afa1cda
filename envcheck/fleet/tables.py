"""The fleet as tables of DuckDB, and the queries over them.

    held    (node, basis, aspect, subject, facts, complete)
    fact    (facts, what, value)
    figure  (node, subject, quantity, value)
    held_before, figure_before                      the same of the earlier fleet report, under the numbers of now

``basis`` numbers the nodes among which an aspect is compared; ``facts`` numbers a set of facts, kept once however many
nodes have it. Texts travel in CSV files because parameters of statements take thirty times as long.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.errors import UsageError

if TYPE_CHECKING:
    import duckdb

_COLUMNS = {
    "held": {"node": "INT", "basis": "INT", "aspect": "INT", "subject": "INT", "facts": "INT", "complete": "BOOL"},
    "fact": {"facts": "INT", "what": "VARCHAR", "value": "VARCHAR"},
    "figure": {"node": "INT", "subject": "INT", "quantity": "INT", "value": "DOUBLE"},
}
_COLUMNS["held_before"] = {name: kind for name, kind in _COLUMNS["held"].items() if name != "basis"}
_COLUMNS["figure_before"] = _COLUMNS["figure"]
_OF_STORES = {
    "new_looked": "node seen verdict told",
    "new_said": "node seen status what subject told",
    "new_measured": "node seen subject part title value unit share",
}
_KINDS = {"seen": "TIMESTAMP", "value": "DOUBLE", "share": "DOUBLE"}
for _table, _names in _OF_STORES.items():
    _COLUMNS[_table] = {name: _KINDS.get(name, "VARCHAR") for name in _names.split()}

SHARES = """
create temp table weight as
    select basis, aspect, facts, complete, count(*) as n from held group by all;
create temp table share as
with told as (
    select basis, aspect, what, value, sum(n) as n, sum(n) filter (complete) as complete
    from weight join fact using (facts) group by all
), whole as (
    select basis, aspect, sum(n) filter (complete) as complete from weight group by all
), absent as (
    select basis, aspect, what, null as value, any_value(whole.complete) - coalesce(sum(told.complete), 0) as n
    from told join whole using (basis, aspect) group by basis, aspect, what
)
select *, sum(n) over (partition by basis, aspect, what) as known,
    row_number() over (partition by basis, aspect, what order by n desc, value) as place
from (select basis, aspect, what, value, n from told union all from absent where n > 0);
create temp table majority as
    select basis, aspect, what, value, n, known from share where place = 1 and n * 2 > known;
"""
"""How many know which value of each fact, an absent one (null) among them, and which more than half share.

It makes tables, of which ``DEPARTURES`` and ``UNDECIDED`` ask.
"""

DEPARTURES = """
with other as (
    select weight.basis, weight.aspect, weight.facts, what, fact.value as value, majority.value as common,
        majority.n, majority.known
    from weight join fact using (facts) join majority using (basis, aspect, what)
    where fact.value is distinct from majority.value and (majority.value is not null or weight.complete)
    union all
    select weight.basis, weight.aspect, weight.facts, what, null, majority.value, majority.n, majority.known
    from weight join majority using (basis, aspect)
    where weight.complete and majority.value is not null
        and not exists (from fact where fact.facts = weight.facts and fact.what = majority.what)
)
select basis, aspect, what, value, common, n, known, list(node order by node, subject),
    list(subject order by node, subject)
from other join held using (basis, aspect, facts) where node >= 0
group by all order by aspect, what, count(*), value, basis
"""
"""Basis, aspect, fact, value (None: absent), common value, how many share it, how many know theirs, and the nodes and
subjects that depart."""

UNDECIDED = """
select basis, aspect, what, list(value order by place), list(n order by place)
from share where (basis, aspect, what) in (select (basis, aspect, what) from share where place = 1 and n * 2 <= known)
group by all order by aspect, what, basis
"""
"""Basis, aspect, fact, values and how many have each, where no value is that of more than half."""

SPREAD = """
with middle as (select quantity, median(value) as middle from figure group by quantity)
select quantity, count(*), any_value(middle), median(abs(value - middle)), min(value), max(value)
from figure join middle using (quantity) group by quantity order by quantity
"""
"""Of each quantity: its number, count, median, median absolute deviation, lowest and highest value."""

HISTOGRAM = """
with span as (
    select quantity, min(value) as low, (max(value) - min(value)) / ? as step from figure group by quantity
)
select quantity, least(cast(floor((value - low) / nullif(step, 0)) as int), ?) as bin, count(*)
from figure join span using (quantity) where bin is not null group by all order by all
"""
"""Quantity, bin from 0 on, count; of so many bins, and their greatest number."""

DRIFT = """
with moved as (
    select distinct aspect, before.facts as old, now.facts as new, before.complete as old_complete,
        now.complete as new_complete
    from held as now join held_before as before using (node, aspect, subject)
    where now.node >= 0 and before.facts <> now.facts
), changed as (
    select aspect, old, new, old_complete, new_complete, now.what as what, before.value as old_value,
        now.value as new_value
    from moved join fact as before on before.facts = old
        join fact as now on now.facts = new and now.what = before.what
    where before.value <> now.value
    union all
    select aspect, old, new, old_complete, new_complete, what, before.value, null
    from moved join fact as before on before.facts = old
    where new_complete and not exists (from fact where fact.facts = new and fact.what = before.what)
    union all
    select aspect, old, new, old_complete, new_complete, what, null, now.value
    from moved join fact as now on now.facts = new
    where old_complete and not exists (from fact where fact.facts = old and fact.what = now.what)
)
select aspect, what, old_value, new_value, list(now.node order by now.node, now.subject),
    list(now.subject order by now.node, now.subject)
from changed join held_before as before using (aspect)
    join held as now on now.node = before.node and now.aspect = before.aspect and now.subject = before.subject
where before.facts = old and now.facts = new and now.node >= 0
group by all order by aspect, what, count(*), old_value, new_value
"""
"""Aspect, fact, value before and now (None: absent), and the nodes and subjects where it changed."""

MOVED = """
select node, subject, quantity, before.value, now.value
from figure as now join figure_before as before using (node, subject, quantity)
where now.value < before.value * (1 - ?) or now.value > before.value * (1 + ?)
order by all
"""
"""Node, subject, quantity, value before and now, of figures that moved by more than a share, which is given twice."""

OUTSIDE = "select node, subject, value from figure where quantity = ? and (value < ? or value > ?) order by node"
"""Node, subject and value of the figures of a quantity below a limit or above another."""


class Tables:
    """An open database, in memory unless it is a ``file``; what fills it is in ``folder`` until it was read."""

    def __init__(self, folder: str, file: str = ":memory:", *, read_only: bool = False) -> None:
        need_engine()
        from duckdb import connect  # noqa: PLC0415  an extra

        self._folder = Path(folder)
        self._database: duckdb.DuckDBPyConnection = connect(
            file,
            read_only=read_only,
            config={
                "autoinstall_known_extensions": False,  # it would download them
                "autoload_known_extensions": False,
                "temp_directory": str(self._folder),
                "memory_limit": "1GB",
            },
        )

    def close(self) -> None:
        """Forget all."""
        self._database.close()

    def fill(self, table: str, rows: Iterable[tuple[Any, ...]] | Iterable[str]) -> None:
        """Make ``table`` of ``rows``, or of lines of numbers. Texts must be free of line breaks."""
        columns = _COLUMNS[table]
        file = self._folder / f"{table}.csv"
        with file.open("w", encoding="utf-8", errors="replace", newline="") as out:
            if "VARCHAR" in columns.values():
                csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
            else:
                line = ",".join("%r" if kind == "DOUBLE" else "%d" for kind in columns.values()) + "\n"
                out.writelines(row if isinstance(row, str) else line % row for row in rows)
        self._database.execute(
            f"create temp table {table} as from read_csv(?, header=false, auto_detect=false, quote='\"', escape='\"', "
            f"allow_quoted_nulls=false, columns={columns!r})",
            [str(file)],
        )
        file.unlink()

    def ask(self, query: str, *values: float | str) -> list[tuple[Any, ...]]:
        """The rows that one of the queries of this module finds, with ``values`` for its question marks."""
        return self._database.execute(query, values).fetchall()


def need_engine() -> None:
    """Raise UsageError where the extra is missing, before anything else is done. Nothing is imported."""
    if find_spec("duckdb") is None:
        raise UsageError("fleet needs the extra 'fleet': pip install 'gpu-envcheck[fleet]' (duckdb is missing)")
