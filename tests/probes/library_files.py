"""Shared libraries that export what a test wants, put together byte by byte (constructed; none can be loaded)."""

import struct
from collections.abc import Mapping, Sequence
from typing import Literal

MACHINES = {"x86_64": 62, "aarch64": 183}
Hash = Literal["gnu", "sysv"]

_HEADS = 64 + 2 * 56


def library(
    soname: str = "",
    exports: Mapping[str, bytes] | None = None,
    *,
    needed: Sequence[str] = (),
    rodata: bytes = b"",
    machine: str = "x86_64",
    table: Hash = "gnu",
) -> bytes:
    """A 64-bit little-endian library; ``exports`` are names and the bytes that lie there (all of it in ``.text``)."""
    exports = dict(exports or {})
    names = list(exports)
    if table == "gnu":
        names.sort(key=lambda name: _gnu_hash(name) % _BUCKETS)
    strings = b"\0"
    at: dict[str, int] = {}
    for text in (*names, *needed, soname):
        at[text] = len(strings)
        strings += text.encode() + b"\0"
    contents = b"".join(exports[name] for name in names)
    hashes = _gnu(names) if table == "gnu" else _sysv(names)
    dynamic_size = 16 * (len(needed) + (1 if soname else 0) + 5)
    symbols_at = _HEADS + dynamic_size
    hashes_at = symbols_at + 24 * (len(names) + 1)
    strings_at = hashes_at + len(hashes)
    text_at = strings_at + len(strings)
    symbols = bytes(24)
    place = text_at
    for name in names:
        symbols += struct.pack("<IBBHQQ", at[name], 0x12, 0, 1, place, len(exports[name]))
        place += len(exports[name])
    entries = [(1, at[name]) for name in needed] + ([(14, at[soname])] if soname else [])
    entries += [(5, strings_at), (10, len(strings)), (6, symbols_at)]
    entries += [(0x6FFFFEF5 if table == "gnu" else 4, hashes_at), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in entries)
    assert len(dynamic) == dynamic_size
    body = dynamic + symbols + hashes + strings + contents + rodata
    sections_at = _HEADS + len(body) + len(_SECTION_NAMES)
    sections = [
        bytes(64), _section(1, text_at, len(contents)), _section(7, text_at + len(contents), len(rodata)),
        _section(15, _HEADS + len(body), len(_SECTION_NAMES)),
    ]  # fmt: skip
    segments = _segment(1, 0, (sections_at + 64 * len(sections))) + _segment(2, _HEADS, dynamic_size)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01", 3, MACHINES[machine], 1, 0, 64, sections_at, 0, 64, 56, 2, 64, len(sections), 3,
    )  # fmt: skip
    return header + segments + body + _SECTION_NAMES + b"".join(sections)


_BUCKETS = 2
_SECTION_NAMES = b"\0.text\0.rodata\0.shstrtab\0"


def _section(name: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, 1, 2, offset, offset, size, 0, 0, 1, 0)


def _segment(kind: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, 5, offset, offset, offset, size, size, 8)


def _gnu(names: Sequence[str]) -> bytes:
    """DT_GNU_HASH of symbols in the order of their buckets; the first is number 1, and the filter lets all through."""
    hashes = [_gnu_hash(name) for name in names]
    buckets = [0] * _BUCKETS
    chain: list[int] = []
    for number, value in enumerate(hashes):
        bucket = value % _BUCKETS
        buckets[bucket] = buckets[bucket] or number + 1
        chain.append(value & ~1 | (number + 1 == len(hashes) or hashes[number + 1] % _BUCKETS != bucket))
    return struct.pack(f"<IIIIQ{_BUCKETS}I{len(chain)}I", _BUCKETS, 1, 1, 0, (1 << 64) - 1, *buckets, *chain)


def _sysv(names: Sequence[str]) -> bytes:
    """DT_HASH with one bucket, whose chain goes through all symbols."""
    count = len(names) + 1
    return struct.pack(f"<III{count}I", 1, count, len(names), *(max(number - 1, 0) for number in range(count)))


def _gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


# --- code, as NVIDIA's compilers left it --------------------------------------------------------------------------
def returns(number: int) -> bytes:
    """``mov eax, number; ret``."""
    return b"\xb8" + struct.pack("<I", number) + b"\xc3"


def stores(*numbers: int) -> bytes:
    """``mov [rdi], first; mov [rsi], second; mov [rdx], third; xor eax, eax; ret``."""
    places = (b"\xc7\x07", b"\xc7\x06", b"\xc7\x02")
    moves = [place + struct.pack("<I", number) for place, number in zip(places, numbers, strict=False)]
    return b"".join(moves) + b"\x31\xc0\xc3"


def stores_on_arm(number: int) -> bytes:
    """``mov w1, number (with movk where it is larger); str w1, [x0]; mov w0, 0; ret``."""
    moves = struct.pack("<I", 0x52800000 | (number & 0xFFFF) << 5 | 1)
    if number > 0xFFFF:
        moves += struct.pack("<I", 0x72A00000 | (number >> 16) << 5 | 1)
    return moves + struct.pack("<III", 0xB9000001, 0x52800000, 0xD65F03C0)
