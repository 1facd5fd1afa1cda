"""Copies between two GPUs by their copy engines, and whether they go directly.

What is verified is what the timed copies left: every word of it, in memory that held something else before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from .device import call
from .host_copies import Side
from .measurement import Bench, Plan
from .runtime import CudaError, Fields, Unavailable, verification
from .verify import OTHER, SEED, Pattern

SIZE = 512 << 20
PLAN = Plan(samples=5, sample_seconds=0.006, warmup_seconds=0.005)
"""Eight GPUs have 28 pairs; samples of a copy engine over NVLink lie 0.2 % apart."""
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


class CopyEnd:
    """One GPU of a pair: what it sends, where it receives, and the pattern on it."""

    def __init__(self, bench: Bench, seed: int, *, sends: bool, receives: bool) -> None:
        self.bench, self.seed = bench, seed
        bench.device.enter()
        self._pattern = Pattern(bench, SIZE)
        self.words = self._pattern.words
        self.sent = bench.device.allocate(SIZE) if sends else 0
        self.received = bench.device.allocate(SIZE) if receives else 0
        if sends:
            self._pattern.write(self.sent, seed)
            bench.device.synchronize()

    def close(self) -> None:
        self.bench.device.enter()
        for address in filter(None, (self.sent, self.received)):
            self.bench.device.free(address)
        self._pattern.close()

    def poison(self) -> None:
        """Overwrite where it receives, and wait for that."""
        self.bench.device.enter()
        self._pattern.poison(self.received)
        self.bench.device.synchronize()

    def wrong(self, seed: int) -> int:
        """Words that it did not receive as they were sent."""
        self.bench.device.enter()
        return self._pattern.wrong(self.received, seed)


class PeerCopies:
    """Two GPUs that reach each other's memory; ``first`` sends to ``second``, and ``both`` also the other way."""

    def __init__(self, first: Bench, second: Bench, link: str, *, both: bool = False) -> None:
        if not can_reach(first, second) or not can_reach(second, first):
            raise Unavailable("CUDA says that they cannot reach each other's memory; copies would go through the host")
        self._first, self._second = first, second
        self._facts: Fields = {"unit": "B/s", "method": "copy engine", "detail": "written by the sender"}
        self._facts |= {"size": SIZE, "peer": second.uuid}
        self._link = link
        enable(first, second)
        enable(second, first)
        self._here = CopyEnd(first, SEED, sends=True, receives=both)
        self._there = CopyEnd(second, OTHER, sends=both, receives=True)
        first.device.enter()

    def close(self) -> None:
        self._here.close()
        self._there.close()
        disable(self._first, self._second)
        disable(self._second, self._first)

    def one_way(self) -> Fields:
        """From the first to the second, queued by the first."""
        copy = ("cuMemcpyDtoDAsync", self._there.received, self._here.sent, SIZE, self._first.device.stream)
        facts = {**self._facts, "variant": f"one direction, {self._link}"}
        poison = self._then_back(self._there.poison)
        found = self._first.rate("peer-to-peer", SIZE, lambda: call(*copy), PLAN, poison=poison, **facts)
        wrong = self._there.wrong(SEED)
        found["verification"] = verification(self._there.words, wrong, "every word, on the receiving GPU")
        self._first.device.enter()
        return found

    def both_ways(self) -> Fields:
        """Both at once, on a stream of the first each; the bytes of both count."""
        here, there, device = self._here, self._there, self._first.device
        device.enter()
        side = Side(device)

        def both() -> None:
            side.after()
            call("cuMemcpyDtoDAsync", there.received, here.sent, SIZE, device.stream)
            call("cuMemcpyDtoDAsync", here.received, there.sent, SIZE, side.stream)
            side.join()

        def poison() -> None:
            here.poison()
            there.poison()

        facts = {**self._facts, "variant": f"both directions, {self._link}"}
        again = self._then_back(poison)
        found = self._first.rate("peer-to-peer", 2 * SIZE, both, PLAN, poison=again, **facts)
        wrong = there.wrong(SEED) + here.wrong(OTHER)
        found["verification"] = verification(here.words + there.words, wrong, "every word, on both GPUs")
        device.enter()
        return found

    def _then_back(self, work: Callable[[], None]) -> Callable[[], None]:
        """``work``, which may enter the other GPU, and then the first one again."""

        def run() -> None:
            work()
            self._first.device.enter()

        return run
