"""Values to and from another process of envcheck, over two pipes."""

from __future__ import annotations

import os
import pickle
import select
import struct
import threading
from typing import Any

_LENGTH = struct.Struct("!Q")
_CHUNK = 1 << 20


class Link:
    """One end. Both ends are envcheck's own, hence pickles; what is foreign in them is text."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        """``incoming`` and ``outgoing`` are descriptors of pipes, which are closed with it."""
        self._incoming, self._outgoing = incoming, outgoing
        self._sending = threading.Lock()

    def send(self, value: Any) -> None:
        """Send a value, from any thread; raise OSError when nobody reads."""
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        left = memoryview(_LENGTH.pack(len(data)) + data)
        with self._sending:
            while left:
                left = left[os.write(self._outgoing, left) :]

    def receive(self) -> Any:
        """Wait for a value; raise EOFError when no more will come."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))  # noqa: S301 - of envcheck's own

    def has_news(self, seconds: float) -> bool:
        """Wait at most some seconds for a value, or for the end."""
        return bool(select.select([self._incoming], [], [], seconds)[0])

    def hang_up(self) -> None:
        """Send no more, which tells the other end."""
        with self._sending:
            outgoing, self._outgoing = self._outgoing, -1
            if outgoing >= 0:
                os.close(outgoing)

    def close(self) -> None:
        """Neither send nor receive any more."""
        self.hang_up()
        incoming, self._incoming = self._incoming, -1
        if incoming >= 0:
            os.close(incoming)

    def _read(self, length: int) -> bytes:
        parts: list[bytes] = []
        while length:
            parts.append(os.read(self._incoming, min(length, _CHUNK)))
            if not parts[-1]:
                raise EOFError
            length -= len(parts[-1])
        return b"".join(parts)
