"""Environments that are broken in the ways that people meet, each built from real wheels, and told apart.

The whole command judges them as files, for a GPU and a driver that are assumed. Everything that a test installs lies
below its own folder and goes with it.
"""

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.laboratory.place import Place
from tests.lab.laboratory.store import Store
from tests.lab.wheel_members import fetch

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels asked for are for x86_64"),
]

CPU_TORCH = "torch==2.13.0"

TOLD_APART = {
    "nvidia-wheel-conflict", "onnxruntime-cpu-and-gpu", "torch-family-mismatch", "cuda-major-mismatch",
    "library-shadowed", "libstdcxx-too-old", "gpu-code-missing", "jax-plugin-mismatch",
}  # fmt: skip
"""The findings that these environments are about."""


class Broken(Place):
    """An environment to which a test adds what breaks it."""

    def place(self, name: str, version: str) -> None:
        """A wheel of cuDNN, without the libraries that the first one loads."""
        folder = f"{name.replace('-', '_')}-{version}.dist-info"
        members = {f"{folder}/{each}": self.site / folder for each in ("METADATA", "RECORD", "WHEEL")}
        members["nvidia/cudnn/lib/libcudnn.so.9"] = self.site / "nvidia" / "cudnn" / "lib"
        for member, place in members.items():
            file = fetch(f"{name}=={version}", "3.11", rf"^{re.escape(member)}$", self.folder / "members")
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place / file.name)

    def told(self) -> set[str]:
        return self.bad() & TOLD_APART


@pytest.fixture
def broken(tmp_path: Path, store: Store) -> Iterator[Broken]:
    yield Broken(tmp_path, store)
    shutil.rmtree(tmp_path, ignore_errors=True)  # hundreds of megabytes, of which pytest would keep three


def evidence(check: dict[str, Any]) -> str:
    return "\n".join(f"{each['what']} {each['value']} {each['source']}" for each in check["evidence"])


# --- two wheels in one place --------------------------------------------------------------------------------------
def test_two_cudnn_wheels_in_one_folder(broken: Broken) -> None:
    """Of hundreds of megabytes only the records and the first library move; both write that one."""
    broken.place("nvidia-cudnn-cu12", "9.10.2.21")
    broken.judge()
    assert broken.told() == set()
    broken.place("nvidia-cudnn-cu13", "9.12.0.46")
    broken.judge()
    check = broken.found("nvidia-wheel-conflict")
    assert broken.told() == {"nvidia-wheel-conflict"}
    assert "nvidia-cudnn-cu12" in evidence(check)
    assert "nvidia-cudnn-cu13" in evidence(check)
    assert f"{broken.site}/nvidia/cudnn/lib/libcudnn.so.9" in evidence(check)


def test_nccl_of_two_majors_of_cuda_in_one_folder(broken: Broken) -> None:
    broken.install("nvidia-nccl-cu12==2.18.1")
    broken.install("nvidia-nccl-cu13==2.27.7")
    broken.judge()
    check = broken.found("nvidia-wheel-conflict")
    assert broken.told() == {"nvidia-wheel-conflict"}
    assert f"{broken.site}/nvidia/nccl/lib/libnccl.so.2" in evidence(check)
    assert check["fixes"][0]["command"]


def test_the_cpu_package_of_onnxruntime_over_the_gpu_one_and_a_gpu_without_code(broken: Broken) -> None:
    """First the GPU package alone, sound and then on a GPU that it has no code for; then the CPU package over it."""
    broken.install("onnxruntime-gpu==1.15.1")
    broken.judge()
    assert broken.told() <= {"cuda-major-mismatch"}, "it wants CUDA 11, of which another major may be on this system"
    broken.judge("gpu==Tesla K80,driver==470.256.02,os==linux")
    assert "gpu-code-missing" in broken.told()
    assert "sm_" in evidence(broken.found("gpu-code-missing"))

    broken.install("onnxruntime==1.15.1")
    assert (broken.judge()["primary"], broken.told()) == ("onnxruntime-cpu-and-gpu", {"onnxruntime-cpu-and-gpu"})
    check = broken.found("onnxruntime-cpu-and-gpu")
    assert str(broken.site) in evidence(check)
    assert check["fixes"][0]["command"][-2:] == ["onnxruntime", "onnxruntime-gpu"]


