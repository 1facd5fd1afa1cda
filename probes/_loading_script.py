"""Carry out in a process what a framework's import does about libraries, step by step."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._links import folder_names
from ._loading import Image, Process, Request, failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._env_site import Site
    from ._loading_steps import Ask, Preload


@dataclass(frozen=True)
class Event:
    """One thing that was loaded or failed to load, with all that was asked for on the way."""

    requests: list[Request]
    optional: bool
    own: bool = True
    """Whether it is of the framework itself, not of the one that it extends."""
    by: str | None = None
    """Path of the file whose code asked by name."""


def carried_out(
    process: Process,
    site: Site,
    parts: tuple[str, ...],
    preloads: tuple[Preload, ...],
    asks: tuple[Ask, ...],
    extends: tuple[str, ...],
) -> list[Event]:
    """Load everything in the order in which an import would."""
    script = _Script(process, site, preloads)
    script.preload(None, own=not extends)
    for path in extends:
        script.part(path, own=False)
    for path in parts:
        script.part(path, own=True)
    for ask in asks:
        script.ask(ask, parts)
    return script.events


class _Script:
    def __init__(self, process: Process, site: Site, preloads: tuple[Preload, ...]) -> None:
        self.process = process
        self.site = site
        self.events: list[Event] = []
        self._preloads = preloads

    def part(self, path: str, *, own: bool) -> None:
        name = os.path.basename(path)
        requests = self.process.open(path)
        if failed(requests) and self.preload(name, own=own, when="failed"):
            requests = self.process.open(path)
        self.events.append(Event(requests, optional=False, own=own))
        self.preload(name, own=own)

    def preload(self, after: str | None, *, own: bool, when: str | None = None) -> bool:
        """Do the preloads that stand here: those for a failure, or all others. Returns whether there were any."""
        here = [one for one in self._preloads if one.after == after and (one.when == "failed") == (when == "failed")]
        for preload in here:
            for requests in self._preloaded(preload):
                self.events.append(Event(requests, optional=True, own=own, by=None))
        return bool(here)

    def _preloaded(self, preload: Preload) -> Iterator[list[Request]]:
        loaded = self.process.images
        if preload.when == "mapped" and not any(preload.mapped in image.path for image in loaded):
            return
        if preload.unless_loaded and any(self.process.loaded(name) for name in preload.names):
            return
        for path in self._places(preload):
            requests = self.process.open(path, self._caller(), "preloaded")
            yield requests
            if not preload.every and not (preload.folders and "/" not in path and failed(requests)):
                return

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

    def ask(self, ask: Ask, parts: tuple[str, ...]) -> None:
        caller = self._image(ask.by) if ask.by else self._caller()
        if ask.by and caller is None:
            return
        tried: list[list[Request]] = []
        for name in ask.names:
            tried.append(self.process.open(name, caller))
            if not failed(tried[-1]):
                break
        by = caller.path if ask.by and caller else (parts[0] if parts else None)
        taken = tried[-1] if not failed(tried[-1]) else max(tried, key=len)
        self.events.append(Event(taken, optional=ask.optional, by=by))

    def _caller(self) -> Image | None:
        return None

    def _image(self, name: str) -> Image | None:
        known = self.process.loaded(name)
        if known is not None:
            return known
        return next((image for image in self.process.images if os.path.basename(image.path) == name), None)
