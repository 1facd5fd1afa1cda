"""Members of a static archive (``ar``, the format of System V and GNU), thin ones too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ._elf_file import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._elf_file import File
    from ._fatbin_walk import Bounds

WHOLE, THIN = b"!<arch>\n", b"!<thin>\n"
MEMBER_LIMIT = 1 << 16
NAMES_LIMIT = 1 << 22
PATH_LIMIT = 1 << 12
_HEADER_SIZE = 60
_HEADER_END = b"`\n"
_TABLES = {b"/", b"/SYM64/", b"//"}


class Member(NamedTuple):
    path: str | None
    """Of the file beside a thin archive that is the member; None where the archive holds it."""
    offset: int
    size: int


def is_archive(start: bytes) -> bool:
    return start[: len(WHOLE)] in {WHOLE, THIN}


def members(file: File, bounds: Bounds) -> Iterator[Member]:
    """The members that are no tables of the archive itself; raises ElfError at a header that is none.

    Members of a thin archive are files; one outside its folder is not followed, only noted.
    """
    thin = file.read(0, len(WHOLE)) == THIN
    names = b""
    at = len(WHOLE)
    for _ in range(MEMBER_LIMIT):
        if at + _HEADER_SIZE > file.size:
            return
        name, size = _header(file.exactly(at, _HEADER_SIZE, "the header of a member"))
        start, table = at + _HEADER_SIZE, name in _TABLES
        held = table or not thin
        if held and start + size > file.size:
            bounds.note("the last member of the archive is cut short")
            size = file.size - start
        if name == b"//":
            names = file.read(start, min(size, NAMES_LIMIT))
        elif not table:
            yield from [Member(None, start, size)] if held else _beside(file.path, name, names, bounds)
        at = start + (size + size % 2 if held else 0)
    bounds.note(f"the archive has more than {MEMBER_LIMIT} members")


def _header(raw: bytes) -> tuple[bytes, int]:
    digits = raw[48:58].strip()
    if raw[58:] != _HEADER_END or not digits.isdigit():
        raise ElfError("the archive is damaged: a member has no header")
    return raw[:16].rstrip(), int(digits)


def _beside(path: str, name: bytes, names: bytes, bounds: Bounds) -> list[Member]:
    """The file that a thin archive names by an offset into its table of names."""
    offset = name[1:]
    index = int(offset) if name.startswith(b"/") and offset.isdigit() else len(names)
    end = names.find(b"/\n", index, index + PATH_LIMIT)
    text = os.fsdecode(names[index:end]) if end >= 0 else ""
    folder = os.path.realpath(os.path.dirname(path))
    named = os.path.join(folder, text)
    if not text or "\0" in text or not os.path.lexists(named):
        bounds.note("a member of the thin archive is not there")
        return []
    member = os.path.realpath(named)
    if os.path.commonpath([folder, member]) != folder:
        bounds.note("a member of the thin archive lies outside the archive's folder")
        return []
    return [Member(member, 0, 0)]
