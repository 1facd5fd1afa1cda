"""Carry out in a process what a framework's import does about libraries, step by step."""

from __future__ import annotations

import fnmatch
import os
from typing import TYPE_CHECKING, NamedTuple

from ._links import folder_names
from ._loading import Image, Process, Request, failed
from ._loading_dlopens import asks_of
from ._loading_python import caller_of_ctypes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._env_site import Site
    from ._loading_heads import Identity
    from ._loading_steps import Ask, Preload

ASK_LIMIT = 512


class Event(NamedTuple):
    """One thing that was loaded or failed to load, with all that was asked for on the way."""

    requests: list[Request]
    optional: bool
    by: str | None = None
    """Path of the file whose code asked by name."""
    identity: Identity | None = None
    """Of a part, which file it is."""


class Met(NamedTuple):
    """An import: what it asked for, and how many images there were before it."""

    events: list[Event]
    before: int


def imported(
    process: Process, site: Site, parts: tuple[str, ...], preloads: tuple[Preload, ...], *, first: bool
) -> Met:
    """Load compiled files in the order in which an import does; ``first``: with what precedes all of them."""
    script = _Script(process, site, preloads)
    before = len(process.images)
    if first:
        script.preload(None)
    for path in parts:
        script.part(path)
    return Met([event for event in script.events if not _came_with_another(process, event)], before)


def _came_with_another(process: Process, event: Event) -> bool:
    """Whether it failed by itself, but was loaded as a dependency: by the RPATH of the one that needs it."""
    return event.identity is not None and failed(event.requests) and process.holds(event.identity)


def called(process: Process, site: Site, asks: tuple[Ask, ...], parts: tuple[str, ...], met: Met) -> list[Event]:
    """What code asks for once all is imported: the framework's, then that of each library that was loaded on the way.

    What a library asks for is optional where the library itself is.
    """
    script = _Script(process, site, ())
    for ask in asks:
        script.ask(ask, parts)
    required = {
        id(request.image) for event in (*met.events, *script.events) if not event.optional for request in event.requests
    }
    done = met.before
    while done < len(process.images) and len(script.events) < ASK_LIMIT:
        image = process.images[done]
        done += 1
        for ask in asks_of(process, image, site):
            needed = id(image) in required and not ask.optional
            event = script.ask(ask._replace(optional=not needed), parts)
            if event and needed:
                required.update(id(request.image) for request in event.requests)
    return script.events


class _Script:
    def __init__(self, process: Process, site: Site, preloads: tuple[Preload, ...]) -> None:
        self.process = process
        self.site = site
        self.events: list[Event] = []
        self._preloads = preloads

    def part(self, path: str) -> None:
        """Load one compiled file, and do what follows upon that, or upon its failure."""
        name = os.path.basename(path)
        requests = self.process.open(path)
        if failed(requests) and self.preload(name, after_failure=True):
            requests = self.process.open(path)
        image = requests[0].image
        self.events.append(Event(requests, optional=False, identity=image.head.identity if image else None))
        self.preload(name)

    def preload(self, after: str | None, *, after_failure: bool = False) -> bool:
        """Do the preloads that stand here: those for a failure, or all others. Returns whether there were any."""
        here = [one for one in self._preloads if one.after == after and (one.when == "failed") == after_failure]
        for preload in here:
            attempts = list(self._preloaded(preload))
            self.events += [Event(requests, optional=True) for requests in attempts]
            if preload.required and self._applies(preload) and not any(not failed(one) for one in attempts):
                break
        return bool(here)

    def _applies(self, preload: Preload) -> bool:
        """Whether its condition holds; a memory map names files without links."""
        if preload.when != "mapped":
            return True
        paths = (self.process.search.real(image.path) for image in self.process.images)
        return any(preload.mapped in path for path in paths)

    def _preloaded(self, preload: Preload) -> Iterator[list[Request]]:
        process = self.process
        if not self._applies(preload) or self._is_there(preload):
            return
        for path in self._places(preload):
            by_name = "/" not in path
            requests = process.open(path, caller_of_ctypes(process, self.site) if by_name else None, "preloaded")
            yield requests
            if not preload.every and not (by_name and failed(requests)):
                return

    def _is_there(self, preload: Preload) -> bool:
        """Whether nothing is left to be done, where that is a question."""
        asked = preload.unless_loaded or preload.unless_found
        if asked and any(self.process.loaded(name) for name in preload.names):
            return True
        return preload.unless_found and any(self._would_find(name) for name in preload.names)

    def _would_find(self, name: str) -> bool:
        process = self.process.copy()
        return not failed(process.open(name, caller_of_ctypes(process, self.site)))

    def _places(self, preload: Preload) -> Iterator[str]:
        """The files that match, and the names to be left to the loader, in the order of the code."""
        for top in self.site.folders:
            for folder in preload.folders:
                if folder and not folder.startswith("/"):
                    yield from self._matching(f"{top}/{folder}", preload.names)
        for folder in preload.folders:
            if not folder:
                yield from preload.names
            elif folder.startswith("/"):
                yield from self._matching(folder, preload.names)

    def _matching(self, folder: str, patterns: tuple[str, ...]) -> Iterator[str]:
        names = folder_names(self.site.request, folder)[0]
        for pattern in patterns:
            yield from (f"{folder}/{name}" for name in fnmatch.filter(names, pattern))

    def ask(self, ask: Ask, parts: tuple[str, ...]) -> Event | None:
        """What code loads by name; a file that was never loaded asks for nothing."""
        caller = self._image(ask.by) if ask.by else caller_of_ctypes(self.process, self.site)
        if ask.by and caller is None:
            return None
        tried: list[list[Request]] = []
        for name in ask.names:
            tried.append(self.process.open(name, caller))
            if not failed(tried[-1]):
                break
        by = caller.path if ask.by and caller else (parts[0] if parts else None)
        self.events.append(Event(_telling(tried), optional=ask.optional, by=by))
        return self.events[-1]

    def _image(self, name: str) -> Image | None:
        known = self.process.loaded(name)
        if known is not None:
            return known
        return next((image for image in self.process.images if os.path.basename(image.path) == name), None)


def _telling(tried: list[list[Request]]) -> list[Request]:
    """The attempt that succeeded; else one that found a file; else that for the shortest name."""
    if not failed(tried[-1]):
        return tried[-1]
    return min(tried, key=lambda requests: (-len(requests), len(requests[0].name)))
