"""Which libraries are predicted to be loaded, against what the loader says: real wheels, and a root of one's own.

The loader itself (LD_DEBUG) tells what it loads, so that a process which dies later tells as well. No GPU is needed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Framework, Load
from probes.common.tree import Tree
from probes.files.installations.parts import OpenByName, Preload, examined
from probes.files.loader.script import called, imported, started
from probes.files.python.site import Site
from tests.every import cases
from tests.probes.loader.loading_builds import GCC, REASON, Workshop, runpath

pytestmark = pytest.mark.lab

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
CUDNN = "9.1.0.70"


class Lab:
    """A virtual environment with real wheels in it."""

    def __init__(self, folder: Path, *wheels: str) -> None:
        self.prefix = folder / "env"
        self.folder = folder
        self.packages = self.prefix / "lib" / f"python{MINOR}" / "site-packages"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.prefix], check=True)
        install = ["install", "-q", "--no-deps", "--only-binary=:all:", "--no-cache-dir", *wheels]
        command = [sys.executable, "-m", "pip", "--python", str(self.prefix), *install]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{' '.join(wheels)}: {(done.stderr.strip().splitlines() or ['not to be had'])[-1]}")

    def at(self, path: str) -> str:
        found = sorted(self.packages.glob(path))
        assert found, path
        return str(found[0])

    def site(self, variables: Mapping[str, str]) -> Site:
        tree = Tree({"root": "/", "variables": dict(variables)})
        wheels = ({"name": "nvidia-cudnn-cu12", "version": CUDNN},)
        return Site(tree, str(self.prefix), (str(self.packages),), 0, wheels)

    def examine(
        self, parts: Sequence[str], variables: Mapping[str, str] | None = None, **steps: Any
    ) -> dict[str, Load]:
        """By name, what the framework with these parts would be given."""
        said = examined(self.site(variables or {}), parts, **steps)
        assert said["loads_complete"]
        assert set(said) <= set(Framework.__struct_fields__)
        return {load["name"]: Load(**load) for load in said["loads"]}

    def predicted(
        self,
        parts: Sequence[str],
        variables: Mapping[str, str] | None = None,
        *,
        preloads: Sequence[Preload] = (),
        asks: Sequence[OpenByName] = (),
    ) -> tuple[set[str], set[str]]:
        """Real paths of what the import loads, and of what is loaded once it is called as well."""
        site = self.site(variables or {})
        process = started(site).copy()
        events, before = imported(process, site, tuple(parts), tuple(preloads), first=True)
        first = {process.search.real(image.path) for image in process.images[1:]}
        called(process, site, tuple(asks), tuple(parts), events, before)
        return first, {process.search.real(image.path) for image in process.images[1:]}

    def truth(self, code: str, variables: Mapping[str, str] | None = None) -> tuple[set[str], str]:
        """Real paths of all that Python loads while it runs ``code``, and what it printed."""
        traces = self.folder / "traces"
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir()
        debug = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(traces / "trace")}
        variables = {"PATH": os.environ["PATH"], **(variables or {}), **debug}
        program = [str(self.prefix / "bin" / "python"), "-B", "-c", code]
        done = subprocess.run(program, env=variables, capture_output=True, text=True, check=False, cwd="/")
        lines = [line for trace in traces.iterdir() for line in trace.read_text(errors="replace").splitlines()]
        found = {line.partition("calling init: ")[2].strip() for line in lines if "calling init: /" in line}
        return {os.path.realpath(path) for path in found}, done.stdout + done.stderr

    def own(self, paths: set[str]) -> set[str]:
        """Those below ``site-packages``."""
        return {os.path.relpath(path, self.packages) for path in paths if Path(path).is_relative_to(self.packages)}


def opens(*paths: str) -> str:
    return "import ctypes\n" + "".join(f"ctypes.CDLL({path!r})\n" for path in paths)


# --- PyTorch --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    needs = ["typing_extensions", "filelock", "sympy", "mpmath", "networkx", "jinja2", "fsspec", "markupsafe"]
    return Lab(tmp_path_factory.mktemp("torch"), "torch==2.13.0", "torchtext==0.18.0", *needs)


def torch_parts(lab: Lab) -> list[str]:
    return [lab.at("torch/lib/libtorch_global_deps.so"), lab.at("torch/_C.*.so")]


def test_pytorch_loads_what_was_predicted(torch: Lab) -> None:
    truth, said = torch.truth("import torch; print(torch.ones(2).sum())")
    assert "tensor(2.)" in said
    first, _ = torch.predicted(torch_parts(torch))
    assert first <= truth
    assert torch.own(first) == {path for path in torch.own(truth) if path.startswith("torch")}
    loads = torch.examine(torch_parts(torch))
    assert {load.path for load in loads.values() if "libstdc++" in load.name} <= truth


def test_a_shadowing_libstdcxx(torch: Lab, tmp_path: Path) -> None:
    """torch's libraries do not bring it: LD_LIBRARY_PATH decides."""
    found = torch.examine(torch_parts(torch))["libstdc++.so.6"].path
    assert found
    shutil.copy(found, tmp_path / "libstdc++.so.6")
    variables = {"LD_LIBRARY_PATH": str(tmp_path)}
    truth, _ = torch.truth("import torch", variables)
    load = torch.examine(torch_parts(torch), variables)["libstdc++.so.6"]
    assert (load.path, load.found_by) == (str(tmp_path / "libstdc++.so.6"), "LD_LIBRARY_PATH")
    assert load.path in truth
    assert found in load.others
    assert found not in truth


