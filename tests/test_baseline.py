"""Figures kept for later comparison: what is written is what is read, and nothing is read from bad files."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from envcheck.checks import Report
from envcheck.errors import UsageError
from envcheck.pipeline.session import Request, judge
from envcheck.redact import redact
from envcheck.report.saved import baseline
from envcheck.snapshot import Measurement
from tests.every import every
from tests.rules.machines import but, h200, machine
from tests.rules.speed.measurements import conditions, gemm, memory_copy, to_gpu, wrong


def reported(*figures: Measurement) -> Report:
    return judge(machine(h200(sm_count=132), measurements=figures), Request())


def read(path: Path) -> tuple[Measurement, ...]:
    return baseline.read(path.read_bytes(), str(path)).measurements


def test_round_trip(tmp_path: Path) -> None:
    figures = (memory_copy(), gemm(), to_gpu())
    baseline.save(reported(*figures), str(tmp_path / "base.json"))
    assert read(tmp_path / "base.json") == tuple(but(each, conditions=None, verification=None) for each in figures)
    assert list(tmp_path.iterdir()) == [tmp_path / "base.json"]


def test_it_says_when_and_where_it_was_written(tmp_path: Path) -> None:
    report = reported(gemm())
    baseline.save(report, str(tmp_path / "base.json"))
    document = json.loads((tmp_path / "base.json").read_text())
    assert (document["baseline_version"], document["created"]) == ("1.0", report.created)
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
    with pytest.raises(UsageError, match=r"^old\.json is not a baseline"):
        baseline.read(text.encode("utf-8", "surrogateescape"), "old.json")


def test_a_report_is_a_baseline_with_the_same_figures(tmp_path: Path) -> None:
    report = reported(memory_copy(), gemm(), gemm("fp8", verification=wrong()))
    baseline.save(report, str(tmp_path / "base.json"))
    found = baseline.read(msgspec.json.encode(report), "report.json")
    assert found == baseline.read((tmp_path / "base.json").read_bytes(), "base.json")
    assert [(each.name, each.precision) for each in found.measurements] == [
        ("device-memory-copy", None),
        ("gemm", "bf16"),
    ]


def test_a_report_that_compares_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="old is not a baseline: it holds no figure"):
        baseline.read(msgspec.json.encode(reported()), "old")
    with pytest.raises(UsageError, match="old is redacted, so its GPUs cannot be recognized"):
        baseline.read(msgspec.json.encode(redact(reported(gemm()))), "old")
    with pytest.raises(UsageError, match=r"old is not a baseline: the saved report has schema 99\.0"):
        baseline.read(b'{"schema_version": "99.0"}', "old")


def test_of_many_runs_the_newest_count() -> None:
    runs = [
        baseline.Baseline(created=f"2026-{number:02}-01T00:00:00Z", measurements=(memory_copy(number * 1e12),))
        for number in (12, 3, *range(4, 12), 1, 2, *range(13, 20))
    ]
    kept = baseline.newest(runs)
    assert [each.value for each in kept] == [number * 1e12 for number in range(4, 20)]
