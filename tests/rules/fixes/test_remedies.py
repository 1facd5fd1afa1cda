"""Remedies: the rows for kinds of reports, with the words of the text; and no fix holds a placeholder."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check, Fix, Report
from envcheck.pipeline.session import Request, judge
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.fixes.remedies import remedy_of
from tests.every import cases, every
from tests.known import known

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_FILE = Path(__file__).parents[3] / "matrix" / "remedies.toml"
MATRIX = load_matrix()
EXAMPLES = {row["name"]: row["examples"] for row in toml.loads(_FILE.read_text(encoding="utf-8"))["remedy"]}
PLACEHOLDER = re.compile(
    r"…|\{\w+\}|<[a-z][\w -]{0,30}>|/path/to\b|(?<![\w=./-])(?:NAME|PACKAGE|IMAGE|PORT|NNN|VERSION|FILE)\b(?!=)"
)
"""What somebody would have to replace before a command runs."""


def explained(text: str) -> Report:
    return judge(read_text(text), Request())


def placeholders(fix: Fix) -> list[str]:
    return PLACEHOLDER.findall(" ".join((fix.text, *fix.command)))


def remedied(text: str, name: str) -> Check | None:
    """The check that has the fixes of a row."""
    row = next(row for row in MATRIX.remedies if row.name == name)
    cited = MATRIX.cite(row)
    found = (check for check in explained(text).checks if check.rule in row.problems and check.fixes)
    titled = (check for check in found if not row.title or check.title == row.title)
    return next((check for check in titled if check.sources[: len(cited)] == cited), None)


@every(lambda: [(name, text) for name, texts in EXAMPLES.items() for text in texts])
def test_a_remedy_is_offered_for_its_examples(name: str, text: str) -> None:
    check = known(remedied(text, name))
    assert not any(map(placeholders, check.fixes)), check.fixes


def test_every_remedy_has_an_example_and_is_for_rules_that_exist() -> None:
    names = {rule.name for rule in all_rules()}
    assert EXAMPLES.keys() == {row.name for row in MATRIX.remedies}
    assert [row.name for row in MATRIX.remedies if not {*row.problems} <= names] == []


def test_no_fix_of_a_row_or_rule_holds_a_placeholder() -> None:
    facts = Facts(read_text("torch 2.6.0"), MATRIX)
    fixes = [fix for rule in all_rules() for fix in rule.remedies(facts)]
    assert len(fixes) > 100
    assert [fix.text for fix in fixes if placeholders(fix)] == []


@cases(
    "line, fixes",
    ("Installed CUDA version 12.0 does not match the version torch was compiled with 11.8", 3),
    ("Installed CUDA version 12.0 does not match the version torch was compiled with $(id)", 0),
)
def test_a_fix_without_its_words_is_not_offered(line: str, fixes: int) -> None:
    found = remedy_of("toolkit-differs-from-build", (), Facts(read_text(line), MATRIX))
    assert len(found.fixes if found else ()) == fixes


@cases("package, offered", ("dgl==2.1.0+cu121", "data.dgl.ai/wheels/torch-2.4/cu121"), ("dgl==2.1.0", "dgl==1.1.3"))
def test_a_build_for_cuda_is_not_replaced_by_that_of_another_index(package: str, offered: str) -> None:
    line = "Cannot find DGL C++ graphbolt library at /v/dgl/graphbolt/libgraphbolt_pytorch_2.4.0.so"
    report = explained(f"FileNotFoundError: {line}\ntorch==2.4.0+cu121\n{package}\nUbuntu 22.04")
    (found,) = (check for check in report.checks if check.rule == "extension-built-for-other-torch")
    assert offered in " ".join(found.fixes[0].command)


@cases("package, offered", ("vllm", 1), ("nobodys_package_of_this_name", 0))
def test_a_package_is_installed_only_if_an_index_has_it(package: str, offered: int) -> None:
    text = f"No module named '{package}._C'\nFile \"/home/u/{package}/{package}/__init__.py\", line 8"
    fixes = known(remedied(text, "source-folder-of-extension")).fixes
    assert [fix.command for fix in fixes].count(("python", "-m", "pip", "install", package)) == offered


@cases("more, named", ("", "flash-attn"), ("\ntorch==2.6.0\nflash-attn==2.8.0.post2", "flash-attn==2.8.0.post2"))
def test_a_release_that_the_text_names_is_compiled_again_with_what_forces_it(more: str, named: str) -> None:
    line = "ImportError: /v/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105Error"
    (fix,) = known(remedied(line + more, "ready-wheel-of-flash-attention")).fixes
    assert "FLASH_ATTENTION_FORCE_BUILD=TRUE" in fix.command
    assert fix.command[-3 if more else -1] == named


@pytest.mark.parametrize("error", ["out of memory", "CUDA out of memory. Tried to allocate 2.00 GiB"])
def test_what_a_program_asks_too_much_of_is_no_fault_of_the_environment(error: str) -> None:
    report = explained(f"torch.OutOfMemoryError: {error}\ntorch 2.5.1+cu124, RTX 4090, driver 550.54")
    (warned,) = [check for check in report.checks if check.rule == "gpu-memory-exhausted"]
    assert (report.verdict, warned.status) == ("warn", "warn")
    assert "environment is not the cause" in warned.message
    assert warned.fixes


def test_all_wheels_that_write_over_each_other_are_removed_before_the_right_ones_are_installed() -> None:
    text = "ImportError: libcudnn.so.9: cannot open shared object file\ntorch==2.9.1+cu128\n"
    wheels = [f"nvidia-{each}" for each in ("cudnn-cu12==9.10.2.21", "cudnn-cu13==9.13.0.50", "nccl-cu12==2.27.5")]
    report = explained("\n".join((text, *wheels, "nvidia-nccl-cu13==2.27.7")))
    assert report.primary == "nvidia-wheel-conflict"
    removed, wanted = report.fix
    assert {line.partition("==")[0] for line in wheels} <= {*removed.command}
    assert wanted.command[-2:] == ("nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5")
    assert wanted.continues


@cases("more, problem", ("nvidia-cudnn-cu12==9.1.0.70\n", "library-not-found"), ("", "cudnn-missing"))
def test_a_library_whose_wheel_is_listed_is_not_found_and_not_missing(more: str, problem: str) -> None:
    line = "Could not load library libcudnn.so.9: cannot open shared object file"
    report = explained(f"{line}\n{more}torch==2.4.0+cu121")
    assert report.primary == problem
    (check,) = [check for check in report.checks if check.rule == problem]
    assert ("nvidia-cudnn-cu12==9.1.0.70 is installed" in check.fixes[0].text) is (problem == "library-not-found")


def test_a_wheel_is_offered_only_where_an_index_has_it() -> None:
    for torch, major, offered in (("1.12.1+cu102", 7, False), ("2.3.0+cu121", 8, True), ("2.5.1+cu124", 8, False)):
        line = f"Could not load library libcudnn.so.{major}: cannot open shared object file"
        checks = explained(f"{line}\ntorch=={torch}").checks
        words = {word for check in checks for fix in check.fixes for word in fix.command}
        assert any(word.startswith("nvidia-cudnn-cu") for word in words) is offered, torch
        assert not any(word.startswith("nvidia-cudnn-cu10") for word in words)


@cases("torch, vision", ("2.5.1+cpu", "0.20.1+cpu"), ("2.5.1+cu121", "0.20.1+cu121"))
def test_the_family_is_installed_with_the_label_of_its_build(torch: str, vision: str) -> None:
    text = f"RuntimeError: operator torchvision::nms does not exist\ntorch=={torch}\ntorchvision==0.20.1"
    commands = [fix.command for check in explained(text).checks for fix in check.fixes]
    assert any(f"torchvision=={vision}" in command for command in commands), commands


FOLLOWED = r"""
conda holds PyTorch at a CUDA that the GPU does not know | conda run --name torch-cu128 | Use separate environments
conda create --name u python=3.11 pytorch-cuda=12.1 pytorch -c pytorch -c nvidia
NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_80 sm_86 sm_90.

