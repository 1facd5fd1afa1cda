"""What runs under the environment's interpreter on a real GPU: memory, events, and frameworks with right figures."""

import ctypes
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect.catalog import all_probes
from envcheck.collect.gather import gather
from envcheck.collect.plan import BenchRequest
from envcheck.collect.starting import probe_request
from envcheck.model.merge import merge
from envcheck.model.snapshot import Measurement, Snapshot, Trial
from envcheck.rules.speed.frameworks import library_figure
from probes.measuring.device import ordinals
from probes.trials.driver import DriverError, RuntimeGpu
from tests.every import cases
from tests.known import known

NEEDED = ("cuda", "nvml", "environments")


def python_with(module: str) -> str:
    for candidate in (shutil.which("python3"), sys.executable):
        command = [candidate or "", "-c", f"import {module}"]
        if candidate and subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return candidate
    pytest.skip(f"no interpreter here imports {module}")


@cache
def measured(probe: str, python: str, *only: str) -> Snapshot:
    specs = [spec for spec in all_probes() if spec.name in (*NEEDED, probe)]
    request = probe_request(cwd="/", variables=dict(os.environ), python=[python])
    return merge(gather(specs, request, scopes=["node", "env"], bench=BenchRequest(full=True, only=only, force=True)))


@pytest.fixture
def gpu() -> RuntimeGpu:
    return RuntimeGpu()


def test_its_compute_capability_is_what_the_driver_probe_says(gpu: RuntimeGpu) -> None:
    first = min(known(measured("cuda", sys.executable).gpus).items, key=lambda each: 0 if each.cuda_ordinal == 0 else 1)
    assert "{}.{}".format(*gpu.capability()) == first.compute_capability


def test_memory_holds_what_was_written_and_poison_elsewhere(gpu: RuntimeGpu) -> None:
    memory, data = gpu.memory(1000), os.urandom(600)
    assert memory.read(0, 1000) == b"\xff" * 1000
    memory.write(data)
    assert memory.read(100, 500) == data[100:]
    assert memory.read(600, 400) == b"\xff" * 400
    memory.poison()
    assert memory.read(0, 1000) == b"\xff" * 1000
    for start, size in ((-1, 2), (0, 1001), (999, 2)):
        with pytest.raises(ValueError, match="do not lie in"):
            memory.read(start, size)
    with pytest.raises(ValueError, match="do not fit"):
        memory.write(bytes(1001))
    memory.free()


def test_memory_that_is_not_there_is_refused_and_nothing_else_breaks(gpu: RuntimeGpu) -> None:
    with pytest.raises(DriverError, match="cuMemAlloc"):
        gpu.memory(1 << 50)
    memory = gpu.memory(8)
    memory.write(b"12345678")
    assert memory.read(0, 8) == b"12345678"
    memory.free()


def test_freed_memory_is_free_again(gpu: RuntimeGpu) -> None:
    before = gpu.free_memory()
    memory = gpu.memory(1 << 30)
    assert gpu.free_memory() < before
    memory.free()
    assert gpu.free_memory() >= before - (64 << 20)


def test_what_is_timed_runs_on_the_stream(gpu: RuntimeGpu) -> None:
    source, target = gpu.memory(1 << 26), gpu.memory(1 << 26)
    data, driver = os.urandom(1 << 12), ctypes.CDLL("libcuda.so.1")
    source.write(data)

    def copy() -> None:
        addresses = ctypes.c_uint64(target.address), ctypes.c_uint64(source.address)
        assert driver.cuMemcpyDtoDAsync_v2(*addresses, ctypes.c_size_t(1 << 26), ctypes.c_void_p(gpu.stream)) == 0

    samples = gpu.timed(copy)
    assert len(samples) == 7
    assert min(samples) > 0
    assert target.read(0, 1 << 12) == data
    source.free()
    target.free()


def test_the_processor_is_measured_by_the_environments_numpy() -> None:
    found = measured("bench.cpu", python_with("numpy, scipy.sparse"))
    (run,) = [run for run in found.runs if run.name == "bench.cpu"]
    assert (run.status, run.gpu) == ("ok", None)
    names = {(figure.name, figure.precision, figure.variant) for figure in found.measurements}
    assert ("cpu-gemm", "fp64", None) in names
    assert ("cpu-spmm", "fp32", "CSR") in names
    for figure in found.measurements:
        assert figure.missing is None or "computes every FFT in FP64" in figure.missing
        if figure.value is not None:
            assert figure.gpu is None
            assert known(figure.verification).right
            assert "logical CPU" in figure.detail
    products = [figure for figure in found.measurements if figure.name == "cpu-gemm"]
    for figure in products:
        assert "thread" in figure.detail
        assert figure.library
        assert Path(figure.library).is_file()


