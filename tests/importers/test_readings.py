"""The rows of ``readings.toml``: each reads its examples, and each of its patterns has one."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from envcheck.importers import importers, read_text
from envcheck.importers.readings import facts_in
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import ReadingRow
from envcheck.model.snapshot import Snapshot
from tests.every import every

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_FILE = Path(__file__).parents[2] / "matrix" / "readings.toml"
EXAMPLES: dict[str, list[str]] = {
    f"{row['importer']}/{row['name']}": row["examples"]
    for row in toml.loads(_FILE.read_text(encoding="utf-8"))["reading"]
}


def matched(row: ReadingRow, pattern: str, example: str) -> re.Match[str] | None:
    """Where the pattern reads the first line of an example, or the answer to the question in it."""
    line, _, below = example.partition("\n")
    line = (below if row.above else line).strip()
    if row.asked:
        question, _, answer = line.partition(": ") if not below else (line.removeprefix(">>> "), "", below)
        return re.fullmatch(pattern, answer) if re.fullmatch(row.asked, question) else None
    has = any(text in line.lower() for text in row.has)
    return re.search(pattern, line) if has and not (row.unless and re.search(row.unless, line)) else None


@every(lambda: load_matrix().readings)
def test_a_row_reads_its_examples(row: ReadingRow) -> None:
    examples = EXAMPLES[f"{row.importer}/{row.name}"]
    found: dict[str, Any] = {}
    for pattern in row.patterns:
        matches = [match for example in examples if (match := matched(row, pattern, example))]
        assert matches, f"no example of {pattern}"
        found |= {name: text for match in matches for name, text in match.groupdict().items() if text}
    assert set(re.findall(r"\{([a-z]\w*)", str(row.fills))) <= set(found), "no example fills this"
    for example in examples if row.fills else ():
        assert row.importer in [run.name for run in read_text(example).runs]
        assert Snapshot() not in facts_in(row.importer, example.partition("\n")[0])
        assert not row.above or re.search(row.above, example.partition("\n")[0].strip())


@every(lambda: load_matrix().readings)
def test_the_rows_of_an_importer_have_its_rank(row: ReadingRow) -> None:
    assert [each.rank.name.lower() for each in importers() if each.name == row.importer] == [row.rank]


@every(lambda: load_matrix().readings)
def test_texts_of_a_row_are_in_lower_case(row: ReadingRow) -> None:
    texts = "".join((*row.has, row.beside))
    assert texts == texts.lower()
