"""Where the dynamic loader looks for one name, and what it takes."""

from __future__ import annotations

import os
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ._kit import below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._loading import Image
    from ._loading_heads import Head, Identity
    from ._loading_system import System

FOLDER_LIMIT = 512
"""Folders of one search path that are looked at."""
TRY_LIMIT = 200_000
"""Files that are looked for in all, for one process."""
_CHAIN_LIMIT = 256


class Found(NamedTuple):
    """What a search takes; ``head`` is None where it finds nothing."""

    path: str
    head: Head | None
    by: str
    refused: str | None
    """Why the loader gives up at it."""
    certain: bool
    """Whether the whole search is known up to here."""


class Search:
    """The searches of one process."""

    def __init__(self, system: System, program: Image | None) -> None:
        self._system = system
        self._program = program
        self._cwd = system.request.get("cwd", "/")
        self._tries = 0
        self._subfolders: dict[str, tuple[str, ...]] = {}
        self._doubtful: set[str] = set()
        """Folders of which it is not known what this processor would be given."""
        self._paths: dict[tuple[Identity, str], tuple[str, ...]] = {}
        variable = system.variables.get("LD_LIBRARY_PATH", "")
        self._certain = system.problem is None
        self._variable = self._split(variable.replace(";", ":").split(":"), program) if variable else ()
        self._certain_at_first = self._certain

    def renewed(self) -> Search:
        """The same searches for another process: what was found out about folders is shared, doubts are not."""
        other = copy(self)
        other._tries, other._certain = 0, self._certain_at_first  # noqa: SLF001  its own class
        return other

    def first(self, name: str, loader: Image | None) -> Found:
        """What the loader takes for a name that ``loader`` asks for (None: code, which gives a path)."""
        found = next(self.all(name, loader), None)
        return found or Found(name, None, "", None, self._certain)

    def all(self, name: str, loader: Image | None) -> Iterator[Found]:
        """Every file that it would take, were those before it not there."""
        for by, paths in self._lists(name, loader):
            for path in paths:
                self._tries += 1
                if self._tries > TRY_LIMIT:
                    self._certain = False
                    return
                try:
                    head = self._system.paths.head(path)
                except OSError:
                    break  # the loader leaves the whole list of folders for this
                if head is None:
                    continue
                foreign = self._system.passes_over(head)
                if by == "absolute" or not foreign:
                    why = f"it is for {head.machine}, {head.bits} bit" if foreign else self._system.why_refused(head)
                    yield Found(path, head, by, why, self._certain)

    def head(self, path: str) -> Head | None:
        """The head of the file to which a path leads; None where it leads to none."""
        try:
            return self._system.paths.head(path)
        except OSError:
            return None

    def real(self, path: str) -> str:
        """The path with its links resolved, as it is where it leads nowhere."""
        return self._system.paths.real(path) or path

    def _lists(self, name: str, loader: Image | None) -> Iterator[tuple[str, Iterable[str]]]:
        """How a list of places is called, and the paths to be tried in it."""
        if "/" in name:
            yield "absolute", (os.path.join(self._cwd, self.expanded(name, loader)),)
            return
        asking = loader or self._program
        for by, folders in self._folders(asking):
            yield by, self._in(folders, name)
        yield "cache", self._cached(name, asking)
        if asking is None or not asking.head.no_defaults:
            yield "default", self._in(self._system.defaults, name)

    def _in(self, folders: Iterable[str], name: str) -> Iterator[str]:
        for folder in folders:
            for place in self._with_subfolders(folder):
                yield f"{place}/{name}"

    def _folders(self, asking: Image | None) -> Iterator[tuple[str, tuple[str, ...]]]:
        if asking is not None and asking.head.runpath is None:
            for image in self._chain(asking):
                yield "rpath", self._of(image, "rpath")
        yield "LD_LIBRARY_PATH", self._variable
        if asking is not None and asking.head.runpath:
            yield "runpath", self._of(asking, "runpath")

    def _chain(self, asking: Image) -> Iterator[Image]:
        """It, who loaded it, who loaded that, and at last the program."""
        image: Image | None = asking
        for _ in range(_CHAIN_LIMIT):
            if image is None or image is self._program:
                break
            yield image
            image = image.loader
        else:
            self._certain = False
        if self._program is not None:
            yield self._program

    def _cached(self, name: str, asking: Image | None) -> list[str]:
        paths, certain = self._system.cached(name)
        self._certain = self._certain and certain
        if asking is not None and asking.head.no_defaults:
            defaults = tuple(f"{folder}/" for folder in self._system.defaults)
            return [path for path in paths[:1] if not path.startswith(defaults)]
        return paths[:1]

    def _of(self, image: Image, kind: str) -> tuple[str, ...]:
        key = (image.head.identity, f"{kind} {image.path}")
        if key not in self._paths:
            entries = image.head.rpath if kind == "rpath" else image.head.runpath or ()
            self._paths[key] = self._split(entries, image)
        return self._paths[key]

    def _split(self, entries: list[str] | tuple[str, ...], image: Image | None) -> tuple[str, ...]:
        if len(entries) > FOLDER_LIMIT:
            self._certain = False
        folders: dict[str, None] = {}
        for entry in islice(entries, FOLDER_LIMIT):
            folders[os.path.join(self._cwd, self.expanded(entry, image)).rstrip("/")] = None
        return tuple(folders)

    def expanded(self, text: str, image: Image | None) -> str:
        """A name or folder with ``$ORIGIN``, ``$LIB`` and ``$PLATFORM`` replaced, as they stand for this image."""
        if "$" not in text:
            return text
        origin = os.path.dirname(image.path) if image else ""
        values = {"ORIGIN": origin, "LIB": self._system.lib, "PLATFORM": self._system.platform}
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return text

    def _with_subfolders(self, folder: str) -> tuple[str, ...]:
        """The subfolders for this processor that are there, and the folder itself; none where it is not there."""
        if folder not in self._subfolders:
            self._subfolders[folder] = tuple(self._there(folder))
        self._certain = self._certain and folder not in self._doubtful
        return self._subfolders[folder]

    def _there(self, folder: str) -> Iterator[str]:
        request, system = self._system.request, self._system
        inside = system.paths.folder(folder)
        if inside is None or not os.path.isdir(below(request, inside)):
            return
        if os.path.isdir(below(request, f"{inside}/glibc-hwcaps")):
            if not system.knows_processor:
                self._doubtful.add(folder)
            yield from (f"{folder}/glibc-hwcaps/{level}" for level in system.levels)
        if any(os.path.isdir(below(request, f"{inside}/{name}")) for name in system.legacy if "/" not in name):
            yield from (f"{folder}/{name}" for name in system.legacy)
        yield folder
