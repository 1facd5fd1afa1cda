"""A child runs probes and the standard library, and nothing that somebody planted where Python would look."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect.request import own_path

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
    for name in (
        "sitecustomize",
        "usercustomize",
        "json",
        "ctypes",
        "signal",
        "kit",
        "look",
        "planted_package",
        "startup",
    ):
        (folder / f"{name}.py").write_text(leave + "WHERE = 'work'\n")
    (folder / "planted.pth").write_text(leave.replace("\n", "") + "\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PYTHONSTARTUP", str(folder / "startup.py"))
    monkeypatch.setenv("PYTHONUSERBASE", str(folder))
    monkeypatch.setenv("PYTHONINSPECT", "1")
    monkeypatch.setattr(sys, "path", ["", str(folder), ".", *sys.path, f"{folder}/"])
    return mark


@pytest.mark.parametrize("kind", ["file", "driver"])
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


def test_own_packages_come_before_those_of_pythonpath(
    probes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
