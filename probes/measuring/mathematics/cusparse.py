"""cuSPARSE by the path of its library: its generic API, and the older one for blocks (cuSPARSE documentation).

A random sparse matrix is block-diagonal: panels of ``SIDE`` rows and columns, each with the same pattern and with
values of its own. A row's columns thus lie close to each other, as in the matrices of grids, and a pattern of some
100,000 entries, drawn on the host, makes one of tens of millions.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_double, c_float, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Protocol

from ...common.figures import Fields, compared
from ..arrays import Array
from ..measurement import Bench
from .common import DATA_TYPES, MathLibrary

INDEX_32 = 2
"""Member of ``cusparseIndexType_t``."""
ROW_ORDER = 2
"""Member of ``cusparseOrder_t``."""
_SCALARS: dict[str, Any] = {"fp32": c_float, "fp64": c_double}
_LETTERS = {"fp32": "S", "fp64": "D"}
STATUSES = {
    1: "NOT_INITIALIZED",
    2: "ALLOC_FAILED",
    3: "INVALID_VALUE",
    4: "ARCH_MISMATCH",
    5: "MAPPING_ERROR",
    6: "EXECUTION_FAILED",
    7: "INTERNAL_ERROR",
    8: "MATRIX_TYPE_NOT_SUPPORTED",
    9: "ZERO_PIVOT",
    10: "NOT_SUPPORTED",
    11: "INSUFFICIENT_RESOURCES",
}
"""Members of ``cusparseStatus_t`` without their prefix: cuSPARSELt 0.6 has no words of its own for them."""


class CuSparse(MathLibrary):
    """The library with a handle on the bench's stream."""

    prefix, statuses = "CUSPARSE_STATUS_", STATUSES

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "cusparse", "cuSPARSE", first=("nvJitLink",))
        self.handle = c_void_p()
        self.ask("cusparseCreate", byref(self.handle))
        self.ask("cusparseSetStream", self.handle, c_void_p(int(bench.device.stream)))

    @contextmanager
    def made(self, create: str, destroy: str, *arguments: object) -> Iterator[c_void_p]:
        """A descriptor for as long as the block lasts."""
        descriptor = c_void_p()
        self.ask(create, byref(descriptor), *arguments)
        try:
            yield descriptor
        finally:
            self.function(destroy)(descriptor)

    def csr(self, shape: tuple[int, int, int], addresses: tuple[int, int, int], kind: str) -> Any:
        """A matrix of rows, columns, entries; the addresses are those of offsets, columns and values."""
        sizes, places = map(c_int64, shape), map(c_void_p, addresses)
        types = (INDEX_32, INDEX_32, 0, DATA_TYPES[kind])
        return self.made("cusparseCreateCsr", "cusparseDestroySpMat", *sizes, *places, *types)

    def coo(self, shape: tuple[int, int, int], addresses: tuple[int, int, int], kind: str) -> Any:
        """The same; the addresses are those of rows, columns and values."""
        sizes, places = map(c_int64, shape), map(c_void_p, addresses)
        return self.made("cusparseCreateCoo", "cusparseDestroySpMat", *sizes, *places, INDEX_32, 0, DATA_TYPES[kind])

    def bsr(self, shape: tuple[int, int, int], side: int, addresses: tuple[int, int, int], kind: str) -> Any:
        """A matrix of rows of blocks, columns of blocks, blocks, each block row by row."""
        sizes, places = map(c_int64, (*shape, side, side)), map(c_void_p, addresses)
        types = (INDEX_32, INDEX_32, 0, DATA_TYPES[kind], ROW_ORDER)
        return self.made("cusparseCreateBsr", "cusparseDestroySpMat", *sizes, *places, *types)

    def vector(self, count: int, address: int, kind: str) -> Any:
        arguments = (c_int64(count), c_void_p(address), DATA_TYPES[kind])
        return self.made("cusparseCreateDnVec", "cusparseDestroyDnVec", *arguments)

    def dense(self, rows: int, columns: int, address: int, kind: str) -> Any:
        """A dense matrix, row by row."""
        arguments = (c_int64(rows), c_int64(columns), c_int64(columns), c_void_p(address), DATA_TYPES[kind], ROW_ORDER)
        return self.made("cusparseCreateDnMat", "cusparseDestroyDnMat", *arguments)

    def expand_rows(self, offsets: int, entries: int, rows: int, target: int) -> None:
        """Queue the writing of each entry's row index (COO) from the offsets of the rows (CSR)."""
        self.ask("cusparseXcsr2coo", self.handle, c_void_p(offsets), entries, rows, c_void_p(target), 0)


