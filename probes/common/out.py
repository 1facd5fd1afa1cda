"""The line to the parent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Out:
    """The channel to the parent: facts as partial Snapshots, and progress."""

    def __init__(self, probe: str, write: Callable[[bytes], None]) -> None:
        self._probe = probe
        self._write = write
        self._status = "ok"
        self._detail = ""

    def fact(self, part: dict[str, Any]) -> None:
        self._send({"fact": part})

    def progress(self, text: str) -> None:
        self._send({"progress": text})

    def absent(self, detail: str) -> None:
        """Report that there is nothing for this probe to examine."""
        self._status, self._detail = "absent", detail

    def done(self) -> None:
        """Report that the probe ended; the bootstrap calls this."""
        self._send({"done": {"status": self._status, "detail": self._detail}})

    def _send(self, message: dict[str, Any]) -> None:
        self._write(json.dumps({"probe": self._probe, **message}).encode() + b"\n")


def clean(text: str) -> str:
    """Replace text that is not valid Unicode (undecodable bytes of a name), which JSON readers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
