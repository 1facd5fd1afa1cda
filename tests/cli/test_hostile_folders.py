"""Folders of rows and homes that cannot be read, or hold what no row is: one sentence, in time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.compat.load import overlay_folders
from tests.cli.calling import envcheck

QUESTION = ("matrix", "check", "torch==2.5.1", "cuda==12.4")
LONG = "/" + "x" * 5000
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def deep(path: Path) -> None:
    path.write_text("a = " + "[" * 3000 + "]" * 3000)


def dotted(path: Path) -> None:
    path.write_text(f"{'.'.join('a' * 100_000)} = 1\n")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "it is not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
    "folder": (Path.mkdir, "cannot be read: Is a directory"),
    "loop": (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "No such file or directory"),
    "deep": (deep, "nested too deeply"),
    "dotted": (dotted, "more than 50 dots"),
    "huge": (huge, "at most 8 MiB"),
    "binary": (lambda path: path.write_bytes(b"\xff\x00"), "cannot be read as TOML"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_holds_no_rows(kind: str, tmp_path: Path) -> None:
    make, words = FILES[kind]
    folder = tmp_path / "envcheck" / "matrix"
    folder.mkdir(parents=True)
    make(folder / "rows.toml")
    told = envcheck(*QUESTION, "--matrix", str(folder), cwd=tmp_path)
    assert (told.status, told.out) == (2, "")
    assert words in told.err
    assert told.err.count("\n") == 1
    assert len(told.err) < 1200
    assert words in envcheck(*QUESTION, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).err
    refreshed = envcheck(
        "matrix", "refresh", "--matrix", str(folder), "--index-url", "http://127.0.0.1:9/", cwd=tmp_path
    )
    assert (refreshed.status, refreshed.out, refreshed.err.count("\n")) == (2, "", 1)
    assert words in refreshed.err or "no permission to write" in refreshed.err


def test_a_folder_of_more_files_than_rows_have(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}.toml").touch()
    assert "at most 200 TOML files" in envcheck(*QUESTION, "--matrix", str(tmp_path), cwd=tmp_path).err


@pytest.mark.parametrize("named", [LONG, "/etc/passwd", "/etc/passwd/rows", "/nowhere"])
def test_a_folder_that_is_none(named: str, tmp_path: Path) -> None:
    told = envcheck(*QUESTION, "--matrix", named, cwd=tmp_path)
    assert (told.status, told.out) == (2, "")
    assert "folder" in told.err
    assert len(told.err) < 400


@pytest.mark.parametrize("home", [LONG, "/dev/null", "/etc/passwd", "relative", "/nowhere", "/"])
@pytest.mark.parametrize("name", ["HOME", "XDG_CONFIG_HOME"])
def test_a_home_that_is_none_is_no_obstacle(name: str, home: str, tmp_path: Path) -> None:
    told = envcheck(*QUESTION, cwd=tmp_path, **{name: home})
    assert (told.status, told.err) == (0, "")


def test_a_check_with_an_overlong_home(tmp_path: Path) -> None:
    told = envcheck("check", "--json", cwd=tmp_path, HOME=LONG, XDG_CONFIG_HOME=LONG, VIRTUAL_ENV=LONG)
    assert told.status in (0, 1, 3), told.err


@as_root
@pytest.mark.parametrize("closed", [".", ".config", ".config/envcheck", ".config/envcheck/matrix"])
def test_a_configuration_folder_of_somebody_else_is_said(closed: str, tmp_path: Path) -> None:
    """Another user's HOME: in a container with ``--user`` it is often root's."""
    home = tmp_path / "home"
    place = home / ".config" / "envcheck" / "matrix"
    place.mkdir(parents=True)
    (place / "rows.toml").touch()
    (home / closed).chmod(0o700)
    unread: list[str] = []
    os.seteuid(NOBODY)
    try:
        assert overlay_folders(None, {"HOME": str(home)}, unread.append) == ()
    finally:
        os.seteuid(0)
    assert unread == [f"{place} cannot be read (Permission denied): rows in it are left out"]


def test_a_configuration_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "envcheck").mkdir()
    (tmp_path / "envcheck" / "matrix").touch()
    told = envcheck(*QUESTION, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    assert told.status == 0
    reason = f"{tmp_path}/envcheck/matrix cannot be read (Not a directory): rows in it are left out"
    assert reason in told.err
    (tmp_path / "text").write_text("CUDA error: out of memory\n")
    explained = envcheck("explain", "text", "--format", "json", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    assert json.loads(explained.out)["overlays_unread"] == [reason]


def test_an_echo_is_at_most_a_line(tmp_path: Path) -> None:
    for arguments in ((LONG,), ("check", f"--{LONG}"), ("check", "--format", LONG), ("matrix", "check", LONG)):
        told = envcheck(*arguments, cwd=tmp_path)
        assert (told.status, told.err.count("\n")) == (2, 1)
        assert len(told.err) < 500
