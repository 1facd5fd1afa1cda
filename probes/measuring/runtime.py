"""What measurements are called, how they are made, verified and sent, in any interpreter; read by Python 3.8 too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Callable, Collection, Dict, NamedTuple

from ..common.out import Out, clean

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


_LONGEST = 600  # Characters of what a library of an environment says of its failure


class Unavailable(Exception):  # noqa: N818  no fault of anybody
    """Something that a measurement needs is not here; the text says what."""


class LibraryError(Exception):
    """A library that is here cannot be loaded, or did not do what it was asked; ``path`` is its file, if known."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class CudaError(Exception):
    """A call of the CUDA driver API failed; ``code`` and ``name`` are the driver's own."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call, self.code, self.name = call, code, name


Measure = Callable[[], Fields]  # Makes a measurement; returns its fields, those of its figure and GPU if it likes
Measures = Dict[FigureKey, Measure]


def run_all(
    out: Out,
    measures: Measures,
    gpu: str | None,
    only: Collection[str] = (),
    after: Callable[[], None] = lambda: None,
    *,
    inside: bool = False,
) -> None:
    """Make the measurements that were asked for, each sent as soon as it is there; call ``after`` after each.

    What is not available, and a library that fails, costs its own measurement; a failed call of the driver breaks the
    context, and so ends the rest. ``inside``: they work with an environment's packages, where whatever a measurement
    raises is the failure of the library under test.
    """
    for figure, measure in measures.items():
        if only and figure.name not in only:
            continue
        out.progress(str(figure))
        broken = None
        try:
            try:
                facts = measure()
            finally:
                after()
        except Unavailable as reason:
            facts = {"missing": str(reason)}
        except CudaError as error:
            facts, broken = {"missing": str(error)}, error
        except LibraryError as error:
            facts = {"missing": str(error), "failed": True, "library": error.path or None}
        except Exception as error:
            if not inside:
                raise
            text, path = f"{type(error).__name__}: {error}", getattr(error, "path", None)
            facts = {"missing": text, "failed": True, "library": path or None}
        if inside and "missing" in facts:
            facts["missing"] = clean(facts["missing"])[:_LONGEST]
        record = {"source": "bench", "name": figure.name, "gpu": gpu, **figure.facts, **facts}
        out.fact({"measurements": [{key: value for key, value in record.items() if value is not None}]})
        if broken:
            raise broken
