"""Frameworks as their files describe them, and that one more is one entry of the catalogue."""

from typing import Any

import pytest

from probes.files.frameworks.described import HOOKS
from probes.files.installations import catalog
from probes.files.installations.catalog import CATALOGUE, FrameworkEntry
from tests.every import cases
from tests.known import Expected, fields
from tests.probes.frameworks.framework_trees import SITE, Files, Frameworks, elf_needing, requires, told

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
    (OF_2_21, ("12.5", "9", False, ("sm_60", "compute_90"))), (OF_2_3, ("10.1", "7", False, ("sm_35", "compute_70"))),
    (OF_CPU_2_18, (None, None, True, None)), (OF_1_14, ("10.0", "7", False, None)),
    ("is_rocm_build = False\nis_cuda_build = False\n", (None, None, True, None)), (FOR_ROCM, (None, None, False, None)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BUILDS)
def test_tensorflow_says_how_it_was_built(tree: Frameworks, text: str, expected: tuple[Any, ...]) -> None:
    place = "tensorflow/python/platform/build_info.py"
    tree.package({"tensorflow/__init__.py": "", place: text}, "tensorflow", "2.21.0")
    found = tree.only()
    assert told(found, "name", "version", "problem") == ("tensorflow", "2.21.0", None)
    assert told(found, "cuda", "cudnn", "cpu_only", "gpu_code") == expected
    assert found.source_of("cpu_only") == f"file {SITE}/{place}"


LINES = requires(
    'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    'nvidia-cufft-cu12<12.0,>=11.2.3.61; extra == "and-cuda"',
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
    'nvidia-cublas-cu11==11.11.3.6; extra == "other"',
)
PLAIN = elf_needing("libc.so.6")
BUILT_WITH_CUDA = "build_info = collections.OrderedDict([('is_cuda_build', True), ('is_rocm_build', False)])\n"
OF_1_15 = "is_rocm_build = False\nis_cuda_build = True\ncuda_version_number = '10'\ncudnn_version_number = '7'\n"
VERSION = '_version = "0.12.0"\n_release_version: str | None = None\n'
RELEASED = "_version = \"0.12.0\"\n_release_version: str = '0.12.0'\n"
NUMBA = "version_json = '''\n{\n \"dirty\": false,\n \"version\": \"0.68.1\"\n}\n'''  # END VERSION_JSON\n"
MXNET: Files = {
    "mxnet/libinfo.py": '__version__ = "1.9.1"\n', "mxnet/__init__.py": "", "mxnet/libmxnet.so": PLAIN,
}  # fmt: skip
CTRANSLATE2: Files = {
    "ctranslate2/__init__.py": "",
    "ctranslate2/version.py": '"""Version information."""\n__version__ = "4.8.5"\n',
    "ctranslate2/_ext.cpython-312-x86_64-linux-gnu.so": PLAIN,
    "ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5":
        elf_needing("libc.so.6", constants=b"x\0libcublas.so.12\0libnccl.so.2\0not-libcudnn.so.9\0"),
    "ctranslate2.libs/libcudnn-f0ff4753.so.8.1.1": "",
}  # fmt: skip
LLAMA: Files = {
    **{f"llama_cpp/lib/lib{name}.so": PLAIN for name in ("ggml-base", "ggml-cpu", "llama")},
    "llama_cpp/__init__.py": 'from .llama_cpp import *\n\n__version__ = "0.3.36"\n', "llama_cpp/llama.py": "",
}  # fmt: skip
CNTK: Files = {"cntk/__init__.py": "", "cntk/VERSION": "2.7\n", "cntk/libs/libCntk.Math-2.7.so": PLAIN}


