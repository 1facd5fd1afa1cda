"""Columns: how wide a text is on a terminal, cutting it and breaking it into lines. Takes cleaned text only.

And numbers as ranges, and the name that is spelled nearest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from envcheck.text.lazy import lazy_pattern


def width(text: str) -> int:
    """Columns that ``text`` takes: two for a wide character, none for a combining mark."""
    return len(text) if text.isascii() else sum(map(_columns, text))


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clip(text: str, columns: int, mark: str = "…") -> str:
    """``text`` cut to ``columns``, with ``mark`` at the end when something was cut: between words where more than half
    of it is left so, else between the parts of a word. An address is left out rather than cut.
    """
    if not _split(text, columns)[1]:
        return text
    kept, rest = _split(text, max(columns - width(mark), 0))
    address = _ADDRESS.search(kept, kept.rfind(" ") + 1)
    if address and not rest.startswith(" "):
        return kept[: address.start()].rstrip() + mark
    if not rest.startswith(" ") and (end := max(kept.rfind(" "), _last_part(kept))) > len(kept) // 2:
        kept = kept[:end]
    return kept.rstrip() + mark


def fill(text: str, columns: int, lines: int | None = None, mark: str = "…") -> list[str]:
    """``text`` broken at spaces into lines of ``columns``; a longer word is broken between its parts, as a path at its
    slashes, and an address is not broken at all.

    With ``lines``, no more than so many; the last one is clipped when something is left over.
    """
    found: list[str] = []
    rest = text.strip()
    while rest:
        line, left = _take_line(rest, columns)
        if left and lines is not None and len(found) == lines - 1:
            return [*found, clip(rest, columns, mark)]
        found.append(line)
        rest = left
    return found


def fill_items(items: Sequence[str], columns: int, lines: int, mark: str = "…") -> list[str]:
    """``items`` joined by ``; `` in at most ``lines`` lines of ``columns``, broken between items where they fit so."""
    found: list[str] = []
    for item in items:
        if found and width(f"{found[-1]}; {item}") <= columns:
            found[-1] += f"; {item}"
        else:
            found.append(item)
    broken = [line for text in found for line in fill(text, columns, lines + 1, mark)]
    return broken if len(broken) <= lines else fill("; ".join(items), columns, lines, mark)


def _take_line(text: str, columns: int) -> tuple[str, str]:
    head, tail = _split(text, max(columns, 2))
    if not tail or tail.startswith(" "):
        return head.rstrip(), tail.lstrip()
    space = head.rfind(" ")
    if space <= 0:
        word = text.partition(" ")[0]
        if _ADDRESS.match(word) and len(word) <= 300:
            return word, text[len(word) :].lstrip()
        end = _last_part(head)
        return (head[:end], head[end:] + tail) if end > len(head) // 2 else (head, tail)
    return head[:space].rstrip(), (head[space + 1 :] + tail).lstrip()


_ADDRESS = lazy_pattern(r"\W{0,2}https?://", re.ASCII)
_PART = lazy_pattern(r"[^\w .](?=[\w.]*$)", re.ASCII)  # The last mark between the parts of a word


def _last_part(text: str) -> int:
    """Where the last part of a word begins at the end of ``text``: behind a slash, else behind another mark."""
    word = text.rfind(" ") + 1
    if (slash := text.rfind("/", word)) > word:
        return slash + 1
    found = _PART.search(text, word)
    return found.end() if found else 0


def _split(text: str, columns: int) -> tuple[str, str]:
    """The longest start of ``text`` within ``columns``, and the rest."""
    if text.isascii():
        return text[:columns], text[columns:]
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:place], text[place:]
    return text, ""


def consecutive(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers, those that follow each other together."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def ranges(numbers: Iterable[int]) -> list[str]:
    """``[0, 1, 2, 5]`` as ``["0-2", "5"]``."""
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in consecutive(numbers)]


_LIKENESS = 0.6  # Least likeness, of 1, to be offered; difflib's own default
_LONGEST = 80  # Characters of a word that is compared: the time grows with their square


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``: did you mean 'check'?``, to follow a sentence, where a known name is spelled like ``word``; else the names to
    choose from, or nothing where they are many.
    """
    from difflib import get_close_matches  # noqa: PLC0415  only a misspelled name needs it

    names = {name.lower(): name for name in known}
    near = get_close_matches(word[:_LONGEST].lower(), names, 1, _LIKENESS)
    if near:
        return f": did you mean {names[near[0]]!r}?"
    return f": choose from {', '.join(names.values())}" if 0 < len(names) <= 20 else ""