a package that PyTorch calls may lack the code | torch.cuda.get_arch_list() | placeholder
RuntimeError: CUDA error: no kernel image is available for execution on the device
GTX 1660 Super, started with --xformers

the folder of the text has another major version | cuda-toolkit[cublas]==12.* | LD_LIBRARY_PATH=/usr/local
libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file, in src/main.rs:6
/usr/local/cuda-13.1/targets/x86_64-linux/lib/libcublasLt.so.13

a small share is raised, and no other program is looked for | XLA_PYTHON_CLIENT_MEM_FRACTION=.75 | nvidia-smi
XLA_PYTHON_CLIENT_MEM_FRACTION=.01
jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 268435456 bytes.
jax 0.5.0 jaxlib 0.5.0

the label of jaxlib names its cuDNN | nvidia-cudnn-cu12>=8.9.4,<9 | --upgrade nvidia-cudnn
jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed.
jaxlib==0.4.23+cuda12.cudnn89
nvidia-cudnn-cu12==9.3.0.75

a package that lacks its own name is installed whole | uninstall --yes peft | --upgrade
  File "/v/lib/python3.11/site-packages/peft/tuners/lora/model.py", line 42, in <module>
ImportError: cannot import name 'is_xpu' from 'peft.utils' (/v/lib/python3.11/site-packages/peft/utils/__init__.py)

