"""Error lines about libraries, packages and platforms: what they name beside what else a text tells."""

from __future__ import annotations

import time

import pytest

from envcheck.compat.error_lines import named_beside, named_by
from envcheck.compat.load import load_matrix
from envcheck.enrich.complete import complete
from envcheck.importers import read_text
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate
from envcheck.snapshot import ObservedError, Snapshot
from tests.every import cases, every
from tests.rules.machines import ALL, check_of
from tests.rules.messages.examples import by_problem

OLD_CUBLAS = "Found cuBLAS version 120205, but JAX was built against version 120304, which is newer"
MISSING = "cannot open shared object file: No such file or directory"


def cause_in(text: str) -> str | None:
    """The root cause in a pasted text."""
    knowledge = load_matrix()
    found = primary(evaluate(complete(read_text(text), knowledge), knowledge, all_rules(), ALL))
    return found.rule if found else None


NVRTC = {
    **dict.fromkeys(("11.0", "11.1.1", "10.2", "12.4"), "cuda-major-mismatch"),
    **dict.fromkeys(("11.2", "11.5.1", "11.8"), "cuda-library-missing"),
}
"""Which CUDA has ``libnvrtc.so.11.2``: that very release and all later ones of CUDA 11."""


@every(
    (f"ImportError: libcublas.so.12: {MISSING}", "cuda-library-missing"),
    (f"CUDA 12.4\nImportError: libcublas.so.12: {MISSING}", "cuda-library-missing"),
    (f"cuda 13.0\nImportError: libcublas.so.12: {MISSING}", "cuda-major-mismatch"),
    (f"nvidia-cublas-cu11==11.10.3.66\nImportError: libcublas.so.12: {MISSING}", "cuda-major-mismatch"),
    (
        f"Cuda compilation tools, release 12.1, V12.1.66\nImportError: libcublasLt.so.11: {MISSING}",
        "cuda-major-mismatch",
    ),
    (f"cuda 11.5\nImportError: libnvrtc.so.11.1: {MISSING}", "cuda-major-mismatch"),
    *((f"cuda {there}\nImportError: libnvrtc.so.11.2: {MISSING}", said) for there, said in NVRTC.items()),
    (f"cuda 11.8\nImportError: libnvrtc-builtins.so.11.8: {MISSING}", "cuda-library-missing"),
    (f"cuda 11.8\nImportError: libnvrtc-builtins.so.11.2: {MISSING}", "cuda-major-mismatch"),
    ("cuda 11.4\nnvrtc: error: failed to open libnvrtc-builtins.so.11.3.", "library-not-found"),
    (f"cuda 11.8\nImportError: libcudart.so.11.0: {MISSING}", "cuda-library-missing"),
    (f"cuda 10.2\nImportError: libcudart.so.10.1: {MISSING}", "cuda-major-mismatch"),
    (f"/opt/cuda/lib64/libcublas.so.12.1.3\nImportError: libcublas.so.12: {MISSING}", "library-not-found"),
    (f"ImportError: libcudnn.so.9: {MISSING}", "cudnn-missing"),
    (f"cudnn 8.9.7\nImportError: libcudnn.so.9: {MISSING}", "cudnn-major-mismatch"),
    (f"/usr/lib/libcudnn.so.8.9.7\nImportError: libcudnn.so.9: {MISSING}", "cudnn-major-mismatch"),
    (
        f"/v/site-packages/nvidia/cudnn/lib/libcudnn_ops.so.9\nCould not load libcudnn_ops.so.9: {MISSING}",
        "library-not-found",
    ),
    (f"ImportError: libnccl.so.2: {MISSING}", "nccl-missing"),
    (f"Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: {MISSING}", "cuda-library-missing"),
    ("undefined symbol: ncclMemFree", "nccl-version-mismatch"),
    ("nvidia-nccl-cu11==2.14.3\nnvidia-nccl-cu12==2.27.3\nundefined symbol: ncclMemFree", "nvidia-wheel-conflict"),
    ("Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.", "cudnn-too-old"),
    (
        "CUDA 11.2, cuDNN 8.1 installed\nLoaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.",
        "library-shadowed",
    ),
    (f"nvidia-cublas-cu12==12.4\n{OLD_CUBLAS}", "library-shadowed"),
    (
        "file=/opt/hpc_sdk/cuda/12.4/lib64/libnvJitLink.so.12\nRuntimeError: The cuSPARSE library was not found.",
        "nvjitlink-mismatch",
    ),
)
def test_what_else_is_told_says_why_a_library_is_missing(text: str, expected: str) -> None:
    assert cause_in(text) == expected


