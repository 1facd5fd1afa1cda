"""The processor's figures with real NumPy and SciPy, and with faults in what they compute."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"NumPy 1": ("numpy==1.26.4", "scipy==1.13.1"), "NumPy 2": ("numpy==2.2.6", "scipy==1.15.3")}
SMALL = """
import json, sys
sys.path.insert(0, {root!r})
import numpy, scipy.sparse
from probes.bench import cpu as bench_cpu
bench_cpu.SIDES = (128,)
bench_cpu.PANEL, bench_cpu.PANELS, bench_cpu.WIDE_PANELS, bench_cpu.WIDTH = 64, 4, 2, 8
bench_cpu.SIZES = {{"1D, batched": (16, 64), "2D": (32, 64)}}
{fault}
found = {{}}
for figure, measure in bench_cpu.measures().items():
    try:
        made = measure()
        assert made["value"] > 0 and made["detail"], made
        found[f"{{figure.name}} {{figure.precision}} {{figure.variant}}"] = made["verification"]["right"]
    except bench_cpu.Absent as reason:
        found[f"{{figure.name}} {{figure.precision}} {{figure.variant}}"] = str(reason)
print(json.dumps(found))
"""
PRODUCTS = ["cpu-gemm fp32 None", "cpu-gemm fp64 None"]
SPARSE = ["cpu-spmv fp32 CSR", "cpu-spmm fp32 CSR"]
BATCHED = ["cpu-fft fp32 1D, batched, C2C", "cpu-fft fp64 1D, batched, C2C"]
FLAT = ["cpu-fft fp32 2D, C2C"]
FAULTS = {
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


@pytest.fixture(scope="module", params=PACKAGES)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numpy")
    subprocess.run([sys.executable, "-m", "uv", "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
    found: Path = folder / "env" / "bin" / "python"
    command = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(found), *PACKAGES[request.param]]
    subprocess.run(command, check=True)
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen_and_nothing_else_is(python: Path, fault: str) -> None:
    code, wrong = FAULTS[fault]
    program = SMALL.format(root=str(ROOT), fault=code)
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    assert set(found) == {*PRODUCTS, *SPARSE, *BATCHED, *FLAT}
    measured = {name: right for name, right in found.items() if isinstance(right, bool)}
    for name in found.keys() - measured.keys():
        assert found[name].endswith(" computes every FFT in FP64")
        assert "fp32" in name
    assert {name for name, right in measured.items() if not right} == set(wrong) & measured.keys()
