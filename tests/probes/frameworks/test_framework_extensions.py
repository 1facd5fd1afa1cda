"""Extensions of PyTorch as their files describe them: constructed, and what they say is what the wheels named say."""

from pathlib import Path
from typing import Any

from tests.every import cases
from tests.known import Expected, fields
from tests.probes.frameworks.framework_trees import SITE, Files, Frameworks, elf_needing, requires, told

SO = "cpython-312-x86_64-linux-gnu.so"


def torch(tree: Frameworks, cuda: str = "12.8") -> None:
    version = f"__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '{cuda}'\nhip: Optional[str] = None\n"
    tree.package({"torch/__init__.py": "", "torch/version.py": version}, "torch", "2.8.0")


@cases("name", "torchvision", "torchaudio")
@cases("label, expected",
    ("+cu124", ("12.4", False, None)), ("+cpu", (None, True, None)), ("+rocm6.2", (None, False, "6.2")),
    ("", (None, None, None)),
)  # fmt: skip
def test_the_family_of_torch(tree: Frameworks, name: str, label: str, expected: tuple[Any, ...]) -> None:
    library = "torchvision/_C.so" if name == "torchvision" else "torchaudio/lib/libtorchaudio.so"
    version = f"__version__ = '2.5.1{label}'\ngit_version = 'x'\n"
    files: Files = {f"{name}/__init__.py": "", f"{name}/version.py": version, library: elf_needing()}
    tree.package(files, name, "2.5.1", requires("torch (==2.5.1)"))
    found = tree.found()[name]
    assert told(found, "version", "extends", "problem") == (f"2.5.1{label}", "torch", None)
    assert told(found, "cuda", "cpu_only", "hip") == expected
    assert found.built_for == {"torch": "2.5.1"}
    assert len(found.binaries or ()) == 1


def ptxas(release: str) -> bytes:
    compiler = "Cuda compilation tools, release"
    return elf_needing(constants=b"\0" * 100 + f"{compiler} %d.%d,\0{compiler} {release[:4]}, V{release}\0".encode())


def xformers_build(cuda: str, torch_version: str, listed: str) -> str:
    return (
        f'{{"version": {{"cuda": {cuda}, "hip": null, "torch": "{torch_version}", "python": "3.11.10"}}, '
        f'"env": {{"TORCH_CUDA_ARCH_LIST": {listed}, "NVCC_FLAGS": "-allow-unsupported-compiler"}}}}'
    )


TORCH_TENSORRT = '__version__ = "2.14.0"\n__cuda_version__ = "13.2"\n__tensorrt_version__ = "11.1.0"\n'
VLLM = "__version__: str\n__version__ = version = '0.6.3+cu118'\n__version_tuple__ = version_tuple = (0, 6, 3)\n"
DEEPSPEED = (
    "version='0.15.4'\ngit_hash='unknown'\ninstalled_ops={'fused_adam': True, 'cpu_adam': False}\n"
    "accelerator_name='cuda'\ntorch_info={'version': '2.5', 'bf16_support': True, 'cuda_version': '12.4', "
    "'nccl_version': '2.21', 'hip_version': '0.0'}\n"
)
NO_TORCH = (
    "version='0.19.8'\ninstalled_ops={}\ntorch_info={'version': '0.0', 'bf16_support': False, 'cuda_version': '0.0'}\n"
)


def flash_attention(version: str) -> Files:
    return {
        "flash_attn/__init__.py": f'__version__ = "{version}"\n',
        f"flash_attn_2_cuda.{SO}": elf_needing("libc10.so"),
    }


