"""One child process: how it is started, its three pipes, and its end."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect import cleanup
from envcheck.collect.noise import Noise
from envcheck.collect.protocol import TOTAL_LIMIT, Lines

FLAGS = ("-I", "-S", *(["-B"] if sys.dont_write_bytecode else []))
"""Isolated from variables and the working folder, no ``site`` (hence no ``.pth`` files). Bytecode of the probes is kept
beside them where this process keeps its own: uv installs none, and compiling took a quarter of a check's time.
"""
AS_A_USERS_PROGRAM = ("-B",)
"""As the user's own programs are started, but that no bytecode is written."""
_CHUNK = 1 << 18
_DRAIN = 1 << 21
"""Bytes read of one pipe in one go; more than a pipe can hold."""

OnLines = Callable[[list[bytes | None]], None]


@dataclass(frozen=True)
class Launch:
    """How a child is started, and what it is asked."""

    interpreter: str
    request: Mapping[str, Any]
    path: Sequence[str] = ()
    """Entries that go behind those of the interpreter's ``sys.path``."""
    flags: tuple[str, ...] = FLAGS
    variables: Mapping[str, str] | None = None
    """Its environment; envcheck's own when None."""
    cwd: str | None = None


class Child:
    """A running child."""

    def __init__(
        self, launch: Launch, order: Mapping[str, Any], selector: selectors.BaseSelector, on_lines: OnLines
    ) -> None:
        """Start it; raise OSError when that cannot be done.

        ``selector`` gets handlers as data, to be called without arguments. ``on_lines`` is called with the lines that
        the child sends, after what it printed before them was read.
        """
        self.token = os.urandom(16).hex()
        self.noise = Noise()
        self.lines = Lines()
        self._on_lines = on_lines
        self._selector = selector
        self._open: set[int] = set()
        self._unsent = _encoded(order) + b"\n"
        self._hung_up = False
        self._process = self._start(launch)
        self.pid = self._process.pid
        self._watch_end()
        self._send()

    def _start(self, launch: Launch) -> subprocess.Popen[bytes]:
        if not launch.interpreter:
            raise FileNotFoundError("it is not known which Python interpreter runs envcheck")
        theirs: list[int] = []
        try:
            self._facts, facts = _pipe(self._open, theirs, 0)
            self._noise, noise = _pipe(self._open, theirs, 0)
            self._order_end, order = _pipe(self._open, theirs, 1)
            process = subprocess.Popen(
                [launch.interpreter, *launch.flags, "-c", _bootstrap(), str(facts), str(order)],
                stdin=subprocess.DEVNULL,
                stdout=noise,
                stderr=noise,
                pass_fds=(facts, order),
                start_new_session=True,
                cwd=launch.cwd,
                env={**(os.environ if launch.variables is None else launch.variables), cleanup.MARKER: self.token},
            )
        except BaseException:
            self._close_all()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._selector.register(self._facts, selectors.EVENT_READ, self._read_facts)
        self._selector.register(self._noise, selectors.EVENT_READ, self._read_noise)
        return process

    def _watch_end(self) -> None:
        """Wake the selector when the child ends; where the kernel cannot, its pipes and the clock must do."""
        with suppress(AttributeError, OSError):
            descriptor = os.pidfd_open(self.pid)
            self._open.add(descriptor)
            self._selector.register(descriptor, selectors.EVENT_READ, lambda: self._close(descriptor))

    @property
    def sent_too_much(self) -> bool:
        return self.lines.total > TOTAL_LIMIT

    @property
    def has_ended(self) -> bool:
        return cleanup.has_ended(self.pid)

    def run_probe(self, name: str) -> None:
        """Let it run a probe, once it is through with the last one."""
        self._unsent += name.encode() + b"\n"
        self._send()

    def hang_up(self) -> None:
        """Tell it that there is nothing more to do."""
        self._hung_up = True
        self._send()

    def hear(self) -> None:
        """Read all that is in the pipes now."""
        self._read_facts(_DRAIN)

    def reap(self) -> int:
        """Reap the ended child and return its return code; what it sent and nobody read is lost."""
        self._close_all()
        return self._process.wait()

    def abandon(self) -> None:
        """Let go of a child that cannot be killed."""
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
        """At most about ``most`` bytes of what is in a pipe now; its end closes it."""
        parts: list[bytes] = []
        with suppress(BlockingIOError):
            while descriptor in self._open and sum(map(len, parts)) < most:
                parts.append(os.read(descriptor, _CHUNK))
                if not parts[-1]:
                    self._close(descriptor)
        return b"".join(parts)

    def _send(self) -> None:
        """Send what the pipe takes now, and the rest when the selector says that it takes more."""
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
        with suppress(KeyError):  # it is, or is not, registered already
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


@cache
def _bootstrap() -> str:
    return Path(__file__).with_name("bootstrap.py").read_text(encoding="utf-8")


def _encoded(order: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(order)
    except UnicodeEncodeError:
        import json  # noqa: PLC0415  seldom needed: it alone writes variables and paths that are not UTF-8

        return json.dumps(order).encode()


def _pipe(ours: set[int], theirs: list[int], our_end: int) -> tuple[int, int]:
    """A new pipe as (our end, which does not block, their end); ``our_end`` is 0 to read and 1 to write."""
    pipe = os.pipe()
    ours.add(pipe[our_end])
    theirs.append(pipe[1 - our_end])
    os.set_blocking(pipe[our_end], False)
    return pipe[our_end], pipe[1 - our_end]
