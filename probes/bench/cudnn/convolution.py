"""Convolutions through cuDNN's graph API: forward, backward data, backward filter, with the fastest engine proposed.

A result is checked at elements drawn at random against sums in FP64 on the CPU, of the numbers that lie on the GPU.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from ctypes import c_void_p
from dataclasses import dataclass, replace
from functools import partial
from operator import mul
from typing import Any

from ..arrays import ELEMENTS, RESERVE, Array, Arrays, compared
from ..device import Unavailable
from ..measurement import Bench, Fields, Work, timed
from ..measurement import Plan as Timing
from ..verify import decoded
from . import graph as api
from .graph import Attribute, Graph, Plan, Proposal, Tensor, scratch
from .library import TYPES, Cudnn, NotSupported

_FLOAT, _DESCRIPTOR = 4, 15
X, W, Y = 1, 2, 3
"""Unique IDs: what is convolved (or its gradient), the filter (or its gradient), the result (or its gradient)."""
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
FINAL = Timing(samples=5, sample_seconds=0.01, warmup_seconds=0.01, pause=0.02)
HOPELESS = 0.05
"""Seconds from which on a first run, loading of the kernel included, rules a plan out where a better one is known."""
C = 4.0
"""Tolerated error as a multiple of the expected one."""
IMAGES, PER_IMAGE, FILTER_SIDE = 4, 64, 6
"""Elements drawn: so many images and elements of each; of a filter's gradient so many channels of either side."""


@dataclass(frozen=True)
class Precision:
    """Type of the tensors, and how far a sum may be rounded; the epsilons are relative to one."""

    kind: str
    input_epsilon: float
    """Rounding of the operands before they are multiplied."""
    sum_epsilon: float
    least: tuple[int, int]
    """First compute capability that has it."""


PRECISIONS = {
    "fp32": Precision("fp32", 0.0, 2**-22, (5, 0)),
    "tf32": Precision("fp32", 2**-10, 2**-22, (8, 0)),
    "fp16": Precision("fp16", 0.0, 2**-22, (5, 3)),
    "bf16": Precision("bf16", 0.0, 2**-22, (8, 0)),
}


@dataclass(frozen=True)
class Layer:
    """A convolution with stride 1 whose result is as large as what is convolved."""

    images: int
    channels: int
    filters: int
    side: int
    window: int

    def __str__(self) -> str:
        """``128x256x28x28, 256 filters of 3x3``."""
        result = f"{self.images}x{self.channels}x{self.side}x{self.side}"
        return f"{result}, {self.filters} filters of {self.window}x{self.window}"

    @property
    def pad(self) -> int:
        return self.window // 2

    @property
    def operations(self) -> float:
        """Multiplications and additions, those with padding included (as everybody counts)."""
        return 2.0 * self.images * self.filters * self.channels * self.side**2 * self.window**2

    def dimensions(self, tensor: int) -> tuple[int, int, int, int]:
        """Of ``X``: images, channels, rows, columns; of ``W``: filters, channels, rows, columns."""
        return {
            X: (self.images, self.channels, self.side, self.side),
            W: (self.filters, self.channels, self.window, self.window),
            Y: (self.images, self.filters, self.side, self.side),
        }[tensor]

    def strides(self, tensor: int, layout: str) -> tuple[int, int, int, int]:
        """Distances in elements; ``layout`` is ``NCHW`` or ``NHWC``."""
        _, depth, rows, columns = self.dimensions(tensor)
        size = rows * columns
        return (depth * size, size, columns, 1) if layout == "NCHW" else (depth * size, 1, columns * depth, depth)

    def count(self, tensor: int) -> int:
        return math.prod(self.dimensions(tensor))


SMALL_LAYER = Layer(images=2, channels=32, filters=32, side=14, window=3)
"""What is run where nothing is timed: its numbers can be drawn on the host."""
LAYER = Layer(images=128, channels=256, filters=256, side=28, window=3)
"""A layer of ResNet-50 (its third stage), with a batch that fills an H200."""
LARGE = 60
"""Multiprocessors from which on a GPU gets that batch; smaller ones, which take longer, get a share of it."""


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
        batch = LAYER.images if bench.device.sms >= LARGE else LAYER.images // 8
        self._layer = replace(LAYER, images=batch) if bench.timing else SMALL_LAYER
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


# Verification.


def tolerance(precision: Precision, terms: int) -> float:
    """Allowed error of an element in units of its size, or of the expected size where that is larger.

    The operands are uniform in [-1, 1): a sum of ``terms`` products is about sqrt(terms) / 3. Its error is random, and
    grows with the roundings of the operands (each relative to a product) and of the sum (each relative to what was
    summed); the tolerance is c * epsilon * sqrt(terms), as for matrix products (``verify``). Algorithms that transform
    what they multiply (Winograd) stay within it with FP32 sums. Rounding to the result's own type comes on top, twice
    where partial sums are kept in it.
    """
    result = 2 * ELEMENTS[precision.kind].epsilon
    return C * (precision.sum_epsilon * math.sqrt(terms) + precision.input_epsilon) + result


