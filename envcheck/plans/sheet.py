"""A file of a plan: its text, bounded, what a reader may ask besides, and the fields of its tables by type.

A field of another type than its reader expects raises UnreadError: what it would install is not known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from packaging.utils import canonicalize_name

from envcheck.bounded import TooLargeError, read_file
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.tables.packages import IndexRow
from envcheck.model.snapshot import Planned
from envcheck.text.toml import Path as KeyPath
from envcheck.text.toml import TomlError, loads

_MOST_BYTES = 16 << 20
_MOST_INCLUDED = 100
_LONGEST_ADDRESS = 200
MOST_ITEMS = 20_000
_EXTRAS = re.compile(
    r"(?P<path>.{0,4000}(?:pyproject\.toml|setup\.(?:py|cfg)|pixi\.toml|(?:uv|poetry|pdm|Pipfile|pixi)\.lock|pylock(?:\.[^./]{1,80})?\.toml"
    r"|(?:Dockerfile|Containerfile)[^/\[]{0,80}|(?<=[._-])(?:docker|contain)erfile|compose(?:[._-][^/\[]{1,80})?\.ya?ml))"
    r"\[(?P<extras>[A-Za-z0-9._, -]{1,400})\]"
)

T = TypeVar("T")


class UnreadError(UsageError):
    """A part of a file is not understood: what it installs is open (``requirement.entry``)."""

    def __init__(self, problem: str, line: int | None = None, file: str = "") -> None:
        super().__init__(f"{file}:{line}: {problem}" if line and file else f"{file}: {problem}" if file else problem)
        self.problem = problem
        self.line = line


class Reader(Protocol):
    """A module that reads one format."""

    NAME: str

    def read(self, sheet: Sheet) -> list[Planned]:
        """What the file would install; raise UnreadError where a part that may install anything is not understood."""


@dataclass(frozen=True)
class Sheet:
    """A file that says what would be installed."""

    file: str  # Its path, as the user or the file that includes it wrote it
    text: str
    matrix: Matrix
    markers: Mapping[str, str]
    """Environment markers of the machine that it is meant for, as far as they are known."""
    included: tuple[str, ...] = ()  # Real paths of the files that led here, and its own
    constraints: list[Planned] = field(default_factory=list)
    """What constraint files allow; shared with the files that it includes."""
    opened: list[str] = field(default_factory=list)
    """Every file that was included, as often as it was; shared with the included files."""
    undecided: set[str] = field(default_factory=set)
    """Sources of the entries whose marker depends on what is not known; shared with the included files."""
    extras: tuple[str, ...] = ()
    """Names of the extras and dependency groups that are asked for too: ``pyproject.toml[cuda,test]``."""
    every: frozenset[str] = frozenset()  # "extra" or "group", where all of these are asked for
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Values for ARG lines of a Dockerfile, in place of their defaults."""
    context: str | None = None
    """The folder that a Dockerfile is built in, seen from its own; None: not stated."""
    groups: bool = True
    """Whether the groups count that uv, Poetry and PDM install unasked; pip installs none."""
    root: str = ""
    """Real path of the folder that included files must lie in: the working directory where the plan lies below it, else
    the repository that it is in, or its own."""
    others: frozenset[str] = frozenset()
    """Names of the files that are plans themselves: what includes one that it cannot find has it read already."""

    @classmethod
    def open(cls, path: str, matrix: Matrix, markers: Mapping[str, str], others: Iterable[str] = ()) -> Sheet:
        """Read the file at ``path``, which extras in brackets may follow; raise UsageError."""
        found = _EXTRAS.fullmatch(path) if path.endswith("]") else None
        place = found["path"] if found else path
        extras = tuple(name.strip() for name in found["extras"].split(",")) if found else ()
        text, real = _text(place, place), os.path.realpath(place)
        names = frozenset(Path(each.partition("[")[0]).name for each in others)
        working, own = os.path.realpath(os.curdir), Path(os.path.realpath(place)).parent
        repository = next((str(folder) for folder in (own, *own.parents) if (folder / ".git").exists()), str(own))
        root = working if own.is_relative_to(working) else repository
        return cls(place, text, matrix, markers, (real,), extras=extras, root=root, others=names)

    def has_beside(self, path: str) -> bool:
        """Whether ``beside`` finds a file at this relative path."""
        place = Path(self.file).parent / path
        return bool(path) and not Path(path).is_absolute() and place.is_file() and self._is_within(place)

    def _is_within(self, place: Path) -> bool:
        return Path(os.path.realpath(place)).is_relative_to(self.root)

    @property
    def contexts(self) -> tuple[str, ...]:
        """Folders, seen from the file's own, that a build may copy files from: that one, and the working directory,
        unless a file states which.
        """
        if self.context is not None:
            return (self.context,)
        above = os.path.relpath(self.root, os.path.realpath(Path(self.file).parent))
        return ("",) if above == "." else ("", above)

    def beside(self, path: str, line: int) -> Sheet:
        """The file that ``line`` of this one includes; raise UsageError."""
        where = f"{self.file}:{line}"
        if "://" in path:
            raise UsageError(f"{where}: includes a file on the network; save it and include the saved file")
        if Path(path).is_absolute():
            raise UsageError(f"{where}: includes a file by an absolute path; use a path relative to this file")
        place = str(Path(self.file).parent / path)
        real = os.path.realpath(place)
        if not self._is_within(Path(place)):
            raise UsageError(
                f"{where}: includes a file outside of {self.root}; start envcheck in a folder that holds both"
            )
        if real in self.included:
            raise UsageError(f"{where}: includes itself; remove the line")
        self.opened.append(real)
        if len(self.opened) > _MOST_INCLUDED:
            raise UsageError(f"{where}: more than {_MOST_INCLUDED} files are included")
        return replace(self, file=place, text=_text(place, where), included=(*self.included, real))

    def error(self, line: int | None, text: str) -> UsageError:
        """The error for a file that is no plan, or may not be read."""
        return UsageError(f"{self.file}:{line}: {text}" if line else f"{self.file}: {text}")

    def unread(self, line: int | None, problem: str) -> UnreadError:
        """The error for a part of this file that is not understood."""
        return UnreadError(problem, line, self.file)

    def bounded(self, items: Iterable[T]) -> list[T]:
        """The items as a list; raise UsageError where there are too many."""
        found: list[T] = []
        for item in items:
            found.append(item)
            if len(found) > MOST_ITEMS:
                raise self.error(None, f"more than {MOST_ITEMS:,} packages")
        return found

    def asking(self, **known: Iterable[str]) -> Sheet:
        """The sheet that names all that it asks for, of what is ``known`` by kind; raise UsageError for other names."""
        named = {kind: [*names] for kind, names in known.items()}
        there = {canonicalize_name(name) for names in named.values() for name in names}
        if wrong := [name for name in self.extras if canonicalize_name(name) not in there]:
            raise self.error(None, f"it has no extra or dependency group {wrong[0]!r}")
        every = (name for kind in sorted(self.every & named.keys()) for name in named[kind])
        return replace(self, extras=tuple(dict.fromkeys((*self.extras, *every))))

    def toml(self) -> dict[str, Any]:
        """The file as TOML; raise UsageError."""
        try:
            return loads(self.text)
        except TomlError as error:
            raise self.error(error.line, str(error).partition(":")[0]) from None

    def build_of(self, address: str | None) -> str | None:
        """Local tag of the builds of PyTorch that an index serves, empty for PyPI's own; None: not known."""
        row, found = self._index(address) if address is not None else (None, None)
        if row is None or found is None:
            return "" if address is None else None
        return None if row.jetsons else found.groupdict().get("build", "")

    def has_others(self, address: str) -> bool:
        """Whether an index may have builds of other packages than PyTorch that PyPI does not have."""
        row, _ = self._index(address)
        return row is None or row.others or row.jetsons

    def _index(self, address: str) -> tuple[IndexRow | None, re.Match[str] | None]:
        bare = address.rstrip("/") if len(address) <= _LONGEST_ADDRESS else ""
        found = ((row, re.fullmatch(row.address, bare)) for row in self.matrix.indexes)
        return next((each for each in found if each[1]), (None, None))


