"""What NCCL leaves in /dev/shm where its processes are killed while they connect: it removes the files itself later."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

PREFIX = "/dev/shm/nccl-"  # noqa: S108  NCCL names them so
_GONE = " (deleted)"
_MOST = 16 << 20
"""Bytes that are read of a process's list of mapped files."""


def mapped_files(processes: Iterable[int]) -> set[str]:
    """NCCL's files that these processes have mapped, and that are still in their folder."""
    found: set[str] = set()
    for process in processes:
        with suppress(OSError), open(f"/proc/{process}/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file.read(_MOST).splitlines():
                _, slash, path = line.partition("/")
                if slash and f"/{path}".startswith(PREFIX) and not path.endswith(_GONE):
                    found.add(f"/{path}")
    return found


def remove(files: Iterable[str]) -> None:
    """Remove files whose processes have ended."""
    for path in files:
        with suppress(OSError):
            os.unlink(path)
