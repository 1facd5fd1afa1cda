"""What plans decide though not every line of them is an exact release, and what they leave open all the same."""

from pathlib import Path

import pytest

from envcheck.errors import ExitCode
from envcheck.model.checks import PLAN
from tests.every import cases
from tests.plans.reading import judge, named, plan

H100 = "gpu==H100,driver==550.54.14"
RTX_5090 = "gpu==RTX 5090,driver==570.86.10"
T4 = "gpu==T4,driver==535.183.01"
INDEX = "--extra-index-url https://download.pytorch.org/whl/"
FITS, FAILS, OPEN = ExitCode.OK, ExitCode.FOUND, ExitCode.UNKNOWN


@cases(
    "later, outcome",
    ("torch==1.12.1", FITS),
    ("torch==1.12.1 lpips==0.1.4", FITS),
    ("torch==1.13.1", FAILS),  # another release replaces it
    (f"torch==1.12.1 {INDEX}cu116", FAILS),  # which looks for another build
)
def test_pip_leaves_a_build_that_a_later_pin_accepts(tmp_path: Path, later: str, outcome: ExitCode) -> None:
    first = f"RUN pip install torch==1.12.1+cu113 torchvision==0.13.1+cu113 {INDEX}cu113\n"
    text = f"FROM nvidia/cuda:11.3.1-devel-ubuntu20.04\n{first}RUN pip install {later}\n"
    assert judge(plan(tmp_path, Dockerfile=text), T4).exit_code == outcome


@cases("beside, outcome", (f"{INDEX}cu128\ntorch==2.7.0+cu128\n", FITS), ("", FAILS))
def test_nccl_is_not_used_on_one_gpu(tmp_path: Path, beside: str, outcome: ExitCode) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"{beside}nvidia-nccl-cu12==2.26.2\n"), RTX_5090)
    assert report.exit_code == outcome


def test_an_extra_of_the_project_may_bring_what_jax_needs(tmp_path: Path) -> None:
    project = '[project]\nname = "x"\ndependencies = ["jax==0.7.2"]\noptional-dependencies.gpu = ["jax[cuda12]"]\n'
    report = judge(plan(tmp_path, pyproject__toml=project), H100)
    assert (named(report, PLAN, "jax").status, report.exit_code) == ("unknown", OPEN)
    assert judge(plan(tmp_path, requirements__txt="jax==0.7.2\n"), H100).exit_code == FAILS


def test_an_image_may_be_older_than_the_gpu_where_its_programs_bring_their_own_cuda(tmp_path: Path) -> None:
    for command in ("uv sync", "pip install git+https://github.com/huggingface/accelerate"):
        text = f"FROM nvidia/cuda:12.6.3-base-ubuntu24.04\nRUN {command}\n"
        assert judge(plan(tmp_path, Dockerfile=text), RTX_5090).exit_code == OPEN
    assert judge(plan(tmp_path, Dockerfile=text.partition("\n")[0] + "\n"), RTX_5090).exit_code == FAILS


@cases("beside, status", ("torch==2.7.1\n", "warn"), ("", "unknown"))
def test_numba_may_be_used_for_the_cpu(tmp_path: Path, beside: str, status: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"{beside}numba==0.48.0\n"), H100)
    assert named(report, PLAN, "numba").status == status


_FROM_CU118 = "--extra-index-url https://download.pytorch.org/whl/cu118\n"
_OF_DGL = "-f https://data.dgl.ai/wheels/cu116/repo.html\n"
_PYTORCH = "channels: [pytorch, nvidia, conda-forge]\n"


@cases(
    "text, machine, outcome",
    ("dependencies: [rapids=26.04, cuda-version=13.1]\n", H100, FAILS),
    ("dependencies: [rapids=26.04, cuda-version=13.1]\n", "gpu==H100,driver==580.65.06", OPEN),
    ("dependencies: [requests, cuda-version=12.8]\n", H100, OPEN),
    (f"{_PYTORCH}dependencies: ['pytorch>=2.2,<2.3', 'pytorch-cuda=11.8.*']\n", H100, FITS),
    (f"{_PYTORCH}dependencies: ['pytorch>=2.2,<2.3', 'pytorch-cuda=11.8.*']\n", RTX_5090, FAILS),
    (f"{_PYTORCH}dependencies: ['pytorch>=2.2,<2.4', 'pytorch-cuda=11.8.*']\n", RTX_5090, FAILS),  # as each release
    (f"{_PYTORCH}dependencies: ['pytorch>=2.2,<2.4', 'pytorch-cuda=11.8.*']\n", H100, OPEN),
    (f"{_PYTORCH}dependencies: [pytorch=2.0.0]\n", RTX_5090, FAILS),
    (f"{_PYTORCH}dependencies: [pytorch=2.0.0]\n", H100, OPEN),
    ("channels: [defaults, pytorch]\ndependencies: [pytorch=1.9, cudatoolkit=11.1]\n", H100, FAILS),
    ("channels: [defaults, pytorch]\ndependencies: [pytorch=1.9, cudatoolkit=11.1]\n", T4, OPEN),
    (f"{_PYTORCH}dependencies: [pytorch=2.2.2, pytorch-cuda=12.1, numba, cuda-python]\n", H100, FITS),
    ("dependencies: [python=3.9, pip, pip: [torch==2.0.0, torchaudio]]\n", T4, FITS),
)
def test_environments_of_conda(tmp_path: Path, text: str, machine: str, outcome: ExitCode) -> None:
    pytest.importorskip("yaml")
    assert judge(plan(tmp_path, environment__yml=text), machine).exit_code == outcome


