"""A command as one line that a shell reads back exactly, and that is safe to print."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from envcheck.text.clean import clean


def shell_line(argv: Sequence[str], *, ascii_only: bool = False) -> str:
    """``argv`` quoted for a POSIX shell; an argument with unprintable characters in bash's ``$'…'`` form."""
    return " ".join(_quoted(argument, ascii_only=ascii_only) for argument in argv)


def _quoted(argument: str, *, ascii_only: bool) -> str:
    if clean(argument, ascii_only=ascii_only) == argument:
        return shlex.quote(argument)
    return "$'" + "".join(_plain(character) for character in argument) + "'"


def _plain(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isascii() and character.isprintable():
        return character
    # Bytes, not code points: \u is read by the shell's locale, and a file name need not be valid text.
    return "".join(f"\\x{byte:02x}" for byte in _bytes(character))


def _bytes(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")
