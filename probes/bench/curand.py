"""Random numbers through cuRAND: speed, and whether they are random as far as tests on drawn pieces tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial

from ..common.figures import Fields, FigureKey, verification
from ..common.out import Out
from ..common.tree import Tree
from ..measuring.arrays import RESERVE, Array
from ..measuring.mathematics.common import PLAN, Workshop
from ..measuring.mathematics.curand import GENERATORS, CuRand, Generator, suspicions, to_uniform
from ..measuring.measurement import Bench, Measure, with_full

PROBE = {
    "title": "Random numbers (cuRAND)",
    "kind": "bench",
    "seconds": 60.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node", "env"],
    "deep": True,
    "fills": ["measurements"],
}

MOST = 1 << 26
"""Numbers of an array: 268 MB in FP32."""
FEWEST = 1 << 18
PIECE = 1 << 14
PIECES = 8
"""Randomly chosen parts of the array whose numbers are tested."""


def collect(tree: Tree, out: Out) -> None:
    """Measure uniform and normal numbers of each generator."""
    with_full(tree, out, _measures)


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    runner = cache(lambda: RandomRunner(bench))
    if not bench.timing:
        return {FigureKey("curand-uniform", "fp32", variant="Philox"): _numbers(runner, "uniform", "Philox")}
    return {
        FigureKey(f"curand-{law}", "fp32", variant=name): _numbers(runner, law, name)
        for law in ("uniform", "normal")
        for name in GENERATORS
    }


def _numbers(runner: Callable[[], RandomRunner], law: str, name: str) -> Measure:
    return lambda _: runner().numbers(law, name)


class RandomRunner:
    """Random numbers on one GPU."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._shop = bench, Workshop(bench)
        self._library = CuRand(bench)

    def numbers(self, law: str, name: str) -> Fields:
        """Time the filling of an array."""
        count = MOST if self._bench.timing else FEWEST
        while count > FEWEST and 4 * count + RESERVE > self._bench.device.free_memory():
            count //= 2
        with self._shop.arrays.empty("fp32", count) as target:
            seed = self._shop.draw.getrandbits(64)
            with self._seeded(name, seed) as generator:
                found = self._bench.rate(
                    f"curand-{law}",
                    float(target.bytes),
                    partial(generator.fill, target, law),
                    PLAN,
                    poison=target.poison,
                    unit="B/s",
                    method="curand",
                    detail=f"cuRAND {self._library.version}, {count:,} numbers",
                    library=self._library.path,
                    precision="fp32",
                    variant=name,
                )
            drawn = self._shop.draw.sample(range(count // PIECE), PIECES)
            pieces = [target.values(place * PIECE, PIECE) for place in drawn]
            again = self._beginning(law, name, seed, target), self._beginning(law, name, seed, target)
            other = self._beginning(law, name, self._shop.draw.getrandbits(64), target)
        found["verification"] = judged(law, pieces, again, other)
        return found

    @contextmanager
    def _seeded(self, name: str, seed: int) -> Iterator[Generator]:
        generator = Generator(self._library, self._bench, name, seed)
        try:
            yield generator
        finally:
            generator.close()

    def _beginning(self, law: str, name: str, seed: int, target: Array) -> list[float]:
        """The first numbers that a new generator gives for a seed."""
        first = Array(target.device, target.kind, FEWEST, target.address)
        first.poison()
        with self._seeded(name, seed) as generator:
            generator.fill(first, law)
            return first.values(0, PIECE)


def judged(law: str, pieces: list[list[float]], again: tuple[list[float], list[float]], other: list[float]) -> Fields:
    """Test drawn pieces of an array together; ``again`` is how one seed begins, twice, and ``other`` how another does.

    One seed must give the same numbers each time, and another seed others: at 16,384 places, where FP32 numbers agree
    by chance with a probability below 2^-20 each, more than ten equal ones do not occur.
    """
    numbers = [number for piece in pieces for number in piece]
    found = suspicions(numbers if law == "uniform" else to_uniform(numbers))
    if again[0] != again[1]:
        found.append("one seed gives different numbers")
    if sum(map(float.__eq__, again[0], other)) > 10:
        found.append("two seeds give the same numbers")
    tests = "range, mean, variance, correlations and chi-squared of random pieces, and two seeds"
    how = f"{tests}; false alarm below 1e-9" + "".join(f"; {each}" for each in found)
    return verification(len(numbers), len(found), how)
