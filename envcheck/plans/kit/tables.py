"""Untyped tables of TOML, YAML and JSON: fields by type, and the lines on which entries begin.

A field of another type than its reader expects raises UnreadError: what it would install is not known.
"""

from __future__ import annotations

from typing import Any, TypeVar

from envcheck.plans.kit.sheet import Sheet, UnreadError
from envcheck.text.toml import Path

T = TypeVar("T")

_WRONG = "a value has another type than this format has there"


def entries(sheet: Sheet, document: dict[str, Any], key: str) -> list[tuple[dict[str, Any], int | None]]:
    """The tables of ``[[key]]``, and the line of each where the lines can be told."""
    found = tables_of(document, key)
    lines = [number for number, text in enumerate(sheet.text.split("\n"), start=1) if text.strip() == f"[[{key}]]"]
    places: list[int | None] = [*lines] if len(lines) == len(found) else [None] * len(found)
    return list(zip(found, places, strict=True))


def text_of(table: dict[str, Any], key: str) -> str:
    """A text; empty where it is absent."""
    return _typed(table, key, str)


def texts_of(table: dict[str, Any], key: str) -> list[str]:
    """The texts of a list."""
    return _all_typed(table, key, str)


def tables_of(table: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The tables of a list."""
    return _all_typed(table, key, dict)


def table_of(table: dict[str, Any], key: str) -> dict[str, Any]:
    """A table; empty where it is absent."""
    return _typed(table, key, dict)


def table_at(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The table at a path; empty where it is absent."""
    for step in path:
        document = table_of(document, str(step))
    return document


def _typed(table: dict[str, Any], key: str, kind: type[T]) -> T:
    value = table.get(key, kind())
    if not isinstance(value, kind):
        raise UnreadError(_WRONG)
    return value


def _all_typed(table: dict[str, Any], key: str, kind: type[T]) -> list[T]:
    found: list[Any] = _typed(table, key, list)
    if not all(isinstance(each, kind) for each in found):
        raise UnreadError(_WRONG)
    return found
