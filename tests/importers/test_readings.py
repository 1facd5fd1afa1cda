"""The rows of ``readings.toml``: each reads its examples, and each of its patterns has one."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from envcheck.importers import importers, read_text
from envcheck.importers.readings import facts_in
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables import ReadingRow
from envcheck.model.snapshot import Snapshot
from tests.every import every

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_FILE = Path(__file__).parents[2] / "matrix" / "readings.toml"
EXAMPLES: dict[str, list[str]] = {
    f"{row['importer']}/{row['name']}": row["examples"]
    for row in toml.loads(_FILE.read_text(encoding="utf-8"))["reading"]
}


def is_read(row: ReadingRow, line: str) -> bool:
    has = any(text in line.lower() for text in row.has)
    return has and not (row.unless and re.search(row.unless, line.strip()))


@every(lambda: load_matrix().readings)
def test_a_row_reads_its_examples(row: ReadingRow) -> None:
    examples = EXAMPLES[f"{row.importer}/{row.name}"]
    found: dict[str, Any] = {}
    for pattern in row.patterns:
        lines = [example.split("\n")[0].strip() for example in examples]
        matches = [match for line in lines if is_read(row, line) and (match := re.search(pattern, line))]
        assert matches, f"no example of {pattern}"
        found |= {name: text for match in matches for name, text in match.groupdict().items() if text}
    assert set(re.findall(r"\{([a-z]\w*)", str(row.fills))) <= set(found), "no example fills this"
    for example in examples:
        assert row.importer in [run.name for run in read_text(example).runs]
        assert all(facts != Snapshot() for facts in facts_in(row.importer, example.split("\n")[0]))


@every(lambda: load_matrix().readings)
def test_the_rows_of_an_importer_have_its_rank(row: ReadingRow) -> None:
    assert [each.rank.name.lower() for each in importers() if each.name == row.importer] == [row.rank]


@every(lambda: load_matrix().readings)
def test_texts_of_a_row_are_in_lower_case(row: ReadingRow) -> None:
    texts = "".join((*row.has, row.beside))
    assert texts == texts.lower()
