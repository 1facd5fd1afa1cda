"""Causes that a line names only beside another one, or by what it compares; and healthy texts that look alike."""

# ruff: noqa: E501  lines as programs print them, in other scripts too

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.checks import Fix
from tests.every import every
from tests.rules.messages.test_causes_from_statements import alarms, cause_in


@every(
    [
        "none [integrity] confidentiality\nmodprobe: ERROR: could not insert 'nvidia_drm': Operation not permitted",
        "Talos Linux, lockdown=confidentiality\nfailed to load module nvidia: operation not permitted",
        'Flatcar with secure boot\nfinit_module("nvidia.ko") = -1 EPERM (Operation not permitted)',
    ]
)
def test_a_kernel_that_admits_signed_modules_only(text: str) -> None:
    assert cause_in(text) == "secure-boot-blocks-module"


@every(
    [
        "modprobe: ERROR: could not insert 'nvidia': Operation not permitted",
        "[none] integrity confidentiality\nmodprobe: ERROR: could not insert 'nvidia': Operation not permitted",
    ]
)
def test_a_module_that_is_refused_for_another_reason(text: str) -> None:
    assert cause_in(text) == "driver-not-loaded"


@every(
    [
        ("You are using ptxas 9.1.121, which is older than 9.2.88", "jit-compiler-too-old"),
        ("You are using ptxas 11.0.194, which is older than 11.1", "jit-compiler-too-old"),
        ("You are using ptxas 10.0.145, which is older than 9.2.88", None),
        (
            "You are using ptxas 12.4.131, which is older than 11.1. ptxas before 11.1 is known to miscompile XLA code",
            None,
        ),
    ]
)
def test_releases_are_compared_as_numbers(line: str, expected: str | None) -> None:
    assert cause_in("tensorflow 1.14.0", line) == expected


def test_a_program_that_compiles_on_the_gpu_has_its_libraries() -> None:
    old = "You are using ptxas 10.1.243, which is older than 11.1"
    assert cause_in("TensorFlow version: 2.6.0", "CUDA Version: 11.1", old) == "jit-compiler-too-old"


@every(
    [
        ("jaxlib 0.4.13+cuda11.cudnn86, CUDA toolkit 11.8, NVIDIA driver version 470.199.02", "driver-too-old"),
        ("jax 0.3.25\nCuda compilation tools, release 11.7, V11.7.99\nDriver Version: 470.161.03", "driver-too-old"),
        ("jax 0.4.30, driver 550.54.15, CUDA 12.3", "gpu-code-missing"),
        ("torch 2.0.1+cu117, driver 550.54.15, CUDA 12.3", "gpu-code-missing"),
    ]
)
def test_code_that_jax_compiled_with_a_newer_toolkit_than_the_driver(facts: str, expected: str) -> None:
    line = "RuntimeError: UNKNOWN: no kernel image is available for execution on the device"
    assert cause_in(facts, line) == expected


@every(
    [
        ("cuDNN: 9.3.0\nonnxruntime-gpu 1.17 looks for libcudnn.so.8", "cudnn-major-mismatch"),
        ("tensorflow 2.15 expects libcudnn.so.8\nnvidia-cudnn-cu12==9.1.0.70", "cudnn-major-mismatch"),
        ("torch wants libcublas.so.11\nCUDA 12.4 is installed", "cuda-major-mismatch"),
        ("torch needs libcudnn.so.8\ncuDNN: 8.9.2", None),
        ("torch wants libcublas.so.12\nCUDA 12.4 is installed", None),
        ("paddlepaddle-gpu 2.6 requires libcudnn.so.8\ntorch.cuda.is_available() True", None),
    ]
)
def test_a_library_that_a_sentence_says_is_wanted(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        ("libcuda.so lies in /usr/lib/wsl/lib; ldconfig -p lists only libcuda.so.1", "library-not-found"),
        ("\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1", "library-not-found"),
        (">>> from cuda import cuda", "driver-not-installed"),
    ]
)
def test_the_link_to_libcuda_that_a_program_looks_for(text: str, expected: str) -> None:
    assert cause_in(text, "RuntimeError: Failed to dlopen libcuda.so") == expected


