"""What frameworks open by name once they compute, and libraries of their own that are gone."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from envcheck.model.checks import Report
from envcheck.model.snapshot import Framework
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from probes.common.tree import REFUSED
from probes.files.installations.catalog import frameworks
from tests.every import cases
from tests.probes.conftest import RunProbe
from tests.probes.loader.loading_builds import GCC, REASON, Workshop, rpath
from tests.probes.loader.test_loading_frameworks import SITE, Bench

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

CATALOGUE = "cuda/pathfinder/_dynamic_libs/descriptor_catalog.py"
LISTED = "_submodules = (\n    'cublas',\n)\ndef __getattr__(name): _pathfinder.load_nvidia_dynamic_lib(name)\n"


class Tree(Bench):
    """A bench for packages whose text matters too."""

    def text(self, path: str, text: str = "") -> None:
        place = self.folder / SITE / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def naming(self, path: str, *names: str) -> None:
        """A library with these names among its constants."""
        source = self.shop.at("names.c")
        source.write_text("".join(f'const char name_{number}[] = "{name}";\n' for number, name in enumerate(names)))
        self.library(path, [], "-fPIC", str(source))

    def cupy(self, cuda: str) -> None:
        self.text("cupy/__init__.py")
        self.text("cupy/.data/_wheel.json", f'{{"cuda": "{cuda}.x"}}')

    def read(self, **variables: str) -> Framework:
        (found,) = frameworks(self.site(**variables))
        return msgspec.convert(found, Framework)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def missed(framework: Framework) -> dict[str, bool]:
    """What it would not be given, and whether it goes on without; the driver may be here or not."""
    loads = (load for load in framework.loads or () if load.path is None)
    return {load.name: load.optional for load in loads if load.name != "libcuda.so.1"}


BINDING = "cupy_backends/cuda/libs/nvrtc.cpython-311-x86_64-linux-gnu.so"
NVRTC = ("libnvrtc.so.11.2", "libnvrtc.so.13", "libnvrtc.so.12")


@cases("cuda, name", ("11", "libnvrtc.so.11.2"), ("12", "libnvrtc.so.12"))
def test_cupy_opens_the_compiler_for_its_cuda(tree: Tree, cuda: str, name: str) -> None:
    """As 13.x: "CuPy failed to load libnvrtc.so.12". Its binding knows the names of several."""
    tree.cupy(cuda)
    tree.naming(BINDING, *NVRTC)
    found = tree.read()
    assert (missed(found), found.looks_in_wheels) == ({name: False}, False)
    tree.library(f"system/{name}")
    found = tree.read(LD_LIBRARY_PATH=str(tree.folder / SITE / "system"))
    assert missed(found) == {}
    tree.library("nvidia/cublas/lib/libcublasLt.so.12")
    tree.library("cutensor/lib/libcutensor.so.2")
    found = tree.read(LD_LIBRARY_PATH=str(tree.folder / SITE / "system"))
    assert "libcublasLt.so.12" not in {load.name for load in found.loads or ()}, "that is what pathfinder does"
    assert str(tree.folder / SITE / "system" / name) in {load.path for load in found.loads or ()}


def test_a_later_cupy_takes_the_compiler_that_cuda_pathfinder_finds(tree: Tree) -> None:
    """As 14.x, whose build for CUDA 12 computes with NVRTC 13."""
    tree.cupy("12")
    tree.library(BINDING)
    tree.text("cupy_backends/cuda/libs/__init__.py", LISTED)
    tree.text(CATALOGUE, 'linux_sonames=("libnvrtc.so.13", "libnvrtc.so.12")\n')
    found = tree.read()
    assert (missed(found), found.looks_in_wheels) == ({"libnvrtc.so.13": False}, True)
    tree.library("nvidia/cu13/lib/libnvrtc.so.13")
    assert missed(tree.read()) == {}


def test_ctranslate2_opens_cublas(tree: Tree) -> None:
    """As 4.8.5: "Library libcublas.so.12 is not found or cannot be loaded"; NCCL serves several GPUs alone."""
    tree.text("ctranslate2/__init__.py")
    tree.library("ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so")
    tree.naming("ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5", "libcublas.so.12", "libnccl.so.2")
    found = tree.read()
    assert (missed(found), found.looks_in_wheels) == ({"libcublas.so.12": False, "libnccl.so.2": True}, False)


@cases("code, expected",
    ("def get_supported_ccs():\n", {"libnvvm.so.4": False, "libnvrtc.so.13": False}), ("", {"libnvvm.so.4": False}),
)  # fmt: skip
def test_numba_cuda_stops_without_the_compilers(tree: Tree, code: str, expected: dict[str, bool]) -> None:
    """As 0.30.4, which compiles no kernel before NVRTC has told for what it compiles; older ones need NVVM alone."""
    tree.text("numba_cuda/__init__.py")
    tree.text("numba_cuda/numba/cuda/cudadrv/nvrtc.py", code)
    part = tree.library("numba_cuda/numba/cuda/cext/_dispatcher.cpython-311-x86_64-linux-gnu.so")
    tree.text(CATALOGUE, '("libnvvm.so.4", "libnvvm.so") ("libnvrtc.so.13", "libnvrtc.so.12")\n')
    found = tree.read()
    compilers = [load for load in found.loads or () if load.name.startswith(("libnvvm", "libnvrtc"))]
    assert {load.name: load.optional for load in compilers} == expected, "found in a toolkit of this machine or not"
    assert {load.needed_by for load in compilers} == {part}
    assert found.looks_in_wheels


def test_numba_cuda_takes_the_stub_of_a_toolkit_for_the_driver(tree: Tree) -> None:
    """As 0.30.4, which asks for libcuda.so before libcuda.so.1."""
    tree.text("numba_cuda/__init__.py")
    tree.library("numba_cuda/numba/cuda/cext/_dispatcher.cpython-311-x86_64-linux-gnu.so")
    tree.library("stubs/libcuda.so")
    stubs = str(tree.folder / SITE / "stubs")
    (load,) = (load for load in tree.read(LD_LIBRARY_PATH=stubs).loads or () if load.name.startswith("libcuda.so"))
    assert load.path == f"{stubs}/libcuda.so"


@cases("cuda, expected", ("11.8", {"libcublas.so": False, "libcudnn.so": False}), ("False", {}))
def test_paddle_opens_the_names_of_a_toolkit(tree: Tree, cuda: str, expected: dict[str, bool]) -> None:
    """As 2.6.2, which also looks for cuDNN in /usr/local/cuda/lib64."""
    tree.text("paddle/__init__.py")
    tree.text("paddle/version/__init__.py", f"full_version = '2.6.2'\ncuda_version = '{cuda}'\n")
    tree.library("paddle/base/libpaddle.so")
    if Path("/usr/local/cuda/lib64/libcudnn.so").exists():
        pytest.skip("there is a cuDNN where it looks")
    assert missed(tree.read()) == expected


# --- A library of a framework's own that is gone from where its module looks ----------------------------------------
OWN = "lib/python3.11/site-packages"
LIBRARY = f"{OWN}/torch/lib/libtorch_python.so"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """PyTorch as conda or a build from source installs it: without a list of its files."""
    shop = Workshop(tmp_path)
    shop.program("bin/python3.11")
    shop.at("lib/python3.11/os.py").touch()
    shop.library(f"{OWN}/torch/lib/libtorch.so", [])
    shop.library(LIBRARY, [f"{OWN}/torch/lib/libtorch.so"], *rpath("$ORIGIN"))
    shop.library(f"{OWN}/torch/_C.cpython-311-x86_64-linux-gnu.so", [LIBRARY], *rpath("$ORIGIN/lib"))
    shop.at(f"{OWN}/torch/__init__.py").touch()
    shop.at(f"{OWN}/torch/version.py").write_text("__version__ = '2.5.1'\ncuda = '12.4'\nhip = None\n")
    shop.at(f"{OWN}/torch-2.5.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n")
    return tmp_path


def instead(place: Path, put: Callable[[Path], object]) -> None:
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    put(place)


HOLES: dict[str, Callable[[Path], None]] = {
    "gone": lambda root: (root / LIBRARY).unlink(),
    "a pipe": lambda root: instead(root / LIBRARY, os.mkfifo),
    "a dangling link": lambda root: instead(root / LIBRARY, lambda place: place.symlink_to("nowhere")),
    "its folder gone": lambda root: shutil.rmtree((root / LIBRARY).parent),
    "its folder a pipe": lambda root: instead((root / LIBRARY).parent, os.mkfifo),
    "what it needs gone": lambda root: (root / LIBRARY).with_name("libtorch.so").unlink(),
}


def judged(environment: Path, run_probe: RunProbe) -> Report:
    REFUSED.clear()
    snapshot, _ = run_probe("environments", {"python": [str(environment)], "variables": {}}, sourced=False)
    return judge(snapshot, Request(scopes=frozenset({"env"})))


def test_a_whole_one_has_no_finding(environment: Path, run_probe: RunProbe) -> None:
    assert "library-not-found" not in {check.rule for check in judged(environment, run_probe).checks}


@pytest.mark.parametrize("hole", HOLES)
def test_a_library_of_its_own_that_is_not_found_fails(hole: str, environment: Path, run_probe: RunProbe) -> None:
    HOLES[hole](environment)
    report = judged(environment, run_probe)
    (check,) = (check for check in report.checks if check.rule == "library-not-found")
    assert (check.status, report.verdict) == ("fail", "fail")
    assert "libtorch" in check.title
