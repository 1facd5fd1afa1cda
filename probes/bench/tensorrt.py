"""TensorRT: a convolution with bias and ReLU, built in each precision, and what fusing them brings."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache, partial

from ..common.harmless import give_up_making_devices
from ..common.out import Out
from ..common.system import mapped_files
from ..common.tree import Tree
from ..framework_bench.convolution import KINDS, ConvolutionShape
from ..framework_bench.engine import Convolver, Way, computing, tactic
from ..framework_bench.workloads import rate
from ..measuring.runtime import Fields, FigureKey, LibraryError, Measure, run_all

PROBE = {
    "title": "TensorRT's convolution",
    "seconds": 150.0,
    "tries": ["tensorrt", "tensorrt-cu*", "nvidia-tensorrt"],
    "scopes": ["node"],
}

SHAPE = ConvolutionShape(64, 128, 56, 56, 128)
"""As in the middle of a residual network; its tensors are larger than an L2 cache in every precision but INT8."""
NAME = "tensorrt-convolution"
WAYS = {"fused": {}, "unfused": {"fused": False}, "fused, portable": {"portable": True}}


def collect(tree: Tree, out: Out) -> None:
    """Measure each precision fused and not, and what an engine for several kinds of GPU costs."""
    asked = tree.request["bench"]
    if not asked.get("timing", True):
        out.absent("tried by the deep probe of TensorRT")
        return
    give_up_making_devices()
    run_all(out, measures(SHAPE), asked.get("gpu"), asked.get("only") or (), inside=True)


def measures(shape: ConvolutionShape) -> dict[FigureKey, Measure]:
    """The measures, by figure; the fused engines first."""

    def made() -> Convolver:
        try:
            return Convolver(importlib.import_module("tensorrt"), shape)
        except ImportError as error:
            raise LibraryError(f"TensorRT cannot be imported: {error}") from error

    convolver = lru_cache(maxsize=None)(made)
    asked = [(precision, "fused") for precision in KINDS]
    asked += [(precision, "unfused") for precision in KINDS]
    asked += [("fp16", "fused, portable")]
    return {
        FigureKey(NAME, precision, variant=variant): partial(_measured, convolver, Way(precision, **WAYS[variant]))
        for precision, variant in asked
    }


def _measured(convolver: Callable[[], Convolver], way: Way) -> Fields:
    try:
        return measured(convolver(), way)
    except LibraryError as error:
        raise LibraryError(str(error), _library() or "") from error


def measured(convolver: Convolver, way: Way) -> Fields:
    """Build, save, load and inspect an engine, verify what it computes, and time it."""
    with convolver.made(way) as made:
        layers = made.engine.layers()
        samples = convolver.gpu.timed(partial(made.engine.run, convolver.gpu.stream))
    names = computing(layers)
    alone = "convolution, bias and ReLU are one layer" if way.fused else "one layer, with two outputs"
    fusion = alone if len(names) == 1 else f"{len(names)} layers compute"
    details = [f"TensorRT {convolver.version}", fusion, f"built in {made.seconds:.1f} s"]
    details += [f"saved in {made.engine.size / 2**20:.1f} MiB, {made.engine.portability()}", tactic(layers)]
    shape, unit = convolver.shape, "OP/s" if way.precision == "int8" else "FLOP/s"
    facts = {"method": "tensorrt", "detail": "; ".join(filter(None, details)), "shape": list(shape[:4])}
    verified = {"library": _library(), "verification": made.verification}
    return {**rate(shape.operations, samples, unit), **facts, **verified}


def _library() -> str | None:
    """The TensorRT that this process has loaded."""
    return next((path for path in mapped_files() if "/libnvinfer.so" in path), None)