@cases(
    "text, machine, outcome",
    ("jax[cuda13]\n", H100, FAILS), ("jax[cuda13]\n", "gpu==H100,driver==580.65.06", OPEN),
    ("jax[cuda13]\n", "gpu==H100", OPEN), ("cupy-cuda13x\n", H100, FAILS),
    ("--index-url https://download.pytorch.org/whl/cu118\ntorch\n", RTX_5090, FAILS),  # as PyPI's, by the driver
    ("--index-url https://download.pytorch.org/whl/cu118\ntorch\n", "gpu==RTX 5090,driver==580.65.06", OPEN),
    ("torch==2.3.1\nwandb==0.17.0\nprotobuf\n", H100, FITS),  # which requires one that is older, for each Python
    ("torch==1.9.0+cu102\n-f https://download.pytorch.org/whl/torch_stable.html\npylibraft-cu12>=23.8.0\n", T4, FITS),
    ("-f https://download.pytorch.org/whl/torch_stable.html\ntorch==2.2.2+cu121\nonnxruntime-gpu==1.18.0\n", T4, FAILS),
    (f"{_FROM_CU118}torch==2.0.0+cu118\ndgl==1.0.2+cu116\n{_OF_DGL}", H100, FAILS),
    (f"{_FROM_CU118}torch==2.0.0+cu118\ndgl==1.0.2+cu116\n{_OF_DGL}", T4, FITS),
    ("torch==2.9.1\nnvidia-cutlass-dsl==4.5.2\n", T4, FITS),  # the compiler of kernels that are for newer GPUs
    ("torch==2.4.0\npeft==0.15.1.post1\n", T4, OPEN),  # which PyPI does not list, between others
    ("torch==2.2.2\ntransformers==5.22.1rc1\n", T4, FAILS),  # as each release of that series
    ("torch==1.9.1\npylibraft-cu12>=26.2\n", T4, FAILS),  # which are for newer Pythons
    ("xformers==0.0.28\n", RTX_5090, FAILS), ("xformers==0.0.28\n", H100, FITS),  # by the PyTorch that it requires
    ("torch\ntriton==2.0.0.dev20221202\n", H100, FAILS),  # which leaves none with code for it
)  # fmt: skip
def test_a_driver_too_old_for_all_releases_is_too_old_for_later_ones(
    tmp_path: Path, text: str, machine: str, outcome: ExitCode
) -> None:
    assert judge(plan(tmp_path, requirements__txt=text), machine).exit_code == outcome


def test_an_index_of_ones_own_may_have_another_build_of_an_extension(tmp_path: Path) -> None:
    text = "--index-url https://wheels.example.org/simple\ntorch==2.6.0\nnatten==0.21.0\n"
    assert judge(plan(tmp_path, requirements__txt=text), H100).exit_code == OPEN
    pypi = "torch==2.6.0\nnatten==0.21.0\n"
    assert judge(plan(tmp_path, requirements__txt=pypi), H100).exit_code == FAILS


@cases("bounds, outcome", (">=2.8.0,<2.9", FITS), ("~=2.8.0", FITS), (">=2.8.0", OPEN), (">=2.6,<2.7", FAILS))
def test_bounds_that_one_known_release_of_pytorch_meets_are_a_pin(
    tmp_path: Path, bounds: str, outcome: ExitCode
) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"torch{bounds}\nbitsandbytes==0.47.0\n"), RTX_5090)
    assert report.exit_code == outcome


@cases(
    "beside",
    "r3m @ https://github.com/facebookresearch/r3m/archive/b2334e726887fa0206962d7984c69c5fb09cceab.tar.gz",
    "deepspeed==0.14.5",  # whose wheels are for Windows alone
    "dlimp @ git+https://github.com/kvablack/dlimp@5edaa4691567873d495633f2708982b42edf1972",
    "git+https://github.com/google/CommonLoopUtils",
    "mmcv==1.7.0",
)
def test_what_has_no_gpu_code_of_its_own_leaves_nothing_open(tmp_path: Path, beside: str) -> None:
    assert judge(plan(tmp_path, requirements__txt=f"torch==2.3.1\n{beside}\n"), H100).exit_code == FITS


@cases("beside, outcome", ("xformers==0.0.27", FITS), ("", OPEN))
def test_a_pin_brings_the_pytorch_that_others_are_for(tmp_path: Path, beside: str, outcome: ExitCode) -> None:
    assert judge(plan(tmp_path, requirements__txt=f"mmcv==1.7.0\n{beside}\n"), H100).exit_code == outcome


@cases(
    "text, told",
    ("torch==1.13.1\ndgl==1.1.2.post1\n", "PyPI has wheels of dgl 1.1.2.post1 for macOS"),  # it came for macOS alone
    ("torch==1.13.1\ndgl==1.1.2\n", ""),
    ("torch==2.14.0\nvllm==0.29.0rc1\n", "vllm 0.29.0rc1 needs torch 2.13.0"),
    ("torch==2.13.0\nvllm==0.29.0rc1\n", ""),
)
def test_a_pin_that_cannot_be_installed_fails_though_nothing_of_it_needs_the_gpu(
    tmp_path: Path, text: str, told: str
) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), "gpu==RTX 3090,driver==580.65.06")
    failing = [check.message for check in report.checks if check.status == "fail"]
    assert (bool(failing), report.exit_code) == ((True, FAILS) if told else (False, FITS))
    assert all(told in message for message in failing)
