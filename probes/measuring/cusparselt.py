"""cuSPARSELt by the path of its library: products whose left matrix has two zeros in each four (its documentation)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from contextlib import ExitStack
from ctypes import addressof, byref, c_float, c_int64, c_size_t, c_uint32, c_void_p, create_string_buffer
from dataclasses import dataclass
from functools import partial
from typing import Any

from .arrays import RESERVE, Array, Arrays
from .library import DATA_TYPES, ROW_ORDER, MathLibrary
from .measurement import Bench, Plan, Task
from .runtime import Fields, compared
from .verify import product_sum

OBJECT = 1 << 14  # Bytes that hold any of its objects: 13,072 in release 0.6, 1,024 in 0.7, 512 since 0.8
ALIGNMENT = 16
STRIP = 1  # Member of ``cusparseLtPruneAlg_t``: of each four neighbours of a row, the two largest stay
SIDE = 8192
LEAST = 1024
BYTES_PER_ELEMENT = 12  # Two operands of two bytes at most, one of them pruned and compressed too, and a result of four
BURST = Plan(samples=7, sample_seconds=0.008, warmup_seconds=0.005, pause=0.06, least_runs=2)
"""A few products after a rest: the power limit does not hold the clocks down."""
DRAWN = 16  # Rows and columns whose crossings are checked
SMALLEST_INT8 = -128  # Its size does not fit its type: the library takes it for the smallest of four


@dataclass(frozen=True)
class SparseKind:
    """The types of a product."""

    result: str
    compute: int  # Member of ``cusparseComputeType``
    sum_epsilon: float  # Rounding of the tensor core's accumulator
    least: tuple[int, int]  # First compute capability


KINDS = {
    "fp16": SparseKind("fp16", 2, 2**-22, (8, 0)),
    "bf16": SparseKind("bf16", 2, 2**-22, (8, 0)),
    "int8": SparseKind("int32", 0, 0.0, (8, 0)),
}


class CuSparseLt(MathLibrary):
    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "cusparseLt")
        self._objects: list[Any] = []
        self.handle = self.new("cusparseLtInit")

    def new(self, function: str, *arguments: object) -> c_void_p:
        """An object that ``function`` fills; it takes the handle first, but for the one that fills the handle."""
        memory = create_string_buffer(OBJECT + ALIGNMENT)
        self._objects.append(memory)
        place = c_void_p(-(-addressof(memory) // ALIGNMENT) * ALIGNMENT)
        before = () if function == "cusparseLtInit" else (self.handle,)
        self.ask(function, *before, place, *arguments)
        return place


class StructuredProduct:
    """``result = left . right``: left M x K and right N x K with K contiguous, the result row by row."""

    def __init__(self, bench: Bench, library: CuSparseLt, name: str, shape: tuple[int, int, int]) -> None:
        m, n, k = shape
        kind = KINDS[name]
        self._library, self._stream = library, c_void_p(int(bench.device.stream))
        self._one, self._zero = c_float(1.0), c_float(0.0)
        left = self._matrix("Structured", m, k, name, 0)
        right, result = self._matrix("Dense", n, k, name), self._matrix("Dense", m, n, kind.result)
        matrices = (left, right, result, result)
        self._description = library.new("cusparseLtMatmulDescriptorInit", 0, 1, *matrices, kind.compute)
        algorithm = library.new("cusparseLtMatmulAlgSelectionInit", self._description, 0)
        self._plan = library.new("cusparseLtMatmulPlanInit", self._description, algorithm)

    def _matrix(self, form: str, rows: int, columns: int, kind: str, *sparsity: int) -> c_void_p:
        sizes = (c_int64(rows), c_int64(columns), c_int64(columns), c_uint32(ALIGNMENT))
        function = f"cusparseLt{form}DescriptorInit"
        return self._library.new(function, *sizes, DATA_TYPES[kind], ROW_ORDER, *sparsity)

    def compressed(self, left: Array, pruned: Array, arrays: Arrays, stack: ExitStack) -> int:
        """Zero two in each four of the left matrix, and make of the pruned one what products take: its address."""
        library, size, scratch_size = self._library, c_size_t(), c_size_t()
        source, target = c_void_p(left.address), c_void_p(pruned.address)
        library.ask("cusparseLtSpMMAPrune", library.handle, self._description, source, target, STRIP, self._stream)
        library.ask("cusparseLtSpMMACompressedSize", library.handle, self._plan, byref(size), byref(scratch_size))
        made = stack.enter_context(arrays.workspace(size.value))
        with arrays.workspace(scratch_size.value) as scratch:
            places = (target, c_void_p(made), c_void_p(scratch))
            library.ask("cusparseLtSpMMACompress", library.handle, self._plan, *places, self._stream)
            arrays.bench.device.synchronize()
        return made

    def workspace(self) -> int:
        size = c_size_t()
        self._library.ask("cusparseLtMatmulGetWorkspace", self._library.handle, self._plan, byref(size))
        return size.value

    def search(self, addresses: tuple[int, int, int], workspace: int) -> None:
        """Let the library try its kernels and keep the fastest."""
        self._multiply("cusparseLtMatmulSearch", addresses, workspace)

    def run(self, addresses: tuple[int, int, int], workspace: int) -> None:
        """Queue the product; the addresses are those of the compressed left matrix, the right one, and the result."""
        self._multiply("cusparseLtMatmul", addresses, workspace)

    def close(self) -> None:
        self._library.function("cusparseLtMatmulPlanDestroy")(self._plan)

    def _multiply(self, function: str, addresses: tuple[int, int, int], workspace: int) -> None:
        left, right, result = map(c_void_p, addresses)
        library = self._library
        operands = (byref(self._one), left, right, byref(self._zero), result, result)
        library.ask(function, library.handle, self._plan, *operands, c_void_p(workspace), byref(self._stream), 1)


def structured_product(arrays: Arrays, library: Callable[[], CuSparseLt], name: str, stack: ExitStack) -> Task:
    """A square product, whose operations are counted as if no element were zero; it is as large as memory holds."""
    bench, cusparselt, kind, side = arrays.bench, library(), KINDS[name], SIDE
    while side > LEAST and BYTES_PER_ELEMENT * side * side + RESERVE > bench.device.free_memory():
        side //= 2
    left, right = (stack.enter_context(arrays.random(name, side * side)) for _ in range(2))
    pruned, result = (stack.enter_context(arrays.empty(each, side * side)) for each in (name, kind.result))
    product = StructuredProduct(bench, cusparselt, name, (side, side, side))
    stack.callback(product.close)
    addresses = (product.compressed(left, pruned, arrays, stack), right.address, result.address)
    if bench.timing:
        with arrays.workspace(product.workspace()) as workspace:
            product.search(addresses, workspace)
            bench.device.synchronize()
    workspace = stack.enter_context(arrays.workspace(product.workspace()))
    unit = "OP/s" if name == "int8" else "FLOP/s"
    facts = {**cusparselt.facts(unit, "operations of the dense product"), "shape": [side, side, side]}
    check = partial(verified, name, (left, pruned, right, result), side, arrays.draw)
    return Task(partial(product.run, addresses, workspace), 2.0 * side**3, check, facts, result.poison, BURST)


def verified(name: str, arrays: tuple[Array, Array, Array, Array], side: int, draw: random.Random) -> Fields:
    """Check drawn crossings of rows and columns against FP64 sums on the CPU, and the zeros of those rows.

    Each four of a row must keep two elements, unchanged, that are no smaller than the others. A sum has the expected
    size ``|row| |column| / sqrt(K)``, as the sign of each product is random. Its tolerance is
    ``4 * epsilon * sqrt(K)`` of that for the accumulator, plus the rounding of a result five times that size; integers
    must be exact.
    """
    left, pruned, right, result = arrays
    kind = KINDS[name]
    lines = draw.sample(range(side), min(side, DRAWN))
    across = {column: right.values(column * side, side) for column in draw.sample(range(side), min(side, DRAWN))}
    sizes = {column: math.sqrt(product_sum(other, other)) for column, other in across.items()}
    triples, broken = [], 0
    for row in lines:
        kept = pruned.values(row * side, side)
        size = math.sqrt(product_sum(kept, kept) / side)
        broken += broken_strips(left.values(row * side, side), kept)
        for column, other in across.items():
            (found,) = result.values(row * side + column, 1)
            triples.append((found, product_sum(kept, other), size * sizes[column]))
    tolerance = 4 * kind.sum_epsilon * math.sqrt(side / 2) + 5 * result.element.epsilon
    how = f"{len(triples):,} random elements against FP64 sums on the CPU, and the zeros of {len(lines)} random rows"
    return compared(triples, tolerance, how, broken)


def broken_strips(before: list[float], after: list[float]) -> int:
    """How many fours of a row have not kept their two largest elements alone."""
    broken = 0
    for start in range(0, len(before), 4):
        old, new = before[start : start + 4], after[start : start + 4]
        unchanged = all(now in (0, was) for was, now in zip(old, new, strict=True))
        largest = sorted(map(abs, old))[2:]
        sizes = sorted(map(abs, new))
        broken += not (unchanged and sizes[:2] == [0, 0] and (sizes[2:] == largest or SMALLEST_INT8 in old))
    return broken