def test_an_extension_for_another_pytorch(torch: Lab) -> None:
    """torchtext 0.18 was built for torch 2.3; the loader stops at a symbol that was said to be undefined."""
    part = torch.at("torchtext/lib/libtorchtext.so")
    _, said = torch.truth(f"import torch, ctypes, os\nctypes.CDLL({part!r}, mode=os.RTLD_NOW)")
    found = examined(torch.site({}), [part], extends=torch_parts(torch))
    if "undefined symbol: " in said:
        assert said.strip().rpartition("undefined symbol: ")[2] in found["unresolved"]
    else:
        assert found["unresolved"] == []


# --- NVIDIA's wheels ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Of CUDA 12.4, whose cuSPARSE does not say where nvJitLink is."""
    return Lab(
        tmp_path_factory.mktemp("cuda"), "nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-nvrtc-cu12==12.4.127",
        "nvidia-nvjitlink-cu12==12.4.127", "nvidia-cusparse-cu12==12.3.1.170", f"nvidia-cudnn-cu12=={CUDNN}",
    )  # fmt: skip


def test_cusparse_without_and_with_nvjitlink(cuda: Lab) -> None:
    cusparse = cuda.at("nvidia/cusparse/lib/libcusparse.so.12")
    nvjitlink = cuda.at("nvidia/nvjitlink/lib/libnvJitLink.so.12")
    truth, said = cuda.truth(opens(cusparse))
    load = cuda.examine([cusparse])["libnvJitLink.so.12"]
    assert (cusparse in truth, load.path is None) == ("OSError" not in said, "libnvJitLink.so.12: cannot open" in said)
    if load.path is None:
        assert load.unfound == (nvjitlink,)
    preload = Preload(("libnvJitLink.so.*[0-9]",), ("nvidia/nvjitlink/lib",))
    truth, _ = cuda.truth(opens(nvjitlink, cusparse))
    load = cuda.examine([cusparse], preloads=[preload])["libnvJitLink.so.12"]
    assert (load.path, load.found_by) == (nvjitlink, "preloaded")
    assert {nvjitlink, cusparse} <= truth


