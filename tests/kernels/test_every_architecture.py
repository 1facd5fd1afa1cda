"""Every kernel compiles to machine code for every architecture of the matrix that it is claimed for.

NVRTC does it for real, and without a GPU. Each architecture is tried with the oldest NVRTC that knows it. The gate
takes the oldest that is claimed and one of the newest; the lab every one, and all releases of NVRTC that know it.
"""

import locale
import os
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from envcheck.knowledge.load import load_matrix
from probes.measuring.kernels import FOLDER, STANDARD, CompileError, Nvrtc
from probes.measuring.variants import EVERY_GPU, Variant, variants
from tests.every import cases
from tests.kernels.nvrtc_wheels import WHEELS, nvrtc

Capability = tuple[int, int]


def listed() -> list[Capability]:
    """The compute capabilities of the matrix."""
    found = {name for row in load_matrix().architectures for name in row.capabilities}
    return sorted((int(major), int(minor)) for major, minor in (name.split(".") for name in found))


CLAIMED = [capability for capability in listed() if capability >= EVERY_GPU]
COMPILED_ONLY = [(3, 5), (3, 7)]  # The last driver for these is R470, on which nothing was run


@pytest.fixture(scope="session")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> list[Nvrtc]:
    """The oldest first. ENVCHECK_NVRTC names a folder that is kept."""
    kept = os.environ.get("ENVCHECK_NVRTC")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("nvrtc")
    return [nvrtc(name, folder) for name in WHEELS]


def source_of(variant: Variant) -> str:
    return Path(FOLDER, f"{variant.name}.cu").read_text(encoding="utf-8")


def cubin(variant: Variant, architecture: int, compilers: list[Nvrtc], source: str) -> bytes:
    fitting = [each for each in compilers if architecture in each.architectures()]
    assert fitting, f"no NVRTC compiles for sm_{architecture}"
    compiler = fitting[0] if variant.options != FP8 or len(fitting) == 1 else fitting[1]
    return compiler.cubin(source, f"{variant.name}.cu", f"sm_{architecture}", (STANDARD, *variant.options))


FP8 = ("-DMMA", "-DKIND=4")
"""NVRTC 11.8 knows GPUs that multiply FP8 by ``mma.sync``, and not yet that instruction."""


def each() -> list[ParameterSet]:
    """Two in the gate, all others in the lab."""
    gate = (EVERY_GPU, (12, 0))
    return [
        pytest.param(capability, id=".".join(map(str, capability)), marks=() if capability in gate else pytest.mark.lab)
        for capability in [*COMPILED_ONLY, *CLAIMED]
    ]


@pytest.mark.parametrize("capability", each())
def test_every_kernel_compiles(capability: Capability, compilers: list[Nvrtc]) -> None:
    """For every variant for that GPU; those for every GPU where it is older than what is claimed."""
    able = [variant for variant in variants() if variant.least <= max(capability, EVERY_GPU)]
    architecture = 10 * capability[0] + capability[1]
    code = [cubin(variant, architecture, compilers, source_of(variant)) for variant in able]
    assert len(code) >= len([variant for variant in variants() if variant.least == EVERY_GPU])
    assert {each[:4] for each in code} == {b"\x7fELF"}


def test_compiling_leaves_the_locale_alone(compilers: list[Nvrtc]) -> None:
    before = locale.nl_langinfo(locale.CODESET)
    for compiler in compilers:
        compiler.ptx("", "empty.cu", "compute_80")
        assert locale.nl_langinfo(locale.CODESET) == before


def test_old_and_new_are_claimed() -> None:
    assert {(5, 0), (7, 2), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)} <= set(CLAIMED)
    assert set(COMPILED_ONLY) <= set(listed())


@cases("old, new", ("atomicAdd(wrong, 1ull)", "atomicAdd(wrongly, 1ull)"), ("dp4a.s32.s32", "dp4a.s32.s33"))
def test_an_error_in_one_kernel_is_found(old: str, new: str, compilers: list[Nvrtc]) -> None:
    """One that the compiler finds, and one that only the assembler does, in a single variant."""
    changed = [variant for variant in variants() if variant.least <= (9, 0) and old in source_of(variant)]
    with pytest.raises(CompileError):
        _ = [cubin(variant, 90, compilers, source_of(variant).replace(old, new)) for variant in changed]
