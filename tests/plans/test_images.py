"""Dockerfiles and environments of conda."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from tests.plans.reading import packages, plan, versions

DOCKERFILE = """ARG CUDA=11.7.1
FROM nvidia/cuda:${CUDA}-cudnn8-runtime-ubuntu20.04 AS base
ENV TORCH=2.0.1
RUN apt-get update && \\
    # a comment inside
    apt-get install -y python3-pip
FROM python:3.9 AS other
RUN pip install torch==1.13.1
FROM base
RUN --mount=type=cache,target=/root/.cache pip install --no-cache-dir \\
    torch==2.0.1 --index-url https://download.pytorch.org/whl/cu117 && rm -rf /tmp/x
RUN ["python3", "-m", "pip", "install", "--no-deps", "vllm==0.6.0"]
"""


def test_the_last_stage_and_what_it_is_built_from_count(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, Dockerfile=DOCKERFILE))
    assert {name: (each.version, each.line) for name, each in found.items()} == {
        "cuda": ("11.7.1", 2),
        "cudnn": ("8", 2),
        "ubuntu": ("20.04", 2),
        "torch": ("2.0.1", 10),
        "vllm": ("0.6.0", 12),
    }
    assert (found["torch"].build, found["cuda"].image) == ("cu117", "nvidia/cuda:11.7.1-cudnn8-runtime-ubuntu20.04")


def test_an_image_with_a_framework_is_replaced_by_what_is_installed(tmp_path: Path) -> None:
    image = "FROM docker.io/pytorch/pytorch:2.0.1-cuda11.7-cudnn8-runtime\n"
    assert versions(plan(tmp_path, Dockerfile=image))["torch"] == "2.0.1+cu117"
    assert versions(plan(tmp_path, Dockerfile=f"{image}RUN pip install torch==2.4.0\n"))["torch"] == "2.4.0"


@pytest.mark.parametrize(
    "line",
    [
        "FROM nvcr.io/nvidia/pytorch:99.99-py3",
        "FROM registry.example/team/base:1",
        "FROM debian AS a\nFROM registry.example/team/base AS b\nFROM b",
        "ARG BASE\nFROM ${BASE}",
        "FROM debian\nARG WHAT\nRUN pip install $WHAT",
        "FROM debian\nRUN pip install -r /app/requirements.txt",
        "FROM debian\nRUN uv sync --frozen",
        "FROM debian\nRUN conda install --file env.txt",
        "FROM debian\nRUN pip install 'torch==2.0.1",
    ],
)
def test_what_is_not_known_stays_open(tmp_path: Path, line: str) -> None:
    found = packages(plan(tmp_path, Dockerfile=line + "\n"))
    assert [each.problem for each in found.values() if not each.name]


def test_a_requirements_file_beside_it_is_read(tmp_path: Path) -> None:
    found = packages(
        plan(
            tmp_path,
            Dockerfile="FROM debian\nCOPY requirements.txt /app/\nRUN pip install -r /app/requirements.txt\n",
            _requirements__txt="numpy\ntorch==2.0.1\n",
        )
    )
    assert found["torch"].source == f"{tmp_path}/requirements.txt:2"


def test_a_file_without_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no FROM line"):
        plan(tmp_path, Dockerfile="RUN true\n")


def test_conda(tmp_path: Path) -> None:
    text = """name: x
channels: [pytorch]
dependencies:
  - python=3.10
  - pytorch::pytorch=2.0.1=py3.10_cuda11.7_cudnn8.5.0_0
  - numpy>=1.26
  - pip:
    - --extra-index-url https://download.pytorch.org/whl/cu118
    - vllm==0.6.0
"""
    environment = plan(tmp_path, environment__yml=text)
    found = packages(environment)
    assert (found["pytorch"].version, found["pytorch"].conda, found["pytorch"].line) == (
        "2.0.1",
        "py3.10_cuda11.7_cudnn8.5.0_0",
        5,
    )
    assert (found["python"].bounds, found["numpy"].version, found["vllm"].line) == ("==3.10.*", None, 9)
    assert environment.python == "3.10"
    assert environment.frameworks is not None
    assert [(each.name, each.cuda) for each in environment.frameworks.items] == [("torch", "11.7")]


@pytest.mark.parametrize(
    "text", ["", "a: [", "dependencies: 3", "channels: [conda-forge]", "a: 1\n---\nb: 1", "[" * 5000, "#" * 600_000]
)
def test_bad_yaml_is_a_usage_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"environment\.yml"):
        plan(tmp_path, environment__yml=text)


def test_tags_of_yaml_construct_nothing(tmp_path: Path) -> None:
    text = "dependencies:\n  - !!python/object/apply:os.system ['touch made']\n"
    assert [each.line for each in plan(tmp_path, environment__yml=text).planned or ()] == [2]
    assert not Path("made").exists()


def test_a_hostile_line_of_conda_stays_open(tmp_path: Path) -> None:
    (found,) = plan(tmp_path, environment__yml=f"dependencies: ['a={',' * 280}=']\n").planned or ()
    assert "no package of conda's" in (found.problem or "")
