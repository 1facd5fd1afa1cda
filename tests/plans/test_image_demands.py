"""What an image demands of the driver, packages of CUDA from outside, and a local tag of an index."""

from pathlib import Path

from envcheck.compat.answer import ask
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import parse_components
from envcheck.report import Options, render
from tests.every import cases
from tests.plans.reading import judge, plan

BASE = "nvidia/cuda:12.8.1-cudnn-devel-ubuntu24.04"


@cases("image, machine, refused",
    (BASE, "gpu==RTX 3060,driver==535.183.01", "refused"),  # no older driver on GeForce
    (BASE, "gpu==RTX 3060,driver==570.86.10", ""), (BASE, "gpu==A100,driver==535.183.01", ""),
    (BASE, "gpu==A100,driver==530.30.02", "refused"),  # no branch that it names
    ("nvidia/cuda:12.4.1-base-ubuntu22.04", "gpu==RTX 3060,driver==535.183.01", ""),
    ("vllm/vllm-openai:v0.5.0", "gpu==V100,driver==530.30.02", "refused"),
    ("vllm/vllm-openai:v0.5.0", "gpu==V100,driver==535.183.01", ""),
)  # fmt: skip
def test_docker_starts_an_image_with_the_drivers_that_it_admits(
    tmp_path: Path, image: str, machine: str, refused: str
) -> None:
    answer = ask(load_matrix(), parse_components(f"nvcr=={image},{machine}"), suggest=False)
    refusals = [each.message for each in answer.reasons if "Docker does not start it" in each.message]
    assert bool(refusals) is bool(refused)
    text = f"FROM {image}\nRUN pip install torch==2.7.0+cu118 --index-url https://download.pytorch.org/whl/cu118\n"
    report = judge(plan(tmp_path, Dockerfile=text), machine)
    found = [check for check in report.checks if "Docker does not start it" in check.message]
    assert {check.status for check in found} == ({"fail"} if refused else set())


@cases("base", BASE, "python:3.11-slim")
@cases("lines, machine, verdict",
    ("ENV NVIDIA_REQUIRE_CUDA=cuda>=12.8", "gpu==H100,driver==550.54.14", "fail"),
    ("ENV NVIDIA_REQUIRE_CUDA=cuda>=12.4,cuda<13", "gpu==H100,driver==550.54.14", "pass"),
    ("ENV NVIDIA_REQUIRE_CUDA=", "gpu==RTX 3060,driver==535.183.01", "pass"),
    ("ENV NVIDIA_DISABLE_REQUIRE=true", "gpu==RTX 3060,driver==535.183.01", "pass"),
    ("ENV NVIDIA_REQUIRE_CUDA=cuda>=12.8 NVIDIA_DISABLE_REQUIRE=1", "gpu==RTX 3060,driver==535.183.01", "pass"),
)  # fmt: skip
def test_what_a_dockerfile_asks_of_the_driver_counts_in_the_place_of_its_image(
    tmp_path: Path, base: str, lines: str, machine: str, verdict: str
) -> None:
    text = (
        f"FROM {base}\n{lines}\nRUN pip install torch==2.7.0+cu118 --index-url https://download.pytorch.org/whl/cu118\n"
    )
    report = judge(plan(tmp_path, Dockerfile=text), machine)
    assert report.verdict == verdict
    failed = [check for check in report.checks if check.status == "fail"]
    assert [each.location.line if each.location else None for each in failed] == ([2] if verdict == "fail" else [])


@cases("demand", "cuda=12", "cuda>=12.8 brand=tesla,driver>=535", "cuda>=$(nvcc)", "driver>=570")
def test_a_demand_that_is_not_read_leaves_that_of_the_image(tmp_path: Path, demand: str) -> None:
    text = f'FROM {BASE}\nENV NVIDIA_REQUIRE_CUDA="{demand}"\nRUN pip install torch==2.7.0\n'
    report = judge(plan(tmp_path, Dockerfile=text), "gpu==RTX 3060,driver==535.183.01")
    assert [check.title for check in report.checks if check.status == "fail"] == [f"{BASE} does not fit"]


def test_an_index_that_is_missing_is_named_on_the_page(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.3.1+cu121\n"), "gpu==RTX 4090,driver==560.35.03")
    assert report.verdict == "unknown"
    assert "--extra-index-url https://download.pytorch.org/whl/cu121" in " ".join(
        render(report, "text", Options()).split()
    )
