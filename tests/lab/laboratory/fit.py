"""Packages, drivers and GPUs that do not go together, and environments whose fixes are easily got wrong."""

import json
import shutil
import sys
from collections.abc import Callable

import pytest

from tests.lab.debian_driver import driver_libraries
from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.place import Place, rewrite

NUMPY_1 = "numpy==1.26.4"


def installs(*requirements: str) -> Callable[[Place], None]:
    return lambda place: place.install(*requirements)


def with_wheels_on_path(*requirements: str) -> Callable[[Place], None]:
    """For what does not look into NVIDIA's wheels by itself."""

    def build(place: Place) -> None:
        place.install(*requirements)
        place.lead("LD_LIBRARY_PATH", *sorted(place.site.glob("nvidia/*/lib")))

    return build


def _torch_and(*requirements: str, without: str = "") -> Callable[[Place], None]:
    def build(place: Place) -> None:
        place.install(*(each for each in stacks.TORCH_12 if not without or without not in each))
        if requirements:
            place.install(*requirements)

    return build


def _conda(place: Place) -> None:
    """A CPU build of PyTorch that conda put there, as its records say."""
    place.install(*stacks.TORCH_CPU)
    records = place.prefix / "conda-meta"
    records.mkdir()
    (records / "history").write_text("")
    python = {
        "name": "python",
        "version": f"{sys.version_info.major}.{sys.version_info.minor}.0",
        "build": "0_cpython",
        "channel": "conda-forge",
    }
    (records / "python-0.json").write_text(json.dumps({**python, "build_number": 0, "files": []}))
    for record in place.site.glob("*.dist-info"):
        name, _, version = record.name.removesuffix(".dist-info").partition("-")
        rewrite(record / "INSTALLER", b"conda\n")
        package = {
            "name": "pytorch" if name == "torch" else name,
            "version": version.partition("+")[0],
            "build": "cpu_0",
        }
        files = [str(file.relative_to(place.prefix)) for file in place.site.glob(f"{name}/**/*.py")]
        described = {**package, "build_number": 0, "channel": "conda-forge", "files": files}
        (records / f"{package['name']}-{package['version']}-cpu_0.json").write_text(json.dumps(described))
    (place.prefix / "pyvenv.cfg").unlink()
    (place.site.parent / "os.py").touch()  # conda's environments have the standard library of their own


def _base_gone(place: Place) -> None:
    place.install(*stacks.TORCH_CPU)
    settings = place.prefix / "pyvenv.cfg"
    gone = place.folder / "gone" / "bin"
    lines = [f"home = {gone}" if line.startswith("home") else line for line in settings.read_text().splitlines()]
    settings.write_text("\n".join([*lines, ""]))
    for link in (place.prefix / "bin").glob("python*"):
        if link.is_symlink() and link.readlink().is_absolute():
            link.unlink()
            link.symlink_to(gone / link.name)


def _python_too_new(place: Place) -> None:
    """A release for Pythons before this one, forced in."""
    wheel = place.beside("numba-cuda==0.0.20", name="old")
    place.install(*(each for each in stacks.NUMBA if "numba-cuda" not in each))
    record = next(wheel.glob("numba_cuda-*.dist-info"))
    metadata = (record / "METADATA").read_text()
    rewrite(record / "METADATA", metadata.replace("Requires-Python: >=3.9", "Requires-Python: <3.11,>=3.9").encode())
    shutil.copytree(wheel, place.site, dirs_exist_ok=True)


def _debian(place: Place) -> None:
    """The user-space libraries of R535, as an image brings them, with no device behind them."""
    place.install(*stacks.TORCH_13)
    place.lead("LD_LIBRARY_PATH", driver_libraries("535", place.folder / "driver"))


def without_compiler(*requirements: str) -> Callable[[Place], None]:
    """Triton compiles a small C file at its first kernel."""

    def build(place: Place) -> None:
        place.install(*requirements)
        if not (shutil.which("gcc", path="/bin") or shutil.which("cc", path="/bin")):
            pytest.skip("no compiler to take away")
        tools = place.folder / "empty"
        tools.mkdir()
        place.variables["PATH"] = str(tools)

    return build


LINALG = """
import ctypes, pathlib, torch
ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cuda_linalg.so"))
"""
NMS = "import torch, torchvision; torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)"

