"""Packages whose source alone is on PyPI: no pass where their build sees no PyTorch, or where nvcc is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.checks import PLAN
from tests.plans.reading import judge, named, plan

H100 = "gpu==H100,driver==580.65.06"
TORCH = "RUN pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124"
DEVEL, RUNTIME = "nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"
FLASH, SHARED = "flash-attn==2.7.4.post1", "--no-build-isolation"


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        (f"FROM {DEVEL}\n{TORCH}\nRUN pip install {FLASH} {SHARED}", "pass", ""),
        (f"FROM {DEVEL}\n{TORCH}\nENV PIP_NO_BUILD_ISOLATION=0\nRUN pip install {FLASH}", "pass", ""),
        (f"FROM {DEVEL}\n{TORCH}\nRUN uv pip install --no-build-isolation-package flash-attn {FLASH}", "pass", ""),
        (f"FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel\nRUN pip install {FLASH} {SHARED}", "pass", ""),
        (f"FROM {DEVEL}\n{TORCH}\nRUN pip install {FLASH}", "unknown", "in isolation"),
        (f"FROM {DEVEL}\nRUN pip install torch==2.5.1 {FLASH} {SHARED}", "unknown", "no command before"),
        (f"FROM {DEVEL}\nRUN pip install {FLASH} {SHARED}", "unknown", "no command before"),
        (f"FROM {RUNTIME}\n{TORCH}\nRUN pip install {FLASH} {SHARED}", "unknown", "nvcc into the image"),
        (f"FROM python:3.11\n{TORCH}\nRUN pip install {FLASH} {SHARED}", "unknown", "nvcc into the image"),
        (f"FROM {RUNTIME}\n{TORCH}\nRUN pip install mamba-ssm==2.2.4 {SHARED}", "unknown", "nvcc into the image"),
        (f"FROM {DEVEL}\n{TORCH}\nRUN pip install causal-conv1d==1.4.0", "unknown", "in isolation"),
        (f"FROM {RUNTIME}\n{TORCH}\nRUN pip install deepspeed==0.15.4", "pass", ""),
        (f"FROM {RUNTIME}\n{TORCH}\nRUN pip install xformers==0.0.28.post3", "pass", ""),
    ],
)
def test_an_image_in_which_a_package_is_compiled(tmp_path: Path, text: str, status: str, told: str) -> None:
    name = text.rpartition("==")[0].split()[-1]
    check = named(judge(plan(tmp_path, Dockerfile=f"{text}\n"), H100), PLAN, name)
    assert (check.status, told in check.message) == (status, True), check.message


@pytest.mark.parametrize(("line", "exit_code"), [(FLASH, 3), ("mamba-ssm==2.2.4", 3), ("xformers==0.0.28.post3", 0)])
def test_requirements_of_which_pip_would_compile_one(tmp_path: Path, line: str, exit_code: int) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"torch==2.5.1\n{line}\n"), H100)
    assert report.exit_code == exit_code, report.headline
