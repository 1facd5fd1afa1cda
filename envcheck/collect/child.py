"""One child process: its start, its three pipes, and its end."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from envcheck.collect import cleanup
from envcheck.collect.deaths import Noise
from envcheck.collect.protocol import TOTAL_LIMIT, Lines
from envcheck.collect.starting import ISOLATED, WORKING_FOLDER, Started, own_variables, start

AS_A_USERS_PROGRAM = ("-B",)
"""Options of a child that starts like the user's own programs, without writing bytecode."""
_CHUNK = 1 << 18
_DRAIN = 1 << 21
"""Bytes read from a pipe at once; more than a pipe can hold."""

OnLines = Callable[[list[bytes | None]], None]


class Launch(msgspec.Struct, frozen=True):
    """How to start a child, and its request."""

    interpreter: str
    request: Mapping[str, Any]
    path: Sequence[str] = ()
    """Entries to append to the interpreter's ``sys.path``."""
    flags: tuple[str, ...] = ISOLATED
    variables: Mapping[str, str] | None = None
    """Its environment variables; None: envcheck's own, without relative folders of the loader's path."""
    cwd: str = WORKING_FOLDER

    @property
    def is_plain(self) -> bool:
        """Whether the child runs envcheck's own interpreter with envcheck's own variables."""
        mine = self.interpreter == sys.executable and self.flags == ISOLATED
        return mine and self.variables is None and self.cwd == WORKING_FOLDER

    def start(self) -> Started:
        """Start the child; raise OSError if that fails."""
        variables = own_variables() if self.variables is None else self.variables
        return start(self.interpreter, self.flags, variables, self.cwd)


class Child:
    """A running child."""

    def __init__(
        self,
        started: Started,
        order: Mapping[str, Any],
        selector: selectors.BaseSelector,
        on_lines: OnLines,
    ) -> None:
        """Send ``started`` its order if it has none.

        ``selector`` gets handlers as data, which are called without arguments. ``on_lines`` is called with the lines
        that the child sends, after what it printed before them was read.
        """
        self.token = started.token
        self.noise = Noise()
        self.lines = Lines()
        self._on_lines = on_lines
        self._selector = selector
        self._facts, self._noise, self._order_end = started.facts, started.noise, started.order
        self._open = {self._facts, self._noise, self._order_end}
        self._unsent = started.unsent
        if not started.sent_probe:
            try:
                self._unsent = msgspec.json.encode(order) + b"\n"
            except UnicodeEncodeError:
                import json  # noqa: PLC0415  seldom needed: it alone writes variables and paths that are not UTF-8

                self._unsent = json.dumps(order).encode() + b"\n"
        self._sent_probe = started.sent_probe
        self._hung_up = False
        self._process = started.process
        self.pid = self._process.pid
        for descriptor, heard in ((self._facts, self._read_facts), (self._noise, self._read_noise)):
            self._selector.register(descriptor, selectors.EVENT_READ, heard)
        with suppress(AttributeError, OSError):  # where the kernel has none, its pipes and the clock suffice
            end = os.pidfd_open(self.pid)
            self._open.add(end)
            self._selector.register(end, selectors.EVENT_READ, lambda: self._close(end))
        self._send()

    @property
    def sent_too_much(self) -> bool:
        return self.lines.total > TOTAL_LIMIT

    @property
    def has_ended(self) -> bool:
        return cleanup.has_ended(self.pid)

    def run_probe(self, name: str) -> None:
        """Let it run a probe after the previous one."""
        sent, self._sent_probe = self._sent_probe, ""
        if name == sent:
            return
        self._unsent += name.encode() + b"\n"
        self._send()

    def close_order(self) -> None:
        """Close its order: there are no more probes."""
        self._hung_up = True
        self._send()

    def read_pipes(self) -> None:
        """Read everything that is in the pipes now."""
        self._read_facts(_DRAIN)

    def reap(self) -> int:
        """Reap the ended child and return its return code; unread messages are lost."""
        self._close_all()
        return self._process.wait()

    def abandon(self) -> None:
        """Close the pipes of a child that cannot be killed."""
        self._close_all()
        _ABANDONED.append(self._process)

    def _read_facts(self, most: int = _CHUNK) -> None:
        data = self._read(self._facts, most)
        self._read_noise()
        if data:
            self._on_lines(self.lines.feed(data))

    def _read_noise(self) -> None:
        self.noise.feed(self._read(self._noise, _DRAIN))

    def _read(self, descriptor: int, most: int) -> bytes:
        """Read at most about ``most`` bytes from a pipe; at its end, close it."""
        parts: list[bytes] = []
        with suppress(BlockingIOError):
            while descriptor in self._open and sum(map(len, parts)) < most:
                parts.append(os.read(descriptor, _CHUNK))
                if not parts[-1]:
                    self._close(descriptor)
        return b"".join(parts)

    def _send(self) -> None:
        """Write what the pipe accepts now, and the rest when the selector reports it writable."""
        if self._order_end not in self._open:
            return
        try:
            self._unsent = self._unsent[os.write(self._order_end, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent, self._hung_up = b"", True
        if self._hung_up and not self._unsent:
            self._close(self._order_end)
            return
        with suppress(KeyError):  # it was or was not registered before
            if self._unsent:
                self._selector.register(self._order_end, selectors.EVENT_WRITE, self._send)
            else:
                self._selector.unregister(self._order_end)

    def _close(self, descriptor: int) -> None:
        if descriptor not in self._open:
            return
        self._open.remove(descriptor)
        with suppress(KeyError):
            self._selector.unregister(descriptor)
        os.close(descriptor)

    def _close_all(self) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)


_ABANDONED: list[subprocess.Popen[bytes]] = []
