"""The application in a real terminal (tmux), from its first screen to what it leaves behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.every import cases
from tests.installed import INSTALLED

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux, a real terminal")


class Terminal:
    """A tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket, self._folder = str(folder / "socket"), folder

    def tmux(self, *arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in ("CI", "TMUX", "NO_COLOR")}
        set_here = {"PYTHONPATH": str(INSTALLED), "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        return subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments],
            cwd=self._folder, env={**kept, **set_here},
            capture_output=True, text=True, check=False, timeout=30,
        ).stdout  # fmt: skip

    def start(self, command: str, columns: int = 80, rows: int = 24) -> None:
        size = ("-x", str(columns), "-y", str(rows))
        self.tmux("new-session", "-d", *size, f"{command}; echo status $?; exec sleep 600")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def wait(self, true: Callable[[str], object], seconds: float = 60) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            shown = self.screen()
            if true(shown):
                return shown
            time.sleep(0.1)
        raise AssertionError(self.screen())


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    short = Path("/tmp") / f"envcheck-{uuid.uuid4().hex[:8]}"  # a socket's path must be short
    short.mkdir()
    found = Terminal(short)
    yield found
    found.tmux("kill-server")
    shutil.rmtree(short)


def envcheck(*arguments: str) -> str:
    return " ".join([sys.executable, "-B", "-m", "envcheck", *arguments])


def children(marker: str) -> list[int]:
    """Processes whose environment holds ``marker``, and that envcheck started as a probe's child."""
    return processes(marker, "ENVCHECK_CHILD=")


def processes(*marks: str) -> list[int]:
    """Those whose environment holds all ``marks``."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            variables = (folder / "environ").read_bytes() if folder.name.isdecimal() else b""
        except OSError:
            continue
        if variables and all(mark.encode() in variables for mark in marks):
            found.append(int(folder.name))
    return found


def is_worker(pid: int) -> bool:
    """Whether the application started this process to examine the machine."""
    try:
        return b"envcheck.tui.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_from_the_first_screen_to_the_text_that_stays(terminal: Terminal) -> None:
    terminal.start(envcheck())
    shown = terminal.wait(lambda screen: "1 Overview" in screen and "quit" in screen)
    terminal.wait(lambda screen: "Examining" not in screen and "Driver" in screen)
    terminal.tmux("send-keys", "5")
    terminal.wait(lambda screen: "search: a name" in screen)
    terminal.tmux("resize-window", "-x", "140", "-y", "40")
    terminal.wait(lambda screen: len(screen.splitlines()) == 40)
    terminal.tmux("resize-window", "-x", "80", "-y", "24")  # tmux restores the normal screen only to its old size
    terminal.wait(lambda screen: len(screen.splitlines()) == 24)
    terminal.tmux("send-keys", "q")
    shown = terminal.wait(lambda screen: "status 0" in screen)
    assert "1 Overview" not in shown
    assert "Driver" in shown


def test_an_examination_that_dies_is_told_as_long_as_there_is_no_other_and_at_the_end(terminal: Terminal) -> None:
    marker = f"ENVCHECK_TEST={uuid.uuid4().hex}"
    terminal.start(f"{marker} {envcheck()}")
    deadline = time.monotonic() + 30
    while not (workers := [pid for pid in processes(marker) if is_worker(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)  # it is still importing then
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    shown = terminal.wait(lambda screen: "NO VERDICT" in screen)
    assert "the examination ended early (signal 9)" in shown
    terminal.tmux("send-keys", "q")
    shown = terminal.wait(lambda screen: "status 3" in screen)
    assert "envcheck: the examination ended early (signal 9)" in shown


@cases("how", "q", "TERM", "HUP")
def test_leaving_ends_every_child(terminal: Terminal, how: str) -> None:
    marker = f"ENVCHECK_TEST={uuid.uuid4().hex}"
    terminal.start(f"{marker} {envcheck('tui')}")
    deadline = time.monotonic() + 30
    while not (started := children(marker)) and time.monotonic() < deadline:
        time.sleep(0.01)
    if how == "q":
        terminal.tmux("send-keys", "q")
    else:
        own = subprocess.run(
            ["pgrep", "-f", "envcheck tui"], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in processes(marker):
            if str(pid) in own and pid not in started:
                os.kill(pid, getattr(signal, f"SIG{how}"))
    terminal.wait(lambda screen: "status" in screen, 15)
    assert not children(marker)


@cases("seconds", 0.0, 2.0)
def test_nothing_outlives_the_terminal(terminal: Terminal, seconds: float) -> None:
    marker = f"ENVCHECK_TEST={uuid.uuid4().hex}"
    terminal.tmux("new-session", "-d", f"exec env {marker} {envcheck('tui')}")
    until = time.monotonic() + 30
    while not children(marker) and time.monotonic() < until:
        time.sleep(0.01)
    assert children(marker)
    time.sleep(seconds)
    terminal.tmux("kill-server")
    until = time.monotonic() + 20
    while (left := processes(marker)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
