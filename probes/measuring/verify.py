"""Whether a matrix product is right: elements drawn at random against FP64 on the CPU, and all of them on the GPU; and
whether memory is: a pattern that is written, and later compared word by word, on the GPU itself.

The tolerance of an element is stated as c * epsilon * sqrt(K) in units of its expected size, which for random operands
of size a and b is a * b * sqrt(K); the rounding of the result's own type comes on top.
"""

from __future__ import annotations

import ctypes
import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import mul
from typing import Any

from .cublaslt import GemmPrecision
from .device import Device
from .kernels import CompiledKernel, Compiler, Module, number, pointer
from .measurement import Bench
from .runtime import Fields, verification

DRAWN = 1024
VECTORS = 64  # Rows and columns that the drawn elements lie in: to fetch one costs as much as to check an element
C = 4.0  # Four times the expected error: none of a thousand right elements is further off
TILE = 32
ALL_C = 8.0  # The same for all elements, of which there are up to 10^8


def _added(left: list[float], right: list[float]) -> float:
    return float(sum(map(mul, left, right)))


product_sum: Callable[..., float] = getattr(math, "sumprod", _added)
"""Python 3.12 and later have one that is five times as fast, and rounds once."""


@dataclass(frozen=True)
class Operands:
    """Where operands and result lie, and their shape."""

    addresses: tuple[int, int, int]
    shape: tuple[int, int, int]
    layout: str = "TN"  # As of ``cublaslt.Product``


def tolerance(precision: GemmPrecision, k: int, c: float) -> float:
    """Allowed error in units of an element's expected size, the result's own rounding left out."""
    return c * (precision.sum_epsilon * math.sqrt(k) + precision.input_epsilon)


def drawn_elements(device: Device, precision: GemmPrecision, operands: Operands, draw: random.Random) -> Fields:
    """Check ``DRAWN`` elements, of rows and columns drawn too, against FP64 sums on the CPU.

    ``worst`` is the greatest error as a share of what its own element may have, times what one of expected size may.
    """
    left, right, result = operands.addresses
    m, n, k = operands.shape
    apart = operands.layout == "TN"
    rows = _vectors(device, precision, left, k, draw.sample(range(m), min(m, VECTORS)), 1 if apart else m)
    columns = _vectors(device, precision, right, k, draw.sample(range(n), min(n, VECTORS)))
    expected = _operand_variance(precision) * math.sqrt(k)
    allowed = tolerance(precision, k, C)
    wrong, worst = 0, 0.0
    for _ in range(DRAWN):
        row, column = draw.choice(list(rows)), draw.choice(list(columns))
        place = result + (row + column * m) * precision.result_size
        found = _result(device.read(place, precision.result_size), precision)
        exact = product_sum(rows[row], columns[column])
        error = abs(found - exact) / expected
        limit = allowed + precision.result_epsilon * abs(exact) / expected
        wrong += not error <= limit
        share = error / limit if limit else error
        worst = max(worst, share) if math.isfinite(share) else math.inf
    tolerated = allowed + precision.result_epsilon
    shown = worst * (tolerated or 1.0) if math.isfinite(worst) else None
    how = f"{DRAWN:,} random elements against FP64 on the CPU"
    return verification(DRAWN, wrong, how, worst=shown, tolerance=tolerated)


def _vectors(
    device: Device, precision: GemmPrecision, address: int, k: int, drawn: list[int], stride: int = 1
) -> dict[int, Any]:
    """Rows of an operand as Python numbers, by their index; ``stride`` is the distance of two elements of a row."""
    size = precision.size
    if stride > 1:
        parts = (device.read_strided(address + index * size, size, stride * size, k) for index in drawn)
    else:
        parts = (device.read(address + index * k * size, k * size) for index in drawn)
    return {index: _values(part, precision) for index, part in zip(drawn, parts, strict=True)}


