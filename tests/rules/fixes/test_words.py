"""The words of fixes: each can stand alone, whichever a page shows first."""

import re
from itertools import pairwise
from pathlib import Path

from envcheck.knowledge.load import load_matrix

RULES = Path(__file__).parents[3] / "envcheck"


def test_no_fix_begins_as_the_end_of_another() -> None:
    code = {file.name: file.read_text(encoding="utf-8") for file in RULES.rglob("*.py")}
    assert len(code) > 100
    assert [name for name, text in code.items() if re.search(r"""["']Or """, text)] == []


def test_no_row_advises_by_the_end_of_a_sentence() -> None:
    rows = load_matrix()
    fixes = [fix for row in rows.remedies for fix in row.fixes] + [fix for row in rows.problems for fix in row.fixes]
    words = [*(row.change for row in rows.flaws), *(fix.text for fix in fixes)]
    assert len(words) > 200
    assert [each for each in words if each and re.match(r"(?:Or|Otherwise|Else)\b", each)] == []


def test_what_refers_to_a_fix_comes_after_it() -> None:
    """A page shows what the user can do before what needs root: not where it begins with "If that changes nothing"."""
    wrong = [
        fix.text
        for row in load_matrix().remedies
        for before, fix in pairwise(row.fixes)
        if re.match(r"If (?:that|it|they)\b", fix.text) and not fix.then and (before.who, fix.who) == ("root", "user")
    ]
    assert wrong == []