def verified(layer: Layer, direction: str, layout: str, precision: Precision, arrays: dict[int, Array]) -> Fields:
    """Compare elements drawn at random with FP64 sums."""
    draw = random.Random(os.urandom(16))  # noqa: S311  no secret
    if direction == "backward filter":
        terms = layer.images * layer.side**2
        triples = _filter_elements(layer, layout, arrays, draw)
    else:
        terms = layer.dimensions(X if direction == "forward" else Y)[1] * layer.window**2
        triples = _image_elements(layer, direction, layout, arrays, draw)
    size = math.sqrt(terms) / 3
    found = [(value, exact, max(size, abs(exact))) for value, exact in triples]
    return compared(found, tolerance(precision, terms), f"{len(found):,} random elements against FP64 sums on the CPU")


def _image_elements(
    layer: Layer, direction: str, layout: str, arrays: dict[int, Array], draw: random.Random
) -> Iterator[tuple[float, float]]:
    """Elements of ``Y`` (forward) or of ``X`` (backward data), found and exact."""
    source, target = (X, Y) if direction == "forward" else (Y, X)
    _, depth, rows, columns = layer.dimensions(source)
    image_size, target_size = depth * rows * columns, layer.dimensions(target)[1] * rows * columns
    strides, target_strides = layer.strides(source, layout), layer.strides(target, layout)
    filters = arrays[W].values()
    w_strides = layer.strides(W, layout)
    over, fixed = (1, 0) if direction == "forward" else (0, 1)
    for image in draw.sample(range(layer.images), min(IMAGES, layer.images)):
        numbers = arrays[source].values(image * image_size, image_size)
        results = arrays[target].values(image * target_size, target_size)
        for _ in range(PER_IMAGE):
            channel = draw.randrange(layer.dimensions(target)[1])
            row, column = draw.randrange(rows), draw.randrange(columns)
            exact = 0.0
            for r in range(layer.window):
                for s in range(layer.window):
                    shift = (r - layer.pad, s - layer.pad)
                    if direction != "forward":
                        shift = (-shift[0], -shift[1])
                    h, w = row + shift[0], column + shift[1]
                    if not (0 <= h < rows and 0 <= w < columns):
                        continue
                    start = h * strides[2] + w * strides[3]
                    taken = numbers[start : start + (depth - 1) * strides[1] + 1 : strides[1]]
                    at = channel * w_strides[fixed] + r * w_strides[2] + s * w_strides[3]
                    weights = filters[at : at + (depth - 1) * w_strides[over] + 1 : w_strides[over]]
                    exact += sum(map(mul, taken, weights))
            place = channel * target_strides[1] + row * target_strides[2] + column * target_strides[3]
            yield results[place], exact


def _filter_elements(
    layer: Layer, layout: str, arrays: dict[int, Array], draw: random.Random
) -> Iterator[tuple[float, float]]:
    """Elements of the gradient of ``W``, found and exact: sums over all places of all images."""
    gradients = arrays[W].values()
    strides = layer.strides(W, layout)
    filters = draw.sample(range(layer.filters), min(FILTER_SIDE, layer.filters))
    channels = draw.sample(range(layer.channels), min(FILTER_SIDE, layer.channels))
    outputs = _planes(arrays[Y], layer, Y, layout, filters)
    inputs = _planes(arrays[X], layer, X, layout, channels)
    side = layer.side
    for k in filters:
        for c in channels:
            r, s = draw.randrange(layer.window), draw.randrange(layer.window)
            down, right = r - layer.pad, s - layer.pad
            first, last = max(0, -right), side - max(0, right)
            exact = 0.0
            # place + shift in a plane: rows that fall off are skipped here, columns by zeros in the output's copy
            shift = down * side + right
            masked = outputs[k] if right == 0 else _masked(outputs[k], side, first, last)
            for image in range(layer.images):
                base = image * side * side
                begin, end = max(0, -down) * side, (side - max(0, down)) * side
                low, high = max(begin, -shift), min(end, side * side - shift)
                exact += sum(
                    map(
                        mul,
                        masked[base + low : base + high],
                        inputs[c][base + low + shift : base + high + shift],
                    )
                )
            yield gradients[k * strides[0] + c * strides[1] + r * strides[2] + s * strides[3]], exact


def _masked(plane: list[float], side: int, first: int, last: int) -> list[float]:
    """A plane in which the columns outside of ``first`` to ``last`` are zero."""
    found = list(plane)
    for column in (*range(first), *range(last, side)):
        found[column::side] = [0.0] * len(found[column::side])
    return found


def _planes(array: Array, layer: Layer, tensor: int, layout: str, channels: list[int]) -> dict[int, list[float]]:
    """All places of all images, by channel."""
    _, depth, rows, columns = layer.dimensions(tensor)
    size, element = rows * columns, array.element
    if layout == "NCHW":
        data = {
            channel: array.device.read_strided(
                array.address + channel * size * element.size,
                size * element.size,
                depth * size * element.size,
                layer.images,
            )
            for channel in channels
        }
    else:
        whole = array.device.read(array.address, array.bytes)
        data = {channel: _picked(whole, element.size, channel, depth) for channel in channels}
    return {channel: list(decoded(each, element.code)) for channel, each in data.items()}


def _picked(data: bytearray, size: int, start: int, stride: int) -> bytearray:
    """Every ``stride``-th element of ``size`` bytes, from ``start`` on."""
    found = bytearray(len(data) // stride)
    for byte in range(size):
        found[byte::size] = data[start * size + byte :: stride * size]
    return found
