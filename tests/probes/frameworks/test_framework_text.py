"""What is taken from a framework's small files and metadata, and that nothing else comes of hostile ones."""

import time
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from probes.files.installations.package import assigned, cuda_of_number, cuda_version, label, mapping
from probes.files.python.distributions import cuda_major, libraries_of, pinned, relevant_lines
from tests.every import cases, tabled
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing


@cases("content, value",
    ("x = '1.2'", "1.2"), ('__y__ = x = "1.2"\n', "1.2"), ("x = y = '1.2'\n", "1.2"), ("x: str = '1.2'\n", "1.2"),
    ("x: Optional[str] = None\nx2 = 3\n", None), ("x    = '1.2'\n", "1.2"), ("x = {'a': [1, 2]}\n", {"a": [1, 2]}),
    ("x = collections.OrderedDict([('a', True)])\n", {"a": True}), ("x = OrderedDict([('a', True)])\n", {"a": True}),
    ("    x = '1.2'\n", None), ("x = '1.2'\nx = '1.3'\n", None), ("x = get()\n", None),
    ("x = __import__('os').system('true')\n", None), ("x == '1.2'\n", None), ("x = (\n", None),
    ("x = " + "[" * 5000 + "\n", None), ("x = '" + "a" * 20000 + "'\n", None),
    ("x = collections.OrderedDict(7)\n", None), ("x = collections.OrderedDict([1, 2])\n", None), ("x = '\\d'\n", "\\d"),
    ("", None),
)  # fmt: skip
def test_assigned(content: str, value: object) -> None:
    assert assigned(content, "x") == value


@given(st.text(max_size=300))
def test_no_text_makes_it_raise(content: str) -> None:
    assigned(content, "x")
    assigned(f"x = {content}", "x")
    mapping(f"x = collections.OrderedDict({content})", "x")
    label(content)


def test_a_long_line_takes_no_long_time() -> None:
    began = time.perf_counter()
    for content in ("x" * 60_000, "x = " * 15_000, "x: " + "a" * 60_000, "a = " * 15_000 + "x = 1"):
        assigned(content, "x")
    assert time.perf_counter() - began < 10


@tabled
def test_versions_of_cuda(value: object, expected: str | None) -> None:
    assert cuda_version(value) == expected


@tabled
def test_cuda_as_one_number(value: object, expected: str | None) -> None:
    assert cuda_of_number(value) == expected


@tabled
def test_labels(version: str | None, expected: dict[str, str]) -> None:
    assert label(version) == expected


@tabled
def test_pins(lines: list[str], version: str | None) -> None:
    assert pinned(lines, "torch") == version


def test_libraries_by_the_wheels_that_hold_them() -> None:
    lines = [
        'nvidia-cuda-runtime-cu12>=12.1.105; extra == "with-cuda"', "nvidia-cublas>=13.0.0.19",
        "nvidia-cufft-cu12<12.0,>=11.2.3.61", "nvidia-cudnn-cu13~=9.0", "nvidia-nvtx-cu12", "nvidia-nccl-cu12",
        "numpy>=2.0",
    ]  # fmt: skip
    assert [names[0] for names in libraries_of(lines)] == [
        "libcudart.so.12", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.11", "libcudnn.so.9",
    ]  # fmt: skip
    assert libraries_of(["nvidia-cuda-runtime-cu11==11.8.89"]) == [("libcudart.so.11", "libcudart.so.11.0")]


def test_the_cuda_major_of_wheels() -> None:
    assert cuda_major(["nvidia-cublas-cu12>=1", "nvidia-cudnn-cu12", "numpy"]) == "12"
    assert cuda_major(["nvidia-cublas-cu12>=1", "nvidia-cudnn-cu11"]) is None
    assert cuda_major(["nvidia-ml-py"]) is None


def test_what_matters_of_requirements() -> None:
    lines = [
        "numpy<2", "nvidia-ml-py", "nvidia-nccl-cu12==2.21.5", "torchmetrics", "torch==2.5.1", "tensorflow-io",
        "filelock",
    ]  # fmt: skip
    assert relevant_lines(lines) == ["numpy<2", "nvidia-nccl-cu12==2.21.5", "torch==2.5.1"]


