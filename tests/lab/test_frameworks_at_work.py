"""Figures of the processor with the real wheels of NumPy, SciPy, JAX and ONNX Runtime, and with faults in them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"jax": ("jax==0.10.2", "numpy==2.2.6"), "onnxruntime": ("onnxruntime==1.23.2", "numpy==2.2.6")}
SMALL = """
import importlib, json, sys
sys.path.insert(0, {root!r})
from probes.framework_bench import framework as measuring, workloads
from probes.measuring.runtime import Unavailable, LibraryError
measuring.is_device_memory, measuring.free_memory = (lambda pointer: bool(pointer)), (lambda: 64 << 30)
measuring.SIDES, measuring.SAMPLES, workloads.PAUSE, workloads.SAMPLE_SECONDS = (128,), 2, 0.0, 0.0001
measuring.STEPS = workloads.Steps(width=64, batch=32)
probe = importlib.import_module("probes.bench.{name}")
measuring.BenchFramework.layer = lambda _: workloads.LayerShape(2, 16, 16, 7, 3)
measuring.BenchFramework.heads = lambda _: workloads.Heads(1, 2, 32, 16, 0.5)
module = importlib.import_module({name!r})
{made}
{fault}
found = {{}}
for figure, measure in framework.measures().items():
    try:
        made = measure()
        assert made["value"] > 0 and made["method"] == {name!r} and len(made["samples"]) == 2, made
        found[str(figure)] = made["verification"]["right"]
    except (Unavailable, LibraryError) as reason:
        found[str(figure)] = str(reason)
print(json.dumps(found))
"""
MADE = {
    "jax": "framework = probe.Jax(module)",
    "onnxruntime": """
probe.session_for = lambda _, model, options: module.InferenceSession(model, providers=["CPUExecutionProvider"])
framework, Value = probe.OnnxRuntime(module), module.OrtValue
class Runtime:
    class OrtValue:
        ortvalue_from_shape_and_type = staticmethod(lambda *given: Value.ortvalue_from_shape_and_type(*given[:2]))
        ortvalue_from_numpy = staticmethod(lambda numbers, *_: Value.ortvalue_from_numpy(numbers))
framework.runtime = Runtime
""",
}
WORKS = {
    "jax": [
        *(f"jax-gemm {kind} jit" for kind in ("fp32", "tf32", "bf16")),
        *(
            f"jax-convolution {kind}, jit"
            for kind in ("tf32 forward, NHWC", "bf16 forward, NHWC", "bf16 forward, NCHW")
        ),
        "jax-attention bf16 forward, jit",
        "jax-attention bf16 forward, jit with cuDNN",
        "jax-training-step bf16 jit",
        "jax-training-step bf16 eager",
    ],
    "onnxruntime": [
        *(f"onnxruntime-gemm {kind} session" for kind in ("fp32", "tf32", "fp16")),
        *(f"onnxruntime-convolution {kind} forward, NCHW, session" for kind in ("tf32", "fp16")),
        "onnxruntime-attention fp16 forward, session",
    ],
}
FAULTS: dict[str, dict[str, tuple[str, str]]] = {
    "jax": {
        "nothing": ("", ""),
        "a product a twentieth too large": (
            """
right = framework.numpy.matmul
def larger(left, other, precision=None):
    return (right(left, other, precision=precision) * 1.05).astype(left.dtype)
framework.numpy.matmul = larger""",
            "jax-gemm",
        ),
        "a convolution a tenth too small": (
            """
right = module.lax.conv_general_dilated
module.lax.conv_general_dilated = lambda given, *rest, **more: right(given * 0.9, *rest, **more)""",
            "jax-convolution",
        ),
        "attention by another scale": (
            """
right = module.nn.dot_product_attention
module.nn.dot_product_attention = lambda *given, scale, **more: right(*given, scale=1.5 * scale, **more)""",
            "jax-attention",
        ),
        "a step at another rate": (
            "probe.STEPS = workloads.Steps(width=64, batch=32, rate=0.013)",
            "jax-training-step",
        ),
    },
    "onnxruntime": {
        "nothing": ("", ""),
        "operands that are not those of the host": (
            """
