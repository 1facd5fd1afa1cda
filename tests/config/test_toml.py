"""What TOML of others may not hold, wherever it stands in the text."""

from __future__ import annotations

import pytest

from envcheck.text.toml import TomlError, loads

_DOTS = "b" + ".b" * 19_000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{_DOTS} = 1", 1),
        (f'"a".{_DOTS} = 1', 1),
        (f"'a' . {_DOTS} = 1", 1),
        (f"x = 1\n[{_DOTS}]", 2),
        (f"[['a'.{_DOTS}]]", 1),
        (f"x = {{ a.{_DOTS} = 1 }}", 1),
        (f"x = [ # don't\n1, {{ a.{_DOTS} = 1 }} ]", 2),
        (f'x = ["""\n"""", {{ a.{_DOTS} = 1 }} ]', 2),
        (f'x = ["""\\"""\\\\""", {{ a.{_DOTS} = 1 }} ]', 1),
        (f"x = ['\\', {{ a.{_DOTS} = 1 }} ]", 1),
        (f"x = '''\n'''\n\"\\\\\".{_DOTS} = 1", 3),
    ],
)
def test_a_key_with_many_dots_is_refused_before_it_is_parsed(
    text: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.text.toml._TOML", None)
    with pytest.raises(TomlError, match="more than 50 dots") as raised:
        loads(text)
    assert raised.value.line == line


@pytest.mark.parametrize("row", ["k{} = 1\n", "[k{}]\n", "k.k{}.x = {{}}\n", '"k{}".x = 1\n'])
def test_more_keys_than_any_lock_file_has_are_refused_before_they_are_parsed(
    row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
