"""Whether a GPU is at work for somebody else.

Judged by what was sampled: the list of processes is empty inside a container.
"""

from __future__ import annotations

from envcheck.snapshot import Gpu

BUSY = 0.2
"""Share of the time in which a kernel ran, above which a GPU counts as busy; a desktop's stays below."""
IDLE_BYTES = 1 << 30
IDLE_SHARE = 0.02
"""Device memory that drivers, a desktop and waiting daemons hold, in bytes and as a share of all; above their sum
somebody else is at work."""


def at_work(utilisation: float | None, used: int | None, total: int | None) -> str:
    """In words, empty where the GPU is idle or it was not checked; ``utilisation`` is a share, memory is in bytes."""
    if utilisation is not None and utilisation > BUSY:
        return f"a kernel ran {utilisation:.0%} of the time"
    if used is not None and total is not None and used > IDLE_BYTES + IDLE_SHARE * total:
        return f"{used / 2**30:.1f} of {total / 2**30:.0f} GiB of its memory are in use"
    return ""


def in_use(gpu: Gpu) -> str:
    """How others use the GPU, by what the driver sampled, in words; empty if it is idle.

    The memory of a GPU in MIG mode tells nothing: its instances are used by themselves.
    """
    memory = None if gpu.mig and gpu.mig.enabled else gpu.memory
    return at_work(gpu.utilisation, memory.used if memory else None, memory.total if memory else None)
