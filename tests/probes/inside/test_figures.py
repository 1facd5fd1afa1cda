"""What a measurement under the environment's interpreter becomes, and where results are judged wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from probes.inside.convolution import KINDS, Convolution, Shape
from probes.inside.figures import Absent, Refused, compared, rate, run_all
from probes.kit.figures import Fields, Figure
from probes.kit.tree import Tree
from tests.every import cases


class Sent:
    def __init__(self) -> None:
        self.measurements: list[Fields] = []
        self.said: list[str] = []

    def fact(self, part: dict[str, Any]) -> None:
        self.measurements += part["measurements"]

    def progress(self, text: str) -> None:
        self.said.append(text)


def ran(measures: dict[Figure, Callable[[], Fields]], only: tuple[str, ...] = ()) -> Sent:
    sent: Any = Sent()
    run_all(Tree({"root": "/", "bench": {"gpu": "GPU-1", "only": list(only)}}), sent, measures)
    return sent  # type: ignore[no-any-return]


def raising(error: Exception) -> Callable[[], Fields]:
    def measure() -> Fields:
        raise error

    return measure


def test_each_end_is_a_measurement_of_its_own() -> None:
    figure = Figure("product", "fp32", (4, 4), "fused")
    same = {"source": "bench", "gpu": "GPU-1"}
    sent = ran(
        {
            figure: lambda: {"value": 2.0, "library": None},
            Figure("absent"): raising(Absent("NumPy is not here")),
            Figure("refused"): raising(Refused("no builder", "/lib/libnvinfer.so.8")),
            Figure("failed"): raising(MemoryError("17 GiB")),
        }
    )
    assert sent.measurements == [
        {**same, "name": "product", "precision": "fp32", "shape": [4, 4], "variant": "fused", "value": 2.0},
        {**same, "name": "absent", "missing": "NumPy is not here"},
        {**same, "name": "refused", "missing": "no builder", "failed": True, "library": "/lib/libnvinfer.so.8"},
        {**same, "name": "failed", "missing": "MemoryError: 17 GiB", "failed": True},
    ]
    assert sent.said == ["product fp32 fused", "absent", "refused", "failed"]


def test_only_what_was_asked_for_is_measured() -> None:
    sent = ran({Figure("one"): dict, Figure("two"): raising(AssertionError("not asked for"))}, only=("one", "three"))
    assert [each["name"] for each in sent.measurements] == ["one"]


def test_a_rate_is_the_median_of_its_samples() -> None:
    assert rate(6.0, [1.0, 3.0, 2.0], "B/s") == {"value": 3.0, "samples": [6.0, 2.0, 3.0], "unit": "B/s"}


@cases("found", 1.2, 0.8, math.nan, math.inf)
def test_a_wrong_element_makes_the_result_wrong(found: float) -> None:
    good = [(1.0, 1.0, 1.0), (1.05, 1.0, 1.0)]
    assert compared(good, 0.1, "so")["verification"]["right"]
    bad = compared([*good, (found, 1.0, 1.0)], 0.1, "so")["verification"]
    assert (bad["right"], bad["checked"], bad["wrong"]) == (False, 3, 1)


def test_a_result_of_which_nothing_was_checked_is_not_right() -> None:
    assert not compared([], 0.1, "so")["verification"]["right"]


def test_an_error_is_measured_by_the_size_of_the_sum() -> None:
    assert compared([(1000.0, 1001.0, 100.0)], 0.02, "so")["verification"]["right"]
    assert not compared([(1000.0, 1001.0, 10.0)], 0.02, "so")["verification"]["right"]


@pytest.mark.parametrize("precision", KINDS)
def test_operands_are_drawn_anew_and_cover_their_range(precision: str) -> None:
    convolution = Convolution(Shape(2, 32, 8, 8, 32))
    first, second = convolution.given(precision), convolution.given(precision)
    assert first != second
    assert len(first) == convolution.shape.inputs * KINDS[precision].size
    triples = list(convolution.triples(precision, first, lambda _: 0.0))
    assert len({exact for _, exact, _ in triples}) > 8
    assert any(exact == 0.0 for _, exact, _ in triples)  # the ReLU cuts off about every second


def test_channels_that_int8_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="groups of 32"):
        Convolution(Shape(1, 24, 8, 8, 32))
