"""A small tree of an untrusted XML document.

Only the root element goes to the parser, never what stands before it: without a document type declaration there are
no entities to expand and nothing outside the text to fetch. Depth and number of elements are bounded. What was read
before a document breaks off is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat  # nosec - see above; expat reads the root element only

_DEEPEST = 32
_MOST_ELEMENTS = 200_000


@dataclass
class Element:
    """An element: its text, attributes and children, and whether its end tag was found."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    whole: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()

    def at(self, path: str) -> Element | None:
        """The first descendant at ``a/b/c``."""
        here: Element | None = self
        for step in path.split("/"):
            here = next((child for child in here.children if child.name == step), None) if here else None
        return here

    def all(self, name: str) -> list[Element]:
        """The children with this name."""
        return [child for child in self.children if child.name == name]


class _Refused(Exception):  # noqa: N818
    """The document is larger or deeper than any tool's output."""


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _MOST_ELEMENTS or len(self._open) >= _DEEPEST:
            raise _Refused("it has more elements, or deeper ones, than nvidia-smi writes")
        element = Element(name, dict(attributes))
        if self._open:
            self._open[-1].children.append(element)
        elif self.root is None:
            self.root = element
        self._open.append(element)

    def end(self, _name: str) -> None:
        self._open.pop().whole = True

    def data(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(text)


def parse(text: str, root: str) -> tuple[Element | None, str]:
    """The element ``root`` of ``text`` as far as it can be read, and its problem (empty: none)."""
    start = text.find(f"<{root}")
    if start < 0:
        return None, f"there is no <{root}> element"
    end = text.find(f"</{root}>", start)
    document = text[start:] if end < 0 else text[start : end + len(root) + 3]
    builder = _Builder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        line = text.count("\n", 0, start) + error.lineno
        cut = "is cut off" if end < 0 else f"is malformed ({expat.ErrorString(error.code)})"
        return builder.root, f"the document {cut} at line {line}"
    except _Refused as reason:
        return None, f"the document was refused: {reason}"
    return builder.root, ""
