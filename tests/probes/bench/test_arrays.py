"""Numbers as a GPU has them, and the verdict on results."""

from __future__ import annotations

import math

import pytest

from probes.kit.figures import compared
from probes.measuring.arrays import ELEMENTS
from probes.measuring.verify import decoded, encoded


@pytest.mark.parametrize("kind", list(ELEMENTS))
def test_numbers_survive_the_way_to_the_gpu_and_back(kind: str) -> None:
    code = ELEMENTS[kind].code
    values = [-3, 0, 7] if kind.startswith("int") else [-1.5, 0.0, 0.375]
    data = bytearray(encoded(values, code))
    assert len(data) == 3 * ELEMENTS[kind].size
    assert list(decoded(data, code)) == values


def test_results_within_the_tolerance_are_right() -> None:
    found = compared([(1.0, 1.05, 1.0), (20.0, 20.9, 10.0)], 0.1, "two")
    assert (found["right"], found["checked"], found["wrong"], found["worst"]) == (True, 2, 0, pytest.approx(0.09))


@pytest.mark.parametrize("bad", [1.2, math.nan, math.inf])
def test_results_beyond_it_and_numbers_that_are_none_are_wrong(bad: float) -> None:
    found = compared([(1.0, 1.0, 1.0), (bad, 1.0, 1.0)], 0.1, "two")
    assert (found["right"], found["wrong"]) == (False, 1)


def test_a_result_of_which_nothing_was_compared_is_not_right() -> None:
    assert not compared([], 0.1, "none")["right"]
