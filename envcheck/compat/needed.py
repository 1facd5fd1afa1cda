"""What a line must contain for a pattern to match it: a test that takes a fraction of the pattern's time.

Most lines match none of some hundred patterns, and a hostile line makes a pattern with ``.*`` take a time that grows
with the square of its length. Both are told by looking for the words that the pattern spells out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Needed = tuple[frozenset[str], ...]
"""Of each set, the line must contain one word; words are in lower case."""

_SHORTEST = 2
"""Characters of a word that is worth looking for."""
# Python has no public parser of its own patterns; of what they are made of, this much decides what they spell out.
_TOKEN = re.compile(
    r"\(\?P=\w+\)|(?P<open>\((?:\?(?:P<\w+>|:|<?[=!]))?)|(?P<close>\))|(?P<other>\|)|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?P<repeat>[*+?]\??|\{\d*(?:,\d*)?\}\??)|\\(?P<escaped>\W)|\\.|[.^$]|(?P<literal>.)",
    re.DOTALL,
)
_LOOKS = ("(?=", "(?!", "(?<")
"""What begins a group that matches no character."""


def needed_by(pattern: str) -> Needed:
    """The words that every match of ``pattern`` contains, whatever their case."""
    found, _ = _alternatives(list(_TOKEN.finditer(pattern)), 0)
    return tuple(dict.fromkeys(found))


def has_needed(needed: Needed, lowered: str) -> bool:
    """Whether a line, in lower case, contains what is needed."""
    return all(any(word in lowered for word in words) for words in needed)


def _alternatives(tokens: Sequence[re.Match[str]], at: int) -> tuple[list[frozenset[str]], int]:
    """What a group needs, from its first token on, and the place of its end."""
    branches: list[list[frozenset[str]]] = [[]]
    word = ""
    while at < len(tokens) and not tokens[at]["close"]:
        token, at = tokens[at], at + 1
        if token["other"]:
            branches[-1] += _whole(word)
            branches.append([])
            word = ""
            continue
        literal = (token["literal"] or token["escaped"] or "").lower()
        needed: list[frozenset[str]] = []
        if token["open"]:
            inner, at = _alternatives(tokens, at)
            needed, at = [] if token["open"].startswith(_LOOKS) else inner, at + 1
        repeat = tokens[at]["repeat"] if at < len(tokens) else None
        if literal and not repeat:
            word += literal
            continue
        branches[-1] += _whole(word)
        word = ""
        if repeat:
            at += 1
        if not (repeat and _may_be_left_out(repeat)):
            branches[-1] += needed
    branches[-1] += _whole(word)
    return _common(branches), at


def _may_be_left_out(repeat: str) -> bool:
    return repeat[0] in "*?" or repeat.startswith(("{0", "{,"))


def _whole(word: str) -> list[frozenset[str]]:
    return [frozenset({word})] if len(word) >= _SHORTEST else []


def _common(branches: Sequence[list[frozenset[str]]]) -> list[frozenset[str]]:
    """What alternatives need in common: of each the set whose shortest word is the longest, which is the rarest."""
    if len(branches) == 1:
        return branches[0]
    best = [max(each, key=lambda words: min(map(len, words)), default=None) for each in branches]
    found = [words for words in best if words]
    return [frozenset().union(*found)] if len(found) == len(branches) else []
