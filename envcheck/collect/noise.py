"""What a child printed: only the tail is kept."""

from __future__ import annotations

from envcheck.collect import visible

TAIL = 4096
"""Bytes kept of what one probe printed."""


class Noise:
    """What came in on the child's standard output and error."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL:]

    def take(self) -> str:
        """The tail of what came in since this was last asked, made harmless."""
        tail, self._tail = self._tail, b""
        return visible.block(tail.decode("utf-8", "replace")).strip("\n")
