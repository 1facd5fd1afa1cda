"""Find undefined symbols of extensions and libraries that nothing in their process defines."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...common.library_names import family_of
from ...common.paths import printable
from ..elf.dynamic import DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_VERSYM, Dynamic, numbered_needs
from ..elf.exported import Exports, gnu_hash
from ..elf.info import ElfInfo, open_near
from ..elf.library import Elf, ElfError
from ..elf.tables import read_segments
from .process import LoadedImage, LoaderProcess, LoadRequest, failed

if TYPE_CHECKING:
    from .script import Event

# Undefined symbols of an extension that no library in its scope defines.
#
# PyTorch's libraries define hundreds of thousands of symbols, while an extension needs some hundreds. Each is looked up
# through DT_GNU_HASH (in older libraries DT_HASH) as the loader does it, reading only the pages this touches.

UNDEFINED_LIMIT = 20_000
"""Most undefined symbols of one file that are looked up; flash-attn and vLLM have some hundreds."""
NAME_LIMIT = 8192
_TABLE_LIMIT = 32 << 20
_WEAK = 2
_SYMBOL = struct.Struct("<IBBHQQ")
_PYTHON = re.compile(rb"_?Py[A-Z_]|_Py")


class UnreadSymbolsError(ValueError):
    """A file whose symbols cannot be looked up through its hash tables."""


def undefined(head: ElfInfo) -> tuple[bytes, ...]:
    """Names that another file must define: not weak, without a version, not Python's own.

    Versioned symbols are checked by their versions. Raises UnreadError.
    """
    try:
        with open_near(head.place) as elf:
            return tuple(_SymbolTable(elf).undefined())
    except (ElfError, struct.error) as error:
        raise UnreadSymbolsError from error


def asked_of(head: ElfInfo, name: str, unbound: re.Pattern[bytes]) -> tuple[bytes, ...]:
    """Names that the library ``name`` must define: bound to one of its versions, or unversioned with its prefix.

    Raises UnreadError.
    """
    try:
        with open_near(head.place) as elf:
            return tuple(_SymbolTable(elf).asked_of(name, unbound))
    except (ElfError, struct.error) as error:
        raise UnreadSymbolsError from error


def missing(names: Iterable[bytes], scope: Iterable[ElfInfo]) -> list[bytes]:
    """The symbols that no file of the scope defines; raises UnreadError if one cannot be read."""
    left = {name: gnu_hash(name) for name in names}
    for head in scope:
        if not left:
            break
        try:
            with open_near(head.place) as elf:
                table = _SymbolTable(elf)
                left = {name: hashed for name, hashed in left.items() if not table.defines(name, hashed)}
        except (ElfError, struct.error) as error:
            raise UnreadSymbolsError from error
    return list(left)


class _SymbolTable:
    """The dynamic symbols of one file; raises ElfError if it is damaged."""

    def __init__(self, elf: Elf) -> None:
        if elf.bits != 64 or elf.header.order != "<":
            raise UnreadSymbolsError
        self._elf = elf
        dynamic = Dynamic(elf.file, elf.header, read_segments(elf.file, elf.header))
        places = [dynamic.offset_of(tag) for tag in (DT_SYMTAB, DT_STRTAB)]
        if None in places:
            raise UnreadSymbolsError
        self._symbols, self._names = (place or 0 for place in places)
        self._dynamic = dynamic
        self._versions = dynamic.offset_of(DT_VERSYM)
        hashes, old = dynamic.offset_of(DT_GNU_HASH), dynamic.offset_of(DT_HASH)
        self._exports = Exports(elf) if hashes is None else None
        if hashes is not None:
            self._hashes = hashes
            self._buckets, self._first, self._filters, self._shift = dynamic.unpack("IIII", self._hashes)
            if self._filters == 0 or (self._filters + self._buckets) * 8 > _TABLE_LIMIT:
                raise UnreadSymbolsError
            self._filter = self._elf.file.exactly(self._hashes + 16, self._filters * 8, "its table of hashes")
        elif old is not None:
            _, self._first = dynamic.unpack("II", old)  # that table counts all symbols, in no order
        else:
            raise UnreadSymbolsError

    def undefined(self) -> Iterator[bytes]:
        for at, version in self._asked():
            if version <= 1:
                text = self._text(at)
                if text and not _PYTHON.match(text):
                    yield text

    def asked_of(self, name: str, unbound: re.Pattern[bytes]) -> Iterator[bytes]:
        of_it = {number for number, file in numbered_needs(self._dynamic).items() if file == name}
        for at, version in self._asked():
            if version in of_it:
                yield self._text(at)
            elif version <= 1:
                text = self._text(at)
                if unbound.match(text):
                    yield text

    def _asked(self) -> Iterator[tuple[int, int]]:
        """The name offsets and version indexes of undefined symbols, without weak ones.

        They precede all symbols in the GNU hash table.
        """
        count = self._first
        if count > UNDEFINED_LIMIT:
            raise UnreadSymbolsError
        raw = self._elf.file.exactly(self._symbols, count * _SYMBOL.size, "its symbol table")
        versions: tuple[int, ...] = (0,) * count  # 0 and 1 mean none
        if self._versions is not None:
            table = self._elf.file.exactly(self._versions, count * 2, "its table of versions")
            versions = struct.unpack(f"<{count}H", table)
        for (name, info, _, section, _, _), version in zip(_SYMBOL.iter_unpack(raw), versions):
            if name and section == 0 and info >> 4 != _WEAK:
                yield name, version & 0x7FFF

    def _text(self, at: int) -> bytes:
        for size in (256, NAME_LIMIT):
            raw, end, _ = self._elf.read(self._names + at, size).partition(b"\0")
            if end:
                return raw
        raise UnreadSymbolsError

    def defines(self, name: bytes, hashed: int) -> bool:
        if self._exports is not None:
            return self._exports.find_bytes(name) is not None
        (word,) = struct.unpack_from("<Q", self._filter, hashed // 64 % self._filters * 8)
        if not (word >> hashed % 64) & (word >> (hashed >> self._shift) % 64) & 1 or not self._buckets:
            return False
        heads = self._hashes + 16 + self._filters * 8
        head = self._elf.file.exactly(heads + hashed % self._buckets * 4, 4, "its table of hashes")
        number = int.from_bytes(head, "little")
        if number < self._first:
            return False
        chain = heads + self._buckets * 4 + (number - self._first) * 4
        return self._in_chain(name, hashed, number, chain)

    def _in_chain(self, name: bytes, hashed: int, number: int, chain: int) -> bool:
        links = self._elf.read(chain, 256)
        for step in range(len(links) // 4):
            (link,) = struct.unpack_from("<I", links, step * 4)
            if link | 1 == hashed | 1 and self._is(number + step, name):
                return True
            if link & 1:
                return False
        raise UnreadSymbolsError

    def _is(self, number: int, name: bytes) -> bool:
        raw = self._elf.file.exactly(self._symbols + number * _SYMBOL.size, _SYMBOL.size, "its symbol table")
        at, _, _, section, _, _ = _SYMBOL.unpack(raw)
        return section != 0 and self._elf.read(self._names + at, len(name) + 1) == name + b"\0"


# Undefined symbols of an extension, compared with the installed framework.


_SHOWN = 16
_FRAMEWORK = re.compile(r"lib(?:torch|c10)\w*\.so")
_CORE = re.compile(r"lib(?:torch|torch_cpu|torch_python|c10|caffe2)\.so")
_OF_FRAMEWORK = re.compile(rb"_Z(?:T[VIST])?N[rVKRO]*(?:2at|3c10|5torch|6caffe2)")
"""Mangled names in PyTorch's namespaces."""


