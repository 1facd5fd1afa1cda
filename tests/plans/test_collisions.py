"""Packages that fill one folder in every release: found without versions, with the fix that leaves the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.checks import PLAN
from tests.plans.reading import judge, named, plan

H100 = "gpu==H100,driver==550.54.14"


@pytest.mark.parametrize(
    ("text", "rule", "fix"),
    [
        ("cupy-cuda11x\ncupy-cuda12x==13.6.0\n", "cupy-multiple-packages", "Keep cupy-cuda12x alone in the plan"),
        ("cupy\ncupy-cuda12x\n", "cupy-multiple-packages", "Keep cupy-cuda12x alone in the plan"),
        ("onnxruntime\nonnxruntime-gpu\n", "onnxruntime-cpu-and-gpu", "Keep onnxruntime-gpu alone in the plan"),
        ("onnxruntime-gpu>=1.18\nonnxruntime-openvino==1.20.0\n", "onnxruntime-cpu-and-gpu", "Keep onnxruntime-gpu"),
        ("nvidia-nccl-cu11\nnvidia-nccl-cu12\ntorch==2.9.1\n", "nvidia-wheel-conflict", "Remove nvidia-nccl-cu11"),
        ("torch==2.9.1\nnvidia-nvshmem-cu13\n", "nvidia-wheel-conflict", "Remove nvidia-nvshmem-cu13 from the plan"),
    ],
)
def test_a_collision_of_every_release_needs_no_version(tmp_path: Path, text: str, rule: str, fix: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), H100)
    (check,) = (each for each in report.checks if each.rule == rule)
    assert check.status in ("fail", "warn")
    assert check.fixes[0].text.startswith(fix)
    assert check.location is not None
    assert report.exit_code in (1, 3)


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-cudnn-cu11\nnvidia-cudnn-cu12\n",  # releases 8 and 9 differ in their file names
        "torch==2.9.1\nnvidia-nccl-cu12\n",
        "onnxruntime\nonnxruntime-openvino\n",  # neither is for NVIDIA's GPUs
    ],
)
def test_what_only_some_releases_share_is_no_collision(tmp_path: Path, text: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), H100)
    rules = ("cupy-multiple-packages", "onnxruntime-cpu-and-gpu", "nvidia-wheel-conflict")
    assert not [each for each in report.checks if each.rule in rules and each.status in ("fail", "warn")]


@pytest.mark.parametrize("also", ["nvidia-nccl-cu12==2.19.3\n", ""])
def test_a_wheel_that_overwrites_what_pytorch_requires_is_removed(tmp_path: Path, also: str) -> None:
    text = f"torch==2.2.0\nnvidia-nccl-cu11==2.19.3\n{also}"
    report = judge(plan(tmp_path, requirements__txt=text), H100)
    check = named(report, PLAN, "nvidia-nccl-cu11")
    assert (check.status, report.primary) == ("fail", check.rule)
    required = "torch 2.2.0 requires nvidia-nccl-cu12, which writes the same files"
    assert [fix.text for fix in check.fixes] == [f"Remove nvidia-nccl-cu11: {required}."]
