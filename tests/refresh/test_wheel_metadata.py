"""METADATA and the members of PyTorch's wheels, read as the matrix writes them."""

import pytest
from packaging.markers import default_environment

from envcheck.refresh.index import IndexFile
from envcheck.refresh.metadata import Metadata, as_specifier, narrower, parse_metadata, pin, python_range, same
from envcheck.refresh.torch_rows import cuda_of, targets_of
from envcheck.refresh.wheel_files import releases
from tests.every import cases, every
from tests.refresh.serving import metadata


@every(
    ("<3.13,>=3.9", ">=3.9,<3.13"), ("<3.0a0,>=1.23", ">=1.23,<3.0"), ("<2.2.4dev0,>=2.0", ">=2.0,<2.2.4"),
    ("==2.2.0+cu121", "==2.2.0"), (">=4.0.0b4", ">=4.0.0b4"), ("==1.6.0rc5,<2rc1", "==1.6.0rc5,<2"),
    # For pip, ==0.19 is 0.19.0 alone; in the matrix, it would be every 0.19.x.
    ("==0.19", "==0.19.0"), ("<=2.5,>2.1", ">2.1.0,<=2.5.0"), ("==1.3.0.*", "==1.3.0.*"),
    ("<=0.4.33,>=0.4.33", "==0.4.33"), ("<=0.4.34,>=0.4.33", ">=0.4.33,<=0.4.34"), ("==0.0.22.post7", "==0.0.22.post7"),
    ("~=3.8.0", "~=3.8.0"), ("!=17.0.0,>=15", ">=15,!=17.0.0"), ("", None), ("===1.0", None), ("\x1b[31m>=1", None),
    (">=1; rm -rf", None),
)  # fmt: skip
def test_a_specifier_of_the_matrix(text: str, specifier: str | None) -> None:
    assert as_specifier(text) == specifier


@cases("one, other, alike",
    (">=3.9,<3.13", "<3.13.0,>=3.9", True), (">=9.8,<10", ">=9.8,<10.0", True), ("==0.9.0.0", "==0.9.0", True),
    ("==2.5", "==2.5.0", False), ("==2.7|>=3.5,<3.8", ">=3.5,<3.8|==2.7", True), (">=3.9", ">=3.10", False),
    ("==0.0.22", "==0.0.22.post7", False),
)  # fmt: skip
def test_the_same_in_other_words(one: str, other: str, alike: bool) -> None:  # noqa: FBT001
    assert same(one, other) is alike


@every(
    (">=1.22,<2", ">=1.22", True), (">=1.22", ">=1.22,<2", False), ("==1.1.0", ">=1.1.0", True),
    ("==2.4.1", "==2.4.2", False), ("==2.5", "==2.5.0|==2.5.1", False), ("==2.5.0|==2.5.1", "==2.5", True),
    ("<=11.6", "<11.7", True), ("<11.7", "<=11.5", False), ("<3", ">=1", False), (">=0.5", ">=0.5,!=0.7.1", False),
    (">=0.5,!=0.7", ">=0.5,!=0.7.1", True), ("==0.0.28.post1", "==0.0.28.post1", True),
    ("==0.0.28", "==0.0.28.post1", False), (">=0.0.28", ">=0.0.28.post2", False), ("nonsense", ">=1", False),
)  # fmt: skip
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


@every(
    ("torch", ("x86_64",), "==2.4.0"), ("NumPy", ("x86_64", "aarch64"), "<2.0.0"),
    ("xformers", ("x86_64",), "==0.0.27.post2"), ("xformers", ("x86_64", "aarch64"), None), ("xformers", (), None),
    ("tensorizer", ("x86_64",), ">=2.9.0"), ("pandas", ("x86_64",), None), ("triton", ("x86_64",), None),
    # An extra that nobody asked for forbids nothing newer.
    ("pyarrow", ("x86_64",), ">=15"), ("mistral-common", ("x86_64",), None),
)  # fmt: skip
def test_a_pin_holds_on_every_machine(distribution: str, machines: tuple[str, ...], specifier: str | None) -> None:
    assert pin(VLLM, distribution, machines) == specifier


@cases("asking", "3.8", "3.12", "3.13", "3.99")
@cases("requires, specifier",
    (["triton==3.1.0; platform_system == 'Linux' and python_version < '3.13'"], "==3.1.0"),
    (["triton==3.1.0; python_version >= '3.9'", "triton==3.0.0; python_version < '3.9'"], "==3.1.0"),
    (["triton==3.1.0; python_version >= '3.11'", "triton==3.0.0; python_version < '3.11'"], None),
    (["triton==3.1.0; '3.11' <= python_version", "triton==3.0; python_version < '3.11'"], None),
    (["triton==3.1.0; python_version == '3.14'"], None),
    (["triton==3.1.0; implementation_name == 'cpython'"], "==3.1.0"),
)  # fmt: skip
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


@cases("line, cuda",
    ("cuda = '9.0.176'", "9.0"), ("cuda: Optional[str] = '12.4'", "12.4"), ('cuda = "13.0"', "13.0"),
    ("cuda = None", ""), ("cuda: Optional[str] = None", ""), ("cudart = '12.4'", None),
    ("cuda = open('/etc/passwd')", None),
)  # fmt: skip
def test_the_cuda_of_a_build(line: str, cuda: str | None) -> None:
    assert cuda_of(f"__version__ = '2.5.1'\n{line}\nhip = None\n") == cuda


@cases("library, targets",
    (b"\x00sm_50 sm_60 sm_90\x00", ("sm_50", "sm_60", "sm_90")),
    (b"\x00sm_90 sm_75 sm_120 compute_120\x00", ("sm_75", "sm_90", "sm_120", "compute_120")),
    (b"\x00sm_70 sm_75\x00..\x00sm_70 sm_75 sm_80\x00", ("sm_70", "sm_75", "sm_80")),
    (b"\x00sm_90a sm_100f\x00", ("sm_90a", "sm_100f")), (b"\x00sm_90\x00", ()), (b"", ()),
)  # fmt: skip
def test_the_architectures_in_a_library(library: bytes, targets: tuple[str, ...]) -> None:
    assert targets_of(library) == targets


def test_bounds_as_old_metadata_wrote_them_are_read() -> None:
    found = parse_metadata(metadata("a", "1", "torch (>=1.9.*)", "numpy >=1.17.2", "no requirement!"))
    assert [str(asked) for asked in found.requirements] == ["torch>=1.9", "numpy>=1.17.2"]
