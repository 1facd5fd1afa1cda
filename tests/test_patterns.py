"""Patterns for other people's text: none whose work grows with the square of empty lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.every import cases

ROOT = Path(__file__).resolve().parents[1]
ACROSS_LINES = re.compile(r"\^(?:\\s|\[[^\]]*(?:\\s|\\n)[^\]]*\])(?:[*+]|\{\d+,\})")
"""``^`` of every line, and at once what may run on over all following empty lines."""


def patterns(path: Path) -> Iterator[tuple[int, str]]:
    """The calls of ``re`` in a module that read text line by line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if of_re and re.search(r"MULTILINE|\(\?m", called := ast.unparse(node)):
                yield node.lineno, called.replace(r"\\", "\\")


@cases("folder", "probes", "envcheck")
def test_no_line_begins_with_what_crosses_lines(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {pattern}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, pattern in patterns(path)
        if ACROSS_LINES.search(pattern)
    ]
    assert not found


def test_such_a_pattern_is_seen() -> None:
    assert ACROSS_LINES.search(r"^\s*exec")
    assert ACROSS_LINES.search(r"^[\s>]*exec")
    assert not ACROSS_LINES.search(r"^[ \t]*exec\s*$")
