"""What is installed is not what was shipped, also where an intact copy lies elsewhere."""

import shutil
from collections.abc import Callable

from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.place import Place

DAMAGED = (
    "damaged-distribution", "cuda-library-missing", "cudnn-missing", "jit-compiler-missing", "framework-import-fails",
    "library-not-found",
)  # fmt: skip
"""Any of these may be the root cause, as long as it names the file or the package."""


PTXAS = """
import subprocess, sysconfig
subprocess.run([sysconfig.get_path("platlib") + "/triton/backends/nvidia/bin/ptxas", "--version"], check=True)
"""


def torch(change: Callable[[Place], object]) -> Callable[[Place], None]:
    return _changed(stacks.TORCH_12, change)


def jax(change: Callable[[Place], object]) -> Callable[[Place], None]:
    return _changed(stacks.JAX_12, change)


def _changed(stack: tuple[str, ...], change: Callable[[Place], object]) -> Callable[[Place], None]:
    def build(place: Place) -> None:
        place.install(*stack)
        change(place)

    return build


def _libraries_elsewhere(place: Place, *wheels: str) -> None:
    """Intact copies on LD_LIBRARY_PATH, which comes after the RPATH of PyTorch's libraries."""
    place.lead("LD_LIBRARY_PATH", *sorted(place.beside(*wheels, name="toolkit").glob("nvidia/*/lib")))


def _cublas_cut_off(place: Place) -> None:
    place.truncate("nvidia/cublas/lib/libcublasLt.so.12", 0.4)
    _libraries_elsewhere(place, "nvidia-cublas-cu12==12.4.5.8")


def _cusparse_cut_off(place: Place) -> None:
    place.truncate("nvidia/cusparse/lib/libcusparse.so.12", 0.7)
    _libraries_elsewhere(place, "nvidia-cusparse-cu12==12.3.1.170")


def _cudnn_is_a_pointer(place: Place) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 240000000\n"
    place.rewrite("nvidia/cudnn/lib/libcudnn.so.9", pointer)
    _libraries_elsewhere(place, "nvidia-cudnn-cu12==9.1.0.70")


def _disk_was_full(place: Place) -> None:
    """What was unpacked last has names and no content."""
    for pattern in ("sympy/core/*.py", "mpmath/libmp/*.py"):
        for file in sorted(place.site.glob(pattern)):
            place.rewrite(str(file.relative_to(place.site)), b"")


def _half_an_upgrade(place: Place) -> None:
    """The new release was being unpacked over the old one, whose record is still there, when it ended."""
    newer = place.beside("numpy==2.3.4", name="newer")
    for pattern in ("numpy/__init__.py", "numpy/version.py", "numpy/_core/__init__.py", "numpy/_core/_add_newdocs.py"):
        place.rewrite(pattern, (newer / pattern).read_bytes())
    place.remove("numpy/_core/_multiarray_umath*.so")


def _ptxas_is_no_program(place: Place) -> None:
    """A copy by way of a file system that knows no permissions."""
    name = "triton/backends/nvidia/bin/ptxas"
    place.rewrite(name, place.file(name).read_bytes()).chmod(0o644)


def _left_over(place: Place) -> None:
    """pip was ended while it replaced torch: it had moved the old record aside."""
    record = place.file("torch-2.5.1.dist-info")
    record.rename(record.with_name("~orch-2.5.1.dist-info"))
    place.remove("torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so")


def _links_to_a_toolkit_that_is_gone(place: Place) -> None:
    """An image whose copies of NVIDIA's libraries were made links, to save room."""
    for library in sorted(place.site.glob("nvidia/curand/lib/*.so*")):
        library.unlink()
        library.symlink_to(f"/opt/gone/lib64/{library.name}")


def _two_records_of_numpy(place: Place) -> None:
    """An image's layer brought another NumPy over the one that was there."""
    place.install(*stacks.CUPY)
    older = place.beside("numpy==1.26.4", name="layer")
    shutil.copytree(older / "numpy-1.26.4.dist-info", place.site / "numpy-1.26.4.dist-info")


