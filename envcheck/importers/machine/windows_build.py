"""The full version number of Windows: ``Microsoft Windows [Version 10.0.22631.4317]``, also around WSL."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, each_line
from envcheck.snapshot import Platform, Snapshot

NAME = "Windows build"
RANK = Rank.OUTPUT

_FULL = re.compile(r"\bWindows\b.{0,40}?\b(10\.0\.[0-9]{5}(?:\.[0-9]{1,5})?)\b", re.IGNORECASE)
_BUILD = re.compile(
    r"\b(?:Windows|OS|Insider|preview)\b.{0,30}?\bbuild(?: number| version)?[ :=]{1,3}(?:10\.0\.)?"
    r"([0-9]{5}(?:\.[0-9]{1,5})?)\b",
    re.IGNORECASE,
)
_LONGEST_LINE = 300


def read(paste: Paste) -> Snapshot:
    return each_line(paste, _read_line)


def _read_line(line: str) -> Snapshot | None:
    """The Windows of a line. It need not be the system that the text is about, but may host a WSL."""
    text = line[:_LONGEST_LINE]
    if found := _FULL.search(text):
        return Snapshot(platform=Platform(source=SOURCE, windows_build=found[1]))
    if found := _BUILD.search(text):
        return Snapshot(platform=Platform(source=SOURCE, windows_build=f"10.0.{found[1]}"))
    return None
