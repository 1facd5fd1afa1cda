"""GPU code in small real files, against what cuobjdump said of them (``elf_files/README.md``)."""

import os
import re
import shutil
import struct
from collections import Counter
from pathlib import Path

import pytest

from probes.files.gpu_code import fatbins
from probes.files.gpu_code.targets import gpu_targets
from tests.every import tabled
from tests.probes.gpu_code.listing import CodeEntry, GpuCode, gpu_code

FILES = Path(__file__).parents[1] / "elf_files"
WITH_FATBINS = ["kernels.o", "linkable.o", "linked.so", "kernels.fatbin", "embedded.so", "whole.a"]
CUBINS = sorted(path.name for path in FILES.glob("*.cubin"))
PREFIXES = {"elf": "sm", "ptx": "compute", "nvvm": "lto"}
ONE = re.compile(
    r"Fatbin (?P<kind>\w+) code:\narch = sm_(?P<arch>\w+)\ncode version = \[(?P<isa>[\d,]+)\]\n(?P<packed>\w*)"
)


def read(path: Path) -> GpuCode:
    """What is in the file; the quick answer must be the same, less plain data."""
    code = gpu_code(os.fspath(path))
    quick = gpu_targets(os.fspath(path))
    expected = GpuCode(tuple(one for one in code.entries if one.section != ".data"), code.complete, code.problem)
    assert (quick.targets, quick.complete, quick.problem) == (expected.targets, expected.complete, expected.problem)
    return code


def small(name: str) -> GpuCode:
    return read(FILES / name)


def said_by_cuobjdump(name: str) -> Counter[tuple[str, str | None, bool]]:
    """Target, PTX ISA and whether compressed, of each piece of code that lies in CUDA's own sections."""
    matches = ONE.finditer((FILES / "cuobjdump" / f"{name}.txt").read_text())
    return Counter(
        (
            f"{PREFIXES[match['kind']]}_{match['arch']}",
            match["isa"].replace(",", ".") if match["kind"] == "ptx" else None,
            match["packed"] == "compressed",
        )
        for match in matches
    )


def in_own_sections(code: GpuCode) -> list[CodeEntry]:
    return [entry for entry in code.entries if entry.section in {"", ".nv_fatbin", "__nv_relfatbin"}]


@pytest.mark.parametrize("name", WITH_FATBINS)
def test_fatbins_as_cuobjdump_lists_them(name: str) -> None:
    code = small(name)
    assert (code.complete, code.problem) == (True, None)
    entries = [entry for entry in in_own_sections(code) if entry.section or not name.endswith(".a")]
    assert Counter((one.target, one.ptx_isa, one.compressed) for one in entries) == said_by_cuobjdump(name)


@pytest.mark.parametrize("name", CUBINS)
def test_cubins_as_cuobjdump_lists_them(name: str) -> None:
    code = small(name)
    (entry,) = code.entries
    expected = (FILES / "cuobjdump" / f"{name}.txt").read_text().strip()
    assert entry.target in {expected, f"{expected}f"}
    assert (entry.kind, entry.ptx_isa, entry.compressed, code.complete) == ("elf", None, False, True)
    assert (entry.offset, entry.size) == (0, (FILES / name).stat().st_size)


@tabled
def test_targets_of_cubins(name: str, target: str, *, relocatable: bool) -> None:
    (entry,) = small(name).entries
    assert (entry.target, entry.relocatable) == (target, relocatable)


def test_an_older_cubin_says_its_variant_without_its_notes(tmp_path: Path) -> None:
    """The notes that name the arguments of ptxas are taken away from the table of sections."""
    for name, target in [("sm_100a-cuda-12.8.cubin", "sm_100a"), ("sm_100a-cuda-13.0.cubin", "sm_100a")]:
        (tmp_path / name).write_bytes((FILES / name).read_bytes().replace(b".note.nv.tkinfo", b".note.nv.gone!!"))
        assert read(tmp_path / name).targets == (target,)


def test_every_variant() -> None:
    assert small("kernels.o").targets == (
        "sm_75", "sm_80", "sm_90a", "sm_100f", "sm_120a", "compute_80", "compute_90a", "compute_100f",
    )  # fmt: skip


def test_code_to_be_linked() -> None:
    code = small("linkable.o")
    assert {entry.section for entry in code.entries} == {"__nv_relfatbin"}
    assert all(entry.relocatable for entry in code.entries)
    assert [entry.target for entry in code.entries if entry.kind == "lto"] == ["lto_90a"]
    assert code.targets == ("sm_80", "sm_90a", "compute_80")


def test_what_was_linked_hides_what_it_was_linked_from() -> None:
    """The library keeps PTX that nobody can load; only the linked machine code counts."""
    code = small("linked.so")
    assert {(one.target, one.section, one.relocatable) for one in code.entries} == {
        ("sm_80", ".nv_fatbin", False), ("sm_80", "__nv_relfatbin", True), ("compute_80", "__nv_relfatbin", True),
    }  # fmt: skip
    assert code.targets == ("sm_80",)


def test_a_fatbin_file_of_an_older_toolkit() -> None:
    code = small("cuda-11.8.fatbin")
    assert [(one.target, one.ptx_isa, one.compressed) for one in code.entries] == [
        ("sm_75", None, True),
        ("compute_75", "7.8", True),
    ]


