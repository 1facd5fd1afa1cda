"""The verification of matrix products: how numbers are read, and that every wrong element that is looked at is found.

The device here is a stand-in that holds memory in a dictionary of its own; the arithmetic is the real one.
"""

import math
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.measuring.cublaslt import PRECISIONS, GemmPrecision
from probes.measuring.verify import (
    C,
    Operands,
    _drawn_fp8,
    _fp8,
    _operand_variance,
    _result,
    _values,
    drawn_elements,
    tolerance,
)
from tests.every import cases

SHAPE = (64, 48, 96)


# --- numbers ------------------------------------------------------------------------------------------------------
@cases("bits, value",
    (0x00, 0.0), (0x01, 2.0**-9), (0x07, 7 * 2.0**-9), (0x08, 2.0**-6), (0x38, 1.0), (0x3C, 1.5), (0x40, 2.0),
    (0x7E, 448.0), (0xB8, -1.0), (0xFE, -448.0),
)  # fmt: skip
def test_e4m3(bits: int, value: float) -> None:
    assert _fp8(bits) == value
    assert _values(bytearray([bits]), PRECISIONS["fp8"]) == [value]


def test_e4m3_grows_with_its_bits() -> None:
    values = [_fp8(bits) for bits in range(0x7F)]
    assert values == sorted(set(values))


@cases("bits, value", (0x3F80, 1.0), (0xBF80, -1.0), (0x4049, 3.140625), (0x0000, 0.0), (0x7F80, math.inf))
def test_bfloat16(bits: int, value: float) -> None:
    data = bytearray(struct.pack("<H", bits))
    assert list(_values(data, PRECISIONS["bf16"])) == [value]
    assert _result(data, PRECISIONS["bf16"]) == value
    assert _result(data, PRECISIONS["fp8"]) == value


@cases("bits, value", (0x3C00, 1.0), (0x3555, 0.333251953125), (0xC000, -2.0), (0x7BFF, 65504))
def test_float16(bits: int, value: float) -> None:
    assert list(_values(bytearray(struct.pack("<H", bits)), PRECISIONS["fp16"])) == [value]


@given(st.binary(min_size=8, max_size=64).filter(lambda data: len(data) % 8 == 0))
def test_the_other_types_are_those_of_struct(data: bytes) -> None:
    for name, kind in (("fp64", "d"), ("fp32", "f"), ("tf32", "f"), ("int8", "b")):
        expected = struct.unpack(f"{len(data) // struct.calcsize(kind)}{kind}", data)
        found = _values(bytearray(data), PRECISIONS[name])
        assert [repr(value) for value in found] == [repr(value) for value in expected]


def test_int32_results() -> None:
    assert _result(bytearray(struct.pack("<i", -123456789)), PRECISIONS["int8"]) == -123456789


# --- what the kernels draw ----------------------------------------------------------------------------------------
def mixed(x: int) -> int:
    """``mixed`` of kernels/gemm.cu."""
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def drawn(name: str, index: int, seed: int) -> bytes:
    """An element as ``random_element`` of kernels/gemm.cu draws it."""
    word = mixed(index ^ (seed << 56))
    if name == "fp64":
        return struct.pack("<d", signed(word, 64) / 2.0**63)
    if name == "int8":
        return struct.pack("<b", signed(word >> 56, 8))
    if name == "fp8":
        below = 32 - ((word >> 32) | 0x04000000).bit_length()
        return bytes([word & 0x80 | (1 if below > 5 else 6 - below) << 3 | word & 7])
    single = struct.pack("<f", signed(word >> 32, 32) / 2.0**31)
    if name == "bf16":
        return single[2:]
    if name == "fp16":
        return struct.pack("<e", struct.unpack("<f", single)[0])
    return single