# --- one package made for another one -----------------------------------------------------------------------------
def test_torchvision_of_another_torch(broken: Broken) -> None:
    broken.install(CPU_TORCH, "torchvision==0.20.1")
    broken.judge()
    check = broken.found("torch-family-mismatch")
    assert check["status"] == "fail"
    assert "torch-family-mismatch" in broken.told()
    assert f"{broken.site}/torchvision/_C.so" in evidence(check)
    assert check["subject"]["key"].endswith(":torchvision")


def test_torchvision_of_this_torch(broken: Broken) -> None:
    """It fits, unless it is the build for CUDA: then it is told what really is wrong."""
    broken.install(CPU_TORCH, "torchvision==0.28.0")
    broken.judge()
    messages = [check["message"] for check in broken.checks if check["rule"] == "torch-family-mismatch"]
    assert all("for the CPU only" in message for message in messages if message)
    (check,) = [check for check in broken.checks if check["id"] == f"torch-family-mismatch@{broken.prefix}:torchvision"]
    assert (check["status"] == "pass") is ("torch-family-mismatch" not in broken.told())


def test_an_extension_for_another_major_of_cuda(broken: Broken) -> None:
    broken.install(CPU_TORCH, "torchaudio==2.5.1", "nvidia-cuda-runtime==13.0.96")
    broken.judge()
    check = broken.found("cuda-major-mismatch")
    assert "libcudart.so.12" in json.dumps(check)
    assert "libcudart.so.13" in json.dumps(check)


def test_a_jax_plugin_of_another_jaxlib(broken: Broken) -> None:
    broken.install("jax==0.5.0", "jaxlib==0.5.0", "jax-cuda12-plugin==0.4.35")
    report = broken.judge()
    assert "jax-plugin-mismatch" in broken.told()
    check = broken.found("jax-plugin-mismatch")
    assert check["status"] == "fail"
    assert {"0.5.0", "0.4.35"} <= {each["value"] for each in check["evidence"]}
    assert report["primary"] == "jax-plugin-mismatch"


# --- what the loader finds ----------------------------------------------------------------------------------------
def test_a_library_that_a_variable_puts_before_the_bundled_one(broken: Broken) -> None:
    broken.install(CPU_TORCH, "torchaudio==2.5.1", "nvidia-cuda-runtime-cu12==12.4.127")
    older = broken.beside("nvidia-cuda-runtime-cu12==12.1.105")
    broken.judge()
    assert "library-shadowed" not in broken.told()

    broken.variables["LD_LIBRARY_PATH"] = str(older / "nvidia" / "cuda_runtime" / "lib")
    broken.judge()
    check = broken.found("library-shadowed")
    assert str(older) in evidence(check)
    assert f"{broken.site}/nvidia/cuda_runtime/lib/libcudart.so.12" in evidence(check)


PINS = ("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.4.127")
JITLINK = "libnvJitLink.so.12"


