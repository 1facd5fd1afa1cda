"""Figures kept for later comparison: what is written is what is read, and nothing is read from bad files."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from envcheck.checks import Report
from envcheck.errors import UsageError
from envcheck.pipeline.session import Request, judge
from envcheck.report.saved import baseline
from envcheck.snapshot import Measurement
from tests.every import every
from tests.rules.machines import but, h200, machine
from tests.rules.speed.measurements import conditions, gemm, memory_copy, to_gpu, wrong


def reported(*figures: Measurement) -> Report:
    return judge(machine(h200(sm_count=132), measurements=figures), Request())


def read(path: Path) -> tuple[Measurement, ...]:
    return baseline.read(path.read_bytes(), str(path))


def test_round_trip(tmp_path: Path) -> None:
    figures = (memory_copy(), gemm(), to_gpu())
    baseline.save(reported(*figures), str(tmp_path / "base.json"))
    assert read(tmp_path / "base.json") == tuple(but(each, conditions=None, verification=None) for each in figures)
    assert list(tmp_path.iterdir()) == [tmp_path / "base.json"]


def test_it_says_when_and_where_it_was_written(tmp_path: Path) -> None:
    report = reported(gemm())
    baseline.save(report, str(tmp_path / "base.json"))
    document = json.loads((tmp_path / "base.json").read_text())
    assert document["baseline_version"] == "1.0"
    assert document["created"] == report.created
    assert document["tool"] == report.tool.version


@pytest.mark.parametrize(
    "left_out",
    [
        but(gemm(), value=None, samples=(), missing="no cuBLASLt was found"),
        gemm(verification=wrong()),
        gemm(conditions=conditions(utilisation_before=90.0)),
        gemm(conditions=conditions(memory_before=100 << 30)),
    ],
)
def test_what_nothing_can_be_held_to_is_left_out(left_out: Measurement, tmp_path: Path) -> None:
    baseline.save(reported(left_out, memory_copy()), str(tmp_path / "base.json"))
    assert [each.name for each in read(tmp_path / "base.json")] == ["device-memory-copy"]
    with pytest.raises(UsageError, match="no figure to compare with later"):
        baseline.save(reported(left_out), str(tmp_path / "other.json"))
    assert not (tmp_path / "other.json").exists()


@every(
    [
        "",
        "{}",
        "[]",
        "null",
        "{" * 100000,
        '{"measurements": []}',
        '{"measurements": [{"value": 1.0}]}',
        '{"measurements": [{"source": "bench", "name": "gemm", "value": "fast"}]}',
        '{"baseline_version": "2.0", "measurements": [{"source": "bench", "name": "gemm"}]}',
        "\x00\xff",
    ]
)
def test_bad_files_are_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^old\.json is no baseline"):
        baseline.read(text.encode("utf-8", "surrogateescape"), "old.json")


def test_a_report_is_no_baseline() -> None:
    with pytest.raises(UsageError, match="no baseline"):
        baseline.read(msgspec.json.encode(reported()), "report.json")
