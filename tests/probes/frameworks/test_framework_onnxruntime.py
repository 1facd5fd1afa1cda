"""ONNX Runtime, numba-cuda and XLA's flags, as files tell of them."""

from pathlib import Path

from probes.common.tree import Tree
from probes.files.installations.parts import unknown_flags
from tests.every import cases
from tests.known import Expected, fields
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing, requires

CAPI = "onnxruntime/capi"
STATE = f"{CAPI}/onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so"
CUDA = f"{CAPI}/libonnxruntime_providers_cuda.so"
Files = dict[str, str | bytes]
INTO = "was installed into the same package; the files there are of "
BINARIES = tuple(f"{SITE}/{path}" for path in (STATE, f"{CAPI}/libonnxruntime_providers_shared.so", CUDA))


def cpu_files(version: str = "1.31.1") -> Files:
    info = f"package_name = 'onnxruntime'\n__version__ = '{version}'\n"
    return {
        "onnxruntime/__init__.py": "", f"{CAPI}/build_and_package_info.py": info, STATE: elf_needing("libc.so.6"),
        f"{CAPI}/libonnxruntime_providers_shared.so": elf_needing("libc.so.6"),
    }  # fmt: skip


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


CPU, GPU = (cpu_files(), "onnxruntime", "1.31.1"), (gpu_files(), "onnxruntime-gpu", "1.31.1")
UNNAMED = {path: content for path, content in gpu_files().items() if "build_and_package" not in path}
OPENVINO = {**cpu_files(), f"{CAPI}/libonnxruntime_providers_openvino.so": elf_needing("libc.so.6")}
PRELOADING = "def preload_dlls(cuda: bool = True):\n    pass\n"
NOT_PRELOADING = "# def preload_dlls(): not in this release\n"


@cases("about, installed, expected",
    ("the CPU package", [CPU],
     {"name": "onnxruntime", "version": "1.31.1", "cpu_only": True, "providers": ("CPU",), "cuda": None,
      "problem": None, "binaries": (f"{SITE}/{STATE}",)}),
    ("the GPU package", [GPU],
     {"name": "onnxruntime-gpu", "version": "1.31.1", "cpu_only": False, "providers": ("CUDA", "TensorRT", "CPU"),
      "cuda": "13.0", "binaries": BINARIES}),
    # the provider's library is left over, and the compiled part that decides is the CPU's
    ("the CPU package over the GPU package", [GPU, CPU],
     {"name": "onnxruntime", "cpu_only": True, "providers": ("CUDA", "TensorRT", "CPU"),
      "problem": f"onnxruntime-gpu 1.31.1 {INTO}onnxruntime 1.31.1"}),
    ("the GPU package over the CPU package", [CPU, GPU],
     {"name": "onnxruntime-gpu", "cpu_only": False, "cuda": "13.0",
      "problem": f"onnxruntime 1.31.1 {INTO}onnxruntime-gpu 1.31.1"}),
    ("a release that does not name itself", [(UNNAMED, "onnxruntime-gpu", "1.18.0")],
     {"name": "onnxruntime-gpu", "version": "1.18.0", "cpu_only": False}),
    ("another device", [(OPENVINO, "onnxruntime-openvino", "1.24.1")],
     {"name": "onnxruntime-openvino", "providers": ("OpenVINO", "CPU"), "cpu_only": True}),
    ("without a folder the name alone tells", [({}, "onnxruntime-gpu", "1.31.1")],
     {"name": "onnxruntime-gpu", "cpu_only": False, "providers": None,
      "problem": "its metadata is there, its folder is not: an incomplete installation"}),
    *((f"the call that loads libraries of wheels: {call}",
       [({**gpu_files(), "onnxruntime/__init__.py": code}, *GPU[1:])], {"preload_call": call})
      for code, call in ((PRELOADING, "onnxruntime.preload_dlls()"), (NOT_PRELOADING, None))),
)  # fmt: skip
def test_onnxruntime(tree: Frameworks, about: str, installed: list[tuple[Files, str, str]], expected: Expected) -> None:
    for package in installed:
        tree.package(*package)
    assert fields(tree.only(), expected) == expected


# --- numba-cuda, and the bindings that some releases refuse to be imported without ----------------------------------
CHECK = """
if config.CUDA_USE_NVIDIA_BINDING:
    if not (
        importlib.util.find_spec("cuda")
        and importlib.util.find_spec("cuda.bindings")
    ):
        raise ImportError("CUDA bindings not found.")
"""
LINES = requires(
    "numba>=0.60.0", 'cuda-bindings==11.8.*; extra == "cu11"', 'cuda-bindings==12.9.*; extra == "cu12"',
    'cuda-core==0.3.*; extra == "cu12"', 'cuda-bindings; extra == "test-cu12"',
)  # fmt: skip
EACH = (("cuda-bindings==11.8.*",), ("cuda-bindings==12.9.*", "cuda-core==0.3.*"))


# --- Flags in XLA_FLAGS that the XLA of a framework does not have ---------------------------------------------------
@cases("code, variables, needs",
    (CHECK, {}, EACH), (CHECK, {"NUMBA_CUDA_USE_NVIDIA_BINDING": "0"}, None),
    (CHECK, {"NUMBA_CUDA_USE_NVIDIA_BINDING": "False"}, None), ("from numba import config\n", {}, None),
)  # fmt: skip
def test_bindings_without_which_a_release_refuses_to_be_imported(
    tree: Frameworks, code: str, variables: dict[str, str], needs: tuple[tuple[str, ...], ...] | None
) -> None:
    files: Files = {
        "numba_cuda/__init__.py": "", "numba_cuda/VERSION": "0.18.1\n", "numba_cuda/numba/cuda/__init__.py": code,
    }  # fmt: skip
    tree.package(files, "numba-cuda", "0.18.1", LINES)
    assert tree.found(**variables)["numba-cuda"].needs_one_of == needs


XLA = b"\0xla_dump_to\0xla_gpu_autotune_level\0" + bytes(9 << 20) + b"\0xla_gpu_ftz\0"
"""The last name lies behind the first part that is read at once."""


BETWEEN_READS = b"xla_dump_to" + bytes((8 << 20) - 20) + b"xla_gpu_split_between_reads"


@cases("value, content, unknown",
    ("--xla_gpu_autotune_level=0 --xla_gpu_ftz", XLA, []),
    ("--xla_gpu_ftz=true --xla_gpu_enable_fast_everything=true", XLA, ["--xla_gpu_enable_fast_everything"]),
    ("--xla_gpu_autotune_levels=0", XLA, ["--xla_gpu_autotune_levels"]), ("", XLA, None), ("flags.txt", XLA, None),
    ("--xla_gpu_split_between_reads=1", BETWEEN_READS, []), ("--xla_gpu_ftz", b"libm", None),
    ("--xla_gpu_ftz", None, None),
    ids=["known", "unknown", "misspelt", "none", "a file", "across two reads", "no XLA", "unreadable"],
)  # fmt: skip
def test_a_flag_is_unknown_where_no_library_has_its_name(
    tmp_path: Path, value: str, content: bytes | None, unknown: list[str] | None
) -> None:
    if content is not None:
        (tmp_path / "xla.so").write_bytes(content)
    assert unknown_flags(Tree({"variables": {"XLA_FLAGS": value}}), [str(tmp_path / "xla.so")]) == unknown
