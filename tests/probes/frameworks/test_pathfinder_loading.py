"""Which libraries cuda-pathfinder loads, as predicted, against what the installed one does in a process of its own."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from probes.common.library_names import family_of
from probes.common.tree import Tree
from probes.files.installations.pathfinder import found_by_pathfinder, found_in_toolkit
from probes.files.loader.script import OpenByName, called, imported, started
from probes.files.python.site import Site
from tests.every import cases
from tests.probes.loader.loading_builds import GCC, REASON, Workshop

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
        venv.create(self.prefix, symlinks=True)
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = self.prefix / "lib" / f"python{minor}" / "site-packages"
        self.shop = Workshop(self.packages)

    def install_pathfinder(self) -> None:
        """A copy of the one that is installed here."""
        module = pytest.importorskip("cuda.pathfinder")
        shutil.copytree(Path(str(module.__file__)).parent, self.packages / "cuda" / "pathfinder")

    def site(self, variables: Mapping[str, str]) -> Site:
        return Site(Tree({"variables": dict(variables)}), str(self.prefix), (str(self.packages),), 0, ())

    def loaded(self, *names: str, **variables: str) -> set[str]:
        """Where libraries really lie that a program of this environment has when it has loaded these."""
        command = [str(self.prefix / "bin" / "python"), "-B", "-c", TOLD, *names]
        done = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, check=True)
        return self._libraries({line.partition("/")[1] + line.partition("/")[2] for line in done.stdout.splitlines()})

    def predicted(self, *names: str, **variables: str) -> set[str]:
        site = self.site(variables)
        process = started(site).copy()
        preloads = [preload for name in names for preload in found_by_pathfinder(site, name)]
        events, before = imported(process, site, (), tuple(preloads), first=True)
        called(
            process, site, tuple(OpenByName((f"lib{name}.so.4",)) for name in names if name == "nvvm"), (), events,
            before,
        )  # fmt: skip
        return self._libraries({process.search.real(image.path) for image in process.images})

    def _libraries(self, paths: set[str]) -> set[str]:
        """Those of CUDA, some of which this machine may have."""
        return {os.path.relpath(path, self.packages) for path in paths if family_of(Path(path).name)}


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@cases(
    "files, asked", (["nvidia/cu13/lib/libnvrtc.so.13", f"nvidia/cu13/lib/{BUILTINS}"], ["nvrtc"]),
    (["nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.2"], ["nvrtc"]),
    (["nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8"], ["nvrtc"]),
    ([f"nvidia/cu13/lib/{name}" for name in CUBLAS] + ["nvidia/cu13/lib/libcurand.so.10"], ["cublas", "curand"]),
    (["cutensor/lib/libcutensor.so.2", *(f"nvidia/cu13/lib/{name}" for name in CUBLAS)], ["cutensor"]),
    ([*(f"nvidia/cu13/lib/{name}" for name in CUBLAS), "nvidia/cu13/lib/libcusparse.so.12",
       "nvidia/cu13/lib/libnvJitLink.so.13", "nvidia/cu13/lib/libcusolver.so.12"], ["cusolver"]),
    (["nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so.4"], ["nvvm"]),
)  # fmt: skip
def test_what_it_loads_is_what_is_predicted(room: Room, files: Sequence[str], asked: Sequence[str]) -> None:
    room.install_pathfinder()
    for file in files:
        room.shop.library(file)
    truth = room.loaded(*asked)
    assert truth
    assert room.predicted(*asked) == truth


TOOLKIT = ("cuda-13.0/lib64/libcudart.so.13", "cuda-13.0/lib64/libcusparseLt.so.0", "cuda-13.0/nvvm/lib64/libnvvm.so.4")


@cases(
    "variables, asked", ({"CUDA_HOME": "toolkit"}, ["nvvm", "cusparseLt"]), ({"CUDA_PATH": "cuda-13.0/"}, ["nvvm"]),
    ({"LD_LIBRARY_PATH": "cuda-13.0/lib64"}, ["nvvm"]),
    ({"LD_LIBRARY_PATH": "else/lib", "CUDA_HOME": "toolkit"}, ["nvvm"]),
    ({"LD_LIBRARY_PATH": "cuda-13.0/nvvm/lib64", "CUDA_HOME": "else"}, ["nvvm"]),
)  # fmt: skip
def test_a_toolkit_is_its_last_resort(room: Room, variables: Mapping[str, str], asked: Sequence[str]) -> None:
    room.install_pathfinder()
    for file in (*TOOLKIT, "else/nvvm/lib64/libnvvm.so.4", "else/lib/libcudart.so.13"):
        room.shop.library(file)
    for folder in ("cuda-13.0", "else"):
        room.shop.at(f"{folder}/nvvm/lib64/libnvvm.so").symlink_to("libnvvm.so.4")
    room.shop.at("toolkit").symlink_to("cuda-13.0")
    absolute = {name: f"{room.packages}/{value}" for name, value in variables.items()}
    truth = room.loaded(*asked, **absolute)
    assert {path for path in truth if "libnvvm" in path}
    assert room.predicted(*asked, **absolute) == truth


def test_a_wheel_comes_before_a_toolkit(room: Room) -> None:
    room.install_pathfinder()
    for file in (*TOOLKIT, "nvidia/cu13/lib/libnvvm.so.4"):
        room.shop.library(file)
    variables = {"CUDA_HOME": f"{room.packages}/cuda-13.0", "LD_LIBRARY_PATH": f"{room.packages}/cuda-13.0/lib64"}
    assert room.predicted("nvvm", **variables) == room.loaded("nvvm", **variables) == {"nvidia/cu13/lib/libnvvm.so.4"}


def test_the_names_asked_for_in_a_toolkit_are_those_of_its_catalogue(room: Room) -> None:
    room.install_pathfinder()
    catalogue = pytest.importorskip("cuda.pathfinder._dynamic_libs.descriptor_catalog")
    site = room.site({"CUDA_HOME": "/cuda"})
    theirs = {entry.name: entry.linux_sonames for entry in catalogue.DESCRIPTOR_CATALOG}
    for library in ("cudart", "nvvm", "cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparseLt", "nccl"):
        (preload,) = found_in_toolkit(site, library)
        assert set(preload.names) == {name for name in theirs[library] if name[-1].isdigit()}
    assert not found_in_toolkit(site, "no such library")


@cases("text", b"", b"\xff\0" * 99, b"libcufft.so." + b"9" * 99, b"libcufft.so")
def test_a_catalogue_without_names_has_it_look_for_none(room: Room, text: bytes) -> None:
    room.shop.at("cuda/pathfinder/_dynamic_libs/descriptor_catalog.py").write_bytes(text)
    assert not found_in_toolkit(room.site({"CUDA_HOME": "/cuda"}), "cufft")


def test_older_ones_list_the_names_elsewhere(room: Room) -> None:
    """Constructed in the form of 1.0 to 1.3."""
    text = '"cufft": (\n        "libcufft.so.9",\n        "libcufft.so.10",\n    ),'
    room.shop.at("cuda/pathfinder/_dynamic_libs/supported_nvidia_libs.py").write_text(text)
    (preload,) = found_in_toolkit(room.site({"CUDA_HOME": "/cuda"}), "cufft")
    assert preload.names == ("libcufft.so.10", "libcufft.so.9")


@cases("text, loaded",
    ('dep_basename = "libnvrtc-builtins.so.13.0"', True),
    ('major, minor = 13, 0\nsibling = f"libnvrtc-builtins.so.{major}.{minor}"', True),
    ('major, minor = 13, 1\nsibling = f"libnvrtc-builtins.so.{major}.{minor}"', False), ("major, minor = 13, 0", False),
    ("", False), (b"\xff\0" * 99, False), (None, False),
)  # fmt: skip
def test_builtins_are_loaded_by_the_versions_that_say_so(room: Room, text: str | bytes | None, *, loaded: bool) -> None:
    """Constructed in the form of 1.8, of 1.9, and of versions that load none, as 1.0."""
    if text is not None:
        room.shop.at(PLACE).write_bytes(text if isinstance(text, bytes) else text.encode())
    room.shop.library("nvidia/cu13/lib/libnvrtc.so.13")
    room.shop.library(f"nvidia/cu13/lib/{BUILTINS}")
    assert (f"nvidia/cu13/lib/{BUILTINS}" in room.predicted("nvrtc")) is loaded
