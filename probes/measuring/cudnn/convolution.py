"""Convolutions through cuDNN's graph API: forward, backward data, backward filter, with the fastest engine proposed.

Elements drawn at random are compared with sums in FP64 on the CPU of what lies on the GPU.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from ctypes import c_void_p
from dataclasses import dataclass
from functools import partial
from operator import mul

from ...framework_bench.workloads import layer_for
from ..arrays import ELEMENTS, RESERVE, Array, Arrays
from ..measurement import Bench, Plan, Task, Work, timed
from ..runtime import Fields, Unavailable, compared
from ..verify import decoded
from . import library as api
from .layers import PRECISIONS, Layer, Precision, W, X, Y
from .library import TYPES, Attribute, Cudnn, Graph, GraphPlan, NotSupported, Proposal, Tensor, scratch

C = 4.0  # Tolerated error as a multiple of the expected one
IMAGES, PER_IMAGE, FILTER_SIDE = 8, 32, 5
"""Elements drawn: so many images and elements of each; of a filter's gradient so many channels of either side."""

Place = tuple[int, int, int]  # Channel, row, column
Pairs = Iterator[tuple[float, float]]  # Found and exact


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
        pairs = _filter_elements(layer, layout, arrays, draw)
    else:
        source = X if direction == "forward" else Y
        terms = layer.dimensions(source)[1] * layer.window**2
        pairs = _image_elements(layer, direction, layout, arrays, draw)
    size = math.sqrt(terms) / 3
    found = [(value, exact, max(size, abs(exact))) for value, exact in pairs]
    return compared(found, tolerance(precision, terms), f"{len(found):,} random elements against FP64 sums on the CPU")