# --- hostile trees ------------------------------------------------------------------------------------------------
HOSTILE = (
    b"__version__ = '1.0\x1b[31m'\nbuild_info = " + b"{" * 3000 + b"\ncuda_version = '\x9b12'\n" + b"\xff\xfe" * 100
)
TEXTS = [
    "torch/version.py", "torchvision/version.py", "torchaudio/version.py", "triton/__init__.py",
    "triton/language/x", "tensorflow/python/platform/build_info.py", "jax/version.py", "jaxlib/version.py",
    "jax_cuda12_plugin/version.py", "jax_plugins/xla_cuda12/__init__.py",
    "onnxruntime/capi/build_and_package_info.py", "onnxruntime/capi/_ld_preload.py", "tensorrt/__init__.py",
    "tensorrt_bindings/__init__.py", "tensorrt_libs/__init__.py", "torch_tensorrt/_version.py", "cupy/_version.py",
    "cupy/.data/_wheel.json", "cupy_backends/cuda/libs/__init__.py", "numba/_version.py", "numba_cuda/VERSION",
    "mxnet/libinfo.py", "paddle/version/__init__.py", "ctranslate2/version.py", "llama_cpp/__init__.py",
    "vllm/_version.py", "flash_attn/__init__.py", "xformers/version.py", "xformers/cpp_lib.json",
    "bitsandbytes/__init__.py", "deepspeed/git_version_info_installed.py", "cntk/VERSION", "torch/__init__.py",
]  # fmt: skip
BINARIES = [
    "torch/lib/libtorch_python.so", "torch/lib/libtorch_cuda.so", "torch/_C.so", "torchvision/_C.so",
    "vllm/_C.abi3.so", "triton/backends/nvidia/bin/ptxas", "tensorflow/libtensorflow_framework.so.2",
    "mxnet/libmxnet.so", "xformers/_C.so", "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
    "onnxruntime/capi/libonnxruntime_providers_cuda.so", "ctranslate2.libs/libctranslate2-x.so.4",
    "llama_cpp/lib/libggml-cuda.so", "bitsandbytes/libbitsandbytes_cuda128.so",
    "transformer_engine/libtransformer_engine.so", "apex/amp/x.py", "amp_C.so", "cntk/libs/libCntk.Math-2.7.so",
    "caffe2/python/caffe2_pybind11_state_gpu.so", "flash_attn_2_cuda.so", "tensorrt_libs/libnvinfer.so.10",
]  # fmt: skip


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [each for pair in value.items() for part in pair for each in strings(part)]
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in strings(part)]
    return [value] if isinstance(value, str) else []


@cases("binary", b"", b"\x7fELF\x02\x01\x01" + b"\xff" * 300, elf_needing("lib\x1b[2J.so", constants=b"\0"))
def test_hostile_files_are_read_and_say_nothing_that_a_terminal_obeys(tmp_path: Path, binary: bytes) -> None:
    tree = Frameworks(tmp_path)
    for path in TEXTS:
        tree.file(f"{SITE}/{path}", HOSTILE)
    for path in BINARIES:
        tree.file(f"{SITE}/{path}", binary)
    began = time.perf_counter()
    found = tree.found()
    assert time.perf_counter() - began < 25
    assert len(found) >= 20
    for framework in found.values():
        told = strings(msgspec.to_builtins(framework))
        assert not [each for each in told if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in each)]


def test_folders_and_links_in_place_of_files(tmp_path: Path) -> None:
    tree = Frameworks(tmp_path)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "version").write_text("__version__ = '6.6.6'\ncuda = '6.6'\n")
    for number, path in enumerate([*TEXTS, *BINARIES]):
        place = f"{SITE}/{path}"
        if number % 3 == 0:
            tree.at(place).mkdir(parents=True, exist_ok=True)
        elif number % 3 == 1:
            tree.link(place, str(outside / "version"))
        else:
            tree.link(place, "loop" if number % 2 else place)
    for framework in tree.found().values():
        assert framework.version != "6.6.6"
        assert framework.cuda != "6.6"


def test_a_framework_of_which_nothing_is_left_but_a_name(tmp_path: Path) -> None:
    tree = Frameworks(tmp_path)
    names = [
        "onnxruntime_gpu", "cupy_cuda12x", "vllm", "flash_attn", "deepspeed", "tensorrt", "paddlepaddle_gpu", "mxnet",
    ]  # fmt: skip
    for name in names:
        tree.wheel(SITE, name, "1.0")
    for framework in tree.found().values():
        assert framework.problem == "its metadata is there, its folder is not: an incomplete installation"
