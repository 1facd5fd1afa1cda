"""Symbolic links and folders below the root of the request.

Below a root that is not ``/``, an absolute link counts from that root, as it would for a program inside it.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import stat

from .reading import Request, below, refused

MAX_LINKS = 40
"""As many links as the kernel follows in one path."""

MAX_MATCHES = 256
"""No pattern is meant to match more."""

_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def resolve(request: Request, path: str) -> str | None:
    """The real path of ``path`` as seen from inside the root, or None when it leads nowhere."""
    if request.get("root", "/") == "/":
        try:
            return os.path.realpath(path, strict=True)
        except OSError as error:
            refused(path, error)
            return None
    return _resolve_below(request, path)


def is_there(request: Request, path: str) -> bool:
    """Whether a path leads to something inside the root (a link counts for what it leads to)."""
    return resolve(request, path) is not None


def _resolve_below(request: Request, path: str) -> str | None:
    pending = path.split("/")[::-1]
    found: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            del found[-1:]
            continue
        place = below(request, "/" + "/".join([*found, part]))
        try:
            if not stat.S_ISLNK(os.lstat(place).st_mode):
                found.append(part)
                continue
            target = os.readlink(place)
        except (OSError, ValueError) as error:
            refused(path, error)
            return None
        links += 1
        if links > MAX_LINKS:
            refused(path, OSError(errno.ELOOP, os.strerror(errno.ELOOP)))
            return None
        if target.startswith("/"):
            found = []
        pending.extend(target.split("/")[::-1])
    return "/" + "/".join(found)


def folder_names(request: Request, path: str) -> tuple[list[str], bool]:
    """The sorted names in a folder and whether they are certain: a folder that is not there has none, certainly."""
    real = resolve(request, path)
    try:
        return sorted(os.listdir(below(request, real or path))), True
    except OSError as problem:
        refused(path, problem)
        return [], problem.errno in _NOT_THERE


def expand(request: Request, pattern: str) -> list[str]:
    """The existing paths that match an absolute pattern with ``*`` in some of its parts, in order of name."""
    paths = [""]
    for part in pattern.strip("/").split("/"):
        if "*" in part:
            paths = [f"{path}/{name}" for path in paths for name in _matching(request, path or "/", part)][:MAX_MATCHES]
        else:
            paths = [f"{path}/{part}" for path in paths]
    return [path for path in paths if resolve(request, path) is not None]


def _matching(request: Request, path: str, part: str) -> list[str]:
    return fnmatch.filter(folder_names(request, path)[0], part)


def is_file(request: Request, path: str) -> bool:
    """Whether ``path`` leads to a regular file."""
    real = resolve(request, path)
    return real is not None and os.path.isfile(below(request, real))
