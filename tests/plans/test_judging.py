"""What plans are judged to be, with file and line; and what must never be green."""

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import parse_specifier
from envcheck.knowledge.tables.packages import CondaBuildRow
from envcheck.model.checks import FORBIDDEN, PLAN, Report
from envcheck.model.components import parse_components
from envcheck.pipeline import session
from envcheck.pipeline.request import Ignoring, Policy, Request
from envcheck.report import render
from tests.every import cases
from tests.plans.reading import judge, named, packages, plan

A100 = "gpu==A100,driver==515.105.01"


@cases("gpu", "RTX 5090", "B200")
def test_torch_without_code_for_the_gpu_fails_with_its_line(tmp_path: Path, gpu: str) -> None:
    report = judge(plan(tmp_path, requirements__txt="numpy\ntorch==2.0.1\n"), f"gpu=='{gpu}'")
    check = named(report, "gpu-code-missing", "torch")
    assert (report.exit_code, report.primary, check.status) == (1, "gpu-code-missing", "fail")
    assert check.location is not None
    assert (check.location.file, check.location.line) == (f"{tmp_path}/requirements.txt", 2)
    assert f"{tmp_path}/requirements.txt:2" in [part.source for part in check.evidence]


def test_torch_that_fits_passes_and_an_old_driver_fails(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.0.1\n")
    assert judge(environment, A100).exit_code == 0
    report = judge(environment, "gpu==A100,driver==440.33.01")
    check = named(report, "driver-too-old", "torch")
    assert (report.exit_code, check.status) == (1, "fail")
    assert check.location is not None
    assert check.location.line == 1


def test_fixes_of_a_plan_run_no_command_in_an_environment(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.0.1\n"), "gpu==B200")
    fixes = named(report, "gpu-code-missing", "torch").fixes
    assert fixes
    assert not any(fix.command for fix in fixes if fix.changes)


@cases("text, machine, status",
    ("torch>=2.0,<2.1\n", A100, "note"), ("torch>=2.0,<2.1\n", "gpu==B200", "fail"),
    ("torch>=2.0,<2.9\n", "gpu==B200", "note"), ("torch>=2.0\n", A100, "unknown"), ("torch\n", A100, "unknown"),
)  # fmt: skip
def test_a_range_with_an_end_is_judged_and_one_without_stays_open(
    tmp_path: Path, text: str, machine: str, status: str
) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), machine)
    assert named(report, "plan-does-not-fit", "torch").status == status
    assert (report.exit_code == 0) is (status == "note")


@cases("package, machine, status",
    ("tensorflow==2.15.0", A100, "fail"), ("tensorflow[and-cuda]==2.15.0", "gpu==A100,driver==535.104.05", "pass"),
    ("jax==0.4.30", A100, "fail"), ("tensorflow>=2.10", A100, "unknown"), ("vllm", A100, "unknown"),
)  # fmt: skip
def test_other_frameworks_are_asked_as_matrix_check_asks(
    tmp_path: Path, package: str, machine: str, status: str
) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"{package}\n"), machine)
    assert named(report, "plan-does-not-fit", re.split(r"[=>\[]", package, maxsplit=1)[0]).status == status


@cases("text", "", "# nothing\n", "requests==2.32.0\n", "-e .\n", "no-such-thing==1\n")
def test_nothing_to_judge_is_never_green(tmp_path: Path, text: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), A100)
    assert (report.verdict, report.exit_code) == ("unknown", 3)


def test_a_private_index_leaves_the_build_open(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="-i https://mirror.example/simple\ntorch==2.0.1\n"), A100)
    assert report.verdict == "unknown"
    assert "package index" in named(report, "plan-does-not-fit", "torch").message


@cases("text", "torch==99.1.0\n", "torch==2.0.1+cu999\n", "torch==2.0.1.dev20230101\n")
def test_a_release_that_the_matrix_does_not_know_is_never_green(tmp_path: Path, text: str) -> None:
    assert judge(plan(tmp_path, requirements__txt=text), A100).exit_code != 0


def test_a_build_of_conda_is_never_green_without_its_gpu_code(tmp_path: Path) -> None:
    text = "dependencies: [pytorch=2.5.0=cuda118_generic_py310_h954aa82_300]\n"
    assert judge(plan(tmp_path, environment__yml=text), A100).exit_code == 3


