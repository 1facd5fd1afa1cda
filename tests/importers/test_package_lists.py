"""Package lists. Every text here was constructed."""

from __future__ import annotations

import pytest

from envcheck.errors import UsageError
from envcheck.importers import read_text
from tests.every import every
from tests.importers.pasting import environment_in, torch_in


def packages(text: str) -> dict[str, str]:
    return {package.name: package.version for package in environment_in(text).distributions or ()}


@every(
    [
        ("torch==2.5.1+cu124\nflash_attn==2.5.7\n", {"torch": "2.5.1+cu124", "flash-attn": "2.5.7"}),
        ("transformers== 4.42.4\n", {"transformers": "4.42.4"}),
        ("- torch==2.5.1  # pinned\n", {"torch": "2.5.1"}),
        (
            "Package    Version\n---------- -------\nsix        1.16.0\nPillow     8.0.0\n",
            {"six": "1.16.0", "pillow": "8.0.0"},
        ),
        ("torch                     2.4.1\n", {"torch": "2.4.1"}),
        ("PyTorch                        1.3.1\n", {"torch": "1.3.1"}),
        ("Name: torch\nVersion: 2.11.0+cu126\nSummary: Tensors\n", {"torch": "2.11.0+cu126"}),
        ("Requirement already satisfied: torch>=1.8 in ./lib (from timm) (2.1.0)\n", {"torch": "2.1.0"}),
        (
            "ERROR: torchvision 0.15.0+cu117 requires torch==2.0.0, but you have torch 1.13.1 which is incompatible.\n",
            {"torchvision": "0.15.0+cu117", "torch": "1.13.1"},
        ),
        ("onnxruntime 1.11.0 (java)\n", {"onnxruntime": "1.11.0"}),
        (
            "tensorrt-cu12-bindings 10.0.1\ntensorrt_cu12_libs 10.3.0\n",
            {"tensorrt-cu12-bindings": "10.0.1", "tensorrt-cu12-libs": "10.3.0"},
        ),
        (
            "sglang 0.4.1\nsgl-kernel 0.0.2\nflashinfer-python 0.2.0\n",
            {"sglang": "0.4.1", "sgl-kernel": "0.0.2", "flashinfer-python": "0.2.0"},
        ),
    ]
)
def test_lists_of_pip(text: str, found: dict[str, str]) -> None:
    assert packages(text) == found
    assert not environment_in(text).distributions_complete


@pytest.mark.parametrize(
    "text",
    [
        "pip install torch>=2.5.1",
        "Windows 10",
        "step 3 4",
        "TORCH_CUDA_ARCH_LIST    8.0",
        "CUDA 12.2",
        "onnxruntime 1.9.0-gpu",
        "tensorrt-cu12-libs 10.3.0 does not work here",
    ],
)
def test_what_is_no_package(text: str) -> None:
    try:
        environments = read_text(f"{text}\n").environments
    except UsageError:
        return
    assert environments is None or all(env.distributions is None for env in environments.items)


def test_a_table_ends_where_its_rows_end() -> None:
    text = "Package Version\n------- -------\nsix     1.16.0\n\nstep 3\nGPU 80\ntorch 2.0.1\n"
    assert packages(text) == {"six": "1.16.0", "torch": "2.0.1"}


CONDA = """\
# Name                    Version                   Build  Channel
cpuonly                   2.0                               0    pytorch
cudatoolkit               10.1.243             h6bb024c_0
pytorch                   1.11.0              py3.8_cpu_0    pytorch
tensorflow-gpu            2.2.0                     <pip>
torchmetrics              1.0.0                    pypi_0    pypi
"""


def test_a_list_of_conda_and_its_channels() -> None:
    found = {
        package.name: (package.version, package.build, package.channel)
        for package in environment_in(CONDA).distributions or ()
    }
    assert found == {
        "cpuonly": ("2.0", "0", "conda"),
        "cudatoolkit": ("10.1.243", "h6bb024c_0", "conda"),
        "pytorch": ("1.11.0", "py3.8_cpu_0", "conda"),
        "tensorflow-gpu": ("2.2.0", None, "pip"),
        "torchmetrics": ("1.0.0", None, "pip"),
    }


@pytest.mark.parametrize(
    ("build", "cuda", "cudnn", "cpu_only"),
    [
        ("py3.8_cpu_0", None, None, True),
        ("cpu_generic_py311_h8ca351a_0", None, None, True),
        ("py3.9_cuda11.3_cudnn8.2.0_0", "11.3", "8.2.0", False),
        ("py3.6_cuda10.0.130_cudnn7.4.2_2", "10.0", "7.4.2", False),
        ("cuda126_mkl_py312_h30b5a27_300", "12.6", None, False),
        ("cuda112py39h3bb1f2c_0", "11.2", None, False),
        ("h1234567_0", None, None, None),
    ],
)
def test_condas_build_string_tells_how_torch_was_built(
    build: str, cuda: str | None, cudnn: str | None, *, cpu_only: bool | None
) -> None:
    torch = torch_in(f"[conda] pytorch   2.1.0   {build}   conda-forge\n")
    assert (torch.version, torch.cuda, torch.cudnn, torch.cpu_only) == ("2.1.0", cuda, cudnn, cpu_only)


def test_a_cpu_wheel_says_so_in_its_version() -> None:
    assert torch_in("torch==2.5.1+cpu\n").cpu_only is True
    assert torch_in("torch==2.5.1\n").cpu_only is None


def test_collect_envs_empty_lists_are_no_packages() -> None:
    text = "Is CUDA available: True\n[pip3] No relevant packages\n[conda] Could not collect\n"
    assert environment_in(text).distributions is None
