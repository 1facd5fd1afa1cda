"""Editable installations that bring a finder; the files are in setuptools' words, and nothing of them is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.files.python.search_path import mapped
from probes.files.python.site import Site, packages
from tests.every import cases
from tests.probes.environment_trees import Tree

SITE = "/site"
FINDER = """from __future__ import annotations
import sys
MAPPING: dict[str, str] = {mapping}
NAMESPACES: dict[str, list[str]] = {{}}
PATH_PLACEHOLDER = '__editable__.mine-1.0.finder' + ".__path_hook__"
raise SystemExit("this was run")
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.at(SITE).mkdir()
    return made


def finder(tree: Tree, mapping: str) -> None:
    tree.file(f"{SITE}/__editable__.mine-1.0.pth", "import __editable___mine_1_0_finder; x.install()")
    tree.file(f"{SITE}/__editable___mine_1_0_finder.py", FINDER.format(mapping=mapping))


def test_where_a_finder_says_that_a_package_lies(tree: Tree) -> None:
    finder(tree, "{'vllm': '/src/vllm/vllm', 'setup_helper': '/src/vllm/setup_helper'}")
    assert mapped(tree.view(), [SITE]) == {"vllm": "/src/vllm/vllm", "setup_helper": "/src/vllm/setup_helper"}


def test_the_package_is_found_there_after_all_others(tree: Tree) -> None:
    tree.file("/src/vllm/vllm/__init__.py")
    site = Site(tree.view(), "/env", (SITE,), 0, (), {"vllm": "/src/vllm/vllm"})
    assert site.holds(["vllm"])
    (package,) = packages(site, "vllm")
    assert (package.path, package.folder, package.regular) == ("/src/vllm/vllm", "/src/vllm", True)
    tree.file(f"{SITE}/vllm/__init__.py")
    site = Site(tree.view(), "/env", (SITE,), 0, (), {"vllm": "/src/vllm/vllm"})
    assert [package.folder for package in packages(site, "vllm")] == [SITE, "/src/vllm"]


def test_a_finder_that_no_path_file_starts_counts_for_nothing(tree: Tree) -> None:
    tree.file(f"{SITE}/__editable___mine_1_0_finder.py", FINDER.format(mapping="{'vllm': '/src/vllm/vllm'}"))
    assert mapped(tree.view(), [SITE, "/missing"]) == {}


@cases("mapping",
    "{**{}}", "dict(a='/x')", "{'a': ['/x']}", "{1: '/x'}", "{'a': 'relative'}", "{'a': '/x'", "{" * 3000,
    "{'a': '/\\0'}",
)  # fmt: skip
def test_what_is_no_plain_mapping_says_nothing(tree: Tree, mapping: str) -> None:
    finder(tree, mapping)
    assert mapped(tree.view(), [SITE]) == {}
