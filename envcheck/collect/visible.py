"""Make text from outside harmless to a terminal: what cannot be printed is shown as an escape."""

from __future__ import annotations


def one_line(text: str, limit: int = 300) -> str:
    """``text`` on one line of at most ``limit`` characters."""
    line = block(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def block(text: str) -> str:
    r"""``text`` with its line ends and tabs, every other unprintable character as an escape such as ``\x1b``."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else _escaped(sign) for sign in text)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()
