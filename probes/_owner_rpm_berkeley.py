"""The values of a Berkeley DB hash file, which rpm's ``Packages`` is up to RHEL 8: no library for it is at hand.

By Berkeley DB's ``db_page.h``: a page of metadata tells where the buckets start; a bucket is a chain of pages whose
items lie from the page's end backwards, keys and values in turn; a long value lies on a chain of overflow pages.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

_MAGIC = 0x061561
_HASH_PAGES = frozenset({2, 13})
_OVERFLOW = 7
_OFF_PAGE = 3
_INLINE = 1
_HEADER = 26
_SPARES = 32
_BUCKETS = 1 << 16
_PAGES = 1 << 17
"""As many pages are read, so that no chain that leads back to itself holds the probe up."""
_VALUE_LIMIT = 32 << 20


class DamagedError(ValueError):
    """It is no such file, or not a whole one."""


class Hash:
    """An open file; raises DamagedError where it is none, or where it ends early."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._left = _PAGES
        start = os.pread(descriptor, 512, 0)
        for order in ("<", ">"):
            if len(start) == 512 and struct.unpack_from(f"{order}I", start, 12)[0] == _MAGIC:
                self._order = order
                break
        else:
            raise DamagedError("it is no hash file of Berkeley DB")
        (self._size,) = self._numbers(start, "I", 20)
        (self._last_bucket,) = self._numbers(start, "I", 72)
        self._spares = self._numbers(start, f"{_SPARES}I", 96)
        if self._size not in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536) or self._last_bucket > _BUCKETS:
            raise DamagedError("its page of metadata is damaged")

    def values(self, wanted: int) -> Iterator[Value]:
        """Every value of at least ``wanted`` bytes."""
        for bucket in range(self._last_bucket + 1):
            for page in self._chain(bucket + self._before(bucket), _HASH_PAGES):
                yield from self._values_of(page, wanted)

    def _before(self, bucket: int) -> int:
        """How many pages lie before a bucket besides those of the buckets before it."""
        if not bucket:
            return self._spares[0]
        return self._spares[min(bucket.bit_length(), _SPARES - 1)]

    def _values_of(self, page: bytes, wanted: int) -> Iterator[Value]:
        (count,) = self._numbers(page, "H", 20)
        offsets = self._numbers(page, f"{count}H", _HEADER)
        for place in range(1, count, 2):
            offset, end = offsets[place], offsets[place - 1]
            kind = page[offset] if offset < len(page) else 0
            if kind == _INLINE and end - offset > wanted:
                yield Value(self, page[offset + 1 : end], 0, 0)
            elif kind == _OFF_PAGE:
                first, size = self._numbers(page, "II", offset + 4)
                if wanted <= size <= _VALUE_LIMIT:
                    yield Value(self, b"", first, size)

    def overflow(self, first: int, size: int) -> bytes:
        """At least ``size`` bytes of a long value, where it has them."""
        parts: list[bytes] = []
        length = 0
        for page in self._chain(first, frozenset({_OVERFLOW})):
            (here,) = self._numbers(page, "H", 22)
            parts.append(page[_HEADER : _HEADER + here])
            length += len(parts[-1])
            if length >= size:
                break
        return b"".join(parts)

    def _chain(self, number: int, kinds: frozenset[int]) -> Iterator[bytes]:
        while number:
            self._left -= 1
            if self._left < 0:
                raise DamagedError("it leads in circles, or is larger than any")
            page = os.pread(self._descriptor, self._size, number * self._size)
            if len(page) != self._size or page[25] not in kinds:
                return
            yield page
            (number,) = self._numbers(page, "I", 16)

    def _numbers(self, data: bytes, layout: str, offset: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self._order + layout, data, offset)
        except struct.error:
            raise DamagedError("a page is damaged") from None


class Value:
    """A value that is read as far as it is wanted."""

    def __init__(self, file: Hash, inline: bytes, first: int, size: int) -> None:
        self._file = file
        self._inline = inline
        self._first = first
        self._size = size

    def start(self, size: int) -> bytes:
        """The first bytes, at least ``size`` of them where it has as many."""
        return self._inline if not self._first else self._file.overflow(self._first, size)

    def whole(self) -> bytes:
        return self.start(self._size)[: self._size or None]
