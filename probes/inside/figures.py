"""Measurements made under the environment's own interpreter (Python 3.8 or newer), and how results are verified."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Callable

from ..kit import figures
from ..kit.figures import Fields, Figure
from ..kit.out import Out, clean
from ..kit.tree import Tree

_LONGEST = 600


class Absent(Exception):  # noqa: N818  no fault of anybody
    """What a measurement needs is not in this environment; the text says what."""


class Refused(Exception):  # noqa: N818  the name says what a library did
    """A library that is here did not do what it was asked; the text is its own, ``path`` its file, if known."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


Measure = Callable[[], Fields]
"""Makes a measurement; returns what ``rate`` and ``compared`` return, and further fields."""


def run_all(tree: Tree, out: Out, measures: dict[Figure, Measure], gpu: str | None = None) -> None:
    """Make the measurements that the request asks for, each sent as soon as it is there.

    They are those of ``gpu``, a UUID; None: of the GPU that the request names, if any.

    What a measurement raises costs that measurement: ``Absent`` where something is not here, anything else as the
    failure of the library under test.
    """
    asked = tree.request["bench"]
    gpu, only = gpu or asked.get("gpu"), asked.get("only") or ()
    for figure, measure in measures.items():
        if only and figure.name not in only:
            continue
        out.progress(" ".join(filter(None, (figure.name, figure.precision, figure.variant))))
        try:
            facts = measure()
        except Absent as reason:
            facts = {"missing": clean(str(reason))[:_LONGEST]}
        except Exception as error:
            text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            facts = {"missing": clean(text)[:_LONGEST], "failed": True, "library": getattr(error, "path", "") or None}
        record = {"source": "bench", "name": figure.name, "gpu": gpu, **figure.facts, **facts}
        out.fact({"measurements": [{key: value for key, value in record.items() if value is not None}]})


def rate(amount: float, seconds: Iterable[float], unit: str) -> Fields:
    """``amount`` a second, from the seconds that single runs took; the value is the median."""
    samples = [amount / each for each in seconds]
    return {"value": statistics.median(samples), "samples": samples, "unit": unit}


def compared(triples: Iterable[tuple[float, float, float]], tolerance: float, how: str) -> Fields:
    """The field ``verification``, as of ``kit.figures.compared``."""
    return {"verification": figures.compared(triples, tolerance, how)}
