"""Values to and from another process of envcheck, over two pipes."""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import envcheck
from envcheck.collect.request import own_path

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


# The application's end of a process beside it: how it is started and how it ends.


_GRACE = 1.0
"""Seconds in which a process that was asked to end may do so."""
_BOOTSTRAP = """\
import sys
from importlib.util import module_from_spec, spec_from_file_location
_, reading, writing, folder, *path = sys.argv
sys.path += [entry for entry in path if entry not in sys.path]
spec = spec_from_file_location("envcheck", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["envcheck"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["envcheck"])
from envcheck.tui.worker.child import main
main(int(reading), int(writing))
"""
"""The very envcheck that runs here, wherever it lies; the rest from where the application found it."""


class Aside:
    """A process that serves the application, and that ends by itself when the application is gone.

    It has a session of its own: a terminal that goes away reaches the application alone, which then ends it.
    """

    def __init__(self, module: str, *arguments: Any) -> None:
        """Let it run ``serve(link, *arguments)`` of a module, which is not imported here; raise OSError on failure."""
        theirs_in, outgoing = os.pipe()
        incoming, theirs_out = os.pipe()
        flags = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", _BOOTSTRAP, str(theirs_in), str(theirs_out), *_found_in()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs_in, theirs_out),
                start_new_session=True,
            )
        except BaseException:
            os.close(incoming)
            os.close(outgoing)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.link = Link(incoming, outgoing)
        with suppress(OSError):  # it has ended already, which reading tells
            self.link.send((module, arguments))

    def close(self) -> None:
        """Hang up and wait until it has ended, which it does by itself."""
        self.link.close()
        self._process.wait()

    def end(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ended(self) -> str:
        """How it ended, once it has hung up: ``signal 9``, ``exit status 1``."""
        status = self._process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"


def _found_in() -> list[str]:
    return [str(Path(envcheck.__file__).parent), *own_path()]
