"""Convolutions through cuDNN's graph API: forward, backward data, backward filter, with the fastest engine proposed."""

from __future__ import annotations

import math
import os
import random
import time
from contextlib import ExitStack
from ctypes import c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...inside.works import layer_for
from ...kit.figures import Fields
from ..arrays import RESERVE, Array, Arrays
from ..device import Unavailable
from ..measurement import Bench, Work, timed
from ..measurement import Plan as Timing
from . import graph as api
from .convolution_checks import verified
from .graph import Attribute, Graph, Plan, Proposal, Tensor, scratch
from .layer_shape import PRECISIONS, Layer, Precision, W, X, Y
from .library import TYPES, Cudnn, NotSupported

_FLOAT, _DESCRIPTOR = 4, 15
KINDS = {
    "forward": (api.FORWARD_KIND, range(700, 706), Y),
    "backward data": (api.BACKWARD_DATA_KIND, (706, 707, 708, 709, 710, 711), X),
    "backward filter": (api.BACKWARD_FILTER_KIND, (712, 713, 714, 715, 716, 717), W),
}
"""Operations: descriptor, numbers of the attributes, and which tensor is written."""
_CROSS_CORRELATION = 1
TRIED = 10
"""Proposals that are timed: as many as PyTorch's ``benchmark_limit``."""
TRIAL = Timing(samples=2, sample_seconds=0.002, warmup_seconds=0.0, enough=0.01)
FINAL = Timing(samples=5, sample_seconds=0.01, warmup_seconds=0.01, pause=0.01)
HOPELESS = 0.05
"""Seconds from which on a first run, loading of the kernel included, rules a plan out where a better one is known."""
SMALL_LAYER = Layer(images=2, channels=32, filters=32, side=14, window=3)
"""What is run where nothing is timed: its numbers can be drawn on the host."""


def operation(graph: Graph, layer: Layer, direction: str, layout: str, precision: Precision) -> None:
    """Append one to a graph."""
    kind, numbers, _ = KINDS[direction]
    pad = (layer.pad, layer.pad)
    described = graph.made(
        api.CONVOLUTION_KIND,
        {
            api.CONVOLUTION_DIMENSIONS: 2,
            api.CONVOLUTION_TYPE: TYPES["fp32"],
            api.CONVOLUTION_MODE: _CROSS_CORRELATION,
            api.CONVOLUTION_BEFORE: pad,
            api.CONVOLUTION_AFTER: pad,
            api.CONVOLUTION_STRIDES: (1, 1),
            api.CONVOLUTION_DILATIONS: (1, 1),
        },
    )
    tensors = {
        number: graph.tensor(Tensor(number, precision.kind, layer.dimensions(number), layer.strides(number, layout)))
        for number in (X, W, Y)
    }
    alpha, beta, convolution, first, second, third = numbers
    graph.add(
        kind,
        {
            Attribute(alpha, _FLOAT): 1.0,
            Attribute(beta, _FLOAT): 0.0,
            Attribute(convolution, _DESCRIPTOR): described,
            **{
                Attribute(number, _DESCRIPTOR): tensors[tensor]
                for number, tensor in zip((first, second, third), (W, X, Y), strict=True)
            },
        },
    )


@dataclass(frozen=True)
class Ready:
    """A convolution that can be run."""

    arrays: dict[int, Array]
    plan: Plan
    run: Work


class Convolutions:
    """Convolutions of one layer on one GPU."""

    def __init__(self, bench: Bench, library: Cudnn) -> None:
        self._bench, self._library = bench, library
        self._layer = Layer(*layer_for(bench.device.sms)) if bench.timing else SMALL_LAYER
        self._arrays = Arrays(bench)

    def measured(self, name: str, direction: str, layout: str) -> Fields:
        """Run one with the fastest of the engines proposed, time it and verify its result."""
        bench = self._bench
        with self._library.required(), ExitStack() as held:
            ready = self.ready(held, name, direction, layout)
            found = bench.rate(
                "cudnn-convolution",
                self._layer.operations,
                ready.run,
                FINAL,
                poison=ready.arrays[KINDS[direction][2]].poison,
                unit="FLOP/s",
                method="cudnn",
                detail=f"cuDNN {self._library.version}, engine {ready.plan.proposal.engine}, {self._layer}",
                library=self._library.path,
                precision=name,
                variant=f"{direction}, {layout}",
            )
            found["verification"] = verified(self._layer, direction, layout, PRECISIONS[name], ready.arrays)
        return found

    def ready(self, held: ExitStack, name: str, direction: str, layout: str) -> Ready:
        """Tensors of random numbers and the fastest plan for them, for as long as ``held`` is open."""
        precision, written = PRECISIONS[name], KINDS[direction][2]
        graph = held.enter_context(Graph(self._library))
        arrays = {number: held.enter_context(self._array(precision.kind, number, written)) for number in (X, W, Y)}
        operation(graph, self._layer, direction, layout, precision)
        plans = self._plans(graph, name)
        most = max(plan.workspace for plan in plans)
        workspace = held.enter_context(self._arrays.empty("int8", scratch(most)))
        pack = graph.pack({number: array.address for number, array in arrays.items()}, workspace.address)
        best = self._fastest(graph, plans, pack)
        return Ready(arrays, best, partial(graph.run, best, pack))

    def _array(self, kind: str, number: int, written: int) -> Any:
        count = self._layer.count(number)
        if number == written:
            return self._arrays.empty(kind, count)
        if self._bench.timing:
            return self._arrays.random(kind, count)
        draw = random.Random(os.urandom(16))  # noqa: S311  no secret
        return self._arrays.holding(kind, [draw.uniform(-1, 1) for _ in range(count)])

    def _plans(self, graph: Graph, name: str) -> list[Plan]:
        """What can be tried; raise NotSupported where cuDNN has nothing."""
        most = TRIED if self._bench.timing else 1
        room = self._bench.device.free_memory() - RESERVE
        refused: NotSupported | None = None
        for mode in (api.MODE_A, api.FALLBACK):
            proposals = (each for each in graph.proposals(mode) if _allowed(name, each))
            try:
                plans = [plan for plan in graph.plans(proposals, most) if plan.workspace <= room]
            except NotSupported as error:
                refused = refused or error
                continue
            if plans:
                return plans
        raise refused or Unavailable("every engine of cuDNN needs more memory than is free")

    def _fastest(self, graph: Graph, plans: list[Plan], pack: c_void_p) -> Plan:
        """Time each, as PyTorch does with ``cudnn.benchmark``: cuDNN's own first choice is not always the best."""
        best, least = plans[0], math.inf
        for plan in plans if len(plans) > 1 else ():
            begin = time.perf_counter()
            graph.run(plan, pack)
            self._bench.device.synchronize()
            if time.perf_counter() - begin > HOPELESS + 3 * least:
                continue
            seconds = min(timed(self._bench.device, partial(graph.run, plan, pack), TRIAL))
            if seconds < least:
                best, least = plan, seconds
        return best


def _allowed(name: str, proposal: Proposal) -> bool:
    """FP32 means that neither tensor cores nor shorter operands are used; the other precisions leave that to cuDNN."""
    return name != "fp32" or not proposal.notes & {api.TENSOR_CORE, api.DOWN_CONVERT}
