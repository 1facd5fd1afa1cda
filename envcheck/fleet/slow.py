"""When a figure is slow compared with the same GPU model elsewhere.

The center is the median and the width 1.4826 times the median absolute deviation, which estimates the standard
deviation without being moved by the outliers that are looked for (Iglewicz and Hoaglin, How to Detect and Handle
Outliers, 1993, whose 3.5 is the least distance here). Among many figures some are far off by chance: the distance grows
until a normal distribution would put one figure in a hundred such quantities beyond it. A figure must also be slower by
5 %, since healthy GPUs of one model can lie very close together.
"""

from __future__ import annotations

from statistics import NormalDist

import msgspec

from envcheck.checks import Status
from envcheck.compat.performance.spread import DEVIATION

BINS = 24
MOVED = 0.05
"""Share by which a figure may be worse than an earlier one."""
_LEAST_SCORE = 3.5
_BY_CHANCE = 0.01
"""Figures of a quantity that a normal distribution may put beyond the limit."""
_SLOWER = 0.05
_FAILS = 0.15
"""Shares by which a figure must be slower than the median to warn and to fail."""
_FEWEST = 4
"""With fewer figures none is called slow."""


class Limits(msgspec.Struct, frozen=True):
    """Limits outside which a figure is slow."""

    median: float
    low: float = float("-inf")
    high: float = float("inf")
    sigma: float = 0.0

    @property
    def limit(self) -> float | None:
        """The limit that exists."""
        return next((edge for edge in (self.low, self.high) if abs(edge) != float("inf")), None)

    def status(self, value: float) -> Status:
        """How bad a figure outside the limits is."""
        ratio = self.median / value if self.high != float("inf") else value / self.median
        return "fail" if ratio < 1 - _FAILS else "warn"

    def score(self, value: float) -> float | None:
        """Distance from the median in robust standard deviations; None where there is none."""
        return (value - self.median) / self.sigma if self.sigma > 0 else None


def limits(unit: str, count: int, median: float, mad: float) -> Limits:
    """The limits of a quantity with ``count`` figures."""
    if count < _FEWEST:
        return Limits(median)
    sigma = DEVIATION * mad
    distance = max(_LEAST_SCORE, NormalDist().inv_cdf(1 - min(_BY_CHANCE / count, 0.5))) * sigma
    if unit == "s":
        return Limits(median, high=max(median + distance, median / (1 - _SLOWER)), sigma=sigma)
    return Limits(median, low=min(median - distance, median * (1 - _SLOWER)), sigma=sigma)