OF_PYTORCH = "pytorch=2.0.1=py3.10_cuda11.7_cudnn8.5.0_0"
OLD_A100, NEW_GPU = "gpu==A100,driver==470.57.02", "gpu=='RTX 5090',driver==570.124.06"


@cases(
    "package, machine, status",
    (OF_PYTORCH, A100, "pass"),
    (OF_PYTORCH, "gpu==A100,driver==440.33.01", "fail"),
    (OF_PYTORCH, NEW_GPU, "fail"),
    ("pytorch=2.1.0, pytorch-cuda=11.8", A100, "pass"),
    ("pytorch=2.1.0, pytorch-cuda=12.1", OLD_A100, "fail"),
    ("pytorch=2.3.0=cpu_generic_py310ha4c588e_0", A100, "fail"),
    ("pytorch=2.3.0=cuda118_py310h954aa82_300", NEW_GPU, "fail"),
    ("pytorch=2.3.0=cuda118_py310h954aa82_300", A100, "pass"),
    ("pytorch=2.9.1=cuda129_mkl_py310_h954aa82_300", NEW_GPU, "pass"),
    ("pytorch=2.12.0=cuda130_mkl_py310_h954aa82_300", "gpu==V100,driver==580.65.06", "fail"),
    ("pytorch=2.3.0=cuda120_py310h954aa82_300", OLD_A100, "fail"),
    ("pytorch-gpu=2.5.1", A100, "unknown"),
    ("tensorflow=2.17.0=cpu_py311hd3d7757_203", A100, "fail"),
    ("tensorflow=2.17.0=cuda120py311h5e67bd7_203", OLD_A100, "fail"),
    ("tensorflow=2.17.0=cuda120py311h5e67bd7_203", "gpu==A100,driver==535.183.01", "pass"),
    ("tensorflow=2.17.0=cuda120py311h5e67bd7_203", "gpu=='GTX 970',driver==535.183.01", "fail"),
    ("tensorflow=2.17.0=cuda120py311h5e67bd7_203", NEW_GPU, "fail"),
    ("tensorflow=2.19.1=cuda128py311h5e67bd7_203", NEW_GPU, "pass"),
    ("tensorflow=2.19.1=cuda128py311h5e67bd7_203", "gpu==A100,driver==535.183.01", "pass"),
    ("tensorflow=2.20.0=cuda118py311h5e67bd7_203", A100, "unknown"),
    ("jaxlib=0.9.1=cuda129_py311h5e67bd7_200", NEW_GPU, "pass"),
    ("jaxlib=0.4.34=cuda126py311h5e67bd7_200", NEW_GPU, "fail"),
    ("jaxlib=0.4.34=cuda126py311h5e67bd7_200", OLD_A100, "fail"),
    ("tensorflow=2.17.0", A100, "unknown"),
    ("tensorflow", A100, "unknown"),
)
def test_builds_of_conda_are_judged_by_what_is_known_of_them(
    tmp_path: Path, package: str, machine: str, status: str
) -> None:
    pytest.importorskip("yaml")
    assert judge(plan(tmp_path, environment__yml=f"dependencies: [{package}]\n"), machine).verdict == status


FROM_PYTORCH, T4 = "channels: [pytorch, nvidia, defaults]\n", "gpu==T4,driver==535.183.01"


