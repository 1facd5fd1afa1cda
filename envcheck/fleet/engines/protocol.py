"""Programs on nodes that are talked to in lines while they run, over what started them: ssh, srun.

No socket is opened: orders go to a program's stdin, and its stdout brings its answers. Whatever ends the talk, Ctrl-C
included, ends the programs.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Protocol, cast

import msgspec

from envcheck.fleet.engines.launch import NodeCommand, end_process, last_words

_LONGEST_LINE = 1 << 20
_CHUNK = 1 << 16
_TAIL = 4096


class NodeWord(msgspec.Struct, frozen=True):
    """What came of a node."""

    node: str
    line: bytes = b""
    ended: str | None = None
    """Why nothing more will come; None: it goes on."""


class Crew(Protocol):
    """Programs on nodes; within ``with`` they run."""

    def __enter__(self) -> Crew: ...  # noqa: PYI034  Self is newer than Python 3.10

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def send(self, node: str, data: bytes) -> None:
        """Send a line to a node; a failure is reported by ``receive``."""

    def receive(self, seconds: float) -> list[NodeWord]:
        """What came, after ``seconds`` at most."""

    def told(self, node: str) -> bytes:
        """What a node's program, or its launcher, said on stderr so far."""


class Processes:
    """A crew of processes here, each of which is the line to its node."""

    def __init__(self, commands: Sequence[NodeCommand]) -> None:
        self._commands = commands
        self._selector = selectors.DefaultSelector()
        self._lines: dict[str, _NodeLine] = {}
        self._failed: list[NodeWord] = []

    def __enter__(self) -> Processes:  # noqa: PYI034  Self is newer than Python 3.10
        for command in self._commands:
            try:
                line = _NodeLine(command)
            except OSError as error:
                why = f"{command.argv[0]} cannot be started: {error.strerror or error}"
                self._failed.append(NodeWord(command.node, ended=why))
                continue
            self._lines[command.node] = line
            for descriptor in (line.out, line.err):
                self._selector.register(descriptor, selectors.EVENT_READ, line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for line in self._lines.values():
            line.hang_up()  # all at once: each may take a while to end
        until = time.monotonic() + 3.0
        for line in self._lines.values():
            with suppress(subprocess.TimeoutExpired):
                line.process.wait(timeout=max(0.0, until - time.monotonic()))
            end_process(line.process)
        self._selector.close()

    def send(self, node: str, data: bytes) -> None:
        if node in self._lines:
            self._lines[node].send(data)

    def told(self, node: str) -> bytes:
        return self._lines[node].told if node in self._lines else b""

    def receive(self, seconds: float) -> list[NodeWord]:
        found, self._failed = self._failed, []
        if found or not self._selector.get_map():
            return found
        for key, _ in self._selector.select(seconds):
            line: _NodeLine = key.data
            data = line.read(key.fd)
            if not data:
                self._selector.unregister(key.fd)
            found += line.take(key.fd, data)
        return found


class _NodeLine:
    """The process that is the line to a node."""

    def __init__(self, command: NodeCommand) -> None:
        self.process = command.start()
        streams = (self.process.stdin, self.process.stdout, self.process.stderr)
        self._orders, out, err = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", streams)
        self.out, self.err = out.fileno(), err.fileno()
        os.set_blocking(self._orders.fileno(), False)
        self._node = command.node
        self._unread = self.told = b""

    def send(self, data: bytes) -> None:
        """Orders are short: one that finds its pipe full goes to a node that has not read for long."""
        with suppress(OSError):
            os.write(self._orders.fileno(), data)

    def read(self, descriptor: int) -> bytes:
        try:
            return os.read(descriptor, _CHUNK)
        except OSError:
            return b""

    def take(self, descriptor: int, data: bytes) -> list[NodeWord]:
        """The whole lines in ``data``; at the end of stdout, why it ended."""
        if not data and descriptor == self.out:
            # What the process started may keep its stderr open, so its end is not waited for.
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=5.0)
            os.set_blocking(self.err, False)
            for _ in range(64):
                if not (more := self.read(self.err)):
                    break
                self.take(self.err, more)
            why = last_words(self.told, self.process.returncode, "it ended without a message")
            return [NodeWord(self._node, ended=why)]
        if descriptor == self.err:
            self.told = (self.told + data)[-_TAIL:]
            return []
        *lines, self._unread = (self._unread + data).split(b"\n")
        if len(self._unread) > _LONGEST_LINE:
            self._unread = b""
            return [NodeWord(self._node, ended="it printed a line that is too long")]
        return [NodeWord(self._node, line) for line in lines]

    def hang_up(self) -> None:
        with suppress(OSError):
            self._orders.close()
