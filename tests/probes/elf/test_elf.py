"""The reader of ELF files against pyelftools, on small files of several machines and on the libraries of this one."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection

from probes.files.elf.library import Elf, ElfError
from probes.files.elf.tables import ET_DYN, ET_EXEC
from tests.every import cases

FILES = Path(__file__).parents[1] / "elf_files"
WITH_SECTIONS = ["new.so", "linked.so", "aarch64.so", "x86.so", "s390x.so", "powerpc.so", "program"]
HOST = [*WITH_SECTIONS, "old.so"]


def some_of_this_machine() -> list[Path]:
    """The interpreter, its extension modules, and what lies beside the C library."""
    modules = sorted(Path(sysconfig.get_path("platstdlib"), "lib-dynload").glob("*.so"))[:10]
    system = [*Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64")]
    libraries = [path for folder in system for path in sorted(folder.glob("lib[a-m]*.so.*"))]
    small = [path for path in libraries if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20]
    return [Path(sys.executable).resolve(), *modules, *small[:20]]


class Oracle:
    """What pyelftools says, in the shapes of ``Elf``."""

    def __init__(self, file: BinaryIO) -> None:
        self.elf = ELFFile(file)
        self.segment = next((one for one in self.elf.iter_segments() if isinstance(one, DynamicSegment)), None)

    def tags(self, name: str) -> list[Any]:
        return [] if self.segment is None else [tag for tag in self.segment.iter_tags() if tag.entry.d_tag == name]

    def folders(self, name: str) -> tuple[str, ...]:
        return tuple(folder for tag in self.tags(name) for folder in getattr(tag, name[3:].lower()).split(":"))

    def versions_needed(self) -> dict[str, tuple[str, ...]]:
        sections = [one for one in self.elf.iter_sections() if isinstance(one, GNUVerNeedSection)]
        return {
            str(need.name): tuple(version.name for version in versions)
            for section in sections
            for need, versions in section.iter_versions()
        }

    def versions_defined(self) -> tuple[str, ...]:
        sections = [one for one in self.elf.iter_sections() if isinstance(one, GNUVerDefSection)]
        return tuple(
            next(iter(names)).name
            for section in sections
            for definition, names in section.iter_versions()
            if not definition["vd_flags"] & 1
        )


def assert_same_dynamic_section(elf: Elf, said: Oracle) -> None:
    assert elf.needed == tuple(tag.needed for tag in said.tags("DT_NEEDED"))
    assert elf.soname == next((tag.soname for tag in said.tags("DT_SONAME")), None)
    assert (elf.rpath, elf.runpath) == (said.folders("DT_RPATH"), said.folders("DT_RUNPATH"))
    assert elf.no_default_lib == any(tag.entry.d_val & 0x800 for tag in said.tags("DT_FLAGS_1"))


def assert_same(path: Path) -> None:
    with path.open("rb") as file, Elf(os.fspath(path)) as elf:
        said = Oracle(file)
        assert (elf.bits, elf.size) == (said.elf.elfclass, path.stat().st_size)
        assert [section.name for section in elf.section_list] == [section.name for section in said.elf.iter_sections()]
        assert elf.sections == {
            section.name: (section["sh_offset"], 0 if section["sh_type"] == "SHT_NOBITS" else section["sh_size"])
            for section in reversed(list(said.elf.iter_sections()))
        }
        assert (elf.version_needs, elf.version_definitions) == (said.versions_needed(), said.versions_defined())
        assert_same_dynamic_section(elf, said)


@pytest.mark.parametrize("name", WITH_SECTIONS)
def test_small_files(name: str) -> None:
    assert_same(FILES / name)


@pytest.mark.parametrize("path", some_of_this_machine(), ids=lambda path: path.name)
def test_libraries_of_this_machine(path: Path) -> None:
    assert_same(path)


def test_a_library_without_sections() -> None:
    """Its versions are not asked of pyelftools, which finds them by sections only."""
    with (FILES / "old.so").open("rb") as file, Elf(os.fspath(FILES / "old.so")) as elf:
        assert elf.sections == {}
        assert_same_dynamic_section(elf, Oracle(file))
        assert elf.version_needs == {"libm.so.6": ("GLIBC_2.2.5",), "libc.so.6": ("GLIBC_2.2.5",)}
        assert elf.version_definitions == ("DEMO_1.0", "DEMO_2.0")


def test_what_a_library_says() -> None:
    with Elf(os.fspath(FILES / "new.so")) as elf:
        assert (elf.bits, elf.machine, elf.header.type, elf.soname) == (64, "x86_64", ET_DYN, "libdemo.so.1")
        assert elf.needed == ("libm.so.6", "libc.so.6")
        assert (elf.rpath, elf.runpath, elf.no_default_lib) == ((), ("$ORIGIN/../lib", "/opt/demo"), True)
        assert elf.version_needs["libc.so.6"] == ("GLIBC_2.2.5",)


def test_rpath_and_runpath_are_told_apart() -> None:
    with Elf(os.fspath(FILES / "old.so")) as elf:
        assert (elf.rpath, elf.runpath, elf.no_default_lib) == (("/opt/old", "$ORIGIN"), (), False)


@cases("name, expected",
    ("new.so", (64, "x86_64", ET_DYN)), ("aarch64.so", (64, "aarch64", ET_DYN)), ("x86.so", (32, "i386", ET_DYN)),
    ("s390x.so", (64, "s390", ET_DYN)), ("powerpc.so", (32, "ppc", ET_DYN)), ("program", (64, "x86_64", ET_DYN)),
    ("library.o", (64, "x86_64", 1)), ("sm_80-cuda-13.0.cubin", (64, "cuda", ET_EXEC)),
)  # fmt: skip
def test_machines_and_kinds(name: str, expected: tuple[int, str, int]) -> None:
    with Elf(os.fspath(FILES / name)) as elf:
        assert (elf.bits, elf.machine, elf.header.type) == expected


def test_the_c_library_is_a_library_though_it_can_be_started() -> None:
    with Elf(sys.executable) as elf:
        needs_c = "libc.so.6" in elf.needed
    found = next(Path("/").glob("lib*/*/libc.so.6"), None) or next(Path("/").glob("lib*/libc.so.6"), None)
    if not (needs_c and found):
        pytest.skip("no GNU C library here")
    with Elf(os.fspath(found)) as elf:
        assert (elf.header.type, elf.soname) == (ET_DYN, "libc.so.6")
        assert "GLIBC_2.2.5" in elf.version_definitions


def test_more_sections_than_the_header_can_count(tmp_path: Path) -> None:
    assembler = shutil.which("as")
    if assembler is None:
        pytest.skip("no assembler")
    source = "".join(f".section .s{number}\n.byte 1\n" for number in range(65_300))
    made = tmp_path / "many.o"
    subprocess.run([assembler, "-o", made, "-"], input=source, text=True, check=True)
    with Elf(os.fspath(made)) as elf, made.open("rb") as file:
        assert elf.header.sections[2] == 0
        assert len(elf.section_list) == ELFFile(file).num_sections() > 65_300
        assert elf.sections[".s65299"][1] == 1


def test_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with Elf(os.fspath(FILES / "library.o")) as elf:
        assert len(elf.read(0, 1 << 62)) == elf.size
        monkeypatch.setattr("probes.files.elf.tables.READ_LIMIT", 10)
        assert len(elf.read(0, 1 << 62)) == 10
        assert elf.read(-1, 4) == elf.read(0, -4) == elf.read(1 << 62, 4) == b""


def test_it_closes(tmp_path: Path) -> None:
    open_ones = Path("/proc/self/fd")
    if not open_ones.is_dir():
        pytest.skip("no procfs")
    before = len(list(open_ones.iterdir()))
    (tmp_path / "text").write_text("text")
    for _ in range(20):
        with pytest.raises(ElfError):
            Elf(os.fspath(tmp_path / "text"))
        with Elf(os.fspath(FILES / "new.so")):
            pass
    assert len(list(open_ones.iterdir())) == before
