"""``envcheck serve``: a page and a session on this machine's own address, and what it refuses."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from envcheck.cli.main import main
from envcheck.report import render
from envcheck.tui.serve import server as served
from envcheck.tui.serve.server import MOST_SESSIONS, Served
from tests.every import cases
from tests.installed import INSTALLED
from tests.known import known
from tests.tui.showing import judged, recorded

_MARK = "SERVED_BY_TEST"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server at a free port, and its address."""
    command = [sys.executable, "-m", "envcheck", "serve", "--port", "0", "--from", str(_report(tmp_path))]
    process = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(INSTALLED), _MARK: str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        line = known(process.stdout).readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}(?=/)", line)
        assert found, line
        yield process, found[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def _report(folder: Path) -> Path:
    """A saved report: these tests are not about this machine."""
    file = folder / "report.json"
    file.write_text(render(judged(recorded("h200")), "json"))
    return file


async def _shown(address: str, wanted: str, process: subprocess.Popen[str]) -> None:
    """Read the page, open its session, wait for ``wanted`` in it; end the server while it is open."""
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{address}/") as page:
            assert page.status == 200
            text = await page.text()
        assert f"{address.replace('http', 'ws')}/ws" in text
        origin = {"Origin": address.rpartition("/")[0]}
        async with client.ws_connect(f"{address}/ws?width=80&height=24", headers=origin) as session:
            seen = b""
            while wanted.encode() not in seen:
                message = await session.receive(timeout=60)
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                seen += message.data if isinstance(message.data, bytes) else message.data.encode()
            process.send_signal(signal.SIGINT)
            while (await session.receive(timeout=30)).type not in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED):
                pass


def _marked(mark: Path) -> list[str]:
    """The command lines of processes whose environment names ``mark``."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and f"{_MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [told for told in found if told]


def test_a_visit_and_its_end(server: tuple[subprocess.Popen[str], str], tmp_path: Path) -> None:
    process, address = server
    asyncio.run(_shown(address, "PASS", process))
    assert process.wait(30) == 0
    deadline = time.monotonic() + 10
    while _marked(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _marked(tmp_path) == []


@cases("host", "0.0.0.0", "::", "192.0.2.1", "node1.example")
def test_others_are_not_served(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", host]) == 2
    assert f"--host {host}: " in capsys.readouterr().err


@cases("port", "-1", "65536", "http", "08000000")
def test_what_is_no_port(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", f"--port={port}"]) == 2
    assert "is not a port" in capsys.readouterr().err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "envcheck.tui.serve.server", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    assert main(["serve"]) == 2
    assert "pip install 'gpu-envcheck[serve]'" in capsys.readouterr().err


def test_every_visit_gets_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(
        "envcheck.tui.serve.server.Served.__init__", lambda _self, arguments, *_rest: given.append(arguments)
    )
    monkeypatch.setattr("envcheck.tui.serve.server.Served.run", _end_at_once)
    options = ["--python", "a", "--from", "c.json", "--baseline", "b.json", "--baseline", "runs", "--ascii"]
    assert main(["serve", *options]) == 0
    assert given == [options]


async def _end_at_once(_self: object, _tell: object) -> None:
    """As if it was stopped at once."""


# --- What ``envcheck serve`` refuses --------------------------------------------------------------------------------
_APPLICATION = """
import os, sys
def draw(text):
    data = text.encode()
    os.write(1, b"D" + len(data).to_bytes(4, "big") + data)
os.write(1, b"__GANGLION__\\n")
draw("pid %d" % os.getpid())
while True:
    kind = sys.stdin.buffer.read(1)
    data = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
    if not kind or (b"quit" in data and "stays" not in sys.argv):
        break
    draw("heard " + data.decode())
