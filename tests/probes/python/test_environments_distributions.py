"""What is installed: wheels, eggs and conda packages, whole and damaged, and where editable ones lie."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from probes.common import tree as kit_tree
from probes.files.python import distributions
from probes.files.python.distributions import Installed, conda_build, installed_by_conda, installed_in
from probes.files.python.search_path import mapped
from probes.files.python.site import Site, packages
from tests.every import cases
from tests.probes.environment_trees import Tree

SITE = "/site"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.at(SITE).mkdir()
    return made


def installed(tree: Tree, *folders: str) -> Installed:
    return installed_in(tree.view(), folders or (SITE,), frozenset({"torch"}))


def names(found: Installed) -> list[tuple[str, str]]:
    return [(item["name"], item["version"]) for item in found.items]


def test_wheels_by_the_name_of_their_folder(tree: Tree) -> None:
    tree.wheel(SITE, "Foo_Bar.baz", "1.0rc1")
    tree.wheel(SITE, "torch", "2.5.1+cu124", "Requires-Dist: filelock\nRequires-Dist: nvidia-nccl-cu12 (==2.21.5)\n")
    found = installed(tree)
    assert names(found) == [("foo-bar-baz", "1.0rc1"), ("torch", "2.5.1+cu124")]
    assert found.complete
    plain, torch = found.items
    assert plain == {
        "name": "foo-bar-baz", "version": "1.0rc1", "path": f"{SITE}/Foo_Bar.baz-1.0rc1.dist-info", "channel": "pip",
        "installer": "pip", "record": False, "source": "wheel metadata",
    }  # fmt: skip
    assert torch["requires"] == ["filelock", "nvidia-nccl-cu12 (==2.21.5)"]


def test_a_folder_name_that_is_not_plain_is_settled_by_the_metadata(tree: Tree) -> None:
    tree.file(f"{SITE}/my-old-name-1.0.dist-info/METADATA", "Name: my-old-name\nVersion: 1.0\n\nVersion: 9\n")
    tree.file(f"{SITE}/odd-1.0_1.dist-info/METADATA", "Name: odd\nVersion: 1.0.post1\n")
    assert names(installed(tree)) == [("my-old-name", "1.0"), ("odd", "1.0.post1")]


def test_source_folders_of_editable_installations_that_are_gone(tree: Tree) -> None:
    for name, url in (("gone", "file:///src/my%20own"), ("there", "file:///src/there"), ("untold", "https://x")):
        path = tree.wheel(SITE, name, "0.1")
        tree.file(f"{path}/direct_url.json", json.dumps({"url": url, "dir_info": {"editable": True}}))
    tree.file("/src/there/pyproject.toml")
    tree.file(f"{SITE}/old.name.egg-link", "/src/old\n.\n")
    tree.file(f"{SITE}/other.egg-link", "/src/there\n.\n")
    found = installed(tree)
    assert [(item["name"], item["problem"]) for item in found.damaged] == [
        ("old-name", "its source folder /src/old is gone"),
        ("gone", "its source folder /src/my own is gone"),
    ]
    assert all(item["editable"] for item in found.items)


def test_a_source_folder_where_nobody_may_look_is_not_called_gone(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.wheel(SITE, "mine", "0.1")
    tree.file(f"{path}/direct_url.json", json.dumps({"url": "file:///closed/src", "dir_info": {"editable": True}}))
    monkeypatch.setattr(kit_tree, "REFUSED", {})
    monkeypatch.setattr(distributions, "REFUSED", kit_tree.REFUSED)
    real = os.stat

    def refuse(place: str, **more: Any) -> os.stat_result:
        if str(place).endswith("/closed/src"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(place, **more)

    monkeypatch.setattr(os, "stat", refuse)
    assert installed(tree).damaged == []
    monkeypatch.undo()
    assert len(installed(tree).damaged) == 1


def test_editable_installations(tree: Tree) -> None:
    path = tree.wheel(SITE, "mine", "0.1")
    tree.file(f"{path}/direct_url.json", json.dumps({"url": "file:///src", "dir_info": {"editable": True}}))
    path = tree.wheel(SITE, "theirs", "0.1")
    tree.file(f"{path}/direct_url.json", json.dumps({"url": "file:///src", "dir_info": {}}))
    tree.file(f"{SITE}/old.name.egg-link", "/src/old\n.\n")
    tree.file("/src/old/old_name.egg-info/PKG-INFO", "Name: old.name\nVersion: 3.0\n")
    found = installed(tree, SITE, "/src/old")
    assert [(item["name"], item.get("editable")) for item in found.items] == [
        ("mine", True), ("theirs", None), ("old-name", True),
    ]  # fmt: skip


def test_eggs_in_every_form(tree: Tree) -> None:
    tree.file(f"{SITE}/PyGObject-3.42.2.egg-info/PKG-INFO", "Name: PyGObject\nVersion: 3.42.2\n")
    tree.file(f"{SITE}/chardet-5.1.0-py3.11.egg-info", "Name: chardet\nVersion: 5.1.0\n")
    tree.file(f"{SITE}/numpy-1.16.6-py2.7-linux-x86_64.egg-info", "Name: numpy\nVersion: 1.16.6\n")
    tree.file(f"{SITE}/bare.egg-info/PKG-INFO", "Name: bare\nVersion: 7\n")
    tree.file("/eggs/zipped-2.0-py3.7.egg/EGG-INFO/PKG-INFO", "Name: zipped\nVersion: 2.0\n")
    assert names(installed(tree, SITE, "/eggs/zipped-2.0-py3.7.egg")) == [
        ("pygobject", "3.42.2"), ("bare", "7"), ("chardet", "5.1.0"), ("numpy", "1.16.6"), ("zipped", "2.0"),
    ]  # fmt: skip


def test_duplicates_are_all_listed_first_on_the_path_first(tree: Tree) -> None:
    tree.wheel("/first", "torch", "2.4.0")
    tree.wheel(SITE, "torch", "2.5.1")
    tree.wheel(SITE, "torch", "2.3.0")
    assert names(installed(tree, "/first", SITE)) == [("torch", "2.4.0"), ("torch", "2.3.0"), ("torch", "2.5.1")]


def test_damaged_metadata_costs_only_itself(tree: Tree) -> None:
    tree.at(f"{SITE}/left_over-1.0.dist-info").mkdir()
    tree.file(f"{SITE}/~orch-2.0.dist-info/METADATA", "Name: torch\nVersion: 2.0\n")
    tree.link(f"{SITE}/loop-1.0.dist-info", "loop-1.0.dist-info")
    tree.file(f"{SITE}/afile-1.0.dist-info", "not a folder")
    tree.file(f"{SITE}/a-b-c.dist-info/METADATA", b"\xff\xfe\0" * 100)
    tree.file(f"{SITE}/x-y-z.dist-info/METADATA", "Name: \x1b[31mred\nVersion: 1\n")
    tree.file(f"{SITE}/.dist-info/METADATA", "")
    tree.file(f"{SITE}/empty-1.0.egg-info/SOURCES.txt", "")
    tree.file(f"{SITE}/nameless.egg-info/PKG-INFO", "Version: 1\n")
    tree.file(f"{SITE}/bytes-1.0.dist-info/METADATA", b"\xff\xfe\0" * 100)
    tree.file(f"{SITE}/bytes-1.0.dist-info/INSTALLER", b"p\x1b]0;x\x07ip\xff" * 50)
    tree.file(f"{SITE}/bytes-1.0.dist-info/direct_url.json", b"[" * 60000)
    tree.file(f"{SITE}/torch-2.0.dist-info/METADATA", "Requires-Dist: a\n" + "x" * (2 << 20) + "\nRequires-Dist: b\n")
    tree.wheel(SITE, "whole", "1.0")
    found = installed(tree)
    assert names(found) == [("bytes", "1.0"), ("torch", "2.0"), ("whole", "1.0")]
    assert found.complete
    assert "\x1b" not in found.items[0]["installer"]
    assert len(found.items[0]["installer"]) <= 40
    assert "editable" not in found.items[0]
    assert found.items[1]["requires"] == ["a"]


def test_a_folder_that_cannot_be_listed_is_not_a_complete_list(tree: Tree) -> None:
    tree.file("/afile")
    assert installed(tree, "/afile").complete is False


def test_there_is_an_end_to_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "LIMIT", 2)
    for name in ("a", "b", "c"):
        tree.wheel(SITE, name, "1")
    found = installed(tree)
    assert names(found) == [("a", "1"), ("b", "1")]
    assert not found.complete


# --- conda --------------------------------------------------------------------------------------------------------
def conda(tree: Tree, **records: Any) -> Installed:
    for name, content in records.items():
        tree.file(f"/conda/conda-meta/{name.replace('__', '-')}.json", content)
    return installed_by_conda(tree.view(), "/conda", frozenset({"pytorch"}))


def test_conda_packages_by_the_names_of_their_records(tree: Tree) -> None:
    tree.file("/conda/conda-meta/history", "==> 2024 <==\n")
    tree.file("/conda/conda-meta/cuda-version-12.4-h3060b56_3.json", "not opened")
    tree.file("/conda/conda-meta/cudatoolkit-11.8.0-h4ba93d1_13.json", "not opened")
    tree.file("/conda/conda-meta/_libgcc_mutex-0.1-main.json", "not opened")
    record = {"depends": ["blas * mkl", "pytorch-cuda >=12.4,<12.5", 7], "files": ["lib/x"]}
    tree.file("/conda/conda-meta/pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json", json.dumps(record))
    found = conda(tree)
    assert [(item["name"], item["version"], item["build"]) for item in found.items] == [
        ("libgcc-mutex", "0.1", "main"), ("cuda-version", "12.4", "h3060b56_3"),
        ("cudatoolkit", "11.8.0", "h4ba93d1_13"), ("pytorch", "2.5.1", "py3.11_cuda12.4_cudnn9.1.0_0"),
    ]  # fmt: skip
    assert found.complete
    assert found.items[3]["requires"] == ["blas * mkl", "pytorch-cuda >=12.4,<12.5"]
    assert {item["channel"] for item in found.items} == {"conda"}


@cases("content", "", "[]", "{", '{"depends": 3}', "[" * 100_000, b"\xff" * 100)
def test_a_damaged_record_still_has_its_name(tree: Tree, content: str | bytes) -> None:
    found = conda(tree, **{"pytorch-2.5.1-cpu_0": content})
    assert [(item["name"], item["version"]) for item in found.items] == [("pytorch", "2.5.1")]
    assert found.items[0]["requires"] is None


def test_no_conda_environment(tree: Tree) -> None:
    found = installed_by_conda(tree.view(), "/nowhere", frozenset())
    assert (found.items, found.damaged, found.complete) == ([], [], True)


@cases("build, cuda, cpu_only, cudnn",
    ("py3.11_cuda12.4_cudnn9.1.0_0", "12.4", False, "9.1.0"), ("py3.7_cuda9.0.176_cudnn7.6.3_0", "9.0", False, "7.6.3"),
    ("py3.11_cpu_0", None, True, None), ("cpu_mkl_py311_h7c0bf2e_100", None, True, None),
    ("cpu_py310h8ad9dd0_0", None, True, None), ("cuda126_mkl_py312_hc7021f6_300", "12.6", False, None),
    ("cuda112py39hb1bd5a6_202", "11.2", False, None), ("cuda92py36_0", "9.2", False, None),
    ("py311h1_0", None, None, None),
)  # fmt: skip
def test_build_strings(tree: Tree, build: str, cuda: str | None, cpu_only: bool | None, cudnn: str | None) -> None:  # noqa: FBT001
    read = conda_build(conda(tree, **{f"pytorch-2.5.1-{build}": "{}"}).items, "pytorch")
    assert read is not None
    assert (read.version, read.cuda, read.cpu_only, read.cudnn) == ("2.5.1", cuda, cpu_only, cudnn)


def test_conda_has_an_end_too(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "LIMIT", 1)
    found = conda(tree, **{"a-1-0": "", "b-1-0": ""})
    assert len(found.items) == 1
    assert not found.complete


# --- Editable installations that bring a finder, in setuptools' words; nothing of them is run ------------------------
FINDER = """from __future__ import annotations
import sys
MAPPING: dict[str, str] = {mapping}
NAMESPACES: dict[str, list[str]] = {{}}
PATH_PLACEHOLDER = '__editable__.mine-1.0.finder' + ".__path_hook__"
raise SystemExit("this was run")
"""


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
