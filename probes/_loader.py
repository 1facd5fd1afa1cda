"""The folders in which the program loader would look for a library, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ._kit import Request, exists, read_bytes
from ._links import expand, resolve
from ._loader_cache import parse

_CACHE = "/etc/ld.so.cache"
_CACHE_LIMIT = 16 * 1024 * 1024
_MAX_FOLDERS = 200

_DEFAULTS = ("/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


class SearchPath(NamedTuple):
    """Where the loader looks: folders of LD_LIBRARY_PATH, then the cache's entries, then built-in folders."""

    variable: tuple[str, ...]
    cache: tuple[tuple[str, str], ...]
    """Name and path, in the cache's order."""
    defaults: tuple[str, ...]
    complete: bool
    """Whether the cache could be read whole, or is not there."""


def search_path(request: Request) -> SearchPath:
    """The loader's search path for a program started with the variables of the request."""
    data = read_bytes(request, _CACHE, _CACHE_LIMIT)
    cache = parse(data) if data is not None else None
    return SearchPath(
        variable=library_path(request),
        cache=cache.entries if cache else (),
        defaults=tuple(_distinct(request, (folder for pattern in _DEFAULTS for folder in expand(request, pattern)))),
        complete=cache.complete if cache else not exists(request, _CACHE),
    )


def _distinct(request: Request, folders: Iterable[str]) -> Iterable[str]:
    """The first name of each folder: /lib is often a link to /usr/lib."""
    by_real: dict[str | None, str] = {}
    for folder in folders:
        by_real.setdefault(resolve(request, folder), folder)
    return by_real.values()


def library_path(request: Request) -> tuple[str, ...]:
    """The folders of LD_LIBRARY_PATH; an empty entry is the current folder, one with ``$`` depends on the program."""
    value = (request.get("variables") or {}).get("LD_LIBRARY_PATH", "")
    if not value:
        return ()
    cwd = request.get("cwd", "/")
    entries = [entry for entry in value.replace(";", ":").split(":") if "$" not in entry][:_MAX_FOLDERS]
    return tuple(dict.fromkeys(entry if entry.startswith("/") else f"{cwd}/{entry}".rstrip("/") for entry in entries))
