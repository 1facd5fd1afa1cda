"""The page where an environment holds many frameworks and extensions of them."""

import itertools
from typing import Any

import msgspec

from envcheck.model.checks import Check, Report
from envcheck.model.snapshot import Framework, Listing
from envcheck.report import Options, render
from envcheck.report.page.pen import LINES
from tests.report.examples import HOME, VENV, check, gpu, gpu_checks, machine, report, stack_checks, torch_subject

LEADING = [
    ("torch", "2.5.1+cu124", "12.4"), ("tensorflow", "2.18.0", "12.5"), ("jax", "0.4.35", "12"),
    ("onnxruntime", "1.31.1", None), ("cupy-cuda12x", "13.3.0", "12"), ("ctranslate2", "4.8.5", "12"),
    ("numba", "0.68.1", None),
]  # fmt: skip
EXTENSIONS = [
    ("torchvision", "0.20.1+cu124"), ("torchaudio", "2.5.1+cu124"), ("vllm", "0.6.3"),
    ("flash-attn", "2.7.4.post1+cu12torch2.5cxx11abiFALSE"), ("xformers", "0.0.28.post3"), ("bitsandbytes", "0.45.0"),
    ("deepspeed", "0.15.4"), ("jax-cuda12-plugin", "0.4.35"),
]  # fmt: skip


def frameworks() -> list[Framework]:
    leading = [Framework(source="file", name=name, version=version, cuda=cuda) for name, version, cuda in LEADING]
    return leading + [
        Framework(source="file", name=name, version=version, extends="torch") for name, version in EXTENSIONS
    ]


def page(*checks: Check, found: list[Framework] | None = None, **options: Any) -> tuple[Report, list[str]]:
    gpus = (gpu(0),)
    snapshot = machine(gpus, None)
    assert snapshot.environments
    (environment,) = snapshot.environments.items
    listing = Listing(items=tuple(frameworks() if found is None else found), complete=True)
    changed = msgspec.structs.replace(environment, frameworks=listing)
    environments = msgspec.structs.replace(snapshot.environments, items=(changed,))
    snapshot = msgspec.structs.replace(snapshot, environments=environments)
    made = report([*stack_checks(), *gpu_checks(gpus), *checks], snapshot)
    return made, render(made, "text", Options(home=HOME, **options)).splitlines()


def row(lines: list[str], label: str) -> str:
    """A row of the stack with the lines that continue it."""
    start = next(number for number, line in enumerate(lines) if line.strip().startswith(label))
    more = itertools.takewhile(lambda line: line.startswith(" " * 18), lines[start + 1 :])
    return " ".join(line.strip() for line in (lines[start], *more))


def of(name: str, rule: str, status: Any) -> Check:
    return check(rule, status, f"{name}: {rule}", layer="framework", scope="env", subject=torch_subject(VENV, name))


def test_frameworks_and_extensions_have_a_row_each() -> None:
    _, lines = page()
    assert len(lines) <= LINES
    shown = "torch 2.5.1+cu124, tensorflow 2.18.0 (CUDA 12.5), jax 0.4.35 (CUDA 12), onnxruntime 1.31.1 and 3 more"
    assert row(lines, "Frameworks") == f"Frameworks  ok    {shown}"
    assert "torchvision 0.20.1+cu124, torchaudio 2.5.1+cu124, vllm 0.6.3" in row(lines, "Extensions")
    assert "and 4 more" in row(lines, "Extensions")


def test_what_something_is_wrong_with_comes_first() -> None:
    wrong = [of("ctranslate2", "cpu-only-build", "warn"), of("deepspeed", "gpu-code-missing", "warn")]
    _, lines = page(*wrong, of("numba", "cpu-only-build", "note"))
    assert len(lines) <= LINES
    assert row(lines, "Frameworks").startswith("Frameworks  WARN  ctranslate2 4.8.5 (CUDA 12), torch 2.5.1+cu124,")
    assert row(lines, "Extensions").startswith("Extensions  WARN  deepspeed 0.15.4, torchvision")


def test_a_page_full_of_findings_stays_a_page() -> None:
    found = [
        of(name, "gpu-code-missing", "fail")
        for name in [*(each[0] for each in LEADING), *(each[0] for each in EXTENSIONS)]
    ]
    made, lines = page(*found)
    assert made.summary.fail == 15
    assert len(lines) <= LINES
    assert any(line.strip().startswith("Extensions") for line in lines)


def test_without_extensions_there_is_no_row_of_them() -> None:
    _, lines = page(found=frameworks()[:2])
    assert not any("Extensions" in line for line in lines)


def test_extensions_alone() -> None:
    _, lines = page(found=frameworks()[-1:])
    assert row(lines, "Frameworks").endswith("none")
    assert "jax-cuda12-plugin 0.4.35" in row(lines, "Extensions")


def test_a_problem_of_the_files_is_told_beside_the_name() -> None:
    broken = Framework(source="file", name="vllm", version="0.6.3", extends="torch", problem="its folder is not there")
    _, lines = page(found=[*frameworks()[:1], broken], verbose=True)
    assert "vllm 0.6.3 (its folder is not there)" in row(lines, "Extensions")
