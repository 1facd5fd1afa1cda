"""What importers share: how much their word counts, how they report what they could not read, and common records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.snapshot import Distribution, Environment, Framework, Listing, Snapshot
from envcheck.snapshot.merge import merge

# What importers share: how much their word counts, and how they say that a piece could not be read.


class Rank(IntEnum):
    """Whose word counts where two pieces of a paste say different things: the lower one's."""

    OUTPUT = 0
    """What a tool prints about the machine."""
    MESSAGE = 1
    """What a program says when it fails."""
    PROSE = 2
    """What people write in their own words."""


class Unreadable(Exception):  # noqa: N818 - it names a state of the text, as in the sentence it carries
    """A piece was recognised, and not all of it could be read; ``partial`` is what could."""

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
    """The Python environment that a text speaks of; a text that speaks of several is read as one."""
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
"""A text that states more facts than this, line by line, is no machine's; merging them takes time."""


def joined(statements: Iterable[Snapshot]) -> Snapshot:
    """What the lines of a text state, one by one; each statement counts once, the first ones where they are many."""
    seen: list[Snapshot] = []
    for statement in statements:
        if statement not in seen:
            seen.append(statement)
        if len(seen) == _MOST_STATEMENTS:
            break
    return merge(seen)


def any_line(paste: Paste, of_line: Callable[[str], Snapshot | None]) -> bool:
    """Whether a line of ``paste`` states something by itself."""
    return any(map(of_line, paste.statements))


def each_line(paste: Paste, of_line: Callable[[str], Snapshot | None]) -> Snapshot:
    """What the lines of ``paste`` state, each by itself."""
    return joined(filter(None, map(of_line, paste.statements)))


def with_environment(found: Environment) -> Snapshot:
    """A Snapshot that knows of this environment only."""
    return Snapshot(environments=Listing(items=(found,)))
