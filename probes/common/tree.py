"""The file tree below a root, read safely: links stay inside the root, reads are bounded and never wait.

The root is ``/`` except in tests. Below another root, absolute links start there, as for a program inside it. Paths are
given as such a program sees them.
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from .lazy import lazy_pattern
from .out import clean
from .paths import joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .out import Out

TEXT_LIMIT = 1 << 20  # Most bytes of a text file
MAX_MATCHES = 256  # Most matches of a pattern

REFUSED: dict[str, str] = {}
"""Existing paths that could not be read, with the system's reason (permission denied, a link in a circle, an I/O error
…). Their content is unknown; they are not absent. There is one record per process, since ELF files are read by their
path outside the tree.
"""

CIRCLE = os.strerror(errno.ELOOP)  # The reason given for a circular link

READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 1 << 20
MOST_LINKS = 40  # The number of links that the kernel follows in one path
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_FOR_ROOT_ALONE = lazy_pattern(r"/proc/(?:\d+|self)/|/sys/firmware/|/sys/kernel/|/root/")
"""Paths that only root may read on healthy machines, too."""


def refused(path: str, error: Exception) -> None:
    """Record that ``path`` could not be read, unless the error means that it does not exist."""
    if isinstance(error, OSError) and error.errno and error.errno not in _ABSENT and len(REFUSED) < 1000:
        REFUSED.setdefault(path, error.strerror or str(error))


class Tree:
    """The examined file tree, with the process environment and current folder that the request names.

    Methods never raise for what they find: unreadable things are None, False or empty, and are listed in ``REFUSED``.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request  # The whole request; the attributes below are the keys that most probes need
        self.root: str = request.get("root", "/")
        self.at_real_root = self.root == "/"
        """Whether the running system is examined, so that system calls apply to it."""
        self.cwd: str = request.get("cwd", "/")
        self.variables: Mapping[str, str] = request.get("variables") or {}
        self.python: list[str] = request.get("python") or []

    # Paths

    def place(self, path: str, *, follow: bool = True) -> str:
        """The path on the running system: links are followed inside the root, the last one only with ``follow``."""
        if self.at_real_root:
            return path
        if follow:
            return os.path.join(self.root, self.real_path(path).lstrip("/"))
        folder, _, name = path.rstrip("/").rpartition("/")
        return os.path.join(self.place(folder), name)

    def resolve(self, path: str) -> str | None:
        """The path with all links resolved, or None if it does not exist."""
        try:
            return self._followed(path, strict=True)
        except (OSError, ValueError) as error:
            refused(path, error)
            return None

    def real_path(self, path: str) -> str:
        """The path with all links resolved; after a missing part or in a circle of links, the rest is kept."""
        return self._followed(path, strict=False)

    def _followed(self, path: str, *, strict: bool) -> str:
        done: list[str] = []
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                del done[-1:]
                continue
            place = os.path.join(self.root, *done, part)
            try:
                target = os.readlink(place) if stat.S_ISLNK(os.lstat(place).st_mode) else None
                links += target is not None
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, CIRCLE)  # noqa: TRY301  as the kernel says it
            except (OSError, ValueError):
                if strict:
                    raise
                target = None
            if target is None:
                done.append(part)
                continue
            if target.startswith("/"):
                done = []
            pending.extend(target.split("/")[::-1])
        return "/" + "/".join(done)

    def absolute(self, path: str) -> str:
        """The absolute path, from the current folder; ``~`` is HOME."""
        if path == "~" or path.startswith("~/"):
            path = self.home() + path[1:]
        return joined(self.cwd, path)

    def home(self) -> str:
        """The user's home folder: HOME, else from the passwd file, else an empty string."""
        known = self.variables.get("HOME")
        if known:
            return str(known)
        uid = str(os.getuid())
        for line in (self.read_text("/etc/passwd") or "").splitlines():
            fields = line.split(":")
            if len(fields) >= 7 and fields[2] == uid:
                return fields[5]
        return ""

    # What is there

    def exists(self, path: str) -> bool:
        """Whether the path exists; a dangling link does not count."""
        return self._mode(path) is not None

    def lexists(self, path: str) -> bool:
        """Whether the path exists; a dangling link counts."""
        return self._mode(path, follow=False) is not None

    def is_file(self, path: str) -> bool:
        return stat.S_ISREG(self._mode(path) or 0)

    def is_folder(self, path: str) -> bool:
        return stat.S_ISDIR(self._mode(path) or 0)

    def is_program(self, path: str) -> bool:
        """Whether the path leads to an executable regular file."""
        mode = self._mode(path) or 0
        return stat.S_ISREG(mode) and bool(mode & 0o111)

    def _mode(self, path: str, *, follow: bool = True) -> int | None:
        try:
            return os.stat(self.place(path, follow=follow), follow_symlinks=follow).st_mode
        except (OSError, ValueError) as error:
            refused(path, error)
            return None

    def link_target(self, path: str) -> str | None:
        """The target of the link at ``path``, or None if it is not a link."""
        try:
            return os.readlink(self.place(path, follow=False))
        except (OSError, ValueError):
            return None

    # Folders

    def list_names(self, path: str) -> list[str] | None:
        """The sorted names in a folder, or None when it cannot be listed."""
        try:
            return sorted(os.listdir(self.place(path)))
        except (OSError, ValueError) as error:
            refused(path, error)
            return None

    def folder_names(self, path: str) -> tuple[list[str], bool]:
        """The sorted names in a folder, and whether they are certain; a missing folder certainly has none."""
        try:
            return sorted(os.listdir(self.place(path))), True
        except OSError as error:
            refused(path, error)
            return [], error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}

    def expand(self, pattern: str) -> list[str]:
        """The existing paths that match an absolute pattern with ``*``, sorted by name."""
        paths = [""]
        for part in pattern.strip("/").split("/"):
            if "*" in part:
                found = ((path, self.folder_names(path or "/")[0]) for path in paths)
                paths = [f"{path}/{name}" for path, names in found for name in fnmatch.filter(names, part)]
                del paths[MAX_MATCHES:]
            else:
                paths = [f"{path}/{part}" for path in paths]
        return [path for path in paths if self.exists(path)]

    # Files

    def read_bytes(self, path: str, limit: int = TEXT_LIMIT) -> bytes | None:
        """The first ``limit`` bytes of a regular file, or None if it cannot be read.

        Pipes and devices are not opened, and reading never waits, even if the file is replaced by one. Files without a
        size are read in procfs and sysfs only: a link from elsewhere may lead to ``/proc/kmsg``, where reading waits
        and consumes messages.
        """
        try:
            place = self.place(path)
            if not stat.S_ISREG(os.stat(place).st_mode):  # first: opening a device can change its state
                return None
            descriptor = os.open(place, READING)
            try:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    return None
                if not place.startswith(("/proc/", "/sys/")):
                    limit = min(limit, found.st_size)
                data = os.read(descriptor, min(limit, _CHUNK))
                if len(data) in (0, limit):
                    return data
                parts, left = [data], limit - len(data)
                while left > 0 and parts[-1]:
                    parts.append(os.read(descriptor, min(left, _CHUNK)))
                    left -= len(parts[-1])
                return b"".join(parts)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            refused(path, error)
            return None

    def read_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        """The text of a file, at most ``limit`` bytes of it, or None when it cannot be read."""
        data = self.read_bytes(path, limit)
        return None if data is None else data.decode("utf-8", "replace")

    def read_json(self, path: str, limit: int = TEXT_LIMIT) -> dict[str, Any]:
        """The JSON object in a file; an empty one where there is none."""
        try:
            value = json.loads(self.read_text(path, limit) or "")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def read_line(self, path: str) -> str | None:
        """The stripped text of a one-line file, or None."""
        text = self.read_text(path, 65536)
        return None if text is None else text.strip("\n\0 ")

    def read_int(self, path: str) -> int | None:
        """The number in a file, decimal or ``0x`` hexadecimal, or None."""
        try:
            return int(self.read_line(path) or "", 0)
        except ValueError:
            return None

    def report_unreadable(self, out: Out) -> None:
        """Report what could not be read on the machine; environments report their own."""
        root = self.root.rstrip("/")
        own = f"{(self.variables.get('HOME') or '').rstrip('/') or '/root'}/"
        parts = []
        for place, reason in REFUSED.items():
            path = place[len(root) :] if root and place.startswith(f"{root}/") else place
            if reason != CIRCLE and not _FOR_ROOT_ALONE.match(path) and not path.startswith(own):
                parts.append({"path": clean(path), "problem": reason, "source": f"file {clean(path)}"})
        if parts:
            out.fact({"unreadable": parts[:50]})
