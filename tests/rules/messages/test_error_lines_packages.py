"""Error lines about packages: what they name on their own, and beside what else a paste tells."""

from __future__ import annotations

import time

import pytest

from envcheck.compat.error_lines import named_beside, named_by
from envcheck.compat.load import load_matrix
from envcheck.enrich.complete import complete
from envcheck.importers import read_text
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate
from tests.every import every
from tests.rules.machines import ALL, check_of, error
from tests.rules.messages.lines_packages import EXAMPLES, HARMLESS

WARNINGS = {"cupy-multiple-packages"}
PAIRS = [(problem, line) for problem, lines in EXAMPLES.items() for line in lines]


def cause_in(text: str) -> str | None:
    """The root cause in a pasted text."""
    knowledge = load_matrix()
    found = primary(evaluate(complete(read_text(text), knowledge), knowledge, all_rules(), ALL))
    return found.rule if found else None


@every(PAIRS)
def test_a_line_names_its_problem(problem: str, line: str) -> None:
    found = named_beside(line, (line,))
    assert found is not None
    assert found.problem == problem


@every(HARMLESS)
def test_what_others_print_too_names_nothing(line: str) -> None:
    found = named_beside(line, (line,))
    assert found is None or found.problem not in EXAMPLES


@every(EXAMPLES)
def test_a_line_alone_becomes_the_finding_of_its_rule(problem: str) -> None:
    found = check_of(problem, error(EXAMPLES[problem][0], line=3))
    assert (found.id, found.status) == (f"{problem}@machine", "warn" if problem in WARNINGS else "fail")
    assert found.fixes


def test_a_line_without_end_does_not_hang() -> None:
    started = time.process_time()
    for text in (
        "requires torch==2.5 but you have " * 400,
        "bf16 requires " * 900,
        "undefined symbol: " * 900,
        "fp8 " * 900,
    ):
        named_by(text)
    # Patterns that back-track over it take minutes.
    assert time.process_time() - started < 20


# --- in a paste ---------------------------------------------------------------------------------------------------

PASTES = {
    "torch==2.14.0+cu126\ntorchvision==0.28.0+cu126\nRuntimeError: operator torchvision::nms does not exist": (
        "torch-family-mismatch"
    ),
    "torch==2.3.0\nflash-attn==2.5.7\nflash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi": (
        "extension-built-for-other-torch"
    ),
    "onnxruntime==1.16.1\nonnxruntime-gpu==1.16.1": "onnxruntime-cpu-and-gpu",
    "onnxruntime-gpu==1.23.2\nUserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider "
    "names.Available providers: 'AzureExecutionProvider, CPUExecutionProvider'": "onnxruntime-cpu-and-gpu",
    "cupy-cuda11x==13.3.0\ncupy-cuda12x==13.3.0": "cupy-multiple-packages",
    "jax==0.9.0.1\njaxlib==0.9.0.1\njax-cuda12-plugin==0.9.2": "jax-plugin-mismatch",
    "tensorflow==2.15.0\nnumpy==2.0.1": "numpy-abi-mismatch",
    "flash-attn==2.6.0.post1\nGPU: Tesla V100": "gpu-feature-unsupported",
}


@every(PASTES)
def test_what_a_list_of_packages_tells(text: str) -> None:
    assert cause_in(text) == PASTES[text]


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.5.1\ntorchvision==0.20.1\ntorchaudio==2.5.1\nnumpy==2.1.2\ntriton==3.1.0",
        "jax==0.9.2\njaxlib==0.9.2\njax-cuda12-plugin==0.9.2\njax-cuda12-pjrt==0.9.2\nnumpy==2.1.2",
        "onnxruntime-gpu==1.23.2\nnumpy==2.1.2",
        "cupy-cuda12x==13.3.0\nnumpy==2.1.2",
        "flash-attn==2.6.3\nGPU: A100\ntorch==2.4.0",
        "tensorflow==2.15.0\nnumpy==1.26.4",
    ],
)
def test_a_sound_list_has_no_cause(text: str) -> None:
    assert cause_in(text) is None


@every(PAIRS)
def test_a_pasted_line_is_taken_for_an_error(problem: str, line: str) -> None:
    assert [found.text for found in read_text(line).observed_errors] == [line.strip()], problem
