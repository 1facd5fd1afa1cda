"""What a child printed: only the tail is kept, apart for each probe that it ran."""

from __future__ import annotations

from collections import deque

from envcheck.collect import visible

TAIL = 4096
"""Bytes kept of what one probe printed."""


class Noise:
    """Everything on the child's standard output and error; a line of ``boundary`` follows each probe's part."""

    def __init__(self, boundary: bytes) -> None:
        self._boundary = boundary
        self._current = b""
        self._finished: deque[bytes] = deque()

    def feed(self, data: bytes) -> None:
        """Take what was read from the child."""
        *finished, current = (self._current + data).split(self._boundary)
        self._finished.extend(part[-TAIL:] for part in finished)
        self._current = current[-(TAIL + len(self._boundary)) :]

    def of_finished(self) -> str:
        """What the next finished probe printed; what came in so far when its end was not marked."""
        return _shown(self._finished.popleft() if self._finished else self._current)

    def of_running(self) -> str:
        """What came in since the last finished probe."""
        return _shown(self._current)


def _shown(data: bytes) -> str:
    return visible.block(data[-TAIL:].decode("utf-8", "replace"))
