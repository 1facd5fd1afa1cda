"""docs/rules.md is what its script would write now."""

from __future__ import annotations

from scripts.rule_index import INDEX, ROOT, index


def test_the_index_lists_every_rule_as_it_is() -> None:
    assert (ROOT / INDEX).read_text(encoding="utf-8") == index(), "run: python scripts/rule_index.py"
