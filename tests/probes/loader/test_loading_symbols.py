"""Symbols looked up through the table of hashes, against a general ELF library; and ldconfig's own cache by name."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.files.elf.exported import gnu_hash
from probes.files.elf.info import ElfInfo, elf_info
from probes.files.elf.library import DT_GNU_HASH
from probes.files.loader.setup import Lookup
from probes.files.loader.symbols import UnreadSymbolsError, missing, undefined
from tests.every import cases
from tests.probes.elf.elf_damage import Change, changes, counted_reads, damaged
from tests.probes.loader.loading_builds import GCC, REASON, Workshop
from tests.probes.tiny_elf import BASE, library
from tests.thorough import examples

FILES = Path(__file__).parents[1] / "elf_files"
LDCONFIG = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")


def system_library(name: str) -> ElfInfo:
    """The library of that name of this system."""
    cache = Path("/etc/ld.so.cache")
    paths = [path for known, path in Lookup(cache.read_bytes()).pairs()[0] if known == name] if cache.exists() else []
    heads = [head for path in paths if (head := elf_info(path)) and head.bits == 64]
    if not heads:
        pytest.skip(f"{name} is not in the loader's cache here")
    return heads[0]


@cases("name, value", (b"", 0x1505), (b"printf", 0x156B2BB8), (b"exit", 0x7C967E3F))
def test_hashes(name: bytes, value: int) -> None:
    assert gnu_hash(name) == value


@cases("name", "libc.so.6", "libstdc++.so.6", "libm.so.6")
def test_what_a_real_library_defines(name: str) -> None:
    head = system_library(name)
    with Path(head.place).open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        symbols = list(table.iter_symbols())
    defined = {one.name.encode() for one in symbols if one["st_shndx"] != "SHN_UNDEF" and one.name}
    asked = {one.name.encode() for one in symbols if one["st_shndx"] == "SHN_UNDEF" and one.name} - defined
    assert len(defined) > 100
    assert missing(defined, [head]) == []
    absent = [*asked, b"of_no_such_name", b"", b"x" * 9000]
    assert missing(absent, [head]) == absent


@pytest.mark.skipif(GCC is None, reason=REASON)
def test_what_a_library_leaves_undefined(tmp_path: Path) -> None:
    source = tmp_path / "uses.c"
    source.write_text(
        "int elsewhere(void), printf(const char *, ...), PyList_New(void), _PyEval_X(void), Python(void);\n"
        "__attribute__((weak)) int maybe(void);\n"
        "int g(void) { return elsewhere() + PyList_New() + _PyEval_X() + Python() + (maybe ? maybe() : 0); }\n"
        'int f(void) { return printf("") + g(); }\n'
    )
    head = elf_info(str(Workshop(tmp_path).library("libuses.so", [], "-fPIC", str(source), "-lc")))
    assert head
    assert set(undefined(head)) == {b"elsewhere", b"Python"}


def looked_up(path: Path, names: list[bytes]) -> tuple[object, ...]:
    """What the symbols of a file answer; ``None`` for what cannot be asked."""
    head = elf_info(str(path))
    answers: list[object] = []
    for ask in (undefined, lambda head: missing(names, [head])):
        try:
            answers.append(ask(head) if head else None)
        except UnreadSymbolsError:
            answers.append(None)
    return tuple(answers)


def test_what_a_small_library_defines_and_leaves_undefined() -> None:
    path = FILES / "new.so"
    with path.open("rb") as file:
        (segment,) = (one for one in ELFFile(file).iter_segments() if isinstance(one, DynamicSegment))
        symbols = list(segment.iter_symbols())
    defined = {one.name.encode() for one in symbols if one["st_shndx"] != "SHN_UNDEF" and one.name}
    assert b"answer" in defined
    assert looked_up(path, [*defined, b"nowhere"]) == ((b"elsewhere",), [b"nowhere"])


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["new.so", "old.so", "aarch64.so", "x86.so", "s390x.so"]), drawn=changes)
def test_damage_to_symbols_costs_little_and_breaks_nothing(tmp_path: Path, name: str, drawn: list[Change]) -> None:
    path = tmp_path / "damaged.so"
    data = damaged((FILES / name).read_bytes(), drawn)
    path.write_bytes(data)
    with counted_reads() as cost:
        looked_up(path, [b"answer", b"show", b"nowhere", b""])
    assert cost.bytes < 64 * len(data) + (1 << 20)
    assert cost.reads < 10_000


def test_a_chain_of_hashes_without_an_end(tmp_path: Path) -> None:
    """No symbol is marked as the last of its bucket, and the filter lets every name through."""
    hashes = struct.pack("<IIIIQI", 1, 1, 1, 0, (1 << 64) - 1, 1) + bytes(4 * 200_000)
    path = tmp_path / "library.so"
    path.write_bytes(library([(6, BASE), (5, BASE), (10, 16), (DT_GNU_HASH, BASE)], hashes))
    with counted_reads() as cost:
        assert looked_up(path, [b"answer"])[1] is None
    assert cost.reads < 100


@pytest.mark.skipif(GCC is None, reason=REASON)
@pytest.mark.skipif(LDCONFIG is None, reason="ldconfig is not here to write a cache")
def test_a_cache_with_subfolders_for_processors(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    for folder in ("lib/glibc-hwcaps/x86-64-v2", "lib/glibc-hwcaps/x86-64-v3", "lib"):
        shop.library(f"{folder}/libof-this-test.so.1")
    (tmp_path / "conf").write_text(f"{tmp_path}/lib\n")
    command = [LDCONFIG or "", "-X", "-C", str(tmp_path / "cache"), "-f", str(tmp_path / "conf")]
    subprocess.run(command, check=True, capture_output=True)
    lookup = Lookup((tmp_path / "cache").read_bytes())
    found = {entry.subfolder: entry.path for entry in lookup.entries("libof-this-test.so.1")}
    assert lookup.complete
    if len(found) == 1:
        pytest.skip("this ldconfig knows no subfolders of glibc-hwcaps")
    top = f"{tmp_path}/lib"
    assert found == {
        None: f"{top}/libof-this-test.so.1",
        "x86-64-v2": f"{top}/glibc-hwcaps/x86-64-v2/libof-this-test.so.1",
        "x86-64-v3": f"{top}/glibc-hwcaps/x86-64-v3/libof-this-test.so.1",
    }


@given(data=st.data())
def test_a_damaged_cache(data: st.DataObject) -> None:
    path = Path("/etc/ld.so.cache")
    whole = path.read_bytes() if path.exists() else b"glibc-ld.so.cache1.1" + bytes(28)
    at = data.draw(st.integers(0, 200))
    noise = data.draw(st.binary(max_size=40))
    damaged = Lookup((whole[:at] + noise + whole[at + len(noise) :])[: data.draw(st.integers(0, len(whole)))])
    assert all(entry.path for entry in damaged.entries("libc.so.6"))
