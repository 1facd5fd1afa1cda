"""What each collective operation moves between ranks, what each rank then holds, and its bus bandwidth.

Sizes are those of nccl-tests: the bytes of the larger of a rank's two buffers. Bus bandwidth is size / time * factor,
which is what a rank's links carry in one direction, whatever the number of ranks (doc/PERFORMANCE.md of nccl-tests).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ROOT = 0
"""The rank that broadcasts, and that a reduction ends at."""


@dataclass(frozen=True)
class Due:
    """What a rank's receive buffer holds in the end, in elements; ``kernels/collectives.cu`` says how it is read."""

    count: int
    sum: bool = False
    source: int = 0
    chunk: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Operation:
    """A collective operation of ``ranks`` ranks on ``count`` elements in the larger buffer."""

    name: str
    function: str
    """NCCL's function; empty: made of sends and receives."""
    factor: Literal["1", "(n-1)/n", "2(n-1)/n"]
    sends: Literal["all", "part"] = "all"
    receives: Literal["all", "part"] = "all"
    in_place: bool = True
    """Whether it can be done in one buffer."""

    def bus_share(self, ranks: int) -> float:
        """Bus bandwidth over size / time."""
        return {"1": 1.0, "(n-1)/n": (ranks - 1) / ranks, "2(n-1)/n": 2 * (ranks - 1) / ranks}[self.factor]

    def due(self, rank: int, ranks: int, count: int) -> Due | None:
        """What ``rank`` holds afterwards; None: nothing that is defined."""
        part = count // ranks
        found: dict[str, Due | None] = {
            "all-reduce": Due(count, sum=True),
            "reduce": Due(count, sum=True) if rank == ROOT else None,
            "broadcast": Due(count, source=ROOT),
            "all-gather": Due(part * ranks, chunk=part),
            "reduce-scatter": Due(part, sum=True, offset=rank * part),
            "all-to-all": Due(part * ranks, chunk=part, offset=rank * part),
            "send-recv": Due(count, source=(rank - 1) % ranks),
        }
        return found[self.name]


OPERATIONS = {
    each.name: each
    for each in (
        Operation("all-reduce", "ncclAllReduce", "2(n-1)/n"),
        Operation("all-gather", "ncclAllGather", "(n-1)/n", sends="part"),
        Operation("reduce-scatter", "ncclReduceScatter", "(n-1)/n", receives="part"),
        Operation("broadcast", "ncclBroadcast", "1"),
        Operation("reduce", "ncclReduce", "1"),
        Operation("all-to-all", "", "(n-1)/n", in_place=False),
        Operation("send-recv", "", "1", in_place=False),
    )
}
"""In reading order."""
