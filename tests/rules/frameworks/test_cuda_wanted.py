"""CPU builds in texts that list no GPUs: judged where the text wants CUDA."""

from __future__ import annotations

import pytest

from envcheck.snapshot import Distribution, Driver, Environment, Framework, Listing, ObservedError, Snapshot
from tests.rules.machines import but, check_of, checks_of, gpus, machine, torch, variables, venv, with_venv

CPU_BUILD = torch("2.5.1+cpu", None)


def with_package(name: str, version: str, framework: Framework = CPU_BUILD) -> Listing[Environment]:
    """A pasted list of packages: torch, and another one."""
    other = Distribution(source="pasted text", name=name, version=version)
    return Listing(items=(venv(framework, source="pasted text", distributions=(other,)),))


def text_of(*errors: str, **changes: object) -> Snapshot:
    """What a text tells that lists no GPUs: torch's CPU build, and lines of errors."""
    found = with_venv(Snapshot(), venv(CPU_BUILD, source="pasted text"))
    lines = tuple(ObservedError(source="pasted text", text=text, line=9) for text in errors)
    return but(found, observed_errors=lines, **changes)


WANTED: list[tuple[str, Snapshot, str]] = [
    ("a driver", text_of(driver=Driver(source="pasted text", release="535.54.03")), "535.54.03"),
    ("what a driver speaks", text_of(driver=Driver(source="pasted text", cuda="12.2")), "12.2"),
    ("a choice of GPUs", text_of(variables=variables(CUDA_VISIBLE_DEVICES="0,1")), "0,1"),
    ("CUDA's libraries", text_of(environments=with_package("nvidia-nccl-cu12", "2.27.5")), "2.27.5"),
    ("conda's toolkit", text_of(environments=with_package("cudatoolkit", "11.3.1")), "11.3.1"),
    (
        "an error",
        text_of("ImportError: libcudart.so.12: cannot open shared object file"),
        "ImportError: libcudart.so.12: cannot open shared object file",
    ),
    ("a question", text_of(">>> torch.cuda.is_available()"), ">>> torch.cuda.is_available()"),
]


@pytest.mark.parametrize(("sign", "snapshot", "value"), WANTED, ids=[each[0] for each in WANTED])
def test_a_cpu_build_in_a_text_that_wants_cuda(sign: str, snapshot: Snapshot, value: str) -> None:
    found = check_of("cpu-only-build", snapshot)
    assert (found.status, found.confidence, found.decided_by) == ("fail", "medium", "declared")
    assert value in [each.value for each in found.evidence]


@pytest.mark.parametrize(
    "snapshot",
    [
        text_of(),
        text_of("ValueError: too many values to unpack"),
        text_of("torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated."),
        text_of("E0000 cuda_dnn.cc:8310] Unable to register cuDNN factory: one has already been registered"),
        text_of(variables=variables(CUDA_VISIBLE_DEVICES="")),
        text_of(environments=with_package("nvidia-ml-py", "13.590.48")),
        text_of("CUDA error: boom", environments=with_package("numpy", "2.0", torch("2.5.1+rocm6.2", None, hip="6.2"))),
    ],
)
def test_a_cpu_build_where_nothing_wants_cuda(snapshot: Snapshot) -> None:
    assert checks_of("cpu-only-build", snapshot) == ()


def test_a_cpu_build_where_a_gpu_was_looked_for_in_vain() -> None:
    (found,) = checks_of("cpu-only-build", text_of("CUDA error: boom", gpus=gpus(complete=True)))
    assert found.status == "note"


def test_a_gpu_that_is_listed_needs_no_sign() -> None:
    found = check_of("cpu-only-build", with_venv(machine(), venv(CPU_BUILD)))
    assert found.confidence == "high"
    assert [each.what for each in found.evidence] == ["torch: version", "CPU only", "environment"]
