"""The answer of a relation: do these components fit, why, by which rows, and what would make them fit."""

from __future__ import annotations

from typing import Literal

import msgspec

from envcheck.checks import Confidence, Source

FitVerdict = Literal["compatible", "incompatible", "unknown"]


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether components fit together."""

    verdict: FitVerdict
    reason: str
    """One sentence that names the components and the bound that decided."""
    rows: tuple[str, ...] = ()
    """Ids of the rows that decided, such as ``cuda/12.4``."""
    sources: tuple[Source, ...] = ()
    nearest_change: str = ""
    """The smallest change that would make them fit: ``driver >= 525.60.13``."""
    confidence: Confidence = "high"
    """The weakest of the rows that decided; a weak one never makes a fail."""

    @property
    def ok(self) -> bool:
        return self.verdict == "compatible"

    @property
    def bad(self) -> bool:
        return self.verdict == "incompatible"


def compatible(reason: str, *, rows: tuple[str, ...] = (), sources: tuple[Source, ...] = ()) -> Fit:
    return Fit(verdict="compatible", reason=reason, rows=rows, sources=sources)


def unknown(reason: str, *, rows: tuple[str, ...] = (), sources: tuple[Source, ...] = ()) -> Fit:
    return Fit(verdict="unknown", reason=reason, rows=rows, sources=sources)
