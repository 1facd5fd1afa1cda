"""Which files the dynamic loader would map into one process, in the order in which the process asks for them.

As ld.so(8), the System V gABI (chapter 5) and glibc's loader have it: a name is first looked for among what is loaded
(by the names it was asked for and by DT_SONAME), then along RPATH, LD_LIBRARY_PATH, RUNPATH, the cache and the default
folders; what a file needs is loaded breadth first.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from ._loading_search import Search

if TYPE_CHECKING:
    from ._loading_heads import Head, Identity
    from ._loading_system import System

IMAGE_LIMIT = 4096
"""No process is meant to hold more libraries."""


class Image:
    """A file in the process.

    ``path`` is as the loader found it, with links: ``$ORIGIN`` is its folder. ``loader`` is the image that asked for it
    first; None: it is the program, or code gave its path. ``names`` is what it answers to, beside its soname.
    """

    __slots__ = ("found_by", "head", "loader", "names", "path")

    def __init__(self, path: str, head: Head, loader: Image | None, found_by: str) -> None:
        self.path = path
        self.head = head
        self.loader = loader
        self.found_by = found_by
        self.names: set[str] = set()


class Request(NamedTuple):
    """That an image (None: code) asked for a name, and what it was given."""

    name: str
    by: Image | None
    image: Image | None
    """None: nothing was found, or what was found is refused."""
    refused: tuple[str, str] | None = None
    """Path of the file at which the loader gave up, and why."""
    lacks: tuple[str, ...] = ()
    """The symbol versions that are asked of the image and that it does not have."""


class Process:
    """A process of one program: ``open`` does what ``dlopen`` does, and says all that was asked for on the way."""

    def __init__(self, system: System, program: Image | None) -> None:
        """Start the program: what LD_PRELOAD names and what it needs is loaded."""
        self.system = system
        self.search = Search(system, program)
        self.images: list[Image] = []
        self.complete = system.problem is None
        self._by_name: dict[str, Image] = {}
        self._by_identity: dict[Identity, Image] = {}
        self._settled: dict[Image, list[Request]] = {}
        """What images need, where all of it was found: that changes only when something is taken back."""
        if program is not None:
            self._start(program)

    def _start(self, program: Image) -> None:
        self._add(program, "")
        if self.system.loader:
            self._map(self.system.loader, None)
        asked = [self._map(name, program, "LD_PRELOAD") for name in self.system.preloaded]
        self._close([program, *(one.image for one in asked if one.image)])

    def copy(self) -> Process:
        """The same process, to be carried on in another way."""
        other = copy(self)
        other.search = self.search.renewed()
        other.images = list(self.images)
        other._by_name, other._by_identity = dict(self._by_name), dict(self._by_identity)  # noqa: SLF001  its own class
        other._settled = dict(self._settled)  # noqa: SLF001
        return other

    def loaded(self, name: str) -> Image | None:
        """What a request for ``name`` would be given without any search."""
        return self._by_name.get(name)

    def holds(self, identity: Identity) -> bool:
        """Whether that file is loaded."""
        return identity in self._by_identity

    def open(self, name: str, caller: Image | None = None, found_by: str | None = None) -> list[Request]:
        """Load a file by its path, or by a name as ``caller`` would; the first request is this one.

        Where something is missing or unfit, nothing of it stays loaded: see ``failed``.
        """
        before = len(self.images)
        first = self._map(name, caller, found_by, called=True)
        requests = [first]
        if first.image is not None and len(self.images) > before:
            requests += self._close([first.image])
        if failed(requests):
            self._unload(before)
        return requests

    def _close(self, first: list[Image]) -> list[Request]:
        """Load what these need, breadth first."""
        queue = list(dict.fromkeys(first))
        met = set(map(id, queue))
        requests: list[Request] = []
        for image in queue:
            needs = self._needs(image)
            requests += needs
            for request in needs:
                if request.image is not None and id(request.image) not in met:
                    met.add(id(request.image))
                    queue.append(request.image)
        return requests

    def _needs(self, image: Image) -> list[Request]:
        """Load what it names itself."""
        known = self._settled.get(image)
        if known is None:
            known = [self._map(name, image) for name in image.head.needed]
            if all(request.image for request in known):
                self._settled[image] = known
        return known

    def _map(self, name: str, loader: Image | None, found_by: str | None = None, *, called: bool = False) -> Request:
        """``called``: ``loader`` only calls ``dlopen``; its RPATH serves this search and is not handed down."""
        known = self._by_name.get(name if "$" not in name else self.search.expanded(name, loader))
        if known is not None:
            return Request(name, loader, known, None, () if called else _lacks(name, loader, known))
        if len(self.images) >= IMAGE_LIMIT:
            self.complete = False
            return Request(name, loader, None)
        found = self.search.first(name, loader)
        self.complete = self.complete and found.certain
        if found.head is None or found.refused:
            return Request(name, loader, None, (found.path, found.refused) if found.refused else None)
        image = self._by_identity.get(found.head.identity)
        if image is None:
            image = Image(found.path, found.head, None if called else loader, found_by or found.by)
            self._add(image, name)
            self.complete = self.complete and found.head.problem is None
        else:
            image.names.add(name)
            self._by_name.setdefault(name, image)
        return Request(name, loader, image, None, () if called else _lacks(name, loader, image))

    def _add(self, image: Image, name: str) -> None:
        image.names |= {name, image.path}
        self.images.append(image)
        self._by_identity[image.head.identity] = image
        for known in (*image.names, image.head.soname):
            if known:
                self._by_name.setdefault(known, image)

    def _unload(self, count: int) -> None:
        """Take back all but the first ``count`` images."""
        gone = set(map(id, self.images[count:]))
        self._settled.clear()
        self.images = self.images[:count]
        self._by_name = {name: image for name, image in self._by_name.items() if id(image) not in gone}
        self._by_identity = {key: image for key, image in self._by_identity.items() if id(image) not in gone}


def failed(requests: list[Request]) -> bool:
    """Whether ``dlopen`` would report an error for what was asked."""
    return any(request.image is None or request.lacks for request in requests)


def _lacks(name: str, loader: Image | None, image: Image) -> tuple[str, ...]:
    needs = loader.head.version_needs.get(name) if loader else None
    if not needs:
        return ()
    offers = image.head.version_definitions
    return tuple(version for version in needs if version not in offers) if offers else ()
