"""What must be there: a value without its None."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """The value; a test in which there is none fails."""
    assert value is not None
    return value
