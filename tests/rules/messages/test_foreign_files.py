"""Files that a text names: libraries of Linux on Windows, packages of conda by their file, and where a file is said to be."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.rules.engine.cause import primary
from tests.every import every


def cause_in(*lines: str) -> str | None:
    _, checks = judge("\n".join(lines))
    found = primary(checks)
    return found.rule if found else None


@every(
    [
        r"D:\app\lib\site-packages\bitsandbytes\cuda_setup\main.py:156: UserWarning: WARNING: No libcudart.so found! Install CUDA or the cudatoolkit package (anaconda)!",
        "The following directories listed in your path were found to be non-existent: {WindowsPath('/usr/local/cuda/lib64')}\nCUDA SETUP: WARNING! libcuda.so not found! Do you have a CUDA driver installed?",
        "C:\\ai>python run.py\nOSError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
    ]
)
def test_a_build_that_looks_for_libraries_of_linux_on_windows(text: str) -> None:
    assert cause_in(text) == "windows-gpu-unsupported"


def test_the_same_lines_from_linux() -> None:
    assert cause_in("libcuda.so not found! Do you have a CUDA driver installed?") == "driver-not-installed"
    assert cause_in("OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory") in (
        "cuda-library-missing",
        "library-not-found",
    )


@every(
    [
        "pytorch            pytorch/linux-64::pytorch-1.13.1-py3.10_cpu_0",
        "pytorch            conda-forge/linux-64::pytorch-2.3.1-cpu_generic_py312h1576ffb_0",
    ]
)
def test_the_build_of_a_package_in_conda_s_plan(row: str) -> None:
    assert cause_in(
        "conda install pytorch cudatoolkit=11.8", row, "AssertionError: Torch not compiled with CUDA enabled"
    ) == ("cpu-only-build")
    assert (
        cause_in("Expected: PyTorch with CUDA. I ran conda install pytorch cudatoolkit=11.8", row) == "cpu-only-build"
    )


@every(
    [
        "libcudart.so.11.0 exists in /usr/local/cuda-11.0/lib64",
        "I checked that `libcudart.so.11.0` is located in /opt/cuda/lib64.",
        "libcudart.so.11.0 is present under /usr/local/cuda/targets/x86_64-linux/lib, as a link",
    ]
)
def test_a_sentence_says_where_the_missing_file_is(sentence: str) -> None:
    missing = "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    assert cause_in(missing) == "cuda-library-missing"
    assert cause_in(missing, sentence) == "library-not-found"


@every(
    [
        "OSError: /srv/venv/lib/python3.9/site-packages/nvidia/cublas/lib/libcublas.so.11: undefined symbol: cublasLtGetVersion, version libcublasLt.so.11",
        "ImportError: /home/u/miniconda3/envs/x/lib/libcusolver.so.11: undefined symbol: cublasDgetri, version libcublas.so.12",
    ]
)
def test_a_library_of_an_environment_that_gets_another_s_partner(line: str) -> None:
    assert cause_in(line) == "library-shadowed"


COMPOSE = """services:
  app:
    image: ollama/ollama:latest
    ports:
      - "11434:11434"
