"""Find undefined symbols of extensions and libraries that nothing in their process defines."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...common.lazy import lazy_pattern
from ...common.library_names import family_of
from ...common.paths import printable
from ..elf.exported import Exports, gnu_hash
from ..elf.info import ElfInfo
from ..elf.library import DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_VERSYM, Elf, ElfError, numbered_needs
from .process import LoadedImage, LoaderProcess, LoadRequest, failed

if TYPE_CHECKING:
    from .script import Event

# Undefined symbols of an extension that no library in its scope defines.
#
# PyTorch's libraries define hundreds of thousands of symbols, while an extension needs some hundreds. Each is looked up
# through DT_GNU_HASH (in older libraries DT_HASH) as the loader does it, reading only the pages this touches.

UNDEFINED_LIMIT = 20_000  # Most undefined symbols of one file that are looked up; flash-attn and vLLM have hundreds
_WEAK = 2
_SYMBOL = struct.Struct("<IBBHQQ")
_PYTHON = lazy_pattern(rb"_?Py[A-Z_]|_Py")


class UnreadSymbolsError(ValueError):
    """A file whose symbols cannot be looked up through its hash tables."""


@contextmanager
def _symbols(head: ElfInfo) -> Iterator[_SymbolTable]:
    try:
        with Elf(head.place) as elf:
            yield _SymbolTable(elf)
    except (ElfError, struct.error) as error:
        raise UnreadSymbolsError from error


def undefined(head: ElfInfo) -> tuple[bytes, ...]:
    """Names that another file must define: not weak, without a version, not Python's own.

    Versioned symbols are checked by their versions. Raises UnreadError.
    """
    with _symbols(head) as table:
        names = (table.text(at) for at, version in table.undefined() if version <= 1)
        return tuple(name for name in names if name and not _PYTHON.match(name))


def asked_of(head: ElfInfo, library: str, unbound: re.Pattern[bytes]) -> tuple[bytes, ...]:
    """Names that ``library`` must define: bound to one of its versions, or unversioned with its prefix.

    Raises UnreadError.
    """
    with _symbols(head) as table:
        bound = {number for number, file in numbered_needs(table.dynamic).items() if file == library}
        asked = [(version, table.text(at)) for at, version in table.undefined() if version <= 1 or version in bound]
        return tuple(name for version, name in asked if version in bound or unbound.match(name))


def missing(names: Iterable[bytes], scope: Iterable[ElfInfo]) -> list[bytes]:
    """The symbols that no file of the scope defines; raises UnreadError if one cannot be read."""
    left = {name: gnu_hash(name) for name in names}
    for head in scope:
        if not left:
            break
        with _symbols(head) as table:
            left = {name: key for name, key in left.items() if not table.exports.defines(name, key)}
    return list(left)


class _SymbolTable:
    """The dynamic symbols of one file; raises ElfError if it is damaged."""

    def __init__(self, elf: Elf) -> None:
        if elf.bits != 64 or elf.header.order != "<":
            raise UnreadSymbolsError
        self._elf = elf
        self.exports = Exports(elf)
        self.dynamic = dynamic = elf.dynamic
        places = [dynamic.offset_of(tag) for tag in (DT_SYMTAB, DT_STRTAB)]
        if None in places:
            raise UnreadSymbolsError
        self._symbols, self._names = (place or 0 for place in places)
        hashes, old = dynamic.offset_of(DT_GNU_HASH), dynamic.offset_of(DT_HASH)
        if hashes is not None:
            buckets, self._first, filters, _ = dynamic.unpack("IIII", hashes)
            if filters == 0 or (filters + buckets) * 8 > 32 << 20:
                raise UnreadSymbolsError
        elif old is not None:
            _, self._first = dynamic.unpack("II", old)  # that table counts all symbols, in no order
        else:
            raise UnreadSymbolsError

    def undefined(self) -> Iterator[tuple[int, int]]:
        """The name offsets and version indexes of undefined symbols, without weak ones.

        They precede all symbols in the GNU hash table.
        """
        count = self._first
        if count > UNDEFINED_LIMIT:
            raise UnreadSymbolsError
        raw = self._elf.file.exactly(self._symbols, count * _SYMBOL.size, "its symbol table")
        versions: tuple[int, ...] = (0,) * count  # 0 and 1 mean none
        of_versions = self.dynamic.offset_of(DT_VERSYM)
        if of_versions is not None:
            table = self._elf.file.exactly(of_versions, count * 2, "its table of versions")
            versions = struct.unpack(f"<{count}H", table)
        for (name, info, _, section, _, _), version in zip(_SYMBOL.iter_unpack(raw), versions):
            if name and section == 0 and info >> 4 != _WEAK:
                yield name, version & 0x7FFF

    def text(self, at: int) -> bytes:
        """The name at an offset into the table of names."""
        for size in (256, 8192):
            raw, end, _ = self._elf.read(self._names + at, size).partition(b"\0")
            if end:
                return raw
        raise UnreadSymbolsError


# Undefined symbols of an extension, compared with the installed framework.


_FRAMEWORK = lazy_pattern(r"lib(?:torch|c10)\w*\.so")
_CORE = lazy_pattern(r"lib(?:torch|torch_cpu|torch_python|c10|caffe2)\.so")
_OF_FRAMEWORK = lazy_pattern(rb"_Z(?:T[VIST])?N[rVKRO]*(?:2at|3c10|5torch|6caffe2)")  # Mangled, in PyTorch's namespaces


def unresolved(process: LoaderProcess, events: list[Event]) -> list[str] | None:
    """Symbols of the framework's own parts that nothing in the process would define, as they stand.

    Asked only of parts that link PyTorch. None where no part does, or where it cannot be known: where PyTorch itself
    was not loaded, what it defines was not there to be met.
    """
    images = ((event.requests, event.requests[0].image) for event in events)
    parts = [requests for requests, image in images if image and any(map(_FRAMEWORK.match, image.head.needed))]
    if not parts or not any(_CORE.match(os.path.basename(image.path)) for image in process.images):
        return None
    lost_by = [request.by for requests in parts for request in requests if request.image is None and request.by]
    if any(_FRAMEWORK.match(os.path.basename(image.path)) for image in lost_by):
        return None
    found: dict[bytes, None] = {}
    try:
        for requests in parts:
            found.update(dict.fromkeys(_of_part(process, requests)))
    except UnreadSymbolsError:
        return None
    return [printable(name.decode("utf-8", "replace")) for name in list(found)[:16]]


def _of_part(process: LoaderProcess, requests: list[LoadRequest]) -> list[bytes]:
    """Where a library is missing, all but the framework's own symbols may have been in that one."""
    part = requests[0].image
    if part is None:
        return []
    names = undefined(part.head)
    if failed(requests):
        names = tuple(name for name in names if _OF_FRAMEWORK.match(name))
    images = [*process.images, *(request.image for request in requests if request.image)]
    # The framework's libraries first: they define nearly all symbols.
    scope = sorted(dict.fromkeys(images), key=lambda image: not _FRAMEWORK.match(os.path.basename(image.path)))
    return missing(names, [image.head for image in scope if image is not part])


