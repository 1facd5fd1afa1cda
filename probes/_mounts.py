"""What is mounted where, as this process sees it."""

from __future__ import annotations

import re

from ._kit import Request, read_text

_MOUNTINFO = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")
_MOST = 20_000


def mount_points(request: Request) -> frozenset[str]:
    """Files and folders on which something is mounted; empty where /proc does not tell."""
    lines = (read_text(request, _MOUNTINFO) or "").splitlines()[:_MOST]
    fields = (line.split(" ", 5) for line in lines)
    return frozenset(_plain(parts[4]) for parts in fields if len(parts) > 5)


def is_mounted(path: str, points: frozenset[str]) -> bool:
    """Whether the file, or a folder above it (but not the root), is a mount of its own."""
    parts = path.split("/")
    return any("/".join(parts[:count]) in points for count in range(2, len(parts) + 1))


def _plain(text: str) -> str:
    """A path as it is: the kernel writes blanks and backslashes in it as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found.group(1), 8)), text)