@every(
    [
        (("torch==2.1.0a0+41361538.nv23.06", "OSError: unable to load torchaudio"), "torch-family-mismatch"),
        (("PyTorch version: 2.3.0a0+6ddf5cf85e.nv24.04", "cannot import torchvision"), "torch-family-mismatch"),
        (("torch==2.1.0a0+41361538.nv23.06", "torchaudio==2.1.0", "Is CUDA available: True"), None),
        (("torch==2.5.0a0+872d972e41.nv24.08", "I cannot load my data with torchvision.datasets"), None),
        (("I compiled torch v1.13.1 from source", "_ext undefined symbol"), "extension-built-for-other-torch"),
        (("source-built pytorch 1.12", "undefined symbol in detectron2"), "extension-built-for-other-torch"),
        (("I compiled torch v2.3.0 from source", "torch.cuda.is_available() True"), None),
    ]
)
def test_a_wheel_beside_another_build_of_torch(lines: tuple[str, ...], expected: str | None) -> None:
    assert cause_in(*lines) == expected


@every(
    [
        "GTX 1650\nPyTorch wheel 2.9.1+cpu has been installed",
        "NVIDIA RTX A2000\nuv resolved the torch wheel 2.7.1+cpu although I asked for cu128",
        "torch 2.7.1+cpu | cuda available: False | device count: 0",
        "a PC with a CUDA GPU\ntorch version 2.8.0+cpu, CUDA available: False",
        "Jetson Orin NX\npip install sentence-transformers\ntorch.cuda.is_available() -> False\nsolved by: pip install torch-2.5.0a0+872d972e41.nv24.08-cp310-cp310-linux_aarch64.whl, True now",
        "Jetson Nano\n>>> torch.cuda.is_available()\nFalse\nafter pip install torch-1.10.0-cp36-cp36m-linux_aarch64.whl: True",
        "Jetson Orin: torch 2.3.1 (from pip), is_available() returns False",
        "After pip install torch==2.3.0+cpu it works, but torch.cuda.is_available() is False. GPU: RTX 3060",
    ]
)
def test_a_build_for_the_cpu_that_is_told(text: str) -> None:
    assert cause_in(text) == "cpu-only-build"


@every(
    [
        "PyTorch wheel 2.9.1+cpu has been removed, PyTorch wheel 2.9.1+cu128 has been installed\nGTX 1650\ntorch.cuda.is_available() True",
        "CI runner without a GPU: torch 2.3.0+cpu | cuda available: False | device count: 0",
        "torch 2.6.0+cu124 | cuda available: True | device count: 1",
        "Jetson AGX Orin, JetPack 6\npip install torch-2.3.0-cp310-cp310-linux_aarch64.whl\n>>> torch.cuda.is_available()\nTrue",
        "dumpbin /dependents cudnn_cnn_infer64_8.dll lists zlibwapi.dll\nRTX 3060, torch.cuda.is_available() True",
        "  NVIDIA information:\n    CUDA Version: 12.6\n    NVRM Version: 560.35.03",
        "nvidia-smi shows all 4 of 4 A100, driver 550.54.15",
        "Our lab has lost a GPU grant.\ndriver 550.54.15, torch.cuda.is_available() True",
        "kernel lockdown = integrity\nDriver Version: 570.86.15",
        "One of our two RTX 3090 is not listed by nvidia-smi any more since I sold it\nDriver Version: 550.54.15",
        "modprobe nvidia: Operation not permitted inside the container, but nvidia-smi works\nDriver Version: 550.54.15",
        "I built torch 2.3 from source; earlier builds had an undefined symbol in _C, now fixed\ntorch.cuda.is_available() True",
        "A machine with an NVIDIA GPU is optional; torch 2.3.0+cpu is used in CI",
    ]
)
def test_what_looks_alike_and_is_no_fault(text: str) -> None:
    assert alarms(text) == []


def fixes_in(rule: str, *lines: str) -> list[Fix]:
    _, checks = judge("\n".join(lines))
    return [fix for check in checks if check.rule == rule for fix in check.fixes]


def test_no_index_is_named_for_a_build_that_is_not_from_it() -> None:
    jetson = ("torch==1.12.0a0+2c916ef.nv22.3", "torchaudio==0.12.0", "OSError: unable to load torchaudio")
    assert [fix.command for fix in fixes_in("torch-family-mismatch", *jetson)] == [()]
    (fix,) = fixes_in("cpu-only-build", "Jetson Orin: torch 2.3.1 from pip, torch.cuda.is_available() returns False")
    assert "JetPack" in fix.text
    assert not fix.command


@every(
    [
        ("Windows 10, onnxruntime-gpu 1.15.1", "PATH"),
        ("Ubuntu 22.04, onnxruntime-gpu 1.15.1", "apt-file"),
    ]
)
def test_where_a_system_library_comes_from(system: str, word: str) -> None:
    line = "Could not locate zlibwapi.dll. Please make sure it is in your library path!"
    assert [word in fix.text for fix in fixes_in("system-library-missing", system, line)] == [True]
