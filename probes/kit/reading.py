"""What every probe needs: bounded reading below a root, and the way to tell the parent."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, Dict  # noqa: UP035  the alias below is read by Python 3.8 too

if TYPE_CHECKING:
    from collections.abc import Callable

Request = Dict[str, Any]  # noqa: UP006

READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
CHUNK = 1 << 20
TEXT_LIMIT = 1 << 20
"""No file that a probe reads as text is meant to be longer than this."""

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_MOST_REFUSED = 1000
_MOST_TOLD = 50
_FOR_ROOT_ALONE = re.compile(r"/proc/(?:\d+|self)/|/sys/firmware/|/sys/kernel/|/root/")
"""What sound machines keep from every other user, too; who is not root and has root's PATH finds nothing there."""
REFUSED: dict[str, str] = {}
"""What is there and could not be read, by its path as seen from inside the root: the system's reason (permission
denied, a link in a circle, an I/O error …). Nobody knows what it holds, and it is not absent.
"""


class Out:
    """The line to the parent: facts as partial Snapshots, and how far the probe is."""

    def __init__(self, probe: str, write: Callable[[bytes], None]) -> None:
        self._probe = probe
        self._write = write
        self._status = "ok"
        self._detail = ""

    def fact(self, part: dict[str, Any]) -> None:
        """Send a part of the Snapshot."""
        self._send({"fact": part})

    def progress(self, text: str) -> None:
        """Say how far the probe is."""
        self._send({"progress": text})

    def absent(self, detail: str) -> None:
        """Say that there is nothing here for this probe to look at."""
        self._status, self._detail = "absent", detail

    def done(self) -> None:
        """Say that the probe came to its end; the bootstrap calls it."""
        self._send({"done": {"status": self._status, "detail": self._detail}})

    def _send(self, message: dict[str, Any]) -> None:
        self._write(json.dumps({"probe": self._probe, **message}).encode() + b"\n")


def refused(path: str, error: Exception) -> None:
    """Keep that ``path`` could not be read, unless the error says that nothing is there."""
    if isinstance(error, OSError) and error.errno and error.errno not in _ABSENT and len(REFUSED) < _MOST_REFUSED:
        REFUSED.setdefault(path, error.strerror or str(error))


def tell_unreadable(request: Request, out: Out) -> None:
    """Send what of the machine could not be read; the environments tell their own."""
    root = request.get("root", "/").rstrip("/")
    own = (request.get("variables") or {}).get("HOME") or "/root"
    parts = []
    for place, reason in REFUSED.items():
        if reason == os.strerror(errno.ELOOP):  # nothing is there, for anybody
            continue
        path = place[len(root) :] if root and place.startswith(f"{root}/") else place
        if not _FOR_ROOT_ALONE.match(path) and not path.startswith(f"{own.rstrip('/') or '/root'}/"):
            parts.append({"path": clean(path), "problem": reason, "source": f"file {clean(path)}"})
    if parts:
        out.fact({"unreadable": parts[:_MOST_TOLD]})


def below(request: Request, path: str) -> str:
    """The absolute ``path`` below the root of the request."""
    root = request.get("root", "/")
    return path if root == "/" else os.path.join(root, path.lstrip("/"))


def read_text(request: Request, path: str, limit: int = TEXT_LIMIT) -> str | None:
    """The text of a file, at most ``limit`` bytes of it, or None when it cannot be read.

    Only regular files are opened (procfs and sysfs files are), so that no pipe or device can hold the probe up.
    """
    data = read_bytes(request, path, limit)
    return None if data is None else data.decode("utf-8", "replace")


def read_line(request: Request, path: str) -> str | None:
    """The stripped text of a one-line file, or None."""
    text = read_text(request, path, 65536)
    return None if text is None else text.strip("\n\0 ")


def read_int(request: Request, path: str) -> int | None:
    """The number in a file, decimal or ``0x`` hexadecimal, or None."""
    text = read_line(request, path)
    try:
        return None if text is None else int(text, 0)
    except ValueError:
        return None


def list_names(request: Request, path: str) -> list[str] | None:
    """The sorted names in a folder, or None when it cannot be listed."""
    try:
        return sorted(os.listdir(below(request, path)))
    except OSError as error:
        refused(path, error)
        return None


def exists(request: Request, path: str) -> bool:
    """Whether there is anything at ``path``."""
    try:
        os.lstat(below(request, path))
    except (OSError, ValueError) as error:
        refused(path, error)
        return False
    return True


def read_bytes(request: Request, path: str, limit: int = TEXT_LIMIT) -> bytes | None:
    """The bytes of a regular file, at most ``limit`` of them, or None when it cannot be read."""
    try:
        return _read_regular(below(request, path), limit)
    except (OSError, ValueError) as error:
        refused(path, error)
        return None


def _read_regular(place: str, limit: int) -> bytes | None:
    """What is read of the regular file at ``place``, or None when there is none.

    Nothing is waited for: the file may become a pipe meanwhile. One without a size holds nothing, but in procfs and
    sysfs; a link from elsewhere may lead there (``/proc/kmsg`` waits, and what is read of it is gone for others).
    """
    if not stat.S_ISREG(os.stat(place).st_mode):  # first: opening a device can already change something
        return None
    descriptor = os.open(place, READING)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size == 0 and not place.startswith(("/proc/", "/sys/")):
            return b""
        return _read(descriptor, limit)
    finally:
        os.close(descriptor)


def _read(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    while left > 0:
        parts.append(os.read(descriptor, min(left, CHUNK)))
        if not parts[-1]:
            break
        left -= len(parts[-1])
    return b"".join(parts)


def clean(text: str) -> str:
    """Replace what is no Unicode text (undecodable bytes of a name), which JSON readers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