colours of a terminal as HTML hide no error | cuda-toolkit[cublas]==12.* | LD_PRELOAD
<font color="red">2026-05-20 16:00:21 [E:onnxruntime:Default] libcublasLt.so.12: cannot open shared object file</font>

PyTorch brings the library in a wheel | /cu13/lib | pip install --upgrade
OSError: libnvJitLink.so.13: cannot open shared object file: No such file or directory
PyTorch: 2.11.0+cu130, Ubuntu 22.04

rows name the release for this PyTorch, and it has no source | torchcodec==0.0.3.* | --no-binary
2. The PyTorch version (2.4.0+cu124) is not compatible with this version of TorchCodec
/v/site-packages/torchcodec/libtorchcodec_core4.so: undefined symbol: _ZNK3c1010TensorImpl15incref_pyobjectEv

no release knows this GPU | No release of vllm has code for compute capability 6.1 | Install a release
vllm 0.6.6, Tesla P40, torch 2.5.1+cu124
RuntimeError: CUDA error: no kernel image is available for execution on the device

the Python that a program brings runs it | .\python_embeded\python.exe -m pip | placeholder
C:\ComfyUI_windows_portable>.\python_embeded\python.exe -s ComfyUI\main.py
AssertionError: Torch not compiled with CUDA enabled

a program's own environment, by its files | C:\sd\venv\Scripts\python.exe -m pip install torch | placeholder
  File "C:\sd\venv\lib\site-packages\torch\cuda\__init__.py", line 239, in _lazy_init
AssertionError: Torch not compiled with CUDA enabled

uv installs where uv is used | uv pip install flash-attn==2.8.3 --no-build-isolation | python -m pip
$ uv add flash-attn
Failed to build `flash-attn==2.8.3`
      ModuleNotFoundError: No module named 'torch'

a range means the newest release for this Python | onnxruntime-gpu[cuda,cudnn]>=1.21,<1.27 | placeholder
LoadLibrary failed with error 126 when trying to load "c:\onnxruntime_providers_cuda.dll"
onnxruntime-gpu==1.18.0, CUDA 12.4, Python version: 3.10.6

the headers are of the Python that is told | apt-get install python3.11-dev | another version
vllm 0.9.1, python 3.11
/tmp/tmpk3/cuda_utils.c:6:10: fatal error: Python.h: No such file or directory

the same release has the same wheel, or none | built for CUDA 11 | --force-reinstall
  File "/v/lib/python3.8/site-packages/torch_tensorrt/_C.py", line 1
ImportError: libcudart.so.10.2: cannot open shared object file: No such file or directory
torch==1.10.0+cu111
torch-tensorrt==1.0.0

Linux alone has Triton and NVIDIA's wheels | ComfyUI_windows_portable\python_embeded\python.exe | triton
Windows 11, D:\ComfyUI_windows_portable\ComfyUI\main.py, torch 2.1.2+cpu, RTX 3060
AssertionError: Torch not compiled with CUDA enabled

a wheel for another PyTorch is on the index, and its source too | --no-binary auto-gptq | placeholder
  File "/v/lib/python3.10/site-packages/auto_gptq/utils/exllama_utils.py", line 17, in exllama_set_max_input_length
ImportError: /v/lib/python3.10/site-packages/exllama_kernels.cpython-310.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
torch 2.3.0+cu121

what a program of Python pins goes with it | sglang==0.5.10 | --no-deps
sglang==0.5.5 torch==2.9.1 sgl-kernel==0.3.16.post5

