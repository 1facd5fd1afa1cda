"""Which flags of XLA_FLAGS the XLA of a framework does not have: it ends the process at the first of them.

XLA keeps the name of each flag as text in its library (xla/debug_options_flags.cc), so a name that none of the
libraries holds is no flag. One that is held may still be none: the names of other things are there, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..kit.tree import Tree, refused

_FLAG = re.compile(r"(?:^|\s)(--[a-z]\w{2,120})")
_ALWAYS = "--xla_dump_to"
"""Every XLA that reads the variable has it: where it is not found, this is no XLA, or names are kept in another way."""
_MOST = 32
_CHUNK = 8 << 20
_LIMIT = 3 << 30
"""Bytes of libraries that are searched; of more, nothing is said."""


def unknown_flags(tree: Tree, libraries: Sequence[str]) -> list[str] | None:
    """The flags, with their dashes, whose names no library holds; None where none are set or not all could be read."""
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
    """Take the names that the file holds out of ``left``; its size, or None where it was not searched whole."""
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