right = framework._on_gpu
framework._on_gpu = lambda numbers: probe.ArrayOnGpu(right(numbers * 1.1).value, numbers)""",
            "onnxruntime",
        ),
    },
}


@pytest.fixture(scope="module", params=PACKAGES)
def framework(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    subprocess.run([sys.executable, "-m", "uv", "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
    python: Path = folder / "env" / "bin" / "python"
    command = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(python), *PACKAGES[request.param]]
    subprocess.run(command, check=True)
    return request.param, python


def measured(name: str, python: Path, fault: str) -> dict[str, Any]:
    program = SMALL.format(root=str(ROOT), name=name, made=MADE[name], fault=fault)
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_a_fault_is_seen_and_nothing_else_is(framework: tuple[str, Path]) -> None:
    name, python = framework
    for fault, (code, wrong) in FAULTS[name].items():
        found = measured(name, python, code)
        assert list(found) == WORKS[name]
        verdicts = {figure: right for figure, right in found.items() if isinstance(right, bool)}
        assert found.keys() - verdicts.keys() <= {"jax-attention bf16 forward, jit with cuDNN"}
        bad = {figure for figure, right in verdicts.items() if not right}
        assert bad == {figure for figure in verdicts if wrong and figure.startswith(wrong)}, fault


def test_a_result_outside_the_gpus_memory_is_refused(framework: tuple[str, Path]) -> None:
    name, python = framework
    found = measured(name, python, "measuring.is_device_memory = lambda pointer: False")
    assert len([text for text in found.values() if isinstance(text, str) and "the CPU" in text]) >= len(found) - 1


# --- The processor's figures with real NumPy and SciPy, and with faults in what they compute ------------------------
PACKAGES_CPU = {"NumPy 1": ("numpy==1.26.4", "scipy==1.13.1"), "NumPy 2": ("numpy==2.2.6", "scipy==1.15.3")}
SMALL_CPU = """
import json, sys
sys.path.insert(0, {root!r})
import numpy, scipy.sparse
from probes.bench import cpu as bench_cpu
workloads = bench_cpu.workloads
bench_cpu.PANEL, workloads.PANELS, workloads.WIDE_PANELS, workloads.WIDTH = 64, 4, 2, 8
bench_cpu.SIZES = {{"1D, batched": (16, 64), "2D": (32, 64)}}
{fault}
found = {{}}
for figure, measure in bench_cpu.measures().items():
    try:
        made = measure()
        assert made["value"] > 0 and made["detail"], made
        found[f"{{figure.name}} {{figure.precision}} {{figure.variant}}"] = made["verification"]["right"]
    except bench_cpu.Unavailable as reason:
        found[f"{{figure.name}} {{figure.precision}} {{figure.variant}}"] = str(reason)
print(json.dumps(found))
"""
PRODUCTS = ["cpu-gemm fp32 None", "cpu-gemm fp64 None"]
SPARSE = ["cpu-spmv fp32 CSR", "cpu-spmm fp32 CSR"]
BATCHED = ["cpu-fft fp32 1D, batched, C2C", "cpu-fft fp64 1D, batched, C2C"]
FLAT = ["cpu-fft fp32 2D, C2C"]
FAULTS_CPU = {
    "nothing": ("", []),
    "a product that writes nothing": ("numpy.matmul = lambda left, right, out: None", PRODUCTS),
    "a product in half precision": (
        """right = numpy.matmul
numpy.matmul = lambda a, b, out: out.__setitem__(..., right(a.astype("f2"), b.astype("f2")))""",
        PRODUCTS,
    ),
    "a sparse product a thousandth too large": (
        """right = scipy.sparse.csr_matrix.__matmul__
scipy.sparse.csr_matrix.__matmul__ = lambda matrix, other: right(matrix, other) * numpy.float32(1.001)""",
        SPARSE,
    ),
    "a transform the other way round": ("numpy.fft.fft = lambda given, *axis: numpy.fft.ifft(given) * 64", BATCHED),
    "a transform of rows only": ("numpy.fft.fft2 = numpy.fft.fft", FLAT),
}


@pytest.fixture(scope="module", params=PACKAGES_CPU)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numpy")
    subprocess.run([sys.executable, "-m", "uv", "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
    found: Path = folder / "env" / "bin" / "python"
    command = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(found), *PACKAGES_CPU[request.param]]
    subprocess.run(command, check=True)
    return found


@pytest.mark.parametrize("fault", FAULTS_CPU)
def test_a_fault_of_the_processor_is_seen_and_nothing_else(python: Path, fault: str) -> None:
    code, wrong = FAULTS_CPU[fault]
    program = SMALL_CPU.format(root=str(ROOT), fault=code)
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    assert set(found) == {*PRODUCTS, *SPARSE, *BATCHED, *FLAT}
    measured = {name: right for name, right in found.items() if isinstance(right, bool)}
    for name in found.keys() - measured.keys():
        assert found[name].endswith(" computes every FFT in FP64")
        assert "fp32" in name
    assert {name for name, right in measured.items() if not right} == set(wrong) & measured.keys()