"""
NO_GPU = 'msg="Unable to load cudart CUDA management library /usr/lib/libcudart.so: your nvidia driver is too old or missing"'


def test_a_compose_file_that_gives_no_service_a_gpu() -> None:
    assert cause_in("docker run --rm --gpus all ubuntu nvidia-smi", COMPOSE, NO_GPU) == "container-without-gpu"
    assert cause_in(COMPOSE) is None
    for way in (
        "    runtime: nvidia",
        "    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: nvidia",
        "    gpus: all",
    ):
        assert cause_in(COMPOSE + way, NO_GPU) != "container-without-gpu"


def test_the_configuration_that_torch_shows() -> None:
    shown = "PyTorch built with:\n  - GCC 7.3\n  - CUDA Runtime 10.2\n  - NVCC architecture flags: -gencode;arch=compute_37,code=sm_37;-gencode;arch=compute_70,code=sm_70\n"
    assert (
        cause_in(shown, "GPU 0: NVIDIA GeForce RTX 3090", "RuntimeError: CUDA error: invalid device function")
        == "gpu-code-missing"
    )
    assert cause_in(shown, "GPU 0: Tesla V100-SXM2-32GB") is None


def test_conda_s_builds_are_not_those_of_pypi() -> None:
    table = "detectron2 CUDA compiler  10.0\ndetectron2 0.1\nPyTorch                   1.3.1{}\nERROR: unable to reproduce the mAP"
    assert cause_in(table.format(" @/opt/miniconda3/envs/d2/lib/python3.6/site-packages/torch")) is None
    assert cause_in(table.format("")) == "toolkit-differs-from-build"


@every(
    [
        "torch==2.9.0a0+145a3a7bda.nv25.10\nvllm==0.10.2+9dd9ca32.nv25.10\ntriton==3.4.0+gitc817b9b6",
        "torch==2.9.0.dev20250722+cu128\ntriton==3.3.1\ntorchvision==0.22.1",
        "torch==2.6.0a0+ecf3bae40a.nv25.01\nxformers==0.0.29",
    ]
)
def test_builds_that_are_no_releases_go_with_what_they_were_built_with(packages: str) -> None:
    assert cause_in(packages) is None
    assert cause_in("torch==2.5.1\nvllm==0.10.2") == "extension-built-for-other-torch"


@every(["$0", "cuda:0", "gpu1", "[0]"])
def test_a_value_that_selects_no_gpu(value: str) -> None:
    asked = f"$ CUDA_VISIBLE_DEVICES={value} python demo.py"
    assert cause_in(asked, "no CUDA-capable device is detected", "GPU 0: NVIDIA TITAN X (Pascal)") == "gpu-hidden"


def test_a_list_that_does_not_begin_with_the_first_gpu() -> None:
    hidden = 'os.environ["CUDA_VISIBLE_DEVICES"] = "3"'
    assert cause_in(hidden, "RuntimeError: No CUDA GPUs are available") == "gpu-hidden"
    assert cause_in(hidden.replace("3", "0"), "RuntimeError: No CUDA GPUs are available") == "no-gpu-visible"


def test_a_module_of_another_maker_that_secure_boot_rejects() -> None:
    rejected = "modprobe: ERROR: the module acpi_ec has been rejected. With SecureBoot off it works."
    assert cause_in(rejected, "The Nvidia driver's module loads fine here.") is None


def alarms_in(*lines: str) -> list[str]:
    _, checks = judge("\n".join(lines))
    return [check.rule for check in checks if check.status in ("warn", "fail")]


OLD_WARNING = (
    "Using torch 1.6.0+cu101 Tesla T4",
    "Tesla T4 with CUDA capability sm_75 is not compatible with the current PyTorch installation.",
    "The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60 {}.",
)


def test_pytorch_warns_of_a_gpu_that_its_code_runs_on() -> None:
    assert alarms_in(*OLD_WARNING[:2], OLD_WARNING[2].format("sm_70")) == []
    assert cause_in(*OLD_WARNING[:2], OLD_WARNING[2].format("sm_61")) == "gpu-code-missing"


TENSORFLOW_WITHOUT_GPU = (
    "2020-12-21 09:01:04.09: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory",
    "2020-12-21 09:01:04.09: W tensorflow/stream_executor/cuda/cuda_driver.cc:326] failed call to cuInit: UNKNOWN ERROR (303)",
)


def test_the_runtime_s_log_beside_another_failure() -> None:
    assert cause_in(*TENSORFLOW_WITHOUT_GPU) == "driver-not-installed"
    assert alarms_in(*TENSORFLOW_WITHOUT_GPU, "TypeError: model() takes 2 positional arguments but 3 were given") == []
    assert cause_in(*TENSORFLOW_WITHOUT_GPU, "RuntimeError: no GPU device was found") == "driver-not-installed"


def test_a_program_that_fills_the_memory_has_its_libraries() -> None:
    stated = ("tensorflow-gpu 2.0.0", "cuda 10.1 / cuDNN 7.6.5", "tf.config.list_physical_devices('GPU') returns []")
    assert cause_in(*stated) == "cuda-major-mismatch"
    full = "I tensorflow/stream_executor/cuda/cuda_driver.cc:830] failed to allocate 1.40G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert "cuda-major-mismatch" not in alarms_in(*stated[:2], full)


def test_the_variable_as_lightning_logs_it() -> None:
    assert alarms_in("CUDA_VISIBLE_DEVICES: [0,1]", "GPU 0: Tesla V100-SXM2-16GB", "GPU 1: Tesla V100-SXM2-16GB") == []
