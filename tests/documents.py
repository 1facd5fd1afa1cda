"""Texts that tests read from documents: after a head, each below a line ``=== name | what is expected``."""

import re
from collections.abc import Iterator


def texts(document: str) -> Iterator[tuple[str, str, str]]:
    """Name, expectation and text of each."""
    _, *found = re.split(r"^=== (.+)\n", document, flags=re.MULTILINE)
    for title, text in zip(found[::2], found[1::2], strict=True):
        name, _, expected = title.partition(" | ")
        yield name, expected, text.strip("\n")


def subjects(document: str) -> dict[str, list[tuple[list[str], str]]]:
    """By subject (``## …``) its cases: what lines ``=== …`` say of the text below them."""
    parts = re.split(r"^## (.+)\n", document, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], map(_cases, parts[2::2]), strict=True))
    assert len(found) == len(parts) // 2, "two subjects have one name"
    return found


def _cases(below: str) -> list[tuple[list[str], str]]:
    cases = re.findall(r"((?:^=== .+\n)+)((?:(?!=== ).*(?:\n|\Z))*)", below, re.MULTILINE)
    assert cases, "a subject has no case"
    return [([line[4:] for line in said.splitlines()], text.strip("\n")) for said, text in cases]


def lines_of(document: str) -> list[str]:
    """The lines below the head of a document."""
    return document.split("\n\n", 1)[1].rstrip("\n").split("\n")
