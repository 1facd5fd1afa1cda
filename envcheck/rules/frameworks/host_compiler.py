"""The C++ compiler that nvcc works with."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import Facts, Outcome, never, rule
from envcheck.snapshot import Snapshot


def _supported_compiler(_facts: Facts) -> tuple[Fix, ...]:
    return (
        Fix(text="Install a C++ compiler that this CUDA release supports, and name it: NVCC_CCBIN=/usr/bin/g++-12"),
        Fix(text="Or compile with a newer CUDA toolkit, or install a wheel that is already compiled"),
    )


@rule(layer="framework", arises=never, remedy=_supported_compiler)
def host_compiler_unsupported(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """No C++ compiler that the CUDA toolkit supports.

    What it checks
        Reads error lines of nvcc and of builds: "unsupported GNU version", "unsupported Microsoft
        Visual Studio version", "greater than the maximum required version by CUDA", "Cannot find
        compiler 'cl.exe' in PATH".

    Why it matters
        nvcc passes the code for the CPU to a C++ compiler, and each CUDA release supports certain
        versions of it only. Systems often bring a newer one, so that compiling an extension stops.

    How to fix
        Install an older compiler beside the present one (gcc-12, g++-12; with conda gxx_linux-64) and
        name it in NVCC_CCBIN, CC and CXX. On Windows, install the Build Tools for Visual Studio and
        compile in their command prompt. A newer CUDA toolkit supports newer compilers. The option
        -allow-unsupported-compiler only silences the check.

    Sources
        CUDA installation guide for Linux, host compilers:
            https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
        PyTorch, what it demands of compilers:
            https://github.com/pytorch/pytorch/blob/main/torch/utils/cpp_extension.py
    """
    return None


def _newer_toolkit(_facts: Facts) -> tuple[Fix, ...]:
    return (
        Fix(text="See which toolkit the build takes", command=("nvcc", "--version")),
        Fix(
            text="Install a toolkit of the CUDA release that PyTorch was built with, and let CUDA_HOME and PATH name it"
        ),
        Fix(text="Or install a wheel that is already compiled for your PyTorch, Python and CUDA"),
    )


@rule(layer="framework", arises=never, remedy=_newer_toolkit)
def toolkit_too_old(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The CUDA toolkit is older than a build demands.

    What it checks
        Reads error lines of builds: "FlashAttention is only supported on CUDA … and above", "requires
        CUDA … or newer", and what CMake says of a CUDA that is too old.

    Why it matters
        The build takes the nvcc that it finds first, often an old one of the distribution
        (nvidia-cuda-toolkit), whatever CUDA the framework itself brings.

    How to fix
        Install a newer CUDA toolkit beside the present one, point CUDA_HOME and PATH to it, and build
        again. Remove the distribution's package if nothing needs it.

    Sources
        FlashAttention, setup.py: https://github.com/Dao-AILab/flash-attention/blob/main/setup.py
        CUDA installation guide for Linux: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    """
    return None
