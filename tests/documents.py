"""Texts that tests read from documents: after a head, each below a line ``=== name | what is expected``."""

import re
from collections.abc import Iterator


def texts(document: str) -> Iterator[tuple[str, str, str]]:
    """Name, expectation and text of each."""
    _, *found = re.split(r"^=== (.+)\n", document, flags=re.MULTILINE)
    for title, text in zip(found[::2], found[1::2], strict=True):
        name, _, expected = title.partition(" | ")
        yield name, expected, text.strip("\n")


def lines_of(document: str) -> list[str]:
    """The lines below the head of a document."""
    return document.split("\n\n", 1)[1].rstrip("\n").split("\n")