@pytest.fixture
def linked(broken: Broken) -> Broken:
    """The real cuSPARSE and nvJitLink of PyTorch 2.5.1, under a stand-in for its own libraries."""
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc here")
    broken.install(*PINS)
    own = broken.site / "torch" / "lib"
    about = broken.site / "torch-2.5.1.dist-info"
    own.mkdir(parents=True)
    about.mkdir()
    (own.parent / "__init__.py").touch()
    (own.parent / "version.py").write_text('__version__ = "2.5.1+cu124"\ncuda = "12.4"\nhip = None\n', encoding="utf-8")
    lines = "".join(f"Requires-Dist: {pin}\n" for pin in PINS)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n{lines}", encoding="utf-8")
    folders = {name: broken.site / "nvidia" / name / "lib" for name in ("nvjitlink", "cusparse")}
    needed = (str(folders["nvjitlink"] / JITLINK), str(folders["cusparse"] / "libcusparse.so.12"))
    for name in ("lib/libtorch_global_deps.so", "lib/libtorch_cuda.so", "_C.so"):
        words = ("-shared", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", *needed)
        paths = "-Wl,--enable-new-dtags,-rpath," + ":".join(map(str, ("$ORIGIN", own, *folders.values())))
        command = [compiler, "-o", str(own.parent / name), "-x", "c", "/dev/null", "-x", "none", *words, paths]
        subprocess.run(command, check=True, capture_output=True)
    broken.judge()
    assert broken.bad() & {"library-shadowed", "library-lacks-symbols", "nvjitlink-mismatch"} == set()
    return broken


def older_jitlink(broken: Broken) -> Path:
    """Of a release that has no call for its version; nothing but its functions tell what it is."""
    found = broken.beside("nvidia-nvjitlink-cu12==12.1.105") / "nvidia" / "nvjitlink" / "lib" / JITLINK
    bare = broken.folder / "bare"
    bare.mkdir()
    return Path(shutil.copy(found, bare / JITLINK))


def test_an_older_nvjitlink_by_its_bare_soname_on_a_variable(linked: Broken) -> None:
    older = older_jitlink(linked)
    linked.variables["LD_LIBRARY_PATH"] = str(older.parent)
    report = linked.judge()
    check = linked.found("library-shadowed")
    assert (check["status"], f"{older} (12.1)" in check["message"]) == ("fail", True)
    assert str(older.parent) in check["fixes"][0]["text"]
    lacking = linked.found("library-lacks-symbols")
    assert "__nvJitLink" in lacking["message"]
    assert lacking["explained_by"]
    assert report["verdict"] == "fail"


def test_an_older_nvjitlink_beside_the_framework(linked: Broken) -> None:
    """RPATH leads to the framework's own folder first."""
    stray = linked.site / "torch" / "lib" / JITLINK
    shutil.copy(older_jitlink(linked), stray)
    linked.judge()
    assert linked.found("nvjitlink-mismatch")["fixes"][0]["command"][:2] == ["mv", str(stray)]
    assert str(stray) in evidence(linked.found("library-lacks-symbols"))
    stray.unlink()
    linked.judge()
    assert linked.bad() & {"library-lacks-symbols", "nvjitlink-mismatch"} == set()


OLD_LIBRARY = """
#include <stddef.h>
void *_Znwm(size_t n) { return 0; }
"""
VERSIONS = "GLIBCXX_3.4 { global: _Znwm; local: *; };\nGLIBCXX_3.4.20 { } GLIBCXX_3.4;\nCXXABI_1.3 { };\n"


def test_a_library_that_needs_a_newer_libstdcxx(broken: Broken) -> None:
    """An old compiler's libstdc++ on LD_LIBRARY_PATH; a stand-in that has the old symbol versions and no more."""
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc here")
    broken.install("onnxruntime==1.20.1")
    broken.judge()
    assert "libstdcxx-too-old" not in broken.bad()

    old = broken.folder / "gcc-4.9" / "lib64"
    old.mkdir(parents=True)
    (old / "old.c").write_text(OLD_LIBRARY, encoding="utf-8")
    (old / "old.map").write_text(VERSIONS, encoding="utf-8")
    words = ("-shared", "-fPIC", "-fno-builtin", "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={old}/old.map")
    library = old / "libstdc++.so.6"
    subprocess.run([compiler, *words, "-o", str(library), str(old / "old.c")], check=True, capture_output=True)
    broken.variables["LD_LIBRARY_PATH"] = str(old)
    broken.judge()
    check = broken.found("libstdcxx-too-old")
    assert check["status"] == "fail"
    assert broken.told() == {"libstdcxx-too-old"}
    assert str(library) in evidence(check)
    assert "GLIBCXX_3.4.20" in evidence(check)
    assert "from LD_LIBRARY_PATH" in check["fixes"][0]["text"]