@cases(
    "file, version",
    ("libcudart.so.11.0", None),
    ("libcudart-d0da41ae.so.11.0", None),
    ("libnvrtc-672ee683.so.11.2", None),
    ("libcupti.so.2022.3.0", None),
    ("libcudnn.so.8.9.7", "8.9.7"),
    ("libcublas-3b81d170.so.11.10.3.66", "11.10.3.66"),
)
def test_only_a_full_number_in_a_pasted_path_is_a_release(file: str, version: str | None) -> None:
    found = read_text(f"/opt/lib/{file}").libraries
    assert found is not None
    assert [library.on_disk for library in found.items] == [version]


# --- packages ---

PACKAGES = {
    "torch-family-mismatch",
    "extension-built-for-other-torch",
    "extension-binary-missing",
    "cupy-multiple-packages",
    "jax-plugin-mismatch",
    "numpy-abi-mismatch",
    "glibc-too-old",
    "libstdcxx-too-old",
    "gpu-feature-unsupported",
}
SHARED = [
    "torchvision 0.20.0 requires torch==2.5.0, but you have torch 2.5.1 which is incompatible.",
    "xformers 0.0.28.post3 requires torch==2.5.1, but you have torch 2.5.0 which is incompatible.",
    "torchmetrics 1.0 requires torch==2.5.1, but you have torch 2.4.0 which is incompatible.",
    "Your device 'Tesla T4' (with compute capability 7.5) doesn't support torch.bfloat16. Falling back",
    "Cannot use FlashAttention-2 backend for Volta and Turing GPUs.",
    "INFO: bfloat16 is not supported on this GPU, using float16 instead",
    "this CPU does not support bf16",
    "torchvision/image.so: failed to load image Python extension",
    "AttributeError: module 'numpy' has no attribute 'my_own_function'",
    "AttributeError: partially initialized module 'numpy' has no attribute 'array' (circular import)",
    "ImportError: /v/torch/lib/libtorch_python.so: undefined symbol: _ZN2at4_ops5empty4callE",
    "ModuleNotFoundError: No module named 'flash_attn'",
    "jax 0.4.30, jaxlib 0.4.30",
    "undefined symbol: PyUnicode_AsUTF8",
]
"""What other problems print too, or what is a remark."""


@every(SHARED)
def test_what_others_print_too_names_nothing(line: str) -> None:
    found = named_beside(line, (line,))
    assert found is None or found.problem not in PACKAGES


def test_a_long_line_does_not_hang() -> None:
    started = time.process_time()
    for text in (
        "requires torch==2.5 but you have " * 400,
        "bf16 requires " * 900,
        "undefined symbol: " * 900,
        "fp8 " * 900,
    ):
        named_by(text)
    # Patterns that back-track over it take minutes.
    assert time.process_time() - started < 20


PASTES = {
    "torch==2.14.0+cu126\ntorchvision==0.28.0+cu126\nRuntimeError: operator torchvision::nms does not exist": (
        "torch-family-mismatch"
    ),
    "torch==2.3.0\nflash-attn==2.5.7\nflash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi": (
        "extension-built-for-other-torch"
    ),
    "onnxruntime==1.16.1\nonnxruntime-gpu==1.16.1": "onnxruntime-cpu-and-gpu",
    "onnxruntime-gpu==1.23.2\nUserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider "
    "names.Available providers: 'AzureExecutionProvider, CPUExecutionProvider'": "onnxruntime-cpu-and-gpu",
    "cupy-cuda11x==13.3.0\ncupy-cuda12x==13.3.0": "cupy-multiple-packages",
    "jax==0.9.0.1\njaxlib==0.9.0.1\njax-cuda12-plugin==0.9.2": "jax-plugin-mismatch",
    "tensorflow==2.15.0\nnumpy==2.0.1": "numpy-abi-mismatch",
    "flash-attn==2.6.0.post1\nGPU: Tesla V100": "gpu-feature-unsupported",
}


@every(PASTES)
def test_what_a_list_of_packages_tells(text: str) -> None:
    assert cause_in(text) == PASTES[text]


