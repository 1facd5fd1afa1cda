"""NCCL through ctypes, with failures as exceptions; and its own log: connections, algorithms, last words.

The functions and the numbers of their enumerations are those of nccl.h from NCCL 2.7 on.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from ..library import CudaLibrary
from ..measurement import Bench
from ..runtime import Fields, LibraryError

ID_BYTES = 128
IN_PROGRESS = 7
SUM = 0
KINDS = {"int32": 2, "fp16": 6, "fp32": 7, "bf16": 9}  # Members of ``ncclDataType_t``


class UniqueId(ctypes.Structure):
    """``ncclUniqueId``: how the ranks of a communicator find each other."""

    _fields_ = (("internal", ctypes.c_char * ID_BYTES),)


class Nccl(CudaLibrary):
    """The NCCL that the examined environment would load."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "nccl", "NCCL")
        self.function("ncclGetErrorString").restype = ctypes.c_char_p
        if self.offers("ncclGetLastError"):  # from 2.13 on
            self.function("ncclGetLastError").restype = ctypes.c_char_p

    @property
    def number(self) -> int:
        """``NCCL_VERSION_CODE``; grows with the release."""
        found = ctypes.c_int()
        self.ask("ncclGetVersion", ctypes.byref(found))
        return found.value

    @property
    def version(self) -> str:
        return version_text(self.number)

    @property
    def captures(self) -> bool:
        """Whether what it queues can be recorded in a CUDA graph: from 2.9 on; this function came with 2.11."""
        return self.offers("ncclRedOpCreatePreMulSum")

    def describe(self, status: int) -> str:
        words = self.function("ncclGetErrorString")(status) or b""
        last = self.function("ncclGetLastError")(None) if self.offers("ncclGetLastError") else b""
        text = words.decode("utf-8", "replace")
        more = (last or b"").decode("utf-8", "replace").strip()
        return f"{text} ({status})" + (f": {more[:300]}" if more else "")

    def unique_id(self) -> bytes:
        """What the ranks of a new communicator need; the process that makes it must live as long as they connect."""
        found = UniqueId()
        self.ask("ncclGetUniqueId", ctypes.byref(found))
        return bytes(found)

    @contextmanager
    def group(self) -> Iterator[None]:
        """Calls of several ranks of this process; what they begin, begins at the end of the block."""
        self.ask("ncclGroupStart")
        try:
            yield
        except BaseException:
            with suppress(LibraryError):
                self.ask("ncclGroupEnd")
            raise
        self.ask("ncclGroupEnd")

    def join(self, ranks: int, identity: bytes, rank: int) -> ctypes.c_void_p:
        """Begin to make a rank's communicator, on the current device; in a group it is there at the group's end."""
        made = ctypes.c_void_p()
        self.ask("ncclCommInitRank", ctypes.byref(made), ranks, UniqueId.from_buffer_copy(identity), rank)
        return made

    def split(self, communicators: list[ctypes.c_void_p], colors: list[int]) -> list[ctypes.c_void_p]:
        """New communicators of this process's ranks: those of one color have one; with a color of -1 there is none.

        Raises Unavailable before NCCL 2.18, which cannot.
        """
        made = [ctypes.c_void_p() for _ in communicators]
        with self.group():
            for whole, color, new in zip(communicators, colors, made, strict=True):
                self.ask("ncclCommSplit", whole, color, 0, ctypes.byref(new), None)
        return made

    def check(self, communicator: ctypes.c_void_p) -> None:
        """Raise LibraryError where the communicator met an error since it was made, as when a rank is gone."""
        status = ctypes.c_int()
        self.ask("ncclCommGetAsyncError", communicator, ctypes.byref(status))
        if status.value not in (0, IN_PROGRESS):
            raise LibraryError(f"NCCL: {self.describe(status.value)}", self.path)


def version_text(code: int) -> str:
    """``NCCL_VERSION_CODE`` as text: thousands of the major until 2.8, ten thousands since."""
    major, rest = divmod(code, 10000) if code >= 10000 else divmod(code, 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


SUBSYSTEMS = "INIT,ENV,GRAPH"
CHOICES = "INIT,ENV,GRAPH,TUNING"  # With a line for each operation, which takes NCCL a microsecond or so
_MOST = 4 << 20  # Bytes of one log that are read: the last ones
_VIA = re.compile(
    r" Channel \d+(?:/\d+)? : \d+\[[^\]]{1,20}\] -> \d+\[[^\]]{1,20}\](?: \[\w+\])?"
    r" via ([A-Za-z0-9]+)(?:/([\w ]{1,20}))?"
)
_CHOICE = re.compile(r" (\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)")


def log_variables(environment: Mapping[str, str], folder: str, *, choices: bool) -> dict[str, str]:
    """Variables that make NCCL write its log into ``folder``; what the environment sets itself stays."""
    wanted = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": CHOICES if choices else SUBSYSTEMS,
        "NCCL_DEBUG_FILE": os.path.join(folder, "nccl.%p.log"),
    }
    own = {name for name in wanted if environment.get(name)}
    own |= {"NCCL_DEBUG_SUBSYS"} if "NCCL_DEBUG" in own else set()
    return {name: value for name, value in wanted.items() if name not in own}


def read_logs(folder: str) -> list[str]:
    lines: list[str] = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST))
            lines += file.read(_MOST).decode("utf-8", "replace").splitlines()
    return lines


def connections(lines: list[str]) -> Fields:
    """``transports`` (``P2P/CUMEM``, ``SHM/direct`` …), most frequent first, and numbers of channels."""
    counts: dict[str, int] = {}
    found: Fields = {}
    for line in lines:
        via = _VIA.search(line)
        if via:
            words = "/".join(filter(None, via.groups())).strip()
            counts[words] = counts.get(words, 0) + 1
        channels = re.search(r" (\d+) coll channels(?:, (\d+) collnet channels)?, (\d+) nvls channels", line)
        if channels:
            found["channels"], found["nvls_channels"] = int(channels[1]), int(channels[3])
    found["transports"] = sorted(counts, key=lambda each: -counts[each])
    return found


def choices(lines: list[str]) -> dict[tuple[str, int], tuple[str, str]]:
    """(function, bytes) → algorithm and protocol, in NCCL's words."""
    return {(chosen[1], int(chosen[2])): (chosen[3], chosen[4]) for line in lines if (chosen := _CHOICE.search(line))}


def last_words(lines: list[str]) -> list[str]:
    """What helps to find a failure's cause: warnings, else the last lines; bounded."""
    warnings = [line for line in lines if " NCCL WARN " in line]
    return [line[:300] for line in (warnings or lines)[-30:]]
