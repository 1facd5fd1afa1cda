"""HTML that is safe by construction: all but the tags made here is cleaned, cut and escaped.

And foreign text in Markdown: as prose, as code, and as a block, none of which it can leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from envcheck.text.clean import clean, shell_line
from envcheck.text.wrap import clip

LONGEST = 800
"""Characters of one foreign text that are shown."""

_PAGE = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]*)?")
_VOID = frozenset({"meta", "br", "hr"})


class Markup(str):
    """HTML that was made by ``tag``."""

    __slots__ = ()


def tag(name: str, /, *children: str | Markup, **attributes: str) -> Markup:
    """An element; the names of attributes are ours (``class_`` is ``class``), their values may be anybody's."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(value), quote=True)}"'
        for key, value in attributes.items()
        if value
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{join(children)}</{name}>")


def join(children: Iterable[str | Markup]) -> Markup:
    """Several in a row."""
    return Markup("".join(child if isinstance(child, Markup) else text(child) for child in children))


def text(foreign: str, most: int = LONGEST) -> Markup:
    """``foreign`` as text."""
    left_out = len(foreign) - most
    shown = clean(foreign[:most]) + (f" … ({left_out:,} more characters)" if left_out > 0 else "")
    return Markup(escape(shown, quote=True))


def link(title: str, address: str) -> Markup:
    """A link to a page, where ``address`` is one that can be trusted to be no more than that; else both as text."""
    if not is_page(address):
        return join([title, f" ({address})" if address else ""])
    return tag("a", title, href=address, rel="noreferrer noopener")


def is_page(address: str) -> bool:
    """Whether ``address`` is a plain https address and no more."""
    return len(address) <= LONGEST and _PAGE.fullmatch(address) is not None


def document(title: str, content: Markup, style: str = "", script: str = "") -> str:
    """A whole document that loads nothing; of scripts, the policy lets ``script`` alone run, by its digest."""
    import base64
    import hashlib

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"script-src 'sha256-{digest}'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}base-uri 'none'; form-action 'none'"
    shared = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title[:120]),
        Markup(f"<style>\n{shared}{style}</style>"),
    )
    body = tag("body", tag("main", content), *([Markup(f"<script>{script}</script>")] if script else []))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def chip(status: str, sign: str, word: str) -> Markup:
    """A status by its sign and word; the colour says it a third time."""
    return tag("span", tag("i", sign, aria_hidden="true"), f" {word}", class_=f"chip {status}")


_LONGEST = 240
_SPECIAL = re.compile(r"([\\`*_\[\]|~$!])")
_REFERENCE = re.compile(r"([@#])(?=\w)|(?<=\w)(:)(?=//)|(?i:(?<=\bgh)(-)(?=\d)|(?<=\bwww)(\.))")
"""Where a forge would make a mention, a reference or a link of plain words."""


def prose(text: str, most: int = _LONGEST) -> str:
    """``text`` as running text that is nothing but text."""
    shown = _short(text, most).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _REFERENCE.sub(lambda match: f"{match[0]}<!-- -->", _SPECIAL.sub(r"\\\1", shown))


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
