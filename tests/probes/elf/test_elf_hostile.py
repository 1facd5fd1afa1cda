"""ELF files that are cut short, lie about sizes or go in circles: constructed for the test, or real ones damaged."""

import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from probes.files.elf import library as dynamic
from probes.files.elf import tables
from probes.files.elf.library import Elf, ElfError
from tests.every import cases
from tests.probes.elf.elf_damage import Change, changes, counted_reads, damaged
from tests.probes.tiny_elf import BASE, HEADER, library
from tests.thorough import examples

FILES = Path(__file__).parents[1] / "elf_files"
REAL = {
    name: (FILES / name).read_bytes()
    for name in ("new.so", "old.so", "aarch64.so", "x86.so", "s390x.so", "powerpc.so", "program", "linkable.o")
}
ASKED = ["soname", "needed", "rpath", "runpath", "no_default_lib", "version_needs", "version_definitions", "sections"]


def ask(path: Path) -> dict[str, Any]:
    """All that an ELF file says; ElfError as its text where it says nothing."""
    said: dict[str, Any] = {}
    try:
        with Elf(os.fspath(path)) as elf:
            for name in ASKED:
                try:
                    said[name] = getattr(elf, name)
                except ElfError as error:
                    said[name] = str(error)
    except ElfError as error:
        said["open"] = str(error)
    return said


def refusal(path: Path) -> str:
    with pytest.raises(ElfError) as caught:
        Elf(os.fspath(path))
    text = str(caught.value)
    assert "\n" not in text
    assert text
    return text


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(REAL)), drawn=changes)
@example(name="new.so", drawn=[])
def test_damage_costs_little_and_breaks_nothing(tmp_path: Path, name: str, drawn: list[Change]) -> None:
    path = tmp_path / "damaged"
    data = damaged(REAL[name], drawn)
    path.write_bytes(data)
    with counted_reads() as cost:
        ask(path)
    assert cost.bytes < 64 * len(data) + (1 << 20)
    assert cost.reads < 200_000


@pytest.mark.parametrize("name", sorted(REAL))
def test_every_length(tmp_path: Path, name: str) -> None:
    path = tmp_path / "cut"
    for length in range(0, len(REAL[name]), 41):
        path.write_bytes(REAL[name][:length])
        ask(path)


@cases("data", b"", b"\x7f", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(9), b"text" * 100, b"MZ")
def test_no_elf_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    refusal(path)


# --- what is no file ------------------------------------------------------------------------------------------------
def test_a_pipe_does_not_hold_it_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    assert refusal(tmp_path / "link") == refusal(tmp_path / "pipe") == "it is not a regular file"


def test_devices_folders_and_sockets_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)
        listening.bind("socket")
        monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
        assert {refusal(tmp_path / name) for name in ("zero", "socket", ".")} == {"it is not a regular file"}


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "nothing") == "it cannot be read: No such file or directory"
    assert refusal(tmp_path / "loop").startswith("it cannot be read: ")
    assert refusal(tmp_path / ("long" * 2000)).startswith("it cannot be read: ")
    with pytest.raises(ElfError):
        Elf("nul\0inside")
    with pytest.raises(ElfError):
        Elf("\ud800")


def test_a_file_that_shrinks_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(Path(sys.executable).read_bytes())
    with Elf(os.fspath(path)) as elf:
        os.truncate(path, 100)
        with pytest.raises(ElfError, match="beyond the end"):
            _ = elf.needed
        with pytest.raises(ElfError, match="beyond the end"):
            _ = elf.sections


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no procfs")
def test_a_file_that_cannot_be_read_is_told() -> None:
    """At offset 0 of a process's memory nothing is mapped: a read fails though opening succeeds."""
    assert refusal(Path("/proc/self/mem"))


# --- built for the purpose ------------------------------------------------------------------------------------------
def test_a_later_entry_replaces_an_earlier_one(tmp_path: Path) -> None:
    """As in the loader, which keeps one pointer for each tag."""
    names = b"\0one\0two\0"
    (tmp_path / "library").write_bytes(library([(14, 1), (14, 5), (5, BASE), (10, len(names))], names))
    assert ask(tmp_path / "library")["soname"] == "two"


