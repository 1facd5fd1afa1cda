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
