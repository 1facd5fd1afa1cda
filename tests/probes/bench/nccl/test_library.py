"""NCCL: the real library where one is, its log, its bus bandwidth and its version numbers."""

import ctypes
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from probes.measuring.nccl.library import (
    ID_BYTES,
    KINDS,
    Nccl,
    UniqueId,
    choices,
    connections,
    last_words,
    log_variables,
    read_logs,
    version_text,
)
from probes.measuring.nccl.values import OPERATIONS, operand, tolerance
from probes.measuring.nccl.worker import prepared
from probes.measuring.runtime import LibraryError, Unavailable
from tests.every import cases


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


# --- NCCL's own log: what it connected GPUs over, what it chose, and the lines that go with a failure ---------------
LINES = """\
node:101:131 [0] NCCL INFO Channel 00/24 : 0 1
node:101:131 [0] NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels
node:101:131 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
node:101:131 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM
node:101:131 [0] NCCL INFO Channel 02 : 0[0] -> 1[1] via SHM/direct/direct
node:101:131 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [receive] via NET/Socket/0
node:101:131 [0] NCCL INFO AllReduce: 536870912 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}
node:101:131 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}
""".splitlines()


def test_connections_are_counted() -> None:
    found = connections(LINES)
    assert found["transports"] == ["P2P/CUMEM", "SHM/direct", "NET/Socket"]
    assert (found["channels"], found["nvls_channels"]) == (24, 0)


def test_choices_are_those_of_each_size() -> None:
    assert choices(LINES) == {("AllReduce", 536870912): ("RING", "SIMPLE"), ("AllReduce", 8): ("TREE", "LL")}


def test_a_log_without_such_lines_says_nothing() -> None:
    assert connections(["node:1:1 [0] NCCL INFO something new"]) == {"transports": []}
    assert choices([]) == {}


def test_warnings_go_with_a_failure_else_the_last_lines_bounded() -> None:
    assert last_words(LINES)[-1] == LINES[-1]
    warning = "node:101:131 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-x" + "x" * 999
    assert last_words([*LINES, warning, "node:1:1 [0] NCCL INFO later"]) == [warning[:300]]
    assert len(last_words([f"line {number}" for number in range(1000)])) == 30


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "nccl.1.log").write_bytes(b"first\n" + b"x" * (5 << 20) + b"\nlast \xff\n")
    lines = read_logs(str(tmp_path))
    assert lines[-1] == "last \ufffd"
    assert "first" not in lines


@cases("environment, kept",
    ({}, {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}), ({"NCCL_DEBUG": "WARN"}, {"NCCL_DEBUG_FILE"}),
    ({"NCCL_DEBUG_FILE": "/var/log/nccl"}, {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"}),
    ({"NCCL_DEBUG_SUBSYS": "ALL"}, {"NCCL_DEBUG", "NCCL_DEBUG_FILE"}),
)  # fmt: skip
def test_what_the_environment_sets_stays(environment: dict[str, str], kept: set[str]) -> None:
    found = log_variables(environment, "/folder", choices=False)
    assert set(found) == kept
    assert not set(found) & set(environment)


# --- Bus bandwidth as nccl-tests computes it, and versions as NCCL numbers them -------------------------------------
PRINTED = {
    "all-reduce": (536870912, 2658.39, 353.42), "all-gather": (536870912, 1407.34, 333.80),
    "broadcast": (536870912, 1537.15, 349.26), "reduce": (536870912, 1514.26, 354.54),
    "reduce-scatter": (536870912, 1415.12, 331.96), "all-to-all": (536870912, 1489.76, 315.33),
}  # fmt: skip
"""Bytes, microseconds and GB/s that nccl-tests 2.19.6 printed on eight H200."""


@pytest.mark.parametrize("name", PRINTED)
def test_bus_bandwidth_is_that_of_nccl_tests(name: str) -> None:
    size, microseconds, printed = PRINTED[name]
    assert (size / (microseconds * 1e-6) * OPERATIONS[name].bus_share(8)) / 1e9 == pytest.approx(printed, rel=1e-4)


@cases("code, text", (2708, "2.7.8"), (2804, "2.8.4"), (21003, "2.10.3"), (22809, "2.28.9"))
def test_versions_are_numbered_in_two_ways(code: int, text: str) -> None:
    assert version_text(code) == text


@cases("kind", "fp32", "fp16", "bf16")
def test_operands_are_exact_in_their_type_and_spread(kind: str) -> None:
    bits = {"fp32": 24, "fp16": 11, "bf16": 8}[kind]
    drawn = [operand(kind, seed=99, rank=rank, index=index) for rank in range(3) for index in range(200)]
    assert all(-1 <= value < 1 and (value * 2 ** (bits - 1)).is_integer() for value in drawn)
    assert len(set(drawn)) > {"fp32": 590, "fp16": 400, "bf16": 150}[kind]


def test_more_ranks_round_more_often() -> None:
    assert tolerance("fp32", 8) == 8 * 2.0**-24
    assert tolerance("int32", 8) == 0
