"""The flags in XLA_FLAGS that a framework's XLA does not have; it ends the process at the first one.

XLA keeps the name of each flag as text in its library (xla/debug_options_flags.cc), so a name in none of the libraries
is no flag. The reverse does not hold: the libraries contain other names, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..kit.tree import Tree, refused

_FLAG = re.compile(r"(?:^|\s)(--[a-z]\w{2,120})")
_ALWAYS = "--xla_dump_to"
"""A flag that every XLA has: if it is not found, this is no XLA, or names are stored differently."""
_MOST = 32
_CHUNK = 8 << 20
_LIMIT = 3 << 30
"""Most bytes of libraries that are searched; with more, nothing is concluded."""


def unknown_flags(tree: Tree, libraries: Sequence[str]) -> list[str] | None:
    """The flags, with their dashes, whose names are in no library; None if none are set or not all could be read."""
    value = tree.variables.get("XLA_FLAGS", "")
    wanted = list(dict.fromkeys(_FLAG.findall(value)))[:_MOST]
    if not wanted or not libraries:
        return None
    left, room = {flag: flag[2:].encode() for flag in (_ALWAYS, *wanted)}, _LIMIT
    for path in libraries:
        size = _search(tree, path, left, room)
        if size is None:
            return None
        room -= size
    return None if _ALWAYS in left else list(left)


def _search(tree: Tree, path: str, left: dict[str, bytes], room: int) -> int | None:
    """Remove the names in the file from ``left``; return its size, or None if it was not searched completely."""
    if not tree.is_file(path):
        return None
    try:
        with open(tree.place(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > room:
                return None
            end = b""
            while left and (chunk := file.read(_CHUNK)):
                text = end + chunk
                for flag in [flag for flag, name in left.items() if name in text]:
                    del left[flag]
                end = text[-128:]
            return size
    except OSError as error:
        refused(path, error)
        return None
