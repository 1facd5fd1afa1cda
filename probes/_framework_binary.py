"""What the compiled parts of a framework ask for, and which files a process of its Python would be given for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._fatbin import gpu_targets
from ._kit import below
from ._links import resolve
from ._loading_python import started
from ._loading_report import records
from ._loading_script import called, imported
from ._loading_steps import Ask, Preload
from ._loading_unresolved import unresolved

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ._env_site import Site
    from ._kit import Request
    from ._loading import Process

__all__ = ["Ask", "Preload", "examined"]

_KEPT = 64
_Key: TypeAlias = "tuple[int, tuple[Preload, ...], tuple[str, ...]]"
_MET: dict[_Key, Process] = {}
"""What lies in a process once parts were imported into it, for those that are imported after them."""


def examined(
    site: Site,
    parts: Sequence[str],
    *,
    preloads: Sequence[Preload] = (),
    asks: Sequence[Ask] = (),
    extends: Sequence[str] = (),
) -> dict[str, Any]:
    """What ``binaries``, ``gpu_code``, ``loads``, ``loads_complete``, ``looks_in_wheels`` and ``unresolved`` of a
    ``Framework`` are.

    ``parts`` are paths, as the examined machine sees them, of compiled files that its import loads, in that order.
    ``extends`` are those of the framework that is imported before it, with that one's ``preloads`` among ``preloads``.
    ``gpu_code`` is missing where no part has any or not all could be read, ``loads`` where the search of this Python's
    loader is not known at all.
    """
    facts: dict[str, Any] = {"binaries": list(parts)}
    targets = _gpu_code(site.request, parts)
    if targets:
        facts["gpu_code"] = targets
    parts, preloads, python = tuple(parts), tuple(preloads), started(site)
    process = _met(python, site, preloads, tuple(extends)).copy()
    if process.system.problem:
        return {**facts, "loads_complete": False}
    met = imported(process, site, parts, preloads, first=not extends)
    if not extends:
        _keep((id(python), preloads, parts), process.copy())
    missing = unresolved(process, met.events) if extends else None
    if missing is not None:
        facts["unresolved"] = missing
    events = [*met.events, *called(process, site, tuple(asks), parts, met)]
    told = {"loads": records(process, site, events), "loads_complete": process.complete}
    return {**facts, **told, "looks_in_wheels": _looks_in_wheels(process, preloads)}


def _met(python: Process, site: Site, preloads: tuple[Preload, ...], extends: tuple[str, ...]) -> Process:
    """The process when the import of the parts begins: the same for all extensions of one framework."""
    if not extends:
        return python
    key = (id(python), preloads, extends)
    if key not in _MET:
        process = python.copy()
        imported(process, site, extends, preloads, first=True)
        _keep(key, process)
    return _MET[key]


def _keep(key: _Key, process: Process) -> None:
    if len(_MET) >= _KEPT:
        _MET.clear()
    _MET[key] = process


def _looks_in_wheels(process: Process, preloads: tuple[Preload, ...]) -> bool:
    """Whether a preload, or the search path of a file in the process, leads to where NVIDIA's wheels lay libraries."""
    if any(folder.startswith("nvidia/") for preload in preloads for folder in preload.folders):
        return True
    return any(
        entry.startswith("$ORIGIN/") and "/nvidia/" in entry
        for image in process.images
        for entry in (*image.head.rpath, *(image.head.runpath or ()))
    )


def _gpu_code(request: Request, parts: Sequence[str]) -> list[str] | None:
    """All targets of the parts; None where they are not all known."""
    found: dict[str, None] = {}
    for path in parts:
        inside = resolve(request, path)
        code = gpu_targets(below(request, inside)) if inside else None
        if code is None or not code.complete:
            return None
        found.update(dict.fromkeys(code.targets))
    return list(found)
