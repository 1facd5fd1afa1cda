"""Copies between two GPUs by their copy engines, and whether they go directly."""

from __future__ import annotations

from contextlib import suppress

from ._gpu_call import CudaError, Unavailable, call
from ._gpu_measurement import Bench, Fields
from ._gpu_time import Plan
from ._links_host import Side
from ._links_pattern import Pattern

SIZE = 512 << 20
PLAN = Plan(samples=7, sample_seconds=0.015, warmup_seconds=0.01)
ALREADY_ENABLED = 704


def can_reach(first: Bench, second: Bench) -> bool:
    """Whether ``first`` can read and write ``second``'s memory directly."""
    return bool(call("cuDeviceCanAccessPeer", first.device.handle, second.device.handle))


def enable(first: Bench, second: Bench) -> None:
    """Let ``first`` reach ``second``'s memory."""
    first.device.enter()
    try:
        call("cuCtxEnablePeerAccess", second.device.context, 0)
    except CudaError as error:
        if error.code != ALREADY_ENABLED:
            raise


def disable(first: Bench, second: Bench) -> None:
    with suppress(CudaError):
        first.device.enter()
        call("cuCtxDisablePeerAccess", second.device.context)


class PeerCopies:
    """Buffers on two GPUs; ``first`` writes to ``second``."""

    def __init__(self, first: Bench, second: Bench, link: str) -> None:
        if not can_reach(first, second) or not can_reach(second, first):
            raise Unavailable("CUDA says that they cannot reach each other's memory; copies would go through the host")
        self._first, self._second = first, second
        self._facts: Fields = {"unit": "B/s", "method": "copy engine", "size": SIZE, "peer": second.uuid}
        self._link = link
        enable(first, second)
        enable(second, first)
        self._buffers = []
        for bench in (first, second):
            bench.device.enter()
            self._buffers.append([bench.device.allocate(SIZE) for _ in range(2)])
        first.device.enter()

    def close(self) -> None:
        for bench, addresses in zip((self._first, self._second), self._buffers, strict=True):
            bench.device.enter()
            for address in addresses:
                bench.device.free(address)
        disable(self._first, self._second)
        disable(self._second, self._first)

    def one_way(self) -> Fields:
        """From the first to the second, queued by the first."""
        (mine, _), (theirs, _) = self._buffers
        self._first.device.enter()
        stream = self._first.device.stream
        found = self._first.rate(
            "peer-to-peer",
            SIZE,
            lambda: call("cuMemcpyDtoDAsync", theirs, mine, SIZE, stream),
            PLAN,
            detail="written by the sender",
            variant=f"one direction, {self._link}",
            **self._facts,
        )
        found["verification"] = self._verified()
        return found

    def both_ways(self) -> Fields:
        """Both at once, each queued by its sender; the bytes of both count."""
        (mine, into_mine), (theirs, into_theirs) = self._buffers
        device = self._first.device
        device.enter()
        other = Side(device)

        def both() -> None:
            other.after()
            call("cuMemcpyDtoDAsync", into_theirs, mine, SIZE, device.stream)
            call("cuMemcpyDtoDAsync", into_mine, theirs, SIZE, other.stream)
            other.join()

        variant = f"both directions, {self._link}"
        return self._first.rate("peer-to-peer", 2 * SIZE, both, PLAN, variant=variant, **self._facts)

    def _verified(self) -> Fields:
        """Write a pattern on the first, send it, and compare it on the second."""
        (mine, _), (theirs, _) = self._buffers
        self._second.device.enter()
        there = Pattern(self._second, SIZE)
        there.poison(theirs)
        self._second.device.synchronize()
        self._first.device.enter()
        here = Pattern(self._first, SIZE)
        here.write(mine)
        call("cuMemcpyDtoDAsync", theirs, mine, SIZE, self._first.device.stream)
        self._first.device.synchronize()
        here.close()
        self._second.device.enter()
        found = there.verified(theirs, "every word, on the receiving GPU")
        there.close()
        self._first.device.enter()
        return found
