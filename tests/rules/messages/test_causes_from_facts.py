"""Causes that follow from what a text states together: a line, a version, a platform, another program's answer."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

import pytest

from benchmarks.accuracy import judge
from envcheck.rules.engine.cause import primary
from tests.every import every


def cause_in(*lines: str) -> str | None:
    _, checks = judge("\n".join(lines))
    found = primary(checks)
    return found.rule if found else None


NO_LIBCUDA = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
SMI = "| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |"
NO_NVML = "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory"
OLD_CUBLAS = "libcublasLt.so.11: cannot open shared object file: No such file or directory"


@every(
    [
        ((NO_LIBCUDA,), "driver-not-installed"),
        ((NO_LIBCUDA, "I am running Ubuntu 22.04 in WSL2"), "wsl-libcuda-shadowed"),
        (("Found no NVIDIA driver on your system", "Trying this from WSL"), "wsl-libcuda-shadowed"),
        ((NO_LIBCUDA, "It works in WSL, but not on this server"), "driver-not-installed"),
        ((NO_LIBCUDA, SMI), "library-not-found"),
        ((NO_NVML,), "driver-not-installed"),
        ((NO_NVML, SMI), "container-toolkit-missing"),
    ]
)
def test_where_a_driver_is_not_found_decides_what_is_wrong(lines: tuple[str, ...], expected: str) -> None:
    assert cause_in(*lines) == expected


@every(
    [
        (("onnxruntime-gpu 1.16.3", OLD_CUBLAS, "cuda 12.2"), "cuda-major-mismatch"),
        (("onnxruntime-gpu 1.16.3", OLD_CUBLAS), "cuda-library-missing"),
        (
            ("tensorflow 2.11.0", "libcudart.so.11.0: cannot open shared object file", "CUDA 12.3"),
            "cuda-major-mismatch",
        ),
    ]
)
def test_what_a_release_looks_for_is_no_sign_that_it_is_there(lines: tuple[str, ...], expected: str) -> None:
    assert cause_in(*lines) == expected


def test_a_package_that_tries_its_cuda_provider_was_not_overwritten() -> None:
    both = ("onnxruntime==1.17.1", "onnxruntime-gpu==1.17.1", "CUDA 12.2")
    failed = f"Failed to load library libonnxruntime_providers_cuda.so with error: {OLD_CUBLAS}"
    assert cause_in(*both, failed) == "cuda-major-mismatch"
    assert cause_in(*both) == "onnxruntime-cpu-and-gpu"


LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023"


@pytest.mark.parametrize(
    "listed",
    [
        "ii  libnvidia-compute-535:amd64  535.154.05-0ubuntu0.22.04.1  amd64  NVIDIA libcompute package",
        "Upgrade: nvidia-utils-535:amd64 (535.129.03-0ubuntu1, 535.154.05-0ubuntu1)",
        "now `nvidia-driver-535:amd64 535.154.05-0ubuntu0.22.04.1` is installed",
        "nvidia-driver-libs-535.154.05-1.el9.x86_64",
        "local/nvidia-utils 535.154.05-1",
        "ii  nvidia-smi     535.154.05-1  amd64        NVIDIA System Management Interface",
    ],
)
def test_packages_of_another_release_than_the_loaded_module_differ_from_it(listed: str) -> None:
    assert cause_in(LOADED, listed) == "driver-library-mismatch"
    assert cause_in(LOADED, listed.replace("535.154.05", "535.129.03")) is None
    assert cause_in(SMI.replace("550.90.07", "535.129.03"), LOADED, listed) is None


JETSON = ("Hardware: NVIDIA Jetson AGX Orin", "L4T Release: R35.4.1", ">>> torch.__version__")


def test_a_plain_version_that_finds_no_cuda_on_a_jetson_is_for_the_cpu() -> None:
    refused = (">>> torch.cuda.is_available()", "False")
    assert cause_in(*JETSON, "'2.3.0'", *refused) == "cpu-only-build"
    assert cause_in(*JETSON, "'2.1.0a0+41361538.nv23.06'", *refused) != "cpu-only-build"
    assert cause_in(*JETSON, "'2.3.0'", ">>> torch.cuda.is_available()", "True") is None


def test_a_plain_wheel_on_linux_is_that_of_the_index() -> None:
    old = ("pip install torch===1.3.0 -f https://download.pytorch.org/whl/torch_stable.html", "Ubuntu 18.04")
    assert cause_in(*old, SMI.replace("550.90.07", "410.48").replace("12.4", "10.0")) == "driver-too-old"
    assert cause_in(*old, SMI) is None


def test_an_unscheduled_pod_is_not_told_to_start_docker() -> None:
    _, checks = judge("Warning  FailedScheduling  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    found = primary(checks)
    assert found is not None
    assert found.rule == "scheduler-lacks-gpu"
    assert "docker" not in " ".join(fix.text for fix in found.fixes)
    assert any(fix.command[:2] == ("kubectl", "describe") for fix in found.fixes)


def test_paddle_tells_the_cuda_of_the_driver_and_of_its_build() -> None:
    line = "Please NOTE: device: 0, GPU Compute Capability: 8.6, Driver API Version: 10.2, Runtime API Version: 11.2"
    assert cause_in(f"W0101 10:00:00.1 1 gpu_resources.cc:61] {line}") == "driver-too-old"


@every(
    [
        ("I have `CUDA=12.4` and `cuDNN=9`. What do you want to know?", "cudnn-major-mismatch"),
        ("I use it with cuDNN 9. The wheel needs another.", "cudnn-major-mismatch"),
        ("", "cudnn-missing"),
    ]
)
def test_a_bare_major_of_cudnn_in_a_sentence_counts(said: str, expected: str) -> None:
    missing = "Could not load library libcudnn_ops_infer.so.8: cannot open shared object file"
    assert cause_in(missing, said) == expected


def test_a_warning_of_a_rule_fails_where_a_program_failed_of_it() -> None:
    listed = ("torch==2.9.0", "sglang==0.4.9.post2")
    _, before = judge("\n".join(listed))
    _, after = judge("\n".join((*listed, "sgl_kernel/common_ops.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa")))
    statuses = [{check.rule: check.status for check in checks} for checks in (before, after)]
    assert statuses[0]["extension-built-for-other-torch"] == "warn"
    assert statuses[1]["extension-built-for-other-torch"] == "fail"


ORT_ASKS = "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest MSVC runtime."


@every(
    [
        ("CUDA toolkit 11.8, cuDNN 9.1", "cuda-major-mismatch"),
        ("CUDA toolkit 12.4, cuDNN 8.9", "cudnn-major-mismatch"),
        ("CUDA toolkit 11.8, cuDNN 8.9", "cuda-major-mismatch"),
        ("CUDA toolkit 12.4, cuDNN 9.1", "library-not-found"),
        ("", "library-not-found"),
    ]
)
def test_what_onnx_runtime_requires_is_held_against_what_is_there(stated: str, expected: str) -> None:
    assert cause_in(ORT_ASKS, stated) == expected


def test_a_stated_version_that_does_not_fit_explains_a_library_that_is_not_named() -> None:
    failed = "Failed to create CUDAExecutionProvider. Please reference the requirements page"
    assert cause_in(failed, "onnxruntime-gpu==1.16.3", "CUDA: 12.1", "cuDNN: 8.9", "Ubuntu 22.04") == (
        "cuda-major-mismatch"
    )
    assert cause_in(failed, "onnxruntime-gpu==1.16.3", "CUDA: 11.8", "cuDNN: 8.9", "Ubuntu 22.04") == (
        "library-not-found"
    )


def test_an_issue_form_tells_the_release_of_onnx_runtime() -> None:
    asked = ("### ONNX Runtime Version or Commit ID", "", "{}", "", "### Execution Provider Library Version", "", "{}")
    for release in ("1.16.3", "ort 1.16.3", "onnxruntime 1.16.3"):
        snapshot, _ = judge("\n".join(asked).format(release, "CUDA 12.1"))
        assert snapshot is not None
        assert snapshot.environments is not None
        listed = snapshot.environments.items[0].distributions or ()
        assert [each.version for each in listed if each.name == "onnxruntime"] == ["1.16.3"]
        assert snapshot.libraries is not None
        assert snapshot.libraries.items[0].cuda == "12.1"


def test_a_command_that_selects_a_gpu_that_nvidia_smi_does_not_list_hides_all() -> None:
    gpu = "|   {0}  Tesla T4            Off  | 00000000:0{1}:00.0 Off |                    0 |"
    table = (SMI, gpu.format(0, 3), gpu.format(1, 4))
    none = "RuntimeError: No CUDA GPUs are available"
    assert cause_in("$ CUDA_VISIBLE_DEVICES=2 python train.py", none, *table) == "gpu-hidden"
    assert cause_in("$ CUDA_VISIBLE_DEVICES=1 python train.py", none, *table) == "no-gpu-visible"
    assert cause_in("$ CUDA_VISIBLE_DEVICES=2 python train.py", *table) is None
    several = ("$ CUDA_VISIBLE_DEVICES=2 python a.py", "$ CUDA_VISIBLE_DEVICES=0 python a.py")
    assert cause_in(*several, none, *table) == "no-gpu-visible"


def test_a_prompt_of_a_container_without_nvidia_smi_where_a_cuda_build_finds_no_gpu() -> None:
    inside, outside = "root@0c2c6f58df4f:/workspace# nvidia-smi", "root@node17:/workspace# nvidia-smi"
    refused = ("PyTorch version: 2.4.0+cu121", "Is CUDA available: False")
    gone = "bash: nvidia-smi: command not found"
    assert cause_in(inside, gone, *refused) == "container-without-gpu"
    assert cause_in(outside, gone, *refused) != "container-without-gpu"
    assert cause_in(inside, gone) != "container-without-gpu"


def test_a_superchip_has_an_arm_processor_and_no_jetson_wheels() -> None:
    lines = ("pip install torch==2.9.0", "Successfully installed torch-2.9.0")
    asked = (">>> torch.cuda.is_available()", "False")
    assert cause_in(*lines, *asked, "GPU: NVIDIA GH200 480GB", "Ubuntu 24.04") == "cpu-only-build"
    assert cause_in(*lines, *asked, "GPU: NVIDIA H100 80GB HBM3", "Ubuntu 24.04") != "cpu-only-build"
    assert cause_in(*lines, *asked, "GPU: NVIDIA H100", "Architecture: aarch64", "Ubuntu 24.04") == "cpu-only-build"


def test_tensorflow_tells_that_the_kernel_module_is_loaded() -> None:
    gone = "Could not load dynamic library 'libcuda.so.1'; dlerror: " + NO_LIBCUDA.removeprefix("OSError: ")
    assert cause_in(gone) == "driver-not-installed"
    assert cause_in(gone, "kernel reported version is: 460.91.3") == "library-not-found"
    snapshot, _ = judge("cuda_diagnostics.cc:204] kernel reported version is: 460.91.3")
    assert snapshot is not None
    assert snapshot.kernel is not None
    assert snapshot.kernel.nvidia is not None
    assert snapshot.kernel.nvidia.version == "460.91.03"


def test_pythons_greeting_tells_the_system() -> None:
    old = ("pip install torch===1.3.0 -f https://download.pytorch.org/whl/torch_stable.html",)
    smi = SMI.replace("550.90.07", "410.48").replace("12.4", "10.0")
    assert cause_in(*old, "[GCC 7.3.0] :: Anaconda, Inc. on linux", smi) == "driver-too-old"
    assert cause_in(*old, "[MSC v.1916 64 bit (AMD64)] on win32", smi) != "driver-too-old"


def test_status_500_of_cuda_is_no_missing_symbol_of_an_extension() -> None:
    line = "Error 500: named symbol not found (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)"
    assert cause_in(f"UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). {line}") == (
        "container-toolkit-too-old"
    )


def test_a_release_on_a_jetson_is_a_build_of_nvidia() -> None:
    assert cause_in("JetPack 4.6 on Xavier NX with CUDA 10.2", "tensorflow 1.15", "Python 3.6") is None
    assert cause_in("tensorflow 1.15 with CUDA 10.2, cuDNN 7.6", "Ubuntu 18.04") == "cuda-major-mismatch"


@every(
    [
        ("YOLOv5 v5.0-10-gabcdef torch 1.7.1 CPU", False),
        ("Ultralytics YOLOv8.0.20 Python-3.8.10 torch-1.13.1+cu117 CPU", False),
        ("GPU available: False, used: False", False),
        ("GPU available: True (cuda), used: True", True),
        ("YOLOv5 v5.0-10-gabcdef torch 1.7.1 CPU, with --device cpu", None),
    ]
)
def test_what_programs_on_pytorch_print_about_the_gpu(printed: str, available: object) -> None:
    snapshot, _ = judge(f"torch==2.4.0\n{printed}")
    assert snapshot is not None
    assert snapshot.environments is not None
    frameworks = snapshot.environments.items[0].frameworks
    assert frameworks is not None
    assert frameworks.items[0].gpu_available is available


def test_only_linux_numbers_its_driver_with_three_parts() -> None:
    listed = ("Package Version", "------- -------", "torch   2.11.0")
    assert cause_in(*listed, SMI) == "driver-too-old"
    assert cause_in(*listed, SMI.replace("550.90.07", "552.44   ")) != "driver-too-old"
