"""Of one environment: what could not be read, and what is not where its interpreter looks."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import Any

from ..kit.paths import inside, is_folder, joined, link_target, printable
from ..kit.reading import REFUSED, Request, below, list_names
from .interpreter import LIBRARY, Place
from .layout import Layout

_MOST = 50
_NAMED_BY = ("VIRTUAL_ENV", "CONDA_PREFIX")


def unreadable(
    request: Request, place: Place, layout: Layout, folders: Iterable[str], *, asked_for: bool
) -> list[dict[str, Any]]:
    """What could not be read of an environment with these folders on its search path; and, where nobody asked for it,
    of those that would have been chosen before it.
    """
    whole = [layout.prefix] if layout.virtual or layout.manager == "conda" else []
    own = (*whole, *folders, *([] if asked_for else _preferred(request)))
    found = {path: reason for path, reason in REFUSED.items() if _is_of(path, own, layout.prefix)}
    if place.problem is None and layout.problem is None and not found:
        found.update(_without_site(request, layout))
    if place.lost:
        found[place.lost] = "it is gone, so that Python takes the folder for no environment"
    return _records(found)


def refused_of(request: Request, asked: str) -> list[dict[str, Any]]:
    """What could not be read of the place that was asked for, where it led to no environment."""
    path, circle = joined(request["cwd"], asked), os.strerror(errno.ELOOP)  # that it leads in a circle is known
    return _records({name: reason for name, reason in REFUSED.items() if inside(name, path) and reason != circle})


def _preferred(request: Request) -> Iterator[str]:
    yield from (str(value) for name in _NAMED_BY if (value := request["variables"].get(name)))
    yield joined(request["cwd"], ".venv")


def _is_of(path: str, own: Iterable[str], prefix: str) -> bool:
    if any(inside(path, folder) for folder in own):
        return True
    return path in (prefix, f"{prefix}/pyvenv.cfg", f"{prefix}/bin", f"{prefix}/lib", f"{prefix}/lib64")


def _without_site(request: Request, layout: Layout) -> Iterator[tuple[str, str]]:
    """The folder of the environment's own packages, where there is none: what lies in its place."""
    if not layout.virtual or not layout.minor:
        return
    places = []
    for lib in ("lib", "lib64"):
        for name in list_names(request, f"{layout.prefix}/{lib}") or []:
            match = LIBRARY.match(name)
            if match and match.group(2) == layout.minor:
                places.append(f"{layout.prefix}/{lib}/{name}/site-packages")
    places = places or [f"{layout.prefix}/lib/python{layout.minor}/site-packages"]
    if not any(is_folder(request, path) for path in places):
        yield places[0], _what_lies_there(request, places[0])


def _what_lies_there(request: Request, path: str) -> str:
    if link_target(request, path) is not None:
        return "it is a link that leads nowhere"
    return "it is no folder" if os.path.lexists(below(request, path)) else "it is gone"


def _records(found: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"path": printable(path), "problem": printable(reason), "source": f"file {printable(path)}"}
        for path, reason in sorted(found.items())[:_MOST]
    ]
