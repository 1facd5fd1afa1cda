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


@every([("Windows 10, onnxruntime-gpu 1.15.1", "PATH"), ("Ubuntu 22.04, onnxruntime-gpu 1.15.1", "apt-file")])
def test_where_a_system_library_comes_from(system: str, word: str) -> None:
    line = "Could not locate zlibwapi.dll. Please make sure it is in your library path!"
    assert [word in fix.text for fix in fixes_in("system-library-missing", system, line)] == [True]


@every(
    [
        "2x RTX 5080\nNCCL WARN cudaArch 1200 ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856",
        "nvidia-nccl-cu12==2.25.1\nRTX 5090\nCuda failure 1 'invalid argument'",
        "torch 1.8.0 with CUDA 10.2, RTX 2080 Ti\nRuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    ]
)
def test_a_release_that_fails_on_these_gpus(text: str) -> None:
    assert cause_in(text) == "known-bad-release"


@every(
    [
        (
            "Loaded runtime CuDNN library: 6021 (compatibility version 6000) but source was compiled with 7003 (compatibility version 7000).",
            "cuDNN: 6.0.21",
            "cudnn-too-old",
        ),
        (
            "Loaded runtime CuDNN library: 7102 (compatibility version 7100) but source was compiled with 7401 (compatibility version 7400)",
            "cuDNN: 7.1.2",
            "cudnn-too-old",
        ),
        (
            "Loaded runtime CuDNN library: 5005 (compatibility version 5000) but source was compiled with 5105 (compatibility version 5100).",
            "cuDNN: 5.1.10",
            "library-shadowed",
        ),
        (
            "Loaded runtime CuDNN library: 8.1.0 but source was compiled with: 8.6.0.",
            "cuDNN: 8.9.2",
            "library-shadowed",
        ),
    ]
)
def test_the_cudnn_that_tensorflow_was_compiled_with(line: str, stated: str, expected: str) -> None:
    assert cause_in(stated, line) == expected


@every(
    [
        "onnxruntime 1.14.1, Python 3.10, CUDA 12.2\nFailed to create CUDAExecutionProvider.",
        "onnxruntime 1.16.3\nExecution Provider Library Version: CUDA12.1\n[W:onnxruntime:Default] Failed to create CUDAExecutionProvider",
    ]
)
def test_a_package_that_tries_its_cuda_provider_is_the_one_for_gpus(text: str) -> None:
    assert cause_in(text) == "cuda-major-mismatch"


@every(
    [
        ("RTX 5070, driver 575.57.08, closed-source kernel modules", "gpu-unsupported-by-driver"),
        ("RTX 5090, driver 570.133.07, the kernel modules are proprietary", "gpu-unsupported-by-driver"),
        ("GTX 1080, driver 570.133.07, open kernel modules", "gpu-unsupported-by-driver"),
        (
            "DGX Spark (GB10), driver 580.95.05, proprietary kernel modules\nNVRM: Xid (PCI:000f:01:00): 169, fd8cd000 94000000",
            "gpu-unsupported-by-driver",
        ),
        ("RTX 4090, driver 570.133.07, proprietary kernel modules", "gpu-init-failed"),
        ("RTX 5090, driver 570.133.07, not the proprietary kernel modules", "gpu-init-failed"),
        ("RTX 5090, driver 570.133.07, proprietary driver", "gpu-init-failed"),
    ]
)
def test_the_type_of_the_kernel_module_that_is_told(facts: str, expected: str) -> None:
    assert cause_in(facts, "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x1a:2631)") == expected


@every(
    [
        ("driver 470.57.02", "release 11.8, V11.8.89", "driver-too-old"),
        ("driver 450.80.02", "release 11.4, V11.4.48", "driver-too-old"),
        ("driver 535.54.03", "release 12.2, V12.2.140", "gpu-code-missing"),
    ]
)
def test_flags_of_xla_tell_that_it_compiles_with_the_toolkit(driver: str, nvcc: str, expected: str) -> None:
    flags = "XLA_FLAGS=--xla_gpu_force_compilation_parallelism=4"
    line = "No kernel image is available for execution on the device"
    assert cause_in(driver, f"Cuda compilation tools, {nvcc}", flags, line) == expected


@every(
    [
        ("jaxlib 0.4.1 on a server with an NVIDIA GPU", "cpu-only-build"),
        ("jaxlib 0.3.10, GPU instance at AWS", "cpu-only-build"),
        ("jaxlib 0.3.10, on my laptop without a GPU", None),
        ("CI on a non-GPU machine, jaxlib 0.3.10", None),
    ]
)
def test_a_machine_with_a_gpu_of_no_name(facts: str, expected: str | None) -> None:
    assert cause_in(facts, "WARNING:absl:No GPU/TPU found, falling back to CPU.") == expected


@every(
    [
        "No platform detected, vLLM is running on UnspecifiedPlatform\nIs CUDA available : True\nPyTorch version: 2.8.0+cu128",
        "GKE\nRuntimeError: Failed to infer device type\nthe driver is mounted at /usr/local/nvidia/lib64",
        "libnvidia-ml.so.1 not found; the host driver is mounted at /usr/local/nvidia/lib64",
        "GKE, L4: nvidia-smi: command not found, but /usr/local/nvidia/bin/nvidia-smi exists",
        "/usr/local/nvidia/lib64/libcuda.so.1 is present\n>>> torch.cuda.is_available()\nFalse\nRuntimeError: Device string must not be empty",
    ]
)
def test_a_driver_outside_the_folders_of_the_loader(text: str) -> None:
    assert cause_in(text) == "library-not-found"


@every(
    [
        ("x.to('cuda:1') is all zeros, x.cpu().to('cuda:1') is right", "peer-access-blocked"),
        (
            ">>> x.to(1)\ntensor([2.8026e-45, 0.0000e+00], device='cuda:1')\n>>> x.to('cpu').to(1)\ntensor([2., 4.], device='cuda:1')",
            "peer-access-blocked",
        ),
        ("moving weights from one GPU to the other yields garbage", "peer-access-blocked"),
        ("2x 3090 on Threadripper\nnccl-tests: all_gather_perf -g 2 hangs forever", "peer-access-blocked"),
        ("b = torch.zeros(3).to('cpu').to('cuda:1')\ntensor([0., 0., 0.], device='cuda:1')", None),
        ("pipeline from GPU 0 to GPU 1 works, the loss is NaN because of fp16", None),
        ("rccl-tests: all_reduce_perf hangs on MI250X, AMD", None),
    ]
)
def test_copies_between_gpus_that_do_not_arrive(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        "torch.compile with dynamic shapes fails with an internal error\ntorch 2.6.0+cu124\nCuda compilation tools, release 11.8, V11.8.89\nCUDA available: True",
        "model.compile throws an error in keras\ntorch 2.6.0+cu124\nCuda compilation tools, release 11.8, V11.8.89\nCUDA available: True",
        "nvidia-nccl-cu12==2.27.5\nnvidia-nccl-cu13==2.28.9\ntorch==2.10.0\nKeyError: 'weights'",
        "NVIDIA docker ignores the GPU limit of 2\nDriver Version: 550.54.15",
        "LD_LIBRARY_PATH names cuDNN 8; torch still uses its own cudnn\ntorch.cuda.is_available() True",
        "nvidia-nccl-cu12==2.25.1\nNVIDIA H100 80GB HBM3",
        "PyTorch version: 1.8.0\nCUDA used to build PyTorch: 10.2\nGPU 0: Tesla V100-SXM2-16GB\nIs CUDA available: True",
        "Driver Version: 535.161.08   CUDA Version: 12.2\nCuda compilation tools, release 12.4, V12.4.131\nCUDA driver version does not match CUDA runtime version",
        "tensorflow==2.15.0\ntensorflow runs only on the CPU in CI, as there is no GPU",
        "flash attention: code not compiled for sm_75, skipping\nTesla T4, torch.cuda.is_available() True",
        "libcuda.so.1 found in /usr/local/nvidia/lib64\nLD_LIBRARY_PATH=/usr/local/nvidia/lib64\ntorch.cuda.is_available() True",
        "vllm 0.9.1\nNo platform detected, vLLM is running on UnspecifiedPlatform\nROCM used to build PyTorch : 6.2\nIs CUDA available : True",
        "CUDA 11.8 and 12.4 both in PATH\ntorch.cuda.is_available() True",
        "kernel 6.8, open kernel modules\nRTX 4090, Driver Version: 570.133.07",
    ]
)
def test_texts_that_look_like_these_and_are_healthy(text: str) -> None:
    assert alarms(text) == []


