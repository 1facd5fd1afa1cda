"""What follows from a text: a cause, from facts, fragments and statements together, or nothing."""

# ruff: noqa: E501  lines as programs print them, in other scripts too

import re
from pathlib import Path

import pytest

from benchmarks.accuracy import judge
from envcheck.model.checks import Fix
from envcheck.rules.engine.cause import primary
from tests.documents import texts
from tests.every import cases, every
from tests.known import known


def cause_in(*lines: str) -> str | None:
    _, checks = judge("\n".join(lines))
    found = primary(checks)
    return found.rule if found else None


def alarms(*lines: str) -> list[str]:
    _, checks = judge("\n".join(lines))
    return [f"{check.rule}: {check.status}" for check in checks if check.status in ("warn", "fail")]


DOCUMENT = (Path(__file__).with_name("data") / "causes.txt").read_text(encoding="utf-8")
SUBJECTS = {
    subject: list(texts(below))
    for subject, below in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", DOCUMENT, re.MULTILINE)
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_cause_in_a_text(subject: str) -> None:
    wrong = []
    for title, _, text in SUBJECTS[subject]:
        expected = title.partition(" (")[0]
        found = ", ".join(alarms(text)) or "quiet" if expected == "quiet" else cause_in(text) or "none"
        if found != expected:
            wrong.append(f"{title}, but found {found}:\n{text}")
    assert not wrong, "\n\n".join(wrong)


# --- What a text states together ------------------------------------------------------------------------------------
NO_LIBCUDA = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
SMI = "| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |"


LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023"


@cases(
    "listed",
    "ii  libnvidia-compute-535:amd64  535.154.05-0ubuntu0.22.04.1  amd64  NVIDIA libcompute package",
    "Upgrade: nvidia-utils-535:amd64 (535.129.03-0ubuntu1, 535.154.05-0ubuntu1)",
    "now `nvidia-driver-535:amd64 535.154.05-0ubuntu0.22.04.1` is installed",
    "nvidia-driver-libs-535.154.05-1.el9.x86_64",
    "local/nvidia-utils 535.154.05-1",
    "ii  nvidia-smi     535.154.05-1  amd64        NVIDIA System Management Interface",
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


def test_an_unscheduled_pod_is_not_told_to_start_docker() -> None:
    _, checks = judge("Warning  FailedScheduling  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    found = known(primary(checks))
    assert found.rule == "scheduler-lacks-gpu"
    assert "docker" not in " ".join(fix.text for fix in found.fixes)
    assert any(fix.command[:2] == ("kubectl", "describe") for fix in found.fixes)


@every(
    ("I have `CUDA=12.4` and `cuDNN=9`. What do you want to know?", "cudnn-major-mismatch"),
    ("I use it with cuDNN 9. The wheel needs another.", "cudnn-major-mismatch"),
    ("", "cudnn-missing"),
)
def test_a_bare_major_of_cudnn_in_a_sentence_counts(said: str, expected: str) -> None:
    assert cause_in("Could not load library libcudnn_ops_infer.so.8: cannot open shared object file", said) == expected


def test_a_warning_of_a_rule_fails_where_a_program_failed_of_it() -> None:
    listed = ("torch==2.9.0", "sglang==0.4.9.post2")
    _, before = judge("\n".join(listed))
    _, after = judge("\n".join((*listed, "sgl_kernel/common_ops.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa")))
    statuses = [{check.rule: check.status for check in checks} for checks in (before, after)]
    assert statuses[0]["extension-built-for-other-torch"] == "warn"
    assert statuses[1]["extension-built-for-other-torch"] == "fail"


ORT_ASKS = "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest MSVC runtime."


@every(
    ("CUDA toolkit 11.8, cuDNN 9.1", "cuda-major-mismatch"),
    ("CUDA toolkit 12.4, cuDNN 8.9", "cudnn-major-mismatch"),
    ("CUDA toolkit 11.8, cuDNN 8.9", "cuda-major-mismatch"),
    ("CUDA toolkit 12.4, cuDNN 9.1", "library-not-found"),
    ("", "library-not-found"),
)
def test_what_onnx_runtime_requires_is_held_against_what_is_there(stated: str, expected: str) -> None:
    assert cause_in(ORT_ASKS, stated) == expected


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


@every(
    ("YOLOv5 v5.0-10-gabcdef torch 1.7.1 CPU", False),
    ("Ultralytics YOLOv8.0.20 Python-3.8.10 torch-1.13.1+cu117 CPU", False),
    ("GPU available: False, used: False", False),
    ("GPU available: True (cuda), used: True", True),
    ("YOLOv5 v5.0-10-gabcdef torch 1.7.1 CPU, with --device cpu", None),
)
def test_what_programs_on_pytorch_print_about_the_gpu(printed: str, available: object) -> None:
    snapshot, _ = judge(f"torch==2.4.0\n{printed}")
    assert snapshot is not None
    assert snapshot.environments is not None
    frameworks = known(snapshot.environments.items[0].frameworks)
    assert frameworks.items[0].gpu_available is available


def test_only_linux_numbers_its_driver_with_three_parts() -> None:
    listed = ("Package Version", "------- -------", "torch   2.11.0")
    assert cause_in(*listed, SMI) == "driver-too-old"
    assert cause_in(*listed, SMI.replace("550.90.07", "552.44   ")) != "driver-too-old"


# --- Facts alone: what people state, programs print, and commands ask for -------------------------------------------
@every(
    "providers=['CPUExecutionProvider']",
    "session = ort.InferenceSession(path, providers=['CPUExecutionProvider'])",
    "EP Error when using ['CUDAExecutionProvider'], falling back to ['CPUExecutionProvider']",
)
def test_chosen_providers_tell_nothing_of_the_build(code: str) -> None:
    assert cause_in(code, "GPU: Tesla T4") != "cpu-only-build"


def gpu_available(text: str) -> list[bool | None]:
    """What each framework says."""
    snapshot, _ = judge(text)
    assert snapshot is not None
    environment = known(snapshot.judged_environment)
    assert environment.frameworks is not None
    return [each.gpu_available for each in environment.frameworks.items]


@every(
    "torch.cuda.is_available(): False", "torch.cuda.is_available() returns False",
    "`torch.cuda.is_available()` -> False", "torch.cuda.is_available() == False",
    "but torch.cuda.is_available() still returns False",
    "and torch.cuda.is_available() keeps returning False after I installed it again",
    "print(torch.cuda.is_available())  # False", "when I run torch.cuda.is_available() I get False",
    "CUDA available: False", "Torch CUDA available: False",
    "import torch\nprint(torch.__version__)\nprint(torch.cuda.is_available())\n\n2.1.0\nFalse",
)  # fmt: skip
def test_how_people_say_that_pytorch_finds_no_gpu(text: str) -> None:
    assert gpu_available(f"{text}\nRTX 3060") == [False]


@every(
    "if torch.cuda.is_available() == False:",
    "assert torch.cuda.is_available() is True",
    "torch.cuda.is_available() should return True",
    "Would torch.cuda.is_available() return False then?",
)
def test_code_and_wishes_are_no_answers(text: str) -> None:
    assert gpu_available(f"{text}\nRTX 3060, torch 2.1.0") == [None]


def test_a_prompt_prints_nothing_for_none() -> None:
    asked = (">>> torch.__version__", "'1.6.0'", ">>> torch.version.cuda", ">>> torch.cuda.is_available()", "False")
    assert cause_in("GTX 1080", *asked) == "cpu-only-build"
    assert cause_in("GTX 1080", *(*asked[:3], "'10.2'", *asked[3:])) != "cpu-only-build"


def test_a_build_for_the_cpu_explains_that_no_gpu_is_seen() -> None:
    lightning = ("You requested GPUs: [0]", "But your machine only has: []")
    assert cause_in("torch-2.1.0+cpu", "torch==2.1.0+cpu", *lightning) == "cpu-only-build"
    assert cause_in("torch==2.1.0+cu121", *lightning) != "cpu-only-build"


def test_a_build_of_an_image_gets_no_gpu_from_options_of_docker_run() -> None:
    found = primary(
        judge("the step fails in the docker build\nRuntimeError: Found no NVIDIA driver on your system.")[1]
    )
    assert found
    assert found.rule == "container-without-gpu"
    assert "build" in found.fixes[0].text


@every("Num GPUs Available:  0", "it prints Num GPUs: 0.", "tf.config.list_physical_devices('GPU') returns []")
def test_tensorflow_beside_another_cuda(told: str) -> None:
    assert cause_in("TensorFlow 2.1.0", "CUDA 10.2", told) == "cuda-major-mismatch"
    assert cause_in("TensorFlow 2.1.0", "CUDA 10.1", told) != "cuda-major-mismatch"


_BUILT = "$ ls /lib/modules/$(uname -r)/extra/nvidia/\nnvidia-drm.ko.xz  nvidia.ko.xz\n"


@every(
    (f"$ mokutil --sb-state\nSecureBoot enabled\n$ lsmod | grep nvidia\n{_BUILT}", "secure-boot-blocks-module"),
    (f"$ mokutil --sb-state\nSecureBoot enabled\n{_BUILT}$ lsmod | grep nvidia\nnvidia 62701568 2\n$ ", None),
    (f"$ mokutil --sb-state\nSecureBoot enabled\n{_BUILT}$ lsmod | grep nvidia\n", None),  # cut off, perhaps
    (f"$ mokutil --sb-state\nSecureBoot disabled\n$ lsmod | grep nvidia\n{_BUILT}", None),
)
def test_a_module_that_is_built_and_not_listed(text: str, expected: str | None) -> None:
    assert (cause_in(f"GTX 1650 Ti, Fedora 38\n{text}") == "secure-boot-blocks-module") is (expected is not None)


@every(
    ("nvcr.io/nvidia/tensorflow:20.03-tf2-py3", None),
    ("nvidia/cuda:10.2-cudnn7-runtime-ubuntu18.04", "cuda-major-mismatch"),
)
def test_the_cuda_of_an_image_fits_the_framework_that_was_built_in_it(image: str, expected: str | None) -> None:
    text = f"docker run --gpus all {image}\nTensorFlow Version 2.1.0\ntf.test.is_gpu_available() -> False"
    assert (cause_in(text) == "cuda-major-mismatch") is (expected is not None)


# --- Files that a text names ----------------------------------------------------------------------------------------
def test_the_same_lines_from_linux() -> None:
    assert cause_in("libcuda.so not found! Do you have a CUDA driver installed?") == "driver-not-installed"
    assert cause_in("OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory") in (
        "cuda-library-missing",
        "library-not-found",
    )


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


def test_a_program_that_fills_the_memory_has_its_libraries() -> None:
    stated = ("tensorflow-gpu 2.0.0", "cuda 10.1 / cuDNN 7.6.5", "tf.config.list_physical_devices('GPU') returns []")
    assert cause_in(*stated) == "cuda-major-mismatch"
    full = "I tensorflow/stream_executor/cuda/cuda_driver.cc:830] failed to allocate 1.40G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert "cuda-major-mismatch" not in " ".join(alarms(*stated[:2], full))


# --- Fragments of output, and what people say of their machine ------------------------------------------------------
def test_an_error_of_cdi_asks_for_a_specification() -> None:
    _, checks = judge("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0")
    found = primary(checks)
    assert found
    assert found.rule == "container-toolkit-missing"
    assert found.fixes[0].command[:4] == ("sudo", "nvidia-ctk", "cdi", "generate")


def test_a_quoted_error_goes_before_what_is_inferred_of_the_machine_and_does_not_explain_it() -> None:
    machine = (
        "PyTorch version: 1.5.0\nIs debug build: No\nCUDA used to build PyTorch: 10.2\n\nOS: CentOS Linux 7 (Core)\n"
        "Is CUDA available: No\nCUDA runtime version: No CUDA\nGPU models and configuration: No CUDA\n"
        "Nvidia driver version: No CUDA\n"
    )
    assert cause_in(machine) == "driver-not-installed"
    assert (
        cause_in(f"libm.so.6: version `GLIBC_2.23' not found (required by libtorch.so)\n{machine}") == "glibc-too-old"
    )
    assert cause_in(f"RuntimeError: No CUDA GPUs are available\n{machine}") == "driver-not-installed"


def _copies(without: float, direct: float, way: str = "Unidirectional") -> str:
    head = "   D\\D     0      1 "
    return "\n".join(
        f"{way} P2P={switch} Bandwidth{writes} Matrix (GB/s)\n{head}\n     0 673.20  {figure:.2f} \n     1  {figure:.2f} 673.20 "
        for switch, writes, figure in (("Disabled", "", without), ("Enabled", " (P2P Writes)", direct))
    )


@every(
    (_copies(13.15, 2.6), "peer-access-blocked"),
    (f"{_copies(13.15, 12.1)}\n{_copies(18.0, 3.1, 'Bidirectional')}", "peer-access-blocked"),
    (_copies(13.15, 24.5), None),
    (_copies(13.15, 13.1), None),
    (_copies(13.15, 2.6).partition("Unidirectional P2P=Enabled")[0], None),
)
def test_copies_between_gpus_with_and_without_peer_access(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


# --- What no line names ---------------------------------------------------------------------------------------------
@every(
    ("tensorflow-gpu 1.15.0, RTX 3090\nInternalError: Blas GEMM launch failed", "warn"),
    ("tensorflow-gpu 2.0.1, RTX 3080\nfrom the second step on the loss is NaN", "warn"),
    ("tensorflow-gpu 2.0.0, GTX 960M\nIt takes several minutes at every start", "note"),
    ("tensorflow-gpu 2.0.0, GTX 1080\nIt takes several minutes at every start", None),
    ("tensorflow-gpu 1.15.0, RTX 3090\nTypeError: run() takes 1 positional argument", None),
)
def test_code_that_the_driver_has_to_compile(text: str, expected: str | None) -> None:
    _, checks = judge(text)
    found = [check.status for check in checks if check.rule == "gpu-code-missing" and check.status in ("warn", "note")]
    assert found == ([expected] if expected else [])


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


def test_triton_beside_a_gpu_of_another_maker_is_its_makers() -> None:
    listed = "PyTorch: 2.7.1\ntriton: 3.1.0"
    assert alarms(listed) == ["torch-family-mismatch: warn"]
    assert alarms(f"GPU 0: MTT S5000\n{listed}") == []


# --- What a line names only beside another, or by what it compares --------------------------------------------------
def fixes_in(rule: str, *lines: str) -> list[Fix]:
    _, checks = judge("\n".join(lines))
    return [fix for check in checks if check.rule == rule for fix in check.fixes]


def test_no_index_is_named_for_a_build_that_is_not_from_it() -> None:
    jetson = ("torch==1.12.0a0+2c916ef.nv22.3", "torchaudio==0.12.0", "OSError: unable to load torchaudio")
    assert [fix.command for fix in fixes_in("torch-family-mismatch", *jetson)] == [()]
    (fix,) = fixes_in("cpu-only-build", "Jetson Orin: torch 2.3.1 from pip, torch.cuda.is_available() returns False")
    assert "JetPack" in fix.text
    assert not fix.command


@every(("Windows 10, onnxruntime-gpu 1.15.1", "PATH"), ("Ubuntu 22.04, onnxruntime-gpu 1.15.1", "apt-file"))
def test_where_a_system_library_comes_from(system: str, word: str) -> None:
    line = "Could not locate zlibwapi.dll. Please make sure it is in your library path!"
    assert [word in fix.text for fix in fixes_in("system-library-missing", system, line)] == [True]


def test_wheels_over_each_other_matter_where_the_library_fails() -> None:
    listed = ("nvidia-nccl-cu12==2.27.5", "nvidia-nccl-cu13==2.28.9", "torch==2.10.0")
    assert alarms(*listed, "undefined symbol: ncclCommResume") == ["nvidia-wheel-conflict: fail"]
    assert "nvidia-wheel-conflict: warn" in alarms(*listed, "training hangs at the first step")
