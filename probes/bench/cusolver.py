"""Dense factorizations through cuSOLVER's 64-bit API: LU, Cholesky, QR and singular values, in FP32 and FP64."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p, create_string_buffer
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from operator import mul
from typing import Any

from ..measuring.arrays import ELEMENTS, Array, Arrays, poisoning
from ..measuring.device import call
from ..measuring.library import DATA_TYPES, MathLibrary
from ..measuring.measurement import Bench, Plan, Task, Work, tasks, with_full
from ..measuring.runtime import Fields, FigureKey, LibraryError, Measures, compared
from ..measuring.verify import encoded

PROBE = {"title": "Dense factorizations (cuSOLVER)", "seconds": 60.0, "deep": True}

LOWER = 0  # Member of ``cublasFillMode_t``
_VECTORS = 1
_LETTERS = {"fp32": "S", "fp64": "D"}
SIDES = {"lu": 4096, "cholesky": 4096, "qr": 4096, "svd": 1024}
LEAST = 512
OPERATIONS = {"lu": 2 / 3, "cholesky": 1 / 3, "qr": 4 / 3, "svd": 21.0}
"""Floating-point operations of an n x n matrix as shares of n^3 (L. N. Trefethen and D. Bau, Numerical Linear Algebra,
lectures 20, 23 and 10). Those of singular values are nominal, as the number of sweeps is not known beforehand."""
PLAN = Plan(samples=5, sample_seconds=0.01, warmup_seconds=0.0, enough=0.2)
DRAWN = 128  # Rows whose residuals are checked, or pairs of columns
CROSSED = 16  # Rows and columns whose crossings are checked


def measures(bench: Bench) -> Measures:
    """The measures, by figure; a deep check makes one small factorization."""
    arrays, library = Arrays(bench), cache(partial(CuSolver, bench))
    chosen = [(name, kind) for name in SIDES for kind in ("fp32", "fp64")] if bench.timing else [("lu", "fp32")]
    makes = {
        FigureKey(f"cusolver-{name}", kind): partial(factored, arrays, library, name, kind) for name, kind in chosen
    }
    return tasks(bench, makes)


collect = partial(with_full, measures=measures)


class CuSolver(MathLibrary):
    """The library with a handle on the bench's stream."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "cusolver")
        self.handle, self.parameters = c_void_p(), c_void_p()
        self.ask("cusolverDnCreate", byref(self.handle))
        self.ask("cusolverDnSetStream", self.handle, c_void_p(int(bench.device.stream)))
        self.ask("cusolverDnCreateParams", byref(self.parameters))


def factored(arrays: Arrays, library: Callable[[], CuSolver], name: str, kind: str, stack: ExitStack) -> Task:
    """A factorization of a random matrix, as large as wanted or as memory holds six of, which is copied before."""
    bench, cusolver = arrays.bench, library()
    side = SIDES[name] if bench.timing else LEAST
    while side > LEAST and 6 * side * side * ELEMENTS[kind].size > bench.device.free_memory():
        side //= 2
    matrix, work = (stack.enter_context(make(kind, side * side)) for make in (arrays.random, arrays.empty))
    status = stack.enter_context(arrays.empty("int32", 1))
    problem = DenseProblem(arrays, cusolver, kind, side, matrix, work, status)
    factorize, outputs, check = getattr(problem, name)(stack)

    def run() -> None:
        call("cuMemcpyDtoDAsync", work.address, matrix.address, matrix.bytes, bench.device.stream)
        factorize()

    def verified() -> Fields:
        problem.require_sound(name)
        found: Fields = check()
        return found

    words = ("gesvdj",) if name == "svd" else ()
    facts = cusolver.facts("FLOP/s", *words, f"{side} x {side}")
    return Task(run, OPERATIONS[name] * side**3, verified, facts, poisoning(status, *outputs), PLAN)


Factoring = tuple[Work, tuple[Array, ...], Callable[[], Fields]]
"""What factorizes ``work``, what else is written, and how the factors are verified."""


