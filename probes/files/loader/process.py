"""The files that the dynamic loader would map into one process, in the order of the requests.

As in ld.so(8), the System V gABI (chapter 5) and glibc's loader: a name is first compared with loaded libraries (by
requested names and DT_SONAME), then searched along RPATH, LD_LIBRARY_PATH, RUNPATH, the cache and the default folders;
dependencies are loaded breadth first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..elf.info import ElfInfo, Identity
    from .setup import LoaderSystem

IMAGE_LIMIT = 4096  # Most libraries of one process


class LoadedImage:
    """A loaded file.

    ``path`` is as the loader found it, with links: ``$ORIGIN`` is its folder. ``loader`` is the image that asked for it
    first; None: it is the program, or code gave its path. ``names`` is what it answers to, beside its soname.
    """

    __slots__ = ("found_by", "head", "loader", "names", "path")

    def __init__(self, path: str, head: ElfInfo, loader: LoadedImage | None, found_by: str) -> None:
        self.path = path
        self.head = head
        self.loader = loader
        self.found_by = found_by
        self.names: set[str] = set()


class LoadRequest(NamedTuple):
    """A request of an image (None: code) for a name, and its result."""

    name: str
    by: LoadedImage | None
    image: LoadedImage | None  # None if nothing was found, or the file was refused
    refused: tuple[str, str] | None = None  # The path of the refused file, and the reason
    lacks: tuple[str, ...] = ()  # The required symbol versions that the image does not define


class LoaderProcess:
    """A process of one program; ``open`` does what ``dlopen`` does and returns all requests."""

    def __init__(self, system: LoaderSystem, program: LoadedImage | None) -> None:
        """Start the program: load LD_PRELOAD and its dependencies."""
        self.system = system
        self.search = LibrarySearch(system, program)
        self.images: list[LoadedImage] = []
        self.complete = system.problem is None
        self._by_name: dict[str, LoadedImage] = {}
        self._by_identity: dict[Identity, LoadedImage] = {}
        self._settled: dict[LoadedImage, list[LoadRequest]] = {}
        """The dependencies of images that were all found; reset when images are unloaded."""
        if program is not None:
            self._add(program, "")
            if self.system.loader:
                self._map(self.system.loader, None)
            asked = [self._map(name, program, "LD_PRELOAD") for name in self.system.preloaded]
            self._close([program, *(one.image for one in asked if one.image)])

    def copy(self) -> LoaderProcess:
        """A copy of the process that can be continued separately."""
        other = copy(self)
        other.search = self.search.for_new_process()
        other.images = list(self.images)
        other._by_name, other._by_identity = dict(self._by_name), dict(self._by_identity)  # noqa: SLF001  its own class
        other._settled = dict(self._settled)  # noqa: SLF001
        return other

    def loaded(self, name: str) -> LoadedImage | None:
        """The loaded image that a request for ``name`` gets without a search."""
        return self._by_name.get(name)

    def holds(self, identity: Identity) -> bool:
        return identity in self._by_identity

    def open(self, name: str, caller: LoadedImage | None = None, found_by: str | None = None) -> list[LoadRequest]:
        """Load a file by path, or by name as ``caller`` would; the first returned request is this one.

        If a dependency is missing or refused, nothing of it stays loaded: see ``failed``.
        """
        before = len(self.images)
        first = self._map(name, caller, found_by, called=True)
        requests = [first]
        if first.image is not None and len(self.images) > before:
            requests += self._close([first.image])
        if failed(requests):
            gone = set(map(id, self.images[before:]))
            self._settled.clear()
            self.images = self.images[:before]
            self._by_name = {name: image for name, image in self._by_name.items() if id(image) not in gone}
            self._by_identity = {key: image for key, image in self._by_identity.items() if id(image) not in gone}
        return requests

    def _close(self, first: list[LoadedImage]) -> list[LoadRequest]:
        """Load the dependencies of these images, breadth first."""
        queue = list(dict.fromkeys(first))
        queued = set(map(id, queue))
        requests: list[LoadRequest] = []
        for image in queue:
            needs = self._settled.get(image)
            if needs is None:
                needs = [self._map(name, image) for name in image.head.needed]
                if all(request.image for request in needs):
                    self._settled[image] = needs
            requests += needs
            for request in needs:
                if request.image is not None and id(request.image) not in queued:
                    queued.add(id(request.image))
                    queue.append(request.image)
        return requests

    def _map(
        self, name: str, loader: LoadedImage | None, found_by: str | None = None, *, called: bool = False
    ) -> LoadRequest:
        """Map a library. ``called``: ``loader`` calls ``dlopen``, where its RPATH counts, and is not inherited."""
        known = self._by_name.get(name if "$" not in name else self.search.expanded(name, loader))
        if known is not None:
            return LoadRequest(name, loader, known, None, () if called else _lacks(name, loader, known))
        if len(self.images) >= IMAGE_LIMIT:
            self.complete = False
            return LoadRequest(name, loader, None)
        found = self.search.first(name, loader)
        self.complete = self.complete and found.certain
        if found.head is None or found.refused:
            return LoadRequest(name, loader, None, (found.path, found.refused) if found.refused else None)
        image = self._by_identity.get(found.head.identity)
        if image is None:
            image = LoadedImage(found.path, found.head, None if called else loader, found_by or found.by)
            self._add(image, name)
            self.complete = self.complete and found.head.problem is None
        else:
            image.names.add(name)
            self._by_name.setdefault(name, image)
        return LoadRequest(name, loader, image, None, () if called else _lacks(name, loader, image))

    def _add(self, image: LoadedImage, name: str) -> None:
        image.names |= {name, image.path}
        self.images.append(image)
        self._by_identity[image.head.identity] = image
        for known in (*image.names, image.head.soname):
            if known:
                self._by_name.setdefault(known, image)


def failed(requests: list[LoadRequest]) -> bool:
    """Whether ``dlopen`` would report an error for these requests."""
    return any(request.image is None or request.lacks for request in requests)


def _lacks(name: str, loader: LoadedImage | None, image: LoadedImage) -> tuple[str, ...]:
    needs = loader.head.version_needs.get(name) if loader else None
    if not needs:
        return ()
    offers = image.head.version_definitions
    return tuple(version for version in needs if version not in offers) if offers else ()


# The search of the dynamic loader for one name.


FOLDER_LIMIT = 512  # Most distinct folders of one search path
TRY_LIMIT = 200_000  # Most files that are tried for one process
_CHAIN_LIMIT = 256


class FoundFile(NamedTuple):
    """The result of a search; ``head`` is None if nothing was found."""

    path: str
    head: ElfInfo | None
    by: str
    refused: str | None  # Why the loader refuses the file
    certain: bool  # Whether the search up to here is certain


class LibrarySearch:
    def __init__(self, system: LoaderSystem, program: LoadedImage | None) -> None:
        self._system = system
        self._program = program
        self._cwd = system.tree.cwd
        self._tries = 0
        self._subfolders: dict[str, tuple[str, ...]] = {}
        self._doubtful: set[str] = set()  # Folders whose subfolder for this processor is unknown
        self._paths: dict[tuple[Identity, str], tuple[str, ...]] = {}
        variable = system.tree.variables.get("LD_LIBRARY_PATH", "")
        self._certain = system.problem is None
        self._variable = self._split(variable.replace(";", ":").split(":"), program) if variable else ()
        self._certain_at_first = self._certain

    def for_new_process(self) -> LibrarySearch:
        """Searches for another process, which share the contents of folders but not the doubts."""
        other = copy(self)
        other._tries, other._certain = 0, self._certain_at_first  # noqa: SLF001  its own class
        return other

    def first(self, name: str, loader: LoadedImage | None) -> FoundFile:
        """The file that the loader takes for a name requested by ``loader`` (None: code, with a path)."""
        return next(self.all(name, loader), None) or FoundFile(name, None, "", None, self._certain)

    def all(self, name: str, loader: LoadedImage | None) -> Iterator[FoundFile]:
        """All files that it would take if the ones before did not exist."""
        for by, paths in self._lists(name, loader):
            for path in paths:
                self._tries += 1
                if self._tries > TRY_LIMIT:
                    self._certain = False
                    return
                try:
                    head = self._system.paths.head(path)
                except OSError:
                    break  # the loader then abandons this list of folders
                if head is None:
                    continue
                foreign = self._system.skips(head)
                if by == "absolute" or not foreign:
                    why = f"it is for {head.machine}, {head.bits} bit" if foreign else self._system.why_refused(head)
                    yield FoundFile(path, head, by, why, self._certain)

    def head(self, path: str) -> ElfInfo | None:
        """The ELF facts of the file at a path; None if there is none."""
        try:
            return self._system.paths.head(path)
        except OSError:
            return None

    def real(self, path: str) -> str:
        """The path with its links resolved, or unchanged if it does not exist."""
        return self._system.paths.real(path) or path

    def _lists(self, name: str, loader: LoadedImage | None) -> Iterator[tuple[str, Iterable[str]]]:
        """The name of each list of folders, and the paths to try in it."""
        if "/" in name:
            yield "absolute", (os.path.join(self._cwd, self.expanded(name, loader)),)
            return
        asking = loader or self._program
        if asking is not None and asking.head.runpath is None:
            for image in self._chain(asking):
                yield "rpath", self._files_named(self._run_paths(image, "rpath"), name)
        yield "LD_LIBRARY_PATH", self._files_named(self._variable, name)
        if asking is not None and asking.head.runpath:
            yield "runpath", self._files_named(self._run_paths(asking, "runpath"), name)
        paths, certain = self._system.cached(name)
        self._certain = self._certain and certain
        defaults = tuple(f"{folder}/" for folder in self._system.defaults)
        unusual = asking is not None and asking.head.no_defaults
        yield "cache", [path for path in paths[:1] if not (unusual and path.startswith(defaults))]
        if asking is None or not asking.head.no_defaults:
            yield "default", self._files_named(self._system.defaults, name)

    def _files_named(self, folders: Iterable[str], name: str) -> Iterator[str]:
        for folder in folders:
            if folder not in self._subfolders:
                self._subfolders[folder] = tuple(self._searched(folder))
            self._certain = self._certain and folder not in self._doubtful
            for place in self._subfolders[folder]:
                yield f"{place}/{name}"

    def _chain(self, asking: LoadedImage) -> Iterator[LoadedImage]:
        """The image, its loader, the loader's loader, and so on up to the program."""
        image: LoadedImage | None = asking
        for _ in range(_CHAIN_LIMIT):
            if image is None or image is self._program:
                break
            yield image
            image = image.loader
        else:
            self._certain = False
        if self._program is not None:
            yield self._program

    def _run_paths(self, image: LoadedImage, kind: str) -> tuple[str, ...]:
        key = (image.head.identity, f"{kind} {image.path}")
        if key not in self._paths:
            entries = image.head.rpath if kind == "rpath" else image.head.runpath or ()
            self._paths[key] = self._split(entries, image)
        return self._paths[key]

    def _split(self, entries: list[str] | tuple[str, ...], image: LoadedImage | None) -> tuple[str, ...]:
        distinct = dict.fromkeys(entries)
        if len(distinct) > FOLDER_LIMIT:
            self._certain = False
        folders: dict[str, None] = {}
        for entry in islice(distinct, FOLDER_LIMIT):
            folders[os.path.join(self._cwd, self.expanded(entry, image)).rstrip("/")] = None
        return tuple(folders)

    def expanded(self, text: str, image: LoadedImage | None) -> str:
        """A name or folder with ``$ORIGIN``, ``$LIB`` and ``$PLATFORM`` replaced, for this image."""
        if "$" not in text:
            return text
        origin = os.path.dirname(image.path) if image else ""
        values = {"ORIGIN": origin, "LIB": self._system.lib, "PLATFORM": self._system.platform}
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return text

    def _searched(self, folder: str) -> Iterator[str]:
        tree, system = self._system.tree, self._system
        inside = system.paths.folder(folder)
        if inside is None or not tree.is_folder(inside):
            return
        if tree.is_folder(f"{inside}/glibc-hwcaps"):
            if not system.knows_processor:
                self._doubtful.add(folder)
            yield from (f"{folder}/glibc-hwcaps/{level}" for level in system.levels)
        if any(tree.is_folder(f"{inside}/{name}") for name in system.legacy if "/" not in name):
            yield from (f"{folder}/{name}" for name in system.legacy)
        yield folder
