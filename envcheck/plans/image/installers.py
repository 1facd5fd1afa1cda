"""Whether a text names a program that installs packages, with a word by which it does (``[[installer]]``)."""

from __future__ import annotations

import re
from functools import cache

from envcheck.compat.matrix import Matrix


def installs(matrix: Matrix, text: str) -> bool:
    """Whether the text, in whatever language, names such a program and behind it one of its words."""
    for row in matrix.installers:
        named = _program(row.commands, row.apart).search(text)
        if named and _any_of(row.verbs).search(text, named.end()):
            return True
    return False


def is_verb(matrix: Matrix, word: str) -> bool:
    """Whether any of these programs installs by this word."""
    return any(word in row.verbs for row in matrix.installers)


def is_apart(matrix: Matrix, name: str, verb: str) -> bool:
    """Whether a program that installs does something else by this word."""
    return any(verb in row.apart and re.fullmatch(row.commands, name) for row in matrix.installers)


@cache
def _program(commands: str, apart: tuple[str, ...]) -> re.Pattern[str]:
    other = rf"(?!\W{{1,40}}(?:{'|'.join(map(re.escape, apart))})(?![\w-]))" if apart else ""
    return re.compile(rf"(?<![\w-])(?:-[A-Za-z]{{0,4}}m)?(?:{commands})(?![\w/-]){other}")


@cache
def _any_of(verbs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, verbs))})(?![\w./-])" if verbs else r"\w")
