"""A check starts its own children and nothing else, and these load nothing from where the user happens to be."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect import prestart
from envcheck.collect.starting import own_variables
from probes.kit import harmless

TRY = """
import importlib, os, sys
WAYS = {
    "subprocess": lambda: importlib.import_module("subprocess").run([sys.executable, "-c", ""]),
    "os.system": lambda: os.system("true"),
    "os.popen": lambda: os.popen("true"),
    "os.posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "os.spawnv": lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
    "os.execv": lambda: os.execv("/bin/true", ["true"]),
    "pty.spawn": lambda: importlib.import_module("pty").spawn("true"),
    "multiprocessing": lambda: importlib.import_module("multiprocessing.util").spawnv_passfds(b"/bin/true", [b"x"], []),
}
def collect(tree, out):
    told = {}
    for way, start in WAYS.items():
        try:
            told[way] = f"started: {start()}"
        except PermissionError as error:
            told[way] = error.strerror
    out.fact({"variables": {"values": told}})
"""


@pytest.mark.parametrize("kind", ["file", "driver"])
def test_no_way_of_python_starts_a_program(probes: Any, kind: str) -> None:
    probes.add("tries", TRY, kind=kind)
    run = probes.run()["tries"]
    assert run.status == "ok", (run.detail, run.noise)
    told = probes.facts("tries")
    assert told.pop("os.spawnv") == "started: 127", "the fork that was to become the program ends instead"
    assert set(told.values()) == {"a check starts no program"}
    assert len(told) == 7


def test_what_libraries_ask_python_for_needs_no_program(probes: Any) -> None:
    """They get the answer that they get where there is no such program."""
    body = """
import ctypes.util, platform, uuid
def collect(tree, out):
    values = {"library": str(ctypes.util._findSoname_ldconfig("dl")), "processor": platform.processor()}
    out.fact({"variables": {"values": {**values, "uuid": str(uuid.uuid1())}}})
"""
    probes.add("asks", body)
    assert probes.run()["asks"].status == "ok"
    assert probes.facts("asks")["library"] == "None"


def test_no_library_is_searched_for_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes.util  # noqa: PLC0415

    monkeypatch.setattr(ctypes.util, "find_library", ctypes.util.find_library)
    started: list[object] = []
    sys.addaudithook(lambda event, arguments: started.append(arguments) if event == "subprocess.Popen" else None)
    harmless.find_no_library()
    assert ctypes.util.find_library("dl") is None
    assert started == []


@pytest.mark.parametrize("kind", ["file", "driver"])
def test_children_work_in_the_root_without_relative_folders_of_the_loader(
    kind: str, probes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
import os
def collect(tree, out):
    out.fact({"variables": {"values": {"cwd": os.getcwd(), "path": os.environ.get("LD_LIBRARY_PATH", "none")}}})
"""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", f":lib:{tmp_path}::./x;$HOME/lib;$ORIGIN/lib:")
    probes.add("looks", body, kind=kind)
    probes.run()
    assert probes.facts("looks") == {"cwd": "/", "path": f"{tmp_path}:$ORIGIN/lib"}


@pytest.mark.parametrize("value", [":", "lib", ""])
def test_a_path_of_relative_folders_alone_is_not_set(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", value)
    assert "LD_LIBRARY_PATH" not in own_variables()
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert "LD_LIBRARY_PATH" not in own_variables()


STOPS = {
    "itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "its whole group": "os.fork(); os.killpg(os.getpid(), signal.SIGSTOP)",
    "a copy of itself that it waits for": (
        "pid = os.fork()\n    if pid == 0: os.kill(os.getpid(), signal.SIGSTOP)\n    os.waitpid(pid, 0)"
    ),
    "a copy in a session of its own": (
        "pid = os.fork()\n    if pid == 0: os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)\n    os.waitpid(pid, 0)"
    ),
}


@pytest.mark.parametrize("what", STOPS)
@pytest.mark.parametrize("kind", ["file", "driver"])
def test_a_child_that_is_stopped_holds_nothing_past_its_deadline(probes: Any, kind: str, what: str) -> None:
    probes.add_healthy("later")
    probes.add("stops", f"import os, signal\ndef collect(tree, out):\n    {STOPS[what]}\n", kind=kind, seconds=0.4)
    started = time.monotonic()
    run = probes.run()["stops"]
    assert time.monotonic() - started < 10
    assert run.status == "timed-out"
    assert run.detail.startswith("timed out after 0.4 s")
    probes.assert_healthy("later")


def test_a_child_that_was_stopped_while_it_waits_is_ended() -> None:
    """The one that is started before anybody has work for it."""
    prestart.begin()
    (waiting,) = prestart._waiting
    os.kill(waiting.started.process.pid, signal.SIGSTOP)
    started = time.monotonic()
    prestart.end()
    assert time.monotonic() - started < 5
    assert prestart._waiting == []


def test_the_run_ends_in_time_although_a_child_never_begins(probes: Any) -> None:
    probes.add("never", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\ndef collect(tree, out): pass\n")
    started = time.monotonic()
    assert probes.run(deadline_s=1.0)["never"].status == "timed-out"
    assert time.monotonic() - started < 10
