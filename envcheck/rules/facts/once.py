"""Work that many subjects of one report share is done once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the result for the last arguments, which are compared by identity: hashing a Snapshot costs more."""
    kept: list[tuple[tuple[object, ...], T]] = []

    @wraps(function)
    def first(*arguments: P.args, **named: P.kwargs) -> T:
        known = kept[-1] if kept else None
        if known is not None and not named and [*map(id, known[0])] == [*map(id, arguments)]:
            return known[1]
        result = function(*arguments, **named)
        if not named:
            kept[:] = [(arguments, result)]
        return result

    return first