@dataclass(frozen=True)
class DenseProblem:
    """A matrix, memory for it and its factors, and the status of what is done with them; matrices lie by columns."""

    arrays: Arrays
    library: CuSolver
    kind: str
    side: int
    matrix: Array
    work: Array
    status: Array

    def lu(self, stack: ExitStack) -> Factoring:
        """By partial pivoting; verified by the solution for a random right-hand side."""
        pivots, side = stack.enter_context(self.arrays.empty("int32", 2 * self.side)), self.side

        def check() -> Fields:
            rows = {row: self.matrix.strided(row, side, side) for row in self._drawn()}
            return self._solved(rows, "getrs", 0, c_void_p(pivots.address))

        arguments = (c_int64(side), c_int64(side), *self._place(self.work))
        return self._factoring(stack, "getrf", arguments, c_void_p(pivots.address)), (pivots,), check

    def cholesky(self, stack: ExitStack) -> Factoring:
        """Of a symmetric matrix, whose lower triangle is read and whose diagonal makes it positive definite.

        It is verified as LU is.
        """
        matrix, element, side = self.matrix, self.matrix.element, self.side
        diagonals = encoded([diagonal(side)] * side, element.code)
        self.arrays.bench.device.write_strided(matrix.address, diagonals, element.size, (side + 1) * element.size)

        def check() -> Fields:
            return self._solved({row: symmetric_row(matrix, side, row) for row in self._drawn()}, "potrs", LOWER)

        arguments = (LOWER, c_int64(side), *self._place(self.work))
        return self._factoring(stack, "potrf", arguments), (), check

    def qr(self, stack: ExitStack) -> Factoring:
        """R, and Q as reflections; verified by drawn elements of Q R, and drawn columns of Q, which are orthonormal."""
        scales, side, work = stack.enter_context(self.arrays.empty(self.kind, self.side)), self.side, self.work

        def check() -> Fields:
            columns = self.arrays.draw.sample(range(side), CROSSED)
            upper = {
                column: [*work.values(column * side, column + 1), *[0.0] * (side - column - 1)] for column in columns
            }
            self.status.poison()
            # Write Q as a matrix over its reflections.
            name, size = f"cusolverDn{_LETTERS[self.kind]}orgqr", c_int()
            arguments = (self.library.handle, side, side, side, c_void_p(work.address), side, c_void_p(scales.address))
            self.library.ask(f"{name}_bufferSize", *arguments, byref(size))
            with self.arrays.workspace(size.value * work.element.size) as workspace:
                self.library.ask(name, *arguments, c_void_p(workspace), size, c_void_p(self.status.address))
                self.require_sound("orgqr")
            return factors_checked(self.matrix, work, upper, side, self.arrays.draw)

        arguments = (c_int64(side), c_int64(side), *self._place(work), DATA_TYPES[self.kind], c_void_p(scales.address))
        return self._factoring(stack, "geqrf", arguments), (scales,), check

    def svd(self, stack: ExitStack) -> Factoring:
        """Singular values and vectors, as columns, by Jacobi's method, which PyTorch takes too."""
        side, library, size, parameters = self.side, self.library, c_int(), c_void_p()
        left, right, values = (
            stack.enter_context(self.arrays.empty(self.kind, count)) for count in (side * side, side * side, side)
        )
        work, sizes, u, v = (c_void_p(array.address) for array in (self.work, values, left, right))
        arguments = (library.handle, _VECTORS, 0, side, side, work, side, sizes, u, side, v, side)
        name = f"cusolverDn{_LETTERS[self.kind]}gesvdj"
        library.ask("cusolverDnCreateGesvdjInfo", byref(parameters))
        stack.callback(library.function("cusolverDnDestroyGesvdjInfo"), parameters)
        library.ask(f"{name}_bufferSize", *arguments, byref(size), parameters)
        workspace = stack.enter_context(self.arrays.workspace(size.value * self.work.element.size))
        last = (c_void_p(workspace), size, c_void_p(self.status.address), parameters)
        check = partial(singular_checked, self.matrix, values, left, right, side, self.arrays.draw)
        return partial(library.ask, name, *arguments, *last), (values, left, right), check

    def require_sound(self, what: str) -> None:
        """Raise LibraryError unless the status says that all is well."""
        (word,) = self.status.values()
        if word != 0:
            raise LibraryError(f"{what}: info {int(word)}", self.library.path)

    def _place(self, array: Array) -> tuple[Any, ...]:
        return DATA_TYPES[self.kind], c_void_p(array.address), c_int64(self.side)

    def _drawn(self) -> list[int]:
        return self.arrays.draw.sample(range(self.side), min(DRAWN, self.side))

    def _factoring(self, stack: ExitStack, name: str, arguments: tuple[Any, ...], *outputs: Any) -> Work:
        """What queues ``cusolverDnXNAME``; ``arguments`` are those that the question for the workspace takes too."""
        library, function, compute = self.library, f"cusolverDnX{name}", DATA_TYPES[self.kind]
        before = (library.handle, library.parameters, *arguments)
        on_device, on_host = c_size_t(), c_size_t()
        library.ask(f"{function}_bufferSize", *before, compute, byref(on_device), byref(on_host))
        workspace = c_void_p(stack.enter_context(self.arrays.workspace(on_device.value)))
        buffers = (workspace, on_device, create_string_buffer(max(on_host.value, 1)), on_host)
        return partial(library.ask, function, *before, *outputs, compute, *buffers, c_void_p(self.status.address))

    def _solved(self, rows: dict[int, list[float]], name: str, way: int, *pivots: Any) -> Fields:
        """The residuals of the solution for one right-hand side, which ``name`` finds in place."""
        library, status = self.library, self.status
        with self.arrays.random(self.kind, self.side) as vector:
            right = vector.values()
            status.poison()
            before = (library.handle, library.parameters, way, c_int64(self.side), c_int64(1), *self._place(self.work))
            library.ask(f"cusolverDnX{name}", *before, *pivots, *self._place(vector), c_void_p(status.address))
            self.require_sound("solution")
            return residuals_checked(rows, vector.values(), right, vector.element.epsilon)


