"""``envcheck serve`` for real: a page and a session on this machine's own address, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from envcheck.cli.main import main
from envcheck.report import render
from tests.installed import INSTALLED
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
        assert process.stdout is not None
        line = process.stdout.readline()
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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "node1.example"])
def test_others_are_not_served(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", host]) == 2
    assert f"--host {host}: " in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "http", "08000000"])
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
    options = ["--python", "a", "--baseline", "b.json", "--baseline", "runs", "--from", "c.json", "--ascii"]
    assert main(["serve", *options]) == 0
    assert given == [options]


async def _end_at_once(_self: object, _tell: object) -> None:
    """As if it was stopped at once."""
