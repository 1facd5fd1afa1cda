"""Where programs may write, of constructed trees and file systems."""

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from envcheck.collect.protocol import decode_fact
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import FolderAccess, VariablePath, Variables
from probes.common.tree import Tree
from probes.common.variable_names import matters
from probes.machine.places import places
from tests.every import cases
from tests.known import known
from tests.probes.conftest import BuildRoot, RunProbe

PASSWD = f"ada:x:{os.getuid()}:{os.getgid()}::/home/ada:/bin/sh\n"


def look(run_probe: RunProbe, root: str, **variables: str) -> Variables:
    snapshot, done = run_probe("variables", {"variables": variables, "root": root})
    assert done["status"] == "ok"
    assert snapshot.variables
    return snapshot.variables


def test_home_is_that_of_the_passwd_file_without_a_variable(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(None, {"/etc/passwd": PASSWD, "/home/ada/": "", "/tmp/": ""})
    found = look(run_probe, root)
    assert (found.home, found.temporary, found.user_known) == ("/home/ada", "/tmp", True)
    assert look(run_probe, root, HOME="/x").home == "/x"
    assert look(run_probe, root, HOME="").home == "/", "as Python expands ~"


def test_a_user_without_a_name_has_no_home(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(None, {"/etc/passwd": "", "/tmp/": ""})
    assert (look(run_probe, root).home, look(run_probe, root).user_known) == ("", False)
    assert look(run_probe, root, USER="ada").user_known is True


def test_what_is_in_the_place_of_a_folder(run_probe: RunProbe, build_root: BuildRoot) -> None:
    files = {"/etc/passwd": PASSWD, "/home/ada/": "", "/home/ada/.triton": "", "/tmp/": "", "/lost": "-> /gone"}
    found = look(run_probe, build_root(None, files), CUDA_CACHE_PATH="/lost", TRITON_CACHE_DIR="/home/ada/.triton/c")
    assert {place.path: place.obstacle for place in found.places or () if place.obstacle} == {
        "/lost": "a link that leads nowhere is in its place",
        "/home/ada/.triton/c": "/home/ada/.triton is not a folder",
    }


def test_a_temporary_folder_is_the_first_that_is_one(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(None, {"/etc/passwd": PASSWD, "/tmp/": "", "/scratch/": ""})
    assert look(run_probe, root, TMPDIR="/gone", TEMP="/scratch").temporary == "/scratch"
    assert look(run_probe, root, TMPDIR="/gone").temporary == "/tmp"


USED_UP = "the quota of this user, or of its group, on its file system is used up"
FULL = SimpleNamespace(f_flag=0, f_bavail=1, f_frsize=4096, f_files=100, f_favail=2)
ROOMY = SimpleNamespace(f_flag=0, f_bavail=1 << 40, f_frsize=4096, f_files=0, f_favail=0)


def listed(tmp_path: Path, **variables: str) -> dict[str, dict[str, Any]]:
    """By the real root, where only home and what is in it is made up."""
    tree = Tree({"variables": {"HOME": str(tmp_path), **variables}, "cwd": "/"})
    return {each.pop("path"): each for each in places(tree, ())["places"]}


def test_space_and_flags_of_a_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: FULL)
    assert listed(tmp_path)[str(tmp_path)] == {"free": 4096, "free_files": 2}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**{**vars(ROOMY), "f_flag": os.ST_NOEXEC}))
    assert listed(tmp_path)[str(tmp_path)] == {"noexec": True}


QUOTA = SimpleNamespace(user=[0] * 8, group=[0] * 8)
KIB, MIB = 1 << 10, 1 << 20


def answer_quota(_number: int, _folder: int, command: Any, _owner: int, answer: Any) -> int:
    limits = QUOTA.group if command.value & 1 else QUOTA.user
    answer[:8] = limits
    return 0


