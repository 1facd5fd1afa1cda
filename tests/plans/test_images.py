"""Dockerfiles and environments of conda, and the libraries that a package takes from its image."""

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.model.checks import PLAN
from tests.every import cases
from tests.plans.reading import judge, named, packages, plan, versions

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


@cases("line",
    "FROM nvcr.io/nvidia/pytorch:99.99-py3", "FROM registry.example/team/base:1",
    "FROM debian AS a\nFROM registry.example/team/base AS b\nFROM b", "ARG BASE\nFROM ${BASE}",
    "FROM debian\nARG WHAT\nRUN pip install $WHAT", "FROM debian\nRUN pip install -r /app/requirements.txt",
    "FROM debian\nRUN uv sync --frozen", "FROM debian\nRUN conda install --file env.txt",
    "FROM debian\nRUN pip install 'torch==2.0.1",
)  # fmt: skip
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


@cases("text", "", "a: [", "dependencies: 3", "channels: [conda-forge]", "a: 1\n---\nb: 1", "[" * 5000, "#" * 600_000)
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


# --- CUDA and cuDNN that a package takes from outside its wheel -----------------------------------------------------
H100 = "gpu==H100,driver==580.65.06"
ORT = "onnxruntime-gpu==1.22.0"


def image(base: str, *packages_of_system: str, pip: str = ORT) -> str:
    apt = f"RUN apt-get update && apt-get install -y {' '.join(packages_of_system)}\n" if packages_of_system else ""
    return f"FROM {base}\n{apt}RUN pip install {pip}\n"


@cases(
    "text, status, told",
    (image("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"), "pass", ""),
    (image("nvidia/cuda:12.3.2-cudnn9-runtime-ubuntu22.04"), "pass", ""),
    (image("nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"), "fail", "needs cuDNN >=9"),
    (image("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04"), "fail", "needs CUDA >=12"),
    (image("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", pip="onnxruntime-gpu==1.18.1"), "fail", "has 12.4.1"),
    (image("nvidia/cuda:12.4.1-runtime-ubuntu22.04"), "unknown", "needs cuDNN"),
    (image("nvidia/cuda:12.4.1-base-ubuntu22.04", "libcudnn9-cuda-12"), "unknown", "needs CUDA"),
    (image("python:3.12"), "unknown", "needs CUDA"),
    (image("ubuntu:22.04"), "unknown", "needs CUDA"),
    (image("python:3.12", pip="'onnxruntime-gpu[cuda,cudnn]==1.22.0'"), "pass", ""),
    (image("python:3.12", pip="'onnxruntime-gpu[cuda]==1.22.0'"), "unknown", "needs cuDNN"),
    (image("python:3.12", pip=f"torch==2.7.0 {ORT}"), "pass", ""),
    (image("python:3.12", pip=f"nvidia-cuda-runtime-cu12==12.8.90 nvidia-cudnn-cu12==9.8.0.87 {ORT}"), "pass", ""),
    (image("ubuntu:22.04", "cuda-toolkit-12-4", "libcudnn9-cuda-12"), "pass", ""),
    (image("ubuntu:22.04", "cuda-toolkit-11-8", "libcudnn9-cuda-12"), "fail", "cuda-toolkit-11-8 has 11.8"),
    (image("ubuntu:22.04", "cuda-12-4", "libcudnn8=8.9.7.29-1+cuda12.2"), "fail", "has 8.9.7.29"),
    (image("ubuntu:22.04", "cuda-runtime-12-4", "libcudnn9-dev-cuda-12=9.5.1.17-1"), "pass", ""),
    (image("debian:12", "nvidia-cuda-toolkit", "nvidia-cudnn"), "pass", ""),
    (image("ubuntu:22.04", "cuda-compiler-12-4", "libcudnn9-cuda-12"), "unknown", "needs CUDA"),
)
def test_what_an_image_has_of_the_libraries_decides(tmp_path: Path, text: str, status: str, told: str) -> None:
    name = "onnxruntime-gpu"
    check = named(judge(plan(tmp_path, Dockerfile=text), H100), PLAN, name)
    assert (check.status, told in check.message) == (status, True), check.message


@cases("pip, status",
    ("cupy-cuda12x==13.3.0", "unknown"), ("cupy-cuda12x==14.0.0", "unknown"), ("'cupy-cuda12x[ctk]==14.0.0'", "pass"),
)  # fmt: skip
def test_cupy_needs_a_toolkit_but_no_cudnn(tmp_path: Path, pip: str, status: str) -> None:
    assert (
        named(judge(plan(tmp_path, Dockerfile=image("python:3.12", pip=pip)), H100), PLAN, "cupy-cuda12x").status
        == status
    )
    with_cuda = image("nvidia/cuda:12.4.1-runtime-ubuntu22.04", pip=pip)
    assert named(judge(plan(tmp_path, Dockerfile=with_cuda), H100), PLAN, "cupy-cuda12x").status == "pass"