def unresolved(process: LoaderProcess, events: list[Event]) -> list[str] | None:
    """Symbols of the framework's own parts that nothing in the process would define, as they stand.

    Asked only of parts that link PyTorch. None where no part does, or where it cannot be known: where PyTorch itself
    was not loaded, what it defines was not there to be met.
    """
    parts = [event.requests for event in events if _links_framework(event.requests)]
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
    return [printable(name.decode("utf-8", "replace")) for name in list(found)[:_SHOWN]]


def _links_framework(requests: list[LoadRequest]) -> bool:
    image = requests[0].image
    return image is not None and any(_FRAMEWORK.match(name) for name in image.head.needed)


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


_SHOWN_OF_BOUND = 8
_LOOKED_AT = 64
"""Most users of one library whose symbols are looked up."""
_PREFIXES = {"cudart": "cuda", "cudnn": "cudnn", "nvshmem": "nvshmem", "nvToolsExt": "nvtx", "npp": "npp"}
"""Prefixes of a family's functions, by the beginning of its name, if they are not the whole name."""
_OF_THE_DRIVER = frozenset({"cuda", "nvidia-ml"})
"""Driver libraries, which are judged by their release."""


def is_bound(name: str) -> bool:
    """Whether the symbols of a library with this name are checked."""
    known = family_of(os.path.basename(name))
    return known is not None and known.family not in _OF_THE_DRIVER


def lacking(
    process: LoaderProcess, image: LoadedImage, name: str, users: Iterable[LoadedImage]
) -> tuple[list[str], str] | None:
    """Symbols that ``users`` need from the library ``name`` and that nothing defines, with the user; None if a file
    could not be read.
    """
    known = family_of(os.path.basename(name))
    family = known.family if known else name
    begin = next((prefix for start, prefix in _PREFIXES.items() if family.startswith(start)), family)
    unbound = re.compile(rb"_{0,2}p?" + re.escape(begin.encode()), re.IGNORECASE)
    for user in list(users)[:_LOOKED_AT]:
        try:
            wanted = missing(asked_of(user.head, name, unbound), [image.head])
            others = (other.head for other in process.images if other not in (image, user))
            wanted = missing(wanted, others) if wanted else []
        except UnreadSymbolsError:
            return None
        if wanted:
            return [
                printable(symbol.decode("utf-8", "replace")) for symbol in sorted(wanted)[:_SHOWN_OF_BOUND]
            ], user.path
    return [], ""