@cases(
    "user, group, expected",
    ([2048, 1024, 0, 50, 40, 0, 0, 0], [0] * 8, {"free": 2 * MIB, "free_files": 50}),
    ([0] * 8, [2048, 0, 512 * KIB, 0, 0, 3, 0, 0], {"free": 1536 * KIB}),
    ([2048, 0, 1500 * KIB, 0, 0, 0, 0, 0], [0] * 8, {"free": 548 * KIB, "obstacle": USED_UP}),
    ([0, 0, 0, 50, 0, 50, 0, 0], [0] * 8, {"free_files": 0, "obstacle": USED_UP}),
    ([9 * MIB, 10, 20 * KIB, 0, 0, 1, 1, 0], [0] * 8, {"free": 0, "free_files": 0, "obstacle": USED_UP}),
    ([9 * MIB, 10, 20 * KIB, 0, 0, 1, 1 << 40, 0], [0] * 8, {}),
    ids=["soft", "group", "bytes", "files", "over", "within"],
)
def test_quotas_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: list[int], group: list[int], expected: dict[str, Any]
) -> None:
    """Numbers as a kernel answered them for an ext4 with quotas (Linux 6.1)."""
    monkeypatch.setattr(os, "statvfs", lambda _: ROOMY)
    monkeypatch.setattr(QUOTA, "user", user)
    monkeypatch.setattr(QUOTA, "group", group)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(syscall=answer_quota))
    real = Tree.read_text
    mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw,quota,usrquota,grpquota\n"
    monkeypatch.setattr(Tree, "read_text", lambda *args: mounts if "mountinfo" in args[1] else real(*args))
    assert listed(tmp_path)[str(tmp_path)] == expected
    mounts = "22 1 8:1 / / rw - xfs /dev/sda1 rw,noquota\n"
    assert listed(tmp_path)[str(tmp_path)] == {}, "nothing is asked where no file system has quotas"


def test_only_what_differs_from_the_folder_above_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".triton" / "cache").mkdir(parents=True)
    (tmp_path / ".nv").mkdir()
    (tmp_path / "data").mkdir()
    roots = str(tmp_path / ".triton" / "cache")
    monkeypatch.setattr(os, "statvfs", lambda _: ROOMY)
    monkeypatch.setattr(os, "access", lambda path, _mode: path != roots)
    found = {path: each for path, each in listed(tmp_path).items() if path.startswith(str(tmp_path))}
    assert found == {
        str(tmp_path): {}, str(tmp_path / ".cache"): {}, roots: {"obstacle": f"this user may not write in {roots}"},
    }  # fmt: skip
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**{**vars(ROOMY), "f_flag": os.ST_RDONLY}))
    assert listed(tmp_path)[roots] == {"obstacle": "its file system is read-only"}


@cases("home, caches", ("", ""), ("/", ""), ("{tmp}/", "{tmp}/.cache/"), ("{tmp}", "relative"), ("~", "/gone//x/"))
def test_every_way_to_write_a_folder_is_looked_at(tmp_path: Path, home: str, caches: str) -> None:
    (tmp_path / ".cache" / "torch").mkdir(parents=True)
    named = {"HOME": home.replace("{tmp}", str(tmp_path)), "XDG_CACHE_HOME": caches.replace("{tmp}", str(tmp_path))}
    assert [place for place in listed(tmp_path, **named) if not place.startswith("/")] == []


def test_variables_of_caches_are_reported() -> None:
    names = {name for row in load_matrix().caches for name in row.variables} | {"TMPDIR", "XDG_CACHE_HOME"}
    assert {name for name in names if not matters(name)} == set()


def test_a_place_that_is_named_by_a_secret_is_not_shown() -> None:
    found = Variables(
        source="x", values={"CUDA_PASSWORD": "/s3cret"}, places=(FolderAccess(path="/s3cret"), FolderAccess(path="/h")),
        paths=(VariablePath(path="/s3cret", leads_to="nothing"),),
    )  # fmt: skip
    shown = decode_fact(msgspec.Raw(msgspec.json.encode({"variables": found}))).variables
    assert [place.path for place in known(shown).places or ()] == ["/h"]
