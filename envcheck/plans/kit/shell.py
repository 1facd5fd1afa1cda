"""The commands of a shell's text, as far as words tell: no shell is interpreted and nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w{1,80})(?::?-(?P<default>[^}$]{0,200}))?\}|(?P<bare>\w{1,80}))")
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_BETWEEN = frozenset("();&|\n")
_REDIRECTION = re.compile(r"[<>&|]*[<>][<>&|]*")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w{0,79})=(?P<value>.*)", re.DOTALL)
_BEFORE = frozenset(
    {"sudo", "exec", "env", "time", "nice", "command", "if", "then", "else", "elif", "do", "while", "until", "!", "{"}
)
"""Words in front of a command that leave it what it is."""
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
_SCRIPT = re.compile(r"-[a-z]*c")
_MOST_NESTED = 3
_LONGEST = 100_000


class Command(NamedTuple):
    """One command of a text."""

    words: list[str]
    """Empty for a text that cannot be read."""
    variables: dict[str, str]
    """Those whose values are known when it runs."""


def filled(text: str, values: dict[str, str]) -> str:
    """The text with the variables whose values are known in place."""

    def value(found: re.Match[str]) -> str:
        name = found["braced"] or found["bare"]
        return values.get(name) or found["default"] or found[0]

    return _VARIABLE.sub(value, text)[:_LONGEST]


def commands(text: str, values: dict[str, str], nested: int = 0) -> Iterator[Command]:
    """Each command without redirections. ``values`` are known variables; what the text assigns is added to them."""
    try:
        tokens = list(_tokens(_COMMENT.sub("", text)))
    except ValueError:
        yield Command([], values)
        return
    words: list[str] = []
    skip = False
    for token in [*tokens, "\n"]:
        if skip:
            skip = False
        elif _REDIRECTION.fullmatch(token):
            if words and words[-1].isdigit():
                words.pop()  # the number of the stream
            skip = True
        elif not set(token) <= _BETWEEN:
            words.append(token)
        else:
            yield from _command(words, values, nested)
            words = []


def of_words(words: list[str], values: dict[str, str], nested: int = 0) -> Iterator[Command]:
    """The command of these words, or those of the script that it has a shell run."""
    full = [part for word in words for part in _expanded(word, values)]
    script = next((full[place + 1] for place in range(1, len(full) - 1) if _SCRIPT.fullmatch(full[place])), None)
    if full and _SHELL.fullmatch(full[0]) and script is not None and nested < _MOST_NESTED:
        yield from commands(script, values, nested + 1)
    elif full:
        yield Command(full, values)


def _tokens(text: str) -> Iterator[str]:
    reader = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
    yield from reader


def _command(words: list[str], values: dict[str, str], nested: int) -> Iterator[Command]:
    own: dict[str, str] = {}
    start = 0
    while start < len(words):
        assigned = _ASSIGNED.fullmatch(words[start])
        if assigned:
            own[assigned["name"]] = filled(assigned["value"], values)
        elif words[start] not in _BEFORE and not (start and words[start].startswith("-")):
            break
        start += 1
    rest = words[start:]
    exported = rest[:1] == ["export"]
    if exported:
        found = (_ASSIGNED.fullmatch(word) for word in rest[1:])
        own |= {each["name"]: filled(each["value"], values) for each in found if each}
    known = {name: value for name, value in own.items() if "$" not in value and "`" not in value}
    if exported or not rest:
        values |= known
        return
    yield from of_words(rest, values | known if known else values, nested)


def _expanded(word: str, values: dict[str, str]) -> list[str]:
    """A word with its variables in place: what an unquoted variable holds is words of its own."""
    text = filled(word, values)
    return text.split() if text != word and " " in text and " " not in word else [text]
