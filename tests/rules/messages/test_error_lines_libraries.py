"""Error lines about libraries: what they name on their own, and beside what else a paste tells."""

from __future__ import annotations

import pytest

from envcheck.compat.error_lines import named_beside, named_by
from envcheck.compat.load import load_matrix
from envcheck.enrich.complete import complete
from envcheck.importers import read_text
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate
from tests.every import every
from tests.rules.machines import ALL
from tests.rules.messages.lines_libraries import EXAMPLES, HARMLESS

PAIRS = [(problem, line) for problem, lines in EXAMPLES.items() for line in lines]
OLD_CUBLAS = "Found cuBLAS version 120205, but JAX was built against version 120304, which is newer"
MISSING = "cannot open shared object file: No such file or directory"


def cause_in(text: str) -> str | None:
    """The root cause in a pasted text."""
    knowledge = load_matrix()
    found = primary(evaluate(complete(read_text(text), knowledge), knowledge, all_rules(), ALL))
    return found.rule if found else None


@every(PAIRS)
def test_a_pasted_line_is_taken_for_an_error_and_named(problem: str, line: str) -> None:
    assert [error.text for error in read_text(line).observed_errors] == [line.strip()]
    found = named_beside(line, (line,))
    assert found is not None
    assert found.problem == problem


@every(HARMLESS)
def test_a_harmless_line_names_nothing(line: str) -> None:
    assert named_by(line) is None


NVRTC = {
    **dict.fromkeys(("11.0", "11.1.1", "10.2", "12.4"), "cuda-major-mismatch"),
    **dict.fromkeys(("11.2", "11.5.1", "11.8"), "cuda-library-missing"),
}
"""Which CUDA has ``libnvrtc.so.11.2``: that very release and all later ones of CUDA 11."""


@every(
    [
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
    ]
)
def test_what_else_is_told_says_why_a_library_is_missing(text: str, expected: str) -> None:
    assert cause_in(text) == expected


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("libcudart.so.11.0", None),
        ("libcudart-d0da41ae.so.11.0", None),
        ("libnvrtc-672ee683.so.11.2", None),
        ("libcupti.so.2022.3.0", None),
        ("libcudnn.so.8.9.7", "8.9.7"),
        ("libcublas-3b81d170.so.11.10.3.66", "11.10.3.66"),
    ],
)
def test_only_a_full_number_in_a_pasted_path_is_a_release(file: str, version: str | None) -> None:
    found = read_text(f"/opt/lib/{file}").libraries
    assert found is not None
    assert [library.on_disk for library in found.items] == [version]