@cases(
    "base, pip, status",
    ("nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04", "tensorflow==2.15.0", "pass"),
    ("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", "tensorflow==2.15.0", "fail"),
    ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "tensorflow==2.15.0", "fail"),
    ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "tensorflow==2.13.0", "pass"),
    ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "'tensorflow[and-cuda]==2.15.0'", "pass"),
    ("python:3.11", "tensorflow==2.13.0", "unknown"),
    ("python:3.11", "'jax[cuda12]==0.6.0'", "pass"),
    ("python:3.11", "'jax[cuda12_local]==0.6.0'", "unknown"),
    ("nvidia/cuda:12.6.3-cudnn-runtime-ubuntu22.04", "'jax[cuda12-local]==0.6.0'", "pass"),
    ("nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04", "'jax[cuda12-local]==0.6.0'", "fail"),
    ("nvidia/cuda:12.6.3-cudnn-runtime-ubuntu22.04", "'jax[cuda13-local]==0.8.0'", "fail"),
    ("python:3.11", "'tensorflow[and-cuda]==2.15.0'", "pass"),
)
def test_tensorflow_and_jax_in_an_image(tmp_path: Path, base: str, pip: str, status: str) -> None:
    report = judge(plan(tmp_path, Dockerfile=image(base, pip=pip)), "gpu==A100,driver==580.65.06")
    assert named(report, PLAN, "jax" if "jax" in pip else "tensorflow").status == status


def test_requirements_that_an_image_installs(tmp_path: Path) -> None:
    text = "FROM ubuntu:22.04\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    found = plan(tmp_path, _requirements__txt=ORT, Dockerfile=text)
    assert named(judge(found, H100), PLAN, "onnxruntime-gpu").status == "unknown"


def test_a_machine_may_have_any_library_or_none(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt=ORT), H100)
    found = named(report, PLAN, "onnxruntime-gpu")
    assert (found.status, report.exit_code) == ("unknown", 3)
    assert found.message.endswith(
        "which neither its wheel nor a package that is named brings: the machine must have it"
    )
    assert found.fixes[-1].text == "See that the machine has that CUDA, or install its packages."
    assert judge(plan(tmp_path, requirements__txt=f"{ORT}\ntorch==2.5.1\n"), H100).exit_code == 0


@cases("command, brings",
    ("apt-get install -y libcudnn8=8.9.7.29-1+cuda12.2", {"cudnn": "==8.9.7.29"}),
    ("apt-get install -y --no-install-recommends libcudnn9-cuda-12:amd64=9.*", {"cudnn": "==9.*"}),
    ("apt install -y cuda-toolkit-12-4=12.4.1-1 vim", {"cuda": "==12.4.1"}),
    ("dnf install -y cuda-libraries-12-8", {"cuda": "==12.8.*"}),
    ("yum -y install libcudnn8-8.9.7.29-1.cuda12.2.x86_64", {"cudnn": "==8.9.7.29"}),
    ("zypper --non-interactive in cuda", {"cuda": ""}), ("apt-get update", {}), ("apt-get remove libcudnn8", {}),
    ("apt-get install -y $CUDNN", {}), ("apt-get install -y libcudnn9-samples cuda-keyring nvidia-cuda-dev", {}),
)  # fmt: skip
def test_packages_of_the_system_are_read(tmp_path: Path, command: str, brings: dict[str, str]) -> None:
    found = packages(plan(tmp_path, Dockerfile=f"FROM ubuntu:22.04\nRUN {command}\n"))
    assert {each.brings: each.bounds for each in found.values() if each.brings} == brings


def test_what_may_install_anything_leaves_the_verdict_open(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, Dockerfile=f"FROM registry.example/team/base:1\nRUN pip install {ORT}\n"), H100)
    assert named(report, PLAN, "onnxruntime-gpu").status == "pass"
    assert report.verdict == "unknown"


NGC = "FROM nvcr.io/nvidia/pytorch:25.08-py3\n"
OLDER = "FROM nvcr.io/nvidia/pytorch:24.07-py3\n"
OF_13 = "RUN pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/cu130\n"


@cases(
    "text, machine, verdict",
    (NGC + OF_13, "gpu==H100,driver==550.54.14", "pass"),
    (NGC + "RUN pip install torch==2.9.1\n", "gpu==H100,driver==550.54.14", "pass"),
    (NGC + OF_13, "gpu=='RTX 4090',driver==550.54.14", "fail"),
    (NGC + OF_13, "gpu==H100,driver==520.61.05", "fail"),
    ("FROM nvcr.io/nvidia/pytorch:24.05-py3\n" + OF_13, "gpu==H100,driver==550.54.14", "fail"),
    ("FROM registry.example/base:1\nRUN pip install vllm==0.27.1\n", "gpu==H100,driver==550.54.14", "unknown"),
    (OLDER + OF_13, "gpu=='RTX 5090',driver==580.65.06", "warn"),  # its PyTorch is replaced
    (OLDER + "RUN pip install 'torch>=2.9'\n", "gpu=='RTX 5090',driver==580.65.06", "unknown"),
    ("FROM nvidia/cuda:13.0.0-runtime-ubuntu24.04\n" + OF_13, "gpu==H100,driver==550.54.14", "pass"),
    ("FROM nvidia/cuda:12.8.1-runtime-ubuntu24.04\n" + OF_13, "gpu==H100,driver==550.54.14", "fail"),
    ("FROM nvidia/cuda:13.0.0-runtime-ubuntu24.04\n" + OF_13, "gpu=='RTX 4090',driver==550.54.14", "fail"),
)
def test_cuda_compat_of_an_image_serves_what_is_installed_in_it(
    tmp_path: Path, text: str, machine: str, verdict: str
) -> None:
    assert judge(plan(tmp_path, Dockerfile=text), machine).verdict == verdict
