"""Published tables, each row asked: the matrix says what they say, but where the file names who is right.

The files below ``tables/`` hold the facts of one table each: questions whose answer is yes, or no, by the page that was
read.
A row of ``disagreements`` says why the answer differs: ``matrix``, because of a better source; ``table``, while a row
of the matrix waits to be mended; or ``open``, where neither can be shown to be right and the answer must be unknown.
"""

from pathlib import Path
from typing import Any

import pytest

from envcheck.text.toml import loads
from tests.knowledge.asking import answer

pytestmark = pytest.mark.lab
TABLES = sorted((Path(__file__).parent / "tables").rglob("*.toml"))
WANTED = {"yes": "compatible", "no": "incompatible"}
SIDES = ("matrix: ", "table: ", "open: ")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = loads(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_row_of_a_table_is_answered_as_it_says(path: Path) -> None:
    table = read(path)
    assert table["title"]
    assert table["address"].startswith("https://")
    known = table.get("disagreements", {})
    differing = {
        question: found.verdict
        for key, wanted in WANTED.items()
        for question in table[key]
        if (found := answer(question)).verdict != wanted
    }
    new = {question: verdict for question, verdict in differing.items() if question not in known}
    assert not new, f"say in [disagreements] who is right: {new}"
    assert not known.keys() - differing.keys(), "these agree now"
    for question, who in known.items():
        assert who.startswith(SIDES)
        assert not who.startswith("open: ") or differing[question] == "unknown", question


def test_there_are_tables_of_different_projects() -> None:
    assert len(TABLES) >= 60
    assert sum(len(read(path)[key]) for path in TABLES for key in WANTED) > 16000