def test_offsets_lead_to_the_code() -> None:
    data = (FILES / "kernels.o").read_bytes()
    for entry in small("kernels.o").entries:
        kind, header, size = struct.unpack_from("<H2xIQ", data, entry.offset)
        assert (kind, header + size) == ({"elf": 2, "ptx": 1}[entry.kind], entry.size)


def test_fatbins_in_plain_data() -> None:
    """At an odd offset, and in a section too small to be sampled: only the thorough search finds them."""
    code = small("embedded.so")
    plain = [entry for entry in code.entries if entry.section == ".data"]
    assert [entry.target for entry in plain] == ["compute_80", "compute_103f"]
    assert plain[0].offset % 2 == 1
    assert code.targets == ("sm_75", "compute_75", "compute_80", "compute_103f")
    quick = gpu_targets(os.fspath(FILES / "embedded.so"))
    assert (quick.targets, quick.complete) == (("sm_75", "compute_75"), True)


def test_ptx_as_text(tmp_path: Path) -> None:
    (entry,) = small("kernel.ptx").entries
    assert (entry.kind, entry.target, entry.ptx_isa) == ("ptx", "compute_90a", "7.8")
    (tmp_path / "k.ptx").write_text("//\n\n//x\n.version 8.8\n.target sm_100f, debug\n")
    assert read(tmp_path / "k.ptx").targets == ("compute_100f",)


# --- archives -------------------------------------------------------------------------------------------------------
def test_an_archive_holds_the_code_of_its_members() -> None:
    data = (FILES / "whole.a").read_bytes()
    entries = small("whole.a").entries
    assert Counter(one.target for one in entries) == Counter(
        one.target for name in ("linkable.o", "sm_80-cuda-13.0.cubin") for one in small(name).entries
    )
    (cubin,) = [entry for entry in entries if entry.kind == "elf" and not entry.section]
    assert data[cubin.offset :][: cubin.size] == (FILES / "sm_80-cuda-13.0.cubin").read_bytes()
    assert {data[one.offset] for one in entries if one.section} == {1, 2, 8}


def test_a_thin_archive_names_its_members() -> None:
    expected = Counter(one.target for name in ("kernels.o", "linkable.o") for one in small(name).entries)
    code = small("thin.a")
    assert (Counter(one.target for one in code.entries), code.complete) == (expected, True)


def test_members_of_a_thin_archive_may_be_gone_or_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    shutil.copy(FILES / "thin.a", tmp_path / "inner")
    code = read(tmp_path / "inner" / "thin.a")
    assert (code.entries, code.complete, code.problem) == ((), False, "a member of the thin archive is not there")
    for name in ("kernels.o", "linkable.o"):
        shutil.copy(FILES / name, tmp_path)
        (tmp_path / "inner" / name).symlink_to(f"../{name}")
    code = read(tmp_path / "inner" / "thin.a")
    assert (code.entries, code.complete) == ((), False)
    assert code.problem == "a member of the thin archive lies outside the archive's folder"


# --- sections that are not there, or elsewhere ------------------------------------------------------------------------
def test_a_library_without_sections_is_searched(tmp_path: Path) -> None:
    data = bytearray((FILES / "linked.so").read_bytes())
    struct.pack_into("<Q", data, 40, 0)
    (tmp_path / "bare.so").write_bytes(data)
    assert Counter(one.target for one in read(tmp_path / "bare.so").entries) == Counter(
        one.target for one in small("linked.so").entries
    )


def test_registered_code_in_a_section_of_another_name(tmp_path: Path) -> None:
    data = (FILES / "linked.so").read_bytes()
    for name in (b".nv_fatbin\0", b"__nv_relfatbin\0"):
        data = data.replace(name, b"?" * (len(name) - 1) + b"\0")
    (tmp_path / "renamed.so").write_bytes(data)
    code = read(tmp_path / "renamed.so")
    assert len(code.entries) == len(small("linked.so").entries)
    assert code.complete


def test_fatbins_that_are_registered_but_gone(tmp_path: Path) -> None:
    data = (FILES / "linked.so").read_bytes()
    last = data.rindex(fatbins.START)
    (tmp_path / "torn.so").write_bytes(data[:last] + b"\0" * 8 + data[last + 8 :])
    code = read(tmp_path / "torn.so")
    assert all(one.offset < last for one in code.entries)
    assert code.problem == "it registers 2 fatbins with CUDA, of which 1 were found"


def test_libraries_without_gpu_code() -> None:
    for name in ("new.so", "old.so", "program", "library.o", "s390x.so", "powerpc.so"):
        assert small(name) == GpuCode((), complete=True, problem=None)


# --- kinds that are not read ------------------------------------------------------------------------------------------
@tabled
def test_other_kinds_are_told(tmp_path: Path, kind: int, problem: str | None) -> None:
    data = bytearray((FILES / "kernels.fatbin").read_bytes())
    struct.pack_into("<H", data, 16, kind)
    (tmp_path / "other.fatbin").write_bytes(data)
    code = read(tmp_path / "other.fatbin")
    assert ([one.target for one in code.entries], code.problem) == (["compute_103f"], problem)


def test_relocatable_ptx(tmp_path: Path) -> None:
    data = bytearray((FILES / "kernels.fatbin").read_bytes())
    struct.pack_into("<H", data, 16, fatbins.RELOCATABLE_PTX)
    (tmp_path / "other.fatbin").write_bytes(data)
    code = read(tmp_path / "other.fatbin")
    assert [(one.target, one.relocatable) for one in code.entries] == [("compute_80", True), ("compute_103f", False)]
    assert code.targets == ("compute_103f",)
