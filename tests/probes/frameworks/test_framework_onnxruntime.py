"""ONNX Runtime: distributions that fill one package, told apart by their files.

The files are constructed; what they say is what the wheels of onnxruntime and onnxruntime-gpu 1.11.0 to 1.31.1 say.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.snapshot import Framework
from tests.every import cases
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing

CAPI = "onnxruntime/capi"
STATE = f"{CAPI}/onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so"
CUDA = f"{CAPI}/libonnxruntime_providers_cuda.so"
Files = dict[str, str | bytes]


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    return Frameworks(tmp_path)


def cpu_files(version: str = "1.31.1") -> Files:
    info = f"package_name = 'onnxruntime'\n__version__ = '{version}'\n"
    return {
        "onnxruntime/__init__.py": "",
        f"{CAPI}/build_and_package_info.py": info,
        STATE: elf_needing("libc.so.6"),
        f"{CAPI}/libonnxruntime_providers_shared.so": elf_needing("libc.so.6"),
    }


def gpu_files(version: str = "1.31.1") -> Files:
    return {
        **cpu_files(version),
        f"{CAPI}/build_and_package_info.py": (
            f"package_name = 'onnxruntime-gpu'\n__version__ = '{version}'\ncuda_version = '13.0'\n"
        ),
        STATE: elf_needing("libc.so.6", constants=b"a build with CUDA is larger"),
        CUDA: elf_needing("libcublasLt.so.13", "libcudart.so.13", "libcuda.so.1"),
        f"{CAPI}/libonnxruntime_providers_tensorrt.so": elf_needing("libnvinfer.so.10"),
    }


def names(found: Framework) -> list[str]:
    return [load.name for load in found.loads or ()]


def test_the_cpu_package(tree: Frameworks) -> None:
    tree.package(cpu_files(), "onnxruntime", "1.31.1")
    found = tree.only()
    assert (found.name, found.version, found.cpu_only) == ("onnxruntime", "1.31.1", True)
    assert (found.providers, found.cuda, found.problem, found.binaries) == (("CPU",), None, None, (f"{SITE}/{STATE}",))


@cases(
    "code, call",
    ("def preload_dlls(cuda: bool = True):\n    pass\n", "onnxruntime.preload_dlls()"),
    ("# def preload_dlls(): not in this release\n", None),
)
def test_the_call_that_loads_libraries_of_wheels(tree: Frameworks, code: str, call: str | None) -> None:
    tree.package({**gpu_files(), "onnxruntime/__init__.py": code}, "onnxruntime-gpu", "1.31.1")
    assert tree.only().preload_call == call


def test_the_gpu_package(tree: Frameworks) -> None:
    tree.package(gpu_files(), "onnxruntime-gpu", "1.31.1")
    found = tree.only()
    assert (found.name, found.version, found.cpu_only) == ("onnxruntime-gpu", "1.31.1", False)
    assert (found.providers, found.cuda) == (("CUDA", "TensorRT", "CPU"), "13.0")
    assert f"{SITE}/{CUDA}" in (found.binaries or ())


def test_the_cpu_package_over_the_gpu_package(tree: Frameworks) -> None:
    """The provider's library is left over, and the compiled part that decides is the CPU's."""
    tree.package(gpu_files(), "onnxruntime-gpu", "1.31.1")
    tree.package(cpu_files(), "onnxruntime", "1.31.1")
    found = tree.only()
    assert (found.name, found.cpu_only, found.providers) == ("onnxruntime", True, ("CUDA", "TensorRT", "CPU"))
    assert found.problem == (
        "onnxruntime-gpu 1.31.1 was installed into the same package; the files there are of onnxruntime 1.31.1"
    )


def test_the_gpu_package_over_the_cpu_package(tree: Frameworks) -> None:
    tree.package(cpu_files(), "onnxruntime", "1.31.1")
    tree.package(gpu_files(), "onnxruntime-gpu", "1.31.1")
    found = tree.only()
    assert (found.name, found.cpu_only, found.cuda) == ("onnxruntime-gpu", False, "13.0")
    assert (found.problem or "").startswith("onnxruntime 1.31.1 was installed into the same package")


def test_a_release_that_does_not_name_itself(tree: Frameworks) -> None:
    files = {path: content for path, content in gpu_files().items() if "build_and_package" not in path}
    tree.package(files, "onnxruntime-gpu", "1.18.0")
    found = tree.only()
    assert (found.name, found.version, found.cpu_only) == ("onnxruntime-gpu", "1.18.0", False)


def test_other_devices(tree: Frameworks) -> None:
    files = {**cpu_files(), f"{CAPI}/libonnxruntime_providers_openvino.so": elf_needing("libc.so.6")}
    tree.package(files, "onnxruntime-openvino", "1.24.1")
    found = tree.only()
    assert (found.name, found.providers, found.cpu_only) == ("onnxruntime-openvino", ("OpenVINO", "CPU"), True)


def test_without_a_folder_only_the_name_tells(tree: Frameworks) -> None:
    tree.wheel(SITE, "onnxruntime_gpu", "1.31.1")
    found = tree.only()
    assert (found.name, found.cpu_only, found.providers) == ("onnxruntime-gpu", False, None)
    assert found.problem == "its metadata is there, its folder is not: an incomplete installation"