@cases(
    "channels, packages, machine, status",
    (FROM_PYTORCH, "pytorch=1.12.1, cudatoolkit=11.3", T4, "pass"),
    (FROM_PYTORCH, "pytorch=1.12.1, cudatoolkit=11.3.1", T4, "pass"),
    (FROM_PYTORCH, "pytorch=1.12, torchvision=0.13.1, cudatoolkit=11.3", T4, "pass"),
    (FROM_PYTORCH, "pytorch=1.12, torchvision=0.13.0, cudatoolkit=11.3", T4, "unknown"),
    (FROM_PYTORCH, "pytorch=1, cudatoolkit=11.3", T4, "unknown"),
    (FROM_PYTORCH, "pytorch=1.12.1, cudatoolkit=11.3", "gpu==H100,driver==550.54.14", "fail"),
    (FROM_PYTORCH, "pytorch=1.12.1, cudatoolkit=10.2", "gpu==A100,driver==550.54.14", "fail"),
    (FROM_PYTORCH, "pytorch=1.12.1, cudatoolkit=10.2", T4, "pass"),
    (FROM_PYTORCH, "pytorch=1.9.0, cudatoolkit=11.3", T4, "unknown"),
    (FROM_PYTORCH, "pytorch=1.9.0=py3.7_cuda11.1_cudnn8.0.5_0", T4, "pass"),
    (FROM_PYTORCH, "pytorch=1.7.1=py3.8_cuda11.0.221_cudnn8.0.5_0", T4, "pass"),
    (FROM_PYTORCH, "pytorch=1.12.1, cpuonly", T4, "fail"),
    ("channels: [conda-forge, pytorch]\n", "pytorch=1.12.1, cudatoolkit=11.3", T4, "unknown"),
    ("channels: [conda-forge]\n", "pytorch::pytorch=1.12.1, cudatoolkit=11.3", T4, "pass"),
    ("channels: [https://conda.anaconda.org/pytorch]\n", "pytorch=1.12.1, cudatoolkit=11.3", T4, "pass"),
    ("channels: [conda-forge, pytorch]\n", "pytorch=2.1.0, pytorch-cuda=11.8", T4, "pass"),
    ("", "pytorch=1.12.1, cudatoolkit=11.3", T4, "unknown"),
)
def test_a_package_selects_the_build_where_its_channel_comes_first(
    tmp_path: Path, channels: str, packages: str, machine: str, status: str
) -> None:
    pytest.importorskip("yaml")
    text = f"{channels}dependencies: [{packages}]\n"
    assert judge(plan(tmp_path, environment__yml=text), machine).verdict == status


@cases(
    "command, status",
    ("conda install -c pytorch pytorch=1.12.1 cudatoolkit=11.3", "pass"),
    ("conda install pytorch=1.12.1 cudatoolkit=11.3 -c pytorch -c conda-forge", "pass"),
    ("conda install pytorch=1.12.1 cudatoolkit=11.3 --channel=conda-forge -c pytorch", "unknown"),
)
def test_the_channels_of_a_command_are_those_of_its_packages(tmp_path: Path, command: str, status: str) -> None:
    text = f"FROM continuumio/miniconda3\nRUN {command}\n"
    assert judge(plan(tmp_path, Dockerfile=text), T4).verdict == status


@pytest.mark.parametrize("row", load_matrix().conda_builds, ids=lambda row: row.id)
def test_every_row_of_a_channels_builds_is_reached(tmp_path: Path, row: CondaBuildRow) -> None:
    pytest.importorskip("yaml")
    version = ".".join(map(str, (*parse_specifier(row.versions).bounds[0].numbers, 1)[:3]))
    tag = row.cuda.replace(".", "")
    known = (f"py3.9_cuda{row.cuda}_cudnn8.5.0_0", f"cuda{tag}_py39h954aa82_300", f"cuda{tag}_mkl_py39_h954aa82_300")
    numbered = (f"cuda{tag}py39h954aa82_{number}" for number in range(200, 204))
    build = next(text for text in (*known, *numbered) if re.fullmatch(row.builds, text))
    environment = plan(tmp_path, environment__yml=f"dependencies: [{row.name}={version}={build}]\n")
    assert environment.frameworks is not None
    (found,) = environment.frameworks.items
    assert (found.cuda, found.gpu_code) == (row.cuda, row.targets)


@cases(
    "page, build",
    ("-f https://storage.googleapis.com/jax-releases/jax_cuda_releases.html\n", None),
    ("--extra-index-url https://download.pytorch.org/whl/cu118\n", ""),  # which has PyTorch's builds alone
    ("--extra-index-url https://mirror.example/simple\n", None),
    ("", ""),
)
def test_a_page_may_have_tagged_builds_that_pypi_has_not(tmp_path: Path, page: str, build: str | None) -> None:
    environment = plan(tmp_path, requirements__txt=f"{page}torch==2.0.1\njaxlib==0.3.2+cuda11.cudnn82\n")
    assert packages(environment)["jaxlib"].build == build
    told = [check.title for check in judge(environment, A100).checks if "is not on PyPI" in check.title]
    assert bool(told) is (build == "")


