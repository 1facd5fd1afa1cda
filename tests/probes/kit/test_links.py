"""Symbolic links and patterns below a root that stands for a machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.kit.tree import Tree

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
    assert Tree({"root": build_root(None, TREE)}).resolve(path) == real


def test_the_real_root_agrees_with_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").touch()
    (tmp_path / "c").symlink_to("c")
    tree = Tree({"root": "/"})
    assert tree.resolve(f"{tmp_path}/a") == os.path.realpath(tmp_path / "b")
    assert tree.resolve(f"{tmp_path}/c") is None
    assert tree.resolve(f"{tmp_path}/d") is None


def test_too_long_a_chain_leads_nowhere(build_root: BuildRoot) -> None:
    links = {f"/{number}": f"-> {number + 1}" for number in range(60)}
    tree = Tree({"root": build_root(None, {**links, "/60": "x"})})
    assert tree.resolve("/0") is None
    assert tree.resolve("/30") == "/60"


def test_folders_that_are_not_there_are_certainly_empty(build_root: BuildRoot) -> None:
    tree = Tree({"root": build_root(None, TREE)})
    assert tree.folder_names("/lib/real") == (["file"], True)
    for path in ("/none", "/absolute", "/loop", "/gone"):
        assert tree.folder_names(path) == ([], True)


def test_folders_that_cannot_be_read_are_not(build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read any folder, so the system's answer is replaced."""

    def refused(path: str) -> list[str]:
        raise PermissionError(13, "refused", path)

    monkeypatch.setattr(os, "listdir", refused)
    assert Tree({"root": build_root(None, TREE)}).folder_names("/lib/real") == ([], False)


def test_patterns(build_root: BuildRoot) -> None:
    files = {f"/usr/local/cuda-{number}/compat/x": "" for number in (11, 12)}
    more = {"/usr/local/cuda": "-> cuda-12", "/usr/local/cuda-0": "-> /gone"}
    tree = Tree({"root": build_root(None, {**TREE, **files, **more})})
    assert tree.expand("/usr/local/cuda*") == ["/usr/local/cuda", "/usr/local/cuda-11", "/usr/local/cuda-12"]
    assert tree.expand("/usr/local/cuda*/compat/*") == [
        "/usr/local/cuda/compat/x",
        "/usr/local/cuda-11/compat/x",
        "/usr/local/cuda-12/compat/x",
    ]
    assert tree.expand("/lib/real/file") == ["/lib/real/file"]
    assert tree.expand("/lib/none") == []


def test_patterns_match_so_many_and_no_more(build_root: BuildRoot) -> None:
    tree = Tree({"root": build_root(None, {f"/many/{number:05}": "" for number in range(300)})})
    assert len(tree.expand("/many/*")) == 256


def test_files(build_root: BuildRoot) -> None:
    root = build_root(None, TREE)
    os.mkfifo(f"{root}/pipe")
    tree = Tree({"root": root})
    answers = {path: tree.is_file(path) for path in ("/absolute", "/lib", "/loop", "/pipe", "/none")}
    assert answers == {"/absolute": True, "/lib": False, "/loop": False, "/pipe": False, "/none": False}
