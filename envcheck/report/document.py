"""What a page says, before a format writes it: elements by HTML's names for them, and texts, which may be anybody's.

HTML is these elements, written, and safe by construction: all else is cleaned, cut and escaped. Another format writes
each as what it has for it: a heading, a table, a fold; for Markdown, foreign text is written as prose, as code and as a
block, none of which it can leave. The children of ``pre`` are the words of a command, which is written whole or not at
all: half a command can do harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

import msgspec

from envcheck.text.clean import clean, shell_line
from envcheck.text.lazy import lazy_pattern
from envcheck.text.wrap import clip

LONGEST = 800  # Characters of one foreign text that are shown
_PAGE = lazy_pattern(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]*)?")


class Tag(msgspec.Struct, frozen=True):
    name: str
    children: tuple[Node, ...]
    attributes: dict[str, str]
    """Their names are ours (``class_`` is ``class``), their values may be anybody's; an empty one is not there."""

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def elements(self) -> list[Tag]:
        """The children that are no texts."""
        return [child for child in self.children if isinstance(child, Tag)]

    def all(self, name: str) -> Iterator[Tag]:
        """The elements of this name within it, but in each other."""
        for child in self.elements:
            yield from [child] if child.name == name else child.all(name)


Node: TypeAlias = str | Tag


def tag(name: str, /, *children: Node, **attributes: str) -> Tag:
    return Tag(name, children, attributes)


def cut(foreign: str, most: int) -> str:
    """``foreign`` in at most so many characters, and how many are left out."""
    left_out = len(foreign) - most
    return foreign if left_out <= 0 else f"{foreign[:most]} … ({left_out:,} more characters)"


SIGNS: dict[str, tuple[str, str]] = {
    "fail": ("✕", "FAIL"), "warn": ("!", "WARN"), "unknown": ("?", "not known"), "note": ("i", "note"),
    "pass": ("✓", "ok"), "skipped": ("\N{EN DASH}", "not judged"),
}  # fmt: skip
"""The sign and the word of each status."""


def chip(status: str, word: str = "") -> Tag:
    """A status by its sign and word, ``✓ ok``, or by another word; the colour says it a third time."""
    sign, usual = SIGNS[status]
    return tag("span", tag("i", sign, aria_hidden="true"), f" {word or usual}", class_=f"chip {status}")


def fact(text: str) -> Tag:
    """What was read somewhere, as it was."""
    return tag("span", text, class_="value")


def section(title: str, *parts: Tag) -> list[Tag]:
    """Parts below a heading; nothing without parts."""
    return [tag("section", tag("h2", title), *parts)] if parts else []


def headed(status: str, title: str, about: str) -> list[Tag]:
    return [chip(status, status.upper()), tag("h1", title), tag("p", about, class_="meta")]


def more(left: int, what: str = "more") -> list[Tag]:
    return [tag("p", f"{left:,} {what}", class_="meta")] if left > 0 else []


def table(rows: Sequence[Sequence[Node]], heads: Sequence[Node] = (), kind: str = "wide") -> list[Tag]:
    """A table: without ``heads`` its first columns have widths, with them it scrolls where it is wider than the page
    if its ``kind`` is so. Nothing without rows.
    """
    lines = []
    for row in rows:
        kinds = () if heads else ("name",) if isinstance(row[0], str) else ("word", "name")
        cells = zip_longest(row, kinds, fillvalue="")
        lines.append(tag("tr", *(tag("td", cell, class_=kind) for cell, kind in cells)))
    if not heads or not lines:
        return [tag("table", *lines)] if lines else []
    head = tag("tr", *(tag("th", cell, scope="col") for cell in heads))
    return [tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_=kind, tabindex="0")]


def link(title: str, address: str) -> Node:
    """A link to a page, where ``address`` is one that can be trusted to be no more than that; else both as text."""
    if not is_page(address):
        return f"{title} ({address})" if address else title
    return tag("a", title, href=address, rel="noreferrer noopener")


def is_page(address: str) -> bool:
    """Whether ``address`` is a plain https address and no more."""
    return len(address) <= LONGEST and _PAGE.fullmatch(address) is not None


_COMMAND = 4000  # Characters of the longest command that is shown


def html(*nodes: Node) -> str:
    out: list[str] = []
    _write(nodes, out)
    return "".join(out)


def _write(nodes: Iterable[Node], out: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            out.append(escape(clean(cut(node, LONGEST)), quote=True))
            continue
        if node.name == "pre":
            line = shell_line(tuple(map(str, node.children)))
            whole = f"<pre><code>{escape(clean(line))}</code></pre>"
            out.append(whole if len(line) <= _COMMAND else f"<p>(a command of {len(line):,} characters)</p>")
            continue
        given = ((key.rstrip("_").replace("_", "-"), value) for key, value in node.attributes.items() if value)
        attributes = (f' {name}="{escape(clean(value), quote=True)}"' for name, value in given)
        out.append(f"<{node.name}{''.join(attributes)}>")
        if node.name not in {"meta", "br", "hr"}:
            _write(node.children, out)
            out.append(f"</{node.name}>")


def whole_page(title: str, content: Iterable[Node], style: str = "", script: str = "") -> str:
    """A whole document that loads nothing; of scripts, the policy lets ``script`` alone run, by its digest."""
    import base64
    import hashlib

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"script-src 'sha256-{digest}'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}base-uri 'none'; form-action 'none'"
    shared = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    head = html(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title[:120]),
    )
    head = f"<head>{head}<style>\n{shared}{style}</style></head>"
    end = f"<script>{script}</script>" if script else ""
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>{html(tag("main", *content))}{end}</body></html>\n'


_LONGEST = 240
_SPECIAL = lazy_pattern(r"([\\`*_\[\]|~$!])")
_REFERENCE = lazy_pattern(r"([@#])(?=\w)|(?<=\w)(:)(?=//)|(?i:(?<=\bgh)(-)(?=\d)|(?<=\bwww)(\.))")
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
