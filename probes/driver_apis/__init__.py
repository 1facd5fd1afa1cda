"""The driver's libraries in this process: NVML and the CUDA driver API, without a context.

Here: which file of one is mapped, and why the loader cannot load one.
"""

from __future__ import annotations

import ctypes
import os
import re

from ..common.system import mapped_files


def mapped(stem: str, maps: str = "/proc/self/maps") -> str | None:
    """Real path of the first mapped file whose name is ``stem`` or starts with ``stem.``; None if there is none."""
    for path in mapped_files(maps):
        name = os.path.basename(path)
        if name == stem or name.startswith(f"{stem}."):
            return os.path.realpath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return None


def why_not_loadable(soname: str) -> str | None:
    """The dynamic loader's error for ``soname``; None if it loads it."""
    try:
        ctypes.CDLL(soname)
    except OSError as error:
        return str(error)
    return None


def is_missing(soname: str, complaint: str) -> bool:
    """Whether the loader found no such file, as opposed to an unusable one (messages of glibc and musl)."""
    return bool(re.search(rf"{re.escape(soname)}: (cannot open shared object file: )?No such file[^()]*$", complaint))
