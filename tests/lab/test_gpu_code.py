"""The GPU code in real libraries of CUDA 10 to 13, as NVIDIA's cuobjdump lists it.

No release of cuobjdump reads all: that of CUDA 13 refuses libraries with code for a capability below 5.0 and some
cubins of CUDA 12.1, which that of CUDA 12.8 (which Triton brings) reads.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from probes.files.gpu_code.targets import gpu_targets
from tests.lab.wheel_members import fetch
from tests.probes.gpu_code.listing import CodeEntry, GpuCode, gpu_code

pytestmark = pytest.mark.lab

TOOLS = {
    "13": ("nvidia-cuda-cuobjdump==13.5.37", "3.11", r"bin/cuobjdump$"),
    "12": ("triton==3.4.0", "3.11", r"nvidia/bin/cuobjdump$"),
}


class Library(NamedTuple):
    cuda: str  # With which it was built
    tool: str  # The cuobjdump that reads it
    requirement: str
    python: str
    member: str


LIBRARIES = [
    Library("10.1", "12", "torchvision==0.5.0", "3.8", r"/_C\.so$"),
    Library("10.2", "12", "torchvision==0.8.2", "3.8", r"/_C\.so$"),
    Library("10.2", "12", "cupy-cuda102==12.3.0", "3.10", r"cuda/cub\..*\.so$"),
    Library("11.7", "12", "torchvision==0.14.1", "3.10", r"/_C\.so$"),
    Library("11.8", "12", "nvidia-nvjpeg-cu11==11.9.0.86", "3.11", r"/libnvjpeg\.so"),
    Library("11.8", "13", "bitsandbytes==0.50.2", "3.11", r"_cuda118\.so$"),
    Library("12.1", "12", "bitsandbytes==0.50.2", "3.11", r"_cuda121\.so$"),
    Library("12.8", "13", "xformers==0.0.35", "3.11", r"/_C\.so$"),
    Library("12.9", "13", "nvidia-nvjpeg-cu12==12.4.0.76", "3.11", r"/libnvjpeg\.so"),
    Library("12.9", "13", "jax-cuda12-plugin==0.10.2", "3.11", r"/_solver\.so$"),
    Library("13.0", "13", "torchvision==0.26.0", "3.11", r"/_C\.so$"),
    Library("13.0", "13", "nvidia-cudnn-cu13==9.19.0.56", "3.11", r"libcudnn_cnn\.so"),
    Library("13.0", "13", "bitsandbytes==0.50.2", "3.11", r"_cuda130\.so$"),
    Library("13.0", "13", "vllm==0.33.0", "3.11", r"_deepselect_C\.abi3\.so$"),
    Library("13.0", "13", "torch==2.11.0", "3.11", r"libtorch_nvshmem\.so$"),
    Library("13.0", "13", "nvidia-cuda-runtime==13.0.96", "3.11", r"libcudadevrt\.a$"),
    Library("11.8", "12", "torchaudio==2.0.2", "3.10", r"/libtorchaudio\.so$"),
    Library("11.8", "12", "auto-gptq==0.4.2", "3.10", r"autogptq_cuda_64.*\.so$"),
    Library("12.1", "12", "auto-gptq==0.7.1", "3.11", r"autogptq_marlin_cuda.*\.so$"),
    Library("12.1", "12", "auto-gptq==0.7.1", "3.11", r"exllamav2_kernels.*\.so$"),
    Library("12.4", "12", "autoawq-kernels==0.0.9", "3.11", r"exlv2_ext.*\.so$"),
    Library("13.0", "13", "fbgemm-gpu==1.9.0", "3.11", r"/fbgemm_gpu_embedding_inplace_ops\.so$"),
    Library("13.0", "13", "torchcodec==0.17.0", "3.11", r"/libtorchcodec_core5\.so$"),
    Library("12.1", "12", "torchvision==0.16.2", "3.11", r"/_C\.so$"),
    Library("12.1", "12", "xformers==0.0.28.post1", "3.11", r"/_C\.so$"),
    Library("12.1", "12", "autoawq-kernels==0.0.6", "3.11", r"awq_ft_ext.*\.so$"),
    Library("12.4", "12", "autoawq-kernels==0.0.9", "3.11", r"awq_ext.*\.so$"),
    Library("12.4", "12", "torchaudio==2.5.1", "3.11", r"/libtorchaudio\.so$"),
    Library("12.6", "13", "torchvision==0.21.0", "3.11", r"/_C\.so$"),
    Library("12.8", "13", "torchvision==0.23.0", "3.11", r"/_C\.so$"),
    Library("12.8", "13", "torchaudio==2.8.0", "3.11", r"/libtorchaudio\.so$"),
    Library("12.8", "13", "sgl-kernel==0.3.21", "3.11", r"/spatial_ops.*\.so$"),
    Library("12.8", "13", "nvidia-nvimgcodec-cu12==0.9.0.20", "3.11", r"libnvimgcodec\.so"),
    Library("12.9", "13", "faiss-gpu-cu12==1.14.1.post1", "3.11", r"/libfaiss-.*\.so$"),
    Library("12.9", "13", "ctranslate2==4.8.5", "3.11", r"/libctranslate2.*\.so"),
    Library("13.0", "13", "torchao==0.18.0", "3.11", r"/_C_cutlass_90a.*\.so$"),
    Library("13.0", "13", "torchao==0.18.0", "3.11", r"/_C_mxfp8.*\.so$"),
    Library("13.0", "13", "torchcodec==0.17.0", "3.11", r"/libtorchcodec_core7\.so$"),
    Library("13.0", "13", "fbgemm-gpu==1.9.0", "3.11", r"/fbgemm_gpu_sparse_async_cumsum\.so$"),
    Library("13.2", "13", "nvidia-nvshmem-cu13==3.8.0", "3.11", r"libnvshmem_device\.a$"),
    Library("12", "13", "cupy-cuda12x==14.2.0", "3.11", r"cuda/cub\..*\.so$"),
    Library("13", "13", "cupy-cuda13x==14.2.0", "3.11", r"cuda/thrust\..*\.so$"),
    Library("12", "13", "libraft-cu12==26.10.0", "3.11", r"/libraft\.so$"),
    Library("12", "13", "cutensor-cu12==2.8.1", "3.11", r"/libcutensorMp\.so"),
    Library("12", "13", "nvidia-npp-cu12==12.4.1.87", "3.11", r"/libnppig\.so"),
    Library("12", "13", "gpu4pyscf-cuda12x==1.9.0", "3.11", r"/libgint\.so$"),
    Library("12", "13", "transformer-engine-cu12==2.20.2", "3.11", r"/libnccl_ep\.so$"),
    Library("12", "13", "cuequivariance-ops-torch-cu12==0.13.0", "3.11", r"_torch_ext\..*\.so$"),
    Library("11", "13", "faiss-gpu-cu11==1.14.1.post1", "3.11", r"/libfaiss-.*\.so$"),
    Library("13.0", "13", "PyNvVideoCodec==2.2.4", "3.11", r"/PyNvVideoCodec_130\..*\.so$"),
]
PREFIXES = {"elf": "sm", "ptx": "compute", "nvvm": "lto", "ELF": "sm", "PTX": "compute"}

Fetch = Callable[[Library], Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("members")


@pytest.fixture(scope="module")
def tools(folder: Path) -> dict[str, Path]:
    found = {name: fetch(*what, folder / name) for name, what in TOOLS.items()}
    for path in found.values():
        path.chmod(0o755)
    return found


@pytest.fixture(scope="module", params=LIBRARIES, ids=lambda one: f"{one.requirement} {one.member}")
def library(request: pytest.FixtureRequest, folder: Path) -> tuple[Library, Path]:
    one: Library = request.param
    return one, fetch(one.requirement, one.python, one.member, folder)


def listed(tool: Path, library: Path, *options: str) -> Counter[str]:
    """How many pieces cuobjdump lists for each target; it never writes the ``f`` of a cubin here."""
    output = run(tool, *options, "--list-elf", "--list-ptx", library)
    names = re.findall(r"^(ELF|PTX) file +\d+: .*\.sm_(\w+)\.(?:cubin|ptx)$", output, re.MULTILINE)
    return Counter(f"{PREFIXES[kind]}_{target}" for kind, target in names)


def headers(tool: Path, library: Path) -> Counter[tuple[str, str, bool]]:
    """Target, version and whether compressed, of each piece of code that cuobjdump describes."""
    output = run(tool, "-all", library)
    one = r"^Fatbin (\w+) code:\n=+\narch = sm_(\w+)\ncode version = \[(\d+),(\d+)\]\n(?:(?!\n\n)[\s\S])*?(?:\n\n|\Z)"
    return Counter(
        (
            f"{PREFIXES[match[1]]}_{match[2]}",
            f"{match[3]}.{match[4]}" if match[1] == "ptx" else "",
            "\ncompressed" in match[0],
        )
        for match in re.finditer(one, output, re.MULTILINE)
    )


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert b"fatal" not in done.stderr, done.stderr[-300:]
    return done.stdout.decode("utf-8", "replace")


def own(code: GpuCode) -> list[CodeEntry]:
    """What lies in the sections of CUDA's tools that cuobjdump reads."""
    return [entry for entry in code.entries if entry.section in {".nv_fatbin", "__nv_relfatbin"}]


