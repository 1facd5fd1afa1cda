"""Scaled dot-product attention, forward and backward, as graphs that cuDNN runs as one kernel ("flash attention").

The graphs are those of cuDNN's documentation ("Graph API", fused flash attention forward and backward): products,
pointwise operations and reductions, whose tensors between them are virtual. With queries q, keys k, values v of shape
(batch, heads, length, depth): ``o = softmax(scale * q . k^T) . v``.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count
from operator import mul

from ...framework_bench.workloads import Heads, heads_for
from ..arrays import ELEMENTS, Array, Arrays, poisoning
from ..measurement import Bench, Task, Work
from ..runtime import Fields, LibraryError, compared
from . import library as api
from .convolution import FINAL
from .library import TYPES, Cudnn, Graph, GraphPlan, IncompleteError, NotSupported, Tensor, packed, scratch

PRECISIONS = {"bf16": (8, 0)}  # First compute capability that has it; FP16 is possible, and takes as long to compile
DIRECTIONS = ("forward", "backward")
Q, K, V, O, STATS, SCALE, DO, DQ, DK, DV, SUM, DQ_SUM, ONE = range(1, 14)  # noqa: E741  names of the literature
"""Unique IDs. ``STATS`` is the logarithm of the sum of a row's exponentials, ``SUM`` that of ``DO * O``."""
WRITTEN = {"forward": (O, STATS), "backward": (DQ, DK, DV)}
_VIRTUAL = 100  # First unique ID of tensors that exist only between operations
_ADD, _MUL, _SUB, _DIV, _EXP, _LOG, _IDENTITY = 0, 1, 9, 6, 13, 15, 21  # Members of ``cudnnPointwiseMode_t``
_SUM, _MAX = 0, 3  # Members of ``cudnnReduceTensorOp_t``
_LEAST = 8903  # First release whose fused attention takes FP32 scalars (cudnn-frontend 1.0 gives older ones FP16)
_ZEROES_ITSELF = 90600  # From 9.6.0 on cuDNN sets the sum of the gradient of q to zero itself (release notes)
LINES = 2  # Rows and columns of a head's scores that are verified
C = 8.0


class Shape(Heads):
    """Shape of queries, keys and values alike."""

    def __str__(self) -> str:
        """``8x16x2048x128``: batch, heads, length, depth."""
        return "x".join(map(str, self.dimensions))

    @property
    def dimensions(self) -> tuple[int, int, int, int]:
        return self.batch, self.heads, self.length, self.depth

    @property
    def elements(self) -> int:
        return math.prod(self.dimensions)

    @property
    def rows(self) -> int:
        return self.batch * self.heads * self.length

    def work(self, direction: str) -> float:
        """Operations of the products alone: two forward, five backward."""
        return self.operations if direction == "forward" else 2.5 * self.operations


