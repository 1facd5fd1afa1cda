"""Dockerfiles and environments of conda, and the libraries that a package takes from its image."""

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.model.checks import PLAN
from tests.every import cases, tabled
from tests.plans.reading import judge, named, packages, plan


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


@tabled
def test_tensorflow_and_jax_in_an_image(tmp_path: Path, base: str, pip: str, status: str) -> None:
    report = judge(plan(tmp_path, Dockerfile=image(base, pip=pip)), "gpu==A100,driver==580.65.06")
    assert named(report, PLAN, "jax" if "jax" in pip else "tensorflow").status == status


def test_a_machine_may_have_any_library_or_none(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt=ORT), H100)
    found = named(report, PLAN, "onnxruntime-gpu")
    assert (found.status, report.exit_code) == ("unknown", 3)
    assert found.message.endswith(
        "which neither its wheel nor a package that is named brings: the machine must have it"
    )
    assert found.fixes[-1].text == "See that the machine has that CUDA, or install its packages."
    assert judge(plan(tmp_path, requirements__txt=f"{ORT}\ntorch==2.5.1\n"), H100).exit_code == 0


@tabled
def test_packages_of_the_system_are_read(tmp_path: Path, command: str, brings: dict[str, str]) -> None:
    found = packages(plan(tmp_path, Dockerfile=f"FROM ubuntu:22.04\nRUN {command}\n"))
    assert {each.brings: each.bounds for each in found.values() if each.brings} == brings
