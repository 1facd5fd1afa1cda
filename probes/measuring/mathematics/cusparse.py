"""cuSPARSE by the path of its library: its generic API, and the older one for blocks (cuSPARSE documentation)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_double, c_float, c_int64, c_size_t, c_void_p
from typing import Any

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
