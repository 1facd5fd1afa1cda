"""What NVIDIA_REQUIRE_CUDA of an image demands of the driver, in a question and in a plan."""

from __future__ import annotations

from pathlib import Path

from envcheck.compat.answer import ask
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import parse_components
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
