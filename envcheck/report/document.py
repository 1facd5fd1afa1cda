"""What a page says, before a format writes it: elements by HTML's names for them, and texts, which may be anybody's.

HTML is these elements, written. Another format writes each as what it has for it: a heading, a table, a fold. The
children of ``pre`` are the words of a command, which is written whole or not at all: half a command can do harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

import msgspec

LONGEST = 800
"""Characters of one foreign text that are shown."""
_PAGE = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]*)?")


class Element(msgspec.Struct, frozen=True):
    """A part of a document."""

    name: str
    children: tuple[Node, ...]
    attributes: dict[str, str]
    """Their names are ours (``class_`` is ``class``), their values may be anybody's; an empty one is not there."""

    @property
    def text(self) -> str:
        """All text within it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def elements(self) -> list[Element]:
        """The children that are no texts."""
        return [child for child in self.children if isinstance(child, Element)]

    def all(self, name: str) -> Iterator[Element]:
        """The elements of this name within it, but in each other."""
        for child in self.elements:
            yield from [child] if child.name == name else child.all(name)


Node: TypeAlias = str | Element


def tag(name: str, /, *children: Node, **attributes: str) -> Element:
    """An element."""
    return Element(name, children, attributes)


def cut(foreign: str, most: int) -> str:
    """``foreign`` in at most so many characters, and how many are left out."""
    left_out = len(foreign) - most
    return foreign if left_out <= 0 else f"{foreign[:most]} … ({left_out:,} more characters)"


SIGNS: dict[str, tuple[str, str]] = {
    "fail": ("✕", "FAIL"), "warn": ("!", "WARN"), "unknown": ("?", "not known"), "note": ("i", "note"),
    "pass": ("✓", "ok"), "skipped": ("\N{EN DASH}", "not judged"),
}  # fmt: skip
"""The sign and the word of each status."""


def chip(status: str, word: str = "") -> Element:
    """A status by its sign and word, ``✓ ok``, or by another word; the colour says it a third time."""
    sign, usual = SIGNS[status]
    return tag("span", tag("i", sign, aria_hidden="true"), f" {word or usual}", class_=f"chip {status}")


def fact(text: str) -> Element:
    """What was read somewhere, as it was."""
    return tag("span", text, class_="value")


def section(title: str, *parts: Element) -> list[Element]:
    """Parts below a heading; nothing without parts."""
    return [tag("section", tag("h2", title), *parts)] if parts else []


def headed(status: str, title: str, about: str) -> list[Element]:
    """The head of a document."""
    return [chip(status, status.upper()), tag("h1", title), tag("p", about, class_="meta")]


def more(left: int, what: str = "more") -> list[Element]:
    """How many are left out."""
    return [tag("p", f"{left:,} {what}", class_="meta")] if left > 0 else []


def table(rows: Sequence[Sequence[Node]], heads: Sequence[Node] = (), kind: str = "wide") -> list[Element]:
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
