"""The line to the parent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Out:
    """The line to the parent: facts as partial Snapshots, and how far the probe is."""

    def __init__(self, probe: str, write: Callable[[bytes], None]) -> None:
        self._probe = probe
        self._write = write
        self._status = "ok"
        self._detail = ""

    def fact(self, part: dict[str, Any]) -> None:
        """Send a part of the Snapshot."""
        self._send({"fact": part})

    def progress(self, text: str) -> None:
        """Say how far the probe is."""
        self._send({"progress": text})

    def absent(self, detail: str) -> None:
        """Say that there is nothing for this probe to look at."""
        self._status, self._detail = "absent", detail

    def done(self) -> None:
        """Say that the probe came to its end; the bootstrap calls it."""
        self._send({"done": {"status": self._status, "detail": self._detail}})

    def _send(self, message: dict[str, Any]) -> None:
        self._write(json.dumps({"probe": self._probe, **message}).encode() + b"\n")


def clean(text: str) -> str:
    """Replace what is no Unicode text (undecodable bytes of a name), which JSON readers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
