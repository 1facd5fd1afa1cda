"""Variables that stop a framework, and driver libraries that are none.

Those of the first kind are judged without an assumed machine, of whose shell nothing is known. Lists of visible GPUs
are tried on a GPU machine.
"""

import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.place import Place

USES_JAX = "import jax; jax.numpy.ones(3) + 1"


def _set(stack: tuple[str, ...], **variables: str) -> Callable[[Place], None]:
    def build(place: Place) -> None:
        place.install(*stack)
        place.variables.update(variables)

    return build


def _file_first(stack: tuple[str, ...], name: str, content: bytes) -> Callable[[Place], None]:
    """A file of that name in a folder that LD_LIBRARY_PATH puts first."""

    def build(place: Place) -> None:
        place.install(*stack)
        folder = place.folder / "compat"
        folder.mkdir()
        (folder / name).write_bytes(content)
        place.lead("LD_LIBRARY_PATH", folder)

    return build


STUB = """
int cuInit(unsigned flags) { return 34; }
int cuDriverGetVersion(int *version) { *version = 0; return 34; }
int cuDeviceGetCount(int *count) { *count = 0; return 34; }
"""


def _stub(place: Place) -> None:
    """The toolkit's folder of libraries to link against, in the shape that many Dockerfiles give it."""
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc here")
    place.install(*stacks.TORCH_12)
    folder = place.folder / "cuda-12.4" / "targets" / "x86_64-linux" / "lib" / "stubs"
    folder.mkdir(parents=True)
    source = folder / "stub.c"
    source.write_text(STUB)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so"), str(source)],
        check=True,
    )
    (folder / "libcuda.so.1").symlink_to("libcuda.so")
    place.lead("LD_LIBRARY_PATH", folder)


def _cut_off_nvml(place: Place) -> None:
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc here")
    place.install(*stacks.JAX_12)
    folder = place.folder / "compat"
    folder.mkdir()
    library = folder / "libnvidia-ml.so.1"
    (folder / "nvml.c").write_text("int nvmlInit_v2(void){return 9;} char room[200000] = {1};")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(folder / "nvml.c")],
        check=True,
    )
    library.write_bytes(library.read_bytes()[:90000])
    place.lead("LD_LIBRARY_PATH", folder)


CONTAINER = ("--scope", "container,env")

ENTRIES = (
    Broken("allocator setting with '='", "variable",
        _set(stacks.TORCH_12, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb=128"), (),
        ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb"), assumed=""),
    Broken("allocator setting with a word for a number", "variable",
        _set(stacks.TORCH_13, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:yes"), (),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments"), assumed=""),
    Broken("allocator setting that does not exist", "variable",
        _set(stacks.TORCH_12, PYTORCH_CUDA_ALLOC_CONF="max_split_size:128"), (),
        ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size"), assumed=""),
    Broken("unknown XLA flag", "variable", _set(stacks.JAX_12, XLA_FLAGS="--xla_gpu_enable_fast_everything=true"), (),
        ("XLA_FLAGS", "xla_gpu_enable_fast_everything"), works=USES_JAX, assumed=""),
    Broken("XLA flag without dashes", "variable", _set(stacks.JAX_12, XLA_FLAGS="/opt/xla_flags.txt"), (),
        ("XLA_FLAGS",), works=USES_JAX, assumed=""),
    Broken("JAX_PLATFORMS misspelt", "variable", _set(stacks.JAX_12, JAX_PLATFORMS="cdua"), (),
        ("JAX_PLATFORMS", "cdua"), works=USES_JAX, assumed=""),
    Broken("JAX's memory fraction is not a number", "variable",
        _set(stacks.JAX_12, XLA_PYTHON_CLIENT_MEM_FRACTION="75%"), (), ("XLA_PYTHON_CLIENT_MEM_FRACTION",), assumed=""),
    Broken("JAX set to the CPU", "variable", _set(stacks.JAX_12, JAX_PLATFORMS="cpu"), (), ("JAX_PLATFORMS",),
        assumed=""),
    Broken("Triton's ptxas in a place that is not there", "variable",
        _set(stacks.TORCH_12, TRITON_PTXAS_PATH="/opt/cuda-11.8/bin/ptxas"), (), ("TRITON_PTXAS_PATH",), assumed=""),
    Broken("CUDA_HOME of a toolkit that is gone", "variable", _set(stacks.TORCH_12, CUDA_HOME="/opt/cuda-11.8"), (),
        ("CUDA_HOME",), assumed=""),
    Broken("NVVM of numba in a place that is not there", "variable", _set(stacks.NUMBA, CUDA_HOME="/opt/cuda-11.8"), (),
        ("CUDA_HOME",), assumed=""),
    Broken("libcuda empty", "driver library", _file_first(stacks.TORCH_12, "libcuda.so.1", b""), (),
        (r"libcuda\.so\.1", "compat"), options=CONTAINER),
    Broken("libcuda is a text", "driver library",
        _file_first(stacks.CUPY, "libcuda.so.1", b"../../lib/x86_64-linux-gnu/libcuda.so.550.54.14\n"), (),
        (r"libcuda\.so\.1", "compat"), options=CONTAINER),
    Broken("libcuda is the toolkit's stub", "driver library", _stub, ("stub-library-loaded", "driver-library-unusable"),
        ("stubs",), options=CONTAINER),
    Broken("libnvidia-ml cut off", "driver library", _cut_off_nvml, (), (r"libnvidia-ml\.so\.1", "compat"),
        options=CONTAINER),
)  # fmt: skip
