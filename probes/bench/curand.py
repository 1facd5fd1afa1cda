"""Random numbers through cuRAND's host API: speed, and whether they are random as far as tests on drawn pieces tell.

The tests' false-alarm probability is bounded, not estimated: each statistic of sound numbers lies outside its limits
with a probability of at most ``2 * exp(-LEVEL)``, by Hoeffding's inequality for means of bounded numbers, and by
Laurent and Massart's bounds for chi-squared (Annals of Statistics 28, 2000, lemma 1). All statistics of a run together
raise a false alarm with a probability below 1e-9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from ctypes import byref, c_float, c_size_t, c_ulonglong, c_void_p
from functools import cache, partial
from itertools import product
from operator import mul

from ..measuring.arrays import RESERVE, Array, Arrays
from ..measuring.library import MathLibrary
from ..measuring.measurement import Bench, Task, tasks, with_full
from ..measuring.runtime import Fields, FigureKey, Measures, verification

PROBE = {"title": "Random numbers (cuRAND)", "seconds": 60.0, "deep": True}

GENERATORS = {"XORWOW": 101, "MTGP32": 141, "Philox": 161}  # Members of ``curandRngType_t``
MOST = 1 << 26  # Numbers of an array: 268 MB in FP32
FEWEST = 1 << 18
PIECE = 1 << 14
PIECES = 8  # Randomly chosen parts of the array whose numbers are tested


def measures(bench: Bench) -> Measures:
    """The measures, by figure; a deep check fills one array."""
    arrays, library = Arrays(bench), cache(partial(MathLibrary, bench, "curand"))
    chosen = product(("uniform", "normal"), GENERATORS) if bench.timing else [("uniform", "Philox")]
    makes = ((FigureKey(f"curand-{law}", "fp32", variant=name), law, name) for law, name in chosen)
    return tasks(bench, {figure: partial(filled, arrays, library, law, name) for figure, law, name in makes})


collect = partial(with_full, measures=measures)


class Generator:
    def __init__(self, library: MathLibrary, bench: Bench, name: str, seed: int) -> None:
        self._library, self._generator = library, c_void_p()
        library.ask("curandCreateGenerator", byref(self._generator), GENERATORS[name])
        library.ask("curandSetStream", self._generator, c_void_p(int(bench.device.stream)))
        library.ask("curandSetPseudoRandomGeneratorSeed", self._generator, c_ulonglong(seed))

    def fill(self, target: Array, law: str) -> None:
        """Queue the filling of an FP32 array: ``uniform`` in (0, 1], or standard ``normal``."""
        shape = (c_float(0.0), c_float(1.0)) if law == "normal" else ()
        given = (c_void_p(target.address), c_size_t(target.count), *shape)
        self._library.ask(f"curandGenerate{law.capitalize()}", self._generator, *given)

    def close(self) -> None:
        self._library.function("curandDestroyGenerator")(self._generator)


def filled(arrays: Arrays, library: Callable[[], MathLibrary], law: str, name: str, stack: ExitStack) -> Task:
    bench, curand, count = arrays.bench, library(), MOST if arrays.bench.timing else FEWEST
    while count > FEWEST and 4 * count + RESERVE > bench.device.free_memory():
        count //= 2
    target, seed = stack.enter_context(arrays.empty("fp32", count)), arrays.draw.getrandbits(64)
    generator = stack.enter_context(closing(Generator(curand, bench, name, seed)))

    def beginning(seed: int) -> list[float]:
        """The first numbers that a new generator gives for a seed."""
        first = Array(target.device, target.kind, FEWEST, target.address)
        first.poison()
        with closing(Generator(curand, bench, name, seed)) as other:
            other.fill(first, law)
            return first.values(0, PIECE)

    def verified() -> Fields:
        pieces = [target.values(place * PIECE, PIECE) for place in arrays.draw.sample(range(count // PIECE), PIECES)]
        again = beginning(seed), beginning(seed)
        return judged(law, pieces, again, beginning(arrays.draw.getrandbits(64)))

    facts = curand.facts("B/s", f"{count:,} numbers")
    return Task(partial(generator.fill, target, law), float(target.bytes), verified, facts, target.poison)


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


LEVEL = 27.0  # ``2 * exp(-27)`` is 4e-12
BINS = 256
LAGS = (1, 2, 32)  # Distances at which neighbours are compared: next, of two streams, and of the next thread's warp


def to_uniform(normal: Sequence[float]) -> list[float]:
    """Standard normal numbers by their distribution function."""
    return [0.5 + 0.5 * math.erf(value * math.sqrt(0.5)) for value in normal]


def suspicions(numbers: Sequence[float]) -> list[str]:
    """What sound numbers, uniform in [0, 1], would hardly ever show; empty for those."""
    outside = sum(not 0 <= number <= 1 for number in numbers)
    if outside:
        return [f"{outside:,} of {len(numbers):,} numbers lie outside [0, 1]"]
    centred = [number - 0.5 for number in numbers]
    found = [
        _mean("mean", centred, 0.0, 1.0),
        _mean("variance", list(map(mul, centred, centred)), 1 / 12, 0.25),
        *(_correlation(centred, lag) for lag in LAGS),
        _chi_squared("chi-squared", numbers),
        _chi_squared("chi-squared of bits 8 to 15", [x * 256 % 1 for x in numbers]),
    ]
    return [each for each in found if each]


def _mean(name: str, values: Sequence[float], expected: float, span: float) -> str:
    """Hoeffding: independent numbers in an interval of ``span`` have a mean within ``span * sqrt(level / 2n)``."""
    found = math.fsum(values) / len(values)
    limit = span * math.sqrt(LEVEL / (2 * len(values)))
    if abs(found - expected) <= limit:
        return ""
    return f"{name} {found:.6g} instead of {expected:.6g}, off by more than {limit:.2g}"


def _correlation(centred: Sequence[float], lag: int) -> str:
    """Products of neighbours in pairs that share no number, which makes them independent."""
    starts = [start for block in range(0, len(centred) - 2 * lag + 1, 2 * lag) for start in range(block, block + lag)]
    products = [centred[start] * centred[start + lag] for start in starts]
    return _mean(f"correlation at distance {lag}", products, 0.0, 0.5)


def _chi_squared(name: str, numbers: Sequence[float]) -> str:
    """Laurent and Massart: within ``2 sqrt(k t) + 2 t`` above and ``2 sqrt(k t)`` below its k degrees of freedom."""
    expected, freedom = len(numbers) / BINS, BINS - 1
    counts = Counter(min(int(number * BINS), BINS - 1) for number in numbers)
    found = sum((counts[place] - expected) ** 2 for place in range(BINS)) / expected
    low, high = freedom - 2 * math.sqrt(freedom * LEVEL), freedom + 2 * math.sqrt(freedom * LEVEL) + 2 * LEVEL
    if low <= found <= high:
        return ""
    return f"{name} {found:.0f} for {freedom} degrees of freedom, outside {low:.0f} to {high:.0f}"
