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
from tests.every import cases
from tests.plans.reading import judge, named, packages, plan, plan_at

A100 = "gpu==A100,driver==525.85.12"
NEW = "gpu==H100,driver==580.65.06"


def status(folder: Path, text: str, machine: str, name: str = "jax") -> str:
    return named(judge(plan(folder, requirements__txt=text), machine), "plan-does-not-fit", name).status


@cases("text, machine, expected",
    ("jax[cuda12]==0.7.2\n", A100, "pass"), ("jax[CUDA13]==0.7.2\n", A100, "fail"),
    ("jax[cuda13]==0.7.2\n", NEW, "pass"), ("jax[cuda13-local]==0.7.2\n", "gpu==V100,driver==580.65.06", "fail"),
    ("jax[cuda12_pip]==0.4.25\n", "gpu==A100,driver==470.57.02", "fail"),
    ("jax[cuda11_pip]==0.4.25\n", "gpu==A100,driver==470.57.02", "pass"), ("jax==0.7.2\n", NEW, "fail"),
    ("jax[cpu]==0.7.2\n", NEW, "fail"), ("jax==0.7.2\njaxlib==0.7.2\njax-cuda13-plugin==0.7.2\n", NEW, "pass"),
    ("jax==0.4.25\njaxlib==0.4.25+cuda12.cudnn89\n", A100, "pass"), ("jax==0.7.2\n-e .\n", NEW, "unknown"),
)  # fmt: skip
def test_the_extra_decides(tmp_path: Path, text: str, machine: str, expected: str) -> None:
    assert status(tmp_path, text, machine) == expected


def test_lines_about_one_package_join_their_extras(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, requirements__txt="jax[cuda12]\njax==0.7.2\n"))["jax"]
    assert (found.version, found.extras) == ("0.7.2", ("cuda12",))


def test_the_missing_extra_is_named_with_its_line(tmp_path: Path) -> None:
    check = named(judge(plan(tmp_path, requirements__txt="numpy\njax==0.7.2\n"), NEW), "plan-does-not-fit", "jax")
    assert check.location is not None
    assert (check.location.line, check.fixes[0].text) == (2, "Ask for jax[cuda13]==0.7.2.")
    assert check.sources


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


H100 = "gpu==H100,driver==550.54.14"
NVIDIA = "nvidia-cudnn-cu12==8.9.4.25\nnvidia-cuda-runtime-cu12==12.2.140\n"


@cases(
    "files, exit_code",
    ({"requirements__txt": "tensorflow==2.15.0\n"}, 3),
    ({"requirements__txt": "tensorflow[and-cuda]==2.15.0\n"}, 0),
    ({"requirements__txt": f"tensorflow==2.15.0\n{NVIDIA}"}, 0),
    ({"Dockerfile": "FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04\nRUN pip install tensorflow==2.15.0\n"}, 0),
    ({"Dockerfile": "FROM nvidia/cuda:12.2.2-runtime-ubuntu22.04\nRUN pip install tensorflow==2.15.0\n"}, 3),
    ({"Dockerfile": "FROM tensorflow/tensorflow:2.15.0-gpu\n"}, 0),
)
def test_tensorflow_finds_cuda_by_its_extra_or_around_it(tmp_path: Path, files: dict[str, str], exit_code: int) -> None:
    assert judge(plan(tmp_path, **files), H100).exit_code == exit_code


def test_a_release_without_a_wheel_for_the_python_cannot_be_installed(tmp_path: Path) -> None:
    environment = plan(tmp_path, python="3.12", requirements__txt="torch==2.0.1\n")
    report = judge(environment, f"{H100.replace('H100', 'A100')},python==3.12")
    assert named(report, "python-unsupported", "torch").status == "fail"


def test_pypi_has_pytorch_for_the_cpu_alone_on_aarch64(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.5.1\n")
    assume = parse_components("gpu==GH200,driver==550.54.14,os==linux,machine==aarch64")
    assert named(session.check(Request(assume=assume, planned=environment)), "cpu-only-build", "torch").status == "fail"


# --- Packages that fill one folder in every release -----------------------------------------------------------------
@cases(
    "text, rule, fix",
    ("cupy-cuda11x\ncupy-cuda12x==13.6.0\n", "cupy-multiple-packages", "Keep cupy-cuda12x alone in the plan"),
    ("cupy\ncupy-cuda12x\n", "cupy-multiple-packages", "Keep cupy-cuda12x alone in the plan"),
    ("onnxruntime\nonnxruntime-gpu\n", "onnxruntime-cpu-and-gpu", "Keep onnxruntime-gpu alone in the plan"),
    ("onnxruntime-gpu>=1.18\nonnxruntime-openvino==1.20.0\n", "onnxruntime-cpu-and-gpu", "Keep onnxruntime-gpu"),
    ("nvidia-nccl-cu11\nnvidia-nccl-cu12\ntorch==2.9.1\n", "nvidia-wheel-conflict", "Remove nvidia-nccl-cu11"),
    ("torch==2.9.1\nnvidia-nvshmem-cu13\n", "nvidia-wheel-conflict", "Remove nvidia-nvshmem-cu13 from the plan"),
)
def test_a_collision_of_every_release_needs_no_version(tmp_path: Path, text: str, rule: str, fix: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), H100)
    (check,) = (each for each in report.checks if each.rule == rule)
    assert check.status in ("fail", "warn")
    assert check.fixes[0].text.startswith(fix)
    assert check.location is not None
    assert report.exit_code in (1, 3)