class Multiplication:
    """``result = matrix . dense`` with one algorithm of ``cusparseSpMV`` or ``cusparseSpMM``."""

    def __init__(
        self, library: CuSparse, name: str, operands: tuple[c_void_p, c_void_p, c_void_p], kind: str, algorithm: int
    ) -> None:
        """``name`` is ``SpMV`` or ``SpMM``; the operands are the descriptors of matrix, dense and result."""
        self._library, self._name = library, f"cusparse{name}"
        one, zero = _SCALARS[kind](1), _SCALARS[kind](0)
        self._held = (one, zero)
        matrix, dense, result = operands
        untransposed = (0,) if name == "SpMV" else (0, 0)
        data = (byref(one), matrix, dense, byref(zero), result)
        self._arguments = (library.handle, *untransposed, *data, DATA_TYPES[kind], algorithm)

    def workspace(self) -> int:
        """Bytes that it needs."""
        size = c_size_t()
        self._library.ask(f"{self._name}_bufferSize", *self._arguments, byref(size))
        return size.value

    def prepare(self, workspace: int) -> None:
        """Analyse the matrix, where this release does."""
        if self._library.offers(f"{self._name}_preprocess"):
            self._library.ask(f"{self._name}_preprocess", *self._arguments, c_void_p(workspace))

    def run(self, workspace: int) -> None:
        """Queue it."""
        self._library.ask(self._name, *self._arguments, c_void_p(workspace))


class BlockProducts:
    """Products of a matrix of blocks by the older functions ``bsrmv`` and ``bsrmm``."""

    def __init__(self, library: CuSparse, kind: str) -> None:
        self._library, self._letter = library, _LETTERS[kind]
        self._description = c_void_p()
        library.ask("cusparseCreateMatDescr", byref(self._description))
        self._one, self._zero = _SCALARS[kind](1), _SCALARS[kind](0)

    def run(
        self,
        shape: tuple[int, int, int],
        side: int,
        addresses: tuple[int, int, int],
        dense: int,
        result: int,
        width: int,
    ) -> None:
        """Queue ``result = A . dense``; the shape is rows of blocks, columns of blocks, blocks.

        ``dense`` lies row by row and ``result`` column by column; both are vectors where ``width`` is 1.
        """
        rows, columns, count = shape
        offsets, indices, values = map(c_void_p, addresses)
        matrix = (byref(self._one), self._description, values, offsets, indices, side)
        handle, given, zero, target = self._library.handle, c_void_p(dense), byref(self._zero), c_void_p(result)
        if width == 1:
            self._library.ask(
                f"cusparse{self._letter}bsrmv", handle, 0, 0, rows, columns, count, *matrix, given, zero, target
            )
            return
        leading = rows * side
        self._library.ask(
            f"cusparse{self._letter}bsrmm",
            *(handle, 0, 0, 1, rows, width, columns, count),
            *matrix,
            *(given, width, zero, target, leading),
        )


SIDE = 4096
"""Rows and columns of a panel."""
DRAWN = 256
"""Elements of a result that are checked."""


class SparsePattern(Protocol):
    """Where the entries of a matrix are."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def entries(self) -> int:
        """How many values the matrix has; those of dense blocks count in full."""

    def row(self, index: int) -> Iterable[tuple[int, Sequence[int]]]:
        """Runs of a row's values: the place of the first, and the columns of all."""


@dataclass(frozen=True)
class Panels:
    """Single entries, row after row (CSR); the offsets and columns are those of one panel."""

    offsets: array[int]
    """Offsets of ``SIDE`` rows, and the end of the last."""
    indices: array[int]
    count: int
    """Panels."""

    @property
    def rows(self) -> int:
        return SIDE * self.count

    @property
    def columns(self) -> int:
        return SIDE * self.count

    @property
    def entries(self) -> int:
        return len(self.indices) * self.count

    def row(self, index: int) -> Iterable[tuple[int, Sequence[int]]]:
        panel, inside = divmod(index, SIDE)
        first, last = self.offsets[inside], self.offsets[inside + 1]
        columns = [panel * SIDE + column for column in self.indices[first:last]]
        return [(panel * len(self.indices) + first, columns)]

    def all_offsets(self) -> Iterator[bytes]:
        """Row offsets as 32-bit integers, piece by piece."""
        yield from shifted(self.offsets[:-1], len(self.indices), self.count)
        yield array("i", [self.entries]).tobytes()

    def all_indices(self) -> Iterator[bytes]:
        """Column indices as 32-bit integers, piece by piece."""
        yield from shifted(self.indices, SIDE, self.count)


