"""Which operations are run, in which sizes, and by how many processes; and what the workers said, as measurements."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ...common.out import Out, clean
from ..measurement import measurement, missing
from ..runtime import Fields, verification
from .library import choices, connections, last_words, read_logs
from .supervisor import Fault, Line
from .values import OPERATIONS, SIZES, tolerance
from .worker import NcclRank, NcclStep, binary

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

    apart: bool  # Whether each GPU has a process of its own, or one has all
    steps: tuple[NcclStep, ...]
    seconds: float
    rounds: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Pairs of ranks that work together afterwards; each rank is in one pair of a round at most."""
    pair_steps: tuple[NcclStep, ...] = ()
    choices: bool = False  # Whether NCCL logs which algorithm it chose for each operation


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
    for given, size in {_moved(name, size, ranks): size for size in sizes}.items():
        for in_place in (False, True) if OPERATIONS[name].in_place else (False,):
            if size <= _SMALL:
                found.append(NcclStep(name, given, in_place=in_place, samples=7, seconds=0.002, per_graph=_PER_GRAPH))
            else:
                watch = size >= _WATCHED
                found.append(NcclStep(name, given, in_place=in_place, samples=3, seconds=0.01, watch=watch))
    return found


_HOW = "every element on every GPU, against FP64"


class Figures:
    """The results of a job, as they come in."""

    def __init__(self, job: NcclJob, ranks: Sequence[NcclRank], shares: Sequence[Sequence[NcclRank]], out: Out) -> None:
        self._job, self._ranks, self._shares, self._out = job, ranks, shares, out
        self._heard: dict[int, list[Fields]] = {}
        self._heard_of_pairs: dict[tuple[int, int, int], list[Fields]] = {}
        self._version = self._path = ""

    def heard(self, _worker: int, line: Line) -> None:
        if "version" in line:
            self._version, self._path = line["version"], line["path"]
        result = line.get("result")
        if result and "pair" in result:
            self._heard_of_pairs.setdefault((*result["pair"], result["step"]), []).append(result)
        elif result:
            self._heard.setdefault(result["step"], []).append(result)

    def send(self, faults: Sequence[Fault], folder: str) -> None:
        lines = read_logs(folder)
        facts = {"ranks": len(self._ranks), "processes": len(self._shares), "gpus": [rank.uuid for rank in self._ranks]}
        connected = {"source": "bench", **facts, **connections(lines)}
        chosen = choices(lines)
        parts = ((number, self._heard.get(number, [])) for number in range(len(self._job.steps)))
        steps = {number: _merged(heard, len(self._shares)) for number, heard in parts}
        found, last_lines = [], []
        for name in dict.fromkeys(step.operation for step in self._job.steps):
            found += self._of_operation(name, steps, connected, chosen)
        # Bus bandwidth of two GPUs at a time.
        for pair in (each for pairs in self._job.rounds for each in pairs):
            shares = sum(any(rank.number in pair for rank in share) for share in self._shares)
            gpus = [self._ranks[rank].uuid for rank in pair]
            own = {**connected, "ranks": 2, "processes": 2, "gpus": gpus}
            for number, step in enumerate(self._job.pair_steps):
                result = _merged(self._heard_of_pairs.get((*pair, number), []), shares)
                found.append(self._bandwidth(step, result, gpus, "pair", own, peer=gpus[1]))
        if faults:
            found = [each for each in found if "value" in each]
            last_lines = [clean(line) for line in last_words(lines)]
            found.append(self._failure(faults, connected, last_lines))
        self._out.fact({"measurements": found})
        if faults and last_lines:
            self._out.fact({"observed_errors": [{"source": "NCCL's log", "text": line} for line in last_lines]})

    def _of_operation(
        self, name: str, steps: dict[int, Fields], connected: Fields, chosen: dict[tuple[str, int], tuple[str, str]]
    ) -> list[Fields]:
        """Bandwidth at the largest size with those of the others, latency at the smallest, and other types."""
        sweep: list[tuple[NcclStep, Fields]] = []
        found, gpus = [], [rank.uuid for rank in self._ranks]
        for number, result in steps.items():
            step = self._job.steps[number]
            if step.operation != name:
                continue
            if step.kind != "fp32":
                found.append(self._bandwidth(step, result, gpus, self._variant(), connected))
            else:
                sweep.append((step, result))
        outside = [(step, result) for step, result in sweep if not step.in_place and "seconds" in result]
        if not outside:
            why = next((result["missing"] for _, result in sweep if "missing" in result), "not measured")
            return [missing(f"nccl-{name}", self._ranks[0].uuid, why, variant=self._variant(), precision="fp32")]
        by_size: dict[int, Fields] = {}
        for step, result in sweep:
            if "seconds" not in result:
                continue
            point = by_size.setdefault(step.size, {"source": "bench", "size": step.size})
            seconds = statistics.median(result["seconds"])
            rate = step.size / seconds * OPERATIONS[name].bus_share(len(self._ranks))
            if step.in_place:
                point |= {"seconds_in_place": seconds, "bandwidth_in_place": rate}
            else:
                point |= {"seconds": seconds, "bandwidth": rate}
        largest, result = outside[-1]
        algorithm = chosen.get((OPERATIONS[name].function.removeprefix("nccl"), largest.size))
        words = {"algorithm": algorithm[0].lower(), "protocol": algorithm[1].lower()} if algorithm else {}
        done = [result for _, result in sweep if "seconds" in result]
        checked, wrong = (sum(each[key] for each in done) for key in ("checked", "wrong"))
        worst, allowed = max(each["worst"] for each in done), tolerance("fp32", len(self._ranks))
        checks = verification(checked, wrong, _HOW, worst=worst, tolerance=allowed)
        described = {**connected, **words, "points": list(by_size.values())}
        whole = {**result, "verification": checks}
        made = [self._bandwidth(largest, whole, gpus, self._variant(), described)]
        smallest, result = outside[0]
        if smallest.size <= max(SMALLEST, 4 * len(self._ranks)):
            variant = self._words(binary(smallest.size))
            made.append(self._record(smallest, result["seconds"], "s", variant, result, connected))
        return made + found

    def _bandwidth(
        self, step: NcclStep, result: Fields, gpus: Sequence[str], variant: str, collective: Fields, **facts: str
    ) -> Fields:
        """Bus bandwidth of a step on some GPUs; verified by the step's own result, unless that has a verification."""
        if "seconds" not in result:
            why = result["missing"]
            return missing(f"nccl-{step.operation}", gpus[0], why, variant=variant, precision=step.kind, **facts)
        share = OPERATIONS[step.operation].bus_share(len(gpus))
        samples = [step.size / seconds * share for seconds in result["seconds"]]
        allowed, worst = tolerance(step.kind, len(gpus)), result["worst"]
        checks = verification(result["checked"], result["wrong"], _HOW, worst=worst, tolerance=allowed)
        verified = {"verification": checks, **result}
        return {**self._record(step, samples, "B/s", variant, verified, collective), "gpu": gpus[0], **facts}

    def _record(
        self, step: NcclStep, samples: list[float], unit: str, variant: str, result: Fields, collective: Fields
    ) -> Fields:
        words = [f"NCCL {self._version}", binary(step.size), *collective.get("transports", ())[:3]]
        words += ["queued by CUDA graphs"] if result.get("in_graphs") else []
        facts: Fields = {"unit": unit, "method": "NCCL", "detail": ", ".join(words), "precision": step.kind}
        facts |= {"size": step.size, "variant": variant, "library": self._path}
        facts |= {"verification": result.get("verification"), "collective": collective}
        name, conditions = f"nccl-{step.operation}", result.get("conditions") or {}
        return measurement(name, self._ranks[0].uuid, samples, conditions=conditions, **facts)

    def _variant(self) -> str:
        return self._words(f"{len(self._ranks)} GPUs")

    def _words(self, first: str) -> str:
        """Figures of one process for all GPUs say so; the others have a process for each, as jobs mostly do."""
        return first if self._job.apart else f"{first}, 1 process"

    def _failure(self, faults: Sequence[Fault], connected: Fields, last_lines: list[str]) -> Fields:
        """The first fault, in words that name the rank, its GPU and what it did."""
        fault = faults[0]
        share = self._shares[fault.worker]
        who = ", ".join(f"rank {rank.number} ({rank.title})" for rank in share)
        text = f"{who}: {fault.text}, during: {fault.step}"
        name = f"nccl-{self._job.steps[0].operation}"
        found = missing(name, share[0].uuid, clean(text), variant=self._variant(), precision="fp32")
        # Whether NCCL is at fault, as far as anybody can tell: not where somebody ended or stopped a rank.
        crashed = fault.kind in ("exited", "stuck") or any(name in fault.text for name in _CRASHES)
        found["failed"] = fault.line.get("kind") in ("LibraryError", "CudaError") if fault.kind == "failed" else crashed
        found["collective"] = {**connected, "log": last_lines}
        library = fault.line.get("library") or self._path
        return {**found, "library": library} if library else found


def _merged(parts: Sequence[Fields], processes: int) -> Fields:
    """A step's result of all processes: the slowest decides."""
    if len(parts) < processes:
        return {"missing": "not measured: the time for it was over"}
    refused = next((part for part in parts if "missing" in part), None)
    if refused:
        return refused
    # The clocks of the first GPU, and the errors of all.
    conditions = [part["conditions"] for part in parts if part.get("conditions")]
    rose: Counter[str] = sum((Counter(each.get("rose", {})) for each in conditions), Counter())
    xids = sorted({xid for each in conditions for xid in each.get("xids", ())})
    first = next((each for each in conditions if "source" in each), {"source": "nvml"})
    return {
        "seconds": [max(each) for each in zip(*(part["seconds"] for part in parts), strict=False)],
        "checked": sum(part["checked"] for part in parts),
        "wrong": sum(part["wrong"] for part in parts),
        "worst": max(part["worst"] for part in parts),
        "conditions": {**first, "rose": dict(rose), "xids": xids} if conditions else None,
    }


_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")
