"""How measurements are made and sent, by envcheck's own interpreter and by an environment's; read by Python 3.8 too."""

from __future__ import annotations

from typing import Callable, Collection, Dict

from ..common.figures import Fields, FigureKey
from ..common.out import Out, clean

_LONGEST = 600
"""Characters of what a library of an environment says of its failure."""


class Unavailable(Exception):  # noqa: N818  no fault of anybody
    """Something that a measurement needs is not here; the text says what."""


class LibraryError(Exception):
    """A library that is here cannot be loaded, or did not do what it was asked; the text says what, ``path`` is its
    file, if known.
    """

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class CudaError(Exception):
    """A call of the CUDA driver API failed; ``code`` and ``name`` are the driver's own."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call, self.code, self.name = call, code, name


Measure = Callable[[], Fields]
"""Makes a measurement; returns its fields, those of its figure and GPU if it likes."""
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