def test_only_what_was_asked_for_is_measured() -> None:
    found = measured("bench.cpu", python_with("numpy"), "cpu-fft")
    assert {figure.name for figure in found.measurements} == {"cpu-fft"}


def test_tensorrt_computes_and_fuses() -> None:
    found = measured("bench.tensorrt", python_with("tensorrt"))
    figures: dict[tuple[Any, Any], Any] = {(each.precision, each.variant): each for each in found.measurements}
    assert set(figures) >= {(kind, way) for kind in ("fp32", "fp16", "int8") for way in ("fused", "unfused")}
    for figure in figures.values():
        assert not figure.failed, figure.missing
        if figure.missing is None:
            assert figure.verification.right, (figure.detail, figure.verification)
    for kind in ("fp32", "fp16", "int8"):
        assert "convolution, bias and ReLU are one layer" in figures[kind, "fused"].detail


def test_an_environment_without_tensorrt_says_so() -> None:
    python = python_with("numpy")
    if subprocess.run([python, "-c", "import tensorrt"], check=False, capture_output=True).returncode == 0:
        pytest.skip("this environment has TensorRT")
    found = measured("bench.tensorrt", python)
    runs = [run for run in found.runs if run.name == "bench.tensorrt"]
    assert sorted(run.gpu or "" for run in runs) == sorted(ordinals())  # one for each GPU
    for run in runs:
        assert (run.status, run.detail) == ("absent", "not there: tensorrt, tensorrt-cu*, nvidia-tensorrt")
    assert not found.measurements


# --- Frameworks at work on a real GPU -------------------------------------------------------------------------------
NEEDED_FRAMEWORKS = ("cuda", "nvml", "environments", "libraries", "bench.gemm", "bench.cudnn")


@cache
def measured_frameworks(
    framework: str, python: str, variables: tuple[tuple[str, str], ...] = (), *only: str
) -> Snapshot:
    specs = [
        spec for spec in all_probes() if spec.name in NEEDED_FRAMEWORKS or spec.name.startswith(f"bench.{framework}")
    ]
    request = probe_request(cwd="/", variables={**os.environ, **dict(variables)}, python=[python])
    return merge(
        gather(specs, request, scopes=["node", "env"], bench=BenchRequest(frameworks=True, only=only, force=True))
    )


def trial_of(found: Snapshot, framework: str) -> Trial:
    items = [each for where in known(found.environments).items if where.frameworks for each in where.frameworks.items]
    return next(each.trial for each in items if each.name.startswith(framework) and each.trial)


def figures(found: Snapshot, framework: str) -> list[Measurement]:
    return [each for each in found.measurements if each.name.startswith(f"{framework}-")]


@cases("framework", "torch", "jax", "cupy", "tensorflow", "onnxruntime")
def test_every_figure_is_right_and_most_have_one_of_the_library_beside_them(framework: str) -> None:
    found = measured_frameworks(framework, python_with(framework))
    trial = trial_of(found, framework)
    (run,) = [run for run in found.runs if run.name == f"bench.{framework}"]
    if framework == "onnxruntime" and run.status == "absent":
        pytest.skip(run.detail)  # its build for the CPU has the same name
    assert trial.ran_on_gpu, trial.error
    own = figures(found, framework)
    assert own
    for figure in own:
        assert not figure.failed, (figure.name, figure.variant, figure.missing)
        if figure.value is not None and figure.unit != "s":
            assert figure.verification, figure.name
            assert figure.verification.right, (figure.name, figure.variant, figure.verification)
    products = [figure for figure in own if figure.name == f"{framework}-gemm" and figure.value]
    assert products
    assert all(library_figure(figure, found) for figure in products)


def test_a_framework_that_was_told_to_use_the_cpu_has_no_figures() -> None:
    found = measured_frameworks("jax", python_with("jax"), (("JAX_PLATFORMS", "cpu"),))
    assert trial_of(found, "jax").ran_on_gpu is False
    assert figures(found, "jax") == []
    (run,) = [run for run in found.runs if run.name == "bench.jax"]
    assert (run.status, run.detail) == ("absent", "JAX computes on the cpu")


def test_only_what_was_named_is_measured() -> None:
    found = measured_frameworks("cupy", python_with("cupy"), (), "cupy-gemm")
    assert {figure.name for figure in found.measurements} == {"cupy-gemm"} | {"gemm"}
