"""Sparse products: the matrices, the check of a result, and what becomes of a library that fails."""

import ctypes
import random
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from probes.bench import cusparse as bench_cusparse
from probes.measuring import cusparselt, sparse
from probes.measuring.cusparselt import broken_strips
from probes.measuring.runtime import LibraryError, Unavailable
from probes.measuring.sparse import Blocks, Panels, SparseResult, blocks, panels, shifted, verified
from tests.every import cases
from tests.probes.bench.host_gpu import HostDevice, PythonLibrary, bench_on, floats, load_instead, numbers, stored

Rows = list[list[float]]
OPTIONAL = ("cusparseGetErrorName", "cusparseGetErrorString")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "SIDE", 32)
    monkeypatch.setattr(bench_cusparse, "SIDE", 32)
    monkeypatch.setattr(bench_cusparse, "PER_ROW", 8)
    monkeypatch.setattr(cusparselt, "DRAWN", 32)


# --- matrices -----------------------------------------------------------------------------------------------------
def test_integers_are_shifted_lane_by_lane() -> None:
    found = [list(array("i", piece)) for piece in shifted(array("i", [0, 5, 2**30, 1]), 7, 3)]
    assert found == [[0, 5, 2**30, 1], [7, 12, 2**30 + 7, 8], [14, 19, 2**30 + 14, 15]]


def test_the_arrays_of_a_matrix_say_what_its_rows_say() -> None:
    matrix = panels(random.Random(), 8, 3)
    offsets = array("i", b"".join(matrix.all_offsets()))
    indices = array("i", b"".join(matrix.all_indices()))
    assert (len(offsets), len(indices), offsets[-1]) == (matrix.rows + 1, matrix.entries, matrix.entries)
    lengths = []
    for index in range(matrix.rows):
        ((start, columns),) = matrix.row(index)
        assert (start, list(columns)) == (offsets[index], list(indices[start : offsets[index + 1]]))
        assert list(columns) == sorted(set(columns))
        lengths.append(len(columns))
    assert max(indices) < matrix.columns
    assert min(lengths) == 0
    assert len(set(lengths)) > 2


def test_blocks_lie_within_the_matrix() -> None:
    matrix = blocks(random.Random(), 4, 2, 24)
    assert (matrix.rows, matrix.columns, matrix.entries) == (96, 96, 24 * 2 * 16)
    places = sorted(
        start + offset for index in range(96) for start, run in matrix.row(index) for offset in range(len(run))
    )
    assert places == list(range(matrix.entries))
    assert all(0 <= column < 96 for index in range(96) for _, run in matrix.row(index) for column in run)


# --- the check of a result ----------------------------------------------------------------------------------------
def product_of(matrix: Panels | Blocks, values: list[float], dense: list[float], width: int) -> Rows:
    rows = []
    for index in range(matrix.rows):
        places = [(start + offset, column) for start, run in matrix.row(index) for offset, column in enumerate(run)]
        rows.append([sum(values[at] * dense[to * width + j] for at, to in places) for j in range(width)])
    return rows


def judged(form: str, width: int, spoil: Callable[[Rows], object], *, by_column: bool = False) -> dict[str, Any]:
    device, draw = HostDevice(), random.Random()
    matrix = panels(draw, 8, 3) if form == "CSR" else blocks(draw, 4, 2, 24)
    values, dense = numbers(matrix.entries), numbers(matrix.columns * width)
    product = product_of(matrix, values, dense, width)
    spoil(product)
    flat = [row[j] for j in range(width) for row in product] if by_column else [x for row in product for x in row]
    step = (1, matrix.rows) if by_column else (width, 1)
    given = (device.array("fp64", values), device.array("fp64", dense))
    return verified(matrix, *given, SparseResult(device.array("fp64", flat), *step), width, draw)


@cases("form", "CSR", "BSR")
@cases("width, by_column", (1, False), (3, False), (3, True))
def test_a_right_product_is_right(form: str, width: int, by_column: bool) -> None:  # noqa: FBT001
    found = judged(form, width, lambda _: None, by_column=by_column)
    assert (found["right"], found["wrong"], found["checked"]) == (True, 0, 256)


