"""Which libraries cuda-pathfinder loads, as predicted, against what the installed one does in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from probes._env_site import Site
from probes._framework_pathfinder import found_by_pathfinder
from probes._loading_python import started
from probes._loading_script import imported
from tests.probes.loading_builds import GCC, REASON, Workshop

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

PLACE = "cuda/pathfinder/_dynamic_libs/load_dl_linux.py"
BUILTINS = "libnvrtc-builtins.so.13.0"
CUBLAS = ("libcublas.so.13", "libcublasLt.so.13")
TOLD = """
import sys
from cuda.pathfinder import load_nvidia_dynamic_lib
for name in sys.argv[1:]:
    load_nvidia_dynamic_lib(name)
print(open("/proc/self/maps").read())
"""


class Room:
    """A virtual environment with libraries linked for the purpose where NVIDIA's wheels would put theirs."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder.resolve() / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.prefix], check=True)
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = self.prefix / "lib" / f"python{minor}" / "site-packages"
        self.shop = Workshop(self.packages)

    def install_pathfinder(self) -> None:
        """A copy of the one that is installed here."""
        module = pytest.importorskip("cuda.pathfinder")
        shutil.copytree(Path(str(module.__file__)).parent, self.packages / "cuda" / "pathfinder")

    def site(self) -> Site:
        return Site({"root": "/", "cwd": "/", "variables": {}}, str(self.prefix), (str(self.packages),), 0, ())

    def loaded(self, *names: str) -> set[str]:
        command = [str(self.prefix / "bin" / "python"), "-B", "-c", TOLD, *names]
        done = subprocess.run(command, env={}, cwd="/", capture_output=True, text=True, check=True)
        paths = {line.partition("/")[1] + line.partition("/")[2] for line in done.stdout.splitlines()}
        return self._own(paths)

    def predicted(self, *names: str) -> set[str]:
        site = self.site()
        process = started(site).copy()
        preloads = [preload for name in names for preload in found_by_pathfinder(site, name)]
        imported(process, site, (), tuple(preloads), first=True)
        return self._own({image.path for image in process.images})

    def _own(self, paths: set[str]) -> set[str]:
        found = (os.path.relpath(path, self.packages) for path in paths if path.endswith(tuple("0123456789")))
        return {path for path in found if not path.startswith("..")}


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        (["nvidia/cu13/lib/libnvrtc.so.13", f"nvidia/cu13/lib/{BUILTINS}"], ["nvrtc"]),
        (["nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.2"], ["nvrtc"]),
        (["nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8"], ["nvrtc"]),
        ([f"nvidia/cu13/lib/{name}" for name in CUBLAS] + ["nvidia/cu13/lib/libcurand.so.10"], ["cublas", "curand"]),
        (["cutensor/lib/libcutensor.so.2", *(f"nvidia/cu13/lib/{name}" for name in CUBLAS)], ["cutensor"]),
        (
            [
                *(f"nvidia/cu13/lib/{name}" for name in CUBLAS),
                "nvidia/cu13/lib/libcusparse.so.12",
                "nvidia/cu13/lib/libnvJitLink.so.13",
                "nvidia/cu13/lib/libcusolver.so.12",
            ],
            ["cusolver"],
        ),
        (["nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so.4"], ["nvvm"]),
    ],
)
def test_what_it_loads_is_what_is_predicted(room: Room, files: Sequence[str], asked: Sequence[str]) -> None:
    room.install_pathfinder()
    for file in files:
        room.shop.library(file)
    truth = room.loaded(*asked)
    assert truth
    assert room.predicted(*asked) == truth


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        ('dep_basename = "libnvrtc-builtins.so.13.0"', True),
        ('major, minor = 13, 0\nsibling = f"libnvrtc-builtins.so.{major}.{minor}"', True),
        ('major, minor = 13, 1\nsibling = f"libnvrtc-builtins.so.{major}.{minor}"', False),
        ("major, minor = 13, 0", False),
        ("", False),
        (b"\xff\0" * 99, False),
        (None, False),
    ],
)
def test_builtins_are_loaded_by_the_versions_that_say_so(room: Room, text: str | bytes | None, *, loaded: bool) -> None:
    """Constructed in the form of 1.8, of 1.9, and of versions that load none, as 1.0."""
    if text is not None:
        room.shop.at(PLACE).write_bytes(text if isinstance(text, bytes) else text.encode())
    room.shop.library("nvidia/cu13/lib/libnvrtc.so.13")
    room.shop.library(f"nvidia/cu13/lib/{BUILTINS}")
    assert (f"nvidia/cu13/lib/{BUILTINS}" in room.predicted("nvrtc")) is loaded
