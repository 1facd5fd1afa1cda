"""TensorRT: a convolution with bias and ReLU, built in each precision, and what fusing them brings."""

from __future__ import annotations

import importlib
from functools import partial

from .inside.convolution import KINDS, Convolution, Shape, stored
from .inside.cuda import Gpu, Memory
from .inside.engine import BETWEEN, GIVEN, RESULT, Engine, Log, Way, build, computing, tactic
from .inside.figures import Absent, Fields, Figure, Measure, Refused, compared, rate, run_all
from .kit.harmless import give_up_making_devices
from .kit.out import Out
from .kit.tree import Tree
from .trials.libraries import mapped_files

PROBE = {
    "title": "TensorRT's convolution",
    "kind": "bench",
    "seconds": 150.0,
    "uses": "gpu",
    "per": "gpu",
    "runs_in": "environment",
    "tries": ["tensorrt", "tensorrt-cu*", "nvidia-tensorrt"],
    "scopes": ["node"],
    "fills": ["measurements"],
}

SHAPE = Shape(64, 128, 56, 56, 128)
"""As in the middle of a residual network; its tensors are larger than an L2 cache in every precision but INT8."""
WORKSPACE = 1 << 30
RESERVE = 256 << 20
"""Bytes of device memory left to others."""
NAME = "tensorrt-convolution"
WAYS = {
    "fused": {},
    "unfused": {"fused": False},
    "fused, portable": {"portable": True},
}


def collect(tree: Tree, out: Out) -> None:
    """Measure each precision fused and not, and what an engine for several kinds of GPU costs."""
    if not tree.request["bench"].get("timing", True):
        out.absent("tried by the deep probe of TensorRT")
        return
    give_up_making_devices()
    run_all(tree, out, measures(SHAPE))


def measures(shape: Shape) -> dict[Figure, Measure]:
    """What is measured, by what tells it apart; the fused engines first."""
    held: list[Convolver] = []

    def measured(way: Way) -> Fields:
        if not held:
            held.append(Convolver(shape))
        return held[0].measured(way)

    asked = [(precision, "fused") for precision in KINDS]
    asked += [(precision, "unfused") for precision in KINDS]
    asked += [("fp16", "fused, portable")]
    return {
        Figure(NAME, precision, variant=variant): partial(measured, Way(precision, **WAYS[variant]))
        for precision, variant in asked
    }


class Convolver:
    """Engines of one convolution on the GPU of this process."""

    def __init__(self, shape: Shape) -> None:
        try:
            self._tensorrt = importlib.import_module("tensorrt")
        except ImportError as error:
            raise Refused(f"TensorRT cannot be imported: {error}") from error
        self._log = Log(self._tensorrt)
        self._gpu = Gpu()
        self._convolution = Convolution(shape)
        self._seconds: dict[Way, float] = {}

    def measured(self, way: Way) -> Fields:
        """Build, save, load and inspect an engine, verify what it computes, and time it."""
        self._log.forget()
        shape, kind = self._convolution.shape, KINDS[way.precision]
        sizes = {GIVEN: shape.inputs * kind.size, RESULT: shape.results * kind.size}
        sizes.update({} if way.fused else {BETWEEN: shape.results * kind.size})
        free = self._gpu.free_memory()
        needed = sum(sizes.values()) + RESERVE
        if needed > free:
            raise Absent(f"{needed >> 20} MiB of device memory are needed, {free >> 20} MiB are free")
        plan = build(self._tensorrt, self._log, self._convolution, way, min(WORKSPACE, (free - needed) // 2))
        engine = Engine(self._tensorrt, self._log, plan)
        layers = engine.layers()
        memory: dict[str, Memory] = {}
        try:
            for name, size in sizes.items():
                memory[name] = self._gpu.memory(size)
            verified = self._verified(way, engine, memory)
            samples = self._gpu.timed(partial(engine.run, self._gpu.stream))
        finally:
            for each in memory.values():
                each.free()
        told = [f"TensorRT {self._tensorrt.__version__}", _fusion(computing(layers), way)]
        told += [f"built in {plan.seconds:.1f} s", f"saved in {engine.size / 2**20:.1f} MiB, {engine.portability()}"]
        return {
            **rate(shape.operations, samples, "OP/s" if way.precision == "int8" else "FLOP/s"),
            "method": "tensorrt",
            "detail": "; ".join([*told, *filter(None, [tactic(layers)])]),
            "shape": list(shape[:4]),
            "library": _library(),
            **verified,
        }

    def _verified(self, way: Way, engine: Engine, memory: dict[str, Memory]) -> Fields:
        """One run, its result compared at random places with FP64."""
        given, result = self._convolution.given(way.precision), memory[RESULT]
        memory[GIVEN].write(given)
        engine.connect(memory)
        engine.run(self._gpu.stream)
        self._gpu.synchronize()
        size = KINDS[way.precision].size

        def found(place: int) -> float:
            return stored(way.precision, result.read(place * size, size))

        triples = self._convolution.triples(way.precision, given, found)
        how = "64 random elements against FP64 in Python, by the saved and loaded engine"
        return compared(triples, self._convolution.tolerance(way.precision), how)


def _fusion(names: list[str], way: Way) -> str:
    if len(names) == 1:
        return "convolution, bias and ReLU are one layer" if way.fused else "one layer, with two outputs"
    return f"{len(names)} layers compute"


def _library() -> str | None:
    """The TensorRT that this process has loaded."""
    return next((path for path in mapped_files() if "/libnvinfer.so" in path), None)