no release admits this PyTorch, the newest neither | torch==2.6.0 | --upgrade
torch 2.7.0+cu128 with sgl-kernel 0.1.2, sglang 0.4.6

PyTorch's own pin, also for a part of cuDNN | nvidia-cudnn-cu11==8.5.0.96 | ==8.*
Could not load library libcudnn_cnn_infer.so.8
torch==1.13.1+cu117

the newest PyTorch is for a CUDA that the driver does not run | whl/cu12 | torch>=
ncclInternalError: Internal check failed. NCCL version 2.14.3
Failed to find reverse path
torch 2.0.1+cu118, NVIDIA H100 80GB HBM3, driver 535.104.05

the index does not have what rows pin for it | git+https://github.com/thu-ml/SageAttention.git | sageattention==
ImportError: /v/site-packages/sageattention/_qattn_sm80.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
torch 2.7.0+cu128

what to do differs by the program that the text names | vLLM: update it | GGUF
vllm==0.5.0
RuntimeError: FP8 is not supported on this GPU: it needs Ada or Hopper

Windows sets variables by another command | set TCNN_CUDA_ARCHITECTURES=70 | env TCNN
C:\Users\u\venv\Scripts\python.exe
OSError: Could not find compatible tinycudann extension for compute capability 70.

the newest is not for this PyTorch | bitsandbytes>=0.45.3,<0.46.0 | placeholder
CUDA SETUP: Required library version not found: libbitsandbytes_cuda118.so. Maybe you need to compile it from source?
bitsandbytes==0.39.0
torch==2.0.1+cu118

what stands first is the wrong major version of its interface | mmcv-full==1.3.0 | mmcv>=2
ModuleNotFoundError: No module named 'mmcv._ext'
torch==1.8.0+cu111
mmcv==1.3.0

older toolkits do not know the target | toolkit of 12.8 or newer | TORCH_CUDA_ARCH_LIST
nvcc fatal   : Unsupported gpu architecture 'compute_120'

a newer toolkit does not compile for it either | toolkit 11.8, the last | or newer
nvcc fatal   : Unsupported gpu architecture 'compute_35'

the GPU is not the one that the toolkit has dropped | alone: 8.9 | nvidia-smi
nvcc fatal   : Unsupported gpu architecture 'compute_70'
NVIDIA GeForce RTX 4090, torch==2.9.1+cu130

no toolkit compiles for both GPUs | Install the CUDA toolkit beside any other | CUDA toolkit 12.4
nvcc fatal   : Unsupported gpu architecture 'compute_120'
torch==2.6.0+cu124
GPU 0: Tesla K80
GPU 1: NVIDIA GeForce RTX 5090

the library that is missing is not one that it has | pip show -f bitsandbytes | BNB_CUDA_VERSION=128
RuntimeError: Configured CUDA binary not found at /v/bitsandbytes/libbitsandbytes_cuda128.so

no release of TensorFlow has the code | nvcr.io/nvidia/tensorflow:25.02-tf2-py3 | Install a release of TensorFlow
TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0.
tf_gpu_runtime_wrappers.cc:40] 'cuModuleLoadData(&module, data)' failed with 'CUDA_ERROR_INVALID_PTX'

the kernel's release tells the distribution | apt-get install linux-headers-6.8.0-48-generic | datacenter/tesla
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.
$ uname -r
6.8.0-48-generic
$ ls /lib/modules/*/updates/dkms
/lib/modules/6.8.0-45-generic/updates/dkms:
nvidia.ko

another program sets the variable again | num_gpus=1 | env -u
RayTaskError(RuntimeError)                Traceback (most recent call last)
RuntimeError: No CUDA GPUs are available, CUDA_VISIBLE_DEVICES=
"""
"""Why a fix would not work, what is printed and what is not; and the text."""


@every(FOLLOWED.strip().split("\n\n"))
def test_a_fix_that_would_not_work_is_not_printed(case: str) -> None:
    head, _, text = case.partition("\n")
    _, printed, left_out = head.split(" | ")
    fixes = [fix for check in explained(text).checks for fix in check.fixes]
    written = "\n".join(f"{fix.text} {' '.join(fix.command)} {fix.risk}" for fix in fixes)
    assert printed in written
    assert left_out not in written