@pytest.mark.parametrize("name", PRECISIONS)
def test_the_mean_square_of_what_is_drawn(name: str) -> None:
    values = _values(bytearray(b"".join(drawn(name, index, 1) for index in range(20000))), PRECISIONS[name])
    found = sum(value * value for value in values) / len(values)
    assert found == pytest.approx(_operand_variance(PRECISIONS[name]), rel=0.04)


def test_drawn_fp8_are_finite_and_below_one() -> None:
    assert all(0 < value < 1 for value in _drawn_fp8())


# --- the check ----------------------------------------------------------------------------------------------------
class Memory:
    """A device whose memory is a few byte arrays."""

    def __init__(self, *blocks: bytearray) -> None:
        self._blocks = {(number + 1) << 32: block for number, block in enumerate(blocks)}
        self.addresses = tuple(self._blocks)

    def read(self, address: int, size: int) -> bytearray:
        start = address >> 32 << 32
        return self._blocks[start][address - start : address - start + size]


def packed(value: float, precision: GemmPrecision) -> bytes:
    if precision.result_code == 3:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return struct.pack({0: "<d", 1: "<f", 2: "<e", 5: "<i"}[precision.result_code], value)


def product(name: str, spoil: Any = None) -> tuple[Memory, Operands]:
    """A right product of drawn operands; ``spoil`` changes the elements of the result."""
    precision = PRECISIONS[name]
    m, n, k = SHAPE
    left, right = (
        bytearray(b"".join(drawn(name, index, seed) for index in range(count)))
        for seed, count in ((1, m * k), (2, n * k))
    )
    rows, columns = _values(left, precision), _values(right, precision)
    result = bytearray()
    for column in range(n):
        for row in range(m):
            exact = sum(rows[row * k + i] * columns[column * k + i] for i in range(k))
            result += packed(spoil(row, column, exact) if spoil else exact, precision)
    memory = Memory(left, right, result)
    return memory, Operands(memory.addresses, SHAPE)  # type: ignore[arg-type]


def verify(name: str, spoil: Any = None) -> dict[str, Any]:
    memory, operands = product(name, spoil)
    return drawn_elements(memory, PRECISIONS[name], operands, random.Random(7))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_right_product_is_right(name: str) -> None:
    found = verify(name)
    assert found["right"]
    assert (found["wrong"], found["checked"]) == (0, 1024)
    assert found["worst"] <= found["tolerance"]


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_product_off_by_a_little_more_than_allowed_is_wrong(name: str) -> None:
    """An error of ten times the tolerance, and of one unit for integers, in all elements."""
    precision = PRECISIONS[name]
    k = SHAPE[2]
    size = _operand_variance(precision) * math.sqrt(k)
    allowed = (tolerance(precision, k, C) + precision.result_epsilon) * size
    found = verify(name, lambda row, column, exact: exact + (1 if name == "int8" else 10 * allowed))
    assert not found["right"]
    assert found["wrong"] > 500


@pytest.mark.parametrize("name", [name for name in PRECISIONS if name != "int8"])
def test_poison_is_wrong(name: str) -> None:
    found = verify(name, lambda row, column, exact: math.nan)
    assert (found["right"], found["wrong"], found.get("worst")) == (False, 1024, None)


def test_a_wrong_column_is_found_by_drawing() -> None:
    found = verify("fp32", lambda row, column, exact: exact + (1.0 if column == 5 else 0.0))
    assert not found["right"]
    assert found["wrong"] < 200


def test_the_tolerance_grows_with_the_square_root_of_k() -> None:
    precision = PRECISIONS["fp32"]
    assert tolerance(precision, 4 * 4096, C) == pytest.approx(2 * tolerance(precision, 4096, C))
    assert tolerance(PRECISIONS["int8"], 4096, C) == 0


@pytest.mark.parametrize("name", PRECISIONS)
def test_sizes_of_elements(name: str) -> None:
    precision = PRECISIONS[name]
    assert len(drawn(name, 0, 1)) == precision.size
    assert len(packed(1, precision)) == precision.result_size
