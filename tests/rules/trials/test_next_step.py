"""What is offered for an error that names no problem, and what a pasted text tells of a framework that fails."""

import ast
import re
from pathlib import Path

from envcheck.errors import ExitCode
from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Report
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.rules.trials.outcome import step_for
from tests.every import cases, cases_of, every, every_tabled
from tests.importers.pasting import torch_in


@every_tabled
def test_the_step_for_an_error(priority: int, error: str) -> None:
    row = step_for(error)
    assert row is not None
    assert row.priority == priority


@every((row.priority, line) for row in load_matrix().steps for line in row.lines)
def test_each_pattern_has_an_example(priority: int, line: str) -> None:
    assert any(
        re.search(line, error, re.IGNORECASE) for of, error in cases_of(test_the_step_for_an_error) if of == priority
    )


def test_an_error_of_the_program_itself_has_no_row() -> None:
    assert step_for("AttributeError: module 'torch' has no attribute 'x'") is None


def test_no_module_about_trials_lists_errors_again() -> None:
    """``errors.toml`` has them, in its steps and fragments."""
    plain = {line for row in load_matrix().steps for line in row.lines if re.fullmatch(r"[\w ]{9,}", line)}
    plain |= set(next(row.pattern for row in load_matrix().fragments if row.name == "unusable-file").split("|"))
    folder = Path(__file__).parents[3] / "envcheck/rules/trials"
    texts = {
        node.value
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    }
    assert [(line, text) for line in plain for text in texts if line in text] == []


# --- What a pasted text tells of a framework that cannot be imported ------------------------------------------------
MACHINE = "GPU 0: NVIDIA L4 (UUID: GPU-4c2b0a6e-0000-0000-0000-000000000001)\nDriver Version: 550.90.07\n"
UNKNOWN = ("unknown", ExitCode.UNKNOWN, "framework-cannot-use-gpu")


def report_on(text: str) -> Report:
    return session.judge(read_text(text), Request())


def outcome(text: str) -> tuple[str, int, str | None]:
    """The verdict, the exit status, and the rule that the verdict rests on."""
    report = report_on(text)
    leading = next((check.rule for check in report.checks if check.status == "unknown"), None)
    return report.verdict, report.exit_code, report.primary or leading


DENIED = {
    "torch": "torch 2.5.1+cu124\n>>> torch.cuda.is_available()\nFalse\n",
    "torch's report": "PyTorch version: 2.5.1+cu124\nCUDA used to build PyTorch: 12.4\nIs CUDA available: False\n",
    "no device": "torch 2.5.1+cu124\n>>> torch.cuda.device_count()\n0\n",
    "tensorflow": "tensorflow 2.18.0\n>>> tf.config.list_physical_devices('GPU')\n[]\n",
    "tensorflow's device": "tensorflow 2.18.0\n>>> tf.test.gpu_device_name()\n''\n",
    "a session": "onnxruntime-gpu 1.20.1\n>>> session.get_providers()\n['CPUExecutionProvider']\n",
    "jax with its plug-in": "jax 0.5.0\njax-cuda12-plugin 0.5.0\n>>> jax.devices()\n[CpuDevice(id=0)]\n",
    "jax without a release": ">>> jax.devices()\n[CpuDevice(id=0)]\n",
    "a sentence": "PyTorch 2.5.1+cu124 does not see the GPU.\n",
}


@every(DENIED.items())
def test_a_framework_that_finds_no_gpu_leaves_no_verdict_where_the_text_shows_one(name: str, text: str) -> None:
    assert outcome(MACHINE + text) == UNKNOWN, name


def test_it_says_what_to_paste_next() -> None:
    report = report_on(MACHINE + DENIED["torch"])
    (check,) = [each for each in report.checks if each.rule == "framework-cannot-use-gpu"]
    assert "GPU 0 (NVIDIA L4) with driver 550.90.07" in check.message
    assert "paste what it prints" in check.message


