"""Words of other languages in what people write, by what they mean: rows of ``spoken.toml``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from envcheck.compat.load import load_matrix

_WITHOUT_BLANKS = ("ja", "ko", "zh_CN", "zh_TW")
"""The languages whose words adjoin each other, or what belongs to them."""


@cache
def words_for(meaning: str) -> str:
    """A pattern for each word that means this, also as a part of another word."""
    return _either(word for _, word in _said(meaning))


@cache
def whole_words_for(meaning: str) -> str:
    """The same; of languages with blanks between words only whole words."""
    return _either(word if of in _WITHOUT_BLANKS else rf"(?<!\w)(?:{word})(?!\w)" for of, word in _said(meaning))


def _said(meaning: str) -> list[tuple[str, str]]:
    rows = (row for row in load_matrix().words if row.means == meaning)
    return [(of, word) for row in rows for of, texts in row.said.items() for word in texts]


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(dict.fromkeys(words), key=len, reverse=True))
