"""Damage to real files: what Hypothesis draws, and what it must never cost to read them."""

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hypothesis import strategies as st

EXTREMES = (0, 1, 7, 0x40, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
Change = Callable[[bytearray], None]


def _write(layout: str, at: int, value: int) -> Change:
    def change(data: bytearray) -> None:
        size = struct.calcsize(layout)
        if len(data) >= size:
            struct.pack_into(layout, data, at % (len(data) - size + 1), value % (1 << 8 * size))

    return change


def _cut(at: int) -> Change:
    def change(data: bytearray) -> None:
        del data[at % (len(data) + 1) :]

    return change


def _repeat(at: int, size: int, times: int) -> Change:
    def change(data: bytearray) -> None:
        start = at % (len(data) + 1)
        data[start:start] = bytes(data[start : start + size]) * times

    return change


def _blank(at: int, size: int, value: int) -> Change:
    def change(data: bytearray) -> None:
        start = at % (len(data) + 1)
        data[start : start + size] = bytes([value]) * len(data[start : start + size])

    return change


_anywhere = st.integers(0, 1 << 15)
_near_the_beginning = st.integers(0, 160)
_at = _anywhere | _near_the_beginning
_value = st.sampled_from(EXTREMES) | st.integers(0, (1 << 64) - 1) | st.integers(0, 1 << 15)

changes = st.lists(
    st.one_of(
        st.builds(_write, st.sampled_from(["<B", "<H", "<I", "<Q", ">I"]), _at, _value),
        st.builds(_write, st.sampled_from(["<I", "<Q"]), _at.map(lambda at: at & ~7), _value),
        st.builds(_cut, _at),
        st.builds(_repeat, _at, st.integers(1, 256), st.integers(1, 40)),
        st.builds(_blank, _at, st.integers(1, 4096), st.integers(0, 255)),
    ),
    max_size=6,
)


def damaged(whole: bytes, drawn: list[Change]) -> bytes:
    data = bytearray(whole)
    for change in drawn:
        change(data)
    return bytes(data)


@dataclass
class Cost:
    reads: int = 0
    bytes: int = 0


@contextmanager
def counted_reads() -> Iterator[Cost]:
    """Count what is read by ``os.pread`` meanwhile: work, which unlike time is the same on every machine."""
    cost = Cost()
    real = os.pread

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        data = real(descriptor, size, offset)
        cost.reads += 1
        cost.bytes += len(data)
        return data

    os.pread = pread
    try:
        yield cost
    finally:
        os.pread = real
