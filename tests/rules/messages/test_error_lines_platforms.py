"""Error lines about platforms: what they name on their own, beside others, and in a whole pasted text."""

from __future__ import annotations

import pytest

from envcheck.compat.error_lines import named_beside
from envcheck.compat.load import load_matrix
from envcheck.enrich.complete import complete
from envcheck.importers import read_text
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate
from envcheck.snapshot import ObservedError, Snapshot
from tests.every import every
from tests.rules.machines import ALL, check_of
from tests.rules.messages.lines_platforms import ALONE_ONLY_A_SETTING, EXAMPLES, HARMLESS

PAIRS = [(problem, line) for problem, lines in EXAMPLES.items() for line in lines]


def cause_in(text: str) -> str | None:
    """The root cause in a pasted text."""
    knowledge = load_matrix()
    found = primary(evaluate(complete(read_text(text), knowledge), knowledge, all_rules(), ALL))
    return found.rule if found else None


@every(PAIRS)
def test_a_pasted_line_is_taken_for_an_error_and_named(problem: str, line: str) -> None:
    errors = read_text(line).observed_errors
    assert [error.text for error in errors] == [line.strip()]
    found = named_beside(line, (line,))
    assert found is not None
    assert found.problem == problem


@every(HARMLESS)
def test_a_harmless_line_names_nothing(line: str) -> None:
    found = named_beside(line, (line,))
    assert found is None


def test_a_graver_line_of_a_problem_outranks_a_remark_about_it() -> None:
    remark, fault = EXAMPLES["shared-memory-too-small"][-1], EXAMPLES["shared-memory-too-small"][0]
    both = tuple(ObservedError(source="pasted text", text=text, line=1) for text in (remark, fault))
    assert check_of("shared-memory-too-small", Snapshot(observed_errors=both[:1])).status == "note"
    found = check_of("shared-memory-too-small", Snapshot(observed_errors=both))
    assert (found.status, len(found.evidence)) == ("fail", 2)


TEXTS = {
    "container-toolkit-missing": (
        "If this is a GPU node, did you configure the NVIDIA Container Toolkit?\n"
        "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
    ),
    "driver-libraries-in-image": (
        "$ docker run --gpus all mine\n"
        "nvidia-container-cli: mount error: file creation failed: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file exists"
    ),
    "wsl-libcuda-shadowed": (
        "Windows 11, WSL2 Ubuntu 22.04\n"
        "\tlibcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1\n"
        "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/wsl/lib/libcuda.so.1\n"
        "RuntimeError: No CUDA GPUs are available"
    ),
    "windows-gpu-unsupported": (
        "OS: Windows 10 x64\nTensorFlow version: 2.15.0\nGPU: NVIDIA GeForce RTX 3070\nNum GPUs Available:  0"
    ),
    "jetpack-mismatch": (
        "Jetson Nano (JetPack 4.6.1, L4T 32.7.1)\ndocker run dustynv/ros:humble-pytorch-l4t-r35.2.1\n"
        "RuntimeError: the NVIDIA driver on your system is too old"
    ),
    "jetson-libraries-not-mounted": (
        "host: Jetson TX2, L4T 32.4.3\nimage: nvcr.io/nvidia/l4t-pytorch:r32.4.3-pth1.6-py3\n"
        "ImportError: libcublas.so.10: cannot open shared object file: No such file or directory"
    ),
    "shared-memory-too-small": (
        "Bus error (core dumped)\nFilesystem      Size  Used Avail Use% Mounted on\n"
        "shm              64M   64M     0 100% /dev/shm"
    ),
    "mig-enumeration": (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaaaaaa-0000-0000-0000-000000000000)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-aaaaaaaa-0000-0000-0000-000000000001)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-aaaaaaaa-0000-0000-0000-000000000002)\n"
        "RuntimeError: CUDA error: invalid device ordinal"
    ),
    "peer-access-blocked": f"nccl-tests hang on two GPUs\n# lspci -vvv\n\t{ALONE_ONLY_A_SETTING}",
    "known-bad-release": (
        "Windows build number: 21337.1000\nUbuntu 18.04 in WSL2\n"
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    ),
}


@every(TEXTS)
def test_the_cause_in_a_pasted_text(problem: str) -> None:
    assert cause_in(TEXTS[problem]) == problem


SOUND = {
    "a Jetson that works": "Jetson AGX Orin, JetPack 6.1 (L4T 36.4.0)\ntorch 2.5.0\ntorch.cuda.is_available() True",
    "the last TensorFlow for Windows": "tensorflow 2.10.0\nWindows 11\nGPU: RTX 3060\nNum GPUs Available: 1",
    "TensorFlow inside WSL": "tensorflow 2.16.1\nWindows 11 WSL2\nGPU: RTX 3060",
    "lspci of one machine": f"00:01.0 PCI bridge: Intel\n\t{ALONE_ONLY_A_SETTING}",
    "a container with enough": "shm              8.0G   0     8.0G     0% /dev/shm\ntorch 2.5.1+cu124",
    "libcuda of a Linux machine": "libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1",
}


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_the_cause_where_nothing_is_wrong(name: str) -> None:
    assert cause_in(SOUND[name]) is None