@cases("index, status", ("--extra-index-url https://download.pytorch.org/whl/cu118\n", "pass"), ("", "unknown"))
def test_the_index_serves_its_builds_of_what_goes_with_pytorch(tmp_path: Path, index: str, status: str) -> None:
    text = f"{index}torch==2.0.1\ntorchvision==0.15.2\n"
    report = judge(plan(tmp_path, requirements__txt=text), "gpu==H100,driver==550.54.14")
    assert named(report, "plan-does-not-fit", "torchvision").status == status


def test_packages_of_a_plan_are_held_against_each_other(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.0.1\ntorchvision==0.14.0\n"), A100)
    assert (named(report, "torch-family-mismatch", "torch").status, report.exit_code) == ("fail", 1)


def test_the_cuda_of_an_image_is_judged(tmp_path: Path) -> None:
    environment = plan(tmp_path, Dockerfile="FROM nvidia/cuda:11.7.1-runtime-ubuntu20.04\n")
    assert named(judge(environment, A100), "plan-does-not-fit", "cuda").status == "pass"
    check = named(judge(environment, "gpu==B200"), "plan-does-not-fit", "cuda")
    assert (check.status, check.location and check.location.line) == ("fail", 1)


@cases(
    "image, machine, verdict, reason",
    ("nvcr.io/nvidia/pytorch:25.10-py3", A100, "fail", "driver 580"),
    ("nvcr.io/nvidia/pytorch:25.10-py3", "gpu==V100,driver==580.65.06", "fail", "compute capability 7.5"),
    ("nvcr.io/nvidia/pytorch:20.12-py3", "gpu=='RTX 5090',driver==580.65.06", "fail", "up to 8.9"),
    ("nvcr.io/nvidia/pytorch:25.10-py3", "gpu=='RTX 5090',driver==580.65.06", "pass", ""),
    ("nvcr.io/nvidia/pytorch:20.12-py3", A100, "pass", ""),
    ("nvcr.io/nvidia/tensorflow:22.10-tf2-py3", "gpu==A100,driver==450.248.02", "pass", ""),
    ("nvcr.io/nvidia/tensorflow:22.10-tf2-py3", "gpu=='RTX 3090',driver==418.226.00", "fail", "driver"),
    ("nvidia/cuda:12.4.1-base-ubuntu22.04", "gpu==A100,driver==470.57.02", "pass", "cuda-compat"),
    ("nvidia/cuda:12.4.1-base-ubuntu22.04", "gpu==A100,driver==550.54.15", "pass", ""),
    ("nvcr.io/nvidia/pytorch:25.02-py3", "gpu=='RTX 5090',driver==570.86.10", "pass", ""),  # also with its NCCL
    ("registry.example/team/base:1", A100, "unknown", "does not know this image"),
)
def test_what_the_notes_of_an_image_ask_for_is_judged(
    tmp_path: Path, image: str, machine: str, verdict: str, reason: str
) -> None:
    report = judge(plan(tmp_path, Dockerfile=f"ARG IMAGE={image}\nFROM ${{IMAGE}}\n"), machine)
    (check,) = (each for each in report.checks if each.rule == "plan-does-not-fit")
    assert (report.verdict, check.status) == (verdict, verdict)
    assert reason in check.message
    assert check.location is not None
    assert check.location.line == 2
    assert check.sources or image.startswith("registry.")


def test_the_cuda_of_an_image_that_no_framework_uses_is_a_warning(tmp_path: Path) -> None:
    text = "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN pip install torch==2.7.0 --index-url https://download.pytorch.org/whl/cu128\n"
    report = judge(plan(tmp_path, Dockerfile=text), "gpu=='RTX 5090',driver==575.51.03")
    assert named(report, "plan-does-not-fit", "cuda").status == "warn"
    assert report.exit_code == 0
    assert judge(plan(tmp_path, Dockerfile=text), "gpu=='RTX 3090',driver==470.57.02").exit_code == 1


CU128 = "--extra-index-url https://download.pytorch.org/whl/cu128\ntorch==2.7.0+cu128\n"
LOCKED = f"{CU128}nvidia-cusparselt-cu12==0.6.3\n"
NEW_DRIVER = "gpu=='RTX 5090',driver==575.51.03"


def test_a_library_that_pytorch_runs_without_does_not_stop_it(tmp_path: Path) -> None:
    assert judge(plan(tmp_path, requirements__txt=LOCKED), NEW_DRIVER).exit_code == 0
    assert judge(plan(tmp_path, requirements__txt="nvidia-cusparselt-cu12==0.6.3\n"), NEW_DRIVER).exit_code == 1
    open_too = "torch>=2.5,<2.7\nnvidia-cusparselt-cu12==0.6.3\nnvidia-cublas-cu12>=12.4,<12.7\n"  # T4: from 8.0 on
    assert judge(plan(tmp_path, requirements__txt=open_too), "gpu==T4,driver==550.54.14").exit_code == 0


@cases("python, verdict", ("", "pass"), (",python==3.8", "pass"), (",python==3.12", "pass"))
def test_pins_for_several_pythons_are_alternatives(tmp_path: Path, python: str, verdict: str) -> None:
    text = (
        "torch==2.4.1\ntriton==3.0.0\nnvidia-nvjitlink-cu12==12.4.127 ; python_full_version < '3.9'\n"
        "nvidia-nvjitlink-cu12==12.6.85 ; python_full_version >= '3.9'\n"
    )
    environment = plan(tmp_path, python=python.rpartition("=")[2] or None, requirements__txt=text)
    assert judge(environment, f"gpu==H100,driver==550.54.14{python}").verdict == verdict
    assert judge(environment, f"gpu==RTX 5090,driver==570.86.10{python}").verdict == "fail"


def test_an_installer_passes_over_releases_that_require_another_pin_for_each_python(tmp_path: Path) -> None:
    text = "torch==2.5.1\nnumpy==1.26.4\npandas\n"  # of pandas, releases from 3.1 on require NumPy 2
    assert judge(plan(tmp_path, requirements__txt=text), "gpu==H100,driver==550.54.14").verdict == "pass"


@cases("text, told",
    ("faster-whisper==1.2.0\nonnxruntime-gpu[cuda]==1.22.0\n", ["warn"]),
    ("faster-whisper\nonnxruntime-gpu==1.22.0\n", ["warn"]), ("faster-whisper==1.2.0\n", []),
    ("torch==2.7.0\nonnxruntime-gpu==1.22.0\n", []),
)  # fmt: skip
def test_what_a_package_requires_may_be_written_over_another_for_gpus(
    tmp_path: Path, text: str, told: list[str]
) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), NEW_DRIVER)
    title = "onnxruntime would be installed over onnxruntime-gpu"
    assert [check.status for check in report.checks if check.title == title] == told


