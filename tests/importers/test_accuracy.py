"""The counting of ``benchmarks/accuracy.py``, on constructed cases: right, wrong, missed and false alarms."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy import Case, assess, main, summary
from tests.every import every

NO_CODE = (
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\n"
)
HEALTHY = (
    "PyTorch version: 2.5.1+cu124\nCUDA used to build PyTorch: 12.4\nIs CUDA available: True\n"
    "GPU models and configuration: GPU 0: NVIDIA A100 80GB PCIe\nNvidia driver version: 550.127.05\n"
)


def case(dump: str, problem: str, **more: Any) -> Case:
    fields: dict[str, Any] = {"id": "one", "kind": "constructed", "error": "", "severity": "fault", **more}
    return Case(dump=dump, problem=problem, **fields)


@every(
    (case(NO_CODE, "gpu-code-missing"), "right"), (case(NO_CODE, "other", also_right=("gpu-code-missing",)), "right"),
    (case(NO_CODE, "driver-too-old"), "wrong"), (case(HEALTHY, "driver-too-old"), "missed"),
    (case("a poem", "driver-too-old"), "missed"), (case(HEALTHY, "none", severity="healthy"), "quiet"),
    (case("a poem", "none", severity="healthy"), "quiet"), (case(NO_CODE, "none", severity="healthy"), "false alarm"),
    (case(NO_CODE, "driver-older-than-toolkit", severity="remark"), "wrong"),
    (case(HEALTHY, "driver-older-than-toolkit", severity="remark"), "missed"),
)  # fmt: skip
def test_the_result_of_a_case(given: Case, result: str) -> None:
    assert assess(given).result == result


def test_the_error_is_part_of_the_text() -> None:
    assert assess(case("torch 2.1.0", "gpu-code-missing", error=NO_CODE)).result == "right"


def test_the_totals_count_every_case_once() -> None:
    outcomes = [assess(case(NO_CODE, "gpu-code-missing")), assess(case(NO_CODE, "none", severity="healthy"))]
    assert summary(outcomes) == {"right": 1, "tolerated": 0, "wrong": 0, "missed": 0, "quiet": 0, "false alarm": 1}


def test_the_report_names_false_alarms_and_succeeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {
        "id": "x#1", "kind": "k", "dump": NO_CODE, "error": "", "problem": "none", "severity": "healthy",
        "detail": "more",
    }  # fmt: skip
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert main([str(file)]) == 0
    assert "false alarms: 1\n  x#1 (none): gpu-code-missing: fail" in capsys.readouterr().out
    assert main([str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["false alarm"] == 1
    assert main([str(file), "--show", "x#1"]) == 0
    assert "false alarm: expected none, found gpu-code-missing" in capsys.readouterr().out
