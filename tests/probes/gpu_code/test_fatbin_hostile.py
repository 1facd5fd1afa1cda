"""GPU code in files that are damaged, lie about sizes or are none: constructed for the test, or real ones damaged."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from probes.files.gpu_code import fatbins
from probes.files.gpu_code import targets as search
from probes.files.gpu_code.targets import gpu_targets
from tests.every import cases
from tests.probes.elf.elf_damage import Change, changes, counted_reads, damaged
from tests.probes.gpu_code.listing import GpuCode, gpu_code
from tests.thorough import examples

FILES = Path(__file__).parents[1] / "elf_files"
NAMES = (
    "kernels.o", "linkable.o", "linked.so", "embedded.so", "kernels.fatbin", "cuda-11.8.fatbin",
    "sm_100f-cuda-13.0.cubin", "sm_90a-cuda-12.4.cubin", "whole.a", "thin.a", "kernel.ptx",
)  # fmt: skip
REAL = {name: (FILES / name).read_bytes() for name in NAMES}
NOTHING = "it is not an ELF file, archive, fatbin or PTX"


def image(capability: int = 80, *, kind: int = 2, header: int = 64, size: int = 0, content: bytes = b"") -> bytes:
    fields = (kind, 0x101, header, size or len(content), 0, 0, 8, 1, capability, 0, 0, 0x11, 0, 0)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + content


def fatbin(*images: bytes, size: int | None = None) -> bytes:
    content = b"".join(images)
    return fatbins.START + struct.pack("<Q", len(content) if size is None else size) + content


def library(sections: Iterable[tuple[str, bytes | tuple[int, int]]]) -> bytes:
    """An ELF file with these sections, each given by its content or by (offset, size)."""
    listed = [("", b""), *sections, (".shstrtab", b"")]
    names = b"".join(name.encode() + b"\0" for name, _ in listed)
    data = bytearray(64)
    entries = []
    at = 0
    for name, given_content in listed:
        content = names if name == ".shstrtab" else given_content
        data.extend(bytes(-len(data) % 8))
        offset, size = content if isinstance(content, tuple) else (len(data), len(content))
        data.extend(b"" if isinstance(content, tuple) else content)
        entries.append(struct.pack("<IIQQQQIIQQ", at, 1 if name else 0, 2, offset, offset, size, 0, 0, 8, 0))
        at += len(name) + 1
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, len(data), 0, 64, 56, 0, 64, 0, 0)
    data[:64] = head
    struct.pack_into("<HH", data, 60, len(entries), len(entries) - 1)
    return bytes(data) + b"".join(entries)


def archive(*members: tuple[str, bytes], magic: bytes = b"!<arch>\n") -> bytes:
    held = [
        f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'644':<8}{len(content):<10}`\n".encode()
        + content
        + b"\n" * (len(content) % 2)
        for name, content in members
    ]
    return magic + b"".join(held)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "file"


def read(path: Path, data: bytes | None = None) -> GpuCode:
    if data is not None:
        path.write_bytes(data)
    code, quick = gpu_code(os.fspath(path)), gpu_targets(os.fspath(path))
    for complete, problem in ((code.complete, code.problem), (quick.complete, quick.problem)):
        assert complete == (problem is None)
        assert problem is None or (problem and problem.isprintable())
    return code


def targets(code: GpuCode) -> list[str]:
    return [entry.target for entry in code.entries]


@settings(max_examples=examples(600), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(REAL)), drawn=changes)
@example(name="kernels.o", drawn=[])
def test_damage_costs_little_and_breaks_nothing(written: Path, name: str, drawn: list[Change]) -> None:
    data = damaged(REAL[name], drawn)
    with counted_reads() as cost:
        code = read(written, data)
    assert cost.bytes < 64 * len(data) + (4 << 20)
    assert cost.reads < 4096 + len(data)
    assert len(code.entries) <= len(data) // 64 + 1


@pytest.mark.parametrize("name", sorted(REAL))
def test_every_length(written: Path, name: str) -> None:
    whole = gpu_code(os.fspath(FILES / name))
    for length in range(0, len(REAL[name]), 61):
        assert len(read(written, REAL[name][:length]).entries) <= len(whole.entries)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400))
def test_anything_after_a_beginning(written: Path, data: bytes) -> None:
    for start in (b"", fatbins.START, b"\x7fELF\x02\x01\x01", b"!<arch>\n", b"!<thin>\n", b".version "):
        read(written, start + data)


# --- what is no file --------------------------------------------------------------------------------------------------
def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    for name, problem in [
        ("pipe", "it is not a regular file"),
        ("zero", "it is not a regular file"),
        (".", "it is not a regular file"),
        ("nothing", "it cannot be read: No such file or directory"),
    ]:
        assert read(tmp_path / name) == GpuCode((), complete=False, problem=problem)
    assert not read(tmp_path / "loop").complete
    for path in ("nul\0inside", "\ud800"):
        assert not gpu_code(path).complete


@cases("data", b"#!/bin/sh\n", b"INPUT(libx.so)", b"PK\x03\x04" * 9, b"BC\xc0\xde" * 9, b"\0" * 99)
def test_other_files(written: Path, data: bytes) -> None:
    assert read(written, data).problem == NOTHING


# --- what is held, and what is said of it -----------------------------------------------------------------------------
@cases("about, data, held, problem",
    ("an empty file", b"", [], "it is empty"),
    ("the constructed fatbin is one", fatbin(image(80, content=b"x" * 40), image(90, kind=1)),
     ["sm_80", "compute_90"], None),
    # it claims to go on into the next section, where another image lies
    ("a fatbin ends with its section",
     library([(".nv_fatbin", fatbin(image(80), size=1 << 20)), (".comment", image(90))]), ["sm_80"],
     "a fatbin is cut short"),
    ("empty fatbins", fatbin() * 10_000 + fatbin(image(80)), ["sm_80"], None),
    ("wild capabilities", fatbin(image(0xFFFFFFFF), image(0)), ["sm_4294967295", "sm_0"], None),
    ("sections beyond the end",
     library([(".nv_fatbin", fatbin(image(80))), ("__nv_relfatbin", (1 << 62, 1 << 62))]), ["sm_80"],
     "__nv_relfatbin lies beyond the end of the file"),
    ("code of LLVM is not passed over", library([(".llvm.offloading", b"x" * 8)]), [],
     "it holds LLVM's offloading code, which is not read"),
    ("the constructed archive is one",
     archive(("/", b"abc"), ("a.o/", fatbin(image(80))), ("//", b"long\n"), ("b.o/", fatbin(image(90)))),
     ["sm_80", "sm_90"], None),
    ("archives in archives are not opened", archive(("a.a/", archive(("b.o/", fatbin(image(80)))))), [], NOTHING),
)  # fmt: skip
def test_what_is_held(written: Path, about: str, data: bytes, held: list[str], problem: str | None) -> None:
    code = read(written, data)
    assert (targets(code), code.problem) == (held, problem)


# --- fatbins ----------------------------------------------------------------------------------------------------------
def test_only_headers_are_read(written: Path) -> None:
    large = image(80, content=b"x" * 50_000)
    written.write_bytes(library([(".nv_fatbin", fatbin(large, large) * 300)]))
    with counted_reads() as cost:
        assert gpu_targets(os.fspath(written)).targets == ("sm_80",)
    assert cost.reads < 620
    assert cost.bytes < 1 << 17


@cases(
    "data, kept, problem", (fatbin(image(80), image(86, header=0)), ["sm_80"], "damaged"),
    (fatbin(image(80), image(86, header=63)), ["sm_80"], "damaged"),
    (fatbin(image(80), image(86, size=1 << 63)), ["sm_80"], "damaged"),
    (fatbin(image(80), image(86, size=(1 << 64) - 64)), ["sm_80"], "damaged"),
    (fatbin(image(80), image(86, header=0xFFFFFFFF)), ["sm_80"], "damaged"),
    (fatbin(image(80), size=(1 << 64) - 1), ["sm_80"], "cut short"), (fatbin(image(80))[:50], [], "cut short"),
    (fatbin(image(80), image(86, header=0)) + fatbin(image(90)), ["sm_80", "sm_90"], "damaged"),
)  # fmt: skip
def test_lies_about_sizes(written: Path, data: bytes, kept: list[str], problem: str) -> None:
    code = read(written, data)
    assert targets(code) == kept
    assert problem in (code.problem or "")


def test_fatbins_at_every_offset_of_plain_data(written: Path) -> None:
    """Also where the pieces meet in which the data is searched."""
    for piece in (4096, 4096 + 16384 - 7):
        for offset in range(piece - 20, piece + 20):
            data = library([(".data", b"\0" * offset + fatbin(image(80)) + b"\0" * 100)])
            assert targets(read(written, data)) == ["sm_80"]


def test_more_images_than_any_file_has(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fatbins, "IMAGE_LIMIT", 100)
    for data in (fatbin(*[image()] * 200), fatbin(image()) * 200, fatbin() * 200):
        code = read(written, data)
        assert code.problem == "it holds more than 100 pieces of GPU code"
        assert len(code.entries) < 101


# --- ELF files for the host -------------------------------------------------------------------------------------------
def test_overlapping_sections_count_once(written: Path) -> None:
    content = fatbin(image(80))
    everything = library([(".nv_fatbin", content), *[(".nv_fatbin", (0, 1 << 20))] * 20])
    for data in (everything, library([(".nv_fatbin", content), *[("__nv_relfatbin", (64, len(content)))] * 20])):
        assert len(read(written, data).entries) == 1


def test_many_sections_over_the_same_zeros(written: Path) -> None:
    """Each claims the whole file; it is searched once."""
    sections: list[tuple[str, bytes | tuple[int, int]]] = [(".nv_fatbin", b"\0" * (4 << 20))]
    sections += [(".nv_fatbin", (number, 1 << 40)) for number in range(2_000)]
    with counted_reads() as cost:
        read(written, library(sections))
    assert cost.bytes < 4 * (5 << 20)


def test_a_sparse_terabyte_is_given_up(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fatbins, "SEARCH_LIMIT", 8 << 20)
    written.write_bytes(library([(".nv_fatbin", fatbin(image(80))), (".nv_fatbin", (4096, (1 << 40) - 4096))]))
    os.truncate(written, 1 << 40)
    with counted_reads() as cost:
        code = read(written)
    assert targets(code) == ["sm_80"]
    assert code.problem == "more than 8 MiB of it would have to be searched for GPU code"
    assert cost.bytes < 2 * (16 << 20)


def test_large_plain_data_is_sampled(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SAMPLED_FROM", 1 << 16)
    monkeypatch.setattr(search, "SEARCHED_AT_ONCE", 1 << 18)
    own = (".nv_fatbin", fatbin(image(80)))
    some = fatbin(image(90, content=b"x" * 1024))
    written.write_bytes(library([own, (".data", some * 100), (".rodata", b"\0" * (1 << 17))]))
    assert gpu_targets(os.fspath(written)).targets == ("sm_80", "sm_90")
    assert gpu_targets(os.fspath(written)).complete
    written.write_bytes(library([own, (".ldata", some * 1000)]))
    quick = gpu_targets(os.fspath(written))
    assert (quick.targets, quick.complete) == (("sm_80",), False)
    assert quick.problem == "it holds more GPU code in .ldata, outside CUDA's own sections"
    assert gpu_code(os.fspath(written)).targets == ("sm_80", "sm_90")


def test_large_files_without_code_in_cudas_sections_are_sampled(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written.write_bytes(library([(".data", fatbin(image(90, content=b"x" * 1024)) * 2000)]))
    assert gpu_targets(os.fspath(written)).complete
    monkeypatch.setattr(search, "SAMPLED_FROM_ALONE", 1 << 20)
    assert gpu_targets(os.fspath(written)).targets == ("sm_90",)


# --- archives ---------------------------------------------------------------------------------------------------------
@cases("size, problem",
    (b"9999999999", "the last member of the archive is cut short"),
    (b"-1        ", "the archive is damaged: a member has no header"),
    (b"          ", "the archive is damaged: a member has no header"),
    (b"1e9       ", "the archive is damaged: a member has no header"),
    ("²".encode().ljust(10), "the archive is damaged: a member has no header"),
)  # fmt: skip
def test_wild_sizes_of_members(written: Path, size: bytes, problem: str) -> None:
    data = bytearray(archive(("a.o/", fatbin(image(80))), ("b.o/", fatbin(image(90)))))
    second = data.rindex(b"b.o/")
    data[second + 48 : second + 58] = size
    code = read(written, bytes(data))
    assert (code.targets[:1], code.problem) == (("sm_80",), problem)


def test_more_members_than_any_archive_has(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MEMBER_LIMIT", 50)
    code = read(written, archive(*[("a.o/", fatbin(image(80)))] * 60))
    assert (len(code.entries), code.problem) == (50, "the archive has more than 50 members")


def test_one_bad_member_does_not_hide_the_others(written: Path) -> None:
    code = read(written, archive(("a.o/", (b"\x7fELF\x02\x01\x01" + b"\xff" * 100)), ("b.o/", fatbin(image(90)))))
    assert (targets(code), code.complete) == (["sm_90"], False)
    assert (code.problem or "").startswith("a member of the archive: ")


def test_a_member_cannot_lead_out_of_itself(written: Path) -> None:
    """Its section lies, by its own table, in the member after it."""
    inner = library([(".nv_fatbin", (4096, 4096))])
    code = read(written, archive(("a.o/", inner), ("b.o/", fatbin(image(90), b"\0" * 8192))))
    assert targets(code).count("sm_90") == 1
    assert ".nv_fatbin lies beyond the end" in (code.problem or "")


THERE, OUTSIDE = "is not there", "lies outside the archive's folder"


@cases("name, names, problem",
    ("/0", b"../secret.o/\n", OUTSIDE), ("/0", b"/etc/\n", OUTSIDE), ("/0", b"./../inner/../secret.o/\n", OUTSIDE),
    ("/1", b"../nothing.o/\n", THERE), ("/0", b"a\0b/\n", THERE), ("/0", b"\xff\x1b[31m/\n", THERE),
    ("/0", b"a/" * 100_000 + b"/\n", THERE), ("/0", b"endless", THERE), ("/0", b"", THERE),
    ("/9999999999999", b"../secret.o/\n", THERE), ("/x", b"../secret.o/\n", THERE), ("../secret.o", b"", THERE),
)  # fmt: skip
def test_names_in_thin_archives(tmp_path: Path, name: str, names: bytes, problem: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret.o").write_bytes(fatbin(image(80)))
    code = read(tmp_path / "inner" / "file", (archive(("//", names), magic=b"!<thin>\n") + archive((name, b""))[8:]))
    assert (code.entries, code.problem) == ((), f"a member of the thin archive {problem}")


def test_a_thin_archive_that_names_itself_or_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "pipe", "."):
        data = archive(("//", f"{name}/\n".encode()), magic=b"!<thin>\n") + archive(("/0", b""))[8:]
        code = read(tmp_path / "file", data)
        assert (code.entries, code.complete) == ((), False)


# --- PTX --------------------------------------------------------------------------------------------------------------
@cases("text",
    ".version 8.0\n", ".version 8.0\n.target\n", ".version 8\n.target sm_90\n",
    ".version 8.0\n.target sm_99999999999\n", ".version 99999999999.0\n.target sm_90\n",
    "x\n.version 8.0\n.target sm_90\n", "//" * 100_000, "\n" * 200_000, ".version 8.0\n" * 20_000,
)  # fmt: skip
def test_text_that_is_no_ptx(written: Path, text: str) -> None:
    assert read(written, text.encode()).problem == NOTHING
