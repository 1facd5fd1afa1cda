"""Read the values of options. Each raises UsageError for a text that is none.

What reads components and quantities imports what it needs when it is called.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any

from envcheck.errors import UsageError
from envcheck.text.wrap import did_you_mean

if TYPE_CHECKING:
    from envcheck.model.checks import Scope
    from envcheck.model.components import Component

SCOPES: tuple[Scope, ...] = ("node", "container", "env")


def path(text: str) -> str:
    """A path. An empty one comes from an unset variable in a script, and would mean something else."""
    if not text:
        raise UsageError("an empty path")
    return text


def number(what: str, least: int, most: int) -> Callable[[str], int]:
    """What reads a number from ``least`` to ``most``."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        if not (digits and least <= int(text) <= most):
            raise UsageError(f"{text!r} is not {what} from {least} to {most}")
        return int(text)

    return read


def seconds(text: str) -> float:
    found = 0.0
    with suppress(ValueError):
        found = float(text)
    if not 0 < found < float("inf"):
        raise UsageError(f"{text!r} is not a number of seconds above 0")
    return found


def day(text: str) -> str:
    """A day, as it was written."""
    with suppress(ValueError):
        if date.fromisoformat(text).isoformat() == text:
            return text
    raise UsageError(f"{text!r} is not a day such as 2026-11-30")


def indices(text: str) -> tuple[int, ...]:
    """``0,2``: GPUs by nvidia-smi's numbers."""
    try:
        return tuple(number("", 0, 9999)(part.strip()) for part in text.split(","))
    except UsageError:
        raise UsageError(f"{text!r} is not a list of GPU indices such as 0,2") from None


def scopes(text: str) -> frozenset[str]:
    """``node,env``."""
    names = frozenset(name.strip() for name in text.split(","))
    for wrong in sorted(names - set(SCOPES)):
        raise UsageError(f"{wrong!r} is not a scope{did_you_mean(wrong, SCOPES)}")
    return names


def assumptions(text: str) -> tuple[Component, ...]:
    """Components that can be assumed: ``gpu==H100,driver==550.54.14``."""
    from envcheck.model.components import parse_components
    from envcheck.model.snapshot import Snapshot
    from envcheck.pipeline.assume import assume

    found = parse_components(text)
    assume(Snapshot(), found)
    return found


def requirements(text: str) -> tuple[Component, ...]:
    """Components that can be required: ``torch>=2.4,driver>=550``."""
    from envcheck.model.components import parse_components
    from envcheck.pipeline.require import validate

    found = parse_components(text)
    validate(found)
    return found


def quantities(text: str) -> tuple[str, ...]:
    """``gemm,device-memory``: the names of all that these words select."""
    from envcheck.knowledge.performance.quantities import selected

    return selected(word.strip() for word in text.split(","))


def flattened(values: Iterable[Any]) -> list[Any]:
    """The values of a repeatable option; those that one text was read as stand in a tuple."""
    return [part for value in values for part in (value if type(value) is tuple else (value,))]


READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("FILE", "REPORT", "DIR", "PATH", "PLACE"), path),
    "S": seconds,
    "DATE": day,
}
"""What reads a value, by what help calls it."""