@cases("about, files, installed, expected",
    ("a TensorFlow that names no CUDA takes it from its extra",
     {"tensorflow/__init__.py": "", "tensorflow/python/platform/build_info.py": BUILT_WITH_CUDA,
      "tensorflow/libtensorflow_framework.so.2": elf_needing("libdl.so.2")},
     ("tf-nightly", "2.23.0.dev20261026", LINES),
     {"name": "tf-nightly", "cuda": "12", "cpu_only": False, "source_of.cuda": "wheel metadata",
      "binaries": (f"{SITE}/tensorflow/libtensorflow_framework.so.2",)}),
    ("TensorFlow 1.15 keeps its files in another folder",
     {"tensorflow/__init__.py": "", "tensorflow_core/__init__.py": "",
      "tensorflow_core/python/platform/build_info.py": OF_1_15}, ("tensorflow", "1.15.0"),
     {"cuda": "10", "cudnn": "7", "cpu_only": False, "problem": None}),
    ("of two TensorFlows in one package the first that is named",
     {"tensorflow/__init__.py": "", "tensorflow/python/x.py": ""}, ("tensorflow-cpu", "2.18.0"),
     {"name": "tensorflow-cpu", "version": "2.18.0"}),
    ("Numba says nothing of CUDA", {"numba/__init__.py": "", "numba/_version.py": NUMBA},
     ("numba", "0.68.1", requires("llvmlite<0.51")),
     {"version": "0.68.1", "cuda": None, "cpu_only": None, "requires": ("llvmlite<0.51",)}),
    ("numba-cuda", {"numba_cuda/__init__.py": "", "numba_cuda/VERSION": "0.30.4\n"}, ("numba-cuda", "0.30.4"),
     {"version": "0.30.4", "extends": "numba", "cpu_only": False}),
    ("TensorRT 8.5 in one folder",
     {"tensorrt/__init__.py": '__version__ = "8.5.3.1"\n', "tensorrt/tensorrt.so": elf_needing("libnvinfer.so.8"),
      "tensorrt/libnvinfer.so.8": PLAIN},
     ("tensorrt", "8.5.3.1", requires("nvidia-cuda-runtime-cu11", "nvidia-cudnn-cu11")),
     {"name": "tensorrt", "version": "8.5.3.1", "cuda": "11", "problem": None,
      "binaries": (f"{SITE}/tensorrt/libnvinfer.so.8", f"{SITE}/tensorrt/tensorrt.so")}),
    ("MXNet by its name and by its library", MXNET, ("mxnet-cu112", "1.9.1"),
     {"name": "mxnet-cu112", "version": "1.9.1", "cuda": "11.2", "cpu_only": False}),
    ("an old Paddle whose post-release is its CUDA",
     {"paddle/__init__.py": "", "paddle/version.py": "full_version    = '1.7.0'\n"},
     ("paddlepaddle-gpu", "1.7.0.post107"), {"version": "1.7.0", "cuda": "10", "cpu_only": False, "problem": None}),
    ("CTranslate2 names its libraries among its constants", CTRANSLATE2, ("ctranslate2", "4.8.5"),
     {"version": "4.8.5", "cudnn": "8.1.1",
      "binaries": (f"{SITE}/ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5",
                   f"{SITE}/ctranslate2/_ext.cpython-312-x86_64-linux-gnu.so")}),
    *((f"llama.cpp with {backend}", {**LLAMA, f"llama_cpp/lib/libggml-{backend}.so": PLAIN},
       ("llama-cpp-python", "0.3.36"), {"name": "llama-cpp-python", "version": "0.3.36", "cpu_only": False})
      for backend in ("cuda", "vulkan")),
    ("CNTK for GPUs", {**CNTK, "cntk/libs/libcudart.so.10.0": PLAIN, "cntk/libs/libcudnn.so.7": PLAIN},
     ("cntk-gpu", "2.7.post2"),
     {"name": "cntk-gpu", "version": "2.7", "problem": None, "cuda": "10.0", "cudnn": "7", "cpu_only": False}),
    ("CNTK for CPUs", CNTK, ("cntk", "2.7.post2"),
     {"name": "cntk", "version": "2.7", "problem": None, "cuda": None, "cudnn": None, "cpu_only": True}),
    ("jaxlib alone", {"jaxlib/__init__.py": "", "jaxlib/version.py": RELEASED}, ("jaxlib", "0.12.0"),
     {"name": "jaxlib", "version": "0.12.0", "cpu_only": True}),
    ("JAX without jaxlib", {"jax/__init__.py": "", "jax/version.py": VERSION}, ("jax", "0.12.0"),
     {"version": "0.12.0", "cpu_only": None, "problem": "jaxlib, which it requires, is not installed"}),
    ("metadata without a folder", {}, ("vllm", "0.33.0", requires("torch==2.14.0")),
     {"name": "vllm", "version": "0.33.0", "path": None, "built_for": {"torch": "2.14.0"},
      "problem": "its metadata is there, its folder is not: an incomplete installation"}),
)  # fmt: skip
def test_the_only(tree: Frameworks, about: str, files: Files, installed: tuple[str, ...], expected: Expected) -> None:
    tree.package(files, *installed)
    assert fields(tree.only(), expected) == expected


