"""The words of fixes: each can stand alone, whichever a page shows first."""

from __future__ import annotations

import ast
from pathlib import Path

from envcheck.knowledge.load import load_matrix

RULES = Path(__file__).parents[3] / "envcheck"


def test_no_fix_begins_as_the_end_of_another() -> None:
    texts = [
        (file.name, node.value)
        for file in RULES.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert len(texts) > 1000
    assert [each for each in texts if each[1].startswith("Or ")] == []


def test_no_row_advises_by_the_end_of_a_sentence() -> None:
    rows = load_matrix()
    words = [row.change for row in rows.flaws]
    words += [
        fix.text
        for fixes in (*(row.fixes for row in rows.remedies), *(row.fixes for row in rows.problems))
        for fix in fixes
    ]
    assert len(words) > 200
    assert [each for each in words if each and each.startswith(("Or ", "Otherwise "))] == []
