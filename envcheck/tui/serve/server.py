"""Serve the terminal application to browsers of this machine: each visit starts one and ends it.

The address gives the rights of the user, so it holds a random token. The server sends everything that the page needs,
and no page of another site can show it, read it, or open its socket.
"""

from __future__ import annotations

import asyncio
import html
import logging
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import TypeVar

import textual_serve
from aiohttp import web

import envcheck
from envcheck.errors import UsageError
from envcheck.text.clean import clean
from envcheck.text.streams import say
from envcheck.tui.serve.session import MOST_BYTES, WebSession, cells

MOST_SESSIONS = 4
"""Most applications at once: each is a process that examines the machine."""

_SECONDS_TO_END = 3.0
"""How long a reloaded page waits for its last session to end."""

_CODE = (
    "import sys; sys.path[:] = [sys.argv.pop(1), *filter(None, sys.path)]; "
    "from envcheck.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
"""Runs the command line of this envcheck, whatever the working folder holds."""

_PAGE = Path(__file__).parent / "page"

_FONTS = ("RobotoMono-VariableFont_wght.ttf", "RobotoMono-Italic-VariableFont_wght.ttf")

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
        self._host = host
        self._port = port
        self._token = secrets.token_urlsafe(24)
        self._files = _files()
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
        server = web.Server(self._guarded, access_log=None, logger=silent)
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
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
        return self._protected(web.FileResponse(self._files[name]) if name else await self._page(request))

    def _refuse_others(self, request: web.BaseRequest) -> None:
        """Browsers let any site reach ports of this machine, also by sockets; these headers name the site."""
        own = {f"{name}:{self._port}" for name in (_bracketed(self._host), "localhost")}
        origins = request.headers.getall("Origin", [])
        sites = request.headers.getall("Sec-Fetch-Site", [])
        if (
            request.headers.getall("Host", []) not in [[name] for name in own]
            or any(origin != f"http://{request.host}" for origin in origins)
            or any(site not in ("none", "same-origin") for site in sites)
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

    async def _page(self, request: web.BaseRequest) -> web.Response:
        await self._make_room()
        page = Template((_PAGE / "index.html").read_text(encoding="utf-8"))
        socket = html.escape(f"ws://{request.host}/{self._token}/ws")
        return web.Response(text=page.substitute(socket=socket), content_type="text/html")

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


def _files() -> dict[str, Path]:
    """The files that the page loads: its own, and the terminal of textual-serve."""
    terminal = Path(textual_serve.__file__).parent / "static"
    return {
        **{name: _PAGE / name for name in ("page.css", "page.js")},
        **{name: terminal / name for name in ("css/xterm.css", "js/textual.js", *(f"fonts/{font}" for font in _FONTS))},
    }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
