"""Foreign text in Markdown: as prose, as code, and as a block, none of which it can leave."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envcheck.text.clean import clean, shell_line
from envcheck.text.wrap import clip

_LONGEST = 240
_SPECIAL = re.compile(r"([\\`*_\[\]|~$!])")
_REFERENCE = re.compile(r"([@#])(?=\w)|(?<=\w)(:)(?=//)|(?i:(?<=\bgh)(-)(?=\d)|(?<=\bwww)(\.))")
"""Where a forge would make a mention, a reference or a link of plain words."""


def prose(text: str, most: int = _LONGEST) -> str:
    """``text`` as running text that is nothing but text."""
    shown = _short(text, most).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _REFERENCE.sub(lambda match: f"{match[0]}<!-- -->", _SPECIAL.sub(r"\\\1", shown))


def link(title: str, address: str) -> str:
    """A link to an address that ``is_page``; what looks like an entity in it stays as it is."""
    return f"[{prose(title)}](<{address.replace('&', '&amp;')}>)"


def code(text: str, most: int = _LONGEST) -> str:
    """``text`` as a code span, which may stand in a cell of a table."""
    shown = _short(text, most).replace("|", "\N{BROKEN BAR}")
    ticks = "`" * (_longest_run(shown) + 1)
    gap = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{ticks}{gap}{shown}{gap}{ticks}" if shown.strip() else "``` ```"


def block(text: str, most: int = _LONGEST) -> str:
    """``text`` as a line of a block fenced by three backticks."""
    return _short(text, most).replace("```", "'''")


def fence(command: Sequence[str], longest: int) -> str:
    """``command`` as a block to copy; a command is shown whole or not at all."""
    line = shell_line(command)
    if len(line) > longest:
        return f"(a command of {len(line):,} characters; the report has it whole)"
    ticks = "`" * max(3, _longest_run(line) + 1)
    return f"{ticks}sh\n{line}\n{ticks}"


def _short(text: str, most: int) -> str:
    return clip(clean(text.strip()[: 4 * most]), most)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
