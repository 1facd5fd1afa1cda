"""Serve the terminal application to browsers of this machine: each visit starts one and ends it.

The address gives the rights of the user, so it holds a random token. The server sends everything that the page needs,
and no page of another site can show it, read it, or open its socket.
"""

from __future__ import annotations

import asyncio
import html
import json
import logging
import os
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any, TypeVar

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

import envcheck
from envcheck.errors import UsageError
from envcheck.text.clean import clean
from envcheck.text.streams import say

MOST_SESSIONS = 4  # Most applications at once: each is a process that examines the machine
_SECONDS_TO_END = 3.0  # How long a reloaded page waits for its last session to end
_CODE = (
    "import sys; sys.path[:] = [sys.argv.pop(1), *filter(None, sys.path)]; "
    "from envcheck.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
"""Runs the command line of this envcheck, whatever the working folder holds."""
_PAGE = Path(__file__).parent / "page"
_FONTS = ("fonts/RobotoMono-VariableFont_wght.ttf", "fonts/RobotoMono-Italic-VariableFont_wght.ttf")
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# xterm.js sets its styles by elements that it makes; scripts come from files alone.
_POLICY = (
    "default-src 'self'; connect-src 'self' ws://{host}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Response = TypeVar("Response", bound=web.StreamResponse)


class Served:
    """A server for browsers of this machine, at an address with a token."""

    def __init__(self, arguments: Sequence[str], host: str, port: int) -> None:
        """``arguments``: of ``envcheck tui``. Port 0 chooses a free port."""
        self._command = (sys.executable, "-c", _CODE, str(Path(envcheck.__file__).parents[1]), "tui", *arguments)
        self._host, self._port, self._token = host, port, secrets.token_urlsafe(24)
        terminal = Path(textual_serve.__file__).parent / "static"
        self._files = {name: _PAGE / name for name in ("page.css", "page.js")}
        self._files |= {name: terminal / name for name in ("css/xterm.css", "js/textual.js", *_FONTS)}
        self._sessions: dict[asyncio.Task[None], web.WebSocketResponse] = {}

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM, and end every application.

        ``on_ready`` is called with the address. Raises UsageError where the port cannot be used.
        """
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        # Errors are reported in one line, where aiohttp would print tracebacks.
        silent = logging.getLogger("envcheck.served")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False
        runner = web.ServerRunner(web.Server(self._guarded, access_log=None, logger=silent), shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
            self._port = runner.addresses[0][1]
            on_ready(f"http://{_bracketed(self._host)}:{self._port}/{self._token}/")
            await ended.wait()
        except OSError as error:
            raise UsageError(f"cannot listen on {self._host}, port {self._port}: {error.strerror or error}") from None
        finally:
            # Closing the sockets ends the sessions. Cancelled ones would not wait for their applications.
            sessions = dict(self._sessions)
            await asyncio.gather(*(socket.close() for socket in sessions.values()), return_exceptions=True)
            if sessions:
                await asyncio.wait(sessions, timeout=15)
            await runner.cleanup()

    async def _guarded(self, request: web.BaseRequest) -> web.StreamResponse:
        """Refuse requests without the token or from other sites; report an error in one line.

        No router stands before it: aiohttp's answers some requests (``Expect``) before it asks anybody.
        """
        try:
            self._refuse_others(request)
            return await self._answer(request)
        except web.HTTPException as refusal:
            raise self._protected(refusal) from None
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - such as a browser that went away
            say(clean(f"envcheck: a request failed: {type(error).__name__}: {error}"))
            failure = web.HTTPInternalServerError(text="envcheck could not answer this request.\n")
            raise self._protected(failure) from None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        name = request.path.removeprefix(f"/{self._token}/")
        if name not in ("", "ws", *self._files):
            raise web.HTTPNotFound
        if request.method not in ("GET", "HEAD"):
            raise web.HTTPMethodNotAllowed(request.method, ("GET", "HEAD"))
        if name == "ws":
            return await self._socket(request)
        if name:
            return self._protected(web.FileResponse(self._files[name]))
        await self._make_room()
        page = Template((_PAGE / "index.html").read_text(encoding="utf-8"))
        socket = html.escape(f"ws://{request.host}/{self._token}/ws")
        return self._protected(web.Response(text=page.substitute(socket=socket), content_type="text/html"))

    def _refuse_others(self, request: web.BaseRequest) -> None:
        """Browsers let any site reach ports of this machine, also by sockets; these headers name the site."""
        own = {f"{name}:{self._port}" for name in (_bracketed(self._host), "localhost")}
        origins = request.headers.getall("Origin", [])
        if (
            request.headers.getall("Host", []) not in [[name] for name in own]
            or any(origin != f"http://{request.host}" for origin in origins)
            or any(site not in ("none", "same-origin") for site in request.headers.getall("Sec-Fetch-Site", []))
        ):
            raise web.HTTPForbidden(text="envcheck answers its own pages only; open its address by itself\n")
        # "*" and what CONNECT asks for have no slash.
        given = request.path.partition("/")[2].partition("/")[0].encode("utf-8", "surrogatepass")
        if not secrets.compare_digest(given, self._token.encode()):
            raise web.HTTPForbidden(text="Open the whole address that 'envcheck serve' printed: it holds a token\n")

    def _protected(self, response: Response) -> Response:
        """``response`` with the headers of every one."""
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = _POLICY.format(host=f"{_bracketed(self._host)}:{self._port}")
        return response

    async def _socket(self, request: web.BaseRequest) -> web.WebSocketResponse:
        """Run one session, which ends with the server at the latest."""
        await self._make_room()
        socket = self._protected(web.WebSocketResponse(heartbeat=15, max_msg_size=MOST_BYTES, timeout=2.0))

        async def hold() -> None:
            await socket.prepare(request)
            size = cells(request.query.get("width", ""), 80), cells(request.query.get("height", ""), 24)
            try:
                await WebSession(self._command, socket).run(*size)
            except OSError as error:
                say(clean(f"envcheck: cannot start the application: {error}"))
                await socket.close()

        session = asyncio.create_task(hold())
        self._sessions[session] = socket
        session.add_done_callback(self._sessions.pop)
        await asyncio.shield(session)
        return socket

    async def _make_room(self) -> None:
        """Refuse a session above the limit; wait a moment for one that is ending."""
        if len(self._sessions) >= MOST_SESSIONS:
            await asyncio.wait(self._sessions, timeout=_SECONDS_TO_END, return_when=asyncio.FIRST_COMPLETED)
        if len(self._sessions) >= MOST_SESSIONS:
            say(f"envcheck: another session was refused: {MOST_SESSIONS} are open")
            raise web.HTTPServiceUnavailable(
                text=f"{MOST_SESSIONS} sessions are open, and envcheck serves no more at once. "
                "Close one, then load this page again.\n"
            )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


MOST_BYTES = 1 << 20  # Largest message from the browser: room for a long paste
_MOST_CELLS = 1000
_SECONDS_TO_LEAVE = 10.0
_MOST_KEPT = 64 << 10

_WEB_DRIVER = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TEXTUAL_COLOR_SYSTEM": "truecolor"}
_READY = b"__GANGLION__\n"  # Textual's web driver prints this before its packets


class MalformedError(ValueError):
    """A message that the script of the page never sends."""


class WebSession:
    """Runs ``command`` under Textual's web driver and connects it to the browser."""

    def __init__(self, command: Sequence[str], socket: web.WebSocketResponse) -> None:
        self._command, self._socket = command, socket

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
        complaints = asyncio.create_task(_last_line(process.stderr))
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
                if kind not in (b"D", b"M", b"P") or size > 64 << 20:
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
            known = content if isinstance(content, dict) else {}
            width, height = known.get("width"), known.get("height")
            if type(width) is not int or type(height) is not int or min(width, height) < 1:
                raise MalformedError("no size")
            size = {"width": min(width, _MOST_CELLS), "height": min(height, _MOST_CELLS)}
            _send_meta(process, {"type": "resize", **size})
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


def _send(process: asyncio.subprocess.Process, kind: bytes, payload: bytes) -> None:
    assert process.stdin is not None  # noqa: S101  it was asked for
    process.stdin.write(kind + len(payload).to_bytes(4, "big") + payload)


def _send_meta(process: asyncio.subprocess.Process, content: dict[str, Any]) -> None:
    _send(process, b"M", json.dumps(content).encode())


async def _last_line(stream: asyncio.StreamReader | None) -> str:
    """The last line of an output; read all of it, so that the application never blocks."""
    kept = b""
    while stream is not None and (data := await stream.read(_MOST_KEPT)):
        kept = (kept + data)[-_MOST_KEPT:]
    return ([""] + [line for line in kept.decode(errors="replace").splitlines() if line.strip()])[-1]


async def _end(process: asyncio.subprocess.Process, *tasks: asyncio.Task[None]) -> None:
    """Ask the application to exit, and kill it if it does not."""
    with suppress(OSError, RuntimeError):
        _send_meta(process, {"type": "quit"})
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    rest = asyncio.create_task(_last_line(process.stdout))  # the page that the application prints when it exits
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), _SECONDS_TO_LEAVE)
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    await asyncio.wait((rest,), timeout=1)
    rest.cancel()
