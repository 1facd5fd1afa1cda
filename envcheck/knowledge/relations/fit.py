"""The answer of a relation: do these components fit, why, by which rows, and what would make them fit."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.specifier import Cover
from envcheck.knowledge.tables import Row
from envcheck.sources import Confidence, Source

FitVerdict: TypeAlias = Literal["compatible", "incompatible", "unknown"]
VERDICTS: dict[Cover, FitVerdict] = {"all": "compatible", "some": "unknown", "none": "incompatible"}
"""By how much of what was named a need admits."""

WEAKEST_FIRST: tuple[Confidence, ...] = ("weak", "medium", "high")


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether components fit together."""

    verdict: FitVerdict
    reason: str  # One sentence that names the components and the bound that decided
    rows: tuple[str, ...] = ()  # Ids of the rows that decided, such as ``cuda/12.4``
    sources: tuple[Source, ...] = ()
    nearest_change: str = ""  # The smallest change that would make them fit: ``driver >= 525.60.13``
    confidence: Confidence = "high"  # The weakest of the rows that decided; a weak one never makes a fail
    about: tuple[str, ...] = ()  # In a question, the components concerned: two or more, or one unknown component

    @property
    def ok(self) -> bool:
        return self.verdict == "compatible"

    @property
    def bad(self) -> bool:
        return self.verdict == "incompatible"

    def concerning(self, *names: str) -> Fit:
        return msgspec.structs.replace(self, about=names)


def conclude(matrix: Matrix, verdict: FitVerdict, reason: str, *rows: Row | None, change: str = "") -> Fit:
    """A Fit that cites the rows that decided, and is as trustworthy as the weakest of them."""
    cited = [row for row in rows if row is not None]
    return Fit(
        verdict=verdict,
        reason=reason,
        rows=tuple(dict.fromkeys(row.id for row in cited)),
        sources=matrix.cite(*cited),
        nearest_change=change,
        confidence=min((row.confidence for row in cited), key=WEAKEST_FIRST.index, default="high"),
    )
