"""Dense factorizations of cuSOLVER by the path of its library, through its 64-bit API (cuSOLVER documentation)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p, create_string_buffer
from typing import Any

from ..measurement import Bench
from .common import DATA_TYPES, MathLibrary, Workshop

LOWER = 0
"""Member of ``cublasFillMode_t``."""
_VECTORS = 1
_LETTERS = {"fp32": "S", "fp64": "D"}
_STATUSES = {
    1: "NOT_INITIALIZED",
    2: "ALLOC_FAILED",
    3: "INVALID_VALUE",
    4: "ARCH_MISMATCH",
    5: "MAPPING_ERROR",
    6: "EXECUTION_FAILED",
    7: "INTERNAL_ERROR",
    8: "MATRIX_TYPE_NOT_SUPPORTED",
    9: "NOT_SUPPORTED",
    10: "ZERO_PIVOT",
    11: "INVALID_LICENSE",
    31: "INVALID_WORKSPACE",
}
"""Members of ``cusolverStatus_t`` without their prefix; the library has no words of its own for them."""


class CuSolver(MathLibrary):
    """The library with a handle on the bench's stream."""

    prefix, statuses = "CUSOLVER_STATUS_", _STATUSES

    def __init__(self, bench: Bench) -> None:
        needed = ("nvJitLink", "cublasLt", "cublas", "cusparse")
        super().__init__(bench, "cusolver", "cuSOLVER", first=needed)
        self.handle, self.parameters = c_void_p(), c_void_p()
        self.ask("cusolverDnCreate", byref(self.handle))
        self.ask("cusolverDnSetStream", self.handle, c_void_p(int(bench.device.stream)))
        self.ask("cusolverDnCreateParams", byref(self.parameters))


class Factorization:
    """One call of ``cusolverDnX...``, with what it needs."""

    def __init__(
        self,
        library: CuSolver,
        name: str,
        arguments: tuple[Any, ...],
        kind: str,
        outputs: tuple[Any, ...] = (),
    ) -> None:
        """``arguments`` are those that the question for the workspace takes too."""
        self._library, self._name = library, f"cusolverDnX{name}"
        before = (library.handle, library.parameters, *arguments)
        on_device, on_host = c_size_t(), c_size_t()
        compute = DATA_TYPES[kind]
        library.ask(f"{self._name}_bufferSize", *before, compute, byref(on_device), byref(on_host))
        self.workspace = on_device.value
        self._host = create_string_buffer(max(on_host.value, 1))
        self._before = (*before, *outputs, compute)
        self._host_size = on_host

    def run(self, workspace: int, status: int) -> None:
        """Queue it; ``status`` is the address of a 32-bit integer that becomes 0."""
        buffers = (c_void_p(workspace), c_size_t(self.workspace), self._host, self._host_size)
        self._library.ask(self._name, *self._before, *buffers, c_void_p(status))


class Solver:
    """Factorizations in place of ``side`` x ``side`` matrices that lie column by column, and what follows from them."""

    def __init__(self, library: CuSolver, kind: str, side: int) -> None:
        self._library, self._kind, self._side = library, kind, side
        self._type, self._n = DATA_TYPES[kind], c_int64(side)

    def _matrix(self, address: int) -> tuple[Any, ...]:
        return self._type, c_void_p(address), self._n

    def lu(self, matrix: int, pivots: int) -> Factorization:
        """L and U by partial pivoting."""
        arguments = (self._n, self._n, *self._matrix(matrix))
        return Factorization(self._library, "getrf", arguments, self._kind, (c_void_p(pivots),))

    def solve_lu(self, matrix: int, pivots: int, right: int, status: int) -> None:
        """Queue the solution for one right-hand side, in place."""
        one = (self._n, c_int64(1))
        places = (*self._matrix(matrix), c_void_p(pivots), *self._matrix(right), c_void_p(status))
        self._library.ask("cusolverDnXgetrs", self._library.handle, self._library.parameters, 0, *one, *places)

    def cholesky(self, matrix: int) -> Factorization:
        """L of a symmetric matrix, of which the lower triangle is read."""
        return Factorization(self._library, "potrf", (LOWER, self._n, *self._matrix(matrix)), self._kind)

    def solve_cholesky(self, matrix: int, right: int, status: int) -> None:
        """Queue the solution for one right-hand side, in place."""
        before = (self._library.handle, self._library.parameters, LOWER, self._n, c_int64(1))
        self._library.ask("cusolverDnXpotrs", *before, *self._matrix(matrix), *self._matrix(right), c_void_p(status))

    def qr(self, matrix: int, scales: int) -> Factorization:
        """R, and Q as reflections with ``scales``."""
        arguments = (self._n, self._n, *self._matrix(matrix), self._type, c_void_p(scales))
        return Factorization(self._library, "geqrf", arguments, self._kind)

    @contextmanager
    def unfolded(self, shop: Workshop, matrix: int, scales: int, status: int) -> Iterator[None]:
        """Write Q as a matrix over its reflections."""
        name, size = f"cusolverDn{_LETTERS[self._kind]}orgqr", c_int()
        sides = (self._side, self._side, self._side)
        places = (c_void_p(matrix), self._side, c_void_p(scales))
        handle = self._library.handle
        self._library.ask(f"{name}_bufferSize", handle, *sides, *places, byref(size))
        with shop.workspace(size.value * (8 if self._kind == "fp64" else 4)) as workspace:
            self._library.ask(name, handle, *sides, *places, c_void_p(workspace), size, c_void_p(status))
            yield

    @contextmanager
    def svd(self, shop: Workshop, matrix: int, values: int, left: int, right: int) -> Iterator[Callable[[int], None]]:
        """Singular values and vectors, as columns, by Jacobi's method: what it yields queues it and takes a status.

        The matrix is overwritten.
        """
        name, size, parameters = f"cusolverDn{_LETTERS[self._kind]}gesvdj", c_int(), c_void_p()
        library, side = self._library, self._side
        places = (c_void_p(matrix), side, c_void_p(values), c_void_p(left), side, c_void_p(right), side)
        arguments = (library.handle, _VECTORS, 0, side, side, *places)
        library.ask("cusolverDnCreateGesvdjInfo", byref(parameters))
        try:
            library.ask(f"{name}_bufferSize", *arguments, byref(size), parameters)
            with shop.workspace(size.value * (8 if self._kind == "fp64" else 4)) as workspace:
                last = (c_void_p(workspace), size)
                yield lambda status: library.ask(name, *arguments, *last, c_void_p(status), parameters)
        finally:
            library.function("cusolverDnDestroyGesvdjInfo")(parameters)