def _spread(draw: random.Random, count: int, parts: int) -> list[int]:
    """A number below ``count`` from each of so many equal parts: a part of a result that is wrong is not missed."""
    parts = min(parts, count)
    return [draw.randrange(part * count // parts, (part + 1) * count // parts) for part in range(parts)]


def _image_elements(layer: Layer, direction: str, layout: str, arrays: dict[int, Array], draw: random.Random) -> Pairs:
    """Elements of ``Y`` (forward) or of ``X`` (backward data)."""
    source, target = (X, Y) if direction == "forward" else (Y, X)
    size, target_size = (math.prod(layer.dimensions(tensor)[1:]) for tensor in (source, target))
    _, channels, rows, columns = layer.dimensions(target)
    strides = layer.strides(target, layout)[1:]
    filters = arrays[W].values()
    for image in _spread(draw, layer.images, IMAGES):
        numbers = arrays[source].values(image * size, size)
        results = arrays[target].values(image * target_size, target_size)
        for _ in range(PER_IMAGE):
            place = draw.randrange(channels), draw.randrange(rows), draw.randrange(columns)
            found = results[sum(map(mul, place, strides))]
            yield found, _image_element(layer, direction, layout, place, (numbers, filters))


def _image_element(
    layer: Layer, direction: str, layout: str, place: Place, operands: tuple[list[float], list[float]]
) -> float:
    """The sum over the window around a place, and over the channels of the image that is read.

    Backward the window is mirrored, and the filter's other side is summed over.
    """
    numbers, filters = operands
    source, sign, over, fixed = (X, 1, 1, 0) if direction == "forward" else (Y, -1, 0, 1)
    depth = layer.dimensions(source)[1]
    strides, w_strides = layer.strides(source, layout), layer.strides(W, layout)
    channel, row, column = place
    exact = 0.0
    for r in range(layer.window):
        for s in range(layer.window):
            h, w = row + sign * (r - layer.pad), column + sign * (s - layer.pad)
            if not (0 <= h < layer.side and 0 <= w < layer.side):
                continue
            start = h * strides[2] + w * strides[3]
            taken = numbers[start : start + (depth - 1) * strides[1] + 1 : strides[1]]
            start = channel * w_strides[fixed] + r * w_strides[2] + s * w_strides[3]
            weights = filters[start : start + (depth - 1) * w_strides[over] + 1 : w_strides[over]]
            exact += sum(map(mul, taken, weights))
    return exact


def _filter_elements(layer: Layer, layout: str, arrays: dict[int, Array], draw: random.Random) -> Pairs:
    """Elements of the gradient of ``W``."""
    gradients, strides = arrays[W].values(), layer.strides(W, layout)
    filters, channels = _spread(draw, layer.filters, FILTER_SIDE), _spread(draw, layer.channels, FILTER_SIDE)
    outputs = _planes(arrays[Y], layer, Y, layout, filters)
    inputs = _planes(arrays[X], layer, X, layout, channels)
    for k in filters:
        for c in channels:
            r, s = draw.randrange(layer.window), draw.randrange(layer.window)
            place = k * strides[0] + c * strides[1] + r * strides[2] + s * strides[3]
            yield gradients[place], _filter_element(layer, outputs[k], inputs[c], r - layer.pad, s - layer.pad)


def _filter_element(layer: Layer, outputs: list[float], inputs: list[float], down: int, right: int) -> float:
    """The sum, over all places of all images, of the output's gradient times the input ``down`` and ``right`` of it.

    Both hold one channel. Seen as one row of numbers, the input is shifted: what falls off at the top or at the bottom
    is left out, what falls off at the sides is zero in a copy of the gradient.
    """
    side, image = layer.side, layer.side**2
    shift = down * side + right
    low, high = max(0, -down * side, -shift), image - max(0, down * side, shift)
    masked = list(outputs)
    for column in (*range(-right), *range(side - right, side)):
        masked[column::side] = [0.0] * (len(masked) // side)
    return sum(
        sum(map(mul, masked[start + low : start + high], inputs[start + low + shift : start + high + shift]))
        for start in range(0, layer.images * image, image)
    )


def _planes(array: Array, layer: Layer, tensor: int, layout: str, channels: list[int]) -> dict[int, list[float]]:
    """All places of all images, by channel."""
    element, (images, depth, rows, columns) = array.element, layer.dimensions(tensor)
    plane = rows * columns * element.size
    if layout == "NCHW":
        read = partial(array.device.read_strided, size=plane, stride=depth * plane, count=images)
        data = {channel: read(array.address + channel * plane) for channel in channels}
    else:
        whole, size = array.device.read(array.address, array.bytes), element.size
        data = {channel: bytearray(len(whole) // depth) for channel in channels}
        for channel, picked in data.items():
            for byte in range(size):
                picked[byte::size] = whole[channel * size + byte :: depth * size]
    return {channel: list(decoded(each, element.code)) for channel, each in data.items()}


_FLOAT, _DESCRIPTOR = 4, 15
KINDS = {
    "forward": (api.FORWARD_KIND, range(700, 706), Y),
    "backward data": (api.BACKWARD_DATA_KIND, range(706, 712), X),
    "backward filter": (api.BACKWARD_FILTER_KIND, range(712, 718), W),
}
"""Operations: descriptor, numbers of the attributes (factors, description, tensors), and which tensor is written."""
_CROSS_CORRELATION = 1
TRIED = 10  # Proposals that are timed: as many as PyTorch's ``benchmark_limit``
TRIAL = Plan(samples=2, sample_seconds=0.002, warmup_seconds=0.0, enough=0.01)
FINAL = Plan(samples=5, sample_seconds=0.01, warmup_seconds=0.01, pause=0.01)
HOPELESS = 0.05  # Seconds of a first run, its loading included, that rule a plan out where a better one is known
SMALL_LAYER = Layer(images=2, channels=32, filters=32, side=14, window=3)
"""What is run where nothing is timed: its numbers can be drawn on the host."""


def operation(graph: Graph, layer: Layer, direction: str, layout: str, precision: Precision) -> None:
    """Append one to a graph."""
    kind, numbers, _ = KINDS[direction]
    pad = (layer.pad, layer.pad)
    described = graph.made(api.CONVOLUTION_KIND, {
        api.CONVOLUTION_DIMENSIONS: 2, api.CONVOLUTION_TYPE: TYPES["fp32"], api.CONVOLUTION_MODE: _CROSS_CORRELATION,
        api.CONVOLUTION_BEFORE: pad, api.CONVOLUTION_AFTER: pad, api.CONVOLUTION_STRIDES: (1, 1),
        api.CONVOLUTION_DILATIONS: (1, 1),
    })  # fmt: skip
    tensors = {
        number: graph.tensor(Tensor(number, precision.kind, layer.dimensions(number), layer.strides(number, layout)))
        for number in (X, W, Y)
    }
    types = (_FLOAT, _FLOAT, _DESCRIPTOR, _DESCRIPTOR, _DESCRIPTOR, _DESCRIPTOR)
    values = (1.0, 0.0, described, tensors[W], tensors[X], tensors[Y])
    graph.add(kind, dict(zip(map(Attribute, numbers, types), values, strict=True)))


@dataclass(frozen=True)
class Ready:
    """A convolution that can be run."""

    arrays: dict[int, Array]
    plan: GraphPlan
    run: Work


class Convolutions:
    """Convolutions of one layer on one GPU."""

    def __init__(self, bench: Bench, library: Cudnn) -> None:
        self._bench, self._library = bench, library
        self._layer = Layer(*layer_for(bench.device.sms)) if bench.timing else SMALL_LAYER
        self._arrays = Arrays(bench)

    def task(self, name: str, direction: str, layout: str, stack: ExitStack) -> Task:
        """One with the fastest of the engines proposed."""
        stack.enter_context(self._library.required())
        ready = self.ready(stack, name, direction, layout)
        facts = self._library.facts("FLOP/s", f"engine {ready.plan.proposal.engine}", str(self._layer))
        check = partial(verified, self._layer, direction, layout, PRECISIONS[name], ready.arrays)
        poison = ready.arrays[KINDS[direction][2]].poison
        return Task(ready.run, self._layer.operations, check, facts, poison, FINAL)

    def ready(self, stack: ExitStack, name: str, direction: str, layout: str) -> Ready:
        """Tensors of random numbers and the fastest plan for them, for as long as ``held`` is open."""
        precision, written = PRECISIONS[name], KINDS[direction][2]
        graph = stack.enter_context(Graph(self._library))
        makes = {number: self._arrays.empty if number == written else self._arrays.random for number in (X, W, Y)}
        arrays = {
            number: stack.enter_context(make(precision.kind, self._layer.elements(number)))
            for number, make in makes.items()
        }
        operation(graph, self._layer, direction, layout, precision)
        plans = self._plans(graph, name)
        most = max(plan.workspace for plan in plans)
        workspace = stack.enter_context(self._arrays.empty("int8", scratch(most)))
        pack = graph.pack({number: array.address for number, array in arrays.items()}, workspace.address)
        best = self._fastest(graph, plans, pack)
        return Ready(arrays, best, partial(graph.run, best, pack))

    def _plans(self, graph: Graph, name: str) -> list[GraphPlan]:
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

    def _fastest(self, graph: Graph, plans: list[GraphPlan], pack: c_void_p) -> GraphPlan:
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