@cases("about, files, installed, expected",
    ("a torchvision that pins no torch",
     {"torchvision/__init__.py": "", "torchvision/version.py": "__version__ = '0.29.2+cu132'\n"},
     ("torchvision", "0.29.2", requires("numpy", "torch>=2.14.0", "pillow!=8.3.*,>=5.3.0")),
     {"built_for": {}, "requires": ("numpy", "torch>=2.14.0"), "binaries": ()}),
    ("Triton by its assemblers",
     {"triton/__init__.py": "__version__ = '3.9.0'\n", "triton/language/__init__.py": "",
      "triton/_C/libtriton.so": elf_needing("libc.so.6"), "triton/backends/nvidia/bin/ptxas": ptxas("12.9.86"),
      "triton/backends/nvidia/bin/ptxas-blackwell": ptxas("13.4.59"),
      "triton/backends/nvidia/include/cuda.h": "#define CUDA_VERSION 13010\n"}, ("triton", "3.9.0"),
     {"version": "3.9.0", "cuda": "12.9", "cpu_only": False, "extends": None,
      "built_for": {"ptxas": "12.9.86", "ptxas-blackwell": "13.4.59"}}),
    ("the older place of ptxas",
     {"triton/__init__.py": "__version__ = '2.0.0'\n", "triton/language/__init__.py": "",
      "triton/third_party/cuda/bin/ptxas": ptxas("12.0.76")}, ("triton", "2.0.0"),
     {"built_for": {"ptxas": "12.0.76"}}),
    ("Torch-TensorRT",
     {"torch_tensorrt/__init__.py": "", "torch_tensorrt/_version.py": TORCH_TENSORRT,
      "torch_tensorrt/lib/libtorchtrt.so": elf_needing("libnvinfer.so.11")},
     ("torch-tensorrt", "2.14.0", requires("torch<2.15.0,>=2.14.0", "tensorrt-cu13<11.2.0,>=11.1.0")),
     {"version": "2.14.0", "cuda": "13.2", "tensorrt": "11.1.0", "cpu_only": False,
      "built_for": {"torch": "2.14", "tensorrt": "11.1.0"}}),
    ("vLLM",
     {"vllm/__init__.py": "", "vllm/_version.py": VLLM, "vllm/engine/__init__.py": "",
      "vllm/_C.abi3.so": elf_needing("libcudart.so.11.0"),
      "vllm/vllm_flash_attn/vllm_flash_attn_c.abi3.so": elf_needing()},
     ("vllm", "0.6.3+cu118", requires("torch==2.4.0", "torchvision==0.19", "ray>=2.9")),
     {"version": "0.6.3+cu118", "cuda": "11.8", "cpu_only": False, "problem": None, "built_for": {"torch": "2.4.0"},
      "requires": ("torch==2.4.0", "torchvision==0.19"),
      "binaries": (f"{SITE}/vllm/_C.abi3.so", f"{SITE}/vllm/vllm_flash_attn/vllm_flash_attn_c.abi3.so")}),
    *((f"flash-attention by the label of its version: {version}", flash_attention(version.partition("+")[0]),
       ("flash-attn", version),
       {"name": "flash-attn", "version": version, "cuda": cuda, "built_for": built_for, "problem": None,
        "binaries": (f"{SITE}/flash_attn_2_cuda.{SO}",)})
      for version, cuda, built_for in (
          ("2.7.4.post1+cu12torch2.5cxx11abiFALSE", "12", {"torch": "2.5"}),
          ("2.5.8+cu123torch2.3cxx11abiTRUE", "12.3", {"torch": "2.3"}),
          ("2.3.6+cu118torch2.1cxx11abiFALSE", "11.8", {"torch": "2.1"}), ("2.8.3", None, {}))),
    ("flash-attention without its compiled part", {"flash_attn/__init__.py": '__version__ = "2.8.3"\n'},
     ("flash-attn", "2.8.3"), {"binaries": (), "cpu_only": None}),
    ("xFormers",
     {"xformers/__init__.py": "", "xformers/version.py": '__version__ = "0.0.28.post3"\n',
      "xformers/cpp_lib.json": xformers_build("1201", "2.5.1+cu121", '"6.0+PTX 7.0 8.0+PTX 9.0a"'),
      "xformers/_C.so": "no ELF file"}, ("xformers", "0.0.28.post3", requires("numpy", "torch==2.5.1")),
     {"version": "0.0.28.post3", "cuda": "12.1", "cpu_only": False, "built_for": {"torch": "2.5.1+cu121"},
      "gpu_code": ("sm_60", "compute_60", "sm_70", "sm_80", "compute_80", "sm_90a"),
      "source_of.gpu_code": f"file {SITE}/xformers/cpp_lib.json"}),
    ("an xFormers for the CPU",
     {"xformers/__init__.py": "", "xformers/version.py": '__version__ = "0.0.35"\n',
      "xformers/cpp_lib.json": xformers_build("null", "2.10.0+cpu", "null")}, ("xformers", "0.0.35"),
     {"cuda": None, "cpu_only": True, "gpu_code": None}),
    ("DeepSpeed with operations",
     {"deepspeed/__init__.py": "", "deepspeed/git_version_info_installed.py": DEEPSPEED,
      f"deepspeed/ops/adam/fused_adam_op.{SO}": elf_needing("libc10.so")}, ("deepspeed", "0.15.4"),
     {"version": "0.15.4", "cuda": "12.4", "nccl": "2.21", "hip": None, "problem": None,
      "built_for": {"torch": "2.5"}}),
    ("a DeepSpeed that saw no torch when it was built",
     {"deepspeed/git_version_info_installed.py": NO_TORCH, "deepspeed/ops/__init__.py": "",
      "deepspeed/__init__.py": ""}, ("deepspeed", "0.19.8"),
     {"cuda": None, "built_for": {}, "binaries": (), "cpu_only": None}),
)  # fmt: skip
def test_the_only(tree: Frameworks, about: str, files: Files, installed: tuple[str, ...], expected: Expected) -> None:
    tree.package(files, *installed)
    assert fields(tree.only(), expected) == expected


