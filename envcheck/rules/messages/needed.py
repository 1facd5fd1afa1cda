"""What a line must contain for a pattern to match it: a test that takes a fraction of the pattern's time.

Most lines match none of some hundred patterns, and a hostile line makes a pattern with ``.*`` take a time that grows
with the square of its length. Both are told by looking for the words that the pattern spells out.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

Needed = tuple[frozenset[str], ...]
"""Of each set, the line must contain one word; words are in lower case."""

_SHORTEST = 2
"""Characters of a word that is worth looking for."""
# Python has no public parser of its own patterns.
_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


def needed_by(pattern: str) -> Needed:
    """The words that every match of ``pattern`` contains, whatever their case."""
    return tuple(dict.fromkeys(_of_sequence(_parser.parse(pattern, re.IGNORECASE))))


def has_needed(needed: Needed, lowered: str) -> bool:
    """Whether a line, in lower case, contains what is needed."""
    return all(any(word in lowered for word in words) for words in needed)


def _of_sequence(parts: Iterable[tuple[Any, Any]]) -> Iterator[frozenset[str]]:
    word = ""
    for kind, value in parts:
        if str(kind) == "LITERAL":
            word += chr(value).lower()
            continue
        yield from _whole(word)
        word = ""
        yield from _of_part(str(kind), value)
    yield from _whole(word)


def _whole(word: str) -> Iterator[frozenset[str]]:
    if len(word) >= _SHORTEST:
        yield frozenset({word})


def _of_part(kind: str, value: Any) -> Iterator[frozenset[str]]:
    if kind == "SUBPATTERN" or (kind in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0):
        yield from _of_sequence(value[-1])
    elif kind == "BRANCH":
        # Of each alternative the set whose shortest word is the longest: the rarest.
        best = [max(_of_sequence(each), key=lambda words: min(map(len, words)), default=None) for each in value[1]]
        if all(best):
            yield frozenset().union(*(words for words in best if words))