@dataclass(frozen=True)
class Blocks:
    """Dense square blocks, row of blocks after row of blocks (BSR); inside a block the values lie row by row."""

    side: int
    per_row: int
    """Blocks in each row of blocks."""
    indices: array[int]
    """Columns of blocks."""
    width: int
    """Columns of blocks that the matrix has."""

    @property
    def block_rows(self) -> int:
        return len(self.indices) // self.per_row

    @property
    def rows(self) -> int:
        return self.block_rows * self.side

    @property
    def columns(self) -> int:
        return self.width * self.side

    @property
    def entries(self) -> int:
        return len(self.indices) * self.side**2

    def row(self, index: int) -> Iterable[tuple[int, Sequence[int]]]:
        block_row, inside = divmod(index, self.side)
        for place in range(block_row * self.per_row, (block_row + 1) * self.per_row):
            first = self.indices[place] * self.side
            yield place * self.side**2 + inside * self.side, range(first, first + self.side)

    def offsets(self) -> bytes:
        """Offsets of the rows of blocks as 32-bit integers."""
        return array("i", range(0, len(self.indices) + 1, self.per_row)).tobytes()


def panels(draw: random.Random, per_row: int, count: int) -> Panels:
    """Rows of half to one and a half times ``per_row`` entries, sorted, and one row without any."""
    offsets, indices = array("i", [0]), array("i")
    empty = draw.randrange(SIDE)
    for row in range(SIDE):
        length = 0 if row == empty else draw.randint(per_row // 2, per_row + per_row // 2)
        indices.extend(sorted(draw.sample(range(SIDE), length)))
        offsets.append(len(indices))
    return Panels(offsets, indices, count)


def blocks(draw: random.Random, side: int, per_row: int, block_rows: int) -> Blocks:
    """``per_row`` blocks in each row of blocks, within a window of ``SIDE`` columns."""
    window = SIDE // side
    width = max(block_rows, window)
    indices = array("i")
    for row in range(block_rows):
        first = min(row // window * window, width - window)
        indices.extend(sorted(draw.sample(range(first, first + window), per_row)))
    return Blocks(side, per_row, indices, width)


def shifted(base: array[int], step: int, times: int) -> Iterator[bytes]:
    """``base``, then ``base`` with ``step`` added to each number, and so on, as 32-bit integers.

    The numbers are added as one long integer, whose digits never carry: all of them stay below 2^31.
    """
    number = int.from_bytes(base.tobytes(), "little")
    each = step * int.from_bytes(array("i", [1]).tobytes() * len(base), "little")
    for _ in range(times):
        yield number.to_bytes(len(base) * 4, "little")
        number += each


@dataclass(frozen=True)
class SparseResult:
    """A product as it lies on the GPU: element (row, column) is ``row * row_step + column * column_step``."""

    array: Array
    row_step: int
    column_step: int


def verified(
    pattern: SparsePattern, values: Array, dense: Array, result: SparseResult, width: int, draw: random.Random
) -> Fields:
    """Check drawn elements of ``result = matrix . dense`` against FP64 sums on the CPU.

    ``dense`` lies row by row, ``width`` elements each (1: a vector). An element may be off by ``4 * epsilon * sqrt(K)``
    of the sum of the sizes of its K products: the rounding of K sums adds up like a random walk.
    """
    rows = [draw.randrange(pattern.rows) for _ in range(DRAWN if width == 1 else DRAWN // 4)]
    columns = [draw.randrange(width) for _ in range(1 if width == 1 else 4)]
    triples, longest = [], 1
    for row in rows:
        runs = [(values.values(start, len(places)), places) for start, places in pattern.row(row) if places]
        longest = max(longest, sum(len(places) for _, places in runs))
        for column in columns:
            products = [
                product for factors, places in runs for product in _products(factors, places, dense, width, column)
            ]
            (found,) = result.array.values(row * result.row_step + column * result.column_step, 1)
            triples.append((found, sum(products), sum(map(abs, products))))
    tolerance = 4 * result.array.element.epsilon * longest**0.5
    return compared(triples, tolerance, f"{len(triples):,} random elements against FP64 sums on the CPU")


def _products(factors: list[float], places: Sequence[int], dense: Array, width: int, column: int) -> list[float]:
    first = places[0]
    span = dense.strided(first * width + column, width, places[-1] - first + 1)
    return [factor * span[place - first] for factor, place in zip(factors, places, strict=True)]
