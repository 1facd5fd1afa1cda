"""Packages of a plan however they are spelled: by extra, by source, and two that fill one folder."""

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import parse_version
from envcheck.knowledge.tables.software import ExtraRow
from envcheck.model.checks import PLAN
from envcheck.model.components import parse_components
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.plans.readers.environment_yml import of_conda
from envcheck.plans.sheet import Sheet
from tests.every import cases, tabled
from tests.plans.reading import judge, named, packages, plan


def status(folder: Path, text: str, machine: str, name: str = "jax") -> str:
    return named(judge(plan(folder, requirements__txt=text), machine), "plan-does-not-fit", name).status


@pytest.mark.parametrize("row", load_matrix().extras, ids=lambda row: row.id)
def test_every_row_is_about_known_releases(row: ExtraRow) -> None:
    matrix = load_matrix()
    spec = SpecifierSet(row.versions)
    covered = [str(known) for known in matrix.named_versions(row.name) if spec.contains(str(known))]
    assert covered
    for name, bound in row.brings.items():
        text = covered[-1] if bound == "=" else bound
        version = parse_version(text)
        assert version is not None
        assert name in ("cuda", "cudnn") or matrix.rows_for(name, version), (name, text)


def test_pypi_has_pytorch_for_the_cpu_alone_on_aarch64(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.5.1\n")
    assume = parse_components("gpu==GH200,driver==550.54.14,os==linux,machine==aarch64")
    assert named(session.check(Request(assume=assume, planned=environment)), "cpu-only-build", "torch").status == "fail"


# --- Packages whose source alone is on PyPI -------------------------------------------------------------------------
H100_COMPILED = "gpu==H100,driver==580.65.06"
TORCH = "RUN pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124"
DEVEL, RUNTIME = "nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"
FLASH, SHARED = "flash-attn==2.7.4.post1", "--no-build-isolation"


@cases(
    "text, status, told",
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
)
def test_an_image_in_which_a_package_is_compiled(tmp_path: Path, text: str, status: str, told: str) -> None:
    name = text.rpartition("==")[0].split()[-1]
    check = named(judge(plan(tmp_path, Dockerfile=f"{text}\n"), H100_COMPILED), PLAN, name)
    assert (check.status, told in check.message) == (status, True), check.message


# --- Every way to ask for a known package is read -------------------------------------------------------------------
@tabled
def test_conda_writes_one_package_in_many_ways(text: str, bounds: str, build: str) -> None:
    found = of_conda(Sheet("environment.yml", "", load_matrix(), {}), text, 3)
    assert (found.bounds, found.conda, found.problem) == (bounds, build, None)


def test_alternatives_of_conda_stay_open() -> None:
    found = of_conda(Sheet("environment.yml", "", load_matrix(), {}), "cupy=12|13", 3)
    assert (found.version, found.bounds) == (None, "")
    assert "alternatives" in (found.problem or "")
    with pytest.raises(UsageError, match="no package of conda's"):
        of_conda(Sheet("environment.yml", "", load_matrix(), {}), "a b c d", 3)


@tabled
def test_a_variable_in_a_requirement_leaves_it_open(tmp_path: Path, line: str, name: str) -> None:
    environment = plan(tmp_path, requirements__txt=f"torch==2.9.1\n{line}\n")
    assert packages(environment)[name].line == 2
    assert judge(environment, "gpu==H100,driver==550.54.14").exit_code == 3
    assert packages(plan(tmp_path, Dockerfile=f'FROM python:3.11\nRUN pip install "{line}"\n'))[name].version is None
