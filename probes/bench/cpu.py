"""What the processor does with NumPy and SciPy: the same products and transforms that the GPU is measured with."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Tuple

from ..common.out import Out
from ..common.tree import Tree
from ..framework_bench import workloads
from ..framework_bench.processor import blas_of, free_memory, processor
from ..framework_bench.workloads import SIZE, TRANSFORMS, exact_sum, rate
from ..measuring.runtime import Fields, FigureKey, Measure, Unavailable, compared, run_all

PROBE = {
    "title": "The CPU beside the GPU (NumPy, SciPy)",
    "seconds": 60.0,
    "per": "machine",
    "uses": "files",
    "runs_in": "environment",
    "scopes": ["node"],
}

KINDS = ("fp32", "fp64")
_SIDES = (*workloads.SIDES, 1024)
LONGEST_RUN = 0.35  # Seconds that one product may take: where the processor is slower, the matrices are smaller
PANEL = 4096  # Rows and columns of a panel of the sparse matrix; a row has half to 1.5 times ``PER_ROW`` entries
PLACES = 256  # Points of the input that are not zero when bins are compared with direct sums
SAMPLES = 5
BUDGET = 0.8  # Seconds from which on no further sample is taken
DRAWN, DRAWN_OF_PRODUCT = 256, 128
"""Elements of a result that are compared with FP64; those of a dense product are sums of thousands of terms."""
HOW = "{} random elements against FP64 in Python"


def collect(tree: Tree, out: Out) -> None:
    """Measure what NumPy and SciPy of this environment can, each result verified."""
    asked = tree.request["bench"]
    if not asked.get("timing", True):
        out.absent("measured by bench only")
        return
    run_all(out, measures(), asked.get("gpu"), asked.get("only") or (), inside=True)


def measures() -> dict[FigureKey, Measure]:
    sparse = lru_cache(maxsize=None)(_Sparse)
    figures: dict[FigureKey, Measure] = {FigureKey("cpu-gemm", kind): partial(product, kind) for kind in KINDS}
    figures[FigureKey("cpu-spmv", "fp32", variant="CSR")] = lambda: sparse().times(1)
    figures[FigureKey("cpu-spmm", "fp32", variant="CSR")] = lambda: sparse().times(workloads.WIDTH)
    for name, kind in (("1D, batched", "fp32"), ("1D, batched", "fp64"), ("2D", "fp32")):
        figures[FigureKey("cpu-fft", kind, variant=f"{name}, C2C")] = partial(transform, name, kind)
    return figures


def product(kind: str) -> Fields:
    """A square matrix product by NumPy's BLAS: operations a second."""
    numpy, least = _numpy(), _SIDES[-1]
    # The largest side whose product fits into memory and, judged by the smallest, takes at most ``LONGEST_RUN``.
    _needing(3 * least**2 * SIZE[kind])
    left, result = _random(kind, least, least), numpy.empty((least, least), _type(kind))
    one = min(_once(lambda: numpy.matmul(left, left, out=result)) for _ in range(3))
    quick = [side for side in _SIDES if one * (side / least) ** 3 <= LONGEST_RUN]
    side = next((side for side in quick if _fits(3 * side**2 * SIZE[kind])), least)
    left, right, result = _random(kind, side, side), _random(kind, side, side), numpy.empty((side, side), _type(kind))

    def work() -> None:
        numpy.matmul(left, right, out=result)

    seconds = timed(work, lambda: result.fill(math.nan))
    blas = blas_of(numpy)
    triples = (
        (float(result[row, column]), *exact_sum(left[row].tolist(), right[:, column].tolist()))
        for row, column in _places(side, side, DRAWN_OF_PRODUCT)
    )
    checked = compared(triples, workloads.tolerance(kind, side), HOW.format(DRAWN_OF_PRODUCT))
    facts = {**_of_numpy(blas.words if blas else "an unknown BLAS"), "shape": [side, side, side]}
    facts.update(library=blas.path if blas else None, verification=checked)
    return {**rate(2.0 * side**3, seconds, "FLOP/s"), **facts}


def _fits(size: int) -> bool:
    """Whether ``size`` bytes leave half of the memory that is free to others."""
    free = free_memory()
    return free is None or size <= free // 2


def _needing(size: int) -> None:
    """Raise Unavailable where there are not ``size`` bytes to spare."""
    if not _fits(size):
        raise Unavailable(f"{size >> 20} MiB of memory are needed, more than half of what is free")


