"""Measurements made under the environment's own interpreter (Python 3.8 or newer), and how results are verified."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any, Callable, Dict, NamedTuple  # noqa: UP035  read by Python 3.8 too

from ..kit.out import Out, clean
from ..kit.tree import Tree

Fields = Dict[str, Any]  # noqa: UP006  read by Python 3.8 too
_LONGEST = 600


class Absent(Exception):  # noqa: N818  no fault of anybody
    """What a measurement needs is not in this environment; the text says what."""


class Refused(Exception):  # noqa: N818  the name says what a library did
    """A library that is here did not do what it was asked; the text is its own, ``path`` its file, if known."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class Figure(NamedTuple):
    """What tells a measurement from the others, by the fields of ``Measurement``."""

    name: str
    precision: str | None = None
    shape: tuple[int, ...] = ()
    variant: str | None = None

    def record(self, **facts: Any) -> Fields:
        """A ``Measurement`` with these facts."""
        fields = {**self._asdict(), "shape": list(self.shape) or None, "source": "bench", **facts}
        return {key: value for key, value in fields.items() if value is not None}


Measure = Callable[[], Fields]
"""Makes a measurement; returns what ``rate`` and ``compared`` return, and further fields."""


def run_all(tree: Tree, out: Out, measures: dict[Figure, Measure]) -> None:
    """Make the measurements that the request asks for, each sent as soon as it is there.

    What a measurement raises costs that measurement: ``Absent`` where something is not here, anything else as the
    failure of the library under test.
    """
    asked = tree.request["bench"]
    gpu, only = asked.get("gpu"), asked.get("only") or ()
    for figure, measure in measures.items():
        if only and figure.name not in only:
            continue
        out.progress(" ".join(map(str, filter(None, (figure.name, figure.precision, figure.variant)))))
        try:
            facts = measure()
        except Absent as reason:
            facts = {"missing": clean(str(reason))[:_LONGEST]}
        except Exception as error:
            text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            facts = {"missing": clean(text)[:_LONGEST], "failed": True, "library": getattr(error, "path", "") or None}
        out.fact({"measurements": [figure.record(gpu=gpu, **facts)]})


def rate(amount: float, seconds: Iterable[float], unit: str) -> Fields:
    """``amount`` a second, from the seconds that single runs took; the value is the median."""
    samples = [amount / each for each in seconds]
    return {"value": statistics.median(samples), "samples": samples, "unit": unit}


def compared(triples: Iterable[tuple[float, float, float]], tolerance: float, how: str) -> Fields:
    """The field ``verification``, from results found, exact results, and the sizes that errors are measured by.

    A result is wrong unless ``|found - exact| <= tolerance * size``; NaN is always wrong.
    """
    checked, wrong, worst = 0, 0, 0.0
    for found, exact, size in triples:
        checked += 1
        error = abs(found - exact)
        wrong += not error <= tolerance * size
        share = error / size if size else error
        worst = max(worst, share) if math.isfinite(share) else math.inf
    record = {
        "source": "bench",
        "right": wrong == 0 and checked > 0,
        "checked": checked,
        "wrong": wrong,
        "how": how,
        "worst": worst if math.isfinite(worst) else None,
        "tolerance": tolerance,
    }
    return {"verification": {key: value for key, value in record.items() if value is not None}}
