"""Shared by importers: ranks, the error for unreadable pieces, and common records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.snapshot import Distribution, Environment, Framework, Listing, Snapshot
from envcheck.snapshot.merge import merge

# Ranks, and the error for a piece that cannot be read.


class Rank(IntEnum):
    """Precedence where two pieces of a paste contradict each other: the lower rank counts."""

    OUTPUT = 0
    """Output of a tool about the machine."""
    MESSAGE = 1
    """An error message of a program."""
    PROSE = 2
    """Prose."""
    MENTION = 3
    """Something that a line of any form mentions."""


class Unreadable(Exception):  # noqa: N818 - it names a state of the text, as in the sentence it carries
    """A recognised piece could not be read completely; ``partial`` has what was read."""

    def __init__(self, reason: str, partial: Snapshot | None = None) -> None:
        super().__init__(reason)
        self.partial = partial or Snapshot()


# Records that several importers write.


def environment(
    *,
    python: str | None = None,
    distributions: tuple[Distribution, ...] | None = None,
    frameworks: tuple[Framework, ...] = (),
) -> Environment:
    """The Python environment of a text; a text about several is read as one."""
    return Environment(
        source=SOURCE,
        key=SOURCE,
        why=SOURCE,
        judged=True,
        python=python,
        distributions=distributions or None,
        frameworks=Listing(items=frameworks) if frameworks else None,
    )


_MOST_STATEMENTS = 300
"""Most facts from single lines; no real text has more, and merging them takes time."""


def joined(statements: Iterable[Snapshot]) -> Snapshot:
    """Merge the facts of single lines; each counts once, and only the first ones where there are too many."""
    seen: list[Snapshot] = []
    for statement in statements:
        if statement not in seen:
            seen.append(statement)
        if len(seen) == _MOST_STATEMENTS:
            break
    return merge(seen)


def each_line(paste: Paste, of_line: Callable[[str], Snapshot | None]) -> Snapshot:
    """The facts that single lines of ``paste`` state."""
    return joined(filter(None, map(of_line, paste.statements)))


def with_environment(found: Environment) -> Snapshot:
    """A Snapshot with only this environment."""
    return Snapshot(environments=Listing(items=(found,)))
