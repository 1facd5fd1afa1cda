"""Every kernel compiles by each NVRTC that knows the GPU, and what is prepared with them when a wheel is built.

The gate compiles for each architecture once (tests/kernels).
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck.knowledge.load import load_matrix
from probes.measuring import kernels
from probes.measuring.kernels import FOLDER, STANDARD, CompileError, Compiler, Nvrtc, prepared_name
from probes.measuring.runtime import Unavailable
from probes.measuring.variants import Variant, variants
from tests.every import cases
from tests.kernels.nvrtc_wheels import WHEELS, nvrtc

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
KEPLER = (35, 37)  # Compiled, not promised: their last driver is older than current bindings speak to

VARIANTS = variants()
by_variant = pytest.mark.parametrize(
    "variant", VARIANTS, ids=lambda variant: prepared_name(variant.name, variant.options)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheels are, one folder each; ENVCHECK_NVRTC names one that is kept."""
    kept = os.environ.get("ENVCHECK_NVRTC")
    return Path(kept) if kept else tmp_path_factory.mktemp("nvrtc")


@pytest.fixture(scope="module")
def compilers(folder: Path) -> dict[str, Nvrtc]:
    return {name: nvrtc(name, folder) for name in WHEELS}


def source(variant: Variant) -> str:
    return Path(FOLDER, f"{variant.name}.cu").read_text(encoding="utf-8")


def compiled(nvrtc: Nvrtc, variant: Variant, number: int) -> bytes:
    return nvrtc.cubin(source(variant), f"{variant.name}.cu", f"sm_{number}", (STANDARD, *variant.options))


def least(variant: Variant) -> int:
    return 10 * variant.least[0] + variant.least[1]


def test_the_compilers_know_what_they_are(compilers: dict[str, Nvrtc]) -> None:
    assert (compilers["11.8"].version, compilers["12.9"].version) == ("11.8", "12.9")
    assert set(KEPLER) <= set(compilers["11.8"].architectures())
    assert {50, 90, 120} <= set(compilers["12.9"].architectures())


def test_together_they_know_every_architecture_of_the_matrix(compilers: dict[str, Nvrtc]) -> None:
    known = {number for nvrtc in compilers.values() for number in nvrtc.architectures()}
    listed = {row.compute_capability.replace(".", "") for row in load_matrix().rates}
    wanted = {int(number) for number in listed if int(number) >= 50}
    assert wanted - known <= {101}  # renamed to 110 in CUDA 13


@by_variant
@pytest.mark.parametrize("name", WHEELS)
def test_it_compiles_for_every_gpu_that_it_is_claimed_for(
    name: str, variant: Variant, compilers: dict[str, Nvrtc]
) -> None:
    nvrtc = compilers[name]
    claimed = [number for number in nvrtc.architectures() if number >= least(variant)]
    if name == "11.8" and variant.options == ("-DMMA", "-DKIND=4"):
        pytest.skip("FP8 came with CUDA 12.1's assembler for 8.9")
    for number in claimed:
        assert compiled(nvrtc, variant, number)[:4] == b"\x7fELF"


@by_variant
def test_it_is_claimed_for_all_that_can_run_it(variant: Variant, compilers: dict[str, Nvrtc]) -> None:
    """The architecture before the first claimed one cannot compile it."""
    nvrtc = compilers["12.9"]
    older = [number for number in nvrtc.architectures() if number < least(variant)]
    if not older or variant.name == "gemm":  # its kernels need little; what cuBLASLt can do is what counts
        return
    with pytest.raises(CompileError):
        compiled(nvrtc, variant, older[-1])


@pytest.mark.parametrize("number", KEPLER)
@by_variant
def test_kepler(variant: Variant, number: int, compilers: dict[str, Nvrtc]) -> None:
    """3.5 and 3.7 by NVRTC 11.8, of the variants for every GPU."""
    if variant.least == (5, 0):
        assert compiled(compilers["11.8"], variant, number)[:4] == b"\x7fELF"


def test_a_wrong_source_is_refused_with_its_log(compilers: dict[str, Nvrtc]) -> None:
    with pytest.raises(CompileError, match="frobnicate"):
        compilers["12.9"].cubin("__global__ void f() { frobnicate(); }", "wrong.cu", "sm_90")
    with pytest.raises(CompileError):
        compilers["12.9"].cubin("", "empty.cu", "sm_1")


def test_the_first_compiler_that_knows_the_gpu_is_taken(compilers: dict[str, Nvrtc]) -> None:
    paths = [compilers[name].path for name in ("11.8", "12.9", "newest")]
    assert Compiler(paths, (9, 0)).words == "NVRTC 11.8"
    assert Compiler(paths, (10, 0)).words == "NVRTC 12.9"
    assert Compiler(paths, (5, 0)).module("caches")[:4] == b"\x7fELF"
    with pytest.raises(Unavailable, match=r"NVRTC 11\.8 .* does not compile for sm_120"):
        Compiler(paths[:1], (12, 0)).module("caches")


# --- code that is prepared when a wheel is built ------------------------------------------------------------------
@pytest.fixture(scope="module")
def prepared(compilers: dict[str, Nvrtc], folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``prepared`` as a release's wheel has it."""
    scratch = tmp_path_factory.mktemp("prepared")
    places = [str(folder / name) for name in ("12.9", "newest")]
    sys.path[:0] = [str(ROOT), *places]
    try:
        made = importlib.import_module("hatch_build").prepared_code(scratch)
    finally:
        del sys.path[: 1 + len(places)]
    assert made.lacking == []
    assert {Path(file).parent for file in made.files} == {scratch}
    assert all(place.startswith("envcheck/probes/kernels/prepared/") for place in made.files.values())
    return scratch


@by_variant
@cases("capability", (5, 0), (5, 3), (6, 1), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 3), (11, 0), (12, 1), (13, 7))
def test_every_gpu_finds_code(
    variant: Variant, capability: tuple[int, int], prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "PREPARED", str(prepared))
    compiler = Compiler((), capability)
    assert compiler.words == "prepared code"
    if capability < variant.least:
        with pytest.raises(Unavailable, match="none was prepared"):
            compiler.module(variant.name, variant.options)
        return
    code = compiler.module(variant.name, variant.options)
    if capability[0] > 12:
        assert b".version" in code[:2000]
        assert code.endswith(b"\0")
    else:
        assert code[:4] == b"\x7fELF"


def test_the_code_is_small(prepared: Path) -> None:
    assert sum(file.stat().st_size for file in prepared.iterdir()) < 6 << 20


def test_what_one_nvrtc_cannot_make_is_lacking(
    compilers: dict[str, Nvrtc], folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """NVRTC 11.8 knows no GPU of 10.0 and later, and not FP8 on those that it knows."""
    module: Any = importlib.import_module("hatch_build")
    monkeypatch.setattr(sys, "path", [str(ROOT), str(folder / "11.8")])
    made = module.prepared_code(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {Path(file).name for file in made.files}
    assert "memory-UNROLL1.sm_90.cubin" in {Path(file).name for file in made.files}
    assert "caches as cubin for 100: no NVRTC of the build environment knows it" in made.lacking
    assert any(line.startswith("compute-MMA-KIND4 as cubin for 90: NVRTC 11.8: ptxas") for line in made.lacking)