@cases(
    "text",
    "nvidia-cudnn-cu11\nnvidia-cudnn-cu12\n",  # releases 8 and 9 differ in their file names
    "torch==2.9.1\nnvidia-nccl-cu12\n",
    "onnxruntime\nonnxruntime-openvino\n",  # neither is for NVIDIA's GPUs
)
def test_what_only_some_releases_share_is_no_collision(tmp_path: Path, text: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), H100)
    rules = ("cupy-multiple-packages", "onnxruntime-cpu-and-gpu", "nvidia-wheel-conflict")
    assert not [each for each in report.checks if each.rule in rules and each.status in ("fail", "warn")]


@cases("also", "nvidia-nccl-cu12==2.19.3\n", "")
def test_a_wheel_that_overwrites_what_pytorch_requires_is_removed(tmp_path: Path, also: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"torch==2.2.0\nnvidia-nccl-cu11==2.19.3\n{also}"), H100)
    check = named(report, PLAN, "nvidia-nccl-cu11")
    assert (check.status, report.primary) == ("fail", check.rule)
    required = "torch 2.2.0 requires nvidia-nccl-cu12, which writes the same files"
    assert [fix.text for fix in check.fixes] == [f"Remove nvidia-nccl-cu11: {required}."]


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


@cases("line, exit_code", (FLASH, 3), ("mamba-ssm==2.2.4", 3), ("xformers==0.0.28.post3", 0))
def test_requirements_of_which_pip_would_compile_one(tmp_path: Path, line: str, exit_code: int) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"torch==2.5.1\n{line}\n"), H100_COMPILED)
    assert report.exit_code == exit_code, report.headline


# --- Every way to ask for a known package is read -------------------------------------------------------------------
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


@cases("asked, also",
    ("", set()), ("[all]", {"cupy-cuda12x", "xformers", "bitsandbytes"}), ("[more]", {"flash-attn", "deepspeed"}),
    ("[fast,gpu]", {"cupy-cuda12x", "xformers", "bitsandbytes", "flash-attn", "deepspeed"}),
)  # fmt: skip
def test_extras_and_groups_bring_what_they_include(tmp_path: Path, asked: str, also: set[str]) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    found = plan_at(f"{tmp_path}/pyproject.toml{asked}")
    assert set(packages(found)) - {"app"} == {"torch", *also}


@cases("text, bounds, build",
    ("cuda-version 11.8", "==11.8", ""), ("numpy 1.8*", "==1.8.*", ""), ("cudnn 8.9.* h123_0", "==8.9.*", "h123_0"),
    ("pytorch 2.0.1 py3.10_cuda11.7_0", "==2.0.1", "py3.10_cuda11.7_0"),
    ("pytorch==2.0.1=py3.10_cuda11.7_0", "==2.0.1", "py3.10_cuda11.7_0"), ("pytorch-gpu=*=*cuda*", "", ""),
    ("pytorch=2.*=*cuda12*", "==2.*", ""), ("pytorch[version='>=2.1', build=cuda118_0]", ">=2.1", "cuda118_0"),
    ("pytorch[version=2.1.0]", "==2.1.0", ""), ("conda-forge/linux-64::cupy", "", ""),
)  # fmt: skip
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


@cases(
    "line, name",
    ("cupy-cuda12x==${CUPY_VERSION}", "cupy-cuda12x"),
    ("flash_attn [x] >= ${FLASH}", "flash-attn"),
    ("${PACKAGE}==1.0", ""),
)
def test_a_variable_in_a_requirement_leaves_it_open(tmp_path: Path, line: str, name: str) -> None:
    environment = plan(tmp_path, requirements__txt=f"torch==2.9.1\n{line}\n")
    assert packages(environment)[name].line == 2
    assert judge(environment, "gpu==H100,driver==550.54.14").exit_code == 3
    assert packages(plan(tmp_path, Dockerfile=f'FROM python:3.11\nRUN pip install "{line}"\n'))[name].version is None