def all_elements(device: Device, check: CompiledKernel, precision: GemmPrecision, operands: Operands) -> Fields:
    """Check every element on the GPU, with sums of short FP32 parts in FP64."""
    m, n, k = operands.shape
    size = _operand_variance(precision) * math.sqrt(k)
    floor = (tolerance(precision, k, ALL_C) + 64 * 2**-24 * (precision.code in (1, 2, 3, 4))) * size
    grid, layout = (-(-m // TILE), -(-n // TILE)), (int(operands.layout == "TN"), ctypes.c_int)
    given = (*map(pointer, operands.addresses), *map(number, operands.shape), layout)
    limits = ((precision.result_epsilon, ctypes.c_double), (floor, ctypes.c_double))
    with device.buffer(8) as counter:
        launch = partial(check.launch, grid, TILE * TILE, *given, *limits, pointer(counter))
        wrong = device.counted(counter, launch)
    tolerated = floor / size + precision.result_epsilon
    return verification(m * n, wrong, "every element against FP64 sums on the GPU", tolerance=tolerated)


def _operand_variance(precision: GemmPrecision) -> float:
    """Mean square of the operands that ``kernels/gemm.cu`` draws."""
    if precision.code == 5:
        return 5461.5
    if precision.code == 4:
        return sum(value * value for value in _drawn_fp8()) / len(_drawn_fp8())
    return 1 / 3


@cache
def _drawn_fp8() -> list[float]:
    """The FP8 values in the shares in which they are drawn: each binade half as often as the one above."""
    shares = {6: 32, 5: 16, 4: 8, 3: 4, 2: 2, 1: 2}
    return [
        _fp8(exponent << 3 | mantissa)
        for exponent, share in shares.items()
        for mantissa in range(8)
        for _ in range(share)
    ]


def _fp8(bits: int) -> float:
    """An E4M3 value."""
    exponent, mantissa = bits >> 3 & 15, (bits & 7) / 8
    size = (1 + mantissa) * 2.0 ** (exponent - 7) if exponent else mantissa * 2.0**-6
    return -size if bits & 0x80 else size


@cache
def _fp8_table() -> list[float]:
    return [_fp8(bits) for bits in range(256)]


def _values(data: bytearray, precision: GemmPrecision) -> Any:
    """Operand elements as Python numbers."""
    if precision.code == 4:
        return list(map(_fp8_table().__getitem__, data))
    return decoded(data, precision.code)


def _result(data: bytearray, precision: GemmPrecision) -> float:
    return float(decoded(data, INT32 if precision.code == 5 else precision.result_code)[0])


_BRAIN = "bf16"
INT32 = 6
_FORMATS = {0: "d", 1: "f", 2: "e", 3: _BRAIN, 5: "b", INT32: "i"}  # ``struct`` formats by the kernels' type numbers


def decoded(data: bytearray, code: int) -> Any:
    """Numbers of a type of ``kernels/gemm.cu`` (but for FP8), from their bytes."""
    kind = _FORMATS[code]
    if kind == _BRAIN:  # the upper half of an FP32 number
        wide = bytearray(2 * len(data))
        wide[2::4], wide[3::4] = data[0::2], data[1::2]
        return memoryview(wide).cast("f").tolist()
    return struct.unpack(f"{len(data) // struct.calcsize(kind)}{kind}", data)


def encoded(values: Sequence[float], code: int) -> bytes:
    """The bytes of numbers; BF16 is cut, not rounded."""
    kind = _FORMATS[code]
    if kind == _BRAIN:
        wide = struct.pack(f"{len(values)}f", *values)
        narrow = bytearray(len(wide) // 2)
        narrow[0::2], narrow[1::2] = wide[2::4], wide[3::4]
        return bytes(narrow)
    return struct.pack(f"{len(values)}{kind}", *values)


SEED = 0x2545F4914F6CDD1D
OTHER = 0x9FB21C651E98DF25  # A second pattern: where copies cross, none may be taken for the other
POISON = 0xEE
BLOCK = 256


def pattern_code(compiler: Compiler) -> bytes:
    """The compiled kernels."""
    return compiler.module("memory", ("-DUNROLL=1",))


class Pattern:
    """Patterns of ``kernels/memory.cu`` over ``size`` bytes, each known by its seed."""

    def __init__(self, bench: Bench, size: int) -> None:
        self._device, self._size = bench.device, size
        module = Module(bench.device, pattern_code(bench.compiler))
        self._fill, self._check = module.kernel("fill"), module.kernel("check_fill")
        self._pairs = size // 16
        self.words = 2 * self._pairs
        self._grid = -(-self._pairs // BLOCK)
        self._wrong = bench.device.allocate(8)

    def close(self) -> None:
        self._device.free(self._wrong)

    def write(self, address: int, seed: int = SEED) -> None:
        self._fill.launch(self._grid, BLOCK, pointer(address), number(self._pairs), (seed, ctypes.c_ulonglong))

    def poison(self, address: int) -> None:
        self._device.fill(address, self._size, POISON)

    def wrong(self, address: int, seed: int = SEED) -> int:
        """How many of ``words`` words there are not the pattern's."""
        given = (pointer(address), number(self._pairs), (seed, ctypes.c_ulonglong), pointer(self._wrong))
        return self._device.counted(self._wrong, partial(self._check.launch, self._grid, BLOCK, *given))