# Symbols that linked files need from a library and that nothing in the process defines.
#
# A copy of the right name may be of an older release: the loader takes it, and stops at the first function that is
# missing (``undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12``). The symbols that belong to a
# library are those bound to its version table, else those that begin as its functions do.


_PREFIXES = {"cudart": "cuda", "cudnn": "cudnn", "nvshmem": "nvshmem", "nvToolsExt": "nvtx", "npp": "npp"}
"""Prefixes of a family's functions, by the beginning of its name, if they are not the whole name."""
_OF_THE_DRIVER = frozenset({"cuda", "nvidia-ml"})  # Driver libraries, which are judged by their release


def is_bound(name: str) -> bool:
    """Whether the symbols of a library with this name are checked."""
    known = family_of(os.path.basename(name))
    return known is not None and known.family not in _OF_THE_DRIVER


def lacking(
    process: LoaderProcess, image: LoadedImage, name: str, users: Iterable[LoadedImage]
) -> tuple[list[str], str] | None:
    """Symbols that ``users`` need of ``name`` and nothing defines, with the user; None if a file could not be read."""
    known = family_of(os.path.basename(name))
    family = known.family if known else name
    begin = next((prefix for start, prefix in _PREFIXES.items() if family.startswith(start)), family)
    unbound = re.compile(rb"_{0,2}p?" + re.escape(begin.encode()), re.IGNORECASE)
    for user in list(users)[:64]:
        try:
            wanted = missing(asked_of(user.head, name, unbound), [image.head])
            others = (other.head for other in process.images if other not in (image, user))
            wanted = missing(wanted, others) if wanted else []
        except UnreadSymbolsError:
            return None
        if wanted:
            shown = (symbol.decode("utf-8", "replace") for symbol in sorted(wanted)[:8])
            return list(map(printable, shown)), user.path
    return [], ""