def test_wheels_over_each_other_matter_where_the_library_fails() -> None:
    listed = ("nvidia-nccl-cu12==2.27.5", "nvidia-nccl-cu13==2.28.9", "torch==2.10.0")
    assert alarms(*listed, "undefined symbol: ncclCommResume") == ["nvidia-wheel-conflict"]
    assert "nvidia-wheel-conflict" in alarms(*listed, "training hangs at the first step")


@every(
    [
        "two versions of CUDA on LD_LIBRARY_PATH\nJitifyException: Runtime compilation failed",
        "system-wide CUDA 10.2 and a local CUDA 11.6, both in PATH\nJitifyError: Runtime compilation failed",
        "LD_LIBRARY_PATH has cudnn 8.9 first; tensorflow still loads the system's cudnn 8.1",
        "although LD_LIBRARY_PATH names CUDA 11.8, cupy still uses CUDA 10.2",
    ]
)
def test_the_library_of_another_release_that_is_taken(text: str) -> None:
    assert cause_in(text) == "library-shadowed"


@every(
    [
        "File site-packages/jax_plugins/xla_cuda13/__init__.py, line 20\nImportError: cannot import name 'xla_client' from 'jax._src.lib'",
        "Jax plugin configuration error: Exception when calling jax_plugins.xla_cuda12.initialize()\nImportError: cannot import name 'mlir' from 'jaxlib'",
    ]
)
def test_a_plugin_of_another_release_of_jax(text: str) -> None:
    assert cause_in(text) == "jax-plugin-mismatch"


def test_another_package_that_is_behind_jax() -> None:
    assert cause_in("from flax import linen", "ImportError: cannot import name 'core' from 'jax._src'") is None