def test_versions_in_a_circle(tmp_path: Path) -> None:
    """Each record says that the next one is itself, by a step over all 32 bits that cannot lead back."""
    names = b"\0lib.so\0V1\0".ljust(16, b"\0")
    need = struct.pack("<HHIII", 1, 0xFFFF, 1, 16, 0xFFFFFFF0)
    version = struct.pack("<IHHII", 0, 0, 0, 8, 0)
    entries = [(5, BASE), (10, 16), (dynamic.DT_VERNEED, BASE + 16), (dynamic.DT_VERNEEDNUM, 1 << 62)]
    (tmp_path / "circle").write_bytes(library(entries, names + need + version))
    with Elf(os.fspath(tmp_path / "circle")) as elf, pytest.raises(ElfError, match="beyond the end"):
        _ = elf.version_needs


def test_many_versions_are_cut_off(tmp_path: Path) -> None:
    names = b"\0lib.so\0V1\0".ljust(16, b"\0")
    need = struct.pack("<HHIII", 1, 1, 1, 16, 32) + struct.pack("<IHHII", 0, 0, 0, 8, 0)
    entries = [(5, BASE), (10, 16), (dynamic.DT_VERNEED, BASE + 16), (dynamic.DT_VERNEEDNUM, 1 << 62)]
    (tmp_path / "many").write_bytes(library(entries, names + need * 40_000))
    with counted_reads() as cost, Elf(os.fspath(tmp_path / "many")) as elf:
        assert elf.version_needs == {"lib.so": ("V1",)}
    assert cost.reads < 3 * dynamic.VERSION_LIMIT


def test_long_names_share_an_allowance(tmp_path: Path) -> None:
    table = ((b"x" * 60_000 + b"\0") * 2).ljust(150_000, b"\0")
    entries = [(1, index) for index in range(2_000)] + [(5, BASE), (10, len(table))]
    (tmp_path / "long").write_bytes(library(entries, table))
    with counted_reads() as cost:
        said = ask(tmp_path / "long")
    assert said["needed"] == "its names are longer than any real ones"
    assert cost.bytes < 8 * dynamic.STRINGS_LIMIT


@cases("entries, question, problem",
    ([(1, 5), (5, BASE), (10, 1 << 63)], "needed", "a name of its dynamic section does not end"),
    ([(1, 500), (5, BASE), (10, 16)], "needed", "outside the table of names"),
    ([(1, 1)], "needed", "outside the table of names"),
    ([(1, 1), (5, 1 << 63), (10, 16)], "needed", "points outside what is loaded"),
)  # fmt: skip
def test_entries_that_lead_nowhere(tmp_path: Path, entries: list[tuple[int, int]], question: str, problem: str) -> None:
    (tmp_path / "library").write_bytes(library(entries, b"\xff" * 64))
    assert problem in ask(tmp_path / "library")[question]


def test_a_huge_file_that_is_not_there(tmp_path: Path) -> None:
    """A sparse file of a terabyte whose tables claim all of it."""
    data = bytearray(REAL["new.so"])
    struct.pack_into("<Q", data, 40, 1 << 20)
    struct.pack_into("<HHH", data, 58, 64, 0, 0xFFFF)
    path = tmp_path / "sparse"
    path.write_bytes(data)
    os.truncate(path, 1 << 40)
    with path.open("r+b") as file:
        file.seek((1 << 20) + 32)
        file.write(struct.pack("<QI", 1 << 30, 1))
    with counted_reads() as cost:
        said = ask(path)
    assert "table of sections is damaged" in said["sections"]
    assert cost.bytes < 4 << 20


def test_many_sections_of_one_long_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "NAMES_LIMIT", 1 << 16)
    names = b"x" * 5000 + b"\0"
    section = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, len(names), 0, 0, 1, 0)
    head = HEADER.pack(b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, 64 + len(names), 0, 64, 0, 0, 64, 500, 0)
    (tmp_path / "object").write_bytes(head + names + section * 500)
    assert ask(tmp_path / "object")["sections"] == "its names are longer than any real ones"


def test_names_are_kept_as_bytes_that_can_be_opened(tmp_path: Path) -> None:
    table = b"\0lib\xff\x1b[31m.so\0"
    (tmp_path / "library").write_bytes(library([(1, 1), (5, BASE), (10, len(table))], table))
    with Elf(os.fspath(tmp_path / "library")) as elf:
        (name,) = elf.needed
    assert name.encode(sys.getfilesystemencoding(), "surrogateescape") == b"lib\xff\x1b[31m.so"