def _text(path: str, where: str) -> str:
    place = f"{where}: " if where != path else ""
    try:
        content = read_file(path, _MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{place}cannot read {path}: {error.strerror or error}") from None
    except (TooLargeError, ValueError) as error:
        raise UsageError(f"{place}cannot read {path}: {error}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: this is no UTF-8 text; save it as UTF-8") from None
    if "\0" in text:
        raise UsageError(f"{path}: this is no text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


_WRONG = "a value has another type than this format has there"


def entries(sheet: Sheet, document: dict[str, Any], key: str) -> list[tuple[dict[str, Any], int | None]]:
    """The tables of ``[[key]]``, and the line of each where the lines can be told; raise UsageError where none is."""
    found = tables_of(document, key)
    if not found:
        raise sheet.error(None, "it locks no package")
    lines = [number for number, text in enumerate(sheet.text.split("\n"), start=1) if text.strip() == f"[[{key}]]"]
    places: list[int | None] = [*lines] if len(lines) == len(found) else [None] * len(found)
    return list(zip(found, places, strict=True))


def text_of(table: dict[str, Any], key: str) -> str:
    """A text; empty where it is absent."""
    return _typed(table, key, str)


def texts_of(table: dict[str, Any], key: str) -> list[str]:
    """The texts of a list."""
    return _all_typed(table, key, str)


def tables_of(table: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The tables of a list."""
    return _all_typed(table, key, dict)


def table_of(table: dict[str, Any], key: str) -> dict[str, Any]:
    """A table; empty where it is absent."""
    return _typed(table, key, dict)


def table_at(document: dict[str, Any], path: KeyPath) -> dict[str, Any]:
    """The table at a path; empty where it is absent."""
    for step in path:
        document = table_of(document, str(step))
    return document


def _typed(table: dict[str, Any], key: str, kind: type[T]) -> T:
    value = table.get(key, kind())
    if not isinstance(value, kind):
        raise UnreadError(_WRONG)
    return value


def _all_typed(table: dict[str, Any], key: str, kind: type[T]) -> list[T]:
    found: list[Any] = _typed(table, key, list)
    if not all(isinstance(each, kind) for each in found):
        raise UnreadError(_WRONG)
    return found