@cases(
    "text",
    "torch==2.5.1\ntorchvision==0.20.1\ntorchaudio==2.5.1\nnumpy==2.1.2\ntriton==3.1.0",
    "jax==0.9.2\njaxlib==0.9.2\njax-cuda12-plugin==0.9.2\njax-cuda12-pjrt==0.9.2\nnumpy==2.1.2",
    "onnxruntime-gpu==1.23.2\nnumpy==2.1.2",
    "cupy-cuda12x==13.3.0\nnumpy==2.1.2",
    "flash-attn==2.6.3\nGPU: A100\ntorch==2.4.0",
    "tensorflow==2.15.0\nnumpy==1.26.4",
)
def test_a_sound_list_has_no_cause(text: str) -> None:
    assert cause_in(text) is None


# --- platforms ---


def test_a_graver_line_of_a_problem_outranks_a_remark_about_it() -> None:
    remark, fault = by_problem()["shared-memory-too-small"][-1], by_problem()["shared-memory-too-small"][0]
    both = tuple(ObservedError(source="pasted text", text=text, line=1) for text in (remark, fault))
    assert check_of("shared-memory-too-small", Snapshot(observed_errors=both[:1])).status == "note"
    found = check_of("shared-memory-too-small", Snapshot(observed_errors=both))
    assert (found.status, len(found.evidence)) == ("fail", 2)


ALONE_ONLY_A_SETTING = "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"
TEXTS = {
    "container-toolkit-missing": (
        "If this is a GPU node, did you configure the NVIDIA Container Toolkit?\n"
        "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
    ),
    "driver-libraries-in-image": (
        "$ docker run --gpus all mine\n"
        "nvidia-container-cli: mount error: file creation failed: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file exists"
    ),
    "wsl-libcuda-shadowed": (
        "Windows 11, WSL2 Ubuntu 22.04\n"
        "\tlibcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1\n"
        "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/wsl/lib/libcuda.so.1\n"
        "RuntimeError: No CUDA GPUs are available"
    ),
    "windows-gpu-unsupported": (
        "OS: Windows 10 x64\nTensorFlow version: 2.15.0\nGPU: NVIDIA GeForce RTX 3070\nNum GPUs Available:  0"
    ),
    "jetpack-mismatch": (
        "Jetson Nano (JetPack 4.6.1, L4T 32.7.1)\ndocker run dustynv/ros:humble-pytorch-l4t-r35.2.1\n"
        "RuntimeError: the NVIDIA driver on your system is too old"
    ),
    "jetson-libraries-not-mounted": (
        "host: Jetson TX2, L4T 32.4.3\nimage: nvcr.io/nvidia/l4t-pytorch:r32.4.3-pth1.6-py3\n"
        "ImportError: libcublas.so.10: cannot open shared object file: No such file or directory"
    ),
    "shared-memory-too-small": (
        "Bus error (core dumped)\nFilesystem      Size  Used Avail Use% Mounted on\n"
        "shm              64M   64M     0 100% /dev/shm"
    ),
    "mig-enumeration": (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaaaaaa-0000-0000-0000-000000000000)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-aaaaaaaa-0000-0000-0000-000000000001)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-aaaaaaaa-0000-0000-0000-000000000002)\n"
        "RuntimeError: CUDA error: invalid device ordinal"
    ),
    "peer-access-blocked": f"nccl-tests hang on two GPUs\n# lspci -vvv\n\t{ALONE_ONLY_A_SETTING}",
    "known-bad-release": (
        "Windows build number: 21337.1000\nUbuntu 18.04 in WSL2\n"
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    ),
}


@every(TEXTS)
def test_the_cause_in_a_pasted_text(problem: str) -> None:
    assert cause_in(TEXTS[problem]) == problem


SOUND = {
    "a Jetson that works": "Jetson AGX Orin, JetPack 6.1 (L4T 36.4.0)\ntorch 2.5.0\ntorch.cuda.is_available() True",
    "the last TensorFlow for Windows": "tensorflow 2.10.0\nWindows 11\nGPU: RTX 3060\nNum GPUs Available: 1",
    "TensorFlow inside WSL": "tensorflow 2.16.1\nWindows 11 WSL2\nGPU: RTX 3060",
    "lspci of one machine": f"00:01.0 PCI bridge: Intel\n\t{ALONE_ONLY_A_SETTING}",
    "a container with enough": "shm              8.0G   0     8.0G     0% /dev/shm\ntorch 2.5.1+cu124",
    "libcuda of a Linux machine": "libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1",
}


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_the_cause_where_nothing_is_wrong(name: str) -> None:
    assert cause_in(SOUND[name]) is None
