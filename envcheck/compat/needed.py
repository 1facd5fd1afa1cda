"""What a line must contain for a pattern to match it: a test that takes a fraction of the pattern's time.

Most lines match none of some hundred patterns, and a hostile line makes a pattern with ``.*`` take a time that grows
with the square of its length. Both are told by looking for the words that the pattern spells out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

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

_RUN = 4


def needed_by(pattern: str) -> Needed:
    """The words that every match of ``pattern`` contains, whatever their case."""
    found, _ = _alternatives(list(_TOKEN.finditer(pattern)), 0)
    return tuple(dict.fromkeys(found))


def has_needed(needed: Needed, lowered: str) -> bool:
    """Whether a line, in lower case, contains what is needed."""
    return all(any(word in lowered for word in words) for words in needed)


Item = TypeVar("Item")


class Index(Generic[Item]):
    """Items by what they need, so that a line is held against those few whose words it may have.

    A word can only be in a line that has all its runs of ``_RUN`` characters; the one that fewest words share tells.
    """

    def __init__(self, items: Iterable[tuple[Item, Needed]]) -> None:
        self._items = tuple(items)
        self._always: set[int] = set()
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        rarest = [_longest(needed) for _, needed in self._items]
        shared = Counter(run for word in frozenset().union(*rarest) for run in _runs(word))
        for place, words in enumerate(rarest):
            if not words or any(len(word) < _RUN for word in words):
                self._always.add(place)
                continue
            for run in {min(sorted(_runs(word)), key=shared.__getitem__) for word in words}:
                self._places[run].append(place)

    def in_line(self, lowered: str) -> Iterator[Item]:
        """The items whose needed words a line, in lower case, contains, in their order."""
        met = _runs(lowered) & self._places.keys()
        for place in sorted(self._always.union(*(self._places[run] for run in met))):
            item, needed = self._items[place]
            if has_needed(needed, lowered):
                yield item


def _runs(text: str) -> set[str]:
    return {text[at : at + _RUN] for at in range(len(text) - _RUN + 1)}


def _longest(needed: Sequence[frozenset[str]]) -> frozenset[str]:
    """Of what is needed, the set whose shortest word is the longest, which is the rarest."""
    return max(needed, key=lambda words: min(map(len, words)), default=frozenset())


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
        if not (repeat or "").startswith(("*", "?", "{0", "{,")):  # else it may be left out
            branches[-1] += needed
    branches[-1] += _whole(word)
    return _common(branches), at


def _whole(word: str) -> list[frozenset[str]]:
    return [frozenset({word})] if len(word) >= _SHORTEST else []


def _common(branches: Sequence[list[frozenset[str]]]) -> list[frozenset[str]]:
    """What alternatives need in common: the rarest of each."""
    if len(branches) == 1:
        return branches[0]
    found = [words for words in map(_longest, branches) if words]
    return [frozenset().union(*found)] if len(found) == len(branches) else []
