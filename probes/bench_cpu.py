"""What the processor does with NumPy and SciPy: the same products and transforms that the GPU is measured with."""

from __future__ import annotations

import importlib
import math
import os
import random
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from .inside.figures import Absent, Fields, Figure, Measure, compared, rate, run_all
from .inside.processor import blas_of, processor
from .kit.out import Out
from .kit.tree import Tree

PROBE = {
    "title": "The CPU beside the GPU (NumPy, SciPy)",
    "kind": "bench",
    "seconds": 60.0,
    "uses": "files",
    "per": "machine",
    "runs_in": "environment",
    "scopes": ["node"],
    "fills": ["measurements"],
}

EPSILON = {"fp32": 2**-24, "fp64": 2**-53}
SIDES = (8192, 4096, 2048, 1024)
LONGEST_RUN = 0.35
"""Seconds that one product may take: where the processor is slower, the matrices are smaller."""
ROWS, PER_ROW, COLUMNS = 1 << 20, 32, 32
"""Of the sparse matrix, which is square, and columns of the dense matrix that it is multiplied by."""
LENGTH, BATCH = 4096, 4096
"""Of a transform, and how many are done in one call."""
SAMPLES = 5
BUDGET = 0.8
"""Seconds from which on no further sample is taken."""
DRAWN = 64
"""Elements of a result that are compared with FP64."""


def collect(tree: Tree, out: Out) -> None:
    """Measure what NumPy and SciPy of this environment can, each result verified."""
    asked = tree.request["bench"]
    if not asked.get("timing", True):
        out.absent("measured by bench only")
        return
    run_all(tree, out, measures())


def measures() -> dict[Figure, Measure]:
    """What is measured, by what tells it apart."""
    sparse = lru_cache(maxsize=None)(_Sparse)
    return {
        **{Figure("cpu-gemm", kind): partial(product, kind) for kind in EPSILON},
        Figure("cpu-spmv", "fp32", variant="CSR"): lambda: sparse().times_vector(),
        Figure("cpu-spmm", "fp32", variant="CSR"): lambda: sparse().times_matrix(),
        **{Figure("cpu-fft", kind, variant="1D, batched"): partial(transform, kind) for kind in EPSILON},
    }


def product(kind: str) -> Fields:
    """A square matrix product by NumPy's BLAS: operations a second."""
    numpy = _numpy()
    side = _side(kind)
    left, right, result = _random(kind, side, side), _random(kind, side, side), numpy.empty((side, side), _type(kind))

    def work() -> None:
        numpy.matmul(left, right, out=result)

    seconds = timed(work, lambda: result.fill(math.nan))
    blas = blas_of(numpy)
    return {
        **rate(2.0 * side**3, seconds, "FLOP/s"),
        **_of_numpy(blas.words if blas else "an unknown BLAS"),
        "shape": [side, side, side],
        "library": blas.path if blas else None,
        **compared(
            (
                _element(left[row].tolist(), right[:, column].tolist(), float(result[row, column]))
                for row, column in _places(side, side)
            ),
            tolerance(kind, side),
            f"{DRAWN} random elements against FP64 in Python",
        ),
    }


def tolerance(kind: str, terms: int) -> float:
    """What a sum of ``terms`` products may be off, in parts of the root of the sum of their squares.

    Each addition rounds its partial sum, by at most epsilon times that. In whatever order the sum is formed, the errors
    add up as a random walk of ``terms`` steps, each at most epsilon times the size of the sum:
    ``epsilon * sqrt(terms)``. No correct sum reaches eight times that.
    """
    return 8 * EPSILON[kind] * math.sqrt(terms)


def _element(left: list[float], right: list[float], found: float) -> tuple[float, float, float]:
    terms = [a * b for a, b in zip(left, right)]  # noqa: B905  read by Python 3.8 too
    return found, math.fsum(terms), math.sqrt(math.fsum(term * term for term in terms))


def _side(kind: str) -> int:
    """The largest side whose product takes no longer than ``LONGEST_RUN``, judged by the smallest."""
    numpy, least = _numpy(), SIDES[-1]
    left, result = _random(kind, least, least), numpy.empty((least, least), _type(kind))
    one = min(_once(lambda: numpy.matmul(left, left, out=result)) for _ in range(3))
    return next((side for side in SIDES if one * (side / least) ** 3 <= LONGEST_RUN), least)