class _Drawing:
    """A graph of attention while it is drawn."""

    def __init__(self, graph: Graph, shape: Shape, kind: str) -> None:
        self.graph, self.shape, self.kind = graph, shape, kind
        self._numbers = count(_VIRTUAL)
        b, h, s, _ = shape.dimensions
        self.scores, self.row, self.row_strides = (b, h, s, s), (b, h, s, 1), (h * s, s, 1, 1)

    def given(self, number: int, *, transposed: bool = False) -> Tensor:
        """Q, K, V, O, or a gradient of them; transposed: (batch, heads, depth, length)."""
        b, h, s, d = self.shape.dimensions
        n, m, *rest = packed((b, h, s, d))
        if transposed:
            return Tensor(number, self.kind, (b, h, d, s), (n, m, *reversed(rest)))
        return Tensor(number, self.kind, (b, h, s, d), (n, m, *rest))

    def scalar(self, number: int) -> Tensor:
        return Tensor(number, "fp32", (1, 1, 1, 1), (1, 1, 1, 1), by_value=True)

    def line(self, number: int = 0) -> Tensor:
        """One number for each row; virtual unless it has an ID."""
        return Tensor(number or next(self._numbers), "fp32", self.row, self.row_strides, virtual=not number)

    def matrix(self, kind: str = "fp32") -> Tensor:
        return Tensor(next(self._numbers), kind, self.scores, packed(self.scores), virtual=True)

    def pointwise(self, mode: int, x: Tensor, y: Tensor, b: Tensor | None = None) -> Tensor:
        """``y = x mode b``."""
        how = self.graph.made(api.POINTWISE_KIND, {api.POINTWISE_MODE: mode, api.POINTWISE_TYPE: TYPES["fp32"]})
        given = {api.POINTWISE_X: x} if b is None else {api.POINTWISE_X: x, api.POINTWISE_B: b}
        self._add(api.POINTWISE_OPERATION, {**given, api.POINTWISE_Y: y}, {api.POINTWISE: how})
        return y

    def reduced(self, operator: int, x: Tensor, y: Tensor) -> Tensor:
        how = self.graph.made(api.REDUCTION_KIND, {api.REDUCTION_OPERATOR: operator, api.REDUCTION_TYPE: TYPES["fp32"]})
        self._add(api.REDUCTION_OPERATION, {api.REDUCTION_X: x, api.REDUCTION_Y: y}, {api.REDUCTION: how})
        return y

    def product(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        how = self.graph.made(api.MATMUL_KIND, {api.MATMUL_TYPE: TYPES["fp32"]})
        self._add(api.MATMUL_OPERATION, {api.MATMUL_A: a, api.MATMUL_B: b, api.MATMUL_C: c}, {api.MATMUL: how})
        return c

    def turned(self, x: Tensor) -> Tensor:
        """Scores with rows and columns exchanged, in the type of the operands."""
        n, m, *rest = packed(self.scores)
        y = Tensor(next(self._numbers), self.kind, self.scores, (n, m, *reversed(rest)), virtual=True)
        return self.reshaped(x, y)

    def reshaped(self, x: Tensor, y: Tensor) -> Tensor:
        self._add(api.RESHAPE_OPERATION, {api.RESHAPE_X: x, api.RESHAPE_Y: y}, {})
        return y

    def _add(
        self, kind: int, tensors: Mapping[api.Attribute, Tensor], how: Mapping[api.Attribute, ctypes.c_void_p]
    ) -> None:
        self.graph.add(kind, {**{place: self.graph.tensor(each) for place, each in tensors.items()}, **how})

    def forward(self) -> None:
        scores = self.product(self.given(Q), self.given(K, transposed=True), self.matrix())
        scaled = self.pointwise(_MUL, scores, self.matrix(), self.scalar(SCALE))
        most = self.reduced(_MAX, scaled, self.line())
        powers = self.pointwise(_EXP, self.pointwise(_SUB, scaled, self.matrix(), most), self.matrix())
        total = self.reduced(_SUM, powers, self.line())
        self.pointwise(_ADD, most, self.line(STATS), self.pointwise(_LOG, total, self.line()))
        weights = self.pointwise(_DIV, powers, self.matrix(self.kind), total)
        self.product(weights, self.given(V), self.given(O))

    def backward(self) -> None:
        whole = self.given(DO)
        each = Tensor(next(self._numbers), "fp32", whole.dimensions, whole.strides, virtual=True)
        total = self.reduced(_SUM, self.pointwise(_MUL, whole, each, self.given(O)), self.line())
        kept = self.pointwise(_MUL, total, self.line(SUM), self.scalar(ONE))
        scores = self.product(self.given(Q), self.given(K, transposed=True), self.matrix())
        scaled = self.pointwise(_MUL, scores, self.matrix(), self.scalar(SCALE))
        weights = self.pointwise(_EXP, self.pointwise(_SUB, scaled, self.matrix(), self.line(STATS)), self.matrix())
        self.product(self.turned(weights), whole, self.given(DV))
        gradient = self.product(whole, self.given(V, transposed=True), self.matrix())
        moved = self.pointwise(_SUB, gradient, self.matrix(), kept)
        weighted = self.pointwise(_MUL, moved, self.matrix(), weights)
        final = self.pointwise(_MUL, weighted, self.matrix(), self.scalar(SCALE))
        self.product(self.turned(final), self.given(Q), self.given(DK))
        keys = self.given(K)
        again = Tensor(next(self._numbers), self.kind, keys.dimensions, keys.strides, virtual=True)
        self.reshaped(self.given(K, transposed=True), again)
        summed = Tensor(DQ_SUM, "fp32", whole.dimensions, whole.strides)
        self.product(final, again, summed)
        self.pointwise(_IDENTITY, summed, self.given(DQ))


class Attention:
    def __init__(self, bench: Bench, library: Cudnn) -> None:
        self._bench, self._library = bench, library
        self._shape = Shape(*heads_for(bench.device.sms))
        self._arrays = Arrays(bench)
        self._plans: dict[tuple[str, str], tuple[Graph, GraphPlan]] = {}
        self._scale, self._one = ctypes.c_float(self._shape.scale), ctypes.c_float(1.0)

    def task(self, name: str, direction: str, stack: ExitStack) -> Task:
        shape, (run, arrays) = self._shape, self.ready(stack, name, direction)
        poison = poisoning(*(arrays[number] for number in WRITTEN[direction]))
        check = partial(verified, shape, name, direction, arrays)
        return Task(run, shape.work(direction), check, self._library.facts("FLOP/s", str(shape)), poison, FINAL)

    def ready(self, stack: ExitStack, name: str, direction: str) -> tuple[Work, dict[int, Array]]:
        """What runs a direction, and its tensors; backward, what it needs of the forward pass is there."""
        shape = self._shape
        arrays = {number: stack.enter_context(self._arrays.random(name, shape.elements)) for number in (Q, K, V)}
        arrays[O] = stack.enter_context(self._arrays.empty(name, shape.elements))
        arrays[STATS] = stack.enter_context(self._arrays.empty("fp32", shape.rows))
        forward = self._ready(stack, name, "forward", arrays)
        if direction == "forward":
            return forward, arrays
        forward()
        arrays[DO] = stack.enter_context(self._arrays.random(name, shape.elements))
        for number in WRITTEN["backward"]:
            arrays[number] = stack.enter_context(self._arrays.empty(name, shape.elements))
        arrays[SUM] = stack.enter_context(self._arrays.empty("fp32", shape.rows))
        arrays[DQ_SUM] = stack.enter_context(self._arrays.empty("fp32", shape.elements))
        return self._ready(stack, name, "backward", arrays), arrays

    def _ready(self, stack: ExitStack, kind: str, direction: str, arrays: Mapping[int, Array]) -> Work:
        # The first plan that cuDNN has; it is kept, as a kernel was compiled for it. A release that takes no
        # such graph, however it says so, has no fault: raise NotSupported.
        library, key = self._library, (kind, direction)
        if key not in self._plans:
            if library.number < _LEAST:
                raise NotSupported(f"cuDNN {library.version} has no attention of this form: 8.9.3 and later have")
            graph = Graph(library)
            try:
                drawing = _Drawing(graph, self._shape, kind)
                drawing.forward() if direction == "forward" else drawing.backward()
                plan = next(graph.plans(graph.proposals(api.MODE_A, api.FALLBACK), 1))
            except IncompleteError:
                raise
            except LibraryError as error:
                raise NotSupported(f"cuDNN {library.version} takes no graph of attention: {error}") from error
            self._plans[key] = graph, plan
        graph, plan = self._plans[key]
        workspace = stack.enter_context(self._arrays.empty("int8", scratch(plan.workspace)))
        pointers = {number: array.address for number, array in arrays.items()}
        pointers[SCALE] = ctypes.addressof(self._scale)
        if direction == "backward":
            pointers[ONE] = ctypes.addressof(self._one)
        pack = graph.pack(pointers, workspace.address)
        sum_to_zero = direction == "backward" and self._library.number < _ZEROES_ITSELF

        def run() -> None:
            if sum_to_zero:
                self._bench.device.fill(arrays[DQ_SUM].address, arrays[DQ_SUM].bytes, 0)
            graph.run(plan, pack)

        return run


# Verification: some rows and columns of one head's scores.


def verified(shape: Shape, kind: str, direction: str, arrays: Mapping[int, Array]) -> Fields:
    """Compare rows of the result, or of its gradients, with FP64.

    The weights (and, backward, the gradients of the scores) are rounded to the operands' type before they are
    multiplied: an error is a random sum of such roundings, and is measured by the root of the sum of the squares.
    """
    draw = random.Random(os.urandom(16))  # noqa: S311  no secret
    head = draw.randrange(shape.batch * shape.heads)
    numbers = (Q, K, V, O) if direction == "forward" else (Q, K, V, O, DO)
    tensors = {number: _rows(shape, arrays[number], head) for number in numbers}
    stats = arrays[STATS].values(head * shape.length, shape.length)
    chosen = draw.sample(range(shape.length), LINES)
    if direction == "forward":
        triples = list(_forward(shape, tensors, stats, chosen))
    else:
        found = {number: _rows(shape, arrays[number], head, chosen) for number in (DQ, DK, DV)}
        triples = list(_backward(shape, tensors, stats, found, chosen))
    tolerance = C * ELEMENTS[kind].epsilon
    return compared(triples, tolerance, f"{len(triples):,} elements of random rows against FP64 on the CPU")


Matrix = dict[int, list[float]]
Triples = Iterator[tuple[float, float, float]]


def _rows(shape: Shape, array: Array, head: int, rows: list[int] | None = None) -> Matrix:
    start, depth = head * shape.length * shape.depth, shape.depth
    if rows is not None:
        return {row: array.values(start + row * depth, depth) for row in rows}
    values = array.values(start, shape.length * depth)
    return {row: values[row * depth : (row + 1) * depth] for row in range(shape.length)}


def _dot(a: list[float], b: list[float]) -> float:
    total: float = sum(map(mul, a, b))
    return total


def _forward(shape: Shape, tensors: dict[int, Matrix], stats: list[float], chosen: list[int]) -> Triples:
    for row in chosen:
        scores = [shape.scale * _dot(tensors[Q][row], key) for key in tensors[K].values()]
        total = math.log(math.fsum(map(math.exp, scores)))
        yield stats[row], total, abs(total)
        yield from _compared(tensors[O][row], [math.exp(score - total) for score in scores], tensors[V])


def _backward(
    shape: Shape, tensors: dict[int, Matrix], stats: list[float], found: dict[int, Matrix], chosen: list[int]
) -> Triples:
    """Rows of the three gradients; the forward pass's results, verified by themselves, are taken as they are."""
    q, k, v, o, gradient = (tensors[number] for number in (Q, K, V, O, DO))
    totals = [_dot(gradient[row], o[row]) for row in range(shape.length)]
    for row in chosen:
        weights = [math.exp(shape.scale * _dot(q[row], key) - stats[row]) for key in k.values()]
        moved = [_dot(gradient[row], value) - totals[row] for value in v.values()]
        yield from _compared(found[DQ][row], [shape.scale * a * b for a, b in zip(weights, moved, strict=True)], k)
        scores = [shape.scale * _dot(query, k[row]) for query in q.values()]
        weights = [math.exp(score - total) for score, total in zip(scores, stats, strict=True)]
        yield from _compared(found[DV][row], weights, gradient)
        moved = [_dot(each, v[row]) - total for each, total in zip(gradient.values(), totals, strict=True)]
        yield from _compared(found[DK][row], [shape.scale * a * b for a, b in zip(weights, moved, strict=True)], q)


def _compared(found: list[float], factors: list[float], matrix: Matrix) -> Triples:
    """The sum of rows, each times its factor; an error is measured by it and by the root of the sum of its squares."""
    squares = [factor * factor for factor in factors]
    for value, column in zip(found, zip(*matrix.values(), strict=True), strict=True):
        exact: float = sum(map(mul, factors, column))
        size = math.sqrt(sum(map(mul, squares, (each * each for each in column))))
        yield value, exact, size + abs(exact)
