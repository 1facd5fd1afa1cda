"""Entries without an exact version: none vanishes, and what else the plan pins may decide them."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.checks import PLAN, Report
from envcheck.compat.load import load_matrix
from envcheck.compat.question.wheels import published
from tests.plans.reading import judge, named, packages, plan, versions

H100 = "gpu==H100,driver==550.54.14"
TORCH = "torch==2.9.1\n"
_UNKNOWN = "unknown"


def _of(folder: Path, text: str, machine: str = H100) -> Report:
    return judge(plan(folder, requirements__txt=text), machine)


def _open(report: Report) -> set[str]:
    return {
        check.subject.key.rpartition(":")[2]
        for check in report.checks
        if (check.rule, check.status) == (PLAN, _UNKNOWN)
    }


@pytest.mark.parametrize(
    "name",
    [
        "cupy-cuda11x", "cupy-cuda13x", "flash-attn", "xformers>=0.0.20", "bitsandbytes", "numba", "numba-cuda",
        "deepspeed", "nvidia-nccl-cu11", "nvidia-cudnn-cu13", "nvidia-cusparselt-cu13", "nvidia-dali-cuda120",
        "faiss-gpu-cu12", "transformer-engine", "warp-lang", "mamba-ssm", "apex", "cuml-cu12", "ctranslate2>=4",
        "exllamav2", "gsplat", "auto-gptq", "nvidia-cublas-cu11", "nvidia-cuda-runtime-cu13",
    ],
)  # fmt: skip
def test_what_the_matrix_knows_and_no_version_pins_is_told(tmp_path: Path, name: str) -> None:
    report = _of(tmp_path, f"{TORCH}{name}\n")
    bare = name.partition(">")[0]
    assert (_open(report), report.exit_code) == ({bare}, 3)
    check = named(report, PLAN, bare)
    assert check.location is not None
    assert check.location.line == 2
    assert _open(_of(tmp_path, f"{name}\n")) == {bare}


def test_each_open_entry_is_told_and_the_release_that_fits_the_pinned_ones_is_named(tmp_path: Path) -> None:
    report = _of(tmp_path, f"{TORCH}nvidia-nccl-cu11\ncupy-cuda11x\nxformers>=0.0.20\n")
    assert _open(report) == {"nvidia-nccl-cu11", "cupy-cuda11x", "xformers"}
    # Newer releases of xformers require a newer PyTorch.
    assert named(report, PLAN, "xformers").fixes[0].text == "Pin xformers==0.0.33.post2, which fits."


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        (TORCH + "triton\nnvidia-cudnn-cu12\nnvidia-nccl-cu12>=2\n", {"triton": "3.5.1", "nvidia-nccl-cu12": "2.27.5"}),
        ("torch==2.9.1+cu130\nnvidia-cudnn-cu13\n", {"nvidia-cudnn-cu13": "9.13.0.50"}),
        ("torch==2.9.1+cu130\nnvidia-cudnn-cu12\n", {"nvidia-cudnn-cu12": None}),
        ("torchvision==0.24.1\ntorch>=2\ntriton\n", {"torch": "2.9.1", "triton": "3.5.1"}),
        ("vllm==0.19.1\ntorch\n", {"torch": "2.10.0"}),
        ("jax[cuda12]==0.7.2\njax-cuda12-plugin\njaxlib\n", {"jax-cuda12-plugin": "0.7.2", "jaxlib": "0.7.2"}),
        ("-i https://mirror.example/simple\ntorch==2.9.1\nnvidia-cudnn-cu12\n", {"nvidia-cudnn-cu12": None}),
    ],
)
def test_the_requirement_of_a_pinned_package_decides(tmp_path: Path, text: str, decided: dict[str, str | None]) -> None:
    found = versions(plan(tmp_path, requirements__txt=text))
    assert {name: found[name] for name in decided} == decided


def test_what_a_pinned_package_decides_leaves_nothing_open(tmp_path: Path) -> None:
    text = f"{TORCH}triton\nnvidia-cudnn-cu12\nnvidia-nccl-cu12\nnvidia-cublas-cu12\ntorchvision\n"
    assert _of(tmp_path, text).exit_code == 0
    assert _of(tmp_path, "jax[cuda12]==0.7.2\njax-cuda12-plugin\njaxlib\n").exit_code == 0


def test_a_library_that_another_build_of_pytorch_requires_is_not_open(tmp_path: Path) -> None:
    index = "--extra-index-url https://download.pytorch.org/whl/cu126\n"
    assert _open(_of(tmp_path, f"{index}{TORCH}nvidia-nvshmem-cu12\nnvidia-cudnn-cu12\n")) == set()
    assert _open(_of(tmp_path, f"{index}{TORCH}nvidia-nvshmem-cu13\n")) == {"nvidia-nvshmem-cu13"}


def test_a_plan_that_excludes_what_a_pinned_package_requires_is_told(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt=f"{TORCH}triton<3\n")
    assert packages(environment)["triton"].problem == "torch requires triton==3.5.1, which the plan excludes"
    report = judge(environment, H100)
    assert (_open(report), report.exit_code) == ({"triton"}, 3)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("cupy-cuda12x>=12,<14\n", "pass"),
        ("xformers>=0.0.16,<0.0.20\n", "fail"),
        ("numba>=0.50,<0.60\n", _UNKNOWN),
        ("tensorflow[and-cuda]>=2.15,<2.17\n", "pass"),
    ],
)
def test_a_range_with_an_end_is_judged_by_all_known_releases(tmp_path: Path, text: str, status: str) -> None:
    check = named(_of(tmp_path, text), PLAN, text.partition(">")[0].partition("[")[0])
    assert check.status == status
    assert bool(check.fixes) is (status != "pass")


def test_a_package_for_the_processor_is_told_where_its_newest_release_does_not_work_with_a_pinned_one(
    tmp_path: Path,
) -> None:
    machine = "gpu==A100,driver==515.105.01"
    report = _of(tmp_path, "torch==2.0.1\nnumpy\n", machine)
    newest = published(load_matrix(), "numpy")[-1]
    assert (_open(report), report.exit_code) == ({"numpy"}, 3)
    assert f"numpy {newest} does not work with torch 2.0.1; numpy 1.26.4 fits" in named(report, PLAN, "numpy").message
    assert _of(tmp_path, "torch==2.0.1\nnumpy<2\n", machine).exit_code == 0
    assert _of(tmp_path, f"{TORCH}numpy\nrequests\npandas\n").exit_code == 0


def test_conda_leaves_the_same_open(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    text = "dependencies: [pytorch=2.0.1=py3.10_cuda11.7_cudnn8.5.0_0, cupy]\n"
    assert _open(judge(plan(tmp_path, environment__yml=text), "gpu==A100,driver==515.105.01")) == {"cupy"}


@pytest.mark.parametrize("release", ["cupy-cuda12x==99.0", "faiss-gpu==1.7.2", "nvidia-dali-cuda130==99.1"])
def test_a_pinned_release_of_which_nothing_is_known_is_told(tmp_path: Path, release: str) -> None:
    report = _of(tmp_path, f"{TORCH}{release}\n")
    assert (_open(report), report.exit_code) == ({release.partition("=")[0]}, 3)


def test_the_release_that_a_judged_package_requires_needs_no_answer_of_its_own(tmp_path: Path) -> None:
    machine, library = "gpu==H100,driver==580.65.06", "flashinfer-python==0.7.2.post1\n"
    assert _open(_of(tmp_path, library, machine)) == {"flashinfer-python"}
    assert _open(_of(tmp_path, f"vllm==0.33.0\n{library}", machine)) == set()