def test_a_range_for_another_python_contradicts_no_pin(tmp_path: Path) -> None:
    text = "torch==2.6.0; python_version < '3.14'\ntorch>=2.9.0; python_version >= '3.14'\n"
    found = packages(plan(tmp_path, requirements__txt=text))["torch"]
    assert (found.version, found.problem) == (None, "which of them counts depends on what is not stated")
    found = packages(plan(tmp_path, requirements__txt="torch==2.6.0\ntorch==2.5.0\n"))["torch"]
    assert "contradicts it" in (found.problem or "")


@cases("package", "onnxruntime==1.19.2", "jax==0.7.1")
def test_a_second_framework_for_the_cpu_is_a_warning(tmp_path: Path, package: str) -> None:
    name = package.partition("=")[0]
    both = judge(plan(tmp_path, requirements__txt=f"{CU128}{package}\n"), NEW_DRIVER)
    assert (named(both, "plan-does-not-fit", name).status, both.exit_code) == ("warn", 0)
    alone = judge(plan(tmp_path, requirements__txt=f"{package}\n"), NEW_DRIVER)
    assert (named(alone, "plan-does-not-fit", name).status, alone.exit_code) == ("fail", 1)
    assert judge(plan(tmp_path, requirements__txt=f"torch\n{package}\n"), NEW_DRIVER).exit_code == 3
    text = f"--index-url https://download.pytorch.org/whl/cpu\ntorch==2.7.0\n{package}\n"
    assert judge(plan(tmp_path, requirements__txt=text), NEW_DRIVER).exit_code == 1
    text = f"{CU128}{name}\n"  # for the CPU in whatever release
    assert name == "jax" or judge(plan(tmp_path, requirements__txt=text), NEW_DRIVER).verdict == "warn"
    text = f"transformers==4.42.4\n{package}\n"  # which runs in a PyTorch that is installed apart
    assert judge(plan(tmp_path, requirements__txt=text), NEW_DRIVER).exit_code == 3
    text = "torch==2.0.1\njax[cuda12]==0.7.1\n"
    assert judge(plan(tmp_path, requirements__txt=text), A100).exit_code == 1


