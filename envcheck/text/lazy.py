"""Patterns that are compiled when they are first used: of some 400 that a program holds, most texts need half."""

from __future__ import annotations

import re
from typing import Any, cast

Needed = tuple[tuple[str, ...], ...]  # Of each of these, a line must contain one word; words are in lower case


def has_needed(needed: Needed, lowered: str) -> bool:
    """Whether a line, in lower case, contains what is needed."""
    for words in needed:
        for word in words:
            if word in lowered:
                break
        else:
            return False
    return True


class _Uncompiled:
    """Stands for a pattern; the first method that is asked for compiles it, and all are found here from then on."""

    def __init__(self, text: str, flags: int, needed: Needed) -> None:
        self.text, self.given, self.needed = text, flags, needed

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.text, self.given)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)

    def search(self, line: str, *place: int) -> Any:
        return self._tried("search", line, place, None)

    def match(self, line: str, *place: int) -> Any:
        return self._tried("match", line, place, None)

    def finditer(self, line: str, *place: int) -> Any:
        return self._tried("finditer", line, place, iter(()))

    def _tried(self, method: str, line: str, place: tuple[int, ...], nothing: Any) -> Any:
        # Letters have forms beyond ASCII that lower case keeps: without regard to case, a long s is an "s".
        if self.needed and line.isascii() and not has_needed(self.needed, line.lower()):
            return nothing
        return self.__getattr__(method)(line, *place)


def lazy_pattern(text: str, flags: int = 0, needed: Needed = ()) -> re.Pattern[str]:
    """What ``re.compile`` returns, but for the type and ``re`` of its matches, which name the compiled pattern; it is
    not compiled for lines without the words that it needs.
    """
    return cast("re.Pattern[str]", _Uncompiled(text, flags, needed))