def test_another_project_called_triton(tree: Frameworks) -> None:
    tree.file(f"{SITE}/triton/__init__.py", "")
    assert tree.found() == {}


def bitsandbytes(tree: Frameworks, *numbers: str, nearest: bool = False) -> None:
    files: Files = {f"bitsandbytes/libbitsandbytes_{name}.so": elf_needing("libc.so.6") for name in numbers}
    code = "def _find_cuda_libs(prefix: str, is_hip: bool):\n" if nearest else ""
    own: Files = {"bitsandbytes/__init__.py": '__version__ = "0.50.2"\n', "bitsandbytes/cextension.py": code}
    tree.package({**files, **own}, "bitsandbytes", "0.50.2", requires("torch<3,>=2.4"))


@cases("about, there, nearest, wanted, variables, expected",
    *((f"the library for torch's CUDA {wanted}", there, True, wanted, {},
       {"version": "0.50.2", "cuda": f"{chosen[:2]}.{chosen[2]}", "cpu_only": False,
        "binaries": (f"{SITE}/bitsandbytes/libbitsandbytes_cuda{chosen}.so",)})
      for there, wanted, chosen in ((("cuda124", "cuda128"), "12.8", "128"),
                                    (("cuda118", "cuda124", "cuda126"), "12.8", "126"),
                                    (("cuda121", "cuda130"), "12.0", "121"))),
    ("an older one takes no other", ("cuda118", "cuda124"), False, "12.8", {},
     {"cuda": None, "binaries": None,
      "problem": "it has libraries for CUDA 11.8, 12.4, and none for 12.8, which it would load"}),
    ("the variable names another", ("cuda118", "cuda128"), False, "12.8", {"BNB_CUDA_VERSION": "118"},
     {"cuda": "11.8"}),
    ("no other is taken where the variable names one that is not there", ("cuda128",), True, "12.8",
     {"BNB_CUDA_VERSION": "129"},
     {"cuda": None, "binaries": None,
      "problem": "it has libraries for CUDA 12.8, and none for 12.9, which it would load"}),
    ("without torch it says only that it is for GPUs", ("cuda128",), False, "", {},
     {"cuda": None, "cpu_only": False, "problem": None}),
    ("for the CPU", (), False, "", {}, {"cuda": None, "cpu_only": True}),
)  # fmt: skip
def test_which_library_bitsandbytes_takes(
    tree: Frameworks, about: str, there: tuple[str, ...], wanted: str, variables: dict[str, str], expected: Expected, *,
    nearest: bool,
) -> None:  # fmt: skip
    if wanted:
        torch(tree, wanted)
    bitsandbytes(tree, "cpu", *there, nearest=nearest)
    assert fields(tree.found(**variables)["bitsandbytes"], expected) == expected


def test_transformer_engine_and_its_parts(tree: Frameworks) -> None:
    library = "transformer_engine/wheel_lib/libtransformer_engine.so"
    files: Files = {
        "transformer_engine/__init__.py": "", library: elf_needing("libc.so.6"),
        f"transformer_engine_torch.{SO}": elf_needing("libc10.so"),
    }  # fmt: skip
    tree.package(files, "transformer-engine", "2.20.2")
    tree.wheel(SITE, "transformer_engine_cu12", "2.20.2")
    tree.wheel(SITE, "transformer_engine_torch", "2.19.0")
    found = tree.only()
    assert told(found, "name", "version", "cuda", "cpu_only") == ("transformer-engine", "2.20.2", "12", False)
    assert found.binaries == (f"{SITE}/{library}", f"{SITE}/transformer_engine_torch.{SO}")
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
    tree.package({**flash_attention("2.8.3"), f"flash_attn_2_cuda.{SO}": EMBEDDED.read_bytes()}, "flash-attn", "2.8.3")
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
