"""The terminal application in a browser of this machine: each visit starts one of its own, and ends it."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

import envcheck
from envcheck.errors import UsageError

_CODE = (
    "import sys; sys.path[:] = [sys.argv.pop(1), *filter(None, sys.path)]; "
    "from envcheck.cli import main; sys.exit(main(sys.argv[1:]))"
)
"""Runs the command line from the folder that envcheck lies in, whatever lies in the working folder."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Served(Server):
    """Answers this machine's browsers on one address, and pages of other sites never."""

    def __init__(self, arguments: Sequence[str], host: str, port: int) -> None:
        """``arguments``: of ``envcheck tui``. Port 0 is a free one."""
        command = [sys.executable, "-c", _CODE, str(Path(envcheck.__file__).parents[1]), "tui", *arguments]
        super().__init__(shlex.join(command), host=host, port=port, title="envcheck")
        self._visits: set[asyncio.Task[None]] = set()

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM; every application has ended by then.

        ``on_ready`` is told the address. Raises UsageError where it cannot be had.
        """
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        pages = await self._make_app()
        pages.middlewares.append(self._own_pages_only)
        runner = web.AppRunner(pages, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port).start()
            self.port = runner.addresses[0][1]
            self.public_url = f"http://{_bracketed(self.host)}:{self.port}"
            on_ready(self.public_url)
            await ended.wait()
        except OSError as error:
            raise UsageError(f"cannot listen on {self.host}, port {self.port}: {error.strerror or error}") from None
        finally:
            await self._end_visits()
            await runner.cleanup()

    async def on_startup(self, app: web.Application) -> None:
        """Nothing: the address is told by ``on_ready``."""

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One visit: remembered, to be ended with the server."""
        visit = asyncio.current_task()
        if visit is None:  # a handler always runs in a task
            raise web.HTTPInternalServerError
        self._visits.add(visit)
        try:
            return await super().handle_websocket(request)
        finally:
            self._visits.discard(visit)

    async def _end_visits(self) -> None:
        visits = tuple(self._visits)
        for visit in visits:
            visit.cancel()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*visits, return_exceptions=True), 10)

    @web.middleware
    async def _own_pages_only(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what another site's page asks for: a browser lets it reach this machine's ports, sockets above all."""
        own = {f"{name}:{self.port}" for name in (_bracketed(self.host), "localhost")}
        origin = request.headers.get("Origin")
        if request.host not in own or (origin is not None and origin not in {f"http://{name}" for name in own}):
            raise web.HTTPForbidden(text="envcheck answers its own pages alone\n")
        return await handler(request)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
