"""Frameworks as their files describe them, and that one more is one entry of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Framework
from probes.files.frameworks.described import HOOKS
from probes.files.installations import catalog
from probes.files.installations.catalog import CATALOGUE, FrameworkEntry
from tests.every import cases
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing, requires


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    return Frameworks(tmp_path)


def told(framework: Framework, *fields: str) -> tuple[Any, ...]:
    return tuple(getattr(framework, field) for field in fields)


# --- TensorFlow ---------------------------------------------------------------------------------------------------

OF_2_21 = """
import collections
build_info = collections.OrderedDict([('cpu_compiler', 'x'), ('cuda_compute_capabilities', ['sm_60', 'compute_90']), \
('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True), ('is_rocm_build', False)])
""".replace("\\\n", "")
OF_2_3 = """
build_info = {'cuda_version': '10.1', 'cudnn_version': '7', 'cuda_compute_capabilities': ['sm_35', 'compute_70'], \
'cpu_compiler': '/usr/bin/gcc-5', 'is_rocm_build': False, 'is_cuda_build': True}
""".replace("\\\n", "")
OF_CPU_2_18 = "build_info = collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])\n"
OF_1_14 = "is_cuda_build = True\n\ncuda_version_number = '10.0'\ncudnn_version_number = '7'\n"
FOR_ROCM = "build_info = collections.OrderedDict([('is_rocm_build', True), ('is_cuda_build', False)])"
BUILDS = [
    (OF_2_21, ("12.5", "9", False, ("sm_60", "compute_90"))),
    (OF_2_3, ("10.1", "7", False, ("sm_35", "compute_70"))),
    (OF_CPU_2_18, (None, None, True, None)),
    (OF_1_14, ("10.0", "7", False, None)),
    ("is_rocm_build = False\nis_cuda_build = False\n", (None, None, True, None)),
    (FOR_ROCM, (None, None, False, None)),
]


@pytest.mark.parametrize(("text", "expected"), BUILDS)
def test_tensorflow_says_how_it_was_built(tree: Frameworks, text: str, expected: tuple[Any, ...]) -> None:
    place = "tensorflow/python/platform/build_info.py"
    tree.package({"tensorflow/__init__.py": "", place: text}, "tensorflow", "2.21.0")
    found = tree.only()
    assert told(found, "name", "version", "problem") == ("tensorflow", "2.21.0", None)
    assert told(found, "cuda", "cudnn", "cpu_only", "gpu_code") == expected
    assert found.source_of("cpu_only") == f"file {SITE}/{place}"


def test_a_tensorflow_that_names_no_cuda_takes_it_from_its_extra(tree: Frameworks) -> None:
    info = "build_info = collections.OrderedDict([('is_cuda_build', True), ('is_rocm_build', False)])\n"
    lines = requires(
        'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
        'nvidia-cufft-cu12<12.0,>=11.2.3.61; extra == "and-cuda"',
        'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
        'nvidia-cublas-cu11==11.11.3.6; extra == "other"',
    )
    files: dict[str, str | bytes] = {
        "tensorflow/__init__.py": "",
        "tensorflow/python/platform/build_info.py": info,
        "tensorflow/libtensorflow_framework.so.2": elf_needing("libdl.so.2"),
    }
    tree.package(files, "tf-nightly", "2.23.0.dev20261026", lines)
    found = tree.only()
    assert told(found, "name", "cuda", "cpu_only") == ("tf-nightly", "12", False)
    assert found.read["cuda"] == "wheel metadata"
    assert found.binaries == (f"{SITE}/tensorflow/libtensorflow_framework.so.2",)


def test_tensorflow_1_15_keeps_its_files_in_another_folder(tree: Frameworks) -> None:
    info = "is_rocm_build = False\nis_cuda_build = True\ncuda_version_number = '10'\ncudnn_version_number = '7'\n"
    files: dict[str, str | bytes] = {
        "tensorflow/__init__.py": "",
        "tensorflow_core/__init__.py": "",
        "tensorflow_core/python/platform/build_info.py": info,
    }
    tree.package(files, "tensorflow", "1.15.0")
    assert told(tree.only(), "cuda", "cudnn", "cpu_only", "problem") == ("10", "7", False, None)


def test_of_two_tensorflows_in_one_package_the_first_that_is_named(tree: Frameworks) -> None:
    tree.package({"tensorflow/__init__.py": "", "tensorflow/python/x.py": ""}, "tensorflow-cpu", "2.18.0")
    assert told(tree.only(), "name", "version") == ("tensorflow-cpu", "2.18.0")


def test_a_folder_called_tensorflow_is_none(tree: Frameworks) -> None:
    tree.file(f"{SITE}/tensorflow/notes.txt")
    assert tree.found() == {}


# --- JAX ----------------------------------------------------------------------------------------------------------

VERSION = '_version = "0.12.0"\n_release_version: str | None = None\n'
RELEASED = "_version = \"0.12.0\"\n_release_version: str = '0.12.0'\n"


def jax(tree: Frameworks, jaxlib: str = "0.12.0") -> None:
    lines = requires("jaxlib<=0.12.0,>=0.11.2", 'jax-cuda12-plugin[with-cuda]<=0.12.0,>=0.12.0; extra == "cuda12"')
    tree.package({"jax/__init__.py": "", "jax/version.py": VERSION}, "jax", "0.12.0", lines)
    own = RELEASED.replace("0.12.0", jaxlib.partition("+")[0])
    tree.package({"jaxlib/__init__.py": "", "jaxlib/version.py": own}, "jaxlib", jaxlib)


def plugin(tree: Frameworks, version: str = "0.12.0", *, compiler: bool = True) -> None:
    files: dict[str, str | bytes] = {
        "jax_cuda12_plugin/__init__.py": "",
        "jax_cuda12_plugin/version.py": RELEASED.replace("0.12.0", version),
        "jax_cuda12_plugin/_prng.so": elf_needing("libc.so.6"),
    }
    lines = requires(
        f"jax-cuda12-pjrt=={version}",
        'nvidia-cudnn-cu12<10.0,>=9.10.2.21; sys_platform == "linux" and extra == "with-cuda"',
        'nvidia-cusolver-cu12>=11.4.5.107; sys_platform == "linux" and extra == "with-cuda"',
    )
    tree.package(files, "jax-cuda12-plugin", version, lines)
    if compiler:
        loads = '  _load("cublas", ["libcublas.so.12", "libcublasLt.so.12"])\n  _load("nccl", ["libnccl.so.2"])\n'
        parts: dict[str, str | bytes] = {
            "jax_plugins/xla_cuda12/__init__.py": f"def _load_nvidia_libraries():\n{loads}",
            "jax_plugins/xla_cuda12/xla_cuda_plugin.so": elf_needing("libc.so.6"),
        }
        tree.package(parts, "jax-cuda12-pjrt", version)


def test_jax_without_a_plugin_has_no_cuda(tree: Frameworks) -> None:
    jax(tree)
    found = tree.only()
    assert told(found, "name", "version", "cuda", "cpu_only", "problem") == ("jax", "0.12.0", None, True, None)
    assert found.requires[0] == "jaxlib<=0.12.0,>=0.11.2"


def test_jax_with_a_plugin(tree: Frameworks) -> None:
    jax(tree)
    plugin(tree)
    found = tree.found()
    assert list(found) == ["jax", "jax-cuda12-plugin"]
    assert told(found["jax"], "cuda", "cpu_only", "extends") == ("12", False, None)
    part = found["jax-cuda12-plugin"]
    assert told(part, "version", "extends", "cuda", "problem") == ("0.12.0", "jax", "12", None)
    assert part.built_for == {"jaxlib": "0.12.0"}
    assert part.binaries == (f"{SITE}/jax_cuda12_plugin/_prng.so", f"{SITE}/jax_plugins/xla_cuda12/xla_cuda_plugin.so")


def test_a_plugin_without_its_compiler(tree: Frameworks) -> None:
    jax(tree)
    plugin(tree, compiler=False)
    problem = tree.found()["jax-cuda12-plugin"].problem
    assert problem == "jax_plugins/xla_cuda12/xla_cuda_plugin.so, which it requires, is missing"


def test_a_compiler_without_its_plugin(tree: Frameworks) -> None:
    jax(tree)
    plugin(tree)
    tree.remove(f"{SITE}/jax_cuda12_plugin")
    tree.remove(f"{SITE}/jax_cuda12_plugin-0.12.0.dist-info")
    found = tree.found()["jax-cuda12-plugin"]
    assert told(found, "version", "path", "cuda") == (None, None, "12")
    assert found.problem == "it is not there: an incomplete installation"


def test_a_jaxlib_from_before_the_plugins(tree: Frameworks) -> None:
    jax(tree, "0.4.7+cuda11.cudnn86")
    assert told(tree.found()["jax"], "cuda", "cudnn", "cpu_only") == ("11", "8.6", False)


def test_jaxlib_alone(tree: Frameworks) -> None:
    tree.package({"jaxlib/__init__.py": "", "jaxlib/version.py": RELEASED}, "jaxlib", "0.12.0")
    assert told(tree.only(), "name", "version", "cpu_only") == ("jaxlib", "0.12.0", True)


def test_jax_without_jaxlib(tree: Frameworks) -> None:
    tree.package({"jax/__init__.py": "", "jax/version.py": VERSION}, "jax", "0.12.0")
    found = tree.only()
    assert told(found, "version", "cpu_only") == ("0.12.0", None)
    assert found.problem == "jaxlib, which it requires, is not installed"


@cases("other", "jax-rocm7-plugin", "jax-oneapi-plugin", "libtpu", "jax-metal")
def test_jax_for_another_device_is_not_called_a_build_for_the_cpu(tree: Frameworks, other: str) -> None:
    jax(tree)
    tree.wheel(SITE, other.replace("-", "_"), "0.1")
    assert tree.found()["jax"].cpu_only is None


# --- CuPy ---------------------------------------------------------------------------------------------------------

CUPY = '{"cuda": "12.x", "packaging": "pip", "nccl": {"version": "2.16.2"}, "cudnn": {"version": "8.8.1"}}'


def cupy(tree: Frameworks, name: str = "cupy-cuda12x", wheel: str = CUPY, version: str = "12.0.0") -> None:
    files: dict[str, str | bytes] = {
        "cupy/__init__.py": "",
        "cupy/_version.py": f"__version__ = '{version}'\n",
        "cupy/.data/_wheel.json": wheel,
        "cupy/_core/core.cpython-312-x86_64-linux-gnu.so": elf_needing("libc.so.6", constants=name.encode()),
        "cupy/cuda/thrust.cpython-312-x86_64-linux-gnu.so": elf_needing("libc.so.6"),
        "cupy_backends/cuda/libs/__init__.py": "",
        "cupy_backends/cuda/libs/cublas.cpython-312-x86_64-linux-gnu.so": elf_needing("libcublas.so.12"),
    }
    tree.package(files, name, version)


def test_cupy(tree: Frameworks) -> None:
    cupy(tree)
    found = tree.only()
    assert told(found, "name", "version", "cuda", "cpu_only") == ("cupy-cuda12x", "12.0.0", "12", False)
    assert told(found, "nccl", "cudnn", "problem") == ("2.16.2", "8.8.1", None)
    assert [path.rpartition("/")[2].partition(".")[0] for path in found.binaries or ()] == ["cublas", "thrust"]


@cases("name, cuda", ("cupy-cuda101", "10.1"), ("cupy-cuda92", "9.2"), ("cupy-cuda13x", "13"))
def test_the_cuda_of_a_cupy_by_its_name(tree: Frameworks, name: str, cuda: str) -> None:
    cupy(tree, name, "{damaged")
    assert told(tree.only(), "name", "cuda") == (name, cuda)


def test_of_two_cupys_the_one_whose_files_are_there(tree: Frameworks) -> None:
    cupy(tree, "cupy-cuda11x", CUPY.replace("12.x", "11.x"))
    cupy(tree, "cupy-cuda12x")
    found = tree.only()
    assert told(found, "name", "cuda") == ("cupy-cuda12x", "12")
    assert found.problem == "cupy-cuda11x 12.0.0 was installed into the same package"


# --- others -------------------------------------------------------------------------------------------------------


def test_numba_says_nothing_of_cuda(tree: Frameworks) -> None:
    text = "version_json = '''\n{\n \"dirty\": false,\n \"version\": \"0.68.1\"\n}\n'''  # END VERSION_JSON\n"
    tree.package({"numba/__init__.py": "", "numba/_version.py": text}, "numba", "0.68.1", requires("llvmlite<0.51"))
    assert told(tree.only(), "version", "cuda", "cpu_only", "requires") == ("0.68.1", None, None, ("llvmlite<0.51",))


def test_numba_cuda(tree: Frameworks) -> None:
    tree.package({"numba_cuda/__init__.py": "", "numba_cuda/VERSION": "0.30.4\n"}, "numba-cuda", "0.30.4")
    assert told(tree.only(), "version", "extends", "cpu_only") == ("0.30.4", "numba", False)


def test_tensorrt_from_8_6_on(tree: Frameworks) -> None:
    files: dict[str, str | bytes] = {
        "tensorrt/__init__.py": "from tensorrt_bindings import *\n",
        "tensorrt_bindings/__init__.py": '__version__ = "10.3.0"\n',
        "tensorrt_bindings/tensorrt.so": elf_needing("libnvinfer.so.10"),
        "tensorrt_libs/__init__.py": 'PATHS = [os.path.join("nvidia", "cuda_runtime")]\n',
        "tensorrt_libs/libnvinfer.so.10": elf_needing("libc.so.6"),
        "tensorrt_libs/libnvinfer_builder_resource_sm90.so.10.3.0": "",
        "tensorrt_libs/libnvinfer_builder_resource_sm100.so.10.3.0": "",
    }
    tree.package(files)
    for name in ("tensorrt", "tensorrt_cu12", "tensorrt_cu12_libs", "tensorrt_cu12_bindings"):
        tree.wheel(SITE, name, "10.3.0")
    found = tree.only()
    assert told(found, "name", "version", "cuda", "cpu_only") == ("tensorrt", "10.3.0", "12", False)
    assert found.gpu_code == ("sm_90", "sm_100")
    names = [load.name for load in found.loads or ()]
    assert "libnvinfer.so.10" not in names or all(load.path for load in found.loads or ())


def test_tensorrt_8_5_in_one_folder(tree: Frameworks) -> None:
    files: dict[str, str | bytes] = {
        "tensorrt/__init__.py": '__version__ = "8.5.3.1"\n',
        "tensorrt/tensorrt.so": elf_needing("libnvinfer.so.8"),
        "tensorrt/libnvinfer.so.8": elf_needing("libc.so.6"),
    }
    tree.package(files, "tensorrt", "8.5.3.1", requires("nvidia-cuda-runtime-cu11", "nvidia-cudnn-cu11"))
    found = tree.only()
    assert told(found, "name", "version", "cuda", "problem") == ("tensorrt", "8.5.3.1", "11", None)
    assert len(found.binaries or ()) == 2


def test_mxnet_by_its_name_and_by_its_library(tree: Frameworks) -> None:
    files: dict[str, str | bytes] = {"mxnet/libinfo.py": '__version__ = "1.9.1"\n', "mxnet/__init__.py": ""}
    tree.package({**files, "mxnet/libmxnet.so": elf_needing("libc.so.6")}, "mxnet-cu112", "1.9.1")
    assert told(tree.only(), "name", "version", "cuda", "cpu_only") == ("mxnet-cu112", "1.9.1", "11.2", False)


OF_2_6_2 = """
full_version     = '2.6.2'
cuda_version     = '11.8'
cudnn_version    = '8.6.0'
xpu_version      = 'False'
"""
OF_3_3_1 = """
full_version     = '3.3.1'
nccl_version     = '0'
cuda_version     = 'False'
cudnn_version    = 'False'
hip_version      = None
xpu_xre_version  = 'False'
tensorrt_version = 'None'
compiled_cuda_archs = []
"""
WITH_ARCHITECTURES = """
full_version = '3.3.1'
cuda_version = '12.9'
cudnn_version = '9.9.0'
compiled_cuda_archs = [80, 90]
"""


@cases(
    "text, name, expected",
    (OF_2_6_2, "paddlepaddle-gpu", ("2.6.2", "11.8", "8.6.0", False, None)),
    (OF_3_3_1, "paddlepaddle", ("3.3.1", None, None, True, None)),
    (WITH_ARCHITECTURES, "paddlepaddle-gpu", ("3.3.1", "12.9", "9.9.0", False, ("sm_80", "sm_90"))),
)
def test_paddle(tree: Frameworks, text: str, name: str, expected: tuple[Any, ...]) -> None:
    tree.package({"paddle/__init__.py": "", "paddle/version/__init__.py": text}, name, expected[0])
    found = tree.only()
    assert (found.name, *told(found, "version", "cuda", "cudnn", "cpu_only", "gpu_code")) == (name, *expected)
    assert found.problem is None


def test_an_old_paddle_whose_post_release_is_its_cuda(tree: Frameworks) -> None:
    files: dict[str, str | bytes] = {"paddle/__init__.py": "", "paddle/version.py": "full_version    = '1.7.0'\n"}
    tree.package(files, "paddlepaddle-gpu", "1.7.0.post107")
    assert told(tree.only(), "version", "cuda", "cpu_only", "problem") == ("1.7.0", "10", False, None)


def test_ctranslate2_names_its_libraries_among_its_constants(tree: Frameworks) -> None:
    opened = b"x\0libcublas.so.12\0libnccl.so.2\0not-libcudnn.so.9\0"
    files: dict[str, str | bytes] = {
        "ctranslate2/__init__.py": "",
        "ctranslate2/version.py": '"""Version information."""\n__version__ = "4.8.5"\n',
        "ctranslate2/_ext.cpython-312-x86_64-linux-gnu.so": elf_needing("libc.so.6"),
        "ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5": elf_needing("libc.so.6", constants=opened),
        "ctranslate2.libs/libcudnn-f0ff4753.so.8.1.1": "",
    }
    tree.package(files, "ctranslate2", "4.8.5")
    found = tree.only()
    assert told(found, "version", "cudnn") == ("4.8.5", "8.1.1")
    assert len(found.binaries or ()) == 2


@cases(
    "libraries, cpu_only",
    (["libggml-base.so", "libggml-cpu.so", "libllama.so", "libggml-cuda.so"], False),
    (["libggml-base.so", "libggml-cpu.so", "libllama.so", "libggml-vulkan.so"], False),
)
def test_llama_cpp(tree: Frameworks, libraries: list[str], *, cpu_only: bool) -> None:
    files: dict[str, str | bytes] = {f"llama_cpp/lib/{name}": elf_needing("libc.so.6") for name in libraries}
    text = 'from .llama_cpp import *\n\n__version__ = "0.3.36"\n'
    tree.package({**files, "llama_cpp/__init__.py": text, "llama_cpp/llama.py": ""}, "llama-cpp-python", "0.3.36")
    assert told(tree.only(), "name", "version", "cpu_only") == ("llama-cpp-python", "0.3.36", cpu_only)


@cases(
    "name, libraries, expected",
    ("cntk-gpu", ["libCntk.Math-2.7.so", "libcudart.so.10.0", "libcudnn.so.7"], ("10.0", "7", False)),
    ("cntk", ["libCntk.Math-2.7.so"], (None, None, True)),
)
def test_cntk(tree: Frameworks, name: str, libraries: list[str], expected: tuple[Any, ...]) -> None:
    files: dict[str, str | bytes] = {f"cntk/libs/{each}": elf_needing("libc.so.6") for each in libraries}
    tree.package({**files, "cntk/__init__.py": "", "cntk/VERSION": "2.7\n"}, name, "2.7.post2")
    found = tree.only()
    assert told(found, "name", "version", "problem") == (name, "2.7", None)
    assert told(found, "cuda", "cudnn", "cpu_only") == expected


def test_caffe2_counts_only_with_its_bindings(tree: Frameworks) -> None:
    tree.file(f"{SITE}/caffe2/python/__init__.py")
    assert tree.found() == {}
    tree.file(f"{SITE}/caffe2/__init__.py")
    tree.file(
        f"{SITE}/caffe2/python/caffe2_pybind11_state_gpu.cpython-312-x86_64-linux-gnu.so", elf_needing("libc.so.6")
    )
    assert told(tree.only(), "name", "cpu_only") == ("caffe2", False)


# --- several ------------------------------------------------------------------------------------------------------


def test_nothing_is_imported_for_an_environment_without_frameworks(tree: Frameworks) -> None:
    for name in ("requests", "numpy", "torchmetrics", "tensorboard", "jaxtyping", "onnx"):
        tree.package({f"{name}/__init__.py": ""}, name, "1.0")
    assert tree.found() == {}


def test_metadata_without_a_folder(tree: Frameworks) -> None:
    tree.wheel(SITE, "vllm", "0.33.0", requires("torch==2.14.0"))
    found = tree.only()
    assert told(found, "name", "version", "path", "built_for") == ("vllm", "0.33.0", None, {"torch": "2.14.0"})
    assert found.problem == "its metadata is there, its folder is not: an incomplete installation"


def test_a_package_on_python_path_shadows_the_installed_one(tree: Frameworks) -> None:
    tree.package({"xformers/__init__.py": "", "xformers/version.py": '__version__ = "0.0.35"\n'}, "xformers", "0.0.35")
    tree.file("/home/me/xformers/__init__.py")
    found = tree.found("/home/me")["xformers"]
    assert found.path == "/home/me/xformers"
    assert found.problem == (
        "/home/me/xformers holds no version.py: an incomplete or shadowing xformers; "
        f"PYTHONPATH puts /home/me/xformers before {SITE}/xformers"
    )


# --- conda --------------------------------------------------------------------------------------------------------


@cases(
    "record, files, expected",
    ("jaxlib-0.4.35-cuda124py312h1.json",
     {"jaxlib/__init__.py": "", "jaxlib/version.py": RELEASED.replace("0.12.0", "0.4.35")},
     ("jaxlib", "0.4.35", "12.4", False)),
    ("tensorflow-base-2.18.0-cuda120py312h1.json", {"tensorflow/__init__.py": "", "tensorflow/python/x.py": ""},
     ("tensorflow", "2.18.0", "12.0", False)),
    ("torchvision-0.20.1-cpu_py312_h1.json",
     {"torchvision/__init__.py": "", "torchvision/version.py": "__version__ = '0.20.1'\n"},
     ("torchvision", "0.20.1", None, True)),
)  # fmt: skip
def test_packages_of_conda(
    tree: Frameworks, record: str, files: dict[str, str | bytes], expected: tuple[Any, ...]
) -> None:
    tree.package(files)
    tree.file(f"/env/conda-meta/{record}", '{"depends": ["cuda-version >=12.0,<13"]}')
    assert told(tree.only(), "name", "version", "cuda", "cpu_only") == expected


# --- A framework is one entry ---------------------------------------------------------------------------------------


def test_a_framework_is_added_with_one_entry(tree: Frameworks, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = FrameworkEntry("toy", "toy-gpu", version_in="_version.py", needs="core", parts=(r"lib/libtoy\.so",))
    monkeypatch.setattr(catalog, "CATALOGUE", (*CATALOGUE, entry))
    assert tree.found() == {}
    tree.package({"toy/__init__.py": "", "toy/_version.py": "__version__ = '1.0'\n"}, "toy-gpu", "1.0")
    tree.file(f"{SITE}/toy/lib/libtoy.so", elf_needing("libc.so.6"))
    found = tree.only()
    assert told(found, "name", "version", "source", "binaries") == (
        "toy-gpu", "1.0", f"file {SITE}/toy/_version.py", (f"{SITE}/toy/lib/libtoy.so",),
    )  # fmt: skip
    assert found.problem == f"{SITE}/toy holds no core: an incomplete or shadowing toy"


def test_the_one_that_others_build_on_comes_first() -> None:
    assert CATALOGUE[0].module == "torch"


def test_every_entry_can_be_found_and_read() -> None:
    for entry in CATALOGUE:
        assert entry.imports
        assert entry.distributions
        assert callable(__import__(f"probes.files.frameworks.{entry.module}", fromlist=["read"]).read)
    described = {entry.imports for entry in CATALOGUE if entry.module == "described"}
    assert HOOKS.keys() <= described
