"""What a line says of this machine, and what of another one, of a wish, a requirement or a question.

Lines of programs that speak of what they want have other readers, which know their forms.
"""

from __future__ import annotations

import re

from envcheck.importers.wording import wording
from envcheck.text.lazy import lazy_pattern

_STATED_BEFORE = lazy_pattern(r"(.{2,400}\uff0c)([^\uff0c]{2,200}[?\uff1f]\s*)$")
"""A statement and the question that follows it, with the comma of Chinese."""

_SENTENCE = lazy_pattern(r"(?<=[.;!?])\s+|(?<=[。\uff01\uff1f\uff1b])|\bbut\b|\bhowever\b|\balthough\b", re.IGNORECASE)


def before_error(text: str) -> str:
    """What somebody says before the error that he quotes in the same line; the whole text where that is not so."""
    raised = _QUOTED_ERROR.search(text)
    return text[: raised.start()] if raised else text


_QUOTED_ERROR = lazy_pattern(r"(?<=[\w).][:;,.] )(?:[a-z_]{1,30}\.){0,4}[A-Z][A-Za-z]{2,30}(?:Error|Exception): ")


def clauses(text: str, *, listed: bool) -> list[str]:
    if listed:
        return [text]
    found: list[str] = []
    for part in filter(None, _SENTENCE.split(text)):
        stated = wording("statement-and-question").match(part) or _STATED_BEFORE.match(part)
        found += stated.groups() if stated else (part,)
    return found


def is_list(text: str) -> bool:
    """Whether a line is a label with its value, a row of a table or an object, and no sentence."""
    bare = text.strip(" \t-*•#>`|+")
    if len(bare) <= _SHORT and len(bare.split()) <= _FEW and not _ENDS.search(bare):
        # A sentence of a language without blanks between words has few of them too.
        return not wording("another-in-other-languages").search(bare)
    return bare.startswith(("{", "[", '"', "'")) or text.count("|") >= _BARS or "\t" in text.strip() or "  " in bare


_SHORT, _FEW, _BARS = 60, 4, 2
_ENDS = lazy_pattern(r"[.?!。\uff01\uff1f]$")  # The end of a sentence


def is_asked_for(part: str, start: int) -> bool:
    return wording("asked-for").search(part[max(0, start - 40) : start]) is not None
