"""What the chip does by itself: caches, latencies, atomic operations, launches, multiply-adds."""

from __future__ import annotations

from functools import cache, partial

from ..common.figures import FigureKey
from ..common.out import Out
from ..common.tree import Tree
from ..measuring.caches import Caches
from ..measuring.compute import TENSOR, VECTOR, and_wait, fma, in_graph, mma
from ..measuring.measurement import Bench, Measure, with_full

PROBE = {
    "title": "Caches, latencies and instructions",
    "kind": "bench",
    "seconds": 60.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node"],
    "fills": ["measurements"],
}


def collect(tree: Tree, out: Out) -> None:
    """Measure what ``--full`` comprises beyond memory, products and links."""
    with_full(tree, out, _measures)


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    caches = cache(lambda: Caches(bench))
    by_name: dict[str, Measure] = {
        "l2-read": lambda bench: caches().l2_read(bench),
        "shared-memory-read": lambda bench: caches().shared_read(bench),
        "texture-fetch": lambda bench: caches().texture(bench),
        "atomics": lambda bench: caches().atomics(bench),
        "latency-l1": lambda bench: caches().latency("latency-l1", bench),
        "latency-l2": lambda bench: caches().latency("latency-l2", bench),
        "latency-device-memory": lambda bench: caches().latency("latency-device-memory", bench),
        "kernel-launch": in_graph,
        "launch-and-sync": and_wait,
    }
    able = bench.device.capability
    measures = {FigureKey(name): measure for name, measure in by_name.items()}
    measures |= {FigureKey("fma", name): partial(fma, name) for name, kind in VECTOR.items() if able >= kind.least}
    measures |= {FigureKey("mma", name): partial(mma, name) for name, kind in TENSOR.items() if able >= kind.least}
    return measures
