"""Fresh random operands on each GPU, and the check of every element that it holds afterwards, on the GPU itself."""

from __future__ import annotations

import ctypes
import math
import struct
from dataclasses import dataclass
from typing import Literal

from ..arrays import ELEMENTS
from ..kernels import Module, number, pointer
from ..measurement import Bench

ROOT = 0  # The rank that broadcasts, and that a reduction ends at


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
    function: str  # NCCL's function; empty: made of sends and receives
    factor: Literal["1", "(n-1)/n", "2(n-1)/n"]
    sends: Literal["all", "part"] = "all"
    receives: Literal["all", "part"] = "all"
    in_place: bool = True  # Whether it can be done in one buffer
    sums: bool = False

    @property
    def sliced(self) -> bool:
        """Whether the larger buffer is divided among the ranks."""
        return "part" in (self.sends, self.receives) or self.name == "all-to-all"

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
        Operation("all-reduce", "ncclAllReduce", "2(n-1)/n", sums=True),
        Operation("all-gather", "ncclAllGather", "(n-1)/n", sends="part"),
        Operation("reduce-scatter", "ncclReduceScatter", "(n-1)/n", receives="part", sums=True),
        Operation("broadcast", "ncclBroadcast", "1"),
        Operation("reduce", "ncclReduce", "1", sums=True),
        Operation("all-to-all", "", "(n-1)/n", in_place=False),
        Operation("send-recv", "", "1", in_place=False),
    )
}
"""In reading order."""

SIZES = {kind: element.size for kind, element in ELEMENTS.items()}  # Bytes of an element
_BLOCK = 256
_BLOCKS_PER_SM = 16


@dataclass
class ComparedValues:
    checked: int = 0
    wrong: int = 0
    worst: float = 0.0  # Greatest error, relative to the sum of the operands' sizes

    def add(self, other: ComparedValues) -> None:
        self.checked += other.checked
        self.wrong += other.wrong
        self.worst = max(self.worst, other.worst)


def tolerance(kind: str, ranks: int) -> float:
    """Each of ``ranks`` - 1 sums may round once, and the result, relative to the sum of the operands' sizes."""
    return ELEMENTS[kind].epsilon * ranks


def operand(kind: str, seed: int, rank: int, index: int) -> float:
    """An operand as ``kernels/collectives.cu`` draws it."""
    drawn = _mixed(_mixed(seed + rank) ^ index)
    if kind == "int32":
        return float(struct.unpack("<i", struct.pack("<I", drawn >> 32))[0])
    bits = {"fp32": 24, "fp16": 11, "bf16": 8}[kind]
    half = float(1 << (bits - 1))
    return ((drawn >> (64 - bits)) - half) / half


def _mixed(word: int) -> int:
    mask = (1 << 64) - 1
    word = (word + 0x9E3779B97F4A7C15) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return word ^ (word >> 31)


class Values:
    def __init__(self, bench: Bench) -> None:
        self._device = bench.device
        self._module = Module(bench.device, bench.compiler.module("collectives"))
        self._grid = _BLOCKS_PER_SM * bench.device.sms
        self._found = bench.device.allocate(16)

    def draw(self, kind: str, address: int, count: int, seed: int, rank: int) -> None:
        given = (pointer(address), number(count), (seed, ctypes.c_ulonglong), (rank, ctypes.c_int))
        self._module.kernel(f"fill_{kind}").launch(self._grid, _BLOCK, *given)

    def compare(self, kind: str, address: int, due: Due, seed: int, ranks: int) -> ComparedValues:
        """Compare every element; integers and copies must be equal."""
        self._device.fill(self._found, 16, 0)
        given = (pointer(address), number(due.count), (seed, ctypes.c_ulonglong), (ranks, ctypes.c_int))
        wanted = ((int(due.sum), ctypes.c_int), (due.source, ctypes.c_int), number(due.chunk), number(due.offset))
        last = ((tolerance(kind, ranks), ctypes.c_double), pointer(self._found))
        self._module.kernel(f"check_{kind}").launch(self._grid, _BLOCK, *given, *wanted, *last)
        wrong, worst = struct.unpack("<Qd", bytes(self._device.read(self._found, 16)))
        return ComparedValues(due.count, wrong, worst if math.isfinite(worst) else 1e300)
