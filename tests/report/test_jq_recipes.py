"""The recipes of docs/json.md do what they say, with the jq that is installed."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from envcheck.model.checks import Figure, Report
from envcheck.pipeline.session import Request, judge
from envcheck.report import render
from tests.report.examples import EXAMPLES, about, check, gpu, machine, report
from tests.rules.speed.test_straggler import with_gpus

RECIPES = re.findall(
    r"^    jq (-\w) '(.+)' report\.json$",
    (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
JQ = shutil.which("jq")
needs_jq = pytest.mark.skipif(JQ is None, reason="jq is not installed")


def answer(number: int, found: Report, folder: Path) -> list[str]:
    """The lines that a recipe prints."""
    (folder / "report.json").write_text(render(found, "json"), encoding="utf-8")
    option, program = RECIPES[number]
    done = subprocess.run(
        [str(JQ), option, program, "report.json"], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def with_fix(name: str) -> Report:
    """As ``conclude`` makes it: the fix of the root cause at the top."""
    found = EXAMPLES[name]()
    cause = found.check(found.primary_check)
    assert cause
    return msgspec.structs.replace(found, fix=cause.fixes[:1])


def test_there_are_six() -> None:
    assert len(RECIPES) == 6


@needs_jq
def test_the_verdict(tmp_path: Path) -> None:
    assert answer(0, EXAMPLES["warned"](), tmp_path) == ["warn (0): Row remapping waits for a reset of the GPU"]


@needs_jq
def test_the_commands_of_the_fix(tmp_path: Path) -> None:
    found = with_fix("driver-too-old")
    assert [tuple(shlex.split(line)) for line in answer(1, found, tmp_path)] == [found.fix[0].command]
    assert answer(1, EXAMPLES["healthy"](), tmp_path) == []


@needs_jq
def test_the_findings(tmp_path: Path) -> None:
    assert [line.split("\t")[:2] for line in answer(2, EXAMPLES["driver-too-old"](), tmp_path)] == [
        ["fail", "driver-too-old"],
        ["warn", "pcie-link-degraded"],
    ]


@needs_jq
def test_the_low_figures(tmp_path: Path) -> None:
    found = gpu(3)
    shares = {"device-memory-read": 0.5, "device-memory-copy": 0.9}
    checks = [
        check(
            "slow-gpu-memory",
            "warn",
            subject=about(found),
            figure=Figure(
                name=name, value=share * 4e12, unit="B/s", gpu=3, ceiling=4e12, share=share, expected_low=0.8,
                expected_high=0.95,
            ),
        )
        for name, share in shares.items()
    ]  # fmt: skip
    lines = answer(3, report(checks, machine((found,), None)), tmp_path)
    assert [line.split("\t") for line in lines] == [["3", "device-memory-read", "2000000000000", "B/s", "0.5"]]


@needs_jq
def test_gpus_and_frameworks(tmp_path: Path) -> None:
    (line,) = answer(4, EXAMPLES["healthy"](), tmp_path)
    assert json.loads(line) == {
        "gpus": [{"index": 0, "name": "NVIDIA H200", "gib": 140}],
        "frameworks": [{"name": "torch", "version": "2.11.0+cu130"}],
    }
    empty = report([], msgspec.structs.replace(machine((), None), gpus=None, environments=None))
    assert json.loads(answer(4, empty, tmp_path)[0]) == {"gpus": [], "frameworks": []}


@needs_jq
def test_how_far_gpus_lie_apart(tmp_path: Path) -> None:
    (line,) = answer(5, judge(with_gpus(3, 820e12, 800e12, 600e12), Request()), tmp_path)
    name, low, high, difference, slow = line.split("\t")
    assert (name, float(low), float(high), slow) == ("gemm-bf16-8192x8192x8192", 600e12, 820e12, "2")
    assert float(difference) == pytest.approx(220 / 820)
    assert answer(5, EXAMPLES["healthy"](), tmp_path) == []
