"""What Triton compiles with when a program runs, found as its own code finds it."""

from pathlib import Path

import pytest

from probes.files.frameworks.triton import host_compiler
from tests.every import cases
from tests.probes.loader.loading_builds import GCC, REASON
from tests.probes.loader.test_loading_by_name import Tree

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

BUILDER = 'raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.")\n'


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def place(tree: Tree, path: str) -> str:
    made = tree.folder / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.touch(0o755)
    return str(made)


def test_the_compiler_on_path_and_the_headers_of_that_python(tree: Tree) -> None:
    clang, gcc = place(tree, "first/clang"), place(tree, "second/gcc")
    headers = place(tree, "include/python3.11/Python.h")
    path = f"relative:{tree.folder}/first:{tree.folder}/second"
    assert host_compiler(tree.site(PATH=path)) == {"C compiler": gcc, "Python.h": headers}
    assert host_compiler(tree.site(PATH=str(tree.folder / "first")))["C compiler"] == clang
    assert host_compiler(tree.site(CC="cc\x1b[2J\udcff"))["C compiler"].isprintable()
    assert host_compiler(tree.site(PATH=path, CC="clang"))["C compiler"] == "clang"
    assert host_compiler(tree.site(PATH="", CC=gcc))["C compiler"] == gcc


def test_a_compiler_that_cannot_be_started_is_none(tree: Tree) -> None:
    gcc = place(tree, "first/gcc")
    Path(gcc).chmod(0o644)
    assert host_compiler(tree.site(PATH=str(tree.folder / "first"))) == {"C compiler": "", "Python.h": ""}
    for named in (gcc, "gcc-15", "/no/gcc", "", f"{place(tree, 'first/clang')} -O2"):
        assert host_compiler(tree.site(PATH="", CC=named)) == {"CC": "", "Python.h": ""}


def test_what_is_not_there_and_what_is_not_known(tree: Tree) -> None:
    assert host_compiler(tree.site(PATH=str(tree.folder))) == {"C compiler": "", "Python.h": ""}
    assert host_compiler(tree.site()) == {"Python.h": ""}
    tree.program.unlink()
    assert host_compiler(tree.site()) == {}


@cases("place", "runtime/build.py", "compiler.py")
def test_a_triton_that_compiles_in_c_says_with_what(tree: Tree, place: str) -> None:
    """``compiler.py`` in 2.0, ``runtime/build.py`` in 3.x."""
    tree.text("triton/__init__.py", "__version__ = '3.7.1'\n")
    tree.text("triton/language/__init__.py")
    assert tree.read(PATH="").compiles_with == {}
    tree.text(f"triton/{place}", BUILDER)
    assert tree.read(PATH="").compiles_with == {"C compiler": "", "Python.h": ""}
