"""Make foreign text safe to print: a machine, a package or a saved report may try to speak to the terminal.

And a command as one line that a shell reads back exactly.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_MOST_MARKS = 3  # Combining marks kept on one character; a taller pile would cover the lines around it

_LINES_AND_TABS = re.compile(r"[^\n\t]+")
_LONGEST_MESSAGE = 1000
_MOST_OF_MESSAGE = 100_000  # Characters of a message that are looked at; what follows is not shown anyway

_TYPOGRAPHY = {
    "…": "...",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MULTIPLICATION SIGN}": "x",
    "≥": ">=",
    "≤": "<=",
    "→": "->",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "“": '"',
    "”": '"',
    "·": "-",
    "°": " deg",
}

_INVISIBLE = frozenset(
    [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)]
)
"""Characters that print as nothing although their category says letter or mark; the supplement of variation
selectors (U+E0100 and on) is handled with them."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: str, *, ascii_only: bool = False) -> str:
    r"""``text`` as one line without control characters, escape sequences, bidi controls or invisible characters.

    Such characters become visible: ``\x1b``, ``\u202e``. Text that is clean stays as it is, so cleaning twice
    changes nothing. With ``ascii_only`` all others outside ASCII are written that way too.
    """
    if text.isascii() and text.isprintable():
        return text
    pieces: list[str] = []
    marks = 0
    for character in text:
        hidden, is_mark = _kind(character)
        marks = marks + 1 if is_mark else 0
        shown = spelled(character) if ascii_only and not character.isascii() else character
        pieces.append(escaped(character) if hidden or marks > _MOST_MARKS else shown)
    return "".join(pieces)


def clean_block(text: str) -> str:
    """``text`` made safe as ``clean`` does it, with its line ends and tabs."""
    return _LINES_AND_TABS.sub(lambda match: clean(match[0]), text)


def one_line(text: str, limit: int = 300) -> str:
    """``text`` as one clean line of at most ``limit`` characters."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def brief(message: str) -> str:
    """A message as one clean line, without most of what it quotes at length: a file or an option may hold anything."""
    text = clean(re.sub(r"(\S{100})\S{40,}(\S{40})", r"\1…\2", message[:_MOST_OF_MESSAGE]))
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "…"


def spelled(character: str) -> str:
    """``character`` in ASCII: as people would type it, else escaped."""
    return _TYPOGRAPHY.get(character) or escaped(character)


def escaped(character: str) -> str:
    """The code point of ``character`` as an escape that can be read."""
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@lru_cache(maxsize=4096)
def _kind(character: str) -> tuple[bool, bool]:
    """Whether it is hidden: control, format (bidi too), surrogate, private, unassigned, separator other than a space,
    or invisible; and whether it is a combining mark.
    """
    category, code = unicodedata.category(character), ord(character)
    hidden = category.startswith("C") or category in ("Zl", "Zp") or (category == "Zs" and character != " ")
    return hidden or code in _INVISIBLE or 0xE0100 <= code <= 0xE01EF, category in ("Mn", "Me")


def shell_line(argv: Sequence[str], *, ascii_only: bool = False) -> str:
    """``argv`` quoted for a POSIX shell; an argument with unprintable characters in bash's ``$'…'`` form. Where a path
    of Windows is the program, in double quotes, which its shells know.
    """
    if argv and re.match(r"(?:\w:|\.{1,2})\\", argv[0]) and not re.search(r"[^ -~]|[\"%^!`$]", "".join(argv)):
        return " ".join(f'"{word}"' if re.search(r"[^\w.:=+@/\\-]|^$", word) else word for word in argv)
    return " ".join(
        shlex.quote(argument)
        if clean(argument, ascii_only=ascii_only) == argument
        else f"$'{''.join(map(_escaped, argument))}'"
        for argument in argv
    )


def _escaped(character: str) -> str:
    """A character within ``$'…'``."""
    if character in "\\'":
        return f"\\{character}"
    if character.isascii() and character.isprintable():
        return character
    # Bytes, not code points: \u is read by the shell's locale, and a file name need not be valid text.
    try:
        encoded = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        encoded = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in encoded)