@cases("form", "CSR", "BSR")
@cases("width", 1, 3)
def test_rows_in_the_wrong_order_and_a_small_error_are_seen(form: str, width: int) -> None:
    def scale(rows: Rows) -> None:
        rows[:] = [[x * (1 + 1e-12) for x in row] for row in rows]

    assert not judged(form, width, lambda rows: rows.append(rows.pop(0)))["right"]
    assert not judged(form, width, scale)["right"]


# --- a library ----------------------------------------------------------------------------------------------------
class Sparse:
    """What ``cusparseSpMM`` does, on host memory."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign
        self.made: dict[int, tuple[Any, ...]] = {}

    def note(self, descriptor: Any, *arguments: Any) -> int:
        number = len(self.made) + 1
        stored(descriptor).value = number
        self.made[number] = arguments
        return 0

    def multiply(self, *arguments: Any) -> int:
        matrix, dense, result = (self.made[arguments[place].value] for place in (4, 5, 7))
        rows, _, entries, offsets, indices, values = (each.value for each in matrix[:6])
        width = dense[1].value
        starts = (ctypes.c_int * (rows + 1)).from_address(offsets)
        columns = (ctypes.c_int * entries).from_address(indices)
        factors = floats(ctypes.c_void_p(values), entries)
        source, target = floats(dense[3], dense[0].value * width), floats(result[3], rows * width)
        for row in range(rows):
            for j in range(width):
                places = range(starts[row], starts[row + 1])
                target[row * width + j] = self.sign * sum(
                    factors[at] * source[columns[at] * width + j] for at in places
                )
        return 0

    def library(self, **functions: Any) -> PythonLibrary:
        makers = dict.fromkeys(("cusparseCreateCsr", "cusparseCreateDnMat"), self.note)
        lacking = ("cusparseSpMM_preprocess", *(name for name in OPTIONAL if name not in functions))
        return PythonLibrary(lacking, **{**makers, "cusparseSpMM": self.multiply, **functions})


def deep(monkeypatch: pytest.MonkeyPatch, found: PythonLibrary) -> dict[str, Any]:
    load_instead(monkeypatch, found)
    bench = bench_on(HostDevice(), {"cusparse": ["/opt/libcusparse.so.12"]})
    ((figure, measure),) = bench_cusparse.measures(bench).items()
    record = measure()
    assert (record["name"], record["precision"], record["variant"]) == (figure.name, figure.precision, figure.variant)
    assert "value" not in record
    return record


def test_the_smallest_product_is_made_and_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    found = deep(monkeypatch, Sparse().library())
    assert (found["name"], found["library"], found["verification"]["right"]) == (
        "cusparse-spmm", "/opt/libcusparse.so.12", True,
    )  # fmt: skip


def test_a_library_that_computes_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not deep(monkeypatch, Sparse(sign=-1).library())["verification"]["right"]


def test_a_library_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = deep(monkeypatch, Sparse().library(cusparseSpMM=lambda *_: 0))
    assert found["verification"]["wrong"] == found["verification"]["checked"]


def test_an_algorithm_that_is_refused_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = Sparse()

    def multiply(*arguments: Any) -> int:
        return 10 if arguments[9] == 0 else sparse.multiply(*arguments)

    found = deep(monkeypatch, sparse.library(cusparseSpMM=multiply))
    assert found["verification"]["right"]
    assert "CSR_ALG2" in found["detail"]


def test_an_algorithm_that_fails_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though others work: whoever calls the library may get this one."""
    sparse = Sparse()

    def multiply(*arguments: Any) -> int:
        return 6 if arguments[9] == 12 else sparse.multiply(*arguments)

    with pytest.raises(LibraryError, match=r"cusparseSpMM: CUSPARSE_STATUS_EXECUTION_FAILED \(6\)"):
        deep(monkeypatch, sparse.library(cusparseSpMM=multiply))


