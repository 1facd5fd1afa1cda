"""Modules that probes import by name, which no type checker follows: the name must lead to a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "probes").rglob("*.py"))


def by_name(source: str) -> Iterator[ast.Call]:
    """The calls of ``import_module`` with a relative name."""
    for node in ast.walk(ast.parse(source)) if "import_module" in source else ():
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and called.endswith("import_module") and relative(node):
            yield node


def relative(node: ast.Call) -> str:
    """The relative name as far as it is written out; empty where it is none, or known only at run time."""
    first = node.args[0]
    formatted = isinstance(first, ast.JoinedStr)
    if isinstance(first, ast.JoinedStr):
        first = first.values[0]
    name = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    if not name.startswith("."):
        return ""
    return name.rpartition(".")[0] if formatted else name  # f"..frameworks.{name}": the folder at least


def wrong(file: Path, source: str) -> list[str]:
    """Relative names that lead nowhere from ``file``, or that lack the package to start from."""
    found = []
    for node in by_name(source):
        name = relative(node)
        levels = len(name) - len(name.lstrip("."))
        place = file.parents[levels - 1].joinpath(*name[levels:].split("."))
        package = [ast.unparse(given) for given in (*node.args[1:], *(word.value for word in node.keywords))]
        if not (place.with_suffix(".py").is_file() or place.is_dir()) or package != ["__package__"]:
            found.append(ast.unparse(node))
    return found


def test_every_module_imported_by_name_is_there() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in FILES}
    assert {file.name for file, source in sources.items() if any(by_name(source))} >= {"numba.py", "triton.py"}
    assert {str(file.relative_to(ROOT)): bad for file, text in sources.items() if (bad := wrong(file, text))} == {}


@pytest.mark.parametrize(
    ("call", "right"),
    [
        ('importlib.import_module("..trials.triton_kernel", __package__)', True),
        ('import_module("..trials.triton_kernel", package=__package__)', True),
        ('importlib.import_module(f"..frameworks.{name}", __package__)', True),
        ('importlib.import_module("torch")', True),
        ('importlib.import_module(".trials.triton_kernel", __package__)', False),
        ('importlib.import_module("...trials.triton_kernel", __package__)', False),
        ('importlib.import_module("..trials.triton_kernels", __package__)', False),
        ('importlib.import_module(f".frameworks.{name}", __package__)', False),
        ('importlib.import_module("..trials.triton_kernel")', False),
        ('importlib.import_module("..trials.triton_kernel", __name__)', False),
    ],
)
def test_a_wrong_name_is_found(call: str, right: bool) -> None:  # noqa: FBT001
    assert (wrong(ROOT / "probes" / "deep" / "triton.py", call) == []) is right
