"""The numbers that machine code for x86-64 or AArch64 stores or returns, without running it.

A function that returns a version has it as constants in its instructions. All 32-bit constants in its code are
candidates, including false ones that start within another instruction. Callers accept a result only if exactly one
candidate is plausible.
"""

from __future__ import annotations

import re
import struct

_STORE = (
    rb"\xc7(?:[\x00-\x03\x06\x07]|\x04.|\x05.{4}|[\x40-\x43\x45-\x47].|\x44..|[\x80-\x83\x85-\x87].{4}|\x84.{5})(....)"
)
"""``mov dword ptr [...], number``: opcode C7 /0 with every way to name the place in memory."""
_STORED = re.compile(rb"(?=" + _STORE + rb")", re.DOTALL)
_LOADED = re.compile(rb"(?=[\xb8-\xbf](....))", re.DOTALL)
"""``mov register, number``: opcodes B8 to BF."""
_STORED_AND_DONE = re.compile(rb"\xc7\x07(....)\x31\xc0\xc3", re.DOTALL)
"""A complete function that stores a number through its first argument and returns 0."""

_MOVE, _KEEP = 0x52800000, 0x72800000
"""AArch64's MOVZ and MOVK for 32-bit registers."""
_OPCODE = 0xFF800000
_ZERO = rb"\x00\x00\x80\x52"
_STORE_WORD = rb"..\x00\xb9"
_RETURN = rb"\xc0\x03\x5f\xd6"
_STORED_AND_DONE_ON_ARM = re.compile(
    rb"(...\x52)(?:" + _ZERO + _STORE_WORD + rb"|" + _STORE_WORD + _ZERO + rb")" + _RETURN, re.DOTALL
)
"""The same on AArch64: MOVZ, STR (without offset) and ``mov w0, 0`` in either order, RET."""


def constants(code: bytes, machine: str) -> list[int]:
    """The constants in ``code``, in order; empty for other processors."""
    if machine == "x86_64":
        found = [*_STORED.finditer(code), *_LOADED.finditer(code)]
        return [struct.unpack("<I", match[1])[0] for match in sorted(found, key=lambda match: match.start())]
    return _moved(code) if machine == "aarch64" else []


def stored_through_argument(code: bytes, machine: str) -> set[int]:
    """The numbers that short functions in ``code`` store through an argument before they return 0."""
    if machine == "x86_64":
        return {struct.unpack("<I", match[1])[0] for match in _STORED_AND_DONE.finditer(code)}
    if machine == "aarch64":
        matches = [match for match in _STORED_AND_DONE_ON_ARM.finditer(code) if match.start() % 4 == 0]
        return {number for match in matches for number in _moved(match[1])}
    return set()


def _moved(code: bytes) -> list[int]:
    """Each register's value after the MOVZ and the MOVK that build it."""
    found: list[tuple[int, int]] = []
    for word in struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4]):
        register, value, shift = word & 31, word >> 5 & 0xFFFF, (word >> 21 & 1) * 16
        if word & _OPCODE == _MOVE:
            found.append((register, value << shift))
        elif word & _OPCODE == _KEEP:
            place = next((i for i in range(len(found) - 1, -1, -1) if found[i][0] == register), None)
            if place is not None:
                found[place] = (register, found[place][1] & ~(0xFFFF << shift) | value << shift)
    return [value for _, value in found]
