"""TOML of others: what it may not hold, and on which line a key stands."""

import importlib
import pathlib
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.text.toml import Path, TomlError, line_of, lines_of, loads
from tests.every import cases

_DOTS = "b" + ".b" * 19_000


@cases("text, line",
    (f"{_DOTS} = 1", 1), (f'"a".{_DOTS} = 1', 1), (f"'a' . {_DOTS} = 1", 1), (f"x = 1\n[{_DOTS}]", 2),
    (f"[['a'.{_DOTS}]]", 1), (f"x = {{ a.{_DOTS} = 1 }}", 1), (f"x = [ # don't\n1, {{ a.{_DOTS} = 1 }} ]", 2),
    (f'x = ["""\n"""", {{ a.{_DOTS} = 1 }} ]', 2), (f'x = ["""\\"""\\\\""", {{ a.{_DOTS} = 1 }} ]', 1),
    (f"x = ['\\', {{ a.{_DOTS} = 1 }} ]", 1), (f"x = '''\n'''\n\"\\\\\".{_DOTS} = 1", 3),
)  # fmt: skip
def test_a_key_with_many_dots_is_refused_unparsed(text: str, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.text.toml._TOML", None)
    with pytest.raises(TomlError, match="more than 50 dots") as raised:
        loads(text)
    assert raised.value.line == line


@cases("row", "k{} = 1\n", "[k{}]\n", "k.k{}.x = {{}}\n", '"k{}".x = 1\n')
def test_more_keys_than_any_lock_file_has_are_refused_unparsed(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.text.toml._TOML", None)
    with pytest.raises(TomlError, match="more than 400,000 keys"):
        loads("".join(map(row.format, range(400_001))))


def test_dots_in_strings_comments_and_numbers_are_no_keys() -> None:
    dots = "." * 200
    text = f'a = "{dots}" # {dots}\nb = """\n{dots}\\""" {dots}"""\nc = \'{dots}\'\nd = [{"0.5, " * 200}]\n'
    assert loads(text)["a"] == dots


def test_nesting_is_an_error_of_its_own() -> None:
    with pytest.raises(TomlError, match="nested too deeply"):
        loads("a = " + "[" * 50_000)


# --- Where a key stands: against documents whose lines were counted by hand, and against the parser -----------------
toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

DOCUMENT = (pathlib.Path(__file__).with_name("data") / "lines.toml").read_text(encoding="utf-8")


def test_every_key_and_item_has_its_line() -> None:
    lines = lines_of(DOCUMENT)
    here = ("tool", "envcheck")
    expected: dict[Path, int] = {
        ("title",): 2, here: 5, (*here, "require"): 6, (*here, "require", 0): 7, (*here, "require", 1): 8,
        (*here, "require", 2): 8, (*here, "gpus", "count"): 10, (*here, "output", 0): 11, (*here, "output", 1): 11,
        (*here, "ignore"): 14, (*here, "ignore", 0): 14, (*here, "ignore", 1, "problem"): 17,
        (*here, "target", "my machine"): 18, (*here, "target", "my machine", "gpu"): 19,
        (*here, "severity", "quoted-key"): 21, (*here, "severity", "matrix", 1): 22, (*here, "severity", "inline"): 23,
    }  # fmt: skip
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
