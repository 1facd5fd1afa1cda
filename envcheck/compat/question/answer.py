"""The answer to a question about compatibility: the JSON contract of ``envcheck matrix check``."""

from __future__ import annotations

import msgspec

from envcheck.compat.fit import FitVerdict
from envcheck.sources import Source


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """What one relation between the named components says."""

    verdict: FitVerdict
    message: str
    sources: tuple[Source, ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the named components fit together."""

    verdict: FitVerdict
    reasons: tuple[Reason, ...] = ()
    """Everything that was judged; what decided comes first."""
    suggestions: tuple[str, ...] = ()
    """Changes of one component with which the answer is ``compatible``, and what is known to work instead."""
    assumed: dict[str, str] = {}
    """What was taken for granted because nobody said: ``{"os": "linux"}``."""
