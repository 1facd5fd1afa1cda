"""Symbolic links and patterns below a root that stands for a machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.kit.links import expand, folder_names, is_file, resolve

BuildRoot = Callable[..., str]

TREE = {
    "/usr/lib/real/file": "x",
    "/lib": "-> usr/lib",
    "/absolute": "-> /usr/lib/real/file",
    "/above": "-> ../../../../usr/lib/real",
    "/chain": "-> absolute",
    "/loop": "-> loop2",
    "/loop2": "-> /loop",
    "/gone": "-> /nowhere/at/all",
    "/outside": "-> /etc/passwd",
}


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/lib/real/file", "/usr/lib/real/file"),
        ("/absolute", "/usr/lib/real/file"),
        ("/chain", "/usr/lib/real/file"),
        ("/above/file", "/usr/lib/real/file"),
        ("/lib/../lib/./real//file", "/usr/lib/real/file"),
        ("/", "/"),
        ("/loop", None),
        ("/gone", None),
        ("/outside", None),
        ("/usr/lib/none", None),
    ],
)
def test_links_count_from_the_root(build_root: BuildRoot, path: str, real: str | None) -> None:
    assert resolve({"root": build_root(None, TREE)}, path) == real


def test_the_real_root_agrees_with_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").touch()
    (tmp_path / "c").symlink_to("c")
    request = {"root": "/"}
    assert resolve(request, f"{tmp_path}/a") == os.path.realpath(tmp_path / "b")
    assert resolve(request, f"{tmp_path}/c") is None
    assert resolve(request, f"{tmp_path}/d") is None


def test_too_long_a_chain_leads_nowhere(build_root: BuildRoot) -> None:
    links = {f"/{number}": f"-> {number + 1}" for number in range(60)}
    request = {"root": build_root(None, {**links, "/60": "x"})}
    assert resolve(request, "/0") is None
    assert resolve(request, "/30") == "/60"


def test_folders_that_are_not_there_are_certainly_empty(build_root: BuildRoot) -> None:
    request = {"root": build_root(None, TREE)}
    assert folder_names(request, "/lib/real") == (["file"], True)
    for path in ("/none", "/absolute", "/loop", "/gone"):
        assert folder_names(request, path) == ([], True)


def test_folders_that_cannot_be_read_are_not(build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read any folder, so the system's answer is replaced."""

    def refused(path: str) -> list[str]:
        raise PermissionError(13, "refused", path)

    monkeypatch.setattr(os, "listdir", refused)
    assert folder_names({"root": build_root(None, TREE)}, "/lib/real") == ([], False)


def test_patterns(build_root: BuildRoot) -> None:
    files = {f"/usr/local/cuda-{number}/compat/x": "" for number in (11, 12)}
    request = {
        "root": build_root(None, {**TREE, **files, "/usr/local/cuda": "-> cuda-12", "/usr/local/cuda-0": "-> /gone"})
    }
    assert expand(request, "/usr/local/cuda*") == ["/usr/local/cuda", "/usr/local/cuda-11", "/usr/local/cuda-12"]
    assert expand(request, "/usr/local/cuda*/compat/*") == [
        "/usr/local/cuda/compat/x",
        "/usr/local/cuda-11/compat/x",
        "/usr/local/cuda-12/compat/x",
    ]
    assert expand(request, "/lib/real/file") == ["/lib/real/file"]
    assert expand(request, "/lib/none") == []


def test_patterns_match_so_many_and_no_more(build_root: BuildRoot) -> None:
    request = {"root": build_root(None, {f"/many/{number:05}": "" for number in range(300)})}
    assert len(expand(request, "/many/*")) == 256


def test_files(build_root: BuildRoot) -> None:
    root = build_root(None, TREE)
    os.mkfifo(f"{root}/pipe")
    answers = {path: is_file({"root": root}, path) for path in ("/absolute", "/lib", "/loop", "/pipe", "/none")}
    assert answers == {"/absolute": True, "/lib": False, "/loop": False, "/pipe": False, "/none": False}
