"""What is said of metadata that cannot be used, and of files that are gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from probes.python.distributions import LEFT, Installed, installed_by_conda, installed_in
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import Tree

SITE = "/site"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.at(SITE).mkdir()
    return made


def installed(tree: Tree) -> Installed:
    return installed_in(tree.view(), (SITE,), frozenset())


def problems(found: Installed) -> dict[str, str]:
    return {item["path"].removeprefix(f"{SITE}/"): item["problem"] for item in found.damaged}


def test_whole_metadata_is_no_damage(tree: Tree) -> None:
    path = tree.wheel(SITE, "whole", "1.0")
    tree.file(f"{path}/RECORD", "whole/__init__.py,,0\n")
    found = installed(tree)
    assert found.damaged == []
    assert found.items[0]["record"] is True


@pytest.mark.parametrize(
    ("content", "problem", "listed"),
    [
        (None, "METADATA is missing", []),
        (b"", "METADATA is empty", ["1.0"]),
        (b"\0" * 600, "METADATA is empty", ["1.0"]),
        (b"Metadata-Version: 2.1\nName: foo\n\nVersion: 3\n", "no version in METADATA", ["1.0"]),
        (b"Metadata-Version: 2.1\nVersion: 1.0\n", "no name in METADATA", ["1.0"]),
        (b"Name: foo\nVersion: \x1b[31m\n", "no usable version in METADATA", ["1.0"]),
        (b"Name: foo\r\nVersion: 1.1\r\n\r\nText\r\n", None, ["1.1"]),
        (b"Name: foo\nVersion: 1.0.0\n", None, ["1.0.0"]),
        (b"metadata-version: 2.1\nname: foo\nversion: 1.2\n", None, ["1.2"]),
        (b"Summary: " + b"x" * 9000 + b"\nName: foo\nVersion: 1.3\n", None, ["1.3"]),
        (b"\xff\xfe" * 3000, "no name in METADATA", ["1.0"]),
    ],
)
def test_metadata(tree: Tree, content: bytes | None, problem: str | None, listed: list[str]) -> None:
    tree.file(f"{SITE}/foo-1.0.dist-info/INSTALLER", "pip\n")
    if content is not None:
        tree.file(f"{SITE}/foo-1.0.dist-info/METADATA", content)
    found = installed(tree)
    assert problems(found) == ({"foo-1.0.dist-info": problem} if problem else {})
    assert [item["version"] for item in found.items] == listed


def test_what_is_no_folder_and_what_cannot_be_opened(tree: Tree) -> None:
    tree.file(f"{SITE}/file-1.0.dist-info", "not a folder")
    tree.link(f"{SITE}/loop-1.0.dist-info", "loop-1.0.dist-info")
    tree.link(f"{SITE}/gone-1.0.dist-info", "/nowhere")
    tree.at(f"{SITE}/pipe-1.0.dist-info").mkdir()
    os.mkfifo(tree.at(f"{SITE}/pipe-1.0.dist-info/METADATA"))
    tree.at(f"{SITE}/dev-1.0.dist-info").mkdir()
    tree.link(f"{SITE}/dev-1.0.dist-info/METADATA", "/dev/zero")
    tree.at(f"{SITE}/deep-1.0.dist-info/METADATA").mkdir(parents=True)
    found = installed(tree)
    assert found.items == []
    assert problems(found) == {
        "file-1.0.dist-info": "it cannot be read",
        "loop-1.0.dist-info": "it cannot be read",
        "gone-1.0.dist-info": "it cannot be read",
        "pipe-1.0.dist-info": "METADATA cannot be read",
        "dev-1.0.dist-info": "METADATA cannot be read",
        "deep-1.0.dist-info": "METADATA cannot be read",
    }
    assert found.complete


def test_what_an_installation_left_behind(tree: Tree) -> None:
    for name in ("~orch", "~orch-2.4.0.dist-info", "-umpy", "~umpy-1.0.egg-info"):
        tree.at(f"{SITE}/{name}").mkdir()
    tree.file(f"{SITE}/-", "")
    found = installed(tree)
    assert problems(found) == dict.fromkeys(("~orch", "~orch-2.4.0.dist-info", "-umpy", "~umpy-1.0.egg-info"), LEFT)


def test_an_empty_record_of_conda(tree: Tree) -> None:
    tree.file("/env/conda-meta/numpy-2.1.0-py312h1_0.json", "{}")
    tree.file("/env/conda-meta/cudnn-9.3.0-h1_0.json", "")
    found = installed_by_conda(tree.view(), "/env", frozenset())
    assert [item["path"] for item in found.damaged] == ["/env/conda-meta/cudnn-9.3.0-h1_0.json"]
    assert len(found.items) == 2


def test_the_environment_tells_of_all(tree: Tree, run_probe: RunProbe) -> None:
    site = tree.venv("/home/me/.venv", tree.base("/usr"))
    tree.wheel(site, "numpy", "1.26.4")
    tree.wheel(site, "numpy", "2.1.0")
    tree.at(f"{site}/~orch").mkdir()
    tree.file(f"{site}/\x1b]0;x\x07-1.0.dist-info/METADATA", "")
    snapshot, _ = run_probe("environments", tree.view())
    assert snapshot.environments is not None
    found = snapshot.environments.items[0]
    assert [(item.name, item.version) for item in found.distributions or ()] == [
        ("numpy", "1.26.4"),
        ("numpy", "2.1.0"),
    ]
    assert [(item.path, item.problem) for item in found.damaged or ()] == [
        (f"{site}/]0;x-1.0.dist-info", "METADATA is empty"), (f"{site}/~orch", LEFT),
    ]  # fmt: skip


def test_two_thousand_distributions(tree: Tree) -> None:
    """Within 150 ms of a free core on a laptop; here only that it is far from growing with the square."""
    for number in range(2000):
        tree.wheel(SITE, f"package{number}", "1.0", "Requires-Dist: a\n" + "x" * 4000)
    started = time.thread_time()
    found = installed(tree)
    assert time.thread_time() - started < 12
    assert len(found.items) == 2000
    assert found.complete


def test_more_damage_than_anybody_reads_is_bounded(tree: Tree) -> None:
    for number in range(600):
        tree.at(f"{SITE}/~left{number}").mkdir()
    assert len(installed(tree).damaged) == 500


def test_what_was_left_still_tells_its_name_and_version(tree: Tree) -> None:
    path = f"{SITE}/~orch-2.9.1.dist-info"
    tree.file(f"{path}/METADATA", "Metadata-Version: 2.1\nName: Torch\nVersion: 2.9.1\n")
    tree.at(f"{SITE}/~orch").mkdir()
    said = [(item["path"], item.get("name"), item.get("version")) for item in installed(tree).damaged]
    assert said == [(f"{SITE}/~orch", None, None), (path, "torch", "2.9.1")]