def diagonal(side: int) -> float:
    """Twice what makes a random symmetric matrix positive definite: its eigenvalues end at ``2 * sqrt(n / 3)``."""
    return float(4 * math.ceil(math.sqrt(side / 3)))


def symmetric_row(matrix: Array, side: int, row: int) -> list[float]:
    """A row of the symmetric matrix that the lower triangle of an array stands for."""
    return [*matrix.strided(row, side, row), *matrix.values(row * side + row, side - row)]


def residuals_checked(
    rows: dict[int, list[float]], solution: list[float], right: list[float], epsilon: float
) -> Fields:
    """Check that drawn rows of ``A x`` give b, in units of ``|row| |x| + |b|``.

    ``10 * epsilon * sqrt(n)`` is allowed: rounding, times the growth of elements under partial pivoting. With 4,096
    rows of random numbers LU left a thirteenth of that on an H200, in FP32 and in FP64, and Cholesky a thousandth.
    """
    norm = math.sqrt(sum(map(mul, solution, solution)))
    triples = []
    for row, values in rows.items():
        found = sum(map(mul, values, solution))
        triples.append((found, right[row], math.sqrt(sum(map(mul, values, values))) * norm + abs(right[row])))
    tolerance = 10 * epsilon * math.sqrt(len(solution))
    return compared(triples, tolerance, f"residuals of {len(triples)} random rows in FP64 on the CPU")


def factors_checked(
    matrix: Array, orthogonal: Array, upper: dict[int, list[float]], side: int, draw: random.Random
) -> Fields:
    """Check drawn elements of Q R against the matrix, and drawn pairs of Q's columns.

    Householder's reflections leave columns that are off by some ``epsilon * sqrt(n)`` of their length (N. J. Higham,
    Accuracy and Stability of Numerical Algorithms, chapter 19), spread over n elements; ten times that is allowed for
    each.
    """
    rows = {row: orthogonal.strided(row, side, side) for row in draw.sample(range(side), CROSSED)}
    epsilon = matrix.element.epsilon
    triples = []
    for column, factors in upper.items():
        size = math.sqrt(sum(map(mul, factors, factors)))
        for row, values in rows.items():
            (exact,) = matrix.values(column * side + row, 1)
            triples.append((sum(map(mul, values, factors)), exact, size))
    triples += list(orthonormal(orthogonal, side, draw))
    how = f"{CROSSED**2} random elements of Q R and {2 * CROSSED} products of columns of Q in FP64 on the CPU"
    return compared(triples, 10 * epsilon * math.sqrt(side), how)


def orthonormal(vectors: Array, side: int, draw: random.Random) -> Iterator[tuple[float, float, float]]:
    """Products of drawn columns with themselves (1) and with another (0)."""
    read = [vectors.values(place * side, side) for place in draw.sample(range(side), CROSSED + 1)]
    for one, other in pairwise(read):
        yield sum(map(mul, one, one)), 1.0, 1.0
        yield sum(map(mul, one, other)), 0.0, 1.0


def singular_checked(matrix: Array, values: Array, left: Array, right: Array, side: int, draw: random.Random) -> Fields:
    """Check drawn elements of U S V^T against the matrix, drawn vectors for orthonormality, and the values.

    The squares of all values sum up to those of all elements. Rounding adds up over the rotations of Jacobi's method,
    n for each vector and sweep: with 1,024 rows its vectors were off by 9,200 epsilon in FP32 on an H200, and by 6,300
    in FP64. ``20 * n * epsilon`` is allowed, for elements in units of four times their root mean square. In FP32 that
    does not distinguish products in TF32 from those in FP32.
    """
    sizes = values.values()
    elements = matrix.values()
    norm = sum(map(mul, elements, elements))
    size = 4 * math.sqrt(norm) / side
    lefts = {row: left.strided(row, side, side) for row in draw.sample(range(side), CROSSED)}
    rights = {column: right.strided(column, side, side) for column in draw.sample(range(side), CROSSED)}
    triples = []
    for row, vector in lefts.items():
        scaled = list(map(mul, vector, sizes))
        for column, other in rights.items():
            triples.append((sum(map(mul, scaled, other)), elements[column * side + row], size))
    triples += [*orthonormal(left, side, draw), *orthonormal(right, side, draw)]
    triples.append((sum(map(mul, sizes, sizes)), norm, 2 * norm))
    disorder = sum(not one >= other >= 0 for one, other in pairwise(sizes))
    products = f"{CROSSED**2} random elements of U S V, {4 * CROSSED} products of vectors"
    how = f"{products}, and the squares of all values in FP64 on the CPU"
    return compared(triples, 20 * side * matrix.element.epsilon, how, disorder)
