"""The release of the C library: ``ldd (GNU libc) 2.17``, ``getconf GNU_LIBC_VERSION``, "glibc 2.28"."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, each_line
from envcheck.snapshot import Platform, Snapshot

NAME = "C library"
RANK = Rank.PROSE

_RELEASE = re.compile(
    r"\bldd \([^()\n]{3,60}\) (?P<ldd>2\.[0-9]{1,2})(?![0-9])"
    r"|(?<![\w.-])(?:GNU C Library|glibc|GNU libc)(?: \([^()\n]{1,60}\))?"
    r"(?:[ -](?:stable|release|version|is)){0,3}[ :=-]{1,3}"
    r"(?P<said>2\.[0-9]{1,2})(?![0-9])|__glibc=(?P<conda>2\.[0-9]{1,2})\b",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"\b(?:needs?|requires?|required|at least|minimum|newer|older|built|compiled|upgrade|not found|want"
    r"|expects?|supports?)\b|[<>]=?",
    re.IGNORECASE,
)
_LONGEST_LINE = 300


def read(paste: Paste) -> Snapshot:
    return each_line(paste, _read_line)


def _read_line(line: str) -> Snapshot | None:
    text = line[:_LONGEST_LINE]
    if "2." not in text or not (found := _RELEASE.search(text)) or _WANTED.search(text):
        return None
    release = next(filter(None, found.groups()))
    return Snapshot(platform=Platform(source=SOURCE, os="linux", libc=f"glibc {release}"))
