"""Simulate how a framework's import loads libraries: its steps as data, the process before it, and each step."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...common.lazy import lazy_pattern
from ..elf.info import Identity, elf_info
from .process import LoadedImage, LoaderProcess, LoadRequest, failed
from .setup import system_of

if TYPE_CHECKING:
    from ..python.site import Site


class Preload(NamedTuple):
    """A file that the framework's Python code loads itself, so that later requests for its soname get it.

    It goes through the search path's folders, in each through ``folders``, in each through ``names``, and takes the
    first file there is; where there is none, it goes on without.
    """

    names: tuple[str, ...]  # Names of the file; shell patterns are allowed: ``libnvrtc.so.*[0-9]``
    folders: tuple[str, ...] = ("",)
    """Below a folder of the search path: ``nvidia/cudnn/lib``. An absolute one stands for itself. An empty one: the
    loader itself is asked for the name (``ctypes.CDLL("libnccl.so.2")``)."""
    after: str | None = None
    """Name of the file (``libtorch_global_deps.so``), of ``parts`` or ``extends``, after which it happens; None: before
    all of them."""
    when: Literal["always", "failed", "mapped"] = "always"
    """``failed``: only if ``after`` could not be loaded, which is then tried again when all of these are done.
    ``mapped``: only if the path of a loaded file contains ``mapped``."""
    mapped: str = ""
    unless_found: bool = False  # Skipped if one of these names (no patterns) is loaded, or the loader would find it
    required: bool = False
    """Whether the code gives up where there is no such file, or it cannot be loaded: the preloads after it at the same
    place are left out then."""
    every: bool = False  # Whether all matching files are loaded, by ``names`` and then by name, not only the first


class OpenByName(NamedTuple):
    """A library that code loads by name (``dlopen``) after the parts are loaded."""

    names: tuple[str, ...]
    """Alternatives: the first that is found is taken; one with a slash is that file (a plug-in's, which may fail)."""
    by: str | None = None  # Name or path of the requesting file, whose RPATH or RUNPATH applies; None: Python code
    optional: bool = True  # Whether the framework works without it


_MINOR = lazy_pattern(r"/(python|pypy)(\d+\.\d+)t?/(?:site|dist)-packages$")


def started(site: Site) -> LoaderProcess:
    """A shared process of the environment's Python; ``copy`` it before opening anything."""
    return site.once(_started)


def _started(site: Site) -> LoaderProcess:
    tree = site.tree
    # The interpreter; of several in a folder, the one for the version whose packages are searched.
    found = (_MINOR.search(folder) for folder in site.folders if folder.startswith(f"{site.prefix}/"))
    names = (*(f"{match[1]}{match[2]}" for match in found if match), "python3", "python", "pypy3", "pypy")
    path = next((f"{site.prefix}/bin/{name}" for name in names if tree.is_file(f"{site.prefix}/bin/{name}")), None)
    inside = tree.real_path(path) if path else ""
    head = elf_info(tree.place(inside)) if inside else None
    system = system_of(tree, head, head.interpreter if head else None)
    unread = head is None or head.refused or head.problem
    return LoaderProcess(system, None if unread or head is None else LoadedImage(inside, head, None, "absolute"))


def caller_of_ctypes(process: LoaderProcess, site: Site) -> LoadedImage | None:
    """The file that calls ``dlopen`` for ``ctypes.CDLL``; its RPATH or RUNPATH applies."""
    if not process.images:
        return None
    program = process.images[0].path
    library = re.fullmatch(r"python3\.\d+t?", os.path.basename(program))
    inside = f"{os.path.dirname(os.path.dirname(program))}/lib/{library[0] if library else ''}/lib-dynload"
    for name in site.tree.folder_names(inside)[0] if library else ():
        if name.startswith("_ctypes.") and name.endswith(".so"):
            (first, *_) = process.open(f"{inside}/{name}")
            return first.image
    linked = (image for image in process.images if (image.head.soname or "").startswith("libpython"))
    return next(linked, process.images[0])


# Libraries that NVIDIA's libraries load by name when called, which their dynamic section does not list.
#
# Seen with LD_DEBUG and in the libraries' own texts (CUDA 12.8 and 13.0, cuDNN 9.10). cuDNN tries the full version of a
# sub-library first, then shorter ones.


_CUDNN_PARTS = {
    "cudnn": ("graph", "ops", "cnn", "adv"),
    "cudnn_graph": ("heuristic", "engines_precompiled", "engines_runtime_compiled"),
}
_DRIVER = {"cudart": ("libcuda.so.1",), "nccl": ("libcuda.so.1", "libnvidia-ml.so.1")}
_SONAME = lazy_pattern(r"lib(\w+)(?:[-.][0-9a-f]{8})?\.so\.(\d+)")
"""A soname, with the hash that tools add when they copy a library into a wheel."""


def asks_of(process: LoaderProcess, image: LoadedImage, site: Site) -> Iterator[OpenByName]:
    """The requests that a loaded library will make."""
    soname = image.head.soname or os.path.basename(image.path)
    match = _SONAME.match(soname)
    if match is None:
        return
    family, major = match[1], match[2]
    yield from (OpenByName((name,), by=image.path, optional=True) for name in _DRIVER.get(family, ()))
    if family == "nvrtc":
        # Its builtins are those of its own release, known from its file name or folder.
        folder, name = os.path.split(process.search.real(image.path))
        release = re.search(r"\.so\.(\d+\.\d+)\.", name)
        listed = () if release else site.tree.folder_names(folder)[0]
        found = [name for name in listed if re.fullmatch(r"libnvrtc-builtins\.so\.\d+\.\d+", name)]
        builtins = f"libnvrtc-builtins.so.{release[1]}" if release else found[0] if len(found) == 1 else None
        if builtins:
            yield OpenByName((builtins,), by=image.path, optional=False)
    parts = _CUDNN_PARTS.get(family, ())
    if family == "cudnn" and major == "8":
        parts = ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train")
    if not parts:
        return
    # The version in the file's name, else that of the wheel with this folder.
    real = process.search.real(image.path)
    numbered = re.search(r"\.so\.(\d+(?:\.\d+)*)$", real)
    version = numbered[1] if numbered and "." in numbered[1] else ""
    if not version and any(real.startswith(f"{process.search.real(folder)}/") for folder in site.folders):
        wheels = [item["version"] for item in site.distributions if item["name"].startswith("nvidia-cudnn-cu")]
        version = str(wheels[0]) if len(wheels) == 1 else ""
    numbers = version.split(".")[:3] if version.partition(".")[0] == major else [major]
    shorter = [".".join(numbers[:count]) for count in range(len(numbers), 0, -1)]  # ``9.10.2``, ``9.10``, ``9``
    for part in parts:
        yield OpenByName(tuple(f"libcudnn_{part}.so.{each}" for each in shorter), by=image.path, optional=False)


class Event(NamedTuple):
    """One loaded or failed library, with all requests on the way."""

    requests: list[LoadRequest]
    optional: bool
    by: str | None = None  # Path of the file whose code requested it by name
    identity: Identity | None = None  # The identity of a compiled part


def imported(
    process: LoaderProcess, site: Site, parts: tuple[str, ...], preloads: tuple[Preload, ...], *, first: bool
) -> tuple[list[Event], int]:
    """Load compiled files in the order of an import; ``first``: including what precedes them. Returns what happened,
    and how many images there were before.
    """
    script = _Script(process, site, preloads)
    before = len(process.images)
    if first:
        script.preload(None)
    for path in parts:
        script.part(path)
    # Not those that failed by themselves but were loaded as a dependency, through the RPATH of the requester.
    with_state = ((event, event.identity is not None and process.holds(event.identity)) for event in script.events)
    return [event for event, is_held in with_state if not (is_held and failed(event.requests))], before


def called(
    process: LoaderProcess, site: Site, asks: Sequence[OpenByName], parts: Sequence[str], events: list[Event], done: int
) -> list[Event]:
    """Requests of code after an import with these ``events``: the framework's, then those of each library but the first
    ``done``.

    Requests of an optional library are optional.
    """
    script = _Script(process, site, ())
    for ask in asks:
        script.ask(ask, parts)
    required = {
        id(request.image) for event in (*events, *script.events) if not event.optional for request in event.requests
    }
    while done < len(process.images) and len(script.events) < 512:
        image = process.images[done]
        done += 1
        for ask in asks_of(process, image, site):
            needed = id(image) in required and not ask.optional
            event = script.ask(ask._replace(optional=not needed), parts)
            if event and needed:
                required.update(id(request.image) for request in event.requests)
    return script.events


class _Script:
    def __init__(self, process: LoaderProcess, site: Site, preloads: tuple[Preload, ...]) -> None:
        self.process = process
        self.site = site
        self.events: list[Event] = []
        self._preloads = preloads

    def part(self, path: str) -> None:
        """Load one compiled file, and run the preloads that follow its success or failure."""
        name = os.path.basename(path)
        requests = self.process.open(path)
        if failed(requests) and self.preload(name, after_failure=True):
            requests = self.process.open(path)
        image = requests[0].image
        self.events.append(Event(requests, optional=False, identity=image.head.identity if image else None))
        self.preload(name)

    def preload(self, after: str | None, *, after_failure: bool = False) -> bool:
        """Run the preloads at this point: those for a failure, or all others. Returns whether there were any."""
        here = [one for one in self._preloads if one.after == after and (one.when == "failed") == after_failure]
        for preload in here:
            attempts = list(self._preloaded(preload))
            self.events += [Event(requests, optional=True) for requests in attempts]
            if preload.required and self._applies(preload) and not any(not failed(one) for one in attempts):
                break
        return bool(here)

    def _applies(self, preload: Preload) -> bool:
        """Whether its condition holds; memory maps have resolved paths."""
        if preload.when != "mapped":
            return True
        paths = (self.process.search.real(image.path) for image in self.process.images)
        return any(preload.mapped in path for path in paths)

    def _preloaded(self, preload: Preload) -> Iterator[list[LoadRequest]]:
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
        """Whether the preload is unnecessary because the library is loaded or would be found."""
        if not preload.unless_found or any(map(self.process.loaded, preload.names)):
            return preload.unless_found
        process = self.process.copy()
        caller = caller_of_ctypes(process, self.site)
        return any(not failed(process.open(name, caller)) for name in preload.names)

    def _places(self, preload: Preload) -> Iterator[str]:
        """The matching files, and names for the loader to search, in the order of the code."""
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
        names = self.site.tree.folder_names(folder)[0]
        for pattern in patterns:
            yield from (f"{folder}/{name}" for name in fnmatch.filter(names, pattern))

    def ask(self, ask: OpenByName, parts: Sequence[str]) -> Event | None:
        """Load what code requests by name; a file that was not loaded requests nothing."""
        if ask.by:
            named = (image for image in self.process.images if os.path.basename(image.path) == ask.by)
            caller = self.process.loaded(ask.by) or next(named, None)
            if caller is None:
                return None
        else:
            caller = caller_of_ctypes(self.process, self.site)
        tried: list[list[LoadRequest]] = []
        for name in ask.names:
            tried.append(self.process.open(name, caller))
            if not failed(tried[-1]):
                break
        by = caller.path if ask.by and caller else (parts[0] if parts else None)
        telling = tried[-1]
        if failed(telling):  # one that found a file, else the one with the shortest name
            telling = min(tried, key=lambda requests: (-len(requests), len(requests[0].name)))
        self.events.append(Event(telling, optional=ask.optional, by=by))
        return self.events[-1]
