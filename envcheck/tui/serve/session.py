"""One application for one socket of a browser; they end together."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from envcheck.text.clean import clean
from envcheck.text.streams import say

MOST_BYTES = 1 << 20
"""Largest message from the browser: room for a long paste."""
_MOST_CELLS = 1000
_LONGEST_PACKET = 64 << 20
_SECONDS_TO_LEAVE = 10.0
_MOST_OF_STDERR = 64 << 10

_WEB_DRIVER = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TEXTUAL_COLOR_SYSTEM": "truecolor"}
_READY = b"__GANGLION__\n"
"""Textual's web driver prints this before its packets."""


class MalformedError(ValueError):
    """A message that the script of the page never sends."""


class WebSession:
    """Runs ``command`` under Textual's web driver and connects it to the browser."""

    def __init__(self, command: Sequence[str], socket: web.WebSocketResponse) -> None:
        self._command = command
        self._socket = socket

    async def run(self, width: int, height: int) -> None:
        """Run until the application ends or the socket closes, then end both."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **_WEB_DRIVER, "COLUMNS": str(width), "ROWS": str(height)},
            start_new_session=True,
        )
        complaints = asyncio.create_task(_last_line(process))
        shown = asyncio.create_task(self._show(process))
        heard = asyncio.create_task(self._listen(process))
        await asyncio.wait((shown, heard), return_when=asyncio.FIRST_COMPLETED)
        await _end(process, shown, heard)
        await self._socket.close()
        await asyncio.wait((complaints,), timeout=1)
        line = complaints.result() if complaints.done() else ""
        if line and process.returncode not in (0, -signal.SIGKILL):
            say(clean(f"envcheck: the application of a session ended with status {process.returncode}: {line}"))

    async def _show(self, process: asyncio.subprocess.Process) -> None:
        """Send what the application draws to the browser, until the application exits."""
        assert process.stdout is not None  # noqa: S101  it was asked for
        output = process.stdout
        with suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            await output.readuntil(_READY)
            while True:
                kind = await output.readexactly(1)
                size = int.from_bytes(await output.readexactly(4), "big")
                if kind not in (b"D", b"M", b"P") or size > _LONGEST_PACKET:
                    return
                payload = await output.readexactly(size)
                if kind == b"D":
                    await self._socket.send_bytes(payload)
                elif kind == b"M" and json.loads(payload).get("type") == "exit":
                    return

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Send the browser's input to the application; a malformed message ends the session."""
        assert process.stdin is not None  # noqa: S101  it was asked for
        with suppress(ConnectionError, RuntimeError):
            async for message in self._socket:
                try:
                    if message.type is not WSMsgType.TEXT:
                        raise MalformedError("not text")  # noqa: TRY301
                    await self._pass_on(process, *_envelope(message.data))
                except MalformedError as error:
                    say(f"envcheck: a session sent a malformed message ({error}) and was ended")
                    await self._socket.close(code=WSCloseCode.INVALID_TEXT, message=b"malformed message")
                    return
                await process.stdin.drain()

    async def _pass_on(self, process: asyncio.subprocess.Process, kind: str, content: Any) -> None:
        if kind == "stdin":
            try:
                _send(process, b"D", str.encode(content))
            except (TypeError, UnicodeEncodeError):
                raise MalformedError("no text") from None
        elif kind == "resize":
            width, height = _size(content)
            _send_meta(process, {"type": "resize", "width": width, "height": height})
        elif kind in ("focus", "blur"):
            _send_meta(process, {"type": kind})
        elif kind == "ping":
            await self._socket.send_json(["pong", str(content)[:32]])


def cells(text: str, default: int) -> int:
    """Columns or rows from the query of the socket's URL."""
    return min(int(text), _MOST_CELLS) if text.isascii() and text.isdecimal() and 0 < len(text) < 10 else default


def _envelope(text: str) -> tuple[str, Any]:
    """A message's kind and content."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedError("no JSON") from None
    if not isinstance(found, list) or not found or not isinstance(found[0], str):
        raise MalformedError("no kind")
    return found[0], found[1] if len(found) > 1 else None


def _size(content: Any) -> tuple[int, int]:
    try:
        width, height = content["width"], content["height"]
    except (TypeError, KeyError):
        raise MalformedError("no size") from None
    if type(width) is not int or type(height) is not int or min(width, height) < 1:
        raise MalformedError("no size")
    return min(width, _MOST_CELLS), min(height, _MOST_CELLS)


def _send(process: asyncio.subprocess.Process, kind: bytes, payload: bytes) -> None:
    assert process.stdin is not None  # noqa: S101  it was asked for
    process.stdin.write(kind + len(payload).to_bytes(4, "big") + payload)


def _send_meta(process: asyncio.subprocess.Process, content: dict[str, Any]) -> None:
    _send(process, b"M", json.dumps(content).encode())


async def _last_line(process: asyncio.subprocess.Process) -> str:
    """The last line on stderr; read all of it, so that the application never blocks."""
    assert process.stderr is not None  # noqa: S101  it was asked for
    kept = b""
    while data := await process.stderr.read(_MOST_OF_STDERR):
        kept = (kept + data)[-_MOST_OF_STDERR:]
    return ([""] + [line for line in kept.decode(errors="replace").splitlines() if line.strip()])[-1]


async def _end(process: asyncio.subprocess.Process, *tasks: asyncio.Task[None]) -> None:
    """Ask the application to exit, and kill it if it does not."""
    with suppress(OSError, RuntimeError):
        _send_meta(process, {"type": "quit"})
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    async def discard() -> None:
        """Read the rest of stdout: the page that the application prints when it exits."""
        assert process.stdout is not None  # noqa: S101  it was asked for
        while await process.stdout.read(_MOST_OF_STDERR):
            pass

    rest = asyncio.create_task(discard())
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), _SECONDS_TO_LEAVE)
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    await asyncio.wait((rest,), timeout=1)
    rest.cancel()
