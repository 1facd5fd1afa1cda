"""Records that several importers write."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from envcheck.importers._paste import SOURCE, Paste
from envcheck.merge import merge
from envcheck.snapshot import Distribution, Environment, Framework, Listing, Snapshot


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
