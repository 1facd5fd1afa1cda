"""Every way to ask for a known package is read: none vanishes for the way in which a file writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.compat.load import load_matrix
from envcheck.errors import UsageError
from envcheck.plans import read_plans
from envcheck.plans.readers.environment_yml import of_conda
from envcheck.plans.sheet import Sheet
from tests.plans.reading import judge, packages, plan

PROJECT = """[project]
name = "App"
dependencies = ["torch==2.9.1"]
[project.optional-dependencies]
cuda = ["cupy-cuda12x==13.6.0", "app[Fast]"]
fast = ["xformers", "app[all]"]
all = ["app[cuda]", "bitsandbytes"]
[dependency-groups]
gpu = ["flash-attn", { include-group = "more" }]
more = ["deepspeed", { include-group = "gpu" }]
"""


@pytest.mark.parametrize(
    ("asked", "also"),
    [
        ("", set()),
        ("[all]", {"cupy-cuda12x", "xformers", "bitsandbytes"}),
        ("[more]", {"flash-attn", "deepspeed"}),
        ("[fast,gpu]", {"cupy-cuda12x", "xformers", "bitsandbytes", "flash-attn", "deepspeed"}),
    ],
)
def test_extras_and_groups_bring_what_they_include(tmp_path: Path, asked: str, also: set[str]) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    found = read_plans([f"{tmp_path}/pyproject.toml{asked}"], load_matrix(), {"sys_platform": "linux"})
    assert set(packages(found)) - {"app"} == {"torch", *also}


@pytest.mark.parametrize(
    ("text", "bounds", "build"),
    [
        ("cuda-version 11.8", "==11.8", ""),
        ("numpy 1.8*", "==1.8.*", ""),
        ("cudnn 8.9.* h123_0", "==8.9.*", "h123_0"),
        ("pytorch 2.0.1 py3.10_cuda11.7_0", "==2.0.1", "py3.10_cuda11.7_0"),
        ("pytorch==2.0.1=py3.10_cuda11.7_0", "==2.0.1", "py3.10_cuda11.7_0"),
        ("pytorch-gpu=*=*cuda*", "", ""),
        ("pytorch=2.*=*cuda12*", "==2.*", ""),
        ("pytorch[version='>=2.1', build=cuda118_0]", ">=2.1", "cuda118_0"),
        ("pytorch[version=2.1.0]", "==2.1.0", ""),
        ("conda-forge/linux-64::cupy", "", ""),
    ],
)
def test_conda_writes_one_package_in_many_ways(text: str, bounds: str, build: str) -> None:
    found = of_conda(Sheet("environment.yml", "", load_matrix(), {}), text, 3)
    assert (found.bounds, found.conda, found.problem) == (bounds, build, None)


def test_alternatives_of_conda_stay_open() -> None:
    found = of_conda(Sheet("environment.yml", "", load_matrix(), {}), "cupy=12|13", 3)
    assert (found.version, found.bounds) == (None, "")
    assert "alternatives" in (found.problem or "")
    with pytest.raises(UsageError, match="no package of conda's"):
        of_conda(Sheet("environment.yml", "", load_matrix(), {}), "a b c d", 3)


def test_conda_chooses_torchvision_for_a_pinned_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    machine = "gpu==A100,driver==515.105.01"
    pinned = "dependencies: [pytorch=2.0.1=py3.10_cuda11.7_cudnn8.5.0_0, torchvision, pytorch-cuda=11.7]\n"
    assert judge(plan(tmp_path, environment__yml=pinned), machine).exit_code == 0
    assert judge(plan(tmp_path, environment__yml="dependencies: [torchvision]\n"), machine).exit_code == 3


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("cupy-cuda12x==${CUPY_VERSION}", "cupy-cuda12x"),
        ("flash_attn [x] >= ${FLASH}", "flash-attn"),
        ("${PACKAGE}==1.0", ""),
    ],
)
def test_a_variable_in_a_requirement_leaves_it_open(tmp_path: Path, line: str, name: str) -> None:
    environment = plan(tmp_path, requirements__txt=f"torch==2.9.1\n{line}\n")
    assert packages(environment)[name].line == 2
    report = judge(environment, "gpu==H100,driver==550.54.14")
    assert report.exit_code == 3
    text = f'FROM python:3.11\nRUN pip install "{line}"\n'
    assert packages(plan(tmp_path, Dockerfile=text))[name].version is None
