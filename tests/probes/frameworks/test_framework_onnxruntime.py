"""ONNX Runtime, numba-cuda and XLA's flags, as files tell of them."""

from pathlib import Path

from envcheck.model.snapshot import Framework
from probes.common.tree import Tree
from probes.files.installations.parts import unknown_flags
from tests.every import cases
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing, requires

CAPI = "onnxruntime/capi"
STATE = f"{CAPI}/onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so"
CUDA = f"{CAPI}/libonnxruntime_providers_cuda.so"
Files = dict[str, str | bytes]


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


def asked(tmp_path: Path, code: str, **variables: str) -> tuple[tuple[str, ...], ...] | None:
    tree = Frameworks(tmp_path)
    files: dict[str, str | bytes] = {
        "numba_cuda/__init__.py": "", "numba_cuda/VERSION": "0.18.1\n", "numba_cuda/numba/cuda/__init__.py": code,
    }  # fmt: skip
    tree.package(files, "numba-cuda", "0.18.1", LINES)
    return tree.found(**variables)["numba-cuda"].needs_one_of


def test_a_release_that_refuses_to_be_imported_without_bindings_needs_those_of_one_cuda(tmp_path: Path) -> None:
    assert asked(tmp_path, CHECK) == EACH


@cases("off", "0", "False")
def test_unless_a_variable_turns_that_off(tmp_path: Path, off: str) -> None:
    assert asked(tmp_path, CHECK, NUMBA_CUDA_USE_NVIDIA_BINDING=off) is None


def test_a_release_that_does_without_requires_none(tmp_path: Path) -> None:
    assert asked(tmp_path, "from numba import config\n") is None


# --- Flags in XLA_FLAGS that the XLA of a framework does not have ---------------------------------------------------
XLA = b"\0xla_dump_to\0xla_gpu_autotune_level\0" + bytes(9 << 20) + b"\0xla_gpu_ftz\0"
"""The last name lies behind the first part that is read at once."""


def asked_xla(folder: Path, value: str, content: bytes = XLA) -> list[str] | None:
    (folder / "xla.so").write_bytes(content)
    return unknown_flags(Tree({"variables": {"XLA_FLAGS": value}}), [str(folder / "xla.so")])


@cases("value, unknown",
    ("--xla_gpu_autotune_level=0 --xla_gpu_ftz", []),
    ("--xla_gpu_ftz=true --xla_gpu_enable_fast_everything=true", ["--xla_gpu_enable_fast_everything"]),
    ("--xla_gpu_autotune_levels=0", ["--xla_gpu_autotune_levels"]), ("", None), ("flags.txt", None),
)  # fmt: skip
def test_a_flag_is_unknown_where_no_library_has_its_name(tmp_path: Path, value: str, unknown: list[str] | None) -> None:
    assert asked_xla(tmp_path, value) == unknown


def test_a_name_across_two_reads_is_found(tmp_path: Path) -> None:
    name = b"xla_gpu_split_between_reads"
    assert asked_xla(tmp_path, f"--{name.decode()}=1", b"xla_dump_to" + bytes((8 << 20) - 20) + name) == []


def test_nothing_is_said_of_a_library_without_xla(tmp_path: Path) -> None:
    assert asked_xla(tmp_path, "--xla_gpu_ftz", b"libm") is None


def test_nothing_is_said_where_a_library_cannot_be_read(tmp_path: Path) -> None:
    assert unknown_flags(Tree({"variables": {"XLA_FLAGS": "--xla_gpu_ftz"}}), [str(tmp_path / "gone.so")]) is None