@every(
    ("torch 2.5.1+cu124\n>>> torch.cuda.is_available()\nTrue\n", "pass", None),
    ("torch 2.5.1+cpu\n>>> torch.cuda.is_available()\nFalse\n", "fail", "cpu-only-build"),
    ("jax 0.5.0\njaxlib 0.5.0\n>>> jax.devices()\n[CpuDevice(id=0)]\n", "fail", "cpu-only-build"),
    ("CUDA_VISIBLE_DEVICES=-1\n" + DENIED["torch"], "fail", "gpu-hidden"),
    ("sess = InferenceSession(m, providers=['CPUExecutionProvider'])\n" + DENIED["a session"], "pass", None),
    ("jax.config.update('jax_platforms', 'cpu')\n" + DENIED["jax with its plug-in"], "pass", None),
    ("tf.config.set_visible_devices([], 'GPU')\n" + DENIED["tensorflow"], "pass", None),
)
def test_what_else_decides_keeps_its_verdict(text: str, verdict: str, primary: str | None) -> None:
    report = report_on(MACHINE + text)
    assert (report.verdict, report.primary) == (verdict, primary)


def test_a_text_without_a_gpu_is_asked_for_one_as_before() -> None:
    assert outcome(DENIED["torch"])[2] == "text-tells-too-little"


BOTH = "['CUDAExecutionProvider', 'CPUExecutionProvider']\n"
CPU = "['CPUExecutionProvider']\n"
OF_BUILD, OF_SESSION = ">>> ort.get_available_providers()\n", ">>> sess.get_providers()\n"


@every(
    OF_BUILD + BOTH + OF_SESSION + CPU,
    OF_SESSION + CPU + OF_BUILD + BOTH,
    "print(ort.get_available_providers())\nprint(sess.get_providers())\n" + BOTH + CPU,
    OF_BUILD + BOTH + "active providers: " + CPU,
)
def test_the_providers_of_a_session_are_not_those_of_the_build(text: str) -> None:
    assert outcome(MACHINE + "onnxruntime-gpu 1.20.1\n" + text) == UNKNOWN


def test_only_a_build_with_the_provider_tries_to_create_it() -> None:
    text = "onnxruntime-gpu 1.20.1\nFailed to create CUDAExecutionProvider.\n"
    assert {check.rule for check in report_on(text + CPU).checks if check.status == "fail"} == {"library-not-found"}


def test_a_build_without_the_provider_is_one_for_the_cpu() -> None:
    assert report_on(MACHINE + OF_BUILD + CPU).primary == "cpu-only-build"


def test_the_library_that_a_session_lacks_is_the_cause() -> None:
    error = (
        "[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: "
        "libcufft.so.11: cannot open shared object file: No such file or directory\n"
    )
    assert report_on(error + OF_BUILD + BOTH + OF_SESSION + CPU).primary == "cuda-library-missing"


REPORT = (
    "PyTorch version: N/A\nCUDA used to build PyTorch: N/A\nIs CUDA available: N/A\n"
    "GPU models and configuration: GPU 0: NVIDIA L4\nNvidia driver version: 550.90.07\n"
)


@every(
    ("[pip3] torch==2.5.1\n", ("fail", ExitCode.FOUND, "framework-import-fails")),
    ("[conda] pytorch 2.1.0 py3.10_cuda12.1_cudnn8.9.2_0 pytorch\n",
     ("fail", ExitCode.FOUND, "framework-import-fails")),
    ("", ("unknown", ExitCode.UNKNOWN, "framework-import-fails")),
    ("[pip3] torch==2.5.1\nOSError: libcudart.so.12: cannot open shared object file\n",
     ("fail", ExitCode.FOUND, "cuda-library-missing")),
)  # fmt: skip
def test_a_torch_that_its_own_report_could_not_import(listed: str, expected: tuple[str, int, str]) -> None:
    assert outcome(REPORT + listed) == expected


@cases("line", "CUDA used to build PyTorch: 12.1", "ROCM used to build PyTorch: 6.2")
def test_what_pytorch_was_built_with_is_not_its_version(line: str) -> None:
    assert torch_in(f"{line}\nIs CUDA available: False\n").version is None
