"""The process of an environment's Python, as it is when its first import begins."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ._env_paths import is_file, real
from ._kit import below
from ._links import folder_names
from ._loading import Image, Process
from ._loading_heads import head_of
from ._loading_system import system_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._env_site import Site

_KEPT = 64
_STARTED: dict[tuple[str, str, str, str, str], Process] = {}
_LIBRARY = re.compile(r"python3\.\d+t?")
_MINOR = re.compile(r"/(python|pypy)(\d+\.\d+)t?/(?:site|dist)-packages$")


def started(site: Site) -> Process:
    """A process of the environment's Python; shared by all who ask, so ``copy`` it before anything is opened."""
    request = site.request
    variables = request.get("variables") or {}
    path = _executable(site)
    asked = (variables.get("LD_LIBRARY_PATH", ""), variables.get("LD_PRELOAD", ""))
    key = (request.get("root", "/"), request.get("cwd", "/"), path or site.prefix, *asked)
    if key not in _STARTED:
        if len(_STARTED) >= _KEPT:
            _STARTED.clear()
        _STARTED[key] = _start(site, path)
    return _STARTED[key]


def caller_of_ctypes(process: Process, site: Site) -> Image | None:
    """The file whose code calls ``dlopen`` for ``ctypes.CDLL``, so that its RPATH or RUNPATH counts."""
    if not process.images:
        return None
    program = process.images[0].path
    library = _LIBRARY.fullmatch(os.path.basename(program))
    inside = f"{os.path.dirname(os.path.dirname(program))}/lib/{library[0] if library else ''}/lib-dynload"
    for name in folder_names(site.request, inside)[0] if library else ():
        if name.startswith("_ctypes.") and name.endswith(".so"):
            (first, *_) = process.open(f"{inside}/{name}")
            return first.image
    linked = (image for image in process.images if (image.head.soname or "").startswith("libpython"))
    return next(linked, process.images[0])


def _start(site: Site, path: str | None) -> Process:
    inside = real(site.request, path) if path else ""
    head = head_of(below(site.request, inside)) if inside else None
    system = system_of(site.request, head, head.interpreter if head else None)
    unread = head is None or head.refused or head.problem
    return Process(system, None if unread or head is None else Image(inside, head, None, "absolute"))


def _executable(site: Site) -> str | None:
    """The program: of several in one folder that of the version whose packages are searched."""
    return next((path for path in _programs(site) if is_file(site.request, path)), None)


def _programs(site: Site) -> Iterator[str]:
    for folder in site.folders:
        match = _MINOR.search(folder)
        if match and folder.startswith(f"{site.prefix}/"):
            yield f"{site.prefix}/bin/{match[1]}{match[2]}"
    yield from (f"{site.prefix}/bin/{name}" for name in ("python3", "python", "pypy3", "pypy"))