ENTRIES = (
    Broken("numpy's folder gone, cupy", "damage", _changed(stacks.CUPY, lambda place: place.remove("numpy")), DAMAGED,
        ("numpy",), works="import cupy"),
    Broken("scipy's folder gone, jax", "damage", jax(lambda place: place.remove("scipy")), DAMAGED, ("scipy",),
        works="import jax, scipy.special"),
    Broken("numpy's compiled core gone, numba", "damage",
        _changed(stacks.NUMBA, lambda place: place.remove("numpy/_core/_multiarray_umath*.so")), DAMAGED,
        ("_multiarray_umath|numpy",), works="from numba import cuda"),
    Broken("torch/__init__.py edited", "damage",
        torch(lambda place: place.rewrite("torch/__init__.py", b"raise SystemError('edited')\n")), DAMAGED,
        (r"torch/__init__\.py",), works="import torch"),
    Broken("typing_extensions.py empty", "damage", torch(lambda place: place.rewrite("typing_extensions.py", b"")),
        DAMAGED, ("typing.extensions",), works="import torch"),
    Broken("libtorch_cpu cut off", "damage", torch(lambda place: place.truncate("torch/lib/libtorch_cpu.so", 0.5)),
        DAMAGED, (r"libtorch_cpu\.so",), works="import torch"),
    Broken("libc10 gone", "damage", torch(lambda place: place.remove("torch/lib/libc10.so")), DAMAGED, (r"libc10\.so",),
        works="import torch"),
    Broken("header of a NumPy library overwritten", "damage",
        torch(lambda place: place.overwrite("numpy/_core/_multiarray_umath*.so", 0.0)), DAMAGED, ("_multiarray_umath",),
        works="import numpy"),
    Broken("bytes of OpenBLAS overwritten, --verify", "damage",
        torch(lambda place: place.overwrite("numpy.libs/libscipy_openblas64*", 0.5, 1 << 20)), DAMAGED, ("openblas",),
        options=("--verify",)),
    Broken("bytes of libtorch_python overwritten, --verify", "damage",
        torch(lambda place: place.overwrite("torch/lib/libtorch_python.so", 0.5, 1 << 16)), DAMAGED,
        (r"libtorch_python\.so",), options=("--verify",)),
    Broken("ptxas of Triton gone", "damage", torch(lambda place: place.remove("triton/backends/nvidia/bin/ptxas")),
        DAMAGED, ("ptxas",), works=PTXAS),
    Broken("ptxas of Triton without the right to run", "damage", torch(_ptxas_is_no_program), DAMAGED, ("ptxas",),
        works=PTXAS),
    Broken("libdevice of numba gone", "damage",
        _changed(stacks.NUMBA, lambda place: place.remove("nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc")), DAMAGED,
        ("libdevice",)),
    Broken("libNVVM of numba empty", "damage",
        _changed(stacks.NUMBA, lambda place: place.rewrite("nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so", b"")), DAMAGED,
        ("libnvvm",)),
    Broken("links of cuRAND lead nowhere", "damage", torch(_links_to_a_toolkit_that_is_gone), DAMAGED,
        ("curand", "/opt/gone|dangling link"), works="import torch"),
    Broken("cuSPARSE's folder deleted by hand", "damage", torch(lambda place: place.remove("nvidia/cusparse")), DAMAGED,
        ("cusparse",), works="import torch"),
    Broken("cuDNN's engines cut off", "damage",
        torch(lambda place: place.truncate("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9", 0.5)), DAMAGED,
        ("libcudnn_engines_precompiled",)),
    Broken("METADATA of torch gone", "damage", torch(lambda place: place.remove("torch-2.5.1.dist-info/METADATA")),
        DAMAGED, ("METADATA", "torch")),
    Broken("two records of NumPy", "damage", _two_records_of_numpy, DAMAGED, ("1.26.4", "2.2.6")),
    Broken("disk was full", "damage", torch(_disk_was_full), DAMAGED, ("sympy|mpmath",), works="import sympy"),
    Broken("half an upgrade of numpy", "damage", torch(_half_an_upgrade), DAMAGED, ("numpy",), works="import numpy"),
    Broken("~orch left over", "damage", torch(_left_over), DAMAGED, ("torch",), works="import torch"),
    Broken("JAX's PJRT plug-in cut off", "damage",
        jax(lambda place: place.truncate("jax_plugins/xla_cuda12/xla_cuda_plugin.so", 0.5)), DAMAGED,
        ("xla_cuda_plugin",)),
    Broken("jaxlib's extension gone, uv", "damage", jax(lambda place: place.remove("jaxlib/_jax.so")), DAMAGED,
        ("jaxlib",), works="import jax", manager="uv"),
    Broken("libcublasLt cut off, intact one on LD_LIBRARY_PATH", "copy elsewhere", torch(_cublas_cut_off), DAMAGED,
        (r"libcublasLt\.so\.12", r"site-packages/nvidia/cublas|nvidia-cublas-cu12"), works="import torch"),
    Broken("libcusparse cut off, intact one on LD_LIBRARY_PATH", "copy elsewhere", torch(_cusparse_cut_off), DAMAGED,
        (r"libcusparse\.so\.12",), works="import torch"),
    Broken("libcudnn is a pointer, intact one on LD_LIBRARY_PATH", "copy elsewhere", torch(_cudnn_is_a_pointer),
        DAMAGED, (r"libcudnn\.so\.9|cudnn",), works="import torch", manager="uv"),
)  # fmt: skip