ENTRIES = (
    Broken("driver 470 and CUDA 12.4", "fit", installs(*stacks.TORCH_12), ("driver-too-old",), ("470",), "elsewhere",
        assumed="gpu==A100,driver==470.256.02,os==linux"),
    Broken("driver 535 and CUDA 13", "fit", installs(*stacks.TORCH_13), ("driver-too-old",), ("535",), "elsewhere",
        assumed="gpu==A100,driver==535.183.01,os==linux"),
    Broken("RTX 5090 and torch 2.5.1", "fit", installs(*stacks.TORCH_12), ("gpu-code-missing",), ("120|12\\.0",),
        "elsewhere", assumed="gpu==RTX 5090,driver==580.65.06,os==linux"),
    Broken("V100 and CUDA 13", "fit", installs(*stacks.TORCH_13), ("gpu-code-missing",), ("70|7\\.0",), "elsewhere",
        assumed="gpu==V100,driver==580.65.06,os==linux"),
    Broken("CPU build on a GPU machine, pip", "fit", installs(*stacks.TORCH_CPU), ("cpu-only-build",), ("torch",),
        "elsewhere", fix=r"install torch==2\.13\.0\+cu\d+ --index-url"),
    Broken("CPU build, conda", "fit", _conda, ("cpu-only-build",), ("torch",), "elsewhere",
        fix="^(conda|mamba|micromamba) "),
    Broken("torchvision of another torch", "fit", _torch_and("torchvision==0.19.1", "pillow==12.0.0"),
        ("torch-family-mismatch",), ("torchvision",), works=NMS),
    Broken("torchaudio of another torch", "fit", _torch_and("torchaudio==2.4.1"), ("torch-family-mismatch",),
        ("torchaudio",), works="import torchaudio"),
    Broken("JAX's plug-in of another release", "fit",
        installs(*(each for each in stacks.JAX_12 if "plugin" not in each), "jax-cuda12-plugin==0.5.1"),
        ("jax-plugin-mismatch",), ("0.5.1",)),
    Broken("JAX's PJRT missing", "fit", installs(*(each for each in stacks.JAX_12 if "pjrt" not in each)),
        ("jax-plugin-mismatch",), ("jax.cuda12.pjrt",)),
    Broken("JAX's plug-in missing beside its PJRT", "fit",
        installs(*(each for each in stacks.JAX_12 if "plugin" not in each)), ("jax-plugin-mismatch",),
        ("jax.cuda12.plugin",)),
    Broken("NumPy 2 and CuPy of NumPy 1", "fit", with_wheels_on_path(*stacks.CUPY_OF_NUMPY_1, stacks.NUMPY),
        ("numpy-abi-mismatch", "requirement-broken"), ("(?i)numpy",), works="import cupy"),
    Broken("Python too new", "fit", _python_too_new,
        ("python-not-admitted", "python-unsupported", "requirement-broken"), ("numba.cuda",)),
    Broken("cuBLAS missing", "pins", _torch_and(without="cublas"), ("cuda-library-missing",), ("cublas",),
        works="import torch"),
    Broken("cuDNN missing", "pins", _torch_and(without="cudnn"), ("cudnn-missing", "cuda-library-missing"),
        ("(?i)cudnn",), works="import torch"),
    Broken("cuSOLVER missing, uv", "pins", _torch_and(without="cusolver"),
        ("cuda-library-missing", "requirement-broken"), ("cusolver",), works=LINALG, manager="uv"),
    Broken("cuFFT missing", "pins", _torch_and(without="cufft"), ("cuda-library-missing",), ("cufft",),
        works="import torch"),
    Broken("sympy older than required, uv", "pins",
        installs(*(each for each in stacks.TORCH_13 if "sympy" not in each), "sympy==1.12.1"), ("requirement-broken",),
        ("sympy>=1.13.3",), manager="uv"),
    Broken("Triton of another torch", "pins", _torch_and("triton==3.2.0"),
        ("torch-family-mismatch", "requirement-broken"), (r"3\.2\.0",)),
    Broken("older NCCL than pinned", "pins", _torch_and("nvidia-nccl-cu12==2.18.1"),
        ("nccl-version-mismatch", "requirement-broken", "nvidia-wheel-conflict"), ("2.18.1",)),
    Broken("NCCL of two majors", "pins", _torch_and("nvidia-nccl-cu13==2.28.9"), ("nvidia-wheel-conflict",),
        ("nvidia-nccl-cu13",)),
    Broken("typing_extensions missing", "pins", _torch_and(without="typing-ext"), ("requirement-broken",),
        ("typing.extensions",), works="import torch"),
    Broken("packaging missing after --no-deps", "pins",
        with_wheels_on_path(*(each for each in stacks.ONNX if "packaging" not in each)), ("requirement-broken",),
        ("packaging",)),
    Broken("sympy of another release than pinned", "pins", _torch_and("sympy==1.12.1"), ("requirement-broken",),
        ("sympy",)),
    Broken("base interpreter gone", "environment", _base_gone, ("environment-broken",), ("gone",), works="import torch",
        assumed=""),
    Broken("libcuda of R535 on disk, CUDA 13, no GPU", "no GPU", _debian, ("driver-too-old",), ("535",), "elsewhere",
        assumed=""),
    Broken("no compiler for Triton", "fit", without_compiler("triton==3.1.0", "filelock==4.2.11"),
        ("jit-compiler-missing",), ("(?i)triton|compiler",), "elsewhere", assumed=""),
)  # fmt: skip
