"""Which operations are run, in which sizes, and by how many processes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .values import OPERATIONS, SIZES
from .worker import NcclStep

LARGEST = 8 << 30
SMALLEST = 8
QUICK = 512 << 20
_SMALL = 64 << 10
"""Bytes up to which time is latency: many runs, since each is short, and in graphs, since queueing one takes longer."""
_PER_GRAPH = 50
_WATCHED = 64 << 20


@dataclass(frozen=True)
class NcclJob:
    """Operations that one communicator of all GPUs does."""

    apart: bool
    """Whether each GPU has a process of its own, or one has all."""
    steps: tuple[NcclStep, ...]
    seconds: float
    rounds: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Pairs of ranks that work together afterwards; each rank is in one pair of a round at most."""
    pair_steps: tuple[NcclStep, ...] = ()
    choices: bool = False
    """Whether NCCL logs which algorithm it chose for each operation."""


def jobs(ranks: int, *, full: bool, only: Collection[str]) -> tuple[NcclJob, ...]:
    """What is measured: every operation, in a quick run one, or those that ``only`` names as quantities."""
    names = [name for name in OPERATIONS if not only or f"nccl-{name}" in only]
    if not names:
        return ()
    if not full:
        sizes = (SMALLEST, QUICK) if only else (QUICK,)
        quick = [step for name in (names if only else ["all-reduce"]) for step in _sweep(name, sizes, ranks)]
        quick = quick if only else [step for step in quick if not step.in_place]
        return (NcclJob(True, tuple(quick), 6.0, choices=True),)
    every = [SMALLEST]
    while every[-1] < LARGEST:
        every.append(every[-1] * 4)
    apart = [step for name in names for step in _sweep(name, every, ranks)]
    together = [step for name in names for step in _sweep(name, (SMALLEST, 32 << 10, 1 << 20, QUICK), ranks)]
    # Sums in the other types: whether they are right, with the time that they take.
    kinds = [
        NcclStep(name, _moved(name, _WATCHED, ranks, kind), kind=kind, samples=3, seconds=0.005)
        for name in names
        if name in ("all-reduce", "reduce", "reduce-scatter")
        for kind in ("int32", "fp16", "bf16")
    ]
    # Each pair of more than two GPUs, by the two operations that show a link.
    linking = [name for name in names if name in ("all-reduce", "send-recv") and ranks > 2]
    pair_steps = tuple(NcclStep(name, QUICK, samples=3, seconds=0.01) for name in linking)
    pairs = rounds(ranks) if linking else ()
    return NcclJob(True, (*apart, *kinds), 20.0, pairs, pair_steps), NcclJob(False, tuple(together), 8.0)


def rounds(ranks: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Every pair once, in as few rounds as possible (the circle method); a rank that is left over waits."""
    seats: list[int | None] = [*range(ranks), *([None] if ranks % 2 else [])]
    half, found = len(seats) // 2, []
    for _ in range(len(seats) - 1):
        opposite = zip(seats[:half], reversed(seats[half:]), strict=True)
        found.append(tuple(sorted((min(a, b), max(a, b)) for a, b in opposite if a is not None and b is not None)))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return tuple(found)


def _moved(name: str, size: int, ranks: int, kind: str = "fp32") -> int:
    """``size`` less the elements that do not divide among the ranks, which nobody moves; one for each at least."""
    least = SIZES[kind] * (ranks if OPERATIONS[name].sliced else 1)
    return max(size // least, 1) * least


def _sweep(name: str, sizes: Iterable[int], ranks: int) -> list[NcclStep]:
    """Out of place, and in place where that exists."""
    found = []
    for size in sizes:
        given = _moved(name, size, ranks)
        for in_place in (False, True) if OPERATIONS[name].in_place else (False,):
            if size <= _SMALL:
                found.append(NcclStep(name, given, in_place=in_place, samples=7, seconds=0.002, per_graph=_PER_GRAPH))
            else:
                watch = size >= _WATCHED
                found.append(NcclStep(name, given, in_place=in_place, samples=3, seconds=0.01, watch=watch))
    return found
