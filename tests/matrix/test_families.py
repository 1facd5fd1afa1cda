"""One catalogue of library families: the probes hold the same rows, and no module lists them again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.relations.libraries import cuda_majors, row_of
from envcheck.rules.facts.library_names import name_of, toolkit_extra, wheel_of, wheel_with
from probes.kit import library_names

ROOT = Path(__file__).parents[2]
OF_OTHERS = {
    "envcheck/compat/performance/quantities.py": "the libraries whose work is measured, and their titles",
    "envcheck/tui/widgets/stack.py": "the libraries that the application shows, and their titles",
    "probes/frameworks/numba.py": "what Numba opens",
    "probes/loader/symbols.py": "how the functions of libraries begin",
    "probes/kit/library_names.py": "the catalogue, as probes need it",
    "probes/cuda_libraries/answer.py": "the function that each library answers its version by",
    "probes/trials/libraries.py": "the same, of loaded ones",
    "probes/frameworks/cupy.py": "names of CuPy's modules",
    "probes/installations/parts.py": "names in the files of frameworks",
    "probes/installations/pathfinder.py": "cuda-pathfinder's own tables",
}
"""Modules that name several families for what only they know of them."""
_FEW = 3
FILES = ("cublasLt", "nvblas", "cudnn_ops", "nvrtc-builtins", "nppial", "cusparseLt", "nvinfer_plugin", "cudss")


def test_probes_hold_the_rows_of_the_catalogue() -> None:
    assert [(each.name, each.files, each.numbered, each.part, each.owners) for each in library_names.FAMILIES] == [
        (row.name, row.files, row.numbered, row.part, row.owners) for row in load_matrix().families
    ]
    held = {each.wheel: each.sonames for each in library_names.FAMILIES if each.sonames}
    assert held == {row.wheel: row.sonames for row in load_matrix().families if row.sonames}


def test_every_file_that_a_probe_finds_is_of_the_same_family_everywhere() -> None:
    for name in (
        "cublasLt",
        "nvblas",
        "cudnn_ops",
        "nvrtc-builtins",
        "nppial",
        "cusparseLt",
        "nvinfer_plugin",
        "cudss",
    ):
        found, row = library_names.row_of(name), row_of(name)
        assert found is not None
        assert row is not None
        assert found.name == row.name
        assert name_of(f"lib{name}.so.12") is not None
    assert library_names.row_of("jpeg") is None


@pytest.mark.parametrize(
    ("family", "wheel", "extra"),
    [
        ("cublasLt", "nvidia-cublas", "cublas"),
        ("nvrtc-builtins", "nvidia-cuda-nvrtc", "nvrtc"),
        ("cudart", "nvidia-cuda-runtime", "cudart"),
        ("nppial", "nvidia-npp", "npp"),
        ("cusparseLt", "nvidia-cusparselt", None),
        ("cudnn_ops", "nvidia-cudnn", None),
        ("nvinfer", None, None),
    ],
)
def test_wheels_come_from_the_catalogue(family: str, wheel: str | None, extra: str | None) -> None:
    assert wheel_with(family) == wheel
    assert toolkit_extra(family) == extra
    assert wheel is None or wheel_of(f"{wheel}-cu12") is not None


def test_no_module_lists_families_again() -> None:
    words = {row.name.lower() for row in load_matrix().families} - {"cuda", "magma", "nvidia-ml"}
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("envcheck", "probes")
        for path in (ROOT / folder).rglob("*.py")
        if _named(path.read_text(), words) > _FEW
        and any(_named(text, words) > _FEW for text in _lists(ast.parse(path.read_text())))
    }
    assert found == set(OF_OTHERS)


def _named(text: str, words: set[str]) -> int:
    return len(set(re.findall(r"[a-z]+(?:_host)?", text.lower())) & words)


def _lists(tree: ast.Module) -> Iterator[str]:
    """Texts and collections of texts, without docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Set | ast.Dict)
            and id(node) not in said
        ):
            parts = (part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
            yield " ".join(str(part.value) for part in parts)


@pytest.mark.parametrize("family", ["cublas", "cudart", "cufft", "curand", "cusolver", "cusparse", "nppc"])
@pytest.mark.parametrize("cuda", ["8.0", "9.0", "9.1", "9.2", "10.0"])
def test_files_of_old_toolkits_carry_the_number_of_the_toolkit(family: str, cuda: str) -> None:
    assert cuda_majors(load_matrix(), family, cuda) == {int(cuda.partition(".")[0])}


def test_files_with_a_number_of_their_own_belong_to_the_toolkits_that_bring_them() -> None:
    assert cuda_majors(load_matrix(), "cufft", "10") == {11}
    assert cuda_majors(load_matrix(), "curand", "10.3") == {11, 12, 13}
