"""What must be there: a value without its None, what stands in the fields of a record."""

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeVar

Value = TypeVar("Value")
Expected = dict[str, Any]  # What the fields of a record are to say, by their names as ``fields`` takes them


def known(value: Value | None) -> Value:
    """The value; a test in which there is none fails."""
    assert value is not None
    return value


def fields(record: object, names: Iterable[str]) -> dict[str, Any]:
    """What stands in a record, by the names of its fields.

    ``nvidia.loaded`` is a field of a record in it, ``nvidia.source_of.loaded`` tells where that one was read, and
    ``messages.text`` are the texts of all messages.
    """
    return {name: reduce(_field, name.split("."), record) for name in names}


def likened(told: Expected, expected: Expected) -> Expected:
    """What is expected of fields, or what they say instead.

    In an expected text ``…`` stands for anything. An expected set holds some of the words, a list the first items, and
    ``...`` is whatever is not empty.
    """
    return {name: wanted if _agrees(wanted, told[name]) else told[name] for name, wanted in expected.items()}


def _agrees(expected: Any, told: Any) -> bool:
    if isinstance(expected, str) and isinstance(told, str):
        return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), told, re.DOTALL) is not None
    if isinstance(expected, (tuple, list)):
        first = told[: len(expected)] if isinstance(expected, list) else told
        return len(first) == len(expected) and all(map(_agrees, expected, first))
    if isinstance(expected, set):
        return expected <= set(told.split() if isinstance(told, str) else told)
    return bool(told) if expected is ... else bool(told == expected)


def _field(value: Any, name: str) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_field(each, name) for each in value)
    return value(name) if callable(value) else getattr(value, name)
