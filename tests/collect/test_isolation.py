"""A child runs probes and the standard library: nothing planted, nothing from where the user stands, no program."""

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect import starting
from envcheck.collect.starting import own_path, own_variables
from probes.common import harmless
from tests.every import cases

LOOK = """
import json, os, sys
def collect(tree, out):
    try:
        import planted_package
        found = planted_package.WHERE
    except ImportError:
        found = "none"
    values = {
        "found": found,
        "json": json.__file__,
        "flags": f"{sys.flags.isolated}{sys.flags.no_site}{sys.flags.dont_write_bytecode}",
        "loaded": " ".join(sorted(sys.modules)),
        "path": json.dumps(sys.path),
        "name": __name__,
        "descriptors": json.dumps(sorted(os.listdir("/proc/self/fd"))),
        "stdin": os.readlink("/proc/self/fd/0"),
        "leads": str(os.getsid(0) == os.getpid() == os.getpgrp()),
    }
    out.fact({"variables": {"values": values}})
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that is also first on every path, full of files that would leave a mark if they were run."""
    folder = tmp_path / "work"
    folder.mkdir()
    mark = folder / "mark"
    leave = f"import builtins; builtins.open({str(mark)!r}, 'a').write(__name__)\n"
    modules = ("sitecustomize", "usercustomize", "json", "ctypes", "signal", "common", "look", "planted_package")
    for name in (*modules, "startup"):
        (folder / f"{name}.py").write_text(leave + "WHERE = 'work'\n")
    (folder / "planted.pth").write_text(leave.replace("\n", "") + "\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PYTHONSTARTUP", str(folder / "startup.py"))
    monkeypatch.setenv("PYTHONUSERBASE", str(folder))
    monkeypatch.setenv("PYTHONINSPECT", "1")
    monkeypatch.setattr(sys, "path", ["", str(folder), ".", *sys.path, f"{folder}/"])
    return mark


@cases("kind", "file", "driver")
def test_nothing_planted_is_run(probes: Any, planted: Path, kind: str) -> None:
    probes.add("look", LOOK, kind=kind)
    assert probes.run()["look"].status == "ok"
    seen = probes.facts("look")
    assert not planted.exists(), planted.read_text()
    assert seen["found"] == "none"
    assert Path(seen["json"]).is_relative_to(Path(os.__file__).parent)
    assert (seen["flags"], seen["name"]) == (f"11{int(sys.dont_write_bytecode)}", "_envcheck_probes.look")
    assert (seen["leads"], seen["stdin"]) == ("True", "/dev/null")
    assert not {"site", "sitecustomize", "usercustomize", "envcheck", "probes"} & set(seen["loaded"].split())
    assert str(planted.parent) not in seen["path"]
    assert '""' not in seen["path"]


def test_plants_would_leave_their_mark(planted: Path) -> None:
    """The test above proves nothing unless an ordinary interpreter does run what was planted."""
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "import look; raise SystemExit"])
    assert {"sitecustomize", "look"} <= {planted.read_text()[i : i + n] for i in range(99) for n in (4, 13)}


def test_child_holds_no_descriptor_but_its_own(probes: Any) -> None:
    with Path(os.devnull).open() as held:
        os.set_inheritable(held.fileno(), True)
        probes.add("look", LOOK)
        probes.run()
    # 0, 1, 2, the lines of orders and of facts, and the folder that listdir reads.
    assert len(json.loads(probes.facts("look")["descriptors"])) == 6


def test_own_packages_come_before_pythonpath_s(probes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for where in ("own", "added"):
        (tmp_path / where).mkdir()
        (tmp_path / where / "planted_package.py").write_text(f"WHERE = {where!r}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "added")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "added"), *sys.path, str(tmp_path / "own")])
    probes.add("look", LOOK)
    probes.run()
    assert probes.facts("look")["found"] == "own"
    assert not list((tmp_path / "added").rglob("*.pyc"))


def test_working_in_ones_own_site_packages_does_not_hide_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", str(folder)])
    assert own_path() == [str(folder)]


def test_path_of_a_working_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", "relative")
    monkeypatch.setattr(sys, "path", ["", "relative", str(tmp_path)])
    folder.rmdir()
    assert own_path() == [str(tmp_path)]


def test_crash_leaves_no_core_file(probes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        probes.add(
            "dies",
            "import resource\ndef collect(tree, out):\n    import os\n"
            "    out.progress(str(resource.getrlimit(resource.RLIMIT_CORE)))\n    os.abort()\n",
        )
        assert probes.run()["dies"].detail == "crashed: SIGABRT while (0, 0)"
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["probes"]


def test_third_party_packages_of_envcheck_can_be_imported(probes: Any) -> None:
    probes.add("look", "def collect(tree, out):\n    import msgspec, pynvml\n    from cuda.bindings import driver\n")
    run = probes.run()["look"]
    assert (run.status, run.detail, run.noise) == ("ok", "", "")


# --- A check starts its own children and nothing else ---------------------------------------------------------------
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


@cases("kind", "file", "driver")
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


@cases("kind", "file", "driver")
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


@cases("value", ":", "lib", "")
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
@cases("kind", "file", "driver")
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
    starting.start_early()
    os.kill(starting._waiting[starting.EARLY_PROBES[0]].started.process.pid, signal.SIGSTOP)
    started = time.monotonic()
    starting.end_early()
    assert time.monotonic() - started < 5
    assert not starting._waiting


def test_the_run_ends_in_time_although_a_child_never_begins(probes: Any) -> None:
    probes.add("never", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\ndef collect(tree, out): pass\n")
    started = time.monotonic()
    assert probes.run(deadline_s=1.0)["never"].status == "timed-out"
    assert time.monotonic() - started < 10
