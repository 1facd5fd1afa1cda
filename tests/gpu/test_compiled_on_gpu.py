"""Compiled code in an environment against the GPU that is here: what the driver refuses to load is named."""

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.every import cases

FILES = Path(__file__).parents[1] / "probes" / "elf_files"
RULE = "extension-code-missing"
KERNEL = '__global__ void twice(float *x) { x[0] *= 2; }\nextern "C" void run(float *x) { twice<<<1, 1>>>(x); }\n'
NO_BINARY_FOR_GPU = 209


@pytest.fixture(scope="module")
def driver() -> ctypes.CDLL:
    """The driver, with a context on the first GPU."""
    library = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    assert library.cuInit(0) == 0
    assert library.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert library.cuCtxSetCurrent(context) == 0
    return library


@pytest.fixture
def capability(driver: ctypes.CDLL) -> tuple[int, int]:
    numbers = []
    for attribute in 75, 76:  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
        value = ctypes.c_int()
        assert driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
        numbers.append(value.value)
    return numbers[0], numbers[1]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a package without metadata, in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env/lib").glob("python3*/site-packages")
    (site / "mykernels").mkdir()
    return site / "mykernels"


def found(package: Path) -> list[dict[str, Any]]:
    """What the rule says of the environment."""
    python = package.parents[3] / "bin/python"
    command = [sys.executable, "-m", "envcheck", "check", "--python", str(python), "--only", RULE, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return [check for check in json.loads(done.stdout)["checks"] if check["rule"] == RULE]


@cases("name", "sm_80-cuda-13.0.cubin", "sm_90a-cuda-12.4.cubin", "kernels.fatbin")
def test_the_driver_agrees(driver: ctypes.CDLL, package: Path, name: str) -> None:
    """A finding, or its absence, against what loading the same code says."""
    module, code = ctypes.c_void_p(), (FILES / name).read_bytes()
    answer = driver.cuModuleLoadData(ctypes.byref(module), code)
    assert answer in (0, NO_BINARY_FOR_GPU)
    shutil.copy(FILES / name, package / f"kernel.{name.rpartition('.')[2]}")
    checks = found(package)
    # Code for one architecture alone is used on that one by choice: that it does not run here is no finding.
    expected = [] if answer and "90a" in name else ["warn" if answer else "pass"]
    assert [check["status"] for check in checks] == expected


def test_a_library_for_another_generation(package: Path, capability: tuple[int, int]) -> None:
    if capability[0] == 8:
        pytest.skip("code for sm_80 runs on this GPU")
    shutil.copy(FILES / "linked.so", package / "_C.so")
    (check,) = found(package)
    assert (check["status"], "mykernels" in check["title"], "sm_80" in check["message"]) == ("warn", True, True)
    assert f"TORCH_CUDA_ARCH_LIST={capability[0]}.{capability[1]}" in check["fixes"][0]["text"]


def test_what_nvcc_builds(package: Path, capability: tuple[int, int]) -> None:
    """Built for another generation it is named; built again as the fix says, it passes."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("no nvcc on this machine")
    source = package / "kernel.cu"
    source.write_text(KERNEL)
    own = f"{capability[0]}{capability[1]}"
    other = "80" if capability[0] != 8 else "90"
    for number, status in (other, "warn"), (own, "pass"):
        target = f"-gencode=arch=compute_{number},code=sm_{number}"
        options = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "static", target]
        subprocess.run([nvcc, *options, "-o", str(package / "_C.so"), str(source)], check=True, timeout=300)
        assert [check["status"] for check in found(package)] == [status]
