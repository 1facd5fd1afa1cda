"""Dense factorizations and Fourier transforms: the checks of results, and libraries that are wrong."""

import cmath
import ctypes
import math
import random
from collections.abc import Callable
from operator import mul
from typing import Any

import pytest

from probes.bench import cufft as bench_cufft
from probes.bench import cusolver as bench_cusolver
from probes.bench.cufft import INVERSE
from probes.framework_bench.workloads import TransformSize
from probes.measuring.runtime import LibraryError
from tests.every import cases
from tests.probes.bench.host_gpu import HostDevice, PythonLibrary, bench_on, floats, load_instead, numbers, stored

SIDE = 32
EPSILON = 2**-53
Columns = list[list[float]]


def dot(one: list[float], other: list[float]) -> float:
    return math.fsum(map(mul, one, other))


def orthonormal() -> Columns:
    """Columns by Gram and Schmidt's method, twice."""
    columns: Columns = []
    while len(columns) < SIDE:
        column = numbers(SIDE)
        for _ in range(2):
            for other in columns:
                share = dot(column, other)
                column = [a - share * b for a, b in zip(column, other, strict=True)]
            length = math.sqrt(dot(column, column))
            column = [a / length for a in column]
        columns.append(column)
    return columns


def solved(rows: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with partial pivoting."""
    work = [[*row, value] for row, value in zip(rows, right, strict=True)]
    n = len(work)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(work[i][k]))
        work[k], work[pivot] = work[pivot], work[k]
        for i in range(k + 1, n):
            share = work[i][k] / work[k][k]
            work[i] = [a - share * b for a, b in zip(work[i], work[k], strict=True)]
    found = [0.0] * n
    for k in reversed(range(n)):
        found[k] = (work[k][n] - dot(work[k][k + 1 : n], found[k + 1 :])) / work[k][k]
    return found


# --- solutions ----------------------------------------------------------------------------------------------------
@cases("error, right", (0.0, True), (1e-11, False), (math.nan, False))
def test_residuals_tell_a_solution_from_a_wrong_one(error: float, right: bool) -> None:  # noqa: FBT001
    rows, target = [numbers(SIDE) for _ in range(SIDE)], numbers(SIDE)
    solution = solved(rows, target)
    solution[random.randrange(SIDE)] += error * max(map(abs, solution))
    assert bench_cusolver.residuals_checked(dict(enumerate(rows)), solution, target, EPSILON)["right"] is right


def test_a_row_of_a_symmetric_matrix_is_read_from_its_lower_triangle() -> None:
    device = HostDevice()
    whole = [[float(10 * max(i, j) + min(i, j)) for j in range(4)] for i in range(4)]
    matrix = device.array("fp64", [whole[i][j] if i >= j else math.nan for j in range(4) for i in range(4)])
    assert [bench_cusolver.symmetric_row(matrix, 4, row) for row in range(4)] == whole


def test_the_diagonal_outweighs_the_largest_eigenvalue_of_what_is_beside_it() -> None:
    for side in (512, 4096):
        assert bench_cusolver.diagonal(side) > 1.5 * 2 * math.sqrt(side / 3)


# --- factors ------------------------------------------------------------------------------------------------------
def flat(columns: Columns) -> list[float]:
    return [value for column in columns for value in column]


def product(left: Columns, right: Columns) -> Columns:
    """``left . right``, both as columns."""
    return [[dot([column[i] for column in left], other) for i in range(SIDE)] for other in right]


def judged_qr(spoil: Callable[[Columns, Columns], object]) -> dict[str, Any]:
    device, q = HostDevice(), orthonormal()
    r = [[*numbers(j + 1), *[0.0] * (SIDE - j - 1)] for j in range(SIDE)]
    matrix = device.array("fp64", flat(product(q, r)))
    spoil(q, r)
    upper = dict(enumerate(r))
    return bench_cusolver.factors_checked(matrix, device.array("fp64", flat(q)), upper, SIDE, random.Random())


def test_factors_are_checked_by_their_product() -> None:
    def scaled(_: Columns, r: Columns) -> None:
        r[:] = [[1.000001 * value for value in column] for column in r]

    assert judged_qr(lambda *_: None)["right"]
    assert not judged_qr(scaled)["right"]


def test_columns_that_are_not_orthonormal_are_seen() -> None:
    """Q twice as long and R half: their product is right."""

    def moved(q: Columns, r: Columns) -> None:
        q[:] = [[2 * value for value in column] for column in q]
        r[:] = [[value / 2 for value in column] for column in r]

    assert not judged_qr(moved)["right"]


def judged_svd(spoil: Callable[[list[float], Columns, Columns], object]) -> dict[str, Any]:
    device, left, right = HostDevice(), orthonormal(), orthonormal()
    sizes = sorted((abs(value) for value in numbers(SIDE)), reverse=True)
    across = [[sizes[k] * right[k][j] for k in range(SIDE)] for j in range(SIDE)]
    matrix = device.array("fp64", flat(product(left, across)))
    spoil(sizes, left, right)
    values, u, v = (device.array("fp64", each) for each in (sizes, flat(left), flat(right)))
    return bench_cusolver.singular_checked(matrix, values, u, v, SIDE, random.Random())


def test_singular_values_and_vectors_are_right() -> None:
    assert judged_svd(lambda *_: None)["right"]


@cases(
    "spoil", lambda sizes, *_: sizes.__setitem__(0, sizes[0] * 1.000001), lambda sizes, *_: sizes.reverse(),
    lambda sizes, *_: sizes.__setitem__(3, math.nan), lambda _, left, __: left.reverse(),
    lambda _, __, right: right.__setitem__(slice(None), [[1.000001 * x for x in column] for column in right]),
)  # fmt: skip
def test_wrong_values_and_vectors_are_seen(spoil: Any) -> None:
    assert not judged_svd(spoil)["right"]


# --- a library ----------------------------------------------------------------------------------------------------
class Dense:
    """LU of cuSOLVER on host memory; the factors are the matrix, and each solution eliminates anew."""

    def __init__(self, error: float = 0.0, info: int = 0) -> None:
        self.error, self.info = error, info

    def factor(self, *arguments: Any) -> int:
        (ctypes.c_int).from_address(arguments[-1].value).value = self.info
        return 0

    def solve(self, *arguments: Any) -> int:
        side = arguments[3].value
        matrix, right = floats(arguments[6], side * side), floats(arguments[10], side)
        found = solved([[matrix[i + j * side] for j in range(side)] for i in range(side)], list(right))
        right[:] = [value * (1 + self.error) for value in found]
        (ctypes.c_int).from_address(arguments[-1].value).value = 0
        return 0

    def library(self, **functions: Any) -> PythonLibrary:
        return PythonLibrary(**{"cusolverDnXgetrf": self.factor, "cusolverDnXgetrs": self.solve, **functions})


def copied(name: str, target: int, source: int, size: int, _: int) -> None:
    assert name == "cuMemcpyDtoDAsync"
    ctypes.memmove(target, source, size)


def deep(monkeypatch: pytest.MonkeyPatch, found: PythonLibrary) -> dict[str, Any]:
    load_instead(monkeypatch, found)
    monkeypatch.setattr(bench_cusolver, "LEAST", SIDE)
    monkeypatch.setattr(bench_cusolver, "call", copied)
    bench = bench_on(HostDevice(), {"cusolver": ["/opt/libcusolver.so.11"]})
    ((figure, measure),) = bench_cusolver.measures(bench).items()
    record = measure()
    assert (record["name"], record["precision"]) == (figure.name, figure.precision)
    return record


def test_the_smallest_factorization_is_made_and_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    found = deep(monkeypatch, Dense().library())["verification"]
    assert (found["right"], found["checked"]) == (True, SIDE)


def test_a_solution_that_is_slightly_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not deep(monkeypatch, Dense(error=0.01).library())["verification"]["right"]


def test_a_matrix_that_the_library_calls_singular_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LibraryError, match=r"^lu: info 7$"):
        deep(monkeypatch, Dense(info=7).library())


def test_a_call_that_fails_names_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LibraryError, match=r"^cusolverDnCreate: CUSOLVER_STATUS_ARCH_MISMATCH \(4\)$"):
        deep(monkeypatch, Dense().library(cusolverDnCreate=lambda *_: 4))


def test_a_library_that_does_nothing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status word is poisoned: it must be written."""
    with pytest.raises(LibraryError, match=r"^lu: info -1$"):
        deep(monkeypatch, PythonLibrary())


# --- Fourier transforms: direct sums, the check of a result, and libraries that are wrong or fail -------------------
SIZE = TransformSize((32,), 4)


def transformed(values: list[complex], sign: int) -> list[complex]:
    """A discrete Fourier transform by its definition."""
    n = len(values)
    return [sum(v * cmath.exp(sign * 2j * math.pi * k * i / n) for i, v in enumerate(values)) for k in range(n)]


@cases("lengths", (12,), (4, 6))
def test_a_direct_bin_is_the_definition(lengths: tuple[int, ...]) -> None:
    points = [(place, complex(*numbers(2))) for place in range(math.prod(lengths))]
    rows = lengths[0] if len(lengths) == 2 else 1
    last = lengths[-1]
    by_row = [transformed([value for _, value in points[row * last : (row + 1) * last]], -1) for row in range(rows)]
    for row in range(rows):
        for column in range(last):
            expected = transformed([each[column] for each in by_row], -1)[row]
            frequency = (row, column) if len(lengths) == 2 else (column,)
            assert cmath.isclose(bench_cufft.direct_bin(lengths, frequency, points), expected, abs_tol=1e-12)


@cases("lengths, batch, form, bins",
    ((8,), 3, "C2C", 24), ((8,), 3, "R2C", 15), ((4, 8), 1, "C2C", 32), ((4, 8), 1, "R2C", 20),
)  # fmt: skip
def test_real_input_gives_half_the_bins(lengths: tuple[int, ...], batch: int, form: str, bins: int) -> None:
    assert TransformSize(lengths, batch).bins(form) == bins


@cases("form", "C2C", "R2C")
@cases("error, right", (0.0, True), (1e-11, False))
def test_bins_of_two_dimensions_are_found_in_their_places(form: str, error: float, right: bool) -> None:  # noqa: FBT001
    size = TransformSize((4, 8), 2)
    width = 8 if form == "C2C" else 5
    points = [(place, complex(*numbers(2 if form == "C2C" else 1))) for place in range(size.points)]
    found = []
    for batch in range(2):
        own = [(place - batch * 32, value) for place, value in points[batch * 32 : batch * 32 + 32]]
        for row in range(4):
            for column in range(width):
                exact = bench_cufft.direct_bin((4, 8), (row, column), own) + error
                found += [exact.real, exact.imag]
    result = HostDevice().array("fp64", found)
    assert bench_cufft.compared_bins(size, form, points, result, random.Random())["right"] is right


def test_what_an_inverse_brings_back_is_compared() -> None:
    device, values = HostDevice(), numbers(64)
    back = [32 * value for value in values]
    source = device.array("fp64", values)
    assert bench_cufft.returned(source, device.array("fp64", back), 32, random.Random())["right"]
    wrong = [*back[32:], *back[:32]]
    assert not bench_cufft.returned(source, device.array("fp64", wrong), 32, random.Random())["right"]


# --- a library ----------------------------------------------------------------------------------------------------
class Fourier:
    """What cuFFT does with ``SIZE``, on host memory; ``sign`` -1 swaps the directions."""

    def __init__(self, sign: int = 1, *, inverse: bool = True) -> None:
        self.sign, self.inverse = sign, inverse
        self.freed = 0

    def transform(self, _: Any, source: Any, target: Any, direction: int) -> int:
        if direction == INVERSE and not self.inverse:
            return 0
        given, found = (floats(place, 2 * SIZE.points) for place in (source, target))
        for start in range(0, 2 * SIZE.points, 64):
            values = [complex(given[start + 2 * i], given[start + 2 * i + 1]) for i in range(32)]
            for i, value in enumerate(transformed(values, self.sign * direction)):
                found[start + 2 * i], found[start + 2 * i + 1] = value.real, value.imag
        return 0

    def plan(self, *arguments: Any) -> int:
        stored(arguments[-1]).value = 64
        return 0

    def destroy(self, _: Any) -> int:
        self.freed += 1
        return 0

    def library(self, **functions: Any) -> PythonLibrary:
        own = {"cufftExecC2C": self.transform, "cufftMakePlanMany64": self.plan, "cufftDestroy": self.destroy}
        return PythonLibrary(**{**own, **functions})


def deep_transforms(monkeypatch: pytest.MonkeyPatch, found: PythonLibrary) -> dict[str, Any]:
    load_instead(monkeypatch, found)
    monkeypatch.setattr(bench_cufft, "SMALLEST", SIZE)
    ((figure, measure),) = bench_cufft.measures(bench_on(HostDevice(), {"cufft": ["/opt/libcufft.so.11"]})).items()
    record = measure()
    assert (record["name"], record["precision"], record["variant"]) == (figure.name, figure.precision, figure.variant)
    return record


def test_the_smallest_transform_is_made_and_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    fourier = Fourier()
    found = deep_transforms(monkeypatch, fourier.library())
    assert found["verification"]["right"]
    assert found["verification"]["checked"] == 1024 + 2 * 256
    assert fourier.freed == 2


@cases("fourier", Fourier(-1), Fourier(inverse=False))
def test_swapped_directions_and_an_idle_inverse_are_seen(fourier: Fourier, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not deep_transforms(monkeypatch, fourier.library())["verification"]["right"]


def test_a_transform_that_fails_names_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    fourier = Fourier()
    with pytest.raises(LibraryError, match=r"^cufftExecC2C: CUFFT_EXEC_FAILED \(6\)$"):
        deep_transforms(monkeypatch, fourier.library(cufftExecC2C=lambda *_: 6))
    assert fourier.freed == 1
    with pytest.raises(LibraryError, match=r"^cufftMakePlanMany64: CUFFT_NVJITLINK_FAILURE \(19\)$"):
        deep_transforms(monkeypatch, fourier.library(cufftMakePlanMany64=lambda *_: 19))
    with pytest.raises(LibraryError, match=r"^cufftCreate: status 77$"):
        deep_transforms(monkeypatch, fourier.library(cufftCreate=lambda *_: 77))
