"""The fleet as tables of DuckDB, and the queries of queries.sql over them.

    held    (node, basis, aspect, subject, facts, complete)
    fact    (facts, what, value)
    figure  (node, subject, quantity, value)
    held_before, figure_before                      the same of the earlier fleet report, under the numbers of now

``basis`` numbers the nodes among which an aspect is compared; ``facts`` numbers a set of facts, kept once however many
nodes have it. Texts travel in CSV files because parameters of statements take thirty times as long.
"""

from __future__ import annotations

import csv
import re
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
_LINES = frozenset({"held", "figure"})
_TEXT = Path(__file__).with_name("queries.sql").read_text(encoding="utf-8")
_QUERIES = dict(re.findall(r"^-- (\w+)\n(.*?)(?=^-- \w+\n|\Z)", _TEXT, re.DOTALL | re.MULTILINE))


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
        self._database.close()

    def fill(self, table: str, rows: Iterable[Any]) -> None:
        """Make ``table`` of ``rows``; ``held`` and ``figure`` come as lines. Texts must be free of line breaks."""
        columns = _COLUMNS[table]
        file = self._folder / f"{table}.csv"
        with file.open("w", encoding="utf-8", errors="replace", newline="") as out:
            write = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows
            (out.writelines if table in _LINES else write)(rows)
        self._database.execute(
            f"create temp table {table} as from read_csv(?, header=false, auto_detect=false, quote='\"', escape='\"', "
            f"allow_quoted_nulls=false, columns={columns!r})",
            [str(file)],
        )
        file.unlink()

    def ask(self, name: str, *values: float | str) -> list[tuple[Any, ...]]:
        """The rows that a query of queries.sql finds, with ``values`` for its question marks."""
        return self._database.execute(_QUERIES[name], values).fetchall()


def need_engine() -> None:
    """Raise UsageError where the extra is missing, before anything else is done. Nothing is imported."""
    if find_spec("duckdb") is None:
        raise UsageError("fleet needs the extra 'fleet': pip install 'gpu-envcheck[fleet]' (duckdb is missing)")
