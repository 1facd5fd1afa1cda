"""Whether numbers look drawn at random: tests whose false-alarm probability is bounded, not estimated.

Each statistic of sound numbers lies outside its limits with a probability of at most ``2 * exp(-LEVEL)``: by
Hoeffding's inequality for means of bounded numbers, and by Laurent and Massart's bounds for chi-squared (Annals of
Statistics 28, 2000, lemma 1). All statistics of a run together raise a false alarm with a probability below 1e-9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import mul

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
