"""A configuration that was found counts only where nobody but the user and root can have written it."""

import grp
import json
import os
import pwd
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.bounded import read_found
from envcheck.config.find import find
from envcheck.errors import UsageError
from tests.cli.calling import envcheck
from tests.every import cases

FITS = ("--assume", "gpu==H100,driver==550.54.14,os==linux")
FAILS = ("--assume", "gpu==B200,driver==515.43.04,os==linux")
NOBODY = 65534
IGNORE = """\
output = ["json:precious"]
[[ignore]]
problem = "gpu-unsupported-by-driver"
reason = "so that it passes"
until = 2099-01-01
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def shared(tmp_path: Path, text: str = 'fail-on = "warn"\n', name: str = "envcheck.toml") -> Path:
    place = tmp_path / "shared"
    (place / "work").mkdir(parents=True)
    (place / name).write_text(text)
    return place


def refusal(place: Path) -> str:
    try:
        find(str(place / "work"))
    except UsageError as error:
        return str(error)
    return ""


def of_another(place: Path) -> None:
    os.chown(place / "envcheck.toml", NOBODY, NOBODY)


def folder_of_another(place: Path) -> None:
    os.chown(place, NOBODY, NOBODY)


def link_to_another(place: Path) -> None:
    (place / "envcheck.toml").rename(place / "work" / "real.toml")
    os.chown(place / "work" / "real.toml", NOBODY, NOBODY)
    (place / "envcheck.toml").symlink_to("work/real.toml")


def through_a_folder_for_all(place: Path) -> None:
    """My own file at the end, but somebody else can put any other file of mine in its place."""
    (place / "envcheck.toml").rename(place / "work" / "real.toml")
    (place / "work" / "link.toml").symlink_to("real.toml")
    (place / "work").chmod(0o777)
    (place / "envcheck.toml").symlink_to("work/link.toml")


OTHERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "writable for all": (lambda place: (place / "envcheck.toml").chmod(0o646), "other users can write it"),
    "folder for all": (lambda place: place.chmod(0o777), "other users can write its folder"),
    "sticky folder": (lambda place: place.chmod(0o1777), "other users can write its folder"),
    "link through a folder for all": (through_a_folder_for_all, "other users can write its folder"),
}
ANOTHER: dict[str, tuple[Callable[[Path], object], str]] = {
    "file of another": (of_another, f"it belongs to another user (uid {NOBODY})"),
    "folder of another": (folder_of_another, f"shared belongs to another user (uid {NOBODY})"),
    "link to a file of another": (link_to_another, f"it belongs to another user (uid {NOBODY})"),
}


@cases("kind", *OTHERS, *(pytest.param(kind, marks=as_root) for kind in ANOTHER))
def test_what_others_can_have_written_must_be_named(kind: str, tmp_path: Path) -> None:
    place = shared(tmp_path)
    assert refusal(place) == ""
    make, words = (OTHERS | ANOTHER)[kind]
    make(place)
    told = refusal(place)
    assert told.startswith(f"{place}/envcheck.toml is used only if you name it, because ")
    assert words in told
    assert f"--config {place}/envcheck.toml" in told
    assert "--no-config" in told


@cases("name", "envcheck.toml", "pyproject.toml")
def test_a_check_stops_and_goes_on_once_it_is_named(name: str, tmp_path: Path) -> None:
    head, inside = ("[tool.envcheck]\n", "tool.envcheck.") if name == "pyproject.toml" else ("", "")
    place = shared(tmp_path, head + IGNORE.replace("[[ignore]]", f"[[{inside}ignore]]"), name)
    (place / "precious").write_text("mine")
    (place / name).chmod(0o666)
    for verb in (("check", *FAILS), ("bench", "--list"), ("config",)):
        stopped = envcheck(*verb, cwd=place / "work")
        assert (stopped.status, stopped.out, stopped.err.count("\n")) == (2, "", 1), verb
        assert f"--config {place}/{name}" in stopped.err
    assert (place / "precious").read_text() == "mine"
    assert envcheck("check", *FAILS, "--no-config", cwd=place / "work").status == 1
    named = envcheck("check", *FAILS, "--json", cwd=place / "work", ENVCHECK_CONFIG=f"../{name}")
    ignored = [check["ignored"]["reason"] for check in json.loads(named.out)["checks"] if check.get("ignored")]
    assert ignored == ["so that it passes"]


def test_another_tools_file_of_others_is_none(tmp_path: Path) -> None:
    place = shared(tmp_path, "[tool.other]\nenvcheck = 1\n", "pyproject.toml")
    place.chmod(0o777)
    assert refusal(place) == ""


def test_init_writes_below_a_configuration_of_others(tmp_path: Path) -> None:
    place = shared(tmp_path)
    place.chmod(0o777)
    assert envcheck("init", cwd=place / "work").status == 0
    assert find(str(place / "work")) is not None


def group_of(monkeypatch: pytest.MonkeyPatch, name: str, *members: str, primary: tuple[str, ...] = ()) -> None:
    """A group that all files belong to, and who is in it."""
    me = pwd.getpwuid(os.geteuid())
    number = os.getegid()
    people = [pwd.struct_passwd((each, "x", 4000 + at, number, "", "/", "")) for at, each in enumerate(primary)]
    monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group((name, "x", number, list(members))))
    monkeypatch.setattr(pwd, "getpwall", lambda: [pwd.struct_passwd((*me[:3], number, *me[4:])), *people])


def test_a_private_group_is_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    place = shared(tmp_path)
    place.chmod(0o775)
    (place / "envcheck.toml").chmod(0o664)
    group_of(monkeypatch, me)
    assert refusal(place) == ""
    group_of(monkeypatch, me, me, "root")
    assert refusal(place) == ""
    for name, members, primary in ((me, ("mallory",), ()), (me, (), ("mallory",)), ("users", (), ())):
        group_of(monkeypatch, name, *members, primary=primary)
        assert "other users can write" in refusal(place), (name, members, primary)
    monkeypatch.setattr(grp, "getgrgid", lambda number: {}[number])
    assert "other users can write" in refusal(place)


def test_an_access_list_is_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bits of the group then stand for all who are on the list."""
    group_of(monkeypatch, pwd.getpwuid(os.geteuid()).pw_name)
    place = shared(tmp_path)
    entries = ((1, 6, -1), (2, 6, NOBODY), (4, 4, -1), (16, 6, -1), (32, 4, -1))
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(place / "envcheck.toml", "system.posix_acl_access", listed)
    except OSError:
        pytest.skip("this file system has no access lists")
    assert (place / "envcheck.toml").stat().st_mode & 0o777 == 0o664
    assert "other users can write it" in refusal(place)


