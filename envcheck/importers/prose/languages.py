"""Other languages: translated messages of the loader, shells, package managers, compilers and Windows (rows of
``system-messages.toml``), for which the English ones are put.

Each message is looked for as plain text first, in all lines at once, so that texts without any of them cost little.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

from envcheck.knowledge.load import load_matrix
from envcheck.text.lazy import lazy_pattern

_QUOTES = "'\"`´‘’“”„«»‹›「」『』"  # noqa: RUF001
_IN_NAME = rf"[^\s{_QUOTES}\u2e80-\U0010ffff]"
_NAME = rf"{_IN_NAME}{{1,200}}"
"""What stands for a placeholder: a name, a version or a path. Scripts without blanks adjoin it, so it holds none of
their signs.
"""
_PLACEHOLDER = lazy_pattern(r"\{([0-9])\}")
_FIRST_IDEOGRAPHIC = "\u2e80"  # From here on, scripts write words without blanks between them


class _Phrase(NamedTuple):
    sign: str  # The longest part without a placeholder
    said: str
    english: str


def in_english(lines: Sequence[str]) -> dict[int, str]:
    """The lines with translated messages, in English, by their places."""
    text = "\n".join(lines)
    phrases = [phrase for phrase in _phrases() if phrase.sign in text]
    if not phrases:
        return {}
    changed: dict[int, str] = {}
    for place, line in enumerate(lines):
        english = line
        for phrase in phrases:
            if phrase.sign in english:
                english = _compiled(phrase.said).sub(partial(_put, english=phrase.english), english)
        if english != line:
            changed[place] = english
    return changed


def _put(found: re.Match[str], english: str) -> str:
    """The English phrase; with blanks around it where the language has none between words."""
    text = _PLACEHOLDER.sub(lambda number: found[f"w{number[1]}"], english)
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    start = " " if text[0].isalnum() and (before.isalnum() or before == ":") else ""
    end = " " if after.isalnum() and (text[-1].isalnum() or text[-1] == ":") else ""
    return f"{start}{text}{end}"


@cache
def _phrases() -> tuple[_Phrase, ...]:
    """All phrases, long ones first, since they may contain others."""
    found = [
        _Phrase(max((part.strip(f"{_QUOTES}: ") for part in _PLACEHOLDER.split(text)[::2]), key=len), text, row.english)
        for row in load_matrix().translations
        for texts in row.said.values()
        for text in texts
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda phrase: len(phrase.sign), reverse=True))


@cache
def _compiled(phrase: str) -> re.Pattern[str]:
    # Texts and placeholders alternate. Quotation marks differ between releases, and get lost where people type them.
    parts = _PLACEHOLDER.split(phrase)
    pattern = ""
    for place, part in enumerate(parts):
        if place % 2:
            before = r"\s?" if pattern else rf"(?<!{_IN_NAME})"
            after = r"\s?" if parts[place + 1] else ""
            pattern += rf"{before}(?:[{_QUOTES}]\s?)?(?P<w{part}>{_NAME})(?:\s?[{_QUOTES}])?{after}"
            continue
        text = part.lstrip(f"{_QUOTES} ") if place else part
        text = text.rstrip(f"{_QUOTES} ") if place < len(parts) - 1 else text
        pattern += re.escape(text).replace(r":\ ", r":\s?")  # a full-width colon has no blank behind it
        if part.endswith(f"{text} ") and _is_alphabetic(text[-1:]):
            pattern += r"(?!\w)"
    return re.compile((r"(?<!\w)" if _is_alphabetic(phrase[0]) else "") + pattern)


def _is_alphabetic(sign: str) -> bool:
    """Whether it is a letter of a script that writes blanks between words."""
    return sign.isalpha() and sign < _FIRST_IDEOGRAPHIC