class _Sparse:
    """A random CSR matrix in FP32, and SciPy's products with it: bytes that must move at least, a second."""

    def __init__(self) -> None:
        numpy = _numpy()
        _needing(workloads.PANELS * PANEL * (workloads.PER_ROW * 16 + workloads.WIDTH * 4))
        scipy, sparse = _module("scipy", "SciPy"), _module("scipy.sparse", "SciPy")
        lengths = [workloads.DRAW.randint(workloads.PER_ROW // 2, workloads.PER_ROW * 3 // 2) for _ in range(PANEL)]
        lengths[workloads.DRAW.randrange(PANEL)] = 0
        columns = [column for length in lengths for column in sorted(workloads.DRAW.sample(range(PANEL), length))]
        panels = numpy.arange(workloads.PANELS, dtype=numpy.int32)[:, None]
        indices = (numpy.array(columns, numpy.int32) + panels * PANEL).reshape(-1)
        ends = (numpy.cumsum(lengths, dtype=numpy.int32) + panels * numpy.int32(len(columns))).reshape(-1)
        offsets = numpy.concatenate([numpy.zeros(1, numpy.int32), ends])
        triple = (_random("fp32", len(indices)), indices, offsets)
        self._matrix = sparse.csr_matrix(triple, shape=(PANEL * workloads.PANELS, PANEL * workloads.PANELS), copy=False)
        self._facts = {"method": "scipy", "detail": f"SciPy {scipy.__version__}, 1 thread; {processor()}"}

    def times(self, width: int) -> Fields:
        """The product with a vector, or of the first panels with a matrix, row after row."""
        count = PANEL * (workloads.PANELS if width == 1 else workloads.WIDE_PANELS)
        matrix = self._matrix if width == 1 else self._matrix[:count, :count]
        dense = _random("fp32", count, width)
        given = dense[:, 0] if width == 1 else dense
        result, seconds = _kept(lambda: matrix @ given)
        result = result.reshape(count, width)
        moved = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes + dense.nbytes + result.nbytes
        triples = []
        for row, column in _places(count, width):
            entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
            factors = dense[matrix.indices[entries], column].tolist()
            exact = exact_sum(matrix.data[entries].tolist(), factors)
            triples.append((float(result[row, column]), *exact))
        checked = compared(triples, workloads.tolerance("fp32", workloads.PER_ROW), HOW.format(DRAWN))
        return {**rate(float(moved), seconds, "B/s"), **self._facts, "size": moved, "verification": checked}


def transform(name: str, kind: str) -> Fields:
    """Complex transforms by NumPy's FFT: bytes of input and result a second.

    The same call then transforms an input that is zero but at some random points, of which any bin is a short sum. What
    an algorithm does with its numbers does not depend on them, so an error shows there too.
    """
    numpy = _numpy()
    height, width = shape = TRANSFORMS[name].shape
    real, whole = _type(kind), {"fp32": "complex64", "fp64": "complex128"}[kind]
    if numpy.fft.fft(numpy.zeros(2, whole)).dtype != whole:
        raise Unavailable(f"NumPy {numpy.__version__} computes every FFT in FP64")
    _needing(math.prod(shape) * SIZE[kind] * 2 * 3)
    given = numpy.empty((*shape, 2), real)
    given[...] = _random(kind, *shape, 2)
    given = given.view(whole)[..., 0]
    forward = numpy.fft.fft2 if name == "2D" else numpy.fft.fft
    result, seconds = _kept(lambda: forward(given))
    moved = given.nbytes + result.nbytes
    points = {place: complex(*_random(kind, 2).tolist()) for place in _places(height, width, PLACES)}
    given[...] = 0
    for place, value in points.items():
        given[place] = value
    result = forward(given)
    # Bins of rows in which something is: elsewhere all are 0.
    rows = sorted({row for row, _ in points})
    bins = [(workloads.DRAW.choice(rows), column) for _, column in _places(height, width)]
    triples = [(abs(complex(result[place]) - exact), 0.0, size) for place, exact, size in _bins(name, points, bins)]
    # A transform by halves has as many steps as the number of points has binary digits; each adds its errors.
    allowed = 8 * workloads.EPSILON[kind] * math.log2(math.prod(shape))
    checked = compared(triples, allowed, f"{DRAWN} random bins against FP64 sums")
    facts = {"size": moved, **_of_numpy("1 thread"), "verification": checked}
    return {**rate(float(moved), seconds, "B/s"), **facts}


Place = Tuple[int, int]


def _bins(name: str, points: dict[Place, complex], bins: list[Place]) -> list[tuple[Place, complex, float]]:
    """Bins of a transform of ``points``: where, exactly what, and the root of the sum of the squares of its terms."""
    height, width = TRANSFORMS[name].shape
    found = []
    for row, column in bins:
        terms = []
        for (y, x), value in points.items():
            if name == "2D":
                turns = (y * row % height) / height + (x * column % width) / width
            elif y == row:
                turns = (x * column % width) / width
            else:
                continue
            terms.append(value * complex(math.cos(2 * math.pi * turns), -math.sin(2 * math.pi * turns)))
        exact = complex(math.fsum(term.real for term in terms), math.fsum(term.imag for term in terms))
        found.append(((row, column), exact, math.sqrt(math.fsum(abs(term) ** 2 for term in terms))))
    return found


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
    """A package of the environment; raise Unavailable where it is absent, or what its import raises."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0]:
            raise Unavailable(f"{title} is not in this environment") from error
        raise


def _type(kind: str) -> str:
    return {"fp32": "float32", "fp64": "float64"}[kind]


def _random(kind: str, *shape: int) -> Any:
    """Uniform in [-1, 1), and no run had them before."""
    numbers = _numpy().random.default_rng().random(shape, dtype=_type(kind))
    numbers *= 2
    numbers -= 1
    return numbers


def _places(rows: int, columns: int, count: int = DRAWN) -> list[Place]:
    return [(workloads.DRAW.randrange(rows), workloads.DRAW.randrange(columns)) for _ in range(count)]
