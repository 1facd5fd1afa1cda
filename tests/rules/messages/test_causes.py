"""What follows from a text: a cause, from facts, fragments and statements together, or nothing."""

# ruff: noqa: E501  lines as programs print them, in other scripts too

from pathlib import Path

import pytest

from benchmarks.accuracy import judge
from envcheck.model.checks import Check, Fix
from envcheck.rules.engine.cause import primary
from tests.documents import subjects
from tests.every import cases, every
from tests.known import known


def cause_in(*lines: str) -> str | None:
    _, checks = judge("\n".join(lines))
    found = primary(checks)
    return found.rule if found else None


def alarms(checks: tuple[Check, ...]) -> list[str]:
    return [f"{check.rule}: {check.status}" for check in checks if check.status in ("warn", "fail")]


SUBJECTS = subjects((Path(__file__).with_name("data") / "causes.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_cause_in_a_text(subject: str) -> None:
    wrong = []
    for said, text in SUBJECTS[subject]:
        _, checks = judge(text)
        for line in said:
            expected, found = line.partition(" (")[0], follows(checks, line.partition(" (")[0])
            if found != expected:
                wrong.append(f"{line}, but found {found}:\n{text}")
    assert not wrong, "\n\n".join(wrong)


def follows(checks: tuple[Check, ...], expected: str) -> str:
    """What is expected of the checks, or what they say instead."""
    kind, _, rest = expected.partition(" ")
    if kind == "finds":
        statuses = [f"{check.rule} {check.status}" for check in checks]
        absent = rest.startswith("no ") and not any(each.startswith(f"{rest[3:]} ") for each in statuses)
        return expected if absent or rest in statuses else ", ".join(statuses) or "nothing"
    if kind in ("quiet", "alarms"):
        return f"alarms {', '.join(alarmed)}" if (alarmed := alarms(checks)) else "quiet"
    found = primary(checks)
    cause = found.rule if found else "none"
    return expected if kind == "not" and cause != rest else cause


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


def test_an_unscheduled_pod_is_not_told_to_start_docker() -> None:
    _, checks = judge("Warning  FailedScheduling  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    found = known(primary(checks))
    assert found.rule == "scheduler-lacks-gpu"
    assert "docker" not in " ".join(fix.text for fix in found.fixes)
    assert any(fix.command[:2] == ("kubectl", "describe") for fix in found.fixes)


def test_a_warning_of_a_rule_fails_where_a_program_failed_of_it() -> None:
    listed = ("torch==2.9.0", "sglang==0.4.9.post2")
    _, before = judge("\n".join(listed))
    _, after = judge("\n".join((*listed, "sgl_kernel/common_ops.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa")))
    statuses = [{check.rule: check.status for check in checks} for checks in (before, after)]
    assert statuses[0]["extension-built-for-other-torch"] == "warn"
    assert statuses[1]["extension-built-for-other-torch"] == "fail"


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


def test_tensorflow_tells_that_the_kernel_module_is_loaded() -> None:
    gone = "Could not load dynamic library 'libcuda.so.1'; dlerror: " + NO_LIBCUDA.removeprefix("OSError: ")
    assert cause_in(gone) == "driver-not-installed"
    assert cause_in(gone, "kernel reported version is: 460.91.3") == "library-not-found"
    snapshot, _ = judge("cuda_diagnostics.cc:204] kernel reported version is: 460.91.3")
    assert snapshot is not None
    assert snapshot.kernel is not None
    assert snapshot.kernel.nvidia is not None
    assert snapshot.kernel.nvidia.version == "460.91.03"


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


# --- Facts alone: what people state, programs print, and commands ask for -------------------------------------------
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


def test_a_build_of_an_image_gets_no_gpu_from_options_of_docker_run() -> None:
    found = primary(
        judge("the step fails in the docker build\nRuntimeError: Found no NVIDIA driver on your system.")[1]
    )
    assert found
    assert found.rule == "container-without-gpu"
    assert "build" in found.fixes[0].text


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
def test_a_program_that_fills_the_memory_has_its_libraries() -> None:
    stated = ("tensorflow-gpu 2.0.0", "cuda 10.1 / cuDNN 7.6.5", "tf.config.list_physical_devices('GPU') returns []")
    assert cause_in(*stated) == "cuda-major-mismatch"
    full = "I tensorflow/stream_executor/cuda/cuda_driver.cc:830] failed to allocate 1.40G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert "cuda-major-mismatch" not in " ".join(alarms(judge("\n".join((*stated[:2], full)))[1]))


# --- Fragments of output, and what people say of their machine ------------------------------------------------------
def test_an_error_of_cdi_asks_for_a_specification() -> None:
    _, checks = judge("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0")
    found = primary(checks)
    assert found
    assert found.rule == "container-toolkit-missing"
    assert found.fixes[0].command[:4] == ("sudo", "nvidia-ctk", "cdi", "generate")


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


def test_a_command_that_hides_every_gpu_leaves_the_other_variables() -> None:
    text = f"export LD_LIBRARY_PATH=/opt/cuda/lib64\n{_HIDDEN}\n$ ./bench\nggml_cuda_init: found 2 CUDA devices:"
    snapshot, _ = judge(text)
    assert snapshot is not None
    assert snapshot.variables is not None
    assert snapshot.variables.values == {"LD_LIBRARY_PATH": "/opt/cuda/lib64"}
    assert alarms(judge(text)[1]) == []


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
