"""A second process of envcheck, the pipes that values cross, and what the process of a session sends."""

from __future__ import annotations

import importlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

import msgspec

import envcheck
from envcheck.collect.starting import own_path
from envcheck.model.checks import Report
from envcheck.model.events import Event, OnEvent
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.request import Request
from envcheck.text.encode import encode as as_json


@dataclass(frozen=True)
class InterimReport:
    """A report of the probes that have ended so far."""

    report: Report


@dataclass(frozen=True)
class Failed:
    """There will be no report."""

    problem: str


Message: TypeAlias = Event | InterimReport | Failed
Send: TypeAlias = Callable[[Message], None]
ShouldStop: TypeAlias = Callable[[], bool]
Gather: TypeAlias = Callable[[Request, OnEvent, ShouldStop], Snapshot]
"""``session.gather_here``, or in tests something that replays a machine."""

_TYPES = {kind.__name__: kind for kind in (*get_args(Event), InterimReport, Failed)}


def encode(message: Message) -> tuple[str, bytes]:
    """Name of the type, and JSON, which is read ten times as fast as a pickle of the same records."""
    return type(message).__name__, as_json(message).encode()


def decode(packet: tuple[str, bytes]) -> Message:
    name, data = packet
    return cast("Message", msgspec.json.decode(data, type=_TYPES[name]))


_LENGTH = struct.Struct("!Q")


class WorkerLink:
    """One end. Both ends are envcheck's own, so values travel as pickles; foreign data in them is text."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        """Takes over two descriptors of pipes and closes them in ``close``."""
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
        return pickle.loads(self._read(length))  # noqa: S301 - envcheck's own

    def is_readable(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for a value or for the end."""
        return bool(select.select([self._incoming], [], [], seconds)[0])

    def hang_up(self) -> None:
        """Close the sending side, which the other end notices."""
        with self._sending:
            outgoing, self._outgoing = self._outgoing, -1
            if outgoing >= 0:
                os.close(outgoing)

    def close(self) -> None:
        self.hang_up()
        incoming, self._incoming = self._incoming, -1
        if incoming >= 0:
            os.close(incoming)

    def _read(self, length: int) -> bytes:
        parts: list[bytes] = []
        while length:
            parts.append(os.read(self._incoming, min(length, 1 << 20)))
            if not parts[-1]:
                raise EOFError
            length -= len(parts[-1])
        return b"".join(parts)


_BOOTSTRAP = """\
import sys
from importlib.util import module_from_spec, spec_from_file_location
_, reading, writing, folder, *path = sys.argv
sys.path += [entry for entry in path if entry not in sys.path]
spec = spec_from_file_location("envcheck", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["envcheck"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["envcheck"])
from envcheck.tui.worker.process import main
main(int(reading), int(writing))
"""
"""Loads the same envcheck that runs here, wherever it lies, and everything else from the parent's ``sys.path``."""


class WorkerProcess:
    """A process that serves the application, and that ends by itself when the application is gone.

    It has its own session, so that the end of the terminal reaches the application alone, which then ends it.
    """

    def __init__(self, module: str, *arguments: Any) -> None:
        """Run ``serve(link, *arguments)`` of a module that is imported there alone; raise OSError on failure."""
        theirs_in, outgoing = os.pipe()
        incoming, theirs_out = os.pipe()
        folder = str(Path(envcheck.__file__).parent)
        flags = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", _BOOTSTRAP, str(theirs_in), str(theirs_out), folder, *own_path()],
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
        self.link = WorkerLink(incoming, outgoing)
        with suppress(OSError):  # the process has ended: reading says so
            self.link.send((module, arguments))

    def close(self) -> None:
        """Hang up and wait until the process has ended by itself."""
        self.link.close()
        self._process.wait()

    def end(self) -> None:
        """End the process at once, whatever it does."""
        self._process.terminate()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ended(self) -> str:
        """Wait, and say how the process ended: ``signal 9``, ``exit status 1``."""
        status = self._process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"


def main(incoming: int, outgoing: int) -> None:
    """The program of a worker process: serve as the application's first message says."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as by Ctrl-C, which ends the probes first
    for descriptor in (incoming, outgoing):
        os.set_inheritable(descriptor, False)
    link = WorkerLink(incoming, outgoing)
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):  # the application is gone or has hung up
        module, arguments = link.receive()
        importlib.import_module(module).serve(link, *arguments)
