"""Which figures say nothing about a GPU: those of one that others used, or of a part of one."""

from __future__ import annotations

from envcheck.compat.at_work import at_work
from envcheck.snapshot import Conditions, Gpu, Measurement


def why_not_judged(gpu: Gpu, measured: Measurement) -> str:
    """Why a measurement may not be judged; empty where it may."""
    if measured.value is None:
        return measured.missing or "it could not be measured"
    if gpu.mig is not None and gpu.mig.enabled:
        return "the GPU is in MIG mode: a part of it was measured"
    busy = _at_work_before(gpu, measured.conditions) if measured.conditions else ""
    return f"another program was on the GPU ({busy})" if busy else ""


def _at_work_before(gpu: Gpu, conditions: Conditions) -> str:
    before, memory = conditions.utilisation_before, gpu.memory
    return at_work(None if before is None else before / 100, conditions.memory_before, memory.total if memory else None)