@cases("shadowed", False, True)
def test_the_parts_of_cudnn(cuda: Lab, tmp_path: Path, *, shadowed: bool) -> None:
    """cuDNN opens its parts by name once it is called: LD_LIBRARY_PATH comes before the folder that it lies in."""
    cudnn = cuda.at("nvidia/cudnn/lib/libcudnn.so.9")
    graph = cuda.at("nvidia/cudnn/lib/libcudnn_graph.so.9")
    shutil.copy(graph, tmp_path / "libcudnn_graph.so.9")
    variables = {"LD_LIBRARY_PATH": str(tmp_path)} if shadowed else {}
    truth, said = cuda.truth(f"{opens(cudnn)}print(ctypes.CDLL({cudnn!r}).cudnnGetVersion())", variables)
    assert said.strip() == "90100"
    load = cuda.examine([cudnn], variables)["libcudnn_graph.so.9"]
    assert load.path == (str(tmp_path / "libcudnn_graph.so.9") if shadowed else graph)
    assert load.path in truth
    assert {path for path in truth if "libcudnn_graph" in path} == {load.path}


def test_nvrtc_finds_its_builtins(cuda: Lab) -> None:
    nvrtc = cuda.at("nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
    code = f"""{opens(nvrtc)}
library, program = ctypes.CDLL({nvrtc!r}), ctypes.c_void_p()
library.nvrtcCreateProgram(ctypes.byref(program), b"__global__ void k() {{}}", b"k.cu", 0, None, None)
print(library.nvrtcCompileProgram(program, 0, None))
"""
    truth, said = cuda.truth(code)
    assert said.strip() == "0"
    _, later = cuda.predicted([nvrtc])
    assert cuda.own(later) == cuda.own(truth)
    assert len(cuda.own(truth)) == 2


# --- ONNX Runtime ---------------------------------------------------------------------------------------------------
SESSION = """
import onnxruntime
def part(number, value):
    return bytes([number << 3 | 2, len(value)]) + value
kind = part(1, bytes([8, 1]) + part(2, part(1, bytes([8, 1]))))
graph = part(1, part(1, b"x") + part(2, b"y") + part(4, b"Relu")) + part(2, b"g")
graph += part(11, part(1, b"x") + part(2, kind)) + part(12, part(1, b"y") + part(2, kind))
model = bytes([8, 8]) + part(7, graph) + part(8, part(1, b"") + bytes([16, 13]))
session = onnxruntime.InferenceSession(model, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
print(session.get_providers())
"""


def test_onnxruntime_falls_back_where_its_provider_finds_nothing(tmp_path: Path) -> None:
    needs = ["numpy", "packaging", "flatbuffers", "coloredlogs", "humanfriendly", "protobuf", "sympy", "mpmath"]
    lab = Lab(tmp_path, "onnxruntime-gpu==1.22.0", *needs)
    truth, said = lab.truth(SESSION)
    assert "['CPUExecutionProvider']" in said
    parts = [lab.at("onnxruntime/capi/onnxruntime_pybind11_state.*.so")]
    providers = ("shared", "cuda")
    asks = [OpenByName((lab.at(f"onnxruntime/capi/libonnxruntime_providers_{name}.so"),)) for name in providers]
    _, later = lab.predicted(parts, asks=asks)
    assert lab.own(later) == {path for path in lab.own(truth) if path.startswith("onnxruntime/")}
    missing = [load for load in lab.examine(parts, asks=asks).values() if load.path is None]
    assert any(f"{load.name}: cannot open shared object file" in said for load in missing)
    assert all(load.optional and load.needed_by == asks[1].names[0] for load in missing)


# --- A root of its own ----------------------------------------------------------------------------------------------
class Root(Workshop):
    """A folder with a C library and a cache, in which the program is started by ``chroot``."""

    def furnish(self) -> None:
        process = self.process(self.program("bin/host"))
        loader = process.system.loader
        libc = process.search.first("libc.so.6", None).path
        assert loader
        for path in (loader, libc, "/proc/cpuinfo"):
            self.at(path.lstrip("/")).write_bytes(Path(path).read_bytes())
            self.at(path.lstrip("/")).chmod(0o755)

    def ldconfig(self, *folders: str) -> None:
        self.at("etc/ld.so.conf").write_text("".join(f"{folder}\n" for folder in folders))
        subprocess.run(["/sbin/ldconfig", "-r", str(self.folder)], check=True, capture_output=True)

    def inside(self, names: Sequence[str], **variables: str) -> set[str]:
        """What is mapped, by paths in the root, when its loader does the search."""
        command = ["/usr/sbin/chroot", str(self.folder), "/bin/host", *names]
        debug = {"LD_DEBUG": "libs", **variables}
        done = subprocess.run(command, env=debug, capture_output=True, text=True, check=False)
        paths = [line.partition("calling init: ")[2] for line in done.stderr.splitlines()]
        return {path for path in paths if path.startswith(("/opt", "/usr/local"))}

    def guessed(self, names: Sequence[str], **variables: str) -> set[str]:
        site = Site(Tree({"root": str(self.folder), "variables": variables}), "/", (), 0, ())
        process = started(site).copy()
        assert process.complete
        for name in names:
            process.open(name, process.images[0])
        return {path for path in (image.path for image in process.images) if path.startswith(("/opt", "/usr/local"))}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    if GCC is None:
        pytest.skip(REASON)
    if os.geteuid() != 0 or not Path("/sbin/ldconfig").exists():
        pytest.skip("only root may start a program in a root of its own")
    made = Root(tmp_path)
    made.furnish()
    (tmp_path / "bin/python3").symlink_to("host")
    return made


def test_the_cache_of_another_root(root: Root) -> None:
    """Written by ldconfig: two folders, subfolders for the processor, absolute links that count from the root."""
    for folder in ("opt/first", "opt/second", "usr/local/lib/glibc-hwcaps/x86-64-v2", "usr/local/lib"):
        root.library(f"{folder}/libdep.so.1.0", soname="libdep.so.1")
        root.library(f"{folder}/lib{folder.rpartition('/')[2]}.so.1")
    root.library("opt/top/libtop.so", ["opt/second/libsecond.so.1", "opt/first/libdep.so.1.0"])
    (root.folder / "opt/linked.so").symlink_to("/opt/top/libtop.so")
    root.library("opt/variable/libsecond.so.1")
    opened = ["/opt/linked.so", "libfirst.so.1", "liblib.so.1", "libnone.so"]
    for order in (["/opt/first", "/opt/second"], ["/opt/second", "/usr/local/lib", "/opt/first"], ["/usr/local/lib"]):
        root.ldconfig(*order)
        for variables in ({}, {"LD_LIBRARY_PATH": "/opt/variable"}):
            truth = root.inside(opened, **variables)
            assert truth
            assert root.guessed(opened, **variables) == truth


def test_a_cache_with_libraries_of_another_class(root: Root) -> None:
    made = root.library("opt/first/libdep.so.1")
    narrow = root.at("opt/second/libdep.so.1")
    command = [GCC or "gcc", "-m32", "-shared", "-nostdlib", "-Wl,-soname,libdep.so.1", "-o", str(narrow)]
    if subprocess.run([*command, "-x", "c", "/dev/null"], capture_output=True, check=False).returncode:
        pytest.skip("this gcc does not link 32-bit libraries")
    root.ldconfig("/opt/second", "/opt/first")
    assert root.inside(["libdep.so.1"]) == root.guessed(["libdep.so.1"]) == {"/" + os.path.relpath(made, root.folder)}


def test_runpath_below_another_root(root: Root) -> None:
    root.library("opt/libs/libdep.so")
    root.library("opt/top/libtop.so", ["opt/libs/libdep.so"], *runpath("$ORIGIN/../libs", "/opt/else"))
    (root.folder / "opt/moved").symlink_to("/opt/top")
    assert root.guessed(["/opt/moved/libtop.so"]) == root.inside(["/opt/moved/libtop.so"]) != set()