def test_what_is_judged_is_what_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file gives way to another one the moment after it was opened: its content and its owner stay together."""
    place = shared(tmp_path, "mine")
    path = str(place / "envcheck.toml")
    true = os.fstat

    def swapped(descriptor: int) -> os.stat_result:
        found = true(descriptor)
        (place / "other").write_text("theirs")
        (place / "other").chmod(0o666)
        (place / "other").replace(path)
        return found

    monkeypatch.setattr(os, "fstat", swapped)
    content, doubt = read_found(path, 100)
    assert (content, bool(doubt)) in ((b"mine", False), (b"theirs", True))


def test_rows_that_others_can_have_written_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "envcheck" / "matrix"
    folder.mkdir(parents=True)
    (folder / "rows.toml").write_text("[sources]\n")
    question = ("matrix", "check", "torch==2.5.1", "cuda==12.4")
    assert envcheck(*question, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).err == ""
    (folder / "rows.toml").chmod(0o666)
    told = envcheck(*question, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).err
    assert told.startswith(f"envcheck: rows in {folder} are left out, because of rows.toml: other users can write it")
    assert envcheck(*question, "--matrix", str(folder), cwd=tmp_path).err == ""
    (folder / "rows.toml").chmod(0o644)
    lines = folder / "generated" / "pypi.jsonl"
    lines.parent.mkdir()
    lines.write_text("")
    assert envcheck(*question, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).err == ""
    lines.chmod(0o666)
    told = envcheck(*question, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).err
    assert "are left out, because of generated/pypi.jsonl: other users can write it" in told
