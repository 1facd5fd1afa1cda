"""Causes that no line names: CUDA that is older than a GPU, PyPI's builds for Windows, what a text shows beside a line."""

# ruff: noqa: E501  lines as programs print them and people write them

from __future__ import annotations

from benchmarks.accuracy import judge
from tests.every import every
from tests.rules.messages.test_causes_told import alarms, cause_in


@every(
    [
        ("conda install cudatoolkit=10.1 cupy\nGPU: RTX 3060", "gpu-code-missing"),
        ("cudatoolkit               10.2.89              h6d9799a_8\nnumba 0.53.1\nGPU: RTX A4000", "gpu-code-missing"),
        ("conda install cudatoolkit=11.0 cupy\nGPU: RTX 3060", None),
        ("conda install cudatoolkit=10.1 cupy\nGPU: RTX 2080 Ti", None),
    ]
)
def test_the_cuda_of_conda_and_a_newer_gpu(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        ("tensorflow-gpu 1.15.0, RTX 3090\nInternalError: Blas GEMM launch failed", "warn"),
        ("tensorflow-gpu 2.0.1, RTX 3080\nfrom the second step on the loss is NaN", "warn"),
        ("tensorflow-gpu 2.0.0, GTX 960M\nIt takes several minutes at every start", "note"),
        ("tensorflow-gpu 2.0.0, GTX 1080\nIt takes several minutes at every start", None),
        ("tensorflow-gpu 1.15.0, RTX 3090\nTypeError: run() takes 1 positional argument", None),
    ]
)
def test_code_that_the_driver_has_to_compile(text: str, expected: str | None) -> None:
    _, checks = judge(text)
    found = [check.status for check in checks if check.rule == "gpu-code-missing" and check.status in ("warn", "note")]
    assert found == ([expected] if expected else [])


@every(
    [
        ("Windows 10\npip install -r requirements.txt\ntorch.cuda.is_available() is False", "cpu-only-build"),
        ("Windows 11\npip install -e .\ntorch.cuda.is_available() is always False", "cpu-only-build"),
        ("Win11, pip install -r requirements.txt, torch.cuda.is_available() 总是返回 False", "cpu-only-build"),
        ("Ubuntu 22.04\npip install -r requirements.txt\ntorch.cuda.is_available() is False", None),
        (
            "Windows 10\npip install -r requirements.txt --extra-index-url https://download.pytorch.org/whl/cu121\ntorch.cuda.is_available() is True",
            None,
        ),
    ]
)
def test_requirements_that_pip_takes_from_pypi(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        ("Could not locate cudnn_ops_infer64_8.dll, which the program asks for", "cudnn-missing"),
        (
            "Could not locate cudnn_ops_infer64_8.dll.\nIn torch\\lib there is cudnn_ops_infer64_9.dll",
            "cudnn-major-mismatch",
        ),
        (
            "Could not load dynamic library 'cudnn64_8.dll'; dlerror: cudnn64_8.dll not found\ncudnn-windows-x86_64-8.9.7.29_cuda11-archive",
            "library-not-found",
        ),
        (
            "Could not load dynamic library 'cudnn64_8.dll'; dlerror: cudnn64_8.dll not found\ncudnn-11.2-windows-x64-v7.6.5.32.zip",
            "cudnn-major-mismatch",
        ),
        (
            "Failed to load library libonnxruntime_providers_cuda.so with error: libcublas.so.10: cannot open shared object file\nRUN apt-get install -y cuda-toolkit-11-8",
            "cuda-major-mismatch",
        ),
    ]
)
def test_what_a_text_says_is_there_in_place_of_a_missing_library(text: str, expected: str) -> None:
    assert cause_in(text) == expected


_HIDDEN = "$ CUDA_VISIBLE_DEVICES= ./bench -ngl 0\nggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"


def test_a_gpu_that_a_command_hides_on_purpose() -> None:
    assert alarms(f"{_HIDDEN}\n$ ./bench\nggml_cuda_init: found 2 CUDA devices:") == []
    assert cause_in(_HIDDEN) is not None


def test_a_command_that_hides_every_gpu_leaves_the_other_variables() -> None:
    text = f"export LD_LIBRARY_PATH=/opt/cuda/lib64\n{_HIDDEN}\n$ ./bench\nggml_cuda_init: found 2 CUDA devices:"
    snapshot, _ = judge(text)
    assert snapshot is not None
    assert snapshot.variables is not None
    assert snapshot.variables.values == {"LD_LIBRARY_PATH": "/opt/cuda/lib64"}
    assert alarms(text) == []


