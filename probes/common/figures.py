"""What a figure is called, and the verdict on its result; read by Python 3.8 too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Dict, NamedTuple

Fields = Dict[str, Any]


class FigureKey(NamedTuple):
    """What tells a measurement from the others of its GPU, by the fields of ``Measurement``."""

    name: str
    precision: str | None = None
    shape: tuple[int, ...] = ()
    variant: str | None = None
    burst: bool | None = None

    @property
    def facts(self) -> Fields:
        """All but the name."""
        fields = {**self._asdict(), "shape": list(self.shape) or None}
        return {key: value for key, value in fields.items() if key != "name" and value is not None}

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        words = (self.name, self.precision, self.variant, shape, "sustained" if self.burst is False else "")
        return " ".join(word for word in words if word)


def verification(
    checked: int, wrong: int, how: str, *, worst: float | None = None, tolerance: float | None = None
) -> Fields:
    """A ``Verification`` of ``checked`` elements: the result is right where some were checked and none is wrong."""
    record: Fields = {"source": "bench", "right": wrong == 0 and checked > 0, "checked": checked, "wrong": wrong}
    record.update(how=how, worst=worst, tolerance=tolerance)
    return {key: value for key, value in record.items() if value is not None}


def compared(triples: Iterable[tuple[float, float, float]], tolerance: float, how: str, wrong: int = 0) -> Fields:
    """A ``Verification`` of results found, exact results, and the sizes that an error is measured by.

    A result is wrong unless ``|found - exact| <= tolerance * size``; NaN is always wrong. ``wrong``: how much else is.
    """
    checked, worst = 0, 0.0
    for found, exact, size in triples:
        checked += 1
        error = abs(found - exact)
        wrong += not error <= tolerance * size
        share = error / size if size else error
        worst = max(worst, share) if math.isfinite(share) else math.inf
    return verification(checked, wrong, how, worst=worst if math.isfinite(worst) else None, tolerance=tolerance)
