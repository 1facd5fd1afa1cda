"""Dense factorizations through cuSOLVER: LU, Cholesky, QR and singular values, in FP32 and FP64."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from itertools import pairwise
from operator import mul

from ..common.figures import Fields, FigureKey, compared, verification
from ..common.out import Out
from ..common.tree import Tree
from ..measuring.arrays import ELEMENTS, Array
from ..measuring.device import LibraryError, call
from ..measuring.mathematics.common import Workshop
from ..measuring.mathematics.cusolver import CuSolver, Factorization, Solver
from ..measuring.measurement import Bench, Measure, Plan, Work, with_full
from ..measuring.verify import encoded

PROBE = {
    "title": "Dense factorizations (cuSOLVER)",
    "kind": "bench",
    "seconds": 60.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node", "env"],
    "deep": True,
    "fills": ["measurements"],
}

SIDES = {"lu": 4096, "cholesky": 4096, "qr": 4096, "svd": 1024}
LEAST = 512
OPERATIONS = {"lu": 2 / 3, "cholesky": 1 / 3, "qr": 4 / 3, "svd": 21.0}
"""Floating-point operations of an n x n matrix as shares of n^3 (L. N. Trefethen and D. Bau, Numerical Linear Algebra,
lectures 20, 23 and 10). Those of singular values are nominal, as the number of sweeps is not known beforehand."""
PLAN = Plan(samples=5, sample_seconds=0.01, warmup_seconds=0.0, enough=0.2)
DRAWN = 128
"""Rows whose residuals are checked, or pairs of columns."""
CROSSED = 16
"""Rows and columns whose crossings are checked."""


def collect(tree: Tree, out: Out) -> None:
    """Measure each factorization."""
    with_full(tree, out, _measures)


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    runner = cache(lambda: SolverRunner(bench))
    if not bench.timing:
        return {FigureKey("cusolver-lu", "fp32"): _factorization(runner, "lu", "fp32")}
    return {
        FigureKey(f"cusolver-{name}", kind): _factorization(runner, name, kind)
        for name in SIDES
        for kind in ("fp32", "fp64")
    }


def _factorization(runner: Callable[[], SolverRunner], name: str, kind: str) -> Measure:
    return lambda _: getattr(runner(), name)(kind)


class SolverRunner:
    """Factorizations on one GPU."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._shop = bench, Workshop(bench)
        self._device = bench.device
        self._library = CuSolver(bench)

    def lu(self, kind: str) -> Fields:
        """LU of a random matrix, verified by the solution for a random right-hand side."""
        side = self._side("lu", kind)
        solver = Solver(self._library, kind, side)
        with ExitStack() as held:
            matrix, work = self._matrices(kind, side, held)
            pivots = held.enter_context(self._shop.arrays.empty("int32", 2 * side))
            status = held.enter_context(self._shop.arrays.empty("int32", 1))
            run = self._factored((matrix, work), solver.lu(work.address, pivots.address), status, held)
            found = self._timed("lu", kind, side, run, (status, pivots))
            solve = partial(solver.solve_lu, work.address, pivots.address)
            rows = {row: matrix.strided(row, side, side) for row in self._drawn(side)}
            found["verification"] = self._solved(solve, rows, kind, side, status)
        return found

    def cholesky(self, kind: str) -> Fields:
        """The Cholesky factor of a random symmetric matrix that its diagonal makes positive definite."""
        side = self._side("cholesky", kind)
        solver = Solver(self._library, kind, side)
        with ExitStack() as held:
            matrix, work = self._matrices(kind, side, held)
            self._device.write_strided(
                matrix.address,
                encoded([diagonal(side)] * side, matrix.element.code),
                matrix.element.size,
                (side + 1) * matrix.element.size,
            )
            status = held.enter_context(self._shop.arrays.empty("int32", 1))
            run = self._factored((matrix, work), solver.cholesky(work.address), status, held)
            found = self._timed("cholesky", kind, side, run, (status,))
            rows = {row: symmetric_row(matrix, side, row) for row in self._drawn(side)}
            solve = partial(solver.solve_cholesky, work.address)
            found["verification"] = self._solved(solve, rows, kind, side, status)
        return found

    def qr(self, kind: str) -> Fields:
        """QR of a random matrix: drawn elements of Q R, and whether drawn columns of Q are orthonormal."""
        side = self._side("qr", kind)
        solver = Solver(self._library, kind, side)
        with ExitStack() as held:
            matrix, work = self._matrices(kind, side, held)
            scales = held.enter_context(self._shop.arrays.empty(kind, side))
            status = held.enter_context(self._shop.arrays.empty("int32", 1))
            run = self._factored((matrix, work), solver.qr(work.address, scales.address), status, held)
            found = self._timed("qr", kind, side, run, (status, scales))
            columns = self._shop.draw.sample(range(side), CROSSED)
            upper = {
                column: [*work.values(column * side, column + 1), *[0.0] * (side - column - 1)] for column in columns
            }
            status.poison()
            with solver.unfolded(self._shop, work.address, scales.address, status.address):
                self._sound(status, "orgqr")
            found["verification"] = factors_checked(matrix, work, upper, side, self._shop.draw)
        return found

    def svd(self, kind: str) -> Fields:
        """Singular values and vectors of a random matrix by Jacobi's method, which PyTorch takes too."""
        side = self._side("svd", kind)
        solver = Solver(self._library, kind, side)
        with ExitStack() as held:
            matrix, work = self._matrices(kind, side, held)
            left, right = (held.enter_context(self._shop.arrays.empty(kind, side * side)) for _ in range(2))
            values = held.enter_context(self._shop.arrays.empty(kind, side))
            status = held.enter_context(self._shop.arrays.empty("int32", 1))
            places = (work.address, values.address, left.address, right.address)
            factorize = held.enter_context(solver.svd(self._shop, *places))
            run = self._run((matrix, work), partial(factorize, status.address))
            found = self._timed("svd", kind, side, run, (status, values, left, right), "gesvdj")
            found["verification"] = singular_checked(matrix, values, left, right, side, self._shop.draw)
        return found

    def _side(self, name: str, kind: str) -> int:
        """As large as wanted, or as memory holds six of."""
        side = SIDES[name] if self._bench.timing else LEAST
        while side > LEAST and 6 * side * side * ELEMENTS[kind].size > self._device.free_memory():
            side //= 2
        return side

    def _drawn(self, side: int) -> list[int]:
        return self._shop.draw.sample(range(side), min(DRAWN, side))

    def _matrices(self, kind: str, side: int, held: ExitStack) -> tuple[Array, Array]:
        """A random matrix, and memory for it and its factors."""
        matrix = held.enter_context(self._shop.random(kind, side * side))
        return matrix, held.enter_context(self._shop.arrays.empty(kind, side * side))

    def _factored(
        self, matrices: tuple[Array, Array], factorization: Factorization, status: Array, held: ExitStack
    ) -> Work:
        workspace = held.enter_context(self._shop.workspace(factorization.workspace))
        return self._run(matrices, partial(factorization.run, workspace, status.address))

    def _run(self, matrices: tuple[Array, Array], factorize: Work) -> Work:
        """A factorization after the copy of the matrix that it overwrites."""
        matrix, work = matrices

        def run() -> None:
            call("cuMemcpyDtoDAsync", work.address, matrix.address, matrix.bytes, self._device.stream)
            factorize()

        return run

    def _timed(self, name: str, kind: str, side: int, run: Work, outputs: tuple[Array, ...], way: str = "") -> Fields:
        """Time a factorization; the first of its outputs is the status, and all are poisoned before each sample."""

        def poison() -> None:
            for output in outputs:
                output.poison()

        found = self._bench.rate(
            f"cusolver-{name}",
            OPERATIONS[name] * side**3,
            run,
            PLAN,
            poison=poison,
            unit="FLOP/s",
            method="cusolver",
            detail=", ".join(filter(None, (f"cuSOLVER {self._library.version}", way, f"{side} x {side}"))),
            library=self._library.path,
            precision=kind,
        )
        self._sound(outputs[0], name)
        return found

    def _sound(self, status: Array, what: str) -> None:
        (word,) = status.values()
        if word != 0:
            raise LibraryError(f"{what}: info {int(word)}", self._library.path)

    def _solved(
        self, solve: Callable[[int, int], None], rows: dict[int, list[float]], kind: str, side: int, status: Array
    ) -> Fields:
        with self._shop.random(kind, side) as vector:
            right = vector.values()
            status.poison()
            solve(vector.address, status.address)
            self._sound(status, "solution")
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
    found = compared(triples, 20 * side * matrix.element.epsilon, how)
    wrong = found["wrong"] + disorder
    return verification(found["checked"], wrong, how, worst=found.get("worst"), tolerance=found["tolerance"])
