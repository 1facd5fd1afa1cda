"""NCCL's own log: what it connected GPUs over, what it chose, and the lines that go with a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.measuring.nccl.log import choices, connections, log_variables, read_logs, told

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
    assert told(LINES)[-1] == LINES[-1]
    warning = "node:101:131 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-x" + "x" * 999
    assert told([*LINES, warning, "node:1:1 [0] NCCL INFO later"]) == [warning[:300]]
    assert len(told([f"line {number}" for number in range(1000)])) == 30


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "nccl.1.log").write_bytes(b"first\n" + b"x" * (5 << 20) + b"\nlast \xff\n")
    lines = read_logs(str(tmp_path))
    assert lines[-1] == "last \ufffd"
    assert "first" not in lines


@pytest.mark.parametrize(
    ("environment", "kept"),
    [
        ({}, {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}),
        ({"NCCL_DEBUG": "WARN"}, {"NCCL_DEBUG_FILE"}),
        ({"NCCL_DEBUG_FILE": "/var/log/nccl"}, {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"}),
        ({"NCCL_DEBUG_SUBSYS": "ALL"}, {"NCCL_DEBUG", "NCCL_DEBUG_FILE"}),
    ],
)
def test_what_the_environment_sets_stays(environment: dict[str, str], kept: set[str]) -> None:
    found = log_variables(environment, "/folder", choices=False)
    assert set(found) == kept
    assert not set(found) & set(environment)
