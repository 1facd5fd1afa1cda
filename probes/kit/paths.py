"""Paths below the root of a request: what is there, and where links lead. Nothing here raises on what it meets."""

from __future__ import annotations

import os
import re
import stat

from .reading import Request, below, read_bytes, read_text, refused

LINKS = 40
"""As many links as the kernel itself follows in one path."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str, limit: int = 300) -> str:
    """The text without control characters, cut to ``limit``: fit to be shown on a terminal."""
    return _CONTROL.sub("", text)[:limit]


def absolute(request: Request, path: str) -> str:
    """The path as seen from the request's current folder; ``~`` is HOME."""
    if path == "~" or path.startswith("~/"):
        path = home(request) + path[1:]
    return joined(request["cwd"], path)


def joined(folder: str, path: str) -> str:
    """``path`` as seen from ``folder``, by its text, without what changes nothing in it."""
    return _text(os.path.join(folder, path))


def parent(path: str) -> str:
    """The folder that holds ``path``, by its text."""
    return os.path.dirname(_text(path)) or "."


def name_of(path: str) -> str:
    """The last component of ``path``."""
    name = os.path.basename(_text(path))
    return "" if name == "." else name


def _text(path: str) -> str:
    """The path without components that stand for nothing."""
    root = "/" if path.startswith("/") else ""
    return root + "/".join(part for part in path.split("/") if part not in {"", "."}) or "."


def inside(path: str, folder: str) -> bool:
    """Whether the real path ``path`` is ``folder`` or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def home(request: Request) -> str:
    """The user's home folder: HOME, else the passwd file's, else the empty text."""
    known = request["variables"].get("HOME")
    if known:
        return str(known)
    uid = str(os.getuid())
    for line in (read_text(request, "/etc/passwd") or "").splitlines():
        fields = line.split(":")
        if len(fields) >= 7 and fields[2] == uid:
            return fields[5]
    return ""


def is_folder(request: Request, path: str) -> bool:
    mode = _mode(request, path)
    return mode is not None and stat.S_ISDIR(mode)


def is_file(request: Request, path: str) -> bool:
    mode = _mode(request, path)
    return mode is not None and stat.S_ISREG(mode)


def is_program(request: Request, path: str) -> bool:
    """Whether it is a regular file that somebody may execute."""
    mode = _mode(request, path)
    return mode is not None and stat.S_ISREG(mode) and bool(mode & 0o111)


def link_target(request: Request, path: str) -> str | None:
    """What the link at ``path`` says, or None when it is no link."""
    try:
        return os.readlink(below(request, path))
    except (OSError, ValueError):
        return None


def is_there(request: Request, path: str) -> bool:
    """Whether there is anything at ``path``, a dangling link included."""
    return _mode(request, path) is not None or link_target(request, path) is not None


def real(request: Request, path: str) -> str:
    """The path with every link followed, inside the root of the request; past ``LINKS`` the rest stays as it is."""
    done: list[str] = []
    todo = path.split("/")[::-1]
    links = 0
    while todo:
        part = todo.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            done = done[:-1]
            continue
        target = link_target(request, "/" + "/".join([*done, part])) if links < LINKS else None
        if target is None:
            done.append(part)
            continue
        links += 1
        done = [] if target.startswith("/") else done
        todo.extend(target.split("/")[::-1])
    return "/" + "/".join(done)


def read_head(request: Request, path: str, size: int) -> bytes | None:
    """The first bytes of a regular file, or None."""
    return read_bytes(request, path, size) if is_file(request, path) else None


def _mode(request: Request, path: str) -> int | None:
    within = path if request.get("root", "/") == "/" else real(request, path)
    try:
        return os.stat(below(request, within)).st_mode
    except (OSError, ValueError) as error:
        refused(path, error)
        return None
