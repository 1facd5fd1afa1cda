"""Sparse products, transforms, factorizations and random numbers on a real GPU: right results, and caused faults.

No time is asserted.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.bench import cufft as bench_cufft
from probes.bench import curand as bench_curand
from probes.bench import cusolver as bench_cusolver
from probes.bench import cusparse as bench_cusparse
from probes.bench.cufft import Transform
from probes.bench.curand import Generator
from probes.bench.cusolver import CuSolver, DenseProblem
from probes.bench.cusparse import CuSparse
from probes.files.gpu_code.targets import gpu_targets
from probes.measuring.cusparselt import StructuredProduct
from probes.measuring.device import Device, ordinals
from probes.measuring.kernels import Compiler
from probes.measuring.measurement import Bench
from probes.measuring.runtime import LibraryError, Unavailable
from probes.measuring.sampler import Sampler
from tests.gpu.test_bench_on_gpu import ROOT, VARIABLES, libraries

WITHOUT_CODE = """
import sys; sys.path.insert(0, {root!r})
from probes.bench import curand as bench_curand
from probes.measuring.device import Device
from probes.measuring.runtime import LibraryError
from probes.measuring.measurement import Bench
with Device(0) as device:
    bench = Bench({uuid!r}, device, None, None, False, frozenset(), {{"curand": [{path!r}]}}, timing=False)
    (measure,) = bench_curand.measures(bench).values()
    try:
        measure()
    except LibraryError as error:
        print(error.path, error)