def test_a_library_without_code_for_the_gpu_fails_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {
        "cusparseGetErrorName": lambda _: b"CUSPARSE_STATUS_ARCH_MISMATCH",
        "cusparseGetErrorString": lambda _: b"architecture mismatch",
    }
    with pytest.raises(LibraryError) as error:
        deep(monkeypatch, Sparse().library(cusparseCreate=lambda *_: 4, **words))
    assert str(error.value) == "cusparseCreate: CUSPARSE_STATUS_ARCH_MISMATCH (4): architecture mismatch"
    assert error.value.path == "/opt/libcusparse.so.12"


def test_a_release_without_words_of_its_own_is_named_by_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = ("cusparseGetErrorName", "cusparseGetErrorString")
    with pytest.raises(LibraryError, match=r"^cusparseCreate: CUSPARSE_STATUS_ARCH_MISMATCH \(4\)$"):
        deep(monkeypatch, PythonLibrary(lacking, cusparseCreate=lambda *_: 4))
    with pytest.raises(LibraryError, match=r"^cusparseCreate: status 99$"):
        deep(monkeypatch, PythonLibrary(lacking, cusparseCreate=lambda *_: 99))


def test_products_that_all_fail_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LibraryError, match=r"cusparseSpMM: .*6"):
        deep(monkeypatch, Sparse().library(cusparseSpMM=lambda *_: 6))


def test_too_little_memory_is_no_fault_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    load_instead(monkeypatch, Sparse().library())
    bench = bench_on(HostDevice(free=1 << 20), {"cusparse": ["/opt/libcusparse.so.12"]})
    (measure,) = bench_cusparse.measures(bench).values()
    with pytest.raises(Unavailable, match="MiB of device memory are needed"):
        measure()


# --- two of four --------------------------------------------------------------------------------------------------
@cases(
    "after, broken",
    ([0.0, -3.0, 2.5, 0.0], 0),
    ([1.0, -3.0, 0.0, 0.0], 1),  # a smaller one kept
    ([0.0, -3.0, 2.0, 0.0], 1),  # changed
    ([0.0, -3.0, 0.0, 0.0], 1),  # one lost
    ([1.0, -3.0, 2.5, 0.0], 1),  # one too many
)
def test_fours_keep_their_two_largest(after: list[float], broken: int) -> None:
    assert broken_strips([1.0, -3.0, 2.5, 0.5], after) == broken


def structured(spoil: Callable[[list[float], list[float]], object]) -> dict[str, Any]:
    device, side = HostDevice(), 32
    draw = random.Random()
    left, right = ([float(draw.randint(-127, 127)) for _ in range(side * side)] for _ in range(2))
    pruned = []
    for start in range(0, side * side, 4):
        four = left[start : start + 4]
        kept = sorted(range(4), key=lambda place: abs(four[place]))[2:]
        pruned += [value if place in kept else 0.0 for place, value in enumerate(four)]
    result = [
        sum(pruned[i * side + k] * right[j * side + k] for k in range(side)) for i in range(side) for j in range(side)
    ]
    spoil(pruned, result)
    kinds = ("int8", "int8", "int8", "int32")
    whole = [list(map(int, each)) for each in (left, pruned, right, result)]
    arrays = [device.array(kind, values) for kind, values in zip(kinds, whole, strict=True)]  # type: ignore[arg-type]
    return cusparselt.verified("int8", tuple(arrays), side, draw)  # type: ignore[arg-type]


def test_a_product_of_integers_is_exact() -> None:
    def one_off(_: list[float], result: list[float]) -> None:
        result[5] += 1

    assert structured(lambda *_: None)["right"]
    assert structured(one_off)["wrong"] == 1


def test_a_matrix_that_was_not_pruned_is_seen() -> None:
    def unpruned(pruned: list[float], _: list[float]) -> None:
        pruned[0:4] = [1.0, 2.0, 3.0, 4.0]

    assert not structured(unpruned)["right"]