def counted(entries: list[CodeEntry]) -> Counter[str]:
    return Counter(entry.target.rstrip("f") for entry in entries if entry.kind != "lto")


def test_lists_are_equal(library: tuple[Library, Path], tools: dict[str, Path]) -> None:
    one, path = library
    code = gpu_code(str(path))
    assert (code.complete, code.problem) == (True, None)
    assert code.entries
    assert counted(own(code)) == listed(tools[one.tool], path, "-all")
    loadable = [entry for entry in own(code) if not entry.relocatable]
    assert counted(loadable or own(code)) == listed(tools[one.tool], path)


def test_headers_are_equal(library: tuple[Library, Path], tools: dict[str, Path]) -> None:
    one, path = library
    entries = own(gpu_code(str(path)))
    expected = headers(tools[one.tool], path)
    assert Counter((entry.target, entry.ptx_isa or "", entry.compressed) for entry in entries) == expected


def test_the_quick_answer_is_the_same(library: tuple[Library, Path]) -> None:
    _, path = library
    code, quick = gpu_code(str(path)), gpu_targets(str(path))
    assert (quick.targets, quick.complete, quick.problem) == (code.targets, True, None)


def test_code_in_plain_data_is_told(folder: Path) -> None:
    """cuRAND of CUDA 13 keeps most of its code there; cuobjdump does not list it."""
    path = fetch("nvidia-curand==10.4.5.25", "3.11", r"libcurand\.so", folder)
    quick, code = gpu_targets(str(path)), gpu_code(str(path))
    assert quick.problem == "it holds more GPU code in .data, outside CUDA's own sections"
    assert code.complete
    assert len([entry for entry in code.entries if entry.section == ".data"]) > 1000