def test_a_folder_called_tensorflow_is_none(tree: Frameworks) -> None:
    tree.file(f"{SITE}/tensorflow/notes.txt")
    assert tree.found() == {}


# --- JAX ----------------------------------------------------------------------------------------------------------
def jax(tree: Frameworks, jaxlib: str = "0.12.0") -> None:
    lines = requires("jaxlib<=0.12.0,>=0.11.2", 'jax-cuda12-plugin[with-cuda]<=0.12.0,>=0.12.0; extra == "cuda12"')
    tree.package({"jax/__init__.py": "", "jax/version.py": VERSION}, "jax", "0.12.0", lines)
    own = RELEASED.replace("0.12.0", jaxlib.partition("+")[0])
    tree.package({"jaxlib/__init__.py": "", "jaxlib/version.py": own}, "jaxlib", jaxlib)


def plugin(tree: Frameworks, version: str = "0.12.0", *, compiler: bool = True) -> None:
    files: Files = {
        "jax_cuda12_plugin/__init__.py": "",
        "jax_cuda12_plugin/version.py": RELEASED.replace("0.12.0", version),
        "jax_cuda12_plugin/_prng.so": PLAIN,
    }
    lines = requires(
        f"jax-cuda12-pjrt=={version}",
        'nvidia-cudnn-cu12<10.0,>=9.10.2.21; sys_platform == "linux" and extra == "with-cuda"',
        'nvidia-cusolver-cu12>=11.4.5.107; sys_platform == "linux" and extra == "with-cuda"',
    )
    tree.package(files, "jax-cuda12-plugin", version, lines)
    if compiler:
        loads = '  _load("cublas", ["libcublas.so.12", "libcublasLt.so.12"])\n  _load("nccl", ["libnccl.so.2"])\n'
        start, program = (f"jax_plugins/xla_cuda12/{name}" for name in ("__init__.py", "xla_cuda_plugin.so"))
        tree.package({start: f"def _load_nvidia_libraries():\n{loads}", program: PLAIN}, "jax-cuda12-pjrt", version)


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


@cases("other", "jax-rocm7-plugin", "jax-oneapi-plugin", "libtpu", "jax-metal")
def test_jax_for_another_device_is_not_called_a_build_for_the_cpu(tree: Frameworks, other: str) -> None:
    jax(tree)
    tree.wheel(SITE, other.replace("-", "_"), "0.1")
    assert tree.found()["jax"].cpu_only is None


# --- CuPy ---------------------------------------------------------------------------------------------------------
CUPY = '{"cuda": "12.x", "packaging": "pip", "nccl": {"version": "2.16.2"}, "cudnn": {"version": "8.8.1"}}'


def cupy(tree: Frameworks, name: str = "cupy-cuda12x", wheel: str = CUPY, version: str = "12.0.0") -> None:
    files: Files = {
        "cupy/__init__.py": "", "cupy/_version.py": f"__version__ = '{version}'\n", "cupy/.data/_wheel.json": wheel,
        "cupy/_core/core.cpython-312-x86_64-linux-gnu.so": elf_needing("libc.so.6", constants=name.encode()),
        "cupy/cuda/thrust.cpython-312-x86_64-linux-gnu.so": PLAIN, "cupy_backends/cuda/libs/__init__.py": "",
        "cupy_backends/cuda/libs/cublas.cpython-312-x86_64-linux-gnu.so": elf_needing("libcublas.so.12"),
    }  # fmt: skip
    tree.package(files, name, version)