@cases("text", "triton==1.0.0\n", "torch-no-such-thing==1.0\n")
def test_a_release_of_which_no_row_tells_anything_is_not_judged(tmp_path: Path, text: str) -> None:
    assert judge(plan(tmp_path, requirements__txt=text), "gpu==B200,driver==575.51.03").exit_code == 3
    both = plan(
        tmp_path, Dockerfile=f"FROM ubuntu:22.04\nRUN pip install torch==2.0.1\nRUN pip install --no-deps {text}"
    )
    assert judge(both, A100).exit_code == 0


def test_an_image_that_is_not_known_leaves_the_verdict_open(tmp_path: Path) -> None:
    text = "FROM registry.example/team/base:1\nRUN pip install torch==2.0.1\n"
    assert judge(plan(tmp_path, Dockerfile=text), A100).exit_code == 3


def test_torchvision_of_an_image_stays_where_it_is_asked_for(tmp_path: Path) -> None:
    text = "FROM pytorch/pytorch:2.5.1-cuda12.1-cudnn9-runtime\nRUN pip install torch torchvision\n"
    assert judge(plan(tmp_path, Dockerfile=text), "gpu==H100,driver==550.54.14").verdict == "pass"


@cases("image, gpu, package, verdict",
    ("nvidia/cuda:13.0.1-devel-ubuntu24.04", "H100", "torch==2.11.0", "pass"),  # it holds cuda-compat
    ("nvidia/cuda:13.0.1-devel-ubuntu24.04", "H100", "cupy-cuda13x==14.0.1", "pass"),
    ("registry.example/team/base:1", "H100", "torch==2.11.0", "unknown"),  # it may hold cuda-compat
    ("registry.example/team/base:1", "H100", "cupy-cuda13x==14.0.1", "unknown"),
    ("registry.example/team/base:1", "RTX 4090", "cupy-cuda13x==14.0.1", "fail"),  # which GeForce does not take
    ("debian", "H100", "torch==2.11.0", "fail"), ("debian", "H100", "cupy-cuda13x==14.0.1", "fail"),
)  # fmt: skip
def test_cuda_compat_of_an_image_serves_what_is_installed_on_top(
    tmp_path: Path, image: str, gpu: str, package: str, verdict: str
) -> None:
    environment = plan(tmp_path, Dockerfile=f"FROM {image}\nRUN pip install {package}\n")
    assert judge(environment, f"gpu=='{gpu}',driver==550.54.14").verdict == verdict


def test_ids_are_unique_where_one_line_leaves_two_things_open(tmp_path: Path) -> None:
    text = "FROM debian\nRUN pip install $ONE $TWO && uv sync && pip install ./a ./b\n"
    report = judge(plan(tmp_path, Dockerfile=text), A100)
    ids = [check.id for check in report.checks]
    assert len(ids) == len(set(ids))
    assert report.exit_code == 3


