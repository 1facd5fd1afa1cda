"""What is offered for an error of a trial that names no problem: each row with errors of its kind."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from envcheck.compat.load import load_matrix
from envcheck.rules.trials.next_step import step_for
from tests.every import every

EXAMPLES = {
    10: ["crashed: SIGBUS while importing torch"],
    20: ["crashed: SIGILL while importing tensorflow"],
    30: ["crashed: SIGSEGV while importing torch", "crashed: SIGABRT while computing a convolution"],
    40: [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorMemoryAllocation: out of memory",
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes.",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,024 bytes",
    ],
    50: [
        "killed by SIGKILL while importing torch",
        "RuntimeError: out of host memory",
        "ImportError: libx.so: Cannot allocate memory",
        "MemoryError",
    ],
    60: ["killed by SIGTERM while importing torch"],
    70: ["timed out after 150 s while importing torch"],
    80: ["ArithmeticError: the result is wrong"],
    90: ["OnCpuError: JAX_PLATFORMS=cpu has JAX compute on cpu"],
    100: [
        "ImportError: /x/liba.so: undefined symbol: f",
        "ImportError: /x/liba.so: symbol f, version X_1 not defined in file libb.so with link time reference",
        "ImportError: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /x/liba.so)",
        "ImportError: liba.so.1: cannot open shared object file: No such file or directory",
        "ImportError: /x/liba.so: wrong ELF class: ELFCLASS32",
        "ImportError: /x/liba.so: file too short",
        "ImportError: /x/liba.so: invalid ELF header",
    ],
    110: ["PermissionError: [Errno 13] '/x/a.py'", "ImportError: /x/liba.so: Permission denied"],
    120: [
        "RuntimeError: CUDA error: unspecified launch failure",
        "CUDARuntimeError: cudaErrorLaunchFailure: unspecified launch failure",
        "INTERNAL: CUDA_ERROR_LAUNCH_FAILED",
        "RuntimeError: cudaMalloc failed",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "RuntimeError: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUSOLVERError: CUSOLVER_STATUS_INTERNAL_ERROR",
        "cupy.cuda.cufft.CuFFTError: CUFFT_INTERNAL_ERROR",
    ],
    130: [
        "OnCpuError: TensorFlow lists no GPU, and computes on the CPU",
        "OnCpuError: CTranslate2 counts no CUDA device",
        "CUDAExecutionProvider was left out and the CPU computes",
        "OnCpuError: the result is on cpu:0",
        "OnCpuError: JAX computes on cpu by default",
        "OnCpuError: llama.cpp says that it cannot offload to a GPU",
    ],
    140: ["exited with status 1 while importing torch"],
}


@every((priority, error) for priority, errors in EXAMPLES.items() for error in errors)
def test_the_step_for_an_error(priority: int, error: str) -> None:
    row = step_for(error)
    assert row is not None
    assert row.priority == priority


@every((row.priority, line) for row in load_matrix().steps for line in row.lines)
def test_each_pattern_has_an_example(priority: int, line: str) -> None:
    assert any(re.search(line, error, re.IGNORECASE) for error in EXAMPLES[priority])


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
