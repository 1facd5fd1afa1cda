"""Read the values of options; argparse turns an ArgumentTypeError into a sentence about the option.

What reads components imports what it needs when it is called.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.model.checks import Scope
    from envcheck.model.components import Component

SCOPES: tuple[Scope, ...] = ("node", "container", "env")
_LONGEST_INDEX = 4
_LONGEST_PORT, _LAST_PORT = 5, 65535


def path(text: str) -> str:
    """A path. An empty one comes from an unset variable in a script, and would mean something else."""
    if not text:
        raise argparse.ArgumentTypeError("an empty path")
    return text


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


def seconds(text: str) -> float:
    number = 0.0
    with suppress(ValueError):
        number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


def port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_PORT and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_LAST_PORT}")
    return int(text)


def indices(text: str) -> tuple[int, ...]:
    """``0,2``: GPUs by nvidia-smi's numbers."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= _LONGEST_INDEX for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of GPU indices such as 0,2")
    return tuple(map(int, parts))


def scopes(text: str) -> frozenset[str]:
    """``node,env``."""
    names = frozenset(name.strip() for name in text.split(","))
    for wrong in sorted(names - set(SCOPES)):
        from envcheck.text.wrap import did_you_mean

        raise argparse.ArgumentTypeError(f"{wrong!r} is not a scope{did_you_mean(wrong, SCOPES)}")
    return names


def components(text: str) -> tuple[Component, ...]:
    """``torch>=2.4,driver>=550``."""
    from envcheck.model.components import parse_components

    try:
        return parse_components(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def assumptions(text: str) -> tuple[Component, ...]:
    """Components that can be assumed; raise UsageError, which names the option, for others."""
    from envcheck.model.snapshot import Snapshot
    from envcheck.pipeline.assume import assume

    found = components(text)
    assume(Snapshot(), found)
    return found


def requirements(text: str) -> tuple[Component, ...]:
    """Components that can be required; raise UsageError, which names the option, for others."""
    from envcheck.pipeline.require import validate

    found = components(text)
    validate(found)
    return found


def quantities(text: str) -> tuple[str, ...]:
    """``gemm,device-memory``: the names of all that these words select."""
    from envcheck.knowledge.performance.quantities import selected

    try:
        return selected(word.strip() for word in text.split(","))
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def several(values: Iterable[Any]) -> list[Any]:
    """The values of a repeatable option; those that one text was read as stand in a tuple."""
    return [part for value in values for part in (value if type(value) is tuple else (value,))]
