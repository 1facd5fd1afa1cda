"""Pasted text, bounded and freed of what terminals, quoting and log collectors add to it.

Whatever an importer reads comes through here, so that no control character, terminal escape or lone surrogate of a
paste reaches a record, and no text is too long to be read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

SOURCE = "pasted text"

TEXT_LIMIT = 8 * 1024 * 1024
"""Characters that are read of a text."""
LINE_COUNT_LIMIT = 100_000
LINE_LIMIT = 4_000
"""Characters that are read of a line (an XML document is read whole)."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|[@-_])|\x9b[0-?]{0,64}[@-~]"
)
_BOLD = re.compile(r"(?<!\*)\*\*(?!\*)([^*\n]{1,200})\*\*(?!\*)")
_QUOTING = re.compile(r"^[ \t]{0,8}(?:>(?!>)[ \t]?){1,8}", re.MULTILINE)
_RAY = re.compile(r"^[ \t]{0,8}\([^()\n]{0,80}\bpid=[0-9]{1,10}[^()\n]{0,80}\)[ \t]?", re.MULTILINE)

_REMOVED = (
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    0xAD,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xD800, 0xE000),
    *range(0xE0000, 0xE0080),
)
"""Controls, invisible and direction-changing characters, and surrogates (which no JSON text can carry)."""

_SPACES = {0xA0: " ", 0x2007: " ", 0x202F: " ", 0x3000: " "}
_COLONS = {0xFF1A: ":", 0xFE55: ":"}
_TABLE: dict[int, str | None] = {**dict.fromkeys(_REMOVED), **_SPACES, **_COLONS}


@dataclass(frozen=True)
class Paste:
    """A text that somebody pasted."""

    text: str
    lines: tuple[str, ...]
    """The lines of ``text``, each cut at ``LINE_LIMIT``; line 1 is the first."""
    unread: str
    """What was left out, as a sentence; empty when all was read."""

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """The lines, each once: what a line states by itself it states no more by being repeated, as logs do."""
        return tuple(dict.fromkeys(self.lines))

    @classmethod
    def of(cls, text: str) -> Paste:
        """Clean ``text`` and cut it to size."""
        cleaned = _clean(text[:TEXT_LIMIT])
        lines = cleaned.split("\n", LINE_COUNT_LIMIT)
        unread = []
        if len(text) > TEXT_LIMIT:
            unread.append(f"only the first {TEXT_LIMIT // 1024 // 1024} MiB were read")
        if len(lines) > LINE_COUNT_LIMIT:
            unread.append(f"only the first {LINE_COUNT_LIMIT} lines were read")
        kept = tuple(line[:LINE_LIMIT].rstrip() for line in lines[:LINE_COUNT_LIMIT])
        return cls(text=cleaned, lines=kept, unread=" and ".join(unread))


def printable(text: str) -> str:
    """``text`` without controls and invisible characters, its blanks folded."""
    return " ".join(text.translate(_TABLE).split())


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ESCAPES.sub("", text).translate(_TABLE)
    text = _BOLD.sub(r"\1", text)
    return _RAY.sub("", _QUOTING.sub("", text))
