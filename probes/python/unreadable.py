"""Unreadable parts of one environment, and missing folders of its search path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..kit.paths import inside, joined, printable
from ..kit.tree import CIRCLE, REFUSED, Tree
from .interpreter import LIBRARY, Place, problem_at
from .layout import Layout

_MOST = 50
_NAMED_BY = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")


def unreadable(
    tree: Tree, place: Place, layout: Layout, folders: Iterable[str], *, asked_for: bool
) -> list[dict[str, Any]]:
    """Unreadable parts of an environment with these search folders and, unless it was named, of candidates that would
    precede it.
    """
    whole = [layout.prefix] if layout.virtual or layout.manager == "conda" else []
    own = (*whole, *folders, *([] if asked_for else _preferred(tree)))
    found = {path: reason for path, reason in REFUSED.items() if _is_of(path, own, layout.prefix)}
    if place.problem is None and layout.problem is None and not found:
        found.update(_without_site(tree, layout))
    return _records(found)


def unreadable_place(tree: Tree, place: Place, asked: str) -> list[dict[str, Any]]:
    """Unreadable parts of a named place that led to no environment, or that Python would not take."""
    path = joined(tree.cwd, asked)
    found = {name: reason for name, reason in REFUSED.items() if inside(name, path) and reason != CIRCLE}
    return _records({**found, **dict([place.lost] if place.lost else ())})


def _preferred(tree: Tree) -> Iterator[str]:
    yield from (str(value) for name in _NAMED_BY if (value := tree.variables.get(name)))
    yield joined(tree.cwd, ".venv")


def _is_of(path: str, own: Iterable[str], prefix: str) -> bool:
    if any(inside(path, folder) for folder in own):
        return True
    return path in (prefix, f"{prefix}/pyvenv.cfg", f"{prefix}/bin", f"{prefix}/lib", f"{prefix}/lib64")


def _without_site(tree: Tree, layout: Layout) -> Iterator[tuple[str, str]]:
    """The problem of an environment without a folder for its packages: what is there instead."""
    if not layout.minor or layout.manager == "system":
        return
    places = []
    for lib in ("lib", "lib64"):
        for name in tree.list_names(f"{layout.prefix}/{lib}") or []:
            match = LIBRARY.match(name)
            if match and match.group(2) == layout.minor:
                places.append(f"{layout.prefix}/{lib}/{name}/site-packages")
    places = places or [f"{layout.prefix}/lib/python{layout.minor}/site-packages"]
    if not any(tree.is_folder(path) for path in places):
        yield places[0], problem_at(tree, places[0], "folder")


def _records(found: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"path": printable(path), "problem": printable(reason), "source": f"file {printable(path)}"}
        for path, reason in sorted(found.items())[:_MOST]
    ]
