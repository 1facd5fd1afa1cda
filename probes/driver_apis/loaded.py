"""Which file of a library this process has mapped, and why the loader would not load one."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path


def mapped(stem: str, maps: str = "/proc/self/maps") -> str | None:
    """Real path of the first mapped file whose name is ``stem`` or starts with ``stem.``; None when there is none."""
    try:
        with Path(maps).open(encoding="utf-8", errors="surrogateescape") as lines:
            paths = [columns[5].strip() for line in lines if len(columns := line.split(None, 5)) == 6]
    except OSError:
        return None
    for path in paths:
        name = Path(path).name
        if name == stem or name.startswith(f"{stem}."):
            return str(Path(path).resolve()).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return None


def why_not_loadable(soname: str) -> str | None:
    """What the dynamic loader says against ``soname``; None when it loads it."""
    try:
        ctypes.CDLL(soname)
    except OSError as error:
        return str(error)
    return None


def is_missing(soname: str, complaint: str) -> bool:
    """Whether the loader found no such file, rather than one that it cannot load (glibc's and musl's wording)."""
    return bool(re.search(rf"{re.escape(soname)}: (cannot open shared object file: )?No such file[^()]*$", complaint))
