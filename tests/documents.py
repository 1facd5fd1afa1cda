"""Texts that tests read from a document: after a head, each below a line ``=== name | what is expected``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path


def texts(file: Path) -> Iterator[tuple[str, str, str]]:
    """Name, expectation and text of each."""
    _, *found = re.split(r"^=== (.+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for title, text in zip(found[::2], found[1::2], strict=True):
        name, _, expected = title.partition(" | ")
        yield name, expected, text.strip("\n")
