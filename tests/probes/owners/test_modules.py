"""Modules deep in a package: those that differ are named, and told apart by who imports them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from envcheck.snapshot import DamagedFile, Shipped
from probes.installations.catalog import DETAILED
from probes.owners import wheels
from probes.owners.shipped import shipped
from probes.python.distributions import installed_in
from tests.probes.frameworks.framework_trees import SITE, Frameworks

JAX: dict[str, str | bytes] = {
    "jax/__init__.py": "try:\n    from jax import numpy as numpy\nexcept ImportError:\n    raise\n",
    "jax/numpy/__init__.py": (
        "from typing import TYPE_CHECKING\nfrom jax.numpy import (\n    linalg as linalg,\n)\n"
        "if TYPE_CHECKING:\n    from jax.numpy import typing_only\n\n"
        "def __getattr__(name):\n    from jax.numpy import when_asked\n"
    ),
    "jax/numpy/linalg.py": "x = 1\n",
    "jax/numpy/typing_only.py": "x = 2\n",
    "jax/numpy/when_asked.py": "x = 3\n",
    "jax/numpy/tests/test_linalg.py": "x = 4\n",
    "jax/tools/aot/__init__.py": "from . import compile\n",
    "jax/tools/aot/compile.py": "x = 5\n",
    "jax/tools/__init__.py": "def compile(x):\n    from . import aot\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    made = Frameworks(tmp_path)
    made.package(JAX, "jax", "0.11.2")
    return made


def look(tree: Frameworks) -> Shipped:
    found = installed_in(tree.view(), (SITE,), DETAILED)
    return msgspec.convert(shipped(tree.view(), found.items, DETAILED, "3.8"), Shipped)


def damaged(tree: Frameworks) -> dict[str, DamagedFile]:
    return {file.path.removeprefix(f"{SITE}/jax/"): file for file in look(tree).damaged}


@pytest.mark.parametrize(
    ("path", "aside"),
    [
        ("numpy/linalg.py", False),
        ("numpy/typing_only.py", True),
        ("numpy/when_asked.py", True),
        ("tools/aot/compile.py", True),
    ],
)
def test_who_imports_it_decides(tree: Frameworks, path: str, *, aside: bool) -> None:
    tree.at(f"{SITE}/jax/{path}").unlink()
    (found,) = damaged(tree).items()
    assert (found[0], found[1].kind, found[1].aside) == (path, "missing", aside)


def test_another_size_is_seen_however_deep_the_module_lies(tree: Frameworks) -> None:
    tree.file(f"{SITE}/jax/tools/aot/compile.py", "x = (\n\n")
    (found,) = damaged(tree).values()
    assert (found.kind, found.aside) == ("size", True)
    assert (found.problem or "").startswith("it is not Python")


@pytest.mark.parametrize("target", ["/nowhere", "linalg.py"])
def test_a_link_to_nothing_or_to_itself_in_its_place(tree: Frameworks, target: str) -> None:
    tree.at(f"{SITE}/jax/numpy/linalg.py").unlink()
    tree.link(f"{SITE}/jax/numpy/linalg.py", target)
    (found,) = damaged(tree).values()
    assert (found.kind, found.dead_link) == ("missing", f"{SITE}/jax/numpy/linalg.py")


def test_a_folder_that_nothing_imports_may_be_left_out_of_an_image(tree: Frameworks) -> None:
    tree.remove(f"{SITE}/jax/tools/aot")
    assert damaged(tree) == {}


@pytest.mark.parametrize(
    "line", ["from jax.tools.aot import compile\n", "from .aot import compile\n", "from jax.tools import x, aot\n"]
)
def test_a_folder_that_a_module_beside_it_imports_is_missed(tree: Frameworks, line: str) -> None:
    tree.remove(f"{SITE}/jax/tools/aot")
    tree.file(f"{SITE}/jax/tools/run.py", line)
    assert {path: each.aside for path, each in damaged(tree).items()} == {
        "tools/aot/__init__.py": True,
        "tools/aot/compile.py": True,
    }


def test_files_for_tests_may_be_gone(tree: Frameworks) -> None:
    tree.at(f"{SITE}/jax/numpy/tests/test_linalg.py").unlink()
    assert damaged(tree) == {}


def test_no_more_time_than_allowed(tree: Frameworks, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.at(f"{SITE}/jax/numpy/linalg.py").unlink()
    monkeypatch.setattr(wheels, "SECONDS", -1.0)
    found = look(tree)
    assert (found.damaged, found.complete) == ((), False)