def test_a_fabric_manager_that_has_nothing_to_do() -> None:
    failed = "nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE\nDGX, 2x A40"
    assert cause_in(failed) == "fabric-manager-not-running"
    assert (
        alarms(
            f"{failed}\nrequest to query NVSwitch device information failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
        )
        == []
    )


@every(
    [
        ("ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'", "toolkit-lacks-gpu"),
        ("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", "jit-compiler-too-old"),
    ]
)
def test_a_gpu_that_toolkits_have_dropped_is_no_sign_of_an_old_one(text: str, expected: str) -> None:
    assert cause_in(text) == expected


def test_the_build_for_gpus_by_what_only_it_says() -> None:
    failed = "ImportError: Could not find 'x'. TensorFlow requires that this DLL be installed in a directory that is named in your %PATH%"
    assert cause_in(f"CUDA 9.0, cuDNN 6.0, TensorFlow 1.5\n{failed}") == "cudnn-major-mismatch"


def test_triton_beside_a_gpu_of_another_maker_is_its_makers() -> None:
    listed = "PyTorch: 2.7.1\ntriton: 3.1.0"
    assert alarms(listed) == ["torch-family-mismatch: warn"]
    assert alarms(f"GPU 0: MTT S5000\n{listed}") == []


@every(
    [
        "cherry-pick: add a troubleshooting page",
        "[docs] add troubleshooting steps for NVIDIA driver/library version mismatch",
        "the metric counts errors such as thermal throttling of the GPU",
    ]
)
def test_what_describes_a_failure_tells_of_none(text: str) -> None:
    assert alarms(f"NVIDIA GPU exporter\n{text}") == []


