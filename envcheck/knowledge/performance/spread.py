"""How far figures of one quantity lie apart by chance, and whether a difference is beyond that.

Quartiles are used throughout: one disturbed sample, run or GPU moves them little, and they hold for as few as three
values. Shares are of the speed: twice the duration is half the speed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

TOLERATED = 0.05  # Share by which a figure may be slower than one earlier run, in addition to the noise of both
LEAST_TOLERATED = 0.02
"""The same against several runs. Five runs in a row on one machine lay within 1.22 % (benchmarks/results/speed.md)."""
_SEVERAL = 3  # Runs from which on their own spread counts
_FENCE = 3.0  # Interquartile ranges beyond which Tukey calls a value far out: 3 to 4 standard deviations of few values
DEVIATION = 1.4826  # Standard deviations of a normal distribution in one median absolute deviation
_DEVIATIONS = 3.0
_MOST_TOLERATED = 0.9


def median(values: Sequence[float]) -> float:
    """The median; the mean of the middle two of an even number. Raises ValueError where there is no value."""
    if not values:
        raise ValueError("no value")
    return _quantile(sorted(values), 0.5)


def noise(values: Sequence[float]) -> float:
    """The interquartile range as a share of the median; 0 for fewer than two values."""
    if len(values) < 2:
        return 0.0
    ordered = sorted(values)
    middle = _quantile(ordered, 0.5)
    return (_quantile(ordered, 0.75) - _quantile(ordered, 0.25)) / middle if middle > 0 else 0.0


def speed_ratio(value: float, reference: float, unit: str) -> float:
    """How many times as fast ``value`` is as ``reference``, both positive: of durations (``s``) less is faster."""
    return reference / value if unit == "s" else value / reference


class Base(msgspec.Struct, frozen=True):
    """What a figure is held against: the median of one or several earlier runs."""

    value: float  # Median of the runs' figures
    low: float
    high: float  # The least and the greatest of them
    runs: int
    noise: float  # How far apart chance puts them: between runs where there are several, else between samples
    tolerated: float  # Share of the speed that may be lost, without the noise of the figure that is compared

    def tolerated_for(self, samples: Sequence[float]) -> float:
        """Share of the speed that a figure with these samples may lose and count as unchanged."""
        return min(self.tolerated + noise(samples) / 2, _MOST_TOLERATED)


def base_of(runs: Sequence[tuple[float, Sequence[float]]]) -> Base | None:
    """What ``runs``, pairs of a figure and its samples, are as a base; None where none has a positive figure."""
    values = [value for value, _ in runs if value > 0 and math.isfinite(value)]
    if not values:
        return None
    if len(values) < _SEVERAL:
        apart = max(noise(samples) for _, samples in runs)
        tolerated = TOLERATED + apart / 2 + (max(values) - min(values)) / max(values)
    else:
        apart = noise(values)
        tolerated = max(LEAST_TOLERATED, (_FENCE + 0.5) * apart)
    return Base(median(values), min(values), max(values), len(values), apart, tolerated)


def tolerated_among(others: Sequence[float], usual: float) -> float:
    """Share by which a GPU may be slower than the median of the ``others``.

    ``usual`` is what GPUs of one model differ by. Where the others themselves lie further apart, that counts; from four
    on they can tell.
    """
    if len(others) < 4:
        return usual
    middle = median(others)
    deviation = DEVIATION * median([abs(value - middle) for value in others])
    return min(max(usual, _DEVIATIONS * deviation / middle if middle > 0 else 0.0), _MOST_TOLERATED)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
