"""Packages whose GPU support comes with an extra: which extra was asked for decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envcheck.compat.load import load_matrix
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import ExtraRow
from envcheck.components import parse_components
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from tests.plans.reading import judge, named, packages, plan

A100 = "gpu==A100,driver==525.85.12"
NEW = "gpu==H100,driver==580.65.06"


def status(folder: Path, text: str, machine: str, name: str = "jax") -> str:
    return named(judge(plan(folder, requirements__txt=text), machine), "plan-does-not-fit", name).status


@pytest.mark.parametrize(
    ("text", "machine", "expected"),
    [
        ("jax[cuda12]==0.7.2\n", A100, "pass"),
        ("jax[CUDA13]==0.7.2\n", A100, "fail"),
        ("jax[cuda13]==0.7.2\n", NEW, "pass"),
        ("jax[cuda13-local]==0.7.2\n", "gpu==V100,driver==580.65.06", "fail"),
        ("jax[cuda12_pip]==0.4.25\n", "gpu==A100,driver==470.57.02", "fail"),
        ("jax[cuda11_pip]==0.4.25\n", "gpu==A100,driver==470.57.02", "pass"),
        ("jax==0.7.2\n", NEW, "fail"),
        ("jax[cpu]==0.7.2\n", NEW, "fail"),
        ("jax==0.7.2\njaxlib==0.7.2\njax-cuda13-plugin==0.7.2\n", NEW, "pass"),
        ("jax==0.4.25\njaxlib==0.4.25+cuda12.cudnn89\n", A100, "pass"),
        ("jax==0.7.2\n-e .\n", NEW, "unknown"),
    ],
)
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


@pytest.mark.parametrize(
    ("files", "exit_code"),
    [
        ({"requirements__txt": "tensorflow==2.15.0\n"}, 3),
        ({"requirements__txt": "tensorflow[and-cuda]==2.15.0\n"}, 0),
        ({"requirements__txt": f"tensorflow==2.15.0\n{NVIDIA}"}, 0),
        ({"Dockerfile": "FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04\nRUN pip install tensorflow==2.15.0\n"}, 0),
        ({"Dockerfile": "FROM nvidia/cuda:12.2.2-runtime-ubuntu22.04\nRUN pip install tensorflow==2.15.0\n"}, 3),
        ({"Dockerfile": "FROM tensorflow/tensorflow:2.15.0-gpu\n"}, 0),
    ],
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
