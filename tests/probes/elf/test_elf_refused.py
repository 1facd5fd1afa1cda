"""Damaged libraries that the loader meets first, with a whole one of the same name behind: it is asked what it does."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.files.elf.info import elf_info
from tests.probes.loader.loading_builds import GCC, REASON, Seen, Workshop, rpath

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

Damage = Callable[[bytes], bytes]
_PT_LOAD, _PT_DYNAMIC = 1, 2
_ENTRY, _TAG = struct.Struct("<IIQQQQQQ"), struct.Struct("<QQ")


def cut(size: int) -> Damage:
    return lambda whole: whole[:size]


def over(at: int, new: bytes) -> Damage:
    return lambda whole: whole[:at] + new + whole[at + len(new) :]


def _segment(whole: bytes, kind: int) -> int:
    """Offset of the first entry of that kind in the table of segments."""
    start, count = int.from_bytes(whole[32:40], "little"), int.from_bytes(whole[56:58], "little")
    places = (start + _ENTRY.size * number for number in range(count))
    return next(place for place in places if _ENTRY.unpack_from(whole, place)[0] == kind)


def in_segment(kind: int, field: int, new: bytes) -> Damage:
    return lambda whole: over(_segment(whole, kind) + field, new)(whole)


def _section(whole: bytes) -> int:
    return int(_ENTRY.unpack_from(whole, _segment(whole, _PT_DYNAMIC))[2])


def in_section(new: bytes) -> Damage:
    return lambda whole: over(_section(whole), new)(whole)


def entry(tag: int, value: int) -> Damage:
    def damage(whole: bytes) -> bytes:
        at = _section(whole)
        while _TAG.unpack_from(whole, at)[0] != tag:
            at += _TAG.size
        return over(at + 8, struct.pack("<Q", value))(whole)

    return damage


FAR = struct.pack("<Q", 1 << 40)
REFUSED: dict[str, Damage] = {
    "empty": cut(0), "a linker script": lambda _: b"INPUT(libx.so.1)\n",
    "a pointer of Git LFS": lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "zeros": lambda whole: bytes(len(whole)), "the magic alone": cut(4), "half a header": cut(40),
    "the header alone": cut(64), "part of the table of segments": cut(100), "the first page": cut(4096),
    "part of the dynamic section": lambda whole: whole[: _section(whole) + 20],
    "the first page of zeros": over(0, bytes(4096)), "the other byte order": over(5, b"\2"),
    "no version": over(6, b"\0"), "no version behind": over(20, bytes(4)), "another system": over(7, b"\t"),
    "another ABI": over(8, b"\t"), "no padding": over(10, b"\1"), "a program": over(16, b"\2\0"),
    "an object file": over(16, b"\1\0"), "no segments": over(56, bytes(2)),
    "segments of another size": over(54, b"\x20\0"), "segments beyond the end": over(32, FAR),
    "segments of zeros": lambda whole: over(64, bytes(56 * whole[56]))(whole),
    "no dynamic section": in_segment(_PT_DYNAMIC, 0, bytes(4)),
    "the dynamic section elsewhere": in_segment(_PT_DYNAMIC, 16, FAR),
    "a segment that is too long": in_segment(_PT_LOAD, 32, FAR), "a dynamic section of zeros": in_section(bytes(256)),
    "names outside": entry(5, 1 << 40), "a name outside": entry(1, 1 << 30), "its own name outside": entry(14, 1 << 30),
}  # fmt: skip
PASSED_OVER: dict[str, Damage] = {
    "another class": over(4, b"\1"), "another machine": over(18, b"\xb7\0"), "no machine": over(18, bytes(2)),
    "another machine, cut off": lambda whole: over(18, b"\xb7\0")(whole)[:4096],
}  # fmt: skip
TAKEN: dict[str, Damage] = {
    "whole": lambda whole: whole,
    "without its table of sections": lambda whole: whole[: struct.unpack_from("<Q", whole, 40)[0]],
    "a segment that takes less room": in_segment(_PT_LOAD, 40, struct.pack("<Q", 1)),
}


class Pair:
    """One library in two folders, ``first`` and ``then``, and who needs it and looks into both by its RPATH."""

    def __init__(self, folder: Path) -> None:
        self.shop = Workshop(folder.resolve())
        self.shop.library("then/libdep.so")
        self.shop.library("then/libx.so", ["then/libdep.so"], *rpath(self.shop.folder / "then"))
        self.first = self.shop.at("first/libx.so")
        self.whole = (self.shop.folder / "then/libx.so").read_bytes()
        folders = [self.shop.folder / name for name in ("first", "then")]
        self.user = str(self.shop.library("user.so", ["then/libx.so"], *rpath(*folders)))
        self.path = ":".join(map(str, folders))
        self.program = self.shop.program()

    def both(self, *names: str, **variables: str) -> tuple[Seen | None, Seen]:
        """What the loader does, None where it dies of it, and what is predicted."""
        try:
            truth = self.shop.truth(self.program, names, variables)
        except AssertionError:
            truth = None
        return truth, self.shop.predicted(self.program, names, variables)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("pair"))


@pytest.mark.parametrize("damage", REFUSED.values(), ids=REFUSED)
def test_the_first_file_ends_the_search_although_a_whole_one_follows(pair: Pair, damage: Damage) -> None:
    pair.first.write_bytes(damage(pair.whole))
    for names, variables in (([pair.user], {}), (["libx.so"], {"LD_LIBRARY_PATH": pair.path})):
        truth, predicted = pair.both(*names, **variables)
        assert truth is None or truth.loaded == (False,)
        assert predicted.loaded == (False,)
    head = elf_info(str(pair.first))
    assert head
    assert head.refused or head.program or head.order == ">"


@pytest.mark.parametrize("damage", PASSED_OVER.values(), ids=PASSED_OVER)
def test_a_file_for_another_machine_is_passed_over(pair: Pair, damage: Damage) -> None:
    pair.first.write_bytes(damage(pair.whole))
    truth, predicted = pair.both(pair.user)
    assert truth == predicted
    assert predicted.loaded == (True,)


@pytest.mark.parametrize("damage", TAKEN.values(), ids=TAKEN)
def test_what_does_no_harm_is_taken(pair: Pair, damage: Damage) -> None:
    pair.first.write_bytes(damage(pair.whole))
    truth, predicted = pair.both(pair.user)
    assert truth == predicted
    assert str(pair.first) in predicted.mapped


def test_what_is_no_file(pair: Pair) -> None:
    variables = {"LD_LIBRARY_PATH": pair.path}
    pair.first.unlink(missing_ok=True)
    pair.first.symlink_to("nowhere")
    truth, predicted = pair.both("libx.so", **variables)
    assert truth == predicted
    assert predicted.loaded == (True,)
    pair.first.unlink()
    pair.first.mkdir()
    try:
        truth, predicted = pair.both("libx.so", **variables)
        assert truth == predicted
        assert predicted.loaded == (False,)
    finally:
        pair.first.rmdir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_passed_over(pair: Pair) -> None:
    pair.first.write_bytes(pair.whole)
    pair.first.chmod(0)
    try:
        truth, predicted = pair.both("libx.so", LD_LIBRARY_PATH=pair.path)
        assert truth == predicted
        assert predicted.loaded == (True,)
    finally:
        pair.first.unlink()
