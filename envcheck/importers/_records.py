"""Records that several importers write."""

from __future__ import annotations

from envcheck.importers._paste import SOURCE
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


def with_environment(found: Environment) -> Snapshot:
    """A Snapshot that knows of this environment only."""
    return Snapshot(environments=Listing(items=(found,)))
