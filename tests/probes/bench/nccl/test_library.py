"""The real library, where one is: what it says of itself without a GPU, and files that are none."""

from __future__ import annotations

import ctypes
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from probes.measuring.device import LibraryError, Unavailable
from probes.measuring.nccl.library import ID_BYTES, KINDS, Nccl, UniqueId
from probes.measuring.nccl.operations import OPERATIONS
from probes.measuring.nccl.worker import prepared


def bench(*paths: str) -> Any:
    class Bench:
        libraries = {"nccl": list(paths)}

    return Bench()


def _installed() -> str | None:
    """ENVCHECK_NCCL, or the wheel of this environment."""
    for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12"):
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        return next((str(file.locate()) for file in files if file.name == "libnccl.so.2"), None)
    return os.environ.get("ENVCHECK_NCCL")


FILE = _installed()
real = pytest.mark.skipif(FILE is None, reason="no nvidia-nccl wheel here, and ENVCHECK_NCCL names no libnccl.so.2")


@real
def test_the_library_has_every_function_and_tells_its_version() -> None:
    nccl = Nccl(bench(FILE or ""))
    major, minor, _ = map(int, nccl.version.split("."))
    assert (major, minor) >= (2, 7)
    used = {operation.function for operation in OPERATIONS.values() if operation.function}
    used |= {"ncclSend", "ncclRecv", "ncclGroupStart", "ncclGroupEnd", "ncclCommInitRank", "ncclCommGetAsyncError"}
    assert {name for name in used if not nccl.offers(name)} == set()


@real
def test_a_failed_call_is_told_in_the_librarys_words() -> None:
    nccl = Nccl(bench(FILE or ""))
    with pytest.raises(LibraryError, match=r"^ncclCommGetAsyncError: invalid argument.* \(4\)"):
        nccl.check(ctypes.c_void_p(None))


def test_a_file_that_is_no_library_fails_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "libnccl.so.2"
    file.write_bytes(b"\x7fELF" + bytes(60))
    with pytest.raises(LibraryError, match="NCCL cannot be loaded") as caught:
        Nccl(bench(str(file)))
    assert caught.value.path == str(file)


def test_no_library_is_not_a_failure() -> None:
    with pytest.raises(Unavailable, match="no NCCL was found"):
        Nccl(bench())


def test_prepared_arguments_reach_the_function_unchanged() -> None:
    seen: list[tuple[int, ...]] = []
    kinds = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)

    def take(*given: int) -> int:
        seen.append(given)
        return 0

    called = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(take)
    function = ctypes.cast(called, ctypes.CFUNCTYPE(ctypes.c_int))
    values = (0x7F00DEADBEEF0000, 8 << 30, 9, 0xFFFFFFFFFFFFFFF0)
    assert function(*prepared(tuple(kind(value) for kind, value in zip(kinds, values, strict=True)))) == 0
    assert seen == [values]


def test_the_id_is_as_long_as_the_header_says() -> None:
    assert ctypes.sizeof(UniqueId) == ID_BYTES == 128
    assert KINDS == {"int32": 2, "fp16": 6, "fp32": 7, "bf16": 9}
