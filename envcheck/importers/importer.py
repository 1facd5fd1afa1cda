"""What an importer is: a function of a Paste with a name and a rank; and the records that several importers write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.merge import merge
from envcheck.model.snapshot import AS_STATED, Distribution, Environment, Framework, Library, Listing, Snapshot


class Rank(IntEnum):
    """Precedence where two pieces of a paste contradict each other: the lower rank counts."""

    OUTPUT = 0  # Output of a tool about the machine
    MESSAGE = 1  # An error message of a program
    PROSE = 2  # Prose
    MENTION = 3  # Something that a line of any form mentions


class UnreadablePiece(Exception):  # noqa: N818 - it names a state of the text, as in the sentence it carries
    """A recognised piece could not be read completely; ``partial`` has what was read."""

    def __init__(self, reason: str, partial: Snapshot | None = None) -> None:
        super().__init__(reason)
        self.partial = partial or Snapshot()


Reader = Callable[[Paste], Snapshot]


class Importer(NamedTuple):
    """A reader of one format."""

    name: str
    rank: Rank
    read: Reader  # What the text says; raises UnreadablePiece when a piece breaks off
    recognise: Callable[[Paste], bool] | None  # Whether it is read at all, where an empty Snapshot does not tell


IMPORTERS: list[Importer] = []  # All that were imported, in any order


def importer(name: str, rank: Rank, *, recognise: Callable[[Paste], bool] | None = None) -> Callable[[Reader], Reader]:
    """Make a function of a Paste an importer."""

    def listed(read: Reader) -> Reader:
        IMPORTERS.append(Importer(name, rank, read, recognise))
        return read

    return listed


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


_MOST_STATEMENTS = 300  # Most facts from single lines; no real text has more, and merging them takes time


def joined(statements: Iterable[Snapshot | None]) -> Snapshot:
    """Merge the facts of single lines; each counts once, and only the first ones where there are too many."""
    seen: list[Snapshot] = []
    for statement in statements:
        if statement is not None and statement not in seen:
            seen.append(statement)
        if len(seen) == _MOST_STATEMENTS:
            break
    return merge(seen)


def with_environment(found: Environment) -> Snapshot:
    return Snapshot(environments=Listing(items=(found,)))


def of_framework(name: str, **facts: object) -> Snapshot:
    framework = Framework(source=SOURCE, name=name, **facts)  # type: ignore[arg-type]
    return with_environment(environment(frameworks=(framework,)))


def stated_cuda(version: str, *, told_by: str = "") -> Library:
    """The toolkit of a CUDA version that a text states; ``told_by``: what kind of image has it, if one does."""
    read = {"declared": told_by} if told_by else {}
    path = f"CUDA {version}{AS_STATED}"
    return Library(source=SOURCE, path=path, family="cuda-toolkit", cuda=version, declared=version, read=read)


def stated_cudnn(version: str, *, loaded: bool = False) -> Library:
    """The cuDNN of a version that a text states; ``loaded``: that a program says it loaded."""
    path = f"cuDNN {version}{AS_STATED}"
    return Library(source=SOURCE, path=path, family="cudnn", declared=version, loaded=version if loaded else None)
