"""Inspected files: regular ones alone, at most so much of them, and links below a root that stands for a machine."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.model.snapshot import Snapshot
from probes.common.tree import Tree
from tests.every import cases
from tests.probes.conftest import BuildRoot

TREE = Tree({"root": "/"})

NO_FILES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo, "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to what waits": lambda path: path.symlink_to("/proc/kmsg"),
    "link to what grows": lambda path: path.symlink_to("/proc/self/pagemap"), "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path), "dangling": lambda path: path.symlink_to("nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_gives_nothing_at_once(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "file"
    NO_FILES[kind](place)
    started = time.monotonic()
    assert not TREE.read_text(str(place))
    assert not TREE.read_bytes(str(place), 64)
    assert time.monotonic() - started < 1


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"x" * 3_000_000)
    assert TREE.read_bytes(str(place), 2_500_000) == b"x" * 2_500_000
    assert TREE.read_bytes(str(place), 4_000_000) == b"x" * 3_000_000
    assert TREE.read_text("/proc/version") == Path("/proc/version").read_text()
    assert TREE.read_bytes("name\0of none") is None


def test_an_environment_of_pipes_devices_and_procfs_is_read_in_time(
    tmp_path: Path, run_probe: Callable[..., tuple[Snapshot, dict[str, str]]]
) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "numpy-1.0.dist-info").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    names = ("{}.pth", "torch/{}.py", "torch/version.py", "numpy-1.0.dist-info/METADATA", "__editable___{}_finder.py")
    for kind in ("pipe", "link to a device", "link to what waits"):
        for name in names:
            place = site / name.format(kind.replace(" ", "_"))
            if not os.path.lexists(place):
                NO_FILES[kind](place)
    started = time.monotonic()
    snapshot, done = run_probe("environments", {"python": [str(tmp_path)]}, sourced=False)
    assert time.monotonic() - started < 5
    assert done["status"] == "ok"
    assert snapshot.environments


# --- Symbolic links and patterns below a root that stands for a machine ---------------------------------------------
TREE_LINKS = {
    "/usr/lib/real/file": "x", "/lib": "-> usr/lib", "/absolute": "-> /usr/lib/real/file",
    "/above": "-> ../../../../usr/lib/real", "/chain": "-> absolute", "/loop": "-> loop2", "/loop2": "-> /loop",
    "/gone": "-> /nowhere/at/all", "/outside": "-> /etc/passwd",
}  # fmt: skip


@cases("path, real",
    ("/lib/real/file", "/usr/lib/real/file"), ("/absolute", "/usr/lib/real/file"), ("/chain", "/usr/lib/real/file"),
    ("/above/file", "/usr/lib/real/file"), ("/lib/../lib/./real//file", "/usr/lib/real/file"), ("/", "/"),
    ("/loop", None), ("/gone", None), ("/outside", None), ("/usr/lib/none", None),
)  # fmt: skip
def test_links_count_from_the_root(build_root: BuildRoot, path: str, real: str | None) -> None:
    assert Tree({"root": build_root(None, TREE_LINKS)}).resolve(path) == real


def test_the_real_root_agrees_with_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").touch()
    (tmp_path / "c").symlink_to("c")
    tree = Tree({"root": "/"})
    assert tree.resolve(f"{tmp_path}/a") == os.path.realpath(tmp_path / "b")
    assert tree.resolve(f"{tmp_path}/c") is None
    assert tree.resolve(f"{tmp_path}/d") is None


def test_too_long_a_chain_leads_nowhere(build_root: BuildRoot) -> None:
    tree = Tree({"root": build_root(None, {**{f"/{number}": f"-> {number + 1}" for number in range(60)}, "/60": "x"})})
    assert tree.resolve("/0") is None
    assert tree.resolve("/30") == "/60"


def test_folders_that_are_not_there_are_certainly_empty(build_root: BuildRoot) -> None:
    tree = Tree({"root": build_root(None, TREE_LINKS)})
    assert tree.folder_names("/lib/real") == (["file"], True)
    for path in ("/none", "/absolute", "/loop", "/gone"):
        assert tree.folder_names(path) == ([], True)


def test_folders_that_cannot_be_read_are_not(build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read any folder, so the system's answer is replaced."""

    def refused(path: str) -> list[str]:
        raise PermissionError(13, "refused", path)

    monkeypatch.setattr(os, "listdir", refused)
    assert Tree({"root": build_root(None, TREE_LINKS)}).folder_names("/lib/real") == ([], False)


def test_patterns(build_root: BuildRoot) -> None:
    files = {f"/usr/local/cuda-{number}/compat/x": "" for number in (11, 12)}
    more = {"/usr/local/cuda": "-> cuda-12", "/usr/local/cuda-0": "-> /gone"}
    tree = Tree({"root": build_root(None, {**TREE_LINKS, **files, **more})})
    assert tree.expand("/usr/local/cuda*") == ["/usr/local/cuda", "/usr/local/cuda-11", "/usr/local/cuda-12"]
    assert tree.expand("/usr/local/cuda*/compat/*") == [
        "/usr/local/cuda/compat/x", "/usr/local/cuda-11/compat/x", "/usr/local/cuda-12/compat/x",
    ]  # fmt: skip
    assert tree.expand("/lib/real/file") == ["/lib/real/file"]
    assert tree.expand("/lib/none") == []


def test_patterns_match_so_many_and_no_more(build_root: BuildRoot) -> None:
    tree = Tree({"root": build_root(None, {f"/many/{number:05}": "" for number in range(300)})})
    assert len(tree.expand("/many/*")) == 256


def test_files(build_root: BuildRoot) -> None:
    root = build_root(None, TREE_LINKS)
    os.mkfifo(f"{root}/pipe")
    tree = Tree({"root": root})
    answers = {path: tree.is_file(path) for path in ("/absolute", "/lib", "/loop", "/pipe", "/none")}
    assert answers == {"/absolute": True, "/lib": False, "/loop": False, "/pipe": False, "/none": False}
