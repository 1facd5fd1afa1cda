"""Texts that tests read from documents: after a head, each below a line ``=== name | what is expected``."""

from __future__ import annotations

import re
from collections.abc import Iterator


def texts(document: str) -> Iterator[tuple[str, str, str]]:
    """Name, expectation and text of each."""
    _, *found = re.split(r"^=== (.+)\n", document, flags=re.MULTILINE)
    for title, text in zip(found[::2], found[1::2], strict=True):
        name, _, expected = title.partition(" | ")
        yield name, expected, text.strip("\n")
