"""METADATA and the members of PyTorch's wheels, read as the matrix writes them."""

import pytest
from packaging.markers import default_environment

from envcheck.refresh.index import IndexFile
from envcheck.refresh.metadata import Metadata, as_specifier, narrower, parse_metadata, pin, python_range, same
from envcheck.refresh.torch_rows import cuda_of, targets_of
from envcheck.refresh.wheel_files import releases
from tests.every import cases, every_tabled, tabled
from tests.refresh.serving import metadata


@every_tabled
def test_a_specifier_of_the_matrix(text: str, specifier: str | None) -> None:
    assert as_specifier(text) == specifier


@tabled
def test_the_same_in_other_words(one: str, other: str, alike: bool) -> None:  # noqa: FBT001
    assert same(one, other) is alike


@every_tabled
def test_what_documents_may_narrow(one: str, other: str, holds: bool) -> None:  # noqa: FBT001
    assert narrower(one, other) is holds


VLLM = parse_metadata(
    metadata(
        "vllm", "0.5.5", "torch==2.4.0", "numpy<2.0.0",
        "xformers (==0.0.27.post2) ; platform_system == 'Linux' and platform_machine == 'x86_64'", "ray>=2.9",
        "tensorizer>=2.9.0; extra == 'tensorizer'", "pandas>=2; extra == 'bench'", "pandas==2.1.0; extra == 'ci'",
        "pyarrow>=15,<18; extra == 'data'", "mistral-common<1.4; extra == 'mistral'",
        "this is ( not a requirement", python="<3.13,>=3.9",
    ),
)  # fmt: skip


@every_tabled
def test_a_pin_holds_on_every_machine(distribution: str, machines: tuple[str, ...], specifier: str | None) -> None:
    assert pin(VLLM, distribution, machines) == specifier


@cases("asking", "3.8", "3.12", "3.13", "3.99")
@tabled
def test_the_asking_python_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, asking: str, requires: list[str], specifier: str | None
) -> None:
    here = {**default_environment(), "python_version": asking, "implementation_name": "pypy"}
    monkeypatch.setattr("packaging.markers.default_environment", lambda: here)
    assert pin(parse_metadata(metadata("a", "1", *requires, python=">=3.9,<3.14")), "triton") == specifier


def test_what_metadata_says() -> None:
    assert (VLLM.requires_python, len(VLLM.requirements)) == ("<3.13,>=3.9", 9)
    assert parse_metadata(b"\xff\xfe nothing of the kind") == Metadata("", ())


@cases(
    "names, requires_python, range_", (["a-1-cp38-abi3-manylinux1_x86_64.whl"], "<3.14,>=3.9", ">=3.9,<3.14"),
    (["a-1-py3-none-any.whl"], ">=3.10,!=3.14.1", ">=3.10"), (["a-1-py3-none-any.whl"], "", None),
    ([f"a-1-cp3{minor}-cp3{minor}-manylinux1_x86_64.whl" for minor in (8, 9, 10, 11)], ">=3.8", ">=3.8,<3.12"),
    ([f"a-1-cp{each}-cp{each}-manylinux1_x86_64.whl" for each in (27, 35, 36)], "", "==2.7|>=3.5,<3.7"),
    ([f"a-1-cp3{minor}-cp3{minor}-manylinux1_x86_64.whl" for minor in (8, 10)], "", "==3.8|==3.10"),
    (["a-1-cp310-cp310-win_amd64.whl"], "", "==3.10"),
)  # fmt: skip
def test_the_range_of_pythons(names: list[str], requires_python: str, range_: str | None) -> None:
    (release,) = releases([IndexFile(name, "https://index.example") for name in names], "a")
    assert python_range(release, requires_python) == range_


@tabled
def test_the_cuda_of_a_build(line: str, cuda: str | None) -> None:
    assert cuda_of(f"__version__ = '2.5.1'\n{line}\nhip = None\n") == cuda


@tabled
def test_the_architectures_in_a_library(library: bytes, targets: tuple[str, ...]) -> None:
    assert targets_of(library) == targets


def test_bounds_as_old_metadata_wrote_them_are_read() -> None:
    found = parse_metadata(metadata("a", "1", "torch (>=1.9.*)", "numpy >=1.17.2", "no requirement!"))
    assert [str(asked) for asked in found.requirements] == ["torch>=1.9", "numpy>=1.17.2"]
