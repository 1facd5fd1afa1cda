"""A known name for a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable

_LIKENESS = 0.6
"""Least likeness, of 1, to be offered; difflib's own default."""
_LONGEST = 80
"""Characters of a word that is compared: the time grows with their square."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``: did you mean 'check'?``, to follow a sentence; empty where no known name is spelled like ``word``."""
    from difflib import get_close_matches  # noqa: PLC0415  only a misspelled name needs it

    near = get_close_matches(word[:_LONGEST].lower(), tuple(known), 1, _LIKENESS)
    return f": did you mean {near[0]!r}?" if near else ""
