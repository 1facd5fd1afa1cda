"""Untyped tables of TOML and YAML: fields by type, and the lines on which entries begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envcheck.plans.kit.sheet import Sheet


def entries(sheet: Sheet, document: dict[str, Any], key: str) -> list[tuple[dict[str, Any], int | None]]:
    """The tables of ``[[key]]`` and the line of each, where the lines can be told; raise UsageError
    for anything else.
    """
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise sheet.error(None, f"{key!r} is no list of tables")
    lines = [number for number, text in enumerate(sheet.text.split("\n"), start=1) if text.strip() == f"[[{key}]]"]
    places: list[int | None] = [*lines] if len(lines) == len(found) else [None] * len(found)
    return list(zip(found, places, strict=True))


def text_of(table: dict[str, Any], key: str) -> str:
    """A text; empty where it is absent or of another type."""
    value = table.get(key)
    return value if isinstance(value, str) else ""


def texts_of(table: dict[str, Any], key: str) -> list[str]:
    """The texts of a list."""
    value = table.get(key)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def tables_of(table: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The tables of a list."""
    value = table.get(key)
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def table_of(table: dict[str, Any], key: str) -> dict[str, Any]:
    """A table; empty where it is absent or of another type."""
    value = table.get(key)
    return value if isinstance(value, dict) else {}
