"""Packages that are compiled against PyTorch, by the nvcc that was named. The rows are written for the test."""

from __future__ import annotations

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.matrix import Matrix
from envcheck.compat.names import scheme
from envcheck.compat.question.wheels import published
from envcheck.compat.specifier import covered, parse_version
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import answer, questions, shown, verdict
from tests.every import every

ROWS = """\
[sources.page]
title = "Written for a test"
address = "https://example.org"
read = "2026-11-20"

[[release]]
name = "torch-extension"
versions = ">=1.10"
source = "page"

[[release]]
name = "our-ops"
versions = "==1.0"
needs = { torch = ">=1.9", nvcc = ">=10.0" }
source = "page"
"""


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    folder = tmp_path_factory.mktemp("own")
    (folder / "rows.toml").write_text(ROWS)
    return load_matrix((str(folder),))


@pytest.mark.parametrize(
    "question",
    questions("""
our-ops==1.0 nvcc==12.4 torch==2.5.1+cu118
our-ops==1.0 nvcc==11.8 torch==2.5.1
our-ops==1.0 nvcc==12.4 torch==2.5.1 cuda==11.8
our-ops==1.0 nvcc==12 torch==2.5.1+cu118
our-ops==1.0 nvcc==13.0 torch==2.5.1+cu118 gpu==H100 driver==580
flash-attn==2.7.0 nvcc==12.4 torch==2.5.1+cu118
deepspeed==0.16.0 nvcc==11.8 torch==2.5.1+cu124
torch-scatter==2.1.2 nvcc==11.8 torch==2.5.1+cu124
torch-sparse==0.6.18 nvcc==13.0 torch==2.5.1+cu124
torch-cluster==1.6.3 nvcc==11.8 torch==2.5.1+cu124
torch-spline-conv==1.2.2 nvcc==11.8 torch==2.5.1+cu124
mamba-ssm==2.2.4 nvcc==11.8 torch==2.5.1+cu124
causal-conv1d==1.5.0 nvcc==11.8 torch==2.5.1+cu124
mmcv==2.2.0 nvcc==11.8 torch==2.3.0+cu121
mmcv-full==1.7.2 nvcc==12.1 torch==2.0.1+cu118
detectron2==0.6 nvcc==11.8 torch==2.1.0+cu121
pytorch3d==0.7.8 nvcc==11.8 torch==2.4.1+cu124
grouped-gemm==0.1.6 nvcc==11.8 torch==2.3.0+cu121
apex==0.1 nvcc==11.8 torch==2.5.1+cu124
"""),
)
def test_pytorch_refuses_another_major(matrix: Matrix, question: str) -> None:
    found = answer(question, matrix)
    assert found.verdict == "incompatible", shown(found)
    assert "PyTorch refuses nvcc" in found.reasons[0].message
    assert found.reasons[0].sources
    if "cuda==" not in question:
        assert any(each.startswith(("nvcc ", "torch ")) for each in found.suggestions)


@pytest.mark.parametrize(
    "question",
    questions("""
our-ops==1.0 nvcc==12.4 torch==2.5.1
our-ops==1.0 nvcc==12.1 torch==2.5.1
our-ops==1.0 nvcc==11.6 torch==2.5.1+cu118
our-ops==1.0 nvcc==12 torch==2.5.1+cu121
our-ops==1.0 torch==2.5.1+cu118
flash-attn==2.7.0 nvcc==11.8 torch==2.5.1+cu118
mamba-ssm==2.2.4 nvcc==12.1 torch==2.5.1+cu124
apex==0.1 nvcc==12.4 torch==2.5.1+cu124
nvcc==12.1 torch==2.5.1
"""),
)
def test_another_minor_is_none(matrix: Matrix, question: str) -> None:
    found = answer(question, matrix)
    assert found.verdict == "compatible", shown(found)


def test_apex_refuses_another_minor_too(matrix: Matrix) -> None:
    found = answer("apex==0.1 nvcc==12.6 torch==2.5.1+cu124", matrix)
    assert found.verdict == "incompatible", shown(found)
    assert "it refuses nvcc 12.6, which has another minor version" in found.reasons[0].message
    assert "nvcc 12.4" in found.suggestions


@pytest.mark.parametrize(
    "question",
    questions("""
mamba-ssm==2.2.4 nvcc==11.3 torch==2.5.1+cu118
torch-sparse==0.6.18 nvcc==12.4 gcc==14 torch==2.5.1+cu124
mamba-ssm==2.2.4 nvcc==12.4 gpu==RTX,5090 torch==2.5.1+cu124
"""),
)
def test_what_nvcc_itself_needs_holds_for_an_extension(matrix: Matrix, question: str) -> None:
    assert answer(question, matrix).verdict == "incompatible"


@pytest.mark.parametrize(
    "question",
    questions("""
nvcc==12.4 torch==2.5.1+cu118
nvcc==11.8 torch==2.5.1 driver==550.54.14
nvcc==12.4 torch==2.5.1+cpu
our-ops==1.0 nvcc==11.8 torch==1.9.0 cuda==10.2
"""),
)
def test_where_nothing_is_compiled_or_no_row_tells_it_is_open(matrix: Matrix, question: str) -> None:
    found = answer(question, matrix)
    assert found.verdict != "incompatible", shown(found)


def test_what_is_open_says_why(matrix: Matrix) -> None:
    found = answer("nvcc==12.4 torch==2.5.1+cu118", matrix)
    assert found.verdict == "unknown"
    assert "runs without nvcc" in found.reasons[0].message


def compiled() -> list[ReleaseRow]:
    """What is compiled against PyTorch 2.5.1, and by nvcc 12.6."""
    found: list[ReleaseRow] = []
    for row in load_matrix().releases:
        needs = [(row.needs.get(name, ""), parse_version(text, scheme(name))) for name, text in BESIDE]
        if all(spec and version and covered(spec, version) == "all" for spec, version in needs):
            found.append(row)
    return [row for row in found if published(load_matrix(), row.name)]


BESIDE = (("torch", "2.5.1"), ("nvcc", "12.6"))


@every(compiled)
def test_a_toolkit_beside_another_cuda_of_pytorch_is_not_refused(row: ReleaseRow) -> None:
    version = next(one for one in published(load_matrix(), row.name) if covered(row.versions, one) == "all")
    asked = f"{row.name}=={version} torch==2.5.1"
    assert verdict(f"{asked} cuda==12.6") == "unknown"
    assert verdict(f"{asked} cuda==13.0") == "incompatible"