"""
PROBES = {"cusparse": bench_cusparse, "cufft": bench_cufft, "cusolver": bench_cusolver, "curand": bench_curand}


@pytest.fixture
def workshop() -> Iterator[Bench]:
    uuid, ordinal = next(iter(ordinals().items()))
    with Device(ordinal) as device:
        compiler = Compiler(libraries()["nvrtc"], device.capability)
        yield Bench(uuid, device, Sampler(uuid, {}), compiler, True, frozenset(), libraries())


def deep(family: str, bench: Bench) -> dict[str, Any]:
    if not libraries()[family]:
        pytest.skip(f"{family} is not here")
    quiet = replace(bench, timing=False)
    (measure,) = PROBES[family].measures(quiet).values()
    found: dict[str, Any] = measure()
    return found


@pytest.mark.parametrize("family", list(PROBES))
def test_every_figure_is_measured_and_right(family: str, workshop: Bench) -> None:
    measured = 0
    for figure, measure in PROBES[family].measures(workshop).items():
        try:
            found = measure()
        except Unavailable:
            continue
        measured += 1
        assert found["verification"]["right"], (str(figure), found["verification"])
        assert found["value"] > 0
        assert (found["name"], found.get("variant")) == (figure.name, figure.variant)
    if not measured:
        pytest.skip(f"{family} is not here")


@pytest.mark.parametrize("family", list(PROBES))
def test_a_deep_check_needs_no_compiler(family: str, workshop: Bench) -> None:
    found = deep(family, replace(workshop, compiler=Compiler((), workshop.device.capability)))
    assert found["verification"]["right"]
    assert "value" not in found


@pytest.mark.parametrize("family", list(PROBES))
def test_a_truncated_library_is_named_and_costs_itself_alone(family: str, workshop: Bench, tmp_path: Path) -> None:
    if not libraries()[family]:
        pytest.skip(f"{family} is not here")
    path = Path(libraries()[family][0])
    cut = tmp_path / path.name
    with path.open("rb") as whole, cut.open("wb") as part:
        shutil.copyfileobj(whole, part)
        part.truncate(part.tell() * 9 // 10)
    with pytest.raises(LibraryError, match="is cut off") as error:
        deep(family, replace(workshop, libraries={**libraries(), family: [str(cut)]}))
    assert error.value.path == str(cut)


def test_a_library_without_code_for_the_gpu_is_named(workshop: Bench) -> None:
    """With CUDA_FORCE_PTX_JIT the driver takes PTX alone, and there is none for this GPU."""
    if not libraries()["curand"]:
        pytest.skip("curand is not here")
    path = libraries()["curand"][0]
    major, minor = workshop.device.capability
    ptx = [target for target in gpu_targets(path).targets or () if target.startswith("compute_")]
    if any(int(target.removeprefix("compute_").rstrip("af")) <= 10 * major + minor for target in ptx):
        pytest.skip("this cuRAND has PTX that fits the GPU")
    source = WITHOUT_CODE.format(root=str(ROOT), path=path, uuid=workshop.uuid)
    variables = {**VARIABLES, "CUDA_FORCE_PTX_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", source], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout == f"{path} curandGenerateUniform: CURAND_STATUS_LAUNCH_FAILURE (201)\n", done.stderr


def spoiled(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, harm: Callable[..., object]) -> None:
    """Do harm after each call of a method."""
    real = getattr(owner, name)

    def method(self: Any, *given: Any) -> Any:
        done = real(self, *given)
        harm(self, *given)
        return done

    monkeypatch.setattr(owner, name, method)


def test_a_wrong_quarter_of_a_sparse_product_is_caught(workshop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Any] = []
    real = bench_cusparse.SparseRunner._task

    def noted(self: Any, *given: Any) -> Any:
        task = real(self, *given)
        results.append(task.result)
        return task

    def harm(_: Any, name: str, *__: Any) -> None:
        result = results[-1] if name == "cusparseSpMM" else None
        if result:
            workshop.device.fill(result.address, result.bytes // 4, 0x3F)

    monkeypatch.setattr(bench_cusparse.SparseRunner, "_task", noted)
    spoiled(monkeypatch, CuSparse, "ask", harm)
    assert not deep("cusparse", workshop)["verification"]["right"]


def test_a_wrong_quarter_of_a_product_with_two_of_four_is_caught(
    workshop: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def harm(_: Any, addresses: tuple[int, int, int], __: int) -> None:
        workshop.device.fill(addresses[2], 8192 * 8192 // 2, 0x3F)

    spoiled(monkeypatch, StructuredProduct, "run", harm)
    measures = {figure.precision: measure for figure, measure in bench_cusparse.measures(workshop).items()}
    if "bf16" not in measures or not libraries()["cusparseLt"]:
        pytest.skip("cuSPARSELt or the GPU has no such product")
    assert not measures["bf16"]()["verification"]["right"]


def test_one_wrong_transform_is_caught(workshop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the bins is overwritten."""

    def harm(_: Any, __: int, target: int, *___: Any) -> None:
        workshop.device.fill(target, 64 * 1024 * 8 // 4, 0x3F)

    spoiled(monkeypatch, Transform, "run", harm)
    assert not deep("cufft", workshop)["verification"]["right"]


def test_a_factor_that_is_spoiled_is_caught(workshop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One column of L and U is overwritten with small numbers."""
    side = bench_cusolver.LEAST

    factored: list[int] = []

    def harm(_: Any, name: str, *__: Any) -> None:
        if name == "cusolverDnXgetrf":
            workshop.device.fill(factored[-1] + 4 * side * (side // 2), 4 * side, 0x3C)

    spoiled(monkeypatch, DenseProblem, "lu", lambda problem, _: factored.append(problem.work.address))
    spoiled(monkeypatch, CuSolver, "ask", harm)
    assert not deep("cusolver", workshop)["verification"]["right"]


def test_random_numbers_that_repeat_are_caught(workshop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the numbers is the same number."""

    def harm(_: Any, target: Any, __: str) -> None:
        workshop.device.fill(target.address, target.bytes // 4, 0x3C)

    spoiled(monkeypatch, Generator, "fill", harm)
    assert not deep("curand", workshop)["verification"]["right"]


@pytest.mark.parametrize("family", list(PROBES))
def test_too_little_memory_is_said(family: str, workshop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop.device, "free_memory", lambda: 1 << 20)
    with pytest.raises(Unavailable, match="MiB of device memory are needed"):
        deep(family, workshop)
