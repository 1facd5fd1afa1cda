"""Keep ``ctypes.util.find_library`` from starting programs.

It runs ``/sbin/ldconfig``, then the first ``gcc``, ``objdump`` and ``ld`` on PATH, which may be the inspected
environment's. cuda-pathfinder calls it while cuda.bindings is imported.
"""

from __future__ import annotations


def find_no_library() -> None:
    """Let it answer in this process that it found nothing; its callers then go by the name that the loader knows."""
    import ctypes.util

    ctypes.util.find_library = _nothing


def _nothing(name: str) -> str | None:  # noqa: ARG001 - as callers know it
    return None