class _Sparse:
    """A random CSR matrix in FP32, and SciPy's products with it: bytes that must move a second, and operations."""

    def __init__(self) -> None:
        numpy = _numpy()
        scipy, sparse = _module("scipy", "SciPy"), _module("scipy.sparse", "SciPy")
        draw = numpy.random.default_rng()
        # Sorted and different in each row, as in matrices that programs build: one column in each stretch of them.
        stretch = ROWS // PER_ROW
        self.columns = draw.integers(0, stretch, (ROWS, PER_ROW), dtype=numpy.int32)
        self.columns += numpy.arange(PER_ROW, dtype=numpy.int32) * stretch
        self.values = _random("fp32", ROWS, PER_ROW)
        rows = numpy.arange(ROWS + 1, dtype=numpy.int32) * PER_ROW
        triple = (self.values.reshape(-1), self.columns.reshape(-1), rows)
        self.matrix = sparse.csr_matrix(triple, shape=(ROWS, ROWS), copy=False)
        self.method = {"method": "scipy", "detail": f"SciPy {scipy.__version__}, 1 thread; {processor()}"}

    def times_vector(self) -> Fields:
        """Bytes a second: matrix, vector and result, each once."""
        vector = _random("fp32", ROWS)
        result, seconds = _kept(lambda: self.matrix @ vector)
        moved = _bytes_of_csr() + 4 * (ROWS + ROWS)
        checked = (self._element(row, vector, float(result[row])) for row in _drawn(ROWS))
        return {**rate(moved, seconds, "B/s"), **self._facts(checked)}

    def times_matrix(self) -> Fields:
        """Operations a second."""
        dense = _random("fp32", ROWS, COLUMNS)
        result, seconds = _kept(lambda: self.matrix @ dense)
        checked = (
            self._element(row, dense[:, column], float(result[row, column])) for row, column in _places(ROWS, COLUMNS)
        )
        facts = {**rate(2.0 * ROWS * PER_ROW * COLUMNS, seconds, "FLOP/s"), **self._facts(checked)}
        return {**facts, "shape": [ROWS, COLUMNS, ROWS]}

    def _element(self, row: int, dense: Any, found: float) -> tuple[float, float, float]:
        return _element(self.values[row].tolist(), dense[self.columns[row]].tolist(), found)

    def _facts(self, checked: Any) -> Fields:
        how = f"{DRAWN} random elements against FP64 in Python"
        return {**self.method, "shape": [ROWS, ROWS, PER_ROW], **compared(checked, tolerance("fp32", PER_ROW), how)}


def _bytes_of_csr() -> int:
    return 4 * (2 * ROWS * PER_ROW + ROWS + 1)


def transform(kind: str) -> Fields:
    """Complex transforms by NumPy's FFT: operations a second, as 5 N log2 N each."""
    numpy = _numpy()
    given = _random(kind, BATCH, LENGTH) + 1j * _random(kind, BATCH, LENGTH)
    given = given.astype(numpy.complex64 if kind == "fp32" else numpy.complex128)
    if numpy.fft.fft(given[:1]).dtype != given.dtype:
        raise Absent(f"NumPy {numpy.__version__} computes every FFT in FP64")
    result, seconds = _kept(lambda: numpy.fft.fft(given, axis=1))
    unit = [complex(math.cos(angle), -math.sin(angle)) for angle in (2 * math.pi * k / LENGTH for k in range(LENGTH))]
    triples = []
    for row, column in _places(BATCH, LENGTH):
        terms = [value * unit[place * column % LENGTH] for place, value in enumerate(given[row].tolist())]
        exact = complex(math.fsum(term.real for term in terms), math.fsum(term.imag for term in terms))
        size = math.sqrt(math.fsum(abs(term) ** 2 for term in terms))
        triples.append((abs(complex(result[row, column]) - exact), 0.0, size))
    return {
        **rate(5.0 * BATCH * LENGTH * math.log2(LENGTH), seconds, "FLOP/s"),
        **_of_numpy("1 thread"),
        "shape": [BATCH, LENGTH],
        # A transform by halves has log2 N steps, whose errors add up at worst.
        **compared(triples, 8 * EPSILON[kind] * math.log2(LENGTH), f"{DRAWN} random bins against sums in FP64"),
    }


def _of_numpy(how: str) -> Fields:
    return {"method": "numpy", "detail": f"NumPy {_numpy().__version__}, {how}; {processor()}"}


def timed(work: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> list[float]:
    """Seconds of single runs after one that is not counted; ``before`` precedes each and is not timed."""
    work()
    seconds: list[float] = []
    while not seconds or (len(seconds) < SAMPLES and sum(seconds) < BUDGET):
        before()
        seconds.append(_once(work))
    return seconds


def _once(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _kept(work: Callable[[], Any]) -> tuple[Any, list[float]]:
    """The result of the last run, and the seconds of each; the library makes a new array for every result."""
    last: list[Any] = [None]

    def run() -> None:
        last[0] = work()

    seconds = timed(run, lambda: last.__setitem__(0, None))
    return last[0], seconds


def _numpy() -> Any:
    return _module("numpy", "NumPy")


def _module(name: str, title: str) -> Any:
    """A package of the environment; raise Absent where it is not there or cannot be imported."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{title} cannot be imported here: {error}") from error


def _type(kind: str) -> str:
    return {"fp32": "float32", "fp64": "float64"}[kind]


def _random(kind: str, *shape: int) -> Any:
    """Uniform in [-1, 1), and no run had them before."""
    draw = _numpy().random.default_rng()
    numbers = draw.random(shape, dtype=_type(kind))
    numbers *= 2
    numbers -= 1
    return numbers


_DRAW = random.Random(os.urandom(16))  # noqa: S311  no secret


def _drawn(count: int) -> list[int]:
    return [_DRAW.randrange(count) for _ in range(DRAWN)]


def _places(rows: int, columns: int) -> list[tuple[int, int]]:
    return [(_DRAW.randrange(rows), _DRAW.randrange(columns)) for _ in range(DRAWN)]