"""

Visit = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


def serving(visit: Visit, *arguments: str) -> None:
    """Run ``visit`` with a client and the address of a server."""

    async def both() -> None:
        server = Served([], "127.0.0.1", 0)
        server._command = (sys.executable, "-I", "-S", "-c", _APPLICATION, *arguments)
        ready = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(server.run(ready.set_result))
        address = (await asyncio.wait_for(ready, 20)).rstrip("/")
        try:
            async with aiohttp.ClientSession() as client:
                await asyncio.wait_for(visit(client, address), 60)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(both())


async def pid_of(socket: Any) -> int:
    return int((await socket.receive_bytes()).decode().removeprefix("pid "))


async def ended(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.05)
    return False


def test_who_is_refused() -> None:
    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        root, _, token = address.rpartition("/")
        own = root.removeprefix("http://")

        async def status(path: str, **headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            async with client.get(f"{root}{path}", headers=named, allow_redirects=False) as answer:
                assert answer.headers["X-Frame-Options"] == "DENY", path
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'self'" in policy
                assert "frame-ancestors 'none'" in policy
                return answer.status

        page = f"/{token}/"
        assert await status(page) == 200
        assert await status(page, Sec_Fetch_Site="none") == 200
        assert await status(page, Origin=root, Sec_Fetch_Site="same-origin") == 200
        assert await status(page, Host=own.replace("127.0.0.1", "localhost")) == 200
        assert await status(f"{page}js/textual.js") == 200
        for path in ("/", "/ws", f"/{token[:-1]}/", f"/{token}x/", "/js/textual.js", "/%ff/", f"//{token}/"):
            assert await status(path) == 403, path
        for path in (page, f"{page}ws", f"{page}page.js"):
            for site in ("cross-site", "same-site", "strange"):
                assert await status(path, Sec_Fetch_Site=site) == 403, (path, site)
            for origin in ("http://elsewhere.example", "null", root.replace("http", "https"), "http://127.0.0.1:1"):
                assert await status(path, Origin=origin) == 403, (path, origin)
            for host in ("elsewhere.example", "127.0.0.1", f"elsewhere.example:{own.rpartition(':')[2]}"):
                assert await status(path, Host=host) == 403, (path, host)
        for path in ("css/", "js", "..%2fserved.py", "fonts/..%2f..%2fserver.py", "download/key"):
            assert await status(f"{page}{path}") == 404, path

    serving(visit)


def test_nothing_without_the_token_reaches_a_handler(capfd: pytest.CaptureFixture[str]) -> None:
    """Requests that name no path, that aiohttp would answer itself, or that name another server."""

    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        root, _, token = address.rpartition("/")
        host = root.removeprefix("http://")

        async def answer(line: str, *headers: str) -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
            lines = (f"{line} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", "")
            writer.write("\r\n".join(lines).encode("latin-1"))
            said = (await asyncio.wait_for(reader.read(), 10)).decode("latin-1")
            writer.close()
            return said

        paths = (
            "/", "//", f"//{token}/", f"/x/{token}/", "/%00/", "/%ED%A0%80/", "/%zz", f"/{token[:-1]}",
            "/" + "a" * 8000,
        )  # fmt: skip
        authorities = (host, "elsewhere.example:443", "*", "/", "[::1]:1")
        asked = [
            "OPTIONS *",
            *(f"CONNECT {authority}" for authority in authorities),
            *(f"{verb} {path}" for verb in ("GET", "HEAD", "POST", "OPTIONS", "TRACE", "DELETE") for path in paths),
            *(f"GET http://{name}{path}" for name in (host, "elsewhere.example") for path in ("", "/", "/x")),
        ]
        for line in asked:
            said = await answer(line)
            assert said.startswith("HTTP/1.1 403 "), (line, said)
            assert "X-Frame-Options: DENY" in said
        for header in ("Expect: nothing", "Expect: 100-continue", "Upgrade: h2c", "Origin: \xff", "Cookie: \xff=;"):
            assert (await answer("GET /", header)).startswith("HTTP/1.1 403 "), header
        assert (await answer(f"OPTIONS /{token}/")).startswith("HTTP/1.1 405 ")
        assert (await answer(f"GET /{token}/")).startswith("HTTP/1.1 200 ")

    serving(visit)
    assert capfd.readouterr().err == ""


def test_a_session_hears_and_answers_and_ends_with_its_socket() -> None:
    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        async with client.ws_connect(f"{address}/ws?width=9999999999&height=-1") as socket:
            pid = await pid_of(socket)
            await socket.send_json(["stdin", "key"])
            assert await socket.receive_bytes() == b"heard key"
            await socket.send_json(["resize", {"width": 10**9, "height": 3}])
            assert b'"width": 1000, "height": 3' in await socket.receive_bytes()
            await socket.send_json(["later", "a kind that is not known is passed over"])
            await socket.send_json(["ping", "7"])
            assert await socket.receive_json() == ["pong", "7"]
        assert await ended(pid)

    serving(visit)


def test_an_application_that_does_not_leave_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "_SECONDS_TO_LEAVE", 0.2)

    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        async with client.ws_connect(f"{address}/ws") as socket:
            pid = await pid_of(socket)
        assert await ended(pid)

    serving(visit, "stays")


def test_no_more_sessions_than_a_few(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(served, "_SECONDS_TO_END", 0.2)

    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        sockets = [await client.ws_connect(f"{address}/ws") for _ in range(MOST_SESSIONS)]
        for _ in range(2):
            async with client.get(f"{address}/") as page:
                assert page.status == 503
                assert f"{MOST_SESSIONS} sessions are open" in await page.text()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await client.ws_connect(f"{address}/ws")
        pid = await pid_of(sockets[0])
        await sockets[0].close()
        assert await ended(pid)
        async with client.get(f"{address}/") as page:
            assert page.status == 200

    serving(visit)
    assert f"{MOST_SESSIONS} are open" in capsys.readouterr().err


_MALFORMED: list[str | bytes] = [
    "", "x", "{}", "[]", "3", "[1]", "null", '["stdin"]', '["stdin", 1]', '["stdin", "\\ud800"]', '["resize", 1]',
    '["resize", {}]', '["resize", {"width": true, "height": 1}]', '["resize", {"width": 1e400, "height": 1}]',
    '["resize", {"width": 0, "height": -1}]', "[" * 200_000, "9" * 10_000, b"bytes",
]  # fmt: skip


def test_malformed_messages_end_a_session_with_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        for message in _MALFORMED:
            async with client.ws_connect(f"{address}/ws") as socket:
                pid = await pid_of(socket)
                await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_str(message))
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE, message
                assert await ended(pid)

    serving(visit)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(_MALFORMED)
    assert all(line.startswith("envcheck: a session sent a malformed message") for line in lines)


def test_what_is_no_http_or_no_frame_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    async def visit(client: aiohttp.ClientSession, address: str) -> None:
        root, _, token = address.rpartition("/")
        host = root.removeprefix("http://")
        upgrade = (
            f"GET /{token}/ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ).encode()
        for sent in (
            b"\x16\x03\x01garbage\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            f"GET /{token}/ws HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(),
            f"GET /{token}/ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n\r\n".encode(),
            upgrade + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            upgrade + b"\x81\x85aaaa\x9e\x9e\x9e\x9e\x9e",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
            writer.write(sent)
            await asyncio.wait_for(reader.read(64), 10)
            writer.close()
        async with client.get(f"{address}/") as page:
            assert page.status == 200

    serving(visit)
    told = capfd.readouterr()
    assert "Traceback" not in told.err + told.out
