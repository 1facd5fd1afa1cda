"""Environment variables against the rows that describe them: which values are wrong, where they lead, what they do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.compat.tables import VariableEffect, VariableOption, VariableRow, is_named

_LONGEST = 4096
"""Characters of a value that are looked at."""
_SHOWN = 60


def reads(row: VariableRow, name: str) -> bool:
    """Whether a reader of this name is meant."""
    return is_named(name, row.reader)


def holds_for(specifier: str, version: str | None) -> bool:
    """Whether a row or an option is about this release; it is where it names none, or the release is not known."""
    parsed = parse_version(version) if version else None
    return not specifier or parsed is None or parse_specifier(specifier).cover(parsed) != "none"


def wrong(row: VariableRow, value: str, version: str | None = None) -> str | None:
    """What is wrong with a value, as the rest of a sentence; None where nothing is known to be."""
    value = value[:_LONGEST]
    if row.pattern and not _matches(row.pattern, value):
        return f"{_quoted(value)} is not a valid value" + (f" ({row.valid})" if row.valid else "")
    if not row.options:
        return None
    found = (_wrong_setting(row, setting, version) for setting in _settings(row, value))
    return next((text for text in found if text), None)


def _wrong_setting(row: VariableRow, setting: str, version: str | None) -> str | None:
    name, sign, given = setting.partition(row.assign)
    if row.assign == ":" and not (sign and given):
        return f"{_quoted(setting)} is not a setting of the form name:value"
    option = next((each for each in row.options if each.name == name), None)
    if option is None:
        listed = row.known and version and parse_version(version) and holds_for(row.known, version)
        return f"the setting {_quoted(name)} does not exist" if listed else None
    if version and not holds_for(option.versions, version):
        return f"the setting {_quoted(name)} does not exist in {version}"
    if option.pattern and not (sign and _matches(option.pattern, given)):
        return f"{_quoted(setting)} is not a valid setting"
    return None


def _settings(row: VariableRow, value: str) -> Iterator[str]:
    """The settings in a value; commas within brackets part none, and blanks between them do not count."""
    parts = value.split() if row.assign == "=" else re.split(r",(?![^\[]*\])", re.sub(r"\s+", "", value))
    yield from (part for part in parts if part)


def leads_to(row: VariableRow, value: str) -> tuple[tuple[str, str], ...]:
    """The paths in a value, each with what it must lead to."""
    value = value[:_LONGEST]
    parts = re.split(r"[ :]+", value) if row.several else [value]
    own = [(part, row.leads_to) for part in parts if row.leads_to and _is_path(part)]
    found = [(_option(row, setting), setting.partition(row.assign)[2]) for setting in _settings(row, value)]
    return (*own, *((path, option.leads_to) for option, path in found if option and option.leads_to and _is_path(path)))


def _option(row: VariableRow, setting: str) -> VariableOption | None:
    name = setting.partition(row.assign)[0]
    return next((each for each in row.options if each.name == name), None)


def _is_path(text: str) -> bool:
    return text.startswith(("/", "./", "../"))


def effects(row: VariableRow, value: str, kinds: Sequence[str]) -> tuple[VariableEffect, ...]:
    """What this value does, of these kinds."""
    return tuple(each for each in row.effects if each.on in kinds and _matches(each.values, value[:_LONGEST]))


def said_by(row: VariableRow, text: str, *, is_set: bool = True) -> bool:
    """Whether the text is what the reader says of an invalid value."""
    return any(_compiled(pattern).search(text[:_LONGEST]) for pattern in (*row.said, *(row.hinted if is_set else ())))


def shown(value: str) -> str:
    """A value in a line of text."""
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def _quoted(text: str) -> str:
    return f"'{shown(text)}'"


def _matches(pattern: str, value: str) -> bool:
    return _compiled(pattern).fullmatch(value) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
