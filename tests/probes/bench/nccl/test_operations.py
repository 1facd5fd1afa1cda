"""Bus bandwidth as nccl-tests computes it, and versions as NCCL numbers them."""

from __future__ import annotations

import pytest

from probes.measuring.nccl.library import version_text
from probes.measuring.nccl.operations import OPERATIONS
from probes.measuring.nccl.values import operand, tolerance

PRINTED = {
    "all-reduce": (536870912, 2658.39, 353.42),
    "all-gather": (536870912, 1407.34, 333.80),
    "broadcast": (536870912, 1537.15, 349.26),
    "reduce": (536870912, 1514.26, 354.54),
    "reduce-scatter": (536870912, 1415.12, 331.96),
    "all-to-all": (536870912, 1489.76, 315.33),
}
"""Bytes, microseconds and GB/s that nccl-tests 2.19.6 printed on eight H200."""


@pytest.mark.parametrize("name", PRINTED)
def test_bus_bandwidth_is_that_of_nccl_tests(name: str) -> None:
    size, microseconds, printed = PRINTED[name]
    assert (size / (microseconds * 1e-6) * OPERATIONS[name].bus_share(8)) / 1e9 == pytest.approx(printed, rel=1e-4)


@pytest.mark.parametrize(("code", "text"), [(2708, "2.7.8"), (2804, "2.8.4"), (21003, "2.10.3"), (22809, "2.28.9")])
def test_versions_are_numbered_in_two_ways(code: int, text: str) -> None:
    assert version_text(code) == text


@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
def test_operands_are_exact_in_their_type_and_spread(kind: str) -> None:
    bits = {"fp32": 24, "fp16": 11, "bf16": 8}[kind]
    drawn = [operand(kind, seed=99, rank=rank, index=index) for rank in range(3) for index in range(200)]
    assert all(-1 <= value < 1 and (value * 2 ** (bits - 1)).is_integer() for value in drawn)
    assert len(set(drawn)) > {"fp32": 590, "fp16": 400, "bf16": 150}[kind]


def test_more_ranks_round_more_often() -> None:
    assert tolerance("fp32", 8) == 8 * 2.0**-24
    assert tolerance("int32", 8) == 0