def test_cupy(tree: Frameworks) -> None:
    cupy(tree)
    found = tree.only()
    assert told(found, "name", "version", "cuda", "cpu_only") == ("cupy-cuda12x", "12.0.0", "12", False)
    assert told(found, "nccl", "cudnn", "problem") == ("2.16.2", "8.8.1", None)
    assert [path.rpartition("/")[2].partition(".")[0] for path in found.binaries or ()] == ["cublas", "thrust"]


def test_the_headers_that_cupy_compiles_with(tree: Frameworks) -> None:
    """From 14 on it brings none of its own; those of a wheel count, and where a variable leads."""
    cupy(tree)
    assert tree.only().compiles_with == {}
    tree.package({"cupy/_core/include/cupy/carray.cuh": ""})
    assert tree.only().compiles_with == {"CUDA headers": ""}
    tree.package({"nvidia/cuda_runtime/include/vector_types.h": ""})
    assert tree.only().compiles_with["CUDA headers"].endswith("/vector_types.h")


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
def test_tensorrt_from_8_6_on(tree: Frameworks) -> None:
    files: Files = {
        "tensorrt/__init__.py": "from tensorrt_bindings import *\n",
        "tensorrt_bindings/__init__.py": '__version__ = "10.3.0"\n',
        "tensorrt_bindings/tensorrt.so": elf_needing("libnvinfer.so.10"),
        "tensorrt_libs/__init__.py": 'PATHS = [os.path.join("nvidia", "cuda_runtime")]\n',
        "tensorrt_libs/libnvinfer.so.10": PLAIN,
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


@cases("text, name, expected",
    (OF_2_6_2, "paddlepaddle-gpu", ("2.6.2", "11.8", "8.6.0", False, None)),
    (OF_3_3_1, "paddlepaddle", ("3.3.1", None, None, True, None)),
    (WITH_ARCHITECTURES, "paddlepaddle-gpu", ("3.3.1", "12.9", "9.9.0", False, ("sm_80", "sm_90"))),
)  # fmt: skip
def test_paddle(tree: Frameworks, text: str, name: str, expected: tuple[Any, ...]) -> None:
    tree.package({"paddle/__init__.py": "", "paddle/version/__init__.py": text}, name, expected[0])
    found = tree.only()
    assert (found.name, *told(found, "version", "cuda", "cudnn", "cpu_only", "gpu_code")) == (name, *expected)
    assert found.problem is None


def test_caffe2_counts_only_with_its_bindings(tree: Frameworks) -> None:
    tree.file(f"{SITE}/caffe2/python/__init__.py")
    assert tree.found() == {}
    tree.file(f"{SITE}/caffe2/__init__.py")
    tree.file(f"{SITE}/caffe2/python/caffe2_pybind11_state_gpu.cpython-312-x86_64-linux-gnu.so", PLAIN)
    assert told(tree.only(), "name", "cpu_only") == ("caffe2", False)


# --- several ------------------------------------------------------------------------------------------------------
def test_nothing_is_imported_for_an_environment_without_frameworks(tree: Frameworks) -> None:
    for name in ("requests", "numpy", "torchmetrics", "tensorboard", "jaxtyping", "onnx"):
        tree.package({f"{name}/__init__.py": ""}, name, "1.0")
    assert tree.found() == {}


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
@cases("record, files, expected",
    ("jaxlib-0.4.35-cuda124py312h1.json",
     {"jaxlib/__init__.py": "", "jaxlib/version.py": RELEASED.replace("0.12.0", "0.4.35")},
     ("jaxlib", "0.4.35", "12.4", False)),
    ("tensorflow-base-2.18.0-cuda120py312h1.json", {"tensorflow/__init__.py": "", "tensorflow/python/x.py": ""},
     ("tensorflow", "2.18.0", "12.0", False)),
    ("torchvision-0.20.1-cpu_py312_h1.json",
     {"torchvision/__init__.py": "", "torchvision/version.py": "__version__ = '0.20.1'\n"},
     ("torchvision", "0.20.1", None, True)),
)  # fmt: skip
def test_packages_of_conda(tree: Frameworks, record: str, files: Files, expected: tuple[Any, ...]) -> None:
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
    assert HOOKS.keys() <= {entry.imports for entry in CATALOGUE if entry.module == "described"}
