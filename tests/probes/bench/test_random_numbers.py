"""Random numbers: what the tests of randomness pass and catch, and generators that are wrong or fail.

Sound numbers are drawn anew in each run; a false alarm has a probability below 1e-9.
"""

import random
from itertools import pairwise
from typing import Any

import pytest

from probes.bench import curand as bench_curand
from probes.bench.curand import suspicions, to_uniform
from probes.measuring.runtime import LibraryError
from tests.every import cases
from tests.probes.bench.host_gpu import HostDevice, PythonLibrary, bench_on, floats, load_instead, stored

COUNT = 1 << 17


def uniform() -> list[float]:
    draw = random.Random()
    return [draw.random() for _ in range(COUNT)]


def test_sound_numbers_are_not_suspected() -> None:
    draw = random.Random()
    assert suspicions(uniform()) == []
    assert suspicions(to_uniform([draw.gauss(0, 1) for _ in range(COUNT)])) == []


@cases(
    "change, said", (lambda xs: [0.98 * x for x in xs], "variance"), (lambda xs: [x**1.2 for x in xs], "mean"),
    (lambda xs: [(x + y) / 2 for x, y in pairwise(xs)], "correlation at distance 1"),
    (lambda xs: [x for x in xs[::2] for _ in (0, 1)], "correlation at distance 1"),
    (sorted, "correlation at distance 32"), (lambda xs: xs[: COUNT // 4] * 4, "chi-squared"),
    (lambda xs: [i / len(xs) for i in range(len(xs))], "chi-squared 0"),
    (lambda xs: [(int(x * 65536) & ~1) / 65536 for x in xs], "chi-squared of bits 8 to 15"),
    (lambda xs: [*xs[:-1], 1.5], "1 of 131,072 numbers lie outside [0, 1]"),
    (lambda xs: [*xs[:-1], float("nan")], "1 of 131,072 numbers lie outside [0, 1]"),
)  # fmt: skip
def test_numbers_that_are_not_random_are(change: Any, said: str) -> None:
    assert any(said in each for each in suspicions(change(uniform())))


def test_normal_numbers_of_another_spread_are() -> None:
    draw = random.Random()
    assert suspicions(to_uniform([draw.gauss(0, 1.05) for _ in range(COUNT)]))


# --- a library ----------------------------------------------------------------------------------------------------
class Generators:
    """What cuRAND does for uniform numbers, on host memory; a ``seed`` of its own is taken for each."""

    def __init__(self, seed: int | None = None, *, repeatable: bool = True) -> None:
        self.fixed, self.repeatable = seed, repeatable
        self.draws: dict[int, random.Random] = {}

    def create(self, generator: Any, _: int) -> int:
        stored(generator).value = len(self.draws) + 1
        self.draws[len(self.draws) + 1] = random.Random()
        return 0

    def seed(self, generator: Any, seed: Any) -> int:
        if self.repeatable:
            self.draws[generator.value].seed(seed.value if self.fixed is None else self.fixed)
        return 0

    def fill(self, generator: Any, target: Any, count: Any) -> int:
        draw = self.draws[generator.value]
        floats(target, count.value)[:] = [draw.random() for _ in range(count.value)]
        return 0

    def library(self, **functions: Any) -> PythonLibrary:
        own: dict[str, Any] = {"curandCreateGenerator": self.create, "curandGenerateUniform": self.fill}
        return PythonLibrary(**{**own, "curandSetPseudoRandomGeneratorSeed": self.seed, **functions})


def deep(monkeypatch: pytest.MonkeyPatch, found: PythonLibrary) -> dict[str, Any]:
    load_instead(monkeypatch, found)
    ((figure, measure),) = bench_curand.measures(bench_on(HostDevice(), {"curand": ["/opt/libcurand.so.10"]})).items()
    record = measure()
    assert (record["name"], record["precision"], record["variant"]) == (figure.name, figure.precision, figure.variant)
    return record


def test_the_smallest_array_is_filled_and_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    found = deep(monkeypatch, Generators().library())
    assert (found["verification"]["right"], found["verification"]["checked"]) == (True, COUNT)


@cases("generators, said",
    (Generators(7), "two seeds give the same numbers"),
    (Generators(repeatable=False), "one seed gives different numbers"),
)  # fmt: skip
def test_seeds_that_mean_nothing_are_seen(generators: Generators, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = deep(monkeypatch, generators.library())["verification"]
    assert (found["right"], found["wrong"]) == (False, 1)
    assert said in found["how"]


def test_numbers_that_were_never_written_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not deep(monkeypatch, Generators().library(curandGenerateUniform=lambda *_: 0))["verification"]["right"]


def test_a_generator_that_fails_names_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LibraryError, match=r"^curandCreateGenerator: CURAND_STATUS_ARCH_MISMATCH \(204\)$"):
        deep(monkeypatch, Generators().library(curandCreateGenerator=lambda *_: 204))
