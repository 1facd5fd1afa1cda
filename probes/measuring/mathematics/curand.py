"""cuRAND by the path of its library: its host API with results on the GPU (cuRAND documentation), and whether its
numbers look drawn at random: tests whose false-alarm probability is bounded, not estimated.

Each statistic of sound numbers lies outside its limits with a probability of at most ``2 * exp(-LEVEL)``: by
Hoeffding's inequality for means of bounded numbers, and by Laurent and Massart's bounds for chi-squared (Annals of
Statistics 28, 2000, lemma 1). All statistics of a run together raise a false alarm with a probability below 1e-9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_size_t, c_ulonglong, c_void_p
from operator import mul
from typing import Any

from ..arrays import Array
from ..measurement import Bench
from .common import MathLibrary

GENERATORS = {"XORWOW": 101, "MTGP32": 141, "Philox": 161}
"""Members of ``curandRngType_t``."""
_STATUSES = {
    100: "VERSION_MISMATCH",
    101: "NOT_INITIALIZED",
    102: "ALLOCATION_FAILED",
    103: "TYPE_ERROR",
    104: "OUT_OF_RANGE",
    105: "LENGTH_NOT_MULTIPLE",
    106: "DOUBLE_PRECISION_REQUIRED",
    201: "LAUNCH_FAILURE",
    202: "PREEXISTING_FAILURE",
    203: "INITIALIZATION_FAILED",
    204: "ARCH_MISMATCH",
    999: "INTERNAL_ERROR",
}
"""Members of ``curandStatus_t`` without their prefix; the library has no words of its own for them."""


class CuRand(MathLibrary):
    """The library."""

    prefix, statuses = "CURAND_STATUS_", _STATUSES

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "curand", "cuRAND")


class Generator:
    """A generator on the bench's stream."""

    def __init__(self, library: CuRand, bench: Bench, name: str, seed: int) -> None:
        self._library, self._generator = library, c_void_p()
        library.ask("curandCreateGenerator", byref(self._generator), GENERATORS[name])
        library.ask("curandSetStream", self._generator, c_void_p(int(bench.device.stream)))
        library.ask("curandSetPseudoRandomGeneratorSeed", self._generator, c_ulonglong(seed))

    def fill(self, target: Array, law: str) -> None:
        """Queue the filling of an array: ``uniform`` in (0, 1], or standard ``normal``."""
        double = target.kind == "fp64"
        number: Any = c_double if double else c_float
        function = f"curandGenerate{law.capitalize()}{'Double' if double else ''}"
        shape = (number(0.0), number(1.0)) if law == "normal" else ()
        self._library.ask(function, self._generator, c_void_p(target.address), c_size_t(target.count), *shape)

    def close(self) -> None:
        """Destroy it."""
        self._library.function("curandDestroyGenerator")(self._generator)


LEVEL = 27.0
"""``2 * exp(-27)`` is 4e-12."""
BINS = 256
LAGS = (1, 2, 32)
"""Distances at which neighbours are compared: next, of two streams, and of the next thread's warp."""


def to_uniform(normal: Sequence[float]) -> list[float]:
    """Standard normal numbers by their distribution function."""
    return [0.5 + 0.5 * math.erf(value * math.sqrt(0.5)) for value in normal]


def suspicions(numbers: Sequence[float]) -> list[str]:
    """What sound numbers, uniform in [0, 1], would hardly ever show; empty for those."""
    outside = sum(not 0 <= number <= 1 for number in numbers)
    if outside:
        return [f"{outside:,} of {len(numbers):,} numbers lie outside [0, 1]"]
    centred = [number - 0.5 for number in numbers]
    found = [_mean("mean", centred, 0.0, 1.0)]
    found.append(_mean("variance", list(map(mul, centred, centred)), 1 / 12, 0.25))
    found += [_correlation(centred, lag) for lag in LAGS]
    found += [
        _chi_squared("chi-squared", numbers),
        _chi_squared("chi-squared of bits 8 to 15", [x * 256 % 1 for x in numbers]),
    ]
    return [each for each in found if each]


def _mean(name: str, values: Sequence[float], expected: float, span: float) -> str:
    """Hoeffding: independent numbers in an interval of ``span`` have a mean within ``span * sqrt(level / 2n)``."""
    found = math.fsum(values) / len(values)
    limit = span * math.sqrt(LEVEL / (2 * len(values)))
    return (
        ""
        if abs(found - expected) <= limit
        else f"{name} {found:.6g} instead of {expected:.6g}, off by more than {limit:.2g}"
    )


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
    return (
        ""
        if low <= found <= high
        else f"{name} {found:.0f} for {freedom} degrees of freedom, outside {low:.0f} to {high:.0f}"
    )