def test_the_scope_of_the_environment_alone_is_enough(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.0.1\ntorchvision==0.14.0\n")
    report = session.check(Request(planned=environment, scopes=frozenset({"env"}), assume=parse_components("gpus==0")))
    assert report.exit_code == 1


def _by(tmp_path: Path, **asked: Any) -> Report:
    environment = plan(tmp_path, requirements__txt="torch==2.4.0\nvllm==0.6.0\n")
    return session.check(
        Request(assume=parse_components("gpu==B200,os==linux,machine==x86_64"), planned=environment, **asked)
    )


def test_findings_of_a_plan_are_selected_and_configured_by_their_name(tmp_path: Path) -> None:
    every_finding = [check for check in _by(tmp_path).checks if check.rule == PLAN]
    assert {check.status for check in every_finding} >= {"fail"}
    alone = _by(tmp_path, only=(PLAN,))
    assert {check.rule for check in alone.checks if check.status == "fail"} == {PLAN}
    assert PLAN not in {check.rule for check in _by(tmp_path, skip=(PLAN,)).checks}
    ignoring = Ignoring(problem=PLAN, reason="known", until=dt.date(2030, 1, 1))
    set_aside = _by(tmp_path, policy=Policy(ignore=(ignoring,), today=dt.date(2029, 1, 1)))
    assert all(check.ignored for check in set_aside.checks if check.rule == PLAN and check.status == "fail")


def test_forbidden_without_a_plan_is_not_said_to_be_absent() -> None:
    found = session.check(
        Request(assume=parse_components("gpu==B200"), scopes=frozenset({"env"}), policy=Policy(forbid=(PLAN,)))
    )
    (check,) = (check for check in found.checks if check.rule == FORBIDDEN)
    assert (check.status, check.title) == ("unknown", f"Forbidden, not checked: {PLAN}")


@cases("text, exit_code", ("torch==2.5.1\ntorch-scatter==2.1.2\n", 0), ("torch-scatter==2.1.2\n", 3))
def test_what_a_plan_leaves_open_may_be_ignored_beside_what_was_judged(
    tmp_path: Path, text: str, exit_code: int
) -> None:
    environment = plan(tmp_path, requirements__txt=text)
    assume = parse_components("gpu==A100,driver==550.54.14,os==linux,machine==x86_64")
    opened = session.check(Request(assume=assume, planned=environment))
    assert opened.exit_code == 3
    (check,) = (each for each in opened.checks if each.rule == PLAN and each.status == "unknown")
    ignoring = Ignoring(problem=check.id, reason="built in our image", until=dt.date(2030, 1, 1))
    policy = Policy(ignore=(ignoring,), today=dt.date(2029, 1, 1))
    report = session.check(Request(assume=assume, planned=environment, policy=policy))
    assert report.exit_code == exit_code
    assert ('failures="0" errors="0"' in render(report, "junit").splitlines()[1]) is (exit_code == 0)


@cases("release", "2.6.3", "2.6.3+cu123torch2.4cxx11abifalse")
def test_a_planned_package_that_documents_refuse_fails_whatever_its_build(tmp_path: Path, release: str) -> None:
    environment = plan(tmp_path, requirements__txt=f"torch==2.4.1\nflash-attn=={release}\n")
    report = judge(environment, "gpu==T4,driver==535.104.05")
    assert report.exit_code == 1
    assert "gpu-feature-unsupported" in {check.rule for check in report.checks if check.status == "fail"}


def test_an_open_build_beside_a_pinned_one_writes_the_same_files(tmp_path: Path) -> None:
    report = judge(
        plan(tmp_path, requirements__txt="spconv-cu120==2.3.6\nspconv-cu118\n"), "gpu==H100,driver==550.54.14"
    )
    assert next(check for check in report.checks if check.rule == "builds-over-each-other").status == "warn"
    told = named(report, PLAN, "spconv-cu118")
    assert [fix.text for fix in told.fixes] == [
        "Keep one of spconv-cu118 and spconv-cu120, which write the same files."
    ]


def test_a_pin_without_wheels_for_the_stated_python_would_be_compiled(tmp_path: Path) -> None:
    pins = "torch==2.5.1\nnumpy==2.4.5\n"
    told = named(judge(plan(tmp_path, "3.10", requirements__txt=pins), "gpu==H100,python==3.10"), PLAN, "numpy")
    assert (told.status, told.title) == ("warn", "numpy 2.4.5 has no wheels for Python 3.10")


def test_a_pin_without_files_for_the_stated_python_fails(tmp_path: Path) -> None:
    pins = "torch==2.5.1\ntransformers==5.16.0\n"
    told = named(judge(plan(tmp_path, "3.9", requirements__txt=pins), "gpu==H100,python==3.9"), PLAN, "transformers")
    assert (told.status, told.title) == ("fail", "transformers 5.16.0 has no files for Python 3.9")
    assert told.location is not None
    assert told.location.line == 2
    report = judge(plan(tmp_path, "3.11", requirements__txt=pins), "gpu==H100,python==3.11")
    assert not [check for check in report.checks if check.status == "fail"]
