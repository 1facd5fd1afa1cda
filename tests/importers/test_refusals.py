"""What a program found, in lines in which it asks for more."""

from __future__ import annotations

import pytest

from envcheck.importers import read_text
from envcheck.snapshot import Driver
from tests.every import every
from tests.importers.pasting import gpus_in, torch_in


@pytest.mark.parametrize(
    ("line", "capability"),
    [
        ("ValueError: Machete kernel requires compute capability >= 9.0. Detected capability: 8.6", "8.6"),
        ("RuntimeError: not supported for the current GPU. Min capability: 75. Current capability: 70.", "7.0"),
        ("CUDA backend requires compute capability 5.0 or up, but found 3.5. Your GPU is not supported.", "3.5"),
        ("NotImplementedError: fused MoE requires SM120 or SM121, got SM90.", "9.0"),
        ("RuntimeError: the kernel requires SM120/SM121, current device is SM100", "10.0"),
        ("Flash attention only supports gpu architectures in [sm80, sm121]. Attempting to run on a sm 7.5 gpu.", "7.5"),
        ("ValueError: sparse attention supports compute capability 9.0; this tensor is on a (8, 6) device.", "8.6"),
    ],
)
def test_the_capability_that_was_found_is_that_of_the_gpu(line: str, capability: str) -> None:
    (gpu,) = gpus_in(line)
    assert (gpu.name, gpu.compute_capability) == (None, capability)


def test_a_gpu_is_named_beside_its_capability() -> None:
    (gpu,) = gpus_in(
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
        "Your Tesla T4 GPU has compute capability 7.5."
    )
    assert (gpu.name, gpu.compute_capability) == ("Tesla T4", "7.5")


def test_the_capability_belongs_to_the_only_gpu_that_is_named() -> None:
    line = "ValueError: Machete kernel requires compute capability >= 9.0. Detected capability: 8.6"
    (gpu,) = gpus_in(f"NVIDIA GeForce RTX 3090\n{line}")
    assert (gpu.name, gpu.compute_capability) == ("NVIDIA GeForce RTX 3090", "8.6")


def test_what_is_asked_for_is_not_what_was_found() -> None:
    for line in (
        "RuntimeError: This kernel requires a GPU that has compute capability 9.0",
        "NotImplementedError: DeepGEMM MegaMoE requires SM100 GPUs.",
        "step 90 requires grad only, got 75 samples of compute capability tests",
        "RuntimeError: fused MoE requires SM120, got 9000 tokens",
    ):
        assert read_text(line).gpus is None, line


@every(
    [
        (
            "The minimum required CUDA driver version is 12.0, but the installed CUDA driver version is 11.4.",
            None,
            "11.4",
        ),
        ("Warp requires CUDA driver 12.0 or higher, but the current driver only supports CUDA 11.4", None, "11.4"),
        ("the feature requires GPU driver version >= 570.158.01, but found 550.54.15", "550.54.15", None),
    ]
)
def test_the_driver_that_was_found(line: str, release: str | None, cuda: str | None) -> None:
    assert read_text(line).driver == Driver(source="pasted text", release=release, cuda=cuda)


@every(
    [
        ("RuntimeError: AutoSP requires PyTorch >= 2.9, found 2.7.1.", "2.7.1"),
        ("ValueError: fp8 attention requires PyTorch >= 2.11.0. Detected 2.9.1+cu128.", "2.9.1+cu128"),
        ("RuntimeError: Torch version must be at least 2.5 to use symmetric memory. Current version: 2.4.0", "2.4.0"),
    ]
)
def test_the_torch_that_was_found(line: str, version: str) -> None:
    assert torch_in(line).version == version
