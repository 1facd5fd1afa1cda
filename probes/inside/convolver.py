"""Engines of one convolution on the GPU of this process: given operands, run once, and their results verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..kit.figures import Fields
from .convolution import DRAWN, KINDS, Convolution, ConvolutionShape, stored
from .cuda import RuntimeGpu, RuntimeMemory
from .engine import BETWEEN, GIVEN, RESULT, Engine, Log, Way, build
from .works import Absent, compared

_WORKSPACE = 1 << 30
_RESERVE = 256 << 20
"""Bytes of device memory left to others."""
_PORTABLE = (8, 0)
"""What ``HardwareCompatibilityLevel.AMPERE_PLUS`` begins with."""
_HOW = f"{DRAWN} random elements against FP64 in Python, by the saved and loaded engine"


class Made(NamedTuple):
    """An engine that was saved, loaded and run once."""

    engine: Engine
    seconds: float
    """That building took."""
    result: RuntimeMemory
    verification: Fields


class Convolver:
    """Makes engines of ``shape`` with the module ``tensorrt``; raise Refused or DriverError where one of them fails."""

    def __init__(self, tensorrt: Any, shape: ConvolutionShape) -> None:
        self.shape, self.version, self.gpu = shape, tensorrt.__version__, RuntimeGpu()
        self._tensorrt, self._log = tensorrt, Log(tensorrt)
        self._convolution = Convolution(shape)

    @contextmanager
    def made(self, way: Way) -> Iterator[Made]:
        """An engine and its memory, for as long as the block lasts; raise Absent where there is not as much memory."""
        self._log.forget()
        if way.portable and self.gpu.capability() < _PORTABLE:
            raise Absent("engines for more than one kind of GPU are for compute capability 8.0 and newer")
        size = KINDS[way.precision].size
        sizes = {GIVEN: self.shape.inputs * size, RESULT: self.shape.results * size}
        if not way.fused:
            sizes[BETWEEN] = sizes[RESULT]
        free, needed = self.gpu.free_memory(), sum(sizes.values()) + _RESERVE
        if needed > free:
            raise Absent(f"{needed >> 20} MiB of device memory are needed, {free >> 20} MiB are free")
        plan = build(self._tensorrt, self._log, self._convolution, way, min(_WORKSPACE, (free - needed) // 2 + 1))
        engine = Engine(self._tensorrt, self._log, plan)
        memory: dict[str, RuntimeMemory] = {}
        try:
            for name, count in sizes.items():
                memory[name] = self.gpu.memory(count)
            engine.connect(memory)
            yield Made(engine, plan.seconds, memory[RESULT], self._verified(way, engine, memory))
        finally:
            for each in memory.values():
                each.free()

    def _verified(self, way: Way, engine: Engine, memory: dict[str, RuntimeMemory]) -> Fields:
        given, size = self._convolution.given(way.precision), KINDS[way.precision].size
        memory[GIVEN].write(given)
        engine.run(self.gpu.stream)
        self.gpu.synchronize()

        def found(place: int) -> float:
            return stored(way.precision, memory[RESULT].read(place * size, size))

        triples = self._convolution.triples(way.precision, given, found)
        return compared(triples, self._convolution.tolerance(way.precision), _HOW)