@every(
    [
        ("I upgraded PyTorch from 2.0.1 to 2.5.1. GPU RTX 5090. RuntimeError: boom", "gpu-code-missing"),
        ("After updating PyTorch to version 2.5.1, CUDA error on my RTX 5090", "gpu-code-missing"),
        ("I upgraded PyTorch to 2.5.1 and it works on the RTX 5090", None),
        ("Should I upgrade PyTorch to 2.5.1 for the RTX 5090?", None),
    ]
)
def test_a_change_tells_the_version_that_is_here(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


def test_versions_of_another_environment_are_not_those_that_fail() -> None:
    text = "jax=0.4.6, jaxlib=0.4.6+cuda11.cudnn82\nIn another virtual environment I run jax=0.3.25, jaxlib=0.3.25+cuda11 without trouble"
    assert alarms(text) == []


@every(["Cloud TPU v3-8, jax[tpu] 0.4.30", "PJRT_DEVICE=TPU python train.py", "The notebook runs on a Kaggle TPU"])
def test_a_program_on_a_tpu_misses_no_gpu(text: str) -> None:
    log = "cuda_driver.cc:274] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    assert alarms(f"{text}\n{log}") == []
    assert cause_in(log) == "no-gpu-visible"


@every(
    [
        ("os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'] = '1'\ntorch 2.5.1+cu124", "variable-costs-speed"),
        (
            "In my environment PYTORCH_NO_CUDA_MEMORY_CACHING=0 is set explicitly. torch 2.5.1+cu124",
            "variable-costs-speed",
        ),
        ("Is PYTORCH_NO_CUDA_MEMORY_CACHING worth a try? torch 2.5.1+cu124", None),
    ]
)
def test_a_variable_that_code_or_a_sentence_sets(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        ("OS: Win11, torch 2.3.1, torch.cuda.is_available() is False", "cpu-only-build"),
        ("tensorflow 2.12.0 Windows 10 RTX 3060: list_physical_devices('GPU') is empty", "windows-gpu-unsupported"),
        ("uv installs torch 2.6.0 on Windows and torch.cuda.is_available() is False", "cpu-only-build"),
        ("torch 2.6.0 works on Windows, here torch.cuda.is_available() is False", None),
    ]
)
def test_windows_in_other_words(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        (
            "nvidia-container-cli: initialization error: driver rpc error: timed out\nThe GPUs are in non-persistence mode",
            "persistence-mode-off",
        ),
        ("nvidia-container-cli: initialization error: driver rpc error: timed out", "gpu-init-failed"),
    ]
)
def test_a_driver_that_starts_too_slowly(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        (
            "RTX 3090\ncuda 10.2\npytorch 1.7.1\nRuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
            "gpu-code-missing",
        ),
        ("- PyTorch: 1.5.1\n- CUDA: 10.1\n- GPU: NVIDIA A100\nRuntimeError: the loss is nan", "gpu-code-missing"),
        ("RTX 3080, pytorch 1.4.0 with cuda 10.1\nRuntimeError: an illegal memory access", "gpu-code-missing"),
        ("RTX 3090\npytorch 1.7.1, CUDA 11.0\nRuntimeError: shapes do not match", None),
        ("RTX 3090\ncuda 10.2\npytorch 1.7.1", None),
        ("RTX 3090\ncuda 10.2\npytorch 1.7.1+cu110\nRuntimeError: shapes do not match", None),
        ("release 10.2, V10.2.89\nRTX 3090\ntorch 1.8.1\nRuntimeError: shapes do not match", None),
    ]
)
def test_a_release_beside_a_cuda_that_is_older_than_the_gpu(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


_ASKED = ">>> tf.config.list_physical_devices('GPU')\n[]"


@every(
    [
        (f"tensorflow                2.10.0          mkl_py39ha510bab_0\n{_ASKED}", "cpu-only-build"),
        (f"tensorflow=2.10.0=eigen_py39h1f1ba26_0\n{_ASKED}", "cpu-only-build"),
        (f"  + tensorflow  2.16.1  cpu_py310h42475c5_0  conda-forge     Cached\n{_ASKED}", "cpu-only-build"),
        ("jaxlib=0.4.23=cpu_py310hc1d0ba3_1\njax.devices()\n[CpuDevice(id=0)]\nRTX 3090", "cpu-only-build"),
        (
            "tensorflow                2.2.0           mkl_py37h6e9ce2d_0\ntensorflow-gpu            2.2.0                     <pip>\nGTX 960M",
            None,
        ),
        ("tensorflow                2.16.1  cuda120py310h1f1ba26_0  conda-forge\nRTX 3090", None),
        (f"pytorch=1.12.0=py3.9_cuda11.3_cudnn8.3.2_0\n{_ASKED}", None),
    ]
)
def test_the_build_string_of_a_package_of_conda(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


_NO_GPU = "one GPU\nException: No GPU found, please run without --cuda"


@every(
    [
        f"search.sh line 1: CUDA_VISIBLE_DEVICES=1\n{_NO_GPU}",
        f"run.sh: export CUDA_VISIBLE_DEVICES=2\n{_NO_GPU}",
        f"env: CUDA_VISIBLE_DEVICES=1\n{_NO_GPU}",
        f"+ CUDA_VISIBLE_DEVICES=3\n{_NO_GPU}",
    ]
)
def test_a_variable_of_a_script_behind_its_place(text: str) -> None:
    assert cause_in(text) == "gpu-hidden"


@every(
    [
        ("mxnet-cu101 1.6.0 on RTX 3090\nit hangs", "gpu-code-missing"),
        ("jaxlib 0.1.55+cuda101 on RTX 3090\nRuntimeError: it fails", "gpu-code-missing"),
        ("paddlepaddle-gpu 1.8.5.post107 on RTX 3090\nit hangs", "gpu-code-missing"),
        ("mxnet-cu101 1.6.0 on RTX 2080 Ti\nit hangs", None),
        ("mxnet-cu101 1.6.0 on RTX 3090", None),
        ("TensorFlow 1.14, CUDA 11.1, RTX 3090\nthe loss is nan", "gpu-code-missing"),
        ("RTX 3090, Tensorflow 1.14\nI was getting bad outputs", "gpu-code-missing"),
        ("RTX 2080 Ti, Tensorflow 1.14\nI was getting bad outputs", None),
        ("TensorFlow 1.14, RTX 3090", None),
    ]
)
def test_a_framework_whose_own_cuda_is_older_than_the_gpu(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(["Graphics card 5090", "video card 3090", "3090 GPU", "the gpu is 3090", "3090 x 2", "3090*2"])
def test_a_gpu_by_its_number_alone(text: str) -> None:
    assert cause_in(f"{text}\ntensorflow 1.15\nit hangs at start") == "gpu-code-missing"


@every(
    [
        "    Temperature\n        GPU Current Temp            : 37 C\n        GPU Slowdown Temp           : 93 C",
        "    Temperature\n        GPU Shutdown Temp           : 100 C\n        GPU Slowdown Temp           : 97 C",
        "GPU: temperature 45, slowdown temp 92 C, shutdown temp 95 C",
    ]
)
def test_a_limit_of_the_temperature_is_no_heat(text: str) -> None:
    assert cause_in(f"Driver Version : 440.33.01\nCUDA Version : 10.2\nGPU 00000000:84:00.0\n{text}") is None
