"""Fourier transforms: direct sums, the check of a result, and libraries that are wrong or fail."""

from __future__ import annotations

import cmath
import math
import random
from typing import Any

import pytest

from probes.bench import cufft as bench_cufft
from probes.inside.works import TransformSize
from probes.measuring.device import LibraryError
from probes.measuring.mathematics.cufft import INVERSE
from tests.probes.bench.host_gpu import HostDevice, PythonLibrary, bench_on, floats, load_instead, numbers, stored

SIZE = TransformSize((32,), 4)


def transformed(values: list[complex], sign: int) -> list[complex]:
    """A discrete Fourier transform by its definition."""
    n = len(values)
    return [sum(v * cmath.exp(sign * 2j * math.pi * k * i / n) for i, v in enumerate(values)) for k in range(n)]


@pytest.mark.parametrize("lengths", [(12,), (4, 6)])
def test_a_direct_bin_is_the_definition(lengths: tuple[int, ...]) -> None:
    count = math.prod(lengths)
    points = [(place, complex(*numbers(2))) for place in range(count)]
    rows = lengths[0] if len(lengths) == 2 else 1
    last = lengths[-1]
    by_row = [transformed([value for _, value in points[row * last : (row + 1) * last]], -1) for row in range(rows)]
    for row in range(rows):
        for column in range(last):
            expected = transformed([each[column] for each in by_row], -1)[row]
            frequency = (row, column) if len(lengths) == 2 else (column,)
            assert cmath.isclose(bench_cufft.direct_bin(lengths, frequency, points), expected, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("lengths", "batch", "form", "bins"),
    [((8,), 3, "C2C", 24), ((8,), 3, "R2C", 15), ((4, 8), 1, "C2C", 32), ((4, 8), 1, "R2C", 20)],
)
def test_real_input_gives_half_the_bins(lengths: tuple[int, ...], batch: int, form: str, bins: int) -> None:
    assert TransformSize(lengths, batch).bins(form) == bins


@pytest.mark.parametrize("form", ["C2C", "R2C"])
@pytest.mark.parametrize(("error", "right"), [(0.0, True), (1e-11, False)])
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


def deep(monkeypatch: pytest.MonkeyPatch, found: PythonLibrary) -> dict[str, Any]:
    load_instead(monkeypatch, found)
    monkeypatch.setattr(bench_cufft, "SMALLEST", SIZE)
    bench = bench_on(HostDevice(), {"cufft": ["/opt/libcufft.so.11"]})
    ((figure, measure),) = bench_cufft._measures(bench).items()
    record = measure(bench)
    assert (record["name"], record["precision"], record["variant"]) == (figure.name, figure.precision, figure.variant)
    return record


def test_the_smallest_transform_is_made_and_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    fourier = Fourier()
    found = deep(monkeypatch, fourier.library())
    assert found["verification"]["right"]
    assert found["verification"]["checked"] == 1024 + 2 * 256
    assert fourier.freed == 2


@pytest.mark.parametrize("fourier", [Fourier(-1), Fourier(inverse=False)])
def test_directions_that_are_swapped_and_an_inverse_that_does_nothing_are_seen(
    fourier: Fourier, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not deep(monkeypatch, fourier.library())["verification"]["right"]


def test_a_transform_that_fails_names_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    fourier = Fourier()
    with pytest.raises(LibraryError, match=r"^cufftExecC2C: CUFFT_EXEC_FAILED \(6\)$"):
        deep(monkeypatch, fourier.library(cufftExecC2C=lambda *_: 6))
    assert fourier.freed == 1
    with pytest.raises(LibraryError, match=r"^cufftMakePlanMany64: CUFFT_NVJITLINK_FAILURE \(19\)$"):
        deep(monkeypatch, fourier.library(cufftMakePlanMany64=lambda *_: 19))
    with pytest.raises(LibraryError, match=r"^cufftCreate: status 77$"):
        deep(monkeypatch, fourier.library(cufftCreate=lambda *_: 77))
