"""Where a key stands: against documents whose lines were counted by hand, and against the parser."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envcheck.text.toml import Path, line_of, lines_of

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

DOCUMENT = '''\
# a comment with key = 1
title = """
require = ["not a key"]
"""
[tool.envcheck]
require = [
    "torch>=2.4",  # ], = and " in a comment
    "gpus>=8", "a,b",
]
gpus.count = 8
output = ['json:a = b', """
two lines"""]

[[tool.envcheck.ignore]]
problem = "a"
[[tool.envcheck.ignore]]
problem = "b"
[tool.envcheck.target."my machine"]
gpu = "H100"
[tool.envcheck.severity]
"quoted-key" = "warn"
matrix = [[1, 2], [3]]
inline = { a = [1], b = "x" }
'''


def test_every_key_and_item_has_its_line() -> None:
    lines = lines_of(DOCUMENT)
    here = ("tool", "envcheck")
    expected: dict[Path, int] = {
        ("title",): 2,
        here: 5,
        (*here, "require"): 6,
        (*here, "require", 0): 7,
        (*here, "require", 1): 8,
        (*here, "require", 2): 8,
        (*here, "gpus", "count"): 10,
        (*here, "output", 0): 11,
        (*here, "output", 1): 11,
        (*here, "ignore"): 14,
        (*here, "ignore", 0): 14,
        (*here, "ignore", 1, "problem"): 17,
        (*here, "target", "my machine"): 18,
        (*here, "target", "my machine", "gpu"): 19,
        (*here, "severity", "quoted-key"): 21,
        (*here, "severity", "matrix", 1): 22,
        (*here, "severity", "inline"): 23,
    }
    assert {path: lines.get(path) for path in expected} == expected
    assert ("require",) not in lines
    assert line_of(lines, (*here, "severity", "inline", "b")) == 23
    assert line_of(lines, ("nothing",)) == 1


KEYS = st.text("ab-1", min_size=1, max_size=3)
VALUES = st.recursive(
    st.sampled_from(["1", '"x = [ #"', "'a\\'", '"""\n]\n"""', "true", "1.5", "2026-01-01"]),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: "[" + ",\n ".join(items) + "]"),
    max_leaves=5,
)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_the_keys_are_those_that_the_parser_finds(tables: dict[str, dict[str, str]]) -> None:
    text = ""
    expected: dict[Path, int] = {}
    for table, entries in tables.items():
        expected[(table,)] = text.count("\n") + 1
        text += f"[{table}] # x\n"
        for key, value in entries.items():
            expected[(table, key)] = text.count("\n") + 1
            text += f"{key} = {value}\n\n"
    found: dict[str, Any] = toml.loads(text)
    keys: set[Path] = {(table, key) for table, entries in found.items() for key in entries}
    assert keys | {(table,) for table in found} == set(expected)
    lines = lines_of(text)
    assert {path: line for path, line in lines.items() if not any(isinstance(part, int) for part in path)} == expected
