"""Extensions of PyTorch as their files describe them: constructed, and what they say is what the wheels named say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Framework
from tests.every import cases
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing, requires

SO = "cpython-312-x86_64-linux-gnu.so"
Files = dict[str, str | bytes]


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    return Frameworks(tmp_path)


def told(framework: Framework, *fields: str) -> tuple[Any, ...]:
    return tuple(getattr(framework, field) for field in fields)


def torch(tree: Frameworks, cuda: str = "12.8") -> None:
    version = f"__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '{cuda}'\nhip: Optional[str] = None\n"
    tree.package({"torch/__init__.py": "", "torch/version.py": version}, "torch", "2.8.0")


@cases("name", "torchvision", "torchaudio")
@cases("label, expected",
    ("+cu124", ("12.4", False, None)), ("+cpu", (None, True, None)), ("+rocm6.2", (None, False, "6.2")),
    ("", (None, None, None)),
)  # fmt: skip
def test_the_family_of_torch(tree: Frameworks, name: str, label: str, expected: tuple[Any, ...]) -> None:
    files: Files = {
        f"{name}/__init__.py": "",
        f"{name}/version.py": f"__version__ = '2.5.1{label}'\ngit_version = 'x'\n",
    }
    tree.package(
        {**files, "torchvision/_C.so" if name == "torchvision" else "torchaudio/lib/libtorchaudio.so": elf_needing()},
        name,
        "2.5.1",
        requires("torch (==2.5.1)"),
    )
    found = tree.found()[name]
    assert told(found, "version", "extends", "problem") == (f"2.5.1{label}", "torch", None)
    assert told(found, "cuda", "cpu_only", "hip") == expected
    assert found.built_for == {"torch": "2.5.1"}
    assert len(found.binaries or ()) == 1


def test_a_torchvision_that_pins_no_torch(tree: Frameworks) -> None:
    files: Files = {"torchvision/__init__.py": "", "torchvision/version.py": "__version__ = '0.29.2+cu132'\n"}
    tree.package(files, "torchvision", "0.29.2", requires("numpy", "torch>=2.14.0", "pillow!=8.3.*,>=5.3.0"))
    found = tree.only()
    assert told(found, "built_for", "requires") == ({}, ("numpy", "torch>=2.14.0"))
    assert found.binaries == ()


def ptxas(release: str) -> bytes:
    text = (
        f"Cuda compilation tools, release %d.%d,\0Cuda compilation tools, release {release[:4]}, V{release}\0".encode()
    )
    return elf_needing(constants=b"\0" * 100 + text)


def test_triton_by_its_assemblers(tree: Frameworks) -> None:
    files: Files = {
        "triton/__init__.py": "__version__ = '3.9.0'\n",
        "triton/language/__init__.py": "",
        "triton/_C/libtriton.so": elf_needing("libc.so.6"),
        "triton/backends/nvidia/bin/ptxas": ptxas("12.9.86"),
        "triton/backends/nvidia/bin/ptxas-blackwell": ptxas("13.4.59"),
        "triton/backends/nvidia/include/cuda.h": "#define CUDA_VERSION 13010\n",
    }
    tree.package(files, "triton", "3.9.0")
    found = tree.only()
    assert told(found, "version", "cuda", "cpu_only", "extends") == ("3.9.0", "12.9", False, None)
    assert found.built_for == {"ptxas": "12.9.86", "ptxas-blackwell": "13.4.59"}


def test_the_older_place_of_ptxas(tree: Frameworks) -> None:
    files: Files = {
        "triton/__init__.py": "__version__ = '2.0.0'\n",
        "triton/language/__init__.py": "",
        "triton/third_party/cuda/bin/ptxas": ptxas("12.0.76"),
    }
    tree.package(files, "triton", "2.0.0")
    assert tree.only().built_for == {"ptxas": "12.0.76"}


def test_another_project_called_triton(tree: Frameworks) -> None:
    tree.file(f"{SITE}/triton/__init__.py", "")
    assert tree.found() == {}


def test_torch_tensorrt(tree: Frameworks) -> None:
    version = '__version__ = "2.14.0"\n__cuda_version__ = "13.2"\n__tensorrt_version__ = "11.1.0"\n'
    files: Files = {
        "torch_tensorrt/__init__.py": "",
        "torch_tensorrt/_version.py": version,
        "torch_tensorrt/lib/libtorchtrt.so": elf_needing("libnvinfer.so.11"),
    }
    tree.package(files, "torch-tensorrt", "2.14.0", requires("torch<2.15.0,>=2.14.0", "tensorrt-cu13<11.2.0,>=11.1.0"))
    found = tree.only()
    assert told(found, "version", "cuda", "tensorrt", "cpu_only") == ("2.14.0", "13.2", "11.1.0", False)
    assert found.built_for == {"torch": "2.14", "tensorrt": "11.1.0"}


def test_vllm(tree: Frameworks) -> None:
    text = "__version__: str\n__version__ = version = '0.6.3+cu118'\n__version_tuple__ = version_tuple = (0, 6, 3)\n"
    files: Files = {
        "vllm/__init__.py": "",
        "vllm/_version.py": text,
        "vllm/engine/__init__.py": "",
        "vllm/_C.abi3.so": elf_needing("libcudart.so.11.0"),
        "vllm/vllm_flash_attn/vllm_flash_attn_c.abi3.so": elf_needing(),
    }
    tree.package(files, "vllm", "0.6.3+cu118", requires("torch==2.4.0", "torchvision==0.19", "ray>=2.9"))
    found = tree.only()
    assert told(found, "version", "cuda", "cpu_only", "problem") == ("0.6.3+cu118", "11.8", False, None)
    assert told(found, "built_for", "requires") == ({"torch": "2.4.0"}, ("torch==2.4.0", "torchvision==0.19"))
    assert [path.rpartition("/")[2] for path in found.binaries or ()] == ["_C.abi3.so", "vllm_flash_attn_c.abi3.so"]


@cases(
    "version, cuda, built_for",
    ("2.7.4.post1+cu12torch2.5cxx11abiFALSE", "12", {"torch": "2.5"}),
    ("2.5.8+cu123torch2.3cxx11abiTRUE", "12.3", {"torch": "2.3"}),
    ("2.3.6+cu118torch2.1cxx11abiFALSE", "11.8", {"torch": "2.1"}),
    ("2.8.3", None, {}),
)
def test_flash_attention_by_the_label_of_its_version(
    tree: Frameworks, version: str, cuda: str | None, built_for: dict[str, str]
) -> None:
    plain = version.partition("+")[0]
    files: Files = {
        "flash_attn/__init__.py": f'__version__ = "{plain}"\n',
        f"flash_attn_2_cuda.{SO}": elf_needing("libc10.so"),
    }
    tree.package(files, "flash-attn", version)
    found = tree.only()
    assert told(found, "name", "version", "cuda", "built_for") == ("flash-attn", version, cuda, built_for)
    assert told(found, "binaries", "problem") == ((f"{SITE}/flash_attn_2_cuda.{SO}",), None)


def test_flash_attention_without_its_compiled_part(tree: Frameworks) -> None:
    tree.package({"flash_attn/__init__.py": '__version__ = "2.8.3"\n'}, "flash-attn", "2.8.3")
    assert told(tree.only(), "binaries", "cpu_only") == ((), None)


def xformers_build(cuda: str, torch_version: str, listed: str) -> str:
    return (
        f'{{"version": {{"cuda": {cuda}, "hip": null, "torch": "{torch_version}", "python": "3.11.10"}}, '
        f'"env": {{"TORCH_CUDA_ARCH_LIST": {listed}, "NVCC_FLAGS": "-allow-unsupported-compiler"}}}}'
    )


def test_xformers(tree: Frameworks) -> None:
    files: Files = {
        "xformers/__init__.py": "",
        "xformers/version.py": '__version__ = "0.0.28.post3"\n',
        "xformers/cpp_lib.json": xformers_build("1201", "2.5.1+cu121", '"6.0+PTX 7.0 8.0+PTX 9.0a"'),
        "xformers/_C.so": "no ELF file",
    }
    tree.package(files, "xformers", "0.0.28.post3", requires("numpy", "torch==2.5.1"))
    found = tree.only()
    assert told(found, "version", "cuda", "cpu_only") == ("0.0.28.post3", "12.1", False)
    assert found.built_for == {"torch": "2.5.1+cu121"}
    assert found.gpu_code == ("sm_60", "compute_60", "sm_70", "sm_80", "compute_80", "sm_90a")
    assert found.read["gpu_code"] == f"file {SITE}/xformers/cpp_lib.json"


def test_an_xformers_for_the_cpu(tree: Frameworks) -> None:
    files: Files = {
        "xformers/__init__.py": "",
        "xformers/version.py": '__version__ = "0.0.35"\n',
        "xformers/cpp_lib.json": xformers_build("null", "2.10.0+cpu", "null"),
    }
    tree.package(files, "xformers", "0.0.35")
    assert told(tree.only(), "cuda", "cpu_only", "gpu_code") == (None, True, None)


def bitsandbytes(tree: Frameworks, *numbers: str, nearest: bool = False) -> None:
    files: Files = {f"bitsandbytes/libbitsandbytes_{name}.so": elf_needing("libc.so.6") for name in numbers}
    code = "def _find_cuda_libs(prefix: str, is_hip: bool):\n" if nearest else ""
    own: Files = {"bitsandbytes/__init__.py": '__version__ = "0.50.2"\n', "bitsandbytes/cextension.py": code}
    tree.package({**files, **own}, "bitsandbytes", "0.50.2", requires("torch<3,>=2.4"))


@cases(
    "there, wanted, chosen",
    (("cuda124", "cuda128"), "12.8", "128"),
    (("cuda118", "cuda124", "cuda126"), "12.8", "126"),
    (("cuda121", "cuda130"), "12.0", "121"),
)
def test_bitsandbytes_takes_the_library_for_torchs_cuda(
    tree: Frameworks, there: tuple[str, ...], wanted: str, chosen: str
) -> None:
    torch(tree, wanted)
    bitsandbytes(tree, "cpu", *there, nearest=True)
    found = tree.found()["bitsandbytes"]
    assert told(found, "version", "cuda", "cpu_only") == ("0.50.2", f"{chosen[:2]}.{chosen[2]}", False)
    assert found.binaries == (f"{SITE}/bitsandbytes/libbitsandbytes_cuda{chosen}.so",)


def test_an_older_bitsandbytes_takes_no_other(tree: Frameworks) -> None:
    torch(tree, "12.8")
    bitsandbytes(tree, "cpu", "cuda118", "cuda124")
    found = tree.found()["bitsandbytes"]
    assert told(found, "cuda", "binaries") == (None, None)
    assert found.problem == "it has libraries for CUDA 11.8, 12.4, and none for 12.8, which it would load"


def test_the_variable_names_another(tree: Frameworks) -> None:
    torch(tree, "12.8")
    bitsandbytes(tree, "cpu", "cuda118", "cuda128")
    assert tree.found(BNB_CUDA_VERSION="118")["bitsandbytes"].cuda == "11.8"


def test_no_other_is_taken_where_the_variable_names_one_that_is_not_there(tree: Frameworks) -> None:
    torch(tree, "12.8")
    bitsandbytes(tree, "cpu", "cuda128", nearest=True)
    found = tree.found(BNB_CUDA_VERSION="129")["bitsandbytes"]
    assert told(found, "cuda", "binaries") == (None, None)
    assert found.problem == "it has libraries for CUDA 12.8, and none for 12.9, which it would load"


def test_bitsandbytes_without_torch_says_only_that_it_is_for_gpus(tree: Frameworks) -> None:
    bitsandbytes(tree, "cpu", "cuda128")
    assert told(tree.only(), "cuda", "cpu_only", "problem") == (None, False, None)


def test_bitsandbytes_for_the_cpu(tree: Frameworks) -> None:
    bitsandbytes(tree, "cpu")
    assert told(tree.only(), "cuda", "cpu_only") == (None, True)


def test_deepspeed_with_operations(tree: Frameworks) -> None:
    info = (
        "version='0.15.4'\ngit_hash='unknown'\ninstalled_ops={'fused_adam': True, 'cpu_adam': False}\n"
        "accelerator_name='cuda'\ntorch_info={'version': '2.5', 'bf16_support': True, 'cuda_version': '12.4', "
        "'nccl_version': '2.21', 'hip_version': '0.0'}\n"
    )
    files: Files = {
        "deepspeed/__init__.py": "",
        "deepspeed/git_version_info_installed.py": info,
        f"deepspeed/ops/adam/fused_adam_op.{SO}": elf_needing("libc10.so"),
    }
    tree.package(files, "deepspeed", "0.15.4")
    found = tree.only()
    assert told(found, "version", "cuda", "nccl", "hip", "problem") == ("0.15.4", "12.4", "2.21", None, None)
    assert found.built_for == {"torch": "2.5"}


def test_a_deepspeed_that_saw_no_torch_when_it_was_built(tree: Frameworks) -> None:
    torch_info = "{'version': '0.0', 'bf16_support': False, 'cuda_version': '0.0'}"
    info = f"version='0.19.8'\ninstalled_ops={{}}\ntorch_info={torch_info}\n"
    files: Files = {"deepspeed/git_version_info_installed.py": info, "deepspeed/ops/__init__.py": ""}
    tree.package({**files, "deepspeed/__init__.py": ""}, "deepspeed", "0.19.8")
    assert told(tree.only(), "cuda", "built_for", "binaries", "cpu_only") == (None, {}, (), None)


def test_transformer_engine_and_its_parts(tree: Frameworks) -> None:
    files: Files = {
        "transformer_engine/__init__.py": "",
        "transformer_engine/wheel_lib/libtransformer_engine.so": elf_needing("libc.so.6"),
        f"transformer_engine_torch.{SO}": elf_needing("libc10.so"),
    }
    tree.package(files, "transformer-engine", "2.20.2")
    tree.wheel(SITE, "transformer_engine_cu12", "2.20.2")
    tree.wheel(SITE, "transformer_engine_torch", "2.19.0")
    found = tree.only()
    assert told(found, "name", "version", "cuda", "cpu_only") == ("transformer-engine", "2.20.2", "12", False)
    assert [path.rpartition("/")[2] for path in found.binaries or ()] == [
        "libtransformer_engine.so",
        f"transformer_engine_torch.{SO}",
    ]
    assert found.problem == (
        "its parts are of different versions: transformer-engine 2.20.2, transformer-engine-cu12 2.20.2, "
        "transformer-engine-torch 2.19.0"
    )


def test_apex_and_the_other_apex(tree: Frameworks) -> None:
    tree.package({"apex/__init__.py": "", "apex/models.py": ""}, "apex", "0.9.10")
    assert tree.found() == {}
    tree.package({"apex/amp/__init__.py": "", f"amp_C.{SO}": elf_needing("libc10.so")})
    assert told(tree.only(), "name", "extends", "binaries") == ("apex", "torch", (f"{SITE}/amp_C.{SO}",))


EMBEDDED = Path(__file__).parents[1] / "elf_files" / "embedded.so"
"""A real library with code for sm_75 and compute_75."""


def test_gpu_code_of_an_extension_is_that_of_its_binaries(tree: Frameworks) -> None:
    torch(tree)
    files: Files = {
        "flash_attn/__init__.py": '__version__ = "2.8.3"\n',
        f"flash_attn_2_cuda.{SO}": EMBEDDED.read_bytes(),
    }
    tree.package(files, "flash-attn", "2.8.3")
    found = tree.found()["flash-attn"]
    assert told(found, "gpu_code", "cpu_only") == (("sm_75", "compute_75"), False)
    assert found.read["gpu_code"] == f"elf {SITE}/flash_attn"


def test_a_library_that_cannot_be_read_says_nothing_of_gpu_code(tree: Frameworks) -> None:
    torch(tree)
    tree.package({"apex/amp/__init__.py": "", "apex/__init__.py": "", f"amp_C.{SO}": b"\x7fELF" + b"\xff" * 100})
    assert told(tree.found()["apex"], "gpu_code", "unresolved") == (None, None)


def test_the_folder_of_flash_attn_4_is_no_flash_attn(tree: Frameworks) -> None:
    """Its wheel has ``flash_attn/cute/`` alone, and nothing compiled."""
    tree.package({"flash_attn/cute/__init__.py": ""}, "flash_attn_4", "4.0.0b36")
    assert "flash-attn" not in tree.found()
    tree.package({"flash_attn/__init__.py": '__version__ = "2.7.4"\n'}, "flash_attn", "2.7.4")
    assert "flash-attn" in tree.found()
